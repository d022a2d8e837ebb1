//! Are two speeds of memory found, and only where there are two? On maps of hosts that never
//! were.

use fastrand::Rng;

use super::{Rate, over, sums};
use stats::memory_map::{Answer, SHARES, evaluate_map, find_speeds};
use stats::noise::{exponential, normal};

/// What scatters the readings of a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    pub chunks: usize,
    /// Counted rounds.
    pub rounds: usize,
    /// Relative noise of a reading; what belongs to a chunk for good, without being a second speed;
    /// share of readings that others slow down, by a third and more.
    pub noise: f64,
    pub own: f64,
    pub outliers: f64,
    pub weather: Weather,
}

/// What a round has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    Steady,
    /// Each round is 2 % slower than the one before.
    Drifting,
    /// Half of the rounds run at 0.7 of the speed: a clock, a neighbour.
    Hopping,
    /// Now and then other work slows a stretch of readings, whichever chunks these are.
    Bursts,
}

pub const WEATHERS: [Weather; 4] = [Weather::Steady, Weather::Drifting, Weather::Hopping, Weather::Bursts];

impl Memory {
    /// As usual for a host: 2 % noise, one reading in twenty slow.
    pub const USUAL: Memory =
        Memory { chunks: 64, rounds: 9, noise: 0.02, own: 0.0, outliers: 0.05, weather: Weather::Steady };

    /// A host without a second speed, of any kind: quiet to noisy, of 32 to 128 chunks, in 6 or
    /// 9 rounds.
    pub fn smooth(rng: &mut Rng) -> Memory {
        let pick = |rng: &mut Rng, from: &[f64]| from[rng.usize(..from.len())];
        Memory {
            chunks: [32, 48, 64, 128][rng.usize(..4)],
            rounds: [6, 9][rng.usize(..2)],
            noise: pick(rng, &[0.005, 0.02, 0.05, 0.1]),
            own: pick(rng, &[0.0, 0.002, 0.01, 0.05]),
            outliers: pick(rng, &[0.0, 0.05, 0.15]),
            weather: WEATHERS[rng.usize(..4)],
        }
    }

    /// Its readings, a row a chunk; the chunks `slow` are slower by `ratio`.
    pub fn readings(&self, ratio: f64, slow: std::ops::Range<usize>, rng: &mut Rng) -> Vec<Vec<f64>> {
        let level = |chunk: usize, rng: &mut Rng| {
            let slower = if slow.contains(&chunk) { ratio } else { 1.0 };
            30.0 / slower * (self.own * normal(rng)).exp()
        };
        let levels: Vec<f64> = (0..self.chunks).map(|chunk| level(chunk, rng)).collect();
        let mut rows: Vec<Vec<f64>> = vec![Vec::new(); self.chunks];
        for round in 0..self.rounds {
            let common = match self.weather {
                Weather::Drifting => 0.98f64.powi(round as i32),
                Weather::Hopping if rng.bool() => 0.7,
                _ => 1.0,
            };
            let mut order: Vec<usize> = (0..self.chunks).collect();
            rng.shuffle(&mut order);
            let mut burst = 0;
            for chunk in order {
                if self.weather == Weather::Bursts && burst == 0 && rng.f64() < 0.02 {
                    burst = rng.usize(2..=self.chunks / 8);
                }
                let hindered = if burst > 0 { 0.6 } else { 1.0 };
                burst = burst.saturating_sub(1);
                let outlier =
                    if rng.f64() < self.outliers { 1.0 / (1.33 + 0.3 * exponential(rng)) } else { 1.0 };
                let noise = (self.noise * normal(rng)).exp();
                rows[chunk].push(levels[chunk] * common * hindered * outlier * noise);
            }
        }
        rows
    }
}

/// What reading many maps gave.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// Several speeds were called; of these, where two were planted: ratio within 5 %, share within
    /// 5 points.
    pub speeds: Rate,
    pub ratio: Rate,
    pub share: Rate,
}

sums!(Maps: speeds, ratio, share);

impl Maps {
    fn count(&mut self, rows: &[Vec<f64>], ratio: f64, share: f64) {
        let found = find_speeds(rows);
        self.speeds.count(found.is_some());
        if let Some(speeds) = found {
            self.ratio.count((speeds.ratio / ratio).ln().abs() < 0.05);
            self.share.count((speeds.slow_share() - share).abs() < 0.05);
        }
    }
}

/// The ratio that is asked of maps here.
const ASKED: f64 = 1.1;

/// A place for the slow chunks, together.
fn place(chunks: usize, share: f64, rng: &mut Rng) -> std::ops::Range<usize> {
    let slow = (share * chunks as f64).round() as usize;
    let from = rng.usize(..=chunks - slow);
    from..from + slow
}

/// Maps of hosts of this kind with a slow part, `ratio` 1 for none.
pub fn maps(memory: Memory, ratio: f64, share: f64, trials: usize, seed: u64) -> Maps {
    over(trials, seed, |_, rng, seen: &mut Maps| {
        let slow = place(memory.chunks, share, rng);
        let planted = slow.len() as f64 / memory.chunks as f64;
        let rows = memory.readings(ratio, slow, rng);
        seen.count(&rows, ratio, planted);
    })
}

/// Maps of hosts without a second speed, of every kind.
pub fn smooth_maps(trials: usize, seed: u64) -> Maps {
    over(trials, seed, |_, rng, seen: &mut Maps| {
        let memory = Memory::smooth(rng);
        seen.count(&memory.readings(1.0, 0..0, rng), 1.0, 0.0);
    })
}

/// How often a second speed at the limit that a map without one stated is found in the next map of
/// the same host; hosts of every kind, those of them that stated a limit, and their steps.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub found: Rate,
    /// The stated steps in a tenth of the memory; of all hosts, those called uniform.
    pub steps: Vec<f64>,
    pub uniform: Rate,
}

/// Of each of this many smooth hosts a map, and one more with the step that the first would have
/// seen.
pub fn limits(trials: usize, seed: u64) -> Limits {
    let mut rng = Rng::with_seed(seed);
    let mut seen = Limits::default();
    for trial in 0..trials {
        let memory = Memory::smooth(&mut rng);
        let first = evaluate_map(&memory.readings(1.0, 0..0, &mut rng), ASKED, trial as u64);
        seen.uniform.count(first.answer == Answer::Uniform);
        for limit in &first.limits {
            let Some(ratio) = limit.ratio else { continue };
            let slow = (limit.share * memory.chunks as f64).ceil() as usize;
            let from = rng.usize(..=memory.chunks - slow);
            let rows = memory.readings(ratio, from..from + slow, &mut rng);
            seen.found.count(find_speeds(&rows).is_some());
            if limit.share == SHARES[0] {
                seen.steps.push(ratio);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_FALSE_MOST, MAP_FOUND_LEAST, MAP_LIMIT_LEAST};
    use super::*;

    #[test]
    fn memory_of_one_speed_has_one() {
        let seen = smooth_maps(1000, 1).speeds;
        assert!(seen.of == 1000 && seen.share() <= MAP_FALSE_MOST, "{seen}");
    }

    #[test]
    fn second_speeds_are_found_whatever_the_weather() {
        for (chunks, rounds) in [(32, 6), (64, 9), (128, 6)] {
            for weather in WEATHERS {
                for (ratio, share) in [(1.33, 0.1), (1.33, 0.5), (3.0, 0.25)] {
                    let memory = Memory { chunks, rounds, weather, ..Memory::USUAL };
                    let seen = maps(memory, ratio, share, 100, 2);
                    // Bursts that hit a third of the readings of a chunk leave too little of six
                    // rounds.
                    let (bursts, enough) = (weather == Weather::Bursts, rounds >= 9);
                    if bursts && !enough {
                        continue;
                    }
                    let least = if bursts { 0.85 } else { MAP_FOUND_LEAST };
                    let all = [seen.speeds, seen.ratio, seen.share];
                    assert!(
                        all.iter().all(|rate| rate.share() >= least),
                        "{memory:?} {ratio} {share}: {all:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn limits_are_honest() {
        let seen = limits(30, 3);
        assert!(seen.found.of >= 20 && seen.found.share() >= MAP_LIMIT_LEAST, "{seen:?}");
        assert!(seen.uniform.hits > 2, "{seen:?}");
        // Not out of caution: limits are as close as the noise allows.
        let quiet = Memory { noise: 0.01, outliers: 0.0, ..Memory::USUAL };
        let mut rng = Rng::with_seed(4);
        let found = evaluate_map(&quiet.readings(1.0, 0..0, &mut rng), ASKED, 1);
        assert!(found.answer == Answer::Uniform && found.limits[0].ratio.is_some_and(|ratio| ratio <= 1.08));
    }
}
