//! What to set, by the areas of neighbouring settings whose gain over the control is sure.
//!
//! The mean level of every rectangle of settings is compared with the control's. The limit of all
//! these comparisons together is drawn from the residuals (the largest of them in sweeps in which
//! nothing differs), so that a sweep without an effect advises nothing in all but
//! [`FALSE_ADVICE_RATE`] of cases, and the interval of a gain holds although the best of many was
//! chosen. Of all rectangles the one with the largest sure gain (the lower end of that interval) is
//! taken, and grown by the neighbouring rows and columns that are unknown to be worse. Where no
//! question has an answer ([`Matters`](super::Matters)), there is none.

use super::best::draws;
use super::hypotheses::scan::{corners, sides, sum};
use super::{Question, Shape, Surface};
use crate::order::{Interval, quantile};
use crate::tails::t_quantile;
use model::Better;

/// Sweeps without an effect in which an area is advised all the same, shared out over the metrics.
const FALSE_ADVICE_RATE: f64 = 0.05;
/// A gain below this is not worth a change, and a row or column that loses at most this of an
/// area's gain is still part of it (logarithms).
const MIN_GAIN_LN: f64 = 0.01;
/// A row or column that is worse by more than this many standard errors is no part of an area.
const MAX_LOSS_ERRORS: f64 = 2.5;
/// The most that the response may get worse in a compromise: the upper end of its one-sided 95 %
/// interval.
pub const MAX_RESPONSE_LOSS: f64 = 0.10;
/// Areas times simulated sweeps, at most.
const MAX_SIMULATION_WORK: usize = 20_000_000;

/// A rectangle of settings: first and last column, first and last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub columns: [usize; 2],
    pub rows: [usize; 2],
}

impl Area {
    fn corner(self) -> [usize; 4] {
        [self.rows[0], self.rows[1] + 1, self.columns[0], self.columns[1] + 1]
    }

    fn size(self) -> usize {
        (self.rows[1] + 1 - self.rows[0]) * (self.columns[1] + 1 - self.columns[0])
    }

    /// The cells of a grid with this many columns.
    pub fn cells(self, columns: usize) -> impl Iterator<Item = usize> {
        let [left, right] = self.columns;
        (self.rows[0]..=self.rows[1]).flat_map(move |row| (left..=right).map(move |at| row * columns + at))
    }

    /// The rows and columns beside it.
    fn beside(self, shape: Shape) -> impl Iterator<Item = Area> {
        let Area { columns: [left, right], rows: [top, bottom] } = self;
        let column = |at: usize| Area { columns: [at, at], ..self };
        let row = |at: usize| Area { rows: [at, at], ..self };
        let all = [
            left.checked_sub(1).map(column),
            Some(right + 1).filter(|at| *at < shape.columns).map(column),
            top.checked_sub(1).map(row),
            Some(bottom + 1).filter(|at| *at < shape.rows).map(row),
        ];
        all.into_iter().flatten()
    }

    fn with(self, line: Area) -> Area {
        let both = |a: [usize; 2], b: [usize; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        Area { columns: both(self.columns, line.columns), rows: both(self.rows, line.rows) }
    }
}

/// A level over the control's, as a logarithm, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub ln: f64,
    pub interval: Interval,
}

/// An area that is better than the control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advised {
    pub area: Area,
    /// The setting of the area with the best level.
    pub cell: usize,
    /// Of the metric that it was chosen for, over the area; the interval holds for all areas
    /// together.
    pub gain: Change,
    /// Of the other metric over the same area.
    pub other: Option<Change>,
}

/// What is advised: nothing where no gain is sure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Advice {
    pub target: Option<Advised>,
    pub response: Option<Advised>,
    /// The largest sure gain of the target among the areas in which the response gets worse by
    /// [`MAX_RESPONSE_LOSS`] at most.
    pub both: Option<Advised>,
}

/// A surface and what was asked for it.
pub type Swept<'a> = (&'a Question<'a>, &'a Surface);

/// What the surfaces of a target and of a response over the same grid advise.
pub fn advice(target: Swept, response: Option<Swept>) -> Advice {
    let metrics = 1.0 + f64::from(u8::from(response.is_some()));
    let target = Areas::new(target.0, target.1);
    let response = response.map(|(question, surface)| Areas::new(question, surface));
    let limit = target.limit(FALSE_ADVICE_RATE / metrics);
    let bears = |area: Area| response.as_ref().is_none_or(|response| response.is_no_worse(area));
    let of = |own: &Areas, limit: f64, other: Option<&Areas>, allowed: &dyn Fn(Area) -> bool| {
        let (area, gain) = own.best(limit, allowed)?;
        let cell = own.best_cell(area)?;
        Some(Advised { area, cell, gain, other: other.and_then(|other| other.change(area)) })
    };
    Advice {
        target: of(&target, limit, response.as_ref(), &|_| true),
        response: response.as_ref().and_then(|response| {
            of(response, response.limit(FALSE_ADVICE_RATE / metrics), Some(&target), &|_| true)
        }),
        both: response.as_ref().and_then(|response| of(&target, limit, Some(response), &bears)),
    }
}

/// Sums over the cells above and left of each corner.
struct Areas<'a> {
    shape: Shape,
    control: usize,
    surface: &'a Surface,
    /// 1: higher is better; -1: lower is; 0: neither.
    side: f64,
    seed: u64,
    levels: Vec<f64>,
    /// Cells with observations.
    known: Vec<f64>,
    /// One over the observations of each cell.
    shares: Vec<f64>,
    term_means: Vec<Vec<f64>>,
}

impl Areas<'_> {
    fn new<'a>(question: &Question, surface: &'a Surface) -> Areas<'a> {
        let (shape, fitted) = (question.shape, &surface.fitted);
        let of = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            corners(shape, &(0..shape.cells()).map(value).collect::<Vec<f64>>())
        };
        let share = |cell: usize| match fitted.count(cell) {
            0 => 0.0,
            n => 1.0 / n as f64,
        };
        let side = match question.better {
            Better::Higher => 1.0,
            Better::Lower => -1.0,
            Better::Neither => 0.0,
        };
        Areas {
            shape,
            control: question.control,
            surface,
            side,
            seed: question.seed,
            levels: of(&|cell| fitted.level(cell).unwrap_or(0.0)),
            known: of(&|cell| f64::from(u8::from(fitted.count(cell) > 0))),
            shares: of(&share),
            term_means: fitted.term_means().iter().map(|term_means| of(&|cell| term_means[cell])).collect(),
        }
    }

    fn sum(&self, corners: &[f64], area: Area) -> f64 {
        sum(self.shape, corners, &area.corner())
    }

    /// Whether all of its cells have observations, and none is the control.
    fn is_whole(&self, area: Area) -> bool {
        let [column, row] = [self.control % self.shape.columns, self.control / self.shape.columns];
        let inside = |[first, last]: [usize; 2], at: usize| (first..=last).contains(&at);
        let control = self.control < self.shape.cells() && inside(area.columns, column);
        !(control && inside(area.rows, row)) && self.sum(&self.known, area) > area.size() as f64 - 0.5
    }

    /// Every rectangle (in large grids those with sides of some lengths).
    fn all(&self) -> Vec<Area> {
        let mut all = Vec::new();
        for rows in sides(self.shape.rows) {
            for columns in sides(self.shape.columns) {
                for top in 0..=self.shape.rows - rows {
                    for left in 0..=self.shape.columns - columns {
                        let area = Area { columns: [left, left + columns - 1], rows: [top, top + rows - 1] };
                        all.extend(self.is_whole(area).then_some(area));
                    }
                }
            }
        }
        all
    }

    /// Its mean level over the control's, and the standard error of that.
    fn contrast(&self, area: Area) -> Option<(f64, f64)> {
        let (fitted, n) = (&self.surface.fitted, area.size() as f64);
        let value = self.sum(&self.levels, area) / n - fitted.level(self.control)?;
        let mut variance = self.sum(&self.shares, area) / (n * n) + 1.0 / fitted.count(self.control) as f64;
        for (sums, term_means) in self.term_means.iter().zip(fitted.term_means()) {
            variance += (self.sum(sums, area) / n - term_means[self.control]).powi(2);
        }
        Some((value, fitted.sigma * variance.sqrt()))
    }

    /// At 95 %, of this area alone.
    fn change(&self, area: Area) -> Option<Change> {
        let (ln, error) = self.contrast(area)?;
        let half = t_quantile(0.95, self.surface.fitted.freedom)? * error;
        Some(Change { ln, interval: Interval { low: ln - half, high: ln + half } })
    }

    /// Whether it is surely worse than the control by at most a compromise may be.
    fn is_no_worse(&self, area: Area) -> bool {
        let one_sided = t_quantile(0.90, self.surface.fitted.freedom).unwrap_or(f64::INFINITY);
        let worse = |(value, error): (f64, f64)| -self.side * value + one_sided * error;
        self.contrast(area).is_some_and(|contrast| worse(contrast) <= MAX_RESPONSE_LOSS.ln_1p())
    }

    /// What the largest of all areas' gains, in standard errors, exceeds in a share `alpha` of
    /// sweeps in which nothing differs.
    fn limit(&self, alpha: f64) -> f64 {
        let fitted = &self.surface.fitted;
        let all = self.all();
        if all.is_empty() || self.surface.residuals.is_empty() || self.side == 0.0 {
            return f64::INFINITY;
        }
        let cells = self.shape.cells();
        let counts: Vec<usize> = (0..self.surface.levels.len()).map(|cell| fitted.count(cell)).collect();
        let own = 1.0 / fitted.count(self.control).max(1) as f64;
        let error = |area: &Area| (self.sum(&self.shares, *area) / (area.size() as f64).powi(2) + own).sqrt();
        let scaled: Vec<([usize; 4], f64, f64)> =
            all.iter().map(|area| (area.corner(), area.size() as f64, error(area))).collect();
        let simulated = (MAX_SIMULATION_WORK / scaled.len()).clamp(200, 2000);
        let sweeps = draws(&counts, &self.surface.residuals, fitted.freedom, self.seed, simulated);
        let largest = sweeps.map(|(levels, sigma)| {
            let sums = corners(self.shape, &levels[..cells]);
            let gain = |(corner, n, error): &([usize; 4], f64, f64)| {
                self.side * (sum(self.shape, &sums, corner) / n - levels[self.control]) / error
            };
            scaled.iter().map(gain).fold(0.0, f64::max) / sigma
        });
        quantile(&largest.collect::<Vec<f64>>(), 1.0 - alpha).unwrap_or(f64::INFINITY)
    }

    /// The area with the largest sure gain, grown.
    fn best(&self, limit: f64, allowed: &dyn Fn(Area) -> bool) -> Option<(Area, Change)> {
        // Noise with several values can make a cell of few observations seem far from all others,
        // which does not deceive the permutation tests. They do not compare the control beside a
        // grid.
        let told = self.surface.matters.yes;
        let sure = |area: Area| {
            let (value, error) = self.contrast(area).filter(|_| told || area.size() == self.shape.cells())?;
            let gain = self.side * value;
            let sure = gain - limit * error;
            (sure > 0.0 && gain >= MIN_GAIN_LN && allowed(area)).then_some(sure)
        };
        let all = self.all().into_iter().filter_map(|area| Some((area, sure(area)?)));
        let (core, _) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut area = core;
        // The row or column that is least worse first.
        let next = |area: Area| {
            let near = area.beside(self.shape).filter(|line| self.is_whole(*line));
            let near = near.filter(|line| sure(area.with(*line)).is_some());
            let near = near.filter_map(|line| Some((line, self.behind(core, line)?)));
            near.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(line, _)| area.with(line))
        };
        while let Some(larger) = next(area) {
            area = larger;
        }
        let (ln, error) = self.contrast(area)?;
        let half = limit * error;
        Some((area, Change { ln, interval: Interval { low: ln - half, high: ln + half } }))
    }

    /// How much worse a line is than an area; `None` if that is significant.
    fn behind(&self, area: Area, line: Area) -> Option<f64> {
        let mean = |of: Area| self.sum(&self.levels, of) / of.size() as f64;
        let variance = |of: Area| self.sum(&self.shares, of) / (of.size() as f64).powi(2);
        let behind = self.side * (mean(area) - mean(line));
        let error = self.surface.fitted.sigma * (variance(area) + variance(line)).sqrt();
        (behind <= (MAX_LOSS_ERRORS * error).max(MIN_GAIN_LN)).then_some(behind)
    }

    /// The cell of an area with the best level.
    fn best_cell(&self, area: Area) -> Option<usize> {
        let known = area
            .cells(self.shape.columns)
            .filter_map(|cell| Some((cell, self.side * self.surface.fitted.level(cell)?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(cell, _)| cell)
    }
}
