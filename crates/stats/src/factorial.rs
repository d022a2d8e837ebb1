//! Shares out the difference between two settings of many knobs: which knob is responsible for how
//! much.
//!
//! The design: *before*, *after* (all knobs turned), each knob turned alone, and pairs of the
//! strong ones, visited alternately pass by pass. On logarithms, `ln value = setting + pass +
//! drift(time) + noise`, fitted at once: what a pass has of its own falls out of every contrast,
//! and noise is pooled over settings and passes.

use super::multiple::holm;
use super::order::Interval;
use super::sweep::fit::{Contrast, Fit, LogValue, PassLevels, fit};

/// One visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Bit i: knob i stands at its value after.
    pub mask: u64,
    pub pass: u32,
    /// On the run's time line, ms.
    pub at: f64,
    /// Above 0, in the metric's unit.
    pub value: f64,
}

/// A difference as the natural logarithm of a ratio: 0.01 is 1 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    pub ln: f64,
    /// At 95 %.
    pub interval: Interval,
    /// Two-sided, that there is none.
    pub p: f64,
}

impl Effect {
    fn of(contrast: Contrast) -> Effect {
        Effect { ln: contrast.value, interval: contrast.interval(), p: contrast.p() }
    }
}

/// What one knob does alone: it turned, over before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Main {
    /// The knob, from 0.
    pub factor: usize,
    pub effect: Effect,
    /// Of the total, 1 = all of it; `None` where the total cannot be distinguished from zero.
    pub share: Option<f64>,
}

/// What two knobs do together beyond what they do alone: `ln(both) - ln(one) - ln(other) +
/// ln(before)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The knobs, the lower number first.
    pub factors: [usize; 2],
    pub effect: Effect,
    /// As in [`Main`].
    pub share: Option<f64>,
}

/// The difference, shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// After over before.
    pub total: Effect,
    /// The knobs that were measured alone, by number.
    pub mains: Vec<Main>,
    /// The pairs that were measured, by numbers.
    pub pairs: Vec<Pair>,
    /// The total less all mains and pairs: what comes from pairs not measured, from three knobs
    /// together, from knobs not measured alone.
    pub remainder: Effect,
    /// Relative standard deviation of one observation, with passes and drift taken out.
    pub noise: f64,
    /// Observations that lay too far from all others to count.
    pub aside: usize,
}

/// A strong effect is larger than this (natural logarithm) ...
pub const STRONG: f64 = 0.02;
/// ... or than this share of the total.
pub const STRONG_SHARE: f64 = 0.05;

/// Shares out what `factors` (1..=63) knobs do. Observations with values that are not finite and
/// positive are left out, and those of other settings than the design's; `None` without before or
/// after, or with fewer than two passes of observations.
pub fn share_out(factors: usize, observations: &[Observation]) -> Option<Shares> {
    if !(1..=63).contains(&factors) {
        return None;
    }
    let after = (1_u64 << factors) - 1;
    let sound = |one: &&Observation| {
        one.mask <= after && one.value > 0.0 && one.value.is_finite() && one.at.is_finite()
    };
    let sound: Vec<&Observation> = observations.iter().filter(sound).collect();
    let mut masks: Vec<u64> = sound.iter().map(|one| one.mask).collect();
    masks.sort_unstable();
    masks.dedup();
    masks.retain(|mask| *mask == after || mask.count_ones() <= 2);
    let points: Vec<LogValue> = sound
        .iter()
        .filter_map(|one| {
            let cell = masks.binary_search(&one.mask).ok()?;
            Some(LogValue { cell, pass: one.pass, time: one.at, log: one.value.ln() })
        })
        .collect();
    let design = Design { fitted: fit(&points, masks.len(), PassLevels::PerPass)?, masks };
    design.shares(factors, after)
}

struct Design {
    fitted: Fit,
    /// The setting of each of the fit's cells, rising.
    masks: Vec<u64>,
}

impl Design {
    /// The sum of weighted settings, each given by its mask.
    fn contrast(&self, weights: &[(u64, f64)]) -> Option<Contrast> {
        let cell = |(mask, weight): &(u64, f64)| Some((self.masks.binary_search(mask).ok()?, *weight));
        self.fitted.contrast(&weights.iter().map(cell).collect::<Option<Vec<_>>>()?)
    }

    fn shares(&self, factors: usize, after: u64) -> Option<Shares> {
        let total = Effect::of(self.contrast(&[(after, 1.0), (0, -1.0)])?);
        let told = total.p <= 0.05;
        let share = |effect: &Effect| told.then(|| effect.ln / total.ln);
        let mut remainder = vec![(after, 1.0), (0, -1.0)];
        let take_off = |remainder: &mut Vec<(u64, f64)>, weights: &[(u64, f64)]| {
            remainder.extend(weights.iter().map(|(mask, weight)| (*mask, -weight)));
        };
        let (mut mains, mut pairs) = (Vec::new(), Vec::new());
        for factor in 0..factors {
            let weights = [(1 << factor, 1.0), (0, -1.0)];
            let Some(contrast) = self.contrast(&weights) else { continue };
            let effect = Effect::of(contrast);
            mains.push(Main { factor, effect, share: share(&effect) });
            take_off(&mut remainder, &weights);
        }
        for one in 0..factors {
            for other in one + 1..factors {
                let (a, b) = (1 << one, 1 << other);
                let weights = [(a | b, 1.0), (a, -1.0), (b, -1.0), (0, 1.0)];
                let Some(contrast) = self.contrast(&weights) else { continue };
                let effect = Effect::of(contrast);
                pairs.push(Pair { factors: [one, other], effect, share: share(&effect) });
                take_off(&mut remainder, &weights);
            }
        }
        let remainder = Effect::of(self.contrast(&remainder)?);
        let aside = self.fitted.kept.iter().filter(|kept| !**kept).count();
        Some(Shares { total, mains, pairs, remainder, noise: self.fitted.sigma, aside })
    }
}

impl Shares {
    /// The knobs whose effect alone is distinguished from zero (5 % over all knobs together, by
    /// Holm) and is above [`STRONG`] or [`STRONG_SHARE`] of the total, the strongest first: of
    /// these pairs are worth measuring.
    pub fn strong(&self) -> Vec<usize> {
        let p = holm(&self.mains.iter().map(|main| main.effect.p).collect::<Vec<f64>>());
        let large = |ln: f64| ln.abs() > STRONG || ln.abs() > STRONG_SHARE * self.total.ln.abs();
        let mut strong: Vec<&Main> = self
            .mains
            .iter()
            .zip(&p)
            .filter(|(main, p)| **p <= 0.05 && large(main.effect.ln))
            .map(|(main, _)| main)
            .collect();
        strong.sort_by(|a, b| b.effect.ln.abs().total_cmp(&a.effect.ln.abs()));
        strong.into_iter().map(|main| main.factor).collect()
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::noise::normal;

    /// Each setting once a pass, with a pass of its own level.
    fn observations(masks: &[u64], passes: u32, ln: impl Fn(u64) -> f64) -> Vec<Observation> {
        let mut rng = Rng::with_seed(2);
        let mut observations = Vec::new();
        for pass in 0..passes {
            for mask in masks {
                let own = 0.1 * f64::from(pass % 3);
                let value = (2.0 + own + ln(*mask) + 0.002 * normal(&mut rng)).exp();
                observations.push(Observation { mask: *mask, pass, at: observations.len() as f64, value });
            }
        }
        observations
    }

    #[test]
    fn a_difference_is_shared_out() {
        let ln = |mask: u64| {
            let on = |knob: u32| f64::from(u8::from(mask >> knob & 1 == 1));
            -0.3 * on(0) + 0.1 * on(1) + 0.05 * on(0) * on(1) + 0.03 * on(0) * on(1) * on(2)
        };
        let observations = observations(&[0, 0b111, 0b001, 0b010, 0b100, 0b011], 6, ln);
        let shares = share_out(3, &observations).expect("the whole design");
        let near = |effect: &Effect, truth: f64| (effect.ln - truth).abs() < 0.006;
        assert!(near(&shares.total, -0.12) && near(&shares.remainder, 0.03), "{shares:?}");
        let mains: Vec<f64> = shares.mains.iter().map(|main| main.effect.ln).collect();
        assert!(
            mains.iter().zip([-0.3, 0.1, 0.0]).all(|(got, truth)| (got - truth).abs() < 0.004),
            "{mains:?}"
        );
        assert!(shares.pairs.len() == 1 && shares.pairs[0].factors == [0, 1], "{shares:?}");
        assert!(near(&shares.pairs[0].effect, 0.05));
        assert_eq!(shares.strong(), [0, 1]);
        let sum: f64 = mains.iter().sum::<f64>() + shares.pairs[0].effect.ln + shares.remainder.ln;
        assert!((sum - shares.total.ln).abs() < 1e-9);
        assert!((shares.mains[0].share.expect("a total") - 2.5).abs() < 0.1);
    }

    #[test]
    fn designs_with_holes() {
        let ln = |mask: u64| 0.1 * f64::from(mask.count_ones());
        // One knob: all of the total is its own.
        let shares = share_out(1, &observations(&[0, 1], 5, ln)).expect("before and after");
        assert!(shares.remainder.ln.abs() < 1e-12 && shares.mains.len() == 1);
        // Knob 1 was not measured alone: what it does is in the remainder.
        let shares = share_out(2, &observations(&[0, 3, 1], 5, ln)).expect("before and after");
        assert!(
            (shares.remainder.ln - 0.1).abs() < 0.01 && shares.mains.len() == 1 && shares.pairs.is_empty()
        );
        assert_eq!(share_out(2, &observations(&[0, 1, 2], 5, ln)), None);
        assert_eq!(share_out(2, &observations(&[3, 1, 2], 5, ln)), None);
        assert_eq!(share_out(2, &observations(&[0, 3], 1, ln)), None);
        assert_eq!((share_out(0, &[]), share_out(64, &[])), (None, None));
    }
}
