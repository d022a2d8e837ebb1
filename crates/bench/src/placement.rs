//! Who can sit where on this machine: from a [`Machine`] to named placements.
//!
//! The distance of two CPUs is what the kernel *claims*; whether it is so, is for measurements to
//! show.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use machine::{CacheKind, Machine};
use model::{CpuSet, Placement, Seat};

mod beside;
mod chart;
mod explained;
mod like;

pub use beside::{awake, has_smt, second_threads};
pub use explained::{EXPLAINED, explained};

/// How far apart two CPUs are, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    SameCpu,
    /// SMT siblings of one core.
    SmtSibling,
    /// Different cores that share a cache below the last level, or a cluster.
    SameCluster,
    SameLlc,
    /// One package and node, no shared cache.
    OtherLlc,
    OtherNode,
    OtherPackage,
    /// Different CPUs; the kernel reports nothing more.
    OtherCpu,
}

impl Distance {
    /// All distances, nearest first.
    pub const ALL: [Distance; 8] = [
        Distance::SameCpu,
        Distance::SmtSibling,
        Distance::SameCluster,
        Distance::SameLlc,
        Distance::OtherLlc,
        Distance::OtherNode,
        Distance::OtherPackage,
        Distance::OtherCpu,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Distance::SameCpu => "same-cpu",
            Distance::SmtSibling => "smt-sibling",
            Distance::SameCluster => "same-cluster",
            Distance::SameLlc => "same-llc",
            Distance::OtherLlc => "other-llc",
            Distance::OtherNode => "other-node",
            Distance::OtherPackage => "other-package",
            Distance::OtherCpu => "other-cpu",
        }
    }
}

/// Pairs of CPUs that are searched for every distance: all those of two thousand cores.
const LOOKS: usize = 1 << 22;

const NO_CPU: &str = "no usable CPU found";

/// Where each CPU belongs: equal numbers mean the same core, cache, node, package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Address {
    core: Option<usize>,
    /// A cluster that is smaller or larger than an LLC.
    cluster: Option<usize>,
    /// The cache below the LLC, from L2 up.
    inner: Option<usize>,
    llc: Option<usize>,
    node: Option<u32>,
    package: Option<i64>,
}

impl Address {
    /// How far two different CPUs at these addresses are apart.
    fn distance(&self, other: &Address) -> Distance {
        let same = |x: Option<usize>, y: Option<usize>| x.is_some() && x == y;
        let differ = |x: Option<i64>, y: Option<i64>| x.is_some() && y.is_some() && x != y;
        if same(self.core, other.core) {
            return Distance::SmtSibling;
        }
        if same(self.cluster, other.cluster) || same(self.inner, other.inner) {
            return Distance::SameCluster;
        }
        if same(self.llc, other.llc) {
            return Distance::SameLlc;
        }
        if differ(self.package, other.package) {
            return Distance::OtherPackage;
        }
        if differ(self.node.map(i64::from), other.node.map(i64::from)) {
            return Distance::OtherNode;
        }
        // Cores and caches of both must be known: else the two might share one.
        let known = |address: &Address| address.core.is_some() && address.llc.is_some();
        if known(self) && known(other) { Distance::OtherLlc } else { Distance::OtherCpu }
    }
}

/// A pair at each distance that was found, and how many were searched.
type Found = (BTreeMap<Distance, (u32, u32)>, usize);

/// The CPUs that this process may use, with what the kernel reports of each.
pub struct Placements {
    addresses: BTreeMap<u32, Address>,
    /// CPUs online on the host, allowed or not.
    online: usize,
    /// Of those that may not be used, the ones that the kernel isolates: programs get them only
    /// when they ask.
    isolated: CpuSet,
    /// A pair at each distance, and how many were searched; every row of two tasks asks for it.
    pairs: OnceCell<Found>,
}

impl Placements {
    pub fn of(machine: &Machine) -> Placements {
        let mut usable = machine.cpus.allowed.intersection(&machine.cpus.online);
        if usable.is_empty() {
            // A captured tree has no affinity; a live host without /sys has only that.
            let known = [&machine.cpus.online, &machine.cpus.allowed].into_iter().find(|set| !set.is_empty());
            usable = known.cloned().unwrap_or_default();
        }
        let isolated = machine.cpus.isolated.iter().filter(|cpu| !usable.contains(*cpu)).collect();
        let mut addresses: BTreeMap<u32, Address> =
            usable.iter().map(|cpu| (cpu, Address::default())).collect();
        let mut mark = |cpus: &CpuSet, set: &dyn Fn(&mut Address)| {
            for cpu in cpus.iter() {
                if let Some(address) = addresses.get_mut(&cpu) {
                    set(address);
                }
            }
        };
        for (index, core) in machine.cpus.cores.iter().flatten().enumerate() {
            mark(&core.cpus, &|address| address.core = Some(index));
        }
        for package in machine.cpus.packages.iter().flatten() {
            mark(&package.cpus, &|address| address.package = Some(package.id));
        }
        for node in &machine.nodes {
            mark(&node.cpus, &|address| address.node = Some(node.id));
        }
        // By rising level: the last cache that a CPU is part of is its LLC.
        for (index, cache) in machine.caches.iter().enumerate() {
            if cache.kind == CacheKind::Instruction {
                continue;
            }
            let level = cache.level;
            mark(&cache.cpus, &|address| {
                if level > 2 {
                    address.inner = address.llc;
                }
                address.llc = Some(index);
            });
        }
        for (index, cluster) in machine.cpus.clusters.iter().flatten().enumerate() {
            let llc = cluster.iter().find_map(|cpu| addresses.get(&cpu)?.llc);
            // If reported twice, the LLC's entry counts.
            if llc.is_some_and(|llc| machine.caches[llc].cpus == *cluster) {
                continue;
            }
            for cpu in cluster.iter() {
                if let Some(address) = addresses.get_mut(&cpu) {
                    address.cluster = Some(index);
                }
            }
        }
        Placements { addresses, online: machine.cpus.online.len(), isolated, pairs: OnceCell::new() }
    }

    pub fn cpus(&self) -> CpuSet {
        self.addresses.keys().copied().collect()
    }

    pub fn distance(&self, one: u32, other: u32) -> Distance {
        match (self.addresses.get(&one), self.addresses.get(&other)) {
            _ if one == other => Distance::SameCpu,
            (Some(one), Some(other)) => one.distance(other),
            _ => Distance::OtherCpu,
        }
    }

    /// Every usable CPU of a higher number than this one, in rising order, and how far it is from
    /// it.
    pub fn beyond(&self, cpu: u32) -> impl Iterator<Item = (u32, Distance)> + '_ {
        let here = self.addresses.get(&cpu);
        let above = self.addresses.range((Bound::Excluded(cpu), Bound::Unbounded));
        above
            .map(move |(other, there)| (*other, here.map_or(Distance::OtherCpu, |here| here.distance(there))))
    }

    /// The CPU to measure on when one is enough: not CPU 0, which serves most interrupts, and not
    /// its sibling.
    fn quiet_cpu(&self) -> Option<u32> {
        let first = *self.addresses.keys().next()?;
        let apart =
            |cpu: &u32| !matches!(self.distance(first, *cpu), Distance::SameCpu | Distance::SmtSibling);
        let near = |cpu: &u32| apart(cpu) && self.distance(first, *cpu) <= Distance::SameLlc;
        let cpus = || self.addresses.keys().copied();
        cpus().find(|cpu| near(cpu)).or_else(|| cpus().find(|cpu| apart(cpu))).or_else(|| cpus().next_back())
    }

    /// One task, pinned.
    pub fn one_cpu(&self, role: &'static str) -> Result<Placement, String> {
        let cpu = self.quiet_cpu().ok_or(NO_CPU)?;
        Ok(placement("one-cpu", vec![seat(role, CpuSet::one(cpu))]))
    }

    /// Tasks that the scheduler may put anywhere.
    pub fn free(&self, roles: &[&'static str]) -> Result<Placement, String> {
        match self.addresses.is_empty() {
            true => Err(NO_CPU.to_string()),
            false => Ok(placement("free", roles.iter().map(|role| seat(role, self.cpus())).collect())),
        }
    }

    /// One task on each usable CPU.
    pub fn all(&self, role: &'static str) -> Placement {
        placement("all", self.addresses.keys().map(|cpu| seat(role, CpuSet::one(*cpu))).collect())
    }

    /// One task on the first usable CPU of each core: SMT siblings stay idle.
    pub fn one_per_core(&self, role: &'static str) -> Placement {
        placement("one-per-core", self.seats(role, |_| true))
    }

    /// `count` pinned tasks: one on each core, cores taken evenly from all; then one more on each
    /// core, on its next CPU, and so on.
    pub fn spread(&self, role: &'static str, count: usize) -> Placement {
        let mut cores: Vec<(Option<usize>, Vec<u32>)> = Vec::new();
        for (cpu, address) in &self.addresses {
            match cores.iter_mut().find(|(core, _)| core.is_some() && *core == address.core) {
                Some((_, cpus)) => cpus.push(*cpu),
                None => cores.push((address.core, vec![*cpu])),
            }
        }
        let of = |index: usize| {
            let place = if count < cores.len() { index * cores.len() / count } else { index % cores.len() };
            let cpus = &cores[place].1;
            seat(role, CpuSet::one(cpus[index / cores.len() % cpus.len()]))
        };
        placement("spread", if cores.is_empty() { Vec::new() } else { (0..count).map(of).collect() })
    }

    /// For each reported last-level cache, one task on each of its cores.
    pub fn per_llc(&self, role: &'static str) -> Vec<Placement> {
        let llcs: BTreeSet<usize> = self.addresses.values().filter_map(|address| address.llc).collect();
        let own = |llc| placement("per-llc", self.seats(role, |address| address.llc == Some(llc)));
        llcs.into_iter().map(own).collect()
    }

    /// For each NUMA node with usable CPUs, its number and one task on each of its cores.
    pub fn per_node(&self, role: &'static str) -> Vec<(u32, Placement)> {
        let nodes: BTreeSet<u32> = self.addresses.values().filter_map(|address| address.node).collect();
        let own = |node| placement("per-node", self.seats(role, |address| address.node == Some(node)));
        nodes.into_iter().map(|node| (node, own(node))).collect()
    }

    /// A seat on the first CPU of each core that has a CPU at such an address.
    fn seats(&self, role: &'static str, belongs: impl Fn(&Address) -> bool) -> Vec<Seat> {
        let mut seen = BTreeSet::new();
        let here = self.addresses.iter().filter(|(_, address)| belongs(address));
        let firsts = here.filter(|(_, address)| address.core.is_none_or(|core| seen.insert(core)));
        firsts.map(|(cpu, _)| seat(role, CpuSet::one(*cpu))).collect()
    }

    /// Two tasks at each distance, nearest first: pinned, or the reason why there is no such pair
    /// here.
    pub fn pairs(&self, roles: [&'static str; 2]) -> Vec<(Distance, Result<Placement, String>)> {
        let (found, looks) = self.pairs.get_or_init(|| self.find_pairs());
        let looks = *looks;
        let pair = |distance: Distance| match found.get(&distance) {
            Some((one, other)) => {
                let seats = vec![seat(roles[0], CpuSet::one(*one)), seat(roles[1], CpuSet::one(*other))];
                Ok(placement(distance.name(), seats))
            }
            None if looks > LOOKS => {
                Err(format!("not found among the {looks} pairs of CPUs that were tried"))
            }
            None => Err(self.lack(distance)),
        };
        Distance::ALL.into_iter().map(|distance| (distance, pair(distance))).collect()
    }

    fn find_pairs(&self) -> Found {
        let mut found: BTreeMap<Distance, (u32, u32)> = BTreeMap::new();
        let mut looks = 0;
        let mut anchored = BTreeSet::new();
        for anchor in self.quiet_cpu().into_iter().chain(self.addresses.keys().copied()) {
            let Some(address) = self.addresses.get(&anchor) else { continue };
            // CPUs at one address are equally far from all others.
            if !anchored.insert(address) {
                continue;
            }
            for (other, there) in &self.addresses {
                let distance = if *other == anchor { Distance::SameCpu } else { address.distance(there) };
                found.entry(distance).or_insert((anchor, *other));
            }
            looks += self.addresses.len();
            if Distance::ALL.iter().all(|distance| found.contains_key(distance)) || looks > LOOKS {
                break;
            }
        }
        (found, looks)
    }

    fn lack(&self, distance: Distance) -> String {
        if self.addresses.len() == 1 && !self.isolated.is_empty() {
            let (here, isolated) = (self.cpus(), &self.isolated);
            return format!(
                "only CPU {here} is used; CPUs {isolated} are isolated (isolcpus): start Assay by taskset"
            );
        }
        if self.addresses.len() == 1 && self.online > 1 {
            return format!("only CPU {} may be used here (affinity or cpuset)", self.cpus());
        }
        if self.addresses.len() <= 1 {
            return "needs a second CPU".to_string();
        }
        let cores_known = self.addresses.values().any(|address| address.core.is_some());
        match distance {
            Distance::SmtSibling if !cores_known => {
                "the kernel does not report which CPUs share a core".to_string()
            }
            Distance::SmtSibling => "needs SMT siblings".to_string(),
            Distance::SameCluster => "needs a shared L2".to_string(),
            Distance::SameLlc => "needs two cores with a shared L3".to_string(),
            Distance::OtherLlc => "needs a second L3 in one package".to_string(),
            Distance::OtherNode => "needs a second NUMA node in one package".to_string(),
            Distance::OtherPackage => "needs a second package".to_string(),
            Distance::OtherCpu | Distance::SameCpu => {
                "the kernel reports the distance of all usable CPUs".to_string()
            }
        }
    }
}

fn seat(role: &'static str, cpus: CpuSet) -> Seat {
    Seat { role: role.into(), host: None, cpus, mem_nodes: CpuSet::default() }
}

fn placement(name: &'static str, seats: Vec<Seat>) -> Placement {
    let neighbours = Vec::new();
    Placement { seats, neighbours, ..Placement::named(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Cache, Core, Node, Package};

    fn set(text: &str) -> CpuSet {
        CpuSet::parse_list(text).expect("a list")
    }

    fn cache(level: u32, cpus: &str) -> Cache {
        Cache::new(level, CacheKind::Unified, set(cpus))
    }

    /// 2 packages × 2 nodes × 2 LLCs × 2 clusters × 2 cores × 2 threads, siblings side by side.
    pub fn big() -> Machine {
        let mut machine = Machine::default();
        machine.cpus.online = set("0-63");
        machine.cpus.allowed = set("0-63");
        let groups = |size: u32| (0..64 / size).map(move |i| format!("{}-{}", i * size, (i + 1) * size - 1));
        let cores = groups(2).map(|cpus| Core { cpus: set(&cpus), ..Core::default() }).collect();
        machine.cpus.cores = Some(cores);
        machine.cpus.packages = Some(
            groups(32).enumerate().map(|(id, cpus)| Package { id: id as i64, cpus: set(&cpus) }).collect(),
        );
        machine.nodes = groups(16)
            .enumerate()
            .map(|(id, cpus)| Node { id: id as u32, cpus: set(&cpus), ..Node::default() })
            .collect();
        for (level, size) in [(1, 2), (2, 4), (3, 8)] {
            machine.caches.extend(groups(size).map(|cpus| cache(level, &cpus)));
        }
        machine
    }

    fn names(machine: &Machine) -> Vec<String> {
        let pairs = Placements::of(machine).pairs(["ping", "pong"]);
        let ok = pairs.into_iter().filter_map(|(_, pair)| pair.ok());
        ok.map(|pair| format!("{} {}", pair.name, pair.cpus())).collect()
    }

    #[test]
    fn every_distance_of_a_big_machine() {
        assert_eq!(
            names(&big()),
            [
                "same-cpu 2",
                "smt-sibling 2-3",
                "same-cluster 0,2",
                "same-llc 2,4",
                "other-llc 2,8",
                "other-node 2,16",
                "other-package 2,32"
            ]
        );
    }

    #[test]
    fn groups_take_one_cpu_of_each_core() {
        let placements = Placements::of(&big());
        assert_eq!(placements.one_per_core("task").cpus().len(), 32);
        let llcs: Vec<String> =
            placements.per_llc("task").iter().take(2).map(|group| group.cpus().to_string()).collect();
        assert_eq!(llcs, ["0,2,4,6", "8,10,12,14"]);
        let nodes = placements.per_node("task");
        assert_eq!(nodes.len(), 4);
        assert_eq!((nodes[1].0, nodes[1].1.cpus().to_string().as_str()), (1, "16,18,20,22,24,26,28,30"));
        // If cores are not reported, every CPU counts as one.
        let mut machine = Machine::default();
        machine.cpus.online = set("0-2");
        let placements = Placements::of(&machine);
        assert_eq!(placements.one_per_core("task").seats.len(), 3);
        assert!(placements.per_llc("task").is_empty() && placements.per_node("task").is_empty());
    }

    #[test]
    fn a_guest_with_its_cache_hidden() {
        let mut machine = Machine::default();
        machine.cpus.online = set("0-1");
        machine.cpus.allowed = set("0-1");
        machine.cpus.cores = Some(["0", "1"].map(|c| Core { cpus: set(c), ..Core::default() }).to_vec());
        machine.caches = vec![cache(2, "0"), cache(2, "1")];
        assert_eq!(names(&machine), ["same-cpu 1", "other-llc 0-1"]);
        machine.caches.push(cache(3, "0-1"));
        assert_eq!(names(&machine), ["same-cpu 1", "same-llc 0-1"]);
        // Only one CPU reports its caches: whether it shares them with the other is unknown.
        machine.caches = vec![cache(2, "0"), cache(3, "0")];
        assert_eq!(names(&machine), ["same-cpu 1", "other-cpu 0-1"]);
    }

    #[test]
    fn clusters_that_no_cache_shows() {
        let mut machine = Machine::default();
        machine.cpus.online = set("0-7");
        machine.cpus.allowed = set("0-7");
        let one = |cpu: u32| CpuSet::one(cpu);
        machine.cpus.cores = Some((0..8).map(|cpu| Core { cpus: one(cpu), ..Core::default() }).collect());
        machine.cpus.clusters = Some(vec![set("0-3"), set("4-7")]);
        // As wide as an LLC: nothing of its own.
        machine.caches = vec![cache(2, "0-3"), cache(2, "4-7")];
        assert_eq!(names(&machine), ["same-cpu 1", "same-llc 0-1", "other-llc 1,4"]);
        // Cores with an L2 each, in clusters below one LLC.
        machine.caches = (0..8).map(|cpu| cache(2, &cpu.to_string())).chain([cache(3, "0-7")]).collect();
        assert_eq!(names(&machine), ["same-cpu 1", "same-cluster 0-1", "same-llc 1,4"]);
        // CPUs that contradict each other about caches are still equally far apart in both
        // directions.
        machine.caches = vec![cache(1, "0"), cache(2, "0-1"), cache(2, "1-2")];
        let placements = Placements::of(&machine);
        for (one, other) in (0..8).flat_map(|one| (0..8).map(move |other| (one, other))) {
            assert_eq!(placements.distance(one, other), placements.distance(other, one));
        }
    }

    #[test]
    fn the_search_among_more_cpus_than_there_are_ends() {
        let mut machine = Machine::default();
        machine.cpus.online = (0..65_536).collect();
        let core = |cpu| Core { cpus: CpuSet::one(cpu), ..Core::default() };
        machine.cpus.cores = Some((0..65_536).map(core).collect());
        let pairs = Placements::of(&machine).pairs(["ping", "pong"]);
        let found: Vec<&str> =
            pairs.iter().filter_map(|(at, pair)| pair.is_ok().then_some(at.name())).collect();
        assert_eq!(found, ["same-cpu", "other-cpu"]);
        assert!(pairs[1].1.as_ref().is_err_and(|why| why.contains("that were tried")), "{:?}", pairs[1].1);
    }

    #[test]
    fn nothing_known_but_numbers() {
        let mut machine = Machine::default();
        machine.cpus.online = set("0,5");
        assert_eq!(names(&machine), ["same-cpu 5", "other-cpu 0,5"]);
        machine.cpus.allowed = set("5");
        assert_eq!(names(&machine), ["same-cpu 5"]);
        let pairs = Placements::of(&machine).pairs(["ping", "pong"]);
        assert!(pairs.iter().any(|(_, pair)| pair.as_ref().is_err_and(|why| why.contains("only CPU 5"))));
        let nothing = Placements::of(&Machine::default());
        assert!(nothing.one_cpu("task").is_err() && nothing.free(&["ping"]).is_err());
    }
}
