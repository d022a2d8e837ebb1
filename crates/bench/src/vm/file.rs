//! Faults on a mapped file that is in the page cache.

use std::os::fd::OwnedFd;

use anyhow::{Context, ensure};

use super::{STRAY_FAULTS, as_many_as, in_rounds, timed_faults};
use crate::row::{latency_ns, note};
use crate::syscall::file_system;
use crate::{Benchmark, Candidate, Point, Sampler, Scope, check_answer, pinned};
use model::vocabulary::kernel as ids;
use model::{Case, Params};
use sys::atomic_file;
use sys::mapping::Mapping;

pub const FILE_FAULT: Benchmark = Benchmark {
    id: ids::VM_FILE_FAULT,
    title: "Page fault on a file",
    about: "Time of a first read of a page of a mapped file that is in the page cache. `copy` is a first write to a \
            page of a private mapping.",
    reading: "Lower is better: latency 0.5–2 µs for 16 pages, 30–120 ns a page. Starting a program pays it for each \
              page of its code. copy takes 0.3–1.3 µs, a fault that copies where vm.page-fault zeroes. \
              pages_per_fault of 1 means that fault-around is off or the filesystem has none.",
    method: "No disk is read; a read fault only enters pages into the page table, with its neighbours (fault-around, \
             64 KiB by default). `latency` is one fault, `page` that time for each page, `pages_per_fault` from the \
             kernel's count of faults. `copy` faults and copies each page alone. The file is an unlinked temporary \
             one of 1024 pages, and every word read is checked.",
    source: file!(),
    metrics: &[
        latency_ns(ids::metric::LATENCY, "read fault"),
        latency_ns(ids::metric::PAGE, "each page by read faults").aside(),
        latency_ns(ids::metric::COPY, "first write to a page"),
        note(ids::metric::PAGES_PER_FAULT, "pages entered by each read fault", "pages"),
    ],
    cases,
    run,
    ..Benchmark::PINNED
};

const PAGES: usize = 1024;
/// What is written to the private copies of pages.
const WORD: u64 = 0x5a5a_5a5a_5a5a_5a5a;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let bytes = (PAGES * rustix::param::page_size()) as u64;
    let mut candidates = pinned(bench, scope);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.unmet.is_none()) {
        // Writing the file, and twice the samples' time for what is not timed.
        candidate.seconds = scope.seconds(4, 1.0, 0.01);
        candidate.memory_bytes = 2 * bytes;
        candidate.priority = 60;
    }
    candidates
}

/// An unlinked file in the usual place for temporary ones, each word of a page the page's number
/// from 1.
fn file(page: usize) -> anyhow::Result<OwnedFd> {
    let file = atomic_file::unnamed(&std::env::temp_dir())
        .context("cannot make a temporary file: set TMPDIR to an existing directory")?;
    for number in 1..=PAGES as u64 {
        let content = number.to_ne_bytes().repeat(page / 8);
        let written = rustix::io::write(&file, &content).context("cannot write a temporary file")?;
        ensure!(written == page, "a temporary file took {written} bytes of a page: is the disk full?");
    }
    Ok(file)
}

fn run(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let page = rustix::param::page_size();
    let file = file(page)?;
    sampler.facts().notes.push(format!("the temporary file is on {}", file_system(&file)));
    let mut memory = Mapping::of_file(&file, PAGES * page).context("cannot map a temporary file")?;
    sampler.facts().memory_bytes = Some(memory.len() as u64);
    let clock = sampler.clock();
    // The first count warms up; the second gives the pages that come with a fault.
    let mut expected = 0;
    for _ in 0..2 {
        let mut sum = 0;
        (_, expected) = timed_faults(clock, || sum = memory.sum_each(page, PAGES, 0))?;
        right_content(sum, PAGES)?;
        memory.give_back().context("cannot unmap a file's pages")?;
    }
    check_answer(expected > 0, || format!("{PAGES} pages of a file were read without a fault"))?;
    let per_fault = PAGES as f64 / expected as f64;
    // Whole rounds only: a part of one has another share of pages that come with a neighbour.
    let at = Point::new(ids::metric::PAGE, PAGES as f64).times(ids::metric::LATENCY, 1.0 / per_fault);
    sampler.time_by(at, |n| {
        in_rounds(n, 1, |_| {
            let mut sum = 0;
            let (ns, faults) = timed_faults(clock, || sum = memory.sum_each(page, PAGES, 0))?;
            right_content(sum, PAGES)?;
            check_answer(faults.abs_diff(expected) <= STRAY_FAULTS, || {
                format!("{PAGES} pages of a file took {faults} faults after {expected} before")
            })?;
            memory.give_back().context("cannot unmap a file's pages")?;
            Ok(ns)
        })
    })?;
    sampler.value(Params::new(), ids::metric::PAGES_PER_FAULT, per_fault, 0.0)?;
    sampler.time_by(Point::new(ids::metric::COPY, 1.0), |n| {
        in_rounds(n, PAGES, |count| {
            let (ns, faults) = timed_faults(clock, || memory.write_each(page, count, WORD))?;
            check_answer(as_many_as(faults, count as u64), || {
                format!("the kernel counts {faults} faults for first writes to {count} pages of a file")
            })?;
            right_content(memory.sum_each(page, count, 8), count)?;
            memory.give_back().context("cannot unmap a file's pages")?;
            Ok(ns)
        })
    })?;
    Ok(())
}

/// The numbers of the first `pages` pages, added up.
fn right_content(sum: u64, pages: usize) -> anyhow::Result<()> {
    let expected = (1..=pages as u64).sum::<u64>();
    check_answer(sum == expected, || {
        format!("{pages} mapped pages of a file add up to {sum}, not {expected}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_numbers_of_its_pages() {
        let page = rustix::param::page_size();
        let memory = Mapping::of_file(file(page).expect("a file"), PAGES * page).expect("mapped");
        for behind in [0, 8, page - 8] {
            assert!(right_content(memory.sum_each(page, PAGES, behind), PAGES).is_ok());
        }
        assert!(right_content(memory.sum_each(page, PAGES - 1, 0), PAGES).is_err());
    }
}
