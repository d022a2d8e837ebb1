//! Charts over a parameter, and of placements beside each other.

use std::collections::BTreeMap;

use super::results::{claimed_caches, label, value_words};
use super::{column, number, right, text};
use crate::diagnose::Diagnosis;
use crate::diagnose::words::bytes;
use crate::model::{Title, VerdictKind, View};
use crate::report::block::{
    Axis, Bar, Block, Cell, Chart, ChartKind, Line, LinePoint, Scale, Section, Table,
};
use crate::stats::analysis::Judged;

/// A section for each curve and matrix, and one for placements that can be compared.
pub fn sections(diagnosis: &Diagnosis) -> Vec<Section> {
    let mut sections = Vec::new();
    for title in &diagnosis.run.header.catalogue {
        if let View::Curve { x, log } = &title.view {
            sections.extend(curve(diagnosis, title, x, *log));
        }
    }
    sections.extend(placements(diagnosis));
    sections
}

fn curve(diagnosis: &Diagnosis, title: &Title, x: &str, log: bool) -> Option<Section> {
    let metric = title.metrics.iter().find(|metric| metric.headline)?;
    let mut lines: BTreeMap<(usize, bool), Line> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut cpu = None;
    let own =
        |judged: &&Judged| judged.series.case.bench == title.id && judged.series.metric.name == metric.name;
    for judged in diagnosis.series.iter().filter(own) {
        let at = judged.series.point.get(x).and_then(|value| value.number());
        let (Some(at), Some(estimate)) = (at, &judged.analysis.estimate) else { continue };
        cpu = cpu.or(judged.series.case.placement.cpus().first());
        // A rejected number is shown, but a line through it would say that it is one.
        let rejected = judged.analysis.verdict.kind == VerdictKind::Rejected;
        let line = lines.entry((judged.series.planned, rejected)).or_insert_with(|| Line {
            name: format!("{}{}", judged.series.case.key(), if rejected { ", rejected" } else { "" }),
            points: Vec::new(),
            joined: !rejected,
        });
        let low_high = estimate.interval.map(|interval| [interval.low, interval.high]);
        line.points.push(LinePoint { x: at, y: estimate.median, low_high });
        rows.push(vec![
            text(if x == "bytes" { bytes(at) } else { at.to_string() }),
            text(judged.series.case.placement.name.to_string()),
            number(value_words(judged)),
            number(estimate.n.to_string()),
            Cell::Verdict(judged.analysis.verdict.clone()),
        ]);
    }
    if rows.is_empty() {
        return None;
    }
    let scale = match (log, x) {
        (true, "bytes") => Scale::Bytes,
        (true, _) => Scale::Log,
        (false, _) => Scale::Linear,
    };
    let marks = match x {
        "bytes" => claimed_caches(&diagnosis.machine, cpu)
            .into_iter()
            .map(|(name, size)| (size, format!("{name} {}", bytes(size))))
            .collect(),
        _ => Vec::new(),
    };
    let columns = vec![column(x), column("placement"), right("median (95 %)"), right("n"), column("verdict")];
    let kind = ChartKind::Lines {
        x: Axis { title: if x == "bytes" { "block".into() } else { x.into() }, scale },
        y: Axis {
            title: format!("{}, {}", metric.title, metric.unit),
            scale: if log { Scale::Log } else { Scale::Linear },
        },
        lines: lines.into_values().collect(),
        marks,
    };
    let id = title.id.replace('.', "-");
    let chart = Chart {
        id: format!("chart-{id}"),
        title: title.title.to_string(),
        about: "Median of processes with its 95 % interval. Hollow: rejected. Dashed: the sizes that the kernel claims.".into(),
        kind,
        data: Table { columns, rows, folded: true },
    };
    Some(Section {
        id,
        title: title.title.to_string(),
        about: title.reading.to_string(),
        blocks: vec![Block::Chart(chart)],
        long: true,
    })
}

/// Benchmarks that were measured in several placements, as bars beside each other.
fn placements(diagnosis: &Diagnosis) -> Option<Section> {
    let mut blocks = Vec::new();
    for title in &diagnosis.run.header.catalogue {
        for metric in title.metrics.iter().filter(|_| title.view == View::Table) {
            let own: Vec<&Judged> = diagnosis
                .series
                .iter()
                .filter(|judged| {
                    judged.series.case.bench == title.id
                        && judged.series.metric.name == metric.name
                        && judged.series.point.is_empty()
                        && judged.analysis.estimate.is_some()
                })
                .collect();
            if own.len() < 2 {
                continue;
            }
            let bars = own.iter().filter_map(|judged| {
                let estimate = judged.analysis.estimate.as_ref()?;
                Some(Bar {
                    label: judged.series.case.placement.name.to_string(),
                    value: estimate.median,
                    low_high: estimate.interval.map(|interval| [interval.low, interval.high]),
                    verdict: judged.analysis.verdict.clone(),
                })
            });
            let rows = own.iter().map(|judged| {
                vec![
                    text(judged.series.case.placement.name.to_string()),
                    number(value_words(judged)),
                    Cell::Verdict(judged.analysis.verdict.clone()),
                ]
            });
            let unit = if metric.unit.is_empty() { "share" } else { metric.unit.as_ref() };
            blocks.push(Block::Chart(Chart {
                id: format!("placements-{}-{}", title.id.replace('.', "-"), metric.name),
                title: label(diagnosis, own[0]),
                about: metric.title.to_string(),
                kind: ChartKind::Bars {
                    y: Axis { title: format!("{}, {unit}", metric.title), scale: Scale::Linear },
                    bars: bars.collect(),
                },
                data: Table {
                    columns: vec![column("placement"), right("median (95 %)"), column("verdict")],
                    rows: rows.collect(),
                    folded: true,
                },
            }));
        }
    }
    (!blocks.is_empty()).then(|| Section {
        id: "placements".into(),
        title: "Placements".into(),
        about: "The same benchmark with its tasks in different places. Where the figures differ much, a free one says \
                more of the scheduler than of the machine."
            .into(),
        blocks,
        long: true,
    })
}
