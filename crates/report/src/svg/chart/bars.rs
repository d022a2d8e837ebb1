//! One bar a label, with its interval; dots where the axis is logarithmic, because a bar there has
//! no foot.

use super::rows::{self, MIDDLE, Row};
use super::scale::{Scaled, Span, drawable, title};
use super::ticks::figure;
use super::{Drawing, thousand};
use crate::block::{Axis, Bar, Scale};
use crate::html::verdict::worth;

pub fn drawing(axis: &Axis, bars: &[Bar]) -> Drawing {
    let values =
        bars.iter().flat_map(|bar| [bar.value].into_iter().chain(bar.low_high.into_iter().flatten()));
    let span = match axis.scale {
        Scale::Linear => Span::of(axis.scale, values.chain([0.0])),
        scale => Span::of(scale, values),
    };
    let foot =
        if span.is_some_and(|span| axis.scale == Scale::Linear && span.low == 0.0) { 0.0 } else { 0.04 };
    let scaled = span.map(|span| Scaled::new(axis.scale, span, [foot, 0.04]));
    let rows: Vec<Row> = bars
        .iter()
        .map(|bar| {
            let marks = scaled.map_or(String::new(), |scaled| marks(bar, &scaled, axis.scale));
            Row::new(&bar.label, &shown(bar), &bar.verdict, marks)
        })
        .collect();
    let lost = bars.iter().filter(|bar| bar.verdict.usable() && !drawable(axis.scale, bar.value)).count();
    let mut drawing = Drawing::one(rows::html(&rows, scaled.as_ref(), &title(axis)));
    if lost > 0 {
        drawing.notes.push(format!("{lost} of the values do not fit this axis; the table below has them."));
    }
    drawing
}

/// The value and its interval; nothing where there is no value.
fn shown(bar: &Bar) -> String {
    match bar.low_high {
        _ if !bar.value.is_finite() => String::new(),
        Some([low, high]) => format!("{} ({}–{})", words(bar.value), words(low), words(high)),
        None => words(bar.value),
    }
}

fn words(value: f64) -> String {
    rows::brief(value).unwrap_or_else(|| figure(value))
}

/// The bar and its interval. A value that is not to be relied on is an outline: colour alone would
/// not say it.
fn marks(bar: &Bar, scaled: &Scaled, scale: Scale) -> String {
    let Some(at) = scaled.place(bar.value) else { return String::new() };
    let ink = worth(bar.verdict.kind).ink;
    let hollow = if bar.verdict.usable() { "" } else { " hollow" };
    let mut out = match scale {
        Scale::Linear => {
            let foot = scaled.place(0.0).unwrap_or(0.0).clamp(0.0, 1.0);
            let [left, right] = [foot.min(at), foot.max(at)];
            format!(
                "<path class=\"bar {ink}{hollow}\" d=\"M{0} 6H{1}V18H{0}z\"/>",
                thousand(left),
                thousand(right)
            )
        }
        _ => format!("<path class=\"dots big {ink}{hollow}\" d=\"M{} {MIDDLE}h0\"/>", thousand(at)),
    };
    let ends = bar.low_high.map(|ends| ends.map(|end| scaled.place(end)));
    if let Some([Some(low), Some(high)]) = ends {
        let [low, high] = [low, high].map(thousand);
        out.push_str(&format!("<path class=\"whisker\" d=\"M{low} {MIDDLE}H{high}M{low} 8v8M{high} 8v8\"/>"));
    }
    out
}
