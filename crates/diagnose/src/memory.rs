//! Memory that the kernel backed with small pages although huge pages were requested.

use super::words::percent;
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{Fact, Finding, Pages};
use stats::order::median;

pub const RULES: &[Rule] = &[HUGE_PAGES];

const HUGE_PAGES: Rule = Rule {
    id: ids::rule::NO_HUGE_PAGES,
    title: "The kernel gave small pages instead of huge ones",
    topic: "huge pages",
    meaning: "Assay asks for huge pages (2 MiB), so that address translation does not hide the caches. With \
        4 KiB pages a random access to a large block takes a third longer or more. Databases and virtual \
        machines suffer likewise.",
    action: "Allow them (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled), or compact memory \
        (echo 1 > /proc/sys/vm/compact_memory). See it: grep -e thp_fault -e compact_ /proc/vmstat",
    when: "The median share of huge pages over a benchmark's passes is below 95 %.",
    how: "The share is AnonHugePages of the mapping itself. The causes are a setting that is off, a setting \
        of the process, fragmentation or a memory limit.",
    calm: "huge pages for every block",
    looked_at: "smaps",
    source: file!(),
    check: huge_pages,
};

/// Share of huge pages from which a block counts as backed by them (methods of the field ask for 95
/// %).
const MIN_HUGE_SHARE: f64 = 0.95;

fn huge_pages(evidence: &Evidence) -> Option<Vec<Finding>> {
    let mut judged_any = false;
    let (mut series, mut facts, mut least) = (Vec::new(), Vec::new(), 1.0f64);
    for (case, planned) in evidence.cases() {
        if planned.case.placement.pages != Pages::Huge {
            continue;
        }
        let shares = evidence.visits_of(case).filter_map(|visit| visit.process.huge_share);
        // Values outside 0..=1 are damaged.
        let shares: Vec<f64> = shares.filter(|share| (0.0..=1.0).contains(share)).collect();
        let Some(share) = median(&shares) else { continue };
        judged_any = true;
        if share < MIN_HUGE_SHARE {
            least = least.min(share);
            series.extend(evidence.keys_of(case));
            facts.push(Fact::new("share of huge pages", percent(share), planned.case.key()));
        }
    }
    if !judged_any {
        return None;
    }
    if facts.is_empty() {
        return Some(Vec::new());
    }
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let setting = evidence.machine.memory.transparent_huge_pages.as_deref();
    facts.push(Fact::new("transparent huge pages", setting.unwrap_or("not reported"), SETTING));
    let (cause, advice) = match setting {
        Some("never") => (
            "Transparent huge pages are switched off on this host.",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        None => {
            ("This kernel was built without transparent huge pages, or hides them.", "Use another kernel.")
        }
        Some(_) => (
            "The process may not have them (PR_SET_THP_DISABLE), or memory is fragmented or limited.",
            "echo 1 > /proc/sys/vm/compact_memory, then measure again",
        ),
    };
    let headline = format!(
        "Huge pages backed only {} of a measured block. Its latencies include page walks.",
        percent(least)
    );
    Some(vec![
        Finding::warning(HUGE_PAGES.id, headline)
            .cause(format!("{cause} Latencies of large blocks include page walks."))
            .facts(facts)
            .confirm(
                "grep -e thp_fault -e compact_ /proc/vmstat; cat /sys/kernel/mm/transparent_hugepage/enabled",
            )
            .advice(advice)
            .explains(series),
    ])
}
