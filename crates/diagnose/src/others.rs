//! Other work: the processes that were seen between passes.

use std::collections::BTreeMap;

use super::Evidence;
use super::words::clipped;
use model::{Fact, Neighbour, Visit};

/// Processes seen after these passes with the CPUs that each used (1.0 is one whole CPU, averaged
/// over all observations), the busiest first; `None` if processes were never observed.
pub fn by_process<'a>(visits: impl Iterator<Item = &'a Visit>) -> Option<Vec<(Neighbour, f64)>> {
    let mut observations = 0;
    let mut found: BTreeMap<u32, (Neighbour, f64)> = BTreeMap::new();
    for seen in visits.filter_map(|visit| visit.conditions.neighbours.as_ref()) {
        observations += 1;
        for neighbour in seen {
            // More CPUs than any host has: a damaged number.
            let cpus = if (0.0..=1e6).contains(&neighbour.cpus) { neighbour.cpus } else { 0.0 };
            let entry = found.entry(neighbour.pid).or_insert_with(|| (neighbour.clone(), 0.0));
            entry.1 += cpus;
        }
    }
    let mut found: Vec<(Neighbour, f64)> = found
        .into_values()
        .map(|(neighbour, sum)| (neighbour, sum / f64::from(observations.max(1))))
        .collect();
    found.sort_by(|one, other| other.1.total_cmp(&one.1));
    (observations > 0).then_some(found)
}

/// Policy, and priority or nice value if it is not the default.
pub fn policy_and_priority(neighbour: &Neighbour) -> String {
    let policy = clipped(&neighbour.policy);
    match (neighbour.priority, neighbour.nice) {
        (0, 0) => policy,
        (0, nice) => format!("{policy}, nice {nice}"),
        (priority, _) => format!("{policy} {priority}"),
    }
}

/// CPU use of a process with its policy and priority.
pub fn fact(neighbour: &Neighbour, cpus: f64) -> Fact {
    let on = neighbour.cpu.map_or(String::new(), |cpu| format!(", last on CPU {cpu}"));
    Fact::new(
        format!("{} (pid {})", clipped(&neighbour.name), neighbour.pid),
        format!("{cpus:.2} CPUs{on}, {}", policy_and_priority(neighbour)),
        format!("/proc/{}/stat between passes", neighbour.pid),
    )
}

/// The three busiest processes as facts; empty if processes were never observed.
pub fn busiest(evidence: &Evidence) -> Vec<Fact> {
    let found = by_process(evidence.visits()).unwrap_or_default();
    found.iter().take(3).map(|(neighbour, cpus)| fact(neighbour, *cpus)).collect()
}
