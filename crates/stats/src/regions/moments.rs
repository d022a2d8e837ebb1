//! Does someone else use the memory now and then? Latencies in the order of time.

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

/// What the moments show about other guests.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Half seconds that were seen, in the order of time.
    pub blocks: Vec<Block>,
    /// Share of the time of looks in which loads took longer, 0..1.
    pub share: f64,
    /// How many times longer; 1 where there is no such time.
    pub slower: f64,
}

/// A neighbour is named from this much of the time on, and where loads take this many times longer.
pub const SLOW_SHARE_LIMIT: f64 = 0.2;
pub const SLOW_LIMIT: f64 = 1.2;
/// Half seconds below which nothing is said: of eleven a neighbour that works for 40 % of the time
/// by turns left less than a tenth slow in 16 of 100 maps.
pub const MIN_BLOCKS: usize = 16;

impl Neighbour {
    /// Someone is there long enough and takes enough to be named.
    pub fn is_named(&self) -> bool {
        self.share >= SLOW_SHARE_LIMIT && self.slower >= SLOW_LIMIT
    }

    /// No one is seen.
    pub fn is_quiet(&self) -> bool {
        self.share < SLOW_SHARE_LIMIT / 2.0
    }
}

/// Length of a block, s.
pub const BLOCK_S: f64 = 0.5;
/// Looks that a block needs.
const MIN_LOOKS: usize = 4;
/// The level of quiet blocks: this many may be quieter by chance.
const FLOOR: f64 = 0.15;
/// Standard errors of a median from which on it is slow.
const CERTAIN: f64 = 3.0;
/// Share of the limit from which on it is.
const ALMOST_LIMIT: f64 = 0.6;
/// A look is judged with this many around it in half a block: turns of a neighbour may be shorter
/// than one.
const AROUND: usize = 5;
const MIN_AROUND: usize = 3;
/// The level of a region: of this many looks this quantile, which a neighbour leaves alone that is
/// there for less than the rest of the time.
const QUIET: f64 = 0.25;
const MIN_OF_REGION: usize = 6;
/// A look stands for the time to the next one, but for at most this many usual ones.
const MAX_GAPS: f64 = 3.0;

/// A look: the logarithm of its loads, less what its region differs by from the others.
struct TimedLevel {
    at_s: f64,
    level: f64,
}

/// Reads moments of visits one after the other; `None` where there are too few.
pub fn neighbour(visits: &[Vec<Moment>]) -> Option<Neighbour> {
    let visits: Vec<Vec<TimedLevel>> = visits.iter().map(|moments| without_regions(moments)).collect();
    let mut levels: Vec<f64> = Vec::new();
    let mut looks: Vec<(f64, usize)> = Vec::new();
    let mut noise: Vec<f64> = Vec::new();
    let of = |look: &TimedLevel| (look.at_s / BLOCK_S) as i64;
    for own in visits.iter().flat_map(|looks| looks.chunk_by(|one, other| of(one) == of(other))) {
        let logs: Vec<f64> = own.iter().map(|look| look.level).collect();
        let Some(level) = median(&logs).filter(|_| logs.len() >= MIN_LOOKS) else { continue };
        noise.extend(mad(&logs).map(|mad| 1.4826 * mad));
        levels.push(level);
        looks.push((own[0].at_s, own.len()));
    }
    if levels.len() < MIN_BLOCKS {
        return None;
    }
    let (floor, sigma) = (quantile(&levels, FLOOR)?, median(&noise)?);
    // A median's standard error is 1.25 times a mean's.
    let is_slow = |level: f64, looks: usize| {
        let error = 1.25 * sigma / (looks as f64).sqrt();
        level - floor > (CERTAIN * error).max(ALMOST_LIMIT * SLOW_LIMIT.ln())
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
            let Some(level) = median(&around).filter(|_| around.len() >= MIN_AROUND) else { continue };
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

/// Looks of one visit, less what their regions differ by: a few looks in a row see few regions.
/// What all of them have in common stays, as a neighbour may be there for all of a visit.
fn without_regions(moments: &[Moment]) -> Vec<TimedLevel> {
    let mut regions: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for moment in moments {
        regions.entry(moment.region).or_default().push(moment.load_ns.ln());
    }
    let is_known = regions.values().all(|logs| logs.len() >= MIN_OF_REGION);
    let levels: BTreeMap<usize, f64> =
        regions.iter().filter_map(|(region, logs)| Some((*region, quantile(logs, QUIET)?))).collect();
    let usual = median(&levels.values().copied().collect::<Vec<f64>>()).unwrap_or(0.0);
    let look = |moment: &Moment| {
        let own = levels.get(&moment.region).filter(|_| is_known).map_or(0.0, |level| level - usual);
        TimedLevel { at_s: moment.at_s, level: moment.load_ns.ln() - own }
    };
    moments.iter().map(look).collect()
}

/// Levels of the looks next to one and of itself.
fn around(looks: &[TimedLevel], at: usize) -> Vec<f64> {
    let next = &looks[at.saturating_sub(AROUND / 2)..(at + AROUND / 2 + 1).min(looks.len())];
    let near = next.iter().filter(|look| (look.at_s - looks[at].at_s).abs() <= BLOCK_S / 2.0);
    near.map(|look| look.level).collect()
}

/// The time for which each look stands, s.
fn seconds(looks: &[TimedLevel]) -> Vec<f64> {
    let gaps: Vec<f64> = looks.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
    let usual = median(&gaps).unwrap_or(BLOCK_S);
    gaps.iter().map(|gap| gap.min(MAX_GAPS * usual)).chain([usual]).take(looks.len()).collect()
}
