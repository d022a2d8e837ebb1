//! What is usual among a host's peers, as a band of each figure: what `run --reference DIR` reads
//! figures by, so that it and `peers` agree.

use std::collections::BTreeMap;

use super::fleet::{Fleet, HostResult};
use super::groups::groups;
use super::outliers::usual;
use stats::order::quantile;

/// What is usual of one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    pub key: String,
    pub unit: String,
    /// Whether more is better.
    pub higher: bool,
    pub low: f64,
    pub high: f64,
}

/// What is usual among hosts of one make.
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// The other hosts of its make.
    pub hosts: usize,
    /// Whether the ends are the limits of `peers`, which takes eight hosts; else they are the 5th
    /// and the 95th percentile.
    pub are_limits: bool,
    pub bands: Vec<Band>,
}

/// The bands of a host's peers; `None` where the fleet has none of its make.
pub fn bands(mut fleet: Fleet, own: HostResult) -> Option<Bands> {
    let (name, started) = (own.host.clone(), own.started.clone());
    fleet.add(own);
    let place = fleet.hosts.iter().position(|host| host.name == name && host.started == started)?;
    let groups = groups(&fleet.hosts);
    let group = groups.iter().find(|group| group.hosts.contains(&place))?;
    let others: Vec<usize> = group.hosts.iter().copied().filter(|host| *host != place).collect();
    let limits = usual(&fleet, group);
    let mut columns: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for value in others.iter().flat_map(|host| fleet.hosts[*host].values.iter()) {
        columns.entry(value.metric).or_default().push(value.ln);
    }
    let ends = |metric: u32, values: &[f64]| {
        if limits.is_empty() {
            Some([quantile(values, 0.05)?, quantile(values, 0.95)?])
        } else {
            limits.get(&metric).copied()
        }
    };
    let band = |(metric, values): (u32, Vec<f64>)| {
        let [worse, better] = ends(metric, &values)?;
        let metric = &fleet.metrics[metric as usize];
        // Values are turned so that more is better.
        let [low, high] =
            if metric.higher { [worse.exp(), better.exp()] } else { [(-better).exp(), (-worse).exp()] };
        Some(Band { key: metric.key.clone(), unit: metric.unit.clone(), higher: metric.higher, low, high })
    };
    let bands: Vec<Band> = columns.into_iter().filter_map(band).collect();
    (!bands.is_empty()).then_some(Bands { hosts: others.len(), are_limits: !limits.is_empty(), bands })
}
