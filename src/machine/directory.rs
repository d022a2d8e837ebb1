//! The directory that a run writes its test files to, from `probe:directory`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::Snapshot;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Directory {
    pub path: String,
    /// `ext4`, `xfs`, `tmpfs`, …; its magic number where we do not know it.
    pub filesystem: String,
    /// Major and minor number of what it lies on.
    pub device: String,
    /// What an ordinary user may still write.
    pub free_bytes: Option<u64>,
}

/// The probe's entry: lines of a name, a space and a value (`path`, `magic`, `device`, `free_bytes`).
pub const PROBE: &str = "probe:directory";

/// Magic numbers of `statfs`, as linux/magic.h has them.
const FILESYSTEMS: [(u32, &str); 14] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x4d44, "vfat"),
    (0xca45_1a4e, "bcachefs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
];

pub fn parse(snapshot: &Snapshot) -> Option<Directory> {
    let text = snapshot.text(PROBE)?;
    let words: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let magic = words.get("magic").copied().unwrap_or("unknown");
    let number = magic.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let known = FILESYSTEMS.iter().find(|(known, _)| Some(*known) == number);
    Some(Directory {
        path: words.get("path")?.to_string(),
        filesystem: known.map_or(magic, |(_, name)| name).to_string(),
        device: words.get("device").unwrap_or(&"").to_string(),
        free_bytes: words.get("free_bytes").and_then(|bytes| bytes.parse().ok()),
    })
}

impl Directory {
    /// Whether its files live in memory only, so that no cache stands before them.
    pub fn is_memory(&self) -> bool {
        matches!(self.filesystem.as_str(), "tmpfs" | "ramfs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Entry;

    fn of(text: &str) -> Option<Directory> {
        let mut snapshot = Snapshot::default();
        snapshot.entries.insert(PROBE.to_string(), Entry::Text(text.to_string()));
        parse(&snapshot)
    }

    #[test]
    fn filesystems_by_their_magic() {
        let directory =
            of("path /srv/a folder\nmagic 0x1021994\ndevice 0:33\nfree_bytes 4096\n").expect("known");
        assert_eq!((directory.path.as_str(), directory.filesystem.as_str()), ("/srv/a folder", "tmpfs"));
        assert!(directory.is_memory() && directory.free_bytes == Some(4096));
        let other = of("path /x\nmagic 0x1234").expect("a path is enough");
        assert!(!other.is_memory() && other.filesystem == "0x1234" && other.free_bytes.is_none());
        assert_eq!(of("magic 0xef53"), None);
        assert_eq!(parse(&Snapshot::default()), None);
    }
}
