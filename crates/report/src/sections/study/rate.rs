//! Whether the components of the rate suite repeat (`assay rate`). Words: `17 OF 18 COMPONENTS
//! REPEAT`, `ALL 18 COMPONENTS REPEAT`, `ONE RUN OF EACH COMPONENT`.

use super::super::figures::{median_words, width_words};
use super::super::{column, number, rate, right, text};
use super::{Answer, ROWS};
use crate::block::{Cell, Table};
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::suite::{Part, Suite, suite};
use model::percent;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let suite = suite(&diagnosis.run, &diagnosis.series)?;
    let repeated = suite.parts.iter().filter(|part| part.runs.is_some()).count();
    let swinging = suite.parts.iter().filter(|part| part.swings().is_some()).count();
    let (word, tone) = match (repeated, swinging) {
        (0, _) => ("ONE RUN OF EACH COMPONENT".to_string(), Tone::Strong),
        (1, 0) => ("THE COMPONENT REPEATS".to_string(), Tone::Good),
        (1, _) => ("THE COMPONENT DOES NOT REPEAT".to_string(), Tone::Care),
        (all, 0) => (format!("ALL {all} COMPONENTS REPEAT"), Tone::Good),
        (all, some) => (format!("{} OF {all} COMPONENTS REPEAT", all - some), Tone::Care),
    };
    let sentences = rate::sentences(diagnosis, &suite).into_iter().take(2).chain(rate::index_words(&suite));
    Some(Answer::new(word, tone).sentences(sentences).table(components(diagnosis, &suite)))
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
    let columns = vec![
        column("component"),
        right("score"),
        right("95 %"),
        right("runs apart"),
        column("bound by"),
        column("score, reference = 1"),
    ];
    Table { columns, rows, folded: false }
}
