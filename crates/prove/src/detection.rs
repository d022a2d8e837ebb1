//! The tables on what the rules find: faults planted during real measurements on this host, with
//! clean trials between.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fastrand::Rng;
use model::Form;
use model::run_file;
use prove::proof::Rate;
use serde_json::{Value, json};
use statrs::distribution::{Beta, ContinuousCDF};
use stats::ranks::spearman;
use tempfile::TempDir;

use super::Section;
use crate::statistics::{row, titled};

use testkit::host::{self, Group, Hog, RealTime, ShortOfMemory};

pub const SECTIONS: &[Section] =
    &[Section { name: "detection", title: "Faults and the rules that find them", run: detection }];

/// What is measured in each trial: one second to check whether the host is quiet, one of passes.
const BENCH: &str = "syscall.getpid";
const BUDGET: &str = "2s";

/// Trials of each fault and clean ones; `ASSAY_TRIALS` asks for fewer.
const TRIALS: usize = 100;
const SEED: u64 = 4;

/// Rules that name a cause from outside; the others (drift, modes) describe the values. We can
/// neither plant time that the host takes nor keep it away: `steal` is never counted as wrong.
const HOST: &str = "steal";
const CAUSES: [&str; 9] = [
    "background-load",
    "higher-priority",
    "memory-pressure",
    "cpu-quota",
    HOST,
    "swapping",
    "moving-clock",
    "slow-governor",
    "slow-clock",
];

struct Fault {
    name: &'static str,
    made: &'static str,
    /// The rule that must find it.
    rule: &'static str,
    /// Further causes that are as true of it.
    also: &'static [&'static str],
    /// What the rule must make of the measured series.
    verdict: Verdict,
    plant: Plant,
}

enum Plant {
    /// During or around a real run; gets the measured CPU and another one.
    Real(fn(u32, Option<u32>) -> Result<Planted, String>),
    /// Written into the file of a clean run of the same round.
    Replayed(fn(&mut Value, &mut Rng)),
}

/// A fault that stands until this is dropped.
struct Planted {
    _guard: Box<dyn std::any::Any>,
    /// The control group in which to run.
    group: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Verdict {
    Rejected,
    NotTrusted,
    /// This rule has nothing against the series.
    Untouched,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Verdict::Rejected => "rejected",
            Verdict::NotTrusted => "with cause or rejected",
            Verdict::Untouched => "not rejected",
        }
    }

    fn holds(self, results: &Value, rule: &str) -> bool {
        let series = &results["series"][0];
        let verdict = series["verdict"].as_str().unwrap_or("");
        let by_rule = series["reason"].as_str().is_some_and(|reason| reason.contains(rule));
        match self {
            Verdict::Rejected => verdict == "rejected" && by_rule,
            Verdict::NotTrusted => verdict != "trusted" && by_rule,
            Verdict::Untouched => !(verdict == "rejected" && by_rule),
        }
    }
}

const MS: fn(u64) -> Duration = Duration::from_millis;

fn faults() -> Vec<Fault> {
    vec![
        Fault {
            name: "CPU hog on the measured CPU",
            made: "real",
            rule: "background-load",
            also: &[],
            verdict: Verdict::Rejected,
            plant: Plant::Real(|seat, _| planted(hog(seat)?, None)),
        },
        Fault {
            name: "CPU hog on another CPU",
            made: "real",
            rule: "background-load",
            also: &[],
            verdict: Verdict::Untouched,
            plant: Plant::Real(|_, other| planted(hog(other.ok_or("there is only one CPU")?)?, None)),
        },
        Fault {
            name: "SCHED_FIFO neighbour, 5 ms of every 10",
            made: "real",
            rule: "higher-priority",
            also: &["background-load"],
            verdict: Verdict::Rejected,
            plant: Plant::Real(|seat, _| planted(RealTime::on(seat, MS(5), MS(5))?, None)),
        },
        Fault {
            name: "cgroup quota, half a CPU",
            made: "real (version 1)",
            rule: "cpu-quota",
            also: &[],
            verdict: Verdict::Rejected,
            plant: Plant::Real(|_, _| {
                let quota: [(&str, &dyn Display); 2] =
                    [("cpu.cfs_period_us", &50_000), ("cpu.cfs_quota_us", &25_000)];
                let group = Group::new("cpu", &quota)?;
                let folder = group.folder().to_path_buf();
                planted(group, Some(folder))
            }),
        },
        Fault {
            name: "memory pressure: 48 MB for a reader of 256 MB and us",
            made: "real (version 1)",
            rule: "memory-pressure",
            // The reader works.
            also: &["background-load"],
            verdict: Verdict::NotTrusted,
            plant: Plant::Real(|_, _| {
                let short = ShortOfMemory::new()?;
                let folder = short.group.folder().to_path_buf();
                planted(short, Some(folder))
            }),
        },
        Fault {
            name: "clock-changing governor: each visit begins at 0.5 to 0.9 of the clock and rises within 2 to 8 windows",
            made: "replayed",
            rule: "moving-clock",
            also: &["slow-clock"],
            verdict: Verdict::Untouched,
            plant: Plant::Replayed(ramps),
        },
    ]
}

fn planted(guard: impl std::any::Any, group: Option<PathBuf>) -> Result<Planted, String> {
    Ok(Planted { _guard: Box::new(guard), group })
}

fn hog(cpu: u32) -> Result<Hog, String> {
    if host::works("taskset", &["-c", &cpu.to_string(), "true"]) {
        Ok(Hog::on(cpu))
    } else {
        Err("needs taskset".to_string())
    }
}

/// A steady clock for a guest that cannot hold its clock; the times of samples are scaled to it.
const STEADY_GHZ: f64 = 3.0;

/// What a governor that follows the load does to a pass on a steady clock: samples before the rise
/// are slower, as their clock is.
fn ramps(visit: &mut Value, rng: &mut Rng) {
    reclocked(visit, |_| {
        let level = 0.5 + 0.4 * rng.f64();
        let rise = rng.usize(2..=8);
        Box::new(move |index, _| STEADY_GHZ * if index < rise { level } else { 1.0 })
    });
}

/// Every pass's clock at one level: what it did within a pass stays, between passes it is gone.
fn leveled(visit: &mut Value) {
    reclocked(visit, |clocks| {
        let level = stats::order::median(clocks).unwrap_or(STEADY_GHZ);
        Box::new(move |_, ghz| STEADY_GHZ * ghz / level)
    });
}

/// A clock by the sample's number and the clock that was read with it, GHz.
type NewClock = Box<dyn Fn(usize, f64) -> f64>;

/// Gives the samples of each point another clock, made for its own ones, and their times with it.
fn reclocked(visit: &mut Value, mut clock_of: impl FnMut(&[f64]) -> NewClock) {
    for samples in visit["samples"].as_array_mut().into_iter().flatten() {
        let windows = samples["ns"].as_array().map_or(0, Vec::len);
        let column = |column: &Value| -> Vec<f64> {
            let at = |index: usize| match column {
                Value::Array(each) => each[index].as_f64().unwrap_or(f64::NAN),
                same => same.as_f64().unwrap_or(f64::NAN),
            };
            (0..windows).map(at).collect()
        };
        let (ns, ghz) = (column(&samples["ns"]), column(&samples["beside"]["clock_ghz"]));
        let clock = clock_of(&ghz);
        let clocks: Vec<f64> = ghz.iter().enumerate().map(|(index, ghz)| clock(index, *ghz)).collect();
        let ns: Vec<f64> = (0..windows).map(|index| ns[index] * ghz[index] / clocks[index]).collect();
        (samples["ns"], samples["beside"]["clock_ghz"]) = (json!(ns), json!(clocks));
    }
}

/// What became of one fault, or of the clean runs.
#[derive(Default)]
struct Tally {
    found: Rate,
    verdict: Rate,
    wrong: Rate,
    /// How often each rule fired.
    fired: BTreeMap<String, usize>,
    trials: usize,
    unavailable: Option<String>,
}

impl Tally {
    fn take(&mut self, results: &Value) -> Vec<String> {
        let mut fired: Vec<String> = results["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|finding| Some(finding["rule"].as_str()?.to_string()))
            .collect();
        fired.sort();
        fired.dedup();
        self.trials += 1;
        fired.iter().for_each(|rule| *self.fired.entry(rule.clone()).or_default() += 1);
        fired
    }

    fn count(&mut self, fault: &Fault, results: &Value) {
        let fired = self.take(results);
        let true_of_it = |rule: &str| rule == fault.rule || rule == HOST || fault.also.contains(&rule);
        let wrong = fired.iter().find(|rule| CAUSES.contains(&rule.as_str()) && !true_of_it(rule));
        self.found.count(fired.iter().any(|rule| rule == fault.rule));
        let holds = fault.verdict.holds(results, fault.rule);
        self.verdict.count(holds);
        if !holds {
            let series = &results["series"][0];
            eprintln!("{}: the verdict is {}, {}", fault.name, series["verdict"], series["reason"]);
        }
        self.wrong.count(wrong.is_some());
        if let Some(wrong) = wrong {
            eprintln!("{}: {}", fault.name, headline(results, wrong));
        }
    }
}

fn fires(results: &Value, rule: &str) -> bool {
    results["findings"].as_array().into_iter().flatten().any(|finding| finding["rule"] == rule)
}

/// The headline of a rule's finding, for progress messages.
fn headline(results: &Value, rule: &str) -> String {
    let mut findings = results["findings"].as_array().into_iter().flatten();
    let finding = findings.find(|finding| finding["rule"] == rule);
    format!("{rule}: {}", finding.map_or("", |finding| finding["headline"].as_str().unwrap_or("")))
}

fn detection() -> String {
    let asked = std::env::var("ASSAY_TRIALS").ok().and_then(|trials| trials.parse().ok());
    let (trials, faults, mut rng) = (asked.unwrap_or(TRIALS), faults(), Rng::with_seed(SEED));
    let (seat, other) = match seats() {
        Ok(seats) => seats,
        Err(why) => return format!("Not measured here: {why}\n"),
    };
    let mut tallies: Vec<Tally> = faults.iter().map(|_| Tally::default()).collect();
    let (mut clean, mut verdicts) = (Tally::default(), BTreeMap::<String, usize>::new());
    let (mut witnessed, mut on_steady) = (Rate::default(), Rate::default());
    for round in 0..trials {
        // Every fault and a clean run, in another order each round: what the host does meanwhile
        // falls on all alike.
        let mut order: Vec<Option<usize>> = (0..faults.len()).map(Some).chain([None]).collect();
        rng.shuffle(&mut order);
        for turn in order {
            match turn {
                Some(index) => {
                    real_trial(&faults[index], &mut tallies[index], seat, other);
                }
                None => match trial(None) {
                    Ok((results, folder)) => {
                        let fired = clean.take(&results);
                        for rule in &fired {
                            eprintln!("clean: {}", headline(&results, rule));
                        }
                        if fired.iter().any(|rule| rule == "moving-clock") {
                            witnessed.count(goes_with_clock(folder.path()));
                        }
                        let verdict = results["series"][0]["verdict"].as_str().unwrap_or("none").to_string();
                        *verdicts.entry(verdict).or_default() += 1;
                        match replayed(folder.path(), leveled) {
                            Ok(results) => on_steady.count(fires(&results, "moving-clock")),
                            Err(why) => eprintln!("a clean run gave nothing on a steady clock: {why}"),
                        }
                        for (fault, tally) in faults.iter().zip(&mut tallies) {
                            replayed_trial(fault, tally, folder.path(), &mut rng);
                        }
                    }
                    Err(why) => eprintln!("a clean trial gave nothing: {why}"),
                },
            }
        }
        eprintln!("round {} of {trials}", round + 1);
    }
    [of_faults(&faults, &tallies), of_clean_runs(&clean, [witnessed, on_steady], &verdicts)].join("\n")
}

/// The CPU that is measured, and another one where there is one.
fn seats() -> Result<(u32, Option<u32>), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dry = assay(&["--dry-run"], folder.path(), None)?;
    let cpus = dry["plan"][0]["case"]["placement"]["seats"][0]["cpus"].as_str().unwrap_or("");
    let seat: u32 = cpus.parse().map_err(|_| format!("{BENCH} is not placed on one CPU but on {cpus:?}"))?;
    Ok((seat, host::allowed_cpus().iter().find(|cpu| *cpu != seat)))
}

fn real_trial(fault: &Fault, tally: &mut Tally, seat: u32, other: Option<u32>) {
    let Plant::Real(plant) = fault.plant else { return };
    if tally.unavailable.is_some() {
        return;
    }
    match plant(seat, other) {
        Err(why) => tally.unavailable = Some(why),
        Ok(planted) => match trial(planted.group.as_deref()) {
            Ok((results, _)) => tally.count(fault, &results),
            Err(why) => eprintln!("a trial of {} gave nothing: {why}", fault.name),
        },
    }
}

fn replayed_trial(fault: &Fault, tally: &mut Tally, folder: &Path, rng: &mut Rng) {
    let Plant::Replayed(edit) = fault.plant else { return };
    match replayed(folder, |visit| edit(visit, rng)) {
        Ok(results) => tally.count(fault, &results),
        Err(why) => eprintln!("a replay of {} gave nothing: {why}", fault.name),
    }
}

/// One measured case, in a control group if one is given: its results, and its run file's folder.
fn trial(group: Option<&Path>) -> Result<(Value, TempDir), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    Ok((assay(&["--force"], folder.path(), group)?, folder))
}

fn assay(words: &[&str], out: &Path, group: Option<&Path>) -> Result<Value, String> {
    let mut command = Command::new(testkit::program());
    command.args(["run", "--json", "--only", BENCH, "--budget", BUDGET]).args(words).arg("--out").arg(out);
    if let Some(group) = group {
        command = host::inside(group, &command);
    }
    json_of(&mut command)
}

fn json_of(command: &mut Command) -> Result<Value, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The run's file in a folder.
pub fn run_file_of(folder: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut entries = entries.flatten().map(|entry| entry.path());
    let file = entries.find(|path| path.to_string_lossy().ends_with(run_file::EXTENSION));
    file.ok_or("the run left no file".to_string())
}

/// Whether the measured call took longer in samples with a lower clock: evidence for the clock that
/// does not depend on the chain which reads it.
fn goes_with_clock(folder: &Path) -> bool {
    let Some(run) = run_file_of(folder).ok().and_then(|file| run_file::read(&file).ok()) else {
        return false;
    };
    let (mut times, mut clocks) = (Vec::new(), Vec::new());
    for samples in run.visits.iter().flat_map(|visit| &visit.samples) {
        let Some(clock) = &samples.beside.clock_ghz else { continue };
        let values = samples.values(Form::TimePerWork { scale: 1.0 });
        times.extend(values.iter().skip(samples.warm_up));
        clocks.extend((samples.warm_up..samples.len()).map(|index| clock.get(index).unwrap_or(f64::NAN)));
    }
    spearman(&times, &clocks).is_some_and(|found| found.rho < 0.0 && found.p < 0.01)
}

/// What `assay diagnose` reports about the run file in this folder once its passes are changed.
fn replayed(folder: &Path, mut edit: impl FnMut(&mut Value)) -> Result<Value, String> {
    let told = |error: std::io::Error| error.to_string();
    let file = run_file_of(folder)?;
    let text = std::fs::read_to_string(&file).map_err(told)?;
    let mut changed = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        // Of what is rewritten the checksum holds no more, and files of before have none.
        line.as_object_mut().map(|line| line.remove("crc32"));
        if line["visit"].is_object() {
            edit(&mut line["visit"]);
        }
        changed.push_str(&format!("{line}\n"));
    }
    std::fs::write(&file, changed).map_err(told)?;
    json_of(Command::new(testkit::program()).args(["diagnose", "--json"]).arg(&file))
}

fn of_faults(faults: &[Fault], tallies: &[Tally]) -> String {
    let row = |(fault, tally): (&Fault, &Tally)| {
        let mut row = row![fault.name, fault.made, fault.rule];
        match &tally.unavailable {
            Some(why) => {
                row.push(format!("not available here: {why}"));
                row.resize(8, String::new());
            }
            None => {
                let others = tally.fired.iter().filter(|(rule, _)| *rule != fault.rule);
                let others: Vec<String> = others.map(|(rule, count)| format!("{rule} {count}")).collect();
                row.extend([
                    counted(tally.found),
                    interval(tally.found),
                    format!("{}: {}", fault.verdict.words(), counted(tally.verdict)),
                    counted(tally.wrong),
                    if others.is_empty() { "–".to_string() } else { others.join(", ") },
                ]);
            }
        }
        row
    };
    let rows = faults.iter().zip(tallies).map(row);
    let header = "fault | made | rule | found | 95 % interval | verdict as it must be | a cause named that was \
         not there | other rules that fired";
    titled(header, rows)
}

fn of_clean_runs(
    clean: &Tally,
    [witnessed, on_steady]: [Rate; 2],
    verdicts: &BTreeMap<String, usize>,
) -> String {
    let named = |rule: &str| Rate { hits: clean.fired.get(rule).copied().unwrap_or(0), of: clean.trials };
    let others = clean.fired.keys().map(String::as_str).filter(|rule| !CAUSES.contains(rule));
    let rows = CAUSES
        .into_iter()
        .chain(others)
        .map(|rule| vec![rule.to_string(), counted(named(rule)), interval(named(rule))]);
    let verdicts: Vec<String> =
        verdicts.iter().map(|(verdict, count)| format!("{count} {}", verdict.replace('_', " "))).collect();
    format!(
        "{}\nVerdicts of the {} clean runs: {}. Of the clean runs with `moving-clock`, the measured call's own time went with \
         the clock beside it in {} (Spearman's correlation over all windows below zero, p < 0.01): there it did move. The same clean runs, each visit's \
         clock brought to one level (replayed): `moving-clock` fired in {}, {}.\n",
        titled("rule | fired in clean runs | 95 % interval", rows),
        clean.trials,
        verdicts.join(", "),
        counted(witnessed),
        counted(on_steady),
        interval(on_steady)
    )
}

fn counted(rate: Rate) -> String {
    format!("{} of {}", rate.hits, rate.of)
}

/// The interval of Clopper and Pearson (1934): exact, so rather too wide than too narrow.
fn interval(rate: Rate) -> String {
    let (hits, of) = (rate.hits as f64, rate.of as f64);
    if rate.of == 0 {
        return "–".to_string();
    }
    let bound = |a: f64, b: f64, p: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    let low = if rate.hits == 0 { 0.0 } else { bound(hits, of - hits + 1.0, 0.025) };
    let high = if rate.hits == rate.of { 1.0 } else { bound(hits + 1.0, of - hits, 0.975) };
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}
