//! The last-level cache: claims that are too large, too small and true, and blocks that fit it.

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::{findings, recorded};
use crate::synthetic::Tree;

/// The clean server, whose kernel claims this much for its last-level caches.
fn claiming(l3: &str) -> Tree {
    let tree = server();
    for cpu in 0..16 {
        tree.cpu(cpu, "cache/index3/size", l3);
    }
    tree
}

fn on(tree: &Tree, profile: &str, only: &str) -> Edit {
    Edit::of(&format!("--profile {profile} --only {only} --pretend 7 --root {}", tree.root().display()))
}

/// Invented ladders have 20 ns up to some size and 95 ns beyond; from here on they have 95 ns, or 20 throughout.
fn reshaped(mut run: Edit, what: &str, factor: impl Fn(f64) -> f64) -> Case {
    run.scaled("memory.latency", "bytes", |bytes| 1.0 / factor(bytes));
    case(what, run.diagnosed())
}

pub fn a_cache_that_is_not_as_claimed() -> Vec<Case> {
    let share = |bytes: f64| if (8e6..36e6).contains(&bytes) { 95.0 / 20.0 } else { 1.0 };
    let guest =
        Edit::of(&format!("--profile standard --only memory.latency --pretend 7 --from {}", recorded()));
    let guests_share = |bytes: f64| if (8e6..140e6).contains(&bytes) { 95.0 / 20.0 } else { 1.0 };
    let cases = vec![
        reshaped(on(&server(), "quick", "memory.latency"), "a partition, quick", share),
        reshaped(on(&server(), "standard", "memory.latency"), "a partition", share),
        reshaped(guest, "a guest's share", guests_share),
        case("a claim of a quarter", on(&claiming("8192K"), "standard", "memory.latency").diagnosed()),
        reshaped(on(&server(), "standard", "memory.latency"), "a cache without end", |bytes| {
            if bytes > 36e6 { 20.0 / 95.0 } else { 1.0 }
        }),
    ];
    let found = |index: usize| findings(&cases[index].results, "llc-differs")[0];
    let cause = |index: usize| found(index)["cause"].as_str().expect("a text").to_string();
    assert!(cause(1).contains("resctrl") && cause(2).contains("guest"));
    assert!(found(4)["headline"].as_str().is_some_and(|text| text.contains("or more")));
    assert!(cases.iter().all(|case| findings(&case.results, "llc-differs")[0]["severity"] == "warning"));
    cases
}

pub fn a_cache_as_claimed() -> Vec<Case> {
    let guest =
        Edit::of(&format!("--profile standard --only memory.latency --pretend 7 --from {}", recorded()));
    let mut cases = vec![case("a guest", guest.diagnosed())];
    for profile in ["quick", "standard"] {
        let run = on(&server(), profile, "memory.latency --budget 100h");
        cases.push(case(format!("a {profile} ladder"), run.diagnosed()));
    }
    cases
}

pub fn blocks_that_fit_the_cache() -> Vec<Case> {
    let read = on(&claiming("8192K"), "quick", "memory.bandwidth,memory.latency").diagnosed();
    let found = findings(&read, "block-inside-cache")[0];
    // Only the largest blocks were to show memory.
    let keys = found["series"].as_array().expect("a list");
    let largest = |key: &str| key.contains("bytes=67108864#") || key.contains("bytes=4194304#");
    assert!(keys.iter().all(|key| key.as_str().is_some_and(largest)), "{keys:?}");
    let small = server();
    small.file("/proc/meminfo", "MemTotal: 131072000 kB\nMemAvailable: 60000 kB\nSwapTotal: 0 kB");
    let short = on(&small, "quick", "memory.bandwidth").diagnosed();
    vec![case("a cache larger than claimed", read), case("little memory", short)]
}

pub fn blocks_beyond_the_caches() -> Vec<Case> {
    ["quick", "standard"]
        .map(|profile| {
            let run = on(&server(), profile, "memory.bandwidth,memory.latency");
            case(format!("{profile} on two caches"), run.diagnosed())
        })
        .into()
}
