//! `assay hackbench`: with the options and output of rt-tests, or measured like any benchmark.

use std::process::ExitCode;

use anyhow::Context;

use super::measure_args::{CHOICES, MeasureArgs, hide};
use super::measuring::Study;
use super::output::{self, eprint_line, refuse_if};
use bench::{self, Candidate, Hackbench, HackbenchRun};
use model::vocabulary::hackbench as ids;

/// Run hackbench once as rt-tests does, or measure it with --runs
#[derive(clap::Args)]
#[command(
    mut_args(hide(&CHOICES)),
    after_help = "\
Without --runs: one run, with the three lines of rt-tests' hackbench on standard output and the kernel's counters \
for its tasks on standard error. With --runs, --latency, --json or --dry-run: a measurement with verdicts, findings \
and a report, as by `assay run --only sched.hackbench`.
Each of -g groups has -f senders and -f receivers. Every sender writes -l messages of -s bytes to every receiver of \
its group.
Examples:
  assay hackbench -g 4 -l 500 -p -T                 one run: 4 groups of threads over pipes
  assay hackbench --runs 20 -p                      twenty runs, judged
  assay hackbench --latency -g 2                    latency of each message
  assay sweep hackbench --knob slice_ns=1ms,10ms    effect of a kernel setting
Exit codes: 0 it ran, 2 usage, 3 it failed; with --runs as of `assay run`"
)]
pub struct Args {
    /// Groups of senders and receivers
    #[arg(short, long, value_name = "N", default_value_t = Hackbench::default().groups, value_parser = clap::value_parser!(u64).range(1..=1000))]
    groups: u64,
    /// Senders per group, and as many receivers
    #[arg(short, long, value_name = "N", default_value_t = Hackbench::default().fds, value_parser = clap::value_parser!(u64).range(1..=1000))]
    fds: u64,
    /// Messages from each sender to each receiver
    #[arg(short, long, value_name = "N", default_value_t = Hackbench::default().loops, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    /// Size of a message, bytes
    #[arg(short = 's', long = "datasize", value_name = "BYTES", default_value_t = Hackbench::default().bytes, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    bytes: u64,
    /// Threads instead of processes
    #[arg(short = 'T', long, overrides_with = "process")]
    threads: bool,
    /// Processes (the default)
    #[arg(short = 'P', long, overrides_with = "threads")]
    process: bool,
    /// Pipes instead of socket pairs
    #[arg(short, long, conflicts_with = "inet")]
    pipe: bool,
    /// TCP over loopback instead of socket pairs
    #[arg(short, long)]
    inet: bool,
    /// Number of runs to measure [default: the profile's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Latency of each message instead of the total time
    #[arg(long)]
    latency: bool,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Added to the estimated time of a pass.
const SPARE: f64 = 4.0;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let options = options(&args);
    let Args { runs, latency, measure, .. } = args;
    let why = "--only and --drop-caches are for `assay run`";
    refuse_if(!measure.only.is_empty() || measure.drop_caches, why)?;
    let measured = runs.is_some() || latency || measure.json || measure.dry_run || measure.tests.pretends();
    if !measured {
        return once(&options);
    }
    let id = if latency { ids::MESSAGING } else { ids::HACKBENCH };
    let bench = bench::find(&id).with_context(|| format!("the benchmark {id} is missing"))?;
    let params = options.params();
    let mut profile = measure.profile()?;
    if let Some(runs) = runs {
        (profile.passes_min, profile.passes_max) = (runs, runs);
    }
    if measure.budget.is_none() {
        let seconds = Hackbench::seconds(&params, 1) * f64::from(profile.passes_max) * SPARE;
        profile.budget_s = profile.budget_s.max(seconds);
    }
    let study = Study::of(profile, vec![bench]).choosing(|candidates, scope, _| {
        let mut first: Vec<Candidate> = candidates.into_iter().take(1).collect();
        for candidate in &mut first {
            candidate.case.params = params.clone();
            candidate.seconds = Hackbench::seconds(&params, scope.placements.cpus().len());
        }
        first
    });
    Ok(study.measure(&measure)?.code)
}

fn options(args: &Args) -> Hackbench {
    Hackbench {
        groups: args.groups,
        fds: args.fds,
        loops: args.loops,
        bytes: args.bytes,
        tasks: if args.threads { "thread" } else { "process" },
        transport: match (args.pipe, args.inet) {
            (true, _) => "pipe",
            (_, true) => "inet",
            _ => "socket",
        },
    }
}

/// The lines of the classic, then the kernel's counters.
fn once(options: &Hackbench) -> anyhow::Result<ExitCode> {
    let mode = if options.tasks == "thread" { "threaded" } else { "process" };
    let (groups, each) = (options.groups, options.fds * 2);
    output::print_text(&format!(
        "Running in {mode} mode with {groups} groups using {each} file descriptors each (== {} tasks)\n\
         Each sender will pass {} messages of {} bytes\n",
        groups * each,
        options.loops,
        options.bytes
    ))?;
    let ran = bench::hackbench_once(options).context("hackbench")?;
    output::print_text(&format!("Time: {:.3}\n", ran.wall_ns / 1e9))?;
    eprint_line(&counted(&ran));
    Ok(ExitCode::SUCCESS)
}

/// What the kernel counted, in a line.
fn counted(ran: &HackbenchRun) -> String {
    let mut words = vec![
        format!("{} voluntary and {} involuntary switches", ran.voluntary, ran.involuntary),
        format!("{:.3} s user and {:.3} s system time", ran.user_ms / 1e3, ran.system_ms / 1e3),
    ];
    words.extend(ran.migrations.map(|count| format!("{count} migrations")));
    words.extend(ran.wait_ns.map(|ns| format!("{:.3} s waited for a CPU, all tasks together", ns / 1e9)));
    format!("  {}", words.join(", "))
}
