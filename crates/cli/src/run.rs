//! `assay run`: evaluate this host.

use std::path::PathBuf;
use std::process::ExitCode;

use super::check;
use super::device::DeviceArgs;
use super::disk::DiskArgs;
use super::margin::MarginArg;
use super::measure_args::MeasureArgs;
use super::measuring::{Prepared, Study};
use super::naming::OUTPUT;
use super::network::NetworkArgs;
use super::nexmark::{FLINK as FLINK_OPTIONS, FlinkArgs, FlinkSetup};
use super::output::{eprint_line, misuse, refuse, refuse_if};
use bench::{self, Benchmark, Candidate, NETWORK, Scope};
use model::Entry;
use model::vocabulary::nexmark::probe::FLINK;
use session::plan::{self, Profile};

/// Measure this host, judge it and write a report
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay run --quick                        the essentials in 90 s
  assay run --only memory,ipc.pipe         a group and the benchmarks whose names begin so
  assay run --only disk --dir /var/lib/db  the disk below that folder, through temporary files
  assay run --only disk --device /dev/vdb  a whole device, read only
  assay run --only network --to HOST       bandwidth and latency to a host with `assay serve`
  assay run --only nexmark                 Flink under rising load (first: `assay setup flink`)
  assay run --dry-run                      the plan and its time
  assay run --accept db.toml               is the host what was asked for (`assay check --help`)?
  assay run --json > result.json           for programs
A run ends with its budget, or early if all figures are precise enough. The same command resumes an interrupted run: \
Ctrl-C or kill -9 costs at most the pass that is being measured, a power cut at most the last 10 s or what was \
measured since the last pass ended.
--accept measures first what decides the spec, and exits as `assay check` does.
Exit codes: 0 measured, 1 finding at or above --fail-on, 2 usage, 3 error (a full disk at the end: results are shown \
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
    /// Spec to check the host against (see `assay check`)
    #[arg(long, value_name = "SPEC", conflicts_with = "fail_on", help_heading = OUTPUT)]
    accept: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let profile = args.measure.profile()?.in_rounds();
    let accept = args.accept.as_deref().map(check::LoadedSpec::read).transpose().map_err(misuse)?;
    refuse(accept.as_ref().and_then(|loaded| loaded.refuses(profile.name)))?;
    let benches = plan::select(&args.measure.only, profile.depth).map_err(misuse)?;
    let of_group = |group: &str| benches.iter().filter(|bench| bench.group() == group).count();
    refuse_if(
        args.raw.any() && of_group("disk") < benches.len(),
        "--device measures disks only: add --only disk or one of its benchmarks",
    )?;
    refuse(args.disk.refused(&benches))?;
    let device = args.raw.settle(args.measure.dry_run).map_err(misuse)?;
    let networked = of_group(NETWORK) > 0;
    refuse_if(
        args.network.any() && !networked,
        "--to, --rate, --congestion and --streams are for network benchmarks: add --only network",
    )?;
    refuse(args.network.refused())?;
    let network = if networked && !args.measure.tests.pretends() {
        Some(args.network.settle(args.measure.dry_run)?)
    } else {
        None
    };
    let prepared = Prepared { network, device, accept, visit_limit: None };
    let on_flink = of_group(bench::NEXMARK);
    refuse_if(
        on_flink == 0 && (args.flink.any() || args.margin.given()),
        "--flink-home, --java, --jobmanager, --nexmark-jar, --flink-port and --margin are for nexmark: add \
          --only nexmark",
    )?;
    if on_flink > 0 {
        // If only nexmark is selected, a missing part is an error at once.
        let needed = on_flink == benches.len() || args.flink.any();
        return with_flink(&args, profile, benches, prepared, needed);
    }
    let study = Study::of(profile, benches)
        .choosing(|candidates, scope, _| args.disk.supply(candidates, scope))
        .prepared(prepared);
    Ok(study.measure(&args.measure)?.code)
}

fn with_flink(
    args: &Args,
    mut profile: Profile,
    benches: Vec<&Benchmark>,
    prepared: Prepared,
    needed: bool,
) -> anyhow::Result<ExitCode> {
    if args.measure.budget.is_none() {
        profile = profile.with_own_budget(&benches);
    }
    // Invented samples need no cluster.
    let found = (!args.measure.tests.pretends()).then(|| args.flink.find());
    let found = match found {
        Some(Err(error)) if needed => return Err(error),
        found => found,
    };
    let study = Study::of(profile, benches)
        .choosing(|candidates, scope, _| {
            let mut all = supplied(&found, candidates, scope);
            for candidate in all.iter_mut().filter(|one| bench::is_nexmark(&one.case)) {
                let margin = args.margin.percent().to_string();
                candidate.case.inputs.insert(bench::MARGIN.to_string(), margin);
            }
            args.disk.supply(all, scope)
        })
        .amending(|header| {
            if let Some(Ok(found)) = &found {
                header.snapshot.entries.insert(FLINK.to_string(), Entry::Text(found.description.clone()));
            }
        })
        .prepared(prepared);
    Ok(study.measure(&args.measure)?.code)
}

fn supplied(
    found: &Option<anyhow::Result<FlinkSetup>>,
    mut candidates: Vec<Candidate>,
    scope: &Scope,
) -> Vec<Candidate> {
    match found {
        None => {}
        Some(Ok(found)) => {
            candidates = found.flink.supply(candidates, scope);
            let possible = candidates.iter().filter(|one| one.unmet.is_none());
            for candidate in possible.filter(|one| bench::shares_its_cpus(&one.case)) {
                eprint_line(&format!(
                    "  {}: no CPU is left for the JobManager and the driver: they share those of the \
                      TaskManager",
                    candidate.case.key()
                ));
            }
        }
        Some(Err(why)) => {
            for candidate in candidates.iter_mut().filter(|one| bench::is_nexmark(&one.case)) {
                candidate.unmet = candidate.unmet.take().or_else(|| Some(format!("{why:#}")));
            }
        }
    }
    candidates
}
