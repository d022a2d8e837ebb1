//! `assay import`: result files of other tools, in Assay's terms.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::output;
use super::references::{self, ReferenceArg};
use compare::ComparisonSide;
use compare::peers::HostResult;
use import::{self, Imported};
use model::run_file;
use report::text::screen::{self as first_screen, Wanted};
use report::{imported, text};

/// Longer file names are left out of the closing lines.
const NAME: usize = 32;

/// Read result files of other tools: fio, iperf3, STREAM and others
#[derive(clap::Args)]
#[command(after_help = help())]
pub struct Args {
    /// Result files, logs or archives (all formats are listed below)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Every figure, with key and difference, after the first screen
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
  assay import summary.out                        what lmbench's `make summary` printed
  assay import fio.json --all                     every figure, and how it differs from Assay's
  assay import results/myhost-2019-05-02-01       what UnixBench's `./Run` wrote
  assay import summary.out --reference RUN        read its figures by a run
  assay import fio.json iperf3.json sockperf.log  several tools at once, JSON or text
  assay compare summary.out RUN                   an old result against a run
  assay report RUN --beside summary.out           an old result in the report of a run";

/// Examples, and all that can be read.
fn help() -> String {
    let known: Vec<String> = import::known().map(|files| format!("  {files}")).collect();
    format!("{EXAMPLES}\n\nFormats:\n{}", known.join("\n"))
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut results: Vec<(String, Imported)> = Vec::new();
    for path in &args.files {
        results.extend(read(path)?.into_iter().map(|one| (path.display().to_string(), one)));
    }
    let figures = || results.iter().flat_map(|(_, one)| &one.figures);
    let usable = figures().any(|figure| figure.judged.analysis.estimate.is_some());
    let exit = if usable { 0 } else { 3 };
    if args.json {
        output::print_json(&imported::output(&results))?
    } else {
        output::print_text(&text_of(&results, &args, exit)?)?
    }
    Ok(ExitCode::from(exit))
}

/// The first screen, with every figure of every result on request.
fn text_of(results: &[(String, Imported)], args: &Args, exit: u8) -> anyhow::Result<String> {
    let own = || {
        let (file, first) = &results[0];
        HostResult::from(&ComparisonSide::imported(first, file))
    };
    let references = if results.is_empty() { references::kept()? } else { args.reference.read_for(own)? };
    let screen = imported::screen::screen(results, &references);
    let differs = screen.rows.iter().any(|row| row.reading.extra.starts_with(imported::screen::DIFFERS));
    let wide = screen.rows.iter().any(|row| row.reading.wide);
    let legend = match (differs, wide) {
        (true, _) => "differs: measured in another way, see --all",
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
        // The summary of several runs comes before each of them.
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
    // One byte above the limit shows a larger file.
    file.take(import::MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    import::read(&bytes).with_context(|| format!("{} cannot be imported", path.display()))
}
