//! Memory latency by size: the ladder.

use super::memory::{self, beyond_caches, note_memory, resident};
use super::{Benchmark, Candidate, Depth, Param, Point, Range, Sampler, Scope, View, check_answer, point};
use crate::kernels::Chain;
use crate::model::{Better, Case, CpuSet, Form, Metric, Pages};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "memory.latency",
    title: "Memory latency",
    about: "Dependent loads: each load's address is what the load before it brought, so nothing overlaps. The chain \
            visits every 64-byte line of a block exactly once in random order (no prefetcher can guess it) and closes; \
            that it closes is checked. One curve over the block's size, on huge pages so that page walks do not hide \
            the caches. Loads are back to back on an otherwise idle memory bus.",
    reading: "Flat steps are the levels: L1 4 to 5 cycles, L2 12 to 20, L3 40 to 80, DRAM 70 to 140 ns. A step that \
              ends before the size that the kernel claims: the cache is shared or partitioned; one that ends after it: \
              a host's larger cache behind a guest. Without huge pages the right end rises by the page walks.",
    source: file!(),
    metrics: &[Metric::new(
        "latency",
        "latency of a load",
        "ns",
        Better::Lower,
        Form::TimePerWork { scale: 1.0 },
    )],
    params: &[
        Param { name: "order", about: "order of the lines", range: Range::Choice(&["random"]) },
        Param { name: "bytes", about: "size of the block", range: Range::Int { min: 1024, max: 1 << 46 } },
    ],
    view: View::Curve { x: std::borrow::Cow::Borrowed("bytes"), log: true },
    hidden: false,
    cases,
    points: memory::size_points,
    run,
}];

/// Distance of the chain's pointers: the line of every x86 and nearly every ARM server.
const LINE_BYTES: usize = 64;

/// Memory that linking a chain needs beside the chain itself: 4 bytes a line.
const LINKING: f64 = 1.0 + 4.0 / LINE_BYTES as f64;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placement = match scope.floor.one_cpu("task") {
        Ok(placement) => placement.pages(Pages::Huge),
        Err(why) => return vec![Candidate::unmet(bench.id, "one-cpu", why)],
    };
    let per_octave = match scope.depth {
        Depth::Quick => 1,
        Depth::Standard => 2,
        Depth::Full => 4,
    };
    let mut largest = beyond_caches(scope, &placement, 1);
    if largest as f64 * LINKING > scope.memory_bytes as f64 {
        largest /= 2;
    }
    let sizes = ladder(4 << 10, largest.max(64 << 10), per_octave);
    // Linking and walking every line once: about 15 ns a line in caches, 150 ns beyond, twice the largest block in all.
    let lines: u64 = sizes.iter().map(|bytes| bytes / LINE_BYTES as u64).sum();
    let seconds = scope.seconds(sizes.len(), 1.0, lines as f64 * 120e-9);
    let mut candidate = Candidate::new(bench.id, placement, 95, seconds).param("order", "random");
    candidate.case.inputs.insert("bytes".into(), memory::sizes_input(&sizes));
    vec![candidate.memory((largest as f64 * LINKING) as u64)]
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
    let sizes = memory::sizes_of(case);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
    let mut memory = resident(largest, case.placement.pages, &nodes, |index| index as u64)?;
    note_memory(sampler, &memory, &nodes);
    for bytes in sizes {
        let words = &mut memory.words_mut()[..bytes as usize / 8];
        let mut chain = Chain::random(words, LINE_BYTES, sampler.seed() ^ bytes);
        // One whole round warms what can be warmed, and must end where it began.
        let lines = chain.lines() as u64;
        let rounds = if lines.is_multiple_of(Chain::UNROLL) { 1 } else { Chain::UNROLL };
        chain.walk(lines * rounds);
        check_answer(chain.at_start(), || format!("a chain through {bytes} bytes did not close"))?;
        let at = Point::new("latency", Chain::UNROLL as f64).at(point("bytes", bytes));
        sampler.time(at, |n| chain.walk(n * Chain::UNROLL))?;
    }
    Ok(())
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
