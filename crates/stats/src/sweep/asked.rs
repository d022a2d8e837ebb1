//! What is asked of a sweep with all of its looks, before any single cell: does each knob matter, does the metric rise or
//! fall along a knob whose values have an order, do both knobs together do what neither does alone.
//!
//! A knob's own questions are tested by permutation: its values are exchanged within a pass and within one value of the
//! other knob, so that what the other one does, and what the machine did from pass to pass, is no noise. Where the knob does
//! nothing each order was as likely, whatever the other one does: the test is exact.

use super::fit::{Contrast, Fit, Passes, Point, fit};
use super::matters::floor;
use super::{Knob, Shape};
use crate::multiple::holm;
use crate::order::{MAD_TO_SIGMA, mad, median};
use crate::tails::{normal_quantile, permutation_p, t_quantile};

/// Over all questions of a surface.
pub const ALPHA: f64 = 0.05;
/// Permutations of a test: p is 0.0005 at least.
const PERMUTATIONS: usize = 1999;
/// Residuals count up to so many robust standard deviations, so that no single look decides.
const CLIP: f64 = 5.0;
/// How often a trend at its floor is told.
const SEEN: f64 = 0.8;

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Do the values of a knob differ? Axis 0 is the columns' knob, 1 the rows'.
    Main { axis: usize },
    /// Does the metric rise or fall along a knob?
    Trend { axis: usize },
    /// Does what one knob does depend on the other?
    Together,
    /// Do any two cells differ?
    Any,
}

impl Asked {
    /// Of one knob alone: which one.
    pub fn axis(self) -> Option<usize> {
        match self {
            Asked::Main { axis } | Asked::Trend { axis } => Some(axis),
            Asked::Together | Asked::Any => None,
        }
    }
}

/// What the looks say to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub asked: Asked,
    /// That there is nothing, of this question alone ...
    pub p: f64,
    /// ... and after Holm's correction over all questions of the surface.
    pub holm: f64,
    /// Of a main effect, each value of the knob over the one that was there before (or the first), at equal values of the other
    /// knob; of a trend, the last value over the first on a straight line. `None` without looks.
    pub effects: Vec<Option<Contrast>>,
    /// Logarithm of the smallest effect that would have been told in about four of five cases; `None` where no single number
    /// says it.
    pub floor: Option<f64>,
}

impl Answer {
    /// Whether there is an effect, at 5 % over all questions.
    pub fn is_yes(&self) -> bool {
        self.holm <= ALPHA
    }
}

/// All that is asked of the cells `0..shape.cells()`.
pub fn answers(points: &[Point], shape: Shape, knobs: &[Knob; 2], fitted: &Fit, seed: u64) -> Vec<Answer> {
    let grid = Grid { shape, fitted };
    let mut all: Vec<Answer> = Vec::new();
    let mut add = |asked: Asked, p: f64, effects: Vec<Option<Contrast>>| {
        all.push(Answer { asked, p, holm: p, effects, floor: None });
    };
    let axes: Vec<usize> = (0..2).filter(|axis| grid.values(*axis) > 1).collect();
    for &axis in &axes {
        let (along, across) = (|cell| grid.place(cell, axis), |cell| grid.place(cell, 1 - axis));
        let looks = Exchanged::of(points, shape.cells(), along, across);
        add(Asked::Main { axis }, looks.differ(seed), grid.mains(axis, knobs[axis].before));
        let places =
            knobs[axis].places.filter(|places| places.len() == grid.values(axis) && places.len() > 2);
        if let Some(places) = places {
            add(Asked::Trend { axis }, looks.trend(places, seed), vec![grid.trend(axis, places)]);
        }
    }
    if let [_, _] = axes.as_slice() {
        add(Asked::Together, grid.together(points, seed), Vec::new());
        let looks = Exchanged::of(points, shape.cells(), |cell| cell, |_| 0);
        add(Asked::Any, looks.differ(seed), Vec::new());
    }
    let corrected = holm(&all.iter().map(|answer| answer.p).collect::<Vec<f64>>());
    let alpha = ALPHA / all.len().max(1) as f64;
    for (answer, holm) in all.iter_mut().zip(corrected) {
        answer.holm = holm;
        answer.floor = grid.floor(answer, alpha);
    }
    all
}

/// A look: what it may be exchanged within, what is exchanged, and its value.
struct Own {
    group: (usize, u32),
    label: usize,
    value: f64,
}

/// The looks of a grid, as values of a label that may be exchanged within groups.
#[derive(Clone)]
struct Exchanged {
    /// Of each group, whose looks it holds, and how far they lie from the group's mean.
    groups: Vec<(Vec<usize>, Vec<f64>)>,
    /// Looks of each label.
    counts: Vec<f64>,
}

impl Exchanged {
    /// Labels are exchanged within a pass and within a `stratum` of cells. The drift is taken out without asking for labels.
    fn of(
        points: &[Point],
        cells: usize,
        label: impl Fn(usize) -> usize,
        stratum: impl Fn(usize) -> usize,
    ) -> Exchanged {
        let own = |cell: usize| if cell < cells { 1 + stratum(cell) } else { 0 };
        let blind: Vec<Point> =
            points.iter().map(|point| Point { cell: own(point.cell), ..*point }).collect();
        let settings = blind.iter().map(|point| point.cell + 1).max().unwrap_or(0);
        let drift = fit(&blind, settings, Passes::Alike)
            .map_or_else(|| vec![0.0; points.len()], |fitted| fitted.drift);
        let looks = points.iter().zip(&drift).filter(|(point, _)| point.cell < cells);
        let mut looks: Vec<Own> = looks
            .map(|(point, drift)| Own {
                group: (stratum(point.cell), point.pass),
                label: label(point.cell),
                value: point.log - drift,
            })
            .collect();
        // Each stratum around its own middle.
        looks.sort_by_key(|look| look.group);
        for own in looks.chunk_by_mut(|a, b| a.group.0 == b.group.0) {
            let middle = median(&own.iter().map(|look| look.value).collect::<Vec<f64>>()).unwrap_or(0.0);
            own.iter_mut().for_each(|look| look.value -= middle);
        }
        Exchanged::within(looks)
    }

    /// Values around zero, clipped.
    fn within(mut looks: Vec<Own>) -> Exchanged {
        let scale = mad(&looks.iter().map(|look| look.value).collect::<Vec<f64>>()).unwrap_or(0.0);
        let clip = if scale > 0.0 { CLIP * MAD_TO_SIGMA * scale } else { f64::INFINITY };
        let mut counts = vec![0.0; looks.iter().map(|look| look.label + 1).max().unwrap_or(0)];
        let mut groups = Vec::new();
        looks.sort_by_key(|look| look.group);
        for own in looks.chunk_by(|a, b| a.group == b.group) {
            let labels: Vec<usize> = own.iter().map(|look| look.label).collect();
            let mut values: Vec<f64> = own.iter().map(|look| look.value.clamp(-clip, clip)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter_mut().for_each(|value| *value -= mean);
            labels.iter().for_each(|label| counts[*label] += 1.0);
            groups.push((labels, values));
        }
        Exchanged { groups, counts }
    }

    fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.counts.len()];
        for (labels, values) in &self.groups {
            labels.iter().zip(values).for_each(|(label, value)| sums[*label] += value);
        }
        sums
    }

    /// `share`: that of their variance which values have left where something was fitted to them before.
    fn p(&self, seed: u64, share: f64, statistic: impl Fn(&[f64]) -> f64) -> f64 {
        let observed = statistic(&self.sums()) * share * (1.0 - 1e-9);
        let mut exchanged = self.clone();
        permutation_p(PERMUTATIONS, seed, |rng| {
            exchanged.groups.iter_mut().for_each(|(_, values)| rng.shuffle(values));
            statistic(&exchanged.sums()) >= observed
        })
    }

    /// p that no label differs from another.
    fn differ(&self, seed: u64) -> f64 {
        self.p(seed, 1.0, |sums| {
            sums.iter().zip(&self.counts).filter(|(_, n)| **n > 0.0).map(|(sum, n)| sum * sum / n).sum()
        })
    }

    /// p that values do not rise or fall with the places of their labels.
    fn trend(&self, places: &[f64], seed: u64) -> f64 {
        self.p(seed, 1.0, |sums| sums.iter().zip(places).map(|(sum, place)| sum * place).sum::<f64>().powi(2))
    }
}

struct Grid<'a> {
    shape: Shape,
    fitted: &'a Fit,
}

impl Grid<'_> {
    /// Values of an axis's knob.
    fn values(&self, axis: usize) -> usize {
        if axis == 0 { self.shape.columns } else { self.shape.rows }
    }

    /// Which of them a cell has.
    fn place(&self, cell: usize, axis: usize) -> usize {
        if axis == 0 { cell % self.shape.columns } else { cell / self.shape.columns }
    }

    fn cell(&self, axis: usize, along: usize, across: usize) -> usize {
        if axis == 0 { across * self.shape.columns + along } else { along * self.shape.columns + across }
    }

    /// Lines along an axis: of each value of the other knob, the places that have looks.
    fn lines(&self, axis: usize) -> Vec<Vec<(usize, usize)>> {
        let line = |across: usize| {
            let cells = (0..self.values(axis)).map(|along| (along, self.cell(axis, along, across)));
            cells.filter(|(_, cell)| self.fitted.count(*cell) > 0).collect()
        };
        (0..self.values(1 - axis)).map(line).collect()
    }

    /// The mean contrast of several, each a list of weighted cells.
    fn mean(&self, each: &[Vec<(usize, f64)>]) -> Option<Contrast> {
        let share = 1.0 / each.len().max(1) as f64;
        let weights: Vec<(usize, f64)> =
            each.iter().flatten().map(|(cell, weight)| (*cell, weight * share)).collect();
        (!each.is_empty()).then(|| self.fitted.contrast(&weights)).flatten()
    }

    /// Each value of a knob over one of them, over all lines that have both.
    fn mains(&self, axis: usize, before: usize) -> Vec<Option<Contrast>> {
        let lines = self.lines(axis);
        let of = |value: usize| {
            let pair = |line: &Vec<(usize, usize)>| {
                let at =
                    |wanted: usize| line.iter().find(|(along, _)| *along == wanted).map(|(_, cell)| *cell);
                Some(vec![(at(value)?, 1.0), (at(before)?, -1.0)])
            };
            self.mean(&lines.iter().filter_map(pair).collect::<Vec<_>>())
        };
        (0..self.values(axis)).map(of).collect()
    }

    /// From the lowest to the highest place by the straight lines through all lines.
    fn trend(&self, axis: usize, places: &[f64]) -> Option<Contrast> {
        let (low, high) =
            places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        let slope = |line: &Vec<(usize, usize)>| {
            let mean = line.iter().map(|(along, _)| places[*along]).sum::<f64>() / line.len() as f64;
            let squares: f64 = line.iter().map(|(along, _)| (places[*along] - mean).powi(2)).sum();
            let weight =
                |(along, cell): &(usize, usize)| (*cell, (high - low) * (places[*along] - mean) / squares);
            (squares > 0.0).then(|| line.iter().map(weight).collect())
        };
        self.mean(&self.lines(axis).iter().filter_map(slope).collect::<Vec<_>>())
    }

    /// What the sum of both knobs' effects leaves of cells' values, of which each stands for so many looks.
    fn left_of_sum(&self, mut values: Vec<f64>, counts: &[f64]) -> Vec<f64> {
        // One round is enough where all cells have as many looks.
        const ROUNDS: usize = 4;
        for axis in [0, 1].repeat(ROUNDS) {
            let mut sums = vec![(0.0, 0.0); self.values(axis)];
            for (cell, (value, n)) in values.iter().zip(counts).enumerate() {
                let sum = &mut sums[self.place(cell, axis)];
                *sum = (sum.0 + n * value, sum.1 + n);
            }
            for (cell, value) in values.iter_mut().enumerate() {
                let (sum, n) = sums[self.place(cell, axis)];
                *value -= if n > 0.0 { sum / n } else { 0.0 };
            }
        }
        values
    }

    /// Looks less the sum of both knobs' effects on them.
    fn beyond_sum(&self, points: &[Point]) -> Vec<Point> {
        let (mut sums, mut counts) = (vec![0.0; self.shape.cells()], vec![0.0; self.shape.cells()]);
        let own = || points.iter().filter(|point| point.cell < self.shape.cells());
        own().for_each(|point| counts[point.cell] += 1.0);
        own().for_each(|point| sums[point.cell] += point.log / counts[point.cell]);
        let left = self.left_of_sum(sums.clone(), &counts);
        let rest = |point: &Point| Point { log: point.log - sums[point.cell] + left[point.cell], ..*point };
        own().map(rest).collect()
    }

    /// p that what one knob does is the same at each value of the other, by what the sum of both leaves of the looks, exchanged
    /// within passes. The drift is taken out knowing no more than that sum.
    fn together(&self, points: &[Point], seed: u64) -> f64 {
        let beyond = self.beyond_sum(points);
        let blind: Vec<Point> = beyond.iter().map(|point| Point { cell: 0, ..*point }).collect();
        let drift =
            fit(&blind, 1, Passes::Alike).map_or_else(|| vec![0.0; blind.len()], |fitted| fitted.drift);
        let still =
            beyond.iter().zip(&drift).map(|(point, drift)| Point { log: point.log - drift, ..*point });
        let own = |point: Point| Own { group: (0, point.pass), label: point.cell, value: point.log };
        let looks = self.beyond_sum(&still.collect::<Vec<Point>>()).into_iter().map(own);
        let looks = Exchanged::within(looks.collect());
        let counts: Vec<f64> =
            (0..self.shape.cells()).map(|cell| looks.counts.get(cell).copied().unwrap_or(0.0)).collect();
        let free = 1.0 - (self.shape.columns + self.shape.rows - 1) as f64 / counts.iter().sum::<f64>();
        looks.p(seed, free, |sums| {
            let mean = |(cell, n): (usize, &f64)| if *n > 0.0 { sums[cell] / n } else { 0.0 };
            let left = self.left_of_sum(counts.iter().enumerate().map(mean).collect(), &counts);
            left.iter().zip(&counts).map(|(left, n)| n * left * left).sum()
        })
    }

    /// What would have been told, where each question is tested at `alpha`.
    fn floor(&self, answer: &Answer, alpha: f64) -> Option<f64> {
        let among = |levels: usize, level: &dyn Fn(usize) -> usize| {
            let mut counts = vec![0; levels];
            (0..self.shape.cells()).for_each(|cell| counts[level(cell)] += self.fitted.count(cell));
            floor(&counts, self.fitted.sigma, alpha)
        };
        let single = |effect: &Contrast| {
            Some(effect.error * (t_quantile(1.0 - alpha, effect.freedom)? + normal_quantile(SEEN)?))
        };
        match answer.asked {
            // A difference of two: the value that was there before has no error.
            Asked::Main { axis } if self.values(axis) == 2 => {
                single(answer.effects.iter().flatten().find(|effect| effect.error > 0.0)?)
            }
            Asked::Main { axis } => Some(among(self.values(axis), &|cell| self.place(cell, axis))),
            Asked::Trend { .. } => single(answer.effects.first()?.as_ref()?),
            Asked::Any => Some(among(self.shape.cells(), &|cell| cell)),
            Asked::Together => None,
        }
    }
}
