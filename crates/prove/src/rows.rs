//! Real UnixBench runs of this host against each other: how often `assay compare` names the row
//! in which one test was pinned, and how often it accuses a row of equal runs.
//!
//! `--from DIR` takes runs of `assay unixbench` that were made before (the folder's run files, or
//! those of its folders); else 15 quick ones are measured here. A pinned test is planted by the
//! same run's figures of context switching on one CPU in the place of the free ones, as `taskset`
//! around `./Run` would give them.

use std::path::Path;
use std::process::{Command, Stdio};

use compare::{Comparison, ComparisonSide, Options, compare, rows};
use model::run_file;
use prove::proof::Rate;

use super::a_a::run_files;
use super::{Section, option};
use crate::statistics::titled;

pub const SECTIONS: &[Section] =
    &[Section { name: "odd-rows", title: "The row of UnixBench in which a test was pinned", run: odd_rows }];

const RUNS: usize = 15;
const FREE: &str = "unixbench.context1@free";
const PINNED: &str = "unixbench.context1@same-cpu";

fn odd_rows() -> String {
    let made = tempfile::tempdir().map_err(|error| error.to_string());
    let arms = made.and_then(|made| match option("--from") {
        Some(folder) => arms(Path::new(&folder)),
        None => {
            (0..RUNS).try_for_each(|run| measure(&made.path().join(run.to_string())))?;
            arms(made.path())
        }
    });
    match arms {
        Ok(arms) if arms.len() >= 2 => text(&arms),
        Ok(arms) => format!("{} runs make no pair.\n", arms.len()),
        Err(why) => format!("There are no runs: {why}.\n"),
    }
}

fn measure(out: &Path) -> Result<(), String> {
    let mut command = Command::new(testkit::program());
    command.args(["unixbench", "-c", "1", "--quick", "--new", "--json", "--out"]).arg(out);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if run_files(out).is_empty() { Err(String::from_utf8_lossy(&output.stderr).into_owned()) } else { Ok(()) }
}

fn arms(folder: &Path) -> Result<Vec<ComparisonSide>, String> {
    let read = |file: &std::path::PathBuf| {
        let shown = file.display().to_string();
        let run = run_file::read(file).map_err(|error| format!("{shown}: {error:#}"))?;
        Ok(ComparisonSide::measured(&diagnose::diagnose(run), &shown))
    };
    run_files(folder).iter().map(read).collect()
}

/// As UnixBench reports it: a number for each row, without its spread.
fn as_report(arm: &ComparisonSide) -> ComparisonSide {
    let mut arm = arm.clone();
    arm.imported = true;
    for member in &mut arm.members {
        (member.medians, member.clocks) = (vec![member.median], vec![f64::NAN]);
        (member.counts, member.at_clock, member.given_interval) = (vec![1], None, None);
    }
    arm
}

/// With context switching pinned to one CPU, whatever the scheduler would have done; `None` where
/// that was not measured.
fn pinned(arm: &ComparisonSide) -> Option<ComparisonSide> {
    let mut arm = arm.clone();
    let score = |key: &str, begin: &str| key.starts_with(begin) && key.ends_with("#score");
    let there = arm.members.iter().find(|member| score(&member.key, PINNED))?.clone();
    let free = arm.members.iter_mut().find(|member| score(&member.key, FREE))?;
    (free.medians, free.median, free.clocks) = (there.medians, there.median, there.clocks);
    (free.counts, free.at_clock) = (there.counts, there.at_clock);
    Some(arm)
}

/// Whether context switching is called odd, and whether another row is.
fn named(comparison: &Comparison) -> [bool; 2] {
    let odd = comparison.findings.iter().filter(|found| found.rule == rows::ODD);
    let keys: Vec<&String> = odd.flat_map(|found| &found.series).collect();
    [true, false].map(|wanted| keys.iter().any(|key| key.starts_with(FREE) == wanted))
}

fn text(arms: &[ComparisonSide]) -> String {
    let reports: Vec<ComparisonSide> = arms.iter().map(as_report).collect();
    let mut lines = Vec::new();
    for (kind, arms) in [("reports, a number each", &reports), ("runs, with intervals", &arms.to_vec())] {
        let (mut clean, mut planted) = ([Rate::default(); 2], [Rate::default(); 2]);
        let count = |into: &mut [Rate; 2], a: &ComparisonSide, b: &ComparisonSide| {
            let found = named(&compare(a, b, &Options::default()));
            into.iter_mut().zip(found).for_each(|(rate, found)| rate.count(found));
        };
        for (first, a) in arms.iter().enumerate() {
            for (second, b) in arms.iter().enumerate() {
                if first < second {
                    count(&mut clean, a, b);
                }
                if let Some(b) = pinned(b).filter(|_| first != second) {
                    count(&mut planted, a, &b);
                }
            }
        }
        for (what, [context, other]) in [("equal", clean), ("pinned in B", planted)] {
            let cells = [kind, what, &context.of.to_string(), &context.to_string(), &other.to_string()];
            lines.push(cells.map(str::to_string).to_vec());
        }
    }
    let score = |begin: &str| {
        let of = |arm: &ComparisonSide| {
            let member = arm
                .members
                .iter()
                .find(|member| member.key.starts_with(begin) && member.key.ends_with("#score"));
            member.map(|member| member.median)
        };
        stats::order::median(&arms.iter().filter_map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let times = score(PINNED) / score(FREE);
    titled("pairs of | context switching is | pairs | it is named | another row is named", lines)
        + &format!(
            "\n{} runs; on one CPU context switching scores {times:.2} times what it scores free.\n",
            arms.len()
        )
}
