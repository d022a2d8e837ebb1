//! Regions of memory as one CPU sees them, in a standard run: a small map with probes.

use super::probes::{Probe, filler_bytes};
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, point};
use super::{CHUNK_BYTES, CHUNKS, FILLER, LOOKS, RESERVE, ROUNDS, may_take, points, run, whole_parts};
use crate::row::{gb_per_s, latency_ns, note};
use model::vocabulary::MetricId;
use model::vocabulary::memory_map as ids;
use model::{Metric, Pages, Params};

pub(super) const HOPPING: Metric = latency_ns(ids::metric::HOPPING, "loads on different pages").aside();
pub(super) const SCATTERED: Metric =
    latency_ns(ids::metric::SCATTERED, "loads on 512 scattered pages").aside();
pub(super) const NEAR: Metric = latency_ns(ids::metric::NEAR, "loads on 48 pages").aside();
pub(super) const STREAM: Metric = gb_per_s(ids::metric::STREAM, "bandwidth of one CPU").aside();
pub(super) const STREAM_NEAR: Metric =
    gb_per_s(ids::metric::STREAM_NEAR, "bandwidth, pages in groups").aside();
pub(super) const STREAM_HOPPING: Metric =
    gb_per_s(ids::metric::STREAM_HOPPING, "bandwidth, pages in random order").aside();
pub(super) const HUGE_PAGE: Metric = note(ids::metric::HUGE_PAGE, "hopping loads of each huge page", "ns");
pub(super) const HUGE_PAGE_NEAR: Metric =
    note(ids::metric::HUGE_PAGE_NEAR, "near loads of each huge page (0: too few probes)", "ns");
pub(super) const KEPT: Metric =
    note(ids::metric::KEPT, "share of lines still cached after 0.25 ms, in order of time", "");
pub(super) const CHUNK_IN_TIME: Metric =
    note(ids::metric::CHUNK_IN_TIME, "regions in the order of probes", "");
pub(super) const MOMENT: Metric = note(ids::metric::MOMENT, "start of each probe", "ms");

pub(super) const PARAMS: &[Param] = &[
    Param::int(ids::param::NODE, "NUMA node of the memory", 0..=1 << 16),
    Param::int(ids::param::CHUNK, "chunk, in order of allocation", 0..=1 << 16),
];

pub(super) const REGIONS: Benchmark = Benchmark {
    id: ids::REGIONS,
    title: "Memory regions",
    about: "Latency and bandwidth of eight regions of 64 MiB, by one CPU, with few and with many pages in use.",
    reading: "`hopping` less `scattered` is address translation: a few ns on huge pages. It is 15–80 ns without \
              them, or if the host backs a guest with small pages. `near` is memory alone: regions that differ lie \
              on different nodes. Equal latencies but other bandwidths mean fewer channels. Times that differ, not \
              regions, mean other guests. A slow first write means that the host had not yet given the memory.",
    method: "Regions are on huge pages, fewer if memory is short, in rounds of random order. Before each round each \
             is probed twice, in another order and flushed. `hopping` is 4096 dependent loads on different pages. \
             `scattered` loads return to 512 scattered pages, `near` loads to 48. Then 1024 pages are read in order \
             (`stream`), in random groups of 64 (`stream_near`) and at random (`stream_hopping`). Clock readings are \
             subtracted, and a load above four medians counts as four. Before each walk 64 MiB of other pages are \
             read, which empties every TLB. `huge_page` is the mean hopping load of each 2 MiB, `huge_page_near` its \
             near loads less what a probe has in common. Sums and ends of walks are checked. At the end regions are \
             freed and written again (`second_touch`, at first `first_touch`); pages that changed place are counted \
             (`moved`).",
    source: file!(),
    metrics: &[
        HOPPING,
        SCATTERED,
        NEAR,
        gb_per_s(ids::metric::BANDWIDTH, "bandwidth of a region").aside(),
        gb_per_s(ids::metric::TYPICAL, "bandwidth of the median region"),
        STREAM,
        STREAM_NEAR,
        STREAM_HOPPING,
        HUGE_PAGE,
        HUGE_PAGE_NEAR,
        KEPT,
        CHUNK_IN_TIME,
        MOMENT,
        super::PHYSICAL,
        super::SPREAD,
        super::moves::MOVED,
        super::moves::FIRST_TOUCH,
        super::moves::SECOND_TOUCH,
    ],
    params: PARAMS,
    from: Depth::Standard,
    cases,
    points,
    run,
    ..Benchmark::PINNED
};

const REGION_COUNT: u64 = 8;
const REGION_BYTES: u64 = 64 << 20;
const REGION_ROUNDS: u64 = 9;
/// Time of a probe, s: six walks and readings of some 4096 loads or pages, linked and flushed, and
/// twice what pushes out others.
pub(super) const LOOK_S: f64 = 0.03;

/// Probes of a region for each of its readings: with two, a cause is named almost from its limit
/// on. Large maps have one.
pub(super) fn looks(chunks: u64, rounds: u64) -> u64 {
    const MAX_PROBES: u64 = 3000;
    if 2 * chunks * rounds <= MAX_PROBES { 2 } else { 1 }
}

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(placement) = scope.placements.one_cpu("reader") else { return bench.no_cpu(scope) };
    let placement = placement.pages(Pages::Huge);
    let Some((total, tightest)) = may_take(scope, None) else {
        return vec![Candidate::unmet(
            bench.id,
            "one-cpu",
            "the kernel does not report free memory".to_string(),
        )];
    };
    let filler = filler_bytes(total).unwrap_or(total);
    let total = total - filler;
    let bytes = whole_parts(REGION_BYTES.min(total / 2), 1);
    let count = REGION_COUNT.min(total / bytes);
    if count < 2 {
        return vec![Candidate::unmet(bench.id, "one-cpu", "needs memory for two regions".to_string())];
    }
    let taken = count * bytes;
    let looks = looks(count, REGION_ROUNDS);
    let seconds = taken as f64 * (1.0 / 1e9 + REGION_ROUNDS as f64 / 4e9)
        + (looks * count * REGION_ROUNDS) as f64 * LOOK_S;
    let mut candidate = Candidate::new(bench.id, placement, 60, seconds).memory(taken + filler);
    let reserve = (tightest.saturating_sub(taken + filler) / 2).min(super::LEFT / 2);
    let inputs = [(CHUNKS, count), (CHUNK_BYTES, bytes), (ROUNDS, REGION_ROUNDS), (RESERVE, reserve)];
    for (name, value) in inputs.into_iter().chain([(LOOKS, looks), (FILLER, filler)]) {
        candidate.case.inputs.insert(name.to_string(), value.to_string());
    }
    vec![candidate]
}

/// All observations of the chunks, in the order of time.
pub(super) fn emit(sampler: &mut Sampler, chunks: u64, seen: &[(u64, Probe)]) -> anyhow::Result<()> {
    let Some((_, first)) = seen.first() else { return Ok(()) };
    let loads = [ids::metric::HOPPING, ids::metric::SCATTERED, ids::metric::NEAR];
    let streams = [ids::metric::STREAM, ids::metric::STREAM_NEAR, ids::metric::STREAM_HOPPING];
    for chunk in 0..chunks {
        let own: Vec<&Probe> = seen.iter().filter(|(of, _)| *of == chunk).map(|(_, probe)| probe).collect();
        let at = || point(ids::param::CHUNK, chunk);
        for (kind, metric) in loads.into_iter().enumerate() {
            let walks = own.iter().map(|probe| (probe.loads[kind], probe.loads_ns[kind])).unzip();
            sampler.windows_timed(at(), metric, walks, 0)?;
        }
        for (kind, metric) in streams.into_iter().enumerate() {
            let ns: Vec<f64> = own.iter().map(|probe| probe.streams_ns[kind]).collect();
            sampler.windows_timed(
                at(),
                metric,
                (own.iter().map(|probe| probe.stream_bytes).collect(), ns),
                0,
            )?;
        }
        let pages = own.first().map_or(0, |probe| probe.huge.len());
        let mean = |page: usize| {
            let of = |at: usize| own.iter().map(|probe| probe.huge[page][at]).sum::<f64>();
            of(0) / of(1).max(1.0)
        };
        list(sampler, at(), ids::metric::HUGE_PAGE, (0..pages).map(mean).collect())?;
        let look = |probe: &&Probe| {
            let seen = probe.huge_near.iter().map(|[ns, loads]| (*loads > 0.0).then(|| ns / loads));
            seen.collect::<Vec<Option<f64>>>()
        };
        // By odd and by even probes: what is always slow is slow in both.
        let half = |first: usize| own.iter().skip(first).step_by(2).map(look).collect::<Vec<_>>();
        let levels = [0, 1].map(|first| page_levels(&half(first))).concat();
        list(sampler, at(), ids::metric::HUGE_PAGE_NEAR, levels)?;
    }
    let all = |of: &dyn Fn(&(u64, Probe)) -> f64| seen.iter().map(of).collect::<Vec<f64>>();
    list(sampler, Params::new(), ids::metric::KEPT, all(&|(_, probe)| probe.kept))?;
    list(sampler, Params::new(), ids::metric::CHUNK_IN_TIME, all(&|(chunk, _)| *chunk as f64))?;
    list(sampler, Params::new(), ids::metric::MOMENT, all(&|(_, probe)| (probe.at_ns - first.at_ns) / 1e6))
}

/// Probes that must have seen a page.
const MIN_LOOKS: usize = 3;

/// The level of each huge page of a region, ns; 0 if too few probes saw it. Each probe gives the
/// mean load of each page, `None` if not seen. What all pages of a probe share, as other guests'
/// work, is removed; a disturbed probe counts once.
pub(super) fn page_levels(looks: &[Vec<Option<f64>>]) -> Vec<f64> {
    let common = |look: &Vec<Option<f64>>| -> Option<f64> {
        let seen: Vec<f64> = look.iter().flatten().copied().collect();
        (!seen.is_empty()).then(|| crate::median(seen))
    };
    let looks: Vec<(&Vec<Option<f64>>, f64)> =
        looks.iter().filter_map(|look| Some((look, common(look)?))).collect();
    if looks.is_empty() {
        return Vec::new();
    }
    let region = crate::median(looks.iter().map(|(_, common)| *common).collect());
    let level = |page: usize| {
        let own = looks.iter().filter_map(|(look, common)| Some((*look.get(page)?)? / common));
        let ratios: Vec<f64> = own.collect();
        if ratios.len() < MIN_LOOKS { 0.0 } else { crate::median(ratios) * region }
    };
    (0..looks[0].0.len()).map(level).collect()
}

/// Emits values that are no times, in their order.
pub(crate) fn list(
    sampler: &mut Sampler,
    point: Params,
    metric: MetricId,
    values: Vec<f64>,
) -> anyhow::Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    let ns = vec![1.0; values.len()];
    sampler.windows_timed(point, metric, (values, ns), 0)
}
