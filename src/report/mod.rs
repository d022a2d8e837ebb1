//! Findings and series as something that people and programs read.

pub mod block;
pub mod html;
pub mod plain;
