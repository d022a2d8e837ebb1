//! Who the others were: the processes that were seen between visits.

use std::collections::BTreeMap;

use super::Evidence;
use super::words::clipped;
use model::{Fact, Neighbour, Visit};

/// Processes seen beside these visits with the CPUs' worth that they used over all looks together,
/// the busiest first; `None` where nobody was looked at.
pub fn by_process<'a>(visits: impl Iterator<Item = &'a Visit>) -> Option<Vec<(Neighbour, f64)>> {
    let mut looks = 0;
    let mut found: BTreeMap<u32, (Neighbour, f64)> = BTreeMap::new();
    for seen in visits.filter_map(|visit| visit.conditions.neighbours.as_ref()) {
        looks += 1;
        for neighbour in seen {
            // What is more than any machine has is damage.
            let cpus = if (0.0..=1e6).contains(&neighbour.cpus) { neighbour.cpus } else { 0.0 };
            let entry = found.entry(neighbour.pid).or_insert_with(|| (neighbour.clone(), 0.0));
            entry.1 += cpus;
        }
    }
    let mut found: Vec<(Neighbour, f64)> =
        found.into_values().map(|(neighbour, sum)| (neighbour, sum / f64::from(looks.max(1)))).collect();
    found.sort_by(|one, other| other.1.total_cmp(&one.1));
    (looks > 0).then_some(found)
}

/// Policy and priority, as far as they are not the usual ones.
pub fn standing(neighbour: &Neighbour) -> String {
    let policy = clipped(&neighbour.policy);
    match (neighbour.priority, neighbour.nice) {
        (0, 0) => policy,
        (0, nice) => format!("{policy}, nice {nice}"),
        (priority, _) => format!("{policy} {priority}"),
    }
}

/// What such a process used, with its standing.
pub fn fact(neighbour: &Neighbour, cpus: f64) -> Fact {
    let on = neighbour.cpu.map_or(String::new(), |cpu| format!(", last on CPU {cpu}"));
    Fact::new(
        format!("{} (pid {})", clipped(&neighbour.name), neighbour.pid),
        format!("{cpus:.2} CPUs{on}, {}", standing(neighbour)),
        format!("/proc/{}/stat between visits", neighbour.pid),
    )
}

/// The busiest of the others, as facts; empty where nobody was looked at.
pub fn busiest(evidence: &Evidence) -> Vec<Fact> {
    let found = by_process(evidence.visits()).unwrap_or_default();
    found.iter().take(3).map(|(neighbour, cpus)| fact(neighbour, *cpus)).collect()
}
