//! The forest plot of one comparison, as a section of the page.

use super::columns;
use super::forest::{end, said_word, uncounted, word};
use super::names;
use super::screen::values;
use crate::block::{Block, Cell, Chart, ChartKind, Forest, ForestRow, ForestSide, Section, Table};
use crate::comparison::ratio_words;
use compare::{Answer, GroupAnswer, MIN_DIFFERENCE, Relation, Row, RowOutcome};
use diagnose::words::capital;

/// The section; `None` where both have no figure.
pub fn section(answer: &Answer, letter: &str, several: bool) -> Option<Section> {
    let rows: Vec<ForestRow> = answer.groups.iter().flat_map(of_group).collect();
    if rows.is_empty() {
        return None;
    }
    let cells = |row: &ForestRow| {
        let ratio =
            row.ratio.filter(|_| !row.wide).map_or(String::new(), |ratio| ratio_words(ratio, row.ci95));
        vec![
            Cell::Text(row.label.clone()),
            Cell::Number(row.values[0].clone()),
            Cell::Number(row.values[1].clone()),
            Cell::Text(row.unit.clone()),
            Cell::Number(ratio),
            Cell::Text(row.word.clone()),
        ]
    };
    let heads = format!("figure | A: | {letter}: | unit | {letter}/A, > 1 better (95 %): | {letter} is");
    let data = Table::new(columns(&heads), rows.iter().map(cells)).folded();
    let id = format!("ratios-{}", letter.to_lowercase());
    let forest = Forest {
        names: ["A".to_string(), letter.to_string()],
        rows,
        end: end(&answer.groups),
        band: MIN_DIFFERENCE,
    };
    let about = format!(
        "{letter} \u{f7} A: above 1 is better for {letter}. Bars: 95 % interval, including the scatter of whole runs. Grey: within 2 %. \
                 Diamonds: groups. {} of {} figures count.",
        answer.counted, answer.both
    );
    let chart =
        Chart::new(format!("chart-{id}"), format!("{letter} against A"), ChartKind::Forest(forest), data)
            .about(about);
    let title = if several { format!("Ratios of {letter}") } else { "Ratios".to_string() };
    Some(super::section(&id, &title, "", vec![Block::from(chart)]))
}

fn of_group(group: &GroupAnswer) -> Vec<ForestRow> {
    let said = group.said.as_ref();
    let pooled = group.pooled.as_ref();
    let head = ForestRow {
        label: capital(group.group.word()),
        group: true,
        values: [String::new(), String::new()],
        unit: String::new(),
        ratio: pooled.map(|pooled| pooled.ratio),
        ci95: pooled.map(|pooled| pooled.ci95),
        wide: false,
        word: said.map_or(uncounted(group).into(), |(word, words)| said_word(*word, words, false)),
        side: side(said.map(|said| said.0)),
        note: String::new(),
    };
    std::iter::once(head).chain(group.rows.iter().map(of_row)).collect()
}

fn of_row(row: &Row) -> ForestRow {
    let label = match row.figure {
        Some(figure) => figure.alone.to_string(),
        None => names::short(&row.title, &row.key),
    };
    let (side, note) = match &row.said {
        RowOutcome::Left(factor, _) => {
            let apart = row.raw_ratio().map(|ratio| ratio.max(1.0 / ratio)).filter(|apart| *apart > 1.05);
            let note = apart.map_or(String::new(), |apart| format!("{apart:.1} \u{d7} apart: {factor}"));
            (ForestSide::LeftOut, note)
        }
        RowOutcome::Counted(word, _) => (side(Some(*word)), String::new()),
    };
    ForestRow {
        label,
        group: false,
        values: values(row.values),
        unit: row.unit.clone(),
        ratio: row.ratio,
        ci95: row.ci95,
        wide: row.wide,
        word: word(&row.said, false),
        side,
        note,
    }
}

fn side(word: Option<Relation>) -> ForestSide {
    match word {
        Some(Relation::Faster) => ForestSide::Faster,
        Some(Relation::Slower) => ForestSide::Slower,
        _ => ForestSide::Neither,
    }
}
