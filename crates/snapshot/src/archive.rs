//! What tools of support collect of a machine, as one machine: archives (sosreport, supportconfig,
//! insights), read without being unpacked to a disk, their folders, and files of one tool.
//!
//! An archive becomes a tree of files in memory. Of that /proc and /sys are read as of any captured
//! tree; what printouts of commands tell beside them is written in the words of /proc and /sys
//! where those have none of it. Everybody's word on what several tell is kept in `probe:archive`,
//! from which `machine::archive` names contradictions.
//!
//! A kind of archive is a file here and a line in [`LAYOUTS`], a tool a file and a line in
//! [`TOOLS`].

mod dmidecode;
mod files;
mod hwinfo;
mod insights;
mod lscpu;
mod lshw;
mod lstopo;
mod names;
mod numactl;
mod packed;
mod printout;
mod sosreport;
mod supportconfig;
mod tar;
mod told;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use model::vocabulary::host as ids;
use model::{Entry, Snapshot};

use super::tree::Tree;
use super::{disk, read_tree};
pub(crate) use files::Files;
use machine::Machine;
use machine::archive::{Claim, Subject, written};
use told::{Merged, Told};

/// How an archive is laid out.
struct Layout {
    name: &'static str,
    /// A name in its top folder that no other kind has.
    sign: &'static str,
    /// Takes out what commands printed; an archive that keeps files in another form brings them
    /// into that of /proc and /sys.
    open: fn(Tree) -> (Tree, Vec<Output>),
}

/// Every kind of archive.
const LAYOUTS: &[Layout] = &[sosreport::LAYOUT, insights::LAYOUT, supportconfig::LAYOUT];

/// What a command printed.
struct Output {
    /// Its program's name.
    command: String,
    /// Where in the archive it stands.
    source: String,
    bytes: Vec<u8>,
}

/// A tool whose output is understood.
struct Tool {
    name: &'static str,
    /// As lists of what can be read call it; empty for what says too little to be a file of its
    /// own.
    file: &'static str,
    knows: fn(&[u8]) -> bool,
    read: fn(&[u8], &mut Told),
}

/// Every tool. Where several tell the same, the first one's words are taken.
const TOOLS: &[Tool] = &[
    dmidecode::TOOL,
    lstopo::TOOL,
    numactl::TOOL,
    lscpu::TABLE,
    lscpu::TOOL,
    hwinfo::TOOL,
    lshw::TOOL,
    names::UNAME,
    names::HOSTNAME,
];

/// A printout is no longer.
const LONGEST: usize = 32 << 20;

/// Folders in the top one of which no archive has as many.
const INNER: usize = 1000;

/// Names that make a folder the root of a machine.
fn is_root(tree: &Tree, folder: &str) -> bool {
    let names = tree.names(folder);
    let signs = ["proc", "sys"].into_iter().chain(LAYOUTS.iter().map(|layout| layout.sign));
    signs.into_iter().any(|sign| names.binary_search_by(|name| name.as_str().cmp(sign)).is_ok())
}

/// Where in a tree the machine's root is: the tree's own, that of the only folder in it that has
/// one, or of the folder `data` in such a folder.
pub(super) fn root_of(tree: &Tree) -> String {
    if is_root(tree, "/") {
        return "/".to_string();
    }
    let inner = tree.names("/").into_iter().take(INNER).map(|name| format!("/{name}"));
    let inner = inner.filter(|folder| tree.link(folder).is_none());
    let found = inner.flat_map(|folder| [format!("{folder}/data"), folder]);
    let mut found: Vec<String> = found.filter(|folder| is_root(tree, folder)).collect();
    // A folder beside its own `data` is the root.
    found.extend(is_root(tree, "/data").then(|| "/data".to_string()));
    found.dedup();
    match found.as_slice() {
        [one] => one.clone(),
        [inner, outer] if inner.starts_with(&format!("{outer}/")) => outer.clone(),
        _ => "/".to_string(),
    }
}

/// Reads the machine of a captured tree, of an archive, or of a file of one tool. An error says why
/// it is none.
pub fn read(path: &Path) -> Result<Snapshot, String> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| format!("{shown} cannot be opened: {error}"))?;
    let kind = file.metadata().map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if kind.is_dir() {
        let tree = Tree::open(path).and_then(|tree| {
            let root = root_of(&tree);
            tree.below(&root)
        });
        return tree.map(of_tree).map_err(|error| format!("{shown} cannot be read as a folder: {error}"));
    }
    read_from(file, UNPACKED).map_err(|why| format!("{shown}: {why}"))
}

/// Bytes that an archive may have after unpacking: the largest with all logs have some.
pub const UNPACKED: u64 = 8 << 30;

/// The same of a file's bytes, whatever they are.
pub fn read_from(file: impl Read, unpacked: u64) -> Result<Snapshot, String> {
    bounded(file, tar::Limits { unpacked, ..tar::LIMITS })
}

fn bounded(file: impl Read, limits: tar::Limits) -> Result<Snapshot, String> {
    let unread = |error: io::Error| format!("it cannot be read: {error}; {}", readable());
    let mut plain = packed::unpacked(file, limits.unpacked).map_err(unread)?;
    let head = packed::head_of(&mut plain, 512).map_err(unread)?;
    if tar::is_tar(&head) {
        let files = tar::read(io::Cursor::new(head).chain(plain), &is_wanted, limits).map_err(unread)?;
        let tree = Tree::of_files(files);
        let root = root_of(&tree);
        let snapshot = tree.below(&root).map(of_tree).unwrap_or_default();
        return match snapshot.entries.is_empty() {
            true => Err(format!("the archive holds nothing of a machine; {}", readable())),
            false => Ok(snapshot),
        };
    }
    let mut bytes = head;
    plain.take(limits.file + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > limits.file {
        return Err(format!("it is larger than {} MiB and no archive; {}", limits.file >> 20, readable()));
    }
    let Some(tool) = TOOLS.iter().find(|tool| !tool.file.is_empty() && (tool.knows)(&bytes)) else {
        return Err(format!("it is nothing that tells of a machine; {}", readable()));
    };
    let output = Output { command: tool.name.to_string(), source: String::new(), bytes };
    Ok(joined(Snapshot::default(), tool.name, vec![output]))
}

/// What can be read, for messages.
fn readable() -> String {
    let archives: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
    let mut files: Vec<&str> = TOOLS.iter().map(|tool| tool.file).filter(|file| !file.is_empty()).collect();
    files.dedup();
    format!(
        "what can be read: a folder or an archive (tar, also in gzip, xz or bzip2) of {} or with copies of /proc \
         and /sys, and what these printed: {}",
        archives.join(", "),
        files.join(", ")
    )
}

/// Whether a file of an archive is of any use here: an archive has gigabytes of logs.
fn is_wanted(name: &str) -> bool {
    let Some(parts) = Files::parts(name) else { return false };
    // Below folders of the archive's own: `sosreport-x/proc`, `insights-x/data/proc`.
    (0..parts.len().min(4)).any(|at| match &parts[at..] {
        ["proc", rest @ ..] => is_of_proc(rest),
        ["sys", rest @ ..] => rest.first().is_none_or(|first| SYS.contains(first)),
        ["etc", rest @ ..] => rest.is_empty() || rest == ["hostname"],
        ["run", rest @ ..] => rest.len() < 3,
        // Old systems mount control groups there.
        ["dev", rest @ ..] => rest.is_empty() || rest[0].starts_with("c") || rest == ["kvm"],
        [".dockerenv"] => true,
        [folder, rest @ ..] if LAYOUTS.iter().any(|layout| layout.sign == *folder) => {
            rest.last().is_none_or(|file| is_of_tool(file))
        }
        [file] => is_of_tool(file) || supportconfig::FILES.contains(file),
        _ => false,
    })
}

/// Folders of /sys that the reader looks at.
const SYS: [&str; 9] = ["block", "bus", "class", "dev", "devices", "firmware", "fs", "hypervisor", "kernel"];

/// Files of processes that matter where they are our own.
const OF_PROCESS: [&str; 8] = ["cgroup", "cpuset", "mountinfo", "mounts", "ns", "pid", "sched", "status"];

fn is_of_proc(rest: &[&str]) -> bool {
    match rest {
        [process, file, ..] if process.bytes().all(|byte| byte.is_ascii_digit()) => OF_PROCESS.contains(file),
        ["net" | "fs" | "irq" | "kallsyms" | "kcore", ..] => false,
        _ => true,
    }
}

fn is_of_tool(file: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == command_of(file))
}

/// The program of a file named after its command: `numactl_--hardware`, `lscpu_-e`.
fn command_of(file: &str) -> &str {
    file.split(['_', '.', ' ']).next().unwrap_or(file)
}

/// What commands printed into a folder.
fn outputs(tree: &Tree, folder: &str) -> Vec<Output> {
    let names = tree.names(folder);
    let files = names.iter().filter(|name| is_of_tool(name));
    let output = |name: &String| {
        let path = format!("{folder}/{name}");
        let bytes = match tree.read_up_to(&path, LONGEST)? {
            Entry::Text(text) => text.into_bytes(),
            Entry::Bytes(bytes) => bytes,
            _ => return None,
        };
        let source = path.trim_start_matches('/').to_string();
        Some(Output { command: command_of(name).to_string(), source, bytes })
    };
    files.filter_map(output).collect()
}

/// The machine of a tree whose root is found.
fn of_tree(tree: Tree) -> Snapshot {
    let names = tree.names("/");
    let layout = LAYOUTS.iter().find(|layout| names.iter().any(|name| name == layout.sign));
    let (mut tree, outputs) = match layout {
        Some(layout) => (layout.open)(tree),
        None => {
            // A tree of copies may have a printout of memory modules beside them.
            let beside = outputs(&tree, "").into_iter().filter(|output| output.command == "dmidecode");
            let beside = beside.collect();
            (tree, beside)
        }
    };
    let mut snapshot = read_tree(&mut tree);
    if let Some(text) = disk::of_tree(tree) {
        disk::store(&mut snapshot, text);
    }
    match layout {
        Some(layout) => joined(snapshot, layout.name, outputs),
        None => {
            let mut merged = Merged::new(snapshot);
            for output in outputs.iter().filter(|output| (dmidecode::TOOL.knows)(&output.bytes)) {
                let mut told = Told::default();
                (dmidecode::TOOL.read)(&output.bytes, &mut told);
                merged.add(told.files);
            }
            merged.finish()
        }
    }
}

/// One machine of a tree and of what tools printed, with everybody's claims.
fn joined(snapshot: Snapshot, kind: &str, outputs: Vec<Output>) -> Snapshot {
    let mut claims = own_claims(&snapshot);
    let mut merged = Merged::new(snapshot);
    for tool in TOOLS {
        // Two tools may print under one name: lscpu and its table.
        for output in outputs.iter().filter(|one| one.command == tool.name && (tool.knows)(&one.bytes)) {
            let mut told = Told::default();
            (tool.read)(&output.bytes, &mut told);
            if told.is_too_much() {
                continue;
            }
            let source = match output.source.is_empty() {
                true => tool.name.to_string(),
                false => format!("{} ({})", tool.name, output.source),
            };
            let claim = |(subject, value)| Claim { subject, value, source: source.clone() };
            claims.extend(told.claims.into_iter().map(claim));
            claims.push(Claim { subject: Subject::Source, value: output.source.clone(), source });
            merged.add(told.files);
        }
    }
    let mut snapshot = merged.finish();
    snapshot.entries.insert(ids::probe::ARCHIVE.to_string(), Entry::Text(written(kind, &claims)));
    snapshot.blank();
    snapshot
}

/// What the archive's own copies of /proc and /sys say.
fn own_claims(snapshot: &Snapshot) -> Vec<Claim> {
    let machine = Machine::from(snapshot);
    let summary = machine.summary();
    let count = |count: Option<usize>| count.map(|count| count.to_string());
    let processor = machine.cpus.model.clone();
    let all = [
        (Subject::Cpus, count(summary.cpus), "sys/devices/system/cpu"),
        (Subject::Sockets, count(summary.packages), "sys/devices/system/cpu"),
        (Subject::Nodes, count(summary.numa_nodes), "sys/devices/system/node"),
        (Subject::Memory, machine.memory.total_bytes.map(|bytes| bytes.to_string()), "proc/meminfo"),
        (Subject::Host, machine.host.clone(), of_two(snapshot, "proc/sys/kernel/hostname", "etc/hostname")),
        (
            Subject::Kernel,
            machine.kernel.release.clone(),
            of_two(snapshot, "proc/sys/kernel/osrelease", "proc/version"),
        ),
        (Subject::Processor, processor, "proc/cpuinfo"),
    ];
    let claim = |(subject, value, source): (Subject, Option<String>, &str)| {
        Some(Claim { subject, value: value?, source: source.to_string() })
    };
    all.into_iter().filter_map(claim).collect()
}

/// The first of two files that tell the same, where it is there.
fn of_two(snapshot: &Snapshot, first: &'static str, second: &'static str) -> &'static str {
    let is_told = snapshot.text(&format!("/{first}")).is_some_and(|text| !text.is_empty());
    if is_told { first } else { second }
}

#[cfg(test)]
mod tests;
