//! Curves of two results over one another: what both measured at several sizes or numbers.

use std::collections::BTreeMap;

use super::{left, names, right};
use crate::block::{Axis, Block, Cell, Chart, ChartKind, Line, LinePoint, Scale, Section, Table};
use crate::comparison::ratio_words;
use crate::sections::names::{Subject, param};
use compare::{Compared, Comparison};
use import::keyed;
use model::{Params, Value, figure};

/// Fewer points than this are no curve.
const LEAST: usize = 4;

/// A curve: its parameter and its points, by the parameter's number.
struct Ladder<'a> {
    title: String,
    param: String,
    points: Vec<(f64, &'a Compared)>,
}

/// A chart for each curve that both have; `None` where there is none.
pub fn section(one: &Comparison, letter: &str, several: bool) -> Option<Section> {
    let ladders = ladders(one);
    let charts = ladders.iter().enumerate().map(|(at, ladder)| Block::from(chart(one, ladder, letter, at)));
    let charts: Vec<Block> = charts.collect();
    let title = if several { format!("Curves of {letter} and A") } else { "Curves".to_string() };
    let about = "What both measured at several sizes, one over the other.";
    (!charts.is_empty())
        .then(|| super::section(&format!("ladders-{}", letter.to_lowercase()), &title, about, charts))
}

fn ladders(one: &Comparison) -> Vec<Ladder<'_>> {
    let mut by_curve: BTreeMap<(String, String), Ladder> = BTreeMap::new();
    for metric in one.metrics.iter().filter(|metric| metric.headline) {
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
            points: Vec::new(),
        });
        ladder.points.push((*number, metric));
    }
    let mut ladders: Vec<Ladder> = by_curve.into_values().filter(|one| one.points.len() >= LEAST).collect();
    ladders.iter_mut().for_each(|one| one.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    ladders
}

fn chart(one: &Comparison, ladder: &Ladder, letter: &str, at: usize) -> Chart {
    let unit = ladder.points.first().map_or("", |(_, metric)| metric.unit.as_str());
    let names = ["A", letter];
    let lines = [0, 1].map(|side| Line {
        name: format!("{} {}", names[side], one.names[side][0]),
        points: ladder
            .points
            .iter()
            .map(|(x, metric)| LinePoint {
                x: *x,
                y: [metric.a, metric.b][side],
                low_high: None,
                hollow: false,
            })
            .collect(),
        joined: true,
    });
    let in_bytes = Subject::of(&ladder.param) == Subject::Bytes;
    let rows = ladder.points.iter().map(|(x, metric)| {
        let (turned, interval) = metric.shown_ratio();
        vec![
            Cell::Text(param(&ladder.param, &Value::from(*x as u64))),
            Cell::Number(figure(metric.a, unit)),
            Cell::Number(figure(metric.b, unit)),
            Cell::Number(ratio_words(turned, interval)),
        ]
    });
    Chart {
        id: format!("chart-ladder-{}-{at}", letter.to_lowercase()),
        title: ladder.title.clone(),
        about: String::new(),
        kind: ChartKind::Lines {
            x: Axis {
                title: if in_bytes { "block".to_string() } else { ladder.param.clone() },
                scale: if in_bytes { Scale::Bytes } else { Scale::Log },
            },
            y: Axis { title: unit.to_string(), scale: Scale::Log },
            lines: lines.into(),
            marks: Vec::new(),
            callouts: Vec::new(),
        },
        summary: None,
        data: Table {
            columns: vec![
                left(&ladder.param),
                right("A"),
                right(letter),
                right(&format!("{letter}/A, > 1 better (95 %)")),
            ],
            rows: rows.collect(),
            folded: true,
        },
    }
}
