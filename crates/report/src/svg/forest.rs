//! The forest plot of a comparison: a row for each figure with its values, its ratio, its interval
//! and what it says; diamonds for groups, and a grey band in which ratios count as the same.
//!
//! It is drawn twice, for wide and for narrow pages; the style sheet shows one of them. Colours
//! stand in classes with a fallback beside them, so that the style sheet decides.

use std::fmt::Write;

use super::Theme;
use super::canvas::{Anchor, Canvas, INK, MUTED, Role, measured};
use crate::block::{Forest, ForestRow, ForestSide};
use crate::plain::{lines, plain};

const SIZE: f64 = 12.5;
const SMALL: f64 = 11.5;
/// From one line of a long name to the next.
const LINE: f64 = 16.0;
/// Between two texts on a line.
const GAP: f64 = 8.0;

/// Where everything stands.
struct Places {
    width: f64,
    head: f64,
    row: f64,
    label_end: f64,
    /// Right ends of A's and B's value; `None` where both stand in a line below the name.
    values: Option<[f64; 2]>,
    unit: f64,
    ratio: f64,
    plot: [f64; 2],
    word: (f64, Anchor),
    /// From the name's line to the line of the plot.
    below: f64,
}

const WIDE: Places = Places {
    width: 912.0,
    head: 34.0,
    row: 26.0,
    label_end: 232.0,
    values: Some([292.0, 358.0]),
    unit: 368.0,
    ratio: 462.0,
    plot: [486.0, 756.0],
    word: (772.0, Anchor::Start),
    below: 0.0,
};

const NARROW: Places = Places {
    width: 340.0,
    head: 24.0,
    row: 44.0,
    label_end: 230.0,
    values: None,
    unit: 0.0,
    ratio: 160.0,
    plot: [176.0, 334.0],
    word: (340.0, Anchor::End),
    below: 18.0,
};

/// The pictures as elements of the page.
pub fn forest(forest: &Forest) -> String {
    format!(
        "<div class=\"forest-wide\">{}</div><div class=\"forest-narrow\">{}</div>",
        picture(forest, &WIDE),
        picture(forest, &NARROW)
    )
}

fn picture(forest: &Forest, places: &Places) -> String {
    let labels: Vec<Vec<String>> = forest.rows.iter().map(|row| label(row, places)).collect();
    let height = |row: &ForestRow, label: &Vec<String>| {
        let row = if row.group { places.row - places.below / 2.0 } else { places.row };
        row + LINE * label.len().saturating_sub(1) as f64
    };
    let heights: Vec<f64> = forest.rows.iter().zip(&labels).map(|(row, label)| height(row, label)).collect();
    let bottom = places.head + heights.iter().sum::<f64>();
    let mut canvas = Canvas::new(Theme::Page, [places.width, bottom + 26.0]);
    canvas.element("title", &format!("{} against {}, figure by figure", forest.names[1], forest.names[0]));
    canvas.element("desc", &description(forest));
    axis(&mut canvas, forest, places, bottom);
    head(&mut canvas, forest, places);
    let mut top = places.head;
    for ((row, label), height) in forest.rows.iter().zip(&labels).zip(&heights) {
        draw(&mut canvas, forest, places, (row, label), top);
        top += height;
    }
    canvas.end()
}

/// The plot for who cannot see it.
fn description(forest: &Forest) -> String {
    let said = forest.rows.iter().map(|row| format!("{}: {}.", plain(&row.label, 120), plain(&row.word, 60)));
    said.collect::<Vec<_>>().join(" ")
}

/// A name on as many lines as it needs.
fn label(row: &ForestRow, places: &Places) -> Vec<String> {
    let room = places.label_end - indent(row, places);
    let text = plain(&row.label, 200);
    let widest = measured(&text, SIZE + 0.5).max(1.0);
    let columns = (text.chars().count() as f64 * room / widest).floor() as usize;
    lines(&text, columns.max(8))
}

fn indent(row: &ForestRow, places: &Places) -> f64 {
    if row.group || places.values.is_none() { 0.0 } else { 14.0 }
}

fn place(forest: &Forest, places: &Places, ratio: f64) -> f64 {
    let share = (ratio.ln() / forest.end.ln() + 1.0) / 2.0;
    let [left, right] = places.plot;
    left + share.clamp(0.0, 1.0) * (right - left)
}

/// The band of sameness, lines at whole steps, and what they stand for.
fn axis(canvas: &mut Canvas, forest: &Forest, places: &Places, bottom: f64) {
    let [low, high] =
        [1.0 / (1.0 + forest.band), 1.0 + forest.band].map(|ratio| place(forest, places, ratio));
    let head = places.head;
    canvas.raw(&format!(
        "<rect x=\"{low:.1}\" y=\"{head}\" width=\"{:.1}\" height=\"{:.1}\" class=\"forest-band\" fill=\"#dfe4ea\"/>\n",
        high - low,
        bottom - head
    ));
    // A round number near the middle of each half.
    let inner = match forest.end {
        end if end <= 1.25 => 1.1,
        end if end <= 2.0 => 1.5,
        end if end <= 4.0 => 2.0,
        end if end <= 10.0 => 3.0,
        end => end.sqrt(),
    };
    for ratio in [1.0 / forest.end, 1.0 / inner, 1.0, inner, forest.end] {
        let (kind, colour) =
            if ratio == 1.0 { ("forest-one", "#8a93a0") } else { ("forest-line", "#e3e4e1") };
        let at = place(forest, places, ratio);
        canvas.raw(&format!(
            "<path d=\"M{at:.1} {head}V{bottom:.1}\" class=\"{kind}\" stroke=\"{colour}\" fill=\"none\"/>\n"
        ));
        let text = format!("{ratio:.2}").trim_end_matches('0').trim_end_matches('.').to_string();
        // At the edge of a narrow page a number ends there.
        let edge = places.width - at < 10.0;
        let anchor = if edge { Anchor::End } else { Anchor::Middle };
        canvas.text([if edge { places.width } else { at }, bottom + 18.0], anchor, SMALL, MUTED, &text);
    }
}

fn head(canvas: &mut Canvas, forest: &Forest, places: &Places) {
    let [a, b] = forest.names.each_ref().map(|name| plain(name, 12));
    let y = places.head - 14.0;
    let ratio = format!("{b} \u{f7} {a}");
    let mut texts = vec![(places.ratio, Anchor::End, ratio)];
    if let Some(values) = places.values {
        texts.push((places.unit, Anchor::Start, "unit".to_string()));
        texts.push((values[0], Anchor::End, a));
        texts.push((values[1], Anchor::End, b.clone()));
        texts.push((places.word.0, places.word.1, format!("{b} is")));
    }
    texts.push((places.plot[0], Anchor::Start, format!("\u{25c2} {b} slower")));
    texts.push((places.plot[1], Anchor::End, format!("{b} faster \u{25b8}")));
    texts.into_iter().for_each(|(at, anchor, text)| canvas.text([at, y], anchor, SMALL, MUTED, &text));
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

fn draw(
    canvas: &mut Canvas,
    forest: &Forest,
    places: &Places,
    (row, label): (&ForestRow, &[String]),
    top: f64,
) {
    let size = if row.group { SIZE + 0.5 } else { SIZE };
    if row.group {
        canvas.raw(&format!(
            "<path d=\"M0 {top:.1}H{}\" class=\"forest-line\" stroke=\"#e3e4e1\" fill=\"none\"/>\n<g font-weight=\"600\">\n",
            places.width
        ));
    }
    for (at, line) in label.iter().enumerate() {
        canvas.text([indent(row, places), top + 17.0 + LINE * at as f64], Anchor::Start, size, INK, line);
    }
    let y = top + 17.0 + LINE * label.len().saturating_sub(1) as f64;
    // A group has no values, so that its plot stands beside its name.
    let below = if row.group { y } else { y + places.below };
    match places.values {
        Some(values) => {
            for (at, value) in values.iter().zip(&row.values) {
                canvas.text([*at, y], Anchor::End, size, INK, value);
            }
            canvas.text([places.unit, y], Anchor::Start, SMALL, MUTED, &row.unit);
        }
        None if row.group => {}
        None => canvas.text([0.0, below], Anchor::Start, SMALL, MUTED, &both(row)),
    }
    let note = note(row, places);
    // A long note stands where a ratio would.
    let ratio = match row.ratio.filter(|_| !row.wide) {
        Some(ratio) => format!("{ratio:.2}"),
        None if note_end(places) - measured(&note, SMALL) > places.ratio + GAP => "\u{2013}".to_string(),
        None => String::new(),
    };
    canvas.text([places.ratio, below], Anchor::End, size, INK, &ratio);
    let said = if row.side == ForestSide::Neither && !row.group { MUTED } else { role(row.side) };
    // On a narrow page a group's word would lie in its plot.
    if !(row.group && places.values.is_none()) {
        canvas.text([places.word.0, y], places.word.1, size, said, &row.word);
    }
    if row.group {
        canvas.raw("</g>\n");
    }
    mark(canvas, forest, places, row, below - 4.0);
    canvas.text([note_end(places), below], Anchor::End, SMALL, role(row.side), &note);
}

/// A row's values and their unit, where they stand on one line.
fn both(row: &ForestRow) -> String {
    format!("{}, {} {}", row.values[0], row.values[1], row.unit)
}

/// A note as far as it stands clear of what is before it: without its number, or cut.
fn note(row: &ForestRow, places: &Places) -> String {
    let from = match places.values {
        Some(_) => places.unit + measured(&row.unit, SMALL),
        None => measured(&both(row), SMALL),
    };
    let room = note_end(places) - from - GAP;
    let whole = plain(&row.note, 48);
    let reason = whole.split_once(": ").map_or(whole.as_str(), |(_, reason)| reason);
    let fits = |text: &str| measured(text, SMALL) <= room;
    match [&whole, reason].into_iter().find(|text| fits(text)) {
        Some(text) => text.to_string(),
        None => (0..reason.chars().count())
            .rev()
            .map(|most| plain(reason, most))
            .find(|text| fits(text))
            .unwrap_or_default(),
    }
}

/// Where notes end, which is within the plot.
fn note_end(places: &Places) -> f64 {
    places.plot[1] - 6.0
}

/// The interval and the point of a row.
fn mark(canvas: &mut Canvas, forest: &Forest, places: &Places, row: &ForestRow, y: f64) {
    let (class, colour) = role(row.side);
    let mut out = String::new();
    // Writing to a string cannot fail.
    if let Some(ends) = row.ci95 {
        let [from, to] = ends.map(|ratio| place(forest, places, ratio));
        if row.group {
            let middle = place(forest, places, row.ratio.unwrap_or(1.0));
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
        let at = place(forest, places, ratio);
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
        let both = super::forest(&Forest { names: ["A".into(), "B".into()], rows, end: 2.0, band: 0.02 });
        let pictures: Vec<&str> = both.split("forest-narrow").collect();
        assert_eq!(pictures.len(), 2);
        for picture in pictures {
            assert_eq!(picture.matches("<circle").count(), 2);
            assert_eq!(picture.matches("Z\"").count(), 1, "one diamond");
            assert!(
                picture.contains("latency &lt;1&gt;") && picture.contains("for another reason"),
                "{picture}"
            );
        }
        // It is well formed.
        let mut reader = quick_xml::Reader::from_str(&both);
        while !matches!(reader.read_event().expect("well formed"), quick_xml::events::Event::Eof) {}
    }

    #[test]
    fn no_text_of_a_row_lies_on_another() {
        let row = |value: &str, unit: &str, note: &str, word: &str| ForestRow {
            label: "latency".into(),
            group: false,
            values: [value.into(), value.into()],
            unit: unit.into(),
            ratio: None,
            ci95: None,
            wide: false,
            word: word.into(),
            side: ForestSide::LeftOut,
            note: note.into(),
        };
        let rows = vec![
            row("1.00", "ns", "", "same within 10 %"),
            row("13.5", "GB/s", "1.1 \u{d7} apart: background-load", "not counted"),
            row("1340000", "GB/s", "194.0 \u{d7} apart: background-load", "not counted"),
            row(
                "1340000",
                "GB/s",
                "194.0 \u{d7} apart: a reason of more words than a phone has room for",
                "not counted",
            ),
        ];
        let forest = Forest { names: ["A".into(), "B".into()], rows, end: 2.0, band: 0.02 };
        let pattern =
            r#"<text x="([\d.-]+)" y="([\d.-]+)"( text-anchor="(\w+)")? font-size="([\d.]+)"[^>]*>([^<]*)<"#;
        let pattern = regex::Regex::new(pattern).expect("a pattern");
        for places in [&WIDE, &NARROW] {
            let picture = picture(&forest, places);
            let mut texts: Vec<(String, f64, f64, String)> = Vec::new();
            for found in pattern.captures_iter(&picture) {
                let number = |at: usize| found[at].parse::<f64>().expect("a number");
                let wide = measured(&found[6], number(5));
                let from = match found.get(4).map_or("", |anchor| anchor.as_str()) {
                    "end" => number(1) - wide,
                    "middle" => number(1) - wide / 2.0,
                    _ => number(1),
                };
                texts.push((found[2].to_string(), from, from + wide, found[6].to_string()));
            }
            // The head and the axis have names and numbers of fixed places.
            let end = places.head + places.row * forest.rows.len() as f64;
            texts.retain(|(y, ..)| y.parse::<f64>().is_ok_and(|y| y > places.head && y < end));
            assert!(texts.len() >= 4 * forest.rows.len() - 1, "{texts:?}");
            for (at, (y, from, to, text)) in texts.iter().enumerate() {
                assert!(*from >= 0.0 && *to <= places.width, "{text} sticks out");
                let clash =
                    texts[at + 1..].iter().find(|other| other.0 == *y && other.1 < *to && *from < other.2);
                assert_eq!(clash, None, "on {text}");
            }
            let reasons = texts.iter().filter(|(.., text)| text.contains("background-load")).count();
            assert_eq!(reasons, 2, "the reason is what is kept: {texts:?}");
        }
    }
}
