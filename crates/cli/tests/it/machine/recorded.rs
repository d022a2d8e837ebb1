//! Machines recorded with `assay machine --save`, kept here with what is shown of them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{check_consistency, json as machine_of, shown, text};

fn recordings() -> Vec<PathBuf> {
    let folder = testkit::root().join("tests/machines");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.to_string_lossy().contains(".json"));
    paths.sort();
    paths
}

#[test]
fn what_is_shown_of_recorded_machines() {
    let recordings = recordings();
    assert!(!recordings.is_empty());
    for path in recordings {
        let name =
            path.file_name().expect("a name").to_string_lossy().replace(".json", "").replace(".gz", "");
        check_consistency(&name, &machine_of("--from", &path));
        insta::assert_snapshot!(format!("machine_{name}"), text("--from", &path));
    }
}

#[test]
fn a_recorded_machine_begins_with_what_will_disturb_a_measurement() {
    for path in recordings() {
        let name = path.file_name().expect("a name").to_string_lossy().replace(".json", "");
        let screen = |columns: usize, locale: &str| {
            let mut command = crate::assay();
            command.args(["machine", "--from"]).arg(&path);
            command.env("COLUMNS", columns.to_string()).env("LC_ALL", locale);
            let output = command.output().expect("assay runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        for columns in [80, 100] {
            insta::assert_snapshot!(format!("first_{name}_{columns}"), screen(columns, "C.UTF-8"));
        }
        crate::studies::is_a_first_screen(&name, screen);
        let quiet = shown("--from", &path, &["--quiet"]);
        let first = shown("--from", &path, &[]);
        let verdict = first.lines().nth(2).expect("a verdict");
        assert!(quiet.contains(verdict) && quiet.lines().count() < first.lines().count(), "{quiet}");
    }
}

/// On bare metal the advice is to move the modules.
#[test]
fn a_machine_on_bare_metal_with_modules_three_and_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let machine = crate::golden::recorded(&crate::golden::three_one(), dir.path());
    let mut command = crate::assay();
    command.args(["machine", "--from"]).arg(&machine).env("COLUMNS", "80").env("LC_ALL", "C.UTF-8");
    let text = String::from_utf8(command.output().expect("assay runs").stdout).expect("UTF-8");
    assert!(text.contains("bare metal") && text.contains("3+1"), "{text}");
    insta::assert_snapshot!("first_three_one_80", text);
}

/// What holds every figure back is the verdict, with what to do about it.
#[test]
fn a_quota_makes_a_machine_not_ready() {
    let tree = crate::runs::quiet_tree();
    tree.file("/proc/self/cgroup", "0::/a");
    tree.file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
    tree.file("/sys/fs/cgroup/a/cpu.max", "50000 100000");
    let first = shown("--root", tree.root(), &[]);
    assert!(first.contains("NOT READY TO MEASURE") && first.contains("CPU quota"), "{first}");
    assert!(first.contains("Raise cpu.max") && first.contains("assay explain cpu-quota"), "{first}");
}

#[test]
fn json_follows_the_schema() {
    let validator = crate::validator("machine");
    for path in recordings() {
        let machine: Value = machine_of("--from", &path);
        let problems: Vec<String> = validator.iter_errors(&machine).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{}: {problems:?}", path.display());
    }
}
