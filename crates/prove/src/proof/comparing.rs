//! Are equal arms called different?

use fastrand::Rng;

use super::{Rate, Shape, over, rate};
use stats::analysis::CONFIDENCE;
use stats::compare::{MIN_MARGIN, paired_p, paired_ratio, ratio_of_means};
use stats::contrast::{Clocks, Family, Side, contrast, level};
use stats::interleave::latin_order;
use stats::noise::{Noise, autoregressive, normal};
use stats::order::{Interval, median};
use stats::ranks::mann_whitney;

/// How often a comparison of two arms with equal distributions says that they differ: intervals
/// that exclude 1, tests with p < 0.05.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EqualArms {
    pub paired_interval: Rate,
    pub paired_sign_test: Rate,
    pub mann_whitney: Rate,
    /// Fieller's, over process means.
    pub means_interval: Rate,
}

/// Compares arms of `shape` with themselves, their process medians where it is about medians.
pub fn equal_arms(shape: Shape, trials: usize, seed: u64) -> EqualArms {
    over(trials, seed, |_, rng, found: &mut EqualArms| {
        let arms = [shape.draw(rng), shape.draw(rng)];
        let medians = arms.each_ref().map(|arm| arm.iter().filter_map(|p| median(p)).collect::<Vec<f64>>());
        let [a, b] = &medians;
        let excludes = |interval: Option<Interval>| interval.is_some_and(|interval| !interval.contains(1.0));
        found
            .paired_interval
            .count(excludes(paired_ratio(a, b, CONFIDENCE).and_then(|ratio| ratio.interval)));
        found.paired_sign_test.count(paired_p(a, b) < 0.05);
        found.mann_whitney.count(mann_whitney(a, b).is_some_and(|test| test.p < 0.05));
        let means = ratio_of_means(&arms[0], &arms[1], CONFIDENCE).map(|(_, interval)| interval);
        found.means_interval.count(excludes(means));
    })
}

/// How often two equal arms are called different while the host drifts (autoregressively with
/// `phi`, 1 % noise of each pass and 3 % drift): measured in blocks and compared by Mann and
/// Whitney's test, or measured ABBA and compared by the sign test of pairs. `n` values an arm.
pub fn equal_arms_while_drifting(phi: f64, n: usize, trials: usize, seed: u64) -> (Rate, Rate) {
    let mut rng = Rng::with_seed(seed);
    let (mut blocks, mut paired) = (Rate::default(), Rate::default());
    let noise = Noise::Lognormal { cv: 0.01 };
    for trial in 0..trials {
        let drift: Vec<f64> = autoregressive(2 * n, phi, &mut rng).iter().map(|z| (0.03 * z).exp()).collect();
        let visits: Vec<f64> = drift.iter().map(|drift| drift * noise.draw(&mut rng)).collect();
        blocks.count(mann_whitney(&visits[..n], &visits[n..]).is_some_and(|test| test.p < 0.05));
        let mut arms = [Vec::new(), Vec::new()];
        for (&arm, visit) in latin_order(2, n, trial as u64).iter().flatten().zip(&visits) {
            arms[arm].push(*visit);
        }
        paired.count(paired_p(&arms[0], &arms[1]) < 0.05);
    }
    (blocks, paired)
}

/// How the levels of two runs of one host go in a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Levels {
    /// Each run has its own, with this standard deviation of its logarithm.
    Apart(f64),
    /// Flicker: processes of one run after the other are a walk over ten scales of time, each of
    /// which moves as much.
    Flicker,
}

/// Two runs, one after the other, of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// By which the comparison knows how far equal runs lie apart.
    pub family: Family,
    /// Standard deviation of ln of a process.
    pub spread: f64,
    pub levels: Levels,
    /// Processes a run.
    pub processes: usize,
    /// The share by which the second is larger.
    pub planted: f64,
}

/// What comparing such runs comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contrasted {
    /// 95 % intervals that contain what was planted.
    pub covered: Rate,
    /// Called different, of one metric alone: p at most 5 %, an interval without 1, and 2 % apart
    /// at least.
    pub different: Rate,
    /// The same within [`SAME`].
    pub same: Rate,
}

/// The share within which sameness is asked.
pub const SAME: f64 = 0.10;

pub fn contrasted(runs: Runs, trials: usize, seed: u64) -> Contrasted {
    let mut rng = Rng::with_seed(seed);
    let mut found = Contrasted::default();
    let (shift, least) = (runs.planted.ln_1p(), MIN_MARGIN.ln_1p());
    for _ in 0..trials {
        let values = runs.draw(&mut rng);
        let (a, b) = values.split_at(runs.processes);
        let Some((one, other)) = Side::of(a, 1).zip(Side::of(b, 1)) else { continue };
        let level = level(runs.family, [&one, &other], &[]);
        let contrast = contrast(&one, &other, level, Clocks::default());
        let far = contrast.difference.abs() >= least;
        found.covered.count(contrast.interval.contains(shift));
        found.different.count(contrast.p <= 0.05 && !contrast.interval.contains(0.0) && far);
        found.same.count(contrast.same_within(&[SAME]).is_some());
    }
    found
}

/// How often the processes of such runs alone call them different: Mann and Whitney's p below 5 %.
pub fn different_by_processes(runs: Runs, trials: usize, seed: u64) -> Rate {
    let by_ranks = |values: &Vec<f64>, _: u64| {
        let (a, b) = values.split_at(runs.processes);
        mann_whitney(a, b).is_some_and(|test| test.p < 0.05)
    };
    rate(trials, seed, |rng| runs.draw(rng), by_ranks)
}

impl Runs {
    /// The processes of both, one run after the other.
    fn draw(self, rng: &mut Rng) -> Vec<f64> {
        let noise = Noise::Lognormal { cv: self.spread };
        let mut values = match self.levels {
            Levels::Apart(spread) => {
                let mut run = || {
                    let level = (spread * normal(rng)).exp();
                    noise.series(self.processes, rng).into_iter().map(|value| value * level).collect()
                };
                let (first, second): (Vec<f64>, Vec<f64>) = (run(), run());
                [first, second].concat()
            }
            Levels::Flicker => flicker(self.spread, 2 * self.processes, rng),
        };
        values[self.processes..].iter_mut().for_each(|value| *value *= 1.0 + self.planted);
        values
    }
}

/// Values of which each scale of time has a part that is redrawn that often: Voss's way to 1/f
/// noise.
fn flicker(spread: f64, count: usize, rng: &mut Rng) -> Vec<f64> {
    const SCALES: u32 = 10;
    let part = spread / f64::from(SCALES).sqrt();
    let mut parts = [1.0; SCALES as usize];
    let value = |at: usize| {
        for (scale, value) in parts.iter_mut().enumerate() {
            // Begun somewhere in each.
            if at == 0 || rng.usize(0..1 << scale) == 0 {
                *value = Noise::Lognormal { cv: part }.draw(rng);
            }
        }
        parts.iter().product()
    };
    (0..count).map(value).collect()
}
