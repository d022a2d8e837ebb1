//! Charts as SVG inside the page: one drawing for every width, without scripts.
//!
//! Places across are shares of the drawing's width, so that a narrow page draws the same chart
//! again in its own width and its letters keep their size. Colours are classes of the style sheet.

mod bars;
mod bitmap;
mod lines;
mod matrix;
mod rows;
mod scale;
mod strips;
#[cfg(test)]
mod tests;
pub mod ticks;

use super::canvas::{escaped, short};
use crate::block::ChartKind;
use crate::plain::plain;

/// The longest name that is written out.
const NAME: usize = 60;

/// One chart, ready to stand in the page.
#[derive(Debug, Default)]
pub struct Drawing {
    /// HTML with SVG inside; a chart in several orders is several of these.
    pub orders: Vec<Order>,
    /// What the signs mean, as HTML; empty where the chart says it itself.
    pub key: String,
    /// What the drawing leaves out, as sentences below it.
    pub notes: Vec<String>,
}

/// The drawing in one order of its rows.
#[derive(Debug)]
pub struct Order {
    /// On its button.
    pub name: &'static str,
    pub html: String,
}

/// The drawing of `kind`; nothing for a map, which `super::map` draws, and a forest plot.
pub fn drawing(kind: &ChartKind) -> Drawing {
    match kind {
        ChartKind::Lines { x, y, lines, marks, callouts } => lines::drawing([x, y], lines, marks, callouts),
        ChartKind::Strips { strips } => strips::drawing(strips),
        ChartKind::Bars { y, bars } => bars::drawing(y, bars),
        ChartKind::Matrix { unit, rows, columns, values, rejected } => {
            matrix::drawing(unit, [rows, columns], values, rejected)
        }
        ChartKind::Map(_) | ChartKind::Forest(_) => Drawing::default(),
    }
}

impl Drawing {
    fn one(html: String) -> Drawing {
        Drawing { orders: vec![Order { name: "", html }], ..Drawing::default() }
    }
}

/// A text of a host as it may stand in an element or in an attribute.
fn safe(text: &str, max: usize) -> String {
    escaped(&plain(text, max))
}

/// A share of the width: `37.25%`.
fn across(share: f64) -> String {
    let share = (share * 100.0).clamp(-100.0, 200.0);
    format!("{}%", trimmed(&format!("{share:.2}")))
}

/// A share of a drawing that is a thousand units wide.
fn thousand(share: f64) -> String {
    short((share * 1000.0).clamp(-1000.0, 2000.0))
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}
