//! The scheduler's own picture: its domains.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use model::{CpuSet, Snapshot};

/// One scheduler domain of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Domain {
    /// `SMT`, `CLS`, `MC`, `DIE` or `PKG`, `NUMA`; `None` where only the span is readable.
    pub name: Option<String>,
    /// `SD_...` words; kernels before 5.9 report one number.
    pub flags: Vec<String>,
    /// CPUs that it spans, where /proc/schedstat lists them.
    pub cpus: Option<CpuSet>,
}

/// Domains of each CPU, smallest first: names and flags from debugfs (5.13 and later) or procfs
/// (before), spans from /proc/schedstat. Empty where none is readable.
pub(super) fn parse(snapshot: &Snapshot) -> BTreeMap<u32, Vec<Domain>> {
    let mut domains = schedstat(snapshot.text("/proc/schedstat").unwrap_or(""));
    for root in ["/sys/kernel/debug/sched/domains", "/proc/sys/kernel/sched_domain"] {
        for cpu in snapshot.numbered(root, "cpu") {
            let folder = format!("{root}/cpu{cpu}");
            let known = domains.entry(cpu).or_default();
            for (at, level) in snapshot.numbered(&folder, "domain").into_iter().enumerate() {
                if at == known.len() {
                    known.push(Domain::default());
                }
                let text = |file: &str| snapshot.text(&format!("{folder}/domain{level}/{file}"));
                known[at].name = text("name").map(str::to_string);
                known[at].flags =
                    text("flags").unwrap_or("").split_whitespace().map(str::to_string).collect();
            }
        }
    }
    domains.retain(|_, levels| !levels.is_empty());
    domains
}

/// `cpuN ...` lines, each followed by its `domainM [NAME] MASK ...` lines (the name since version
/// 17).
fn schedstat(text: &str) -> BTreeMap<u32, Vec<Domain>> {
    let mut domains: BTreeMap<u32, Vec<Domain>> = BTreeMap::new();
    let mut cpu = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(head) = words.next() else { continue };
        if let Some(number) = head.strip_prefix("cpu") {
            cpu = number.parse::<u32>().ok();
        } else if let (Some(cpu), true) = (cpu, head.starts_with("domain")) {
            let Some(second) = words.next() else { continue };
            let named = !second.contains(',') && CpuSet::parse_mask(second).is_none();
            let mask = if named { words.next() } else { Some(second) };
            let name = named.then(|| second.to_string());
            let cpus = mask.and_then(CpuSet::parse_mask);
            domains.entry(cpu).or_default().push(Domain { name, flags: Vec::new(), cpus });
        }
    }
    domains
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn spans_of_schedstat_and_names_of_debugfs_meet() {
        let snapshot = tree(&[
            (
                "/proc/schedstat",
                "version 15\ntimestamp 1\ncpu0 0 0\ndomain0 00000003 0 0\ndomain1 0000000f 0\ncpu1 0\n",
            ),
            ("/sys/kernel/debug/sched/domains/cpu0/domain0/name", "SMT"),
            ("/sys/kernel/debug/sched/domains/cpu0/domain0/flags", "SD_SHARE_CPUCAPACITY SD_SHARE_LLC "),
            ("/sys/kernel/debug/sched/domains/cpu0/domain1/name", "PKG"),
        ]);
        let domains = parse(&snapshot);
        assert_eq!(domains.keys().copied().collect::<Vec<_>>(), [0]);
        let cpu0 = &domains[&0];
        assert_eq!(cpu0[0].name.as_deref(), Some("SMT"));
        assert_eq!(cpu0[0].flags.len(), 2);
        assert_eq!(cpu0[1].cpus.as_ref().map(CpuSet::to_string).as_deref(), Some("0-3"));
    }

    #[test]
    fn version_17_names_its_domains() {
        let domains = schedstat("cpu0 0\ndomain0 MC 00000001,00000000 0 0\n");
        assert_eq!(domains[&0][0].name.as_deref(), Some("MC"));
        assert_eq!(domains[&0][0].cpus.as_ref().map(CpuSet::to_string).as_deref(), Some("32"));
        assert!(schedstat("domain0 3\ncpux\ndomain0 3\ncpu1\ndomain0\n").is_empty());
    }
}
