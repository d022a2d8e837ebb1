//! Where the time of a run goes once every case has the fewest processes that give an interval: to
//! the cases of which a second brings most series within what is asked.
//!
//! The rule sees widths and never means, so that what it chooses does not depend on how large a
//! figure is; that it looks after every visit is paid for by the guarded interval. Only where a
//! limit rests on a figure is it visited by its value, too, until a wider interval ([`firm`])
//! decides the limit.

use std::cmp::Ordering;

use machine::Machine;
use model::Params;

use super::analysis::CONFIDENCE;
use super::core_bound::{AtClock, Common, at_clock, is_core_bound, outlook, run_clock};
use super::estimate::estimate;
use super::guarded::{GUARDED, reach};
use super::order::{median, variance};
use super::series::{Process, Series};

/// A half-width counts as reached by visits that are planned where it comes to this share of what
/// is asked.
const TARGET_SHARE: f64 = 0.9;

/// Above [`GUARDED`] visits come in this many at once, and are looked at after the last.
const VISITS_PER_ROUND: usize = 3;

/// What a run asks of its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionTargets {
    /// Relative half-width of a trusted figure, and of a rough one.
    pub trusted: f64,
    pub rough: f64,
    /// Processes at most.
    pub most: usize,
}

/// How well a series is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPrecision {
    /// Processes that gave values, and those of them that count: the others had another thread on
    /// their core.
    pub visits: usize,
    pub processes: usize,
    /// Standard deviation of ln(value) over processes, at the clock of the run where that is known.
    pub spread: f64,
    /// By how much its interval is wider on both sides for the shift to that clock.
    pub wider: f64,
    /// Relative half-width of its interval.
    pub half_width: f64,
}

impl SeriesPrecision {
    /// `None` without an interval, or for values that have no logarithm.
    pub fn of(series: &Series, common: Option<Common>) -> Option<SeriesPrecision> {
        let processes: Vec<&Process> =
            series.processes.iter().filter(|process| !process.values.is_empty()).collect();
        let values: Vec<Vec<f64>> = processes.iter().map(|process| process.values.clone()).collect();
        let ran = || estimate(&values, CONFIDENCE)?.relative_half_width();
        let of = |found: AtClock, half_width: f64| (found.medians, found.brought.wider, half_width);
        let found = common.and_then(|common| {
            if let Some((found, _)) = at_clock(&processes, &series.metric, common) {
                let half_width = found.estimate.relative_half_width()?;
                return Some(of(found, half_width));
            }
            // Too few had their core for themselves for a figure: how these scatter is what further
            // ones will do.
            outlook(&processes, &series.metric, common)
                .zip(ran())
                .map(|(found, half_width)| of(found, half_width))
        });
        let as_it_ran = || {
            let medians: Vec<f64> = values.iter().filter_map(|windows| median(windows)).collect();
            Some((medians, 0.0, ran()?))
        };
        let (medians, wider, half_width) = found.or_else(as_it_ran)?;
        let logarithms: Vec<f64> = medians.iter().map(|value| value.ln()).collect();
        if logarithms.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let spread = variance(&logarithms)?.sqrt();
        Some(SeriesPrecision { visits: processes.len(), processes: medians.len(), spread, wider, half_width })
    }

    /// Half-width to be expected after this many further visits, of which as many count as of those
    /// before.
    fn expected(&self, visits: usize) -> Option<f64> {
        let counted = visits * self.processes / self.visits.max(1);
        Some(reach(self.processes + counted)? * self.spread + self.wider)
    }
}

/// What a second of further visits to a case is worth: the most, over any number of them, of the
/// series that they would make trusted (half as much for rough), a second. `None` where no number
/// of visits makes any: all are known well enough, or none can be. `visit_s` is what a visit takes,
/// s.
pub fn gain(series: &[SeriesPrecision], visit_s: f64, asked: &PrecisionTargets) -> Option<f64> {
    let have = series.iter().map(|known| known.visits).max()?;
    let better = |limit: f64, visits: usize| {
        let becomes = |known: &&SeriesPrecision| {
            known.half_width > limit
                && known.expected(visits).is_some_and(|half| half <= TARGET_SHARE * limit)
        };
        series.iter().filter(becomes).count() as f64
    };
    let worth = (1..=asked.most.saturating_sub(have)).map(|visits| {
        let value = better(asked.trusted, visits) + 0.5 * better(asked.rough, visits);
        value / (visits as f64 * visit_s)
    });
    worth.reduce(f64::max).filter(|worth| *worth > 0.0)
}

/// A limit asks for no further visits of a figure whose interval, widened by this factor, lies
/// wholly on one side of it. With the interval itself, looked at after every visit, each side
/// would be wrongly decided for 6 to 9 % of figures at their limit (`prove`, table "limits").
pub const FIRM: f64 = 2.0;

/// The interval of a figure as it ends visits for a limit.
pub fn firm(middle: f64, [low, high]: [f64; 2]) -> [f64; 2] {
    [middle - FIRM * (middle - low), middle + FIRM * (high - middle)]
}

/// What can be visited by itself: a case, or single points of one.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitPart {
    /// The place of the case in the plan.
    pub case: usize,
    /// `None`: all of its points.
    pub point: Option<Params>,
}

/// A case of several points is visited in parts from this length of a visit on, s ...
const LONG_VISIT_S: f64 = 0.15;
/// ... of which this much is the start of a process, whatever it measures.
const START_S: f64 = 0.02;

/// What a run's further visits are for.
pub struct VisitGoals<'a> {
    pub asked: PrecisionTargets,
    /// Keys of series that are visited before all others: limits rest on them.
    pub first: &'a [String],
}

/// The parts of a run that gain from another visit: those that come first, the least visited before
/// others, then the most worthwhile. `all` are the run's series, `visit_s` gives what a whole
/// visit of a case takes, s, and `divisible` whether its points can be visited one by one.
pub fn worthwhile(
    all: &[Series],
    machine: &Machine,
    wanted: &VisitGoals,
    visit_s: impl Fn(usize) -> f64,
    divisible: impl Fn(usize) -> bool,
) -> Vec<VisitPart> {
    let asked = &wanted.asked;
    let common = run_clock(all, machine).and_then(|clock| clock.common());
    let mut parts: Vec<(VisitPart, VisitReason)> = Vec::new();
    for own in all.chunk_by(|one, other| one.planned == other.planned) {
        let is_first = |series: &Series| wanted.first.contains(&series.key);
        let counts = |series: &&Series| series.metric.headline || is_first(series);
        let counted: Vec<&Series> = own.iter().filter(counts).collect();
        let mut points: Vec<&Params> = Vec::new();
        counted
            .iter()
            .for_each(|series| points.extend((!points.contains(&&series.point)).then_some(&series.point)));
        let (case, whole_s) = (own[0].planned, visit_s(own[0].planned));
        let worth = |series: &[&&Series], visit_s: f64| {
            let visits = |series: &&&Series| {
                series.processes.iter().filter(|process| !process.values.is_empty()).count()
            };
            let first = series.iter().filter(|series| is_first(series)).map(visits).max();
            if let Some(visits) = first.filter(|visits| *visits < asked.most) {
                return Some(VisitReason::First { visits });
            }
            let core = |series: &&&Series| common.filter(|_| is_core_bound(series, machine));
            let headline = series.iter().filter(|series| series.metric.headline);
            let known: Vec<SeriesPrecision> =
                headline.filter_map(|series| SeriesPrecision::of(series, core(series))).collect();
            let have = known.iter().map(|known| known.visits).max().unwrap_or(0);
            let within = have > *GUARDED.end()
                && !(have - GUARDED.end()).is_multiple_of(VISITS_PER_ROUND)
                && have < asked.most;
            if within {
                Some(VisitReason::Rate(f64::INFINITY))
            } else {
                gain(&known, visit_s, asked).map(VisitReason::Rate)
            }
        };
        if points.len() > 1 && whole_s > LONG_VISIT_S && divisible(case) {
            let visit_s = part_s(whole_s, 1, points.len());
            for point in points {
                let of_point: Vec<&&Series> =
                    counted.iter().filter(|series| series.point == *point).collect();
                let part = VisitPart { case, point: Some(point.clone()) };
                parts.extend(worth(&of_point, visit_s).map(|worth| (part, worth)));
            }
        } else {
            let whole = VisitPart { case, point: None };
            parts.extend(worth(&counted.iter().collect::<Vec<_>>(), whole_s).map(|worth| (whole, worth)));
        }
    }
    parts.sort_by(|(_, one), (_, other)| one.order(other));
    parts.into_iter().map(|(part, _)| part).collect()
}

/// Why a part is visited again.
#[derive(Clone, Copy, Debug, PartialEq)]
enum VisitReason {
    /// A limit rests on it.
    First { visits: usize },
    /// Series that a second of visits makes precise.
    Rate(f64),
}

impl VisitReason {
    fn order(&self, other: &VisitReason) -> Ordering {
        match (self, other) {
            (VisitReason::First { visits: own }, VisitReason::First { visits }) => own.cmp(visits),
            (VisitReason::First { .. }, VisitReason::Rate(_)) => Ordering::Less,
            (VisitReason::Rate(_), VisitReason::First { .. }) => Ordering::Greater,
            (VisitReason::Rate(own), VisitReason::Rate(rate)) => rate.total_cmp(own),
        }
    }
}

/// What a visit of some of a case's points takes, s: of a whole one its start, and of the rest
/// their share.
pub fn part_s(whole_s: f64, points: usize, of: usize) -> f64 {
    let share = points as f64 / of.max(1) as f64;
    if share >= 1.0 || whole_s <= START_S { whole_s } else { START_S + (whole_s - START_S) * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: PrecisionTargets = PrecisionTargets { trusted: 0.03, rough: 0.10, most: 30 };

    fn known(processes: usize, spread: f64) -> SeriesPrecision {
        let half_width = reach(processes).expect("enough") * spread;
        SeriesPrecision { visits: processes, processes, spread, wider: 0.0, half_width }
    }

    #[test]
    fn a_second_goes_where_it_makes_most_series_precise() {
        let worth = |series: &[SeriesPrecision], visit_s: f64| gain(series, visit_s, &QUICK).unwrap_or(0.0);
        // 2.5 % apart: 3.7 % with five processes; 2.7 % needs seven.
        let near = known(5, 0.025);
        assert!((worth(&[near], 1.0) - 0.5).abs() < 1e-9);
        assert!((worth(&[near, near], 1.0) - 1.0).abs() < 1e-9);
        assert!((worth(&[near], 0.1) - 5.0).abs() < 1e-9);
        // Rough is worth half as much.
        let rough = known(5, 0.09);
        assert!((worth(&[rough], 1.0) - 0.5 / 3.0).abs() < 1e-9, "{}", worth(&[rough], 1.0));
    }

    #[test]
    fn nothing_is_gained_of_what_is_precise_or_hopeless() {
        for series in [known(5, 0.001), known(5, 1.0), known(30, 0.2)] {
            assert_eq!(gain(&[series], 1.0, &QUICK), None, "{series:?}");
        }
        // What the shift to another clock adds does not shrink with more processes.
        assert_eq!(gain(&[SeriesPrecision { wider: 0.2, ..known(5, 0.02) }], 1.0, &QUICK), None);
        assert_eq!(gain(&[], 1.0, &QUICK), None);
    }

    #[test]
    fn visits_beside_another_thread_are_expected_to_count_for_nothing() {
        // Half of ten visits counted: the two processes that make it precise cost four visits.
        let half = SeriesPrecision { visits: 10, ..known(5, 0.025) };
        assert!((gain(&[half], 1.0, &QUICK).unwrap_or(0.0) - 0.25).abs() < 1e-9);
        // One that never counts ends with the most that are made.
        assert_eq!(gain(&[SeriesPrecision { visits: 30, ..half }], 1.0, &QUICK), None);
    }

    #[test]
    fn what_limits_rest_on_comes_first_and_the_least_visited_before_others() {
        let (few, many) = (VisitReason::First { visits: 5 }, VisitReason::First { visits: 9 });
        let mut all = [VisitReason::Rate(0.5), many, VisitReason::Rate(f64::INFINITY), few];
        all.sort_by(|one, other| one.order(other));
        assert_eq!(all, [few, many, VisitReason::Rate(f64::INFINITY), VisitReason::Rate(0.5)]);
        // Twice as wide on either side of its own middle.
        assert_eq!(firm(10.0, [9.0, 12.0]), [8.0, 14.0]);
    }

    #[test]
    fn parts_share_what_a_visit_takes_behind_its_start() {
        assert_eq!(part_s(1.02, 16, 16), 1.02);
        assert!((part_s(1.02, 4, 16) - 0.27).abs() < 1e-12 && (part_s(1.02, 0, 16) - 0.02).abs() < 1e-12);
        assert_eq!(part_s(0.01, 1, 16), 0.01);
    }
}
