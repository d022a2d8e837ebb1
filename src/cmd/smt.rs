//! `assay smt`: what the second threads of a core give and cost.

use std::process::ExitCode;
use std::time::Duration;

use super::measuring::{Host, MeasureArgs, measure_study};
use super::output;
use crate::bench::{Candidate, Scope};
use crate::knobs::Knobs;
use crate::plan;

/// Studies of SMT (hyper-threading): which calls pay for it, and how much
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    study: Study,
}

#[derive(clap::Subcommand)]
enum Study {
    Table(TableArgs),
}

/// Measure the baseline with the siblings idle, at the same work, spinning, and with SMT off, side by side
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
    let Study::Table(TableArgs { measure: mut args }) = args.study;
    if args.only.is_empty() {
        let known = |group: &&str| plan::shown().any(|bench| bench.group() == *group);
        args.only = GROUPS.into_iter().filter(known).map(str::to_string).collect();
    }
    let benches = match plan::select(&args.only, args.profile()?.depth) {
        Ok(benches) => benches,
        // A name that does not exist is a mistake of usage.
        Err(error) => {
            output::tell(&format!("assay: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    };
    if args.budget.is_none() {
        let budget_s = args.profile()?.for_run_of(&benches).budget_s * plan::smt::times();
        args.budget = Some(Duration::from_secs_f64(budget_s));
    }
    let knobs = Knobs::of(&args.root);
    let invented = args.pretend.is_some();
    let variants = |candidates: Vec<Candidate>, scope: &Scope, host: &Host| {
        let no_switch = no_switch(&knobs, host, invented);
        plan::smt::table(candidates, scope, no_switch.as_deref())
    };
    measure_study(&args, &benches, &variants)
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
