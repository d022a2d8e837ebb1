//! Sweeps of kernels whose debugfs is open: knobs are really turned and felt, and are back however
//! a sweep ends.

use std::fs;
use std::path::Path;

use model::run_file;
use model::{Form, Run};
use tempfile::TempDir;

use super::{MACHINE_ENDED, NOTHING_TO_BOOT, boot, in_guest, in_guest_with, runs, skipped};

/// What scripts that sweep have in common.
const SWEEP: &str = include_str!("sweep.sh");

fn text(folder: &TempDir, file: &str) -> String {
    fs::read_to_string(folder.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// What a run's visits at this setting of the two knobs counted, each visit by itself.
fn counted(run: &Run, metric: &str, min_ns: &str, wakeup_ns: &str) -> Vec<f64> {
    let here = |case: u32| {
        let knobs = &run.header.plan[case as usize].case.knobs;
        let is = |name: &str, value: &str| knobs.get(name).is_some_and(|own| own == value);
        is("min_granularity_ns", min_ns) && is("wakeup_granularity_ns", wakeup_ns)
    };
    let samples = run.visits.iter().filter(|visit| here(visit.case)).flat_map(|visit| &visit.samples);
    let meant = samples.filter(|samples| samples.metrics.iter().any(|name| name == metric));
    meant.flat_map(|samples| samples.values(Form::Value)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A sweep that ended by itself, in which every visit is a good one.
fn complete(folder: &TempDir) -> Run {
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    assert!(run.summary.is_some(), "it is complete");
    for visit in &run.visits {
        let case = &run.header.plan[visit.case as usize].case;
        assert_eq!(visit.reason, None, "{}", case.key());
    }
    for (index, planned) in run.header.plan.iter().enumerate() {
        let visits = run.visits.iter().filter(|visit| visit.case as usize == index);
        let passes: std::collections::BTreeSet<u32> = visits.map(|visit| visit.pass).collect();
        assert!(passes.len() >= 4, "{} was visited in {passes:?}", planned.case.key());
    }
    run
}

/// All that an earlier state of the run file held is there still. How many visits it held.
#[track_caller]
fn keeps(run: &Run, folder: &TempDir, earlier: &str) -> usize {
    let earlier = run_file::read(&folder.path().join(earlier)).expect("a run file");
    for visit in &earlier.visits {
        assert!(run.visits.contains(visit), "visit {} is lost", visit.order);
    }
    earlier.visits.len()
}

#[test]
#[ignore = "a minute of one guest: make lab"]
fn a_sweep_turns_what_the_scheduler_feels() {
    let test = "a_sweep_turns_what_the_scheduler_feels";
    let script = format!("{SWEEP}\n{}", include_str!("sweep-turns.sh"));
    let Some(folder) = in_guest(test, "shared-l3", &script) else { return };
    let (before, after) = (text(&folder, "before"), text(&folder, "after"));
    assert!(before.contains("/min_granularity_ns:") && before.contains("/features:"), "{before}");
    assert_eq!(before, after);
    let run = complete(&folder);
    let events = |what: &str| {
        let all = run.events.iter().filter(|event| event.kind == "knob");
        all.filter(|event| event.text.contains(what)).count()
    };
    for what in [
        "min_granularity_ns from ",
        " to 100000",
        " to 10000000",
        "wakeup_granularity_ns from ",
        " to 0",
        " to 15000000",
        "min_granularity_ns is ",
    ] {
        assert!(events(what) > 0, "no {what:?} among {:?}", run.events);
    }
    // Batch settings against those that let everybody preempt.
    for metric in ["involuntary", "switches"] {
        let short = median(counted(&run, metric, "100000", "0"));
        let batch = median(counted(&run, metric, "10000000", "15000000"));
        println!("{metric}: {short} at 0.1 ms / 0, {batch} at 10 ms / 15 ms");
        assert!(batch * 2.0 < short, "{metric}: {short} at 0.1 ms / 0, {batch} at 10 ms / 15 ms");
    }
    // A knob of later kernels.
    assert_eq!(text(&folder, "lacking-status").trim(), "2");
    let said = text(&folder, "lacking");
    let words = ["(6.1.", "has no base_slice_ns", "set min_granularity_ns and wakeup_granularity_ns"];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn a_knob_of_earlier_kernels_says_what_there_is_instead() {
    let test = "a_knob_of_earlier_kernels_says_what_there_is_instead";
    let script = "status=0
        assay sweep hackbench --knob min_granularity_ns=1ms,10ms >lacking 2>&1 || status=$?
        echo $status >lacking-status
        assay sweep hackbench --dry-run --knob base_slice_ns=1ms,10ms >has 2>&1";
    let options = ["--qemu", "qemu10", "--kernel", "6.12-cloud-amd64"];
    let Some(folder) = in_guest_with(test, &options, "shared-l3", &[], script) else { return };
    assert_eq!(text(&folder, "lacking-status").trim(), "2");
    let said = text(&folder, "lacking");
    let words = ["(6.12.", "has no min_granularity_ns", "set base_slice_ns"];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert!(text(&folder, "has").contains("base_slice_ns"), "{}", text(&folder, "has"));
}

#[test]
#[ignore = "two minutes of one guest: make lab"]
fn a_killed_sweep_leaves_no_knob_turned_and_loses_nothing() {
    let script = format!("{SWEEP}\n{}", include_str!("sweep-killed.sh"));
    let test = "a_killed_sweep_leaves_no_knob_turned_and_loses_nothing";
    let Some(folder) = in_guest(test, "shared-l3", &script) else { return };
    let before = text(&folder, "before");
    for round in 1..=6 {
        assert_eq!(text(&folder, &format!("after-{round}")), before, "round {round}");
    }
    // Without a watchdog they stayed changed until a later command put them back.
    for round in 6..=7 {
        assert_ne!(text(&folder, &format!("left-{round}")), before, "round {round}");
    }
    assert!(text(&folder, "restored").contains(" again (was "), "{}", text(&folder, "restored"));
    assert_eq!(text(&folder, "after"), before);
    let last = text(&folder, "said-last");
    assert!(last.contains(" again (was ") && last.contains("resuming "), "{last}");
    let run = complete(&folder);
    let mut had = 0;
    for round in 1..=7 {
        let has = keeps(&run, &folder, &format!("killed-{round}.jsonl"));
        assert!(has >= had, "{has} visits after {had}");
        had = has;
    }
    assert!(had > 0 && run.visits.len() > had, "{had} of {} visits before the last kill", run.visits.len());
    let resumed = run.events.iter().filter(|event| event.kind == "resumed").count();
    assert!(resumed >= 2, "{resumed}");
}

#[test]
#[ignore = "two minutes of one guest: make lab"]
fn a_sweep_goes_on_after_a_reset_of_the_machine() {
    let test = "a_sweep_goes_on_after_a_reset_of_the_machine";
    let place = tempfile::tempdir().expect("a temporary folder");
    let disk = place.path().join("disk");
    let disk = disk.to_str().expect("a name");
    let first = format!("set -e\n{SWEEP}\n{}", include_str!("sweep-reboot-1.sh"));
    let reset = boot(&["--disk", disk], "shared-l3", &[], &first);
    let said = String::from_utf8_lossy(&reset.stderr);
    if reset.status.code() == Some(NOTHING_TO_BOOT) {
        skipped(test, said.trim());
        return;
    }
    assert_eq!(reset.status.code(), Some(MACHINE_ENDED), "it was reset before its script ended: {said}");
    assert!(Path::new(disk).is_file());
    let second = format!("{SWEEP}\n{}", include_str!("sweep-reboot-2.sh"));
    let Some(folder) = in_guest_with(test, &["--disk", disk], "shared-l3", &[], &second) else { return };

    let (before, turned) = (text(&folder, "before"), text(&folder, "turned"));
    assert_ne!(before, turned, "knobs were turned when the machine was reset");
    assert!(text(&folder, "journal-1.json").contains("min_granularity_ns"));
    assert_ne!(text(&folder, "boot-1"), text(&folder, "boot-2"));
    assert_eq!(text(&folder, "before-2"), before, "another boot begins with its own");
    // The values that the journal calls ours, in the next boot: not ours to put back.
    let file = "/sys/kernel/debug/sched/min_granularity_ns:";
    let ours = turned.lines().find_map(|line| line.strip_prefix(file)).expect("a value");
    assert_eq!(text(&folder, "trapped").trim(), ours);
    for said in ["said-trap", "said-2"] {
        let said = text(&folder, said);
        assert!(said.contains("min_granularity_ns") && said.contains("in an earlier boot"), "{said}");
    }
    assert_eq!(text(&folder, "after-2"), before);
    assert!(!text(&folder, "left").contains("knobs.json"), "{}", text(&folder, "left"));
    let run = complete(&folder);
    let had = keeps(&run, &folder, "reset.jsonl");
    assert!(had >= 6 && run.visits.len() > had, "{had} of {} visits before the reset", run.visits.len());
    let resumed: Vec<&str> =
        run.events.iter().filter(|event| event.kind == "resumed").map(|event| event.text.as_ref()).collect();
    assert_eq!(resumed, [format!("resumed after {had} passes, in another boot")]);
}
