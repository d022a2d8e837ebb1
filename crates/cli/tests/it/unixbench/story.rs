//! The published tables of the placement story, through the program: the odd row is named, and the
//! guest that beats its host.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::text;
use crate::assay;
use crate::host::skipped;

/// A published table as columns of names and rows of cells; `None` (said) where it is not beside
/// this clone.
fn published(test: &str, name: &str) -> Option<Vec<Vec<String>>> {
    let Ok(text) = fs::read_to_string(testkit::root().join("../shared/spec/data").join(name)) else {
        skipped(test, format!("{name} is not beside this clone"));
        return None;
    };
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    Some(lines.map(|line| line.split(',').map(str::to_string).collect()).collect())
}

/// A report of UnixBench, one copy, with these indices by title.
fn report(folder: &Path, host: &str, model: &str, cpus: &str, rows: &[(&str, f64)]) -> PathBuf {
    let mut text = format!(
        "   BYTE UNIX Benchmarks (Version 5.1.3)\n\n   System: {host}: GNU/Linux\n   OS: GNU/Linux -- 3.10.0 -- #1 SMP\n   \
         Machine: x86_64 (x86_64)\n   CPU 0: {model} (4999.9 bogomips)\n\nBenchmark Run: Tue Nov 12 2019 15:00:50 - 15:28:47\n{cpus} CPUs \
         in system; running 1 parallel copy of tests\n\nSystem Benchmarks Index Values               BASELINE       RESULT    INDEX\n"
    );
    for (title, index) in rows {
        let test = stats::unixbench::titled(title).expect("a test of the index");
        let (base, score) = (test.baseline, index / 10.0 * test.baseline);
        writeln!(text, "{title:<40} {base:12.1} {score:12.1} {index:8.1}").expect("a string");
    }
    let file = folder.join(format!("{host}.txt"));
    fs::write(&file, text).expect("a file");
    file
}

fn compared(a: &Path, b: &Path) -> (Value, String) {
    let run = |json: bool| {
        let mut command = assay();
        command.arg("compare").arg(a).arg(b).env("COLUMNS", "200");
        command.arg(if json { "--json" } else { "--all" });
        text(&command.output().expect("assay runs"))
    };
    (serde_json::from_str(&run(true)).expect("JSON"), run(false))
}

#[test]
fn the_odd_row_of_the_published_table_is_named() {
    let Some(table) = published("the_odd_row_of_the_published_table_is_named", "unixbench_xeon_vs_atom.csv")
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let rows = |column: usize| -> Vec<(&str, f64)> {
        let tests = table[1..].iter().filter(|row| !row[0].contains("Index Score"));
        tests.map(|row| (row[0].as_str(), row[column].parse().expect("a number"))).collect()
    };
    let xeon = report(folder.path(), "xeon", "Intel(R) Xeon(R) CPU E5-2682 v4 @ 2.50GHz", "64", &rows(1));
    let atom = report(folder.path(), "atom", "Intel(R) Atom(TM) CPU C3958 @ 2.00GHz", "16", &rows(2));
    let (json, shown) = compared(&atom, &xeon);
    let problems: Vec<String> =
        crate::validator("compare").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    let found = json["findings"].as_array().expect("findings");
    assert_eq!(found.len(), 1, "{found:?}");
    insta::assert_snapshot!("odd_row", serde_json::to_string_pretty(&found[0]).expect("JSON"));
    // It is what is said first.
    let first = shown.lines().find(|line| line.starts_with("  ! ")).expect("a warning");
    assert!(first.contains("Pipe-based Context Switching scores 1.26 times as much"), "{shown}");
    // Then its rows in a chart, the greatest ratio first; the odd one is marked.
    let page = folder.path().join("compared.html");
    let drawn = assay().arg("compare").args([&atom, &xeon]).arg("--out").arg(&page).output();
    assert!(drawn.expect("assay runs").status.success());
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains("id=\"chart-rows-b-1\""), "no chart of rows");
    let below: Vec<&str> = shown.lines().skip_while(|line| !line.contains("UnixBench, row by row")).collect();
    let odd = below.iter().position(|line| line.contains("Pipe-based Context Switching (odd)"));
    let index = below.iter().position(|line| line.contains("all: the index"));
    assert!(odd.zip(index).is_some_and(|(odd, index)| odd < index), "{shown}");
    // What is the same of both is said once.
    assert_eq!(page.matches("<td>from the table of the index").count(), 12);
    // Neither a table against itself nor the other eleven rows have one.
    let (json, _) = compared(&atom, &atom);
    assert_eq!(json["findings"], serde_json::json!([]));
    let eleven: Vec<(&str, f64)> =
        rows(1).into_iter().filter(|(title, _)| !title.contains("Context")).collect();
    let short = report(folder.path(), "short", "Intel(R) Xeon(R) CPU E5-2682 v4 @ 2.50GHz", "64", &eleven);
    assert_eq!(compared(&atom, &short).0["findings"], serde_json::json!([]));
}

#[test]
fn the_guest_that_beats_its_host_is_named() {
    let test = "the_guest_that_beats_its_host_is_named";
    let (Some(scores), Some(machines)) =
        (published(test, "context_switch_placement.csv"), published(test, "vm_topologies.csv"))
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let of = |machine: &str, alias: &str| {
        let row = machines.iter().find(|row| row[0] == machine).expect("its topology");
        let score = scores.iter().find(|row| row[0] == alias && row[1] == "free").expect("its score");
        let rows = [("Pipe-based Context Switching", score[2].parse().expect("a number"))];
        report(folder.path(), alias, &row[6], &row[1], &rows)
    };
    let files = [
        of("xeon_host", "xeon_e5_2682v4_host"),
        of("vm_a", "vm_a"),
        of("vm_b", "vm_b"),
        of("vm_c", "vm_c"),
        of("dell_r720xd", "dell_r720xd"),
    ];
    let [host, _, vm_b, ..] = &files;
    let (json, _) = compared(host, vm_b);
    let headlines = |json: &Value| -> Vec<String> {
        let found = json["findings"].as_array().expect("findings").iter();
        found.map(|one| one["headline"].as_str().expect("a text").to_string()).collect()
    };
    let said = "Guest vm_b is 1.38 times as fast as xeon_e5_2682v4_host, a host of its class, in Pipe-based Context Switching";
    assert_eq!(headlines(&json), [said]);
    // The other way round; and among all of them, which are too few to judge single ones, it beats
    // its fellow by the most.
    assert_eq!(headlines(&compared(vm_b, host).0), [said]);
    let peers = assay().arg("peers").args(&files).arg("--json").output().expect("assay runs");
    assert_eq!(peers.status.code(), Some(4), "{}", String::from_utf8_lossy(&peers.stderr));
    let peers: Value = serde_json::from_slice(&peers.stdout).expect("JSON");
    let said =
        "Guest vm_b is 5.38 times as fast as vm_a, a host of its class, in Pipe-based Context Switching";
    assert_eq!(headlines(&peers), [said]);
}

/// Runs have further metrics in the same row: only its score is one.
#[test]
fn a_planted_row_of_a_run_is_named_and_its_other_metrics_are_no_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, run) = super::pretended(folder.path(), &["-c", "1"]);
    let lines = crate::runs::unsealed(&run);
    let changed = |metric: &str, times: f64| {
        let mut plan: Vec<String> = Vec::new();
        let lines = lines.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("JSON");
            if record["header"].is_object() {
                record["header"]["started"] = "1970-01-01T00:01:00Z".into();
                let cases = record["header"]["plan"].as_array().expect("a plan").iter();
                let name =
                    |one: &Value| format!("{}@{}", one["case"]["bench"], one["case"]["placement"]["name"]);
                plan = cases.map(name).collect();
            }
            let case = record["visit"]["case"].as_u64().and_then(|case| plan.get(case as usize));
            let free = case.is_some_and(|name| name.contains("context1") && name.contains("free"));
            let visit = record.get_mut("visit").filter(|_| free);
            let samples = visit.and_then(|visit| visit["samples"].as_array_mut());
            for samples in samples.into_iter().flatten() {
                if samples["metrics"] == serde_json::json!([metric]) {
                    let works = samples["work"].as_array_mut().expect("a column");
                    works
                        .iter_mut()
                        .for_each(|work| *work = (work.as_f64().expect("a number") * times).into());
                }
            }
            format!("{record}\n")
        });
        let file = folder.path().join(format!("{metric}.assay.jsonl"));
        fs::write(&file, lines.collect::<String>()).expect("a file");
        file
    };
    let named = |file: &Path| compared(&run, file).0["findings"].as_array().map(Vec::len);
    assert_eq!(named(&changed("voluntary", 5.0)), Some(0));
    assert_eq!(named(&changed("score", 9.0)), Some(1));
}
