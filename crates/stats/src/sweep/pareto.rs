//! Settings between two metrics.

use crate::order::Interval;
use model::Better;

/// A setting's values of two metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParetoPoint {
    pub cell: usize,
    /// In the metrics' units.
    pub values: [f64; 2],
    /// At 95 %, each around its value.
    pub intervals: [Interval; 2],
}

/// The cells that no other one dominates, in the order given. One dominates another if it is better
/// in one metric by more than the noise of both explains, and not worse in the other by more than
/// that; the noise of a difference is the root of the sum of squares of the two half-widths that
/// face each other. A metric without a better side decides nothing. Spots with a value that is not
/// a number are left out.
pub fn pareto(spots: &[ParetoPoint], better: [Better; 2]) -> Vec<usize> {
    let known: Vec<&ParetoPoint> =
        spots.iter().filter(|spot| spot.values.iter().all(|value| value.is_finite())).collect();
    let dominates = |one: &ParetoPoint, other: &ParetoPoint| {
        let sides = [0, 1].map(|metric| {
            (
                surely_better(one, other, metric, better[metric]),
                surely_better(other, one, metric, better[metric]),
            )
        });
        sides.iter().any(|(better, _)| *better) && !sides.iter().any(|(_, worse)| *worse)
    };
    let free: Vec<usize> = known
        .iter()
        .filter(|spot| !known.iter().any(|other| dominates(other, spot)))
        .map(|spot| spot.cell)
        .collect();
    // Noise that differs from spot to spot can send three round in a circle: then nothing is ruled
    // out.
    if free.is_empty() { known.iter().map(|spot| spot.cell).collect() } else { free }
}

fn surely_better(one: &ParetoPoint, other: &ParetoPoint, metric: usize, better: Better) -> bool {
    let (high, low) = match better {
        Better::Higher => (one, other),
        Better::Lower => (other, one),
        Better::Neither => return false,
    };
    let down = high.values[metric] - high.intervals[metric].low;
    let up = low.intervals[metric].high - low.values[metric];
    high.values[metric] - low.values[metric] > down.hypot(up)
}
