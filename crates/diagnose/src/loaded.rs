//! Memory under load: where waiting begins.

use super::ladder::{Curve, curves};
use super::words::{figure, percent};
use super::{Evidence, Rule};
use model::vocabulary as ids;
use model::{Fact, Finding};
use stats::analysis::Judged;
use stats::knee::knee;

pub const RULES: &[Rule] = &[KNEE];

const KNEE: Rule = Rule {
    id: ids::host::rule::LATENCY_KNEE,
    title: "The traffic from which memory latency rises",
    topic: "memory load",
    meaning: "Memory latency is flat while traffic is low, and rises steeply where requests begin to queue. \
        Beyond this knee a server feels slow although no CPU is fully busy. Far below it, bandwidth is left.",
    action: "Keep lasting memory traffic below the knee. More or faster channels move it; more cores do not. \
        See it: assay run --only memory.loaded-latency,memory.bandwidth --profile standard",
    when: "A note where latency over traffic has a knee: a bend of at least a quarter of the whole rise.",
    how: "For each mix of reads and writes the knee is the point farthest below the chord from the idle to \
        the loaded end. Flat and straight curves have none. Its share is of the best read bandwidth that \
        memory.bandwidth found with its largest blocks.",
    calm: "memory latency flat under load",
    looked_at: "loaded latency",
    source: file!(),
    check,
};

fn check(evidence: &Evidence) -> Option<Vec<Finding>> {
    let of_metric =
        |metric| curves(evidence, ids::memory::LOADED_LATENCY, metric, ids::memory::param::PAUSE, |_| true);
    let (latencies, traffics) =
        (of_metric(ids::memory::metric::LATENCY), of_metric(ids::memory::metric::TRAFFIC));
    let joined: Vec<(&Curve, Vec<(f64, f64)>)> = latencies
        .iter()
        .filter_map(|latency| {
            let traffic = traffics.iter().find(|traffic| traffic.key == latency.key)?;
            Some((latency, traffic_and_latency(latency, traffic)))
        })
        .collect();
    if !joined.iter().any(|(_, points)| points.len() >= 3) {
        return None;
    }
    let knees: Vec<(&Curve, Knee)> =
        joined.iter().filter_map(|(curve, points)| Some((*curve, Knee::of(points)?))).collect();
    let Some((_, first)) = knees.first() else { return Some(Vec::new()) };
    let best = best_read(evidence);
    let headline = format!(
        "Memory latency rises from {} to {} at {}. Keep lasting traffic below that.",
        figure(first.idle_ns, "ns"),
        figure(first.loaded_ns, "ns"),
        figure(first.traffic, "GB/s")
    );
    Some(vec![
        Finding::note(KNEE.id, headline)
            .cause("From there on, requests queue in the memory controllers.")
            .facts(knees.iter().map(|(curve, knee)| {
                let mix = curve.case.params.get(ids::memory::param::MIX);
                let label = mix.map_or("traffic".to_string(), |mix| mix.to_string());
                Fact::new(label, knee.words(best.map(|(best, _)| best)), &curve.key)
            }))
            .facts(best.map(|(best, key)| Fact::new("best read bandwidth", figure(best, "GB/s"), key)))
            .confirm("assay run --only memory.loaded-latency,memory.bandwidth --profile standard")
            .advice("Stay below that. More or faster channels move the knee, more cores do not."),
    ])
}

/// Where latency bends up, with both ends of the curve; traffic in GB/s.
struct Knee {
    idle_ns: f64,
    traffic: f64,
    loaded_ns: f64,
    most_traffic: f64,
    full_ns: f64,
}

impl Knee {
    /// Of pairs of traffic and latency.
    fn of(points: &[(f64, f64)]) -> Option<Knee> {
        let (traffic, loaded_ns) = points[knee(points)?];
        let by_traffic = |one: &&(f64, f64), other: &&(f64, f64)| one.0.total_cmp(&other.0);
        let (_, idle_ns) = *points.iter().min_by(by_traffic)?;
        let (most_traffic, full_ns) = *points.iter().max_by(by_traffic)?;
        Some(Knee { idle_ns, traffic, loaded_ns, most_traffic, full_ns })
    }

    fn words(&self, best_read: Option<f64>) -> String {
        let of_best = best_read.map_or(String::new(), |best| {
            format!(", {} of the best read bandwidth", percent(self.traffic / best))
        });
        format!(
            "{} idle, {} at the knee ({}{of_best}), {} at {}",
            figure(self.idle_ns, "ns"),
            figure(self.loaded_ns, "ns"),
            figure(self.traffic, "GB/s"),
            figure(self.full_ns, "ns"),
            figure(self.most_traffic, "GB/s")
        )
    }
}

/// Traffic and latency of the points that have both.
fn traffic_and_latency(latency: &Curve, traffic: &Curve) -> Vec<(f64, f64)> {
    let traffic_at =
        |pause: f64| traffic.points.iter().find(|(other, _)| *other == pause).map(|point| point.1);
    latency.points.iter().filter_map(|(pause, latency)| Some((traffic_at(*pause)?, *latency))).collect()
}

/// The best read bandwidth of many tasks with their largest blocks, and its key.
fn best_read<'a>(evidence: &Evidence<'a>) -> Option<(f64, &'a str)> {
    let reads = curves(
        evidence,
        ids::memory::BANDWIDTH,
        ids::memory::metric::BANDWIDTH,
        ids::memory::param::BYTES,
        |case| {
            case.params.get(ids::memory::param::OP).and_then(|op| op.text()) == Some("read")
                && ["all", "one-per-core"].contains(&case.placement.name.as_ref())
        },
    );
    let largest = reads.into_iter().filter_map(|curve| {
        let end = curve.points.last()?;
        let is_end = |judged: &&&Judged| {
            judged.series.point.get(ids::memory::param::BYTES).and_then(|b| b.number()) == Some(end.0)
        };
        Some((end.1, curve.series.iter().find(is_end)?.series.key.as_str()))
    });
    largest.max_by(|one, other| one.0.total_cmp(&other.0))
}
