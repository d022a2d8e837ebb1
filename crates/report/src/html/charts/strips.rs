//! Every sample as a dot, one strip a series, relative to the series' own median.

use plotly::common::{ErrorData, ErrorType, HoverInfo, Line as Stroke, Marker, MarkerSymbol, Mode};
use plotly::layout::{HoverMode, Margin, Shape as Drawn, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Scatter, Trace};

use super::Spec;
use super::rows::{self, Row};
use super::theme::{Span, layout, value_axis};
use crate::block::{Axis, Dot, Scale, Strip};
use crate::html::text::label;
use crate::html::verdict::worth;

/// How many columns of dots fit side by side.
const COLUMNS: f64 = 150.0;

/// The most strips in one drawing.
const MOST: usize = 25;

/// What all but one of so many counted samples need is drawn in place; what lies further out stands
/// at the edge.
const BEYOND: usize = 50;

/// No more than from nought to twice the median is drawn in place, and no less than this to both
/// sides.
const NARROWEST: f64 = 0.02;

/// Drawings of up to `MOST` strips with the same axis, as equally full as can be.
pub fn specs(strips: &[Strip]) -> Vec<Spec> {
    let span = span(strips);
    let each = strips.len().div_ceil(strips.len().div_ceil(MOST).max(1)).max(1);
    strips.chunks(each).map(|strips| spec(strips, span)).collect()
}

/// Both ends of what is drawn in place: a sample at a hundred times the median must not press all
/// others into a line.
fn span(strips: &[Strip]) -> Span {
    let all = || strips.iter().flat_map(|strip| &strip.dots).filter(|dot| dot.relative.is_finite());
    let mut far: Vec<f64> = all().filter(|dot| !dot.warm_up).map(|dot| (dot.relative - 1.0).abs()).collect();
    far.sort_by(f64::total_cmp);
    let most = far.len().checked_sub(1 + far.len() / BEYOND).map_or(0.0, |at| far[at]);
    let most = (most * 1.05).clamp(NARROWEST, 1.0);
    let ends = strips.iter().filter_map(|strip| strip.low_high).flatten();
    let within = |value: f64| value.clamp(1.0 - most, 1.0 + most);
    let values = all().map(|dot| dot.relative).chain(ends).map(within);
    let narrowest = [1.0 - NARROWEST, 1.0 + NARROWEST];
    Span::of(Scale::Linear, values.chain(narrowest)).unwrap_or(Span { low: narrowest[0], high: narrowest[1] })
}

/// Whether any sample lies beyond what is drawn in place.
pub fn any_beyond(strips: &[Strip]) -> bool {
    let span = span(strips);
    strips.iter().flat_map(|strip| &strip.dots).any(|dot| symbol(dot, span) > 1)
}

fn spec(strips: &[Strip], span: Span) -> Spec {
    let rows: Vec<Row> =
        strips.iter().map(|strip| Row::new(&strip.label, &strip.figure, &strip.verdict)).collect();
    let title = "relative to the median of each series".to_owned();
    let (x, range) = value_axis(&Axis { title, scale: Scale::Linear }, Some(span), 9, [0.02, 0.02]);
    let x = x.tick_suffix("×");
    let mut data = intervals(strips, span);
    data.extend(samples(strips, span, range.unwrap_or([0.0, 2.0])));
    data.push(medians(strips));
    let [names, figures] = rows::axes(&rows);
    let one =
        Drawn::new().shape_type(ShapeType::Line).x_ref("x").y_ref("paper").x0(1.0).x1(1.0).y0(0.0).y1(1.0);
    let layout = layout(HoverMode::Closest)
        .margin(Margin::new().left(8).right(8).top(4).bottom(8).pad(6))
        .x_axis(x)
        .y_axis(names)
        .y_axis2(figures.matches("y"))
        .shapes(vec![one.line(ShapeLine::new().color("$axis").width(1.0)).layer(ShapeLayer::Below)]);
    let (narrow, shape) = (Some(rows::narrow(&rows, 5)), rows::shape(rows.len()));
    Spec { data, layout, narrow, orders: Vec::new(), shape, notes: Vec::new() }
}

/// The intervals as wide pale bars, a trace a colour.
fn intervals(strips: &[Strip], span: Span) -> Vec<Box<dyn Trace>> {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for colour in ["$c0", "$c1", "$off"] {
        let shown = strips.iter().enumerate().filter(|(_, strip)| worth(strip.verdict.kind).colour == colour);
        let ends: Vec<(f64, [f64; 2])> = shown
            .filter_map(|(row, strip)| {
                strip.low_high.map(|ends| (row as f64, ends.map(|end| end.clamp(span.low, span.high))))
            })
            .collect();
        if ends.is_empty() {
            continue;
        }
        let bars = ErrorData::new(ErrorType::Data)
            .symmetric(false)
            .array(ends.iter().map(|(_, ends)| ends[1] - 1.0).collect())
            .array_minus(ends.iter().map(|(_, ends)| 1.0 - ends[0]).collect())
            .color(format!("{colour}-band"))
            .thickness(12.0)
            .width(0);
        let middle = Scatter::new(vec![1.0; ends.len()], ends.iter().map(|(row, _)| *row).collect());
        let invisible = Marker::new().size(1).opacity(0.0).color("$clear");
        traces.push(middle.mode(Mode::Markers).marker(invisible).error_x(bars).hover_info(HoverInfo::Skip));
    }
    traces
}

/// How a dot is drawn: beyond an edge it is an arrowhead that points there.
fn symbol(dot: &Dot, span: Span) -> usize {
    match dot.relative {
        far if far < span.low => 2,
        far if far > span.high => 3,
        _ => usize::from(dot.warm_up),
    }
}

const SYMBOLS: [MarkerSymbol; 4] =
    [MarkerSymbol::Circle, MarkerSymbol::CircleOpen, MarkerSymbol::TriangleLeft, MarkerSymbol::TriangleRight];

/// The dots, a trace for each colour and symbol.
fn samples(strips: &[Strip], span: Span, range: [f64; 2]) -> Vec<Box<dyn Trace>> {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for colour in ["$c0", "$c1", "$off"] {
        for (which, shape) in SYMBOLS.iter().enumerate() {
            let (mut xs, mut ys, mut texts) = (Vec::new(), Vec::new(), Vec::new());
            let shown =
                strips.iter().enumerate().filter(|(_, strip)| worth(strip.verdict.kind).colour == colour);
            for (row, strip) in shown {
                let beside = swarm(&strip.dots, span, range);
                let dots = strip.dots.iter().zip(beside);
                for (dot, offset) in dots.filter(|(dot, _)| symbol(dot, span) == which) {
                    // To a hundred-thousandth of the median: coarser steps would show as stripes.
                    xs.push((dot.relative.clamp(span.low, span.high) * 1e5).round() / 1e5);
                    ys.push(((row as f64 + offset) * 1e3).round() / 1e3);
                    texts.push(label(&dot.label, 160));
                }
            }
            if xs.is_empty() {
                continue;
            }
            let size = if which < 2 { 5 } else { 8 };
            let marker = Marker::new().color(colour).size(size).opacity(0.75).symbol(shape.clone());
            let dots = Scatter::new(xs, ys).mode(Mode::Markers).marker(marker).text_array(texts);
            traces.push(dots.hover_info(HoverInfo::Text));
        }
    }
    traces
}

/// Where each dot stands above or below its row's middle so that neighbours do not cover each
/// other.
fn swarm(dots: &[Dot], span: Span, range: [f64; 2]) -> Vec<f64> {
    let place = |dot: &Dot| dot.relative.clamp(span.low, span.high);
    let column = |dot: &Dot| ((place(dot) - range[0]) / (range[1] - range[0]) * COLUMNS).round() as i64;
    let mut height = std::collections::BTreeMap::<i64, usize>::new();
    let ranks: Vec<usize> = dots
        .iter()
        .map(|dot| {
            let next = height.entry(column(dot)).or_default();
            *next += 1;
            *next - 1
        })
        .collect();
    let most = height.values().copied().max().unwrap_or(1);
    let step = (0.32 / most.div_ceil(2).max(1) as f64).min(0.13);
    // 0, above, below, further above …
    let offset = |rank: usize| rank.div_ceil(2) as f64 * step * if rank % 2 == 1 { -1.0 } else { 1.0 };
    ranks.into_iter().map(offset).collect()
}

/// The medians, always at one; this trace also carries the axis of figures.
fn medians(strips: &[Strip]) -> Box<dyn Trace> {
    let rows: Vec<f64> =
        (0..strips.len()).filter(|row| !strips[*row].dots.is_empty()).map(|row| row as f64).collect();
    let rows = if rows.is_empty() { vec![f64::NAN] } else { rows };
    let tick =
        Marker::new().symbol(MarkerSymbol::LineNS).size(16).line(Stroke::new().width(2.0).color("$ink"));
    Scatter::new(vec![1.0; rows.len()], rows)
        .mode(Mode::Markers)
        .marker(tick.color("$ink"))
        .y_axis("y2")
        .hover_info(HoverInfo::Skip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Verdict;

    fn dot(relative: f64, warm_up: bool) -> Dot {
        Dot { relative, label: "process 1, window 1: <b>".to_owned(), warm_up }
    }

    #[test]
    fn every_sample_is_a_dot() {
        let dots = vec![dot(1.0, false), dot(1.0, false), dot(1.3, true), dot(0.9, false)];
        let strip = Strip {
            label: "s".to_owned(),
            figure: "1 µs".to_owned(),
            dots,
            low_high: Some([0.95, 1.05]),
            verdict: Verdict::trusted(),
        };
        let json = serde_json::to_value(&specs(&[strip])[0]).expect("serialises");
        let lengths: Vec<usize> = json["data"]
            .as_array()
            .expect("traces")
            .iter()
            .map(|trace| trace["x"].as_array().map_or(0, Vec::len))
            .collect();
        // Interval, dots, hollow dots, median.
        assert_eq!(lengths, [1, 3, 1, 1]);
        assert_eq!(json["data"][1]["text"][0], "process 1, window 1: &lt;b&gt;");
    }

    #[test]
    fn many_strips_are_several_drawings() {
        let strip = Strip {
            label: "s".to_owned(),
            figure: String::new(),
            dots: vec![dot(1.0, false)],
            low_high: None,
            verdict: Verdict::trusted(),
        };
        let count = |strips: usize| specs(&vec![strip.clone(); strips]).len();
        assert_eq!([0, 1, 25, 26, 100].map(count), [0, 1, 1, 2, 4]);
    }

    #[test]
    fn equal_samples_stand_apart() {
        let dots = [dot(1.0, false), dot(1.0, false), dot(1.0, false), dot(1.5, false)];
        let offsets = swarm(&dots, Span { low: 0.5, high: 2.0 }, [0.5, 2.0]);
        assert_eq!(offsets, [0.0, -0.13, 0.13, 0.0]);
    }

    #[test]
    fn a_far_sample_stands_at_the_edge_and_presses_no_other() {
        let mut dots: Vec<Dot> = (0..100).map(|index| dot(0.95 + 0.001 * f64::from(index), false)).collect();
        dots.push(dot(150.0, false));
        dots.push(dot(0.0, true));
        let strip = Strip {
            label: "s".to_owned(),
            figure: String::new(),
            dots,
            low_high: Some([0.97, 1.03]),
            verdict: Verdict::trusted(),
        };
        let span = span(std::slice::from_ref(&strip));
        assert!(span.low > 0.94 && span.high < 1.06, "{span:?}");
        let json = serde_json::to_value(&specs(&[strip])[0]).expect("serialises");
        let traces = json["data"].as_array().expect("traces");
        let dots = traces.iter().filter(|trace| trace["text"].is_array());
        let drawn: usize = dots.map(|trace| trace["x"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(drawn, 102, "none is left out");
        let arrows: Vec<&str> =
            traces.iter().filter_map(|trace| trace["marker"]["symbol"].as_str()).collect();
        assert!(arrows.contains(&"triangle-left") && arrows.contains(&"triangle-right"), "{arrows:?}");
    }
}
