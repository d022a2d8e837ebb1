//! What can be measured: a table of benchmarks, each one file with its text, its cases and its
//! measuring.
//!
//! To add one: write `NAME.rs` with `pub const BENCHMARKS: &[Benchmark]` and add its line to
//! [`benchmarks!`].
//!
//! Invariant: measures and never judges: statistics are not among what it may use.

#![forbid(unsafe_code)]
// Tests may be long tables.
#![cfg_attr(test, allow(clippy::too_many_lines))]

use crate::placement::Placements;
use crate::row::{latency_ns, latency_us};
use machine::Machine;
use model::vocabulary::kernel::metric::LATENCY;
use model::vocabulary::{BenchId, ParamId};
use model::{Case, Metric, Params, Placement, Reason, Title, View};

mod buckets;
mod crowd;
mod leaves;
mod memory;
mod neighbours;
pub mod network_path;
mod occupancy;
mod pair;
pub mod placement;
mod places;
pub mod pretend;
mod resident;
mod row;
pub mod sampler;
mod stream_crew;
mod tournament;

pub use buckets::histogram;
pub use disk::{
    DEVICE, DEVICE_BYTES, DEVICE_MEDIUM, DEVICE_NUMBER, DEVICE_WRITE, MAX_JOBS as MAX_DISK_JOBS,
    Overrides as DiskOverrides, not_on_a_device, wished as disk_cases,
};
pub use file::DROP_CACHES;
pub use guard::{FLOOR, FORMATS, NAMES, RIVAL, TIMEOUT, WANTED, WORDS, Wanted, format_of};
pub use hackbench::{Options as Hackbench, RunResult as HackbenchRun, once as hackbench_once};
pub use leaves::{JOB, Leaves, SET_KEY, leaves};
pub use memory_map::{Options as MapOptions, Plant, cases as map_cases};
pub use neighbours::Neighbours;
pub use network::{
    GROUP as NETWORK, Overrides as NetworkOverrides, Place as NetworkPlace, TO as NETWORK_TO,
    messages as network_messages, network_cases, remote_description, seats as network_seats,
    serve as network_serve, wire as network_wire,
};
pub use nexmark::{Flink, JobManager, NEXMARK, On, Overview, is_nexmark, shares_its_cpus};
pub use rate::{Suite as RateSuite, cases as rate_cases, copies_of as rate_copies};
pub use row::{Param, Range};
pub use sampler::calibration_explained;
pub use sampler::{Line, NOT_SLOWED, Order, Point, Sampler, Secret, Windows, backed, median};
pub use smt::{FINE_LEVELS, Kind, MARGIN, NO_IPC, USUAL_LEVELS, cases as smt_cases};
pub use sys::crew::WrongAnswer;
pub use unixbench::{RUSTC, with_copies};

/// Declares the modules and lists their rows, in the order in which people see them.
macro_rules! benchmarks {
    ($($module:ident)+) => {
        $(mod $module;)+
        /// The rows of every file, in display order.
        const FILES: &[&[Benchmark]] = &[$($module::BENCHMARKS),+];
    };
}

benchmarks! {
    cpu_clock
    cpu_frequency_ramp
    cpu_arithmetic
    cpu_pair_slowdown
    memory_bandwidth
    memory_latency
    memory_data_source
    memory_core_to_core
    memory_llc_sharing
    memory_cores
    memory_parallelism
    memory_tlb
    memory_line
    memory_nodes
    memory_map
    memory_loaded
    syscall
    signal
    vm
    process_fork
    process
    timer
    lock_atomic
    lock_mutex
    ipc_pipe
    ipc_pipe_work
    ipc_round_trip
    ipc_bandwidth
    ipc_connect
    sched_context_switch
    hackbench
    sched_wake_up
    file
    file_create
    disk
    network
    smt
    rate
    nexmark
    unixbench
    guard
    host_pauses
    host_exits
    host_idle
    host_neighbours
    selftest
}

/// All benchmarks, in display order.
pub fn all() -> impl Iterator<Item = &'static Benchmark> {
    FILES.iter().flat_map(|rows| rows.iter())
}

/// One thing that can be measured: a row of data, no state.
#[derive(Clone, Copy)]
pub struct Benchmark {
    /// `group.name`; contains the field's plain words (`memory.…`, `syscall.…`, `ipc.pipe…`).
    pub id: BenchId,
    pub title: &'static str,
    /// What it measures, in at most four sentences.
    pub about: &'static str,
    /// How to read the number, what a good value looks like and what moves it.
    pub reading: &'static str,
    /// How it is measured: the steps and checks for readers who doubt the number; may be
    /// empty.
    pub method: &'static str,
    /// The source file: `file!()`.
    pub source: &'static str,
    pub metrics: &'static [Metric],
    /// Parameters of its cases and points; nothing else may appear there.
    pub params: &'static [Param],
    pub view: &'static View,
    /// The first profile that has it; a shallower one measures it when it is named.
    pub from: Depth,
    /// Left out of every profile and list: runs only when named (`selftest`).
    pub hidden: bool,
    /// Seconds that a run of nothing but such rows may take, unless its user or the full profile
    /// says otherwise.
    pub budget_s: Option<f64>,
    /// The cases on this host, the impossible ones with their reason.
    pub cases: fn(&Benchmark, &Scope) -> Vec<Candidate>,
    /// The points that one pass of a case emits, in order.
    pub points: fn(&Case) -> Vec<Params>,
    /// One pass: measures all points, then checks its own answer.
    pub run: fn(&Case, &mut Sampler) -> anyhow::Result<()>,
}

impl Benchmark {
    /// What most rows of the baseline have in common, to be filled by `..Benchmark::PINNED`: one
    /// pinned task, one point, one latency in ns, a row a series, in every profile.
    pub const PINNED: Benchmark = Benchmark {
        id: BenchId::NONE,
        title: "",
        about: "",
        reading: "",
        method: "",
        source: "",
        metrics: &[LATENCY_NS],
        params: &[],
        view: &View::Table,
        from: Depth::Quick,
        hidden: false,
        budget_s: None,
        cases: pinned,
        points: single_point,
        run: |_, _| anyhow::bail!("this benchmark has no code"),
    };
}

/// The headline of rows whose operation takes well under a microsecond.
pub const LATENCY_NS: Metric = latency_ns(LATENCY, "latency");
/// The headline of rows whose operation takes longer.
pub const LATENCY_US: Metric = latency_us(LATENCY, "latency");

/// The case of a row that is measured by one pinned task: each of its points takes the usual
/// samples.
pub fn pinned(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mut candidates = one_pinned(bench, scope, 80, 0.0);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.unmet.is_none()) {
        candidate.seconds = scope.seconds((bench.points)(&candidate.case).len(), 1.0, 0.0);
    }
    candidates
}

/// The case of a row that is measured by one pinned task in this many estimated seconds.
fn one_pinned(bench: &Benchmark, scope: &Scope, priority: u32, seconds: f64) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    vec![Candidate::new(bench.id, placement, priority, seconds)]
}

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Quick,
    Standard,
    Full,
}

impl Depth {
    pub const ALL: [Depth; 3] = [Depth::Quick, Depth::Standard, Depth::Full];

    /// How samples are timed at this depth.
    pub const fn windows(self) -> Windows {
        match self {
            Depth::Quick => Windows { window_ns: 2e6, count: 5, warm_up: 1, limit_s: 2.0 },
            Depth::Standard => Windows { window_ns: 5e6, count: 7, warm_up: 1, limit_s: 10.0 },
            Depth::Full => Windows { window_ns: 10e6, count: 9, warm_up: 1, limit_s: 30.0 },
        }
    }

    /// Passes that every case gets where the budget allows: six pairs are the fewest that have a 95
    /// % interval.
    pub const fn passes_min(self) -> u32 {
        match self {
            Depth::Quick => 6,
            Depth::Standard | Depth::Full => 10,
        }
    }
}

/// What a benchmark may plan with.
pub struct Scope<'a> {
    pub machine: &'a Machine,
    pub placements: &'a Placements,
    pub depth: Depth,
    /// Memory that one pass may touch, bytes, all its processes together.
    pub memory_bytes: u64,
    pub windows: Windows,
    /// Whatever is sampled on large hosts (pairs of CPUs) is measured whole.
    pub all: bool,
}

impl<'a> Scope<'a> {
    /// With the usual samples of a depth; large hosts are sampled.
    pub const fn new(
        machine: &'a Machine,
        placements: &'a Placements,
        depth: Depth,
        memory_bytes: u64,
    ) -> Scope<'a> {
        Scope { machine, placements, depth, memory_bytes, windows: depth.windows(), all: false }
    }

    /// Estimated seconds of a pass: the process, `setup_s`, and `points` of `stretch` times the
    /// usual sample.
    pub fn seconds(&self, points: usize, stretch: f64, setup_s: f64) -> f64 {
        const PROCESS_START_S: f64 = 0.005;
        // Calibration and its check of linearity take about five samples per point.
        let windows = (self.windows.count + self.windows.warm_up + 5) as f64;
        PROCESS_START_S + setup_s + points as f64 * stretch * windows * self.windows.window_ns / 1e9
    }
}

/// A case that could be measured, for the plan to take or cut.
pub struct Candidate {
    pub case: Case,
    /// Higher runs first and is cut last: 100 is what every report needs.
    pub priority: u32,
    pub seconds: f64,
    pub memory_bytes: u64,
    /// Why it cannot be measured here.
    pub unmet: Option<String>,
    /// Taken or cut by the budget together with the candidate before it, which has the same
    /// priority: each is useless without the other.
    pub with_last: bool,
}

impl Candidate {
    pub fn new(bench: BenchId, placement: Placement, priority: u32, seconds: f64) -> Candidate {
        let case = Case::new(bench, placement);
        Candidate { case, priority, seconds, memory_bytes: 0, unmet: None, with_last: false }
    }

    /// A case that this host or this user cannot have.
    pub fn unmet(bench: BenchId, placement_name: &'static str, why: String) -> Candidate {
        let placement = Placement::named(placement_name);
        Candidate { unmet: Some(why), ..Candidate::new(bench, placement, 0, 0.0) }
    }

    pub fn memory(mut self, bytes: u64) -> Candidate {
        self.memory_bytes = bytes;
        self
    }

    pub fn param(mut self, name: ParamId, value: impl Into<model::Value>) -> Candidate {
        self.case.params.insert(name, value);
        self
    }
}

/// Fails the pass with a wrong answer unless `right`.
pub fn check_answer(right: bool, what: impl FnOnce() -> String) -> anyhow::Result<()> {
    match right {
        true => Ok(()),
        false => Err(WrongAnswer(what()).into()),
    }
}

/// The reason that the parent receives for a pass that ended with an error.
pub fn reason(error: anyhow::Error) -> Reason {
    match error.downcast_ref::<WrongAnswer>() {
        Some(wrong) => Reason::WrongAnswer(wrong.to_string()),
        None => Reason::Failed(format!("{error:#}")),
    }
}

/// A case without points of its own emits one, without parameters.
pub fn single_point(_: &Case) -> Vec<Params> {
    vec![Params::new()]
}

pub fn find(id: &str) -> Option<&'static Benchmark> {
    all().find(|bench| bench.id == id)
}

/// A case that measures these of its points alone, by inputs that list them one by one; `None`
/// where nothing lists its points, or where all of them are wanted.
pub fn narrowed(case: &Case, wanted: &[Params]) -> Option<Case> {
    let points = |case: &Case| find(&case.bench).map(|bench| (bench.points)(case)).unwrap_or_default();
    let all = points(case);
    let kept: Vec<bool> = all.iter().map(|point| wanted.contains(point)).collect();
    let count = kept.iter().filter(|kept| **kept).count();
    if count == 0 || count == all.len() {
        return None;
    }
    let mut narrowed = case.clone();
    for values in narrowed.inputs.values_mut() {
        let listed: Vec<&str> = values.split(',').collect();
        if listed.len() == all.len() {
            let kept = listed.iter().zip(&kept).filter_map(|(value, kept)| kept.then_some(*value));
            *values = kept.collect::<Vec<&str>>().join(",");
        }
    }
    // What lists as many values need not be what its points follow from.
    let left: Vec<Params> = all.into_iter().filter(|point| wanted.contains(point)).collect();
    (points(&narrowed) == left).then_some(narrowed)
}

impl Benchmark {
    /// Its only candidate where no CPU may be used, with the reason.
    fn no_cpu(&self, scope: &Scope) -> Vec<Candidate> {
        let why = scope.placements.one_cpu("task").err().unwrap_or_default();
        vec![Candidate::unmet(self.id, "one-cpu", why)]
    }

    /// Its entry in a run file's catalogue.
    pub fn catalogue(&self) -> Title {
        Title {
            id: self.id.into(),
            title: self.title.into(),
            about: self.about.into(),
            reading: self.reading.into(),
            metrics: self.metrics.to_vec(),
            view: self.view.clone(),
        }
    }

    pub fn group(&self) -> &'static str {
        self.id.as_str().split('.').next().unwrap_or_default()
    }
}

/// A point parameter.
pub fn point(name: ParamId, value: impl Into<model::Value>) -> Params {
    Params::from([(name, value.into())])
}

#[cfg(test)]
mod rehearsal;
#[cfg(test)]
mod tests;
