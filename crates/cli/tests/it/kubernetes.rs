//! The files of `contrib/` for Kubernetes and those around it, each tried with what reads it: the
//! API's schemas, node-problem-detector's plugin protocol, Prometheus.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::check_fleet::Hosts;
use crate::golden::pretended;
use crate::host::{fleet_tool, skipped, works};
use crate::runs::write_earlier;

const MANIFESTS: [&str; 3] = ["job-privileged.yaml", "job-restricted.yaml", "daemonset.yaml"];

fn contrib(path: &str) -> PathBuf {
    testkit::root().join("contrib").join(path)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// A YAML file as JSON; `None`, with a message, where there is no PyYAML.
fn yaml(path: &Path) -> Option<Value> {
    let convert = "import json,sys,yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let mut python = fleet_tool("yaml", "python3")?;
    let output = python.args(["-c", convert]).arg(path).output().expect("python3 runs");
    assert!(output.status.success(), "{}", said(&output));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// A manifest of `contrib/kubernetes`.
pub fn manifest(name: &str) -> Option<Value> {
    yaml(&contrib("kubernetes").join(name))
}

/// A container of a manifest's pods, those that come first included.
pub fn container_of<'m>(manifest: &'m Value, name: &str) -> &'m Value {
    let pod = &manifest["spec"]["template"]["spec"];
    let all = ["initContainers", "containers"].into_iter().filter_map(|kind| pod[kind].as_array());
    all.flatten().find(|container| container["name"] == name).expect("a container of this name")
}

#[test]
fn manifests_fit_the_schemas_and_a_wrong_type_does_not() {
    let Some(mut tool) = fleet_tool("manifests_fit_the_schemas", "kubernetes-validate") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wrong = folder.path().join("wrong.yaml");
    let planted = text(&contrib("kubernetes/daemonset.yaml")).replace("hostPID: true", "hostPID: [often]");
    fs::write(&wrong, planted).expect("a file");
    let files = MANIFESTS.map(|name| contrib("kubernetes").join(name));
    let output = tool.arg("--strict").args(files).arg(&wrong).output().expect("it runs");
    let said = said(&output);
    assert_eq!(said.matches("INFO").count(), MANIFESTS.len(), "{said}");
    assert!(!output.status.success() && said.contains("hostPID: ['often'] is not of type"), "{said}");
}

#[test]
fn manifests_name_the_node_and_words_that_this_version_knows() {
    for name in MANIFESTS {
        let Some(manifest) = manifest(name) else { return };
        for container in ["measure", "summary"] {
            let container = container_of(&manifest, container);
            let env = container["env"].as_array().expect("a list");
            let host = env.iter().find(|one| one["name"] == "ASSAY_HOST").expect("a host's name");
            assert_eq!(host["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName", "{name}");
            assert!(env.iter().any(|one| one["name"] == "ASSAY_LABELS"), "{name}");
            assert_eq!(container["image"], "registry.example/assay:0.1.0", "{name}");
            let limits = &container["resources"]["limits"];
            assert!(limits.is_null(), "{name}: a CPU limit is a quota, which would be measured: {limits}");
        }
        let args = &container_of(&manifest, "measure")["args"];
        let mut words: Vec<String> = serde_json::from_value(args.clone()).expect("words");
        let at = words.iter().position(|word| word == "--out").expect("--out");
        let folder = tempfile::tempdir().expect("a temporary folder");
        words[at + 1] = folder.path().display().to_string();
        let output = crate::assay().args(&words).arg("--dry-run").output().expect("assay runs");
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
    let Some(job) = manifest("job-restricted.yaml") else { return };
    let pod = &job["spec"]["template"]["spec"];
    // What Pod Security's "restricted" asks for.
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in ["measure", "summary"] {
        let own = &container_of(&job, container)["securityContext"];
        assert_eq!(own["allowPrivilegeEscalation"], false);
        assert_eq!(own["capabilities"], json!({"drop": ["ALL"]}));
    }
    let volumes = pod["volumes"].as_array().expect("a list");
    assert!(volumes.iter().all(|volume| volume["hostPath"].is_null()), "{volumes:?}");
    for name in ["job-privileged.yaml", "daemonset.yaml"] {
        let Some(own) = manifest(name) else { return };
        assert_eq!(container_of(&own, "measure")["securityContext"]["privileged"], true, "{name}");
        assert_eq!(own["spec"]["template"]["spec"]["hostPID"], true, "{name}");
    }
}

/// A program in a folder, which is put before PATH.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may be run");
}

/// A cluster of invented nodes behind `kubectl`: what a node's runs come to is a file for each of
/// its jobs.
const KUBECTL: &str = r#"
case "$1" in
get) printf 'node/%s\n' db1 db2.example db3 db4 db5 db6 ;;
replace)
    [ -z "$REFUSED" ] || exit 1
    cat >"$LOG/$$.yaml"
    node=$(sed -n 's/.*nodeName: //p' "$LOG/$$.yaml")
    look=1
    while [ -e "$LOG/$node-$look" ]; do look=$((look + 1)); done
    : >"$LOG/$node-$look" ;;
wait)
    for job; do :; done
    : >"$LOG/${job#*/}.running"
    sleep 0.05
    ls "$LOG" | grep -c running >>"$LOG/counts"
    rm "$LOG/${job#*/}.running" ;;
logs)
    node=${4#job/assay-}
    cat "$LOG/../runs/$node-$(ls "$LOG" | grep -c "^$node-")"
    echo "assay: something is said beside it" ;;
esac"#;

/// The cores of one node are slow in every run, those of another one only in its first; all others
/// are in order.
#[test]
fn nodes_that_are_not_decided_are_measured_again_until_they_are() {
    let hosts = Hosts::new();
    let (bin, log, at) = (hosts.place("bin"), hosts.place("log"), hosts.place("at"));
    for new in [&bin, &log, &at] {
        fs::create_dir(new).expect("a folder");
    }
    program(&bin, "kubectl", KUBECTL);
    let clock = hosts.summary("db1", "2026-11-03T00:00:00Z", 1.0);
    let clock =
        clock["series"].as_array().expect("series").iter().find_map(|one| {
            one["key"].as_str()?.starts_with("cpu.clock@").then(|| one["median"].as_f64())?
        });
    let least = 0.9 * clock.expect("a clock");
    let spec =
        hosts.put("db.toml", &format!("name = \"db\"\n[limits]\ncore-clock = {{ min = \"{least} GHz\" }}\n"));
    for node in ["db1", "db2.example", "db3", "db4", "db5", "db6"] {
        let mut so_far = String::new();
        for look in 1..9 {
            let is_slow = node == "db3" || (node == "db4" && look == 1);
            let started = format!("2026-11-03T{:02}:30:00Z", look);
            // As of a node that keeps its run files: each log begins with the runs of before.
            so_far += &hosts.line(node, &started, if is_slow { 0.7 } else { 1.0 });
            hosts.put(&format!("runs/{node}-{look}"), &so_far);
        }
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    let measure_with = |words: &[&str], refused: &str| {
        let mut command = Command::new(contrib("kubernetes/measure"));
        command.arg(contrib("kubernetes/job-restricted.yaml")).arg(&spec).args(words).current_dir(&at);
        command.env("PATH", &path).env("LOG", &log).env("ASSAY", testkit::program()).env("ASSAY_AGAIN", "0");
        command.env("REFUSED", refused).output().expect("sh runs")
    };
    let measure = |words: &[&str]| measure_with(words, "");
    let looks = |node: &str| (1..9).take_while(|look| log.join(format!("{node}-{look}")).exists()).count();

    let output = measure(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let rejected: Vec<&str> = lines.lines().filter(|line| line.contains(": REJECT: ")).collect();
    assert!(rejected.iter().any(|line| line.starts_with("db3: ")), "{}", said(&output));
    for node in ["db1", "db2.example", "db4", "db5", "db6"] {
        assert!(lines.lines().any(|line| line.starts_with(&format!("{node}: ACCEPT: "))), "{lines}");
    }
    assert_eq!(["db1", "db2.example", "db4", "db5", "db6"].map(looks), [1, 1, 2, 1, 1], "{}", said(&output));
    assert!((3..6).contains(&looks("db3")), "{}: {}", looks("db3"), said(&output));
    let text_of = |node: &str| text(&at.join(format!("{node}.ndjson")));
    assert_eq!(text_of("db3").lines().count(), looks("db3"), "a line a run");
    assert_eq!(text_of("db2.example").lines().count(), 1);
    let most = text(&log.join("counts")).lines().filter_map(|line| line.parse::<u32>().ok()).max();
    assert!(most <= Some(4), "{most:?} at once");
    let made = fs::read_dir(&log).expect("a folder").flatten().map(|entry| entry.path());
    for path in made.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")) {
        let manifest = text(&path);
        let (job, node) = (manifest.find("name: assay-db"), manifest.find("nodeName: db"));
        assert!(job.is_some() && node.is_some() && !manifest.contains("nodeName: NODE"), "{manifest}");
    }

    // One node, a day later: its runs of before count as well.
    let (before, output) = (looks("db3"), measure(&["db3"]));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!((looks("db3"), looks("db1")), (before + 1, 1), "{}", said(&output));
    // Of a node of which nothing was measured its earlier runs are no word of today.
    let refused = measure_with(&["db1", "db2.example"], "yes");
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(
        refused.stdout.is_empty() && said(&refused).contains("db1: nothing was measured"),
        "{}",
        said(&refused)
    );
    fs::write(&spec, "[limits]\nno-such-figure = { min = 1 }\n").expect("a spec");
    assert_eq!((measure(&[]).status.code(), looks("db1")), (Some(2), 1), "a wrong spec measures nothing");
}

/// Runs of a host that confirm each other, one alone, and specs that they meet, miss, and cannot
/// decide.
struct Judged {
    folder: tempfile::TempDir,
}

impl Judged {
    fn new() -> Judged {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let runs = folder.path().join("runs");
        for name in ["runs", "once", "empty"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let run = pretended(1, &runs, &[]);
        write_earlier(&run, 0, &folder.path().join("once/run.assay.jsonl"));
        for half_hours in 1..=8 {
            write_earlier(&run, 1800 * half_hours, &runs.join(format!("before-{half_hours}.assay.jsonl")));
        }
        let judged = Judged { folder };
        for (name, limits) in [
            ("met", "[limits]\ncore-clock = { min = \"1 MHz\" }\n"),
            ("missed", "[limits]\nread-one-cpu = { min = \"90000 GB/s\" }\n"),
            (
                "undecided",
                "[[limit]]\nseries = \"ipc.pipe-pingpong@*\"\nmin = \"1 1/s\"\nverdict = [\"unverified\"]\n",
            ),
        ] {
            fs::write(judged.at(&format!("{name}.toml")), format!("name = \"{name}\"\n{limits}"))
                .expect("a spec");
        }
        judged
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// node-problem-detector's plugin, with this program as `assay`.
    fn plugin(&self, runs: &str, spec: &str, assay: &Path) -> (i32, String) {
        let mut command = Command::new(contrib("node-problem-detector/assay-check.sh"));
        command.arg(self.at(runs)).arg(self.at(spec));
        let output = command.env("ASSAY", assay).env("ASSAY_SECONDS", "20").output().expect("sh runs");
        assert!(output.stderr.is_empty(), "{}", said(&output));
        let line = String::from_utf8(output.stdout).expect("ASCII");
        (output.status.code().unwrap_or(-1), line)
    }
}

#[test]
fn the_plugin_of_node_problem_detector_keeps_its_protocol() {
    let judged = Judged::new();
    let program = testkit::program();
    for (runs, spec, code) in [
        ("runs", "met.toml", 0),
        ("runs", "missed.toml", 1),
        ("once", "missed.toml", 2),
        ("runs", "undecided.toml", 2),
        ("empty", "met.toml", 2),
        ("runs", "none.toml", 2),
    ] {
        let (ended, line) = judged.plugin(runs, spec, program);
        assert_eq!(ended, code, "{runs} {spec}: {line}");
        assert!(line.is_ascii() && line.ends_with('\n'), "{line:?}");
        assert!((10..=81).contains(&line.len()) && line.lines().count() == 1, "{line:?}");
    }
    // A program that does not exist, and one that does not answer.
    let (ended, line) = judged.plugin("runs", "met.toml", &judged.at("no-such-program"));
    assert!(ended == 2 && line.starts_with("assay cannot be run"), "{ended} {line}");
    let hung = judged.at("hung");
    self::program(judged.folder.path(), "hung", "exec sleep 60");
    let mut command = Command::new(contrib("node-problem-detector/assay-check.sh"));
    command.arg(judged.at("runs")).arg(judged.at("met.toml")).env("ASSAY", hung).env("ASSAY_SECONDS", "0.2");
    let output = command.output().expect("sh runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output), "assay check gave no answer in time\n");
}

/// node-problem-detector refuses to start where one of these is not so
/// (`pkg/custompluginmonitor/types/config.go`).
#[test]
fn the_monitor_of_node_problem_detector_is_one_that_it_loads() {
    let file = text(&contrib("node-problem-detector/assay-monitor.json"));
    let monitor: Value = serde_json::from_str(&file).expect("JSON");
    assert_eq!(monitor["plugin"], "custom");
    let seconds = |value: &Value| {
        let text = value.as_str().expect("a duration");
        let (number, factor) = match text.strip_suffix('m') {
            Some(minutes) => (minutes, 60.0),
            None => (text.strip_suffix('s').expect("seconds"), 1.0),
        };
        factor * number.parse::<f64>().expect("a number")
    };
    let (rule, all) = (&monitor["rules"][0], &monitor["pluginConfig"]);
    assert!(seconds(&rule["timeout"]) <= seconds(&all["timeout"]), "{monitor}");
    assert!(seconds(&all["timeout"]) < seconds(&all["invoke_interval"]), "{monitor}");
    assert_eq!(all["max_output_length"], 80);
    assert_eq!((&rule["type"], &rule["condition"]), (&json!("permanent"), &monitor["conditions"][0]["type"]));
    // The plugin gives up before it is killed: 8 s, and 1 s more where that is ignored.
    let plugin = text(&contrib("node-problem-detector/assay-check.sh"));
    assert!(plugin.contains("timeout -k 1 \"${ASSAY_SECONDS:-8}\"") && seconds(&rule["timeout"]) > 9.0);
    assert!(rule["path"].as_str().is_some_and(|path| path.ends_with("/assay-check.sh")));
}

/// The rule fits the schema of Node Feature Discovery's own definition (its commit 76e6cc8, tried
/// by hand); here what it looks for is what `check --nfd` writes.
#[test]
fn the_node_feature_rule_matches_what_check_writes() {
    let Some(rule) = yaml(&contrib("nfd/noderule.yaml")) else { return };
    let (kind, version) = (&rule["kind"], &rule["apiVersion"]);
    assert_eq!((kind, version), (&json!("NodeFeatureRule"), &json!("nfd.k8s-sigs.io/v1alpha1")));
    let all = rule["spec"]["rules"].as_array().expect("a list");
    assert_eq!((all.len(), &all[0]["taints"][0]["effect"]), (1, &json!("NoSchedule")));
    let matcher = &all[0]["matchFeatures"][0];
    assert_eq!(matcher["feature"], "local.feature");
    let wanted = matcher["matchExpressions"].as_object().expect("a map");
    let judged = Judged::new();
    for (runs, spec, is_tainted) in [
        ("runs", "met.toml", false),
        ("runs", "missed.toml", true),
        ("once", "missed.toml", false),
        ("runs", "undecided.toml", false),
    ] {
        let file = judged.at("features");
        let mut check = crate::assay();
        check.arg("check").arg(judged.at(runs)).args(["--confirmed", "--spec"]).arg(judged.at(spec));
        let output = check.arg("--nfd").arg(&file).output().expect("assay runs");
        let written = text(&file);
        let features: Vec<(&str, &str)> = written.lines().filter_map(|line| line.split_once('=')).collect();
        let holds = |(key, expression): (&String, &Value)| {
            assert_eq!(expression["op"], "In");
            let found = features.iter().find(|(own, _)| own == key).expect("a feature of this name");
            expression["value"].as_array().expect("a list").contains(&json!(found.1))
        };
        assert_eq!(wanted.iter().all(holds), is_tainted, "{runs} {spec}: {}{written}", said(&output));
    }
}

/// `promtool`, or says skipped.
fn promtool(test: &str, words: &[&str], file: &Path) -> Option<Output> {
    if !works("promtool", &["--version"]) {
        skipped(test, "no promtool: run tests/install-needs");
        return None;
    }
    Some(Command::new("promtool").args(words).arg(file).output().expect("promtool runs"))
}

#[test]
fn alerts_fire_where_they_should_and_nowhere_else() {
    let folder = contrib("prometheus");
    let test = "alerts_fire_where_they_should_and_nowhere_else";
    let Some(checked) = promtool(test, &["check", "rules"], &folder.join("assay.rules.yml")) else { return };
    assert!(checked.status.success(), "{}", said(&checked));
    let tried = promtool(test, &["test", "rules"], &folder.join("assay.rules.test.yml")).expect("it is here");
    assert!(tried.status.success(), "{}", said(&tried));
}

#[test]
fn alerts_name_metrics_and_labels_that_check_writes() {
    let judged = Judged::new();
    let spec = "name = \"all\"\n[limits]\ncore-clock = { min = \"1 MHz\" }\nread-one-cpu = { min = \"1 kB/s\" }\n\
                [[limit]]\nseries = \"memory.latency@*\"\nmax = \"1 s\"\n\
                [[limit]]\nseries = \"ipc.pipe-pingpong@same-cpu*\"\nmin = \"1 1/s\"\n";
    fs::write(judged.at("all.toml"), spec).expect("a spec");
    let file = judged.at("assay.prom");
    let mut check = crate::assay();
    check.arg("check").arg(judged.at("runs")).args(["--confirmed", "--spec"]).arg(judged.at("all.toml"));
    let output = check.arg("--prometheus").arg(&file).output().expect("assay runs");
    let written = text(&file);
    let rules = text(&contrib("prometheus/assay.rules.yml"));
    let expressions = rules.lines().filter(|line| !line.trim_start().starts_with('#'));
    let expressions = expressions.collect::<Vec<_>>().join("\n");
    let names = expressions.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let names: BTreeSet<&str> = names.filter(|word| word.starts_with("assay_")).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let is = |line: &str| line.starts_with(&format!("{name}{{"));
        assert!(written.lines().any(is), "{name}: {}{written}", said(&output));
    }
    for label in ["host", "spec", "cpu_model", "figure", "bench", "placement", "params", "metric"] {
        assert!(written.contains(&format!("{label}=\"")), "{label}: {written}");
    }
}
