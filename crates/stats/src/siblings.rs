//! Which CPUs share a core: those that slow each other when both compute.
//!
//! Two threads of a core that is busy share its ports and each takes 1.3 to 2 times as long; two
//! cores hardly notice each other. Stolen time and other work look alike in single visits, so a
//! pair counts only where nearly every visit says so.

use std::collections::{BTreeMap, BTreeSet};

use super::order::{median, quantile};
use super::pairs::{MIN_VISITS, Pair, Pairs};

/// Siblings slow each other by at least this in the median ...
pub const SLOWER: f64 = 1.25;
/// ... and by this in all but the lowest fifth of visits.
const NEARLY_ALWAYS: f64 = 1.2;
const LOWEST: f64 = 0.2;
/// How many standard errors the median must be beyond the bound.
const ERRORS: f64 = 4.0;
/// Where most pairs slow each other by more, it is not the cores.
const MAX_SLOWER: f64 = 1.15;
/// No core has more threads (POWER: 8).
const MAX_THREADS: usize = 8;

/// What the slowdowns say.
#[derive(Clone, Debug, PartialEq)]
pub struct Siblings {
    pub cpus: Vec<u32>,
    /// Relative scatter of a visit's value; `None` of too few visits.
    pub noise: Option<f64>,
    /// Pairs that are siblings and pairs that are not, with their slowdown; other measured pairs
    /// are open.
    pub siblings: BTreeMap<Pair, f64>,
    pub apart: BTreeMap<Pair, f64>,
    pub open: Vec<Pair>,
    /// Why nothing is said about any pair.
    pub cannot_tell: Option<String>,
}

/// Decides on every pair whose slowdown (time together over time alone) was measured.
pub fn siblings(pairs: &Pairs) -> Siblings {
    let all: Vec<(Pair, Vec<f64>)> = pairs.iter().collect();
    let mut found = Siblings {
        cpus: pairs.cpus(),
        noise: pairs.noise(),
        siblings: BTreeMap::new(),
        apart: BTreeMap::new(),
        open: all.iter().map(|(pair, _)| *pair).collect(),
        cannot_tell: None,
    };
    let medians: Vec<f64> = pairs.medians().into_values().collect();
    let (Some(error), Some(rest)) = (pairs.standard_error(), median(&medians)) else {
        let visits = pairs.least_visits();
        found.cannot_tell = Some(format!("a pair has {visits} passes, and {MIN_VISITS} are needed"));
        return found;
    };
    // Of up to three CPUs all pairs may be siblings; else at most a minority are, and the others
    // are what is usual.
    let few = found.cpus.len() <= 3;
    if rest > MAX_SLOWER.ln() {
        found.cannot_tell = Some(if few {
            format!(
                "{} CPUs slow each other by a factor of {:.2}: siblings, or a quota of one CPU; there are no \
                 other CPUs to compare",
                found.cpus.len(),
                rest.exp()
            )
        } else {
            format!(
                "most pairs slow each other by a factor of {:.2}: a quota, steal or other work, not the cores",
                rest.exp()
            )
        });
        return found;
    }
    let usual = rest.max(0.0);
    for (pair, values) in all {
        let (Some(middle), Some(low)) = (median(&values), quantile(&values, LOWEST)) else { continue };
        if middle - usual > SLOWER.ln() + ERRORS * error && low - usual > NEARLY_ALWAYS.ln() {
            found.siblings.insert(pair, middle.exp());
        } else if middle + ERRORS * error < SLOWER.ln() {
            found.apart.insert(pair, middle.exp());
        }
    }
    if let Some(why) = contradiction(&found) {
        found.cannot_tell = Some(why);
        found.siblings.clear();
        found.apart.clear();
    }
    found.open.retain(|pair| !found.siblings.contains_key(pair) && !found.apart.contains_key(pair));
    found
}

impl Siblings {
    /// CPUs that share a core, smallest first; CPUs without siblings are left out.
    pub fn cores(&self) -> Vec<Vec<u32>> {
        let mut cores: Vec<BTreeSet<u32>> = Vec::new();
        for (one, other) in self.siblings.keys() {
            let (mut own, rest): (Vec<_>, Vec<_>) =
                cores.into_iter().partition(|core| core.contains(one) || core.contains(other));
            own.push([*one, *other].into());
            cores = rest;
            cores.push(own.into_iter().flatten().collect());
        }
        let mut cores: Vec<Vec<u32>> = cores.into_iter().map(|core| core.into_iter().collect()).collect();
        cores.sort();
        cores
    }
}

/// Sharing a core is mutual among all its threads: a chain that does not close is something else.
fn contradiction(found: &Siblings) -> Option<String> {
    let words = |core: &[u32]| core.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let odd = found.cores().into_iter().find(|core| {
        let pairs = core.iter().enumerate().flat_map(|(at, a)| core[at + 1..].iter().map(move |b| (*a, *b)));
        core.len() > MAX_THREADS || pairs.into_iter().any(|pair| found.apart.contains_key(&pair))
    })?;
    Some(format!("CPUs {} slow each other, but not in all pairs: this is not a shared core", words(&odd)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(count: u32, slowdown: impl Fn(u32, u32, u32) -> f64) -> Siblings {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut pairs = Pairs::default();
        for visit in 0..8 {
            for one in 0..count {
                for other in one + 1..count {
                    let noise = (0.02 * super::super::noise::normal(&mut rng)).exp();
                    pairs.push((one, other), visit, slowdown(one, other, visit) * noise);
                }
            }
        }
        siblings(&pairs.settled())
    }

    #[test]
    fn threads_of_a_core_are_found_and_others_told_apart() {
        let found = measured(8, |a, b, _| if a % 4 == b % 4 { 1.9 } else { 1.02 });
        assert_eq!(found.cores(), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!((found.apart.len(), found.open.len(), found.cannot_tell), (24, 0, None));
        let four = measured(8, |a, b, _| if a / 4 == b / 4 { 2.5 } else { 1.0 });
        // Of eight CPUs of two cores with four threads 12 of 28 pairs are siblings.
        assert_eq!(four.cores(), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        let none = measured(6, |_, _, _| 1.03);
        assert!(none.cores().is_empty() && none.apart.len() == 15);
    }

    #[test]
    fn two_cpus_that_slow_each_other_may_be_anything() {
        let slow = measured(2, |_, _, _| 1.9);
        assert!(slow.cannot_tell.as_ref().is_some_and(|why| why.contains("no other CPUs")), "{slow:?}");
        let free = measured(2, |_, _, _| 1.0);
        assert!(free.cannot_tell.is_none() && free.apart.len() == 1);
    }

    #[test]
    fn quotas_stolen_visits_and_chains_are_no_siblings() {
        let quota = measured(6, |_, _, _| 1.95);
        assert!(quota.cannot_tell.as_ref().is_some_and(|why| why.contains("most pairs")), "{quota:?}");
        let stolen = measured(6, |a, b, visit| if (a, b) == (1, 2) && visit % 2 == 0 { 2.0 } else { 1.0 });
        assert!(stolen.siblings.is_empty() && stolen.open == [(1, 2)], "{stolen:?}");
        let chain = measured(6, |a, b, _| if b == a + 1 && a < 2 { 1.9 } else { 1.0 });
        assert!(chain.cannot_tell.as_ref().is_some_and(|why| why.contains("0, 1, 2")), "{chain:?}");
    }
}
