//! Memory of the whole machine, huge pages and the policies about them.

use model::vocabulary::host as ids;
use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

use super::text::{chosen, kilobytes};
use super::topology::Cpus;

/// Memory of the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Memory {
    pub total_bytes: Option<u64>,
    pub available_bytes: Option<u64>,
    pub swap_total_bytes: Option<u64>,
    pub swap_free_bytes: Option<u64>,
    /// Size of a base page, where a probe or the architecture defines it.
    pub page_bytes: Option<u64>,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// When a page fault stalls to make a huge page: `always`, `defer`, `defer+madvise`, `madvise`,
    /// `never`.
    pub transparent_huge_page_defrag: Option<String>,
    pub transparent_huge_page_bytes: Option<u64>,
    pub huge_pages: Vec<HugePages>,
    /// Automatic NUMA balancing.
    pub numa_balancing: Option<bool>,
    /// `vm.overcommit_memory`: 0 heuristic, 1 always, 2 never.
    pub overcommit: Option<u32>,
    /// `vm.swappiness`, 0..=200.
    pub swappiness: Option<u32>,
}

/// A pool of explicit huge pages.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HugePages {
    pub page_bytes: u64,
    /// Pages in the pool, and those of them that no one uses.
    pub total: u64,
    pub free: u64,
}

pub(super) fn parse(snapshot: &Snapshot, cpus: &Cpus) -> Memory {
    let meminfo = snapshot.text("/proc/meminfo");
    let amount = |key: &str| meminfo.and_then(|text| kilobytes(text, key));
    let thp = |file: &str| snapshot.text(&format!("/sys/kernel/mm/transparent_hugepage/{file}"));
    Memory {
        total_bytes: amount("MemTotal"),
        available_bytes: amount("MemAvailable"),
        swap_total_bytes: amount("SwapTotal"),
        swap_free_bytes: amount("SwapFree"),
        page_bytes: page_bytes(snapshot, cpus),
        transparent_huge_pages: thp("enabled").and_then(chosen),
        transparent_huge_page_defrag: thp("defrag").and_then(chosen),
        transparent_huge_page_bytes: thp("hpage_pmd_size").and_then(|text| text.parse().ok()),
        huge_pages: huge_pages(snapshot, "/sys/kernel/mm/hugepages"),
        numa_balancing: snapshot.number::<u32>("/proc/sys/kernel/numa_balancing").map(|mode| mode != 0),
        overcommit: snapshot.number("/proc/sys/vm/overcommit_memory"),
        swappiness: snapshot.number("/proc/sys/vm/swappiness"),
    }
}

/// x86 and s390 know one size of base page; elsewhere it is the kernel's choice, which no file
/// reports.
fn page_bytes(snapshot: &Snapshot, cpus: &Cpus) -> Option<u64> {
    let fixed = matches!(cpus.architecture.as_deref(), Some("x86_64" | "i686" | "s390x"));
    snapshot.number(ids::probe::PAGE_BYTES).or(fixed.then_some(4096))
}

/// The pools of a `hugepages` folder, the smallest pages first.
pub(super) fn huge_pages(snapshot: &Snapshot, folder: &str) -> Vec<HugePages> {
    let pool = |name: &str| {
        let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let count = |file: &str| snapshot.number(&format!("{folder}/{name}/{file}"));
        Some(HugePages {
            page_bytes: kilobytes.checked_mul(1024)?,
            total: count("nr_hugepages")?,
            free: count("free_hugepages")?,
        })
    };
    let mut pools: Vec<HugePages> = snapshot.children(folder).into_iter().filter_map(pool).collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn meminfo_pools_and_policies() {
        let snapshot = tree(&[
            (
                "/proc/meminfo",
                "MemTotal:       2052540 kB\nMemFree: 1 kB\nSwapTotal: 0 kB\nMemAvailable: x kB\n",
            ),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n"),
            ("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n"),
            ("/proc/sys/kernel/numa_balancing", "2\n"),
        ]);
        let memory = parse(&snapshot, &Cpus::default());
        assert_eq!(memory.total_bytes, Some(2052540 << 10));
        assert_eq!(memory.swap_total_bytes, Some(0));
        assert_eq!(memory.available_bytes, None);
        assert_eq!(memory.page_bytes, None);
        assert_eq!(memory.transparent_huge_pages.as_deref(), Some("madvise"));
        assert_eq!(memory.huge_pages, [HugePages { page_bytes: 2 << 20, total: 8, free: 3 }]);
        assert_eq!(memory.numa_balancing, Some(true));
    }
}
