//! Curves with their intervals as bands, and dashed vertical marks.

use plotly::common::{
    Anchor, DashType, ErrorData, ErrorType, Fill, HoverInfo, Line as Stroke, Marker, MarkerSymbol, Mode,
    Orientation,
};
use plotly::layout::{
    Annotation, HoverMode, Legend, Shape as Drawn, ShapeLayer, ShapeLine, ShapeType, SpikeMode,
};
use plotly::{Layout, Scatter, Trace};
use serde_json::{Value, json};

use super::theme::{Pen, Span, drawable, font, layout, note, pen, value_axis};
use super::ticks::{self, figure, size};
use super::{Shape, Spec};
use crate::block::{Axis, Callout, Line, LinePoint, Scale};
use crate::html::text::label;
use crate::plain::plain;

/// Widths of the drawing that labels are placed for.
const WIDE: f64 = 1040.0;
const NARROW: f64 = 290.0;
const LETTER: f64 = 6.6;
const NAME: usize = 60;

pub fn spec(x: &Axis, y: &Axis, lines: &[Line], marks: &[(f64, String)], callouts: &[Callout]) -> Spec {
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = Span::of(x.scale, points().map(|point| point.x));
    let room = if x.scale == Scale::Linear { 0.02 } else { 0.01 };
    let (x_axis, x_range) = value_axis(x, with_marks(x.scale, across, marks), 11, [room, room]);
    let x_axis = if few_whole(x.scale, across, points()) { x_axis.dtick(1.0) } else { x_axis };
    let placed = x_range.map(|range| Marks::place(marks, x.scale, range, WIDE)).unwrap_or_default();
    let narrow_marks = x_range.map(|range| Marks::place(marks, x.scale, range, NARROW)).unwrap_or_default();

    let narrow_x = narrow_ticks(x.scale, x_range);
    let heights =
        points().flat_map(|point| [point.y].into_iter().chain(point.low_high.into_iter().flatten()));
    let up = Span::of(y.scale, heights).map(|span| from_zero(y.scale, span));
    let floor = if up.is_some_and(|span| y.scale == Scale::Linear && span.low == 0.0) { 0.0 } else { 0.05 };
    let (y_axis, _) = value_axis(y, up, 9, [floor, 0.06 + 0.075 * placed.rows as f64]);

    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        traces(&mut data, line, &pen(index, lines.len()), [x, y]);
    }
    let named = |callout: &&Callout| drawable(x.scale, callout.x) && drawable(y.scale, callout.y);
    let callouts: Vec<&Callout> = callouts.iter().filter(named).collect();
    data.extend(callouts.iter().map(|callout| ring(callout, &pen(callout.line, lines.len()))));
    let names: Vec<Annotation> =
        callouts.iter().map(|callout| name_of(callout, [x.scale, y.scale])).collect();
    let labels = |marks: &Marks| [marks.labels(), names.clone()].concat();
    let [legend, narrow_legend] = [WIDE, NARROW].map(|width| legend_rows(lines, width));
    let hover = if lines.len() <= 6 { HoverMode::X } else { HoverMode::Closest };
    let layout = with_legend(layout(hover), lines.len())
        .x_axis(
            x_axis
                .show_spikes(true)
                .spike_color("$muted")
                .spike_thickness(1)
                .spike_dash(DashType::Dot)
                .spike_mode(SpikeMode::Across),
        )
        .y_axis(y_axis)
        .shapes(placed.lines())
        .annotations(labels(&placed));
    Spec {
        data,
        layout,
        narrow: Some(json!({ "annotations": labels(&narrow_marks), "xaxis": narrow_x })),
        orders: Vec::new(),
        shape: Shape::Tall(330 + legend * 20, 290 + narrow_legend * 20),
        notes: notes(x.scale, y.scale, lines, &placed),
    }
}

/// Whether all points lie at a few whole numbers, as CPUs do: nothing is to be read off between
/// them.
fn few_whole<'a>(scale: Scale, span: Option<Span>, mut points: impl Iterator<Item = &'a LinePoint>) -> bool {
    scale == Scale::Linear
        && span.is_some_and(|span| span.high - span.low < 8.0)
        && points.all(|point| point.x.fract() == 0.0)
}

/// The ticks that a narrow page has room for.
fn narrow_ticks(scale: Scale, range: Option<[f64; 2]>) -> Value {
    let ends = range.unwrap_or_default().map(|end| 10_f64.powf(end));
    let ticks = match scale {
        Scale::Linear => return json!({ "nticks": 6 }),
        Scale::Log => ticks::log(ends[0], ends[1], 6),
        Scale::Bytes => ticks::bytes(ends[0], ends[1], 5),
        Scale::Powers => ticks::powers(ends[0], ends[1], 6, figure),
    };
    json!({ "tickvals": ticks.values, "ticktext": ticks.text })
}

/// The range of the points, wide enough for marks that lie near it.
fn with_marks(scale: Scale, span: Option<Span>, marks: &[(f64, String)]) -> Option<Span> {
    let span = span?;
    let near = |at: &f64| match scale {
        Scale::Linear => false,
        _ => (span.low / 4.0..=span.high * 4.0).contains(at),
    };
    Span::of(scale, marks.iter().map(|mark| mark.0).filter(near).chain([span.low, span.high]))
}

/// Linear axes begin at zero unless that would hide how the values differ.
fn from_zero(scale: Scale, span: Span) -> Span {
    match scale == Scale::Linear && span.low >= 0.0 && span.low < 0.6 * span.high {
        true => Span { low: 0.0, ..span },
        false => span,
    }
}

/// A line's band, or error bars where there are too few points for a band, the line itself, and its
/// hollow marks.
fn traces(data: &mut Vec<Box<dyn Trace>>, line: &Line, pen: &Pen, axes: [&Axis; 2]) {
    let drawn = line.points.iter().filter(|point| drawable(axes[0].scale, point.x));
    let (hollow, points): (Vec<&LinePoint>, Vec<&LinePoint>) = drawn.partition(|point| point.hollow);
    let name = label(&line.name, NAME);
    let alone = points.is_empty();
    if !alone || hollow.is_empty() {
        let dots = points.len() <= 80 || !line.joined;
        let mode = match (line.joined, dots) {
            (true, true) => Mode::LinesMarkers,
            (true, false) => Mode::Lines,
            (false, _) => Mode::Markers,
        };
        let mut curve = marked(&points, &name, &name, axes)
            .mode(mode)
            .line(Stroke::new().color(pen.colour.clone()).width(2.0).dash(pen.dash.clone()));
        if dots {
            let size = if line.joined { 5 } else { 7 };
            curve =
                curve.marker(Marker::new().color(pen.colour.clone()).size(size).symbol(pen.symbol.clone()));
        }
        if points.len() < 3 || !line.joined {
            curve = with_bars(curve, &points, pen);
        } else {
            data.extend(band(&points, pen, axes[1].scale));
        }
        data.push(curve.legend_group(&name));
    }
    if !hollow.is_empty() {
        let mark = Marker::new().color(pen.colour.clone()).size(8).symbol(MarkerSymbol::CircleOpen);
        let said = format!("{name}, rejected");
        let marks = marked(&hollow, &said, &said, axes).mode(Mode::Markers).marker(mark);
        data.push(with_bars(marks, &hollow, pen).legend_group(&name).show_legend(alone));
    }
}

/// The points with what is said of each.
fn marked(points: &[&LinePoint], name: &str, said_of: &str, [x, y]: [&Axis; 2]) -> Box<Scatter<f64, f64>> {
    let height = |point: &&LinePoint| if drawable(y.scale, point.y) { point.y } else { f64::NAN };
    let said = points.iter().map(|point| format!("{said_of} · {}", said(point, x)));
    let across: Vec<f64> = points.iter().map(|point| point.x).collect();
    Scatter::new(across, points.iter().map(height).collect::<Vec<f64>>())
        .name(name)
        .text_array(said.collect())
        .hover_info(HoverInfo::Text)
}

fn with_bars(curve: Box<Scatter<f64, f64>>, points: &[&LinePoint], pen: &Pen) -> Box<Scatter<f64, f64>> {
    let ends = |side: usize, sign: f64| {
        points
            .iter()
            .map(move |p| p.low_high.map_or(0.0, |ends| sign * (ends[side] - p.y)))
            .collect::<Vec<f64>>()
    };
    let bars =
        ErrorData::new(ErrorType::Data).array(ends(1, 1.0)).array_minus(ends(0, -1.0)).symmetric(false);
    curve.error_y(bars.color(pen.colour.clone()).thickness(1.5).width(5))
}

/// A ring around a point that has a name.
fn ring(callout: &Callout, pen: &Pen) -> Box<dyn Trace> {
    let stroke = Stroke::new().color(pen.colour.clone()).width(2.0);
    let mark = Marker::new().color("$clear").size(15).symbol(MarkerSymbol::Circle).line(stroke);
    let ring = Scatter::new(vec![callout.x], vec![callout.y]).mode(Mode::Markers).marker(mark);
    ring.hover_info(HoverInfo::Skip).show_legend(false)
}

/// The name of a point, above and left of it: rising curves leave room there.
fn name_of(callout: &Callout, scales: [Scale; 2]) -> Annotation {
    let at = |scale: Scale, value: f64| if scale == Scale::Linear { value } else { value.log10() };
    let name =
        note(&label(&callout.text, NAME), "$ink").x(at(scales[0], callout.x)).y(at(scales[1], callout.y));
    name.x_anchor(Anchor::Right).x_shift(-5.0).y_anchor(Anchor::Bottom).y_shift(5.0)
}

/// The intervals as one area for each run of points that have one.
fn band(points: &[&LinePoint], pen: &Pen, y: Scale) -> Option<Box<dyn Trace>> {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    let ends = |point: &&LinePoint| point.low_high.filter(|ends| ends.iter().all(|end| drawable(y, *end)));
    for run in points.split(|point| ends(point).is_none()).filter(|run| run.len() > 1) {
        if !xs.is_empty() {
            xs.push(f64::NAN);
            ys.push(f64::NAN);
        }
        let (lows, highs): (Vec<f64>, Vec<f64>) =
            run.iter().filter_map(ends).map(|[low, high]| (low, high)).unzip();
        xs.extend(run.iter().map(|point| point.x).chain(run.iter().rev().map(|point| point.x)));
        ys.extend(highs.into_iter().chain(lows.into_iter().rev()));
    }
    if xs.is_empty() {
        return None;
    }
    let area = Scatter::new(xs, ys)
        .mode(Mode::Lines)
        .line(Stroke::new().width(0.0).color("$clear"))
        .fill(Fill::ToSelf)
        .fill_color(pen.band.clone())
        .hover_info(HoverInfo::Skip)
        .show_legend(false);
    Some(area)
}

/// `16 KiB: 1.21 [1.19, 1.30]`, `CPU 3: 45.2`.
fn said(point: &LinePoint, x: &Axis) -> String {
    let place = match (x.scale, x.title.split(',').next().unwrap_or_default()) {
        (Scale::Bytes, _) => size(point.x),
        (_, "") => figure(point.x),
        (_, what) => format!("{} {}", label(what, NAME), figure(point.x)),
    };
    match point.low_high {
        Some([low, high]) => format!("{place}: {} [{}, {}]", figure(point.y), figure(low), figure(high)),
        None => format!("{place}: {}", figure(point.y)),
    }
}

fn with_legend(layout: Layout, lines: usize) -> Layout {
    if lines < 2 {
        return layout;
    }
    let legend = Legend::new()
        .orientation(Orientation::Horizontal)
        .x(0.0)
        .x_anchor(Anchor::Left)
        .y(1.02)
        .y_anchor(Anchor::Bottom)
        .background_color("$clear")
        .font(font(12).color("$ink"));
    layout.show_legend(true).legend(legend)
}

/// How many rows the legend takes, more or less: the drawing must not pay for them.
fn legend_rows(lines: &[Line], width: f64) -> usize {
    if lines.len() < 2 {
        return 0;
    }
    let longest = lines.iter().map(|line| line.name.chars().count().min(NAME)).max().unwrap_or(0) as f64;
    // Plotly gives every entry the room of the longest.
    let across = (width / (longest * LETTER + 48.0)).floor().max(1.0) as usize;
    lines.len().div_ceil(across)
}

/// Marks that lie inside the drawing, each with the row that its label stands in.
#[derive(Default)]
struct Marks {
    inside: Vec<(f64, String, usize, bool)>,
    outside: Vec<String>,
    rows: usize,
    log: bool,
}

impl Marks {
    /// Gives each label the first row where it does not run into its left neighbour.
    fn place(marks: &[(f64, String)], scale: Scale, range: [f64; 2], width: f64) -> Marks {
        let log = scale != Scale::Linear;
        let mut placed = Marks { log, ..Marks::default() };
        let mut ends: Vec<f64> = Vec::new();
        let mut sorted: Vec<&(f64, String)> = marks.iter().filter(|mark| drawable(scale, mark.0)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, text) in sorted {
            let position = if log { at.log10() } else { *at };
            if !(range[0]..=range[1]).contains(&position) {
                placed.outside.push(plain(text, NAME));
                continue;
            }
            let text = label(text, NAME);
            let from = (position - range[0]) / (range[1] - range[0]) * width;
            let length = text.chars().count() as f64 * LETTER + 8.0;
            let flipped = from + length > width;
            let (from, to) = if flipped { (from - length, from) } else { (from, from + length) };
            let row = ends.iter().position(|end| *end <= from).unwrap_or(ends.len());
            match ends.get_mut(row) {
                Some(end) => *end = to,
                None => ends.push(to),
            }
            placed.inside.push((*at, text, row, flipped));
        }
        placed.rows = ends.len();
        placed
    }

    fn lines(&self) -> Vec<Drawn> {
        let dashed = || ShapeLine::new().color("$axis").width(1.0).dash(DashType::Dash);
        let drawn = self.inside.iter().map(|(at, ..)| {
            let place = Drawn::new().shape_type(ShapeType::Line).x_ref("x").y_ref("paper").x0(*at).x1(*at);
            place.y0(0.0).y1(1.0).line(dashed()).layer(ShapeLayer::Below)
        });
        drawn.collect()
    }

    fn labels(&self) -> Vec<Annotation> {
        let drawn = self.inside.iter().map(|(at, text, row, flipped)| {
            // Annotations, unlike shapes, take logarithms on a logarithmic axis.
            let place = note(text, "$muted").x(if self.log { at.log10() } else { *at }).y(1.0).y_ref("paper");
            let place = place.y_anchor(Anchor::Top).y_shift(-(*row as f64) * 17.0);
            match flipped {
                true => place.x_anchor(Anchor::Right).x_shift(-2.0),
                false => place.x_anchor(Anchor::Left).x_shift(2.0),
            }
        });
        drawn.collect()
    }
}

/// Sentences about what the drawing cannot show.
fn notes(x: Scale, y: Scale, lines: &[Line], marks: &Marks) -> Vec<String> {
    let mut notes = Vec::new();
    if !marks.outside.is_empty() {
        notes.push(format!("Outside the drawing: {}.", marks.outside.join(", ")));
    }
    let points = lines.iter().flat_map(|line| &line.points);
    let lost = points.filter(|point| !(drawable(x, point.x) && drawable(y, point.y))).count();
    if lost > 0 {
        notes.push(format!("{lost} of the values have no place on these axes; the table below has them."));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale) -> Axis {
        Axis { title: "t".to_owned(), scale }
    }

    #[test]
    fn labels_of_near_marks_stand_below_each_other() {
        let marks =
            [(32768.0, "L1i 32 KiB".to_owned()), (49152.0, "L1d 48 KiB".to_owned()), (1e9, "far".to_owned())];
        let placed = Marks::place(&marks, Scale::Bytes, [3.6, 7.0], WIDE);
        assert_eq!(placed.inside.iter().map(|mark| mark.2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(placed.rows, 2);
        assert_eq!(placed.outside, ["far"]);
    }

    #[test]
    fn a_few_whole_places_have_whole_ticks() {
        let ticks = |places: &[f64]| {
            let at = |x: &f64| LinePoint { x: *x, y: 1.0, low_high: None, hollow: false };
            let lines =
                [Line { name: "a".to_owned(), points: places.iter().map(at).collect(), joined: false }];
            let spec = spec(&axis(Scale::Linear), &axis(Scale::Linear), &lines, &[], &[]);
            let json = serde_json::to_value(&spec).expect("serialises");
            json["layout"]["xaxis"]["dtick"].as_f64()
        };
        assert_eq!(ticks(&[0.0, 1.0]), Some(1.0));
        assert_eq!(ticks(&[0.0, 0.5]), None);
        assert_eq!(ticks(&[0.0, 63.0]), None);
    }

    #[test]
    fn values_without_a_place_are_gaps_and_are_said() {
        let point = |x: f64, y: f64| LinePoint { x, y, low_high: Some([y * 0.9, y * 1.1]), hollow: false };
        let points =
            vec![point(1.0, 1.0), point(2.0, 0.0), point(0.0, 1.0), point(4.0, 2.0), point(5.0, 3.0)];
        let lines = [Line { name: "a".to_owned(), points, joined: true }];
        let spec = spec(&axis(Scale::Log), &axis(Scale::Log), &lines, &[], &[]);
        assert_eq!(spec.notes.len(), 1, "{:?}", spec.notes);
        let json = serde_json::to_value(&spec).expect("serialises");
        assert_eq!(json["data"][1]["y"], json!([1.0, null, 2.0, 3.0]));
        // The band covers the last two points only: one area, there and back.
        assert_eq!(json["data"][0]["x"], json!([4.0, 5.0, 5.0, 4.0]));
    }
}
