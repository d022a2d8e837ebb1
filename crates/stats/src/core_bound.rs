//! Which series of a run are counts of core cycles, the clock of the run, and what such a series is
//! at that clock, in windows that had their core for themselves.

use machine::{CacheKind, Machine};
use model::vocabulary::{core_bound, memory};
use model::{Beside, Case, Form, Metric, Params, Value};

use super::analysis::CONFIDENCE;
use super::clock::{self, Brought, Gate, ProcessMedians};
use super::core_sharing::{self, CoreSharing, shared};
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
    /// Which windows had another thread on their core, where that can be reported.
    pub shared: Option<CoreSharing>,
}

/// What core-bound series of a run are brought to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    pub ghz: f64,
    /// Windows that are left out.
    pub shared: Option<CoreSharing>,
}

impl RunClock {
    /// By which share the clock moved, from its slowest process to its fastest.
    pub fn moved_by(&self) -> f64 {
        self.most / self.least - 1.0
    }

    /// What core-bound series are brought to; `None` where the gate is closed.
    pub fn common(&self) -> Option<Common> {
        (!matches!(self.gate, Gate::Closed(_))).then_some(Common { ghz: self.ghz, shared: self.shared })
    }
}

/// How a value goes with the core's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scaling {
    /// As its inverse.
    Time,
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

    /// A value as a time, in a unit of its own.
    fn time(self, value: f64) -> f64 {
        match self {
            Scaling::Time => value,
            Scaling::Rate => value.recip(),
        }
    }

    /// What a value that was seen at a clock is at another.
    fn at(self, value: f64, seen: f64, common: f64) -> f64 {
        match self {
            Scaling::Time => value * seen / common,
            Scaling::Rate => value * common / seen,
        }
    }
}

/// Whether the time of a series is a count of core cycles: by its benchmark and metric, where all
/// of its tasks share one CPU with no one beside them, and where a block of memory is at most half
/// of that CPU's L2.
pub fn is_core_bound(series: &Series, machine: &Machine) -> bool {
    let placement = &series.case.placement;
    let own = placement.cpus();
    placement.is_of_one_cpu()
        && !series.imported
        && core_bound(&series.case.bench, &series.metric.name)
        && Scaling::of(&series.metric).is_some()
        && (!series.case.bench.starts_with("memory.") || stays_in_l2(series, own.first(), machine))
}

fn stays_in_l2(series: &Series, cpu: Option<u32>, machine: &Machine) -> bool {
    let told = series.params().get(memory::param::BYTES).and_then(Value::number);
    let given = || series.case.inputs.get(&*memory::param::BYTES)?.parse::<f64>().ok();
    let l2 = machine.caches.iter().find(|cache| {
        let own = cpu.is_some_and(|cpu| cache.cpus.contains(cpu));
        cache.level == 2 && cache.kind != CacheKind::Instruction && own
    });
    let size = l2.and_then(|cache| cache.size_bytes);
    told.or_else(given).zip(size).is_some_and(|(bytes, size)| bytes > 0.0 && bytes <= size as f64 / 2.0)
}

/// Those processes that had their core for themselves, with the windows in which they had; `None`
/// below `least` of them, or all where there are fewer.
fn alone(processes: &[&Process], shared: Option<CoreSharing>, least: usize) -> Option<Vec<Process>> {
    let of = |process: &&Process| match shared {
        Some(shared) => process.alone(shared),
        None => Some((*process).clone()),
    };
    let alone: Vec<Process> = processes.iter().filter_map(of).collect();
    (alone.len() >= least.min(processes.len())).then_some(alone)
}

/// What the processes of a series show of time and clock; `None` where a process has no clock.
fn seen(processes: &[Process], scaling: Scaling) -> Option<Vec<ProcessMedians>> {
    let one = |process: &Process| {
        let clocks = process.clocks()?.iter().copied();
        let windows = process.values.iter().map(|value| scaling.time(*value)).zip(clocks);
        ProcessMedians::of(&windows.collect::<Vec<(f64, f64)>>())
    };
    processes.iter().map(one).collect()
}

/// The clock of a run, by its core-bound series; `None` where these have no clocks.
pub fn run_clock(all: &[Series], machine: &Machine) -> Option<RunClock> {
    let shared = shared(&core_sharing::of_run(all.iter()));
    let mut core: Vec<Vec<ProcessMedians>> = Vec::new();
    for series in all.iter().filter(|series| series.metric.headline && is_core_bound(series, machine)) {
        let processes: Vec<&Process> = series.processes.iter().collect();
        let alone = alone(&processes, shared, MIN_ALONE);
        core.extend(
            Scaling::of(&series.metric).zip(alone).and_then(|(scaling, alone)| seen(&alone, scaling)),
        );
    }
    let ghz = clock::run_clock(&core)?;
    let slopes: Vec<clock::Slope> = core.iter().filter_map(|processes| clock::slope(processes)).collect();
    let clocks = || core.iter().flatten().map(|seen| seen.clock.exp());
    let (least, most) = (clocks().fold(f64::INFINITY, f64::min), clocks().fold(0.0, f64::max));
    Some(RunClock { ghz, gate: clock::gate(&slopes), least, most, shared })
}

/// The number of a series at one clock of its run.
#[derive(Clone, Debug, PartialEq)]
pub struct AtClock {
    pub ghz: f64,
    /// Its interval is widened by what the slack allows.
    pub estimate: Estimate,
    /// The process medians that it counts, in visiting order.
    pub medians: Vec<f64>,
    pub brought: Brought,
    /// What had another thread on its core, and is not counted.
    pub left_out: LeftOut,
}

/// What of a series is not counted in its figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub windows: usize,
    /// Processes of which no window is counted.
    pub processes: usize,
}

/// What a core-bound series is at its run's clock, and its processes as they would have been;
/// `None` where it is to be left as it ran.
pub fn at_clock(processes: &[&Process], metric: &Metric, common: Common) -> Option<(AtClock, Vec<Process>)> {
    of_at_least(MIN_ALONE, processes, metric, common)
}

/// The same of three processes or four, which show what further ones would add.
pub fn outlook(processes: &[&Process], metric: &Metric, common: Common) -> Option<AtClock> {
    of_at_least(MIN_PROCESSES, processes, metric, common).map(|(at_clock, _)| at_clock)
}

fn of_at_least(
    least: usize,
    processes: &[&Process],
    metric: &Metric,
    common: Common,
) -> Option<(AtClock, Vec<Process>)> {
    let Common { ghz, shared } = common;
    let scaling = Scaling::of(metric).filter(|_| processes.len() >= MIN_PROCESSES)?;
    let mut alone = alone(processes, shared, least)?;
    let brought = clock::brought(&seen(&alone, scaling)?, ghz)?.ok()?;
    for process in &mut alone {
        let windows = process.values.iter().zip(process.clocks().unwrap_or_default());
        process.values = windows.map(|(value, clock)| scaling.at(*value, *clock, ghz)).collect();
    }
    let values: Vec<Vec<f64>> = alone.iter().map(|process| process.values.clone()).collect();
    let ran: usize = processes.iter().map(|process| process.values.len()).sum();
    let left_out = LeftOut {
        windows: ran - values.iter().map(Vec::len).sum::<usize>(),
        processes: processes.len() - values.len(),
    };
    let medians = values.iter().filter_map(|windows| median(windows)).collect();
    let found = estimate(&values, CONFIDENCE)?;
    let interval = found.interval.map(|interval| widened(interval, brought.wider));
    Some((AtClock { ghz, estimate: Estimate { interval, ..found }, medians, brought, left_out }, alone))
}

/// The medians of the processes of several settings at `ghz`: a list a setting. `None` where one of
/// them is not core-bound, or all are to be left as they ran: the clock stood, or inside the
/// settings the time does not go with it.
pub fn settings_at_clock(settings: &[&Series], machine: &Machine, ghz: f64) -> Option<Vec<Vec<f64>>> {
    let scaling = Scaling::of(&settings.first()?.metric)?;
    if !settings.iter().all(|series| is_core_bound(series, machine)) {
        return None;
    }
    let own = |series: &&Series| seen(&series.processes, scaling);
    let all: Vec<Vec<ProcessMedians>> = settings.iter().map(own).collect::<Option<_>>()?;
    // What a setting does is no slope.
    let inside: Vec<ProcessMedians> = all.iter().flat_map(|processes| clock::inside(processes)).collect();
    let moved = clock::movement(&inside).is_some_and(clock::moves);
    if !moved || clock::slack(&inside).is_err() {
        return None;
    }
    let at = |process: &Process| {
        let windows = process.values.iter().zip(process.clocks().unwrap_or_default());
        median(&windows.map(|(value, clock)| scaling.at(*value, *clock, ghz)).collect::<Vec<f64>>())
    };
    settings.iter().map(|series| series.processes.iter().map(at).collect()).collect()
}

/// What a value of a core-bound metric that was seen at a clock is at another; `None` for what is
/// neither a time nor a rate.
pub fn rescaled(metric: &Metric, value: f64, seen_ghz: f64, ghz: f64) -> Option<f64> {
    Some(Scaling::of(metric)?.at(value, seen_ghz, ghz))
}

/// Blocks up to this size stay in the L2 of any machine.
const ANY_L2_BYTES: f64 = 32768.0;

/// Whether a figure of which nothing but its names is known is bound by the core: of one task, or
/// of two on one CPU.
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
            let looks = there.map(|there| if there { 2.05 } else { 1.0 }).to_vec();
            process.beside = vec![
                Covariate { name: "clock_ghz".into(), values: vec![3.0; 3] },
                Covariate { name: "fetch_cycles".into(), values: looks },
            ];
        }
        found
    }

    fn alone_at_clock(series: &Series) -> Option<AtClock> {
        let common = Common { ghz: 3.0, shared: Some(CoreSharing { from_cycles: 1.5, share: 0.3 }) };
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
        let common = Common { ghz: 3.0, shared: Some(CoreSharing { from_cycles: 1.5, share: 0.4 }) };
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
