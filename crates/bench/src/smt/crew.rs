//! Tasks that all work through the same requests, each on its CPU, and what was seen of them.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::REQUEST_NS;
use super::kinds::{Kind, Rounds};
use crate::histogram;
use crate::sampler::core_clock_ghz;
use model::{Case, CpuSet, Histogram};
use sys::clock::{self, Clock};
use sys::core_counters::CoreCounters;
use sys::crew::{Body, Lap, Lines, Slots, Team};
use sys::record;
use sys::sched;

pub struct Crew {
    team: Team,
    board: Rc<Board>,
    seats: usize,
}

/// What was seen of one level.
pub struct LevelResult {
    pub right: bool,
    /// From the first start to the last end of the fixed work.
    pub wall_ns: f64,
    /// Of all tasks together, each by its own time.
    pub rounds_per_ns: f64,
    /// CPU time of the tasks over their wall time: 1 is one CPU.
    pub cpus_used: f64,
    /// Of two tasks: shares of the time with exactly one at work, and with both.
    pub overlap: Option<(f64, f64)>,
    pub ipc: Option<f64>,
    /// Median over the tasks.
    pub clock_ghz: f64,
    latencies_ns: Vec<u64>,
}

/// A round without a level: the first task finds out how many rounds a request has.
const CALIBRATE: u64 = 0;
/// Requests that are noted of a task in a level.
const NOTED: usize = 1 << 13;
/// A task that is done goes on for this long if another one died, ns.
const PATIENCE_NS: f64 = 20e9;

impl Crew {
    /// `levels` steps of load, each of which takes a task alone `window_ns`.
    pub fn start(
        case: &Case,
        kind: Kind,
        (levels, window_ns): (u64, f64),
        clock: Clock,
    ) -> anyhow::Result<Crew> {
        let cpus: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
        ensure!(!cpus.is_empty() && levels > 0, "the case has no CPU for a task, or no level");
        let seats = cpus.len();
        let board = Rc::new(Board {
            lines: Lines::new(3)?,
            notes: Slots::new(seats, 1)?,
            requests: Slots::new(seats, NOTED)?,
        });
        let build = |seat: usize| -> anyhow::Result<Body> {
            // Sleeps end when they should: the usual slack is a quarter of a request.
            sched::set_timer_slack(std::num::NonZeroU64::MIN).context("cannot set the timer slack")?;
            let work = kind.start(seat as u64)?;
            let counters = CoreCounters::open().ok();
            let board = board.clone();
            let mut task = Task { seat, seats, board, clock, work, counters, levels, window_ns };
            Ok(Box::new(move |level| u64::from(task.round(level))))
        };
        let mut crew = Crew { team: Team::start(&cpus, clock, build)?, board: board.clone(), seats };
        crew.team.round(CALIBRATE)?;
        Ok(crew)
    }

    pub fn work(&mut self, level: u64) -> anyhow::Result<LevelResult> {
        self.board.lines[DONE].store(0, Ordering::Release);
        let laps = self.team.round(level)?;
        Ok(self.seen(&laps))
    }

    fn seen(&self, laps: &[Lap]) -> LevelResult {
        let notes: Vec<Note> = (0..self.seats).map(|seat| self.board.notes.get(seat, 0)).collect();
        let first = notes.iter().map(|note| note.begin_ns).fold(f64::INFINITY, f64::min);
        let last = notes.iter().map(|note| note.end_ns).fold(0.0, f64::max);
        let mut clocks: Vec<f64> = notes.iter().map(|note| note.clock_ghz).collect();
        clocks.sort_by(f64::total_cmp);
        let cycles: f64 = notes.iter().map(|note| note.cycles).sum();
        let instructions: f64 = notes.iter().map(|note| note.instructions).sum();
        let counted = notes.iter().all(|note| note.cycles > 0.0);
        let overlap = match notes.as_slice() {
            [one, other] => {
                let window = (one.begin_ns.max(other.begin_ns), one.end_ns.min(other.end_ns));
                Some(overlap(&self.board.requests(0, one), &self.board.requests(1, other), window))
            }
            _ => None,
        };
        let latencies = notes.iter().enumerate().flat_map(|(seat, note)| {
            let requests = self.board.requests(seat, note);
            requests.into_iter().map(|request| (request.end_ns - request.due_ns).max(1.0) as u64)
        });
        LevelResult {
            right: laps.iter().all(|lap| lap.answer == RIGHT),
            wall_ns: last - first,
            rounds_per_ns: notes.iter().map(|note| note.rounds / (note.end_ns - note.begin_ns)).sum(),
            cpus_used: notes.iter().map(|note| note.cpu_ns / (note.end_ns - note.begin_ns)).sum(),
            overlap,
            ipc: counted.then(|| instructions / cycles),
            clock_ghz: clocks[clocks.len() / 2],
            latencies_ns: latencies.collect(),
        }
    }
}

impl LevelResult {
    /// From when each request was due, not from when its task woke for it.
    pub fn latencies(&self) -> Histogram {
        histogram(self.latencies_ns.iter().copied())
    }
}

const RIGHT: u64 = 1;

/// One task's own.
struct Task {
    seat: usize,
    seats: usize,
    board: Rc<Board>,
    clock: Clock,
    work: Rounds,
    counters: Option<CoreCounters>,
    levels: u64,
    window_ns: f64,
}

impl Task {
    fn round(&mut self, level: u64) -> bool {
        if level == CALIBRATE {
            // Alone: the others wait asleep.
            return self.seat != 0 || self.calibrate();
        }
        let rounds = self.board.lines[ROUNDS].load(Ordering::Acquire);
        let alone_ns = f64::from_bits(self.board.lines[ALONE_NS].load(Ordering::Acquire));
        let rest_ns = alone_ns * (self.levels as f64 / level as f64 - 1.0).max(0.0);
        let requests = ((self.window_ns / (alone_ns + rest_ns)).round() as usize).clamp(1, NOTED);
        let mut right = true;
        let counted = self.counters.as_mut().and_then(|counters| counters.read().ok());
        let (cpu, begin_ns) = (clock::thread_time(), self.clock.now());
        let mut due_ns = begin_ns;
        for index in 0..requests {
            let (request, is_right) = self.request(due_ns, rounds);
            right &= is_right;
            self.board.requests.put(self.seat, index, &request);
            due_ns = request.end_ns + rest_ns;
            self.rest(due_ns, rest_ns);
        }
        let end_ns = self.clock.now();
        let cpu_ns = (clock::thread_time() - cpu).as_nanos() as f64;
        let counted = counted.zip(self.counters.as_mut().and_then(|counters| counters.read().ok()));
        let clock_ghz = core_clock_ghz(self.clock);
        let (instructions, cycles) = counted.map_or((0.0, 0.0), |(before, after)| {
            ((after.instructions - before.instructions) as f64, (after.cycles - before.cycles) as f64)
        });
        let done = requests as f64 * rounds as f64;
        let note = Note {
            begin_ns,
            end_ns,
            requests: requests as f64,
            rounds: done,
            cpu_ns,
            instructions,
            cycles,
            clock_ghz,
        };
        self.board.notes.put(self.seat, 0, &note);
        // Tasks that are not yet done are not left alone.
        self.board.lines[DONE].fetch_add(1, Ordering::AcqRel);
        let patience = self.clock.now() + PATIENCE_NS;
        while self.board.lines[DONE].load(Ordering::Acquire) < self.seats as u64
            && self.clock.now() < patience
        {
            let (request, is_right) = self.request(self.clock.now(), rounds);
            right &= is_right;
            self.rest(request.end_ns + rest_ns, rest_ns);
        }
        right
    }

    fn request(&mut self, due_ns: f64, rounds: u64) -> (Request, bool) {
        let start_ns = self.clock.now();
        let right = (self.work)(rounds);
        (Request { due_ns, start_ns, end_ns: self.clock.now() }, right)
    }

    fn rest(&self, until_ns: f64, rest_ns: f64) {
        let left = until_ns - self.clock.now();
        if rest_ns > 0.0 && left > 0.0 {
            std::thread::sleep(Duration::from_nanos(left as u64));
        }
    }

    /// The rounds that take a request's time, and what they take: the shortest of many tries, since
    /// whatever disturbs one makes it longer.
    fn calibrate(&mut self) -> bool {
        const TRIES: usize = 40;
        let mut rounds = 1u64;
        let mut right = true;
        loop {
            let (mut shortest, tries) = (f64::INFINITY, if rounds == 1 { 3 } else { TRIES });
            for _ in 0..tries {
                let (request, is_right) = self.request(0.0, rounds);
                right &= is_right;
                shortest = shortest.min(request.end_ns - request.start_ns);
            }
            let wanted = (rounds as f64 * REQUEST_NS / shortest.max(1.0)).round().max(1.0);
            // Near enough, or one round is longer already.
            if (0.9..1.1).contains(&(wanted / rounds as f64))
                || (rounds == 1 && wanted <= 1.0)
                || rounds > 1 << 40
            {
                self.board.lines[ROUNDS].store(rounds, Ordering::Release);
                self.board.lines[ALONE_NS].store(shortest.to_bits(), Ordering::Release);
                return right;
            }
            // Short tries mislead: not too far at once.
            rounds = (wanted.min(rounds as f64 * 16.0)) as u64;
        }
    }
}

record! {
    /// A request by the task's clock, ns.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Request {
        due_ns: f64,
        start_ns: f64,
        end_ns: f64,
    }
}

record! {
    /// A task's level in numbers.
    struct Note {
        begin_ns: f64,
        end_ns: f64,
        requests: f64,
        rounds: f64,
        cpu_ns: f64,
        /// 0 where nothing was counted.
        instructions: f64,
        cycles: f64,
        clock_ghz: f64,
    }
}

/// What the tasks share.
struct Board {
    lines: Lines,
    /// Of each task the level that it has just done, and the level's requests.
    notes: Slots<Note>,
    requests: Slots<Request>,
}

/// Lines of the board: tasks that are done with a level, rounds of a request, and its time alone.
const DONE: usize = 0;
const ROUNDS: usize = 1;
const ALONE_NS: usize = 2;

impl Board {
    fn requests(&self, seat: usize, note: &Note) -> Vec<Request> {
        (0..(note.requests as usize).min(NOTED)).map(|index| self.requests.get(seat, index)).collect()
    }
}

/// Shares of a sample with exactly one of two tasks at a request, and with both.
fn overlap(one: &[Request], other: &[Request], (begin, end): (f64, f64)) -> (f64, f64) {
    let inside = |request: &Request| (request.start_ns.max(begin), request.end_ns.min(end));
    let busy = |requests: &[Request]| -> f64 {
        requests.iter().map(inside).map(|(start, end)| (end - start).max(0.0)).sum()
    };
    let (mut both, mut at) = (0.0, 0);
    for request in one {
        // Requests of a task follow each other.
        while other.get(at).is_some_and(|other| other.end_ns <= request.start_ns) {
            at += 1;
        }
        let (start, end) = inside(request);
        let meeting = other[at..].iter().take_while(|other| other.start_ns < request.end_ns);
        both += meeting.map(inside).map(|(from, to)| (to.min(end) - from.max(start)).max(0.0)).sum::<f64>();
    }
    let window = (end - begin).max(1.0);
    let single = busy(one) + busy(other) - 2.0 * both;
    (single.max(0.0) / window, both / window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(times: &[(f64, f64)]) -> Vec<Request> {
        times
            .iter()
            .map(|(start_ns, end_ns)| Request { due_ns: *start_ns, start_ns: *start_ns, end_ns: *end_ns })
            .collect()
    }

    #[test]
    fn time_with_one_and_with_both_at_work() {
        let one = requests(&[(0.0, 10.0), (20.0, 30.0), (90.0, 120.0)]);
        let other = requests(&[(5.0, 25.0), (40.0, 50.0), (95.0, 99.0)]);
        // Both: 5 to 10, 20 to 25, 95 to 99. One: the rest of 10 + 10 + 10 and of 20 + 10 + 4.
        let (single, both) = overlap(&one, &other, (0.0, 100.0));
        assert!((both - 0.14).abs() < 1e-12 && (single - 0.36).abs() < 1e-12, "{single} {both}");
        assert_eq!(overlap(&one, &[], (0.0, 100.0)), (0.3, 0.0));
        let (single, both) = overlap(&one, &one, (0.0, 100.0));
        assert!((both - 0.3).abs() < 1e-12 && single < 1e-12);
    }
}
