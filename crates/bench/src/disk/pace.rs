//! I/Os that fall due at a fixed rate, whatever became of the earlier ones: `disk.paced`.

use std::num::NonZeroU64;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::cases::{paced_length, params};
use super::engine::{Engine, complaint};
use super::pattern::{Next, Pattern, Walk};
use super::report::{self, Watch};
use super::stream::Plan;
use super::target::Target;
use crate::Sampler;
use crate::buckets::Buckets;
use model::vocabulary::disk as ids;
use model::{Case, Value};
use sys::clock::{self, Clock};
use sys::sched;
use sys::uring::Done;

/// What I/Os are asked of: slots, and a clock of its own. A test's has no device behind it.
trait Lane {
    /// ns.
    fn now(&mut self) -> f64;
    /// Asks for an I/O in a slot that is free.
    fn ask(&mut self, slot: u32) -> anyhow::Result<()>;
    /// Waits until something came back or the time has come, whichever is first; the slots that
    /// came back.
    fn wait(&mut self, until: f64, back: &mut Vec<u32>) -> anyhow::Result<()>;
}

/// What became of I/Os that fell due.
struct Outcome {
    /// From when each was due; of those still open at the end, as long as they had waited.
    latencies: Buckets,
    /// Came back before the end of the time in which they fell due.
    in_time: u64,
    asked: u64,
    /// Not back at the end.
    open: u64,
    end: f64,
}

/// Number k falls due `interval` ns after number k - 1; `count` of them, in `slots` slots, given up
/// at `limit` ns after the first.
fn drive(lane: &mut impl Lane, interval: f64, count: u64, slots: u32, limit: f64) -> anyhow::Result<Outcome> {
    let begin = lane.now();
    let due = |number: u64| begin + number as f64 * interval;
    let (over, end) = (due(count), begin + limit);
    let mut idle: Vec<u32> = (0..slots).rev().collect();
    // Of each slot the number of its I/O.
    let mut flying: Vec<Option<u64>> = vec![None; slots as usize];
    let (mut latencies, mut in_time, mut next, mut in_flight) = (Buckets::new(), 0, 0, 0u64);
    let mut back = Vec::new();
    loop {
        let now = lane.now();
        if now >= end || (next == count && in_flight == 0) {
            break;
        }
        while next < count && due(next) <= now {
            let Some(slot) = idle.pop() else { break };
            lane.ask(slot)?;
            flying[slot as usize] = Some(next);
            next += 1;
            in_flight += 1;
        }
        // What is due already and finds no slot waits for one.
        let until = if next < count && !idle.is_empty() { due(next).min(end) } else { end };
        lane.wait(until, &mut back)?;
        let now = lane.now();
        for slot in back.drain(..) {
            let number =
                flying[slot as usize].take().context("a completion for an I/O that was not submitted")?;
            latencies.record(now - due(number));
            in_time += u64::from(now <= over);
            in_flight -= 1;
            idle.push(slot);
        }
    }
    let now = lane.now();
    // Users are still waiting for these.
    let mut open = 0;
    for number in flying.into_iter().flatten().chain((next..count).filter(|number| due(*number) <= now)) {
        latencies.record(now - due(number));
        open += 1;
    }
    Ok(Outcome { latencies, in_time, asked: next, open, end: now })
}

/// The real one.
struct Disk {
    engine: Engine,
    pattern: Pattern,
    clock: Clock,
    block: u32,
    slots: Vec<Next>,
    done: Vec<Done>,
    in_flight: u32,
    pushed: bool,
    reads: u64,
    writes: u64,
    stamp: u64,
}

/// Nanoseconds before an I/O is due that are not slept: waking up would make it late.
const SPIN_NS: f64 = 30_000.0;

impl Disk {
    fn collect(&mut self, back: &mut Vec<u32>) -> anyhow::Result<()> {
        self.engine.reap(&mut self.done);
        for (slot, result) in self.done.drain(..) {
            let Next { write, offset, .. } = self.slots[slot as usize];
            if let Some(words) = complaint(write, offset, self.block, result) {
                bail!(words);
            }
            self.in_flight -= 1;
            back.push(slot);
        }
        Ok(())
    }
}

impl Lane for Disk {
    fn now(&mut self) -> f64 {
        self.clock.now()
    }

    fn ask(&mut self, slot: u32) -> anyhow::Result<()> {
        let next = self.pattern.next();
        if next.write {
            self.stamp = self.stamp.wrapping_add(1);
            self.engine.buffer(slot)[..8].copy_from_slice(&self.stamp.to_ne_bytes());
        }
        self.writes += u64::from(next.write);
        self.reads += u64::from(!next.write);
        self.slots[slot as usize] = next;
        self.engine.push(slot, next.write, next.offset, self.block);
        self.in_flight += 1;
        self.pushed = true;
        Ok(())
    }

    fn wait(&mut self, until: f64, back: &mut Vec<u32>) -> anyhow::Result<()> {
        let failed = "cannot wait for I/O";
        if let Engine::Psync(_) = self.engine
            && self.in_flight > 0
        {
            // It blocks, and what falls due meanwhile is late.
            self.engine.enter(1, None).context(failed)?;
        } else if std::mem::take(&mut self.pushed) {
            self.engine.enter(0, None).context(failed)?;
        }
        loop {
            self.collect(back)?;
            let left = until - self.clock.now();
            if !back.is_empty() || left <= 0.0 {
                return Ok(());
            }
            if left <= SPIN_NS {
                std::hint::spin_loop();
                continue;
            }
            let pause = Duration::from_nanos((left - SPIN_NS) as u64);
            match self.in_flight {
                0 => std::thread::sleep(pause),
                _ => self.engine.enter(1, Some(pause)).context(failed)?,
            }
        }
    }
}

/// In flight at most.
const SLOTS: u32 = 256;

/// I/Os still open this long after the last was due are given up: a share of the time before, and s
/// at least.
const PATIENCE: f64 = 0.5;
const PATIENCE_LEAST_S: f64 = 1.0;

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let rate = case.params.get(ids::param::RATE).and_then(Value::number).filter(|rate| *rate > 0.0);
    let rate = rate.context("the case has no rate")?;
    let plan = Plan::of(case, sampler)?;
    let shape = plan.shapes[0];
    let (count, seconds) = paced_length(case, rate);
    let (clock, seed) = (sampler.clock(), sampler.seed());
    let target = Target::prepare(case, 1, plan.direct, seed)?;
    sampler.facts().notes.extend(target.words());
    sched::set_timer_slack(NonZeroU64::MIN).context("cannot set the timer slack")?;
    let (file, base) = target.open(0)?;
    let mut engine = Engine::new(plan.kind, file, shape.block, SLOTS, true).context("cannot set up I/O")?;
    sampler.facts().notes.extend(engine.note().map(str::to_string));
    let slots = engine.depth(SLOTS);
    if plan.op.writes() {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..slots).for_each(|slot| random.fill(engine.buffer(slot)));
    }
    let nothing = Next { write: false, offset: 0, first: false };
    let mut disk = Disk {
        engine,
        pattern: Pattern::new(Walk::Random, plan.op, shape.block, (base, target.bytes), seed),
        clock,
        block: shape.block as u32,
        slots: vec![nothing; slots as usize],
        done: Vec::new(),
        in_flight: 0,
        pushed: false,
        reads: 0,
        writes: 0,
        stamp: seed,
    };
    // The first few find what was never used before.
    drive(&mut disk, 1e9 / rate, 16.min(count), slots, 1e9)?;
    ensure!(disk.in_flight == 0, "the device did not answer 16 I/Os within a second");
    (disk.reads, disk.writes) = (0, 0);
    let mut watch = Watch::new(target.counters(), clock);
    let (cpu, begin) = (clock::own_usage()?.cpu_ms, clock.now());
    let limit = seconds + (seconds * PATIENCE).max(PATIENCE_LEAST_S);
    let outcome = drive(&mut disk, 1e9 / rate, count, slots, limit * 1e9)?;
    let ns = outcome.end - begin;
    let block = shape.block as f64;
    let done = report::Done {
        ios: (disk.reads + disk.writes) as f64,
        read_bytes: disk.reads as f64 * block,
        written_bytes: disk.writes as f64 * block,
        cpu_ms: clock::own_usage()?.cpu_ms - cpu,
        seats_ms: ns / 1e6,
    };
    if outcome.open > 0 {
        let (asked, open) = (outcome.asked, outcome.open);
        sampler.facts().notes.push(format!(
            "{open} of {count} I/Os were open {:.1} s after the last was due ({asked} submitted): choose a lower rate",
            limit - seconds
        ));
    }
    let at = params(case.id(), shape);
    let achieved = (vec![outcome.in_time as f64], vec![seconds * 1e9]);
    sampler.windows_timed(at.clone(), ids::metric::ACHIEVED, achieved, 0)?;
    report::beside(sampler, &at, done, &mut watch)?;
    report::latencies(sampler, &at, outcome.latencies.histogram(), ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A device that answers one after the other, each in `service` ns, and not at all during its
    /// stall.
    struct Planted {
        now: f64,
        service: f64,
        stall: (f64, f64),
        free_at: f64,
        queue: VecDeque<(f64, u32)>,
        most: usize,
    }

    impl Planted {
        fn new(service: f64, stall: (f64, f64)) -> Planted {
            Planted { now: 0.0, service, stall, free_at: 0.0, queue: VecDeque::new(), most: 0 }
        }
    }

    impl Lane for Planted {
        fn now(&mut self) -> f64 {
            self.now
        }

        fn ask(&mut self, slot: u32) -> anyhow::Result<()> {
            let mut done = self.free_at.max(self.now) + self.service;
            if done > self.stall.0 && done < self.stall.1 + self.service {
                done = self.stall.1 + self.service;
            }
            self.free_at = done;
            self.queue.push_back((done, slot));
            self.most = self.most.max(self.queue.len());
            Ok(())
        }

        fn wait(&mut self, until: f64, back: &mut Vec<u32>) -> anyhow::Result<()> {
            match self.queue.front() {
                Some((done, slot)) if *done <= until => {
                    self.now = self.now.max(*done);
                    back.push(*slot);
                    self.queue.pop_front();
                }
                _ => self.now = self.now.max(until),
            }
            Ok(())
        }
    }

    const MS: f64 = 1e6;

    #[test]
    fn a_quiet_device_answers_in_its_own_time() {
        let mut lane = Planted::new(0.1 * MS, (0.0, 0.0));
        let outcome = drive(&mut lane, MS, 1000, 32, 3000.0 * MS).expect("driven");
        let histogram = outcome.latencies.histogram();
        assert_eq!((histogram.total(), outcome.in_time, outcome.open, lane.most), (1000, 1000, 0, 1));
        let all = [0.5, 0.99, 1.0].map(|q| histogram.quantile(q).expect("some") / (0.1 * MS));
        assert!(all.iter().all(|share| (0.99..1.01).contains(share)), "{all:?}");
    }

    #[test]
    fn a_stall_is_felt_by_all_that_fall_due_meanwhile() {
        // 100 ms of a second: a closed loop would see one slow I/O of a thousand, and a p99 of 0.1
        // ms.
        let mut lane = Planted::new(0.1 * MS, (400.0 * MS, 500.0 * MS));
        let outcome = drive(&mut lane, MS, 1000, 256, 3000.0 * MS).expect("driven");
        let histogram = outcome.latencies.histogram();
        let quantile = |q| histogram.quantile(q).expect("some") / MS;
        assert_eq!((histogram.total(), outcome.open), (1000, 0));
        assert!((99.0..102.0).contains(&quantile(1.0)), "{}", quantile(1.0));
        // Of 100 that fell due, each waited 1 ms less than the one before: ten of them over 90 ms.
        assert!((85.0..95.0).contains(&quantile(0.99)), "{}", quantile(0.99));
        assert!(quantile(0.5) < 0.2);
        assert!(lane.most > 90, "{}", lane.most);
        // With few slots what is due waits outside, and its time runs all the same.
        let mut narrow = Planted::new(0.1 * MS, (400.0 * MS, 500.0 * MS));
        let few = drive(&mut narrow, MS, 1000, 2, 3000.0 * MS).expect("driven").latencies.histogram();
        assert!((85.0..95.0).contains(&(few.quantile(0.99).expect("some") / MS)) && narrow.most == 2);
    }

    #[test]
    fn a_device_that_is_too_slow_or_silent_ends_and_counts_what_waits() {
        let mut slow = Planted::new(4.0 * MS, (0.0, 0.0));
        let outcome = drive(&mut slow, MS, 1000, 8, 1500.0 * MS).expect("driven");
        assert!((240..=260).contains(&outcome.in_time), "{}", outcome.in_time);
        let histogram = outcome.latencies.histogram();
        assert_eq!(histogram.total(), 1000, "those that never were asked for count, too");
        assert!(histogram.quantile(0.5).is_some_and(|ns| ns > 500.0 * MS));
        let mut silent = Planted::new(MS, (10.0 * MS, f64::INFINITY));
        let outcome = drive(&mut silent, MS, 100, 8, 1100.0 * MS).expect("driven");
        assert!(outcome.open > 85 && outcome.latencies.histogram().total() == 100);
        assert!(outcome.end >= 1100.0 * MS);
    }
}
