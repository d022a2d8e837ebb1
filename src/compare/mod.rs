//! Two results against each other: first in what their environments differ, then each metric that both have, as a ratio
//! with its interval, and in words. What cannot be compared is refused, with the factor that forbids it.
//!
//! The arms were measured one after the other, on one machine or on two: no pairs, so the interval is that of two
//! independent medians of processes. A metric counts as different only where the whole interval lies outside the margin
//! *and* the two arms' processes are told apart by rank after correction for the many metrics that were looked at.

mod arm;
mod matching;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

pub use arm::{Arm, Member};

use crate::model::{Better, VerdictKind};
use crate::stats::bootstrap::Resampling;
use crate::stats::compare::{Outcome, Ratio, conclude, unpaired_ratio};
use crate::stats::multiple::benjamini_hochberg;
use crate::stats::ranks::mann_whitney;
use matching::Match;
pub use matching::unit_scale;

/// Share of false ones that is accepted among the metrics called different.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Confidence of the intervals of ratios.
const CONFIDENCE: f64 = 0.95;

/// Above so many metrics a bootstrap of ten thousand is a wait, and each single one matters less.
const MANY: usize = 500;

/// What two results come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Host and file of each.
    pub names: [[String; 2]; 2],
    /// What differs between the environments.
    pub environment: Vec<Difference>,
    /// What only one of the two tells of its environment.
    pub untold: Vec<String>,
    pub metrics: Vec<Compared>,
    pub refused: Vec<Refused>,
    /// Series with a value that the other result does not have, in A and in B.
    pub alone: [usize; 2],
    /// Share within which metrics count as the same.
    pub margin: f64,
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
    pub title: String,
    pub unit: String,
    pub better: Better,
    /// Medians, in B's unit.
    pub a: f64,
    pub b: f64,
    /// B/A.
    pub ratio: f64,
    pub ci95: Option<[f64; 2]>,
    pub word: Word,
    /// The word with what belongs to it: `same within 2 %`, `inconclusive: about 12 more processes needed`.
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
    /// What forbids it: `placement`, `pages`, `beside`, `knobs`, `size`, `unit`, `verdict`,
    /// `samples`, `value`.
    pub factor: String,
    pub reason: String,
    /// The value in A with its unit.
    pub a: String,
}

/// Compares B with A. `margin` is the share within which a metric counts as the same.
pub fn compare(a: &Arm, b: &Arm, margin: f64) -> Comparison {
    let (environment, untold) = arm::differences(a, b);
    let mut comparison = Comparison {
        names: [a, b].map(|arm| [arm.host.clone(), arm.file.clone()]),
        environment,
        untold,
        metrics: Vec::new(),
        refused: Vec::new(),
        alone: [0, 0],
        margin,
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
    let mut ratios: Vec<(Match, Ratio)> = Vec::new();
    for pair in matches {
        let scaled: Vec<f64> = pair.a.medians.iter().map(|value| value * pair.scale).collect();
        let ratio = unpaired_ratio(&scaled, &pair.b.medians, plan);
        match ratio.filter(|ratio| ratio.ratio.is_finite() && ratio.ratio > 0.0) {
            Some(ratio) => ratios.push((pair, ratio)),
            None => {
                let reason = "a ratio needs values above zero".to_string();
                comparison.refused.push(pair.refused("value", reason));
            }
        }
    }
    // Ranks do not feel the scale, but they must be of one unit.
    let p = |(pair, ratio): &(Match, Ratio)| {
        let scaled: Vec<f64> = pair.a.medians.iter().map(|value| value * pair.scale).collect();
        ratio.interval.and_then(|_| mann_whitney(&scaled, &pair.b.medians))
    };
    let told: Vec<Option<f64>> = ratios.iter().map(|one| p(one).map(|found| found.p)).collect();
    let adjusted = benjamini_hochberg(&told.iter().flatten().copied().collect::<Vec<f64>>());
    let mut adjusted = adjusted.into_iter();
    for ((pair, ratio), p) in ratios.iter().zip(&told) {
        let p = p.and_then(|_| adjusted.next());
        comparison.metrics.push(compared(pair, ratio, p.unwrap_or(1.0), margin, a.imported || b.imported));
    }
    comparison
}

fn compared(pair: &Match, ratio: &Ratio, p: f64, margin: f64, imported: bool) -> Compared {
    let (a, b) = (pair.a, pair.b);
    let better = b.metric.better;
    let larger = ratio.ratio > 1.0;
    let (word, words) = match conclude(ratio, margin) {
        _ if ratio.interval.is_none() && imported => {
            (Word::Unverified, "unverified: imported without spread".to_string())
        }
        Outcome::Different if p <= FALSE_DISCOVERIES => {
            let word = match (better, larger) {
                (Better::Higher, true) | (Better::Lower, false) => Word::Faster,
                (Better::Higher, false) | (Better::Lower, true) => Word::Slower,
                (Better::Neither, true) => Word::Higher,
                (Better::Neither, false) => Word::Lower,
            };
            (word, word.word().to_string())
        }
        Outcome::Different => {
            (Word::Inconclusive, format!("inconclusive: p {p:.2} after correction for many metrics"))
        }
        Outcome::Equivalent => (Word::Same, format!("same within {} %", (margin * 1e4).round() / 1e2)),
        Outcome::Inconclusive { needed: Some(needed) } => {
            let more = needed.saturating_sub(ratio.n);
            (Word::Inconclusive, format!("inconclusive: about {more} more processes needed"))
        }
        Outcome::Inconclusive { needed: None } => {
            (Word::Inconclusive, format!("inconclusive: {} processes are too few for an interval", ratio.n))
        }
    };
    let mut notes: Vec<String> = Vec::new();
    for (name, member) in [("A", a), ("B", b)] {
        if !matches!(member.verdict.kind, VerdictKind::Trusted | VerdictKind::Unverified) {
            notes.push(format!("{name} is {}", member.verdict.kind));
        }
        if !member.note.is_empty() {
            notes.push(member.note.clone());
        }
    }
    notes.extend(pair.note.clone());
    Compared {
        key: b.key.clone(),
        key_a: a.key.clone(),
        title: b.title.clone(),
        unit: b.metric.unit.to_string(),
        better,
        a: a.median * pair.scale,
        b: b.median,
        ratio: ratio.ratio,
        ci95: ratio.interval.map(|interval| [interval.low, interval.high]),
        word,
        words,
        note: notes.join("; "),
    }
}

impl Word {
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
}
