//! Kinds of core on machines where they differ.

use std::collections::BTreeMap;

use model::{CpuSet, Snapshot};

use super::cpuinfo::CpuInfo;
use super::text::{CPUS, folder};
use super::topology::Cpus;
use super::{arm, caches, cpuid};

/// Kinds of core by name; empty if all are alike or unknown. The first source that lists
/// at least two kinds counts. Maximum frequencies are not asked: favoured cores turbo higher
/// without being of another kind.
pub(super) fn parse(snapshot: &Snapshot, info: &CpuInfo, cpus: &Cpus) -> BTreeMap<String, CpuSet> {
    let sources = [
        perf_devices(snapshot, &cpus.online),
        cpuid::kinds(snapshot, &cpus.online),
        arm_parts(info, &cpus.online),
        capacities(snapshot, info, &cpus.online),
        first_level_caches(snapshot, &cpus.online),
    ];
    sources.into_iter().find(|kinds| kinds.len() > 1).unwrap_or_default()
}

/// Intel hybrid processors have one performance-counter device a kind.
fn perf_devices(snapshot: &Snapshot, online: &CpuSet) -> BTreeMap<String, CpuSet> {
    let devices = [("P-core", "cpu_core"), ("E-core", "cpu_atom"), ("LP E-core", "cpu_lowpower")];
    let kind = |(name, device): (&str, &str)| {
        let set = snapshot.text(&format!("/sys/devices/{device}/cpus")).and_then(CpuSet::parse_list)?;
        let set = set.intersection(online);
        (!set.is_empty()).then(|| (name.to_string(), set))
    };
    devices.into_iter().filter_map(kind).collect()
}

fn grouped(online: &CpuSet, name: impl Fn(u32) -> Option<String>) -> BTreeMap<String, CpuSet> {
    let mut kinds: BTreeMap<String, CpuSet> = BTreeMap::new();
    for cpu in online.iter() {
        if let Some(name) = name(cpu) {
            kinds.entry(name).or_default().insert(cpu);
        }
    }
    kinds
}

fn arm_parts(info: &CpuInfo, online: &CpuSet) -> BTreeMap<String, CpuSet> {
    grouped(online, |cpu| {
        let (implementer, part) = (info.of(cpu, "CPU implementer")?, info.of(cpu, "CPU part")?);
        let named = arm::name(implementer, part).map(str::to_string);
        Some(named.unwrap_or_else(|| format!("implementer {implementer} part {part}")))
    })
}

/// Capacities as the device tree or firmware gives them (1024 = the strongest core). Where they lie
/// close together (and on x86 always) they follow the turbo limits of single cores, which makes no
/// kinds.
fn capacities(snapshot: &Snapshot, info: &CpuInfo, online: &CpuSet) -> BTreeMap<String, CpuSet> {
    if info.x86_flags().is_some() {
        return BTreeMap::new();
    }
    let capacity = |cpu: u32| snapshot.number::<u32>(&format!("{CPUS}/cpu{cpu}/cpu_capacity"));
    let told: Vec<u32> = online.iter().filter_map(capacity).collect();
    let close = told
        .iter()
        .min()
        .zip(told.iter().max())
        .is_none_or(|(low, high)| u64::from(*low) * 4 > u64::from(*high) * 3);
    if close {
        return BTreeMap::new();
    }
    grouped(online, |cpu| Some(format!("capacity {}", capacity(cpu)?)))
}

/// Cores of different design have first-level caches of different sizes. CPUs whose caches are not
/// reported are left out, so a tree with holes gives no false kinds.
fn first_level_caches(snapshot: &Snapshot, online: &CpuSet) -> BTreeMap<String, CpuSet> {
    grouped(online, |cpu| {
        let of = |kind: &str| {
            let path = format!("{CPUS}/cpu{cpu}/cache/index");
            (0..4).find_map(|index| {
                let place = format!("{path}{index}");
                let place = folder(snapshot, &place);
                let level = snapshot.number::<u32>(&format!("{place}/level"))?;
                let told = snapshot.text(&format!("{place}/type"))?;
                (level == 1 && told == kind).then(|| caches::size(snapshot, place)).flatten()
            })
        };
        let (data, code) = (of("Data")?, of("Instruction")?);
        Some(format!("L1d {} KiB, L1i {} KiB", data >> 10, code >> 10))
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn kinds(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let snapshot = tree(files);
        let cpus = Cpus { online: (0..4).collect(), ..Cpus::default() };
        let kinds = parse(&snapshot, &CpuInfo::read(&snapshot), &cpus);
        kinds.into_iter().map(|(name, cpus)| (name, cpus.to_string())).collect()
    }

    #[test]
    fn intel_hybrid_by_its_counter_devices() {
        let files = [("/sys/devices/cpu_core/cpus", "0-1"), ("/sys/devices/cpu_atom/cpus", "2-3,8")];
        assert_eq!(kinds(&files), [("E-core".into(), "2-3".into()), ("P-core".into(), "0-1".into())]);
        assert_eq!(kinds(&files[..1]), []);
    }

    #[test]
    fn capacities_that_are_far_apart() {
        let path = |cpu: u32| format!("{CPUS}/cpu{cpu}/cpu_capacity");
        let (a, b) = (path(0), path(1));
        assert_eq!(kinds(&[(&a, "1024"), (&b, "446")]).len(), 2);
        assert_eq!(kinds(&[(&a, "1024"), (&b, "1009")]), []);
        assert_eq!(kinds(&[(&a, "4294967295"), (&b, "1")]).len(), 2);
    }

    #[test]
    fn arm_parts_and_nothing() {
        let text = "processor: 0\nCPU implementer: 0x41\nCPU part: 0xd0b\n\nprocessor: 1\nCPU part: 0xd05\n";
        assert_eq!(kinds(&[("/proc/cpuinfo", text)]).len(), 2);
        assert_eq!(kinds(&[]), []);
    }
}
