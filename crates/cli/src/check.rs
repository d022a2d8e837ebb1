//! `assay check`: a run against what is asked of the host.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::references::ReferenceArg;
use super::results::{self, Held};
use super::{files, naming, output};
use ::check::{LEAST_RUNS, Outcome, Subject, Verdict};
use compare::Arm;
use diagnose::Diagnosis;
use diagnose::bottom_line::key_readings;
use report::checking::{self, Shown};
use report::sections::label;
use schemars::JsonSchema;
use serde::Serialize;
use specs::{Measured, Specs};

mod specs;

pub use specs::Asked;

/// Say whether a host is what was asked for: accept, reject or cannot tell
#[derive(clap::Args)]
#[command(after_help = "\
A spec is a TOML file; a demand is a line:
  name = \"db-gen5\"
  [machine]                               # facts by the names of `assay summary`
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
  at_least = \"normal\"                     # of every key figure with a reference
  [limits]                                # key figures by their short names
  dram-latency = { max = \"100 ns\" }
  [[limit]]                               # series by globs
  series = \"memory.bandwidth@all?op=read*\"
  pick = \"best\"                           # best, worst or each
  min = \"320 GB/s\"
  [[limit]]
  series = \"disk.random@*#iops\"
  within = \"10 %\"                         # of the reference's figure, on the worse side
  [reference]
  runs = \"@before\"                        # or a run, or a folder of runs of one host
Examples:
  assay check RUN --init > db.toml        a spec from a good run, with 10 % of room
  assay check good/ --derive > db.toml    a spec from at least eight good runs
  assay check --lint db.toml              whether a spec can be used
  assay check RUN --spec db.toml          one host
  assay check runs/ --spec-dir specs/     each host by the spec whose [machine] it fits
  assay check runs/ --spec db.toml --brief --junit assay.xml    a line each, and JUnit's XML
Exit codes: 0 accepted, 1 rejected, 2 usage, 3 no run can be judged, 4 undecided; of several runs the first of 1, 3, 4, 0 \
that occurs")]
pub struct Args {
    /// Run files, folders of them, or files of summaries
    #[arg(value_name = "RUN", required_unless_present = "lint", value_parser = naming::results())]
    runs: Vec<PathBuf>,
    /// What is asked, as TOML
    #[arg(long, value_name = "FILE", required_unless_present_any = ["spec_dir", "init", "derive", "lint"])]
    spec: Option<PathBuf>,
    /// A folder of specs: each host is held against that of its class
    #[arg(long, value_name = "DIR", conflicts_with_all = ["spec", "init", "derive", "lint"])]
    spec_dir: Option<PathBuf>,
    /// Print a spec made from one run
    #[arg(long, conflicts_with_all = ["spec", "derive", "lint"])]
    init: bool,
    /// Print a spec made from at least eight good runs
    #[arg(long, conflicts_with_all = ["spec", "lint"])]
    derive: bool,
    /// Room of --init and --derive, % [default: 10 and 5]
    #[arg(long, value_name = "PERCENT", value_parser = room)]
    margin: Option<f64>,
    /// Say what is wrong with a spec; judges nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["spec", "runs"])]
    lint: Option<PathBuf>,
    /// Of a pipeline with two outcomes: what undecided counts as, pass or fail
    #[arg(long, value_name = "OUTCOME", value_parser = ["pass", "fail"])]
    undecided: Option<String>,
    #[command(flatten)]
    reference: ReferenceArg,
    /// Every demand with its reason and its key
    #[arg(long, conflicts_with_all = ["brief", "quiet"], help_heading = "Output")]
    all: bool,
    /// A line for each run
    #[arg(long, help_heading = "Output")]
    brief: bool,
    /// The verdict and its sentences only
    #[arg(long, conflicts_with = "brief", help_heading = "Output")]
    quiet: bool,
    /// The outcomes as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write JUnit's XML
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Write the outcomes: a name that ends in .json
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
}

fn room(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|percent| (0.0..100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "room is from 0 to 99 per cent".to_string())
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Report {
    schema: u32,
    assay: String,
    /// Of all runs.
    verdict: Verdict,
    runs: Vec<Outcome>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.lint {
        return lint(file);
    }
    if let Some(out) = args.out.as_ref().filter(|out| out.extension().is_none_or(|ending| ending != "json")) {
        bail!("--out {}: the outcomes are written as JSON; give it a name that ends in .json", out.display());
    }
    let specs = match specs(&args) {
        Ok(specs) => specs,
        Err(error) => return Ok(usage(&error)),
    };
    let found = found(&args, specs.as_ref().is_some_and(Specs::compares))?;
    let Some(specs) = specs else { return written(&args, found) };
    if found.is_empty() {
        output::tell("assay: there is no run that can be judged");
        return Ok(ExitCode::from(Verdict::NotUsable.exit_code()));
    }
    let outcomes = match judged(&specs, &found) {
        Ok(outcomes) => outcomes,
        Err(error) => return Ok(usage(&error)),
    };
    if let Some(file) = &args.junit {
        let text = ::check::junit(&outcomes)?;
        files::write_named(file, |out| Ok(out.write_all(text.as_bytes())?))?;
    }
    let verdict = worst(&outcomes);
    let report = || Report {
        schema: 1,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        verdict,
        runs: outcomes.clone(),
    };
    if let Some(file) = &args.out {
        let text = serde_json::to_string_pretty(&report())?;
        files::write_named(file, |out| Ok(writeln!(out, "{text}")?))?;
    }
    if args.json {
        output::print_json(&report())?;
    } else {
        let shown = match (args.all, args.quiet) {
            (true, _) => Shown::All,
            (_, true) => Shown::Quiet,
            _ => Shown::First,
        };
        show(&outcomes, shown, args.brief)?;
    }
    Ok(ExitCode::from(match (verdict, args.undecided.as_deref()) {
        (Verdict::CannotTell, Some("pass")) => Verdict::Accept.exit_code(),
        (Verdict::CannotTell, Some("fail")) => Verdict::Reject.exit_code(),
        (verdict, _) => verdict.exit_code(),
    }))
}

/// What the runs are held against; `None` where a spec is written from them.
fn specs(args: &Args) -> anyhow::Result<Option<Specs>> {
    match (&args.spec, &args.spec_dir) {
        (Some(file), _) => Ok(Some(Specs::One(Box::new(Asked::read(file)?)))),
        (None, Some(folder)) => Ok(Some(Specs::folder(folder)?)),
        (None, None) => Ok(None),
    }
}

/// A spec that cannot be used is a mistake of usage.
fn usage(error: &anyhow::Error) -> ExitCode {
    output::tell(&format!("assay: {error:#}"));
    ExitCode::from(2)
}

fn lint(file: &Path) -> anyhow::Result<ExitCode> {
    let Asked { spec, .. } = match Asked::read(file) {
        Ok(asked) => asked,
        Err(error) => return Ok(usage(&error)),
    };
    output::print_text(&format!(
        "{}: nothing is wrong with it{}\n",
        file.display(),
        if spec.name.is_empty() { String::new() } else { format!(" ({})", spec.name) }
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The outcomes of a run that was just measured, shown; the exit code.
pub fn accept(
    asked: &Asked,
    diagnosis: &Diagnosis,
    reference: &ReferenceArg,
    file: &Path,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let measured = of_run(diagnosis, reference, &file.display().to_string(), asked.compares())?;
    let outcomes = [asked.judge(&measured, now_s())?];
    match as_json {
        // Standard output is the run's.
        true => output::tell_as_is(
            text_of(&outcomes, Shown::First, false, std::io::stderr().is_terminal()).trim_end(),
        ),
        false => show(&outcomes, Shown::First, false)?,
    }
    Ok(ExitCode::from(worst(&outcomes).exit_code()))
}

fn show(outcomes: &[Outcome], shown: Shown, brief: bool) -> anyhow::Result<()> {
    output::print_text(&text_of(outcomes, shown, brief, std::io::stdout().is_terminal()))
}

fn text_of(outcomes: &[Outcome], shown: Shown, brief: bool, terminal: bool) -> String {
    let style = output::style(terminal);
    let text = outcomes.iter().map(|one| match brief {
        true => checking::brief(one, style) + "\n",
        false => checking::render(one, shown, style),
    });
    text.collect::<Vec<_>>().join(if brief { "" } else { "\n" })
}

fn now_s() -> f64 {
    jiff::Timestamp::now().as_second() as f64
}

fn judged(specs: &Specs, found: &[Found]) -> anyhow::Result<Vec<Outcome>> {
    let now = now_s();
    let outcome = |one: &Found| match one {
        Ok(measured) => specs.judge(measured, now),
        Err((file, why)) => Ok(Outcome::unreadable(file, why, specs.name())),
    };
    found.iter().map(outcome).collect()
}

/// Prints a spec written from runs, all of which must be readable.
fn written(args: &Args, found: Vec<Found>) -> anyhow::Result<ExitCode> {
    let all: Result<Vec<Subject>, _> =
        found.into_iter().map(|one| one.map(|measured| measured.subject)).collect();
    let all = all.map_err(|(file, why)| anyhow::anyhow!("{file}: {why}"))?;
    let text = match (args.derive, all.as_slice()) {
        (true, all) => ::check::derived(all, args.margin.unwrap_or(0.05)),
        (false, [one]) => Ok(::check::initial(one, args.margin.unwrap_or(0.10))),
        (false, all) => Err(anyhow::anyhow!(
            "--init writes a spec from one run, these are {}; from {LEAST_RUNS} or more: --derive",
            all.len()
        )),
    };
    match text {
        Ok(text) => output::print(&text).map(|()| ExitCode::SUCCESS),
        Err(error) => Ok(usage(&error)),
    }
}

/// One rejected host rejects all; what cannot be judged comes before what is undecided.
fn worst(outcomes: &[Outcome]) -> Verdict {
    let order = [Verdict::Reject, Verdict::NotUsable, Verdict::CannotTell];
    let is = |verdict: &Verdict| outcomes.iter().any(|one| one.verdict == *verdict);
    order.into_iter().find(is).unwrap_or(Verdict::Accept)
}

fn of_run(
    diagnosis: &Diagnosis,
    reference: &ReferenceArg,
    file: &str,
    compares: bool,
) -> anyhow::Result<Measured> {
    let readings = key_readings(diagnosis, &reference.references(diagnosis)?);
    let subject = Subject::of_run(diagnosis, readings, file, |judged| label(diagnosis, judged));
    Ok(Measured { subject, arm: compares.then(|| Arm::measured(diagnosis, file)) })
}

/// A run, or the file and why there is none.
type Found = Result<Measured, (String, String)>;

/// All runs that were named. What cannot be read is judged, too: it is no run that passes.
fn found(args: &Args, compares: bool) -> anyhow::Result<Vec<Found>> {
    let mut all = Vec::new();
    for path in results::files(&args.runs)? {
        match found_in(&path, &args.reference, compares) {
            Ok(own) => all.extend(own),
            Err(error) => all.push(Err((path.display().to_string(), format!("{error:#}")))),
        }
    }
    Ok(all)
}

fn found_in(path: &Path, reference: &ReferenceArg, compares: bool) -> anyhow::Result<Vec<Found>> {
    let shown = path.display().to_string();
    if results::is_run(path)? {
        let diagnosis = diagnose::diagnose(results::run(path)?);
        return Ok(vec![Ok(of_run(&diagnosis, reference, &shown, compares)?)]);
    }
    match results::held(path)? {
        Held::Summaries(all) => {
            let of = |one: Result<_, _>| {
                one.map(|(summary, file): (_, String)| Measured {
                    subject: Subject::of_summary(&summary, &file),
                    arm: compares.then(|| Arm::summarised(summary, &file)),
                })
            };
            Ok(all.into_iter().map(of).collect())
        }
        Held::Arms(_) => bail!(
            "it is the result of another tool or a saved report; a spec is held against run files and summaries"
        ),
    }
}
