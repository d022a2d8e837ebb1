//! Which processes have something open, or mapped: of those that this user may look into.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::Duration;

/// Who only looks what is there (udev does, at every new device) is gone by the second look.
const LOOKS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(300)];

/// What to call the file of a device and an inode.
pub(super) type Mapped<'a, T> = dyn Fn(&str, u64) -> Option<T> + 'a;

/// What is looked for, by what is open and by what is mapped (`fd:1`, an inode), and what to call
/// it.
pub(super) struct Wanted<'a, T> {
    pub open: &'a dyn Fn(&Metadata) -> Option<T>,
    /// Not looked for where there is none: of many processes it is much to read.
    pub mapped: Option<&'a Mapped<'a, T>>,
}

/// What of it is open for good, in which process (`process 812 (qemu)`), and by which path.
pub(super) fn of<T: Ord>(root: &Path, wanted: &Wanted<T>) -> BTreeSet<(T, String, String)> {
    let mut found = look(root, wanted);
    for pause in LOOKS {
        if found.is_empty() {
            break;
        }
        std::thread::sleep(pause);
        let again = look(root, wanted);
        found.retain(|one| again.contains(one));
    }
    found
}

fn look<T: Ord>(root: &Path, wanted: &Wanted<T>) -> BTreeSet<(T, String, String)> {
    let mut found = BTreeSet::new();
    // This process, which holds what it asks about: by its number in this /proc, which may be that
    // of other namespaces.
    let own = fs::read_link(root.join("proc/self")).unwrap_or_default();
    for entry in fs::read_dir(root.join("proc")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.parse::<u32>().ok().filter(|_| own.as_os_str() != name.as_str()) else {
            continue;
        };
        let folder = entry.path();
        let named = || {
            let comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            format!("process {pid} ({})", comm.trim())
        };
        for open in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            if let Some(one) = fs::metadata(open.path()).ok().and_then(|meta| (wanted.open)(&meta)) {
                let path = fs::read_link(open.path()).unwrap_or_default();
                found.insert((one, named(), path.to_string_lossy().into_owned()));
            }
        }
        let Some(mapped) = wanted.mapped else { continue };
        let maps = fs::read(folder.join("maps")).unwrap_or_default();
        for line in String::from_utf8_lossy(&maps).lines() {
            // Addresses, rights, offset, device, inode, path.
            let mut words = line.split_ascii_whitespace().skip(3);
            let (device, inode) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let inode = inode.parse::<u64>().ok().filter(|inode| *inode != 0);
            if let Some(one) = inode.and_then(|inode| mapped(device, inode)) {
                found.insert((one, named(), words.collect::<Vec<&str>>().join(" ")));
            }
        }
    }
    found
}
