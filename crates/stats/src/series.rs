//! From a run to its series: visits grouped by case, point and metric, in the order in which they
//! were planned.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::order::median;
use super::outliers::Covariate;
use super::pooled::pooled;
use model::vocabulary::ParamId;
use model::{
    Better, Case, Conditions, Form, LeftOut, Metric, Params, Place, ProcessFacts, Reason, Run, Samples,
    Value, Visit,
};

/// One metric at one point of one case, with all its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// `CASE/point=value#metric`.
    pub key: String,
    /// Index of the case in the plan.
    pub planned: usize,
    pub case: Case,
    pub point: Params,
    pub metric: Metric,
    /// Visits that gave values, in visiting order.
    pub processes: Vec<Process>,
    /// Visits of the case that did not count, in visiting order.
    pub missing: Vec<Missing>,
    /// Visits of the case that a long run file has and that were not kept: only their numbers.
    pub left_out: LeftOut,
    /// Why the case could not be measured here, as planned.
    pub unmet: Option<String>,
    /// Why the values are unusable, if that shows without statistics.
    pub fault: Option<String>,
    /// Read from a foreign result, so nothing is known of the conditions.
    pub imported: bool,
    /// The number of visits whose latencies are pooled into its values, if no visit alone has
    /// enough for this quantile.
    pub pooled: Option<usize>,
}

/// What one visit gave to a series: a visit is a child process that measures a case once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Position of the visit in the run and the pass it belongs to.
    pub order: u32,
    pub pass: u32,
    /// How many visits of any case came before in that pass.
    pub position: u32,
    /// The case that was visited right before.
    pub predecessor: Option<u32>,
    /// ms since the run began.
    pub at_ms: f64,
    /// Values that count, in order.
    pub values: Vec<f64>,
    /// Values of the windows that warmed up: kept, not counted.
    pub warm_up: Vec<f64>,
    /// What was recorded with every counted window.
    pub covariates: Vec<Covariate>,
    /// The CPU on which most counted windows began.
    pub cpu: Option<u32>,
    pub conditions: Conditions,
    pub facts: ProcessFacts,
    /// Worst deviation from linearity that calibration met.
    pub linearity: Option<f64>,
}

/// The column of samples with the core clock of each window, GHz.
const CLOCK: &str = "clock_ghz";

impl Process {
    pub(super) fn column(&self, name: &str) -> Option<&[f64]> {
        Some(&self.covariates.iter().find(|covariate| covariate.name == name)?.values)
    }

    /// The core clock, read after each of its counted windows, GHz; `None` where none was read.
    pub fn clocks(&self) -> Option<&[f64]> {
        self.column(CLOCK)
    }

    /// Their median; not finite where none is known.
    pub fn clock_ghz(&self) -> f64 {
        self.clocks().and_then(median).unwrap_or(f64::NAN)
    }
}

/// A visit without values.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    pub order: u32,
    pub pass: u32,
    pub reason: Reason,
}

impl Series {
    /// The counted values of each process.
    pub fn values(&self) -> Vec<Vec<f64>> {
        self.processes.iter().map(|process| process.values.clone()).collect()
    }

    /// Parameters of the case and of the point together.
    pub fn params(&self) -> Params {
        self.case
            .params
            .iter()
            .chain(&self.point)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// A parameter of its point, or else of its case.
    pub fn param(&self, name: ParamId) -> Option<&Value> {
        self.point.get(name).or_else(|| self.case.params.get(name))
    }

    /// A parameter that is a number.
    pub fn number(&self, name: ParamId) -> Option<f64> {
        self.param(name)?.number()
    }

    /// A parameter that is a word.
    pub fn text(&self, name: ParamId) -> Option<&str> {
        self.param(name)?.text()
    }

    /// A series read from a foreign result: each value stands for a process of its own, of which
    /// nothing else is known. `unmet` says why there is no value, where there is none.
    pub fn imported(
        case: &Case,
        point: Params,
        metric: Metric,
        values: &[f64],
        unmet: Option<String>,
    ) -> Series {
        let visits = values.iter().enumerate().map(|(at, value)| Process {
            values: vec![*value],
            ..process(&Visit::unwatched(at as u32), at as u32, None)
        });
        let key = case.series_key(&point, &metric.name);
        let processes = visits.collect();
        Series { key, point, processes, unmet, imported: true, ..Series::empty(0, case, metric) }
    }

    /// A series without a single process, as skipped and failed cases have them.
    fn empty(planned: usize, case: &Case, metric: Metric) -> Series {
        Series {
            key: case.series_key(&Params::new(), &metric.name),
            planned,
            case: case.clone(),
            point: Params::new(),
            metric,
            processes: Vec::new(),
            missing: Vec::new(),
            left_out: LeftOut::default(),
            unmet: None,
            fault: None,
            imported: false,
            pooled: None,
        }
    }
}

/// All series of a run: by plan, then catalogue, then point. A planned case of which no visit gave
/// values has one empty series for each headline metric, so that nothing planned is silently
/// absent. Visits whose case the plan does not have are left out: only a damaged file holds them.
pub fn series(run: &Run) -> Vec<Series> {
    let context = visiting_context(run);
    let mut of_case: Vec<Vec<&Visit>> = vec![Vec::new(); run.header.plan.len()];
    for visit in &run.visits {
        if let Some(own) = of_case.get_mut(visit.case as usize) {
            own.push(visit);
        }
    }
    let mut all = Vec::new();
    for (planned, plan) in run.header.plan.iter().enumerate() {
        let own = &mut of_case[planned];
        own.sort_by_key(|visit| visit.order);
        let metrics = run.header.catalogue.iter().find(|title| title.id == plan.case.bench);
        let metrics = metrics.map(|title| title.metrics.as_slice()).unwrap_or_default();
        let (mut found, missing) = series_of_case(planned, &plan.case, metrics, own, &context);
        if found.is_empty() {
            let headline = metrics.iter().filter(|metric| metric.headline);
            found = headline.map(|metric| Series::empty(planned, &plan.case, metric.clone())).collect();
        }
        for mut series in found {
            series.missing.clone_from(&missing);
            series.unmet.clone_from(&plan.unmet);
            series.left_out = run.left_out(planned as u32);
            all.push(series);
        }
    }
    all
}

/// By visit order: position in its pass and the case before it.
type VisitingContext = BTreeMap<u32, (u32, Option<u32>)>;

/// Of the visits that are kept, by all that there were.
fn visiting_context(run: &Run) -> VisitingContext {
    let mut own: Vec<Place> = run.visits.iter().map(Place::of).collect();
    own.sort_unstable();
    let all = run.thinned.as_ref().map_or(own.as_slice(), |thinned| &thinned.places);
    let mut wanted = own.iter().peekable();
    let mut seen_in_pass: BTreeMap<u32, u32> = BTreeMap::new();
    let mut before = None;
    let mut context = BTreeMap::new();
    for &Place { order, pass, case } in all {
        let seen = seen_in_pass.entry(pass).or_default();
        if wanted.next_if(|place| place.order == order).is_some() {
            context.insert(order, (*seen, before));
        }
        *seen += 1;
        before = Some(case);
    }
    context
}

fn series_of_case(
    planned: usize,
    case: &Case,
    metrics: &[Metric],
    visits: &[&Visit],
    context: &VisitingContext,
) -> (Vec<Series>, Vec<Missing>) {
    let (mut found, mut places): (Vec<Series>, BTreeMap<String, usize>) = Default::default();
    let (mut missing, mut counted) = (Vec::new(), Vec::new());
    for visit in visits {
        let reason = match &visit.reason {
            Some(reason) => Some(reason.clone()),
            None if visit.samples.iter().all(Samples::is_empty) => {
                Some(Reason::Failed("it gave no samples".into()))
            }
            None => None,
        };
        if let Some(reason) = reason {
            missing.push(Missing { order: visit.order, pass: visit.pass, reason });
            continue;
        }
        counted.push(*visit);
        let (position, predecessor) = context.get(&visit.order).copied().unwrap_or_default();
        for samples in &visit.samples {
            for name in &samples.metrics {
                // A memory map has thousands of points: looked up, not searched.
                let place = *places.entry(case.series_key(&samples.point, name)).or_insert_with_key(|key| {
                    let (metric, fault) = metric_of(metrics, name);
                    let (key, point) = (key.clone(), samples.point.clone());
                    found.push(Series { key, point, fault, ..Series::empty(planned, case, metric) });
                    found.len() - 1
                });
                let series = &mut found[place];
                if series.processes.last().is_none_or(|last| last.order != visit.order) {
                    series.processes.push(process(visit, position, predecessor));
                }
                if let Some(process) = series.processes.last_mut() {
                    append(process, samples, series.metric.form);
                }
            }
        }
    }
    for more in pooled(case, metrics, &counted, |key| places.contains_key(key)) {
        let visits = more.groups.iter().map(|group| group.visits).sum();
        let processes = more.groups.iter().map(|group| {
            let (position, predecessor) = context.get(&group.first.order).copied().unwrap_or_default();
            let values = vec![group.value(more.metric.form)];
            Process { values, ..process(group.first, position, predecessor) }
        });
        let processes = processes.collect();
        let (key, point, pooled) = (more.key, more.point, Some(visits));
        found.push(Series { key, point, processes, pooled, ..Series::empty(planned, case, more.metric) });
    }
    found.iter_mut().for_each(finish);
    let rank = |series: &Series| metrics.iter().position(|metric| metric.name == series.metric.name);
    // A metric that the catalogue lacks comes last.
    let rank = |series: &Series| rank(series).unwrap_or(usize::MAX);
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| compare_points(&a.point, &b.point)));
    (found, missing)
}

/// The metric as the catalogue has it, or a fault.
fn metric_of(metrics: &[Metric], name: &str) -> (Metric, Option<String>) {
    match metrics.iter().find(|metric| metric.name == name) {
        Some(metric) => (metric.clone(), None),
        None => (unknown_metric(name), Some(format!("the run file does not define {name}"))),
    }
}

fn unknown_metric(name: &str) -> Metric {
    let name = name.to_string();
    let (title, better) = (name.clone().into(), Better::Neither);
    Metric {
        name: name.into(),
        title,
        unit: "".into(),
        better,
        form: Form::Value,
        headline: false,
        detail: false,
    }
}

fn process(visit: &Visit, position: u32, predecessor: Option<u32>) -> Process {
    Process {
        order: visit.order,
        pass: visit.pass,
        position,
        predecessor,
        at_ms: visit.at_ms,
        values: Vec::new(),
        warm_up: Vec::new(),
        covariates: Vec::new(),
        cpu: None,
        conditions: visit.conditions.clone(),
        facts: visit.process.clone(),
        linearity: None,
    }
}

/// Adds the windows of one record to a process (a point may be recorded in several parts).
fn append(process: &mut Process, samples: &Samples, form: Form) {
    let mut values = samples.values(form);
    let counted = values.split_off(samples.warm_up.min(values.len()));
    let before = process.values.len();
    process.warm_up.extend(values);
    process.values.extend(&counted);
    let mut column = |name: &'static str, at: &dyn Fn(usize) -> f64| {
        let index =
            process.covariates.iter().position(|covariate| covariate.name == name).unwrap_or_else(|| {
                process.covariates.push(Covariate { name: name.into(), values: vec![f64::NAN; before] });
                process.covariates.len() - 1
            });
        let values = &mut process.covariates[index].values;
        values.extend((0..counted.len()).map(|window| at(samples.warm_up + window)));
    };
    for (name, packed) in samples.beside.columns() {
        column(name, &|window| packed.get(window).unwrap_or(f64::NAN));
    }
    if let (Some(start), Some(end)) = (&samples.beside.cpu_start, &samples.beside.cpu_end) {
        let moved = |window: usize| Some(f64::from(u8::from(start.get(window)? != end.get(window)?)));
        column("migrated", &|window| moved(window).unwrap_or(f64::NAN));
    }
    // A part that did not record a column leaves it unknown.
    let all = process.values.len();
    process.covariates.iter_mut().for_each(|covariate| covariate.values.resize(all, f64::NAN));
    process.linearity = match (process.linearity, samples.linearity) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
}

/// What only shows once all windows are there.
fn finish(series: &mut Series) {
    for process in &mut series.processes {
        let cpus = process.covariates.iter().find(|covariate| covariate.name == "cpu_start");
        process.cpu = cpus.and_then(|cpus| most_frequent(&cpus.values));
        // Numbers of CPUs are names: neither high nor low ones explain anything.
        process.covariates.retain(|covariate| covariate.name != "cpu_start" && covariate.name != "cpu_end");
    }
    let windows: usize = series.processes.iter().map(|process| process.values.len()).sum();
    let values = series.processes.iter().flat_map(|process| &process.values);
    let bad = values.filter(|value| !value.is_finite()).count();
    if series.fault.is_none() && windows == 0 {
        series.fault = Some("all of its windows were warm-up".to_string());
    } else if series.fault.is_none() && bad > 0 {
        series.fault = Some(format!("{bad} of {windows} windows gave no finite value"));
    }
}

fn most_frequent(values: &[f64]) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for value in values.iter().filter(|value| value.is_finite() && **value >= 0.0) {
        *counts.entry(*value as u32).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(cpu, count)| (*count, std::cmp::Reverse(*cpu))).map(|(cpu, _)| cpu)
}

/// Points by their parameters in name order, numbers by size and before texts.
fn compare_points(a: &Params, b: &Params) -> Ordering {
    let compare = |a: &Value, b: &Value| match (a.number(), b.number()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.text().cmp(&b.text()),
    };
    let pairs =
        a.iter().zip(b).map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| compare(a, b)));
    pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{metric, point, run, samples, visit};

    #[test]
    fn visits_become_series_in_plan_and_catalogue_order() {
        // Case 1 is visited first; its points arrive out of order.
        let visits = vec![
            visit(0, 1, 0, vec![samples("rate", 4096, &[4.0]), samples("rate", 512, &[1.0, 2.0])]),
            visit(1, 0, 0, vec![samples("latency", 0, &[7.0]), samples("rate", 0, &[9.0])]),
            visit(2, 1, 1, vec![samples("rate", 512, &[3.0])]),
        ];
        let run = run(2, visits);
        let all = series(&run);
        let found: Vec<(usize, &str, Vec<Vec<f64>>)> =
            all.iter().map(|series| (series.planned, series.key.as_str(), series.values())).collect();
        assert_eq!(
            found,
            [
                (0, "test.case0@free#rate", vec![vec![9.0]]),
                (0, "test.case0@free#latency", vec![vec![7.0]]),
                (1, "test.case1@free/bytes=512#rate", vec![vec![1.0, 2.0], vec![3.0]]),
                (1, "test.case1@free/bytes=4096#rate", vec![vec![4.0]]),
            ]
        );
        let second = &all[2].processes[1];
        assert_eq!((second.order, second.pass, second.position, second.predecessor), (2, 1, 0, Some(0)));
        assert_eq!(all[0].processes[0].position, 1);
    }

    #[test]
    fn warm_up_is_kept_apart_and_covariates_stay_aligned() {
        let mut first = samples("rate", 0, &[100.0, 1.0, 2.0]);
        first.warm_up = 1;
        first.linearity = Some(0.001);
        first.beside.steal_ms = Some(model::Packed::Each(vec![10.0, 0.0, 20.0]));
        first.beside.cpu_start = Some(model::Packed::Same(3.0));
        first.beside.cpu_end = Some(model::Packed::Each(vec![3.0, 3.0, 4.0]));
        let mut second = samples("rate", 0, &[5.0]);
        second.linearity = Some(0.002);
        let all = series(&run(1, vec![visit(0, 0, 0, vec![first, second])]));
        let process = &all[0].processes[0];
        assert_eq!((&process.values, &process.warm_up), (&vec![1.0, 2.0, 5.0], &vec![100.0]));
        assert_eq!((process.cpu, process.linearity), (Some(3), Some(0.002)));
        let names: Vec<&str> = process.covariates.iter().map(|covariate| covariate.name.as_ref()).collect();
        assert_eq!(names, ["steal_ms", "migrated"]);
        assert_eq!(process.covariates[0].values[..2], [0.0, 20.0]);
        assert_eq!(process.covariates[1].values[..2], [0.0, 1.0]);
        assert!(process.covariates.iter().all(|covariate| covariate.values[2].is_nan()));
    }

    #[test]
    fn what_gave_no_values_is_there_all_the_same() {
        let mut failed = visit(0, 0, 0, vec![samples("rate", 0, &[1.0])]);
        failed.reason = Some(Reason::TimedOut("after 10 s".into()));
        let empty = visit(1, 0, 1, vec![]);
        let lost = visit(2, 99, 1, vec![samples("rate", 0, &[1.0])]);
        let all = series(&run(2, vec![failed, empty, lost]));
        let keys: Vec<&str> = all.iter().map(|series| series.key.as_str()).collect();
        assert_eq!(keys, ["test.case0@free#rate", "test.case1@free#rate"]);
        let reasons: Vec<&str> = all[0].missing.iter().map(|missing| missing.reason.text()).collect();
        assert_eq!(reasons, ["after 10 s", "it gave no samples"]);
        assert!(all[0].processes.is_empty() && all[1].missing.is_empty());
    }

    #[test]
    fn values_that_mean_nothing_are_a_fault() {
        let faults = |samples: Samples| series(&run(1, vec![visit(0, 0, 0, vec![samples])]))[0].fault.clone();
        assert_eq!(faults(samples("rate", 0, &[1.0, 2.0])), None);
        let bad = faults(samples("rate", 0, &[1.0, f64::INFINITY]));
        assert_eq!(bad.as_deref(), Some("1 of 2 windows gave no finite value"));
        let mut cold = samples("rate", 0, &[1.0]);
        cold.warm_up = 5;
        assert_eq!(faults(cold).as_deref(), Some("all of its windows were warm-up"));
        let unknown = faults(samples("speed", 0, &[1.0]));
        assert_eq!(unknown.as_deref(), Some("the run file does not define speed"));
    }

    #[test]
    fn points_are_sorted_by_size() {
        let mut points = [point(65536), point(512), Params::new(), point(4096)];
        points[3].insert(model::vocabulary::memory::param::ORDER, "random");
        let mut sorted = points.to_vec();
        sorted.sort_by(compare_points);
        assert_eq!(sorted, [&points[2], &points[1], &points[3], &points[0]].map(Clone::clone));
        assert_eq!(metric("rate", true).name, "rate");
    }
}
