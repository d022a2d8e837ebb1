//! Fits in one dimension that the mode rule stands on: exact splits, Gaussian mixtures, density
//! valleys.

use super::order::{median_of_sorted, quantile_of_sorted};

/// Rising values cut into neighbouring groups: group g holds `cuts[g]..cuts[g + 1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub cuts: Vec<usize>,
}

impl Split {
    pub fn groups<'a>(&self, sorted: &'a [f64]) -> Vec<&'a [f64]> {
        self.cuts.windows(2).map(|pair| &sorted[pair[0]..pair[1]]).collect()
    }
}

/// The split of rising values into `k` (2 or 3) non-empty groups with the least sum of squares
/// inside the groups: exact k-means in one dimension, by trying all cuts over prefix sums. `None`
/// with fewer than `k` values.
pub fn best_split(sorted: &[f64], k: usize) -> Option<Split> {
    let n = sorted.len();
    if n < k || !(2..=3).contains(&k) {
        return None;
    }
    let centre = median_of_sorted(sorted)?;
    let mut sums = vec![(0.0, 0.0)];
    for value in sorted {
        let (sum, squares) = sums[sums.len() - 1];
        let value = value - centre;
        sums.push((sum + value, squares + value * value));
    }
    let cost = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        squares - sum * sum / (to - from) as f64
    };
    let two = |to: usize| {
        let costs = (1..to).map(|cut| (cost(0, cut) + cost(cut, to), cut));
        costs.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    if k == 2 {
        return Some(Split { cuts: vec![0, two(n)?.1, n] });
    }
    let three = (2..n).filter_map(|second| {
        let (below, first) = two(second)?;
        Some((below + cost(second, n), first, second))
    });
    let (_, first, second) = three.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Split { cuts: vec![0, first, second, n] })
}

/// Maximum-likelihood mean and variance (divisor n).
pub fn moments(values: &[f64]) -> (f64, f64) {
    let mean = super::order::mean(values).unwrap_or(0.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / values.len().max(1) as f64)
}

/// Bayesian information criterion of one Gaussian; infinite where the values do not vary.
pub fn bic_of_one(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (_, variance) = moments(values);
    n * ((std::f64::consts::TAU * variance).ln() + 1.0) + 2.0 * n.ln()
}

/// The same of a Gaussian mixture with one component a group of the split, fitted by
/// expectation-maximisation from there. No component's deviation falls below 0.15 of the whole's,
/// or a pair of equal values would win always.
pub fn bic_of_mixture(sorted: &[f64], split: &Split) -> f64 {
    let n = sorted.len() as f64;
    let floor = 0.15_f64.powi(2) * moments(sorted).1;
    let mut parts: Vec<(f64, f64, f64)> = split
        .groups(sorted)
        .iter()
        .map(|group| {
            let (mean, variance) = moments(group);
            (group.len() as f64 / n, mean, variance.max(floor))
        })
        .collect();
    let mut likelihood = f64::NEG_INFINITY;
    for _ in 0..200 {
        let mut sums = vec![(0.0, 0.0, 0.0); parts.len()];
        let mut now = 0.0;
        for &value in sorted {
            let weights: Vec<f64> = parts
                .iter()
                .map(|(share, mean, variance)| {
                    let scale = share / (std::f64::consts::TAU * variance).sqrt();
                    scale * (-(value - mean).powi(2) / (2.0 * variance)).exp()
                })
                .collect();
            let total: f64 = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            now += total.ln();
            for (sum, weight) in sums.iter_mut().zip(weights) {
                let share = weight / total;
                sum.0 += share;
                sum.1 += share * value;
                sum.2 += share * value * value;
            }
        }
        for (part, (weight, sum, squares)) in parts.iter_mut().zip(sums) {
            if weight > 0.0 {
                let mean = sum / weight;
                *part = (weight / n, mean, (squares / weight - mean * mean).max(floor));
            }
        }
        let settled = (now - likelihood).abs() < 1e-6;
        likelihood = now;
        if settled {
            break;
        }
    }
    -2.0 * likelihood + (3 * parts.len() - 1) as f64 * n.ln()
}

/// BIC of a shifted exponential, floor and scale free, whichever side its tail is on: what a timing
/// is that can only be disturbed upwards, and what a mixture of Gaussians must beat before it
/// counts as two modes.
pub fn bic_of_exponential(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else { return f64::INFINITY };
    let (mean, _) = moments(sorted);
    let scale = (mean - low).min(high - mean);
    2.0 * n * (scale.ln() + 1.0) + 2.0 * n.ln()
}

/// The lowest density between the medians of two neighbouring groups as a share of the lower of
/// their peaks, from a Gaussian kernel of width `1.06 s n^-0.2`, s pooled inside the groups. Where
/// nothing varies inside them the groups are points with nothing between: 0, or 1 where they are
/// one point.
pub fn valley(low: &[f64], high: &[f64]) -> f64 {
    let n = (low.len() + high.len()) as f64;
    let ((mean_low, var_low), (mean_high, var_high)) = (moments(low), moments(high));
    let pooled = ((low.len() as f64 * var_low + high.len() as f64 * var_high) / n).sqrt();
    let width = 1.06 * pooled * n.powf(-0.2);
    if width <= 0.0 {
        return if mean_low < mean_high { 0.0 } else { 1.0 };
    }
    let density = |x: f64| -> f64 {
        // Not normalised: only ratios of densities are used.
        low.iter().chain(high).map(|value| (-0.5 * ((value - x) / width).powi(2)).exp()).sum()
    };
    let grid = |from: f64, to: f64| (0..=64).map(move |step| from + (to - from) * f64::from(step) / 64.0);
    let peak = |group: &[f64]| -> f64 {
        let (from, to) = (group.first().copied().unwrap_or(0.0), group.last().copied().unwrap_or(0.0));
        grid(from, to).map(density).fold(0.0, f64::max)
    };
    let middle = |group: &[f64]| quantile_of_sorted(group, 0.5).unwrap_or(0.0);
    let lowest = grid(middle(low), middle(high)).map(density).fold(f64::INFINITY, f64::min);
    lowest / peak(low).min(peak(high)).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_the_best_ones() {
        let sorted = [1.0, 2.0, 3.0, 10.0, 11.0, 30.0];
        assert_eq!(best_split(&sorted, 2), Some(Split { cuts: vec![0, 5, 6] }));
        assert_eq!(best_split(&sorted, 3), Some(Split { cuts: vec![0, 3, 5, 6] }));
        assert_eq!(best_split(&sorted[..1], 2), None);
        assert_eq!(best_split(&sorted, 4), None);
        assert_eq!(best_split(&[2.0; 4], 2).map(|split| split.cuts.len()), Some(3));
    }

    /// Large offsets must not cost the digits that the spread is made of.
    #[test]
    fn splits_survive_a_large_offset() {
        let near = [0.0, 1.0, 2.0, 9.0, 10.0];
        let far: Vec<f64> = near.iter().map(|value| value + 1e9).collect();
        assert_eq!(best_split(&near, 2), best_split(&far, 2));
    }

    #[test]
    fn one_gaussian_by_hand() {
        // Variance 1.25 of 1 2 3 4: BIC = 4 (ln(2 pi 1.25) + 1) + 2 ln 4.
        let expected = 4.0 * ((std::f64::consts::TAU * 1.25).ln() + 1.0) + 2.0 * 4.0_f64.ln();
        assert!((bic_of_one(&[1.0, 2.0, 3.0, 4.0]) - expected).abs() < 1e-12);
        // Floor 1, scale 1.5: 2 * 4 * (ln 1.5 + 1) + 2 ln 4.
        let expected = 8.0 * (1.5_f64.ln() + 1.0) + 2.0 * 4.0_f64.ln();
        assert!((bic_of_exponential(&[1.0, 2.0, 3.0, 4.0]) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_mixture_of_clear_groups_is_worth_its_parameters() {
        let sorted = [0.9, 1.0, 1.1, 1.05, 0.95, 4.9, 5.0, 5.1, 5.05, 4.95];
        let mut sorted = sorted.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let split = best_split(&sorted, 2).expect("ten values");
        assert_eq!(split.cuts, vec![0, 5, 10]);
        assert!(bic_of_one(&sorted) - bic_of_mixture(&sorted, &split) > 15.0);
        let unimodal: Vec<f64> = (0..10).map(f64::from).collect();
        let split = best_split(&unimodal, 2).expect("ten values");
        assert!(bic_of_one(&unimodal) - bic_of_mixture(&unimodal, &split) < 0.0);
    }

    #[test]
    fn valleys() {
        assert!(valley(&[1.0, 1.1, 1.2], &[5.0, 5.1, 5.2]) < 1e-6);
        assert!(valley(&[1.0, 1.1, 1.2], &[1.3, 1.4, 1.5]) > 0.5);
        assert_eq!(valley(&[1.0, 1.0], &[2.0, 2.0]), 0.0);
        assert_eq!(valley(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
    }
}
