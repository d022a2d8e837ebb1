//! Does any cell differ from any other?

use super::fit::{Fit, Passes, Point, fit};
use crate::order::{MAD_TO_SIGMA, mad, median};
use crate::tails::{chi_square_above, permutation_p};

/// Whether the knobs matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matters {
    /// That all cells are alike, by permutation within passes.
    pub p: f64,
    /// p <= 5 %.
    pub yes: bool,
    /// Logarithm of the highest over the lowest cell, less what noise alone adds to it; from 0.
    pub spread: f64,
    /// Logarithm of the smallest ratio of two cells (all others between them) that these looks would have told in about
    /// four of five cases.
    pub floor: f64,
}

/// Permutations of the test: p is 0.0005 at least.
const PERMUTATIONS: usize = 1999;
/// Residuals count up to so many robust standard deviations, so that no single look decides.
const CLIP: f64 = 5.0;

/// Nominal power at the floor. The permutations know the effect as noise, which costs the test about 15 points of it.
const POWER: f64 = 0.95;

/// The test on cells `0..cells`. Passes were visited in random order, so that under no effect each order of a
/// pass's looks was as likely, whatever the machine did meanwhile: the test is exact, with any drift taken out that was
/// found without asking which cell a look belongs to.
pub fn matters(points: &[Point], cells: usize, fitted: &Fit, seed: u64) -> Matters {
    let p = p_of(points, cells, seed);
    let (spread, floor) = (spread(cells, fitted), floor(cells, fitted));
    Matters { p, yes: p <= 0.05, spread, floor }
}

fn p_of(points: &[Point], cells: usize, seed: u64) -> f64 {
    let blind: Vec<Point> =
        points.iter().map(|point| Point { cell: usize::from(point.cell >= cells), ..*point }).collect();
    let drift = fit(&blind, 2, Passes::Alike).map_or_else(|| vec![0.0; points.len()], |fitted| fitted.drift);
    let grid: Vec<usize> = (0..points.len()).filter(|look| points[*look].cell < cells).collect();
    let rest: Vec<f64> = grid.iter().map(|look| points[*look].log - drift[*look]).collect();
    let clip = CLIP * MAD_TO_SIGMA * mad(&rest).unwrap_or(0.0);
    let middle = median(&rest).unwrap_or(0.0);
    let mut passes: Vec<u32> = grid.iter().map(|look| points[*look].pass).collect();
    passes.sort_unstable();
    passes.dedup();
    // By pass: whose looks, and how far they lie from the pass's mean.
    let mut by_pass: Vec<(Vec<usize>, Vec<f64>)> = passes
        .iter()
        .map(|pass| {
            let own: Vec<usize> = (0..grid.len()).filter(|look| points[grid[*look]].pass == *pass).collect();
            let mut values: Vec<f64> = own
                .iter()
                .map(|look| {
                    if clip > 0.0 { (rest[*look] - middle).clamp(-clip, clip) } else { rest[*look] - middle }
                })
                .collect();
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            values.iter_mut().for_each(|value| *value -= mean);
            (own.iter().map(|look| points[grid[*look]].cell).collect(), values)
        })
        .collect();
    let mut counts = vec![0.0; cells];
    by_pass.iter().flat_map(|(whose, _)| whose).for_each(|cell| counts[*cell] += 1.0);
    let statistic = |by_pass: &[(Vec<usize>, Vec<f64>)]| -> f64 {
        let mut sums = vec![0.0; cells];
        for (whose, values) in by_pass {
            whose.iter().zip(values).for_each(|(cell, value)| sums[*cell] += value);
        }
        sums.iter().zip(&counts).filter(|(_, n)| **n > 0.0).map(|(sum, n): (&f64, &f64)| sum * sum / n).sum()
    };
    let observed = statistic(&by_pass) * (1.0 - 1e-9);
    permutation_p(PERMUTATIONS, seed, |rng| {
        by_pass.iter_mut().for_each(|(_, values)| rng.shuffle(values));
        statistic(&by_pass) >= observed
    })
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

/// The difference of two cells at which the overall test has its [`POWER`]: two of k levels apart by d have the
/// noncentrality `d² / 2 se²` with k - 1 degrees of freedom (power by Patnaik 1949).
fn floor(cells: usize, fitted: &Fit) -> f64 {
    let counts: Vec<f64> = (0..cells).map(|cell| fitted.count(cell) as f64).filter(|n| *n > 0.0).collect();
    let freedom = counts.len() as f64 - 1.0;
    let n = counts.len() as f64 / counts.iter().map(|n| 1.0 / n).sum::<f64>();
    let critical = rising(|x| chi_square_above(x, freedom) <= 0.05);
    let needed = rising(|far| {
        let stretch = (freedom + 2.0 * far) / (freedom + far);
        let own = (freedom + far).powi(2) / (freedom + 2.0 * far);
        chi_square_above(critical / stretch, own) >= POWER
    });
    (2.0 * needed / n).sqrt() * fitted.sigma
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
