//! Memory and cache while Assay was idle: what other work took of them, in the order of time.

use super::chunks::listed;
use super::{Diagnosis, Evidence};
use machine::Machine;
use model::vocabulary::host::{NEIGHBOURS, metric};
use model::{Fact, Form, Run, Visit, figure};
use stats::cache_share::{CacheShare, cache_share};
use stats::order::{Interval, median, quantile};
use stats::regions::{Moment, Neighbour, neighbour};

/// What all passes of `host.neighbours` measured.
pub struct AtRest {
    /// Key of the case.
    pub case: String,
    pub looks: usize,
    /// Time from the first probe of each pass to its last, s.
    pub seconds: f64,
    /// `None` where too little time was seen.
    pub neighbour: Option<Neighbour>,
    /// `None` where too few probes were made.
    pub cache: Option<CacheShare>,
    /// The last-level cache that the kernel reports for this CPU, and the largest working set that
    /// was tried, MiB.
    pub reported_mib: Option<f64>,
    pub largest_mib: f64,
    /// GB/s of one CPU: the median probe, and the 5th and 95th percentile.
    pub bandwidth: Option<(f64, Interval)>,
}

const MIB: f64 = 1048576.0;

impl Diagnosis {
    /// What other work took of memory and cache; `None` if the run did not watch.
    pub fn at_rest(&self) -> Option<AtRest> {
        at_rest_of(&self.run, &self.machine)
    }
}

/// The same of a run that is being judged.
pub(super) fn at_rest(evidence: &Evidence) -> Option<AtRest> {
    at_rest_of(evidence.run, evidence.machine)
}

fn at_rest_of(run: &Run, machine: &Machine) -> Option<AtRest> {
    let at = run.header.plan.iter().position(|planned| planned.case.bench == NEIGHBOURS)?;
    let case = &run.header.plan[at].case;
    let visits: Vec<&Visit> =
        run.visits.iter().filter(|visit| visit.case as usize == at && visit.reason.is_none()).collect();
    let finite_values = |metric, form| {
        let values = visits.iter().flat_map(|visit| listed(visit, metric, form));
        values.filter(|value| value.is_finite()).collect::<Vec<f64>>()
    };
    let moments: Vec<Vec<Moment>> = visits.iter().map(|visit| moments(visit)).collect();
    let looks = moments.iter().map(Vec::len).sum();
    let lasted = |moments: &Vec<Moment>| Some(moments.last()?.at_s - moments.first()?.at_s);
    let gb_per_s = finite_values(metric::BANDWIDTH, Form::WorkPerTime { scale: 1.0 });
    let range = |values: &[f64]| {
        let interval = Interval { low: quantile(values, 0.05)?, high: quantile(values, 0.95)? };
        Some((median(values)?, interval))
    };
    let largest = finite_values(metric::SIZE, Form::Value).into_iter().fold(0.0, f64::max);
    let cpu = case.placement.cpus().first();
    let reported = cpu.and_then(|cpu| machine.last_level_cache(cpu)?.size_bytes);
    (looks > 0).then(|| AtRest {
        case: case.key(),
        looks,
        seconds: moments.iter().filter_map(lasted).sum(),
        neighbour: neighbour(&moments),
        cache: cache_share(&finite_values(metric::CACHE, Form::Value), largest),
        reported_mib: reported.map(|bytes| bytes as f64 / MIB),
        largest_mib: largest,
        bandwidth: range(&gb_per_s),
    })
}

impl AtRest {
    /// Facts of a finding about it.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |label: &str, value: String| Fact::new(label, value, &self.case);
        let watched = format!("{:.0} s, {} samples", self.seconds, self.looks);
        let mut facts = vec![fact("watched while Assay was idle", watched)];
        facts.extend(self.cache.map(|share| fact("cache of one CPU", cache_words(&share))));
        facts.extend(self.bandwidth.map(|(gb_per_s, Interval { low, high })| {
            let words = format!("{} ({}–{})", figure(gb_per_s, "GB/s"), figure(low, ""), figure(high, ""));
            fact("bandwidth of one CPU", words)
        }));
        facts
    }
}

/// `13.5 MiB (9.8–16.1)`: the median, and from the 5th to the 95th percentile.
pub fn cache_words(share: &CacheShare) -> String {
    let least = if share.is_more { "at least " } else { "" };
    let [mib, low, high] = [share.mib, share.range.low, share.range.high].map(|mib| figure(mib, ""));
    format!("{least}{mib} MiB ({low}–{high})")
}

/// Loads of a pass on the time line of the run.
fn moments(visit: &Visit) -> Vec<Moment> {
    let loads = listed(visit, metric::LATENCY, Form::TimePerWork { scale: 1.0 });
    let looks = listed(visit, metric::MOMENT, Form::Value).into_iter().zip(loads);
    let known = looks.filter(|(ms, ns)| ms.is_finite() && ns.is_finite() && *ns > 0.0);
    known.map(|(ms, load_ns)| Moment { at_s: (visit.at_ms + ms) / 1e3, region: 0, load_ns }).collect()
}
