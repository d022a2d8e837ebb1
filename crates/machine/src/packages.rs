//! Which CPUs form a package (a socket): by the kernel's ids, by its sibling masks where it has no
//! ids, and what it calls packages on Arm that may be clusters.

use std::collections::{BTreeMap, BTreeSet};

use model::vocabulary::host as ids;
use model::{CpuSet, Snapshot};

use super::cpuinfo::CpuInfo;
use super::siblings::{BOOK, CLUSTER, CORE, DRAWER, PACKAGE, contradiction, number, sets};
use super::text::{CPUS, SetText, folder, named_set};
use super::topology::Package;
use super::{caches, cpuid, kernel, numa};

/// Clusters of Arm have at most this many cores: `MPIDR_EL1.Aff0` numbers them, and interrupt
/// controllers address 16 of one `Aff1`.
const MAX_CLUSTER: usize = 16;
/// Since this release of Linux ids of packages on Arm come from sockets alone; before, a device
/// tree's clusters or the levels of MPIDR were taken for packages.
const SOCKETS_SINCE: u32 = 6;

/// Packages and clusters; `None` if unknown.
pub(super) type Grouped = (Option<Vec<Package>>, Option<Vec<CpuSet>>);

pub(super) fn parse(
    snapshot: &Snapshot,
    info: &CpuInfo,
    online: &CpuSet,
    remarks: &mut Vec<String>,
) -> Grouped {
    let clusters = sets(snapshot, online, CLUSTER);
    let masks = sets(snapshot, online, PACKAGE);
    let is_arm = is_arm(snapshot, info);
    let Some(packages) = by_ids(snapshot, info, online, remarks) else {
        // Where Arm's kernels have no ids, they make the masks of the ids that they do not have.
        let told = masks.filter(|_| !is_arm);
        return (told.and_then(|masks| by_masks(snapshot, online, masks, remarks)), clusters);
    };
    let packages = against_masks(packages, &masks, info, remarks);
    let unknown = online.difference(&CpuSet::union_of(packages.iter().map(|package| &package.cpus)));
    if !unknown.is_empty() {
        remarks.push(format!("the package of CPUs {unknown} is unknown"));
    }
    match packages.len() > 1 {
        true if is_arm => of_arm(snapshot, info, packages, clusters, &unknown, remarks),
        true if is_of_nobody_knows_what(snapshot, info) => {
            if !are_sockets(snapshot, &packages, clusters.as_deref()) {
                remarks.push(format!(
                    "the {} packages may be clusters of one chip: the processor is unknown, and Linux before \
                     {SOCKETS_SINCE}.0 calls Arm's clusters packages",
                    packages.len()
                ));
            }
            (Some(packages), clusters)
        }
        _ => (Some(packages), clusters),
    }
}

/// What the kernel was built for, in the kernel's own words.
fn architecture(snapshot: &Snapshot) -> Option<&str> {
    snapshot.text("/proc/sys/kernel/arch").or_else(|| snapshot.text(ids::probe::ARCHITECTURE))
}

fn is_arm(snapshot: &Snapshot, info: &CpuInfo) -> bool {
    let release = || kernel::parse(snapshot).release.unwrap_or_default();
    info.any(&["CPU implementer"]).is_some()
        || architecture(snapshot).is_some_and(|name| name == "aarch64" || name.starts_with("arm"))
        || is_of_nobody_knows_what(snapshot, info)
            && ["aarch64", "arm64"].iter().any(|name| release().contains(name))
}

/// Whether neither the kernel nor the processor names the processor.
fn is_of_nobody_knows_what(snapshot: &Snapshot, info: &CpuInfo) -> bool {
    info.cpus().is_empty() && architecture(snapshot).is_none() && cpuid::cpus(snapshot).is_empty()
}

/// Packages by id; -1 is the kernel's "unknown". On s390 an id is one in its book, and a book's in
/// its drawer.
fn by_ids(
    snapshot: &Snapshot,
    info: &CpuInfo,
    online: &CpuSet,
    remarks: &mut Vec<String>,
) -> Option<Vec<Package>> {
    let (drawers, books) = (sets(snapshot, online, DRAWER), sets(snapshot, online, BOOK));
    let level = |cpu: u32, file: &str, masks: &Option<Vec<CpuSet>>| {
        let by_mask = || masks.as_ref()?.iter().position(|set| set.contains(cpu)).map(|at| at as i64);
        number(snapshot, cpu, file).filter(|id| *id >= 0).or_else(by_mask).unwrap_or(-1)
    };
    let mut by_id: BTreeMap<[i64; 3], CpuSet> = BTreeMap::new();
    let (mut is_told, mut differing) = (false, CpuSet::default());
    for cpu in online.iter() {
        let id = number(snapshot, cpu, "physical_package_id");
        is_told |= id.is_some();
        let by_cpuinfo = info.of(cpu, "physical id").and_then(|id| id.parse::<i64>().ok());
        if let Some(id) = id.filter(|id| *id >= 0) {
            let upper = [level(cpu, "drawer_id", &drawers), level(cpu, "book_id", &books)];
            by_id.entry([upper[0], upper[1], id]).or_default().insert(cpu);
            if by_cpuinfo.is_some_and(|other| other != id) {
                differing.insert(cpu);
            }
        }
    }
    if !is_told {
        for cpu in online.iter() {
            let id = info.of(cpu, "physical id").and_then(|id| id.parse().ok());
            if let Some(id) = id.filter(|id: &i64| *id >= 0) {
                by_id.entry([-1, -1, id]).or_default().insert(cpu);
            }
        }
    }
    if !differing.is_empty() {
        remarks.push(format!(
            "/proc/cpuinfo and sysfs report different packages for CPUs {differing}; sysfs is used"
        ));
    }
    let unique: BTreeSet<i64> = by_id.keys().map(|[.., id]| *id).collect();
    let is_unique = unique.len() == by_id.len();
    if !is_unique {
        remarks.push("package ids repeat in other books or drawers: packages are renumbered".to_string());
    }
    let package = |(at, ([.., id], cpus)): (usize, ([i64; 3], CpuSet))| Package {
        id: if is_unique { id } else { at as i64 },
        cpus,
    };
    let packages: Vec<Package> = by_id.into_iter().enumerate().map(package).collect();
    (!packages.is_empty()).then_some(packages)
}

/// Packages by the masks alone, where these report more than cores.
fn by_masks(
    snapshot: &Snapshot,
    online: &CpuSet,
    masks: Vec<CpuSet>,
    remarks: &mut Vec<String>,
) -> Option<Vec<Package>> {
    if contradiction(snapshot, online, PACKAGE).is_some() {
        remarks.push(
            "packages are unknown: their ids are missing, and the sibling masks contradict each other"
                .to_string(),
        );
        return None;
    }
    let cores = sets(snapshot, online, CORE).unwrap_or_default();
    // What is at most a core is the mask of a kernel that knows no packages.
    masks.iter().find(|set| set.len() > 1 && !cores.contains(set))?;
    remarks.push("packages come from the masks of siblings: their ids are missing".to_string());
    let package = |(at, cpus)| Package { id: at as i64, cpus };
    Some(masks.into_iter().enumerate().map(package).collect())
}

/// Ids win over masks, which kernels before 4.x cut down to a NUMA node under Cluster-on-Die; but
/// not on s390, where ids are numbers in a book that old kernels do not name.
fn against_masks(
    packages: Vec<Package>,
    masks: &Option<Vec<CpuSet>>,
    info: &CpuInfo,
    remarks: &mut Vec<String>,
) -> Vec<Package> {
    let Some(masks) = masks else { return packages };
    let own: BTreeSet<&CpuSet> = packages.iter().map(|package| &package.cpus).collect();
    let same_cpus = CpuSet::union_of(own.iter().copied()) == CpuSet::union_of(masks);
    if info.any(&["vendor_id"]) == Some("IBM/S390") && masks.len() > packages.len() && same_cpus {
        remarks.push(format!(
            "the kernel reports {} packages by id and {} by sibling masks; Assay uses the masks (ids are \
             numbers in a book)",
            packages.len(),
            masks.len()
        ));
        return masks
            .iter()
            .enumerate()
            .map(|(at, cpus)| Package { id: at as i64, cpus: cpus.clone() })
            .collect();
    }
    if masks.len() != packages.len() {
        remarks.push(format!(
            "the kernel reports {} packages by id and {} by sibling masks; Assay uses the ids (old kernels cut \
             masks at NUMA nodes)",
            packages.len(),
            masks.len()
        ));
    } else if same_cpus && masks.iter().any(|set| !own.contains(set)) {
        remarks.push(
            "package ids and sibling masks place CPUs in different packages; Assay uses the ids".to_string(),
        );
    }
    packages
}

/// What Arm's kernels call packages: sockets, or the clusters of an unknown
/// number of chips.
fn of_arm(
    snapshot: &Snapshot,
    info: &CpuInfo,
    packages: Vec<Package>,
    clusters: Option<Vec<CpuSet>>,
    unknown: &CpuSet,
    remarks: &mut Vec<String>,
) -> Grouped {
    if are_sockets(snapshot, &packages, clusters.as_deref()) {
        return (Some(packages), clusters);
    }
    let all = CpuSet::union_of(packages.iter().map(|package| &package.cpus));
    let largest = largest(snapshot, &packages);
    let nodes = snapshot.numbered(numa::NODES, "node").len();
    let count = packages.len();
    let designs: BTreeSet<BTreeSet<&str>> = packages
        .iter()
        .map(|one| one.cpus.iter().filter_map(|cpu| info.of(cpu, "CPU part")).collect())
        .collect();
    let differ = designs.len() > 1 && designs.iter().all(|designs| !designs.is_empty());
    let is_one_chip = differ && nodes <= 1 || share_a_cache(snapshot, &all);
    let clusters = clusters.filter(|sets| sets.iter().any(|set| set.len() > 1));
    let groups = || packages.iter().map(|package| package.cpus.clone()).collect();
    let clusters = clusters.or_else(|| unknown.is_empty().then(groups));
    if is_one_chip {
        remarks.push(format!(
            "the kernel reports {count} packages: they are clusters of one Arm chip (different designs or one \
             cache) and count as one package"
        ));
        return (Some(vec![Package { id: 0, cpus: all }]), clusters);
    }
    remarks.push(format!(
        "the {count} packages of at most {largest} cores may be clusters, as Linux before {SOCKETS_SINCE}.0 \
         reports on Arm: the number of packages is unknown"
    ));
    (None, clusters)
}

/// Cores of the package that has most of them.
fn largest(snapshot: &Snapshot, packages: &[Package]) -> usize {
    let all = CpuSet::union_of(packages.iter().map(|package| &package.cpus));
    let cores = sets(snapshot, &all, CORE).unwrap_or_default();
    let cores_of = |package: &Package| match cores.iter().filter(|core| core.is_subset(&package.cpus)).count()
    {
        0 => package.cpus.len(),
        count => count,
    };
    packages.iter().map(cores_of).max().unwrap_or(0)
}

/// Whether packages cannot be clusters: they are larger, have clusters inside, or are those of a
/// kernel that separates both.
fn are_sockets(snapshot: &Snapshot, packages: &[Package], clusters: Option<&[CpuSet]>) -> bool {
    let all = CpuSet::union_of(packages.iter().map(|package| &package.cpus));
    let cores = sets(snapshot, &all, CORE).unwrap_or_default();
    let is_inside = |set: &CpuSet| {
        set.len() > 1 && packages.iter().any(|one| set.is_subset(&one.cpus) && set.len() < one.cpus.len())
    };
    // Cores that share a first cache or their threads are no level between core and package.
    let is_between = |set: &CpuSet| is_inside(set) && !cores.iter().any(|core| core == set);
    let knows_clusters = clusters.is_some_and(|sets| sets.iter().any(is_between));
    largest(snapshot, packages) > MAX_CLUSTER || knows_clusters || knows_sockets(snapshot)
}

/// Whether the kernel is one that asks for sockets.
fn knows_sockets(snapshot: &Snapshot) -> bool {
    let release = kernel::parse(snapshot).release;
    let major = release.as_deref().and_then(|release| release.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= SOCKETS_SINCE)
}

/// Whether a cache of the first CPU is that of all.
fn share_a_cache(snapshot: &Snapshot, all: &CpuSet) -> bool {
    let first = all.first().unwrap_or(0);
    (0..8).any(|index| {
        let place = format!("{CPUS}/cpu{first}/cache/index{index}");
        let set = named_set(snapshot, folder(snapshot, &place), caches::MAP).and_then(SetText::parse);
        set.is_some_and(|set| all.is_subset(&set))
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    /// Files of topology folders (CPU, name, content) and others by path, read.
    fn parsed(topology: &[(u32, &str, &str)], others: &[(&str, &str)]) -> (Grouped, Vec<String>) {
        let paths: Vec<String> =
            topology.iter().map(|(cpu, file, _)| format!("{CPUS}/cpu{cpu}/topology/{file}")).collect();
        let own = paths.iter().map(String::as_str).zip(topology.iter().map(|(.., text)| *text));
        let files: Vec<(&str, &str)> = own.chain(others.iter().copied()).collect();
        let snapshot = tree(&files);
        let online = topology.iter().map(|(cpu, ..)| *cpu).collect();
        let mut remarks = Vec::new();
        let grouped = parse(&snapshot, &CpuInfo::read(&snapshot), &online, &mut remarks);
        (grouped, remarks)
    }

    fn cpus((packages, _): &Grouped) -> Vec<String> {
        packages.iter().flatten().map(|package| package.cpus.to_string()).collect()
    }

    /// Ids of packages for CPUs 0, 1, 2, ...
    fn ids(ids: &[&'static str]) -> Vec<(u32, &'static str, &'static str)> {
        ids.iter().enumerate().map(|(cpu, id)| (cpu as u32, "physical_package_id", *id)).collect()
    }

    const CORTEX: &str = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd08\n";

    #[test]
    fn packages_where_only_masks_exist() {
        // Cell: two chips of two threads each, no ids.
        let cell = [
            (0, "core_siblings", "3"),
            (1, "core_siblings", "3"),
            (2, "core_siblings", "c"),
            (3, "core_siblings", "c"),
        ];
        let (found, remarks) = parsed(&cell, &[]);
        assert_eq!(cpus(&found), ["0-1", "2-3"]);
        assert!(remarks[0].contains("masks of siblings"), "{remarks:?}");
        // The same with "unknown" for ids, by lists, and with the newer names.
        let unknown: Vec<_> = cell.into_iter().chain(ids(&["-1", "-1", "-1", "-1"])).collect();
        assert_eq!(cpus(&parsed(&unknown, &[]).0), ["0-1", "2-3"]);
        let newer = [
            (0, "package_cpus_list", "0-1"),
            (1, "package_cpus_list", "0-1"),
            (2, "package_cpus_list", "2-3"),
            (3, "package_cpus_list", "2-3"),
        ];
        assert_eq!(cpus(&parsed(&newer, &[]).0), ["0-1", "2-3"]);
        // Masks that are those of cores know no packages; Arm's are made of ids that are unknown.
        let threads: Vec<_> = cell.iter().flat_map(|one| [*one, (one.0, "thread_siblings", one.2)]).collect();
        assert_eq!(parsed(&threads, &[]).0.0, None);
        assert_eq!(parsed(&unknown, &[("/proc/cpuinfo", CORTEX)]).0.0, None);
    }

    #[test]
    fn masks_that_overlap_tell_no_packages() {
        let of = |masks: [&'static str; 4]| -> Vec<(u32, &'static str, &'static str)> {
            (0..).zip(masks).map(|(cpu, mask)| (cpu, "core_siblings", mask)).collect()
        };
        for masks in [["3", "3", "e", "e"], ["f", "f", "c", "c"], ["7", "7", "7", "c"], ["3", "3", "3", "c"]]
        {
            let (found, remarks) = parsed(&of(masks), &[]);
            assert_eq!(found.0, None, "{masks:?}");
            assert!(remarks.concat().contains("packages are unknown"), "{masks:?}: {remarks:?}");
        }
        // Missing ids contradict nothing.
        assert_eq!(cpus(&parsed(&of(["3", "3", "c", "?"]), &[]).0), ["0-1", "2"]);
    }

    #[test]
    fn packages_of_nobody_knows_what_are_doubted() {
        let halves = ids(&["0", "0", "1", "1", "1", "1"]);
        let says = |files: &[(&str, &str)]| parsed(&halves, files).1.concat();
        assert_eq!(cpus(&parsed(&halves, &[]).0), ["0-1", "2-5"]);
        for release in ["", "4.19.0-6", "5.10.0"] {
            let said = says(&[("/proc/sys/kernel/osrelease", release)]);
            assert!(said.contains("the 2 packages may be clusters"), "{release}: {said}");
        }
        // A release or an architecture of Arm; a kernel that asks for sockets; another processor.
        for files in
            [[("/proc/sys/kernel/osrelease", "5.10.0-21-arm64")], [(ids::probe::ARCHITECTURE, "aarch64")]]
        {
            assert_eq!(parsed(&halves, &files).0.0, None);
            assert!(says(&files).contains("the number of packages is unknown"));
        }
        for file in [
            ("/proc/sys/kernel/osrelease", "6.1.0"),
            (ids::probe::ARCHITECTURE, "x86_64"),
            ("/proc/sys/kernel/arch", "ppc64le"),
            ("/proc/cpuinfo", "processor : 0\nflags : fpu\n"),
        ] {
            assert_eq!(says(&[file]), "", "{file:?}");
        }
    }

    #[test]
    fn ids_are_numbers_in_a_book() {
        let book =
            |ids: [&'static str; 4]| ids.into_iter().enumerate().map(|(cpu, id)| (cpu as u32, "book_id", id));
        let same = ids(&["0", "1", "0", "1"]);
        let (found, remarks) =
            parsed(&same.iter().copied().chain(book(["1", "1", "2", "2"])).collect::<Vec<_>>(), &[]);
        assert_eq!(cpus(&found), ["0", "1", "2", "3"]);
        assert!(remarks[0].contains("renumbered"), "{remarks:?}");
        let masks = ["3", "3", "c", "c"]
            .into_iter()
            .enumerate()
            .map(|(cpu, mask)| (cpu as u32, "book_siblings", mask));
        assert_eq!(
            cpus(&parsed(&same.iter().copied().chain(masks).collect::<Vec<_>>(), &[]).0),
            ["0", "1", "2", "3"]
        );
        let drawers = same
            .iter()
            .copied()
            .chain(ids(&["3", "3", "4", "4"]).into_iter().map(|(cpu, _, id)| (cpu, "drawer_id", id)));
        assert_eq!(cpus(&parsed(&drawers.collect::<Vec<_>>(), &[]).0), ["0", "1", "2", "3"]);
        // One book: as without.
        assert_eq!(
            cpus(&parsed(&same.iter().copied().chain(book(["1"; 4])).collect::<Vec<_>>(), &[]).0),
            ["0,2", "1,3"]
        );
        // No books are reported, but masks.
        let masks = ["1", "2", "4", "8"]
            .into_iter()
            .enumerate()
            .map(|(cpu, mask)| (cpu as u32, "core_siblings", mask));
        let both: Vec<_> = same.into_iter().chain(masks).collect();
        let (found, remarks) = parsed(&both, &[("/proc/cpuinfo", "vendor_id : IBM/S390\n")]);
        assert_eq!(cpus(&found), ["0", "1", "2", "3"]);
        assert!(remarks[0].contains("uses the masks"), "{remarks:?}");
        assert_eq!(cpus(&parsed(&both, &[]).0), ["0,2", "1,3"]);
    }

    #[test]
    fn ids_masks_and_cpuinfo_that_contradict_each_other() {
        let masks = ["3", "3", "c", "c"]
            .into_iter()
            .enumerate()
            .map(|(cpu, mask)| (cpu as u32, "core_siblings", mask));
        let both: Vec<_> = ids(&["0", "1", "0", "1"]).into_iter().chain(masks).collect();
        let x86 = ("/proc/cpuinfo", "processor: 0\nflags: fpu\n");
        let (found, remarks) = parsed(&both, &[x86]);
        assert_eq!(cpus(&found), ["0,2", "1,3"]);
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        let (found, remarks) = parsed(
            &ids(&["0", "1"]),
            &[("/proc/cpuinfo", "processor: 0\nphysical id: 0\n\nprocessor: 1\nphysical id: 0\n")],
        );
        assert_eq!(cpus(&found), ["0", "1"]);
        assert!(
            remarks[0].contains("/proc/cpuinfo and sysfs report different packages for CPUs 1"),
            "{remarks:?}"
        );
        assert_eq!(parsed(&ids(&["0", "1"]), &[x86]).1, Vec::<String>::new());
    }

    #[test]
    fn clusters_of_cores_of_different_designs_are_one_chip() {
        let cpuinfo = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd03\n\nprocessor : 1\nCPU part : 0xd03\n\n\
                       processor : 2\nCPU part : 0xd09\n\nprocessor : 3\nCPU part : 0xd09\n";
        let (found, remarks) = parsed(&ids(&["0", "0", "1", "1"]), &[("/proc/cpuinfo", cpuinfo)]);
        assert_eq!(cpus(&found), ["0-3"]);
        assert_eq!(found.1.map(|clusters| clusters.len()), Some(2));
        assert!(remarks[0].contains("2 packages: they are clusters"), "{remarks:?}");
        // One cache of all says the same of cores of one design.
        let cache = format!("{CPUS}/cpu0/cache/index2/shared_cpu_map");
        let (found, _) = parsed(&ids(&["0", "0", "1", "1"]), &[("/proc/cpuinfo", CORTEX), (&cache, "f")]);
        assert_eq!(cpus(&found), ["0-3"]);
    }

    #[test]
    fn what_may_be_clusters_is_said_to_be_unknown() {
        // Sixteen "packages" of four Cortex-A72 on four nodes: two sockets, which Unknown.
        let numbers: Vec<String> = (0..16).map(|id| (id % 4 + id / 4 * 256).to_string()).collect();
        let topology: Vec<(u32, &str, &str)> =
            (0..64).map(|cpu| (cpu, "physical_package_id", numbers[cpu as usize / 4].as_str())).collect();
        let nodes: Vec<(String, &str)> =
            (0..4).map(|id| (format!("{}/node{id}/cpulist", numa::NODES), "0")).collect();
        let with = |release: &'static str| -> Vec<(&str, &str)> {
            let nodes = nodes.iter().map(|(path, text)| (path.as_str(), *text));
            nodes.chain([("/proc/cpuinfo", CORTEX), ("/proc/sys/kernel/osrelease", release)]).collect()
        };
        for release in ["4.11.0-45.el7.aarch64", "5.10.0-21-arm64", ""] {
            let (found, remarks) = parsed(&topology, &with(release));
            assert_eq!(found.0, None, "{release}");
            assert_eq!(found.1.map(|clusters| clusters.len()), Some(16));
            assert!(remarks[0].contains("the 16 packages of at most"), "{remarks:?}");
        }
        // A kernel that knows sockets, or groups that are larger than clusters, or clusters apart.
        assert_eq!(cpus(&parsed(&topology, &with("6.1.0-13-arm64")).0).len(), 16);
        let halves: Vec<_> =
            (0..64).map(|cpu| (cpu, "physical_package_id", if cpu < 32 { "36" } else { "3180" })).collect();
        assert_eq!(cpus(&parsed(&halves, &with("4.19.0")).0), ["0-31", "32-63"]);
        let pairs: Vec<_> = ids(&["0", "0", "0", "0", "1", "1", "1", "1"])
            .into_iter()
            .flat_map(|one| [one, (one.0, "cluster_cpus", ["3", "c", "30", "c0"][one.0 as usize / 2])])
            .collect();
        assert_eq!(cpus(&parsed(&pairs, &with("5.16.0")).0), ["0-3", "4-7"]);
        // x86 has no such clusters.
        assert_eq!(
            cpus(&parsed(&ids(&["0", "1"]), &[("/proc/cpuinfo", "processor: 0\nflags: fpu\n")]).0).len(),
            2
        );
    }
}
