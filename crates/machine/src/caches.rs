//! Caches: one entry per instance, with who shares it.

use std::collections::BTreeMap;

use model::{CpuSet, Snapshot};

use super::cpuid;
use super::text::{CPUS, SetText, contradict, folder, named_set, size_bytes};
use super::topology::{Cache, CacheKind};

pub(super) const MAP: &[(&str, &str)] = &[("shared_cpu_map", "shared_cpu_list")];

/// More index folders than this are no one's: a CPU has about four.
const INDEXES: u32 = 16;

/// A cache's identity before its attributes are read: level, kind, sharers as reported.
type Key<'a> = (u32, CacheKind, SetText<'a>);

/// Caches by level, kind and first CPU; empty if unknown. CPUs without cache folders
/// simply appear in none.
pub(super) fn parse(snapshot: &Snapshot, online: &CpuSet, remarks: &mut Vec<String>) -> Vec<Cache> {
    let mut folders: BTreeMap<Key, String> = BTreeMap::new();
    let (mut without_map, mut differing) = (CpuSet::default(), CpuSet::default());
    for cpu in online.iter() {
        for index in 0..INDEXES {
            let place = format!("{CPUS}/cpu{cpu}/cache/index{index}");
            let place = folder(snapshot, &place);
            let Some((level, kind)) = level_and_kind(snapshot, place) else { continue };
            if contradict(snapshot, place, MAP).is_some() {
                differing.insert(cpu);
            }
            match named_set(snapshot, place, MAP) {
                Some(map) => drop(folders.entry((level, kind, map)).or_insert_with(|| place.to_string())),
                None => without_map.insert(cpu),
            }
        }
    }
    if !without_map.is_empty() {
        remarks.push(format!(
            "caches of CPUs {without_map} are left out: the kernel does not report which CPUs \
                              share them"
        ));
    }
    if !differing.is_empty() {
        remarks.push(format!(
            "caches of CPUs {differing}: shared_cpu_map and shared_cpu_list contradict each other; the maps are \
             used"
        ));
    }
    let mut caches: BTreeMap<(u32, CacheKind, CpuSet), Cache> = BTreeMap::new();
    for ((level, kind, map), place) in folders {
        let Some(cpus) = map.parse().map(|set| set.intersection(online)).filter(|set| !set.is_empty()) else {
            continue;
        };
        let cache = attributes(snapshot, &place, level, kind, cpus.clone());
        caches.entry((level, kind, cpus)).or_insert(cache);
    }
    let mut caches: Vec<Cache> = if caches.is_empty() {
        cpuid::caches(snapshot, online, remarks)
    } else {
        caches.into_values().collect()
    };
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    remark_overlaps(&caches, remarks);
    caches
}

fn level_and_kind(snapshot: &Snapshot, place: &str) -> Option<(u32, CacheKind)> {
    let level = snapshot.number(&format!("{place}/level")).filter(|level| (1..=9).contains(level))?;
    let kind = match snapshot.text(&format!("{place}/type"))? {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    Some((level, kind))
}

fn attributes(snapshot: &Snapshot, place: &str, level: u32, kind: CacheKind, cpus: CpuSet) -> Cache {
    let number = |file: &str| snapshot.number(&format!("{place}/{file}")).filter(|value: &u32| *value > 0);
    Cache {
        level,
        kind,
        cpus,
        size_bytes: size(snapshot, place),
        line_bytes: number("coherency_line_size"),
        ways: number("ways_of_associativity"),
        sets: number("number_of_sets"),
    }
}

/// The size that a cache folder (links resolved) reports.
pub(super) fn size(snapshot: &Snapshot, place: &str) -> Option<u64> {
    size_bytes(snapshot.text(&format!("{}/size", folder(snapshot, place)))?)
}

fn remark_overlaps(caches: &[Cache], remarks: &mut Vec<String>) {
    let mut seen: BTreeMap<(u32, CacheKind), CpuSet> = BTreeMap::new();
    for cache in caches {
        let all = seen.entry((cache.level, cache.kind)).or_default();
        if !all.is_disjoint(&cache.cpus) {
            remarks.push(format!(
                "CPUs report different sets that share the L{} caches ({})",
                cache.level, cache.cpus
            ));
            return;
        }
        cache.cpus.iter().for_each(|cpu| all.insert(cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn index(cpu: u32, index: u32, files: &[(&str, &str)]) -> Vec<(String, String)> {
        let path = |file: &str| format!("{CPUS}/cpu{cpu}/cache/index{index}/{file}");
        files.iter().map(|(file, text)| (path(file), text.to_string())).collect()
    }

    fn parsed(files: &[(String, String)], online: &str) -> (Vec<Cache>, Vec<String>) {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let mut remarks = Vec::new();
        let online = CpuSet::parse_list(online).unwrap_or_default();
        let caches = parse(&tree(&files), &online, &mut remarks);
        (caches, remarks)
    }

    #[test]
    fn shared_private_and_cut_down_to_online() {
        let mut files = index(
            0,
            0,
            &[
                ("level", "1"),
                ("type", "Data"),
                ("size", "32K"),
                ("shared_cpu_map", "1"),
                ("ways_of_associativity", "8"),
                ("coherency_line_size", "64"),
                ("number_of_sets", "64"),
            ],
        );
        for cpu in 0..2 {
            let l3 = [("level", "3"), ("type", "Unified"), ("size", "8M"), ("shared_cpu_list", "0-3")];
            files.extend(index(cpu, 3, &l3));
        }
        let (caches, remarks) = parsed(&files, "0-1");
        assert_eq!(remarks, Vec::<String>::new());
        assert_eq!(caches.len(), 2);
        assert_eq!(caches[0].cpus.to_string(), "0");
        assert_eq!((caches[0].ways, caches[0].line_bytes, caches[0].sets), (Some(8), Some(64), Some(64)));
        assert_eq!((caches[1].level, caches[1].size_bytes), (3, Some(8 << 20)));
        assert_eq!(caches[1].cpus.to_string(), "0-1");
        assert_eq!(caches[1].ways, None);
    }

    #[test]
    fn a_cache_without_sharers_or_size_is_not_invented() {
        let mut files = index(0, 0, &[("level", "1"), ("type", "Data"), ("size", "32K")]);
        files.extend(index(0, 1, &[("level", "2"), ("type", "Unified"), ("shared_cpu_map", "1")]));
        files.extend(index(0, 2, &[("level", "x"), ("type", "Unified"), ("shared_cpu_map", "1")]));
        let (caches, remarks) = parsed(&files, "0");
        assert_eq!(caches.len(), 1);
        assert_eq!((caches[0].level, caches[0].size_bytes), (2, None));
        assert_eq!(remarks.len(), 1);
    }
}
