//! Does any cell differ from any other?

use super::fit::Fit;
use super::hypotheses::{Hypothesis, TestResult};
use crate::tails::chi_square_above;

/// Whether the knobs matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matters {
    /// That all cells are alike, by permutation within passes.
    pub p: f64,
    /// Some question has its answer, at 5 % over all that are asked.
    pub yes: bool,
    /// Logarithm of the highest over the lowest cell, less what noise alone adds to it; from 0.
    pub spread: f64,
    /// Logarithm of the smallest ratio of two cells (all others between them) that these
    /// observations would have detected in about four of five cases.
    pub floor: f64,
}

/// Nominal power at a floor. The permutations know the effect as noise, which costs the test about
/// 15 points of it.
const POWER: f64 = 0.95;

pub fn matters(cells: usize, fitted: &Fit, test_results: &[TestResult]) -> Matters {
    // Of one knob, all cells are its values.
    let any =
        test_results.iter().rfind(|answer| answer.hypothesis == Hypothesis::Any).or(test_results.first());
    Matters {
        p: any.map_or(1.0, |any| any.p),
        yes: test_results.iter().any(TestResult::is_yes),
        spread: spread(cells, fitted),
        floor: any.and_then(|any| any.floor).unwrap_or(f64::INFINITY),
    }
}

/// The range of the levels, drawn together as far as noise drew them apart (Ghosh 1992).
fn spread(cells: usize, fitted: &Fit) -> f64 {
    let own: Vec<(f64, f64)> = (0..cells)
        .filter_map(|cell| Some((fitted.level(cell)?, fitted.sigma.powi(2) / fitted.count(cell) as f64)))
        .collect();
    let n = own.len() as f64;
    let mean = own.iter().map(|(level, _)| level).sum::<f64>() / n;
    let seen = own.iter().map(|(level, _)| (level - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let noise = own.iter().map(|(_, variance)| variance).sum::<f64>() / n;
    let levels = own.iter().map(|(level, _)| *level);
    let (low, high) = levels.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let true_share = ((seen - noise) / seen).max(0.0);
    if true_share.is_nan() { 0.0 } else { (high - low) * true_share.sqrt() }
}

/// The difference of two levels at which a test of all at `alpha` has its [`POWER`]: two of k
/// levels apart by d have the noncentrality `d² / 2 se²` with k - 1 degrees of freedom (power by
/// Patnaik 1949). `counts`: observations of each level.
pub fn floor(counts: &[usize], sigma: f64, alpha: f64) -> f64 {
    let counts: Vec<f64> = counts.iter().map(|n| *n as f64).filter(|n| *n > 0.0).collect();
    let freedom = counts.len() as f64 - 1.0;
    let n = counts.len() as f64 / counts.iter().map(|n| 1.0 / n).sum::<f64>();
    let critical = rising(|x| chi_square_above(x, freedom) <= alpha);
    let needed = rising(|far| {
        let stretch = (freedom + 2.0 * far) / (freedom + far);
        let own = (freedom + far).powi(2) / (freedom + 2.0 * far);
        chi_square_above(critical / stretch, own) >= POWER
    });
    (2.0 * needed / n).sqrt() * sigma
}

/// Where a statement becomes true for good, above 0.
fn rising(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while !holds(high) && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
