//! `assay run`: evaluate this machine.

use std::process::ExitCode;

use super::measuring::{MeasureArgs, measure_and_report};
use super::output;
use crate::plan;

/// Evaluate this machine: measure, judge, report
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay run --quick                       the essentials in 90 s
  assay run --only memory --only ipc.pipe the memory group and one benchmark
  assay run --dry-run                     what would be done, and how long it would take
  assay run --json > result.json          for programs
Exit codes: 0 measured, 1 finding at or above --fail-on, 2 usage, 3 an error or nothing valid measured, 130 interrupted")]
pub struct Args {
    #[command(flatten)]
    measure: MeasureArgs,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let depth = args.measure.profile()?.depth;
    let benches = match plan::select(&args.measure.only, depth) {
        Ok(benches) => benches,
        // A name that does not exist is a mistake of usage.
        Err(error) => {
            output::tell(&format!("assay: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    };
    measure_and_report(&args.measure, &benches)
}
