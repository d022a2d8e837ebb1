//! Results against each other: first in what their environments differ, then each metric that both have, as a ratio
//! with its interval, and in words. What cannot be compared is refused, with the factor that forbids it.
//!
//! The arms were measured one after the other, on one machine or on two: no pairs, so the interval is that of two
//! independent medians of processes, widened by what the levels of whole runs add (`stats::shift`). A metric counts as
//! different only where the whole interval lies outside the margin *and* the two arms are told apart after correction for
//! the many metrics that were looked at, *and* nothing from outside disturbed one of them.
//!
//! Invariant: pure: never does I/O and never sees a live host.

#![forbid(unsafe_code)]

mod arm;
mod clock;
mod components;
mod curves;
mod environment;
mod matching;
mod occupancy;
pub mod peers;
mod saved;
#[cfg(test)]
mod tests;
mod unixbench;
mod words;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

pub use arm::{Arm, Member};
pub use components::{Component, Pooled, component_of};
pub use curves::Overlaid;
pub use matching::unit_scale;

use matching::Match;
use model::{Better, figure};
use stats::bootstrap::Resampling;
use stats::compare::{LEAST_MARGIN, Ratio, margin, ratio_of_intervals, unpaired_ratio};
use stats::multiple::benjamini_hochberg;
use stats::order::Interval;
use stats::ranks::mann_whitney;
use stats::shift::{Between, Shifted, Spread, shifted};

/// Share of false ones that is accepted among the metrics called different.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Ranks must tell the two arms apart as well, each metric by itself.
const RANKS_P: f64 = 0.05;

/// Confidence of the intervals of ratios.
const CONFIDENCE: f64 = 0.95;

/// Above so many metrics a bootstrap of ten thousand is a wait, and each single one matters less.
const MANY: usize = 500;

/// So many flaws of an arm's files are told one by one; a folder may have hundreds.
const SHOWN_FLAWS: usize = 4;

/// How to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Share within which a metric counts as the same, at least.
    pub margin: f64,
    /// Scale what the core's clock decides to A's clock.
    pub common_clock: bool,
    /// Another result of what A is: its ratio to A is the noise floor of each metric, and the margin is twice that.
    pub again: Option<Arm>,
}

impl Default for Options {
    fn default() -> Options {
        Options { margin: LEAST_MARGIN, common_clock: false, again: None }
    }
}

/// What two results come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Host and file of each.
    pub names: [[String; 2]; 2],
    /// Runs that each consists of.
    pub runs: [usize; 2],
    /// What differs between the environments.
    pub environment: Vec<Difference>,
    /// What only one of the two tells of its environment.
    pub untold: Vec<String>,
    /// What is to be known before anything is read.
    pub warnings: Vec<String>,
    /// The clock to which core-bound metrics were scaled, GHz.
    pub common_clock_ghz: Option<f64>,
    /// By component, and all together, over the headline metrics; every ratio turned so that above 1 is better.
    pub components: Vec<Component>,
    pub index: Option<Pooled>,
    pub metrics: Vec<Compared>,
    pub refused: Vec<Refused>,
    /// Curves of work over CPU% that both have.
    pub curves: Vec<Overlaid>,
    /// Series with a value that the other result does not have, in A and in B.
    pub alone: [usize; 2],
    /// Share within which metrics count as the same, at least.
    pub margin: f64,
    /// An arm was imported: nobody watched while it was measured.
    pub imported: bool,
}

/// One thing that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    pub label: String,
    pub a: String,
    pub b: String,
}

/// The verdict of a comparison, of B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Faster,
    Slower,
    /// Of a metric that has no better side.
    Higher,
    Lower,
    /// The same within the margin.
    Same,
    Inconclusive,
    /// An imported figure without spread: there is a ratio, and nothing tells how sure it is.
    Unverified,
}

/// One metric that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The key in B, and in A where it is another.
    pub key: String,
    pub key_a: String,
    pub bench: String,
    /// The part of the machine that it is about.
    pub component: String,
    pub title: String,
    pub unit: String,
    pub better: Better,
    pub headline: bool,
    /// Medians, in B's unit, at the common clock where `scaled`.
    pub a: f64,
    pub b: f64,
    /// Brought to the common clock.
    pub scaled: bool,
    /// B/A.
    pub ratio: f64,
    pub ci95: Option<[f64; 2]>,
    /// Of the half-width of ln of that interval: what the levels of whole runs add, which metrics share.
    pub shared_half: f64,
    /// Share within which it counts as the same.
    pub margin: f64,
    pub word: Word,
    /// The word with what belongs to it: `same within 2 %`, `inconclusive: ±12 %, about 40 more runs of each needed`.
    pub words: String,
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
    /// What forbids it: `placement`, `pages`, `beside`, `knobs`, `size`, `unit`, `samples`, `clock-source`, `value`, the rule
    /// that rejected one of the two (`background-load`, `steal`, ...), or `verdict` where its values did.
    pub factor: String,
    /// Whether the two were measured under different conditions (else something that a comparison needs is missing).
    pub conditions: bool,
    pub headline: bool,
    pub reason: String,
    /// The value in A with its unit.
    pub a: String,
}

/// What one pair comes to before many are looked at together.
struct Found<'a> {
    pair: Match<'a>,
    /// The two as they are compared: brought to one unit and, where that was asked for, to one clock.
    values: [Member; 2],
    scaled: bool,
    shifted: Shifted,
    /// The same without the difference of clocks.
    on_one_clock: Option<Shifted>,
    /// Of the ranks alone; `None` where there is no telling.
    ranks_p: Option<f64>,
    margin: f64,
}

/// Compares B with A.
pub fn compare(a: &Arm, b: &Arm, options: &Options) -> Comparison {
    let (environment, untold) = environment::differences(a, b);
    let common = options.common_clock.then(|| a.clock_ghz()).flatten();
    let mut comparison = Comparison {
        names: [a, b].map(|arm| [arm.host.clone(), arm.file.clone()]),
        runs: [a.runs, b.runs],
        environment,
        untold,
        warnings: warnings(a, b, options),
        common_clock_ghz: common,
        components: Vec::new(),
        index: None,
        metrics: Vec::new(),
        refused: Vec::new(),
        curves: curves::overlaid(a, b, options),
        alone: [0, 0],
        margin: options.margin,
        imported: a.imported || b.imported,
    };
    let matches = matching::matches(a, b, &mut comparison.refused);
    let refused = comparison.refused.iter().map(|one| [one.key.as_str(), one.key_b.as_str()]);
    let both = matches.iter().map(|pair| [pair.a.key.as_str(), pair.b.key.as_str()]).chain(refused);
    let both: Vec<[&str; 2]> = both.collect();
    comparison.alone = [(a, 0), (b, 1)].map(|(arm, side)| {
        let keys: BTreeSet<&str> = both.iter().map(|pair| pair[side]).collect();
        arm.valued().filter(|member| !keys.contains(member.key.as_str())).count()
    });
    let resamples = if matches.len() > MANY { 999 } else { 9999 };
    let plan = Resampling { resamples, ..Resampling::new(CONFIDENCE, 1) };
    let mut all: Vec<Found> = Vec::new();
    for pair in matches {
        match found([a, b], pair, common, plan, options) {
            Ok(found) => all.push(found),
            Err(pair) => {
                let reason = "a ratio needs values above zero".to_string();
                comparison.refused.push(pair.refused("value", reason));
            }
        }
    }
    let told = |found: &&Found| found.ranks_p.is_some();
    let p: Vec<f64> = all.iter().filter(told).map(|found| found.shifted.p).collect();
    let mut adjusted = benjamini_hochberg(&p).into_iter();
    for found in &all {
        let p = found.ranks_p.and_then(|_| adjusted.next()).unwrap_or(1.0);
        comparison.metrics.push(compared(found, p, comparison.imported));
    }
    (comparison.components, comparison.index) = components::pooled(&comparison.metrics);
    comparison
}

/// What is to be said before any number.
fn warnings(a: &Arm, b: &Arm, options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    let numbers = |arm: &Arm| -> Vec<(String, Vec<u64>)> {
        let bits = |member: &Member| member.medians.iter().map(|value| value.to_bits()).collect();
        arm.valued().map(|member| (member.key.clone(), bits(member))).collect()
    };
    let shared = a.identities.keys().filter(|run| b.identities.contains_key(*run)).count();
    if shared > 0 && shared == a.identities.len().max(b.identities.len()) {
        let what =
            if shared == 1 { "run: that it equals itself" } else { "runs: that they equal themselves" };
        warnings.push(format!("A and B are the same {what} says nothing"));
    } else if shared > 0 {
        let what = if shared == 1 { "1 run is" } else { &format!("{shared} runs are") };
        warnings.push(format!("{what} in A and in B: that makes the two more alike than they are"));
    } else if a.valued().next().is_some() && numbers(a) == numbers(b) {
        warnings.push("A and B hold the very same numbers: that they are equal says nothing".to_string());
    }
    for (name, arm) in [("A", Some(a)), ("B", Some(b)), ("A2", options.again.as_ref())] {
        let flaws = arm.map(|arm| arm.flaws.as_slice()).unwrap_or_default();
        warnings.extend(flaws.iter().take(SHOWN_FLAWS).map(|flaw| format!("{name}: {flaw}")));
        if let Some(more @ 1..) = flaws.len().checked_sub(SHOWN_FLAWS) {
            warnings.push(format!("{name}: {more} more of its files' flaws are not listed"));
        }
    }
    if options.common_clock && a.clock_ghz().is_none() {
        warnings.push("nothing tells A's core clock, so nothing was scaled to it".to_string());
    }
    if options.common_clock && b.clock_ghz().is_none() {
        warnings.push("nothing tells B's core clock, so nothing of it was scaled".to_string());
    }
    warnings
}

fn found<'a>(
    [a, b]: [&Arm; 2],
    pair: Match<'a>,
    common: Option<f64>,
    plan: Resampling,
    options: &Options,
) -> Result<Found<'a>, Match<'a>> {
    let mut values = [pair.a.clone(), pair.b.clone()];
    let at_common = |arm: &Arm, member: &Member| member.at_clock(common?, arm.clock_ghz());
    let scaled = match (at_common(a, pair.a), at_common(b, pair.b)) {
        (Some(of_a), Some(of_b)) => {
            values = [of_a, of_b];
            true
        }
        _ => false,
    };
    let of_a = &mut values[0];
    of_a.median *= pair.scale;
    of_a.medians.iter_mut().for_each(|value| *value *= pair.scale);
    let Some(ratio) = ratio(&values, plan).filter(|ratio| ratio.ratio.is_finite() && ratio.ratio > 0.0)
    else {
        return Err(pair);
    };
    let clock = match scaled {
        true => 0.0,
        false => clock::circumstance(a, b, pair.a.clock_ghz(), pair.b.clock_ghz()),
    };
    let spreads = values.each_ref().map(spread);
    let runs = pair.runs();
    let on = |clock: f64| shifted(ratio, spreads, Between { runs, clock }, CONFIDENCE);
    // Ranks do not feel the scale, but they must be of one unit.
    let ranks_p = ratio.interval.and_then(|_| match values.iter().any(|one| one.told.is_some()) {
        true => Some(0.0),
        false => mann_whitney(&values[0].medians, &values[1].medians).map(|found| found.p),
    });
    let margin = floor(&values[0], options).map_or(options.margin, |floor| margin(floor).max(options.margin));
    let (shifted, on_one_clock) = (on(clock), (clock != 0.0).then(|| on(0.0)));
    Ok(Found { pair, values, scaled, shifted, on_one_clock, ranks_p, margin })
}

fn spread(member: &Member) -> Option<Spread> {
    match member.told {
        Some(([low, high], n)) => Spread::of_interval(Interval { low, high }, n, CONFIDENCE),
        None => Spread::of(&member.medians),
    }
}

/// The ratio of the two, from single values where both have them, else from what they tell of their medians.
fn ratio([a, b]: &[Member; 2], plan: Resampling) -> Option<Ratio> {
    if a.told.is_none() && b.told.is_none() {
        return unpaired_ratio(&a.medians, &b.medians, plan);
    }
    let interval = |member: &Member| match member.told {
        Some(([low, high], _)) => Some(Interval { low, high }),
        None => stats::order::median_interval(&member.medians, CONFIDENCE),
    };
    let n = |member: &Member| member.told.map_or(member.medians.len(), |(_, n)| n);
    ratio_of_intervals((a.median, interval(a)), (b.median, interval(b)), n(a).min(n(b)))
}

/// How far the other result of what A is is from A in this metric, a share.
fn floor(a: &Member, options: &Options) -> Option<f64> {
    let other = options.again.as_ref()?.valued().find(|member| member.key == a.key)?;
    let apart = (other.median / a.median).ln().abs().exp_m1();
    apart.is_finite().then_some(apart)
}

fn compared(found: &Found, p: f64, imported: bool) -> Compared {
    let (a, b) = (found.pair.a, found.pair.b);
    let ratio = &found.shifted.ratio;
    let (word, words) = words::conclude(found, p, imported);
    Compared {
        key: b.key.clone(),
        key_a: a.key.clone(),
        bench: b.case.bench.to_string(),
        component: components::component(b),
        title: b.title.clone(),
        unit: b.metric.unit.to_string(),
        better: b.metric.better,
        headline: found.pair.headline,
        a: found.values[0].median,
        b: found.values[1].median,
        scaled: found.scaled,
        ratio: ratio.ratio,
        ci95: ratio.interval.map(|interval| [interval.low, interval.high]),
        shared_half: found.shifted.level
            * stats::tails::normal_quantile(0.5 + CONFIDENCE / 2.0).unwrap_or(0.0),
        margin: found.margin,
        word,
        words,
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

impl Word {
    pub const ALL: [Word; 7] = [
        Word::Faster,
        Word::Slower,
        Word::Higher,
        Word::Lower,
        Word::Same,
        Word::Inconclusive,
        Word::Unverified,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Word::Faster => "faster",
            Word::Slower => "slower",
            Word::Higher => "higher",
            Word::Lower => "lower",
            Word::Same => "same",
            Word::Inconclusive => "inconclusive",
            Word::Unverified => "unverified",
        }
    }

    /// Whether it says that the two differ.
    pub const fn is_different(self) -> bool {
        matches!(self, Word::Faster | Word::Slower | Word::Higher | Word::Lower)
    }
}
