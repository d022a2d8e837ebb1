//! System calls.

use std::os::fd::AsFd;

use super::{Benchmark, Candidate, Point, Sampler, Scope, check_answer, pinned};
use model::Case;
use model::vocabulary::kernel as ids;

mod clocks;
mod files;
mod ready;

pub const BENCHMARKS: &[Benchmark] = &[
    GETPID,
    files::WRITE,
    files::READ,
    files::STAT,
    files::FSTAT,
    files::OPEN_CLOSE,
    ready::SELECT,
    ready::POLL,
    ready::EPOLL,
    clocks::CLOCK_GETTIME,
];

const GETPID: Benchmark = Benchmark {
    id: ids::SYSCALL_GETPID,
    title: "System call",
    about: "Time to enter the kernel and return, with the smallest call there is (getpid), by the bare instruction.",
    reading: "Lower is better: 60–100 ns on cores of the last ten years. Mitigations since 2018 (page-table \
              isolation, IBRS) make it up to five times as long. Every read, write and poll costs at least this. A \
              guest pays no more than its host.",
    method: "No library is used, because some remember the answer. The answers are added up and checked.",
    source: file!(),
    cases,
    run,
    ..Benchmark::PINNED
};

/// What every other call stands on comes first.
fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    pinned(bench, scope).into_iter().map(|candidate| Candidate { priority: 90, ..candidate }).collect()
}

fn run(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let (mut sum, mut calls) = (0u64, 0u64);
    sampler.time(Point::new(ids::metric::LATENCY, 1.0), |n| {
        sum = sum.wrapping_add(kernels::process_ids(n));
        calls += n;
    })?;
    let own = u64::from(std::process::id());
    check_answer(sum == own.wrapping_mul(calls), || {
        format!("{calls} system calls gave {sum} in all instead of {calls} times {own}")
    })
}

/// The kind of file system that an open file lies on, by the number that the kernel gives it
/// (statfs(2)).
pub(super) fn file_system(file: impl AsFd) -> String {
    let Ok(about) = rustix::fs::fstatfs(file) else { return "an unknown filesystem".to_string() };
    match about.f_type as u64 & 0xffff_ffff {
        0xef53 => "ext4".to_string(),
        0x5846_5342 => "xfs".to_string(),
        0x9123_683e => "btrfs".to_string(),
        0x0102_1994 => "tmpfs".to_string(),
        0x794c_7630 => "overlayfs".to_string(),
        0x2fc1_2fc1 => "zfs".to_string(),
        0xf2f5_2010 => "f2fs".to_string(),
        0x6969 => "nfs".to_string(),
        other => format!("filesystem {other:#x}"),
    }
}

/// Times a call that is made again and again and must give the same answer each time; comparing
/// answers costs a cycle or two. `what` says in a wrong answer's text what was asked.
pub(super) fn answers<A: PartialEq + std::fmt::Debug>(
    sampler: &mut Sampler,
    point: Point,
    what: &str,
    right: A,
    mut call: impl FnMut() -> rustix::io::Result<A>,
) -> anyhow::Result<f64> {
    let (mut calls, mut wrong, mut example) = (0u64, 0u64, None);
    let ns = sampler.time(point, |n| {
        for _ in 0..n {
            kernels::begin_line();
            let answer = call();
            if answer.as_ref() != Ok(&right) {
                wrong += 1;
                example = Some(answer);
            }
        }
        calls += n;
    })?;
    check_answer(wrong == 0, || {
        format!("{what} gave a wrong answer {wrong} of {calls} times: {example:?} instead of {right:?}")
    })?;
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Depth;
    use crate::rehearsal::{self, sampled, visit_row};
    use model::Reason;

    #[test]
    fn every_call_can_be_visited_and_answers_right() {
        for bench in BENCHMARKS {
            visit_row(bench.id);
        }
    }

    #[test]
    fn one_wrong_answer_in_many_fails_the_visit() {
        let case = rehearsal::cases(ids::SYSCALL_GETPID, Depth::Quick).remove(0);
        let mut calls = 0;
        let (samples, reason) = sampled(&case, |sampler| {
            let call = || {
                calls += 1;
                if calls == 5 { Ok(7) } else { Ok(8) }
            };
            answers(sampler, Point::new(ids::metric::LATENCY, 1.0), "a call", 8, call).map(|_| ())
        });
        assert_eq!(samples.len(), 1);
        let Some(Reason::WrongAnswer(why)) = reason else { panic!("{reason:?}") };
        assert!(why.starts_with("a call gave a wrong answer 1 of "), "{why}");
        let refused = || Err(rustix::io::Errno::ACCESS);
        let (_, reason) = sampled(&case, |sampler| {
            answers::<u8>(sampler, Point::new(ids::metric::LATENCY, 1.0), "a call", 8, refused).map(|_| ())
        });
        assert!(matches!(reason, Some(Reason::WrongAnswer(_))), "{reason:?}");
    }
}
