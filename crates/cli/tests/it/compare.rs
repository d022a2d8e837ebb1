//! Comparisons through the program: several results, saved reports, folders of runs, what is
//! refused and what files it may be given.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::assay;
use crate::golden::pretended;
use crate::runs::unsealed;

mod screens;

fn compare(args: &[&str], files: &[&Path]) -> Output {
    assay().arg("compare").args(args).args(files).env("COLUMNS", "200").output().expect("assay runs")
}

fn found(args: &[&str], files: &[&Path], code: i32) -> Value {
    let output = compare(&[&["--json"], args].concat(), files);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?} {files:?}: {error}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let validator = crate::validator("compare");
    let problems: Vec<String> = validator.iter_errors(&found).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    found
}

fn metric<'a>(found: &'a Value, key: &str) -> &'a Value {
    let metrics = found["metrics"].as_array().expect("metrics");
    metrics.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

fn words<'a>(found: &'a Value, what: &str, field: &str) -> Vec<&'a str> {
    found[what].as_array().expect("a list").iter().filter_map(|one| one[field].as_str()).collect()
}

/// A run with invented samples, and changed copies of it beside it.
struct Bench {
    folder: TempDir,
    run: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = pretended(7, folder.path(), &[]);
        Bench { folder, run }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// The run begun a minute later, each record changed by `edit`, which also gets the benchmark
    /// that a visit is of.
    fn copy(&self, name: &str, mut edit: impl FnMut(&mut Value, &str)) -> PathBuf {
        let text = unsealed(&self.run);
        let mut plan: Vec<String> = Vec::new();
        let lines = text.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("JSON");
            if record["header"].is_object() {
                record["header"]["started"] = json!("1970-01-01T00:01:00Z");
                let cases = record["header"]["plan"].as_array().expect("a plan").iter();
                plan = cases.map(|one| one["case"]["bench"].as_str().unwrap_or("").to_string()).collect();
            }
            let case = record["visit"]["case"].as_u64().and_then(|case| plan.get(case as usize).cloned());
            edit(&mut record, case.as_deref().unwrap_or(""));
            format!("{record}\n")
        });
        let lines: String = lines.collect();
        self.file(name, lines.as_bytes())
    }

    /// A copy in which the windows of one benchmark held `factor` times the work.
    fn faster(&self, name: &str, bench: &str, factor: f64) -> PathBuf {
        self.copy(name, |record, of| {
            if of == bench {
                scale(record, factor);
            }
        })
    }
}

pub fn scale(record: &mut Value, factor: f64) {
    let scaled = |value: &mut Value| {
        if let Some(number) = value.as_f64() {
            *value = json!(number * factor);
        }
    };
    for samples in record["visit"]["samples"].as_array_mut().into_iter().flatten() {
        match &mut samples["work"] {
            Value::Array(values) => values.iter_mut().for_each(scaled),
            value => scaled(value),
        }
    }
}

#[test]
fn several_results_stand_against_the_first() {
    let bench = Bench::new();
    let faster = bench.faster("faster.assay.jsonl", "memory.bandwidth", 2.0);
    let other = bench.copy("other.assay.jsonl", |record, _| {
        if record["header"].is_object() {
            record["header"]["assay"] = json!("0.0.1");
        }
    });
    let all = found(&[], &[&bench.run, &faster, &other], 0);
    assert_eq!(all["further"].as_array().map(Vec::len), Some(1));
    // Twice the bandwidth: the part says so, and all others stay.
    let part = |of: &Value, name: &str| {
        let parts = of["components"].as_array().expect("parts").iter();
        parts.clone().find(|one| one["name"] == name).cloned().unwrap_or_else(|| panic!("no {name}: {of}"))
    };
    let bandwidth = part(&all, "memory bandwidth");
    assert!(
        bandwidth["moves"] == true && (bandwidth["ratio"].as_f64().expect("a ratio") - 2.0).abs() < 0.05,
        "{bandwidth}"
    );
    let latency = part(&all, "memory latency");
    assert!(
        latency["moves"] == false && (latency["ratio"].as_f64().expect("a ratio") - 1.0).abs() < 1e-9,
        "{latency}"
    );
    // Without the one benchmark that moved, nothing did.
    assert!(all["index"]["ratio"].as_f64() > Some(1.05), "{}", all["index"]);
    assert_eq!(all["index"]["leave_one_out"][0].as_f64().map(|low| (low - 1.0).abs() < 1e-9), Some(true));
    let labels = |of: &Value| words(of, "environment_differences", "label").join(" ");
    assert_eq!((labels(&all), labels(&all["further"][0])), (String::new(), "assay".to_string()));

    let output = compare(&[], &[&bench.run, &faster, &other]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "B ÷ A",
        "C ÷ A",
        "B is fastest overall: ",
        "read, all CPUs",
        "C differs from A in: version of Assay.",
    ] {
        assert!(shown.contains(expected), "no {expected:?}: {shown}");
    }
    assert!(!shown.contains("memory.bandwidth@"), "no keys on the first screen: {shown}");
    let shown = compare(&["--all"], &[&bench.run, &faster]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("    Memory latency, random,\n"));
    assert_eq!(shown.matches("    read, one CPU ").count(), 0, "points have their sizes: {shown}");
    for (name, begin) in [("page.html", "<!doctype html>"), ("page.md", "# "), ("page.json", "{")] {
        let page = bench.path(name);
        let output = compare(&["--out", &page.to_string_lossy()], &[&bench.run, &faster, &other]);
        assert!(output.status.success() && output.stdout.is_empty());
        let page = fs::read_to_string(page).expect("a page");
        assert!(page.to_lowercase().starts_with(begin) && page.contains("memory.bandwidth@"), "{name}");
        if name == "page.html" {
            // A, B and C share the charts of their curves.
            let ladder =
                page.split("id=\"chart-ladder-0\"").nth(1).and_then(|rest| rest.split("</figure>").next());
            let ladder = ladder.expect("a chart of curves");
            assert_eq!(ladder.matches("class=\"name c").count(), 3, "{ladder}");
            assert!(ladder.contains("B/A, ") && ladder.contains("C/A, "), "{ladder}");
            assert_eq!(page.matches(">Curves<").count(), 2, "a heading and a link to it");
        }
    }
}

#[test]
fn a_report_says_what_its_run_says() {
    let bench = Bench::new();
    let faster = bench.faster("faster.assay.jsonl", "memory.latency", 0.5);
    let saved = assay().args(["report", "--json"]).arg(&faster).output().expect("assay runs").stdout;
    let report = bench.file("report.json", &saved);
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(&fs::read(&faster).expect("a run")).expect("memory");
    let zipped = bench.file("faster.assay.jsonl.gz", &zipped.finish().expect("memory"));
    let expected = found(&[], &[&bench.run, &faster], 0);
    for same in [&report, &zipped] {
        let told = found(&[], &[&bench.run, same], 0);
        for one in expected["metrics"].as_array().expect("metrics") {
            let told = metric(&told, one["key"].as_str().expect("a key"));
            assert_eq!(
                (&told["verdict"], &told["ratio"], &told["ci95"]),
                (&one["verdict"], &one["ratio"], &one["ci95"])
            );
        }
    }
    assert!(words(&expected, "metrics", "verdict").contains(&"slower"));
    // Medians and intervals alone are enough for a ratio with its interval.
    let mut bare: Value = serde_json::from_slice(&saved).expect("JSON");
    for series in bare["series"].as_array_mut().expect("series") {
        series["values"] = json!([]);
    }
    let bare = bench.file("bare.json", bare.to_string().as_bytes());
    let told = found(&[], &[&report, &bare], 0);
    assert!(!words(&told, "metrics", "verdict").contains(&"slower"));
    assert!(
        told["metrics"].as_array().expect("metrics").iter().any(|one| one["ci95"][0].as_f64() < Some(1.0))
    );
    assert!(words(&found(&[], &[&bench.run, &bare], 0), "metrics", "verdict").contains(&"slower"));
}

#[test]
fn one_run_twice_is_said() {
    let bench = Bench::new();
    let copy = bench.copy("copy.assay.jsonl", |_, _| {});
    let report = assay().args(["report", "--json"]).arg(&bench.run).output().expect("assay runs").stdout;
    let report = bench.file("report.json", &report);
    for (other, words) in
        [(&bench.run, "are the same run"), (&report, "are the same run"), (&copy, "identical numbers")]
    {
        let told = found(&[], &[&bench.run, other], 0);
        assert!(
            told["warnings"][0].as_str().is_some_and(|text| text.contains(words)),
            "{}",
            told["warnings"]
        );
        let shown = compare(&[], &[&bench.run, other]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains(words));
    }
    let faster = bench.faster("faster.assay.jsonl", "memory.bandwidth", 2.0);
    let invented = json!(["the samples of A and B were invented (--pretend)"]);
    assert_eq!(found(&[], &[&bench.run, &faster], 0)["warnings"], invented);
}

#[test]
fn a_folder_is_all_runs_in_it() {
    let bench = Bench::new();
    let (a, b) = (bench.path("a"), bench.path("b"));
    for folder in [&a, &b] {
        fs::create_dir(folder).expect("a folder");
    }
    let later = |name: &str, minute: usize| {
        bench.copy(name, |record, _| {
            if record["header"].is_object() {
                record["header"]["started"] = json!(format!("1970-01-01T00:0{minute}:00Z"));
            }
        })
    };
    (1..4).for_each(|minute| drop(later(&format!("a/{minute}.assay.jsonl"), minute)));
    later("b/4.assay.jsonl", 4);
    let one = found(&[], &[&bench.run, &b], 0);
    let three = found(&[], &[&a, &b], 0);
    assert_eq!((&three["a"]["runs"], &three["b"]["runs"]), (&json!(3), &json!(1)));
    let width = |found: &Value| {
        let ci = &found["metrics"].as_array().expect("metrics")[0]["ci95"];
        ci[1].as_f64().expect("high") - ci[0].as_f64().expect("low")
    };
    assert!(width(&three) < width(&one), "{} {}", width(&three), width(&one));
    // The same run twice, and an empty folder.
    fs::copy(a.join("1.assay.jsonl"), a.join("5.assay.jsonl")).expect("a copy");
    let empty = bench.path("empty");
    fs::create_dir(&empty).expect("a folder");
    for (folder, words) in [(&a, "the same run"), (&empty, "has no run")] {
        let output = compare(&[], &[folder, &b]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(3) && error.contains(words), "{error}");
    }
}

#[test]
fn other_conditions_are_refused_by_name() {
    let bench = Bench::new();
    // One in which other work took half of the CPUs of memory latency.
    let hog = bench.copy("hog.assay.jsonl", |record, of| {
        if of == "memory.latency" && record["visit"].is_object() {
            // Long enough for ticks to be believed.
            let cpus = record["visit"]["conditions"]["cpus"].clone();
            record["visit"]["conditions"] = json!({
                "wall_ms": 1000.0, "cpus": cpus, "own_ms": 1000.0, "busy_ms": 1500.0, "others_on_seats_ms": 500.0
            });
        }
    });
    let free = bench.copy("free.assay.jsonl", |record, _| {
        let plan = record.pointer_mut("/header/plan").and_then(Value::as_array_mut);
        for planned in plan.into_iter().flatten() {
            if planned["case"]["bench"] == "memory.latency" {
                planned["case"]["placement"]["name"] = json!("free");
            }
        }
    });
    // Two reports refuse what their runs do, also those that do not record which series are
    // headlines.
    let report = |run: &PathBuf, name: &str, tells: bool| {
        let saved = assay().args(["report", "--json"]).arg(run).output().expect("assay runs").stdout;
        let mut saved: Value = serde_json::from_slice(&saved).expect("JSON");
        for series in saved["series"].as_array_mut().into_iter().flatten().filter(|_| !tells) {
            series.as_object_mut().expect("a series").remove("headline").expect("a headline or none");
        }
        bench.file(name, saved.to_string().as_bytes())
    };
    for tells in [true, false] {
        let a = report(&bench.run, "a.json", tells);
        for run in [&hog, &free] {
            let of_runs = found(&[], &[&bench.run, run], 4);
            let of_reports = found(&[], &[&a, &report(run, "b.json", tells)], 4);
            assert_eq!(
                of_reports["refused"].as_array().map(Vec::len),
                of_runs["refused"].as_array().map(Vec::len)
            );
            let counted = [&of_runs, &of_reports].map(|one| one["index"]["metrics"].as_u64());
            assert!((counted[0] == counted[1]) == tells, "{tells}: {counted:?}");
        }
    }
    for (other, factor) in [(&hog, "background-load"), (&free, "placement")] {
        let told = found(&[], &[&bench.run, other], 4);
        let factors = words(&told, "refused", "factor");
        assert!(!factors.is_empty() && factors.iter().all(|one| *one == factor), "{factors:?}");
        assert!(words(&told, "refused", "key").iter().all(|key| key.starts_with("memory.latency@")));
        assert!(
            told["refused"][0]["conditions"] == true
                && !told["metrics"].as_array().expect("metrics").is_empty()
        );
        let output = compare(&[], &[&bench.run, other]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains("figures are left out") || shown.contains("do not count"), "{shown}");
        assert!(shown.contains("exit 4 (0 with --allow-refused)") && output.stderr.is_empty(), "{shown}");
        let reasons = compare(&["--left-out"], &[&bench.run, other]);
        let reasons = String::from_utf8_lossy(&reasons.stdout).into_owned();
        assert!(reasons.contains(&format!("values ({factor}): ")), "{reasons}");
        // Where no screen says it, standard error does.
        let error = compare(&["--json"], &[&bench.run, other]).stderr;
        let error = String::from_utf8_lossy(&error).into_owned();
        assert!(error.contains(factor) && error.contains("--allow-refused"), "{error}");
        found(&["--allow-refused"], &[&bench.run, other], 0);
        found(&["--only", "memory.bandwidth"], &[&bench.run, other], 0);
        found(&["--only", "memory.latency"], &[&bench.run, other], 4);
        // Nothing at all is no success, whatever is allowed.
        found(&["--only", "memory.latency", "--allow-refused"], &[&bench.run, other], 4);
    }
}

#[test]
fn what_cannot_be_used_is_refused_in_words() {
    let bench = Bench::new();
    let whole = fs::read(&bench.run).expect("a run");
    let report = assay().args(["report", "--json"]).arg(&bench.run).output().expect("assay runs").stdout;
    let mut newer: Value = serde_json::from_slice(&report).expect("JSON");
    newer["schema"] = json!(99);
    let newer_run = unsealed(&bench.run).replacen("\"schema\":2", "\"schema\":99", 1);
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(&whole).expect("memory");
    let zipped = zipped.finish().expect("memory");
    let imported = assay()
        .args(["import", "--json", "tests/foreign/lmbench-summary.txt"])
        .current_dir(testkit::root())
        .output();
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("header cut off", whole[..2000].to_vec(), "not a usable run file"),
        ("report cut off", report[..report.len() / 2].to_vec(), "cut off"),
        ("gzip cut off", zipped[..40].to_vec(), "hdr"),
        ("newer run", newer_run.into_bytes(), "newer Assay (schema 99"),
        ("newer report", newer.to_string().into_bytes(), "newer Assay (schema 99"),
        ("other JSON", b"{\"a\": 1}".to_vec(), "not the output of `assay run --json`"),
        ("an import's JSON", imported.expect("assay runs").stdout, "not the output of `assay run --json`"),
        ("no JSON", b"{ this is C }".to_vec(), "neither a run nor a report"),
        ("text", b"hello\n".to_vec(), "not a format that Assay knows"),
        ("large text", vec![b'x'; (16 << 20) + 2], "larger than 16 MB"),
        ("empty", Vec::new(), "empty"),
    ];
    for (name, bytes, words) in cases {
        let file = bench.file(name, &bytes);
        for files in [[file.as_path(), bench.run.as_path()], [bench.run.as_path(), file.as_path()]] {
            let output = compare(&[], &files);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{name}: {error}");
            assert!((words == "hdr" || error.contains(words)) && error.contains(name), "{name}: {error}");
            assert!(output.stdout.is_empty(), "{name}");
        }
    }
    // A run that was cut off later is compared as far as it goes. (Invented shares of a CPU differ
    // by chance.)
    let half = bench.file("half.assay.jsonl", &whole[..whole.len() * 2 / 3]);
    assert!(
        !found(&["--allow-refused"], &[&bench.run, &half], 0)["metrics"]
            .as_array()
            .expect("metrics")
            .is_empty()
    );
    // And it is said that it was, of the run as of what was saved of it.
    let report = assay().args(["report", "--json"]).arg(&half).output().expect("assay runs").stdout;
    let report = bench.file("half.json", &report);
    for torn in [&half, &report] {
        let told = found(&["--allow-refused"], &[&bench.run, torn], 0);
        let warnings = told["warnings"].to_string();
        assert!(warnings.contains("B: the run in ") && warnings.contains("is damaged: "), "{warnings}");
        let shown = compare(&["--allow-refused"], &[torn, &bench.run]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            shown.contains("is incomplete: parts of it are missing") && shown.contains("is damaged: "),
            "{shown}"
        );
    }
    let missing = compare(&[], &[&bench.run, Path::new("/nowhere/at-all")]);
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn a_run_that_was_slowed_on_purpose_is_compared_and_says_so() {
    let bench = Bench::new();
    let slowed = bench.copy("slowed.assay.jsonl", |record, _| {
        let plan = record.pointer_mut("/header/plan").and_then(Value::as_array_mut);
        for planned in plan.into_iter().flatten().take(2) {
            planned["case"]["inputs"]["planted"] = json!("0.1");
        }
    });
    let told = "10 % more work than reported in 2 benchmarks";
    let found = found(&[], &[&bench.run, &slowed], 0);
    let warnings = found["warnings"].as_array().expect("a list");
    assert!(
        warnings.contains(&json!(format!("B was slowed on purpose (--planted): {told}"))),
        "{warnings:?}"
    );
    let report = assay().arg("diagnose").arg(&slowed).env("COLUMNS", "400").output().expect("assay runs");
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(text.contains(&format!("SLOWED ON PURPOSE (--planted: {told})")), "{text}");
}

#[test]
fn a_run_is_slowed_by_a_hidden_option() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let words =
        "run --quick --force --new --budget 1s --only selftest.steady,cpu.clock --json --planted 25 --out";
    let ended = crate::runs::end(assay().args(words.split(' ')).arg(out.path()));
    let told: Value = serde_json::from_str(&ended.measured().out).expect("JSON");
    let planted = json!(["planted", "25 % more work than reported in 1 benchmark"]);
    assert!(told["make_up"].as_array().is_some_and(|all| all.contains(&planted)), "{}", told["make_up"]);
    let wrong = crate::runs::end(assay().args(["run", "--planted", "0"]));
    wrong.expect(2).says(&["does not begin with 1–100"]);
}

#[test]
fn cpus_and_caches_of_two_machines_are_drawn_beside_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |machine: &str, out: &str| {
        let (machine, out) = (testkit::root().join("tests/machines").join(machine), folder.path().join(out));
        let mut command = assay();
        command.args([
            "run",
            "--quick",
            "--new",
            "--pretend",
            "7",
            "--only",
            "cpu.pair-slowdown,memory.core-to-core",
        ]);
        let output = command.arg("--from").arg(machine).arg("--out").arg(&out).output().expect("assay runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        crate::runs::run_file(&out)
    };
    let (small, large) = (run("firecracker-guest-2cpu.json", "a"), run("arm64-smt.json", "b"));
    let shown = |a: &Path, b: &Path| String::from_utf8(compare(&["--all"], &[a, b]).stdout).expect("UTF-8");
    let both = shown(&small, &large);
    let section = both.split("CPUs and caches, reported and measured").nth(1).expect("the section");
    for label in ["A vm", "B ", "core, reported", "last-level cache, reported", "A believed", "B measured"] {
        assert!(section.contains(label), "{label}: {section}");
    }
    // One host twice has no difference to show.
    let again = run("firecracker-guest-2cpu.json", "c");
    assert!(!shown(&small, &again).contains("reported and measured"));
}
