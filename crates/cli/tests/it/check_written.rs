//! Files that `assay check` writes for other programs: MAAS, Node Feature Discovery, Prometheus,
//! spreadsheets.

use std::fs;
use std::path::Path;

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
        assert!(code == 2 && text.is_empty() && error.contains("is of one run"), "{code} {text} {error}");
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
