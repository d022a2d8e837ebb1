//! Decides from the bandwidth of every chunk of memory whether memory has one speed or several.
//!
//! A chunk is a contiguous piece; a round reads every chunk once, in a new order. What a round has
//! in common (a clock, a neighbour, a drift) is taken out, then each chunk is its median over the
//! rounds, so that single disturbed readings do not count. Modes of these medians that repeat in
//! the odd and in the even rounds are speeds of the memory.
//!
//! Without such modes the noise decides: steps of several sizes are planted into chunks drawn from
//! this map, and the same rule looks for them. The smallest step that it finds nearly always is the
//! smallest detectable ratio of two speeds. Memory is uniform only if that ratio is small enough.

mod populations;

pub use populations::{Candidate, Known, Support, candidates};

use fastrand::Rng;

use super::modes::{Modality, Mode, ModeCriteria, modality_by};
use super::order::{mad, median};
use super::ranks::{shuffled, spearman};
use super::tails::normal_two_sided;

/// Below this number of chunks nothing is said: a share of 5 % would be one chunk.
pub const MIN_CHUNKS: usize = 32;
/// Below this number of counted rounds nothing is said: each half then has three, so that the
/// median of a half ignores one disturbed round.
pub const MIN_ROUNDS: usize = 6;

/// The rule on medians of chunks: what is closer than 5 % is no second set of channels, and a slow
/// part may be small.
pub const CHUNK_CRITERIA: ModeCriteria = ModeCriteria {
    min_values: MIN_CHUNKS,
    certain_from: MIN_CHUNKS,
    ratio: 1.05,
    share: 0.05,
    min_per_mode: 2,
    allow_three: true,
};
/// The rule for two speeds only, as looking for three takes long. It also shows that there are
/// several: three speeds are rarely found without two.
const TWO_SPEED_CRITERIA: ModeCriteria = ModeCriteria { allow_three: false, ..CHUNK_CRITERIA };

/// Two neighbouring speeds have a border between them. This share of the chunks on each side of it
/// must lie on the same side in the odd rounds alone, and in the even rounds alone.
const MIN_REPEAT_SHARE: f64 = 0.75;
/// This share of the single readings of the chunks below a border must lie below it. Disturbances
/// make readings slower only, so fast chunks may read slow, but slow ones hardly ever fast.
const MIN_SLOW_READINGS: f64 = 0.8;

/// Ratios of two speeds that are planted, the smallest first.
pub const STEPS: [f64; 12] = [1.06, 1.08, 1.1, 1.12, 1.15, 1.2, 1.25, 1.33, 1.5, 2.0, 3.0, 4.0];
/// Shares of the memory that are planted slow.
pub const SHARES: [f64; 2] = [0.1, 0.25];
/// How often a planted step must be found to count as detectable.
pub const POWER: f64 = 0.95;
/// Maps that each step is planted into.
const PLANTED_MAPS: usize = 60;
/// Chunks of a planted map at most: in fewer chunks a step is harder to find, so larger maps err on
/// the safe side.
const MAX_PLANTED_CHUNKS: usize = 128;
/// From this many chunks on the runs test uses its normal approximation, below it permutations.
const MIN_FOR_NORMAL: usize = 200;
const PERMUTATIONS: usize = 999;

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
    /// For each of [`SHARES`]; empty if there are several speeds, or too little to say anything.
    pub limits: Vec<DetectionLimit>,
}

/// The smallest of [`STEPS`] that would have been found in [`POWER`] of cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectionLimit {
    /// The slow share of the memory.
    pub share: f64,
    /// `None` if not even the largest step would have been found.
    pub ratio: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Speeds(Speeds),
    /// One speed: a second one of the required ratio would have been found.
    Uniform,
    /// Why nothing can be said.
    Inconclusive(Doubt),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    FewChunks,
    FewRounds,
    /// A second speed of the required ratio could hide in the noise.
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

/// Evaluates bandwidths: a row per chunk, in it a value per round (rows may lack some at their
/// ends). Memory is uniform if a second speed of `required_ratio` would have been found in
/// [`SHARES`]`[0]` of it.
pub fn evaluate_map(rows: &[Vec<f64>], required_ratio: f64, seed: u64) -> Map {
    let rows = centred(rows);
    let rounds = rows.iter().map(Vec::len).max().unwrap_or(0);
    let logs = medians(&rows, |_| true);
    let known = logs.iter().filter(|value| value.is_finite()).count();
    let speeds = if rounds < MIN_ROUNDS { None } else { speeds(&rows, &CHUNK_CRITERIA) };
    let (answer, limits) = match speeds {
        Some(speeds) => (Answer::Speeds(speeds), Vec::new()),
        None if known < MIN_CHUNKS => (Answer::Inconclusive(Doubt::FewChunks), Vec::new()),
        None if rounds < MIN_ROUNDS => (Answer::Inconclusive(Doubt::FewRounds), Vec::new()),
        None => {
            let limits = SHARES
                .map(|share| DetectionLimit { share, ratio: smallest_detectable_step(&rows, share, seed) });
            let is_uniform = limits[0].ratio.is_some_and(|ratio| ratio <= required_ratio * (1.0 + 1e-9));
            let answer = if is_uniform { Answer::Uniform } else { Answer::Inconclusive(Doubt::Noise) };
            (answer, limits.to_vec())
        }
    };
    Map {
        sigma: mad(&logs).map_or(f64::NAN, |mad| 1.4826 * mad),
        repeatability: {
            let [odd, even] = medians_of_halves(&rows);
            spearman(&odd, &even).map(|correlation| correlation.rho)
        },
        medians: logs.iter().map(|log| log.exp()).collect(),
        rounds,
        answer,
        limits,
    }
}

/// Only the speeds of such rows, where there are several.
pub fn find_speeds(rows: &[Vec<f64>]) -> Option<Speeds> {
    speeds(&centred(rows), &CHUNK_CRITERIA)
}

/// Logarithms without what each round has in common, shifted so that the median chunk is 0.
fn centred(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let log = |value: &f64| if *value > 0.0 && value.is_finite() { value.ln() } else { f64::NAN };
    let mut rows = polished(rows.iter().map(|row| row.iter().map(log).collect()).collect());
    let centre = median(&medians(&rows, |_| true)).unwrap_or(0.0);
    rows.iter_mut().flatten().for_each(|value| *value -= centre);
    rows
}

/// Rows without what each round has in common: the median difference of its values from the
/// medians of their rows, subtracted twice (Tukey's median polish).
pub(super) fn polished(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let rounds = rows.iter().map(Vec::len).max().unwrap_or(0);
    for _ in 0..2 {
        let row_medians = medians(&rows, |_| true);
        for round in 0..rounds {
            let differences: Vec<f64> = rows
                .iter()
                .zip(&row_medians)
                .filter_map(|(row, row_median)| Some(row.get(round)? - row_median))
                .collect();
            let common = median(&differences).unwrap_or(0.0);
            rows.iter_mut().filter_map(|row| row.get_mut(round)).for_each(|value| *value -= common);
        }
    }
    rows
}

/// The median of each row over the rounds that are wanted; NaN where it has none.
pub(super) fn medians(rows: &[Vec<f64>], wanted: impl Fn(usize) -> bool) -> Vec<f64> {
    let row_median = |row: &Vec<f64>| {
        let values: Vec<f64> =
            row.iter().enumerate().filter(|(round, _)| wanted(*round)).map(|(_, value)| *value).collect();
        median(&values).unwrap_or(f64::NAN)
    };
    rows.iter().map(row_median).collect()
}

/// Medians over the odd rounds (first, third, ...), and over the even ones.
fn medians_of_halves(rows: &[Vec<f64>]) -> [Vec<f64>; 2] {
    [0, 1].map(|first| medians(rows, |round| round % 2 == first))
}

/// The speeds that repeat. If three modes do not, because one of them is chance, two may.
fn speeds(rows: &[Vec<f64>], criteria: &ModeCriteria) -> Option<Speeds> {
    let two_modes = ModeCriteria { allow_three: false, ..*criteria };
    repeating_speeds(rows, criteria)
        .or_else(|| if criteria.allow_three { repeating_speeds(rows, &two_modes) } else { None })
}

/// The rule: the modes of the chunks' medians, if every border between two of them repeats.
fn repeating_speeds(rows: &[Vec<f64>], criteria: &ModeCriteria) -> Option<Speeds> {
    let logs = medians(rows, |_| true);
    let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
    let Modality::Several(modes) = modality_by(&values, criteria) else { return None };
    // `modes.membership` has no entries for chunks without values.
    let mut members = modes.membership.iter();
    let membership: Vec<Option<usize>> =
        logs.iter().map(|log| if log.is_finite() { members.next().copied() } else { None }).collect();
    let halves = medians_of_halves(rows);
    let repeats = modes.modes.windows(2).enumerate().all(|(slower, pair)| {
        let border = (pair[0].median * pair[1].median).sqrt().ln();
        let chunks_where = |is_fast: bool| -> Vec<usize> {
            let is_wanted = |speed: usize| (speed > slower) == is_fast;
            (0..rows.len()).filter(|chunk| membership[*chunk].is_some_and(is_wanted)).collect()
        };
        let (slow, fast) = (chunks_where(false), chunks_where(true));
        let repeats_in = |half: &Vec<f64>| {
            let is_above = |chunk: &usize| half[*chunk] > border;
            share_of(slow.iter().map(|chunk| !is_above(chunk))) >= MIN_REPEAT_SHARE
                && share_of(fast.iter().map(is_above)) >= MIN_REPEAT_SHARE
        };
        let readings = slow.iter().flat_map(|chunk| &rows[*chunk]).filter(|value| value.is_finite());
        share_of(readings.map(|value| *value < border)) >= MIN_SLOW_READINGS && halves.iter().all(repeats_in)
    });
    repeats.then_some(Speeds { ratio: modes.ratio, speeds: modes.modes, membership })
}

/// Share of the conditions that hold; 1 of none.
fn share_of(conditions: impl Iterator<Item = bool>) -> f64 {
    let (held, all) = conditions.fold((0, 0), |(held, all), holds| (held + usize::from(holds), all + 1));
    if all == 0 { 1.0 } else { held as f64 / all as f64 }
}

/// The smallest of [`STEPS`] that is found in [`POWER`] of the maps it is planted into. A binary
/// search, as larger steps are found more often.
fn smallest_detectable_step(rows: &[Vec<f64>], share: f64, seed: u64) -> Option<f64> {
    let rows: Vec<&Vec<f64>> = rows.iter().filter(|row| row.iter().any(|value| value.is_finite())).collect();
    let max_misses = ((1.0 - POWER) * PLANTED_MAPS as f64) as usize;
    let is_detectable = |step: f64| {
        let mut rng = Rng::with_seed(seed ^ share.to_bits() ^ step.to_bits().rotate_left(17));
        let misses = (0..PLANTED_MAPS).filter(|_| !finds_planted_step(&rows, step, share, &mut rng));
        // Stops at the first miss too many.
        misses.take(max_misses + 1).count() <= max_misses
    };
    let (mut from, mut to) = (0, STEPS.len());
    while from < to {
        let middle = (from + to) / 2;
        if is_detectable(STEPS[middle]) { to = middle } else { from = middle + 1 }
    }
    STEPS.get(from).copied()
}

/// Draws chunks, makes a share of them slower by `step`, and looks for several speeds.
fn finds_planted_step(rows: &[&Vec<f64>], step: f64, share: f64, rng: &mut Rng) -> bool {
    let chunks = rows.len().min(MAX_PLANTED_CHUNKS);
    let slow = (share * chunks as f64).ceil() as usize;
    let drawn: Vec<Vec<f64>> = (0..chunks)
        .map(|chunk| {
            let slower = if chunk < slow { step.ln() } else { 0.0 };
            rows[rng.usize(..rows.len())].iter().map(|value| value - slower).collect()
        })
        .collect();
    speeds(&drawn, &TWO_SPEED_CRITERIA).is_some()
}

/// The p-value of the runs test (Wald and Wolfowitz 1940): how likely a random order of these
/// chunks changes sides as rarely as this one, or more rarely. Small if the slow chunks lie
/// together.
/// `None` if all are on one side.
pub fn runs_test_p(is_slow: &[bool], seed: u64) -> Option<f64> {
    let changes =
        |order: &[usize]| order.windows(2).filter(|pair| is_slow[pair[0]] != is_slow[pair[1]]).count();
    let in_place: Vec<usize> = (0..is_slow.len()).collect();
    let found = changes(&in_place);
    let slow = is_slow.iter().filter(|slow| **slow).count();
    if slow == 0 || slow == is_slow.len() {
        return None;
    }
    if is_slow.len() >= MIN_FOR_NORMAL {
        // The number of runs, which is one more than that of changes, is nearly normal.
        let (all, slow, fast) = (is_slow.len() as f64, slow as f64, (is_slow.len() - slow) as f64);
        let mean = 2.0 * slow * fast / all + 1.0;
        let variance = (mean - 1.0) * (mean - 2.0) / (all - 1.0);
        let z = (found as f64 + 1.0 - mean) / variance.sqrt();
        let one_tail = normal_two_sided(z) / 2.0;
        return Some(if z < 0.0 { one_tail } else { 1.0 - one_tail });
    }
    let mut rng = Rng::with_seed(seed);
    let as_few = (0..PERMUTATIONS).filter(|_| changes(&shuffled(is_slow.len(), &mut rng)) <= found);
    Some((1 + as_few.count()) as f64 / (PERMUTATIONS + 1) as f64)
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
        let found = evaluate_map(&machine(&levels(64, 8..24, 1.33), 9, 0.02, 1), 1.1, 1);
        let Answer::Speeds(speeds) = &found.answer else { panic!("{found:?}") };
        assert!((speeds.ratio - 1.33).abs() < 0.03 && speeds.slow_share() == 0.25, "{speeds:?}");
        let letters: String = (0..64).map(|chunk| speeds.letter(chunk)).collect();
        assert_eq!(letters, "F".repeat(8) + &"S".repeat(16) + &"F".repeat(40));
        assert!(found.repeatability.is_some_and(|rho| rho > 0.5) && found.limits.is_empty());
        let slow: Vec<bool> = speeds.membership.iter().map(|speed| *speed == Some(0)).collect();
        assert!(runs_test_p(&slow, 1).is_some_and(|p| p <= 0.001));
        // Some chunks are faster in every other round: a third mode that does not last hides no
        // slow region.
        let mut rows = machine(&levels(128, 32..64, 3.0), 9, 0.02, 5);
        for reading in rows[..12].iter_mut().flat_map(|row| row.iter_mut().step_by(2)) {
            *reading *= 1.3;
        }
        let Answer::Speeds(speeds) = evaluate_map(&rows, 1.1, 1).answer else {
            panic!("three modes hid two speeds")
        };
        assert!((speeds.ratio - 3.0).abs() < 0.1 && speeds.slow_share() == 0.25, "{speeds:?}");
        let three: Vec<f64> = (0..96).map(|chunk| [1.0, 0.8, 0.5][chunk / 32]).collect();
        let found = evaluate_map(&machine(&three, 9, 0.01, 2), 1.1, 1);
        let Answer::Speeds(speeds) = &found.answer else { panic!("{found:?}") };
        assert_eq!([0, 40, 90].map(|chunk| speeds.letter(chunk)), ['F', 'M', 'S']);
        assert!((speeds.slow_share() - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn quiet_noise_is_uniform_and_says_what_it_would_have_seen() {
        let found = evaluate_map(&machine(&[1.0; 40], 9, 0.005, 3), 1.1, 1);
        assert_eq!(found.answer, Answer::Uniform, "{found:?}");
        assert!(found.sigma < 0.004 && found.repeatability.is_some_and(|rho| rho.abs() < 0.5));
        let [small, large] = found.limits[..] else { panic!("{:?}", found.limits) };
        assert_eq!((small.share, large.share), (0.1, 0.25));
        assert!(small.ratio.is_some_and(|ratio| ratio <= 1.08), "{small:?}");
        // The same noise answers less where more is asked.
        let strict = evaluate_map(&machine(&[1.0; 40], 9, 0.005, 3), 1.01, 1);
        assert_eq!(strict.answer, Answer::Inconclusive(Doubt::Noise));
    }

    #[test]
    fn noise_that_could_hide_a_speed_is_inconclusive() {
        let found = evaluate_map(&machine(&[1.0; 40], 9, 0.3, 4), 1.1, 1);
        assert_eq!(found.answer, Answer::Inconclusive(Doubt::Noise), "{found:?}");
        assert!(found.limits[0].ratio.is_none_or(|ratio| ratio > 1.3), "{:?}", found.limits);
        let few = evaluate_map(&machine(&[1.0; 20], 9, 0.005, 5), 1.1, 1);
        assert_eq!(few.answer, Answer::Inconclusive(Doubt::FewChunks));
        let short = evaluate_map(&machine(&[1.0; 40], 4, 0.005, 6), 1.1, 1);
        assert_eq!(short.answer, Answer::Inconclusive(Doubt::FewRounds));
        assert_eq!(evaluate_map(&[], 1.1, 1).answer, Answer::Inconclusive(Doubt::FewChunks));
        let nothing = vec![vec![f64::NAN, 0.0, -1.0]; 40];
        assert_eq!(evaluate_map(&nothing, 1.1, 1).answer, Answer::Inconclusive(Doubt::FewChunks));
    }

    #[test]
    fn what_does_not_come_again_is_no_speed() {
        // A quarter of the chunks was slow in the odd rounds only.
        let mut rows = machine(&[1.0; 64], 9, 0.002, 7);
        for row in &mut rows[..16] {
            row.iter_mut().step_by(2).for_each(|value| *value /= 1.5);
        }
        let found = evaluate_map(&rows, 1.1, 1);
        assert!(!matches!(found.answer, Answer::Speeds(_)), "{found:?}");
    }

    #[test]
    fn regions_that_lie_together_or_anywhere() {
        let mut rng = Rng::with_seed(1);
        let scattered: Vec<bool> = shuffled(60, &mut rng).into_iter().map(|at| at < 15).collect();
        assert!(runs_test_p(&scattered, 2).is_some_and(|p| p > 0.01));
        let together: Vec<bool> = (0..400).map(|at| at < 100).collect();
        assert!(runs_test_p(&together, 2).is_some_and(|p| p < 1e-6));
        let taking_turns: Vec<bool> = (0..400).map(|at| at % 2 == 0).collect();
        assert!(runs_test_p(&taking_turns, 2).is_some_and(|p| p > 0.99));
        assert_eq!(runs_test_p(&[true; 9], 2), None);
    }

    #[test]
    fn losses_by_hand() {
        assert!((loss(3.0, 1.0) - 2.0 / 3.0).abs() < 1e-12);
        // A quarter at a third of the speed: 1 / (0.25 * 3 + 0.75) = 0.667.
        assert!((loss(3.0, 0.25) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(loss(1.5, 0.0), 0.0);
    }
}
