//! Files that `assay check` writes for other programs: MAAS, Node Feature Discovery, Prometheus,
//! spreadsheets.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::host;

use crate::check_fleet::Hosts;
use crate::validator;

const NAMED: &str =
    "name = \"db gen5\"\n[machine]\ncpus = { min = 2 }\n[limits]\ncore-clock = { min = \"1 GHz\" }\n";

/// What a check of one run writes by an option that names a file, with its exit code.
fn written(hosts: &Hosts, run: &Path, spec: &str, option: &str, name: &str) -> (i32, String) {
    let file = hosts.place(name);
    let (code, text, error) = hosts.check(&[run], spec, &[option, &file.display().to_string()]);
    assert!(text.contains(if code == 0 { "ACCEPT" } else { "" }) && error.is_empty(), "{text} {error}");
    (code, fs::read_to_string(&file).expect("the file"))
}

#[test]
fn maas_reads_a_status_and_a_result_for_each_demand() {
    let hosts = Hosts::new();
    let lines = hosts.put("one.ndjson", &hosts.line("db1", "2026-11-03T00:00:00Z", 1.0));
    let status = |spec: &str| {
        let (code, text) = written(&hosts, &lines, spec, "--maas", "result.yaml");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert!(validator("maas").is_valid(&json), "{json}");
        (code, json["status"].as_str().expect("a word").to_string(), json)
    };
    let (code, word, json) = status(NAMED);
    assert_eq!((code, word.as_str()), (0, "passed"));
    assert!(
        json["results"]["core-clock"][0].as_str().is_some_and(|text| text.starts_with("met: ")),
        "{json}"
    );
    for (spec, expected) in [
        ("[machine]\ncpus = 99\n", (1, "failed")),
        ("[machine]\ngovernor = \"performance\"\n", (4, "degraded")),
        ("[run]\nprofile = [\"full\"]\n[machine]\ncpus = 2\n", (3, "degraded")),
    ] {
        let (code, word, _) = status(spec);
        assert_eq!((code, word.as_str()), expected, "{spec}");
    }
    let gone = hosts.place("gone.assay.jsonl");
    let (code, text) = written(&hosts, &gone, NAMED, "--maas", "result.yaml");
    assert!(code == 3 && text.contains("\"status\": \"skipped\""), "{text}");
    // Two runs have no room in it; nothing is written, and nothing judged.
    let two = hosts.put("two.ndjson", &["db1", "db2"].map(|host| hosts.line(host, "", 1.0)).concat());
    for option in ["--maas", "--nfd"] {
        let file = hosts.place("none").display().to_string();
        let (code, text, error) = hosts.check(&[&two], NAMED, &[option, &file]);
        assert!(code == 2 && text.is_empty() && error.contains("is for one run"), "{code} {text} {error}");
        assert!(!hosts.place("none").exists());
    }
    // MAAS reads it by this library and takes these kinds only.
    let Some(mut python) = host::fleet_tool("maas_reads_a_status", "python3") else { return };
    written(
        &hosts,
        &lines,
        &format!("{NAMED}tcp = {{ min = \"1 Gbit/s\", optional = true }}\n"),
        "--maas",
        "r.yaml",
    );
    let script = "import sys, yaml\n\
        own = yaml.safe_load(open(sys.argv[1], 'rb').read())\n\
        assert own['status'] == 'passed', own\n\
        for key, value in own['results'].items():\n    \
            assert type(key) is str and value, own\n    \
            for one in value: assert type(one) in (str, int, float, bool), own\n";
    let read = python.args(["-c", script]).arg(hosts.place("r.yaml")).output().expect("python runs");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

/// What Node Feature Discovery makes of a feature file on a day, by the rules of its documentation:
/// labels below an expiry time that has not come yet.
fn features(text: &str, day: &str) -> Vec<(String, String)> {
    let mut expiry = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("# +expiry-time=") {
            Some(time) => expiry = time.to_string(),
            None => {
                let (name, value) = line.split_once('=').expect("a label");
                let (prefix, name) = name.split_once('/').expect("a prefix");
                assert_eq!(prefix, "feature.node.kubernetes.io");
                let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                for part in [name, value] {
                    let whole = part.len() <= 63 && part.chars().all(is_fine);
                    assert!(whole && part.starts_with(char::is_alphanumeric), "{line}");
                }
                if day < expiry.as_str() {
                    all.push((name.to_string(), value.to_string()));
                }
            }
        }
    }
    all
}

#[test]
fn node_feature_discovery_reads_labels_that_age() {
    let hosts = Hosts::new();
    hosts.run("runs/1.assay.jsonl", "db1", "2026-11-03T00:00:00Z");
    hosts.run("runs/2.assay.jsonl", "db1", "2026-10-03T00:00:00Z");
    let folder = hosts.place("runs");
    let features_d = hosts.place("features.d");
    fs::create_dir(&features_d).expect("a folder");
    let file = features_d.join("assay");
    fs::write(&file, "old").expect("a file");
    let name = file.display().to_string();
    let (code, _, error) = hosts.check(&[&folder], NAMED, &["--newest", "--brief", "--nfd", &name]);
    assert_eq!((code, error.as_str()), (0, ""));
    let text = fs::read_to_string(&file).expect("the file");
    assert!(text.len() < 65536 && text.starts_with("# +expiry-time=2026-12-08T00:00:00Z\n"), "{text}");
    let own = |name: &str, value: &str| (format!("assay-{name}"), value.to_string());
    let labels = [
        own("accepted", "true"),
        own("verdict", "accept"),
        own("spec", "db-gen5"),
        own("date", "2026-11-03"),
    ];
    assert_eq!(features(&text, "2026-12-07"), labels);
    assert_eq!(features(&text, "2026-12-09"), []);
    // Nothing else is left in the folder: it would be read, too.
    assert_eq!(fs::read_dir(&features_d).expect("the folder").count(), 1);
    let (code, _, error) = hosts.check(&[&folder.join("1.assay.jsonl")], NAMED, &["--init", "--nfd", &name]);
    assert!(code == 2 && error.contains("cannot be used with"), "{code} {error}");
}

/// The samples of an exposition, with their values.
fn samples(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair =
        |line: &str| line.rsplit_once(' ').map(|(sample, value)| (sample.to_string(), value.to_string()));
    let all: Vec<(String, String)> = lines.map(|line| pair(line).expect("a value")).collect();
    let found: BTreeMap<String, String> = all.iter().cloned().collect();
    assert_eq!(found.len(), all.len(), "a collector refuses a file with a sample twice: {text}");
    found
}

#[test]
fn prometheus_reads_verdicts_and_figures_in_base_units() {
    let hosts = Hosts::new();
    let newer = ["db1", "db2"]
        .map(|host| hosts.line(host, "2026-11-03T00:00:00Z", if host == "db1" { 1.0 } else { 0.1 }));
    let labels = "\"labels\":{\"cpu-model\":\"\\\"x\\\"\",\"rack\":\"r7\"},\"started\"";
    let lines = hosts.put("fleet.ndjson", &newer.concat().replacen("\"started\"", labels, 1));
    let file = hosts.place("assay_check.prom");
    let name = file.display().to_string();
    let limits = "[[limit]]\nseries = \"memory.latency@*\"\nmax = \"1 s\"\n[[limit]]\nseries = \"memory.bandwidth@*\"\nmin = \"1 kB/s\"\n";
    let gone = hosts.place("gone.assay.jsonl");
    let (code, _, error) =
        hosts.check(&[&lines, &gone], &format!("{NAMED}{limits}"), &["--brief", "--prometheus", &name]);
    assert_eq!((code, error.as_str()), (1, ""));
    let text = fs::read_to_string(&file).expect("the file");
    let found = samples(&text);
    let value = |sample: &str| found.get(sample).map(String::as_str);
    let undecided = format!("assay_check_undecided{{spec=\"db gen5\",host=\"{}\"}}", gone.display());
    for (sample, expected) in [
        ("assay_check_passed{spec=\"db gen5\",host=\"db1\"}", Some("1")),
        ("assay_check_passed{spec=\"db gen5\",host=\"db2\"}", Some("0")),
        ("assay_check_undecided{spec=\"db gen5\",host=\"db2\"}", Some("0")),
        // What is undecided neither passed nor failed.
        (&undecided, Some("1")),
        (&undecided.replace("undecided", "passed"), None),
        ("assay_run_timestamp_seconds{host=\"db1\"}", Some("1793664000")),
        ("assay_check_demands{spec=\"db gen5\",host=\"db2\",standing=\"missed\"}", Some("1")),
    ] {
        assert_eq!(value(sample), expected, "{sample}: {text}");
    }
    let of = |name: &str| -> Vec<f64> {
        let own = found.iter().filter(|(sample, _)| sample.starts_with(&format!("{name}{{host=\"db1\"")));
        own.map(|(_, value)| value.parse().expect("a number")).collect()
    };
    assert!(of("assay_time_seconds").iter().all(|value| (1e-10..1e-3).contains(value)), "{text}");
    assert!(of("assay_frequency_hertz").iter().all(|value| (1e8..1e11).contains(value)), "{text}");
    assert!(
        of("assay_throughput_bytes_per_second").iter().all(|value| (1e6..1e15).contains(value)),
        "{text}"
    );
    for family in ["assay_time_seconds", "assay_frequency_hertz", "assay_throughput_bytes_per_second"] {
        assert!(!of(family).is_empty(), "{family}: {text}");
    }
    assert!(
        text.contains("assay_run_info{profile=\"quick\"")
            && text.contains(",host=\"db1\",label_cpu_model=\"\\\"x\\\"\",label_rack=\"r7\"} 1\n")
            && text.contains("assay_findings{severity=\"problem\""),
        "{text}"
    );
    // Two runs of a host have no room in it.
    let again = hosts.put("again.ndjson", &hosts.line("db1", "2026-11-04T00:00:00Z", 1.0));
    let (code, text, error) = hosts.check(&[&lines, &again], NAMED, &["--prometheus", &name]);
    assert!(code == 2 && text.is_empty() && error.contains("two runs are of db1"), "{code} {text} {error}");
    let (code, _, error) =
        hosts.check(&[&lines, &again], NAMED, &["--newest", "--brief", "--prometheus", &name]);
    assert_eq!((code, error.as_str()), (1, ""));
    let Ok(mut tool) = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        return host::skipped("prometheus_reads_verdicts", "no promtool");
    };
    let metrics = fs::read(&file).expect("the file");
    tool.stdin.take().expect("a pipe").write_all(&metrics).expect("written");
    let ended = tool.wait_with_output().expect("promtool ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn no_rejected_figure_is_exported() {
    let hosts = Hosts::new();
    let mut summary = hosts.summary("db1", "2026-11-03T00:00:00Z", 1.0);
    for one in summary["series"].as_array_mut().expect("series") {
        one["verdict"] = "rejected".into();
    }
    let lines = hosts.put("one.ndjson", &format!("{{\"summary\":{summary}}}\n"));
    let file = hosts.place("assay.prom");
    let path = file.display().to_string();
    let (_, _, error) = hosts.check(&[&lines], NAMED, &["--brief", "--prometheus", &path]);
    let text = fs::read_to_string(&file).expect("the file");
    assert!(error.is_empty() && !text.contains("assay_frequency_hertz"), "{text}");
}

#[test]
fn a_spreadsheet_has_a_row_for_each_demand_and_one_for_what_cannot_be_judged() {
    let hosts = Hosts::new();
    let line = hosts.line("=db1", "2026-11-03T00:00:00Z", 1.0);
    let line = line.replacen("\"started\"", "\"labels\":{\"rack\":\"r7\",\"tier\":\"gold\"},\"started\"", 1);
    let lines = hosts.put("fleet.ndjson", &[line, hosts.line("db2", "", 0.1)].concat());
    let file = hosts.place("fleet.csv");
    let gone = hosts.place("gone.assay.jsonl");
    let path = file.display().to_string();
    let (code, _, error) = hosts.check(&[&lines, &gone], NAMED, &["--brief", "--out", &path]);
    assert!(code == 1 && error.contains("saved"), "{code} {error}");
    let text = fs::read_to_string(&file).expect("the file");
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 1 + 2 + 2 + 1, "{text}");
    assert!(
        rows[0].starts_with("kind,host,labels,file,started,profile,spec,verdict,group,demand,key,"),
        "{text}"
    );
    // What a spreadsheet would take for a formula is none.
    assert!(
        rows[1].starts_with("demand,'=db1,rack=r7 tier=gold,") && rows[1].contains(",db gen5,accept,"),
        "{text}"
    );
    assert!(
        rows[4].starts_with("demand,db2,,") && rows[4].contains(",reject,") && rows[4].contains(",missed,"),
        "{text}"
    );
    assert!(
        rows[5].starts_with("host,") && rows[5].contains("not_usable") && rows[5].contains("cannot be read"),
        "{text}"
    );
    let (code, _, error) = hosts.check(&[&lines], NAMED, &["--out", "fleet.html"]);
    assert!(code == 2 && error.contains(".csv (CSV)"), "{code} {error}");
}

#[test]
fn a_key_figure_has_one_name_where_its_group_does_not_stand_before_it() {
    let hosts = Hosts::new();
    let lines = hosts.put("one.ndjson", &hosts.line("db1", "2026-11-03T00:00:00Z", 1.0));
    let [xml, csv] = ["check.xml", "check.csv"].map(|name| hosts.place(name).display().to_string());
    let spec = "[limits]\nread-one-cpu = { min = \"90000 GB/s\" }\n";
    let (code, text, error) = hosts.check(&[&lines], spec, &["--brief", "--junit", &xml, "--out", &csv]);
    assert!(code == 1 && text.contains("REJECT: memory read, one CPU; "), "{text} {error}");
    for (file, words) in [(xml, ">memory read, one CPU; asked "), (csv, ",memory,\"memory read, one CPU\",")]
    {
        let text = fs::read_to_string(file).expect("the file");
        assert!(text.contains(words), "{text}");
    }
}
