//! What a sweep's layout asks of the series of its run: which series is which cell, and the
//! observations that the question rests on.

use machine::Machine;
use model::sweep::{Axis, Measure};
use model::{Better, Metric, Sweep, fingerprint};

use super::{Knob, Observation, Question, Shape, detectable_effect, surface};
use crate::core_bound::{RunClock, settings_at_clock};
use crate::order::median;
use crate::series::{Process, Series};

/// A measure over the grid of one facet.
pub struct GridData<'a> {
    pub shape: Shape,
    /// The cell of the setting that was there before; the number of cells where it is none of them.
    pub control: usize,
    pub metric: &'a Metric,
    pub observations: Vec<Observation>,
    /// GHz to which all observations were brought: where the work is core-bound, the clock moved,
    /// and no knob moves it.
    pub clock: Option<f64>,
    before: [usize; 2],
    places: [Option<Vec<f64>>; 2],
    seed: u64,
}

/// Which cell a series is: `None`: it is none of this facet.
pub fn cell_of(sweep: &Sweep, facet: &[String], series: &Series) -> Option<usize> {
    let [columns, rows] = sweep.shape();
    if !sweep.is_in_facet(&series.case, facet) {
        return None;
    }
    match sweep.cell_of(&series.case) {
        Some([column, row]) => Some(row * columns + column),
        None => sweep.control.contains(&(series.planned as u32)).then_some(columns * rows),
    }
}

/// Whether a series is what a measure names.
pub fn is_of(measure: &Measure, series: &Series) -> bool {
    series.case.bench == measure.bench.as_str()
        && series.metric.name == measure.metric
        && series.point.is_empty()
}

/// `series`: of the measure, each with its cell. `clock`: that of the run.
pub fn grid_data<'a>(
    sweep: &Sweep,
    facet: &[String],
    measure: &Measure,
    series: &[(usize, &'a Series)],
    (clock, machine): (Option<RunClock>, &Machine),
    seed: u64,
) -> Option<GridData<'a>> {
    let [columns, rows] = sweep.shape();
    let metric = &series.first()?.1.metric;
    let is_control = |own: &Series| sweep.control.contains(&(own.planned as u32));
    let control = series.iter().find(|(_, own)| is_control(own)).map(|(cell, _)| *cell)?;
    let axis = |index: usize| sweep.axes.get(index);
    let mut grid_data = GridData {
        shape: Shape { columns, rows },
        control,
        metric,
        observations: Vec::new(),
        clock: None,
        before: [0, 1].map(|index| axis(index).and_then(before).unwrap_or(0)),
        places: [0, 1].map(|index| axis(index).and_then(places)),
        seed: seed ^ fingerprint(&format!("{} {}", measure.metric, facet.join(" "))),
    };
    let observations = |value: &dyn Fn(usize, usize, &Process) -> Option<f64>| -> Vec<Observation> {
        let each = series.iter().enumerate().flat_map(|(place, (cell, own))| {
            let processes = own.processes.iter().enumerate();
            processes.map(move |(index, process)| (place, index, *cell, process))
        });
        let one = |(place, index, cell, process): (usize, usize, usize, &Process)| {
            Some(Observation {
                cell,
                pass: process.pass,
                at: process.at_ms,
                value: value(place, index, process)?,
            })
        };
        each.filter_map(one).collect()
    };
    let own: Vec<&Series> = series.iter().map(|(_, own)| *own).collect();
    let common = clock.and_then(|clock| clock.common()).map(|common| common.ghz);
    let at_clock = common.and_then(|ghz| {
        let values = settings_at_clock(&own, machine, ghz)?;
        // A clock that the knobs move is part of what they do.
        grid_data.observations = observations(&|_, _, process| Some(process.clock_ghz()));
        let moved = surface(&Question { better: Better::Neither, ..grid_data.question() })?.matters.yes;
        (!moved).then_some((ghz, values))
    });
    (grid_data.clock, grid_data.observations) = match &at_clock {
        Some((ghz, values)) => {
            (Some(*ghz), observations(&|place, index, _| values[place].get(index).copied()))
        }
        None => (None, observations(&|_, _, process| median(&process.values))),
    };
    Some(grid_data)
}

impl GridData<'_> {
    pub fn question(&self) -> Question<'_> {
        let knob = |index: usize| Knob { before: self.before[index], places: self.places[index].as_deref() };
        Question {
            shape: self.shape,
            knobs: [knob(0), knob(1)],
            control: self.control,
            observations: &self.observations,
            better: self.metric.better,
            seed: self.seed,
        }
    }
}

/// The place of the value that was there before.
fn before(axis: &Axis) -> Option<usize> {
    axis.values.iter().position(|value| Some(value) == axis.before.as_ref())
}

/// Where the values of an axis stand among each other by size; `None` where they are no numbers.
fn places(axis: &Axis) -> Option<Vec<f64>> {
    let numbers = axis.numbers()?;
    let smaller = |number: &f64| numbers.iter().filter(|other| *other < number).count() as f64;
    Some(numbers.iter().map(smaller).collect())
}

/// Of each measure in each facet, the smallest effect of a knob that would have been detected by
/// now, as a logarithm; those of which no question can be asked are left out.
pub fn detectable_so_far(
    sweep: &Sweep,
    series: &[Series],
    clock: (Option<RunClock>, &Machine),
    seed: u64,
) -> Vec<f64> {
    let mut all = Vec::new();
    for facet in sweep.facet_values() {
        for measure in [Some(&sweep.target), sweep.response.as_ref()].into_iter().flatten() {
            let own = series.iter().filter(|own| is_of(measure, own));
            let own: Vec<(usize, &Series)> =
                own.filter_map(|own| Some((cell_of(sweep, &facet, own)?, own))).collect();
            let grid_data = grid_data(sweep, &facet, measure, &own, clock, seed);
            all.extend(grid_data.and_then(|grid_data| detectable_effect(&grid_data.question())));
        }
    }
    all
}
