//! What is a clean series called, and a troubled one?

use fastrand::Rng;

use super::{Rate, over};
use model::{Verdict, VerdictKind};
use stats::analysis::CONFIDENCE;
use stats::behaviour::{Behaviour, DRIFT_P, behaviour};
use stats::estimate::{Estimate, estimate};
use stats::noise::{Noise, autoregressive, exponential, normal};
use stats::outliers::{Covariate, attribute, outliers};
use stats::verdict::{Judgement, judge};

/// Judges a simulated series as the product does, asked for no precision, so that only its
/// behaviour counts.
pub fn judged(processes: &[Vec<f64>], precision: f64, seed: u64) -> Option<(Verdict, Estimate, Behaviour)> {
    let estimate = estimate(processes, CONFIDENCE)?;
    let behaviour = behaviour(processes, &estimate, DRIFT_P, seed);
    let judgement = Judgement {
        estimate: &estimate,
        behaviour: &behaviour,
        precision,
        unit: "",
        mode_cause: None,
        without_explained: None,
    };
    let verdict = judge(&judgement).0;
    Some((verdict, estimate, behaviour))
}

/// Precision that every interval meets.
pub const ANY_PRECISION: f64 = f64::INFINITY;

/// How verdicts fall on one kind of series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    pub trusted: Rate,
    pub imprecise: Rate,
    pub multimodal: Rate,
    pub drifting: Rate,
    /// Trusted, and the interval does not contain the truth.
    pub trusted_wrongly: Rate,
}

/// Verdicts on series made by `draw`, whose true median is `truth`.
pub fn verdicts(
    draw: impl Fn(&mut Rng) -> Vec<Vec<f64>>,
    truth: f64,
    precision: f64,
    trials: usize,
    seed: u64,
) -> Verdicts {
    over(trials, seed, |trial, rng, found: &mut Verdicts| {
        let Some((verdict, estimate, _)) = judged(&draw(rng), precision, trial as u64) else { return };
        let misses = estimate.interval.is_some_and(|interval| !interval.contains(truth));
        found.trusted.count(verdict.kind == VerdictKind::Trusted);
        found.imprecise.count(verdict.kind == VerdictKind::Imprecise);
        found.multimodal.count(verdict.kind == VerdictKind::Multimodal);
        found.drifting.count(verdict.kind == VerdictKind::Drifting);
        found.trusted_wrongly.count(verdict.kind == VerdictKind::Trusted && misses);
    })
}

/// A series that should not be trusted as it is. The noise is log-normal with 1 % (2 % inside
/// processes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// Rises by this share from first to last process.
    Trend(f64),
    /// Higher by this share for the first third of the processes.
    Step(f64),
    /// Falls by this share from first to last sample of every process.
    Inside(f64),
    /// A second value, this many times the first, for a share of the processes.
    Modes { ratio: f64, minority: f64 },
    /// Processes follow each other autoregressively.
    Wandering { phi: f64 },
}

impl Trouble {
    /// The median that a patient observer would find: the middle of what moves, the level after a
    /// step.
    pub fn truth(self) -> f64 {
        match self {
            Trouble::Modes { ratio, minority } => Noise::TwoModes { cv: 0.01, ratio, minority }.median(),
            Trouble::Trend(_) | Trouble::Step(_) | Trouble::Inside(_) | Trouble::Wandering { .. } => 1.0,
        }
    }

    /// `processes` lists of `windows` values (of one, for all but `Inside`).
    pub fn draw(self, processes: usize, windows: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let noise = Noise::Lognormal { cv: 0.01 };
        let along = |index: usize, of: usize| index as f64 / (of.max(2) - 1) as f64 - 0.5;
        let one = |values: Vec<f64>| values.into_iter().map(|value| vec![value]).collect();
        match self {
            Trouble::Trend(by) => {
                one((0..processes).map(|i| (1.0 + by * along(i, processes)) * noise.draw(rng)).collect())
            }
            Trouble::Step(by) => {
                let level = |i: usize| if 3 * i < processes { 1.0 + by } else { 1.0 };
                one((0..processes).map(|i| level(i) * noise.draw(rng)).collect())
            }
            Trouble::Inside(by) => {
                let noise = Noise::Lognormal { cv: 0.02 };
                let mut process =
                    || (0..windows).map(|i| (1.0 - by * along(i, windows)) * noise.draw(rng)).collect();
                (0..processes).map(|_| process()).collect()
            }
            Trouble::Modes { ratio, minority } => {
                one(Noise::TwoModes { cv: 0.01, ratio, minority }.series(processes, rng))
            }
            Trouble::Wandering { phi } => {
                one(autoregressive(processes, phi, rng).iter().map(|z| (0.01 * z).exp()).collect())
            }
        }
    }
}

/// How often outliers without a cause (a slow tail in 10 processes of 20 samples) are explained by
/// one of eight covariates that have nothing to do with them: four counters that come in bursts,
/// four quantities.
pub fn explained_by_luck(trials: usize, seed: u64) -> Rate {
    let noise = Noise::SlowTail { cv: 0.01, slow: 0.1 };
    let strata: Vec<usize> = (0..200).map(|index| index / 20).collect();
    let covariate = |number: usize, rng: &mut Rng| {
        let mut busy = false;
        let mut next = || {
            busy ^= rng.u8(..8) == 0;
            if number < 4 { f64::from(u8::from(busy)) * exponential(rng).ceil() } else { normal(rng) }
        };
        Covariate { name: "unrelated".into(), values: (0..200).map(|_| next()).collect() }
    };
    let draw = |rng: &mut Rng| {
        let values = noise.series(200, rng);
        (values, (0..8).map(|number| covariate(number, rng)).collect::<Vec<Covariate>>())
    };
    super::rate(trials, seed, draw, |(values, covariates), _| {
        !attribute(&outliers(values), &strata, covariates).explanations.is_empty()
    })
}
