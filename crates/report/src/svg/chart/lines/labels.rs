//! Names on a chart of curves: those of vertical marks above it, those of curves at their ends.

use std::fmt::Write;

use super::{Frame, NAME, ROW, across, pen, runs, safe};
use crate::block::{Line, Scale};
use crate::svg::canvas::{measured, short};
use crate::svg::chart::scale::{Scaled, drawable};

/// Widths of the drawing that labels are placed for.
pub const WIDE: f64 = 800.0;
pub const NARROW: f64 = 270.0;

/// Letters of this size.
const SIZE: f64 = 12.0;
/// Names at the ends of curves: pixels between two, the longest, and how far one may be moved.
const APART: f64 = 15.0;
/// Distance of names from the foot of the drawing, in pixels; ticks are below it.
const ABOVE_TICKS: f64 = 8.0;
const LONGEST: f64 = 180.0;
const MOVED: f64 = 24.0;

/// Marks that lie inside the drawing, each with the row that its label stands in.
#[derive(Default)]
pub struct Marks {
    inside: Vec<Mark>,
    pub outside: Vec<String>,
    pub rows: usize,
}

struct Mark {
    share: f64,
    text: String,
    row: usize,
    /// The label stands left of its line.
    flipped: bool,
}

impl Marks {
    /// Gives each label the first row where it does not run into its left neighbour.
    pub fn place(marks: &[(f64, String)], scale: Scale, axis: &Scaled, width: f64) -> Marks {
        let mut placed = Marks::default();
        let mut ends: Vec<f64> = Vec::new();
        let mut sorted: Vec<&(f64, String)> = marks.iter().filter(|mark| drawable(scale, mark.0)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, text) in sorted {
            let Some(share) = axis.inside(*at) else {
                placed.outside.push(text.clone());
                continue;
            };
            let from = share * width;
            let length = measured(&crate::plain::plain(text, NAME), SIZE) + 10.0;
            let flipped = from + length > width;
            let (from, to) = if flipped { (from - length, from) } else { (from, from + length) };
            let row = ends.iter().position(|end| *end <= from).unwrap_or(ends.len());
            match ends.get_mut(row) {
                Some(end) => *end = to,
                None => ends.push(to),
            }
            placed.inside.push(Mark { share, text: text.clone(), row, flipped });
        }
        placed.rows = ends.len();
        placed
    }

    pub fn lines(&self, out: &mut String, frame: &Frame) {
        for mark in &self.inside {
            let (x, top, foot) = (across(mark.share), short(frame.top - ROW + 2.0), short(frame.foot));
            let _ = write!(out, "<line class=\"dash\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{foot}\"/>");
        }
    }

    pub fn labels(&self, out: &mut String, class: &str) {
        if self.inside.is_empty() {
            return;
        }
        let _ = write!(out, "<g class=\"{class}\">");
        for mark in &self.inside {
            let (anchor, shift) = if mark.flipped { ("end", "-4") } else { ("start", "4") };
            let y = short(super::ABOVE + ROW * mark.row as f64 + 11.0);
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{y}\" dx=\"{shift}\" text-anchor=\"{anchor}\">{}</text>",
                across(mark.share),
                safe(&mark.text, NAME)
            );
        }
        out.push_str("</g>");
    }
}

/// Names at the right ends of their curves.
pub struct Direct {
    /// Index of the line and pixels from the top.
    names: Vec<(usize, f64)>,
    /// Pixels that the longest needs right of the drawing.
    pub room: f64,
}

/// The names of curves at their ends, where there are several and they find room there.
pub fn direct(lines: &[Line], frame: &Frame) -> Option<Direct> {
    let width = |line: &Line| measured(&crate::plain::plain(&line.name, NAME), SIZE);
    let room = lines.iter().map(width).fold(0.0, f64::max) + 14.0;
    if !(2..=8).contains(&lines.len()) || room > LONGEST {
        return None;
    }
    let end = |line: &Line| runs(line, frame).last()?.last().map(|(_, place)| *place);
    let mut ends: Vec<(usize, f64)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        // A curve that ends early would have its name inside the drawing.
        let [share, y] = end(line).filter(|[share, _]| line.joined && *share > 0.9)?;
        ends.push((index, if share.is_finite() { y } else { frame.foot }));
    }
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut names = ends.clone();
    for at in 1..names.len() {
        names[at].1 = names[at].1.max(names[at - 1].1 + APART);
    }
    // What was moved down comes half of the way back.
    let over = names.iter().zip(&ends).map(|(name, end)| name.1 - end.1).fold(0.0, f64::max) / 2.0;
    let fits = over <= MOVED;
    names.iter_mut().for_each(|name| name.1 -= over);
    // The last tick of the axis stands right below the drawing, in the middle of its end.
    let below = names.last().map_or(0.0, |name| (name.1 - (frame.foot - ABOVE_TICKS)).max(0.0));
    names.iter_mut().for_each(|name| name.1 -= below);
    fits.then_some(Direct { names, room })
}

impl Direct {
    pub fn write(&self, out: &mut String, lines: &[Line]) {
        out.push_str("<g class=\"w\">");
        for (index, y) in &self.names {
            let name = lines.get(*index).map_or("", |line| line.name.as_str());
            let _ = write!(
                out,
                "<text class=\"name {}\" x=\"100%\" y=\"{}\" dx=\"8\" dy=\"4\">{}</text>",
                pen(*index, lines.len()),
                short(*y),
                safe(name, NAME)
            );
        }
        out.push_str("</g>");
    }
}

/// Each line's sign and name, where there are several; only on a narrow page where their names
/// stand at their ends.
pub fn legend(lines: &[Line], named: bool) -> String {
    if lines.len() < 2 {
        return String::new();
    }
    let class = if named { " class=\"n\"" } else { "" };
    let one = |(index, line): (usize, &Line)| {
        let (pen, name) = (pen(index, lines.len()), safe(&line.name, NAME));
        format!(
            "<span{class}><svg width=\"22\" height=\"8\" aria-hidden=\"true\"><path class=\"curve {pen}\" d=\"M1 4H21\"/></svg>{name}</span>"
        )
    };
    let rejected = lines.iter().flat_map(|line| &line.points).any(|point| point.hollow);
    let sign = "<span><svg width=\"12\" height=\"10\" aria-hidden=\"true\"><circle class=\"pt hollow c0\" cx=\"6\" cy=\"5\" r=\"4\"/></svg>rejected</span>";
    lines.iter().enumerate().map(one).chain(rejected.then(|| sign.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::chart::scale::Span;

    #[test]
    fn labels_of_near_marks_stand_below_each_other() {
        let marks =
            [(32768.0, "L1i 32 KiB".to_owned()), (49152.0, "L1d 48 KiB".to_owned()), (1e9, "far".to_owned())];
        let axis = Scaled::new(Scale::Bytes, Span { low: 4096.0, high: 1e7 }, [0.0, 0.0]);
        let placed = Marks::place(&marks, Scale::Bytes, &axis, WIDE);
        assert_eq!(placed.inside.iter().map(|mark| mark.row).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(placed.rows, 2);
        assert_eq!(placed.outside, ["far"]);
    }
}
