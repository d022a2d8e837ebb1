//! `assay import`: what foreign result files say, in our own terms.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::output;
use super::references::{self, ReferenceArg};
use compare::Arm;
use compare::peers::Result as HostResult;
use import::{self, Imported};
use model::run_file;
use report::text::screen::{self as first_screen, Wanted};
use report::{imported, text};

/// A file's name that is longer stands on no closing line.
const NAME: usize = 32;

/// Read result files of other tools (fio, iperf3, lmbench, STREAM and others) into series of our
/// own
#[derive(clap::Args)]
#[command(after_help = help())]
pub struct Args {
    /// Result files, with whatever was said around the results; below is a list of all kinds
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Every figure with its key and how it differs, behind the first screen
    #[arg(long, conflicts_with = "quiet")]
    all: bool,
    /// The verdict and the findings only
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "reference")]
    json: bool,
    #[command(flatten)]
    reference: ReferenceArg,
}

const EXAMPLES: &str = "\
Examples:
  assay import summary.out                       what lmbench's `make summary` printed
  assay import fio.json --all                    every figure, its key, and how it differs from Assay's
  assay import results/*/host.0 --json           raw result files, as the JSON that `assay run` gives
  assay import results/myhost-2019-05-02-01      what UnixBench's `./Run` wrote
  assay import hackbench.log                     what hackbench or `perf bench sched messaging` printed, once or often
  assay import summary.out --reference RUN       read its figures by a run
  assay import result/CPU2017.*.csv              SPEC CPU, in each of its forms: components, spread over the runs, headline
  assay import fio.json iperf3.json sockperf.log what fio and iperf3 (JSON or text) and sockperf printed, with what was said around
  assay compare summary.out RUN                  an old result against a run
  assay report RUN --beside summary.out          and in its report";

/// Examples, and all that can be read.
fn help() -> String {
    let known: Vec<String> = import::known().map(|files| format!("  {files}")).collect();
    format!("{EXAMPLES}\n\nWhat is read:\n{}", known.join("\n"))
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut results: Vec<(String, Imported)> = Vec::new();
    for path in &args.files {
        results.extend(read(path)?.into_iter().map(|one| (path.display().to_string(), one)));
    }
    let figures = || results.iter().flat_map(|(_, one)| &one.figures);
    let usable = figures().any(|figure| figure.judged.analysis.estimate.is_some());
    let exit = if usable { 0 } else { 3 };
    match args.json {
        true => output::print_json(&imported::output(&results))?,
        false => output::print_text(&text_of(&results, &args, exit)?)?,
    }
    Ok(ExitCode::from(exit))
}

/// The first screen, and every figure of every result behind it where that is asked for.
fn text_of(results: &[(String, Imported)], args: &Args, exit: u8) -> anyhow::Result<String> {
    let own = || {
        let (file, first) = &results[0];
        HostResult::from(&Arm::imported(first, file))
    };
    let references = match results.is_empty() {
        true => references::kept()?,
        false => args.reference.read_for(own)?,
    };
    let screen = imported::screen::screen(results, &references);
    let differs = screen.rows.iter().any(|row| row.reading.extra.starts_with(imported::screen::DIFFERS));
    let wide = screen.rows.iter().any(|row| row.reading.wide);
    let legend = match (differs, wide) {
        (true, _) => "differs: measured in another way than by Assay",
        (false, true) => "~ = wide reference class",
        (false, false) => "",
    };
    let file = match results {
        [(file, _)] if file.chars().count() <= NAME => diagnose::words::shell(file),
        _ => "FILE".to_string(),
    };
    let all = if args.all { "" } else { "--all prints them, each with its key" };
    let closing = vec![
        vec![
            diagnose::words::counted(screen.figures, "figure"),
            all.to_string(),
            if exit == 0 { legend.to_string() } else { format!("exit {exit}") },
        ],
        vec![
            format!("assay compare {file} RUN"),
            format!("assay report RUN --beside {file}"),
            screen.explain(),
        ],
    ];
    let style = output::style(std::io::IsTerminal::is_terminal(&std::io::stdout()));
    let wanted = Wanted { quiet: args.quiet, ..Wanted::default() };
    let mut text = first_screen::render(&screen, wanted, &closing, style);
    if args.all {
        // What several runs come to stands before each of them.
        let reports = imported::repeats_reports(results).into_iter();
        let reports = reports.chain(results.iter().map(|(file, one)| imported::report(file, one)));
        for report in reports {
            text.push('\n');
            text.push_str(&text::render(&report, style));
        }
    }
    Ok(text)
}

/// The results of all hosts in a file.
pub fn read(path: &Path) -> anyhow::Result<Vec<Imported>> {
    let file = run_file::open(path)?;
    let mut bytes = Vec::new();
    // One byte more than may be tells a larger file apart.
    file.take(import::MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    import::read(&bytes).with_context(|| format!("{} cannot be imported", path.display()))
}
