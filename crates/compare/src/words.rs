//! What a ratio comes to, in a word and the words around it.

use super::matching::Match;
use super::{FALSE_DISCOVERIES, Found, RANKS_P, Word};
use model::{Better, VerdictKind};
use stats::compare::{Outcome, conclude as outcome_of};
use stats::shift::more_runs;

/// The word for a ratio whose p is `p` after correction for the many metrics that were looked at.
pub fn conclude(found: &Found, p: f64, imported: bool) -> (Word, String) {
    let ratio = &found.shifted.ratio;
    let inconclusive = |words: String| (Word::Inconclusive, format!("inconclusive: {words}"));
    let disturbed = disturbed(&found.pair);
    match outcome_of(ratio, found.margin) {
        _ if ratio.interval.is_none() && imported => {
            (Word::Unverified, "unverified: imported without spread".to_string())
        }
        Outcome::Different if !disturbed.is_empty() => inconclusive(disturbed),
        Outcome::Different if found.ranks_p.is_none_or(|ranks| ranks > RANKS_P) => {
            inconclusive("the two overlap too much".to_string())
        }
        Outcome::Different if p <= FALSE_DISCOVERIES => {
            let word = different(found.pair.b.metric.better, ratio.ratio > 1.0);
            (word, word.word().to_string())
        }
        Outcome::Different => inconclusive(format!("p {p:.2} after correction for many metrics")),
        Outcome::Equivalent => (Word::Same, format!("same within {} %", (found.margin * 1e4).round() / 1e2)),
        Outcome::Inconclusive { needed: Some(_) } => {
            let without_clock = found.on_one_clock.map(|shifted| outcome_of(&shifted.ratio, found.margin));
            match without_clock {
                Some(Outcome::Different) => inconclusive(clock_words(found)),
                _ => inconclusive(more(found, found.pair.runs())),
            }
        }
        Outcome::Inconclusive { needed: None } => {
            let processes = if ratio.n == 1 { "1 process is" } else { &format!("{} processes are", ratio.n) };
            inconclusive(format!("{processes} too few for an interval"))
        }
    }
}

fn different(better: Better, larger: bool) -> Word {
    match (better, larger) {
        (Better::Higher, true) | (Better::Lower, false) => Word::Faster,
        (Better::Higher, false) | (Better::Lower, true) => Word::Slower,
        (Better::Neither, true) => Word::Higher,
        (Better::Neither, false) => Word::Lower,
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

fn clock_words(found: &Found) -> String {
    let by = match (found.pair.a.clock_ghz(), found.pair.b.clock_ghz()) {
        (Some(a), Some(b)) => format!(" ({a:.2} and {b:.2} GHz)"),
        _ => String::new(),
    };
    let advice = if found.pair.b.is_core_bound() { "; --common-clock takes that out" } else { "" };
    format!("the machine was in another state: its core clock differed{by}{advice}")
}

/// How unsure it is, and how many more runs would tell.
fn more(found: &Found, runs: [usize; 2]) -> String {
    let Some(interval) = found.shifted.ratio.interval else { return String::new() };
    let half = (interval.high / interval.low).ln() / 2.0;
    let unsure = format!("±{}", model::percent(half.exp_m1()));
    match more_runs(half, (1.0 + found.margin).ln(), runs[0].min(runs[1])) {
        Some(1) => format!("{unsure}, 1 more run of each needed"),
        Some(more) => format!("{unsure}, about {more} more runs of each needed"),
        None => unsure,
    }
}

/// Verdicts of the two and what differs in meaning.
pub fn note(pair: &Match) -> String {
    let mut notes: Vec<String> = Vec::new();
    for (name, member) in [("A", pair.a), ("B", pair.b)] {
        if !matches!(member.verdict.kind, VerdictKind::Trusted | VerdictKind::Unverified) {
            notes.push(format!("{name} is {}", member.verdict.kind));
        }
        if !member.note.is_empty() {
            notes.push(member.note.clone());
        }
    }
    notes.extend(pair.note.clone());
    notes.join("; ")
}
