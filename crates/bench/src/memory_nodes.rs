//! Memory of every NUMA node, seen from every node with CPUs.

use super::memory::{self, beyond_caches, note_memory, resident};
use super::stream_crew::Crew;
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, View, check_answer};
use crate::row::{gb_per_s, latency_ns, matrix};
use kernels::{Chain, Op};
use machine::Node;
use model::vocabulary::memory as ids;
use model::{Case, Pages, Placement};

const NODE: Param = Param::int(ids::param::NODE, "node of the CPUs", 0..=1 << 16);
const MEMORY: Param = Param::int(ids::param::MEMORY, "node of the memory", 0..=1 << 16);

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::NODE_BANDWIDTH,
        title: "Bandwidth between NUMA nodes",
        about: "Read bandwidth of all cores of a NUMA node from the memory of each node, its own included.",
        reading: "More is better. The diagonal is local memory; off it the links between sockets or dies limit. Half \
                  of local is usual between two sockets. An uneven diagonal is a node with fewer or slower memory \
                  modules. A node with memory only (CXL, HBM) has a column but no row.",
        method: "One task on each core of a node reads its own block, bound to one node's memory, on huge pages. \
                 Blocks exceed the last-level cache if the node has room. The pages are checked to lie where they \
                 were bound.",
        source: file!(),
        metrics: &[gb_per_s(ids::metric::BANDWIDTH, "bandwidth")],
        params: &[NODE, MEMORY, Param::choice(ids::param::OP, "operation on the memory", &["read"])],
        view: &VIEW,
        cases: bandwidth_cases,
        run: run_bandwidth,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::NODE_LATENCY,
        title: "Latency between NUMA nodes",
        about: "Latency of dependent loads from a CPU of each NUMA node to the memory of each node.",
        reading: "Lower is better. The diagonal is local memory, 70–140 ns. Remote memory takes 1.4–2.5 × as long, \
                  CXL 2–3 ×. Compare the order with the distances that the firmware reports. They are sometimes \
                  wrong, and schedulers and allocators use them.",
        method: "One task follows a random chain through a block bound to one node's memory, on huge pages. The \
                 chain is checked to close, and the pages to lie where they were bound.",
        source: file!(),
        metrics: &[latency_ns(ids::metric::LATENCY, "latency")],
        params: &[NODE, MEMORY],
        view: &VIEW,
        cases: latency_cases,
        run: run_latency,
        ..Benchmark::PINNED
    },
];

const VIEW: View = matrix(ids::param::NODE, ids::param::MEMORY);

const LINE_BYTES: usize = 64;

/// Pairs for which the quick profile has time.
const PAIRS_QUICK: usize = 16;
/// More pairs than this (32 nodes) are sampled, unless all are asked for: every node's own memory,
/// and some of others.
const PAIRS_MOST: usize = 1024;

/// Share of a node's free memory that a pass may take.
const NODE_SHARE: f64 = 0.5;

fn bandwidth_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    pairs(bench, "per-node", scope, |placement, memory| {
        let bytes = block(scope, &placement, memory);
        let tasks = placement.seats.len() as u64;
        let each = (bytes / tasks / 512 * 512).max(512);
        let rounds = (scope.windows.count + scope.windows.warm_up + 9) as f64;
        // Remote memory may come at 2 GB/s.
        let seconds = scope.seconds(1, 1.0, each as f64 * (rounds / 4e9 + 2.0 / 2e9));
        let mut candidate = Candidate::new(bench.id, placement, 70, seconds)
            .param(ids::param::OP, "read")
            .memory(each * tasks);
        candidate.case.inputs.insert(ids::param::BYTES.into(), each.to_string());
        candidate
    })
}

fn latency_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    pairs(bench, "per-node", scope, |mut placement, memory| {
        // The second core of the node, where it has one: the first serves more interrupts.
        let seat = placement.seats.swap_remove(usize::from(placement.seats.len() > 1));
        let placement = Placement { name: "one-cpu".into(), seats: vec![seat], ..placement };
        let bytes = block(scope, &placement, memory).min(128 << 30) / 2;
        let seconds = scope.seconds(1, 1.0, bytes as f64 / LINE_BYTES as f64 * 250e-9);
        let mut candidate = Candidate::new(bench.id, placement, 71, seconds).memory(bytes + bytes / 16);
        candidate.case.inputs.insert(ids::param::BYTES.into(), bytes.to_string());
        candidate
    })
}

/// A candidate for every node with CPUs and every node with memory.
fn pairs(
    bench: &Benchmark,
    placement_name: &'static str,
    scope: &Scope,
    candidate: impl Fn(Placement, &Node) -> Candidate,
) -> Vec<Candidate> {
    let unmet = |why: &str| vec![Candidate::unmet(bench.id, placement_name, why.to_string())];
    let allowed = scope.machine.limits.mems.as_ref();
    let memories: Vec<&Node> = scope
        .machine
        .nodes
        .iter()
        .filter(|node| node.total_bytes != Some(0) && allowed.is_none_or(|mems| mems.contains(node.id)))
        .collect();
    let groups = scope.placements.per_node("task");
    let pairs = memories.len() * groups.len();
    match (groups.len(), memories.len()) {
        (0, _) | (_, 0) => return unmet("the kernel reports no NUMA nodes"),
        (_, 1) => return unmet("needs a second NUMA node with memory"),
        _ => {}
    }
    if scope.depth == Depth::Quick && pairs > PAIRS_QUICK {
        return unmet(&format!("{pairs} pairs of nodes are measured by the standard and full profiles"));
    }
    let step = if scope.all { 1 } else { pairs.div_ceil(PAIRS_MOST) };
    let of_group = |(index, (id, group)): (usize, &(u32, Placement))| -> Vec<Candidate> {
        let placed = |node: &Node| group.clone().pages(Pages::Huge).memory_on(node.id);
        let named = |candidate: Candidate, memory: u32| {
            candidate.param(ids::param::NODE, u64::from(*id)).param(ids::param::MEMORY, u64::from(memory))
        };
        // Another one of the far memories for each node.
        let chosen = |(at, node): &(usize, &&Node)| node.id == *id || (at + index).is_multiple_of(step);
        let chosen = memories.iter().enumerate().filter(chosen);
        chosen.map(|(_, node)| named(candidate(placed(node), node), node.id)).collect()
    };
    groups.iter().enumerate().flat_map(of_group).collect()
}

/// The block of all tasks together, bytes: beyond the caches, and never more than a share of what
/// the node has free.
fn block(scope: &Scope, placement: &Placement, memory: &Node) -> u64 {
    let free = memory.free_bytes.map_or(u64::MAX, |free| (free as f64 * NODE_SHARE) as u64);
    beyond_caches(scope, placement, 1).min(free).max(64 << 10)
}

fn run_bandwidth(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let bytes = memory::sizes_of(case).first().copied().unwrap_or(64 << 10);
    let tasks = case.placement.seats.len() as f64;
    let mut crew = Crew::start(case, Op::Read, bytes, sampler)?;
    let work = kernels::array_bytes(Op::Read, bytes) as f64 * tasks;
    sampler.time_by(Point::new(ids::metric::BANDWIDTH, work), |passes| crew.work(bytes, passes))?;
    is_local(sampler)
}

fn run_latency(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let bytes = memory::sizes_of(case).first().copied().unwrap_or(64 << 10);
    let nodes = case.placement.seats.first().map_or_else(Default::default, |seat| seat.mem_nodes.clone());
    let mut memory = resident(bytes, case.placement.pages, &nodes, |index| index as u64)?;
    note_memory(sampler, &memory, &nodes);
    let mut chain = Chain::random(memory.words_mut(), LINE_BYTES, sampler.seed());
    sampler
        .time(Point::new(ids::metric::LATENCY, Chain::UNROLL as f64), |n| chain.walk(n * Chain::UNROLL))?;
    check_answer(chain.visits_every_line(), || format!("a chain through {bytes} bytes did not close"))?;
    is_local(sampler)
}

/// A bound page on another node would be a bug of the kernel or of Assay, and the figure that of
/// another pair.
fn is_local(sampler: &mut Sampler) -> anyhow::Result<()> {
    let remote = sampler.facts().remote_share.unwrap_or(0.0);
    check_answer(remote == 0.0, || {
        format!("{:.1} % of the memory is not on the node it was bound to", remote * 100.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Windows;
    use crate::placement::Placements;
    use machine::{Core, Machine};
    use model::CpuSet;

    /// Two nodes with two cores each, and a third with memory only.
    fn machine() -> Machine {
        let mut machine = Machine::default();
        machine.cpus.online = (0..4).collect();
        let core = |cpu| Core { cpus: CpuSet::one(cpu), ..Core::default() };
        machine.cpus.cores = Some((0..4).map(core).collect());
        let node = |id: u32, cpus: CpuSet| Node {
            id,
            cpus,
            total_bytes: Some(1 << 30),
            free_bytes: Some(1 << 29),
            ..Node::default()
        };
        let cpus = |first: u32| (first..first + 2).collect::<CpuSet>();
        machine.nodes = vec![node(0, cpus(0)), node(1, cpus(2)), node(2, CpuSet::default())];
        machine
    }

    fn keys(machine: &Machine, depth: Depth) -> Vec<String> {
        let placements = Placements::of(machine);
        let windows = Windows { window_ns: 1e6, count: 3, warm_up: 1, limit_s: 1.0 };
        let scope =
            Scope { machine, placements: &placements, depth, memory_bytes: 1 << 28, windows, all: false };
        let of = |bench: &Benchmark| (bench.cases)(bench, &scope);
        let candidates: Vec<Candidate> = BENCHMARKS.iter().flat_map(of).collect();
        let ran = candidates.iter().filter(|candidate| candidate.unmet.is_none());
        ran.map(|candidate| {
            let bound = candidate.case.placement.seats.iter().all(|seat| seat.mem_nodes.len() == 1);
            assert!(bound && candidate.memory_bytes <= 1 << 28, "{candidate:?}", candidate = candidate.case);
            candidate.case.key()
        })
        .collect()
    }

    #[test]
    fn every_node_with_cpus_meets_every_node_with_memory() {
        let keys = keys(&machine(), Depth::Quick);
        assert_eq!(keys.len(), 2 * 2 * 3);
        assert!(
            keys.contains(&"memory.node-latency@one-cpu+huge-pages?memory=2&node=1".to_string()),
            "{keys:?}"
        );
        assert!(!keys.iter().any(|key| key.contains("node=2")));
    }

    #[test]
    fn nodes_that_may_not_be_used_or_have_nothing_are_left_out() {
        let mut narrow = machine();
        narrow.limits.mems = Some((0..2).collect());
        assert_eq!(keys(&narrow, Depth::Quick).len(), 2 * 2 * 2);
        narrow.nodes[1].total_bytes = Some(0);
        assert!(keys(&narrow, Depth::Quick).is_empty());
    }
}
