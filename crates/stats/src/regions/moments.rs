//! Does somebody else use the memory now and then? Latencies in the order of time.

use std::collections::BTreeMap;

use crate::order::{mad, median, quantile};

/// One look: when it began, s from the first one, at which region, and the latency of its loads,
/// ns: where they hop as well as stay near, the mean of both kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    pub at_s: f64,
    pub region: usize,
    pub load_ns: f64,
}

/// Half a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// When its first look began, s.
    pub at_s: f64,
    /// How many times as long loads took as in the quietest half seconds.
    pub slower: f64,
    pub is_slow: bool,
}

/// What the moments tell of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Half seconds that were seen, in the order of time.
    pub blocks: Vec<Block>,
    /// Share of the time of looks in which loads took longer, 0..1.
    pub share: f64,
    /// How many times longer; 1 where there is no such time.
    pub slower: f64,
}

/// A neighbour is named from so much of the time on, and where loads take so many times longer.
pub const SLOW_SHARE_LIMIT: f64 = 0.2;
pub const SLOW_LIMIT: f64 = 1.2;
/// Half seconds below which nothing is said: of eleven a neighbour that works for 40 % of the time
/// by turns left less than a tenth slow in 16 of 100 maps.
pub const LEAST_BLOCKS: usize = 16;

impl Neighbour {
    /// Somebody is there long enough and takes enough to be named.
    pub fn is_named(&self) -> bool {
        self.share >= SLOW_SHARE_LIMIT && self.slower >= SLOW_LIMIT
    }

    /// Nobody is seen.
    pub fn is_quiet(&self) -> bool {
        self.share < SLOW_SHARE_LIMIT / 2.0
    }
}

/// Length of a block, s.
pub const BLOCK_S: f64 = 0.5;
/// Looks that a block needs.
const LEAST_LOOKS: usize = 4;
/// The level of quiet blocks: so many may be quieter by chance.
const FLOOR: f64 = 0.15;
/// Standard errors of a median from which on it is slow.
const CERTAIN: f64 = 3.0;
/// Share of the limit from which on it is.
const NEARLY: f64 = 0.6;
/// A look is judged with so many around it in half a block: turns of a neighbour may be shorter
/// than one.
const AROUND: usize = 5;
const LEAST_AROUND: usize = 3;
/// The level of a region: of so many looks this quantile, which a neighbour leaves alone that is
/// there for less than the rest of the time.
const QUIET: f64 = 0.25;
const LEAST_OF_REGION: usize = 6;
/// A look stands for the time to the next one, but for no more than so many usual ones.
const MOST_GAPS: f64 = 3.0;

/// A look as a logarithm above its region's own level.
struct Look {
    at_s: f64,
    level: f64,
}

/// Reads moments of visits one after the other; `None` where there are too few.
pub fn neighbour(visits: &[Vec<Moment>]) -> Option<Neighbour> {
    let visits: Vec<Vec<Look>> = visits.iter().map(|moments| above_regions(moments)).collect();
    let mut levels: Vec<f64> = Vec::new();
    let mut looks: Vec<(f64, usize)> = Vec::new();
    let mut noise: Vec<f64> = Vec::new();
    let of = |look: &Look| (look.at_s / BLOCK_S) as i64;
    for own in visits.iter().flat_map(|looks| looks.chunk_by(|one, other| of(one) == of(other))) {
        let logs: Vec<f64> = own.iter().map(|look| look.level).collect();
        let Some(level) = median(&logs).filter(|_| logs.len() >= LEAST_LOOKS) else { continue };
        noise.extend(mad(&logs).map(|mad| 1.4826 * mad));
        levels.push(level);
        looks.push((own[0].at_s, own.len()));
    }
    if levels.len() < LEAST_BLOCKS {
        return None;
    }
    let (floor, sigma) = (quantile(&levels, FLOOR)?, median(&noise)?);
    // A median's standard error is 1.25 times a mean's.
    let is_slow = |level: f64, looks: usize| {
        let error = 1.25 * sigma / (looks as f64).sqrt();
        level - floor > (CERTAIN * error).max(NEARLY * SLOW_LIMIT.ln())
    };
    let block = |(level, (at_s, looks)): (&f64, &(f64, usize))| Block {
        at_s: *at_s,
        slower: (level - floor).exp(),
        is_slow: is_slow(*level, *looks),
    };
    let blocks: Vec<Block> = levels.iter().zip(&looks).map(block).collect();
    // Whether each look is slow, its level, and the time for which it stands.
    let mut judged: Vec<(bool, f64, f64)> = Vec::new();
    for looks in &visits {
        for (at, seconds) in seconds(looks).into_iter().enumerate() {
            let around = around(looks, at);
            let Some(level) = median(&around).filter(|_| around.len() >= LEAST_AROUND) else { continue };
            judged.push((is_slow(level, around.len()), looks[at].level, seconds));
        }
    }
    let side = |slow: bool| {
        let own = judged.iter().filter(|(is_slow, ..)| *is_slow == slow);
        median(&own.map(|(_, level, _)| *level).collect::<Vec<f64>>())
    };
    let slower = side(true).zip(side(false)).map_or(1.0, |(slow, quiet)| (slow - quiet).exp());
    let time = |slow: bool| {
        judged.iter().filter(|(is_slow, ..)| *is_slow || !slow).map(|(.., seconds)| seconds).sum::<f64>()
    };
    Some(Neighbour { share: time(true) / time(false), slower, blocks })
}

/// Regions may differ, and a few looks in a row see few of them.
fn above_regions(moments: &[Moment]) -> Vec<Look> {
    let mut regions: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for moment in moments {
        regions.entry(moment.region).or_default().push(moment.load_ns.ln());
    }
    let is_known = regions.values().all(|logs| logs.len() >= LEAST_OF_REGION);
    let level = |logs: &Vec<f64>| quantile(logs, QUIET).filter(|_| is_known).unwrap_or(0.0);
    let levels: BTreeMap<usize, f64> = regions.iter().map(|(region, logs)| (*region, level(logs))).collect();
    let look = |moment: &Moment| Look {
        at_s: moment.at_s,
        level: moment.load_ns.ln() - levels.get(&moment.region).unwrap_or(&0.0),
    };
    moments.iter().map(look).collect()
}

/// Levels of the looks next to one and of itself.
fn around(looks: &[Look], at: usize) -> Vec<f64> {
    let next = &looks[at.saturating_sub(AROUND / 2)..(at + AROUND / 2 + 1).min(looks.len())];
    let near = next.iter().filter(|look| (look.at_s - looks[at].at_s).abs() <= BLOCK_S / 2.0);
    near.map(|look| look.level).collect()
}

/// The time for which each look stands, s.
fn seconds(looks: &[Look]) -> Vec<f64> {
    let gaps: Vec<f64> = looks.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
    let usual = median(&gaps).unwrap_or(BLOCK_S);
    gaps.iter().map(|gap| gap.min(MOST_GAPS * usual)).chain([usual]).take(looks.len()).collect()
}
