//! Groups of CPUs by what passes between every two of them: which levels of nearness there are, or
//! that it cannot be reported.
//!
//! Average linkage (UPGMA; Sokal & Michener 1958) on the logarithms of the pairs' medians gives a
//! tree whose heights are ratios. A cut through it counts as a level where the gap between two
//! heights is wide in itself, wide beside the noise between visits, and wide beside what the tree
//! leaves unexplained (places on a mesh, slow CPUs).

use std::collections::BTreeMap;

use super::order::{median, quantile};
use super::pairs::{MIN_VISITS, Pair, Pairs, WITHIN_ONE_SIGMA};

/// Levels whose values are less apart than this many times are unknown apart: distances on one
/// mesh differ as much.
pub const MIN_RATIO: f64 = 1.3;
/// A gap must be this many standard errors of a pair's median.
const ERRORS: f64 = 5.0;
/// And this many times what the tree leaves unexplained, more for few CPUs (see
/// [`unexplained_times`]).
const UNEXPLAINED: f64 = 5.0;
/// One group is claimed where levels this many times apart would have shown ...
pub const WOULD_SHOW: f64 = 1.35;
/// ... and the middle nine tenths of all pairs lie within this ratio.
const ALIKE: f64 = 1.6;
/// Changes between visits count where each of the two visits has levels this many times apart.
const FLOATING_RATIO: f64 = 1.5;
/// CPUs that must have changed company between them.
const MIN_CHANGED: usize = 3;
/// A value this many times below its pair's median, and this many standard deviations of one value,
/// is a step to a nearer place: whatever disturbs a transfer only makes it longer.
const MIN_STEP: f64 = 1.25;
const STEP_ERRORS: f64 = 4.0;
/// Share of such values that chance and stolen medians give.
const RESTLESS: f64 = 0.005;
/// Pairs that must have been measured of all that there are: a tree needs nearly all.
const MIN_MEASURED: f64 = 0.9;
/// More CPUs than this are not grouped: their matrix alone takes 16 MB.
const MAX_CPUS: usize = 2048;

/// CPUs that belong together at one level, smallest CPU first.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    pub groups: Vec<Vec<u32>>,
    /// Median value of pairs inside the groups, of those that no nearer level holds already.
    pub within: f64,
    /// Median value of the pairs just beyond: between groups that the next level joins.
    pub beyond: f64,
}

/// What the distances say.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// All pairs alike: levels [`WOULD_SHOW`] times apart would have shown.
    One,
    /// Nearest level (the smallest groups) first; each level's groups are unions of the one before.
    Levels(Vec<Level>),
    /// Why not.
    CannotTell(String),
    /// Two visits, each with clear groups, contradict each other: the CPUs do not stay where they
    /// are.
    Floating([Vec<Vec<u32>>; 2]),
}

/// The answer, with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    pub cpus: Vec<u32>,
    /// Pairs measured, of all that there are.
    pub measured: usize,
    pub all: usize,
    /// Relative scatter of a visit's value; `None` of too few visits.
    pub noise: Option<f64>,
    pub answer: Answer,
}

/// Groups the CPUs of these pairs.
pub fn clusters(pairs: &Pairs) -> Clusters {
    let cpus = pairs.cpus();
    let all = cpus.len() * cpus.len().saturating_sub(1) / 2;
    let noise = pairs.noise();
    let answer = answer(pairs, &cpus, all);
    Clusters { cpus, measured: pairs.len(), all, noise, answer }
}

fn answer(pairs: &Pairs, cpus: &[u32], all: usize) -> Answer {
    let not = |why: String| Answer::CannotTell(why);
    match cpus.len() {
        0 | 1 => return not("no pair of CPUs was measured".into()),
        2 => return not("2 CPUs are one pair, and grouping needs several".into()),
        n if n > MAX_CPUS => return not(format!("{n} CPUs are too many to group")),
        _ => {}
    }
    if (pairs.len() as f64) < MIN_MEASURED * all as f64 {
        return not(format!("{} of {all} pairs were measured, and groups need nearly all", pairs.len()));
    }
    let (Some(noise), Some(error)) = (pairs.noise(), pairs.standard_error()) else {
        return not(format!("a pair has {} passes, and {MIN_VISITS} are needed", pairs.least_visits()));
    };
    if let Some(two) = floating(pairs, cpus) {
        return Answer::Floating(two);
    }
    if let Some(why) = restless(pairs, noise) {
        return not(why);
    }
    let Some(tree) = Tree::of(&pairs.medians(), cpus) else { return not("pairs are missing".into()) };
    let cuts = tree.cuts(MIN_RATIO.ln().max(ERRORS * error));
    let percent = |noise: f64| format!("{:.1} %", 100.0 * noise);
    match cuts {
        Cuts::Clear(cuts) if !cuts.is_empty() => match cuts.iter().find_map(|cut| tree.unsteady(*cut, pairs))
        {
            Some(visit) => not(format!(
                "in pass {visit} the pairs near in most passes were no nearer than the others (noise {})",
                percent(noise)
            )),
            None => Answer::Levels(tree.levels(&cuts)),
        },
        Cuts::Unclear(why) => not(why),
        Cuts::Clear(_) => {
            let spread = tree.spread();
            if ERRORS * error > WOULD_SHOW.ln() {
                not(format!("{} CPUs are too noisy to show levels (noise {})", cpus.len(), percent(noise)))
            } else if spread > ALIKE.ln() {
                not(format!(
                    "pairs differ by a factor of {:.1} without a gap between near and far ones (noise {})",
                    spread.exp(),
                    percent(noise)
                ))
            } else {
                Answer::One
            }
        }
    }
}

/// Two visits with clear groups that contradict each other.
fn floating(pairs: &Pairs, cpus: &[u32]) -> Option<[Vec<Vec<u32>>; 2]> {
    let mut seen: Vec<Vec<Vec<usize>>> = Vec::new();
    for visit in pairs.visits() {
        let values = pairs.of_visit(visit);
        let whole = values.len() as f64 >= MIN_MEASURED * (cpus.len() * (cpus.len() - 1) / 2) as f64;
        let Some(tree) = Tree::of(&values, cpus).filter(|_| whole) else { continue };
        let Cuts::Clear(cuts) = tree.cuts(FLOATING_RATIO.ln()) else { continue };
        for cut in cuts {
            let groups = tree.groups(cut);
            if let Some(other) = seen.iter().find(|other| crossing(other, &groups, cpus.len())) {
                return Some([tree.named(other), tree.named(&groups)]);
            }
            seen.push(groups);
        }
    }
    None
}

/// Whether at least three of `count` CPUs have changed company: each had a neighbour that it lost,
/// and got one that it had not. Stolen time makes pairs far, so it takes neighbours away; it does
/// not give new ones.
fn crossing(one: &[Vec<usize>], other: &[Vec<usize>], count: usize) -> bool {
    let (one_of, other_of) = (place(one, count), place(other, count));
    let changed = |cpu: &usize| {
        let (before, after) = (&one[one_of[*cpu]], &other[other_of[*cpu]]);
        before.iter().any(|near| other_of[*near] != other_of[*cpu])
            && after.iter().any(|near| one_of[*near] != one_of[*cpu])
    };
    (0..count).filter(changed).take(MIN_CHANGED).count() == MIN_CHANGED
}

/// The group of each of `count` CPUs.
fn place(groups: &[Vec<usize>], count: usize) -> Vec<usize> {
    let mut of = vec![0; count];
    groups.iter().enumerate().for_each(|(at, group)| group.iter().for_each(|cpu| of[*cpu] = at));
    of
}

/// Why the distances do not stand still: pairs that were near in some visits and far in most.
fn restless(pairs: &Pairs, noise: f64) -> Option<String> {
    let step = MIN_STEP.ln().max(STEP_ERRORS * noise);
    let (mut nearer, mut values) = (0, 0);
    for (_, visits) in pairs.iter() {
        let middle = median(&visits)?;
        nearer += visits.iter().filter(|value| **value < middle - step).count();
        values += visits.len();
    }
    let usual = (RESTLESS * values as f64).max(1.0);
    (nearer as f64 > usual).then(|| {
        format!(
            "{nearer} of {values} values were nearer than in most passes, by a factor of {:.2} or more: \
             distances are not stable (noise {:.1} %)",
            step.exp(),
            100.0 * noise
        )
    })
}

/// How many times the unexplained a gap must be: more where few pairs say how much that is.
fn unexplained_times(free: usize) -> f64 {
    UNEXPLAINED * (1.0 + 4.0 / free.max(1) as f64)
}

/// Numbers of merges (lowest first) above which the tree is cut.
enum Cuts {
    Clear(Vec<usize>),
    /// There is a gap, and what it separates may be something else than groups.
    Unclear(String),
}

/// A tree of CPUs by average linkage.
struct Tree<'a> {
    cpus: &'a [u32],
    /// Distances by index, `n × n`; NaN where not measured.
    distances: Vec<f64>,
    /// Lowest first: what is joined (any member of each side), and at which height.
    merges: Vec<(usize, usize, f64)>,
}

impl<'a> Tree<'a> {
    fn of(values: &BTreeMap<Pair, f64>, cpus: &'a [u32]) -> Option<Tree<'a>> {
        let n = cpus.len();
        let index: BTreeMap<u32, usize> = cpus.iter().zip(0..).map(|(cpu, at)| (*cpu, at)).collect();
        let mut distances = vec![f64::NAN; n * n];
        for ((one, other), value) in values {
            let (one, other) = (*index.get(one)?, *index.get(other)?);
            (distances[one * n + other], distances[other * n + one]) = (*value, *value);
        }
        let mut tree = Tree { cpus, distances, merges: Vec::new() };
        tree.merges = tree.joined()?;
        Some(tree)
    }

    /// Nearest-neighbour chains (Murtagh 1983): two that are each other's nearest are joined, which
    /// gives the same tree as joining the nearest of all alternately, in quadratic time.
    fn joined(&self) -> Option<Vec<(usize, usize, f64)>> {
        let n = self.cpus.len();
        // Sums and counts of measured pairs between clusters; a cluster is known by one of its
        // members.
        let mut sum: Vec<f64> = self.distances.iter().map(|d| if d.is_nan() { 0.0 } else { *d }).collect();
        let mut count: Vec<f64> = self.distances.iter().map(|d| f64::from(!d.is_nan())).collect();
        let mut alive = vec![true; n];
        let (mut chain, mut merges): (Vec<usize>, Vec<(usize, usize, f64)>) = Default::default();
        while merges.len() + 1 < n {
            if chain.is_empty() {
                chain.push(alive.iter().position(|alive| *alive)?);
            }
            let last = *chain.last()?;
            let before = chain.len().checked_sub(2).map(|at| chain[at]);
            let height = |other: usize| sum[last * n + other] / count[last * n + other];
            let mut nearest: Option<(usize, f64)> = None;
            for other in (0..n).filter(|other| alive[*other] && *other != last) {
                let height = height(other);
                // Of equals the one before, so that chains end.
                let nearer = nearest.is_none_or(|(_, least)| height < least);
                let equal = nearest.is_some_and(|(_, least)| height == least) && Some(other) == before;
                if height.is_finite() && (nearer || equal) {
                    nearest = Some((other, height));
                }
            }
            let (nearest, height) = nearest?;
            if Some(nearest) != before {
                chain.push(nearest);
                continue;
            }
            chain.truncate(chain.len() - 2);
            merges.push((last, nearest, height));
            alive[nearest] = false;
            for other in 0..n {
                let (from, to) = (nearest * n + other, last * n + other);
                sum[to] += sum[from];
                count[to] += count[from];
                (sum[other * n + last], count[other * n + last]) = (sum[to], count[to]);
            }
        }
        merges.sort_by(|one, other| one.2.total_cmp(&other.2));
        Some(merges)
    }

    /// Groups after this many merges, as indices, smallest member first.
    fn groups(&self, merges: usize) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.cpus.len()).collect();
        fn root(group: &mut [usize], mut at: usize) -> usize {
            while group[at] != at {
                group[at] = group[group[at]];
                at = group[at];
            }
            at
        }
        for (one, other, _) in &self.merges[..merges] {
            let (one, other) = (root(&mut group, *one), root(&mut group, *other));
            group[one.max(other)] = one.min(other);
        }
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cpu in 0..self.cpus.len() {
            groups.entry(root(&mut group, cpu)).or_default().push(cpu);
        }
        groups.into_values().collect()
    }

    fn named(&self, groups: &[Vec<usize>]) -> Vec<Vec<u32>> {
        groups.iter().map(|group| group.iter().map(|at| self.cpus[*at]).collect()).collect()
    }

    /// Measured distances between two groups, or inside one.
    fn between<'b>(&'b self, one: &'b [usize], other: &'b [usize]) -> impl Iterator<Item = f64> + 'b {
        let n = self.cpus.len();
        let all = one.iter().flat_map(move |a| other.iter().filter(move |b| *b != a).map(move |b| (*a, *b)));
        all.map(move |(a, b)| self.distances[a * n + b]).filter(|d| !d.is_nan())
    }

    /// Where it may be cut: wide gaps that really separate groups.
    fn cuts(&self, least: f64) -> Cuts {
        let heights: Vec<f64> = self.merges.iter().map(|(.., height)| *height).collect();
        let gaps = heights.windows(2).enumerate().map(|(at, two)| (at + 1, two[1] - two[0]));
        let wide: Vec<(usize, f64)> = gaps.filter(|(_, gap)| *gap >= least).collect();
        if wide.is_empty() {
            return Cuts::Clear(Vec::new());
        }
        let (unexplained, free) = self.unexplained();
        let least = unexplained_times(free) * unexplained;
        let mut cuts = Vec::new();
        for (cut, gap) in wide {
            if gap < least {
                return Cuts::Unclear(format!(
                    "near and far pairs differ by a factor of {:.2}, but {:.1} % stays unexplained in any \
                     grouping of {} CPUs",
                    gap.exp(),
                    100.0 * unexplained,
                    self.cpus.len()
                ));
            }
            if let Some(why) = self.doubtful(&self.groups(cut), gap) {
                return Cuts::Unclear(why);
            }
            cuts.push(cut);
        }
        Cuts::Clear(cuts)
    }

    /// Why groups may be none: CPUs nearer to another group than to their own, or far from all
    /// others.
    fn doubtful(&self, groups: &[Vec<usize>], gap: f64) -> Option<String> {
        let mean = |one: &[usize], other: &[usize]| {
            let (mut sum, mut count) = (0.0, 0.0);
            self.between(one, other).for_each(|d| (sum, count) = (sum + d, count + 1.0));
            sum / count
        };
        let larger: Vec<&Vec<usize>> = groups.iter().filter(|group| group.len() > 1).collect();
        for own in &larger {
            for at in own.iter() {
                let cpu = std::slice::from_ref(at);
                let near = mean(cpu, own);
                let far = groups.iter().filter(|group| group != own).map(|other| mean(cpu, other));
                let nearest = far.filter(|mean| !mean.is_nan()).fold(f64::INFINITY, f64::min);
                if near > nearest - gap / 2.0 {
                    return Some(format!("CPU {} is hardly nearer to its own group", self.cpus[*at]));
                }
            }
        }
        let alone: Vec<usize> =
            groups.iter().filter(|group| group.len() == 1).map(|group| group[0]).collect();
        let [only] = larger[..] else { return None };
        // A slow CPU is far from all; two of them are farther from each other than from the rest.
        let apart = mean(&alone, &alone) - mean(&alone, only);
        let slow = alone.len() == 1 || apart > gap / 2.0;
        (!alone.is_empty() && slow).then(|| {
            let cpus: Vec<String> = alone.iter().take(8).map(|at| self.cpus[*at].to_string()).collect();
            format!("CPU {} is far from all others: in another place, or slow", cpus.join(", "))
        })
    }

    /// What the tree does not explain: how far pairs are from the height at which they are joined,
    /// as a standard deviation that few odd pairs do not widen; and the number of pairs beyond
    /// those that fix the heights.
    fn unexplained(&self) -> (f64, usize) {
        let (mut left, mut pairs) = (Vec::new(), 0);
        let mut groups: Vec<Vec<usize>> = (0..self.cpus.len()).map(|cpu| vec![cpu]).collect();
        let mut of: Vec<usize> = (0..self.cpus.len()).collect();
        for (one, other, height) in &self.merges {
            let (one, other) = (of[*one], of[*other]);
            let joined = std::mem::take(&mut groups[other]);
            for distance in self.between(&groups[one], &joined) {
                left.push((distance - height).abs());
                pairs += 1;
            }
            joined.iter().for_each(|cpu| of[*cpu] = one);
            groups[one].extend(joined);
        }
        let free = (pairs as usize).saturating_sub(self.merges.len());
        let scale = (f64::from(pairs) / free.max(1) as f64).sqrt();
        (scale * quantile(&left, WITHIN_ONE_SIGMA).unwrap_or(0.0), free)
    }

    /// A visit in which the pairs inside the groups of this cut were no nearer than those between
    /// them: the groups are those of other visits. Low quartiles, for stolen time makes some pairs
    /// far in any visit.
    fn unsteady(&self, cut: usize, pairs: &Pairs) -> Option<u32> {
        let of = place(&self.groups(cut), self.cpus.len());
        let index: BTreeMap<u32, usize> =
            self.cpus.iter().zip(of).map(|(cpu, group)| (*cpu, group)).collect();
        pairs.visits().into_iter().find(|visit| {
            let (mut near, mut far) = (Vec::new(), Vec::new());
            for ((one, other), value) in pairs.of_visit(*visit) {
                if index.get(&one) == index.get(&other) { near.push(value) } else { far.push(value) }
            }
            let low = |values: &[f64]| quantile(values, 0.25);
            low(&near).zip(low(&far)).is_some_and(|(near, far)| near >= far)
        })
    }

    /// Between the 5th and the 95th of a hundred pairs.
    fn spread(&self) -> f64 {
        let all: Vec<f64> = self.distances.iter().copied().filter(|d| !d.is_nan()).collect();
        quantile(&all, 0.95).zip(quantile(&all, 0.05)).map_or(0.0, |(high, low)| high - low)
    }

    fn levels(&self, cuts: &[usize]) -> Vec<Level> {
        let whole = vec![(0..self.cpus.len()).collect::<Vec<usize>>()];
        let alone = self.groups(0);
        let partitions: Vec<Vec<Vec<usize>>> = cuts.iter().map(|cut| self.groups(*cut)).collect();
        let level = |at: usize| {
            let finer = at.checked_sub(1).map_or(&alone, |finer| &partitions[finer]);
            let coarser = partitions.get(at + 1).unwrap_or(&whole);
            Level {
                groups: self.named(&partitions[at]),
                within: self.joined_value(finer, &partitions[at]),
                beyond: self.joined_value(&partitions[at], coarser),
            }
        };
        (0..cuts.len()).map(level).collect()
    }

    /// The median of pairs that the coarser partition holds together and the finer one does not.
    fn joined_value(&self, fine: &[Vec<usize>], coarse: &[Vec<usize>]) -> f64 {
        let n = self.cpus.len();
        let (fine, coarse) = (place(fine, n), place(coarse, n));
        let pairs = (0..n).flat_map(|one| (one + 1..n).map(move |other| (one, other)));
        let own = pairs.filter(|(a, b)| fine[*a] != fine[*b] && coarse[*a] == coarse[*b]);
        let values: Vec<f64> = own.map(|(a, b)| self.distances[a * n + b]).filter(|d| !d.is_nan()).collect();
        median(&values).map_or(f64::NAN, f64::exp)
    }
}

#[cfg(test)]
mod tests;
