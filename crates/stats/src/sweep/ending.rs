//! When a sweep that asks for an effect has seen enough.

/// From one look to the next there are this many times as many passes: looking is not free in large
/// maps.
const PASSES_BETWEEN_LOOKS: f64 = 1.15;

/// The looks of a sweep at what it would have seen by now.
///
/// It ends after two looks in a row at which the effect would be seen. What would be seen rests on
/// the noise of few passes, and a figure of two modes may keep to one of them for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    next: usize,
    wanted: usize,
    seen: bool,
}

impl Ending {
    /// Whether it is time for a look after so many passes.
    pub fn is_due(&self, passes: usize) -> bool {
        passes >= self.next
    }

    /// Passes in all after which the sweep will end, as far as the last look tells.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Takes a look: whether the sweep ends now. `smallest`: what would be seen by now, `asked`:
    /// what is asked for, both as logarithms above 0.
    pub fn look(&mut self, passes: usize, smallest: f64, asked: f64) -> bool {
        let before = std::mem::replace(&mut self.seen, smallest <= asked);
        self.next = (passes as f64 * PASSES_BETWEEN_LOOKS).ceil() as usize;
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

    use super::super::{Knob, Look, Question, Shape, seen};
    use super::*;
    use crate::noise::Noise;
    use crate::ranks::shuffled;

    const ASKED: f64 = 0.05;
    const LEAST: usize = 4;
    const MOST: usize = 40;

    #[test]
    fn one_lucky_look_is_not_enough() {
        let mut ending = Ending::default();
        assert!(ending.is_due(LEAST) && !ending.look(4, 0.03, 0.05));
        // As long as the next look.
        assert!(!ending.is_due(4) && ending.is_due(5) && ending.wanted() == 5);
        assert!(!ending.look(5, 0.10, 0.05), "the next one does not see it");
        assert_eq!(ending.wanted(), 20, "four times as many passes halve it");
        assert!(!ending.look(20, 0.05, 0.05) && ending.is_due(23) && ending.look(23, 0.04, 0.05));
        // Where nothing can be asked, nothing is waited for.
        let mut ending = Ending::default();
        assert!(!ending.look(4, 0.0, 0.05) && ending.look(5, 0.0, 0.05));
    }

    /// Passes at which sweeps over a knob of six values end: at the first look that would see the
    /// effect, and by the rule.
    fn ended(noise: Noise, seed: u64) -> [usize; 2] {
        let mut rng = Rng::with_seed(seed);
        let mut looks: Vec<Look> = Vec::new();
        for pass in 0..MOST as u32 {
            let cells = std::iter::once(6).chain(shuffled(6, &mut rng));
            for cell in cells.collect::<Vec<usize>>() {
                looks.push(Look { cell, pass, at: looks.len() as f64, value: noise.draw(&mut rng) });
            }
        }
        let knob = Knob { before: 0, places: Some(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]) };
        let smallest = |passes: usize| {
            let looks: Vec<Look> =
                looks.iter().filter(|look| (look.pass as usize) < passes).copied().collect();
            let shape = Shape { columns: 6, rows: 1 };
            let knobs = [knob, Knob::default()];
            let better = Better::Lower;
            seen(&Question { shape, knobs, control: 6, looks: &looks, better, seed }).expect("a floor")
        };
        let (mut ending, mut first) = (Ending::default(), None);
        for passes in LEAST..MOST {
            if !ending.is_due(passes) {
                continue;
            }
            let smallest = smallest(passes);
            first = first.or((smallest <= ASKED.ln_1p()).then_some(passes));
            if ending.look(passes, smallest, ASKED.ln_1p()) {
                return [first.unwrap_or(MOST), passes];
            }
        }
        [first.unwrap_or(MOST), MOST]
    }

    /// Three visits of ten are slower by 30 %: 40 passes are too few for 5 %, and a sweep that ends
    /// before had luck.
    #[test]
    fn a_figure_of_two_modes_ends_a_sweep_less_often_by_luck() {
        const SWEEPS: u64 = 60;
        let two = Noise::TwoModes { cv: 0.01, ratio: 1.3, minority: 0.3 };
        let all: Vec<[usize; 2]> = (0..SWEEPS).map(|seed| ended(two, seed)).collect();
        let lucky = |rule: usize| all.iter().filter(|ended| ended[rule] < MOST).count();
        assert!(lucky(0) >= 12 && 3 * lucky(1) <= 2 * lucky(0), "{} and {}", lucky(0), lucky(1));
        // One mode: a look more.
        let one: Vec<[usize; 2]> = (0..20).map(|seed| ended(Noise::Lognormal { cv: 0.03 }, seed)).collect();
        let passes = |rule: usize| one.iter().map(|ended| ended[rule]).sum::<usize>() as f64;
        assert!(one.iter().all(|ended| ended[1] < MOST));
        assert!(passes(1) <= 1.3 * passes(0), "{} and {}", passes(1), passes(0));
    }
}
