//! Has memory one speed? What the bandwidth of every chunk of it, read again and again in a new
//! order, reports.
//!
//! A chunk is what lies together; a round visits every chunk once. What a round has in common (a
//! clock, a neighbour, a drift) is taken out, then each chunk is its median over the rounds, so
//! that single disturbed readings do not count. Modes of these medians that show in the odd rounds
//! as well as in the even ones are speeds of the memory. Where there are none, the noise that was
//! met says which second speed would have been seen: steps are planted into resampled chunks of
//! this very map, and the same rule is asked. Nothing is called uniform beyond that.

mod populations;

pub use populations::{Candidate, Known, Support, candidates};

use fastrand::Rng;

use super::modes::{Modality, Mode, ModeCriteria, modality_by};
use super::order::{mad, median};
use super::ranks::{shuffled, spearman};
use super::tails::normal_two_sided;

/// Below this number of chunks nothing is said: a share of 5 % would be one chunk.
pub const MIN_CHUNKS: usize = 32;
/// Below this number of counted rounds nothing is said: each half of them needs a median that
/// leaves one out.
pub const MIN_ROUNDS: usize = 6;

/// The rule on medians of chunks: what is closer than 5 % is no second set of channels, and a slow
/// part may be small.
pub const CHUNKS: ModeCriteria = ModeCriteria {
    min_values: MIN_CHUNKS,
    certain_from: MIN_CHUNKS,
    ratio: 1.05,
    share: 0.05,
    min_per_mode: 2,
    allow_three: true,
};
/// The same where only whether there are several matters: three speeds that are not two as well are
/// rare.
const CHUNKS_TWO_MODES: ModeCriteria = ModeCriteria { allow_three: false, ..CHUNKS };

/// Share of the chunks of each side that must lie on the same side in the odd and in the even
/// rounds.
const MIN_REPEAT_SHARE: f64 = 0.75;
/// Share of the single readings of slow chunks that must lie on the slow side. What disturbs a
/// reading makes it slower, so fast chunks are met slow now and then, but slow ones hardly ever
/// fast.
const MIN_SLOW_READINGS: f64 = 0.8;

/// Ratios of two speeds that are planted, the smallest first.
pub const STEPS: [f64; 12] = [1.06, 1.08, 1.1, 1.12, 1.15, 1.2, 1.25, 1.33, 1.5, 2.0, 3.0, 4.0];
/// Shares of the memory that they are planted in.
pub const SHARES: [f64; 2] = [0.1, 0.25];
/// How often a planted step must be found to count as seen.
pub const POWER: f64 = 0.95;
/// Maps that each step is planted into.
const PLANTED: usize = 60;
/// Larger maps are planted as maps of this many chunks, on which a step is found less easily.
const PLANTED_CHUNKS: usize = 128;

/// Result of a map of chunks. All bandwidths are relative: 1 is the median chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Each chunk's median over the rounds without what each round has in common; NaN of a chunk
    /// without values.
    pub medians: Vec<f64>,
    /// Counted rounds.
    pub rounds: usize,
    /// Robust relative standard deviation of the chunks' medians (1.4826 times the median absolute
    /// deviation).
    pub sigma: f64,
    /// Spearman's correlation between chunks in odd and in even rounds: 0 where the differences are
    /// noise.
    pub repeatability: Option<f64>,
    pub answer: Answer,
    /// For each of [`SHARES`] the smallest step of [`STEPS`] that would have been seen; empty
    /// where there are several speeds, or too little to say anything.
    pub seen: Vec<Detectable>,
}

/// What would have been seen: two speeds with this ratio, the slow one in this share of the memory,
/// in [`POWER`] of cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detectable {
    pub share: f64,
    /// `None`: none of those that were planted.
    pub ratio: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Speeds(Speeds),
    /// One speed, as far as the limit that was asked.
    Uniform,
    /// Why nothing can be said.
    Inconclusive(Doubt),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    FewChunks,
    FewRounds,
    /// A second speed of the asked ratio could hide in the noise.
    Noise,
}

/// Several speeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    /// The slowest first; medians relative to the median chunk, shares of the chunks.
    pub speeds: Vec<Mode>,
    /// The fastest over the slowest.
    pub ratio: f64,
    /// The speed of each chunk, by number; `None` of a chunk without values.
    pub membership: Vec<Option<usize>>,
}

impl Speeds {
    /// Share of the chunks that have not the fastest speed, 0..1.
    pub fn slow_share(&self) -> f64 {
        1.0 - self.speeds.last().map_or(0.0, |fastest| fastest.share)
    }

    /// `F` fast, `S` slow, `M` between (where there are three speeds), `.` unknown.
    pub fn letter(&self, chunk: usize) -> char {
        match self.membership.get(chunk).copied().flatten() {
            Some(0) => 'S',
            Some(speed) if speed + 1 == self.speeds.len() => 'F',
            Some(_) => 'M',
            None => '.',
        }
    }
}

/// The map of rows of bandwidth, one a chunk with a value per round (rows may have lost some at
/// their ends). `asked`: the ratio of two speeds that must be seen in [`SHARES`]`[0]` of the memory
/// for it to be called uniform.
pub fn map(rows: &[Vec<f64>], asked: f64, seed: u64) -> Map {
    let rows = centred(rows);
    let rounds = rows.iter().map(Vec::len).max().unwrap_or(0);
    let logs = medians(&rows, |_| true);
    let known = logs.iter().filter(|value| value.is_finite()).count();
    let speeds = if rounds < MIN_ROUNDS { None } else { speeds(&rows, &CHUNKS) };
    let (answer, seen) = match speeds {
        Some(speeds) => (Answer::Speeds(speeds), Vec::new()),
        None if known < MIN_CHUNKS => (Answer::Inconclusive(Doubt::FewChunks), Vec::new()),
        None if rounds < MIN_ROUNDS => (Answer::Inconclusive(Doubt::FewRounds), Vec::new()),
        None => {
            let seen: Vec<Detectable> = SHARES
                .iter()
                .map(|share| Detectable { share: *share, ratio: detectable(&rows, *share, seed) })
                .collect();
            if seen[0].ratio.is_some_and(|ratio| ratio <= asked * (1.0 + 1e-9)) {
                (Answer::Uniform, seen)
            } else {
                (Answer::Inconclusive(Doubt::Noise), seen)
            }
        }
    };
    Map {
        sigma: mad(&logs).map_or(f64::NAN, |mad| 1.4826 * mad),
        repeatability: {
            let [odd, even] = halves(&rows);
            spearman(&odd, &even).map(|correlation| correlation.rho)
        },
        medians: logs.iter().map(|log| log.exp()).collect(),
        rounds,
        answer,
        seen,
    }
}

/// Only the speeds of such rows, where there are several.
pub fn find_speeds(rows: &[Vec<f64>]) -> Option<Speeds> {
    speeds(&centred(rows), &CHUNKS)
}

/// Logarithms without what each round has in common, and the median chunk is 0.
fn centred(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let log = |value: &f64| if *value > 0.0 && value.is_finite() { value.ln() } else { f64::NAN };
    let mut rows = polished(rows.iter().map(|row| row.iter().map(log).collect()).collect());
    let centre = median(&medians(&rows, |_| true)).unwrap_or(0.0);
    rows.iter_mut().flatten().for_each(|value| *value -= centre);
    rows
}

/// Rows without what each round has in common: twice the medians of rows, then of rounds around
/// them (Tukey's median polish).
pub(super) fn polished(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let rounds = rows.iter().map(Vec::len).max().unwrap_or(0);
    for _ in 0..2 {
        let own = medians(&rows, |_| true);
        for round in 0..rounds {
            let around: Vec<f64> =
                rows.iter().zip(&own).filter_map(|(row, own)| Some(row.get(round)? - own)).collect();
            let common = median(&around).unwrap_or(0.0);
            rows.iter_mut().filter_map(|row| row.get_mut(round)).for_each(|value| *value -= common);
        }
    }
    rows
}

/// The median of each row over the rounds that are wanted; NaN where it has none.
pub(super) fn medians(rows: &[Vec<f64>], wanted: impl Fn(usize) -> bool) -> Vec<f64> {
    let of = |row: &Vec<f64>| {
        let values: Vec<f64> =
            row.iter().enumerate().filter(|(round, _)| wanted(*round)).map(|(_, value)| *value).collect();
        median(&values).unwrap_or(f64::NAN)
    };
    rows.iter().map(of).collect()
}

/// Medians over the even rounds, and over the odd ones.
fn halves(rows: &[Vec<f64>]) -> [Vec<f64>; 2] {
    [0, 1].map(|odd| medians(rows, |round| round % 2 == odd))
}

/// The speeds that last. Of three modes one may be chance where two are speeds, so those are asked
/// for as well.
fn speeds(rows: &[Vec<f64>], criteria: &ModeCriteria) -> Option<Speeds> {
    let two = || {
        criteria
            .allow_three
            .then(|| lasting(rows, &ModeCriteria { allow_three: false, ..*criteria }))
            .flatten()
    };
    lasting(rows, criteria).or_else(two)
}

/// The rule: modes of the chunks' medians, each side of every border again on its side in either
/// half of the rounds, and slow chunks slow in nearly all their readings.
fn lasting(rows: &[Vec<f64>], criteria: &ModeCriteria) -> Option<Speeds> {
    let logs = medians(rows, |_| true);
    let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
    let Modality::Several(modes) = modality_by(&values, criteria) else { return None };
    let mut members = modes.membership.iter();
    let membership: Vec<Option<usize>> =
        logs.iter().map(|log| if log.is_finite() { members.next().copied() } else { None }).collect();
    let halves = halves(rows);
    let repeats = modes.modes.windows(2).enumerate().all(|(border, pair)| {
        let middle = (pair[0].median * pair[1].median).sqrt().ln();
        let slow =
            membership.iter().zip(rows).filter(|(speed, _)| speed.is_some_and(|speed| speed <= border));
        let (mut below, mut readings) = (0, 0);
        for value in slow.flat_map(|(_, row)| row).filter(|value| value.is_finite()) {
            readings += 1;
            below += usize::from(*value < middle);
        }
        below as f64 >= MIN_SLOW_READINGS * f64::from(readings)
            && halves.iter().all(|half| {
                let again = |above: bool| {
                    let own = membership
                        .iter()
                        .zip(half)
                        .filter(|(speed, _)| speed.is_some_and(|speed| (speed > border) == above));
                    let (mut same, mut all) = (0, 0);
                    for (_, value) in own {
                        all += 1;
                        same += usize::from((*value > middle) == above);
                    }
                    same as f64 >= MIN_REPEAT_SHARE * f64::from(all)
                };
                again(false) && again(true)
            })
    });
    repeats.then_some(Speeds { ratio: modes.ratio, speeds: modes.modes, membership })
}

/// The smallest of [`STEPS`] that would have been seen in noise like this; by halves, as larger
/// ones are seen better.
fn detectable(rows: &[Vec<f64>], share: f64, seed: u64) -> Option<f64> {
    let rows: Vec<&Vec<f64>> = rows.iter().filter(|row| row.iter().any(|value| value.is_finite())).collect();
    let seen = |step: f64| {
        let mut rng = Rng::with_seed(seed ^ share.to_bits() ^ step.to_bits().rotate_left(17));
        let misses = (0..PLANTED).filter(|_| !planted(&rows, step, share, &mut rng));
        let most = ((1.0 - POWER) * PLANTED as f64) as usize;
        misses.take(most + 1).count() <= most
    };
    let (mut from, mut to) = (0, STEPS.len());
    while from < to {
        let middle = (from + to) / 2;
        if seen(STEPS[middle]) { to = middle } else { from = middle + 1 }
    }
    STEPS.get(from).copied()
}

/// Whether a step is found in a share of chunks drawn from these.
fn planted(rows: &[&Vec<f64>], step: f64, share: f64, rng: &mut Rng) -> bool {
    let chunks = rows.len().min(PLANTED_CHUNKS);
    let slow = (share * chunks as f64).ceil() as usize;
    let drawn: Vec<Vec<f64>> = (0..chunks)
        .map(|chunk| {
            let slower = if chunk < slow { step.ln() } else { 0.0 };
            rows[rng.usize(..rows.len())].iter().map(|value| value - slower).collect()
        })
        .collect();
    speeds(&drawn, &CHUNKS_TWO_MODES).is_some()
}

/// p of as few changes between two sides along an order as there are, if the order were chance:
/// small where regions lie together (Wald and Wolfowitz 1940; by permutations). `None` where one
/// side is missing.
pub fn contiguous(sides: &[bool], seed: u64) -> Option<f64> {
    const ORDERS: usize = 999;
    let changes = |at: &dyn Fn(usize) -> bool| (1..sides.len()).filter(|i| at(*i) != at(i - 1)).count();
    let found = changes(&|i| sides[i]);
    let many = sides.iter().filter(|side| **side).count();
    if many == 0 || many == sides.len() {
        return None;
    }
    let (n, one, other) = (sides.len() as f64, many as f64, (sides.len() - many) as f64);
    if n >= 200.0 {
        // Runs are changes and one.
        let mean = 2.0 * one * other / n + 1.0;
        let variance = (mean - 1.0) * (mean - 2.0) / (n - 1.0);
        let z = (found as f64 + 1.0 - mean) / variance.sqrt();
        return Some(if z < 0.0 { normal_two_sided(z) / 2.0 } else { 1.0 - normal_two_sided(z) / 2.0 });
    }
    let mut rng = Rng::with_seed(seed);
    let as_few = (0..ORDERS).filter(|_| {
        let order = shuffled(sides.len(), &mut rng);
        changes(&|i| sides[order[i]]) <= found
    });
    Some((1 + as_few.count()) as f64 / (ORDERS + 1) as f64)
}

/// Loss of a process whose memory is slow in part, against all of it fast, 0..1: it goes through
/// its memory piece by piece, so that times add up.
pub fn loss(ratio: f64, slow_part: f64) -> f64 {
    1.0 - 1.0 / (1.0 + slow_part * (ratio - 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::noise::normal;
    use super::*;

    /// Chunks whose readings scatter by `cv`, each round at a level of its own, one reading in
    /// twenty a third slower.
    fn machine(levels: &[f64], rounds: usize, cv: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = Rng::with_seed(seed);
        let round: Vec<f64> = (0..rounds).map(|round| 30.0 * (1.0 - 0.02 * round as f64)).collect();
        let mut reading = |level: f64, round: f64| {
            let slow = if rng.f64() < 0.05 { 0.67 } else { 1.0 };
            level * round * slow * (cv * normal(&mut rng)).exp()
        };
        levels.iter().map(|level| round.iter().map(|round| reading(*level, *round)).collect()).collect()
    }

    fn levels(chunks: usize, slow: std::ops::Range<usize>, ratio: f64) -> Vec<f64> {
        (0..chunks).map(|chunk| if slow.contains(&chunk) { 1.0 / ratio } else { 1.0 }).collect()
    }

    #[test]
    fn two_speeds_with_their_ratio_share_and_place() {
        let found = map(&machine(&levels(64, 8..24, 1.33), 9, 0.02, 1), 1.1, 1);
        let Answer::Speeds(speeds) = &found.answer else { panic!("{found:?}") };
        assert!((speeds.ratio - 1.33).abs() < 0.03 && speeds.slow_share() == 0.25, "{speeds:?}");
        let letters: String = (0..64).map(|chunk| speeds.letter(chunk)).collect();
        assert_eq!(letters, "F".repeat(8) + &"S".repeat(16) + &"F".repeat(40));
        assert!(found.repeatability.is_some_and(|rho| rho > 0.5) && found.seen.is_empty());
        let slow: Vec<bool> = speeds.membership.iter().map(|speed| *speed == Some(0)).collect();
        assert!(contiguous(&slow, 1).is_some_and(|p| p <= 0.001));
        // Some chunks are faster in every other round: a third mode that does not last hides no
        // slow region.
        let mut rows = machine(&levels(128, 32..64, 3.0), 9, 0.02, 5);
        for reading in rows[..12].iter_mut().flat_map(|row| row.iter_mut().step_by(2)) {
            *reading *= 1.3;
        }
        let Answer::Speeds(speeds) = map(&rows, 1.1, 1).answer else { panic!("three modes hid two speeds") };
        assert!((speeds.ratio - 3.0).abs() < 0.1 && speeds.slow_share() == 0.25, "{speeds:?}");
        let three: Vec<f64> = (0..96).map(|chunk| [1.0, 0.8, 0.5][chunk / 32]).collect();
        let found = map(&machine(&three, 9, 0.01, 2), 1.1, 1);
        let Answer::Speeds(speeds) = &found.answer else { panic!("{found:?}") };
        assert_eq!([0, 40, 90].map(|chunk| speeds.letter(chunk)), ['F', 'M', 'S']);
        assert!((speeds.slow_share() - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn quiet_noise_is_uniform_and_says_what_it_would_have_seen() {
        let found = map(&machine(&[1.0; 40], 9, 0.005, 3), 1.1, 1);
        assert_eq!(found.answer, Answer::Uniform, "{found:?}");
        assert!(found.sigma < 0.004 && found.repeatability.is_some_and(|rho| rho.abs() < 0.5));
        let [small, large] = found.seen[..] else { panic!("{:?}", found.seen) };
        assert_eq!((small.share, large.share), (0.1, 0.25));
        assert!(small.ratio.is_some_and(|ratio| ratio <= 1.08), "{small:?}");
        // The same noise answers less where more is asked.
        let strict = map(&machine(&[1.0; 40], 9, 0.005, 3), 1.01, 1);
        assert_eq!(strict.answer, Answer::Inconclusive(Doubt::Noise));
    }

    #[test]
    fn noise_that_could_hide_a_speed_is_inconclusive() {
        let found = map(&machine(&[1.0; 40], 9, 0.3, 4), 1.1, 1);
        assert_eq!(found.answer, Answer::Inconclusive(Doubt::Noise), "{found:?}");
        assert!(found.seen[0].ratio.is_none_or(|ratio| ratio > 1.3), "{:?}", found.seen);
        let few = map(&machine(&[1.0; 20], 9, 0.005, 5), 1.1, 1);
        assert_eq!(few.answer, Answer::Inconclusive(Doubt::FewChunks));
        let short = map(&machine(&[1.0; 40], 4, 0.005, 6), 1.1, 1);
        assert_eq!(short.answer, Answer::Inconclusive(Doubt::FewRounds));
        assert_eq!(map(&[], 1.1, 1).answer, Answer::Inconclusive(Doubt::FewChunks));
        let nothing = vec![vec![f64::NAN, 0.0, -1.0]; 40];
        assert_eq!(map(&nothing, 1.1, 1).answer, Answer::Inconclusive(Doubt::FewChunks));
    }

    #[test]
    fn what_does_not_come_again_is_no_speed() {
        // A quarter of the chunks was slow in the odd rounds only.
        let mut rows = machine(&[1.0; 64], 9, 0.002, 7);
        for row in &mut rows[..16] {
            row.iter_mut().step_by(2).for_each(|value| *value /= 1.5);
        }
        let found = map(&rows, 1.1, 1);
        assert!(!matches!(found.answer, Answer::Speeds(_)), "{found:?}");
    }

    #[test]
    fn regions_that_lie_together_or_anywhere() {
        let mut rng = Rng::with_seed(1);
        let scattered: Vec<bool> = shuffled(60, &mut rng).into_iter().map(|at| at < 15).collect();
        assert!(contiguous(&scattered, 2).is_some_and(|p| p > 0.01));
        let together: Vec<bool> = (0..400).map(|at| at < 100).collect();
        assert!(contiguous(&together, 2).is_some_and(|p| p < 1e-6));
        let taking_turns: Vec<bool> = (0..400).map(|at| at % 2 == 0).collect();
        assert!(contiguous(&taking_turns, 2).is_some_and(|p| p > 0.99));
        assert_eq!(contiguous(&[true; 9], 2), None);
    }

    #[test]
    fn losses_by_hand() {
        assert!((loss(3.0, 1.0) - 2.0 / 3.0).abs() < 1e-12);
        // A quarter at a third of the speed: 1 / (0.25 * 3 + 0.75) = 0.667.
        assert!((loss(3.0, 0.25) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(loss(1.5, 0.0), 0.0);
    }
}
