//! How long a task that was woken waits for a CPU while others work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::thread::futex;

use super::sampler::core_clock_ghz;
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, check_answer, histogram, single_point};
use crate::row::{note, quantile_us, value};
use model::vocabulary::ParamId;
use model::vocabulary::sched as ids;
use model::{Better, Case, Covariates, Packed, Params, Value};
use sys::clock::{self, Clock};
use sys::thread::{self, Thread};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::WAKE_UP,
    title: "Wake-up latency under load",
    about: "Time from a wake-up until the woken thread runs, on a host with twice as many workers as CPUs. schbench \
            measures the same.",
    reading: "Lower is better. The median is how long others may continue; p99 is what a user notices. Near 0–100 µs \
              means that the woken thread preempts. About work_us means that it waits for one task to finish. \
              Several times that are whole slices of several tasks. The request rate drops only if switching itself \
              is expensive.",
    method: "Each of `messengers` threads wakes its `workers`. A worker sleeps in a futex, works for `work_us` (a \
             chain of additions) and sleeps again. Its messenger wakes sleepers at once. Latency runs from before \
             the messenger's call until the worker reads the clock, over half a second. Defaults are two workers for \
             each CPU and 2 ms of work, so CPUs are busy. Both sides count every wake-up.",
    source: file!(),
    metrics: &[
        quantile_us(ids::metric::LATENCY_P99, "wake-up latency, 99th percentile", 0.99),
        quantile_us(ids::metric::LATENCY_P50, "wake-up latency, median", 0.5).aside(),
        quantile_us(ids::metric::LATENCY_P999, "wake-up latency, 99.9th percentile", 0.999).aside(),
        quantile_us(ids::metric::LATENCY_MAX, "wake-up latency, longest", 1.0).aside(),
        value(ids::metric::REQUESTS, "requests", "1/s", Better::Higher),
        note(ids::metric::VOLUNTARY, "voluntary switches", ""),
        note(ids::metric::INVOLUNTARY, "involuntary switches", ""),
    ],
    params: &[
        Param::int(ids::param::MESSENGERS, "threads that wake others", 1..=1024),
        Param::int(ids::param::WORKERS, "workers of each messenger", 1..=16_384),
        Param::int(ids::param::WORK_US, "work between two sleeps, µs", 1..=1_000_000),
    ],
    from: Depth::Standard,
    cases,
    points: single_point,
    run,
    ..Benchmark::PINNED
}];

/// Workers for each CPU, and what one works, us.
const WORKERS_A_CPU: usize = 2;
const WORK_US: u64 = 2000;
/// How long a pass lets them work.
const WINDOW: Duration = Duration::from_millis(500);
/// Stacks of threads, bytes.
const STACK: usize = 64 << 10;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let workers = (scope.placements.cpus().len() * WORKERS_A_CPU).clamp(1, 16_384) as u64;
    vec![match scope.placements.free(&["tasks"]) {
        Ok(placement) => Candidate::new(bench.id, placement, 50, WINDOW.as_secs_f64() + 0.05)
            .param(ids::param::MESSENGERS, 1u64)
            .param(ids::param::WORKERS, workers)
            .param(ids::param::WORK_US, WORK_US)
            .memory(workers * (256 << 10)),
        Err(why) => Candidate::unmet(bench.id, "free", why),
    }]
}

/// A messenger and those that it wakes.
struct Group {
    /// Workers that went to sleep so far; the messenger sleeps on it.
    asleep: AtomicU32,
    slots: Vec<Slot>,
}

/// A worker's bed: [`ASLEEP`], [`WOKEN`] or [`LAST`], and when it was woken, ns. Two that are
/// neighbours share no line.
#[repr(align(128))]
struct Slot {
    state: AtomicU32,
    woken_at: AtomicU64,
}

const WOKEN: u32 = 0;
const ASLEEP: u32 = 1;
/// Woken for the last time.
const LAST: u32 = 2;

/// What a worker came to.
struct WorkerResult {
    latencies: Vec<u64>,
    sum: u64,
    woken: u64,
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let number = |name: ParamId| {
        let value = case.params.get(name).and_then(Value::int).filter(|value| *value > 0);
        value.map(|value| value as u64).with_context(|| format!("the case has no {name}"))
    };
    let (messengers, workers, work_us) =
        (number(ids::param::MESSENGERS)?, number(ids::param::WORKERS)?, number(ids::param::WORK_US)?);
    let clock = sampler.clock();
    let ghz = core_clock_ghz(clock);
    ensure!(ghz > 0.0 && ghz.is_finite(), "the core clock was not measured");
    let rounds = (work_us as f64 * 1e3 * ghz / kernels::CHAIN_UNROLL as f64).max(1.0) as u64;
    let end = Arc::new(AtomicBool::new(false));
    let before = clock::own_usage()?;
    let begin = clock.now();
    let (mut wakers, mut sleepers) = (Vec::new(), Vec::new());
    for _ in 0..messengers {
        let slot = |_| Slot { state: AtomicU32::new(WOKEN), woken_at: AtomicU64::new(0) };
        let group = Arc::new(Group { asleep: AtomicU32::new(0), slots: (0..workers).map(slot).collect() });
        for index in 0..workers as usize {
            let group = Arc::clone(&group);
            sleepers.push(started(move || work(&group, index, rounds, clock))?);
        }
        let (group, end) = (Arc::clone(&group), Arc::clone(&end));
        wakers.push(started(move || wake(&group, &end, clock))?);
    }
    std::thread::sleep(WINDOW);
    end.store(true, Ordering::Release);
    let mut sent = 0;
    for waker in wakers {
        sent += waker.join().context("a messenger")?;
    }
    let mut all = Vec::new();
    let (mut woken, mut right) = (0, true);
    for sleeper in sleepers {
        let worked = sleeper.join().context("a worker")?;
        woken += worked.woken;
        right &= worked.sum == kernels::add_chain(rounds, 1, 1).wrapping_mul(worked.latencies.len() as u64);
        all.extend(worked.latencies);
    }
    let ns = clock.now() - begin;
    let used = clock::own_usage()?;
    check_answer(sent == woken, || format!("{sent} wake-ups were sent and {woken} arrived"))?;
    check_answer(right, || "a worker's sum is wrong".to_string())?;
    ensure!(!all.is_empty(), "no worker woke up within {WINDOW:?}");
    let (voluntary, involuntary) =
        ((used.voluntary - before.voluntary) as f64, (used.involuntary - before.involuntary) as f64);
    let requests = all.len() as f64;
    let beside = Covariates {
        voluntary: Some(Packed::Same(voluntary)),
        involuntary: Some(Packed::Same(involuntary)),
        clock_ghz: Some(Packed::Same(ghz)),
        ..Covariates::default()
    };
    let metrics = [
        ids::metric::LATENCY_P99,
        ids::metric::LATENCY_P50,
        ids::metric::LATENCY_P999,
        ids::metric::LATENCY_MAX,
    ];
    sampler.histogram_beside(&metrics, histogram(all), ns, beside)?;
    sampler.value(Params::new(), ids::metric::REQUESTS, requests / ns * 1e9, ns)?;
    sampler.value(Params::new(), ids::metric::VOLUNTARY, voluntary, ns)?;
    sampler.value(Params::new(), ids::metric::INVOLUNTARY, involuntary, ns)
}

/// Starts a messenger or a worker.
fn started<Answer: Send + 'static>(
    body: impl FnOnce() -> Answer + Send + 'static,
) -> anyhow::Result<Thread<Answer>> {
    thread::start(STACK, body).context("cannot start a thread: check ulimit -u and pids.max")
}

/// A messenger: wakes sleeping workers until the end, and then all once more. Returns the number of
/// wake-ups.
fn wake(group: &Group, end: &AtomicBool, clock: Clock) -> u64 {
    let mut sent = 0;
    let mut left = group.slots.len();
    while left > 0 {
        let seen = group.asleep.load(Ordering::Acquire);
        let over = end.load(Ordering::Acquire);
        for slot in &group.slots {
            if slot.state.load(Ordering::Acquire) == ASLEEP {
                slot.woken_at.store(clock.now() as u64, Ordering::Relaxed);
                slot.state.store(if over { LAST } else { WOKEN }, Ordering::Release);
                let _ = futex::wake(&slot.state, futex::Flags::PRIVATE, 1);
                sent += 1;
                // A worker that is woken after the end does not come back.
                left -= usize::from(over);
            }
        }
        if left > 0 {
            // Ends at the next that goes to sleep; all of them do so once more after the end.
            let _ = futex::wait(&group.asleep, futex::Flags::PRIVATE, seen, None);
        }
    }
    sent
}

/// A worker: sleeps, notes how long after the call it runs, works.
fn work(group: &Group, index: usize, rounds: u64, clock: Clock) -> WorkerResult {
    let slot = &group.slots[index];
    let mut worked = WorkerResult { latencies: Vec::with_capacity(4096), sum: 0, woken: 0 };
    loop {
        slot.state.store(ASLEEP, Ordering::Release);
        group.asleep.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&group.asleep, futex::Flags::PRIVATE, 1);
        while slot.state.load(Ordering::Acquire) == ASLEEP {
            let _ = futex::wait(&slot.state, futex::Flags::PRIVATE, ASLEEP, None);
        }
        let now = clock.now() as u64;
        worked.woken += 1;
        if slot.state.load(Ordering::Acquire) == LAST {
            return worked;
        }
        worked.latencies.push(now.saturating_sub(slot.woken_at.load(Ordering::Relaxed)));
        worked.sum = worked.sum.wrapping_add(kernels::add_chain(std::hint::black_box(rounds), 1, 1));
    }
}
