//! Who uses a block device: what must not be so where its content is to be destroyed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::super::cgroup::unescaped;

/// A block device as its node and the kernel tell of it.
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
    let meta = fs::metadata(path).map_err(|error| format!("{shown} cannot be looked at: {error}"))?;
    if !meta.file_type().is_block_device() {
        return Err(format!("{shown} is no block device; for a directory there is --dir"));
    }
    let number = number(meta.rdev());
    let place = fs::canonicalize(format!("/sys/dev/block/{number}"))
        .map_err(|error| format!("/sys tells nothing of {shown} ({number}): {error}"))?;
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let told = |file: &str| {
        fs::read_to_string(place.join(file)).map(|text| text.trim().to_string()).unwrap_or_default()
    };
    let bytes = told("size").parse::<u64>().unwrap_or(0).saturating_mul(512);
    if bytes == 0 {
        return Err(format!("{shown} has no size: no medium is in it, or nothing is set up behind it"));
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

/// Why nothing may be written to the device, in sentences; empty: nobody is known to use it or a part of it.
pub fn users(node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let mut names: Vec<String> = vec![node.name.clone()];
    names.extend(node.partitions.clone());
    // A partition is part of its disk: who has the whole disk has it, too.
    let parent = fs::canonicalize(format!("/sys/class/block/{}", node.name)).ok();
    let parent = parent.filter(|place| place.join("partition").exists());
    let parent = parent.and_then(|place| Some(place.parent()?.file_name()?.to_string_lossy().into_owned()));
    names.extend(parent.filter(|name| Path::new("/sys/class/block").join(name).exists()));
    let numbers: BTreeSet<String> = names
        .iter()
        .filter_map(|name| fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok())
        .map(|text| text.trim().to_string())
        .collect();
    let ours = |path: &str| {
        let meta = fs::metadata(path).ok().filter(|meta| meta.file_type().is_block_device());
        meta.is_some_and(|meta| numbers.contains(&number(meta.rdev())))
    };
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    for (at, source, point) in mounted(&String::from_utf8_lossy(&table)) {
        // Filesystems on several devices have a number of their own; the source names one of them.
        if numbers.contains(&at) || ours(&source) {
            found.push(format!("it is mounted: {source} on {point}"));
        }
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let path = unescaped(line.split_whitespace().next().unwrap_or(""));
        if ours(&path) {
            found.push(format!("the machine swaps to {path}"));
        }
    }
    for name in &names {
        let holders =
            fs::read_dir(format!("/sys/class/block/{name}/holders")).into_iter().flatten().flatten();
        for holder in holders {
            found.push(format!("{name} is part of {}", holder.file_name().to_string_lossy()));
        }
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if ours(file.trim_end()) {
            found.push(format!("{} lies on it", entry.file_name().to_string_lossy()));
        }
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
mod tests {
    use super::*;

    #[test]
    fn what_is_no_device_is_refused() {
        let refused = |path: &str| node(Path::new(path)).expect_err("refused");
        assert!(refused("/").contains("no block device"));
        assert!(refused("/dev/null").contains("no block device"));
        assert!(refused("/nowhere/at/all").contains("cannot be looked at"));
    }

    #[test]
    fn lines_of_a_mount_table() {
        let table = "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 1 0:40 /@ /a\\040b rw shared:1 - btrfs /dev/sdb rw\nx\n";
        let found = mounted(table);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], ("0:40".to_string(), "/dev/sdb".to_string(), "/a b".to_string()));
    }

    #[test]
    fn a_mounted_device_has_a_user() {
        // Whatever this machine runs on, if it tells.
        let table = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        let root = mounted(&table).into_iter().find(|(_, source, _)| node(Path::new(source)).is_ok());
        if let Some((_, source, point)) = root {
            let node = node(Path::new(&source)).expect("a device");
            assert!(users(&node).iter().any(|why| why.contains(&point)), "{node:?}");
        }
    }
}
