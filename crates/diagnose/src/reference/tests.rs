//! The worked examples of the design, and what must hold of any row.

use super::class::parent;
use super::*;
use machine::disk::{Block, Disk};
use machine::{Cache, CacheKind, Hypervisor, Machine, Numbers, Package};
use model::CpuSet;

const DRAM: &str = "memory.data-source@one-cpu+huge-pages?source=dram#latency";
const READ: &str = "disk.random@one-cpu?cache=direct&op=read/block=4096&depth=1#latency_p50";

/// A processor by vendor, name and numbers.
fn host(vendor: &str, name: &str, [family, model, stepping]: [u32; 3]) -> Machine {
    let mut machine = Machine::default();
    machine.cpus.vendor = Some(vendor.to_string());
    machine.cpus.model = Some(name.to_string());
    machine.cpus.architecture = Some("x86_64".to_string());
    machine.cpus.numbers = Some(Numbers { family, model, stepping });
    machine.hypervisor = Hypervisor::None;
    machine
}

fn with_disk(mut machine: Machine, kind: machine::disk::Kind, rotational: bool) -> Machine {
    let block = Block { name: "x".into(), kind, rotational: Some(rotational), ..Block::default() };
    machine.disk = Some(Disk { stack: vec![block], ..Disk::default() });
    machine
}

/// The guest of the design's first screen.
fn xeon_6_guest() -> Machine {
    let mut machine = host("GenuineIntel", "Intel(R) Xeon(R) Processor", [6, 173, 1]);
    machine.hypervisor = Hypervisor::Guest("kvm".to_string());
    machine.kernel.mitigations.insert("meltdown".to_string(), "Not affected".to_string());
    with_disk(machine, machine::disk::Kind::Virtio, true)
}

fn bare(name: &str, numbers: [u32; 3]) -> Machine {
    host(if name.contains("EPYC") { "AuthenticAMD" } else { "GenuineIntel" }, name, numbers)
}

/// A bare host with packages of CPUs that all may be used, and one cache each.
fn with_sockets(mut machine: Machine, cpus: &[&str], cache: u64) -> Machine {
    let set = |text: &&str| CpuSet::parse_list(text).expect("a list");
    let package = |(id, text)| Package { id: id as i64, cpus: set(text) };
    machine.cpus.packages = Some(cpus.iter().enumerate().map(package).collect());
    machine.cpus.online = cpus.iter().flat_map(|text| set(text).iter().collect::<Vec<u32>>()).collect();
    machine.cpus.allowed = machine.cpus.online.clone();
    let of = |text: &&str| Cache { size_bytes: Some(cache), ..Cache::new(3, CacheKind::Unified, set(text)) };
    machine.caches = cpus.iter().map(of).collect();
    machine
}

fn read(machine: &Machine, key: &str, value: f64, interval: [f64; 2], unit: &str) -> Option<Reading> {
    let references = References::published();
    references.reading(&references.class_of(machine), key, value, Some(interval), unit)
}

/// `slow`, `normal ~`, `fast ~ a cache?`, `normal ? slow`; `-` where there is no reference.
fn said(machine: &Machine, key: &str, value: f64, interval: [f64; 2], unit: &str) -> String {
    let Some(reading) = read(machine, key, value, interval, unit) else { return "-".to_string() };
    let mut words = reading.word.words(Quality::Speed).to_string();
    words.push_str(if reading.wide { " ~" } else { "" });
    let unsure = reading.unsure.map(|word| format!(" ? {}", word.words(Quality::Speed)));
    let suspicion = reading.suspicion.map(|text| format!(" {text}"));
    words + &unsure.unwrap_or_default() + &suspicion.unwrap_or_default()
}

#[test]
fn the_first_screen_of_a_small_guest() {
    let guest = xeon_6_guest();
    let said = |key: &str, value, interval, unit: &str| said(&guest, key, value, interval, unit);
    assert_eq!(said(DRAM, 165.0, [163.0, 166.0], "ns"), "slow");
    assert_eq!(said("syscall.getpid@one-cpu#latency", 0.081, [0.076, 0.086], "µs"), "normal ~");
    assert_eq!(said(READ, 57.3, [46.0, 67.0], "µs"), "fast ~ a cache?");
    let modified = "memory.data-source@same-llc?source=core-modified#latency";
    assert_eq!(said(modified, 78.0, [57.0, 83.0], "ns"), "normal");
    assert_eq!(said("process.exec@one-cpu?program=minimal#latency", 101.0, [94.0, 108.0], "µs"), "-");
    assert_eq!(said("cpu.clock@one-cpu#clock", 3.73, [3.47, 3.99], "GHz"), "normal ~");
    let read = "memory.bandwidth@all+huge-pages?op=read/bytes=134217728#bandwidth";
    assert_eq!(said(read, 33.7, [33.0, 34.0], "GB/s"), "-");
    let switch = "sched.context-switch@same-cpu?processes=2/kb=0#latency";
    assert_eq!(said(switch, 1.03, [0.97, 1.09], "us"), "fast ~");
    assert_eq!(said("vm.page-fault@one-cpu+base-pages#latency", 802.0, [770.0, 834.0], "ns"), "normal ~");
    // A guest's faults are translated twice, and one client core says little: slow, not bad.
    let fault = "vm.page-fault@one-cpu+base-pages#latency";
    assert_eq!(said(fault, 2.78, [2.7, 2.9], "us"), "slow ~");
    let deep = "disk.random@one-cpu?cache=direct&op=read/block=4096&depth=32#iops";
    assert_eq!(said(deep, 146.0, [138.0, 154.0], "k/s"), "-");
    let sync = "disk.sync@one-cpu?op=fdatasync/block=4096#latency_p50";
    assert_eq!(said(sync, 101.0, [93.0, 109.0], "us"), "normal ~");
    assert_eq!(said(sync, 3000.0, [2900.0, 3100.0], "us"), "-");
    assert_eq!(said("memory.data-source@one-cpu?source=l1#cycles", 5.1, [5.0, 5.2], "cycles"), "-");
    assert_eq!(
        said("network.tcp@same-llc?direction=send/streams=1#bandwidth", 19.0, [18.0, 20.0], "Gbit/s"),
        "-"
    );
}

#[test]
fn bands_say_where_they_come_from() {
    let references = References::published();
    let host = references.class_of(&xeon_6_guest());
    assert_eq!(host.words(), "Intel Xeon 6 (Granite Rapids)");
    assert_eq!(references.words(&host), "published, Intel Xeon 6 (Granite Rapids)");
    let band = references.band(&host, DRAM, "ns").expect("a band");
    assert_eq!([band.low, band.high], [Some(102.0), Some(138.7)]);
    let slow = references.reading(&host, DRAM, 165.0, Some([163.0, 166.0]), "ns").expect("a reading");
    let unsure = references.reading(&host, DRAM, 150.0, Some([140.0, 170.0]), "ns").expect("a reading");
    assert_eq!([slow.is_certain(), unsure.is_certain()], [true, false]);
    assert_eq!((band.class.as_str(), band.wide, band.sure), ("Xeon 6 (Granite Rapids)", false, Sure::Medium));
    assert!(band.sources.iter().all(|source| source.date == "2025-03-25"));
    let band = references.band(&host, "syscall.getpid@one-cpu#latency", "µs").expect("a band");
    assert_eq!(
        [band.low, band.high].map(|end| end.map(|end| (1e6 * end).round())),
        [Some(51e3), Some(237e3)]
    );
    assert_eq!((band.class.as_str(), band.wide), ("x86, any kernel", true));
    assert!(band.sources[0].date.starts_with("2019"), "{}", band.sources[0].date);
    let band = references.band(&host, READ, "us").expect("a band");
    assert_eq!((band.class.as_str(), band.low, band.high), ("any NVMe", Some(92.0), Some(150.0)));
    let band = references.band(&host, "cpu.clock@one-cpu#clock", "GHz").expect("a band");
    assert_eq!((band.low, band.high, band.kind), (None, Some(3.9), Kind::Specified));
    let json = serde_json::to_value(&band).expect("JSON");
    assert_eq!((&json["kind"], &json["table"]), (&"specified".into(), &"published".into()));
}

#[test]
fn rows_of_a_kernel_a_model_and_a_socket() {
    let mut old = bare("Intel(R) Xeon(R) Silver 4108 CPU @ 1.80GHz", [6, 85, 4]);
    old.kernel.mitigations.insert("meltdown".to_string(), "Mitigation: PTI".to_string());
    let call = "syscall.getpid@one-cpu#latency";
    assert_eq!(said(&old, call, 240.0, [238.0, 242.0], "ns"), "normal");
    assert_eq!(said(&old, call, 81.0, [80.0, 82.0], "ns"), "fast");

    // The boost of another model is no reference for this one; a hidden model does not count as
    // slow.
    let clock = |name: &str, value: f64| {
        let machine = bare(name, [6, 106, 6]);
        said(&machine, "cpu.clock@one-cpu#clock", value, [0.99 * value, 1.01 * value], "GHz")
    };
    assert_eq!(clock("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 3.38), "normal");
    assert_eq!(clock("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 2.3), "slow");
    assert_eq!(clock("Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", 2.3), "-");
    assert_eq!(clock("Intel(R) Xeon(R) Processor @ 2.90GHz", 2.3), "-");

    let name = "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz";
    let two = with_sockets(bare(name, [6, 106, 6]), &["0-31", "32-63"], 48 << 20);
    let all = |machine: &Machine, bytes: u64, value: f64| {
        let key = format!("memory.bandwidth@all+huge-pages?op=read/bytes={bytes}#bandwidth");
        said(machine, &key, value, [value; 2], "GB/s")
    };
    assert_eq!(all(&two, 64 << 20, 350.0), "normal");
    assert_eq!(all(&two, 64 << 20, 201.0), "bad");
    assert_eq!(all(&two, 1 << 20, 3500.0), "-");
    let mut part = two.clone();
    part.cpus.allowed = CpuSet::parse_list("0-7").expect("a list");
    assert_eq!(all(&part, 64 << 20, 60.0), "-");
    let mut guest = two.clone();
    guest.hypervisor = Hypervisor::Guest("kvm".to_string());
    assert_eq!(all(&guest, 64 << 20, 60.0), "-");

    // Lines of the other socket and of the own one are two figures; pairs by number, too.
    let line = |place: &str, value| {
        let key = format!("memory.data-source@{place}?source=core-modified#latency");
        said(&two, &key, value, [value; 2], "ns")
    };
    assert_eq!([line("same-llc", 127.0), line("other-package", 127.0)], ["bad", "normal"]);
    let pair_of = |host: &Machine, from: u32, to: u32, value| {
        let key = format!("memory.core-to-core@all/from={from}&to={to}#latency");
        let mut host = host.clone();
        let cpus = (0..64).map(|cpu| [cpu].into_iter().collect::<CpuSet>());
        host.cpus.cores = Some(cpus.map(|cpus| machine::Core { cpus, ..Default::default() }).collect());
        said(&host, &key, value, [value; 2], "ns")
    };
    let pair = |from, to, value| pair_of(&two, from, to, value);
    assert_eq!([pair(0, 1, 51.0), pair(0, 40, 51.0), pair(0, 40, 110.0)], ["normal", "fast", "normal"]);
    // A guest knows only the reported places of its CPUs.
    assert_eq!(pair_of(&guest, 0, 1, 110.0), "bad ~");
}

#[test]
fn what_cannot_be_is_not_fast() {
    let rome = with_sockets(bare("AMD EPYC 7742 64-Core Processor", [23, 49, 0]), &["0-63"], 16 << 20);
    let key = "memory.bandwidth@all?op=read/bytes=67108864#bandwidth";
    let read = |value: f64, interval| said(&rome, key, value, interval, "GB/s");
    assert_eq!(read(230.0, [220.0, 240.0]), "too good to be true");
    assert_eq!(read(210.0, [200.0, 220.0]), "-");
    let sleep = "timer.nanosleep@one-cpu?policy=other#lateness_p50";
    assert_eq!(said(&rome, sleep, 20.0, [19.0, 21.0], "us"), "too good to be true");
    assert_eq!(said(&rome, sleep, 72.0, [70.0, 75.0], "us"), "-");
}

#[test]
fn disks_by_kind() {
    let disk = |kind, rotational| {
        let machine = with_disk(bare("AMD EPYC 9654 96-Core Processor", [25, 17, 1]), kind, rotational);
        References::published().class_of(&machine).disk
    };
    use machine::disk::Kind::{Loop, Nvme, Raid, Scsi, Virtio};
    assert_eq!(disk(Virtio, true), ["disk/virtio", "disk/nvme", "disk/ssd", "any"]);
    assert_eq!(disk(Nvme, false), ["disk/nvme", "disk/ssd", "any"]);
    assert_eq!(disk(Scsi, false), ["disk/ssd", "any"]);
    for (kind, rotational) in [(Scsi, true), (Loop, false), (Raid, false)] {
        assert_eq!(disk(kind, rotational), ["any"], "{kind:?}");
    }
    let mut sata = with_disk(bare("AMD EPYC 9654 96-Core Processor", [25, 17, 1]), Scsi, false);
    let link = Some(machine::directory::Link { name: "SATA".into(), gb_per_s: 0.6 });
    sata.disk.as_mut().expect("a disk").stack[0].link = link;
    let read = "disk.sequential@one-cpu?cache=direct&op=read/block=1048576&depth=8#bandwidth";
    assert_eq!(said(&sata, read, 0.54, [0.53, 0.55], "GB/s"), "normal");
    assert_eq!(said(&sata, read, 0.1, [0.09, 0.11], "GB/s"), "bad");
    let deep = "disk.random@one-cpu?cache=direct&op=read/block=4096&depth=32#iops";
    assert_eq!(said(&sata, deep, 40.0, [39.0, 41.0], "k/s"), "normal");
}

#[test]
fn intervals_that_say_little() {
    let guest = xeon_6_guest();
    assert_eq!(said(&guest, DRAM, 150.0, [140.0, 170.0], "ns"), "normal ? slow");
    assert_eq!(said(&guest, DRAM, 150.0, [90.0, 200.0], "ns"), "-");
    assert_eq!(said(&guest, DRAM, 150.0, [f64::NEG_INFINITY, f64::INFINITY], "ns"), "-");
    for value in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        assert_eq!(said(&guest, DRAM, value, [value; 2], "ns"), "-", "{value}");
    }
    assert_eq!(said(&guest, DRAM, 150.0, [149.0, 151.0], "GB/s"), "-");
}

/// A key of each row, as a run would have it.
fn key_of(row: &Row) -> String {
    let (rest, metric) = row.metric.split_once('#').expect("a metric");
    let (head, params) = rest.split_once('?').unwrap_or((rest, ""));
    let place = match row.distances().and_then(|all| all.first()) {
        Some(table::Distance::Siblings) => "@smt-sibling",
        Some(table::Distance::SameCache) => "@same-llc",
        Some(table::Distance::SameSocket) => "@other-llc",
        Some(table::Distance::OtherSocket) => "@other-package",
        None if head.contains('@') => "",
        None => "@one-cpu",
    };
    let bytes = if row.is_of_memory() { "&bytes=1073741824" } else { "" };
    format!("{head}{place}?{params}{bytes}#{metric}")
}

#[test]
fn a_better_value_never_has_a_worse_word() {
    let names = [
        bare("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", [6, 106, 6]),
        bare("AMD EPYC 9224 24-Core Processor", [25, 17, 1]),
        bare("Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz", [6, 85, 4]),
    ];
    let hosts = names.map(|machine| with_sockets(machine, &["0-23", "24-47"], 48 << 20)).into_iter();
    let mut hosts: Vec<Machine> =
        hosts.map(|machine| with_disk(machine, machine::disk::Kind::Nvme, false)).collect();
    hosts.push(xeon_6_guest());
    let mut seen = std::collections::BTreeSet::new();
    for (machine, row) in hosts.iter().flat_map(|machine| published().iter().map(move |row| (machine, row))) {
        let key = key_of(row);
        assert!(row.kind.is_none() || row.matches(&key), "{key} of {}", row.metric);
        let end = row.high.or(row.low).unwrap_or(1.0);
        let mut words: Vec<Word> = Vec::new();
        for step in -12..=12 {
            let value = end * 1.3_f64.powi(step);
            words.extend(read(machine, &key, value, [0.95 * value, 1.05 * value], &row.unit).map(|one| {
                assert!(one.unsure.is_none_or(|worse| worse > one.word), "{key} at {value}");
                one.word
            }));
        }
        words.retain(|word| *word != Word::TooGoodToBeTrue);
        if row.better == Better::Higher {
            words.reverse();
        }
        assert!(words.is_sorted(), "{key}: {words:?}");
        seen.extend(words);
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn classes_end_at_any_or_at_their_kind() {
    for class in ["intel/xeon-6-p-core", "amd/zen2", "arm/graviton2", "disk/nvme-pcie4", "network/aws"] {
        assert!(parent(class).is_some_and(|wider| is_within(class, wider)), "{class}");
    }
    assert!(is_within("intel/skylake", "x86") && !is_within("arm/graviton2", "x86"));
    assert!(is_within("disk/nvme-pcie3", "disk/ssd") && !is_within("disk/sata-ssd", "disk/nvme"));
    assert_eq!(parent("pentium"), None);
}

#[test]
fn what_users_have_comes_first_and_is_never_mixed() {
    let guest = xeon_6_guest();
    let row = |subject: &str, place, low, high| Row {
        metric: DRAM.to_string(),
        subject: subject.to_string(),
        place,
        kind: Some(Kind::Run),
        low: Some(low),
        high: Some(high),
        sure: Sure::High,
        source: "db: host".to_string(),
        ..published()[0].clone()
    };
    let word = |references: &References, value: f64| {
        let host = references.class_of(&guest);
        references.reading(&host, DRAM, value, Some([value; 2]), "ns").map(|one| one.word)
    };
    let named = References::published().with_table("db", vec![row("any", None, 160.0, 168.0)]);
    assert_eq!(word(&named, 165.0), Some(Word::Normal));
    assert_eq!(word(&named, 150.0), Some(Word::Fast));
    assert_eq!(word(&named, 172.0), Some(Word::Slow));
    assert_eq!(named.words(&named.class_of(&guest)), "db");
    // Kept runs count for their like alone.
    let kept = |subject: &str, place| {
        References::published().with_table("db", vec![row(subject, place, 160.0, 168.0)])
    };
    assert_eq!(word(&kept("intel/xeon-6-p-core", Some(Place::Guest)), 165.0), Some(Word::Normal));
    for other in [
        kept("intel/xeon-6-p-core", Some(Place::BareMetal)),
        kept("intel/sapphire-rapids", Some(Place::Guest)),
    ] {
        assert_eq!(word(&other, 165.0), Some(Word::Slow));
        assert!(other.words(&other.class_of(&guest)).starts_with("published"));
    }
}
