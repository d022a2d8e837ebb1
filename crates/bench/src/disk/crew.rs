//! Jobs on the placement's seats: one pinned process each; all measure the same samples.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use anyhow::Context;

use super::job::{Job, Window, Work};
use super::target::Target;
use crate::buckets::Buckets;
use model::{Case, CpuSet, Histogram};
use sys::clock::Clock;
use sys::crew::{Body, Lines, Notice, Slots, Team};

pub struct Crew {
    team: Team,
    board: Rc<Board>,
    jobs: usize,
}

// What a round asks for: in the highest byte of its argument.
const BEGIN: u64 = 1 << 56;
const WINDOW: u64 = 2 << 56;
const FORGET: u64 = 3 << 56;
const REPORT: u64 = 4 << 56;
const VALUE: u64 = (1 << 56) - 1;

/// What each job reports, at its own place.
struct Board {
    windows: Slots<Window>,
    /// Whether its buffers were refused.
    unregistered: Lines,
    latencies: Slots<Buckets>,
    notice: Notice,
}

/// A job in its process.
struct Worker {
    target: (std::os::fd::OwnedFd, u64),
    bytes: u64,
    works: Vec<Work>,
    clock: Clock,
    seed: u64,
    job: Option<Job>,
    board: Rc<Board>,
    place: usize,
}

impl Worker {
    fn obey(&mut self, argument: u64) -> u64 {
        let value = argument & VALUE;
        let done = match argument & !VALUE {
            BEGIN => self.begin(value as usize),
            WINDOW => self.window(value as f64),
            FORGET => {
                self.job.iter_mut().for_each(|job| job.latencies.clear());
                Ok(())
            }
            _ => {
                self.report();
                Ok(())
            }
        };
        if let Err(error) = done {
            self.board.notice.leave(&error);
        }
        0
    }

    fn begin(&mut self, index: usize) -> anyhow::Result<()> {
        // The one before goes first, with its buffers.
        self.job = None;
        let mut work = *self.works.get(index).context("unknown point")?;
        work.seed ^= self.seed;
        let file = self.target.0.try_clone()?;
        let job =
            Job::new(work, (file, self.target.1), self.bytes, self.clock).context("cannot set up I/O")?;
        self.board.unregistered[self.place].store(u64::from(job.is_unregistered()), Ordering::Relaxed);
        self.job = Some(job);
        Ok(())
    }

    fn window(&mut self, ns: f64) -> anyhow::Result<()> {
        let window = self.job.as_mut().context("a sample came before its point")?.window(ns)?;
        self.board.windows.put(self.place, 0, &window);
        Ok(())
    }

    fn report(&mut self) {
        if let Some(job) = &self.job {
            self.board.latencies.put(self.place, 0, &job.latencies);
        }
        // What is in flight comes back, and the buffers go.
        self.job = None;
    }
}

impl Crew {
    /// A job on each seat of the case, that can do these works.
    pub fn start(case: &Case, target: &Target, works: &[Work], clock: Clock) -> anyhow::Result<Crew> {
        let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
        let jobs = seats.len();
        let board = Rc::new(Board {
            windows: Slots::new(jobs, 1)?,
            unregistered: Lines::new(jobs)?,
            latencies: Slots::new(jobs, 1)?,
            notice: Notice::new()?,
        });
        let build = |index: usize| -> anyhow::Result<Body> {
            let mut worker = Worker {
                target: target.open(index)?,
                bytes: target.bytes,
                works: works.to_vec(),
                clock,
                seed: (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                job: None,
                board: Rc::clone(&board),
                place: index,
            };
            Ok(Box::new(move |argument| worker.obey(argument)))
        };
        let team = Team::start(&seats, clock, build)?;
        Ok(Crew { team, board, jobs })
    }

    fn round(&mut self, argument: u64) -> anyhow::Result<()> {
        self.team.round(argument)?;
        self.board.notice.check()
    }

    /// Makes ready for a work, by its place in the list.
    pub fn begin(&mut self, work: usize) -> anyhow::Result<()> {
        self.round(BEGIN | work as u64)
    }

    /// Whether the kernel refused the buffers of any job for the work that was begun last.
    pub fn is_unregistered(&self) -> bool {
        (0..self.jobs).any(|job| self.board.unregistered[job].load(Ordering::Relaxed) != 0)
    }

    /// A sample of this many nanoseconds, of each job.
    pub fn window(&mut self, ns: f64) -> anyhow::Result<Vec<Window>> {
        self.round(WINDOW | (ns.max(0.0) as u64 & VALUE))?;
        Ok((0..self.jobs).map(|job| self.board.windows.get(job, 0)).collect())
    }

    /// Forgets the latencies so far: those of warming up.
    pub fn forget(&mut self) -> anyhow::Result<()> {
        self.round(FORGET)
    }

    /// Ends the work: the latencies of all jobs.
    pub fn report(&mut self) -> anyhow::Result<Histogram> {
        self.round(REPORT)?;
        let mut all = Buckets::new();
        (0..self.jobs).for_each(|job| all.add(&self.board.latencies.get(job, 0)));
        Ok(all.histogram())
    }
}
