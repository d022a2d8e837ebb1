//! `assay host`: what does this guest really get?

use std::process::ExitCode;

use super::measure_args::{MeasureArgs, hide};
use super::measuring::Study;
use super::output::refuse_if;
use bench::{self, Benchmark};
use model::vocabulary::{BenchId, cpu, host, kernel, memory_map};

/// Show what this guest really gets: whole CPUs, clock, timers, who pauses it
#[derive(clap::Args)]
#[command(
    mut_args(hide(&["only", "dir", "drop_caches"])),
    after_help = "\
Spins a clock on every CPU at once and puts each pause down to who made it: a task of this system (the clock's process waited \
for its CPU), a tick or an interrupt (short), or the host (long, and no task waited). CPUs that the host stops in turn share one \
of its CPUs; CPUs that stop together are stopped as a guest. Beside that: siblings, core clock, clock source, timers, and what is \
behind the memory (pages, nodes); and, while nothing of ours runs, how much of the shared cache and of the memory's time others \
leave. Every CPU is \
busy for a few seconds at a time, three minutes in all; nothing is changed, and Ctrl-C ends it at once. What cannot be seen from \
inside is said to be so, with the least that would have been seen. On bare metal there is no host: the page says so.
Examples:
  assay host                        three minutes
  assay host --quick                one minute: less is seen
  assay host --budget 10m           more minutes: rarer pauses are seen
  assay explain host.pauses         how pauses are measured and read
Exit codes as those of `assay run`"
)]
pub struct Args {
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Rows that say what a guest gets, beside those of the group itself.
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
