//! Sequential writes for a minute: `disk.sustained`.

use super::cases::{SUSTAINED_S, seconds_of};
use super::pattern::Walk;
use super::stream::{Plan, Stretch, points};
use crate::Sampler;
use model::Case;

/// A period is a sample, s.
const PERIOD_S: f64 = 0.5;

/// Fewer periods are no time line.
const MIN_PERIODS: usize = 4;

/// Number and length of the periods that make up this many seconds.
fn periods(seconds: f64) -> (usize, f64) {
    let count = ((seconds / PERIOD_S).round() as usize).max(MIN_PERIODS);
    (count, seconds / count as f64)
}

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let plan = Plan::of(case, sampler)?;
    let seconds = seconds_of(case).unwrap_or(SUSTAINED_S);
    let (count, period_s) = periods(seconds);
    // Nothing warms up: how it begins is a part of the time line.
    points(case, &plan, Walk::Sequential, Stretch { warm_up: 0, count, ns: period_s * 1e9 }, sampler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_120_periods_and_a_moment_some() {
        assert_eq!(periods(60.0), (120, 0.5));
        let (count, period_s) = periods(0.2);
        assert_eq!(count, MIN_PERIODS);
        assert!((period_s - 0.05).abs() < 1e-12);
    }
}
