//! An evaluated rate suite: the runs of each component in their order, its variance components, and
//! the index of the suite.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::bound::fits;
use machine::Machine;
use model::vocabulary::MetricId;
use model::vocabulary::rate as ids;
use model::{Run, Value};
use stats::analysis::{CONFIDENCE, Judged};
use stats::index::{Component, Index, index};
use stats::nested::{self, Nest};
use stats::order::median;
use stats::ranks::spearman;
use stats::repeat::{APART, STILL, Sequence, Shape, scatter_inside, sequence};

const GROUP: &str = "rate.";
/// Characters whose data fill the footprint.
const LATENCY: &str = "memory latency";
const MEMORY: [&str; 2] = ["memory bandwidth", LATENCY];

/// An earlier run of the suite on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EarlierRun {
    pub started: String,
    pub boot_id: Option<String>,
    pub uptime_s: Option<f64>,
    /// Median of each series, by its key.
    pub medians: BTreeMap<String, f64>,
}

/// The variance components of a component; the shares add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VarianceShares {
    /// Between pieces of work on the same arrays.
    pub iterations: f64,
    /// Between arrays of one pass; `None` if each pass had one set.
    pub allocations: Option<f64>,
    pub processes: f64,
}

impl VarianceShares {
    /// The share that is fixed before a piece of work starts.
    pub fn settled(&self) -> f64 {
        self.allocations.unwrap_or(0.0) + self.processes
    }
}

/// A component and its runs.
pub struct Part<'a> {
    pub rate: &'a Judged,
    pub ratio: Option<&'a Judged>,
    /// The medians of its passes in their order.
    pub runs: Option<Sequence>,
    /// How far pieces of work of one pass lie apart, as a share.
    pub scatter: f64,
    pub variance: Option<VarianceShares>,
    /// The physical address of each of these runs, GiB, and its rank correlation with the rate
    /// (Spearman); `None` unless it is known for every run.
    pub places: Option<(Vec<f64>, f64)>,
    /// Medians of earlier runs at the same footprint, the oldest first, and this one's.
    pub history: Option<Sequence>,
}

impl Part<'_> {
    pub fn key(&self) -> &str {
        &self.rate.series.key
    }

    /// `bwaves` of `rate.bwaves`.
    pub fn name(&self) -> &str {
        let id = self.rate.series.case.bench.as_ref();
        id.strip_prefix(GROUP).unwrap_or(id)
    }

    pub fn character(&self) -> &str {
        self.rate.series.case.inputs.get("character").map_or("", String::as_str)
    }

    /// Whether its data fill the footprint; only an experiment shows what it is bound by.
    pub fn is_memory(&self) -> bool {
        MEMORY.contains(&self.character())
    }

    /// Whether it waits for single lines: then its copies may scale although memory limits it.
    pub fn waits_for_lines(&self) -> bool {
        self.character() == LATENCY
    }

    /// Its runs, if two of them are farther apart than [`APART`] and than the pieces of one run.
    pub fn swings(&self) -> Option<&Sequence> {
        self.runs.as_ref().filter(|runs| runs.apart > APART && runs.shape != Shape::Flat)
    }

    fn holds_still(&self) -> bool {
        self.runs.as_ref().is_some_and(|runs| runs.apart <= STILL)
    }

    pub fn copies(&self) -> u64 {
        self.rate.series.case.placement.seats.len() as u64
    }

    /// Memory of all copies of one NUMA node, MiB; each node has the same number of copies.
    pub fn node_mib(&self) -> u64 {
        let seats = &self.rate.series.case.placement.seats;
        let nodes: BTreeSet<u32> = seats.iter().filter_map(|seat| seat.mem_nodes.first()).collect();
        self.mib() * self.copies() / nodes.len().max(1) as u64
    }

    /// Memory of one copy, MiB.
    pub fn mib(&self) -> u64 {
        self.rate
            .series
            .case
            .params
            .get(ids::param::MIB)
            .and_then(Value::int)
            .and_then(|mib| u64::try_from(mib).ok())
            .unwrap_or(0)
    }
}

/// What an experiment on a component measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// One copy alone.
    Alone,
    /// One copy, while every other CPU of the suite streams through memory.
    BesideStreams,
}

impl Experiment {
    fn of(judged: &Judged) -> Option<Experiment> {
        match judged.series.case.inputs.get("experiment")?.as_str() {
            "alone" => Some(Experiment::Alone),
            _ => Some(Experiment::BesideStreams),
        }
    }
}

/// Whether memory explains which components vary from run to run.
#[derive(Clone, Debug, PartialEq)]
pub enum MovingComponents<'a> {
    /// Some components in memory vary, none of them is still, and all in caches are still: these.
    Memory(Vec<&'a str>),
    /// These components in caches vary too.
    Others(Vec<&'a str>),
    /// Neither can be concluded.
    Open,
}

/// Whether a series belongs to an experiment of the suite, and not to the suite's figures.
pub fn is_experiment(judged: &Judged) -> bool {
    Experiment::of(judged).is_some()
}

/// A run's suite.
pub struct Suite<'a> {
    pub parts: Vec<Part<'a>>,
    /// Rates of one copy.
    pub experiments: Vec<(Experiment, &'a Judged)>,
    /// Of the ratios of all that were measured.
    pub index: Option<Index>,
    pub past: Vec<EarlierRun>,
}

/// The suite of a run; `None` where it measured none.
pub fn suite<'a>(run: &Run, series: &'a [Judged]) -> Option<Suite<'a>> {
    let past = past(run);
    let whole = |judged: &&Judged, metric: MetricId| {
        judged.series.case.bench.starts_with(GROUP)
            && judged.series.metric.name == metric
            && judged.series.point.is_empty()
            && judged.analysis.estimate.is_some()
    };
    let rates = || series.iter().filter(|judged| whole(judged, ids::metric::RATE));
    let experiments = rates().filter_map(|judged| Some((Experiment::of(judged)?, judged))).collect();
    let parts: Vec<Part> = rates()
        .filter(|judged| !is_experiment(judged))
        .map(|rate| {
            let same = |judged: &&Judged| judged.series.planned == rate.series.planned;
            let metric_of = |metric| series.iter().filter(|judged| whole(judged, metric)).find(same);
            part(rate, metric_of(ids::metric::RATIO), metric_of(ids::metric::PHYSICAL), &past)
        })
        .collect();
    let components = parts.iter().filter(|part| part.rate.analysis.verdict.usable()).filter_map(|part| {
        let estimate = part.ratio?.analysis.estimate.as_ref()?;
        let (name, interval) = (part.name().to_string(), estimate.interval);
        Some(Component { name, ratio: estimate.median, interval, weight: 1.0 })
    });
    let index = index(&components.collect::<Vec<_>>(), CONFIDENCE);
    (!parts.is_empty()).then_some(Suite { parts, experiments, index, past })
}

fn part<'a>(
    rate: &'a Judged,
    ratio: Option<&'a Judged>,
    physical: Option<&Judged>,
    past: &[EarlierRun],
) -> Part<'a> {
    let groups = rate.series.values();
    let medians: Vec<f64> = groups.iter().filter_map(|values| median(values)).collect();
    let scatter = scatter_inside(&groups);
    let now = rate.median();
    let earlier = past.iter().filter_map(|run| run.medians.get(&rate.series.key)).copied();
    let history: Vec<f64> = earlier.chain(now).collect();
    let places: Option<Vec<f64>> =
        physical.map(|judged| judged.series.values().iter().filter_map(|values| median(values)).collect());
    let places = places.filter(|places| places.len() == medians.len()).and_then(|places| {
        let correlation = spearman(&places, &medians)?;
        Some((places, correlation.rho))
    });
    Part {
        rate,
        ratio,
        places,
        runs: sequence(&medians, scatter),
        scatter,
        variance: variance_shares(&groups, iterations_of(rate)),
        history: sequence(&history, scatter),
    }
}

fn iterations_of(rate: &Judged) -> usize {
    rate.series.case.inputs.get("iterations").and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Iteration inside allocation inside process (Kalibera & Jones).
fn variance_shares(groups: &[Vec<f64>], iterations: usize) -> Option<VarianceShares> {
    let several = groups.iter().any(|values| values.len() > iterations.max(1));
    let nest = match several {
        false => Nest::of_groups(groups),
        true => {
            let allocations = |values: &Vec<f64>| {
                let chunks: Vec<Vec<f64>> = values.chunks(iterations.max(1)).map(<[f64]>::to_vec).collect();
                Nest::of_groups(&chunks)
            };
            Nest::Group(groups.iter().map(allocations).collect())
        }
    };
    let shares = nested::shares(&nested::components(&nest)?)?;
    match shares.as_slice() {
        [iterations, processes] => {
            Some(VarianceShares { iterations: *iterations, allocations: None, processes: *processes })
        }
        [iterations, allocations, processes] => Some(VarianceShares {
            iterations: *iterations,
            allocations: Some(*allocations),
            processes: *processes,
        }),
        _ => None,
    }
}

/// The earlier runs of the header, the oldest first; damaged lines are skipped.
fn past(run: &Run) -> Vec<EarlierRun> {
    let text = run.header.snapshot.text(ids::probe::RATE_HISTORY).unwrap_or_default();
    let mut past: Vec<EarlierRun> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    past.sort_by(|one, other| one.started.cmp(&other.started));
    past
}

impl Suite<'_> {
    /// Which components vary from run to run; memory components whose data may lie in caches do not
    /// count.
    pub fn moving(&self, machine: &Machine) -> MovingComponents<'_> {
        let small = || self.parts.iter().filter(|part| !part.is_memory());
        let memory = || self.parts.iter().filter(|part| part.is_memory() && fits(part, machine).is_none());
        let moved: Vec<&str> = small().filter(|part| part.swings().is_some()).map(Part::name).collect();
        let still: Vec<&str> = small().filter(|part| part.holds_still()).map(Part::name).collect();
        let memory_moves = memory().any(|part| part.swings().is_some()) && !memory().any(Part::holds_still);
        match () {
            () if !moved.is_empty() => MovingComponents::Others(moved),
            () if memory_moves && !still.is_empty() && still.len() == small().count() => {
                MovingComponents::Memory(still)
            }
            () => MovingComponents::Open,
        }
    }

    /// The number of this run of the suite since boot, from 1; `None` if the boot is unknown.
    pub fn ordinal_since_boot(&self, run: &Run) -> Option<usize> {
        let boot = run.header.boot_id.as_ref()?;
        Some(1 + self.past.iter().filter(|past| past.boot_id.as_ref() == Some(boot)).count())
    }

    /// The number of boots of this and the earlier runs.
    pub fn boots(&self, run: &Run) -> usize {
        let ids =
            self.past.iter().filter_map(|past| past.boot_id.as_ref()).chain(run.header.boot_id.as_ref());
        ids.collect::<BTreeSet<_>>().len()
    }
}
