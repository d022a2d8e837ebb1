//! `numactl --hardware`: nodes with their CPUs, memory and distances.

use std::collections::BTreeMap;

use model::CpuSet;

use super::Tool;
use super::reported::Reported;
use machine::archive::Subject;

pub(super) const TOOL: Tool = Tool { name: "numactl", file: "numactl --hardware", knows, read };

fn knows(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words.as_slice(), ["available:", count, "nodes", ..] if count.parse::<u32>().is_ok())
    })
}

fn read(bytes: &[u8], told: &mut Reported) {
    let text = String::from_utf8_lossy(bytes);
    let mut cpus: BTreeMap<u32, CpuSet> = BTreeMap::new();
    let mut memory = Some(0u64);
    let mut last = None;
    let mut is_matrix = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["available:", count, "nodes", ..] => told.claim_of("available", Subject::Nodes, count),
            ["node", "distances:"] => is_matrix = true,
            ["node", node, "cpus:", list @ ..] => {
                let Ok(node) = node.parse() else { continue };
                last = Some(node);
                insert(cpus.entry(node).or_default(), list);
            }
            ["node", node, what @ ("size:" | "free:"), megabytes, "MB"] => {
                last = None;
                let (Ok(node), Ok(megabytes)) = (node.parse(), megabytes.parse::<u32>()) else { continue };
                let bytes = u64::from(megabytes) << 20;
                let name = if *what == "size:" { "MemTotal" } else { "MemFree" };
                told.node_memory(node, name, bytes);
                memory = memory.filter(|_| *what == "size:").map(|sum| sum + bytes).or(memory);
            }
            [row, distances @ ..] if is_matrix && row.ends_with(':') => {
                let node = row.trim_end_matches(':').parse();
                let is_distance = |word: &&str| word.parse::<u32>().is_ok();
                if let (Ok(node), true) = (node, distances.iter().all(is_distance)) {
                    told.node(node, "distance", distances.join(" "));
                }
            }
            // A long list of CPUs goes on below.
            list => {
                if let Some(own) = last.filter(|_| !is_matrix).and_then(|node| cpus.get_mut(&node)) {
                    insert(own, list);
                }
            }
        }
    }
    for (node, cpus) in &cpus {
        told.node(*node, "cpulist", cpus);
    }
    if !cpus.is_empty() {
        told.claim(Subject::Nodes, cpus.len());
    }
    memory.filter(|bytes| *bytes > 0).into_iter().for_each(|bytes| told.claim(Subject::Memory, bytes));
    let online = CpuSet::union_of(cpus.values());
    if !online.is_empty() {
        told.online(&online);
    }
}

fn insert(cpus: &mut CpuSet, list: &[&str]) {
    list.iter().filter_map(|word| word.parse().ok()).for_each(|cpu| cpus.insert(cpu));
}
