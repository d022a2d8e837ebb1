//! From a recorded host and invented samples to every form of report, compared with what it was.
//!
//! The benchmarks are named, so that a new one does not change these files; lines that list all
//! rules are left out, so that a new rule does not either.

use std::path::{Path, PathBuf};

use report::plain::{is_number, is_unit};
use serde_json::Value;

use crate::assay;
use crate::smbios::Board;
use crate::studies::is_a_first_screen;
use crate::synthetic::{Shape, Tree};

/// A whole run with samples invented from a seed, on the recorded host, into `out`; returns the
/// run file.
pub fn pretended(seed: u64, out: &Path, more: &[&str]) -> PathBuf {
    let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
    let seed = seed.to_string();
    let mut command = assay();
    command.args(["run", "--quick", "--new", "--pretend", &seed]).arg("--from").arg(machine);
    command.args(["--only", "cpu.clock,memory.bandwidth,memory.latency,ipc.pipe-pingpong"]);
    let output = command.arg("--out").arg(out).args(more).output().expect("assay runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let runs = std::fs::read_dir(out).expect("the folder").flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> =
        runs.filter(|path| path.to_string_lossy().ends_with(".assay.jsonl")).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

fn printed(args: &[&str], run: &Path) -> String {
    let output = assay().args(args).arg(run).env("COLUMNS", "120").output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Numbers to six digits: the mathematical library may differ in the last bits between systems.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.5e}", number.as_f64().unwrap_or(0.0));
            serde_json::json!(text.parse::<f64>().unwrap_or(0.0))
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        other => other,
    }
}

/// A whole quick run with invented samples on a recorded host.
fn quick(machine: &Path, out: &Path) -> PathBuf {
    let mut command = assay();
    command.args(["run", "--quick", "--new", "--pretend", "7", "--quiet", "--out"]).arg(out);
    let output = command.arg("--from").arg(machine).output().expect("assay runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let runs = std::fs::read_dir(out).expect("the folder").flatten().map(|entry| entry.path());
    runs.into_iter().find(|path| path.to_string_lossy().ends_with(".assay.jsonl")).expect("a run file")
}

/// A host on bare metal with two sockets of four cores, one of which has its modules 3+1.
pub fn three_one() -> Tree {
    let tree = Tree::new();
    tree.build(
        Shape { packages: 2, cores: 4, cores_per_l3: 4, threads: 2, first: 0, step: 1, lists: true },
        1,
    );
    let processor = |cpu: u32| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: {}\n\
             stepping\t: 7\nflags\t\t: fpu tsc constant_tsc nonstop_tsc sse4_2 avx2\n\n",
            crate::smbios::CPU
        )
    };
    tree.file("/proc/cpuinfo", &(0..16).map(processor).collect::<String>());
    tree.file("/sys/devices/system/cpu/online", "0-15");
    tree.file("/proc/sys/kernel/hostname", "db-7").file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64");
    tree.file("/proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 130023424 kB\nSwapTotal: 0 kB");
    Board::dell(2, &["A1", "A2", "A3", "A4", "B1", "B2", "B4", "B5"]).write(&tree);
    tree
}

/// What was read of such a tree, in a file of the folder.
pub fn recorded(tree: &Tree, folder: &Path) -> PathBuf {
    let file = folder.join("machine.json");
    let mut command = assay();
    command.args(["machine", "--quiet", "--root"]).arg(tree.root()).arg("--save").arg(&file);
    let output = command.output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

/// Machines of each kind: two threads a core; several nodes; bare metal with modules 3+1.
#[test]
fn machines_of_each_kind_have_a_first_screen() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let machines = testkit::root().join("tests/machines");
    let three_one = recorded(&three_one(), dir.path());
    for (name, machine) in [
        ("smt", machines.join("arm64-smt.json")),
        ("numa", machines.join("memory-only.json")),
        ("three_one", three_one),
    ] {
        let run = quick(&machine, &dir.path().join(name));
        let kept = |columns: usize, locale: &str| {
            let text = screen(&run, columns, locale, &[]);
            if [80, 100].contains(&columns) && locale == "C.UTF-8" {
                insta::assert_snapshot!(format!("screen_{name}_{columns}"), text);
            }
            text
        };
        // Where memory has no CPUs, there is less to say.
        match name {
            "numa" => [80, 100].iter().for_each(|columns| drop(kept(*columns, "C.UTF-8"))),
            _ => is_a_first_screen(name, kept),
        }
        in_columns(name, &screen(&run, 80, "C.UTF-8", &["--unit", "ns"]));
        for columns in [40, 50] {
            let text = screen(&run, columns, "C.UTF-8", &[]);
            assert!(text.lines().count() <= 40, "{name}, {columns} columns:\n{text}");
            let is_wide = |line: &&str| line.chars().count() > columns;
            assert_eq!(text.lines().find(is_wide), None, "{name}, {columns} columns");
        }
    }
}

/// Readings stand under one another, behind a space.
fn in_columns(name: &str, text: &str) {
    let table: Vec<&str> = text.lines().skip_while(|line| !line.ends_with("reading")).collect();
    let head = table.first().expect("a head");
    let column = head.chars().count() - "reading".len();
    let is_sign = |c: &char| ['▲', '●', '▼', '✗', '–', '?'].contains(c);
    let rows = table.iter().skip(1).take_while(|line| !line.is_empty());
    let rows: Vec<Vec<char>> = rows.map(|line| line.chars().collect()).collect();
    let rows: Vec<&Vec<char>> = rows.iter().filter(|row| row.get(column).is_some_and(is_sign)).collect();
    assert!(rows.len() > 10 && rows.iter().all(|row| row[column - 1] == ' '), "{name}:\n{text}");
}

/// The first screen at a width and in a locale.
pub fn screen(run: &Path, columns: usize, locale: &str, more: &[&str]) -> String {
    let mut command = assay();
    command.arg("diagnose").arg(run).args(more).env("COLUMNS", columns.to_string()).env("LC_ALL", locale);
    let output = command.output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_first_screen_shows_what_it_showed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = quick(&testkit::root().join("tests/machines/firecracker-guest-2cpu.json"), dir.path());
    is_a_first_screen("firecracker-guest-2cpu", |columns, locale| {
        let text = screen(&run, columns, locale, &[]);
        let name = match (columns, locale) {
            (60 | 80 | 100 | 140, "C.UTF-8") => format!("screen_{columns}"),
            (80, "C") => "screen_80_ascii".to_string(),
            _ => return text,
        };
        insta::assert_snapshot!(name, text);
        text
    });
    insta::assert_snapshot!("screen_quiet", screen(&run, 100, "C.UTF-8", &["--quiet"]));
    insta::assert_snapshot!("screen_checks", screen(&run, 100, "C.UTF-8", &["--checks"]));
}

#[test]
fn units_and_keys_are_as_asked_for() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(7, dir.path(), &[]);
    let text = screen(&run, 100, "C.UTF-8", &["--unit", "GiB/s,MHz", "--keys"]);
    assert!(text.contains("GiB/s") && !text.contains("GB/s"), "{text}");
    assert!(text.contains("cpu.clock@one-cpu#clock"), "{text}");
    let refused = assay().args(["diagnose", "--unit", "parsec"]).arg(&run).output().expect("assay runs");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && error.contains("units are"), "{error}");
}

#[test]
fn all_prints_every_figure_behind_the_first_screen() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(7, dir.path(), &[]);
    for width in [60, 80, 100, 140] {
        let first = screen(&run, width, "C.UTF-8", &[]);
        let all = screen(&run, width, "C.UTF-8", &["--all", "--keys"]);
        assert!(all.lines().count() > first.lines().count() + 10, "{all}");
        // Commands are whole, so that they can be copied.
        let is_command = |line: &str| ["check: ", "more: "].iter().any(|word| line.contains(word));
        for line in all.lines().filter(|line| !is_command(line)) {
            assert!(line.chars().count() <= width && !line.contains('…'), "{width}: {line}");
        }
        let ascii = screen(&run, width, "C", &["--all"]);
        assert!(ascii.is_ascii(), "{ascii}");
        if matches!(width, 80 | 100) {
            let all = screen(&run, width, "C.UTF-8", &["--all"]);
            let group =
                all.lines().skip_while(|line| !line.starts_with("  memory   ") || !line.ends_with("reading"));
            let group: Vec<&str> = group.take_while(|line| !line.is_empty()).collect();
            insta::assert_snapshot!(format!("all-memory-{width}"), group.join("\n"));
        }
    }
}

#[test]
fn the_page_names_findings_in_words_and_tells_the_method_whole() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    pretended(7, dir.path(), &[]);
    let page = std::fs::read_to_string(dir.path().join("report.html")).expect("the page");
    let listed = page.split("aria-label=\"Conditions\"").nth(1).and_then(|rest| rest.split("</ul>").next());
    let listed = listed.expect("the list of what was looked at");
    assert!(listed.contains("Pipe ping-pong runs at") && !listed.contains("free placement"), "{listed}");
    let method =
        page.split("id=\"method\"").nth(1).and_then(|rest| rest.split("<details class=\"t\"").next());
    let method = method.expect("the method");
    assert!(method.contains("should take twice the time"), "{method}");
    assert!(!method.contains("…<") && !method.contains("docs/method"), "{method}");
}

#[test]
fn the_contract_holds_what_it_held() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(7, dir.path(), &[]);
    let mut json: Value = serde_json::from_str(&printed(&["diagnose", "--json"], &run)).expect("JSON");
    let problems: Vec<String> =
        crate::validator("results").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    let saved = std::fs::read_to_string(dir.path().join("report.json")).expect("report.json");
    let mut saved: Value = serde_json::from_str(&saved).expect("JSON");
    // report.json was written before the summary closed the run.
    saved["complete"] = json["complete"].clone();
    assert_eq!(json, saved, "report.json and diagnose --json are the same contract");
    for all_rules in ["rules_clean", "rules_not_applicable"] {
        json[all_rules] = Value::Null;
    }
    let series = json["series"].as_array_mut().expect("series");
    for one in series {
        one["values"] = serde_json::json!(one["values"].as_array().map(Vec::len));
    }
    insta::assert_snapshot!("contract", serde_json::to_string_pretty(&rounded(json)).expect("JSON"));
}

#[test]
fn markdown_reads_as_it_read() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text = printed(&["report", "--format", "markdown"], &pretended(7, dir.path(), &[]));
    let upto_method = text.split("\n## Method").next().expect("a beginning");
    let without_checks: Vec<&str> = upto_method
        .lines()
        .filter(|line| !["- ✓", "- !", "- ✗", "- ?"].iter().any(|mark| line.starts_with(mark)))
        .collect();
    insta::assert_snapshot!("markdown", without_checks.join("\n"));
}

#[test]
fn a_run_without_a_map_says_so_and_writes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(7, dir.path(), &[]);
    let file = dir.path().join("map.svg");
    let ended = assay().arg("report").arg(&run).arg("--map").arg(&file).output().expect("assay runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("this run has no map"), "{said}");
    assert!(!file.exists());
    // A picture is no report: both at once are refused.
    let both = assay().arg("report").arg(&run).args(["--format", "csv", "--map"]).arg(&file).output();
    assert_eq!(both.expect("assay runs").status.code(), Some(2));
}

#[test]
fn csv_has_every_counted_window() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(7, dir.path(), &[]);
    let csv = printed(&["report", "--format", "csv"], &run);
    let json: Value = serde_json::from_str(&printed(&["diagnose", "--json"], &run)).expect("JSON");
    let windows: usize = json["series"]
        .as_array()
        .expect("series")
        .iter()
        .flat_map(|series| series["values"].as_array().expect("values"))
        .map(|process| process.as_array().map_or(0, Vec::len))
        .sum();
    assert!(windows > 1000);
    assert_eq!(csv.lines().count(), windows + 1);
    insta::assert_snapshot!("csv_head", csv.lines().take(3).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_page_holds_the_contract_and_every_section() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    pretended(7, dir.path(), &[]);
    let page = std::fs::read_to_string(dir.path().join("report.html")).expect("report.html");
    let embedded = report::html::embedded_json(&page).expect("the contract is in the page");
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let saved = std::fs::read_to_string(dir.path().join("report.json")).expect("report.json");
    assert_eq!(parsed(&embedded), parsed(&saved), "the page has every sample, too");
    for section in
        ["findings", "results", "chart-memory-latency", "samples", "machine", "conditions", "method", "raw"]
    {
        assert!(page.contains(&format!("id=\"{section}\"")), "{section}");
    }
}

/// What a page may weigh, in bytes.
const HEAVIEST: u64 = 1_500_000;

#[test]
fn the_page_of_a_large_host_is_light() {
    let tree = Tree::new();
    // 256 CPUs in 8 packages, each a node.
    let shape = Shape { packages: 8, cores: 16, cores_per_l3: 8, threads: 2, first: 0, step: 1, lists: true };
    tree.build(shape, 8);
    let saved = tree.root().join("machine.json");
    let output = assay().arg("machine").arg("--root").arg(tree.root()).arg("--save").arg(&saved).output();
    assert!(output.expect("assay runs").status.success());
    let dir = tempfile::tempdir().expect("a temporary directory");
    quick(&saved, dir.path());
    let size = |name: &str| std::fs::metadata(dir.path().join(name)).expect(name).len();
    let (page, json) = (size("report.html"), size("report.json"));
    assert!(page <= HEAVIEST, "{page} bytes");
    assert!(json > 500_000, "{json} bytes: a large host has many figures");
}

#[test]
fn a_seed_decides_everything() {
    let runs: Vec<String> = [7, 7, 8]
        .into_iter()
        .map(|seed| {
            let dir = tempfile::tempdir().expect("a temporary directory");
            std::fs::read_to_string(pretended(seed, dir.path(), &[])).expect("the run file")
        })
        .collect();
    assert!(runs[0] == runs[1], "equal seeds give equal run files");
    assert!(runs[0] != runs[2]);
}

#[test]
fn every_line_of_a_run_file_follows_the_schema() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text = std::fs::read_to_string(pretended(3, dir.path(), &[])).expect("the run file");
    let validator = crate::validator("run-file");
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let problems: Vec<String> = validator.iter_errors(&line).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        kinds.extend(line.as_object().into_iter().flat_map(|line| line.keys().cloned()));
    }
    assert!(["header", "visit", "summary"].iter().all(|kind| kinds.contains(*kind)), "{kinds:?}");
    let summary = text.lines().last().expect("a last line");
    assert!(summary.starts_with("{\"summary\"") && summary.len() <= 64 << 10, "{}", summary.len());
}

/// Golden files below a folder.
fn golden_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "snap"));
    own.chain(folders.iter().flat_map(|folder| golden_files(folder))).collect()
}

#[test]
fn no_line_breaks_between_a_number_and_its_unit() {
    let torn = |one: &str, next: &str| {
        let ends = one.split_whitespace().next_back().is_some_and(is_number);
        ends && next.split_whitespace().next().is_some_and(is_unit)
    };
    assert!(torn("the largest is 0.73", "  % (0.5 to 1.4)") && !torn("of 18", "components"));
    let files = golden_files(&testkit::root().join("crates"));
    assert!(files.len() > 40, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a golden file");
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            assert!(!torn(pair[0], pair[1]), "{}:\n{}\n{}", file.display(), pair[0], pair[1]);
        }
    }
}
