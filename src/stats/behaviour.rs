//! How a series behaves: everything that can be wrong with treating it as repeated draws of one value.

use super::change::{Change, Sensitivity, changes};
use super::drift::{Inside, Trend, inside, trend};
use super::estimate::{Estimate, Unit};
use super::modes::{Modality, Modes, inside_processes, modality};
use super::order::{median, median_of_sorted, sorted};

/// A test of drift must be this unlikely by chance.
pub const DRIFT_P: f64 = 0.01;
/// And what it found must be larger than this share of the median, and than the half-width of the interval.
pub const LEAST_DRIFT: f64 = 0.01;
/// Dependent processes worth fewer independent ones than this give no usable interval.
pub const LEAST_WORTH: f64 = 8.0;

/// What the tests say of the processes of a series in visiting order.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Why the series counts as still moving; `None`: it does not.
    pub drift: Option<Drift>,
    /// Of the process medians.
    pub modality: Modality,
    /// Modes that appear inside most processes.
    pub modes_inside: Option<Modes>,
    /// The tests behind `drift`, whatever they said.
    pub trend: Option<Trend>,
    pub changes: Vec<Change>,
    pub inside: Option<Inside>,
}

/// In which way a series moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Drift {
    /// From one steady value to another, at least once.
    Steps(Vec<Change>),
    /// Steadily, over the processes.
    Trend(Trend),
    /// From the first window to the last inside each process.
    Inside(Inside),
    /// Neighbouring processes resemble each other so much that all are worth this many.
    Dependent { worth: f64 },
}

/// Examines a series; `estimate` is its own, at the confidence that is reported. The seed drives permutations.
pub fn behaviour(processes: &[Vec<f64>], estimate: &Estimate, seed: u64) -> Behaviour {
    let medians: Vec<f64> = processes.iter().filter_map(|windows| median(windows)).collect();
    let least = estimate.relative_half_width().unwrap_or(0.0).max(LEAST_DRIFT);
    let trend = trend(&medians);
    let changes = changes(&medians, Sensitivity { least, ..Sensitivity::default() }, seed);
    let inside = inside(processes);
    let drifts = |p: f64, change: f64| p < DRIFT_P && change.abs() > least;
    let monotone = trend.filter(|trend| drifts(trend.p, trend.relative_change));
    let dependent = estimate.unit == Unit::Processes && estimate.worth < LEAST_WORTH.min(estimate.n as f64);
    let drift = match (monotone, inside) {
        (Some(trend), _) if changes.is_empty() || line_fits_better(&medians, &trend, &changes) => {
            Some(Drift::Trend(trend))
        }
        _ if !changes.is_empty() => Some(Drift::Steps(changes.clone())),
        (_, Some(inside)) if drifts(inside.p, inside.relative_change) => Some(Drift::Inside(inside)),
        _ if dependent => Some(Drift::Dependent { worth: estimate.worth }),
        _ => None,
    };
    Behaviour {
        drift,
        modality: modality(&medians),
        modes_inside: inside_processes(processes),
        trend,
        changes,
        inside,
    }
}

/// Whether a straight line leaves less than the steps do.
fn line_fits_better(values: &[f64], trend: &Trend, changes: &[Change]) -> bool {
    let line: Vec<f64> = values.iter().enumerate().map(|(i, value)| value - trend.slope * i as f64).collect();
    let mut ends = vec![0];
    ends.extend(changes.iter().map(|change| change.at));
    ends.push(values.len());
    let of_steps: f64 = ends.windows(2).map(|pair| distances_from_median(&values[pair[0]..pair[1]])).sum();
    distances_from_median(&line) < of_steps
}

fn distances_from_median(values: &[f64]) -> f64 {
    let rising = sorted(values);
    let centre = median_of_sorted(&rising).unwrap_or(0.0);
    rising.iter().map(|value| (value - centre).abs()).sum()
}

/// How a series of values in time settles (Barrett et al., *Virtual Machine Warmup Blows Hot and Cold*, OOPSLA 2017).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// One level throughout.
    Flat,
    /// Settles at its best level, from this position on.
    WarmUp { from: usize },
    /// Settles, at a level worse than an earlier one.
    SlowDown { from: usize },
    /// The last level holds for too short a time to be called settled.
    NoSteadyState,
}

/// The last level must hold for this share of the values.
pub const SETTLED_SHARE: f64 = 0.6;

/// Classifies a long series (windows of a JVM, a job's seconds) by its change points. `lower_is_better` tells which level
/// is the best. Values that follow each other closely in size look like steps: the classes say what happened, not why.
pub fn settling(values: &[f64], lower_is_better: bool, seed: u64) -> Settling {
    let changes = changes(values, Sensitivity { shortest: 5, ..Sensitivity::default() }, seed);
    let Some(last) = changes.last() else { return Settling::Flat };
    if ((values.len() - last.at) as f64) < SETTLED_SHARE * values.len() as f64 {
        return Settling::NoSteadyState;
    }
    let better = |change: &Change| {
        if lower_is_better { change.before < last.after } else { change.before > last.after }
    };
    match changes.iter().any(better) {
        true => Settling::SlowDown { from: last.at },
        false => Settling::WarmUp { from: last.at },
    }
}
