//! The pipe ping-pong of two processes that have something to do: from how much work on two CPUs
//! are better than one.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::occupancy::{CLASS, OCCUPANCY};
use super::pair::{self, End, Pair, channel};
use super::sampler::core_clock_ghz;
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, point};
use crate::row::{latency_us, log_curve};
use kernels::{CHAIN_UNROLL, add_chain, add_chain_answer};
use model::vocabulary::ipc as ids;
use model::{Case, Metric, Params};
use sys::crew::Lines;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PIPE_WORK,
    title: "Pipe ping-pong with work",
    about: "Time of a pipe ping-pong round in which each process also works for a fixed time, on one CPU and on two.",
    reading: "Lower is better. With little work one CPU wins, because waking another CPU costs 5–50 µs, in guests up \
              to 100. Where the lines cross, working in parallel pays for the wake-up. Above that amount of work \
              real programs are faster on two CPUs. Far above it, two CPUs take half as long.",
    method: "The sender works before it waits for the answer, the receiver before it answers, so two CPUs can work \
             at once. The work is a chain of dependent additions in registers that takes work_ns at the core clock \
             measured when the pass began. The token and the sums are checked.",
    source: file!(),
    metrics: &[LATENCY, OCCUPANCY],
    params: &[Param::int(ids::param::WORK_NS, "work of each process in a round, ns", 1..=1 << 30), CLASS],
    view: &log_curve(ids::param::WORK_NS),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const LATENCY: Metric = latency_us(ids::metric::LATENCY, "round");

/// Less than a system call to a long time slice's beginning, ns.
const WORK_NS: [u64; 9] = [100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000];

/// Rounds that a sample has at least: a free pair moves within tens of them.
const MIN_ROUNDS: f64 = 16.0;
/// Longest wake-up of an idle CPU, ns, for the length of samples.
const DEAREST_WAKE_NS: f64 = 100e3;

fn window_ns(work_ns: u64) -> f64 {
    pair::WINDOW_NS.max(MIN_ROUNDS * (2.0 * work_ns as f64 + DEAREST_WAKE_NS))
}

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let seconds: f64 =
        WORK_NS.iter().map(|work| scope.seconds(1, window_ns(*work) / scope.windows.window_ns, 0.0)).sum();
    let mut candidates = pair::candidates(bench, scope, 0, pair::WINDOW_NS);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.unmet.is_none()) {
        (candidate.seconds, candidate.priority) = (seconds, 47);
    }
    candidates
}

fn points(_: &Case) -> Vec<Params> {
    WORK_NS.iter().map(|work| point(ids::param::WORK_NS, *work)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let lines = Rc::new(Lines::new(1)?);
    let ghz = core_clock_ghz(sampler.clock());
    let mut pair = Pair::start(&case.placement, sampler.clock(), || {
        let [ping, pong] = channel::pipes()?;
        let busy = |end, partner| WorkingEnd { end, lines: lines.clone(), partner };
        Ok([busy(ping, false), busy(pong, true)])
    })?;
    pair.spot.watch(case);
    lines[ROUNDS].store(1, Ordering::Release);
    pair.settle(&case.placement)?;
    for work in WORK_NS {
        let rounds = (work as f64 * ghz / CHAIN_UNROLL as f64).round().max(1.0) as u64;
        lines[ROUNDS].store(rounds, Ordering::Release);
        let at = point(ids::param::WORK_NS, work);
        let notes = pair.spot.notes(&at);
        let stretch = window_ns(work) / sampler.windows().window_ns;
        let latency = Point::new(ids::metric::LATENCY, 1.0).at(at).stretch(stretch);
        sampler.time_noting(latency, &notes, |trips| pair.window(trips))?;
    }
    pair.stop()
}

/// The shared line with the rounds of the chain that each works.
const ROUNDS: usize = 0;

/// An end whose owner works: ping after it has sent, pong before it answers.
struct WorkingEnd<E> {
    end: E,
    lines: Rc<Lines>,
    partner: bool,
}

impl<E> WorkingEnd<E> {
    /// An error when the sum is wrong: the game ends, and with it the pass.
    fn work(&self) -> io::Result<()> {
        let rounds = self.lines[ROUNDS].load(Ordering::Acquire);
        let sum = add_chain(rounds, 1, 3);
        match sum == add_chain_answer(rounds, 1, 3) {
            true => Ok(()),
            false => Err(io::Error::other(format!("{rounds} rounds of additions gave {sum}"))),
        }
    }
}

impl<E: End> End for WorkingEnd<E> {
    fn enter(&mut self) -> io::Result<()> {
        self.end.enter()
    }

    fn send(&mut self, token: u64) -> io::Result<()> {
        self.end.send(token)?;
        if self.partner { Ok(()) } else { self.work() }
    }

    fn receive(&mut self) -> io::Result<u64> {
        let token = self.end.receive()?;
        if self.partner {
            self.work()?;
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;

    #[test]
    fn rounds_with_more_work_take_longer_and_free_ones_are_looked_at() {
        for case in rehearsal::cases(ids::PIPE_WORK, Depth::Standard) {
            let samples = rehearsal::visit_all(&case);
            let form = LATENCY.form;
            let shortest = |work: u64| {
                let of = samples.iter().filter(|one| one.point == point(ids::param::WORK_NS, work));
                of.flat_map(|one| one.values(form)).fold(f64::INFINITY, f64::min)
            };
            // 200 us of work cannot be done in less than 20, however the clock moves.
            assert!(shortest(200_000) > 20.0, "{}: {} us", case.key(), shortest(200_000));
            let looked = samples.iter().any(|one| one.metrics == [ids::metric::OCCUPANCY]);
            assert_eq!(looked, case.placement.is_free(), "{}", case.key());
        }
    }
}
