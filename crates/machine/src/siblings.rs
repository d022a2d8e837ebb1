//! Sets of CPUs in sysfs' topology folders: cores, dies, clusters, packages, books, drawers.

use std::collections::BTreeMap;

use model::{CpuSet, Snapshot};

use super::text::{CPUS, groups, named_set};

/// The (mask, list) names that sysfs has used for the same set, the newer first.
pub const CORE: &[(&str, &str)] =
    &[("core_cpus", "core_cpus_list"), ("thread_siblings", "thread_siblings_list")];
pub const PACKAGE: &[(&str, &str)] =
    &[("package_cpus", "package_cpus_list"), ("core_siblings", "core_siblings_list")];
pub const DIE: &[(&str, &str)] = &[("die_cpus", "die_cpus_list")];
pub const CLUSTER: &[(&str, &str)] = &[("cluster_cpus", "cluster_cpus_list")];
/// Levels above packages, of s390.
pub const BOOK: &[(&str, &str)] = &[("book_siblings", "book_siblings_list")];
pub const DRAWER: &[(&str, &str)] = &[("drawer_siblings", "drawer_siblings_list")];

pub(super) fn number(snapshot: &Snapshot, cpu: u32, file: &str) -> Option<i64> {
    snapshot.number(&format!("{CPUS}/cpu{cpu}/topology/{file}"))
}

/// What CPUs say about a set that cannot be: of two groups, which overlap, or of one that does not
/// have itself.
pub(super) fn contradiction(
    snapshot: &Snapshot,
    online: &CpuSet,
    names: &[(&str, &str)],
) -> Option<[String; 2]> {
    let groups = groups(online, |cpu| named_set(snapshot, &format!("{CPUS}/cpu{cpu}/topology"), names));
    let words = |(said, members): (&CpuSet, &CpuSet)| format!("CPUs {members} report {said}");
    let mut owners: BTreeMap<u32, &CpuSet> = BTreeMap::new();
    for (said, members) in &groups {
        if !members.is_subset(said) {
            return Some([words((said, members)), "which does not contain all of them".to_string()]);
        }
        for cpu in said.iter() {
            if let Some(other) = owners.insert(cpu, said) {
                return Some([words((other, &groups[other])), words((said, members))]);
            }
        }
    }
    None
}

/// Groups of online CPUs that a topology file forms; `None` where no CPU has it.
pub(super) fn sets(snapshot: &Snapshot, online: &CpuSet, names: &[(&str, &str)]) -> Option<Vec<CpuSet>> {
    let groups = groups(online, |cpu| named_set(snapshot, &format!("{CPUS}/cpu{cpu}/topology"), names));
    let mut sets: Vec<CpuSet> = groups.into_values().collect();
    sets.sort();
    (!sets.is_empty()).then_some(sets)
}
