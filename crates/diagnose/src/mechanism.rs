//! Which part of the scheduler decides where two tasks that wake each other run, as far as its
//! counters show.

use super::Evidence;
use super::mix::{Index, Mix};
use super::words::percent;
use model::vocabulary::MetricId;
use model::vocabulary::ipc as ids;
use model::{CpuSet, Fact, Params};

/// What decided, in words, with the evidence.
pub struct Mechanism {
    pub words: String,
    pub facts: Vec<Fact>,
}

/// Shares beyond these are called all and none.
const MIN_ALL: f64 = 0.95;
const MAX_NONE: f64 = 0.05;

pub fn mechanism(evidence: &Evidence, index: &Index, mix: &Mix) -> Mechanism {
    let usable = mix.free.series.case.placement.cpus();
    let together = mix.parts.iter().find(|part| part.class == "same-cpu").map_or(0.0, |part| part.share);
    let affine = case_median(index, mix, ids::metric::AFFINE);
    let mut facts = counted(index, mix);
    let isolated = evidence.machine.cpus.isolated.intersection(&usable);
    if !isolated.is_empty() {
        let isolated_cpus = isolated.to_string();
        facts.push(Fact::new("CPUs out of balancing", &isolated_cpus, "/sys/devices/system/cpu/isolated"));
        // Two CPUs that are left would be balanced between.
        if together >= MIN_ALL && usable.difference(&isolated).len() <= 1 {
            return Mechanism {
                words: format!(
                    "The kernel moves nothing to or from isolated CPUs (isolcpus={isolated_cpus}): both \
                     tasks stay where they began."
                ),
                facts,
            };
        }
    }
    let domain = llc_domain(evidence, &usable);
    if let Some((widest, source)) = &domain {
        facts.push(Fact::new("CPUs in the widest cache domain", widest.to_string(), *source));
    }
    let affine = affine.map(|(share, _)| share);
    let words = match &domain {
        Some((widest, _)) if widest.len() <= 1 && usable.len() > 1 => alone_in_domain(affine, together),
        Some((widest, _)) => in_domain(widest.len(), affine, together),
        None => "The kernel does not report which CPUs share a cache, so the reason is unknown.".to_string(),
    };
    Mechanism { words, facts }
}

/// A median of the case or of its point, with the series' key.
fn case_median<'a>(index: &Index<'a>, mix: &Mix, metric: MetricId) -> Option<(f64, &'a str)> {
    let series = &mix.free.series;
    let at_point = |point: &Params| index.at(&series.case.series_key(point, &metric));
    let judged = at_point(&Params::new()).or_else(|| at_point(&series.point))?;
    Some((judged.median()?, &judged.series.key))
}

/// What was counted while the tasks were free.
fn counted(index: &Index, mix: &Mix) -> Vec<Fact> {
    let fact = |metric: MetricId, label: &str, words: &dyn Fn(f64) -> String| {
        let (value, key) = case_median(index, mix, metric)?;
        Some(Fact::new(label, words(value), key))
    };
    let rate = |rate: f64| format!("{rate:.0}/s");
    let affine = fact(ids::metric::AFFINE, "free, wake-ups that considered the waker's CPU", &percent)
        .or_else(|| {
            Some(Fact::new(
                "wake-ups that considered the waker's CPU",
                "not counted: schedstats are off or not in this kernel",
                "/proc/sys/kernel/sched_schedstats",
            ))
        });
    let facts = [
        fact(ids::metric::MIGRATIONS, "free, moves to another CPU", &rate),
        fact(ids::metric::VOLUNTARY, "free, voluntary switches per round", &|count| format!("{count:.2}")),
        fact(ids::metric::INVOLUNTARY, "free, involuntary switches per round", &|count| {
            format!("{count:.3}")
        }),
        affine,
    ];
    facts.into_iter().flatten().collect()
}

/// The kernel reports no two CPUs that share a cache.
fn alone_in_domain(affine: Option<f64>, together: f64) -> String {
    // In a domain of one CPU wake_wide treats a pair as wide. Its decision is not visible, only the
    // outcome.
    let wide = match affine {
        Some(share) if share < MAX_NONE && together <= MAX_NONE => {
            ", and wake_wide keeps wake_affine from being tried"
        }
        _ => "",
    };
    let tried = affine
        .map_or(String::new(), |share| format!(" (wake_affine tried in {} of the wake-ups)", percent(share)));
    let outcome = match together {
        share if share >= MIN_ALL => "a woken task found no other CPU, and both stayed on one.",
        share if share <= MAX_NONE => "each stayed where it was last, and that was another CPU.",
        _ => "where the two met decided, until the load balancer moved one.",
    };
    format!(
        "The kernel reports no two CPUs that share a last-level cache. So select_idle_sibling looks at one \
         CPU only{wide}{tried}: {outcome}"
    )
}

/// The kernel reports CPUs that share a cache.
fn in_domain(cpus: usize, affine: Option<f64>, together: f64) -> String {
    let tried =
        affine.map_or(String::new(), |share| format!(" (tried in {} of the wake-ups)", percent(share)));
    let outcome = match together {
        share if share >= MIN_ALL => "it found none, or took the waker's own for idle.",
        share if share <= MAX_NONE => "nearly always it found one.",
        _ => "in some of the wake-ups it found one.",
    };
    format!(
        "wake_affine may pull the woken task to its waker{tried}, unless wake_wide sees many partners. \
         select_idle_sibling looks for an idle CPU among the {cpus} that share its cache: {outcome}"
    )
}

/// The largest set of usable CPUs that share a last-level cache as the kernel reports it, and the
/// file that does.
fn llc_domain(evidence: &Evidence, usable: &CpuSet) -> Option<(CpuSet, &'static str)> {
    let machine = evidence.machine;
    // What select_idle_sibling goes by: the widest domain whose CPUs share their cache.
    let shares = |flag: &String| flag.contains("SHARE_PKG_RESOURCES") || flag.contains("SHARE_LLC");
    let of_domains = machine.kernel.domains.values().filter_map(|levels| {
        let sharing = levels.iter().filter(|level| level.flags.iter().any(shares));
        sharing.filter_map(|level| Some(level.cpus.as_ref()?.intersection(usable))).max_by_key(CpuSet::len)
    });
    if let Some(widest) = of_domains.max_by_key(CpuSet::len) {
        return Some((widest, "/sys/kernel/debug/sched/domains"));
    }
    let level = machine.caches.iter().map(|cache| cache.level).max()?;
    let last = machine.caches.iter().filter(|cache| cache.level == level);
    let widest = last.map(|cache| cache.cpus.intersection(usable)).max_by_key(CpuSet::len)?;
    Some((widest, "/sys/devices/system/cpu/cpu*/cache"))
}
