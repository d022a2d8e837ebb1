//! `lstopo --of xml`: a topology of hwloc, in the form of version 1 (nodes have what they hold
//! inside) and of version 2 (nodes are beside it). In both an object reports its CPUs itself.

use std::collections::BTreeMap;

use model::{CpuSet, Entry};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::Tool;
use super::reported::{Reported, ReportedCache};
use machine::archive::Subject;

pub(super) const TOOL: Tool = Tool { name: "lstopo", file: "lstopo --of xml", knows, read };

/// Objects of a topology; the largest host has some ten thousand.
const MAX_OBJECTS: usize = 1 << 20;

/// Whether it is the start of one, whatever became of the rest.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    head.trim_start_matches('\u{feff}').trim_start().starts_with('<') && head.contains("<topology")
}

fn knows(bytes: &[u8]) -> bool {
    begins(bytes) && String::from_utf8_lossy(bytes).contains("type=\"Machine\"")
}

type Attributes = BTreeMap<String, String>;

#[derive(Default)]
struct Object {
    kind: String,
    cpus: CpuSet,
    told: Attributes,
    infos: Attributes,
}

impl Object {
    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.told.get(name)?.parse().ok()
    }
}

/// The objects in the order in which they stand, and the distances between nodes.
#[derive(Default)]
struct Topology {
    objects: Vec<Object>,
    /// Numbers of nodes, and of each the row of distances to them.
    distances: Option<(Vec<u32>, Vec<u32>)>,
}

fn attributes(tag: &BytesStart) -> Attributes {
    let all = tag.attributes().flatten().filter_map(|one| {
        Some((one.key.as_ref().to_string(), quick_xml::escape::unescape(&one.value).ok()?.into_owned()))
    });
    all.collect()
}

/// `0x0000ffff,,0x1`: words of 32 bits, the highest first, empty ones without a bit.
fn mask(text: &str) -> Option<CpuSet> {
    let words: Vec<&str> = text.split(',').map(|word| word.trim().trim_start_matches("0x")).collect();
    // All CPUs that could ever be.
    if words.first().is_some_and(|word| word.starts_with('f') && word.contains("...")) {
        return None;
    }
    CpuSet::parse_mask(&words.join(","))
}

/// What is read between two tags.
#[derive(Default)]
struct Distances {
    is_of_nodes: bool,
    indexes: Vec<u32>,
    values: Vec<u32>,
    base: f64,
}

fn topology(text: &str) -> Topology {
    let mut found = Topology::default();
    let mut reader = Reader::from_str(text);
    let mut open: Vec<usize> = Vec::new();
    let mut distances = Distances::default();
    let mut inside = String::new();
    while found.objects.len() < MAX_OBJECTS {
        let (tag, is_empty) = match reader.read_event() {
            Ok(Event::Start(tag)) => (tag, false),
            Ok(Event::Empty(tag)) => (tag, true),
            Ok(Event::Text(text)) => {
                let numbers = text.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
                match inside.as_str() {
                    "indexes" => distances.indexes.extend(numbers),
                    "u64values" => distances.values.extend(numbers),
                    _ => {}
                }
                continue;
            }
            Ok(Event::End(tag)) => {
                inside.clear();
                match tag.name().as_ref() {
                    "object" => drop(open.pop()),
                    "distances" | "distances2" => close(std::mem::take(&mut distances), &mut found),
                    _ => {}
                }
                continue;
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => continue,
        };
        let told = attributes(&tag);
        let name = tag.name().as_ref().to_string();
        let text = |name: &str| told.get(name).cloned().unwrap_or_default();
        match name.as_str() {
            "object" => {
                let cpus = told.get("cpuset").and_then(|text| mask(text)).unwrap_or_default();
                if !is_empty {
                    open.push(found.objects.len());
                }
                let kind = text("type");
                found.objects.push(Object { kind, cpus, told, infos: Attributes::new() });
            }
            "info" => {
                let object = open.last().and_then(|at| found.objects.get_mut(*at));
                object.into_iter().for_each(|object| drop(object.infos.insert(text("name"), text("value"))));
            }
            "distances2" => {
                distances.is_of_nodes = text("type") == "NUMANode" && !text("name").contains("Bandwidth");
                distances.base = 1.0;
            }
            // Version 1: relative to the nearest, in the order of the nodes.
            "distances" => {
                distances.is_of_nodes = true;
                distances.base = text("latency_base").parse().unwrap_or(0.0);
            }
            "latency" => {
                let value = text("value").parse().unwrap_or(0.0) * distances.base;
                distances.values.push(value.round() as u32);
            }
            _ => {}
        }
        if !is_empty {
            inside = name;
        }
    }
    found
}

fn close(distances: Distances, found: &mut Topology) {
    let nodes: Vec<u32> =
        found.objects.iter().filter(|one| one.kind == "NUMANode").filter_map(index).collect();
    let indexes = if distances.indexes.is_empty() { nodes } else { distances.indexes };
    let is_whole = distances.values.len() == indexes.len() * indexes.len();
    if distances.is_of_nodes && is_whole && !indexes.is_empty() && found.distances.is_none() {
        found.distances = Some((indexes, distances.values));
    }
}

fn index(object: &Object) -> Option<u32> {
    object.number("os_index")
}

fn read(bytes: &[u8], told: &mut Reported) {
    let Topology { mut objects, distances } = topology(&String::from_utf8_lossy(bytes));
    let Some(machine) = objects.iter().find(|one| one.kind == "Machine") else { return };
    // Version 1 has CPUs that are off among the others.
    let running = machine.told.get("online_cpuset").and_then(|text| mask(text));
    let online = running.map_or(machine.cpus.clone(), |running| machine.cpus.intersection(&running));
    let infos = machine.infos.clone();
    let of_machine = machine.number::<u64>("local_memory");
    objects.iter_mut().for_each(|one| one.cpus = one.cpus.intersection(&online));
    if !online.is_empty() {
        told.online(&online);
        told.cpu_folders(&online);
    }
    let complete = objects.iter().find(|one| one.kind == "Machine");
    let complete = complete.and_then(|one| mask(one.told.get("complete_cpuset")?));
    if let Some(off) = complete.map(|all| all.difference(&online)).filter(|off| !off.is_empty()) {
        told.file(&format!("{}/offline", machine::CPUS), off);
    }
    whose(&infos, &objects, &online, told);
    groups(&objects, told);
    caches(&objects, &online, told);
    nodes(&objects, of_machine, distances, told);
}

fn whose(infos: &Attributes, objects: &[Object], online: &CpuSet, told: &mut Reported) {
    let is_linux = infos.get("OSName").is_none_or(|name| name == "Linux");
    if let Some(release) = infos.get("OSRelease").filter(|_| is_linux) {
        told.kernel(release);
    }
    infos.get("HostName").into_iter().for_each(|name| told.host(name));
    infos.get("Architecture").into_iter().for_each(|name| told.architecture(name));
    for (theirs, file) in [
        ("DMISysVendor", "sys_vendor"),
        ("DMIProductName", "product_name"),
        ("DMIProductVersion", "product_version"),
        ("DMIBoardVendor", "board_vendor"),
        ("DMIBoardName", "board_name"),
        ("DMIBoardVersion", "board_version"),
        ("DMIBIOSVendor", "bios_vendor"),
        ("DMIBIOSVersion", "bios_version"),
        ("DMIBIOSDate", "bios_date"),
        ("DMIChassisType", "chassis_type"),
    ] {
        infos
            .get(theirs)
            .into_iter()
            .for_each(|value| told.file(&format!("/sys/class/dmi/id/{file}"), value));
    }
    // Old versions name the processor above its packages.
    let of_packages = objects.iter().filter(|one| is_package(one)).map(|one| &one.infos);
    let Some(infos) = of_packages.chain([infos]).find(|infos| infos.contains_key("CPUModel")) else { return };
    told.claim(Subject::Processor, &infos["CPUModel"]);
    let mut text = String::new();
    for (at, cpu) in online.iter().enumerate() {
        text.push_str(&format!("processor\t: {cpu}\n"));
        for (theirs, ours) in [
            ("CPUVendor", "vendor_id"),
            ("CPUFamilyNumber", "cpu family"),
            ("CPUModelNumber", "model"),
            ("CPUModel", "model name"),
            ("CPUStepping", "stepping"),
        ] {
            if let Some(value) = infos.get(theirs).filter(|_| at == 0) {
                text.push_str(&format!("{ours}\t: {value}\n"));
            }
        }
        text.push('\n');
    }
    told.files.insert("/proc/cpuinfo".to_string(), Entry::Text(text));
}

fn is_package(object: &Object) -> bool {
    matches!(object.kind.as_str(), "Package" | "Socket")
}

fn groups(objects: &[Object], told: &mut Reported) {
    for one in objects {
        let (id, set) = match one.kind.as_str() {
            "Package" | "Socket" => ("physical_package_id", "package_cpus_list"),
            "Core" => ("core_id", "core_cpus_list"),
            "Die" => ("die_id", "die_cpus_list"),
            _ => continue,
        };
        for cpu in one.cpus.iter() {
            index(one).into_iter().for_each(|number| told.topology(cpu, id, number));
            told.topology(cpu, set, &one.cpus);
        }
    }
    let packages = objects.iter().filter(|one| is_package(one) && !one.cpus.is_empty()).count();
    if packages > 0 {
        told.claim(Subject::Sockets, packages);
    }
}

fn caches(objects: &[Object], online: &CpuSet, told: &mut Reported) {
    let cache = |one: &Object| {
        let level: u32 = one.number("depth")?;
        let kind = match one.told.get("cache_type").map(String::as_str) {
            Some("1") => "Data",
            Some("2") => "Instruction",
            // Before version 1.3 it does not report it, and has no caches of instructions.
            None if level == 1 => "Data",
            _ => "Unified",
        };
        let is_cache = one.kind == "Cache" || one.kind.ends_with("Cache");
        (is_cache && one.kind != "MemCache" && !one.cpus.is_empty()).then(|| ReportedCache {
            level,
            kind,
            cpus: one.cpus.clone(),
            bytes: one.number("cache_size").filter(|bytes| *bytes > 0),
            line_bytes: one.number("cache_linesize").filter(|bytes| *bytes > 0),
            ways: one.number("cache_associativity").filter(|ways| *ways > 0),
        })
    };
    let all: Vec<ReportedCache> = objects.iter().filter_map(cache).collect();
    let mut next: BTreeMap<u32, usize> = BTreeMap::new();
    for cache in &all {
        for cpu in cache.cpus.intersection(online).iter() {
            let index = next.entry(cpu).or_default();
            told.cache(cpu, *index, cache);
            *index += 1;
        }
    }
}

fn nodes(
    objects: &[Object],
    of_machine: Option<u64>,
    distances: Option<(Vec<u32>, Vec<u32>)>,
    told: &mut Reported,
) {
    let nodes: Vec<(u32, &Object)> = objects
        .iter()
        .filter(|one| one.kind == "NUMANode")
        .filter_map(|one| Some((index(one)?, one)))
        .collect();
    let mut memory = None;
    for (number, node) in &nodes {
        told.node(*number, "cpulist", &node.cpus);
        if let Some(bytes) = node.number::<u64>("local_memory") {
            told.node_memory(*number, "MemTotal", bytes);
            memory = Some(memory.unwrap_or(0u64).saturating_add(bytes));
        }
    }
    if !nodes.is_empty() {
        told.claim(Subject::Nodes, nodes.len());
    }
    if let Some(bytes) = memory.or(of_machine.filter(|_| nodes.is_empty())) {
        told.claim(Subject::Memory, bytes);
        told.file("/proc/meminfo", format!("MemTotal: {} kB\n", bytes / 1024));
    }
    let Some((indexes, values)) = distances else { return };
    for (row, number) in indexes.iter().enumerate() {
        let row = &values[row * indexes.len()..][..indexes.len()];
        let row: Vec<String> = row.iter().map(u32::to_string).collect();
        told.node(*number, "distance", row.join(" "));
    }
}
