//! `assay reference`: what is typical, from where, and how a run reads beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::assay;
use crate::golden::pretended;
use serde_json::Value;

/// Runs `assay reference` with a folder for the user's references.
fn reference(own: &Path, args: &[&str]) -> (i32, String, String) {
    let output = assay().env("XDG_DATA_HOME", own).arg("reference").args(args).output().expect("assay runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn machine(name: &str) -> String {
    testkit::root().join(format!("tests/machines/{name}.json")).display().to_string()
}

#[test]
fn every_row_is_of_a_metric_that_exists_in_its_unit() {
    let output = assay().args(["list", "--json"]).output().expect("assay runs");
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut units: BTreeMap<String, String> = BTreeMap::new();
    for bench in listed.as_array().expect("a list") {
        for metric in bench["metrics"].as_array().expect("metrics") {
            let word = |value: &Value| value.as_str().expect("a word").to_string();
            units.insert(format!("{}#{}", word(&bench["id"]), word(&metric[0])), word(&metric[1]));
        }
    }
    for row in diagnose::reference::published() {
        let (head, metric) = row.metric.split_once('#').expect("a metric");
        let id = format!("{}#{metric}", head.split(['@', '?']).next().unwrap_or_default());
        let unit = units.get(&id).unwrap_or_else(|| panic!("{id} does not exist"));
        assert_eq!(*unit, row.unit, "{}", row.metric);
    }
}

#[test]
fn bands_with_source_and_date() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let (code, text, _) = reference(own.path(), &["list"]);
    assert!(code == 0 && text.contains("dram-latency") && text.contains("assay reference add"), "{text}");
    let guest = machine("firecracker-guest-2cpu");
    let (code, text, _) = reference(own.path(), &["show", "dram-latency", "--from", &guest]);
    assert_eq!(code, 0);
    for words in [
        "host       Intel 4th gen Xeon Scalable (Sapphire Rapids), guest\n",
        "typical    106.4–113 ns of 4th gen Xeon Scalable (Sapphire Rapids), published\n",
        "EPYC 7002 (Rome), bare metal: 113–134 ns\n    measured, sure: medium, 2019-10-01",
        "https://www.anandtech.com/",
        "No source for",
    ] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
    let (_, text, _) = reference(own.path(), &["show", "syscall", "--from", &guest]);
    assert!(text.contains("typical    ~ 51–237 ns of x86, any kernel, published\n"), "{text}");
    let (code, text, _) = reference(own.path(), &["show", "wake-up", "--from", &guest]);
    assert!(code == 0 && text.contains("no reference value"), "{text}");
    let (code, text, _) = reference(own.path(), &["show", "disk.random", "--from", &guest]);
    assert!(code == 0 && text.contains("NVMe, PCIe 4"), "{text}");
    let (code, _, error) = reference(own.path(), &["show", "dram-latancy"]);
    assert!(code == 2 && error.contains("did you mean dram-latency?"), "{error}");
    assert!(!own.path().join("assay").exists(), "showing writes nothing");
}

/// A run with invented samples, for the host that the tests run on.
fn run(folder: &Path, seed: u64) -> PathBuf {
    pretended(seed, &folder.join(format!("run-{seed}")), &[])
}

#[test]
fn a_run_that_is_kept_is_asked_first() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let one = run(own.path(), 3);
    let one = one.to_str().expect("a plain path");
    let (code, _, told) = reference(own.path(), &["add", one, "--as", "db class 2026"]);
    assert!(code == 0 && told.contains("as \"db class 2026\""), "{told}");
    let kept = own.path().join("assay/reference/db class 2026.csv");
    assert!(fs::read_to_string(&kept).expect("kept").starts_with("metric,name,subject,where,detail,unit,"));

    let (_, text, _) = reference(own.path(), &["list"]);
    assert!(
        text.contains("  db class 2026: ") && text.contains("which come before the published ones"),
        "{text}"
    );
    let (code, text, error) = reference(own.path(), &["show", "core-clock", "--run", one]);
    assert!(code == 0 && text.contains(", db class 2026\n"), "{text}{error}");
    assert!(text.contains(": normal\n"), "a run is as fast as itself: {text}");

    let (code, _, error) = reference(own.path(), &["add", one, "--as", "db class 2026"]);
    assert!(code == 3 && error.contains("is taken"), "{error}");
    for name in ["../x", ".x", "", "a/b", " x"] {
        let (code, _, error) = reference(own.path(), &["add", one, "--as", name]);
        assert!(code == 3 && error.contains("is not a name"), "{name}: {error}");
    }
    // A table that was damaged is named, and the others count.
    fs::write(&kept, "metric,low\nx,y\n").expect("written");
    let (code, text, error) = reference(own.path(), &["show", "core-clock", "--run", one]);
    assert!(code == 0 && error.contains("db class 2026.csv is ignored"), "{text}{error}");
}

#[test]
fn a_run_a_folder_and_a_table_that_are_named() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let runs: Vec<PathBuf> = (3..5).map(|seed| run(own.path(), seed)).collect();
    let one = runs[0].to_str().expect("a plain path");
    let shown = |by: &str| reference(own.path(), &["show", "core-clock", "--run", one, "--reference", by]);

    let (code, text, error) = shown(one);
    assert!(
        code == 0 && text.contains(": normal\n") && text.contains(&format!(", {one}\n")),
        "{text}{error}"
    );

    // A folder has the other hosts of the same make.
    let folder = own.path().join("run-4");
    let other = crate::runs::unsealed(&runs[1]);
    fs::write(&runs[1], other.replace("\"host\":\"", "\"host\":\"other-")).expect("written");
    let (code, text, error) = shown(folder.to_str().expect("a plain path"));
    assert!(code == 0 && text.contains("(1 host)"), "{text}{error}");

    let table = own.path().join("fleet.csv");
    let header = "metric,name,subject,where,detail,unit,better,low,high,kind,source,source_date,sure,note";
    let row = "cpu.clock#clock,Clock,any,,,GHz,higher,1e3,2e3,measured,our own,2026-11,high,";
    fs::write(&table, format!("{header}\n{row}\n")).expect("written");
    let (code, text, error) = shown(table.to_str().expect("a plain path"));
    assert!(code == 0 && text.contains("~ bad") && !error.contains("not apply here"), "{text}{error}");
    // Rows that do nothing are said.
    let rows = [
        row.to_string(),
        row.replace("cpu.clock", "cpu.clok"),
        row.replace("GHz", "ns"),
        row.replace("any", "x68"),
        row.replace("any", "arm"),
    ];
    fs::write(&table, format!("{header}\n{}\n", rows.join("\n"))).expect("written");
    let (code, text, error) = shown(table.to_str().expect("a plain path"));
    assert!(code == 0 && text.contains("~ bad"), "{text}{error}");
    for words in [
        "4 of its 5 rows do not apply here",
        "the run has no figure cpu.clok#clock",
        "\"ns\" is not a unit of cpu.clock#clock",
        "no class of hosts is called \"x68\"",
        "1 is for other hosts",
    ] {
        assert!(error.contains(words), "{words:?} in {error}");
    }
    fs::write(&table, format!("{header}\n{}\n", row.replace("high", "certain"))).expect("written");
    let (code, _, error) = shown(table.to_str().expect("a plain path"));
    assert!(code == 3 && error.contains("line 2") && error.contains("fleet.csv"), "{error}");

    let empty = tempfile::tempdir().expect("a temporary directory");
    let (code, _, error) = shown(empty.path().to_str().expect("a plain path"));
    assert!(code == 3 && error.contains("same make"), "{error}");
    let (code, _, error) = reference(own.path(), &["show", "core-clock", "--reference", one]);
    assert!(code == 3 && error.contains("--run RUN"), "{error}");
}

#[test]
fn a_figure_that_is_too_good_has_a_finding_and_costs_the_verdict() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let one = run(own.path(), 3);
    let table = own.path().join("limits.csv");
    let header = "metric,name,subject,where,detail,unit,better,low,high,kind,source,source_date,sure,note";
    let shown = |limit: &str| {
        let row = format!("cpu.clock#clock,Clock,any,,,GHz,higher,,{limit},limit,our own,2026-11,high,");
        fs::write(&table, format!("{header}\n{row}\n")).expect("written");
        let mut command = assay();
        command.arg("diagnose").arg(&one).arg("--reference").arg(&table);
        let output =
            command.env("XDG_DATA_HOME", own.path()).env("COLUMNS", "100").output().expect("assay runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = shown("1");
    let lines: Vec<&str> = text.lines().collect();
    assert!(text.contains("✗ too good"), "{text}");
    let finding = lines.iter().find(|line| line.starts_with("  ! odd figure ")).expect("a finding");
    assert!(finding.contains("Core clock is better than any real host"), "{text}");
    assert!(!text.contains("HEALTHY") && !text.contains("NO FAULT FOUND"), "{text}");
    assert!(!shown("9").contains("too good"));
}

#[test]
fn tables_are_told_to_programs() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let guest = machine("firecracker-guest-2cpu");
    let json = |args: &[&str]| {
        let (code, text, error) = reference(own.path(), args);
        assert_eq!(code, 0, "{error}");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    let all = json(&["list", "--json"]);
    let all = all.as_array().expect("rows");
    assert_eq!(all.len(), diagnose::reference::published().len());
    assert!(all.iter().all(|row| row["table"] == "published" && row["metric"].is_string()), "{all:?}");
    let shown = json(&["show", "syscall", "--from", &guest, "--json"]);
    assert!(shown["typical"]["high"].is_number() && shown["typical"]["unit"].is_string(), "{shown}");
    let rows = shown["rows"].as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["source"].is_string()), "{shown}");
}

#[test]
fn a_run_is_read_by_another_one() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let one = run(own.path(), 3);
    let clock = |text: &str| {
        let line = text.lines().find(|line| line.contains("core clock")).map(str::to_string);
        line.unwrap_or_else(|| panic!("no core clock in {text}"))
    };
    let mut diagnose = assay();
    diagnose.arg("diagnose").arg(&one).env("XDG_DATA_HOME", own.path()).env("COLUMNS", "100");
    let plain = diagnose.output().expect("assay runs");
    let by_itself = diagnose.arg("--reference").arg(&one).output().expect("assay runs");
    let [plain, by_itself] = [plain, by_itself].map(|own| clock(&String::from_utf8_lossy(&own.stdout)));
    assert!(!plain.contains("normal") && by_itself.contains("● normal"), "{plain}\n{by_itself}");
    // A new run, read while it is reported.
    let mut command = assay();
    command.args(["run", "--quick", "--new", "--pretend", "4", "--only", "cpu.clock,memory.latency"]);
    command.arg("--from").arg(machine("firecracker-guest-2cpu")).arg("--reference").arg(&one);
    command.arg("--out").arg(own.path().join("new")).env("XDG_DATA_HOME", own.path());
    let output = command.env("COLUMNS", "100").output().expect("assay runs");
    let line = clock(&String::from_utf8_lossy(&output.stdout));
    assert!(line.contains("● normal"), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
}
