//! Evaluates a sweep over one or two knobs: whether they matter, where the metric falls, is ragged
//! or flat, and which settings are the best.
//!
//! A cell is one combination of settings. Every pass visits all cells in a new random order, and
//! the control (the default setting) repeatedly between them. All statistics use natural
//! logarithms: `ln value = cell + drift(time) + noise`, fitted at once ([`fit`]). The noise is
//! pooled over all cells, since a few passes show little about that of one cell.

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

use self::fit::{Fit, LogValue, PassLevels, fit};
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

/// The values of the knob of an axis.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knob<'a> {
    /// Index of the value before the sweep, with which the others are compared.
    pub before: usize,
    /// The place of each value in their order; `None` if they have no order.
    pub places: Option<&'a [f64]>,
}

/// What was swept, and what is to be evaluated.
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

/// A cell relative to the control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Natural logarithm of the cell's level over the control's.
    pub ln: f64,
    /// Of `ln` at 95 %, for this cell alone; of the control itself it is the point 0.
    pub interval: Interval,
    /// Error of the cell without that of the control, scaled so that half of its 95 % interval is
    /// 1.96 times this.
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
    /// Highest over lowest of the fitted drift, less 1; 0 if none is significant.
    pub drift: f64,
    /// Outliers, which do not count.
    pub aside: usize,
    /// Tests over all observations: of each knob, then of both.
    pub test_results: Vec<TestResult>,
    pub matters: Matters,
    /// In the order of their first cells.
    pub regions: Vec<Region>,
    /// Cells of the grid: the best, then all that cannot be distinguished from it (at 95 % together
    /// the true best is among them), the better ones first. Empty where no side is better.
    pub best: Vec<usize>,
    /// The fit behind all of this.
    pub fitted: Fit,
    /// Scaled to a variance of one ([`Fit::scaled_residuals`]).
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

/// Evaluates the observations; those of no cell, or that are not finite and positive, are left out.
/// `None` if the control or all cells but one have no observations, if there is only one pass, or
/// for grids of more than 4096 cells.
pub fn surface(question: &Question) -> Option<Surface> {
    let (points, fitted) = fitted(question)?;
    let (cells, all) = (question.shape.cells(), question.all_cells());
    let control = fitted.level(question.control)?;
    // From Student's factor to that of a normal distribution.
    let widening = t_quantile(0.95, fitted.freedom)? / 1.96;
    let levels: Vec<Option<Level>> = (0..all)
        .map(|cell| {
            let to_control = fitted.contrast(&[(cell, 1.0), (question.control, -1.0)])?;
            let n = fitted.count(cell);
            let error = widening * fitted.sigma / (n as f64).sqrt();
            Some(Level { ln: to_control.value, interval: to_control.interval(), error, n })
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

/// The smallest effect of a knob, as a logarithm, that these observations would have detected: the
/// same as [`Surface::detectable_effect`], but without its permutations.
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
fn fitted(question: &Question) -> Option<(Vec<LogValue>, Fit)> {
    Some(question.shape.cells()).filter(|cells| *cells <= MAX_CELLS)?;
    let all = question.all_cells();
    let is_valid =
        |one: &&Observation| one.cell < all && one.value > 0.0 && one.value.is_finite() && one.at.is_finite();
    let points: Vec<LogValue> = question
        .observations
        .iter()
        .filter(is_valid)
        .map(|one| LogValue { cell: one.cell, pass: one.pass, time: one.at, log: one.value.ln() })
        .collect();
    let fitted = fit(&points, all, PassLevels::Shared)?;
    Some((points, fitted))
}
