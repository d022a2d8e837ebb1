//! Hypothesis tests over all observations of a sweep: does each knob matter, does the metric rise
//! or fall along an ordered knob, do the knobs interact.
//!
//! A knob's own hypotheses are tested by permutation within a pass and within one value of the
//! other knob. So the other knob and the host's changes from pass to pass add no noise: the test is
//! exact.
//!
//! Any two cells: several statistics count together ([`Exchanged::jointly`]). All statements
//! together err in at most 5 % ([`closed`]).

mod closed;
pub mod scan;

use fastrand::Rng;

use super::fit::{Contrast, Fit, LogValue, PassLevels, fit};
use super::matters::floor;
use super::{Knob, Shape};
use crate::order::{MAD_TO_SIGMA, mad, median};
use crate::tails::{normal_quantile, permutation_p, t_quantile};

use self::scan::Scan;

/// Over all questions of a surface.
pub const ALPHA: f64 = 0.05;
/// Permutations of a test: p is 0.001 at least.
const PERMUTATIONS: usize = 999;
/// Residuals count up to this many robust standard deviations, so that no single observation
/// decides.
const CLIP_SIGMAS: f64 = 5.0;
/// How often an effect of the smallest detectable size is detected.
const DETECTION_POWER: f64 = 0.8;

/// What is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hypothesis {
    /// Do the values of a knob differ? Axis 0 is the columns' knob, 1 the rows'.
    Main { axis: usize },
    /// Does the metric rise or fall along a knob?
    Trend { axis: usize },
    /// Does what one knob does depend on the other?
    Interaction,
    /// Do any two cells differ?
    Any,
}

impl Hypothesis {
    /// The knob, if it is about one knob alone.
    pub fn axis(self) -> Option<usize> {
        match self {
            Hypothesis::Main { axis } | Hypothesis::Trend { axis } => Some(axis),
            Hypothesis::Interaction | Hypothesis::Any => None,
        }
    }
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResult {
    pub hypothesis: Hypothesis,
    /// p that there is no effect, of this test alone.
    pub p: f64,
    /// The same, adjusted for all tests of the surface (closed testing).
    pub adjusted: f64,
    /// Of a main effect, each value of the knob over the one that was there before (or the first),
    /// at equal values of the other knob; of a trend, the last value over the first on a straight
    /// line. `None` without observations.
    pub effects: Vec<Option<Contrast>>,
    /// Logarithm of the smallest effect that would have been detected in about four of five cases;
    /// `None` if no single number describes it.
    pub floor: Option<f64>,
}

impl TestResult {
    /// Whether there is an effect, at 5 % over all tests.
    pub fn is_yes(&self) -> bool {
        self.adjusted <= ALPHA
    }
}

/// Weights of the statistics of a knob whose values have an order: do they differ, do neighbours
/// differ from the others, do they rise or fall.
const WEIGHTS_ORDERED: [f64; 3] = [0.4, 0.3, 0.3];
/// Weights for one without an order.
const WEIGHTS_UNORDERED: [f64; 3] = [1.0, 0.0, 0.0];
/// Weights of the statistics of all cells: do they differ, does a rectangle of them differ from
/// the others, do the columns' means, do the rows', what is left.
const WEIGHTS_CELLS: [f64; 5] = [0.3, 0.3, 0.15, 0.15, 0.1];

/// The tests of the cells `0..shape.cells()`, with effects and smallest detectable effects, but
/// without p-values.
pub fn questions(shape: Shape, knobs: &[Knob; 2], fitted: &Fit) -> Vec<TestResult> {
    let grid = Grid { shape, fitted };
    let mut all: Vec<TestResult> = Vec::new();
    let mut add = |hypothesis: Hypothesis, effects: Vec<Option<Contrast>>| {
        all.push(TestResult { hypothesis, p: 1.0, adjusted: 1.0, effects, floor: None });
    };
    let axes: Vec<usize> = (0..2).filter(|axis| grid.values(*axis) > 1).collect();
    for &axis in &axes {
        add(Hypothesis::Main { axis }, grid.mains(axis, knobs[axis].before));
        if let Some(places) = grid.places(axis, knobs) {
            add(Hypothesis::Trend { axis }, vec![grid.trend(axis, places)]);
        }
    }
    if let [_, _] = axes.as_slice() {
        add(Hypothesis::Interaction, Vec::new());
        add(Hypothesis::Any, Vec::new());
    }
    for answer in &mut all {
        answer.floor = grid.floor(answer, axes.len());
    }
    all
}

/// The same with the tests' p-values.
pub fn results(
    points: &[LogValue],
    shape: Shape,
    knobs: &[Knob; 2],
    fitted: &Fit,
    seed: u64,
) -> Vec<TestResult> {
    let grid = Grid { shape, fitted };
    let mut all = questions(shape, knobs, fitted);
    let mut rising = 1.0;
    for answer in &mut all {
        answer.p = match answer.hypothesis {
            Hypothesis::Main { axis } => {
                let (along, across) = (|cell| grid.place(cell, axis), |cell| grid.place(cell, 1 - axis));
                let observations = Exchanged::of(points, shape.cells(), along, across);
                let places = grid.places(axis, knobs);
                let scan = Scan::of(Shape { columns: grid.values(axis), rows: 1 }, &observations.counts);
                let weights = if places.is_some() { WEIGHTS_ORDERED } else { WEIGHTS_UNORDERED };
                let (p, [_, _, own]) = observations.jointly(seed, weights, |sums| match places {
                    Some(places) => [observations.apart(sums), scan.most(sums), risen(sums, places)],
                    None => [observations.apart(sums), 0.0, 0.0],
                });
                rising = own;
                p
            }
            // Tested with its knob, right before.
            Hypothesis::Trend { .. } => rising,
            Hypothesis::Interaction => grid.together(points, seed),
            Hypothesis::Any => {
                let observations = Exchanged::of(points, shape.cells(), |cell| cell, |_| 0);
                let scan = Scan::of(shape, &observations.counts);
                let (p, _) = observations.jointly(seed, WEIGHTS_CELLS, |sums| {
                    let [columns, rows] = [0, 1].map(|axis| grid.apart(axis, sums, &observations.counts));
                    let all = observations.apart(sums);
                    [all, scan.most(sums), columns, rows, grid.beyond(sums, &observations.counts)]
                });
                p
            }
        };
        answer.adjusted = answer.p;
    }
    closed::adjust(&mut all);
    all
}

/// The smallest difference between two values of a knob, as a logarithm, that would have been
/// detected of each knob; `None` if no knob is tested. A trend is detected earlier, and does not
/// show what only some values do.
pub fn detectable_effect(test_results: &[TestResult]) -> Option<f64> {
    let mains = test_results.iter().filter(|answer| matches!(answer.hypothesis, Hypothesis::Main { .. }));
    mains.filter_map(|answer| answer.floor).reduce(f64::max)
}

/// How much sums rise or fall with the places of their labels.
fn risen(sums: &[f64], places: &[f64]) -> f64 {
    sums.iter().zip(places).map(|(sum, place)| sum * place).sum::<f64>().abs()
}

/// An observation: the group in which it may be exchanged, the label that is exchanged, the value.
struct Labelled {
    group: (usize, u32),
    label: usize,
    value: f64,
}

/// The observations of a grid, as values of a label that may be exchanged within groups.
#[derive(Clone)]
struct Exchanged {
    groups: Vec<Group>,
    /// For each label the number of observations in its sum.
    counts: Vec<f64>,
    /// What each label's weighted values are multiplied by, so that their sum has the variance of
    /// this many observations.
    scales: Vec<f64>,
}

/// Observations that may be exchanged with each other.
#[derive(Clone)]
struct Group {
    /// Of each observation its label, and one over the group's observations of that: a cell with
    /// more observations than others counts no more.
    labels: Vec<(usize, f64)>,
    /// How far observations lie from the group's mean.
    values: Vec<f64>,
}

impl Exchanged {
    /// Labels are exchanged within a pass and within a `stratum` of cells. The drift is taken out
    /// without regard to the labels.
    fn of(
        points: &[LogValue],
        cells: usize,
        label: impl Fn(usize) -> usize,
        stratum: impl Fn(usize) -> usize,
    ) -> Exchanged {
        let cell_of_stratum = |cell: usize| if cell < cells { 1 + stratum(cell) } else { 0 };
        let blind: Vec<LogValue> =
            points.iter().map(|point| LogValue { cell: cell_of_stratum(point.cell), ..*point }).collect();
        let settings = blind.iter().map(|point| point.cell + 1).max().unwrap_or(0);
        let drift = fit(&blind, settings, PassLevels::Shared)
            .map_or_else(|| vec![0.0; points.len()], |fitted| fitted.drift);
        let observations = points.iter().zip(&drift).filter(|(point, _)| point.cell < cells);
        let mut observations: Vec<Labelled> = observations
            .map(|(point, drift)| Labelled {
                group: (stratum(point.cell), point.pass),
                label: label(point.cell),
                value: point.log - drift,
            })
            .collect();
        // Each stratum around its own middle.
        observations.sort_by_key(|one| one.group);
        for own in observations.chunk_by_mut(|a, b| a.group.0 == b.group.0) {
            let middle = median(&own.iter().map(|one| one.value).collect::<Vec<f64>>()).unwrap_or(0.0);
            own.iter_mut().for_each(|one| one.value -= middle);
        }
        Exchanged::within(observations)
    }

    /// Values around zero, clipped.
    fn within(mut observations: Vec<Labelled>) -> Exchanged {
        let scale = mad(&observations.iter().map(|one| one.value).collect::<Vec<f64>>()).unwrap_or(0.0);
        let clip = if scale > 0.0 { CLIP_SIGMAS * MAD_TO_SIGMA * scale } else { f64::INFINITY };
        let labels = observations.iter().map(|one| one.label + 1).max().unwrap_or(0);
        let mut groups = Vec::new();
        observations.sort_by_key(|one| one.group);
        for own in observations.chunk_by(|a, b| a.group == b.group) {
            let mut values: Vec<f64> = own.iter().map(|one| one.value.clamp(-clip, clip)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter_mut().for_each(|value| *value -= mean);
            let alike = |one: &Labelled| own.iter().filter(|other| other.label == one.label).count();
            let labels = own.iter().map(|one| (one.label, 1.0 / alike(one) as f64)).collect();
            groups.push(Group { labels, values });
        }
        let (mut weights, mut squares) = (vec![0.0; labels], vec![0.0; labels]);
        for (label, weight) in groups.iter().flat_map(|group| &group.labels) {
            weights[*label] += weight;
            squares[*label] += weight * weight;
        }
        let scales: Vec<f64> =
            weights.iter().zip(&squares).map(|(w, s)| if *s > 0.0 { w / s } else { 0.0 }).collect();
        let counts = weights.iter().zip(&scales).map(|(weight, scale)| weight * scale).collect();
        Exchanged { groups, counts, scales }
    }

    fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.counts.len()];
        for group in &self.groups {
            let observations = group.labels.iter().zip(&group.values);
            observations.for_each(|((label, weight), value)| sums[*label] += weight * value);
        }
        sums.iter_mut().zip(&self.scales).for_each(|(sum, scale)| *sum *= scale);
        sums
    }

    /// `share`: that of their variance which values have left where something was fitted to them
    /// before.
    fn p(&self, seed: u64, share: f64, statistic: impl Fn(&[f64]) -> f64) -> f64 {
        let observed = statistic(&self.sums()) * share * (1.0 - 1e-9);
        let mut exchanged = self.clone();
        permutation_p(PERMUTATIONS, seed, |rng| {
            exchanged.groups.iter_mut().for_each(|group| rng.shuffle(&mut group.values));
            statistic(&exchanged.sums()) >= observed
        })
    }

    /// p over several statistics of the sums together, and of each alone. Together: the smallest of
    /// their p, each over its weight, is compared with the same of exchanged observations (Westfall
    /// and Young, *Resampling-based multiple testing*, 1993). That is exact, however the statistics
    /// depend on each other.
    fn jointly<const N: usize>(
        &self,
        seed: u64,
        weights: [f64; N],
        statistics: impl Fn(&[f64]) -> [f64; N],
    ) -> (f64, [f64; N]) {
        let mut rng = Rng::with_seed(seed);
        let mut exchanged = self.clone();
        // The first are the observations as they were.
        let mut all = vec![statistics(&self.sums())];
        all.resize_with(PERMUTATIONS + 1, || {
            exchanged.groups.iter_mut().for_each(|group| rng.shuffle(&mut group.values));
            statistics(&exchanged.sums())
        });
        let each: [Vec<f64>; N] =
            std::array::from_fn(|of| ranked(&all.iter().map(|own| own[of]).collect::<Vec<f64>>()));
        let smallest = |index: usize| -> f64 {
            let weighted = each.iter().zip(weights).map(|(p, weight)| p[index] / weight);
            -weighted.fold(f64::INFINITY, f64::min)
        };
        let together = ranked(&(0..all.len()).map(smallest).collect::<Vec<f64>>());
        (together[0], each.map(|p| p[0]))
    }

    /// How far the means of labels lie apart: the sum of squares between them.
    fn apart(&self, sums: &[f64]) -> f64 {
        sums.iter().zip(&self.counts).filter(|(_, n)| **n > 0.0).map(|(sum, n)| sum * sum / n).sum()
    }
}

/// For each value the share of values that are as large or larger, up to rounding.
fn ranked(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let less_rounding = |value: f64| value - value.abs() * 1e-9;
    let above = |value: &f64| values.len() - sorted.partition_point(|other| *other < less_rounding(*value));
    values.iter().map(|value| above(value) as f64 / values.len() as f64).collect()
}

struct Grid<'a> {
    shape: Shape,
    fitted: &'a Fit,
}

impl Grid<'_> {
    /// The places of the values of an axis's knob in their order, if they have one.
    fn places<'k>(&self, axis: usize, knobs: &[Knob<'k>; 2]) -> Option<&'k [f64]> {
        knobs[axis].places.filter(|places| places.len() == self.values(axis) && places.len() > 2)
    }

    /// The number of values of an axis's knob.
    fn values(&self, axis: usize) -> usize {
        if axis == 0 { self.shape.columns } else { self.shape.rows }
    }

    /// The index of the value that a cell has.
    fn place(&self, cell: usize, axis: usize) -> usize {
        if axis == 0 { cell % self.shape.columns } else { cell / self.shape.columns }
    }

    fn cell(&self, axis: usize, along: usize, across: usize) -> usize {
        if axis == 0 { across * self.shape.columns + along } else { along * self.shape.columns + across }
    }

    /// Lines along an axis: of each value of the other knob, the places that have observations.
    fn lines(&self, axis: usize) -> Vec<Vec<(usize, usize)>> {
        let line = |across: usize| {
            let cells = (0..self.values(axis)).map(|along| (along, self.cell(axis, along, across)));
            cells.filter(|(_, cell)| self.fitted.count(*cell) > 0).collect()
        };
        (0..self.values(1 - axis)).map(line).collect()
    }

    /// The mean contrast of several, each a list of weighted cells.
    fn mean(&self, each: &[Vec<(usize, f64)>]) -> Option<Contrast> {
        let part = 1.0 / each.len().max(1) as f64;
        let weights: Vec<(usize, f64)> =
            each.iter().flatten().map(|(cell, weight)| (*cell, weight * part)).collect();
        (!each.is_empty()).then(|| self.fitted.contrast(&weights)).flatten()
    }

    /// Each value of a knob over one of them, over all lines that have both.
    fn mains(&self, axis: usize, before: usize) -> Vec<Option<Contrast>> {
        let lines = self.lines(axis);
        let main_effect = |value: usize| {
            let pair = |line: &Vec<(usize, usize)>| {
                let at =
                    |wanted: usize| line.iter().find(|(along, _)| *along == wanted).map(|(_, cell)| *cell);
                Some(vec![(at(value)?, 1.0), (at(before)?, -1.0)])
            };
            self.mean(&lines.iter().filter_map(pair).collect::<Vec<_>>())
        };
        (0..self.values(axis)).map(main_effect).collect()
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

    /// How far the means of an axis's values lie apart, of sums over cells.
    fn apart(&self, axis: usize, sums: &[f64], counts: &[f64]) -> f64 {
        let mut own = vec![(0.0, 0.0); self.values(axis)];
        for (cell, (sum, n)) in sums.iter().zip(counts).enumerate() {
            let of = &mut own[self.place(cell, axis)];
            *of = (of.0 + sum, of.1 + n);
        }
        own.iter().filter(|(_, n)| *n > 0.0).map(|(sum, n)| sum * sum / n).sum()
    }

    /// How far cells lie from the sum of both knobs' effects.
    fn beyond(&self, sums: &[f64], counts: &[f64]) -> f64 {
        let mean = |(sum, n): (&f64, &f64)| if *n > 0.0 { sum / n } else { 0.0 };
        let left = self.left_of_sum(sums.iter().zip(counts).map(mean).collect(), counts);
        left.iter().zip(counts).map(|(left, n)| n * left * left).sum()
    }

    /// What the sum of both knobs' effects leaves of cells' values, of which each stands for so
    /// many observations.
    fn left_of_sum(&self, mut values: Vec<f64>, counts: &[f64]) -> Vec<f64> {
        // One round is enough where all cells have as many observations.
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

    /// Observations less the sum of both knobs' effects on them.
    fn beyond_sum(&self, points: &[LogValue]) -> Vec<LogValue> {
        let (mut sums, mut counts) = (vec![0.0; self.shape.cells()], vec![0.0; self.shape.cells()]);
        let own = || points.iter().filter(|point| point.cell < self.shape.cells());
        own().for_each(|point| counts[point.cell] += 1.0);
        own().for_each(|point| sums[point.cell] += point.log / counts[point.cell]);
        let left = self.left_of_sum(sums.clone(), &counts);
        let rest =
            |point: &LogValue| LogValue { log: point.log - sums[point.cell] + left[point.cell], ..*point };
        own().map(rest).collect()
    }

    /// p that what one knob does is the same at each value of the other, by what the sum of both
    /// leaves of the observations, exchanged within passes. The drift is taken out knowing at most
    /// that sum.
    fn together(&self, points: &[LogValue], seed: u64) -> f64 {
        let beyond = self.beyond_sum(points);
        let blind: Vec<LogValue> = beyond.iter().map(|point| LogValue { cell: 0, ..*point }).collect();
        let drift =
            fit(&blind, 1, PassLevels::Shared).map_or_else(|| vec![0.0; blind.len()], |fitted| fitted.drift);
        let still =
            beyond.iter().zip(&drift).map(|(point, drift)| LogValue { log: point.log - drift, ..*point });
        let own = |point: LogValue| Labelled { group: (0, point.pass), label: point.cell, value: point.log };
        let observations = self.beyond_sum(&still.collect::<Vec<LogValue>>()).into_iter().map(own);
        let observations = Exchanged::within(observations.collect());
        let counts: Vec<f64> = (0..self.shape.cells())
            .map(|cell| observations.counts.get(cell).copied().unwrap_or(0.0))
            .collect();
        let free = 1.0 - (self.shape.columns + self.shape.rows - 1) as f64 / counts.iter().sum::<f64>();
        observations.p(seed, free, |sums| self.beyond(sums, &counts[..sums.len()]))
    }

    /// Standard deviation of one observation as the tests see it: what the fit sets aside counts
    /// there, clipped.
    fn noise(&self) -> f64 {
        let rests = &self.fitted.residuals;
        let aside = self.fitted.kept.iter().filter(|kept| !**kept).count();
        let freedom = self.fitted.freedom + aside as f64;
        let clip = CLIP_SIGMAS * MAD_TO_SIGMA * mad(rests).unwrap_or(0.0);
        let clipped: Vec<f64> = rests.iter().map(|rest| rest.clamp(-clip, clip)).collect();
        let mean = clipped.iter().sum::<f64>() / clipped.len() as f64;
        let squares: f64 = clipped.iter().map(|rest| (rest - mean).powi(2)).sum();
        (squares / freedom).sqrt().max(self.fitted.sigma)
    }

    /// What would have been reported on a surface of this many knobs.
    fn floor(&self, answer: &TestResult, knobs: usize) -> Option<f64> {
        let alpha = ALPHA * closed::share(answer.hypothesis, knobs);
        let noise = self.noise();
        let among = |levels: usize, level: &dyn Fn(usize) -> usize| {
            let mut counts = vec![0; levels];
            (0..self.shape.cells()).for_each(|cell| counts[level(cell)] += self.fitted.count(cell));
            floor(&counts, noise, alpha)
        };
        let single = |effect: &Contrast| {
            let error =
                if self.fitted.sigma > 0.0 { effect.error * noise / self.fitted.sigma } else { effect.error };
            Some(error * (t_quantile(1.0 - alpha, effect.freedom)? + normal_quantile(DETECTION_POWER)?))
        };
        match answer.hypothesis {
            // A difference of two: the value that was there before has no error.
            Hypothesis::Main { axis } if self.values(axis) == 2 => {
                single(answer.effects.iter().flatten().find(|effect| effect.error > 0.0)?)
            }
            Hypothesis::Main { axis } => Some(among(self.values(axis), &|cell| self.place(cell, axis))),
            Hypothesis::Trend { .. } => single(answer.effects.first()?.as_ref()?),
            Hypothesis::Any => Some(among(self.shape.cells(), &|cell| cell)),
            Hypothesis::Interaction => None,
        }
    }
}
