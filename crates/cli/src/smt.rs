//! `assay smt`: what second threads of cores add and cost.

use std::process::ExitCode;

use anyhow::Context;

use super::margin::MarginArg;
use super::measure_args::{CHOICES, MeasureArgs, hide};
use super::measuring::{Host, Study};
use super::output::{misuse, refuse_if};
use bench::{self, Depth};
use knobs::Knobs;
use model::vocabulary::smt::LOAD;
use session::plan;

/// Measure how much work a second thread per core adds
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(
    mut_args(hide(&CHOICES)),
    after_help = "\
Runs fixed work at seven levels of load: on one SMT sibling, on both, on two near and two distant cores, and on all \
CPUs. At full load it runs eight kinds of work; a shorter --budget leaves some out.
Results: how much a second thread of a core adds, the real use of the host when CPU% shows half, how much more work \
fits, and where throughput bends. Takes 3–4 minutes on a small host; nothing is changed. Without SMT it studies \
two cores instead, and says so.
Examples:
  assay smt                       the study
  assay smt --fine                twenty levels
  assay smt --kind loop,chase     two kinds of work
  assay smt table                 which system calls suffer from a busy sibling
  assay utilization               real use of this host now
  assay compare A B               two hosts' curves, scaled to a common clock
Exit codes: as of `assay run`"
)]
pub struct Args {
    #[command(subcommand)]
    table: Option<Table>,
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(clap::Subcommand)]
enum Table {
    Table(TableArgs),
}

#[derive(clap::Args)]
pub struct LoadArgs {
    /// Twenty levels of load instead of seven
    #[arg(long)]
    fine: bool,
    /// Kinds of work, with commas [default: all]
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(bench::Kind::NAMES))]
    kinds: Vec<String>,
    #[command(flatten)]
    margin: MarginArg,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Compare system calls with siblings idle, busy and SMT off
#[derive(clap::Args)]
#[command(after_help = "\
Measures each call alone, with the same work on the SMT siblings of its CPUs, with a spinner there, and with SMT \
off. Calls left to the scheduler are measured with SMT on and off only. Takes up to 8 minutes with --quick and \
up to an hour in the standard profile, unless --budget limits it. Without SMT the nearest other cores take the place \
of siblings, and the report says so.
Switching SMT needs root. Assay writes /sys/devices/system/cpu/smt/control once per pass, notes the old value in a \
journal first, and restores it at the end, also after Ctrl-C. After kill -9 the next run or `assay restore` does it.
While SMT is off, those CPUs are offline for all programs. Processes pinned to them move and do not move back, and \
cpusets of cgroup version 1 lose these CPUs permanently.
Examples:
  assay smt table --dry-run               the plan and its changes
  assay smt table --quick                 the essentials
  assay smt table --only syscall,ipc.pipe only these
Exit codes: as of `assay run`")]
pub struct TableArgs {
    #[command(flatten)]
    measure: MeasureArgs,
}

/// The groups of the operating-system baseline.
const GROUPS: [&str; 10] =
    ["syscall", "signal", "process", "vm", "timer", "lock", "ipc", "sched", "file", "cpu"];

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.table {
        Some(Table::Table(args)) => table(args),
        None => load(args.load),
    }
}

/// Seconds of the study in each profile; a fine one takes three times as long.
const STUDY_S: [(Depth, f64); 3] = [(Depth::Quick, 60.0), (Depth::Standard, 190.0), (Depth::Full, 570.0)];

fn load(args: LoadArgs) -> anyhow::Result<ExitCode> {
    let LoadArgs { fine, kinds, margin, measure } = args;
    let why = "assay smt measures one benchmark, smt.load; --kind names kinds of work";
    refuse_if(!measure.only.is_empty(), why)?;
    let usual = measure.profile_within(|usual| {
        let budget_s = STUDY_S.iter().find(|(depth, _)| *depth == usual.depth).map_or(190.0, |(_, s)| *s);
        if fine { budget_s * 3.0 } else { budget_s }
    })?;
    let profile = plan::Profile {
        // A visit holds all levels: six have an interval, and three minutes narrow few to 1 %.
        passes_min: usual.passes_min.min(6),
        precision: usual.precision.max(0.02),
        ..usual
    };
    let levels = if fine { bench::FINE_LEVELS } else { bench::USUAL_LEVELS };
    let row = bench::find(&LOAD).with_context(|| format!("the benchmark {LOAD} is missing"))?;
    let study = Study::of(profile, vec![row]).choosing(|_, scope, _| {
        plan::smt::load(bench::smt_cases(row, scope, levels), &kinds, margin.percent())
    });
    Ok(study.measure(&measure)?.code)
}

fn table(args: TableArgs) -> anyhow::Result<ExitCode> {
    let TableArgs { measure: mut args } = args;
    if args.only.is_empty() {
        let known = |group: &&str| plan::shown().any(|bench| bench.group() == *group);
        args.only = GROUPS.into_iter().filter(known).map(str::to_string).collect();
    }
    let benches = plan::select(&args.only, args.profile()?.depth).map_err(misuse)?;
    let profile = args.profile_within(|usual| usual.for_run_of(&benches).budget_s * plan::smt::times())?;
    let knobs = Knobs::of(&args.tests.root);
    let study = Study::of(profile, benches).choosing(|candidates, scope, host| {
        let no_switch = no_switch(&knobs, host, args.tests.pretends());
        plan::smt::table(candidates, scope, no_switch.as_deref())
    });
    Ok(study.measure(&args)?.code)
}

/// Why SMT cannot be switched off here.
fn no_switch(knobs: &Knobs, host: &Host, invented: bool) -> Option<String> {
    match (host.machine.cpus.smt_control.as_deref(), invented) {
        (Some("off"), _) => {
            Some("SMT is off already, by nosmt at boot or by hand: nothing to compare".to_string())
        }
        (Some("on"), true) => None,
        (told, true) => Some(format!("the SMT control of this host is {}", told.unwrap_or("not there"))),
        (_, false) => knobs.unmet("smt", "off"),
    }
}
