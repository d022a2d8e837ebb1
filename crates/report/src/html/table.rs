//! Tables: numbers under each other, verdicts as words.

use askama::Template;

use super::histogram::Histogram;
use super::text::filters;
use super::verdict::{VerdictStyle, tone, worth};
use crate::block::{Cell, Table};
use crate::figure_rows::is_odd;
use crate::screen::RowReading;
use model::{Verdict, VerdictKind};

/// More cells than this make a page slow; the raw data has them all.
const MAX_CELLS: usize = 60_000;

#[derive(Template)]
#[template(path = "report/table.html", whitespace = "minimize")]
pub struct TableView<'a> {
    table: &'a Table,
}

impl<'a> TableView<'a> {
    pub fn new(table: &'a Table) -> TableView<'a> {
        TableView { table }
    }

    fn shown(&self) -> &'a [Vec<Cell>] {
        let rows = &self.table.rows;
        let widest = rows.iter().map(Vec::len).max().unwrap_or(1).max(1);
        &rows[..rows.len().min((MAX_CELLS / widest).max(1))]
    }

    fn left_out(&self) -> usize {
        self.table.rows.len() - self.shown().len()
    }

    fn right(&self, column: usize) -> bool {
        self.table.columns.get(column).is_some_and(|column| column.right)
    }

    /// How many columns a cell takes: the last one of a short row all that are left.
    fn span(&self, row: &[Cell], place: usize) -> usize {
        let last = place + 1 == row.len();
        if last { self.table.columns.len().saturating_sub(place).max(1) } else { 1 }
    }

    /// Whether "Only problems" leaves the row.
    fn problem(&self, row: &[Cell]) -> bool {
        row.iter().any(|cell| match cell {
            Cell::Verdict(verdict) => is_odd(verdict.kind),
            Cell::Reading { is_problem, .. } => *is_problem,
            _ => false,
        })
    }

    /// The class of a reading.
    fn tone(&self, reading: &RowReading) -> &'static str {
        tone(reading.tone)
    }

    /// Whether these are figures, whose columns stand under each other from table to table.
    fn is_of_figures(&self) -> bool {
        self.table.rows.iter().flatten().any(|cell| matches!(cell, Cell::Reading { .. }))
    }

    /// Where a figure was measured, for narrow pages, which have no column of it.
    fn place(&self, row: &'a [Cell]) -> Option<&'a str> {
        match row {
            [Cell::Keyed { .. }, Cell::Text(place), .., Cell::Reading { .. }] if place != "one CPU" => {
                Some(place)
            }
            _ => None,
        }
    }

    fn worth(&self, kind: VerdictKind) -> VerdictStyle {
        worth(kind)
    }

    fn histogram(&self, values: &'a [f64]) -> Histogram<'a> {
        Histogram(values)
    }

    fn reason(&self, verdict: &'a Verdict) -> &'a str {
        verdict.reason.trim()
    }
}
