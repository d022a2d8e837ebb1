//! `assay check`: specs checked against runs and summaries, the screens and exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::golden::pretended;
use crate::{assay, validator};
use serde_json::Value;

/// Two demands are missed, one is undecided, the others are met.
const SPEC: &str = "\
name = \"purchase\"
[machine]
cpus = { min = 2 }
cpu_model = \"AMD*\"
dimm_verdict = [\"balanced\", \"near_balanced\"]
[findings]
none_of = [\"steal\"]
[limits]
core-clock = { min = \"1 GHz\" }
read-one-cpu = { min = \"900 GB/s\" }
tcp = { min = \"9 Gbit/s\", optional = true }
[[limit]]
series = \"memory.latency@*\"
pick = \"worst\"
max = \"1 s\"
[[limit]]
series = \"ipc.pipe-pingpong@same-cpu*\"
min = \"1 1/s\"
verdict = [\"unverified\"]
";

fn check(run: &Path, spec: &str, more: &[&str]) -> (i32, String, String) {
    let file = run.with_extension("toml");
    fs::write(&file, spec).expect("a file");
    let mut command = assay();
    command.arg("check").arg(run).arg("--spec").arg(&file).args(more).env("COLUMNS", "100");
    output(command)
}

pub fn output(mut command: std::process::Command) -> (i32, String, String) {
    let output = command.output().expect("assay runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn run() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(1, folder.path(), &[]);
    (folder, run)
}

#[test]
fn the_screen_shows_each_demand() {
    let (_folder, run) = run();
    let file = run.with_extension("toml");
    fs::write(&file, SPEC).expect("a file");
    for (name, columns, locale) in
        [("100", 100, "C.UTF-8"), ("80", 80, "C.UTF-8"), ("60", 60, "C.UTF-8"), ("80_ascii", 80, "C")]
    {
        let mut command = assay();
        command.arg("check").arg(&run).arg("--spec").arg(&file);
        command.env("COLUMNS", columns.to_string()).env("LC_ALL", locale);
        let (code, text, error) = output(command);
        assert_eq!(code, 1, "{error}");
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        insta::assert_snapshot!(name, text);
    }
    let (_, text, _) = check(&run, SPEC, &["--all"]);
    insta::assert_snapshot!("all", text);
    let (code, text, _) = check(&run, SPEC, &["--brief"]);
    assert!(code == 1 && text.lines().count() == 1 && text.contains(": REJECT: "), "{text}");
    // What it is about comes before how much of it there is.
    assert!(text.contains(": REJECT: CPU model; memory read, one CPU; 2 of 9 demands are missed"), "{text}");
    let (_, text, _) = check(&run, SPEC, &["--quiet"]);
    assert!(text.starts_with("REJECT") && text.lines().count() <= 4, "{text}");
}

#[test]
fn a_long_spec_has_a_screen_of_forty_lines() {
    let (_folder, run) = run();
    let limits = "[[limit]]\nseries = \"memory.*\"\nmin = \"0 s\"\n";
    let spec = format!(
        "[machine]\ncpus = {{ min = 1 }}\n{}",
        limits.replace("memory.*", "memory.latency@*").repeat(8)
    );
    let (_, all, _) = check(&run, &spec, &["--all"]);
    assert!(all.lines().count() > 60, "{all}");
    for columns in ["60", "80", "100", "140"] {
        let mut command = assay();
        command.arg("check").arg(&run).arg("--spec").arg(run.with_extension("toml")).env("COLUMNS", columns);
        let (_, text, _) = output(command);
        let lines = text.lines().count();
        assert!(lines <= 40 && text.contains(" more met: --all") && !text.contains('…'), "{lines}: {text}");
    }
}

#[test]
fn each_outcome_has_its_exit_code() {
    let (_folder, run) = run();
    let code = |spec: &str, more: &[&str]| check(&run, spec, more).0;
    let met = "[machine]\ncpus = { min = 2 }\n";
    assert_eq!(code(met, &[]), 0);
    assert_eq!(code("[machine]\ncpus = { min = 3 }\n", &[]), 1);
    assert_eq!(code(&format!("{met}[run]\nmax_age = \"35d\"\n"), &[]), 3, "invented runs are of 1970");
    assert_eq!(code(&format!("{met}[run]\nprofile = [\"full\"]\n"), &[]), 3);
    let open = "[machine]\ngovernor = \"performance\"\n";
    assert_eq!(code(open, &[]), 4);
    assert_eq!(code(open, &["--undecided", "pass"]), 0);
    assert_eq!(code(open, &["--undecided", "fail"]), 1);
    for (spec, told) in [
        ("[limits]\nsyscal = { max = \"1 ns\" }", "did you mean syscall?"),
        ("[[limit]]\nseries = \"memory.latancy@*\"\nmax = \"1 s\"", "did you mean memory.latency?"),
        ("[[limit]]\nseries = \"memory.latency@*\"\nmax = \"1 GB/s\"", "measured in ns"),
        ("", "is empty"),
    ] {
        let (code, out, error) = check(&run, spec, &[]);
        assert!(code == 2 && out.is_empty() && error.contains(told), "{spec}: {code} {out} {error}");
    }
    // A figure that was not measured is open; where it is all that is asked, an optional one, too.
    assert_eq!(code("[limits]\nfdatasync = { max = \"1 s\" }", &[]), 4);
    assert_eq!(code("[limits]\nfdatasync = { max = \"1 s\", optional = true }", &[]), 4);
    let beside = format!("{met}[limits]\nfdatasync = {{ max = \"1 s\", optional = true }}");
    assert_eq!(code(&beside, &[]), 0);
    let mut command = assay();
    command
        .arg("check")
        .arg(run.with_file_name("none.assay.jsonl"))
        .arg("--spec")
        .arg(run.with_extension("toml"));
    let (code, text, _) = output(command);
    assert!(code == 3 && text.contains("NOT USABLE") && text.contains("none.assay.jsonl"), "{code} {text}");
    // Beside a run that is accepted, too: what is missing is no pass.
    check(&run, met, &[]);
    let mut command = assay();
    command.arg("check").arg(&run).arg(run.with_file_name("none.assay.jsonl"));
    command.arg("--spec").arg(run.with_extension("toml")).arg("--brief");
    let (code, text, _) = output(command);
    assert!(code == 3 && text.lines().count() == 3, "{code} {text}");
    assert!(text.ends_with("2 runs: NOT USABLE: 1 accepted, 1 not usable.\n"), "{text}");
    // So is an empty folder beside it.
    let empty = tempfile::tempdir().expect("a folder");
    let file = run.with_extension("toml").display().to_string();
    let (code, text, _) = screen(&[&run, empty.path()], &["--spec", &file]);
    assert!(code == 3 && text.contains("has no run"), "{code} {text}");
    let (code, _, error) = screen(&[&run], &[]);
    assert!(code == 2 && error.contains("--init") && error.contains("--spec-dir"), "{code} {error}");
}

#[test]
fn a_run_is_accepted_by_the_spec_that_it_was_written_from_and_its_summary_is_judged_alike() {
    let (folder, run) = run();
    let mut command = assay();
    command.arg("check").arg(&run).arg("--init");
    let (code, spec, error) = output(command);
    assert_eq!(code, 0, "{error}");
    assert!(spec.contains("core-clock = { min = \""), "{spec}");
    let (code, text, _) = check(&run, &spec, &[]);
    assert!(code == 0 && text.contains("ACCEPT"), "{text}");
    let mut command = assay();
    command.arg("summary").arg(&run);
    let lines = folder.path().join("fleet.ndjson");
    fs::write(&lines, output(command).1).expect("a file");
    let of = |file: &Path| -> Vec<(String, String)> {
        let mut command = assay();
        command.arg("check").arg(file).arg("--spec").arg(run.with_extension("toml")).arg("--json");
        let json: Value = serde_json::from_str(&output(command).1).expect("JSON");
        assert!(validator("check").is_valid(&json), "{json}");
        let demands = json["runs"][0]["demands"].as_array().expect("demands").clone();
        let word = |demand: &Value, name: &str| demand[name].as_str().expect("a word").to_string();
        demands.iter().map(|demand| (word(demand, "key"), word(demand, "standing"))).collect()
    };
    let (by_run, by_summary) = (of(&run), of(&lines));
    for (one, other) in by_run.iter().zip(&by_summary) {
        // What is read off a curve is not in a summary.
        assert!(one == other || one.0 == "l3-size" && other.1 == "undecided", "{one:?} {other:?}");
    }
    let mut command = assay();
    command.arg("check").arg(&run).arg("--derive");
    let (code, _, error) = output(command);
    assert!(code == 2 && error.contains("at least 8 good runs, not 1"), "{error}");
}

#[test]
fn eight_runs_give_a_spec_that_half_of_them_pass() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let runs: Vec<PathBuf> =
        (1..=8).map(|seed| pretended(seed, &folder.path().join(seed.to_string()), &[])).collect();
    let mut command = assay();
    command.arg("check").arg(folder.path()).args(["--derive", "--margin", "40"]);
    let (code, spec, error) = output(command);
    assert!(code == 0 && spec.contains("from 8 runs"), "{spec} {error}");
    let file = folder.path().join("fleet.toml");
    fs::write(&file, &spec).expect("a file");
    let mut command = assay();
    command.arg("check").args(&runs).arg("--spec").arg(&file).arg("--brief");
    assert_eq!(output(command).1.lines().count(), 9);
    let mut command = assay();
    command.arg("check").args(&runs).arg("--spec").arg(&file).arg("--json");
    let json: Value = serde_json::from_str(&output(command).1).expect("JSON");
    let mut missed: BTreeMap<String, usize> = BTreeMap::new();
    for run in json["runs"].as_array().expect("runs") {
        for demand in run["demands"].as_array().expect("demands") {
            let key = demand["key"].as_str().expect("a key").to_string();
            *missed.entry(key).or_default() += usize::from(demand["standing"] == "missed");
        }
    }
    // A limit has room on the worse side of the middle one.
    assert!(
        missed.contains_key("core-clock") && missed.values().all(|count| *count <= 4),
        "{missed:?} {spec}"
    );
}

#[test]
fn what_a_run_lacks_is_told_in_every_form() {
    let (folder, run) = run();
    let text = fs::read_to_string(&run).expect("a run");
    let lines: Vec<&str> = text.lines().collect();
    let at = |name: &str, lines: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, lines.join("\n") + "\n").expect("a file");
        path
    };
    let cut = at("cut.assay.jsonl", &lines[..lines.len() - 1]);
    let empty = at("empty.assay.jsonl", &lines[..1]);
    let damaged = at("damaged.assay.jsonl", &[&lines[..3], &["{\"visit\":"], &lines[3..]].concat());
    let spec = "[findings]\nfail_at = \"problem\"\nnone_of = [\"steal\"]\n";
    for (file, code, told) in [
        (&run, 0, &["invented"][..]),
        (&cut, 4, &["invented", "incomplete"]),
        (&empty, 3, &["incomplete"]),
        (&damaged, 0, &["damaged"]),
    ] {
        if *file == empty {
            let (code, text, error) = screen(&[file], &["--init"]);
            assert!(code == 3 && text.is_empty() && error.contains("no key figure"), "{code} {text} {error}");
        }
        let xml = folder.path().join("assay.xml");
        let xml_name = xml.display().to_string();
        let forms = [
            check(file, spec, &[]),
            check(file, spec, &["--brief", "--junit", &xml_name]),
            check(file, spec, &["--json"]),
        ];
        let codes: Vec<i32> = forms.iter().map(|(code, ..)| *code).collect();
        assert_eq!(codes, [code; 3], "{}: {}", file.display(), forms[0].1);
        let written = fs::read_to_string(&xml).expect("XML");
        for word in told {
            let long = if *word == "damaged" { "cannot be read" } else { word };
            assert!(forms[0].1.contains(long), "{word}: {}", forms[0].1);
            assert!(forms[1].1.contains(word) && forms[2].1.contains(word), "{word}: {}", forms[1].1);
            assert!(written.contains(word), "{word}: {written}");
        }
        let json: Value = serde_json::from_str(&forms[2].1).expect("JSON");
        assert!(validator("check").is_valid(&json), "{json}");
        assert_eq!(json["runs"][0]["damage"] != serde_json::json!([]), told.contains(&"damaged"), "{json}");
    }
}

#[test]
fn what_is_written_costs_no_outcome_and_no_file_that_is_read() {
    let (folder, run) = run();
    let nowhere = folder.path().join("none/assay.xml").display().to_string();
    for (cpus, code, word) in [(2, 3, "ACCEPT"), (3, 1, "REJECT")] {
        for how in ["--quiet", "--brief"] {
            let spec = format!("[machine]\ncpus = {{ min = {cpus} }}\n");
            let (own, text, error) = check(&run, &spec, &[how, "--junit", &nowhere]);
            assert!(own == code && text.contains(word), "{own} {text}");
            assert!(error.contains("cannot write") && error.contains("assay.xml"), "{error}");
        }
    }
    let spec = run.with_extension("toml");
    let before = fs::read(&spec).expect("a spec");
    let [spec_name, json] =
        [spec.clone(), folder.path().join("o.json")].map(|path| path.display().to_string());
    let around = folder.path().join(".").join(spec.file_name().expect("a name")).display().to_string();
    for more in [["--junit", &spec_name], ["--junit", &around]] {
        let (code, text, error) = screen(&[&run], &[&["--spec", &spec_name][..], &more].concat());
        assert!(code == 2 && text.is_empty() && error.contains("it is the input"), "{code} {text} {error}");
    }
    let twice = ["--spec", &spec_name, "--junit", &json, "--out", &json];
    let (code, _, error) = screen(&[&run], &twice);
    assert!(code == 2 && error.contains("a file of its own"), "{code} {error}");
    let (code, _, error) = screen(&[&run], &["--init", "--junit", &json]);
    assert!(code == 2 && error.contains("cannot be used with"), "{code} {error}");
    assert!(fs::read(&spec).expect("a spec") == before && !Path::new(&json).exists());
    let reference = folder.path().join("none.csv").display().to_string();
    let (code, _, error) = screen(&[&run], &["--spec", &spec_name, "--reference", &reference]);
    assert!(code == 2 && error.contains("cannot use --reference"), "{code} {error}");
    let (code, _, error) = screen(&[&run], &["--spec", "/dev/zero"]);
    assert!(code == 2 && error.contains("is a device: copy its content"), "{code} {error}");
}

#[test]
fn every_fact_of_a_summary_can_be_asked_for() {
    let (folder, run) = run();
    let mut command = assay();
    command.arg("summary").arg(&run);
    let summary: Value = serde_json::from_str(&output(command).1).expect("a summary");
    let summary = summary.get("summary").unwrap_or(&summary);
    let facts = ["make_up", "settings"].map(|name| summary[name].as_array().expect("facts").clone()).concat();
    let names = facts.iter().map(|fact| fact[0].as_str().expect("a name"));
    let asked: String = names.map(|name| format!("{name} = \"*\"\n")).collect();
    assert!(asked.lines().count() > 9, "{asked}");
    let spec = folder.path().join("facts.toml");
    let lint = |text: &str| {
        fs::write(&spec, text).expect("a file");
        let mut command = assay();
        command.args(["check", "--lint"]).arg(&spec);
        output(command)
    };
    let (code, _, error) = lint(&format!("[machine]\n{asked}"));
    assert_eq!((code, error.as_str()), (0, ""));
    let (code, _, error) =
        lint("[machine]\ncpsu = 2\n[limits]\nsyscal = { max = \"1 s\" }\n[run]\nprofile = [\"quik\"]\n");
    for told in ["cpus?", "syscall?", "quick?"] {
        assert!(code == 2 && error.contains(&format!("did you mean {told}")), "{told}: {error}");
    }
    let (code, _, error) = lint("[limits]\nsyscall = { min = \"0.1 µs\" }\n");
    assert!(code == 0 && error.contains("warning") && error.contains("is max meant?"), "{code} {error}");
}

#[test]
fn the_example_of_the_help_names_series_that_runs_have() {
    let (_folder, run) = run();
    let mut command = assay();
    command.args(["check", "--help"]);
    let help = output(command).1;
    let series =
        help.lines().find(|line| line.trim_start().starts_with("series = \"memory.")).expect("a series");
    let (_, text, _) = check(&run, &format!("[[limit]]\n{series}\nmin = \"1 GB/s\"\n"), &["--all"]);
    assert!(text.contains("✓ met") && !text.contains("not measured"), "{text}");
    // For a glob without the pages, the message names the glob that finds the figures.
    let bare = "[[limit]]\nseries = \"memory.bandwidth@all?op=read*\"\nmin = \"1 GB/s\"\n";
    let (code, text, _) = check(&run, bare, &["--all"]);
    let text = text.split_whitespace().collect::<String>();
    assert!(code == 4 && text.contains("memory.bandwidth@all+*?op=read*was"), "{text}");
}

fn screen(runs: &[&Path], more: &[&str]) -> (i32, String, String) {
    let mut command = assay();
    command.arg("check").args(runs).args(more).env("COLUMNS", "100");
    output(command)
}

#[test]
fn within_counts_from_the_reference_that_a_spec_names() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let before = pretended(1, &folder.path().join("before"), &[]);
    let now = pretended(2, &folder.path().join("now"), &[]);
    let spec = folder.path().join("spec.toml");
    let spec_name = spec.display().to_string();
    let asked = |within: &str, runs: &str| {
        let limits = format!("[limits]\ncore-clock = {{ within = \"{within}\" }}\n");
        let limit = format!("[[limit]]\nseries = \"memory.latency@*\"\nwithin = \"{within}\"\n");
        fs::write(&spec, format!("[reference]\nruns = \"{runs}\"\n{limits}{limit}")).expect("a file");
    };
    let demands = |runs: &[&Path]| -> Vec<Value> {
        let (_, text, error) = screen(runs, &["--spec", &spec_name, "--json"]);
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("JSON: {error}"));
        assert!(validator("check").is_valid(&json), "{json}");
        json["runs"][0]["demands"].as_array().expect("demands").clone()
    };
    // A path begins at the spec's folder.
    asked("10 %", "before");
    let all = demands(&[&now]);
    assert!(all.len() > 2, "{all:?}");
    for demand in &all {
        let own = |name: &str| demand[name].as_f64();
        if demand["low_high"].is_null() {
            continue;
        }
        let (low, high) = (demand["low_high"][0].as_f64(), demand["low_high"][1].as_f64());
        let is_rate = demand["key"] == "core-clock";
        let (met, missed) = match is_rate {
            true => (low >= Some(0.9), high < Some(0.9)),
            false => (high <= Some(1.1), low > Some(1.1)),
        };
        let word = if met {
            "met"
        } else if missed {
            "missed"
        } else {
            "undecided"
        };
        assert_eq!(demand["standing"], word, "{demand}");
        assert!(low <= own("value") && own("value") <= high && demand["unit"] == "×", "{demand}");
        assert!(demand["why"].as_str().is_some_and(|why| why.contains("the reference has")), "{demand}");
    }
    let (_, text, _) = screen(&[&now], &["--spec", &spec_name]);
    assert!(text.contains("within 10 %") && text.contains("the reference (before)"), "{text}");
    // That a run equals itself says nothing.
    let own = demands(&[&before]);
    assert!(own.iter().all(|demand| demand["standing"] == "undecided"), "{own:?}");
    assert!(own.iter().any(|demand| demand["why"].as_str().is_some_and(|why| why.contains("prove nothing"))));
    for (runs, told) in [("@nothing", "is named nothing"), ("gone", "gone"), ("", "runs is empty")] {
        asked("10 %", runs);
        let (code, _, error) = screen(&[&now], &["--spec", &spec_name]);
        assert!(code == 2 && error.contains(told), "{runs:?}: {code} {error}");
    }
}

#[test]
fn a_folder_of_specs_has_one_for_each_class() {
    let (_folder, run) = run();
    let specs = tempfile::tempdir().expect("a folder");
    let folder = specs.path().display().to_string();
    let put = |name: &str, text: &str| fs::write(specs.path().join(name), text).expect("a file");
    let judged = || screen(&[&run], &["--spec-dir", &folder]);
    let (code, _, error) = judged();
    assert!(code == 2 && error.contains("has no spec"), "{error}");
    put("amd.toml", "name = \"amd\"\n[machine]\ncpu_model = \"AMD*\"\n");
    let (code, text, _) = judged();
    assert!(code == 3 && text.contains("NOT USABLE") && text.contains("amd.toml"), "{text}");
    put("intel.toml", "name = \"intel\"\n[machine]\ncpu_model = \"Intel*\"\ncpus = 2\n");
    put("notes.txt", "no spec");
    let (code, text, error) = judged();
    assert!(code == 0 && text.contains("ACCEPT"), "{text} {error}");
    put("two.toml", "name = \"two\"\n[machine]\ncpus = { max = 2 }\n");
    let (code, text, _) = judged();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == 3 && text.contains("2 specs fit this host, intel.toml and two.toml"), "{text}");
    put("two.toml", "[findings]\nfail_at = \"problem\"\n");
    let (code, _, error) = judged();
    assert!(code == 2 && error.contains("does not name its hosts"), "{error}");
}
