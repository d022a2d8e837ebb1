//! Three quick runs that version 0.1.0 made of one guest whose core clock moved: how precise their
//! figures are, what comparing them says, and how many planted differences it finds. They are read
//! from the shared fixtures.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use model::vocabulary::FAMILIES;
use serde_json::{Value, json};
use stats::order::median;

use crate::assay;
use crate::compare::scale;

/// The recorded runs; `None`, with a message, in a clone without them.
fn recorded(test: &str) -> Option<[PathBuf; 3]> {
    let folder = testkit::root().join("../shared/fixtures/runs");
    let files = [1, 2, 3].map(|number| folder.join(format!("quick-{number}.assay.jsonl.gz")));
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        eprintln!("SKIPPED {test}: the fixtures are not here ({} is missing)", missing.display());
        return None;
    }
    Some(files)
}

fn json_of(command: &mut Command) -> Value {
    let output = command.output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn compared(a: &Path, b: &Path) -> Value {
    json_of(assay().args(["compare", "--json"]).args([a, b]))
}

fn headlines<'a>(found: &'a Value, list: &str) -> Vec<&'a Value> {
    let all = found[list].as_array().expect("a list").iter();
    all.filter(|one| one["headline"] == true).collect()
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Relative half-width of the interval that is shown.
fn half_width(series: &Value) -> f64 {
    let shown = if series["at_clock"].is_object() { &series["at_clock"] } else { series };
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    (number(&shown["ci95"][1]) - number(&shown["ci95"][0])) / 2.0 / number(&shown["median"])
}

#[test]
fn recorded_figures_are_as_precise_as_before() {
    let Some(files) = recorded("recorded_figures_are_as_precise_as_before") else { return };
    // Within 3 and 10 %, at least, and the clock of the run.
    for (file, (trusted, rough), ghz) in
        [(&files[0], (88, 130), 3.76), (&files[1], (46, 115), 3.57), (&files[2], (60, 118), 3.57)]
    {
        let report = json_of(assay().args(["report", "--json"]).arg(file));
        let series: Vec<&Value> =
            headlines(&report, "series").into_iter().filter(|one| one["median"].is_number()).collect();
        let name = file.display();
        assert_eq!(series.len(), 164, "{name}");
        let halves: Vec<f64> = series.iter().map(|one| half_width(one)).collect();
        assert!(halves.iter().all(|half| half.is_finite()), "{name}: a series has no interval");
        let within = |limit: f64| halves.iter().filter(|half| **half <= limit).count();
        println!("{name}: {} within 3 %, {} within 10 %", within(0.03), within(0.10));
        assert!(within(0.03) >= trusted, "{name}: {}", within(0.03));
        assert!(within(0.10) >= rough, "{name}: {}", within(0.10));
        for one in &series {
            let processes = one["values"].as_array().expect("values").iter();
            let medians: Vec<f64> = processes.filter_map(|values| median(&numbers(values))).collect();
            let (own, told) = (median(&medians).expect("values"), one["median"].as_f64().expect("a median"));
            assert!((own / told - 1.0).abs() < 1e-12, "{name}: {}: {own} and {told}", one["key"]);
            let clock = &one["at_clock"]["ghz"];
            assert!(clock.is_null() || *clock == json!(ghz), "{name}: {}: {clock}", one["key"]);
        }
        assert!(series.iter().any(|one| one["at_clock"].is_object()), "{name}: nothing is at a clock");
    }
}

/// Of some metrics: how many there are, how many are called different, and how many the same
/// (within 10 % at most).
fn said<'a>(metrics: impl Iterator<Item = &'a Value>) -> [usize; 3] {
    const DIFFERENT: [&str; 4] = ["faster", "slower", "higher", "lower"];
    let mut said = [0; 3];
    for metric in metrics {
        said[0] += 1;
        said[1] += usize::from(DIFFERENT.iter().any(|word| metric["verdict"] == *word));
        said[2] += usize::from(metric["verdict"] == "same");
    }
    said
}

#[test]
fn recorded_runs_are_not_called_different() {
    let Some(files) = recorded("recorded_runs_are_not_called_different") else { return };
    // The same within 10 %, at least: of all, and of those at one clock.
    for ([a, b], least, least_core) in [([0, 1], 70, 68), ([0, 2], 75, 74), ([1, 2], 77, 69)] {
        let found = compared(&files[a], &files[b]);
        let metrics = headlines(&found, "metrics");
        let all = said(metrics.iter().copied());
        let core = said(metrics.iter().copied().filter(|one| one["scaled"] == true));
        println!("{} and {}: of all {all:?}, at one clock {core:?}", a + 1, b + 1);
        assert!(20 * all[1] <= all[0], "{a} {b}: {all:?}");
        assert!(all[2] >= least && core[2] >= least_core, "{a} {b}: {all:?} {core:?}");
    }
}

/// A copy of a run whose core-bound cases did `factor` times the work in the same time.
fn faster(file: &Path, factor: f64, copy: &Path) {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file).expect("a run")).read_to_string(&mut text).expect("text");
    let mut core: Vec<bool> = Vec::new();
    let lines = text.lines().map(|line| {
        if !line.starts_with("{\"header\"") && !line.starts_with("{\"visit\"") {
            return format!("{line}\n");
        }
        let mut record: Value = serde_json::from_str(line).expect("JSON");
        if let Some(plan) = record["header"]["plan"].as_array() {
            let is_core = |one: &Value| {
                let mut rows = FAMILIES.iter().flat_map(|family| family.core_bound);
                one["case"]["bench"].as_str().is_some_and(|bench| rows.any(|(id, _)| *id == bench))
            };
            core = plan.iter().map(is_core).collect();
        }
        let case = record["visit"]["case"].as_u64().and_then(|case| core.get(case as usize));
        if case == Some(&true) {
            scale(&mut record, factor);
        }
        format!("{record}\n")
    });
    let lines: String = lines.collect();
    fs::write(copy, lines).expect("a file");
}

#[test]
fn planted_differences_are_found() {
    let Some(files) = recorded("planted_differences_are_found") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Found, at least, of those at one clock. Between the first run and the third the clock fell by
    // 5 %, and all that is bound by the core took 2 % more cycles, as in the runs themselves.
    for (planted, a, least) in [(1.10, 1, 62), (1.05, 1, 15), (1.10, 0, 54)] {
        let copy = folder.path().join(format!("{planted}.assay.jsonl"));
        faster(&files[2], planted, &copy);
        let found = compared(&files[a], &copy);
        let core = said(headlines(&found, "metrics").into_iter().filter(|one| one["scaled"] == true));
        println!("{planted} between {} and 3: at one clock {core:?}", a + 1);
        assert!(core[1] >= least, "{planted} {a}: {core:?}");
    }
}
