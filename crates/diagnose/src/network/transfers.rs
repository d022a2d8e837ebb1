//! Transfers of a run: their cases, the metrics of the same point, and which end is which.

use crate::Evidence;
use crate::ceiling::PhysicalLimit;
use crate::words::{figure, shell};
use machine::{End, NetworkPath};
use model::vocabulary::network as ids;
use model::vocabulary::{BenchId, MetricId};
use model::{Case, Fact, Params};
use stats::analysis::Judged;

/// A bandwidth with all other metrics of the same point.
pub struct Transfer<'a> {
    pub judged: &'a Judged,
    of_point: Vec<&'a Judged>,
}

impl<'a> Transfer<'a> {
    /// The bandwidth's median, Gbit/s.
    pub fn rate(&self) -> Option<f64> {
        self.judged.median().filter(|rate| *rate > 0.0)
    }

    /// Bandwidth of one direction, Gbit/s: `both` is measured as the sum of two.
    pub fn one_way(&self) -> Option<f64> {
        self.rate().map(|rate| if both_ways(self.case()) { rate / 2.0 } else { rate })
    }

    /// The median of another metric of its point.
    pub fn median_of(&self, metric: MetricId) -> Option<f64> {
        let found = self.of_point.iter().find(|judged| judged.series.metric.name == metric)?;
        found.median().filter(|value| value.is_finite())
    }

    pub fn key(&self) -> &'a str {
        &self.judged.series.key
    }

    /// The key of another metric of its point.
    pub fn key_of(&self, metric: MetricId) -> String {
        self.judged.series.case.series_key(&self.judged.series.point, &metric)
    }

    /// The bandwidth as a fact.
    pub fn rate_fact(&self, label: &str) -> Option<Fact> {
        Some(Fact::new(label, figure(self.rate()?, "Gbit/s"), self.key()))
    }

    /// Another metric of its point as a fact.
    pub fn fact(&self, label: &str, metric: MetricId, shown: impl Fn(f64) -> String) -> Option<Fact> {
        Some(Fact::new(label, shown(self.median_of(metric)?), self.key_of(metric)))
    }

    /// The command that measures it again.
    pub fn again(&self) -> String {
        let to = self.case().inputs.get("to").map(|to| format!(" --to {}", shell(to))).unwrap_or_default();
        format!("assay run --only {}{to}", shell(&self.case().bench))
    }

    pub fn case(&self) -> &'a Case {
        &self.judged.series.case
    }

    pub fn point(&self) -> &'a Params {
        &self.judged.series.point
    }

    pub fn streams(&self) -> f64 {
        let streams = self.judged.series.number(ids::param::STREAMS);
        streams.filter(|streams| *streams >= 1.0).unwrap_or(1.0)
    }
}

/// The bandwidths of a benchmark that have a number.
pub fn transfers<'a>(evidence: &Evidence<'a>, bench: BenchId) -> Vec<Transfer<'a>> {
    let of_bench = evidence.series.iter().filter(move |judged| judged.series.case.bench == bench);
    let bandwidths = of_bench.filter(|judged| {
        judged.series.metric.name == ids::metric::BANDWIDTH && judged.analysis.estimate.is_some()
    });
    bandwidths
        .map(|judged| {
            let of_point = evidence
                .series_of(judged.series.planned as u32)
                .filter(|other| other.series.point == judged.series.point);
            Transfer { judged, of_point: of_point.collect() }
        })
        .collect()
}

/// TCP's and UDP's.
pub fn all<'a>(evidence: &Evidence<'a>) -> Vec<Transfer<'a>> {
    [transfers(evidence, ids::TCP), transfers(evidence, ids::UDP)].into_iter().flatten().collect()
}

/// Whether the case's other end was a process of the same host, reached over loopback.
pub fn over_loopback(case: &Case) -> bool {
    !case.inputs.contains_key("to")
}

/// Whether a benchmark is one of the network's.
pub fn is_network(case: &Case) -> bool {
    case.bench.split('.').next() == Some("network")
}

/// Whether this end receives: then the other one sends.
pub fn receives(case: &Case) -> bool {
    direction(case) == "receive"
}

pub fn both_ways(case: &Case) -> bool {
    direction(case) == "both"
}

/// `send`, `receive` or `both`, as this end sees it.
pub fn direction(case: &Case) -> &str {
    case.params.get(ids::param::DIRECTION).and_then(|direction| direction.text()).unwrap_or("send")
}

/// A metric of each end: of this one, and of the other.
pub type Ends = [MetricId; 2];

pub const BUSY: Ends = [ids::metric::LOCAL_BUSY, ids::metric::REMOTE_BUSY];
pub const SOFTIRQ: Ends = [ids::metric::LOCAL_SOFTIRQ, ids::metric::REMOTE_SOFTIRQ];
pub const WAIT: Ends = [ids::metric::LOCAL_WAIT, ids::metric::REMOTE_WAIT];
pub const THROTTLED: Ends = [ids::metric::LOCAL_THROTTLED, ids::metric::REMOTE_THROTTLED];
pub const DROPS: Ends = [ids::metric::LOCAL_DROPS, ids::metric::REMOTE_DROPS];

/// That of the sender, and of the receiver.
pub fn at_ends(case: &Case, [local, remote]: Ends) -> Ends {
    if receives(case) { [remote, local] } else { [local, remote] }
}

/// The path of the run's transfers to another host; `None` if not described.
pub fn path<'a>(evidence: &Evidence<'a>) -> Option<&'a NetworkPath> {
    evidence.machine.network.as_ref()
}

/// Both ends with words and where their facts are from.
pub fn described_ends(path: &NetworkPath) -> impl Iterator<Item = (&'static str, &End, &'static str)> {
    path.ends().map(|(words, end)| (words, end, probe_of(words)))
}

/// Where the facts of an end are from.
pub fn probe_of(end: &str) -> &'static str {
    if end == "this end" { ids::probe::NETWORK } else { ids::probe::NETWORK_REMOTE }
}

/// The most that the slower link of the path carries, Gbit/s; only for a bandwidth over a real
/// network.
pub fn link_ceiling(evidence: &Evidence, judged: &Judged) -> Option<PhysicalLimit> {
    let case = &judged.series.case;
    let path = path(evidence)?;
    if !is_network(case) || judged.series.metric.unit != "Gbit/s" || over_loopback(case) || path.one_machine()
    {
        return None;
    }
    let (link, end) = path.link_gbits()?;
    // Links are duplex: each direction has all of it.
    let (most, ways) = if both_ways(case) { (2.0 * link, " each way") } else { (link, "") };
    let cause = format!(
        "The link of {end} carries {link} Gbit/s{ways}: the data took another way, or the driver is wrong."
    );
    Some(PhysicalLimit::new(most, cause, probe_of(end)))
}
