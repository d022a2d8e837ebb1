//! A job that keeps a number of I/Os in flight: it submits the next when one completes (closed
//! loop).

use std::os::fd::OwnedFd;

use anyhow::{Context, bail};

use super::cases::Shape;
use super::engine::{Engine, Kind, complaint};
use super::pattern::{Next, Op, Pattern, Walk};
use crate::buckets::Buckets;
use sys::clock::{self, Clock};
use sys::file_map::drop_cached;
use sys::record;
use sys::uring::Done;

/// What a job is made of.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub walk: Walk,
    pub op: Op,
    pub kind: Kind,
    /// Past the page cache.
    pub direct: bool,
    pub shape: Shape,
    pub seed: u64,
}

record! {
    /// What a stretch of time came to.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Window {
        pub reads: u64,
        pub writes: u64,
        pub ns: f64,
        /// CPU time of this job's process meanwhile, ms.
        pub cpu_ms: f64,
    }
}

pub struct Job {
    engine: Engine,
    pattern: Pattern,
    clock: Clock,
    block: u32,
    /// Of each slot: when its I/O was asked for, and what it is.
    slots: Vec<(f64, Next)>,
    /// Slots whose next I/O is to be asked for.
    idle: Vec<u32>,
    done: Vec<Done>,
    pub latencies: Buckets,
    /// The end of the last sample.
    mark: Option<f64>,
    /// Stamped into buffers, so that no content is written twice.
    stamp: u64,
    /// The file, if sequential reads through the page cache shall find it out of it.
    cached: Option<OwnedFd>,
}

/// Written data differs from what was written before in each of these, bytes.
const STAMP_EVERY: usize = 4096;

impl Job {
    pub fn new(work: Work, (file, base): (OwnedFd, u64), bytes: u64, clock: Clock) -> anyhow::Result<Job> {
        let Work { walk, op, shape, seed, .. } = work;
        let reread = !work.direct && walk == Walk::Sequential && op == Op::Read;
        let cached = if reread { Some(file.try_clone()?) } else { None };
        let mut engine = Engine::new(work.kind, file, shape.block, shape.depth, false)?;
        let depth = engine.depth(shape.depth);
        if op.writes() {
            let mut random = fastrand::Rng::with_seed(seed);
            (0..depth).for_each(|slot| random.fill(engine.buffer(slot)));
        }
        let nothing = Next { write: false, offset: 0, first: false };
        Ok(Job {
            engine,
            pattern: Pattern::new(walk, op, shape.block, (base, bytes), seed),
            clock,
            block: shape.block as u32,
            slots: vec![(0.0, nothing); depth as usize],
            idle: (0..depth).rev().collect(),
            done: Vec::with_capacity(depth as usize),
            latencies: Buckets::new(),
            mark: None,
            stamp: seed,
            cached,
        })
    }

    /// Whether the kernel refused its buffers.
    pub fn is_unregistered(&self) -> bool {
        self.engine.note().is_some()
    }

    /// Asks for the next I/O of every idle slot. Each is submitted by itself, as soon as it stands
    /// (the last by the call that waits): submitted together, they reached the device late, which
    /// cost a guest's disk a tenth to a third of its rate.
    fn ask(&mut self, mut now: f64) -> std::io::Result<()> {
        while let Some(slot) = self.idle.pop() {
            let next = self.pattern.next();
            if next.first
                && let Some(file) = &self.cached
            {
                // What cannot be dropped shows itself in the device's share.
                let _ = drop_cached(file);
            }
            if next.write {
                self.stamp = self.stamp.wrapping_add(1);
                for unit in self.engine.buffer(slot).chunks_mut(STAMP_EVERY) {
                    unit[..8].copy_from_slice(&self.stamp.to_ne_bytes());
                }
            }
            self.slots[slot as usize] = (now, next);
            self.engine.push(slot, next.write, next.offset, self.block);
            if !self.idle.is_empty() {
                self.engine.enter(0, None)?;
                now = self.clock.now();
            }
        }
        Ok(())
    }

    /// Works until the first completion after `ns`. Samples follow each other without a gap: I/Os
    /// stay in flight. An error is the message of a failed I/O.
    pub fn window(&mut self, ns: f64) -> anyhow::Result<Window> {
        const FAILED: &str = "cannot wait for I/O";
        let cpu = || clock::own_usage().map(|usage| usage.cpu_ms).context(FAILED);
        let (mut window, cpu_before) = (Window::default(), cpu()?);
        let begin = self.clock.now();
        let start = *self.mark.get_or_insert(begin);
        self.ask(begin).context(FAILED)?;
        loop {
            self.engine.enter(1, None).context(FAILED)?;
            // One reading for all that came back together and for the first that follows them.
            let now = self.clock.now();
            self.engine.reap(&mut self.done);
            for (slot, result) in self.done.drain(..) {
                let (asked, Next { write, offset, .. }) = self.slots[slot as usize];
                if let Some(words) = complaint(write, offset, self.block, result) {
                    bail!(words);
                }
                self.latencies.record(now - asked);
                window.writes += u64::from(write);
                window.reads += u64::from(!write);
                self.idle.push(slot);
            }
            if now - begin >= ns && window.reads + window.writes > 0 {
                self.mark = Some(now);
                window.ns = now - start;
                break;
            }
            self.ask(now).context(FAILED)?;
        }
        // Blocking engines would start theirs in the next sample.
        if let Engine::Uring(_) = self.engine {
            let now = self.mark.unwrap_or(begin);
            self.ask(now).context(FAILED)?;
            self.engine.enter(0, None).context(FAILED)?;
        }
        window.cpu_ms = cpu()? - cpu_before;
        Ok(window)
    }
}
