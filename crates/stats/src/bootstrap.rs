//! The bootstrap, for what order statistics cannot bound: ratios, indices, percentiles.

use fastrand::Rng;

use super::order::{Interval, quantile_of_sorted};
use super::tails::{normal_above, normal_quantile};

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampling {
    /// 9999 for a result, fewer in simulations.
    pub resamples: usize,
    /// 0..1.
    pub confidence: f64,
    pub seed: u64,
}

impl Resampling {
    pub fn new(confidence: f64, seed: u64) -> Resampling {
        Resampling { resamples: 9999, confidence, seed }
    }
}

/// Bias-corrected and accelerated interval (Efron 1987) of a statistic over one or more independent
/// samples of the given sizes. The statistic gets, for each sample, the positions drawn from it,
/// and must be the same for every order of them. Resample the *highest* level (processes, suite
/// passes), never windows of one process. `None` where a sample is smaller than two or the
/// statistic is not finite on the samples themselves.
pub fn bca(sizes: &[usize], plan: Resampling, statistic: impl Fn(&[Vec<usize>]) -> f64) -> Option<Interval> {
    let whole: Vec<Vec<usize>> = sizes.iter().map(|&size| (0..size).collect()).collect();
    let observed = statistic(&whole);
    if sizes.is_empty() || sizes.iter().any(|&size| size < 2) || !observed.is_finite() {
        return None;
    }
    let mut rng = Rng::with_seed(plan.seed);
    let mut drawn = whole.clone();
    let mut values: Vec<f64> = (0..plan.resamples)
        .map(|_| {
            for (positions, &size) in drawn.iter_mut().zip(sizes) {
                positions.iter_mut().for_each(|position| *position = rng.usize(..size));
            }
            statistic(&drawn)
        })
        .filter(|value| value.is_finite())
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    let below = values.partition_point(|value| *value < observed);
    let equal = values.partition_point(|value| *value <= observed) - below;
    // Ties count half: bootstrapped medians repeat the sample's own values.
    let share = (below as f64 + equal as f64 / 2.0) / values.len() as f64;
    let acceleration = acceleration(&whole, &statistic);
    let end = |p: f64| {
        // A statistic that never (or always) falls below the observed one has no correction: its
        // own extremes bound it.
        let bias = normal_quantile(share.clamp(1e-6, 1.0 - 1e-6))?;
        let z = bias + normal_quantile(p)?;
        let corrected = bias + z / (1.0 - acceleration * z);
        quantile_of_sorted(&values, 1.0 - normal_above(corrected))
    };
    let tail = (1.0 - plan.confidence) / 2.0;
    Some(Interval { low: end(tail)?, high: end(1.0 - tail)? })
}

/// Skewness of the jackknife's influence values over six; 0 where it is not defined.
fn acceleration(whole: &[Vec<usize>], statistic: &impl Fn(&[Vec<usize>]) -> f64) -> f64 {
    let (mut squares, mut cubes) = (0.0, 0.0);
    for sample in 0..whole.len() {
        let without = |left_out: usize| {
            let mut rest = whole.to_vec();
            rest[sample].remove(left_out);
            statistic(&rest)
        };
        let left: Vec<f64> = (0..whole[sample].len()).map(without).collect();
        let centre = left.iter().sum::<f64>() / left.len() as f64;
        for value in left {
            squares += (centre - value).powi(2);
            cubes += (centre - value).powi(3);
        }
    }
    let acceleration = cubes / (6.0 * squares.powf(1.5));
    if acceleration.is_finite() { acceleration } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::noise::exponential;
    use super::*;

    fn mean_of(values: &[f64]) -> impl Fn(&[Vec<usize>]) -> f64 + '_ {
        |drawn| drawn[0].iter().map(|&i| values[i]).sum::<f64>() / drawn[0].len() as f64
    }

    /// Reference: scipy 1.17.1 `bootstrap(method="BCa", n_resamples=999999)` of the mean.
    #[test]
    fn mean_of_a_skewed_sample() {
        let values = [1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 9.0, 15.0, 30.0];
        let plan = Resampling { resamples: 40_000, ..Resampling::new(0.95, 1) };
        let interval = bca(&[10], plan, mean_of(&values)).expect("ten values");
        assert!((interval.low - 3.95).abs() < 0.1 && (interval.high - 16.0).abs() < 0.5, "{interval:?}");
    }

    #[test]
    fn coverage_on_exponential_means() {
        let mut rng = Rng::with_seed(17);
        let trials = 600;
        let covered = (0..trials).filter(|&seed| {
            let values: Vec<f64> = (0..40).map(|_| exponential(&mut rng)).collect();
            let plan = Resampling { resamples: 499, ..Resampling::new(0.95, seed) };
            bca(&[40], plan, mean_of(&values)).is_some_and(|interval| interval.contains(1.0))
        });
        let share = covered.count() as f64 / trials as f64;
        assert!((0.90..0.97).contains(&share), "{share}");
    }

    #[test]
    fn degenerate_samples() {
        let plan = Resampling { resamples: 99, ..Resampling::new(0.95, 1) };
        assert_eq!(bca(&[], plan, |_| 1.0), None);
        assert_eq!(bca(&[1], plan, |_| 1.0), None);
        assert_eq!(bca(&[5], plan, |_| f64::NAN), None);
        assert_eq!(bca(&[5], plan, |_| 2.0), Some(Interval { low: 2.0, high: 2.0 }));
        assert_eq!(bca(&[5], Resampling { resamples: 0, ..plan }, |_| 2.0), None);
    }
}
