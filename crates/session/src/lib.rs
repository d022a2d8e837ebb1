//! From a request to a run file: what is measured (`plan`), how (`measure`), and what may outlive a
//! visit (`objects`).
//!
//! Invariant: decides what to measure next, never what it means. The only statistics it uses is the
//! stop rule.

#![forbid(unsafe_code)]

pub mod explained;
pub mod measure;
pub mod objects;
pub mod plan;
