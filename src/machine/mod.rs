//! The machine, derived from its own text: [`Machine::from`] a [`Snapshot`] is pure, so a better parser improves
//! old runs, and a captured tree or a cpuid dump is judged exactly as the live host.
//!
//! Every field that the text may not tell is an `Option` (or an empty list): "unknown" is an answer, an invented
//! value is not.

use std::collections::BTreeMap;

use crate::model::CpuSet;

/// A machine as its kernel describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    pub host: Option<String>,
    pub cpus: Cpus,
    /// One entry per cache instance, by level, then type, then first CPU.
    pub caches: Vec<Cache>,
    /// NUMA nodes by number; empty where the kernel tells nothing of nodes.
    pub nodes: Vec<Node>,
    pub memory: Memory,
    pub kernel: Kernel,
    pub clock: Clocksource,
    pub frequency: Frequency,
    pub idle_states: Vec<IdleState>,
    pub limits: Limits,
    pub hypervisor: Hypervisor,
    pub dmi: Dmi,
    /// Memory modules that SMBIOS lists, empty slots included with `size_bytes` 0.
    pub dimms: Vec<Dimm>,
    pub load: Load,
    /// Contradictions and oddities met while reading, as sentences.
    pub remarks: Vec<String>,
}

/// Logical CPUs and how they group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpus {
    /// CPUs that run tasks now. Never empty on a live host.
    pub online: CpuSet,
    pub offline: CpuSet,
    /// CPUs that this process may use: affinity and cpuset taken together.
    pub allowed: CpuSet,
    pub isolated: CpuSet,
    pub model: Option<String>,
    pub vendor: Option<String>,
    pub architecture: Option<String>,
    pub microcode: Option<String>,
    pub flags: Vec<String>,
    /// Physical cores: the online CPUs of each, by first CPU; `None` where the kernel does not tell.
    pub cores: Option<Vec<Core>>,
    pub packages: Option<Vec<Package>>,
    pub dies: Option<Vec<CpuSet>>,
    /// Groups of cores below the LLC that share an L2 or an interconnect stop.
    pub clusters: Option<Vec<CpuSet>>,
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt_control: Option<String>,
    /// Kinds of core where they differ (P and E cores), by name.
    pub kinds: BTreeMap<String, CpuSet>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Core {
    /// Online SMT siblings.
    pub cpus: CpuSet,
    pub package: Option<i64>,
    pub die: Option<i64>,
    /// The number that the firmware gave it; not unique across packages.
    pub core_id: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Package {
    pub id: i64,
    pub cpus: CpuSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

/// One cache instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    pub level: u32,
    pub kind: CacheKind,
    /// Online CPUs that share it.
    pub cpus: CpuSet,
    pub size_bytes: Option<u64>,
    pub line_bytes: Option<u32>,
    pub ways: Option<u32>,
    pub sets: Option<u32>,
}

/// One NUMA node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub id: u32,
    /// Online CPUs; empty for a memory-only node.
    pub cpus: CpuSet,
    /// Memory of the node; `None` where the kernel does not tell, 0 for a node without memory.
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// Distance to each node, in the order of `Machine::nodes`; empty where the kernel does not tell.
    pub distances: Vec<u32>,
    /// Memory-side caches (Optane in memory mode, HBM as cache): bytes by level.
    pub memory_side_caches: Vec<u64>,
    pub huge_pages: Vec<HugePages>,
}

/// A pool of explicit huge pages.
#[derive(Clone, Debug, PartialEq)]
pub struct HugePages {
    pub page_bytes: u64,
    pub total: u64,
    pub free: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub total_bytes: Option<u64>,
    pub available_bytes: Option<u64>,
    pub swap_total_bytes: Option<u64>,
    pub swap_free_bytes: Option<u64>,
    pub page_bytes: Option<u64>,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    pub transparent_huge_page_bytes: Option<u64>,
    pub huge_pages: Vec<HugePages>,
    /// Automatic NUMA balancing.
    pub numa_balancing: Option<bool>,
    pub overcommit: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// `6.18.44-...`
    pub release: Option<String>,
    pub version: Option<String>,
    pub command_line: Option<String>,
    /// `none`, `voluntary`, `full`, `lazy`: from the version string or debugfs.
    pub preemption: Option<String>,
    /// Vulnerability to the kernel's words about it.
    pub mitigations: BTreeMap<String, String>,
    /// Scheduler domains of each CPU, smallest first, where debugfs or procfs lets us read them.
    pub domains: BTreeMap<u32, Vec<Domain>>,
    pub perf_event_paranoid: Option<i64>,
    pub psi: Option<bool>,
    pub autogroup: Option<bool>,
    /// Base slice of this very task, ns (`se.slice` of /proc/self/sched).
    pub slice_ns: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Domain {
    pub name: String,
    pub flags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocksource {
    pub current: Option<String>,
    pub available: Vec<String>,
    /// Lines of the kernel's log were not read: what `/proc/cpuinfo` says of the counter.
    pub tsc_invariant: Option<bool>,
}

/// One frequency policy, or the whole machine where all are alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frequency {
    pub driver: Option<String>,
    /// Governors in use, with the CPUs that each governs.
    pub governors: BTreeMap<String, CpuSet>,
    pub min_khz: Option<u64>,
    pub max_khz: Option<u64>,
    /// Nominal frequency, where firmware or the model name gives it.
    pub base_khz: Option<u64>,
    /// Whether turbo may be used.
    pub turbo: Option<bool>,
    pub energy_preferences: BTreeMap<String, CpuSet>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdleState {
    pub name: String,
    pub latency_us: Option<u64>,
    pub residency_us: Option<u64>,
    pub disabled: Option<bool>,
}

/// What cgroups and affinity leave to this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// 1, 2, or both on a hybrid hierarchy.
    pub versions: Vec<u32>,
    /// CPUs' worth of time per unit of time: the tightest quota on the path to the root.
    pub cpu_quota: Option<f64>,
    /// Where the tightest quota stands, as a path.
    pub cpu_quota_at: Option<String>,
    pub memory_bytes: Option<u64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_at: Option<String>,
    pub swap_bytes: Option<u64>,
    pub cpuset: Option<CpuSet>,
    pub mems: Option<CpuSet>,
}

/// `Unknown` where nothing was readable; `None` is bare metal as far as the machine tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Hypervisor {
    #[default]
    Unknown,
    None,
    /// A guest; the name where it is told (`kvm`, `vmware`, `hyperv`, `xen`, `virtualbox`, ...).
    Guest(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dmi {
    pub vendor: Option<String>,
    pub product: Option<String>,
    pub board: Option<String>,
    pub bios: Option<String>,
    pub chassis_type: Option<String>,
}

/// One memory slot as SMBIOS tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dimm {
    pub locator: String,
    pub bank: String,
    /// 0: an empty slot. `None`: the module's size is unknown.
    pub size_bytes: Option<u64>,
    pub speed_mts: Option<u32>,
    pub configured_mts: Option<u32>,
    pub data_width_bits: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    pub uptime_s: Option<f64>,
    pub boot_id: Option<String>,
    pub average: Option<[f64; 3]>,
    /// "some" shares over the last 10 s, percent.
    pub psi_cpu: Option<f64>,
    pub psi_memory: Option<f64>,
    pub psi_io: Option<f64>,
}
