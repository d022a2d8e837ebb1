//! Charts that have a row a series: its name at the left and its figure at the right, or both above
//! it where the page is too narrow for that.

use plotly::layout::{Axis, AxisRange};
use serde_json::{Value, json};

use super::Shape;
use super::theme::{font, row_axis};
use crate::html::text::label;
use crate::html::verdict::worth;
use model::{Verdict, VerdictKind};

pub struct Row {
    pub label: String,
    pub figure: String,
}

impl Row {
    /// A row whose figure says in a word what it is worth, unless it is simply trusted.
    pub fn new(name: &str, figure: &str, verdict: &Verdict) -> Row {
        let figure = match verdict.kind {
            VerdictKind::Trusted => label(figure, 40),
            VerdictKind::Skipped if !verdict.reason.is_empty() => {
                format!("– skipped: {}", label(&verdict.reason, 34))
            }
            kind => format!("{}  {} {}", label(figure, 40), worth(kind).mark, kind.words()),
        };
        Row { label: label(name, 46), figure: figure.trim().to_owned() }
    }
}

/// The axis of names and the axis of figures, which has to be some trace's axis.
pub fn axes(rows: &[Row]) -> [Axis; 2] {
    let places: Vec<f64> = (0..rows.len()).map(|row| row as f64).collect();
    let names = rows.iter().map(|row| row.label.as_str()).collect::<Vec<_>>();
    let figures = rows.iter().map(|row| row.figure.as_str()).collect::<Vec<_>>();
    let left =
        row_axis(rows.len()).tick_values(places.clone()).tick_text(names).tick_font(font(12).color("$ink"));
    let right = row_axis(rows.len()).tick_values(places).tick_text(figures).tick_font(font(12).color("$ink"));
    [left, right.overlaying("y").side(plotly::common::AxisSide::Right)]
}

pub fn shape(rows: usize) -> Shape {
    Shape::Tall(rows * 32 + 72, rows * 64 + 64)
}

/// The layout's changes on a narrow page: no margins for text, the text above each row; fewer
/// ticks.
pub fn narrow(rows: &[Row], ticks: usize) -> Value {
    let texts = rows.iter().enumerate().map(|(place, row)| {
        json!({
            "text": format!("{}<br>{}", row.label, row.figure),
            "x": 0, "xref": "paper", "xanchor": "left", "xshift": -4, "align": "left",
            "y": place, "yref": "y", "yanchor": "bottom", "yshift": 13,
            "showarrow": false, "font": font(11).color("$ink"),
        })
    });
    let range = AxisRange::new(rows.len() as f64 - 0.5, -0.9);
    let axis = json!({ "showticklabels": false, "range": range });
    json!({ "annotations": texts.collect::<Vec<Value>>(), "yaxis": axis, "yaxis2": axis, "xaxis": { "nticks": ticks }, "bargap": 0.7 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_say_what_they_are_worth() {
        let row = Row::new("a<b", "1.46 µs", &Verdict::new(VerdictKind::Multimodal, "two modes"));
        assert_eq!(row.label, "a&lt;b");
        assert_eq!(row.figure, "1.46 µs  ! multimodal");
        assert_eq!(Row::new("a", "1.46 µs ±3 %", &Verdict::trusted()).figure, "1.46 µs ±3 %");
        assert_eq!(
            Row::new("a", "", &Verdict::new(VerdictKind::Skipped, "budget")).figure,
            "– skipped: budget"
        );
    }
}
