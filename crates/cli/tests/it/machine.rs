//! `assay machine` against real machines with known answers, and against trees that no machine
//! would show.

mod archives;
mod dimms;
mod enclosed;
mod fixtures;
mod made;
mod random;
mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use model::CpuSet;
use serde_json::Value;

/// Runs `assay machine` with the given arguments.
fn run(args: &[&str]) -> Output {
    crate::assay().arg("machine").args(args).output().expect("assay runs")
}

/// The JSON of a source (`--root`, `--from`, `--cpuid`), which must succeed.
fn json(source: &str, path: &Path) -> Value {
    let output = run(&[source, path.to_str().expect("a plain path"), "--json"]);
    let errors = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(output.status.success(), "{source} {}: {errors}", path.display());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Everything that is shown of a source, the drawing too.
fn text(source: &str, path: &Path) -> String {
    shown(source, path, &["--all"])
}

/// Lines of the first screen.
fn lines(source: &str, path: &Path) -> usize {
    shown(source, path, &[]).lines().count()
}

fn shown(source: &str, path: &Path, more: &[&str]) -> String {
    let output = run(&[&[source, path.to_str().expect("a plain path")], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn set(value: &Value) -> CpuSet {
    CpuSet::parse_list(value.as_str().expect("a list of CPUs")).expect("a list of CPUs")
}

/// What must hold for every host that does not contradict itself.
fn check_consistency(name: &str, machine: &Value) {
    let online = set(&machine["cpus"]["online"]);
    let offline = set(&machine["cpus"]["offline"]);
    assert!(online.is_disjoint(&offline), "{name}: a CPU is both online and offline");
    assert!(set(&machine["cpus"]["allowed"]).is_subset(&online), "{name}");
    let partition = |what: &str, groups: &Value| {
        let Some(groups) = groups.as_array() else { return };
        let mut seen = CpuSet::default();
        for group in groups {
            let cpus = set(if group.is_string() { group } else { &group["cpus"] });
            assert!(
                !cpus.is_empty() && cpus.is_disjoint(&seen),
                "{name}: {what} {cpus} overlaps or is empty"
            );
            seen = seen.union(&cpus);
        }
        assert_eq!(seen, online, "{name}: every online CPU is in one {what}");
    };
    for what in ["cores", "packages", "dies", "clusters"] {
        partition(what, &machine["cpus"][what]);
    }
    let caches = machine["caches"].as_array().expect("a list");
    let kinds: BTreeSet<(u64, &str)> = caches
        .iter()
        .map(|cache| (cache["level"].as_u64().expect("a level"), cache["kind"].as_str().expect("a kind")))
        .collect();
    let mut covered: BTreeMap<(u64, &str), CpuSet> = BTreeMap::new();
    for (level, kind) in kinds {
        let mut seen = CpuSet::default();
        for cache in caches.iter().filter(|cache| cache["level"] == level && cache["kind"] == kind) {
            let cpus = set(&cache["cpus"]);
            assert!(cpus.is_subset(&online) && !cpus.is_empty(), "{name}: L{level} of CPUs {cpus}");
            assert!(cpus.is_disjoint(&seen), "{name}: CPUs {cpus} are in two L{level}");
            seen = seen.union(&cpus);
        }
        covered.insert((level, kind), seen);
    }
    // A tree with holes lacks the first level of some CPUs too; where that is whole, so is the
    // second.
    let whole = covered.get(&(1, "data")).is_some_and(|cpus| *cpus == online);
    if let (true, Some(second)) = (whole, covered.get(&(2, "unified"))) {
        assert_eq!(*second, online, "{name}: every online CPU is in one L2");
    }
    for node in machine["nodes"].as_array().expect("a list") {
        assert!(set(&node["cpus"]).is_subset(&online), "{name}: node {}", node["id"]);
        let distances = node["distances"].as_array().expect("a list").len();
        assert!(distances == 0 || distances == machine["nodes"].as_array().map_or(0, Vec::len), "{name}");
    }
}
