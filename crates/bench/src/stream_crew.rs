//! Tasks that stream over memory of their own: what bandwidth benchmarks have in common.

use std::cell::Cell;

use anyhow::bail;

use super::memory::{huge_share, remote_share, resident};
use super::{Sampler, check_answer};
use kernels::{LAST_WORDS, Op, Stream, array_bytes, streams};
use model::{Case, CpuSet, Pages};
use sys::crew::{Body, Lap, Team, wall_ns};
use sys::mapping::Mapping;

/// One task's block and what it does with it.
pub struct Worker {
    memory: Mapping,
    stream: Stream,
    /// Passes since the block was prepared: what [`Op::ReadWrite`] added.
    passes: u64,
}

/// What every word is written with by [`Op::Write`].
const WRITTEN: u64 = 0x5aa5_c33c_0ff0_9669;
/// The factor of [`Op::Triad`].
const FACTOR: f64 = 3.0;

/// What stands in a word of array 0, 1 or 2 before: all different, so that a word left out or done
/// twice shows; of a triad small whole numbers, which double precision holds exactly.
fn initial(op: Op, array: usize, index: usize) -> u64 {
    match (op, array) {
        (Op::Triad, 1) => ((index % 1021) as f64 + 1.0).to_bits(),
        (Op::Triad, 2) => ((index % 509) as f64 + 1.0).to_bits(),
        (Op::Copy | Op::CopyNt | Op::CopyRep | Op::Triad, 0) => 0,
        _ => (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

/// What stands in a word of the first array after `passes` (≥ 1).
fn expected(op: Op, index: usize, passes: u64) -> u64 {
    match op {
        Op::Read | Op::Load => initial(op, 0, index),
        Op::Write | Op::WriteNt => WRITTEN,
        Op::ReadWrite => initial(op, 0, index).wrapping_add(passes),
        Op::Copy | Op::CopyNt | Op::CopyRep => initial(op, 1, index),
        Op::Fill => 0,
        Op::Triad => {
            let value = |array: usize| f64::from_bits(initial(op, array, index));
            (value(1) + FACTOR * value(2)).to_bits()
        }
    }
}

impl Worker {
    /// The smallest block that an operation can have, bytes.
    pub fn smallest(op: Op) -> u64 {
        (kernels::BLOCK_BYTES * op.arrays()) as u64
    }

    /// A worker with a block of up to `most` bytes on these nodes (empty: wherever it first touches
    /// it), written.
    pub fn new(op: Op, most: u64, pages: Pages, nodes: &CpuSet) -> anyhow::Result<Worker> {
        let memory = resident(most.max(Self::smallest(op)), pages, nodes, |index| initial(op, 0, index))?;
        // The widest is the first; there is always the portable one.
        Ok(Worker { memory, stream: streams(op)[0], passes: 0 })
    }

    pub fn memory(&self) -> &Mapping {
        &self.memory
    }

    pub fn variant(&self) -> &'static str {
        self.stream.name
    }

    /// Fills the arrays of a block of `bytes` with what they hold before.
    pub fn prepare(&mut self, bytes: u64) {
        self.passes = 0;
        let op = self.stream.op;
        // Reading leaves everything as it was written.
        if matches!(op, Op::Read | Op::Load) {
            return;
        }
        let words = array_bytes(op, bytes) as usize / 8;
        let arrays = self.memory.words_mut().chunks_exact_mut(words.max(1)).take(op.arrays());
        for (array, part) in arrays.enumerate() {
            part.iter_mut().enumerate().for_each(|(index, word)| *word = initial(op, array, index));
        }
    }

    /// Works over the block; returns whether what it read is right ([`Self::is_right`] checks what
    /// it wrote).
    pub fn work(&mut self, bytes: u64, passes: u64) -> bool {
        let word = match self.stream.op {
            Op::Write | Op::WriteNt => WRITTEN,
            Op::ReadWrite => 1,
            Op::Triad => FACTOR.to_bits(),
            Op::Read | Op::Load | Op::Copy | Op::CopyNt | Op::CopyRep | Op::Fill => 0,
        };
        let sum = self.stream.run(&mut self.memory.words_mut()[..bytes as usize / 8], passes, word);
        self.passes = self.passes.wrapping_add(passes);
        match self.stream.op {
            Op::Read => sum == sum_of_initial(array_bytes(Op::Read, bytes)).wrapping_mul(passes),
            // What was loaded last shows that the loop came to the block's end; the words
            // themselves are checked later.
            Op::Load => {
                let words = array_bytes(Op::Load, bytes) as usize / 8;
                let last = (words - LAST_WORDS..words).map(|index| initial(Op::Load, 0, index));
                sum == last.fold(0, |sum: u64, word| sum.wrapping_add(word))
            }
            _ => true,
        }
    }

    /// Whether the block holds what the work since [`Self::prepare`] must have left: checks one
    /// word of each cache line, another lane in each, so that no line and no lane is left out.
    pub fn is_right(&self, bytes: u64) -> bool {
        let op = self.stream.op;
        let words = array_bytes(op, bytes) as usize / 8;
        let looked_at = (0..words / 8).map(|line| line * 8 + line % 8);
        self.passes == 0
            || looked_at
                .into_iter()
                .all(|index| self.memory.words()[index] == expected(op, index, self.passes))
    }
}

/// Sum of the words that [`Op::Read`] finds: (i + 1) × K for i in 0..n.
fn sum_of_initial(bytes: u64) -> u64 {
    let words = u128::from(bytes / 8);
    ((words * (words + 1) / 2) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A worker on every seat of a case, working at once.
pub struct Crew {
    team: Team,
    seats: Vec<CpuSet>,
    op: Op,
}

/// What members are asked for: in the two highest bits of a round's argument, then the block in
/// units of 512 bytes (2^36: 32 TiB), then passes.
const PREPARE: u64 = 0;
const WORK: u64 = 1;
const CHECK: u64 = 2;
const REMOTE: u64 = 3;
const PASSES_BITS: u32 = 26;
const UNIT_BYTES: u64 = 512;

/// Most passes of a round: a sample of the smallest block in the nearest cache has a thousandth.
const PASSES_MOST: u64 = (1 << PASSES_BITS) - 1;

fn order(what: u64, bytes: u64, passes: u64) -> u64 {
    what << 62 | (bytes / UNIT_BYTES) << PASSES_BITS | passes
}

fn understood(order: u64) -> (u64, u64, u64) {
    (order >> 62, (order << 2 >> 2 >> PASSES_BITS) * UNIT_BYTES, order & PASSES_MOST)
}

impl Crew {
    /// Seats everybody; each maps and writes its own block after it is pinned: the memory lies
    /// where it is used, or on the nodes that its seat names.
    pub fn start(case: &Case, op: Op, most: u64, sampler: &mut Sampler) -> anyhow::Result<Crew> {
        let placement = &case.placement;
        let seats: Vec<CpuSet> = placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
        let leader = Cell::new((None, None, None));
        let build = |index: usize| -> anyhow::Result<Body> {
            let nodes = placement.seats[index].mem_nodes.clone();
            let mut worker = Worker::new(op, most, placement.pages, &nodes)?;
            if index == 0 {
                let memory = worker.memory();
                leader.set((huge_share(memory), memory.resident_share().ok(), Some(worker.variant())));
            }
            Ok(Box::new(move |order| match understood(order) {
                (PREPARE, bytes, _) => {
                    worker.prepare(bytes);
                    1
                }
                (WORK, bytes, passes) => u64::from(worker.work(bytes, passes)),
                (CHECK, bytes, _) => u64::from(worker.is_right(bytes)),
                _ => remote_share(worker.memory(), &nodes).map_or(u64::MAX, |share| (share * 1e6) as u64),
            }))
        };
        let team = Team::start(&seats, sampler.clock(), build)?;
        let (huge, resident, variant) = leader.get();
        let mut crew = Crew { team, seats, op };
        // The worst of all shares; unknown if any is unknown.
        let shares = crew.team.round(order(REMOTE, 0, 0))?;
        let remote = shares.iter().map(|lap| lap.answer).filter(|share| *share != u64::MAX).max();
        let facts = sampler.facts();
        facts.memory_bytes = Some(most * crew.seats.len() as u64);
        (facts.huge_share, facts.resident_share) = (huge, resident);
        facts.remote_share = remote.map(|share| share as f64 / 1e6);
        facts.variant = variant.map(str::to_string);
        Ok(crew)
    }

    pub fn prepare(&mut self, bytes: u64) -> anyhow::Result<()> {
        self.team.round(order(PREPARE, bytes, 0)).map(drop)
    }

    /// Everybody works `passes` times over a block; from the first start to the last end, ns.
    pub fn work(&mut self, bytes: u64, passes: u64) -> anyhow::Result<f64> {
        Ok(wall_ns(&self.laps(bytes, passes)?))
    }

    /// The same; from each one's own start to its own end, ns.
    pub fn work_each(&mut self, bytes: u64, passes: u64) -> anyhow::Result<Vec<f64>> {
        Ok(self.laps(bytes, passes)?.iter().map(|lap| lap.end_ns - lap.start_ns).collect())
    }

    fn laps(&mut self, bytes: u64, passes: u64) -> anyhow::Result<Vec<Lap>> {
        if passes > PASSES_MOST {
            bail!("{passes} passes over {bytes} bytes in one round: the clock is wrong");
        }
        let laps = self.team.round(order(WORK, bytes, passes))?;
        self.all_right(laps.iter().map(|lap| lap.answer), bytes)?;
        Ok(laps)
    }

    /// Whether everybody's block holds what it must.
    pub fn check(&mut self, bytes: u64) -> anyhow::Result<()> {
        let laps = self.team.round(order(CHECK, bytes, 0))?;
        self.all_right(laps.iter().map(|lap| lap.answer), bytes)
    }

    fn all_right(&self, answers: impl Iterator<Item = u64>, bytes: u64) -> anyhow::Result<()> {
        for (answer, cpus) in answers.zip(&self.seats) {
            check_answer(answer == 1, || {
                format!("CPU {cpus}: {:?} over {bytes} bytes gave wrong words or a wrong sum", self.op)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_found_right_and_damage_is_found() {
        let bytes = 48 << 10;
        for op in Op::ALL {
            let mut worker = Worker::new(op, bytes, Pages::AsGiven, &CpuSet::default()).expect("memory");
            for size in [bytes / 4, bytes] {
                worker.prepare(size);
                assert!(worker.work(size, 1) && worker.work(size, 3), "{op:?}");
                assert!(worker.is_right(size), "{op:?}");
            }
            // One flipped bit in the first array shows: in the sum or in the block, as soon as it
            // is checked.
            let looked_at = 8 * 17 + 17 % 8;
            worker.memory.words_mut()[looked_at] ^= 1 << 40;
            let sum_right = op != Op::Read || worker.work(bytes, 1);
            assert!(!(sum_right && worker.is_right(bytes)), "{op:?}");
        }
    }

    #[test]
    fn a_loop_that_does_nothing_is_found() {
        let reads = |op: &Op| matches!(op, Op::Read | Op::Load);
        for op in Op::ALL.into_iter().filter(|op| !reads(op)) {
            let mut worker = Worker::new(op, 12 << 10, Pages::AsGiven, &CpuSet::default()).expect("memory");
            worker.prepare(12 << 10);
            worker.passes = 1;
            assert!(!worker.is_right(12 << 10), "{op:?}");
        }
    }

    #[test]
    fn orders_are_understood_as_they_were_given() {
        for (what, bytes, passes) in
            [(WORK, 1 << 40, 12_345), (CHECK, 512, 0), (REMOTE, 0, 0), (PREPARE, 4096, 7)]
        {
            assert_eq!(understood(order(what, bytes, passes)), (what, bytes, passes));
        }
    }
}
