//! Whoever keeps the CPUs beside a measurement busy: the same work, a spinner or a stream, from before the first window
//! until after the last.
//!
//! One process, the caretaker, has all others as its children, so that benchmarks meet no children that are not their
//! own. It ends its children and waits for them, and their CPU time becomes that of the visit.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::WaitOptions;
use rustix::thread::futex;

use super::{Benchmark, Order, Sampler};
use crate::kernels::{self, Op};
use crate::model::{Beside, Case, CpuSet, Pages};
use crate::sys::affinity;
use crate::sys::mapping::Mapping;
use crate::sys::process::{self, Child};
use crate::sys::shared::{SharedWords, WORDS_PER_LINE};

/// Neighbours that are at work; they end when this is dropped.
pub struct Neighbours {
    board: Board,
    caretaker: Child,
}

/// How long neighbours may take to be at work: the same work has built its memory and measured its first point by then.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the caretaker looks whether all are alive.
const LOOK: Duration = Duration::from_millis(50);
/// How long what killed neighbours had started may take to leave.
const LEAVE: Duration = Duration::from_secs(2);
/// A neighbour that streams moves this many bytes again and again: beyond every private cache.
const STREAMED: usize = 64 << 20;

const FAILED: i32 = 1;

/// What one neighbour does, and on which CPU its first task is.
type Work<'a> = (CpuSet, Box<dyn Fn(&Board) -> anyhow::Result<()> + 'a>);

impl Neighbours {
    /// Starts those that a case wants and waits until all are at work; `None` where it wants none.
    pub fn start(benchmark: &Benchmark, order: &Order) -> anyhow::Result<Option<Neighbours>> {
        let works = works(benchmark, order);
        if works.is_empty() {
            return Ok(None);
        }
        let board = Board { words: SharedWords::new(2 * WORDS_PER_LINE)? };
        let all = works.len() as u32;
        let caretaker = process::fork(|| match take_care(&works, &board) {
            Ok(()) => 0,
            Err(_) => FAILED,
        })
        .context("cannot fork the neighbours")?;
        let mut neighbours = Neighbours { board, caretaker };
        let begin = Instant::now();
        while neighbours.board.at_work().load(Ordering::Acquire) < all {
            neighbours.check()?;
            if begin.elapsed() > PATIENCE {
                bail!("the neighbours were not at work after {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(Some(neighbours))
    }

    /// Ends them; an error when one had ended before.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.check()?;
        self.board.end();
        match self.caretaker.wait(PATIENCE).context("while the neighbours end")?.success() {
            true => Ok(()),
            false => bail!("a neighbour ended while its seat was measured"),
        }
    }

    fn check(&mut self) -> anyhow::Result<()> {
        match self.caretaker.ended()? {
            None => Ok(()),
            Some(status) => bail!("a neighbour could not do its work ({status})"),
        }
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.board.end();
        // An orderly end brings their CPU time with it; one that takes too long is a kill.
        let _ = self.caretaker.wait(Duration::from_secs(5));
    }
}

/// A word that ends all, and a count of those at work.
struct Board {
    words: SharedWords,
}

impl Board {
    fn ended(&self) -> &AtomicU32 {
        self.words.half_word(0)
    }

    fn at_work(&self) -> &AtomicU32 {
        self.words.half_word(WORDS_PER_LINE)
    }

    fn end(&self) {
        self.ended().store(1, Ordering::Release);
        // Nobody waiting is fine.
        let _ = futex::wake(self.ended(), futex::Flags::empty(), u32::MAX);
    }
}

/// A neighbour for each CPU; of the same work one for each whole set of seats.
fn works<'a>(benchmark: &'a Benchmark, order: &'a Order) -> Vec<Work<'a>> {
    let placement = &order.case.placement;
    let each = |work: fn(&Board) -> anyhow::Result<()>| -> Vec<Work<'a>> {
        let cpus = placement.neighbours.iter().fold(CpuSet::default(), |all, own| all.union(own));
        cpus.iter().map(|cpu| (CpuSet::one(cpu), Box::new(work) as _)).collect()
    };
    match placement.beside {
        Beside::Idle => Vec::new(),
        Beside::Spinner => each(spin),
        Beside::Stream => each(stream),
        Beside::SameWork => twins(&order.case)
            .into_iter()
            .map(|case| {
                let cpus = case.placement.seats.first().map(|seat| seat.cpus.clone()).unwrap_or_default();
                let order = Order { case, ..order.clone() };
                let work = move |board: &Board| same_work(benchmark, &order, board);
                (cpus, Box::new(work) as _)
            })
            .collect(),
    }
}

/// The case on the CPUs beside its seats: once for each rank of siblings that all its seats have.
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

/// Forks the neighbours, waits for the word that ends them, and leaves nothing of them behind. An error when one ended
/// before.
fn take_care(works: &[Work], board: &Board) -> anyhow::Result<()> {
    // What the children of a neighbour leave when it is killed comes to us.
    process::adopt_orphans()?;
    let all: CpuSet = works.iter().flat_map(|(cpus, _)| cpus.iter().collect::<Vec<u32>>()).collect();
    // Never on a measured CPU.
    affinity::pin(&all)?;
    let mut children = Vec::new();
    for (cpus, work) in works {
        children.push(process::fork(|| {
            match affinity::pin(cpus).map_err(Into::into).and_then(|()| work(board)) {
                Ok(()) => 0,
                Err(_) => FAILED,
            }
        })?);
    }
    let pause = futex::Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
    let mut early = false;
    while board.ended().load(Ordering::Acquire) == 0 && !early {
        // Woken, timed out or raced: the loop looks again.
        let _ = futex::wait(board.ended(), futex::Flags::empty(), 0, Some(&pause));
        for child in &mut children {
            early |= child.ended()?.is_some() && board.ended().load(Ordering::Acquire) == 0;
        }
    }
    // Killed and waited for, and with them whatever they had started.
    drop(children);
    let begin = Instant::now();
    while let Ok(status) = rustix::process::waitpid(None, WaitOptions::NOHANG) {
        match status {
            Some(_) => {}
            None if begin.elapsed() < LEAVE => std::thread::sleep(Duration::from_micros(200)),
            None => break,
        }
    }
    match early {
        true => bail!("a neighbour ended"),
        false => Ok(()),
    }
}

/// A busy loop that looks at a word of memory: one step a cycle, and no pause that would leave the core to its sibling.
fn spin(board: &Board) -> anyhow::Result<()> {
    board.at_work().fetch_add(1, Ordering::AcqRel);
    while board.ended().load(Ordering::Relaxed) == 0 {}
    Ok(())
}

/// Reads memory beyond the caches as fast as the core can.
fn stream(board: &Board) -> anyhow::Result<()> {
    let stream = kernels::streams(Op::Load).into_iter().next().context("no way to read is known")?;
    let mut memory = Mapping::private(STREAMED, Pages::AsGiven, &CpuSet::default())?;
    memory.words_mut().fill(1);
    board.at_work().fetch_add(1, Ordering::AcqRel);
    while board.ended().load(Ordering::Relaxed) == 0 {
        std::hint::black_box(stream.run(memory.words_mut(), 1, 0));
    }
    Ok(())
}

/// The case itself, again and again; at work from its first samples on.
fn same_work(benchmark: &Benchmark, order: &Order, board: &Board) -> anyhow::Result<()> {
    let mut sink = Sink { told: false, board };
    while board.ended().load(Ordering::Relaxed) == 0 {
        let mut sampler = Sampler::new(order, &mut sink);
        (benchmark.run)(&order.case, &mut sampler)?;
    }
    Ok(())
}

/// Takes the samples of a neighbour, which nobody wants; the first one says that it is at work.
struct Sink<'a> {
    told: bool,
    board: &'a Board,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.told {
            self.told = true;
            self.board.at_work().fetch_add(1, Ordering::AcqRel);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
