//! Memory under load: where waiting begins.

use super::ladder::{Curve, curves};
use super::words::{figure, percent};
use super::{Evidence, Rule};
use model::vocabulary as ids;
use model::{Effect, Fact, Finding, Severity};
use stats::analysis::Judged;
use stats::knee::knee;

pub const RULES: &[Rule] = &[KNEE];

const KNEE: Rule = Rule {
    id: ids::host::rule::LATENCY_KNEE,
    title: "Where memory begins to keep its users waiting",
    topic: "memory load",
    about: "Latency over traffic is flat while the memory has time for everybody, and rises steeply where requests begin \
            to queue. A server that is run beyond this knee feels slow although no CPU is fully busy; one that is run \
            far below it has bandwidth to spare. An idle figure alone says nothing of either.",
    method: "For each mix of reads and writes of memory.loaded-latency the knee is the point farthest below the chord from \
             the idle to the fully loaded end, and counts from a quarter of the whole rise; flat and straight curves have \
             none. The share is of the best read bandwidth that memory.bandwidth found with its largest blocks.",
    calm: "memory latency flat under load",
    looked_at: "loaded latency",
    source: file!(),
    check: bent,
};

fn bent(evidence: &Evidence) -> Option<Vec<Finding>> {
    let latencies = curves(
        evidence,
        ids::memory::LOADED_LATENCY,
        ids::memory::metric::LATENCY,
        ids::memory::param::PAUSE,
        |_| true,
    );
    let traffics = curves(
        evidence,
        ids::memory::LOADED_LATENCY,
        ids::memory::metric::TRAFFIC,
        ids::memory::param::PAUSE,
        |_| true,
    );
    let best = best_read(evidence);
    let (mut facts, mut headline) = (Vec::new(), None);
    let mut looked = false;
    for latency in &latencies {
        let Some(points) =
            traffics.iter().find(|traffic| traffic.key == latency.key).map(|traffic| met(latency, traffic))
        else {
            continue;
        };
        looked |= points.len() >= 3;
        let Some(at) = knee(&points) else { continue };
        let by_traffic = |one: &&(f64, f64), other: &&(f64, f64)| one.0.total_cmp(&other.0);
        let (Some(idle), Some(full)) = (points.iter().min_by(by_traffic), points.iter().max_by(by_traffic))
        else {
            continue;
        };
        let (traffic, loaded) = points[at];
        let of_best = best.map_or(String::new(), |(best, _)| {
            format!(", {} of the best read bandwidth", percent(traffic / best))
        });
        let mix = latency
            .case
            .params
            .get(ids::memory::param::MIX)
            .map_or("traffic".to_string(), |mix| mix.to_string());
        let words = format!(
            "{} idle, {} at the knee ({}{of_best}), {} at {}",
            figure(idle.1, "ns"),
            figure(loaded, "ns"),
            figure(traffic, "GB/s"),
            figure(full.1, "ns"),
            figure(full.0, "GB/s")
        );
        headline.get_or_insert_with(|| {
            format!(
                "Memory latency rises from {} to {} at {}. Keep lasting traffic below that.",
                figure(idle.1, "ns"),
                figure(loaded, "ns"),
                figure(traffic, "GB/s")
            )
        });
        facts.push(Fact::new(mix, words, &latency.key));
    }
    if !looked {
        return None;
    }
    let Some(headline) = headline else { return Some(Vec::new()) };
    facts.extend(best.map(|(best, key)| Fact::new("best read bandwidth", figure(best, "GB/s"), key)));
    Some(vec![Finding {
        rule: KNEE.id.into(),
        severity: Severity::Note,
        headline,
        cause: "From the knee on, requests queue in the memory controllers: a little more traffic costs much more latency."
            .into(),
        facts,
        confirm: "assay run --only memory.loaded-latency,memory.bandwidth --profile standard".into(),
        advice: "Keep lasting memory traffic below the knee; more or faster channels move it, more cores do not.".into(),
        series: Vec::new(),
        effect: Effect::None,
    }])
}

/// Traffic and latency of the points that have both.
fn met(latency: &Curve, traffic: &Curve) -> Vec<(f64, f64)> {
    let at = |pause: f64| traffic.points.iter().find(|(other, _)| *other == pause).map(|point| point.1);
    latency.points.iter().filter_map(|(pause, latency)| Some((at(*pause)?, *latency))).collect()
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
        let of = |judged: &&&Judged| {
            judged.series.point.get(ids::memory::param::BYTES).and_then(|b| b.number()) == Some(end.0)
        };
        Some((end.1, curve.series.iter().find(of)?.series.key.as_str()))
    });
    largest.max_by(|one, other| one.0.total_cmp(&other.0))
}
