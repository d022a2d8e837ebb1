//! `assay knobs` on kernels of three ages.

use std::process::Command;

use serde_json::Value;

use super::{GRANULARITY, kernel};
use crate::runs::end;
use crate::synthetic::Tree;

fn knobs(tree: &Tree, words: &str) -> Command {
    let mut command = crate::assay();
    command.arg("knobs").args(words.split_whitespace()).arg("--root").arg(tree.root());
    command
}

/// What `--json` lists for one knob.
fn of(tree: &Tree, name: &str) -> Value {
    let ended = end(&mut knobs(tree, &format!("--json {name}")));
    let mut all: Vec<Value> = serde_json::from_str(&ended.sane().out).expect("JSON");
    assert_eq!(all.len(), 1);
    let one = all.remove(0);
    // What is not there was named: that is no success.
    assert_eq!(ended.code, if one["value"].is_null() { 3 } else { 0 }, "{one}");
    one
}

#[track_caller]
fn is_at(tree: &Tree, name: &str, value: &str, place: &str) {
    let one = of(tree, name);
    assert_eq!((&one["value"], &one["place"]), (&value.into(), &place.into()), "{one}");
    assert_eq!((&one["writable"], &one["why_not"]), (&true.into(), &"".into()), "{one}");
}

#[track_caller]
fn lacks(tree: &Tree, name: &str, words: &[&str]) {
    let one = of(tree, name);
    assert!(one["value"].is_null() && one["place"].is_null() && one["writable"] == false, "{one}");
    let why = one["why_not"].as_str().expect("words");
    assert!(words.iter().all(|word| why.contains(word)), "{why}");
}

#[test]
fn sysctls_of_5_10() {
    let tree = kernel("5.10.0-28-amd64");
    for (file, value) in [
        ("sched_min_granularity_ns", "2250000"),
        ("sched_wakeup_granularity_ns", "3000000"),
        ("sched_latency_ns", "18000000"),
        ("sched_migration_cost_ns", "500000"),
        ("sched_nr_migrate", "32"),
        ("sched_autogroup_enabled", "1"),
        ("numa_balancing", "0"),
    ] {
        let (name, file) = (
            file.trim_start_matches("sched_").trim_end_matches("_enabled"),
            format!("/proc/sys/kernel/{file}"),
        );
        tree.file(&file, value);
        is_at(&tree, name, value, &file);
    }
    lacks(&tree, "base_slice_ns", &["(5.10.0-28-amd64) has no base_slice_ns", "CFS", "min_granularity_ns"]);
    lacks(&tree, "preempt", &["debugfs is not mounted", "CONFIG_PREEMPT_DYNAMIC"]);
    // By its own name a sysctl is a knob without a row.
    tree.file("/proc/sys/vm/swappiness", "60");
    is_at(&tree, "vm.swappiness", "60", "/proc/sys/vm/swappiness");
    lacks(&tree, "vm.nothing", &["has no vm.nothing", "there is no /proc/sys/vm/nothing"]);
}

#[test]
fn debugfs_of_6_1() {
    let tree = kernel("6.1.0-13-amd64");
    tree.file(GRANULARITY, "3000000");
    tree.file("/sys/kernel/debug/sched/migration_cost_ns", "500000");
    tree.file("/sys/kernel/debug/sched/preempt", "none (voluntary) full");
    tree.file("/sys/kernel/debug/sched/features", "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY");
    is_at(&tree, "min_granularity_ns", "3000000", GRANULARITY);
    is_at(&tree, "migration_cost_ns", "500000", "/sys/kernel/debug/sched/migration_cost_ns");
    is_at(&tree, "preempt", "voluntary", "/sys/kernel/debug/sched/preempt");
    is_at(&tree, "feature.START_DEBIT", "on", "/sys/kernel/debug/sched/features");
    is_at(&tree, "feature.next_buddy", "off", "/sys/kernel/debug/sched/features");
    lacks(&tree, "feature.RUN_TO_PARITY", &["/sys/kernel/debug/sched/features does not name it"]);
    lacks(&tree, "base_slice_ns", &["(6.1.0-13-amd64) has no base_slice_ns", "and wakeup_granularity_ns"]);
}

#[test]
fn a_base_slice_of_6_12_and_governors_of_many_cores() {
    let tree = kernel("6.12.9+bpo-amd64");
    tree.file("/sys/kernel/debug/sched/base_slice_ns", "2800000");
    tree.file("/sys/kernel/debug/sched/features", "PLACE_LAG RUN_TO_PARITY NO_NEXT_BUDDY");
    is_at(&tree, "base_slice_ns", "2800000", "/sys/kernel/debug/sched/base_slice_ns");
    is_at(&tree, "feature.RUN_TO_PARITY", "on", "/sys/kernel/debug/sched/features");
    for name in ["min_granularity_ns", "wakeup_granularity_ns", "latency_ns"] {
        lacks(&tree, name, &["(6.12.9+bpo-amd64) has no", "EEVDF"]);
    }
    lacks(&tree, "governor", &["without cpufreq", "/sys/devices/system/cpu/cpufreq/*/scaling_governor"]);
    let governor = |policy: u32| format!("/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor");
    (0..4).for_each(|policy| {
        tree.file(&governor(policy), if policy < 2 { "powersave" } else { "performance" });
    });
    is_at(&tree, "governor", "powersave+performance", &governor(0));
    tree.file(&governor(0), "performance").file(&governor(1), "performance");
    is_at(&tree, "governor", "performance", &governor(0));
    tree.file("/sys/devices/system/cpu/smt/control", "notsupported");
    let smt = of(&tree, "smt");
    assert_eq!((&smt["value"], &smt["writable"]), (&"notsupported".into(), &false.into()));
    assert!(smt["why_not"].as_str().is_some_and(|why| why.contains("this host has no SMT")), "{smt}");
}

#[test]
fn the_list_names_all_for_people_too() {
    let tree = kernel("6.1.0");
    tree.file(GRANULARITY, "3000000");
    let ended = end(knobs(&tree, "").env("COLUMNS", "100"));
    // Many do not exist here, but none of those was asked for by name.
    ended.expect(0).sane();
    let json: Vec<Value> =
        serde_json::from_str(&end(&mut knobs(&tree, "--json")).expect(0).out).expect("JSON");
    assert!(json.len() >= 15);
    for knob in &json {
        let name = knob["name"].as_str().expect("a name");
        assert!(ended.out.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
        assert!(knob["value"].is_string() || knob["why_not"] != "", "{knob}");
    }
    assert!(ended.out.contains("min_granularity_ns     3000000 (10 µs–1 s): "), "{}", ended.out);
    assert!(ended.out.contains(&format!("{GRANULARITY}, writable")), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
    let some = end(&mut knobs(&tree, "min_granularity_ns thp"));
    assert!(some.expect(3).out.contains("thp") && !some.out.contains("autogroup"), "{}", some.out);
    for none in ["warp", "feature.", "a..b", "../../etc/passwd"] {
        end(&mut knobs(&tree, none)).expect(2).says(&["no setting is called", "policy"]);
    }
}
