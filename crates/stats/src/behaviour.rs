//! How a series behaves: everything that can be wrong with treating it as repeated draws of one
//! value.

use super::change::{Change, Sensitivity, changes};
use super::dependence::neighbours_p;
use super::drift::{Inside, Trend, inside, trend};
use super::estimate::{Estimate, Unit};
use super::modes::{Modality, Modes, inside_processes, modality};
use super::order::{median, median_of_sorted, sorted};

/// A test of drift must be this unlikely by chance in a final verdict ...
pub const DRIFT_P: f64 = 0.01;
/// ... and this unlikely to end a measurement: it is asked at every look, and would add up.
pub const DRIFT_P_WHILE_MEASURING: f64 = 0.001;
/// And what it found must be larger than this share of the median, and than the half-width of the
/// interval. (A quiet host shows a significant drift of a tenth of a per cent in half of all
/// series; no one asked.)
pub const MIN_DRIFT: f64 = 0.01;
/// Dependent processes worth fewer independent ones than this give no usable interval.
pub const MIN_WORTH: f64 = 8.0;

/// What the tests say about the processes of a series in visiting order.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Why the series counts as still moving; `None`: it does not.
    pub drift: Option<Drift>,
    /// Of the process medians.
    pub modality: Modality,
    /// Modes that appear inside most processes.
    pub modes_inside: Option<Modes>,
    /// Two kinds of windows of tasks that the scheduler placed; of others no one looks for them.
    pub modes_left_free: Option<Modes>,
    /// The tests behind `drift`, whatever they said.
    pub trend: Option<Trend>,
    pub changes: Vec<Change>,
    pub inside: Option<Inside>,
    /// One-sided p that neighbouring processes resemble each other by chance.
    pub neighbours_p: Option<f64>,
}

impl Behaviour {
    /// The modes that a verdict speaks of: those of processes before those inside of them.
    pub fn modes(&self) -> Option<&Modes> {
        self.modality.modes().or(self.modes_inside.as_ref()).or(self.modes_left_free.as_ref())
    }
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
    /// Neighbouring processes resemble each other this much that all are worth this many.
    Dependent { worth: f64 },
}

/// Examines a series; `estimate` is its own, `drift_p` what a test of drift must fall below
/// ([`DRIFT_P`] or [`DRIFT_P_WHILE_MEASURING`]). The seed drives permutations.
pub fn behaviour(processes: &[Vec<f64>], estimate: &Estimate, drift_p: f64, seed: u64) -> Behaviour {
    let medians: Vec<f64> = processes.iter().filter_map(|windows| median(windows)).collect();
    let least = estimate.relative_half_width().unwrap_or(0.0).max(MIN_DRIFT);
    let trend = trend(&medians);
    let sensitivity = Sensitivity { least, split_p: drift_p, merge_p: drift_p, ..Sensitivity::default() };
    let changes = changes(&medians, sensitivity, seed);
    let inside = inside(processes);
    let neighbours_p = neighbours_p(&medians);
    let drifts = |p: f64, change: f64| p < drift_p && change.abs() > least;
    let monotone = trend.filter(|trend| drifts(trend.p, trend.relative_change));
    let dependent = estimate.unit == Unit::Processes
        && estimate.worth < MIN_WORTH.min(estimate.n as f64)
        && neighbours_p.is_some_and(|p| p < drift_p)
        && estimate.most - estimate.least > MIN_DRIFT * estimate.median.abs();
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
        modes_left_free: None,
        trend,
        changes,
        inside,
        neighbours_p,
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

/// How a series of values in time settles (Barrett et al., *Virtual Machine Warmup Blows Hot and
/// Cold*, OOPSLA 2017).
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

/// Classifies a long series (windows of a JVM, a job's seconds) by its change points.
/// `lower_is_better` decides which level is the best. Values that follow each other closely in size
/// look like steps: the classes say what happened, not why.
pub fn settling(values: &[f64], lower_is_better: bool, seed: u64) -> Settling {
    let changes = changes(values, Sensitivity { shortest: 5, ..Sensitivity::default() }, seed);
    let Some(last) = changes.last() else { return Settling::Flat };
    if ((values.len() - last.at) as f64) < SETTLED_SHARE * values.len() as f64 {
        return Settling::NoSteadyState;
    }
    let better = |change: &Change| {
        if lower_is_better { change.before < last.after } else { change.before > last.after }
    };
    if changes.iter().any(better) {
        Settling::SlowDown { from: last.at }
    } else {
        Settling::WarmUp { from: last.at }
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::estimate::estimate;
    use super::super::noise::{Noise, autoregressive};
    use super::*;

    fn behaves(processes: &[Vec<f64>]) -> Behaviour {
        behaviour(processes, &estimate(processes, 0.95).expect("values"), DRIFT_P, 1)
    }

    fn one_window_each(values: impl IntoIterator<Item = f64>) -> Vec<Vec<f64>> {
        values.into_iter().map(|value| vec![value]).collect()
    }

    fn noise(rng: &mut Rng) -> f64 {
        Noise::Lognormal { cv: 0.005 }.draw(rng)
    }

    #[test]
    fn each_kind_of_drift_is_named() {
        let rng = &mut Rng::with_seed(128);
        let trend = one_window_each((0..20).map(|i| noise(rng) * (1.0 + 0.005 * f64::from(i))));
        assert!(matches!(behaves(&trend).drift, Some(Drift::Trend(t)) if t.relative_change > 0.05));
        let step = one_window_each((0..20).map(|i| noise(rng) * if i < 7 { 1.1 } else { 1.0 }));
        let Some(Drift::Steps(steps)) = behaves(&step).drift else { panic!("{:?}", behaves(&step).drift) };
        assert_eq!(steps.iter().map(|step| step.at).collect::<Vec<usize>>(), [7]);
        let inside: Vec<Vec<f64>> =
            (0..10).map(|_| (0..8).map(|i| noise(rng) * (1.0 - 0.01 * f64::from(i))).collect()).collect();
        assert!(matches!(behaves(&inside).drift, Some(Drift::Inside(i)) if i.relative_change < -0.05));
        let flat = one_window_each((0..20).map(|_| noise(rng)));
        assert_eq!(behaves(&flat).drift, None);
    }

    /// Wandering that goes nowhere by the end: neither trend nor step need find it.
    #[test]
    fn dependence_counts_where_nothing_else_does() {
        let found = (0..20).filter(|&seed| {
            let wandering = autoregressive(20, 0.7, &mut Rng::with_seed(seed));
            let processes = one_window_each(wandering.iter().map(|z| (0.01 * z).exp()));
            matches!(behaves(&processes).drift, Some(Drift::Dependent { worth }) if worth < MIN_WORTH)
        });
        assert!(found.count() >= 2);
    }

    /// Half a per cent is no drift that anyone asked for, however significant.
    #[test]
    fn small_drift_is_ignored() {
        let tiny = one_window_each((0..40).map(|i| 1000.0 + 0.1 * f64::from(i)));
        assert_eq!(behaves(&tiny).drift, None);
        assert!(behaves(&tiny).trend.expect("40 values").p < 1e-9);
    }

    #[test]
    fn degenerate_series() {
        for processes in [one_window_each([1.0]), one_window_each([3.0; 50]), vec![vec![0.0; 9]; 9]] {
            let found = behaves(&processes);
            assert_eq!((found.drift, found.modes_inside), (None, None));
        }
    }

    #[test]
    fn settling_by_class() {
        let rng = &mut Rng::with_seed(29);
        let mut levels = |parts: &[(usize, f64)]| -> Vec<f64> {
            let part =
                |&(n, level): &(usize, f64)| -> Vec<f64> { (0..n).map(|_| level * noise(rng)).collect() };
            parts.iter().flat_map(part).collect()
        };
        let jit = levels(&[(15, 3.0), (10, 2.0), (75, 1.0)]);
        assert_eq!(settling(&jit, true, 1), Settling::WarmUp { from: 25 });
        assert_eq!(settling(&jit, false, 1), Settling::SlowDown { from: 25 });
        let throttled = levels(&[(30, 1.0), (70, 1.4)]);
        assert_eq!(settling(&throttled, true, 1), Settling::SlowDown { from: 30 });
        let late = levels(&[(60, 1.0), (40, 1.2)]);
        assert_eq!(settling(&late, true, 1), Settling::NoSteadyState);
        assert_eq!(settling(&levels(&[(60, 1.0)]), true, 1), Settling::Flat);
        assert_eq!(settling(&[], true, 1), Settling::Flat);
    }
}
