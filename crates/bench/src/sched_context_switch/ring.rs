//! Processes in a ring of pipes that pass one token on, each after it has gone through a block of
//! its own.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::check_answer;
use crate::memory::resident;
use crate::occupancy::Occupancy;
use kernels::{Op, Stream, streams};
use model::{Pages, Seat};
use sys::crew::{Lines, Notice, fork_on};
use sys::mapping::Mapping;
use sys::process::Child;
use sys::token::{receive, send};
use sys::{affinity, clock};

/// The token that ends the game. Counting hops from 0 never comes near it.
const STOP: u64 = u64::MAX;

/// Each process notes its CPU once in this many hops of the ring: 40 ns in 16 × 1 µs.
const LOOK_EVERY_HOPS: u64 = 16;

/// The leader's side of the ring; all other members are forked children.
pub struct Ring {
    leader: RingProcess,
    to_first: OwnedFd,
    from_last: OwnedFd,
    board: Board,
    members: Vec<Child>,
    laps: u64,
    children_before: i64,
    /// How often two that follow each other were seen on these CPUs.
    looks: BTreeMap<(u32, u32), u64>,
}

impl Ring {
    /// Forks a member for each seat but the first, pins everyone (the caller to the first seat) and
    /// lets each write its own block of `most_bytes` where it runs. A first lap shows that all are
    /// there.
    pub fn start(seats: &[Seat], most_bytes: u64) -> anyhow::Result<Ring> {
        let [first, others @ ..] = seats else { bail!("a ring needs CPUs") };
        let board = Board { lines: Lines::new(FIRST_CPU + seats.len())?, notice: Notice::new()? };
        let children_before = clock::children_usage()?.switches();
        let (mut from_before, to_first) = rustix::pipe::pipe().context("cannot make a pipe")?;
        let mut to_first = Some(to_first);
        let mut members = Vec::new();
        for (index, seat) in (1..).zip(others) {
            let (from_this, to_next) = rustix::pipe::pipe().context("cannot make a pipe")?;
            let mut from_this = Some(from_this);
            // Only neighbours hold the ends of a pipe, so that the death of any member ends the
            // reading of all: its own ends leave the parent with the closure, foreign ones are
            // closed in the child.
            let (own, foreign) = ((from_before, to_next), [&mut to_first, &mut from_this]);
            let board = &board;
            let member = fork_on(&seat.cpus, move || {
                foreign.into_iter().for_each(|end| *end = None);
                serve(RingProcess::new(index, seats.len(), seat, most_bytes)?, own, board)
            });
            members.push(
                member.with_context(|| format!("cannot fork process {} of {}", index + 1, seats.len()))?,
            );
            from_before = from_this.context("a pipe's end was already used")?;
        }
        affinity::pin(&first.cpus).with_context(|| format!("cannot pin to CPUs {}", first.cpus))?;
        let leader = RingProcess::new(0, seats.len(), first, most_bytes)?;
        let to_first = to_first.context("a pipe's end was already used")?;
        let mut ring = Ring {
            leader,
            to_first,
            from_last: from_before,
            board,
            members,
            laps: 0,
            children_before,
            looks: BTreeMap::new(),
        };
        ring.play(1, 0)?;
        Ok(ring)
    }

    /// Passes the token round `laps` times; everybody goes through `bytes` of its block before it
    /// passes it on.
    pub fn play(&mut self, laps: u64, bytes: u64) -> anyhow::Result<()> {
        self.board.lines[BYTES].store(bytes, Ordering::Release);
        for _ in 0..laps {
            self.lap(self.laps * self.size(), bytes)?;
            self.laps += 1;
        }
        Ok(())
    }

    fn lap(&mut self, token: u64, bytes: u64) -> anyhow::Result<()> {
        let lap = send(self.to_first.as_fd(), token + 1).and_then(|()| receive(self.from_last.as_fd()));
        let back = match lap {
            Ok(back) => back,
            Err(error) => return Err(self.what_broke(error)),
        };
        self.leader.take(back, bytes, &self.board)?;
        // All have noted where they are in the lap that is over.
        if self.leader.notes_in(back) {
            self.look();
        }
        Ok(())
    }

    /// Counts where each two that follow each other noted last that they were.
    fn look(&mut self) {
        let cpus: Vec<u32> = (0..self.size() as usize)
            .map(|index| self.board.lines[FIRST_CPU + index].load(Ordering::Acquire) as u32)
            .collect();
        let next = cpus.iter().cycle().skip(1);
        for pair in cpus.iter().copied().zip(next.copied()) {
            *self.looks.entry(pair).or_default() += 1;
        }
    }

    fn size(&self) -> u64 {
        self.members.len() as u64 + 1
    }

    /// A member that saw something wrong leaves a notice before it ends.
    fn what_broke(&mut self, error: anyhow::Error) -> anyhow::Error {
        if let Err(wrong) = self.board.notice.check() {
            return wrong;
        }
        for (index, member) in (2..).zip(&mut self.members) {
            if let Ok(Some(status)) = member.ended()
                && status.code() != Some(1)
            {
                return error.context(format!("process {index} of the ring ended with {status}"));
            }
        }
        error.context("the ring ended early")
    }

    /// Goes through the leader's own block `times` times while all others sleep.
    pub fn touch(&mut self, times: u64, bytes: u64) -> anyhow::Result<()> {
        (0..times).try_for_each(|_| self.leader.touch(bytes))
    }

    /// Hands over the observations since the last call; at least one, of the CPUs that all noted
    /// last.
    pub fn looks_into(&mut self, seen: &mut Occupancy) {
        if self.looks.is_empty() {
            self.look();
        }
        for ((one, other), times) in std::mem::take(&mut self.looks) {
            seen.look(one, other, times);
        }
    }

    /// Ends the game, reaps everybody and returns how often the members were switched out, a hop of
    /// theirs.
    pub fn stop(mut self) -> anyhow::Result<f64> {
        send(self.to_first.as_fd(), STOP).context("while the ring was stopped")?;
        let last = receive(self.from_last.as_fd()).context("while the ring was stopped")?;
        check_answer(last == STOP, || format!("the last token came back as {last}"))?;
        for (index, member) in (2..).zip(&mut self.members) {
            let status = member.wait(Duration::from_secs(5)).context("while the ring ends")?;
            check_answer(status.success(), || format!("process {index} of the ring ended with {status}"))?;
        }
        let switches = clock::children_usage()?.switches() - self.children_before;
        Ok(switches as f64 / (self.laps * self.members.len() as u64).max(1) as f64)
    }
}

/// A member's side: goes through its block after each token and passes the next one on.
fn serve(mut station: RingProcess, (from, to): (OwnedFd, OwnedFd), board: &Board) -> anyhow::Result<()> {
    loop {
        let token = receive(from.as_fd())?;
        if token == STOP {
            return send(to.as_fd(), STOP);
        }
        let bytes = board.lines[BYTES].load(Ordering::Acquire);
        station.take(token, bytes, board).inspect_err(|wrong| board.notice.leave(wrong))?;
        send(to.as_fd(), token + 1)?;
    }
}

/// What each process of the ring does, the leader too.
struct RingProcess {
    index: usize,
    size: u64,
    /// The token whose turn it is here.
    next: u64,
    block: Option<Mapping>,
    reader: Option<Stream>,
}

impl RingProcess {
    fn new(index: usize, size: usize, seat: &Seat, most_bytes: u64) -> anyhow::Result<RingProcess> {
        let block = match most_bytes {
            0 => None,
            bytes => Some(resident(bytes, Pages::Base, &seat.mem_nodes, |at| at as u64 + index as u64)?),
        };
        // As compilers add without options for wider vectors: registers that need no larger state
        // to be saved.
        let plain = |stream: &Stream| matches!(stream.name, "sse2" | "neon" | "portable");
        let reader = streams(Op::Read).into_iter().find(plain);
        let next = if index == 0 { size } else { index } as u64;
        Ok(RingProcess { index, size: size as u64, next, block, reader })
    }

    /// Checks that it is this token's turn, goes through the block, and now and then notes where it
    /// is.
    fn take(&mut self, token: u64, bytes: u64, board: &Board) -> anyhow::Result<()> {
        check_answer(token == self.next, || {
            let (process, turn) = (self.index + 1, self.next);
            format!("process {process} of the ring got token {token} instead of {turn}")
        })?;
        self.next += self.size;
        self.touch(bytes)?;
        if self.notes_in(token) {
            let here = affinity::current_cpu().map_or(0, u64::from);
            board.lines[FIRST_CPU + self.index].store(here, Ordering::Release);
        }
        Ok(())
    }

    /// Whether everybody notes where it is in the lap that this token belongs to.
    fn notes_in(&self, token: u64) -> bool {
        let every = (LOOK_EVERY_HOPS / self.size).max(1);
        ((token - 1) / self.size).is_multiple_of(every)
    }

    /// Adds up the first `bytes` of the block.
    fn touch(&mut self, bytes: u64) -> anyhow::Result<()> {
        let (Some(block), Some(reader)) = (&mut self.block, &self.reader) else { return Ok(()) };
        let words = (bytes / 8) as usize;
        if words == 0 {
            return Ok(());
        }
        let sum = reader.run(&mut block.words_mut()[..words], 1, 0);
        let (index, words) = (self.index as u64, words as u64);
        let expected = (words * (words - 1) / 2).wrapping_add(words * index);
        check_answer(sum == expected, || {
            format!("the block of process {} adds up to {sum} instead of {expected}", index + 1)
        })
    }
}

/// What the processes share.
struct Board {
    lines: Lines,
    notice: Notice,
}

/// The line that says how many bytes to go through, and the first of the processes' own, which say
/// on which CPU each was.
const BYTES: usize = 0;
const FIRST_CPU: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;
    use model::CpuSet;
    use testkit::alone;

    fn seats(count: usize, cpus: &CpuSet) -> Vec<Seat> {
        let seat =
            Seat { role: "member".into(), host: None, cpus: cpus.clone(), mem_nodes: CpuSet::default() };
        vec![seat; count]
    }

    fn one_cpu() -> CpuSet {
        CpuSet::one(affinity::allowed().expect("affinity").last().expect("a CPU"))
    }

    #[test]
    fn the_token_goes_round_and_everybody_is_switched_out_on_one_cpu() {
        alone(|| {
            let mut ring = Ring::start(&seats(5, &one_cpu()), 8 << 10).expect("a ring");
            ring.play(200, 0).expect("laps");
            ring.play(200, 8 << 10).expect("laps through the blocks");
            let here = one_cpu().first().expect("a CPU");
            let looks: u64 = ring.looks.values().sum();
            assert_eq!(
                looks,
                5 * 401_u64.div_ceil(3),
                "five processes in every third lap, from the first on"
            );
            assert_eq!(ring.looks.keys().collect::<Vec<_>>(), [&(here, here)]);
            assert!(ring.stop().expect("all end well") >= 1.0);
        });
    }

    #[test]
    fn a_token_out_of_turn_is_a_wrong_answer() {
        alone(|| {
            let mut ring = Ring::start(&seats(3, &one_cpu()), 0).expect("a ring");
            ring.play(3, 0).expect("laps");
            // The fourth token of the second process is 1 + 4 × 3.
            let error = ring.lap(17, 0).expect_err("nobody's turn");
            let wrong = error.downcast_ref::<WrongAnswer>().expect("a wrong answer").to_string();
            assert!(wrong.contains("process 2 of the ring got token 18 instead of 13"), "{wrong}");
        });
    }

    #[test]
    fn a_word_that_changed_is_a_wrong_answer() {
        let seat = &seats(1, &one_cpu())[0];
        let mut station = RingProcess::new(3, 4, seat, 64 << 10).expect("a block");
        for bytes in [0, 4096, 64 << 10] {
            station.touch(bytes).expect("the words are right");
        }
        station.block.as_mut().expect("a block").words_mut()[600] ^= 1 << 40;
        station.touch(4096).expect("the change lies behind");
        let error = station.touch(8192).expect_err("a word changed");
        let wrong = error.downcast_ref::<WrongAnswer>().expect("a wrong answer").to_string();
        assert!(wrong.starts_with("the block of process 4 adds up to"), "{wrong}");
    }

    #[test]
    fn a_member_that_dies_breaks_the_ring_and_nothing_hangs() {
        alone(|| {
            let mut ring = Ring::start(&seats(4, &one_cpu()), 0).expect("a ring");
            ring.play(2, 0).expect("laps");
            ring.members[1].kill();
            let error = format!("{:#}", ring.play(10, 0).expect_err("it is dead"));
            assert!(error.contains("process 3 of the ring ended with signal: 9"), "{error}");
        });
    }
}
