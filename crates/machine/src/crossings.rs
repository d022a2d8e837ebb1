//! Where cores, caches, packages and NUMA nodes contradict each other: of two groups of CPUs, each
//! has some that the other lacks, or two files split one core, or no group has it.

use std::collections::{BTreeMap, BTreeSet};

use model::CpuSet;

use super::numa::Node;
use super::topology::{Cache, Cpus};

/// CPUs that form something.
struct Group<'a> {
    /// With its CPUs, as a sentence begins.
    full: String,
    short: String,
    cpus: &'a CpuSet,
}

impl<'a> Group<'a> {
    fn unnumbered(what: &str, cpus: &'a CpuSet) -> Group<'a> {
        Group { full: format!("the {what} of CPUs {cpus}"), short: format!("the {what}"), cpus }
    }

    fn numbered(what: &str, number: impl std::fmt::Display, cpus: &'a CpuSet) -> Group<'a> {
        Group { full: format!("{what} {number} (CPUs {cpus})"), short: format!("{what} {number}"), cpus }
    }
}

/// Says what cannot all be true; the files' values stay as they are.
pub(super) fn remark(cpus: &Cpus, caches: &[Cache], nodes: &[Node], remarks: &mut Vec<String>) {
    let cores = cpus.cores.iter().flatten().map(|core| Group::unnumbered("core", &core.cpus));
    let cores: Vec<Group> = cores.collect();
    let packages = cpus.packages.iter().flatten().map(|one| Group::numbered("package", one.id, &one.cpus));
    let packages: Vec<Group> = packages.collect();
    let of_nodes = nodes.iter().filter(|node| !node.cpus.is_empty());
    let of_nodes: Vec<Group> =
        of_nodes.map(|node| Group::numbered("NUMA node", node.id, &node.cpus)).collect();
    let of_caches = caches.iter().map(|one| Group::unnumbered(&format!("L{} cache", one.level), &one.cpus));
    let of_caches: Vec<Group> = of_caches.collect();
    // Where a core is in two nodes, packages and caches of cores are too.
    let of_nodes_too = || crossing(&of_nodes, &packages).or_else(|| crossing(&of_caches, &of_nodes));
    remarks.extend(parted(&cores, &of_nodes).or_else(of_nodes_too));
    remarks.extend(parted(&of_caches, &packages));
    remarks.extend(crossing(&of_caches, &cores));
    remarks.extend(one_id_of_several(cpus, caches, nodes));
    let told = CpuSet::union_of(nodes.iter().map(|node| &node.cpus));
    let without = cpus.online.difference(&told);
    if !nodes.is_empty() && !without.is_empty() {
        remarks.push(format!("no NUMA node has CPUs {without}: their local memory is unknown"));
    }
}

/// What may never be in two of the others, and is: the first such, and how many more there are.
fn parted(ones: &[Group], others: &[Group]) -> Option<String> {
    const NAMED: usize = 4;
    let mut by_cpu: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, other) in others.iter().enumerate() {
        by_cpu.extend(other.cpus.iter().map(|cpu| (cpu, at)));
    }
    let holders = |one: &Group| -> BTreeSet<usize> {
        one.cpus.iter().filter_map(|cpu| by_cpu.get(&cpu).copied()).collect()
    };
    let mut apart = ones.iter().map(|one| (one, holders(one))).filter(|(_, holders)| holders.len() > 1);
    let (one, holders) = apart.next()?;
    let mut names: Vec<&str> = holders.iter().take(NAMED).map(|at| others[*at].short.as_str()).collect();
    let more = holders.len().saturating_sub(NAMED);
    let rest = format!("{more} more");
    if more > 0 {
        names.push(&rest);
    }
    let too = match apart.count() {
        0 => String::new(),
        1 => ", and so is one more".to_string(),
        count => format!(", and so are {count} more"),
    };
    Some(format!("{} is in {} at once{too}: a contradiction", one.full, names.join(" and ")))
}

/// Two groups of which each has CPUs in common with the other and some that the other lacks, of
/// those CPUs that are in any of the others.
fn crossing(ones: &[Group], others: &[Group]) -> Option<String> {
    let all = CpuSet::union_of(others.iter().map(|other| other.cpus));
    ones.iter().find_map(|one| {
        let cpus = one.cpus.intersection(&all);
        let crosses = |other: &&Group| {
            !cpus.is_disjoint(other.cpus) && !cpus.is_subset(other.cpus) && !other.cpus.is_subset(&cpus)
        };
        let other = others.iter().find(crosses)?;
        let (one, other) = (&one.full, &other.full);
        Some(format!("{one} and {other} contradict each other: each has CPUs that the other lacks"))
    })
}

/// Cores that the firmware gave one number, on x86, whose numbers repeat in other packages, dies,
/// nodes and caches alone.
fn one_id_of_several(cpus: &Cpus, caches: &[Cache], nodes: &[Node]) -> Option<String> {
    cpus.numbers.filter(|_| matches!(cpus.architecture.as_deref(), Some("x86_64" | "i686")))?;
    let outer = caches.iter().map(|cache| cache.level).max().filter(|level| *level > 1);
    let mut seen = BTreeMap::new();
    let mut same = CpuSet::default();
    for core in cpus.cores.iter().flatten() {
        let cpu = core.cpus.first().unwrap_or(0);
        let node = nodes.iter().find(|node| node.cpus.contains(cpu)).map(|node| node.id);
        let cache = caches.iter().position(|one| Some(one.level) == outer && one.cpus.contains(cpu));
        let (Some(package), Some(id), Some(cache)) = (core.package, core.core_id, cache) else { continue };
        if let Some(other) = seen.insert((package, core.die, id, node, cache), &core.cpus) {
            same = same.union(&core.cpus).union(other);
        }
    }
    (!same.is_empty()).then(|| {
        format!(
            "CPUs {same}: core ids repeat in one package, but the sibling masks name different cores; Assay uses \
             the masks"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::numa::NODES;
    use super::super::text::CPUS;
    use super::super::text::tests::tree;
    use crate::Machine;

    const X86: &str = "cpu family : 6\nmodel : 79\nstepping : 1\nflags : fpu lm\n";

    /// Remarks on eight CPUs of two packages and two nodes, where other files say otherwise.
    fn remarks(changed: &[(&str, &str)]) -> Vec<String> {
        let mut files: Vec<(String, String)> = Vec::new();
        let mut cpuinfo = String::new();
        for cpu in 0..8u32 {
            let place = format!("{CPUS}/cpu{cpu}");
            let package = cpu / 4;
            for (file, text) in [
                ("topology/core_id", cpu.to_string()),
                ("topology/physical_package_id", package.to_string()),
                ("topology/core_siblings", ["f", "f0"][package as usize].to_string()),
                ("topology/thread_siblings", format!("{:x}", 1 << cpu)),
                ("cache/index3/level", "3".to_string()),
                ("cache/index3/type", "Unified".to_string()),
                ("cache/index3/shared_cpu_map", ["f", "f0"][package as usize].to_string()),
            ] {
                files.push((format!("{place}/{file}"), text));
            }
            cpuinfo.push_str(&format!("processor : {cpu}\n{X86}\n"));
        }
        for (node, map) in ["f", "f0"].iter().enumerate() {
            files.push((format!("{NODES}/node{node}/cpumap"), map.to_string()));
        }
        files.push(("/proc/cpuinfo".to_string(), cpuinfo));
        // `cpu0-3/x` stands for the files x of CPUs 0 to 3.
        for (path, text) in changed {
            let (folder, file) = path.split_once('/').expect("a folder");
            let (kind, list) = folder.split_at(folder.find(|c: char| c.is_ascii_digit()).expect("a number"));
            let root = if kind == "cpu" { CPUS } else { NODES };
            for number in model::CpuSet::parse_list(list).expect("a list").iter() {
                let path = format!("{root}/{kind}{number}/{file}");
                files.retain(|(known, _)| *known != path);
                files.push((path, text.to_string()));
            }
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Machine::from(&tree(&files)).remarks
    }

    fn is_said(changed: &[(&str, &str)], words: &str) {
        let remarks = remarks(changed);
        assert!(remarks.len() == 1 && remarks[0].contains(words), "{changed:?}: {words}: {remarks:?}");
    }

    const PAIRS: [(&str, &str); 4] = [
        ("cpu0-1/topology/thread_siblings", "3"),
        ("cpu2-3/topology/thread_siblings", "c"),
        ("cpu4-5/topology/thread_siblings", "30"),
        ("cpu6-7/topology/thread_siblings", "c0"),
    ];

    #[test]
    fn what_is_sound_is_not_remarked() {
        assert_eq!(remarks(&[]), [""; 0]);
        assert_eq!(remarks(&PAIRS), [""; 0]);
        // One node of all, two in each package, and memory alone.
        assert_eq!(remarks(&[("node0/cpumap", "ff"), ("node1/cpumap", "0")]), [""; 0]);
        let quarters =
            [("node0/cpumap", "3"), ("node1/cpumap", "c"), ("node2/cpumap", "30"), ("node3/cpumap", "c0")];
        assert_eq!(remarks(&quarters), [""; 0]);
        // Ids that repeat in other nodes and caches of the package, or in the other package.
        let ids = [("cpu0,2/topology/core_id", "0"), ("cpu1,3/topology/core_id", "1")];
        assert_eq!(remarks(&[&quarters[..], &ids].concat()), [""; 0]);
        let caches =
            [("cpu0-1/cache/index3/shared_cpu_map", "3"), ("cpu2-3/cache/index3/shared_cpu_map", "c")];
        assert_eq!(remarks(&[&caches[..], &ids].concat()), [""; 0]);
        assert_eq!(remarks(&[("cpu0,4/topology/core_id", "0")]), [""; 0]);
    }

    #[test]
    fn a_core_in_two_nodes() {
        let odd = [&PAIRS[..], &[("node0/cpumap", "55"), ("node1/cpumap", "aa")]].concat();
        is_said(&odd, "the core of CPUs 0-1 is in NUMA node 0 and NUMA node 1 at once, and so are 3 more");
        let one = [&PAIRS[..], &[("node0/cpumap", "17"), ("node1/cpumap", "e8")]].concat();
        is_said(&one, "the core of CPUs 2-3 is in NUMA node 0 and NUMA node 1 at once, and so is one more");
        let third = [&PAIRS[..], &[("node0/cpumap", "7"), ("node2/cpumap", "8")]].concat();
        is_said(&third, "the core of CPUs 2-3 is in NUMA node 0 and NUMA node 2 at once: a contradiction");
        let last = [&PAIRS[..], &[("node1/cpulist", "4-6"), ("node1/cpumap", "70"), ("node2/cpulist", "7")]]
            .concat();
        is_said(&last, "the core of CPUs 6-7 is in NUMA node 1 and NUMA node 2 at once: a contradiction");
    }

    #[test]
    fn nodes_that_cross_packages_or_caches() {
        for (maps, words) in [
            (["3f", "c0"], "NUMA node 0 (CPUs 0-5) and package 1 (CPUs 4-7) contradict each other"),
            (["3", "fc"], "NUMA node 1 (CPUs 2-7) and package 0 (CPUs 0-3) contradict each other"),
            (["55", "aa"], "NUMA node 0 (CPUs 0,2,4,6) and package 0 (CPUs 0-3) contradict each other"),
        ] {
            is_said(&[("node0/cpumap", maps[0]), ("node1/cpumap", maps[1])], words);
        }
        // Caches that nodes cut.
        let cut = [("node0/cpumap", "3"), ("node2/cpumap", "c"), ("cpu1-2/cache/index3/shared_cpu_map", "6")];
        let rest = [("cpu0/cache/index3/shared_cpu_map", "1"), ("cpu3/cache/index3/shared_cpu_map", "8")];
        is_said(&[&cut[..], &rest].concat(), "the L3 cache of CPUs 1-2 and NUMA node 0 (CPUs 0-1)");
    }

    #[test]
    fn caches_that_cross_cores() {
        let odd = [
            ("cpu1-2/cache/index3/shared_cpu_map", "6"),
            ("cpu0/cache/index3/shared_cpu_map", "1"),
            ("cpu3/cache/index3/shared_cpu_map", "8"),
        ];
        is_said(&[&PAIRS[..], &odd].concat(), "the L3 cache of CPUs 1-2 and the core of CPUs 0-1");
    }

    #[test]
    fn a_cache_of_several_packages() {
        let cache = "cpu0-7/cache/index3/shared_cpu_map";
        is_said(
            &[(cache, "ff")],
            "the L3 cache of CPUs 0-7 is in package 0 and package 1 at once: a contradiction",
        );
        is_said(
            &[
                ("cpu3-4/cache/index2/level", "2"),
                ("cpu3-4/cache/index2/type", "Unified"),
                ("cpu3-4/cache/index2/shared_cpu_map", "18"),
                ("node0/cpumap", "ff"),
                ("node1/cpumap", "0"),
            ],
            "the L2 cache of CPUs 3-4 is in package 0 and package 1 at once: a contradiction",
        );
    }

    #[test]
    fn ids_of_cores_that_repeat() {
        for (changed, cpus) in [
            (&[("cpu0-1/topology/core_id", "0"), ("cpu2-3/topology/core_id", "1")][..], "CPUs 0-3:"),
            (&[("cpu0,3/topology/core_id", "0")], "CPUs 0,3:"),
            (&[("cpu4-7/topology/core_id", "0")], "CPUs 4-7:"),
            (&[("cpu0-7/topology/core_id", "9")], "CPUs 0-7:"),
        ] {
            is_said(changed, "core ids repeat in one package");
            assert!(remarks(changed)[0].starts_with(cpus), "{:?}", remarks(changed));
        }
        // Unknown ids are no ids.
        let unknown = [("cpu0-1/topology/core_id", "-1")];
        assert_eq!(remarks(&unknown), [""; 0]);
    }

    #[test]
    fn cpus_of_no_node() {
        for (maps, cpus) in [
            (["7", "f0"], "CPUs 3:"),
            (["0", "0"], "CPUs 0-7:"),
            (["1", "10"], "CPUs 1-3,5-7:"),
            (["f", "0"], "CPUs 4-7:"),
        ] {
            let changed = [("node0/cpumap", maps[0]), ("node1/cpumap", maps[1])];
            is_said(&changed, &format!("no NUMA node has {cpus}"));
        }
    }

    #[test]
    fn newer_and_older_names_of_one_set() {
        let single = |cpu: u32| format!("{:x}", 1 << cpu);
        let texts: Vec<String> = (0..8).map(single).collect();
        let paths: Vec<String> = (0..8).map(|cpu| format!("cpu{cpu}/topology/core_cpus")).collect();
        let newer: Vec<(&str, &str)> =
            paths.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        assert_eq!(remarks(&newer), [""; 0]);
        let both = [&PAIRS[..], &newer].concat();
        is_said(&both, "CPUs 0-7: core_cpus and thread_siblings, its older name, contradict");
        is_said(
            &[
                ("cpu0-3/topology/package_cpus", "f"),
                ("cpu4-7/topology/package_cpus", "f0"),
                ("cpu4-7/topology/core_siblings", "30"),
            ],
            "CPUs 4-7: package_cpus and core_siblings",
        );
        is_said(
            &[("cpu5/topology/core_cpus_list", "5"), ("cpu5/topology/thread_siblings", "60")],
            "CPUs 5: core_cpus and",
        );
    }

    #[test]
    fn masks_that_overlap() {
        is_said(
            &[("cpu0-3/topology/die_cpus", "f"), ("cpu4-7/topology/die_cpus", "f8")],
            "CPUs contradict each other in die_cpus: CPUs 0-3 report 0-3, CPUs 4-7 report 3-7",
        );
    }
}
