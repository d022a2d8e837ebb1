//! What all tasks of a run share: words in memory of them all.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::buckets::Buckets;
use model::Histogram;
use sys::crew::{Lines, Slots};

/// Three lines of counters, a line for each task, and the latencies of all messages.
pub struct Board {
    lines: Lines,
    pub tasks: usize,
    latencies: Slots<Buckets>,
}

// The first lines: tasks that are done, whether they may go, and those that failed.
pub const DONE: usize = 0;
pub const GO: usize = 1;
pub const FAILED: usize = 2;
const FIRST_TASK: usize = 3;

// Words of a task's line: what it had used when it was ready, what it received, its number.
pub const VOLUNTARY: usize = 0;
pub const INVOLUNTARY: usize = 1;
pub const CPU_NS: usize = 2;
pub const USER_NS: usize = 3;
pub const MESSAGES: usize = 4;
pub const SPOILT: usize = 5;
const NUMBER: usize = 6;

/// Bytes at a message's beginning that hold when it was sent.
pub const STAMP: usize = 8;

impl Board {
    pub fn new(tasks: usize) -> anyhow::Result<Board> {
        Ok(Board { lines: Lines::new(FIRST_TASK + tasks)?, tasks, latencies: Slots::new(1, 1)? })
    }

    pub fn half(&self, line: usize) -> &AtomicU32 {
        self.lines.half(line)
    }

    pub fn of(&self, task: usize, word: usize) -> &AtomicU64 {
        self.lines.word(FIRST_TASK + task, word)
    }

    /// A word of all tasks' lines, summed up.
    pub fn sum(&self, word: usize) -> u64 {
        (0..self.tasks).map(|task| self.of(task, word).load(Ordering::Relaxed)).sum()
    }

    /// Notes the kernel's number of the calling task.
    pub fn number(&self, task: usize) {
        let number = rustix::thread::gettid().as_raw_nonzero().get();
        self.of(task, NUMBER).store(u64::from(number.unsigned_abs()), Ordering::Relaxed);
    }

    /// The kernel's numbers of all tasks, once they are ready.
    pub fn numbers(&self) -> Vec<u32> {
        (0..self.tasks).map(|task| self.of(task, NUMBER).load(Ordering::Relaxed) as u32).collect()
    }

    /// Adds the latencies that a receiver has recorded.
    pub fn add(&self, latencies: &Buckets) {
        latencies.add_to(&self.latencies);
    }

    /// Those of all receivers.
    pub fn latencies(&self) -> Histogram {
        self.latencies.get(0, 0).histogram()
    }
}
