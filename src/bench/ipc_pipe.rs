//! Two processes that play ping-pong over two pipes, wherever they may sit.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};

use super::{
    Benchmark, Candidate, Depth, Point, Sampler, Scope, View, check_answer, histogram, single_point,
};
use crate::model::{Better, Case, Form, Histogram, Metric, Params};
use crate::placement::Distance;
use crate::sys::affinity;
use crate::sys::clock::Clock;
use crate::sys::process::{self, Child};
use crate::sys::shared::{SharedWords, WORDS_PER_LINE};
use crate::sys::token::{receive, send};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "ipc.pipe-pingpong",
    title: "Pipe ping-pong",
    about: "Two processes pass one token of 8 bytes to and fro over two pipes (the shape of UnixBench's pipe-based \
            context switching): each write wakes the partner, each read sleeps until the token is back. The partner \
            adds one to the token each time and the count is checked. Measured with both on one CPU, pinned to two \
            CPUs at each distance that this machine has, and free to run where the scheduler puts them; for the free \
            pair the share of round trips with both on one CPU is sampled.",
    reading: "A placement's figure is the kernel's cost of a wake-up and a switch there. The free figure is a mix of \
              the pinned ones and says more of the scheduler's choice than of the CPU: never compare machines by it. \
              The high score may be the worse system: on one CPU the woken task waits for its waker to go to sleep, \
              which the wake-up latency beside it shows for tasks that do more than pass a token.",
    source: file!(),
    metrics: &[
        Metric::new(
            "round_trips",
            "round trips a second",
            "1/s",
            Better::Higher,
            Form::WorkPerTime { scale: 1e9 },
        ),
        Metric::new(
            "wakeup_p50",
            "wake-up latency, median",
            "us",
            Better::Lower,
            Form::Quantile { q: 0.5, scale: 1e-3 },
        )
        .aside(),
        Metric::new(
            "wakeup_p99",
            "wake-up latency, 99th percentile",
            "us",
            Better::Lower,
            Form::Quantile { q: 0.99, scale: 1e-3 },
        )
        .aside(),
        Metric::new("same_cpu_share", "round trips with both on one CPU", "", Better::Neither, Form::Value)
            .aside(),
    ],
    params: &[],
    view: &View::Table,
    from: Depth::Quick,
    hidden: false,
    cases,
    points: single_point,
    run,
}];

const ROLES: [&str; 2] = ["ping", "pong"];

/// A round trip takes 2 to 100 µs and a free pair changes its placement every few ms: windows ten times the usual.
const STRETCH: f64 = 10.0;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let seconds = scope.seconds(2, STRETCH, 0.0);
    let free = scope.floor.free(&ROLES);
    let mut candidates = vec![match free {
        Ok(free) => Candidate::new(bench.id, free, 85, seconds),
        Err(why) => return vec![Candidate::unmet(bench.id, "free", why)],
    }];
    let pairs = scope.floor.pairs(ROLES);
    // `other-cpu` stands in where the kernel tells nothing; missing it is no lack.
    let wanted = pairs.into_iter().filter(|(distance, pair)| *distance != Distance::OtherCpu || pair.is_ok());
    candidates.extend(wanted.map(|(distance, pair)| match pair {
        Ok(placement) => Candidate::new(bench.id, placement, 85, seconds),
        Err(why) => Candidate::unmet(bench.id, distance.name(), why),
    }));
    candidates
}

/// Where each of the two is, is noted every so many round trips: often enough to see a free pair move, seldom enough
/// (20 ns in 64 × 2 µs) to cost nothing.
const LOOK_EVERY: u64 = 64;

/// Round trips whose wake-up latency is taken in one window.
const STAMPS: usize = 2048;

/// What the pair shares: pong's CPU, and the latencies that pong saw.
struct Table {
    words: SharedWords,
}

impl Table {
    fn pong_cpu(&self) -> &AtomicU64 {
        self.words.word(0)
    }

    /// Above 0: tokens are clock readings, whose age pong notes from index 0 on whenever this number changes.
    fn stamped(&self) -> &AtomicU64 {
        self.words.word(WORDS_PER_LINE)
    }

    fn age(&self, index: usize) -> &AtomicU64 {
        self.words.word(2 * WORDS_PER_LINE + index % STAMPS)
    }
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let clock = sampler.clock();
    let mut pair = Pair::start(case, clock)?;
    let mut trip_ns = f64::INFINITY;
    sampler.time_by(Point::new("round_trips", 1.0).stretch(STRETCH), |trips| {
        let ns = pair.play(trips, clock)?;
        trip_ns = ns / trips as f64;
        Ok(ns)
    })?;
    if let Some(share) = pair.same_cpu_share() {
        sampler.value(Params::new(), "same_cpu_share", share, 0.0)?;
    }
    let trips = (4e6 / trip_ns).clamp(64.0, STAMPS as f64) as usize;
    sampler.histograms(Params::new(), &["wakeup_p50", "wakeup_p99"], || pair.wake_ups(trips, clock))?;
    pair.stop()
}

/// Ping's side of the pair; pong is a forked child.
struct Pair {
    to_pong: OwnedFd,
    from_pong: OwnedFd,
    table: Table,
    pong: Child,
    token: u64,
    looks: u64,
    looks_together: u64,
    stamped_windows: u64,
}

/// The token that ends the game. Counting from 0 never comes near it, clock readings neither.
const STOP: u64 = u64::MAX;

impl Pair {
    /// Makes the pipes, forks pong and seats both.
    fn start(case: &Case, clock: Clock) -> anyhow::Result<Pair> {
        let [ping_seat, pong_seat] = case.placement.seats.as_slice() else {
            bail!("a pair needs two seats, not {}", case.placement.seats.len());
        };
        let (pong_reads, to_pong) = rustix::pipe::pipe().context("cannot make a pipe")?;
        let (from_pong, pong_writes) = rustix::pipe::pipe().context("cannot make a pipe")?;
        let table = Table { words: SharedWords::new(2 * WORDS_PER_LINE + STAMPS)? };
        let pong = process::fork(|| {
            let seated = affinity::pin(&pong_seat.cpus).is_ok();
            match seated && pong(pong_reads.as_fd(), pong_writes.as_fd(), &table, clock).is_ok() {
                true => 0,
                false => 1,
            }
        })
        .context("cannot fork the partner")?;
        affinity::pin(&ping_seat.cpus).with_context(|| format!("cannot pin to CPUs {}", ping_seat.cpus))?;
        // Ours of pong's ends close here: when pong dies, reading ends with an error instead of a wait.
        drop((pong_reads, pong_writes));
        Ok(Pair {
            to_pong,
            from_pong,
            table,
            pong,
            token: 0,
            looks: 0,
            looks_together: 0,
            stamped_windows: 0,
        })
    }

    /// Plays `trips` round trips; returns how long they took, ns.
    fn play(&mut self, trips: u64, clock: Clock) -> anyhow::Result<f64> {
        let begin = clock.now();
        for _ in 0..trips {
            send(self.to_pong.as_fd(), self.token)?;
            let answer = receive(self.from_pong.as_fd())?;
            if answer != self.token + 1 {
                check_answer(false, || format!("token {} came back as {answer}", self.token))?;
            }
            self.token = answer;
            if self.token.is_multiple_of(LOOK_EVERY) {
                self.looks += 1;
                let here = affinity::current_cpu().map_or(0, u64::from);
                self.looks_together += u64::from(self.table.pong_cpu().load(Ordering::Relaxed) == here);
            }
        }
        Ok(clock.now() - begin)
    }

    fn same_cpu_share(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.looks_together as f64 / self.looks as f64)
    }

    /// How long pong took to run after each of `trips` writes: the write, the wake-up and the switch, as pong's clock
    /// saw it.
    fn wake_ups(&mut self, trips: usize, clock: Clock) -> anyhow::Result<(Histogram, f64)> {
        self.stamped_windows += 1;
        self.table.stamped().store(self.stamped_windows, Ordering::Release);
        let begin = clock.now();
        for _ in 0..trips {
            let stamp = clock.now().to_bits();
            send(self.to_pong.as_fd(), stamp)?;
            let answer = receive(self.from_pong.as_fd())?;
            check_answer(answer == stamp + 1, || format!("stamp {stamp} came back as {answer}"))?;
        }
        let ns = clock.now() - begin;
        self.table.stamped().store(0, Ordering::Release);
        let ages = (0..trips).map(|index| self.table.age(index).load(Ordering::Acquire));
        Ok((histogram(ages)?, ns))
    }

    fn stop(mut self) -> anyhow::Result<()> {
        send(self.to_pong.as_fd(), STOP)?;
        let status = self.pong.wait(Duration::from_secs(5)).context("while the partner ends")?;
        check_answer(status.success(), || format!("the partner ended with {status}"))
    }
}

/// Pong's side: adds one to each token and sends it back.
fn pong(from: BorrowedFd, to: BorrowedFd, table: &Table, clock: Clock) -> anyhow::Result<()> {
    let (mut window, mut stamps) = (0, 0);
    loop {
        let token = receive(from)?;
        if token == STOP {
            return Ok(());
        }
        let stamped = table.stamped().load(Ordering::Acquire);
        if stamped > 0 {
            stamps = if stamped == window { stamps + 1 } else { 0 };
            let age = (clock.now() - f64::from_bits(token)).max(0.0);
            table.age(stamps).store(age as u64, Ordering::Release);
        }
        window = stamped;
        // Ping looks after the answers that are multiples of LOOK_EVERY.
        if (token + 1) % LOOK_EVERY == 0 {
            table.pong_cpu().store(affinity::current_cpu().map_or(0, u64::from), Ordering::Relaxed);
        }
        send(to, token + 1)?;
    }
}
