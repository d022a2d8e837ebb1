//! Whether the components of the rate suite repeat (`assay rate`). Words: `17 OF 18 COMPONENTS
//! REPEAT WITHIN 2 %`, `ALL 18 COMPONENTS REPEAT WITHIN 3 %`, `ONE RUN OF EACH COMPONENT`.

use super::super::figures::{median_words, width_words};
use super::super::{columns, number, rate, text};
use super::{Answer, ROWS};
use crate::block::{Cell, Table};
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::escalation::escalated;
use diagnose::suite::{Part, Suite, suite};
use model::percent;
use stats::repeat::APART;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let suite = suite(&diagnosis.run, &diagnosis.series)?;
    let repeated = suite.parts.iter().filter(|part| part.runs.is_some()).count();
    let swinging = suite.parts.iter().filter(|part| part.swings().is_some()).count();
    let (word, tone) = match (repeated, swinging) {
        (0, _) => ("ONE RUN OF EACH COMPONENT".to_string(), Tone::Strong),
        (1, 0) => (format!("THE COMPONENT REPEATS{}", within(&suite)), Tone::Good),
        (1, _) => ("THE COMPONENT DOES NOT REPEAT".to_string(), Tone::Care),
        (all, 0) => (format!("ALL {all} COMPONENTS REPEAT{}", within(&suite)), Tone::Good),
        (all, some) => (format!("{} OF {all} COMPONENTS REPEAT{}", all - some, within(&suite)), Tone::Care),
    };
    let sentences = rate::sentences(diagnosis, &suite).into_iter().take(2).chain(rate::index_words(&suite));
    let answer = Answer::new(word, tone).sentences(sentences).table(components(diagnosis, &suite));
    Some(Answer { next: next(diagnosis, &suite), ..answer })
}

/// How far apart the runs of those lie at most that repeat, in whole per cent.
fn within(suite: &Suite) -> String {
    let repeating = suite.parts.iter().filter(|part| part.swings().is_none());
    let most = repeating.filter_map(|part| Some(part.runs.as_ref()?.apart)).reduce(f64::max);
    most.map_or(String::new(), |most| format!(" WITHIN {:.0} %", (100.0 * most).ceil().max(1.0)))
}

/// Of components that do not repeat, how many do, and what finds out why; nothing where that was
/// done.
fn next(diagnosis: &Diagnosis, suite: &Suite) -> Vec<String> {
    let is_open = suite.parts.iter().any(|part| part.swings().is_some());
    if !is_open || !escalated(&diagnosis.run, &diagnosis.machine, suite).is_empty() {
        return Vec::new();
    }
    let runs = || suite.parts.iter().filter_map(|part| part.runs.as_ref());
    let near = runs().filter(|runs| runs.apart <= APART).count();
    vec![
        format!("runs within {} of each other: {near} of {}", percent(APART), runs().count()),
        "once more, larger: assay rate --quick --escalate".to_string(),
    ]
}

/// Columns of the longest bar.
const BAR: f64 = 16.0;

/// Components that swing before the others, each in the suite's order.
fn components(diagnosis: &Diagnosis, suite: &Suite) -> Table {
    let mut parts: Vec<&Part> = suite.parts.iter().collect();
    parts.sort_by_key(|part| part.swings().is_none());
    let score = |part: &Part| part.ratio.and_then(|ratio| ratio.analysis.figure()).map(|own| own.median);
    let most = suite.parts.iter().filter_map(score).fold(0.0, f64::max);
    let bar = |part: &Part| {
        let share = score(part).filter(|_| most > 0.0).map_or(0.0, |own| own / most);
        "█".repeat((share * BAR).round() as usize)
    };
    let row = |part: &&Part| {
        let mark = if part.swings().is_some() { " !" } else { "" };
        vec![
            text(part.name()),
            number(part.ratio.map_or("–".to_string(), median_words)),
            number(width_words(part.rate)),
            number(
                part.runs.as_ref().map_or("–".to_string(), |runs| format!("{}{mark}", percent(runs.apart))),
            ),
            text(rate::bound_word(&suite.bound(part, &diagnosis.machine))),
            text(bar(part)),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = parts.iter().map(row).collect();
    if rows.len() > ROWS {
        let more = rows.len() + 1 - ROWS;
        let swing = parts[ROWS - 1..].iter().any(|part| part.swings().is_some());
        rows.truncate(ROWS - 1);
        rows.push(vec![text(format!("{more} more{}", if swing { "" } else { " that repeat" }))]);
    }
    let columns = columns("component | score: | 95 %: | runs apart: | bound by | score, reference = 1");
    Table::new(columns, rows)
}
