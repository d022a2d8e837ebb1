//! Series that are not one steady value.

use super::edited::Edit;
use super::live::Live;
use super::{Case, case};
use crate::host::skipped;
use crate::runs::{findings, series};

const STEADY: &str = "selftest.steady";

/// Invented processes at these levels, with 0.3 % of scatter.
fn at_levels(what: &str, processes: usize, level: impl Fn(usize) -> f64) -> Case {
    scattered(what, processes, 0.003, level)
}

fn scattered(what: &str, processes: usize, spread: f64, level: impl Fn(usize) -> f64) -> Case {
    let mut run = Edit::invented(STEADY);
    run.repeated(processes, spread, level);
    case(what, run.diagnosed())
}

pub fn values_that_move() -> Vec<Case> {
    let rising = at_levels("rising by 1 % with every process", 20, |process| 1.0 + 0.01 * process as f64);
    assert_eq!(series(&rising.results, STEADY)["verdict"], "drifting");
    let stepping =
        at_levels("a step of 20 % in the middle", 30, |process| if process < 15 { 1.0 } else { 1.2 });
    let fact = &findings(&stepping.results, "drift")[0]["facts"][0];
    assert!(fact["value"].as_str().is_some_and(|value| value.contains("steps from")), "{fact}");
    let mut cases = vec![rising, stepping];
    // For real, 2 % slower with every process; other load can drown that, and is then reported
    // itself.
    let live = Live::of("--only selftest.drift --profile standard --budget 15s").seen().any_end().run();
    match findings(&live, "background-load").first() {
        None => cases.push(case("a benchmark that slows down", live)),
        Some(load) => skipped("values_that_move (a real run)", &load["headline"]),
    }
    cases
}

pub fn values_that_stay() -> Vec<Case> {
    vec![
        at_levels("a level", 20, |_| 1.0),
        scattered("a level with much scatter", 30, 0.05, |_| 1.0),
        // It does move, but by less than chance gives one series of many: only the verdict shows
        // it.
        at_levels("rising by 2 % in all", 20, |process| 1.0 + 0.001 * process as f64),
    ]
}

pub fn two_values_instead_of_one() -> Vec<Case> {
    let two = at_levels(
        "every third process 1.4 times slower",
        60,
        |process| if process % 3 == 1 { 1.4 } else { 1.0 },
    );
    assert_eq!(series(&two.results, STEADY)["verdict"], "multimodal");
    let reason = series(&two.results, STEADY)["reason"].as_str().expect("a reason").to_string();
    assert!(reason.contains("ratio 1.40") || reason.contains("ratio 1.4"), "{reason}");
    vec![two]
}

pub fn one_value_however_wide() -> Vec<Case> {
    vec![
        at_levels("one level", 60, |_| 1.0),
        scattered("one wide level", 60, 0.1, |_| 1.0),
        at_levels("one process far out", 60, |process| if process == 30 { 2.0 } else { 1.0 }),
        // Too few processes to distinguish two levels from scatter: suspected, and said so in the
        // verdict only.
        at_levels("two levels in twelve processes", 12, |process| if process % 3 == 1 { 1.4 } else { 1.0 }),
    ]
}
