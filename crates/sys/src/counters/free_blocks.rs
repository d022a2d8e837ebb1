//! Fragmentation of each node's free memory, from `/proc/buddyinfo`.

use std::collections::BTreeMap;
use std::path::Path;

/// Free memory of one NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FreeBlocks {
    /// Free bytes of the buddy allocator (without pages on per-CPU lists).
    pub bytes: f64,
    /// The part in blocks of 2 MiB or more, from which huge pages can be made without compaction.
    pub huge_bytes: f64,
}

const HUGE_PAGE_BYTES: f64 = (2 << 20) as f64;

/// Free memory by node, below `root`; empty if the file cannot be read.
pub fn free_blocks(root: &Path) -> BTreeMap<u32, FreeBlocks> {
    let text = std::fs::read_to_string(root.join("proc/buddyinfo")).unwrap_or_default();
    parse(&text, rustix::param::page_size() as f64)
}

/// Parses lines `Node 0, zone   Normal    216     55 ...`: numbers of free blocks of 1, 2, 4, ...
/// pages of `page` bytes.
fn parse(text: &str, page: f64) -> BTreeMap<u32, FreeBlocks> {
    let mut nodes: BTreeMap<u32, FreeBlocks> = BTreeMap::new();
    for line in text.lines() {
        let Some((node, zone)) = line.strip_prefix("Node ").and_then(|rest| rest.split_once(',')) else {
            continue;
        };
        let Ok(node) = node.trim().parse::<u32>() else { continue };
        let counts: Option<Vec<f64>> = zone
            .split_whitespace()
            .skip(2)
            .map(|count| count.parse::<u64>().ok().map(|n| n as f64))
            .collect();
        // A damaged line is skipped.
        let Some(counts) = counts else { continue };
        let free = nodes.entry(node).or_default();
        let mut block = page;
        for count in counts {
            free.bytes += count * block;
            free.huge_bytes += if block >= HUGE_PAGE_BYTES { count * block } else { 0.0 };
            block *= 2.0;
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_huge_blocks_of_each_node() {
        let text = "Node 0, zone      DMA      1      0      0      0      0      0      0      0      1      1      3\n\
                    Node 0, zone   Normal      2      1      0      0      0      0      0      0      0      2      0\n\
                    Node 1, zone   Normal      4      0      0      0      0      0      0      0      0      0      0\n\
                    Node x, zone   Normal 1\nNode 1, zone Movable 1 two 3\n";
        let nodes = parse(text, 4096.0);
        let zero = nodes[&0];
        assert_eq!(zero.huge_bytes, HUGE_PAGE_BYTES * (1.0 + 6.0 + 2.0));
        assert_eq!(zero.bytes, zero.huge_bytes + 4096.0 * (1.0 + 256.0 + 2.0 + 2.0));
        assert_eq!(nodes[&1], FreeBlocks { bytes: 16384.0, huge_bytes: 0.0 });
        assert_eq!(nodes.len(), 2);
    }

    #[test]
    fn this_kernel_reports_plausible_numbers_or_none() {
        assert!(free_blocks(Path::new("/nonexistent")).is_empty());
        for (_, free) in free_blocks(Path::new("/")) {
            assert!(free.huge_bytes <= free.bytes);
        }
    }
}
