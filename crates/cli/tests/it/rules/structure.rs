//! Machines that are odd as they are described: real ones whose description was kept, and ones made
//! for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::edited::{Edit, changed, server};
use super::{Case, case};
use crate::runs::findings;

const STEADY: &str = "selftest.steady";

/// The fixtures' folder; nothing, with a message, in a clone without it.
fn fixtures() -> Option<PathBuf> {
    let folder = testkit::root().join("../shared/fixtures/topology");
    if !folder.is_dir() {
        eprintln!("SKIPPED: the fixtures are not here ({} is missing)", folder.display());
        return None;
    }
    Some(folder)
}

/// Real machines of the fixtures' folder.
pub fn real(names: &[&str]) -> Vec<Case> {
    let Some(folder) = fixtures() else { return Vec::new() };
    names.iter().map(|name| case(*name, diagnosed(&folder, name))).collect()
}

/// The root of one of them, as long as the folder is kept.
pub fn real_root(name: &str) -> Option<(TempDir, PathBuf)> {
    Some(unpacked(&fixtures()?, name))
}

fn diagnosed(folder: &Path, name: &str) -> Value {
    let (_kept, root) = unpacked(folder, name);
    Edit::of(&format!("--quick --only {STEADY} --pretend 7 --root {}", root.display())).diagnosed()
}

fn unpacked(folder: &Path, name: &str) -> (TempDir, PathBuf) {
    let truth = std::fs::read_to_string(folder.join(format!("{name}.truth.json"))).expect("readable");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let target = crate::synthetic::folder();
    let archive = folder.join(truth["file"].as_str().expect("a file name"));
    let tar = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(target.path()).status();
    assert!(tar.expect("tar runs").success(), "{}", archive.display());
    let root = target.path().join(truth["root_in_archive"].as_str().expect("a root"));
    (target, root)
}

pub fn packages_that_share_a_node() -> Vec<Case> {
    // Two guests, a host with a front-side bus, one of four packages, and one of four packages a
    // node.
    let names =
        ["linux-amd64-accel", "2pa-pcidomain32bits", "8em64t-2s4c-asymcaches", "16em64t-4s2c2t-offlines"];
    let mut cases = real(&names);
    cases.extend(real(&["96em64t-4no4pa3ca2co"]));
    if let Some(guest) = cases.first() {
        let found = findings(&guest.results, "packages-in-one-node");
        let headline = found[0]["headline"].as_str().expect("a text");
        assert!(headline.starts_with("The kernel reports 2 sockets in one NUMA node."), "{headline}");
        assert!(found[0]["cause"].as_str().is_some_and(|cause| cause.contains("sockets without NUMA nodes")));
    }
    cases.push(changed("one node for all", STEADY, |tree| {
        tree.file("/sys/devices/system/node/node0/cpumap", "0000ffff");
        tree.file("/sys/devices/system/node/node1/cpumap", "00000000");
    }));
    cases
}

pub fn a_node_for_each_package() -> Vec<Case> {
    let healthy =
        ["32intel64-2p8co2t+8ve", "28em64t-2s2n7c-buggycoresiblings", "x86_64-epyc_7451", "vbox-win"];
    let mut cases = real(&healthy);
    cases.push(changed("the server as it is", STEADY, |_| ()));
    cases
}

pub fn nodes_that_tell_no_distance() -> Vec<Case> {
    let mut cases = real(&["x86_64-epyc_7451"]);
    cases.push(changed("all at 10", STEADY, |tree| {
        for node in 0..2 {
            tree.file(&format!("/sys/devices/system/node/node{node}/distance"), "10 10");
        }
    }));
    cases
}

pub fn nodes_with_distances() -> Vec<Case> {
    let mut cases = real(&["32intel64-2p8co2t+8ve", "128arm-2pa2n8cluster4co", "linux-amd64-accel"]);
    let tree = server();
    cases.push(case("two nodes at 32", super::edited::on(&tree, STEADY)));
    cases
}
