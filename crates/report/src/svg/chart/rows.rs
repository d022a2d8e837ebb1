//! Charts that have a row a series: its name at the left and its figure at the right, or both above
//! it where the page is too narrow for that.

use std::fmt::Write;

use super::scale::Scaled;
use super::{across, safe, thousand};
use crate::html::verdict::worth;
use model::{Verdict, VerdictKind};

/// Ticks on a wide and on a narrow page.
const WIDE: usize = 8;
const NARROW: usize = 4;

/// A row's height in the units of its drawing, and its middle.
pub const HEIGHT: f64 = 24.0;
pub const MIDDLE: f64 = HEIGHT / 2.0;

pub struct Row {
    /// Escaped, as is the figure.
    label: String,
    figure: String,
    /// The whole name, where the label is cut.
    hint: Option<String>,
    /// Marks in a drawing that is a thousand units wide.
    marks: String,
}

impl Row {
    /// A row whose figure says in a word what it is worth, unless it is simply trusted.
    pub fn new(name: &str, figure: &str, verdict: &Verdict, marks: String) -> Row {
        let figure = match verdict.kind {
            VerdictKind::Trusted | VerdictKind::Imprecise => safe(figure, 40),
            VerdictKind::Skipped if !verdict.reason.is_empty() => {
                format!("– skipped: {}", safe(&verdict.reason, 34))
            }
            kind => format!("{}  {} {}", safe(figure, 40), worth(kind).mark, kind.words()),
        };
        let (label, whole) = (safe(name, 64), safe(name, 160));
        let hint = (label != whole).then_some(whole);
        Row { label, figure: figure.trim().to_owned(), hint, marks }
    }
}

/// The rows above their axis.
pub fn html(rows: &[Row], axis: Option<&Scaled>, title: &str) -> String {
    let mut out = String::from("<div class=\"rows\">");
    let grid = axis.map_or(String::new(), |axis| {
        let ticks = axis.ticks(WIDE).values;
        let lines = ticks.iter().filter_map(|value| axis.inside(*value));
        lines.map(|place| format!("M{} 0v{HEIGHT}", thousand(place))).collect()
    });
    for row in rows {
        let Row { label, figure, hint, marks } = row;
        let hint = hint.as_ref().map_or(String::new(), |hint| format!("<title>{hint}</title>"));
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<div class=\"row\"><span class=\"l\">{label}</span><svg class=\"track\" viewBox=\"0 0 1000 {HEIGHT}\" \
             preserveAspectRatio=\"none\" aria-hidden=\"true\">{hint}<path class=\"grid\" \
             d=\"{grid}\"/>{marks}</svg><span class=\"f\">{figure}</span></div>"
        );
    }
    if let Some(axis) = axis {
        let title = safe(title, 100);
        let ticks = [ticks(axis, WIDE, "w"), ticks(axis, NARROW, "n")].concat();
        let _ = write!(
            out,
            "<div class=\"row axis\" aria-hidden=\"true\"><span class=\"l\"></span><svg class=\"plot\" height=\"18\">{ticks}</svg>\
             <span class=\"f\"></span><span class=\"t\">{title}</span></div>"
        );
    }
    out.push_str("</div>");
    out
}

/// `150 M` for a value that would take the room of two ticks.
pub fn brief(value: f64) -> Option<String> {
    let (unit, word) = match value.abs() {
        size if (1e9..1e12).contains(&size) => (1e9, "G"),
        size if (1e6..1e9).contains(&size) => (1e6, "M"),
        size if (1e4..1e6).contains(&size) => (1e3, "k"),
        _ => return None,
    };
    let scaled = value / unit;
    let decimals = if scaled.abs() < 10.0 { 2 } else { usize::from(scaled.abs() < 100.0) };
    let text = format!("{scaled:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    Some(format!("{text}\u{a0}{word}"))
}

fn ticks(axis: &Scaled, most: usize, class: &str) -> String {
    let ticks = axis.ticks(most);
    let mut out = format!("<g class=\"{class}\">");
    for (value, text) in ticks.values.iter().zip(&ticks.text) {
        if let Some(place) = axis.inside(*value) {
            let anchor = match place {
                place if place < 0.03 => "start",
                place if place > 0.97 => "end",
                _ => "middle",
            };
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"13\" text-anchor=\"{anchor}\">{}</text>",
                across(place),
                brief(*value).unwrap_or_else(|| safe(text, 24))
            );
        }
    }
    out.push_str("</g>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_brief() {
        let shown = [9999.0, 50_000.0, 61_105.0, 120_423.0, 1.5e8, -2e9].map(brief);
        let wanted = ["50\u{a0}k", "61.1\u{a0}k", "120\u{a0}k", "150\u{a0}M", "-2\u{a0}G"];
        assert_eq!(shown[1..], wanted.map(|text| Some(text.to_owned())));
        assert_eq!((&shown[0], brief(f64::NAN)), (&None, None));
    }

    #[test]
    fn figures_say_what_they_are_worth() {
        let row = |figure: &str, verdict: &Verdict| Row::new("a<b", figure, verdict, String::new());
        let modes = row("1.46 µs", &Verdict::new(VerdictKind::Multimodal, "two modes"));
        assert_eq!(modes.label, "a&lt;b");
        assert_eq!(modes.figure, "1.46 µs  ! multimodal");
        assert_eq!(row("1.46 µs ±3 %", &Verdict::trusted()).figure, "1.46 µs ±3 %");
        assert_eq!(row("", &Verdict::new(VerdictKind::Skipped, "budget")).figure, "– skipped: budget");
    }
}
