//! Two arms: how many times one is the other, how sure that is, and what to conclude.
//!
//! Arms that were measured interleaved on one machine are *paired* (round by round): drift then falls out. A
//! block of A followed by a block of B calls identical arms different in more than half of all cases when the
//! machine drifts.

use super::bootstrap::{Resampling, bca};
use super::nested::mean_and_half_width;
use super::order::{Interval, finite, mean, median, median_interval};
use super::tails::sign_test;

/// How the interval of a ratio was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Order statistics of the log ratios of pairs.
    Paired,
    /// Bias-corrected accelerated bootstrap of the ratio of medians.
    Bootstrap,
    /// Recovered from the two medians' own intervals.
    Mover,
}

/// How many times the first arm the second is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    /// `None` where there are too few values.
    pub interval: Option<Interval>,
    pub method: Method,
    /// Values in the smaller arm.
    pub n: usize,
}

/// From this many values in both arms the bootstrap is used; below, a bootstrapped median is too lumpy.
pub const ENOUGH_FOR_BOOTSTRAP: usize = 20;

/// Ratio second/first from pairs (equal positions belong together): `exp(median ln(b/a))` with the exact
/// interval of a median, without assumptions about either arm. Pairs with a value that is not finite and
/// positive are left out; `None` without a pair. The interval's p is [`paired_p`].
pub fn paired_ratio(first: &[f64], second: &[f64], confidence: f64) -> Option<Ratio> {
    let logs = log_ratios(first, second);
    let interval = median_interval(&logs, confidence);
    let interval = interval.map(|interval| Interval { low: interval.low.exp(), high: interval.high.exp() });
    Some(Ratio { ratio: median(&logs)?.exp(), interval, method: Method::Paired, n: logs.len() })
}

/// Two-sided p of the sign test that pairs lean to neither side; equal pairs are left out.
pub fn paired_p(first: &[f64], second: &[f64]) -> f64 {
    let logs: Vec<f64> = log_ratios(first, second).into_iter().filter(|log| *log != 0.0).collect();
    sign_test(logs.iter().filter(|log| **log > 0.0).count(), logs.len())
}

fn log_ratios(first: &[f64], second: &[f64]) -> Vec<f64> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let pairs = first.iter().zip(second).filter(|(a, b)| usable(**a) && usable(**b));
    pairs.map(|(a, b)| (b / a).ln()).collect()
}

/// Ratio of medians second/first of two independent arms of *processes* (or boots, or runs: the highest level
/// that was repeated). Values must be positive; `None` where an arm has none that is, or holds one that is
/// not.
pub fn unpaired_ratio(first: &[f64], second: &[f64], plan: Resampling) -> Option<Ratio> {
    let (first, second) = (finite(first), finite(second));
    let n = first.len().min(second.len());
    if first.iter().chain(&second).any(|&value| value <= 0.0) {
        return None;
    }
    let ratio = median(&second)? / median(&first)?;
    let (method, interval) = match n {
        ENOUGH_FOR_BOOTSTRAP.. => {
            let median_of = |values: &[f64], drawn: &[usize]| {
                let drawn: Vec<f64> = drawn.iter().map(|&position| values[position]).collect();
                median(&drawn).unwrap_or(f64::NAN)
            };
            let statistic =
                |drawn: &[Vec<usize>]| median_of(&second, &drawn[1]) / median_of(&first, &drawn[0]);
            (Method::Bootstrap, bca(&[first.len(), second.len()], plan, statistic))
        }
        _ => (Method::Mover, mover(&first, &second, plan.confidence)),
    };
    Some(Ratio { ratio, interval, method, n })
}

/// The same from two medians with their intervals, where no single values are known; `n` values in the smaller arm.
/// `None` where a median is not positive.
pub fn ratio_of_intervals(
    (a, of_a): (f64, Option<Interval>),
    (b, of_b): (f64, Option<Interval>),
    n: usize,
) -> Option<Ratio> {
    let ln = |interval: Interval| Interval { low: interval.low.ln(), high: interval.high.ln() };
    let interval = of_a.zip(of_b).map(|(of_a, of_b)| recovered((a.ln(), ln(of_a)), (b.ln(), ln(of_b))));
    let interval = interval.filter(|interval| interval.low.is_finite() && interval.high.is_finite());
    (a > 0.0 && b > 0.0).then_some(Ratio { ratio: b / a, interval, method: Method::Mover, n })
}

/// Interval of a ratio of medians from the medians' own intervals (method of variance estimates recovery: Zou
/// & Donner 2008), on logarithms. Covers more than it promises for few values.
fn mover(first: &[f64], second: &[f64], confidence: f64) -> Option<Interval> {
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value.ln()).collect() };
    let (first, second) = (logs(first), logs(second));
    let (a, b) = (median(&first)?, median(&second)?);
    let (of_a, of_b) = (median_interval(&first, confidence)?, median_interval(&second, confidence)?);
    Some(recovered((a, of_a), (b, of_b)))
}

/// Everything in logarithms but the result.
fn recovered((a, of_a): (f64, Interval), (b, of_b): (f64, Interval)) -> Interval {
    let low = (b - a) - (b - of_b.low).hypot(of_a.high - a);
    let high = (b - a) + (of_b.high - b).hypot(a - of_a.low);
    Interval { low: low.exp(), high: high.exp() }
}

/// Ratio of means second/first of two nested designs with Fieller's interval over their top units (process
/// means): Kalibera & Jones, *Quantifying Performance Changes with Effect Size Confidence Intervals*, arXiv
/// 2007.10899. `None` below two processes an arm or where the first mean cannot be told from zero.
pub fn ratio_of_means(first: &[Vec<f64>], second: &[Vec<f64>], confidence: f64) -> Option<(f64, Interval)> {
    let means = |arm: &[Vec<f64>]| -> Vec<f64> { arm.iter().filter_map(|windows| mean(windows)).collect() };
    let (x, half_x) = mean_and_half_width(&means(first), confidence)?;
    let (y, half_y) = mean_and_half_width(&means(second), confidence)?;
    let below = x * x - half_x * half_x;
    let root = ((x * y).powi(2) - below * (y * y - half_y * half_y)).max(0.0).sqrt();
    let interval = Interval { low: (x * y - root) / below, high: (x * y + root) / below };
    (below > 0.0).then_some((y / x, interval))
}

/// What a comparison concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole interval lies inside the margin.
    Equivalent,
    /// The whole interval lies outside.
    Different,
    /// Neither: about this many values an arm would tell; `None` where there is no interval to judge by.
    Inconclusive { needed: Option<usize> },
}

/// Smallest margin that is ever used.
pub const LEAST_MARGIN: f64 = 0.02;

/// The margin for a metric whose comparison with itself is off by `noise_floor` (a share): twice that, at
/// least 2 %.
pub fn margin(noise_floor: f64) -> f64 {
    (2.0 * noise_floor).max(LEAST_MARGIN)
}

/// Concludes from a ratio and a margin (a share > 0): the margin reaches from `1/(1 + margin)` to `1 + margin`.
pub fn conclude(ratio: &Ratio, margin: f64) -> Outcome {
    let Some(interval) = ratio.interval else { return Outcome::Inconclusive { needed: None } };
    let edge = 1.0 + margin;
    if interval.low > 1.0 / edge && interval.high < edge {
        return Outcome::Equivalent;
    }
    if interval.low >= edge || interval.high <= 1.0 / edge {
        return Outcome::Different;
    }
    let half = (interval.high.ln() - interval.low.ln()) / 2.0;
    let needed = ratio.n as f64 * (half / edge.ln()).powi(2);
    let needed = (needed.is_finite() && needed < 1e9).then(|| (needed.ceil() as usize).max(ratio.n + 1));
    Outcome::Inconclusive { needed }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::Noise;
    use super::*;

    #[test]
    fn pairs_cancel_what_they_share() {
        let mut rng = Rng::with_seed(18);
        let drift: Vec<f64> = (0..12).map(|i| 1.0 + f64::from(i) / 10.0).collect();
        let second: Vec<f64> =
            drift.iter().map(|x| 1.1 * x * Noise::Lognormal { cv: 0.001 }.draw(&mut rng)).collect();
        let found = paired_ratio(&drift, &second, 0.95).expect("12 pairs");
        let interval = found.interval.expect("12 pairs");
        assert!((found.ratio - 1.1).abs() < 0.002 && interval.half_width() < 0.002, "{found:?}");
        assert!((paired_p(&drift, &second) - 2.0 / 4096.0).abs() < 1e-12);
        assert_eq!(paired_p(&drift, &drift), 1.0);
        assert_eq!(paired_ratio(&drift[..5], &second[..5], 0.95).and_then(|found| found.interval), None);
        assert_eq!(paired_ratio(&[0.0, f64::NAN], &[1.0, 1.0], 0.95), None);
    }

    #[test]
    fn mover_by_hand() {
        // n = 6: intervals are the ranges. Logs 0..5 and 10..15: medians 2.5 and 12.5, all four distances 2.5.
        let first: Vec<f64> = (0..6).map(|i| f64::from(i).exp()).collect();
        let second: Vec<f64> = (10..16).map(|i| f64::from(i).exp()).collect();
        let interval = mover(&first, &second, 0.95).expect("six values each");
        let distance = 2.5 * std::f64::consts::SQRT_2;
        assert!((interval.low.ln() - (10.0 - distance)).abs() < 1e-9);
        assert!((interval.high.ln() - (10.0 + distance)).abs() < 1e-9);
    }

    #[test]
    fn methods_by_size() {
        let mut rng = Rng::with_seed(19);
        let mut arm = |n: usize| Noise::Lognormal { cv: 0.02 }.series(n, &mut rng);
        let plan = Resampling { resamples: 999, ..Resampling::new(0.95, 1) };
        let (small, large) = (arm(10), arm(30));
        assert_eq!(unpaired_ratio(&small, &large, plan).map(|found| found.method), Some(Method::Mover));
        let found = unpaired_ratio(&large, &arm(25), plan).expect("values");
        assert_eq!((found.method, found.n), (Method::Bootstrap, 25));
        assert!(found.interval.expect("values").contains(1.0));
        assert_eq!(unpaired_ratio(&[], &large, plan), None);
        assert_eq!(unpaired_ratio(&[-1.0; 8], &large, plan), None);
        assert_eq!(unpaired_ratio(&small[..5], &large, plan).and_then(|found| found.interval), None);
    }

    #[test]
    fn fieller_by_hand() {
        // Means 10 and 20 of two processes each; t(0.95, 1) = 12.7062, S² = 0.02 and 0.08: h = 1.27062,
        // 2.54124.
        let arm = |centre: f64, by: f64| vec![vec![centre - by], vec![centre + by]];
        let (ratio, interval) = ratio_of_means(&arm(10.0, 0.1), &arm(20.0, 0.2), 0.95).expect("two each");
        let (hx, hy) = (1.270_620_473_617_469_4_f64, 2.541_240_947_234_938_8_f64);
        let root = (200.0_f64.powi(2) - (100.0 - hx * hx) * (400.0 - hy * hy)).sqrt();
        assert!((ratio - 2.0).abs() < 1e-12);
        assert!((interval.low - (200.0 - root) / (100.0 - hx * hx)).abs() < 1e-9);
        assert!((interval.high - (200.0 + root) / (100.0 - hx * hx)).abs() < 1e-9);
        assert_eq!(ratio_of_means(&arm(0.01, 1.0), &arm(20.0, 0.2), 0.95), None);
        assert_eq!(ratio_of_means(&[], &[], 0.95), None);
    }

    #[test]
    fn conclusions() {
        let ratio = |low: f64, high: f64| Ratio {
            ratio: (low * high).sqrt(),
            interval: Some(Interval { low, high }),
            method: Method::Paired,
            n: 10,
        };
        assert_eq!(conclude(&ratio(0.99, 1.01), 0.02), Outcome::Equivalent);
        assert_eq!(conclude(&ratio(1.05, 1.10), 0.02), Outcome::Different);
        assert_eq!(conclude(&ratio(0.90, 0.97), 0.02), Outcome::Different);
        // ln half-width 0.0488 against ln 1.02 = 0.0198: ten times 6.07.
        assert_eq!(conclude(&ratio(1.0, 1.1025), 0.02), Outcome::Inconclusive { needed: Some(61) });
        let none = Ratio { interval: None, ..ratio(1.0, 1.0) };
        assert_eq!(conclude(&none, 0.02), Outcome::Inconclusive { needed: None });
        assert_eq!((margin(0.0), margin(0.05)), (0.02, 0.1));
    }
}
