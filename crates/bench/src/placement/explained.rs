//! What each placement means, in the order of distance: `assay explain placements`, and each by its
//! word.

/// Name as in a key, and its meaning.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "free",
        "Left to the scheduler: each task may use every CPU this process may use. The score then holds the scheduler's choice.",
    ),
    (
        "one-cpu",
        "One task, pinned to one CPU: not the first, if there is another, because that serves most interrupts.",
    ),
    ("same-cpu", "Two tasks pinned to one CPU: they take turns, and a message never leaves its cache."),
    ("smt-sibling", "Two tasks on two threads of one core: they share its units and its L1 and L2."),
    ("same-cluster", "Two cores that share a cache below the last level (an L2), or a cluster."),
    ("same-llc", "Two cores that share the last-level cache (L3)."),
    ("other-llc", "Two cores of one package and node with different L3s."),
    ("other-node", "Two cores on different NUMA nodes of one package."),
    ("other-package", "Two cores on different sockets."),
    ("other-cpu", "Two CPUs of which the kernel reports nothing more: common in guests."),
    ("all", "One task on every usable CPU."),
    ("one-per-core", "One task on the first CPU of every core; SMT siblings stay idle."),
    ("per-llc", "One task on every core of one last-level cache."),
    ("per-node", "One task on every core of one NUMA node."),
    ("spread", "Tasks pinned in turn: one core each while there are cores, then their second threads."),
    ("duet", "Two programs at once, each on one of two like CPUs, which they swap every other round."),
];

/// What may stand behind a placement's name.
const BESIDE: &str = "+huge and +base: memory on huge pages, checked, or on base pages. +beside-same-work, +beside-spinner, \
                      +beside-stream: the SMT siblings of the measured CPUs, or without SMT the nearest other cores, do \
                      that meanwhile. +awake: a task of the lowest priority keeps the measured CPUs from idling, so that \
                      waking a CPU is left out.";

pub fn explained() -> Vec<(&'static str, String)> {
    let first = "A benchmark of several tasks has one figure for each place they can sit. Compare like with like: pinned figures \
                 compare hardware, free ones compare schedulers. Which CPUs share what is as the kernel reports it; \
                 cpu.pair-slowdown and memory.core-to-core measure whether that is so.";
    let each = EXPLAINED.iter().map(|(name, text)| (*name, text.to_string()));
    std::iter::once(("What it means", first.to_string()))
        .chain(each)
        .chain([("Behind the name", BESIDE.to_string())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Distance, Floor};
    use super::*;
    use crate::{Depth, Scope};

    #[test]
    fn every_placement_that_a_row_offers_is_explained() {
        let is_explained = |name: &str| EXPLAINED.iter().any(|(own, _)| *own == name);
        for distance in Distance::ALL {
            assert!(is_explained(distance.name()), "{}", distance.name());
        }
        let machine = super::super::tests::big();
        let floor = Floor::of(&machine);
        let depth = Depth::Full;
        let windows = depth.windows();
        let scope =
            Scope { machine: &machine, floor: &floor, depth, memory_bytes: 1 << 30, windows, all: false };
        for bench in crate::all() {
            for candidate in (bench.cases)(bench, &scope) {
                let name = candidate.case.placement.name;
                assert!(is_explained(&name), "{} offers {name}", bench.id);
            }
        }
    }
}
