//! For tests: plans the cases of a row on the CPUs that the test may use, and runs a visit in the test's own process.

use super::{Benchmark, Candidate, Depth, Line, Order, Sampler, Scope, Windows, find};
use crate::machine::Machine;
use crate::model::{Case, Samples};
use crate::placement::Floor;
use crate::sys::{affinity, clock};

const WINDOWS: Windows = Windows { window_ns: 2e5, count: 2, warm_up: 1, limit_s: 2.0 };

fn row(id: &str) -> &'static Benchmark {
    find(id).unwrap_or_else(|| panic!("no row {id}"))
}

/// Every case that the row offers at this depth on a machine with the test's CPUs, of which nothing more is known.
pub fn candidates(id: &str, depth: Depth) -> Vec<Candidate> {
    let mut machine = Machine::default();
    machine.cpus.online = affinity::allowed().expect("affinity");
    let floor = Floor::of(&machine);
    let scope = Scope {
        machine: &machine,
        floor: &floor,
        depth,
        memory_bytes: 128 << 20,
        windows: WINDOWS,
        all: false,
    };
    (row(id).cases)(row(id), &scope)
}

/// Those of them that can be measured here.
pub fn cases(id: &str, depth: Depth) -> Vec<Case> {
    let possible = candidates(id, depth).into_iter().filter(|candidate| candidate.unmet.is_none());
    possible.map(|candidate| candidate.case).collect()
}

/// Runs what a row does by a sampler with short windows: what it emitted, or why it failed.
fn emitted(
    case: Option<&Case>,
    run: impl FnOnce(&mut Sampler) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Samples>> {
    let nothing = Candidate::unmet("selftest.steady", "one-cpu", String::new()).case;
    let order = Order {
        case: case.cloned().unwrap_or(nothing),
        windows: WINDOWS,
        clock: clock::calibrate(false),
        seed: 1,
        pass: 0,
        pretend: None,
    };
    let mut said = Vec::new();
    let mut sampler = Sampler::new(&order, &mut said);
    run(&mut sampler)?;
    sampler.finish(None)?;
    let lines = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Line>(line).expect("a sample line"));
    let samples = lines.filter_map(|line| match line {
        Line::Samples(samples) => Some(*samples),
        _ => None,
    });
    Ok(samples.collect())
}

/// Runs a part of a row.
pub fn with_sampler(run: impl FnOnce(&mut Sampler) -> anyhow::Result<()>) -> anyhow::Result<Vec<Samples>> {
    emitted(None, run)
}

/// One visit of a case: what it emitted, or why it failed.
pub fn visit(case: &Case) -> anyhow::Result<Vec<Samples>> {
    emitted(Some(case), |sampler| (row(&case.bench).run)(case, sampler))
}

/// Visits a case and checks what every row promises: its first metric at each point, each other headline at some, all of
/// them positive numbers, and nothing that the row does not declare.
pub fn visit_all(case: &Case) -> Vec<Samples> {
    let samples = visit(case).unwrap_or_else(|error| panic!("{}: {error:#}", case.key()));
    let row = row(&case.bench);
    let of = |name: &str| -> Vec<&Samples> {
        samples.iter().filter(|one| one.metrics.iter().any(|own| own == name)).collect()
    };
    let first = of(&row.metrics[0].name);
    for point in (row.points)(case) {
        assert!(first.iter().any(|one| one.point == point), "{}: {point:?} is missing", case.key());
    }
    for metric in row.metrics.iter().filter(|metric| metric.headline) {
        let values: Vec<f64> = of(&metric.name).iter().flat_map(|one| one.values(metric.form)).collect();
        let fine = |value: &f64| value.is_finite() && *value > 0.0;
        let named = format!("{} {}: {values:?}", case.key(), metric.name);
        assert!(!values.is_empty() && values.iter().all(fine), "{named}");
    }
    for name in samples.iter().flat_map(|one| &one.metrics) {
        assert!(row.metrics.iter().any(|metric| metric.name == *name), "{}: undeclared {name}", case.key());
    }
    samples
}
