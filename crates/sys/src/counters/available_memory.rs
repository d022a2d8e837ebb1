//! How much memory this process may still allocate, read while it allocates.

use std::path::Path;

use super::CounterFile;

/// The files that limit this process: of the host, of a NUMA node and of its control groups.
pub struct AvailableMemory {
    machine: CounterFile,
    node: CounterFile,
    /// Limit and usage of each group.
    groups: Vec<[CounterFile; 2]>,
    buffer: Vec<u8>,
}

/// Limit and usage in control groups version 2 and version 1.
const GROUP_FILES: [[&str; 2]; 2] =
    [["memory.max", "memory.current"], ["memory.limit_in_bytes", "memory.usage_in_bytes"]];

impl AvailableMemory {
    /// Opens the files that exist below `root`: `meminfo` of host and node, and those of the
    /// control groups in `folders`.
    pub fn open(root: &Path, node: Option<u32>, folders: &[&str]) -> AvailableMemory {
        let under = |path: &str| CounterFile::open(&root.join(path.trim_start_matches('/')));
        let group = |folder: &&str| {
            let versions =
                GROUP_FILES.into_iter().map(|files| files.map(|file| under(&format!("{folder}/{file}"))));
            versions.into_iter().find(|files| files.iter().all(|file| file.0.is_some()))
        };
        AvailableMemory {
            machine: under("/proc/meminfo"),
            node: node.map_or(CounterFile(None), |node| {
                under(&format!("/sys/devices/system/node/node{node}/meminfo"))
            }),
            groups: folders.iter().filter_map(group).collect(),
            buffer: Vec::new(),
        }
    }

    /// Bytes that can be allocated without swapping, by the tightest limit; `None` if no file can
    /// be read.
    pub fn bytes(&mut self) -> Option<u64> {
        let machine = self.machine.read(&mut self.buffer).and_then(|text| kilobytes(text, "MemAvailable:"));
        let node = self.node.read(&mut self.buffer).and_then(available_in_node);
        let mut available: Vec<u64> = machine.into_iter().chain(node).collect();
        for files in &self.groups {
            let [limit, used] = [0, 1].map(|file| {
                let text = files[file].read(&mut self.buffer)?;
                text.trim().parse::<u64>().ok()
            });
            // `max` does not parse: no limit.
            available.extend(limit.zip(used).map(|(limit, used)| limit.saturating_sub(used)));
        }
        available.into_iter().min()
    }
}

/// Free memory of a node and half of its file pages, which the kernel can reclaim; bytes.
fn available_in_node(text: &str) -> Option<u64> {
    let files: u64 = ["Active(file):", "Inactive(file):"].iter().filter_map(|key| kilobytes(text, key)).sum();
    Some(kilobytes(text, "MemFree:")? + files / 2)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once(key).map(|(_, value)| value))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let left = |folders: &[&str]| AvailableMemory::open(root.path(), Some(1), folders).bytes();
        assert_eq!(left(&["/cg/a"]), None);
        file("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:   800 kB\n");
        assert_eq!(left(&["/cg/a"]), Some(800 << 10));
        let node = "Node 1 MemFree:  400 kB\nNode 1 Active(file): 100 kB\nNode 1 Inactive(file): 300 kB\n";
        file("sys/devices/system/node/node1/meminfo", node);
        assert_eq!(left(&[]), Some(600 << 10));
        file("cg/a/memory.max", "max\n");
        file("cg/a/memory.current", "4096\n");
        assert_eq!(left(&["/cg/a"]), Some(600 << 10));
        file("v1/b/memory.limit_in_bytes", "20480\n");
        file("v1/b/memory.usage_in_bytes", "4096\n");
        assert_eq!(left(&["/cg/a", "/v1/b"]), Some(16384));
    }
}
