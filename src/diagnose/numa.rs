//! Memory that moves between NUMA nodes.

use super::{Evidence, Rule};
use crate::model::{Effect, Fact, Finding, Severity};

pub const RULES: &[Rule] = &[BALANCING];

const BALANCING: Rule = Rule {
    id: "numa-balancing",
    title: "The kernel moved pages between NUMA nodes",
    about: "Automatic NUMA balancing unmaps pages now and then to see who touches them, and moves them nearer. The faults \
            and the copying cost time in bursts, and a block under measurement changes its node in the middle.",
    method: "Fires when the kernel's machine-wide counter of migrated pages moved during visits. Cases that saw more than \
             256 pages (1 MiB) a second carry the cause.",
    calm: "no pages moved between nodes",
    source: file!(),
    check: balancing,
};

/// Pages of 4 KiB a second, in ms: fewer are some other process's business.
const MANY_A_MS: f64 = 0.256;

fn balancing(evidence: &Evidence) -> Option<Vec<Finding>> {
    if evidence.machine.nodes.len() < 2 {
        return None;
    }
    let all = Evidence::total(evidence.visits(), |c| c.numa_migrated_pages)?;
    if all.value <= 0.0 {
        return Some(Vec::new());
    }
    let moved = |case: u32| Evidence::total(evidence.visits_of(case), |c| c.numa_migrated_pages);
    let touched = evidence.cases().filter(|(case, _)| moved(*case).is_some_and(|t| t.rate() > MANY_A_MS));
    let setting = match evidence.machine.memory.numa_balancing {
        Some(true) => "on",
        Some(false) => "off",
        None => "not told by this kernel",
    };
    Some(vec![Finding {
        rule: BALANCING.id.into(),
        severity: Severity::Note,
        headline: format!("{:.0} pages moved between NUMA nodes while measuring", all.value),
        cause: "Automatic NUMA balancing brings pages nearer to the CPU that touches them, at a cost while it does."
            .into(),
        facts: vec![
            Fact::new("pages moved", format!("{:.0}", all.value), "/proc/vmstat over all visits"),
            Fact::new("NUMA balancing", setting, "/proc/sys/kernel/numa_balancing"),
        ],
        confirm: "grep numa_ /proc/vmstat; cat /proc/sys/kernel/numa_balancing".into(),
        advice: "For measuring: sysctl kernel.numa_balancing=0, and back afterwards.".into(),
        series: touched.flat_map(|(case, _)| evidence.keys_of(case)).collect(),
        effect: Effect::Explains,
    }])
}
