//! Change points: where a series stops being one distribution and becomes another.
//!
//! E-divisive in one dimension with exponent 1 (Matteson & James 2014, arXiv 1306.4933) splits
//! while a permutation test says so; then the weakest change points are merged away, as Apache
//! Otava does (Hunter, arXiv 2301.03034).

use std::collections::VecDeque;

use fastrand::Rng;

use super::order::{finite, mean, median, variance};
use super::ranks::mann_whitney;
use super::tails::{permutation_p, t_two_sided};

/// What counts as a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// A split must be this unlikely under permutation.
    pub split_p: f64,
    /// Neighbouring segments must differ with at most this p (Mann-Whitney from 8 values each, else
    /// Welch's t).
    pub merge_p: f64,
    /// Least relative difference of their medians.
    pub least: f64,
    /// Fewest values in a segment, at least 2.
    pub shortest: usize,
}

impl Default for Sensitivity {
    /// Otava's p of 0.001 after merging and ten times that before; 1 % is what the drift rule asks
    /// too.
    fn default() -> Sensitivity {
        Sensitivity { split_p: 0.01, merge_p: 0.001, least: 0.01, shortest: 3 }
    }
}

/// A step between two steady stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Position of the first value after the step.
    pub at: usize,
    /// Medians of the segments before and after.
    pub before: f64,
    pub after: f64,
    /// Of the difference between those segments.
    pub p: f64,
}

impl Change {
    /// `after / before - 1`; infinite where the value before is zero.
    pub fn relative(&self) -> f64 {
        if self.after == self.before { 0.0 } else { (self.after - self.before) / self.before.abs() }
    }
}

/// Change points in rising order; the seed drives the permutations. Values that are not finite must
/// not occur (positions would shift): then, as for series without a change, the list is empty.
pub fn changes(values: &[f64], sensitivity: Sensitivity, seed: u64) -> Vec<Change> {
    if finite(values).len() != values.len() {
        return Vec::new();
    }
    let mut cuts = splits(values, sensitivity, seed);
    cuts.sort_unstable();
    merge(values, cuts, sensitivity)
}

/// How often all of a series may be permuted: each split of halves takes it once a level, and a
/// series of which every split takes a few values off one end would be permuted hundreds of times.
const MAX_PASSES: usize = 32;

/// Where a series splits, the widest segments first.
fn splits(values: &[f64], sensitivity: Sensitivity, seed: u64) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut left = MAX_PASSES * values.len();
    let mut segments = VecDeque::new();
    segments.push_back(0..values.len());
    while let Some(segment) = segments.pop_front()
        && segment.len() <= left
    {
        left -= segment.len();
        if let Some(at) = significant_split(&values[segment.clone()], sensitivity, seed) {
            let cut = segment.start + at;
            cuts.push(cut);
            segments.extend([segment.start..cut, cut..segment.end]);
        }
    }
    cuts
}

/// The best split of a segment, where permuting the segment rarely gives as good a one.
fn significant_split(values: &[f64], sensitivity: Sensitivity, seed: u64) -> Option<usize> {
    // Distances between values that are all the same are what their sums are rounded by.
    let first = values.first()?;
    if values.iter().all(|value| value == first) {
        return None;
    }
    let shortest = sensitivity.shortest.max(2);
    let mut sequence = ranked(values);
    let (at, observed) = best_split(&sequence, shortest)?;
    let p = permutation_p(999, seed, |rng: &mut Rng| {
        rng.shuffle(&mut sequence);
        best_split(&sequence, shortest).is_some_and(|(_, q)| q >= observed * (1.0 - 1e-9))
    });
    (p <= sensitivity.split_p).then_some(at)
}

/// Values with their ranks from 1 (equal values share one), so that permutations need no sorting.
fn ranked(values: &[f64]) -> Vec<(f64, usize)> {
    let mut levels = values.to_vec();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    values.iter().map(|&value| (value, levels.partition_point(|&level| level <= value).max(1))).collect()
}

/// Where the scaled energy distance Q between the two sides is largest, and that Q; `None` where
/// there is no room. `Q = 2/(m+n) sum|x-y| - 2m/((m+n)(n-1)) sum|x-x'| - 2n/((m+n)(m-1))
/// sum|y-y'|`.
fn best_split(sequence: &[(f64, usize)], shortest: usize) -> Option<(usize, f64)> {
    let all = sequence.len();
    if all < 2 * shortest {
        return None;
    }
    let left = running_distances(sequence.iter());
    let mut right = running_distances(sequence.iter().rev());
    right.reverse();
    let total = left[all - 1];
    let q_at = |at: usize| {
        let (n, m) = (at as f64, (all - at) as f64);
        let (inside_left, inside_right) = (left[at - 1], right[at]);
        let across = total - inside_left - inside_right;
        2.0 / (n + m) * (across - m / (n - 1.0) * inside_left - n / (m - 1.0) * inside_right)
    };
    let candidates = (shortest..=all - shortest).map(|at| (at, q_at(at)));
    candidates.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Sum of the distances between all pairs of the first 1, 2, ... values: with a Fenwick tree over
/// ranks, so that permutations of a long series stay affordable.
fn running_distances<'a>(sequence: impl ExactSizeIterator<Item = &'a (f64, usize)>) -> Vec<f64> {
    // No rank exceeds the number of values.
    let mut tree = vec![(0.0, 0.0); sequence.len() + 1];
    let (mut count, mut sum, mut total) = (0.0, 0.0, 0.0);
    sequence
        .map(|&(value, rank)| {
            let (mut below, mut below_sum) = (0.0, 0.0);
            let mut node = rank;
            while node > 0 {
                below += tree[node].0;
                below_sum += tree[node].1;
                node &= node - 1;
            }
            total += value * below - below_sum + (sum - below_sum) - value * (count - below);
            count += 1.0;
            sum += value;
            node = rank;
            while node < tree.len() {
                tree[node].0 += 1.0;
                tree[node].1 += value;
                node += node & node.wrapping_neg();
            }
            total
        })
        .collect()
}

/// Drops the weakest change point until every remaining one stands.
fn merge(values: &[f64], mut cuts: Vec<usize>, sensitivity: Sensitivity) -> Vec<Change> {
    loop {
        let mut ends = vec![0];
        ends.extend(&cuts);
        ends.push(values.len());
        let found: Vec<Change> =
            ends.windows(3).filter_map(|e| compare(&values[e[0]..e[1]], &values[e[1]..e[2]], e[1])).collect();
        let fails =
            |change: &Change| change.p > sensitivity.merge_p || change.relative().abs() < sensitivity.least;
        let weakest = found.iter().filter(|change| fails(change)).max_by(|a, b| a.p.total_cmp(&b.p));
        match weakest {
            Some(weakest) => cuts.retain(|&cut| cut != weakest.at),
            None => return found,
        }
    }
}

fn compare(before: &[f64], after: &[f64], at: usize) -> Option<Change> {
    let p = match before.len().min(after.len()) {
        8.. => mann_whitney(before, after)?.p,
        _ => welch_p(before, after)?,
    };
    Some(Change { at, before: median(before)?, after: median(after)?, p })
}

/// Two-sided p of Welch's t test (1947); `None` with fewer than two values a side.
pub fn welch_p(first: &[f64], second: &[f64]) -> Option<f64> {
    let part = |values: &[f64]| Some(variance(values)? / finite(values).len() as f64);
    let (a, b) = (part(first)?, part(second)?);
    let distance = mean(first)? - mean(second)?;
    if a + b == 0.0 {
        return Some(if distance == 0.0 { 1.0 } else { 0.0 });
    }
    let freedom = |values: &[f64]| (finite(values).len() - 1) as f64;
    let df = (a + b).powi(2) / (a * a / freedom(first) + b * b / freedom(second));
    Some(t_two_sided(distance / (a + b).sqrt(), df))
}

#[cfg(test)]
mod tests {
    use super::super::noise::normal;
    use super::*;

    fn steps(rng: &mut Rng, parts: &[(usize, f64)]) -> Vec<f64> {
        let part = |&(n, level): &(usize, f64)| -> Vec<f64> { (0..n).map(|_| level + normal(rng)).collect() };
        parts.iter().flat_map(part).collect()
    }

    /// The quadratic formula as published, pair by pair.
    fn slow_q(x: &[f64], y: &[f64]) -> f64 {
        let (n, m) = (x.len() as f64, y.len() as f64);
        let sum = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().flat_map(|a| b.iter().map(move |b| (a - b).abs())).sum()
        };
        2.0 / (m + n) * sum(x, y)
            - 2.0 * m / ((m + n) * (n - 1.0)) * sum(x, x) / 2.0
            - 2.0 * n / ((m + n) * (m - 1.0)) * sum(y, y) / 2.0
    }

    #[test]
    fn fast_sums_equal_the_published_formula() {
        let mut rng = Rng::with_seed(8);
        for _ in 0..20 {
            // Whole numbers make ties.
            let values: Vec<f64> = (0..17).map(|_| f64::from(rng.i32(-5..6))).collect();
            let (at, q) = best_split(&ranked(&values), 3).expect("room");
            assert!((q - slow_q(&values[..at], &values[at..])).abs() < 1e-9);
            for other in 3..=14 {
                assert!(slow_q(&values[..other], &values[other..]) <= q + 1e-9);
            }
        }
        assert_eq!(best_split(&ranked(&[1.0; 5]), 3), None);
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let mut rng = Rng::with_seed(9);
        let values = steps(&mut rng, &[(15, 100.0), (20, 106.0), (25, 98.0)]);
        let found: Vec<usize> = changes(&values, Sensitivity::default(), 1).iter().map(|c| c.at).collect();
        assert!(found.len() == 2 && found[0].abs_diff(15) <= 1 && found[1].abs_diff(35) <= 1, "{found:?}");
        let values = steps(&mut rng, &[(4, 110.0), (10, 100.0)]);
        let found = changes(&values, Sensitivity::default(), 1);
        assert!(found.len() == 1 && found[0].at == 4, "{found:?}");
        assert!((found[0].relative() + 0.09).abs() < 0.02);
    }

    #[test]
    fn small_and_absent_steps_are_not() {
        let mut rng = Rng::with_seed(10);
        let small: Vec<f64> = steps(&mut rng, &[(30, 1000.0), (30, 1005.0)]);
        assert_eq!(changes(&small, Sensitivity::default(), 1), vec![]);
        assert_eq!(changes(&[7.0; 40], Sensitivity::default(), 1), vec![]);
        assert_eq!(changes(&[], Sensitivity::default(), 1), vec![]);
        assert_eq!(changes(&[f64::NAN, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0], Sensitivity::default(), 1), vec![]);
    }

    /// Sums of one value 500 times are rounded, and permuting them changes nothing.
    #[test]
    fn one_value_is_never_split() {
        assert_eq!(splits(&[16.39; 500], Sensitivity::default(), 0), Vec::<usize>::new());
    }

    /// Each split of powers takes a few values off the end: what is permuted stays bounded.
    #[test]
    fn a_series_is_permuted_a_bounded_number_of_times() {
        let values: Vec<f64> = (0..600).map(|power| 1.3_f64.powi(power)).collect();
        let cuts = splits(&values, Sensitivity::default(), 0);
        assert!((1..2 * MAX_PASSES).contains(&cuts.len()), "{cuts:?}");
    }

    /// Reference: scipy 1.17.1 `ttest_ind(equal_var=False)`.
    #[test]
    fn welch_reference() {
        let p = welch_p(&[1.0, 2.0, 4.0, 7.0], &[6.0, 8.0, 8.5, 9.0, 11.0]).expect("values");
        assert!((p - 0.02253743609744929).abs() < 1e-9, "{p}");
        assert_eq!(welch_p(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
        assert_eq!(welch_p(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
        assert_eq!(welch_p(&[1.0], &[2.0, 2.0]), None);
    }
}
