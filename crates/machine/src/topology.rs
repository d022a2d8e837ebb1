//! What CPUs and caches are to all others: logical CPUs, how they form cores, dies and packages,
//! and caches with who shares them.

use std::collections::BTreeMap;

use model::CpuSet;
use schemars::JsonSchema;
use serde::Serialize;

/// Logical CPUs and how they group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Cpus {
    /// CPUs that run tasks now. Empty only if nothing reports it.
    pub online: CpuSet,
    /// CPUs that are present but switched off.
    pub offline: CpuSet,
    /// CPUs that this process may use: affinity and cpuset taken together, all that are online
    /// where neither is reported.
    pub allowed: CpuSet,
    /// CPUs kept out of load balancing by `isolcpus=` or an isolated cpuset partition.
    pub isolated: CpuSet,
    /// CPUs without a periodic tick (`nohz_full=`).
    pub nohz_full: CpuSet,
    pub model: Option<String>,
    pub vendor: Option<String>,
    /// What x86 processors answer of themselves.
    pub numbers: Option<Numbers>,
    /// As `uname -m` says it.
    pub architecture: Option<String>,
    /// Arm cores by implementer and part number, the text of /proc/cpuinfo (`0x48 0xd01`).
    pub part: Option<String>,
    /// The name that the part number stands for, of the designs that servers have.
    pub part_name: Option<String>,
    pub microcode: Option<String>,
    pub flags: Vec<String>,
    /// Physical cores: the online CPUs of each, by first CPU; `None` where the kernel does not
    /// report.
    pub cores: Option<Vec<Core>>,
    pub packages: Option<Vec<Package>>,
    /// Dies of more than one core, where the kernel reports them.
    pub dies: Option<Vec<CpuSet>>,
    /// Groups of cores below the LLC that share an L2 or an interconnect stop.
    pub clusters: Option<Vec<CpuSet>>,
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt_control: Option<String>,
    /// Kinds of core where they differ (P and E cores), by name.
    pub kinds: BTreeMap<String, CpuSet>,
}

/// Family, model and stepping of an x86 processor, as CPUID has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Numbers {
    pub family: u32,
    pub model: u32,
    pub stepping: u32,
}

impl Cpus {
    /// What the processor is called: by itself, or on Arm, whose CPUs report numbers alone, by its
    /// design.
    pub fn name(&self) -> Option<String> {
        let design = || self.part_name.clone().or_else(|| Some(format!("part {}", self.part.as_ref()?)));
        self.model.clone().or_else(design)
    }
}

/// A physical core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Core {
    /// Online SMT siblings.
    pub cpus: CpuSet,
    pub package: Option<i64>,
    pub die: Option<i64>,
    /// The number that the firmware gave it; not unique across packages, on some machines not even
    /// inside one.
    pub core_id: Option<i64>,
}

/// A processor package (socket).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Package {
    pub id: i64,
    pub cpus: CpuSet,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

/// One cache instance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    pub kind: CacheKind,
    /// Online CPUs that share it.
    pub cpus: CpuSet,
    pub size_bytes: Option<u64>,
    pub line_bytes: Option<u32>,
    /// Associativity; `None` where it is unknown or the cache is fully associative.
    pub ways: Option<u32>,
    pub sets: Option<u32>,
}

impl Cache {
    /// Of which no size is known.
    pub fn new(level: u32, kind: CacheKind, cpus: CpuSet) -> Cache {
        Cache { level, kind, cpus, size_bytes: None, line_bytes: None, ways: None, sets: None }
    }
}
