//! Physical ceilings: of a core, by a benchmark that claims too much; of memory, by modules that are too slow.

use super::edited::{Edit, server};
use super::live::Live;
use super::{Case, case};
use crate::runs::{findings, pretended};
use crate::synthetic::Tree;

/// The clean server with these modules in each of its slots: rated and configured speed.
fn with_modules(count: usize, speed: u16) -> Tree {
    let tree = server();
    tree.memory_modules(&vec![("A1", 16384, speed, speed); count]);
    tree
}

/// Reads of 256 MiB, invented, which is beyond the caches of the server: some 12 GB/s.
fn reads_from_memory(tree: &Tree) -> Case {
    let words =
        format!("--only memory.bandwidth --pretend 7 --profile standard --root {}", tree.root().display());
    case("reads from memory", Edit::of(&words).diagnosed())
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
    vec![case("a benchmark that claims too much", core), memory]
}

pub fn what_the_hardware_can_do() -> Vec<Case> {
    // Close to the ceiling of a core of 3 GHz: 16 operations a cycle would be 48 a nanosecond.
    let mut close = Edit::of(&pretended("selftest.steady"));
    close.repeated(10, 0.002, |_| 2.0 * 45.0);
    vec![
        reads_from_memory(&with_modules(8, 3200)),
        case("45 operations a nanosecond", close.diagnosed()),
        case("a real core", Live::steady()),
    ]
}
