//! Do the rates of runs follow where their memory lay? Runs keep a histogram of their physical
//! pages, a map of memory says how fast each physical block is, and both together predict each
//! run's rate.
//!
//! The model: a run passes through its memory piece by piece, so that times add up. A run whose
//! pages take `t` times as long as fast memory takes `a (1 + m (t - 1))` a unit of work, where `m`
//! is the part of its time that memory decides. `a` and `m` are fitted to all runs but the one that
//! is predicted.

use std::collections::BTreeMap;

use fastrand::Rng;
use model::PagePlaces;

use super::order::mean;
use super::ranks::shuffled;
use super::repeat::ALIKE;

/// Fewer runs cannot show that they follow anything: the best of their orders is one of 24 by
/// chance.
pub const MIN_RUNS: usize = 4;
/// Less of a run's pages on mapped blocks says too little of it.
pub const MIN_KNOWN: f64 = 0.5;
/// p below which runs go with their memory.
const FOLLOW_P: f64 = 0.05;
/// Share of the runs' variance that predictions must take away: all of it in substance, and some of
/// it.
const MAX_OF_IT: f64 = 0.7;
const PART_OF_IT: f64 = 0.3;
/// Memory cannot take more of a run's time than all of it; this much more is still the fit's error.
const MAX_BOUND: f64 = 1.3;
/// Where memory could move runs by less than this part of how far they lie apart, it is not memory.
const TOO_LITTLE: f64 = 1.0 / 3.0;

/// What a map says about physical blocks, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct BlockSpeeds {
    blocks: BTreeMap<u32, Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// Time of a byte over that in the fastest memory, 1 and more.
    time: f64,
    /// Share of it that is not the fastest memory, 0..1.
    slow: f64,
}

impl BlockSpeeds {
    /// From the chunks of a map: time of a byte over that in the fastest memory, and where its
    /// pages lie. A block of several chunks has their mean, by pages.
    pub fn of<'a>(chunks: impl IntoIterator<Item = (f64, &'a PagePlaces)>) -> BlockSpeeds {
        let mut sums: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
        for (time, places) in chunks {
            for (block, pages) in places.iter() {
                let (pages, slow) = (f64::from(pages), f64::from(u8::from(time > 1.0)));
                let sum = sums.entry(block).or_default();
                *sum = (sum.0 + pages, sum.1 + pages * time, sum.2 + pages * slow);
            }
        }
        let mean = |(pages, time, slow): (f64, f64, f64)| Block { time: time / pages, slow: slow / pages };
        BlockSpeeds { blocks: sums.into_iter().map(|(block, sum)| (block, mean(sum))).collect() }
    }

    /// Mapped blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A block that was not mapped has the speed of its nearest mapped neighbours, where both are
    /// alike.
    fn at(&self, block: u32) -> Option<Block> {
        let below = self.blocks.range(..=block).next_back();
        if let Some((own, found)) = below
            && *own == block
        {
            return Some(*found);
        }
        let (below, above) = (below?.1, self.blocks.range(block..).next()?.1);
        ((below.time / above.time - 1.0).abs() < 0.01 && below.slow == above.slow).then_some(*below)
    }

    /// Where a run lay, by its histograms; `None` where too few of its pages lie on mapped blocks.
    pub fn lay(&self, places: &[PagePlaces]) -> Option<PagePlacement> {
        let (mut all, mut known, mut time, mut slow) = (0.0, 0.0, 0.0, 0.0);
        for (block, pages) in places.iter().flat_map(PagePlaces::iter) {
            let pages = f64::from(pages);
            all += pages;
            if let Some(own) = self.at(block) {
                known += pages;
                time += pages * own.time;
                slow += pages * own.slow;
            }
        }
        let lay = PagePlacement { time: time / known, slow: slow / known, known: known / all };
        (known > 0.0 && lay.known >= MIN_KNOWN).then_some(lay)
    }
}

/// Where a run's pages lay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagePlacement {
    /// Mean time of a byte over that in the fastest memory, 1 and more.
    pub time: f64,
    /// Share of slow memory, 0..1.
    pub slow: f64,
    /// Share of its pages on blocks of which the map says something, 0..1.
    pub known: f64,
}

/// What became of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// The runs are alike: there is nothing to explain.
    Steady,
    /// Their shares of slow memory predict them.
    Memory,
    /// Their shares of slow memory predict a part of how far they lie apart.
    Partly,
    /// Where memory lay does not explain them.
    Not,
}

/// Runs and what was predicted of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    pub lay: Vec<PagePlacement>,
    /// Rates, in the order of the runs.
    pub measured: Vec<f64>,
    /// Of each run by all others.
    pub predicted: Vec<f64>,
    /// Part of a run's time that memory decides, by the fit to all runs; `None` where all lay
    /// alike.
    pub bound: Option<f64>,
    /// Pearson's correlation of the time that memory takes with the time of a unit of work, and the
    /// share of random orders that reach it; `None` where one of both does not vary.
    pub correlation: Option<[f64; 2]>,
    /// Half of the range over the mean: of the measured rates, of the predicted ones, and of what
    /// they would be were all time memory's.
    pub swing: f64,
    pub swing_predicted: f64,
    pub swing_possible: f64,
    /// The largest distance of a measured rate from its prediction, relative.
    pub left: f64,
    pub follows: Follows,
}

impl Joined {
    /// Whether memory could move the runs by far less than they lie apart.
    pub fn is_too_little(&self) -> bool {
        self.swing_possible < TOO_LITTLE * self.swing
    }
}

/// Joins runs (rate, and where it lay) in their order; `scatter` is how far one run's own pieces
/// lie apart, relative. `None` with fewer than [`MIN_RUNS`].
pub fn join(runs: &[(f64, PagePlacement)], scatter: f64, seed: u64) -> Option<Joined> {
    if runs.len() < MIN_RUNS || runs.iter().any(|(rate, _)| !(rate.is_finite() && *rate > 0.0)) {
        return None;
    }
    let measured: Vec<f64> = runs.iter().map(|(rate, _)| *rate).collect();
    let x: Vec<f64> = runs.iter().map(|(_, lay)| lay.time - 1.0).collect();
    let y: Vec<f64> = measured.iter().map(|rate| 1.0 / rate).collect();
    let others = |values: &[f64], but: usize| -> Vec<f64> {
        values.iter().enumerate().filter(|(at, _)| *at != but).map(|(_, value)| *value).collect()
    };
    let predicted: Vec<f64> = (0..runs.len())
        .map(|at| {
            let (a, b) = fitted(&others(&x, at), &others(&y, at));
            1.0 / (a + b * x[at])
        })
        .collect();
    let (a, b) = fitted(&x, &y);
    let correlation = correlated(&x, &y, seed);
    let possible: Vec<f64> = x.iter().map(|x| 1.0 / (1.0 + x)).collect();
    let left = |one: &[f64]| -> f64 { measured.iter().zip(one).map(|(m, p)| (m / p - 1.0).powi(2)).sum() };
    let without: Vec<f64> =
        (0..runs.len()).map(|at| mean(&others(&measured, at)).unwrap_or(f64::NAN)).collect();
    let explained = 1.0 - left(&predicted) / left(&without).max(f64::MIN_POSITIVE);
    let (swing, swing_possible) = (swing(&measured), self::swing(&possible));
    let range = measured.iter().copied().fold(0.0, f64::max)
        / measured.iter().copied().fold(f64::INFINITY, f64::min)
        - 1.0;
    let goes = correlation.is_some_and(|[r, p]| r > 0.0 && p < FOLLOW_P);
    let follows = match () {
        () if range < ALIKE.max(3.0 * scatter) => Follows::Steady,
        () if swing_possible < TOO_LITTLE * swing || !goes => Follows::Not,
        () if explained >= MAX_OF_IT && b <= MAX_BOUND * a => Follows::Memory,
        () if explained >= PART_OF_IT => Follows::Partly,
        () => Follows::Not,
    };
    let away =
        measured.iter().zip(&predicted).map(|(measured, predicted)| (measured / predicted - 1.0).abs());
    Some(Joined {
        lay: runs.iter().map(|(_, lay)| *lay).collect(),
        bound: correlation.map(|_| b / a),
        correlation,
        swing,
        swing_predicted: self::swing(&predicted),
        swing_possible,
        left: away.fold(0.0, f64::max),
        measured,
        predicted,
        follows,
    })
}

/// `y = a + b x` by least squares with b not below 0; where x does not vary `b = a`: all of the
/// time is memory's.
fn fitted(x: &[f64], y: &[f64]) -> (f64, f64) {
    let (Some(mean_x), Some(mean_y)) = (mean(x), mean(y)) else { return (f64::NAN, 0.0) };
    let square: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    if square < 1e-9 {
        let a = mean_y / (1.0 + mean_x);
        return (a, a);
    }
    let product: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let b = (product / square).max(0.0);
    (mean_y - b * mean_x, b)
}

/// Pearson's correlation, and the share of random orders in which it is as high.
fn correlated(x: &[f64], y: &[f64], seed: u64) -> Option<[f64; 2]> {
    const ORDERS: usize = 4999;
    let centred = |values: &[f64]| -> Vec<f64> {
        let mean = mean(values).unwrap_or(f64::NAN);
        values.iter().map(|value| value - mean).collect()
    };
    let (x, y) = (centred(x), centred(y));
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let scale = (product(&x, &x) * product(&y, &y)).sqrt();
    if !(product(&x, &x) > 1e-12 && scale > 0.0) {
        return None;
    }
    let r = product(&x, &y) / scale;
    let mut rng = Rng::with_seed(seed);
    let as_high = (0..ORDERS).filter(|_| {
        let order = shuffled(x.len(), &mut rng);
        let y: Vec<f64> = order.iter().map(|at| y[*at]).collect();
        product(&x, &y) / scale >= r - 1e-9
    });
    Some([r, (1 + as_high.count()) as f64 / (ORDERS + 1) as f64])
}

fn swing(values: &[f64]) -> f64 {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    (high - low) / 2.0 / mean(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks 0 to 15 of 64 are slow by this ratio.
    fn map(ratio: f64) -> BlockSpeeds {
        let chunks: Vec<PagePlaces> = (0..64).map(|block| PagePlaces::count([block; 4])).collect();
        BlockSpeeds::of(
            chunks.iter().enumerate().map(|(at, places)| (if at < 16 { ratio } else { 1.0 }, places)),
        )
    }

    /// A run of 100 pages, this many of them slow.
    fn run(slow: u32) -> Vec<PagePlaces> {
        vec![PagePlaces::count((0..100).map(|page| if page < slow { page % 16 } else { 16 + page % 48 }))]
    }

    fn runs(
        map: &BlockSpeeds,
        shares: &[u32],
        rate: impl Fn(usize, f64) -> f64,
    ) -> Vec<(f64, PagePlacement)> {
        let lay = |share: &u32| map.lay(&run(*share)).expect("all of it is mapped");
        let lays: Vec<PagePlacement> = shares.iter().map(lay).collect();
        lays.into_iter().enumerate().map(|(at, lay)| (rate(at, lay.time), lay)).collect()
    }

    #[test]
    fn rates_that_follow_are_predicted() {
        let map = map(1.5);
        let shares = [60, 58, 5, 4, 25];
        let off = [1.002, 0.998, 1.001, 0.999, 1.0];
        let found =
            join(&runs(&map, &shares, |at, time| 100.0 * off[at] / (1.0 + 0.8 * (time - 1.0))), 0.001, 1);
        let found = found.expect("five runs");
        assert_eq!(found.follows, Follows::Memory, "{found:?}");
        assert!(found.left < 0.01 && (found.bound.expect("it varies") - 0.8).abs() < 0.05, "{found:?}");
        let slow: Vec<f64> = found.lay.iter().map(|lay| (100.0 * lay.slow).round()).collect();
        assert_eq!(slow, [60.0, 58.0, 5.0, 4.0, 25.0]);
        assert!(found.correlation.is_some_and(|[r, p]| r > 0.99 && p < 0.05));
    }

    #[test]
    fn what_swings_without_its_memory_is_said_not_to_follow() {
        let map = map(1.5);
        // All lay alike, and swing by 8 %.
        let swinging = [92.0, 108.0, 95.0, 104.0, 100.0];
        let alike = join(&runs(&map, &[25, 25, 24, 25, 26], |at, _| swinging[at]), 0.0, 1).expect("runs");
        assert_eq!(alike.follows, Follows::Not);
        assert!(alike.swing > 0.07 && alike.swing_possible < 0.01, "{alike:?}");
        // They lay apart, and swing otherwise.
        let other = join(&runs(&map, &[5, 60, 8, 50, 30], |at, _| swinging[at]), 0.0, 1);
        assert_eq!(other.map(|found| found.follows), Some(Follows::Not));
        // A uniform map predicts nothing.
        let uniform = join(&runs(&self::map(1.0), &[60, 5, 50, 8, 30], |at, _| swinging[at]), 0.0, 1);
        assert_eq!(uniform.map(|found| (found.follows, found.correlation)), Some((Follows::Not, None)));
        let steady = join(&runs(&map, &[60, 5, 50, 8, 30], |_, _| 100.0), 0.0, 1).expect("runs");
        assert_eq!(steady.follows, Follows::Steady);
        assert_eq!(join(&runs(&map, &[60, 5, 50], |at, _| swinging[at]), 0.0, 1), None);
    }

    #[test]
    fn blocks_between_alike_neighbours_are_known() {
        let chunks: Vec<(f64, PagePlaces)> = [(1.5, 0), (1.5, 8), (1.0, 16), (1.0, 32)]
            .map(|(time, block)| (time, PagePlaces::count([block])))
            .to_vec();
        let map = BlockSpeeds::of(chunks.iter().map(|(time, places)| (*time, places)));
        assert_eq!((map.len(), map.is_empty()), (4, false));
        let lay = |blocks: &[u32]| map.lay(&[PagePlaces::count(blocks.iter().copied())]);
        assert_eq!(lay(&[3, 24]), Some(PagePlacement { time: 1.25, slow: 0.5, known: 1.0 }));
        // Between slow and fast, and beyond the last.
        assert_eq!(lay(&[12, 40, 32]), None);
        assert_eq!(lay(&[12, 32]).map(|lay| lay.known), Some(0.5));
        assert_eq!(map.lay(&[]), None);
    }
}
