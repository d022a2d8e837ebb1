//! What a sweep over one or two knobs shows: whether they matter, where the response falls, is
//! ragged or flat, and which settings are best as far as the observations show.
//!
//! Every pass visits all cells in a fresh random order, and the control (the default setting) again
//! and again between them. All is done on natural logarithms: `ln value = cell + drift(time) +
//! noise`, fitted at once ([`fit`]), with the noise pooled over the cells, since a few passes say
//! little about one cell's own.

mod advice;
mod best;
mod ending;
pub mod fit;
pub mod grid_data;
mod hypotheses;
mod matters;
mod pareto;
mod regions;
#[cfg(test)]
mod tests;

pub use advice::{Advice, Advised, Area, Change, MAX_RESPONSE_LOSS, advice};
pub use ending::Ending;
pub use hypotheses::{Hypothesis, TestResult};
pub use matters::Matters;
pub use pareto::{ParetoPoint, pareto};
pub use regions::{Direction, Kind, Region, Segment, segments};

use model::Better;

use self::fit::{Fit, PassLevels, Point, fit};
use super::order::Interval;
use super::tails::t_quantile;

/// A grid of settings: cell = row × columns + column; one row for a curve of one knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub columns: usize,
    pub rows: usize,
}

impl Shape {
    pub fn cells(self) -> usize {
        self.columns.saturating_mul(self.rows)
    }
}

/// One visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// From 0; `shape.cells()` is the control where the default setting is no cell of the grid.
    pub cell: usize,
    pub pass: u32,
    /// On the run's time line, ms.
    pub at: f64,
    /// Above 0, in the metric's unit.
    pub value: f64,
}

/// What is known of the values of an axis's knob.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knob<'a> {
    /// The place of the value that was there before, against which the others are held.
    pub before: usize,
    /// Where each value stands in an order of them all; `None` where they have none.
    pub places: Option<&'a [f64]>,
}

/// What was swept, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub shape: Shape,
    /// Of the columns and of the rows.
    pub knobs: [Knob<'a>; 2],
    /// The cell of the default setting, `shape.cells()` where it is none of the grid.
    pub control: usize,
    pub observations: &'a [Observation],
    pub better: Better,
    pub seed: u64,
}

/// A cell beside the control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Natural logarithm of the cell's level over the control's.
    pub ln: f64,
    /// At 95 %, of this cell alone; the control's own is the point 0.
    pub interval: Interval,
    /// The cell's own error (without the control's): 1.96 of it are half its 95 % interval.
    pub error: f64,
    /// Observations that count.
    pub n: usize,
}

/// What a sweep shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// The grid's cells, then the control where it is none of them; `None` where a cell has no
    /// observations.
    pub levels: Vec<Option<Level>>,
    /// In the metric's unit, at the middle of the drift: the geometric mean of the control's
    /// observations.
    pub control_level: f64,
    /// Relative standard deviation of one observation with the drift taken out.
    pub noise: f64,
    /// Highest over lowest of the fitted drift, less 1; 0 where none can be shown.
    pub drift: f64,
    /// Observations that lay too far from all others to count.
    pub aside: usize,
    /// What was asked of all observations together: of each knob, then of both.
    pub test_results: Vec<TestResult>,
    pub matters: Matters,
    /// In the order of their first cells.
    pub regions: Vec<Region>,
    /// Cells of the grid: the best, then all that cannot be distinguished from it (at 95 % together
    /// the true best is among them), the better ones first. Empty where no side is better.
    pub best: Vec<usize>,
    /// What all of this rests on.
    pub fitted: Fit,
    /// What is left of the observations, scaled to a variance of one ([`Fit::scaled_residuals`]).
    pub residuals: Vec<f64>,
}

impl Surface {
    /// The smallest effect of a knob that would have been detected, as a logarithm.
    pub fn detectable_effect(&self) -> Option<f64> {
        hypotheses::detectable_effect(&self.test_results)
    }
}

/// Most cells of a grid: a map of 64 × 64.
const MAX_CELLS: usize = 4096;

/// What the observations say. Observations with values that are not finite and positive are left
/// out, and those of no cell; `None` where the control or all cells but one have no observations,
/// where no pass is repeated, and for grids of more than 4096 cells.
pub fn surface(question: &Question) -> Option<Surface> {
    let (points, fitted) = fitted(question)?;
    let (cells, all) = (question.shape.cells(), question.all_cells());
    let control = fitted.level(question.control)?;
    let widening = t_quantile(0.95, fitted.freedom)? / 1.96;
    let levels: Vec<Option<Level>> = (0..all)
        .map(|cell| {
            let beside = fitted.contrast(&[(cell, 1.0), (question.control, -1.0)])?;
            let n = fitted.count(cell);
            let error = widening * fitted.sigma / (n as f64).sqrt();
            Some(Level { ln: beside.value, interval: beside.interval(), error, n })
        })
        .collect();
    let grid = &levels[..cells];
    if grid.iter().flatten().count() < 2 {
        return None;
    }
    let test_results = hypotheses::results(&points, question.shape, &question.knobs, &fitted, question.seed);
    let matters = matters::matters(cells, &fitted, &test_results);
    let regions = if matters.yes { regions::regions(question.shape, grid) } else { regions::one_flat(grid) };
    let (lowest, highest) = fitted
        .drift
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), drift| (low.min(*drift), high.max(*drift)));
    Some(Surface {
        control_level: control.exp(),
        noise: fitted.sigma,
        drift: (highest - lowest).exp() - 1.0,
        aside: fitted.kept.iter().filter(|kept| !**kept).count(),
        best: best::best(&points, &fitted, cells, question.better, question.seed),
        test_results,
        matters,
        regions,
        levels,
        residuals: fitted.scaled_residuals(&points),
        fitted,
    })
}

/// The smallest effect of a knob, as a logarithm, that these observations would have detected,
/// whatever they say: what [`Surface::detectable_effect`] gives, without its permutations.
pub fn detectable_effect(question: &Question) -> Option<f64> {
    let (_, fitted) = fitted(question)?;
    let known = (0..question.shape.cells()).filter(|cell| fitted.count(*cell) > 0).count();
    if known < 2 {
        return None;
    }
    hypotheses::detectable_effect(&hypotheses::questions(question.shape, &question.knobs, &fitted))
}

impl Question<'_> {
    /// The grid's cells, and the control where it is none of them.
    fn all_cells(&self) -> usize {
        let cells = self.shape.cells();
        cells.max(self.control.min(cells) + 1)
    }
}

/// The observations that count, fitted.
fn fitted(question: &Question) -> Option<(Vec<Point>, Fit)> {
    Some(question.shape.cells()).filter(|cells| *cells <= MAX_CELLS)?;
    let all = question.all_cells();
    let sound =
        |one: &&Observation| one.cell < all && one.value > 0.0 && one.value.is_finite() && one.at.is_finite();
    let points: Vec<Point> = question
        .observations
        .iter()
        .filter(sound)
        .map(|one| Point { cell: one.cell, pass: one.pass, at: one.at, log: one.value.ln() })
        .collect();
    let fitted = fit(&points, all, PassLevels::Shared)?;
    Some((points, fitted))
}
