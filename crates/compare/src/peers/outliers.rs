//! Who falls behind. Logarithms of ratios to the group's median, robust z with a limit that knows
//! how few hosts there are, a margin in the units that matter, and for the many single benchmarks a
//! false discovery rate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::fleet::{Earlier, Fleet};
use super::groups::{Group, MIN_HOSTS};
use super::kept::{Value, Values};
use stats::multiple::benjamini_hochberg_among;
use stats::order::{MAD_TO_SIGMA, mad, median};
use stats::tails::normal_two_sided;

/// A host must be worse by this share, and by this multiple of the benchmark's noise.
const MARGIN: f64 = 0.03;
const NOISES: f64 = 3.0;

/// Limits of robust z by number of hosts: quantiles at 1e-4 (two-sided) of `(x - median) / 1.4826
/// MAD` of normal values, from the table of our methods; those of 8 and 9 hosts are simulated alike
/// (16.1 and 17.3).
const LIMITS: [(f64, f64); 7] =
    [(8.0, 17.0), (9.0, 17.0), (10.0, 12.7), (20.0, 6.3), (50.0, 4.8), (200.0, 4.1), (1000.0, 3.9)];

/// Single benchmarks are many: the share of false ones among those that are flagged.
const FALSE_DISCOVERIES: f64 = 0.01;

/// The quantile of the normal distribution that the limits stand for: 1e-4, two-sided.
const NORMAL_LIMIT: f64 = 3.8906;

/// The limit of robust z for a number of hosts, interpolated between the table's logarithms.
/// `None` below eight.
pub fn limit(hosts: usize) -> Option<f64> {
    if hosts < MIN_HOSTS {
        return None;
    }
    let n = hosts as f64;
    let above = LIMITS.iter().position(|(size, _)| n <= *size);
    match above {
        Some(0) => Some(LIMITS[0].1),
        Some(at) => {
            let ((n0, z0), (n1, z1)) = (LIMITS[at - 1], LIMITS[at]);
            let share = (n / n0).ln() / (n1 / n0).ln();
            Some((z0.ln() + share * (z1 / z0).ln()).exp())
        }
        None => Some(LIMITS[LIMITS.len() - 1].1),
    }
}

/// Where a host stands in one part of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OutputScore")]
pub struct Score {
    #[serde(serialize_with = "text")]
    #[schemars(with = "String")]
    pub component: Arc<str>,
    /// Over its peers' median, turned so that below 1 is worse.
    pub ratio: f64,
    pub z: f64,
    /// Benchmarks behind it.
    pub metrics: usize,
    pub flagged: bool,
}

fn text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// One benchmark in which a host is far behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// Place among the fleet's metrics.
    pub metric: usize,
    pub ratio: f64,
    pub z: f64,
    /// The peers that have it.
    pub peers: usize,
}

/// Where a host stands among its peers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostStanding {
    /// Its group, and the one that it was compared with.
    pub group: usize,
    pub against: usize,
    /// Other hosts that it was compared with; 0: none.
    pub peers: usize,
    pub limit: f64,
    /// By part of the host, in alphabetic order.
    pub scores: Vec<Score>,
    /// The worst first.
    pub flags: Vec<Flag>,
    /// Its older results in the worst part, or else the worst benchmark, the newest first.
    pub history: Vec<EarlierRatio>,
}

/// An older result of a host, relative to its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierRatio {
    pub started: String,
    /// Over its peers' median, turned so that below 1 is worse.
    pub ratio: f64,
}

impl EarlierRatio {
    /// Whether it was slow then, too.
    pub fn is_slow(&self) -> bool {
        self.ratio < 0.97
    }
}

impl HostStanding {
    /// Whether it is behind its peers in a part of the host or in a benchmark.
    pub fn is_behind(&self) -> bool {
        self.worst().is_some() || !self.flags.is_empty()
    }

    /// The part in which it is flagged, the worst of several.
    pub fn worst(&self) -> Option<&Score> {
        self.scores.iter().filter(|score| score.flagged).min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

/// What is usual in a group, of one metric or of one part.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    centre: f64,
    sigma: f64,
    /// Half-width of a usual interval, a share.
    noise: f64,
    hosts: usize,
}

impl Level {
    fn of(values: &[f64], halves: &[f64]) -> Option<Level> {
        if values.len() < MIN_HOSTS {
            return None;
        }
        let sigma = MAD_TO_SIGMA * mad(values)?;
        // Equal values to the last digit (clocks, counts) have no spread to divide by: a thousandth
        // is none that matters.
        Some(Level {
            centre: median(values)?,
            sigma: sigma.max(1e-3),
            noise: median(halves).unwrap_or(0.0),
            hosts: values.len(),
        })
    }

    fn margin(&self) -> f64 {
        MARGIN.max(NOISES * self.noise)
    }
}

/// What a group's members come to.
struct Baseline {
    metrics: BTreeMap<u32, Level>,
    parts: BTreeMap<Arc<str>, Level>,
}

/// Distances of a host from its peers: by metric, then the median of each part (with its better
/// end).
struct Distances {
    metrics: Vec<(Value, f64, Level)>,
    parts: BTreeMap<Arc<str>, (f64, f64, f64, usize)>,
}

fn distances(fleet: &Fleet, values: &Values, metrics: &BTreeMap<u32, Level>) -> Distances {
    let mut of_metrics = Vec::new();
    let mut parts: BTreeMap<&Arc<str>, Vec<[f64; 3]>> = BTreeMap::new();
    for value in values.iter() {
        let Some(level) = metrics.get(&value.metric) else { continue };
        let distance = value.ln - level.centre;
        of_metrics.push((value, distance, *level));
        let part = &fleet.metrics[value.metric as usize].component;
        parts.entry(part).or_default().push([distance, value.best - level.centre, value.half]);
    }
    let parts = parts.into_iter().filter_map(|(part, all)| {
        let column = |which: usize| median(&all.iter().map(|one| one[which]).collect::<Vec<f64>>());
        // What single intervals leave open averages out over a part's benchmarks.
        let half = column(2)? / (all.len() as f64).sqrt();
        Some((
            Arc::clone(part),
            (column(0)?, column(0)? + half.min(column(1)? - column(0)?), half, all.len()),
        ))
    });
    Distances { metrics: of_metrics, parts: parts.collect() }
}

impl Baseline {
    fn of(fleet: &Fleet, group: &Group) -> Baseline {
        // A benchmark that less than half of the group ran has no baseline.
        let enough = |values: &[f64]| 2 * values.len() >= group.hosts.len();
        let mut metrics: BTreeMap<u32, Level> = BTreeMap::new();
        let all = metrics_of(fleet, group);
        for some in all.chunks(AT_ONCE) {
            let [Some(first), Some(last)] = [some.first(), some.last()] else { continue };
            let mut columns: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
            for value in
                group.hosts.iter().flat_map(|place| fleet.hosts[*place].values.between(*first, *last + 1))
            {
                let column = columns.entry(value.metric).or_default();
                column.0.push(value.ln);
                column.1.push(value.half);
            }
            metrics.extend(columns.into_iter().filter_map(|(metric, (values, halves))| {
                Some((metric, Level::of(&values, &halves).filter(|_| enough(&values))?))
            }));
        }
        let mut parts: BTreeMap<Arc<str>, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for place in &group.hosts {
            for (part, (distance, _, half, _)) in
                distances(fleet, &fleet.hosts[*place].values, &metrics).parts
            {
                let column = parts.entry(part).or_default();
                column.0.push(distance);
                column.1.push(half);
            }
        }
        let parts = parts
            .into_iter()
            .filter_map(|(part, (values, halves))| Some((part, Level::of(&values, &halves)?)));
        Baseline { parts: parts.collect(), metrics }
    }
}

/// Metrics whose values are in memory once more at a time: a group is large, and has hundreds.
const AT_ONCE: usize = 32;

/// The metrics that any host of a group has.
fn metrics_of(fleet: &Fleet, group: &Group) -> Vec<u32> {
    let lists: BTreeSet<&Arc<[u32]>> =
        group.hosts.iter().map(|place| fleet.hosts[*place].values.metrics()).collect();
    let all: BTreeSet<u32> = lists.into_iter().flat_map(|list| list.iter().copied()).collect();
    all.into_iter().collect()
}

/// The ends of what is usual of each metric in a group, as logarithms turned so that more is
/// better: a host beyond the first is behind. Empty of a group that is too small.
pub(super) fn usual(fleet: &Fleet, group: &Group) -> BTreeMap<u32, [f64; 2]> {
    let Some(limit) = limit(group.hosts.len()) else { return BTreeMap::new() };
    let ends = |level: Level| {
        let reach = level.margin().max(limit * level.sigma);
        [level.centre - reach, level.centre + reach]
    };
    let levels = Baseline::of(fleet, group).metrics;
    levels.into_iter().map(|(metric, level)| (metric, ends(level))).collect()
}

/// Where every host stands.
pub(super) fn standings(fleet: &Fleet, groups: &[Group]) -> Vec<HostStanding> {
    let mut standings = vec![HostStanding::default(); fleet.hosts.len()];
    let baselines: Vec<Option<Baseline>> =
        groups.iter().map(|group| group.is_judged().then(|| Baseline::of(fleet, group))).collect();
    for (place, group) in groups.iter().enumerate() {
        let against = group.near.as_ref().map_or(place, |near| near.group);
        let found = baselines[against].as_ref();
        for host in &group.hosts {
            standings[*host].group = place;
            standings[*host].against = against;
        }
        if let Some(baseline) = found {
            let peers = groups[against].hosts.len() - usize::from(against == place);
            stand(fleet, group, baseline, peers, groups[against].hosts.len(), &mut standings);
        }
    }
    for standing in &mut standings {
        standing.flags.sort_by(|a, b| a.ratio.total_cmp(&b.ratio).then(a.metric.cmp(&b.metric)));
    }
    standings
}

/// A host's benchmark that is worse by more than the margin, before z is looked at.
struct Candidate {
    host: usize,
    flag: Flag,
    /// Limit of its z.
    limit: f64,
}

fn stand(
    fleet: &Fleet,
    group: &Group,
    baseline: &Baseline,
    peers: usize,
    hosts: usize,
    standings: &mut [HostStanding],
) {
    let own = usize::from(peers < hosts);
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut tests = 0;
    for place in &group.hosts {
        let found = distances(fleet, &fleet.hosts[*place].values, &baseline.metrics);
        tests += found.metrics.len();
        for (value, distance, level) in &found.metrics {
            let z = distance / level.sigma;
            let worse = value.best - level.centre < -level.margin();
            if let Some(limit) = limit(level.hosts).filter(|_| worse) {
                let flag = Flag {
                    metric: value.metric as usize,
                    ratio: distance.exp(),
                    z,
                    peers: level.hosts - own.min(level.hosts),
                };
                candidates.push(Candidate { host: *place, flag, limit });
            }
        }
        let standing = &mut standings[*place];
        standing.peers = peers;
        standing.limit = limit(hosts).unwrap_or(f64::INFINITY);
        for (component, (distance, best, _, metrics)) in found.parts {
            let Some(level) = baseline.parts.get(&component) else { continue };
            let z = (distance - level.centre) / level.sigma;
            let beyond = limit(level.hosts).is_some_and(|limit| z < -limit);
            let flagged = beyond && best - level.centre < -level.margin();
            standing.scores.push(Score {
                component,
                ratio: (distance - level.centre).exp(),
                z,
                metrics,
                flagged,
            });
        }
    }
    flag(candidates, tests, standings);
    for place in &group.hosts {
        let standing = &mut standings[*place];
        if !standing.is_behind() {
            continue;
        }
        let part = standing.worst().map(|worst| worst.component.clone());
        let worst = standing.flags.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let benchmark = worst.and_then(|flag| u32::try_from(flag.metric).ok());
        let distance = |values: &Values| match (&part, benchmark) {
            (Some(part), _) => Some(distances(fleet, values, &baseline.metrics).parts.get(part)?.0),
            (None, own) => Some(values.of(own?)?.ln - baseline.metrics.get(&own?)?.centre),
        };
        let before = |one: &Earlier| {
            Some(EarlierRatio { started: one.started.clone(), ratio: distance(&one.values)?.exp() })
        };
        standing.history = fleet.hosts[*place].earlier.iter().filter_map(before).collect();
    }
}

fn flag(candidates: Vec<Candidate>, tests: usize, standings: &mut [HostStanding]) {
    // z of few hosts has long tails: brought to the scale on which its limit is the normal
    // quantile. Benchmarks that are not worse by the margin are never flagged, but were looked at.
    let scaled = |one: &Candidate| one.flag.z * NORMAL_LIMIT / one.limit;
    let p: Vec<f64> = candidates.iter().map(|one| normal_two_sided(scaled(one)) / 2.0).collect();
    let adjusted = benjamini_hochberg_among(&p, tests);
    for (one, q) in candidates.into_iter().zip(adjusted) {
        if one.flag.z < -one.limit && q <= FALSE_DISCOVERIES {
            standings[one.host].flags.push(one.flag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_table_and_between_them() {
        for (hosts, z) in
            [(10, 12.7), (20, 6.3), (50, 4.8), (200, 4.1), (1000, 3.9), (10_000, 3.9), (8, 17.0)]
        {
            assert!((limit(hosts).expect("a limit") - z).abs() < 1e-9, "{hosts}");
        }
        assert_eq!([limit(0), limit(7)], [None, None]);
        let between = limit(30).expect("a limit");
        assert!(between < 6.3 && between > 4.8, "{between}");
    }
}
