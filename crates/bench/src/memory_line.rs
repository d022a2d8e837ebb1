//! The size of a cache line, seen from outside.

use super::memory::{beyond_caches, note_memory, resident, sizes_of};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{latency_ns, log_curve};
use kernels::Chain;
use model::vocabulary::memory as ids;
use model::{Case, Pages, Params};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::LINE,
    title: "Cache line",
    about: "The size of a cache line, from pairs of loads at a growing distance. The second load hits L1 if it lies \
            in the line of the first.",
    reading: "The curve doubles at the line size: 64 bytes on x86 and most ARM servers, 128 on some. A lower step \
              just there means that the core fetches neighbouring lines in pairs. Two threads that write to \
              neighbouring lines may then disturb each other, as if they shared one.",
    method: "The first load goes to the start of a random kilobyte of a block beyond the last-level cache. The \
             second waits for the first. The figure is the mean of both. The chain is checked to close.",
    source: file!(),
    metrics: &[latency_ns(ids::metric::LATENCY, "mean of both loads")],
    params: &[Param::bytes(ids::param::OFFSET, "bytes from the first to the second load", 8..=512)],
    view: &log_curve(ids::param::OFFSET),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const OFFSETS: [u64; 7] = [8, 16, 32, 64, 128, 256, 512];
/// Pairs are this far apart, bytes.
const UNIT: u64 = 1024;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let placement = placement.pages(Pages::Huge);
    // Words are counted in 32 bits.
    let bytes = beyond_caches(scope, &placement, 1).min(16 << 30);
    let walks_s = OFFSETS.len() as f64 * (bytes / UNIT) as f64 * 2.0 * 150e-9;
    let seconds = scope.seconds(OFFSETS.len(), 1.0, walks_s);
    let mut candidate = Candidate::new(bench.id, placement, 45, seconds);
    candidate.case.inputs.insert(ids::param::BYTES.into(), bytes.to_string());
    vec![candidate.memory(bytes)]
}

fn points(_: &Case) -> Vec<Params> {
    OFFSETS.iter().map(|offset| point(ids::param::OFFSET, *offset)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let bytes = sizes_of(case).first().copied().unwrap_or(64 << 20);
    let nodes = case.placement.seats.first().map_or_else(Default::default, |seat| seat.mem_nodes.clone());
    let mut memory = resident(bytes, case.placement.pages, &nodes, |index| index as u64)?;
    note_memory(sampler, &memory, &nodes);
    for offset in OFFSETS {
        let mut units: Vec<u32> = (0..(bytes / UNIT) as u32).collect();
        fastrand::Rng::with_seed(sampler.seed() ^ offset).shuffle(&mut units);
        let words = |unit: u32| unit * (UNIT / 8) as u32;
        let order: Vec<u32> =
            units.into_iter().flat_map(|unit| [words(unit), words(unit) + offset as u32 / 8]).collect();
        let mut chain = Chain::through(memory.words_mut(), 1, &order);
        let loads = chain.lines() as u64;
        chain.walk(loads * if loads.is_multiple_of(Chain::UNROLL) { 1 } else { Chain::UNROLL });
        check_answer(chain.at_start(), || format!("a chain of pairs {offset} bytes apart did not close"))?;
        let at = Point::new(ids::metric::LATENCY, Chain::UNROLL as f64).at(point(ids::param::OFFSET, offset));
        sampler.time(at, |n| chain.walk(n * Chain::UNROLL))?;
    }
    Ok(())
}
