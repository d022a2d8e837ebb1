//! The few numbers that scripts rely on (the contract of `assay machine --json`).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use model::CpuSet;

use super::{CacheKind, Hypervisor, Machine};

/// The machine in a few numbers; each is null where it is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    pub packages: Option<usize>,
    /// NUMA nodes, those without CPUs or without memory included.
    pub numa_nodes: Option<usize>,
    /// Physical cores with at least one online CPU.
    pub cores: Option<usize>,
    /// Online logical CPUs.
    pub cpus: Option<usize>,
    /// The different numbers of online threads that cores have, sorted.
    pub threads_per_core: Option<Vec<usize>>,
    /// Third-level caches; an empty list where the machine's caches are known and none is of
    /// level 3.
    pub l3: Option<Vec<L3>>,
    /// `none` on bare metal, a guest's hypervisor by name or `unknown guest`.
    pub hypervisor: Hypervisor,
}

/// A third-level cache.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct L3 {
    /// Online CPUs that share it.
    pub cpus: CpuSet,
    pub size_bytes: Option<u64>,
}

impl Machine {
    pub fn summary(&self) -> Summary {
        let threads = |cores: &Vec<super::Core>| -> Vec<usize> {
            let counts: BTreeSet<usize> = cores.iter().map(|core| core.cpus.len()).collect();
            counts.into_iter().collect()
        };
        let l3 = || {
            let third =
                self.caches.iter().filter(|cache| cache.level == 3 && cache.kind != CacheKind::Instruction);
            third.map(|cache| L3 { cpus: cache.cpus.clone(), size_bytes: cache.size_bytes }).collect()
        };
        Summary {
            packages: self.cpus.packages.as_ref().map(Vec::len),
            numa_nodes: (!self.nodes.is_empty()).then_some(self.nodes.len()),
            cores: self.cpus.cores.as_ref().map(Vec::len),
            cpus: (!self.cpus.online.is_empty()).then(|| self.cpus.online.len()),
            threads_per_core: self.cpus.cores.as_ref().map(threads),
            l3: (!self.caches.is_empty()).then(l3),
            hypervisor: self.hypervisor.clone(),
        }
    }
}
