//! Sweeps and knobs through the program: what is refused and how, what is planned, and what a
//! report of invented samples says.

mod hackbench;
mod kills;
mod listing;
mod made;
mod own;
mod profile;
mod real;
mod story;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::host::wrapped;
use crate::runs::{Ended, end, page_is_whole, quiet_tree, read, recorded, run_file};
use crate::synthetic::Tree;

const GRANULARITY: &str = "/sys/kernel/debug/sched/min_granularity_ns";
const WAKE_UP: &str = "/sys/kernel/debug/sched/wakeup_granularity_ns";
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// A quiet host whose kernel calls itself so.
fn kernel(release: &str) -> Tree {
    let tree = quiet_tree();
    tree.file(RELEASE, release).file("/proc/sys/kernel/random/boot_id", "0-boot");
    tree
}

/// `assay sweep` with these words, split at blanks.
fn sweep(words: &str) -> Command {
    let mut command = crate::assay();
    command.arg("sweep").args(words.split_whitespace());
    command
}

/// The same below a tree, into a folder. A process that waits for a CPU for long is no fault there.
fn sweep_below(tree: &Tree, out: &Path, words: &str) -> Command {
    let mut command = sweep(words);
    command.args(["--force", "--visit-limit", "5m", "--root"]).arg(tree.root()).arg("--out").arg(out);
    command
}

/// Ctrl-C means what it means on a terminal, whatever the test was started by.
fn interruptible(command: Command) -> Command {
    wrapped(&["env", "--default-signal=INT,TERM,HUP"], &command)
}

/// A file of a tree, without its line's end.
fn text(tree: &Tree, file: &str) -> String {
    let path = tree.root().join(file.trim_start_matches('/'));
    std::fs::read_to_string(path).expect("it is there").trim().to_string()
}

fn journal_is_there(tree: &Tree) -> bool {
    tree.root().join("var/lib/assay/knobs.json").exists()
}

#[test]
fn mistakes_of_usage_exit_with_2_and_words() {
    let steady = "selftest.steady";
    let granularity = "--knob min_granularity_ns";
    for (bench, words, said) in [
        ("", "", "<BENCH>"),
        (steady, "", "nothing to sweep: add --knob"),
        ("hackbench", "--param groups=10", "nothing to sweep"),
        ("hackbenk", "--knob policy=other,batch", "no benchmark is called \"hackbenk\""),
        ("hackbench", "--knob policy=other,batch --response nothing", "no benchmark is called \"nothing\""),
        (
            "hackbench",
            "--knob policy=other,batch --response hackbench",
            "the response is the benchmark itself",
        ),
        (steady, "--knob warp=1,2", "no setting is called \"warp\"; there are min_granularity_ns"),
        (steady, "--knob policy", "\"policy\" is not NAME=VALUES"),
        (steady, "--knob =1", "is not NAME=VALUES"),
        (steady, "--knob policy=", "is not NAME=VALUES"),
        (steady, "--knob policy=other,fifo", "policy takes other, batch, not \"fifo\""),
        (
            steady,
            "--knob slice_ns=1ms,99us",
            "slice_ns takes 100 µs–100 ms (in ns, or as 2.5ms), not \"99us\"",
        ),
        (steady, "--knob slice_ns=1ms,101ms", "not \"101ms\""),
        (steady, "--knob slice_ns=1ms,,2ms", "not \"\""),
        (steady, "--knob slice_ns=2ms..1ms:4", "from a smaller number to a larger one"),
        (steady, "--knob slice_ns=1ms..2ms:1", "a range has 2–200 values"),
        (steady, "--knob slice_ns=1ms..2ms:many", "\"many\" is not a number of values"),
        (steady, "--knob slice_ns=0..2ms:log4", "a logarithmic range begins above 0"),
        (steady, "--knob policy=other..batch", "a range needs numbers, not \"other\""),
        (steady, "--knob policy=other,batch --knob policy=batch", "the setting policy is given twice"),
        (
            steady,
            "--knob autogroup=0,1 --knob kernel.sched_autogroup_enabled=0,1",
            "the setting kernel.sched_autogroup_enabled is given twice",
        ),
        (
            steady,
            "--knob policy=other,batch --knob slice_ns=1ms,2ms --knob vm.swappiness=1,2",
            "a sweep takes two settings, not 3: make it two sweeps",
        ),
        (steady, "--knob policy=other", "nothing to compare: policy is other already"),
        (steady, "--param groups=1,2", "selftest.steady has no parameter \"groups\"; it has none"),
        ("hackbench", "--param tasks=process,fibre", "tasks takes process, thread, not \"fibre\""),
        (
            "hackbench",
            "--param groops=1,2",
            "has no parameter \"groops\" (did you mean groups?); it has groups, fds",
        ),
        ("hackbench", "--param groups=1,2 --param groups=4", "the parameter groups is given twice"),
        ("hackbench", "--knob policy=other,batch --only sched", "--only is for `assay run`"),
        (steady, &format!("{granularity}=1ms,2ms"), "has no min_granularity_ns"),
    ] {
        // The mistake is found before the host is looked at, but for settings that this kernel
        // lacks.
        let tree = kernel("6.18.44-cloud");
        tree.file("/proc/sys/kernel/sched_autogroup_enabled", "1").file("/proc/sys/vm/swappiness", "60");
        let out = tempfile::tempdir().expect("a folder");
        let ended = end(&mut sweep_below(&tree, out.path(), &format!("{bench} {words}")));
        ended.expect(2).says(&[said]);
        assert!(std::fs::read_dir(out.path()).expect("a folder").next().is_none(), "{words}");
    }
}

#[test]
fn a_knob_of_another_kernel_names_what_this_one_has() {
    let out = tempfile::tempdir().expect("a folder");
    let refused = |release: &str, knob: &str, said: &[&str]| {
        let tree = kernel(release);
        let ended =
            end(&mut sweep_below(&tree, out.path(), &format!("selftest.steady --knob {knob}=1ms,2ms")));
        ended.expect(2).says(&[&format!("this kernel ({release}) has no {knob}")]).says(said);
    };
    refused("6.18.44-cloud", "min_granularity_ns", &["set base_slice_ns", "slice_ns"]);
    refused("6.6.1", "latency_ns", &["EEVDF", "set base_slice_ns"]);
    refused("6.6.0", "wakeup_granularity_ns", &["policy=batch", "feature.WAKEUP_PREEMPTION"]);
    refused("6.1.0-13-amd64", "base_slice_ns", &["CFS", "min_granularity_ns and wakeup_granularity_ns"]);
    // It may have it, where debugfs is.
    refused("6.1.0-13-amd64", "min_granularity_ns", &["debugfs is not mounted", "mount -t debugfs"]);
}

#[test]
fn a_dry_run_lists_cells_and_changes_and_does_nothing() {
    let (tree, out) = (kernel("6.1.0"), tempfile::tempdir().expect("a folder"));
    tree.file(GRANULARITY, "3000000").file(WAKE_UP, "4000000");
    let words = "hackbench --dry-run --knob min_granularity_ns=1ms,3ms,10ms --knob wakeup_granularity_ns=2ms,4ms \
                 --param groups=2,10";
    let ended = end(&mut sweep_below(&tree, out.path(), words));
    ended.expect(0).sane();
    // Long names, and yet no two cells look alike.
    let cells: Vec<&str> = ended.out.lines().filter(|line| line.contains(" s a pass, ")).collect();
    let names: std::collections::BTreeSet<&str> =
        cells.iter().filter_map(|line| line.split_whitespace().next()).collect();
    // hackbench at 3 × 2 × 2 cells, and the response, which has no groups, at 3 × 2.
    assert_eq!((cells.len(), names.len()), (18, 18), "{}", ended.out);
    assert!(ended.out.contains("needs root: min_granularity_ns, wakeup_granularity_ns\n"), "{}", ended.out);
    assert!(
        ended.out.contains(
            "would change on this host: min_granularity_ns to 1000000, min_granularity_ns to 10000000, \
             min_granularity_ns to 3000000, wakeup_granularity_ns to 2000000, wakeup_granularity_ns to 4000000\n"
        ),
        "{}",
        ended.out
    );
    let json = end(&mut sweep_below(&tree, out.path(), &format!("{words} --json")));
    let dry: Value = serde_json::from_str(&json.expect(0).out).expect("JSON");
    assert_eq!(dry["plan"].as_array().map(Vec::len), Some(18));
    assert_eq!(dry["changes"].as_array().map(Vec::len), Some(5));
    assert_eq!((text(&tree, GRANULARITY), text(&tree, WAKE_UP)), ("3000000".into(), "4000000".into()));
    assert!(
        !tree.root().join("var").exists() && std::fs::read_dir(out.path()).expect("there").next().is_none()
    );
    // Settings of our own tasks change nothing on the host and need no privilege.
    let own = end(&mut sweep_below(&tree, out.path(), "selftest.steady --knob policy=other,batch --dry-run"));
    assert!(own.expect(0).out.contains("needs root: nothing\n  would change on this host: nothing\n"));
}

#[test]
fn a_budget_decides_the_passes_and_too_short_a_one_is_refused() {
    let (tree, out) = (kernel("6.1.0"), tempfile::tempdir().expect("a folder"));
    tree.file(GRANULARITY, "3000000");
    let words = "selftest.steady --knob min_granularity_ns=1ms,3ms,10ms --quick";
    let ended = end(&mut sweep_below(&tree, out.path(), &format!("{words} --budget 1s")));
    ended.expect(2).says(&["--budget is too short", "over 3 settings", "a sweep needs two"]);
    let dry = |budget: &str| {
        let ended = end(&mut sweep_below(&tree, out.path(), &format!("{words} --dry-run {budget}")));
        ended.expect(0).out.lines().next().unwrap_or_default().to_string()
    };
    assert!(dry("").contains("at least 4 passes"), "{}", dry(""));
    assert!(dry("--budget 3s").contains("at least 2 passes"), "{}", dry("--budget 3s"));
    assert!(dry("--budget 10m").contains("at least 4 passes"), "{}", dry("--budget 10m"));
}

/// A sweep with invented samples: two task knobs, the response beside, two facets.
fn pretended(out: &Path, seed: &str) -> Ended {
    let words = "hackbench --quick --new --knob slice_ns=0.5ms,1.5ms,5ms --knob policy=other,batch --param groups=2,4";
    let mut command = sweep(words);
    command.args(["--all", "--pretend", seed, "--from", &recorded(), "--out"]).arg(out).env("COLUMNS", "120");
    end(&mut command)
}

#[test]
fn invented_samples_give_a_whole_report_and_always_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let ended = pretended(dir.path(), "7");
    ended.sane();
    let section = ended.out.split_once("\n  Conclusion\n").expect("the section").1;
    let section = section.split("\n  Clock, idle").next().expect("what follows it");
    insta::assert_snapshot!("terminal", section);
    page_is_whole(dir.path());
    let file = run_file(dir.path());
    let run = read(&file);
    let sweep = run.header.sweep.as_ref().expect("a layout");
    let before: Vec<&str> = sweep.axes.iter().filter_map(|axis| axis.before.as_deref()).collect();
    assert_eq!(before, ["500000", "other"], "the first values, whatever this machine has");
    assert_eq!((sweep.shape(), sweep.facet_values().len()), ([3, 2], 2));
    assert_eq!((sweep.target.bench.as_str(), sweep.every), ("sched.hackbench", 8));
    assert_eq!(sweep.response.as_ref().map(|response| response.bench.as_str()), Some("sched.wake-up"));
    // What is asked of all cells takes as many visits of each: none ends before the others.
    for bench in ["sched.hackbench", "sched.wake-up"] {
        let plan = run.header.plan.iter().enumerate();
        let cells = plan.filter(|(case, planned)| {
            planned.case.bench == bench && !sweep.control.contains(&(*case as u32))
        });
        let visits = |case: usize| run.visits.iter().filter(|visit| visit.case as usize == case).count();
        let made: BTreeSet<usize> = cells.map(|(case, _)| visits(case)).collect();
        assert!(made.len() == 1 && !made.contains(&0), "{bench}: {made:?}");
    }
    let text = std::fs::read_to_string(&file).expect("a run file");
    let validator = crate::validator("run-file");
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let problems: Vec<String> = validator.iter_errors(&line).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
    }
    let results = crate::runs::diagnosed(&file);
    let problems: Vec<String> =
        crate::validator("results").iter_errors(&results).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    for (seed, same) in [("7", true), ("8", false)] {
        let other = tempfile::tempdir().expect("a folder");
        pretended(other.path(), seed);
        let other = std::fs::read_to_string(run_file(other.path())).expect("a run file");
        assert_eq!(other == text, same, "seed {seed}");
    }
    // The map as a picture of its own.
    let picture = dir.path().join("map.svg");
    let ended = end(crate::assay().arg("report").arg(&file).arg("--map").arg(&picture));
    ended.expect(0).sane();
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{}", &svg[..80]);
}
