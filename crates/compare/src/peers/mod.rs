//! Hosts against hosts of the same make-up: which of a fleet is slower than its peers, in what, and
//! what about it differs.
//!
//! [`Fleet`] gathers results a host at a time and keeps a few numbers of each; `groups.rs` says who
//! are peers, `outliers.rs` who falls behind them, `findings.rs` puts that into words with what
//! else is known of the host. Pure: the same results give the same answer in any order.

mod bands;
mod findings;
pub mod fleet;
mod groups;
mod guests;
mod kept;
mod labels;
mod outliers;
#[cfg(test)]
mod tests;

pub use bands::{Band, Bands, bands};
pub use findings::Suspected;
pub use fleet::{Fleet, Host, Metric, Result, Series};
pub use groups::{Difference, Group, LEAST_HOSTS, Near};
pub use kept::Words;
pub use labels::Followed;
pub use outliers::{Before, Flag, Score, Standing, limit};

use std::collections::{BTreeMap, BTreeSet};

use model::Finding;

/// The rules, as `assay explain` tells them.
pub const SLOW: &str = "slow-among-peers";
pub const DRIFT: &str = "config-drift";

/// What `assay explain slow-among-peers` says.
pub const SLOW_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "A host is slower than hosts of the same make, in one part or in one benchmark. Equal hardware and software should give equal \
         speed. Usual causes: a wrongly filled memory slot, a low clock, a setting that differs, failing hardware.",
    ),
    (
        "When it appears",
        "The group has 8 hosts or more. Two conditions hold. The better end of the host's 95 % interval is worse than the \
         peers' median by more than max(3 %, 3 × the noise of the benchmark). Its robust z is below -z_N: 17 (8 and 9 hosts), 12.7 \
         (10), 6.3 (20), 4.8 (50), 4.1 (200), 3.9 (from 1,000).",
    ),
    (
        "How it is computed",
        "Values are logarithms of ratios to the group's median; the score of a part is the median over its main benchmarks. z is the \
         distance over 1.4826 MAD of the group, z_N its 1e-4 quantile for N hosts. Single benchmarks must also keep the \
         false discovery rate over all hosts and benchmarks of the group below 1 % (Benjamini and Hochberg, z scaled to normal by its \
         limit).",
    ),
    (
        "When it names a label",
        "Labels (--label rack=r7) form no groups. A label is named if hosts that are behind share it and fewer than half of the others \
         in their groups have it. Chance must be ruled out: p of Fisher's exact test, one-sided, times the number of labels shared by \
         two hosts or more, is at most 1 %.",
    ),
];

/// What `assay explain config-drift` says.
pub const DRIFT_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "Hosts have too few peers of exactly their make, but differ from a larger group in a few fields only: another kernel, \
         one memory module more or less, SMT off. Assay compares them with that group; the fields that differ are the first suspects.",
    ),
    (
        "When it appears",
        "A group has fewer than 8 hosts, and another of 8 or more has the same CPU model and number of packages. Of several, the one \
         that differs in the fewest fields is taken, then the largest.",
    ),
];

/// What a fleet comes to.
#[derive(Clone, Debug)]
pub struct Peers {
    pub fleet: Fleet,
    /// The largest first.
    pub groups: Vec<Group>,
    /// For each host of the fleet.
    pub standings: Vec<Standing>,
    /// For each host of the fleet; empty of those that are not behind.
    pub suspected: Vec<Suspected>,
    /// Labels that hosts which are behind share and others mostly do not, the surest first.
    pub followed: Vec<Followed>,
    /// The slowest first.
    pub findings: Vec<Finding>,
}

impl Peers {
    /// Hosts that were held against others.
    pub fn judged(&self) -> usize {
        self.standings.iter().filter(|standing| standing.peers > 0).count()
    }

    /// In what hosts that are not behind differ from what is usual in their group, with how many of
    /// them: what most differ in first.
    pub fn idle_differences(&self) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (host, standing) in self.fleet.hosts.iter().zip(&self.standings) {
            let group = self.groups.get(standing.group).filter(|group| group.is_judged());
            let Some(group) = group.filter(|_| !standing.is_behind()) else { continue };
            for difference in groups::differences(host, &group.usual) {
                *counts.entry(difference.label).or_default() += 1;
            }
        }
        let mut all: Vec<(String, usize)> = counts.into_iter().collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

/// Holds every host of a fleet against its peers.
pub fn judge(fleet: Fleet) -> Peers {
    let fleet = fleet.without_doubles();
    let groups = groups::groups(&fleet.hosts);
    let standings = outliers::standings(&fleet, &groups);
    let followed = followed(&fleet, &standings);
    let (findings, suspected) = findings::findings(&fleet, &groups, &standings, &followed);
    Peers { fleet, groups, standings, suspected, followed, findings }
}

/// The labels that hosts which are behind follow, among the groups in which any is.
fn followed(fleet: &Fleet, standings: &[Standing]) -> Vec<Followed> {
    let is_behind = |place: &usize| standings[*place].is_behind();
    let concerned: BTreeSet<usize> =
        standings.iter().filter(|standing| standing.is_behind()).map(|standing| standing.against).collect();
    let judged = (0..standings.len())
        .filter(|place| standings[*place].peers > 0 && concerned.contains(&standings[*place].against));
    let (behind, others): (Vec<usize>, Vec<usize>) = judged.partition(is_behind);
    labels::followed(fleet, &behind, &others)
}
