//! `assay unixbench`: the UnixBench index in its usual form, with its figures.

use std::collections::BTreeSet;
use std::process::ExitCode;

use super::measure_args::{MeasureArgs, hide};
use super::measuring::Study;
use super::output::misuse;
use bench::{self, Benchmark};
use session::plan;

/// Measure the UnixBench index, classic and with pinned tasks
#[derive(clap::Args)]
#[command(mut_args(hide(&["all_pairs"])), after_help = "\
Without -c there are two rounds, as with `./Run`: one copy of each test, then one per usable CPU. The tests are \
Assay's own, written after their published descriptions. `assay compare` and `assay report --beside` show \
UnixBench's own reports next to them.
Context switching is measured where the scheduler puts its two tasks (classic), on one CPU and on the two nearest \
CPUs, with an index for each.
Tests: dhry2reg, whetstone-double, execl, fstime, fsbuffer, fsdisk, pipe, context1, spawn, shell1, shell8, syscall. \
Sets: index or index2 (all tests), system (without the first two), oldsystem, fs, shell.
Examples:
  assay unixbench --quick                 the index in 2 minutes
  assay unixbench context1 -c 1           one test, one copy
  assay unixbench -c 1 -c 8               one copy, then eight
  assay compare old-report.txt RUN        an old UnixBench report against this run
Exit codes: as of `assay run`")]
pub struct Args {
    /// Tests or sets, by their names in `./Run` [default: index]
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
    /// Copies per test, repeatable [default: 1, then one per CPU]
    #[arg(short = 'c', long = "copies", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    copies: Vec<u64>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Seconds that two rounds take with --quick: the profile's own are for a run without these tests.
const QUICK_S: f64 = 110.0;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { tests, mut copies, measure } = args;
    let mut seen = BTreeSet::new();
    copies.retain(|copies| seen.insert(*copies));
    let benches = benches(&tests, &measure).map_err(misuse)?;
    let profile = measure.profile_within(|usual| {
        let usual_s = usual.for_run_of(&benches).budget_s;
        let two_s = if usual.depth == bench::Depth::Quick { QUICK_S } else { usual_s };
        // More than two rounds need more time.
        two_s * copies.len().max(2) as f64 / 2.0
    })?;
    let study = Study::of(profile, benches).choosing(|candidates, scope, host| {
        let usual = plan::unixbench::usual_copies(host.placements.cpus().len());
        plan::unixbench::with_copies(candidates, scope, if copies.is_empty() { &usual } else { &copies })
    });
    Ok(study.measure(&measure)?.code)
}

/// The rows of the tests; with --only, those that it names too.
fn benches(tests: &[String], measure: &MeasureArgs) -> Result<Vec<&'static Benchmark>, String> {
    let tests = plan::unixbench::tests(tests)?;
    let mut benches: Vec<&Benchmark> = tests.iter().filter_map(|test| bench::find(&test.bench())).collect();
    if !measure.only.is_empty() {
        let depth = measure.profile().map_err(|why| format!("{why:#}"))?.depth;
        let named = plan::select(&measure.only, depth).map_err(|why| format!("{why:#}"))?;
        benches.retain(|bench| named.iter().any(|other| other.id == bench.id));
        if benches.is_empty() {
            return Err("--only excludes every test; name tests as arguments instead".to_string());
        }
    }
    Ok(benches)
}
