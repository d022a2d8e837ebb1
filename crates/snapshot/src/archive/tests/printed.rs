//! What tools printed of a real host (`tests/support`: recorded on a guest with two CPUs), and
//! texts in their form with numbers of our own.

use super::*;

fn recorded(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/support");
    fs::read(root.join(name)).expect("a recorded printout")
}

/// Packages, cores, CPUs and nodes as far as they are reported.
fn shape(machine: &Machine) -> [Option<usize>; 4] {
    let summary = machine.summary();
    [summary.packages, summary.cores, summary.cpus, summary.numa_nodes]
}

#[test]
fn all_tools_tell_of_the_host_that_they_were_run_on() {
    let whole = [Some(1), Some(2), Some(2), Some(1)];
    for (name, told) in [
        ("lscpu.txt", whole),
        ("lscpu.json", whole),
        ("lscpu-e.txt", whole),
        ("lscpu-p.txt", whole),
        ("lstopo.xml", whole),
        ("numactl.txt", [None, None, Some(2), Some(1)]),
    ] {
        let machine = machine_of(&recorded(name));
        assert_eq!(shape(&machine), told, "{name}");
        let archive = machine.archive.expect("an archive");
        assert_eq!(archive.contradictions, Vec::<String>::new(), "{name}");
        assert!(archive.absent.contains(&"memory modules".to_string()), "{name}");
    }
    let text = machine_of(&recorded("lscpu.txt"));
    let tree = machine_of(&recorded("lscpu.json"));
    assert_eq!((&text.cpus, &text.caches, &text.nodes), (&tree.cpus, &tree.caches, &tree.nodes));
    let topology = machine_of(&recorded("lstopo.xml"));
    let sizes = |machine: &Machine| {
        let caches = machine.caches.iter();
        caches.map(|one| (one.level, one.kind, one.cpus.clone(), one.size_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&text), sizes(&topology));
    // A release of another system is none of Linux.
    let xml = String::from_utf8(recorded("lstopo.xml")).expect("text");
    let (own, other) = (r#"name="OSName" value="Linux""#, r#"name="OSName" value="FreeBSD""#);
    assert!(xml.contains(own) && topology.kernel.release.is_some());
    assert_eq!(machine_of(xml.replace(own, other).as_bytes()).kernel.release, None);
    assert_eq!(sizes(&text).len(), 7);
    assert_eq!(topology.cpus.model.as_deref(), Some("AMD EPYC"));
    assert_eq!(text.cpus.numbers, topology.cpus.numbers);
    assert_eq!(topology.memory.total_bytes, Some(10_160_922_624));
    assert_eq!((topology.host.as_deref(), text.cpus.architecture.as_deref()), (Some("vm"), Some("x86_64")));
    assert_eq!(text.kernel.mitigations["spec_store_bypass"], "Vulnerable");
    // Two tools that found no SMBIOS tables there.
    for (name, kernel, counted, absent) in [
        ("lshw.json", None, vec![], "CPUs, cores"),
        ("hwinfo.txt", Some(0x5_e299_0000), vec!["2 CPUs".to_string()], "host name, CPUs, cores"),
    ] {
        let machine = machine_of(&recorded(name));
        assert!(!machine.is_blank() && machine.cpus.online.is_empty(), "{name}");
        assert_eq!(machine.cpus.model.as_deref(), Some("AMD EPYC"), "{name}");
        assert_eq!(machine.memory.total_bytes, kernel, "{name}");
        let archive = machine.archive.expect("an archive");
        assert_eq!(archive.installed_bytes, (name == "lshw.json").then_some(24 << 30), "{name}");
        assert_eq!((archive.counted, archive.contradictions), (counted, vec![]), "{name}");
        let told = archive.absent.join(", ");
        assert!(told.starts_with(absent) && !told.contains("processor"), "{name}: {told}");
        assert!(!archive.absent.contains(&"memory".to_string()), "{name}: {told}");
    }
}

/// A socket of one core with two threads, as hwloc wrote it before and since version 2.
fn socket(at: u32, is_old: bool) -> String {
    let set = |mask: u32| format!("os_index=\"{at}\" cpuset=\"0x{mask:08x}\"");
    let all = set((1 << at) | (1 << (at + 2)));
    let thread = |cpu: u32| format!("<object type=\"PU\" os_index=\"{cpu}\" cpuset=\"0x{:08x}\"/>", 1 << cpu);
    let cache = |level: u32, size: u32, inner: &str| {
        let name = if is_old { "Cache".to_string() } else { format!("L{level}Cache") };
        let kind = u32::from(level == 1);
        format!(
            "<object type=\"{name}\" {all} cache_size=\"{size}\" depth=\"{level}\" cache_linesize=\"64\" \
             cache_associativity=\"8\" cache_type=\"{kind}\">{inner}</object>"
        )
    };
    let core = format!("<object type=\"Core\" {all}>{}{}</object>", thread(at), thread(at + 2));
    let caches = cache(2, 1 << 20, &cache(1, 32768, &core));
    let node = format!("<object type=\"NUMANode\" {all} local_memory=\"{}\"", 8u64 << 30);
    if is_old {
        format!("{node}><object type=\"Socket\" {all}>{caches}</object></object>")
    } else {
        format!("<object type=\"Package\" {all}>{node}/>{caches}</object>")
    }
}

/// Two such sockets.
fn topology(is_old: bool) -> String {
    let distances = if is_old {
        "<distances nbobjs=\"2\" relative_depth=\"1\" latency_base=\"10.000000\"><latency value=\"1.000000\"/>\
             <latency value=\"2.100000\"/><latency value=\"2.100000\"/><latency value=\"1.000000\"/></distances>"
    } else {
        "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os\"><indexes length=\"4\">0 1 </indexes>\
             <u64values length=\"12\">10 21 21 10 </u64values></distances2>"
    };
    let infos = "<info name=\"CPUModel\" value=\"X &amp; Y\"/><info name=\"HostName\" value=\"db7\"/>\
                 <info name=\"OSRelease\" value=\"6.1\"/><info name=\"DMIProductName\" value=\"Box\"/>";
    let (inside, beside) = if is_old { (distances, "") } else { ("", distances) };
    format!(
        "<?xml version=\"1.0\"?><topology><object type=\"Machine\" cpuset=\"0x0000000f\" complete_cpuset=\"0x0000001f\" \
         online_cpuset=\"0x0000000f\">{infos}{}{}{inside}</object>{beside}</topology>",
        socket(0, is_old),
        socket(1, is_old)
    )
}

#[test]
fn topologies_of_both_versions_are_one_machine() {
    let (first, second) = (machine_of(topology(true).as_bytes()), machine_of(topology(false).as_bytes()));
    assert_eq!(shape(&first), [Some(2), Some(2), Some(4), Some(2)]);
    assert_eq!(first, second);
    assert_eq!(first.nodes[1].distances, [21, 10]);
    assert_eq!(first.cpus.cores.as_ref().map(|cores| cores[1].cpus.to_string()).as_deref(), Some("1,3"));
    assert_eq!((first.caches.len(), first.caches[3].size_bytes), (4, Some(1 << 20)));
    assert_eq!(first.memory.total_bytes, Some(16 << 30));
    assert_eq!((first.cpus.model.as_deref(), first.dmi.product.as_deref()), (Some("X & Y"), Some("Box")));
    // What is cut ends.
    let text = topology(false);
    for end in (0..text.len()).step_by(7) {
        let _ = read_bytes(&text.as_bytes()[..end]);
    }
}

#[test]
fn what_lscpu_only_counts_is_given_to_no_cpu() {
    let machine = machine_of(LSCPU.as_bytes());
    assert_eq!(shape(&machine), [None, None, Some(8), Some(2)]);
    assert!(machine.caches.is_empty());
    let archive = machine.archive.expect("an archive");
    assert_eq!(archive.counted, ["2 sockets", "4 cores", "2 threads per core"]);
    assert!(archive.absent.contains(&"cores".to_string()));
}

/// A module of 32 GB and an empty slot, in the words of lshw.
const LSHW: &str = r#"{"id": "db7", "class": "system", "vendor": "ACME", "product": "Box", "children": [
 {"id": "core", "class": "bus", "children": [
 {"id": "cpu:0", "class": "processor", "slot": "CPU1", "product": "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz"},
 {"id": "cpu:1", "class": "processor", "slot": "CPU2", "disabled": true},
 {"id": "memory", "class": "memory", "description": "System Memory", "size": 34359738368, "children": [
 {"id": "bank:0", "class": "memory", "slot": "A1", "size": 34359738368, "width": 64, "vendor": "Samsung",
  "description": "DIMM DDR4 Synchronous Registered (Buffered) 2933 MHz (0.3 ns)", "product": "M393A4K40CB2",
  "serial": "7QK3XW29"},
 {"id": "bank:1", "class": "memory", "description": "DIMM DDR4 Synchronous [empty]", "slot": "A2",
  "vendor": "NO DIMM"}]}]}]}"#;

/// The same in those of hwinfo.
const HWINFO: &str = r#"02: None 00.0: 10105 BIOS
  [Created at bios.186]
  Unique ID: x
  Hardware Class: bios
  SMBIOS Version: 3.2
  System Info: #256
    Manufacturer: "ACME"
    Product: "Box"
    Serial: "7QK3XW29"
  Processor Info: #1024
    Socket: "CPU1"
    Socket Status: Populated
    Type: 0x03 (CPU)
    Version: "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz"
  Physical Memory Array: #4096
    Use: 0x03 (System memory)
    Slots: 2
  Memory Device: #4352
    Location: "A1"
    Manufacturer: "Samsung"
    Part Number: "M393A4K40CB2"
    Memory Array: #4096
    Form Factor: 0x09 (DIMM)
    Type: 0x1a (Other)
    Data Width: 64 bits
    Size: 32 GB
    Speed: 2933 MHz
  Memory Device: #4353
    Location: "A2"
    Memory Array: #4096
    Form Factor: 0x09 (DIMM)
    Type: 0x1a (Other)
    Size: No Memory Installed
  Config Status: cfg=new, avail=yes, need=no, active=unknown
"#;

#[test]
fn modules_by_lshw_and_hwinfo_are_those_of_the_tables() {
    for text in [LSHW, HWINFO] {
        let snapshot = read_bytes(text.as_bytes()).expect("a printout");
        assert!(!format!("{snapshot:?}").contains("7QK3XW29"));
        let machine = machine_of(text.as_bytes());
        let dimms = machine.dimms.iter();
        let told: Vec<_> =
            dimms.map(|dimm| (dimm.locator.as_str(), dimm.size_bytes, dimm.kind.as_deref())).collect();
        assert_eq!(told, [("A1", Some(32 << 30), Some("DDR4")), ("A2", Some(0), Some("DDR4"))], "{text}");
        // Both slots that the array has are in the list.
        let remarks = &machine.population.dimm_remarks;
        assert!(remarks.iter().all(|one| one.starts_with("Assay has no rule")), "{remarks:?}");
        let first = &machine.dimms[0];
        assert_eq!((first.speed_mts, first.data_width_bits), (Some(2933), Some(64)));
        let made = (first.part.as_deref(), first.manufacturer.as_deref());
        assert_eq!(made, (Some("M393A4K40CB2"), Some("Samsung")));
        let model = "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz";
        let processor = (text == LSHW).then_some(model);
        assert_eq!(machine.cpus.model.as_deref(), processor);
        let box_of = (machine.dmi.vendor.as_deref(), machine.dmi.product.as_deref());
        assert_eq!(box_of, (Some("ACME"), Some("Box")));
        assert_eq!(machine.archive.expect("an archive").contradictions, Vec::<String>::new());
    }
}

#[test]
fn a_long_list_of_cpus_goes_on_below() {
    let text = "available: 2 nodes (0,8)\nnode 0 cpus: 0 1 2 3\n4 5 6 7\nnode 0 size: 1000 MB\nnode 0 free: 10 MB\n\
                node 8 cpus:\nnode 8 size: 2000 MB\nnode 8 free: 20 MB\nnode distances:\nnode   0   8 \n  0:  10  40 \n\
                \x20 8:  40  10 \n";
    let machine = machine_of(text.as_bytes());
    let nodes = machine.nodes.iter();
    let nodes: Vec<_> = nodes.map(|node| (node.id, node.cpus.to_string(), node.total_bytes)).collect();
    let told = [(0, "0-7".to_string(), Some(1000 << 20)), (8, String::new(), Some(2000 << 20))];
    assert_eq!(nodes, told);
    assert_eq!(machine.nodes[0].distances, [10, 40]);
}
