//! What the second thread yields, from passes that measured one sibling and both.

use super::super::compare::paired_ratio;
use super::super::order::{Interval, mean, variance};
use super::super::tails::t_quantile;
use super::{Bounds, Yield};

/// Work per second of one pass of the study; all figures of one kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct YieldPass {
    /// One sibling busy, the others idle.
    pub one: f64,
    /// All siblings of that core together.
    pub both: f64,
    /// The core's clock in each, in any unit.
    pub clock_one: Option<f64>,
    pub clock_both: Option<f64>,
    /// All siblings of all cores together, and how many cores these are.
    pub all: Option<(f64, usize)>,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Order statistics of the passes' ratios: from six passes.
    Ranks,
    /// Student's t of the logarithms of the ratios: two to five passes, which must be taken to
    /// scatter normally.
    Student,
    /// A single pass: no interval.
    None,
}

/// A yield from passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimated {
    /// Median of the passes' ratios, with its 95 % interval; a point where there is none.
    pub value: Yield,
    pub passes: usize,
    pub method: Method,
}

/// What the passes say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yields {
    /// Work per second of all siblings over that of one, as it is: what capacity goes by.
    pub throughput: Estimated,
    /// The same for equal clocks (work per core cycle): what the pipeline shares, without turbo.
    /// Only of passes that measured both clocks.
    pub clock_free: Option<Estimated>,
    /// Work per second of a core while everything is busy, over that of one sibling alone: holds
    /// turbo and whatever cores share (memory, power) too.
    pub all_cores: Option<Estimated>,
    /// Clock with both busy over the clock with one.
    pub clock: Option<Bounds>,
}

/// Passes whose figures are not positive numbers are left out; `None` where none is left.
pub fn estimate_yield(passes: &[YieldPass]) -> Option<Yields> {
    let ratio = |of: &dyn Fn(&YieldPass) -> Option<(f64, f64)>| -> Option<Estimated> {
        let (first, second): (Vec<f64>, Vec<f64>) = passes.iter().filter_map(of).unzip();
        of_pairs(&first, &second)
    };
    let clocks = |pass: &YieldPass| pass.clock_one.zip(pass.clock_both);
    let clock_free = |pass: &YieldPass| {
        let (one, both) = clocks(pass)?;
        Some((pass.one / one, pass.both / both))
    };
    let all_cores = |pass: &YieldPass| pass.all.map(|(all, cores)| (pass.one, all / cores as f64));
    Some(Yields {
        throughput: ratio(&|pass| Some((pass.one, pass.both)))?,
        clock_free: ratio(&clock_free),
        all_cores: ratio(&all_cores),
        clock: ratio(&clocks).map(|found| Bounds {
            lo: found.value.lo,
            mid: found.value.mid,
            hi: found.value.hi,
        }),
    })
}

/// Second over first, pass by pass: the median with its 95 % interval, by ranks from six passes, by
/// Student's t below.
pub(super) fn of_pairs(first: &[f64], second: &[f64]) -> Option<Estimated> {
    let ratio = paired_ratio(first, second, 0.95)?;
    let (interval, method) = match ratio.interval {
        Some(interval) => (Some(interval), Method::Ranks),
        None => match student(first, second) {
            Some(interval) => (Some(interval), Method::Student),
            None => (None, Method::None),
        },
    };
    let Interval { low, high } = interval.unwrap_or(Interval { low: ratio.ratio, high: ratio.ratio });
    // Few passes: the median need not lie in the mean's interval.
    let value = Yield { lo: low.min(ratio.ratio), mid: ratio.ratio, hi: high.max(ratio.ratio) };
    Some(Estimated { value, passes: ratio.n, method })
}

fn student(first: &[f64], second: &[f64]) -> Option<Interval> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let pairs = first.iter().zip(second).filter(|(a, b)| usable(**a) && usable(**b));
    let logs: Vec<f64> = pairs.map(|(a, b)| (b / a).ln()).collect();
    let n = logs.len() as f64;
    let (centre, variance) = (mean(&logs)?, variance(&logs)?);
    let half = t_quantile(0.95, n - 1.0)? * (variance / n).sqrt();
    Some(Interval { low: (centre - half).exp(), high: (centre + half).exp() })
}
