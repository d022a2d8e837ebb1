//! `assay run`: evaluate this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use super::check;
use super::device::DeviceArgs;
use super::disk::DiskArgs;
use super::margin::MarginArg;
use super::measure_args::MeasureArgs;
use super::measuring::{Host, measure_study_of};
use super::naming::OUTPUT;
use super::network::NetworkArgs;
use super::nexmark::{FLINK as FLINK_OPTIONS, FlinkArgs, Found};
use super::output;
use bench::{self, Benchmark, Candidate, NETWORK, Scope};
use model::vocabulary::nexmark::probe::FLINK;
use model::{Entry, Header};
use session::plan::{self, Profile};

/// Evaluate this machine: measure, judge, report
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay run --quick                       the essentials in 90 s
  assay run --only memory --only ipc.pipe the memory group and one benchmark
  assay run --only nexmark                Flink under rising load (`assay setup flink` first), in 5 minutes
  assay run --only disk --dir /var/lib/db the disk below that directory, by files of our own
  assay run --only disk --dir /data --block 4k --depth 1,32
                                         the disk below a directory, by blocks and depths of your own
  assay run --only disk --device /dev/vdb a whole device, which is only read
  assay run --only network --to HOST      bandwidth and latency to a host where `assay serve` runs
  assay run --dry-run                     what would be done, and how long it would take
  assay run --accept db.toml              whether the host is what was asked for (`assay check --help`)
  assay run --json > result.json          for programs
A run ends with its budget, or early where no more visits would bring a figure within what is asked. The same command goes on with an interrupted run: Ctrl-C or kill -9 costs it at most the visit that is being measured, a power \
cut what was measured since the last pass ended or in the last 10 s.
Exit codes: 0 measured, 1 finding at or above --fail-on, 2 usage, 3 an error (a full disk at the end: results are shown \
first) or nothing valid measured, 130 interrupted")]
pub struct Args {
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    raw: DeviceArgs,
    #[command(flatten)]
    disk: DiskArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    flink: FlinkArgs,
    #[command(flatten, next_help_heading = FLINK_OPTIONS)]
    margin: MarginArg,
    /// Hold the host against a spec in the end, as `assay check` does, whose exit code it has; what
    /// decides its limits is measured before all else, until they are decided or the budget is over
    #[arg(long, value_name = "SPEC", conflicts_with = "fail_on", help_heading = OUTPUT)]
    accept: Option<PathBuf>,
}

pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    let profile = args.measure.profile()?.in_rounds();
    match args.accept.as_deref().map(check::Asked::read).transpose() {
        Ok(asked) => {
            if let Some(why) = asked.as_ref().and_then(|asked| asked.refuses(profile.name)) {
                output::tell(&format!("assay: {why}"));
                return Ok(ExitCode::from(2));
            }
            args.measure.accept = asked.map(Box::new);
        }
        Err(error) => {
            output::tell(&format!("assay: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    }
    let benches = match plan::select(&args.measure.only, profile.depth) {
        Ok(benches) => benches,
        // A name that does not exist is a mistake of usage.
        Err(error) => {
            output::tell(&format!("assay: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    };
    if args.raw.any() && benches.iter().any(|bench| bench.group() != "disk") {
        output::tell("assay: --device belongs to the disk rows alone: add --only disk, or some of them");
        return Ok(ExitCode::from(2));
    }
    if let Some(why) = args.disk.refused(&benches) {
        output::tell(&format!("assay: {why}"));
        return Ok(ExitCode::from(2));
    }
    match args.raw.settle(args.measure.dry_run) {
        Ok(device) => args.measure.device = device.map(Box::new),
        Err(error) => {
            output::tell(&format!("assay: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    }
    let networked = benches.iter().any(|bench| bench.group() == NETWORK);
    if args.network.any() && !networked {
        output::tell(
            "assay: --to, --rate, --congestion and --streams belong to the network rows: add --only network",
        );
        return Ok(ExitCode::from(2));
    }
    if let Some(why) = args.network.refused() {
        output::tell(&format!("assay: {why}"));
        return Ok(ExitCode::from(2));
    }
    if networked && args.measure.pretend.is_none() {
        args.measure.network = Some(Box::new(args.network.settle(args.measure.dry_run)?));
    }
    let on_flink = |bench: &&&Benchmark| bench.group() == bench::NEXMARK;
    match benches.iter().filter(on_flink).count() {
        0 if args.flink.any() || args.margin.given() => {
            output::tell(
                "assay: --flink-home, --java, --jobmanager, --nexmark-jar, --flink-port and --margin belong to nexmark: add \
                 --only nexmark",
            );
            Ok(ExitCode::from(2))
        }
        0 => {
            let study =
                |candidates: Vec<Candidate>, scope: &Scope, _: &Host| args.disk.supply(candidates, scope);
            measure_study_of(&args.measure, profile, &benches, &study, &|_| {})
        }
        // Who asks for nothing else wants to know at once what is missing.
        some => with_flink(&args, profile, &benches, some == benches.len() || args.flink.any()),
    }
}

fn with_flink(
    args: &Args,
    mut profile: Profile,
    benches: &[&Benchmark],
    needed: bool,
) -> anyhow::Result<ExitCode> {
    if args.measure.budget.is_none() {
        profile = profile.with_own_budget(benches);
    }
    // Invented samples need no cluster.
    let found = match args.measure.pretend {
        Some(_) => None,
        None => Some(args.flink.find()),
    };
    let found = match found {
        Some(Err(error)) if needed => return Err(error),
        found => found,
    };
    let supplied = |candidates: Vec<Candidate>, scope: &Scope, _: &Host| {
        let mut all = supplied(&found, candidates, scope);
        for candidate in all.iter_mut().filter(|one| bench::is_nexmark(&one.case)) {
            candidate.case.inputs.insert(bench::MARGIN.to_string(), args.margin.percent().to_string());
        }
        args.disk.supply(all, scope)
    };
    let amend = |header: &mut Header| {
        if let Some(Ok(found)) = &found {
            header.snapshot.entries.insert(FLINK.to_string(), Entry::Text(found.told.clone()));
        }
    };
    measure_study_of(&args.measure, profile, benches, &supplied, &amend)
}

fn supplied(
    found: &Option<anyhow::Result<Found>>,
    candidates: Vec<Candidate>,
    scope: &Scope,
) -> Vec<Candidate> {
    match found {
        None => candidates,
        Some(Ok(found)) => {
            let all = found.flink.supply(candidates, scope);
            for candidate in all.iter().filter(|one| one.unmet.is_none() && bench::shares_its_cpus(&one.case))
            {
                output::tell(&format!(
                    "  {}: no CPU is left for the JobManager and the driver; they use the TaskManager's",
                    candidate.case.key()
                ));
            }
            all
        }
        Some(Err(why)) => {
            let mut all = candidates;
            for candidate in all.iter_mut().filter(|one| bench::is_nexmark(&one.case)) {
                candidate.unmet = candidate.unmet.take().or_else(|| Some(format!("{why:#}")));
            }
            all
        }
    }
}
