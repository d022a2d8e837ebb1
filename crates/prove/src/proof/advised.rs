//! What a sweep advises at its end: a planted compromise by its region, and nothing where nothing
//! is planted.

use fastrand::Rng;

use super::sweeps::Drift;
use super::{PLANTED_GAIN, Rate, sums};
use model::Better;
use stats::noise::{Noise, autoregressive};
use stats::ranks::shuffled;
use stats::sweep::{
    Advised, Ending, Knob, MAX_RESPONSE_LOSS, Observation, Question, Shape, advice, detectable_effect,
    surface,
};

/// A sweep of a target and of its response, measured until an effect of 5 % would be seen of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advising {
    /// 7 × 7: nine settings with [`PLANTED_GAIN`] more throughput at the same response, and six
    /// others with more of it at a much worse response. Else nothing differs.
    pub planted: bool,
    /// Without a plant: a curve of 12 instead of a map.
    pub curve: bool,
    /// Relative standard deviation of a pass of the target and of the response.
    pub cv: [f64; 2],
    pub drift: Drift,
    /// Passes at most.
    pub most: u32,
}

/// What was advised in many sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdvisedOf {
    /// Sweeps that advise anything.
    pub anything: Rate,
    /// Sweeps whose compromise has the planted region: more than half of the cells of both together
    /// are in both.
    pub region: Rate,
    /// Sweeps whose compromise names a planted setting.
    pub setting: Rate,
    /// Compromises whose true response is more than [`MAX_RESPONSE_LOSS`] worse.
    pub worse: Rate,
    /// Intervals of gains that contain the truth.
    pub covered: Rate,
    /// Sweeps in which the effect asked for would have been seen in the end.
    pub seen: Rate,
    /// Their passes, summed up.
    pub passes: usize,
}

sums!(AdvisedOf: anything, region, setting, worse, covered, seen, passes);

/// The effect that is asked for, and the fewest passes.
const ASKED: f64 = 0.05;
const MIN_PASSES: u32 = 4;
/// What the better throughput elsewhere costs, as logarithms: of time, of response.
const TRAP: [f64; 2] = [-0.10, 0.34];

/// Levels of both metrics by cell, the control outside of the grid or in it, and the planted cells.
struct Truth {
    shape: Shape,
    control: usize,
    levels: [Vec<f64>; 2],
    cells: Vec<usize>,
}

impl Truth {
    fn draw(of: Advising, inside: bool, rng: &mut Rng) -> Truth {
        let shape = if of.curve { Shape { columns: 12, rows: 1 } } else { Shape { columns: 7, rows: 7 } };
        let mut levels = [vec![0.0; shape.cells()], vec![0.0; shape.cells()]];
        let mut cells = Vec::new();
        if of.planted {
            let (x, y, trap) = (rng.usize(0..5), rng.usize(3..5), rng.usize(1..5));
            let [times, delays] = &mut levels;
            for (cell, (time, delay)) in times.iter_mut().zip(delays).enumerate() {
                let (row, column) = (cell / shape.columns, cell % shape.columns);
                if (y..y + 3).contains(&row) && (x..x + 3).contains(&column) {
                    *time = (1.0 - PLANTED_GAIN).ln();
                    cells.push(cell);
                }
                if row < 2 && (trap..trap + 3).contains(&column) {
                    [*time, *delay] = TRAP;
                }
            }
        }
        let control = if inside { 0 } else { shape.cells() };
        Truth { shape, control, levels, cells }
    }

    fn level(&self, metric: usize, cell: usize) -> f64 {
        self.levels[metric].get(cell).copied().unwrap_or(0.0)
    }

    /// The mean of an area over the control.
    fn mean(&self, metric: usize, advised: &Advised) -> f64 {
        let cells: Vec<usize> = advised.area.cells(self.shape.columns).collect();
        let sum: f64 = cells.iter().map(|cell| self.level(metric, *cell)).sum();
        sum / cells.len() as f64 - self.level(metric, self.control)
    }

    fn question<'a>(&self, observations: &'a [Observation], places: &'a [f64], seed: u64) -> Question<'a> {
        let knob = |values: usize| Knob { before: 0, places: (values > 2).then_some(&places[..values]) };
        Question {
            shape: self.shape,
            knobs: [knob(self.shape.columns), knob(self.shape.rows)],
            control: self.control,
            observations,
            better: Better::Lower,
            seed,
        }
    }
}

/// All observations of the most passes, of both metrics in pairs.
fn looks(of: Advising, truth: &Truth, rng: &mut Rng) -> [Vec<Observation>; 2] {
    let mut order: Vec<(usize, u32)> = Vec::new();
    for pass in 0..of.most {
        for (place, cell) in shuffled(truth.shape.cells(), rng).into_iter().enumerate() {
            order.extend((place % 8 == 0).then_some((truth.control, pass)));
            order.extend((cell != truth.control).then_some((cell, pass)));
        }
    }
    let n = order.len();
    let step = rng.usize(1..n);
    let wander = autoregressive(n, 0.95, rng);
    [0, 1].map(|metric| {
        let noise = Noise::Lognormal { cv: of.cv[metric] };
        let each = order.iter().enumerate().map(|(index, (cell, pass))| {
            let drift = of.drift.at(index, n, step, &wander);
            let value = (truth.level(metric, *cell) + drift).exp() * noise.draw(rng);
            Observation { cell: *cell, pass: *pass, at: index as f64, value }
        });
        each.collect()
    })
}

/// Simulates `trials` sweeps with the rule that ends them, and reads what each advises.
pub fn advised(of: Advising, trials: usize, seed: u64) -> AdvisedOf {
    let mut rng = Rng::with_seed(seed);
    let mut found = AdvisedOf::default();
    for trial in 0..trials {
        let truth = Truth::draw(of, trial % 2 == 1, &mut rng);
        let all = looks(of, &truth, &mut rng);
        let places: Vec<f64> = (0..truth.shape.cells()).map(|place| place as f64).collect();
        let until = |passes: u32| {
            all.each_ref().map(|looks| -> Vec<Observation> {
                looks.iter().filter(|look| look.pass < passes).copied().collect()
            })
        };
        let smallest = |passes: u32| -> f64 {
            let of = |looks: &Vec<Observation>| {
                detectable_effect(&truth.question(looks, &places, trial as u64)).unwrap_or(f64::INFINITY)
            };
            until(passes).iter().map(of).fold(0.0, f64::max)
        };
        let mut ending = Ending::default();
        let is_over = |passes: &u32| {
            let now = *passes as usize;
            ending.is_due(now) && ending.check(now, smallest(*passes), ASKED.ln_1p())
        };
        let passes = (MIN_PASSES..of.most).find(is_over).unwrap_or(of.most);
        let kept = until(passes);
        let questions = kept.each_ref().map(|looks| truth.question(looks, &places, trial as u64));
        let [Some(target), Some(response)] = questions.each_ref().map(surface) else { continue };
        found.seen.count(
            [&target, &response]
                .iter()
                .all(|own| own.detectable_effect().is_some_and(|s| s <= ASKED.ln_1p())),
        );
        let said = advice((&questions[0], &target), Some((&questions[1], &response)));
        found.passes += passes as usize;
        let each = [said.target, said.response, said.both];
        found.anything.count(each.iter().any(Option::is_some));
        for (metric, own) in [0, 1, 0].into_iter().zip(each) {
            let Some(own) = own else { continue };
            found.covered.count(own.gain.interval.contains(truth.mean(metric, &own)));
        }
        if let Some(both) = said.both {
            found.worse.count(truth.mean(1, &both) > MAX_RESPONSE_LOSS.ln_1p());
        }
        if of.planted {
            let cells: Vec<usize> =
                said.both.map_or(Vec::new(), |both| both.area.cells(truth.shape.columns).collect());
            let shared = cells.iter().filter(|cell| truth.cells.contains(cell)).count();
            let either = cells.len() + truth.cells.len() - shared;
            found.region.count(2 * shared > either);
            found.setting.count(said.both.is_some_and(|both| truth.cells.contains(&both.cell)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{ADVICE_FOUND_LEAST, ADVICE_INVENTED_MOST};
    use super::*;

    const DRIFTS: [Drift; 4] = [Drift::None, Drift::Slow, Drift::Step, Drift::Wander];

    fn sum(of: Advising, trials: usize) -> AdvisedOf {
        let each = DRIFTS
            .iter()
            .zip(41..)
            .map(|(drift, seed)| advised(Advising { drift: *drift, ..of }, trials, seed));
        each.fold(AdvisedOf::default(), AdvisedOf::and)
    }

    #[test]
    fn a_planted_compromise_is_named_with_its_region() {
        let of = Advising { planted: true, curve: false, cv: [0.08; 2], drift: Drift::None, most: 30 };
        let found = sum(of, 3);
        assert!(found.region.share() >= ADVICE_FOUND_LEAST, "{found:?}");
        // The claim is not empty: of few passes nothing follows.
        let few = sum(Advising { cv: [0.3; 2], most: 4, ..of }, 1);
        assert_eq!(few.region.hits, 0, "{few:?}");
    }

    #[test]
    fn where_nothing_is_planted_nothing_is_advised() {
        let of = Advising { planted: false, curve: true, cv: [0.03, 0.08], drift: Drift::None, most: 12 };
        let found = sum(of, 40);
        assert!(found.anything.share() <= ADVICE_INVENTED_MOST, "{found:?}");
    }
}
