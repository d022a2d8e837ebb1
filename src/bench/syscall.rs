//! System calls.

use super::{Benchmark, Candidate, Point, Sampler, Scope, check_answer, pinned};
use crate::kernels;
use crate::model::Case;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "syscall.getpid",
    title: "System call",
    about: "Asks the kernel for this process's number by the bare instruction, again and again: entering the kernel, one \
            load, and back. No library stands between (some remember the answer). The answers are added up and checked.",
    reading: "60 to 100 ns on cores of the last ten years; with the mitigations of 2018 and later up to five times as much \
              (page-table isolation, IBRS). The floor under every read, write and poll. A guest pays no more than its host: \
              the hypervisor is not involved.",
    source: file!(),
    cases,
    run,
    ..Benchmark::PINNED
}];

/// What every other call stands on comes first.
fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    pinned(bench, scope).into_iter().map(|candidate| Candidate { priority: 90, ..candidate }).collect()
}

fn run(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let (mut sum, mut calls) = (0u64, 0u64);
    sampler.time(Point::new("latency", 1.0), |n| {
        sum = sum.wrapping_add(kernels::process_ids(n));
        calls += n;
    })?;
    let own = u64::from(std::process::id());
    check_answer(sum == own.wrapping_mul(calls), || {
        format!("{calls} system calls gave {sum} in all instead of {calls} times {own}")
    })
}
