//! Does a sweep show what was planted in it, and no more? On knobs that never were.

use std::cmp::Ordering;

use fastrand::Rng;

use super::{Rate, sums};
use model::Better;
use stats::noise::{Noise, autoregressive};
use stats::ranks::shuffled;
use stats::sweep::{Hypothesis, Kind, Knob, Observation, Question, Region, Shape, Surface, surface};

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// No cell differs: a curve of 12, or a map of 7 × 7.
    FlatCurve,
    FlatMap,
    /// Two cells of a flat curve differ by as much as [`Surface::matters`]'s floor says could have
    /// been detected.
    Floor,
    /// A curve of 12: two flat halves, 20 % apart.
    Halves,
    /// A curve of 12 to 15: 3 to 5 cells fall by 8 to 16 % each, 4 to 6 go up and down by 6 to 14
    /// %, 4 are flat.
    StoryCurve,
    /// The same along the columns of a map of 10 × 7: 3 or 4 columns fall, 3 or 4 are ragged, 3
    /// flat, with a bound that moves by a cell between two rows.
    StoryMap,
    /// A 6 × 6 map of which 3 columns fall by 8 to 16 % each to 3 that are level: in a line alone
    /// as cheap as one fall.
    BandMap,
    /// A 6 × 6 map of two level halves, 20 % apart.
    HalvesMap,
    /// A 7 × 7 map with one best cell, the next ones 3 % worse, the corners 50 % and more.
    Bowl,
    /// A 7 × 7 map with three best cells in a row, all others 5 % worse.
    Plateau,
    /// Of 7 × 2, the columns' knob a number: no cell differs.
    FlatPair,
    /// One of both rows 5 % lower, in every column.
    MainEffect,
    /// From the first column to the last 8 % lower, in equal steps, in both rows.
    Trend,
    /// One row 5 % above the other's mean in the first three columns and 5 % below in the last
    /// three, the other one the other way round: neither knob does anything by itself.
    CrossOver,
}

impl Planted {
    /// The questions to which there is something to say.
    fn has(self, asked: Hypothesis) -> bool {
        match self {
            Planted::MainEffect => matches!(asked, Hypothesis::Main { axis: 1 } | Hypothesis::Any),
            Planted::Trend => {
                matches!(
                    asked,
                    Hypothesis::Main { axis: 0 } | Hypothesis::Trend { axis: 0 } | Hypothesis::Any
                )
            }
            Planted::CrossOver => matches!(asked, Hypothesis::Interaction | Hypothesis::Any),
            Planted::FlatCurve | Planted::FlatMap | Planted::FlatPair => false,
            _ => true,
        }
    }

    /// The hypothesis that is tested.
    fn sought(self) -> Option<Hypothesis> {
        match self {
            Planted::MainEffect => Some(Hypothesis::Main { axis: 1 }),
            Planted::Trend => Some(Hypothesis::Trend { axis: 0 }),
            Planted::CrossOver => Some(Hypothesis::Interaction),
            _ => None,
        }
    }
}

/// What the host does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    None,
    /// 10 % up over the run, slowly at both ends.
    Slow,
    /// 8 % at once, somewhere in the run.
    Step,
    /// 3 % standard deviation, forgotten within 20 passes or so.
    Wander,
}

impl Drift {
    /// The logarithm at observation `index` of `n`; a step comes at `step`.
    pub(super) fn at(self, index: usize, n: usize, step: usize, wander: &[f64]) -> f64 {
        match self {
            Drift::None => 0.0,
            Drift::Slow => 0.05 - 0.05 * (std::f64::consts::PI * index as f64 / n as f64).cos(),
            Drift::Step if index >= step => 0.08,
            Drift::Step => 0.0,
            Drift::Wander => 0.03 * wander[index],
        }
    }
}

/// How a sweep is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sweep {
    pub planted: Planted,
    pub noise: Noise,
    /// Share of observations that are 1.5 times as long.
    pub outliers: f64,
    pub drift: Drift,
    pub passes: u32,
}

/// What was found in many sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Swept {
    /// Sweeps in which the knobs are reported to matter.
    pub matter: Rate,
    /// Sweeps in which an effect planted in both knobs is detected by its own question.
    pub found: Rate,
    /// Sweeps in which a question has an answer that was not planted.
    pub invented: Rate,
    /// 95 % intervals of cells that contain the truth.
    pub covered: Rate,
    /// Planted cells that lie in a region of the planted kind (and direction).
    pub kinds: Rate,
    /// Planted boundaries with a boundary of regions within one cell.
    pub boundaries: Rate,
    /// Sweeps in which the true best (one of them that was chosen beforehand) is among the best.
    pub best: Rate,
    /// Sweeps in which the first of the best is a true best.
    pub first: Rate,
    /// Sizes of the lists of best cells, summed up.
    pub best_cells: usize,
    /// Half-widths of intervals over those that the noise alone allows (1.96 σ sqrt(1/n + 1/n of
    /// the control)), summed.
    pub widths: f64,
    /// Shown spread less the true one, summed.
    pub spread_error: f64,
}

sums!(
    Swept:
    matter, found, invented, covered, kinds, boundaries, best, first, best_cells, widths,
    spread_error
);

impl Swept {
    /// Mean size of the list of best cells.
    pub fn best_size(&self) -> f64 {
        self.best_cells as f64 / self.best.of as f64
    }
}

/// The truth: logarithms of levels, and of curves and maps with a story the kinds of cells, `true`
/// where a fall goes down along the row.
struct Truth {
    shape: Shape,
    levels: Vec<f64>,
    kinds: Vec<Kind>,
    best: Vec<usize>,
}

impl Truth {
    fn draw(planted: Planted, floor: f64, rng: &mut Rng) -> Truth {
        let curve = |columns| Shape { columns, rows: 1 };
        let map = Shape { columns: 7, rows: 7 };
        let pair = Shape { columns: 7, rows: 2 };
        let six = Shape { columns: 6, rows: 6 };
        match planted {
            Planted::FlatCurve => Truth::plain(curve(12), |_, _| 0.0),
            Planted::FlatMap => Truth::plain(map, |_, _| 0.0),
            Planted::Floor => Truth::plain(curve(12), |_, column| match column {
                2 => floor / 2.0,
                7 => -floor / 2.0,
                _ => 0.0,
            }),
            Planted::Halves => {
                let halves = Truth::plain(curve(12), |_, column| if column < 6 { 0.2 } else { 0.0 });
                Truth { kinds: vec![Kind::Flat; 12], ..halves }
            }
            Planted::StoryCurve => {
                let fall = rng.usize(3..=5);
                let ragged = fall + rng.usize(4..=6);
                let (levels, kinds) = Truth::story(fall, ragged, ragged + 4, rng);
                Truth::of(curve(levels.len()), levels, kinds)
            }
            Planted::StoryMap => {
                let (turn, mut levels, mut kinds) = (rng.usize(1..6), Vec::new(), Vec::new());
                for row in 0..7 {
                    let moved = usize::from(row >= turn);
                    let (own, own_kinds) = Truth::story(3 + moved, 7, 10, rng);
                    levels.extend(own);
                    kinds.extend(own_kinds);
                }
                Truth::of(Shape { columns: 10, rows: 7 }, levels, kinds)
            }
            Planted::BandMap => {
                let mut levels = [0.0; 6];
                for place in (0..3).rev() {
                    levels[place] = levels[place + 1] + 0.08 + 0.08 * rng.f64();
                }
                let all = Truth::plain(six, |_, column| levels[column]);
                let kinds = (0..36).map(|cell| if cell % 6 < 3 { Kind::Fall } else { Kind::Flat });
                Truth { kinds: kinds.collect(), ..all }
            }
            Planted::HalvesMap => {
                let halves = Truth::plain(six, |_, column| if column < 3 { 0.2 } else { 0.0 });
                Truth { kinds: vec![Kind::Flat; 36], ..halves }
            }
            Planted::Bowl => {
                let (x, y) = (rng.usize(1..6), rng.usize(1..6));
                let square = |a: usize, b: usize| (a as f64 - b as f64).powi(2);
                Truth::plain(map, |row, column| 0.03 * (square(row, y) + square(column, x)))
            }
            Planted::Plateau => {
                let (x, y) = (rng.usize(0..5), rng.usize(0..7));
                let best = |row: usize, column: usize| row == y && (x..x + 3).contains(&column);
                Truth::plain(map, |row, column| if best(row, column) { 0.0 } else { 0.05 })
            }
            Planted::FlatPair => Truth::plain(pair, |_, _| 0.0),
            Planted::MainEffect => Truth::plain(pair, |row, _| if row == 1 { 0.95_f64.ln() } else { 0.0 }),
            Planted::Trend => Truth::plain(pair, |_, column| 0.92_f64.ln() * column as f64 / 6.0),
            Planted::CrossOver => Truth::plain(pair, |row, column| {
                let side = if row == 1 { 0.05 } else { -0.05 };
                match column.cmp(&3) {
                    Ordering::Less => side,
                    Ordering::Equal => 0.0,
                    Ordering::Greater => -side,
                }
            }),
        }
    }

    /// Falls before `fall`, goes up and down before `ragged`, is flat before `end`. The fall's foot
    /// is the first low.
    fn story(fall: usize, ragged: usize, end: usize, rng: &mut Rng) -> (Vec<f64>, Vec<Kind>) {
        let mut between = |low: f64, high: f64| low + (high - low) * rng.f64();
        let mut levels = vec![0.0; end];
        let mut kinds = vec![Kind::Flat; end];
        levels[fall - 1] = -between(0.03, 0.07);
        for place in (0..fall - 1).rev() {
            levels[place] = levels[place + 1] + between(0.08, 0.16);
        }
        kinds[..fall].fill(Kind::Fall);
        // Half a swing to each side of zero.
        for (place, level) in levels[fall..ragged].iter_mut().enumerate() {
            let side = if place.is_multiple_of(2) { 1.0 } else { -1.0 };
            *level = side * between(0.03, 0.07);
        }
        kinds[fall..ragged].fill(Kind::Ragged);
        (levels, kinds)
    }

    fn plain(shape: Shape, level: impl Fn(usize, usize) -> f64) -> Truth {
        let levels =
            (0..shape.cells()).map(|cell| level(cell / shape.columns, cell % shape.columns)).collect();
        Truth::of(shape, levels, Vec::new())
    }

    fn of(shape: Shape, levels: Vec<f64>, kinds: Vec<Kind>) -> Truth {
        let lowest = levels.iter().copied().fold(f64::INFINITY, f64::min);
        let best = (0..levels.len()).filter(|cell| levels[*cell] <= lowest + 1e-12).collect();
        Truth { shape, levels, kinds, best }
    }

    /// Whether the boundary before `column` of a row is next to one of regions.
    fn near(&self, regions: &[Option<usize>], row: usize, column: usize) -> bool {
        let cut = |at: usize| {
            let cell = row * self.shape.columns + at;
            at > 0 && at < self.shape.columns && regions[cell - 1] != regions[cell]
        };
        (column.saturating_sub(1)..=column + 1).any(cut)
    }
}

impl Sweep {
    /// The observations: each pass begins with the control and has it again after every eight
    /// cells.
    fn looks(self, truth: &Truth, control: usize, rng: &mut Rng) -> Vec<Observation> {
        let cells = truth.shape.cells();
        let mut order: Vec<(usize, u32)> = Vec::new();
        for pass in 0..self.passes {
            for (place, cell) in shuffled(cells, rng).into_iter().enumerate() {
                if place % 8 == 0 {
                    order.push((control, pass));
                }
                order.push((cell, pass));
            }
        }
        let n = order.len();
        let step = rng.usize(1..n);
        let wander = autoregressive(n, 0.95, rng);
        let mut at = 0.0;
        order
            .into_iter()
            .enumerate()
            .map(|(index, (cell, pass))| {
                at += 900.0 + 200.0 * rng.f64();
                let level = truth.levels.get(cell).copied().unwrap_or(0.0);
                let outlier = if rng.f64() < self.outliers { 1.5 } else { 1.0 };
                let value = 7.0
                    * (level + self.drift.at(index, n, step, &wander)).exp()
                    * self.noise.draw(rng)
                    * outlier;
                Observation { cell, pass, at, value }
            })
            .collect()
    }
}

/// Simulates `trials` sweeps and judges each.
pub fn swept(sweep: Sweep, trials: usize, seed: u64) -> Swept {
    let mut rng = Rng::with_seed(seed);
    let mut found = Swept::default();
    let mut floor = 0.0;
    for trial in 0..trials {
        let truth = Truth::draw(sweep.planted, floor, &mut rng);
        // The default setting is a cell of some sweeps and outside the grid of others.
        let cells = truth.shape.cells();
        let control = if trial % 2 == 0 { cells } else { cells / 2 };
        let looks = sweep.looks(&truth, control, &mut rng);
        // A knob of two values has no order.
        let places: Vec<f64> = (0..truth.shape.cells()).map(|place| place as f64).collect();
        let knob = |values: usize| Knob { before: 0, places: (values > 2).then_some(&places[..values]) };
        let question = Question {
            shape: truth.shape,
            knobs: [knob(truth.shape.columns), knob(truth.shape.rows)],
            control,
            observations: &looks,
            better: Better::Lower,
            seed: trial as u64,
        };
        let Some(shown) = surface(&question) else { continue };
        floor = shown.matters.floor;
        found.count(sweep.planted, &truth, control, &shown);
    }
    found
}

impl Swept {
    fn count(&mut self, planted: Planted, truth: &Truth, control: usize, shown: &Surface) {
        self.matter.count(shown.matters.yes);
        let told = |asked: Hypothesis| {
            shown.test_results.iter().any(|answer| answer.hypothesis == asked && answer.is_yes())
        };
        if let Some(sought) = planted.sought() {
            self.found.count(told(sought));
        }
        self.invented.count(
            shown.test_results.iter().any(|answer| answer.is_yes() && !planted.has(answer.hypothesis)),
        );
        let base = truth.levels.get(control).copied().unwrap_or(0.0);
        let of_control = shown.levels[control].map_or(0, |level| level.n);
        for (cell, level) in shown.levels.iter().enumerate().take(truth.levels.len()) {
            let Some(level) = level.filter(|_| cell != control) else { continue };
            self.covered.count(level.interval.contains(truth.levels[cell] - base));
            let alone = 1.96 * shown.noise * (1.0 / level.n as f64 + 1.0 / of_control as f64).sqrt();
            self.widths += level.interval.half_width() / alone;
        }
        self.best.count(truth.best.first().is_some_and(|cell| shown.best.contains(cell)));
        self.first.count(shown.best.first().is_some_and(|cell| truth.best.contains(cell)));
        self.best_cells += shown.best.len();
        let (low, high) =
            truth.levels.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        self.spread_error += shown.matters.spread - (high - low);
        self.count_regions(truth, &shown.regions);
    }

    fn count_regions(&mut self, truth: &Truth, regions: &[Region]) {
        let mut of: Vec<Option<usize>> = vec![None; truth.levels.len()];
        for (index, region) in regions.iter().enumerate() {
            region.cells.iter().for_each(|cell| of[*cell] = Some(index));
        }
        for (cell, kind) in truth.kinds.iter().enumerate() {
            let region = of[cell].and_then(|index| regions.get(index));
            let down = |region: &Region| region.direction.is_some_and(|d| d.axis == 0 && !d.rises);
            let right = |region: &&Region| region.kind == *kind && (*kind != Kind::Fall || down(region));
            self.kinds.count(region.filter(right).is_some());
            let column = cell % truth.shape.columns;
            let step = (truth.levels[cell] - truth.levels[cell.saturating_sub(1)]).abs() > 0.15;
            let halves = truth.kinds.iter().all(|kind| *kind == Kind::Flat) && step;
            if column > 0 && (truth.kinds[cell - 1] != *kind || halves) {
                self.boundaries.count(truth.near(&of, cell / truth.shape.columns, column));
            }
        }
    }
}
