//! Wrong answers and failures, by the benchmarks that plant them.

use serde_json::{Value, json};

use super::edited::Edit;
use super::live::Live;
use super::{Case, case};
use crate::runs::{findings, series};

/// A planted fault beside a case that works.
fn beside_a_clean_case(fault: &str) -> Case {
    let results = Live::of(&format!("--only selftest.steady,{fault} --visit-limit 6s --budget 30s")).run();
    assert_ne!(series(&results, "selftest.steady")["verdict"], "rejected", "{fault} reached its neighbour");
    assert_eq!(series(&results, fault)["verdict"], "rejected", "{fault}");
    case(fault, results)
}

pub fn a_wrong_answer_rejects_its_case() -> Vec<Case> {
    let wrong = beside_a_clean_case("selftest.wrong-answer");
    let found = findings(&wrong.results, "wrong-answer");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0]["severity"].as_str(), found[0]["effect"].as_str()),
        (Some("problem"), Some("rejects"))
    );
    assert!(findings(&wrong.results, "failed-case").is_empty(), "it is told twice");
    vec![wrong]
}

pub fn right_answers_are_called_so() -> Vec<Case> {
    // A crash is no wrong answer.
    let crash = Live::of("--only selftest.crash --budget 5s").ending(3).run();
    vec![case("steady", Live::steady()), case("a crash", crash)]
}

pub fn a_crash_a_hang_and_a_kill_are_told() -> Vec<Case> {
    ["selftest.crash", "selftest.hang", "selftest.killed", "selftest.garbage"]
        .map(beside_a_clean_case)
        .into_iter()
        .collect()
}

pub fn cases_that_work_are_no_failures() -> Vec<Case> {
    vec![case("steady", Live::steady())]
}

/// In a run of several benchmarks, one case after the other answers wrongly: all that is said of
/// the others stays as it was, to the letter.
#[test]
fn a_wrong_answer_touches_its_case_only() {
    // None of these leans on another's numbers, as a placement's finding does on those of the other
    // placements.
    let of = "selftest.steady,selftest.modes,selftest.drift,syscall.getpid,cpu.clock";
    let mut clean = Edit::invented(of);
    let plan = clean.header()["plan"].as_array().expect("a plan").clone();
    let before = clean.diagnosed();
    let said = |results: &Value| results["series"].as_array().expect("a list").clone();
    let mut planted = 0;
    for (number, planned) in plan.iter().enumerate().filter(|(_, planned)| planned["unmet"].is_null()) {
        let mut run = Edit::invented(of);
        run.each(|_, visit| {
            if visit["case"] == json!(number) && visit["pass"] == json!(1) {
                visit["reason"] = json!({"kind": "wrong-answer", "why": "planted: two and two made five"});
            }
        });
        let after = run.diagnosed();
        let found = findings(&after, "wrong-answer");
        assert_eq!(found.len(), 1, "{planned}");
        let own: Vec<&Value> = found[0]["series"].as_array().expect("a list").iter().collect();
        assert!(!own.is_empty(), "{planned}");
        for (old, new) in said(&before).iter().zip(said(&after)) {
            match own.contains(&&new["key"]) {
                true => assert_eq!(new["verdict"], "rejected", "{planned}"),
                false => assert_eq!(*old, new, "{planned} reached its neighbour"),
            }
        }
        planted += 1;
    }
    assert!(planted >= 4, "{planted} cases");
}
