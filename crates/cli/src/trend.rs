//! `assay trend`: one host's runs in the order of time.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::naming;
use super::output::{self, eprint_line, misuse};
use super::report_file::{Form, ReportFile};
use super::results::{self, Contents};
use compare::peers::HostResult;
use compare::trend::{Hosts, Trend, Verdict, trend};
use model::Title;
use model::pattern::KeyParts;
use report::json;
use report::trending::{self, Shown};

/// Show lasting changes of a host's figures over its runs
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay trend                              the runs in assay-out
  assay trend db1                          one of several hosts there
  assay trend runs/ --profile quick        runs below a folder, of one profile
  assay trend db1 fleet.ndjson             from the output of `assay summary`
  assay trend --since 2026-11-01           without earlier runs
  assay trend --out trend.csv              a row per run, a column per figure (for Otava)
A step is a lasting change of a figure: at least three runs on each side, at least 2 %, and more than its usual \
interval. At most 1 % of all steps are false. Next to it stands what changed by the runs' own record: kernel, \
microcode, BIOS, governor, mitigations, a restart, labels, Assay itself.
A step to the worse counts until a later one takes it back. A change in the last run or two is not yet a step; the \
command that confirms it is printed. Runs of another profile, CPU model or set of CPUs are not mixed.
Exit codes: 0 no step to the worse, 1 a step to the worse, 2 usage or no such host, 3 no usable run, 4 fewer than \
eight comparable runs")]
pub struct Args {
    /// Host name, and runs, folders or summaries [default: assay-out]
    #[arg(value_name = "HOST|RUNS")]
    what: Vec<String>,
    /// Host name, if a file has the same name
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Profile of the runs [default: that of the newest]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// First day, as 2026-11-01
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<String>,
    /// All main figures of benchmarks
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Verdict and steps only
    #[arg(long, conflicts_with = "all", help_heading = "Output")]
    quiet: bool,
    /// JSON output, always with every figure
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// File for the values (.csv, with --all of every figure) or JSON
    #[arg(long, value_name = "FILE", value_parser = ReportFile::parser_of(&[Form::Csv, Form::Json]), help_heading = "Output")]
    out: Option<ReportFile>,
}

fn date(text: &str) -> Result<String, String> {
    let date: Result<jiff::civil::Date, _> = text.parse();
    date.map(|date| date.to_string()).map_err(|_| "write a day as 2026-11-01".to_string())
}

/// No usable run; too few runs.
const UNUSABLE: u8 = 3;
const UNDECIDED: u8 = 4;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (host, runs) = asked(&args).map_err(misuse)?;
    if let (Some(host), None, [folder]) = (&host, &args.host, runs.as_slice())
        && !folder.exists()
    {
        let folder = folder.display();
        eprint_line(&format!(
            "assay: there is no file, folder or host {host:?} (hosts are looked up in {folder}, which does not exist)"
        ));
        return Ok(ExitCode::from(UNUSABLE));
    }
    let (mut all, left_out) = recorded(&runs)?;
    let why =
        left_out.first().map_or(String::new(), |(file, why)| format!(": {}", results::about(file, why)));
    let read = all.len();
    all.retain(|run| args.since.as_ref().is_none_or(|since| run.started >= *since));
    if all.is_empty() {
        let since = args.since.as_ref().filter(|_| read > 0);
        let when = since.map_or(String::new(), |since| format!(" since {since}"));
        eprint_line(&format!("assay: {} has no usable run{when}{why}", places(&runs)));
        return Ok(ExitCode::from(UNUSABLE));
    }
    let found = trend(all, host.as_deref(), args.profile.as_deref())
        .map_err(|hosts| misuse(no_host(host.as_deref(), &hosts, &runs)))?;
    let code = code(&found);
    present(&args, &found, &left_out, code)?;
    if !left_out.is_empty() {
        eprint_line(&format!(
            "assay: {} cannot be used{why}",
            diagnose::words::counted(left_out.len(), "result")
        ));
    }
    Ok(ExitCode::from(code))
}

fn code(found: &Trend) -> u8 {
    match found.verdict() {
        Verdict::Worse => 1,
        Verdict::CannotTell => UNDECIDED,
        Verdict::Better | Verdict::Confirm | Verdict::Steady => 0,
    }
}

/// The host and the places of the runs: existing files, or words that look like paths.
fn asked(args: &Args) -> Result<(Option<String>, Vec<PathBuf>), String> {
    let (mut host, mut runs) = (args.host.clone(), Vec::new());
    for word in &args.what {
        let is_place = word.starts_with('@') || word.contains('/') || Path::new(word).exists();
        match (&host, is_place) {
            (_, true) => runs.push(naming::place(word)?),
            (None, false) => host = Some(word.clone()),
            (Some(one), false) => {
                return Err(format!(
                    "a trend is of one host, but {one} and {word} are two names, and no file is called so"
                ));
            }
        }
    }
    if runs.is_empty() {
        runs.push(PathBuf::from(naming::OUT));
    }
    Ok((host, runs))
}

fn places(runs: &[PathBuf]) -> String {
    let all: Vec<String> = runs.iter().map(|path| path.display().to_string()).collect();
    all.join(", ")
}

/// Hosts that an error lists.
const LISTED: usize = 20;

fn no_host(host: Option<&str>, Hosts(hosts): &Hosts, runs: &[PathBuf]) -> String {
    let more = match hosts.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let known = hosts.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ") + &more;
    let runs = places(runs);
    match host {
        Some(host) => {
            let near = model::did_you_mean(host, hosts.iter().map(String::as_str));
            format!(
                "{runs} has no run of a host {host}{near}, and no file is called so: it has runs of {known}"
            )
        }
        None => format!("{runs} has runs of {} hosts: name one of {known}", hosts.len()),
    }
}

/// Runs by their summaries, and the unusable files with reasons.
type Read = (Vec<HostResult>, Vec<(String, String)>);

fn recorded(paths: &[PathBuf]) -> anyhow::Result<Read> {
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for path in results::files(paths)? {
        match recorded_in(&path) {
            Ok(own) => {
                for one in own {
                    match one {
                        Ok(one) if one.started.is_empty() => {
                            left_out.push((one.file, "it has no date".to_string()));
                        }
                        Ok(one) => all.push(one),
                        Err(why) => left_out.push(why),
                    }
                }
            }
            Err(error) => left_out.push((path.display().to_string(), format!("{error:#}"))),
        }
    }
    Ok((all, left_out))
}

fn recorded_in(path: &Path) -> anyhow::Result<Vec<Result<HostResult, (String, String)>>> {
    Ok(match results::contents(path)? {
        Contents::Summaries(all) => all.into_iter().map(|one| one.map(HostResult::from)).collect(),
        Contents::Arms(arms) => arms.iter().map(|arm| Ok(HostResult::from(arm))).collect(),
    })
}

/// What a series is called by the entry of its benchmark.
fn named(catalogue: &[Title], key: &str) -> String {
    let parts = KeyParts::of(key);
    let Some(title) = catalogue.iter().find(|title| title.id == parts.bench) else { return key.to_string() };
    let metric = title.metrics.iter().find(|metric| metric.name == parts.metric);
    match metric.filter(|_| title.metrics.len() > 1) {
        Some(metric) => format!("{}: {}", title.title, metric.title),
        None => title.title.to_string(),
    }
}

fn present(args: &Args, found: &Trend, left_out: &[(String, String)], exit: u8) -> anyhow::Result<()> {
    let catalogue: Vec<Title> = bench::all().map(|bench| bench.catalogue()).collect();
    // In a list of all figures of a benchmark, keys distinguish them.
    let names = |key: &str| if args.all { key.to_string() } else { named(&catalogue, key) };
    let data = || trending::output(found, left_out, &names);
    if let Some(file) = &args.out {
        return file.write(|out| match file.form {
            Form::Csv => trending::csv(found, args.all, out),
            _ => Ok(out.write_all(json::pretty(&data())?.as_bytes())?),
        });
    }
    if args.json {
        return output::print_json(&data());
    }
    let shown = match (args.all, args.quiet) {
        (true, _) => Shown::All,
        (_, true) => Shown::Quiet,
        _ => Shown::First,
    };
    let style = output::style(std::io::stdout().is_terminal());
    output::print_text(&trending::render(found, shown, &names, exit, style))
}
