//! Rows of the host table on bare metal: how firmware lays out memory and nodes, and whether
//! prefetchers fetch across pages.

use super::{HostRow, RowGrade};
use diagnose::Diagnosis;
use diagnose::words::counted;
use machine::{Machine, Node};
use model::figure;
use stats::order::Interval;

/// Pages that are read one after the other are at least this many times as fast as pages in random
/// order, if cores prefetch across the end of a page. Both orders use the rows of the DRAM alike:
/// within a page.
const MIN_ORDER_GAIN: f64 = 1.05;

/// How much faster pages are read in order than in random order.
enum OrderGain {
    NotMeasured,
    /// Without huge pages the figures show address translation, too.
    NoHugePages,
    Measured(Interval),
}

pub fn rows(diagnosis: &Diagnosis) -> [HostRow; 3] {
    let machine = &diagnosis.machine;
    let regions = diagnosis.regions();
    let gain = match regions.first().map(|first| first.order_gain) {
        None => OrderGain::NotMeasured,
        Some(None) => OrderGain::NoHugePages,
        Some(Some(gain)) => OrderGain::Measured(gain),
    };
    [interleave(machine), sub_numa(machine), prefetchers(gain)]
}

/// Sockets, and the nodes that have CPUs.
fn layout(machine: &Machine) -> Option<(usize, Vec<&Node>)> {
    let nodes: Vec<&Node> = machine.nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    let sockets = machine.cpus.packages.as_ref().map(Vec::len).filter(|count| *count > 0)?;
    (!nodes.is_empty()).then_some((sockets, nodes))
}

fn interleave(machine: &Machine) -> HostRow {
    let row = |word: &str, reading: String| HostRow::new("interleave", RowGrade::Fact, word, reading);
    let Some((sockets, nodes)) = layout(machine) else {
        return HostRow::cannot_tell("interleave", "sockets or nodes are not reported");
    };
    let counts = format!("{}, {}", counted(sockets, "socket"), counted(nodes.len(), "node"));
    if sockets == 1 {
        row("one socket", counts)
    } else if nodes.len() >= sockets {
        row("off", counts)
    } else {
        let reading = format!("{counts}: consistent with firmware's interleaving, or numa=off");
        HostRow::new("interleave", RowGrade::Poor, "on", reading)
    }
}

/// Several nodes in a socket: SNC and cluster on die of Intel, NPS of AMD.
fn sub_numa(machine: &Machine) -> HostRow {
    let row = |word: &str, reading: String| HostRow::new("sub-NUMA", RowGrade::Fact, word, reading);
    let Some((sockets, nodes)) = layout(machine) else {
        return HostRow::cannot_tell("sub-NUMA", "sockets or nodes are not reported");
    };
    if nodes.len() < sockets {
        let reason = format!("{} in {}", counted(nodes.len(), "node"), counted(sockets, "socket"));
        return HostRow::cannot_tell("sub-NUMA", reason);
    }
    let cache_count = machine.llc_groups().map_or(0, |groups| groups.len());
    // Firmware of AMD can call each last-level cache a node, whatever NPS says.
    let by_cache = cache_count == nodes.len();
    let caches = match (cache_count, cache_count % sockets) {
        (0, _) => "last-level caches not reported".to_string(),
        (_, 0) => format!("{} per socket", counted(cache_count / sockets, "last-level cache")),
        _ => counted(cache_count, "last-level cache"),
    };
    let each = nodes.len() / sockets;
    match (nodes.len() % sockets, each) {
        (0, 1) => row("off", format!("one node and {caches}")),
        (0, 2..) => {
            let vendor = machine.cpus.vendor.as_deref().unwrap_or_default();
            let name = match vendor {
                "GenuineIntel" => format!(": consistent with SNC{each}"),
                "AuthenticAMD" | "HygonGenuine" => match (each, by_cache) {
                    (2 | 4, false) => format!(": consistent with NPS{each}"),
                    (2 | 4, true) => format!(": consistent with NPS{each}, or one node per cache"),
                    (_, true) => ": consistent with one node per cache".to_string(),
                    (_, false) => String::new(),
                },
                _ => String::new(),
            };
            row(&format!("{each} per socket"), format!("{} and {caches}{name}", counted(each, "node")))
        }
        _ => row("uneven", format!("{} in {}", counted(nodes.len(), "node"), counted(sockets, "socket"))),
    }
}

fn prefetchers(gain: OrderGain) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("prefetchers", grade, word, reading);
    let gain = match gain {
        OrderGain::NotMeasured => {
            return HostRow::not_measured("prefetchers", "assay run --only memory.regions");
        }
        OrderGain::NoHugePages => {
            return HostRow::cannot_tell("prefetchers", "this system gave no huge pages".to_string());
        }
        OrderGain::Measured(gain) => gain,
    };
    let (low, high) = (figure(gain.low, ""), figure(gain.high, ""));
    let reading = format!("pages in order {low}–{high} × as fast as in random order");
    if gain.low > MIN_ORDER_GAIN {
        row(RowGrade::Fact, "across pages", format!("{reading}: consistent with prefetching"))
    } else if gain.high <= MIN_ORDER_GAIN {
        row(RowGrade::Fact, "none across pages", reading)
    } else {
        HostRow::cannot_tell("prefetchers", reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Cache, CacheKind, Package};
    use model::CpuSet;

    /// Eight CPUs per socket in these nodes and caches, and a node without CPUs.
    fn machine(vendor: &str, sockets: u32, nodes: u32, caches: u32) -> Machine {
        let all = sockets * 8;
        let part = |of: u32, at: u32| (at * all / of..(at + 1) * all / of).collect::<CpuSet>();
        let mut machine = Machine::default();
        machine.cpus.vendor = Some(vendor.to_string());
        machine.cpus.online = (0..all).collect();
        machine.cpus.packages =
            Some((0..sockets).map(|id| Package { id: id.into(), cpus: part(sockets, id) }).collect());
        machine.nodes = (0..nodes).map(|id| Node { id, cpus: part(nodes, id), ..Node::default() }).collect();
        machine.nodes.push(Node { id: 99, ..Node::default() });
        let cache = |at| Cache::new(3, CacheKind::Unified, part(caches, at));
        machine.caches = (0..caches).map(cache).collect();
        machine
    }

    fn said(row: HostRow) -> String {
        format!("{}: {}", row.word, row.reading)
    }

    #[test]
    fn fewer_nodes_than_sockets_show_interleaving() {
        let of = |sockets, nodes| said(interleave(&machine("GenuineIntel", sockets, nodes, 2)));
        assert_eq!(of(2, 2), "off: 2 sockets, 2 nodes");
        assert_eq!(of(2, 4), "off: 2 sockets, 4 nodes");
        assert_eq!(of(1, 1), "one socket: 1 socket, 1 node");
        assert!(of(4, 1).starts_with("on: 4 sockets, 1 node: consistent with"), "{}", of(4, 1));
        assert_eq!(interleave(&Machine::default()).grade, RowGrade::CannotTell);
    }

    #[test]
    fn nodes_of_a_socket_show_its_parts() {
        let of = |vendor, sockets, nodes, caches| said(sub_numa(&machine(vendor, sockets, nodes, caches)));
        assert_eq!(of("GenuineIntel", 2, 2, 2), "off: one node and 1 last-level cache per socket");
        assert_eq!(
            of("GenuineIntel", 2, 4, 2),
            "2 per socket: 2 nodes and 1 last-level cache per socket: consistent with SNC2"
        );
        assert_eq!(
            of("AuthenticAMD", 1, 4, 8),
            "4 per socket: 4 nodes and 8 last-level caches per socket: consistent with NPS4"
        );
        assert_eq!(of("other", 2, 3, 2), "uneven: 3 nodes in 2 sockets");
        assert_eq!(of("AuthenticAMD", 2, 1, 2), "cannot tell: 1 node in 2 sockets");
        assert!(of("AuthenticAMD", 1, 8, 8).ends_with(": consistent with one node per cache"));
        assert_eq!(sub_numa(&Machine::default()).grade, RowGrade::CannotTell);
    }

    #[test]
    fn prefetchers_show_by_pages_in_order() {
        let of = |low, high| prefetchers(OrderGain::Measured(Interval { low, high }));
        assert_eq!(of(1.2, 1.3).word, "across pages");
        assert!(of(1.2, 1.3).reading.contains("consistent with"));
        assert_eq!(of(0.98, 1.02).word, "none across pages");
        assert_eq!(of(1.0, 1.2).grade, RowGrade::CannotTell);
        assert_eq!(prefetchers(OrderGain::NoHugePages).grade, RowGrade::CannotTell);
        assert_eq!(prefetchers(OrderGain::NotMeasured).grade, RowGrade::NotMeasured);
    }
}
