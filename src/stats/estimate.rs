//! One number for a series, and how far it can be believed: the only way in which a series gets its number.
//!
//! What is counted is the *process*. Windows of one process share its pages, its address layout and its
//! neighbours; pooled as if independent they give a "95 %" interval that covers 73 % at an intraclass correlation of
//! 0.5. So each process gives its median, and the interval is the exact one of the median of those.
//!
//! Windows stand in for processes only where there are too few processes for an interval *and* the correlation is
//! shown to be small: not by its estimate, which is near 0 by luck often enough, but by its upper confidence bound.
//! Even then the interval is widened by the design effect at that bound. (With enough processes nothing is gained by
//! counting windows: the median of all windows is at best 20 % narrower than that of process medians, less than
//! what the bound on the correlation costs.)

use super::dependence::{effective_size, neighbours_p};
use super::nested::{Icc, intraclass};
use super::order::{
    Interval, coefficient_of_variation, finite, interval_at, median, median_of_sorted, median_ranks,
    robust_coefficient_of_variation, sorted, widened_median_ranks,
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
    /// Interval of the median; `None` where too few independent values stand behind it.
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
    /// Of what was counted: population standard deviation over mean, and 1.4826 MAD over median, as shares.
    pub cv: Option<f64>,
    pub cv_robust: Option<f64>,
    /// How alike windows of one process are; `None` where no process has two.
    pub icc: Option<Icc>,
    /// How many independent values what was counted is worth: below `n` where neighbouring processes
    /// resemble each other more than chance does, or by the design effect of windows.
    pub worth: f64,
}

impl Estimate {
    /// Half-width of the interval as a share of the median's size; `None` without an interval or around zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        self.interval?.relative_half_width(self.median)
    }
}

/// Windows stand in only where the upper bound of the intraclass correlation lies below this.
pub const ICC_FOR_WINDOWS: f64 = 0.1;

/// ... and where at least this many processes show it: two agree too often by luck.
pub const PROCESSES_FOR_WINDOWS: usize = 3;

/// Processes count as dependent where neighbours resemble each other with a p below this. Stricter below
/// [`FEW_PROCESSES`], where widening leaves no interval at all and chance would take that from 1 series in 20.
pub const DEPENDENCE_P: f64 = 0.05;
pub const DEPENDENCE_P_OF_FEW: f64 = 0.01;
pub const FEW_PROCESSES: usize = 20;

/// The number of a series of processes (in visiting order) of windows (in order). Confidence 0..1, as 0.95.
/// `None` where there is no finite value.
pub fn estimate(processes: &[Vec<f64>], confidence: f64) -> Option<Estimate> {
    let processes: Vec<Vec<f64>> = processes.iter().map(|p| finite(p)).filter(|p| !p.is_empty()).collect();
    let medians: Vec<f64> = processes.iter().filter_map(|windows| median(windows)).collect();
    let windows: Vec<f64> = processes.concat();
    let icc = intraclass(&processes);
    let base = |unit: Unit, counted: &[f64], ranks: Option<(usize, usize)>, worth: f64| {
        let rising = sorted(counted);
        Some(Estimate {
            median: median_of_sorted(&rising)?,
            interval: ranks.and_then(|ranks| interval_at(&rising, ranks)),
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
    let n = medians.len();
    if median_ranks(n, confidence).is_some() {
        let worth = worth(&medians);
        return base(Unit::Processes, &medians, widened_median_ranks(n, worth, confidence), worth);
    }
    if let Some(worth) = worth_of_windows(&processes, icc)
        && let Some(ranks) = widened_median_ranks(windows.len(), worth, confidence)
    {
        return base(Unit::Windows, &windows, Some(ranks), worth);
    }
    match n {
        // A single process: its windows are all that is known, and they say nothing of the next process.
        1 => base(Unit::Windows, &windows, None, 1.0),
        _ => base(Unit::Processes, &medians, None, n as f64),
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

/// How many independent values all windows together are worth, where that can be shown: by the correlation of the
/// values and of their signs around the median, whichever bound is worse. The median rests on the signs; and a
/// tail of slow windows hides from the values what the signs still show.
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
