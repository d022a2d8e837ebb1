//! Every figure of a run, in rows: what `--all` prints by group, and the page's tables of figures.

use super::block::{Cell, Column, Table};
use super::screen::Row;
use super::text::numbers::{spread, three};
use model::VerdictKind;

/// A figure with what its row says beyond the first screen.
#[derive(Clone, Debug, Default)]
pub struct FigureRow {
    pub row: Row,
    /// The first part of its benchmark's id: `syscall`.
    pub bench: String,
    /// The benchmark's title, and what of it this is; the latter may be empty.
    pub title: String,
    pub detail: String,
    /// Where it ran, in words.
    pub place: String,
    /// How many passes its interval rests on.
    pub passes: usize,
    /// Their medians.
    pub samples: Vec<f64>,
    /// Why it is rejected, or the cause that moved it; may be empty.
    pub why: String,
    /// Whether it drifts, has two values or is rejected.
    pub is_odd: bool,
}

impl FigureRow {
    /// The whole name without the placement: `Memory bandwidth, read, 16 KiB (L1d)`.
    pub fn name(&self) -> String {
        match self.detail.as_str() {
            "" => self.title.clone(),
            detail => format!("{}, {detail}", self.title),
        }
    }

    /// How well it is known, beside its value.
    pub fn spread(&self) -> String {
        self.row.value.map_or(String::new(), |value| spread(value, self.row.low_high))
    }

    /// Whether "Only problems" shows it.
    pub fn is_problem(&self) -> bool {
        use super::screen::Tone;
        self.is_odd || matches!(self.row.reading.tone, Tone::Care | Tone::Bad)
    }
}

/// Whether figures of such a verdict are odd; a wide interval alone is not.
pub fn is_odd(kind: VerdictKind) -> bool {
    matches!(kind, VerdictKind::Multimodal | VerdictKind::Drifting | VerdictKind::Rejected)
}

/// The columns of tables of figures, the same in all of them.
pub fn columns() -> Vec<Column> {
    let titles = [
        ("figure", false),
        ("placement", false),
        ("value", true),
        ("unit", false),
        ("±", true),
        ("passes", true),
        ("samples", false),
        ("typical", false),
        ("reading", false),
    ];
    titles.map(|(title, right)| Column { title: title.into(), right }).to_vec()
}

/// The rows as a table; with headings where they are of several groups of benchmarks and many.
pub fn table(rows: &[FigureRow]) -> Table {
    let groups = rows.chunk_by(|one, other| one.bench == other.bench);
    let headed = groups.clone().count() > 1;
    let cells = |figure: &FigureRow| {
        let row = &figure.row;
        let key = row.key.clone().unwrap_or_default();
        vec![
            Cell::Keyed { name: figure.name(), key },
            Cell::Text(figure.place.clone()),
            Cell::Number(row.value.map_or("–".into(), three)),
            Cell::Text(row.value.map_or(String::new(), |_| row.unit.clone())),
            Cell::Number(figure.spread()),
            Cell::Number(if figure.passes == 0 { String::new() } else { figure.passes.to_string() }),
            Cell::Distribution(figure.samples.clone()),
            Cell::Text(row.typical.clone()),
            Cell::Reading {
                reading: row.reading.clone(),
                is_problem: figure.is_problem(),
                why: figure.why.clone(),
            },
        ]
    };
    let rows = groups.flat_map(|group| {
        let heading = headed.then(|| vec![Cell::Heading(group[0].bench.clone())]);
        heading.into_iter().chain(group.iter().map(cells)).collect::<Vec<_>>()
    });
    Table::new(columns(), rows)
}
