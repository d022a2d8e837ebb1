//! The table of numbers: each with its placement, interval, distribution and verdict.

use super::{column, number, right, text};
use crate::diagnose::words::{bytes, figure, percent};
use crate::diagnose::{Diagnosis, words};
use crate::machine::{CacheKind, Machine};
use crate::model::{Params, VerdictKind, View};
use crate::report::block::{Block, Cell, Section, Table};
use crate::stats::analysis::Judged;

/// What people look at first: every headline series of a table, and of each curve one point a cache level. What could
/// not be measured here is said below.
pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let (shown, skipped): (Vec<&Judged>, Vec<&Judged>) = diagnosis
        .series
        .iter()
        .filter(|judged| judged.series.metric.headline && is_shown_first(diagnosis, judged))
        .partition(|judged| judged.analysis.verdict.kind != VerdictKind::Skipped);
    let rows: Vec<Vec<Cell>> = shown.iter().map(|judged| row(diagnosis, judged)).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Table(Table { columns: columns(), rows, folded: false }));
    }
    if !skipped.is_empty() {
        blocks.push(Block::Prose(format!("not measured here: {}", not_measured(diagnosis, &skipped))));
    }
    (!blocks.is_empty()).then(|| Section {
        id: "results".into(),
        title: "Results".into(),
        about: String::new(),
        blocks,
        long: false,
    })
}

/// `Pipe ping-pong: smt-sibling (no two usable CPUs are SMT siblings), ...`, each name once.
fn not_measured(diagnosis: &Diagnosis, skipped: &[&Judged]) -> String {
    let mut names: Vec<(String, Vec<String>)> = Vec::new();
    for judged in skipped {
        let name = label(diagnosis, judged);
        let why =
            format!("{} ({})", judged.series.case.placement.name, judged.analysis.verdict.reason.as_str());
        match names.iter_mut().find(|(other, _)| *other == name) {
            Some((_, list)) => list.push(why),
            None => names.push((name, vec![why])),
        }
    }
    let words = names.iter().map(|(name, list)| format!("{name}: {}", list.join(", ")));
    words.collect::<Vec<_>>().join("; ")
}

/// Every series there is, folded.
pub fn raw(diagnosis: &Diagnosis) -> Section {
    let mut columns = columns();
    columns.insert(0, column("series"));
    let rows = diagnosis.series.iter().map(|judged| {
        let mut row = row(diagnosis, judged);
        row.insert(0, Cell::Code(judged.series.key.clone()));
        row
    });
    Section {
        id: "raw".into(),
        title: "All series".into(),
        about:
            "Every series by its key. The samples themselves stand in the run file, and in this page as JSON \
                (element assay-report)."
                .into(),
        blocks: vec![Block::Table(Table { columns, rows: rows.collect(), folded: true })],
        long: true,
    }
}

fn columns() -> Vec<crate::report::block::Column> {
    vec![
        column("test"),
        column("placement"),
        right("n"),
        right("median"),
        right("95 %"),
        column("distribution"),
        column("verdict"),
    ]
}

fn row(diagnosis: &Diagnosis, judged: &Judged) -> Vec<Cell> {
    let (series, analysis) = (&judged.series, &judged.analysis);
    let estimate = analysis.estimate.as_ref();
    vec![
        text(label(diagnosis, judged)),
        text(series.case.placement.name.to_string()),
        number(estimate.map_or(String::new(), |estimate| estimate.n.to_string())),
        number(estimate.map_or("–".to_string(), |estimate| figure(estimate.median, &series.metric.unit))),
        number(width_words(judged)),
        Cell::Distribution(medians(judged)),
        Cell::Verdict(analysis.verdict.clone()),
    ]
}

/// The interval's half-width as a share of the median; both ends where "±" would say that they lie alike and it is wide.
fn width_words(judged: &Judged) -> String {
    const WIDE: f64 = 0.25;
    let Some(estimate) = &judged.analysis.estimate else { return String::new() };
    match (estimate.relative_half_width(), estimate.interval) {
        (Some(half), Some(interval)) if half > WIDE => {
            format!("{}–{}", figure(interval.low, ""), figure(interval.high, ""))
        }
        (Some(half), _) => format!("±{}", percent(half)),
        (None, _) => String::new(),
    }
}

/// The process medians: what the interval rests on.
pub fn medians(judged: &Judged) -> Vec<f64> {
    judged
        .series
        .processes
        .iter()
        .filter_map(|process| crate::stats::order::median(&process.values))
        .collect()
}

/// What a series is called: the benchmark's title, the metric where it is not the only one, the point.
pub fn label(diagnosis: &Diagnosis, judged: &Judged) -> String {
    let series = &judged.series;
    let title = diagnosis.run.header.catalogue.iter().find(|title| title.id == series.case.bench);
    let mut label = title.map_or(series.case.bench.to_string(), |title| title.title.to_string());
    let alone =
        title.is_some_and(|title| title.metrics.first().is_some_and(|m| m.name == series.metric.name));
    if !alone {
        label = format!("{label}: {}", series.metric.title);
    }
    let point = point(&diagnosis.machine, judged.series.case.placement.cpus().first(), &series.point);
    if !point.is_empty() {
        label = format!("{label}, {point}");
    }
    label
}

/// A point in words: bytes with the level that holds them, everything else as it is.
fn point(machine: &Machine, cpu: Option<u32>, point: &Params) -> String {
    let words = point.iter().map(|(name, value)| match (name.as_str(), value.number()) {
        ("bytes", Some(size)) => format!("{} ({})", bytes(size), level(machine, cpu, size)),
        _ => format!("{name} {value}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The smallest level of a CPU's caches that claims to hold a block.
pub fn level(machine: &Machine, cpu: Option<u32>, size: f64) -> String {
    let holds = claimed_caches(machine, cpu).into_iter().find(|(_, claimed)| *claimed >= size);
    holds.map_or("memory".to_string(), |(name, _)| name)
}

/// The data caches that a CPU has by the kernel's claim, from the smallest: name and bytes.
pub fn claimed_caches(machine: &Machine, cpu: Option<u32>) -> Vec<(String, f64)> {
    let own = machine.caches.iter().filter(|cache| {
        cache.kind != CacheKind::Instruction && cpu.is_none_or(|cpu| cache.cpus.contains(cpu))
    });
    let mut caches: Vec<(String, f64)> = Vec::new();
    for cache in own {
        let name = match cache.kind {
            CacheKind::Data => format!("L{}d", cache.level),
            _ => format!("L{}", cache.level),
        };
        if let Some(size) = cache.size_bytes.filter(|_| !caches.iter().any(|(other, _)| *other == name)) {
            caches.push((name, size as f64));
        }
    }
    caches.sort_by(|one, other| one.1.total_cmp(&other.1));
    caches
}

/// Tables are shown whole; of a curve the largest block that fits half of each level, and the largest of all.
fn is_shown_first(diagnosis: &Diagnosis, judged: &Judged) -> bool {
    let series = &judged.series;
    let title = diagnosis.run.header.catalogue.iter().find(|title| title.id == series.case.bench);
    let Some(View::Curve { x, .. }) = title.map(|title| &title.view) else {
        return true;
    };
    let Some(here) = series.point.get(x.as_ref()).and_then(|value| value.number()) else { return true };
    let others = diagnosis.series.iter().filter(|other| {
        other.series.planned == series.planned && other.series.metric.name == series.metric.name
    });
    let points: Vec<f64> = others
        .filter_map(|other| other.series.point.get(x.as_ref()).and_then(|value| value.number()))
        .collect();
    let cpu = series.case.placement.cpus().first();
    let wanted = claimed_caches(&diagnosis.machine, cpu).into_iter().map(|(_, size)| {
        points.iter().copied().filter(|point| *point <= size / 2.0).fold(f64::NEG_INFINITY, f64::max)
    });
    let largest = points.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    wanted.chain([largest]).any(|point| point == here)
}

/// A value with its interval, in words: `1.46 µs (1.44 to 1.49)`.
pub fn value_words(judged: &Judged) -> String {
    let Some(estimate) = &judged.analysis.estimate else { return "no value".to_string() };
    let unit = &judged.series.metric.unit;
    let value = words::figure(estimate.median, unit);
    match estimate.interval {
        Some(interval) => {
            format!("{value} ({} to {})", words::figure(interval.low, ""), words::figure(interval.high, ""))
        }
        None => value,
    }
}
