//! Machines that were made up, and what their studies come to.

use super::*;
use crate::model::{CpuSet, Params, Placement, Samples, Seat};
use crate::stats::run_of::{run, samples, visit};

/// A case of this kind of work on these CPUs.
pub fn case(name: &'static str, cpus: &[u32], kind: &str) -> Case {
    let seat = |cpu: &u32| Seat {
        role: "task".into(),
        host: None,
        cpus: CpuSet::one(*cpu),
        mem_nodes: CpuSet::default(),
    };
    Case {
        bench: LOAD.into(),
        placement: Placement {
            name: name.into(),
            seats: cpus.iter().map(seat).collect(),
            pages: Default::default(),
            beside: Default::default(),
            neighbours: Vec::new(),
        },
        params: Params::from([("kind".to_string(), kind.into()), ("levels".to_string(), 7u64.into())]),
        knobs: Default::default(),
        inputs: [("no_ipc".to_string(), "this machine was made up".to_string())].into(),
    }
}

/// A machine whose second thread yields `s`, at the levels of a study: one thread does 100 M/s at full load.
pub fn made(s: f64, smt: bool) -> Run {
    let second = if smt { SIBLING } else { "same-llc" };
    let cases = [case(ONE, &[1], MAIN), case(second, &[1, 3], MAIN)];
    let planned =
        |case: &Case| Planned { case: case.clone(), priority: 1, seconds: 1.0, memory_bytes: 0, unmet: None };
    let mut visits = Vec::new();
    for pass in 0..15u32 {
        for index in 0..2u32 {
            // Up and down alike, of both arms.
            let noise = match index {
                0 => 0.998 + 0.002 * f64::from(pass % 3),
                _ => 0.996 + 0.002 * f64::from(pass % 5),
            };
            let all = (1..=7).flat_map(|level| at_level(level, index == 1, s, noise)).collect();
            visits.push(visit(visits.len() as u32, index, pass, all));
        }
    }
    let mut made = run(2, visits);
    made.header.plan = cases.iter().map(planned).collect();
    made.header.catalogue = vec![title()];
    made
}

fn title() -> crate::model::Title {
    use crate::model::{Better, Form, Metric, Title, View};
    let one = |name: &'static str, unit| Metric::new(name, name, unit, Better::Higher, Form::Value);
    let aside = |name, unit| one(name, unit).aside();
    Title {
        id: LOAD.into(),
        title: "Work at rising load".into(),
        about: "".into(),
        reading: "".into(),
        metrics: vec![
            one("performance", "M/s"),
            aside("cpu", "%"),
            aside("per_busy", "M/s"),
            aside("busy_one", "%"),
            aside("busy_both", "%"),
            aside("p99", "us"),
            aside("wall", "s"),
            aside("attainment", "M/s"),
        ],
        view: View::Curve { x: "level".into(), log: false },
    }
}

/// Requests of 200 us alone, as long together as the yield makes them while both are at work.
fn at_level(level: u64, both: bool, s: f64, noise: f64) -> Vec<Samples> {
    let duty = level as f64 / 7.0;
    let rest = 200.0 * (1.0 / duty - 1.0);
    // While the other is busy, each goes at half of what both yield.
    let took_beside = |busy: f64| if both { 200.0 / (1.0 - busy * (1.0 - s / 2.0)) } else { 200.0 };
    let mut busy = duty;
    // Overlap lengthens requests, and longer requests overlap more.
    for _ in 0..200 {
        let took = took_beside(busy);
        busy = took / (took + rest);
    }
    let tasks = if both { 2.0 } else { 1.0 };
    let took = took_beside(busy);
    let work = tasks * 100.0 * 200.0 / (took + rest) * noise;
    let point = Params::from([("level".to_string(), level.into())]);
    let one = |metric: &str, value: f64| Samples { point: point.clone(), ..samples(metric, 0, &[value]) };
    let mut all = vec![
        one("performance", work),
        one("cpu", 100.0 * tasks * busy),
        one("per_busy", work / (tasks * busy)),
        one("p99", took * noise),
        one("wall", 0.6),
        one("attainment", work / (100.0 * tasks * busy)),
    ];
    if both {
        all.push(one("busy_one", 200.0 * busy * (1.0 - busy)));
        all.push(one("busy_both", 100.0 * busy * busy));
    }
    all
}

fn judged(run: &Run) -> Vec<Judged> {
    crate::stats::analysis::judge_run(run)
}

#[test]
fn the_yield_and_the_gap_of_a_core() {
    let run = made(1.25, true);
    let series = judged(&run);
    let levels = Levels::of(&series);
    let study = study(&run, &levels).expect("a study");
    let second = study.main().expect("loop");
    assert!((second.found.throughput.value.mid - 1.25).abs() < 0.02, "{:?}", second.found);
    assert!((study.range().expect("a yield").mid - 1.25).abs() < 0.02);
    // One thread at full load: CPU% says half, and 1 / 1.25 is used.
    let gap = study.gap().expect("a gap");
    assert!((gap.gap - 0.3).abs() < 0.02 && (gap.at - 0.5).abs() < 0.02, "{gap:?}");
    assert!(second.p99.as_ref().is_some_and(|ratio| (ratio.ratio - 1.6).abs() < 0.02));
    let capacity = study.whole().and_then(Arm::curve).expect("a curve").capacity(study.keep);
    assert!((capacity.most - 125.0).abs() < 2.0 && (capacity.kept - 100.0).abs() < 2.0, "{capacity:?}");
    // The used share by time with one and with both at work is what was done of what can be.
    for level in &study.pair().expect("siblings").levels {
        let used = level.used(second.found.throughput.value, true).expect("known").mid;
        let done = level.median("performance").expect("measured") / capacity.most;
        assert!((used - done).abs() < 0.01, "level {}: {used} used, {done} done", level.level);
    }
}

#[test]
fn a_study_without_siblings_tells_no_yield() {
    let of = |s: f64, smt: bool| yield_of_study(&crate::diagnose::diagnose(made(s, smt)));
    assert!(of(1.25, true).is_some_and(|found| (found.mid - 1.25).abs() < 0.02));
    assert_eq!(of(2.0, false), None);
}

#[test]
fn two_cores_are_a_straight_line() {
    let run = made(2.0, false);
    let series = judged(&run);
    let levels = Levels::of(&series);
    let study = study(&run, &levels).expect("a study");
    assert!(!study.smt);
    assert!((study.main().expect("loop").found.throughput.value.mid - 2.0).abs() < 0.02);
    assert!(study.gap().expect("a gap").gap.abs() < 0.02);
    let level = &study.pair().expect("two cores").levels[3];
    let used = level.used(Yield::exactly(2.0), false).expect("known").mid;
    assert!((used - level.median("cpu").expect("measured") / 200.0).abs() < 1e-9);
}
