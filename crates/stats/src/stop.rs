//! When to stop measuring a series: looking at fixed numbers of processes only, because looking
//! after every one and stopping at the first narrow interval stops at lucky ones (coverage falls to
//! 91.6 % of nominal 95 %).
//!
//! The rule stops on the 99 % interval and the 95 % one is reported: what optional stopping costs
//! is paid for by that.

use super::behaviour::{DRIFT_P_WHILE_MEASURING, behaviour};
use super::estimate::{estimate, least_processes};
use super::modes::{CONFIRMING_MODES, Modality};
use super::tails::normal_quantile;

/// Numbers of processes at which the rule looks; above the last, every 1.4 times.
pub const LOOKS: [usize; 7] = [10, 14, 20, 28, 40, 56, 80];

/// Confidence of the interval that must be narrow enough.
pub const STOP_CONFIDENCE: f64 = 0.99;

/// More is given up as hopeless only where this many times the most allowed would be needed: the
/// estimate of what is needed from few processes is off by a factor of two easily.
pub const HOPELESS: f64 = 2.0;
/// And only from this many processes on.
pub const MIN_FOR_HOPELESS: usize = 20;

/// What is asked of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Relative half-width of the 99 % interval at which measuring stops: 0.01 = ±1 %.
    pub precision: f64,
    /// Processes at most.
    pub most: usize,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Measure on, and ask again at this number of processes.
    Go {
        until: usize,
    },
    /// Precise enough.
    Enough,
    MoreWontHelp(Futility),
    /// The most allowed were measured.
    Exhausted,
}

/// Why more processes would not narrow the interval, or not make it mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Futility {
    /// The series has several values.
    Modes,
    /// It is still moving.
    Drift,
    /// About this many processes would be needed, far more than allowed.
    TooWide { needed: usize },
}

/// The number of processes at which the rule looks next, at or above `n`.
pub fn next_look(n: usize) -> usize {
    let listed = LOOKS.into_iter().find(|&look| look >= n);
    listed.unwrap_or_else(|| {
        let mut look = LOOKS[LOOKS.len() - 1];
        while look < n {
            look = (look as f64 * 1.4).round() as usize;
        }
        look
    })
}

/// Whether to go on after these processes (in visiting order, each its windows). Ask after every
/// process: between looks the answer is `Go`. The seed drives permutations.
pub fn decide(processes: &[Vec<f64>], target: Target, seed: u64) -> Decision {
    let n = processes.len();
    let until = next_look(n).min(target.most);
    if n < until {
        return Decision::Go { until };
    }
    let ended = |otherwise: Decision| if n >= target.most { Decision::Exhausted } else { otherwise };
    let go = Decision::Go { until: next_look(n + 1).min(target.most) };
    let Some(estimate) = estimate(processes, STOP_CONFIDENCE) else { return ended(go) };
    let behaviour = behaviour(processes, &estimate, DRIFT_P_WHILE_MEASURING, seed);
    if behaviour.drift.is_some() {
        return Decision::MoreWontHelp(Futility::Drift);
    }
    match behaviour.modality {
        Modality::Several(_) => return Decision::MoreWontHelp(Futility::Modes),
        Modality::Suspected(_) => {
            return ended(Decision::Go { until: CONFIRMING_MODES.max(n + 1).min(target.most) });
        }
        Modality::One | Modality::Unknown if behaviour.modes_inside.is_some() => {
            return Decision::MoreWontHelp(Futility::Modes);
        }
        Modality::One | Modality::Unknown => {}
    }
    if estimate.relative_half_width().is_some_and(|half| half <= target.precision) {
        return Decision::Enough;
    }
    let needed = runs_needed(estimate.cv_robust.unwrap_or(0.0), target.precision, STOP_CONFIDENCE);
    if needed as f64 > HOPELESS * target.most as f64 && n >= MIN_FOR_HOPELESS {
        return Decision::MoreWontHelp(Futility::TooWide { needed });
    }
    ended(go)
}

/// Processes needed for an interval of the median with relative half-width `precision`, where
/// process medians vary normally with coefficient of variation `cv` (both shares): `(z 1.2533 cv /
/// precision)²`, that is `(2.456 cv / precision)²` at 95 %, and no fewer than give an interval at
/// all. `usize::MAX` for no precision.
pub fn runs_needed(cv: f64, precision: f64, confidence: f64) -> usize {
    // The median of normal values varies by sqrt(pi / 2) more than their mean.
    let spread = normal_quantile(0.5 + confidence / 2.0).unwrap_or(0.0) * std::f64::consts::FRAC_PI_2.sqrt();
    let needed = (spread * cv / precision).powi(2);
    if needed.is_nan() || needed >= usize::MAX as f64 {
        return usize::MAX;
    }
    (needed.round() as usize).max(least_processes(confidence))
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::Noise;
    use super::*;

    const TARGET: Target = Target { precision: 0.01, most: 80 };

    fn one_window_each(values: &[f64]) -> Vec<Vec<f64>> {
        values.iter().map(|&value| vec![value]).collect()
    }

    fn draw(noise: Noise, n: usize, seed: u64) -> Vec<Vec<f64>> {
        one_window_each(&noise.series(n, &mut Rng::with_seed(seed)))
    }

    #[test]
    fn looks() {
        let looks: Vec<usize> = [0, 10, 11, 41, 80, 81, 113].into_iter().map(next_look).collect();
        assert_eq!(looks, [10, 10, 14, 56, 80, 112, 157]);
        assert!(next_look(usize::MAX) > 1_000_000);
    }

    #[test]
    fn planning() {
        // By (2.456 cv / r)²: the published swing of 7.94 % would need 380 runs for 1 %.
        for (cv, runs) in [(0.0023, 5), (0.01, 6), (0.03, 54), (0.0794, 380)] {
            assert_eq!(runs_needed(cv, 0.01, 0.95), runs, "{cv}");
        }
        assert_eq!(runs_needed(0.0, 0.01, 0.99), 8);
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(runs_needed(bad, 0.01, 0.95), usize::MAX);
        }
        assert_eq!(runs_needed(0.01, 0.0, 0.95), usize::MAX);
        assert_eq!(runs_needed(0.01, 0.01, 2.0), 64);
    }

    #[test]
    fn quiet_series_stop_at_the_first_look() {
        let quiet = draw(Noise::Lognormal { cv: 0.002 }, 10, 24);
        assert_eq!(decide(&quiet[..9], TARGET, 1), Decision::Go { until: 10 });
        assert_eq!(decide(&quiet, TARGET, 1), Decision::Enough);
        assert_eq!(decide(&[], TARGET, 1), Decision::Go { until: 10 });
        assert_eq!(decide(&one_window_each(&[5.0; 10]), TARGET, 1), Decision::Enough);
    }

    #[test]
    fn noisy_series_go_on_until_it_is_hopeless() {
        let noisy = draw(Noise::Lognormal { cv: 0.02 }, 80, 25);
        assert_eq!(decide(&noisy[..10], TARGET, 1), Decision::Go { until: 14 });
        assert_eq!(decide(&noisy[..12], TARGET, 1), Decision::Go { until: 14 });
        let most = Target { most: 20, ..TARGET };
        assert_eq!(decide(&noisy[..20], most, 1), Decision::Exhausted);
        let wild = draw(Noise::Lognormal { cv: 0.3 }, 20, 26);
        let decision = decide(&wild, TARGET, 1);
        assert!(matches!(decision, Decision::MoreWontHelp(Futility::TooWide { needed }) if needed > 4000));
        assert_eq!(decide(&[], Target { most: 0, ..TARGET }, 1), Decision::Exhausted);
    }

    #[test]
    fn modes_and_drift_end_it() {
        let modes = draw(Noise::TwoModes { cv: 0.005, ratio: 1.2, minority: 0.5 }, 40, 27);
        assert_eq!(decide(&modes[..20], TARGET, 1), Decision::Go { until: 56 });
        assert_eq!(decide(&modes, TARGET, 1), Decision::MoreWontHelp(Futility::Modes));
        let rising: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        assert_eq!(decide(&one_window_each(&rising), TARGET, 1), Decision::MoreWontHelp(Futility::Drift));
    }
}
