//! The core's real clock.

use super::{Benchmark, Point, Sampler, check_answer, one_pinned};
use crate::row::ghz;
use kernels::{self, CHAIN_UNROLL};
use model::Case;
use model::vocabulary::cpu as ids;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::CLOCK,
    title: "Core clock",
    about: "The real clock of a core under light load, in GHz. A chain of dependent additions runs at exactly one \
            addition a cycle on every x86 and ARM core.",
    reading: "Compare it with the nominal and turbo clock of the model. A clock below nominal means a power-saving \
              governor, thermal throttling or a capped guest. All figures in core cycles use this clock, never the \
              time-stamp counter, which runs at a constant rate.",
    method: "The chain adds 64-bit registers, because recent cores eliminate additions of a constant. A chain of \
             multiplications, which take a whole number of cycles, is timed too. The two clocks must agree within 2 \
             %.",
    source: file!(),
    metrics: &[
        ghz(ids::metric::CLOCK, "core clock"),
        ghz(ids::metric::CLOCK_BY_MULTIPLY, "core clock from multiplications").aside(),
    ],
    params: &[],
    cases: |bench, scope| one_pinned(bench, scope, 100, scope.seconds(2, 1.0, 0.0)),
    run,
    ..Benchmark::PINNED
}];

fn run(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let (mut sum, mut rounds) = (1, 0);
    sampler.time(Point::new(ids::metric::CLOCK, CHAIN_UNROLL as f64), |n| {
        sum = kernels::add_chain(n, sum, 3);
        rounds += n;
    })?;
    check_answer(sum == kernels::add_chain_answer(rounds, 1, 3), || {
        format!("{} dependent additions gave {sum}", rounds * CHAIN_UNROLL)
    })?;

    let (mut product, mut rounds) = (1, 0);
    let cycles = multiply_cycles(sampler);
    sampler.time(Point::new(ids::metric::CLOCK_BY_MULTIPLY, cycles * CHAIN_UNROLL as f64), |n| {
        product = kernels::multiply_chain(n, product, 3);
        rounds += n;
    })?;
    check_answer(product == kernels::multiply_chain_answer(rounds, 1, 3), || {
        format!("{} dependent multiplications gave {product}", rounds * CHAIN_UNROLL)
    })
}

/// Latency of a multiplication in whole cycles: the ratio of two short chains, rounded, from the
/// quickest of a few tries.
fn multiply_cycles(sampler: &Sampler) -> f64 {
    const ROUNDS: u64 = 256;
    let clock = sampler.clock();
    let shortest = |chain: fn(u64, u64, u64) -> u64| {
        let times = (0..15).map(|_| {
            let begin = clock.now();
            std::hint::black_box(chain(std::hint::black_box(ROUNDS), 1, 3));
            clock.now() - begin
        });
        times.fold(f64::INFINITY, f64::min)
    };
    (shortest(kernels::multiply_chain) / shortest(kernels::add_chain)).round().max(1.0)
}
