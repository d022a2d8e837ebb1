//! The tasks of a run: made, started by one signal, timed until all have ended.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::futex;

use super::board::{
    Board, CPU_NS, DONE, FAILED, GO, INVOLUNTARY, MESSAGES, SPOILT, STAMP, USER_NS, VOLUNTARY,
};
use super::message_buffer::MessageBuffer;
use super::transport::{Ends, ends};
use crate::buckets::Buckets;
use model::Histogram;
use sys::clock::{self, Clock, Usage};
use sys::counters::{self, TaskCost};
use sys::lock_share::{LockSampler, LockShares};
use sys::process::{Child, fork};
use sys::thread::{self, Thread};

/// What the tasks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    Processes,
    Threads,
}

impl Tasks {
    pub const NAMES: [&str; 2] = ["process", "thread"];

    pub fn named(name: &str) -> Option<Tasks> {
        let position = Tasks::NAMES.iter().position(|own| *own == name)?;
        Some([Tasks::Processes, Tasks::Threads][position])
    }
}

/// What is to be run.
pub struct Setup {
    pub groups: usize,
    pub fds: usize,
    pub loops: usize,
    pub bytes: usize,
    pub tasks: Tasks,
    pub transport: &'static str,
    /// Every message carries the time when it was sent.
    pub stamped: bool,
    /// Finished threads stay until their figures are read, which takes time; processes always do.
    pub kept: bool,
}

impl Setup {
    pub fn tasks(&self) -> usize {
        self.groups * self.fds * 2
    }

    pub fn messages(&self) -> u64 {
        (self.groups * self.fds * self.fds * self.loops) as u64
    }
}

/// What a run came to.
pub struct RunResult {
    /// From the signal until all tasks had ended and processes were reaped, ns; the clock was
    /// stopped while their figures were read.
    pub wall_ns: f64,
    pub user_ms: f64,
    pub system_ms: f64,
    pub voluntary: f64,
    pub involuntary: f64,
    /// Switches of the whole host during the run, if the kernel reports them.
    pub switches: Option<f64>,
    /// Of threads only where they were kept, as is the next.
    pub migrations: Option<f64>,
    pub wait_ns: Option<f64>,
    pub messages: u64,
    /// The last message of each receiver was what its sender sends.
    pub intact: bool,
    pub latencies: Option<Histogram>,
}

/// Stacks of threads, bytes: a message and the calls. Of one larger by more than the least that
/// there can be (16 KiB) the C library gives back what is unused when its thread ends, which is
/// timed.
const STACK: usize = 24 << 10;
/// Open files that are not those of the groups.
const OTHER_FILES: u64 = 64;

/// What locks took of the tasks' CPU time, or why that is not known.
type Locks = Result<LockShares, String>;

/// A run, and what `sampler` saw of it.
pub fn run(
    setup: &Setup,
    clock: Clock,
    sampler: Option<fn() -> LockSampler>,
) -> anyhow::Result<(RunResult, Locks)> {
    allow_files(setup)?;
    let board = Arc::new(Board::new(setup.tasks())?);
    let (ready_reads, ready_writes) = rustix::pipe::pipe().context("cannot make a pipe")?;
    let (signal_reads, signal_writes) = rustix::pipe::pipe().context("cannot make a pipe")?;
    let stage = Stage {
        board: Arc::clone(&board),
        ready: Arc::new(File::from(ready_writes)),
        signal: Arc::new(signal_reads),
        clock,
        loops: setup.loops,
        bytes: setup.bytes,
        stamped: setup.stamped,
        usage: match setup.tasks {
            Tasks::Processes => clock::own_usage,
            Tasks::Threads => clock::thread_usage,
        },
    };
    let nobody = everybody(setup.tasks)?;
    let mut crew = Crew::gather(setup, &stage)?;
    crew.wait_until_ready(&board, File::from(ready_reads))?;
    // After the tasks are made: none inherits the events.
    let mut locks = sampler.map_or_else(LockSampler::none, |open| open());
    let costs = crew.costs(&board);
    let (ready, switches) = (until_ready(setup, &board, nobody)?, counters::machine_switches());

    locks.start();
    let begin = clock.now();
    rustix::io::write(&signal_writes, &[0]).context("cannot give the signal")?;
    crew.wait_for_all(&board)?;
    let all_done = clock.now();
    locks.stop();
    let switches = counters::machine_switches().zip(switches).map(|(now, before)| now - before);
    let after = crew.costs(&board);
    let numbers = board.numbers().into_iter().collect();
    // Reaping processes is part of hackbench's time; the clock was stopped while their figures were
    // read.
    let looked = clock.now();
    crew.let_go(&board)?;
    let reaping = if setup.tasks == Tasks::Processes { clock.now() - looked } else { 0.0 };

    // The sleep until the signal came after each was ready.
    let used = everybody(setup.tasks)?.since(ready);
    let tasks = setup.tasks() as f64;
    let (slept, preempted) = (used.voluntary as f64 - tasks, used.involuntary as f64);
    let cpu_ms = used.cpu_ms.max(0.0);
    let user_ms = used.user_ms.clamp(0.0, cpu_ms);
    // Kept threads have slept once until they were let go, which is nothing of hackbench's.
    let parked = if crew.stays() && setup.tasks == Tasks::Threads { tasks } else { 0.0 };
    let grown = |of: fn(&TaskCost) -> Option<f64>| {
        let each = costs.iter().zip(&after).map(|(before, after)| Some(of(after)? - of(before)?));
        crew.stays().then(|| each.sum::<Option<f64>>())?
    };
    let ran = RunResult {
        wall_ns: all_done - begin + reaping,
        user_ms,
        system_ms: cpu_ms - user_ms,
        voluntary: (grown(|cost| cost.voluntary).unwrap_or(slept) - parked).max(0.0),
        involuntary: grown(|cost| cost.involuntary).unwrap_or(preempted).max(0.0),
        switches,
        migrations: grown(|cost| cost.migrations),
        wait_ns: grown(|cost| cost.wait_ns),
        messages: board.sum(MESSAGES),
        intact: board.sum(SPOILT) == 0,
        latencies: setup.stamped.then(|| board.latencies()),
    };
    Ok((ran, locks.shares(&numbers)))
}

/// What the kernel has counted so far for all tasks that there were: processes once they were
/// waited for, threads whether they have ended or not, without the one that starts them.
fn everybody(tasks: Tasks) -> io::Result<Usage> {
    match tasks {
        Tasks::Processes => clock::children_usage(),
        Tasks::Threads => Ok(clock::own_usage()?.since(clock::thread_usage()?)),
    }
}

/// The same when all were ready. The kernel splits a thread's CPU time into user and kernel by
/// ticks, which is right only for the sum of many. It is read now, right before the signal.
fn until_ready(setup: &Setup, board: &Board, nobody: Usage) -> io::Result<Usage> {
    let ready = |word| board.sum(word);
    let (cpu_ms, user_ms) = match setup.tasks {
        Tasks::Processes => {
            (nobody.cpu_ms + ready(CPU_NS) as f64 / 1e6, nobody.user_ms + ready(USER_NS) as f64 / 1e6)
        }
        Tasks::Threads => {
            let now = everybody(setup.tasks)?;
            (now.cpu_ms, now.user_ms)
        }
    };
    Ok(Usage {
        voluntary: nobody.voluntary + ready(VOLUNTARY) as i64,
        involuntary: nobody.involuntary + ready(INVOLUNTARY) as i64,
        cpu_ms,
        user_ms,
        faults: nobody.faults,
    })
}

/// Threads share one table of files, and each pair has two: the soft limit is often below that.
fn allow_files(setup: &Setup) -> anyhow::Result<()> {
    let needed = match setup.tasks {
        Tasks::Processes => setup.fds * 2,
        Tasks::Threads => setup.groups * setup.fds * 2,
    } as u64
        + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        bail!(
            "needs {needed} open files, this user may have {} (ulimit -Hn): take fewer groups or file descriptors",
            limit.maximum.unwrap_or(0)
        );
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")
}

/// What every task needs to know.
#[derive(Clone)]
struct Stage {
    board: Arc<Board>,
    ready: Arc<File>,
    signal: Arc<OwnedFd>,
    clock: Clock,
    loops: usize,
    bytes: usize,
    stamped: bool,
    /// What a task has used so far.
    usage: fn() -> io::Result<Usage>,
}

enum Crew {
    Processes(Vec<Child>),
    /// Their pipes and sockets stay open, as hackbench's threads leave them open, too.
    Threads {
        threads: Vec<Thread<()>>,
        kept: bool,
        open: Vec<Arc<dyn Send + Sync>>,
    },
}

impl Crew {
    /// Makes all tasks, group by group: first the receivers, each with its pair, then the senders.
    fn gather(setup: &Setup, stage: &Stage) -> anyhow::Result<Crew> {
        let mut crew = match setup.tasks {
            Tasks::Processes => Crew::Processes(Vec::with_capacity(setup.tasks())),
            Tasks::Threads => Crew::Threads {
                threads: Vec::with_capacity(setup.tasks()),
                kept: setup.kept,
                open: Vec::new(),
            },
        };
        let mut index = 0;
        for _ in 0..setup.groups {
            let mut to = Vec::with_capacity(setup.fds);
            for _ in 0..setup.fds {
                let Ends { receives, sends } = ends(setup.transport)?;
                let receives = Arc::new(receives);
                let messages = setup.fds * setup.loops;
                match &mut crew {
                    // A receiving process keeps no end that it could write to.
                    Crew::Processes(children) => {
                        let sends = Cell::new(Some(sends));
                        children.push(forked(|| {
                            drop(sends.take());
                            stage.receive(index, &receives, messages)
                        })?);
                        to.extend(sends.take());
                    }
                    Crew::Threads { threads, kept, open } => {
                        open.push(Arc::clone(&receives) as Arc<dyn Send + Sync>);
                        let own = stage.clone();
                        let receive = move || own.receive(index, &receives, messages);
                        threads.push(started(receive, stage, *kept)?);
                        to.push(sends);
                    }
                }
                index += 1;
            }
            let to = Arc::new(to);
            for _ in 0..setup.fds {
                match &mut crew {
                    Crew::Processes(children) => children.push(forked(|| stage.send(index, &to))?),
                    Crew::Threads { threads, kept, open } => {
                        open.push(Arc::clone(&to) as Arc<dyn Send + Sync>);
                        let (own, to) = (stage.clone(), Arc::clone(&to));
                        threads.push(started(move || own.send(index, &to), stage, *kept)?);
                    }
                }
                index += 1;
            }
        }
        Ok(crew)
    }

    /// Whether the kernel knows each task until it is let go.
    fn stays(&self) -> bool {
        match self {
            Crew::Processes(_) => true,
            Crew::Threads { kept, .. } => *kept,
        }
    }

    /// Waits for a byte of each task. The pipe alone is not enough: if a task has ended, the others
    /// still hold it open.
    fn wait_until_ready(&mut self, board: &Board, mut ready: File) -> anyhow::Result<()> {
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let (mut seen, mut bytes) = (0, vec![0; board.tasks]);
        while seen < board.tasks {
            match poll(&mut [PollFd::new(&ready, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) if self.has_lost_one(board)? => bail!("a task ended before it was ready"),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => seen += ready.read(&mut bytes[seen..]).context("cannot hear the tasks")?,
                Err(error) => return Err(error).context("cannot wait for the tasks"),
            }
        }
        Ok(())
    }

    fn has_lost_one(&mut self, board: &Board) -> io::Result<bool> {
        let mut lost = board.half(FAILED).load(Ordering::Relaxed) > 0;
        if let Crew::Processes(children) = self {
            for child in children {
                lost |= child.ended()?.is_some();
            }
        }
        Ok(lost)
    }

    /// What each task has cost so far, if the kernel reports it; threads that do not stay are left
    /// out.
    fn costs(&self, board: &Board) -> Vec<TaskCost> {
        let process = |task| match self {
            Crew::Processes(_) => task,
            Crew::Threads { .. } => std::process::id(),
        };
        let numbers = if self.stays() { board.numbers() } else { Vec::new() };
        numbers.into_iter().map(|task| counters::task_cost(process(task), task)).collect()
    }

    /// Waits until every task is done: those that stay are not reaped or let go yet, others have
    /// ended.
    fn wait_for_all(&mut self, board: &Board) -> anyhow::Result<()> {
        match self {
            Crew::Processes(children) => {
                for child in children {
                    child.wait_until_ended().context("cannot wait for a task")?;
                }
            }
            Crew::Threads { threads, kept: false, .. } => {
                for thread in threads.drain(..) {
                    thread.join().context("a task")?;
                }
            }
            Crew::Threads { .. } => loop {
                let done = board.half(DONE).load(Ordering::Acquire);
                if done as usize >= board.tasks {
                    break;
                }
                // Woken by the last one, or raced: the loop checks again.
                let _ = futex::wait(board.half(DONE), futex::Flags::PRIVATE, done, None);
            },
        }
        Ok(())
    }

    fn let_go(&mut self, board: &Board) -> anyhow::Result<()> {
        match self {
            Crew::Processes(children) => {
                for child in children {
                    let status = child.reap().context("cannot reap a task")?;
                    if !status.success() {
                        bail!("a task failed ({status})");
                    }
                }
            }
            Crew::Threads { threads, .. } => {
                board.half(GO).store(1, Ordering::Release);
                let _ = futex::wake(board.half(GO), futex::Flags::PRIVATE, i32::MAX as u32);
                for thread in threads.drain(..) {
                    thread.join().context("a task")?;
                }
                if board.half(FAILED).load(Ordering::Relaxed) > 0 {
                    bail!("a thread could not read or write");
                }
            }
        }
        Ok(())
    }
}

fn forked(work: impl FnOnce() -> io::Result<()>) -> anyhow::Result<Child> {
    fork(|| if work().is_ok() { 0 } else { 1 }).context("cannot fork a task (ulimit -u, pids.max?)")
}

fn started(
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
    stage: &Stage,
    kept: bool,
) -> anyhow::Result<Thread<()>> {
    let (board, tasks) = (Arc::clone(&stage.board), stage.board.tasks);
    let body = move || {
        if work().is_err() {
            board.half(FAILED).fetch_add(1, Ordering::Relaxed);
        }
        if !kept {
            return;
        }
        if board.half(DONE).fetch_add(1, Ordering::AcqRel) as usize + 1 == tasks {
            let _ = futex::wake(board.half(DONE), futex::Flags::PRIVATE, 1);
        }
        while board.half(GO).load(Ordering::Acquire) == 0 {
            let _ = futex::wait(board.half(GO), futex::Flags::PRIVATE, 0, None);
        }
    };
    thread::start(STACK, body).context("cannot start a thread (ulimit -u, pids.max?)")
}

impl Stage {
    /// Reports that a task is ready, and sleeps until the signal, which no task consumes.
    fn wait_for_signal(&self, index: usize) -> io::Result<()> {
        self.board.number(index);
        let usage = (self.usage)()?;
        let note = |word, value: f64| self.board.of(index, word).store(value as u64, Ordering::Relaxed);
        note(VOLUNTARY, usage.voluntary as f64);
        note(INVOLUNTARY, usage.involuntary as f64);
        note(CPU_NS, usage.cpu_ms * 1e6);
        note(USER_NS, usage.user_ms * 1e6);
        (&*self.ready).write_all(&[0])?;
        let mut signal = [PollFd::from_borrowed_fd(self.signal.as_fd(), PollFlags::IN)];
        loop {
            match poll(&mut signal, None) {
                Err(Errno::INTR) => {}
                other => return other.map(|_| ()).map_err(Into::into),
            }
        }
    }

    fn receive(&self, index: usize, mut from: &File, messages: usize) -> io::Result<()> {
        let mut room = MessageBuffer::of(self.bytes);
        let data = room.bytes();
        let mut latencies = self.stamped.then(Buckets::new);
        self.wait_for_signal(index)?;
        for _ in 0..messages {
            let mut done = 0;
            while done < self.bytes {
                match from.read(&mut data[done..])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => done += more,
                }
            }
            if let Some(latencies) = &mut latencies {
                let now = self.clock.now() as u64;
                let sent = data.first_chunk::<STAMP>().map_or(now, |stamp| u64::from_ne_bytes(*stamp));
                latencies.record_ns(now.saturating_sub(sent));
            }
        }
        self.board.of(index, MESSAGES).store(messages as u64, Ordering::Relaxed);
        let whole = if self.stamped { &data[STAMP..] } else { &data[..] };
        let spoilt = whole.iter().any(|byte| *byte != FILL);
        self.board.of(index, SPOILT).store(u64::from(spoilt), Ordering::Relaxed);
        latencies.iter().for_each(|own| self.board.add(own));
        Ok(())
    }

    fn send(&self, index: usize, to: &[File]) -> io::Result<()> {
        let mut room = MessageBuffer::of(self.bytes);
        let data = room.bytes();
        data.fill(FILL);
        self.wait_for_signal(index)?;
        for _ in 0..self.loops {
            for mut file in to {
                if self.stamped {
                    let now = self.clock.now() as u64;
                    data[..STAMP].copy_from_slice(&now.to_ne_bytes());
                }
                let mut done = 0;
                while done < self.bytes {
                    done += file.write(&data[done..])?;
                }
            }
        }
        Ok(())
    }
}

/// What messages are full of.
const FILL: u8 = 0xa5;

#[cfg(test)]
mod tests;
