//! The calls that change a process's map: mmap with munmap, mprotect.

use anyhow::Context;

use super::base_pages_only;
use crate::memory::{size_points, sizes_input, sizes_of};
use crate::row::{latency_ns, log_curve};
use crate::{
    Benchmark, Candidate, Depth, LATENCY_NS, LATENCY_US, Param, Point, Sampler, Scope, check_answer, pinned,
    point,
};
use kernels::Faults;
use model::Case;
use model::vocabulary::kernel as ids;
use sys::mapping::Mapping;

const BYTES: &[Param] = &[Param::bytes(ids::param::BYTES, "size of the mapping, bytes", 4096..=1 << 40)];

pub const MMAP: Benchmark = Benchmark {
    id: ids::VM_MMAP,
    title: "mmap and munmap",
    about: "Time to map anonymous memory and unmap it again, untouched. `touched` also writes one word to each page \
            and is the time of a page.",
    reading: "Lower is better: 0.5–2 µs at any size. `touched` falls with size to a page fault (vm.page-fault) plus \
              50–150 ns to free the page. Allocators that return memory to the system pay it at each reuse. In \
              threaded programs both calls wait for the lock of the address space.",
    method: "`touched` uses base pages only. lmbench's lat_mmap maps a file and touches a tenth of it. Each mapping \
             must hold what was written, and the last mapping's place must be unmapped.",
    source: file!(),
    metrics: &[LATENCY_NS, latency_ns(ids::metric::TOUCHED, "each page mapped, touched, unmapped")],
    params: BYTES,
    view: &log_curve(ids::param::BYTES),
    cases,
    points: size_points,
    run: mmap,
    ..Benchmark::PINNED
};

pub const MPROTECT: Benchmark = Benchmark {
    id: ids::VM_MPROTECT,
    title: "mprotect",
    about: "Time to make memory read-only or writable again with mprotect. It is the mean of both, for memory in \
            base pages.",
    reading: "Lower is better: 0.3–1 µs for one page. It takes a call, a lock, one page-table entry and one flush. \
              From about 16 pages on each page adds 5–40 ns. Threads on other CPUs must be interrupted as well, \
              which one pinned task does not show.",
    method: "The memory is its own area between inaccessible pages, so no area is split or joined. At the end a \
             write must fault while it is read-only and succeed afterwards, and the content must be unchanged.",
    source: file!(),
    metrics: &[LATENCY_US],
    params: BYTES,
    view: &log_curve(ids::param::BYTES),
    cases,
    points: size_points,
    run: mprotect,
    ..Benchmark::PINNED
};

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let page = rustix::param::page_size() as u64;
    let wanted = match scope.depth {
        Depth::Quick => vec![page, 64 * page],
        _ => vec![page, 16 * page, 256 * page, 4096 * page],
    };
    let mut candidates = pinned(bench, scope);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.unmet.is_none()) {
        // Pages to spare: the smallest of them is there wherever a program can run.
        let sizes: Vec<u64> =
            wanted.iter().copied().filter(|size| *size == page || *size <= scope.memory_bytes).collect();
        candidate.case.inputs.insert(ids::param::BYTES.into(), sizes_input(&sizes));
        candidate.seconds = scope.seconds(sizes.len() * bench.metrics.len(), 1.0, 0.0);
        candidate.memory_bytes = sizes.last().copied().unwrap_or(page);
        candidate.priority = 60;
    }
    candidates
}

/// What is written to each page.
const WORD: u64 = 0x5a5a_5a5a_5a5a_5a5a;

fn mmap(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    base_pages_only();
    let page = rustix::param::page_size();
    let clock = sampler.clock();
    for bytes in sizes_of(case) {
        let len = usize::try_from(bytes).context("more memory than addresses")?;
        let map = || Mapping::plain(len, false).with_context(|| format!("cannot map {bytes} bytes"));
        let at = |metric, work: usize| Point::new(metric, work as f64).at(point(ids::param::BYTES, bytes));
        let mut last = 0;
        sampler.time_by(at(ids::metric::LATENCY, 1), |n| {
            let begin = clock.now();
            for _ in 0..n {
                let memory = map()?;
                last = memory.as_ptr() as usize;
                memory.unmap().context("cannot unmap")?;
            }
            Ok(clock.now() - begin)
        })?;
        gone(last, len)?;
        let (mut mapped, mut sum) = (0u64, 0u64);
        sampler.time_by(at(ids::metric::TOUCHED, len / page), |n| {
            let begin = clock.now();
            for _ in 0..n {
                let mut memory = map()?;
                memory.write_each(page, len / page, WORD);
                // Of the last page only: looking at all of them would be timed.
                sum = sum.wrapping_add(memory.words()[(len - page) / 8]);
                last = memory.as_ptr() as usize;
                memory.unmap().context("cannot unmap")?;
            }
            mapped += n;
            Ok(clock.now() - begin)
        })?;
        check_answer(sum == WORD.wrapping_mul(mapped), || {
            format!("{mapped} mappings of {bytes} bytes held the sum {sum:#x}, not {WORD:#x} each")
        })?;
        gone(last, len)?;
    }
    Ok(())
}

fn gone(start: usize, len: usize) -> anyhow::Result<()> {
    check_answer(!Mapping::is_at(start, len), || {
        format!("{len} bytes at {start:#x} are still mapped after munmap")
    })
}

fn mprotect(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    base_pages_only();
    let clock = sampler.clock();
    for bytes in sizes_of(case) {
        let len = usize::try_from(bytes).context("more memory than addresses")?;
        let mut memory = Mapping::guarded(len).with_context(|| format!("cannot map {bytes} bytes"))?;
        memory.words_mut().fill(WORD);
        let mut writable = true;
        sampler.time_by(Point::new(ids::metric::LATENCY, 1.0).at(point(ids::param::BYTES, bytes)), |n| {
            let begin = clock.now();
            for _ in 0..n {
                writable = !writable;
                memory.set_writable(writable).context("cannot change a mapping's protection")?;
            }
            Ok(clock.now() - begin)
        })?;
        protects(&mut memory, false)?;
        protects(&mut memory, true)?;
        let kept = memory.words().iter().all(|word| *word == WORD);
        check_answer(kept, || format!("{bytes} bytes lost their content to mprotect"))?;
    }
    Ok(())
}

/// Sets the protection once more and tries a write, which must fault just when it is forbidden.
fn protects(memory: &mut Mapping, writable: bool) -> anyhow::Result<()> {
    memory.set_writable(writable).context("cannot change a mapping's protection")?;
    let faulted = Faults::on(memory).context("cannot install a handler for SIGSEGV")?.write(WORD as u8, 1);
    check_answer(faulted == u64::from(!writable), || {
        format!(
            "a write caused {faulted} faults on memory that was {}",
            if writable { "writable" } else { "read-only" }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;

    #[test]
    fn what_is_still_mapped_is_a_wrong_answer() {
        let page = rustix::param::page_size();
        let memory = Mapping::plain(page, false).expect("a page");
        let error = gone(memory.as_ptr() as usize, page).expect_err("it is there");
        assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error}");
    }
}
