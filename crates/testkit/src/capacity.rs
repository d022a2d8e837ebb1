//! An invented host and the study of its capacity.

use model::vocabulary::{MetricId, smt as ids};
use model::{Case, CpuSet, Params, Placement, Planned, Run, Samples, Seat};

use crate::{run, samples, visit};

/// A case of a kind of work on these CPUs.
pub fn case(name: &'static str, cpus: &[u32], kind: &str) -> Case {
    let seat = |cpu: &u32| Seat {
        role: "task".into(),
        host: None,
        cpus: CpuSet::one(*cpu),
        mem_nodes: CpuSet::default(),
    };
    Case {
        bench: ids::LOAD.into(),
        placement: Placement { seats: cpus.iter().map(seat).collect(), ..Placement::named(name) },
        params: Params::from([(ids::param::KIND, kind.into()), (ids::param::LEVELS, 7u64.into())]),
        knobs: Default::default(),
        inputs: [("no_ipc".to_string(), "this machine was made up".to_string())].into(),
    }
}

/// A host where two threads of a core do `s` times the work of one, at the load levels of a study;
/// one thread does 100 M/s at full load.
pub fn made(s: f64, smt: bool) -> Run {
    made_of(&[("loop", s)], smt)
}

/// The same with several kinds of work, each with its own factor.
pub fn made_of(kinds: &[(&str, f64)], smt: bool) -> Run {
    let second = if smt { "smt-sibling" } else { "same-llc" };
    let cases: Vec<Case> = kinds
        .iter()
        .flat_map(|(kind, _)| [case("one-cpu", &[1], kind), case(second, &[1, 3], kind)])
        .collect();
    let planned =
        |case: &Case| Planned { case: case.clone(), priority: 1, seconds: 1.0, memory_bytes: 0, unmet: None };
    let mut visits = Vec::new();
    for pass in 0..15u32 {
        for index in 0..2 * kinds.len() as u32 {
            let s = kinds[index as usize / 2].1;
            // Up and down alike, of both arms.
            let noise = match index % 2 {
                0 => 0.998 + 0.002 * f64::from(pass % 3),
                _ => 0.996 + 0.002 * f64::from(pass % 5),
            };
            let all = (1..=7).flat_map(|level| at_level(level, index % 2 == 1, s, noise)).collect();
            visits.push(visit(visits.len() as u32, index, pass, all));
        }
    }
    let mut made = run(2, visits);
    made.header.plan = cases.iter().map(planned).collect();
    made.header.catalogue = vec![title()];
    made
}

fn title() -> model::Title {
    use model::{Better, Form, Metric, Title, View};
    let one = |name: MetricId, unit| Metric::new(name, name.as_str(), unit, Better::Higher, Form::Value);
    let aside = |name, unit| one(name, unit).aside();
    Title {
        id: ids::LOAD.into(),
        title: "Work at rising load".into(),
        about: "".into(),
        reading: "".into(),
        metrics: vec![
            one(ids::metric::PERFORMANCE, "M/s"),
            aside(ids::metric::CPU, "%"),
            aside(ids::metric::PER_BUSY, "M/s"),
            aside(ids::metric::BUSY_ONE, "%"),
            aside(ids::metric::BUSY_BOTH, "%"),
            aside(ids::metric::P99, "us"),
            aside(ids::metric::WALL, "s"),
            aside(ids::metric::ATTAINMENT, "M/s"),
        ],
        view: View::Curve { x: ids::param::LEVEL.into(), log: false },
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
    let point = Params::from([(ids::param::LEVEL, level.into())]);
    let one =
        |metric: MetricId, value: f64| Samples { point: point.clone(), ..samples(&metric, 0, &[value]) };
    let mut all = vec![
        one(ids::metric::PERFORMANCE, work),
        one(ids::metric::CPU, 100.0 * tasks * busy),
        one(ids::metric::PER_BUSY, work / (tasks * busy)),
        one(ids::metric::P99, took * noise),
        one(ids::metric::WALL, 0.6),
        one(ids::metric::ATTAINMENT, work / (100.0 * tasks * busy)),
    ];
    if both {
        all.push(one(ids::metric::BUSY_ONE, 200.0 * busy * (1.0 - busy)));
        all.push(one(ids::metric::BUSY_BOTH, 100.0 * busy * busy));
    }
    all
}
