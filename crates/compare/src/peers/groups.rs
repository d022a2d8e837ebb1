//! Which hosts are peers: those that agree in every field of their make-up.
//!
//! A field that a host does not report (DIMMs need root) makes no group of its own: such a host
//! belongs to the largest group that agrees in all fields that it does report. Memory sizes differ
//! by what firmware reserves: sizes within 5 % of each other count as one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::fleet::Host;

/// With fewer hosts nothing can be called an outlier: the spread itself is not known.
pub const MIN_HOSTS: usize = 8;

/// The fields of a group, as methods of fleet validation take them: processor, memory population,
/// system.
const FORMING: [&str; 15] = [
    "suite",
    "cpu_model",
    "stepping",
    "packages",
    "cores",
    "cpus",
    "threads_per_core",
    "numa_nodes",
    "hypervisor",
    "dimms_mib",
    "memory_mts",
    "memory",
    "kernel",
    "base_copies",
    "base_threads",
];

const MEMORY: &str = "memory_gib";

/// Sizes of memory within this share of each other are one.
const SAME_MEMORY: f64 = 0.05;

/// What two groups must have in common to be compared at all.
const NEAR: [&str; 3] = ["suite", "cpu_model", "packages"];

/// A value that at least this share of a group has is the group's.
const MAJORITY: f64 = 0.6;

/// Hosts of one make-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// `A`, `B`, ...: the largest first.
    pub name: String,
    /// Places in the fleet.
    pub hosts: Vec<usize>,
    /// What they have in common of the fields that form groups.
    pub make_up: Vec<(String, String)>,
    /// Fields that some of its hosts do not report, with how many.
    pub unreported: Vec<(String, usize)>,
    /// For each label, the value that most of its hosts report.
    pub usual: BTreeMap<String, String>,
    /// Of a group with too few hosts: the one that it is compared with.
    pub near: Option<NearestGroup>,
}

/// A larger group of nearly the same make-up.
#[derive(Clone, Debug, PartialEq)]
pub struct NearestGroup {
    /// Its place among the groups.
    pub group: usize,
    pub differences: Vec<Difference>,
}

/// A field in which a host differs from its peers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OutputDifference")]
pub struct Difference {
    pub label: String,
    pub here: String,
    pub peers: String,
}

impl Group {
    /// Whether its hosts can be compared with each other.
    pub fn is_judged(&self) -> bool {
        self.hosts.len() >= MIN_HOSTS
    }

    /// What its hosts are, the most important first: processor, CPUs, memory, kernel.
    pub fn what(&self) -> Vec<String> {
        crate::about::what(&|label| self.usual.get(label).cloned())
    }

    fn setting(&self, label: &str) -> Option<&str> {
        self.make_up.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str())
    }
}

type Key = Vec<Option<String>>;

fn key(host: &Host) -> Key {
    let mut key: Key = FORMING.iter().map(|label| host.make_up.get(label).map(str::to_string)).collect();
    // Invented, imported and measured numbers never stand side by side.
    key.push(Some(format!("{}{}", host.pretended, host.imported)));
    key
}

pub(super) fn groups(hosts: &[Host]) -> Vec<Group> {
    let mut by_key: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (place, host) in hosts.iter().enumerate() {
        by_key.entry(key(host)).or_default().push(place);
    }
    let merged = merged(by_key);
    let mut groups: Vec<Group> = Vec::new();
    for (key, places) in merged {
        groups.extend(by_memory(places, hosts).into_iter().map(|places| group(&key, places, hosts)));
    }
    groups.sort_by(|a, b| (b.hosts.len(), &a.make_up).cmp(&(a.hosts.len(), &b.make_up)));
    for (place, group) in groups.iter_mut().enumerate() {
        group.name = model::letters(place);
    }
    let nears: Vec<Option<NearestGroup>> = (0..groups.len()).map(|place| near(&groups, place)).collect();
    groups.iter_mut().zip(nears).for_each(|(group, near)| group.near = near);
    groups
}

/// Keys with unknown fields join the largest group that agrees in all known ones.
fn merged(mut by_key: BTreeMap<Key, Vec<usize>>) -> BTreeMap<Key, Vec<usize>> {
    let unknown = |key: &Key| key.iter().filter(|value| value.is_none()).count();
    let mut keys: Vec<Key> = by_key.keys().cloned().collect();
    keys.sort_by_key(|key| std::cmp::Reverse(unknown(key)));
    let least = keys.last().map_or(0, unknown);
    for key in keys.into_iter().filter(|key| unknown(key) > least) {
        let fits = |other: &Key| {
            unknown(other) < unknown(&key)
                && key.iter().zip(other).all(|(own, theirs)| own.is_none() || own == theirs)
        };
        let target = by_key.iter().filter(|(other, _)| fits(other)).max_by_key(|(_, places)| places.len());
        if let Some(target) = target.map(|(target, _)| target.clone())
            && let Some(places) = by_key.remove(&key)
        {
            by_key.entry(target).or_default().extend(places);
        }
    }
    by_key
}

/// Splits hosts wherever two neighbouring sizes of memory are too far apart; hosts that do not
/// report a size stay with the largest part.
fn by_memory(places: Vec<usize>, hosts: &[Host]) -> Vec<Vec<usize>> {
    let gib = |place: &usize| hosts[*place].make_up.get(MEMORY).and_then(|gib| gib.parse::<f64>().ok());
    let (known, unknown): (Vec<usize>, Vec<usize>) =
        places.into_iter().partition(|place| gib(place).is_some());
    let mut sizes: Vec<(f64, usize)> = known.iter().filter_map(|place| Some((gib(place)?, *place))).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut last = f64::NAN;
    for (size, place) in sizes {
        // A gibibyte is what rounding alone may add.
        match parts.last_mut() {
            Some(part) if size <= last * (1.0 + SAME_MEMORY) + 1.0 => part.push(place),
            _ => parts.push(vec![place]),
        }
        last = size;
    }
    if !unknown.is_empty() {
        match parts.iter_mut().max_by_key(|part| part.len()) {
            Some(largest) => largest.extend(unknown),
            None => parts.push(unknown),
        }
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

fn group(key: &Key, places: Vec<usize>, hosts: &[Host]) -> Group {
    let labelled = FORMING.iter().zip(key);
    let mut make_up: Vec<(String, String)> =
        labelled.filter_map(|(label, value)| Some((label.to_string(), value.clone()?))).collect();
    let usual = usual(&places, hosts);
    if let Some(gib) = usual.get(MEMORY) {
        make_up.push((MEMORY.to_string(), gib.clone()));
    }
    let silent =
        |label: &str| places.iter().filter(|place| hosts[**place].make_up.get(label).is_none()).count();
    let unreported =
        make_up.iter().map(|(label, _)| (label.clone(), silent(label))).filter(|(_, count)| *count > 0);
    let unreported = unreported.collect();
    Group { name: String::new(), hosts: places, make_up, unreported, usual, near: None }
}

/// The value of each label that most hosts that report it have; of memory sizes the middle one.
fn usual(places: &[usize], hosts: &[Host]) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (label, value) in places.iter().flat_map(|place| hosts[*place].make_up.iter()) {
        *counts.entry(label).or_default().entry(value).or_default() += 1;
    }
    let mut usual = BTreeMap::new();
    for (label, values) in counts {
        let hosts: usize = values.values().sum();
        let most = values.iter().max_by_key(|(_, count)| **count);
        let is_usual = |count: usize| count as f64 >= MAJORITY * hosts as f64;
        match most {
            Some((value, count)) if is_usual(*count) => {
                usual.insert(label.to_string(), value.to_string());
            }
            // Numbers scatter: their middle is what is usual.
            _ if NUMBERS.contains(&label) => {
                let numbers: Vec<f64> = values
                    .iter()
                    .filter_map(|(value, count)| Some(vec![number(value)?; *count]))
                    .flatten()
                    .collect();
                if let Some(middle) = stats::order::median(&numbers) {
                    let unit =
                        if label == "core_clock" || label == "highest_frequency" { " MHz" } else { "" };
                    usual.insert(label.to_string(), format!("{middle:.0}{unit}"));
                }
            }
            _ => {}
        }
    }
    usual
}

/// Labels whose values are numbers that scatter a little, and by how much they may.
const NUMBERS: [&str; 3] = ["memory_gib", "core_clock", "highest_frequency"];
const SCATTER: f64 = 0.02;

fn number(value: &str) -> Option<f64> {
    value.split(' ').next()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Labels that differ between equal hosts as well, or say nothing of speed.
const IDLE_TALK: [&str; 7] = ["profile", "assay", "tested", "ran", "storage", "allowed_cpus", "background"];

/// In what a host differs from what is usual among others.
pub(super) fn differences(host: &Host, usual: &BTreeMap<String, String>) -> Vec<Difference> {
    let mut found = Vec::new();
    for (label, peers) in usual.iter().filter(|(label, _)| !IDLE_TALK.contains(&label.as_str())) {
        let Some(here) = host.make_up.get(label).filter(|here| here != peers) else { continue };
        let scatters = NUMBERS.contains(&label.as_str());
        let near = match (number(here), number(peers)) {
            (Some(a), Some(b)) if scatters => (a - b).abs() <= SCATTER * a.abs().max(b.abs()),
            _ => false,
        };
        if !near {
            found.push(Difference { label: label.clone(), here: here.to_string(), peers: peers.clone() });
        }
    }
    found
}

/// The group that one with too few hosts is compared with.
fn near(groups: &[Group], place: usize) -> Option<NearestGroup> {
    let own = &groups[place];
    if own.is_judged() {
        return None;
    }
    let labels = || FORMING.iter().chain(std::iter::once(&MEMORY));
    let apart = |other: &Group| -> Vec<Difference> {
        let difference = |label: &&str| {
            let (here, peers) = (own.setting(label)?, other.setting(label)?);
            (here != peers).then(|| Difference {
                label: label.to_string(),
                here: here.to_string(),
                peers: peers.to_string(),
            })
        };
        labels().filter_map(difference).collect()
    };
    let alike = |other: &&Group| {
        other.is_judged() && NEAR.iter().all(|label| own.setting(label) == other.setting(label))
    };
    let candidates = groups.iter().enumerate().filter(|(_, other)| alike(other));
    let candidates = candidates.map(|(at, other)| (apart(other), std::cmp::Reverse(other.hosts.len()), at));
    let (differences, _, group) = candidates.min_by_key(|(apart, size, at)| (apart.len(), *size, *at))?;
    Some(NearestGroup { group, differences })
}
