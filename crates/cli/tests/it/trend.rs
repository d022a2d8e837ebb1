//! `assay trend` through the program: histories made of one run, their screens, what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use model::run_file::{self, SummaryLine};
use model::{Record, Summary};
use serde_json::Value;
use stats::noise::normal;

use crate::assay;
use crate::runs::{Ended, end};
use crate::studies::is_a_first_screen;

/// Histories of one recorded host, whose samples were invented once.
struct Made {
    folder: tempfile::TempDir,
    /// The run without its last line, and that line.
    before: Vec<u8>,
    summary: Summary,
    rng: Rng,
}

/// The key of the latency of memory.
const LATENCY: &str = "memory.data-source@one-cpu+huge-pages?source=dram#latency";

impl Made {
    fn new() -> Made {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let out = folder.path().join("made");
        let machine = testkit::root().join("tests/machines/firecracker-guest-2cpu.json");
        let mut command = assay();
        command.args(["run", "--quick", "--new", "--pretend", "7", "--quiet", "--from"]).arg(machine);
        end(command.arg("--out").arg(&out)).expect(0);
        let run = crate::runs::run_file(&out);
        let bytes = crate::runs::unsealed(&run).into_bytes();
        let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
        let summary = run_file::summary(&mut run_file::open(&run).expect("the run")).expect("a summary");
        assert!(summary.series.iter().any(|one| one.key == LATENCY), "{:?}", summary.series);
        fs::remove_dir_all(out).expect("removed");
        Made { before: bytes[..last].to_vec(), summary, folder, rng: Rng::with_seed(1) }
    }

    /// The summary of a run in November, its memory that much slower.
    fn run(&mut self, host: &str, day: usize, latency: f64) -> Summary {
        let mut own = self.summary.clone();
        own.host = host.to_string();
        own.started = format!("2026-11-{day:02}T06:30:00Z");
        own.boot_id = Some(format!("{host} since {}", if day < 20 { 3 } else { 20 }));
        own.pretended = false;
        for series in &mut own.series {
            let slow = if series.key == LATENCY { latency } else { 1.0 };
            let factor = slow * (0.006 * normal(&mut self.rng)).exp();
            series.median = series.median.map(|value| value * factor);
            // Invented samples have wide intervals; these runs are as sure as real ones.
            series.ci95 = series.median.map(|value| [value * 0.995, value * 1.005]);
        }
        for (label, value) in &mut own.make_up {
            if label == "kernel" && day >= 20 {
                *value = "6.1.0-21-amd64".to_string();
            }
        }
        own
    }

    /// A history of a host from 3 Nov on, whose memory latency each day is `latency`.
    fn history(&mut self, host: &str, days: usize, latency: impl Fn(usize) -> f64) -> Vec<Summary> {
        (3..3 + days).map(|day| self.run(host, day, latency(day))).collect()
    }

    /// The lines that `assay summary` would print.
    fn lines(&self, name: &str, all: &[Summary]) -> PathBuf {
        let line = |(at, summary): (usize, &Summary)| {
            let file = Some(format!("{}-{at}.assay.jsonl", summary.host));
            let line = SummaryLine { summary: Box::new(summary.clone()), file, sha256: None };
            serde_json::to_string(&line).expect("JSON") + "\n"
        };
        let path = self.folder.path().join(name);
        fs::write(&path, all.iter().enumerate().map(line).collect::<String>()).expect("written");
        path
    }

    /// The same as run files of a folder.
    fn files(&self, name: &str, all: &[Summary]) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        for (at, summary) in all.iter().enumerate() {
            let last = serde_json::to_vec(&Record::Summary(Box::new(summary.clone()))).expect("JSON");
            let bytes = [self.before.as_slice(), &last, b"\n"].concat();
            fs::write(folder.join(format!("{}-{at}.assay.jsonl", summary.host)), bytes).expect("written");
        }
        folder
    }
}

fn stepped(day: usize) -> f64 {
    if day < 20 { 1.0 } else { 1.12 }
}

fn trend(words: &[&str], paths: &[&Path]) -> Ended {
    end(assay().arg("trend").args(words).args(paths).env("COLUMNS", "100"))
}

/// What it printed has all these words, wherever lines end.
#[track_caller]
fn shows(ended: &Ended, words: &[&str]) {
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {}", ended.out);
    }
}

fn screen(path: &Path, columns: usize, locale: &str, more: &[&str]) -> String {
    let mut command = assay();
    command.arg("trend").arg(path).args(more).env("COLUMNS", columns.to_string()).env("LC_ALL", locale);
    end(&mut command).out.clone()
}

fn json(text: &str) -> Value {
    let json: Value = serde_json::from_str(text).expect("JSON");
    let problems: Vec<String> =
        crate::validator("trend").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    json
}

#[test]
fn a_history_has_a_screen_of_forty_lines() {
    let mut made = Made::new();
    let all = made.history("db1", 24, stepped);
    let worse = made.lines("worse.ndjson", &all);
    let steady = made.history("db1", 12, |_| 1.0);
    let steady = made.lines("steady.ndjson", &steady);
    let few = made.lines("few.ndjson", &all[..5]);
    let last = made.history("db1", 14, |day| if day < 16 { 1.0 } else { 1.3 });
    let last = made.lines("last.ndjson", &last);
    let better = made.history("db1", 24, |day| 2.0 - stepped(day));
    let better = made.lines("better.ndjson", &better);
    for (name, path) in
        [("worse", &worse), ("steady", &steady), ("few", &few), ("last", &last), ("better", &better)]
    {
        is_a_first_screen(name, |columns, locale| {
            let text = screen(path, columns, locale, &[]);
            let kept = match (columns, locale) {
                (80 | 100, "C.UTF-8") => format!("{name}_{columns}"),
                (60, "C.UTF-8") if name == "worse" => "worse_60".to_string(),
                (80, "C") if name == "worse" => "worse_80_ascii".to_string(),
                _ => return text,
            };
            insta::assert_snapshot!(kept, text);
            text
        });
    }
    insta::assert_snapshot!("worse_quiet", screen(&worse, 80, "C.UTF-8", &["--quiet"]));
    let all = screen(&worse, 100, "C.UTF-8", &["--all"]);
    assert!(all.lines().count() > 100 && all.contains("memory.bandwidth@all"), "{all}");
}

#[test]
fn each_outcome_has_its_exit_code_and_run_files_say_what_their_summaries_say() {
    let mut made = Made::new();
    let all = made.history("db1", 22, stepped);
    let (lines, folder) = (made.lines("fleet.ndjson", &all), made.files("runs", &all));
    let found = |path: &Path| json(&trend(&["--json"], &[path]).expect(1).out);
    let (by_lines, by_runs) = (found(&lines), found(&folder));
    assert_eq!(by_lines["verdict"], by_runs["verdict"]);
    assert_eq!(by_lines["figures"], by_runs["figures"]);
    let word = by_lines["verdict"]["word"].as_str().expect("a word");
    assert!(word.starts_with("MEMORY LATENCY BECAME 1") && word.ends_with(" WORSE ON 20 Nov"), "{word}");
    let figures = by_lines["figures"].as_array().expect("figures");
    let steps = figures.iter().filter(|one| !one["steps"].as_array().expect("steps").is_empty());
    let steps: Vec<(&Value, &Value)> = steps.map(|one| (&one["name"], &one["steps"][0])).collect();
    assert_eq!(steps.len(), 1, "{steps:?}");
    let (name, step) = steps[0];
    assert_eq!(
        (name, step["run"].as_u64(), step["worse"].as_bool()),
        (&"dram-latency".into(), Some(17), Some(true))
    );
    let changed = step["changed"].as_array().expect("changes").iter();
    let changed: Vec<&str> = changed.filter_map(|one| one["label"].as_str()).collect();
    assert_eq!(changed, ["kernel", "boot"]);

    // The last two runs are no step; what was before a day can be left out; seven are too few.
    let until = |count: usize| made.lines("part.ndjson", &all[..count]);
    shows(
        trend(&[], &[&until(19)]).expect(0),
        &["CONFIRM THE LAST RUN", "assay run --profile quick --only memory.data-source"],
    );
    shows(trend(&[], &[&until(17)]).expect(0), &["STEADY"]);
    shows(
        trend(&[], &[&until(7)]).expect(4),
        &["CANNOT TELL", "Still needed: 1 run of `assay run --profile quick`"],
    );
    shows(trend(&["--since", "2026-11-20"], &[&lines]).expect(4), &["CANNOT TELL", "there are 5"]);
    trend(&["--since", "2027-01-01"], &[&lines]).expect(3).says(&["no usable run", "since 2027-01-01"]);
    trend(&["--since", "yesterday"], &[&lines]).expect(2).says(&["2026-11-01"]);
    shows(trend(&["--profile", "full"], &[&lines]).expect(4), &["there is none", "profile quick (22 runs)"]);
}

#[test]
fn one_of_several_hosts_is_named_and_what_cannot_be_read_is_said() {
    let mut made = Made::new();
    let mut all = made.history("db1", 9, |_| 1.0);
    all.extend(made.history("db2", 9, |_| 1.0));
    let lines = made.lines("fleet.ndjson", &all);
    trend(&[], &[&lines]).expect(2).says(&["has runs of 2 hosts: name one of db1, db2"]);
    shows(trend(&["db1"], &[&lines]).expect(0), &["db1 · 9 runs, 3 Nov – 11 Nov"]);
    shows(trend(&["--host", "db2"], &[&lines]).expect(0), &["db2 · 9 runs"]);
    trend(&["db3"], &[&lines]).expect(2).says(&[
        "no run of a host db3",
        "did you mean db",
        "runs of db1, db2",
    ]);
    trend(&["db1", "db2"], &[&lines]).expect(2).says(&["db1 and db2 are two names"]);
    let missing = made.folder.path().join("none");
    trend(&[], &[&missing]).expect(3).says(&["none", "cannot open"]);
    trend(&["@befor"], &[]).expect(2).says(&["is named befor"]);
    // Without a word the runs of assay-out, and a torn one beside good ones is named.
    let runs = made.files("assay-out", &all[..9]);
    fs::write(runs.join("torn.assay.jsonl"), "{\"header\"").expect("written");
    let here = |words: &[&str]| end(assay().arg("trend").args(words).current_dir(made.folder.path()));
    let ended = here(&[]);
    ended.expect(0).says(&["1 result cannot be used", "torn.assay.jsonl"]);
    here(&["db1"]).expect(0);
    // Results of the same host on other CPUs are not compared.
    for own in &mut all[..4] {
        own.settings.retain(|(label, _)| label != "allowed_cpus");
        own.settings.push(("allowed_cpus".into(), "0".into()));
    }
    let other = made.lines("cpus.ndjson", &all[..9]);
    shows(trend(&[], &[&other]).expect(4), &["Other runs, not compared: CPUs 0 (4 runs)"]);
    // A new host under the old name is another series, too.
    let mut moved = made.history("db1", 17, |day| if day < 11 { 1.0 } else { 1.4 });
    for own in &mut moved[..8] {
        own.make_up.retain(|(label, _)| label != "cpu_model");
        own.make_up.push(("cpu_model".into(), "Another 9000".into()));
    }
    let moved = made.lines("moved.ndjson", &moved);
    let ended = trend(&[], &[&moved]);
    shows(ended.expect(0), &["STEADY", "Other runs, not compared: Another 9000 (8 runs)"]);
}

#[test]
fn values_go_into_a_table_that_other_tools_read() {
    let mut made = Made::new();
    let all = made.history("db1", 22, stepped);
    let lines = made.lines("fleet.ndjson", &all);
    let file = |name: &str| made.folder.path().join(name);
    let out = |name: &str, more: &[&str]| {
        let path = file(name).display().to_string();
        trend(&[&["--out", &path], more].concat(), &[&lines]).expect(1).says(&["saved"]);
        fs::read_to_string(file(name)).expect("written")
    };
    let text = out("trend.csv", &[]);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 23);
    assert_eq!(rows[0][..4], ["time", "file", "assay", "kernel"]);
    let place = rows[0].iter().position(|name| *name == "dram-latency").expect("the figure");
    assert_eq!((rows[1][0], rows[18][3]), ("2026-11-03T06:30:00Z", "6.1.0-21-amd64"));
    let value = |row: usize| rows[row][place].parse::<f64>().expect("a number");
    assert!((value(20) / value(3) - 1.12).abs() < 0.05, "{} {}", value(3), value(20));
    let every = out("all.csv", &["--all"]);
    assert!(every.lines().next().is_some_and(|head| head.contains("memory.bandwidth@all")), "{every}");
    json(&out("trend.json", &[]));
    for (name, told) in [
        ("trend.html", "this cannot be written as .html"),
        ("trend.md", "this cannot be written as .md"),
        ("trend.xlsx", "there is no report form .xlsx"),
    ] {
        let path = file(name).display().to_string();
        let ended = trend(&["--out", &path], &[&lines]);
        ended.expect(2).says(&[told, "end it in .json (JSON), .csv (CSV)"]);
        assert!(!ended.err.contains("(page)"), "a trend has no page: {}", ended.err);
    }
}
