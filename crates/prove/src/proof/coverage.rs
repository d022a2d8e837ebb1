//! Do intervals contain the truth as often as they say?

use fastrand::Rng;

use super::{Rate, Shape, over};
use stats::analysis::CONFIDENCE;
use stats::dependence::dependent_median_interval;
use stats::estimate::{Unit, estimate};
use stats::nested::intraclass;
use stats::noise::autoregressive;
use stats::order::{median, median_interval};

/// Coverage of an estimate's interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Of the intervals given, those that contain the truth.
    pub covered: Rate,
    /// Of all series, those that got an interval.
    pub given: Rate,
    /// Of all series, those that got one which does not contain the truth.
    pub wrong: Rate,
    /// Of all series, those whose samples were counted.
    pub by_windows: Rate,
}

/// Coverage of [`estimate`]. Skewed noise needs an odd number of samples: the middle of an even
/// number is their mean, and its own median is not the noise's.
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

/// The interval of few processes and the exact one of their median.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FewProcesses {
    /// Of all series, those whose interval holds the median of the distribution of process medians.
    pub covered: Rate,
    /// The same of the exact interval; of nothing below six processes, where there is none.
    pub exact: Rate,
    /// Sums of the half-widths of both, over the series that have both.
    pub half_width: f64,
    pub exact_half_width: f64,
}

/// Coverage of [`estimate`] against `truth`, which [`Shape::true_median`] gives.
pub fn few_processes(shape: Shape, truth: f64, trials: usize, seed: u64) -> FewProcesses {
    over(trials, seed, |_, rng, found: &mut FewProcesses| {
        let processes = shape.draw(rng);
        let interval = estimate(&processes, CONFIDENCE).and_then(|estimate| estimate.interval);
        found.covered.count(interval.is_some_and(|interval| interval.contains(truth)));
        let medians: Vec<f64> = processes.iter().filter_map(|windows| median(windows)).collect();
        if let (Some(interval), Some(exact)) = (interval, median_interval(&medians, CONFIDENCE)) {
            found.exact.count(exact.contains(truth));
            found.half_width += interval.half_width();
            found.exact_half_width += exact.half_width();
        }
    })
}

/// Coverage of the interval that counts all samples as independent: what the estimate does not do.
pub fn pooled_coverage(shape: Shape, trials: usize, seed: u64) -> Rate {
    over(trials, seed, |_, rng, rate: &mut Rate| {
        let interval = median_interval(&shape.draw(rng).concat(), CONFIDENCE);
        rate.count(interval.is_some_and(|interval| interval.contains(shape.noise.median())));
    })
}

/// Coverage of the median of `n` autoregressive values with coefficient `phi`: of the interval for
/// independent values, of the one widened by the effective size (of those given), and how often
/// that is given.
pub fn coverage_while_wandering(phi: f64, n: usize, trials: usize, seed: u64) -> (Rate, Rate, Rate) {
    let mut rng = Rng::with_seed(seed);
    let (mut plain, mut widened, mut given) = (Rate::default(), Rate::default(), Rate::default());
    for _ in 0..trials {
        let values = autoregressive(n, phi, &mut rng);
        plain.count(median_interval(&values, CONFIDENCE).is_some_and(|interval| interval.contains(0.0)));
        let interval = dependent_median_interval(&values, CONFIDENCE);
        given.count(interval.is_some());
        if let Some(interval) = interval {
            widened.count(interval.contains(0.0));
        }
    }
    (plain, widened, given)
}

/// How often the upper bound of the intraclass correlation is at or above the true one.
pub fn true_icc_below_bound(icc: f64, processes: usize, windows: usize, trials: usize, seed: u64) -> Rate {
    let shape = Shape::shared(0.03, icc, processes, windows);
    let above = |groups: &Vec<Vec<f64>>, _| intraclass(groups).is_some_and(|found| found.upper >= icc);
    super::rate(trials, seed, |rng| shape.draw(rng), above)
}
