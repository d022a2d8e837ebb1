//! Free scores, with invented round trips.

use serde_json::json;

use super::edited::Edit;
use super::{Case, case};
use crate::runs::findings;

const PING_PONG: &str = "ipc.pipe-pingpong";

/// Round trips with this many times the work on a free placement and on pinned ones, by number.
fn round_trips(free: f64, pinned: impl Fn(usize) -> f64) -> Case {
    let mut run = Edit::invented(PING_PONG);
    let plan = run.header()["plan"].as_array().expect("a list").clone();
    assert!(plan.iter().any(|planned| planned["case"]["placement"]["name"] == "free"));
    let factor = |case: usize| match plan[case]["case"]["placement"]["name"].as_str() {
        Some("free") => free,
        _ => pinned(case),
    };
    run.each(|number, visit| {
        let case = visit["case"].as_u64().expect("a number") as usize;
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            if samples["metrics"] == json!(["round_trips"]) {
                let windows = samples["ns"].as_array().expect("a column").len();
                let work = |window: usize| {
                    100.0 * factor(case) * (1.0 + 0.002 * ((number * 7 + window * 3) % 5) as f64)
                };
                samples["work"] = json!((0..windows).map(work).collect::<Vec<f64>>());
            }
        }
    });
    case(format!("a free score of {free}"), run.diagnosed())
}

pub fn a_free_score_between_unequal_placements() -> Vec<Case> {
    let mixed = round_trips(2.0, |case| if case % 2 == 0 { 1.0 } else { 4.0 });
    let found = findings(&mixed.results, "free-placement");
    assert_eq!(found.len(), 1);
    // Both pinned figures and the free one are facts; only the free one is misleading.
    let labels: Vec<&str> =
        found[0]["facts"].as_array().expect("facts").iter().filter_map(|f| f["label"].as_str()).collect();
    assert!(labels.contains(&"free") && labels.len() >= 3, "{labels:?}");
    let named = found[0]["series"].as_array().expect("keys");
    assert!(named.len() == 1 && named[0].as_str().is_some_and(|key| key.contains("@free")), "{named:?}");
    vec![mixed]
}

pub fn placements_that_are_alike() -> Vec<Case> {
    vec![
        round_trips(1.0, |_| 1.0),
        // Not far enough apart to mislead.
        round_trips(1.2, |case| if case % 2 == 0 { 1.0 } else { 1.3 }),
    ]
}
