//! What each placement means, in the order of distance: `assay explain placements`, and each by its
//! word.

/// Name as in a key, and its meaning.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "free",
        "Left to the scheduler: each task may use every CPU. The score then shows the scheduler's choice.",
    ),
    ("one-cpu", "Pinned to one CPU. The first CPU is avoided, because it serves most interrupts."),
    ("same-cpu", "Both tasks on one CPU: they alternate, and a message never leaves its cache."),
    ("smt-sibling", "Two threads of one core: they share its units, its L1 and its L2."),
    ("same-cluster", "Two cores that share an L2, or are of one cluster."),
    ("same-llc", "Two CPUs that share an L3, on different cores."),
    ("other-llc", "Two CPUs with different L3s, in one package and node."),
    ("other-node", "Two CPUs on different NUMA nodes of one package."),
    ("other-package", "Two CPUs on different sockets."),
    ("other-cpu", "Two CPUs whose distance the kernel does not report; common in guests."),
    ("all", "One task on every usable CPU."),
    ("one-per-core", "One task on every core; its SMT siblings stay idle."),
    ("per-llc", "One task on every core of one last-level cache."),
    ("per-node", "One task on every core of one NUMA node."),
    (
        "spread",
        "Tasks pinned round-robin over all CPUs: one core each while there are cores, then their second threads.",
    ),
    ("duet", "Two programs at once on two equal CPUs, which they swap every other round."),
];

/// What may stand behind a placement's name.
const BESIDE: &str = "+huge and +base: memory on huge pages, checked, or on base pages. +beside-same-work, +beside-spinner, +beside-stream: the SMT siblings run that load meanwhile, or without SMT the nearest other cores. +awake: a task of lowest priority keeps the measured CPUs from idling, so no CPU must be woken.";

pub fn explained() -> Vec<(&'static str, String)> {
    let first = "A benchmark of several tasks has one figure for each placement. Compare equal placements: pinned figures compare hardware, free ones compare schedulers. Caches and nodes are those that the kernel reports; cpu.pair-slowdown and memory.core-to-core check them.";
    let each = EXPLAINED.iter().map(|(name, text)| (*name, text.to_string()));
    std::iter::once(("What it means", first.to_string()))
        .chain(each)
        .chain([("Behind the name", BESIDE.to_string())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Distance, Placements};
    use super::*;
    use crate::{Depth, Scope};

    #[test]
    fn every_placement_that_a_row_offers_is_explained() {
        let is_explained = |name: &str| EXPLAINED.iter().any(|(own, _)| *own == name);
        for distance in Distance::ALL {
            assert!(is_explained(distance.name()), "{}", distance.name());
        }
        let machine = super::super::tests::big();
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Full, 1 << 30);
        for bench in crate::all() {
            for candidate in (bench.cases)(bench, &scope) {
                let name = candidate.case.placement.name;
                assert!(is_explained(&name), "{} offers {name}", bench.id);
            }
        }
    }
}
