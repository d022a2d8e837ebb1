//! Virtual memory: what it costs until memory that was asked for is there.

use super::Benchmark;
use sys::clock::{self, Clock};

mod calls;
mod faults;
mod file;

pub const BENCHMARKS: &[Benchmark] =
    &[faults::PAGE_FAULT, faults::POPULATE, file::FILE_FAULT, calls::MMAP, calls::MPROTECT];

/// Does `units` of work in rounds of at most `most`: `round` gets how many and reports its own
/// nanoseconds, what it clears away between rounds is not timed.
fn in_rounds(
    units: u64,
    most: usize,
    mut round: impl FnMut(usize) -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    let (mut left, mut ns) = (units, 0.0);
    while left > 0 {
        let now = left.min(most as u64);
        ns += round(now as usize)?;
        left -= now;
    }
    Ok(ns)
}

/// Times `work` and counts the page faults that this process took meanwhile.
fn timed_faults(clock: Clock, work: impl FnOnce()) -> anyhow::Result<(f64, u64)> {
    let before = clock::own_usage()?.faults;
    let begin = clock.now();
    work();
    let ns = clock.now() - begin;
    Ok((ns, u64::try_from(clock::own_usage()?.faults - before).unwrap_or(0)))
}

/// Faults of other memory (a stack that grows, a page of code used for the first time) that may
/// fall among the measured ones.
const STRAY_FAULTS: u64 = 4;

/// As many faults as must be, give or take strays.
fn as_many_as(faults: u64, expected: u64) -> bool {
    (expected..=expected + STRAY_FAULTS).contains(&faults)
}

/// Asks for base pages in this whole process, for mappings too short-lived to be advised one by
/// one.
fn base_pages_only() {
    // A kernel without huge pages refuses, and gives base pages anyway.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::visit_row;

    #[test]
    fn every_row_can_be_visited_and_answers_right() {
        for bench in BENCHMARKS.iter().filter(|bench| bench.id != model::vocabulary::kernel::VM_PAGE_FAULT) {
            visit_row(bench.id);
        }
    }

    #[test]
    fn rounds_do_all_of_the_work_once() {
        for (units, expected) in [(0, vec![]), (3, vec![3]), (8, vec![8]), (20, vec![8, 8, 4])] {
            let mut rounds = Vec::new();
            let ns = in_rounds(units, 8, |now| {
                rounds.push(now);
                Ok(2.0 * now as f64)
            });
            assert_eq!(ns.expect("no error"), 2.0 * units as f64);
            assert_eq!(rounds, expected);
        }
    }

    #[test]
    fn missing_faults_are_seen_and_strays_are_not_taken_for_them() {
        assert!(as_many_as(100, 100) && as_many_as(103, 100));
        assert!(!as_many_as(99, 100) && !as_many_as(150, 100));
    }
}
