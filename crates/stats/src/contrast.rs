//! One metric in two results: by how much it differs, whether that is a difference, and within what
//! it is the same.
//!
//! The processes of a run show how far they lie apart, not how far whole runs do: what a host did
//! in that minute is shared by all of them. So each side has the guarded interval of its processes,
//! and the levels of whole runs come in by a spread of their own: from history where there is some,
//! else from what was measured of the metric's family. All in logarithms.

use super::analysis::CONFIDENCE;
use super::estimate::interval_of_logarithms;
use super::guarded::guarded_for_sameness;
use super::order::{Interval, mean, median, variance};
use super::tails::{normal_quantile, t_quantile, t_two_sided};

/// How many standard errors what the levels add reaches to either side: t with a prior worth some
/// 60 runs, for the interval and for sameness.
const LEVEL_REACH: f64 = 2.0;
const LEVEL_REACH_OF_SAMENESS: f64 = 1.7;

/// Runs that the prior of a family is worth.
const PRIOR_RUNS: f64 = 10.0;

/// Spread between equal runs of core-bound figures at a clock. This and what follows was measured
/// over 17 quick runs of one boot in
/// 70 minutes on cores that no one shared: nine of ten of 91 such series had at most 1.0 %, half of
/// them none that shows.
const CORE_LEVEL: f64 = 0.006;
/// Of others, as a share of how far processes lie apart: eight of ten of 75 series had at most 0.53
/// of it ...
const LEVEL_OF_PROCESSES: f64 = 0.5;
/// ... and the least that is assumed: 0.5 % in the middle, 1.4 % in eight of ten of memory's.
const OTHER_LEVEL: f64 = 0.01;
const MEMORY_LEVEL: f64 = 0.02;

/// Fewest runs whose medians show how far runs lie apart.
pub const MIN_HISTORY: usize = 3;

/// Variance that the median of normal values has over that of their mean.
const OF_A_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// One result's figure: ln of its median with two intervals, and how far its processes lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    pub median: f64,
    interval: Interval,
    /// For sameness: made with t at 92 %.
    narrower: Interval,
    variance: f64,
    processes: f64,
    runs: f64,
}

impl Side {
    /// Of a value a process, of this many runs; `None` with fewer than five, or where one has no
    /// logarithm.
    pub fn of(values: &[f64], runs: usize) -> Option<Side> {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        if logarithms.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let interval = interval_of_logarithms(&logarithms)?;
        Some(Side {
            median: median(&logarithms)?,
            interval,
            narrower: guarded_for_sameness(&logarithms).unwrap_or(interval),
            variance: variance(&logarithms)?,
            processes: logarithms.len() as f64,
            runs: runs.max(1) as f64,
        })
    }

    /// Of a median with its interval and how many processes it counts, where nothing else was kept.
    pub fn told(middle: f64, interval: Interval, processes: usize, runs: usize) -> Option<Side> {
        let interval = Interval { low: interval.low.ln(), high: interval.high.ln() };
        let processes = processes as f64;
        let error = interval.half_width() / normal_quantile(0.5 + CONFIDENCE / 2.0)?;
        let variance = error.powi(2) * processes / OF_A_MEDIAN;
        let side = Side {
            median: middle.ln(),
            interval,
            narrower: interval,
            variance,
            processes,
            runs: runs.max(1) as f64,
        };
        (side.median.is_finite() && variance.is_finite() && processes >= 2.0).then_some(side)
    }

    /// Standard error of its mean.
    pub fn error(&self) -> f64 {
        (self.variance / self.processes).sqrt()
    }

    /// The same at another scale, by ln of the factor.
    pub fn moved(self, by: f64) -> Side {
        let at = |interval: Interval| Interval { low: interval.low + by, high: interval.high + by };
        Side { median: self.median + by, interval: at(self.interval), narrower: at(self.narrower), ..self }
    }
}

/// Which equal runs a metric is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Core-bound, and at one clock on both sides.
    AtOneClock,
    Memory,
    Other,
}

/// A run that was made before: its processes' values.
pub type Earlier = Vec<f64>;

/// How far equal runs of a metric lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Standard deviation of ln.
    pub spread: f64,
    freedom: f64,
}

/// The spread between runs of a metric: by its history where that has [`MIN_HISTORY`] runs of at
/// least two processes, together with what is known of its family; `sides` are those that are
/// compared.
pub fn level(family: Family, sides: [&Side; 2], history: &[Earlier]) -> Level {
    let own = ((sides[0].variance + sides[1].variance) / 2.0).sqrt();
    let prior = match family {
        Family::AtOneClock => CORE_LEVEL,
        Family::Memory => (LEVEL_OF_PROCESSES * own).max(MEMORY_LEVEL),
        Family::Other => (LEVEL_OF_PROCESSES * own).max(OTHER_LEVEL),
    };
    let run = |values: &Earlier| {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        Some((median(&logarithms)?, variance(&logarithms)? / logarithms.len() as f64))
    };
    let known: Vec<(f64, f64)> = history.iter().filter_map(run).collect();
    if known.len() < MIN_HISTORY {
        return Level { spread: prior, freedom: PRIOR_RUNS };
    }
    let medians: Vec<f64> = known.iter().map(|(median, _)| *median).collect();
    let inside: Vec<f64> = known.iter().map(|(_, inside)| *inside).collect();
    let between = (variance(&medians).unwrap_or(0.0) - mean(&inside).unwrap_or(0.0)).max(0.0);
    let more = (known.len() - 1) as f64;
    let freedom = PRIOR_RUNS + more;
    Level { spread: ((PRIOR_RUNS * prior.powi(2) + more * between) / freedom).sqrt(), freedom }
}

/// What is known of the clocks of two results, in logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clocks {
    /// By how much the difference may be off to either side, for the shift to one clock.
    pub slack: f64,
    /// How far the difference at one clock may lie below and above the one that was measured.
    pub below: f64,
    pub above: f64,
}

/// By how much a figure differs between two results: ln of second over first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    pub difference: f64,
    pub interval: Interval,
    /// The interval within which sameness is asked.
    pub sameness: Interval,
    /// Two-sided p of no difference.
    pub p: f64,
    /// Of the interval's half-width what the levels of whole runs add, which metrics share.
    pub of_levels: f64,
}

/// Second against first: the square-and-add interval of Zou and Donner (*Construction of confidence
/// limits about effect measures*, Statistics in Medicine 27, 2008) with the levels of runs as one
/// more term.
pub fn contrast(first: &Side, second: &Side, level: Level, clocks: Clocks) -> Contrast {
    let difference = second.median - first.median;
    let apart = level.spread * (1.0 / first.runs + 1.0 / second.runs).sqrt();
    let reach = |first: (f64, Interval), second: (f64, Interval), of_levels: f64| {
        let low = (second.0 - second.1.low).hypot(first.1.high - first.0).hypot(of_levels);
        let high = (second.1.high - second.0).hypot(first.0 - first.1.low).hypot(of_levels);
        (low, high)
    };
    let of = |side: &Side| (side.median, side.interval);
    let narrow = |side: &Side| (side.median, side.narrower);
    let of_levels = LEVEL_REACH * apart;
    let (low, high) = reach(of(first), of(second), of_levels);
    let (least, most) = reach(narrow(first), narrow(second), LEVEL_REACH_OF_SAMENESS * apart);
    let (below, above) = (clocks.slack + clocks.below, clocks.slack + clocks.above);
    let parts = [
        (first.variance / first.processes, first.processes - 1.0),
        (second.variance / second.processes, second.processes - 1.0),
        (apart.powi(2), level.freedom),
    ];
    let total: f64 = parts.iter().map(|(variance, _)| variance).sum();
    // Welch and Satterthwaite's degrees of freedom.
    let freedom = total.powi(2) / parts.iter().map(|(part, freedom)| part.powi(2) / freedom).sum::<f64>();
    let (side, root) = if difference > 0.0 { (below, low) } else { (above, high) };
    let far = (difference.abs() - side).max(0.0);
    let p = match t_quantile(CONFIDENCE, freedom) {
        _ if far == 0.0 => 1.0,
        Some(quantile) if root > 0.0 => t_two_sided(far / root * quantile, freedom),
        _ => 0.0,
    };
    let around =
        |low: f64, high: f64| Interval { low: difference - low - below, high: difference + high + above };
    Contrast { difference, interval: around(low, high), sameness: around(least, most), p, of_levels }
}

impl Contrast {
    /// The smallest of these margins (shares, rising) within which the two are the same.
    pub fn same_within(&self, margins: &[f64]) -> Option<f64> {
        let inside = |margin: &&f64| {
            let edge = margin.ln_1p();
            -edge < self.sameness.low && self.sameness.high < edge
        };
        margins.iter().find(inside).copied()
    }

    /// The share by which the two are apart at most.
    pub fn at_most(&self) -> f64 {
        self.interval.high.max(-self.interval.low).exp_m1()
    }

    /// The share of difference that nine of ten such pairs would show.
    pub fn would_show(&self) -> f64 {
        would_show(self.interval.half_width())
    }
}

/// The same of a 95 % interval with this half-width in logarithms.
pub fn would_show(half: f64) -> f64 {
    let quantile = |p: f64| normal_quantile(p).unwrap_or(f64::NAN);
    (half * (1.0 + quantile(0.9) / quantile(0.975))).exp_m1()
}

/// How many more runs an arm would bring an interval of this half-width (in logarithms) within
/// `edge` (the same). `None` where that is beyond counting.
pub fn more_runs(half: f64, edge: f64, runs: usize) -> Option<usize> {
    let needed = (runs.max(1) as f64 * (half / edge).powi(2)).ceil();
    (needed.is_finite() && needed < 1e6).then(|| (needed as usize).saturating_sub(runs).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven processes, their logarithms `spread` apart in a row, around ln of `by`.
    fn side(spread: f64, by: f64) -> Side {
        let values: Vec<f64> = (0..7).map(|i| by * (spread * (f64::from(i) - 3.0)).exp()).collect();
        Side::of(&values, 1).expect("seven")
    }

    fn found(spread: f64, by: f64, family: Family) -> Contrast {
        let (a, b) = (side(spread, 1.0), side(spread, by));
        contrast(&a, &b, level(family, [&a, &b], &[]), Clocks::default())
    }

    #[test]
    fn the_interval_by_hand() {
        // s = 0.01 sqrt(28 / 6); h = 2.8289 s / sqrt(7) = 0.023098 to every side of both medians,
        // levels 1.2 % sqrt(2).
        let found = found(0.01, 1.1, Family::AtOneClock);
        let half = 0.023_098_f64.hypot(0.023_098).hypot(0.012 * 2.0_f64.sqrt());
        assert!((found.difference - 1.1_f64.ln()).abs() < 1e-12);
        assert!((found.interval.high - found.difference - half).abs() < 1e-5, "{found:?} {half}");
        assert!(found.p < 0.01 && found.same_within(&[0.02, 0.05, 0.10]).is_none(), "{found:?}");
    }

    #[test]
    fn words_by_what_is_known() {
        let margins = [0.02, 0.05, 0.10];
        assert_eq!(found(0.001, 1.0, Family::AtOneClock).same_within(&margins), Some(0.02));
        assert_eq!(found(0.001, 1.0, Family::Other).same_within(&margins), Some(0.05));
        assert_eq!(found(0.001, 1.0, Family::Memory).same_within(&margins), Some(0.05));
        let unsure = found(0.05, 1.0, Family::Other);
        assert!(unsure.p == 1.0 && unsure.same_within(&margins).is_none());
        assert!(unsure.at_most() > 0.2 && unsure.would_show() > unsure.at_most());
    }

    #[test]
    fn clocks_widen_and_do_not_move() {
        let (a, b) = (side(0.001, 1.0), side(0.001, 1.05));
        let own = level(Family::AtOneClock, [&a, &b], &[]);
        let plain = contrast(&a, &b, own, Clocks::default());
        let bound = contrast(&a, &b, own, Clocks { slack: 0.01, below: 0.04, above: 0.0 });
        assert_eq!(bound.difference, plain.difference);
        assert!((plain.interval.low - bound.interval.low - 0.05).abs() < 1e-12);
        assert!((bound.interval.high - plain.interval.high - 0.01).abs() < 1e-12);
        // The whole difference may be the clock's.
        assert!(plain.p < 0.01 && bound.p == 1.0, "{plain:?} {bound:?}");
    }

    #[test]
    fn history_tells_how_far_runs_lie_apart() {
        let (a, b) = (side(0.001, 1.0), side(0.001, 1.0));
        let run = |level: f64| (0..7).map(|i| level * (1.0 + 1e-4 * f64::from(i))).collect::<Earlier>();
        let of = |levels: &[f64]| {
            level(Family::AtOneClock, [&a, &b], &levels.iter().map(|at| run(*at)).collect::<Vec<_>>()).spread
        };
        assert_eq!(of(&[1.0, 1.2]), CORE_LEVEL, "two runs tell nothing");
        assert!(of(&[1.0; 11]) < 0.8 * CORE_LEVEL);
        assert!(of(&[1.0, 1.1, 1.0, 1.1, 1.0, 1.1]) > 3.0 * CORE_LEVEL);
    }

    #[test]
    fn too_little_is_known() {
        assert_eq!(Side::of(&[1.0; 4], 1), None);
        assert_eq!(Side::of(&[1.0, 1.0, 1.0, 1.0, 0.0], 1), None);
        let told = Side::told(1.0, Interval { low: 0.9, high: 1.1 }, 8, 1).expect("an interval");
        assert!((told.interval.high - 1.1_f64.ln()).abs() < 1e-12 && told.variance > 0.0);
        assert_eq!(Side::told(1.0, Interval { low: 0.0, high: 1.1 }, 8, 1), None);
        assert_eq!(
            (more_runs(0.2, 0.1, 1), more_runs(0.01, 0.1, 1), more_runs(0.2, 0.1, 2)),
            (Some(3), Some(1), Some(6))
        );
        assert_eq!((more_runs(f64::INFINITY, 0.1, 1), more_runs(0.2, 0.0, 1)), (None, None));
    }
}
