//! CPUs and caches as the kernel reports them and as a run measured them, for drawing side by side.

use super::distances::reported_llcs;
use super::ladder::ladder;
use super::words::{bytes, figure};
use super::{Diagnosis, Evidence};
use machine::Machine;
use model::CpuSet;
use stats::clusters::{Answer, Clusters};
use stats::siblings::Siblings;

/// The reported and the measured view of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Views {
    /// CPUs, those of one group next to each other.
    pub cpus: Vec<u32>,
    /// A way of grouping them: its label, and the groups.
    pub groups: Vec<(String, Vec<Vec<u32>>)>,
    /// Of each level of cache: name, reported size, measured size.
    pub caches: Vec<[String; 3]>,
}

impl Views {
    /// One row per grouping: the group number of each CPU, in order of first appearance; `None` for
    /// a CPU without a group.
    pub fn group_numbers(&self) -> Vec<(String, Vec<Option<usize>>)> {
        self.groups.iter().map(|(label, sets)| (label.clone(), numbered(&self.cpus, sets))).collect()
    }
}

/// The number of each CPU's set, in the order in which the sets come.
fn numbered(cpus: &[u32], sets: &[Vec<u32>]) -> Vec<Option<usize>> {
    let mut numbers: Vec<usize> = Vec::new();
    cpus.iter()
        .map(|cpu| {
            let set = sets.iter().position(|set| set.contains(cpu))?;
            let known = numbers.iter().position(|other| *other == set);
            Some(known.unwrap_or_else(|| {
                numbers.push(set);
                numbers.len() - 1
            }))
        })
        .collect()
}

/// The views of a run; `None` if the host lists no CPU.
pub(super) fn views(diagnosis: &Diagnosis) -> Option<Views> {
    let machine = &diagnosis.machine;
    let mut cpus: Vec<u32> = machine.cpus.online.iter().collect();
    if cpus.is_empty() {
        return None;
    }
    let (found, cores) = (diagnosis.groups(), diagnosis.shared_cores());
    let groups =
        groupings(machine, &cpus, found.as_ref().map(|own| &own.0), cores.as_ref().map(|own| &own.0));
    let place = |cpu: u32| -> Vec<usize> {
        let at = |sets: &Vec<Vec<u32>>| sets.iter().position(|set| set.contains(&cpu)).unwrap_or(usize::MAX);
        groups.iter().map(|(_, sets)| at(sets)).collect()
    };
    cpus.sort_by_key(|cpu| (place(*cpu), *cpu));
    Some(Views { cpus, groups, caches: caches(diagnosis) })
}

/// Packages, nodes, caches and cores from the widest to the nearest, reported before measured.
fn groupings(
    machine: &Machine,
    cpus: &[u32],
    groups: Option<&Clusters>,
    cores: Option<&Siblings>,
) -> Vec<(String, Vec<Vec<u32>>)> {
    let mut rows: Vec<(String, Vec<Vec<u32>>)> = Vec::new();
    let mut row = |label: &str, sets: Vec<Vec<u32>>| {
        if !sets.is_empty() {
            rows.push((label.to_string(), sets));
        }
    };
    let listed = |set: &CpuSet| set.iter().collect::<Vec<u32>>();
    row("package, reported", machine.cpus.packages.iter().flatten().map(|own| listed(&own.cpus)).collect());
    row("node, reported", machine.nodes.iter().map(|node| listed(&node.cpus)).collect());
    if !machine.caches.is_empty() {
        row("last-level cache, reported", reported_llcs(machine).iter().map(listed).collect());
    }
    match groups.map(|found| &found.answer) {
        Some(Answer::Levels(levels)) => {
            for level in levels.iter().rev() {
                row(&format!("lines within {}, measured", figure(level.within, "ns")), level.groups.clone());
            }
        }
        Some(Answer::One) => row("lines, measured", vec![cpus.to_vec()]),
        _ => {}
    }
    row("core, reported", machine.cpus.cores.iter().flatten().map(|core| listed(&core.cpus)).collect());
    if let Some(found) = cores.filter(|found| found.cannot_tell.is_none()) {
        // CPUs with an undecided pair stand in no group.
        let mut sets = found.cores();
        let open: Vec<u32> = found.open.iter().flat_map(|(one, other)| [*one, *other]).collect();
        let alone =
            found.cpus.iter().filter(|cpu| !sets.iter().any(|set| set.contains(cpu)) && !open.contains(cpu));
        let alone: Vec<Vec<u32>> = alone.map(|cpu| vec![*cpu]).collect();
        sets.extend(alone);
        row("core, measured", sets);
    }
    rows
}

/// The data caches of the ladder's CPU; without a ladder those of the first.
fn caches(diagnosis: &Diagnosis) -> Vec<[String; 3]> {
    let evidence = Evidence::new(&diagnosis.run, &diagnosis.machine, diagnosis.clock, &diagnosis.series);
    let ladder = ladder(&evidence);
    let first = diagnosis.machine.cpus.online.first().unwrap_or(0);
    let claimed =
        ladder.as_ref().map_or_else(|| super::ladder::claimed(&evidence, first), |own| own.claimed.clone());
    let words = |name: &str| match diagnosis.measured_caches.iter().find(|cache| cache.name == name) {
        Some(cache) if cache.size.high.is_finite() => {
            let [at, low, high] = [cache.size.at, cache.size.low, cache.size.high].map(bytes);
            format!("{at} ({low}–{high})")
        }
        Some(cache) => format!("{} or more", bytes(cache.size.at)),
        None if ladder.is_some() => "as reported".to_string(),
        None => "not measured".to_string(),
    };
    let mut rows: Vec<[String; 3]> =
        claimed.iter().map(|(name, size)| [name.clone(), bytes(*size), words(name)]).collect();
    let hidden = diagnosis.measured_caches.iter().filter(|cache| cache.claimed.is_none());
    rows.extend(hidden.map(|cache| [cache.name.clone(), "not reported".to_string(), words(&cache.name)]));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_by_first_appearance_and_gaps_stay() {
        assert_eq!(
            numbered(&[4, 0, 5, 1, 9], &[vec![0, 1], vec![4, 5]]),
            [Some(0), Some(1), Some(0), Some(1), None]
        );
    }
}
