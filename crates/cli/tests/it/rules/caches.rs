//! The last-level cache: claims that are too large, too small and true, and blocks that fit it.

use serde_json::{Value, json};

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

/// Invented ladders have 20 ns up to some size and 95 ns beyond; from here on they have 95 ns, or
/// 20 throughout.
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
    assert_eq!(findings(&read, "llc-differs").len(), 1, "both go by one size");
    let small = server();
    small.file("/proc/meminfo", "MemTotal: 131072000 kB\nMemAvailable: 60000 kB\nSwapTotal: 0 kB");
    let short = on(&small, "quick", "memory.bandwidth").diagnosed();
    vec![case("a cache larger than claimed", read), case("little memory", short)]
}

/// A guest whose kernel reports a cache of 260 MiB, which has memory for blocks of 128 MiB, and in
/// which a task gets 16 MiB of the cache.
fn a_share_of_what_is_told() -> Value {
    let told = claiming("266240K");
    told.file("/proc/meminfo", "MemTotal: 131072000 kB\nMemAvailable: 600000 kB\nSwapTotal: 0 kB");
    let mut run = on(&told, "quick", "memory.bandwidth,memory.latency");
    run.latencies("memory.latency", "bytes", |bytes| match bytes {
        bytes if bytes <= 49152.0 => 1.4,
        bytes if bytes <= 2e6 => 4.5,
        bytes if bytes <= 17e6 => 20.0,
        _ => 95.0,
    });
    let results = run.diagnosed();
    let found = findings(&results, "llc-differs");
    let headline = found[0]["headline"].as_str().expect("a text");
    assert!(
        headline.starts_with("One task gets ")
            && headline.contains(" of the 260 MiB that the kernel reports. Plan for "),
        "{headline}"
    );
    // Blocks are called by what was measured, and that is said.
    let shown = run.shown().split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        [" as measured, others as the kernel reports", "read, 256 MiB (memory)", "random, 128 MiB (memory)"]
    {
        assert!(shown.contains(words), "{words:?} is missing in {shown}");
    }
    results
}

#[test]
fn a_latency_has_one_row() {
    let rows = |only: &str| {
        let run = on(&server(), "quick", only);
        run.diagnosed();
        run.shown()
    };
    let (alone, both) = (rows("memory.latency"), rows("memory.latency,memory.data-source"));
    let levels = ["random, 16 KiB (L1d)", "(L2)", "(L3)", "(memory)"];
    assert!(levels.iter().all(|level| alone.contains(level)), "{alone}");
    let table = both.contains("Memory latency by source") && both.contains("dram, within 256 KiB");
    assert!(table, "{both}");
    assert!(!levels.iter().any(|level| both.contains(level)), "{both}");
}

pub fn blocks_beyond_the_caches() -> Vec<Case> {
    let on_two_caches = |(profile, only): (&str, &str)| {
        case(format!("{profile} on two caches, {only}"), on(&server(), profile, only).diagnosed())
    };
    let both = "memory.bandwidth,memory.latency";
    let mut cases: Vec<Case> =
        [("quick", both), ("standard", both), ("quick", "memory.bandwidth")].map(on_two_caches).into();
    cases.push(case("a share of what is told", a_share_of_what_is_told()));
    cases
}

#[test]
fn a_ladder_beside_other_work_says_nothing_of_caches() {
    let run = || on(&claiming("266240K"), "quick", "memory.latency");
    let share = |run: &mut Edit| {
        run.latencies("memory.latency", "bytes", |bytes| if bytes <= 2e6 { 4.5 } else { 95.0 });
    };
    let mut quiet = run();
    share(&mut quiet);
    assert_eq!(findings(&quiet.diagnosed(), "llc-differs").len(), 1);
    let mut busy = run();
    share(&mut busy);
    busy.conditions(|_, conditions| {
        conditions["wall_ms"] = json!(1000.0);
        conditions["busy_ms"] = json!(1500.0);
        conditions["others_on_seats_ms"] = json!(500.0);
    });
    assert_eq!(findings(&busy.diagnosed(), "llc-differs").len(), 0);
}
