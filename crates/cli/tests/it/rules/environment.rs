//! What others do to a measurement: for real where this host lets us, by replayed counters, and at
//! the thresholds.

use serde_json::{Value, json};

use super::edited::{Edit, changed, quota, server};
use super::live::{Live, Moving, first_seat};
use super::{Case, case};
use crate::host::{Group, Hog, allowed_cpus, skipped, works};
use crate::runs::{findings, series, stat, vmstat};

pub const STEADY: &str = "selftest.steady";

/// A run of one case in visits of 100 ms, 2 CPUs, quiet but for this.
pub fn with_conditions(what: &str, change: impl Fn(&mut Value)) -> Case {
    let mut run = Edit::invented(STEADY);
    run.conditions(|_, conditions| change(conditions));
    case(what, run.diagnosed())
}

#[track_caller]
pub fn assert_verdict(case: &Case, verdict: &str) {
    assert_eq!(series(&case.results, STEADY)["verdict"], verdict, "{}", case.what);
}

/// Others use this share of the CPU that the case sits on.
fn load(share: f64) -> Case {
    with_conditions(&format!("{share} of the case's CPU used by others"), |conditions| {
        conditions["busy_ms"] = json!(100.0 + 100.0 * share);
        conditions["others_on_seats_ms"] = json!(100.0 * share);
    })
}

/// Others use an eighth of the CPU of one case among five: little of the host, much of what that
/// case had.
fn load_of_one_case() -> Case {
    let others = ["syscall.getpid", "syscall.read", "syscall.write", "syscall.stat"];
    let mut run = Edit::invented(&format!("{STEADY},{}", others.join(",")));
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let planned = &plan[visit["case"].as_u64().expect("a case") as usize]["case"];
        let share = if planned["bench"] == STEADY { 0.125 } else { 0.0 };
        let conditions = &mut visit["conditions"];
        // The kernel's ticks counted less than our own time: no work of others is below zero.
        conditions["busy_ms"] = json!(97.0);
        conditions["others_on_seats_ms"] = json!(100.0 * share);
    });
    let loaded = case("an eighth of one case's CPU", run.diagnosed());
    assert_verdict(&loaded, "trusted_with_cause");
    for other in others {
        assert_eq!(series(&loaded.results, other)["verdict"], "trusted", "{other}");
    }
    let finding = findings(&loaded.results, "background-load")[0];
    let headline = finding["headline"].as_str().expect("a text");
    assert_eq!(finding["facts"][0]["value"], "none seen", "{finding:#}");
    assert!(headline.starts_with("Other processes took 12 % of the CPU during "), "{headline}");
    loaded
}

/// The same while a quota pauses us for half of the time: ticks err by up to one in each of its
/// periods.
fn load_in_quota(share: f64) -> Case {
    with_conditions(&format!("{share} used by others, half of the time paused"), |conditions| {
        conditions["busy_ms"] = json!(100.0 + 100.0 * share);
        conditions["others_on_seats_ms"] = json!(100.0 * share);
        conditions["throttled_ms"] = json!(50.0);
    })
}

pub fn somebody_elses_load() -> Vec<Case> {
    let (some, much) = (load(0.12), load(0.25));
    assert_verdict(&some, "trusted_with_cause");
    assert_verdict(&much, "rejected");
    let headline = findings(&much.results, "background-load")[0]["headline"].as_str().expect("a text");
    assert!(headline.starts_with("Other processes took 12 % of the CPU time of the run. "), "{headline}");
    let mut cases = vec![some, much, load_in_quota(0.2), load_of_one_case()];
    match works("taskset", &["-c", "0", "true"]) {
        true => {
            let hog = Hog::on(first_seat(STEADY));
            let loaded = case(
                "a real process on the same CPU",
                Live::of(&format!("--only {STEADY} --profile standard")).seen().ending(3).run(),
            );
            drop(hog);
            assert_verdict(&loaded, "rejected");
            let facts = findings(&loaded.results, "background-load")[0]["facts"].to_string();
            assert!(facts.contains("(pid "), "nobody is named: {facts}");
            cases.push(loaded);
        }
        false => skipped("somebody_elses_load (a real process)", "taskset is not here"),
    }
    cases
}

pub fn nobody_else_or_next_to_nothing() -> Vec<Case> {
    let (little, none) = (load(0.04), load(0.0));
    assert_verdict(&little, "trusted");
    vec![little, none, load_in_quota(0.08), case("a real run in quiet", Live::steady())]
}

/// A hypervisor takes this share of both CPUs.
fn stolen(share: f64) -> Case {
    with_conditions(&format!("{share} stolen"), |conditions| conditions["steal_ms"] = json!(200.0 * share))
}

pub fn time_that_a_hypervisor_took() -> Vec<Case> {
    let (little, some, much) = (stolen(0.01), stolen(0.03), stolen(0.12));
    assert_verdict(&little, "trusted");
    assert_verdict(&some, "trusted_with_cause");
    assert_verdict(&much, "rejected");
    let moving = Moving::run();
    assert_eq!(findings(moving, "steal")[0]["effect"], "rejects");
    vec![little, some, much, case("stolen time in /proc/stat", moving.clone())]
}

pub fn no_stolen_time_or_next_to_none() -> Vec<Case> {
    vec![stolen(0.0), stolen(0.004), case("a real run in quiet", Live::steady())]
}

/// A run in a part of a hierarchy, in which the awake task had no CPU for one share of the time,
/// was in the run queue for another, and others had its CPU for a third.
fn stopped(off_cpu: f64, queued: f64, others: f64) -> Case {
    let tree = server();
    quota(&tree, "max 100000");
    let part = "31 23 0:28 /kubepods/pod1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    tree.file("/proc/self/mountinfo", part);
    let mut run = Edit::of(&format!("--quick --only {STEADY} --pretend 7 --root {}", tree.root().display()));
    run.each(|_, visit| {
        visit["process"]["awake_ms"] = json!(90.0);
        visit["process"]["off_cpu_ms"] = json!(90.0 * off_cpu);
        visit["process"]["queued_ms"] = json!(90.0 * queued);
        visit["conditions"]["busy_ms"] = json!(100.0 + 90.0 * others);
        visit["conditions"]["others_on_seats_ms"] = json!(90.0 * others);
    });
    let what = format!("no CPU for {off_cpu} of the time, queued for {queued}, others had {others}");
    case(what, run.diagnosed())
}

/// Where groups above are not seen their quotas are not called none, and show by their pauses.
#[test]
fn quotas_above_a_namespace_are_unseen_or_seen_by_their_pauses() {
    let held = stopped(0.6, 0.0, 0.0);
    assert_verdict(&held, "rejected");
    let finding = &findings(&held.results, "cpu-quota")[0];
    assert_eq!(finding["facts"][2]["source"], "/proc/self/cgroup, /proc/self/ns/cgroup", "{finding}");
    let headline = finding["headline"].as_str().expect("a text");
    assert!(headline.starts_with("Tasks stood still for 60 % of the time"), "{headline}");
    // Others took what it had to wait for; short ones are missed by the kernel's ticks.
    let quiet = [(0.0, 0.0, 0.0), (0.03, 0.0, 0.0), (0.6, 0.6, 0.6), (0.2, 0.18, 0.18), (0.2, 0.2, 0.05)];
    for (off_cpu, queued, others) in quiet {
        let quiet = stopped(off_cpu, queued, others);
        assert!(findings(&quiet.results, "cpu-quota").is_empty(), "{}", quiet.what);
        let not_applicable = quiet.results["rules_not_applicable"].as_array().expect("a list");
        assert!(not_applicable.contains(&"cpu-quota".into()), "{}", quiet.what);
    }
}

pub fn a_quota_that_throttles_or_would() -> Vec<Case> {
    let throttled = |ms: f64| {
        with_conditions(&format!("throttled {ms} of 100 ms"), |conditions| {
            conditions["throttled_ms"] = json!(ms)
        })
    };
    let (little, much) = (throttled(0.5), throttled(2.0));
    assert_verdict(&little, "trusted");
    assert_verdict(&much, "rejected");
    let planned =
        changed("half a CPU allowed, not yet throttled", STEADY, |tree| quota(tree, "50000 100000"));
    let fact = &findings(&planned.results, "cpu-quota")[0]["facts"][0];
    assert_eq!(
        (fact["value"].as_str(), fact["source"].as_str()),
        (Some("0.50 CPUs of 16"), Some("/sys/fs/cgroup/job"))
    );
    let moving = case("throttling counted in cpu.stat", Moving::run().clone());
    // By the run queue beside others, and on kernels that count pauses as time in it.
    let unseen = [stopped(0.6, 0.0, 0.0), stopped(0.6, 0.1, 0.9), stopped(0.6, 0.6, 0.0)];
    let mut cases = vec![little, much, planned, moving];
    cases.extend(unseen);
    match Group::new("cpu", &[("cpu.cfs_period_us", &50_000), ("cpu.cfs_quota_us", &25_000)]) {
        Ok(group) => {
            let held =
                Live::of(&format!("--only {STEADY} --budget 20s")).seen().any_end().inside(&group).run();
            let found = findings(&held, "cpu-quota");
            let finding = found.first().expect("a finding");
            let fact = |nth: usize| finding["facts"][nth]["value"].as_str().expect("a fact");
            assert!(fact(0).starts_with("0.50 CPUs"), "{finding}");
            // Where others leave it less than half a CPU, its quota never holds it.
            let counted = group.get("cpu.stat");
            let held_ns =
                counted.lines().find_map(|line| line.strip_prefix("throttled_time ")).expect("a counter");
            let held_ms: f64 = held_ns.parse::<f64>().expect("ns") / 1e6;
            let told_ms: f64 = fact(1).strip_suffix(" ms").expect("ms").parse().expect("a number");
            assert!(told_ms <= held_ms + 1.0, "{told_ms} of {held_ms} ms");
            // Others may have rejected it as well.
            if finding["effect"] == "rejects" {
                assert_eq!(series(&held, STEADY)["verdict"], "rejected", "{finding}");
            }
            cases.push(case("a real control group with half a CPU", held));
        }
        Err(why) => skipped("a_quota_that_throttles_or_would (a real control group)", why),
    }
    cases
}

pub fn a_quota_that_leaves_enough() -> Vec<Case> {
    vec![
        changed("no quota", STEADY, |tree| quota(tree, "max 100000")),
        changed("a quota of as many CPUs as there are", STEADY, |tree| quota(tree, "1600000 100000")),
        case("a real run in quiet", Live::steady()),
    ]
}

fn swapped(pages: f64) -> Case {
    let what = format!("{pages} pages swapped in each visit");
    with_conditions(&what, |conditions| conditions["swapped_pages"] = json!(pages))
}

pub fn pages_swapped_meanwhile() -> Vec<Case> {
    // 0.5 pages a second are reported, but the figure stays trusted.
    let (few, many) = (swapped(0.05), swapped(5.0));
    assert_verdict(&few, "trusted");
    assert_verdict(&many, "trusted_with_cause");
    vec![few, many, case("pages counted in /proc/vmstat", Moving::run().clone())]
}

pub fn no_page_swapped() -> Vec<Case> {
    vec![swapped(0.0), case("a real run in quiet", Live::steady())]
}

/// The tree shows steal for the first eight seconds, twice the budget.
#[test]
fn waiting_for_a_quiet_host_takes_nothing_from_the_budget() {
    let live = Live::of(&format!("--only {STEADY} --wait-idle --budget 4s"));
    let results = live.run_while(|ms| {
        let stolen = ms.min(8000) * allowed_cpus().len() as u64 / 30;
        vec![("proc/stat", stat(ms / 10, stolen)), ("proc/vmstat", vmstat(0, ms))]
    });
    // How many passes are enough depends on what others do here; after the wait one alone was made.
    assert!(series(&results, STEADY)["n"].as_u64() > Some(1), "{}", series(&results, STEADY));
}
