//! The other thread of a core, seen by what it takes from a loop of branches.

use serde_json::json;

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::{findings, recorded};

/// Invented rows on a host whose loop of branches takes `cycles` in each visit; windows beside
/// another thread take 1.4 times as long.
fn fetching(machine: &str, what: &str, cycles: impl Fn(usize) -> f64) -> Case {
    let mut run =
        Edit::of(&format!("--quick --only syscall.getpid,syscall.read,cpu.clock --pretend 7 {machine}"));
    run.samples(|visit, samples| {
        samples["beside"]["fetch_cycles"] = json!(cycles(visit));
        let longer = if cycles(visit) > 1.6 { 1.4 } else { 1.0 };
        for ns in samples["ns"].as_array_mut().into_iter().flatten() {
            *ns = json!(ns.as_f64().expect("ns") * longer);
        }
    });
    case(format!("{what}, {machine}"), run.diagnosed())
}

/// As in files of before.
fn unlooked(machine: &str) -> Case {
    let mut run = Edit::of(&format!("--quick --only syscall.getpid --pretend 7 {machine}"));
    run.samples(|_, samples| {
        samples["beside"].as_object_mut().expect("columns").remove("fetch_cycles");
    });
    case("not looked at", run.diagnosed())
}

/// Two cycles in the first of each `nth` visits, one in the others.
fn every(nth: usize) -> impl Fn(usize) -> f64 {
    move |visit| if visit % nth == 0 { 2.05 } else { 1.0 }
}

pub fn cores_whose_other_thread_was_busy() -> Vec<Case> {
    let guest = format!("--from {}", recorded());
    let tree = server();
    let metal = format!("--root {}", tree.root().display());
    let cases = vec![
        fetching(&guest, "in every second visit", every(2)),
        fetching(&guest, "in every fifth", every(5)),
        fetching(&metal, "in every second", every(2)),
    ];
    let text = |case: &Case| findings(&case.results, "shared-core")[0].to_string();
    for words in ["% of the run. Work then takes 1.40 times", "steal is zero", "2.05 cycles per round"] {
        assert!(text(&cases[0]).contains(words), "{words}: {}", text(&cases[0]));
    }
    assert!(text(&cases[2]).contains("SMT sibling"), "{}", text(&cases[2]));
    cases
}

pub fn cores_that_fetch_for_one_thread() -> Vec<Case> {
    let guest = format!("--from {}", recorded());
    // A core that was never measured alone has no value to compare with, nor have older files.
    let unknown = [fetching(&guest, "always shared, or another kind of core", |_| 2.05), unlooked(&guest)];
    for case in unknown {
        let silent = case.results["rules_not_applicable"].as_array().expect("rules");
        assert!(silent.iter().any(|rule| rule == "shared-core"), "{}", case.what);
    }
    vec![
        fetching(&guest, "alone", |_| 1.0),
        fetching(&guest, "alone, as readings scatter", |visit| [1.0, 1.02, 1.3][visit % 3]),
    ]
}
