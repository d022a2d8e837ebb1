//! UnixBench's rows of two results: what the index is made of, and which row breaks with the
//! others.

use super::{column, right, section};
use crate::block::{Axis, Bar, Block, Cell, Chart, ChartKind, Section, Table};
use crate::comparison::ratio_words;
use compare::rows::{ODD, indices, tables};
use compare::{Compared, Comparison};
use model::{Verdict, figure};
use stats::unixbench::RowRatio;

/// Fewer rows than this make no picture.
const LEAST: usize = 3;

/// A chart for each number of copies of which both have rows; `None` where there is none.
pub fn charts(one: &Comparison, letter: &str) -> Option<Section> {
    let mut blocks = Vec::new();
    for (copies, rows) in tables(&one.metrics).iter().filter(|(_, rows)| rows.len() >= LEAST) {
        blocks.push(Block::from(chart(one, letter, *copies, rows)));
    }
    let about = format!(
        "Scores of {letter} over those of A, the largest first. Related rows should \
                 have similar ratios. A row that breaks with its relatives usually compares placements."
    );
    (!blocks.is_empty())
        .then(|| section(&format!("rows-{}", letter.to_lowercase()), "UnixBench, row by row", &about, blocks))
}

fn chart(one: &Comparison, letter: &str, copies: i64, rows: &[(RowRatio, &Compared)]) -> Chart {
    let is_odd = |row: &Compared| {
        one.findings.iter().any(|found| found.rule == ODD && found.series.contains(&row.key))
    };
    let mut sorted: Vec<&(RowRatio, &Compared)> = rows.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| b.ratio.total_cmp(&a.ratio));
    let label = |(row, compared): &(RowRatio, &Compared)| {
        let odd = if is_odd(compared) { " (odd)" } else { "" };
        format!("{}{odd}", row.test.title)
    };
    let bars = sorted.iter().map(|both| Bar {
        label: label(both),
        value: both.0.ratio,
        low_high: both.1.ci95,
        verdict: Verdict::trusted(),
    });
    let cells = sorted.iter().map(|both| {
        vec![
            Cell::Text(label(both)),
            Cell::Number(figure(both.1.a, &both.1.unit)),
            Cell::Number(figure(both.1.b, &both.1.unit)),
            Cell::Number(ratio_words(both.0.ratio, both.1.ci95)),
        ]
    });
    let index = indices(None, rows).map(|[a, b]| {
        vec![
            Cell::Text("all: the index".into()),
            Cell::Number(format!("{a:.1}")),
            Cell::Number(format!("{b:.1}")),
            Cell::Number(ratio_words(b / a, None)),
        ]
    });
    let of = if copies == 1 { "1 copy".to_string() } else { format!("{copies} copies") };
    Chart::new(
        format!("chart-rows-{}-{copies}", letter.to_lowercase()),
        format!("Rows of {of}, {letter} over A"),
        ChartKind::Bars { y: Axis::linear(format!("{letter}/A")), bars: bars.collect() },
        Table::new(
            vec![column("row"), right("A"), right(letter), right(&format!("{letter}/A (95 %)"))],
            cells.chain(index),
        )
        .folded(),
    )
    .about("1: as fast as A. Odd: breaks with its relatives, see Findings.")
}
