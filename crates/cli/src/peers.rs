//! `assay peers`: compares hosts of the same make by the summaries in their run files.

mod reading;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::output::{self, eprint_line};
use super::report_file::{Form, ReportFile};
use super::{naming, results};
use compare::peers::{self, Fleet, Peers};
use model::{Severity, run_file};
use reading::fleet_of;
use report::block::Report;
use report::peers as shown;
use report::text::Style;
use report::text::screen::{self as first_screen, Wanted};
use report::{csv, html, json, markdown, text};

/// Compare many hosts: which are slower than their peers, and why
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay peers runs/                        all runs below a folder, the newest of each host
  assay peers results/CPU2017.*.csv        SPEC CPU2017 results of many hosts
  assay peers unixbench/*                  whatever `assay import` reads
  assay peers fleet.ndjson.gz              output of `assay summary`, of 10 hosts or 1,000,000
  assay peers runs/ --out fleet.html       as a page (.md, .json and .csv, too)
Only the summary at the end of a run file is read. Peers have the same processor, cores, memory, modules and kernel, \
as far as these are known. A group needs eight hosts before one can be an outlier. A smaller group is compared with \
the larger group that differs in the fewest fields.
`assay explain slow-among-peers` says when a host is flagged. A guest that beats a bare-metal host of its class is \
flagged in any number of hosts (`assay explain guest-beats-host`).
Exit codes: 0 compared, 1 finding at or above --fail-on, 2 usage, 3 no usable result, 4 no group has eight hosts")]
pub struct Args {
    /// Run files, folders of them, reports, or files of `assay import`
    #[arg(value_name = "RUNS", required = true, value_parser = naming::results())]
    runs: Vec<PathBuf>,
    /// Exit 1 on findings from this severity on: note, warning, problem
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<Severity>,
    /// Show every host, group and finding
    #[arg(long)]
    all: bool,
    /// Show the verdict and the findings only
    #[arg(long, conflicts_with = "all")]
    quiet: bool,
    /// JSON output, always with every host
    #[arg(long)]
    json: bool,
    /// File for a page (.html), Markdown (.md), JSON (.json) or CSV (.csv)
    #[arg(long, value_name = "FILE", value_parser = ReportFile::parser())]
    out: Option<ReportFile>,
}

/// No group is large enough.
const NOT_JUDGED: u8 = 4;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let files = results::files(&args.runs)?;
    let found = peers::judge(fleet_of(&files));
    let unusable = &found.fleet.left_out;
    let why =
        unusable.first().map_or(String::new(), |(file, why)| format!(": {}", results::about(file, why)));
    if files.is_empty() {
        let named: Vec<String> = args.runs.iter().map(|path| path.display().to_string()).collect();
        eprint_line(&format!(
            "assay: no run ({}) in {}; name results of other tools one by one: assay peers DIR/*",
            run_file::EXTENSION,
            named.join(", ")
        ));
        return Ok(ExitCode::from(3));
    }
    if found.fleet.hosts.is_empty() {
        eprint_line(&format!(
            "assay: none of {} can be used{why}",
            diagnose::words::counted(files.len(), "file")
        ));
        return Ok(ExitCode::from(3));
    }
    let code = code(&args, &found);
    present(&args, &found, code)?;
    if !unusable.is_empty() {
        eprint_line(&format!(
            "assay: {} cannot be used{why}",
            diagnose::words::counted(unusable.len(), "result")
        ));
    }
    Ok(ExitCode::from(code))
}

fn code(args: &Args, found: &Peers) -> u8 {
    let gravest = found.findings.iter().map(|finding| finding.severity).max();
    if args.fail_on.is_some_and(|limit| gravest.is_some_and(|gravest| gravest >= limit)) {
        return 1;
    }
    if found.judged() == 0 { NOT_JUDGED } else { 0 }
}

/// The first screen, with all hosts and findings on request.
fn text_of(report: &Report, found: &Peers, args: &Args, exit: u8, style: Style) -> String {
    let Some(screen) = &report.screen else { return String::new() };
    let rule = found.findings.first().map(|finding| &finding.rule);
    let row = [
        if args.all { String::new() } else { "each host: --all".to_string() },
        "page: --out fleet.html".to_string(),
        rule.map_or(String::new(), |rule| format!("why: assay explain {rule}")),
        if exit == 0 { String::new() } else { format!("exit {exit}") },
    ];
    let row = row.into_iter().filter(|cell| !cell.is_empty()).collect();
    let wanted = Wanted { quiet: args.quiet, ..Wanted::default() };
    let first = first_screen::render(screen, wanted, &[row], style);
    if args.all { format!("{first}{}", text::details(report, false, style)) } else { first }
}

/// The fleet of the runs at these paths; unreadable ones are left out.
pub fn fleet_of_all(paths: &[PathBuf]) -> Fleet {
    let files = paths.iter().flat_map(|path| results::files(std::slice::from_ref(path)).unwrap_or_default());
    fleet_of(&files.collect::<Vec<_>>())
}

/// The fleet of the runs in a folder.
pub fn fleet_in(path: &Path) -> anyhow::Result<Fleet> {
    Ok(fleet_of(&results::files(&[path.to_path_buf()])?))
}

fn present(args: &Args, found: &Peers, exit: u8) -> anyhow::Result<()> {
    let Some(file) = &args.out else {
        return if args.json {
            output::print_with(|out| json::write_pretty(&shown::output(found), out))
        } else {
            let style = output::style(std::io::IsTerminal::is_terminal(&std::io::stdout()));
            output::print_text(&text_of(&shown::report(found, args.all)?, found, args, exit, style))
        };
    };
    let report = || shown::report(found, args.all);
    file.write(|out| match file.form {
        Form::Json => json::write_pretty(&shown::output(found), out),
        Form::Markdown => Ok(out.write_all(markdown::render(&report()?).as_bytes())?),
        Form::Csv => csv::hosts(found, out),
        Form::Page => html::write(&shown::page(found, args.all)?, out),
    })
}
