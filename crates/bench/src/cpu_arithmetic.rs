//! Arithmetic: what an addition, a multiplication and a division cost, waited for and not.

use super::{Benchmark, Candidate, Param, Point, Sampler, Scope, View, check_answer, one_pinned};
use crate::row::latency_ns;
use kernels::Arithmetic;
use model::vocabulary::cpu as ids;
use model::{Better, Case, Form, Metric, Params};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::ARITHMETIC,
    title: "Arithmetic",
    about: "Additions, multiplications and divisions of integers and floating-point numbers, in registers. Latency \
            is a chain in which each operation waits for the result before it. Throughput is many independent \
            streams.",
    reading: "Cycles depend on the core design only, not on its clock. Integers: addition 1 cycle (3–6 at once), \
              multiplication 3, 64-bit division 10–20 (35–90 on cores before Ice Lake and Zen 2). Floating point: \
              sum or product 2–5, division 10–20. A latency that is no whole number means that the clock changed or \
              an SMT sibling was busy. A throughput far below these points to a sibling, an emulator or a throttled \
              CPU.",
    method: "Written in assembly, with operands in registers. Recent cores eliminate additions of a constant and \
             would show times that no adder has. There are 8 streams of integers, 12 of sums and products and 6 of \
             floating-point divisions. Dividers end early on short quotients, so quotients are always long. Integers \
             with their top bit set are divided by 3. The chain sets that bit again with an OR, and its latency \
             includes that cycle. Floating point divides e by the last quotient. The last result of every stream is \
             checked.",
    source: file!(),
    metrics: &[
        latency_ns(ids::metric::TIME, "time of an operation"),
        Metric::new(
            ids::metric::CYCLES,
            "cycles of an operation",
            "cycles",
            Better::Lower,
            Form::CyclesPerWork,
        )
        .aside(),
    ],
    params: &[
        Param::choice(ids::param::OPERATION, "operation and type of number", &NAMES),
        Param::choice(
            ids::param::TIMING,
            "dependent operations (latency) or independent ones (throughput)",
            &["latency", "throughput"],
        ),
    ],
    view: &View::Wide,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

/// In the order of [`Arithmetic::ALL`].
const NAMES: [&str; 10] = [
    "int64-add",
    "int64-multiply",
    "int64-divide",
    "int32-divide",
    "float64-add",
    "float64-multiply",
    "float64-divide",
    "float32-add",
    "float32-multiply",
    "float32-divide",
];

/// Loops of some nanoseconds need no longer samples: this is a thousand steps of a slow clock.
const LONG_ENOUGH_NS: f64 = 300_000.0;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let seconds = scope.seconds(2 * NAMES.len(), scope.windows.no_longer_than(LONG_ENOUGH_NS), 0.0);
    one_pinned(bench, scope, 65, seconds)
}

fn points(_: &Case) -> Vec<Params> {
    NAMES.iter().flat_map(|name| ["latency", "throughput"].map(|timing| at(name, timing))).collect()
}

fn at(name: &str, timing: &str) -> Params {
    Params::from([(ids::param::OPERATION, name.into()), (ids::param::TIMING, timing.into())])
}

fn run(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    for (operation, name) in Arithmetic::ALL.into_iter().zip(NAMES) {
        latency(sampler, operation, name)?;
        throughput(sampler, operation, name)?;
    }
    Ok(())
}

fn point(sampler: &Sampler, operations: u64, name: &str, timing: &str) -> Point {
    let stretch = sampler.windows().no_longer_than(LONG_ENOUGH_NS);
    Point::new(ids::metric::TIME, operations as f64)
        .also(&[ids::metric::CYCLES])
        .at(at(name, timing))
        .stretch(stretch)
}

fn latency(sampler: &mut Sampler, operation: Arithmetic, name: &str) -> anyhow::Result<()> {
    let (mut state, mut rounds) = (operation.start(), 0);
    sampler.time(point(sampler, operation.chain_operations(), name, "latency"), |n| {
        state = operation.chain(n, state);
        rounds += n;
    })?;
    let right = operation.chain_answer(rounds);
    check_answer(state == right, || {
        format!("a chain of {rounds} rounds of {name} ended with {state:#x} instead of {right:#x}")
    })
}

fn throughput(sampler: &mut Sampler, operation: Arithmetic, name: &str) -> anyhow::Result<()> {
    let (mut state, mut wrong, mut rounds) = (operation.start(), false, 0);
    sampler.time(point(sampler, operation.stream_operations(), name, "throughput"), |n| {
        let ended = operation.streams(n, state);
        // All streams began as one and take the same steps.
        wrong |= ended.iter().any(|state| *state != ended[0]);
        state = ended[0];
        rounds += n;
    })?;
    let right = operation.stream_answer(rounds);
    check_answer(!wrong && state == right, || match wrong {
        true => format!("equal streams of {name} ended with different results"),
        false => format!("streams of {rounds} rounds of {name} ended with {state:#x} instead of {right:#x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Depth, rehearsal};
    use super::*;

    #[test]
    fn every_operation_is_timed_both_ways_and_right() {
        let case = &rehearsal::cases(ids::ARITHMETIC, Depth::Quick)[0];
        let samples = rehearsal::visit_all(case);
        let found: Vec<Params> = samples.iter().map(|samples| samples.point.clone()).collect();
        assert_eq!(found, points(case));
    }
}
