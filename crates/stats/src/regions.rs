//! Why is memory slow here? What looks at regions of memory, in rounds and in the order of time,
//! distinguish address translation, distance, transfer and neighbours.
//!
//! Regions differ for good, neighbours come and go. So each round's common part is taken out of
//! the regions before they are compared. Which of them are slow is learnt from one half of the
//! rounds and tried in the other, both ways round: what was chosen by chance does not come again.
//! A cause is named from its limit on; what comes again but is smaller is reported without a name.

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

/// Readings of one region, one a round; what is missing is NaN, or ends a list early.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Latency of a load, ns: on another page each time; on pages that lie as far apart and come
    /// back; on few pages.
    pub hopping: Vec<f64>,
    pub scattered: Vec<f64>,
    pub near: Vec<f64>,
    /// Bandwidth of all CPUs together, any unit.
    pub bandwidth: Vec<f64>,
}

/// Why some regions are slower than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Translations cost more: smaller pages, the guest's or the host's.
    Translation,
    /// Every load takes longer: another node, the guest's or the host's.
    Distance,
    /// Loads take as long, and less comes through at once: fewer channels.
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
            Cause::Translation => less(&region.hopping, &region.scattered),
            Cause::Distance => region.near.iter().map(|ns| ns.ln()).collect(),
            Cause::Transfer => region.bandwidth.iter().map(|rate| -rate.ln()).collect(),
        }
    }

    /// A part of the limit.
    fn part(self, share: f64) -> f64 {
        self.nothing() + share * (self.limit() - self.nothing())
    }

    fn in_units(self, size: f64) -> f64 {
        match self {
            Cause::Translation => size,
            Cause::Distance | Cause::Transfer => size.exp(),
        }
    }
}

fn less(longer: &[f64], shorter: &[f64]) -> Vec<f64> {
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
    /// Of the rounds' own differences with sets that were learnt in others, at 95 %.
    pub interval: Interval,
    /// The same regions differ in something else that may be its cause, too little to be named.
    pub is_doubtful: bool,
}

impl Difference {
    /// Whether it is large enough to be named. What is right at the limit is measured a little
    /// below it half of the time.
    pub fn is_named(&self) -> bool {
        const ALMOST_LIMIT: f64 = 0.85;
        const SURELY: f64 = 0.25;
        let is_large = self.size >= self.cause.part(ALMOST_LIMIT);
        is_large && self.interval.low > self.cause.part(SURELY) && !self.is_doubtful
    }

    /// Whether it is large enough to matter to anyone, named or not.
    pub fn is_notable(&self) -> bool {
        const NOTABLE: f64 = 0.4;
        self.size >= self.cause.part(NOTABLE)
    }

    pub fn slow_share(&self) -> f64 {
        self.slow.iter().filter(|slow| **slow).count() as f64 / self.slow.len() as f64
    }
}

/// Result of comparing regions.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// What differs between regions. What translation or distance takes from the bandwidth of the
    /// same regions is no difference of its own.
    pub differences: Vec<Difference>,
    /// What a translation adds to a load over all regions, ns: against pages as far apart, which is
    /// translation and nothing else; and against few pages, which is its price with what rows of
    /// the memory save at most.
    pub translation_ns: Option<Interval>,
    pub price_ns: Option<Interval>,
}

impl Regions {
    pub fn named(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.is_named())
    }
}

const CONFIDENCE: f64 = 0.95;

/// Reads regions; `None` where there are too few, or too few rounds.
pub fn regions(regions: &[Region]) -> Option<Regions> {
    let rounds = regions.iter().map(|region| region.near.len()).min()?;
    if regions.len() < MIN_REGIONS || rounds < MIN_ROUNDS {
        return None;
    }
    let rows = |cause: Cause| regions.iter().map(|region| cause.quantity(region)).collect::<Vec<Vec<f64>>>();
    let mut differences: Vec<Difference> = [Cause::Translation, Cause::Distance]
        .into_iter()
        .filter_map(|cause| differ(cause, rows(cause)))
        .collect();
    // Walks and distance take bandwidth as well: what goes with them is theirs. What goes with a
    // smaller part of them may be: small pages also end what is fetched ahead.
    let is_explained = |found: &Difference| {
        [Cause::Translation, Cause::Distance].into_iter().any(|cause| {
            let rows = rows(cause);
            let levels = medians(&rows, |_| true);
            let more = apart(&levels, &found.slow).map_or(0.0, |size| cause.in_units(size));
            more > cause.part(0.5)
        })
    };
    let transfer = differ(Cause::Transfer, rows(Cause::Transfer)).filter(|found| !is_explained(found));
    let transfer = transfer.map(|found| {
        let own = differences.iter().filter(|other| is_same(&other.slow, &found.slow));
        let is_doubtful = own.into_iter().any(|other| other.size > other.cause.part(0.3));
        Difference { is_doubtful, ..found }
    });
    differences.extend(transfer);
    let over_all = |of: &dyn Fn(&Region) -> Vec<f64>| {
        let rows: Vec<Vec<f64>> = regions.iter().map(of).collect();
        let of_round = |round: usize| {
            median(&rows.iter().filter_map(|row| row.get(round).copied()).collect::<Vec<f64>>())
        };
        median_interval(&(0..rounds).filter_map(of_round).collect::<Vec<f64>>(), CONFIDENCE)
    };
    Some(Regions {
        differences,
        translation_ns: over_all(&|region| less(&region.hopping, &region.scattered)),
        price_ns: over_all(&|region| less(&region.hopping, &region.near)),
    })
}

/// Whether two sets of regions are the same: most of what either holds both hold.
fn is_same(one: &[bool], other: &[bool]) -> bool {
    let both = one.iter().zip(other).filter(|(one, other)| **one && **other).count();
    let either = one.iter().zip(other).filter(|(one, other)| **one || **other).count();
    2 * both >= either && both > 0
}

/// Two sets that differ in a quantity. All rounds decide how many regions are slow, every other
/// pair of rounds which ones, and these are tried in the other pairs: their differences make the
/// interval (Student's), and it must lie above nothing.
fn differ(cause: Cause, rows: Vec<Vec<f64>>) -> Option<Difference> {
    let rows = polished(rows);
    let rounds = rows.iter().map(Vec::len).min()?;
    let levels = medians(&rows, |_| true);
    let many = slow_count(&levels)?;
    // Looks come in pairs, of which the second finds more of a page table in caches.
    let half = |round: usize| round / 2 % 2;
    let [even, odd] = [0, 1].map(|own| slowest(&medians(&rows, |round| half(round) == own), many));
    if !is_same(&even, &odd) {
        return None;
    }
    let slow = slowest(&levels, many);
    let in_round = |round: usize, set: &[bool]| {
        let values: Vec<f64> = rows.iter().map(|row| row.get(round).copied().unwrap_or(f64::NAN)).collect();
        apart(&values, set)
    };
    let tried: Vec<f64> = (0..rounds)
        .filter_map(|round| in_round(round, if half(round) == 0 { &odd } else { &even }))
        .collect();
    let (centre, n) = (mean(&tried)?, tried.len() as f64);
    let margin = t_quantile(CONFIDENCE, n - 1.0)? * (variance(&tried)? / n).sqrt();
    // What regions differ by is larger than what sets of half the rounds find of it.
    let of_looks = |first: usize| {
        median(&(first..rounds).step_by(2).filter_map(|round| in_round(round, &slow)).collect::<Vec<f64>>())
    };
    let size = (of_looks(0)? + of_looks(1)?) / 2.0;
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

/// How far the regions of a set lie above the others.
fn apart(values: &[f64], set: &[bool]) -> Option<f64> {
    let side = |slow: bool| {
        let own = values.iter().zip(set).filter(|(_, own)| **own == slow);
        median(&own.map(|(value, _)| *value).collect::<Vec<f64>>())
    };
    Some(side(true)? - side(false)?)
}

/// How many values lie above the border that leaves least variance within both sides (Otsu 1979);
/// `None` where there are too few, or they are all equal.
fn slow_count(values: &[f64]) -> Option<usize> {
    let ordered = sorted(values);
    // A single region may be an outlier of its own.
    let least = if ordered.len() < 8 { 1 } else { 2 };
    let all: f64 = ordered.iter().sum();
    let mut best: Option<(f64, usize)> = None;
    let mut below = 0.0;
    for (at, value) in ordered.iter().enumerate().take(ordered.len().saturating_sub(least)) {
        below += value;
        let (low, high) = (at + 1, ordered.len() - at - 1);
        if low < least || *value == ordered[at + 1] {
            continue;
        }
        let between = (low * high) as f64 * ((all - below) / high as f64 - below / low as f64).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, high));
        }
    }
    best.map(|(_, high)| high)
}

/// The regions with this many of the largest values.
fn slowest(values: &[f64], many: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*other].total_cmp(&values[*one]));
    let mut slow = vec![false; values.len()];
    order.into_iter().filter(|at| values[*at].is_finite()).take(many).for_each(|at| slow[at] = true);
    slow
}

#[cfg(test)]
mod tests;
