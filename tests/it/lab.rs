//! Guests of the machine lab (`lab/README.md`): real kernels on machines that nobody has at hand, described as they are.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::skipped;

/// No boot takes longer than this, however busy the host: emulation is slow.
const LIMIT_S: u32 = 300;
/// What `lab/boot` says where there is no QEMU, kernel or busybox.
const NOTHING_TO_BOOT: i32 = 77;

/// Runs a shell script in a guest, in an empty folder, and brings that folder back. `None`, said aloud, where nothing
/// can be booted.
fn bring_back(test: &str, machine: &str, script: &str) -> Option<TempDir> {
    let output = boot(machine, &format!("set -e\n{script}\ntar -c -f - ."));
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOTHING_TO_BOOT) {
        skipped(test, said.trim());
        return None;
    }
    assert!(output.status.success(), "{machine}: {}: {said}", output.status);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("brought.tar");
    std::fs::write(&archive, output.stdout).expect("room for what came back");
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(unpacked.expect("tar runs").success(), "{machine}: what came back is no archive");
    Some(folder)
}

/// One boot at a time: a guest's CPUs keep all of a small host busy.
fn boot(machine: &str, script: &str) -> Output {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/boot"))
        .args(["--limit", &LIMIT_S.to_string()])
        .args(["--assay", assert_cmd::cargo::cargo_bin!("assay").to_str().expect("a plain path")])
        .args([machine, "--", "sh", "-c", script])
        .output()
        .expect("lab/boot runs")
}

fn read(folder: &TempDir, file: &str) -> Value {
    let text = std::fs::read(folder.path().join(file)).expect("the guest wrote it");
    serde_json::from_slice(&text).expect("JSON")
}

/// CPUs and distances of each node.
fn nodes(machine: &Value) -> Value {
    let nodes = machine["nodes"].as_array().expect("a list");
    nodes.iter().map(|node| json!([node["cpus"], node["distances"]])).collect()
}

fn cores(machine: &Value) -> Value {
    let cores = machine["cpus"]["cores"].as_array().expect("a list");
    cores.iter().map(|core| core["cpus"].clone()).collect()
}

#[test]
fn siblings() {
    let Some(folder) = bring_back("siblings", "smt", "assay machine --json >machine.json") else { return };
    let machine = read(&folder, "machine.json");
    assert_eq!(cores(&machine), json!(["0-1", "2-3"]));
    assert_eq!(machine["summary"]["threads_per_core"], json!([2]));
    assert_eq!(machine["summary"]["l3"], json!([{"cpus": "0-3", "size_bytes": 16 << 20}]));
    assert_eq!(nodes(&machine), json!([["0-3", [10]]]));
}

#[test]
fn two_nodes() {
    let Some(folder) = bring_back("two_nodes", "two-nodes", "assay machine --json >machine.json") else {
        return;
    };
    let machine = read(&folder, "machine.json");
    assert_eq!(nodes(&machine), json!([["0-1", [10, 21]], ["2-3", [21, 10]]]));
    assert_eq!(machine["summary"]["packages"], 2);
    assert_eq!(cores(&machine), json!(["0", "1", "2", "3"]));
}

#[test]
fn memory_without_cpus() {
    let script = "assay machine --json --save saved.json >machine.json";
    let Some(folder) = bring_back("memory_without_cpus", "memory-only", script) else { return };
    let machine = read(&folder, "machine.json");
    let expected = json!([["0-1", [10, 21, 17]], ["2-3", [21, 10, 28]], ["", [17, 28, 10]]]);
    assert_eq!(nodes(&machine), expected);
    for node in machine["nodes"].as_array().expect("a list") {
        let bytes = node["total_bytes"].as_u64().expect("a size");
        assert!((400 << 20..=512 << 20).contains(&bytes), "node {} has {bytes} bytes", node["id"]);
    }
}
