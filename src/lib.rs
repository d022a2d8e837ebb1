//! Assay's parts, public for its own tests, benches and fuzzers only: the product is the binary.
#![doc(hidden)]

pub mod machine;
pub mod model;
pub mod stats;
