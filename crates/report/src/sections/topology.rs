//! Where CPUs sit, for the order of rows and for words about pairs.

use std::collections::BTreeMap;

use machine::{CacheKind, Machine};

/// The sets that one CPU belongs to, numbered; `None` where the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    package: Option<i64>,
    node: Option<u32>,
    llc: Option<usize>,
    cluster: Option<usize>,
    /// The cache below the LLC, from L2 up.
    inner: Option<usize>,
    core: Option<usize>,
}

/// The places of all CPUs of a host.
pub struct Places(BTreeMap<u32, Place>);

impl Places {
    pub fn of(machine: &Machine) -> Places {
        let mut places: BTreeMap<u32, Place> = BTreeMap::new();
        for package in machine.cpus.packages.iter().flatten() {
            package.cpus.iter().for_each(|cpu| places.entry(cpu).or_default().package = Some(package.id));
        }
        for node in &machine.nodes {
            node.cpus.iter().for_each(|cpu| places.entry(cpu).or_default().node = Some(node.id));
        }
        for (index, cluster) in machine.cpus.clusters.iter().flatten().enumerate() {
            cluster.iter().for_each(|cpu| places.entry(cpu).or_default().cluster = Some(index));
        }
        // By rising level: the last cache that a CPU is part of is its LLC.
        for (index, cache) in machine.caches.iter().enumerate() {
            for cpu in cache.cpus.iter().filter(|_| cache.kind != CacheKind::Instruction) {
                let place = places.entry(cpu).or_default();
                place.inner = place.llc.filter(|inner| machine.caches[*inner].level >= 2);
                place.llc = Some(index);
            }
        }
        for (index, core) in machine.cpus.cores.iter().flatten().enumerate() {
            core.cpus.iter().for_each(|cpu| places.entry(cpu).or_default().core = Some(index));
        }
        Places(places)
    }

    /// What CPUs are sorted by: package, node, LLC, cluster, core, and siblings by their numbers.
    pub fn rank(&self, cpu: u32) -> impl Ord + use<> {
        (self.0.get(&cpu).copied().unwrap_or_default(), cpu)
    }

    /// How far two CPUs are apart, in the words of placements, with a number that rises with the
    /// distance.
    pub fn relation(&self, a: u32, b: u32) -> (u32, &'static str) {
        let place = |cpu: u32| self.0.get(&cpu).copied().unwrap_or_default();
        let (one, other) = (place(a), place(b));
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_some() && one == other
        }
        fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_some() && other.is_some() && one != other
        }
        match () {
            () if a == b => (0, "same-cpu"),
            () if same(one.core, other.core) => (1, "smt-sibling"),
            () if same(one.cluster, other.cluster) || same(one.inner, other.inner) => (2, "same-cluster"),
            () if same(one.llc, other.llc) => (3, "same-llc"),
            () if differ(one.package, other.package) => (6, "other-package"),
            () if differ(one.node, other.node) => (5, "other-node"),
            () if differ(one.core, other.core) && differ(one.llc, other.llc) => (4, "other-llc"),
            () => (7, "other-cpu"),
        }
    }
}
