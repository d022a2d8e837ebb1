//! `make lab`: the rate suite's answers are the same bits on CPUs of other vectors and of another
//! architecture. Every visit checks its copies' answers against those that are stored, so a run
//! without a wrong one is the proof.

use std::fs;

use super::arm::in_arm_guest;
use super::kernels::LIMIT_S;
use super::{in_guest_with, runs};

/// Each component once; a room of 64 MiB is the one whose answers are stored.
const SCRIPT: &str = "every_case_once rate";

/// SSE4.2 and no AVX; AVX2. AVX-512, which QEMU does not emulate, is what hosts have.
const MODELS: [&str; 2] = ["Nehalem", "Haswell"];

#[test]
#[ignore = "emulates three CPUs for minutes each: make lab"]
fn answers_by_kernel_are_the_same_on_any_cpu() {
    let test = "answers_by_kernel_are_the_same_on_any_cpu";
    let released = testkit::root().join("target/release/assay").display().to_string();
    let mut guests = Vec::new();
    for model in MODELS {
        let options = ["--limit", LIMIT_S, "--assay", &released];
        guests.push((model, in_guest_with(test, &options, "smt", &["-cpu", model], SCRIPT)));
    }
    guests.push(("64-bit ARM", in_arm_guest(test, "arm64", &[], SCRIPT)));
    for (model, folder) in guests {
        let Some(folder) = folder else { continue };
        let run = runs::read(&runs::run_file(&folder.path().join("out")));
        let mut right = 0;
        for visit in run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0) {
            let key = run.header.plan[visit.case as usize].case.key();
            assert_eq!(visit.reason, None, "{model}: {key}: {}", told(&folder));
            right += 1;
        }
        let planned = run.header.plan.len();
        assert!(right >= planned && planned >= 12, "{model}: {right} visits of {planned} cases");
        println!("{model}: {right} right visits of {planned} components");
    }
}

fn told(folder: &tempfile::TempDir) -> String {
    fs::read_to_string(folder.path().join("said")).unwrap_or_default()
}
