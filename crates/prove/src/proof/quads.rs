//! Two commands in turn, on a machine that drifts and whose clock moves between executions.

use fastrand::Rng;

use super::Rate;
use super::clocks::plateau;
use stats::noise::normal;
use stats::quads::{Execution, LEAST_QUADS, MOST_QUADS, Versus, told_apart};

/// Standard deviation of ln of one execution, beside what drifts.
const NOISE: f64 = 0.01;
/// The machine's speed goes as a first-order autoregression over executions.
const DRIFT: f64 = 0.97;
const DRIFT_STEP: f64 = 0.005;
/// Chance that the clock is drawn anew before an execution, and the errors around its plateau and of its reading.
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

/// Pairs of commands of which B takes `planted` longer (a share), until the rule has enough. Time goes with the clock as
/// cycles do (`slope` -1) or not at all (0).
pub fn in_turn(planted: f64, slope: f64, trials: usize, seed: u64) -> InTurn {
    let mut rng = Rng::with_seed(seed);
    let mut found = InTurn::default();
    for _ in 0..trials {
        let Some(versus) = one(planted, slope, &mut rng) else { continue };
        let truth = planted.ln_1p();
        found.different.count(versus.differs());
        found.same.count(versus.same_within().is_some_and(|margin| margin <= 0.02));
        found.covered.count(versus.interval.is_some_and(|interval| interval.contains(truth)));
        found.mean_quads += versus.quads as f64 / trials as f64;
    }
    found
}

fn one(planted: f64, slope: f64, rng: &mut Rng) -> Option<Versus> {
    let (mut drift, mut ghz) = (0.0, plateau(rng));
    let mut arms: [Vec<Execution>; 2] = [Vec::new(), Vec::new()];
    let mut versus = None;
    for quad in 0..MOST_QUADS as u32 {
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
        if quad as usize + 1 >= LEAST_QUADS {
            versus = told_apart(&arms[0], &arms[1]);
            if versus.as_ref().is_some_and(Versus::is_enough) {
                break;
            }
        }
    }
    versus
}
