//! What a copy of a process costs, and how that grows with its memory.

use anyhow::Context;
use model::vocabulary::kernel as ids;

use super::process::{STRETCH, no_child_left, seated};
use super::resident::{self, Resident};
use super::{Benchmark, Candidate, Depth, LATENCY_US, Point, Sampler, Scope, check_answer, point};
use model::{Case, Pages, Params};
use sys::spawn;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::PROCESS_FORK,
    title: "fork",
    about: "Time to fork a child that ends at once and to reap it, by size of the parent. per_gb is what each \
            further GB of memory adds.",
    reading: "Lower is better: 50–200 µs for a small parent, in guests two to three times that. Each GB adds 5–20 ms \
              in base pages, in guests up to 40. A database of 64 GB that forks for a snapshot stops for 0.5–1 s, \
              with huge pages for milliseconds. Afterwards each first write to a page costs a fault and a copy, not \
              counted here.",
    method: "As lmbench's fork+exit, with a parent that has resident_mb of written memory. fork copies only page \
             tables, 8 bytes for each page, and makes pages read-only for both; the child's end removes the copy. \
             Parent and child share one CPU, or are left to the scheduler. Memory is in base pages, or in huge \
             pages, of which there are 512 times fewer. per_gb is the slope of a straight line through the medians \
             of a pass (10^9 bytes). Exit codes are checked, and that no child is left.",
    source: file!(),
    metrics: &[LATENCY_US, resident::PER_GB],
    params: &[resident::PARAM],
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

/// Memory of the parent, MiB: the largest ones in deeper profiles only.
const RESIDENT_MB: [(u64, Depth); 6] = [
    (0, Depth::Quick),
    (16, Depth::Standard),
    (64, Depth::Quick),
    (256, Depth::Standard),
    (1024, Depth::Full),
    (4096, Depth::Full),
];

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for pages in [Pages::Base, Pages::Huge] {
        let only_if_deep = pages == Pages::Huge && scope.depth == Depth::Quick;
        for mut candidate in seated(bench, scope, 75, Depth::Quick, 0.0) {
            let free = candidate.case.placement.name == "free";
            if only_if_deep || free && pages == Pages::Huge {
                continue;
            }
            candidate.case.placement.pages = pages;
            resident::plan(&mut candidate, scope, &RESIDENT_MB, STRETCH);
            candidates.push(candidate);
        }
    }
    candidates
}

fn points(case: &Case) -> Vec<Params> {
    resident::sizes(case).into_iter().map(|mb| point(resident::PARAM.name, mb)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let clock = sampler.clock();
    let mut parent = Resident::of(case, case.placement.pages)?;
    let (mut children, mut largest) = (0u64, 0);
    for mb in resident::sizes(case) {
        parent.grow(mb)?;
        let ns = sampler.time_by(
            Point::new(ids::metric::LATENCY, 1.0).at(point(resident::PARAM.name, mb)).stretch(STRETCH),
            |forks| {
                let begin = clock.now();
                for _ in 0..forks {
                    children += 1;
                    fork_one(children)?;
                }
                Ok(clock.now() - begin)
            },
        )?;
        parent.took(mb, ns);
        largest = largest.max(mb);
    }
    parent.note(sampler);
    // Huge pages are so few that only large parents show their slope.
    if case.placement.pages != Pages::Huge || largest >= 1024 {
        parent.per_gb(sampler)?;
    }
    no_child_left()
}

/// Forks the child of this number: its exit code says which one it is.
fn fork_one(number: u64) -> anyhow::Result<()> {
    let code = (number % 251) as i32;
    let ended = spawn::fork_and_exit(code).context("cannot fork")?;
    match ended.code() == Some(code) {
        true => Ok(()),
        false => check_answer(false, || format!("child {number} ended with {ended} instead of code {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;
    use model::Form;

    #[test]
    fn every_parent_is_copied_and_has_a_slope() {
        for case in rehearsal::cases(ids::PROCESS_FORK, Depth::Quick) {
            let samples = rehearsal::visit_all(&case);
            let per_gb = samples.iter().find(|one| one.metrics == [ids::metric::PER_GB]).expect("a slope");
            let per_gb = per_gb.values(Form::Value);
            assert!(per_gb.len() == 1 && per_gb[0].is_finite(), "{}: {per_gb:?}", case.key());
            assert!(spawn::has_no_child());
        }
    }

    #[test]
    fn huge_pages_and_larger_parents_belong_to_deeper_profiles() {
        let keys = |depth| -> Vec<String> {
            rehearsal::candidates(ids::PROCESS_FORK, depth).iter().map(|one| one.case.key()).collect()
        };
        let quick = ["process.fork@one-cpu+base-pages", "process.fork@free+base-pages"];
        assert_eq!(keys(Depth::Quick), quick);
        assert!(keys(Depth::Standard).contains(&"process.fork@one-cpu+huge-pages".to_string()));
        for candidate in rehearsal::candidates(ids::PROCESS_FORK, Depth::Full) {
            // A rehearsal may use 128 MiB.
            assert_eq!(candidate.case.inputs["resident_mb"], "0,16,64");
            assert_eq!(candidate.memory_bytes, 64 << 20);
        }
    }
}
