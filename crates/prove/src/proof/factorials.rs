//! Is the difference between two settings of many knobs shared out rightly?

use fastrand::Rng;

use super::sweeps::Drift;
use super::{Rate, sums};
use stats::factorial::{Effect, Observation, share_out};
use stats::noise::{Noise, autoregressive};
use stats::ranks::shuffled;

/// How the design is simulated: six knobs, of which the first three do -20, 8 and -5 %, the first
/// two together 6 % more, the last three nothing; the pairs of the first three are measured; all
/// six together do 4 % that no pair has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knobs {
    pub noise: Noise,
    /// Share of observations that are 1.5 times as long.
    pub outliers: f64,
    pub drift: Drift,
    pub passes: u32,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SharedOut {
    /// 95 % intervals that contain the truth.
    pub total: Rate,
    pub mains: Rate,
    pub pairs: Rate,
    pub remainder: Rate,
    /// The same of mains by passes alone: the mean over passes of `ln(knob / before)` with
    /// Student's interval.
    pub by_pass: Rate,
    /// Half-widths of those over half-widths of Assay's, summed.
    pub by_pass_width: f64,
    /// Runs in which a knob without effect is called strong.
    pub false_strong: Rate,
    /// Knobs of -20, 8 and -5 % that are called strong.
    pub strong: Rate,
}

sums!(SharedOut: total, mains, pairs, remainder, by_pass, by_pass_width, false_strong, strong);

const MAINS: [f64; 6] = [-0.2, 0.08, -0.05, 0.0, 0.0, 0.0];
const PAIRS: [([usize; 2], f64); 3] = [([0, 1], 0.06), ([0, 2], 0.0), ([1, 2], 0.0)];
const REST: f64 = 0.04;

fn level(mask: u64) -> f64 {
    let on = |knob: &usize| mask >> knob & 1 == 1;
    let mains: f64 = (0..6).filter(on).map(|knob| MAINS[knob]).sum();
    let pairs: f64 = PAIRS.iter().filter(|(pair, _)| pair.iter().all(on)).map(|(_, ln)| ln).sum();
    mains + pairs + if mask == 63 { REST } else { 0.0 }
}

impl Knobs {
    fn looks(self, rng: &mut Rng) -> Vec<Observation> {
        let mut masks: Vec<u64> = vec![0, 63];
        masks.extend((0..6).map(|knob| 1 << knob));
        masks.extend(PAIRS.iter().map(|(pair, _)| 1 << pair[0] | 1 << pair[1]));
        let n = masks.len() * self.passes as usize;
        let (step, wander) = (rng.usize(1..n), autoregressive(n, 0.95, rng));
        let mut looks = Vec::with_capacity(n);
        for pass in 0..self.passes {
            for place in shuffled(masks.len(), rng) {
                let index = looks.len();
                let drift = self.drift.at(index, n, step, &wander);
                let outlier = if rng.f64() < self.outliers { 1.5 } else { 1.0 };
                let value = 7.0 * (level(masks[place]) + drift).exp() * self.noise.draw(rng) * outlier;
                looks.push(Observation { mask: masks[place], pass, at: 1000.0 * index as f64, value });
            }
        }
        looks
    }
}

/// Simulates `trials` studies and judges each.
pub fn shared_out(knobs: Knobs, trials: usize, seed: u64) -> SharedOut {
    let mut rng = Rng::with_seed(seed);
    let mut found = SharedOut::default();
    for _ in 0..trials {
        let looks = knobs.looks(&mut rng);
        let Some(shares) = share_out(6, &looks) else { continue };
        let holds = |effect: &Effect, truth: f64| effect.interval.contains(truth);
        found.total.count(holds(&shares.total, level(63)));
        found.remainder.count(holds(&shares.remainder, REST));
        for main in &shares.mains {
            found.mains.count(holds(&main.effect, MAINS[main.factor]));
            if let Some((value, half)) = by_pass(&looks, 1 << main.factor, knobs.passes) {
                found.by_pass.count((value - MAINS[main.factor]).abs() <= half);
                found.by_pass_width += half / main.effect.interval.half_width();
            }
        }
        for pair in &shares.pairs {
            let truth = PAIRS.iter().find(|(own, _)| *own == pair.factors).map_or(0.0, |(_, ln)| *ln);
            found.pairs.count(holds(&pair.effect, truth));
        }
        let strong = shares.strong();
        found.false_strong.count(strong.iter().any(|knob| MAINS[*knob] == 0.0));
        (0..3).for_each(|knob| found.strong.count(strong.contains(&knob)));
    }
    found
}

/// A setting over before by the mean of each pass's own contrast, and its half-width.
fn by_pass(looks: &[Observation], mask: u64, passes: u32) -> Option<(f64, f64)> {
    let of = |pass: u32, mask: u64| {
        looks.iter().find(|look| look.pass == pass && look.mask == mask).map(|look| look.value.ln())
    };
    let each: Vec<f64> = (0..passes).filter_map(|pass| Some(of(pass, mask)? - of(pass, 0)?)).collect();
    stats::nested::mean_and_half_width(&each, 0.95)
}
