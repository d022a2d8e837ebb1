//! A run's sweep, evaluated: for each facet the fitted surface of the target and of the response,
//! the covariates of the same passes, and the Pareto front of both.

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
    Advice, Hypothesis, Level, Observation, ParetoPoint, Surface, TestResult, advice, pareto, surface,
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
    /// The cell of the setting before the sweep; equal to `cells` if that setting is no cell.
    pub control: usize,
    /// The median of each cell in the metric's unit, and last that of the control if it is no cell.
    pub medians: Vec<Option<f64>>,
    /// `hackbench: wall time`.
    pub title: String,
    /// The series of each cell, and last that of the control if it is no cell.
    pub judged: Vec<Option<&'a Judged>>,
    /// Other metrics of the same passes.
    pub covariates: Vec<Covariate<'a>>,
    /// The number of cells of the grid.
    pub cells: usize,
}

/// Another metric of the same passes, such as a count of context switches.
pub struct Covariate<'a> {
    pub metric: &'a Metric,
    pub looks: Vec<Observation>,
    pub medians: Vec<Option<f64>>,
    /// Rank correlation (Spearman) of its cells' medians with those of the target; `None` with
    /// fewer than [`MIN_CELLS`] cells or without any difference.
    pub correlation: Option<f64>,
}

/// The series of one benchmark in one facet with the cell of each.
type Cells<'a> = Vec<(usize, &'a Judged)>;

/// The smallest rank correlation that is named as a relation, over at least [`MIN_CELLS`] cells.
pub const MIN_RHO: f64 = 0.7;
const MIN_CELLS: usize = 5;
/// Passes that a region needs for the same.
const MIN_VISITS: usize = 8;
/// An effect of a knob up to this size (10 %, as a logarithm) does not matter.
const NEGLIGIBLE_LOG_EFFECT: f64 = 0.1;

/// `None`: the run is no sweep.
pub fn swept<'a>(evidence: &Evidence<'a>) -> Option<EvaluatedSweep<'a>> {
    let sweep = evidence.run.header.sweep.as_ref()?;
    let facets = sweep.facet_values().into_iter().filter_map(|values| {
        let target = charted(sweep, &values, &sweep.target, evidence)?;
        let response = sweep.response.as_ref().and_then(|of| charted(sweep, &values, of, evidence));
        let front = response.as_ref().map_or(Vec::new(), |response| front(&target, response));
        let of = |charted: &MetricGrid| advice((&charted.grid_data.question(), &charted.surface), None);
        let advice = match &response {
            None => of(&target),
            Some(response) => advice(
                (&target.grid_data.question(), &target.surface),
                Some((&response.grid_data.question(), &response.surface)),
            ),
        };
        Some(Facet { label: sweep.facet_words(&values), values, target, response, front, advice })
    });
    Some(EvaluatedSweep { sweep, facets: facets.collect(), spent_s: evidence.run.measured_ms() / 1e3 })
}

fn charted<'a>(
    sweep: &'a Sweep,
    facet: &[String],
    measure: &'a Measure,
    evidence: &Evidence<'a>,
) -> Option<MetricGrid<'a>> {
    let (run, series) = (evidence.run, evidence.series);
    let of_bench: Cells = series
        .iter()
        .filter(|judged| judged.series.case.bench == measure.bench.as_str())
        .filter_map(|judged| Some((cell_of(sweep, facet, &judged.series)?, judged)))
        .collect();
    let is_it = |judged: &Judged| is_of(measure, &judged.series);
    let own: Cells = of_bench.iter().filter(|(_, judged)| is_it(judged)).copied().collect();
    let of_own: Vec<_> = own.iter().map(|(cell, judged)| (*cell, &judged.series)).collect();
    let clock = (evidence.clock, evidence.machine);
    let grid_data = grid_data(sweep, facet, measure, &of_own, clock, run.header.seed)?;
    let surface = surface(&grid_data.question())?;
    let (clock, control, metric, cells) =
        (grid_data.clock, grid_data.control, grid_data.metric, grid_data.shape.cells());
    let all = surface.levels.len();
    let bench = run.header.catalogue.iter().find(|title| title.id == measure.bench);
    let title = bench.map_or(measure.bench.as_str(), |title| &title.title);
    let title = format!("{title}: {}", metric.title);
    let medians = medians_of_cells(&own, all);
    let mut covariates: Vec<Covariate> = Vec::new();
    for (_, judged) in &of_bench {
        let other = &judged.series.metric;
        if is_it(judged) || covariates.iter().any(|known| known.metric.name == other.name) {
            continue;
        }
        let same = of_bench.iter().filter(|(_, judged)| judged.series.metric.name == other.name).copied();
        let same: Cells = same.collect();
        let own = medians_of_cells(&same, all);
        let correlation = correlation(&medians, &own);
        covariates.push(Covariate { metric: other, looks: looks(&same), medians: own, correlation });
    }
    let series_of = |wanted: usize| own.iter().find(|(cell, _)| *cell == wanted).map(|(_, judged)| *judged);
    let judged = (0..all).map(series_of).collect();
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

/// The observations of each cell: the median of each process.
fn looks(cells: &Cells) -> Vec<Observation> {
    let each = cells.iter().flat_map(|(cell, judged)| {
        judged.series.processes.iter().filter_map(move |process| {
            let value = median(&process.values)?;
            Some(Observation { cell: *cell, pass: process.pass, at: process.at_ms, value })
        })
    });
    each.collect()
}

/// The median over the processes of each cell.
fn medians_of_cells(cells: &Cells, all: usize) -> Vec<Option<f64>> {
    let of = |wanted: usize| {
        let own = cells.iter().filter(|(cell, _)| *cell == wanted);
        let values = own.flat_map(|(_, judged)| judged.series.processes.iter());
        median(&values.filter_map(|process| median(&process.values)).collect::<Vec<f64>>())
    };
    (0..all).map(of).collect()
}

fn correlation(one: &[Option<f64>], other: &[Option<f64>]) -> Option<f64> {
    let both = one.iter().zip(other).filter_map(|(one, other)| Some((*one.as_ref()?, *other.as_ref()?)));
    let (one, other): (Vec<f64>, Vec<f64>) = both.unzip();
    let differ = other.iter().any(|value| *value != other[0]);
    (one.len() >= MIN_CELLS && differ).then(|| spearman(&one, &other).map(|found| found.rho)).flatten()
}

fn front(target: &MetricGrid, response: &MetricGrid) -> Vec<usize> {
    let sides = [target.metric.better, response.metric.better];
    if sides.contains(&Better::Neither) || !(target.surface.matters.yes || response.surface.matters.yes) {
        return Vec::new();
    }
    let spot = |(cell, (one, other)): (usize, (&Option<Level>, &Option<Level>))| {
        let both = [one.as_ref()?, other.as_ref()?];
        // The error of the level alone: relative to the control, the control would have none.
        let around = |level: &Level| {
            let half = 1.96 * level.error;
            Interval { low: level.ln - half, high: level.ln + half }
        };
        Some(ParetoPoint { cell, values: both.map(|level| level.ln), intervals: both.map(around) })
    };
    let levels = target.surface.levels.iter().zip(&response.surface.levels).take(target.cells);
    pareto(&levels.enumerate().filter_map(spot).collect::<Vec<ParetoPoint>>(), sides)
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
        let smallest_detectable = |axis: usize| {
            let own =
                self.surface.test_results.iter().filter(move |answer| answer.hypothesis.axis() == Some(axis));
            own.filter_map(|answer| answer.floor).reduce(f64::min)
        };
        [0, 1].into_iter().filter_map(smallest_detectable).all(|effect| effect <= NEGLIGIBLE_LOG_EFFECT)
    }

    /// The significant answers to the questions about single knobs.
    pub fn significant_effects(&self) -> impl Iterator<Item = &TestResult> {
        let own = |answer: &&TestResult| answer.is_yes() && answer.hypothesis.axis().is_some();
        self.surface.test_results.iter().filter(own)
    }

    /// Whether the effect of one knob depends on the other.
    pub fn depends(&self) -> bool {
        self.surface
            .test_results
            .iter()
            .any(|answer| answer.hypothesis == Hypothesis::Interaction && answer.is_yes())
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

impl Covariate<'_> {
    /// The median of the medians of these cells.
    pub fn over(&self, cells: &[usize]) -> Option<f64> {
        let values = cells.iter().filter_map(|cell| self.medians.get(*cell).copied().flatten());
        median(&values.collect::<Vec<f64>>())
    }

    /// Rank correlation with the target over the passes of these cells, and the number of passes;
    /// `None` with fewer than [`MIN_VISITS`] of them.
    pub fn within(&self, charted: &MetricGrid, cells: &[usize]) -> Option<(f64, usize)> {
        let own = charted.grid_data.observations.iter().filter(|look| cells.contains(&look.cell));
        let both = own.filter_map(|look| {
            let same = |other: &&Observation| other.cell == look.cell && other.at == look.at;
            Some((look.value, self.looks.iter().find(same)?.value))
        });
        let (one, other): (Vec<f64>, Vec<f64>) = both.unzip();
        let differ = other.iter().any(|value| *value != other[0]);
        (one.len() >= MIN_VISITS && differ)
            .then(|| spearman(&one, &other).map(|found| (found.rho, one.len())))
            .flatten()
    }
}
