//! Imported results as a report of their own and as JSON.

mod notes;
mod rows;
pub mod screen;
mod several;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::block::{
    Block, CONCLUSION, Cell, FINDINGS, RESULTS, Report, Section, Table, column, columns, right,
};
use super::json::{OutputSeries, series};
use super::screen::Tone;
use diagnose::words::share_unit;
use import::repeats::{Repeats, repeats};
use import::{Figure, Imported, Index};
use model::vocabulary::memory;
use model::{Fact, Finding, SCHEMA, figure, percent};

/// The name of a host if its file does not contain one.
pub(crate) const UNNAMED: &str = "unknown";

/// What `assay import --json` gives: the series as a run has them, and of which result each is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    /// Of the first result.
    pub host: String,
    /// Foreign files do not record how long measuring took: 0.
    pub elapsed_s: f64,
    pub results: Vec<OutputResult>,
    pub series: Vec<OutputFigure>,
    /// The figures for many that the files print, each as printed and as its own rows give it; only
    /// where a format has such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<OutputIndex>,
    /// Runs of one host beside each other: only of SPEC CPU2017 so far.
    pub repeats: Vec<Repeats>,
    /// What a file's own figures say against it; nothing was watched, so that no rule of runs
    /// applies.
    pub findings: Vec<Finding>,
}

/// What the figures of all results come to.
struct Counts {
    with: usize,
    without: usize,
}

fn counts<'a>(results: impl Iterator<Item = &'a Imported>) -> Counts {
    let figures: Vec<&Figure> = results.flat_map(|one| &one.figures).collect();
    let with = figures.iter().filter(|figure| has_value(figure)).count();
    Counts { with, without: figures.len() - with }
}

fn has_value(figure: &Figure) -> bool {
    figure.judged.analysis.estimate.is_some()
}

/// The findings of a result, each with the command that shows it again.
fn findings_of(file: &str, one: &Imported) -> Vec<Finding> {
    let command = format!("assay import {}", diagnose::words::shell(file));
    let mut findings = one.findings.clone();
    for finding in findings.iter_mut().filter(|finding| finding.confirm.is_empty()) {
        finding.confirm = command.clone();
    }
    findings
}

/// One host's results in one file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputResult {
    pub file: String,
    /// The tool and what it wrote: `fio result`, `lmbench summary`, `hackbench log`; `assay import
    /// --help` lists the tools.
    pub format: String,
    pub host: String,
    /// What the file reports about the host: label and value.
    pub make_up: Vec<(String, String)>,
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputFigure {
    /// Position in `results`.
    pub result: usize,
    /// What the other tool calls it.
    pub title: String,
    /// Why it is not strictly comparable with the series of the same key; empty where it is.
    pub note: String,
    #[serde(flatten)]
    pub series: OutputSeries,
}

/// One index that a file prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputIndex {
    /// Position in `results`.
    pub result: usize,
    #[serde(flatten)]
    pub index: Index,
}

pub fn output(results: &[(String, Imported)]) -> Output {
    let figures = results.iter().enumerate().flat_map(|(result, (_, one))| {
        one.figures.iter().map(move |figure| OutputFigure {
            result,
            title: figure.wording.clone(),
            note: figure.note.clone(),
            series: series(&figure.judged),
        })
    });
    let indices = results.iter().enumerate().flat_map(|(result, (_, one))| {
        one.index.iter().map(move |index| OutputIndex { result, index: index.clone() })
    });
    let groups = repeats(&results.iter().map(|(_, one)| one).collect::<Vec<_>>());
    let mut findings: Vec<Finding> = results.iter().flat_map(|(file, one)| findings_of(file, one)).collect();
    findings.extend(groups.iter().filter_map(|group| group.finding.clone()));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Output {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        host: results.first().map(|(_, one)| one.host.clone()).unwrap_or_default(),
        elapsed_s: 0.0,
        series: figures.collect(),
        index: indices.collect(),
        results: results
            .iter()
            .map(|(file, one)| OutputResult {
                file: file.clone(),
                format: one.format.word().to_string(),
                host: one.host.clone(),
                make_up: one.make_up.clone(),
                remarks: one.remarks.clone(),
            })
            .collect(),
        repeats: groups,
        findings,
    }
}

/// A table of a result's figures, and what else its file says.
pub fn report(file: &str, one: &Imported) -> Report {
    // Most formats have one value a figure.
    let repeated = one.figures.iter().any(|figure| figure.judged.series.processes.len() > 1);
    let mut sizes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for figure in &one.figures {
        sizes.entry(&figure.wording).or_default().push(bytes(figure).unwrap_or(0.0) as u64);
    }
    // Of those with one name that differ by their sizes.
    sizes.retain(|_, own| own.len() > 1 && own.iter().collect::<BTreeSet<_>>().len() == own.len());
    let row = |figure: &Figure| {
        let (series, analysis) = (&figure.judged.series, &figure.judged.analysis);
        let (unit, factor) = read_in(figure);
        let value = analysis.estimate.as_ref().map(|found| self::figure(found.median * factor, unit));
        // Where there is a value the verdict is the same for all; what is worth reading is how the
        // meanings differ.
        let last = match &value {
            Some(_) => Cell::Text(figure.note.clone()),
            None => Cell::Verdict(analysis.verdict.clone()),
        };
        let value = value.map_or(Cell::Empty, Cell::Number);
        let mut row = vec![Cell::Text(wording(figure, &sizes)), value];
        row.extend(repeated.then(|| spread(figure)).into_iter().flatten());
        row.extend([Cell::Code(series.key.clone()), last]);
        row
    };
    let mut columns = vec![column("figure"), right("value")];
    if repeated {
        columns.extend([right("n"), column("all values"), column("95 % interval")]);
    }
    columns.extend([column("here"), column("difference, or why it is missing")]);
    let results = Section::new(
        RESULTS,
        "Results",
        vec![Block::Table(Table::new(columns, one.figures.iter().map(row)))],
    )
    .about("Every value is unverified: Assay did not watch the measurement.");
    let remarks = Section::new(
        "remarks",
        "Remarks",
        one.remarks.iter().map(|remark| Block::Prose(remark.clone())).collect(),
    );
    let findings = findings_of(file, one);
    let found = (!findings.is_empty()).then(|| findings_section(findings));
    let facts: Vec<String> = one.make_up.iter().map(|(label, value)| format!("{label} {value}")).collect();
    Report {
        screen: None,
        tone: Tone::Plain,
        title: format!("{}: {}", one.host, one.format),
        machine: format!("{}: {}", one.host, facts.join(", ")),
        subtitle: format!("{}, {file}", one.format),
        checks: Vec::new(),
        sections: [found, Some(results), indices(one), Some(remarks)].into_iter().flatten().collect(),
        json: String::new(),
    }
}

/// What the other tool calls a figure; the size of its block, too, where others are called so.
fn wording(figure: &Figure, sizes: &BTreeMap<&str, Vec<u64>>) -> String {
    let name = rows::wording(figure);
    match bytes(figure).filter(|_| sizes.contains_key(figure.wording.as_str())) {
        Some(bytes) => format!("{name}, {}", diagnose::words::bytes(bytes)),
        None => name,
    }
}

/// The unit that a figure is read in, and how many of it one of its own is.
fn read_in(figure: &Figure) -> (&str, f64) {
    let metric = &figure.judged.series.metric;
    share_unit(&metric.name, &metric.unit).unwrap_or((metric.unit.as_ref(), 1.0))
}

fn bytes(figure: &Figure) -> Option<f64> {
    figure.judged.series.params().get(memory::param::BYTES).and_then(model::Value::number)
}

fn findings_section(findings: Vec<Finding>) -> Section {
    Section::new(FINDINGS, "Findings", findings.into_iter().flat_map(with_facts).collect())
}

/// A finding, and below it what it rests on: a terminal shows a run's facts in its tables, but
/// those of a file are nowhere else.
fn with_facts(finding: Finding) -> Vec<Block> {
    let fact = |fact: &Fact| Block::Prose(format!("- {}: {} ({})", fact.label, fact.value, fact.source));
    let facts: Vec<Block> = finding.facts.iter().map(fact).collect();
    [vec![Block::Findings(vec![finding])], facts].concat()
}

/// Runs of one host beside each other, a report each.
pub fn repeats_reports(results: &[(String, Imported)]) -> Vec<Report> {
    let numbers = ["runs", "median", "smallest to largest", "apart", "CV"].map(right);
    let columns = [vec![column("figure")], numbers.to_vec(), vec![column("here")]].concat();
    let report = |group: Repeats| {
        let row = |row: &import::repeats::Row| {
            let ends =
                row.values.iter().copied().reduce(f64::min).zip(row.values.iter().copied().reduce(f64::max));
            let ends =
                ends.map(|(low, high)| format!("{}–{}", self::figure(low, ""), self::figure(high, "")));
            vec![
                Cell::Text(row.title.clone()),
                Cell::Number(row.values.len().to_string()),
                Cell::Number(self::figure(row.median, "")),
                Cell::Number(ends.unwrap_or_default()),
                Cell::Number(percent(row.apart)),
                Cell::Number(percent(row.cv)),
                Cell::Code(row.key.clone()),
            ]
        };
        let files: Vec<&str> = group.results.iter().map(|place| results[*place].0.as_str()).collect();
        let table = Table::new(columns.clone(), group.rows.iter().map(row));
        let mut blocks = vec![Block::Table(table)];
        blocks.retain(|_| !group.rows.is_empty());
        blocks.extend(group.remarks.iter().cloned().map(Block::Prose));
        let runs = Section::new(RESULTS, "Runs of one host", blocks)
            .about("CV: population standard deviation over the mean of SPEC's own result for each run.");
        let conclusion = (!group.conclusion.is_empty())
            .then(|| Section::new(CONCLUSION, "Conclusion", vec![Block::Prose(group.conclusion)]));
        let found = group.finding.map(|finding| findings_section(vec![finding]));
        Report {
            screen: None,
            tone: Tone::Plain,
            title: format!("{}: runs compared", group.host),
            machine: format!("{}: {} runs of one host", group.host, group.results.len()),
            subtitle: files.join(", "),
            checks: Vec::new(),
            sections: [conclusion, found, Some(runs)].into_iter().flatten().collect(),
            json: String::new(),
        }
    };
    repeats(&results.iter().map(|(_, one)| one).collect::<Vec<_>>()).into_iter().map(report).collect()
}

/// How many values a figure has, their ends, and the interval of their median; of one value there
/// is nothing to say.
fn spread(figure: &Figure) -> [Cell; 3] {
    let Some(estimate) = &figure.judged.analysis.estimate else {
        return [Cell::Empty, Cell::Empty, Cell::Empty];
    };
    let values: Vec<f64> = figure.judged.series.values().concat();
    let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
    let (_, factor) = read_in(figure);
    let words = |(low, high): (f64, f64)| {
        Cell::Text(format!("{}–{}", self::figure(low * factor, ""), self::figure(high * factor, "")))
    };
    let interval = estimate.interval.map(|interval| (interval.low, interval.high));
    [
        Cell::Number(values.len().to_string()),
        ends.filter(|_| values.len() > 1).map_or(Cell::Empty, words),
        interval.map_or(Cell::Empty, words),
    ]
}

/// The indices that the file prints, beside what their rows come to.
fn indices(one: &Imported) -> Option<Section> {
    let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(format!("{value:.1}")));
    let row = |index: &Index| {
        let copies = index.copies.map_or(Cell::Empty, |copies| Cell::Number(copies.to_string()));
        let tests = Cell::Number(index.tests.len().to_string());
        let title = Cell::Text(index.title.clone());
        vec![
            title,
            copies,
            tests,
            number(index.score),
            number(index.recomputed),
            Cell::Text(index.remark.clone()),
        ]
    };
    (!one.index.is_empty()).then(|| {
        Section::new(
            "index",
            "Index",
            vec![Block::Table(Table::new(
                columns("index | copies: | tests: | printed: | from its rows: | contradiction"),
                one.index.iter().map(row),
            ))],
        )
        .about("Each score as the file prints it, and as computed from the rows above it.")
    })
}
