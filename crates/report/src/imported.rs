//! Imported results as a report of their own and as JSON.

mod notes;
mod rows;
pub mod screen;
mod several;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::block::{Block, CONCLUSION, Cell, Column, FINDINGS, RESULTS, Report, Section, Table};
use super::json::{OutputSeries, series};
use super::screen::Tone;
use diagnose::words::share_unit;
use import::repeats::{Repeats, repeats};
use import::{Figure, Imported, Index, IndexRow};
use model::vocabulary::memory;
use model::{Fact, Finding, SCHEMA, figure, percent};

/// What a host is called of which a file does not tell the name.
pub(crate) const UNNAMED: &str = "unknown";

/// What `assay import --json` gives: the series as a run has them, and of which result each is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    /// Of the first result.
    pub host: String,
    /// Foreign files do not tell how long measuring took: 0.
    pub elapsed_s: f64,
    pub results: Vec<OutputResult>,
    pub series: Vec<OutputFigure>,
    /// The figures for many that the files print, each as printed and as its own rows give it; only
    /// where a format has such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<OutputIndex>,
    /// Runs of one machine beside each other: only of SPEC CPU2017 so far.
    pub repeats: Vec<OutputRepeats>,
    /// What a file's own figures say against it; nothing was watched, so that no rule of runs
    /// applies.
    pub findings: Vec<Finding>,
}

/// Several results of one machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRepeats {
    /// Positions in `results`.
    pub results: Vec<usize>,
    pub host: String,
    pub series: Vec<OutputRepeated>,
    /// Results that are one and the same run.
    pub remarks: Vec<String>,
    /// What the runs come to, a sentence or two; empty where no figure stands in two of them.
    pub conclusion: String,
}

/// One series over them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRepeated {
    pub key: String,
    pub title: String,
    /// In the order of `results`; without those that have none.
    pub values: Vec<f64>,
    pub median: f64,
    pub mean: f64,
    /// Population standard deviation over the mean, a share.
    pub cv: f64,
    /// Largest over smallest, less 1.
    pub apart: f64,
    /// `low low high high mid`; empty where the runs are alike.
    pub levels: String,
    /// Of runs that came as memory of two speeds is handed out, where components that stream
    /// through memory move and others hold still: the share of slow memory of each, 0..1, that
    /// would explain it with the slowest and the fastest run as ends. Empty of others.
    pub slow_shares: Vec<f64>,
}

fn repeated(group: &Repeats) -> OutputRepeats {
    let row = |row: &import::repeats::Row| OutputRepeated {
        key: row.key.clone(),
        title: row.title.clone(),
        values: row.values.clone(),
        median: row.median,
        mean: row.mean,
        cv: row.cv,
        apart: row.apart,
        levels: row.levels.clone(),
        slow_shares: row.slow_shares.clone(),
    };
    OutputRepeats {
        results: group.results.clone(),
        host: group.host.clone(),
        series: group.rows.iter().map(row).collect(),
        remarks: group.remarks.clone(),
        conclusion: group.conclusion.clone(),
    }
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
    /// What the file tells of the machine: label and value.
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
    pub title: String,
    /// How many copies of each test ran; null where the file does not tell.
    pub copies: Option<u32>,
    /// Not all tests are in it.
    pub partial: bool,
    /// As printed.
    pub score: Option<f64>,
    /// From the rows; null where some are missing.
    pub recomputed: Option<f64>,
    pub tests: Vec<OutputIndexTest>,
    /// What does not agree or is missing; empty where the rows give what is printed.
    pub remark: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputIndexTest {
    pub title: String,
    /// The benchmark of ours that measures the same; empty where there is none.
    pub bench: String,
    pub baseline: Option<f64>,
    pub result: f64,
    /// As printed.
    pub index: Option<f64>,
    /// From the row.
    pub recomputed: Option<f64>,
}

fn index(result: usize, index: &Index) -> OutputIndex {
    let test = |row: &IndexRow| OutputIndexTest {
        title: row.title.clone(),
        bench: row.bench.clone(),
        baseline: row.baseline,
        result: row.result,
        index: row.printed,
        recomputed: row.recomputed,
    };
    OutputIndex {
        result,
        title: index.title.clone(),
        copies: index.copies,
        partial: index.partial,
        score: index.score,
        recomputed: index.recomputed,
        tests: index.tests.iter().map(test).collect(),
        remark: index.remark.clone(),
    }
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
    let indices = results
        .iter()
        .enumerate()
        .flat_map(|(at, (_, one))| one.index.iter().map(move |found| index(at, found)));
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
        repeats: groups.iter().map(repeated).collect(),
        findings,
    }
}

/// A table of a result's figures, and what else its file says.
pub fn report(file: &str, one: &Imported) -> Report {
    let column = |title: &str, right: bool| Column { title: title.to_string(), right };
    // Most formats have one value a figure.
    let repeated = one.figures.iter().any(|figure| figure.judged.series.processes.len() > 1);
    let mut sizes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for figure in &one.figures {
        sizes.entry(&figure.wording).or_default().push(bytes(figure).unwrap_or(0.0) as u64);
    }
    // Of those that are called alike and are told apart by their sizes.
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
    let mut columns = vec![column("figure", false), column("value", true)];
    if repeated {
        columns.extend([column("n", true), column("all values", false), column("95 % interval", false)]);
    }
    columns.extend([column("here", false), column("how it differs, or why it is missing", false)]);
    let results = Section {
        id: RESULTS.into(),
        title: "Results".into(),
        about: "Every value is unverified: nobody watched while it was measured.".into(),
        blocks: vec![Block::Table(Table {
            columns,
            rows: one.figures.iter().map(row).collect(),
            folded: false,
        })],
        long: false,
    };
    let remarks = Section {
        id: "remarks".into(),
        title: "Remarks".into(),
        about: String::new(),
        blocks: one.remarks.iter().map(|remark| Block::Prose(remark.clone())).collect(),
        long: false,
    };
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
    Section {
        id: FINDINGS.into(),
        title: "Findings".into(),
        about: String::new(),
        blocks: findings.into_iter().flat_map(with_facts).collect(),
        long: false,
    }
}

/// A finding, and below it what it rests on: a terminal shows a run's facts in its tables, but
/// those of a file are nowhere else.
fn with_facts(finding: Finding) -> Vec<Block> {
    let fact = |fact: &Fact| Block::Prose(format!("- {}: {} ({})", fact.label, fact.value, fact.source));
    let facts: Vec<Block> = finding.facts.iter().map(fact).collect();
    [vec![Block::Findings(vec![finding])], facts].concat()
}

/// Runs of one machine beside each other, a report each.
pub fn repeats_reports(results: &[(String, Imported)]) -> Vec<Report> {
    let column = |title: &str, right: bool| Column { title: title.to_string(), right };
    let columns = ["figure", "runs", "median", "smallest to largest", "apart", "CV", "here"];
    let columns: Vec<Column> =
        columns.iter().enumerate().map(|(at, title)| column(title, (1..6).contains(&at))).collect();
    let report = |group: Repeats| {
        let row = |row: &import::repeats::Row| {
            let ends =
                row.values.iter().copied().reduce(f64::min).zip(row.values.iter().copied().reduce(f64::max));
            let ends =
                ends.map(|(low, high)| format!("{} to {}", self::figure(low, ""), self::figure(high, "")));
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
        let table =
            Table { columns: columns.clone(), rows: group.rows.iter().map(row).collect(), folded: false };
        let mut blocks = vec![Block::Table(table)];
        blocks.retain(|_| !group.rows.is_empty());
        blocks.extend(group.remarks.iter().cloned().map(Block::Prose));
        let runs = Section {
            id: RESULTS.into(),
            title: "Runs of one machine".into(),
            about: "CV: population standard deviation over the mean, of SPEC's own result of each run."
                .into(),
            blocks,
            long: false,
        };
        let conclusion = (!group.conclusion.is_empty()).then(|| Section {
            id: CONCLUSION.into(),
            title: "Conclusion".into(),
            about: String::new(),
            blocks: vec![Block::Prose(group.conclusion)],
            long: false,
        });
        let found = group.finding.map(|finding| findings_section(vec![finding]));
        Report {
            screen: None,
            tone: Tone::Plain,
            title: format!("{}: runs beside each other", group.host),
            machine: format!("{}: {} runs of one machine", group.host, group.results.len()),
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
        Cell::Text(format!("{} to {}", self::figure(low * factor, ""), self::figure(high * factor, "")))
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
    let column = |title: &str, right: bool| Column { title: title.to_string(), right };
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
    (!one.index.is_empty()).then(|| Section {
        id: "index".into(),
        title: "Index".into(),
        about: "Each score as the file prints it, and computed again from the rows that stand above it."
            .into(),
        blocks: vec![Block::Table(Table {
            columns: vec![
                column("index", false),
                column("copies", true),
                column("tests", true),
                column("printed", true),
                column("from its rows", true),
                column("what does not agree", false),
            ],
            rows: one.index.iter().map(row).collect(),
            folded: false,
        })],
        long: false,
    })
}
