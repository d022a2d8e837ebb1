//! x86 topology and caches from the processors' own words, on any host.
//!
//! A snapshot's `probe:cpuid/N` entry is what CPU N answered, in the form that hwloc's gather tool
//! writes: one line `mask eax ebx ecx edx => eax ebx ecx edx` per leaf, all hexadecimal; bit i of
//! the mask says that input register i mattered. Lines starting with `#` are comments.

mod amd;
mod descriptors;
mod intel;
mod leaves;

use model::vocabulary::host as ids;
use std::collections::{BTreeMap, BTreeSet};

use model::{CpuSet, Snapshot};

use super::topology::{Cache, CacheKind};
use super::topology::{Core, Cpus, Package};
use leaves::Leaves;

/// What one CPU's leaves say about its place.
#[derive(Default)]
struct Place {
    /// The id that all others are cut from.
    apic: u32,
    package: u32,
    /// Ids below are unique in the whole machine.
    core: u32,
    die: Option<u32>,
    caches: Vec<Shared>,
    kind: Option<&'static str>,
}

/// A cache as one of its users sees it.
struct Shared {
    level: u32,
    kind: CacheKind,
    /// Equal for all CPUs of the package that share the cache.
    id: u32,
    size_bytes: u64,
    line_bytes: u32,
    ways: Option<u32>,
    sets: Option<u32>,
}

fn leaves(snapshot: &Snapshot, cpu: u32) -> Option<Leaves> {
    snapshot
        .text(&format!("{}/{cpu}", ids::probe::CPUID))
        .map(Leaves::parse)
        .filter(|leaves| !leaves.is_empty())
}

/// CPUs that answered.
pub(super) fn cpus(snapshot: &Snapshot) -> CpuSet {
    snapshot
        .numbered(ids::probe::CPUID, "")
        .into_iter()
        .filter(|cpu| leaves(snapshot, *cpu).is_some())
        .collect()
}

fn first(snapshot: &Snapshot) -> Option<Leaves> {
    snapshot.numbered(ids::probe::CPUID, "").into_iter().find_map(|cpu| leaves(snapshot, cpu))
}

/// Vendor and model, where nothing else reported them.
pub(super) fn identify(cpus: &mut Cpus, snapshot: &Snapshot) {
    let Some(leaves) = first(snapshot) else { return };
    cpus.vendor = cpus.vendor.take().or_else(|| leaves.vendor());
    cpus.model = cpus.model.take().or_else(|| leaves.brand());
    cpus.numbers = cpus.numbers.or_else(|| leaves.signature());
    if cpus.architecture.is_none() {
        let long_mode = leaves.get(0x8000_0001, 0).is_some_and(|[_, _, _, edx]| edx & 1 << 29 != 0);
        cpus.architecture = Some(if long_mode { "x86_64" } else { "i686" }.to_string());
    }
}

/// Whether the processor says that a hypervisor runs it.
pub(super) fn hypervisor_bit(snapshot: &Snapshot) -> Option<bool> {
    first(snapshot)?.hypervisor_bit()
}

/// The base clock by leaf 16h, which hypervisors often leave empty.
pub(super) fn base_khz(snapshot: &Snapshot) -> Option<u64> {
    let leaves = first(snapshot)?;
    let [eax, ..] = leaves.get(0x16, 0).filter(|_| leaves.has(0x16))?;
    let mhz = u64::from(eax & 0xffff);
    (100..10_000).contains(&mhz).then_some(mhz * 1000)
}

/// The hypervisor by its signature.
pub(super) fn hypervisor_name(snapshot: &Snapshot) -> Option<&'static str> {
    let leaves = first(snapshot)?;
    if leaves.hypervisor_bit() == Some(false) {
        return None;
    }
    // A hypervisor that also plays Hyper-V for Windows guests puts its own name into the second
    // range.
    [0x4000_0100, 0x4000_0000].into_iter().find_map(|leaf| {
        let [_, ebx, ecx, edx] = leaves.get(leaf, 0)?;
        let signature: Vec<u8> = [ebx, ecx, edx].iter().flat_map(|register| register.to_le_bytes()).collect();
        let names: &[(&[u8], &str)] = &[
            (b"KVMKVMKVM\0\0\0", "kvm"),
            (b"Linux KVM Hv", "kvm"),
            (b"VMwareVMware", "vmware"),
            (b"Microsoft Hv", "hyperv"),
            (b"XenVMMXenVMM", "xen"),
            (b"VBoxVBoxVBox", "virtualbox"),
            (b"TCGTCGTCGTCG", "qemu"),
            (b"bhyve bhyve ", "bhyve"),
            (b" lrpepyh  vr", "parallels"),
            (b"ACRNACRNACRN", "acrn"),
            (b" QNXQVMBSQG ", "qnx"),
            (b"Jailhouse\0\0\0", "jailhouse"),
        ];
        names.iter().find(|(known, _)| *known == signature).map(|(_, name)| *name)
    })
}

/// Which APIC ids a place is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// The 32-bit ids of the topology leaves, where the processor has them.
    Extended,
    /// The 8-bit ids of leaf 1.
    Legacy,
}

/// The places of the CPUs that answered; none where their APIC ids repeat, as then nothing can be
/// distinguished from them (a dump gathered without moving from CPU to CPU).
fn places(snapshot: &Snapshot, online: &CpuSet) -> Vec<(u32, Place)> {
    let answers: Vec<(u32, Leaves)> =
        online.iter().filter_map(|cpu| Some((cpu, leaves(snapshot, cpu)?))).collect();
    let by = |ids: Ids| -> Vec<(u32, Place)> {
        let place = |(cpu, leaves): &(u32, Leaves)| {
            let place = match leaves.vendor().as_deref() {
                Some("AuthenticAMD" | "HygonGenuine") => amd::place(leaves, ids)?,
                _ => intel::place(leaves, ids)?,
            };
            Some((*cpu, place))
        };
        answers.iter().filter_map(place).collect()
    };
    let apart = |places: &Vec<(u32, Place)>| {
        let ids: BTreeSet<u32> = places.iter().map(|(_, place)| place.apic).collect();
        ids.len() == places.len()
    };
    [Ids::Extended, Ids::Legacy].into_iter().map(by).find(apart).unwrap_or_default()
}

/// Cores, dies and packages where sysfs reported none.
pub(super) fn complete_cpus(all: &mut Cpus, snapshot: &Snapshot, remarks: &mut Vec<String>) {
    let places = places(snapshot, &all.online);
    if places.is_empty() {
        if !cpus(snapshot).is_empty() {
            remarks.push("APIC ids are missing or repeated: the places of the CPUs are unknown".to_string());
        }
        return;
    }
    let apart: CpuSet = places.iter().map(|(cpu, _)| *cpu).collect();
    if apart != all.online {
        remarks.push(format!("the cpuid of CPUs {} is unknown", all.online.difference(&apart)));
    }
    let mut packages: BTreeMap<u32, CpuSet> = BTreeMap::new();
    let mut cores: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
    let mut dies: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
    for (cpu, place) in &places {
        packages.entry(place.package).or_default().insert(*cpu);
        cores.entry((place.package, place.core)).or_default().insert(*cpu);
        if let Some(die) = place.die {
            dies.entry((place.package, die)).or_default().insert(*cpu);
        }
    }
    let core = |((package, core), cpus)| Core {
        cpus,
        package: Some(i64::from(package)),
        die: None,
        core_id: Some(i64::from(core)),
    };
    let mut cores: Vec<Core> = cores.into_iter().map(core).collect();
    cores.sort_by_key(|core| core.cpus.first());
    all.cores = Some(cores);
    all.packages = Some(packages.into_iter().map(|(id, cpus)| Package { id: i64::from(id), cpus }).collect());
    let mut dies: Vec<CpuSet> = dies.into_values().collect();
    dies.sort();
    all.dies = (!dies.is_empty()).then_some(dies);
}

/// Caches where sysfs reported none, in no order.
pub(super) fn caches(snapshot: &Snapshot, online: &CpuSet, remarks: &mut Vec<String>) -> Vec<Cache> {
    let answered = cpus(snapshot).intersection(online);
    if !answered.is_empty() && answered != *online {
        remarks.push(format!(
            "only CPUs {answered} report caches through cpuid: whether other CPUs share them is unknown"
        ));
    }
    let mut caches: BTreeMap<(u32, CacheKind, u32, u32), Cache> = BTreeMap::new();
    for (cpu, place) in places(snapshot, online) {
        for shared in place.caches {
            let key = (shared.level, shared.kind, place.package, shared.id);
            let cache = caches.entry(key).or_insert_with(|| Cache {
                level: shared.level,
                kind: shared.kind,
                cpus: CpuSet::default(),
                size_bytes: Some(shared.size_bytes),
                line_bytes: Some(shared.line_bytes),
                ways: shared.ways,
                sets: shared.sets,
            });
            cache.cpus.insert(cpu);
        }
    }
    caches.into_values().collect()
}

/// Kinds of core by name, where the processors say that they are hybrid.
pub(super) fn kinds(snapshot: &Snapshot, online: &CpuSet) -> BTreeMap<String, CpuSet> {
    let mut kinds: BTreeMap<String, CpuSet> = BTreeMap::new();
    for (cpu, place) in places(snapshot, online) {
        if let Some(kind) = place.kind {
            kinds.entry(kind.to_string()).or_default().insert(cpu);
        }
    }
    kinds
}

#[cfg(test)]
mod tests;
