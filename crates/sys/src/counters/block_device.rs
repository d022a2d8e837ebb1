//! I/O counters of a block device: the `stat` file of its disk.

use std::path::{Path, PathBuf};

use super::CounterFile;

/// These counters are in sectors of this size for every device.
const SECTOR_BYTES: f64 = 512.0;

/// The counters of a block device, kept open; for a partition those of its whole disk.
pub struct BlockDevice {
    stat: CounterFile,
    buffer: Vec<u8>,
}

/// Totals since the boot. Kernels before 4.18 do not count discards: 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockCounts {
    pub read_bytes: f64,
    pub written_bytes: f64,
    pub discarded_bytes: f64,
    /// Time with at least one I/O in flight, ms.
    pub busy_ms: f64,
    /// Summed latency of all reads, writes and discards, ms; divided by the wall time it is the
    /// mean number in flight.
    pub waited_ms: f64,
}

impl BlockCounts {
    /// The differences to an earlier reading.
    pub fn since(self, before: BlockCounts) -> BlockCounts {
        BlockCounts {
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
            discarded_bytes: self.discarded_bytes - before.discarded_bytes,
            busy_ms: self.busy_ms - before.busy_ms,
            waited_ms: self.waited_ms - before.waited_ms,
        }
    }
}

/// The folder of a device's disk in /sys; for a partition that of the whole disk.
fn disk_folder(root: &Path, device: &str) -> Option<PathBuf> {
    let (major, minor) = device.split_once(':')?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    let folder = std::fs::canonicalize(root.join("sys/dev/block").join(device)).ok()?;
    if folder.join("partition").exists() { folder.parent().map(Path::to_path_buf) } else { Some(folder) }
}

impl BlockDevice {
    /// Opens the counters of the device with these numbers (`8:1`) in the tree below `root`. `None`
    /// if no block device has them (tmpfs, overlay, filesystems over several devices) or if it does
    /// not count (`queue/iostats` is 0).
    pub fn open(root: &Path, device: &str) -> Option<BlockDevice> {
        let folder = disk_folder(root, device)?;
        if counts_nothing(&folder) {
            return None;
        }
        let stat = CounterFile::open(&folder.join("stat"));
        stat.0.is_some().then(|| BlockDevice { stat, buffer: Vec::new() })
    }

    /// The current counters; `None` if all are 0. Mounting reads from a device, so zeros mean that
    /// the driver does not count (the head of an NVMe multipath on older kernels).
    pub fn read(&mut self) -> Option<BlockCounts> {
        counts(self.stat.read(&mut self.buffer)?).filter(|counts| *counts != BlockCounts::default())
    }
}

/// The fields of Documentation/block/stat: four for reads, four for writes, in flight, busy,
/// waited, four for discards.
fn counts(text: &str) -> Option<BlockCounts> {
    let numbers: Option<Vec<f64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let numbers = numbers?;
    let field = |index: usize| numbers.get(index).copied();
    Some(BlockCounts {
        read_bytes: field(2)? * SECTOR_BYTES,
        written_bytes: field(6)? * SECTOR_BYTES,
        discarded_bytes: field(13).unwrap_or(0.0) * SECTOR_BYTES,
        busy_ms: field(9)?,
        waited_ms: field(3)? + field(7)? + field(14).unwrap_or(0.0),
    })
}

/// Whether counting is switched off for a disk (it costs some CPU time for each I/O).
fn counts_nothing(disk: &Path) -> bool {
    std::fs::read_to_string(disk.join("queue/iostats")).is_ok_and(|text| text.trim() == "0")
}

/// Why this device has no counters, as a remark of a visit; `None` if it counts.
pub fn why_uncounted(root: &Path, device: &str) -> Option<String> {
    let folder = disk_folder(root, device)?;
    counts_nothing(&folder).then(|| {
        let name = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        format!("{name} does not count its I/O: switch it on with echo 1 >/sys/block/{name}/queue/iostats")
    })
}

/// Whether a device has polled queues (`queue/io_poll`), which io_uring's IOPOLL needs.
pub fn has_polled_queues(device: &str) -> bool {
    let folder = disk_folder(Path::new("/"), device);
    let text = folder.and_then(|folder| std::fs::read_to_string(folder.join("queue/io_poll")).ok());
    text.is_some_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = " 100 1 2000 30 50 2 4000 60 1 70 95 10 0 800 5 0 0\n";

    #[test]
    fn a_partition_has_the_counters_of_its_disk() {
        let root = tempfile::tempdir().expect("a folder");
        let disk = root.path().join("sys/devices/pci/block/sda");
        std::fs::create_dir_all(disk.join("sda1")).expect("folders");
        std::fs::create_dir_all(root.path().join("sys/dev/block")).expect("folders");
        std::fs::write(disk.join("stat"), STAT).expect("written");
        std::fs::write(disk.join("sda1/stat"), "1 1 1 1 1 1 1 1 1 1 1\n").expect("written");
        std::fs::write(disk.join("sda1/partition"), "1\n").expect("written");
        for (device, folder) in [("8:0", disk.clone()), ("8:1", disk.join("sda1"))] {
            std::os::unix::fs::symlink(folder, root.path().join("sys/dev/block").join(device))
                .expect("a link");
            let mut device = BlockDevice::open(root.path(), device).expect("a disk");
            let first = device.read().expect("counters");
            assert_eq!((first.read_bytes, first.written_bytes), (1_024_000.0, 2_048_000.0));
            assert_eq!((first.discarded_bytes, first.busy_ms, first.waited_ms), (409_600.0, 70.0, 95.0));
            assert_eq!(first.since(first), BlockCounts::default());
        }
        for device in ["0:33", "", "8", "../../etc:1", "8:2"] {
            assert!(BlockDevice::open(root.path(), device).is_none(), "{device:?}");
        }
    }

    #[test]
    fn a_device_that_does_not_count_has_no_counters() {
        let root = tempfile::tempdir().expect("a folder");
        let disk = root.path().join("sys/devices/block/sda");
        std::fs::create_dir_all(disk.join("queue")).expect("folders");
        std::fs::create_dir_all(root.path().join("sys/dev/block")).expect("folders");
        std::os::unix::fs::symlink(&disk, root.path().join("sys/dev/block/8:0")).expect("a link");
        std::fs::write(disk.join("stat"), STAT).expect("written");
        for (iostats, counts_io) in [("1\n", true), ("0\n", false)] {
            std::fs::write(disk.join("queue/iostats"), iostats).expect("written");
            assert_eq!(BlockDevice::open(root.path(), "8:0").is_some(), counts_io);
            assert_eq!(why_uncounted(root.path(), "8:0").is_some(), !counts_io);
        }
        std::fs::write(disk.join("queue/iostats"), "1\n").expect("written");
        std::fs::write(disk.join("stat"), "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n").expect("written");
        assert_eq!(BlockDevice::open(root.path(), "8:0").expect("a disk").read(), None);
    }

    #[test]
    fn damaged_and_old_counters() {
        for text in ["", "1 2 3", "1 2 x 4 5 6 7 8 9 10 11"] {
            assert_eq!(counts(text), None, "{text:?}");
        }
        let old = counts("1 0 8 4 1 0 16 6 0 7 10").expect("older kernels have eleven fields");
        assert_eq!((old.discarded_bytes, old.waited_ms), (0.0, 10.0));
        assert!(!has_polled_queues("0:0"));
    }
}
