//! A group of processes that work in rounds: forked, pinned, started together, each round timed by
//! each member.
//!
//! Copies on many CPUs (bandwidth on all threads, a rate suite) are a team of equals; the leader is
//! member 0 and works too. Members that die or hang end the round with an error, never with a hang.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::Pid;

use super::{END, Lines, Slots, fork_on};
use crate::affinity;
use crate::clock::Clock;
use crate::process::Child;
use model::CpuSet;

/// Work of one member: gets the round's argument (iterations), returns its answer for checking.
pub type Body = Box<dyn FnMut(u64) -> u64>;

crate::record! {
    /// What one member did in one round.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Lap {
        /// Clock readings of the member itself, ns.
        pub start_ns: f64,
        pub end_ns: f64,
        pub answer: u64,
    }
}

/// From the first start to the last end of a round, ns.
pub fn wall_ns(laps: &[Lap]) -> f64 {
    let start = laps.iter().map(|lap| lap.start_ns).fold(f64::INFINITY, f64::min);
    laps.iter().map(|lap| lap.end_ns).fold(f64::NEG_INFINITY, f64::max) - start
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
            let member = fork_on(cpus, || be_member(index, &board, clock, leader, build));
            members.push(member.with_context(|| format!("cannot fork member {index} of {}", seats.len()))?);
        }
        if let Some(first) = seats.first() {
            affinity::pin(first).with_context(|| format!("cannot pin to CPUs {first}"))?;
        }
        let body = build(0)?;
        let mut team = Team { board, members, body, clock, round: 0, patience };
        team.wait_for(READY, "get ready")?;
        Ok(team)
    }

    /// Runs one round on all members at once; the laps stand in seat order.
    pub fn round(&mut self, argument: u64) -> anyhow::Result<Vec<Lap>> {
        self.round += 1;
        self.board.lines[ARGUMENT].store(argument, Ordering::Relaxed);
        self.board.lines.pass(CALLED, self.round);
        self.wait_for(ARRIVED, "reach the start")?;
        self.board.lines.half(GO).store(self.round, Ordering::Release);
        let lap = run_lap(&mut self.body, argument, self.clock);
        self.wait_for(FINISHED, "finish a round")?;
        let others = (1..=self.members.len()).map(|index| self.board.laps.get(index, 0));
        Ok([lap].into_iter().chain(others).collect())
    }

    /// Waits until all members have passed a stage; fails when one has died or the patience ends.
    fn wait_for(&mut self, count: usize, stage: &str) -> anyhow::Result<()> {
        let all = self.members.len() as u32;
        let begin = Instant::now();
        let mut spins = 0u32;
        while self.board.lines.half(count).load(Ordering::Acquire) < all {
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
        self.board.lines.half(count).store(0, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.lines.pass(CALLED, END);
    }
}

fn be_member(index: usize, board: &Board, clock: Clock, leader: Pid, build: Build) -> anyhow::Result<()> {
    let lines = &board.lines;
    let mut body = build(index)?;
    lines.half(READY).fetch_add(1, Ordering::AcqRel);
    let mut round = 0;
    loop {
        while !lines.await_change(CALLED, round, 0) {
            if rustix::process::getppid() != Some(leader) {
                return Ok(());
            }
        }
        round = lines.half(CALLED).load(Ordering::Acquire);
        if round == END {
            return Ok(());
        }
        let argument = lines[ARGUMENT].load(Ordering::Relaxed);
        lines.half(ARRIVED).fetch_add(1, Ordering::AcqRel);
        board.await_go(round, leader);
        let lap = run_lap(&mut body, argument, clock);
        board.laps.put(index, 0, &lap);
        lines.half(FINISHED).fetch_add(1, Ordering::AcqRel);
    }
}

fn run_lap(body: &mut Body, argument: u64, clock: Clock) -> Lap {
    let start_ns = clock.now();
    let answer = body(argument);
    Lap { start_ns, end_ns: clock.now(), answer }
}

/// What the members share.
struct Board {
    lines: Lines,
    laps: Slots<Lap>,
}

// Lines of the board: numbers of rounds, how many members have passed a stage, what a round is
// about.
const CALLED: usize = 0;
const GO: usize = 1;
const READY: usize = 2;
const ARRIVED: usize = 3;
const FINISHED: usize = 4;
const ARGUMENT: usize = 5;

impl Board {
    fn new(members: usize) -> anyhow::Result<Board> {
        Ok(Board { lines: Lines::new(ARGUMENT + 1)?, laps: Slots::new(members, 1)? })
    }

    /// Spins for the start signal: all members leave it within tens of nanoseconds of each other.
    fn await_go(&self, round: u32, leader: Pid) {
        let mut spins = 0u32;
        while self.lines.half(GO).load(Ordering::Acquire) != round {
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
