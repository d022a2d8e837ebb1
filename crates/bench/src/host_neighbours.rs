//! How far others use the memory and the shared cache while Assay rests, in the order of time.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;

use super::memory::{last_level_bytes, note_memory, resident};
use super::memory_map::{Prober, list, word};
use super::{Benchmark, Candidate, Depth, Sampler, Scope, View, check_answer, single_point};
use crate::row::{fact, gb_per_s, latency_ns};
use kernels::{Op, streams};
use model::vocabulary::host as ids;
use model::{Better, Case, CpuSet, Form, Metric, Pages, Params};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::NEIGHBOURS,
    title: "Memory and cache at rest",
    about: "How much of the last-level cache this guest gets. Memory latency and bandwidth are measured over a \
            minute without other work of Assay.",
    reading: "`cache` near the reported size, always the same, is good: the cache is this host's alone. Far below, \
              the host limits the guest's share (CAT) or other guests fill it. A share that changes means that other \
              guests come and go. If `cache` is near the largest working set, it may be larger still. L2 counts as \
              part of it. Spikes of `latency` at rest mean that other guests use the memory.",
    method: "One task measures for some ms every 75 ms and sleeps in between. `latency` is 3600 dependent loads of \
             flushed lines on pages whose translations are present. `bandwidth` reads 4 MiB of flushed lines. Then a \
             working set is read whole. After 0.25 ms, 3360 of its lines are timed: those below half of a memory \
             load were still cached (`kept`). Working sets (`size`) go from 1 MiB to twice the reported cache, at \
             most 64 MiB, by powers of two. `cache` is the largest product of size and share. `moment` is the \
             start of each probe. Sums and ends of walks are checked.",
    source: file!(),
    metrics: &[
        Metric::new(ids::metric::CACHE, "L3 that one task can use", "MiB", Better::Higher, Form::Value),
        latency_ns(ids::metric::LATENCY, "memory latency at rest").aside(),
        gb_per_s(ids::metric::BANDWIDTH, "bandwidth of one CPU at rest").aside(),
        fact(ids::metric::SIZE, "working set of each probe", "MiB"),
        fact(ids::metric::KEPT, "share of its lines still cached after 0.25 ms", ""),
        fact(ids::metric::MOMENT, "start of each probe", "ms"),
    ],
    params: &[],
    view: &View::Table,
    from: Depth::Full,
    hidden: true,
    budget_s: Some(180.0),
    cases,
    points: single_point,
    run,
}];

/// Time between probes, ns: Assay works for a tenth of it.
const EVERY_NS: f64 = 75e6;
/// And the least time from the end of one to the next.
const MIN_REST_NS: f64 = 10e6;
/// Samples of the profile that a pass lasts, and its longest time, ns.
const WINDOWS: f64 = 800.0;
const MAX_NS: f64 = 4e9;
/// Working sets: smaller ones are no last-level cache, larger ones take too long to read.
const MIN_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 64 << 20;
/// Smaller memories have too few pages for latency.
const MIN_MEMORY: u64 = 8 << 20;

/// The case's input that names the largest working set, bytes.
const LARGEST: &str = "largest";

/// Sizes of working sets, bytes.
fn sizes(largest: u64) -> Vec<u64> {
    std::iter::successors(Some(MIN_BYTES), |size| Some(2 * size))
        .take_while(|size| *size <= largest)
        .collect()
}

/// Probes of a pass: whole rounds of all sizes, at least one.
fn looks(window_ns: f64, sizes: usize) -> usize {
    let wanted = ((WINDOWS * window_ns).min(MAX_NS) / EVERY_NS) as usize;
    (wanted / sizes).max(1) * sizes
}

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("watcher") else { return bench.no_cpu(scope) };
    let placement = placement.pages(Pages::Huge);
    let twice = last_level_bytes(scope.machine, &placement).saturating_mul(2).clamp(MIN_MEMORY, MAX_BYTES);
    let Some(largest) = sizes(twice.min(scope.memory_bytes)).pop().filter(|largest| *largest >= MIN_MEMORY)
    else {
        let why =
            format!("needs {} MiB of memory; {} MiB may be used", MIN_MEMORY >> 20, scope.memory_bytes >> 20);
        return vec![Candidate::unmet(bench.id, "one-cpu", why)];
    };
    let looks = looks(scope.windows.window_ns, sizes(largest).len());
    let seconds = 0.1 + looks as f64 * EVERY_NS / 1e9;
    let mut candidate = Candidate::new(bench.id, placement, 95, seconds).memory(largest);
    candidate.case.inputs.insert(LARGEST.into(), largest.to_string());
    vec![candidate]
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let largest: u64 = case
        .inputs
        .get(LARGEST)
        .and_then(|bytes| bytes.parse().ok())
        .context("the case does not name its largest working set")?;
    let (nodes, clock) = (CpuSet::default(), sampler.clock());
    let memory = resident(largest, case.placement.pages, &nodes, |index| word(0, index))?;
    note_memory(sampler, &memory, &nodes);
    let mut memory = Rc::new(memory);
    let read = streams(Op::Read).into_iter().next().context("no read loop for this CPU")?;
    let mut prober = Prober::at_rest(largest, read, clock, sampler.seed())
        .context("its pages are too few or too small to measure")?;
    let sizes = sizes(largest);
    let count = looks(sampler.windows().window_ns, sizes.len());
    // Sizes in a random order, a new one each turn: what comes and goes meets all of them.
    let mut rng = fastrand::Rng::with_seed(sampler.seed());
    let mut seen = Vec::with_capacity(count);
    let begin = clock.now();
    for turn in 0..count / sizes.len() {
        let mut order = sizes.clone();
        rng.shuffle(&mut order);
        for (at, size) in order.into_iter().enumerate() {
            let due = (turn * sizes.len() + at) as f64 * EVERY_NS;
            // Late probes on slow hosts leave time for other work, too.
            let rest = (begin + due - clock.now()).max(MIN_REST_NS);
            std::thread::sleep(Duration::from_nanos(rest as u64));
            let look = prober.rest(&mut memory, size as usize);
            check_answer(look.is_some(), || format!("a walk through {size} bytes, or a sum, was wrong"))?;
            seen.extend(look.map(|look| (size as f64 / f64::from(1 << 20), look)));
        }
    }
    let windows = |work: Vec<f64>, ns: Vec<f64>| (work, ns);
    let loads = seen.iter().map(|(_, look)| look.near_ns).collect();
    sampler.windows_timed(Params::new(), ids::metric::LATENCY, windows(vec![1.0; seen.len()], loads), 0)?;
    let (bytes, ns) = seen.iter().map(|(_, look)| (look.stream_bytes, look.stream_ns)).unzip();
    sampler.windows_timed(Params::new(), ids::metric::BANDWIDTH, windows(bytes, ns), 0)?;
    let held: Vec<[f64; 2]> = seen.iter().map(|(mib, look)| [*mib, look.kept]).collect();
    for (metric, values) in [
        (ids::metric::CACHE, held.chunks(sizes.len()).map(gets).collect()),
        (ids::metric::SIZE, held.iter().map(|[mib, _]| *mib).collect()),
        (ids::metric::KEPT, held.iter().map(|[_, kept]| *kept).collect()),
        (ids::metric::MOMENT, seen.iter().map(|(_, look)| (look.at_ns - begin) / 1e6).collect()),
    ] {
        list(sampler, Params::new(), metric, values)?;
    }
    Ok(())
}

/// What a turn's working sets, MiB and the share of each that was kept, find of the cache: those
/// that fit find themselves, larger ones all of it, unless the cache keeps new lines out.
fn gets(turn: &[[f64; 2]]) -> f64 {
    turn.iter().map(|[mib, kept]| mib * kept).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placements;
    use crate::rehearsal::{cases as planned, this_machine, visit_row};
    use machine::{Cache, CacheKind, Machine};
    use model::vocabulary::MetricId;

    fn largest(llc: Option<u64>, memory_bytes: u64) -> Option<u64> {
        let mut machine: Machine = this_machine();
        let cpus = machine.cpus.online.clone();
        machine.caches = llc
            .map(|size| Cache { size_bytes: Some(size), ..Cache::new(3, CacheKind::Unified, cpus) })
            .into_iter()
            .collect();
        let placements = Placements::of(&machine);
        let (depth, windows) = (Depth::Full, Depth::Full.windows());
        let scope =
            Scope { machine: &machine, placements: &placements, depth, memory_bytes, windows, all: false };
        let candidate = cases(&BENCHMARKS[0], &scope).remove(0);
        assert!(candidate.memory_bytes <= memory_bytes);
        candidate.case.inputs.get(LARGEST).and_then(|bytes| bytes.parse().ok())
    }

    #[test]
    fn working_sets_follow_the_cache_and_the_memory() {
        assert_eq!(largest(Some(16 << 20), 1 << 30), Some(32 << 20));
        assert_eq!(largest(Some(480 << 20), 1 << 30), Some(64 << 20));
        assert_eq!(largest(Some(2 << 20), 1 << 30), Some(8 << 20));
        assert_eq!(largest(Some(480 << 20), 63 << 20), Some(32 << 20));
        assert_eq!(largest(Some(480 << 20), 7 << 20), None);
        assert_eq!(sizes(8 << 20), [1 << 20, 2 << 20, 4 << 20, 8 << 20]);
    }

    #[test]
    fn visits_are_whole_turns_of_four_seconds_at_most() {
        assert_eq!([2e6, 5e6, 10e6].map(|window| looks(window, 7)), [21, 49, 49]);
        assert_eq!(looks(2e5, 7), 7);
    }

    #[test]
    fn a_turn_finds_the_cache_by_what_fits_and_by_what_does_not() {
        assert_eq!(gets(&[[1.0, 1.0], [2.0, 1.0], [4.0, 0.75], [8.0, 0.375]]), 3.0);
        // Of a set that does not fit some caches keep nothing.
        assert_eq!(gets(&[[1.0, 1.0], [2.0, 1.0], [4.0, 0.1], [8.0, 0.0]]), 2.0);
        assert_eq!(gets(&[[1.0, 0.0]]), 0.0);
    }

    #[test]
    fn every_look_is_kept_with_its_moment() {
        let [case] = &planned(ids::NEIGHBOURS, Depth::Full)[..] else { return };
        let samples = visit_row(ids::NEIGHBOURS);
        let of = |metric: MetricId| {
            let own = samples.iter().find(|one| one.metrics == [metric]).expect("a list");
            own.values(Form::Value)
        };
        let turn = sizes(case.inputs[LARGEST].parse().expect("bytes")).len();
        let (moments, kept) = (of(ids::metric::MOMENT), of(ids::metric::KEPT));
        assert_eq!((moments.len(), kept.len(), of(ids::metric::CACHE).len()), (turn, turn, 1));
        assert!(moments.windows(2).all(|two| two[1] - two[0] > 0.0), "{moments:?}");
        assert!(kept.iter().all(|share| (0.0..=1.0).contains(share)), "{kept:?}");
        let sizes: f64 = of(ids::metric::SIZE).iter().sum();
        assert_eq!(sizes, ((1 << turn) - 1) as f64, "each size once");
    }
}
