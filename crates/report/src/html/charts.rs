//! Charts as plotly takes them: traces, a layout, and what changes on a narrow page.
//!
//! Colours are names (`$c0`, `$muted`) that the page's script looks up in the style sheet, where
//! light and dark have their own; every text is escaped for plotly's own small HTML.

mod bars;
mod lines;
mod matrix;
mod rows;
pub mod strips;
mod theme;
pub mod ticks;

use std::fmt::Display;

use plotly::{Layout, Trace};
use serde::Serialize;

use crate::block::ChartKind;
use crate::html::text::Script;

/// One chart, ready to be written into the page.
#[derive(Serialize)]
pub struct Spec {
    data: Vec<Box<dyn Trace>>,
    layout: Layout,
    /// Laid over `layout` where the page is narrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    narrow: Option<serde_json::Value>,
    /// What the first trace shows in several orders, of which the first is drawn first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    #[serde(skip)]
    pub shape: Shape,
    /// What the drawing leaves out, as sentences below it.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// The place that a chart takes on the page, known before any script runs so that nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Heights in pixels on a wide and on a narrow page.
    Tall(usize, usize),
    /// As wide as the page allows, and at most this many pixels.
    Square(usize),
}

/// One order of a matrix.
#[derive(Serialize)]
pub struct Order {
    /// On its button.
    #[serde(skip)]
    pub name: &'static str,
    /// Labels of the columns and of the rows.
    x: Vec<String>,
    y: Vec<String>,
    z: Vec<Vec<Option<f64>>>,
}

/// The drawings of `kind`: one, but for many strips, which would take a browser seconds at once.
pub fn specs(kind: &ChartKind) -> Vec<Spec> {
    match kind {
        ChartKind::Lines { x, y, lines, marks, callouts } => vec![lines::spec(x, y, lines, marks, callouts)],
        ChartKind::Strips { strips } => strips::specs(strips),
        ChartKind::Bars { y, bars } => vec![bars::spec(y, bars)],
        ChartKind::Matrix { unit, rows, columns, values, rejected } => {
            vec![matrix::spec(unit, [rows, columns], values, rejected)]
        }
        // Drawn without plotly.
        ChartKind::Map(_) | ChartKind::Forest(_) => Vec::new(),
    }
}

impl Spec {
    /// The drawing as JSON for a script element.
    pub fn json(&self) -> impl Display {
        Script(self)
    }

    /// Its place on the page, for the style sheet.
    pub fn style(&self) -> String {
        match self.shape {
            Shape::Tall(wide, narrow) => format!("--tall: {wide}px; --tall-narrow: {narrow}px"),
            Shape::Square(most) => format!("--most: {most}px"),
        }
    }

    pub fn is_square(&self) -> bool {
        matches!(self.shape, Shape::Square(_))
    }
}
