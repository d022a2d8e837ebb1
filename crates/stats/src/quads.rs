//! Two commands on one host, run alternately: A B B A or B A A B. A quad gives one value, half
//! of what B's two executions are above A's (in logarithms), so that whatever drifts slowly falls
//! out.
//!
//! The clock is read after each execution. Where time goes with it as cycles do, quads are compared
//! in cycles; where the arms themselves run at different clocks, the clock is an effect of what is
//! compared, and time decides.
//!
//! At once on two CPUs, which they swap for every other round: two rounds are a quad just so. Time
//! decides: what moves the clock of both falls out.

use super::analysis::CONFIDENCE;
use super::clock::Slope;
use super::estimate::interval_of_logarithms;
use super::order::{Interval, mean, median};
use super::series::Series;
use super::tails::t_quantile;
use model::Better;

/// Quads before the first look, and at most.
pub const MIN_QUADS: usize = 6;
pub const MAX_QUADS: usize = 40;

/// Half-width of the interval, of a logarithm, at which it is enough: the rule stops by width and
/// never by a difference.
pub const ENOUGH: f64 = 0.01;

/// The slope of ln(time) on ln(clock) over executions must be known to lie so near -1.
const SLOPE_OFF: f64 = 0.25;

/// Clocks of the two arms that are farther apart, in logarithms, are an effect of what is compared.
const CLOCK_APART: f64 = 0.005;

/// Shares within which two commands are the same.
pub const MARGINS: [f64; 4] = [0.01, 0.02, 0.05, 0.10];

/// One execution: ln of its time (the negative of a rate's), and ln(GHz) after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Execution {
    pub pass: u32,
    pub time: f64,
    pub clock: Option<f64>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    Time,
    Cycles,
}

/// B against A.
#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    pub quads: usize,
    pub by: Basis,
    /// ln of B's time over A's, by `by`, with its interval; the interval is missing with too few
    /// quads.
    pub difference: f64,
    pub interval: Option<Interval>,
    /// The same as they ran.
    pub in_time: (f64, Option<Interval>),
    /// The same in cycles, where each execution has a clock.
    pub in_cycles: Option<(f64, Option<Interval>)>,
    /// Of ln(time) on ln(clock) over executions, each arm around its own mean.
    pub slope: Option<Slope>,
    /// ln of B's clock over A's, where the arms differ in it.
    pub clock_effect: Option<f64>,
    /// Both ran in the same visits.
    pub at_once: bool,
}

/// Two series of executions, A's and B's, as quads; `None` without a single one.
pub fn versus(a: &Series, b: &Series) -> Option<Versus> {
    let at_once = a.planned == b.planned;
    let executions = |series: &Series| {
        let clock = |one: Execution| Execution { clock: one.clock.filter(|_| !at_once), ..one };
        executions(series).into_iter().map(clock).collect::<Vec<_>>()
    };
    Some(Versus { at_once, ..compare_quads(&executions(a), &executions(b))? })
}

/// The same of executions.
pub fn compare_quads(a: &[Execution], b: &[Execution]) -> Option<Versus> {
    let quads = quads(a, b, |execution| Some(execution.time))?;
    let clocks = self::quads(a, b, |execution| execution.clock);
    let of = |values: &[f64]| Some((median(values)?, interval_of_logarithms(values)));
    let in_time = of(&quads)?;
    let clock_effect =
        clocks.as_deref().and_then(interval_of_logarithms).zip(clocks.as_deref().and_then(median));
    let clock_effect = clock_effect
        .filter(|(interval, apart)| !interval.contains(0.0) && apart.abs() > CLOCK_APART)
        .map(|(_, apart)| apart);
    let cycles: Option<Vec<f64>> =
        clocks.map(|clocks| quads.iter().zip(clocks).map(|(time, clock)| time + clock).collect());
    let in_cycles = cycles.as_deref().and_then(of);
    let slope = slope(&[a, b]);
    let by_cycles = slope.is_some_and(|(slope, freedom)| known_near_minus_one(slope, freedom));
    let (by, (difference, interval)) = match in_cycles {
        Some(in_cycles) if by_cycles && clock_effect.is_none() => (Basis::Cycles, in_cycles),
        _ => (Basis::Time, in_time),
    };
    let slope = slope.map(|(slope, _)| slope);
    let (quads, at_once) = (quads.len(), false);
    Some(Versus { quads, by, difference, interval, in_time, in_cycles, slope, clock_effect, at_once })
}

impl Versus {
    /// Whether more quads are not needed, or not allowed.
    pub fn is_enough(&self) -> bool {
        let narrow = self.interval.is_some_and(|interval| interval.half_width() <= ENOUGH);
        self.quads >= MAX_QUADS || (self.quads >= MIN_QUADS && narrow)
    }

    /// The smallest of [`MARGINS`] within which the two are the same.
    pub fn same_within(&self) -> Option<f64> {
        let interval = self.interval?;
        let inside = |margin: &f64| -margin.ln_1p() < interval.low && interval.high < margin.ln_1p();
        MARGINS.into_iter().find(inside)
    }

    /// Whether B differs from A: the interval excludes no difference.
    pub fn differs(&self) -> bool {
        self.interval.is_some_and(|interval| !interval.contains(0.0))
    }
}

fn executions(series: &Series) -> Vec<Execution> {
    let rate = series.metric.better == Better::Higher;
    let one = |process: &super::series::Process| {
        let value = median(&process.values).filter(|value| *value > 0.0)?.ln();
        let clock = Some(process.clock_ghz()).filter(|ghz| *ghz > 0.0).map(f64::ln);
        Some(Execution { pass: process.pass, time: if rate { -value } else { value }, clock })
    };
    series.processes.iter().filter_map(one).collect()
}

/// A value of each quad: two passes, an even one and the next, in which both arms have both. `None`
/// where there is none, or where an execution lacks it.
fn quads(a: &[Execution], b: &[Execution], of: impl Fn(&Execution) -> Option<f64>) -> Option<Vec<f64>> {
    let at = |arm: &[Execution], pass: u32| arm.iter().find(|execution| execution.pass == pass).copied();
    let both = |pass: u32| Some([at(a, pass)?, at(a, pass + 1)?, at(b, pass)?, at(b, pass + 1)?]);
    let last = a.iter().chain(b).map(|execution| execution.pass).max()?;
    let quad = |[a, c, b, d]: [Execution; 4]| Some((of(&b)? + of(&d)? - of(&a)? - of(&c)?) / 2.0);
    let values: Vec<f64> = (0..=last).step_by(2).filter_map(both).map(quad).collect::<Option<_>>()?;
    (!values.is_empty()).then_some(values)
}

/// Analysis of covariance: the common slope of the arms, each around its own means, with its
/// degrees of freedom.
fn slope(arms: &[&[Execution]; 2]) -> Option<(Slope, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for arm in arms {
        let clocks: Vec<f64> = arm.iter().map(|execution| execution.clock).collect::<Option<_>>()?;
        let times: Vec<f64> = arm.iter().map(|execution| execution.time).collect();
        let (clock, time) = (mean(&clocks)?, mean(&times)?);
        all.extend(clocks.iter().zip(&times).map(|(c, t)| (c - clock, t - time)));
    }
    let squares: f64 = all.iter().map(|(clock, _)| clock * clock).sum();
    let freedom = all.len() as f64 - 3.0;
    if squares <= 0.0 || freedom < 1.0 {
        return None;
    }
    let slope = all.iter().map(|(clock, time)| clock * time).sum::<f64>() / squares;
    let left: f64 = all.iter().map(|(clock, time)| (time - slope * clock).powi(2)).sum();
    Some((Slope { slope, standard_error: (left / freedom / squares).sqrt() }, freedom))
}

/// Whether the 95 % interval of a slope holds -1 and lies near it.
fn known_near_minus_one(slope: Slope, freedom: f64) -> bool {
    let Some(quantile) = t_quantile(CONFIDENCE, freedom) else { return false };
    let (off, half) = ((slope.slope + 1.0).abs(), quantile * slope.standard_error);
    off <= half && off + half <= SLOPE_OFF
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::normal;
    use super::*;
    use model::Packed;
    use testkit::{run, samples, visit};

    /// `quads` quads of two arms: B slower by `by`, times going by `slope` with a clock that moves
    /// between executions, B's clock faster by `faster`.
    fn arms(quads: usize, by: f64, slope: f64, faster: f64, seed: u64) -> [Series; 2] {
        let mut rng = Rng::with_seed(seed);
        [0, 1].map(|arm: u8| {
            let visits = (0..2 * quads as u32).map(|pass| {
                let clock = [1.30, 1.39, 1.24][rng.usize(..3)] + f64::from(arm) * faster;
                let time = f64::from(arm) * f64::ln_1p(by) + slope * clock + 0.002 * normal(&mut rng);
                let mut one = samples("rate", 0, &[time.exp()]);
                one.beside.clock_ghz = Some(Packed::Same(clock.exp()));
                visit(pass, 0, pass, vec![one])
            });
            let mut found = crate::series(&run(1, visits.collect())).remove(0);
            found.metric.better = Better::Lower;
            // A case of its own.
            found.planned = usize::from(arm);
            found
        })
    }

    fn found(quads: usize, by: f64, slope: f64, faster: f64) -> Versus {
        let [a, b] = arms(quads, by, slope, faster, 7);
        versus(&a, &b).expect("quads")
    }

    #[test]
    fn what_goes_with_the_clock_is_compared_in_cycles() {
        let cycles = found(8, 0.05, -1.0, 0.0);
        assert_eq!((cycles.quads, cycles.by), (8, Basis::Cycles));
        assert!((cycles.difference - 0.05_f64.ln_1p()).abs() < 0.005 && cycles.differs(), "{cycles:?}");
        assert!(
            cycles.is_enough() && cycles.in_time.1.is_some_and(|interval| interval.half_width() > ENOUGH)
        );
        let time = found(8, 0.05, 0.0, 0.0);
        assert_eq!(time.by, Basis::Time);
        assert!((time.difference - 0.05_f64.ln_1p()).abs() < 0.005, "{time:?}");
    }

    #[test]
    fn a_clock_that_the_arms_differ_in_is_an_effect() {
        let effect = found(20, 0.0, -1.0, 0.1);
        assert_eq!(effect.by, Basis::Time);
        assert!(effect.clock_effect.is_some_and(|apart| apart > 0.05), "{effect:?}");
    }

    #[test]
    fn equal_commands_are_the_same_and_few_quads_tell_nothing() {
        let same = found(12, 0.0, -1.0, 0.0);
        assert!(!same.differs() && same.same_within() == Some(0.01), "{same:?}");
        let few = found(3, 0.0, -1.0, 0.0);
        assert!(few.interval.is_none() && !few.is_enough() && few.same_within().is_none());
        let [a, b] = arms(4, 0.1, -1.0, 0.0, 1);
        let alone = Series { processes: b.processes[..1].to_vec(), ..b };
        assert_eq!(versus(&a, &alone), None, "half a quad is none");
    }

    #[test]
    fn at_once_time_decides_and_what_the_seats_differ_in_falls_out() {
        let [mut a, mut b] = arms(8, 0.05, 0.0, 0.0, 5);
        b.planned = a.planned;
        // The second seat is slower by 30 %: B's in even rounds, A's in odd ones; every round has a
        // disturbance of its own.
        for (arm, series) in [&mut a, &mut b].into_iter().enumerate() {
            for process in &mut series.processes {
                let second = (process.pass as usize + arm) % 2 == 1;
                let disturbed = 1.0 + 0.1 * f64::from(process.pass % 7);
                process
                    .values
                    .iter_mut()
                    .for_each(|value| *value *= disturbed * if second { 1.3 } else { 1.0 });
            }
        }
        let found = versus(&a, &b).expect("rounds");
        assert!(found.at_once && found.by == Basis::Time && found.in_cycles.is_none(), "{found:?}");
        assert!((found.difference - 0.05_f64.ln_1p()).abs() < 0.005 && found.is_enough(), "{found:?}");
    }

    #[test]
    fn a_rate_goes_the_other_way() {
        let [mut a, mut b] = arms(8, 0.05, -1.0, 0.0, 3);
        for series in [&mut a, &mut b] {
            series.metric.better = Better::Higher;
            for process in &mut series.processes {
                process.values.iter_mut().for_each(|value| *value = value.recip());
            }
        }
        let found = versus(&a, &b).expect("quads");
        assert!((found.difference - 0.05_f64.ln_1p()).abs() < 0.005, "B takes longer: {found:?}");
    }

    #[test]
    fn the_same_means_that_both_ends_lie_inside_the_margin() {
        let within = |low: f64, high: f64| {
            let interval = Some(Interval { low, high });
            Versus { interval, ..found(8, 0.0, -1.0, 0.0) }.same_within()
        };
        assert_eq!(within(-0.001, 0.001), Some(0.01));
        assert_eq!(within(-0.015, 0.001), Some(0.02));
        assert_eq!(within(-0.001, 0.04), Some(0.05));
        assert_eq!((within(-0.2, 0.001), within(-0.001, 0.2)), (None, None));
    }
}
