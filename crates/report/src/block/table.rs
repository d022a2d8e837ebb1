//! Tables: columns, and rows of cells that know what they hold.

use crate::screen::RowReading;
use model::Verdict;

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    /// Where a row is shorter than the columns its last cell takes what is left of the line.
    pub rows: Vec<Vec<Cell>>,
    /// Too long to stand open in a page.
    pub folded: bool,
}

impl Table {
    pub fn new(columns: Vec<Column>, rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
        Table { columns, rows: rows.into_iter().collect(), folded: false }
    }

    /// Closed in a page until the reader opens it.
    pub fn folded(self) -> Table {
        Table { folded: true, ..self }
    }
}

#[derive(Clone, Debug)]
pub struct Column {
    pub title: String,
    pub right: bool,
}

/// A column of text.
pub(crate) fn column(title: &str) -> Column {
    Column { title: title.into(), right: false }
}

/// A column of numbers.
pub(crate) fn right(title: &str) -> Column {
    Column { title: title.into(), right: true }
}

#[derive(Clone, Debug)]
pub enum Cell {
    /// What the rows below have in common; alone in its row.
    Heading(String),
    Text(String),
    /// A name with the key of its series, by which it can be found.
    Keyed {
        name: String,
        key: String,
    },
    Number(String),
    Code(String),
    Verdict(Verdict),
    /// How good a figure is; `why` of one that is rejected or has a cause.
    Reading {
        reading: RowReading,
        is_problem: bool,
        why: String,
    },
    /// Raw values, drawn as a small histogram.
    Distribution(Vec<f64>),
    Empty,
}

/// Columns by their titles, with ` | ` between them; the titles of numbers end with a colon, as
/// Markdown aligns them to the right.
pub(crate) fn columns(titles: &str) -> Vec<Column> {
    let column = |title: &str| match title.strip_suffix(':') {
        Some(title) => right(title),
        None => column(title),
    };
    titles.split(" | ").map(column).collect()
}
