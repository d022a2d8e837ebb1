//! What control groups and affinity leave to this process.

use schemars::JsonSchema;
use serde::Serialize;

use model::{CpuSet, Snapshot};

use super::cgroup::{Place, places};
use super::cpu::affinity;
use super::numa::Node;
use super::topology::Cpus;

/// What cgroups and affinity leave to this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Limits {
    /// 1, 2, or both on a hybrid hierarchy.
    pub versions: Vec<u32>,
    /// CPUs' worth of time per unit of time: the tightest quota on the path to the root.
    pub cpu_quota: Option<f64>,
    /// Where the tightest quota stands, as a path.
    pub cpu_quota_at: Option<String>,
    /// Length of the period that the tightest quota is counted over, µs.
    pub cpu_period_us: Option<u64>,
    /// The tightest memory limit on the path to the root.
    pub memory_bytes: Option<u64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_at: Option<String>,
    /// The lowest `memory.high` on the path to the root: tasks above it are held back.
    pub memory_high_bytes: Option<u64>,
    pub memory_high_at: Option<String>,
    /// The tightest `pids.max` on the path to the root, how many tasks count, and where it stands.
    pub tasks: Option<u64>,
    pub tasks_used: Option<u64>,
    pub tasks_at: Option<String>,
    /// Whether groups above those that are seen may have limits of their own: this process is in a
    /// control-group namespace, or sees a part of the hierarchy. `None` if unknown.
    pub groups_above: Option<bool>,
    /// Limit of swap alone.
    pub swap_bytes: Option<u64>,
    /// CPUs and memory nodes of the cpuset; `None` where no cpuset is reported.
    pub cpuset: Option<CpuSet>,
    pub mems: Option<CpuSet>,
    pub cpuset_at: Option<String>,
    /// CPUs that the affinity mask allows.
    pub affinity: Option<CpuSet>,
}

/// Amounts from here on mean "no limit": version 1 writes the largest page-aligned number, whatever
/// the page size.
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn parse(snapshot: &Snapshot) -> Limits {
    let places = places(snapshot);
    let mut limits = Limits { affinity: affinity(snapshot), ..Limits::default() };
    limits.versions = places.iter().map(|place| place.version).collect();
    limits.versions.sort_unstable();
    limits.versions.dedup();
    for place in &places {
        cpu_time(&mut limits, snapshot, place);
        memory(&mut limits, snapshot, place);
        tasks(&mut limits, snapshot, place);
        if limits.cpuset.is_none() {
            cpuset(&mut limits, snapshot, place);
        }
    }
    limits.groups_above = groups_above(snapshot, &places);
    limits
}

/// The kernel gives the first namespace of control groups this number on every machine
/// (`PROC_CGROUP_INIT_INO` in linux/proc_ns.h).
const FIRST_CGROUP_NAMESPACE: &str = "cgroup:[4026531835]";

fn groups_above(snapshot: &Snapshot, places: &[Place]) -> Option<bool> {
    let part = places.iter().any(|place| place.is_part);
    let namespace = snapshot.text("/proc/self/ns/cgroup").map(|link| link != FIRST_CGROUP_NAMESPACE);
    if part { Some(true) } else { namespace }
}

/// Applies affinity and cpuset to the CPUs, and says what does not fit together.
pub(super) fn apply(limits: &Limits, cpus: &mut Cpus, nodes: &[Node], remarks: &mut Vec<String>) {
    for (what, set) in [("cpuset", &limits.cpuset), ("affinity mask", &limits.affinity)] {
        let Some(set) = set else { continue };
        let left = cpus.allowed.intersection(set);
        if left.is_empty() && !cpus.allowed.is_empty() {
            remarks.push(format!("the {what} ({set}) allows no online CPU: ignored"))
        } else {
            cpus.allowed = left
        }
    }
    let Some(mems) = &limits.mems else { return };
    let near: CpuSet =
        nodes.iter().filter(|node| !node.cpus.is_disjoint(&cpus.allowed)).map(|node| node.id).collect();
    if !near.is_empty() && !mems.is_empty() && near.is_disjoint(mems) {
        remarks.push(format!(
            "CPUs are allowed only on node {near}, memory only on nodes {mems}: all memory is remote"
        ));
    }
}

fn cpu_time(limits: &mut Limits, snapshot: &Snapshot, place: &Place) {
    if !place.controls("cpu") {
        return;
    }
    for folder in &place.folders {
        let text = |file: &str| snapshot.text(&format!("{folder}/{file}"));
        let told = match place.version {
            2 => text("cpu.max").and_then(|text| text.split_once(' ')),
            _ => text("cpu.cfs_quota_us").zip(text("cpu.cfs_period_us")),
        };
        // "max" and -1 are no numbers above zero.
        let Some((quota, period)) = told.and_then(|(quota, period)| {
            Some((quota.trim().parse::<u64>().ok()?, period.trim().parse::<u64>().ok()?))
        }) else {
            continue;
        };
        if quota == 0 || period == 0 {
            continue;
        }
        let cpus = quota as f64 / period as f64;
        if limits.cpu_quota.is_none_or(|known| cpus < known) {
            limits.cpu_quota = Some(cpus);
            limits.cpu_period_us = Some(period);
            limits.cpu_quota_at = Some(folder.clone());
        }
    }
}

fn memory(limits: &mut Limits, snapshot: &Snapshot, place: &Place) {
    if !place.controls("memory") {
        return;
    }
    for (depth, folder) in place.folders.iter().enumerate() {
        let amount = |file: &str| snapshot.number::<u64>(&format!("{folder}/{file}"));
        let (limit, used, high, swap) = match place.version {
            2 => ("memory.max", "memory.current", amount("memory.high"), amount("memory.swap.max")),
            _ => ("memory.limit_in_bytes", "memory.usage_in_bytes", None, None),
        };
        let mut limit = amount(limit);
        if depth == 0 && place.version == 1 {
            // Groups above the mount point of a container are invisible but not without force.
            limit = limit.into_iter().chain(hierarchical(snapshot, folder)).min();
        }
        if let Some(limit) = limit.filter(|limit| *limit < NO_LIMIT)
            && limits.memory_bytes.is_none_or(|known| limit < known)
        {
            limits.memory_bytes = Some(limit);
            limits.memory_at = Some(folder.clone());
            limits.memory_used_bytes = amount(used);
        }
        if let Some(high) = high.filter(|high| *high < NO_LIMIT)
            && limits.memory_high_bytes.is_none_or(|known| high < known)
        {
            limits.memory_high_bytes = Some(high);
            limits.memory_high_at = Some(folder.clone());
        }
        let swap = swap.filter(|limit| *limit < NO_LIMIT);
        limits.swap_bytes = limits.swap_bytes.into_iter().chain(swap).min();
    }
}

fn tasks(limits: &mut Limits, snapshot: &Snapshot, place: &Place) {
    for folder in place.folders.iter().filter(|_| place.controls("pids")) {
        let count = |file: &str| snapshot.number::<u64>(&format!("{folder}/{file}"));
        let Some(limit) = count("pids.max") else { continue };
        if limits.tasks.is_none_or(|known| limit < known) {
            limits.tasks = Some(limit);
            limits.tasks_used = count("pids.current");
            limits.tasks_at = Some(folder.clone());
        }
    }
}

fn hierarchical(snapshot: &Snapshot, folder: &str) -> Option<u64> {
    let text = snapshot.text(&format!("{folder}/memory.stat"))?;
    text.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit ")?.trim().parse().ok())
}

/// The nearest group that has a cpuset: children without the controller are bound by their
/// parent's.
fn cpuset(limits: &mut Limits, snapshot: &Snapshot, place: &Place) {
    if !place.controls("cpuset") {
        return;
    }
    let set = |folder: &str, what: &str| {
        // Version 1 keeps the configured set equal to the effective one, unless it is mounted to
        // behave as version 2.
        let names = match (place.version, place.noprefix, place.effective) {
            (2, ..) => [format!("cpuset.{what}.effective"), format!("cpuset.{what}")],
            (_, true, _) => [what.to_string(), format!("effective_{what}")],
            (_, _, true) => [format!("cpuset.effective_{what}"), format!("cpuset.{what}")],
            (_, _, false) => [format!("cpuset.{what}"), format!("cpuset.effective_{what}")],
        };
        let list = |name: &String| snapshot.text(&format!("{folder}/{name}")).and_then(CpuSet::parse_list);
        names.iter().filter_map(list).find(|set| !set.is_empty())
    };
    for folder in &place.folders {
        if let Some(cpus) = set(folder, "cpus") {
            limits.cpuset = Some(cpus);
            limits.cpuset_at = Some(folder.clone());
            limits.mems = place.folders.iter().find_map(|folder| set(folder, "mems"));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    const V2: &[(&str, &str)] = &[
        ("/proc/self/cgroup", "0::/a/b\n"),
        ("/proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n"),
    ];

    fn v2(files: &[(&str, &str)]) -> Limits {
        parse(&tree(&[V2, files].concat()))
    }

    #[test]
    fn the_tightest_on_the_path_counts() {
        let limits = v2(&[
            ("/cg/a/b/cpu.max", "max 100000"),
            ("/cg/a/cpu.max", "150000 100000"),
            ("/cg/a/b/memory.max", "2147483648"),
            ("/cg/a/b/memory.current", "4096"),
            ("/cg/a/memory.max", "max"),
            ("/cg/a/cpuset.cpus.effective", "2-3"),
            ("/cg/cpuset.mems.effective", "0"),
            ("/cg/a/b/memory.high", "max"),
            ("/cg/a/memory.high", "1073741824"),
            ("/cg/a/b/pids.max", "512"),
            ("/cg/a/b/pids.current", "7"),
            ("/cg/a/pids.max", "max"),
            ("/cg/pids.max", "4096"),
        ]);
        assert_eq!(limits.versions, [2]);
        assert_eq!((limits.cpu_quota, limits.cpu_quota_at.as_deref()), (Some(1.5), Some("/cg/a")));
        assert_eq!((limits.memory_bytes, limits.memory_used_bytes), (Some(2 << 30), Some(4096)));
        assert_eq!(limits.cpuset.map(|set| set.to_string()).as_deref(), Some("2-3"));
        assert_eq!(limits.mems.map(|set| set.to_string()).as_deref(), Some("0"));
        assert_eq!(
            (limits.memory_high_bytes, limits.memory_high_at.as_deref()),
            (Some(1 << 30), Some("/cg/a"))
        );
        assert_eq!(
            (limits.tasks, limits.tasks_used, limits.tasks_at.as_deref()),
            (Some(512), Some(7), Some("/cg/a/b"))
        );
    }

    #[test]
    fn groups_that_cannot_be_seen() {
        let above = |files: &[(&str, &str)]| parse(&tree(files)).groups_above;
        assert_eq!(above(V2), None);
        let first = ("/proc/self/ns/cgroup", FIRST_CGROUP_NAMESPACE);
        assert_eq!(above(&[V2, &[first]].concat()), Some(false));
        assert_eq!(above(&[("/proc/self/ns/cgroup", "cgroup:[4026532210]")]), Some(true));
        let part = ("/proc/self/mountinfo", "31 23 0:28 /kubepods/x /cg rw - cgroup2 cgroup2 rw\n");
        assert_eq!(above(&[part, first]), Some(true));
        // The process was moved out of its namespace's own groups; kernels before 4.6 report no
        // namespace.
        let moved = |groups| [("/proc/self/cgroup", groups), V2[1]];
        assert_eq!(above(&moved("0::/../other\n")), Some(true));
        assert_eq!(above(&[&moved("0::/..\n"), &[first][..]].concat()), Some(true));
        assert_eq!(above(&moved("0::/a..b\n")), None);
        let version_1 = ("/proc/self/mountinfo", "2 1 0:2 / /cg/cpu rw - cgroup cgroup rw,cpu\n");
        assert_eq!(above(&[version_1, ("/proc/self/cgroup", "1:cpu:/../..\n"), first]), Some(true));
        assert_eq!(above(&[version_1, ("/proc/self/cgroup", "1:cpu:/rp/leaf\n"), first]), Some(false));
    }

    #[test]
    fn version_1_and_its_sentinels() {
        let snapshot = tree(&[
            ("/proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "1 1 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n2 1 0:2 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 3 1 0:3 / /cg/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("/cg/memory/m/memory.limit_in_bytes", "9223372036854771712"),
            ("/cg/memory/m/memory.stat", "cache 1\nhierarchical_memory_limit 1073741824\n"),
            ("/cg/cpu/cpu.cfs_quota_us", "-1"),
            ("/cg/cpu/cpu.cfs_period_us", "100000"),
        ]);
        let limits = parse(&snapshot);
        assert_eq!(limits.versions, [1, 2]);
        assert_eq!(limits.cpu_quota, None);
        assert_eq!((limits.memory_bytes, limits.memory_at.as_deref()), (Some(1 << 30), Some("/cg/memory/m")));
    }

    #[test]
    fn hostile_numbers_are_no_limits() {
        let limits = v2(&[
            ("/cg/cpu.max", "0 0"),
            ("/cg/a/cpu.max", "x y"),
            ("/cg/a/b/cpu.max", "5"),
            ("/cg/memory.max", "18446744073709551615"),
            ("/cg/cpuset.cpus.effective", "9-1"),
        ]);
        assert_eq!((limits.cpu_quota, limits.memory_bytes, limits.cpuset), (None, None, None));
    }

    #[test]
    fn cpus_and_memory_that_are_apart() {
        let mut cpus = Cpus { allowed: (0..8).collect(), ..Cpus::default() };
        let node = |id: u32, cpus: std::ops::Range<u32>| Node { id, cpus: cpus.collect(), ..Node::default() };
        let limits = Limits {
            cpuset: CpuSet::parse_list("0-3"),
            mems: CpuSet::parse_list("1"),
            affinity: CpuSet::parse_list("99"),
            ..Limits::default()
        };
        let mut remarks = Vec::new();
        apply(&limits, &mut cpus, &[node(0, 0..4), node(1, 4..8)], &mut remarks);
        assert_eq!(cpus.allowed.to_string(), "0-3");
        assert_eq!(remarks.len(), 2, "{remarks:?}");
        assert!(remarks[1].contains("remote"));
    }
}
