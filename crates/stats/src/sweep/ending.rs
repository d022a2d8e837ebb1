//! When a sweep that asks for an effect has seen enough.

/// From one check to the next there are this many times as many passes: checking is not free in
/// large maps.
const PASSES_BETWEEN_CHECKS: f64 = 1.15;

/// The checks of a sweep for the effect that it would have detected by now.
///
/// It ends after two checks in a row at which the effect would be seen. What would be seen rests on
/// the noise of few passes, and a figure of two modes may keep to one of them for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    next: usize,
    wanted: usize,
    seen: bool,
}

impl Ending {
    /// Whether it is time for a check after this many passes.
    pub fn is_due(&self, passes: usize) -> bool {
        passes >= self.next
    }

    /// Passes in all after which the sweep will end, by the last check.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Checks whether the sweep ends now. `smallest`: what would be seen by now, `asked`:
    /// what is asked for, both as logarithms above 0.
    pub fn check(&mut self, passes: usize, smallest: f64, asked: f64) -> bool {
        let before = std::mem::replace(&mut self.seen, smallest <= asked);
        self.next = (passes as f64 * PASSES_BETWEEN_CHECKS).ceil() as usize;
        // What would be seen falls with the root of the passes.
        let until_seen = (passes as f64 * (smallest / asked).powi(2)).min(1e6).ceil() as usize;
        self.wanted = until_seen.max(self.next);
        before && self.seen
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use model::Better;

    use super::super::{Knob, Observation, Question, Shape, detectable_effect, surface};
    use super::*;
    use crate::noise::Noise;
    use crate::ranks::shuffled;

    const ASKED: f64 = 0.05;
    const MIN_PASSES: usize = 4;
    const MAX_PASSES: usize = 150;

    #[test]
    fn one_lucky_look_is_not_enough() {
        let mut ending = Ending::default();
        assert!(ending.is_due(MIN_PASSES) && !ending.check(4, 0.03, 0.05));
        // As long as the next check.
        assert!(!ending.is_due(4) && ending.is_due(5) && ending.wanted() == 5);
        assert!(!ending.check(5, 0.10, 0.05), "the next one does not see it");
        assert_eq!(ending.wanted(), 20, "four times as many passes halve it");
        assert!(!ending.check(20, 0.05, 0.05) && ending.is_due(23) && ending.check(23, 0.04, 0.05));
        // Where nothing can be asked, nothing is waited for.
        let mut ending = Ending::default();
        assert!(!ending.check(4, 0.0, 0.05) && ending.check(5, 0.0, 0.05));
    }

    /// Sweeps a knob of six values, one of them slower by 5 %, until the sweep ends, and gives
    /// whether it found a difference; `None` where it does not end within `most` passes.
    fn told(noise: Noise, seed: u64, most: usize) -> Option<bool> {
        let mut rng = Rng::with_seed(seed);
        let mut observations: Vec<Observation> = Vec::new();
        let mut ending = Ending::default();
        for passes in 1..=most {
            let cells = std::iter::once(6).chain(shuffled(6, &mut rng));
            for cell in cells.collect::<Vec<usize>>() {
                let planted = if cell == 3 { 1.0 + ASKED } else { 1.0 };
                let value = planted * noise.draw(&mut rng);
                observations.push(Observation {
                    cell,
                    pass: passes as u32,
                    at: observations.len() as f64,
                    value,
                });
            }
            if passes < MIN_PASSES || !ending.is_due(passes) {
                continue;
            }
            let shape = Shape { columns: 6, rows: 1 };
            let knobs = [Knob::default(), Knob::default()];
            let question = Question {
                shape,
                knobs,
                control: 6,
                observations: &observations,
                better: Better::Lower,
                seed,
            };
            if ending.check(passes, detectable_effect(&question).expect("a floor"), ASKED.ln_1p()) {
                return Some(surface(&question).expect("a surface").matters.yes);
            }
        }
        None
    }

    /// A floor that leaves out the slower visits, as the fit does, ends such sweeps when they
    /// detect the effect in 55 to 76 of 100.
    #[test]
    fn a_sweep_that_ends_has_told_its_effect_also_of_two_modes() {
        const SWEEPS: u64 = 80;
        let two = |minority| Noise::TwoModes { cv: 0.01, ratio: 1.3, minority };
        for (noise, least) in [(Noise::Lognormal { cv: 0.03 }, 80), (two(0.1), 80), (two(0.2), 8)] {
            let ended: Vec<bool> = (0..SWEEPS).filter_map(|seed| told(noise, seed, MAX_PASSES)).collect();
            let yes = ended.iter().filter(|told| **told).count();
            assert!(ended.len() >= least, "{} end", ended.len());
            assert!(5 * yes >= 4 * ended.len(), "{yes} of {} tell it", ended.len());
        }
        // Three of ten slower by 30 %: far more passes would be needed, and luck ends none.
        assert!((0..SWEEPS).all(|seed| told(two(0.3), seed, 40).is_none()));
    }
}
