//! What a copy of a process costs, and how that grows with its memory.

use anyhow::Context;

use super::memory::note_memory;
use super::process::{STRETCH, no_child_left, seated};
use super::{
    Benchmark, Candidate, Depth, LATENCY_US, Param, Point, Range, Sampler, Scope, check_answer, point,
};
use crate::model::{Better, Case, CpuSet, Form, Metric, Pages, Params};
use crate::sys::mapping::Mapping;
use crate::sys::spawn;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "process.fork",
    title: "Copying a process",
    about: "fork, the child ends at once, the parent reaps it (lmbench's fork+exit), by a parent that holds so many MiB of \
            written memory. fork copies no memory but the page tables of all of it, 8 bytes for each page, and makes \
            each page read-only for both; the child's end takes the copy down again. Parent and child share one CPU, or \
            run where the scheduler puts them. Memory is in base pages (4 KiB on x86), or in huge pages, of which there \
            are 512 times fewer. `per_gb` is the slope of a straight line through the visit's own medians: what every \
            further 10^9 bytes of the parent cost. Every child's exit code is checked, and that none is left.",
    reading: "50 to 200 us for a small parent, in guests two to three times that; 5 to 20 ms per GB in base pages: 20 to 80 \
              ns a page. A database of 64 GB that forks for a snapshot stands still for half a second to one second; in \
              huge pages for milliseconds. After the fork, each first write to a page costs a fault and a copy more, \
              which is not in here.",
    source: file!(),
    metrics: &[
        LATENCY_US,
        Metric::new("per_gb", "further time for each GB resident", "ms/GB", Better::Lower, Form::Value),
    ],
    params: &[Param {
        name: "resident_mb",
        about: "memory that the parent has written before, MiB, beside the few that the program itself needs",
        range: Range::Int { min: 0, max: 1 << 20 },
    }],
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

/// What a plan reckons with, s a GiB: forking it in base pages, and writing it before.
const FORK_S: f64 = 0.03;
const WRITE_S: f64 = 0.5;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let fits = |(mb, from): &(u64, Depth)| *from <= scope.depth && *mb << 20 <= scope.memory_bytes;
    let sizes: Vec<u64> = RESIDENT_MB.into_iter().filter(fits).map(|(mb, _)| mb).collect();
    let largest = sizes.last().copied().unwrap_or(0);
    let mut candidates = Vec::new();
    for pages in [Pages::Base, Pages::Huge] {
        let only_if_deep = pages == Pages::Huge && scope.depth == Depth::Quick;
        for mut candidate in seated(bench, scope, 75, Depth::Quick, STRETCH) {
            let free = candidate.case.placement.name == "free";
            if only_if_deep || free && pages == Pages::Huge {
                continue;
            }
            candidate.case.placement.pages = pages;
            candidate.case.inputs.insert("resident_mb".into(), super::memory::sizes_input(&sizes));
            if candidate.unmet.is_none() {
                // Slow forks fill a window one by one.
                let forks = (scope.windows.count + scope.windows.warm_up + 5) as f64;
                let gib = |mb: u64| mb as f64 / 1024.0;
                let slow: f64 = sizes.iter().map(|mb| gib(*mb) * FORK_S * forks).sum();
                candidate.seconds = scope.seconds(sizes.len(), STRETCH, gib(largest) * WRITE_S + slow);
            }
            candidates.push(candidate.memory(largest << 20));
        }
    }
    candidates
}

fn sizes_of(case: &Case) -> Vec<u64> {
    let list = case.inputs.get("resident_mb").map_or("0", String::as_str);
    list.split(',').filter_map(|size| size.parse().ok()).collect()
}

fn points(case: &Case) -> Vec<Params> {
    sizes_of(case).into_iter().map(|mb| point("resident_mb", mb)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let sizes = sizes_of(case);
    let clock = sampler.clock();
    let largest =
        usize::try_from(sizes.iter().max().copied().unwrap_or(0) << 20).context("too much memory")?;
    let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
    let mut memory = Mapping::private(largest, case.placement.pages, &nodes)
        .with_context(|| format!("cannot map {largest} bytes"))?;
    let mut children = 0u64;
    let mut medians = Vec::new();
    let mut written = 0;
    for mb in sizes {
        let words = (mb << 20) as usize / 8;
        for (index, word) in memory.words_mut()[written..words.max(written)].iter_mut().enumerate() {
            *word = index as u64;
        }
        written = words.max(written);
        let ns = sampler.time_by(
            Point::new("latency", 1.0).at(point("resident_mb", mb)).stretch(STRETCH),
            |forks| {
                let begin = clock.now();
                for _ in 0..forks {
                    children += 1;
                    fork_one(children)?;
                }
                Ok(clock.now() - begin)
            },
        )?;
        medians.push(((mb << 20) as f64, ns));
    }
    note_memory(sampler, &memory, &nodes);
    // Huge pages are so few that only large parents show their slope.
    let shows = case.placement.pages != Pages::Huge || largest >= 1 << 30;
    if let Some(slope) = slope(&medians).filter(|_| shows) {
        let spent = medians.iter().map(|(_, ns)| ns).sum();
        // ns a byte are s a GB.
        sampler.value(Params::new(), "per_gb", slope * 1e3, spent)?;
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

/// The slope of the straight line of least squares through these points; `None` of fewer than two.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 0.0).then(|| together / spread)
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;

    #[test]
    fn larger_parents_are_dearer_to_copy() {
        for case in rehearsal::cases("process.fork", Depth::Quick) {
            let samples = rehearsal::visit_all(&case);
            let per_gb = samples.iter().find(|one| one.metrics == ["per_gb"]).expect("a slope");
            let per_gb = per_gb.values(Form::Value);
            assert!(per_gb.len() == 1 && per_gb[0] > 0.0, "{}: {per_gb:?}", case.key());
            assert!(spawn::has_no_child());
        }
    }

    #[test]
    fn huge_pages_and_larger_parents_belong_to_deeper_profiles() {
        let keys = |depth| -> Vec<String> {
            rehearsal::candidates("process.fork", depth).iter().map(|one| one.case.key()).collect()
        };
        let quick = ["process.fork@one-cpu+base-pages", "process.fork@free+base-pages"];
        assert_eq!(keys(Depth::Quick), quick);
        assert!(keys(Depth::Standard).contains(&"process.fork@one-cpu+huge-pages".to_string()));
        for candidate in rehearsal::candidates("process.fork", Depth::Full) {
            // A rehearsal may use 128 MiB.
            assert_eq!(candidate.case.inputs["resident_mb"], "0,16,64");
            assert_eq!(candidate.memory_bytes, 64 << 20);
        }
    }

    #[test]
    fn slopes_are_those_of_least_squares() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(2.0));
        let noisy = slope(&[(0.0, 0.0), (1.0, 1.5), (2.0, 1.5), (3.0, 3.0)]).expect("a slope");
        assert!((noisy - 0.9).abs() < 1e-12, "{noisy}");
        assert_eq!(slope(&[(1.0, 5.0)]), None);
        assert_eq!(slope(&[(1.0, 5.0), (1.0, 6.0)]), None);
    }
}
