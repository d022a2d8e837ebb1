//! From a wish to a run file: what is measured (`plan`), how (`measure`), and what may outlive a
//! visit (`objects`).
//!
//! Invariant: decides what is measured next and never what it means; of the statistics it asks the
//! stop rule alone.

#![forbid(unsafe_code)]

pub mod explained;
pub mod measure;
pub mod objects;
pub mod plan;
