//! Why is memory slow here? Readings of regions of memory, in rounds and in the order of time,
//! distinguish address translation, distance, transfer and neighbours.
//!
//! Regions differ permanently, neighbours come and go. So each round's common part is taken out of
//! the regions before they are compared. One half of the rounds decides which regions are slow, and
//! the other half tests that, both ways: a choice by chance does not repeat. A difference that
//! repeats is named by its cause from the cause's limit on, and reported without a name below it.

mod blocks;
mod moments;

pub use blocks::{Blocks, Far, Walked, far, small};
pub use moments::{BLOCK_S, Block, MIN_BLOCKS, Moment, Neighbour, SLOW_LIMIT, SLOW_SHARE_LIMIT, neighbour};

use super::memory_map::{medians, polished};
use super::order::{Interval, mean, median, median_interval, sorted, variance};
use super::tails::t_quantile;

/// Regions and rounds below which nothing is said.
pub const MIN_REGIONS: usize = 4;
pub const MIN_ROUNDS: usize = 6;

/// Readings of one region, one per round; a missing one is NaN, or ends the list early.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Latency of a load on another page each time, ns.
    pub hopping: Vec<f64>,
    /// Latency on pages as far apart that repeat, ns: their translations stay in the TLB.
    pub scattered: Vec<f64>,
    /// Latency on few pages, ns.
    pub near: Vec<f64>,
    /// Bandwidth of all CPUs together, any unit.
    pub bandwidth: Vec<f64>,
}

/// Why some regions are slower than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Translations cost more: smaller pages, in the guest or on the host.
    Translation,
    /// Every load takes longer: another node, of the guest or of the host.
    Distance,
    /// Latency is the same and bandwidth lower: fewer channels.
    Transfer,
}

impl Cause {
    pub const ALL: [Cause; 3] = [Cause::Translation, Cause::Distance, Cause::Transfer];

    /// A difference from which on the cause is named: ns of a translation, or a ratio.
    pub fn limit(self) -> f64 {
        match self {
            Cause::Translation => 10.0,
            Cause::Distance | Cause::Transfer => 1.2,
        }
    }

    /// No difference.
    pub fn nothing(self) -> f64 {
        match self {
            Cause::Translation => 0.0,
            Cause::Distance | Cause::Transfer => 1.0,
        }
    }

    /// What a region's rounds give for it: larger is slower.
    fn quantity(self, region: &Region) -> Vec<f64> {
        match self {
            Cause::Translation => differences(&region.hopping, &region.scattered),
            Cause::Distance => region.near.iter().map(|ns| ns.ln()).collect(),
            Cause::Transfer => region.bandwidth.iter().map(|rate| -rate.ln()).collect(),
        }
    }

    /// The size of a difference that is this share of the limit.
    fn part_of_limit(self, share: f64) -> f64 {
        self.nothing() + share * (self.limit() - self.nothing())
    }

    fn in_units(self, size: f64) -> f64 {
        match self {
            Cause::Translation => size,
            Cause::Distance | Cause::Transfer => size.exp(),
        }
    }
}

fn differences(longer: &[f64], shorter: &[f64]) -> Vec<f64> {
    longer.iter().zip(shorter).map(|(longer, shorter)| longer - shorter).collect()
}

/// Two sets of regions that differ in one quantity, round after round.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub cause: Cause,
    /// By region.
    pub slow: Vec<bool>,
    /// Slow against fast: ns of a translation, or a ratio above 1.
    pub size: f64,
    /// At 95 %, of the differences in each round between sets that other rounds chose.
    pub interval: Interval,
    /// The same regions also differ in something that may be its cause, but is too small to be
    /// named.
    pub is_doubtful: bool,
}

impl Difference {
    /// Whether it is large enough to be named. A difference right at the limit is measured a little
    /// below it half of the time, so 85 % suffice.
    pub fn is_named(&self) -> bool {
        const ALMOST_LIMIT: f64 = 0.85;
        /// The whole interval must lie above this part of the limit.
        const SURELY: f64 = 0.25;
        let is_large = self.size >= self.cause.part_of_limit(ALMOST_LIMIT);
        is_large && self.interval.low > self.cause.part_of_limit(SURELY) && !self.is_doubtful
    }

    /// Whether it is large enough to matter, named or not.
    pub fn is_notable(&self) -> bool {
        const NOTABLE: f64 = 0.4;
        self.size >= self.cause.part_of_limit(NOTABLE)
    }

    pub fn slow_share(&self) -> f64 {
        self.slow.iter().filter(|slow| **slow).count() as f64 / self.slow.len() as f64
    }
}

/// Result of comparing regions.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// A lower bandwidth that translation or distance explains in the same regions is not listed.
    pub differences: Vec<Difference>,
    /// What translation adds to a load over all regions, ns: compared with pages as far apart.
    pub translation_ns: Option<Interval>,
    /// What hopping over pages adds to a load, ns: compared with few pages, so that it also
    /// contains what open DRAM rows save there.
    pub price_ns: Option<Interval>,
}

impl Regions {
    pub fn named(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.is_named())
    }
}

const CONFIDENCE: f64 = 0.95;

/// Compares regions; `None` if there are too few, or too few rounds.
pub fn regions(regions: &[Region]) -> Option<Regions> {
    let rounds = regions.iter().map(|region| region.near.len()).min()?;
    if regions.len() < MIN_REGIONS || rounds < MIN_ROUNDS {
        return None;
    }
    let rows = |cause: Cause| regions.iter().map(|region| cause.quantity(region)).collect::<Vec<Vec<f64>>>();
    let mut differences: Vec<Difference> = [Cause::Translation, Cause::Distance]
        .into_iter()
        .filter_map(|cause| find_difference(cause, rows(cause)))
        .collect();
    // Translation and distance lower the bandwidth as well. If the same regions reach half the
    // limit of one of these, that explains it; from 0.3 of the limit on it may (small pages also
    // end prefetching), which makes the difference doubtful.
    const EXPLAINS: f64 = 0.5;
    const MAY_EXPLAIN: f64 = 0.3;
    let is_explained = |found: &Difference| {
        [Cause::Translation, Cause::Distance].into_iter().any(|cause| {
            let rows = rows(cause);
            let levels = medians(&rows, |_| true);
            let more = apart(&levels, &found.slow).map_or(0.0, |size| cause.in_units(size));
            more > cause.part_of_limit(EXPLAINS)
        })
    };
    let transfer =
        find_difference(Cause::Transfer, rows(Cause::Transfer)).filter(|found| !is_explained(found));
    let transfer = transfer.map(|found| {
        let mut of_same_regions = differences.iter().filter(|other| is_same(&other.slow, &found.slow));
        let is_doubtful = of_same_regions.any(|other| other.size > other.cause.part_of_limit(MAY_EXPLAIN));
        Difference { is_doubtful, ..found }
    });
    differences.extend(transfer);
    // The median over the regions in each round, and the interval of these.
    let over_all_regions = |quantity: &dyn Fn(&Region) -> Vec<f64>| {
        let rows: Vec<Vec<f64>> = regions.iter().map(quantity).collect();
        let median_of_round = |round: usize| {
            median(&rows.iter().filter_map(|row| row.get(round).copied()).collect::<Vec<f64>>())
        };
        median_interval(&(0..rounds).filter_map(median_of_round).collect::<Vec<f64>>(), CONFIDENCE)
    };
    Some(Regions {
        translation_ns: over_all_regions(&|region| self::differences(&region.hopping, &region.scattered)),
        price_ns: over_all_regions(&|region| self::differences(&region.hopping, &region.near)),
        differences,
    })
}

/// Whether two sets are nearly the same: at least half of the regions in either are in both.
fn is_same(one: &[bool], other: &[bool]) -> bool {
    let both = one.iter().zip(other).filter(|(one, other)| **one && **other).count();
    let either = one.iter().zip(other).filter(|(one, other)| **one || **other).count();
    2 * both >= either && both > 0
}

/// Two sets of regions that differ in a quantity. All rounds decide how many regions are slow; each
/// half of the rounds chooses which ones, and the other half measures how much these differ. The
/// interval of that (Student's) must lie above zero.
fn find_difference(cause: Cause, rows: Vec<Vec<f64>>) -> Option<Difference> {
    let rows = polished(rows);
    let rounds = rows.iter().map(Vec::len).min()?;
    let levels = medians(&rows, |_| true);
    let slow_regions = slow_count(&levels)?;
    // Rounds come in pairs, of which the second finds more of a page table in caches: a pair is in
    // one half.
    let half = |round: usize| round / 2 % 2;
    let [of_half_0, of_half_1] =
        [0, 1].map(|wanted| slowest(&medians(&rows, |round| half(round) == wanted), slow_regions));
    if !is_same(&of_half_0, &of_half_1) {
        return None;
    }
    let slow = slowest(&levels, slow_regions);
    let in_round = |round: usize, set: &[bool]| {
        let values: Vec<f64> = rows.iter().map(|row| row.get(round).copied().unwrap_or(f64::NAN)).collect();
        apart(&values, set)
    };
    let crosswise: Vec<f64> = (0..rounds)
        .filter_map(|round| in_round(round, if half(round) == 0 { &of_half_1 } else { &of_half_0 }))
        .collect();
    let (centre, n) = (mean(&crosswise)?, crosswise.len() as f64);
    let margin = t_quantile(CONFIDENCE, n - 1.0)? * (variance(&crosswise)? / n).sqrt();
    // Sets that half the rounds chose miss some regions and understate the size: it is that of the
    // sets that all rounds chose, of the first and of the second rounds of pairs alike.
    let size_in = |first: usize| {
        median(&(first..rounds).step_by(2).filter_map(|round| in_round(round, &slow)).collect::<Vec<f64>>())
    };
    let size = (size_in(0)? + size_in(1)?) / 2.0;
    let interval = Interval {
        low: cause.in_units((centre - margin).min(size)),
        high: cause.in_units((centre + margin).max(size)),
    };
    (centre > margin).then_some(Difference {
        cause,
        slow,
        size: cause.in_units(size),
        interval,
        is_doubtful: false,
    })
}

/// The median of the regions of a set less that of the others.
fn apart(values: &[f64], set: &[bool]) -> Option<f64> {
    let median_where = |wanted: bool| {
        let side = values.iter().zip(set).filter(|(_, is_in)| **is_in == wanted);
        median(&side.map(|(value, _)| *value).collect::<Vec<f64>>())
    };
    Some(median_where(true)? - median_where(false)?)
}

/// How many values lie above the border that leaves least variance within both sides (Otsu 1979);
/// `None` where there are too few, or they are all equal.
fn slow_count(values: &[f64]) -> Option<usize> {
    let ordered = sorted(values);
    // A single region may be an outlier; among few it still counts as a side.
    let min_per_side = if ordered.len() < 8 { 1 } else { 2 };
    let all: f64 = ordered.iter().sum();
    let mut best: Option<(f64, usize)> = None;
    let mut below = 0.0;
    for (at, value) in ordered.iter().enumerate().take(ordered.len().saturating_sub(min_per_side)) {
        below += value;
        let (low, high) = (at + 1, ordered.len() - at - 1);
        if low < min_per_side || *value == ordered[at + 1] {
            continue;
        }
        let between = (low * high) as f64 * ((all - below) / high as f64 - below / low as f64).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, high));
        }
    }
    best.map(|(_, high)| high)
}

/// The regions with the `count` largest values.
fn slowest(values: &[f64], count: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*other].total_cmp(&values[*one]));
    let mut slow = vec![false; values.len()];
    order.into_iter().filter(|at| values[*at].is_finite()).take(count).for_each(|at| slow[at] = true);
    slow
}

#[cfg(test)]
mod tests;
