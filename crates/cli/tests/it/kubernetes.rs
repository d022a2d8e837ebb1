//! The files of `contrib/` for Kubernetes and those around it, each tried with what reads it: the
//! API's schemas, node-problem-detector's plugin protocol, Prometheus.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::golden::pretended;
use crate::host::{fleet_tool, skipped, works};

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

/// A YAML file as JSON; `None`, said aloud, where there is no PyYAML.
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

/// Below the comment that shows it: a command of several lines.
fn command_in(comments: &str, begin: &str) -> String {
    let lines = comments.lines().map(|line| line.trim_start_matches('#'));
    let mut lines = lines.skip_while(|line| !line.trim().starts_with(begin));
    let mut command = String::new();
    for line in lines.by_ref().take_while(|line| line.starts_with("   ")) {
        command.push_str(line.trim());
        command.push('\n');
    }
    assert!(!command.is_empty(), "no {begin}");
    command
}

#[test]
fn one_line_makes_a_job_a_node_in_waves() {
    const KUBECTL: &str = r#"
case "$1" in
get) printf 'node/%s\n' db1 db2.example db3 db4 db5 db6 ;;
apply) cat >"$LOG/$$.yaml" ;;
wait) : >"$LOG/$$.running"; sleep 0.1; ls "$LOG" | grep -c running >>"$LOG/counts"; sleep 0.1; rm "$LOG/$$.running" ;;
logs) echo "{\"host\":\"$4\"}" ;;
esac"#;
    for name in ["job-privileged.yaml", "job-restricted.yaml"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (bin, log, at) = (folder.path().join("bin"), folder.path().join("log"), folder.path().join("at"));
        for new in [&bin, &log, &at] {
            fs::create_dir(new).expect("a folder");
        }
        program(&bin, "kubectl", KUBECTL);
        fs::copy(contrib("kubernetes").join(name), at.join(name)).expect("a copy");
        let command = command_in(&text(&at.join(name)), "kubectl get nodes");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(&at).env("PATH", path).env("LOG", &log);
        let output = shell.output().expect("sh runs");
        assert!(output.status.success(), "{name}: {}", said(&output));
        let made: Vec<PathBuf> =
            fs::read_dir(&log).expect("a folder").flatten().map(|entry| entry.path()).collect();
        let made: Vec<&PathBuf> =
            made.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect();
        assert_eq!(made.len(), 6, "{name}: {}", said(&output));
        for path in made {
            let manifest = text(path);
            let (job, node) = (manifest.find("name: assay-db"), manifest.find("nodeName: db"));
            assert!(job.is_some() && node.is_some() && !manifest.contains("nodeName: NODE"), "{manifest}");
        }
        for node in ["db1", "db2.example", "db6"] {
            let summary = text(&at.join(format!("{node}.ndjson")));
            assert!(summary.contains(&format!("job/assay-{node}")), "{name} {node}: {summary}");
        }
        let most = text(&log.join("counts")).lines().filter_map(|line| line.parse::<u32>().ok()).max();
        assert!(most <= Some(4), "{name}: {most:?} at once");
    }
}

/// A run, and specs that it meets, misses, and cannot decide.
struct Judged {
    folder: tempfile::TempDir,
}

impl Judged {
    fn new() -> Judged {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let runs = folder.path().join("runs");
        fs::create_dir(&runs).expect("a folder");
        fs::create_dir(folder.path().join("empty")).expect("a folder");
        pretended(1, &runs, &[]);
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
        ("runs", "undecided.toml", 2),
        ("empty", "met.toml", 2),
        ("runs", "none.toml", 2),
    ] {
        let (ended, line) = judged.plugin(runs, spec, program);
        assert_eq!(ended, code, "{runs} {spec}: {line}");
        assert!(line.is_ascii() && line.ends_with('\n'), "{line:?}");
        assert!((10..=81).contains(&line.len()) && line.lines().count() == 1, "{line:?}");
    }
    // Nothing to run, nothing that may be run, and nobody who answers.
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
    for (spec, is_tainted) in [("met.toml", false), ("missed.toml", true), ("undecided.toml", false)] {
        let file = judged.at("features");
        let mut check = crate::assay();
        check.arg("check").arg(judged.at("runs")).args(["--newest", "--spec"]).arg(judged.at(spec));
        let output = check.arg("--nfd").arg(&file).output().expect("assay runs");
        let written = text(&file);
        let features: Vec<(&str, &str)> = written.lines().filter_map(|line| line.split_once('=')).collect();
        let holds = |(key, expression): (&String, &Value)| {
            assert_eq!(expression["op"], "In");
            let found = features.iter().find(|(own, _)| own == key).expect("a feature of this name");
            expression["value"].as_array().expect("a list").contains(&json!(found.1))
        };
        assert_eq!(wanted.iter().all(holds), is_tainted, "{spec}: {}{written}", said(&output));
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
    check.arg("check").arg(judged.at("runs")).args(["--newest", "--spec"]).arg(judged.at("all.toml"));
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
