//! Each rule with its faults and with clean runs. A new rule gets a line in the table below: a test
//! that plants what the rule must find, and one that shows what it must not call a fault.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::runs::{Ended, end, findings, fired};
use testkit::headline_faults;

mod crafted;
mod edited;
mod live;
mod verdicts;

/// What one run was made of, and its results.
pub struct Case {
    what: String,
    results: Value,
}

fn case(what: impl Into<String>, results: Value) -> Case {
    Case { what: what.into(), results }
}

/// The table: files of rules as in `crates/diagnose/src`, in each its rules with their two tests.
macro_rules! table {
    ($($file:ident { $($rule:literal: $fires:ident, $quiet:ident;)+ })+) => {
        $(mod $file;)+
        const TABLE: &[&str] = &[$($($rule),+),+];
        $($(
            #[test]
            fn $fires() {
                fires($rule, &$file::$fires());
            }

            #[test]
            fn $quiet() {
                stays_quiet($rule, &$file::$quiet());
            }
        )+)+
    };
}

table! {
    answers {
        "wrong-answer": a_wrong_answer_rejects_its_case, right_answers_are_called_so;
        "failed-case": a_crash_a_hang_and_a_kill_are_told, cases_that_work_are_no_failures;
    }
    ceiling {
        "above-ceiling": more_than_the_core_or_the_memory_can_do, what_the_hardware_can_do;
    }
    placement {
        "free-placement": a_free_score_between_unequal_placements, placements_that_are_alike;
    }
    unixbench {
        "more-than-copies": many_copies_that_one_contradicts, copies_that_scale_as_they_can;
    }
    work {
        "two-cpus-win": work_from_which_two_win, work_that_never_decides;
    }
    environment {
        "background-load": somebody_elses_load, nobody_else_or_next_to_nothing;
        "steal": time_that_a_hypervisor_took, no_stolen_time_or_next_to_none;
        "cpu-quota": a_quota_that_throttles_or_would, a_quota_that_leaves_enough;
        "swapping": pages_swapped_meanwhile, no_page_swapped;
    }
    sandbox {
        "sandboxed": sandboxes_that_answer_for_the_kernel, containers_and_hosts_of_them;
        "restricted-container": containers_that_refuse, containers_that_refuse_nothing;
    }
    misplaced {
        "misplaced-task": tasks_that_were_elsewhere, tasks_on_their_seats;
    }
    priority {
        "higher-priority": tasks_that_go_first, neighbours_that_wait_their_turn;
    }
    pressure {
        "memory-pressure": memory_that_ran_short, memory_that_was_enough;
    }
    clock {
        "unstable-clocksource": a_clock_that_the_kernel_fell_back_to, clocks_that_are_read_without_a_call;
        "slow-governor": governors_that_keep_cores_slow, governors_at_full_speed;
        "turbo-off": turbo_switched_off, turbo_allowed;
        "moving-clock": a_clock_that_moved, a_clock_that_stood_nearly_still;
        "clock-check": a_clock_that_contradicts_itself, a_clock_that_agrees_with_itself;
    }
    shared_core {
        "shared-core": cores_whose_other_thread_was_busy, cores_that_fetch_for_one_thread;
    }
    slow_clock {
        "slow-clock": cores_that_are_held_back, cores_at_their_clock;
    }
    frequency_ramp {
        "clock-after-idle": clocks_that_wake_low_or_high, clocks_that_are_there_at_once;
    }
    memory {
        "no-huge-pages": huge_pages_that_were_not_given, huge_pages_that_were_given;
    }
    translation {
        "slow-huge-pages": huge_pages_that_cost_like_small_ones, huge_pages_that_cost_little;
    }
    memory_speeds {
        "memory-two-speeds": regions_that_differ, memory_of_one_speed;
        "memory-nodes-uneven": nodes_that_differ, nodes_that_are_alike;
    }
    memory_regions {
        "memory-regions-differ": regions_with_a_cause, regions_without_a_cause;
        "memory-neighbour": moments_that_differ, moments_that_are_alike;
    }
    dimms {
        "dimm-population": modules_in_the_wrong_slots, modules_in_the_right_slots;
    }
    caches {
        "block-inside-cache": blocks_that_fit_the_cache, blocks_beyond_the_caches;
        "llc-differs": a_cache_that_is_not_as_claimed, a_cache_as_claimed;
    }
    cores {
        "odd-core": cores_that_lag, cores_that_keep_up;
    }
    loaded {
        "latency-knee": latency_that_begins_to_rise, latency_that_does_not;
    }
    numa {
        "numa-balancing": pages_moved_between_nodes, no_page_moved_between_nodes;
        "remote-memory": memory_on_another_node, memory_on_its_node;
    }
    noise {
        "drift": values_that_move, values_that_stay;
        "modes": two_values_instead_of_one, one_value_however_wide;
    }
    smt {
        "smt-cost": neighbours_that_cost, neighbours_that_cost_nothing;
        "smt-capacity": threads_that_share_a_core, cores_that_share_nothing;
    }
    rate {
        "rate-runs-apart": runs_that_lie_apart, runs_that_repeat;
        "rate-settled-at-start": speeds_that_runs_keep, speeds_that_no_run_keeps;
        "rate-memory-moves": memory_that_moves_alone, everything_that_moves;
        "rate-footprint-in-cache": footprints_inside_caches, footprints_beyond_caches;
        "rate-slow-memory": runs_that_follow_slow_memory, runs_that_are_alike_on_slow_memory;
    }
    guard {
        "swinging-command": results_that_swing, results_that_stand;
        "command-placement": placements_that_decide, placements_that_do_not;
    }
    disk {
        "disk-failed-io": io_that_failed, io_that_came_back;
        "disk-page-cache": what_the_device_did_not_move, what_the_device_moved;
        "disk-throttled": speeds_that_somebody_set, speeds_that_nobody_set;
        "disk-generator-bound": generators_without_time, generators_with_time;
        "disk-others": others_on_the_disk, nobody_else_on_the_disk;
        "disk-not-steady": speeds_that_do_not_last, speeds_that_last;
        "disk-unsafe-fast": syncs_too_fast_to_be_true, syncs_that_take_their_time;
        "disk-latency-tail": one_in_a_thousand, all_of_a_thousand;
        "disk-depth-useless": depth_that_only_waits, depth_that_is_worth_it;
        "disk-nearly-full": filesystems_without_room, filesystems_with_room;
        "disk-no-trim": free_blocks_that_nobody_tells, free_blocks_that_are_told;
    }
    structure {
        "packages-in-one-node": packages_that_share_a_node, a_node_for_each_package;
        "nodes-without-distance": nodes_that_tell_no_distance, nodes_with_distances;
    }
    sweep {
        "sweep-effect": knobs_that_matter_and_knobs_that_do_not, effects_below_a_loud_noise;
        "sweep-trade": settings_between_two_metrics, settings_that_nothing_tells_apart;
    }
    profile {
        "profile-shares": profiles_that_one_knob_explains, profiles_below_a_loud_noise;
    }
    topology {
        "hidden-llc": caches_that_are_not_told, caches_that_are_told;
        "llc-not-shared": caches_claimed_for_too_many, caches_that_are_shared;
        "hidden-smt": threads_that_look_like_cores, threads_that_are_told;
        "wrong-siblings": siblings_that_are_none, siblings_as_told;
        "floating-vcpus": cpus_that_change_places, cpus_that_stay;
    }
    host_pauses {
        "preempted-cpus": cpus_that_a_host_takes, cpus_that_a_host_leaves;
    }
    network {
        "network-bottleneck": limits_of_all_kinds, cpus_over_loopback;
        "network-shaper": rates_that_are_enforced, rates_that_nobody_enforces;
        "network-window": windows_that_hold_back, windows_that_do_not;
        "network-cpu-bound": figures_of_a_cpu, figures_of_a_link;
        "network-one-stream": several_streams_that_carry_more, streams_that_carry_the_same;
        "network-loss": messages_that_never_arrived, messages_that_arrived;
        "network-offload-off": offloads_that_are_off, offloads_that_are_on;
        "network-irqs-on-one-cpu": interrupts_on_one_cpu, interrupts_on_several;
        "network-path-mtu": paths_of_another_size, paths_of_one_size;
        "network-loopback": networks_that_are_none, networks_between_machines;
    }
}

/// Every case makes the rule fire, with all that a finding must have, and with its effect on the
/// verdicts.
#[track_caller]
fn fires(rule: &str, cases: &[Case]) {
    assert!(!cases.is_empty(), "{rule}: no fault was planted");
    for Case { what, results } in cases {
        let found = findings(results, rule);
        assert!(!found.is_empty(), "{rule} is silent about {what}: {:?}", fired(results));
        for finding in found {
            has_all_that_a_finding_needs(finding);
            reaches_its_series(finding, results);
        }
    }
}

/// In every case the rule looked and found nothing; that it could not look would prove nothing.
#[track_caller]
fn stays_quiet(rule: &str, cases: &[Case]) {
    assert!(!cases.is_empty(), "{rule}: no clean run was made");
    for Case { what, results } in cases {
        let found = findings(results, rule);
        assert!(found.is_empty(), "{rule} fires on {what}: {found:#?}");
        assert!(results["rules_clean"].as_array().expect("a list").contains(&rule.into()), "{rule}: {what}");
    }
}

#[track_caller]
fn has_all_that_a_finding_needs(finding: &Value) {
    let headline = finding["headline"].as_str().unwrap_or_default();
    assert_eq!(headline_faults(headline), [""; 0], "{finding:#}");
    for text in ["headline", "cause", "confirm", "advice"] {
        assert!(finding[text].as_str().is_some_and(|text| !text.trim().is_empty()), "{text}: {finding:#}");
    }
    let facts = finding["facts"].as_array().expect("a list");
    assert!(!facts.is_empty(), "no fact: {finding:#}");
    for fact in facts {
        for text in ["label", "value", "source"] {
            assert!(fact[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {finding:#}");
        }
    }
}

/// The verdicts of the series that a finding names say what it did to them, and name the rule.
#[track_caller]
fn reaches_its_series(finding: &Value, results: &Value) {
    let rule = finding["rule"].as_str().expect("a rule");
    for key in finding["series"].as_array().into_iter().flatten() {
        let all = results["series"].as_array().expect("a list");
        let series = all.iter().find(|series| series["key"] == *key).expect("the finding names a series");
        let (verdict, reason) =
            (series["verdict"].as_str().expect("a word"), series["reason"].as_str().expect("a text"));
        match finding["effect"].as_str() {
            Some("rejects") => assert!(verdict == "rejected" && reason.contains(rule), "{rule}: {series}"),
            Some("explains") if verdict == "skipped" || verdict == "rejected" => {}
            Some("explains") => assert!(verdict != "trusted" && reason.contains(rule), "{rule}: {series}"),
            _ => {}
        }
    }
}

#[test]
fn every_rule_stands_in_the_table() {
    let registered: BTreeSet<&str> = diagnose::rules().map(|rule| rule.id.as_str()).collect();
    let tested: BTreeSet<&str> = TABLE.iter().copied().collect();
    assert_eq!(tested.len(), TABLE.len(), "a rule stands in the table twice");
    let untested: Vec<&&str> = registered.difference(&tested).collect();
    assert!(
        untested.is_empty(),
        "add these rules to the table in crates/cli/tests/it/rules.rs: {untested:?}"
    );
    let unknown: Vec<&&str> = tested.difference(&registered).collect();
    assert!(unknown.is_empty(), "the table names rules that are not there: {unknown:?}");
}

/// Screens, pages and comparisons name findings by these.
#[test]
fn every_rule_has_a_topic_and_says_where_it_looked() {
    for rule in diagnose::rules() {
        let topic = diagnose::topic(rule.id.as_str()).expect("a topic");
        assert!(!topic.is_empty() && topic.chars().count() <= 12, "{}: {topic:?}", rule.id);
        assert!(rule.looked_at.chars().count() <= 18, "{}: {:?}", rule.id, rule.looked_at);
        let words = rule.calm.split_whitespace().count();
        assert!(rule.calm.is_empty() || (3..=8).contains(&words), "{}: {:?}", rule.id, rule.calm);
        for banned in testkit::NOT_SAID {
            assert!(!rule.calm.contains(banned), "{}: {:?}", rule.id, rule.calm);
        }
    }
    assert_eq!(diagnose::topic("no-such-rule"), None);
}

#[test]
fn every_rule_explains_itself() {
    let text = |ended: Ended| ended.expect(0).sane().out.clone();
    let contents = text(end(crate::assay().arg("explain")));
    for rule in diagnose::rules() {
        assert!(contents.contains(&*rule.id), "{} is not listed", rule.id);
        let own = text(end(crate::assay().args(["explain", &rule.id])));
        for part in [rule.id.as_str(), rule.title, "When it appears", rule.source] {
            assert!(own.contains(part), "{}: {part:?} is missing in {own}", rule.id);
        }
    }
}

/// What a clean run may say: that a score without a placement is a mix is true of every host.
/// Invented tasks that are left to the scheduler hop between two levels.
const INFORMATIVE: [&str; 4] = ["free-placement", "latency-knee", "modes", "network-loopback"];

/// What these look at the quick profile does not measure: it takes longer, or a study, or a disk or
/// a way to another host, which invented samples have none of.
const LEFT_TO_STANDARD: [&str; 36] = [
    "latency-knee",
    "more-than-copies",
    "clock-after-idle",
    "odd-core",
    "smt-cost",
    "smt-capacity",
    "hidden-smt",
    "two-cpus-win",
    "swinging-command",
    "command-placement",
    "sweep-effect",
    "sweep-trade",
    "profile-shares",
    "memory-two-speeds",
    "memory-regions-differ",
    "memory-neighbour",
    "memory-nodes-uneven",
    "rate-runs-apart",
    "rate-settled-at-start",
    "rate-memory-moves",
    "rate-footprint-in-cache",
    "rate-slow-memory",
    "disk-not-steady",
    "disk-unsafe-fast",
    "disk-nearly-full",
    "disk-no-trim",
    "preempted-cpus",
    "network-bottleneck",
    "network-shaper",
    "network-window",
    "network-cpu-bound",
    "network-one-stream",
    "network-loss",
    "network-offload-off",
    "network-irqs-on-one-cpu",
    "network-path-mtu",
];

#[test]
fn on_a_clean_server_all_rules_look_and_only_informative_ones_speak() {
    let tree = edited::server();
    let root = tree.root().display().to_string();
    let mut run = edited::Edit::of(&format!("--quick --pretend 7 --root {root}"));
    // Invented samples come with conditions of a quiet host, all but this counter.
    run.conditions(|_, conditions| conditions["numa_migrated_pages"] = 0.into());
    // They were on no CPU: say that they were on the first of their seat.
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let case = visit["case"].as_u64().expect("a case") as usize;
        let cpus = plan[case]["case"]["placement"]["seats"][0]["cpus"].as_str().unwrap_or_default();
        let first = model::CpuSet::parse_list(cpus).and_then(|cpus| cpus.first());
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            samples["beside"]["cpu_start"] = first.into();
            samples["beside"]["cpu_end"] = first.into();
        }
    });
    let results = run.diagnosed();
    let found = fired(&results);
    assert!(
        found.iter().all(|rule| INFORMATIVE.contains(&rule.as_str())),
        "{found:?}; {}",
        results["findings"]
    );
    let blind = results["rules_not_applicable"].as_array().expect("a list");
    let left = |rule: &&Value| !LEFT_TO_STANDARD.iter().any(|left| *rule == left);
    assert_eq!(blind.iter().filter(left).count(), 0, "a rule could not look: {blind:?}");
    let looked = results["rules_clean"].as_array().expect("a list").len() + found.len();
    assert_eq!(looked + blind.len(), TABLE.len(), "{results:#}");
}

#[test]
fn rules_that_know_nothing_do_not_apply() {
    // A host that reports nothing but its CPUs, and visits without conditions.
    let tree = crate::synthetic::Tree::new();
    tree.file("/sys/devices/system/cpu/online", "0-1");
    let root = tree.root().display().to_string();
    let mut run = edited::Edit::of(&format!("--quick --only selftest.steady --pretend 7 --root {root}"));
    run.conditions(|_, conditions| {
        *conditions = serde_json::json!({"wall_ms": 100.0});
    });
    run.samples(|_, samples| samples["beside"] = serde_json::json!({}));
    let results = run.diagnosed();
    assert_eq!(fired(&results), [""; 0]);
    let unknown: Vec<&str> = results["rules_not_applicable"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for rule in TABLE.iter().filter(|rule| {
        // These need nothing but visits and their values.
        !["wrong-answer", "failed-case", "above-ceiling", "drift", "modes"].contains(rule)
    }) {
        assert!(unknown.contains(rule), "{rule} calls a machine clean of which nothing is known");
    }
}
