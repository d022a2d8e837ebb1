//! Who uses a block device: what must not be so where its content is to be destroyed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use machine::cgroup::unescaped;
use openers::Wanted;
use storage::{Devices, SharedStorage};

mod openers;
mod storage;

/// A block device as its node and the kernel report it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The kernel's name, which is typed to confirm: `vdb`.
    pub name: String,
    /// `254:16`.
    pub number: String,
    pub bytes: u64,
    pub read_only: bool,
    /// Its partitions, or those inside it.
    pub partitions: Vec<String>,
}

/// What a path is; an error says why it is no block device that could be measured.
pub fn node(path: &Path) -> Result<Node, String> {
    let shown = path.display();
    let meta = fs::metadata(path).map_err(|error| format!("cannot access {shown}: {error}"))?;
    if !meta.file_type().is_block_device() {
        return Err(format!("{shown} is not a block device; for a directory use --dir"));
    }
    let number = number(meta.rdev());
    let place = fs::canonicalize(format!("/sys/dev/block/{number}"))
        .map_err(|error| format!("/sys has no entry for {shown} ({number}): {error}"))?;
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let told = |file: &str| {
        fs::read_to_string(place.join(file)).map(|text| text.trim().to_string()).unwrap_or_default()
    };
    let bytes = told("size").parse::<u64>().unwrap_or(0).saturating_mul(512);
    if bytes == 0 {
        return Err(format!("{shown} has no size: it has no medium, or it is not set up"));
    }
    let inner = fs::read_dir(&place).into_iter().flatten().flatten();
    let partition = |entry: fs::DirEntry| {
        entry.path().join("partition").exists().then(|| entry.file_name().to_string_lossy().into_owned())
    };
    let mut partitions: Vec<String> = inner.filter_map(partition).collect();
    partitions.sort();
    Ok(Node { name, number, bytes, read_only: told("ro") == "1", partitions })
}

fn number(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// What a loop device lies on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backing {
    /// Device and inode of the file.
    pub file: [u64; 2],
    /// The device's own number where the file is one, else 0.
    pub special: u64,
    /// Where it begins in the file, and how long it is at most (0: to the end), bytes.
    pub offset: u64,
    pub limit: u64,
}

impl Backing {
    /// Whether two loop devices have bytes in common.
    fn overlaps(&self, other: &Backing) -> bool {
        let same = if self.special != 0 { self.special == other.special } else { self.file == other.file };
        same && self.offset < other.end() && other.offset < self.end()
    }

    fn end(&self) -> u64 {
        match self.limit {
            0 => u64::MAX,
            limit => self.offset.saturating_add(limit),
        }
    }
}

/// What only system calls report about a device, by its name.
pub struct KernelQueries<'a> {
    pub backing: &'a dyn Fn(&str) -> Option<Backing>,
    /// Whether someone has opened it for himself alone.
    pub claimed: &'a dyn Fn(&str) -> bool,
}

/// A device number as a process's maps have it.
fn hexadecimal(device: u64) -> String {
    format!("{:02x}:{:02x}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// Why nothing may be written to the device, in sentences; empty: no one is known to use it, a part
/// of it, or what shares its storage.
pub fn users(root: &Path, name: &str, asked: &KernelQueries) -> Vec<String> {
    let devices = Devices::read(root, asked);
    let sharing = devices.sharing(name);
    let mut found = Vec::new();
    let mut say = |share: &SharedStorage, what: String| {
        let subject = if share.what.is_empty() { "it" } else { &share.what };
        found.push(format!("{subject} {what}"));
    };
    let numbers: BTreeMap<&str, &SharedStorage> = sharing
        .iter()
        .filter_map(|(name, share)| Some((devices.0.get(name)?.number.as_str(), share)))
        .filter(|(number, _)| !number.is_empty())
        .collect();
    let files: BTreeMap<[u64; 2], &SharedStorage> = sharing
        .iter()
        .filter_map(|(name, share)| Some((devices.0.get(name)?.backing.as_ref()?.0, share)))
        .filter(|(backing, _)| backing.special == 0)
        .map(|(backing, share)| (backing.file, share))
        .collect();
    // Whose storage is at a path, if it is there: a device, or the file of a loop device.
    let at = |path: &str| -> Option<&SharedStorage> {
        let meta = fs::metadata(root.join(path.trim_start_matches('/'))).ok()?;
        if meta.file_type().is_block_device() {
            numbers.get(number(meta.rdev()).as_str()).copied()
        } else {
            files.get(&[meta.dev(), meta.ino()]).copied()
        }
    };
    let table = fs::read(root.join("proc/self/mountinfo")).unwrap_or_default();
    for (device, source, point) in mounted(&String::from_utf8_lossy(&table)) {
        // Filesystems on several devices have a number of their own; the source names one of them.
        if let Some(share) = numbers.get(device.as_str()).copied().or_else(|| at(&source)) {
            say(share, format!("is mounted: {source} on {point}"));
        }
    }
    let swaps = fs::read_to_string(root.join("proc/swaps")).unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let path = unescaped(line.split_whitespace().next().unwrap_or(""));
        if let Some(share) = at(&path) {
            say(share, format!("is swap: {path}"));
        }
    }
    for (name, share) in &sharing {
        let Some(device) = devices.0.get(name) else { continue };
        // Who lies beside others has a place of his own there.
        let holders = device.holders.iter().filter(|holder| !share.below && !sharing.contains_key(*holder));
        holders.for_each(|holder| say(share, format!("is part of {holder}")));
        if device.in_bcache && !share.below {
            say(share, "belongs to a bcache".to_string());
        }
        let on_it: Vec<&String> = devices.loops_on(name).collect();
        // Where we lie on it by a loop device ourselves, the others were distinguished by their
        // offsets.
        if !on_it.iter().any(|other| sharing.contains_key(*other)) {
            on_it.iter().for_each(|other| say(share, format!("carries {other}")));
        }
        if share.again && (asked.claimed)(name) {
            say(share, "is open exclusively in another process".to_string());
        }
    }
    let mapped = |device: &str, inode: u64| {
        let file = files.iter().find(|([at, file], _)| *file == inode && hexadecimal(*at) == device);
        file.map(|(_, share)| share)
    };
    let wanted = Wanted {
        open: &|meta| match meta.file_type().is_block_device() {
            true => numbers.get(number(meta.rdev()).as_str()).filter(|share| !share.below),
            false => files.get(&[meta.dev(), meta.ino()]),
        },
        mapped: if files.is_empty() { None } else { Some(&mapped) },
    };
    for (share, process, path) in openers::of(root, &wanted) {
        say(share, format!("is open in {process} as {path}"));
    }
    found
}

/// Number, source and mount point of every line of a mount table.
fn mounted(table: &str) -> Vec<(String, String, String)> {
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let source = unescaped(right.split(' ').nth(1)?);
        Some((left.get(2)?.to_string(), source, unescaped(left.get(4)?)))
    };
    table.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests;
