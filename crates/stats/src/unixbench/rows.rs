//! Rows of two tables of scores: which one breaks with its relatives, what a token's way from task
//! to task takes, and scores of N copies that N CPUs cannot explain.

use super::super::order::median;
use super::{CONTEXT, Test};
use model::vocabulary::unixbench::rule::MORE_THAN_COPIES;
use model::{Fact, Finding};

/// The same calls by one task: what a pipe costs without anyone to be woken.
pub const ALONE: &str = "pipe";

/// A row is odd from this ratio of ratios on: between five real hosts of several CPUs
/// (`../shared/fixtures/results/unixbench`, ten pairs) two rows of like calls by one task, Pipe
/// Throughput and System Call Overhead, lie 1.02 to 1.47 apart.
const APART: f64 = 1.5;

/// Fewer rows than this make no group to be far from.
const MIN_ROWS: usize = 6;

/// Robust distance from the group from which on a row is odd without a relative, in scatters of the
/// group.
const OUTLIER_ERRORS: f64 = 5.0;

/// The scatter that a group is given at least, ln: that of single scores between equal hosts.
const MIN_SCATTER: f64 = 0.05;

/// MAD to standard deviation of a normal distribution.
const MAD_SCALE: f64 = 1.4826;

/// One row of two tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowRatio {
    pub test: &'static Test,
    /// The second score over the first, above 0.
    pub ratio: f64,
    /// Half-width of its 95 % interval, ln; 0 if nothing reports it it.
    pub half: f64,
}

/// A row whose ratio breaks with those it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OddRow {
    pub row: RowRatio,
    /// The related row, where it breaks with that.
    pub relative: Option<RowRatio>,
    /// The median ratio of all rows but this one.
    pub group: f64,
    /// Its distance from that median in robust standard deviations of the rows, with its sign.
    pub distance: f64,
}

/// The odd rows of two tables, none where fewer than six rows are in both.
///
/// Context switching is odd where its ratio is 1.5 times its relative's (Pipe Throughput: the same
/// reads and writes by one task) or less than that share of it, and it is the one of the two that
/// lies farther from the group. Another row whose tasks the scheduler places is odd that lies as
/// far from the median of the others and five robust standard deviations (1.4826 MAD of ln, at
/// least 5 %); of one task's rows nothing is said, since between equal runs of a shared host single
/// ones differ twofold. Intervals, where there are some, must leave that distance.
pub fn odd_rows(rows: &[RowRatio]) -> Vec<OddRow> {
    if rows.len() < MIN_ROWS {
        return Vec::new();
    }
    let judged = |row: &RowRatio| {
        let others: Vec<f64> =
            rows.iter().filter(|other| other.test != row.test).map(|other| other.ratio.ln()).collect();
        let middle = median(&others)?;
        let off: Vec<f64> = others.iter().map(|own| (own - middle).abs()).collect();
        let scatter = (MAD_SCALE * median(&off)?).max(MIN_SCATTER);
        Some((middle, (row.ratio.ln() - middle) / scatter))
    };
    let apart = |one: &RowRatio, other: f64, half: f64| {
        (one.ratio.ln() - other).abs() - one.half.hypot(half) >= APART.ln()
    };
    let odd = |row: &RowRatio| {
        let (middle, distance) = judged(row)?;
        let relative = rows.iter().find(|other| row.test.name == CONTEXT && other.test.name == ALONE);
        let relative = relative.filter(|relative| {
            let nearer = (relative.ratio.ln() - middle).abs() < (row.ratio.ln() - middle).abs();
            nearer && apart(row, relative.ratio.ln(), relative.half)
        });
        let far = row.test.placed && distance.abs() >= OUTLIER_ERRORS && apart(row, middle, 0.0);
        (far || relative.is_some()).then(|| OddRow {
            row: *row,
            relative: relative.copied(),
            group: middle.exp(),
            distance,
        })
    };
    rows.iter().filter_map(odd).collect()
}

/// What a round trip of context switching is made of: its token passes two pipes, which is two
/// calls each for both tasks, and is handed over twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handover {
    /// A round trip, and the calls in it as one task makes them in Pipe Throughput, us.
    pub trip_us: f64,
    pub calls_us: f64,
}

impl Handover {
    /// From both scores of as many copies, a second; `None` where the calls alone take longer than
    /// the round trip.
    pub fn of(context: f64, pipe: f64, copies: f64) -> Option<Handover> {
        let (trip_us, calls_us) = (1e6 * copies / context, 2e6 * copies / pipe);
        let sound = trip_us.is_finite() && calls_us.is_finite() && calls_us > 0.0 && trip_us > calls_us;
        sound.then_some(Handover { trip_us, calls_us })
    }

    /// One way: waking the other task, waiting and switching to it, us.
    pub fn one_way_us(&self) -> f64 {
        (self.trip_us - self.calls_us) / 2.0
    }
}

/// A rise of scores above what copies can give by less than this share is scatter.
const SCATTER: f64 = 0.1;

/// A test whose many copies did more than this many times the work of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Beyond {
    test: &'static Test,
    copies: usize,
    /// The score of all copies over that of one.
    times: f64,
    /// The series of the many.
    key: String,
}

impl Beyond {
    /// From the scores of one copy and of `copies` on `cpus` CPUs; `None` where they can give as
    /// much together.
    pub fn of(
        test: &'static Test,
        scores: [f64; 2],
        copies: i64,
        cpus: Option<usize>,
        key: &str,
    ) -> Option<Beyond> {
        let copies = usize::try_from(copies).ok().filter(|copies| *copies > 1)?;
        let most = copies.min(cpus.unwrap_or(copies)) as f64;
        let times = scores[1] / scores[0];
        let beyond = times.is_finite() && times > most * (1.0 + SCATTER);
        beyond.then(|| Beyond { test, copies, times, key: key.to_string() })
    }
}

/// What is said about such tests, of a run and of an imported report alike; `None` without any.
pub fn more_than_copies(rows: &[Beyond]) -> Option<Finding> {
    let most = rows.iter().max_by(|one, other| one.times.total_cmp(&other.times))?;
    let placed = rows.iter().find(|row| row.test.name == CONTEXT);
    let named = placed.unwrap_or(most);
    let fact = |row: &Beyond| {
        let label = format!("{}, {} copies over one", row.test.title, row.copies);
        Fact::new(label, format!("{:.2} times", row.times), &row.key)
    };
    Some(Finding::warning(MORE_THAN_COPIES, format!(
        "{} copies of {} score {:.1} times one copy. Compare pinned figures.",
        named.copies, named.test.title, named.times
    ))
        .cause(match placed {
            Some(_) => "Alone, the two tasks of a copy probably ran on two CPUs, and each hand-over waited for \
                        a wake-up. On a busy host they share one CPU. The one-copy score includes wake-ups, the \
                        other only switches.",
            None => "N copies cannot do more than N times the work of one. The single copy was disturbed, or \
                     its clock was limited.",
        })
        .facts(rows.iter().map(fact))
        .confirm(format!("assay unixbench {}", named.test.run))
        .advice("Compare hosts by pinned figures: both tasks on one CPU, and on two CPUs.")
        .concerns(rows.iter().map(|row| row.key.clone())))
}

#[cfg(test)]
mod tests {
    use super::super::TESTS;
    use super::*;

    fn rows(ratio: impl Fn(&str) -> f64) -> Vec<RowRatio> {
        TESTS.iter().map(|test| RowRatio { test, ratio: ratio(test.name), half: 0.0 }).collect()
    }

    #[test]
    fn equal_tables_have_no_odd_row_and_a_planted_one_is_named_alone() {
        assert_eq!(odd_rows(&rows(|_| 1.0)), []);
        for planted in [0.6, 1.6] {
            for place in TESTS {
                let found = odd_rows(&rows(|name| if name == place.name { planted } else { 1.0 }));
                let names: Vec<&str> = found.iter().map(|odd| odd.row.test.name).collect();
                assert_eq!(names, if place.placed { vec![place.name] } else { Vec::new() });
                let relative = found.first().and_then(|odd| odd.relative).map(|relative| relative.test.name);
                assert_eq!(relative, (place.name == CONTEXT).then_some(ALONE));
            }
        }
        // What scatters by a fifth everywhere is no oddity, and five rows are no group.
        assert_eq!(odd_rows(&rows(|name| if name.len() % 2 == 0 { 1.2 } else { 0.9 })), []);
        assert_eq!(odd_rows(&rows(|name| if name == CONTEXT { 3.0 } else { 1.0 })[4..9]), []);
    }

    #[test]
    fn an_interval_that_reaches_the_others_is_no_oddity() {
        let mut rows = rows(|name| if name == CONTEXT { 1.6 } else { 1.0 });
        assert_eq!(odd_rows(&rows).len(), 1);
        rows.iter_mut().for_each(|row| row.half = 0.2);
        assert_eq!(odd_rows(&rows), []);
    }

    #[test]
    fn a_round_trip_is_its_calls_and_two_ways() {
        let way = Handover::of(100_000.0, 1_000_000.0, 1.0).expect("longer than its calls");
        assert!((way.trip_us - 10.0).abs() < 1e-9 && (way.one_way_us() - 4.0).abs() < 1e-9);
        // Four copies do four times as much in the same time.
        assert_eq!(Handover::of(400_000.0, 4_000_000.0, 4.0).map(|way| way.one_way_us()), Some(4.0));
        assert_eq!(Handover::of(600_000.0, 1_000_000.0, 1.0), None);
        assert_eq!(Handover::of(0.0, 1.0, 1.0), None);
    }

    #[test]
    fn no_more_than_the_copies_or_the_cpus() {
        let times =
            |scores: [f64; 2], copies, cpus| Some(Beyond::of(&TESTS[7], scores, copies, cpus, "")?.times);
        assert_eq!(times([1.0, 8.0], 4, Some(4)), Some(8.0));
        assert_eq!(times([1.0, 4.2], 4, Some(4)), None);
        assert_eq!(times([1.0, 4.2], 4, Some(2)), Some(4.2));
        assert_eq!(times([1.0, 4.2], 4, None), None);
        assert_eq!(times([1.0, 4.2], 1, Some(4)), None);
        assert_eq!(times([0.0, 4.2], 4, Some(4)), None);
        assert_eq!(more_than_copies(&[]), None);
    }
}
