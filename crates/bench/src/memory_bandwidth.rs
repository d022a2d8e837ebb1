//! Memory bandwidth by size: nine operations, on one task and on many at once.

use crate::row::{gb_per_s, log_curve};
use anyhow::Context;
use model::vocabulary::memory as ids;

use super::memory::{self, beyond_caches, cache_ladder, last_level_bytes, sizes_up_to};
use super::stream_crew::{Crew, Worker};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, point};
use kernels::{Op, streams};
use model::{Case, Pages, Placement};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::BANDWIDTH,
    title: "Memory bandwidth",
    about: "Bandwidth of reading, writing and copying blocks of different sizes with the CPU's widest vectors, for \
            one task and for many.",
    reading: "A block inside L1 or L2 shows the core, one beyond the last-level cache the memory. The limit is \
              channels × transfers a second × 8 bytes; 70–90 % of it on all CPUs is good. One CPU cannot use all \
              channels of a server. lmbench reports half of this copy, because it counts copied bytes only. Half of \
              what equal hosts reach means a missing or misplaced DIMM, remote memory or other guests.",
    method: "read loads all words; read-write adds to every word in place. write-nt and copy-nt bypass the caches; \
             copy-nt on x86 works on four pages at once, as C libraries do. copy-rep and fill use the CPU's own \
             instruction (rep movsb; rep stosb, dc zva). triad is a = b + s × c. All others go line by line, and \
             results are checked. Bytes count as the program moves them: copy counts reads and writes. A block holds \
             all arrays of its operation. Many tasks count all bytes from the first start to the last end. Memory is \
             on huge pages, written first and checked to be resident. Beyond the last-level cache, bus_traffic adds \
             the line that each plain store fetches first. It is 2 × for write, 1.5 × for copy, 4/3 × for triad.",
    source: file!(),
    metrics: &[
        gb_per_s(ids::metric::BANDWIDTH, "bandwidth"),
        gb_per_s(ids::metric::BUS_TRAFFIC, "memory bus traffic with write-allocate").aside(),
    ],
    params: &[
        Param::choice(ids::param::OP, "operation on the memory", &OP_NAMES),
        Param::bytes(ids::param::BYTES, "block of each task, bytes", 512..=1 << 46),
        Param::int(ids::param::LLC, "number of the last-level cache", 0..=1 << 16),
        Param::int(ids::param::NODE, "NUMA node", 0..=1 << 16),
    ],
    view: &log_curve(ids::param::BYTES),
    cases,
    points: memory::size_points,
    run,
    ..Benchmark::PINNED
}];

/// What the parameter's words stand for. Reading loads without adding up, as fast as the core can.
const OPS: [Op; 9] =
    [Op::Load, Op::Write, Op::WriteNt, Op::ReadWrite, Op::Copy, Op::CopyNt, Op::CopyRep, Op::Fill, Op::Triad];
const OP_NAMES: [&str; 9] =
    ["read", "write", "write-nt", "read-write", "copy", "copy-nt", "copy-rep", "fill", "triad"];

/// What every report needs.
const ESSENTIAL: [Op; 3] = [Op::Load, Op::Write, Op::Copy];

fn op_name(op: Op) -> &'static str {
    OPS.iter().zip(OP_NAMES).find(|(known, _)| **known == op).map_or("", |(_, name)| name)
}

/// Bytes that the program moves for each byte of a block.
fn moved(op: Op) -> f64 {
    if op == Op::ReadWrite { 2.0 } else { 1.0 }
}

/// Bytes on the memory bus for each byte moved, when plain stores fetch their line first; `None`
/// where the CPU decides.
fn on_the_bus(op: Op) -> Option<f64> {
    match op {
        Op::Read | Op::Load | Op::ReadWrite | Op::WriteNt | Op::CopyNt => Some(1.0),
        Op::Write => Some(2.0),
        Op::Copy => Some(1.5),
        Op::Triad => Some(4.0 / 3.0),
        Op::CopyRep | Op::Fill => None,
    }
}

/// Forking and seating a task, s.
const FORK_S: f64 = 0.5e-3;

/// Samples of blocks that take microseconds need not be longer, ns.
const LONG_ENOUGH_NS: f64 = 2e6;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let (all, cores) = (scope.placements.all("copy"), scope.placements.one_per_core("copy"));
    let (smt, many) = (cores.seats.len() < all.seats.len(), all.seats.len() > 1);
    let mut candidates = Vec::new();
    for op in OPS {
        let essential = ESSENTIAL.contains(&op);
        if scope.depth == Depth::Quick && !essential {
            continue;
        }
        if op == Op::CopyRep && streams(op).len() < 2 {
            let why = "this CPU has no copy instruction: see copy".to_string();
            candidates.push(Candidate::unmet(bench.id, "one-cpu", why).param(ids::param::OP, op_name(op)));
            continue;
        }
        let priority = match op {
            Op::Load => 90,
            _ if essential => 82,
            _ => 60,
        };
        candidates.push(candidate(bench, scope, one.clone(), op, priority));
        if many {
            candidates.push(candidate(bench, scope, all.clone(), op, priority));
        }
        if smt && scope.depth > Depth::Quick {
            candidates.push(candidate(bench, scope, cores.clone(), op, priority - 10));
        }
    }
    if !many {
        candidates.push(Candidate::unmet(bench.id, "all", "needs two usable CPUs: see one-cpu".to_string()));
    }
    if scope.depth > Depth::Quick {
        if !smt {
            let why = "needs SMT siblings: see all".to_string();
            candidates.push(Candidate::unmet(bench.id, "one-per-core", why));
        }
        candidates.extend(groups(bench, scope));
    }
    candidates
}

/// More last-level caches or nodes than this are sampled, unless all are asked for.
const GROUPS_MOST: usize = 64;

/// What each last-level cache and each node draws by itself.
fn groups(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let llcs: Vec<(u64, Placement)> = (0..).zip(scope.placements.per_llc("copy")).collect();
    let nodes: Vec<(u64, Placement)> =
        scope.placements.per_node("copy").into_iter().map(|(id, group)| (u64::from(id), group)).collect();
    let kinds = [
        (ids::param::LLC, "per-llc", "needs a second L3: see all", llcs),
        (ids::param::NODE, "per-node", "needs CPUs on a second NUMA node: see all", nodes),
    ];
    let mut candidates = Vec::new();
    for (param, name, why, groups) in kinds {
        if groups.len() < 2 {
            candidates.push(Candidate::unmet(bench.id, name, why.to_string()));
            continue;
        }
        let step = if scope.all { 1 } else { groups.len().div_ceil(GROUPS_MOST) };
        let own = |(id, group)| candidate(bench, scope, group, Op::Load, 55).param(param, id);
        candidates.extend(groups.into_iter().step_by(step).map(own));
    }
    candidates
}

fn candidate(bench: &Benchmark, scope: &Scope, placement: Placement, op: Op, priority: u32) -> Candidate {
    let placement = placement.pages(Pages::Huge);
    let tasks = placement.seats.len() as u64;
    let [l1, l2, _] = cache_ladder(scope.machine, &placement);
    let smallest = Worker::smallest(op);
    let dram = (beyond_caches(scope, &placement, 1) / tasks).max(smallest);
    let sizes = match scope.depth {
        Depth::Quick => vec![l1 / 2, l2 / 2, dram],
        Depth::Standard => sizes_up_to(4 << 10, dram, 4),
        Depth::Full => sizes_up_to(4 << 10, dram, 2),
    };
    let mut sizes: Vec<u64> =
        sizes.into_iter().map(|bytes| (bytes.min(dram) / 512 * 512).max(smallest)).collect();
    sizes.dedup();
    // Written and checked at a few GB/s, worked on four times as fast, each task on its own CPU;
    // the sizes below are worked on for a time, not a volume.
    let rounds = (scope.windows.count + scope.windows.warm_up + 9) as f64;
    let seconds = scope.seconds(sizes.len(), scope.windows.no_longer_than(LONG_ENOUGH_NS), 0.0)
        + dram as f64 * ((rounds / 4.0 + 3.0) / 3e9)
        + tasks as f64 * FORK_S;
    let mut candidate = Candidate::new(bench.id, placement, priority, seconds)
        .param(ids::param::OP, op_name(op))
        .memory(dram * tasks);
    // A block this large is more than the caches hold, of all tasks together.
    let memory_from = last_level_bytes(scope.machine, &candidate.case.placement).saturating_mul(2) / tasks;
    candidate.case.inputs.insert(ids::param::BYTES.into(), memory::sizes_input(&sizes));
    candidate.case.inputs.insert("memory_from".into(), memory_from.to_string());
    candidate
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let sizes = memory::sizes_of(case);
    let name = case.params.get(ids::param::OP).and_then(|op| op.text()).unwrap_or_default();
    let known = OP_NAMES.iter().position(|known| *known == name);
    let op = OPS[known.with_context(|| format!("unknown operation {name:?}"))?];
    let memory_from = case.inputs.get("memory_from").and_then(|bytes| bytes.parse().ok()).unwrap_or(u64::MAX);
    let mut crew = Crew::start(case, op, sizes.iter().copied().max().unwrap_or(0), sampler)?;
    let tasks = case.placement.seats.len() as f64;
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS);
    for bytes in sizes {
        crew.prepare(bytes)?;
        let block = (kernels::array_bytes(op, bytes) * op.arrays() as u64) as f64;
        let mut at = Point::new(ids::metric::BANDWIDTH, block * moved(op) * tasks)
            .at(point(ids::param::BYTES, bytes))
            .stretch(stretch);
        if let Some(factor) = on_the_bus(op).filter(|_| bytes >= memory_from) {
            at = at.times(ids::metric::BUS_TRAFFIC, factor);
        }
        sampler.time_by(at, |passes| crew.work(bytes, passes))?;
        crew.check(bytes)?;
    }
    Ok(())
}
