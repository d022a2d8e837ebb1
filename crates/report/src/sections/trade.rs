//! One metric over another: what latency a load costs.

use std::collections::HashMap;

use super::curves::split;
use super::figures::{median_words, value_words};
use super::names::{placement_words, point_words, told_apart};
use super::{column, number, right, text};
use crate::block::{Axis, Block, Callout, Cell, Chart, ChartKind, Line, LinePoint, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::figure;
use model::{Case, Title, VerdictKind};
use stats::analysis::Judged;
use stats::knee::knee;

/// The series of another metric at the same points.
pub struct Beside<'a>(HashMap<(usize, String), &'a Judged>);

impl<'a> Beside<'a> {
    pub fn of(diagnosis: &'a Diagnosis, title: &Title, metric: &str) -> Beside<'a> {
        let own = diagnosis
            .series
            .iter()
            .filter(|judged| judged.series.case.bench == title.id && judged.series.metric.name == metric);
        Beside(own.map(|judged| (place(judged), judged)).collect())
    }

    pub fn at(&self, judged: &Judged) -> Option<&'a Judged> {
        self.0.get(&place(judged)).copied()
    }

    /// Its median with its unit.
    pub fn words(&self, judged: &Judged) -> Option<String> {
        let beside = self.at(judged)?;
        beside.analysis.figure().map(|_| median_words(beside))
    }
}

fn place(judged: &Judged) -> (usize, String) {
    (judged.series.planned, point_words(&judged.series.point))
}

/// A point of a case: both series, and their medians.
struct Both<'a> {
    x: &'a Judged,
    y: &'a Judged,
    at: LinePoint,
}

pub fn section(diagnosis: &Diagnosis, title: &Title, x: &str, y: &str) -> Option<Section> {
    let beside = Beside::of(diagnosis, title, x);
    let mut cases: Vec<(&Case, Vec<Both>)> = Vec::new();
    let mut last = None;
    for judged in diagnosis.series.iter() {
        if judged.series.case.bench != title.id || judged.series.metric.name != y {
            continue;
        }
        let Some(both) = beside.at(judged).and_then(|x| both(x, judged)) else { continue };
        if last != Some(judged.series.planned) {
            cases.push((&judged.series.case, Vec::new()));
            last = Some(judged.series.planned);
        }
        cases.last_mut()?.1.push(both);
    }
    let id = title.id.replace('.', "-");
    let charts = split(cases).into_iter().enumerate().filter_map(|(index, (name, cases))| {
        let chart_id = if index == 0 { format!("chart-{id}") } else { format!("chart-{id}-{index}") };
        let suffix = if name.is_empty() { String::new() } else { format!(", {name}") };
        chart(chart_id, format!("{}{suffix}", title.title), &cases).map(Block::from)
    });
    let blocks: Vec<Block> = charts.collect();
    Section::new(id, &*title.title, blocks).about(&*title.reading).long().unless_empty()
}

fn both<'a>(x: &'a Judged, y: &'a Judged) -> Option<Both<'a>> {
    let (across, up) = (x.analysis.figure()?, y.analysis.figure()?);
    let rejected = [x, y].iter().any(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected);
    let low_high = up.interval.map(|interval| [interval.low, interval.high]);
    Some(Both { x, y, at: LinePoint { x: across.median, y: up.median, low_high, hollow: rejected } })
}

fn chart(id: String, title: String, cases: &[(&Case, Vec<Both>)]) -> Option<Chart> {
    let names = told_apart(&cases.iter().map(|(case, _)| *case).collect::<Vec<_>>());
    let first = cases.iter().find_map(|(_, points)| points.first())?;
    let [x, y] = [&first.x.series.metric, &first.y.series.metric];
    let (mut lines, mut callouts, mut knees, mut rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, ((case, points), name)) in cases.iter().zip(&names).enumerate() {
        let good: Vec<&LinePoint> = points.iter().map(|both| &both.at).filter(|at| !at.hollow).collect();
        let knee = knee(&good.iter().map(|at| (at.x, at.y)).collect::<Vec<_>>()).map(|at| good[at]);
        if let Some(at) = knee {
            callouts.push(Callout { x: at.x, y: at.y, text: "knee".into(), line: index });
            knees.push(format!("{name} at {} and {}", figure(at.x, &x.unit), figure(at.y, &y.unit)));
        }
        lines.push(Line {
            name: name.clone(),
            points: points.iter().map(|both| both.at).collect(),
            joined: true,
        });
        rows.extend(points.iter().map(|both| {
            let is_knee = knee.is_some_and(|at| std::ptr::eq(at, &both.at));
            vec![
                text(name.clone()),
                text(placement_words(&case.placement.name)),
                text(point_words(&both.y.series.point)),
                number(value_words(both.x)),
                number(value_words(both.y)),
                text(if is_knee { "knee" } else { "" }),
                Cell::Verdict(worse(both)),
            ]
        }));
    }
    let points = rows.len();
    let columns = vec![
        column("case"),
        column("placement"),
        column("point"),
        right(&format!("{} (95 %)", x.title)),
        right(&format!("{} (95 %)", y.title)),
        column(""),
        column("verdict"),
    ];
    let axis = |metric: &model::Metric| Axis::linear(super::wide::titled(metric));
    let knees = match knees.as_slice() {
        [] => "No line has a knee.".to_string(),
        some => {
            format!(
                "Rings: knees, the points farthest below a straight line between the ends: {}.",
                some.join(", ")
            )
        }
    };
    Some(
        Chart::new(
            id,
            title,
            ChartKind::Lines { x: axis(x), y: axis(y), lines, marks: Vec::new(), callouts },
            Table::new(columns, rows).folded(),
        )
        .about(format!(
            "Medians of {points} points: {} with its 95 % interval, over {}. Hollow: rejected. \
                 {knees}",
            y.title, x.title
        )),
    )
}

/// The verdict of the two that weighs more: a rejected one, else that of what is read.
fn worse(both: &Both) -> model::Verdict {
    let [x, y] = [both.x, both.y].map(|judged| &judged.analysis.verdict);
    if x.kind == VerdictKind::Rejected { x.clone() } else { y.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, charts, latency, machine, of, texts};
    use super::super::shown;
    use super::*;
    use model::{Better, Form, Metric, Value, View};

    /// Traffic and latency by pause; the first point is full load.
    const POINTS: [(u64, f64, f64); 6] = [
        (0, 24.0, 480.0),
        (10, 23.0, 200.0),
        (40, 18.0, 118.0),
        (100, 10.0, 108.0),
        (400, 4.0, 102.0),
        (5000, 0.4, 100.0),
    ];

    fn loaded() -> Diagnosis {
        let traffic = Metric::new(
            model::vocabulary::memory::metric::TRAFFIC,
            "traffic",
            "GB/s",
            Better::Higher,
            Form::Value,
        )
        .aside();
        let view = View::Trade { x: "traffic".into(), y: "latency".into() };
        let mut made = Made::new(view, vec![latency(), traffic]);
        for (mix, slow) in [("reads", 1.0), ("two-to-one", 1.3)] {
            let values: Vec<_> = POINTS
                .iter()
                .map(|(pause, x, y)| {
                    (of(&[("pause", (*pause).into())]), [("latency", y * slow), ("traffic", x / slow)])
                })
                .collect();
            let points: Vec<_> = values.iter().map(|(point, values)| (point.clone(), &values[..])).collect();
            made = made.case(case("all", &[("mix", Value::from(mix))]), &points);
        }
        made.diagnosed(machine(4))
    }

    #[test]
    fn one_line_a_case_with_its_knee() {
        let diagnosis = loaded();
        let title = &diagnosis.run.header.catalogue[0];
        let section = section(&diagnosis, title, "traffic", "latency").expect("a section");
        let chart = charts(&section)[0];
        let ChartKind::Lines { x, y, lines, callouts, .. } = &chart.kind else { panic!("lines") };
        assert_eq!([x.title.as_str(), y.title.as_str()], ["traffic, GB/s", "latency of a load, ns"]);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["reads", "two-to-one"]);
        assert_eq!(lines[0].points.len(), 6);
        assert!(lines[0].points[0].x > 23.9 && lines[0].points[5].x < 0.5, "in the order of the points");
        assert_eq!(callouts.len(), 2);
        assert_eq!((callouts[0].x.round(), callouts[1].line), (18.0, 1));
        assert!(chart.about.contains("reads at 18.0 GB/s and 118 ns"), "{}", chart.about);
        let rows = texts(&chart.data);
        assert_eq!((rows[2][2].as_str(), rows[2][5].as_str(), rows[3][5].as_str()), ("pause 40", "knee", ""));
    }

    #[test]
    fn results_have_both_ends() {
        let diagnosis = loaded();
        let labels: Vec<String> = shown::first(&diagnosis).0.into_iter().map(|shown| shown.label).collect();
        assert_eq!(
            labels,
            [
                "Test, reads, at 24.0 GB/s",
                "Test, reads, at 0.400 GB/s",
                "Test, two-to-one, at 18.5 GB/s",
                "Test, two-to-one, at 0.308 GB/s"
            ]
        );
    }
}
