//! Jobs on the placement's seats: a pinned process each, that work through the same windows.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use anyhow::{Context, bail};

use super::job::{Job, Window, Work};
use super::target::Target;
use crate::buckets::{Buckets, WORDS};
use model::{Case, CpuSet, Histogram};
use sys::clock::Clock;
use sys::shared::SharedWords;
use sys::team::{Body, Team};

pub struct Crew {
    team: Team,
    board: Rc<SharedWords>,
    jobs: usize,
}

// What a round asks for: in the highest byte of its argument.
const BEGIN: u64 = 1 << 56;
const WINDOW: u64 = 2 << 56;
const FORGET: u64 = 3 << 56;
const REPORT: u64 = 4 << 56;
const VALUE: u64 = (1 << 56) - 1;

/// Answers of a job.
const RIGHT: u64 = 0;
const WRONG: u64 = 1;

// A job's place on the board: a window's result, words of an error (their number of bytes first),
// latencies, whether its buffers were refused.
const RESULT: usize = 4;
const TEXT: usize = 64;
const UNREGISTERED: usize = RESULT + TEXT + WORDS;
const PLACE: usize = UNREGISTERED + 4;

/// A job in its process.
struct Worker {
    target: (std::os::fd::OwnedFd, u64),
    bytes: u64,
    works: Vec<Work>,
    clock: Clock,
    seed: u64,
    job: Option<Job>,
    board: Rc<SharedWords>,
    place: usize,
}

impl Worker {
    fn obey(&mut self, argument: u64) -> u64 {
        let value = argument & VALUE;
        let result = match argument & !VALUE {
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
        match result {
            Ok(()) => RIGHT,
            Err(words) => {
                self.complain(&words);
                WRONG
            }
        }
    }

    fn begin(&mut self, index: usize) -> Result<(), String> {
        // The one before goes first, with its buffers.
        self.job = None;
        let mut work = *self.works.get(index).ok_or("there is no such point")?;
        work.seed ^= self.seed;
        let file = self.target.0.try_clone().map_err(|error| error.to_string())?;
        let job = Job::new(work, (file, self.target.1), self.bytes, self.clock);
        let job = job.map_err(|error| format!("cannot set up I/O: {error:#}"))?;
        let told = self.board.word(self.place + UNREGISTERED);
        told.store(u64::from(job.is_unregistered()), Ordering::Relaxed);
        self.job = Some(job);
        Ok(())
    }

    fn window(&mut self, ns: f64) -> Result<(), String> {
        let window = self.job.as_mut().ok_or("a window before its point")?.window(ns)?;
        let words = [window.reads, window.writes, window.ns.to_bits(), window.cpu_ms.to_bits()];
        for (index, word) in words.into_iter().enumerate() {
            self.board.word(self.place + index).store(word, Ordering::Relaxed);
        }
        Ok(())
    }

    fn report(&mut self) {
        if let Some(job) = &self.job {
            for (index, word) in job.latencies.words().enumerate() {
                self.board.word(self.place + RESULT + TEXT + index).store(word, Ordering::Relaxed);
            }
        }
        // What is in flight comes back, and the buffers go.
        self.job = None;
    }

    fn complain(&self, words: &str) {
        let bytes = &words.as_bytes()[..words.len().min((TEXT - 1) * 8)];
        let at = self.place + RESULT;
        for (index, piece) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.board.word(at + 1 + index).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.board.word(at).store(bytes.len() as u64, Ordering::Relaxed);
    }
}

impl Crew {
    /// A job on each seat of the case, that can do these works.
    pub fn start(case: &Case, target: &Target, works: &[Work], clock: Clock) -> anyhow::Result<Crew> {
        let seats: Vec<CpuSet> = case.placement.seats.iter().map(|seat| seat.cpus.clone()).collect();
        let jobs = seats.len();
        let board = Rc::new(SharedWords::new(jobs * PLACE).context("no memory for what jobs tell")?);
        let build = |index: usize| -> anyhow::Result<Body> {
            let mut worker = Worker {
                target: target.open(index)?,
                bytes: target.bytes,
                works: works.to_vec(),
                clock,
                seed: (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                job: None,
                board: Rc::clone(&board),
                place: index * PLACE,
            };
            Ok(Box::new(move |argument| worker.obey(argument)))
        };
        let team = Team::start(&seats, clock, build)?;
        Ok(Crew { team, board, jobs })
    }

    fn round(&mut self, argument: u64) -> anyhow::Result<()> {
        let laps = self.team.round(argument)?;
        match laps.iter().position(|lap| lap.answer != RIGHT) {
            None => Ok(()),
            Some(job) => bail!(self.words_of(job)),
        }
    }

    /// What went wrong in a job.
    fn words_of(&self, job: usize) -> String {
        let at = job * PLACE + RESULT;
        let length = (self.board.word(at).load(Ordering::Relaxed) as usize).min((TEXT - 1) * 8);
        let words = (0..TEXT - 1).map(|index| self.board.word(at + 1 + index).load(Ordering::Relaxed));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Makes ready for a work, by its place in the list.
    pub fn begin(&mut self, work: usize) -> anyhow::Result<()> {
        self.round(BEGIN | work as u64)
    }

    /// Whether the kernel refused the buffers of any job for the work that was begun last.
    pub fn is_unregistered(&self) -> bool {
        let refused = |job| self.board.word(job * PLACE + UNREGISTERED).load(Ordering::Relaxed) != 0;
        (0..self.jobs).any(refused)
    }

    /// A window of so many nanoseconds, of each job.
    pub fn window(&mut self, ns: f64) -> anyhow::Result<Vec<Window>> {
        self.round(WINDOW | (ns.max(0.0) as u64 & VALUE))?;
        let word = |job: usize, index: usize| self.board.word(job * PLACE + index).load(Ordering::Relaxed);
        let window = |job| Window {
            reads: word(job, 0),
            writes: word(job, 1),
            ns: f64::from_bits(word(job, 2)),
            cpu_ms: f64::from_bits(word(job, 3)),
        };
        Ok((0..self.jobs).map(window).collect())
    }

    /// Forgets the latencies so far: those of warming up.
    pub fn forget(&mut self) -> anyhow::Result<()> {
        self.round(FORGET)
    }

    /// Ends the work: the latencies of all jobs.
    pub fn report(&mut self) -> anyhow::Result<Histogram> {
        self.round(REPORT)?;
        let mut all = Buckets::new();
        for job in 0..self.jobs {
            let first = job * PLACE + RESULT + TEXT;
            all.add((0..WORDS).map(|index| self.board.word(first + index).load(Ordering::Relaxed)));
        }
        Ok(all.histogram())
    }
}
