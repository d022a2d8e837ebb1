//! `assay utilization` as users run it: recordings whose truth is known, bad ones, and this
//! host.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::runs::{end, run_file};
use crate::synthetic::folder;

fn output(args: &[&str]) -> (i32, String, String) {
    let mut command = crate::assay();
    let output = command.arg("utilization").args(args).env("COLUMNS", "100").output().expect("assay runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Runs well, and gives what it printed.
fn told(args: &[&str]) -> String {
    let (code, text, error) = output(args);
    assert_eq!(code, 0, "{args:?}: {error}");
    text
}

fn json(args: &[&str]) -> Value {
    let json: Value = serde_json::from_str(&told(&[args, &["--json"]].concat())).expect("JSON");
    let problems: Vec<String> =
        crate::validator("utilization").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    json
}

fn number(json: &Value, path: &str) -> f64 {
    json.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {json}"))
}

/// A recording: a copy a second of these CPUs, each busy in the seconds that `busy` says.
fn recording(cpus: &[u32], seconds: u64, timed: bool, busy: impl Fn(u32, u64) -> bool) -> String {
    let mut spent: Vec<(u64, u64)> = cpus.iter().map(|cpu| (1000 + u64::from(*cpu), 50)).collect();
    let mut text = String::new();
    for second in 0..=seconds {
        if timed {
            text.push_str(&format!("{}.000000000\n", 1_700_000_000 + second));
        }
        text.push_str("cpu  1 2 3 4 5 6 7 8 9 10\n");
        for (cpu, (own, idle)) in cpus.iter().zip(&mut spent) {
            text.push_str(&format!("cpu{cpu} {own} 0 0 {idle} 0 0 0 0 0 0\n"));
            let part = if busy(*cpu, second) { own } else { idle };
            *part += 100;
        }
        text.push_str("intr 1 2 3\nctxt 5\n");
    }
    text
}

/// The specification's example: each sibling busy three tenths of the time, never both.
fn example(timed: bool) -> String {
    recording(&[0, 32], 1000, timed, |cpu, second| match cpu {
        0 => second % 10 < 3,
        _ => (3..6).contains(&(second % 10)),
    })
}

fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path: PathBuf = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_string_lossy().into_owned()
}

#[test]
fn the_example_of_the_specification() {
    let dir = folder();
    for (name, timed) in [("timed", true), ("untimed", false)] {
        let path = file(dir.path(), name, example(timed));
        let args = ["--from", &path, "--siblings", "0,32", "--yield", "1"];
        let text = told(&args);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("CPU% says 30: 60 % (59–61) are used; work can grow to 1.67 times today's ("),
            "{text}"
        );
        assert!(words.contains("), not 3.33 times"), "{text}");
        let found = json(&args);
        assert!((number(&found, "/naive") - 0.3).abs() < 1e-6, "{found}");
        assert!((number(&found, "/used/mid") - 0.6).abs() < 1e-6, "{found}");
        assert!(number(&found, "/used/low") > 0.58 && number(&found, "/used/high") < 0.62, "{found}");
        // Six requests now: four more, not fourteen.
        let more = |growth: f64| 6.0 * (growth - 1.0);
        assert!((more(number(&found, "/growth/mid")) - 4.0).abs() < 1e-3, "{found}");
        assert!((more(number(&found, "/growth_naive")) - 14.0).abs() < 1e-3, "{found}");
    }
    let path = file(dir.path(), "series", example(true));
    // The same readings of two cores: CPU% is right.
    let apart = told(&["--from", &path, "--siblings", "none", "--yield", "1"]);
    assert!(apart.contains("No core has SMT siblings") && apart.contains("3.33 times"), "{apart}");
    // Always at the same time, CPU% is right too: the core is idle else.
    let path = file(dir.path(), "both", recording(&[0, 32], 1000, true, |_, second| second % 10 < 3));
    let found = json(&["--from", &path, "--siblings", "0,32", "--yield", "1"]);
    assert!((number(&found, "/used/mid") - 0.3).abs() < 0.01, "{found}");
    assert!((number(&found, "/cores/0/together/mid") - 0.3).abs() < 0.01, "{found}");
}

/// The specification's table of the article in, the article's conclusion out, by its names and
/// numbers.
#[test]
fn the_story_s_conclusion_from_its_published_figures() {
    let path = testkit::root().join("../shared/spec/data/smt_study.csv");
    let Ok(table) = std::fs::read_to_string(path) else {
        eprintln!("skipped: smt_study.csv is not beside this clone");
        return;
    };
    let of = |item: &str| -> f64 {
        let row = table.lines().find_map(|line| line.strip_prefix(item)?.strip_prefix(','));
        row.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or_else(|| panic!("no row {item}"))
    };
    let (each, cost) = (of("example: requests on each sibling"), of("example: CPU seconds per request"));
    // Requests a second on each of two siblings, which are never at work together, for 1000
    // seconds; a tenth is the step.
    let tenths = (10.0 * each * cost).round() as u64;
    let text = recording(&[0, 32], 1000, true, |cpu, second| match cpu {
        0 => second % 10 < tenths,
        _ => (tenths..2 * tenths).contains(&(second % 10)),
    });
    let dir = folder();
    let path = file(dir.path(), "story", text);
    let load = (2.0 * each).to_string();
    let args = ["--from", &path, "--siblings", "0,32", "--yield", "1", "--load", &load, "--margin", "20"];
    let words = told(&args).split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = of("example: shown CPU% per sibling");
    let (used, capacity) = (of("example: true core use"), of("example: requests per second one core serves"));
    let (naive, more) = (of("example: naive further requests"), of("example: true further requests"));
    for said in [
        format!("CPU% says {shown:.0}: {used:.0} % ("),
        format!(" are used; work can grow to {:.2} times today's (", 100.0 / used),
        format!("), not {:.2} times", 100.0 / shown),
        format!("On top of today's {load}: {more:.1} more ("),
        format!("(CPU% suggests {naive:.1})"),
        "; with 20 % kept free, 2.0 more (".to_string(),
    ] {
        assert!(words.contains(&said), "{said:?} is missing in {words}");
    }
    let found = json(&args);
    let growth = number(&found, "/growth/mid");
    assert!((number(&found, "/load") * growth - capacity).abs() < 1e-3, "{found}");
    assert!((number(&found, "/growth_kept/mid") - 0.8 * growth).abs() < 1e-9, "{found}");
    // Another margin, and none: the capacity at 100 % stays.
    let margin = |percent: &str| json(&[&args[..9], &[percent]].concat());
    assert!((number(&margin("50"), "/growth_kept/mid") - 0.5 * growth).abs() < 1e-9);
    assert!((number(&margin("0"), "/growth_kept/mid") - growth).abs() < 1e-9);
}

#[test]
fn it_shows_what_it_showed() {
    let dir = folder();
    let text = recording(&[0, 1, 2, 3], 200, true, |cpu, second| second % (u64::from(cpu) + 2) == 0);
    let path = file(dir.path(), "series", format!("# siblings 0,2/1,3\n{text}"));
    let shown = told(&["--from", &path]);
    let (_, rest) = shown.split_once('\n').expect("lines");
    insta::assert_snapshot!("utilization", rest);
    insta::assert_snapshot!("utilization_prometheus", told(&["--from", &path, "--prometheus", "-"]));
}

#[test]
fn metrics_are_written_whole_and_in_the_format() {
    let dir = folder();
    let path = file(dir.path(), "series", format!("# siblings 0,32\n{}", example(true)));
    let metrics = dir.path().join("assay.prom");
    std::fs::write(&metrics, "old").expect("a file");
    told(&["--from", &path, "--prometheus", &metrics.to_string_lossy()]);
    let text = std::fs::read_to_string(&metrics).expect("metrics");
    let mut typed = std::collections::BTreeSet::new();
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            typed.insert(rest.split(' ').next().expect("a name").to_string());
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a value");
            assert!(typed.contains(sample.split('{').next().expect("a name")), "{line} has no type");
            assert!(value == "+Inf" || value.parse::<f64>().is_ok(), "{line}");
            assert!(seen.insert(sample.to_string()), "{sample} stands twice: a collector refuses the file");
        }
    }
    for sample in [
        "assay_cpu_naive_utilization_ratio",
        "assay_cpu_smt_utilization_ratio{bound=\"low\"}",
        "assay_cpu_growth_ratio{bound=\"high\"}",
        "assay_core_smt_utilization_ratio{core=\"0\",package=\"\",cpus=\"0,32\",bound=\"mid\"}",
    ] {
        assert!(seen.contains(sample), "{sample} is not in {text}");
    }
    // Nothing is left beside it: a collector would read that too.
    assert_eq!(std::fs::read_dir(dir.path()).expect("the folder").count(), 2);
    let nowhere = dir.path().join("missing/assay.prom");
    let (code, _, error) = output(&["--from", &path, "--prometheus", &nowhere.to_string_lossy()]);
    assert!(code == 3 && error.contains("cannot write"), "{error}");
}

#[test]
fn bad_recordings_say_what_is_wrong() {
    let dir = folder();
    let whole = example(true);
    let one: String = whole.lines().take(5).map(|line| format!("{line}\n")).collect();
    let binary: Vec<u8> = (0..100_000u32).map(|i| (i * 7919 % 251) as u8).collect();
    for (name, content, words) in [
        ("empty", Vec::new(), "no copy of /proc/stat"),
        ("text", b"hello\nworld\n".to_vec(), "no copy of /proc/stat"),
        ("binary", binary, "no copy of /proc/stat"),
        ("one", one.into_bytes(), "one copy"),
    ] {
        let path = file(dir.path(), name, content);
        let (code, shown, error) = output(&["--from", &path, "--siblings", "0,32"]);
        assert_eq!(code, 3, "{name}: {error}");
        assert!(error.contains(words) && error.contains(&path) && shown.is_empty(), "{name}: {error}");
    }
    // Cut inside the last copy: the others count, and it is said.
    let path = file(dir.path(), "torn", &whole[..whole.len() - 40]);
    let text = told(&["--from", &path, "--siblings", "0,32"]);
    assert!(text.contains("1 of 1001 copies"), "{text}");
    // Times that do not fit.
    let path = file(dir.path(), "untimed", example(false));
    let (code, _, error) = output(&["--from", &path, "--siblings", "0,32", "--every", "20ms"]);
    assert!(code == 3 && error.contains("leave out --every"), "{error}");
    told(&["--from", &path, "--siblings", "0,32", "--every", "1s"]);
    // It is not given which CPUs share a core.
    let (code, _, error) = output(&["--from", &path]);
    assert!(code == 3 && error.contains("--siblings") && error.contains("--machine"), "{error}");
    let missing = dir.path().join("missing").to_string_lossy().into_owned();
    assert!(output(&["--from", &missing]).2.contains("cannot open"));
}

/// What was measured of one kind of work says little of others; of several it is their range.
#[test]
fn a_study_says_of_which_kinds_of_work_it_is() {
    let dir = folder();
    let machine = testkit::root().join("tests/machines/arm64-smt.json").display().to_string();
    let series = file(dir.path(), "series", example(true));
    let by = |kinds: &str| {
        let out = dir.path().join(kinds);
        let mut study = crate::assay();
        study
            .args(["smt", "--quick", "--pretend", "7", "--kind", kinds, "--from", &machine, "--out"])
            .arg(&out);
        end(&mut study).expect(0);
        let study = run_file(&out).display().to_string();
        json(&["--from", &series, "--siblings", "0,32", "--study", &study])
    };
    let (one, two) = (by("loop"), by("loop,chase"));
    assert!(number(&one, "/yield/low") <= 1.0 && number(&one, "/yield/high") >= 1.6, "{one}");
    let whence = |found: &Value| found["yield_from"].as_str().expect("a text").to_string();
    assert!(whence(&one).contains("measured loop only"), "{}", whence(&one));
    assert!(whence(&two).ends_with(", 2 kinds of work: loop, chase"), "{}", whence(&two));
}

#[test]
fn mistakes_of_usage() {
    for args in [
        &["--yield", "fast"][..],
        &["--yield", "1.6..1.1"],
        &["--yield", "0"],
        &["--siblings", "0,1/1,2"],
        &["--siblings", "a,b"],
        &["--turbo", "0.5"],
        &["--every", "0"],
        &["--every", "10s", "--seconds", "1"],
        &["--seconds", "-1"],
        &["--watch", "--from", "x"],
        &["--yield", "1.3", "--study", "x"],
        &["--json", "--prometheus", "-"],
        &["--margin", "91"],
        &["--load", "0"],
    ] {
        let (code, _, error) = output(args);
        assert!(code == 2 && !error.is_empty(), "{args:?}: {code} {error}");
    }
    let (code, _, error) = output(&["--study", "/nonexistent"]);
    assert!(code == 3 && error.contains("/nonexistent"), "{error}");
}

#[test]
fn this_machine_and_its_recording_agree() {
    let dir = folder();
    let path = dir.path().join("live.stat").to_string_lossy().into_owned();
    let live = json(&["--seconds", "1", "--record", &path]);
    assert!(number(&live, "/seconds") > 0.5 && number(&live, "/looks") > 10.0, "{live}");
    assert!(number(&live, "/own_cost") < 0.5, "{live}");
    let again = json(&["--from", &path]);
    for figure in ["/naive", "/used/low", "/used/mid", "/used/high", "/looks"] {
        let (one, other) = (number(&live, figure), number(&again, figure));
        assert!((one - other).abs() < 1e-3 * (1.0 + one), "{figure}: {one} and {other}");
    }
    let (code, _, error) = output(&["--seconds", "0.1", "--record", &path]);
    assert!(code == 3 && error.contains("never replace"), "{error}");
}

#[test]
fn it_is_explained() {
    let output = crate::assay().args(["explain", "utilization"]).output().expect("assay runs");
    let text = String::from_utf8_lossy(&output.stdout);
    for words in ["t1/s + t2", "Assumptions", "10 ms", "fourteen"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
