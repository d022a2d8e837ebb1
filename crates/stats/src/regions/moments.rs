//! Does somebody else use the memory now and then? Latencies in the order of time.

use crate::order::{mad, median, quantile};

/// One look: when it began, s from the first one, and the latency of its loads, ns: where they hop
/// as well as stay near, the mean of both kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    pub at_s: f64,
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
    /// Share of them in which loads took longer, 0..1.
    pub share: f64,
    /// How many times longer; 1 where there is no such half second.
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
/// Standard errors of a block's median from which on it is slow.
const CERTAIN: f64 = 3.0;
/// Share of the limit from which on it is.
const NEARLY: f64 = 0.6;

/// Reads moments of visits one after the other; `None` where there are too few.
pub fn neighbour(visits: &[Vec<Moment>]) -> Option<Neighbour> {
    let mut levels: Vec<f64> = Vec::new();
    let mut looks: Vec<(f64, usize)> = Vec::new();
    let mut noise: Vec<f64> = Vec::new();
    let of = |moment: &Moment| (moment.at_s / BLOCK_S) as i64;
    for own in visits.iter().flat_map(|moments| moments.chunk_by(|one, other| of(one) == of(other))) {
        let logs: Vec<f64> = own.iter().map(|moment| moment.load_ns.ln()).collect();
        let Some(level) = median(&logs).filter(|_| logs.len() >= LEAST_LOOKS) else { continue };
        noise.extend(mad(&logs).map(|mad| 1.4826 * mad));
        levels.push(level);
        looks.push((own[0].at_s, own.len()));
    }
    if levels.len() < LEAST_BLOCKS {
        return None;
    }
    let (floor, sigma) = (quantile(&levels, FLOOR)?, median(&noise)?);
    let block = |(level, (at_s, looks)): (&f64, &(f64, usize))| {
        // A median's standard error is 1.25 times a mean's.
        let error = 1.25 * sigma / (*looks as f64).sqrt();
        let is_slow = level - floor > (CERTAIN * error).max(NEARLY * SLOW_LIMIT.ln());
        Block { at_s: *at_s, slower: (level - floor).exp(), is_slow }
    };
    let blocks: Vec<Block> = levels.iter().zip(&looks).map(block).collect();
    let side = |slow: bool| {
        let own = levels.iter().zip(&blocks).filter(|(_, block)| block.is_slow == slow);
        median(&own.map(|(level, _)| *level).collect::<Vec<f64>>())
    };
    let slower = side(true).zip(side(false)).map_or(1.0, |(slow, quiet)| (slow - quiet).exp());
    let slow = blocks.iter().filter(|block| block.is_slow).count();
    Some(Neighbour { share: slow as f64 / blocks.len() as f64, slower, blocks })
}
