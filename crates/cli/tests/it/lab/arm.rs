//! `make lab`: 64-bit ARM. Under `-icount` QEMU's counters count exactly, and one instruction takes
//! 2^shift cycles: the only machine here whose instructions per cycle are known beforehand. Without
//! it that PMU has no instructions, and an emulated x86 CPU has no PMU at all: nothing may be
//! called IPC there.
//!
//! Needs `lab/fetch 6.1-cloud-arm64 cross-arm64`, Rust's library for aarch64 and then
//! `lab/build-arm64`; skipped without.

use std::collections::BTreeSet;
use std::fs;

use model::Form;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::kernels::LIMIT_S;
use super::{cores, in_guest_with, read_json, runs};

/// The series of the known loop: a round has 64 additions, one instruction that counts rounds, and
/// a branch.
const LOOP: &str = "selftest.counters";
const INSTRUCTIONS: f64 = 66.0;

pub fn in_arm_guest(test: &str, machine: &str, qemu: &[&str], script: &str) -> Option<TempDir> {
    let target = std::env::var("CARGO_TARGET_DIR");
    let target = target.unwrap_or_else(|_| testkit::root().join("target").display().to_string());
    let assay = format!("{target}/aarch64-unknown-linux-gnu/release/assay");
    in_guest_with(test, &["--limit", LIMIT_S, "--assay", &assay], machine, qemu, script)
}

fn median(results: &Value, metric: &str) -> f64 {
    let series = runs::series(results, &format!("{LOOP}@one-cpu#{metric}"));
    series["median"].as_f64().unwrap_or_else(|| panic!("no median of {metric}"))
}

/// The run of a guest without the counters: a reason, and no number.
#[track_caller]
pub fn refused(folder: &TempDir, why: &str) {
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    let ours = |case: u32| run.header.plan[case as usize].case.bench == LOOP;
    let visits: Vec<_> = run.visits.iter().filter(|visit| ours(visit.case)).collect();
    assert!(!visits.is_empty());
    for visit in visits {
        let reason = visit.reason.as_ref().map(|reason| reason.text());
        assert!(reason.is_some_and(|reason| reason.contains(why)), "{reason:?}");
        assert!(visit.samples.is_empty(), "{:?}", visit.samples);
    }
}

#[test]
#[ignore = "needs the build for aarch64, a minute: make lab"]
fn instructions_per_cycle_by_kernel() {
    for (shift, known) in [(0, 1.0), (1, 0.5)] {
        let test = format!("instructions_per_cycle_by_kernel at shift {shift}");
        let clock = format!("shift={shift},sleep=off");
        let qemu = ["-accel", "tcg,thread=single", "-icount", &clock];
        let study = include_str!("smt-load.sh");
        let script = format!(
            "assay run --quick --force --only {LOOP} --budget 3s --out loop >said-loop 2>&1\n{study}"
        );
        let Some(folder) = in_arm_guest(&test, "arm64", &qemu, &script) else { return };
        let results = runs::diagnosed(&runs::run_file(&folder.path().join("loop")));
        let [ipc, instructions, cycles] =
            ["ipc", "instructions", "cycles"].map(|metric| median(&results, metric));
        println!(
            "shift {shift}: {ipc:.4} instructions per cycle, {instructions:.2} a round in {cycles:.2} cycles"
        );
        assert!((ipc / known - 1.0).abs() < 0.01, "shift {shift}: {ipc}");
        assert!((instructions / INSTRUCTIONS - 1.0).abs() < 0.01, "shift {shift}: {instructions}");
        assert!((cycles * known / INSTRUCTIONS - 1.0).abs() < 0.01, "shift {shift}: {cycles}");
        studied(&folder, known);
    }
}

/// `assay smt` found this IPC at every level, by one task and by two.
#[track_caller]
fn studied(folder: &TempDir, known: f64) {
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    let mut seats = BTreeSet::new();
    for visit in run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0) {
        let case = &run.header.plan[visit.case as usize].case;
        assert_eq!((&visit.reason, case.inputs.get("no_ipc")), (&None, None), "{}", case.key());
        let samples = visit.samples.iter().filter(|samples| samples.metrics == ["ipc"]);
        let all: Vec<f64> = samples.flat_map(|samples| samples.values(Form::Value)).collect();
        println!("{}: {all:.4?}", case.key());
        assert!(all.len() >= 7 && all.iter().all(|ipc| (ipc / known - 1.0).abs() < 0.01), "{all:?}");
        seats.insert(case.placement.seats.len());
    }
    assert_eq!(seats, BTreeSet::from([1, 2]));
    let said = fs::read_to_string(folder.path().join("report.md")).expect("the guest wrote it");
    assert!(!said.contains("No IPC ("), "{said}");
}

#[test]
#[ignore = "needs the build for aarch64, a minute: make lab"]
fn siblings_without_instructions_by_kernel() {
    let script = format!("{DESCRIBE}\nevery_case_once {LOOP},cpu,memory.bandwidth");
    let test = "siblings_without_instructions_by_kernel";
    let Some(folder) = in_arm_guest(test, "arm64-smt", &[], &script) else { return };
    described(&folder);
    refused(&folder, "no instructions");
    // Everything else is measured, and every answer is right.
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    for visit in run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0) {
        let case = &run.header.plan[visit.case as usize].case;
        assert!(case.bench == LOOP || visit.reason.is_none(), "{}: {:?}", case.key(), visit.reason);
    }
}

/// What the machine is asked.
const DESCRIBE: &str = "assay machine --json >machine.json
    assay machine >machine
    cat /sys/devices/system/cpu/cpu0/cache/index0/size >size || true";

/// Two sockets of two cores of two threads.
fn described(folder: &TempDir) {
    let machine = read_json(folder, "machine.json");
    let summary = &machine["summary"];
    assert_eq!(summary["threads_per_core"], json!([2]));
    assert_eq!((&summary["packages"], &summary["cores"]), (&json!(2), &json!(4)));
    assert_eq!(cores(&machine), json!(["0-1", "2-3", "4-5", "6-7"]));
    // Caches whose size the kernel does not report.
    let text = |file: &str| fs::read_to_string(folder.path().join(file)).expect("the guest wrote it");
    assert_eq!((text("size").as_str(), &summary["l3"]), ("", &json!([])));
    assert!(text("machine").contains("Arm Neoverse N1"), "{}", text("machine"));
}
