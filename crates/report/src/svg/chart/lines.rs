//! Curves with their intervals as bands, and dashed vertical marks.

mod labels;

use std::fmt::Write;

use super::scale::{Scaled, Span, drawable, title};
use super::ticks::{figure, size};
use super::{Drawing, NAME, across, safe, thousand};
use crate::block::{Axis, Callout, Line, LinePoint, Scale};
use crate::plain::plain;
use crate::svg::canvas::{measured, short};
use labels::{Marks, NARROW, WIDE, direct, legend};

/// Pixels of the drawing from its top to its foot.
const HEIGHT: f64 = 270.0;
/// Room above it for the title of the axis.
const ABOVE: f64 = 22.0;
/// Room of a row of labels.
const ROW: f64 = 16.0;
/// Up to this count points are marked one by one.
const MAX_MARKED: usize = 80;
/// The same where no line joins them.
const MAX_ALONE: usize = 600;

/// Both axes and the foot of the drawing in pixels.
struct Frame {
    x: Scaled,
    y: Scaled,
    top: f64,
    foot: f64,
}

impl Frame {
    /// Share of the width, and pixels from the top.
    fn place(&self, x: f64, y: f64) -> Option<[f64; 2]> {
        let (across, up) = (self.x.inside(x)?, self.y.place(y)?);
        Some([across, self.foot - up.clamp(-0.5, 1.5) * (self.foot - self.top)])
    }
}

pub fn drawing([x, y]: [&Axis; 2], lines: &[Line], marks: &[(f64, String)], callouts: &[Callout]) -> Drawing {
    let points = || lines.iter().flat_map(|line| &line.points);
    let wide = Span::of(x.scale, points().map(|point| point.x));
    let heights =
        points().flat_map(|point| [point.y].into_iter().chain(point.low_high.into_iter().flatten()));
    let high = Span::of(y.scale, heights).map(|span| from_zero(y.scale, span));
    let (Some(wide), Some(high)) = (wide, high) else {
        return Drawing { notes: notes([x, y], lines, &Marks::default()), ..Drawing::default() };
    };
    let room = if x.scale == Scale::Linear { 0.02 } else { 0.015 };
    let across_axis = Scaled::new(x.scale, with_marks(x.scale, wide, marks), [room, room]);
    let whole = few_whole(x.scale, wide, points());
    let placed = [WIDE, NARROW].map(|width| Marks::place(marks, x.scale, &across_axis, width));
    let rows = placed.iter().map(|marks| marks.rows).max().unwrap_or(0);
    let floor = if y.scale == Scale::Linear && high.low == 0.0 { 0.0 } else { 0.05 };
    let top = ABOVE + ROW * rows as f64;
    let frame =
        Frame { x: across_axis, y: Scaled::new(y.scale, high, [floor, 0.06]), top, foot: top + HEIGHT };

    let ticks = frame.y.ticks(8);
    let left = ticks.text.iter().map(|text| measured(text, 12.0)).fold(18.0, f64::max) + 10.0;
    let named = direct(lines, &frame);
    let right = named.as_ref().map_or(12.0, |named| named.room);
    let mut out = format!(
        "<svg class=\"plot lines\" height=\"{}\" style=\"--l:{}px;--r:{}px\" role=\"group\" aria-label=\"chart\">",
        frame.foot + 40.0,
        short(left.ceil()),
        short(right.ceil())
    );
    upright(&mut out, &frame, &ticks.values, &ticks.text, &title(y));
    foot(&mut out, &frame, whole, &title(x));
    for (class, marks) in ["w", "n"].iter().zip(&placed) {
        marks.labels(&mut out, class);
    }
    placed[0].lines(&mut out, &frame);
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 1000 {0}\" preserveAspectRatio=\"none\" width=\"100%\" height=\"{0}\" overflow=\"visible\">",
        frame.foot
    );
    for (index, line) in lines.iter().enumerate() {
        curve(&mut out, line, &pen(index, lines.len()), &frame);
    }
    out.push_str("</svg>");
    for (index, line) in lines.iter().enumerate() {
        marked(&mut out, line, &pen(index, lines.len()), &frame, x);
    }
    for callout in callouts {
        name_of(&mut out, callout, &pen(callout.line, lines.len()), &frame);
    }
    if let Some(named) = &named {
        named.write(&mut out, lines);
    }
    out.push_str("</svg>");
    let key = legend(lines, named.is_some());
    Drawing { key, notes: notes([x, y], lines, &placed[0]), ..Drawing::one(out) }
}

/// The classes that distinguish the line at `index` from the others of `count`: up to eight lines
/// are blue, orange and so on; more are a family and get the steps of viridis. Dashes come with the
/// seventh.
fn pen(index: usize, count: usize) -> String {
    let dash = match index / 6 % 4 {
        0 => String::new(),
        dash => format!(" d{dash}"),
    };
    match count {
        0..=8 => format!("c{index}{dash}"),
        _ => format!("v{}{dash}", index * 9 / (count - 1)),
    }
}

/// Whether all points lie at a few whole numbers, as CPUs do: nothing is to be read off between
/// them.
fn few_whole<'a>(scale: Scale, span: Span, mut points: impl Iterator<Item = &'a LinePoint>) -> bool {
    scale == Scale::Linear && span.high - span.low < 8.0 && points.all(|point| point.x.fract() == 0.0)
}

/// The range of the points, wide enough for marks that lie near it.
fn with_marks(scale: Scale, span: Span, marks: &[(f64, String)]) -> Span {
    let near = |at: &f64| match scale {
        Scale::Linear => false,
        _ => (span.low / 4.0..=span.high * 4.0).contains(at),
    };
    let all = marks.iter().map(|mark| mark.0).filter(near).chain([span.low, span.high]);
    Span::of(scale, all).unwrap_or(span)
}

/// Linear axes begin at zero unless that would hide how the values differ.
fn from_zero(scale: Scale, span: Span) -> Span {
    if scale == Scale::Linear && span.low >= 0.0 && span.low < 0.6 * span.high {
        Span { low: 0.0, ..span }
    } else {
        span
    }
}

/// The grid, its numbers left of the drawing, and the axis' title above them.
fn upright(out: &mut String, frame: &Frame, values: &[f64], texts: &[String], title: &str) {
    for (value, text) in values.iter().zip(texts) {
        let Some(up) = frame.y.inside(*value) else { continue };
        let y = short(frame.foot - up * (frame.foot - frame.top));
        let _ = write!(
            out,
            "<line class=\"grid\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/><text x=\"-8\" y=\"{y}\" dy=\"4\" text-anchor=\"end\">{}</text>",
            safe(text, 24)
        );
    }
    let title = safe(title, 100);
    if !title.is_empty() {
        let _ = write!(out, "<text class=\"ink y-title\" y=\"12\">{title}</text>");
    }
}

/// The axis below, with more ticks where the page is wide.
fn foot(out: &mut String, frame: &Frame, whole: bool, title: &str) {
    let foot = short(frame.foot);
    let _ = write!(out, "<line class=\"ax\" x2=\"100%\" y1=\"{foot}\" y2=\"{foot}\"/>");
    for (class, most) in [("w", 10), ("n", 4)] {
        let ticks = frame.x.ticks(most);
        let _ = write!(out, "<g class=\"{class}\">");
        let shown = ticks.values.iter().zip(&ticks.text);
        for (value, text) in shown.filter(|(value, _)| !whole || value.fract() == 0.0) {
            if let Some(place) = frame.x.inside(*value) {
                let (x, y, text) = (across(place), short(frame.foot + 17.0), safe(text, 24));
                let _ = write!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>");
            }
        }
        out.push_str("</g>");
    }
    let title = safe(title, 100);
    if !title.is_empty() {
        let y = short(frame.foot + 35.0);
        let _ = write!(out, "<text class=\"ink\" x=\"100%\" y=\"{y}\" text-anchor=\"end\">{title}</text>");
    }
}

/// Points that a line goes through, in runs without a gap.
fn runs<'a>(line: &'a Line, frame: &Frame) -> Vec<Vec<(&'a LinePoint, [f64; 2])>> {
    let solid: Vec<(&LinePoint, Option<[f64; 2]>)> = line
        .points
        .iter()
        .filter(|point| !point.hollow)
        .map(|point| (point, frame.place(point.x, point.y)))
        .collect();
    let runs = solid.split(|(_, place)| place.is_none());
    let placed = runs.map(|run| run.iter().filter_map(|(point, place)| Some((*point, (*place)?))).collect());
    placed.filter(|run: &Vec<_>| !run.is_empty()).collect()
}

/// The line and its intervals as one area for each run of points that have one.
fn curve(out: &mut String, line: &Line, pen: &str, frame: &Frame) {
    if !line.joined {
        return;
    }
    let runs = runs(line, frame);
    if !with_bars(line) {
        let mut path = String::new();
        for run in &runs {
            let ends = |(point, _): &(&LinePoint, [f64; 2])| {
                let [low, high] = point.low_high?;
                Some((frame.place(point.x, low)?, frame.place(point.x, high)?))
            };
            for part in run.split(|one| ends(one).is_none()).filter(|part| part.len() > 1) {
                let edges: Vec<([f64; 2], [f64; 2])> = part.iter().filter_map(ends).collect();
                let there = edges.iter().map(|edge| edge.1);
                let back = edges.iter().rev().map(|edge| edge.0);
                path.push_str(&format!("{}z", trail(there.chain(back))));
            }
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"band {pen}\" d=\"{path}\"/>");
        }
    }
    let path: String = runs.iter().map(|run| trail(run.iter().map(|(_, place)| *place))).collect();
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"curve {pen}\" d=\"{path}\"/>");
    }
}

/// `M10 20L30 40`, in the units of a drawing a thousand wide.
fn trail(points: impl Iterator<Item = [f64; 2]>) -> String {
    let mut path = String::new();
    for (index, [x, y]) in points.enumerate() {
        let _ = write!(path, "{}{} {}", if index == 0 { 'M' } else { 'L' }, thousand(x), short(y));
    }
    path
}

/// Error bars where there are too few points for a band.
fn with_bars(line: &Line) -> bool {
    !line.joined || line.points.iter().filter(|point| !point.hollow).count() < 3
}

/// The points one by one, each with what is said of it; rejected ones are hollow.
fn marked(out: &mut String, line: &Line, pen: &str, frame: &Frame, x: &Axis) {
    let most = if line.joined { MAX_MARKED } else { MAX_ALONE };
    let few = line.points.len() <= most;
    let name = safe(&line.name, NAME);
    for point in line.points.iter().filter(|point| few || point.hollow) {
        let Some([place, y]) = frame.place(point.x, point.y) else { continue };
        let (place, y) = (across(place), short(y));
        if let Some([low, high]) = point.low_high.filter(|_| with_bars(line) || point.hollow) {
            let ends = [low, high].map(|end| frame.place(point.x, end));
            if let [Some([_, low]), Some([_, high])] = ends.map(|end| end.filter(|end| end[1].is_finite())) {
                let (low, high) = (short(low), short(high));
                let _ = write!(
                    out,
                    "<line class=\"err {pen}\" x1=\"{place}\" x2=\"{place}\" y1=\"{low}\" y2=\"{high}\"/>"
                );
            }
        }
        let (class, radius, worth) =
            if point.hollow { (" hollow", "4", ", rejected") } else { ("", "3", "") };
        let name = if name.is_empty() { String::new() } else { format!("{name}{worth} · ") };
        let _ = write!(
            out,
            "<circle class=\"pt {pen}{class}\" cx=\"{place}\" cy=\"{y}\" r=\"{radius}\"><title>{name}{}</title></circle>",
            said(point, x)
        );
    }
}

/// A ring around a point that has a name, and the name above and left of it: rising curves leave
/// room there.
fn name_of(out: &mut String, callout: &Callout, pen: &str, frame: &Frame) {
    let Some([place, y]) = frame.place(callout.x, callout.y) else { return };
    let (x, text) = (across(place), safe(&callout.text, NAME));
    let anchor = if place < 0.15 { ("start", "8") } else { ("end", "-6") };
    let _ = write!(
        out,
        "<circle class=\"ring {pen}\" cx=\"{x}\" cy=\"{0}\" r=\"7\"/><text class=\"ink callout\" x=\"{x}\" y=\"{1}\" dx=\"{3}\" \
         text-anchor=\"{2}\">{text}</text>",
        short(y),
        short(y - 8.0),
        anchor.0,
        anchor.1
    );
}

/// `16 KiB: 1.21 (1.19–1.30)`, `CPU 3: 45.2`.
fn said(point: &LinePoint, x: &Axis) -> String {
    let place = match (x.scale, x.title.split(',').next().unwrap_or_default()) {
        (Scale::Bytes, _) => size(point.x),
        (_, "") => figure(point.x),
        (_, what) => format!("{} {}", safe(what, NAME), figure(point.x)),
    };
    match point.low_high {
        Some([low, high]) => format!("{place}: {} ({}–{})", figure(point.y), figure(low), figure(high)),
        None => format!("{place}: {}", figure(point.y)),
    }
}

/// Sentences about what the drawing cannot show.
fn notes([x, y]: [&Axis; 2], lines: &[Line], marks: &Marks) -> Vec<String> {
    let mut notes = Vec::new();
    if !marks.outside.is_empty() {
        let outside: Vec<String> = marks.outside.iter().map(|text| plain(text, NAME)).collect();
        notes.push(format!("Outside the chart: {}.", outside.join(", ")));
    }
    let points = lines.iter().flat_map(|line| &line.points);
    let lost = points.filter(|point| !(drawable(x.scale, point.x) && drawable(y.scale, point.y))).count();
    if lost > 0 {
        notes.push(format!("{lost} of the values do not fit these axes; the table below has them."));
    }
    notes
}
