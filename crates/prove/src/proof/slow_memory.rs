//! Are runs predicted by their shares of slow memory, and called explained only where they follow?
//! On hosts that never were: a map is read off each, and its runs keep samples of their pages.

use fastrand::Rng;

use super::Rate;
use super::chunks::Memory;
use model::PagePlaces;
use stats::memory_map::{Answer, evaluate_map};
use stats::noise::normal;
use stats::places::{BlockSpeeds, Follows, MIN_RUNS, PagePlacement, join};

/// A host and its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Study {
    /// How many times as slow the slow quarter is.
    pub ratio: f64,
    /// Which part of a run's time memory decides, 0..1.
    pub bound: f64,
    pub runs: usize,
    /// Relative noise of a run.
    pub noise: f64,
}

/// What studying many hosts gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Studied {
    /// Runs predicted by all others within 3 %.
    pub within: Rate,
    /// Studies whose runs are said to follow their memory, in whole or in part.
    pub follow: Rate,
}

/// The slow quarter of a map's chunks: a region, as a set of channels makes it.
const QUARTER: f64 = 0.25;
/// Pages that a run keeps.
const PAGES: usize = 4096;

impl Study {
    /// The map of such a host, and which blocks are slow.
    fn speeds(&self, rng: &mut Rng) -> (BlockSpeeds, std::ops::Range<usize>) {
        let memory = Memory::USUAL;
        let many = (QUARTER * memory.chunks as f64) as usize;
        let from = rng.usize(0..=memory.chunks - many);
        let slow = from..from + many;
        let found = evaluate_map(&memory.readings(self.ratio, slow.clone(), rng), 1.1, 1);
        let places: Vec<PagePlaces> =
            (0..memory.chunks as u32).map(|chunk| PagePlaces::count([chunk])).collect();
        let Answer::Speeds(speeds) = &found.answer else { return (BlockSpeeds::default(), slow) };
        let fast = speeds.speeds.last().map_or(1.0, |speed| speed.median);
        let time = |chunk: usize| {
            let own = speeds.membership.get(chunk).copied().flatten();
            own.map_or(1.0, |speed| fast / speeds.speeds[speed].median)
        };
        (BlockSpeeds::of(places.iter().enumerate().map(|(chunk, own)| (time(chunk), own))), slow)
    }

    /// Where a run with this share of slow memory lies, by a sample of its pages; one page in ten
    /// lies on memory that was not mapped.
    fn lay(
        &self,
        speeds: &BlockSpeeds,
        slow: &std::ops::Range<usize>,
        share: f64,
        rng: &mut Rng,
    ) -> Option<PagePlacement> {
        let chunks = Memory::USUAL.chunks;
        let fast: Vec<usize> = (0..chunks).filter(|chunk| !slow.contains(chunk)).collect();
        let page = |rng: &mut Rng| -> u32 {
            let chunk = match rng.f64() {
                beyond if beyond < 0.1 => 10 * chunks,
                _ if rng.f64() < share => rng.usize(slow.clone()),
                _ => fast[rng.usize(..fast.len())],
            };
            chunk as u32
        };
        speeds.lay(&[PagePlaces::count((0..PAGES).map(|_| page(rng)))])
    }

    /// Shares of slow memory: as a boot hands them out, or any.
    fn share(run: usize, after_boot: bool, rng: &mut Rng) -> f64 {
        match (after_boot, run) {
            (true, 0 | 1) => 0.9 + 0.1 * rng.f64(),
            (true, 2 | 3) => 0.15 * rng.f64(),
            _ => rng.f64(),
        }
    }
}

/// Machines whose runs follow their memory.
pub fn following(study: Study, machines: usize, seed: u64) -> Studied {
    studied(study, machines, seed, &|study, share, _| 1.0 / (1.0 + study.bound * share * (study.ratio - 1.0)))
}

/// Machines whose runs swing as far, for another reason: now and then other work takes a part of
/// their bandwidth.
pub fn swinging(study: Study, machines: usize, seed: u64) -> Studied {
    let swing = |study: &Study, _: f64, rng: &mut Rng| {
        let hit = if rng.bool() { rng.f64() } else { 0.0 };
        1.0 / (1.0 + study.bound * hit * (study.ratio - 1.0))
    };
    studied(study, machines, seed, &swing)
}

fn studied(study: Study, machines: usize, seed: u64, rate: &dyn Fn(&Study, f64, &mut Rng) -> f64) -> Studied {
    let mut rng = Rng::with_seed(seed);
    let mut seen = Studied::default();
    for machine in 0..machines {
        let (speeds, slow) = study.speeds(&mut rng);
        let mut runs: Vec<(f64, PagePlacement)> = Vec::new();
        for run in 0..study.runs.max(MIN_RUNS) {
            let share = Study::share(run, machine % 2 == 0, &mut rng);
            let Some(lay) = study.lay(&speeds, &slow, share, &mut rng) else { continue };
            runs.push((100.0 * rate(&study, share, &mut rng) * (study.noise * normal(&mut rng)).exp(), lay));
        }
        // A map that found nothing predicts nothing: a miss.
        let Some(found) = join(&runs, 0.0, seed) else {
            seen.follow.count(false);
            continue;
        };
        seen.follow.count(matches!(found.follows, Follows::Memory | Follows::Partly));
        for (measured, predicted) in found.measured.iter().zip(&found.predicted) {
            seen.within.count((measured / predicted - 1.0).abs() < 0.03);
        }
    }
    seen
}

/// What is promised: a quarter that is a third slower and more, runs of 1 % of noise.
pub const PROMISED: [Study; 4] = [
    Study { ratio: 1.33, bound: 1.0, runs: 6, noise: 0.005 },
    Study { ratio: 1.5, bound: 0.7, runs: 6, noise: 0.005 },
    Study { ratio: 1.5, bound: 1.0, runs: 8, noise: 0.01 },
    Study { ratio: 3.0, bound: 1.0, runs: 10, noise: 0.01 },
];

#[cfg(test)]
mod tests {
    use super::super::{FOLLOWS_FALSE_MOST, FOLLOWS_FOUND_LEAST, PREDICTED_LEAST};
    use super::*;

    #[test]
    fn runs_are_predicted_within_three_percent() {
        for study in PROMISED {
            let seen = following(study, 60, 1);
            assert!(
                seen.within.of >= 300 && seen.within.share() >= PREDICTED_LEAST,
                "{study:?}: {}",
                seen.within
            );
            assert!(seen.follow.share() >= FOLLOWS_FOUND_LEAST, "{study:?}: {}", seen.follow);
        }
    }

    #[test]
    fn what_swings_otherwise_is_not_said_to_follow() {
        let all = PROMISED.map(|study| swinging(study, 150, 2).follow);
        let all = all.into_iter().reduce(Rate::and).expect("studies");
        assert!(all.of == 600 && all.share() <= FOLLOWS_FALSE_MOST, "{all}");
    }
}
