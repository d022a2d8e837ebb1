//! A forked process on another CPU that does what it is told, an order at a time, and answers each.
//!
//! For games of two (who wrote the line that I read?), where a [`super::Team`] of equals has
//! no place: the caller decides when its partners work and when they are quiet.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::Pid;

use super::{END, Lines, fork_on};
use crate::process::Child;
use model::CpuSet;

pub struct Partner {
    child: Child,
    board: Lines,
    wait: Wait,
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

// Lines that both share: the number of the last order, its content, the number of the last answer,
// its content.
const TOLD: usize = 0;
const ORDER: usize = 1;
const DONE: usize = 2;
const ANSWER: usize = 3;

impl Wait {
    fn spins(self) -> u32 {
        if self == Wait::Spin { SPINS } else { 0 }
    }
}

impl Partner {
    /// Forks a partner, pinned to `cpus` before it builds what it needs for its work: memory that
    /// it touches first lies where it runs. Orders come when it is ready.
    pub fn start<Work: FnMut(u64) -> anyhow::Result<u64>>(
        cpus: &CpuSet,
        wait: Wait,
        build: impl FnOnce() -> anyhow::Result<Work>,
    ) -> anyhow::Result<Partner> {
        let board = Lines::new(ANSWER + 1)?;
        let leader = rustix::process::getpid();
        let child = fork_on(cpus, || serve(&board, wait, leader, build));
        let child = child.with_context(|| format!("cannot fork a partner for CPUs {cpus}"))?;
        Ok(Partner { child, board, wait, told: 0, cpus: cpus.clone() })
    }

    /// Gives an order; [`Partner::answer`] must follow before the next one.
    pub fn tell(&mut self, order: u64) {
        self.told += 1;
        self.board[ORDER].store(order, Ordering::Relaxed);
        self.board.pass(TOLD, self.told);
    }

    /// Waits for the answer; fails when the partner has died or [`PATIENCE`] ends.
    pub fn answer(&mut self) -> anyhow::Result<u64> {
        let end = Instant::now() + PATIENCE;
        while !self.board.await_change(DONE, self.told.wrapping_sub(1), self.wait.spins()) {
            if let Some(status) = self.child.ended()? {
                bail!("the partner on CPUs {} ended ({status})", self.cpus);
            }
            if Instant::now() > end {
                bail!("the partner on CPUs {} did not answer within {PATIENCE:?}", self.cpus);
            }
        }
        Ok(self.board[ANSWER].load(Ordering::Acquire))
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
    board: &Lines,
    wait: Wait,
    leader: Pid,
    build: impl FnOnce() -> anyhow::Result<Work>,
) -> anyhow::Result<()> {
    let mut work = build()?;
    let mut done = 0;
    loop {
        while !board.await_change(TOLD, done, wait.spins()) {
            if rustix::process::getppid() != Some(leader) {
                return Ok(());
            }
        }
        done = board.half(TOLD).load(Ordering::Acquire);
        if done == END {
            return Ok(());
        }
        let answer = work(board[ORDER].load(Ordering::Relaxed))?;
        board[ANSWER].store(answer, Ordering::Release);
        board.pass(DONE, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;

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
