//! Atomic operations, alone and among others.

use super::crowd::{self, Crowd, LEAST_SHARE, RATE};
use super::{Benchmark, LATENCY_NS, Param, Sampler, point};
use kernels::atomics;
use model::vocabulary::kernel as ids;
use model::{Case, Params};
use sys::crew::Body;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::LOCK_ATOMIC,
    title: "Atomic addition",
    about: "Time to add one to a shared word, atomically (`add`) or in a compare-and-swap loop (`cas`), for one task \
            and for several.",
    reading: "Lower is better: 4–8 ns alone. SMT siblings share the L1 and lose little. Two cores pass the line to \
              and fro: 20–100 ns in one package, 200 and more across, times the tasks. The rate of all tasks is the \
              most that one shared counter can do. `cas` fails and repeats under contention. A share below 1 means \
              that some cores win the line more often.",
    method: "Processes add until the word has reached a number; the time is that of one addition as each task sees \
             it. On one CPU the line stays in L1. x86 drains its store buffer, which takes 18–25 cycles; recent \
             cores and arm64 take less. The additions of all tasks must add up to the word.",
    source: file!(),
    metrics: &[LATENCY_NS, RATE, LEAST_SHARE],
    params: &[Param::choice(ids::param::OP, "fetch-and-add, or compare-and-swap until it succeeds", &OPS)],
    cases: |bench, scope| crowd::cases(bench, scope, OPS.len()),
    points,
    run,
    ..Benchmark::PINNED
}];

const OPS: [&str; 2] = ["add", "cas"];

fn points(_: &Case) -> Vec<Params> {
    OPS.iter().map(|op| point(ids::param::OP, *op)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    for op in OPS {
        let until = if op == "cas" { atomics::swap_until } else { atomics::add_until };
        let mut crowd = Crowd::gather(case, sampler.clock(), 0, |lines, _| -> Body {
            Box::new(move |target| until(&lines[crowd::COUNT], target))
        })?;
        crowd.measure(sampler, point(ids::param::OP, op))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Depth, WrongAnswer, rehearsal};
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn alone_and_with_others() {
        let cases = rehearsal::cases(ids::LOCK_ATOMIC, Depth::Standard);
        assert_eq!(cases[0].placement.name, "one-cpu");
        for case in cases {
            let samples = rehearsal::visit_all(&case);
            let shares = samples.iter().filter(|one| one.metrics == [ids::metric::LEAST_SHARE]).count();
            assert_eq!(shares, if case.placement.seats.len() > 1 { 2 } else { 0 });
        }
    }

    #[test]
    fn a_lost_addition_is_a_wrong_answer() {
        let case = rehearsal::cases(ids::LOCK_ATOMIC, Depth::Quick).remove(0);
        let error = rehearsal::with_sampler(|sampler| {
            let mut crowd = Crowd::gather(&case, sampler.clock(), 0, |lines, _| -> Body {
                Box::new(move |target| {
                    lines[crowd::COUNT].store(target, Ordering::Relaxed);
                    1 // Whatever was asked.
                })
            })?;
            crowd.measure(sampler, point(ids::param::OP, "add"))
        });
        assert!(error.expect_err("not added").downcast_ref::<WrongAnswer>().is_some());
    }
}
