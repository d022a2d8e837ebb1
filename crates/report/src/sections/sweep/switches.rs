//! A curve of one knob beside the switches that were counted with it.

use std::borrow::Cow;

use super::super::{column, number, right, text};
use crate::block::{Axis, Callout, Cell, Chart, ChartKind, Line, LinePoint, Scale, Table};
use diagnose::swept::curve::Curve;
use diagnose::swept::{MetricGrid, words};
use diagnose::words::figure;
use model::Sweep;
use model::vocabulary::hackbench::metric as ids;

/// `Along min_granularity with wakeup_granularity at 6 ms`.
pub fn curve_words(sweep: &Sweep, curve: &Curve) -> String {
    let along = words::name(&sweep.axes[curve.axis]);
    match sweep.axes.get(1 - curve.axis) {
        Some(other) => {
            let fixed = words::value(other, &other.values[curve.across]);
            format!("Along {along} with {} at {fixed}", words::name(other))
        }
        None => format!("Along {along}"),
    }
}

/// A curve with the switches of the same visits, each as a share of its highest.
pub fn with_switches(sweep: &Sweep, charted: &MetricGrid, curve: &Curve, id: String) -> Option<Chart> {
    let axis = &sweep.axes[curve.axis];
    let xs = axis.numbers()?;
    charted.covariate(ids::INVOLUNTARY)?;
    let ms = axis.name.ends_with("_ns");
    let scaled = |x: f64| if ms { x / 1e6 } else { x };
    let beside = [ids::VOLUNTARY, ids::INVOLUNTARY].into_iter().filter_map(|name| charted.covariate(name));
    let mut all = vec![(&charted.metric.title, &charted.metric.unit, &charted.medians)];
    all.extend(beside.map(|beside| (&beside.metric.title, &beside.metric.unit, &beside.medians)));
    let line = |(title, _, medians): &(&Cow<'static, str>, _, &Vec<Option<f64>>)| {
        let own: Vec<Option<f64>> = curve.cells.iter().map(|cell| medians[*cell]).collect();
        let highest = own.iter().flatten().copied().fold(0.0, f64::max);
        let point = |(x, value): (&f64, &Option<f64>)| {
            let y = (*value)? / highest * 100.0;
            y.is_finite().then_some(LinePoint::at(scaled(*x), y))
        };
        let points = xs.iter().zip(&own).filter_map(point).collect();
        Line { name: title.to_string(), points, joined: true }
    };
    let rows = curve.cells.iter().enumerate().map(|(along, cell)| {
        let value = |(_, unit, medians): &(_, &Cow<'static, str>, &Vec<Option<f64>>)| {
            medians[*cell].map_or(Cell::Empty, |median| number(figure(median, unit)))
        };
        let piece =
            curve.pieces.iter().find(|piece| (piece.segment.from..=piece.segment.to).contains(&along));
        let mut row = vec![number(words::value(axis, &axis.values[along]))];
        row.extend(all.iter().map(value));
        row.push(piece.map_or(Cell::Empty, |piece| text(piece.number.to_string())));
        row
    });
    let log = xs.iter().all(|x| *x > 0.0) && xs.last()? / xs.first()? > 20.0;
    let mut columns = vec![right(words::name(axis))];
    columns.extend(all.iter().map(|(title, ..)| right(title)));
    columns.push(column("region"));
    Some(
        Chart::new(
            id,
            format!("{} and switches. {}", charted.title, curve_words(sweep, curve)),
            ChartKind::Lines {
                x: Axis {
                    title: format!("{}{}", words::name(axis), if ms { ", ms" } else { "" }),
                    scale: if log { Scale::Log } else { Scale::Linear },
                },
                y: Axis::linear("% of its highest"),
                lines: all.iter().map(line).collect(),
                marks: curve
                    .pieces
                    .iter()
                    .map(|piece| (scaled(xs[piece.segment.from]), piece.number.to_string()))
                    .collect(),
                callouts: Vec::<Callout>::new(),
            },
            Table::new(columns, rows).folded(),
        )
        .about("Each as a share of its highest value. A letter marks the start of a region."),
    )
}
