//! Whether a guarded command repeats, and which of two is faster (`assay guard`, `--vs`). Words:
//! `STABLE`, `SWINGS BY 8 %`; `B IS 7 % SLOWER`, `B IS 7 % FASTER`, `THE SAME WITHIN 2 %`, `CANNOT
//! TELL`.

use super::super::figures::{cv_in_words, median_words, spread_words};
use super::super::names::placement_words;
use super::super::{columns, guard, number, text};
use super::{Answer, sentence};
use crate::block::Table;
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::words::percent;
use model::vocabulary::guard as ids;
use stats::analysis::Judged;
use stats::order::Interval;
use stats::quads::Versus;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let results = guard::results(diagnosis);
    let first = results.first()?;
    let (word, tone, said) = match diagnosis.versus() {
        Some(found) => {
            let (word, tone) = versus(&found);
            // What follows the first sentence says how it was found.
            let said = guard::versus_words(&found, &first.series);
            let said = said.split_once(". ").map_or(said.clone(), |(first, _)| format!("{first}."));
            (word, tone, said)
        }
        None => repeats(diagnosis, &results),
    };
    let remarks = crate::notes::notes(diagnosis).into_iter().map(|note| sentence(&note.text));
    Some(Answer::new(word, tone).sentences([said].into_iter().chain(remarks)).table(table(&results)))
}

fn versus(found: &Versus) -> (String, Tone) {
    let size = |ln: f64| percent(ln.abs().exp_m1());
    match (found.interval, found.same_within()) {
        (Some(Interval { .. }), _) if found.differs() && found.difference > 0.0 => {
            (format!("B IS {} SLOWER", size(found.difference)), Tone::Strong)
        }
        (Some(_), _) if found.differs() => (format!("B IS {} FASTER", size(found.difference)), Tone::Strong),
        (Some(_), Some(margin)) => (format!("THE SAME WITHIN {}", percent(margin)), Tone::Good),
        _ => ("CANNOT TELL".to_string(), Tone::Care),
    }
}

/// The rule decides whether it swings; how far, the widest spread says.
fn repeats(diagnosis: &Diagnosis, results: &[&Judged]) -> (String, Tone, String) {
    let spread = |judged: &&&Judged| judged.analysis.figure().and_then(|own| own.cv).unwrap_or(0.0);
    let widest = results.iter().max_by(|one, other| spread(one).total_cmp(&spread(other)));
    let widest = widest.map_or(0.0, |judged| spread(&judged));
    let found = diagnosis.findings.iter().find(|finding| ids::rule::SWINGING_COMMAND == finding.rule);
    match found {
        Some(finding) => (format!("SWINGS BY {}", percent(widest)), Tone::Care, finding.headline.clone()),
        None => {
            let said = format!("Its result is steady: runs scatter by at most {}.", percent(widest));
            ("STABLE".to_string(), Tone::Good, said)
        }
    }
}

/// A row a placement, and a command of two.
fn table(results: &[&Judged]) -> Table {
    let row = |judged: &&Judged| {
        let estimate = judged.analysis.figure();
        vec![
            text(guard::name(&judged.series)),
            text(placement_words(&judged.series.case.placement.name)),
            number(median_words(judged)),
            number(spread_words(judged)),
            number(cv_in_words(judged).unwrap_or("–".to_string())),
            number(estimate.map_or("0".to_string(), |own| own.n.to_string())),
        ]
    };
    let columns = columns("command | placement | result: | 95 %: | runs scatter: | runs:");
    Table::new(columns, results.iter().map(row))
}
