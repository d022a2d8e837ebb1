//! The forest plot of a comparison: a row for each figure with its values, its ratio, its interval
//! and what it says; diamonds for groups, and a grey band in which ratios count as the same.
//!
//! Colours stand in classes with a fallback beside them, so that the page's style sheet decides.

use std::fmt::Write;

use super::Theme;
use super::canvas::{Anchor, Canvas, INK, MUTED, Role, measured};
use crate::block::{Forest, ForestRow, ForestSide};
use crate::plain::{lines, plain};

const WIDTH: f64 = 912.0;
const ROW: f64 = 26.0;
/// Further lines of a long name.
const LINE: f64 = 16.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 26.0;
const SIZE: f64 = 12.5;

/// Columns: where names end, where numbers end, where the others begin.
const LABEL_END: f64 = 232.0;
const VALUES: [f64; 2] = [292.0, 358.0];
const UNIT: f64 = 368.0;
const RATIO: f64 = 462.0;
const PLOT: [f64; 2] = [486.0, 776.0];
const WORD: f64 = 794.0;

/// The picture as an SVG element of the page.
pub fn forest(forest: &Forest) -> String {
    let labels: Vec<Vec<String>> = forest.rows.iter().map(label).collect();
    let height = |label: &Vec<String>| ROW + LINE * label.len().saturating_sub(1) as f64;
    let bottom = HEAD + labels.iter().map(height).sum::<f64>();
    let mut canvas = Canvas::new(Theme::Page, [WIDTH, bottom + FOOT]);
    canvas.element("title", &format!("{} against {}, figure by figure", forest.names[1], forest.names[0]));
    canvas.element("desc", &description(forest));
    axis(&mut canvas, forest, bottom);
    head(&mut canvas, forest);
    let mut top = HEAD;
    for (row, label) in forest.rows.iter().zip(&labels) {
        draw(&mut canvas, forest, row, label, top);
        top += height(label);
    }
    canvas.end()
}

/// The plot for who cannot see it.
fn description(forest: &Forest) -> String {
    let said = forest.rows.iter().map(|row| format!("{}: {}.", plain(&row.label, 120), plain(&row.word, 60)));
    said.collect::<Vec<_>>().join(" ")
}

/// A name on as many lines as it needs.
fn label(row: &ForestRow) -> Vec<String> {
    let size = if row.group { SIZE + 0.5 } else { SIZE };
    let room = LABEL_END - indent(row);
    let text = plain(&row.label, 200);
    let widest = measured(&text, size).max(1.0);
    let columns = (text.chars().count() as f64 * room / widest).floor() as usize;
    lines(&text, columns.max(8))
}

fn indent(row: &ForestRow) -> f64 {
    if row.group { 0.0 } else { 14.0 }
}

fn place(forest: &Forest, ratio: f64) -> f64 {
    let share = (ratio.ln() / forest.end.ln() + 1.0) / 2.0;
    PLOT[0] + share.clamp(0.0, 1.0) * (PLOT[1] - PLOT[0])
}

/// The band of sameness, lines at whole steps, and what they stand for.
fn axis(canvas: &mut Canvas, forest: &Forest, bottom: f64) {
    let [low, high] = [1.0 / (1.0 + forest.band), 1.0 + forest.band].map(|ratio| place(forest, ratio));
    canvas.raw(&format!(
        "<rect x=\"{low:.1}\" y=\"{HEAD}\" width=\"{:.1}\" height=\"{:.1}\" class=\"forest-band\" fill=\"#dfe4ea\"/>\n",
        high - low,
        bottom - HEAD
    ));
    let inner = forest.end.sqrt();
    for ratio in [1.0 / forest.end, 1.0 / inner, 1.0, inner, forest.end] {
        let (at, kind) = (place(forest, ratio), if ratio == 1.0 { "forest-one" } else { "forest-line" });
        canvas.raw(&format!(
            "<path d=\"M{at:.1} {HEAD}V{bottom:.1}\" class=\"{kind}\" stroke=\"{}\" fill=\"none\"/>\n",
            if ratio == 1.0 { "#8a93a0" } else { "#e3e4e1" }
        ));
        let text = format!("{ratio:.2}").trim_end_matches('0').trim_end_matches('.').to_string();
        canvas.text([at, bottom + 18.0], Anchor::Middle, 11.5, MUTED, &text);
    }
}

fn head(canvas: &mut Canvas, forest: &Forest) {
    let [a, b] = forest.names.each_ref().map(|name| plain(name, 12));
    let y = HEAD - 14.0;
    for (at, anchor, text) in [
        (VALUES[0], Anchor::End, a.clone()),
        (VALUES[1], Anchor::End, b.clone()),
        (UNIT, Anchor::Start, "unit".to_string()),
        (RATIO, Anchor::End, format!("{b} \u{f7} {a}")),
        (PLOT[0], Anchor::Start, format!("\u{25c2} {b} slower")),
        (PLOT[1], Anchor::End, format!("{b} faster \u{25b8}")),
        (WORD, Anchor::Start, format!("{b} is")),
    ] {
        canvas.text([at, y], anchor, 11.5, MUTED, &text);
    }
}

/// Class and colour of what a row says.
fn role(side: ForestSide) -> Role {
    match side {
        ForestSide::Faster => ("forest-faster", "#17663f"),
        ForestSide::Slower => ("forest-slower", "#ad4b06"),
        ForestSide::Neither => ("forest-same", "#5a626d"),
        ForestSide::LeftOut => ("forest-left", "#8a4a06"),
    }
}

fn draw(canvas: &mut Canvas, forest: &Forest, row: &ForestRow, label: &[String], top: f64) {
    let size = if row.group { SIZE + 0.5 } else { SIZE };
    if row.group {
        canvas.raw(&format!(
            "<path d=\"M0 {top:.1}H{WIDTH}\" class=\"forest-line\" stroke=\"#e3e4e1\" fill=\"none\"/>\n<g font-weight=\"600\">\n"
        ));
    }
    for (at, line) in label.iter().enumerate() {
        canvas.text([indent(row), top + 17.0 + LINE * at as f64], Anchor::Start, size, INK, line);
    }
    let y = top + 17.0 + LINE * label.len().saturating_sub(1) as f64;
    for (at, value) in VALUES.iter().zip(&row.values) {
        canvas.text([*at, y], Anchor::End, size, INK, value);
    }
    canvas.text([UNIT, y], Anchor::Start, 11.5, MUTED, &row.unit);
    let ratio = row.ratio.filter(|_| !row.wide).map_or("\u{2013}".to_string(), |ratio| format!("{ratio:.2}"));
    canvas.text([RATIO, y], Anchor::End, size, INK, &ratio);
    let said = if row.side == ForestSide::Neither && !row.group { MUTED } else { role(row.side) };
    canvas.text([WORD, y], Anchor::Start, size, said, &row.word);
    if row.group {
        canvas.raw("</g>\n");
    }
    mark(canvas, forest, row, y - 4.0);
    if !row.note.is_empty() {
        canvas.text([PLOT[1] - 6.0, y], Anchor::End, 11.5, role(row.side), &plain(&row.note, 48));
    }
}

/// The interval and the point of a row; an arrow where they lie beyond the axis.
fn mark(canvas: &mut Canvas, forest: &Forest, row: &ForestRow, y: f64) {
    let (class, colour) = role(row.side);
    let mut out = String::new();
    // Writing to a string cannot fail.
    if let Some([low, high]) = row.ci95 {
        let [from, to] = [low, high].map(|ratio| place(forest, ratio));
        if row.group {
            let middle = place(forest, row.ratio.unwrap_or(1.0));
            let [from, to] = [from.min(middle - 5.0), to.max(middle + 5.0)];
            let _ = write!(
                out,
                "<path d=\"M{from:.1} {y:.1}L{middle:.1} {:.1}L{to:.1} {y:.1}L{middle:.1} {:.1}Z\" class=\"{class}\" fill=\"{colour}\"/>",
                y - 5.5,
                y + 5.5
            );
        } else {
            let _ = write!(
                out,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"2\" class=\"{class}\" fill=\"{colour}\"/>",
                y - 1.0,
                (to - from).max(1.0)
            );
        }
    }
    if let Some(ratio) = row.ratio.filter(|_| !row.group && !row.wide) {
        let at = place(forest, ratio);
        let _ =
            write!(out, "<circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"4\" class=\"{class}\" fill=\"{colour}\"/>");
    }
    canvas.raw(&format!("{out}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_drawn_and_what_is_left_out_has_no_point() {
        let row = |label: &str, ratio: Option<f64>, group: bool| ForestRow {
            label: label.into(),
            group,
            values: ["1.00".into(), "2.00".into()],
            unit: "ns".into(),
            ratio,
            ci95: ratio.map(|ratio| [ratio * 0.9, ratio * 1.1]),
            wide: false,
            word: "slower".into(),
            side: if ratio.is_some() { ForestSide::Slower } else { ForestSide::LeftOut },
            note: if ratio.is_some() { String::new() } else { "3.8 \u{d7} for another reason".into() },
        };
        let rows = vec![
            row("memory", Some(0.8), true),
            row("latency <1>", Some(0.5), false),
            row("pipe ping-pong", None, false),
            row(&"a long name ".repeat(8), Some(1.0), false),
        ];
        let picture = super::forest(&Forest { names: ["A".into(), "B".into()], rows, end: 2.0, band: 0.02 });
        assert_eq!(picture.matches("<circle").count(), 2);
        assert_eq!(picture.matches('Z').count(), 1, "one diamond");
        assert!(picture.contains("latency &lt;1&gt;") && picture.contains("for another reason"), "{picture}");
        // Nothing is cut, and the picture is well formed.
        assert_eq!(picture.matches("long name").count(), 2 * 8);
        let mut reader = quick_xml::Reader::from_str(&picture);
        while !matches!(reader.read_event().expect("well formed"), quick_xml::events::Event::Eof) {}
    }
}
