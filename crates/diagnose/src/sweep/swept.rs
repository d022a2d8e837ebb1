//! Evaluates a run's sweep: for each facet the fitted surface of the target (the metric to improve)
//! and of the response (a second metric, usually a latency, that must not get worse), the
//! covariates of the same passes, and the Pareto front of both.

pub mod advice;
pub mod curve;
pub mod words;

use super::super::Evidence;
use model::sweep::Measure;
use model::vocabulary::MetricId;
use model::{Better, Metric, Sweep, VerdictKind};
use stats::analysis::Judged;
use stats::order::{Interval, median};
use stats::ranks::spearman;
use stats::sweep::grid_data::{GridData, cell_of, grid_data, is_of};
use stats::sweep::{
    Advice, Hypothesis, Level, Observation, ParetoPoint, Surface, TestResult, pareto, surface,
};

/// The evaluated sweep of a run.
pub struct EvaluatedSweep<'a> {
    pub sweep: &'a Sweep,
    pub facets: Vec<Facet<'a>>,
    /// Seconds from the start of the run to the end of its last pass.
    pub spent_s: f64,
}

/// One map or curve: the target and the response at one combination of facet values.
pub struct Facet<'a> {
    pub values: Vec<String>,
    /// `groups 4`; empty if there is one facet only.
    pub label: String,
    pub target: MetricGrid<'a>,
    pub response: Option<MetricGrid<'a>>,
    /// Cells of the Pareto front; empty unless both were measured and both have a better side.
    pub front: Vec<usize>,
    /// The settings to choose for throughput, for response and for both.
    pub advice: Advice,
}

/// One metric over all cells of the grid.
pub struct MetricGrid<'a> {
    pub measure: &'a Measure,
    pub metric: &'a Metric,
    /// Fitted at the core clock [`MetricGrid::clock`] if that is known.
    pub surface: Surface,
    pub grid_data: GridData<'a>,
    /// The core clock to which all observations were scaled, GHz ([`GridData::clock`]).
    pub clock: Option<f64>,
    /// Where `medians`, `judged` and the surface's levels have the setting before the sweep: at a
    /// cell of the grid, or after all cells (at index `cells`) if the grid lacks that setting.
    pub control: usize,
    /// The median of each cell in the metric's unit; after the cells the control if it is no cell.
    pub medians: Vec<Option<f64>>,
    /// `hackbench: wall time`.
    pub title: String,
    /// The series of each cell; after the cells that of the control if it is no cell.
    pub judged: Vec<Option<&'a Judged>>,
    /// Other metrics of the same passes.
    pub covariates: Vec<Covariate<'a>>,
    /// The number of cells of the grid.
    pub cells: usize,
}

/// Another metric of the same passes, such as a count of context switches.
pub struct Covariate<'a> {
    pub metric: &'a Metric,
    pub observations: Vec<Observation>,
    pub medians: Vec<Option<f64>>,
    /// Rank correlation (Spearman) of its cells' medians with those of the target; `None` with
    /// fewer than [`MIN_CELLS`] cells or without any difference.
    pub correlation: Option<f64>,
}

/// Series of one facet, each with its cell.
type SeriesOfCells<'a> = Vec<(usize, &'a Judged)>;

/// A rank correlation (Spearman) of a covariate with the target over the visits of some cells.
pub struct VisitCorrelation {
    pub rho: f64,
    pub visits: usize,
}

impl VisitCorrelation {
    fn words(&self) -> String {
        format!("rank correlation {:.2} over {} passes", self.rho, self.visits)
    }
}

/// The smallest rank correlation that is named as a relation, over at least [`MIN_CELLS`] cells.
pub const MIN_RHO: f64 = 0.7;
const MIN_CELLS: usize = 5;
/// Passes that a region of cells needs for a rank correlation over them.
const MIN_VISITS: usize = 8;
/// An effect of a knob up to this size (10 %, as a logarithm) does not matter.
const NEGLIGIBLE_LOG_EFFECT: f64 = 0.1;

/// `None`: the run is no sweep.
pub fn evaluate_sweep<'a>(evidence: &Evidence<'a>) -> Option<EvaluatedSweep<'a>> {
    let sweep = evidence.run.header.sweep.as_ref()?;
    let facets = sweep.facet_values().into_iter().filter_map(|values| {
        let target = metric_grid(sweep, &values, &sweep.target, evidence)?;
        let response =
            sweep.response.as_ref().and_then(|measure| metric_grid(sweep, &values, measure, evidence));
        let front = response.as_ref().map_or(Vec::new(), |response| pareto_front(&target, response));
        let response_question = response.as_ref().map(|response| response.grid_data.question());
        let advice = stats::sweep::advice(
            (&target.grid_data.question(), &target.surface),
            response_question.as_ref().zip(response.as_ref().map(|response| &response.surface)),
        );
        Some(Facet { label: sweep.facet_words(&values), values, target, response, front, advice })
    });
    Some(EvaluatedSweep { sweep, facets: facets.collect(), spent_s: evidence.run.measured_ms() / 1e3 })
}

fn metric_grid<'a>(
    sweep: &'a Sweep,
    facet: &[String],
    measure: &'a Measure,
    evidence: &Evidence<'a>,
) -> Option<MetricGrid<'a>> {
    let (run, series) = (evidence.run, evidence.series);
    let of_bench: SeriesOfCells = series
        .iter()
        .filter(|judged| judged.series.case.bench == measure.bench.as_str())
        .filter_map(|judged| Some((cell_of(sweep, facet, &judged.series)?, judged)))
        .collect();
    let is_measured = |judged: &Judged| is_of(measure, &judged.series);
    let measured: SeriesOfCells =
        of_bench.iter().filter(|(_, judged)| is_measured(judged)).copied().collect();
    let measured_series: Vec<_> = measured.iter().map(|(cell, judged)| (*cell, &judged.series)).collect();
    let clock_and_machine = (evidence.clock, evidence.machine);
    let grid_data = grid_data(sweep, facet, measure, &measured_series, clock_and_machine, run.header.seed)?;
    let surface = surface(&grid_data.question())?;
    let (clock, control, metric, cells) =
        (grid_data.clock, grid_data.control, grid_data.metric, grid_data.shape.cells());
    let cells_and_control = surface.levels.len();
    let bench = run.header.catalogue.iter().find(|title| title.id == measure.bench);
    let title = bench.map_or(measure.bench.as_str(), |title| &title.title);
    let title = format!("{title}: {}", metric.title);
    let medians = medians_of_cells(&measured, cells_and_control);
    let mut covariates: Vec<Covariate> = Vec::new();
    for (_, judged) in &of_bench {
        let covariate = &judged.series.metric;
        if is_measured(judged) || covariates.iter().any(|known| known.metric.name == covariate.name) {
            continue;
        }
        let is_covariate = |judged: &Judged| judged.series.metric.name == covariate.name;
        let of_covariate: SeriesOfCells =
            of_bench.iter().filter(|(_, judged)| is_covariate(judged)).copied().collect();
        let covariate_medians = medians_of_cells(&of_covariate, cells_and_control);
        covariates.push(Covariate {
            metric: covariate,
            observations: observations(&of_covariate),
            correlation: correlation(&medians, &covariate_medians),
            medians: covariate_medians,
        });
    }
    let series_of =
        |wanted: usize| measured.iter().find(|(cell, _)| *cell == wanted).map(|(_, judged)| *judged);
    let judged = (0..cells_and_control).map(series_of).collect();
    Some(MetricGrid {
        measure,
        metric,
        surface,
        grid_data,
        clock,
        control,
        medians,
        title,
        judged,
        covariates,
        cells,
    })
}

/// The observations of each cell: the median of each visit (in stats a `Process`).
fn observations(series: &SeriesOfCells) -> Vec<Observation> {
    let each = series.iter().flat_map(|(cell, judged)| {
        judged.series.processes.iter().filter_map(move |process| {
            let value = median(&process.values)?;
            Some(Observation { cell: *cell, pass: process.pass, at: process.at_ms, value })
        })
    });
    each.collect()
}

/// The median over the visits of each cell.
fn medians_of_cells(series: &SeriesOfCells, cells_and_control: usize) -> Vec<Option<f64>> {
    let median_of = |wanted: usize| {
        let of_cell = series.iter().filter(|(cell, _)| *cell == wanted);
        let processes = of_cell.flat_map(|(_, judged)| judged.series.processes.iter());
        median(&processes.filter_map(|process| median(&process.values)).collect::<Vec<f64>>())
    };
    (0..cells_and_control).map(median_of).collect()
}

/// Of the cells for which both are known; `None` if the covariate is the same in all of them.
fn correlation(target: &[Option<f64>], covariate: &[Option<f64>]) -> Option<f64> {
    let both = target.iter().zip(covariate).filter_map(|(target, covariate)| (*target).zip(*covariate));
    let (target, covariate): (Vec<f64>, Vec<f64>) = both.unzip();
    let differs = covariate.iter().any(|value| *value != covariate[0]);
    (target.len() >= MIN_CELLS && differs)
        .then(|| spearman(&target, &covariate).map(|found| found.rho))
        .flatten()
}

fn pareto_front(target: &MetricGrid, response: &MetricGrid) -> Vec<usize> {
    let sides = [target.metric.better, response.metric.better];
    if sides.contains(&Better::Neither) || !(target.surface.matters.yes || response.surface.matters.yes) {
        return Vec::new();
    }
    let point = |(cell, (target, response)): (usize, (&Option<Level>, &Option<Level>))| {
        let both = [target.as_ref()?, response.as_ref()?];
        let values = both.map(|level| level.ln);
        Some(ParetoPoint { cell, values, intervals: both.map(interval_of_level) })
    };
    let levels = target.surface.levels.iter().zip(&response.surface.levels).take(target.cells);
    pareto(&levels.enumerate().filter_map(point).collect::<Vec<ParetoPoint>>(), sides)
}

/// The 95 % interval of a level itself. [`Level::interval`] is that of its ratio to the control, in
/// which the control has no error. [`Level::error`] is scaled so that Student's factor is 1.96.
fn interval_of_level(level: &Level) -> Interval {
    let half = 1.96 * level.error;
    Interval { low: level.ln - half, high: level.ln + half }
}

impl MetricGrid<'_> {
    /// How many cells have verdicts of which kind: `12 trusted, 4 imprecise`.
    pub fn verdicts(&self) -> String {
        let mut kinds: Vec<(VerdictKind, usize)> = Vec::new();
        for judged in self.judged.iter().flatten() {
            let kind = judged.analysis.verdict.kind;
            match kinds.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let each = kinds.iter().map(|(kind, count)| format!("{count} {}", kind.words()));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Whether the figures of most cells were rejected.
    pub fn is_rejected(&self) -> bool {
        let all = self.judged.iter().flatten();
        let rejected = all.clone().filter(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected);
        rejected.count() * 2 > all.count()
    }

    /// Whether the sweep would have detected an effect of [`NEGLIGIBLE_LOG_EFFECT`] for each knob,
    /// so that no detected effect means that the knobs do not matter.
    pub fn is_sensitive(&self) -> bool {
        would_detect(NEGLIGIBLE_LOG_EFFECT, &self.surface.test_results)
    }

    /// The significant effects of single knobs.
    pub fn significant_effects(&self) -> impl Iterator<Item = &TestResult> {
        let is_effect = |result: &&TestResult| result.is_yes() && result.hypothesis.axis().is_some();
        self.surface.test_results.iter().filter(is_effect)
    }

    /// Whether the effect of one knob depends on the other.
    pub fn has_interaction(&self) -> bool {
        self.surface
            .test_results
            .iter()
            .any(|result| result.hypothesis == Hypothesis::Interaction && result.is_yes())
    }

    /// The ratio to the setting before the sweep: 1.2 is 20 % more, 0.8 is 20 % less.
    pub fn ratio(&self, cell: usize) -> Option<f64> {
        Some(self.surface.levels.get(cell)?.as_ref()?.ln.exp())
    }

    /// Whether a cell is significantly better than the setting before the sweep.
    pub fn beats(&self, cell: usize) -> bool {
        let better = |[low, high]: [f64; 2]| match self.metric.better {
            Better::Lower => high < 1.0,
            Better::Higher => low > 1.0,
            Better::Neither => false,
        };
        cell != self.control
            && !self.surface.best.contains(&self.control)
            && self.interval(cell).is_some_and(better)
    }

    /// The 95 % interval of [`MetricGrid::ratio`].
    pub fn interval(&self, cell: usize) -> Option<[f64; 2]> {
        let interval = self.surface.levels.get(cell)?.as_ref()?.interval;
        Some([interval.low.exp(), interval.high.exp()])
    }

    pub fn covariate(&self, name: MetricId) -> Option<&Covariate<'_>> {
        self.covariates.iter().find(|covariate| covariate.metric.name == name)
    }
}

/// Whether for each knob that was tested an effect of this size would have been detected. False if
/// no knob was tested.
fn would_detect(log_effect: f64, results: &[TestResult]) -> bool {
    let mut tested = [false; 2];
    let mut detects = [false; 2];
    for result in results {
        if let Some(axis) = result.hypothesis.axis() {
            tested[axis] = true;
            detects[axis] |= result.floor.is_some_and(|smallest| smallest <= log_effect);
        }
    }
    tested != [false; 2] && tested == detects
}

impl Covariate<'_> {
    /// The median of the medians of these cells.
    pub fn over(&self, cells: &[usize]) -> Option<f64> {
        let values = cells.iter().filter_map(|cell| self.medians.get(*cell).copied().flatten());
        median(&values.collect::<Vec<f64>>())
    }

    /// Correlation with the target over the passes of these cells; `None` with fewer than
    /// [`MIN_VISITS`] of them.
    pub fn correlation_within(&self, target: &MetricGrid, cells: &[usize]) -> Option<VisitCorrelation> {
        let of_cells = target.grid_data.observations.iter().filter(|one| cells.contains(&one.cell));
        let both = of_cells.filter_map(|one| {
            // Both metrics of a pass have its time, copied: equal to the bit.
            let is_same_visit = |other: &&Observation| other.cell == one.cell && other.at == one.at;
            Some((one.value, self.observations.iter().find(is_same_visit)?.value))
        });
        let (target, covariate): (Vec<f64>, Vec<f64>) = both.unzip();
        let differs = covariate.iter().any(|value| *value != covariate[0]);
        let rho = spearman(&target, &covariate).filter(|_| target.len() >= MIN_VISITS && differs)?.rho;
        Some(VisitCorrelation { rho, visits: target.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_without_a_tested_knob_is_not_sensitive() {
        let result = |hypothesis: Hypothesis, floor: Option<f64>| TestResult {
            hypothesis,
            p: 0.5,
            adjusted: 0.5,
            effects: Vec::new(),
            floor,
        };
        let knob = |axis: usize, floor: Option<f64>| result(Hypothesis::Main { axis }, floor);
        let any = || result(Hypothesis::Any, Some(0.01));
        assert!(!would_detect(0.1, &[]) && !would_detect(0.1, &[any()]));
        assert!(would_detect(0.1, &[knob(0, Some(0.05))]));
        assert!(would_detect(0.1, &[knob(0, Some(0.05)), knob(1, Some(0.1)), any()]));
        assert!(!would_detect(0.1, &[knob(0, Some(0.05)), knob(1, Some(0.2))]));
        assert!(!would_detect(0.1, &[knob(0, Some(0.05)), knob(1, None)]), "nothing known of the second");
    }
}
