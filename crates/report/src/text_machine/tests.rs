//! Drawings: small, folded, partly unknown, narrow, in ASCII.

use super::*;
use machine::{Cache, CacheKind, Core, Node, Package};
use model::CpuSet;

const PLAIN: Style = Style { color: false, unicode: true, width: 80 };

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).expect("a list")
}

fn cache(level: u32, kind: CacheKind, list: &str, kib: u64) -> Cache {
    let size_bytes = Some(kib << 10);
    Cache { size_bytes, ..Cache::new(level, kind, cpus(list)) }
}

/// Packages of `cores` cores with two threads, an L3 for each half of a package.
fn machine(packages: u32, cores: u32) -> Machine {
    let mut machine = Machine::default();
    let all = packages * cores;
    machine.cpus.online = (0..2 * all).collect();
    machine.cpus.allowed = machine.cpus.online.clone();
    let threads = |core: u32| CpuSet::from_iter([core, all + core]);
    let range = |from: u32, count: u32| -> CpuSet {
        (from..from + count).flat_map(|core| threads(core).iter().collect::<Vec<_>>()).collect()
    };
    let core = |core: u32| Core { cpus: threads(core), ..Core::default() };
    machine.cpus.cores = Some((0..all).map(core).collect());
    let package = |id: u32| Package { id: i64::from(id), cpus: range(id * cores, cores) };
    machine.cpus.packages = Some((0..packages).map(package).collect());
    for half in 0..2 * packages {
        let list = range(half * cores / 2, cores / 2).to_string();
        machine.caches.push(cache(3, CacheKind::Unified, &list, 32 << 10));
    }
    for core in 0..all {
        machine.caches.push(cache(2, CacheKind::Unified, &threads(core).to_string(), 1280));
    }
    for id in 0..packages {
        let distances = (0..packages).map(|other| if other == id { 10 } else { 21 }).collect();
        let cpus = range(id * cores, cores);
        machine.nodes.push(Node { id, cpus, total_bytes: Some(64 << 30), distances, ..Node::default() });
    }
    machine
}

#[test]
fn a_small_machine_is_drawn_in_full() {
    let mut machine = machine(1, 4);
    machine.host = Some("db7".to_string());
    machine.cpus.allowed = cpus("0-2,4-6");
    machine.cpus.offline = cpus("8");
    machine.memory.total_bytes = Some(64 << 30);
    insta::assert_snapshot!("small", draw(&machine, PLAIN));
}

#[test]
fn a_big_machine_is_folded() {
    let machine = machine(8, 128);
    let text = draw(&machine, PLAIN);
    assert!(text.lines().count() < 60);
    insta::assert_snapshot!("big", text);
}

#[test]
fn memory_only_nodes_stand_beside_the_boxes() {
    let mut machine = machine(1, 2);
    for id in [2, 3] {
        machine.nodes.push(Node { id, total_bytes: Some(16 << 30), ..Node::default() });
    }
    let text = draw(&machine, PLAIN);
    assert!(text.contains("NUMA node 2-3: memory only, 16 GiB each"), "{text}");
}

#[test]
fn nothing_known_is_said() {
    let text = draw(&Machine::default(), PLAIN);
    assert!(text.contains("? packages") && text.contains("hypervisor unknown"), "{text}");
    assert!(text.contains("CPUs unknown") && text.contains("size unknown"), "{text}");
}

#[test]
fn crossing_sets_are_named_not_drawn() {
    let mut machine = machine(2, 4);
    machine.nodes[0].cpus = cpus("0-5");
    machine.nodes[1].cpus = cpus("6-15");
    let text = draw(&machine, PLAIN);
    assert!(text.contains("not drawn, fits no other box"), "{text}");
}

#[test]
fn no_line_is_wider_than_asked() {
    for (packages, cores) in [(1, 2), (2, 8), (2, 20), (8, 128), (16, 2)] {
        let mut machine = machine(packages, cores);
        machine.host = Some("h".repeat(1000));
        machine.kernel.command_line = Some(format!("quiet {} x", "y".repeat(500)));
        machine.remarks.push("z".repeat(300));
        machine.cpus.offline = (3000..3400).filter(|cpu| cpu % 2 == 0).collect();
        for width in [0, 40, 61, 80, 120, 500] {
            let text = draw(&machine, Style { width, ..PLAIN });
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width.clamp(40, 400), "{packages} x {cores} at {width}: {widest}\n{text}");
        }
    }
}

#[test]
fn ascii_and_colours() {
    let machine = machine(1, 2);
    let text = draw(&machine, Style { unicode: false, ..PLAIN });
    assert!(text.is_ascii() && text.contains("+ package 0") && text.contains("2 threads"), "{text}");
    let painted = draw(&machine, Style { color: true, ..PLAIN });
    assert!(painted.contains("\x1b[36m"), "{painted}");
    assert!(!draw(&machine, PLAIN).contains('\x1b'));
}

#[test]
fn hostile_strings_are_shown_as_text() {
    let mut machine = machine(1, 2);
    let evil = "\x1b[2J\u{202e}<script>alert(1)</script>\r\n";
    machine.host = Some(evil.to_string());
    machine.cpus.model = Some(evil.repeat(1000));
    machine.dmi.vendor = Some(evil.to_string());
    machine.dmi.product = Some("A".repeat(1 << 20));
    machine.kernel.command_line = Some(evil.to_string());
    machine.kernel.mitigations.insert(evil.to_string(), "Vulnerable".to_string());
    machine.clock.current = Some(evil.to_string());
    machine.frequency.governors.insert(evil.to_string(), cpus("0"));
    machine.remarks.push(evil.to_string());
    let text = draw(&machine, PLAIN);
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}') && !text.contains('\r'), "{text}");
    assert!(text.contains("\\x1b[2J\\u{202e}<script>"), "{text}");
    assert!(text.len() < 8000, "{}", text.len());
}

#[test]
fn sizes() {
    let shown = |bytes: u64| facts::size(bytes);
    assert_eq!(shown(0), "0 B");
    assert_eq!(shown(5118 << 10), "5 MiB");
    assert_eq!(shown(1280 << 10), "1.25 MiB");
    assert_eq!(shown(11264 << 10), "11 MiB");
    assert_eq!(shown(27 << 30), "27 GiB");
    assert_eq!(shown(100 << 30), "100 GiB");
    assert_eq!(shown(u64::MAX), "16 EiB");
}
