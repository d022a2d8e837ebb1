//! The directory that a run writes its test files to, from `probe:directory`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;
use model::vocabulary::host as ids;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Directory {
    pub path: String,
    /// `ext4`, `xfs`, `tmpfs`, …; its magic number where we do not know it.
    pub filesystem: String,
    /// Major and minor number of what it lies on.
    pub device: String,
    /// What an ordinary user may still write.
    pub free_bytes: Option<u64>,
    /// What a disk hangs on, where it is reported and no layer between could make it look faster.
    pub link: Option<Link>,
}

/// The way that all bytes of a disk must take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    pub name: String,
    /// What it can carry at most, GB/s: its symbols less their coding.
    pub gb_per_s: f64,
}

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
    let text = snapshot.text(ids::probe::DIRECTORY)?;
    let words: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let magic = words.get("magic").copied().unwrap_or("unknown");
    let number = magic.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let known = FILESYSTEMS.iter().find(|(known, _)| Some(*known) == number);
    let filesystem = known.map_or(magic, |(_, name)| name);
    Some(Directory {
        path: words.get("path")?.to_string(),
        filesystem: filesystem.to_string(),
        link: link(&words).filter(|_| PLAIN.contains(&filesystem)),
        device: words.get("device").unwrap_or(&"").to_string(),
        free_bytes: words.get("free_bytes").and_then(|bytes| bytes.parse().ok()),
    })
}

/// Filesystems that store bytes as they are: one that compresses reads faster than its disk.
pub(super) const PLAIN: [&str; 3] = ["ext4", "xfs", "vfat"];

/// SATA's fastest, 6 Gbit/s in symbols of 10 bits a byte.
const SATA_GB_PER_S: f64 = 0.6;

fn link(words: &BTreeMap<&str, &str>) -> Option<Link> {
    let word = |name: &str| words.get(name).copied();
    link_of(word("sysfs")?, word("current_link_speed"), word("current_link_width"))
}

/// By the names on the device's way through /sys: a disk of NVMe or SATA; nothing of layers and
/// other buses.
pub(super) fn link_of(place: &str, speed: Option<&str>, width: Option<&str>) -> Option<Link> {
    let numbered = |part: &str, name: &str| {
        let number = part.strip_prefix(name);
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let passes = |name: &str| place.split('/').any(|part| numbered(part, name));
    if place.contains("/virtual/") {
        return None;
    }
    if passes("nvme") {
        let gt_per_s: f64 = speed?.split(' ').next()?.parse().ok()?;
        let width: u32 = width?.parse().ok()?;
        // PCI Express: 8 of 10 bits carry data up to 5 GT/s, 128 of 130 up to 32, nearly all above.
        let coding = match gt_per_s {
            speed if speed <= 5.0 => 0.8,
            speed if speed <= 32.0 => 128.0 / 130.0,
            _ => 1.0,
        };
        let gb_per_s = gt_per_s * coding / 8.0 * f64::from(width);
        let name = format!("NVMe on PCIe, {gt_per_s} GT/s × {width}");
        return (gb_per_s > 0.0 && gb_per_s.is_finite()).then_some(Link { name, gb_per_s });
    }
    passes("ata").then(|| Link { name: "SATA".into(), gb_per_s: SATA_GB_PER_S })
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
    use model::Entry;

    fn of(text: &str) -> Option<Directory> {
        let mut snapshot = Snapshot::default();
        snapshot.entries.insert(ids::probe::DIRECTORY.to_string(), Entry::Text(text.to_string()));
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

    #[test]
    fn disks_by_what_they_hang_on() {
        let linked = |magic: &str, lines: &str| {
            of(&format!("path /x\nmagic {magic}\n{lines}")).and_then(|directory| directory.link)
        };
        let nvme = "sysfs /sys/devices/pci0000:00/0000:00:1d.0/0000:3d:00.0/nvme/nvme0/nvme0n1/nvme0n1p2\n\
                    current_link_speed 16.0 GT/s PCIe\ncurrent_link_width 4\n";
        let fast = linked("0xef53", nvme).expect("told");
        assert_eq!(fast.name, "NVMe on PCIe, 16 GT/s × 4");
        assert!((fast.gb_per_s - 7.877).abs() < 0.001, "{}", fast.gb_per_s);
        assert_eq!(linked("0x9123683e", nvme), None, "btrfs may compress");
        let old = nvme.replace("16.0 GT/s PCIe", "2.5 GT/s PCIe");
        assert_eq!(linked("0xef53", &old).map(|link| link.gb_per_s), Some(1.0));
        let lines = nvme.lines().next().expect("a line");
        assert_eq!(linked("0xef53", lines), None, "no link is told");
        let sata = "sysfs /sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda/sda1";
        assert_eq!(linked("0x58465342", sata).map(|link| link.gb_per_s), Some(0.6));
        for other in [
            "sysfs /sys/devices/virtual/block/dm-0",
            "sysfs /sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda",
            "sysfs /sys/devices/pci0000:00/0000:00:02.0/host0/rport-0:0-1/target0:0:0/0:0:0:0/block/sdb",
            "sysfs /sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
        ] {
            assert_eq!(linked("0xef53", other), None, "{other}");
        }
    }
}
