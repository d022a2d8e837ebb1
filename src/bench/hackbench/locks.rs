//! What locks take of the tasks' time: a second run, sampled and not timed, so that the figure has nothing to do with it.

use super::crew::{self, Ran, Setup};
use crate::sys::clock::Clock;
use crate::sys::lock_share::{LockSampler, LockShares};

/// The sampled run has as many loops as take about this long, or as the timed one had.
const SAMPLED_NS: f64 = 1e9;
pub const SAMPLED_S: f64 = SAMPLED_NS / 1e9;

/// A timed run, then where the kernel lets us a sampled one: the timer that takes samples costs 4 % of CPU time in some
/// guests, which a time to be compared must not hold.
pub fn run(setup: &Setup, clock: Clock) -> anyhow::Result<(Ran, Result<LockShares, String>)> {
    let ran = crew::run(setup, clock, None)?.0;
    let locks = match LockSampler::refusal() {
        Some(why) => Err(why),
        None => {
            let sampled = Setup { loops: loops(setup.loops, ran.wall_ns), ..*setup };
            crew::run(&sampled, clock, Some(LockSampler::open))
                .map_err(|error| format!("the sampled run failed: {error:#}"))
                .and_then(|(_, locks)| locks)
        }
    };
    Ok((ran, locks))
}

/// Loops of the sampled run, by those of the timed one and its time.
fn loops(timed: usize, wall_ns: f64) -> usize {
    ((timed as f64 * (SAMPLED_NS / wall_ns).min(1.0)) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_run_is_never_longer_and_has_work() {
        assert_eq!((loops(100, 2e8), loops(100, 1e9), loops(100, 1e10), loops(100, 1e13)), (100, 100, 10, 1));
    }
}
