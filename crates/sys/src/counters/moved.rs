//! What moves memory behind a program's back, as the kernel counts it: compaction, the balloon of a
//! guest, KSM, NUMA balancing, huge pages that are made and split.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Gauge, Pulse, field};

/// Counters of /proc/vmstat; a kernel has those that it was built with.
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

/// Pages that share their memory with another by KSM, and what they are called here.
const SHARING: (&str, &str) = ("/sys/kernel/mm/ksm/pages_sharing", "ksm_pages_sharing");

/// The counters' files, read again and again.
pub struct MovedMemory {
    vmstat: Gauge,
    sharing: Gauge,
    pulse: Pulse,
    buffer: Vec<u8>,
}

/// All of them at one moment.
#[derive(Clone, Debug, Default)]
pub struct MovedSoFar {
    alive: bool,
    totals: BTreeMap<&'static str, f64>,
}

impl MovedMemory {
    pub fn open(root: &Path) -> MovedMemory {
        let under = |path: &str| root.join(path.trim_start_matches('/'));
        MovedMemory {
            vmstat: Gauge::open(&under("/proc/vmstat")),
            sharing: Gauge::open(&under(SHARING.0)),
            pulse: Pulse::default(),
            buffer: Vec::new(),
        }
    }

    pub fn read(&mut self) -> MovedSoFar {
        let mut now = MovedSoFar::default();
        if let Some(text) = self.vmstat.read(&mut self.buffer) {
            now.alive = self.pulse.beats(field(text, "pgfault"));
            now.totals = NAMES.iter().filter_map(|name| Some((*name, field(text, name)?))).collect();
        }
        let sharing = self.sharing.read(&mut self.buffer).and_then(|text| text.trim().parse().ok());
        now.totals.extend(sharing.map(|pages| (SHARING.1, pages)));
        now
    }
}

impl MovedSoFar {
    /// What was counted since `earlier`, by the kernel's names; nothing where its counters stand
    /// still. Pages that KSM merged may have become fewer.
    pub fn since(&self, earlier: &MovedSoFar) -> BTreeMap<String, f64> {
        let both = self.totals.iter().filter(|_| self.alive);
        both.filter_map(|(name, total)| Some((name.to_string(), total - earlier.totals.get(name)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_is_what_grew_of_what_is_there() {
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
        // Files that are served with the same numbers for ever count nothing.
        assert!(moved.read().since(&before).is_empty());
        write("proc/vmstat", "pgfault 6\ncompact_success 9\npgmigrate_success 100\nballoon_inflate 4\n");
        write("sys/kernel/mm/ksm/pages_sharing", "30\n");
        let known = [("compact_success", 2.0), ("ksm_pages_sharing", -10.0), ("pgmigrate_success", 0.0)];
        let known = known.map(|(name, count)| (name.to_string(), count));
        assert_eq!(moved.read().since(&before), BTreeMap::from(known), "what is new has no earlier total");
        let mut none = MovedMemory::open(&dir.path().join("nothing"));
        assert!(none.read().since(&before).is_empty());
    }
}
