//! Slowdown of two: whether two CPUs compute as fast together as each alone, which shows who shares
//! a core.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::tournament::{self, Pair};
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, check_answer};
use crate::row::{latency_ns, matrix};
use kernels::Arithmetic;
use model::vocabulary::cpu as ids;
use model::{Better, Case, CpuSet, Form, Metric, Params};
use sys::clock::Clock;
use sys::crew::{Lines, Partner, Wait};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PAIR_SLOWDOWN,
    title: "Slowdown of two CPUs",
    about: "How much slower a CPU adds integers while another CPU does the same. It shows which CPUs are threads of \
            one core, whatever the kernel reports.",
    reading: "1.0 means two cores. Two threads of one core slow each other 1.6–2.0 ×, at least 1.25 ×. Up to 1.1 × \
              for all pairs is a clock that falls when a second core works. All pairs near 2 × is a quota of one \
              CPU. One pair near 2 × that the kernel does not report as siblings is hidden SMT or a wrong numbering.",
    method: "Two processes add integers in eight independent streams, enough to use every adder of a core. Each \
             sample times one CPU alone, the other alone, then both at once. Both wait for each other before the \
             clock is read, and the first to end continues until the other ends. All pairs are measured up to 16 \
             CPUs. Above that, 12 pairs of each distance are measured, and for 12 CPUs the pairs that firmware \
             usually numbers as siblings. The sums are checked.",
    source: file!(),
    metrics: &[
        Metric::new(
            ids::metric::SLOWDOWN,
            "time together divided by time alone",
            "",
            Better::Lower,
            // The work of its samples is the time alone, so both times are kept.
            Form::TimePerWork { scale: 1.0 },
        ),
        latency_ns(ids::metric::ALONE, "time of an addition alone").aside(),
    ],
    params: &[
        Param::cpu(ids::param::FROM, "CPU that is timed"),
        Param::cpu(ids::param::TO, "CPU that computes at the same time"),
    ],
    view: &matrix(ids::param::FROM, ids::param::TO),
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const WORK: Arithmetic = Arithmetic::Int64Add;

/// Up to this many CPUs all pairs are measured.
const ALL_PAIRS: usize = 16;
/// Above that: pairs of each reported distance, and CPUs whose usual siblings are tried.
const EACH: usize = 12;

/// The loop alone takes this long, ns: some thousand times what starting together takes.
const WINDOW_NS: f64 = 300e3;
/// Waking two processes and reading their answers, ns; three times a sample.
const WAKE_NS: f64 = 100e3;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placement = scope.placements.all("task");
    let cpus = placement.cpus();
    if cpus.len() < 2 {
        let why = format!("needs two usable CPUs; {} found", cpus.len());
        return vec![Candidate::unmet(bench.id, "all", why)];
    }
    let sampled = (cpus.len() > ALL_PAIRS && !scope.all).then(|| sample(scope, &cpus));
    let count = sampled.as_ref().map_or(cpus.len() * (cpus.len() - 1) / 2, Vec::len);
    let windows = (scope.windows.count + scope.windows.warm_up) as f64;
    // Together, siblings take twice as long.
    let seconds = 0.005
        + cpus.len().min(2 * count) as f64 * 0.5e-3
        + count as f64 * windows * (4.0 * WINDOW_NS + 3.0 * WAKE_NS) / 1e9;
    let mut candidate = Candidate::new(bench.id, placement, 62, seconds);
    if let Some(pairs) = sampled {
        candidate.case.inputs.insert("pairs".into(), tournament::to_text(&pairs));
    }
    vec![candidate]
}

/// Pairs of every distance that the kernel reports, and those that firmware usually numbers as
/// siblings.
fn sample(scope: &Scope, cpus: &CpuSet) -> Vec<Pair> {
    let mut pairs = tournament::sample(scope.placements, EACH);
    let cpus: Vec<u32> = cpus.iter().collect();
    let half = cpus.len() / 2;
    let step = (half / EACH).max(1);
    for at in (0..half).step_by(step).take(EACH) {
        pairs.extend([(cpus[at], cpus[at + 1]), (cpus[at], cpus[at + half])]);
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn pairs_of(case: &Case) -> Vec<Pair> {
    match case.inputs.get("pairs") {
        Some(text) => tournament::from_text(text),
        None => tournament::every(&case.placement.cpus()),
    }
}

fn points(case: &Case) -> Vec<Params> {
    pairs_of(case).into_iter().flat_map(|(one, other)| [at(one, other), at(other, one)]).collect()
}

fn at(from: u32, to: u32) -> Params {
    Params::from([(ids::param::FROM, u64::from(from).into()), (ids::param::TO, u64::from(to).into())])
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let pairs = pairs_of(case);
    let mut crew = Crew::start(&pairs, sampler.clock())?;
    let (warm_up, count) = (sampler.windows().warm_up, sampler.windows().count);
    let (first, _) = *pairs.first().context("the case has no pair of CPUs")?;
    let rounds = crew.rounds_of(first)?;
    let additions = (rounds * WORK.stream_operations()) as f64;
    for (one, other) in pairs {
        let (mut alone, mut together) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for _ in 0..warm_up + count {
            for (cpu, times) in [one, other].into_iter().zip(&mut alone) {
                times.push(crew.compute(&[cpu], rounds)?[0]);
            }
            let both = crew.compute(&[one, other], rounds)?;
            together.iter_mut().zip(both).for_each(|(times, ns)| times.push(ns));
        }
        for ((point, alone), together) in
            [at(one, other), at(other, one)].into_iter().zip(alone).zip(together)
        {
            let work = vec![additions; alone.len()];
            sampler.windows_timed(
                point.clone(),
                ids::metric::SLOWDOWN,
                (alone.clone(), together),
                warm_up,
            )?;
            sampler.windows_timed(point, ids::metric::ALONE, (work, alone), warm_up)?;
        }
    }
    Ok(())
}

/// A process on each CPU, asleep unless it computes.
struct Crew {
    tasks: BTreeMap<u32, Partner>,
    /// How many have arrived and how many have ended, a line each; then a line with each CPU's
    /// time.
    lines: Lines,
}

const ARRIVED: usize = 0;
const ENDED: usize = 1;
const TIMES: usize = 2;

/// An order is the rounds to compute, and in the highest bits how many compute at once.
const ROUNDS_BITS: u32 = 48;
/// Answers of a task: right, a wrong sum, no partner.
const RIGHT: u64 = 0;
const WRONG: u64 = 1;
const ALONE: u64 = 2;
/// Who waits longer for its partner gives up. A hypervisor that steals a CPU gives it back sooner.
const LOST: Duration = Duration::from_secs(10);
/// Rounds between two checks whether the partner has ended: about 1 µs.
const LOOK: u64 = 64;

impl Crew {
    fn start(pairs: &[Pair], clock: Clock) -> anyhow::Result<Crew> {
        let cpus: CpuSet = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        let lines = Lines::new(TIMES + cpus.last().unwrap_or(0) as usize + 1)?;
        let mut tasks = BTreeMap::new();
        for cpu in cpus.iter() {
            let lines = &lines;
            let build = || {
                Ok(move |order: u64| {
                    let (rounds, crowd) = (order & ((1 << ROUNDS_BITS) - 1), order >> ROUNDS_BITS);
                    Ok(compute(lines, &lines[TIMES + cpu as usize], (rounds, crowd), clock))
                })
            };
            tasks.insert(cpu, Partner::start(&CpuSet::one(cpu), Wait::Sleep, build)?);
        }
        Ok(Crew { tasks, lines })
    }

    /// The number of rounds that fill about one sample on a CPU.
    fn rounds_of(&mut self, cpu: u32) -> anyhow::Result<u64> {
        let mut rounds = 1 << 10;
        loop {
            let ns = self.compute(&[cpu], rounds)?[0];
            if ns >= WINDOW_NS / 2.0 || rounds >= 1 << 32 {
                return Ok(((rounds as f64 * WINDOW_NS / ns.max(1.0)) as u64).max(1));
            }
            rounds *= 2;
        }
    }

    /// Lets these CPUs compute at once; how long each took, ns.
    fn compute(&mut self, cpus: &[u32], rounds: u64) -> anyhow::Result<Vec<f64>> {
        self.lines[ARRIVED].store(0, Ordering::Relaxed);
        self.lines[ENDED].store(0, Ordering::Release);
        for cpu in cpus {
            self.task(*cpu)?.give_order((cpus.len() as u64) << ROUNDS_BITS | rounds);
        }
        let mut times = Vec::with_capacity(cpus.len());
        for cpu in cpus {
            let answer = self.task(*cpu)?.answer()?;
            anyhow::ensure!(answer != ALONE, "the partner of CPU {cpu} did not start within {LOST:?}");
            check_answer(answer == RIGHT, || format!("CPU {cpu} computed wrong sums in {rounds} rounds"))?;
            times.push(f64::from_bits(self.lines[TIMES + *cpu as usize].load(Ordering::Acquire)));
        }
        Ok(times)
    }

    fn task(&mut self, cpu: u32) -> anyhow::Result<&mut Partner> {
        self.tasks.get_mut(&cpu).with_context(|| format!("no process runs on CPU {cpu}"))
    }
}

/// One task's part of a sample: waits for all, computes, and continues until all have ended.
fn compute(lines: &Lines, ns: &AtomicU64, (rounds, crowd): (u64, u64), clock: Clock) -> u64 {
    lines[ARRIVED].fetch_add(1, Ordering::AcqRel);
    let since = Instant::now();
    while lines[ARRIVED].load(Ordering::Acquire) < crowd {
        std::hint::spin_loop();
        if since.elapsed() > LOST {
            return ALONE;
        }
    }
    let begin = clock.now();
    let sums = WORK.streams(rounds, WORK.start());
    let took = clock.now() - begin;
    lines[ENDED].fetch_add(1, Ordering::AcqRel);
    ns.store(took.to_bits(), Ordering::Release);
    let since = Instant::now();
    while lines[ENDED].load(Ordering::Acquire) < crowd && since.elapsed() < LOST {
        std::hint::black_box(WORK.streams(LOOK, WORK.start()));
    }
    verdict(&sums, rounds)
}

fn verdict(sums: &[u64], rounds: u64) -> u64 {
    let right = WORK.stream_answer(rounds);
    if sums.iter().all(|sum| *sum == right) { RIGHT } else { WRONG }
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;
    use crate::placement::Placements;
    use machine::Machine;

    #[test]
    fn every_pair_is_timed_alone_and_together() {
        for case in rehearsal::cases(ids::PAIR_SLOWDOWN, Depth::Standard) {
            let samples = rehearsal::visit_all(&case);
            let of = |name: &str| samples.iter().filter(|one| one.metrics == [name]).count();
            assert_eq!((of("slowdown"), of("alone")), (points(&case).len(), points(&case).len()));
        }
    }

    #[test]
    fn wrong_sums_and_a_partner_that_does_not_come_are_noticed() {
        let mut sums = WORK.streams(9, WORK.start());
        assert_eq!(verdict(&sums, 9), RIGHT);
        sums[3] ^= 1;
        assert_eq!((verdict(&sums, 9), verdict(&[], 9)), (WRONG, RIGHT));
    }

    #[test]
    fn one_cpu_has_no_partner_and_many_are_sampled() {
        let planned = |cpus: u32| {
            let mut machine = Machine::default();
            machine.cpus.online = (0..cpus).collect();
            machine.cpus.allowed = (0..cpus).collect();
            let placements = Placements::of(&machine);
            let scope = Scope::new(&machine, &placements, Depth::Standard, 1 << 30);
            cases(&BENCHMARKS[0], &scope).remove(0)
        };
        assert!(planned(1).unmet.is_some_and(|why| why.contains("needs two usable CPUs")));
        assert_eq!(points(&planned(16).case).len(), 16 * 15);
        for cpus in [17, 64, 512] {
            let candidate = planned(cpus);
            let pairs = pairs_of(&candidate.case);
            assert!(pairs.len() <= 3 * EACH && pairs.len() >= 2 * EACH - 4, "{cpus}: {pairs:?}");
            assert!(pairs.contains(&(0, 1)) && pairs.contains(&(0, cpus / 2)), "{pairs:?}");
            assert!(candidate.seconds < 1.0, "{cpus} CPUs: {} s", candidate.seconds);
        }
    }
}
