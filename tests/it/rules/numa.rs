//! Pages that move between nodes: replayed counters, and the threshold.

use serde_json::json;

use super::edited::{Edit, server};
use super::live::Moving;
use super::{Case, case};
use crate::runs::{findings, series};

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
