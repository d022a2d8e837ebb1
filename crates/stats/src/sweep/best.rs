//! Which cells may be the best.

use fastrand::Rng;

use super::fit::{Fit, LogValue};
use crate::noise::normal;
use crate::order::quantile;
use model::Better;

/// Simulated sweeps from which a limit is taken.
const DRAWS: usize = 2000;

/// Comparison with the best (Hsu 1984): a cell may be the best unless another is better by more
/// than the one-sided 95 % limit of the largest of all differences from one cell, so that the true
/// best is among them in 95 % of sweeps. The limit is drawn from the residuals with the cells' own
/// numbers of observations. Cells `0..cells`, the best first; empty for [`Better::Neither`].
pub fn best(points: &[LogValue], fitted: &Fit, cells: usize, better: Better, seed: u64) -> Vec<usize> {
    let sign = match better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
        Better::Neither => return Vec::new(),
    };
    let mut known: Vec<(usize, f64)> =
        (0..cells).filter_map(|cell| Some((cell, sign * fitted.level(cell)?))).collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    let counts: Vec<usize> = known.iter().map(|(cell, _)| fitted.count(*cell)).collect();
    let limits = limits(&counts, &fitted.scaled_residuals(points), fitted.freedom, seed);
    let may_be = |place: usize| {
        let (cell, _) = known[place];
        let behind = |other: usize| {
            let contrast = fitted.contrast(&[(other, sign), (cell, -sign)]);
            contrast.is_some_and(|contrast| contrast.value > limits[place] * contrast.error)
        };
        place == 0 || !known.iter().any(|(other, _)| *other != cell && behind(*other))
    };
    (0..known.len()).filter(|place| may_be(*place)).map(|place| known[place].0).collect()
}

/// For each cell, the 95 % quantile of the largest standardised difference of the others from it
/// when all are alike.
fn limits(counts: &[usize], residuals: &[f64], freedom: f64, seed: u64) -> Vec<f64> {
    if residuals.is_empty() {
        return vec![f64::INFINITY; counts.len()];
    }
    // Cells with as many observations have the same limit: one of each kind is simulated.
    let mut kinds: Vec<usize> = counts.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    let variances: Vec<f64> = counts.iter().map(|n| 1.0 / (*n).max(1) as f64).collect();
    let examples: Vec<usize> =
        kinds.iter().filter_map(|kind| counts.iter().position(|count| count == kind)).collect();
    let mut largest = vec![Vec::with_capacity(DRAWS); examples.len()];
    for (levels, estimate) in draws(counts, residuals, freedom, seed, DRAWS) {
        for (cell, largest) in examples.iter().zip(&mut largest) {
            let others = levels.iter().zip(&variances).enumerate().filter(|(other, _)| other != cell);
            let scaled = others
                .map(|(_, (level, variance))| (level - levels[*cell]) / (variance + variances[*cell]).sqrt());
            largest.push(scaled.fold(0.0, f64::max) / estimate);
        }
    }
    let limits: Vec<f64> =
        largest.iter().map(|largest| quantile(largest, 0.95).unwrap_or(f64::INFINITY)).collect();
    let limit_of = |count: &usize| {
        kinds.iter().position(|kind| kind == count).map_or(f64::INFINITY, |kind| limits[kind])
    };
    counts.iter().map(limit_of).collect()
}

/// Simulates sweeps in which no cell differs: the levels of cells with this many observations each
/// (of standard deviation 1), and the estimate of that deviation.
pub fn draws(
    counts: &[usize],
    residuals: &[f64],
    freedom: f64,
    seed: u64,
    sweeps: usize,
) -> impl Iterator<Item = (Vec<f64>, f64)> {
    let mut rng = Rng::with_seed(seed);
    // The estimate's scatter: a chi-square by its cube root (Wilson & Hilferty 1931).
    let part = 2.0 / (9.0 * freedom);
    (0..sweeps).map(move |_| {
        let mut level = |n: &usize| {
            let observations = (0..*n).map(|_| residuals[rng.usize(..residuals.len())]);
            observations.sum::<f64>() / (*n).max(1) as f64
        };
        let levels = counts.iter().map(&mut level).collect();
        let estimate = (1.0 - part + part.sqrt() * normal(&mut rng)).max(0.05).powf(1.5);
        (levels, estimate)
    })
}
