//! UnixBench through the program: its reports imported, its index measured and reported.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::assay;

mod story;

fn example() -> PathBuf {
    testkit::root().join("tests/foreign/unixbench-report.txt")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn a_report_reads_as_it_read() {
    let import =
        |args: &[&str]| assay().args(args).arg(example()).env("COLUMNS", "160").output().expect("assay runs");
    let shown = text(&import(&["import", "--all"])).replace(&example().display().to_string(), "FILE");
    insta::assert_snapshot!("import", shown);
    let json: Value = serde_json::from_str(&text(&import(&["import", "--json"]))).expect("JSON");
    let problems: Vec<String> =
        crate::validator("import").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    let index = json["index"].as_array().expect("an index for each section");
    let told: Vec<_> = index.iter().map(|one| (one["copies"].as_u64(), one["score"].as_f64())).collect();
    assert_eq!(told, [(Some(1), Some(598.0)), (Some(2), Some(1096.3))]);
    assert_eq!(index[0]["remark"], "");
    // The second headline was written by hand.
    let again = index[1]["recomputed"].as_f64().expect("a score");
    assert!((again - 1076.3).abs() < 0.06 && index[1]["remark"] != "", "{}", index[1]);
    // Formats without an index have no such member.
    let lmbench = example().with_file_name("lmbench-summary.txt");
    let other = text(&assay().args(["import", "--json"]).arg(lmbench).output().expect("assay runs"));
    assert!(serde_json::from_str::<Value>(&other).expect("JSON").get("index").is_none());
}

/// A run with invented samples of a host of two CPUs; what it prints, and its file.
fn pretended(out: &Path, args: &[&str]) -> (Output, PathBuf) {
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    let mut command = assay();
    command
        .args(["unixbench", "--quick", "--all", "--new", "--pretend", "7"])
        .args(args)
        .arg("--from")
        .arg(machine);
    let output = command.arg("--out").arg(out).env("COLUMNS", "150").output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut files = std::fs::read_dir(out).expect("a folder").flatten().map(|entry| entry.path());
    let run = files.find(|path| path.to_string_lossy().ends_with(".assay.jsonl"));
    (output, run.expect("a run"))
}

/// The samples as if they had been measured.
fn as_measured(run: &Path) -> PathBuf {
    let lines = crate::runs::unsealed(run).replacen("\"pretend\":7", "\"pretend\":null", 1);
    let real = run.with_file_name("real.assay.jsonl");
    std::fs::write(&real, lines).expect("a file");
    real
}

#[test]
fn the_index_is_printed_first_and_in_its_own_form() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (output, run) = pretended(dir.path(), &[]);
    let shown = text(&output);
    let section = shown.split("\n  UnixBench\n").nth(1).expect("the section");
    let section = section.split("\n  Clock, idle").next().expect("what follows it");
    insta::assert_snapshot!("terminal", section.replace(bench::RUSTC, "rustc 1.x"));
    // Its answer stands before it, and no other table of results.
    let before = shown.split("\n  UnixBench\n").next().expect("the heading");
    assert!(before.contains("  INDEX ") && !before.contains("median"), "{before}");

    // UnixBench's readers, ours among them, take it for a report.
    let report = dir.path().join("printed.txt");
    std::fs::write(&report, format!("   System: vm: GNU/Linux\n{shown}")).expect("a file");
    let read = text(&assay().args(["import", "--json"]).arg(&report).output().expect("assay runs"));
    let read: Value = serde_json::from_str(&read).expect("JSON");
    let printed = read["index"].as_array().expect("indices");
    assert!(printed.len() == 2 && printed.iter().all(|one| one["remark"] == ""), "{printed:?}");

    let report = |format: &str| {
        let verb = ["report", "--format", format];
        text(&assay().args(verb).arg(&run).output().expect("assay runs"))
    };
    let json: Value = serde_json::from_str(&report("json")).expect("JSON");
    assert!(crate::validator("results").is_valid(&json));
    let index = json["index"].as_array().expect("an index for each number of copies");
    for (one, printed) in index.iter().zip(printed) {
        assert_eq!((&one["copies"], one["tests"].as_array().map(Vec::len)), (&printed["copies"], Some(12)));
        let score = |form: &str| one[form]["score"].as_f64().expect("a score");
        let (low, high) = (one["classic"]["ci95"][0].as_f64(), one["classic"]["ci95"][1].as_f64());
        assert!(low < Some(score("classic")) && high > Some(score("classic")), "{one}");
        assert!((score("classic") - printed["score"].as_f64().expect("a score")).abs() < 0.06);
        assert_eq!(
            (&one["pinned"]["placement"], &one["two_cpus"]["placement"]),
            (&"same-cpu".into(), &"same-llc".into())
        );
        // Context switching is a twelfth of each.
        let of = |placement: &str| {
            let key = format!("unixbench.context1@{placement}?copies={}#score", one["copies"]);
            let series = json["series"]
                .as_array()
                .expect("series")
                .iter()
                .find(|series| series["key"] == key.as_str());
            series.and_then(|series| series["median"].as_f64()).expect("a score")
        };
        let expected = (of("same-cpu") / of("free")).powf(1.0 / 12.0);
        assert!((score("pinned") / score("classic") / expected - 1.0).abs() < 1e-9);
    }
    assert!(report("markdown").contains("## UnixBench"));
    let page = std::fs::read_to_string(dir.path().join("report.html")).expect("a page");
    assert!(page.contains("id=\"unixbench\"") && page.contains("System Benchmarks Index Score"));
}

#[test]
fn a_part_has_no_index_and_mistakes_exit_with_2() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (output, run) = pretended(dir.path(), &["context1", "-c1"]);
    let shown = text(&output);
    for words in
        ["1 parallel copy", "Partial Index", "no index: 11 of its 12 tests were not run", "the same test"]
    {
        assert!(shown.contains(words), "{words:?}: {shown}");
    }
    assert!(!shown.contains("2 parallel copies") && !shown.contains("Dhrystone"), "{shown}");
    let json = text(&assay().args(["diagnose", "--json"]).arg(&run).output().expect("assay runs"));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["index"][0]["classic"]["score"].is_null() && json["index"][0]["classic"]["reason"] != "");
    for (args, words) in [
        (&["context2"][..], "whetstone-double"),
        (&["-c", "0"], "1..=1024"),
        (&["execl", "--only", "unixbench.pipe"], "--only excludes every test"),
        (&["--only", "nonsense"], "no benchmark is called"),
    ] {
        let output = assay().arg("unixbench").args(args).output().expect("assay runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(words), "{args:?}: {error}");
    }
    let dry = assay().args(["unixbench", "-c", "3", "shell", "--dry-run"]).output().expect("assay runs");
    let plan = text(&dry);
    assert!(plan.contains("unixbench.shell8@free?copies=3") && !plan.contains("copies=1 "), "{plan}");
}

#[test]
fn an_old_report_stands_beside_a_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (_, run) = pretended(dir.path(), &[]);
    let real = as_measured(&run);
    let compare = |files: [&Path; 2]| {
        let found = text(&assay().args(["compare", "--json"]).args(files).output().expect("assay runs"));
        serde_json::from_str::<Value>(&found).expect("JSON")
    };
    let found = compare([&example(), &real]);
    let metrics = found["metrics"].as_array().expect("metrics");
    // Twelve tests in two rounds, and the one index whose headline its rows give.
    assert_eq!(metrics.len(), 25, "{metrics:#?}");
    assert!(
        metrics.iter().all(|one| one["verdict"] == "unverified" && one["ci95"].is_null()),
        "{metrics:#?}"
    );
    let index: Vec<&Value> =
        metrics.iter().filter(|one| one["key"] == "unixbench.index@free?copies=1#score").collect();
    assert!(index.len() == 1 && index[0]["a"] == 598.0, "{index:?}");
    // Two runs have an index by each pass.
    let same = compare([&real, &real]);
    let index = same["metrics"]
        .as_array()
        .expect("metrics")
        .iter()
        .filter(|one| one["key"].as_str().is_some_and(|key| key.starts_with("unixbench.index@")));
    let found: Vec<bool> = index.map(|one| one["ci95"].is_array() && one["ratio"] == 1.0).collect();
    assert_eq!(found, [true; 4]);
    let beside =
        assay().args(["report", "--format", "markdown", "--beside"]).args([&example(), &real]).output();
    let beside = text(&beside.expect("assay runs"));
    assert!(
        beside.contains("## Compared with older results") && beside.contains("System Benchmarks Index Score"),
        "{beside}"
    );
}
