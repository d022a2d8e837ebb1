//! The table of benchmarks holds what it promises.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::time::Duration;

use super::*;
use crate::model::{CpuSet, RunClock, Samples};
use crate::sys::{affinity, process};

/// This machine as far as cases need it: the CPUs that we may use.
pub fn this_machine() -> Machine {
    let mut machine = Machine::default();
    machine.cpus.online = affinity::allowed().expect("our CPUs");
    machine.cpus.allowed = machine.cpus.online.clone();
    machine
}

/// The cases of a benchmark that this machine can have, quick ones.
pub fn cases_here(id: &str) -> Vec<Case> {
    let bench = find(id).expect("a benchmark");
    let (machine, mut cases) = (this_machine(), Vec::new());
    let floor = Floor::of(&machine);
    let windows = Windows { window_ns: 1e6, count: 3, warm_up: 1, limit_s: 1.0 };
    let depth = bench.from;
    let scope = Scope { machine: &machine, floor: &floor, depth, memory_bytes: 1 << 30, windows, all: false };
    for candidate in (bench.cases)(bench, &scope) {
        assert!(candidate.unmet.is_none(), "{}: {:?}", candidate.case.key(), candidate.unmet);
        cases.push(candidate.case);
    }
    cases
}

/// Runs `work` with a sampler of short windows in a process of its own, as a visit does: what was sampled, and how it
/// ended.
pub fn sampled(
    case: &Case,
    work: impl FnOnce(&mut Sampler) -> anyhow::Result<()>,
) -> (Vec<Samples>, Option<Reason>) {
    let clock = RunClock {
        source: "monotonic-raw".to_string(),
        ticks_per_ns: 1.0,
        resolution_ns: 50.0,
        cost_ns: 50.0,
        why: None,
    };
    let windows = Windows { window_ns: 1e5, count: 3, warm_up: 1, limit_s: 1.0 };
    let order = Order { case: case.clone(), windows, clock, seed: 1, pass: 0, pretend: None };
    let mut said = tempfile::tempfile().expect("a file");
    let mut child = process::fork(|| {
        let mut sampler = Sampler::new(&order, &mut said);
        let pinned = case.placement.seats.first().is_none_or(|seat| affinity::pin(&seat.cpus).is_ok());
        let result = if pinned { work(&mut sampler) } else { Err(anyhow::anyhow!("cannot pin")) };
        i32::from(sampler.finish(result.err().map(reason)).is_err())
    })
    .expect("a child");
    let status = child.wait(Duration::from_secs(60)).expect("it ends");
    assert!(status.success(), "{}: {status}", case.key());
    let mut text = String::new();
    said.rewind().and_then(|()| said.read_to_string(&mut text)).expect("what it said");
    let (mut samples, mut end) = (Vec::new(), None);
    for line in text.lines() {
        match serde_json::from_str(line).expect("a line") {
            Line::Samples(one) => samples.push(*one),
            Line::Process(_) => {}
            Line::Done(reason) => end = Some(reason),
        }
    }
    (samples, end.expect("a last line"))
}

/// One short visit of each case: it ends well, and every headline metric was measured at every point.
pub fn visit_all(id: &str) -> Vec<Samples> {
    let bench = find(id).expect("a benchmark");
    let mut all = Vec::new();
    for case in cases_here(id) {
        let (samples, reason) = sampled(&case, |sampler| (bench.run)(&case, sampler));
        assert_eq!(reason, None, "{}", case.key());
        let points = (bench.points)(&case);
        for one in &samples {
            assert!(points.contains(&one.point), "{}: {:?} was not announced", case.key(), one.point);
            let known = |name| bench.metrics.iter().any(|metric| metric.name == name);
            assert!(one.metrics.iter().all(|name| known(name.as_str())), "{:?}", one.metrics);
        }
        for point in &points {
            for metric in bench.metrics.iter().filter(|metric| metric.headline) {
                let has = |one: &&Samples| {
                    one.point == *point && one.metrics.iter().any(|name| *name == metric.name)
                };
                let one =
                    samples.iter().find(has).unwrap_or_else(|| panic!("{}: no {}", case.key(), metric.name));
                let values = one.values(metric.form);
                assert!(values.iter().all(|value| value.is_finite() && *value > 0.0), "{values:?}");
            }
        }
        all.extend(samples);
    }
    all
}

fn scope_of(machine: &Machine, test: impl FnOnce(&Scope)) {
    let floor = Floor::of(machine);
    let windows = Windows { window_ns: 1e6, count: 3, warm_up: 1, limit_s: 1.0 };
    test(&Scope { machine, floor: &floor, depth: Depth::Full, memory_bytes: 8 << 30, windows, all: false });
}

#[test]
fn ids_are_unique_and_well_formed() {
    let ids: BTreeSet<&str> = all().map(|bench| bench.id).collect();
    assert_eq!(ids.len(), all().count());
    for id in ids {
        let (group, name) = id.split_once('.').expect("group.name");
        let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(word(group) && word(name), "{id}");
    }
}

#[test]
fn every_row_explains_itself() {
    for bench in all() {
        for text in [bench.title, bench.about, bench.reading] {
            assert!(text.trim() == text && !text.is_empty(), "{}: {text:?}", bench.id);
        }
        assert!(bench.about.len() > 80 && bench.reading.len() > 80, "{} says too little", bench.id);
        assert!(bench.source.starts_with("src/bench/"), "{}", bench.source);
        assert!(bench.metrics.iter().any(|metric| metric.headline), "{} has no headline metric", bench.id);
        let names: BTreeSet<_> = bench.metrics.iter().map(|metric| &metric.name).collect();
        assert_eq!(names.len(), bench.metrics.len(), "{} names a metric twice", bench.id);
    }
}

#[test]
fn cases_use_declared_parameters_within_their_range() {
    let mut machine = Machine::default();
    machine.cpus.online = (0..4).collect::<CpuSet>();
    scope_of(&machine, |scope| {
        for bench in all() {
            let candidates = (bench.cases)(bench, scope);
            assert!(!candidates.is_empty(), "{} has no case at all", bench.id);
            let keys: BTreeSet<String> = candidates.iter().map(|candidate| candidate.case.key()).collect();
            assert_eq!(keys.len(), candidates.len(), "{} has two cases of one key", bench.id);
            for candidate in candidates {
                assert_eq!(candidate.case.bench, bench.id);
                if candidate.unmet.is_some() {
                    continue;
                }
                let points = (bench.points)(&candidate.case);
                assert!(!points.is_empty(), "{} has no point", candidate.case.key());
                for params in points.iter().chain([&candidate.case.params]) {
                    for (name, value) in params {
                        let declared = bench.params.iter().find(|param| param.name == name);
                        assert!(
                            declared.is_some_and(|param| param.range.holds(value)),
                            "{}: {name}={value}",
                            bench.id
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn a_machine_of_which_nothing_is_known_has_reasons_not_panics() {
    scope_of(&Machine::default(), |scope| {
        for bench in all().filter(|bench| !bench.hidden) {
            for candidate in (bench.cases)(bench, scope) {
                assert!(
                    candidate.unmet.is_some()
                        || !candidate.case.placement.cpus().is_empty()
                        || candidate.case.placement.name == "free"
                );
            }
        }
    });
}
