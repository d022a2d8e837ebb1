//! Older results beside the run's own: what was measured today, and each older value with the ratio
//! to it.

use std::collections::BTreeMap;

use super::{column, names, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use crate::comparison::ratio_words;
use compare::{Compared, Comparison, Refused};
use diagnose::Diagnosis;
use model::figure;

/// What an older result has for one of the run's series.
enum Old<'a> {
    Compared(&'a Compared),
    Refused(&'a Refused),
}

pub fn section(diagnosis: &Diagnosis, older: &[Comparison]) -> Option<Section> {
    let known: Vec<BTreeMap<&str, Old>> = older
        .iter()
        .map(|one| {
            let refused = one.refused.iter().map(|refused| (refused.key_b.as_str(), Old::Refused(refused)));
            let compared =
                one.metrics.iter().map(|compared| (compared.key.as_str(), Old::Compared(compared)));
            // What was compared stands before what was refused of the same series.
            refused.chain(compared).collect()
        })
        .collect();
    if older.is_empty() {
        return None;
    }
    let mut columns = vec![column("metric"), right("this run"), column("verdict")];
    let mut blocks = Vec::new();
    for one in older {
        let [host, file] = &one.names[0];
        columns.extend([right(&format!("{host} ({file})")), right("new/old, > 1 better"), column("")]);
        let differences: Vec<String> = one
            .environment
            .iter()
            .map(|one| format!("{} {} (old) and {} (new)", one.label, one.a, one.b))
            .collect();
        let words = match differences.as_slice() {
            [] => "no difference of environment that both tell".to_string(),
            _ => differences.join("; "),
        };
        blocks.push(Block::Prose(format!("{host} ({file}): {words}.")));
        // What is wrong with this run's own file stands above.
        let warnings = one.warnings.iter().filter(|text| !text.starts_with("B: "));
        blocks.extend(warnings.map(|text| Block::Prose(format!("{text}."))));
    }
    let mut rows = Vec::new();
    for judged in &diagnosis.series {
        let key = judged.series.key.as_str();
        if judged.analysis.figure().is_none() || !known.iter().any(|old| old.contains_key(key)) {
            continue;
        }
        let mut row = vec![
            text(names::label(diagnosis, judged)),
            number(super::figures::median_words(judged)),
            // Reasons stand in the table of results.
            text(judged.analysis.verdict.words()),
        ];
        for old in &known {
            row.extend(match old.get(key) {
                Some(Old::Compared(one)) => {
                    let (ratio, ci95) = one.shown_ratio();
                    [
                        number(figure(one.a, &one.unit)),
                        number(ratio_words(ratio, ci95)),
                        text(match one.note.as_str() {
                            "" => one.words.clone(),
                            note => format!("{}: {note}", one.words),
                        }),
                    ]
                }
                Some(Old::Refused(one)) => [
                    number(one.a.clone()),
                    Cell::Empty,
                    text(format!("not comparable: {} {}", one.factor, one.reason)),
                ],
                None => [Cell::Empty, Cell::Empty, Cell::Empty],
            });
        }
        rows.push(row);
    }
    match rows.is_empty() {
        true => blocks.push(Block::Prose("No series of this run has a counterpart there.".into())),
        false => blocks.push(Block::Table(Table { columns, rows, folded: false })),
    }
    Some(Section {
        id: "beside".into(),
        title: "Beside older results".into(),
        about: "Each ratio is new to old, turned so that above 1 is better; A is the older result, B this run. Imported values are unverified: nobody watched while they were measured, and \
                without their spread nothing tells how sure a ratio is."
            .into(),
        blocks,
        long: false,
    })
}
