//! What a block device says of itself while it works: the `stat` file of its disk.

use std::path::{Path, PathBuf};

use super::CounterFile;

/// A sector of these counters, whatever the device's own is, bytes.
const SECTOR: f64 = 512.0;

/// The counters of a block device, kept open. Of a partition those of its disk, which everybody on
/// it shares.
pub struct BlockDevice {
    stat: CounterFile,
    buffer: Vec<u8>,
}

/// Since the system booted. Kernels before 4.18 tell of no discards, which are 0 then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockCounts {
    pub read_bytes: f64,
    pub written_bytes: f64,
    pub discarded_bytes: f64,
    /// Time that there was anything to do, ms.
    pub busy_ms: f64,
    /// Time of all I/Os together, reading, writing and discarding, ms: over a stretch of time it is
    /// the mean number in flight.
    pub waited_ms: f64,
}

impl BlockCounts {
    /// What was counted after `before`.
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

/// The folder of a device's disk in /sys: that of the whole one, where it is a partition.
fn disk_folder(root: &Path, device: &str) -> Option<PathBuf> {
    let numbers = device.split_once(':')?;
    let number = |text: &str| text.parse::<u32>().is_ok();
    if !number(numbers.0) || !number(numbers.1) {
        return None;
    }
    let folder = std::fs::canonicalize(root.join("sys/dev/block").join(device)).ok()?;
    match folder.join("partition").exists() {
        true => folder.parent().map(Path::to_path_buf),
        false => Some(folder),
    }
}

impl BlockDevice {
    /// By the device's numbers (`8:1`), in the tree below `root`; `None` where it is no block
    /// device (tmpfs, overlay and filesystems over several have numbers that belong to none), and
    /// where the device counts nothing (`queue/iostats` is 0).
    pub fn open(root: &Path, device: &str) -> Option<BlockDevice> {
        let folder = disk_folder(root, device)?;
        if counts_nothing(&folder) {
            return None;
        }
        let stat = CounterFile::open(&folder.join("stat"));
        stat.0.is_some().then(|| BlockDevice { stat, buffer: Vec::new() })
    }

    /// Its counters now; `None` where they never counted anything: a device on which files lie was
    /// read at least when it was mounted, so zeros are those of a driver that does not count (the
    /// head of an NVMe multipath on older kernels).
    pub fn read(&mut self) -> Option<BlockCounts> {
        counts(self.stat.read(&mut self.buffer)?).filter(|counts| *counts != BlockCounts::default())
    }
}

/// The fields of Documentation/block/stat: four each of reads and writes, in flight, busy, waited,
/// four of discards.
fn counts(text: &str) -> Option<BlockCounts> {
    let numbers: Option<Vec<f64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let numbers = numbers?;
    let at = |index: usize| numbers.get(index).copied();
    Some(BlockCounts {
        read_bytes: at(2)? * SECTOR,
        written_bytes: at(6)? * SECTOR,
        discarded_bytes: at(13).unwrap_or(0.0) * SECTOR,
        busy_ms: at(9)?,
        waited_ms: at(3)? + at(7)? + at(14).unwrap_or(0.0),
    })
}

/// Whether counting is switched off for a disk, which spares some CPU time for each I/O.
fn counts_nothing(disk: &Path) -> bool {
    std::fs::read_to_string(disk.join("queue/iostats")).is_ok_and(|text| text.trim() == "0")
}

/// Why nobody knows what this device does, where that is so: for a visit's remarks.
pub fn uncounted(root: &Path, device: &str) -> Option<String> {
    let folder = disk_folder(root, device)?;
    counts_nothing(&folder).then(|| {
        let name = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        format!(
            "{name} does not count its I/O (queue/iostats is 0): what it moved is not known (echo 1 \
             >/sys/block/{name}/queue/iostats)"
        )
    })
}

/// Whether a device has queues whose completions can be polled for.
pub fn polls(device: &str) -> bool {
    let folder = disk_folder(Path::new("/"), device);
    let told = folder.and_then(|folder| std::fs::read_to_string(folder.join("queue/io_poll")).ok());
    told.is_some_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = " 100 1 2000 30 50 2 4000 60 1 70 95 10 0 800 5 0 0\n";

    #[test]
    fn a_partition_counts_as_its_disk_and_others_are_absent() {
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
    fn a_device_that_does_not_count_tells_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        let disk = root.path().join("sys/devices/block/sda");
        std::fs::create_dir_all(disk.join("queue")).expect("folders");
        std::fs::create_dir_all(root.path().join("sys/dev/block")).expect("folders");
        std::os::unix::fs::symlink(&disk, root.path().join("sys/dev/block/8:0")).expect("a link");
        std::fs::write(disk.join("stat"), STAT).expect("written");
        for (iostats, told) in [("1\n", true), ("0\n", false)] {
            std::fs::write(disk.join("queue/iostats"), iostats).expect("written");
            assert_eq!(BlockDevice::open(root.path(), "8:0").is_some(), told);
            assert_eq!(uncounted(root.path(), "8:0").is_some(), !told);
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
        let old = counts("1 0 8 4 1 0 16 6 0 7 10").expect("eleven fields were all there was");
        assert_eq!((old.discarded_bytes, old.waited_ms), (0.0, 10.0));
        assert!(!polls("0:0"));
    }
}
