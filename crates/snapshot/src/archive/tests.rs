//! Archives of each kind, made of one host, against the host in its folder; and hostile ones
//! (`hostile`), contradictions (`apart`), and what tools printed on a real host (`printed`).

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::*;

mod apart;
mod hostile;
mod printed;

/// A host of two sockets with two cores of two threads each, by the files of its kernel.
fn made() -> Vec<(String, String)> {
    let mut files = vec![
        ("/proc/version".to_string(), "Linux version 6.1.0-13-amd64 (x@y) #1 SMP Debian".to_string()),
        ("/proc/sys/kernel/hostname".to_string(), "db7".to_string()),
        ("/proc/meminfo".to_string(), "MemTotal:       197000000 kB\nMemFree: 1000 kB\n".to_string()),
        ("/sys/devices/system/cpu/online".to_string(), "0-7".to_string()),
    ];
    let mut cpuinfo = String::new();
    for cpu in 0..8u32 {
        let (core, package) = (cpu % 4, cpu % 4 / 2);
        let own = format!("{core},{}", core + 4);
        let first = 2 * package;
        let all = format!("{first}-{},{}-{}", first + 1, first + 4, first + 5);
        cpuinfo.push_str(&format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n\
             physical id\t: {package}\ncore id\t: {}\ncpu cores\t: 2\nflags\t: fpu lm\n\n",
            core % 2
        ));
        let place = format!("/sys/devices/system/cpu/cpu{cpu}");
        let mut add = |file: &str, text: &str| files.push((format!("{place}/{file}"), text.to_string()));
        add("topology/physical_package_id", &package.to_string());
        add("topology/core_id", &(core % 2).to_string());
        add("topology/core_cpus_list", &own);
        add("topology/package_cpus_list", &all);
        let caches = [
            (1, "Data", "32K", &own),
            (1, "Instruction", "32K", &own),
            (2, "Unified", "1024K", &own),
            (3, "Unified", "28160K", &all),
        ];
        for (index, (level, kind, size, cpus)) in caches.into_iter().enumerate() {
            let told = [("level", level.to_string()), ("type", kind.to_string()), ("size", size.to_string())];
            for (name, text) in told.into_iter().chain([("shared_cpu_list", cpus.clone())]) {
                add(&format!("cache/index{index}/{name}"), &text);
            }
        }
    }
    files.push(("/proc/cpuinfo".to_string(), cpuinfo));
    for node in 0..2u32 {
        let place = format!("/sys/devices/system/node/node{node}");
        let first = 2 * node;
        files
            .push((format!("{place}/cpulist"), format!("{first}-{},{}-{}", first + 1, first + 4, first + 5)));
        files.push((format!("{place}/distance"), if node == 0 { "10 21" } else { "21 10" }.to_string()));
        files.push((format!("{place}/meminfo"), format!("Node {node} MemTotal: 98500000 kB\n")));
    }
    files
}

/// A printout of two sockets and twelve modules of 16 GB, in dmidecode's form.
fn modules(sockets: u32, gigabytes: u32) -> String {
    let mut text = "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.2.0 present.\n".to_string();
    for socket in 1..=sockets {
        text.push_str(&format!(
            "\nHandle 0x040{socket}, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU{socket}\n\
             \tType: Central Processor\n\tVersion: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n\tStatus: Populated, Enabled\n"
        ));
    }
    text.push_str(
        "\nHandle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n\tNumber Of Devices: 12\n",
    );
    for slot in 0..12 {
        text.push_str(&format!(
            "\nHandle 0x11{slot:02}, DMI type 17, 84 bytes\nMemory Device\n\tArray Handle: 0x1000\n\tData Width: 64 bits\n\
             \tSize: {gigabytes} GB\n\tForm Factor: DIMM\n\tLocator: A{}\n\tType: DDR4\n\tSpeed: 2933 MT/s\n\
             \tSerial Number: 7QK3XW29\n",
            slot + 1
        ));
    }
    text + "\nHandle 0xFEFF, DMI type 127, 4 bytes\nEnd Of Table\n"
}

/// A tar archive by its entries: name, kind, link, content.
#[derive(Default)]
struct Made(Vec<u8>);

impl Made {
    fn entry(&mut self, name: &str, kind: u8, link: &str, content: &[u8]) -> &mut Made {
        self.sized(name, kind, link, content.len() as u64, content)
    }

    fn sized(&mut self, name: &str, kind: u8, link: &str, size: u64, content: &[u8]) -> &mut Made {
        let mut header = [0u8; 512];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &name.as_bytes()[..name.len().min(100)]);
        put(100, b"0000644\0");
        put(124, format!("{size:011o}\0").as_bytes());
        put(156, &[kind]);
        put(157, &link.as_bytes()[..link.len().min(100)]);
        put(257, b"ustar\x0000");
        put(148, b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(header);
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(&mut self, name: &str, text: &str) -> &mut Made {
        self.entry(name, b'0', "", text.as_bytes())
    }

    fn done(&self) -> Vec<u8> {
        [self.0.as_slice(), &[0; 1024]].concat()
    }
}

/// The files of a host below a folder of the archive's own.
fn tree(folder: &str, files: &[(String, String)]) -> Made {
    let mut made = Made::default();
    made.entry(&format!("{folder}/"), b'5', "", b"");
    for (path, text) in files {
        made.file(&format!("{folder}{path}"), text);
    }
    made
}

/// The same in each of the ways in which archives are packed.
fn packed(archive: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(archive).expect("packs");
    let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip.write_all(archive).expect("packs");
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).expect("packs");
    xz.write_all(archive).expect("packs");
    [
        ("gzip", gzip.finish().expect("packs")),
        ("bzip2", bzip.finish().expect("packs")),
        ("xz", xz.finish().expect("packs")),
    ]
}

fn read_bytes(bytes: &[u8]) -> Result<Snapshot, String> {
    read_from(bytes, UNPACKED)
}

fn machine_of(bytes: &[u8]) -> Machine {
    let snapshot = read_bytes(bytes).expect("an archive");
    // What is saved and read again says the same.
    let mut again = snapshot.clone();
    again.blank();
    assert!(again == snapshot, "blanked twice");
    Machine::from(&snapshot)
}

/// The same host, wherever it was read from.
fn plain(machine: &Machine) -> Machine {
    Machine { archive: None, ..machine.clone() }
}

fn in_folder(files: &[(String, String)]) -> (tempfile::TempDir, Machine) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    let machine = Machine::from(&crate::read(folder.path()));
    (folder, machine)
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().expect("a parent")).expect("creates");
    fs::write(path, text).expect("writes");
}

/// What lscpu and numactl print of the made host.
const LSCPU: &str = "Architecture:          x86_64\nCPU(s):                8\nOn-line CPU(s) list:   0-7\n\
    Thread(s) per core:    2\nCore(s) per socket:    2\nSocket(s):             2\nNUMA node(s):          2\n\
    Vendor ID:             GenuineIntel\nModel name:            Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n\
    L1d cache:             128 KiB (4 instances)\nNUMA node0 CPU(s):     0,1,4,5\nNUMA node1 CPU(s):     2,3,6,7\n";
const NUMACTL: &str = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 4 5\nnode 0 size: 96191 MB\nnode 0 free: 1 MB\n\
    node 1 cpus: 2 3 6 7\nnode 1 size: 96191 MB\nnode 1 free: 1 MB\nnode distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n";
const UNAME: &str = "Linux db7 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian x86_64 GNU/Linux\n";

/// A sosreport of the made host, with its link in the top folder.
fn sosreport(printout: &str) -> Made {
    let mut made = tree("sosreport-db7-2026-11-29-abcdefg", &made());
    let top = |file: &str| format!("sosreport-db7-2026-11-29-abcdefg/{file}");
    made.entry(&top("dmidecode"), b'2', "sos_commands/hardware/dmidecode", b"");
    made.file(&top("sos_commands/hardware/dmidecode"), printout);
    made.file(&top("sos_commands/processor/lscpu"), LSCPU);
    made.file(&top("sos_commands/numa/numactl_--hardware"), NUMACTL);
    made.file(&top("sos_commands/kernel/uname_-a"), UNAME);
    made.file(&top("sos_commands/host/hostname"), "db7\n");
    made.file(&top("var/log/messages"), "of no use");
    made
}

#[test]
fn a_sosreport_packed_or_not_is_the_machine_of_its_folder() {
    let (folder, live) = in_folder(&made());
    assert_eq!(live.cpus.packages.as_ref().map(Vec::len), Some(2));
    let archive = sosreport(&modules(2, 16)).done();
    let machine = machine_of(&archive);
    assert_eq!(plain(&machine).dimms.len(), 12);
    let without = Machine {
        dimms: Vec::new(),
        population: live.population.clone(),
        dmi: live.dmi.clone(),
        ..plain(&machine)
    };
    assert_eq!(without, live);
    let told = machine.archive.clone().expect("an archive");
    assert_eq!(told.kind, "sosreport");
    assert_eq!((told.contradictions, told.absent, told.counted), Default::default());
    assert_eq!(told.sources.len(), 5, "{:?}", told.sources);
    assert_eq!(told.sources[0], "dmidecode (sos_commands/hardware/dmidecode)");
    for (packer, packed) in packed(&archive) {
        assert_eq!(machine_of(&packed), machine, "{packer}");
    }
    // Unpacked, with the folder that it came in and without.
    let root = folder.path().join("sosreport-db7");
    for (path, text) in made() {
        write(&root, &path, &text);
    }
    for (path, text) in [
        ("sos_commands/hardware/dmidecode", modules(2, 16).as_str()),
        ("sos_commands/processor/lscpu", LSCPU),
        ("sos_commands/numa/numactl_--hardware", NUMACTL),
        ("sos_commands/kernel/uname_-a", UNAME),
        ("sos_commands/host/hostname", "db7\n"),
    ] {
        write(&root, path, text);
    }
    fs::remove_dir_all(folder.path().join("proc")).expect("removes");
    fs::remove_dir_all(folder.path().join("sys")).expect("removes");
    for place in [root.as_path(), folder.path()] {
        assert_eq!(Machine::from(&read(place).expect("a folder")), machine);
    }
    // No one's serial numbers come along.
    let snapshot = read_bytes(&archive).expect("an archive");
    assert!(!format!("{snapshot:?}").contains("7QK3XW29"));
}

#[test]
fn insights_in_either_form() {
    let (_folder, live) = in_folder(&made());
    for inner in ["", "/data"] {
        let folder = format!("insights-db7-20261129{inner}");
        let mut made = tree(&folder, &made());
        made.file(&format!("{folder}/insights_commands/lscpu"), LSCPU);
        made.file(&format!("{folder}/insights_commands/uname_-a"), UNAME);
        made.file(&format!("{folder}/insights_commands/dmidecode"), &modules(2, 16));
        made.file("insights-db7-20261129/meta_data/insights.specs.lscpu.json", "{}");
        let machine = machine_of(&made.done());
        assert_eq!(machine.cpus, live.cpus, "{folder}");
        assert_eq!(
            (machine.nodes, machine.caches, machine.memory),
            (live.nodes.clone(), live.caches.clone(), live.memory.clone())
        );
        let told = machine.archive.expect("an archive");
        assert_eq!((told.kind.as_str(), told.sources.len(), told.contradictions.len()), ("insights", 3, 0));
    }
}

#[test]
fn a_supportconfig_is_cut_into_its_sections() {
    let (_folder, live) = in_folder(&made());
    let files = made();
    let content = |path: &str| {
        let text = &files.iter().find(|(known, _)| known == path).expect("a file").1;
        // It leaves out empty lines.
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        format!("#==[ Configuration File ]===========================#\n# {path}\n{}\n\n\n", lines.join("\n"))
    };
    let command = |line: &str, text: &str| {
        format!("#==[ Command ]======================================#\n# {line}\n{text}\n")
    };
    let top = "scc_db7_261129_1200";
    let mut archive = Made::default();
    archive.file(&format!("{top}/basic-environment.txt"), &command("/bin/uname -a", UNAME));
    let mut hardware = command("/usr/bin/lscpu", LSCPU) + &content("/proc/cpuinfo");
    hardware +=
        "#==[ Configuration File ]===========================#\n# /proc/bus/usb/devices - File not found\n\n";
    hardware += &command("/usr/sbin/dmidecode", &modules(2, 16));
    archive.file(&format!("{top}/hardware.txt"), &hardware);
    let memory = content("/proc/meminfo") + &command("/usr/bin/numactl --hardware", NUMACTL);
    archive.file(&format!("{top}/memory.txt"), &memory);
    let open = command(
        "/usr/bin/grep -H . /sys/devices/system/cpu/vulnerabilities/*",
        "/sys/devices/system/cpu/vulnerabilities/mds:Not affected\n/sys/devices/system/cpu/vulnerabilities/l1tf:Mitigation: PTE Inversion",
    );
    archive.file(&format!("{top}/security-apparmor.txt"), &open);
    let machine = machine_of(&archive.done());
    // Cores and packages by /proc/cpuinfo, nodes by numactl; no source reports who shares a cache.
    assert_eq!(machine.cpus.packages, live.cpus.packages);
    let sets = |machine: &Machine| {
        let cores = machine.cpus.cores.clone().expect("cores");
        cores.into_iter().map(|core| (core.cpus, core.package)).collect::<Vec<_>>()
    };
    assert_eq!(sets(&machine), sets(&live));
    assert_eq!(machine.cpus.model, live.cpus.model);
    assert_eq!(machine.memory.total_bytes, live.memory.total_bytes);
    assert_eq!(machine.kernel.mitigations["l1tf"], "Mitigation: PTE Inversion");
    assert_eq!(
        (machine.host.as_deref(), machine.kernel.release.as_deref()),
        (Some("db7"), Some("6.1.0-13-amd64"))
    );
    assert_eq!(
        machine.nodes.iter().map(|node| node.distances.clone()).collect::<Vec<_>>(),
        [[10, 21], [21, 10]]
    );
    assert_eq!(machine.dimms.len(), 12);
    let told = machine.archive.expect("an archive");
    assert_eq!((told.kind.as_str(), told.absent), ("supportconfig", vec!["caches".to_string()]));
    assert_eq!(told.contradictions, Vec::<String>::new());
}

#[test]
fn what_is_kept_of_an_archive() {
    for path in [
        "x/proc/stat",
        "x/dev/cpuset/a/cpus",
        "x/data/sys/block/sda/size",
        "x/sos_commands/a/lscpu",
        "x/hardware.txt",
    ] {
        assert!(is_wanted(path), "{path}");
    }
    for path in
        ["x/var/log/messages", "x/proc/4711/maps", "x/sos_commands/a/dmesg", "x/etc/passwd", "x/../proc/stat"]
    {
        assert!(!is_wanted(path), "{path}");
    }
}

#[test]
fn a_plain_tree_in_an_archive_is_the_tree() {
    let (folder, live) = in_folder(&made());
    for root in ["", "somewhere", "./somewhere"] {
        let machine = machine_of(&tree(root, &made()).done());
        assert_eq!(machine, live, "{root}");
    }
    assert_eq!(read(folder.path()).expect("a folder"), crate::read(folder.path()));
}
