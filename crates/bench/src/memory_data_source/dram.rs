//! Lines from memory: in random order over a whole block, and within spreads that TLBs reach.

use std::rc::Rc;

use anyhow::Context;

use super::{
    Benchmark, Candidate, DRAM_REMOTE, Distance, FIRST_MARK, HUGE_PAGE, Placement, STRETCH_ALONE, Scope,
    input,
};
use super::{candidate, ids, latency_point};
use crate::memory::{self, note_memory, resident};
use crate::{Sampler, check_answer, point};
use kernels::{LINE_BYTES, Ring, Visits};
use machine::{Machine, Node};
use model::{Case, CpuSet, Params};
use sys::clock::Clock;

/// Flushed lines come from memory however large the block is; more than this only takes longer.
const MAX_DRAM: u64 = 512 << 20;

/// Distance of the lines of an order. Nearer ones prefetchers find even in random order: with a
/// line in each 64 bytes a walk within 64 KiB took 37 ns where memory takes 97.
const NODE: u64 = 256;
/// The line of a node that each of two orders has. Prefetchers fetch lines in pairs of 128 bytes:
/// those of one order do not bring those of the other along.
const LINE_OF: [u32; 2] = [0, 2];

/// Spreads other than the whole block, bytes: 64 base pages, which the nearest TLB holds and which
/// are enough pages for no prefetcher to follow (16 are not); and 1024, which the second level
/// holds (from 1024 on Neoverse to 3072 on Zen).
const SPREADS: [u64; 2] = [256 << 10, 4 << 20];

pub fn dram(bench: &Benchmark, scope: &Scope, placement: Placement, source: &'static str) -> Candidate {
    // Half of what a pass may touch: the order of the walk needs some as well, and setting up takes
    // time.
    let bytes = memory::beyond_caches(scope, &placement, 2).min(MAX_DRAM).next_multiple_of(HUGE_PAGE);
    // With fewer groups the order would not be random.
    let spreads: Vec<u64> = SPREADS.into_iter().filter(|spread| bytes >= 16 * spread).collect();
    let nodes = bytes / NODE;
    // Zeroed; an order shuffled, linked and flushed takes about 100 ns a line.
    let setup_s = (bytes as f64 / 4e9) + (nodes * (1 + spreads.len() as u64)) as f64 * 100e-9;
    let windows = 2 * spreads.len().max(1);
    let list: Vec<String> = spreads.iter().map(u64::to_string).collect();
    let mut candidate = candidate(bench, placement, source, scope.seconds(windows, STRETCH_ALONE, setup_s))
        // The orders and what they are made from.
        .memory(bytes + nodes * 16)
        .input(&ids::param::BYTES, bytes);
    candidate.case.inputs.insert(SPREADS_INPUT.into(), list.join(","));
    candidate
}

/// The case's input that lists its spreads.
const SPREADS_INPUT: &str = "spreads";

fn spreads(case: &Case) -> Vec<u64> {
    let list = case.inputs.get(SPREADS_INPUT).map_or("", String::as_str);
    list.split(',').filter_map(|spread| spread.parse().ok()).collect()
}

/// The points other than the whole block.
pub fn spread_points(case: &Case) -> impl Iterator<Item = Params> {
    spreads(case).into_iter().map(|spread| point(ids::param::WITHIN, spread))
}

/// Memory of other nodes: the nearest in this package, the farthest in another one.
pub fn remote_dram(bench: &Benchmark, scope: &Scope, one: &Placement) -> Vec<Candidate> {
    let cpu = one.cpus().first().unwrap_or(0);
    let machine = scope.machine;
    let found = [Distance::OtherNode, Distance::OtherPackage].map(|to| (to, far_node(machine, cpu, to)));
    let row = |(to, node): (Distance, Result<u32, String>)| match node {
        Ok(node) => {
            let mut placement = Placement { name: to.name().into(), ..one.clone() };
            placement.seats[0].mem_nodes = CpuSet::one(node);
            dram(bench, scope, placement, DRAM_REMOTE)
        }
        Err(why) => Candidate::unmet(bench.id, to.name(), why).param(ids::param::SOURCE, DRAM_REMOTE),
    };
    found.into_iter().map(row).collect()
}

pub(super) fn far_node(machine: &Machine, cpu: u32, to: Distance) -> Result<u32, String> {
    let nodes = &machine.nodes;
    let Some(own) = nodes.iter().find(|node| node.cpus.contains(cpu)).filter(|_| nodes.len() > 1) else {
        return Err("needs a second NUMA node".to_string());
    };
    let package = |cpu: u32| {
        let packages = machine.cpus.packages.as_deref().unwrap_or_default();
        packages.iter().find(|package| package.cpus.contains(cpu)).map(|package| package.id)
    };
    // Memory without CPUs (CXL, HBM) belongs to no package.
    let elsewhere = |node: &Node| {
        let there = node.cpus.first().and_then(package);
        there.is_some() && there != package(cpu)
    };
    let far = |index: usize| own.distances.get(index).copied().unwrap_or(u32::MAX);
    let allowed = |node: &Node| machine.limits.mems.as_ref().is_none_or(|mems| mems.contains(node.id));
    let has_memory = |node: &Node| node.total_bytes != Some(0) && allowed(node);
    let others = nodes.iter().enumerate().filter(|(_, node)| node.id != own.id && has_memory(node));
    let others = others.map(|(index, node)| (far(index), node));
    let best = match to {
        Distance::OtherPackage => others.filter(|(_, node)| elsewhere(node)).max_by_key(|(far, _)| *far),
        _ => others.filter(|(_, node)| !elsewhere(node)).min_by_key(|(far, _)| *far),
    };
    best.map(|(_, node)| node.id).ok_or_else(|| match to {
        Distance::OtherPackage => "needs memory of a second package".to_string(),
        _ => "needs memory of a second NUMA node in this package".to_string(),
    })
}

/// One line of each node, in this order, counted in [`LINE_BYTES`].
pub(super) fn lines(bytes: usize, which: usize, visits: Visits, seed: u64) -> Vec<u32> {
    let mut lines = visits.order(bytes / NODE as usize, NODE as usize, seed);
    lines.iter_mut().for_each(|node| *node = *node * (NODE / LINE_BYTES as u64) as u32 + LINE_OF[which]);
    lines
}

/// A ring whose lines come from memory: flushed before a walk would come to one again.
struct Flushed {
    ring: Ring,
    /// Loads until then.
    left: u64,
}

impl Flushed {
    /// The time of `loads` loads, ns.
    fn walk(&mut self, loads: u64, clock: Clock) -> f64 {
        if self.left < loads {
            self.ring.flush();
            self.left = self.ring.lines();
        }
        self.left = self.left.saturating_sub(loads);
        let begin = clock.now();
        self.ring.walk(loads);
        clock.now() - begin
    }
}

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let bytes = input(case, &ids::param::BYTES).context("the case has no size")?;
    let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
    let memory = resident(bytes, case.placement.pages, &nodes, |_| 0)?;
    note_memory(sampler, &memory, &nodes);
    let (memory, clock) = (Rc::new(memory), sampler.clock());
    let flushed = |which, visits, seed| {
        let lines = lines(memory.len(), which, visits, seed);
        Flushed { ring: Ring::in_order(Rc::clone(&memory), lines, FIRST_MARK), left: 0 }
    };
    let mut whole = flushed(0, Visits::Random, sampler.seed());
    let spreads = spreads(case);
    for spread in &spreads {
        let visits = Visits::RandomInPages(usize::try_from(*spread)?);
        let within = flushed(1, visits, sampler.seed() ^ spread);
        let mut both = [whole, within];
        let points =
            [latency_point(Ring::UNROLL), latency_point(Ring::UNROLL).at(point(ids::param::WITHIN, *spread))];
        sampler.time_alternating(points, ids::metric::TRANSLATION, |which, turns| {
            Ok(both[which].walk(turns * Ring::UNROLL, clock))
        })?;
        both.iter().try_for_each(|one| right(&one.ring))?;
        [whole, _] = both;
    }
    if spreads.is_empty() {
        sampler.time_by(latency_point(Ring::UNROLL), |turns| Ok(whole.walk(turns * Ring::UNROLL, clock)))?;
    }
    right(&whole.ring)
}

fn right(ring: &Ring) -> anyhow::Result<()> {
    check_answer(ring.ended_correctly(), || {
        format!("the chain through {} lines ended at a wrong line", ring.lines())
    })
}
