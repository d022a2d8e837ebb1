//! `assay reference`: typical values of classes of hosts with their sources, and the user's own
//! runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;
use serde::Serialize;

use super::output::{self, eprint_line, misuse};
use super::references::ReferenceArg;
use super::{files, machine, references, results};
use ::machine::Machine;
use diagnose::Diagnosis;
use diagnose::key_figures::{self, KEY_FIGURES};
use diagnose::reference::{self, Band, HostClass, Kind, Quality, References, Row, Sure};
use model::pattern::{KeyParts, Pattern};
use model::vocabulary::memory::param::BYTES;
use model::{Better, did_you_mean};
use report::plain::plain;
use stats::analysis::Judged;

/// List and show reference values, or keep a run as one
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay reference list                             figures that have reference values
  assay reference show dram-latency                every band of a figure, with source and date
  assay reference show dram-latency --from M.json  for a host of `assay machine --save`
  assay reference show syscall --run RUN           how the figure of a run reads
  assay reference add RUN --as \"db class 2026\"     keep a run for hosts of its class
  assay run --reference OTHER-RUN                  read a run by a run, a folder or a table (.csv)
Kept runs are tables in assay/reference in $XDG_DATA_HOME or ~/.local/share. Delete the file to remove one.
`assay explain references` says how a figure is read.
Exit codes: 0; 2 usage or unknown name; 3 a file cannot be used")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the figures that have reference values
    List(List),
    /// Show every band of a figure, with source and date
    Show(Show),
    /// Keep a run as a reference for hosts of its class
    Add(Add),
}

#[derive(clap::Args)]
struct List {
    /// JSON output, with every row of every table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Show {
    /// Key figure (dram-latency), benchmark or key of a figure
    #[arg(value_name = "NAME-OR-KEY")]
    name: String,
    /// File of `assay machine --save` [default: this host]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Run whose host and figure to show
    #[arg(long, value_name = "RUN", conflicts_with = "from")]
    run: Option<PathBuf>,
    /// JSON output: the figure's rows, and those for the host
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reference: ReferenceArg,
}

/// A row with the table that it is from.
#[derive(Serialize)]
struct TableRow<'a> {
    table: &'a str,
    #[serde(flatten)]
    row: &'a Row,
}

/// The bands of a figure, and the ones that count for a host.
#[derive(Serialize)]
struct Shown<'a> {
    figure: &'a str,
    host: String,
    /// Null: no reference for this class.
    typical: Option<Band>,
    rows: Vec<TableRow<'a>>,
}

#[derive(clap::Args)]
struct Add {
    /// Run file (.assay.jsonl, .gz)
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Name to keep it by
    #[arg(long = "as", value_name = "NAME")]
    name: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::List(list) => self::list(&list),
        What::Show(show) => self::show(&show),
        What::Add(add) => self::add(&add),
    }
}

/// One line per figure, then the user's own references.
fn list(args: &List) -> anyhow::Result<ExitCode> {
    let references = references::kept()?;
    if args.json {
        let rows: Vec<TableRow> = references.rows().map(|(table, row)| TableRow { table, row }).collect();
        output::print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut figures: Vec<(&str, &str)> = Vec::new();
    let published = || reference::published().iter().filter(|row| row.sure != Sure::None);
    for row in published().filter(|row| row.kind != Some(Kind::Limit)) {
        if !figures.iter().any(|(metric, _)| *metric == row.metric) {
            figures.push((&row.metric, &row.name));
        }
    }
    let mut text = format!("{:42}{:>7}  {:9}  {}\n", "figure", "classes", "years", "name or key");
    for (metric, title) in figures {
        let rows: Vec<&Row> = published().filter(|row| row.metric == metric).collect();
        let classes: BTreeSet<&str> = rows.iter().flat_map(|row| row.subjects()).collect();
        let years = || rows.iter().filter_map(|row| row.year());
        let years = match (years().min(), years().max()) {
            (Some(first), Some(last)) if first < last => format!("{first}–{last}"),
            (first, _) => first.map_or(String::new(), |year| year.to_string()),
        };
        let own = KEY_FIGURES.iter().find(|one| one.patterns().iter().any(|key| rows[0].matches(key)));
        let name = own.map_or(metric, |one| one.name);
        text.push_str(&format!("{title:42}{:>7}  {years:9}  {name}\n", classes.len()));
    }
    let mut kept: Vec<(&str, &Row, usize)> = Vec::new();
    for (table, row) in references.rows().filter(|(table, _)| *table != reference::PUBLISHED) {
        match kept.iter_mut().find(|(name, ..)| *name == table) {
            Some((.., figures)) => *figures += 1,
            None => kept.push((table, row, 1)),
        }
    }
    text.push_str(if kept.is_empty() {
        "\nYou have no references of your own: `assay reference add RUN --as NAME` keeps a run.\n"
    } else {
        "\nYour own, which come before the published ones:\n"
    });
    for (table, row, figures) in kept {
        let class = reference::words(&row.subject);
        text.push_str(&format!(
            "  {table}: {}, {class}, {}\n",
            diagnose::words::counted(figures, "figure"),
            row.source_date
        ));
    }
    text.push_str("\n`assay reference show NAME` prints the bands of a figure, with source and date.\n");
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The keys by which rows are matched with a figure, in order of preference.
struct Wanted {
    title: String,
    keys: Vec<String>,
    bench: Option<String>,
}

impl Wanted {
    /// A key figure, a key of a series, or a benchmark that some row is of.
    fn of(name: &str, references: &References) -> Option<Wanted> {
        if let Some(figure) = key_figures::named(name) {
            let keys = figure.patterns().iter().map(|key| key.to_string()).collect();
            return Some(Wanted { title: figure.alone.to_string(), keys, bench: None });
        }
        if name.contains(['#', '@']) {
            return Some(Wanted { title: name.to_string(), keys: vec![name.to_string()], bench: None });
        }
        let of_bench = |row: &Row| bench_of(row) == name;
        references.rows().any(|(_, row)| of_bench(row)).then(|| Wanted {
            title: name.to_string(),
            keys: Vec::new(),
            bench: Some(name.to_string()),
        })
    }

    /// The series of a run that it is.
    fn measured<'a>(&self, run: &'a Diagnosis) -> Option<&'a Judged> {
        let own = |key: &String| {
            let pattern = Pattern::of(key);
            let fits = |one: &&Judged| one.series.key == *key || pattern.matches(&one.series.key);
            run.series.iter().filter(fits).filter(|one| one.analysis.figure().is_some()).max_by_key(|one| {
                KeyParts::of(&one.series.key).param(&BYTES).and_then(|bytes| bytes.parse::<u64>().ok())
            })
        };
        self.keys.iter().find_map(own)
    }

    fn has(&self, row: &Row) -> bool {
        let gap = |key: &str| row.kind.is_none() && Pattern::of(&row.metric).matches(key);
        let by_key = self.keys.iter().any(|key| row.matches(key) || gap(key));
        by_key || self.bench.as_deref() == Some(bench_of(row))
    }
}

fn bench_of(row: &Row) -> &str {
    row.metric.split(['@', '?', '#']).next().unwrap_or_default()
}

fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let run = args.run.as_deref().map(|path| Ok::<_, anyhow::Error>(diagnose::diagnose(results::run(path)?)));
    let run = run.transpose()?;
    let references = match &run {
        Some(run) => args.reference.references(run)?,
        None if args.reference.is_given() => bail!("--reference needs a run to read: add --run RUN"),
        None => references::kept()?,
    };
    let Some(wanted) = Wanted::of(&args.name, &references) else {
        let benches = references.rows().map(|(_, row)| bench_of(row));
        let names = KEY_FIGURES.iter().map(|figure| figure.name).chain(benches);
        let meant = did_you_mean(&args.name, names);
        let why = format!("no figure is called {:?}{meant}; `assay reference list` shows all", args.name);
        return Err(misuse(why));
    };
    let host = match &run {
        Some(run) => references.class_of(&run.machine),
        None => references.class_of(&machine_of(args.from.as_deref())?),
    };
    let rows: Vec<(&str, &Row)> = references.rows().filter(|(_, row)| wanted.has(row)).collect();
    if args.json {
        let measured = run.as_ref().and_then(|run| wanted.measured(run));
        let keys = measured.map(|judged| &judged.series.key).into_iter().chain(&wanted.keys);
        let band = |key: &String| references.band(&host, key, &rows.first()?.1.unit);
        output::print_json(&Shown {
            figure: &wanted.title,
            host: host.words(),
            typical: keys.clone().find_map(band),
            rows: rows.iter().map(|(table, row)| TableRow { table, row }).collect(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some((_, first)) = rows.iter().find(|(_, row)| row.kind.is_some()) else {
        output::print_text(&format!(
            "{}: no reference value\nAdd your own: `assay reference add RUN --as NAME`.\n",
            wanted.title
        ))?;
        return Ok(ExitCode::SUCCESS);
    };
    let better = if first.better == Better::Higher { "higher" } else { "lower" };
    let mut text = format!("{} ({better} is better)\n\n", wanted.title);
    let measured = run.as_ref().and_then(|run| wanted.measured(run));
    let found = match measured {
        Some(judged) => references.band(&host, &judged.series.key, &first.unit),
        None => wanted.keys.iter().find_map(|key| references.band(&host, key, &first.unit)),
    };
    text.push_str(&host_lines(&host, found.as_ref()));
    if run.is_some() {
        text.push_str(&format!("measured   {}\n", measured_words(measured, &references, &host, &first.unit)));
    }
    text.push('\n');
    text.extend(
        rows.iter().filter(|(_, row)| row.kind.is_some()).map(|(table, row)| source_lines(table, row)),
    );
    text.push_str(&gaps(&rows));
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The class of the host, with its typical values.
fn host_lines(host: &HostClass, found: Option<&Band>) -> String {
    let place = match host.is_guest {
        Some(true) => ", guest",
        Some(false) => ", bare metal",
        None => "",
    };
    let typical = found.map_or("no reference for this class".to_string(), typical);
    format!("host       {}{place}\ntypical    {typical}\n", host.words())
}

/// The hosts that a row of a table is about.
fn class(row: &Row) -> String {
    let classes: Vec<String> = row.subjects().map(reference::words).collect();
    let place = row.place.map_or("", |place| match place {
        reference::Place::Guest => "guest",
        reference::Place::BareMetal => "bare metal",
    });
    let parts = [classes.join(", "), place.to_string(), row.detail.clone()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A row with its source.
fn source_lines(table: &str, row: &Row) -> String {
    let table = if table == reference::PUBLISHED { String::new() } else { format!("{table}: ") };
    let kind = row.kind.map_or("", Kind::word);
    let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
    format!(
        "{table}{}: {}\n    {kind}, sure: {}, {}{note}\n    {}\n",
        class(row),
        range(row.low, row.high, &row.unit),
        row.sure.word(),
        row.source_date,
        row.source
    )
}

/// The classes without a source.
fn gaps(rows: &[(&str, &Row)]) -> String {
    let without = rows.iter().filter(|(_, row)| row.kind.is_none());
    let gaps: BTreeSet<String> = without.map(|(_, row)| class(row)).collect();
    if gaps.is_empty() {
        String::new()
    } else {
        format!("\nNo source for {}.\n", gaps.into_iter().collect::<Vec<_>>().join("; "))
    }
}

/// The figure of a run, and how it reads.
fn measured_words(
    measured: Option<&Judged>,
    references: &References,
    host: &HostClass,
    unit: &str,
) -> String {
    let Some(judged) = measured else { return "not in this run".to_string() };
    let figure = judged.analysis.figure().filter(|_| judged.analysis.verdict.usable());
    let factor = model::unit_factor(&judged.series.metric.unit, unit);
    let Some((figure, factor)) = figure.zip(factor) else { return "no usable figure".to_string() };
    let value = figure.median * factor;
    let interval = figure.interval.map(|interval| [interval.low * factor, interval.high * factor]);
    let reading = references.reading(host, &judged.series.key, value, interval, unit);
    let ends =
        interval.map_or(String::new(), |[low, high]| format!(" ({})", range(Some(low), Some(high), "")));
    let words = reading.map_or("no reading".to_string(), |reading| {
        let words = reading.word.words(Quality::Speed);
        let unsure = reading.unsure.map(|worse| format!(" or {}", worse.words(Quality::Speed)));
        let asked = reading.suspicion.map(|question| format!(", {question}"));
        let wide = if reading.wide { "~ " } else { "" };
        format!("{wide}{words}{}{}", unsure.unwrap_or_default(), asked.unwrap_or_default())
    });
    format!("{}{}: {words}", range(Some(value), Some(value), unit), ends.replace(" )", ")"))
}

/// Prints lines of which users' tables wrote parts.
fn print(text: &str) -> anyhow::Result<()> {
    let lines: String = text.lines().map(|line| plain(line, usize::MAX) + "\n").collect();
    output::print_text(&lines)
}

fn machine_of(from: Option<&Path>) -> anyhow::Result<Machine> {
    let snapshot = match from {
        Some(path) => machine::saved_snapshot(path)?,
        None => {
            let mut snapshot = machine::live_snapshot(Path::new("/"));
            machine::add_disk(&mut snapshot, Path::new("/"), None)?;
            snapshot
        }
    };
    Ok(Machine::from(&snapshot))
}

/// `102–139 ns of Xeon 6 (Granite Rapids), published`.
fn typical(band: &Band) -> String {
    let wide = if band.wide { "~ " } else { "" };
    format!("{wide}{} of {}, {}", range(band.low, band.high, &band.unit), band.class, band.table)
}

/// `102–139 ns`, `up to 3.9 GHz`, `from 50 us`.
fn range(low: Option<f64>, high: Option<f64>, unit: &str) -> String {
    let number = |value: f64| {
        // Four digits: more than any source has, and less than a change of units leaves.
        let digits = 3 - value.abs().max(1e-9).log10().floor() as i32;
        let scale = 10_f64.powi(digits.clamp(0, 9));
        ((value * scale).round() / scale).to_string()
    };
    let words = match (low, high) {
        (Some(low), Some(high)) if number(low) == number(high) => number(low),
        (Some(low), Some(high)) => format!("{}–{}", number(low), number(high)),
        (None, Some(high)) => format!("up to {}", number(high)),
        (Some(low), None) => format!("from {}", number(low)),
        (None, None) => return "unknown".to_string(),
    };
    format!("{words} {unit}")
}

fn add(args: &Add) -> anyhow::Result<ExitCode> {
    let file = references::file_of(&args.name)?;
    if file.exists() {
        bail!("the name {:?} is taken: choose another name, or delete {}", args.name, file.display());
    }
    let diagnosis = diagnose::diagnose(results::run(&args.run)?);
    let rows = reference::rows_of_run(&args.name, &diagnosis, false);
    if rows.is_empty() {
        bail!("{} has no usable figure", args.run.display());
    }
    let folder = references::folder()?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let table = reference::write(&rows)?;
    files::write_named(&file, |out| Ok(out.write_all(&table)?))?;
    let host = References::published().class_of(&diagnosis.machine);
    eprint_line(&format!(
        "  kept {} as {:?} for hosts of the class {}: {}",
        diagnose::words::counted(rows.len(), "figure"),
        args.name,
        host.words(),
        file.display()
    ));
    Ok(ExitCode::SUCCESS)
}
