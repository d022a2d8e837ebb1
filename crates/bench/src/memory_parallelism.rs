//! Memory parallelism: how many loads a core has under way at once.

use super::memory::{beyond_caches, note_memory, resident};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{latency_ns, log_curve};
use kernels::{Chain, TOGETHER, walk_together};
use model::vocabulary::memory as ids;
use model::{Case, Pages, Params};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PARALLELISM,
    title: "Memory parallelism",
    about: "Time per load when one core follows 1–32 independent chains of loads that miss all caches. It falls \
            until the core cannot overlap more misses.",
    reading: "The time with one chain divided by the smallest time is the number of misses that the core overlaps. \
              Older cores reach 10–16, recent ones 16–48; more is better. That number times 64 bytes over the \
              latency is the most that one core can read with plain loads. It is why one task cannot use all memory \
              channels.",
    method: "The block is larger than the last-level cache, on huge pages, in random order. The task loads from each \
             chain round-robin. All chains are one cycle entered at equal distances, so no chain uses what another \
             fetched.",
    source: file!(),
    metrics: &[latency_ns(ids::metric::LATENCY, "time for each load")],
    params: &[Param::int(ids::param::CHAINS, "independent chains", 1..=32)],
    view: &log_curve(ids::param::CHAINS),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const LINE_BYTES: usize = 64;

/// Each number of chains divides it: starts at even distances for all of them.
const PARTS: usize = 96;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let placement = placement.pages(Pages::Huge);
    // Half for the numbers of the lines; the lines of a chain are counted in 32 bits.
    let bytes = beyond_caches(scope, &placement, 2).min(128 << 30);
    let seconds = scope.seconds(TOGETHER.len(), 1.0, bytes as f64 / LINE_BYTES as f64 * 60e-9);
    let mut candidate = Candidate::new(bench.id, placement, 62, seconds);
    candidate.case.inputs.insert(ids::param::BYTES.into(), bytes.to_string());
    vec![candidate.memory(bytes + bytes / 16)]
}

fn points(_: &Case) -> Vec<Params> {
    TOGETHER.iter().map(|chains| point(ids::param::CHAINS, *chains as u64)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let bytes = super::memory::sizes_of(case).first().copied().unwrap_or(64 << 20);
    let nodes = case.placement.seats.first().map_or_else(Default::default, |seat| seat.mem_nodes.clone());
    let mut memory = resident(bytes, case.placement.pages, &nodes, |index| index as u64)?;
    note_memory(sampler, &memory, &nodes);
    let parts = Chain::random_parts(memory.words_mut(), LINE_BYTES, PARTS, sampler.seed());
    let lines = parts[0].lines() as u64;
    for count in TOGETHER {
        let mut chains: Vec<Chain> = parts.iter().step_by(PARTS / count).cloned().collect();
        sampler.time(
            Point::new(ids::metric::LATENCY, count as f64).at(point(ids::param::CHAINS, count as u64)),
            |turns| {
                walk_together(&mut chains, turns);
            },
        )?;
    }
    // All starts lie on one cycle: the last chain comes round when it has gone all of it.
    let mut whole = parts[PARTS - 1..].to_vec();
    walk_together(&mut whole, lines);
    check_answer(whole[0].at_start(), || format!("the chain through {bytes} bytes did not close"))
}
