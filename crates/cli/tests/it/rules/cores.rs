//! Cores beside each other: one that lags, all alike, and two of which one may be odd.

use serde_json::json;

use super::crafted::{bandwidth, crafted};
use super::{Case, case};
use crate::runs::{findings, series};

/// All cores at 180 GB/s, but these.
fn cores(what: &str, count: u32, odd: &[(u32, f64)], spread: f64) -> Case {
    let value = |cpu: u32| odd.iter().find(|(other, _)| *other == cpu).map_or(180.0, |(_, value)| *value);
    let points: Vec<_> = (0..count).map(|cpu| (json!({"cpu": cpu}), value(cpu))).collect();
    case(what, crafted("memory.cores", json!({}), bandwidth(), &points, spread).diagnosed())
}

pub fn cores_that_lag() -> Vec<Case> {
    let cases = vec![
        cores("one of 4", 4, &[(2, 160.0)], 0.003),
        cores("one of 16", 16, &[(7, 160.0)], 0.003),
        cores("two of 64", 64, &[(7, 170.0), (40, 100.0)], 0.003),
        cores("one of 2", 2, &[(1, 160.0)], 0.003),
    ];
    let headline = |index: usize, finding: usize| {
        findings(&cases[index].results, "odd-core")[finding]["headline"].to_string()
    };
    assert!(headline(0, 0).contains("CPU 2 is 11 % slower") && headline(1, 0).contains("CPU 7 is"));
    assert!(
        headline(2, 0).contains("CPU 7 is 5.") && headline(2, 1).contains("CPU 40 is 44 %"),
        "{}",
        headline(2, 0)
    );
    assert!(headline(3, 0).contains("it is unknown which one"));
    assert_eq!(series(&cases[1].results, "memory.cores@one-cpu/cpu=7#")["verdict"], "trusted_with_cause");
    assert_eq!(series(&cases[1].results, "memory.cores@one-cpu/cpu=8#")["verdict"], "trusted");
    cases
}

pub fn cores_that_keep_up() -> Vec<Case> {
    vec![
        cores("16 alike", 16, &[], 0.003),
        cores("2 alike", 2, &[], 0.003),
        cores("2 per cent", 16, &[(3, 176.4)], 0.003),
        cores("a faster one", 16, &[(3, 220.0)], 0.003),
        cores("noise", 16, &[(3, 172.0)], 0.08),
        cores("noise of two", 2, &[(1, 172.0)], 0.08),
    ]
}
