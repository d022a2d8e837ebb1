//! Steps of a curve: at which sizes a latency rises, how far, and how surely that is known.
//!
//! A walk over a block of `b` bytes, a cache of `c` bytes inside it, misses a share `1 - (c/b)^k`:
//! none up to `c`, then more and more. `k` = 1 where a share `c/b` of the block stays in the cache,
//! near 2 where lines are replaced at random, and without limit where the oldest goes (then
//! everything misses at once). So a ladder of levels is `t1 + d1 miss1(b) + d2 miss2(b) + ...`,
//! linear in the rises once the sizes and shapes are chosen. Steps are added one at a time, each
//! where it takes away most of the relative residual, all of them moved again until none moves, and
//! the number of steps is the one with the least BIC. Sizes within bounds that fit nearly as well
//! are its bounds.

use super::order::finite;

/// A rise from one level to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where the lower level ends, in the unit of the curve's x, with the bounds of what fits as
    /// well.
    pub at: f64,
    pub low: f64,
    pub high: f64,
    /// The levels below and above.
    pub before: f64,
    pub after: f64,
}

/// Hashed addresses, pages' colours, a victim cache and prefetching move a size beyond what a curve
/// can report: what lies within this factor of the bounds agrees with them.
const BLUR: f64 = 1.25;

impl Step {
    /// Whether the lower level may end there.
    pub fn agrees(&self, at: f64) -> bool {
        at >= self.low / BLUR && at <= self.high * BLUR
    }
}

/// A curve as levels with steps between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// The lowest level.
    pub first: f64,
    pub steps: Vec<Step>,
    /// Whether the curve goes on beyond its last step far enough to show the level above it.
    pub settled: bool,
    /// Largest x of the curve.
    pub end: f64,
}

impl Steps {
    /// The level above the last step, where the curve shows it.
    pub fn last(&self) -> Option<f64> {
        self.steps.last().filter(|_| self.settled).map(|step| step.after)
    }
}

/// Fewer points show no levels; more than any ladder has would take long.
const POINTS: std::ops::RangeInclusive<usize> = 6..=256;
/// More steps than any host has: three caches, one behind them, and what address translation
/// adds.
const MAX_STEPS: usize = 6;
/// How misses set in at a cache's size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// All at once.
    Sharp,
    /// A share `1 - (c/b)^k` beyond the size.
    Power(f64),
    /// On both sides of the size, most of it within this share of it: addresses do not fill a
    /// cache's sets evenly.
    Blurred(f64),
}

const SMOOTH: [Shape; 4] = [Shape::Power(1.0), Shape::Power(2.0), Shape::Power(4.0), Shape::Blurred(0.1)];
/// Places of a smooth step to each doubling.
const PLACES: f64 = 8.0;
/// The model itself is no better than this: plateaus are not flat to the last percent.
const MISFIT: f64 = 0.015;
/// Places that fit as well as the best: twice the residuals' variance that 99 % of the true ones
/// stay below.
const AS_GOOD: f64 = 6.6;
/// Steps nearer to each other are one, in two parts: no host has caches of so similar sizes
/// behind one another.
const APART: f64 = 1.9;
/// Smaller rises are slopes of one level (address translation, far slices of a cache), not levels.
const RISE: f64 = 1.35;
/// Share of misses at the curve's end from which the level above the last step is seen.
const SETTLED: f64 = 0.7;

/// The steps of a curve given as (x, y), both positive; what is not is left out. `None` with fewer
/// than six points, or very many.
pub fn steps(points: &[(f64, f64)]) -> Option<Steps> {
    let mut points: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(x, y)| finite(&[*x, *y]).len() == 2 && (1e-9..1e18).contains(x) && (1e-9..1e18).contains(y))
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points.dedup_by(|one, other| one.0 == other.0);
    if !POINTS.contains(&points.len()) {
        return None;
    }
    let fit = Fit::new(&points);
    let chosen = fit.best();
    Some(levels(&fit, &chosen))
}

/// A step that may be: place and shape, with its misses at each point over the value there.
struct Candidate {
    at: f64,
    low: f64,
    high: f64,
    shape: Shape,
    column: Vec<f64>,
}

struct Fit {
    x: Vec<f64>,
    /// `1 / y`: a constant as the weighted residuals see it.
    base: Vec<f64>,
    candidates: Vec<Candidate>,
}

fn misses(x: f64, at: f64, shape: Shape) -> f64 {
    match shape {
        Shape::Blurred(width) => 1.0 / (1.0 + (at / x).powf(2.0 / width)),
        _ if x <= at => 0.0,
        Shape::Sharp => 1.0,
        Shape::Power(exponent) => 1.0 - (at / x).powf(exponent),
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// What is left of a column beside orthonormal ones.
fn beside(column: &[f64], basis: &[Vec<f64>]) -> Vec<f64> {
    let mut left = column.to_vec();
    for direction in basis {
        let along = dot(&left, direction);
        left.iter_mut().zip(direction).for_each(|(value, part)| *value -= along * part);
    }
    left
}

impl Fit {
    fn new(points: &[(f64, f64)]) -> Fit {
        let x: Vec<f64> = points.iter().map(|point| point.0).collect();
        let base: Vec<f64> = points.iter().map(|point| 1.0 / point.1).collect();
        let candidate = |at: f64, low: f64, high: f64, shape: Shape| {
            let column = x.iter().zip(&base).map(|(x, base)| misses(*x, at, shape) * base).collect();
            Candidate { at, low, high, shape, column }
        };
        // A sharp step lies anywhere between two points.
        let mut candidates: Vec<Candidate> = x
            .windows(2)
            .map(|pair| candidate((pair[0] * pair[1]).sqrt(), pair[0], pair[1], Shape::Sharp))
            .collect();
        let half = 2f64.powf(0.5 / PLACES);
        let places = ((x[x.len() - 1] / x[0]).log2() * PLACES) as usize;
        for place in 0..places.min(400) {
            let at = x[0] * 2f64.powf(place as f64 / PLACES);
            candidates.extend(SMOOTH.map(|shape| candidate(at, at / half, at * half, shape)));
        }
        Fit { x, base, candidates }
    }

    /// The points next to a place.
    fn around(&self, at: f64) -> (f64, f64) {
        let above = self.x.partition_point(|x| *x <= at).clamp(1, self.x.len() - 1);
        (self.x[above - 1], self.x[above])
    }

    /// Orthonormal columns that span the base and these candidates.
    fn basis(&self, chosen: &[usize]) -> Vec<Vec<f64>> {
        let mut basis: Vec<Vec<f64>> = Vec::new();
        let columns = chosen.iter().map(|index| &self.candidates[*index].column);
        for column in std::iter::once(&self.base).chain(columns) {
            let left = beside(column, &basis);
            let length = dot(&left, &left).sqrt();
            if length > 1e-9 {
                basis.push(left.into_iter().map(|value| value / length).collect());
            }
        }
        basis
    }

    /// What each candidate beside the chosen ones would leave of the sum of squared relative
    /// residuals; `None` for one that would be a fall, or is nothing new.
    fn residuals(&self, chosen: &[usize]) -> Vec<Option<f64>> {
        let basis = self.basis(chosen);
        let residual = beside(&vec![1.0; self.x.len()], &basis);
        let sum = dot(&residual, &residual);
        let gain = |candidate: &Candidate| {
            let own = beside(&candidate.column, &basis);
            let (along, length) = (dot(&residual, &own), dot(&own, &own));
            let new = length > 1e-6 * dot(&candidate.column, &candidate.column) && length > 0.0;
            (new && along > 0.0).then(|| (sum - along * along / length).max(0.0))
        };
        self.candidates.iter().map(gain).collect()
    }

    fn best_beside(&self, chosen: &[usize]) -> Option<(usize, f64)> {
        let left = self.residuals(chosen).into_iter().enumerate();
        left.filter_map(|(index, left)| Some((index, left?))).min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The candidates of the model with the least BIC.
    fn best(&self) -> Vec<usize> {
        let n = self.x.len() as f64;
        let ones = vec![1.0; self.x.len()];
        let alone = beside(&ones, &self.basis(&[]));
        // Place, rise and shape of each step.
        let bic =
            |left: f64, steps: usize| n * (left / n + MISFIT * MISFIT).ln() + 3.0 * steps as f64 * n.ln();
        let (mut chosen, mut best) = (Vec::new(), (Vec::new(), bic(dot(&alone, &alone), 0)));
        while chosen.len() < MAX_STEPS && 3 * (chosen.len() + 1) < self.x.len() {
            let Some((added, mut left)) = self.best_beside(&chosen) else { break };
            chosen.push(added);
            for _ in 0..4 {
                let before = chosen.clone();
                for place in 0..chosen.len() {
                    let mut others = chosen.clone();
                    others.remove(place);
                    if let Some((moved, now)) = self.best_beside(&others)
                        && now < left * (1.0 - 1e-9)
                    {
                        (chosen[place], left) = (moved, now);
                    }
                }
                if chosen == before {
                    break;
                }
            }
            let score = bic(left, chosen.len());
            if score < best.1 {
                best = (chosen.clone(), score);
            }
        }
        best.0.sort_by(|one, other| self.candidates[*one].at.total_cmp(&self.candidates[*other].at));
        best.0
    }

    /// The first level and the rises of the chosen candidates, by least squares; and the sum of
    /// squares left.
    fn rises(&self, chosen: &[usize]) -> (f64, Vec<f64>, f64) {
        let columns: Vec<&Vec<f64>> = std::iter::once(&self.base)
            .chain(chosen.iter().map(|index| &self.candidates[*index].column))
            .collect();
        let mut rises = vec![0.0; columns.len()];
        // By Gram and Schmidt, each column last alternately: there are few.
        for (own, rise) in rises.iter_mut().enumerate() {
            let mut basis: Vec<Vec<f64>> = Vec::new();
            for column in
                columns.iter().enumerate().filter(|(index, _)| *index != own).map(|(_, column)| column)
            {
                let left = beside(column, &basis);
                let length = dot(&left, &left).sqrt();
                if length > 1e-9 {
                    basis.push(left.into_iter().map(|value| value / length).collect());
                }
            }
            let left = beside(columns[own], &basis);
            let length = dot(&left, &left);
            if length > 0.0 {
                *rise = dot(&vec![1.0; self.x.len()], &left) / length;
            }
        }
        let residual = beside(&vec![1.0; self.x.len()], &self.basis(chosen));
        (rises[0], rises[1..].to_vec(), dot(&residual, &residual))
    }
}

fn levels(fit: &Fit, chosen: &[usize]) -> Steps {
    let end = fit.x[fit.x.len() - 1];
    let (first, rises, left) = fit.rises(chosen);
    let free = (fit.x.len() as f64 - 1.0 - 3.0 * chosen.len() as f64).max(1.0);
    let most = left + AS_GOOD * (left / free).max(MISFIT * MISFIT);
    let mut level = first;
    let mut found: Vec<(Step, f64)> = Vec::new();
    for (place, (index, rise)) in chosen.iter().zip(&rises).enumerate() {
        let mut others = chosen.to_vec();
        others.remove(place);
        let own = &fit.candidates[*index];
        // What stands between two points cannot be distinguished from sharper or softer steps of
        // its neighbours.
        let (mut low, mut high) = fit.around(own.at);
        let mut missing = misses(end, own.at, own.shape);
        for (candidate, left) in fit.candidates.iter().zip(fit.residuals(&others)) {
            // Only places that belong to this very step.
            let near = others.iter().all(|other| {
                let other = fit.candidates[*other].at;
                (other < own.at) == (other < candidate.at)
            });
            if near && left.is_some_and(|left| left <= most) {
                (low, high) = (low.min(candidate.low), high.max(candidate.high));
                missing = missing.min(misses(end, candidate.at, candidate.shape));
            }
        }
        found.push((Step { at: own.at, low, high, before: level, after: level + rise }, missing));
        level += rise;
    }
    let (steps, settled) = joined(found);
    Steps { first, steps, settled, end }
}

/// Steps too near to each other as one, and without those too small to be one; whether the last is
/// settled.
fn joined(found: Vec<(Step, f64)>) -> (Vec<Step>, bool) {
    let mut steps: Vec<(Step, f64)> = Vec::new();
    for (step, missing) in found {
        match steps.last_mut() {
            Some((last, least)) if step.at < APART * last.at => {
                // In the middle of both by their share of the rise.
                let share = (step.after - step.before) / (step.after - last.before);
                last.at *= (step.at / last.at).powf(share.clamp(0.0, 1.0));
                (last.high, last.after) = (last.high.max(step.high), step.after);
                *least = least.min(missing);
            }
            _ => steps.push((step, missing)),
        }
    }
    steps.retain(|(step, _)| step.before > 0.0 && step.after >= RISE * step.before);
    let settled = steps.last().is_some_and(|(_, missing)| *missing >= SETTLED);
    (steps.into_iter().map(|(step, _)| step).collect(), settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest on a Xeon of 2023 that claims 48 KiB, 2 MiB and 105 MiB, four points an octave,
    /// measured by Assay: its share of the host's last cache is some 6 MiB.
    const GUEST: [(f64, f64); 65] = [
        (4096.0, 1.78),
        (5120.0, 1.75),
        (6144.0, 1.74),
        (7168.0, 1.73),
        (8192.0, 1.73),
        (10240.0, 1.73),
        (12288.0, 1.72),
        (14336.0, 1.73),
        (16384.0, 1.73),
        (20480.0, 1.74),
        (24576.0, 1.78),
        (28672.0, 1.74),
        (32768.0, 1.78),
        (40960.0, 1.75),
        (49152.0, 1.79),
        (57344.0, 5.52),
        (65536.0, 5.51),
        (81920.0, 5.59),
        (98304.0, 5.50),
        (114688.0, 5.55),
        (131072.0, 5.60),
        (163840.0, 5.63),
        (196608.0, 5.64),
        (229376.0, 5.63),
        (262144.0, 5.59),
        (327680.0, 5.58),
        (393216.0, 5.58),
        (458752.0, 5.53),
        (524288.0, 5.56),
        (655360.0, 5.80),
        (786432.0, 5.53),
        (917504.0, 5.55),
        (1048576.0, 5.53),
        (1310720.0, 5.89),
        (1572864.0, 5.74),
        (1835008.0, 5.86),
        (2097152.0, 7.38),
        (2621440.0, 30.78),
        (3145728.0, 40.74),
        (3670016.0, 40.58),
        (4194304.0, 40.53),
        (5242880.0, 45.63),
        (6291456.0, 126.17),
        (7340032.0, 126.43),
        (8388608.0, 127.10),
        (10485760.0, 129.03),
        (12582912.0, 130.50),
        (14680064.0, 129.43),
        (16777216.0, 126.01),
        (20971520.0, 126.79),
        (25165824.0, 126.11),
        (29360128.0, 126.59),
        (33554432.0, 127.17),
        (41943040.0, 126.70),
        (50331648.0, 128.27),
        (58720256.0, 126.82),
        (67108864.0, 127.06),
        (83886080.0, 126.74),
        (100663296.0, 129.87),
        (117440512.0, 130.77),
        (134217728.0, 130.48),
        (167772160.0, 127.87),
        (201326592.0, 128.54),
        (234881024.0, 129.53),
        (268435456.0, 128.00),
    ];

    fn every(step: usize) -> Steps {
        let fewer: Vec<(f64, f64)> = GUEST.iter().copied().step_by(step).collect();
        steps(&fewer).expect("enough points")
    }

    #[test]
    fn levels_of_a_real_guest() {
        for step in [1, 2] {
            let read = every(step);
            let sizes: Vec<f64> = read.steps.iter().map(|step| step.at / 1024.0).collect();
            assert_eq!(sizes.len(), 3, "{read:?}");
            assert!(read.steps[0].agrees(49152.0) && read.steps[1].agrees(f64::from(2 << 20)), "{read:?}");
            assert!((4096.0..8192.0).contains(&sizes[2]), "{read:?}");
        }
        // One point an octave cannot part caches that are three times apart; what ends is bounded
        // all the same.
        for step in [1, 2, 4] {
            let read = every(step);
            let last = read.steps.last().expect("a step");
            assert!(last.agrees(5.8e6) && !last.agrees(f64::from(105 << 20)), "{read:?}");
            assert!((read.first / 1.75 - 1.0).abs() < 0.03, "{read:?}");
            assert!((read.last().expect("memory") / 128.0 - 1.0).abs() < 0.05, "{read:?}");
        }
    }

    #[test]
    fn flat_short_and_damaged_curves_have_no_steps() {
        let flat: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x) + 1.0, 5.0)).collect();
        let read = steps(&flat).expect("enough points");
        assert_eq!((read.steps.len(), read.settled, read.last()), (0, false, None));
        assert_eq!(steps(&flat[..5]), None);
        assert_eq!(steps(&[(f64::NAN, 1.0); 30]), None);
        let wild = (0..40).map(|x| (2f64.powi(x), if x % 2 == 0 { 1e-300 } else { f64::MAX }));
        assert_eq!(steps(&wild.collect::<Vec<_>>()), None);
        // A fall is no step: what a curve loses it never had.
        let falling: Vec<(f64, f64)> =
            (0..20).map(|x| (2f64.powi(x), if x < 10 { 5.0 } else { 1.0 })).collect();
        assert_eq!(steps(&falling).expect("enough points").steps, []);
    }

    #[test]
    fn a_curve_that_ends_in_its_rise_is_not_settled() {
        let until = |end: f64| {
            let points: Vec<(f64, f64)> = GUEST.iter().copied().filter(|(size, _)| *size <= end).collect();
            steps(&points).expect("enough points")
        };
        let cut = until(3_000_000.0);
        assert!(!cut.settled, "{cut:?}");
        assert_eq!(cut.steps.len(), 2);
        assert!(until(16_777_216.0).settled);
    }
}
