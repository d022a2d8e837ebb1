//! The look of every chart, in one place: fonts of the page, a light grid, calm colours.

use plotly::color::Color;
use plotly::common::{ColorBar, ColorScale, ColorScalePalette, DashType, Font, Label, MarkerSymbol, Title};
use plotly::layout::{Annotation, Axis, AxisRange, AxisType, HoverMode, Layout, Margin, ModeBar};

use super::ticks::{self, Ticks};
use crate::block::{self, Scale};
use crate::html::text::label;

/// The page's own font, by name: plotly's pictures are looked at without the page as well.
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// What all layouts share.
pub fn layout(hover: HoverMode) -> Layout {
    let tip = Label::new()
        .background_color("$tip")
        .border_color("$tip")
        .font(font(12).color("$tip-ink"))
        .align("left");
    Layout::new()
        .auto_size(true)
        .font(font(12).color("$muted"))
        .paper_background_color("$clear")
        .plot_background_color("$clear")
        .margin(Margin::new().left(8).right(12).top(12).bottom(8).pad(4))
        .hover_mode(hover)
        .hover_label(tip)
        .show_legend(false)
        .mode_bar(ModeBar::new().background_color("$clear").color("$muted").active_color("$c0"))
}

pub fn font(size: usize) -> Font {
    Font::new().family(FONT).size(size)
}

/// What all axes share.
pub fn axis() -> Axis {
    Axis::new()
        .auto_margin(true)
        .grid_color("$grid")
        .grid_width(1)
        .zero_line(false)
        .tick_font(font(12).color("$muted"))
        .tick_color("$clear")
        .show_line(false)
}

/// A small text inside the drawing.
pub fn note(text: &str, colour: impl Color) -> Annotation {
    Annotation::new().text(text).show_arrow(false).font(font(11).color(colour))
}

/// The smallest and the largest of the values that an axis can show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub low: f64,
    pub high: f64,
}

impl Span {
    pub fn of(scale: Scale, values: impl IntoIterator<Item = f64>) -> Option<Span> {
        let shown = values.into_iter().filter(|value| drawable(scale, *value));
        shown.fold(None, |span, value| match span {
            None => Some(Span { low: value, high: value }),
            Some(Span { low, high }) => Some(Span { low: low.min(value), high: high.max(value) }),
        })
    }
}

/// Whether an axis of this scale has a place for `value`.
pub fn drawable(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

/// An axis for `shown`, with at most `most` ticks, and its range in its own coordinates: logarithms
/// where it is logarithmic. `room` is free space at both ends as a part of the range.
pub fn value_axis(
    shown: &block::Axis,
    span: Option<Span>,
    most: usize,
    room: [f64; 2],
) -> (Axis, Option<[f64; 2]>) {
    let mut axis = axis();
    if !shown.title.is_empty() {
        let text = label(&shown.title, 80);
        axis = axis.title(Title::with_text(text).font(font(12).color("$muted")));
    }
    let Some(span) = span else { return (axis, None) };
    match shown.scale {
        Scale::Linear => {
            let range = widened(span.low, span.high, room);
            (axis.range(range.to_vec()).separate_thousands(true), Some(range))
        }
        scale => {
            let range = widened(span.low.log10(), span.high.log10(), room);
            let ends = range.map(|end| 10_f64.powf(end).clamp(f64::MIN_POSITIVE, f64::MAX));
            let ticks = match scale {
                Scale::Bytes => ticks::bytes(ends[0], ends[1], most),
                Scale::Powers => ticks::powers(ends[0], ends[1], most, ticks::figure),
                _ => ticks::log(ends[0], ends[1], most),
            };
            (ticked(axis.type_(AxisType::Log).range(range.to_vec()), ticks), Some(range))
        }
    }
}

/// The same axis with these ticks and no others.
pub fn ticked(axis: Axis, ticks: Ticks) -> Axis {
    axis.tick_values(ticks.values).tick_text(ticks.text)
}

/// An axis of rows: one at each whole number, the first on top.
pub fn row_axis(count: usize) -> Axis {
    let range = AxisRange::new(count as f64 - 0.5, -0.5);
    axis().range(range).show_grid(false).fixed_range(true)
}

fn widened(low: f64, high: f64, room: [f64; 2]) -> [f64; 2] {
    let width = if high > low { high - low } else { low.abs().max(0.3) };
    [low - width * room[0], high + width * room[1]]
}

pub fn viridis() -> ColorScale {
    ColorScale::Palette(ColorScalePalette::Viridis)
}

pub fn color_bar(unit: &str) -> ColorBar {
    ColorBar::new()
        .title(Title::with_text(label(unit, 24)).font(font(12).color("$muted")))
        .tick_font(font(12).color("$muted"))
        .thickness(12)
        .outline_width(0)
        .outline_color("$clear")
        .x_pad(12.0)
}

/// How the line at `index` of `count` is told from the others: by colour, sign and dash. Up to
/// eight are blue, orange and so on; more of them are a family and get the steps of viridis.
pub struct Pen {
    pub colour: String,
    pub band: String,
    pub symbol: MarkerSymbol,
    pub dash: DashType,
}

pub fn pen(index: usize, count: usize) -> Pen {
    let colour = match count {
        0..=8 => format!("$c{index}"),
        _ => format!("$v{}", index * 9 / (count - 1)),
    };
    let symbols = [
        MarkerSymbol::Circle,
        MarkerSymbol::Square,
        MarkerSymbol::Diamond,
        MarkerSymbol::TriangleUp,
        MarkerSymbol::Cross,
        MarkerSymbol::X,
    ];
    let dashes = [DashType::Solid, DashType::Dash, DashType::Dot, DashType::DashDot];
    Pen {
        band: format!("{colour}-band"),
        colour,
        symbol: symbols[index % 6].clone(),
        dash: dashes[index / 6 % 4].clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_leave_out_what_has_no_place() {
        let values = [f64::NAN, 0.0, -1.0, 5.0, 2.0, f64::INFINITY];
        assert_eq!(Span::of(Scale::Log, values), Some(Span { low: 2.0, high: 5.0 }));
        assert_eq!(Span::of(Scale::Linear, values), Some(Span { low: -1.0, high: 5.0 }));
        assert_eq!(Span::of(Scale::Bytes, [0.0]), None);
    }

    #[test]
    fn many_lines_get_different_pens() {
        let pens: std::collections::BTreeSet<String> = (0..24)
            .map(|index| pen(index, 24))
            .map(|p| format!("{}{:?}{:?}", p.colour, p.symbol, p.dash))
            .collect();
        assert_eq!(pens.len(), 24);
        assert_eq!(pen(1, 2).colour, "$c1");
    }
}
