//! What all tasks of a run share: words in memory of them all.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anyhow::Context;

use super::latencies::{self, BUCKETS, Counts};
use model::Histogram;
use sys::shared::{SharedWords, WORDS_PER_LINE};

/// Three lines of counters, a line for each task, then buckets of latencies.
pub struct Board {
    words: SharedWords,
    pub tasks: usize,
    /// The first word of the buckets.
    buckets: usize,
}

// Words of the first lines: tasks that are done, whether they may go, and those that failed.
pub const DONE: usize = 0;
pub const GO: usize = WORDS_PER_LINE;
pub const FAILED: usize = 2 * WORDS_PER_LINE;
const FIRST_TASK: usize = 3 * WORDS_PER_LINE;

// Words of a task's line: what it had used when it was ready, what it received, its number.
pub const VOLUNTARY: usize = 0;
pub const INVOLUNTARY: usize = 1;
pub const CPU_NS: usize = 2;
pub const USER_NS: usize = 3;
pub const MESSAGES: usize = 4;
pub const SPOILT: usize = 5;
const NUMBER: usize = 6;

impl Board {
    pub fn new(tasks: usize) -> anyhow::Result<Board> {
        let buckets = FIRST_TASK + tasks * WORDS_PER_LINE;
        let words = SharedWords::new(buckets + BUCKETS).context("cannot share memory")?;
        Ok(Board { words, tasks, buckets })
    }

    pub fn half(&self, word: usize) -> &AtomicU32 {
        self.words.half_word(word)
    }

    pub fn of(&self, task: usize, word: usize) -> &AtomicU64 {
        self.words.word(FIRST_TASK + task * WORDS_PER_LINE + word)
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

    /// What a receiver has counted.
    pub fn add(&self, counts: Counts) {
        counts.add_to(&self.words, self.buckets);
    }

    /// What all receivers have.
    pub fn latencies(&self) -> Histogram {
        latencies::histogram(&self.words, self.buckets)
    }
}
