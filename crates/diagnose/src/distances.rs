//! What a run measured between every two CPUs, grouped: for the rules about topology and for the
//! report's section.

use super::Evidence;
use super::chunks::index;
use machine::Machine;
use model::CpuSet;
use model::vocabulary as ids;
use model::vocabulary::{BenchId, MetricId};
use stats::analysis::Judged;
use stats::clusters::{Clusters, clusters};
use stats::order::{median, quantile};
use stats::pairs::{MIN_VISITS, Pairs};
use stats::siblings::{Siblings, siblings};

/// A benchmark's values of pairs, with the key of the case that they come from.
pub struct Measured {
    pub pairs: Pairs,
    pub key: String,
}

/// Transfers of lines between pairs; `None` where the run has none.
pub fn transfers(evidence: &Evidence) -> Option<Measured> {
    measured(evidence, ids::memory::CORE_TO_CORE, ids::memory::metric::LATENCY)
}

/// Slowdowns of pairs; both CPUs' together, for siblings slow each other.
pub fn slowdowns(evidence: &Evidence) -> Option<Measured> {
    measured(evidence, ids::cpu::PAIR_SLOWDOWN, ids::cpu::metric::SLOWDOWN)
}

fn measured(evidence: &Evidence, bench: BenchId, metric: MetricId) -> Option<Measured> {
    let (mut pairs, mut key) = (Pairs::default(), None);
    for judged in evidence.series {
        let series = &judged.series;
        if series.case.bench != bench || series.metric.name != metric {
            continue;
        }
        let cpu = |name| index(&series.point, name);
        let (Some(from), Some(to)) = (cpu(ids::cpu::param::FROM), cpu(ids::cpu::param::TO)) else { continue };
        key.get_or_insert_with(|| series.case.key());
        for process in &series.processes {
            if let Some(value) = median(&process.values) {
                pairs.push((from, to), process.order, value);
            }
        }
    }
    Some(Measured { pairs: pairs.settled(), key: key? }).filter(|measured| !measured.pairs.is_empty())
}

/// The groups that transfers of lines show, with the case's key.
pub fn groups(evidence: &Evidence) -> Option<(Clusters, String)> {
    transfers(evidence).map(|measured| (clusters(&measured.pairs), measured.key))
}

/// The siblings that slowdown shows, with the case's key.
pub fn shared_cores(evidence: &Evidence) -> Option<(Siblings, String)> {
    slowdowns(evidence).map(|measured| (siblings(&measured.pairs), measured.key))
}

/// Whether two CPUs drive each other's data out of the last-level cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Contention {
    pub cpus: (u32, u32),
    /// Size of each block.
    pub bytes: f64,
    /// Medians, ns: after no other read, after the other CPU read another block, and after the
    /// first CPU itself did.
    pub ns: [f64; 3],
    /// `None`: undecided.
    pub shared: Option<bool>,
    pub key: String,
}

/// Reading another block must slow the CPU itself by this ratio, else its block was not in the
/// cache.
const MIN_OWN_SLOWDOWN: f64 = 1.3;
/// Shares of that slowdown from which on two CPUs share the cache, and up to which they do not.
const MIN_SHARED: f64 = 0.5;
const MAX_SEPARATE: f64 = 0.15;

/// What `memory.llc-sharing` shows of each pair: of its blocks the largest that was in the cache,
/// else the largest.
pub fn contention(evidence: &Evidence) -> Vec<Contention> {
    const AFTER: [&str; 3] = ["nothing", "other", "itself"];
    let mut found: Vec<Contention> = Vec::new();
    for one in evidence.series.iter().filter(|judged| judged.series.case.bench == ids::memory::LLC_SHARING) {
        let series = &one.series;
        let of_bytes = series.number(ids::memory::param::BYTES);
        let (Some(bytes), Some("nothing")) = (of_bytes, series.text(ids::memory::param::AFTER)) else {
            continue;
        };
        let same = |after: &str| {
            evidence.series_of(series.planned as u32).find(|other| {
                other.series.number(ids::memory::param::BYTES) == of_bytes
                    && other.series.text(ids::memory::param::AFTER) == Some(after)
            })
        };
        let [Some(nothing), Some(other), Some(itself)] = AFTER.map(same) else { continue };
        let cpu = |at: usize| series.case.placement.seats.get(at)?.cpus.first();
        let (Some(first), Some(second)) = (cpu(0), cpu(1)) else { continue };
        let (Some(idle), Some(beside), Some(own)) = (nothing.median(), other.median(), itself.median())
        else {
            continue;
        };
        // Pass by pass, for the cache's other users come and go.
        let of_visits = |judged: &Judged| -> Vec<(u32, f64)> {
            let processes = judged.series.processes.iter();
            processes.filter_map(|process| Some((process.order, median(&process.values)?))).collect()
        };
        let (beside_of, own_of) = (of_visits(other), of_visits(itself));
        let at =
            |all: &[(u32, f64)], order: u32| all.iter().find(|(own, _)| *own == order).map(|(_, ns)| *ns);
        let shares: Vec<f64> = of_visits(nothing)
            .into_iter()
            .filter_map(|(order, idle)| {
                let (beside, own) = (at(&beside_of, order)?, at(&own_of, order)?);
                (own >= MIN_OWN_SLOWDOWN * idle).then(|| (beside - idle) / (own - idle))
            })
            .collect();
        // Most passes must give a share, and nearly all of these must agree.
        let enough = shares.len() >= MIN_VISITS && 2 * shares.len() > own_of.len();
        let ends = quantile(&shares, 0.1).zip(quantile(&shares, 0.9)).filter(|_| enough);
        let shared = match ends {
            Some((low, _)) if low >= MIN_SHARED => Some(true),
            Some((_, high)) if high <= MAX_SEPARATE => Some(false),
            _ => None,
        };
        let own = Contention {
            cpus: (first, second),
            bytes,
            ns: [idle, beside, own],
            shared,
            key: series.case.key(),
        };
        match found.iter_mut().find(|other| other.key == own.key) {
            Some(other) => {
                let better = (own.shared.is_some(), own.bytes) > (other.shared.is_some(), other.bytes);
                if better {
                    *other = own;
                }
            }
            None => found.push(own),
        }
    }
    found
}

/// Sets of CPUs that share a last-level cache as the kernel reports it; a CPU without a report is a
/// set of its own.
pub fn reported_llcs(machine: &Machine) -> Vec<CpuSet> {
    let mut sets: Vec<CpuSet> = Vec::new();
    for cpu in machine.cpus.online.iter() {
        let own = machine.last_level_cache(cpu).map_or_else(|| CpuSet::one(cpu), |cache| cache.cpus.clone());
        if !sets.contains(&own) {
            sets.push(own);
        }
    }
    sets
}

/// Number of reported cores that these CPUs are on; a CPU without a report counts as one.
pub fn cores_among(machine: &Machine, cpus: impl IntoIterator<Item = u32>) -> usize {
    let first = |cpu: u32| machine.core_of(cpu).and_then(|core| core.cpus.first()).unwrap_or(cpu);
    cpus.into_iter().map(first).collect::<CpuSet>().len()
}

/// CPUs of a few groups, as `0-3 | 4-7`.
pub fn words(groups: &[Vec<u32>]) -> String {
    const SHOWN: usize = 12;
    let set = |group: &Vec<u32>| group.iter().copied().collect::<CpuSet>().to_string();
    let mut words: Vec<String> = groups.iter().take(SHOWN).map(set).collect();
    if groups.len() > SHOWN {
        words.push(format!("and {} more", groups.len() - SHOWN));
    }
    words.join(" | ")
}
