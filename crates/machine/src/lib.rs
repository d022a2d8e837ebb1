//! The machine, derived from its own text: [`Machine::from`] a [`Snapshot`] is pure, so a better
//! parser improves old runs, and a captured tree or a cpuid dump is judged exactly as the live
//! host.
//!
//! Every field that the text may lack is an `Option` (or an empty list): "unknown" is an
//! answer, an invented value is not.
//!
//! Invariant: pure: never does I/O and never sees a live host.

#![forbid(unsafe_code)]
// Tests may be long tables.
#![cfg_attr(test, allow(clippy::too_many_lines))]

pub mod archive;
mod arm;
mod caches;
pub mod cgroup;
mod channels;
mod claims;
mod container;
mod cpu;
mod cpuid;
mod cpuinfo;
mod crossings;
mod dimm;
pub mod directory;
pub mod disk;
mod dmi;
mod domains;
mod enclosure;
mod frequency;
mod generation;
mod kernel;
mod kinds;
mod limits;
mod load;
mod memory;
pub mod network;
pub mod nexmark;
mod numa;
mod packages;
mod siblings;
mod summary;
mod text;
mod topology;
mod usable;
mod virt;

use schemars::JsonSchema;
use serde::Serialize;

use model::{CpuSet, Snapshot};

pub use archive::Archive;
pub use cgroup::cgroup_folder;
pub use channels::{Channels, channels, module_gb_per_s};
pub use container::{Container, ContainerKind, ContainerLimit};
pub use dimm::{Balance, Confidence, Dimm, DimmFinding, DimmSpeed, Population, SocketMemory};
pub use dimm::{is_printout, printout_of, table_of};
pub use directory::Directory;
pub use disk::Disk;
pub use dmi::Dmi;
pub use domains::Domain;
pub use enclosure::{Enclosure, EnclosureKind};
pub use frequency::{Frequency, IdleState};
pub use generation::Generation;
pub use kernel::{Clocksource, Kernel};
pub use limits::Limits;
pub use load::Load;
pub use memory::{HugePages, Memory};
pub use model::{PRINTOUT, TABLES};
pub use network::{End, Interface, Irq, NetworkPath, Qdisc};
pub use numa::{Node, Performance};
pub use siblings::{BOOK, CLUSTER, CORE, DIE, DRAWER, PACKAGE};
pub use summary::{L3, Summary};
pub use text::{CPUS, chosen};
pub use topology::{Cache, CacheKind, Core, Cpus, Numbers, Package};
pub use usable::{Bound, Usable, UsableCpus, UsableMemory, UsableTasks};
pub use virt::Hypervisor;

/// A machine as its kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    pub host: Option<String>,
    pub cpus: Cpus,
    /// One entry per cache instance, by level, then kind, then first CPU; empty if unknown
    /// of caches.
    pub caches: Vec<Cache>,
    /// NUMA nodes by number; empty where the kernel reports nothing of nodes.
    pub nodes: Vec<Node>,
    pub memory: Memory,
    pub kernel: Kernel,
    pub clock: Clocksource,
    pub frequency: Frequency,
    pub idle_states: Vec<IdleState>,
    pub limits: Limits,
    /// What of the machine may really be used, the tightest limit of each named.
    pub usable: Usable,
    pub hypervisor: Hypervisor,
    /// Containers, sandboxes and small virtual machines around this process, the innermost first.
    pub enclosures: Vec<Enclosure>,
    /// What a container lets this process do; null if unknown.
    pub container: Option<Container>,
    pub dmi: Dmi,
    /// Memory modules that SMBIOS lists, empty slots included with `size_bytes` 0.
    pub dimms: Vec<Dimm>,
    /// Whether their population is balanced.
    #[serde(flatten)]
    pub population: Population,
    pub load: Load,
    /// Where a run's test files go; machines that were only described have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Directory>,
    /// The disk that a run would measure; null where none was described.
    pub disk: Option<Disk>,
    /// The way that a run's network test took; machines that were only described have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPath>,
    /// Network interfaces by name; empty where the kernel reports none.
    pub interfaces: Vec<Interface>,
    /// The archive of support that it was read from; a live machine and a plain tree have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
    /// Contradictions and oddities met while reading, as sentences.
    pub remarks: Vec<String>,
}

impl From<&Snapshot> for Machine {
    fn from(snapshot: &Snapshot) -> Machine {
        let mut remarks = Vec::new();
        let info = cpuinfo::CpuInfo::read(snapshot);
        let mut cpus = cpu::parse(snapshot, &info, &mut remarks);
        let caches = caches::parse(snapshot, &cpus.online, &mut remarks);
        let nodes = numa::parse(snapshot, &cpus.online, &mut remarks);
        crossings::remark(&cpus, &caches, &nodes, &mut remarks);
        let limits = limits::parse(snapshot);
        limits::apply(&limits, &mut cpus, &nodes, &mut remarks);
        let memory = memory::parse(snapshot, &cpus);
        numa::compare(&memory, &nodes, &mut remarks);
        let tables = dimm::tables(snapshot);
        let dmi = dmi::parse(snapshot).or(&tables.dmi);
        let clock = kernel::clocksource(snapshot, &info);
        let hypervisor = virt::parse(snapshot, &info, &dmi, &clock, &mut remarks);
        let sockets =
            tables.processors.iter().filter(|one| one.populated == Some(true) && !one.is_disabled).count();
        let product = tables.dmi.product.clone();
        let (dimms, population) = dimm::judge(tables, cpus.name().as_deref(), &hypervisor);
        let mut machine = Machine {
            host: text::words(snapshot, "/proc/sys/kernel/hostname")
                .or_else(|| text::words(snapshot, "/etc/hostname")),
            kernel: kernel::parse(snapshot),
            frequency: frequency::parse(snapshot, &cpus),
            idle_states: frequency::idle_states(snapshot, &cpus.online),
            dimms,
            population,
            load: load::parse(snapshot, &cpus.online),
            directory: directory::parse(snapshot),
            disk: disk::parse(snapshot),
            network: network::parse(snapshot),
            interfaces: network::interfaces(snapshot),
            usable: usable::of(snapshot, &cpus, &memory, &limits),
            container: None,
            enclosures: enclosure::parse(snapshot, &info, &dmi, &hypervisor),
            cpus,
            caches,
            nodes,
            memory,
            clock,
            limits,
            hypervisor,
            dmi,
            archive: None,
            remarks,
        };
        machine.container = container::parse(snapshot, &machine.enclosures);
        machine.archive = archive::parse(snapshot, &machine, sockets, product.as_deref());
        machine
    }
}

impl Machine {
    /// Whether nothing at all is known: no file that could be read reported anything of a CPU,
    /// memory or a kernel.
    pub fn is_blank(&self) -> bool {
        self.cpus.online.is_empty()
            && self.memory.total_bytes.is_none()
            && self.kernel.release.is_none()
            && self.nodes.is_empty()
            && self.dimms.is_empty()
            && (self.archive.is_none() || self.cpus.model.is_none())
    }

    /// What this process is inside of, the innermost first: a guest that can run guests is not
    /// inside of anything by that.
    pub fn around(&self) -> impl Iterator<Item = &Enclosure> {
        self.enclosures.iter().filter(|one| one.kind != EnclosureKind::GuestWithVirtualization)
    }

    /// The core that an online CPU belongs to.
    pub fn core_of(&self, cpu: u32) -> Option<&Core> {
        self.cpus.cores.as_ref()?.iter().find(|core| core.cpus.contains(cpu))
    }

    /// The node that an online CPU belongs to.
    pub fn node_of(&self, cpu: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu))
    }

    /// Caches of a level that hold data, by first CPU.
    pub fn data_caches(&self, level: u32) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(move |cache| cache.level == level && cache.kind != CacheKind::Instruction)
    }

    /// The last-level cache of a CPU: the outermost that holds data.
    pub fn last_level_cache(&self, cpu: u32) -> Option<&Cache> {
        let mine = self.caches.iter().filter(|cache| cache.cpus.contains(cpu));
        mine.filter(|cache| cache.kind != CacheKind::Instruction).max_by_key(|cache| cache.level)
    }

    /// What all last-level caches hold together; `None` where some online CPU's are unknown.
    pub fn llc_bytes(&self) -> Option<u64> {
        let groups = self.llc_groups()?.into_iter();
        groups.map(|cpus| self.last_level_cache(cpus.first()?)?.size_bytes).sum()
    }

    /// Groups of CPUs by last-level cache, by first CPU; `None` where some online CPU's caches are
    /// unknown.
    pub fn llc_groups(&self) -> Option<Vec<CpuSet>> {
        let mut groups: Vec<CpuSet> = Vec::new();
        for cpu in self.cpus.online.iter() {
            let cache = self.last_level_cache(cpu)?;
            if !groups.contains(&cache.cpus) {
                groups.push(cache.cpus.clone());
            }
        }
        (!groups.is_empty()).then_some(groups)
    }
}
