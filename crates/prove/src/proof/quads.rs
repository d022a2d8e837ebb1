//! Two commands, alternating, on a host that drifts and whose clock moves between executions;
//! and both at once on two CPUs, where others disturb.

use fastrand::Rng;

use super::clocks::plateau;
use super::{Rate, over};
use stats::noise::normal;
use stats::quads::{Execution, MAX_QUADS, MIN_QUADS, Versus, compare_quads};

/// Standard deviation of ln of one execution, without the drift.
const NOISE: f64 = 0.01;
/// The host's speed goes as a first-order autoregression over executions.
const DRIFT: f64 = 0.97;
const DRIFT_STEP: f64 = 0.005;
/// Chance that the clock is redrawn before an execution, and the errors around its plateau and of
/// its reading.
const JUMP: f64 = 0.15;
const WANDER: f64 = 0.002;
const READING_ERROR: f64 = 0.001;

/// What was said of pairs of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InTurn {
    pub different: Rate,
    /// Within 2 %.
    pub same: Rate,
    pub covered: Rate,
    pub mean_quads: f64,
}

/// Pairs of commands of which B takes `planted` longer (a share), until the rule has enough. Time
/// goes with the clock as cycles do (`slope` -1) or not at all (0).
pub fn in_turn(planted: f64, slope: f64, trials: usize, seed: u64) -> InTurn {
    over(trials, seed, |_, rng, found: &mut InTurn| {
        if let Some(versus) = one(planted, slope, rng) {
            found.count(&versus, planted, trials);
        }
    })
}

/// Chance that the neighbours of a round or an execution are others than before; they disturb it
/// one time in two, by this much of a logarithm in the mean (exponential), and each of two arms at
/// once by this share more or less (standard deviation).
const OTHERS: f64 = 0.3;
const DISTURBED: f64 = 0.15;
const UNEVEN: f64 = 0.1;
/// What the second CPU is slower by.
const SEAT: f64 = 0.02;

/// The same where others disturb: alternately, or both at once on two CPUs that they swap for every
/// other round.
pub fn disturbed(planted: f64, at_once: bool, trials: usize, seed: u64) -> InTurn {
    over(trials, seed, |_, rng, found: &mut InTurn| {
        if let Some(versus) = one_disturbed(planted, at_once, rng) {
            found.count(&versus, planted, trials);
        }
    })
}

fn one_disturbed(planted: f64, at_once: bool, rng: &mut Rng) -> Option<Versus> {
    let (mut drift, mut others) = (0.0, 0.0);
    let mut begins = |rng: &mut Rng| {
        drift = DRIFT * drift + DRIFT_STEP * normal(rng);
        if rng.f64() < OTHERS {
            others = if rng.bool() { -DISTURBED * (1.0 - rng.f64()).ln() } else { 0.0 };
        }
        (drift, others)
    };
    until_enough(|quad, arms| {
        let order = if rng.bool() { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
        let mut now = (0.0, 0.0);
        for (at, arm) in (0..).zip(order) {
            let (pass, first_of_round) = (2 * quad + at / 2, at % 2 == 0);
            if first_of_round || !at_once {
                now = begins(rng);
            }
            // A on the first CPU in even rounds.
            let seat = if at_once && (pass % 2 == 0) == (arm == 1) { SEAT } else { 0.0 };
            let felt = if at_once { now.1 * (1.0 + UNEVEN * normal(rng)) } else { now.1 };
            let more = if arm == 1 { planted.ln_1p() } else { 0.0 };
            let time = more + now.0 + felt + seat + NOISE * normal(rng);
            arms[arm].push(Execution { pass, time, clock: None });
        }
    })
}

/// Quads until the rule has enough.
fn until_enough(mut quad: impl FnMut(u32, &mut [Vec<Execution>; 2])) -> Option<Versus> {
    let mut arms: [Vec<Execution>; 2] = [Vec::new(), Vec::new()];
    let mut versus = None;
    for number in 0..MAX_QUADS as u32 {
        quad(number, &mut arms);
        if number as usize + 1 >= MIN_QUADS {
            versus = compare_quads(&arms[0], &arms[1]);
            if versus.as_ref().is_some_and(Versus::is_enough) {
                break;
            }
        }
    }
    versus
}

impl InTurn {
    fn count(&mut self, versus: &Versus, planted: f64, trials: usize) {
        let truth = planted.ln_1p();
        self.different.count(versus.differs());
        self.same.count(versus.same_within().is_some_and(|margin| margin <= 0.02));
        self.covered.count(versus.interval.is_some_and(|interval| interval.contains(truth)));
        self.mean_quads += versus.quads as f64 / trials as f64;
    }
}

fn one(planted: f64, slope: f64, rng: &mut Rng) -> Option<Versus> {
    let (mut drift, mut ghz) = (0.0, plateau(rng));
    until_enough(|quad, arms| {
        let order = if rng.bool() { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
        for (at, arm) in (0..).zip(order) {
            if rng.f64() < JUMP {
                ghz = plateau(rng);
            }
            drift = DRIFT * drift + DRIFT_STEP * normal(rng);
            let clock = ghz.ln() + WANDER * normal(rng);
            let more = if arm == 1 { planted.ln_1p() } else { 0.0 };
            let time = more + drift + slope * clock + NOISE * normal(rng);
            let clock = Some(clock + READING_ERROR * normal(rng));
            arms[arm].push(Execution { pass: 2 * quad + at / 2, time, clock });
        }
    })
}
