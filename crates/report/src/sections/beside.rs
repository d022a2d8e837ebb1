//! Older results beside the run's own: what was measured today, and each older value with the ratio
//! to it.

use std::collections::BTreeMap;

use super::{column, names, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use crate::comparison::ratio_words;
use compare::{Compared, Comparison, Refused};
use diagnose::Diagnosis;
use model::figure;
use stats::analysis::Judged;

/// What an older result has for one of the run's series.
enum OlderFigure<'a> {
    Compared(&'a Compared),
    Refused(&'a Refused),
}

pub fn section(diagnosis: &Diagnosis, older: &[Comparison]) -> Option<Section> {
    if older.is_empty() {
        return None;
    }
    let known: Vec<BTreeMap<&str, OlderFigure>> = older.iter().map(by_key).collect();
    let mut columns = vec![column("metric"), right("this run"), column("verdict")];
    for one in older {
        let [host, file] = &one.names[0];
        columns.extend([right(&format!("{host} ({file})")), right("new/old, > 1 better"), column("")]);
    }
    let shown = diagnosis.series.iter().filter(|judged| {
        let key = judged.series.key.as_str();
        judged.analysis.figure().is_some() && known.iter().any(|old| old.contains_key(key))
    });
    let table = Table::new(columns, shown.map(|judged| row(diagnosis, judged, &known)));
    let mut blocks: Vec<Block> = older.iter().flat_map(environment).collect();
    blocks.push(if table.rows.is_empty() {
        Block::Prose("No figure of this run has a counterpart there.".into())
    } else {
        Block::Table(table)
    });
    Some(Section::new("beside", "Compared with older results", blocks).about(
        "Each ratio is new to old: above 1 is better; A is the older result, B \
                 this run. Imported values are unverified: Assay did not watch the measurement. Without their \
                 spread a ratio has no interval.",
    ))
}

/// What an older result has, by the key of the run's series.
fn by_key(one: &Comparison) -> BTreeMap<&str, OlderFigure<'_>> {
    let refused = one.refused.iter().map(|refused| (refused.key_b.as_str(), OlderFigure::Refused(refused)));
    let compared =
        one.metrics.iter().map(|compared| (compared.key.as_str(), OlderFigure::Compared(compared)));
    // What was compared stands before what was refused of the same series.
    refused.chain(compared).collect()
}

/// In what an older result's environment differs, and what is wrong with its file.
fn environment(one: &Comparison) -> Vec<Block> {
    let [host, file] = &one.names[0];
    let difference = |one: &compare::Difference| format!("{} {} (old) and {} (new)", one.label, one.a, one.b);
    let differences: Vec<String> = one.environment.iter().map(difference).collect();
    let words = if differences.is_empty() {
        "the environments differ in nothing that both report".to_string()
    } else {
        differences.join("; ")
    };
    // What is wrong with this run's own file stands above.
    let warnings = one.warnings.iter().filter(|text| !text.starts_with("B: "));
    let warnings = warnings.map(|text| format!("{text}."));
    std::iter::once(format!("{host} ({file}): {words}.")).chain(warnings).map(Block::Prose).collect()
}

/// A series of the run, and what each older result has for it.
fn row(diagnosis: &Diagnosis, judged: &Judged, known: &[BTreeMap<&str, OlderFigure>]) -> Vec<Cell> {
    let mut row = vec![
        text(names::label(diagnosis, judged)),
        number(super::figures::median_words(judged)),
        // Reasons stand in the table of results.
        text(judged.analysis.verdict.words()),
    ];
    row.extend(known.iter().flat_map(|old| match old.get(judged.series.key.as_str()) {
        Some(OlderFigure::Compared(one)) => {
            let (ratio, ci95) = one.shown_ratio();
            let words = match one.note.as_str() {
                "" => one.words.clone(),
                note => format!("{}: {note}", one.words),
            };
            [number(figure(one.a, &one.unit)), number(ratio_words(ratio, ci95)), text(words)]
        }
        Some(OlderFigure::Refused(one)) => [
            number(one.a.clone()),
            Cell::Empty,
            text(format!("not comparable: {} {}", one.factor, one.reason)),
        ],
        None => [Cell::Empty, Cell::Empty, Cell::Empty],
    }));
    row
}
