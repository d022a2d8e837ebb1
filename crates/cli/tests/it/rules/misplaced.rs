//! Tasks on the CPUs of their seats, and elsewhere.

use serde_json::{Value, json};

use super::edited::Edit;
use super::environment::{STEADY, assert_verdict};
use super::live::Live;
use super::{Case, case};
use crate::runs::findings;

/// A run of one task of which each window begins and ends on these CPUs, by the CPU of its seat and
/// the number of the window.
fn windows_on(what: &str, cpus: impl Fn(u64, usize) -> (Value, Value)) -> Case {
    let mut run = Edit::invented(STEADY);
    let seat = run.header()["plan"][0]["case"]["placement"]["seats"][0]["cpus"].clone();
    let seat: u64 = seat.as_str().and_then(|text| text.parse().ok()).expect("one CPU");
    run.samples(|_, samples| {
        let windows = samples["ns"].as_array().expect("a column").len();
        let (start, end): (Vec<Value>, Vec<Value>) = (0..windows).map(|at| cpus(seat, at)).unzip();
        samples["beside"]["cpu_start"] = json!(start);
        samples["beside"]["cpu_end"] = json!(end);
    });
    case(what, run.diagnosed())
}

fn both(cpu: u64) -> (Value, Value) {
    (json!(cpu), json!(cpu))
}

pub fn tasks_that_were_elsewhere() -> Vec<Case> {
    let all = windows_on("always on another CPU", |seat, _| both(seat + 1));
    assert_verdict(&all, "rejected");
    let finding = &findings(&all.results, "misplaced-task")[0];
    let headline = finding["headline"].as_str().expect("a text");
    assert!(headline.starts_with("CPU ") && headline.contains(" for 100 %, not CPU "), "{headline}");
    assert_eq!((&finding["severity"], &finding["effect"]), (&json!("problem"), &json!("rejects")));
    // A window that ends elsewhere was moved in its middle.
    let moved =
        windows_on("moved in a window", |seat, at| (json!(seat), json!(seat + u64::from(at % 2 == 0))));
    assert_verdict(&moved, "rejected");
    vec![all, moved]
}

pub fn tasks_on_their_seats() -> Vec<Case> {
    let seated = windows_on("on their seats", |seat, _| both(seat));
    assert_verdict(&seated, "trusted");
    vec![seated, case("a real run", Live::steady())]
}

/// A value that is no CPU's number does not show where a task was.
#[test]
fn damaged_numbers_of_cpus_are_none() {
    for number in [-1.0, 0.5, 1e12] {
        let damaged = windows_on("damaged", move |_, _| (json!(number), json!(number)));
        assert!(findings(&damaged.results, "misplaced-task").is_empty(), "{number}");
        let not_applicable = damaged.results["rules_not_applicable"].as_array().expect("a list");
        assert!(not_applicable.contains(&"misplaced-task".into()), "{number}: {not_applicable:?}");
    }
}
