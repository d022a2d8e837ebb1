//! Many metrics as few figures: a ratio for each part of the host, and one over all.
//!
//! A benchmark counts once, however many points and metrics it has, and a part of the host once,
//! however many benchmarks look at it: else the part with the longest ladder would be the index.
//! Only what is trusted or rough on both sides, with an interval, counts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::words::margin_words;
use super::{Compared, MIN_DIFFERENCE, Member, Relation};
use diagnose::key_figures::Group;
use model::Grade;
use stats::contrast::would_show;
use stats::index::{Component as Test, geometric_mean, index};
use stats::order::Interval;

/// A pooled ratio, turned so that above 1 is better.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Index")]
pub struct Pooled {
    /// Geometric mean.
    pub ratio: f64,
    pub ci95: [f64; 2],
    /// The lowest and the highest value that leaving one benchmark out gives; `None` of a single
    /// one.
    pub leave_one_out: Option<[f64; 2]>,
    /// Benchmarks without which it changes sides of 1.
    pub decided_by: Vec<String>,
    pub metrics: usize,
    pub benchmarks: usize,
}

/// A part of the host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Part")]
pub struct Component {
    pub name: String,
    #[serde(flatten)]
    pub pooled: Pooled,
    /// The interval lies outside the least difference: its metrics deserve a look.
    pub moves: bool,
}

/// The part of the host that a series is about: the group of its benchmark, memory by what is
/// asked of it.
pub fn component(member: &Member) -> String {
    component_of(&member.case.bench, &member.metric.unit)
}

/// The same by a benchmark's id and the unit of its metric.
pub fn component_of(bench: &str, unit: &str) -> String {
    let group = bench.strip_prefix("sysbench.").unwrap_or(bench).split('.').next().unwrap_or_default();
    match group {
        "memory" if unit.ends_with("B/s") => "memory bandwidth".to_string(),
        "memory" => "memory latency".to_string(),
        group => group.to_string(),
    }
}

/// One benchmark's part.
struct BenchRatio {
    component: String,
    name: String,
    ratio: f64,
    /// Half-widths of ln of the ratio: of each metric's own chance, and of what all metrics of a
    /// run share.
    halves: [f64; 2],
    metrics: usize,
}

/// Whether a metric counts in components, groups and the index.
pub fn counts(one: &Compared) -> bool {
    one.headline && one.grade <= Grade::B && one.turned().is_some_and(|(_, interval)| interval.is_some())
}

/// The components in alphabetic order, and the index over all.
pub fn pooled(metrics: &[Compared]) -> (Vec<Component>, Option<Pooled>) {
    let benches = benches(metrics);
    let mut parts: BTreeMap<&str, Vec<&BenchRatio>> = BTreeMap::new();
    for bench in &benches {
        parts.entry(bench.component.as_str()).or_default().push(bench);
    }
    let component = |(name, benches): (&&str, &Vec<&BenchRatio>)| {
        let pooled = pool(benches, &vec![1.0; benches.len()])?;
        let edges = [1.0 / (1.0 + MIN_DIFFERENCE), 1.0 + MIN_DIFFERENCE];
        let outside = |[low, high]: [f64; 2]| high <= edges[0] || low >= edges[1];
        let moves = outside(pooled.ci95);
        Some(Component { name: name.to_string(), pooled, moves })
    };
    let components = parts.iter().filter_map(component).collect();
    let weights: Vec<f64> =
        benches.iter().map(|bench| 1.0 / parts[bench.component.as_str()].len() as f64).collect();
    (components, pool(&benches.iter().collect::<Vec<_>>(), &weights))
}

/// One ratio of the benchmarks of a group of figures, each counting once.
pub fn pooled_group(metrics: &[Compared], group: Group) -> Option<Pooled> {
    let benches = benches(metrics);
    let own: Vec<&BenchRatio> =
        benches.iter().filter(|bench| Group::of_bench(&bench.name) == group).collect();
    pool(&own, &vec![1.0; own.len()])
}

fn benches(metrics: &[Compared]) -> Vec<BenchRatio> {
    let mut by_bench: BTreeMap<(&str, &str), Vec<&Compared>> = BTreeMap::new();
    for one in metrics.iter().filter(|one| counts(one)) {
        by_bench.entry((one.component.as_str(), one.bench.as_str())).or_default().push(one);
    }
    by_bench.into_iter().filter_map(|(key, all)| of_bench(key, &all)).collect()
}

impl Pooled {
    /// What its interval says, with the words around it. `margins` rise.
    pub fn conclude(&self, margins: &[f64]) -> (Relation, String) {
        let [low, high] = self.ci95;
        let edge = 1.0 + MIN_DIFFERENCE;
        if low >= edge {
            return (Relation::Faster, Relation::Faster.word().to_string());
        }
        if high <= 1.0 / edge {
            return (Relation::Slower, Relation::Slower.word().to_string());
        }
        let within = |margin: &&f64| low > 1.0 / (1.0 + **margin) && high < 1.0 + **margin;
        match margins.iter().find(within) {
            Some(margin) => (Relation::Same, format!("same within {}", margin_words(*margin))),
            None => (Relation::Inconclusive, Relation::Inconclusive.word().to_string()),
        }
    }

    /// The share of difference that nine of ten such comparisons would show.
    pub fn would_show(&self) -> f64 {
        let half = (self.ci95[1] / self.ci95[0]).ln() / 2.0;
        would_show(half)
    }
}

fn of_bench((component, bench): (&str, &str), metrics: &[&Compared]) -> Option<BenchRatio> {
    let turned: Vec<(f64, Option<Interval>)> = metrics.iter().filter_map(|one| one.turned()).collect();
    let ratios: Vec<f64> = turned.iter().map(|(ratio, _)| *ratio).collect();
    let n = ratios.len() as f64;
    // Half-widths: those of chance add up as squares, what all share adds up as it is.
    let halves = metrics.iter().zip(&turned).map(|(one, (_, interval))| {
        let interval = (*interval)?;
        let all = (interval.high / interval.low).ln() / 2.0;
        let own = (all.powi(2) - one.shared_half.powi(2)).max(0.0).sqrt();
        Some([own, one.shared_half])
    });
    let halves: Vec<[f64; 2]> = halves.collect::<Option<_>>()?;
    let own = halves.iter().map(|half| half[0].powi(2)).sum::<f64>().sqrt() / n;
    let halves = [own, halves.iter().map(|half| half[1]).sum::<f64>() / n];
    let ratio = geometric_mean(&ratios)?;
    Some(BenchRatio { component: component.into(), name: bench.into(), ratio, halves, metrics: ratios.len() })
}

fn pool(benches: &[&BenchRatio], weights: &[f64]) -> Option<Pooled> {
    let test = |(bench, weight): (&&BenchRatio, &f64)| Test {
        name: bench.name.clone(),
        ratio: bench.ratio,
        interval: None,
        weight: *weight,
    };
    let tests: Vec<Test> = benches.iter().zip(weights).map(test).collect();
    let found = index(&tests, 0.95)?;
    let total: f64 = weights.iter().sum();
    let parts =
        || benches.iter().zip(weights).map(|(bench, weight)| bench.halves.map(|half| half * weight / total));
    let own: f64 = parts().map(|half| half[0].powi(2)).sum();
    let shared: f64 = parts().map(|half| half[1]).sum();
    let half = own.sqrt().hypot(shared);
    Some(Pooled {
        ratio: found.value,
        ci95: [found.value * (-half).exp(), found.value * half.exp()],
        leave_one_out: found.leave_one_out.map(|range| [range.low, range.high]),
        decided_by: found.decided_by,
        metrics: benches.iter().map(|bench| bench.metrics).sum(),
        benchmarks: benches.len(),
    })
}
