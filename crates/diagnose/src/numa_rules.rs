//! NUMA nodes and distances as the kernel reports them: sockets that share a node, missing
//! distances.

use super::words::clipped;
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{CpuSet, Finding};

pub const RULES: &[Rule] = &[ONE_NODE, NO_DISTANCE];

const NODES: &str = "/sys/devices/system/node/node*";

const ONE_NODE: Rule = Rule {
    id: ids::rule::PACKAGES_IN_ONE_NODE,
    title: "Several sockets in one NUMA node",
    topic: "NUMA",
    meaning: "Each socket has its own memory controllers. If one NUMA node has several sockets, the kernel cannot place memory near \
             its tasks. Figures of memory and of two tasks then change from run to run by chance.",
    action: "Look for node interleaving in the firmware's setup and for numa=off in /proc/cmdline. In a guest have the host pass \
             nodes with the sockets. See it: lscpu; numactl --hardware",
    when: "A NUMA node has online CPUs of two sockets or more. Hosts whose sockets share one memory controller (front-side bus, \
             until 2008) are so by design.",
    how: "Sockets are the kernel's physical package ids. Each package has had its own memory controllers since 2003 (AMD) and \
             2008 (Intel). Causes: firmware interleaves the nodes, NUMA is off (numa=off), or a guest got sockets without nodes.",
    calm: "",
    looked_at: "sysfs nodes",
    source: file!(),
    check: one_node,
};

/// `None`: the kernel does not report sockets or nodes. Empty: no node has several sockets.
fn one_node(evidence: &Evidence) -> Option<Vec<Finding>> {
    let machine = evidence.machine;
    let packages = machine.cpus.packages.as_ref()?;
    if machine.nodes.is_empty() {
        return None;
    }
    let sockets_of = |cpus: &CpuSet| packages.iter().filter(|socket| !socket.cpus.is_disjoint(cpus)).count();
    let nodes_with_several: Vec<(u32, usize)> = machine
        .nodes
        .iter()
        .map(|node| (node.id, sockets_of(&node.cpus)))
        .filter(|(_, sockets)| *sockets > 1)
        .collect();
    let Some((node, count)) = nodes_with_several.first() else { return Some(Vec::new()) };
    let is_guest = matches!(machine.hypervisor, machine::Hypervisor::Guest(_));
    let (cause, advice) = if is_guest {
        (
            "The guest got sockets without NUMA nodes, so it cannot know where its memory is on the host.",
            "Have the provider pass nodes with the sockets (QEMU: -numa node for each), or give the guest one socket.",
        )
    } else {
        (
            "Firmware interleaves the memory of all sockets, NUMA is switched off, or the sockets share one memory \
             controller as before 2008.",
            "Look for node interleaving in the firmware's setup and for numa=off in /proc/cmdline.",
        )
    };
    Some(vec![Finding::note(ONE_NODE.id, match machine.nodes.len() {
        1 => format!(
            "The kernel reports {count} sockets in one NUMA node. It cannot place memory near its tasks."
        ),
        nodes => format!(
            "{} of {nodes} NUMA nodes have several sockets. The kernel cannot place memory near its tasks.",
            nodes_with_several.len()
        ),
    })
        .cause(cause)
        .fact(format!("sockets in node {node}"),
                count,
                format!("/sys/devices/system/node/node{node}/cpulist"))
        .fact("sockets",
                packages.len(),
                "/sys/devices/system/cpu/cpu*/topology/physical_package_id")
        .fact("NUMA nodes", machine.nodes.len(), NODES)
        .confirm("lscpu | grep -E 'Socket|NUMA'; numactl --hardware; cat /proc/cmdline")
        .advice(advice)])
}

const NO_DISTANCE: Rule = Rule {
    id: ids::rule::NODES_WITHOUT_DISTANCE,
    title: "NUMA nodes without distances",
    topic: "NUMA",
    meaning: "Distances decide which memory the kernel takes when the near node is full. They also decide how far the scheduler \
             moves tasks and where page reclaim looks. Without them every node looks equally far.",
    action: "In a guest have the host pass distances (QEMU: -numa dist). On bare metal look for newer firmware. See it: numactl \
             --hardware",
    when: "There are several nodes, and none reports a distance, or none to another node above 10. Distances of 10 and 20 give no \
             note: firmware may report them, or the kernel assumes them without a table (SLIT).",
    how: "10 is the distance of a node to itself. Benchmark memory.nodes measures the real latencies.",
    calm: "",
    looked_at: "sysfs nodes",
    source: file!(),
    check: no_distance,
};

/// The distance of a node to itself in firmware's table (SLIT).
const LOCAL: u32 = 10;

/// `None`: the kernel reports no nodes. Empty: there are distances, or one node needs none.
fn no_distance(evidence: &Evidence) -> Option<Vec<Finding>> {
    let nodes = &evidence.machine.nodes;
    if nodes.is_empty() {
        return None;
    }
    let missing = nodes.iter().all(|node| node.distances.is_empty());
    let equal = nodes.iter().all(|node| node.distances.iter().all(|distance| *distance <= LOCAL));
    if nodes.len() < 2 || !(missing || equal) {
        return Some(Vec::new());
    }
    let distances = nodes[0].distances.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let headline = if missing {
        format!("The kernel has no distances for {} NUMA nodes. It treats all as equally far.", nodes.len())
    } else {
        format!(
            "All {} NUMA nodes report distance {LOCAL}. The kernel treats all as equally far.",
            nodes.len()
        )
    };
    Some(vec![Finding::note(NO_DISTANCE.id, headline)
        .cause("Firmware has no table of distances (SLIT), or this snapshot lacks it.")
        .fact("NUMA nodes", nodes.len(), NODES)
        .fact(format!("distances of node {}", nodes[0].id),
                if missing { "none".to_string() } else { clipped(&distances) },
                format!("/sys/devices/system/node/node{}/distance", nodes[0].id))
        .confirm("numactl --hardware; cat /sys/devices/system/node/node*/distance")
        .advice("In a guest have distances passed (QEMU: -numa dist). On bare metal look for newer firmware. Benchmark \
                 memory.nodes measures the real latencies.")])
}
