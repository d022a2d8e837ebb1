//! One bar a label, with its interval; dots where the axis is logarithmic, because a bar there has
//! no foot.

use plotly::common::{
    ErrorData, ErrorType, HoverInfo, Marker, MarkerSymbol, Mode, Orientation, Pattern, PatternShape,
};
use plotly::layout::{HoverMode, Margin};
use plotly::{Bar as Drawn, Scatter, Trace};

use super::Spec;
use super::rows::{self, Row};
use super::theme::{Span, drawable, layout, value_axis};
use super::ticks::figure;
use crate::block::{Axis, Bar, Scale};
use crate::html::text::label;
use crate::html::verdict::worth;

pub fn spec(axis: &Axis, bars: &[Bar]) -> Spec {
    let rows: Vec<Row> = bars.iter().map(|bar| Row::new(&bar.label, &shown(bar), &bar.verdict)).collect();
    let values =
        bars.iter().flat_map(|bar| [bar.value].into_iter().chain(bar.low_high.into_iter().flatten()));
    let span = match axis.scale {
        Scale::Linear => Span::of(axis.scale, values.chain([0.0])),
        scale => Span::of(scale, values),
    };
    let foot =
        if span.is_some_and(|span| axis.scale == Scale::Linear && span.low == 0.0) { 0.0 } else { 0.04 };
    let (x, _) = value_axis(axis, span, 9, [foot, 0.04]);
    let [names, figures] = rows::axes(&rows);
    let layout = layout(HoverMode::Closest)
        .margin(Margin::new().left(8).right(8).top(4).bottom(8).pad(6))
        .bar_gap(0.42)
        .x_axis(x)
        .y_axis(names)
        .y_axis2(figures.matches("y"));
    let lost = bars.iter().filter(|bar| bar.verdict.usable() && !drawable(axis.scale, bar.value)).count();
    let notes = match lost {
        0 => Vec::new(),
        _ => vec![format!("{lost} of the values have no place on this axis; the table below has them.")],
    };
    Spec {
        data: vec![marks(axis.scale, bars), figures_at_the_right(bars)],
        layout,
        narrow: Some(rows::narrow(&rows, 5)),
        orders: Vec::new(),
        shape: rows::shape(rows.len()),
        notes,
    }
}

/// The value and its interval; nothing where there is no value.
fn shown(bar: &Bar) -> String {
    match bar.low_high {
        _ if !bar.value.is_finite() => String::new(),
        Some([low, high]) => format!("{} [{}, {}]", figure(bar.value), figure(low), figure(high)),
        None => figure(bar.value),
    }
}

fn marks(scale: Scale, bars: &[Bar]) -> Box<dyn Trace> {
    let drawn: Vec<(usize, &Bar)> =
        bars.iter().enumerate().filter(|(_, bar)| drawable(scale, bar.value)).collect();
    let values: Vec<f64> = drawn.iter().map(|(_, bar)| bar.value).collect();
    let places: Vec<f64> = drawn.iter().map(|(row, _)| *row as f64).collect();
    let texts = drawn.iter().map(|(_, bar)| format!("{}: {}", label(&bar.label, 120), shown(bar))).collect();
    let colours: Vec<&'static str> = drawn.iter().map(|(_, bar)| worth(bar.verdict.kind).colour).collect();
    let ends = |side: usize, sign: f64| {
        drawn
            .iter()
            .map(|(_, bar)| bar.low_high.map_or(0.0, |ends| sign * (ends[side] - bar.value)))
            .collect()
    };
    let errors =
        ErrorData::new(ErrorType::Data).symmetric(false).array(ends(1, 1.0)).array_minus(ends(0, -1.0));
    let errors = errors.color("$ink").thickness(1.5).width(5);
    if scale != Scale::Linear {
        let marker = Marker::new().color_array(colours).size(10).symbol(MarkerSymbol::Diamond);
        let dots = Scatter::new(values, places).mode(Mode::Markers).marker(marker).error_x(errors);
        return dots.text_array(texts).hover_info(HoverInfo::Text);
    }
    // Hatched where the value is not to be relied on: colour alone would not say it.
    let hatch =
        |bar: &Bar| if bar.verdict.usable() { PatternShape::None } else { PatternShape::RightDiagonalLine };
    let pattern = Pattern::new().shape_array(drawn.iter().map(|(_, bar)| hatch(bar)).collect()).solidity(0.3);
    let marker = Marker::new().color_array(colours).pattern(pattern).opacity(0.85);
    Drawn::new(values, places)
        .orientation(Orientation::Horizontal)
        .marker(marker)
        .error_x(errors)
        // A bar's text would be drawn inside it; the figure stands at the right.
        .hover_text_array(texts)
        .hover_info(HoverInfo::Text)
}

/// An unseen trace that carries the axis of figures.
fn figures_at_the_right(bars: &[Bar]) -> Box<dyn Trace> {
    let rows: Vec<f64> = (0..bars.len()).map(|row| row as f64).collect();
    let unseen = Marker::new().size(1).opacity(0.0).color("$clear");
    let first =
        bars.iter().map(|bar| bar.value).find(|value| value.is_finite() && *value > 0.0).unwrap_or(1.0);
    let unseen = Scatter::new(vec![first; rows.len()], rows).mode(Mode::Markers).marker(unseen);
    unseen.y_axis("y2").hover_info(HoverInfo::Skip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Verdict, VerdictKind};

    #[test]
    fn bars_and_dots() {
        let bar = |value: f64, verdict| Bar {
            label: "<i>a".to_owned(),
            value,
            low_high: Some([value * 0.9, value * 1.1]),
            verdict,
        };
        let bars = [
            bar(2.0, Verdict::trusted()),
            bar(f64::NAN, Verdict::new(VerdictKind::Skipped, "budget")),
            bar(-1.0, Verdict::trusted()),
        ];
        let axis = |scale| Axis { title: "GB/s".to_owned(), scale };
        let json = serde_json::to_value(spec(&axis(Scale::Linear), &bars)).expect("serialises");
        assert_eq!(json["data"][0]["type"], "bar");
        assert_eq!(json["data"][0]["y"], serde_json::json!([0.0, 2.0]));
        assert_eq!(json["layout"]["yaxis"]["ticktext"][0], "&lt;i&gt;a");
        assert_eq!(json["layout"]["yaxis2"]["ticktext"][1], "– skipped: budget");
        let log = spec(&axis(Scale::Log), &bars);
        assert_eq!(log.notes.len(), 1);
        let json = serde_json::to_value(log).expect("serialises");
        assert_eq!(json["data"][0]["type"], "scatter");
        assert_eq!(json["data"][0]["x"], serde_json::json!([2.0]));
    }
}
