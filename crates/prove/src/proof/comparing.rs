//! Are equal arms called different?

use fastrand::Rng;

use super::{Rate, Shape};
use stats::analysis::CONFIDENCE;
use stats::bootstrap::Resampling;
use stats::compare::{
    LEAST_MARGIN, Outcome, conclude, paired_p, paired_ratio, ratio_of_means, unpaired_ratio,
};
use stats::contrast::{Clocks, Family, Side, contrast, level};
use stats::interleave::latin_order;
use stats::noise::{Noise, autoregressive};
use stats::order::{Interval, median};
use stats::ranks::mann_whitney;

/// How often a comparison of two arms with equal distributions says that they differ: intervals that exclude
/// 1, tests with p < 0.05.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EqualArms {
    pub paired_interval: Rate,
    pub paired_sign_test: Rate,
    /// Bootstrap from 20 values on, recovered from the medians' intervals below.
    pub unpaired_interval: Rate,
    pub mann_whitney: Rate,
    /// Fieller's, over process means.
    pub means_interval: Rate,
}

/// Compares arms of `shape` with themselves, their process medians where it is about medians; `resamples` of
/// the bootstrap.
pub fn equal_arms(shape: Shape, resamples: usize, trials: usize, seed: u64) -> EqualArms {
    let mut rng = Rng::with_seed(seed);
    let mut found = EqualArms::default();
    for trial in 0..trials {
        let arms = [shape.draw(&mut rng), shape.draw(&mut rng)];
        let medians = arms.each_ref().map(|arm| arm.iter().filter_map(|p| median(p)).collect::<Vec<f64>>());
        let [a, b] = &medians;
        let excludes = |interval: Option<Interval>| interval.is_some_and(|interval| !interval.contains(1.0));
        found
            .paired_interval
            .count(excludes(paired_ratio(a, b, CONFIDENCE).and_then(|ratio| ratio.interval)));
        found.paired_sign_test.count(paired_p(a, b) < 0.05);
        let plan = Resampling { resamples, ..Resampling::new(CONFIDENCE, trial as u64) };
        found.unpaired_interval.count(excludes(unpaired_ratio(a, b, plan).and_then(|ratio| ratio.interval)));
        found.mann_whitney.count(mann_whitney(a, b).is_some_and(|test| test.p < 0.05));
        let means = ratio_of_means(&arms[0], &arms[1], CONFIDENCE).map(|(_, interval)| interval);
        found.means_interval.count(excludes(means));
    }
    found
}

/// How often two equal arms are called different while the machine drifts (autoregressively with `phi`, 1 %
/// noise of each visit beside 3 % drift): visited as blocks and compared by the unpaired ratio, and visited
/// ABBA and compared by the sign test of pairs. `n` values an arm.
pub fn equal_arms_while_drifting(phi: f64, n: usize, trials: usize, seed: u64) -> (Rate, Rate) {
    let mut rng = Rng::with_seed(seed);
    let (mut blocks, mut paired) = (Rate::default(), Rate::default());
    let noise = Noise::Lognormal { cv: 0.01 };
    for trial in 0..trials {
        let drift: Vec<f64> = autoregressive(2 * n, phi, &mut rng).iter().map(|z| (0.03 * z).exp()).collect();
        let visits: Vec<f64> = drift.iter().map(|drift| drift * noise.draw(&mut rng)).collect();
        let plan = Resampling { resamples: 499, ..Resampling::new(CONFIDENCE, trial as u64) };
        let ratio = unpaired_ratio(&visits[..n], &visits[n..], plan);
        let interval = ratio.and_then(|ratio| ratio.interval);
        blocks.count(interval.is_some_and(|interval| !interval.contains(1.0)));
        let mut arms = [Vec::new(), Vec::new()];
        for (&arm, visit) in latin_order(2, n, trial as u64).iter().flatten().zip(&visits) {
            arms[arm].push(*visit);
        }
        paired.count(paired_p(&arms[0], &arms[1]) < 0.05);
    }
    (blocks, paired)
}

/// How the level of a run goes in a simulation of two runs of one machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Levels {
    /// Each run has its own, as far apart as `times` the spread of single processes.
    Apart { times: f64 },
    /// Flicker: processes of one run after the other are a walk over ten scales of time, each of which moves as much.
    Flicker,
}

/// How often two runs of one machine are called different at a margin of 2 %: by the interval of two independent arms
/// alone, and by the same with the levels of the runs in it. `n` processes a run, whose spread is `cv`.
pub fn equal_runs(levels: Levels, cv: f64, n: usize, trials: usize, seed: u64) -> (Rate, Rate) {
    let mut rng = Rng::with_seed(seed);
    let (mut naive, mut widened) = (Rate::default(), Rate::default());
    for trial in 0..trials {
        let values = two_runs(levels, cv, n, &mut rng);
        let (a, b) = values.split_at(n);
        let plan = Resampling { resamples: 199, ..Resampling::new(CONFIDENCE, trial as u64) };
        let Some(ratio) = unpaired_ratio(a, b, plan) else { continue };
        let Some((one, other)) = Side::of(a, 1).zip(Side::of(b, 1)) else { continue };
        let level = level(Family::Other, [&one, &other], &[]);
        let found = contrast(&one, &other, level, Clocks::default());
        let apart = found.interval.low > 0.0 || found.interval.high < 0.0;
        naive.count(conclude(&ratio, LEAST_MARGIN) == Outcome::Different);
        widened.count(apart && found.p <= 0.05 && found.difference.abs() >= LEAST_MARGIN.ln_1p());
    }
    (naive, widened)
}

/// The processes of two runs, one after the other.
fn two_runs(levels: Levels, cv: f64, n: usize, rng: &mut Rng) -> Vec<f64> {
    let noise = Noise::Lognormal { cv };
    match levels {
        Levels::Apart { times } => {
            let mut run = || {
                let level = Noise::Lognormal { cv: cv * times }.draw(rng);
                noise.series(n, rng).into_iter().map(|value| value * level).collect::<Vec<f64>>()
            };
            [run(), run()].concat()
        }
        Levels::Flicker => {
            // A part for each scale of time, which is drawn anew that often: Voss's way to 1/f noise.
            const SCALES: u32 = 10;
            let part = cv / f64::from(SCALES).sqrt();
            let mut parts = vec![1.0; SCALES as usize];
            (0..2 * n)
                .map(|at| {
                    for (scale, value) in parts.iter_mut().enumerate() {
                        // Begun somewhere in each.
                        if at == 0 || rng.usize(0..1 << scale) == 0 {
                            *value = Noise::Lognormal { cv: part }.draw(rng);
                        }
                    }
                    parts.iter().product()
                })
                .collect()
        }
    }
}
