//! What Assay 0.1.0 of November 2026 wrote (`tests/archive`: run files, its JSON reports of them,
//! and its JSON of the results in `tests/foreign`). People have archives: the same numbers and keys
//! must be read from them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::assay;

fn folder() -> PathBuf {
    testkit::root().join("tests/archive")
}

/// The files of a folder whose names end so, with what is before that.
fn ending(folder: &Path, end: &str) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).expect("a folder of the repository").flatten();
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(end)?.to_string();
        Some((path, name))
    };
    entries.filter_map(|entry| named(entry.path())).collect()
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    GzDecoder::new(file).read_to_string(&mut text).expect("packed text");
    text
}

/// What later versions judge anew, from the same values: intervals, what follows from them, and
/// what rules say.
const JUDGED: [&str; 9] = [
    "ci95",
    "n",
    "verdict",
    "reason",
    "more_needed",
    "findings",
    "rules_clean",
    "rules_not_applicable",
    "without_one",
];

/// Sentences, which may say the same in other words.
const WORDED: [&str; 3] = ["remarks", "words", "note"];

/// Fails where something of an archived report is no more what it was: a field that is gone, a
/// number or a text that is another. Fields and series may have come, what is judged may be judged
/// otherwise, and sentences may be worded otherwise.
#[track_caller]
fn same(what: &str, told: &str, archived: &str) {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let mut changed = Vec::new();
    kept(what, &parsed(told), &parsed(archived), &mut changed);
    assert!(changed.is_empty(), "{} changes, the first: {}", changed.len(), changed[0]);
}

fn kept(path: &str, now: &Value, then: &Value, changed: &mut Vec<String>) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (key, then) in then {
                match now.get(key) {
                    None => changed.push(format!("{path}.{key} is gone")),
                    Some(_) if JUDGED.contains(&key.as_str()) => {}
                    Some(now) if WORDED.contains(&key.as_str()) => {
                        let is_said =
                            |value: &Value| !["\"\"", "[]", "null"].contains(&value.to_string().as_str());
                        if is_said(then) && !is_said(now) {
                            changed.push(format!("{path}.{key} says nothing now"));
                        }
                    }
                    Some(now) => kept(&format!("{path}.{key}"), now, then, changed),
                }
            }
        }
        // Series may have come; those that were there stand in their order.
        (Value::Array(now), Value::Array(then)) if path.ends_with(".series") && now.len() > then.len() => {
            let was = |one: &&Value| then.iter().any(|old| old["key"] == one["key"]);
            let known: Vec<Value> = now.iter().filter(was).cloned().collect();
            match known.len() == then.len() {
                true => kept(path, &Value::Array(known), &Value::Array(then.clone()), changed),
                false => changed.push(format!("{path}: {} of {} are there", known.len(), then.len())),
            }
        }
        (Value::Array(now), Value::Array(then)) if now.len() == then.len() => {
            for (at, (now, then)) in now.iter().zip(then).enumerate() {
                kept(&format!("{path}[{at}]"), now, then, changed);
            }
        }
        (now, then) if now == then => {}
        (now, then) => changed.push(format!("{path}: `{now}`, and it was `{then}`")),
    }
}

fn told(words: &[&str]) -> String {
    let output = assay().args(words).current_dir(testkit::root()).output().expect("assay runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn runs_of_old_have_the_figures_that_they_had() {
    let runs = ending(&folder(), ".assay.jsonl.gz");
    assert_eq!(runs.len(), 5);
    for (path, name) in runs {
        let told = told(&["report", path.to_str().expect("a plain path"), "--format", "json"]);
        same(&name, &told, &unpacked(&folder().join(format!("{name}.json.gz"))));
    }
}

#[test]
fn reports_of_old_are_compared() {
    for (path, name) in ending(&folder(), ".assay.jsonl.gz") {
        let report = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
        std::fs::write(&report, unpacked(&folder().join(format!("{name}.json.gz")))).expect("written");
        let both = [path.as_path(), report.path()].map(|path| path.to_str().expect("a plain path"));
        let compared: serde_json::Value =
            serde_json::from_str(&told(&["compare", both[0], both[1], "--json"])).expect("JSON");
        let metrics = compared["metrics"].as_array().expect("metrics");
        assert!(!metrics.is_empty() && metrics.iter().all(|metric| metric["ratio"] == 1.0), "{name}");
        assert_eq!(compared["only_in_b"], 0, "{name}");
    }
}

/// Removes the share of reads that 0.1 invented where fio's text does not contain it: 50 %, of a
/// job with 70 %.
fn without_share(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("&read_share=50", ""),
        Value::Array(all) => all.iter_mut().for_each(without_share),
        Value::Object(all) => {
            all.remove("read_share");
            all.values_mut().for_each(without_share);
        }
        _ => {}
    }
}

#[test]
fn results_of_other_tools_are_read_as_they_were() {
    let imports = ending(&folder().join("imports"), ".json.gz");
    assert_eq!(imports.len(), 11);
    for (path, name) in imports {
        let mut command = assay();
        command.args(["import", "--json", &name]).current_dir(testkit::root().join("tests/foreign"));
        let output = command.output().expect("assay runs");
        let mut archived = serde_json::from_str(&unpacked(&path)).expect("JSON");
        if name == "fio-jobs.txt" {
            without_share(&mut archived);
        }
        same(&name, &String::from_utf8(output.stdout).expect("UTF-8"), &archived.to_string());
    }
}
