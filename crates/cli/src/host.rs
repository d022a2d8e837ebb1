//! `assay host`: what this guest gets.

use std::process::ExitCode;

use super::measure_args::{MeasureArgs, hide};
use super::measuring::Study;
use super::output::refuse_if;
use bench::{self, Benchmark};
use model::vocabulary::{BenchId, cpu, host, kernel, memory_map};

/// Show what this guest gets: whole CPUs, cache, memory, pauses
#[derive(clap::Args)]
#[command(
    mut_args(hide(&["only", "dir", "drop_caches"])),
    after_help = "\
Reads a clock on every CPU at once and attributes each pause: to a task of this guest (the clock's process waited \
for its CPU), to a tick or interrupt (short), or to the host (long, and no task waited). CPUs that pause alternately \
share one CPU of the host.
Also measured: siblings, core clock, clock source, timers, pages and nodes behind the memory, and, with all CPUs \
idle, how much shared cache and memory bandwidth other guests leave.
Takes three minutes and keeps every CPU busy for seconds at a time. Nothing is changed, and Ctrl-C ends it at once. \
What cannot be seen from inside is reported with its detection limit. On bare metal there is no host, and the report \
says so.
Examples:
  assay host                        three minutes
  assay host --quick                one minute, finds less
  assay host --budget 10m           finds rarer pauses
  assay explain host.pauses         how pauses are measured
Exit codes: as of `assay run`"
)]
pub struct Args {
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Benchmarks of what a guest gets, besides those of the group `host`.
const ROWS: [BenchId; 6] = [
    cpu::CLOCK,
    memory_map::REGIONS,
    cpu::PAIR_SLOWDOWN,
    kernel::SYSCALL_CLOCK_GETTIME,
    kernel::TIMER_TIMERFD,
    kernel::TIMER_NANOSLEEP,
];

/// Seconds that it takes, and with --quick.
const BUDGET_S: f64 = 170.0;
const QUICK_S: f64 = 60.0;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let measure = args.measure;
    let why = "assay host measures its own benchmarks; `assay run --only` measures others";
    refuse_if(!measure.only.is_empty(), why)?;
    let profile = measure
        .profile_within(|usual| if usual.depth == bench::Depth::Quick { QUICK_S } else { BUDGET_S })?;
    let is_asked = |bench: &&Benchmark| bench.group() == host::GROUP || ROWS.contains(&bench.id);
    Ok(Study::of(profile, bench::all().filter(is_asked).collect()).measure(&measure)?.code)
}
