//! One of several pairs that pass numbers to and fro.

use anyhow::Context;

use super::super::pair::{Pair, ROLES, channel};
use super::copies::{self, Loops, Test};
use model::Case;
use sys::clock::Clock;

/// The pair of a copy, until it is stopped.
struct PingPongPair(Option<Pair<channel::Channel>>);

/// Forks the partner of the copy that calls, and seats both.
pub fn pair(case: &Case, clock: Clock, copy: usize) -> anyhow::Result<Loops> {
    let placement = copies::seats(&case.placement, copy, ROLES.len());
    Ok(Box::new(PingPongPair(Some(Pair::start(&placement, clock, channel::pipes)?))))
}

impl Test for PingPongPair {
    fn work(&mut self, loops: u64) -> anyhow::Result<()> {
        self.0.as_mut().context("the pair has been stopped")?.play(loops).map(drop)
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        self.0.take().map_or(Ok(()), Pair::stop)
    }
}
