//! Latency under load: with a knee, flat, and straight.

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::findings;

fn loaded(only: &str) -> Edit {
    let tree = server();
    Edit::of(&format!("--profile standard --only {only} --pretend 7 --root {}", tree.root().display()))
}

pub fn latency_that_begins_to_rise() -> Vec<Case> {
    let with_bandwidth = loaded("memory.loaded-latency,memory.bandwidth --budget 10h").diagnosed();
    let found = findings(&with_bandwidth, "latency-knee")[0];
    assert!(
        found["headline"].as_str().is_some_and(|text| text.starts_with("Memory latency rises from ")),
        "{found}"
    );
    assert_eq!(found["facts"].as_array().map(Vec::len), Some(4), "three mixes and the bandwidth: {found:#}");
    let alone = loaded("memory.loaded-latency").diagnosed();
    vec![case("a knee", with_bandwidth), case("a knee without the best bandwidth", alone)]
}

pub fn latency_that_does_not() -> Vec<Case> {
    let flat = |_: f64| 95.0;
    // As the invented traffic is 18 GB/s over 1 + pause / 60.
    let straight = |pause: f64| 95.0 * (1.0 + 1.0 / (1.0 + pause / 60.0));
    let shaped = |what: &str, shape: &dyn Fn(f64) -> f64| {
        let mut run = loaded("memory.loaded-latency");
        run.latencies("memory.loaded-latency", "pause", shape);
        case(what, run.diagnosed())
    };
    vec![shaped("flat", &flat), shaped("straight", &straight)]
}
