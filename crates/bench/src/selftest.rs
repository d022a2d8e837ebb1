//! Hidden rows with planted faults: what the rest of the program does about them is tested with
//! these, for real. One has none: it shows whether the CPU's own counters count what was done.

use std::io::Write;
use std::time::Duration;

use super::{Benchmark, Point, Sampler, check_answer, one_pinned};
use crate::row::note;
use kernels::{self, CHAIN_UNROLL};
use model::vocabulary::selftest as ids;
use model::vocabulary::{BenchId, MetricId};
use model::{Better, Case, CpuSet, Form, Metric, Pages, Params};
use sys::core_counters::CoreCounters;
use sys::mapping::Mapping;

pub const BENCHMARKS: &[Benchmark] = &[
    row(ids::STEADY, "A clean case", |_, sampler| adds(sampler, 1.0)),
    row(ids::DRIFT, "A case that gets 2 % slower with every process", |_, sampler| {
        let slowness = 1.0 + 0.02 * f64::from(sampler.pass());
        adds(sampler, slowness)
    }),
    row(ids::MODES, "A case that is 1.4 times slower in a third of its processes", |_, sampler| {
        let slowness = if sampler.pass() % 3 == 1 { 1.4 } else { 1.0 };
        adds(sampler, slowness)
    }),
    row(ids::KNOBS, "A case that each of two knobs makes eight times slower", |case, sampler| {
        let turned =
            FELT.iter().filter(|(knob, felt)| case.knobs.get(*knob).is_some_and(|value| value == felt));
        adds(sampler, 8_f64.powi(turned.count() as i32))
    }),
    row(ids::WRONG_ANSWER, "A case whose answer is wrong", |_, sampler| {
        adds(sampler, 1.0)?;
        check_answer(false, || "planted: two and two made five".to_string())
    }),
    row(ids::TOO_FAST, "A case that reports work it did not do", |_, sampler| {
        sampler.time(Point::new(ids::metric::SPEED, CHAIN_UNROLL as f64 * 1e6), |n| {
            std::hint::black_box(kernels::add_chain(n, 1, 1));
        })?;
        Ok(())
    }),
    row(ids::CRASH, "A case that dies", |_, sampler| {
        adds(sampler, 1.0)?;
        std::process::abort()
    }),
    row(ids::KILLED, "A case that is killed", |_, _| {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
        Ok(())
    }),
    row(ids::HANG, "A case that never ends", |_, _| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }),
    row(ids::SPIN, "A case that computes without end", |_, _| {
        loop {
            std::hint::spin_loop();
        }
    }),
    row(ids::FAULT, "A case in which Assay has a fault", |_, _| panic!("planted")),
    row(ids::NO_MEMORY, "A case that asks for more memory than any machine has", |_, _| {
        std::hint::black_box(Vec::<u8>::with_capacity(1 << 62));
        Ok(())
    }),
    row(ids::GARBAGE, "A case whose output makes no sense", |_, sampler| {
        adds(sampler, 1.0)?;
        // Behind the sampler's back, into the same pipe.
        let mut out = std::fs::File::from(rustix::io::dup(rustix::stdio::stdout())?);
        out.write_all(b"{\"samples\":\x1b[31mno\xff\n")?;
        Ok(())
    }),
    row(ids::FLOOD, "A case that prints without end", |_, _| {
        let mut out = std::fs::File::from(rustix::io::dup(rustix::stdio::stdout())?);
        loop {
            out.write_all(&[b'x'; 65536])?;
        }
    }),
    row(ids::MEMORY, "A case that takes memory until it is killed", |_, _| {
        let mut taken = Vec::new();
        loop {
            let mut memory = Mapping::private(64 << 20, Pages::AsGiven, &CpuSet::default())?;
            memory.words_mut().fill(1);
            taken.push(memory);
        }
    }),
    Benchmark { metrics: COUNTED, ..row(ids::COUNTERS, "Instructions and cycles of a known loop", counted) },
];

/// Knobs, each with the value at which [`ids::KNOBS`] is slower.
const FELT: [(&str, &str); 2] = [("vm.swappiness", "10"), ("vm.dirty_ratio", "40")];

const METRICS: &[Metric] = &[SPEED];

const SPEED: Metric =
    Metric::new(ids::metric::SPEED, "additions", "1/ns", Better::Higher, Form::WorkPerTime { scale: 1.0 });

/// Of one round of additions: their number, an instruction that counts rounds, and a branch.
const COUNTED: &[Metric] = &[
    SPEED,
    of_a_round(ids::metric::INSTRUCTIONS, "instructions"),
    of_a_round(ids::metric::CYCLES, "core cycles"),
    of_a_round(ids::metric::IPC, "instructions per cycle"),
];

const fn of_a_round(name: MetricId, title: &'static str) -> Metric {
    note(name, title, "")
}

const fn row(
    id: BenchId,
    title: &'static str,
    run: fn(&Case, &mut Sampler) -> anyhow::Result<()>,
) -> Benchmark {
    Benchmark {
        id,
        title,
        about: "A planted fault for Assay's own tests. It shows how the measuring core handles a bad case and has no \
                meaning for the host.",
        reading: "It runs only by name. Its figure means nothing; the tests check the verdict and the findings that \
                  come with it.",
        source: file!(),
        metrics: METRICS,
        hidden: true,
        cases: |bench, scope| one_pinned(bench, scope, 10, scope.seconds(1, 1.0, 0.0)),
        run,
        ..Benchmark::PINNED
    }
}

/// Dependent additions that take `slowness` times as long as they should.
fn adds(sampler: &mut Sampler, slowness: f64) -> anyhow::Result<()> {
    sampler.time(Point::new(ids::metric::SPEED, CHAIN_UNROLL as f64), |n| {
        std::hint::black_box(kernels::add_chain((n as f64 * slowness) as u64, 1, 1));
    })?;
    Ok(())
}

/// The CPU's own counters around each sample of additions; where there are none the pass fails and
/// says why.
fn counted(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut counters = CoreCounters::open().map_err(anyhow::Error::msg)?;
    let clock = sampler.clock();
    let notes = [ids::metric::INSTRUCTIONS, ids::metric::CYCLES, ids::metric::IPC]
        .map(|metric| (Params::new(), metric));
    sampler.time_noting(Point::new(ids::metric::SPEED, CHAIN_UNROLL as f64), &notes, |rounds| {
        let before = counters.read().map_err(anyhow::Error::msg)?;
        let begin = clock.now();
        let sum = kernels::add_chain(rounds, 1, 1);
        let ns = clock.now() - begin;
        let after = counters.read().map_err(anyhow::Error::msg)?;
        check_answer(sum == kernels::add_chain_answer(rounds, 1, 1), || format!("the sum is {sum}"))?;
        let instructions = (after.instructions - before.instructions) as f64;
        let cycles = (after.cycles - before.cycles) as f64;
        Ok((ns, vec![instructions / rounds as f64, cycles / rounds as f64, instructions / cycles]))
    })?;
    Ok(())
}
