//! What a tool reports about a host, in the words of /proc and /sys.

use std::collections::{BTreeMap, BTreeSet};

use model::vocabulary::host as ids;
use model::{CpuSet, Entry, PRINTOUT, Snapshot, TABLES};

use machine::CPUS;
use machine::archive::Subject;

pub(super) const NODES: &str = "/sys/devices/system/node";

/// What is reported of 8,192 CPUs, the most that Linux is built for, is a tenth of it, bytes.
const MAX_BYTES: usize = 256 << 20;
/// What a file takes beside its text, bytes.
const FILE_BYTES: usize = 100;

/// What one printout reports.
#[derive(Default)]
pub(super) struct Reported {
    pub files: BTreeMap<String, Entry>,
    /// Bytes of the files.
    told_bytes: usize,
    /// What of it is said, and by which part of the printout where that is not the whole.
    pub claims: Vec<(Subject, String, &'static str)>,
}

impl Reported {
    pub fn file(&mut self, path: &str, text: impl ToString) {
        // What a printout of some kilobytes says about each CPU may be gigabytes.
        if self.is_too_much() {
            return;
        }
        let text = text.to_string();
        self.told_bytes += path.len() + text.len() + FILE_BYTES;
        self.files.insert(path.to_string(), Entry::Text(text));
    }

    /// Whether it reports more than any host has; it is then left out.
    pub fn is_too_much(&self) -> bool {
        self.told_bytes > MAX_BYTES
    }

    pub fn claim(&mut self, subject: Subject, value: impl ToString) {
        self.claim_of("", subject, value);
    }

    /// A claim of a part of the printout.
    pub fn claim_of(&mut self, part: &'static str, subject: Subject, value: impl ToString) {
        let value = value.to_string();
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if !value.is_empty() {
            self.claims.push((subject, value, part));
        }
    }

    /// Which CPUs run.
    pub fn online(&mut self, online: &CpuSet) {
        self.file(&format!("{CPUS}/online"), online);
        self.claim(Subject::Cpus, online.len());
    }

    /// Folders of CPUs that run.
    pub fn cpu_folders(&mut self, cpus: &CpuSet) {
        self.file(ids::probe::FOLDERS_CPU, cpus);
    }

    pub fn topology(&mut self, cpu: u32, file: &str, value: impl ToString) {
        self.file(&format!("{CPUS}/cpu{cpu}/topology/{file}"), value);
    }

    pub fn cache(&mut self, cpu: u32, index: usize, cache: &ReportedCache) {
        let place = format!("{CPUS}/cpu{cpu}/cache/index{index}");
        self.file(&format!("{place}/level"), cache.level);
        self.file(&format!("{place}/type"), cache.kind);
        self.file(&format!("{place}/shared_cpu_list"), &cache.cpus);
        let numbers = [
            ("coherency_line_size", cache.line_bytes),
            ("ways_of_associativity", cache.ways),
            ("number_of_sets", cache.sets()),
        ];
        if let Some(bytes) = cache.bytes {
            self.file(&format!("{place}/size"), format!("{}K", bytes / 1024));
        }
        for (name, number) in numbers {
            if let Some(number) = number {
                self.file(&format!("{place}/{name}"), number);
            }
        }
    }

    pub fn node(&mut self, node: u32, file: &str, value: impl ToString) {
        self.file(&format!("{NODES}/node{node}/{file}"), value);
    }

    pub fn node_memory(&mut self, node: u32, file: &str, bytes: u64) {
        let line = format!("Node {node} {file}: {} kB\n", bytes / 1024);
        let place = format!("{NODES}/node{node}/meminfo");
        match self.files.get_mut(&place) {
            Some(Entry::Text(text)) => text.push_str(&line),
            _ => self.file(&place, line),
        }
    }

    pub fn kernel(&mut self, release: &str) {
        self.file("/proc/sys/kernel/osrelease", release);
        self.claim(Subject::Kernel, release);
    }

    pub fn host(&mut self, name: &str) {
        self.file("/proc/sys/kernel/hostname", name);
        self.claim(Subject::Host, name);
    }

    /// What the processor is called, where no one says which CPUs it has.
    pub fn processor(&mut self, vendor: Option<&str>, model: &str) {
        let vendor = vendor.map_or(String::new(), |vendor| format!("vendor_id\t: {vendor}\n"));
        self.file("/proc/cpuinfo", format!("{vendor}model name\t: {}\n", model.trim()));
    }

    pub fn architecture(&mut self, name: &str) {
        self.file(ids::probe::ARCHITECTURE, name);
    }

    /// A printout of dmidecode, or what another tool reports about the same tables.
    pub fn printout(&mut self, text: &str) {
        self.files.extend(machine::printout_of(text).map(|(name, entry)| (name.to_string(), entry)));
    }
}

/// A cache as a tool reports it.
#[derive(Clone, Default)]
pub(super) struct ReportedCache {
    pub level: u32,
    /// In the kernel's words.
    pub kind: &'static str,
    pub cpus: CpuSet,
    pub bytes: Option<u64>,
    pub line_bytes: Option<u64>,
    pub ways: Option<u64>,
}

impl ReportedCache {
    fn sets(&self) -> Option<u64> {
        let set = self.line_bytes?.checked_mul(self.ways?).filter(|bytes| *bytes > 0)?;
        self.bytes.map(|bytes| bytes / set).filter(|sets| *sets > 0)
    }
}

/// A snapshot that takes what it has nothing of: each subject is one source's.
pub(super) struct Merged {
    snapshot: Snapshot,
    subjects: BTreeSet<String>,
}

impl Merged {
    pub fn new(snapshot: Snapshot) -> Merged {
        let subjects = snapshot.entries.keys().map(|path| subject(path)).collect();
        Merged { snapshot, subjects }
    }

    pub fn add(&mut self, files: BTreeMap<String, Entry>) {
        let new: BTreeSet<String> = files.keys().map(|path| subject(path)).collect();
        let new: BTreeSet<String> = new.difference(&self.subjects).cloned().collect();
        let files = files.into_iter().filter(|(path, _)| new.contains(&subject(path)));
        self.snapshot.entries.extend(files);
        self.subjects.extend(new);
    }

    pub fn finish(self) -> Snapshot {
        self.snapshot
    }
}

/// What a file is about: two sources' words on it are not mixed.
fn subject(path: &str) -> String {
    let below = |folder: &str| path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    let of_cpu = below(CPUS).filter(|rest| rest.starts_with("cpu"));
    let of_cpu = of_cpu.and_then(|rest| rest.split('/').nth(1));
    match () {
        _ if matches!(path, PRINTOUT | TABLES | ids::probe::DMIDECODE_SIGNS) => "modules".to_string(),
        // Whose CPUs there are, and how they form cores, belong together.
        _ if path == ids::probe::FOLDERS_CPU || of_cpu == Some("topology") => "topology".to_string(),
        _ if of_cpu.is_some() => format!("cpu {}", of_cpu.unwrap_or_default()),
        _ => match below(NODES).and_then(|rest| rest.split_once('/')) {
            Some((_, file)) if file.starts_with("cpu") => "node cpulist".to_string(),
            Some((_, file)) => format!("node {file}"),
            None if below("/sys/class/dmi/id").is_some() => "dmi".to_string(),
            None => path.to_string(),
        },
    }
}
