//! Processes that work together: forked, pinned and controlled over shared memory.
//!
//! The members of a [`Team`] start each round at the same time; a [`Partner`] executes one order at
//! a time. They share [`Lines`] of numbers, [`Slots`] of records and a [`Notice`] of the first
//! error.

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

/// The number of a round or order that asks members and partners to exit.
const END: u32 = u32::MAX;

/// Forks a child that pins itself to `cpus` and then runs `work`; it exits with 1 if either fails.
pub fn fork_on(cpus: &CpuSet, work: impl FnOnce() -> anyhow::Result<()>) -> io::Result<Child> {
    process::fork(|| i32::from(affinity::pin(cpus).map_err(Into::into).and_then(|()| work()).is_err()))
}
