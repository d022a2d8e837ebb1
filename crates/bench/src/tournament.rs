//! Which pairs of CPUs play, and which of them may play at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::placement::{Distance, Placements};
use model::CpuSet;

/// Two CPUs, either one first.
pub type Pair = (u32, u32);

/// Every pair.
pub fn every(cpus: &CpuSet) -> Vec<Pair> {
    let cpus: Vec<u32> = cpus.iter().collect();
    (0..cpus.len())
        .flat_map(|low| cpus[low + 1..].iter().map(move |high| (low, *high)))
        .map(|(low, high)| (cpus[low], high))
        .collect()
}

/// Pairs that are searched for a subset: all those of 1400 CPUs.
const LOOKS: usize = 1 << 20;

/// Up to `each` pairs of every distance that the host has, spread over its CPUs; the same ones
/// each time.
pub fn sample(placements: &Placements, each: usize) -> Vec<Pair> {
    let cpus: Vec<u32> = placements.cpus().iter().collect();
    // With too many pairs, the first CPU is taken evenly over the host, the second is any.
    let step = (cpus.len() * cpus.len() / 2).div_ceil(LOOKS).max(1);
    let mut classes: BTreeMap<Distance, Vec<Pair>> = BTreeMap::new();
    for low in cpus.iter().step_by(step) {
        for (high, distance) in placements.beyond(*low) {
            classes.entry(distance).or_default().push((*low, high));
        }
    }
    let mut chosen = Vec::new();
    for mut pairs in classes.into_values() {
        // A fixed seed: every run of every pass measures the same pairs.
        fastrand::Rng::with_seed(1).shuffle(&mut pairs);
        // CPUs that no pair of this distance has yet come first.
        let mut used = BTreeSet::new();
        let (fresh, again): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(|(low, high)| {
            let fresh = !used.contains(low) && !used.contains(high);
            if fresh {
                used.extend([*low, *high]);
            }
            fresh
        });
        chosen.extend(fresh.into_iter().chain(again).take(each));
    }
    chosen.sort_unstable();
    chosen
}

/// The pairs in rounds of disjoint ones, as a tournament has them: n - 1 rounds for every pair of n
/// CPUs (n for an odd number), hardly more than needed for a sample.
pub fn rounds(pairs: &[Pair]) -> Vec<Vec<Pair>> {
    let cpus: CpuSet = pairs.iter().flat_map(|(low, high)| [*low, *high]).collect();
    let seat: BTreeMap<u32, usize> = cpus.iter().zip(0..).collect();
    // The circle method: one stays, the others turn; an odd number has an empty chair to stay.
    let turning = if cpus.len().is_multiple_of(2) { cpus.len().max(2) - 1 } else { cpus.len() };
    let meet = |(low, high): &Pair| {
        let (low, high) = (seat[low], seat[high]);
        if high == turning { 2 * low % turning } else { (low + high) % turning }
    };
    let mut in_turn = pairs.to_vec();
    in_turn.sort_by_key(meet);
    let mut rounds: Vec<(BTreeSet<u32>, Vec<Pair>)> = Vec::new();
    // Rounds before this one are full.
    let mut open = 0;
    for (low, high) in in_turn {
        while rounds.get(open).is_some_and(|(busy, _)| busy.len() + 1 >= cpus.len()) {
            open += 1;
        }
        let fits = |(busy, _): &(BTreeSet<u32>, Vec<Pair>)| !busy.contains(&low) && !busy.contains(&high);
        let free = rounds[open..].iter().position(fits).map(|round| open + round);
        let round = free.unwrap_or_else(|| {
            rounds.push(Default::default());
            rounds.len() - 1
        });
        rounds[round].0.extend([low, high]);
        rounds[round].1.push((low, high));
    }
    rounds.into_iter().map(|(_, pairs)| pairs).collect()
}

/// Pairs as a case's input, and back.
pub fn to_text(pairs: &[Pair]) -> String {
    pairs.iter().map(|(low, high)| format!("{low}:{high}")).collect::<Vec<_>>().join(",")
}

pub fn from_text(text: &str) -> Vec<Pair> {
    let pair = |text: &str| {
        let (low, high) = text.split_once(':')?;
        Some((low.parse().ok()?, high.parse().ok()?))
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Cache, CacheKind, Core, Machine, Package};

    fn first(count: u32) -> CpuSet {
        (0..count).collect()
    }

    fn assert_tournament(pairs: &[Pair]) -> usize {
        let rounds = rounds(pairs);
        for round in &rounds {
            let players: BTreeSet<u32> = round.iter().flat_map(|(low, high)| [*low, *high]).collect();
            assert_eq!(players.len(), round.len() * 2, "somebody plays twice at once");
        }
        let mut played: Vec<Pair> = rounds.iter().flatten().copied().collect();
        played.sort_unstable();
        let mut wanted = pairs.to_vec();
        wanted.sort_unstable();
        assert_eq!(played, wanted);
        rounds.len()
    }

    #[test]
    fn a_tournament_is_complete_disjoint_and_short() {
        for count in 2..=65 {
            let pairs = every(&first(count));
            assert_eq!(pairs.len() as u32, count * (count - 1) / 2);
            assert_eq!(assert_tournament(&pairs) as u32, if count % 2 == 0 { count - 1 } else { count });
        }
        // CPU numbers with holes.
        let cpus: CpuSet = [3, 8, 9, 200].into_iter().collect();
        assert_eq!(assert_tournament(&every(&cpus)), 3);
        assert!(every(&first(1)).is_empty() && rounds(&[]).is_empty());
    }

    /// 2 packages, LLCs of 8 cores, 2 threads a core side by side.
    fn machine(cpus: u32) -> Machine {
        let mut machine = Machine::default();
        machine.cpus.online = first(cpus);
        machine.cpus.allowed = first(cpus);
        let groups = |size: u32| {
            (0..cpus / size).map(move |group| (group * size..(group + 1) * size).collect::<CpuSet>())
        };
        machine.cpus.cores = Some(groups(2).map(|cpus| Core { cpus, ..Core::default() }).collect());
        machine.cpus.packages =
            Some(groups(cpus / 2).zip(0..).map(|(cpus, id)| Package { id, cpus }).collect());
        let cache = |level, cpus| Cache::new(level, CacheKind::Unified, cpus);
        machine.caches =
            groups(2).map(|cpus| cache(2, cpus)).chain(groups(16).map(|cpus| cache(3, cpus))).collect();
        machine
    }

    #[test]
    fn a_sample_has_every_distance_and_no_pair_twice() {
        for (cpus, each) in [(512, 24), (64, 8), (4096, 24)] {
            let placements = Placements::of(&machine(cpus));
            let pairs = sample(&placements, each);
            assert_eq!(pairs, sample(&placements, each), "the same each time");
            assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len());
            let mut classes: BTreeMap<Distance, Vec<&Pair>> = BTreeMap::new();
            for pair in &pairs {
                classes.entry(placements.distance(pair.0, pair.1)).or_default().push(pair);
            }
            let expected =
                [Distance::SmtSibling, Distance::SameLlc, Distance::OtherLlc, Distance::OtherPackage];
            assert!(classes.keys().eq(&expected), "{classes:?}");
            for (class, pairs) in &classes {
                assert_eq!(pairs.len(), each, "{class:?}");
                // Spread: both halves of the host are seen.
                let low = pairs.iter().filter(|(low, _)| *low < cpus / 2).count();
                assert!(*class == Distance::OtherPackage || (low > 0 && low < each), "{class:?} {pairs:?}");
            }
            assert_tournament(&pairs);
        }
    }

    #[test]
    fn a_distance_with_few_pairs_gives_them_all() {
        let placements = Placements::of(&machine(32));
        let pairs = sample(&placements, 24);
        let siblings =
            pairs.iter().filter(|(low, high)| placements.distance(*low, *high) == Distance::SmtSibling);
        assert_eq!(siblings.count(), 16);
    }

    #[test]
    fn pairs_as_text_and_back() {
        let pairs = [(0, 1), (3, 65000)];
        assert_eq!(from_text(&to_text(&pairs)), pairs);
        assert!(from_text("").is_empty() && from_text("a:b,4").is_empty());
    }
}
