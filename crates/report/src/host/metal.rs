//! Where there is no host: how firmware lays out memory and nodes, and whether prefetchers show.

use super::{Grade, HostRow};
use diagnose::Diagnosis;
use diagnose::words::counted;
use machine::{Machine, Node};
use model::figure;
use stats::order::Interval;

/// Pages read in order are so many times as fast as in any order where cores fetch beyond the end
/// of a page. Rows of the memory are met again within a page in both.
const PREFETCHED: f64 = 1.05;

pub fn rows(diagnosis: &Diagnosis) -> [HostRow; 3] {
    let machine = &diagnosis.machine;
    let regions = diagnosis.regions();
    let gain = regions.first().map(|own| own.order_gain);
    [interleave(machine), sub_numa(machine), prefetchers(gain)]
}

/// Sockets, and the nodes that have CPUs.
fn layout(machine: &Machine) -> Option<(usize, Vec<&Node>)> {
    let nodes: Vec<&Node> = machine.nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    let sockets = machine.cpus.packages.as_ref().map(Vec::len).filter(|count| *count > 0)?;
    (!nodes.is_empty()).then_some((sockets, nodes))
}

fn interleave(machine: &Machine) -> HostRow {
    let row = |word: &str, reading: String| HostRow::new("interleave", Grade::Fact, word, reading);
    let Some((sockets, nodes)) = layout(machine) else {
        return HostRow::new(
            "interleave",
            Grade::CannotTell,
            "cannot tell",
            "sockets or nodes are not reported",
        );
    };
    let counts = format!("{}, {}", counted(sockets, "socket"), counted(nodes.len(), "node"));
    match (sockets, nodes.len()) {
        (1, _) => row("one socket", counts),
        (sockets, nodes) if nodes >= sockets => row("off", counts),
        _ => HostRow::new(
            "interleave",
            Grade::Poor,
            "on",
            format!("{counts}: consistent with firmware's interleaving, or numa=off"),
        ),
    }
}

/// Several nodes in a socket: SNC and cluster on die of Intel, NPS of AMD.
fn sub_numa(machine: &Machine) -> HostRow {
    let row = |word: &str, reading: String| HostRow::new("sub-NUMA", Grade::Fact, word, reading);
    let Some((sockets, nodes)) = layout(machine) else {
        return HostRow::new(
            "sub-NUMA",
            Grade::CannotTell,
            "cannot tell",
            "sockets or nodes are not reported",
        );
    };
    if nodes.len() < sockets {
        let counts = format!("{} in {}", counted(nodes.len(), "node"), counted(sockets, "socket"));
        return HostRow::new("sub-NUMA", Grade::CannotTell, "cannot tell", counts);
    }
    let caches = machine.llc_groups().map_or(0, |groups| groups.len());
    // Firmware of AMD can call each last-level cache a node, whatever NPS says.
    let by_cache = caches == nodes.len();
    let caches = match (caches, caches % sockets) {
        (0, _) => "last-level caches not reported".to_string(),
        (_, 0) => format!("{} per socket", counted(caches / sockets, "last-level cache")),
        _ => counted(caches, "last-level cache"),
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

/// `None`: regions were not looked at; inside it: not on huge pages.
fn prefetchers(gain: Option<Option<Interval>>) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("prefetchers", grade, word, reading);
    let gain = match gain {
        None => return HostRow::not_measured("prefetchers", "assay run --only memory.regions"),
        Some(None) => {
            return row(Grade::CannotTell, "cannot tell", "this system gave no huge pages".to_string());
        }
        Some(Some(gain)) => gain,
    };
    let (low, high) = (figure(gain.low, ""), figure(gain.high, ""));
    let reading = format!("pages in order {low}–{high} × as fast as in random order");
    match gain {
        Interval { low, .. } if low > PREFETCHED => {
            row(Grade::Fact, "across pages", format!("{reading}: consistent with prefetching"))
        }
        Interval { high, .. } if high <= PREFETCHED => row(Grade::Fact, "none across pages", reading),
        _ => row(Grade::CannotTell, "cannot tell", reading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Cache, CacheKind, Package};
    use model::CpuSet;

    /// Eight CPUs a socket in so many nodes and caches, and a node without CPUs.
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
        let cache = |at| Cache {
            level: 3,
            kind: CacheKind::Unified,
            cpus: part(caches, at),
            size_bytes: None,
            line_bytes: None,
            ways: None,
            sets: None,
        };
        machine.caches = (0..caches).map(cache).collect();
        machine
    }

    fn said(row: HostRow) -> String {
        format!("{}: {}", row.word, row.reading)
    }

    #[test]
    fn nodes_against_sockets_tell_of_interleaving() {
        let of = |sockets, nodes| said(interleave(&machine("GenuineIntel", sockets, nodes, 2)));
        assert_eq!(of(2, 2), "off: 2 sockets, 2 nodes");
        assert_eq!(of(2, 4), "off: 2 sockets, 4 nodes");
        assert_eq!(of(1, 1), "one socket: 1 socket, 1 node");
        assert!(of(4, 1).starts_with("on: 4 sockets, 1 node: consistent with"), "{}", of(4, 1));
        assert_eq!(interleave(&Machine::default()).grade, Grade::CannotTell);
    }

    #[test]
    fn nodes_of_a_socket_tell_of_its_parts() {
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
        assert_eq!(sub_numa(&Machine::default()).grade, Grade::CannotTell);
    }

    #[test]
    fn prefetchers_show_by_pages_in_order() {
        let of = |low, high| prefetchers(Some(Some(Interval { low, high })));
        assert_eq!(of(1.2, 1.3).word, "across pages");
        assert!(of(1.2, 1.3).reading.contains("consistent with"));
        assert_eq!(of(0.98, 1.02).word, "none across pages");
        assert_eq!(of(1.0, 1.2).grade, Grade::CannotTell);
        assert_eq!(prefetchers(Some(None)).grade, Grade::CannotTell);
        assert_eq!(prefetchers(None).grade, Grade::NotMeasured);
    }
}
