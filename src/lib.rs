//! Assay's parts, public for its own tests, benches and fuzzers only: the product is the binary.
#![doc(hidden)]

pub mod bench;
pub mod cmd;
pub mod compare;
pub mod diagnose;
pub mod import;
pub mod kernels;
pub mod knobs;
pub mod machine;
pub mod measure;
pub mod model;
pub mod objects;
pub mod peers;
pub mod placement;
pub mod plan;
pub mod report;
pub mod run_file;
pub mod stats;
pub mod sys;
