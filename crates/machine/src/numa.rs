//! NUMA nodes: CPUs, memory, distances.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use model::vocabulary::host as ids;
use model::{CpuSet, Entry, Snapshot};

use super::memory::{HugePages, Memory, huge_pages};
use super::text::{CPUS, SetText, kilobytes, size_bytes};
use super::{claims, kernel};

pub(super) const NODES: &str = "/sys/devices/system/node";

/// One NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Node {
    /// Its number; nodes need not be numbered without gaps.
    pub id: u32,
    /// Online CPUs; empty for a memory-only node.
    pub cpus: CpuSet,
    /// CPUs of the node that are switched off.
    pub offline: CpuSet,
    /// Memory of the node; `None` where the kernel does not report it, 0 for a node without memory.
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// Free memory and half of what file pages hold: what can be taken without swapping.
    #[serde(skip)]
    pub available_bytes: Option<u64>,
    /// Distance to each node, in the order of `Machine::nodes`; empty where the kernel does not
    /// report. 10 is local.
    pub distances: Vec<u32>,
    /// Memory-side caches (Optane in memory mode, HBM as cache): bytes by level.
    pub memory_side_caches: Vec<u64>,
    /// What firmware (HMAT) reports about the best path to this memory.
    pub performance: Option<Performance>,
    pub huge_pages: Vec<HugePages>,
}

/// Firmware's figures for the best initiators of a node's memory; no measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Performance {
    /// Nodes whose CPUs reach this memory best.
    pub initiators: CpuSet,
    pub read_latency_ns: Option<u64>,
    pub write_latency_ns: Option<u64>,
    pub read_bandwidth_mb_s: Option<u64>,
    pub write_bandwidth_mb_s: Option<u64>,
}

impl Node {
    /// Memory without any CPU, online or not: HBM, CXL or GPU memory, no fault.
    pub fn memory_only(&self) -> bool {
        self.cpus.is_empty() && self.offline.is_empty() && self.total_bytes != Some(0)
    }
}

/// Nodes by number; empty where the kernel reports nothing of nodes.
pub(super) fn parse(snapshot: &Snapshot, online: &CpuSet, remarks: &mut Vec<String>) -> Vec<Node> {
    let mut ids: CpuSet = snapshot.numbered(NODES, "node").into_iter().collect();
    ids =
        ids.union(&snapshot.text(ids::probe::FOLDERS_NODE).and_then(CpuSet::parse_list).unwrap_or_default());
    let links = links(snapshot);
    let cpus = |id, remarks: &mut Vec<String>| cpus_of(snapshot, id, &links, remarks);
    let mut nodes: Vec<Node> = ids.iter().map(|id| node(snapshot, id, &cpus(id, remarks), online)).collect();
    let count = nodes.len();
    for node in &mut nodes {
        if !node.distances.is_empty() && node.distances.len() != count {
            remarks.push(format!(
                "node {} reports {} distances for {count} nodes: left out",
                node.id,
                node.distances.len()
            ));
            node.distances.clear();
        }
    }
    let is_pretended = kernel::parse(snapshot).command_line.is_some_and(|line| line.contains("numa=fake"));
    claims::settle(nodes, &links, is_pretended, remarks)
}

/// Says so where the nodes' memory is not the machine's: firmware or a lazy kernel hides part of
/// it.
pub(super) fn compare(memory: &Memory, nodes: &[Node], remarks: &mut Vec<String>) {
    let of_nodes: Option<Vec<u64>> = nodes.iter().map(|node| node.total_bytes).collect();
    let (Some(total), Some(of_nodes)) = (memory.total_bytes, of_nodes) else { return };
    let sum = of_nodes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    const GIB: f64 = (1 << 30) as f64;
    // The kernel's own share makes a few percent.
    if !of_nodes.is_empty() && sum.abs_diff(total) > total / 8 {
        remarks.push(format!(
            "the NUMA nodes have {:.1} GiB of memory, the host has {:.1} GiB",
            sum as f64 / GIB,
            total as f64 / GIB
        ));
    }
}

fn node(snapshot: &Snapshot, id: u32, all: &CpuSet, online: &CpuSet) -> Node {
    let folder = format!("{NODES}/node{id}");
    let path = |file: &str| format!("{folder}/{file}");
    let meminfo = snapshot.text(&path("meminfo")).map(without_node_prefix);
    let meminfo = meminfo.as_deref();
    let distance = snapshot.text(&path("distance")).unwrap_or("");
    let distances: Option<Vec<u32>> = distance.split_whitespace().map(|word| word.parse().ok()).collect();
    let side = path("memory_side_cache");
    let levels = snapshot.numbered(&side, "index");
    Node {
        id,
        cpus: all.intersection(online),
        offline: all.difference(online),
        total_bytes: meminfo.and_then(|text| kilobytes(text, "MemTotal")),
        free_bytes: meminfo.and_then(|text| kilobytes(text, "MemFree")),
        available_bytes: meminfo.and_then(|text| {
            let files = ["Active(file)", "Inactive(file)"].iter().filter_map(|key| kilobytes(text, key));
            Some(kilobytes(text, "MemFree")? + files.fold(0u64, u64::saturating_add) / 2)
        }),
        distances: distances.unwrap_or_default(),
        memory_side_caches: levels
            .iter()
            .filter_map(|level| size_bytes(snapshot.text(&format!("{side}/index{level}/size"))?))
            .collect(),
        performance: performance(snapshot, &folder),
        huge_pages: huge_pages(snapshot, &path("hugepages")),
    }
}

/// The CPUs of a node: its map, else its list, else the links between nodes and CPUs.
fn cpus_of(snapshot: &Snapshot, id: u32, links: &BTreeMap<u32, CpuSet>, remarks: &mut Vec<String>) -> CpuSet {
    let (mask, list) = (format!("{NODES}/node{id}/cpumap"), format!("{NODES}/node{id}/cpulist"));
    let by_mask = snapshot.text(&mask).and_then(CpuSet::parse_mask);
    let by_list = snapshot.text(&list).and_then(CpuSet::parse_list);
    if let (Some(mask), Some(list)) = (&by_mask, &by_list)
        && mask != list
    {
        remarks.push(format!("node {id}: the CPU map reports {mask}, the CPU list {list}; the map is used"));
    }
    if let Some(set) = SetText::find(snapshot, &mask, &list).and_then(SetText::parse) {
        return set;
    }
    let linked: CpuSet = snapshot.numbered(&format!("{NODES}/node{id}"), "cpu").into_iter().collect();
    links.get(&id).map_or(linked.clone(), |cpus| cpus.union(&linked))
}

/// CPUs of each node by the links in the CPUs' folders.
fn links(snapshot: &Snapshot) -> BTreeMap<u32, CpuSet> {
    let mut links: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in snapshot.numbered(CPUS, "cpu") {
        for id in snapshot.numbered(&format!("{CPUS}/cpu{cpu}"), "node") {
            links.entry(id).or_default().insert(cpu);
        }
    }
    links
}

/// `Node 0 MemTotal: 1 kB` as `MemTotal: 1 kB`.
fn without_node_prefix(text: &str) -> String {
    let line = |line: &str| {
        let rest = line.trim_start().strip_prefix("Node ")?;
        rest.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(' ').map(str::to_string)
    };
    text.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// HMAT's first access class (all initiators); zeros mean that firmware left the figure out.
fn performance(snapshot: &Snapshot, folder: &str) -> Option<Performance> {
    let initiators = format!("{folder}/access0/initiators");
    let number =
        |file: &str| snapshot.number(&format!("{initiators}/{file}")).filter(|value: &u64| *value > 0);
    let nodes = snapshot.below(&initiators).filter_map(|(path, entry)| {
        let name = path.strip_prefix(&initiators)?.strip_prefix("/node")?;
        matches!(entry, Entry::Link(_) | Entry::Text(_)).then(|| name.parse().ok()).flatten()
    });
    let performance = Performance {
        initiators: nodes.collect(),
        read_latency_ns: number("read_latency"),
        write_latency_ns: number("write_latency"),
        read_bandwidth_mb_s: number("read_bandwidth"),
        write_bandwidth_mb_s: number("write_bandwidth"),
    };
    (performance != Performance::default()).then_some(performance)
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn sparse_numbers_memory_only_and_contradicting_lists() {
        let snapshot = tree(&[
            ("/sys/devices/system/node/node0/cpumap", "3"),
            ("/sys/devices/system/node/node0/cpulist", "0-87"),
            ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1024 kB\nNode 0 MemFree: 512 kB\n"),
            ("/sys/devices/system/node/node0/distance", "10 80"),
            ("/sys/devices/system/node/node250/cpumap", "0"),
            ("/sys/devices/system/node/node250/meminfo", "Node 250 MemTotal: 2048 kB"),
            ("/sys/devices/system/node/node250/distance", "80 10 99"),
            ("/sys/devices/system/node/online", "0,250"),
        ]);
        let mut remarks = Vec::new();
        let nodes = parse(&snapshot, &(0..2).collect(), &mut remarks);
        assert_eq!(nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [0, 250]);
        assert_eq!(nodes[0].cpus.to_string(), "0-1");
        assert_eq!((nodes[0].total_bytes, nodes[0].free_bytes), (Some(1 << 20), Some(1 << 19)));
        assert_eq!(nodes[0].distances, [10, 80]);
        assert!(nodes[1].memory_only() && !nodes[0].memory_only());
        assert_eq!(nodes[1].distances, Vec::<u32>::new());
        assert_eq!(remarks.len(), 2, "{remarks:?}");
    }

    #[test]
    fn nodes_that_share_cpus() {
        let (zero, one) = (format!("{NODES}/node0/cpulist"), format!("{NODES}/node1/cpulist"));
        let parsed = |second: &str, line: &str| {
            let mut remarks = Vec::new();
            let files = [(zero.as_str(), "0-3"), (&one, second), ("/proc/cmdline", line)];
            (parse(&tree(&files), &(0..8).collect(), &mut remarks).len(), remarks.concat())
        };
        assert_eq!(parsed("4-7", ""), (2, String::new()));
        for (second, line, count, words) in [
            ("2-7", "", 2, "CPUs 2-3 are in more than one"),
            ("0-3", "", 1, "firmware"),
            ("0-3", "quiet numa=fake=2", 1, "numa=fake"),
        ] {
            let (nodes, remarks) = parsed(second, line);
            assert!(nodes == count && remarks.contains(words), "{second}: {nodes} {remarks}");
        }
    }

    #[test]
    fn firmware_figures_without_zeros() {
        let access = "/sys/devices/system/node/node2/access0/initiators";
        let (latency, bandwidth) = (format!("{access}/read_latency"), format!("{access}/read_bandwidth"));
        let mut snapshot = tree(&[(&latency, "250"), (&bandwidth, "0")]);
        snapshot.entries.insert(format!("{access}/node0"), Entry::Link("../../../node0".into()));
        let nodes = parse(&snapshot, &CpuSet::default(), &mut Vec::new());
        let performance = nodes[0].performance.clone().unwrap_or_default();
        assert_eq!(performance.read_latency_ns, Some(250));
        assert_eq!(performance.read_bandwidth_mb_s, None);
        assert_eq!(performance.initiators.to_string(), "0");
    }
}
