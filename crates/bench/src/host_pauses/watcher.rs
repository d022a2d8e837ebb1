//! A process that reads the clock and nothing else, and what it saw in memory that all share.

use std::rc::Rc;

use crate::buckets::Buckets;
use crate::sampler::core_clock_ghz;
use model::Histogram;
use sys::clock::{self, Clock};
use sys::counters::OwnCounters;
use sys::crew::Slots;
use sys::record;

/// Two readings of the clock further apart than this were interrupted: a hundred times what a
/// reading takes, or ten times that where it is slow (emulated CPUs).
const GAP_NS: f64 = 3e3;
const READING: f64 = 10.0;
/// Gaps from here on are kept one by one, with the time that the process waited meanwhile: four
/// times what asking for that takes.
const KEPT_NS: f64 = 20e3;
const ASKING: f64 = 4.0;
/// Readings of the core's clock at the end of a pass: 0.2 ms, while all CPUs are still busy.
const CLOCK_READINGS: usize = 15;
/// Pauses kept of a CPU, and of all together.
const MAX_EACH: usize = 16 << 10;
const MAX_PAUSES: usize = 2 << 20;
const MIN_EACH: usize = 1 << 10;

record! {
    /// A time in which the process did not run.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Pause {
        pub begin_ns: f64,
        pub length_ns: f64,
        /// Of it, runnable and without a CPU.
        pub waited_ns: f64,
    }
}

record! {
    /// What one watcher counted.
    #[derive(Clone, Copy, Default)]
    pub struct Counts {
        /// All gaps and their time together.
        pub gaps: u64,
        pub paused_ns: f64,
        /// Pauses that it kept, and those for which no room was left.
        pub kept: u64,
        pub lost: u64,
        /// The core's clock at the end, GHz.
        pub clock_ghz: f64,
    }
}

/// What one watcher saw: the lengths of all gaps, and the pauses that it kept.
pub struct CpuPauses {
    pub counts: Counts,
    pub histogram: Histogram,
    pub pauses: Vec<Pause>,
}

/// What watchers saw, each at its seat.
pub struct Board {
    counts: Slots<Counts>,
    lengths: Slots<Buckets>,
    pauses: Slots<Pause>,
}

fn kept_each(cpus: usize) -> usize {
    (MAX_PAUSES / cpus.max(1)).clamp(MIN_EACH, MAX_EACH)
}

impl Board {
    pub fn new(cpus: usize) -> anyhow::Result<Board> {
        Ok(Board {
            counts: Slots::new(cpus, 1)?,
            lengths: Slots::new(cpus, 1)?,
            pauses: Slots::new(cpus, kept_each(cpus))?,
        })
    }

    /// Memory that it takes, bytes.
    pub fn bytes(cpus: usize) -> u64 {
        Slots::<Counts>::bytes(cpus, 1)
            + Slots::<Buckets>::bytes(cpus, 1)
            + Slots::<Pause>::bytes(cpus, kept_each(cpus))
    }

    pub fn seen(&self, seat: usize) -> CpuPauses {
        let counts = self.counts.get(seat, 0);
        CpuPauses {
            counts,
            histogram: self.lengths.get(seat, 0).histogram(),
            pauses: (0..counts.kept as usize).map(|index| self.pauses.get(seat, index)).collect(),
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
    counts: Counts,
}

impl Watcher {
    pub fn new(board: Rc<Board>, seat: usize, clock: Clock) -> Watcher {
        // Its pages are touched first: a page fault would be a gap.
        board.counts.touch(seat);
        board.lengths.touch(seat);
        board.pauses.touch(seat);
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
            counts: Counts::default(),
        }
    }

    /// Watches for this long; returns the number of gaps.
    pub fn watch(&mut self, ns: f64) -> u64 {
        // Earlier waiting does not count.
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
        self.counts.clock_ghz = crate::median(readings);
        self.board.counts.put(self.seat, 0, &self.counts);
        self.board.lengths.put(self.seat, 0, &self.buckets);
        self.counts.gaps
    }

    /// Notes a gap, and returns when watching continues. A gap during the noting is the next one.
    fn note(&mut self, mut begin_ns: f64, mut length_ns: f64) -> f64 {
        loop {
            self.counts.gaps += 1;
            self.counts.paused_ns += length_ns;
            self.buckets.record(length_ns);
            let end = begin_ns + length_ns;
            if length_ns < self.kept_from {
                return end;
            }
            let pause = Pause { begin_ns, length_ns, waited_ns: self.waits.since(length_ns) };
            let kept = self.counts.kept as usize;
            if kept < self.board.pauses.records_per_row() {
                self.board.pauses.put(self.seat, kept, &pause);
                self.counts.kept += 1;
            } else {
                self.counts.lost += 1;
            }
            let now = self.clock.now();
            if now - end < self.kept_from {
                return now;
            }
            (begin_ns, length_ns) = (end, now - end);
        }
    }
}
