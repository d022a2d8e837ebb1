//! What tools of support collect of a machine, as one machine: archives (sosreport, supportconfig,
//! insights), read without being unpacked to a disk, their folders, and files of one tool.
//!
//! An archive becomes a tree of files in memory. Of that /proc and /sys are read as of any captured
//! tree; what printouts of commands report besides is written in the words of /proc and /sys where
//! those have none of it. Each source's value, where several report one, is kept in
//! `probe:archive`, from which `machine::archive` names contradictions.
//!
//! A kind of archive is a file here and a line in [`LAYOUTS`], a tool a file and a line in
//! [`TOOLS`].

mod claimed;
mod dmidecode;
mod files;
mod hwinfo;
mod insights;
mod lscpu;
mod lshw;
mod lstopo;
mod names;
mod numactl;
mod printout;
mod reported;
mod sosreport;
mod supportconfig;
mod tar;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use model::vocabulary::host as ids;
use model::{Entry, Snapshot, packed, run_file};

use super::tree::Tree;
use super::{disk, read_tree};
pub(crate) use files::Files;
#[cfg(test)]
use machine::Machine;
use machine::archive::{Claim, Subject, written};
use reported::{Merged, Reported};

/// How an archive is laid out.
struct Layout {
    name: &'static str,
    /// A name in its top folder that no other kind has.
    sign: &'static str,
    /// Takes out what commands printed; an archive that keeps files in another form brings them
    /// into that of /proc and /sys.
    open: fn(Tree) -> Opened,
}

/// An archive as its layout says.
struct Opened {
    tree: Tree,
    outputs: Vec<Output>,
    /// The file of the archive that a file of the tree was taken from, where it is another.
    members: BTreeMap<String, String>,
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
    read: fn(&[u8], &mut Reported),
}

/// Every tool. Where several report the same, the first one's value is used.
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
const MAX_PRINTOUT_BYTES: usize = 32 << 20;

/// Folders in the top one of which no archive has as many.
const INNER: usize = 1000;

/// Names that make a folder the root of a host.
fn is_root(tree: &Tree, folder: &str) -> bool {
    let names = tree.names(folder);
    let signs = ["proc", "sys"].into_iter().chain(LAYOUTS.iter().map(|layout| layout.sign));
    signs.into_iter().any(|sign| names.binary_search_by(|name| name.as_str().cmp(sign)).is_ok())
}

/// Where in a tree the host's root is: the tree's own, or the only one below.
pub(super) fn root_of(tree: &Tree) -> String {
    match roots(tree).as_slice() {
        [one] => one.clone(),
        _ => "/".to_string(),
    }
}

/// Where in a tree hosts have their roots: the tree's own, those of the folders in it, or of
/// the folder `data` in such a folder.
fn roots(tree: &Tree) -> Vec<String> {
    if is_root(tree, "/") {
        return vec!["/".to_string()];
    }
    let inner = tree.names("/").into_iter().take(INNER).map(|name| format!("/{name}"));
    let inner = inner.filter(|folder| tree.link(folder).is_none());
    let found = inner.flat_map(|folder| [format!("{folder}/data"), folder]);
    let mut found: Vec<String> = found.filter(|folder| is_root(tree, folder)).collect();
    // A folder beside its own `data` is the root.
    let outer = found.clone();
    found.retain(|folder| {
        folder.strip_suffix("/data").is_none_or(|above| !outer.iter().any(|other| other == above))
    });
    found
}

/// Names that a message lists.
const LISTED: usize = 3;

fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(|name| name.trim_start_matches('/')).collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The host's part of a tree; an error where it is none, or several.
fn machine_of(tree: Tree, of_archive: bool) -> Result<Tree, String> {
    let roots = roots(&tree);
    if let [first, _, ..] = roots.as_slice() {
        let first = first.trim_start_matches('/');
        let advice = if of_archive {
            format!("unpack one of them (tar -xf FILE {first}) and give its folder")
        } else {
            format!("give one of them, as {first} in it")
        };
        return Err(format!(
            "it has data of {} hosts ({}), and Assay describes one at a time: {advice}",
            roots.len(),
            listed(&roots)
        ));
    }
    let inner = archives_in(&tree);
    let root = root_of(&tree);
    if of_archive && roots.is_empty() && !inner.is_empty() {
        return Err(format!(
            "it contains archives ({}): unpack it (tar -xf FILE) and give one of them",
            listed(&inner)
        ));
    }
    tree.below(&root).map_err(|error| format!("it cannot be read: {error}"))
}

/// Archives at the top of a tree, or one folder down.
fn archives_in(tree: &Tree) -> Vec<String> {
    let top: Vec<String> = tree.names("/").into_iter().take(INNER).collect();
    let below = |folder: &String| {
        let names = tree.names(&format!("/{folder}")).into_iter().take(INNER);
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let inner: Vec<String> = top.iter().flat_map(below).collect();
    top.into_iter().chain(inner).filter(|name| tar::is_archive(name)).collect()
}

/// Reads the host of a captured tree, of an archive, or of a file of one tool. An error says why
/// it is none.
pub fn read(path: &Path) -> Result<Snapshot, String> {
    let shown = path.display();
    if path.is_dir() {
        let tree =
            Tree::open(path).map_err(|error| format!("{shown} cannot be read as a folder: {error}"))?;
        return machine_of(tree, false).map(of_tree).map_err(|why| format!("{shown}: {why}"));
    }
    // A pipe that no one writes to, or a device, is waited for by no one.
    let file = run_file::open(path).map_err(|error| format!("{error:#}"))?;
    read_from(file, UNPACKED).map_err(|why| format!("{shown}: {why}"))
}

/// Bytes that an archive may have after unpacking: the largest with all logs have some.
pub const UNPACKED: u64 = 8 << 30;

/// The same of a file's bytes, whatever they are.
pub fn read_from(file: impl Read, unpacked: u64) -> Result<Snapshot, String> {
    bounded(file, tar::Limits { unpacked, ..tar::LIMITS })
}

fn bounded(file: impl Read, limits: tar::Limits) -> Result<Snapshot, String> {
    let unread = |error: io::Error| match error.get_ref() {
        // An error of our own readers says all that is to be said.
        Some(_) => format!("{error}; {}", readable()),
        None => format!("it cannot be read: {error}; {}", readable()),
    };
    let mut plain = packed::unpacked(file, limits.unpacked).map_err(unread)?;
    let head = packed::head_of(&mut plain, 512).map_err(unread)?;
    if tar::is_tar(&head) {
        let files = tar::read(io::Cursor::new(head).chain(plain), &is_wanted, limits).map_err(unread)?;
        let tree = machine_of(Tree::of_files(files), true);
        let snapshot = of_tree(tree.map_err(|why| format!("{why}; {}", readable()))?);
        return if snapshot.entries.is_empty() {
            Err(format!("the archive has no data of a host; {}", readable()))
        } else {
            Ok(snapshot)
        };
    }
    let mut bytes = head;
    plain.take(limits.file + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > limits.file {
        return Err(format!(
            "it is larger than {} MiB and not an archive; {}",
            limits.file >> 20,
            readable()
        ));
    }
    if let Some(end) = missing_end(&bytes) {
        return Err(format!("it ends early: {end}; {}", readable()));
    }
    let Some(tool) = TOOLS.iter().find(|tool| !tool.file.is_empty() && (tool.knows)(&bytes)) else {
        return Err(format!("it has no data of a host; {}", readable()));
    };
    let output = Output { command: tool.name.to_string(), source: String::new(), bytes };
    Ok(joined(Snapshot::default(), tool.name, vec![output], &BTreeMap::new()))
}

/// What the end of a printout lacks, where its form shows one: half of a topology looks like a
/// smaller one.
fn missing_end(bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.trim_ascii();
    match bytes {
        [b'<', ..] if lstopo::begins(bytes) => {
            (!bytes.ends_with(b"</topology>")).then_some("</topology> is missing")
        }
        [b'{' | b'[', ..] => {
            let error = serde_json::from_slice::<serde_json::Value>(bytes).err()?;
            error.is_eof().then_some("its JSON is not closed")
        }
        _ => None,
    }
}

/// What can be read, for messages.
fn readable() -> String {
    let archives: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
    let mut files: Vec<&str> = TOOLS.iter().map(|tool| tool.file).filter(|file| !file.is_empty()).collect();
    files.dedup();
    format!(
        "Assay reads a folder or an archive (tar, also in gzip, xz, bzip2 or zstd) of {}, or with copies of \
         /proc and /sys, and the output of: {}",
        archives.join(", "),
        files.join(", ")
    )
}

/// Whether a file of an archive is of any use here: an archive has gigabytes of logs.
fn is_wanted(name: &str) -> bool {
    let Some(parts) = Files::parts(name) else { return false };
    if parts.len() < 3 && tar::is_archive(name) {
        return true;
    }
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

/// Printouts of one program: tools of support keep a handful.
const MAX_PRINTED: usize = 16;

/// What commands printed into folders.
fn outputs(tree: &Tree, folders: impl IntoIterator<Item = String>) -> Vec<Output> {
    let mut found: Vec<Output> = Vec::new();
    for folder in folders {
        let names = tree.names(&folder);
        for name in names.iter().filter(|name| is_of_tool(name)) {
            let command = command_of(name);
            // At most as many as all tools have, so that nothing here takes long.
            if found.iter().filter(|known| known.command == command).count() >= MAX_PRINTED {
                continue;
            }
            let path = format!("{folder}/{name}");
            let bytes = match tree.read_up_to(&path, MAX_PRINTOUT_BYTES) {
                Some(Entry::Text(text)) => text.into_bytes(),
                Some(Entry::Bytes(bytes)) => bytes,
                _ => continue,
            };
            let source = path.trim_start_matches('/').to_string();
            found.push(Output { command: command.to_string(), source, bytes });
        }
    }
    found
}

/// The host of a tree whose root is found.
fn of_tree(tree: Tree) -> Snapshot {
    let names = tree.names("/");
    let layout = LAYOUTS.iter().find(|layout| names.iter().any(|name| name == layout.sign));
    let Opened { mut tree, outputs, members } = match layout {
        Some(layout) => (layout.open)(tree),
        None => {
            // A tree of copies may have a printout of memory modules beside them.
            let beside = outputs(&tree, [String::new()]).into_iter();
            let outputs = beside.filter(|output| output.command == "dmidecode").collect();
            Opened { tree, outputs, members: BTreeMap::new() }
        }
    };
    let mut snapshot = read_tree(&mut tree);
    if let Some(text) = disk::of_tree(tree) {
        disk::store(&mut snapshot, text);
    }
    match layout {
        Some(layout) => joined(snapshot, layout.name, outputs, &members),
        None => {
            let mut merged = Merged::new(snapshot);
            for output in outputs.iter().filter(|output| (dmidecode::TOOL.knows)(&output.bytes)) {
                let mut told = Reported::default();
                (dmidecode::TOOL.read)(&output.bytes, &mut told);
                merged.add(told.files);
            }
            merged.finish()
        }
    }
}

/// One host of a tree and of what tools printed, with everyone's claims.
fn joined(
    snapshot: Snapshot,
    kind: &str,
    outputs: Vec<Output>,
    members: &BTreeMap<String, String>,
) -> Snapshot {
    let mut claims = claimed::own(&snapshot, members);
    let mut merged = Merged::new(snapshot);
    let whole: Vec<&Output> = outputs.iter().filter(|one| missing_end(&one.bytes).is_none()).collect();
    for tool in TOOLS {
        // Two tools may print under one name: lscpu and its table.
        for output in whole.iter().filter(|one| one.command == tool.name && (tool.knows)(&one.bytes)) {
            let mut told = Reported::default();
            (tool.read)(&output.bytes, &mut told);
            if told.is_too_much() {
                continue;
            }
            let source = if output.source.is_empty() {
                tool.name.to_string()
            } else {
                format!("{} ({})", tool.name, output.source)
            };
            let said =
                |part: &str| if part.is_empty() { source.clone() } else { format!("{part} of {source}") };
            claims.extend(told.claims.into_iter().map(|(subject, value, part)| Claim {
                subject,
                value,
                source: said(part),
            }));
            claims.push(Claim { subject: Subject::Source, value: output.source.clone(), source });
            merged.add(told.files);
        }
    }
    let mut snapshot = merged.finish();
    snapshot.entries.insert(ids::probe::ARCHIVE.to_string(), Entry::Text(written(kind, &claims)));
    snapshot.blank();
    snapshot
}

#[cfg(test)]
mod tests;
