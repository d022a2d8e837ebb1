//! Tasks that the scheduler prefers to ours: at the thresholds, and a real one.

use std::time::Duration;

use serde_json::{Value, json};

use super::edited::Edit;
use super::environment::{STEADY, assert_verdict};
use super::live::{Live, first_seat};
use super::{Case, case};
use crate::host::{RealTime, skipped};
use crate::runs::findings;

/// Another process that is seen beside the case and uses this part of a CPU, which the CPUs'
/// counters confirm.
struct Somebody {
    policy: &'static str,
    priority: u32,
    nice: i32,
    /// On the case's own CPU, or on the next.
    elsewhere: bool,
}

const REAL_TIME: Somebody = Somebody { policy: "SCHED_FIFO", priority: 50, nice: 0, elsewhere: false };
const PREFERRED: Somebody = Somebody { policy: "SCHED_OTHER", priority: 0, nice: -10, elsewhere: false };
const ORDINARY: Somebody = Somebody { policy: "SCHED_OTHER", priority: 0, nice: 0, elsewhere: false };
const ELSEWHERE: Somebody = Somebody { elsewhere: true, ..REAL_TIME };

/// A run in which others use the share `used` of its CPU, and `somebody` was seen to use `seen`.
fn beside(somebody: &Somebody, used: f64, seen: f64) -> Case {
    let mut run = Edit::invented(STEADY);
    let seat = seat(&mut run) + u32::from(somebody.elsewhere);
    run.conditions(|_, conditions| {
        occupied(conditions, used);
        conditions["neighbours"] = json!([{
            "name": "irq-thread", "pid": 4711, "cpus": seen, "cpu": seat,
            "policy": somebody.policy, "priority": somebody.priority, "nice": somebody.nice,
        }]);
    });
    let what = format!(
        "{} {} nice {} seen to use {seen} of {used}, elsewhere: {}",
        somebody.policy, somebody.priority, somebody.nice, somebody.elsewhere
    );
    case(what, run.diagnosed())
}

fn seat(run: &mut Edit) -> u32 {
    let cpus = &run.header()["plan"][0]["case"]["placement"]["seats"][0]["cpus"];
    cpus.as_str().and_then(|cpus| cpus.parse().ok()).expect("one CPU")
}

fn occupied(conditions: &mut Value, share: f64) {
    conditions["busy_ms"] = json!(100.0 + 100.0 * share);
    conditions["others_on_seats_ms"] = json!(100.0 * share);
}

/// Others use the share `used`, none of them is seen, and the task waits for `share` of its
/// windows, in stretches of `stretch_ms`.
fn waiting(used: f64, share: f64, stretch_ms: f64, throttled_ms: f64) -> Case {
    waiting_beside(json!([]), used, share, stretch_ms, throttled_ms)
}

/// The same where this was seen of the others; null: they were not looked at.
fn waiting_beside(seen: Value, used: f64, share: f64, stretch_ms: f64, throttled_ms: f64) -> Case {
    let mut run = Edit::invented(STEADY);
    run.conditions(|_, conditions| {
        occupied(conditions, used);
        conditions["neighbours"] = seen.clone();
        conditions["throttled_ms"] = json!(throttled_ms);
    });
    run.samples(|_, samples| {
        let ns: Vec<f64> = serde_json::from_value(samples["ns"].clone()).expect("a column");
        let waits: Vec<f64> = ns.iter().map(|ns| ns * share).collect();
        let pushed: Vec<f64> = waits.iter().map(|wait| wait / (stretch_ms * 1e6)).collect();
        samples["beside"]["wait_ns"] = json!(waits);
        samples["beside"]["involuntary"] = json!(pushed);
    });
    let what =
        format!("waiting {share} of the time, {stretch_ms} ms at once, {throttled_ms} of 100 ms throttled");
    case(what, run.diagnosed())
}

pub fn tasks_that_go_first() -> Vec<Case> {
    let (some, much) = (beside(&REAL_TIME, 0.06, 0.06), beside(&REAL_TIME, 0.5, 0.5));
    assert_verdict(&some, "trusted_with_cause");
    assert_verdict(&much, "rejected");
    let finding = &findings(&much.results, "higher-priority")[0];
    let named =
        finding["headline"].as_str().is_some_and(|text| text.starts_with("Task irq-thread (SCHED_FIFO 50)"));
    assert!(named, "{finding}");
    let mut cases = vec![
        some,
        much,
        // The smaller of both counts is what it is blamed for.
        beside(&REAL_TIME, 0.9, 0.06),
        beside(&PREFERRED, 0.5, 0.5),
        waiting(0.7, 0.6, 25.0, 0.0),
    ];
    let ms = Duration::from_millis;
    match RealTime::on(first_seat(STEADY), ms(5), ms(5)) {
        Ok(neighbour) => {
            // The 0.3 s below which a case is not judged take a visit of the standard profile each
            // 0.1 s.
            let words = format!("--only {STEADY} --profile standard --budget 4s");
            let held = case("a real one", Live::of(&words).seen().ending(3).run());
            drop(neighbour);
            assert_verdict(&held, "rejected");
            let facts = findings(&held.results, "higher-priority")[0]["facts"].to_string();
            assert!(facts.contains("SCHED_FIFO 50"), "it is not named: {facts}");
            cases.push(held);
        }
        Err(why) => skipped("tasks_that_go_first (a real one)", why),
    }
    cases
}

pub fn neighbours_that_wait_their_turn() -> Vec<Case> {
    let ordinary =
        json!([{"name": "irq-thread", "pid": 4711, "cpus": 0.7, "cpu": 0, "policy": "SCHED_OTHER"}]);
    vec![
        waiting_beside(ordinary, 0.7, 0.6, 25.0, 0.0),
        beside(&ORDINARY, 0.5, 0.5),
        beside(&ELSEWHERE, 0.5, 0.5),
        beside(&REAL_TIME, 0.04, 0.04),
        // It was there, and did not use this CPU; or others used it, and it hardly ran.
        beside(&REAL_TIME, 0.02, 0.5),
        beside(&REAL_TIME, 0.5, 0.03),
        waiting(0.7, 0.6, 15.0, 0.0),
        // Seven fair neighbours make such waits.
        waiting(0.9, 0.86, 30.0, 0.0),
        waiting_beside(Value::Null, 0.7, 0.6, 25.0, 0.0),
        waiting(0.7, 0.4, 25.0, 0.0),
        waiting(0.1, 0.6, 25.0, 0.0),
        waiting(0.7, 0.6, 25.0, 5.0),
        case("a real run in quiet", Live::steady()),
    ]
}
