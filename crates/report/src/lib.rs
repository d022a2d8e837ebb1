//! What people read: findings, series and hosts as text, HTML, Markdown and tables.
//!
//! Invariant: pure: never does I/O and never decides; what it shows was decided before.

#![forbid(unsafe_code)]

pub mod block;
pub mod checking;
pub mod comparing;
pub mod comparison;
pub mod csv;
pub mod figure_rows;
mod host;
pub mod html;
pub mod imported;
pub mod json;
pub mod lmbench;
mod map;
pub mod markdown;
mod memory_map;
mod notes;
pub mod peers;
pub mod plain;
pub mod prometheus;
mod rate_memory;
mod regions;
mod scores;
pub mod screen;
pub mod sections;
pub mod svg;
mod swept;
pub mod text;
pub mod text_machine;
mod tree;
pub mod trending;
