//! Memory that runs short: at the thresholds, and for real in a control group.

use serde_json::{Value, json};

use super::environment::{STEADY, assert_verdict, with_conditions};
use super::live::Live;
use super::{Case, case};
use crate::host::{ShortOfMemory, skipped};
use crate::runs::findings;

/// Every visit of 100 ms meets these.
fn met(conditions: Value) -> Case {
    with_conditions(&conditions.to_string(), |all| {
        for (name, value) in conditions.as_object().expect("conditions by name") {
            all[name] = value.clone();
        }
    })
}

pub fn memory_that_ran_short() -> Vec<Case> {
    let told = [
        json!({"psi_memory_ms": 1.5}),
        json!({"group_psi_memory_ms": 1.5}),
        json!({"reclaim_stalls": 2}),
        json!({"limit_hits": 2}),
        json!({"oom_kills": 1}),
        // Others' pressure need not have touched us, however much it is.
        json!({"psi_memory_ms": 60, "limit_hits": 0}),
    ];
    let rejected = [json!({"group_psi_memory_ms": 11}), json!({"psi_memory_ms": 11, "limit_hits": 2})];
    let mut cases: Vec<Case> = told.into_iter().map(met).collect();
    cases.iter().for_each(|case| assert_verdict(case, "trusted_with_cause"));
    for case in rejected.into_iter().map(met) {
        assert_verdict(&case, "rejected");
        cases.push(case);
    }
    match ShortOfMemory::new() {
        Ok(short) => {
            let words = format!("--only {STEADY} --budget 4s");
            let held =
                case("a real control group", Live::of(&words).seen().any_end().inside(&short.group).run());
            let finding = findings(&held.results, "memory-pressure").first().copied().cloned();
            let facts = finding.map_or(Value::Null, |finding| finding["facts"].clone()).to_string();
            assert!(facts.contains("a memory limit was met"), "{facts}");
            cases.push(held);
        }
        Err(why) => skipped("memory_that_ran_short (a real control group)", why),
    }
    cases
}

pub fn memory_that_was_enough() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        json!({"psi_memory_ms": 0.5}),
        json!({"reclaim_stalls": 0.05, "limit_hits": 0.05}),
        json!({"refaulted_pages": 5000}),
    ]
    .into_iter()
    .map(met)
    .collect();
    cases.iter().for_each(|case| assert_verdict(case, "trusted"));
    cases.push(case("a real run in quiet", Live::steady()));
    cases
}
