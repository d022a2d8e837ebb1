//! `assay check`: a run against what is asked of the host.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::references::ReferenceArg;
use super::results::{self, Held};
use super::{files, naming, output};
use ::check::{LEAST_RUNS, Outcome, Spec, Subject, Verdict};
use compare::Arm;
use diagnose::Diagnosis;
use diagnose::bottom_line::key_readings;
use model::Run;
use model::run_file::EXTENSION;
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
  series = \"memory.bandwidth@all+huge-pages?op=read/bytes=134217728\"    # keys: assay check --all
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
    #[arg(long, value_name = "FILE", conflicts_with = "spec_dir")]
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Write the outcomes: a name that ends in .json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["init", "derive", "lint"], help_heading = "Output")]
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
    if args.spec.is_none() && args.spec_dir.is_none() && !args.init && !args.derive {
        return Ok(usage(&anyhow::anyhow!(
            "nothing says what is asked of the host: name a spec by --spec FILE, or a folder of specs by --spec-dir DIR; \
             --init writes one from this run"
        )));
    }
    if let Some(why) = clash(&args) {
        return Ok(usage(&anyhow::anyhow!(why)));
    }
    let specs = match specs(&args) {
        Ok(specs) => specs,
        Err(error) => return Ok(usage(&error)),
    };
    let found = match found(&args, specs.as_ref().is_some_and(Specs::compares)) {
        Ok(found) => found,
        Err(error) => return Ok(usage(&error)),
    };
    let Some(specs) = specs else { return written(&args, found) };
    let outcomes = match judged(&specs, &found) {
        Ok(outcomes) => outcomes,
        Err(error) => return Ok(usage(&error)),
    };
    let verdict = worst(&outcomes);
    let report = || Report {
        schema: 1,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        verdict,
        runs: outcomes.clone(),
    };
    // The outcome is told before files are written, since the disk may be full.
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
    let code = match (verdict, args.undecided.as_deref()) {
        (Verdict::CannotTell, Some("pass")) => Verdict::Accept.exit_code(),
        (Verdict::CannotTell, Some("fail")) => Verdict::Reject.exit_code(),
        (verdict, _) => verdict.exit_code(),
    };
    Ok(ExitCode::from(kept(code, &[files_of(&args, &outcomes), out_of(&args, &report())])))
}

/// The exit code of an outcome of which files were to be kept: that of what is accepted and could
/// not be written down is that of an error, every other one stays.
pub fn kept(code: u8, written: &[anyhow::Result<()>]) -> u8 {
    let failed = || written.iter().filter_map(|one| one.as_ref().err());
    failed().for_each(|error| output::tell(&format!("assay: {error:#}")));
    if code == 0 && failed().next().is_some() { 3 } else { code }
}

fn files_of(args: &Args, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let Some(file) = &args.junit else { return Ok(()) };
    let text = ::check::junit(outcomes)?;
    files::write_named(file, |out| Ok(out.write_all(text.as_bytes())?))
}

fn out_of(args: &Args, report: &Report) -> anyhow::Result<()> {
    let Some(file) = &args.out else { return Ok(()) };
    let text = serde_json::to_string_pretty(report)?;
    files::write_named(file, |out| Ok(writeln!(out, "{text}")?))
}

/// Why what is written would take the place of what is read, or of the other thing written.
fn clash(args: &Args) -> Option<String> {
    let place = |path: &PathBuf| {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = || Some(above.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(beside)
    };
    let is_file = |path: &PathBuf| path.is_file() || !path.exists();
    let outputs = [("--junit", &args.junit), ("--out", &args.out)];
    let outputs: Vec<(&str, &PathBuf)> = outputs
        .into_iter()
        .filter_map(|(name, path)| Some((name, path.as_ref().filter(|path| is_file(path))?)))
        .collect();
    let specs = args.spec_dir.iter().flat_map(|folder| specs::of_folder(folder).unwrap_or_default());
    let read = args.spec.iter().cloned().chain(specs).chain(args.runs.iter().cloned());
    let read: Vec<PathBuf> = read.filter_map(|path| place(&path)).collect();
    let is_read = |path: &PathBuf| place(path).is_some_and(|own| read.contains(&own));
    if let Some((name, path)) = outputs.iter().find(|(_, path)| is_read(path)) {
        return Some(format!("{name} {}: it is what is read: name another file", path.display()));
    }
    match outputs.as_slice() {
        [(_, one), (_, other)] if place(one).is_some() && place(one) == place(other) => {
            Some(format!("--junit and --out both name {}: give each a file of its own", one.display()))
        }
        _ => None,
    }
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

/// The outcome of a run that was just measured, shown; its verdict.
pub fn accept(
    asked: &Asked,
    diagnosis: &Diagnosis,
    reference: &ReferenceArg,
    file: &Path,
    as_json: bool,
) -> anyhow::Result<Verdict> {
    let measured = of_run(diagnosis, reference, &file.display().to_string(), asked.compares())?;
    let outcomes = [asked.judge(&measured, now_s())?];
    match as_json {
        // Standard output is the run's.
        true => output::tell_as_is(
            text_of(&outcomes, Shown::First, false, std::io::stderr().is_terminal()).trim_end(),
        ),
        false => show(&outcomes, Shown::First, false)?,
    }
    Ok(worst(&outcomes))
}

/// Keys of the series of a run so far on which demands rest that further visits may decide. What
/// cannot be judged yet says so in the end.
pub fn undecided(asked: &Asked, run: &Run, reference: &ReferenceArg) -> Vec<String> {
    let diagnosis = diagnose::diagnose(run.clone());
    let judged = of_run(&diagnosis, reference, "", asked.compares())
        .and_then(|measured| asked.judge(&measured, now_s()));
    judged.map_or(Vec::new(), |outcome| outcome.open_series())
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
    let text = text.collect::<Vec<_>>().join(if brief { "" } else { "\n" });
    match brief && outcomes.len() > 1 {
        true => text + &total(outcomes) + "\n",
        false => text,
    }
}

/// What several runs come to: `3 runs: REJECT: 1 accepted, 2 rejected.`
fn total(outcomes: &[Outcome]) -> String {
    let count = |verdict: Verdict, word: &str| {
        let count = outcomes.iter().filter(|one| one.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {word}"))
    };
    let counts = [
        count(Verdict::Accept, "accepted"),
        count(Verdict::Reject, "rejected"),
        count(Verdict::NotUsable, "not usable"),
        count(Verdict::CannotTell, "undecided"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    format!("{} runs: {}: {}.", outcomes.len(), worst(outcomes).words(), counts.join(", "))
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
        Ok(text) if Spec::read(&text).is_ok_and(|spec| !spec.limits.0.is_empty()) => {
            output::print(&text).map(|()| ExitCode::SUCCESS)
        }
        Ok(_) => {
            output::tell(
                "assay: no key figure is known well enough for a limit: measure again, or for longer",
            );
            Ok(ExitCode::from(Verdict::NotUsable.exit_code()))
        }
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
    let references = reference.references(diagnosis).map_err(Unreadable)?;
    let readings = key_readings(diagnosis, &references);
    let subject = Subject::of_run(diagnosis, readings, file, |judged| label(diagnosis, judged));
    Ok(Measured { subject, arm: compares.then(|| Arm::measured(diagnosis, file)) })
}

/// A run, or the file and why there is none.
type Found = Result<Measured, (String, String)>;

/// Why what `--reference` names cannot be used, which is no fault of a run.
#[derive(Debug)]
struct Unreadable(anyhow::Error);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// All runs that were named. What cannot be read is judged, too: it is no run that passes. An error
/// is one of the reference.
fn found(args: &Args, compares: bool) -> anyhow::Result<Vec<Found>> {
    let mut all = Vec::new();
    for named in &args.runs {
        let shown = |path: &Path| path.display().to_string();
        let files = match results::files(std::slice::from_ref(named)) {
            Ok(files) => files,
            Err(error) => {
                all.push(Err((shown(named), format!("{error:#}"))));
                continue;
            }
        };
        if files.is_empty() {
            all.push(Err((shown(named), format!("the folder holds no run ({EXTENSION})"))));
        }
        for path in files {
            match found_in(&path, &args.reference, compares) {
                Ok(own) => all.extend(own),
                Err(error) if error.is::<Unreadable>() => return Err(error),
                Err(error) => all.push(Err((shown(&path), format!("{error:#}")))),
            }
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
