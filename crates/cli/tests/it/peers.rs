//! `assay peers` through the program: fleets of run files, torn ones, old ones, compressed ones,
//! doubled ones.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fastrand::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::run_file;
use model::{Record, Summary};
use serde_json::Value;
use stats::noise::normal;

use crate::assay;
use crate::golden::pretended;
use crate::studies::is_a_first_screen;

/// A fleet that is made of one run.
pub struct Made {
    pub folder: tempfile::TempDir,
    /// The run without its last line, and that line.
    before: Vec<u8>,
    summary: Summary,
    rng: Rng,
}

impl Made {
    pub fn new() -> Made {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let run = pretended(7, &folder.path().join("made"), &[]);
        let bytes = crate::runs::unsealed(&run).into_bytes();
        let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
        let summary = run_file::summary(&mut run_file::open(&run).expect("the run")).expect("a summary");
        assert!(
            summary.series.len() >= 10
                && summary.pretended
                && summary.series.iter().all(|one| one.better.is_some())
        );
        fs::remove_dir_all(folder.path().join("made")).expect("removed");
        Made { before: bytes[..last].to_vec(), summary, folder, rng: Rng::with_seed(1) }
    }

    /// A host's summary, its memory bandwidth scaled.
    pub fn host(&mut self, name: &str, started: &str, memory: f64) -> Summary {
        let mut own = self.summary.clone();
        (own.host, own.started) = (name.to_string(), started.to_string());
        own.boot_id = Some(format!("{name} {started}"));
        for series in &mut own.series {
            let slow = if series.key.starts_with("memory.bandwidth") { memory } else { 1.0 };
            let factor = slow * (0.005 * normal(&mut self.rng)).exp();
            series.median = series.median.map(|value| value * factor);
            // Invented samples have wide intervals; these runs are as sure as real ones.
            series.ci95 = series.median.map(|value| [value * 0.995, value * 1.005]);
        }
        own
    }

    pub fn bytes(&self, summary: &Summary) -> Vec<u8> {
        let line = serde_json::to_vec(&Record::Summary(Box::new(summary.clone()))).expect("JSON");
        [&self.before, line.as_slice(), b"\n"].concat()
    }

    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, bytes).expect("written");
        path
    }

    /// Puts this number of healthy hosts into `runs/`.
    fn healthy(&mut self, hosts: usize) {
        for number in 0..hosts {
            let summary = self.host(&format!("db{number:02}"), "2026-11-01T00:00:00Z", 1.0);
            self.put(&format!("runs/rack-{}/db{number:02}.assay.jsonl", number % 3), &self.bytes(&summary));
        }
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }
}

fn peers(args: &[&str], paths: &[&Path]) -> (i32, Output) {
    let output =
        assay().arg("peers").args(args).args(paths).env("COLUMNS", "140").output().expect("assay runs");
    (output.status.code().unwrap_or(-1), output)
}

fn json(output: &Output) -> Value {
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let problems: Vec<String> =
        crate::validator("peers").iter_errors(&json).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    json
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}

#[test]
fn one_slow_host_among_damaged_old_and_doubled_files() {
    let mut made = Made::new();
    made.healthy(20);
    let slow = made.host("db77", "2026-11-02T00:00:00Z", 0.5563);
    made.put("runs/rack-1/db77.assay.jsonl.gz", &packed(&made.bytes(&slow)));
    let before = made.host("db77", "2026-11-01T00:00:00Z", 1.0);
    made.put("runs/old/db77.assay.jsonl", &made.bytes(&before));
    // The same run once more, a torn one, one that never came to its end, a foreign file, one of a
    // later version.
    made.put("runs/copy/db77.assay.jsonl", &made.bytes(&slow));
    let torn = made.host("db78", "2026-11-02T00:00:00Z", 0.3);
    let torn = made.bytes(&torn);
    made.put("runs/rack-1/db78.assay.jsonl", &torn[..torn.len() - 300]);
    made.put("runs/rack-1/db79.assay.jsonl", &made.before.clone());
    made.put("runs/rack-1/db80.assay.jsonl", b"not ours\n");
    made.put("runs/rack-1/notes.txt", b"not looked at\n");
    let newer = made.host("db81", "2026-11-02T00:00:00Z", 1.0);
    let newer = String::from_utf8(made.bytes(&Summary { schema: 99, ..newer })).expect("text");
    made.put("runs/rack-1/db81.assay.jsonl", newer.as_bytes());
    // As the first versions wrote them.
    let old = made.host("db82", "2026-11-02T00:00:00Z", 1.0);
    let mut old: Value = serde_json::to_value(Record::Summary(Box::new(old))).expect("JSON");
    for gone in ["settings", "boot_id", "uptime_s", "profile"] {
        old["summary"].as_object_mut().expect("an object").remove(gone);
    }
    for series in old["summary"]["series"].as_array_mut().expect("series") {
        series.as_object_mut().expect("an object").remove("better");
        series.as_object_mut().expect("an object").remove("aside");
    }
    made.put("runs/rack-2/db82.assay.jsonl", &[&made.before, old.to_string().as_bytes(), b"\n"].concat());

    let (code, output) = peers(&["--json"], &[&made.runs()]);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&output.stderr));
    let found = json(&output);
    let flagged: Vec<&str> = found["hosts"]
        .as_array()
        .expect("hosts")
        .iter()
        .filter(|host| host["flagged"] == true)
        .filter_map(|host| host["host"].as_str())
        .collect();
    assert_eq!(flagged, ["db77"], "{}", found["findings"]);
    let finding = &found["findings"][0];
    assert_eq!(
        (finding["rule"].as_str(), finding["severity"].as_str()),
        (Some("slow-among-peers"), Some("problem"))
    );
    let headline = finding["headline"].as_str().expect("a headline");
    assert!(
        headline.starts_with("Host db77 is 4")
            && headline.ends_with("behind its 21 peers in memory bandwidth"),
        "{headline}"
    );
    let host =
        found["hosts"].as_array().expect("hosts").iter().find(|host| host["host"] == "db77").expect("it");
    assert_eq!(host["earlier"], 1);
    assert!(host["history"][0].as_f64().is_some_and(|ratio| ratio > 0.95), "{host}");
    let left_out: Vec<&str> =
        found["left_out"].as_array().expect("files").iter().filter_map(|one| one["why"].as_str()).collect();
    assert_eq!(left_out.len(), 4, "{left_out:?}");
    for why in ["cut off", "did not finish", "not a format that Assay knows", "newer Assay"] {
        assert!(left_out.iter().any(|one| one.contains(why)), "{why}: {left_out:?}");
    }
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("given twice") && warnings.contains("invented"), "{warnings}");

    assert_eq!(peers(&["--fail-on", "problem"], &[&made.runs()]).0, 1);
    let (_, output) = peers(&["--all"], &[&made.runs()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("ONE HOST IS SLOWER THAN ITS PEERS")
            && text.contains("Host db77 is 4")
            && text.contains("memory bandwidth"),
        "{text}"
    );
    for (name, holds) in [
        ("fleet.md", "# 22 hosts compared with their peers"),
        ("fleet.html", "<html"),
        ("fleet.json", "\"groups\""),
    ] {
        let file = made.folder.path().join(name);
        let (code, _) = peers(&["--out", &file.display().to_string()], &[&made.runs()]);
        let text = fs::read_to_string(&file).expect("written");
        assert!(code == 0 && text.contains(holds), "{name}");
    }
}

/// What a host is slower in is named where it is no key figure, and counted once.
#[test]
fn a_part_without_a_key_figure_names_its_benchmarks() {
    let mut made = Made::new();
    made.healthy(12);
    let mut slow = made.host("db77", "2026-11-02T00:00:00Z", 1.0);
    for series in slow.series.iter_mut().filter(|one| one.key.starts_with("memory.latency")) {
        series.median = series.median.map(|value| value * 1.3);
        series.ci95 = series.median.map(|value| [value * 0.995, value * 1.005]);
    }
    made.put("runs/db77.assay.jsonl", &made.bytes(&slow));
    let (_, output) = peers(&[], &[&made.runs()]);
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().find(|line| line.contains("  db77  ")).expect("a row");
    assert!(row.contains("memory latency: latency (of ") && row.contains("23 %"), "{text}");
    assert!(!text.contains("more figures"), "they are those of the part: {text}");
}

/// The first screens: hosts that are behind, none, and too few to compare.
#[test]
fn a_fleet_has_a_screen_of_forty_lines() {
    let mut made = Made::new();
    made.healthy(20);
    let screen = |made: &Made, columns: usize, locale: &str, more: &[&str]| {
        let mut command = assay();
        command.arg("peers").arg(made.runs()).args(more).env("COLUMNS", columns.to_string());
        let output = command.env("LC_ALL", locale).output().expect("assay runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let alike = screen(&made, 100, "C.UTF-8", &[]);
    insta::assert_snapshot!("alike_100", alike);
    for (name, memory, setting) in [
        ("db77", 0.5563, None),
        ("db78", 0.8, Some("numa_balancing")),
        ("db79", 1.0, Some("huge_page_defrag")),
    ] {
        let mut slow = made.host(name, "2026-11-02T00:00:00Z", memory);
        for (label, value) in &mut slow.settings {
            if Some(label.as_str()) == setting {
                *value = "another".to_string();
            }
        }
        made.put(&format!("runs/{name}.assay.jsonl"), &made.bytes(&slow));
    }
    let other = made.host("web1", "2026-11-03T00:00:00Z", 1.0);
    let make_up = other.make_up.iter().map(|(label, value)| match label.as_str() {
        "cpu_model" => (label.clone(), "Another".to_string()),
        _ => (label.clone(), value.clone()),
    });
    let other = Summary { make_up: make_up.collect(), ..other };
    made.put("runs/web1.assay.jsonl", &made.bytes(&other));
    let fits = |made: &Made| {
        is_a_first_screen("peers", |columns, locale| {
            let text = screen(made, columns, locale, &[]);
            assert!(text.contains("db77"), "{text}");
            text
        });
    };
    fits(&made);
    insta::assert_snapshot!("behind_100", screen(&made, 100, "C.UTF-8", &[]));
    insta::assert_snapshot!("behind_80", screen(&made, 80, "C.UTF-8", &[]));
    insta::assert_snapshot!("behind_80_ascii", screen(&made, 80, "C", &[]));
    let quiet = screen(&made, 100, "C.UTF-8", &["--quiet"]);
    assert!(quiet.contains("TWO HOSTS ARE SLOWER") && !quiet.contains("slowest"), "{quiet}");
    let (_, output) = peers(&["--json"], &[&made.runs()]);
    assert_eq!(json(&output)["verdict"]["word"], "TWO HOSTS ARE SLOWER THAN THEIR PEERS");
    for number in 60..66 {
        let slow = made.host(&format!("db{number}"), "2026-11-02T00:00:00Z", 0.7);
        made.put(&format!("runs/db{number}.assay.jsonl"), &made.bytes(&slow));
    }
    fits(&made);
    insta::assert_snapshot!("many_behind_80", screen(&made, 80, "C.UTF-8", &[]));
}

#[test]
fn fewer_than_eight_hosts_and_none_at_all() {
    let mut made = Made::new();
    made.healthy(7);
    let (code, output) = peers(&["--json"], &[&made.runs()]);
    assert_eq!(code, 4);
    let found = json(&output);
    assert_eq!((found["judged"].as_u64(), found["groups"][0]["judged"].as_bool()), (Some(0), Some(false)));
    assert!(found["warnings"].to_string().contains("no group has 8 hosts"), "{}", found["warnings"]);
    let (_, output) = peers(&[], &[&made.runs()]);
    insta::assert_snapshot!("cannot_tell_140", String::from_utf8(output.stdout).expect("UTF-8"));
    let empty = tempfile::tempdir().expect("a temporary directory");
    let (code, output) = peers(&[], &[empty.path()]);
    assert_eq!(code, 3, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(peers(&[], &[]).0, 2);
    let missing = empty.path().join("missing");
    assert_eq!(peers(&["--json"], &[&missing]).0, 3);
}

/// A saved report says the same of its host as its run file.
#[test]
fn saved_reports_are_taken_too() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let run = pretended(3, folder.path(), &[]);
    let report = folder.path().join("report.json");
    let hosts = |path: &Path| {
        let (_, output) = peers(&["--json"], &[path]);
        let found = json(&output);
        (found["hosts"][0]["host"].clone(), found["hosts"][0]["started"].clone(), found["left_out"].clone())
    };
    assert_eq!(hosts(&run), hosts(&report));
    let (_, output) = peers(&["--json"], &[&run, &report]);
    assert!(json(&output)["warnings"].to_string().contains("given twice, counted once: 1 result"));
}

/// A SPEC CPU2017 result of our own making, of another host, with a component at another speed.
fn spec(host: &str, minute: u32, mcf: f64, noise: f64, memory: &str) -> String {
    let text = fs::read_to_string(testkit::root().join("fuzz/corpus/import/speccpu-csv"));
    let mut lines: Vec<String> = Vec::new();
    for line in text.expect("the corpus").lines() {
        let factor = if line.starts_with("505.mcf_r") { mcf } else { 1.0 } * noise;
        lines.push(line.replace(",10.000000,1,S", &format!(",{:.6},1,S", 10.0 * factor)));
    }
    let text = lines.join("\n").replace("running on db7", &format!("running on {host}"));
    text.replace("17:00:35", &format!("17:{minute:02}:35")).replace("(16 x 64 GB)", memory)
}

#[test]
fn results_of_spec_cpu_stand_beside_each_other_too() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    let mut rng = Rng::with_seed(5);
    let mut noise = || (0.004 * normal(&mut rng)).exp();
    let mut files: Vec<PathBuf> = (0..9)
        .map(|at| put(&format!("{at}.csv"), &spec(&format!("db{at}"), at, 1.0, noise(), "(16 x 64 GB)")))
        .collect();
    files.push(put("slow.csv", &spec("db9", 9, 0.5563, 1.0, "(16 x 64 GB)")));
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let (code, output) = peers(&["--json"], &paths);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&output.stderr));
    let found = json(&output);
    let headlines: Vec<&str> = found["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|one| one["headline"].as_str())
        .collect();
    assert_eq!(headlines.len(), 1, "{headlines:?}");
    assert!(
        headlines[0].starts_with("Host db9 is 4") && headlines[0].contains("9 peers in speccpu.505.mcf_r"),
        "{headlines:?}"
    );

    // Runs of one machine: the spread of each component over them, and a finding where one moved.
    let runs = [
        put("a.csv", &spec("db1", 1, 1.0, 1.0, "(16 x 64 GB)")),
        put("b.csv", &spec("db1", 2, 0.9, 1.0, "(16 x 64 GB)")),
    ];
    let run = |verb: &str, files: &[PathBuf]| {
        let output = assay().args([verb, "--json"]).args(files).output().expect("assay runs");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let problems: Vec<String> =
            crate::validator(verb).iter_errors(&json).map(|problem| problem.to_string()).collect();
        assert!(output.status.success() && problems.is_empty(), "{problems:?}");
        json
    };
    let imported = run("import", &runs);
    let rows = imported["repeats"][0]["series"].as_array().expect("rows");
    let mcf = rows.iter().find(|row| row["key"] == "speccpu.505.mcf_r@free?tune=base#score").expect("a row");
    // 10 and 9: the population's deviation is 0.5.
    assert!((mcf["cv"].as_f64().expect("a spread") - 0.5 / 9.5).abs() < 1e-9, "{mcf}");
    let rules: Vec<&str> = imported["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    assert_eq!(rules, ["headline-differs", "headline-differs", "runs-apart"]);
    for rule in rules.iter().chain(&["invalid-result", "slow-among-peers", "config-drift"]) {
        let told = assay().args(["explain", rule]).output().expect("assay runs");
        assert!(told.status.success() && told.stdout.starts_with(rule.as_bytes()), "{rule}");
    }

    // Component by component, and what differs in the host.
    let other = put("c.csv", &spec("db2", 3, 0.9, 1.0, "(8 x 128 GB)"));
    let compared = run("compare", &[runs[0].clone(), other]);
    let ratio = compared["metrics"]
        .as_array()
        .expect("metrics")
        .iter()
        .find(|one| one["key"] == "speccpu.505.mcf_r@free?tune=base#score" && one["headline"] == true);
    assert!((ratio.expect("a ratio")["ratio"].as_f64().expect("a number") - 0.9).abs() < 1e-6);
    assert!(compared["environment_differences"].to_string().contains("8 x 128 GB"));
}

/// Slow hosts of one rack: the screen, the page and the JSON say so, from one file of summaries,
/// from a packed one and from a pipe.
#[test]
fn a_rack_that_the_slow_ones_share_is_named() {
    let mut made = Made::new();
    let mut lines = Vec::new();
    for number in 0..24 {
        let slow = if number % 8 == 7 { 0.6 } else { 1.0 };
        let mut host = made.host(&format!("db{number:02}"), "2026-11-01T00:00:00Z", slow);
        host.labels = [("rack".to_string(), format!("r{}", number % 8))].into();
        lines.push(serde_json::to_string(&Record::Summary(Box::new(host))).expect("JSON"));
    }
    lines.insert(5, "not a summary".to_string());
    let text = lines.join("\n") + "\n";
    let told = "all 3 hosts that are behind have rack=r7; of 21 others none";
    let file = made.put("fleet.ndjson", text.as_bytes());
    let packed = made.put("fleet.ndjson.gz", &packed(text.as_bytes()));
    let mut answers: Vec<Value> = Vec::new();
    for path in [&file, &packed] {
        let (code, output) = peers(&["--json"], &[path]);
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&output.stderr));
        answers.push(json(&output));
    }
    let mut piped = Command::new("sh");
    piped.args(["-c", "cat \"$2\" | \"$1\" peers --json /dev/stdin", "sh", env!("CARGO_BIN_EXE_assay")]);
    let output = piped.arg(&file).output().expect("sh runs");
    answers.push(json(&output));
    for found in &answers {
        assert_eq!((found["hosts"].as_array().map(Vec::len), found["judged"].as_u64()), (Some(24), Some(24)));
        assert_eq!(found["left_out"].as_array().map(Vec::len), Some(1), "{}", found["left_out"]);
        let hosts = found["hosts"].as_array().expect("hosts").iter();
        let names: Vec<&str> = hosts.filter_map(|host| host["host"].as_str()).collect();
        assert!(names.is_sorted(), "in the order of the lines: {names:?}");
        let followed = &found["followed"][0];
        assert_eq!((followed["value"].as_str(), followed["behind"].as_u64()), (Some("r7"), Some(3)));
        assert!(followed["p"].as_f64().is_some_and(|p| p < 0.01), "{followed}");
        assert!(found["warnings"].to_string().contains(told), "{}", found["warnings"]);
        let cause = found["findings"][0]["cause"].as_str().expect("a cause").to_lowercase();
        assert!(cause.contains(told), "{cause}");
    }
    let (_, output) = peers(&[], &[&file]);
    let text = String::from_utf8_lossy(&output.stdout).replace("\n", " ");
    assert!(text.to_lowercase().contains("have rack=r7"), "{text}");
    let page = made.folder.path().join("fleet.html");
    peers(&["--out", &page.display().to_string()], &[&file]);
    assert!(fs::read_to_string(page).expect("written").contains("label rack"));
}
