//! The ReFrame class: what is exported, and when the test fails.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Stage, program, recipe};
use crate::host::fleet_tool;
use crate::runs::{Ended, end};

/// `reframe -r` of the class, with these words and this environment; `None`: not here.
pub fn reframe(test: &str, stage: &Stage, words: &[&str], environment: &[(&str, &str)]) -> Option<Ended> {
    let mut command = fleet_tool(test, "reframe")?;
    stage.set_up(&mut command);
    // Its log goes there.
    command.env("TMPDIR", stage.folder.path()).envs(environment.iter().copied());
    command.args(["--nocolor", "--prefix", "reframe", "--report-file", "reframe.json", "-r", "-c"]);
    command.arg(recipe("reframe/assay_check.py")).args(words);
    Some(end(&mut command))
}

/// The test of the last report: `pass`, `fail` or `skip`, why, and its performance variables.
pub fn reported(stage: &Stage) -> (String, String, Vec<String>) {
    let text = fs::read_to_string(stage.path("reframe.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let case = &report["runs"][0]["testcases"][0];
    let figures = case["perfvalues"].as_object().map(|own| own.keys().cloned().collect()).unwrap_or_default();
    let word = |name: &str| case[name].as_str().unwrap_or_default().to_string();
    (word("result"), word("fail_reason"), figures)
}

#[test]
fn reframe_test_fails_for_rejected_alone() {
    let test = "reframe_test_fails_for_rejected_alone";
    let stage = Stage::pretending();
    let [_, (spec, _), _] = stage.specs();
    let words = ["-S", &format!("spec={}", spec.display())];
    let Some(ended) = reframe(test, &stage, &words, &[]) else { return };
    let (result, why, _) = reported(&stage);
    assert!(result == "fail" && why.contains("rejected"), "{why}: {}", ended.out);

    // An undecided run of three figures, one of them known.
    let figure = |name: &str, value: Value, verdict: &str| json!({"name": name, "value": value, "unit": "us", "verdict": verdict});
    let figures = [
        figure("a", json!(1.5), "imprecise"),
        figure("b", json!(2.5), "rejected"),
        figure("c", Value::Null, "skipped"),
    ];
    let report = json!({ "key_figures": figures });
    let text = format!("#!/bin/sh\nmkdir runs\necho '{report}' >runs/report.json\nexit 4\n");
    program(&stage.path("bin/assay"), &text);
    reframe(test, &stage, &[], &[]).expect("it is here").expect(0);
    let (result, why, figures) = reported(&stage);
    assert!(result == "pass" && figures == ["generic:default:a"], "{result} {why} {figures:?}");
}

/// All figures are exported but those that others disturbed, whatever this host does meanwhile.
#[test]
#[ignore = "make fleet"]
fn real_reframe_exports_nothing_rejected() {
    let test = "real_reframe_exports_nothing_rejected";
    let stage = Stage::with("--only syscall.getpid,ipc.pipe --budget 15s --force");
    let begin = std::time::Instant::now();
    let Some(ended) = reframe(test, &stage, &["--keep-stage-files"], &[]) else { return };
    let (result, why, figures) = reported(&stage);
    println!("ReFrame, local: {result} {why} after {:.1} s, {figures:?}", begin.elapsed().as_secs_f64());
    let found = glob(&stage.path("reframe"), "report.json");
    let report: Value = serde_json::from_str(&fs::read_to_string(found).expect("a report")).expect("JSON");
    let known = report["key_figures"].as_array().expect("a list");
    let usable = known.iter().filter(|one| one["verdict"] != "rejected" && !one["value"].is_null()).count();
    match result.as_str() {
        "pass" => assert_eq!(figures.len(), usable, "{figures:?} of {known:?}: {}", ended.out),
        // Others had this host.
        _ => assert!(why.contains("nothing valid was measured"), "{why}: {}", ended.out),
    }
}

/// The newest file of a name below a folder.
fn glob(folder: &Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == name {
                return entry.path();
            }
        }
    }
    panic!("no {name} below {}", folder.display())
}
