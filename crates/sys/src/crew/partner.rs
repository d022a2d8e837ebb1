//! A forked process on another CPU that executes one order at a time and answers it.
//!
//! For measurements of two unequal tasks (one writes a cache line, the other reads it): unlike with
//! a [`super::Team`], the caller decides when its partners work and when they are idle.

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
    /// Number of the last order.
    last_order: u32,
    cpus: CpuSet,
}

/// How both sides wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Polls for some milliseconds before it sleeps: reacts within 1 µs; for partners with a CPU
    /// each.
    Spin,
    /// Sleeps at once and leaves the CPU to others: reacts within some 10 µs.
    Sleep,
}

/// [`Partner::answer`] fails after this time; even steal by the hypervisor hardly lasts as long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A spinning waiter sleeps after this many polls (1 to 20 ms): the partner may need the same CPU.
const SPINS: u32 = 1 << 18;

// Shared lines: number and content of the last order, number and content of the last answer.
const ORDER_NUMBER: usize = 0;
const ORDER: usize = 1;
const ANSWER_NUMBER: usize = 2;
const ANSWER: usize = 3;

impl Wait {
    fn spins(self) -> u32 {
        if self == Wait::Spin { SPINS } else { 0 }
    }
}

impl Partner {
    /// Forks a partner that pins itself to `cpus` and then calls `build`, so that memory which it
    /// touches first lies on its node. The result executes the orders.
    pub fn start<Work: FnMut(u64) -> anyhow::Result<u64>>(
        cpus: &CpuSet,
        wait: Wait,
        build: impl FnOnce() -> anyhow::Result<Work>,
    ) -> anyhow::Result<Partner> {
        let board = Lines::new(ANSWER + 1)?;
        let leader = rustix::process::getpid();
        let child = fork_on(cpus, || serve(&board, wait, leader, build));
        let child = child.with_context(|| format!("cannot fork a partner for CPUs {cpus}"))?;
        Ok(Partner { child, board, wait, last_order: 0, cpus: cpus.clone() })
    }

    /// Gives an order; the caller must wait for its [`Partner::answer`] before the next one.
    pub fn give_order(&mut self, order: u64) {
        self.last_order += 1;
        self.board[ORDER].store(order, Ordering::Relaxed);
        self.board.store_and_wake(ORDER_NUMBER, self.last_order);
    }

    /// Waits for the answer; fails if the partner has died or after [`PATIENCE`].
    pub fn answer(&mut self) -> anyhow::Result<u64> {
        let end = Instant::now() + PATIENCE;
        let previous = self.last_order.wrapping_sub(1);
        while !self.board.await_change(ANSWER_NUMBER, previous, self.wait.spins()) {
            if let Some(status) = self.child.ended()? {
                bail!("the partner process on CPUs {} ended ({status})", self.cpus);
            }
            if Instant::now() > end {
                bail!("the partner process on CPUs {} did not answer within {PATIENCE:?}", self.cpus);
            }
        }
        Ok(self.board[ANSWER].load(Ordering::Acquire))
    }

    /// Gives an order and waits for its answer.
    pub fn ask(&mut self, order: u64) -> anyhow::Result<u64> {
        self.give_order(order);
        self.answer()
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // An idle partner exits by itself; dropping `child` kills a busy one.
        self.board.store_and_wake(ORDER_NUMBER, END);
    }
}

fn serve<Work: FnMut(u64) -> anyhow::Result<u64>>(
    board: &Lines,
    wait: Wait,
    leader: Pid,
    build: impl FnOnce() -> anyhow::Result<Work>,
) -> anyhow::Result<()> {
    let mut work = build()?;
    let mut last_order = 0;
    loop {
        while !board.await_change(ORDER_NUMBER, last_order, wait.spins()) {
            if rustix::process::getppid() != Some(leader) {
                return Ok(());
            }
        }
        last_order = board.half(ORDER_NUMBER).load(Ordering::Acquire);
        if last_order == END {
            return Ok(());
        }
        let answer = work(board[ORDER].load(Ordering::Relaxed))?;
        board[ANSWER].store(answer, Ordering::Release);
        board.store_and_wake(ANSWER_NUMBER, last_order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;

    #[test]
    fn a_partner_answers_every_order() {
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
    fn a_dead_partner_is_an_error_not_a_hang() {
        let cpus = affinity::allowed().expect("affinity");
        let build = || Ok(|order| if order == 2 { std::process::abort() } else { Ok(order) });
        let mut partner = Partner::start(&cpus, Wait::Sleep, build).expect("a partner");
        assert_eq!(partner.ask(1).expect("an answer"), 1);
        let error = partner.ask(2).expect_err("it died").to_string();
        assert!(error.contains("ended (signal: 6"), "{error}");
    }
}
