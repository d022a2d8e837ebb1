//! `assay utilization`: real core use on hosts with SMT, live or from a recording.

mod show;
mod source;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::machine::{live_snapshot, saved_snapshot};
use super::margin::MarginArg;
use super::output::{self, eprint_line, refuse_if};
use super::{files, results};
use diagnose::{self, capacity::yield_of_study};
use machine::Machine;
use model::units;
use stats::smt::{ObservedUse, POSSIBLE, USUAL, Watch, Yield};
use sys::clock::cpu_ms;
use sys::counters::ticks_per_second;

use show::Assumed;
pub use show::Report;
use source::{Cores, Live};

/// Show real core use and headroom on a host with SMT
#[derive(clap::Args)]
#[command(after_help = "\
Reads /proc/stat only and changes nothing. `assay explain utilization` has the formula and its assumptions.
A recording is a series of copies of /proc/stat, each beginning with its line `cpu `, with an optional line before \
it: the time in seconds. --record writes one, with the siblings noted. A shell can, too; then add --machine or \
--siblings:
  while sleep 0.02; do date +%s.%N; grep ^cpu /proc/stat; done > FILE
Examples:
  assay utilization                                  the next 5 seconds
  assay utilization --study assay-out/x.assay.jsonl  with the yield that `assay smt` measured
  assay utilization --load 1200 --margin 30          how many more fit at 1200/s, 30 % kept free
  assay utilization --seconds 60 --record day.stat   keep a recording
  assay utilization --from day.stat --json           read it, on any host
  assay utilization --watch --seconds 15 --prometheus /var/lib/node_exporter/textfile/assay.prom
Exit codes: 0; 2 usage; 3 nothing can be read; 130 interrupted (results so far are shown), but 0 with --watch")]
pub struct Args {
    /// Seconds to watch, with --watch per line
    #[arg(long, value_name = "N", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Time between two readings [default: 20ms, or as recorded]
    #[arg(long, value_name = "TIME", value_parser = every)]
    every: Option<Duration>,
    /// One line each --seconds, until Ctrl-C
    #[arg(long, conflicts_with = "from")]
    watch: bool,
    /// Recording to read instead of this host (.gz, too)
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// New file for a recording
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    record: Option<PathBuf>,
    /// Snapshot of the recorded host, for its siblings (machine --save)
    #[arg(long, value_name = "FILE", conflicts_with = "siblings", requires = "from")]
    machine: Option<PathBuf>,
    /// CPUs that share a core, as 0,32/1,33, or none
    #[arg(long, value_name = "CPUS", value_parser = Siblings::parse)]
    siblings: Option<Siblings>,
    /// Work of all siblings over that of one: 1.3, or 1.1..1.6
    #[arg(long = "yield", value_name = "S", value_parser = a_yield, conflicts_with = "study")]
    yields: Option<Yield>,
    /// Run of `assay smt` to take the yield from
    #[arg(long, value_name = "RUN")]
    study: Option<PathBuf>,
    /// Clock with few cores busy over the clock with all
    #[arg(long, value_name = "RATIO", default_value = "1", value_parser = turbo)]
    turbo: f64,
    #[command(flatten)]
    margin: MarginArg,
    /// Today's load in your unit, such as requests/s
    #[arg(long, value_name = "N", value_parser = load)]
    load: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// File of metrics for Prometheus' node exporter (- prints them)
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Root of the /proc to read
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
}

#[derive(Clone)]
struct Siblings(Cores);

impl Siblings {
    fn parse(text: &str) -> Result<Siblings, String> {
        source::siblings(text).map(Siblings)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = units::duration(text).ok().filter(|time| (0.01..=1e7).contains(&time.as_secs_f64()));
    time.ok_or_else(|| "a number of seconds from 0.01, such as 5".to_string())
}

fn every(text: &str) -> Result<Duration, String> {
    let time = units::duration(text).ok();
    time.filter(|time| (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(time))
        .ok_or_else(|| "a time from 1ms to a day, such as 20ms or 1s".to_string())
}

fn a_yield(text: &str) -> Result<Yield, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (number(low), number(high)),
        None => (number(text), number(text)),
    };
    let found = low.zip(high).and_then(|(low, high)| Yield::between(low, high));
    found.ok_or_else(|| {
        format!(
            "a number from {} to {} such as 1.3, or a range such as 1.1..1.6",
            POSSIBLE.start(),
            POSSIBLE.end()
        )
    })
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok().filter(|load| (1e-9..=1e15).contains(load));
    load.ok_or_else(|| "a number above 0, such as 6 or 1200.5".to_string())
}

fn turbo(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| (1.0..=4.0).contains(ratio));
    ratio.ok_or_else(|| "a ratio of clocks of 1–4, such as 1.15".to_string())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let prints = args.prometheus.as_deref() == Some(Path::new("-"));
    let why = "--json and --prometheus - both print to standard output: use one of them";
    refuse_if(prints && args.json, why)?;
    let every_s = args.every.map(|every| every.as_secs_f64());
    let is_one_look = args.from.is_none() && args.every.is_some_and(|every| every > args.seconds);
    let why = "--every is longer than --seconds: shorten it, as two readings are needed";
    refuse_if(is_one_look, why)?;
    let assumed = assumed(&args)?;
    match &args.from {
        Some(path) => recorded(path, &args, &assumed, every_s),
        None => live(&args, &assumed),
    }
}

fn assumed(args: &Args) -> anyhow::Result<Assumed> {
    let (s, from) =
        match (&args.yields, &args.study) {
            (Some(s), _) => (*s, "as given".to_string()),
            (None, Some(path)) => {
                let diagnosis = diagnose::diagnose(results::run(path)?);
                let s = yield_of_study(&diagnosis).with_context(|| {
                let shown = path.display();
                match diagnosis.run.damage.len() {
                    0 => format!(
                        "{shown} has no yield: give a run of `assay smt` with full load on one sibling and \
                          on both"
                    ),
                    _ => format!("{shown} is damaged and has no yield left: use another copy, or measure \
                      again"),
                }
            })?;
                of_study(s, path)
            }
            (None, None) => (USUAL, "not measured on this host: `assay smt` does it".to_string()),
        };
    Ok(Assumed { s, from, turbo: args.turbo, free: args.margin.free(), load: args.load })
}

/// The yield of a study and its source; with one kind of work, the usual range is used as well.
fn of_study((s, kinds): (Yield, Vec<String>), path: &Path) -> (Yield, String) {
    let shown = path.display();
    match kinds.as_slice() {
        [only] => (
            Yield { lo: s.lo.min(USUAL.lo), hi: s.hi.max(USUAL.hi), ..s },
            format!("{shown} measured {only} only; other work is usually in this range"),
        ),
        several => (s, format!("from {shown}, {} kinds of work: {}", several.len(), several.join(", "))),
    }
}

fn recorded(path: &Path, args: &Args, assumed: &Assumed, every_s: Option<f64>) -> anyhow::Result<ExitCode> {
    let given = match (&args.siblings, &args.machine) {
        (Some(Siblings(cores)), _) => Some(cores.clone()),
        (None, Some(file)) => {
            let told = source::cores_of(&Machine::from(&saved_snapshot(file)?));
            Some(told.with_context(|| format!("{} does not say which CPUs share a core", file.display()))?)
        }
        (None, None) => None,
    };
    let watch = |noted: Option<&str>| {
        let cores = match (given, noted) {
            (Some(cores), _) => cores,
            (None, Some(noted)) => source::siblings(noted).map_err(anyhow::Error::msg)?,
            (None, None) => bail!(
                "/proc/stat does not say which CPUs share a core: add --machine FILE (from `assay machine \
                  --save FILE` there), --siblings 0,32/1,33 or --siblings none"
            ),
        };
        Ok(Watch::new(cores, UNIT_S, every_s))
    };
    let (mut watch, recording) = source::replay(path, watch)
        .map_err(|error| anyhow!(results::about(&path.display().to_string(), &format!("{error:#}"))))?;
    let mut seen = watch.seen();
    if recording.damaged > 0 {
        let damaged = recording.damaged;
        let of = recording.looks + damaged;
        seen.remarks.insert(
            0,
            format!("{damaged} of {of} copies of /proc/stat are cut or damaged and were left out"),
        );
    }
    if let Some(wrong) = wrong_time(&seen) {
        // Times that the copies have themselves may be rough; one that was given by hand is a
        // mistake.
        match args.every {
            Some(_) => bail!("{}: {wrong}; leave out --every to use the counters", path.display()),
            None => seen.remarks.push(wrong),
        }
    }
    let report = Report::of(&path.display().to_string(), &seen, assumed, None);
    let report =
        report.with_context(|| format!("{} covers no time: {}", path.display(), seen.remarks.join("; ")))?;
    present(&report, args)?;
    Ok(ExitCode::SUCCESS)
}

/// /proc/stat counts in hundredths of a second on all hosts that Linux runs on today.
const UNIT_S: f64 = 0.01;

/// A remark if the times of readings do not fit the counters.
fn wrong_time(seen: &ObservedUse) -> Option<String> {
    let ratio = seen.counted_s / seen.seconds;
    (seen.counted_s > 0.2 && !(0.8..=1.25).contains(&ratio)).then(|| {
        format!(
            "the copies' times span {:.2} s, the CPUs' counters {:.2} s: shares use the former",
            seen.seconds, seen.counted_s
        )
    })
}

fn live(args: &Args, assumed: &Assumed) -> anyhow::Result<ExitCode> {
    let machine = Machine::from(&live_snapshot(&args.root));
    let host = machine.host.clone().unwrap_or_else(|| "this host".to_string());
    let cores = match &args.siblings {
        Some(Siblings(cores)) => cores.clone(),
        None => source::cores_of(&machine).context(
            "this kernel does not report which CPUs share a core: add --siblings 0,32/1,33 or --siblings \
              none",
        )?,
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second one ends at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot catch signals")?;
    }
    let mut live = Live::new(&args.root, args.every.unwrap_or(EVERY), stop);
    if let Some(path) = &args.record {
        live.record(path, &cores)?;
    }
    let mut watch = Watch::new(cores, 1.0 / ticks_per_second(), None);
    let mut end = Duration::ZERO;
    loop {
        end += args.seconds;
        let before = cpu_ms().ok();
        live.until(end, &mut watch)?;
        let seen = watch.seen();
        let spent = before.zip(cpu_ms().ok()).map(|(before, after)| (after - before) / 1e3 / seen.seconds);
        let report = Report::of(&host, &seen, assumed, spent.filter(|cost| cost.is_finite()));
        match report {
            Some(report) => present(&report, args)?,
            None if live.stopped() => eprint_line("assay: interrupted before the second reading: no result"),
            None => bail!("cannot measure CPU use: /proc/stat does not advance: {}", seen.remarks.join("; ")),
        }
        match (live.stopped(), args.watch) {
            (true, false) => return Ok(ExitCode::from(130)),
            (true, true) | (false, false) => return Ok(ExitCode::SUCCESS),
            (false, true) => {}
        }
    }
}

/// Twice the unit of the counters: shorter windows have no information.
const EVERY: Duration = Duration::from_millis(20);

fn present(report: &Report, args: &Args) -> anyhow::Result<()> {
    let to_stdout = match &args.prometheus {
        Some(path) if path == Path::new("-") => {
            output::print(&report.prometheus())?;
            true
        }
        Some(path) => {
            let text = report.prometheus();
            files::write_named(path, |file| Ok(file.write_all(text.as_bytes())?))?;
            false
        }
        None => false,
    };
    match (args.json, args.watch, to_stdout) {
        (true, true, _) => output::print(&format!("{}\n", serde_json::to_string(report)?)),
        (true, false, _) => output::print_json(report),
        (false, _, true) => {
            eprint_line(&report.headline());
            Ok(())
        }
        (false, true, false) => output::print_text(&format!("{}\n", report.line())),
        (false, false, false) => {
            output::print_text(&report.text(output::style(std::io::stdout().is_terminal()).width))
        }
    }
}
