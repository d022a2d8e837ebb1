//! What a busy sibling or second core costs: each call alone, with it, and with SMT off.

use std::collections::BTreeMap;

use machine::Machine;
use model::vocabulary as ids;
use model::{Beside, Better, Case, Params};
use stats::analysis::{CONFIDENCE, Judged};
use stats::compare::{MIN_MARGIN, Outcome, Ratio, conclude, paired_ratio};
use stats::index::geometric_mean;
use stats::order::median;

/// What is compared with a case alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    SameWork,
    Spinner,
    Off,
}

pub const VARIANTS: [Variant; 3] = [Variant::SameWork, Variant::Spinner, Variant::Off];

impl Variant {
    /// What a case is a variant of; `None`: it stands for itself, or has other knobs or neighbours.
    pub fn of(case: &Case) -> Option<Variant> {
        let off = case.knobs.get("smt").is_some_and(|value| value == "off");
        match (case.placement.beside, off) {
            (Beside::Idle, true) => Some(Variant::Off),
            (Beside::SameWork, false) => Some(Variant::SameWork),
            (Beside::Spinner, false) => Some(Variant::Spinner),
            _ => None,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Variant::SameWork => "same work beside",
            Variant::Spinner => "spinner beside",
            Variant::Off => "SMT off",
        }
    }
}

/// A series of a case alone, with what its variants cost.
pub struct Row<'a> {
    pub alone: &'a Judged,
    /// Its call involves further processes: a partner, a ring, a child.
    pub several: bool,
    /// In the order of [`VARIANTS`].
    pub costs: [Option<Cost<'a>>; 3],
}

/// How many times as long something takes as alone.
pub struct Cost<'a> {
    pub judged: &'a Judged,
    pub ratio: Ratio,
    pub outcome: Outcome,
    /// The same in each pass that has both.
    pub by_pass: BTreeMap<u32, f64>,
}

fn pays(ratio: &Ratio, outcome: Outcome) -> bool {
    outcome == Outcome::Different && ratio.ratio > 1.0
}

fn gains(ratio: &Ratio, outcome: Outcome) -> bool {
    outcome == Outcome::Different && ratio.ratio < 1.0
}

fn same(_: &Ratio, outcome: Outcome) -> bool {
    outcome == Outcome::Equivalent
}

impl Cost<'_> {
    pub fn pays(&self) -> bool {
        pays(&self.ratio, self.outcome)
    }

    pub fn gains(&self) -> bool {
        gains(&self.ratio, self.outcome)
    }

    pub fn same(&self) -> bool {
        same(&self.ratio, self.outcome)
    }
}

/// Every headline series that was measured alone and in a variant, in the order of the plan.
pub fn rows(series: &[Judged]) -> Vec<Row<'_>> {
    let mut variants: BTreeMap<String, [Option<&Judged>; 3]> = BTreeMap::new();
    for judged in series.iter().filter(|judged| judged.analysis.estimate.is_some()) {
        if let Some(variant) = Variant::of(&judged.series.case) {
            variants.entry(alone_key(judged)).or_default()[variant as usize] = Some(judged);
        }
    }
    let headline = series.iter().filter(|judged| {
        let sided = judged.series.metric.better != Better::Neither;
        judged.series.metric.headline && sided && judged.analysis.estimate.is_some()
    });
    let rows = headline.filter_map(|alone| {
        let found = variants.get(&alone.series.key)?;
        let costs = found.map(|judged| cost(alone, judged?));
        costs.iter().any(Option::is_some).then(|| Row { alone, several: several(&alone.series.case), costs })
    });
    rows.collect()
}

/// The key that a variant's series has alone.
fn alone_key(judged: &Judged) -> String {
    let mut case = judged.series.case.clone();
    case.placement.beside = Beside::Idle;
    case.knobs.remove("smt");
    case.series_key(&judged.series.point, &judged.series.metric.name)
}

/// Tasks of their own seats, children that are made, or a number of processes as a parameter.
fn several(case: &Case) -> bool {
    let many = |params: &Params| {
        [ids::sched::param::PROCESSES, ids::hackbench::param::TASKS]
            .iter()
            .any(|name| params.get(*name).and_then(|value| value.number()).is_some_and(|count| count > 1.0))
    };
    case.placement.seats.len() > 1 || case.bench.starts_with("process.") || many(&case.params)
}

/// Pass by pass, what the variant costs: pairs of medians of processes that ran in the same pass.
fn cost<'a>(alone: &Judged, judged: &'a Judged) -> Option<Cost<'a>> {
    let by_pass = |judged: &Judged| -> BTreeMap<u32, f64> {
        let processes = judged.series.processes.iter();
        processes.filter_map(|process| Some((process.pass, median(&process.values)?))).collect()
    };
    let (own, other) = (by_pass(alone), by_pass(judged));
    let longer = |own: f64, other: f64| match alone.series.metric.better {
        Better::Higher => own / other,
        _ => other / own,
    };
    let pairs = own.iter().filter_map(|(pass, own)| Some((*pass, longer(*own, *other.get(pass)?))));
    let by_pass: BTreeMap<u32, f64> = pairs.filter(|(_, cost)| cost.is_finite() && *cost > 0.0).collect();
    let costs: Vec<f64> = by_pass.values().copied().collect();
    let ratio = paired_ratio(&vec![1.0; costs.len()], &costs, CONFIDENCE)?;
    // Rejected figures decide nothing.
    let usable = alone.analysis.verdict.usable() && judged.analysis.verdict.usable();
    let outcome = if usable { conclude(&ratio, MIN_MARGIN) } else { Outcome::Inconclusive { needed: None } };
    Some(Cost { judged, outcome, ratio, by_pass })
}

/// The costs of a class of calls in a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub rows: usize,
    pub pays: usize,
    pub same: usize,
    pub gains: usize,
    /// Geometric mean of all usable costs that have an interval.
    pub mean: Option<f64>,
}

impl Tally {
    pub fn of(rows: &[Row], several: bool, variant: Variant) -> Tally {
        let costs = rows.iter().filter(|row| row.several == several);
        let costs: Vec<&Cost> = costs.filter_map(|row| row.costs[variant as usize].as_ref()).collect();
        let count = |which: fn(&Ratio, Outcome) -> bool| {
            costs.iter().filter(|cost| which(&cost.ratio, cost.outcome)).count()
        };
        let known = costs.iter().filter(|cost| cost.outcome != Outcome::Inconclusive { needed: None });
        Tally {
            rows: costs.len(),
            pays: count(pays),
            same: count(same),
            gains: count(gains),
            mean: geometric_mean(&known.map(|cost| cost.ratio.ratio).collect::<Vec<f64>>()),
        }
    }

    /// Whether `hits` rows of one direction are more than chance gives: each interval errs by 2.5 %
    /// per side, so of many rows some stand out.
    fn beyond_chance(&self, hits: usize) -> bool {
        let chance = (1.0 - CONFIDENCE) / 2.0;
        let exactly = |count: usize| {
            let ways = (0..count).map(|k| (self.rows - k) as f64 / (k + 1) as f64).product::<f64>();
            ways * chance.powi(count as i32) * (1.0 - chance).powi((self.rows - count) as i32)
        };
        hits > 0 && 1.0 - (0..hits).map(exactly).sum::<f64>() < 0.05
    }

    /// Whether `count` is more than half of the rows.
    fn mostly(&self, count: usize) -> bool {
        2 * count > self.rows
    }

    fn undecided(&self) -> usize {
        self.rows - self.pays - self.same - self.gains
    }

    /// `3 of 4 pay, 1 undecided; 1.45× on average`.
    pub fn words(&self) -> String {
        let counts = [(self.pays, "pay"), (self.same, "the same"), (self.gains, "faster")];
        let mut parts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} of {} {what}", self.rows))
            .collect();
        if self.undecided() > 0 {
            parts.push(format!("{} undecided", self.undecided()));
        }
        match self.mean {
            Some(mean) => format!("{}; {mean:.2}× as long on average", parts.join(", ")),
            None => parts.join(", "),
        }
    }
}

/// What the neighbours of a run's cases are: `SMT sibling`, or `second core` where they share no
/// core with a seat.
pub fn neighbour(machine: &Machine, rows: &[Row]) -> &'static str {
    let shares = |case: &Case| {
        let placement = &case.placement;
        let mut pairs = placement.seats.iter().zip(&placement.neighbours);
        pairs.any(|(seat, beside)| {
            let both = seat.cpus.union(beside);
            machine.cpus.cores.iter().flatten().any(|core| !both.is_empty() && both.is_subset(&core.cpus))
        })
    };
    let mut busy = rows.iter().flat_map(|row| row.costs[..2].iter().flatten());
    if busy.any(|cost| shares(&cost.judged.series.case)) { "SMT sibling" } else { "second core" }
}

/// Whether the published expectation holds: with SMT merely on, the siblings idle, single-process
/// calls are unaffected and those of several processes pay a little. `None` where nothing was
/// measured with SMT off.
pub fn expectation(rows: &[Row]) -> Option<String> {
    expected([false, true].map(|several| Tally::of(rows, several, Variant::Off)))
}

/// The same of the calls of a single process and those of several.
fn expected([single, several]: [Tally; 2]) -> Option<String> {
    if single.rows + several.rows == 0 {
        return None;
    }
    // A gain by switching it off is what SMT costs while it is merely on. One row of many is
    // chance.
    let pays = |tally: &Tally| tally.beyond_chance(tally.gains);
    let of_single = match single {
        Tally { rows: 0, .. } => "no single-process call was measured",
        _ if pays(&single) => "some single-process calls pay, against the expectation",
        _ if single.beyond_chance(single.pays) => "single-process calls do not pay (some gain)",
        _ if single.mostly(single.same) => "single-process calls are unaffected, as expected",
        _ => "whether single-process calls are unaffected is undecided",
    };
    let of_several = match several {
        Tally { rows: 0, .. } => "none of several processes was measured",
        _ if pays(&several) => "those of several processes pay, as expected",
        _ if several.mostly(several.same + several.pays) => {
            "those of several processes do not pay, against the expectation"
        }
        _ => "whether those of several processes pay is undecided",
    };
    Some(format!(
        "SMT merely on, its second threads idle: {of_single} ({} of {} faster with it off, {} the same); {of_several} \
         ({} of {} faster with it off, {} the same)",
        single.gains, single.rows, single.same, several.gains, several.rows, several.same
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_stand_out_by_chance_decide_nothing() {
        // The least count in this number of rows whose tail of the binomial distribution at 2.5 %
        // is below 5 %.
        for (rows, least) in [(1, 1), (2, 1), (3, 2), (14, 2), (15, 3), (40, 4), (100, 6)] {
            let tally = Tally { rows, ..Tally::default() };
            let decides = |hits: usize| tally.beyond_chance(hits);
            assert!(!decides(least - 1) && decides(least) && decides(rows), "{least} of {rows}");
        }
        assert!(!Tally::default().beyond_chance(0));
    }

    #[test]
    fn rows_without_any_effect_seldom_decide() {
        let mut random = fastrand::Rng::with_seed(7);
        for rows in [2, 14, 40] {
            let tally = Tally { rows, ..Tally::default() };
            let wrong = (0..4000).filter(|_| {
                let hits = (0..rows).filter(|_| random.f64() < (1.0 - CONFIDENCE) / 2.0).count();
                tally.beyond_chance(hits)
            });
            // At most 5 % each; 4000 trials scatter by 0.35 %.
            let wrong = wrong.count() as f64 / 4000.0;
            assert!(wrong < 0.065, "{rows} rows: {wrong}");
        }
    }

    #[test]
    fn what_most_rows_leave_undecided_is_no_answer() {
        let said = |single: [usize; 4], several: [usize; 4]| {
            let tally = |[rows, pays, same, gains]: [usize; 4]| Tally { rows, pays, same, gains, mean: None };
            expected([tally(single), tally(several)]).unwrap_or_default()
        };
        let held = said([40, 0, 30, 1], [10, 0, 2, 6]);
        assert!(held.contains("single-process calls are unaffected, as expected"), "{held}");
        assert!(held.contains("those of several processes pay, as expected"), "{held}");
        let open = said([40, 0, 1, 0], [10, 0, 1, 1]);
        assert!(open.contains("whether single-process calls are unaffected is undecided"), "{open}");
        assert!(open.contains("whether those of several processes pay is undecided"), "{open}");
        let refuted = said([40, 0, 20, 9], [10, 1, 6, 0]);
        assert!(refuted.contains("some single-process calls pay, against the expectation"), "{refuted}");
        assert!(refuted.contains("do not pay, against the expectation"), "{refuted}");
        assert_eq!(said([0; 4], [0; 4]), "");
    }
}
