//! Two arms that were measured interleaved on one machine: how many times one is the other, how
//! sure that is, and what to conclude. Two results that were measured one after the other are
//! compared by `contrast`.
//!
//! Interleaved arms are *paired* (round by round): drift then falls out. A block of A followed by a
//! block of B calls identical arms different in more than half of all cases when the host
//! drifts.

use super::nested::mean_and_half_width;
use super::order::{Interval, mean, median, median_interval};
use super::tails::sign_test;

/// How many times the first arm the second is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    /// `None` where there are too few values.
    pub interval: Option<Interval>,
    /// Pairs.
    pub n: usize,
}

/// Ratio second/first from pairs (equal positions belong together): `exp(median ln(b/a))` with the
/// exact interval of a median, without assumptions about either arm. Pairs with a value that is not
/// finite and positive are left out; `None` without a pair. The interval's p is [`paired_p`].
pub fn paired_ratio(first: &[f64], second: &[f64], confidence: f64) -> Option<Ratio> {
    let logs = log_ratios(first, second);
    let interval = median_interval(&logs, confidence);
    let interval = interval.map(|interval| Interval { low: interval.low.exp(), high: interval.high.exp() });
    Some(Ratio { ratio: median(&logs)?.exp(), interval, n: logs.len() })
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

/// Ratio of means second/first of two nested designs with Fieller's interval over their top units
/// (process means): Kalibera & Jones, *Quantifying Performance Changes with Effect Size Confidence
/// Intervals*, arXiv 2007.10899. `None` below two processes an arm or where the first mean cannot
/// be distinguished from zero.
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
    /// Neither: values per arm that would show it; `None` where there is no interval to
    /// judge by.
    Inconclusive { needed: Option<usize> },
}

/// Smallest margin that is used.
pub const MIN_MARGIN: f64 = 0.02;

/// Concludes from a ratio and a margin (a share > 0): the margin reaches from `1/(1 + margin)` to
/// `1 + margin`.
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
    fn fieller_by_hand() {
        // Means 10 and 20 of two processes each; t(0.95, 1) = 12.7062, S² = 0.02 and 0.08: h =
        // 1.27062, 2.54124.
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
            n: 10,
        };
        assert_eq!(conclude(&ratio(0.99, 1.01), 0.02), Outcome::Equivalent);
        assert_eq!(conclude(&ratio(1.05, 1.10), 0.02), Outcome::Different);
        assert_eq!(conclude(&ratio(0.90, 0.97), 0.02), Outcome::Different);
        // ln half-width 0.0488 against ln 1.02 = 0.0198: ten times 6.07.
        assert_eq!(conclude(&ratio(1.0, 1.1025), 0.02), Outcome::Inconclusive { needed: Some(61) });
        let none = Ratio { interval: None, ..ratio(1.0, 1.0) };
        assert_eq!(conclude(&none, 0.02), Outcome::Inconclusive { needed: None });
    }
}
