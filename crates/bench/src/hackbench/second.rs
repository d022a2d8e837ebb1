//! A second, untimed run whose tasks are observed, so that observing costs no measured time.
//!
//! Sampling where tasks spend their time costs 4 % of CPU time in some guests; threads that stay
//! until their figures are read take 3–10 % longer.

use super::crew::{self, RunResult, Setup, Tasks};
use sys::clock::Clock;
use sys::lock_share::{LockSampler, LockShares};

/// It has as many loops as take about this long, or as the timed one had.
const SECOND_NS: f64 = 1e9;
pub const SECOND_S: f64 = SECOND_NS / 1e9;

/// It costs as much as a run, so only one pass in this many has it.
pub const ONE_OF: u32 = 4;

/// Figures of the second run.
pub struct SecondRun {
    /// What locks took of the tasks' CPU time, or why that is not known.
    pub locks: Result<LockShares, String>,
    pub migrations: Option<f64>,
    pub wait_ns: Option<f64>,
    /// Its loops.
    pub loops: usize,
}

/// A timed run, and where it is `wanted` a second one: for the share of locks where the kernel lets
/// us, and for what is known of threads only while they stay.
pub fn run(setup: &Setup, clock: Clock, wanted: bool) -> anyhow::Result<(RunResult, Option<SecondRun>)> {
    let ran = crew::run(setup, clock, None)?.0;
    if !wanted {
        return Ok((ran, None));
    }
    let nothing = |why| SecondRun { locks: Err(why), migrations: None, wait_ns: None, loops: 0 };
    let sampler: Option<fn() -> LockSampler> = match LockSampler::refusal() {
        // The timed run has already reported the rest.
        Some(why) if setup.tasks == Tasks::Processes => return Ok((ran, Some(nothing(why)))),
        Some(_) => None,
        None => Some(LockSampler::open),
    };
    let loops = loops(setup.loops, ran.wall_ns);
    let beside = match crew::run(&Setup { loops, kept: true, ..*setup }, clock, sampler) {
        Ok((RunResult { migrations, wait_ns, .. }, locks)) => {
            let locks = LockSampler::refusal().map_or(locks, Err);
            SecondRun { locks, migrations, wait_ns, loops }
        }
        Err(error) => nothing(format!("the second run failed: {error:#}")),
    };
    Ok((ran, Some(beside)))
}

/// Loops of the second run, by those of the timed one and its time.
fn loops(timed: usize, wall_ns: f64) -> usize {
    ((timed as f64 * (SECOND_NS / wall_ns).min(1.0)) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_never_longer_and_has_work() {
        assert_eq!((loops(100, 2e8), loops(100, 1e9), loops(100, 1e10), loops(100, 1e13)), (100, 100, 10, 1));
    }
}
