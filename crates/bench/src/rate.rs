//! The rate suite: N copies of real programs' kernels at once, a row a component, in the manner of
//! SPEC CPU's rate.
//!
//! What a copy computes stands in `kernels::rate`, what copies have in common in `rate/copies.rs`.

use std::collections::BTreeMap;

use super::memory_map::Plant;
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope};
use crate::row::{note, value};
use kernels::rate::{COMPONENTS, Character, Component, STANDARD_BYTES};
use model::vocabulary::BenchId;
use model::vocabulary::rate as ids;
use model::{Beside, Better, Case, CpuSet, Form, Metric, Pages, Params, Placement, Seat};

mod copies;
pub mod planted;
mod progress;

pub const REFERENCE: &str = "reference";
pub const CHARACTER: &str = "character";
pub const ITERATIONS: &str = "iterations";
/// The input that names the host behind the references, and what it says.
pub const REFERENCE_MACHINE: &str = "reference_machine";
const ONE_COPY_ON: &str = "one vCPU of a KVM guest, AMD EPYC family 25 model 17 at 3.7 GHz, 2026-11-22";
const ALLOCATIONS: &str = "allocations";
/// The input of a case that shows what bounds a component: one copy alone, or one copy while every
/// other CPU of the suite streams through memory.
pub const EXPERIMENT: &str = "experiment";
pub const ALONE: &str = "alone";
pub const BESIDE_STREAMS: &str = "beside-streams";
/// The input by which tests make one copy's result wrong: the copy's number.
const FLIPPED: &str = "flipped_copy";

/// A row a component.
pub const BENCHMARKS: &[Benchmark] = &{
    let mut rows = [row(&COMPONENTS[0]); COMPONENTS.len()];
    let mut at = 1;
    while at < rows.len() {
        rows[at] = row(&COMPONENTS[at]);
        at += 1;
    }
    rows
};

const fn row(component: &'static Component) -> Benchmark {
    Benchmark {
        id: component.id,
        title: component.title,
        about: component.about,
        reading: component.reading,
        method: component.method,
        source: component.source,
        metrics: METRICS,
        params: PARAMS,
        from: Depth::Full,
        budget_s: Some(280.0),
        cases: |bench, scope| usual(bench, scope),
        points,
        run,
        ..Benchmark::PINNED
    }
}

const METRICS: &[Metric] = &[
    // Units / ns are thousands of millions a second.
    Metric::new(
        ids::metric::RATE,
        "work of all copies",
        "M/s",
        Better::Higher,
        Form::WorkPerTime { scale: 1e3 },
    ),
    Metric::new(
        ids::metric::RATIO,
        "rate over one copy on the reference host",
        "×",
        Better::Higher,
        Form::WorkPerTime { scale: 1e3 },
    )
    .aside(),
    value(ids::metric::COPY_SPREAD, "slowest copy over the median copy", "%", Better::Lower),
    note(ids::metric::SLOWEST_CPU, "CPU of the slowest copy", ""),
    note(ids::metric::PHYSICAL, "median physical address of its pages", "GiB"),
    note(ids::metric::HUGE_FREE, "free memory in blocks of 2 MiB or more", "%"),
];

const PARAMS: &[Param] = &[
    Param::int(ids::param::MIB, "memory of a copy, MiB", 16..=1 << 30),
    Param::int(ids::param::NODE, "NUMA node of the copies", 0..=1 << 20),
];

/// What a study wants of every component.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Memory of a copy.
    pub mib: u64,
    /// Fresh arrays in a process, and pieces of work on each.
    pub allocations: u64,
    pub iterations: u64,
    /// A copy on every CPU; else one on each core, or on each of these CPUs.
    pub threads: bool,
    pub cpus: Option<CpuSet>,
    /// Of this node only.
    pub node: Option<u32>,
    /// Whether to find out by experiment what components are bound by.
    pub experiments: bool,
    /// Memory of two speeds that is made up.
    pub plant: Option<Plant>,
}

/// Rows named in a run of other things: one copy a core, as little memory as has stored answers.
fn usual(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mib = STANDARD_BYTES >> 20;
    let suite = Suite {
        mib,
        allocations: 1,
        iterations: 2,
        threads: false,
        cpus: None,
        node: None,
        experiments: false,
        plant: None,
    };
    cases(bench, scope, &suite)
}

/// The case of a component: copies at once, each with its own memory on its own node. On request,
/// experiments show whether memory decides: one copy alone and, for components that wait for single
/// lines (they scale although memory decides), one copy with streams. A component in caches shows
/// what sharing alone costs: the first of them has both.
pub fn cases(bench: &Benchmark, scope: &Scope, suite: &Suite) -> Vec<Candidate> {
    let Some(component) = component(&bench.id) else { return Vec::new() };
    let placement = match placement(scope, suite) {
        Ok(placement) => placement,
        Err(why) => return vec![Candidate::unmet(bench.id, "one-per-core", why)],
    };
    let main = candidate(bench, component, &placement, suite);
    let memory = component.character.fills_memory();
    if !suite.experiments || placement.seats.len() < 2 || !(memory || component.id == CONTROL) {
        return vec![main];
    }
    let mut one = placement.clone();
    one.name = "one-cpu".into();
    let others: CpuSet = one.seats.split_off(1).iter().filter_map(first_cpu).collect();
    let streams = Placement { beside: Beside::Stream, neighbours: vec![others], ..one.clone() };
    let waits = component.character == Character::Latency || !memory;
    let experiments = [(ALONE, one, true), (BESIDE_STREAMS, streams, waits)];
    let experiments = experiments.into_iter().filter(|(.., wanted)| *wanted).map(|(name, placement, _)| {
        let mut candidate = candidate(bench, component, &placement, suite);
        // What budgets cut first; the control last of them.
        candidate.priority = if memory { 40 } else { 45 };
        candidate.case.inputs.insert(EXPERIMENT.to_string(), name.to_string());
        candidate
    });
    std::iter::once(main).chain(experiments).collect()
}

/// The component in caches whose experiments are the others' control.
const CONTROL: BenchId = ids::MOLECULES;

fn first_cpu(seat: &Seat) -> Option<u32> {
    seat.cpus.first()
}

fn candidate(bench: &Benchmark, component: &Component, placement: &Placement, suite: &Suite) -> Candidate {
    let copies = placement.seats.len() as u64;
    let grows = component.character.fills_memory();
    let pieces = (suite.allocations * suite.iterations) as f64;
    // Made at 1 GB/s, checked nearly as fast; a piece takes half a second in a room of 256 MiB.
    let gib = suite.mib as f64 / 1024.0;
    let (make_s, piece_s) = if grows { (0.1 + 1.2 * gib, 0.05 + 3.0 * gib) } else { (0.2, 0.7) };
    let seconds = suite.allocations as f64 * make_s + pieces * piece_s;
    let bytes = if grows { suite.mib << 20 } else { STANDARD_BYTES };
    let mut candidate = Candidate::new(bench.id, placement.clone(), 60, seconds)
        .memory(copies * bytes)
        .param(ids::param::MIB, suite.mib);
    if let Some(node) = suite.node {
        candidate = candidate.param(ids::param::NODE, u64::from(node));
    }
    candidate.case.inputs.extend([
        (REFERENCE.to_string(), component.reference.to_string()),
        (REFERENCE_MACHINE.to_string(), ONE_COPY_ON.to_string()),
        (CHARACTER.to_string(), component.character.name().to_string()),
        (ALLOCATIONS.to_string(), suite.allocations.to_string()),
        (ITERATIONS.to_string(), suite.iterations.to_string()),
    ]);
    if let Some(plant) = suite.plant {
        candidate.case.inputs.insert(planted::PLANT_PLACES.to_string(), plant.words());
    }
    candidate
}

/// Where the copies sit, each bound to the memory of its own node where there are several.
fn placement(scope: &Scope, suite: &Suite) -> Result<Placement, String> {
    const ROLE: &str = "copy";
    let placements = scope.placements;
    let mut placement = match (&suite.cpus, suite.node) {
        (None, _) if suite.threads => placements.all(ROLE),
        (Some(cpus), _) => {
            let mut all = placements.all(ROLE);
            all.seats.retain(|seat| first_cpu(seat).is_some_and(|cpu| cpus.contains(cpu)));
            all
        }
        (None, Some(node)) => {
            let found = placements.per_node(ROLE).into_iter().find(|(id, _)| *id == node);
            found.map(|(_, placement)| placement).ok_or(format!("NUMA node {node} has no usable CPU"))?
        }
        (None, None) => placements.one_per_core(ROLE),
    };
    let nodes: BTreeMap<u32, u32> =
        scope.machine.nodes.iter().flat_map(|node| node.cpus.iter().map(|cpu| (cpu, node.id))).collect();
    let node_of = |seat: &Seat| nodes.get(&first_cpu(seat)?).copied();
    if let Some(node) = suite.node {
        placement.seats.retain(|seat| node_of(seat).is_none_or(|own| own == node));
    }
    if placement.seats.is_empty() {
        return Err("none of the requested CPUs is usable here".to_string());
    }
    if scope.machine.nodes.len() > 1 {
        for seat in &mut placement.seats {
            seat.mem_nodes = node_of(seat).map(CpuSet::one).unwrap_or_default();
        }
    }
    Ok(placement.pages(Pages::Huge))
}

/// How many copies there will be, and on the node with the most of them.
pub fn copies_of(scope: &Scope, suite: &Suite) -> (u64, u64) {
    let Ok(placement) = placement(scope, suite) else { return (0, 0) };
    let of_node = |node: Option<u32>| {
        placement.seats.iter().filter(|seat| seat.mem_nodes.first() == node).count() as u64
    };
    let most = placement.seats.iter().map(|seat| of_node(seat.mem_nodes.first())).max();
    (placement.seats.len() as u64, most.unwrap_or(0))
}

fn component(id: &str) -> Option<&'static Component> {
    COMPONENTS.iter().find(|component| component.id == *id)
}

/// Nodes that copies are bound to, where these are several.
fn nodes(case: &Case) -> Vec<u32> {
    let mut nodes: Vec<u32> = case.placement.seats.iter().filter_map(|seat| seat.mem_nodes.first()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() > 1 { nodes } else { Vec::new() }
}

/// All copies together, then those of each node.
fn points(case: &Case) -> Vec<Params> {
    let of_node = |node: u32| super::point(ids::param::NODE, u64::from(node));
    std::iter::once(Params::new()).chain(nodes(case).into_iter().map(of_node)).collect()
}

fn number(case: &Case, input: &str, least: u64) -> u64 {
    case.inputs.get(input).and_then(|text| text.parse().ok()).unwrap_or(least).max(least)
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let component =
        component(&case.bench).ok_or_else(|| anyhow::anyhow!("{} is not a component", case.bench))?;
    copies::run(component, case, sampler)
}

#[cfg(test)]
mod tests;
