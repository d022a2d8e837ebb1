//! A group of processes that work in rounds: forked, pinned, started together, each round timed by
//! each member.
//!
//! Copies on many CPUs (bandwidth on all threads, a rate suite) are a team of equals; the leader is
//! member 0 and works too. Members that die or hang end the round with an error, never with a hang.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::Pid;
use rustix::thread::futex;

use super::affinity;
use super::clock::Clock;
use super::process::{self, Child};
use super::shared::{SharedWords, WORDS_PER_LINE};
use model::CpuSet;

/// Work of one member: gets the round's argument (iterations), returns its answer for checking.
pub type Body = Box<dyn FnMut(u64) -> u64>;

/// What one member did in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lap {
    /// Clock readings of the member itself, ns.
    pub start_ns: f64,
    pub end_ns: f64,
    pub answer: u64,
}

/// Makes the body of a member, in the member.
type Build<'a> = &'a dyn Fn(usize) -> anyhow::Result<Body>;

pub struct Team {
    board: Board,
    members: Vec<Child>,
    body: Body,
    clock: Clock,
    round: u32,
    patience: Duration,
}

/// How long members may take to build their memory, and to finish a round, unless the caller knows
/// better.
const PATIENCE: Duration = Duration::from_secs(60);

/// Spins this often before it yields the CPU: on machines with a CPU for each member the barrier
/// never yields.
const SPINS: u32 = 20_000;

impl Team {
    /// Forks a member for each seat but the first, pins everyone (the caller to the first seat) and
    /// lets each build its own body after it is pinned, so that its memory lies where it runs.
    pub fn start(
        seats: &[CpuSet],
        clock: Clock,
        build: impl Fn(usize) -> anyhow::Result<Body>,
    ) -> anyhow::Result<Team> {
        Team::start_patient(seats, clock, PATIENCE, build)
    }

    /// The same where rounds may take so long.
    pub fn start_patient(
        seats: &[CpuSet],
        clock: Clock,
        patience: Duration,
        build: impl Fn(usize) -> anyhow::Result<Body>,
    ) -> anyhow::Result<Team> {
        Team::gather(seats, clock, patience, &build)
    }

    fn gather(seats: &[CpuSet], clock: Clock, patience: Duration, build: Build) -> anyhow::Result<Team> {
        let board = Board::new(seats.len())?;
        let leader = rustix::process::getpid();
        let mut members = Vec::new();
        for (index, cpus) in seats.iter().enumerate().skip(1) {
            let member = process::fork(|| match be_member(index, cpus, &board, clock, leader, build) {
                Ok(()) => 0,
                Err(_) => FAILED,
            });
            members.push(member.with_context(|| format!("cannot fork member {index} of {}", seats.len()))?);
        }
        if let Some(first) = seats.first() {
            affinity::pin(first).with_context(|| format!("cannot pin to CPUs {first}"))?;
        }
        let body = build(0)?;
        let mut team = Team { board, members, body, clock, round: 0, patience };
        team.wait_for(|board| board.ready(), "get ready")?;
        Ok(team)
    }

    /// Runs one round on all members at once; the laps stand in seat order.
    pub fn round(&mut self, argument: u64) -> anyhow::Result<Vec<Lap>> {
        self.round += 1;
        self.board.argument().store(argument, Ordering::Relaxed);
        self.board.call(self.round);
        self.wait_for(|board| board.arrived(), "reach the start")?;
        self.board.go(self.round);
        let lap = run_lap(&mut self.body, argument, self.clock);
        self.wait_for(|board| board.finished(), "finish a round")?;
        let mut laps = vec![lap];
        laps.extend((1..self.members.len() + 1).map(|index| self.board.lap(index)));
        Ok(laps)
    }

    /// Waits until all members have passed a stage; fails when one has died or the patience ends.
    fn wait_for(&mut self, count: fn(&Board) -> &AtomicU32, stage: &str) -> anyhow::Result<()> {
        let all = self.members.len() as u32;
        let begin = Instant::now();
        let mut spins = 0u32;
        while count(&self.board).load(Ordering::Acquire) < all {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
                continue;
            }
            std::thread::yield_now();
            if spins.is_multiple_of(256) {
                for (index, member) in self.members.iter_mut().enumerate() {
                    if let Some(status) = member.ended()? {
                        bail!("member {} ended ({status}) before it could {stage}", index + 1);
                    }
                }
                if begin.elapsed() > self.patience {
                    bail!("the members did not all {stage} within {:?}", self.patience);
                }
            }
        }
        count(&self.board).store(0, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.call(END);
    }
}

/// Round number that tells members to leave.
const END: u32 = u32::MAX;
const FAILED: i32 = 1;

fn be_member(
    index: usize,
    cpus: &CpuSet,
    board: &Board,
    clock: Clock,
    leader: Pid,
    build: Build,
) -> anyhow::Result<()> {
    affinity::pin(cpus)?;
    let mut body = build(index)?;
    board.ready().fetch_add(1, Ordering::AcqRel);
    let mut round = 0;
    loop {
        round = match board.next_call(round, leader) {
            Some(END) | None => return Ok(()),
            Some(round) => round,
        };
        let argument = board.argument().load(Ordering::Relaxed);
        board.arrived().fetch_add(1, Ordering::AcqRel);
        board.await_go(round, leader);
        let lap = run_lap(&mut body, argument, clock);
        board.record(index, lap);
        board.finished().fetch_add(1, Ordering::AcqRel);
    }
}

fn run_lap(body: &mut Body, argument: u64, clock: Clock) -> Lap {
    let start_ns = clock.now();
    let answer = body(argument);
    Lap { start_ns, end_ns: clock.now(), answer }
}

/// What the members share: a few counters a cache line apart, then a line for each member's lap.
struct Board {
    words: SharedWords,
}

// Lines of the board.
const CALLED: usize = 0;
const GO: usize = 1;
const READY: usize = 2;
const ARRIVED: usize = 3;
const FINISHED: usize = 4;
const ARGUMENT: usize = 5;
const FIRST_LAP: usize = 6;

impl Board {
    fn new(members: usize) -> io::Result<Board> {
        Ok(Board { words: SharedWords::new((FIRST_LAP + members) * WORDS_PER_LINE)? })
    }

    fn counter(&self, line: usize) -> &AtomicU32 {
        self.words.half_word(line * WORDS_PER_LINE)
    }

    fn ready(&self) -> &AtomicU32 {
        self.counter(READY)
    }

    fn arrived(&self) -> &AtomicU32 {
        self.counter(ARRIVED)
    }

    fn finished(&self) -> &AtomicU32 {
        self.counter(FINISHED)
    }

    fn argument(&self) -> &AtomicU64 {
        self.words.word(ARGUMENT * WORDS_PER_LINE)
    }

    /// Calls members that sleep between rounds to the start.
    fn call(&self, round: u32) {
        self.counter(CALLED).store(round, Ordering::Release);
        // Nobody waiting is fine. The kernel takes the number as a signed one.
        let _ = futex::wake(self.counter(CALLED), futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps until a round other than `last` is called; `None` when the leader is gone.
    fn next_call(&self, last: u32, leader: Pid) -> Option<u32> {
        let called = self.counter(CALLED);
        let pause = futex::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            let round = called.load(Ordering::Acquire);
            if round != last {
                return Some(round);
            }
            if rustix::process::getppid() != Some(leader) {
                return None;
            }
            // Woken, timed out or raced: the loop looks again.
            let _ = futex::wait(called, futex::Flags::empty(), last, Some(&pause));
        }
    }

    fn go(&self, round: u32) {
        self.counter(GO).store(round, Ordering::Release);
    }

    /// Spins for the start signal: all members leave it within tens of nanoseconds of each other.
    fn await_go(&self, round: u32, leader: Pid) {
        let mut spins = 0u32;
        while self.counter(GO).load(Ordering::Acquire) != round {
            spins += 1;
            match spins < SPINS {
                true => std::hint::spin_loop(),
                false => std::thread::yield_now(),
            }
            if spins.is_multiple_of(65_536) && rustix::process::getppid() != Some(leader) {
                return;
            }
        }
    }

    fn record(&self, index: usize, lap: Lap) {
        let first = (FIRST_LAP + index) * WORDS_PER_LINE;
        self.words.word(first).store(lap.start_ns.to_bits(), Ordering::Relaxed);
        self.words.word(first + 1).store(lap.end_ns.to_bits(), Ordering::Relaxed);
        self.words.word(first + 2).store(lap.answer, Ordering::Release);
    }

    fn lap(&self, index: usize) -> Lap {
        let first = (FIRST_LAP + index) * WORDS_PER_LINE;
        let answer = self.words.word(first + 2).load(Ordering::Acquire);
        let ns = |word: usize| f64::from_bits(self.words.word(word).load(Ordering::Relaxed));
        Lap { start_ns: ns(first), end_ns: ns(first + 1), answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_work_in_rounds_and_answer() {
        let cpus = affinity::allowed().expect("affinity");
        let seats = vec![cpus.clone(), cpus.clone(), cpus];
        let build = |index: usize| -> anyhow::Result<Body> {
            Ok(Box::new(move |argument| argument * 10 + index as u64))
        };
        let mut team = Team::start(&seats, Clock::Raw, build).expect("team");
        for argument in 1..20 {
            let laps = team.round(argument).expect("round");
            let answers: Vec<u64> = laps.iter().map(|lap| lap.answer).collect();
            assert_eq!(answers, [argument * 10, argument * 10 + 1, argument * 10 + 2]);
            assert!(laps.iter().all(|lap| lap.end_ns >= lap.start_ns && lap.start_ns > 0.0));
        }
    }

    #[test]
    fn a_member_that_dies_ends_the_round() {
        let cpus = affinity::allowed().expect("affinity");
        let build = |index: usize| -> anyhow::Result<Body> {
            Ok(Box::new(move |argument| {
                if index == 1 && argument == 2 {
                    std::process::abort();
                }
                0
            }))
        };
        let mut team = Team::start(&[cpus.clone(), cpus], Clock::Raw, build).expect("team");
        team.round(1).expect("the first round is fine");
        let error = team.round(2).expect_err("the member died");
        assert!(error.to_string().contains("member 1 ended"), "{error}");
    }
}
