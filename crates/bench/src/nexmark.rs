//! Nexmark on a real Flink cluster: one pass is one cluster, and one job that goes through all
//! rates.

use std::path::PathBuf;

use anyhow::{Context, ensure};

use super::{Benchmark, Candidate, Depth, JOB, Param, Sampler, Scope, View, file, point};
use crate::placement::Distance;
use crate::row::{latency_us, note, per_second, trade, value};
use model::vocabulary::nexmark as ids;
use model::vocabulary::{BenchId, MetricId};
use model::{Better, Case, CpuSet, Metric, Params, Placement, Seat};
use sys::process;

mod cluster;
mod field;
mod gauge;
mod job_spec;
mod rest;
mod waiter;
mod walk;

use field::{Field, Walked};
use job_spec::{JobSpec, Target};
pub use rest::{JobManager, Overview};
use waiter::Waiter;
use walk::{LOADS, Length};

/// The group of these rows.
pub const NEXMARK: &str = "nexmark";

/// What a job is run with, which the verb finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Flink {
    /// The program with the queries.
    pub jar: PathBuf,
    pub on: On,
}

#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// A cluster that each pass starts: by this program, from this distribution, at this REST port
    /// if any.
    Own { java: PathBuf, home: PathBuf, port: Option<u16> },
    /// One that runs: its REST address, slots that are free, and how far apart its metrics are, s.
    Running { address: String, slots: u64, apart_s: f64 },
}

/// Names of a case's inputs.
const JAR: &str = "jar";
const JAVA: &str = "java";
const HOME: &str = "flink";
const PORT: &str = "port";
const SLOTS: &str = "slots";
const APART: &str = "metrics_apart_s";
const ELSEWHERE: &str = "elsewhere";
const ROUNDS: &str = "rounds";
const STEP: &str = "step_s";
const WARM_UP: &str = "warm_up_s";

/// Roles of the seats: one for each CPU of the TaskManager, and those of all that goes with it.
const TASKMANAGER: &str = "taskmanager";
const JOBMANAGER: &str = "jobmanager";

/// CPUs kept for the JobManager and the driver if enough remain: both work only while a job starts.
const MAX_ELSEWHERE: usize = 2;

/// Until the job's events flow, and from their end until nothing is left, s: as seen on two busy
/// CPUs.
const AROUND_S: f64 = 32.0;

/// From start to report in five minutes, the wait for quiet and the report among them.
const BUDGET_S: f64 = 270.0;

const METRICS: &[Metric] = &[
    per_second(ids::metric::RATE, "events"),
    value(ids::metric::CPU, "CPU% of the TaskManager's CPUs", "%", Better::Lower),
    note(ids::metric::CPU_TICKS, "CPU% as top adds it up", "%"),
    note(ids::metric::PROCESS_CPU, "CPU% of the TaskManager's process", "%"),
    latency_us(ids::metric::COST, "CPU time for each event").aside(),
    value(ids::metric::ATTAINMENT, "events for each % of CPU", "1/s", Better::Higher),
    note(ids::metric::TARGET, "target rate", "1/s"),
    value(ids::metric::ACHIEVED, "share of the target reached", "%", Better::Higher),
    value(ids::metric::LATE, "behind the schedule", "ms", Better::Lower),
    note(ids::metric::OTHERS, "other work on these CPUs", "%"),
    note(ids::metric::STEAL, "steal", "%"),
    value(ids::metric::GC, "time stopped by garbage collection", "%", Better::Lower),
    note(ids::metric::REJECTED, "samples not used", ""),
    note(ids::metric::RESTARTS, "restarts of the TaskManager", ""),
];

const PARAMS: &[Param] = &[Param::int(ids::param::LOAD, "percent of the full rate", 1..=100)];

const TRADE: &View = &trade(ids::metric::CPU, ids::metric::RATE);

/// A query without windows.
const PLAIN: Benchmark = Benchmark {
    reading: "Load 100 is the capacity of these CPUs; more is better. `attainment` is events for each percent of \
              CPU. If half the load costs more than half the CPU, a fixed part is paid at any rate. If it costs \
              less, CPU% hides that the second half costs more, as on two threads of one core. Two cores (same-llc) \
              are the control for two threads of one core (smt-sibling). Plan below load 100, never from CPU% at \
              light load. `achieved` below 100 %, or growing `late`, means that other work used these CPUs.",
    method: "A standalone Flink cluster runs on loopback. The TaskManager is pinned to the placement's CPUs, with \
             one slot for each, the serial collector and a fixed heap. JobManager and driver use other CPUs if there \
             are any. One job generates Nexmark's events (1 person, 3 auctions, 46 bids), paced in its source. It \
             goes through all loads, so compiled code stays warm. It warms up at full speed for 12 s. Rounds follow \
             at full speed and at 10, 20, 35, 50, 65 and 80 % of it, in random order. Rate and CPU time come from \
             one reading inside the TaskManager: the count, its clock, /proc/stat of its CPUs and /proc/PID/stat. A \
             sample lies between two readings of one step, 1.5 s or more after its start. Samples are dropped if \
             readings did not advance, or if other work and steal took more than 5 % of these CPUs. JobManager and \
             driver count as other work unless no CPU is left for them. `cpu` is what idle time in /proc/stat \
             leaves. `cpu_ticks` adds it up as top does, which is wrong where kernels charge whole ticks. With \
             `--jobmanager` a running cluster is used.",
    source: file!(),
    metrics: METRICS,
    params: PARAMS,
    view: TRADE,
    from: Depth::Full,
    budget_s: Some(BUDGET_S),
    cases,
    points: |_| LOADS.iter().map(|load| point(ids::param::LOAD, *load)).collect(),
    run,
    ..Benchmark::PINNED
};

/// A query that keeps windows.
const WINDOWED: Benchmark = Benchmark {
    reading: "Read it as nexmark.q0. The rate is that of events from the source, which full windows slow down. \
              `cost` covers the whole job: source, exchange, windows and garbage collection. `gc` is the share of \
              time that the collector stopped the TaskManager. It runs on one thread, so growing `gc` explains a \
              part of what more CPUs do not add.",
    method: "Cluster, loads and readings are those of nexmark.q0. Event time counts events, 10 a millisecond, so a \
             window has as many at any rate. Events go through an exchange between all slots to windows on the heap \
             (state backend hashmap, no checkpoints). The TaskManager has 384 MiB more heap, 32 MiB of managed \
             memory for each slot and buffers for every pair of slots. The subtasks of the source stay within 25,000 \
             events of each other, with equal shares of load 100. Flink counts events dropped after their window; \
             one fails the pass. There is no Q3: Nexmark's answer joins all persons and auctions, so its cost grows \
             as it runs.",
    ..PLAIN
};

/// In the order in which they are measured.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::Q0,
        title: "Nexmark Q0 on Flink (bids pass through)",
        about: "Event rate and CPU use of a Flink cluster at rising load. Q0 passes bids through unchanged.",
        ..PLAIN
    },
    Benchmark {
        id: ids::Q1,
        title: "Nexmark Q1 on Flink (prices converted)",
        about: "Event rate and CPU use of a Flink cluster at rising load. Q1 converts the price of each bid.",
        ..PLAIN
    },
    Benchmark {
        id: ids::Q2,
        title: "Nexmark Q2 on Flink (a few auctions picked)",
        about: "Event rate and CPU use of a Flink cluster at rising load. Q2 selects the bids of a few auctions.",
        ..PLAIN
    },
    Benchmark {
        id: ids::Q5,
        title: "Nexmark Q5 on Flink (hot auctions, sliding windows)",
        about: "Event rate and CPU use of a Flink cluster with windows. Q5 finds every 2 s the auctions with the \
                most bids in the last 10 s. Bids are counted in each slot before they are exchanged.",
        ..WINDOWED
    },
    Benchmark {
        id: ids::Q7,
        title: "Nexmark Q7 on Flink (highest bids, fixed windows)",
        about: "Event rate and CPU use of a Flink cluster with windows. Q7 finds the highest bids in each 10 s. It \
                keeps every bid of its windows, 0.1 GiB, the most state of these queries.",
        ..WINDOWED
    },
    Benchmark {
        id: ids::Q8,
        title: "Nexmark Q8 on Flink (new sellers, windows joined)",
        about: "Event rate and CPU use of a Flink cluster with windows. Q8 finds the persons who arrived and offered \
                an auction within the same 10 s. The source leaves out bids, 46 of 50 events.",
        ..WINDOWED
    },
    Benchmark {
        id: ids::Q11,
        title: "Nexmark Q11 on Flink (bids by session)",
        about: "Event rate and CPU use of a Flink cluster with windows. Q11 counts the bids of each bidder until 10 \
                s pass without one. Every bid goes to its bidder's slot and extends a session.",
        ..WINDOWED
    },
];

/// Whether a query keeps events until their window is over, and exchanges them between slots.
fn keeps_windows(id: &str) -> bool {
    ![ids::Q0, ids::Q1, ids::Q2].iter().any(|plain| *plain == id)
}

/// Rounds of a pass and the length of its steps at each depth.
fn length(depth: Depth) -> Length {
    match depth {
        Depth::Quick => Length { rounds: 1, step_s: 3.5, warm_up_s: 6.0 },
        Depth::Standard => Length { rounds: 2, step_s: 5.0, warm_up_s: 12.0 },
        Depth::Full => Length { rounds: 3, step_s: 5.0, warm_up_s: 12.0 },
    }
}

/// Q0 before all others, and of each the pair that shows SMT with its control before the whole
/// host.
fn priority(id: BenchId, index: usize) -> u32 {
    let query = BENCHMARKS.iter().position(|bench| bench.id == id).unwrap_or(0);
    60_u32.saturating_sub((8 * query + index) as u32)
}

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let walk = length(scope.depth);
    let places = places(scope);
    let candidates = places.into_iter().enumerate().map(|(index, (name, place))| {
        let placement = match place.and_then(|place| with_memory(scope, bench.id, place)) {
            Ok(place) => place,
            Err(why) => return Candidate::unmet(bench.id, name, why),
        };
        let (placement, elsewhere) = with_jobmanager(scope, placement);
        let seconds = AROUND_S + walk.seconds();
        let mut candidate = Candidate::new(bench.id, placement, priority(bench.id, index), seconds);
        candidate.case.inputs.insert(ELSEWHERE.into(), elsewhere.to_string());
        if shares_its_cpus(&candidate.case) {
            let told = "it and the driver use the TaskManager's CPUs, as no other is left";
            candidate.case.inputs.insert(JOBMANAGER.into(), told.into());
        }
        set_length(&mut candidate, walk);
        file::in_directory(scope, candidate)
    });
    candidates.collect()
}

fn set_length(candidate: &mut Candidate, walk: Length) {
    let inputs = [
        (ROUNDS, walk.rounds.to_string()),
        (STEP, walk.step_s.to_string()),
        (WARM_UP, walk.warm_up_s.to_string()),
    ];
    candidate.case.inputs.extend(inputs.map(|(name, value)| (name.to_string(), value)));
}

/// One thread of a core, both, two cores (the control), all CPUs.
fn places(scope: &Scope) -> Vec<(&'static str, Result<Placement, String>)> {
    let placements = scope.placements;
    let mut places = vec![("one-cpu", placements.one_cpu(TASKMANAGER))];
    let mut control: Option<Placement> = None;
    for (distance, pair) in placements.pairs([TASKMANAGER, TASKMANAGER]) {
        match distance {
            Distance::SameCpu => {}
            Distance::SmtSibling => places.push((distance.name(), pair)),
            _ if control.is_none() => control = pair.ok(),
            _ => {}
        }
    }
    places.extend(control.map(|pair| (apart(&pair), Ok(pair))));
    let all = placements.all(TASKMANAGER);
    let same = places.iter().find_map(|(name, place)| {
        place.as_ref().ok().filter(|place| place.cpus() == all.cpus()).map(|_| *name)
    });
    places.push((
        "all",
        match same {
            Some(name) => Err(format!("all CPUs are the same as {name}")),
            None if all.seats.is_empty() => Err("no usable CPU found".to_string()),
            None => Ok(all),
        },
    ));
    places
}

/// The name of a pair that was found.
fn apart(pair: &Placement) -> &'static str {
    let named = |distance: &Distance| distance.name() == pair.name;
    Distance::ALL.into_iter().find(named).map_or("other-cpu", Distance::name)
}

/// Whether a cluster of this size has room in memory.
fn with_memory(scope: &Scope, id: BenchId, placement: Placement) -> Result<Placement, String> {
    let limits = &scope.machine.limits;
    let in_group =
        limits.memory_bytes.map(|limit| limit.saturating_sub(limits.memory_used_bytes.unwrap_or(0)));
    let free = [scope.machine.memory.available_bytes, in_group].into_iter().flatten().min();
    let needs = cluster::memory(placement.seats.len(), keeps_windows(id.as_str()));
    match free {
        Some(free) if free < needs => Err(format!(
            "needs {} MiB of memory for a Flink cluster; only {} MiB are free",
            needs >> 20,
            free >> 20
        )),
        _ => Ok(placement),
    }
}

/// With seats for JobManager and driver off the TaskManager's cores; where none are left they sit
/// everywhere.
fn with_jobmanager(scope: &Scope, mut placement: Placement) -> (Placement, CpuSet) {
    let seats = placement.cpus();
    let left = scope.placements.cpus().difference(&seats);
    let sibling =
        |cpu: &u32| seats.iter().any(|own| scope.placements.distance(own, *cpu) == Distance::SmtSibling);
    let off_core: CpuSet = left.iter().filter(|cpu| !sibling(cpu)).collect();
    let elsewhere: CpuSet =
        if off_core.is_empty() { &left } else { &off_core }.iter().take(MAX_ELSEWHERE).collect();
    if elsewhere.is_empty() {
        return (placement, seats);
    }
    placement.seats.extend(elsewhere.iter().map(|cpu| Seat {
        role: JOBMANAGER.into(),
        host: None,
        cpus: CpuSet::one(cpu),
        mem_nodes: CpuSet::default(),
    }));
    (placement, elsewhere)
}

impl Flink {
    /// What these candidates become with it: each with what it needs, or one for each query where a
    /// cluster runs.
    pub fn supply(&self, candidates: Vec<Candidate>, scope: &Scope) -> Vec<Candidate> {
        let running = |bench: BenchId| -> Option<Candidate> {
            let On::Running { address, slots, apart_s } = &self.on else { return None };
            let seat = Seat {
                role: TASKMANAGER.into(),
                host: Some(address.clone()),
                cpus: CpuSet::default(),
                mem_nodes: CpuSet::default(),
            };
            let placement = Placement { seats: vec![seat], ..Placement::named("free") };
            let walk = length(scope.depth);
            let seconds = AROUND_S + walk.for_readings_apart(*apart_s).seconds();
            let mut candidate = Candidate::new(bench, placement, priority(bench, 0), seconds);
            set_length(&mut candidate, walk);
            candidate.case.inputs.insert(SLOTS.into(), slots.to_string());
            candidate.case.inputs.insert(APART.into(), apart_s.to_string());
            candidate.case.inputs.insert(JAR.into(), self.jar.display().to_string());
            Some(candidate)
        };
        let (own, mut all): (Vec<Candidate>, Vec<Candidate>) =
            candidates.into_iter().partition(|candidate| is_nexmark(&candidate.case));
        match &self.on {
            On::Running { .. } => {
                let asked = |bench: &&Benchmark| own.iter().any(|candidate| candidate.case.bench == bench.id);
                all.extend(BENCHMARKS.iter().filter(asked).filter_map(|bench| running(bench.id)));
            }
            On::Own { java, home, port } => all.extend(own.into_iter().map(|mut candidate| {
                if candidate.unmet.is_none() {
                    let inputs = &mut candidate.case.inputs;
                    inputs.insert(JAR.into(), self.jar.display().to_string());
                    inputs.insert(JAVA.into(), java.display().to_string());
                    inputs.insert(HOME.into(), home.display().to_string());
                    inputs.extend(port.map(|port| (PORT.to_string(), port.to_string())));
                }
                candidate
            })),
        }
        all
    }
}

/// Whether a case is one of these rows.
pub fn is_nexmark(case: &Case) -> bool {
    BENCHMARKS.iter().any(|bench| bench.id == case.bench)
}

/// Whether JobManager and driver share the TaskManager's CPUs because there are no others.
pub fn shares_its_cpus(case: &Case) -> bool {
    is_nexmark(case)
        && case.inputs.contains_key(ELSEWHERE)
        && !case.placement.seats.iter().any(|seat| seat.role == JOBMANAGER)
}

/// The REST address of another's cluster, where a case runs on one.
pub fn cluster_of(case: &Case) -> Option<String> {
    let mut seats = case.placement.seats.iter().filter(|seat| seat.role == TASKMANAGER);
    seats.find_map(|seat| seat.host.clone())
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let spec = JobSpec::of(case)?;
    process::adopt_orphans().context("cannot adopt Flink's orphaned processes")?;
    process::terminate_with_parent()?;
    let _tree = Tree;
    let mut waiter = Waiter::new()?;
    let steps = spec.length.steps(sampler.seed());
    let mut field = Field::enter(spec, sampler.seed(), &mut waiter)?;
    let walked = field.walk(steps, &mut waiter);
    // Also after an error, the job and the cluster end before the result is returned.
    drop(field);
    emit(&walked?, sampler)
}

/// All that was started here; killed and waited for when this goes.
struct Tree;

impl Drop for Tree {
    fn drop(&mut self) {
        // A process that does not end in this time is stuck in the kernel; our parent tries again.
        let _ = process::end_descendants(std::time::Duration::from_secs(5));
    }
}

fn emit(walked: &Walked, sampler: &mut Sampler) -> anyhow::Result<()> {
    let used = walked.windows.iter().filter(|(_, window)| window.is_ok()).count();
    ensure!(used > 0, "no sample of {} can be used: {}", walked.windows.len(), walked.rejections());
    for load in LOADS {
        let of_load = || walked.windows.iter().filter(move |(step, _)| step.load == load);
        let windows: Vec<&walk::Window> = of_load().filter_map(|(_, window)| window.as_ref().ok()).collect();
        let at = || -> Params { point(ids::param::LOAD, load) };
        let ns: Vec<f64> = windows.iter().map(|window| window.ns).collect();
        if !windows.is_empty() {
            let events: Vec<f64> = windows.iter().map(|window| window.events).collect();
            sampler.windows_timed(at(), ids::metric::RATE, (events, ns.clone()), 0)?;
            let costs: Option<(Vec<f64>, Vec<f64>)> = windows
                .iter()
                .map(|window| Some((window.events, window.process_cpus? * window.ns)))
                .collect();
            if let Some(costs) = costs.filter(|(events, _)| events.iter().all(|events| *events > 0.0)) {
                sampler.windows_timed(at(), ids::metric::COST, costs, 0)?;
            }
            for (metric, value) in VALUES {
                // What is unknown in one window is left out: unknown is better than misplaced.
                let values: Option<Vec<f64>> = windows.iter().map(|window| value(window)).collect();
                if let Some(values) = values {
                    sampler.windows_timed(at(), metric, (values, ns.clone()), 0)?;
                }
            }
        }
        let all_ns = of_load().map(|(step, _)| step.seconds * 1e9).sum();
        let rejected = of_load().filter(|(_, window)| window.is_err()).count();
        sampler.value(at(), ids::metric::REJECTED, rejected as f64, all_ns)?;
        let restarts = walked.restarts.iter().filter(|step| step.load == load).count();
        sampler.value(at(), ids::metric::RESTARTS, restarts as f64, all_ns)?;
    }
    Ok(())
}

type ValueOf = fn(&walk::Window) -> Option<f64>;

/// Figures of a window other than its rate and the cost of an event.
const VALUES: [(MetricId, ValueOf); 10] = [
    (ids::metric::CPU, |window| Some(window.cpu? * 100.0)),
    (ids::metric::CPU_TICKS, |window| Some(window.cpu_ticks? * 100.0)),
    (ids::metric::PROCESS_CPU, |window| Some(window.process_cpus? * 100.0)),
    (ids::metric::ATTAINMENT, |window| {
        let percent = window.cpu? * 100.0;
        (percent > 0.0).then(|| window.rate() / percent)
    }),
    (ids::metric::TARGET, |window| window.target),
    (ids::metric::ACHIEVED, |window| {
        let target = window.target.filter(|target| *target > 0.0)?;
        Some(window.rate() / target * 100.0)
    }),
    (ids::metric::LATE, |window| Some(window.late_ms)),
    (ids::metric::OTHERS, |window| Some(window.others? * 100.0)),
    (ids::metric::STEAL, |window| Some(window.steal? * 100.0)),
    (ids::metric::GC, |window| Some(window.gc? * 100.0)),
];

#[cfg(test)]
mod tests;
