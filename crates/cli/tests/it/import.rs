//! Foreign result files and comparisons, through the program: import, compare, report beside,
//! export.

use std::path::{Path, PathBuf};
use std::process::Output;

use import::lmbench::FIGURES;
use import::{Imported, keyed, read};
use serde_json::Value;

mod disk_and_network;

use crate::assay;
use crate::golden::pretended;

mod export;
mod faults;
mod first_screen;

/// The results of lmbench that were collected (not part of this project); `None`, with a message,
/// in a clone without them.
fn collected(test: &str) -> Option<PathBuf> {
    let folder = testkit::root().join("../shared/fixtures/results/lmbench");
    if !folder.is_dir() {
        eprintln!("SKIPPED {test}: the fixtures are not here ({} is missing)", folder.display());
        return None;
    }
    Some(folder)
}

fn example() -> PathBuf {
    testkit::root().join("tests/foreign/lmbench-summary.txt")
}

fn verb(args: &[&str], files: &[&Path]) -> Output {
    assay().args(args).args(files).env("COLUMNS", "160").output().expect("assay runs")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).expect("JSON")
}

fn median(imported: &Imported, key: &str) -> f64 {
    let found = imported.figures.iter().find(|figure| figure.judged.series.key == key);
    let figure = found.unwrap_or_else(|| panic!("no {key}"));
    figure.judged.analysis.estimate.as_ref().map_or(f64::NAN, |estimate| estimate.median)
}

#[test]
fn every_collected_result_is_read() {
    let Some(folder) = collected("every_collected_result_is_read") else { return };
    // File, host, values, cells without a value, and some of the values.
    type Expected = (&'static str, &'static str, usize, usize, &'static [(&'static str, f64)]);
    let expected: [Expected; 7] = [
        (
            "latmemrd_stride_128_256_512_1024_example_results.txt",
            "unknown",
            139,
            0,
            &[("memory.latency@one-cpu?order=stride&stride=1024/bytes=4294967296#latency", 85.393)],
        ),
        (
            "lmbench_example_results_1.txt",
            "X64-Linux",
            28,
            7,
            &[
                ("lmbench.mmap@one-cpu/bytes=largest#latency", 111_500.0),
                ("ipc.tcp-connect@free#latency", 71.0),
            ],
        ),
        (
            "lmbench_example_results_2.txt",
            "demo-vm04",
            63,
            8,
            &[
                ("syscall.getpid@one-cpu#latency", 0.28),
                ("process.fork@free/resident_mb=0#latency", 341.0),
                ("memory.latency@one-cpu?order=random/bytes=largest#latency", 132.0),
                ("vm.file-fault@one-cpu#page", 1.6182),
            ],
        ),
        (
            "lmbench_example_results_4.txt",
            "demo-vm06",
            58,
            13,
            &[("process.shell@free/program=true#latency", 1461.0)],
        ),
        (
            "lmbench_example_results_rhel_1.txt",
            "rhel-vm01",
            31,
            40,
            &[("sched.context-switch@free?processes=16/kb=64#switch", 16.0)],
        ),
        (
            "mips_rm9000_linux-2.6.12.txt",
            "192.168.1",
            54,
            7,
            &[("process.shell@free/program=true#latency", 16_000.0), ("vm.file-fault@one-cpu#page", 2.5986)],
        ),
        (
            "raw_hygon_regular_cpu0_iter1.txt",
            "kylin-x",
            0,
            0,
            &[
                ("syscall.open-close@one-cpu#latency", 5608.5),
                ("memory.bandwidth@one-cpu?op=read/bytes=67108864#bandwidth", 15.66988),
                ("file.create@one-cpu/bytes=0#delete", 1425.0),
                ("sched.context-switch@free?processes=96/kb=64#latency", 9.27),
                ("ipc.tcp-bandwidth@free/message=64#bandwidth", 0.00205),
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (file, host, values, missing, some) in expected {
        let bytes = std::fs::read(folder.join(file)).expect("readable");
        let results = read(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(results.len(), 1, "{file}");
        let one = &results[0];
        let with = one.figures.iter().filter(|figure| figure.judged.analysis.estimate.is_some()).count();
        let without = one.figures.len() - with;
        if one.host != host || (values > 0 && (with, without) != (values, missing)) {
            wrong.push(format!("{file}: {} {with} values, {without} missing", one.host));
        }
        for (key, value) in some {
            let found = median(one, key);
            assert!((found / value - 1.0).abs() < 1e-9, "{file}: {key}: {found}");
        }
        for figure in &one.figures {
            let verdict = &figure.judged.analysis.verdict;
            assert!(!verdict.reason.is_empty(), "{file}: {} has no reason", figure.judged.series.key);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let raw = std::fs::read(folder.join("raw_hygon_regular_cpu0_iter1.txt")).expect("readable");
    let raw = &read(&raw).expect("raw results")[0];
    let reason = |key: &str| {
        let figure = raw.figures.iter().find(|figure| figure.judged.series.key == key).expect(key);
        figure.judged.analysis.verdict.reason.clone()
    };
    // What went wrong stands where the figure would.
    assert_eq!(reason("lmbench.select-tcp@one-cpu/fds=100#latency"), "bind: Address in use");
    assert!(reason("lmbench.rpc-udp@free#latency").contains("built with NO_RPC (musl)"));
    assert!(raw.figures.len() > 500, "{}", raw.figures.len());
}

#[test]
fn what_is_mapped_is_measured_under_that_name() {
    let mut unknown = Vec::new();
    for figure in FIGURES.iter().filter(|figure| !figure.key.starts_with("lmbench.")) {
        let keyed = keyed(figure.key).expect("a key");
        // Rows that this version does not have yet have nothing to agree with.
        let Some(bench) = bench::find(&keyed.case.bench) else { continue };
        match bench.metrics.iter().find(|metric| metric.name == keyed.metric) {
            None => unknown.push(format!("{}: no metric {}", figure.key, keyed.metric)),
            Some(metric) => {
                let unit = metric.unit.as_ref();
                if compare::unit_scale(figure.unit.name(), unit).is_none() {
                    unknown.push(format!("{}: {:?} is not {unit:?}", figure.key, figure.unit.name()));
                }
            }
        }
        for name in keyed.case.params.keys().chain(keyed.point.keys()) {
            if !bench.params.iter().any(|param| param.name == *name) {
                unknown.push(format!("{}: no parameter {name}", figure.key));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn an_import_reads_as_it_read() {
    let output = verb(&["import", "--all"], &[&example()]);
    let shown = text(&output).replace(&example().display().to_string(), "FILE");
    insta::assert_snapshot!("import", shown);
    let json = json(&verb(&["import", "--json"], &[&example(), &example()]));
    let problems: Vec<String> =
        crate::validator("import").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(json["results"].as_array().map(Vec::len), Some(4));
    let series = json["series"].as_array().expect("series");
    assert!(
        series.iter().all(|one| ["unverified", "skipped"].contains(&one["verdict"].as_str().unwrap_or("")))
    );
}

#[test]
fn a_log_of_hackbench_reads_as_it_read() {
    let log = testkit::root().join("tests/foreign/hackbench.log");
    let shown = text(&verb(&["import", "--all"], &[&log])).replace(&log.display().to_string(), "FILE");
    insta::assert_snapshot!("hackbench_log", shown);
    let found = json(&verb(&["import", "--json"], &[&log]));
    assert!(crate::validator("import").is_valid(&found), "{found}");
    // Runs of one setting are one series, with what a series of ours would have.
    let first = &found["series"][0];
    assert_eq!(
        (&first["n"], first["values"].as_array().map(Vec::len)),
        (&Value::from(8), Some(8)),
        "{first}"
    );
    assert!(first["ci95"].is_array() && first["verdict"] == "unverified", "{first}");
    let compared = json(&verb(&["compare", "--json"], &[&numbered(&log, 1), &numbered(&log, 3)]));
    assert_eq!(compared["metrics"][0]["key"], first["key"], "{compared}");
    // Rows that measure the same have these metrics and parameters; one that this version lacks has
    // nothing to agree with.
    for one in found["series"].as_array().expect("series") {
        let Some(bench) = bench::find(one["bench"].as_str().expect("a name")) else { continue };
        let metric = bench.metrics.iter().find(|metric| one["metric"] == *metric.name).expect("its metric");
        assert!(compare::unit_scale(one["unit"].as_str().expect("a unit"), &metric.unit).is_some(), "{one}");
        for name in one["params"].as_object().expect("params").keys() {
            assert!(bench.params.iter().any(|param| param.name == *name), "{name} of {one}");
        }
    }
}

#[test]
fn foreign_files_are_refused_in_words() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes, words) in [
        ("text", &b"hello\n"[..], "not a format that Assay knows; `assay import --help` lists"),
        ("binary", &[0u8, 1, 2, 3], "not text"),
        ("empty", b"", "empty"),
        ("run", b"{\"header\":{\"schema\":1}}\n", "needs no import"),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).expect("a file");
        for args in [&["import"][..], &["compare", "/dev/null"]] {
            let output = verb(args, &[&file]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{args:?} {name}: {error}");
            assert!(args[0] == "compare" || (error.contains(words) && error.contains(name)), "{error}");
        }
    }
    // Results of two hosts: which one is to be said.
    let output = verb(&["compare"], &[&example(), &example()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && error.contains("#1") && error.contains("#2"), "{error}");
}

/// A run with invented samples of what the given groups and benchmarks measure.
fn invented(seed: u64, out: &Path, profile: &str, only: &str) -> PathBuf {
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    let mut command = assay();
    command.args(["run", "--new", "--profile", profile, "--only", only, "--pretend", &seed.to_string()]);
    let output = command.arg("--from").arg(machine).arg("--out").arg(out).output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut files = std::fs::read_dir(out).expect("a folder").flatten().map(|entry| entry.path());
    files.find(|path| path.to_string_lossy().ends_with(".assay.jsonl")).expect("a run")
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    PathBuf::from(format!("{}#{number}", file.display()))
}

#[test]
fn an_old_result_stands_in_a_comparison_and_beside_a_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = invented(7, dir.path(), "quick", "syscall,cpu.clock,memory.bandwidth");
    let old = numbered(&example(), 1);
    // Invented samples are not compared with real ones.
    assert_eq!(verb(&["compare"], &[&old, &run]).status.code(), Some(4));
    // The same run, as if it had been measured.
    let real = dir.path().join("real.assay.jsonl");
    let lines = crate::runs::unsealed(&run).replacen("\"pretend\":7", "\"pretend\":null", 1);
    std::fs::write(&real, lines).expect("a file");
    let found = json(&verb(&["compare", "--json"], &[&old, &real]));
    assert!(crate::validator("compare").is_valid(&found), "{found}");
    let metrics = found["metrics"].as_array().expect("metrics");
    assert!(!metrics.is_empty());
    assert!(metrics.iter().all(|one| one["verdict"] == "unverified" && one["ci95"].is_null()), "{metrics:?}");
    let labels: Vec<&str> = found["environment_differences"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["label"].as_str())
        .collect();
    assert!(labels.contains(&"kernel"), "{labels:?}");
    assert!(
        found["refused"].as_array().is_some_and(|refused| refused.iter().any(|one| one["factor"] == "size"))
    );
    let shown = text(&verb(&["compare"], &[&old, &real]));
    assert!(shown.contains("as imported figures have no interval"), "{shown}");
    assert!(shown.contains("The hosts differ in: ") && shown.contains("unverified"), "{shown}");

    let old_text = old.display().to_string();
    let beside = |format: &str| {
        text(
            &assay()
                .args(["report", "--format", format, "--beside", &old_text])
                .arg(&real)
                .output()
                .expect("assay runs"),
        )
    };
    let markdown = beside("markdown");
    assert!(
        markdown.contains("## Compared with older results") && markdown.contains("unverified"),
        "{markdown}"
    );
    let report: Value = serde_json::from_str(&beside("json")).expect("JSON");
    assert!(crate::validator("results").is_valid(&report));
    assert_eq!(report["beside"][0]["metrics"].as_array().map(Vec::len), Some(metrics.len()));
    let page = dir.path().join("page");
    let args = ["report", "--beside", &old_text, "--out", &page.to_string_lossy()].map(str::to_string);
    text(&assay().args(args).arg(&real).output().expect("assay runs"));
    let page = std::fs::read_to_string(page.join("report.html")).expect("a page");
    assert!(page.contains("id=\"beside\""));
}

#[test]
fn two_runs_of_one_machine_and_a_planted_slowness() {
    let folders = [7, 8, 9].map(|seed| (seed, tempfile::tempdir().expect("a temporary directory")));
    let [a, b, _] = folders.each_ref().map(|(_, dir)| dir.path());
    // The level of a pretended series follows from the seed: one run against itself in another
    // order is A/A.
    let run = pretended(7, a, &[]);
    let same = json(&verb(&["compare", "--json"], &[&run, &run]));
    let words = |found: &Value| -> Vec<String> {
        let metrics = found["metrics"].as_array().expect("metrics").iter();
        metrics.map(|one| one["verdict"].as_str().unwrap_or("").to_string()).collect()
    };
    assert!(words(&same).len() > 30);
    assert!(words(&same).iter().all(|word| word == "same" || word == "inconclusive"), "{:?}", words(&same));
    assert_eq!(same["environment_differences"], serde_json::json!([]));
    assert_eq!(same["refused"], serde_json::json!([]));
    // Half as much work in every window of one benchmark: a latency twice as long.
    let slow = b.join("slow.assay.jsonl");
    let lines = crate::runs::unsealed(&run);
    let mut cases = Vec::new();
    let edited: Vec<String> = lines.lines().map(|line| halved(line, &mut cases)).collect();
    std::fs::write(&slow, edited.join("\n") + "\n").expect("a file");
    let found = json(&verb(&["compare", "--json"], &[&run, &slow]));
    let mut slower = 0;
    for one in found["metrics"].as_array().expect("metrics") {
        let (key, verdict) = (one["key"].as_str().expect("a key"), one["verdict"].as_str().expect("a word"));
        match key.starts_with("memory.latency") {
            true => {
                slower += 1;
                assert_eq!(verdict, "slower", "{one}");
                assert!((one["ratio"].as_f64().expect("a ratio") - 2.0).abs() < 0.02, "{one}");
                let (low, high) = (one["ci95"][0].as_f64(), one["ci95"][1].as_f64());
                assert!(low < Some(2.0) && high > Some(2.0), "{one}");
            }
            false => assert!(verdict == "same" || verdict == "inconclusive", "{one}"),
        }
    }
    assert!(slower > 5, "{slower}");
}

/// A run file's line with half the work in the windows of memory.latency; `cases` learns from the
/// header which cases these are.
fn halved(line: &str, cases: &mut Vec<u64>) -> String {
    let mut record: Value = serde_json::from_str(line).expect("JSON");
    if let Some(plan) = record["header"]["plan"].as_array() {
        let own = |(at, planned): (usize, &Value)| {
            (planned["case"]["bench"] == "memory.latency").then_some(at as u64)
        };
        *cases = plan.iter().enumerate().filter_map(own).collect();
    }
    if !record["visit"]["case"].as_u64().is_some_and(|case| cases.contains(&case)) {
        return line.to_string();
    }
    let half = |value: &mut Value| {
        if let Some(number) = value.as_f64() {
            *value = serde_json::json!(number / 2.0);
        }
    };
    for samples in record["visit"]["samples"].as_array_mut().expect("samples") {
        match &mut samples["work"] {
            Value::Array(values) => values.iter_mut().for_each(half),
            value => half(value),
        }
    }
    record.to_string()
}

/// Rows that differ by their size only have it in their titles, and a file that came faster than
/// memory is reported.
#[test]
fn bandwidths_are_shown_with_their_sizes() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("host.0");
    let result = "[lmbench3.0 results for Linux host 3.10.0 #1 SMP x86_64 GNU/Linux]\n\n\"Mmap read bandwidth\n1024.00 7948.87\n\n\
                  \"Memory read bandwidth\n0.016 34999.46\n1024.00 4979.76\n\n";
    std::fs::write(&file, result).expect("written");
    let shown = text(&verb(&["import", "--all"], &[&file]));
    for part in [
        "Memory read bandwidth, 16 KiB",
        "Memory read bandwidth, 977 MiB",
        "! limits      Mmap read bandwidth reaches 7.95 GB/s, memory only 4.98 GB/s: the file was in the page cache.",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("Mmap read bandwidth, "), "one row needs no size: {shown}");
}

#[test]
fn an_import_is_read_by_what_reference_names() {
    let output = verb(&["import", "--reference", "missing"], &[&example()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && error.contains("cannot use --reference: cannot open missing"),
        "{error}"
    );
}
