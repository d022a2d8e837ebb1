//! Physical ceilings: of a core, by a benchmark that claims too much; of memory, by modules that are too slow.

use serde_json::json;

use super::edited::{Edit, server_of};
use super::live::Live;
use super::{Case, case};
use crate::runs::{findings, pretended, series};
use crate::synthetic::Tree;

/// A clean server of one package with so many modules of this speed.
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
    let words =
        format!("--only memory.bandwidth --pretend 7 --profile standard --root {}", tree.root().display());
    case("reads from memory", Edit::of(&words).diagnosed())
}

/// The published figures of a "cold" file that was a fresh copy: mapped, it was read faster than the same machine read
/// its memory.
fn cold_files_at(gb_per_s: f64) -> Edit {
    let mut run = Edit::invented("memory.bandwidth,file.mmap");
    let invented = |bytes: f64| 200.0 / (1.0 + bytes / 1e6).sqrt();
    run.scaled("memory.bandwidth", "bytes", |bytes| 4.97976 / invented(bytes));
    run.scaled("file.mmap", "bytes", |_| gb_per_s / 1.2);
    run
}

/// A steady case, the last window of whose third visit lasted so long.
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
        assert!(finding["headline"].as_str().is_some_and(|text| text.contains("file.mmap")));
    }
    let warm = case("a fresh copy called cold", warm);
    vec![case("a benchmark that claims too much", core), warm, memory, shared, short, long, idle]
}

pub fn what_the_hardware_can_do() -> Vec<Case> {
    // Close to the ceiling of a core of 3 GHz: 16 operations a cycle would be 48 a nanosecond.
    let mut close = Edit::of(&pretended("selftest.steady"));
    close.repeated(10, 0.002, |_| 2.0 * 45.0);
    vec![
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
