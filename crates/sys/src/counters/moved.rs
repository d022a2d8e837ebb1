//! Kernel counters of memory that is moved or reshaped while a program runs: page migration,
//! compaction, a guest's balloon, KSM, NUMA balancing, huge pages made and split, swapping out.

use std::collections::BTreeMap;
use std::path::Path;

use super::{AdvanceCheck, CounterFile, field};

/// Running totals of /proc/vmstat; which of them exist depends on the kernel's configuration.
/// `compact_*` and `thp_*` count events, the others pages.
const NAMES: &[&str] = &[
    "pgmigrate_success",
    "compact_stall",
    "compact_success",
    "balloon_inflate",
    "balloon_deflate",
    "balloon_migrate",
    "cow_ksm",
    "ksm_swpin_copy",
    "numa_pages_migrated",
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "thp_split_page",
    "pswpout",
];

/// Pages that KSM has merged with another: a level, which can also fall.
const KSM_PATH: &str = "/sys/kernel/mm/ksm/pages_sharing";
const KSM_NAME: &str = "ksm_pages_sharing";

/// The files of these counters, kept open.
pub struct MovedMemory {
    vmstat: CounterFile,
    ksm_sharing: CounterFile,
    /// Page faults, which always grow, show that the file is real and not a sandbox's.
    page_faults: AdvanceCheck,
    buffer: Vec<u8>,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct MovedMemoryReading {
    /// Whether page faults have grown since the first reading.
    counters_advance: bool,
    /// By the kernel's names: running totals, and the level of KSM.
    values: BTreeMap<&'static str, f64>,
}

impl MovedMemory {
    pub fn open(root: &Path) -> MovedMemory {
        let under = |path: &str| root.join(path.trim_start_matches('/'));
        MovedMemory {
            vmstat: CounterFile::open(&under("/proc/vmstat")),
            ksm_sharing: CounterFile::open(&under(KSM_PATH)),
            page_faults: AdvanceCheck::default(),
            buffer: Vec::new(),
        }
    }

    pub fn read(&mut self) -> MovedMemoryReading {
        let mut now = MovedMemoryReading::default();
        if let Some(text) = self.vmstat.read(&mut self.buffer) {
            now.counters_advance = self.page_faults.has_advanced(field(text, "pgfault"));
            now.values = NAMES.iter().filter_map(|name| Some((*name, field(text, name)?))).collect();
        }
        let pages = self.ksm_sharing.read(&mut self.buffer).and_then(|text| text.trim().parse().ok());
        now.values.extend(pages.map(|pages| (KSM_NAME, pages)));
        now
    }
}

impl MovedMemoryReading {
    /// Differences to any earlier reading by the kernel's names; empty if the files' numbers never
    /// change (a sandbox). The difference of KSM's pages may be negative.
    pub fn since(&self, earlier: &MovedMemoryReading) -> BTreeMap<String, f64> {
        if !self.counters_advance {
            return BTreeMap::new();
        }
        self.values
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value - earlier.values.get(name)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_the_counters_that_exist() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("proc/vmstat", "pgfault 5\ncompact_success 7\npgmigrate_success 100\n");
        write("sys/kernel/mm/ksm/pages_sharing", "40\n");
        let mut moved = MovedMemory::open(dir.path());
        let before = moved.read();
        // Files whose numbers never change count nothing.
        assert!(moved.read().since(&before).is_empty());
        write("proc/vmstat", "pgfault 6\ncompact_success 9\npgmigrate_success 100\nballoon_inflate 4\n");
        write("sys/kernel/mm/ksm/pages_sharing", "30\n");
        let known = [("compact_success", 2.0), ("ksm_pages_sharing", -10.0), ("pgmigrate_success", 0.0)];
        let known = known.map(|(name, count)| (name.to_string(), count));
        assert_eq!(moved.read().since(&before), BTreeMap::from(known), "a new counter has no earlier total");
        let mut none = MovedMemory::open(&dir.path().join("nothing"));
        assert!(none.read().since(&before).is_empty());
    }
}
