//! `assay check`: a run against a spec.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::naming;
use super::output::{self, eprint_line, misuse, refuse};
use super::references::ReferenceArg;
use super::report_file::{Form, ReportFile};
use ::check::{MIN_RUNS, Outcome, Spec, Subject, Verdict};
use diagnose::Diagnosis;
use found::{All, Found, One, Wanted, of_run};
use model::Run;
use report::checking::{self, Shown};
use schemars::JsonSchema;
use serde::Serialize;
use specs::Specs;

mod company;
mod found;
mod specs;
mod written;

pub use specs::LoadedSpec;
pub use written::kept;

/// Check a host against a spec: accept, reject or undecided
#[derive(clap::Args)]
#[command(after_help = "\
A spec is a TOML file with one demand per line:
  name = \"db-gen5\"
  [machine]                               # facts, by their names in `assay summary`
  cpus = { min = 128 }
  cpu_model = \"AMD EPYC 9554*\"
  dimm_verdict = [\"balanced\", \"near_balanced\"]
  whole = true                            # all CPUs allowed, no quota
  [run]
  profile = [\"standard\", \"full\"]
  max_age = \"35d\"
  [findings]
  fail_at = \"warning\"
  none_of = [\"steal\"]
  allow = [{ rule = \"llc-differs\", reason = \"on purpose\", until = 2027-06-30 }]
  [reading]
  at_least = \"normal\"                     # for every key figure with a reference
  [limits]                                # key figures, by short name
  dram-latency = { max = \"100 ns\" }
  [[limit]]                               # figures, by patterns of their keys
  series = \"memory.bandwidth@all+huge-pages?op=read/bytes=134217728\"    # keys: assay check --all
  pick = \"best\"                           # best, worst or each
  min = \"320 GB/s\"
  [[limit]]
  series = \"disk.random@*#iops\"
  within = \"10 %\"                         # of the reference, on the worse side
  [peers]                                 # hosts of the same make, at least eight
  not_slower = true                       # among the runs checked; more: runs = \"good/\"
  [reference]
  runs = \"@before\"                        # or a run, or a folder of one host's runs
Examples:
  assay check RUN --init > db.toml              a spec from a good run, with a margin of 10 %
  assay check good/ --derive > db.toml          a spec from at least eight good runs
  assay check --lint db.toml                    find mistakes in a spec
  assay check RUN --spec db.toml                one host
  assay check runs/ --spec-dir specs/           each host by the spec that its [machine] matches
  assay check runs/ --spec db.toml              many hosts: how many pass, and why others fail
  assay check runs/ --newest --spec db.toml     the newest run of each host
  assay check runs/ --confirmed --spec db.toml  before you drain a host
  assay check RUN --spec db.toml --maas FILE    result of a MAAS script (FILE is $RESULT_PATH there)
--confirmed rejects a figure, finding or peer that the newest run and two earlier ones miss, 25 minutes or more \
apart and within a week. A wrong fact of the host is rejected at once.
Exit codes: 0 accepted, 1 rejected, 2 usage, 3 no run can be judged, 4 undecided or not yet confirmed; several runs: \
the first of 1, 3, 4, 0 that occurs")]
pub struct Args {
    /// Run files, folders of them, or files of summaries
    #[arg(value_name = "RUN", required_unless_present = "lint", value_parser = naming::results())]
    runs: Vec<PathBuf>,
    /// Spec file (TOML)
    #[arg(long, value_name = "FILE", conflicts_with = "spec_dir")]
    spec: Option<PathBuf>,
    /// Folder of specs, one for each class of hosts
    #[arg(long, value_name = "DIR", conflicts_with_all = ["spec", "init", "derive", "lint"])]
    spec_dir: Option<PathBuf>,
    /// Print a spec made from one run
    #[arg(long, conflicts_with_all = ["spec", "derive", "lint"])]
    init: bool,
    /// Print a spec made from at least eight good runs
    #[arg(long, conflicts_with_all = ["spec", "lint"])]
    derive: bool,
    /// Margin of --init and --derive in % [default: 10 and 5]
    #[arg(long, value_name = "PERCENT", value_parser = room)]
    margin: Option<f64>,
    /// Mistakes in a spec file, without a run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["spec", "runs"])]
    lint: Option<PathBuf>,
    /// Judge only the newest run of each host
    #[arg(long, conflicts_with = "lint")]
    newest: bool,
    /// Reject only what three runs of a host miss (see below)
    #[arg(long, conflicts_with_all = ["init", "derive", "lint"])]
    confirmed: bool,
    /// Exit code of undecided: as for pass or fail
    #[arg(long, value_name = "OUTCOME", value_parser = ["pass", "fail"], hide_possible_values = true)]
    undecided: Option<String>,
    #[command(flatten)]
    reference: ReferenceArg,
    /// Every demand with its key, and the run that decides it
    #[arg(long, conflicts_with_all = ["brief", "quiet"], help_heading = "Output")]
    all: bool,
    /// One line per run
    #[arg(long, help_heading = "Output")]
    brief: bool,
    /// The verdict and its reasons only
    #[arg(long, conflicts_with = "brief", help_heading = "Output")]
    quiet: bool,
    /// JSON output
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// File for JUnit XML
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output")]
    junit: Option<PathBuf>,
    /// File for a MAAS script's result, such as $RESULT_PATH
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output")]
    maas: Option<PathBuf>,
    /// Feature file for Node Feature Discovery
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output")]
    nfd: Option<PathBuf>,
    /// File of metrics for Prometheus' node exporter (textfile)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output")]
    prometheus: Option<PathBuf>,
    /// File for the outcomes: JSON (.json) or a row per demand (.csv)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output",
          value_parser = ReportFile::parser_of(&[Form::Json, Form::Csv]))]
    out: Option<ReportFile>,
}

fn room(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|percent| (0.0..100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a margin is 0–99 percent".to_string())
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Report {
    schema: u32,
    assay: String,
    /// Of all runs.
    verdict: Verdict,
    /// By `--newest` or `--confirmed`: files of runs of which their host has a newer one.
    left_out: Vec<String>,
    runs: Vec<Outcome>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.lint {
        return lint(file);
    }
    if args.spec.is_none() && args.spec_dir.is_none() && !args.init && !args.derive {
        return Err(misuse(
            "no spec is given: add --spec FILE or --spec-dir DIR; --init writes a spec from this run",
        ));
    }
    refuse(written::clash(&args))?;
    let mut specs = specs(&args).map_err(misuse)?;
    specs.iter_mut().for_each(|specs| specs.together(&args.runs));
    let wanted = Wanted {
        runs: &args.runs,
        reference: &args.reference,
        compares: specs.as_ref().is_some_and(Specs::compares),
        newest: args.newest || args.confirmed,
    };
    let Some(specs) = specs else {
        let all = found::all(&wanted, Ok).map_err(misuse)?;
        return spec_of(&args, all.found.into_iter().map(|one| one.own).collect());
    };
    let now = now_s();
    let judge = |one: Found| match one {
        Ok(measured) => specs.judge(&measured, now),
        Err((file, why)) => Ok(Outcome::unreadable(&file, &why, specs.name())),
    };
    let All { found, left_out } = found::all(&wanted, judge).map_err(misuse)?;
    let outcomes: Vec<Outcome> = found
        .into_iter()
        .map(|One { own, earlier }| match args.confirmed {
            false => own,
            // A run that has become unreadable does not count.
            true => {
                let earlier = earlier.into_iter().filter_map(|one| one.made(&wanted, judge).ok().flatten());
                ::check::confirmed(own, earlier)
            }
        })
        .collect();
    refuse(written::crowded(&args, &outcomes))?;
    let verdict = Verdict::of_all(&outcomes);
    let report =
        Report { schema: 1, assay: env!("CARGO_PKG_VERSION").to_string(), verdict, left_out, runs: outcomes };
    // The outcome is printed before files are written, since the disk may be full.
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print_text(&text_of(&report, &args, std::io::stdout().is_terminal()))?;
    }
    let code = match (verdict, args.undecided.as_deref()) {
        (Verdict::CannotTell, Some("pass")) => Verdict::Accept.exit_code(),
        (Verdict::CannotTell, Some("fail")) => Verdict::Reject.exit_code(),
        (verdict, _) => verdict.exit_code(),
    };
    Ok(ExitCode::from(kept(code, &written::all(&args, &report, now))))
}

/// What the runs are checked against; `None` if a spec is written from them.
fn specs(args: &Args) -> anyhow::Result<Option<Specs>> {
    match (&args.spec, &args.spec_dir) {
        (Some(file), _) => Ok(Some(Specs::One(Box::new(LoadedSpec::read(file)?)))),
        (None, Some(folder)) => Ok(Some(Specs::folder(folder)?)),
        (None, None) => Ok(None),
    }
}

fn lint(file: &Path) -> anyhow::Result<ExitCode> {
    let LoadedSpec { spec, .. } = LoadedSpec::read(file).map_err(misuse)?;
    output::print_text(&format!(
        "{}: no mistakes{}\n",
        file.display(),
        if spec.name.is_empty() { String::new() } else { format!(" ({})", spec.name) }
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The outcome of a run that was just measured, shown; its verdict.
pub fn accept(
    loaded: &LoadedSpec,
    diagnosis: &Diagnosis,
    reference: &ReferenceArg,
    file: &Path,
    as_json: bool,
) -> anyhow::Result<Verdict> {
    let name = file.display().to_string();
    let measured = of_run(diagnosis, reference, &name, loaded.compares())?;
    let outcome = loaded.beside(diagnosis.summary(), &name).judge(&measured, now_s())?;
    let text = |terminal: bool| checking::render(&outcome, Shown::First, output::style(terminal));
    match as_json {
        // Standard output is the run's.
        true => output::eprint_as_is(text(std::io::stderr().is_terminal()).trim_end()),
        false => output::print_text(&text(std::io::stdout().is_terminal()))?,
    }
    Ok(outcome.verdict)
}

/// Keys of the series whose demands more passes may decide, in the run so far.
pub fn undecided(loaded: &LoadedSpec, run: &Run, reference: &ReferenceArg) -> Vec<String> {
    let diagnosis = diagnose::diagnose(run.clone());
    let judged = of_run(&diagnosis, reference, "", loaded.compares())
        .and_then(|measured| loaded.judge(&measured, now_s()));
    judged.map_or(Vec::new(), |outcome| outcome.open_series())
}

/// Up to this number of runs, each has a screen.
const SCREENS: usize = 3;

fn text_of(report: &Report, args: &Args, terminal: bool) -> String {
    let shown = match (args.all, args.quiet) {
        (true, _) => Shown::All,
        (_, true) => Shown::Quiet,
        _ => Shown::First,
    };
    let style = output::style(terminal);
    let outcomes = &report.runs;
    let older = match report.left_out.len() {
        // They were checked.
        _ if args.confirmed => String::new(),
        0 => String::new(),
        count => format!("{} left out", diagnose::words::counted(count, "older run")),
    };
    match (args.brief, outcomes.as_slice()) {
        (true, all) => {
            let mut lines: Vec<String> = all.iter().map(|one| checking::brief(one, style)).collect();
            lines.extend((all.len() > 1).then(|| checking::total(all)));
            let last = lines.pop().unwrap_or_default();
            let last =
                if older.is_empty() { last } else { format!("{} ({older})", last.trim_end_matches('.')) };
            lines.into_iter().chain([last]).map(|line| line + "\n").collect()
        }
        (false, all) if all.len() > SCREENS && shown != Shown::All => {
            checking::many(all, &older, shown, style)
        }
        (false, all) => {
            let screens = all.iter().map(|one| checking::render(one, shown, style));
            let older = if older.is_empty() { older } else { format!("  {older}.\n") };
            screens.collect::<Vec<_>>().join("\n") + &older
        }
    }
}

fn now_s() -> f64 {
    jiff::Timestamp::now().as_second() as f64
}

/// Prints a spec written from runs, all of which must be readable.
fn spec_of(args: &Args, found: Vec<Found>) -> anyhow::Result<ExitCode> {
    let all: Result<Vec<Subject>, _> =
        found.into_iter().map(|one| one.map(|measured| measured.subject)).collect();
    let all = all.map_err(|(file, why)| anyhow::anyhow!("{file}: {why}"))?;
    let text = match (args.derive, all.as_slice()) {
        (true, all) => ::check::derived(all, args.margin.unwrap_or(0.05)),
        (false, [one]) => Ok(::check::initial(one, args.margin.unwrap_or(0.10))),
        (false, all) => Err(anyhow::anyhow!(
            "--init takes one run, but {} are given; use --derive with {MIN_RUNS} or more",
            all.len()
        )),
    };
    match text {
        Ok(text) if Spec::read(&text).is_ok_and(|spec| !spec.limits.0.is_empty()) => {
            output::print(&text).map(|()| ExitCode::SUCCESS)
        }
        Ok(_) => {
            eprint_line("assay: no key figure is precise enough for a limit: measure again, or for longer");
            Ok(ExitCode::from(Verdict::NotUsable.exit_code()))
        }
        Err(error) => Err(misuse(error)),
    }
}
