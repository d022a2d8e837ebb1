//! `assay memmap` itself: real maps of a few MiB, a slow region that was planted, and limits that
//! it keeps.

use serde_json::Value;

use crate::host::skipped;
use crate::runs::{Ended, end, recorded, results};
use crate::synthetic::Tree;

/// `assay memmap` with these words, into a folder.
fn memmap(dir: &std::path::Path, words: &str) -> std::process::Command {
    let mut command = crate::assay();
    command.arg("memmap").arg("--out").arg(dir).args(["--force"]).args(words.split_whitespace());
    command
}

/// It ended with a report; with 3 where others kept this host so busy that no number is to be
/// believed.
fn sane(ended: &Ended) {
    assert!(ended.sane().code == 0 || ended.code == 3, "{ended:?}");
}

/// A planted slow region is found: the region reads three times as much as is counted.
#[test]
fn a_planted_region_is_found_with_ratio_and_share() {
    let dir = tempfile::tempdir().expect("a folder");
    // Others may disturb this machine: a map whose noise allows no answer is made again, larger.
    let mut said = Vec::new();
    for rounds in [9, 15, 25] {
        let words = format!("--chunk 1M --max 128M --rounds {rounds} --plant slow:25%@3 --new");
        sane(&end(&mut memmap(dir.path(), &words)));
        let results = results(dir.path());
        let map = &results["memory_maps"][0];
        said.push(map["words"].to_string());
        if map["answer"] != "several_speeds" {
            continue;
        }
        // Three is planted; on a busy host six was seen.
        let ratio = map["ratio"].as_f64().expect("one");
        assert!(ratio > 1.8, "ratio {ratio}: {}", map["words"]);
        // Other chunks may lie between, whatever slows them here; the slowest are those that were
        // planted.
        let letters = map["map"].as_str().expect("letters");
        let (quarter, slow) = (letters.len() / 4, |letters: &str| letters.matches('S').count());
        assert!((quarter * 3 / 4..=quarter * 5 / 4).contains(&slow(letters)), "{}: {letters}", map["words"]);
        assert!(slow(&letters[quarter..2 * quarter]) * 10 >= quarter * 9, "{letters}");
        let share = map["slow_share"].as_f64().expect("one");
        assert!(share >= slow(letters) as f64 / letters.len() as f64 - 1e-9, "{share}: {letters}");
        let rules: Vec<&str> = results["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["rule"].as_str())
            .collect();
        assert!(rules.contains(&"memory-two-speeds"), "{rules:?}");
        return;
    }
    panic!("not found in three maps: {said:?}");
}

/// Huge pages of the system's pool among base pages, where that has some free: nothing here fills
/// it.
#[test]
fn planted_pages_of_the_pool_are_read() {
    const NEEDED: u64 = 4 * 16;
    let test = "planted_pages_of_the_pool_are_read";
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let free: u64 = free.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let dir = tempfile::tempdir().expect("a folder");
    let map = "--chunk 32M --max 512M --rounds 2 --plant hugetlb:25% --new";
    let ended = end(&mut memmap(dir.path(), map));
    if free < NEEDED {
        ended.expect(3).sane();
        let said: Vec<&str> = ended.out.split_whitespace().collect();
        assert!(said.join(" ").contains("the hugetlb pool has"), "{}", ended.out);
        return skipped(test, format!("the pool has {free} free pages of {NEEDED}"));
    }
    sane(&ended);
    let run = crate::runs::read(&crate::runs::run_file(dir.path()));
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits[0].reason);
    let after = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    assert_eq!(after.expect("readable").trim(), free.to_string(), "all given back");
}

/// A map without a plant ends with one of its answers, in text, JSON and page.
#[test]
fn a_map_of_this_machine_has_an_answer() {
    let dir = tempfile::tempdir().expect("a folder");
    let ended = end(&mut memmap(dir.path(), "--chunk 4M --max 160M --rounds 6 --all"));
    sane(&ended);
    let results = results(dir.path());
    let map = &results["memory_maps"][0];
    assert!(["several_speeds", "uniform", "inconclusive"].contains(&map["answer"].as_str().expect("one")));
    assert_eq!(
        map["relative"].as_array().map(Vec::len),
        map["chunks"].as_u64().map(|chunks| chunks as usize)
    );
    let chunks = map["chunks"].as_u64().expect("chunks");
    assert!(chunks * map["chunk_bytes"].as_u64().expect("bytes") <= 160 << 20);
    let page = std::fs::read_to_string(dir.path().join("report.html")).expect("a page");
    assert!(page.contains("memory-map-allocation"), "no picture");
    // Chunks stand in the map, not in the table of results: no line names one by its number.
    assert!(ended.out.contains("Map of the memory"), "{}", ended.out);
    let named = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).any(|pair| pair[0] == "chunk" && pair[1].parse::<u32>().is_ok())
    };
    let named: Vec<&str> = ended.out.lines().filter(|line| named(line)).collect();
    // The median one may have 7 GB/s.
    assert!(named.iter().all(|line| line.contains("Median chunk")), "{named:?}");
}

/// The plan of one node on the recorded host, with these files changed.
fn planned(words: &str) -> Value {
    let dir = tempfile::tempdir().expect("a folder");
    let words = format!("{words} --dry-run --json");
    let ended = end(&mut memmap(dir.path(), &words));
    ended.expect(0);
    serde_json::from_str(&ended.out).expect("JSON")
}

/// Bytes that the only runnable case wants.
fn bytes(plan: &Value) -> u64 {
    let planned = plan["plan"].as_array().expect("a list");
    assert_eq!(planned.len(), 1, "{planned:?}");
    planned[0]["memory_bytes"].as_u64().expect("a number")
}

#[test]
fn groups_of_both_versions_and_max_bound_it() {
    let recorded = format!("--pretend 7 --from {}", recorded());
    let (all, some) = (bytes(&planned(&recorded)), bytes(&planned(&format!("{recorded} --max 1G"))));
    // What looks at it need comes beside it.
    assert!(some <= (1 << 30) + (64 << 20) && all > some, "{all} {some}");
    for (version, files) in
        [(2, ["memory.max", "memory.current"]), (1, ["memory.limit_in_bytes", "memory.usage_in_bytes"])]
    {
        let tree = Tree::new();
        tree.file("/sys/devices/system/cpu/online", "0-1");
        tree.file("/proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n");
        let (group, mount) = match version {
            2 => ("0::/job\n", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"),
            _ => ("3:memory:/job\n", "cgroup /sys/fs/cgroup cgroup rw,memory 0 0"),
        };
        tree.file("/proc/self/cgroup", group);
        tree.file("/proc/self/mounts", mount);
        tree.file(&format!("/sys/fs/cgroup/job/{}", files[0]), "5368709120");
        tree.file(&format!("/sys/fs/cgroup/job/{}", files[1]), "1073741824");
        let held = bytes(&planned(&format!("--pretend 7 --root {}", tree.root().display())));
        // 0.8 of the 4 GiB that the group leaves, and the plan's own 0.7.
        assert!(held <= (4u64 << 30) / 5 * 4 && held > 1 << 30, "version {version}: {held}");
    }
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    for words in ["--max 0", "--max 8X", "--limit 0%", "--rounds 0", "--only memory", "--plant x"] {
        let ended = end(&mut memmap(dir.path(), words));
        ended.expect(2);
    }
    let ended = end(&mut memmap(dir.path(), "--node 4000 --chunk 1M --max 64M"));
    ended.expect(3).sane();
    let said: Vec<&str> = ended.out.split_whitespace().collect();
    assert!(said.join(" ").contains("node 4000 has no memory"), "{}", ended.out);
}
