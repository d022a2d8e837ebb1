//! From samples to numbers that say how far they can be trusted.
//!
//! Invariant: pure. No clock, no files, no printing; chance only from a seed that the caller gives,
//! so that equal input gives equal output.
//!
//! [`judge_run`] is the way through: [`series`](mod@series) groups the visits of a run,
//! [`estimate`](mod@estimate) gives the number, [`behaviour`](mod@behaviour) says what is wrong
//! with it, [`outliers`] what disturbed it, [`verdict`] whether to trust it; [`analysis`] puts
//! these together. While measuring, [`stop`] says when it is enough. The other modules are methods,
//! one subject each. What is claimed of them is measured by `prove` on [`noise`] whose truth is
//! known, and written down in docs/method.
//!
//! Values that are not finite are left out everywhere, nothing panics, and `None` means that too
//! little is known.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod behaviour;
pub mod bootstrap;
pub mod cache_share;
pub mod change;
pub mod clock;
pub mod clusters;
pub mod compare;
pub mod contingency;
pub mod contrast;
pub mod core_bound;
pub mod core_sharing;
pub mod dependence;
pub mod drift;
pub mod estimate;
pub mod factorial;
pub mod guarded;
pub mod index;
pub mod interleave;
pub mod knee;
pub mod memory_map;
pub mod mixture;
pub mod modes;
pub mod multiple;
pub mod nested;
pub mod network;
pub mod noise;
pub mod order;
pub mod outliers;
pub mod pairs;
pub mod pauses;
pub mod places;
pub mod pooled;
pub mod quads;
pub mod ranks;
pub mod regions;
pub mod repeat;
pub mod series;
pub mod shifts;
pub mod siblings;
pub mod smt;
pub mod spend;
pub mod steps;
pub mod stop;
pub mod sweep;
pub mod tails;
pub mod unixbench;
pub mod verdict;

pub use analysis::{Analysis, Judged, analyse, judge_run};
pub use estimate::{Estimate, Unit, estimate};
pub use order::Interval;
pub use series::{Process, Series, series};
pub use stop::{Decision, Target, decide};

#[cfg(test)]
mod any_input_tests;
#[cfg(test)]
mod published_tests;
