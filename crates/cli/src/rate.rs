//! `assay rate`: copies of real programs' kernels, and whether they repeat.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;

use super::concluding::Finished;
use super::measure_args::{CHOICES, MeasureArgs, hide};
use super::measuring::{Host, Prepared, Study};
use super::memory_map::size;
use super::output::{eprint_line, refuse_if};
use super::results;
use bench::{self, Benchmark, Candidate, Depth, MapOptions, Plant, RateSuite, Scope};
use diagnose::escalation::{Escalated, Step, of_steps, steps_so_far};
use diagnose::suite::EarlierRun;
use kernels::rate::{COMPONENTS, Component};
use model::units;
use model::vocabulary::memory_map::MAP;
use model::vocabulary::rate::probe::{RATE_ESCALATION, RATE_HISTORY};
use model::{CpuSet, Entry, LAST};
use session::plan;
use stats::repeat::APART;

/// Run a copy of each program on every core: do results repeat?
#[derive(clap::Args)]
#[command(
    mut_args(hide(&CHOICES)),
    after_help = "\
Like SPEC CPU's rate: a copy of each component on every core, with memory on its own node, all started together. \
Every copy checks its answer after each piece of work, so the suite also finds faulty cores.
Each figure is the ratio to one copy on Assay's reference host, and the suite's figure is their geometric mean. The \
report says whether results repeat and where the variance lies: pieces of work, arrays or passes. Earlier runs in \
--out are shown as history.
Takes up to 5 minutes with --quick, else about 25; larger footprints take longer.
Examples:
  assay rate --quick                    the suite in minutes
  assay rate --component bwaves,triad   these components
  assay rate --footprint 12G            12 GiB on each NUMA node, shared by its copies
  assay rate --quick --with-map         as root: do slow runs lie in slow memory?
  assay rate --quick --escalate         repeat with twice the footprint what varies
Exit codes: as of `assay run`"
)]
pub struct Args {
    /// Components, with commas [default: all]
    #[arg(long = "component", value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    components: Vec<String>,
    /// Memory per NUMA node, such as 512M, 12G or max
    #[arg(long, value_name = "SIZE", value_parser = footprint)]
    footprint: Option<Footprint>,
    /// One copy per CPU instead of per core
    #[arg(long, conflicts_with = "cpus")]
    threads: bool,
    /// CPUs to run a copy on, such as 0-3,8
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// NUMA node to use [default: all]
    #[arg(long, value_name = "NODE")]
    node: Option<u32>,
    /// Pieces of work per set of arrays
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    iterations: Option<u64>,
    /// Fresh sets of arrays per pass
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    allocations: Option<u64>,
    /// Double the footprint until memory decides or a node is full
    #[arg(long)]
    escalate: bool,
    /// Map of the memory after the runs (as root, it explains them)
    #[arg(long)]
    with_map: bool,
    /// Memory of the map per node, such as 8G [default: as memmap]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "with_map")]
    map_max: Option<u64>,
    /// Bytes of a chunk of the map (tests on little memory)
    #[arg(long, value_name = "SIZE", hide = true, value_parser = size, requires = "with_map")]
    map_chunk: Option<u64>,
    /// Invented memory of two speeds, such as slow:25%@3 (tests)
    #[arg(long, value_name = "WHAT", hide = true, value_parser = Plant::parse, requires = "with_map")]
    plant: Option<Plant>,
    #[command(flatten)]
    measure: MeasureArgs,
}

fn names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.iter().map(Component::name)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Footprint {
    Bytes(u64),
    Most,
}

/// `512M`, `12G`, `1T` (powers of 1024), `max`.
fn footprint(text: &str) -> Result<Footprint, String> {
    let wrong = || "a footprint is a size such as 512M or 12G, or max".to_string();
    if text == "max" {
        return Ok(Footprint::Most);
    }
    // Without a unit it cannot mean bytes.
    let is_letter = |(_, word): &(f64, &str)| word.len() == 1 && "MGT".contains(&word.to_ascii_uppercase());
    let (number, word) = units::split(text).filter(is_letter).ok_or_else(wrong)?;
    let bytes = number * units::binary(word).ok_or_else(wrong)?;
    (bytes >= (16 << 20) as f64 && bytes < 1e17)
        .then_some(Footprint::Bytes(bytes as u64))
        .ok_or_else(|| "a footprint is at least 16M per node and fits into memory".to_string())
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    let set = CpuSet::parse_list(text).filter(|set| !set.is_empty());
    set.ok_or_else(|| "CPUs are numbers and ranges with commas, such as 0-3,8".to_string())
}

/// Seconds of the suite, memory of a copy, fresh arrays, and pieces of work on each, by profile.
const FORMS: [(Depth, f64, u64, u64, u64); 3] = [
    (Depth::Quick, 270.0, 256, 1, 2),
    (Depth::Standard, 1500.0, 512, 2, 3),
    (Depth::Full, 5400.0, 1024, 2, 3),
];
/// Least memory of every component.
const MIN_MIB: u64 = 16;
/// Rounds of the map behind a suite.
const MAP_ROUNDS: u64 = 9;
/// Above this share of a node's memory, a larger footprint changes nothing.
const FULL: f64 = 0.95;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let why = "assay rate measures the benchmarks rate.*; --component selects some";
    refuse_if(!args.measure.only.is_empty(), why)?;
    let wanted = |bench: &&Benchmark| {
        let name = bench.id.strip_prefix("rate.").unwrap_or_default();
        bench.group() == "rate"
            && (args.components.is_empty() || args.components.iter().any(|one| one == name))
    };
    let benches: Vec<&Benchmark> = bench::all().filter(wanted).collect();
    let first = session(&args, &benches, args.footprint, &[])?;
    if args.escalate { escalate(&args, &benches, first) } else { Ok(first.finished.code) }
}

/// Measures with twice the footprint, again and again, until memory decides each component or a
/// node is full: the components that vary, or if none does, all whose data fill memory.
fn escalate(args: &Args, benches: &[&Benchmark], first: Measured) -> anyhow::Result<ExitCode> {
    let mut last = first;
    loop {
        let code = last.finished.code;
        // An interrupted run is resumed, not enlarged.
        let whole = last.finished.diagnosis.as_ref().filter(|diagnosis| diagnosis.run.summary.is_some());
        let Some(steps) = whole.map(steps_so_far).filter(|steps| !steps.is_empty()) else { return Ok(code) };
        let all = of_steps(&steps);
        let apart = |one: &&Escalated| one.steps.iter().any(|step| step.apart > APART);
        let swinging = all.iter().any(|one| apart(&one));
        let open: Vec<&Escalated> =
            all.iter().filter(|one| !one.is_settled() && (!swinging || apart(one))).collect();
        all.iter().filter(|one| one.is_settled() || one.steps.len() > 1).for_each(|one| {
            eprint_line(&format!("assay: {}", one.words()));
        });
        let most = steps.iter().map(|step| step.node_mib).max().unwrap_or(0) << 20;
        let next = (2 * most).min(last.most_on_a_node);
        if open.is_empty() {
            return Ok(code);
        }
        if (next as f64) < most as f64 / FULL {
            let gib = last.most_on_a_node as f64 / f64::from(1 << 30);
            eprint_line(&format!(
                "assay: at most {gib:.1} GiB per node may be used: no larger footprint fits"
            ));
            return Ok(code);
        }
        let names: Vec<&str> = open.iter().map(|one| one.component()).collect();
        let larger: Vec<&Benchmark> = benches
            .iter()
            .copied()
            .filter(|bench| names.iter().any(|name| bench.id.strip_prefix("rate.") == Some(*name)))
            .collect();
        eprint_line(&format!("assay: repeating {} with {} MiB per node", names.join(", "), next >> 20));
        last = session(args, &larger, Some(Footprint::Bytes(next)), &steps)?;
    }
}

/// A session, and the memory of a node that its copies could use.
struct Measured {
    finished: Finished,
    most_on_a_node: u64,
}

/// One session of the suite; `steps` are those of an escalation before it.
fn session(
    args: &Args,
    benches: &[&Benchmark],
    footprint: Option<Footprint>,
    steps: &[Step],
) -> anyhow::Result<Measured> {
    let form_of = |depth: Depth| FORMS.into_iter().find(|(of, ..)| *of == depth).unwrap_or(FORMS[1]);
    let usual = args.measure.profile_within(|usual| form_of(usual.depth).1)?;
    let (.., mib, allocations, iterations) = form_of(usual.depth);
    let suite = RateSuite {
        mib,
        allocations: args.allocations.unwrap_or(allocations),
        iterations: args.iterations.unwrap_or(iterations),
        threads: args.threads,
        cpus: args.cpus.clone(),
        node: args.node,
        experiments: true,
        plant: args.plant,
    };
    let host = Host::describe(&args.measure, &Prepared::default())?;
    let mut profile = plan::Profile {
        // What a quick suite may touch is for its footprint to say.
        depth: Depth::Full,
        passes_min: usual.passes_min.min(6),
        precision: usual.precision.max(0.02),
        ..usual
    };
    let scope = host.scope(&profile, false);
    let suite = fitted(suite, footprint, &scope);
    let (copies, on_a_node) = bench::rate_copies(&scope, &suite);
    let most_on_a_node = scope.memory_bytes / copies.max(1) * on_a_node;
    let map = args.with_map.then(|| bench::find(&MAP)).flatten();
    let needs = |candidates: &[Candidate]| -> f64 {
        candidates.iter().map(|candidate| profile.seconds_of(candidate.seconds)).sum()
    };
    if args.measure.budget.is_none() {
        let all = benches.iter().flat_map(|bench| bench::rate_cases(bench, &scope, &suite));
        let suite_s = if footprint.is_some() { needs(&all.collect::<Vec<_>>()) * 1.2 } else { 0.0 };
        let map_s = map.map_or(0.0, |map| needs(&map_cases(args, map, &scope)));
        profile.budget_s = profile.budget_s.max(suite_s) + map_s;
    }
    let history = history(&args.measure.out(), &args.measure.naming.settle(&host.machine)?.host);
    let steps: String =
        steps.iter().filter_map(|step| serde_json::to_string(step).ok()).map(|line| line + "\n").collect();
    let study = Study::of(profile, benches.iter().copied().chain(map).collect())
        .choosing(|_, scope, _| {
            let suite = benches.iter().flat_map(|bench| bench::rate_cases(bench, scope, &suite));
            suite.chain(map.into_iter().flat_map(|map| map_cases(args, map, scope))).collect()
        })
        .amending(|header| {
            let mut add = |probe: &str, text: &str| {
                header.snapshot.entries.insert(probe.to_string(), Entry::Text(text.to_string()))
            };
            add(RATE_HISTORY, &history);
            if !steps.is_empty() {
                add(RATE_ESCALATION, &steps);
            }
        });
    Ok(Measured { finished: study.measure(&args.measure)?, most_on_a_node })
}

/// The map after the suite, when all runs have given their memory back.
fn map_cases(args: &Args, map: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let wish = MapOptions {
        max: args.map_max,
        node: args.node,
        rounds: MAP_ROUNDS,
        chunk: args.map_chunk,
        looks: false,
        plant: args.plant,
        plant_places: true,
        ..MapOptions::default()
    };
    let mut cases = bench::map_cases(map, scope, &wish);
    for candidate in &mut cases {
        candidate.case.inputs.insert(LAST.to_string(), "yes".to_string());
    }
    cases
}

/// The suite with the memory per copy that was asked for, or that there is.
fn fitted(suite: RateSuite, footprint: Option<Footprint>, scope: &Scope) -> RateSuite {
    let (copies, on_a_node) = bench::rate_copies(scope, &suite);
    let most = (scope.memory_bytes / copies.max(1)) >> 20;
    let mib = match footprint {
        Some(Footprint::Most) => most,
        // The plan refuses more than there is.
        Some(Footprint::Bytes(bytes)) => (bytes / on_a_node.max(1)) >> 20,
        None => suite.mib.min(most),
    };
    RateSuite { mib: mib.max(MIN_MIB), ..suite }
}

/// Most files of earlier suites that are read as history.
const MAX_HISTORY: usize = 200;

/// The results of this host's complete runs in a folder, a line each.
fn history(out: &Path, host: &str) -> String {
    let Ok(entries) = std::fs::read_dir(out) else { return String::new() };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    files.sort();
    let latest = files.iter().rev().take(MAX_HISTORY).rev();
    latest.filter_map(|file| past_of(file, host)).filter_map(|past| serde_json::to_string(&past).ok()).fold(
        String::new(),
        |mut text, line| {
            text.push_str(&line);
            text.push('\n');
            text
        },
    )
}

fn is_run(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(".assay.jsonl"))
}

fn past_of(file: &Path, host: &str) -> Option<EarlierRun> {
    let run = results::read(file).ok()?;
    let summary = run.summary.as_ref()?;
    if run.header.pretend.is_some() || run.header.host != host {
        return None;
    }
    let rates = summary
        .series
        .iter()
        .filter(|series| series.key.starts_with("rate.") && series.key.ends_with("#rate"));
    let medians: BTreeMap<String, f64> =
        rates.filter_map(|series| Some((series.key.clone(), series.median?))).collect();
    (!medians.is_empty()).then(|| EarlierRun {
        started: run.header.started.clone(),
        boot_id: run.header.boot_id.clone(),
        uptime_s: run.header.uptime_s,
        medians,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprints() {
        assert_eq!(footprint("12G"), Ok(Footprint::Bytes(12 << 30)));
        assert_eq!(footprint("0.5g"), Ok(Footprint::Bytes(512 << 20)));
        assert_eq!(footprint("max"), Ok(Footprint::Most));
        for wrong in ["", "12", "G", "1M", "-3G", "12GB", "nanG", "9e9T", "é"] {
            assert!(footprint(wrong).is_err(), "{wrong}");
        }
    }
}
