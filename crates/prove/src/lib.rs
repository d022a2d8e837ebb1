//! Experiments on data whose truth is known: what the methods are claimed to do. The tests run them
//! small and hold them against the bounds; `make prove` runs them large and writes the tables of
//! METHODOLOGY.md, which states the same bounds.
//!
//! Invariant: only `make prove` and tests run it; nothing of the product depends on it.

#![forbid(unsafe_code)]

pub mod fleets;
pub mod histories;
pub mod proof;
