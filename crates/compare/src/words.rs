//! What a ratio comes to, in a word and the words around it.

use std::collections::BTreeSet;

use super::clock::ClockScaling;
use super::matching::Match;
use super::{FALSE_DISCOVERIES, MIN_DIFFERENCE, PairResult};
use model::{Better, Grade, VerdictKind, percent};
use schemars::JsonSchema;
use serde::Serialize;
use stats::contrast::Contrast;
use stats::order::median;

/// The verdict of a comparison, of B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Word")]
pub enum Relation {
    Faster,
    Slower,
    /// Of a metric that has no better side.
    Higher,
    Lower,
    /// The same within the margin.
    Same,
    Inconclusive,
    /// An imported figure without spread: there is a ratio without an interval.
    Unverified,
}

impl Relation {
    pub const ALL: [Relation; 7] = [
        Relation::Faster,
        Relation::Slower,
        Relation::Higher,
        Relation::Lower,
        Relation::Same,
        Relation::Inconclusive,
        Relation::Unverified,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Relation::Faster => "faster",
            Relation::Slower => "slower",
            Relation::Higher => "higher",
            Relation::Lower => "lower",
            Relation::Same => "same",
            Relation::Inconclusive => "cannot tell",
            Relation::Unverified => "unverified",
        }
    }

    /// Whether it says that the two differ.
    pub const fn is_different(self) -> bool {
        matches!(self, Relation::Faster | Relation::Slower | Relation::Higher | Relation::Lower)
    }
}

/// With fewer values on either side there is no interval.
pub const MIN_VALUES: usize = 5;

/// The word for a ratio whose p is `p` after correction for the many metrics that were looked at.
pub fn conclude(found: &PairResult, p: f64, imported: bool) -> (Relation, String) {
    if found.pair.across {
        return (Relation::Unverified, "unverified: another tool measured it in another way".to_string());
    }
    let Some(contrast) = &found.contrast else {
        return match imported {
            true if found.pair.a.medians.len().min(found.pair.b.medians.len()) > 1 => {
                (Relation::Unverified, format!("unverified: fewer than {MIN_VALUES} values on a side"))
            }
            true => (Relation::Unverified, "unverified: imported without a spread".to_string()),
            false => (Relation::Inconclusive, format!("cannot tell: {}", too_few(&found.pair))),
        };
    };
    let cannot_tell = |why: String| (Relation::Inconclusive, format!("cannot tell: {why}"));
    let apart = contrast.interval.low > 0.0 || contrast.interval.high < 0.0;
    if p <= FALSE_DISCOVERIES && apart && contrast.difference.abs() >= found.least.ln_1p() {
        let against = [disturbed(&found.pair), unknown(&found.pair)];
        if let Some(why) = against.into_iter().find(|why| !why.is_empty()) {
            return cannot_tell(why);
        }
        let word = different(found.pair.b.metric.better, contrast.difference > 0.0);
        return (word, format!("{} by {}", word.word(), by(contrast)));
    }
    match contrast.same_within(&found.margins) {
        Some(margin) => (Relation::Same, format!("same within {}", margin_words(margin))),
        None => cannot_tell(format!("at most {} apart{}", share(contrast.at_most()), clock_words(found))),
    }
}

/// Where the two ran at other clocks and were not brought to one: that the whole difference may be
/// the clock's.
fn clock_words(found: &PairResult) -> String {
    let apart = found.clocks.below.max(found.clocks.above);
    match (found.pair.a.clock_ghz(), found.pair.b.clock_ghz()) {
        (Some(a), Some(b)) if apart >= MIN_DIFFERENCE.ln_1p() => {
            format!(": the core clock differed ({a:.2} and {b:.2} GHz)")
        }
        _ => String::new(),
    }
}

/// A margin in per cent as it was given.
pub fn margin_words(margin: f64) -> String {
    format!("{} %", (margin * 1e4).round() / 1e2)
}

/// From this share on a factor says more than a percentage.
const FACTOR: f64 = 9.0;

/// A share in whole per cent, with one more digit below ten; a factor where it is many times.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        value if !value.is_finite() || share >= FACTOR => format!("a factor of {:.0}", 1.0 + share),
        value if value >= 9.95 => format!("{value:.0} %"),
        value => format!("{value:.1} %").replace(".0 %", " %"),
    }
}

/// By how much the larger of the two is larger, from the nearer end of the interval to the farther:
/// `8–12 %`.
fn by(contrast: &Contrast) -> String {
    let (low, high) = (contrast.interval.low.abs(), contrast.interval.high.abs());
    let (near, far) = (low.min(high).exp_m1(), low.max(high).exp_m1());
    if far >= FACTOR {
        return format!("a factor of {:.1}–{:.0}", 1.0 + near, 1.0 + far);
    }
    match (share(near), share(far)) {
        (near, far) if near == far => near,
        (near, far) => format!("{}–{far}", near.trim_end_matches(" %")),
    }
}

fn too_few(pair: &Match) -> String {
    let fewest = pair.a.medians.len().min(pair.b.medians.len());
    let passes = if fewest == 1 { "1 pass is".to_string() } else { format!("{fewest} passes are") };
    format!("{passes} too few for an interval")
}

fn different(better: Better, larger: bool) -> Relation {
    match (better, larger) {
        (Better::Higher, true) | (Better::Lower, false) => Relation::Faster,
        (Better::Higher, false) | (Better::Lower, true) => Relation::Slower,
        (Better::Neither, true) => Relation::Higher,
        (Better::Neither, false) => Relation::Lower,
    }
}

/// Which disturbance forbids to call a difference one of what was compared.
fn disturbed(pair: &Match) -> String {
    let sides = [("A", pair.a), ("B", pair.b)].into_iter().filter(|(_, one)| !one.disturbed.is_empty());
    sides
        .map(|(side, one)| format!("{} disturbed {side}", one.disturbed.join(" and ")))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Which of the two has no figure that a difference could rest on. Imported ones rest on what their
/// files say.
fn unknown(pair: &Match) -> String {
    let unknown = |(_, member): &(&str, &super::Member)| {
        member.verdict.grade == Grade::U && member.verdict.kind != VerdictKind::Unverified
    };
    let sides = [("A", pair.a), ("B", pair.b)].into_iter().filter(unknown);
    sides.map(|(side, one)| format!("{side} is {}", one.verdict.words())).collect::<Vec<_>>().join(", ")
}

/// What differs between figures of different tools, each once.
pub fn of_tools(all: &[PairResult]) -> Vec<String> {
    /// More are said beside the figures only.
    const SAID: usize = 3;
    let notes = all.iter().filter(|found| found.pair.across).filter_map(|found| found.pair.note.clone());
    let notes: BTreeSet<String> = notes.filter(|note| !note.is_empty()).collect();
    notes.into_iter().take(SAID).map(|note| format!("measured in another way: {note}")).collect()
}

/// What is to be said of the clocks of the two, once: that time does not go with them, or that all
/// that is bound by the core moved at once.
pub fn of_clocks(common: ClockScaling, all: &[PairResult]) -> Vec<String> {
    let mut said = Vec::new();
    if let ClockScaling::Closed { as_they_ran, at_one_clock } = common {
        said.push(format!(
            "times were not scaled to one clock: core-bound figures differ by {} as measured and by {} at one clock (medians)",
            percent(as_they_ran.exp_m1()),
            percent(at_one_clock.exp_m1())
        ));
    }
    let turned = |found: &PairResult| {
        let difference = found.contrast?.difference;
        match found.pair.b.metric.better {
            Better::Higher => Some(difference),
            Better::Lower => Some(-difference),
            Better::Neither => None,
        }
    };
    let core: Vec<f64> =
        all.iter().filter(|found| found.scaled && found.pair.headline).filter_map(turned).collect();
    let better = core.iter().filter(|turned| **turned > 0.0).count();
    let most = better.max(core.len() - better);
    let middle = median(&core).unwrap_or(0.0);
    if core.len() >= MIN_CORE_BOUND
        && most as f64 > ONE_WAY * core.len() as f64
        && middle.abs() > MIN_DIFFERENCE
    {
        let way = if middle > 0.0 { "faster" } else { "slower" };
        said.push(format!(
            "at the same clock, core-bound figures are {} {way} (median of {})",
            percent(middle.abs().exp_m1()),
            core.len()
        ));
    }
    said
}

/// From this number of core-bound metrics on, one warning stands for all of them if this share of
/// them moved one way.
const MIN_CORE_BOUND: usize = 8;
const ONE_WAY: f64 = 0.6;

/// Verdicts of the two and what differs in meaning.
pub fn note(pair: &Match) -> String {
    let mut notes: Vec<String> = Vec::new();
    for (name, member) in [("A", pair.a), ("B", pair.b)] {
        if !matches!(member.verdict.kind, VerdictKind::Trusted | VerdictKind::Unverified) {
            notes.push(format!("{name} is {}", member.verdict.words()));
        }
        if !member.note.is_empty() && !notes.contains(&member.note) {
            notes.push(member.note.clone());
        }
    }
    notes.extend(pair.note.clone());
    notes.join("; ")
}
