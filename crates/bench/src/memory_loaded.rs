//! Loaded latency: what a load takes while other cores use the memory.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::bail;

use super::memory::{beyond_caches, huge_share, resident, sizes_of};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{latency_ns, trade};
use kernels::{Chain, Op, Stream, add_chain, streams};
use model::vocabulary::memory as ids;
use model::{Better, Case, CpuSet, Form, Metric, Pages, Params};
use sys::crew::{Body, Lines, Team};
use sys::mapping::Mapping;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::LOADED_LATENCY,
    title: "Loaded latency",
    about: "Memory latency of one task while every other core generates traffic, from little to full load, with \
            three read-write mixes.",
    reading: "A low and flat curve is good. At the knee requests begin to queue, and a little more bandwidth costs \
              much more latency. A server right of its knee is slow although no CPU is busy. Writes move the knee \
              left. A knee far below the best read bandwidth means too few channels or a slow one.",
    method: "The task follows a random chain through a block beyond the last-level cache. The others work through \
             their own blocks, 16 KiB at a time, with a pause after each that sets the rate. Mixes are all reads, \
             two reads to a write (every second 16 KiB is changed) and one to one (all of it). Latency and traffic, \
             the first task's included, come from the same samples.",
    source: file!(),
    metrics: &[
        latency_ns(ids::metric::LATENCY, "latency"),
        Metric::new(
            ids::metric::TRAFFIC,
            "traffic of all tasks",
            "GB/s",
            Better::Neither,
            Form::WorkPerTime { scale: 1.0 },
        )
        .aside(),
    ],
    params: &[
        Param::choice(ids::param::MIX, "reads to writes on the bus", &MIXES),
        Param::int(ids::param::PAUSE, "idle rounds between two blocks of traffic", 0..=1 << 20),
    ],
    view: &trade(ids::metric::TRAFFIC, ids::metric::LATENCY),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const MIXES: [&str; 3] = ["reads", "two-to-one", "one-to-one"];

/// From full load to nearly none: a block takes 0.5 to 5 µs, a round of idling about 20 ns.
const PAUSES: [u64; 13] = [0, 8, 16, 32, 64, 96, 128, 256, 512, 1024, 2048, 4096, 16384];

/// Worked on between two pauses, bytes: short enough that traffic is even, long enough for
/// prefetchers.
const BURST: usize = 16 << 10;

const LINE_BYTES: usize = 64;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    // A sibling that makes traffic would take the chaser's own core from it.
    let (all, cores) = (scope.placements.all("traffic"), scope.placements.one_per_core("traffic"));
    let mut placement = if cores.seats.len() < all.seats.len() { cores } else { all };
    if placement.seats.len() < 2 {
        return vec![Candidate::unmet(
            bench.id,
            "all",
            "needs two cores, one of them for traffic".to_string(),
        )];
    }
    placement.seats[0].role = "chaser".into();
    let placement = placement.pages(Pages::Huge);
    // Half for the chaser, half for all traffic together.
    let bytes = beyond_caches(scope, &placement, 3).clamp(64 << 10, 64 << 30);
    let others = placement.seats.len() as u64 - 1;
    let each = (bytes / others / BURST as u64 * BURST as u64).max(2 * BURST as u64);
    // Written, linked, and walked once at the end.
    let setup_s = bytes as f64 * (1.0 / 2e9 + 200e-9 / LINE_BYTES as f64);
    let seconds = scope.seconds(PAUSES.len(), 1.0, setup_s);
    let cases = MIXES.iter().map(|mix| {
        let mut candidate =
            Candidate::new(bench.id, placement.clone(), 66, seconds).param(ids::param::MIX, *mix);
        candidate.case.inputs.insert(ids::param::BYTES.into(), super::memory::sizes_input(&[bytes, each]));
        candidate.memory(bytes + bytes / 16 + each * others)
    });
    cases.collect()
}

fn points(_: &Case) -> Vec<Params> {
    PAUSES.iter().map(|pause| point(ids::param::PAUSE, *pause)).collect()
}

/// Loads in the low bits of a round's order, the pause above.
const LOADS_BITS: u32 = 40;
const LOADS_MOST: u64 = (1 << LOADS_BITS) - 1;

/// A round without loads is one of checking.
const CHECK: u64 = 0;

/// Traffic that does not begin within this long is not waited for: the figures show what there was.
const BEGIN_LIMIT: Duration = Duration::from_secs(2);

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let [bytes, each] = sizes_of(case)[..] else { bail!("the case needs two sizes") };
    let mix = case.params.get(ids::param::MIX).and_then(|mix| mix.text()).unwrap_or(MIXES[0]).to_string();
    let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
    let (clock, seed, pages) = (sampler.clock(), sampler.seed(), case.placement.pages);
    let board = Rc::new(Board { lines: Lines::new(2)?, others: seats.len() as u64 - 1 });
    let share = Cell::new(None);
    let build = |index: usize| -> anyhow::Result<Body> {
        let (nodes, board) = (&case.placement.seats[index].mem_nodes, Rc::clone(&board));
        if index > 0 {
            let mut traffic = Traffic::new(resident(each, pages, nodes, |word| word as u64)?, &mix);
            return Ok(Box::new(move |order| match order & LOADS_MOST {
                CHECK => u64::from(traffic.is_right()),
                _ => traffic.flow(order >> LOADS_BITS, &board),
            }));
        }
        // Kept until this process ends, as the chain is.
        let memory = Box::leak(Box::new(resident(bytes, pages, nodes, |word| word as u64)?));
        share.set(huge_share(memory));
        let mut chain = Chain::random(memory.words_mut(), LINE_BYTES, seed);
        let mut round = 0;
        Ok(Box::new(move |order| match order & LOADS_MOST {
            CHECK => u64::from(chain.visits_every_line()),
            loads => {
                round += 1;
                board.await_traffic(round);
                let begin = clock.now();
                chain.walk(loads);
                let ns = clock.now() - begin;
                board.lines[OVER].store(round, Ordering::Release);
                ns.to_bits()
            }
        }))
    };
    let mut team = Team::start(&seats, clock, build)?;
    sampler.facts().memory_bytes = Some(bytes + each * (seats.len() as u64 - 1));
    sampler.facts().huge_share = share.get();
    for pause in PAUSES {
        let at = Point::new(ids::metric::LATENCY, Chain::UNROLL as f64).at(point(ids::param::PAUSE, pause));
        sampler.time_beside(at, ids::metric::TRAFFIC, |n| {
            let loads = n * Chain::UNROLL;
            if loads > LOADS_MOST {
                bail!("{loads} loads in one sample: the clock is wrong");
            }
            let laps = team.round(pause << LOADS_BITS | loads)?;
            let ns = f64::from_bits(laps[0].answer);
            let rates = laps[1..].iter().map(|lap| lap.answer as f64 / (lap.end_ns - lap.start_ns).max(1.0));
            Ok((ns, rates.sum::<f64>() * ns + (loads * LINE_BYTES as u64) as f64))
        })?;
    }
    for (lap, cpus) in team.round(CHECK)?.iter().zip(&seats) {
        check_answer(lap.answer == 1, || {
            format!("CPU {cpus}: a chain or a block of traffic has wrong content")
        })?;
    }
    Ok(())
}

/// Shared state of the chaser and the other tasks.
struct Board {
    lines: Lines,
    /// Tasks that make traffic.
    others: u64,
}

/// Lines of the board: the round whose chase is over, with which its traffic ends, and how often
/// any task's traffic began.
const OVER: usize = 0;
const FLOWING: usize = 1;

impl Board {
    fn await_traffic(&self, round: u64) {
        let begin = Instant::now();
        while self.lines[FLOWING].load(Ordering::Acquire) < round * self.others
            && begin.elapsed() < BEGIN_LIMIT
        {
            std::hint::spin_loop();
        }
    }
}

/// One task's traffic: works through its block burst by burst, round and round.
struct Traffic {
    memory: Mapping,
    /// One burst of this many is changed in place, the others are read; `None`: all are read.
    change_every: Option<usize>,
    burst: usize,
    /// Times that the whole block was worked through.
    laps: u64,
    round: u64,
    /// Wrapping sum of what was read in this lap, and whether that of every earlier lap was right.
    sum: u64,
    sums_right: bool,
    read: Stream,
    change: Stream,
}

impl Traffic {
    fn new(memory: Mapping, mix: &str) -> Traffic {
        let change_every = match mix {
            "two-to-one" => Some(2),
            "one-to-one" => Some(1),
            _ => None,
        };
        let widest = |op| streams(op)[0];
        let (read, change) = (widest(Op::Read), widest(Op::ReadWrite));
        Traffic { memory, change_every, burst: 0, laps: 0, round: 0, sum: 0, sums_right: true, read, change }
    }

    /// Makes traffic until the round's chase is over; returns the bytes moved.
    fn flow(&mut self, pause: u64, board: &Board) -> u64 {
        self.round += 1;
        let mut bytes = 0;
        loop {
            let first = bytes == 0;
            bytes += self.burst();
            if first {
                board.lines[FLOWING].fetch_add(1, Ordering::AcqRel);
            }
            std::hint::black_box(add_chain(pause, 1, 1));
            if board.lines[OVER].load(Ordering::Acquire) >= self.round {
                return bytes;
            }
        }
    }

    /// Works on the next burst; returns the bytes that it moved.
    fn burst(&mut self) -> u64 {
        let bursts = self.memory.len() / BURST;
        let words = &mut self.memory.words_mut()[self.burst * BURST / 8..][..BURST / 8];
        let changes = is_changed(self.burst, self.change_every);
        match changes {
            true => self.change.run(words, 1, 1),
            false => {
                self.sum = self.sum.wrapping_add(self.read.run(words, 1, 0));
                0
            }
        };
        self.burst += 1;
        if self.burst == bursts {
            let all = (bursts * BURST / 8) as u64;
            // The numbers of all words, where none was changed.
            self.sums_right &= self.change_every.is_some() || self.sum == all * (all - 1) / 2;
            (self.burst, self.sum, self.laps) = (0, 0, self.laps + 1);
        }
        BURST as u64 * if changes { 2 } else { 1 }
    }

    /// Whether every sum was right and every changed word was changed once a lap; one word of each
    /// line is checked.
    fn is_right(&self) -> bool {
        let words = self.memory.words();
        let right = |index: usize| {
            let burst = index * 8 / BURST;
            let done = self.laps + u64::from(burst < self.burst);
            let changed = if is_changed(burst, self.change_every) { done } else { 0 };
            words[index] == index as u64 + changed
        };
        self.sums_right && (0..words.len() / (BURST / 8) * (BURST / 8)).step_by(8).all(right)
    }
}

fn is_changed(burst: usize, every: Option<usize>) -> bool {
    every.is_some_and(|every| burst % every == every - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_moves_what_its_mix_says_and_finds_damage() {
        for (mix, bytes) in [("reads", 4), ("two-to-one", 6), ("one-to-one", 8)] {
            let memory = resident(4 * BURST as u64, Pages::AsGiven, &CpuSet::default(), |word| word as u64);
            let mut traffic = Traffic::new(memory.expect("64 KiB"), mix);
            let moved: u64 = (0..4).map(|_| traffic.burst()).sum();
            assert_eq!(moved, bytes * BURST as u64, "{mix}");
            assert!(traffic.laps == 1 && traffic.is_right(), "{mix}");
            traffic.burst();
            assert!(traffic.is_right(), "{mix}");
            traffic.memory.words_mut()[16] ^= 1 << 33;
            assert!(!traffic.is_right(), "{mix}");
        }
    }
}
