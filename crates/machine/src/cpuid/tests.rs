//! Leaves of processors that are rare or strange, and of none.

use super::*;
use model::Entry;

/// A dump made of CPUs' lines, numbered from 0.
fn dump(cpus: &[Vec<String>]) -> Snapshot {
    let entry = |(cpu, lines): (usize, &Vec<String>)| {
        (format!("{}/{cpu}", ids::probe::CPUID), Entry::Text(lines.join("\n")))
    };
    Snapshot { entries: cpus.iter().enumerate().map(entry).collect() }
}

fn vendor(highest: u32, name: &[u8; 12]) -> String {
    let register = |at: usize| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]);
    format!("1 0 0 0 0 => {highest:x} {:x} {:x} {:x}", register(0), register(8), register(4))
}

fn shape(snapshot: &Snapshot) -> (usize, usize, Vec<String>) {
    let mut all = Cpus { online: cpus(snapshot), ..Cpus::default() };
    complete_cpus(&mut all, snapshot, &mut Vec::new());
    let caches = caches(snapshot, &all.online, &mut Vec::new());
    let words = |cache: &Cache| {
        let kib = cache.size_bytes.unwrap_or(0) >> 10;
        format!("L{}{:?} {kib}K {}", cache.level, cache.kind, cache.cpus)
    };
    let big = caches.iter().filter(|cache| cache.level > 1).map(words).collect();
    (all.packages.map_or(0, |p| p.len()), all.cores.map_or(0, |c| c.len()), big)
}

#[test]
fn intel_with_leaf_4_only() {
    // Two packages of two cores without SMT: APIC ids 0, 1 and 6, 7; L2 of 4 MiB for two.
    let cpu = |id: u32| {
        vec![
            "# mask e[abcd]x => e[abcd]x".to_string(),
            vendor(0xa, b"GenuineIntel"),
            format!("1 1 0 0 0 => 6f7 {:x} 4e33d bfebfbff", id << 24 | 2 << 16 | 0x800),
            "5 4 0 0 0 => 4000121 1c0003f 3f 1".to_string(),
            "5 4 0 1 0 => 4000122 1c0003f 3f 1".to_string(),
            "5 4 0 2 0 => 4004143 3c0003f fff 1".to_string(),
            "5 4 0 3 0 => 0 0 0 0".to_string(),
        ]
    };
    let snapshot = dump(&[cpu(0), cpu(6), cpu(1), cpu(7)]);
    let caches = vec!["L2Unified 4096K 0,2".to_string(), "L2Unified 4096K 1,3".to_string()];
    assert_eq!(shape(&snapshot), (2, 4, caches));
    assert_eq!(hypervisor_bit(&snapshot), Some(false));
}

#[test]
fn who_shares_a_cache_is_known_only_where_every_cpu_answered() {
    let cpu = |id: u32| {
        vec![
            vendor(4, b"GenuineIntel"),
            format!("1 1 0 0 0 => 6f7 {:x} 4e33d bfebfbff", id << 24 | 2 << 16 | 0x800),
            "5 4 0 0 0 => 4004143 3c0003f fff 1".to_string(),
            "5 4 0 1 0 => 0 0 0 0".to_string(),
        ]
    };
    let online = CpuSet::parse_list("0-1").expect("a list");
    let told = |cpus: &[Vec<String>]| {
        let mut remarks = Vec::new();
        let caches = caches(&dump(cpus), &online, &mut remarks);
        (caches.iter().map(|cache| cache.cpus.to_string()).collect::<Vec<String>>(), remarks.join("; "))
    };
    assert_eq!(told(&[cpu(0), cpu(1)]), (vec!["0-1".to_string()], String::new()));
    assert_eq!(told(&[]), (vec![], String::new()));
    let (caches, remarks) = told(&[cpu(0)]);
    assert!(caches == ["0"] && remarks.starts_with("only CPUs 0 report caches"), "{remarks}");
}

#[test]
fn intel_with_leaf_2_only() {
    // A Xeon of 2003: two threads a package, 512 KiB L2 (0x7b), 1 MiB L3 (0x23).
    let cpu = |id: u32| {
        vec![
            vendor(2, b"GenuineIntel"),
            format!("1 1 0 0 0 => f25 {:x} 4400 bfebfbff", id << 24 | 2 << 16 | 0x80b),
            "1 2 0 0 0 => 665b5001 0 0 7b7023".to_string(),
        ]
    };
    let snapshot = dump(&[cpu(0), cpu(6), cpu(1), cpu(7)]);
    let (packages, cores, caches) = shape(&snapshot);
    assert_eq!((packages, cores), (2, 2));
    assert_eq!(
        caches,
        ["L2Unified 512K 0,2", "L2Unified 512K 1,3", "L3Unified 1024K 0,2", "L3Unified 1024K 1,3"]
    );
}

fn amd(id: u32, signature: u32, logical: u32, cores: u32, l3: u32) -> Vec<String> {
    vec![
        vendor(5, b"AuthenticAMD"),
        format!("1 1 0 0 0 => {signature:x} {:x} 802009 178bfbff", id << 24 | logical << 16 | 0x800),
        "1 80000000 0 0 0 => 8000001b 68747541 444d4163 69746e65".to_string(),
        format!("1 80000001 0 0 0 => {signature:x} 0 37ff efd3fbff"),
        "1 80000005 0 0 0 => ff30ff10 ff30ff20 40020140 40020140".to_string(),
        format!("1 80000006 0 0 0 => 20800000 42004200 2008140 {l3:x}"),
        format!("1 80000008 0 0 0 => 3030 0 {cores:x} 0"),
    ]
}

#[test]
fn amd_before_topology_extensions() {
    // K8 with two cores, no core id size: packages by the number of cores; L1 and L2
    // private.
    let k8: Vec<Vec<String>> = (0..4).map(|id| amd(id, 0x40f12, 2, 1, 0)).collect();
    let (packages, cores, caches) = shape(&dump(&k8));
    assert_eq!((packages, cores, caches.len()), (2, 4, 4));

    // K10 quad core: one L3 of 2 MiB a package.
    let k10: Vec<Vec<String>> = (0..8).map(|id| amd(id, 0x100f23, 4, 0x2003, 0x10a140)).collect();
    let (packages, cores, caches) = shape(&dump(&k10));
    assert_eq!((packages, cores), (2, 8));
    assert_eq!(caches[8..], ["L3Unified 2048K 0-3".to_string(), "L3Unified 2048K 4-7".to_string()]);
}

#[test]
fn magny_cours_has_two_dies_with_half_the_l3_each() {
    // Twelve cores of sixteen ids, the first package lifted to id 16.
    let ids = (16..28).chain(32..44);
    let cpus: Vec<Vec<String>> = ids.map(|id| amd(id, 0x100f91, 12, 0x400b, 0x60b140)).collect();
    let (packages, cores, caches) = shape(&dump(&cpus));
    assert_eq!((packages, cores), (2, 24));
    assert_eq!(
        caches[24..],
        [
            "L3Unified 6144K 0-5".to_string(),
            "L3Unified 6144K 6-11".to_string(),
            "L3Unified 6144K 12-17".to_string(),
            "L3Unified 6144K 18-23".to_string()
        ]
    );
}

#[test]
fn bulldozer_units_share_l2_and_nodes_share_l3() {
    let cpu = |id: u32| {
        let mut lines = amd(id, 0x600f12, 16, 0x400f, 0x40c140);
        lines[2] = "1 80000000 0 0 0 => 8000001e 68747541 444d4163 69746e65".to_string();
        lines[3] = "1 80000001 0 0 0 => 600f12 0 1ebbfff 2fd3fbff".to_string();
        lines.push("5 8000001d 0 0 0 => 121 c0003f 3f 0".to_string());
        lines.push("5 8000001d 0 1 0 => 4122 40003f 1ff 0".to_string());
        lines.push("5 8000001d 0 2 0 => 4143 3c0003f 7ff 0".to_string());
        lines.push("5 8000001d 0 3 0 => 1c163 fc0003f 7ff 1".to_string());
        lines.push("5 8000001d 0 4 0 => 0 0 0 0".to_string());
        let node = id / 8;
        lines.push(format!("1 8000001e 0 0 0 => {id:x} {:x} {:x} 0", 0x100 | (id % 16 / 2), 0x100 | node));
        lines
    };
    let cpus: Vec<Vec<String>> = (32..64).map(cpu).collect();
    let (packages, cores, caches) = shape(&dump(&cpus));
    assert_eq!((packages, cores), (2, 32));
    assert_eq!(caches.iter().filter(|cache| cache.starts_with("L2")).count(), 16);
    let l3: Vec<&String> = caches.iter().filter(|cache| cache.starts_with("L3")).collect();
    assert_eq!(
        l3,
        ["L3Unified 8192K 0-7", "L3Unified 8192K 8-15", "L3Unified 8192K 16-23", "L3Unified 8192K 24-31"]
    );
}

#[test]
fn hygon_has_threads_and_one_package_in_64_ids() {
    let cpu = |id: u32| {
        let mut lines = amd(id, 0x900f02, 64, 0x303f, 0);
        lines[0] = vendor(0xd, b"HygonGenuine");
        lines[2] = "1 80000000 0 0 0 => 8000001f 6f677948 656e6975 6e65476e".to_string();
        lines[3] = "1 80000001 0 0 0 => 900f02 0 35c233ff 2fd3fbff".to_string();
        lines.push("5 8000001d 0 0 0 => 4121 1c0003f 3f 0".to_string());
        lines.push("5 8000001d 0 1 0 => 1c163 3c0003f 1fff 1".to_string());
        lines.push("5 8000001d 0 2 0 => 0 0 0 0".to_string());
        lines.push(format!("1 8000001e 0 0 0 => {id:x} {:x} {:x} 0", 0x100 | (id / 2), id / 16));
        lines
    };
    let cpus: Vec<Vec<String>> = (0..16).chain(64..80).map(cpu).collect();
    let (packages, cores, caches) = shape(&dump(&cpus));
    assert_eq!((packages, cores), (2, 16));
    assert_eq!(
        caches,
        ["L3Unified 8192K 0-7", "L3Unified 8192K 8-15", "L3Unified 8192K 16-23", "L3Unified 8192K 24-31"]
    );
}

#[test]
fn zhaoxin_follows_intel() {
    let cpu = |id: u32| {
        vec![
            vendor(0x19, b"  Shanghai  "),
            format!("1 1 0 0 0 => 707b0 {:x} 7eda63eb bfcbfbff", id << 24 | 8 << 16 | 0x800),
            "5 4 0 0 0 => 1c000121 1c0003f 3f 0".to_string(),
            "5 4 0 1 0 => 1c000122 1c0003f 3f 0".to_string(),
            "5 4 0 2 0 => 1c00c143 3c0003f fff 3".to_string(),
            "5 4 0 3 0 => 0 0 0 0".to_string(),
            format!("5 b 0 0 0 => 0 1 100 {id:x}"),
            format!("5 b 0 1 0 => 3 8 201 {id:x}"),
            format!("5 b 0 2 0 => 0 0 2 {id:x}"),
        ]
    };
    let cpus: Vec<Vec<String>> = (0..16).map(cpu).collect();
    let snapshot = dump(&cpus);
    let (packages, cores, caches) = shape(&snapshot);
    assert_eq!((packages, cores, caches.len()), (2, 16, 4));
    assert_eq!(first(&snapshot).and_then(|leaves| leaves.vendor()).as_deref(), Some("Shanghai"));
}

#[test]
fn signatures_of_hypervisors() {
    let guest = |leaf: &str| {
        let lines = vec![
            vendor(1, b"GenuineIntel"),
            "1 1 0 0 0 => 663 800 80000000 0".to_string(),
            "1 40000000 0 0 0 => 40000001 7263694d 666f736f 76482074".to_string(),
            leaf.to_string(),
        ];
        hypervisor_name(&dump(&[lines]))
    };
    assert_eq!(guest(""), Some("hyperv"));
    assert_eq!(guest("1 40000100 0 0 0 => 40000101 4b4d564b 564b4d56 4d"), Some("kvm"));
}

#[test]
fn garbage_is_unknown() {
    for text in
        ["", "=>", "1 2 3", "x y z u v => 1 2 3 4", "1 0 0 0 0 => ffffffff 0 0 0", "0 0 0 0 0 => 0 0 0 0"]
    {
        let snapshot = dump(&[vec![text.to_string()]]);
        let _ = shape(&snapshot);
        let _ = (hypervisor_name(&snapshot), kinds(&snapshot, &CpuSet::one(0)));
    }
    let all_ones = (0..0x20).map(|leaf| format!("1 {leaf:x} 0 0 0 => ffffffff ffffffff ffffffff ffffffff"));
    let _ = shape(&dump(&[all_ones.collect()]));
}

#[test]
fn ids_that_repeat_tell_nothing_and_narrow_ids_stand_in() {
    // The extended leaf says the same of all; leaf 1 distinguishes them.
    let cpu = |id: u32| {
        vec![
            vendor(0xb, b"GenuineIntel"),
            format!("1 1 0 0 0 => 106a5 {:x} 9ce3bd bfebfbff", id << 24 | 2 << 16 | 0x800),
            "5 4 0 0 0 => 121 1c0003f 3f 0".to_string(),
            "5 b 0 0 0 => 1 2 100 0".to_string(),
            "5 b 0 1 0 => 4 4 201 0".to_string(),
        ]
    };
    assert_eq!(shape(&dump(&[cpu(0), cpu(2)])).0, 2);
    let same = dump(&[cpu(0), cpu(0)]);
    let mut all = Cpus { online: cpus(&same), ..Cpus::default() };
    let mut remarks = Vec::new();
    complete_cpus(&mut all, &same, &mut remarks);
    assert_eq!((all.cores, remarks.len()), (None, 1));
}

#[test]
fn a_fully_associative_cache_has_no_number_of_ways() {
    let ways = |eax: u32| {
        let cpu = [vendor(4, b"GenuineIntel"), format!("5 4 0 0 0 => {eax:x} 3c0003f fff 1")];
        let all = intel::deterministic(&Leaves::parse(&cpu.join("\n")), 4, |_, sharing| sharing);
        all.iter().map(|cache| (cache.level, cache.ways)).collect::<Vec<_>>()
    };
    assert_eq!(ways(0x4004143), [(2, Some(16))]);
    assert_eq!(ways(0x4004143 | 1 << 9), [(2, None)]);
}
