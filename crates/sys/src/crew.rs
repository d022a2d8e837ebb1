//! Processes that work together: forked, pinned, told what to do and when, over memory that all of
//! them share.
//!
//! A [`Team`] works in rounds that all its members begin at once; a [`Partner`] does what it is
//! told, an order at a time. What they share are [`Lines`] of numbers, [`Slots`] of records and a
//! [`Notice`] of what went wrong.

use std::io;

use super::affinity;
use super::process::{self, Child};
use model::CpuSet;

mod board;
mod partner;
mod team;

pub use board::{Lines, Notice, Record, Slots, Word, WrongAnswer};
pub use partner::{PATIENCE, Partner, Wait};
pub use team::{Body, Lap, Team, wall_ns};

/// The number that asks members and partners to leave.
const END: u32 = u32::MAX;

/// Forks a child that is pinned to `cpus` before it works; it ends with an error code where it
/// cannot be pinned or where its work fails.
pub fn fork_on(cpus: &CpuSet, work: impl FnOnce() -> anyhow::Result<()>) -> io::Result<Child> {
    process::fork(|| i32::from(affinity::pin(cpus).map_err(Into::into).and_then(|()| work()).is_err()))
}
