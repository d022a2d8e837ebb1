//! `assay trend`: one host's runs in the order of time.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::naming;
use super::output::{self, eprint_line, misuse};
use super::report_file::{Form, ReportFile};
use super::results::{self, Held};
use compare::peers::HostResult;
use compare::trend::{Hosts, Trend, Verdict, trend};
use model::Title;
use model::pattern::KeyParts;
use report::json;
use report::trending::{self, Shown};

/// Show how a host's figures moved over its runs: steps with their dates
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay trend                              the runs in assay-out
  assay trend db1                          of several hosts there this one
  assay trend runs/ --profile quick        runs below a folder, those of one profile
  assay trend db1 fleet.ndjson             by the lines that `assay summary` prints
  assay trend --since 2026-11-01           without what was before
  assay trend --out trend.csv              a row a run, a column a figure: Otava reads it
A step is a lasting change of a figure's level: at least three runs on each side, 2 % or more and more than its usual \
interval; of all steps at most 1 % are false. Beside it stands what the runs say changed there: kernel, microcode, BIOS, \
governor, mitigations, a restart, labels, Assay itself. A step to the worse counts until a later one takes it back. What \
only the last run or two show is no step; the command that confirms it is named. Runs of another profile, of another \
model of CPU (a new machine under the old name) or on other CPUs are another series.
Exit codes: 0 no step to the worse, 1 a step to the worse, 2 usage or no such host, 3 no run could be used, 4 fewer than \
eight runs of one series")]
pub struct Args {
    /// A host's name, and runs: files, folders, files of summaries, @NAME [default: assay-out]
    #[arg(value_name = "HOST|RUNS")]
    what: Vec<String>,
    /// The host, where a file has its name
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The profile of the series [default: the newest run's]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The first day, as 2026-11-01
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<String>,
    /// Every figure that a benchmark is about
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// The verdict and the steps only
    #[arg(long, conflicts_with = "all", help_heading = "Output")]
    quiet: bool,
    /// Print JSON (always with every figure)
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// File for the values (.csv; with --all of every figure) or JSON (.json)
    #[arg(long, value_name = "FILE", value_parser = ReportFile::parser_of(&[Form::Csv, Form::Json]), help_heading = "Output")]
    out: Option<ReportFile>,
}

fn date(text: &str) -> Result<String, String> {
    let date: Result<jiff::civil::Date, _> = text.parse();
    date.map(|date| date.to_string()).map_err(|_| "write a day as 2026-11-01".to_string())
}

/// Nothing could be used; too little to tell.
const UNUSABLE: u8 = 3;
const UNDECIDED: u8 = 4;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (host, runs) = asked(&args).map_err(misuse)?;
    let (mut all, left_out) = recorded(&runs)?;
    let why = left_out.first().map_or(String::new(), |(file, why)| format!("; {file}: {why}"));
    let read = all.len();
    all.retain(|run| args.since.as_ref().is_none_or(|since| run.started >= *since));
    if all.is_empty() {
        let since = args.since.as_ref().filter(|_| read > 0);
        let when = since.map_or(String::new(), |since| format!(" since {since}"));
        eprint_line(&format!("assay: no run in {} can be used{when}{why}", places(&runs)));
        return Ok(ExitCode::from(UNUSABLE));
    }
    let found = trend(all, host.as_deref(), args.profile.as_deref())
        .map_err(|hosts| misuse(no_host(host.as_deref(), &hosts, &runs)))?;
    let code = code(&found);
    present(&args, &found, &left_out, code)?;
    if !left_out.is_empty() {
        eprint_line(&format!(
            "assay: {} could not be used{why}",
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

/// The host and the places of the runs: what is there, or looks like a place, is one.
fn asked(args: &Args) -> Result<(Option<String>, Vec<PathBuf>), String> {
    let (mut host, mut runs) = (args.host.clone(), Vec::new());
    for word in &args.what {
        let is_place = word.starts_with('@') || word.contains('/') || Path::new(word).exists();
        match (&host, is_place) {
            (_, true) => runs.push(naming::place(word)?),
            (None, false) => host = Some(word.clone()),
            (Some(one), false) => {
                return Err(format!(
                    "a trend is of one host: {one} and {word} are two, and no file has such a name"
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
                "no run in {runs} is of a host {host}{near}, and no file has that name: there are runs of {known}"
            )
        }
        None => format!("{runs} holds runs of {} hosts: name one of {known}", hosts.len()),
    }
}

/// Runs as their summaries tell them; file and reason of what cannot be used.
type Read = (Vec<HostResult>, Vec<(String, String)>);

fn recorded(paths: &[PathBuf]) -> anyhow::Result<Read> {
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for path in results::files(paths)? {
        match recorded_in(&path) {
            Ok(own) => {
                for one in own {
                    match one {
                        Ok(one) if one.started.is_empty() => {
                            left_out.push((one.file, "it does not say when it was measured".to_string()));
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
    if !path.exists() {
        bail!("there is no such file");
    }
    Ok(match results::held(path)? {
        Held::Summaries(all) => all.into_iter().map(|one| one.map(HostResult::from)).collect(),
        Held::Arms(arms) => arms.iter().map(|arm| Ok(HostResult::from(arm))).collect(),
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
    // In a list of all figures of one benchmark only keys tell them apart.
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
