//! Experiments that measure what the methods are claimed to do, on noise whose truth is known.
//!
//! The tests below run them small and hold them against the bounds; `make prove` runs them large and writes the
//! tables of METHODOLOGY.md, which states the same bounds.

use std::fmt;

use fastrand::Rng;

use super::analysis::CONFIDENCE;
use super::behaviour::{Behaviour, DRIFT_P, behaviour};
use super::bootstrap::Resampling;
use super::compare::{paired_p, unpaired_ratio};
use super::estimate::{Estimate, Unit, estimate};
use super::interleave::latin_order;
use super::noise::{Inside, Noise, autoregressive, nested};
use super::order::{Interval, median_interval};
use super::stop::{Decision, Futility, Target, decide};
use super::verdict::{Judgement, judge};
use crate::model::{Verdict, VerdictKind};

/// Least coverage of a nominal 95 % interval, of all intervals given.
pub const COVERAGE_LEAST: f64 = 0.935;
/// Most intervals that are given and wrong where windows stand in for fewer than six processes, of all series.
pub const WINDOWS_WRONG_MOST: f64 = 0.02;
/// Least share of clean series that are called trusted, where the precision is met.
pub const TRUSTED_LEAST: f64 = 0.95;
/// The same with a real slow tail (one value in ten is slower), whose slow values may count as a mode.
pub const TRUSTED_LEAST_SLOW_TAIL: f64 = 0.85;
/// Most clean series that one test of drift calls moving: nominal 1 %, the rest is what a trial count can see.
pub const DRIFT_FALSE_MOST: f64 = 0.02;
/// Most unimodal series that the mode rule suspects, and calls multimodal.
pub const MODES_SUSPECTED_FALSE_MOST: f64 = 0.02;
pub const MODES_FALSE_MOST: f64 = 0.005;
/// Most series without a cause whose outliers are explained by one of eight covariates.
pub const EXPLAINED_FALSE_MOST: f64 = 0.05;
/// Least coverage of the 95 % interval that is reported after the stop rule ended the measurement.
pub const STOPPED_COVERAGE_LEAST: f64 = 0.935;
/// Most clean series that are called drifting or multimodal in the end, after all looks of the stop rule.
pub const STOPPED_FALSE_MOST: f64 = 0.05;
/// Most series given up as out of reach whose precision is in reach.
pub const HOPELESS_FALSE_MOST: f64 = 0.05;
/// Most comparisons of equal arms whose 95 % interval excludes 1, and whose sign test has p < 0.05.
pub const SELF_DIFFERENT_MOST: f64 = 0.065;

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub hits: usize,
    pub of: usize,
}

impl Rate {
    pub fn count(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.of += 1;
    }

    /// 0..1; NaN of nothing.
    pub fn share(self) -> f64 {
        self.hits as f64 / self.of as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            0 => f.write_str("–"),
            _ => write!(f, "{:.1} %", 100.0 * self.share()),
        }
    }
}

/// What a simulated series looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub noise: Noise,
    pub inside: Inside,
    pub processes: usize,
    pub windows: usize,
}

impl Shape {
    /// Independent windows.
    pub fn plain(noise: Noise, processes: usize, windows: usize) -> Shape {
        Shape { noise, inside: Inside::Independent, processes, windows }
    }

    /// Log-normal noise of which a share belongs to the process.
    pub fn shared(cv: f64, icc: f64, processes: usize, windows: usize) -> Shape {
        Shape { noise: Noise::Lognormal { cv }, inside: Inside::Shared { icc }, processes, windows }
    }

    pub fn draw(self, rng: &mut Rng) -> Vec<Vec<f64>> {
        nested(self.noise, self.inside, self.processes, self.windows, rng)
    }
}

/// Coverage of an estimate's interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Of the intervals given, those that hold the truth.
    pub covered: Rate,
    /// Of all series, those that got an interval.
    pub given: Rate,
    /// Of all series, those that got one which does not hold the truth.
    pub wrong: Rate,
    /// Of all series, those whose windows were counted.
    pub by_windows: Rate,
}

/// Coverage of [`estimate`]. Skewed noise needs an odd number of windows: the middle of an even number is their mean, and
/// its own median is not the noise's.
pub fn coverage(shape: Shape, trials: usize, seed: u64) -> Coverage {
    let mut rng = Rng::with_seed(seed);
    let truth = shape.noise.median();
    let mut coverage = Coverage::default();
    for _ in 0..trials {
        let Some(estimate) = estimate(&shape.draw(&mut rng), CONFIDENCE) else { continue };
        coverage.given.count(estimate.interval.is_some());
        coverage.by_windows.count(estimate.unit == Unit::Windows && estimate.interval.is_some());
        let covers = estimate.interval.map(|interval| interval.contains(truth));
        coverage.wrong.count(covers == Some(false));
        if let Some(covers) = covers {
            coverage.covered.count(covers);
        }
    }
    coverage
}

/// Coverage of the interval that counts all windows as independent: what the estimate does not do.
pub fn pooled_coverage(shape: Shape, trials: usize, seed: u64) -> Rate {
    let mut rng = Rng::with_seed(seed);
    let mut rate = Rate::default();
    for _ in 0..trials {
        let interval = median_interval(&shape.draw(&mut rng).concat(), CONFIDENCE);
        rate.count(interval.is_some_and(|interval| interval.contains(shape.noise.median())));
    }
    rate
}

/// Judges a simulated series as the product does, asked for no precision, so that only its behaviour counts.
pub fn judged(processes: &[Vec<f64>], precision: f64, seed: u64) -> Option<(Verdict, Estimate, Behaviour)> {
    let estimate = estimate(processes, CONFIDENCE)?;
    let behaviour = behaviour(processes, &estimate, DRIFT_P, seed);
    let judgement = Judgement {
        estimate: &estimate,
        behaviour: &behaviour,
        precision,
        unit: "",
        mode_cause: None,
        without_explained: None,
    };
    let verdict = judge(&judgement).0;
    Some((verdict, estimate, behaviour))
}

/// Precision that every interval meets.
pub const ANY_PRECISION: f64 = f64::INFINITY;

/// How verdicts fall on one kind of series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    pub trusted: Rate,
    pub imprecise: Rate,
    pub multimodal: Rate,
    pub drifting: Rate,
    /// Trusted, and the interval does not hold the truth.
    pub trusted_wrongly: Rate,
}

/// Verdicts on series made by `draw`, whose true median is `truth`.
pub fn verdicts(
    draw: impl Fn(&mut Rng) -> Vec<Vec<f64>>,
    truth: f64,
    precision: f64,
    trials: usize,
    seed: u64,
) -> Verdicts {
    let mut rng = Rng::with_seed(seed);
    let mut found = Verdicts::default();
    for trial in 0..trials {
        let Some((verdict, estimate, _)) = judged(&draw(&mut rng), precision, trial as u64) else { continue };
        let misses = estimate.interval.is_some_and(|interval| !interval.contains(truth));
        found.trusted.count(verdict.kind == VerdictKind::Trusted);
        found.imprecise.count(verdict.kind == VerdictKind::Imprecise);
        found.multimodal.count(verdict.kind == VerdictKind::Multimodal);
        found.drifting.count(verdict.kind == VerdictKind::Drifting);
        found.trusted_wrongly.count(verdict.kind == VerdictKind::Trusted && misses);
    }
    found
}

/// How often `test` says yes to series made by `draw`.
pub fn rate<T>(
    trials: usize,
    seed: u64,
    draw: impl Fn(&mut Rng) -> T,
    test: impl Fn(&T, u64) -> bool,
) -> Rate {
    let mut rng = Rng::with_seed(seed);
    let mut rate = Rate::default();
    for trial in 0..trials {
        rate.count(test(&draw(&mut rng), trial as u64));
    }
    rate
}

/// What the stop rule made of a kind of series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stopped {
    /// Of the 95 % intervals that are reported in the end, those that hold the truth.
    pub covered: Rate,
    pub enough: Rate,
    pub exhausted: Rate,
    /// Given up for modes or drift although nothing is wrong with the series.
    pub gave_up: Rate,
    /// Given up because the precision seemed out of reach.
    pub too_wide: Rate,
    /// Called drifting or multimodal in the end, however it was stopped.
    pub false_alarms: Rate,
    /// Mean number of processes at the end.
    pub mean_n: f64,
}

/// Runs the stop rule on noise, one window a process.
pub fn stopping(noise: Noise, target: Target, trials: usize, seed: u64) -> Stopped {
    let mut rng = Rng::with_seed(seed);
    let mut stopped = Stopped::default();
    for trial in 0..trials {
        let mut processes: Vec<Vec<f64>> = Vec::new();
        let decision = loop {
            match decide(&processes, target, trial as u64) {
                Decision::Go { until } => {
                    while processes.len() < until {
                        processes.push(noise.series(1, &mut rng));
                    }
                }
                decision => break decision,
            }
        };
        stopped.mean_n += processes.len() as f64 / trials as f64;
        stopped.enough.count(decision == Decision::Enough);
        stopped.exhausted.count(decision == Decision::Exhausted);
        stopped.gave_up.count(matches!(decision, Decision::MoreWontHelp(Futility::Modes | Futility::Drift)));
        stopped.too_wide.count(matches!(decision, Decision::MoreWontHelp(Futility::TooWide { .. })));
        let Some((verdict, estimate, _)) = judged(&processes, target.precision, trial as u64) else {
            continue;
        };
        stopped.false_alarms.count(matches!(verdict.kind, VerdictKind::Drifting | VerdictKind::Multimodal));
        if let Some(interval) = estimate.interval {
            stopped.covered.count(interval.contains(noise.median()));
        }
    }
    stopped
}

/// Coverage after stopping at the first number from 10 on (looking at every one) whose 95 % interval is narrow enough: the
/// rule that is *not* used, for contrast.
pub fn stopping_greedily(noise: Noise, precision: f64, trials: usize, seed: u64) -> (Rate, f64) {
    let mut rng = Rng::with_seed(seed);
    let (mut covered, mut mean_n) = (Rate::default(), 0.0);
    for _ in 0..trials {
        let mut values = noise.series(10, &mut rng);
        loop {
            let interval = median_interval(&values, CONFIDENCE).unwrap_or(Interval { low: 0.0, high: 2.0 });
            let centre = super::order::median(&values).unwrap_or(0.0);
            if interval.relative_half_width(centre).is_some_and(|half| half <= precision)
                || values.len() >= 1000
            {
                covered.count(interval.contains(noise.median()));
                mean_n += values.len() as f64 / trials as f64;
                break;
            }
            values.push(noise.draw(&mut rng));
        }
    }
    (covered, mean_n)
}

/// How often two equal arms are called different while the machine drifts (autoregressively with `phi`, 1 % noise of each
/// visit beside 3 % drift): visited as blocks and compared by the unpaired ratio, and visited ABBA and compared
/// by the sign test of pairs. `n` values an arm.
pub fn equal_arms_called_different(phi: f64, n: usize, trials: usize, seed: u64) -> (Rate, Rate) {
    let mut rng = Rng::with_seed(seed);
    let (mut blocks, mut paired) = (Rate::default(), Rate::default());
    let noise = Noise::Lognormal { cv: 0.01 };
    for trial in 0..trials {
        let drift: Vec<f64> = autoregressive(2 * n, phi, &mut rng).iter().map(|z| (0.03 * z).exp()).collect();
        let visits: Vec<f64> = drift.iter().map(|drift| drift * noise.draw(&mut rng)).collect();
        let plan = Resampling { resamples: 499, ..Resampling::new(CONFIDENCE, trial as u64) };
        let ratio = unpaired_ratio(&visits[..n], &visits[n..], plan);
        let interval = ratio.and_then(|ratio| ratio.interval);
        blocks.count(interval.is_some_and(|interval| !interval.contains(1.0)));
        let mut arms = [Vec::new(), Vec::new()];
        for (&arm, visit) in latin_order(2, n, trial as u64).iter().flatten().zip(&visits) {
            arms[arm].push(*visit);
        }
        paired.count(paired_p(&arms[0], &arms[1]) < 0.05);
    }
    (blocks, paired)
}
