//! What the memory benchmarks share: which sizes to measure on this host, and memory that is
//! really there.

use anyhow::{Context, bail};
use model::vocabulary::memory as ids;

use super::{Sampler, Scope};
use machine::{Cache, CacheKind, Machine};
use model::{Case, CpuSet, Pages, Params, Placement};
use sys::mapping::Mapping;
use sys::{affinity, counters};

/// Sizes if the kernel reports no cache: typical of the last fifteen years.
const TYPICAL_L1: u64 = 32 << 10;
const TYPICAL_L2: u64 = 512 << 10;
const TYPICAL_LLC: u64 = 32 << 20;

/// No block is larger, whatever a host claims to have: more than any server holds.
const MAX_BYTES: u64 = 1 << 46;

/// Data cache of one level that a CPU has, bytes, as the kernel claims.
pub fn cache_bytes(machine: &Machine, cpu: u32, level: u32) -> Option<u64> {
    let cache = machine.caches.iter().find(|cache| {
        cache.level == level && cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu)
    });
    cache?.size_bytes
}

/// The sizes that decide what a size measures, for the first CPU of a placement: L1, L2 and last
/// level, bytes.
pub fn cache_ladder(machine: &Machine, placement: &Placement) -> [u64; 3] {
    let cpu = placement.cpus().first().unwrap_or(0);
    let l1 = cache_bytes(machine, cpu, 1).unwrap_or(TYPICAL_L1);
    let l2 = cache_bytes(machine, cpu, 2).unwrap_or(TYPICAL_L2.max(l1));
    let last = (3..=4).rev().find_map(|level| cache_bytes(machine, cpu, level));
    // A CPU that claims its L2 as last level (a guest with its L3 hidden) may well use the host's
    // L3.
    [l1, l2, last.unwrap_or(TYPICAL_LLC.max(l2))]
}

/// What all last-level caches that a placement's CPUs use hold together, bytes, as the kernel
/// claims.
pub fn last_level_bytes(machine: &Machine, placement: &Placement) -> u64 {
    let cpus = placement.cpus();
    let used = |cache: &&Cache| cache.kind != CacheKind::Instruction && !cache.cpus.is_disjoint(&cpus);
    let last = machine.caches.iter().filter(used).map(|cache| cache.level).max().unwrap_or(0);
    let caches = machine.caches.iter().filter(|cache| cache.level == last).filter(used);
    let bytes = caches.fold(0u64, |sum, cache| sum.saturating_add(cache.size_bytes.unwrap_or(0)));
    bytes.max(cache_ladder(machine, placement)[2])
}

/// The size that stands for DRAM, of all tasks together: a power of two of at least twice the
/// claimed last level (of all that the placement uses), within what the plan allows. Inside the
/// last level where memory is short: the report says so.
pub fn beyond_caches(scope: &Scope, placement: &Placement, share: u64) -> u64 {
    let [_, l2, _] = cache_ladder(scope.machine, placement);
    let last = last_level_bytes(scope.machine, placement);
    let wanted = last.saturating_mul(2).max(64 << 20).checked_next_power_of_two().unwrap_or(MAX_BYTES);
    let allowed = prev_power_of_two(scope.memory_bytes / share.max(1)).min(MAX_BYTES);
    let beyond_l2 = l2.checked_next_power_of_two().unwrap_or(MAX_BYTES).min(allowed / 4) * 4;
    wanted.min(allowed).max(beyond_l2).max(64 << 10)
}

/// Sizes from `from` in steps of `factor` up to `to`, which is always the last one.
pub fn sizes_up_to(from: u64, to: u64, factor: u64) -> Vec<u64> {
    let steps = std::iter::successors(Some(from), |size| size.checked_mul(factor));
    steps.take_while(|size| *size < to).chain([to]).collect()
}

fn prev_power_of_two(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { 1 << bytes.ilog2() }
}

/// Sizes as a case's input, and back.
pub fn sizes_input(sizes: &[u64]) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

pub fn sizes_of(case: &Case) -> Vec<u64> {
    let list = case.inputs.get(&*ids::param::BYTES).map_or("", String::as_str);
    list.split(',').filter_map(|size| size.parse().ok()).collect()
}

pub fn size_points(case: &Case) -> Vec<Params> {
    sizes_of(case).into_iter().map(|size| super::point(ids::param::BYTES, size)).collect()
}

/// Maps memory for measuring, writes every word of it by `fill` and checks that it is all there.
pub fn resident(
    bytes: u64,
    pages: Pages,
    nodes: &CpuSet,
    fill: impl Fn(usize) -> u64,
) -> anyhow::Result<Mapping> {
    let len = usize::try_from(bytes).context("more memory than addresses")?;
    let memory = Mapping::private(len, pages, nodes).with_context(|| format!("cannot map {bytes} bytes"))?;
    written(memory, fill)
}

/// A mapping with every word written; an error where some of it did not stay in memory.
pub fn written(mut memory: Mapping, fill: impl Fn(usize) -> u64) -> anyhow::Result<Mapping> {
    let bytes = memory.len();
    write(&mut memory, fill);
    let share = memory.resident_share().context("cannot check that memory is resident")?;
    if share < 1.0 {
        bail!("only {:.1} % of {bytes} bytes stayed in memory: free some memory", share * 100.0);
    }
    Ok(memory)
}

/// Writes every word.
pub fn write(memory: &mut Mapping, fill: impl Fn(usize) -> u64) {
    for (index, word) in memory.words_mut().iter_mut().enumerate() {
        *word = fill(index);
    }
}

/// A huge page, bytes.
const HUGE_PAGE: usize = 2 << 20;

/// Share of a mapping that huge pages back, 0..1; `None` if it is too small for any, or the kernel
/// does not report it.
pub fn huge_share(memory: &Mapping) -> Option<f64> {
    let huge = counters::huge_bytes(memory.as_ptr() as usize, memory.len())?;
    let could_be_huge = memory.len() / HUGE_PAGE * HUGE_PAGE;
    (could_be_huge > 0).then(|| huge as f64 / could_be_huge as f64)
}

/// The same of several ranges (address, bytes) together, of which those below a huge page cannot be
/// backed by any.
pub fn huge_share_of(ranges: &[(usize, usize)]) -> Option<f64> {
    let large: Vec<(usize, usize)> = ranges.iter().copied().filter(|(_, len)| *len >= HUGE_PAGE).collect();
    let could_be: usize = large.iter().map(|(_, len)| len / HUGE_PAGE * HUGE_PAGE).sum();
    let huge = counters::huge_bytes_of(&large)?;
    (could_be > 0).then(|| (huge as f64 / could_be as f64).min(1.0))
}

/// Pages whose node is looked up.
const LOOKS: usize = 512;

/// Share of a mapping's pages that lie on other NUMA nodes than `meant` (empty: the node of the CPU
/// that asks), 0..1; `None` if the kernel does not report it.
pub fn remote_share(memory: &Mapping, meant: &CpuSet) -> Option<f64> {
    let nodes = memory.nodes_of_pages(LOOKS).ok().filter(|nodes| !nodes.is_empty())?;
    let here = affinity::current_node()?;
    let is_meant = |node: u32| if meant.is_empty() { node == here } else { meant.contains(node) };
    Some(nodes.iter().filter(|node| !is_meant(**node)).count() as f64 / nodes.len() as f64)
}

/// Notes size, residency, huge pages and place of a pass's memory, which was meant to lie on
/// `nodes`.
pub fn note_memory(sampler: &mut Sampler, memory: &Mapping, nodes: &CpuSet) {
    let facts = sampler.facts();
    facts.memory_bytes = Some(memory.len() as u64);
    facts.resident_share = memory.resident_share().ok();
    facts.huge_share = huge_share(memory);
    facts.remote_share = remote_share(memory, nodes);
}
