//! One number for a series, and how far it can be trusted: the only way in which a series gets its
//! number.
//!
//! What is counted is the *process*. Windows of one process share its pages, its address layout and
//! its neighbours; pooled as if independent they give a "95 %" interval that covers 73 % at an
//! intraclass correlation of 0.5. So each process gives its median, and the interval is made from
//! those: the [guarded][super::guarded] one of 5 to 14, the exact one of the median of more.
//!
//! Windows stand in for processes only where there are too few processes for an interval *and* the
//! correlation is shown to be small: not by its estimate, which is near 0 by luck often enough, but
//! by its upper confidence bound. Even then the interval is widened by the design effect at that
//! bound. (With enough processes nothing is gained by counting windows: the median of all windows
//! is at best 20 % narrower than that of process medians, less than what the bound on the
//! correlation costs.)

use super::dependence::{effective_size, neighbours_p};
use super::guarded::{GUARDED, guarded};
use super::nested::{Icc, intraclass};
use super::order::{
    Interval, coefficient_of_variation, finite, interval_at, median, median_interval, median_of_sorted,
    median_ranks, robust_coefficient_of_variation, sorted, widened_median_ranks,
};

/// What an estimate's `n` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Processes,
    Windows,
}

/// A series' number.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Median of the process medians, or of all windows where `unit` says so, in the metric's unit.
    pub median: f64,
    /// Interval of the median; `None` with too few processes. The whole range where processes
    /// depend on each other this much that no narrower one is safe (`worth` then says how little
    /// they are worth).
    pub interval: Option<Interval>,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// How many were counted.
    pub n: usize,
    pub unit: Unit,
    /// Processes and windows with a finite value.
    pub processes: usize,
    pub windows: usize,
    /// Smallest and largest of what was counted.
    pub least: f64,
    pub most: f64,
    /// Of what was counted: population standard deviation over mean, and 1.4826 MAD over median, as
    /// shares.
    pub cv: Option<f64>,
    pub cv_robust: Option<f64>,
    /// How alike windows of one process are; `None` where no process has two.
    pub icc: Option<Icc>,
    /// How many independent values what was counted is worth: below `n` where neighbouring
    /// processes resemble each other more than chance does, or by the design effect of windows.
    pub worth: f64,
}

impl Estimate {
    /// Half-width of the interval as a share of the median's size; `None` without an interval or
    /// around zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        self.interval?.relative_half_width(self.median)
    }
}

/// Windows stand in only where the upper bound of the intraclass correlation lies below this.
pub const ICC_FOR_WINDOWS: f64 = 0.1;

/// ... and where at least this many processes show it: two agree too often by luck.
pub const PROCESSES_FOR_WINDOWS: usize = 3;

/// Processes count as dependent where neighbours resemble each other with a p below this. Stricter
/// below [`FEW_PROCESSES`], where widening leaves nothing but the range and chance would do that to
/// 1 series in 20.
pub const DEPENDENCE_P: f64 = 0.05;
pub const DEPENDENCE_P_OF_FEW: f64 = 0.01;
pub const FEW_PROCESSES: usize = 20;

/// The guarded interval is one of this confidence; a surer one is asked of the exact interval.
pub const GUARDED_CONFIDENCE: f64 = 0.95;

/// The number of a series of processes (in visiting order) of windows (in order). Confidence 0..1,
/// as 0.95. `None` where there is no finite value.
pub fn estimate(processes: &[Vec<f64>], confidence: f64) -> Option<Estimate> {
    let processes: Vec<Vec<f64>> = processes.iter().map(|p| finite(p)).filter(|p| !p.is_empty()).collect();
    let medians: Vec<f64> = processes.iter().filter_map(|windows| median(windows)).collect();
    let windows: Vec<f64> = processes.concat();
    let icc = intraclass(&processes);
    let base = |unit: Unit, counted: &[f64], interval: Option<Interval>, worth: f64| {
        let rising = sorted(counted);
        Some(Estimate {
            median: median_of_sorted(&rising)?,
            interval,
            confidence,
            n: rising.len(),
            unit,
            processes: medians.len(),
            windows: windows.len(),
            least: *rising.first()?,
            most: *rising.last()?,
            cv: coefficient_of_variation(counted),
            cv_robust: robust_coefficient_of_variation(counted),
            icc,
            worth,
        })
    };
    let worth = worth(&medians);
    if let Some(interval) = interval_of_processes(&medians, worth, confidence) {
        return base(Unit::Processes, &medians, Some(interval), worth);
    }
    if let Some(worth) = worth_of_windows(&processes, icc)
        && let Some(ranks) = widened_median_ranks(windows.len(), worth, confidence)
    {
        return base(Unit::Windows, &windows, interval_at(&sorted(&windows), ranks), worth);
    }
    match medians.len() {
        // A single process: its windows are all that is known, and they say nothing of the next
        // process.
        1 => base(Unit::Windows, &windows, None, 1.0),
        _ => base(Unit::Processes, &medians, None, medians.len() as f64),
    }
}

/// The interval of processes that are worth `worth` independent ones: the guarded one where it was
/// shown to cover, for few and independent processes with values above zero and up to
/// [`GUARDED_CONFIDENCE`]; else the exact one. `None` with too few for either.
fn interval_of_processes(medians: &[f64], worth: f64, confidence: f64) -> Option<Interval> {
    let n = medians.len();
    let independent = worth == n as f64;
    if independent && confidence <= GUARDED_CONFIDENCE && medians.iter().all(|median| *median > 0.0) {
        let logarithms: Vec<f64> = medians.iter().map(|median| median.ln()).collect();
        if let Some(found) = guarded(&logarithms) {
            // Where all values are one, what logarithms are rounded by would leave it out.
            let middle = median(medians)?;
            return Some(Interval { low: found.low.exp().min(middle), high: found.high.exp().max(middle) });
        }
    }
    median_ranks(n, confidence)?;
    // Where widening passes the ends, all that can be said is that the processes lay between those.
    let ranks = widened_median_ranks(n, worth, confidence).unwrap_or((1, n));
    interval_at(&sorted(medians), ranks)
}

/// The interval of the median of independent values: as [`estimate`] has it, of a value a process.
/// `None` with too few.
pub fn interval_of_median(values: &[f64], confidence: f64) -> Option<Interval> {
    interval_of_processes(values, values.len() as f64, confidence)
}

/// The 95 % interval of the median of independent values, both as logarithms: the guarded one of
/// few, else the exact one.
pub fn interval_of_logarithms(logarithms: &[f64]) -> Option<Interval> {
    guarded(logarithms).or_else(|| median_interval(logarithms, GUARDED_CONFIDENCE))
}

/// The fewest processes that give an interval.
pub fn least_processes(confidence: f64) -> usize {
    if confidence <= GUARDED_CONFIDENCE {
        *GUARDED.start()
    } else {
        (1..=64).find(|&n| median_ranks(n, confidence).is_some()).unwrap_or(64)
    }
}

/// How many independent processes these medians, in visiting order, are worth.
fn worth(medians: &[f64]) -> f64 {
    let n = medians.len();
    let bound = if n < FEW_PROCESSES { DEPENDENCE_P_OF_FEW } else { DEPENDENCE_P };
    match neighbours_p(medians) {
        Some(p) if p <= bound => effective_size(medians),
        _ => n as f64,
    }
}

/// How many independent values all windows together are worth, where that can be shown: by the
/// correlation of the values and of their signs around the median, whichever bound is worse. The
/// median rests on the signs; and a tail of slow windows hides from the values what the signs still
/// show.
fn worth_of_windows(processes: &[Vec<f64>], icc: Option<Icc>) -> Option<f64> {
    let windows = processes.concat();
    let centre = median(&windows).filter(|_| processes.len() >= PROCESSES_FOR_WINDOWS)?;
    let signs: Vec<Vec<f64>> =
        processes.iter().map(|p| p.iter().map(|&value| sign(value - centre)).collect()).collect();
    let (of_values, of_signs) = (icc?, intraclass(&signs)?);
    if of_values.upper.max(of_signs.upper) >= ICC_FOR_WINDOWS {
        return None;
    }
    let effect = of_values.design_effect_upper().max(of_signs.design_effect_upper());
    Some(windows.len() as f64 / effect)
}

fn sign(distance: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance.signum() }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::{Inside, Noise, autoregressive, nested};
    use super::*;

    #[test]
    fn processes_are_counted() {
        // Medians 1..=8, each of three windows.
        let processes: Vec<Vec<f64>> =
            [5, 2, 8, 1, 4, 7, 3, 6].map(|p| vec![f64::from(p), 0.0, f64::from(p) + 1.0]).to_vec();
        let found = estimate(&processes, 0.95).expect("values");
        assert_eq!((found.median, found.n, found.unit), (4.5, 8, Unit::Processes));
        // The mean of ln is farther down than the median, so that t reaches farther there.
        let interval = found.interval.expect("eight");
        assert!(
            (interval.low - 1.9165).abs() < 1e-4 && (interval.high - 7.3940).abs() < 1e-4,
            "{interval:?}"
        );
        assert_eq!((found.processes, found.windows), (8, 24));
        assert_eq!((found.least, found.most), (1.0, 8.0));
        // Population deviation of 1..8 is sqrt(63 / 12).
        assert!((found.cv.expect("mean") - (63.0_f64 / 12.0).sqrt() / 4.5).abs() < 1e-12);
        assert_eq!(found.relative_half_width(), Some(interval.half_width() / 4.5));
        assert!(estimate(&processes[..5], 0.95).expect("values").interval.is_some());
        assert_eq!(estimate(&processes[..4], 0.95).expect("values").interval, None);
        // A surer interval, and one of values that have no logarithm, is the exact one.
        assert_eq!(estimate(&processes[..7], 0.99).expect("values").interval, None);
        let exact = |centre: f64| {
            let around = processes.iter().map(|windows| vec![windows[0] + centre]).collect::<Vec<_>>();
            estimate(&around, 0.95).expect("values").interval
        };
        assert_eq!(exact(-4.5), Some(Interval { low: -3.5, high: 3.5 }));
    }

    #[test]
    fn too_few_processes() {
        let one = estimate(&[vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]], 0.95).expect("values");
        assert_eq!((one.median, one.n, one.unit, one.interval), (4.0, 7, Unit::Windows, None));
        assert_eq!(estimate(&[], 0.95), None);
        assert_eq!(estimate(&[vec![], vec![f64::NAN]], 0.95), None);
        let single = estimate(&[vec![3.0]], 0.95).expect("a value");
        assert_eq!((single.median, single.cv, single.icc, single.interval), (3.0, Some(0.0), None, None));
    }

    #[test]
    fn windows_stand_in_only_where_processes_agree() {
        let mut rng = Rng::with_seed(21);
        let noise = Noise::Lognormal { cv: 0.01 };
        let alike = nested(noise, Inside::Independent, 4, 200, &mut rng);
        let found = estimate(&alike, 0.95).expect("values");
        assert_eq!((found.unit, found.n), (Unit::Windows, 800));
        assert!(found.worth < 800.0 && found.interval.is_some_and(|interval| interval.contains(1.0)));
        let apart = nested(noise, Inside::Shared { icc: 0.5 }, 4, 200, &mut rng);
        let found = estimate(&apart, 0.95).expect("values");
        assert_eq!((found.unit, found.n, found.interval), (Unit::Processes, 4, None));
        assert_eq!(estimate(&alike[..2], 0.95).expect("values").interval, None);
    }

    /// Rare slow windows make the values' correlation vanish while the medians differ: the signs
    /// show it.
    #[test]
    fn a_tail_does_not_hide_that_processes_differ() {
        let mut rng = Rng::with_seed(22);
        let processes: Vec<Vec<f64>> = (0..4)
            .map(|process| {
                let level = 1.0 + 0.01 * f64::from(process);
                let window = |rng: &mut Rng| if rng.u8(..20) == 0 { 10.0 } else { level + 0.001 * rng.f64() };
                (0..300).map(|_| window(&mut rng)).collect()
            })
            .collect();
        let found = estimate(&processes, 0.95).expect("values");
        assert!(found.icc.expect("groups").upper < ICC_FOR_WINDOWS, "{:?}", found.icc);
        assert_eq!((found.unit, found.interval), (Unit::Processes, None));
    }

    #[test]
    fn dependent_processes_are_worth_less() {
        let mut rng = Rng::with_seed(23);
        let wandering: Vec<Vec<f64>> =
            autoregressive(60, 0.9, &mut rng).iter().map(|z| vec![100.0 + z]).collect();
        let found = estimate(&wandering, 0.95).expect("values");
        assert!(found.worth < 20.0, "{}", found.worth);
        let mut mixed = wandering.concat();
        rng.shuffle(&mut mixed);
        let mixed: Vec<Vec<f64>> = mixed.into_iter().map(|value| vec![value]).collect();
        let independent = estimate(&mixed, 0.95).expect("values");
        assert_eq!(independent.worth, 60.0);
        let width = |estimate: &Estimate| estimate.interval.map(|interval| interval.half_width());
        assert!(
            width(&found).is_none_or(|width_of_dependent| Some(width_of_dependent) > width(&independent))
        );
    }
}
