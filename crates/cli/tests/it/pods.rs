//! Assay in a pod whose restrictions are made here (`tests/pod`): what it may not do is named with
//! what that costs, and nothing else is lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use model::Reason;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::{is_root, skipped, works};
use crate::kubernetes::{container_of, manifest};
use crate::runs::{self, Ended, end};

/// What the default profile of container runtimes and a pod without capabilities take away.
const LIMITS: [&str; 5] =
    ["a seccomp filter", "no CAP_SYS_ADMIN", "no CAP_SYS_NICE", "no CAP_PERFMON", "no CAP_DAC_READ_SEARCH"];

/// A pod of this kind, with volumes of its own.
struct Pod {
    kind: &'static str,
    folder: TempDir,
}

impl Pod {
    fn new(test: &str, kind: &'static str) -> Option<Pod> {
        let namespaces = ["--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "true"];
        let library = ["-c", "import ctypes; ctypes.CDLL('libseccomp.so.2')"];
        if !is_root() || !works("unshare", &namespaces) {
            skipped(test, "a pod's namespaces need root, and a kernel that gives them");
        } else if !works("python3", &library) {
            skipped(test, "no python3, or no libseccomp");
        } else {
            return Some(Pod { kind, folder: tempfile::tempdir().expect("a temporary folder") });
        }
        None
    }

    fn results(&self) -> std::path::PathBuf {
        self.folder.path().join("results")
    }

    /// `assay` with these words in it, and the environment that its manifest gives.
    fn assay(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(testkit::root().join("tests/pod"));
        command.arg(self.kind).arg(self.folder.path()).arg(testkit::program()).args(words);
        command.env("COLUMNS", "100").env("ASSAY_HOST", "node7").env("ASSAY_LABELS", "cluster=prod");
        command.env("ASSAY_STATE", "/results/state").env("NO_COLOR", "1");
        let ended = end(&mut command);
        ended.sane();
        ended
    }

    fn machine(&self) -> Value {
        let ended = self.assay(&["machine", "--json"]);
        serde_json::from_str(&ended.expect(0).out).expect("JSON")
    }
}

/// What the manifest of the restricted job lets its pod measure, and more words.
fn measure(more: &str) -> Vec<String> {
    let job = manifest("job-restricted.yaml").expect("PyYAML, asked for before");
    let args = container_of(&job, "measure")["args"].clone();
    let args: Vec<String> = serde_json::from_value(args).expect("words");
    args.into_iter().chain(more.split_whitespace().map(str::to_string)).collect()
}

#[test]
fn a_restricted_pod_says_what_it_refuses() {
    let Some(pod) = Pod::new("a_restricted_pod_says_what_it_refuses", "restricted") else { return };
    let machine = pod.machine();
    let kinds: Vec<&Value> =
        machine["enclosures"].as_array().expect("a list").iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds[0], "kubernetes", "{kinds:?}");
    assert_eq!(machine["container"]["kind"], "restricted");
    let limits = machine["container"]["limits"].as_array().expect("a list");
    let named: Vec<&str> = limits.iter().filter_map(|limit| limit["limit"].as_str()).collect();
    assert_eq!(named, LIMITS);
    let screen = pod.assay(&["machine"]);
    assert!(screen.expect(0).out.contains("Kubernetes pod (restricted)"), "{}", screen.out);
    let refused = "The container refuses 5 things: some calls, debugfs, SCHED_FIFO, counters, SMBIOS.";
    let plain = screen.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(refused), "{}", screen.out);
    let all = pod.assay(&["machine", "--all"]).out;
    for word in
        ["io_uring", "set_mempolicy", "perf_event_open", "SCHED_FIFO", "debugfs", "SMBIOS", "Seccomp 2"]
    {
        assert!(all.contains(word), "{word} in:\n{all}");
    }
}

#[test]
fn a_privileged_pod_refuses_nothing() {
    let Some(pod) = Pod::new("a_privileged_pod_refuses_nothing", "privileged") else { return };
    let machine = pod.machine();
    assert_eq!(machine["enclosures"][0]["kind"], "kubernetes");
    if machine["container"]["limits"] != json!([]) {
        skipped(
            "a_privileged_pod_refuses_nothing",
            "this test is in a container that refuses something itself",
        );
        return;
    }
    assert_eq!(machine["container"]["kind"], "privileged");
    let screen = pod.assay(&["machine"]);
    assert!(screen.out.contains("Kubernetes pod (privileged)"), "{}", screen.out);
    assert!(!screen.out.contains("refuses"), "{}", screen.out);
}

/// Each verb that a pod's manifest could name ends in order, whatever the pod refuses.
#[test]
fn no_verb_crashes_in_a_restricted_pod() {
    let Some(pod) = Pod::new("no_verb_crashes_in_a_restricted_pod", "restricted") else { return };
    let verbs = [
        "run --dry-run --quick",
        "host --dry-run --quick",
        "knobs",
        "hackbench --dry-run --quick",
        "restore",
    ];
    for words in verbs {
        let words: Vec<&str> = words.split_whitespace().collect();
        let ended = pod.assay(&words);
        assert_eq!(ended.code, 0, "{words:?}: {}{}", ended.err, ended.out);
    }
    // Nothing is there to be summed up, and no token for a second host.
    for (words, code) in [("summary /results", 3), ("run --quick --only network --to 192.0.2.1", 3)] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let ended = pod.assay(&words);
        assert_eq!(ended.code, code, "{words:?}: {}{}", ended.err, ended.out);
    }
}

/// What a run planned and could not have, each with its reason. Nothing that was tried may fail.
fn lost(file: &Path) -> Vec<String> {
    let run = runs::read(file);
    let impossible = run.header.plan.iter().filter_map(|planned| planned.unmet.clone());
    let reasons = || run.visits.iter().filter_map(|visit| visit.reason.as_ref());
    let failed: Vec<_> =
        reasons().filter(|one| matches!(one, Reason::Failed(_) | Reason::WrongAnswer(_))).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    impossible.chain(reasons().map(|reason| reason.text().to_string())).collect()
}

#[test]
fn a_run_in_a_restricted_pod_loses_what_it_names_and_is_told_apart() {
    let test = "a_run_in_a_restricted_pod_loses_what_it_names_and_is_told_apart";
    let Some(pod) = Pod::new(test, "restricted") else { return };
    if manifest("job-restricted.yaml").is_none() {
        return;
    }
    let words = measure(
        "--force --budget 4s --only \
         syscall.getpid,ipc.sysv-semaphore,timer.nanosleep,process.shell,disk.random",
    );
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    pod.assay(&words).measured();
    let file = runs::run_file(&pod.results());
    let lost = lost(&file);
    for reason in ["no /bin/sh", "needs CAP_SYS_NICE"] {
        assert!(lost.iter().any(|own| own.contains(reason)), "{reason}: {lost:#?}");
    }
    let results = runs::diagnosed(&file);
    assert_eq!(runs::read(&file).header.host, "node7");
    let finding = runs::findings(&results, "restricted-container")[0];
    let facts = finding["facts"].as_array().expect("a list");
    assert_eq!(facts.len(), LIMITS.len(), "{finding}");
    assert_eq!((&finding["severity"], &finding["effect"]), (&json!("note"), &json!("none")));
    let summary = end(crate::assay().arg("summary").arg(&file));
    let summary: Value = serde_json::from_str(&summary.expect(0).out).expect("a line of JSON");
    let own = |pair: &&Value| pair[0] == "container";
    let settings = summary["settings"].as_array().or(summary["summary"]["settings"].as_array());
    assert_eq!(settings.and_then(|all| all.iter().find(own)), Some(&json!(["container", "restricted"])));
    // A spec that asks for whole-node figures does not take those of a restricted pod.
    for (kind, code) in [("restricted", 0), ("privileged", 1)] {
        let spec = pod.folder.path().join("spec.toml");
        fs::write(&spec, format!("name = \"kinds\"\n[machine]\ncontainer = \"{kind}\"\n")).expect("a file");
        let mut check = crate::assay();
        let ended = end(check.arg("check").arg(&file).arg("--spec").arg(&spec));
        // Beside other work no figure of the run may be valid, and it is not accepted then.
        if code == 1 || ended.code != 3 {
            ended.expect(code);
        }
    }
}

/// The whole job: what its manifest says, for 90 seconds.
#[test]
#[ignore = "measures for 90 seconds: make fleet"]
fn the_quick_run_in_a_restricted_pod() {
    let test = "the_quick_run_in_a_restricted_pod";
    let Some(pod) = Pod::new(test, "restricted") else { return };
    if manifest("job-restricted.yaml").is_none() {
        return;
    }
    let words = measure("");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = pod.assay(&words);
    ended.measured();
    let file = runs::run_file(&pod.results());
    let results = runs::diagnosed(&file);
    let all = results["series"].as_array().expect("a list");
    let headline: Vec<&Value> = all.iter().filter(|series| series["headline"] == true).collect();
    let measured = headline.iter().filter(|series| !series["median"].is_null()).count();
    println!("{}", ended.out);
    println!("{measured} of {} headline series have a figure", headline.len());
    let mut reasons = lost(&file);
    reasons.sort();
    reasons.dedup();
    println!("lost: {reasons:#?}");
    for reason in ["no /bin/sh", "needs CAP_SYS_NICE"] {
        assert!(reasons.iter().any(|own| own.contains(reason)), "{reason}: {reasons:#?}");
    }
}
