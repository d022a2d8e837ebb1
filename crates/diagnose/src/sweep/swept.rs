//! A run's sweep, understood: for each facet the surface of what was swept for, that of the
//! response, what stood beside both, and the settings that no other beats in both.

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

/// A sweep of a run.
pub struct Swept<'a> {
    pub sweep: &'a Sweep,
    pub facets: Vec<Facet<'a>>,
    /// Seconds from its beginning to the end of its last visit.
    pub spent_s: f64,
}

/// One map, or curve, with what belongs to it.
pub struct Facet<'a> {
    pub values: Vec<String>,
    /// `groups 4`; empty where there is one facet only.
    pub words: String,
    pub target: Charted<'a>,
    pub response: Option<Charted<'a>>,
    /// Cells of the front of both, where both were measured and both have a better side.
    pub front: Vec<usize>,
    /// What to set.
    pub advice: Advice,
}

/// A metric over the grid.
pub struct Charted<'a> {
    pub measure: &'a Measure,
    pub metric: &'a Metric,
    /// At the core clock [`Charted::clock`], where that is known.
    pub surface: Surface,
    pub grid_data: GridData<'a>,
    /// GHz to which all looks were brought ([`GridData::clock`]).
    pub clock: Option<f64>,
    /// The cell of the setting that was there before; the number of cells where it is none of them.
    pub control: usize,
    /// The median of all looks of each cell, in the metric's unit, then that of the control where
    /// it is no cell.
    pub medians: Vec<Option<f64>>,
    /// What it is called: `hackbench: wall time`.
    pub title: String,
    /// The series of each cell, then that of the control where it is no cell.
    pub judged: Vec<Option<&'a Judged>>,
    /// Other metrics of the same visits.
    pub beside: Vec<Beside<'a>>,
    /// Cells of the grid.
    pub cells: usize,
}

/// A metric that rode along: medians by cell.
pub struct Beside<'a> {
    pub metric: &'a Metric,
    pub looks: Vec<Observation>,
    pub medians: Vec<Option<f64>>,
    /// Rank correlation of its cells' medians with those of the metric that was swept for; `None`
    /// where too few cells differ.
    pub correlation: Option<f64>,
}

/// The series of one benchmark in one facet with the cell of each.
type Cells<'a> = Vec<(usize, &'a Judged)>;

/// What a rank correlation must have to say that two things go together, over at least [`CELLS`]
/// cells.
pub const TOGETHER: f64 = 0.7;
const CELLS: usize = 5;
/// Fewest visits of a region for the same.
const VISITS: usize = 8;
/// An effect of a knob, as a logarithm, that anybody would still call nothing.
const FINE: f64 = 0.1;

/// `None`: the run is no sweep.
pub fn swept<'a>(evidence: &Evidence<'a>) -> Option<Swept<'a>> {
    let sweep = evidence.run.header.sweep.as_ref()?;
    let facets = sweep.facet_values().into_iter().filter_map(|values| {
        let target = charted(sweep, &values, &sweep.target, evidence)?;
        let response = sweep.response.as_ref().and_then(|of| charted(sweep, &values, of, evidence));
        let front = response.as_ref().map_or(Vec::new(), |response| front(&target, response));
        let of = |charted: &Charted| advice((&charted.grid_data.question(), &charted.surface), None);
        let advice = match &response {
            None => of(&target),
            Some(response) => advice(
                (&target.grid_data.question(), &target.surface),
                Some((&response.grid_data.question(), &response.surface)),
            ),
        };
        Some(Facet { words: sweep.facet_words(&values), values, target, response, front, advice })
    });
    Some(Swept { sweep, facets: facets.collect(), spent_s: evidence.run.measured_ms() / 1e3 })
}

fn charted<'a>(
    sweep: &'a Sweep,
    facet: &[String],
    measure: &'a Measure,
    evidence: &Evidence<'a>,
) -> Option<Charted<'a>> {
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
    let medians = medians(&own, all);
    let mut beside: Vec<Beside> = Vec::new();
    for (_, judged) in &of_bench {
        let other = &judged.series.metric;
        if is_it(judged) || beside.iter().any(|known| known.metric.name == other.name) {
            continue;
        }
        let same = of_bench.iter().filter(|(_, judged)| judged.series.metric.name == other.name).copied();
        let same: Cells = same.collect();
        let theirs = self::medians(&same, all);
        let correlation = correlation(&medians, &theirs);
        beside.push(Beside { metric: other, looks: looks(&same), medians: theirs, correlation });
    }
    let series_of = |wanted: usize| own.iter().find(|(cell, _)| *cell == wanted).map(|(_, judged)| *judged);
    let judged = (0..all).map(series_of).collect();
    Some(Charted {
        measure,
        metric,
        surface,
        grid_data,
        clock,
        control,
        medians,
        title,
        judged,
        beside,
        cells,
    })
}

/// The looks of each cell.
fn looks(cells: &Cells) -> Vec<Observation> {
    let each = cells.iter().flat_map(|(cell, judged)| {
        judged.series.processes.iter().filter_map(move |process| {
            let value = median(&process.values)?;
            Some(Observation { cell: *cell, pass: process.pass, at: process.at_ms, value })
        })
    });
    each.collect()
}

/// The median of all looks of each cell.
fn medians(cells: &Cells, all: usize) -> Vec<Option<f64>> {
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
    (one.len() >= CELLS && differ).then(|| spearman(&one, &other).map(|found| found.rho)).flatten()
}

fn front(target: &Charted, response: &Charted) -> Vec<usize> {
    let sides = [target.metric.better, response.metric.better];
    if sides.contains(&Better::Neither) || !(target.surface.matters.yes || response.surface.matters.yes) {
        return Vec::new();
    }
    let spot = |(cell, (one, other)): (usize, (&Option<Level>, &Option<Level>))| {
        let both = [one.as_ref()?, other.as_ref()?];
        // The cell's own error: beside the control, the control itself would be a point.
        let around = |level: &Level| {
            let half = 1.96 * level.error;
            Interval { low: level.ln - half, high: level.ln + half }
        };
        Some(ParetoPoint { cell, values: both.map(|level| level.ln), intervals: both.map(around) })
    };
    let levels = target.surface.levels.iter().zip(&response.surface.levels).take(target.cells);
    pareto(&levels.enumerate().filter_map(spot).collect::<Vec<ParetoPoint>>(), sides)
}

impl Charted<'_> {
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

    /// Most cells' figures are not to be believed.
    pub fn is_rejected(&self) -> bool {
        let all = self.judged.iter().flatten();
        let rejected = all.clone().filter(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected);
        rejected.count() * 2 > all.count()
    }

    /// Whether of each knob so small an effect would have been told that "it does not matter" may
    /// be said.
    pub fn is_fine(&self) -> bool {
        let floors = |axis: usize| {
            let own =
                self.surface.test_results.iter().filter(move |answer| answer.hypothesis.axis() == Some(axis));
            own.filter_map(|answer| answer.floor).reduce(f64::min)
        };
        [0, 1].into_iter().filter_map(floors).all(|floor| floor <= FINE)
    }

    /// The answers of the knobs' own questions that are told.
    pub fn told(&self) -> impl Iterator<Item = &TestResult> {
        let own = |answer: &&TestResult| answer.is_yes() && answer.hypothesis.axis().is_some();
        self.surface.test_results.iter().filter(own)
    }

    /// Whether what one knob does depends on the other.
    pub fn depends(&self) -> bool {
        self.surface
            .test_results
            .iter()
            .any(|answer| answer.hypothesis == Hypothesis::Interaction && answer.is_yes())
    }

    /// How much more (1.2) or less (0.8) than at the setting that was there before.
    pub fn ratio(&self, cell: usize) -> Option<f64> {
        Some(self.surface.levels.get(cell)?.as_ref()?.ln.exp())
    }

    /// Whether a cell is told to be better than the setting that was there.
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

    /// The 95 % interval of that.
    pub fn interval(&self, cell: usize) -> Option<[f64; 2]> {
        let interval = self.surface.levels.get(cell)?.as_ref()?.interval;
        Some([interval.low.exp(), interval.high.exp()])
    }

    pub fn beside(&self, name: MetricId) -> Option<&Beside<'_>> {
        self.beside.iter().find(|beside| beside.metric.name == name)
    }
}

impl Beside<'_> {
    /// The median over these cells.
    pub fn over(&self, cells: &[usize]) -> Option<f64> {
        let values = cells.iter().filter_map(|cell| self.medians.get(*cell).copied().flatten());
        median(&values.collect::<Vec<f64>>())
    }

    /// Rank correlation with the metric that was swept for, visit by visit in these cells, and how
    /// many visits; `None` of too few.
    pub fn within(&self, charted: &Charted, cells: &[usize]) -> Option<(f64, usize)> {
        let own = charted.grid_data.observations.iter().filter(|look| cells.contains(&look.cell));
        let both = own.filter_map(|look| {
            let same = |other: &&Observation| other.cell == look.cell && other.at == look.at;
            Some((look.value, self.looks.iter().find(same)?.value))
        });
        let (one, other): (Vec<f64>, Vec<f64>) = both.unzip();
        let differ = other.iter().any(|value| *value != other[0]);
        (one.len() >= VISITS && differ)
            .then(|| spearman(&one, &other).map(|found| (found.rho, one.len())))
            .flatten()
    }
}
