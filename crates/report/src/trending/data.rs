//! A trend for programs: JSON, and CSV with a row a run and a column a figure, as tools that look
//! for change points (Apache Otava) read it.

use std::collections::BTreeMap;

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Names, confirm, rows, screen};
use crate::csv::harmless;
use crate::json::bottom_line::OutputVerdict;
use crate::json::{LeftOutFile, left_out_files};
use compare::trend::{Changed, Figure, Last, Step, Trend, fact};
use model::SCHEMA;

/// What `assay trend --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    pub host: String,
    /// The first screen's.
    pub verdict: OutputVerdict,
    /// The runs of the series, the oldest first.
    pub runs: Vec<OutputRun>,
    /// Other runs of the host by what makes them another series: `profile full`.
    pub other_series: BTreeMap<String, usize>,
    /// Older runs of the series, which were not looked at.
    pub older_runs: usize,
    pub figures: Vec<OutputFigure>,
    /// What measures again what only the last runs show; empty where that is nothing.
    pub confirm: String,
    pub left_out: Vec<LeftOutFile>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRun {
    pub file: String,
    pub started: String,
    pub profile: String,
    /// Version that measured it.
    pub assay: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputFigure {
    pub key: String,
    /// Of a key figure: `dram-latency`.
    pub name: Option<String>,
    pub unit: String,
    /// Null where neither side is the better one.
    pub higher_is_better: Option<bool>,
    /// Whether it has the eight runs without which there is no step.
    pub judged: bool,
    /// A value a run, in `unit`; null where that run has none.
    pub values: Vec<Option<f64>>,
    pub steps: Vec<OutputStep>,
    /// How far the last run or two lie from the level before them; no step yet.
    pub last: Option<OutputLast>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputStep {
    /// Place of the first run after it in `runs`, and when that began.
    pub run: usize,
    pub started: String,
    /// Levels, in `unit`.
    pub before: f64,
    pub after: f64,
    /// `after / before - 1`.
    pub change: f64,
    /// Null of a figure without a better side.
    pub worse: Option<bool>,
    /// A later step took it back.
    pub undone: bool,
    /// What differs between the runs there; that it is the cause is more than is known.
    pub changed: Vec<Changed>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputLast {
    /// 1 or 2.
    pub runs: usize,
    pub change: f64,
    pub worse: Option<bool>,
}

pub fn output(trend: &Trend, left_out: &[(String, String)], names: Names) -> Output {
    let run = |run: &compare::peers::HostResult| OutputRun {
        file: run.file.clone(),
        started: run.started.clone(),
        profile: run.profile.clone(),
        assay: run.assay.clone(),
    };
    let is_off = trend.figures.iter().any(|figure| figure.last.is_some());
    let known = rows(trend, true, names).into_iter();
    let known: BTreeMap<&str, &str> =
        known.filter_map(|row| Some((row.figure.key.as_str(), row.known?.name))).collect();
    Output {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        host: trend.host.clone(),
        verdict: OutputVerdict::of(&screen(trend, names)),
        runs: trend.runs.iter().map(run).collect(),
        other_series: trend.apart.clone(),
        older_runs: trend.older,
        figures: trend
            .figures
            .iter()
            .map(|own| figure(trend, own, known.get(own.key.as_str()).copied()))
            .collect(),
        confirm: if is_off { confirm(trend) } else { String::new() },
        left_out: left_out_files(left_out),
    }
}

fn figure(trend: &Trend, own: &Figure, name: Option<&str>) -> OutputFigure {
    let mut values = vec![None; trend.runs.len()];
    for point in &own.points {
        values[point.run] = Some(point.value);
    }
    let step = |step: &Step| OutputStep {
        run: step.between[1],
        started: trend.runs[step.between[1]].started.clone(),
        before: step.before,
        after: step.after,
        change: step.relative(),
        worse: step.worse,
        undone: step.undone,
        changed: trend.changed(step.between),
    };
    let last = |last: Last| OutputLast { runs: last.runs, change: last.relative(), worse: last.worse };
    OutputFigure {
        key: own.key.clone(),
        name: name.map(str::to_string),
        unit: own.unit.clone(),
        higher_is_better: own.higher_is_better,
        judged: own.is_judged(),
        values,
        steps: own.steps.iter().map(step).collect(),
        last: own.last.map(last),
    }
}

/// Columns before the figures.
const HEAD: [&str; 4] = ["time", "file", "assay", "kernel"];

/// A row a run, a column a figure: key figures by their names and in their units, with `all` every
/// other one by its key.
pub fn csv(trend: &Trend, all: bool, out: &mut dyn std::io::Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let mut rows = rows(trend, true, &|key| key.to_string());
    rows.retain(|row| all || row.known.is_some());
    let name = |row: &super::Row| row.known.map_or_else(|| harmless(&row.label), |own| own.name.to_string());
    let head = HEAD.iter().map(|name| name.to_string()).chain(rows.iter().map(name));
    writer.write_record(head).context("cannot write CSV")?;
    for (place, run) in trend.runs.iter().enumerate() {
        let kernel = fact(run, "kernel").unwrap_or_default();
        let about = [&run.started, &run.file, &run.assay, kernel].map(harmless);
        let value = |row: &super::Row| {
            let point = row.figure.points.iter().find(|point| point.run == place);
            point.map_or(String::new(), |point| (point.value * row.scale).to_string())
        };
        writer.write_record(about.into_iter().chain(rows.iter().map(value))).context("cannot write CSV")?;
    }
    writer.flush().context("cannot write CSV")
}
