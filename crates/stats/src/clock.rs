//! The core clock as a covariate. A series that takes a fixed number of core cycles (the catalogue
//! says which) is normalised to one clock of the run, by the clock that was read after each window.
//! The slope of ln(time) on ln(clock) is fixed at -1: the data choose no model and estimate no
//! slope. They can only veto: each series for itself, and all together for the run.
//!
//! The unit of analysis is the process: clocks move between visits. A window in which the clock
//! changed has no single clock, so slopes inside processes mean nothing.

use super::order::{mean, median, variance};
use super::tails::t_two_sided;

/// A clock that moved less than this between processes (standard deviation of ln) shows nothing
/// about a slope.
pub const MOVES: f64 = 0.01;

/// The pooled slope of a run may be this far from -1, with a standard error of at most
/// [`GATE_ERROR`].
pub const GATE_OFF: f64 = 0.15;
pub const GATE_ERROR: f64 = 0.10;
/// With fewer series whose clock moved there is no pooled slope, and little that could be wrong.
pub const GATE_SERIES: usize = 8;
pub const GATE_PROCESSES: usize = 5;
/// The standard error of a series' slope is at least this: clock and time are read one after the
/// other, not over the same cycles.
const MIN_ERROR: f64 = 0.02;

/// A series whose cycles still have a slope on the clock, further from 0 than this and with a p
/// below [`VETO_P`], is left as measured.
pub const VETO_OFF: f64 = 0.25;
pub const VETO_P: f64 = 0.01;

/// By which share of a shift to another clock a figure may be off.
pub const MIN_SLACK: f64 = 0.10;
pub const MAX_SLACK: f64 = 0.50;

/// A process of a series: medians over its windows, as natural logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessMedians {
    /// Of the time, in the metric's unit (a rate enters as its negative).
    pub time: f64,
    /// Of the clock, GHz.
    pub clock: f64,
    /// Of time × clock.
    pub cycles: f64,
}

impl ProcessMedians {
    /// Of windows of (time, GHz); `None` without any, or where one is not above zero.
    pub fn of(windows: &[(f64, f64)]) -> Option<ProcessMedians> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        if !windows.iter().all(|&(time, ghz)| is_positive(time) && is_positive(ghz)) {
            return None;
        }
        let median_of =
            |value: fn(&(f64, f64)) -> f64| median(&windows.iter().map(value).collect::<Vec<f64>>());
        Some(ProcessMedians {
            time: median_of(|(time, _)| time.ln())?,
            clock: median_of(|(_, ghz)| ghz.ln())?,
            cycles: median_of(|(time, ghz)| (time * ghz).ln())?,
        })
    }
}

/// A slope of ln(time) on ln(clock) over processes: -1 where time is a count of cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub slope: f64,
    pub standard_error: f64,
}

impl Slope {
    /// No slope is known better than by [`MIN_ERROR`].
    pub fn of(slope: f64, standard_error: f64) -> Slope {
        Slope { slope, standard_error: standard_error.max(MIN_ERROR) }
    }
}

/// Whether clocks this far apart, in logarithms, show anything about a slope.
pub fn moves(apart: f64) -> bool {
    apart.abs() >= MOVES
}

/// Standard deviation of ln(clock) over processes; `None` below two.
pub fn movement(processes: &[ProcessMedians]) -> Option<f64> {
    Some(variance(&clocks(processes))?.sqrt())
}

fn clocks(processes: &[ProcessMedians]) -> Vec<f64> {
    processes.iter().map(|seen| seen.clock).collect()
}

/// Processes of one setting, relative to their means.
pub fn inside(processes: &[ProcessMedians]) -> Vec<ProcessMedians> {
    let mean_of = |value: fn(&ProcessMedians) -> f64| {
        mean(&processes.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let time = mean_of(|process| process.time);
    let clock = mean_of(|process| process.clock);
    let cycles = mean_of(|process| process.cycles);
    let relative = |process: &ProcessMedians| ProcessMedians {
        time: process.time - time,
        clock: process.clock - clock,
        cycles: process.cycles - cycles,
    };
    processes.iter().map(relative).collect()
}

/// Least squares of `value` on ln(clock): slope and its standard error; `None` below three
/// processes or if the clock did not move.
fn regress(processes: &[ProcessMedians], value: fn(&ProcessMedians) -> f64) -> Option<Slope> {
    let (clocks, values) = (clocks(processes), processes.iter().map(value).collect::<Vec<f64>>());
    let (clock, centre) = (mean(&clocks)?, mean(&values)?);
    let pairs = || clocks.iter().zip(&values).map(|(c, v)| (c - clock, v - centre));
    let squares: f64 = pairs().map(|(c, _)| c * c).sum();
    if processes.len() < 3 || squares <= 0.0 {
        return None;
    }
    let slope = pairs().map(|(c, v)| c * v).sum::<f64>() / squares;
    let left: f64 = pairs().map(|(c, v)| (v - slope * c).powi(2)).sum();
    let freedom = (processes.len() - 2) as f64;
    Some(Slope { slope, standard_error: (left / freedom / squares).sqrt() })
}

/// The slope of a series for the gate of its run; `None` where its clock stood, or with fewer than
/// [`GATE_PROCESSES`].
pub fn slope(processes: &[ProcessMedians]) -> Option<Slope> {
    if processes.len() < GATE_PROCESSES || !moves(movement(processes)?) {
        return None;
    }
    let found = regress(processes, |seen| seen.time)?;
    Some(Slope::of(found.slope, found.standard_error))
}

/// Whether the clocks of a run are those of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gate {
    /// The clock moved in too few series to be seen.
    Steady,
    /// Time goes with the clock.
    Open(Slope),
    /// It does not: the clock is another CPU's, or stops, or the noise is too large. Nothing is
    /// normalised.
    Closed(Slope),
}

/// The gate of a run, of the slopes of its core-bound series: their mean by DerSimonian and Laird.
pub fn gate(slopes: &[Slope]) -> Gate {
    let Some(pooled) = pooled(slopes).filter(|_| slopes.len() >= GATE_SERIES) else { return Gate::Steady };
    let open = (pooled.slope + 1.0).abs() <= GATE_OFF && pooled.standard_error <= GATE_ERROR;
    if open { Gate::Open(pooled) } else { Gate::Closed(pooled) }
}

/// Mean of slopes that differ by more than their errors (DerSimonian and Laird, *Meta-analysis in
/// clinical trials*, 1986).
fn pooled(slopes: &[Slope]) -> Option<Slope> {
    let mean_by = |between: f64| {
        let weight = move |slope: &Slope| 1.0 / (slope.standard_error.powi(2) + between);
        let sum: f64 = slopes.iter().map(weight).sum();
        let mean = slopes.iter().map(|slope| weight(slope) * slope.slope).sum::<f64>() / sum;
        (mean, sum, weight)
    };
    if slopes.is_empty() {
        return None;
    }
    let (mean, sum, weight) = mean_by(0.0);
    let spread: f64 = slopes.iter().map(|slope| weight(slope) * (slope.slope - mean).powi(2)).sum();
    let squares: f64 = slopes.iter().map(|slope| weight(slope).powi(2)).sum();
    // The variance between series, beyond that of their errors.
    let scale = sum - squares / sum;
    let excess = spread - (slopes.len() - 1) as f64;
    let between = if scale > 0.0 { (excess / scale).max(0.0) } else { 0.0 };
    let (mean, sum, _) = mean_by(between);
    Some(Slope { slope: mean, standard_error: 1.0 / sum.sqrt() })
}

/// Why a series that the catalogue calls core-bound is left as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Veto {
    /// Its processes differ more in cycles than in time.
    Wider,
    /// The slope that cycles still have on the clock.
    Slope(f64),
}

/// The slack of a series: the share of a shift to another clock by which its figure may be off.
pub fn slack(processes: &[ProcessMedians]) -> Result<f64, Veto> {
    let moved = movement(processes).is_some_and(moves);
    let Some(left) = regress(processes, |seen| seen.cycles).filter(|_| moved) else {
        return Ok(MIN_SLACK);
    };
    let spread = |value: fn(&ProcessMedians) -> f64| {
        variance(&processes.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    if spread(|seen| seen.cycles) > spread(|seen| seen.time) {
        return Err(Veto::Wider);
    }
    let p = t_two_sided(left.slope / left.standard_error.max(1e-12), (processes.len() - 2) as f64);
    if left.slope.abs() > VETO_OFF && p < VETO_P {
        return Err(Veto::Slope(left.slope));
    }
    Ok((left.slope.abs() + left.standard_error).clamp(MIN_SLACK, MAX_SLACK))
}

/// The clock of a run, GHz: the median over all processes of its core-bound series, to 0.01 GHz.
/// `None` without any.
pub fn run_clock(series: &[Vec<ProcessMedians>]) -> Option<f64> {
    let all: Vec<f64> = series.iter().flatten().map(|seen| seen.clock).collect();
    Some((median(&all)?.exp() * 100.0).round() / 100.0)
}

/// What bringing a series to a clock rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Brought {
    /// Of ln(time) on ln(clock) over its processes; `None` where its clock stood.
    pub slope: Option<Slope>,
    /// The share of a shift to another clock by which its figure may be off.
    pub slack: f64,
    /// By how much the interval of ln(time) at the clock is wider on both sides than that of
    /// ln(cycles): the slack times how far the mean of ln(clock) lies from the clock that it is
    /// brought to.
    pub wider: f64,
}

/// Whether these processes can be brought to `ghz`, or what forbids it. `None` without processes.
pub fn brought(processes: &[ProcessMedians], ghz: f64) -> Option<Result<Brought, Veto>> {
    let shift = mean(&clocks(processes))? - ghz.ln();
    let slope = slope(processes);
    Some(slack(processes).map(|slack| Brought { slope, slack, wider: slack * shift.abs() }))
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::guarded::guarded;
    use super::super::noise::normal;
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Vec<ProcessMedians> {
        pairs.iter().map(|pair| ProcessMedians::of(&[*pair]).expect("above zero")).collect()
    }

    /// Seven processes whose clock moves, time going by `slope` with it.
    fn moving(slope: f64, noise: f64, rng: &mut Rng) -> Vec<ProcessMedians> {
        let one = |_| {
            let clock = [1.30, 1.39, 1.24][rng.usize(..3)];
            let time = 3.0 + slope * clock + noise * normal(rng);
            ProcessMedians { time, clock, cycles: time + clock }
        };
        (0..7).map(one).collect()
    }

    #[test]
    fn the_values_of_the_method() {
        let times = [60.1, 59.8, 54.0, 52.6, 60.4, 54.3, 59.9];
        let clocks = [3.57, 3.57, 3.96, 4.07, 3.57, 3.96, 3.57];
        let series = of(&times.into_iter().zip(clocks).collect::<Vec<_>>());
        let found = brought(&series, 3.76).expect("processes").expect("no veto");
        let cycles: Vec<f64> = series.iter().map(|seen| seen.cycles).collect();
        let interval = guarded(&cycles).expect("seven");
        let at = |cycles: f64| (cycles - 3.76_f64.ln()).exp();
        let (low, high) = (at(interval.low - found.wider), at(interval.high + found.wider));
        assert!(
            (at(median(&cycles).expect("seven")) - 56.937).abs() < 5e-4 && found.slack == 0.10,
            "{found:?}"
        );
        assert!((low - 56.773).abs() < 5e-4 && (high - 57.245).abs() < 5e-4, "{low} {high}");
        assert_eq!(run_clock(&[series]), Some(3.57));
    }

    #[test]
    fn a_series_whose_time_does_not_go_with_the_clock_is_left_as_it_ran() {
        let mut rng = Rng::with_seed(5);
        assert_eq!(slack(&moving(0.0, 0.001, &mut rng)), Err(Veto::Wider));
        assert!(
            matches!(slack(&moving(-0.6, 0.001, &mut rng)), Err(Veto::Slope(left)) if (left - 0.4).abs() < 0.1)
        );
        assert!(slack(&moving(-1.0, 0.001, &mut rng)).is_ok_and(|slack| slack == MIN_SLACK));
        // A clock that stands shows nothing, and nothing is to be feared of it.
        assert_eq!(slack(&of(&[(60.0, 3.0), (61.0, 3.0), (59.0, 3.0)])), Ok(MIN_SLACK));
    }

    #[test]
    fn a_gate_opens_for_the_right_clock_only() {
        let mut rng = Rng::with_seed(6);
        let mut slopes = |slope: f64, count: usize| -> Vec<Slope> {
            (0..count).filter_map(|_| super::slope(&moving(slope, 0.01, &mut rng))).collect()
        };
        assert!(matches!(gate(&slopes(-1.0, 40)), Gate::Open(pooled) if (pooled.slope + 1.0).abs() < 0.05));
        assert!(matches!(gate(&slopes(-0.5, 40)), Gate::Closed(_)));
        assert!(matches!(gate(&slopes(0.0, 40)), Gate::Closed(_)));
        assert_eq!(gate(&slopes(0.0, 7)), Gate::Steady);
    }

    #[test]
    fn windows_without_time_or_clock_are_not_a_process() {
        assert_eq!(ProcessMedians::of(&[]), None);
        assert_eq!(ProcessMedians::of(&[(1.0, 2.0), (1.0, 0.0)]), None);
        assert_eq!(ProcessMedians::of(&[(1.0, 2.0), (f64::NAN, 2.0)]), None);
        let seen = ProcessMedians::of(&[(2.0, 3.0), (4.0, 3.0), (8.0, 3.0)]).expect("three");
        assert_eq!((seen.time, seen.clock, seen.cycles), (4.0_f64.ln(), 3.0_f64.ln(), 12.0_f64.ln()));
    }

    #[test]
    fn slopes_that_differ_by_more_than_their_errors_have_a_wider_mean() {
        let of = |slopes: [f64; 2]| {
            pooled(&slopes.map(|slope| Slope { slope, standard_error: 1.0 })).expect("slopes")
        };
        // Two slopes 2 apart, with errors of 1: Q is 2, so the variance between them is 1.
        assert_eq!(of([1.0, 3.0]), Slope { slope: 2.0, standard_error: 1.0 });
        let alike = of([2.0, 2.0]);
        assert!(alike.slope == 2.0 && (alike.standard_error - 0.5_f64.sqrt()).abs() < 1e-12, "{alike:?}");
        assert_eq!(pooled(&[]), None);
    }
}
