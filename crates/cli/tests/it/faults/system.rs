//! A system that reports little: no /sys, no /proc, neither.

use std::process::Command;

use serde_json::Value;

use crate::host::{is_root, skipped, works, wrapped};
use crate::runs::{end, every_case_once, page_is_whole, results, run_into, series};

/// The command where an empty file system hides these folders.
fn hidden(folders: &str, command: &Command) -> Command {
    let mount = format!("for f in {folders}; do mount -t tmpfs none $f || exit 99; done; exec \"$0\" \"$@\"");
    wrapped(&["unshare", "-m", "sh", "-c", &mount], command)
}

fn can_hide(test: &str) -> bool {
    let can = is_root() && works("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/sys"]);
    if !can {
        skipped(test, "mount namespaces need root");
    }
    can
}

#[test]
fn no_sys() {
    let test = "no_sys";
    if !can_hide(test) {
        return;
    }
    let mut machine = crate::assay();
    let machine = end(&mut hidden("/sys", machine.args(["machine", "--json"])));
    let machine: Value = serde_json::from_str(&machine.expect(0).sane().out).expect("JSON");
    assert_eq!(machine["summary"]["numa_nodes"], Value::Null);
    assert_eq!(machine["clock"]["current"], Value::Null);
    assert_eq!(machine["limits"]["cpu_quota"], Value::Null);
    assert_eq!(machine["summary"]["cpus"], crate::host::allowed_cpus().len());

    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only cpu.clock,ipc.pipe,memory.latency,memory.bandwidth --force";
    every_case_once(&mut hidden("/sys", &run_into(dir.path(), words)), dir.path());
    let results = results(dir.path());
    for key in
        ["cpu.clock@one-cpu", "ipc.pipe-pingpong@same-cpu", "memory.latency", "memory.bandwidth@one-cpu"]
    {
        assert!(series(&results, key)["median"].as_f64() > Some(0.0), "{key}");
    }
    let not_applicable = results["rules_not_applicable"].as_array().expect("a list");
    for rule in ["unstable-clocksource", "cpu-quota"] {
        assert!(not_applicable.contains(&rule.into()), "{rule}: {not_applicable:?}");
    }
    page_is_whole(dir.path());
}

#[test]
fn no_proc() {
    if !can_hide("no_proc") {
        return;
    }
    let mut machine = crate::assay();
    let machine = end(&mut hidden("/proc", machine.args(["machine", "--json"])));
    let machine: Value = serde_json::from_str(&machine.expect(0).sane().out).expect("JSON");
    assert_eq!(machine["memory"]["total_bytes"], Value::Null);
    // Without /proc a process cannot find its own program: reported, with what would help, before
    // anything is written.
    let dir = tempfile::tempdir().expect("a folder");
    let ended = end(&mut hidden("/proc", &run_into(dir.path(), "--quick --only cpu.clock --force")));
    ended.expect(3).says(&["/proc", "mounted"]);
}

#[test]
fn neither_proc_nor_sys() {
    if !can_hide("neither_proc_nor_sys") {
        return;
    }
    let mut machine = crate::assay();
    let machine = end(&mut hidden("/proc /sys", machine.arg("machine")));
    // What the CPU itself and the scheduler report is still there.
    machine.sane();
    assert!(machine.code == 0 || machine.err.contains("mounted"), "{machine:?}");
    let dir = tempfile::tempdir().expect("a folder");
    let invented = crate::runs::pretended("selftest.steady");
    let recorded = crate::runs::recorded();
    let mut copy = run_into(dir.path(), &invented);
    let ended = end(&mut hidden("/proc /sys", copy.env("RECORDED", recorded)));
    ended.expect(3).says(&["/proc", "mounted"]);
}
