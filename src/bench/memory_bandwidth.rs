//! Memory bandwidth by size: one task, and all CPUs at once.

use std::cell::Cell;

use super::memory::{self, beyond_caches, cache_ladder, huge_share, note_memory, resident};
use super::{Benchmark, Candidate, Param, Point, Range, Sampler, Scope, View, check_answer, point};
use crate::kernels::{BLOCK_BYTES, ReadKernel, read_kernels};
use crate::model::{Better, Case, CpuSet, Form, Metric, Pages, Placement};
use crate::sys::mapping::Mapping;
use crate::sys::team::{Body, Team};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "memory.bandwidth",
    title: "Memory read",
    about: "Every task reads a block of its own again and again with the widest vectors that the CPU has and adds all \
            of it up; the sum is checked against what was written there. Bytes are counted as the program moves them. \
            One task, then one on each CPU at once: their bytes together, from the first start to the last end. The \
            memory is asked for as huge pages, written first and checked to be resident.",
    reading: "A block of half the L1 or L2 shows the core; a block beyond the last-level cache shows the memory, whose \
              ceiling is channels × transfers per second × 8 bytes: 70 to 90 % of that is healthy with all CPUs. One \
              CPU alone cannot fill the channels of a server. Half of what equal machines give: a missing or wrongly \
              slotted DIMM, remote memory, or another guest.",
    source: file!(),
    metrics: &[Metric::new(
        "bandwidth",
        "bandwidth",
        "GB/s",
        Better::Higher,
        Form::WorkPerTime { scale: 1.0 },
    )],
    params: &[
        Param { name: "op", about: "what is done with the memory", range: Range::Choice(&["read"]) },
        Param { name: "bytes", about: "block of each task", range: Range::Int { min: 512, max: 1 << 46 } },
    ],
    view: View::Table,
    hidden: false,
    cases,
    points: memory::size_points,
    run,
}];

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let one = match scope.floor.one_cpu("task") {
        Ok(placement) => candidate(bench, scope, placement.pages(Pages::Huge), 90),
        Err(why) => return vec![Candidate::unmet(bench.id, "one-cpu", why)],
    };
    let all = scope.floor.all("copy").pages(Pages::Huge);
    match all.seats.len() {
        1 => vec![one, Candidate::unmet(bench.id, "all", "one usable CPU: see one-cpu".to_string())],
        _ => vec![one, candidate(bench, scope, all, 90)],
    }
}

fn candidate(bench: &Benchmark, scope: &Scope, placement: Placement, priority: u32) -> Candidate {
    let tasks = placement.seats.len() as u64;
    let [l1, l2, _] = cache_ladder(scope.machine, &placement);
    let dram = (beyond_caches(scope, &placement, 1) / tasks).max(64 << 10);
    let mut sizes: Vec<u64> = [l1 / 2, l2 / 2, dram].map(|bytes| whole_blocks(bytes.min(dram))).to_vec();
    sizes.dedup();
    // Touching runs at a few GB/s, each task on its own CPU.
    let setup_s = dram as f64 / 2e9;
    let seconds = scope.seconds(sizes.len(), 1.0, setup_s);
    let mut candidate = Candidate::new(bench.id, placement, priority, seconds).param("op", "read");
    candidate.case.inputs.insert("bytes".into(), memory::sizes_input(&sizes));
    candidate.memory(dram * tasks)
}

fn whole_blocks(bytes: u64) -> u64 {
    let block = BLOCK_BYTES as u64;
    (bytes / block * block).max(block)
}

/// What stands in each word: all different, so that a word read twice or never moves the sum.
fn pattern(index: usize) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let sizes = memory::sizes_of(case);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let kernel = read_kernels()[0];
    sampler.facts().variant = Some(kernel.name.to_string());

    let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
    let (pages, placement) = (case.placement.pages, &case.placement);
    let mut first = None;
    if seats.len() == 1 {
        first = Some(resident(largest, pages, &placement.seats[0].mem_nodes, pattern)?);
    }
    match &first {
        Some(memory) => {
            note_memory(sampler, memory);
            for bytes in sizes {
                read_alone(sampler, kernel, memory, bytes)?;
            }
        }
        None => {
            // Each member maps and writes its own block after it is pinned: the memory lies where it is read.
            let leaders = Cell::new((None, None));
            let build = |index: usize| -> anyhow::Result<Body> {
                let memory = resident(largest, pages, &placement.seats[index].mem_nodes, pattern)?;
                if index == 0 {
                    leaders.set((huge_share(&memory), memory.resident_share().ok()));
                }
                Ok(Box::new(move |order| {
                    let (size, passes) = unpack(order);
                    kernel.run(&memory.words()[..size / 8], passes)
                }))
            };
            let mut team = Team::start(&seats, sampler.clock(), build)?;
            let (huge, resident) = leaders.get();
            let facts = sampler.facts();
            facts.memory_bytes = Some(largest * seats.len() as u64);
            (facts.huge_share, facts.resident_share) = (huge, resident);
            for bytes in sizes {
                read_together(sampler, &mut team, bytes, seats.len())?;
            }
        }
    }
    Ok(())
}

fn read_alone(sampler: &mut Sampler, kernel: ReadKernel, memory: &Mapping, bytes: u64) -> anyhow::Result<()> {
    let words = &memory.words()[..bytes as usize / 8];
    let (mut sum, mut passes) = (0u64, 0u64);
    sampler.time(Point::new("bandwidth", bytes as f64).at(point("bytes", bytes)), |n| {
        sum = sum.wrapping_add(kernel.run(words, n));
        passes = passes.wrapping_add(n);
    })?;
    check_sum(sum, passes, bytes, 0)
}

fn read_together(sampler: &mut Sampler, team: &mut Team, bytes: u64, tasks: usize) -> anyhow::Result<()> {
    let mut wrong = None;
    let at = Point::new("bandwidth", (bytes * tasks as u64) as f64).at(point("bytes", bytes));
    sampler.time_by(at, |passes| {
        let laps = team.round(pack(bytes, passes))?;
        for (index, lap) in laps.iter().enumerate() {
            wrong = wrong.take().or_else(|| check_sum(lap.answer, passes, bytes, index).err());
        }
        let start = laps.iter().map(|lap| lap.start_ns).fold(f64::INFINITY, f64::min);
        let end = laps.iter().map(|lap| lap.end_ns).fold(f64::NEG_INFINITY, f64::max);
        Ok(end - start)
    })?;
    wrong.map_or(Ok(()), Err)
}

/// Block and passes in one word: a block is a multiple of 512 bytes below 2^46, passes stay far below 2^26.
fn pack(bytes: u64, passes: u64) -> u64 {
    (bytes / BLOCK_BYTES as u64) << 26 | passes.min((1 << 26) - 1)
}

fn unpack(order: u64) -> (usize, u64) {
    ((order >> 26) as usize * BLOCK_BYTES, order & ((1 << 26) - 1))
}

fn check_sum(sum: u64, passes: u64, bytes: u64, task: usize) -> anyhow::Result<()> {
    // Sum of (i + 1) * K for i in 0..n.
    let words = u128::from(bytes / 8);
    let once = ((words * (words + 1) / 2) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    check_answer(sum == once.wrapping_mul(passes), || {
        format!("task {task} read {passes} × {bytes} bytes and got the wrong sum {sum:#x}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_sum_is_the_sum() {
        let words = 4096;
        let sum = (0..words).map(pattern).fold(0, |sum: u64, word| sum.wrapping_add(word));
        check_sum(sum.wrapping_mul(3), 3, words as u64 * 8, 0).expect("right");
        assert!(check_sum(sum.wrapping_mul(3) ^ 1, 3, words as u64 * 8, 0).is_err());
        assert_eq!(unpack(pack(1 << 40, 12345)), (1 << 40, 12345));
    }
}
