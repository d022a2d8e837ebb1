//! `assay smt`: what the second threads of a core give and cost.

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
Fixed work at seven levels of load, by one SMT sibling, by both, by two cores side by side and far apart, by all; at full \
load for eight kinds of work (a shorter --budget leaves fewer, each whole). What comes out: how much the second thread gives, how much of the machine is really used \
when CPU% says half, how much more work fits, and where the curve bends. Takes 3 to 4 minutes on a small machine; nothing is changed. \
Without SMT it is the same study of two cores, and says so.
Examples:
  assay smt                       the study
  assay smt --fine                twenty levels
  assay smt --kind loop,chase     two kinds of work
  assay smt table                 which system calls pay for a busy sibling
  assay utilization               how full this machine is now, in the light of it
  assay compare A B               two machines' curves, scaled to a common clock
Exit codes as those of `assay run`"
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
    /// Kinds of work, with commas (default: all; `loop` always has all levels)
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(bench::Kind::NAMES))]
    kinds: Vec<String>,
    #[command(flatten)]
    margin: MarginArg,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Measure the baseline with the siblings idle, at the same work, spinning, and with SMT off, side
/// by side
#[derive(clap::Args)]
#[command(after_help = "\
Each case is measured alone, beside the same work and beside a spinner on the SMT siblings of its CPUs, and with SMT \
switched off; what runs wherever the scheduler likes with SMT on and off only. Without --budget that takes up to 8 minutes with \
--quick, up to an hour in the standard profile. On a machine without SMT the neighbours are the nearest other cores, and the report says so.
Switching SMT needs root. It is done by the kernel's own control, /sys/devices/system/cpu/smt/control, once a pass; the \
value before is noted in a journal first and put back at the end, by Ctrl-C too; after kill -9 by the next run or by \
`assay restore`. While SMT is off the CPUs that go are offline for everybody: what others have pinned to them alone is \
moved and not moved back, and cpusets of cgroup version 1 lose these CPUs for good.
Examples:
  assay smt table --dry-run               what would be done and changed
  assay smt table --quick                 the essentials
  assay smt table --only syscall,ipc.pipe only these
Exit codes as those of `assay run`")]
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
    let row = bench::find(&LOAD).with_context(|| format!("{LOAD} is not there"))?;
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
        (told, true) => Some(format!("this machine's SMT control is {}", told.unwrap_or("not there"))),
        (_, false) => knobs.unmet("smt", "off"),
    }
}
