//! Tasks that keep the CPUs next to a measurement busy: the same work, a spinner or a stream, from
//! before the first sample until after the last.
//!
//! The pass's process becomes their caretaker and measures in a child of its own, so that
//! benchmarks meet no children that are not theirs. It waits for all of them, and their CPU time
//! becomes that of the pass.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::WaitOptions;

use super::{Benchmark, Order, Sampler};
use kernels::{self, Op};
use model::{Beside, Case, CpuSet, Pages};
use sys::affinity;
use sys::crew::{Lines, fork_on};
use sys::mapping::Mapping;
use sys::process::{self, Child};
use sys::sched::{Policy, set_policy};

/// Neighbours that are at work; they end when this is dropped.
pub struct Neighbours {
    // In this order they go: all are killed before what they left is waited for.
    children: Vec<Child>,
    _orphans: Orphans,
    board: Lines,
    beside: Beside,
}

/// How long neighbours may take to be at work: the same work has built its memory and measured its
/// first point by then.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the caretaker checks whether all are alive.
const LOOK: Duration = Duration::from_millis(3);
const SELDOM: Duration = Duration::from_millis(20);
/// How long what killed neighbours had started may take to leave.
const LEAVE: Duration = Duration::from_secs(2);
/// A neighbour that streams moves this many bytes again and again: beyond every private cache.
const STREAMED: usize = 64 << 20;

/// The line of the board that counts those at work; they end by being killed.
const AT_WORK: usize = 0;

/// What one neighbour does, and on which CPU its first task is.
type Work<'a> = (CpuSet, Box<dyn Fn(&Lines) -> anyhow::Result<()> + 'a>);

impl Neighbours {
    /// Starts those that a case wants and waits until all are at work; `None` where it wants none.
    /// The caller moves to their CPUs, and adopts what they leave.
    pub fn start(benchmark: &Benchmark, order: &Order) -> anyhow::Result<Option<Neighbours>> {
        let works = works(benchmark, order);
        if works.is_empty() {
            return Ok(None);
        }
        process::adopt_orphans().context("cannot adopt the children of the sibling tasks")?;
        let all: CpuSet = works.iter().flat_map(|(cpus, _)| cpus.iter().collect::<Vec<u32>>()).collect();
        // Never on a measured CPU, but where the neighbours are there, too.
        affinity::pin(&all).with_context(|| format!("cannot move to CPUs {all}"))?;
        let board = Lines::new(1)?;
        let beside = order.case.placement.beside;
        let mut neighbours = Neighbours { children: Vec::new(), _orphans: Orphans, board, beside };
        for (cpus, work) in &works {
            let board = &neighbours.board;
            neighbours.children.push(fork_on(cpus, || work(board)).context("cannot fork a sibling task")?);
        }
        let begin = Instant::now();
        while (neighbours.board.half(AT_WORK).load(Ordering::Acquire) as usize) < works.len() {
            neighbours.check()?;
            if begin.elapsed() > PATIENCE {
                bail!("the sibling tasks were not busy after {PATIENCE:?}");
            }
            std::thread::sleep(LOOK);
        }
        Ok(Some(neighbours))
    }

    /// Measures in a child while they work, and ends them. An error when one of them, or the child,
    /// ended otherwise.
    pub fn attend(mut self, measure: impl FnOnce() -> i32) -> anyhow::Result<()> {
        let mut measuring = process::fork(measure).context("cannot fork the measurement")?;
        // A caretaker on a measured CPU checks seldom.
        let look = if self.beside == Beside::Awake { SELDOM } else { LOOK };
        let status = loop {
            if let Some(status) = measuring.ended()? {
                break status;
            }
            self.check()?;
            std::thread::sleep(look);
        };
        match status.success() {
            true => Ok(()),
            false => bail!("the measurement ended with {status} while siblings were busy"),
        }
    }

    fn check(&mut self) -> anyhow::Result<()> {
        for child in &mut self.children {
            if let Some(status) = child.ended()? {
                bail!("a sibling task ended early ({status})");
            }
        }
        Ok(())
    }
}

/// What killed neighbours had started comes to us, and is waited for.
struct Orphans;

impl Drop for Orphans {
    fn drop(&mut self) {
        let begin = Instant::now();
        while let Ok(status) = rustix::process::wait(WaitOptions::NOHANG) {
            match status {
                Some(_) => {}
                None if begin.elapsed() < LEAVE => std::thread::sleep(Duration::from_micros(200)),
                None => break,
            }
        }
    }
}

/// A neighbour for each CPU; of the same work one for each whole set of seats.
fn works<'a>(benchmark: &'a Benchmark, order: &'a Order) -> Vec<Work<'a>> {
    let placement = &order.case.placement;
    let each = |work: fn(&Lines) -> anyhow::Result<()>| -> Vec<Work<'a>> {
        let cpus = CpuSet::union_of(&placement.neighbours);
        cpus.iter().map(|cpu| (CpuSet::one(cpu), Box::new(work) as _)).collect()
    };
    match placement.beside {
        Beside::Idle => Vec::new(),
        Beside::Spinner => each(spin),
        Beside::Stream => each(stream),
        Beside::Awake => each(stay_awake),
        Beside::SameWork => twins(&order.case)
            .into_iter()
            .map(|case| {
                let cpus = case.placement.seats.first().map(|seat| seat.cpus.clone()).unwrap_or_default();
                let order = Order { case, ..order.clone() };
                let work = move |board: &Lines| same_work(benchmark, &order, board);
                (cpus, Box::new(work) as _)
            })
            .collect(),
    }
}

/// The case on the CPUs next to its seats: once for each rank of siblings that all its seats have.
fn twins(case: &Case) -> Vec<Case> {
    let placement = &case.placement;
    let ranks = placement.neighbours.iter().map(CpuSet::len).min().unwrap_or(0);
    let twin = |rank: usize| {
        let mut twin = case.clone();
        (twin.placement.beside, twin.placement.neighbours) = (Beside::Idle, Vec::new());
        for (seat, cpus) in twin.placement.seats.iter_mut().zip(&placement.neighbours) {
            seat.cpus = cpus.iter().nth(rank).map(CpuSet::one).unwrap_or_default();
        }
        twin
    };
    (0..ranks).map(twin).collect()
}

/// A busy loop that reads a word of memory: one step a cycle, and no pause that would leave the
/// core to its sibling.
fn spin(board: &Lines) -> anyhow::Result<()> {
    board.half(AT_WORK).fetch_add(1, Ordering::AcqRel);
    while board.half(AT_WORK).load(Ordering::Relaxed) > 0 {}
    Ok(())
}

/// Runs only when no other task wants the CPU, so that the CPU does not idle; pauses leave the core
/// to an SMT sibling.
fn stay_awake(board: &Lines) -> anyhow::Result<()> {
    set_policy(Policy::Idle).context("cannot become a task of lowest priority (SCHED_IDLE)")?;
    board.half(AT_WORK).fetch_add(1, Ordering::AcqRel);
    while board.half(AT_WORK).load(Ordering::Relaxed) > 0 {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Reads memory beyond the caches as fast as the core can.
fn stream(board: &Lines) -> anyhow::Result<()> {
    let stream = kernels::streams(Op::Load).into_iter().next().context("no read loop for this CPU")?;
    let mut memory = Mapping::private(STREAMED, Pages::AsGiven, &CpuSet::default())?;
    memory.words_mut().fill(1);
    board.half(AT_WORK).fetch_add(1, Ordering::AcqRel);
    while board.half(AT_WORK).load(Ordering::Relaxed) > 0 {
        std::hint::black_box(stream.run(memory.words_mut(), 1, 0));
    }
    Ok(())
}

/// The case itself, again and again; at work from its first samples on.
fn same_work(benchmark: &Benchmark, order: &Order, board: &Lines) -> anyhow::Result<()> {
    let mut sink = Sink { told: false, board };
    loop {
        let mut sampler = Sampler::new(order, &mut sink);
        (benchmark.run)(&order.case, &mut sampler)?;
    }
}

/// Drops the samples of a sibling task; the first one shows that it runs.
struct Sink<'a> {
    told: bool,
    board: &'a Lines,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.told {
            self.told = true;
            self.board.half(AT_WORK).fetch_add(1, Ordering::AcqRel);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
