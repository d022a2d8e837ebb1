//! What does stopping early cost?

use fastrand::Rng;

use super::{Rate, Shape, judged, over};
use model::VerdictKind;
use stats::analysis::CONFIDENCE;
use stats::estimate::{Estimate, estimate};
use stats::noise::Noise;
use stats::order::{Interval, median, median_interval};
use stats::stop::{Decision, Futility, Target, decide};

/// What the stop rule made of a kind of series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stopped {
    /// Of the 95 % intervals that are reported in the end, those that contain the truth.
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

/// Runs the stop rule on noise, one sample a process.
pub fn stopping(noise: Noise, target: Target, trials: usize, seed: u64) -> Stopped {
    over(trials, seed, |trial, rng, stopped: &mut Stopped| {
        let mut processes: Vec<Vec<f64>> = Vec::new();
        let decision = loop {
            match decide(&processes, target, trial as u64) {
                Decision::Go { until } => {
                    while processes.len() < until {
                        processes.push(noise.series(1, rng));
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
            return;
        };
        stopped.false_alarms.count(matches!(verdict.kind, VerdictKind::Drifting | VerdictKind::Multimodal));
        if let Some(interval) = estimate.interval {
            stopped.covered.count(interval.contains(noise.median()));
        }
    })
}

/// Coverage after stopping at the first number from 10 on (looking at every one) whose 95 %
/// interval is narrow enough: the rule that is *not* used, for contrast.
pub fn stopping_greedily(noise: Noise, precision: f64, trials: usize, seed: u64) -> (Rate, f64) {
    let mut rng = Rng::with_seed(seed);
    let (mut covered, mut mean_n) = (Rate::default(), 0.0);
    for _ in 0..trials {
        let mut values = noise.series(10, &mut rng);
        loop {
            let interval = median_interval(&values, CONFIDENCE).unwrap_or(Interval { low: 0.0, high: 2.0 });
            let centre = median(&values).unwrap_or(0.0);
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

/// Outcomes of series that were checked after every pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Looked {
    /// Of all series, those whose last interval contains the truth.
    pub covered: Rate,
    /// Of all series, those whose last interval is narrow enough ...
    pub narrow: Rate,
    /// ... and those among them whose interval does not contain the truth, again of all.
    pub narrow_and_wrong: Rate,
    /// Mean number of processes at the end.
    pub mean_n: f64,
}

/// The numbers of processes at which a series is checked.
const LOOKS: std::ops::RangeInclusive<usize> = 5..=20;

/// Checks after every pass and stops if the interval's half-width is at most `precision`, or at the
/// last check.
pub fn looking_after_every_visit(shape: Shape, precision: f64, trials: usize, seed: u64) -> Looked {
    let mut rng = Rng::with_seed(seed);
    let mut found = Looked::default();
    let (shape, truth) = (Shape { processes: *LOOKS.end(), ..shape }, shape.true_median());
    for _ in 0..trials {
        let processes = shape.draw(&mut rng);
        let at = |n: usize| estimate(&processes[..n], CONFIDENCE);
        let narrow =
            |estimate: &Estimate| estimate.relative_half_width().is_some_and(|half| half <= precision);
        let stopped = LOOKS.filter_map(at).find(|estimate| narrow(estimate) || estimate.n == *LOOKS.end());
        let Some(estimate) = stopped else { continue };
        let covers = estimate.interval.is_some_and(|interval| interval.contains(truth));
        found.covered.count(covers);
        found.narrow.count(narrow(&estimate));
        found.narrow_and_wrong.count(narrow(&estimate) && !covers);
        found.mean_n += estimate.n as f64 / trials as f64;
    }
    found
}
