//! lscpu: what it prints as a text, with `-J`, and its table of CPUs (`-e`, `-p`).
//!
//! The text counts sockets, cores and caches and lists the CPUs of nodes alone. Where counts leave
//! one answer (one socket, one thread a core, a cache of all CPUs), that is taken; else they stay
//! counts.

use std::collections::BTreeMap;

use model::{CpuSet, units};
use serde_json::Value;

use super::Tool;
use super::reported::{Reported, ReportedCache};
use machine::CPUS;
use machine::archive::Subject;

pub(super) const TOOL: Tool = Tool { name: "lscpu", file: "lscpu (also -J, -e, -p)", knows, read };
pub(super) const TABLE: Tool = Tool { name: "lscpu", file: TOOL.file, knows: is_table, read: read_table };

/// Lines of the text by name, those of `-J` among them.
type Lines = BTreeMap<String, String>;

fn knows(bytes: &[u8]) -> bool {
    let lines = lines(bytes);
    lines.contains_key("CPU(s)") && (lines.contains_key("Architecture") || lines.contains_key("Model name"))
}

fn lines(bytes: &[u8]) -> Lines {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Lines::new();
    if text.trim_start().starts_with('{') {
        if let Ok(tree) = serde_json::from_str::<Value>(&text) {
            gather(&tree["lscpu"], &mut found);
        }
        return found;
    }
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        found.entry(name.trim().to_string()).or_insert(value.trim().to_string());
    }
    found
}

/// Fields of `-J`, which newer versions put below others.
fn gather(list: &Value, found: &mut Lines) {
    for one in list.as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (one["field"].as_str(), one["data"].as_str()) {
            let name = name.trim_end_matches(':').trim();
            found.entry(name.to_string()).or_insert(value.trim().to_string());
        }
        gather(&one["children"], found);
    }
}

fn read(bytes: &[u8], told: &mut Reported) {
    let lines = lines(bytes);
    let text = |name: &str| lines.get(name).map(String::as_str).filter(|value| *value != "-");
    let count = |name: &str| text(name)?.parse::<usize>().ok().filter(|count| *count > 0);
    let online = text("On-line CPU(s) list").and_then(CpuSet::parse_list).or_else(|| {
        let mask = text("On-line CPU(s) mask")?;
        CpuSet::parse_mask(mask.trim_start_matches("0x"))
    });
    let offline = text("Off-line CPU(s) list").and_then(CpuSet::parse_list);
    let offline = offline.unwrap_or_default();
    let off = offline.len();
    told.file(&format!("{CPUS}/offline"), offline);
    if let Some(name) = text("Architecture") {
        told.architecture(name);
    }
    let processor = text("Model name").unwrap_or("");
    told.claim(Subject::Processor, processor);
    let sockets = count("Socket(s)");
    let threads = count("Thread(s) per core");
    let cores =
        count("Core(s) per socket").zip(sockets).and_then(|(cores, sockets)| cores.checked_mul(sockets));
    for (subject, count) in [
        (Subject::Sockets, sockets),
        (Subject::Cores, cores),
        (Subject::Threads, threads),
        (Subject::Nodes, count("NUMA node(s)")),
    ] {
        count.into_iter().for_each(|count| told.claim(subject, count));
    }
    nodes(&lines, told);
    vulnerabilities(&lines, told);
    let is_real = |online: &CpuSet| (1..=MAX_CPUS).contains(&online.len());
    if let Some(all) = count("CPU(s)") {
        // It counts those that are there, and lists which of them run.
        told.claim_of("CPU(s)", Subject::Cpus, all.saturating_sub(off));
    }
    let Some(online) = online.filter(is_real) else { return };
    told.online(&online);
    told.file("/proc/cpuinfo", cpuinfo(&lines, &online));
    if sockets == Some(1) && threads == Some(1) && cores == Some(online.len()) {
        told.cpu_folders(&online);
        for cpu in online.iter() {
            told.topology(cpu, "physical_package_id", 0);
            told.topology(cpu, "core_cpus_list", cpu);
        }
    } else if sockets == Some(1) {
        told.cpu_folders(&online);
        online.iter().for_each(|cpu| told.topology(cpu, "physical_package_id", 0));
    }
    caches(&lines, &online, told);
}

/// Linux is built for no more.
const MAX_CPUS: usize = 8192;

/// What lscpu took from there, in /proc/cpuinfo's words.
fn cpuinfo(lines: &Lines, online: &CpuSet) -> String {
    let names = [
        ("Vendor ID", "vendor_id"),
        ("CPU family", "cpu family"),
        ("Model", "model"),
        ("Model name", "model name"),
        ("Stepping", "stepping"),
        ("Flags", "flags"),
    ];
    let is_x86 = lines.get("Architecture").is_some_and(|name| name.contains("86"));
    let mut text = String::new();
    for (at, cpu) in online.iter().enumerate() {
        text.push_str(&format!("processor\t: {cpu}\n"));
        for (theirs, ours) in names.iter().filter(|_| at == 0) {
            let ours = if *ours == "flags" && !is_x86 { "Features" } else { ours };
            if let Some(value) = lines.get(*theirs) {
                text.push_str(&format!("{ours}\t: {value}\n"));
            }
        }
        text.push('\n');
    }
    text
}

fn nodes(lines: &Lines, told: &mut Reported) {
    for (name, list) in lines {
        let number = name.strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"));
        let Some(node) = number.and_then(|number| number.parse().ok()) else { continue };
        if let Some(cpus) = CpuSet::parse_list(if list == "-" { "" } else { list }) {
            told.node(node, "cpulist", cpus);
        }
    }
}

fn vulnerabilities(lines: &Lines, told: &mut Reported) {
    for (name, value) in lines {
        if let Some(name) = name.strip_prefix("Vulnerability ") {
            let file = name.to_lowercase().replace(' ', "_");
            // No other name leads to a file of the kernel's.
            if file.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                told.file(&format!("{CPUS}/vulnerabilities/{file}"), value);
            }
        }
    }
}

/// `32 MiB (1 instance)`: of one instance, or of one a CPU, it is known whose it is. Older versions
/// report the size of one and no number.
fn caches(lines: &Lines, online: &CpuSet, told: &mut Reported) {
    let kinds = [("L1d", 1, "Data"), ("L1i", 1, "Instruction"), ("L2", 2, "Unified"), ("L3", 3, "Unified")];
    // Of each whether every CPU has its own.
    let mut all: Vec<(ReportedCache, bool)> = Vec::new();
    for (name, level, kind) in kinds {
        let Some(value) = lines.get(&format!("{name} cache")) else { continue };
        let Some((size, rest)) = value.split_once(" (") else { return };
        let instances: Option<u64> = rest.split(' ').next().and_then(|count| count.parse().ok());
        let (Some(bytes), Some(instances)) = (size_of(size), instances.filter(|count| *count > 0)) else {
            return;
        };
        let cache = ReportedCache { level, kind, bytes: Some(bytes / instances), ..ReportedCache::default() };
        match instances {
            1 => all.push((ReportedCache { cpus: online.clone(), ..cache }, online.len() == 1)),
            count if count == online.len() as u64 => all.push((cache, true)),
            // Some are shared by unknown CPUs: a part of the caches would look like all.
            _ => return,
        }
    }
    for cpu in online.iter() {
        for (index, (cache, is_own)) in all.iter_mut().enumerate() {
            if *is_own {
                cache.cpus = CpuSet::one(cpu);
            }
            told.cache(cpu, index, cache);
        }
    }
}

/// `1.5 MiB`, `512 KiB`, `32 MiB`, `32768K`
fn size_of(text: &str) -> Option<u64> {
    let (number, word) = units::split(text)?;
    let is_size = number > 0.0 && number < 1e9;
    Some((number * units::binary(word)?) as u64).filter(|_| is_size)
}

fn is_table(bytes: &[u8]) -> bool {
    !table(&String::from_utf8_lossy(bytes)).is_empty()
}

/// Rows of a table of CPUs by column, in either form.
fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        let is_commas = line.contains(',');
        let cut = |line: &str| -> Vec<String> {
            if is_commas {
                line.split(',').map(|word| word.trim().to_ascii_uppercase()).collect()
            } else {
                line.split_whitespace().map(str::to_ascii_uppercase).collect()
            }
        };
        let head = line.trim_start_matches(['#', ' ']);
        if head.starts_with("CPU,") || head.starts_with("CPU ") && head.contains("CORE") {
            columns = cut(head);
            continue;
        }
        if columns.is_empty() || line.starts_with('#') {
            continue;
        }
        let row = columns.iter().cloned().zip(cut(line));
        let row: BTreeMap<String, String> =
            row.filter(|(_, value)| !value.is_empty() && value != "-").collect();
        if row.get("CPU").is_some_and(|cpu| CpuSet::parse_list(cpu).is_some_and(|cpus| cpus.len() == 1)) {
            rows.push(row);
        }
    }
    rows
}

fn read_table(bytes: &[u8], told: &mut Reported) {
    let number = |row: &BTreeMap<String, String>, name: &str| row.get(name)?.parse::<u32>().ok();
    let rows = table(&String::from_utf8_lossy(bytes));
    let is_online = |row: &&BTreeMap<String, String>| row.get("ONLINE").is_none_or(|word| word != "NO");
    let mut online = CpuSet::default();
    let mut groups: BTreeMap<(&str, u32), CpuSet> = BTreeMap::new();
    for row in rows.iter().filter(is_online) {
        let Some(cpu) = number(row, "CPU") else { continue };
        online.insert(cpu);
        for name in ["CORE", "SOCKET", "NODE"] {
            if let Some(id) = number(row, name) {
                groups.entry((name, id)).or_default().insert(cpu);
            }
        }
    }
    told.online(&online);
    told.cpu_folders(&online);
    for (name, subject) in [("SOCKET", Subject::Sockets), ("CORE", Subject::Cores), ("NODE", Subject::Nodes)]
    {
        let count = groups.keys().filter(|(known, _)| *known == name).count();
        if count > 0 {
            told.claim(subject, count);
        }
    }
    for ((name, id), cpus) in &groups {
        match *name {
            "NODE" => told.node(*id, "cpulist", cpus),
            "SOCKET" => cpus.iter().for_each(|cpu| told.topology(cpu, "physical_package_id", id)),
            // lscpu numbers cores anew over all sockets.
            _ => {
                let list = cpus.to_string();
                cpus.iter().for_each(|cpu| told.topology(cpu, "core_cpus_list", &list));
            }
        }
    }
}
