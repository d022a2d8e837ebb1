//! Results against each other: first in what their environments differ, then each metric that both
//! have, as a ratio with its interval, and in words. What cannot be compared is refused, with the
//! factor that forbids it.
//!
//! The arms were measured one after the other, on one host or on two: no pairs, so the interval
//! is that of two independent medians of processes, widened by what the levels of whole runs add
//! (`stats::contrast`). A metric counts as different only where the interval excludes 1 *and* p
//! stays below 5 % after correction for the many metrics that were looked at, *and* nothing from
//! outside disturbed one of them; as the same within a margin where two one-sided tests say so.
//! Within one host core-bound metrics are compared at the clock of A's run.
//!
//! Invariant: pure: never does I/O and never sees a live host.

#![forbid(unsafe_code)]

mod about;
mod answer;
mod apart;
mod arm;
mod changes;
mod clock;
mod components;
mod counterparts;
mod curves;
mod environment;
mod key_rows;
mod matching;
mod occupancy;
pub mod peers;
pub mod rows;
mod saved;
#[cfg(test)]
mod tests;
pub mod trend;
mod unixbench;
mod words;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

pub use about::{About, day_range, moment, names, processor};
pub use answer::{Answer, GroupAnswer, MAX_ROWS, Outcome, ranking, ratio_words};
pub use arm::{AtOneClock, ComparisonSide, Member};
pub use components::{Component, Pooled, component_of};
pub use curves::OverlaidCurves;
pub use key_rows::{Row, RowOutcome, between_hosts};
pub use matching::unit_scale;
pub use words::Relation;

use clock::ClockScaling;
use diagnose::views::Views;
use matching::Match;
use model::vocabulary::selftest::PLANTED;
use model::{Better, Finding, Grade, figure};
use stats::contrast::{self, Clocks, Contrast, Earlier, Family, Side, contrast, level};
use stats::multiple::benjamini_hochberg;
use stats::order::{Interval, median};

/// Share of false ones that is accepted among the metrics called different.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// What differs by less is not called different, however sure that is.
pub const MIN_DIFFERENCE: f64 = 0.02;

/// Shares within which metrics are called the same, the first that holds.
const MARGINS: [f64; 3] = [0.02, 0.05, 0.10];

/// The largest of them, unless another was asked for.
pub const MARGIN: f64 = MARGINS[2];

/// Flaws of a side's files that are listed; a folder may have hundreds.
const SHOWN_FLAWS: usize = 4;

/// How to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest share within which a metric is called the same.
    pub margin: f64,
    /// Scale what the core's clock decides to A's clock, whatever hosts the two are of.
    pub common_clock: bool,
    /// Another result of what A is: its ratio to A is the noise floor of each metric, and the
    /// margin is twice that.
    pub again: Option<ComparisonSide>,
    /// Earlier runs of what A is: how far they lie apart says how far equal runs do.
    pub history: Option<ComparisonSide>,
}

impl Default for Options {
    fn default() -> Options {
        Options { margin: MARGIN, common_clock: false, again: None, history: None }
    }
}

/// What two results come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Host and file of each.
    pub names: [[String; 2]; 2],
    /// Runs that each consists of.
    pub runs: [usize; 2],
    /// What each is, and when it ran.
    pub about: [About; 2],
    /// Why it means nothing that the two are equal; `None` unless they are one and the same.
    pub twins: Option<String>,
    /// CPUs and caches of each, reported and measured.
    pub views: [Option<Views>; 2],
    /// What differs between the environments.
    pub environment: Vec<Difference>,
    /// Settings that only one of the two reports.
    pub untold: Vec<String>,
    /// Rules whose problems and warnings only one of the two has.
    pub rules_alone: [Vec<String>; 2],
    /// What is to be known before anything is read.
    pub warnings: Vec<String>,
    /// What the rows of the two say against each other.
    pub findings: Vec<Finding>,
    /// The clock to which core-bound metrics were scaled, GHz.
    pub common_clock_ghz: Option<f64>,
    /// By component, and all together, over the headline metrics; every ratio turned so that above
    /// 1 is better.
    pub components: Vec<Component>,
    pub index: Option<Pooled>,
    pub metrics: Vec<Compared>,
    pub refused: Vec<Refused>,
    /// Curves of work over CPU% that both have.
    pub curves: Vec<OverlaidCurves>,
    /// Series with a value that the other result does not have, in A and in B.
    pub alone: [usize; 2],
    /// What those are called, each once.
    pub names_alone: [Vec<String>; 2],
    /// Where the two have nothing in common, in which settings those differ that are nearest.
    pub nearest: Option<String>,
    /// How many values a figure of an imported side has at most; 0 of a run.
    pub imported_values: [usize; 2],
    /// The largest share within which metrics are called the same.
    pub margin: f64,
    /// A side was imported: Assay did not watch the measurement.
    pub imported: bool,
}

/// One thing that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    pub label: String,
    pub a: String,
    pub b: String,
}

/// One metric that both have.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Metric")]
pub struct Compared {
    /// The key in B, of what another tool measured in its own way A's.
    pub key: String,
    /// The key in A.
    pub key_a: String,
    #[serde(skip)]
    pub bench: String,
    /// The part of the host that it is about.
    pub component: String,
    pub title: String,
    pub unit: String,
    #[serde(skip)]
    pub better: Better,
    pub headline: bool,
    /// Medians, in B's unit, at the common clock where `scaled`.
    pub a: f64,
    pub b: f64,
    /// Brought to one clock.
    pub scaled: bool,
    /// The worse known of the two.
    pub grade: Grade,
    /// B/A.
    pub ratio: f64,
    /// 95 % interval of the ratio, with what whole runs differ by; null where too little is known.
    pub ci95: Option<[f64; 2]>,
    /// Of the half-width of ln of that interval: what the levels of whole runs add, which metrics
    /// share.
    #[serde(skip)]
    pub shared_half: f64,
    /// The largest share within which it may be called the same.
    pub margin: f64,
    #[serde(rename = "verdict")]
    pub word: Relation,
    /// The verdict with what belongs to it: `same within 5 %`, `faster by 8–12 %`, `cannot tell:
    /// at most 14 % apart`.
    pub words: String,
    /// The share of difference that nine of ten such comparisons would show.
    pub would_show: Option<f64>,
    /// Further runs of each that decide whether the two are the same within the margin; only
    /// if that is undecided.
    pub more_runs: Option<usize>,
    /// What is to be known when reading it: verdicts of the two, differences of meaning.
    pub note: String,
}

/// One metric that both have in some form, and that must not be compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Refused {
    /// The key in A.
    pub key: String,
    /// The nearest in B.
    pub key_b: String,
    /// What forbids it: `placement`, `pages`, `beside`, `knobs`, `size`, `unit`, `samples`,
    /// `clock-source`, `value`, the rule that rejected one of the two (`background-load`, `steal`,
    /// ...), or `verdict` where its values did.
    pub factor: String,
    /// Whether the two were measured under different conditions (else something that a comparison
    /// needs is missing).
    pub conditions: bool,
    pub headline: bool,
    pub reason: String,
    /// The value in A with its unit.
    pub a: String,
    /// The value in B with its unit.
    pub b: String,
    /// Both values in B's unit, if A's converts to it.
    #[serde(skip)]
    pub values: [f64; 2],
    #[serde(skip)]
    pub unit: String,
    #[serde(skip)]
    pub title: String,
    #[serde(skip)]
    pub better: Better,
    /// Whether A's value was rejected, and B's.
    #[serde(skip)]
    pub rejected: [bool; 2],
}

/// What one pair comes to before many are looked at together.
struct PairResult<'a> {
    pair: Match<'a>,
    /// Medians, in one unit and, where that is so, at one clock.
    values: [f64; 2],
    scaled: bool,
    /// `None` where one of the two has too few processes for an interval.
    contrast: Option<Contrast>,
    /// What is not known of their clocks.
    clocks: Clocks,
    /// The share below which they are not called different.
    least: f64,
    /// The shares within which it may be called the same, rising.
    margins: Vec<f64>,
}

/// Nothing unless the findings of both are known.
fn rules_alone(a: &ComparisonSide, b: &ComparisonSide) -> [Vec<String>; 2] {
    let both = a.rules.as_ref().zip(b.rules.as_ref());
    both.map_or_else(Default::default, |(a, b)| [a - b, b - a].map(|rules| rules.into_iter().collect()))
}

/// Compares B with A.
pub fn compare(a: &ComparisonSide, b: &ComparisonSide, options: &Options) -> Comparison {
    let (environment, untold) = environment::differences(a, b);
    let mut comparison = Comparison {
        names: [a, b].map(|arm| [arm.host.clone(), arm.file.clone()]),
        runs: [a.runs, b.runs],
        about: [a, b].map(About::of),
        twins: twins(a, b),
        views: [a.views.clone(), b.views.clone()],
        environment,
        untold,
        rules_alone: rules_alone(a, b),
        warnings: warnings(a, b, options),
        curves: curves::overlaid(a, b),
        imported_values: [a, b].map(apart::imported_values),
        margin: options.margin,
        imported: a.imported || b.imported,
        ..Comparison::default()
    };
    let matches = matching::matches(a, b, &mut comparison.refused);
    let refused = comparison.refused.iter().map(|one| [one.key.as_str(), one.key_b.as_str()]);
    let both = matches.iter().map(|pair| [pair.a.key.as_str(), pair.b.key.as_str()]).chain(refused);
    let both: Vec<[&str; 2]> = both.collect();
    let alone = [(a, 0), (b, 1)].map(|(arm, side)| {
        let keys: BTreeSet<&str> = both.iter().map(|pair| pair[side]).collect();
        apart::alone(arm, &keys)
    });
    comparison.nearest = if both.is_empty() { apart::nearest(a, b) } else { None };
    let [(many_a, names_a), (many_b, names_b)] = alone;
    (comparison.alone, comparison.names_alone) = ([many_a, many_b], [names_a, names_b]);
    let pairs = matches.iter().filter(|pair| pair.headline).map(|pair| (pair.a, pair.b));
    let common = clock::common(a, b, options.common_clock, pairs);
    let mut all: Vec<PairResult> = Vec::new();
    for pair in matches {
        match found([a, b], pair, common, options) {
            Ok(found) => all.push(found),
            Err(pair) => {
                let reason = "there is no ratio, as a value is 0 or below".to_string();
                comparison.refused.push(pair.refused("value", reason));
            }
        }
    }
    let p: Vec<f64> = all.iter().filter_map(|found| Some(found.contrast?.p)).collect();
    let mut adjusted = benjamini_hochberg(&p).into_iter();
    for found in &all {
        let p = found.contrast.and_then(|_| adjusted.next()).unwrap_or(1.0);
        comparison.metrics.push(compared(found, p, comparison.imported));
    }
    comparison.common_clock_ghz = clock_of(common, &all);
    comparison.warnings.extend(words::of_clocks(common, &all));
    comparison.warnings.extend(words::of_tools(&all));
    comparison.findings = rows::findings(a, b, &comparison.metrics);
    (comparison.components, comparison.index) = components::pooled(&comparison.metrics);
    comparison
}

/// The clock at which metrics were compared, GHz, where some were.
fn clock_of(common: ClockScaling, all: &[PairResult]) -> Option<f64> {
    let scaled = all.iter().find(|found| found.scaled)?;
    match common {
        ClockScaling::Asked(ghz) => Some(ghz),
        _ => scaled.pair.a.at_clock.as_ref().map(|at_clock| at_clock.ghz),
    }
}

/// Why it means nothing that the two are equal: they are the same runs, or hold the same numbers.
fn twins(a: &ComparisonSide, b: &ComparisonSide) -> Option<String> {
    let numbers = |arm: &ComparisonSide| -> Vec<(String, Vec<u64>)> {
        let bits = |member: &Member| member.medians.iter().map(|value| value.to_bits()).collect();
        arm.valued().map(|member| (member.key.clone(), bits(member))).collect()
    };
    let shared = a.shared_runs(b);
    if shared > 0 && shared == a.identities.len().max(b.identities.len()) {
        let what = if shared == 1 { "run" } else { "runs" };
        return Some(format!("A and B are the same {what}: equal figures prove nothing"));
    }
    let equal = shared == 0 && a.valued().next().is_some() && numbers(a) == numbers(b);
    equal.then(|| "A and B have identical numbers: equal figures prove nothing".to_string())
}

/// What is to be said before any number.
fn warnings(a: &ComparisonSide, b: &ComparisonSide, options: &Options) -> Vec<String> {
    let mut warnings: Vec<String> = twins(a, b).into_iter().collect();
    let shared = a.shared_runs(b);
    if warnings.is_empty() && shared > 0 {
        let what = if shared == 1 { "1 run is" } else { &format!("{shared} runs are") };
        warnings.push(format!("{what} in A and in B: the two look more alike than they are"));
    }
    if a.pretended && b.pretended {
        warnings.push("the samples of A and B were invented (--pretend)".to_string());
    }
    warnings.extend(changes::warnings([a, b]));
    for (name, arm) in [("A", Some(a)), ("B", Some(b)), ("A2", options.again.as_ref())] {
        let planted = arm.and_then(|arm| arm.environment.iter().find(|(label, _)| label == PLANTED));
        warnings
            .extend(planted.map(|(_, words)| format!("{name} was slowed on purpose (--planted): {words}")));
        let flaws = arm.map(|arm| arm.flaws.as_slice()).unwrap_or_default();
        warnings.extend(flaws.iter().take(SHOWN_FLAWS).map(|flaw| format!("{name}: {flaw}")));
        if let Some(more @ 1..) = flaws.len().checked_sub(SHOWN_FLAWS) {
            warnings.push(format!("{name}: {more} more flaws of its files are not listed"));
        }
    }
    if options.common_clock && a.clock_ghz().is_none() {
        warnings.push("A's core clock is unknown: nothing was scaled to it".to_string());
    }
    if options.common_clock && b.clock_ghz().is_none() {
        warnings.push("B's core clock is unknown: nothing of B was scaled".to_string());
    }
    warnings
}

fn found<'a>(
    arms: [&ComparisonSide; 2],
    pair: Match<'a>,
    common: ClockScaling,
    options: &Options,
) -> Result<PairResult<'a>, Match<'a>> {
    let (both, clocks) = clock::brought(common, arms, pair.a, pair.b);
    let scaled = both.is_some();
    let medians = both.unwrap_or_else(|| [pair.a.medians.clone(), pair.b.medians.clone()]);
    let own = |member: &Member, medians: &[f64]| {
        if scaled { median(medians).unwrap_or(f64::NAN) } else { member.median }
    };
    let values = [own(pair.a, &medians[0]) * pair.scale, own(pair.b, &medians[1])];
    let ratio = values[1] / values[0];
    if !(ratio.is_finite() && ratio > 0.0 && values[0] > 0.0) {
        return Err(pair);
    }
    let side = |member: &Member, medians: &[f64]| match member.given_interval {
        Some(([low, high], n)) => Side::told(member.median, Interval { low, high }, n, member.runs()),
        None => Side::of(medians, member.runs()),
    };
    let sides = side(pair.a, &medians[0]).zip(side(pair.b, &medians[1]));
    let family = match pair.b.case.bench.split('.').next() {
        _ if scaled => Family::AtOneClock,
        Some("memory") => Family::Memory,
        _ => Family::Other,
    };
    let history = options.history.iter().flat_map(|history| history.runs_of(pair.a, scaled));
    let history: Vec<Earlier> = history.collect();
    let contrast = sides.map(|(a, b)| {
        let (a, level) = (a.moved(pair.scale.ln()), level(family, [&a, &b], &history));
        contrast(&a, &b, level, clocks)
    });
    let floor = floor(pair.a, options).map_or(0.0, |floor| 2.0 * floor);
    let (least, largest) = (floor.max(MIN_DIFFERENCE), floor.max(options.margin));
    let mut margins: Vec<f64> = MARGINS.into_iter().filter(|margin| *margin < largest).collect();
    margins.push(largest);
    Ok(PairResult { pair, values, scaled, contrast, clocks, least, margins })
}

/// How far the other result of what A is is from A in this metric, a share.
fn floor(a: &Member, options: &Options) -> Option<f64> {
    let other = options.again.as_ref()?.valued().find(|member| member.key == a.key)?;
    let apart = (other.median / a.median).ln().abs().exp_m1();
    apart.is_finite().then_some(apart)
}

fn compared(found: &PairResult, p: f64, imported: bool) -> Compared {
    let (a, b) = (found.pair.a, found.pair.b);
    // A figure of another tool is listed under A's name, so that several tools share A's line.
    let line = if found.pair.across { a } else { b };
    let (word, words) = words::conclude(found, p, imported);
    let interval = found.contrast.map(|contrast| contrast.interval);
    let edge = found.margins.last().map_or(0.0, |margin| margin.ln_1p());
    let more_runs = found.contrast.filter(|_| word == Relation::Inconclusive).and_then(|contrast| {
        let [of_a, of_b] = found.pair.runs();
        contrast::more_runs(contrast.sameness.half_width(), edge, of_a.min(of_b))
    });
    Compared {
        key: line.key.clone(),
        key_a: a.key.clone(),
        bench: line.case.bench.to_string(),
        component: components::component(line),
        title: line.title.clone(),
        unit: b.metric.unit.to_string(),
        better: b.metric.better,
        headline: found.pair.headline,
        a: found.values[0],
        b: found.values[1],
        scaled: found.scaled,
        grade: a.verdict.grade.max(b.verdict.grade),
        ratio: found.values[1] / found.values[0],
        ci95: interval.map(|interval| [interval.low.exp(), interval.high.exp()]),
        shared_half: found.contrast.map_or(0.0, |contrast| contrast.of_levels),
        margin: edge.exp_m1(),
        word,
        words,
        would_show: found.contrast.map(|contrast| contrast.would_show()),
        more_runs,
        note: words::note(&found.pair),
    }
}

impl Compared {
    /// The ratio turned so that above 1 is better; `None` of a metric that has no better side.
    pub fn turned(&self) -> Option<(f64, Option<Interval>)> {
        let interval = self.ci95.map(|[low, high]| Interval { low, high });
        match self.better {
            Better::Higher => Some((self.ratio, interval)),
            Better::Lower => {
                let turned =
                    interval.map(|interval| Interval { low: 1.0 / interval.high, high: 1.0 / interval.low });
                Some((1.0 / self.ratio, turned))
            }
            Better::Neither => None,
        }
    }

    /// Both values as people read them.
    pub fn figures(&self) -> [String; 2] {
        [self.a, self.b].map(|value| figure(value, &self.unit))
    }
}

impl Comparison {
    /// Whether a headline that both have was refused because the conditions of the two differ.
    pub fn refuses(&self) -> bool {
        self.refused.iter().any(|one| one.conditions && one.headline)
    }
}
