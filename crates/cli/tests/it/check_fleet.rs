//! `assay check` over runs of many hosts: which of them count, and what they come to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::check::output;
use crate::golden::pretended;
use crate::{assay, validator};

/// Runs of hosts, made of one invented run.
pub struct Hosts {
    folder: tempfile::TempDir,
    text: String,
    summary: Value,
}

impl Hosts {
    pub fn new() -> Hosts {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let run = pretended(1, &folder.path().join("made"), &[]);
        let text = crate::runs::unsealed(&run);
        let last = text.lines().last().expect("a summary");
        let mut summary: Value = serde_json::from_str::<Value>(last).expect("JSON")["summary"].clone();
        // Those that the specs below name, and some of each benchmark: the rest only takes time.
        let mut seen = std::collections::BTreeMap::<String, usize>::new();
        summary["series"].as_array_mut().expect("series").retain(|one| {
            let key = one["key"].as_str().expect("a key");
            let count = seen.entry(key.split('@').next().unwrap_or_default().to_string()).or_default();
            *count += 1;
            *count <= 8 || key.contains("op=read,bytes=268435456") || key.contains("op=read/bytes=268435456")
        });
        assert!(summary["series"].as_array().is_some_and(|all| all.len() > 9), "{summary}");
        fs::remove_dir_all(folder.path().join("made")).expect("removed");
        Hosts { folder, text, summary }
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.place(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    /// A run file of a host.
    pub fn run(&self, name: &str, host: &str, started: &str) -> PathBuf {
        let mut text = self.text.clone();
        for (key, value) in [("host", host), ("started", started)] {
            let own = self.summary[key].as_str().expect("a text");
            let said = |value: &str| format!("\"{key}\":{}", json!(value));
            assert!(text.contains(&said(own)), "{key} {own}");
            text = text.replace(&said(own), &said(value));
        }
        self.put(name, &text)
    }

    /// A line of a file of summaries: a host whose cores run at `clock` times their clock.
    pub fn line(&self, host: &str, started: &str, clock: f64) -> String {
        let summary = self.summary(host, started, clock);
        format!("{{\"summary\":{summary},\"file\":\"{host}.assay.jsonl\"}}\n")
    }

    /// What stands in it.
    pub fn summary(&self, host: &str, started: &str, clock: f64) -> Value {
        let mut summary = self.summary.clone();
        summary["host"] = json!(host);
        summary["started"] = json!(started);
        summary["boot_id"] = json!(format!("{host} {started}"));
        summary["pretended"] = json!(false);
        for one in summary["series"].as_array_mut().expect("series") {
            let is_clock = one["key"].as_str().is_some_and(|key| key.starts_with("cpu.clock@"));
            let own = one["median"].as_f64().unwrap_or(1.0) * if is_clock { clock } else { 1.0 };
            one["median"] = json!(own);
            // Invented samples have wide intervals; these runs are as sure as real ones.
            one["ci95"] = json!([own * 0.999, own * 1.001]);
        }
        summary
    }

    pub fn check(&self, paths: &[&Path], spec: &str, more: &[&str]) -> (i32, String, String) {
        output(self.command(paths, spec, more))
    }

    pub fn command(&self, paths: &[&Path], spec: &str, more: &[&str]) -> Command {
        let file = self.put("spec.toml", spec);
        let mut command = assay();
        command.arg("check").args(paths).arg("--spec").arg(file).args(more).env("COLUMNS", "100");
        command
    }

    pub fn outcomes(&self, paths: &[&Path], spec: &str, more: &[&str]) -> Value {
        let (_, text, error) = self.check(paths, spec, &[more, &["--json"]].concat());
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("JSON: {text} {error}"));
        assert!(validator("check").is_valid(&json), "{json}");
        json
    }
}

/// Of each outcome its host and verdict, in order.
fn verdicts(json: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("a word").to_string();
    let all = json["runs"].as_array().expect("runs");
    all.iter().map(|one| (word(&one["host"]), word(&one["verdict"]))).collect()
}

const TWO_CPUS: &str = "[machine]\ncpus = { min = 2 }\n";

#[test]
fn of_each_host_the_newest_run_counts_and_the_others_are_said_to_be_left_out() {
    let hosts = Hosts::new();
    // The age counts, not the name; a fraction of a second is later than none.
    hosts.run("runs/a/1.assay.jsonl", "db1", "2026-11-03T00:00:00.5Z");
    hosts.run("runs/a/2.assay.jsonl", "db1", "2026-11-03T00:00:00Z");
    hosts.run("runs/b/3.assay.jsonl", "db1", "2026-10-03T00:00:00Z");
    hosts.run("runs/b/4.assay.jsonl", "db2", "2026-11-01T00:00:00Z");
    let folder = hosts.place("runs");
    let json = hosts.outcomes(&[&folder], TWO_CPUS, &["--newest"]);
    let files: Vec<&str> =
        json["runs"].as_array().expect("runs").iter().filter_map(|run| run["file"].as_str()).collect();
    assert!(files.len() == 2 && files[0].ends_with("1.assay.jsonl") && files[1].ends_with("4.assay.jsonl"));
    assert_eq!(json["left_out"].as_array().map(Vec::len), Some(2), "{json}");
    let (code, text, error) = hosts.check(&[&folder], TWO_CPUS, &["--newest", "--brief"]);
    assert_eq!((code, error.as_str(), text.lines().count()), (0, "", 3), "{text}");
    assert!(text.ends_with("2 runs: ACCEPT: 2 accepted (2 older runs left out)\n"), "{text}");
    let (_, text, _) = hosts.check(&[&folder.join("a")], TWO_CPUS, &["--newest", "--brief"]);
    assert!(text.lines().count() == 1 && text.ends_with("(1 older run left out)\n"), "{text}");
    let (_, text, _) = hosts.check(&[&folder.join("a")], TWO_CPUS, &["--newest"]);
    assert!(text.contains("ACCEPT") && text.contains("1 older run left out"), "{text}");
    // Without it all of them count.
    assert_eq!(verdicts(&hosts.outcomes(&[&folder], TWO_CPUS, &[])).len(), 4);
    // A file that cannot be read may be the newest run of any host.
    hosts.put("runs/b/5.assay.jsonl", "{\"header\":\n");
    let (code, text, _) = hosts.check(&[&folder], TWO_CPUS, &["--newest", "--brief"]);
    assert!(code == 3 && text.contains("2 accepted, 1 not usable"), "{text}");
}

#[test]
fn a_newer_run_counts_whatever_it_is_read_from_and_one_without_an_end_is_undecided() {
    let hosts = Hosts::new();
    let run = hosts.run("runs/1.assay.jsonl", "db1", "2026-11-03T00:00:00Z");
    let older = hosts.line("db1", "2026-11-02T00:00:00Z", 1.0);
    let newer = hosts.line("db1", "2026-11-04T00:00:00Z", 0.1);
    let lines = hosts.put("fleet.ndjson", &[older, newer, hosts.line("db2", "", 1.0)].concat());
    let spec = "[limits]\ncore-clock = { min = \"1 GHz\" }\n";
    let json = hosts.outcomes(&[&run, &lines], spec, &["--newest"]);
    let expected = [("db1", "reject"), ("db2", "accept")].map(|(a, b)| (a.to_string(), b.to_string()));
    assert_eq!(verdicts(&json), expected);
    assert_eq!(json["left_out"].as_array().map(Vec::len), Some(2), "{json}");
    // A run that goes on, or was killed, is its host's newest: what it was before counts no more.
    let later = hosts.run("runs/2.assay.jsonl", "db1", "2026-11-05T00:00:00Z");
    let text = fs::read_to_string(&later).expect("a run");
    let cut = &text[..text.trim_end().rfind('\n').expect("lines") + 1];
    fs::write(&later, cut).expect("written");
    let none = "[findings]\nnone_of = [\"steal\"]\n";
    let json = hosts.outcomes(&[&hosts.place("runs")], none, &["--newest"]);
    assert_eq!(verdicts(&json), [("db1".to_string(), "cannot_tell".to_string())]);
}

const PEERS: &str = "[peers]\nnot_slower = true\n";

/// The standing and the words of the demand of each host.
fn beside_peers(json: &Value) -> Vec<(String, String, String)> {
    let all = json["runs"].as_array().expect("runs").iter();
    let of = |one: &Value| {
        let demands = one["demands"].as_array().expect("demands");
        let own = demands.iter().find(|demand| demand["key"] == "not_slower").expect("the demand");
        let word = |value: &Value| value.as_str().expect("a text").to_string();
        let told = word(&own["measured"]) + &word(&own["why"]);
        (word(&one["host"]), word(&own["standing"]), told)
    };
    all.map(of).collect()
}

#[test]
fn a_host_that_is_slower_than_its_peers_is_rejected_and_few_hosts_decide_nothing() {
    let hosts = Hosts::new();
    let day = "2026-11-03T00:00:00Z";
    let line = |number: usize| {
        // No two hosts hold the very same numbers.
        let clock = if number == 4 { 0.7 } else { 1.0 + 0.001 * (number % 5) as f64 + 1e-6 * number as f64 };
        hosts.line(&format!("db{number:02}"), day, clock)
    };
    let fleet = hosts.put("fleet.ndjson", &(0..12).map(line).collect::<String>());
    let json = hosts.outcomes(&[&fleet], PEERS, &[]);
    for (number, (host, standing, told)) in beside_peers(&json).iter().enumerate() {
        let (expected, word) =
            if number == 4 { ("missed", "behind its 11 peers") } else { ("met", "not behind 11 peers") };
        assert!(
            *host == format!("db{number:02}") && standing == expected && told.contains(word),
            "{host} {standing} {told}"
        );
    }
    let (code, text, _) = hosts.check(&[&fleet], PEERS, &["--brief"]);
    assert!(code == 1 && text.ends_with("12 runs: REJECT: 11 accepted, 1 rejected.\n"), "{text}");
    // Alone it has no peers. With the runs that the spec names it has, and it is not its own peer.
    let one = hosts.put("one.ndjson", &line(4));
    let alone = beside_peers(&hosts.outcomes(&[&one], PEERS, &[]));
    assert!(alone[0].1 == "undecided" && alone[0].2.contains("peers need 8 hosts"), "{alone:?}");
    let named = format!("{PEERS}runs = \"fleet.ndjson\"\n");
    let beside = beside_peers(&hosts.outcomes(&[&one], &named, &[]));
    assert!(beside[0].1 == "missed" && beside[0].2.contains("behind its 11 peers"), "{beside:?}");
    // A run that is measured now is compared with them, too.
    let mut command =
        crate::runs::run_into(&hosts.place("now"), "--quick --new --pretend 1 --only cpu.clock");
    command.arg("--accept").arg(hosts.put("now.toml", &named)).arg("--from");
    command.arg(testkit::root().join("tests/machines/firecracker-guest-2cpu.json")).env("COLUMNS", "100");
    let (code, text, error) = output(command);
    let demand = text.lines().find(|line| line.contains("speed among peers")).unwrap_or_default();
    let result = if code == 0 { "met" } else { "missed" };
    assert!(matches!(code, 0 | 1) && demand.contains(result), "{code} {text} {error}");
    // A run is no measure where its host has a newer one; of a host that is slow now it says
    // whether it was slow then.
    for (host, clock, standing, word) in [
        ("db05", 1.0, "undecided", "newest"),
        ("db04", 1.0, "met", "not behind"),
        ("db04", 0.7, "missed", "of its peers"),
    ] {
        let older = hosts.put("older.ndjson", &hosts.line(host, "2026-11-01T00:00:00Z", clock));
        let told = beside_peers(&hosts.outcomes(&[&older], &named, &[]));
        assert!(told[0].1 == standing && told[0].2.contains(word), "{host} {told:?}");
    }
    let (code, _, error) = hosts.check(&[&one], &format!("{PEERS}runs = \"nowhere\"\n"), &[]);
    assert!(code == 2 && error.contains("has no run"), "{code} {error}");
    let (code, _, error) = hosts.check(&[&one], "[peers]\n", &[]);
    assert!(code == 2 && error.contains("not_slower = true"), "{code} {error}");
}

#[test]
fn a_host_is_rejected_by_runs_that_confirm_each_other() {
    let hosts = Hosts::new();
    let spec = "[machine]\ncpus = { min = 2 }\n[limits]\ncore-clock = { min = \"1 GHz\" }\n";
    let line =
        |host: &str, time: &str, clock: f64| hosts.line(host, &format!("2026-11-03T{time}:00Z"), clock);
    // One is slow in three runs, one in two, one was slow once and is well again.
    let lines = [
        line("db1", "09:00", 0.1),
        line("db1", "10:01", 0.1),
        line("db1", "09:30", 0.1),
        line("db2", "09:00", 1.0),
        line("db2", "10:00", 0.1),
        line("db2", "09:30", 0.1),
        line("db3", "09:00", 0.1),
        line("db3", "10:00", 1.0),
    ];
    let fleet = hosts.put("fleet.ndjson", &lines.concat());
    let expected = [("db1", "reject"), ("db2", "cannot_tell"), ("db3", "accept")];
    let json = hosts.outcomes(&[&fleet], spec, &["--confirmed"]);
    assert_eq!(verdicts(&json), expected.map(|(a, b)| (a.to_string(), b.to_string())));
    assert!(json["runs"][0]["started"].as_str().is_some_and(|own| own.contains("10:01")), "{json}");
    let (code, text, _) = hosts.check(&[&fleet], spec, &["--confirmed", "--brief"]);
    assert!(text.starts_with("db1: REJECT: core clock; 1 of 2 demands is missed, 1 is met. Confirmed by 3 runs since 3 Nov 09:00 UTC."), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        code == 1
            && lines[1].contains("UNDECIDED")
            && lines[1].contains("is missed in 2 of 3 runs, 1 is met: measure again after 3 Nov 10:25 UTC."),
        "{text}"
    );
    assert!(lines[3] == "3 runs: REJECT: 1 accepted, 1 rejected, 1 undecided.", "{text}");
    // Run files give the same; an unreadable one confirms nothing, and is no host's newest run.
    let again = spec.replace("1 GHz", "9 GHz");
    let folder = hosts.place("runs");
    hosts.run("runs/1.assay.jsonl", "db4", "2026-11-03T10:00:00Z");
    let said = || hosts.check(&[&folder], &again, &["--confirmed"]);
    let found = said();
    assert_eq!(found.0, 4, "{found:?}");
    hosts.run("runs/2.assay.jsonl", "db4", "2026-11-03T09:00:00Z");
    let found = said();
    assert_eq!(found.0, 4, "{found:?}");
    hosts.run("runs/3.assay.jsonl", "db4", "2026-11-03T09:30:00Z");
    let found = said();
    assert_eq!(found.0, 1, "{found:?}");
    // So do peers, which compare the newest runs of hosts.
    let day = |host: usize, day: usize| {
        let clock = if host == 4 { 0.7 } else { 1.0 + 0.001 * (host % 5) as f64 + 1e-6 * host as f64 };
        hosts.line(&format!("db{host:02}"), &format!("2026-11-0{day}T00:00:00Z"), clock)
    };
    for (days, expected) in [(2, "cannot_tell"), (3, "reject")] {
        let all = (1..=days).flat_map(|own| (0..12).map(move |host| (host, own)));
        let fleet = hosts.put("days.ndjson", &all.map(|(host, own)| day(host, own)).collect::<String>());
        let json = hosts.outcomes(&[&fleet], PEERS, &["--confirmed"]);
        let slow: Vec<(String, String)> =
            verdicts(&json).into_iter().filter(|(_, verdict)| verdict != "accept").collect();
        assert_eq!(slow, [("db04".to_string(), expected.to_string())], "{days}");
    }
}

#[test]
fn many_hosts_have_one_screen() {
    let hosts = Hosts::new();
    let day = "2026-11-03T00:00:00Z";
    let spec = "name = \"db-gen5\"\n[machine]\ncpus = { min = 2 }\n[limits]\ncore-clock = { min = \"1 GHz\" }\nread-one-cpu = { min = \"1 GB/s\" }\n";
    // Of every ten one is too slow, and one does not say what it is asked.
    let line = |number: usize| {
        let line = hosts.line(&format!("db{number:03}"), day, if number % 10 == 3 { 0.1 } else { 1.0 });
        let unknown = line.replace("[\"cpus\",\"2\"]", "[\"cpus\",\"many\"]");
        let line = if number % 10 == 7 { unknown } else { line };
        let rack = format!("\"labels\":{{\"rack\":\"r{}\"}},\"make_up\"", number % 10);
        line.replacen("\"make_up\"", &rack, 1)
    };
    let damaged = "{\"summary\":{\"schema\":99}}\n";
    for (count, name, widths) in [(9, "hosts_9", &["60", "80", "100"][..]), (200, "hosts_200", &["100"])] {
        let lines = (0..count).map(line).collect::<String>() + damaged;
        let fleet = hosts.put("fleet.ndjson", &lines);
        for columns in widths {
            let mut command = hosts.command(&[Path::new("fleet.ndjson")], spec, &[]);
            command.env("COLUMNS", columns).current_dir(hosts.place(""));
            let (code, text, error) = output(command);
            assert_eq!(code, 1, "{error}");
            let width: usize = columns.parse().expect("a number");
            assert!(
                text.lines().count() <= 45 && text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            if *columns == "100" {
                insta::assert_snapshot!(name, text);
            }
        }
        if count > 9 {
            continue;
        }
        let (_, all, _) = hosts.check(&[&fleet], spec, &["--all"]);
        assert!(all.lines().count() > 8 * count, "{all}");
        let (_, quiet, _) = hosts.check(&[&fleet], spec, &["--quiet"]);
        assert!(quiet.starts_with("REJECT") && quiet.lines().count() <= 2, "{quiet}");
    }
}
