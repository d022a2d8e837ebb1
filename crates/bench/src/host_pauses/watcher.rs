//! A process that reads the clock and nothing else, and what it saw in memory that all share.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use crate::buckets::{Buckets, WORDS};
use crate::sampler::core_clock_ghz;
use model::Histogram;
use sys::clock::{self, Clock};
use sys::counters::OwnCounters;
use sys::shared::{SharedWords, WORDS_PER_LINE};

/// Two readings of the clock further apart than this were interrupted: a hundred times what a
/// reading takes, or ten times that where it is slow (emulated CPUs).
const GAP_NS: f64 = 3e3;
const READING: f64 = 10.0;
/// Gaps from here on are kept one by one, with the time that the process waited meanwhile: four
/// times what asking for that takes.
const KEPT_NS: f64 = 20e3;
const ASKING: f64 = 4.0;
/// Readings of the core's clock at the end of a visit: 0.2 ms, while all CPUs are still busy.
const CLOCK_READINGS: usize = 15;
/// Pauses kept of a CPU, and of all together.
const MOST_EACH: usize = 16 << 10;
const MOST: usize = 2 << 20;
const LEAST_EACH: usize = 1 << 10;

/// A time in which the process did not run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    pub begin_ns: f64,
    pub length_ns: f64,
    /// Of it, runnable and without a CPU.
    pub waited_ns: f64,
}

/// What one watcher saw.
pub struct Seen {
    /// All gaps, their time together and their lengths.
    pub gaps: u64,
    pub paused_ns: f64,
    pub histogram: Histogram,
    pub pauses: Vec<Pause>,
    /// Pauses for which no room was left.
    pub lost: u64,
    /// The core's clock at the end, GHz.
    pub clock_ghz: f64,
}

/// A part of the shared memory for each watcher: counters, buckets, pauses.
pub struct Board {
    words: SharedWords,
    each: usize,
}

const GAPS: usize = 0;
const PAUSED: usize = 1;
const KEPT: usize = 2;
const LOST: usize = 3;
const CLOCK: usize = 4;
const BUCKETS: usize = WORDS_PER_LINE;
const PAUSES: usize = BUCKETS + WORDS.next_multiple_of(WORDS_PER_LINE);
const WORDS_PER_PAUSE: usize = 3;

fn kept_each(cpus: usize) -> usize {
    (MOST / cpus.max(1)).clamp(LEAST_EACH, MOST_EACH)
}

fn words_each(cpus: usize) -> usize {
    // Whole pages: watchers touch their own before they begin, on their own node.
    (PAUSES + WORDS_PER_PAUSE * kept_each(cpus)).next_multiple_of(512)
}

impl Board {
    pub fn new(cpus: usize) -> io::Result<Board> {
        Ok(Board { words: SharedWords::new(cpus * words_each(cpus))?, each: words_each(cpus) })
    }

    /// Memory that it takes, bytes.
    pub fn bytes(cpus: usize) -> u64 {
        (cpus * words_each(cpus) * 8) as u64
    }

    fn put(&self, seat: usize, word: usize, value: u64) {
        self.words.word(seat * self.each + word).store(value, Ordering::Relaxed);
    }

    fn get(&self, seat: usize, word: usize) -> u64 {
        self.words.word(seat * self.each + word).load(Ordering::Relaxed)
    }

    /// How many pauses a watcher may keep.
    fn room(&self) -> usize {
        (self.each - PAUSES) / WORDS_PER_PAUSE
    }

    fn keep(&self, seat: usize, index: usize, pause: Pause) {
        let first = PAUSES + index * WORDS_PER_PAUSE;
        for (word, value) in [pause.begin_ns, pause.length_ns, pause.waited_ns].into_iter().enumerate() {
            self.put(seat, first + word, value.to_bits());
        }
    }

    pub fn seen(&self, seat: usize) -> Seen {
        let mut buckets = Buckets::new();
        buckets.add((0..WORDS).map(|word| self.get(seat, BUCKETS + word)));
        let pause = |index: usize| {
            let ns = |word: usize| f64::from_bits(self.get(seat, PAUSES + index * WORDS_PER_PAUSE + word));
            Pause { begin_ns: ns(0), length_ns: ns(1), waited_ns: ns(2) }
        };
        Seen {
            gaps: self.get(seat, GAPS),
            paused_ns: f64::from_bits(self.get(seat, PAUSED)),
            histogram: buckets.histogram(),
            pauses: (0..self.get(seat, KEPT) as usize).map(pause).collect(),
            lost: self.get(seat, LOST),
            clock_ghz: f64::from_bits(self.get(seat, CLOCK)),
        }
    }
}

/// How long this process has waited for a CPU, or how often it lost its own where the kernel keeps
/// no run-queue delay.
struct Waits {
    counters: OwnCounters,
    last: Option<f64>,
    switches: i64,
}

impl Waits {
    fn new() -> Waits {
        let mut waits = Waits { counters: OwnCounters::open(), last: None, switches: 0 };
        waits.last = waits.counters.wait_ns();
        waits.since(0.0);
        waits
    }

    /// What it waited in the pause of this length that has just ended.
    fn since(&mut self, length_ns: f64) -> f64 {
        if let Some(last) = self.last {
            let now = self.counters.wait_ns().unwrap_or(last);
            self.last = Some(now);
            return (now - last).min(length_ns);
        }
        let switches = clock::own_usage().map_or(self.switches, |usage| usage.involuntary);
        let lost = switches > self.switches;
        self.switches = switches;
        if lost { length_ns } else { 0.0 }
    }

    /// What asking takes, ns: the median of some.
    fn price(&mut self, clock: Clock) -> f64 {
        let asked = (0..15).map(|_| {
            let begin = clock.now();
            self.since(0.0);
            clock.now() - begin
        });
        crate::median(asked.collect())
    }
}

pub struct Watcher {
    board: Rc<Board>,
    seat: usize,
    clock: Clock,
    waits: Waits,
    buckets: Buckets,
    gap_from: f64,
    kept_from: f64,
    gaps: u64,
    paused_ns: f64,
    kept: usize,
    lost: u64,
}

impl Watcher {
    pub fn new(board: Rc<Board>, seat: usize, clock: Clock) -> Watcher {
        // Its pages are there before it looks: a page fault is a gap.
        for word in 0..board.each {
            board.put(seat, word, 0);
        }
        let mut waits = Waits::new();
        let readings = (0..101).map(|_| clock.now() - clock.now()).map(f64::abs).collect();
        let gap_from = GAP_NS.max(READING * crate::median(readings));
        Watcher {
            board,
            seat,
            clock,
            gap_from,
            kept_from: KEPT_NS.max(gap_from).max(ASKING * waits.price(clock)),
            waits,
            buckets: Buckets::new(),
            gaps: 0,
            paused_ns: 0.0,
            kept: 0,
            lost: 0,
        }
    }

    /// Watches for so long; how many gaps there were.
    pub fn watch(&mut self, ns: f64) -> u64 {
        // What it waited before belongs to nobody.
        self.waits.since(0.0);
        let begin = self.clock.now();
        let mut last = begin;
        while last - begin < ns {
            let now = self.clock.now();
            if now - last >= self.gap_from {
                last = self.note(last, now - last);
            } else {
                last = now;
            }
        }
        let readings = (0..CLOCK_READINGS).map(|_| core_clock_ghz(self.clock)).collect();
        let board = &self.board;
        board.put(self.seat, CLOCK, crate::median(readings).to_bits());
        board.put(self.seat, GAPS, self.gaps);
        board.put(self.seat, PAUSED, self.paused_ns.to_bits());
        board.put(self.seat, KEPT, self.kept as u64);
        board.put(self.seat, LOST, self.lost);
        for (word, value) in self.buckets.words().enumerate() {
            board.put(self.seat, BUCKETS + word, value);
        }
        self.gaps
    }

    /// Notes a gap; from which moment on it looks again. A gap while it noted one is the next.
    fn note(&mut self, mut begin_ns: f64, mut length_ns: f64) -> f64 {
        loop {
            self.gaps += 1;
            self.paused_ns += length_ns;
            self.buckets.record(length_ns);
            let end = begin_ns + length_ns;
            if length_ns < self.kept_from {
                return end;
            }
            let pause = Pause { begin_ns, length_ns, waited_ns: self.waits.since(length_ns) };
            if self.kept < self.board.room() {
                self.board.keep(self.seat, self.kept, pause);
                self.kept += 1;
            } else {
                self.lost += 1;
            }
            let now = self.clock.now();
            if now - end < self.kept_from {
                return now;
            }
            (begin_ns, length_ns) = (end, now - end);
        }
    }
}
