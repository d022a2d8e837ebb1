//! Processes that work in rounds: forked, pinned, started at the same time; each member times
//! itself.
//!
//! For copies on many CPUs (bandwidth on all threads, a rate suite). The caller is the leader and
//! works as member 0. If a member dies or hangs, the round fails with an error.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::Pid;

use super::{END, Lines, Slots, fork_on};
use crate::affinity;
use crate::clock::Clock;
use crate::process::Child;
use model::CpuSet;

/// The work of one member: gets the round's argument (such as iterations) and returns its answer.
pub type Body = Box<dyn FnMut(u64) -> u64>;

crate::record! {
    /// The round of one member.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Lap {
        /// Clock readings of the member, ns.
        pub start_ns: f64,
        pub end_ns: f64,
        /// What its [`Body`] returned.
        pub answer: u64,
    }
}

/// Time from the first start to the last end of a round, ns.
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

/// Default limit for building the members' memory and for one round.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polls before a waiter yields the CPU: with a CPU for each member the barrier never yields.
const SPINS: u32 = 20_000;

impl Team {
    /// Forks a member for each seat but the first and pins all (the caller to the first seat). Each
    /// then builds its own body, so that its memory lies on its node.
    pub fn start(
        seats: &[CpuSet],
        clock: Clock,
        build: impl Fn(usize) -> anyhow::Result<Body>,
    ) -> anyhow::Result<Team> {
        Team::start_patient(seats, clock, PATIENCE, build)
    }

    /// The same with another limit for the time of a round.
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
            affinity::pin(first).with_context(|| format!("cannot pin member 0 to CPUs {first}"))?;
        }
        let body = build(0)?;
        let mut team = Team { board, members, body, clock, round: 0, patience };
        team.wait_for(READY, "building its data")?;
        Ok(team)
    }

    /// Runs one round on all members at the same time; returns the laps in the order of the seats.
    pub fn round(&mut self, argument: u64) -> anyhow::Result<Vec<Lap>> {
        self.round += 1;
        self.board.lines[ARGUMENT].store(argument, Ordering::Relaxed);
        self.board.lines.store_and_wake(CALLED, self.round);
        self.wait_for(ARRIVED, "reaching the start")?;
        self.board.lines.half(GO).store(self.round, Ordering::Release);
        let lap = run_lap(&mut self.body, argument, self.clock);
        self.wait_for(FINISHED, "finishing a round")?;
        let others = (1..=self.members.len()).map(|index| self.board.laps.get(index, 0));
        Ok([lap].into_iter().chain(others).collect())
    }

    /// Waits until all members have passed a stage, counted in line `stage_line`; fails if one has
    /// died or after `patience`.
    fn wait_for(&mut self, stage_line: usize, stage: &str) -> anyhow::Result<()> {
        let members = self.members.len() as u32;
        let start = Instant::now();
        let mut spins = 0u32;
        while self.board.lines.half(stage_line).load(Ordering::Acquire) < members {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
                continue;
            }
            std::thread::yield_now();
            if spins.is_multiple_of(256) {
                for (index, member) in self.members.iter_mut().enumerate() {
                    if let Some(status) = member.ended()? {
                        bail!("member {} ended ({status}) before {stage}", index + 1);
                    }
                }
                if start.elapsed() > self.patience {
                    bail!("not all {members} members were done with {stage} after {:?}", self.patience);
                }
            }
        }
        self.board.lines.half(stage_line).store(0, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.lines.store_and_wake(CALLED, END);
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

/// The shared memory of the members.
struct Board {
    lines: Lines,
    laps: Slots<Lap>,
}

// Lines: the round that was called, the round that has started; members that have passed each of
// three stages; the round's argument.
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

    /// Polls for the start signal: all members see it within tens of nanoseconds.
    fn await_go(&self, round: u32, leader: Pid) {
        let mut spins = 0u32;
        while self.lines.half(GO).load(Ordering::Acquire) != round {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
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
    fn a_dead_member_ends_the_round() {
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
