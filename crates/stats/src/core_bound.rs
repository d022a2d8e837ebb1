//! Which series of a run are counts of core cycles, the clock of the run, and what such a series is
//! at that clock, in windows that had their core for themselves.

use machine::{CacheKind, Machine};
use model::vocabulary::{core_bound, memory};
use model::{Beside, Case, Form, Metric, Params, Value};

use super::analysis::CONFIDENCE;
use super::clock::{self, Brought, Gate, ProcessMedians};
use super::core_sharing::{CoreSharing, core_sharing, probes_of_run};
use super::estimate::{Estimate, estimate};
use super::guarded::GUARDED;
use super::order::{Interval, median};
use super::series::{Process, Series};

/// With fewer processes a series is left as it ran.
const MIN_PROCESSES: usize = 3;
/// This many processes must have had their core for themselves, or all where there are fewer.
const MIN_ALONE: usize = *GUARDED.start();

/// The core clock of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunClock {
    /// The median over all processes of core-bound series, to 0.01 GHz.
    pub ghz: f64,
    pub gate: Gate,
    /// The slowest and the fastest of these processes, GHz.
    pub least: f64,
    pub most: f64,
    /// Which windows had another thread on their core; `None` if probes do not show that.
    pub core_sharing: Option<CoreSharing>,
}

/// The clock to which core-bound series of a run are normalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    pub ghz: f64,
    /// Windows on shared cores are left out.
    pub core_sharing: Option<CoreSharing>,
}

impl RunClock {
    /// By which share the clock moved, from its slowest process to its fastest.
    pub fn moved_by(&self) -> f64 {
        self.most / self.least - 1.0
    }

    /// What core-bound series are normalised to; `None` if the gate is closed.
    pub fn common(&self) -> Option<Common> {
        let common = Common { ghz: self.ghz, core_sharing: self.core_sharing };
        (!matches!(self.gate, Gate::Closed(_))).then_some(common)
    }
}

/// How a value depends on the core's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scaling {
    /// Inversely proportional.
    Time,
    /// Proportional.
    Rate,
}

impl Scaling {
    fn of(metric: &Metric) -> Option<Scaling> {
        match (metric.form, metric.unit.as_ref()) {
            (Form::TimePerWork { .. }, _) | (Form::Value, "ns" | "us" | "ms" | "s") => Some(Scaling::Time),
            (Form::WorkPerTime { .. }, _) => Some(Scaling::Rate),
            (Form::Value, unit) if unit.ends_with("/s") => Some(Scaling::Rate),
            (Form::CyclesPerWork | Form::Value | Form::Quantile { .. }, _) => None,
        }
    }

    /// A value as a time: itself, or the inverse of a rate.
    fn time(self, value: f64) -> f64 {
        match self {
            Scaling::Time => value,
            Scaling::Rate => value.recip(),
        }
    }

    /// Rescales a value measured at one clock to another.
    fn rescale(self, value: f64, measured_ghz: f64, ghz: f64) -> f64 {
        match self {
            Scaling::Time => value * measured_ghz / ghz,
            Scaling::Rate => value * ghz / measured_ghz,
        }
    }
}

/// Whether a series takes a fixed number of core cycles. Its benchmark and metric must be
/// core-bound ones, all its tasks on one CPU with idle siblings, and a block of memory at most half
/// of that CPU's L2.
pub fn is_core_bound(series: &Series, machine: &Machine) -> bool {
    let placement = &series.case.placement;
    placement.is_of_one_cpu()
        && !series.imported
        && core_bound(&series.case.bench, &series.metric.name)
        && Scaling::of(&series.metric).is_some()
        && (!series.case.bench.starts_with("memory.")
            || stays_in_l2(series, placement.cpus().first(), machine))
}

fn stays_in_l2(series: &Series, cpu: Option<u32>, machine: &Machine) -> bool {
    let param = series.params().get(memory::param::BYTES).and_then(Value::number);
    let input = || series.case.inputs.get(&*memory::param::BYTES)?.parse::<f64>().ok();
    let l2 = machine.caches.iter().find(|cache| {
        let is_of_cpu = cpu.is_some_and(|cpu| cache.cpus.contains(cpu));
        cache.level == 2 && cache.kind != CacheKind::Instruction && is_of_cpu
    });
    let size = l2.and_then(|cache| cache.size_bytes);
    param.or_else(input).zip(size).is_some_and(|(bytes, size)| bytes > 0.0 && bytes <= size as f64 / 2.0)
}

/// The processes with only those windows that had their core to themselves. `None` if fewer than
/// `min` processes, or than all, have such windows.
fn with_core_alone(processes: &[&Process], sharing: Option<CoreSharing>, min: usize) -> Option<Vec<Process>> {
    let windows_alone = |process: &&Process| match sharing {
        Some(sharing) => process.without_shared_windows(sharing),
        None => Some((*process).clone()),
    };
    let alone: Vec<Process> = processes.iter().filter_map(windows_alone).collect();
    (alone.len() >= min.min(processes.len())).then_some(alone)
}

/// The median time and clock of each process; `None` if a process has no clock.
fn process_medians(processes: &[Process], scaling: Scaling) -> Option<Vec<ProcessMedians>> {
    let medians_of = |process: &Process| {
        let clocks = process.clocks()?.iter().copied();
        let windows = process.values.iter().map(|value| scaling.time(*value)).zip(clocks);
        ProcessMedians::of(&windows.collect::<Vec<(f64, f64)>>())
    };
    processes.iter().map(medians_of).collect()
}

/// The clock of a run, from its core-bound series; `None` if these have no clocks.
pub fn run_clock(all: &[Series], machine: &Machine) -> Option<RunClock> {
    let sharing = core_sharing(&probes_of_run(all.iter()));
    let mut by_series: Vec<Vec<ProcessMedians>> = Vec::new();
    for series in all.iter().filter(|series| series.metric.headline && is_core_bound(series, machine)) {
        let processes: Vec<&Process> = series.processes.iter().collect();
        let alone = with_core_alone(&processes, sharing, MIN_ALONE);
        let medians = Scaling::of(&series.metric)
            .zip(alone)
            .and_then(|(scaling, alone)| process_medians(&alone, scaling));
        by_series.extend(medians);
    }
    let ghz = clock::run_clock(&by_series)?;
    let slopes: Vec<clock::Slope> =
        by_series.iter().filter_map(|processes| clock::slope(processes)).collect();
    let clocks = || by_series.iter().flatten().map(|process| process.clock.exp());
    let (least, most) = (clocks().fold(f64::INFINITY, f64::min), clocks().fold(0.0, f64::max));
    Some(RunClock { ghz, gate: clock::gate(&slopes), least, most, core_sharing: sharing })
}

/// The number of a series at one clock of its run.
#[derive(Clone, Debug, PartialEq)]
pub struct AtClock {
    pub ghz: f64,
    /// Its interval is widened by [`Brought::wider`].
    pub estimate: Estimate,
    /// The process medians that it counts, in visiting order.
    pub medians: Vec<f64>,
    pub brought: Brought,
    /// Windows and processes on shared cores, which do not count.
    pub left_out: LeftOut,
}

/// What of a series is not counted in its figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub windows: usize,
    /// Processes of which no window is counted.
    pub processes: usize,
}

/// Normalises a core-bound series to its run's clock: the estimate, and the processes with
/// normalised values. `None` if it is to be left as measured.
pub fn at_clock(processes: &[&Process], metric: &Metric, common: Common) -> Option<(AtClock, Vec<Process>)> {
    of_at_least(MIN_ALONE, processes, metric, common)
}

/// The same from three processes on: a forecast of what further ones would add.
pub fn outlook(processes: &[&Process], metric: &Metric, common: Common) -> Option<AtClock> {
    of_at_least(MIN_PROCESSES, processes, metric, common).map(|(at_clock, _)| at_clock)
}

fn of_at_least(
    min: usize,
    processes: &[&Process],
    metric: &Metric,
    common: Common,
) -> Option<(AtClock, Vec<Process>)> {
    let ghz = common.ghz;
    let scaling = Scaling::of(metric).filter(|_| processes.len() >= MIN_PROCESSES)?;
    let mut alone = with_core_alone(processes, common.core_sharing, min)?;
    let brought = clock::brought(&process_medians(&alone, scaling)?, ghz)?.ok()?;
    for process in &mut alone {
        let windows = process.values.iter().zip(process.clocks().unwrap_or_default());
        process.values = windows.map(|(value, clock)| scaling.rescale(*value, *clock, ghz)).collect();
    }
    let values: Vec<Vec<f64>> = alone.iter().map(|process| process.values.clone()).collect();
    let measured: usize = processes.iter().map(|process| process.values.len()).sum();
    let left_out = LeftOut {
        windows: measured - values.iter().map(Vec::len).sum::<usize>(),
        processes: processes.len() - values.len(),
    };
    let medians = values.iter().filter_map(|windows| median(windows)).collect();
    let found = estimate(&values, CONFIDENCE)?;
    let interval = found.interval.map(|interval| widened(interval, brought.wider));
    Some((AtClock { ghz, estimate: Estimate { interval, ..found }, medians, brought, left_out }, alone))
}

/// The medians of the processes of several settings at `ghz`: one list per setting. `None` if one
/// of them is not core-bound, or if all are to be left as measured: the clock stood, or inside the
/// settings the time does not depend on it.
pub fn settings_at_clock(settings: &[&Series], machine: &Machine, ghz: f64) -> Option<Vec<Vec<f64>>> {
    let scaling = Scaling::of(&settings.first()?.metric)?;
    if !settings.iter().all(|series| is_core_bound(series, machine)) {
        return None;
    }
    let all: Vec<Vec<ProcessMedians>> =
        settings.iter().map(|series| process_medians(&series.processes, scaling)).collect::<Option<_>>()?;
    // Relative to each setting, so that what settings do is not taken for the clock's effect.
    let inside: Vec<ProcessMedians> = all.iter().flat_map(|processes| clock::inside(processes)).collect();
    let moved = clock::movement(&inside).is_some_and(clock::moves);
    if !moved || clock::slack(&inside).is_err() {
        return None;
    }
    let median_at = |process: &Process| {
        let windows = process.values.iter().zip(process.clocks().unwrap_or_default());
        median(&windows.map(|(value, clock)| scaling.rescale(*value, *clock, ghz)).collect::<Vec<f64>>())
    };
    settings.iter().map(|series| series.processes.iter().map(median_at).collect()).collect()
}

/// Rescales a value of a core-bound metric from the clock at which it was measured to another;
/// `None` if the metric is neither a time nor a rate.
pub fn rescale(metric: &Metric, value: f64, measured_ghz: f64, ghz: f64) -> Option<f64> {
    Some(Scaling::of(metric)?.rescale(value, measured_ghz, ghz))
}

/// Blocks up to this size stay in the L2 of any host.
const ANY_L2_BYTES: f64 = 32768.0;

/// Whether a figure of which only the names are known is core-bound: of one task, or of two on one
/// CPU.
pub fn is_core_bound_by_name(case: &Case, point: &Params, metric: &Metric) -> bool {
    let bytes = point.get(memory::param::BYTES).and_then(Value::number);
    let alone = match case.bench.split('.').next().unwrap_or_default() {
        "ipc" | "sched" | "lock" => case.placement.name == "same-cpu",
        "memory" => case.placement.name == "one-cpu" && bytes.is_some_and(|bytes| bytes <= ANY_L2_BYTES),
        _ => true,
    };
    alone
        && case.placement.beside == Beside::Idle
        && core_bound(&case.bench, &metric.name)
        && Scaling::of(metric).is_some()
}

/// An interval of values, each end farther out by `wider` (of a logarithm).
fn widened(interval: Interval, wider: f64) -> Interval {
    Interval { low: interval.low * (-wider).exp(), high: interval.high * wider.exp() }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use testkit::{run, samples, visit};

    use super::super::noise::normal;
    use super::super::outliers::Covariate;
    use super::*;
    use model::{Better, Packed, Seat};

    /// A setting with ten processes of a system call on one CPU: `by` of a logarithm slower, times
    /// going by `slope` with a clock that is one of three.
    fn setting(by: f64, slope: f64, clocks: [f64; 3], seed: u64) -> Series {
        let mut rng = Rng::with_seed(seed);
        let visits = (0..10).map(|pass| {
            let clock: f64 = clocks[rng.usize(..3)];
            let time = by + slope * clock.ln() + 0.002 * normal(&mut rng);
            let mut one = samples("rate", 0, &[time.exp()]);
            one.beside.clock_ghz = Some(Packed::Same(clock));
            visit(pass, 0, pass, vec![one])
        });
        let mut found = crate::series(&run(1, visits.collect())).remove(0);
        found.case.bench = "syscall.getpid".into();
        found.metric.name = "latency".into();
        found.metric.unit = "ns".into();
        found.metric.better = Better::Lower;
        found.case.placement.seats = vec![Seat {
            role: "task".into(),
            host: None,
            cpus: [1].into_iter().collect(),
            mem_nodes: Default::default(),
        }];
        found
    }

    fn at_three(settings: [Series; 2]) -> Option<[f64; 2]> {
        let [a, b] = &settings;
        let found = settings_at_clock(&[a, b], &Machine::default(), 3.0)?;
        let middle = |values: &Vec<f64>| median(&values.iter().map(|value| value.ln()).collect::<Vec<f64>>());
        Some([middle(&found[0])?, middle(&found[1])?])
    }

    const MOVING: [f64; 3] = [3.0, 3.3, 3.9];

    /// A system call of seven processes with three windows each, of which `beside` reports by
    /// process and window whether another thread was on the core: then it takes 1.4 times as long.
    fn shared_at(beside: impl Fn(usize, usize) -> bool) -> Series {
        let mut found = setting(0.0, -1.0, [3.0; 3], 3);
        found.processes.truncate(7);
        for (nth, process) in found.processes.iter_mut().enumerate() {
            let (level, there) = (process.values[0], [0, 1, 2].map(|window| beside(nth, window)));
            process.values = there.map(|there| level * if there { 1.4 } else { 1.0 }).to_vec();
            let probes = there.map(|there| if there { 2.05 } else { 1.0 }).to_vec();
            process.covariates = vec![
                Covariate { name: "clock_ghz".into(), values: vec![3.0; 3] },
                Covariate { name: "fetch_cycles".into(), values: probes },
            ];
        }
        found
    }

    fn alone_at_clock(series: &Series) -> Option<AtClock> {
        let common =
            Common { ghz: 3.0, core_sharing: Some(CoreSharing { threshold_cycles: 1.5, shared_part: 0.3 }) };
        let processes: Vec<&Process> = series.processes.iter().collect();
        at_clock(&processes, &series.metric, common).map(|(found, _)| found)
    }

    #[test]
    fn windows_beside_another_thread_do_not_count_at_the_clock() {
        let alone = alone_at_clock(&shared_at(|_, _| false)).expect("alone all the while");
        assert_eq!(alone.left_out, LeftOut::default());
        // One process was never alone, one in its first window only, one from its second on not at
        // both ends.
        let some = shared_at(|process, window| process == 0 || process < 3 && window == process);
        let found = alone_at_clock(&some).expect("six processes");
        assert_eq!(found.left_out, LeftOut { windows: 3 + 2 + 1, processes: 1 });
        assert_eq!(found.medians.len(), 6);
        let off = found.estimate.median / alone.estimate.median - 1.0;
        assert!(
            off.abs() < 0.005 && found.estimate.relative_half_width().is_some_and(|half| half < 0.01),
            "{found:?}"
        );
        // Four of seven are too few for a figure, but enough to predict further ones.
        let few = shared_at(|process, _| process < 3);
        assert_eq!(alone_at_clock(&few), None);
        let processes: Vec<&Process> = few.processes.iter().collect();
        let common =
            Common { ghz: 3.0, core_sharing: Some(CoreSharing { threshold_cycles: 1.5, shared_part: 0.4 }) };
        assert_eq!(outlook(&processes, &few.metric, common).map(|found| found.medians.len()), Some(4));
    }

    #[test]
    fn settings_whose_time_goes_with_the_clock_are_told_apart_at_one() {
        let found =
            at_three([setting(0.0, -1.0, MOVING, 1), setting(0.03, -1.0, MOVING, 2)]).expect("core-bound");
        assert!((found[1] - found[0] - 0.03).abs() < 0.005, "{found:?}");
        assert!((found[0] + f64::ln(3.0)).abs() < 0.005, "{found:?}");
    }

    #[test]
    fn settings_are_left_as_they_ran_where_the_clock_explains_nothing() {
        let steady = [3.0, 3.001, 3.002];
        let two =
            |clocks: [f64; 3], slope: f64| [setting(0.0, slope, clocks, 1), setting(0.03, slope, clocks, 2)];
        assert_eq!(at_three(two(steady, -1.0)), None, "the clock stood");
        assert_eq!(at_three(two(MOVING, 0.0)), None, "time does not go with it");
        let mut other = two(MOVING, -1.0);
        other[1].case.bench = "disk.random".into();
        assert_eq!(at_three(other), None, "not a count of core cycles");
    }
}
