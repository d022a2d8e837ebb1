//! CPUs that more than one NUMA node claims: each is taken to belong to one node, and nodes of the
//! same CPUs to be one memory.

use std::collections::BTreeMap;

use model::CpuSet;

use super::numa::Node;

/// Nodes of which no two have a CPU in common, and what was contradicted. `links`: CPUs of each
/// node by the CPUs' own folders. `is_pretended`: the kernel was configured to make several nodes
/// of one (`numa=fake`).
pub(super) fn settle(
    mut nodes: Vec<Node>,
    links: &BTreeMap<u32, CpuSet>,
    is_pretended: bool,
    remarks: &mut Vec<String>,
) -> Vec<Node> {
    let told: Vec<CpuSet> = nodes.iter().map(|node| node.cpus.union(&node.offline)).collect();
    let shared = shared(&told);
    if shared.is_empty() {
        return nodes;
    }
    // The node that stands for each: itself, or the first one of the same CPUs.
    let mut stands: Vec<usize> =
        told.iter().enumerate().map(|(at, cpus)| first(&told, cpus).unwrap_or(at)).collect();
    let mut own = told.clone();
    let mut contested = CpuSet::default();
    for cpu in shared.iter() {
        let mut claimers: Vec<usize> = (0..told.len()).filter(|at| told[*at].contains(cpu)).collect();
        claimers.retain(|at| stands[*at] == *at);
        if claimers.len() > 1 {
            contested.insert(cpu);
        }
        let linked = |at: &usize| links.get(&nodes[*at].id).is_some_and(|cpus| cpus.contains(cpu));
        let by_link: Vec<usize> = claimers.iter().copied().filter(linked).collect();
        let owner = if let [one] = by_link.as_slice() { *one } else { claimers[0] };
        for other in claimers.into_iter().filter(|other| *other != owner) {
            own[other] = own[other].difference(&CpuSet::one(cpu));
        }
    }
    // A node whose CPUs all belong to other nodes is memory of the one that has the first of them.
    for at in 0..told.len() {
        if let (true, Some(cpu)) = (own[at].is_empty(), told[at].first()) {
            stands[at] = (0..told.len()).find(|other| own[*other].contains(cpu)).unwrap_or(at);
        }
    }
    let parts: Vec<usize> = (0..nodes.len()).filter(|at| end(&stands, *at) == *at).collect();
    for owner in &parts {
        let same: Vec<usize> = (0..nodes.len()).filter(|at| end(&stands, *at) == *owner).collect();
        if let [_, _, ..] = same.as_slice() {
            let ids: Vec<String> = same.iter().map(|at| nodes[*at].id.to_string()).collect();
            let why = if is_pretended {
                "the kernel command line fakes nodes (numa=fake)"
            } else {
                "the firmware lists one memory as several, or CPUs twice"
            };
            let what = if same.iter().all(|at| told[*at] == told[*owner]) {
                format!("nodes {} list the same CPUs ({})", ids.join(", "), told[*owner])
            } else {
                let claim = |at: &usize| format!("node {} lists CPUs {}", nodes[*at].id, told[*at]);
                let claims: Vec<String> = same.iter().map(claim).collect();
                format!("nodes contradict each other: {}", claims.join(", "))
            };
            let node = nodes[*owner].id;
            remarks.push(format!("{what}: counted as one memory, node {node}; {why}"));
        }
        let all = same.iter().map(|at| nodes[*at].total_bytes);
        nodes[*owner].total_bytes = all.reduce(|sum, bytes| Some(sum?.saturating_add(bytes?))).flatten();
    }
    let kept: CpuSet = contested.iter().filter(|cpu| is_between(&parts, &told, *cpu)).collect();
    if !kept.is_empty() {
        remarks.push(format!(
            "nodes contradict each other: CPUs {kept} are in more than one; the CPU's own folder decides, else \
             the first node"
        ));
    }
    for (at, node) in nodes.iter_mut().enumerate() {
        node.cpus = node.cpus.intersection(&own[at]);
        node.offline = node.offline.intersection(&own[at]);
        // Distances stand in the order of nodes; other rows than those of kept nodes go below.
        let row = std::mem::take(&mut node.distances);
        let column = |(at, distance): (usize, u32)| parts.contains(&at).then_some(distance);
        node.distances = row.into_iter().enumerate().filter_map(column).collect();
    }
    let node = |(at, node): (usize, Node)| parts.contains(&at).then_some(node);
    nodes.into_iter().enumerate().filter_map(node).collect()
}

/// CPUs in more than one of these sets.
fn shared(sets: &[CpuSet]) -> CpuSet {
    let (mut seen, mut twice) = (CpuSet::default(), CpuSet::default());
    for cpu in sets.iter().flat_map(CpuSet::iter) {
        let set = if seen.contains(cpu) { &mut twice } else { &mut seen };
        set.insert(cpu);
    }
    twice
}

/// The first of the sets that is not empty and equals this one.
fn first(sets: &[CpuSet], cpus: &CpuSet) -> Option<usize> {
    sets.iter().position(|other| other == cpus && !cpus.is_empty())
}

/// The node that stands for a node at the end of all that stand for others.
fn end(stands: &[usize], at: usize) -> usize {
    let mut at = at;
    for _ in 0..stands.len() {
        if stands[at] == at {
            break;
        }
        at = stands[at];
    }
    at
}

fn is_between(parts: &[usize], told: &[CpuSet], cpu: u32) -> bool {
    parts.iter().filter(|at| told[**at].contains(cpu)).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse_list(text).expect("a list of CPUs")
    }

    fn settled(lists: &[&str], links: &[(u32, &str)], is_pretended: bool) -> (Vec<Node>, Vec<String>) {
        let count = lists.len() as u32;
        let node = |(id, list): (u32, &&str)| Node {
            id,
            cpus: set(list),
            total_bytes: Some(1 << 30),
            free_bytes: Some(1 << 20),
            distances: (0..count).map(|other| if other == id { 10 } else { 20 + other }).collect(),
            ..Node::default()
        };
        let nodes = (0..).zip(lists).map(node).collect();
        let links = links.iter().map(|(id, list)| (*id, set(list))).collect();
        let mut remarks = Vec::new();
        (settle(nodes, &links, is_pretended, &mut remarks), remarks)
    }

    fn lists(nodes: &[Node]) -> Vec<(u32, String)> {
        nodes.iter().map(|node| (node.id, node.cpus.to_string())).collect()
    }

    fn own(lists: &[(u32, &str)]) -> Vec<(u32, String)> {
        lists.iter().map(|(id, list)| (*id, list.to_string())).collect()
    }

    #[test]
    fn nodes_of_the_same_cpus_are_one_memory() {
        let (nodes, remarks) = settled(&["0-7", "0-7"], &[], false);
        assert_eq!(lists(&nodes), own(&[(0, "0-7")]));
        assert_eq!((nodes[0].total_bytes, nodes[0].free_bytes), (Some(2 << 30), Some(1 << 20)));
        assert_eq!(nodes[0].distances, [10]);
        assert_eq!(remarks.len(), 1);
        assert!(
            remarks[0].contains("nodes 0, 1 list the same CPUs (0-7)") && remarks[0].contains("firmware")
        );
        // Four of the kernel's own making, of which each CPU's folder names one.
        let (nodes, remarks) = settled(&["0-3", "0-3", "0-3", "0-3"], &[(0, "0,2"), (1, "1,3")], true);
        assert_eq!((lists(&nodes), nodes[0].total_bytes), (own(&[(0, "0-3")]), Some(4 << 30)));
        assert!(remarks[0].contains("numa=fake"), "{remarks:?}");
        // Two pairs, and memory alone.
        let (nodes, remarks) = settled(&["0-3", "4-7", "0-3", "", "4-7"], &[], false);
        assert_eq!(lists(&nodes), own(&[(0, "0-3"), (1, "4-7"), (3, "")]));
        assert_eq!(nodes[1].distances, [20, 10, 23]);
        assert_eq!(remarks.len(), 2, "{remarks:?}");
        // Some of another's CPUs and none of its own.
        let (nodes, remarks) = settled(&["0-7", "4-7"], &[], false);
        assert_eq!(lists(&nodes), own(&[(0, "0-7")]));
        assert!(remarks[0].starts_with(
            "nodes contradict each other: node 0 lists CPUs 0-7, node 1 lists CPUs 4-7: counted as one"
        ));
    }

    #[test]
    fn only_nodes_of_equal_claims_are_said_to_claim_the_same() {
        for (told, words) in [
            (&["4-7", "0-7", "0-7"][..], "nodes 1, 2 list the same CPUs (0-7)"),
            (&["0-7", "0-7", "6"], "node 1 lists CPUs 0-7, node 2 lists CPUs 6"),
            (&["0-3", "4-7", "5-6"], "node 1 lists CPUs 4-7, node 2 lists CPUs 5-6"),
            (&["0-7", "0-3", "4-7"], "node 1 lists CPUs 0-3, node 2 lists CPUs 4-7"),
        ] {
            let (_, remarks) = settled(told, &[], false);
            assert!(remarks.concat().contains(words), "{told:?}: {remarks:?}");
            let is_same = remarks.iter().any(|remark| remark.contains("claim the same"));
            assert_eq!(is_same, words.contains("claim the same"), "{told:?}: {remarks:?}");
        }
    }

    #[test]
    fn each_cpu_belongs_to_one_node() {
        let (nodes, remarks) = settled(&["0-3", "2-7"], &[], false);
        assert_eq!(lists(&nodes), own(&[(0, "0-3"), (1, "4-7")]));
        assert!(remarks[0].starts_with("nodes contradict each other: CPUs 2-3 are in more than one"));
        let (nodes, _) = settled(&["0-3", "2-7"], &[(0, "0-1"), (1, "2-7")], false);
        assert_eq!(lists(&nodes), own(&[(0, "0-1"), (1, "2-7")]));
        let (nodes, _) = settled(&["0-7", "4-7"], &[(0, "0-3"), (1, "4-7")], false);
        assert_eq!(lists(&nodes), own(&[(0, "0-3"), (1, "4-7")]));
        assert_eq!(nodes[0].total_bytes, Some(1 << 30));
        let (nodes, remarks) = settled(&["0-3", "4-7", ""], &[], false);
        assert_eq!((lists(&nodes).len(), remarks.len()), (3, 0));
    }
}
