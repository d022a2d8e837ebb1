//! A demand: what was asked, what was found, and what became of it.

use diagnose::key_figures::{Group, named};
use model::VerdictKind;
use model::pattern::KeyParts;
use schemars::JsonSchema;
use serde::Serialize;
use stats::spend::firm;

use super::limit::{Limit, Pick, Standing, standing};
use super::spec::is_like;
use super::subject::{Figure, Subject};

/// One thing asked, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Demand {
    pub group: String,
    /// What people call it beside its group.
    pub label: String,
    /// Its name in the spec, or the series that it is.
    pub key: String,
    pub asked: String,
    /// What was found, with its unit; empty where nothing was measured.
    pub measured: String,
    pub value: Option<f64>,
    /// The 95 % interval, in `unit`.
    pub low_high: Option<[f64; 2]>,
    pub unit: String,
    pub standing: Standing,
    /// How far the interval's near end is from the limit, as a share of the limit.
    pub by: Option<f64>,
    /// Why it is undecided or missed, where the figure itself does not say it; may be empty.
    pub why: String,
    /// What would decide it; may be empty.
    pub confirm: String,
    /// The series whose further visits may decide it, or decide it otherwise; empty where none may.
    #[serde(skip)]
    pub open: String,
    /// The series whose figure `value` is, where that may be used; empty of one read off a curve.
    #[serde(skip)]
    pub series: Option<String>,
    /// Runs of different times that missed it, where such were asked for (`--confirmed`).
    pub missed_in: Option<usize>,
    /// What the same demand of another run is known by.
    #[serde(skip)]
    pub again: String,
}

impl Demand {
    /// What people call it where its group does not stand beside it.
    pub fn alone(&self) -> &str {
        named(&self.key).map_or(self.label.as_str(), |figure| figure.alone)
    }
}

/// A demand of which nothing is known yet.
pub fn demand(group: &str, label: impl Into<String>, key: &str, asked: String) -> Demand {
    Demand {
        group: group.to_string(),
        label: label.into(),
        key: key.to_string(),
        asked,
        measured: String::new(),
        value: None,
        low_high: None,
        unit: String::new(),
        standing: Standing::Undecided,
        by: None,
        why: String::new(),
        confirm: String::new(),
        open: String::new(),
        series: None,
        missed_in: None,
        again: key.to_string(),
    }
}

/// A figure that a run does not have: open, if it is not optional, with what would measure it; of a
/// summary that had no room it is not known.
pub fn absent(own: Demand, limit: &Limit, subject: &Subject) -> Demand {
    let figure = named(&own.key);
    let is_series = figure.is_none_or(|figure| !figure.is_size() && !figure.between_hosts);
    let untold = subject.left_out > 0 || (subject.readings.is_none() && !is_series);
    if untold && !limit.optional {
        return Demand { why: TOLD_BY_RUN_FILES.into(), standing: Standing::Undecided, ..own };
    }
    let why = match (subject.unfinished, beside_pages(&limit.series, subject)) {
        (_, Some(glob)) => format!("not measured; {glob} was"),
        (true, None) => "not measured: the run is incomplete".to_string(),
        (false, None) => "not measured".to_string(),
    };
    if limit.optional {
        return Demand { standing: Standing::NotAsked, why, ..own };
    }
    let key = figure.map_or(own.key.as_str(), |figure| figure.patterns().first().unwrap_or(&""));
    let bench = KeyParts::of(key).bench;
    Demand {
        standing: Standing::Undecided,
        why,
        confirm: measure(if bench.contains('*') { "" } else { bench }),
        ..own
    }
}

const TOLD_BY_RUN_FILES: &str = "the summary does not hold it: check the run file";

/// The glob that finds something with kinds of pages behind its placement, where it does not
/// without.
fn beside_pages(glob: &str, subject: &Subject) -> Option<String> {
    let (place, rest) = glob.split_at(glob.find(['?', '#', '/']).unwrap_or(glob.len()));
    let wider = format!("{place}+*{rest}");
    let found = || subject.figures.iter().any(|figure| is_series(&wider, figure));
    (place.contains('@') && !place.contains(['+', '*']) && found()).then_some(wider)
}

/// The series of a figure that may be used.
pub fn usable(figure: &Figure) -> Option<String> {
    let usable = !matches!(figure.verdict, VerdictKind::Rejected | VerdictKind::Skipped);
    usable.then(|| figure.key.clone())
}

/// Why a figure decides nothing, whatever its value is.
pub fn doubt(figure: &Figure, limit: &Limit) -> Option<String> {
    let counts = match limit.verdict.as_slice() {
        [] => figure.verdict != VerdictKind::Rejected,
        some => some.contains(&figure.verdict),
    };
    let because = if figure.reason.is_empty() { String::new() } else { format!(": {}", figure.reason) };
    match figure.verdict {
        VerdictKind::Skipped => Some(format!("skipped{because}")),
        VerdictKind::Rejected => Some(format!("rejected{because}")),
        _ if !counts => Some(format!("the spec does not count its verdict{because}")),
        _ => None,
    }
}

/// A demand that its interval decides, or leaves open.
pub fn decided(own: Demand, figure: &Figure, ends: [f64; 2], [min, max]: [Option<f64>; 2]) -> Demand {
    let widened = own.value.map_or(ends, |value| firm(value, ends));
    let is_open = standing(widened, min, max).0 == Standing::Undecided;
    let own = Demand { open: if is_open { figure.key.clone() } else { String::new() }, ..own };
    match standing(ends, min, max) {
        (Standing::Undecided, by) => Demand { by, ..undecided(own, figure, String::new()) },
        (standing, by) => Demand { standing, by, ..own },
    }
}

/// A demand that is open, with what would decide it.
pub fn undecided(own: Demand, figure: &Figure, why: String) -> Demand {
    let confirm = measure(KeyParts::of(&figure.key).bench);
    Demand { standing: Standing::Undecided, why, confirm, ..own }
}

/// What measures a benchmark well; all of them where none is named.
fn measure(bench: &str) -> String {
    match bench.is_empty() {
        true => "assay run --profile full".to_string(),
        false => format!("assay run --only {bench} --profile full"),
    }
}

/// What a glob asks of series that a summary had no room for; nothing where it names one series, or
/// asks for the best and one that is seen will do.
pub fn left_out(limit: &Limit, asked: &str, subject: &Subject, seen: &[Demand]) -> Option<Demand> {
    let is_one = limit.series.contains('#') && !limit.series.contains('*');
    let will_do = limit.pick == Pick::Best && seen.iter().all(|demand| demand.standing == Standing::Met);
    let why = match subject.left_out {
        0 => return None,
        1 => "the summary leaves out 1 figure: check the run file".to_string(),
        count => format!("the summary leaves out {count} figures: check the run file"),
    };
    let own = of_series(&limit.series, &format!("{}, others", limit.series), asked.to_string());
    (!is_one && !will_do).then_some(Demand { why, ..own })
}

/// A demand of a series, in its group.
pub fn of_series(key: &str, label: &str, asked: String) -> Demand {
    demand(Group::of_bench(KeyParts::of(key).bench).word(), label, key, asked)
}

/// Whether a glob names a series: the whole key, or its beginning up to the metric where the glob
/// names no metric and the series is what its benchmark is about.
pub fn is_series(glob: &str, figure: &Figure) -> bool {
    let whole = is_like(glob, &figure.key);
    let short = figure.key.split('#').next().unwrap_or_default();
    whole || (!glob.contains('#') && figure.headline && is_like(glob, short))
}
