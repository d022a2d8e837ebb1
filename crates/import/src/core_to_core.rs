//! core-to-core-latency by Nicolas Viennot: how long a cache line takes between every two CPUs, as
//! a table of a terminal and as CSV.

use super::builder::{Builder, Meaning};
use super::faults::Faults;
use super::kit::{Hit, Log, Pattern, Results, Run, Table, log, said_again};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, ahead, begins, ignored, once};
use model::Better;

pub(crate) const TOOL: Tool = Tool::of("core-to-core-latency (text and CSV)", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("core-to-core-latency matrix");
const REMARK: &str = "core-to-core-latency does not report the node of its lines; it cuts the ± of its table off at 99 ns, so Assay does not read it";
const BY_PLACE: &str = "the CSV does not name the CPUs of its rows: Assay counts them from 0";

const BY_FORM: &str = "only its form suggests that core-to-core-latency made it";

pub(crate) const LINES: &[Pattern] = &[
    ahead("cpu", r"CPU: (?<value>\S.*)"),
    begins("cores", r"Num cores: (?<value>\d+)"),
    once("iterations", r"Num (?:iterations|round trips) per samples: (?<value>\d+)"),
    once("samples", r"Num samples: (?<value>\d+)"),
    adds(
        "bench",
        r"(?<value>[123])\) (?:CAS latency on a single shared cache line|Single-writer single-reader latency on two shared cache lines|Message passing\..*)",
    ),
    adds("row", r"(?<cpu>\d+)(?<value>(?: +\d+(?: *±\d+)?)*)"),
    adds("least", r"Min +latency: (?<value>[\d.]+)ns ±[\d.]+ +cores: \(\d+,\d+\)"),
    adds("most", r"Max +latency: (?<value>[\d.]+)ns ±[\d.]+ +cores: \(\d+,\d+\)"),
    adds("mean", r"Mean latency: (?<value>[\d.]+)ns"),
    adds("csv", r"(?<value>(?:\d+(?:\.\d+)?)?(?:,(?:\d+(?:\.\d+)?)?)+)"),
    ignored(r"Reading the clock via RDTSC takes .*|Using RDTSC to measure time: .*"),
];

static TABLE: Table = Table::new(LINES);

/// Whether a text says so, or has a matrix that can be no other's.
fn is_one(text: &str) -> bool {
    is_named(text) || bare(text)
}

fn is_named(text: &str) -> bool {
    const SIGNS: [&str; 4] = [
        "core-to-core-latency",
        "CAS latency on a single shared cache line",
        "Single-writer single-reader latency",
        "Message passing. One writer and one reader",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether a matrix of CSV stands in a text of which only the form suggests its tool.
fn bare(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    while let Some(first) = lines.next() {
        let cpus = first.len() + 1;
        if !(MIN_CPUS..=MAX_CPUS).contains(&cpus) || !first.bytes().all(|byte| byte == b',') {
            continue;
        }
        let rows = std::iter::once(first).chain(lines.clone()).take(cpus);
        let rows = rows.map(|row| row.split(',').collect::<Vec<&str>>()).enumerate();
        let is_next = |(place, row): &(usize, Vec<&str>)| is_lower_row(*place, row);
        let rows: Vec<Vec<&str>> = rows.take_while(is_next).map(|(_, row)| row).collect();
        if is_own(&rows) {
            return true;
        }
    }
    false
}

/// Whether a text is nothing but a matrix that may be its own, or another's.
pub(crate) fn may_be(text: &str) -> bool {
    let lines = || text.trim().lines().map(str::trim);
    let cpus = lines().count();
    let is_first = |line: &str| line.len() + 1 == cpus && line.bytes().all(|byte| byte == b',');
    (3..=MAX_CPUS).contains(&cpus)
        && lines().next().is_some_and(is_first)
        && is_lower(&lines().map(|row| row.split(',').collect()).collect::<Vec<_>>())
}

/// Fewer rows may be of any tool; no measured host has more CPUs.
const MIN_CPUS: usize = 4;
const MAX_CPUS: usize = 4096;

/// Whether a matrix of an unknown tool can be taken for its own: numbers below the
/// diagonal alone, which are times between CPUs, and, as they are means of hundreds of samples,
/// with decimals that are not typed by hand.
fn is_own(rows: &[Vec<&str>]) -> bool {
    const NS: std::ops::RangeInclusive<f64> = 1.0..=10_000.0;
    let cells: Vec<&str> = rows.iter().flatten().copied().filter(|cell| !cell.is_empty()).collect();
    let is_mean = |cell: &&&str| cell.split_once('.').is_some_and(|(_, decimals)| decimals.len() > 2);
    rows.len() >= MIN_CPUS
        && is_lower(rows)
        && cells.iter().all(|cell| cell.parse().is_ok_and(|ns| NS.contains(&ns)))
        && 2 * cells.iter().filter(is_mean).count() >= cells.len()
}

/// Whether rows are as many as their columns, with numbers below the diagonal alone.
fn is_lower(rows: &[Vec<&str>]) -> bool {
    rows.iter().enumerate().all(|(place, row)| row.len() == rows.len() && is_lower_row(place, row))
}

fn is_lower_row(place: usize, row: &[&str]) -> bool {
    row.iter().enumerate().all(|(at, one)| (at < place) == one.parse::<f64>().is_ok())
}

/// The same with numbers above it, too.
fn is_full(rows: &[Vec<&str>]) -> bool {
    rows.iter().enumerate().all(|(place, row)| {
        let is_right = |(at, one): (usize, &&str)| (at != place) == one.parse::<f64>().is_ok();
        row.len() == rows.len() && row.iter().enumerate().all(is_right)
    })
}

fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "core-to-core-latency", &TABLE, said_again);
    let mut results = Results::new(FORMAT, REMARK);
    let is_named = is_named(text);
    for run in &log.runs {
        let fact = |name: &str| run.text(name).unwrap_or_default().to_string();
        let facts =
            vec![("cpu", fact("cpu")), ("iterations", fact("iterations")), ("samples", fact("samples"))];
        let (matrices, csv) = (tables(run), csvs(run, is_named));
        if run.hit("cores").is_none() && csv.is_empty() {
            continue;
        }
        if let Some((builder, faults)) = results.of(run, facts, true) {
            if !is_named {
                builder.remarks.push(BY_FORM.to_string());
            }
            figures(run, &matrices, &csv, builder, faults);
        }
    }
    results.finish(&log)
}

/// A matrix: which of the three tests it is of, its CPUs, and its cells.
struct Matrix<'t> {
    bench: Option<&'t str>,
    cpus: Vec<&'t str>,
    /// Row, column, value.
    cells: Vec<(usize, usize, &'t str)>,
    whole: bool,
}

/// The tables of a run, each below its test's name.
fn tables<'t>(run: &Run<'t>) -> Vec<Matrix<'t>> {
    let starts = run.hits.iter().enumerate().filter(|(_, hit)| hit.name == "bench").map(|(at, _)| at);
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([run.hits.len()]);
    starts.iter().zip(ends).map(|(start, end)| table(&run.hits[*start..end])).collect()
}

fn table<'t>(hits: &[Hit<'t>]) -> Matrix<'t> {
    let bench = hits.first().and_then(|hit| hit.text("value"));
    let mut rows = hits.iter().filter(|hit| hit.name == "row");
    let values = |hit: &Hit<'t>| -> Vec<&'t str> {
        let words = hit.text("value").unwrap_or_default().split_whitespace();
        let values = words.filter(|word| !word.starts_with('±'));
        values.map(|word| word.split('±').next().unwrap_or(word)).collect()
    };
    let mut cpus: Vec<&str> = Vec::new();
    if let Some(head) = rows.next() {
        cpus.extend(head.text("cpu").into_iter().chain(values(head)));
    }
    let mut matrix = Matrix { bench, cells: Vec::new(), whole: false, cpus };
    for (place, hit) in rows.by_ref().enumerate().take(matrix.cpus.len()) {
        let values = values(hit);
        // What a message takes differs by its way, so that only its matrix is full.
        let columns: Vec<usize> = match bench {
            Some("3") => (0..matrix.cpus.len()).filter(|column| *column != place).collect(),
            _ => (0..place).collect(),
        };
        if hit.text("cpu") != Some(matrix.cpus[place]) || values.len() != columns.len() {
            hit.refuse();
            break;
        }
        matrix.whole = place + 1 == matrix.cpus.len();
        matrix.cells.extend(columns.into_iter().zip(values).map(|(column, value)| (place, column, value)));
    }
    // Rows behind one that does not continue the others are of something unknown.
    rows.for_each(Hit::refuse);
    matrix
}

/// The matrices of CSV of a run, by their rows; where the tool is unknown, those that can be
/// no other's.
fn csvs<'t>(run: &Run<'t>, is_named: bool) -> Vec<Vec<Vec<&'t str>>> {
    let hits: Vec<&Hit> = run.all("csv").collect();
    let rows: Vec<Vec<&str>> =
        hits.iter().map(|hit| hit.text("value").unwrap_or_default().split(',').collect()).collect();
    let is_one = |rows: &&[Vec<&str>]| if is_named { is_lower(rows) || is_full(rows) } else { is_own(rows) };
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(row) = rows.get(at) {
        match rows.get(at..at + row.len()).filter(is_one) {
            Some(rows) => {
                at += rows.len();
                found.push(rows.to_vec());
            }
            None => {
                if row.iter().any(|cell| !cell.is_empty()) {
                    hits[at].refuse();
                }
                at += 1;
            }
        }
    }
    found
}

fn figures(
    run: &Run,
    tables: &[Matrix],
    csvs: &[Vec<Vec<&str>>],
    builder: &mut Builder,
    faults: &mut Faults,
) {
    let command = run.command.as_ref();
    let list = |names: &[&str]| -> Option<Vec<&str>> { Some(command?.value(names)?.split(',').collect()) };
    let mut benches: Vec<Option<&str>> = tables.iter().map(|table| table.bench).collect();
    if benches.is_empty() && command.is_some() {
        let command = list(&["-b", "--bench"]).unwrap_or_else(|| vec!["1"]);
        benches = command.into_iter().map(Some).collect();
    }
    if benches.len() != csvs.len() {
        // Which is which cannot be known: each table, then, for what it is.
        for table in tables {
            pairs(table, "of the printed table, in whole ns", builder);
        }
        if tables.is_empty() {
            csvs.iter().for_each(|rows| pairs(&of_csv(rows, None, None), "", builder));
        }
    } else {
        for (place, rows) in csvs.iter().enumerate() {
            let cpus = tables.get(place).map(|table| table.cpus.clone()).or(list(&["-c", "--cores"]));
            pairs(&of_csv(rows, benches[place], cpus), "", builder);
        }
    }
    if tables.is_empty() && list(&["-c", "--cores"]).is_none() {
        builder.remarks.push(BY_PLACE.to_string());
    }
    if tables.iter().any(|table| !table.whole) {
        faults.interrupted("a table ends before its last CPU");
    }
    let mut bench = None;
    for hit in &run.hits {
        let metric = match hit.name {
            "bench" => {
                bench = hit.text("value");
                continue;
            }
            "least" => "latency_min",
            "most" => "latency_max",
            "mean" => "latency_mean",
            _ => continue,
        };
        let key = format!("{}#{metric}", name(bench));
        let meaning =
            Meaning::of(&key, &format!("{metric} of all pairs").replace('_', " "), "ns", Better::Lower);
        if let (Some(meaning), Some(value)) = (meaning, hit.number("value")) {
            builder.value(meaning, value.value);
        }
    }
}

fn of_csv<'t>(rows: &[Vec<&'t str>], bench: Option<&'t str>, cpus: Option<Vec<&'t str>>) -> Matrix<'t> {
    // A full one is of the test of messages, which may be seen without a name.
    let bench = bench.or(is_full(rows).then_some("3").filter(|_| rows.len() > 1));
    let cells = rows.iter().enumerate().flat_map(|(row, values)| {
        let cells = values.iter().enumerate().filter(|(_, value)| !value.is_empty());
        cells.map(move |(column, value)| (row, column, *value))
    });
    let cpus = cpus.filter(|cpus| cpus.len() == rows.len()).unwrap_or_default();
    Matrix { bench, cpus, cells: cells.collect(), whole: true }
}

/// The series that is what all pairs of a test come to.
fn name(bench: Option<&str>) -> &'static str {
    match bench {
        Some("1") => "memory.core-to-core-latency@all?by=compare-and-exchange",
        Some("2") => "memory.core-to-core-latency@all?by=store",
        Some("3") => "memory.core-to-core-latency@all?by=message",
        _ => "memory.core-to-core-latency@all",
    }
}

fn pairs(matrix: &Matrix, note: &str, builder: &mut Builder) {
    let (bench, more) = match matrix.bench {
        // Plain loads and stores, half a round trip: what is measured here, too.
        Some("2") => ("memory.core-to-core@all", "two lines, one per direction; Assay uses one line"),
        bench => (name(bench), ""),
    };
    let notes: Vec<&str> = [more, note].into_iter().filter(|note| !note.is_empty()).collect();
    for (row, column, value) in &matrix.cells {
        let cpu = |place: usize| matrix.cpus.get(place).map_or(place.to_string(), |cpu| cpu.to_string());
        // The CPU of the column begins, or sends.
        let (from, to) = (cpu(*column), cpu(*row));
        let key = format!("{bench}/from={from}&to={to}#latency");
        let meaning = Meaning::of(&key, &format!("latency {from} to {to}"), "ns", Better::Lower);
        if let (Some(meaning), Ok(value)) = (meaning, value.parse()) {
            builder.value(meaning.noted(&notes.join("; ")), value);
        }
    }
}
