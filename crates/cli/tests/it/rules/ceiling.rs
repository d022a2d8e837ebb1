//! Physical ceilings: of a core, by a benchmark that claims too much; of memory, by modules that
//! are too slow.

use serde_json::json;

use super::edited::{Edit, server_of};
use super::live::Live;
use super::{Case, case};
use crate::runs::{findings, pretended, series};
use crate::synthetic::Tree;

/// A clean server of one package with `count` modules of this speed.
fn with_modules(count: usize, speed: u16) -> Tree {
    let tree = server_of(1);
    tree.memory_modules(&vec![("A1", 16384, speed, speed); count]);
    tree
}

/// Two modules, one of which moves less than is invented and both together more, on these channels.
fn on_channels(channels: [u32; 2]) -> Tree {
    let tree = server_of(1);
    let names = channels.map(|channel| format!("P0_Node0_Channel{channel}_Dimm"));
    let slots =
        [(format!("{}0", names[0]), 16384, 4800, 4800), (format!("{}1", names[1]), 16384, 4800, 4800)];
    tree.memory_modules(
        &slots.each_ref().map(|(name, size, rated, now)| (name.as_str(), *size, *rated, *now)),
    );
    tree
}

/// Invented reads, also of blocks beyond the cache of the server: some 24 GB/s.
fn reads_from_memory(tree: &Tree) -> Case {
    let words = format!("--only memory.bandwidth --pretend 7 --quick --root {}", tree.root().display());
    case("reads from memory", Edit::of(&words).diagnosed())
}

/// The published figures of a "cold" file that was a fresh copy: mapped, it was read faster than
/// the same host read its memory.
fn cold_files_at(gb_per_s: f64) -> Edit {
    let mut run = Edit::invented("memory.bandwidth,file.mmap");
    let invented = |bytes: f64| 200.0 / (1.0 + bytes / 1e6).sqrt();
    run.scaled("memory.bandwidth", "bytes", |bytes| 4.97976 / invented(bytes));
    run.scaled("file.mmap", "bytes", |_| gb_per_s / 1.2);
    run
}

/// A steady case, the last window of whose third visit lasted `ns` nanoseconds.
fn with_a_window_of(ns: f64) -> Case {
    let mut run = Edit::invented("selftest.steady");
    run.samples(|visit, samples| {
        if visit == 2 {
            samples["ns"][5] = json!(ns);
            // The value is as it always was.
            samples["work"][5] = json!(samples["work"][4].as_f64().expect("a number") * ns / 2e6);
        }
    });
    case(format!("a window of {ns} ns"), run.diagnosed())
}

/// A steady case that did nothing in any window.
fn without_work() -> Case {
    let mut run = Edit::invented("selftest.steady");
    run.samples(|_, samples| samples["work"] = json!(0.0));
    case("windows without work", run.diagnosed())
}

pub fn more_than_the_core_or_the_memory_can_do() -> Vec<Case> {
    let core = Live::of("--only selftest.too-fast --budget 5s").ending(3).run();
    let found = findings(&core, "above-ceiling");
    assert!(
        found.len() == 1 && found[0]["series"].as_array().is_some_and(|keys| keys.len() == 1),
        "{found:?}"
    );
    let memory = reads_from_memory(&with_modules(1, 400));
    let found = findings(&memory.results, "above-ceiling");
    assert!(!found.is_empty());
    for finding in found {
        // Blocks within the caches are none of the modules' business.
        let key = finding["series"][0].as_str().expect("a key");
        assert!(finding["facts"][1]["source"].as_str().is_some_and(|source| source.contains("SMBIOS")));
        assert!(key.contains("bytes=") && !key.contains("bytes=32768#"), "{key}");
    }
    let shared = reads_from_memory(&on_channels([0, 0]));
    let found = findings(&shared.results, "above-ceiling");
    assert!(!found.is_empty());
    for finding in found {
        let key = finding["series"][0].as_str().expect("a key");
        assert!(key.ends_with("#bandwidth"), "what the bus carried is reckoned: {key}");
        assert!(finding["facts"][1]["source"].as_str().is_some_and(|source| source.contains("channels")));
    }
    let (short, long, idle) = (with_a_window_of(0.5), with_a_window_of(101e6), without_work());
    for timed in [&short, &long, &idle] {
        assert_eq!(series(&timed.results, "selftest.steady")["verdict"], "rejected", "{}", timed.what);
    }
    let warm = cold_files_at(7.94887).diagnosed();
    let found = findings(&warm, "above-ceiling");
    let keys: Vec<&str> = found.iter().filter_map(|finding| finding["series"][0].as_str()).collect();
    assert!(keys.iter().any(|key| key.contains("cache=cold") && key.ends_with("#io")), "{keys:?}");
    for finding in found {
        assert!(finding["facts"][1]["source"].as_str().is_some_and(|source| source.contains("op=read")));
        assert!(finding["headline"].as_str().is_some_and(|text| text.contains(" (limit ")));
    }
    let warm = case("a fresh copy called cold", warm);
    vec![case("a benchmark that claims too much", core), warm, memory, shared, short, long, idle]
}

pub fn what_the_hardware_can_do() -> Vec<Case> {
    // Close to the ceiling of a core of 3 GHz: 16 operations a cycle would be 48 a nanosecond.
    let mut close = Edit::of(&pretended("selftest.steady"));
    close.repeated(10, 0.002, |_| 2.0 * 45.0);
    // Other work made the core clock look like 1 GHz; the clock read beside samples is 3 GHz.
    let mut slowed = Edit::invented("selftest.steady,cpu.clock");
    slowed.samples(|_, samples| {
        let is_clock = samples["metrics"].to_string().contains("clock");
        let ns: Vec<f64> = serde_json::from_value(samples["ns"].clone()).expect("a column");
        let per_ns = if is_clock { 1.0 } else { 45.0 };
        samples["work"] = json!(ns.iter().map(|ns| ns * per_ns).collect::<Vec<f64>>());
    });
    vec![
        case("45 operations a nanosecond beside a slow clock", slowed.diagnosed()),
        reads_from_memory(&with_modules(8, 3200)),
        reads_from_memory(&on_channels([0, 1])),
        case("45 operations a nanosecond", close.diagnosed()),
        case("a file as fast as a disk", cold_files_at(3.0).diagnosed()),
        // The clock's step is 1 ns, a visit takes 100 ms.
        with_a_window_of(1.0),
        with_a_window_of(99e6),
        case("a real core", Live::steady()),
    ]
}

/// Cold files at this rate and nothing beside them, on a server whose files lie on this kind of
/// disk.
fn cold_files_on(disk: &str, gb_per_s: f64) -> serde_json::Value {
    let tree = server_of(1);
    let words = format!("--quick --only file.mmap --pretend 7 --root {}", tree.root().display());
    let mut run = Edit::of(&words);
    let probe = format!("path /data\nmagic 0xef53\ndevice 259:1\nfree_bytes 1000000000000\n{disk}");
    run.header()["snapshot"]["probe:directory"] = json!(probe);
    run.scaled("file.mmap", "bytes", |_| gb_per_s / 1.2);
    run.diagnosed()
}

#[test]
fn a_cold_file_is_no_faster_than_the_link_of_its_disk() {
    let nvme = "sysfs /sys/devices/pci0000:00/0000:3d:00.0/nvme/nvme0/nvme0n1\ncurrent_link_speed 8.0 GT/s PCIe\n\
                current_link_width 4\n";
    let sata = "sysfs /sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda\n";
    for (disk, slow, fast, link) in [(nvme, 3.0, 4.5, "8 GT/s"), (sata, 0.5, 0.7, "SATA")] {
        let fine = cold_files_on(disk, slow);
        assert!(fine["rules_clean"].as_array().expect("a list").contains(&json!("above-ceiling")), "{link}");
        let found = cold_files_on(disk, fast);
        let found = findings(&found, "above-ceiling");
        assert!(!found.is_empty(), "{link}");
        for finding in found {
            assert!(finding["series"][0].as_str().is_some_and(|key| key.contains("cache=cold")), "{finding}");
            assert!(finding["cause"].as_str().is_some_and(|cause| cause.contains(link)), "{finding}");
        }
    }
    // The rule does not apply to a disk about which nothing is reported.
    let unknown = cold_files_on("sysfs /sys/devices/virtual/block/dm-0\n", 4.5);
    assert!(unknown["rules_not_applicable"].as_array().expect("a list").contains(&json!("above-ceiling")));
}

#[test]
fn a_cold_file_without_memory_beside_it_is_not_looked_at() {
    let alone = Edit::invented("file.mmap").diagnosed();
    let keys = alone["series"].as_array().expect("a list").iter().filter_map(|one| one["key"].as_str());
    assert!(keys.into_iter().any(|key| key.contains("cache=cold")), "no cold file was measured");
    let stands_in = |results: &serde_json::Value, list: &str| {
        results[list].as_array().expect("a list").contains(&json!("above-ceiling"))
    };
    assert!(stands_in(&alone, "rules_not_applicable") && !stands_in(&alone, "rules_clean"));
    // Memory was measured beside it, and the file was slower.
    let beside = cold_files_at(3.0).diagnosed();
    assert!(stands_in(&beside, "rules_clean") && !stands_in(&beside, "rules_not_applicable"));
}
