//! Fresh memory: a fault for each page, or all pages by one call.

use anyhow::{Context, bail};

use super::{as_many_as, base_pages_only, in_rounds, timed_faults};
use crate::memory::{size_points, sizes_input, sizes_of};
use crate::row::{gb_per_s, latency_ns, log_curve};
use crate::{
    Benchmark, Candidate, Depth, LATENCY_NS, LATENCY_US, Param, Point, Sampler, Scope, check_answer, point,
};
use model::vocabulary::kernel as ids;
use model::{Case, CpuSet, Metric, Pages};
use sys::counters;
use sys::mapping::Mapping;

const BANDWIDTH: Metric = gb_per_s(ids::metric::BANDWIDTH, "fresh memory").aside();

pub const PAGE_FAULT: Benchmark = Benchmark {
    id: ids::VM_PAGE_FAULT,
    title: "Page fault",
    about: "Time of a first write to a page of anonymous memory: trap, free page, zeroing, page-table entry and \
            cgroup charge.",
    reading: "Lower is better. Base pages of 4 KiB take 0.1–0.25 µs on bare metal, 0.3–1 µs in guests whose host \
              must give the page first. Huge pages of 2 MiB take 50–200 µs, nearly all of it zeroing. That is 5–10 × \
              as much memory a second, so compare bandwidths. Mitigations make every trap slower.",
    method: "One word is written to each page, with base pages and with huge pages. Zeroing is included, as no \
             program gets memory without it. Pages are freed between rounds, untimed, so they are often still in the \
             CPU's caches. The kernel's count of faults must equal the pages touched, and pages must be zero.",
    source: file!(),
    metrics: &[LATENCY_US, BANDWIDTH],
    cases: page_fault_cases,
    run: page_fault,
    ..Benchmark::PINNED
};

pub const POPULATE: Benchmark = Benchmark {
    id: ids::VM_POPULATE,
    title: "mmap with MAP_POPULATE",
    about: "Time of a base page when the kernel fills anonymous memory at once (MAP_POPULATE). `touched` is the same \
            with a fault for each page.",
    reading: "Lower is better. `touched` less populate is the cost of traps: a third to a half on bare metal, more \
              in guests and with mitigations. Zeroing and accounting remain. Programs that will use all of their \
              memory gain by populating it.",
    method: "Both are measured in the same pass; unmapping is not timed. After each populate every page must be in \
             memory and read as zeros.",
    source: file!(),
    metrics: &[LATENCY_NS, BANDWIDTH, latency_ns(ids::metric::TOUCHED, "each page by its own fault")],
    params: &[Param::bytes(ids::param::BYTES, "size of the mapping, bytes", 4096..=1 << 40)],
    view: &log_curve(ids::param::BYTES),
    from: Depth::Standard,
    cases: populate_cases,
    points: size_points,
    run: populate,
    ..Benchmark::PINNED
};

/// Transparent huge pages here: 2 MiB, on x86 and on ARM with base pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;
/// Pages of a round: enough that reading the clock is nothing, few enough for the smallest host.
const BASE_PAGES: usize = 1024;
const HUGE_PAGES: usize = 8;
/// What is written to each page.
const WORD: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Bytes of a page and pages of a round.
fn extent(pages: Pages) -> (usize, usize) {
    match pages {
        Pages::Huge => (HUGE_PAGE, HUGE_PAGES),
        _ => (rustix::param::page_size(), BASE_PAGES),
    }
}

fn page_fault_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let candidate = |pages| {
        let (page, count) = extent(pages);
        // Giving back and checking take about as long as the faults.
        let seconds = scope.seconds(2, 1.0, 0.0);
        let placement = placement.clone().pages(pages);
        Candidate::new(bench.id, placement, 65, seconds).memory((page * count) as u64)
    };
    let mut candidates = vec![candidate(Pages::Base)];
    if scope.depth > Depth::Quick {
        let huge = candidate(Pages::Huge);
        candidates.push(Candidate { unmet: no_huge_pages(scope), ..huge });
    }
    candidates
}

/// Why this host cannot give huge pages of the size that is measured, if so.
fn no_huge_pages(scope: &Scope) -> Option<String> {
    let memory = &scope.machine.memory;
    if memory.transparent_huge_pages.as_deref() == Some("never") {
        return Some("needs transparent huge pages: set /sys/kernel/mm/transparent_hugepage/enabled".into());
    }
    match memory.transparent_huge_page_bytes {
        Some(bytes) if bytes != HUGE_PAGE as u64 => {
            Some(format!("needs huge pages of 2 MiB; here they have {bytes} bytes"))
        }
        _ => None,
    }
}

fn page_fault(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let pages = case.placement.pages;
    let (page, most) = extent(pages);
    let mut memory = Mapping::private(page * most, pages, &CpuSet::default())
        .with_context(|| format!("cannot map {} bytes", page * most))?;
    memory.write_each(page, most, WORD);
    sampler.facts().memory_bytes = Some(memory.len() as u64);
    if pages == Pages::Huge {
        let huge = counters::huge_bytes(memory.as_ptr() as usize, memory.len());
        sampler.facts().huge_share = huge.map(|bytes| bytes as f64 / memory.len() as f64);
        if let Some(bytes) = huge.filter(|bytes| *bytes < memory.len() as u64) {
            bail!("the kernel gave huge pages for only {bytes} of {} bytes: free some memory", memory.len());
        }
    }
    memory.give_back().context("cannot free pages")?;
    let clock = sampler.clock();
    let at = Point::new(ids::metric::LATENCY, 1.0).times(ids::metric::BANDWIDTH, page as f64);
    sampler.time_by(at, |n| {
        in_rounds(n, most, |count| {
            let (ns, faults) = timed_faults(clock, || memory.write_each(page, count, WORD))?;
            let there = memory.resident_share()? * memory.len() as f64;
            if there < (page * count) as f64 {
                // One word was written to each: where a huge page was not to be had, a base page
                // came.
                bail!("only {there:.0} bytes came for {count} pages of {page} bytes: no huge page was free");
            }
            fresh_pages(&memory, page, count, faults)?;
            memory.give_back().context("cannot free pages")?;
            Ok(ns)
        })
    })?;
    Ok(())
}

/// As many faults as pages, each page written once and zero elsewhere.
fn fresh_pages(memory: &Mapping, page: usize, count: usize, faults: u64) -> anyhow::Result<()> {
    check_answer(as_many_as(faults, count as u64), || {
        format!("the kernel counts {faults} faults for first writes to {count} pages of {page} bytes")
    })?;
    let (written, fresh) = (memory.sum_each(page, count, 0), memory.sum_each(page, count, 8));
    check_answer(written == WORD.wrapping_mul(count as u64) && fresh == 0, || {
        format!("{count} fresh pages hold the sum {written:#x} of {WORD:#x} each, and {fresh:#x} elsewhere")
    })
}

fn populate_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let placement = placement.pages(Pages::Base);
    let wanted: &[u64] = match scope.depth {
        Depth::Full => &[1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20],
        _ => &[1 << 20, 16 << 20],
    };
    let sizes: Vec<u64> = wanted.iter().copied().filter(|size| *size <= scope.memory_bytes).collect();
    if sizes.is_empty() {
        let why = format!("needs memory for the smallest mapping; {} bytes may be used", scope.memory_bytes);
        return vec![Candidate::unmet(bench.id, "one-cpu", why)];
    }
    // Two metrics, untimed unmapping, and the largest mapping may take longer than a sample.
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let windows = (scope.windows.count + scope.windows.warm_up + 5) as f64;
    let seconds = scope.seconds(3 * sizes.len(), 1.0, largest as f64 / 4e9 * windows);
    let mut candidate = Candidate::new(bench.id, placement, 62, seconds).memory(largest);
    candidate.case.inputs.insert(ids::param::BYTES.into(), sizes_input(&sizes));
    vec![candidate]
}

fn populate(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    base_pages_only();
    let page = rustix::param::page_size();
    let clock = sampler.clock();
    for bytes in sizes_of(case) {
        let len = usize::try_from(bytes).context("more memory than addresses")?;
        let pages = len / page;
        let map =
            |populate| Mapping::plain(len, populate).with_context(|| format!("cannot map {bytes} bytes"));
        let at = Point::new(ids::metric::LATENCY, pages as f64)
            .times(ids::metric::BANDWIDTH, page as f64)
            .at(point(ids::param::BYTES, bytes));
        sampler.time_by(at, |n| {
            in_rounds(n, 1, |_| {
                let begin = clock.now();
                let memory = map(true)?;
                let ns = clock.now() - begin;
                filled(memory.resident_share()?, memory.sum_each(page, pages, 0))?;
                memory.unmap()?;
                Ok(ns)
            })
        })?;
        sampler.time_by(
            Point::new(ids::metric::TOUCHED, pages as f64).at(point(ids::param::BYTES, bytes)),
            |n| {
                in_rounds(n, 1, |_| {
                    let mut mapped = None;
                    let (ns, faults) = timed_faults(clock, || {
                        mapped = Some(map(false).map(|mut memory| {
                            memory.write_each(page, pages, WORD);
                            memory
                        }));
                    })?;
                    let memory = mapped.context("nothing was mapped")??;
                    fresh_pages(&memory, page, pages, faults)?;
                    memory.unmap()?;
                    Ok(ns)
                })
            },
        )?;
    }
    Ok(())
}

/// All of it is in memory, and nothing is in it.
fn filled(resident_share: f64, sum: u64) -> anyhow::Result<()> {
    check_answer(resident_share == 1.0 && sum == 0, || {
        format!(
            "after populate {:.1} % of the pages were in memory, with a sum of {sum}",
            resident_share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;
    use crate::placement::Placements;
    use crate::rehearsal::{self, sampled, this_machine, visit_row};

    #[test]
    fn base_pages_fault_once_each() {
        let samples = visit_row(ids::VM_PAGE_FAULT);
        assert_eq!(samples.len(), 2, "latency and bandwidth of base pages");
    }

    #[test]
    fn pages_that_were_not_fresh_are_a_wrong_answer() {
        let page = rustix::param::page_size();
        let mut memory = Mapping::plain(4 * page, false).expect("4 pages");
        memory.write_each(page, 4, WORD);
        assert!(fresh_pages(&memory, page, 4, 4).is_ok());
        let wrong =
            |result: anyhow::Result<()>| result.expect_err("wrong").downcast_ref::<WrongAnswer>().is_some();
        assert!(wrong(fresh_pages(&memory, page, 4, 0)), "touched before");
        memory.words_mut()[1] = 1;
        assert!(wrong(fresh_pages(&memory, page, 4, 4)), "not zeroed");
        assert!(wrong(filled(0.5, 0)) && wrong(filled(1.0, 1)) && filled(1.0, 0).is_ok());
    }

    #[test]
    fn huge_pages_are_measured_or_refused_with_a_reason_never_mistaken_for_base_pages() {
        let mut machine = this_machine();
        let cases = |machine: &machine::Machine| {
            let placements = Placements::of(machine);
            page_fault_cases(&PAGE_FAULT, &Scope::new(machine, &placements, Depth::Standard, 1 << 30))
        };
        machine.memory.transparent_huge_pages = Some("never".into());
        let off = cases(&machine).remove(1);
        assert!(off.unmet.is_some_and(|why| why.contains("needs transparent huge pages")));
        machine.memory.transparent_huge_pages = Some("madvise".into());
        let huge = cases(&machine).remove(1);
        assert_eq!(huge.unmet, None);
        assert_eq!(huge.case.key(), "vm.page-fault@one-cpu+huge-pages");
        // This kernel may have none: then the pass fails with the reason and without samples.
        let (samples, reason) = sampled(&huge.case, |sampler| page_fault(&huge.case, sampler));
        assert_eq!(samples.is_empty(), reason.is_some(), "{reason:?}");
        // As if the kernel had broken its promise: no huge pages in this process.
        let (samples, reason) = sampled(&huge.case, |sampler| {
            base_pages_only();
            page_fault(&huge.case, sampler)
        });
        assert!(samples.is_empty() && reason.is_some(), "{reason:?}");
        assert_eq!(rehearsal::cases(ids::VM_PAGE_FAULT, Depth::Quick).len(), 1, "quick");
    }
}
