//! What disk figures mean: whether they are the disk's own, what limits them, and whether they
//! last.

mod cache;
mod caps;
mod failed;
mod filesystem;
mod latency;
mod load;
mod points;
mod steady;

use super::Rule;
pub use filesystem::MAX_USED_SHARE;

pub const RULES: &[Rule] = &[
    failed::FAILED_IO,
    cache::PAGE_CACHE,
    caps::THROTTLED,
    load::GENERATOR_BOUND,
    load::OTHERS,
    steady::NOT_STEADY,
    latency::UNSAFE_FAST,
    latency::TAIL,
    load::DEPTH_USELESS,
    filesystem::NEARLY_FULL,
    filesystem::NO_TRIM,
];
