//! A forked process on another CPU that does what it is told, an order at a time, and answers each.
//!
//! For games of two (who wrote the line that I read?), where a [`super::team::Team`] of equals has
//! no place: the caller decides when its partners work and when they are quiet.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::Pid;
use rustix::thread::futex;

use super::affinity;
use super::process::{self, Child};
use super::shared::{SharedWords, WORDS_PER_LINE};
use model::CpuSet;

pub struct Partner {
    child: Child,
    board: Board,
    told: u32,
    cpus: CpuSet,
}

/// How both sides wait for each other before they go to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Looking for some milliseconds: answers within a microsecond, for partners that have a CPU
    /// each.
    Spin,
    /// At once: leaves the CPU to others, answers within some ten microseconds.
    Sleep,
}

/// An order that takes longer is not answered any more: the hypervisor may have stolen a CPU, but
/// hardly for so long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Even a spinning waiter sleeps in the end, after 1 to 20 ms: its partner may need the very CPU
/// that it spins on.
const SPINS: u32 = 1 << 18;
/// A sleeper looks around this often.
const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

const END: u32 = u32::MAX;
const FAILED: i32 = 1;

impl Partner {
    /// Forks a partner, pinned to `cpus` before it builds what it needs for its work: memory that
    /// it touches first lies where it runs. Orders come when it is ready.
    pub fn start<Work: FnMut(u64) -> anyhow::Result<u64>>(
        cpus: &CpuSet,
        wait: Wait,
        build: impl FnOnce() -> anyhow::Result<Work>,
    ) -> anyhow::Result<Partner> {
        let board = Board::new(wait)?;
        let leader = rustix::process::getpid();
        let child = process::fork(|| match serve(cpus, &board, leader, build) {
            Ok(()) => 0,
            Err(_) => FAILED,
        });
        let child = child.with_context(|| format!("cannot fork a partner for CPUs {cpus}"))?;
        Ok(Partner { child, board, told: 0, cpus: cpus.clone() })
    }

    /// Gives an order; [`Partner::answer`] must follow before the next one.
    pub fn tell(&mut self, order: u64) {
        self.told += 1;
        self.board.words.word(ORDER).store(order, Ordering::Relaxed);
        self.board.pass(TOLD, self.told);
    }

    /// Waits for the answer; fails when the partner has died or [`PATIENCE`] ends.
    pub fn answer(&mut self) -> anyhow::Result<u64> {
        let end = Instant::now() + PATIENCE;
        while !self.board.await_change(DONE, self.told.wrapping_sub(1)) {
            if let Some(status) = self.child.ended()? {
                bail!("the partner on CPUs {} ended ({status})", self.cpus);
            }
            if Instant::now() > end {
                bail!("the partner on CPUs {} did not answer within {PATIENCE:?}", self.cpus);
            }
        }
        Ok(self.board.words.word(ANSWER).load(Ordering::Acquire))
    }

    pub fn ask(&mut self, order: u64) -> anyhow::Result<u64> {
        self.tell(order);
        self.answer()
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // It leaves by itself; if it is busy, its `Child` kills it.
        self.board.pass(TOLD, END);
    }
}

fn serve<Work: FnMut(u64) -> anyhow::Result<u64>>(
    cpus: &CpuSet,
    board: &Board,
    leader: Pid,
    build: impl FnOnce() -> anyhow::Result<Work>,
) -> anyhow::Result<()> {
    affinity::pin(cpus)?;
    let mut work = build()?;
    let mut done = 0;
    loop {
        while !board.await_change(TOLD, done) {
            if rustix::process::getppid() != Some(leader) {
                return Ok(());
            }
        }
        done = board.words.half_word(TOLD).load(Ordering::Acquire);
        if done == END {
            return Ok(());
        }
        let answer = work(board.words.word(ORDER).load(Ordering::Relaxed))?;
        board.words.word(ANSWER).store(answer, Ordering::Release);
        board.pass(DONE, done);
    }
}

/// What the two share, a line each.
struct Board {
    words: SharedWords,
    spins: u32,
}

/// The number of the last order, its content, the number of the last answer, its content.
const TOLD: usize = 0;
const ORDER: usize = WORDS_PER_LINE;
const DONE: usize = 2 * WORDS_PER_LINE;
const ANSWER: usize = 3 * WORDS_PER_LINE;
/// Beside a number: whether somebody sleeps until it changes.
const ASLEEP: usize = 1;

impl Board {
    fn new(wait: Wait) -> io::Result<Board> {
        let spins = if wait == Wait::Spin { SPINS } else { 0 };
        Ok(Board { words: SharedWords::new(4 * WORDS_PER_LINE)?, spins })
    }

    fn asleep(&self, number: usize) -> &AtomicU64 {
        self.words.word(number + ASLEEP)
    }

    /// Passes the turn: changes a number and wakes who sleeps on it.
    fn pass(&self, number: usize, value: u32) {
        self.words.half_word(number).store(value, Ordering::Release);
        // Either the sleeper is seen here, or it sees the new number before it sleeps.
        fence(Ordering::SeqCst);
        if self.asleep(number).load(Ordering::Relaxed) != 0 {
            // Nobody waiting any more is fine.
            let _ = futex::wake(self.words.half_word(number), futex::Flags::empty(), 1);
        }
    }

    /// Waits for a number to differ from `last`; false when it did not for a while.
    fn await_change(&self, number: usize, last: u32) -> bool {
        let word: &AtomicU32 = self.words.half_word(number);
        for _ in 0..self.spins {
            if word.load(Ordering::Acquire) != last {
                return true;
            }
            std::hint::spin_loop();
        }
        self.asleep(number).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Woken, timed out or raced: the look afterwards decides.
        let _ = futex::wait(word, futex::Flags::empty(), last, Some(&NAP));
        self.asleep(number).store(0, Ordering::Relaxed);
        word.load(Ordering::Acquire) != last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_answers_every_order_in_turn() {
        let cpus = affinity::allowed().expect("affinity");
        for wait in [Wait::Spin, Wait::Sleep] {
            let mut sum = 0;
            let build = || {
                Ok(move |order| {
                    sum += order;
                    Ok(sum)
                })
            };
            let mut partner = Partner::start(&cpus, wait, build).expect("a partner");
            let answers: Vec<u64> = (1..=100).map(|order| partner.ask(order).expect("an answer")).collect();
            let expected: Vec<u64> = (1..=100).map(|n| n * (n + 1) / 2).collect();
            assert_eq!(answers, expected);
        }
    }

    #[test]
    fn a_partner_that_dies_is_an_error_not_a_hang() {
        let cpus = affinity::allowed().expect("affinity");
        let build = || Ok(|order| if order == 2 { std::process::abort() } else { Ok(order) });
        let mut partner = Partner::start(&cpus, Wait::Sleep, build).expect("a partner");
        assert_eq!(partner.ask(1).expect("an answer"), 1);
        let error = partner.ask(2).expect_err("it died").to_string();
        assert!(error.contains("ended (signal: 6"), "{error}");
    }
}
