//! Memory latency by size: the ladder, in several orders, on huge and on base pages.

use crate::row::{latency_ns, log_curve};
use anyhow::bail;
use model::vocabulary::ParamId;
use model::vocabulary::memory as ids;

use super::memory::{self, beyond_caches, cache_ladder, note_memory, resident};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, median, point};
use kernels::{Chain, Op, Visits, streams};
use model::{Case, CpuSet, Pages, Placement};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::LATENCY,
    title: "Memory latency",
    about: "Latency of dependent loads by block size: each load needs the result of the one before. One curve for \
            each order of the lines.",
    reading: "Flat steps are the levels: L1 4–5 cycles, L2 12–20, L3 40–80, DRAM 70–140 ns. A step that ends below \
              the reported cache size means a shared or limited cache. One that ends above is a larger cache of the \
              host. Random above page-random is address translation and prefetchers; memory.data-source separates \
              them. Without huge pages the right end rises through page walks.",
    method: "random visits every 64-byte line once in one random cycle. page-random goes page by page, so few \
             translations are needed and prefetchers find most lines. stride goes upwards in fixed steps, for which \
             prefetchers are made. Huge pages keep page walks from hiding the caches; base pages show what \
             translation costs. Loads are back to back. pace=spaced adds idle time (long multiplications) before \
             each load and subtracts their time. caches=cold fills all caches with other data before each walk. The \
             chain is checked to close.",
    source: file!(),
    metrics: &[latency_ns(ids::metric::LATENCY, "latency")],
    params: &[
        Param::choice(ids::param::ORDER, "order of the lines", &["random", "page-random", "stride"]),
        Param::bytes(ids::param::STRIDE, "bytes between loads", 8..=1 << 20),
        Param::choice(ids::param::PACE, "idle time before each load", &["spaced"]),
        Param::choice(ids::param::CACHES, "content of the caches before", &["cold"]),
        Param::bytes(ids::param::BYTES, "block size, bytes", 1024..=1 << 46),
    ],
    view: &log_curve(ids::param::BYTES),
    cases,
    points: memory::size_points,
    run,
    ..Benchmark::PINNED
}];

/// Distance of the chain's pointers: the line of every x86 and nearly every ARM server.
const LINE_BYTES: usize = 64;

/// Memory for a chain and its linking: 4 more bytes per line.
const LINKING: f64 = 1.0 + 4.0 / LINE_BYTES as f64;

/// From four pointers a line to one a page and a bit: steps past a page that are no power of two
/// use all sets.
const STRIDES: [u64; 10] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4160];

/// Samples need not be longer for loads, ns.
const LONG_ENOUGH_NS: f64 = 2e6;

/// Turns of [`Chain::PAUSE_UNROLL`] multiplications before a spaced load: some 400 cycles.
const PAUSE: u64 = 8;

/// A sample of spaced loads, loads alone, ns, and the time of all levels' samples with their
/// pauses, s: each load has two pauses of some 130 ns, whether it takes 2 ns or 120.
const SPACED_NS: f64 = 1e5;
const SPACED_S: f64 = SPACED_NS * 200.0 / 1e9;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let curve = |pages, order: &str, per_octave, priority| {
        ladder_case(bench, scope, placement.clone().pages(pages), order, per_octave, priority)
    };
    let strided = |stride: u64, pages| {
        let mut candidate = curve(pages, "stride", 1, 40).param(ids::param::STRIDE, stride);
        // Two loads at least, and more lines than a small stride's one.
        let sizes = memory::sizes_of(&candidate.case).into_iter().filter(|bytes| *bytes >= 16 * stride);
        let sizes = memory::sizes_input(&sizes.collect::<Vec<_>>());
        candidate.case.inputs.insert(ids::param::BYTES.into(), sizes);
        candidate
    };
    let mut candidates = match scope.depth {
        Depth::Quick => vec![curve(Pages::Huge, "random", 1, 95)],
        Depth::Standard => vec![curve(Pages::Huge, "random", 2, 95), curve(Pages::Base, "random", 1, 65)],
        Depth::Full => vec![curve(Pages::Huge, "random", 4, 95), curve(Pages::Base, "random", 2, 65)],
    };
    if scope.depth > Depth::Quick {
        candidates.push(curve(Pages::Base, "page-random", 1, 50));
        candidates.push(levels_case(bench, scope, placement.clone(), (ids::param::PACE, "spaced")));
        candidates.push(levels_case(bench, scope, placement.clone(), (ids::param::CACHES, "cold")));
        candidates.push(strided(64, Pages::Huge));
        candidates.push(strided(4160, Pages::Base));
    }
    if scope.depth == Depth::Full {
        candidates
            .extend(STRIDES.into_iter().filter(|stride| *stride != 64).map(|s| strided(s, Pages::Huge)));
    }
    candidates
}

/// The largest block whose chain fits the plan's memory, bytes.
fn largest(scope: &Scope, placement: &Placement) -> u64 {
    let mut largest = beyond_caches(scope, placement, 1);
    if largest as f64 * LINKING > scope.memory_bytes as f64 {
        largest /= 2;
    }
    // The lines of a chain are counted in 32 bits.
    largest.clamp(64 << 10, 128 << 30)
}

fn ladder_case(
    bench: &Benchmark,
    scope: &Scope,
    placement: Placement,
    order: &str,
    per_octave: u64,
    priority: u32,
) -> Candidate {
    let sizes = ladder(4 << 10, largest(scope, &placement), per_octave);
    candidate(bench, scope, placement, order, sizes, priority)
}

/// One size inside each level, and memory.
fn levels_case(
    bench: &Benchmark,
    scope: &Scope,
    placement: Placement,
    (name, value): (ParamId, &str),
) -> Candidate {
    let placement = placement.pages(Pages::Huge);
    let [l1, l2, last] = cache_ladder(scope.machine, &placement);
    let largest = largest(scope, &placement);
    // Between L2 and the last level where that is far larger.
    let inside = (4 * l2).min(last / 2).max(l2);
    let mut sizes: Vec<u64> =
        [l1 / 2, l2 / 2, inside, largest].into_iter().filter(|s| *s <= largest).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // What is cold in caches that hold other data is read from memory at any size: no need to walk
    // the largest.
    if value == "cold" {
        sizes.retain(|size| *size < largest);
    }
    let mut candidate = candidate(bench, scope, placement, "random", sizes, 50).param(name, value);
    let walks = (scope.windows.count + scope.windows.warm_up + 9) as f64;
    if value == "spaced" {
        candidate.seconds += walks * SPACED_S;
    }
    if value == "cold" {
        let fill_s = largest as f64 / 8e9;
        candidate.seconds = fill_s * walks * 3.0 + 0.1;
        candidate.memory_bytes += largest;
        candidate.case.inputs.insert("other_bytes".into(), largest.to_string());
    }
    candidate
}

fn candidate(
    bench: &Benchmark,
    scope: &Scope,
    placement: Placement,
    order: &str,
    sizes: Vec<u64>,
    priority: u32,
) -> Candidate {
    // Linking and walking every line once: about 15 ns a line in caches, 150 ns beyond.
    let lines: u64 = sizes.iter().map(|bytes| bytes / LINE_BYTES as u64).sum();
    let each = if order == "random" { 120e-9 } else { 40e-9 };
    let windows = scope.windows.no_longer_than(LONG_ENOUGH_NS);
    let seconds = scope.seconds(sizes.len(), windows, lines as f64 * each);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let mut candidate =
        Candidate::new(bench.id, placement, priority, seconds).param(ids::param::ORDER, order);
    candidate.case.inputs.insert(ids::param::BYTES.into(), memory::sizes_input(&sizes));
    candidate.memory((largest as f64 * LINKING) as u64)
}

/// Sizes from `from` to `to`, `per_octave` (1, 2 or 4) to each doubling, all multiples of 1 KiB.
fn ladder(from: u64, to: u64, per_octave: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut octave = from;
    while octave < to {
        sizes.extend(
            (0..per_octave).map(|step| octave + octave / per_octave * step).filter(|size| *size < to),
        );
        octave *= 2;
    }
    sizes.push(to);
    sizes
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let param = |name: ParamId| case.params.get(name).and_then(|value| value.text());
    let (step, visits) = match param(ids::param::ORDER) {
        Some("random") => (LINE_BYTES, Visits::Random),
        Some("page-random") => (LINE_BYTES, Visits::RandomInPages(rustix::param::page_size())),
        Some("stride") => {
            let stride = case.params.get(ids::param::STRIDE).and_then(|stride| stride.int()).unwrap_or(0);
            (usize::try_from(stride).unwrap_or(0).max(8), Visits::Ascending)
        }
        other => bail!("unknown order {other:?}"),
    };
    let sizes = memory::sizes_of(case);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
    let mut memory = resident(largest, case.placement.pages, &nodes, |index| index as u64)?;
    note_memory(sampler, &memory, &nodes);
    let mut other = match case.inputs.get("other_bytes").and_then(|bytes| bytes.parse().ok()) {
        Some(bytes) => Some(resident(bytes, Pages::Huge, &nodes, |index| index as u64)?),
        None => None,
    };
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS);
    for bytes in sizes {
        let words = &mut memory.words_mut()[..bytes as usize / 8];
        let mut chain = Chain::linked(words, step, visits, sampler.seed() ^ bytes);
        // One whole round warms what can be warmed, and must end where it began.
        let lines = chain.lines() as u64;
        let rounds = if lines.is_multiple_of(Chain::UNROLL) { 1 } else { Chain::UNROLL };
        chain.walk(lines * rounds);
        check_answer(chain.at_start(), || format!("a chain through {bytes} bytes did not close"))?;
        let at = Point::new(ids::metric::LATENCY, Chain::UNROLL as f64)
            .at(point(ids::param::BYTES, bytes))
            .stretch(stretch);
        match (&mut other, param(ids::param::PACE)) {
            (Some(other), _) => cold(sampler, &mut chain, other.words_mut(), bytes)?,
            (None, Some(_)) => spaced(sampler, &mut chain, bytes)?,
            (None, None) => sampler.time(at, |n| chain.walk(n * Chain::UNROLL))?,
        };
    }
    Ok(())
}

/// Loads in a part of a sample of spaced loads: some 35 µs, short against the time between two
/// timer ticks.
const PART: u64 = 256;

/// Loads with idle time between: alternately walks with pauses and the same pauses alone. Both are
/// much longer than their difference, so one interruption would outweigh it: the median of a
/// sample's parts is used.
fn spaced(sampler: &mut Sampler, chain: &mut Chain, bytes: u64) -> anyhow::Result<f64> {
    let clock = sampler.clock();
    let stretch = sampler.windows().no_longer_than(SPACED_NS);
    sampler.time_by(
        Point::new(ids::metric::LATENCY, 1.0).at(point(ids::param::BYTES, bytes)).stretch(stretch),
        |loads| {
            let part = loads.clamp(1, PART);
            let differences = (0..loads.div_ceil(part))
                .map(|_| {
                    let begin = clock.now();
                    chain.walk_spaced(part, PAUSE);
                    let with_loads = clock.now();
                    Chain::pauses(part, PAUSE);
                    (with_loads - begin) - (clock.now() - with_loads)
                })
                .collect();
            // Of a few loads, while calibrating, less than nothing may be left: they were too few.
            let typical = median(differences);
            Ok((typical / part as f64 * loads as f64).max(0.0))
        },
    )
}

/// Single walks, each after other data went through all caches; only the walks are timed.
fn cold(sampler: &mut Sampler, chain: &mut Chain, other: &mut [u64], bytes: u64) -> anyhow::Result<f64> {
    let clock = sampler.clock();
    let reader = streams(Op::Read)[0];
    let steps = (chain.lines() as u64 / Chain::UNROLL).max(1) * Chain::UNROLL;
    // A walk is a sample: filling the caches takes hundreds of times as long.
    let walk_ns = steps as f64 * 60.0;
    let stretch = (walk_ns / sampler.windows().window_ns).min(1.0);
    sampler.time_by(
        Point::new(ids::metric::LATENCY, steps as f64).at(point(ids::param::BYTES, bytes)).stretch(stretch),
        |walks| {
            let mut ns = 0.0;
            for _ in 0..walks {
                std::hint::black_box(reader.run(other, 1, 0));
                let begin = clock.now();
                chain.walk(steps);
                ns += clock.now() - begin;
            }
            Ok(ns)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ladders_rise_and_end_where_they_should() {
        assert_eq!(ladder(4096, 32768, 1), [4096, 8192, 16384, 32768]);
        assert_eq!(ladder(4096, 16384, 2), [4096, 6144, 8192, 12288, 16384]);
        let fine = ladder(4096, 1 << 28, 4);
        assert!(fine.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(fine.iter().all(|size| size % 1024 == 0));
    }
}
