//! Benchmarks that were measured in several placements, as bars beside each other.

use super::figures::value_words;
use super::names::{label, placement_legend, placement_words};
use super::smt::is_variant;
use super::{column, number, right, text};
use crate::block::{Axis, Bar, Block, Cell, Chart, ChartKind, Section, Table};
use diagnose::Diagnosis;
use model::{Metric, Title, View, unit_words};
use stats::analysis::Judged;

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    // The cases of a sweep differ by their settings, and have a section of their own.
    if diagnosis.run.header.sweep.is_some() {
        return None;
    }
    let tables = diagnosis.run.header.catalogue.iter().filter(|title| title.view == View::Table);
    let blocks: Vec<Block> = tables
        .flat_map(|title| title.metrics.iter().filter_map(|metric| bars(diagnosis, title, metric)))
        .map(Block::from)
        .collect();
    Section::new("placements", "Placements", blocks)
        .about(
            "The same benchmark with its tasks in different places. If the figures differ much, the figure left to the \
                 scheduler shows the scheduler's choice, not the hardware.",
        )
        .long()
        .unless_empty()
}

fn bars(diagnosis: &Diagnosis, title: &Title, metric: &Metric) -> Option<Chart> {
    let own: Vec<&Judged> = diagnosis
        .series
        .iter()
        .filter(|judged| {
            judged.series.case.bench == title.id
                && judged.series.metric.name == metric.name
                && judged.series.point.is_empty()
                && !is_variant(&judged.series.case)
                && judged.analysis.figure().is_some()
        })
        .collect();
    if own.len() < 2 {
        return None;
    }
    let bars = own.iter().filter_map(|judged| {
        let estimate = judged.analysis.figure()?;
        Some(Bar {
            label: placement_words(&judged.series.case.placement.name).to_string(),
            value: estimate.median,
            low_high: estimate.interval.map(|interval| [interval.low, interval.high]),
            verdict: judged.analysis.verdict.clone(),
        })
    });
    let rows = own.iter().map(|judged| {
        vec![
            text(placement_words(&judged.series.case.placement.name)),
            number(value_words(judged)),
            Cell::Verdict(judged.analysis.verdict.clone()),
        ]
    });
    let unit = if metric.unit.is_empty() { "share" } else { unit_words(&metric.unit) };
    let places = own.iter().map(|judged| judged.series.case.placement.name.as_ref());
    Some(
        Chart::new(
            format!("placements-{}-{}", title.id.replace('.', "-"), metric.name),
            label(diagnosis, own[0]),
            ChartKind::Bars { y: Axis::linear(format!("{}, {unit}", metric.title)), bars: bars.collect() },
            Table::new(vec![column("placement"), right("median (95 %)"), column("verdict")], rows).folded(),
        )
        .about(format!("{}.{}", metric.title, placement_legend(places))),
    )
}
