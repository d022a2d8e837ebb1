//! Comparisons of small results.

use super::*;
use crate::import;
use crate::model::{Form, Metric, Verdict};

fn member(key: &str, unit: &'static str, better: Better, medians: &[f64]) -> Member {
    let keyed = import::keyed(key).expect("a key");
    let metric = Metric::new("latency", "latency", unit, better, Form::Value);
    Member {
        key: key.to_string(),
        case: keyed.case,
        point: keyed.point,
        metric: Metric { name: keyed.metric.into(), ..metric },
        title: "Test".into(),
        medians: medians.to_vec(),
        median: crate::stats::order::median(medians).unwrap_or(f64::NAN),
        verdict: Verdict::trusted(),
        note: String::new(),
    }
}

fn arm(host: &str, imported: bool, members: Vec<Member>) -> Arm {
    Arm {
        host: host.into(),
        file: format!("{host}.file"),
        imported,
        pretended: false,
        environment: Vec::new(),
        members,
    }
}

/// Eight processes around a level.
fn around(level: f64) -> Vec<f64> {
    (0..8).map(|at| level * (1.0 + 0.001 * f64::from(at))).collect()
}

fn words(comparison: &Comparison) -> Vec<(Word, String)> {
    comparison.metrics.iter().map(|one| (one.word, format!("{:.2}", one.ratio))).collect()
}

#[test]
fn faster_slower_and_the_same() {
    let arm = |host: &str, factor: f64| {
        let one = |key: &str, unit, better, level: f64| member(key, unit, better, &around(level));
        arm(
            host,
            false,
            vec![
                one("a.same@one-cpu#latency", "ns", Better::Lower, 5.0),
                one("a.time@one-cpu#latency", "ns", Better::Lower, 5.0 * factor),
                one("a.rate@one-cpu#rate", "1/s", Better::Higher, 5.0 * factor),
                one("a.fact@one-cpu#share", "", Better::Neither, 5.0 * factor),
            ],
        )
    };
    let slower = compare(&arm("old", 1.0), &arm("new", 1.5), 0.02);
    let expected =
        [(Word::Same, "1.00"), (Word::Slower, "1.50"), (Word::Faster, "1.50"), (Word::Higher, "1.50")];
    assert_eq!(words(&slower), expected.map(|(word, ratio)| (word, ratio.to_string())));
    let [low, high] = slower.metrics[1].ci95.expect("eight processes");
    assert!(low < 1.5 && 1.5 < high && high - low < 0.02);
    assert_eq!(slower.metrics[0].words, "same within 2 %");
    assert!(slower.refused.is_empty() && slower.alone == [0, 0]);
    let back = compare(&arm("new", 1.5), &arm("old", 1.0), 0.02);
    assert_eq!(back.metrics[1].word, Word::Faster);
    // One that the other lacks is counted.
    let mut more = arm("new", 1.0);
    more.members.push(member("b.more@one-cpu#latency", "ns", Better::Lower, &[1.0]));
    assert_eq!(compare(&arm("old", 1.0), &more, 0.02).alone, [0, 1]);
}

#[test]
fn few_processes_and_imported_values_conclude_nothing() {
    let few = |host, imported, values: &[f64]| {
        arm(host, imported, vec![member("a.time@one-cpu#latency", "us", Better::Lower, values)])
    };
    let found = compare(&few("old", false, &[1.0, 1.0]), &few("new", false, &[9.0, 9.0]), 0.02);
    assert_eq!((found.metrics[0].word, found.metrics[0].ci95), (Word::Inconclusive, None));
    assert!(found.metrics[0].words.contains("too few"), "{}", found.metrics[0].words);
    // In another unit: 0.5 us are 500 ns.
    let mut new = few("new", false, &around(250.0));
    new.members[0].metric.unit = "ns".into();
    let found = compare(&few("old", true, &[0.5]), &new, 0.02);
    assert_eq!((found.metrics[0].word, found.metrics[0].a), (Word::Unverified, 500.0));
    assert!((found.metrics[0].ratio - 0.50175).abs() < 1e-9, "{}", found.metrics[0].ratio);
}

#[test]
fn what_must_not_be_compared_is_refused_with_its_factor() {
    let one = |key: &str, unit, values: &[f64]| member(key, unit, Better::Lower, values);
    let old = arm(
        "old",
        true,
        vec![
            one("ipc.pipe@free#latency", "us", &[5.0]),
            one("memory.latency@one-cpu?order=random/bytes=largest#latency", "ns", &[90.0]),
            one("memory.latency@one-cpu?order=stride&stride=64/bytes=4096#latency", "ns", &[1.0]),
            one("a.unit@one-cpu#latency", "us", &[1.0]),
            one("a.rejected@one-cpu#latency", "us", &[1.0]),
            one("a.base@one-cpu#latency", "us", &[1.0]),
        ],
    );
    let mut new = arm(
        "new",
        false,
        vec![
            one("ipc.pipe@one-cpu#latency", "us", &around(5.0)),
            one("memory.latency@one-cpu+base-pages?order=random/bytes=4096#latency", "ns", &around(90.0)),
            one(
                "memory.latency@one-cpu+huge-pages?order=stride&stride=64/bytes=4096#latency",
                "ns",
                &around(1.0),
            ),
            one("a.unit@one-cpu#latency", "GB/s", &around(1.0)),
            one("a.rejected@one-cpu#latency", "us", &around(1.0)),
            one("a.base@one-cpu+base-pages#latency", "us", &around(1.0)),
        ],
    );
    new.members[4].verdict = Verdict::new(VerdictKind::Rejected, "wrong answer");
    let found = compare(&old, &new, 0.02);
    let refused: Vec<(&str, &str)> =
        found.refused.iter().map(|one| (one.factor.as_str(), one.reason.as_str())).collect();
    assert_eq!(
        refused,
        [
            ("placement", "free in A, one-cpu in B"),
            ("size", "A does not tell at which size it was measured"),
            ("pages", "as given in A, huge in B"),
            ("unit", "\"us\" in A, \"GB/s\" in B"),
            ("verdict", "rejected in B: wrong answer"),
        ]
    );
    assert_eq!(
        (found.metrics.len(), found.metrics[0].note.as_str()),
        (1, "base pages against pages as the system gave them")
    );
    // Invented samples are compared with invented ones only.
    let mut pretended = new.clone();
    pretended.pretended = true;
    let found = compare(&new, &pretended, 0.02);
    assert!(found.metrics.is_empty() && found.refused.iter().all(|one| one.factor == "samples"));
    assert_eq!(compare(&pretended, &pretended, 0.02).metrics.len(), 5);
}

#[test]
fn nothing_is_divided_by_zero() {
    let zero = |host, values: &[f64]| {
        arm(host, false, vec![member("a.time@one-cpu#latency", "us", Better::Lower, values)])
    };
    for (a, b) in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1e-308, 1e308)] {
        let found = compare(&zero("old", &[a; 8]), &zero("new", &[b; 8]), 0.02);
        assert!(found.metrics.is_empty() && found.refused[0].factor == "value", "{a} {b}: {found:?}");
    }
}

#[test]
fn environments_differ_where_they_say_so() {
    let told = |pairs: &[(&str, &str)]| {
        let mut arm = arm("x", false, Vec::new());
        arm.environment = pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        arm
    };
    let old = told(&[
        ("kernel", "5.15.0-…"),
        ("core_clock", "2998 MHz"),
        ("cpus", "8"),
        ("steal", "0.1 %"),
        ("dimm", "1"),
    ]);
    let new = told(&[
        ("kernel", "5.15.0-91"),
        ("core_clock", "3010 MHz"),
        ("cpus", "2"),
        ("steal", "9 %"),
        ("turbo", "on"),
    ]);
    let (different, untold) = arm::differences(&old, &new);
    let labels: Vec<&str> = different.iter().map(|one| one.label.as_str()).collect();
    assert_eq!((labels, untold), (vec!["cpus", "steal"], vec!["dimm".to_string(), "turbo".to_string()]));
    assert!(arm::differences(&new, &new).0.is_empty());
}
