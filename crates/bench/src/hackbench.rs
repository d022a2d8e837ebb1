//! hackbench: groups of senders and receivers, every sender of a group writing to each of its
//! receivers.

use crate::row::{note, quantile_us};
use model::vocabulary::hackbench as ids;
use model::vocabulary::{BenchId, ParamId};

use anyhow::{Context, ensure};

use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, check_answer, single_point};
use model::{Better, Case, Covariates, Form, Metric, Packed, Params, Value};
use sys::clock::Clock;

mod board;
mod crew;
mod message_buffer;
mod second;
mod transport;

pub use crew::RunResult;
use crew::{Setup, Tasks};
use second::SecondRun;
pub use transport::TRANSPORTS;

const TIME: Metric = Metric::new(ids::metric::TIME, "wall time", "s", Better::Lower, Form::Value);
const USER: Metric = note(ids::metric::CPU_USER, "CPU time in the program", "s");
const SYSTEM: Metric = note(ids::metric::CPU_SYSTEM, "CPU time in the kernel", "s");
const VOLUNTARY: Metric = note(ids::metric::VOLUNTARY, "voluntary switches", "");
const INVOLUNTARY: Metric = note(ids::metric::INVOLUNTARY, "involuntary switches", "");
const SWITCHES: Metric = note(ids::metric::SWITCHES, "context switches of the whole host", "");
const MIGRATIONS: Metric = note(ids::metric::MIGRATIONS, "migrations", "");
const WAIT: Metric = note(ids::metric::WAIT, "time that tasks waited for a CPU", "s");
const MESSAGES: Metric = note(ids::metric::MESSAGES, "messages", "");
const LOCKS: Metric = note(ids::metric::LOCK_SHARE, "CPU share in kernel locks", "");
const MASKED: Metric = note(ids::metric::MASKED_SHARE, "CPU share at ends of locks that mask interrupts", "");
const TASKS: Metric = note(ids::metric::TASKS, "tasks", "");

const METRICS: &[Metric] =
    &[TIME, USER, SYSTEM, VOLUNTARY, INVOLUNTARY, SWITCHES, MIGRATIONS, WAIT, LOCKS, MASKED, MESSAGES, TASKS];
const MESSAGING_METRICS: &[Metric] = &[
    quantile_us(ids::metric::LATENCY_P50, "message latency, median", 0.5),
    quantile_us(ids::metric::LATENCY_P99, "message latency, 99th percentile", 0.99),
    quantile_us(ids::metric::LATENCY_P999, "message latency, 99.9th percentile", 0.999).aside(),
    quantile_us(ids::metric::LATENCY_MAX, "message latency, longest", 1.0).aside(),
    TIME.aside(),
    USER,
    SYSTEM,
    VOLUNTARY,
    INVOLUNTARY,
    SWITCHES,
    MIGRATIONS,
    WAIT,
    LOCKS,
    MASKED,
    MESSAGES,
    TASKS,
];

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::HACKBENCH,
        title: "hackbench",
        about: "Time for groups of senders and receivers to exchange small messages, as hackbench of rt-tests does. \
                Tasks are processes or threads; messages go over sockets, pipes or TCP.",
        reading: "Lower is better, but it measures the scheduler more than the hardware. Compare equal \
                  parameters only; runs of one setting differ by 5–20 %. Many involuntary switches with a long time \
                  mean that tasks are preempted before their partners have work. A large lock_share means contention \
                  inside the kernel. Time that spins with interrupts masked shows in masked_share, together with \
                  other work.",
        method: "Every sender writes `loops` messages of `bytes` bytes to each receiver of its group, through the C \
                 library. Defaults are those of rt-tests. The time runs from one start signal until all tasks have \
                 ended and are reaped. Switches of the tasks are the kernel's counts from the signal on. `switches` \
                 counts the whole host, idle tasks included, and must not be smaller. Process figures are read \
                 before reaping, with the clock stopped. Threads are gone when they end. Their migrations and \
                 waiting come from a second, untimed run of about a second in every fourth pass. As root the CPUs \
                 are sampled each ms in such a run. lock_share is samples in functions that take or wait for kernel \
                 locks, without futexes. masked_share is samples at the end of locks that mask interrupts. Receivers \
                 count bytes and check the last message. A kernel that splits CPU time by ticks may count short \
                 tasks as all user or all kernel; use the sum.",
        metrics: METRICS,
        cases: hackbench_cases,
        run: |case, sampler| run(case, sampler, false),
        ..ROW
    },
    Benchmark {
        id: ids::MESSAGING,
        title: "Message latency under load",
        about: "Latency of each hackbench message, from before the sender writes it until the receiver has read it. \
                Time in a full buffer counts.",
        reading: "Lower is better for work that waits for answers. Two settings with equal times may differ tenfold \
                  in the slowest hundredth of messages. A median of hundreds of µs means full buffers: the senders \
                  run long before a receiver does. The total time is given too.",
        method: "The tasks of sched.hackbench put a clock reading into every message. All latencies of a run go into \
                 buckets of 0.8 %.",
        metrics: MESSAGING_METRICS,
        cases: messaging_cases,
        run: |case, sampler| run(case, sampler, true),
        from: Depth::Standard,
        ..ROW
    },
];

const ROW: Benchmark = Benchmark {
    source: file!(),
    params: &[
        Param::int(ids::param::GROUPS, "groups of senders and receivers", 1..=1000),
        Param::int(ids::param::FDS, "senders in each group, and receivers", 1..=1000),
        Param::int(ids::param::LOOPS, "messages from each sender to each receiver", 1..=1_000_000_000),
        Param::bytes(ids::param::BYTES, "message size, bytes", 1..=1 << 24),
        Param::choice(ids::param::TASKS, "processes or threads", &Tasks::NAMES),
        Param::choice(ids::param::TRANSPORT, "what carries the messages", &TRANSPORTS),
    ],
    points: single_point,
    ..Benchmark::PINNED
};

/// The parameters of a run, as rt-tests has them when nothing is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub groups: u64,
    pub fds: u64,
    pub loops: u64,
    pub bytes: u64,
    pub tasks: &'static str,
    pub transport: &'static str,
}

impl Default for Options {
    fn default() -> Options {
        Options { groups: 10, fds: 20, loops: 100, bytes: 100, tasks: "process", transport: "socket" }
    }
}

/// On this host a message costs a few us of CPU time, whatever carries it; forking a task some
/// 100 us.
const MESSAGE_S: f64 = 3e-6;
const TASK_S: f64 = 3e-4;

impl Options {
    pub fn params(&self) -> Params {
        let number = |name: ParamId, value: u64| (name, Value::from(value));
        let word = |name: ParamId, value: &str| (name, Value::from(value));
        Params::from([
            number(ids::param::GROUPS, self.groups),
            number(ids::param::FDS, self.fds),
            number(ids::param::LOOPS, self.loops),
            number(ids::param::BYTES, self.bytes),
            word(ids::param::TASKS, self.tasks),
            word(ids::param::TRANSPORT, self.transport),
        ])
    }

    /// Estimated seconds of a pass on this number of CPUs.
    pub fn seconds(params: &Params, cpus: usize) -> f64 {
        let number = |name: ParamId| params.get(name).and_then(Value::number).unwrap_or(1.0);
        let (groups, fds) = (number(ids::param::GROUPS), number(ids::param::FDS));
        let messages = groups * fds * fds * number(ids::param::LOOPS);
        let timed = (messages * MESSAGE_S + groups * fds * 2.0 * TASK_S) / cpus.max(1) as f64;
        timed + timed.min(second::SECOND_S) / f64::from(second::ONE_OF) + 0.02
    }
}

fn candidate(bench: BenchId, scope: &Scope, options: &Options, priority: u32) -> Candidate {
    match scope.placements.free(&["tasks"]) {
        Ok(placement) => {
            let mut candidate = Candidate::new(bench, placement, priority, 0.0);
            candidate.case.params = options.params();
            candidate.seconds = Options::seconds(&candidate.case.params, scope.placements.cpus().len());
            // Page tables, stacks and buffers of a task.
            candidate.memory(options.groups * options.fds * 2 * (256 << 10))
        }
        Err(why) => Candidate::unmet(bench, "free", why),
    }
}

fn hackbench_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let of = |tasks, transport| Options { tasks, transport, ..Options::default() };
    let mut all = vec![candidate(bench.id, scope, &of("process", "socket"), 55)];
    if scope.depth >= Depth::Standard {
        let others = [("process", "pipe"), ("thread", "socket"), ("thread", "pipe")];
        all.extend(others.map(|(tasks, transport)| candidate(bench.id, scope, &of(tasks, transport), 45)));
    }
    all
}

fn messaging_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let of = |tasks, transport| Options { groups: 2, tasks, transport, ..Options::default() };
    let mut all = vec![candidate(bench.id, scope, &of("process", "socket"), 40)];
    if scope.depth >= Depth::Full {
        let others = [("process", "pipe"), ("process", "inet"), ("thread", "socket")];
        all.extend(others.map(|(tasks, transport)| candidate(bench.id, scope, &of(tasks, transport), 40)));
    }
    all
}

fn setup(params: &Params, stamped: bool) -> anyhow::Result<Setup> {
    let number = |name: ParamId| {
        let value = params.get(name).and_then(Value::int).filter(|value| *value > 0);
        value.map(|value| value as usize).with_context(|| format!("the case has no {name}"))
    };
    let word = |name: ParamId| params.get(name).and_then(Value::text).unwrap_or_default();
    let bytes = number(ids::param::BYTES)?;
    ensure!(
        !stamped || bytes >= board::STAMP,
        "a message with a time stamp needs at least {} bytes",
        board::STAMP
    );
    Ok(Setup {
        groups: number(ids::param::GROUPS)?,
        fds: number(ids::param::FDS)?,
        loops: number(ids::param::LOOPS)?,
        bytes,
        tasks: Tasks::named(word(ids::param::TASKS)).context("the tasks must be processes or threads")?,
        transport: TRANSPORTS
            .into_iter()
            .find(|name| *name == word(ids::param::TRANSPORT))
            .with_context(|| format!("the transport must be one of {}", TRANSPORTS.join(", ")))?,
        stamped,
        kept: false,
    })
}

fn run(case: &Case, sampler: &mut Sampler, stamped: bool) -> anyhow::Result<()> {
    let setup = setup(&case.params, stamped)?;
    let wanted = sampler.pass().is_multiple_of(second::ONE_OF);
    let (ran, beside) = second::run(&setup, sampler.clock(), wanted)?;
    check_answer(ran.messages == setup.messages(), || {
        format!("{} of {} messages arrived", ran.messages, setup.messages())
    })?;
    check_answer(ran.intact, || "a message arrived with wrong content".to_string())?;
    let counted = ran.voluntary + ran.involuntary;
    if let Some(switches) = ran.switches {
        // Every switch of a task is one of the host; the two counts may end a few switches apart.
        check_answer(switches >= counted * 0.99 - 50.0, || {
            format!("the tasks count {counted} switches, the whole host only {switches}")
        })?;
    }
    emit(&setup, &ran, sampler)?;
    beside.map_or(Ok(()), |beside| emit_beside(&setup, &ran, beside, sampler))
}

fn emit(setup: &Setup, ran: &RunResult, sampler: &mut Sampler) -> anyhow::Result<()> {
    let ns = ran.wall_ns;
    let one = |value: f64| Some(Packed::Same(value));
    let beside = Covariates {
        voluntary: one(ran.voluntary),
        involuntary: one(ran.involuntary),
        wait_ns: ran.wait_ns.map(Packed::Same),
        clock_ghz: one(super::sampler::core_clock_ghz(sampler.clock())),
        ..Covariates::default()
    };
    if let Some(histogram) = &ran.latencies {
        let metrics = [
            ids::metric::LATENCY_P50,
            ids::metric::LATENCY_P99,
            ids::metric::LATENCY_P999,
            ids::metric::LATENCY_MAX,
        ];
        sampler.histogram_beside(&metrics, histogram.clone(), ns, beside.clone())?;
    }
    sampler.value_beside(Params::new(), ids::metric::TIME, ns / 1e9, ns, beside)?;
    let values = [
        (ids::metric::CPU_USER, Some(ran.user_ms / 1e3)),
        (ids::metric::CPU_SYSTEM, Some(ran.system_ms / 1e3)),
        (ids::metric::VOLUNTARY, Some(ran.voluntary)),
        (ids::metric::INVOLUNTARY, Some(ran.involuntary)),
        (ids::metric::SWITCHES, ran.switches),
        (ids::metric::MIGRATIONS, ran.migrations),
        (ids::metric::WAIT, ran.wait_ns.map(|ns| ns / 1e9)),
        (ids::metric::MESSAGES, Some(ran.messages as f64)),
        (ids::metric::TASKS, Some(setup.tasks() as f64)),
    ];
    for (metric, value) in values.into_iter().filter_map(|(metric, value)| Some((metric, value?))) {
        sampler.value(Params::new(), metric, value, ns)?;
    }
    Ok(())
}

/// Emits the figures of the second run.
fn emit_beside(
    setup: &Setup,
    ran: &RunResult,
    beside: SecondRun,
    sampler: &mut Sampler,
) -> anyhow::Result<()> {
    let ns = ran.wall_ns;
    let of_threads = |own: Option<f64>, other: Option<f64>| if own.is_none() { other } else { None };
    let migrations = of_threads(ran.migrations, beside.migrations);
    let wait = of_threads(ran.wait_ns, beside.wait_ns).map(|ns| ns / 1e9);
    if beside.loops < setup.loops && (migrations.is_some() || wait.is_some()) {
        let of = format!("{} of {} loops", beside.loops, setup.loops);
        sampler.facts().notes.push(format!("migrations and waiting come from a second run with {of}"));
    }
    for (metric, value) in [(ids::metric::MIGRATIONS, migrations), (ids::metric::WAIT, wait)] {
        value.map_or(Ok(()), |value| sampler.value(Params::new(), metric, value, ns))?;
    }
    match beside.locks {
        Ok(shares) => {
            sampler.value(Params::new(), ids::metric::LOCK_SHARE, shares.locks, ns)?;
            sampler.value(Params::new(), ids::metric::MASKED_SHARE, shares.masked, ns)?;
            if shares.full {
                let samples = shares.samples;
                sampler.facts().notes.push(format!("lock shares come from the first {samples} samples"));
            }
        }
        Err(why) => sampler.facts().notes.push(format!("no lock shares: {why}")),
    }
    Ok(())
}

/// One run in this very process, as the original does it. The caller has a single thread.
pub fn once(options: &Options) -> anyhow::Result<RunResult> {
    Ok(crew::run(&setup(&options.params(), false)?, Clock::Raw, None)?.0)
}
