//! Pages that move between nodes or lie on the wrong one: replayed counters, invented shares, and
//! the thresholds.

use serde_json::json;

use super::edited::{Edit, server};
use super::live::Moving;
use super::{Case, case};
use crate::runs::{findings, series};
use crate::synthetic::Tree;

const STEADY: &str = "selftest.steady";

/// The clean server of two nodes, this many pages moved in each visit of 100 ms.
fn moved(pages: f64) -> Case {
    let tree = server();
    let mut run = Edit::of(&format!("--quick --only {STEADY} --pretend 7 --root {}", tree.root().display()));
    run.conditions(|_, conditions| conditions["numa_migrated_pages"] = json!(pages));
    case(format!("{pages} pages moved in each visit"), run.diagnosed())
}

pub fn pages_moved_between_nodes() -> Vec<Case> {
    let (few, many) = (moved(2.0), moved(100.0));
    assert_eq!(series(&few.results, STEADY)["verdict"], "trusted");
    assert_eq!(series(&many.results, STEADY)["verdict"], "trusted_with_cause");
    assert_eq!(findings(&many.results, "numa-balancing")[0]["facts"][1]["value"], "on");
    vec![few, many, case("pages counted in /proc/vmstat", Moving::run().clone())]
}

pub fn no_page_moved_between_nodes() -> Vec<Case> {
    vec![moved(0.0)]
}

/// Invented latencies with this share of pages on other nodes, on the server with one change.
fn misplaced(what: &str, share: f64, moved: f64, change: impl Fn(&Tree)) -> Case {
    let tree = server();
    change(&tree);
    let mut run =
        Edit::of(&format!("--quick --only memory.latency --pretend 7 --root {}", tree.root().display()));
    run.each(|_, visit| {
        (visit["process"]["remote_share"], visit["process"]["memory_bytes"]) =
            (json!(share), json!(64 << 20));
        visit["conditions"]["numa_migrated_pages"] = json!(moved);
    });
    case(what, run.diagnosed())
}

pub fn memory_on_another_node() -> Vec<Case> {
    let cases = vec![
        misplaced("no reason in sight", 0.06, 0.0, |_| ()),
        misplaced("pages that were moved", 0.5, 100.0, |_| ()),
        misplaced("a full node", 0.5, 0.0, |tree| {
            let meminfo = "Node 0 MemTotal: 67108864 kB\nNode 0 MemFree: 2000 kB";
            tree.file("/sys/devices/system/node/node0/meminfo", meminfo);
        }),
        misplaced("a cpuset of the other node's memory", 1.0, 0.0, |tree| {
            tree.file("/sys/fs/cgroup/job/cpuset.cpus.effective", "0-15");
            tree.file("/sys/fs/cgroup/job/cpuset.mems.effective", "1");
        }),
    ];
    for (case, word) in cases.iter().zip(["policy", "balancing moved", "less memory free", "cpuset allows"]) {
        let cause = findings(&case.results, "remote-memory")[0]["cause"].to_string();
        assert!(cause.contains(word), "{}: {cause}", case.what);
        assert_eq!(series(&case.results, "memory.latency")["verdict"], "trusted_with_cause", "{}", case.what);
    }
    cases
}

pub fn memory_on_its_node() -> Vec<Case> {
    vec![misplaced("none", 0.0, 0.0, |_| ()), misplaced("a few pages", 0.05, 0.0, |_| ())]
}
