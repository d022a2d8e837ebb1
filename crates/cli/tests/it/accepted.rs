//! `assay run --accept`: a run that is checked against a spec, and what it visits for that.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::assay;
use crate::check::output;
use serde_json::Value;

/// A quick run of invented samples on a recorded host into `out`.
fn quick(only: &str, out: &Path) -> Command {
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    let mut command = assay();
    command.args(["run", "--quick", "--new", "--pretend", "1", "--only", only, "--from"]).arg(&machine);
    command.arg("--out").arg(out);
    command
}

/// The visits of each case of a run, and the medians of its series.
fn visits(folder: &Path) -> (BTreeMap<String, usize>, BTreeMap<String, f64>) {
    let report = fs::read(folder.join("report.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let (mut visits, mut medians) = (BTreeMap::new(), BTreeMap::new());
    for series in report["series"].as_array().into_iter().flatten() {
        let text = |name: &str| series[name].as_str().unwrap_or_default().to_string();
        visits.insert(text("case"), series["values"].as_array().map_or(0, Vec::len));
        medians.extend(series["median"].as_f64().map(|median| (text("key"), median)));
    }
    (visits, medians)
}

#[test]
fn a_run_visits_again_what_an_open_demand_rests_on() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (plain, spec) = (folder.path().join("plain"), folder.path().join("spec.toml"));
    let only = "cpu.clock,ipc.pipe-pingpong";
    let (code, _, error) = output(quick(only, &plain));
    assert_eq!(code, 0, "{error}");
    let (before, medians) = visits(&plain);
    let case = "ipc.pipe-pingpong@same-cpu";
    let key = format!("{case}#round_trips");
    // At its limit a figure is never decided; far from it, it is at once.
    for (share, asked, more) in [(1.0, 4, true), (0.1, 0, false)] {
        let limit = share * medians[&key];
        fs::write(&spec, format!("[[limit]]\nseries = \"{key}\"\nmin = \"{limit} 1/s\"\n")).expect("a file");
        let out = folder.path().join(if more { "near" } else { "far" });
        let mut command = quick(only, &out);
        command.arg("--accept").arg(&spec);
        let (code, text, error) = output(command);
        assert_eq!(code, asked, "{text} {error}");
        let (mut found, _) = visits(&out);
        assert_eq!(found[case] > before[case], more, "{} {}", found[case], before[case]);
        // Nothing else is.
        found.insert(case.to_string(), before[case]);
        assert_eq!(found, before);
    }
}

#[test]
fn a_run_can_be_held_against_a_spec_at_once() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let spec = folder.path().join("spec.toml");
    let run = |out: &str| {
        let mut command = quick("cpu.clock", &folder.path().join(out));
        command.arg("--accept").arg(&spec);
        output(command)
    };
    fs::write(&spec, "[machine]\ncpus = { min = 3 }\n").expect("a file");
    let (code, text, error) = run("one");
    assert!(
        code == 1 && text.contains("REJECT") && error.contains("exit 1 (REJECT)"),
        "{code} {text} {error}"
    );
    assert!(!error.contains("exit 0"), "{error}");
    // Where no report can be written the outcome is printed first, and a rejection stays one.
    let (one, blocked) = (folder.path().join("one"), folder.path().join("blocked"));
    for entry in fs::read_dir(one).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".assay.jsonl") {
            fs::create_dir_all(blocked.join(name).join("full")).expect("a folder");
        }
    }
    for (cpus, asked, word) in [(3, 1, "REJECT"), (2, 3, "ACCEPT")] {
        fs::write(&spec, format!("[machine]\ncpus = {{ min = {cpus} }}\n")).expect("a file");
        let (code, text, error) = run("blocked");
        assert!(text.contains(word) && error.contains("cannot write"), "{text} {error}");
        assert_eq!(code, asked, "{error}");
    }
    fs::write(&spec, "[machine]\ncpus = { least = 3 }\n").expect("a file");
    let (code, _, error) = run("two");
    assert!(code == 2 && error.contains("neither min nor max"), "{error}");
    for (text, told) in [
        ("[run]\nprofile = [\"full\"]\n[machine]\ncpus = 2", "not quick"),
        ("[[limit]]\nseries = \"syscall.*\"\nmax = \"1 GB/s\"", "measured in "),
    ] {
        fs::write(&spec, text).expect("a file");
        let (code, _, error) = run("two");
        assert!(code == 2 && error.contains(told), "{error}");
    }
    assert!(!folder.path().join("two").exists(), "nothing is measured for a spec that cannot be used");
}
