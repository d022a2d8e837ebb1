//! Curves of results over one another: what they measured at several sizes or numbers.

use std::collections::BTreeMap;

use super::{column, names, right};
use crate::block::{Axis, Block, Cell, Chart, ChartKind, Line, LinePoint, Scale, Section, Table};
use crate::comparison::ratio_words;
use crate::sections::names::{Subject, param};
use compare::{Compared, Comparison};
use import::keyed;
use model::{Params, Value, figure};

/// Fewer points than this are no curve.
const LEAST: usize = 4;

/// A curve: its parameter, and its points in each comparison, by the parameter's number.
struct Ladder<'a> {
    title: String,
    param: String,
    curves: Vec<Vec<Point<'a>>>,
}

type Point<'a> = (f64, &'a Compared);

/// A chart for each curve that A has in common with another; `None` where there is none.
pub fn section(comparisons: &[Comparison], letters: &[String]) -> Option<Section> {
    let ladders = ladders(comparisons);
    let charts = ladders.iter().enumerate().map(|(at, ladder)| chart(comparisons, letters, ladder, at));
    let charts: Vec<Block> = charts.map(Block::from).collect();
    let who = if comparisons.len() > 1 { "A and others" } else { "both" };
    let about = format!("Results of {who} at several sizes.");
    (!charts.is_empty()).then(|| super::section("ladders", "Curves", &about, charts))
}

fn ladders(comparisons: &[Comparison]) -> Vec<Ladder<'_>> {
    let mut by_curve: BTreeMap<(String, String), Ladder> = BTreeMap::new();
    let metrics = comparisons
        .iter()
        .enumerate()
        .flat_map(|(at, one)| one.metrics.iter().map(move |metric| (at, metric)));
    for (at, metric) in metrics.filter(|(_, metric)| metric.headline) {
        let Some(mut keyed) = keyed(&metric.key) else { continue };
        let numbers: Vec<(String, f64)> = keyed
            .point
            .iter()
            .filter_map(|(name, value): (_, &Value)| Some((name.to_string(), value.number()?)))
            .collect();
        let [(name, number)] = numbers.as_slice() else { continue };
        // One curve is all that is equal but for that number.
        let others = keyed.point.iter().filter(|(own, _)| *own != name);
        keyed.point = others.map(|(own, value)| (own.clone(), value.clone())).collect::<Params>();
        let curve = keyed.case.series_key(&keyed.point, &keyed.metric);
        let ladder = by_curve.entry((curve.clone(), name.clone())).or_insert_with(|| Ladder {
            title: names::whole(&metric.title, &curve),
            param: name.clone(),
            curves: vec![Vec::new(); comparisons.len()],
        });
        ladder.curves[at].push((*number, metric));
    }
    let mut ladders: Vec<Ladder> = by_curve.into_values().collect();
    for curve in ladders.iter_mut().flat_map(|ladder| &mut ladder.curves) {
        if curve.len() < LEAST {
            curve.clear();
        }
        curve.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    ladders.retain(|ladder| ladder.curves.iter().any(|curve| !curve.is_empty()));
    ladders
}

fn point_at<'a>(curve: &[Point<'a>], x: f64) -> Option<&'a Compared> {
    curve.iter().find(|point| point.0 == x).map(|point| point.1)
}

fn chart(comparisons: &[Comparison], letters: &[String], ladder: &Ladder, at: usize) -> Chart {
    // A's points are those of all comparisons together.
    let mut of_a: Vec<Point> = ladder.curves.iter().flatten().copied().collect();
    of_a.sort_by(|one, other| one.0.total_cmp(&other.0));
    of_a.dedup_by_key(|point| point.0);
    let unit = of_a.first().map_or("", |(_, metric)| metric.unit.as_str());
    let line = |name: String, points: &[Point], value: fn(&Compared) -> f64| Line {
        name,
        points: points.iter().map(|(x, metric)| LinePoint::at(*x, value(metric))).collect(),
        joined: true,
    };
    let host = |side: usize, one: &Comparison| one.names[side][0].clone();
    let first = comparisons.first().map(|one| line(format!("A {}", host(0, one)), &of_a, |metric| metric.a));
    let others = comparisons.iter().zip(letters).zip(&ladder.curves).filter(|(_, curve)| !curve.is_empty());
    let others = others
        .map(|((one, letter), curve)| line(format!("{letter} {}", host(1, one)), curve, |metric| metric.b));
    let lines: Vec<Line> = first.into_iter().chain(others).collect();
    let in_bytes = Subject::of(&ladder.param) == Subject::Bytes;
    let rows = of_a.iter().map(|(x, metric)| {
        let cell = |text: Option<String>| text.map_or(Cell::Empty, Cell::Number);
        let mut row = vec![
            Cell::Text(param(&ladder.param, &Value::from(*x as u64))),
            Cell::Number(figure(metric.a, unit)),
        ];
        row.extend(
            ladder.curves.iter().map(|curve| cell(point_at(curve, *x).map(|metric| figure(metric.b, unit)))),
        );
        row.extend(ladder.curves.iter().map(|curve| {
            cell(point_at(curve, *x).map(|metric| {
                let (turned, interval) = metric.shown_ratio();
                ratio_words(turned, interval)
            }))
        }));
        row
    });
    let ratios = letters.iter().map(|letter| right(&format!("{letter}/A, > 1 better (95 %)")));
    let columns = [column(&ladder.param), right("A")].into_iter();
    let columns = columns.chain(letters.iter().map(|letter| right(letter))).chain(ratios);
    Chart::new(
        format!("chart-ladder-{at}"),
        ladder.title.clone(),
        ChartKind::lines(
            Axis {
                title: if in_bytes { "block".to_string() } else { ladder.param.clone() },
                scale: if in_bytes { Scale::Bytes } else { Scale::Log },
            },
            Axis { title: unit.to_string(), scale: Scale::Log },
            lines,
        ),
        Table::new(columns.collect(), rows).folded(),
    )
}
