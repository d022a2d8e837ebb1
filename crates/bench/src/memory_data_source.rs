//! The data-source table: what a load costs by where its line comes from.

use crate::row::{latency_ns, value};
use anyhow::{Context, bail};
use model::vocabulary::memory as ids;

use super::memory::{self, huge_share, note_memory, resident};
use super::{Benchmark, Candidate, Param, Point, Sampler, Scope, View, check_answer, single_point};
use crate::placement::Distance;
use kernels::{LINE_BYTES, Op, Ring, streams};
use machine::{Cache, CacheKind, Machine};
use model::{Better, Case, CpuSet, Form, Metric, Pages, Params, Placement, Seat};
use sys::clock::Clock;
use sys::crew::{Partner, Wait};
use sys::mapping::Mapping;

mod dram;

use dram::{dram, remote_dram};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::DATA_SOURCE,
    title: "Memory latency by source",
    about: "Latency of a dependent load by the place that answers: L1, L2, L3, another core's cache, DRAM, remote \
            DRAM. `translation` is the cost of address translation.",
    reading: "Each row should cost more than the one above. In cycles: L1 4–5, L2 12–20, L3 40–80 (75–130 on meshes), \
              another core's line 60–150, another L3 200–600. In ns: DRAM 70–140, remote DRAM 1.4–2.5 times that. \
              SMT siblings share L1 and show a hit. A modified line may cost less than a clean one. Translation takes \
              a few ns on huge pages, 10–60 ns on small ones. In a guest, L3 near DRAM means that it has little L3.",
    method: "Loads follow a chain in random order. l1 is half the L1 data cache. l2 and l3 use lines that fall into \
             a few sets of the cache before: eight times its ways. Without reported sets and ways or huge pages a \
             block between both sizes is used (see the notes). core-modified: a partner has just written all 256 \
             lines. core-shared: it flushed them and read them back, so they are clean. l3-remote: it then reads \
             twice its L2, which leaves the lines in its L3. This CPU walks once, and only walks are timed. dram: \
             flushed lines 256 bytes apart in a block beyond the last level, in random order. dram within 256 KiB \
             uses other lines of the same pages, group by group, so the first TLB holds their translations. \
             Within 4 MiB the second TLB does. The orders alternate. translation is the latency over the whole \
             block less that within groups, sample by sample. dram-remote uses memory of another node. The lines \
             of pairs lie on the measuring CPU's node. Each walk must end at the expected line, and lines must \
             hold what the partner wrote.",
    source: file!(),
    metrics: &[
        latency_ns(ids::metric::LATENCY, "latency"),
        Metric::new(
            ids::metric::CYCLES,
            "latency in core cycles",
            "cycles",
            Better::Lower,
            Form::CyclesPerWork,
        )
        .aside(),
        value(ids::metric::TRANSLATION, "address translation", "ns", Better::Lower),
    ],
    params: &[
        Param::choice(
            ids::param::SOURCE,
            "source of the line",
            &[L1, L2, L3, CORE_SHARED, CORE_MODIFIED, L3_REMOTE, DRAM, DRAM_REMOTE],
        ),
        Param::bytes(ids::param::WITHIN, "bytes of each group that is read in random order", 4096..=1 << 46),
    ],
    view: &View::Wide,
    cases,
    points,
    run,
    ..Benchmark::PINNED
}];

const L1: &str = "l1";
const L2: &str = "l2";
const L3: &str = "l3";
const CORE_SHARED: &str = "core-shared";
const CORE_MODIFIED: &str = "core-modified";
const L3_REMOTE: &str = "l3-remote";
const DRAM: &str = "dram";
const DRAM_REMOTE: &str = "dram-remote";

/// Rank in the plan: higher runs first (100 is what every report needs).
const PRIORITY: u32 = 86;

/// Assumed L1 size where the kernel reports none, bytes.
const SMALLEST_L1: u64 = 32 << 10;

/// A case has one point.
const POINTS: usize = 1;
/// Stretch of its windows. A partner works about as long as the walk takes, and its reads that
/// evict an L2 take several times as long; neither counts as time of a window.
const STRETCH_ALONE: f64 = 1.0;
const STRETCH_WITH_PARTNER: f64 = 3.0;
const STRETCH_WITH_EVICTION: f64 = 6.0;
/// Seconds to map memory and link its lines, and the same with a partner to start.
const SETUP_S: f64 = 0.01;
const PARTNER_SETUP_S: f64 = 0.02;
/// Bytes of a large block that are set up in a second, at least.
const SETUP_BYTES_PER_S: f64 = 1e9;

const ROLES: [&str; 2] = ["reader", "owner"];

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(on_one_cpu) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let on_one_cpu = on_one_cpu.pages(Pages::Huge);
    let mut candidates = vec![
        l1(bench, scope, &on_one_cpu),
        outer_cache(bench, scope, &on_one_cpu, 2),
        outer_cache(bench, scope, &on_one_cpu, 3),
    ];
    for source in [CORE_SHARED, CORE_MODIFIED] {
        candidates.extend(pairs(bench, scope, source, |distance| distance != Distance::SameCpu));
    }
    let other_l3 = [Distance::OtherLlc, Distance::OtherNode, Distance::OtherPackage];
    candidates.extend(pairs(bench, scope, L3_REMOTE, |distance| other_l3.contains(&distance)));
    candidates.push(dram(bench, scope, on_one_cpu.clone(), DRAM));
    candidates.extend(remote_dram(bench, scope, &on_one_cpu));
    candidates
}

fn l1(bench: &Benchmark, scope: &Scope, on_one_cpu: &Placement) -> Candidate {
    let cpu = on_one_cpu.cpus().first().unwrap_or(0);
    let half = memory::cache_bytes(scope.machine, cpu, 1).unwrap_or(SMALLEST_L1) / 2;
    candidate(bench, on_one_cpu.clone(), L1, scope.seconds(POINTS, STRETCH_ALONE, SETUP_S))
        .memory(HUGE_PAGE)
        .input(&ids::param::BYTES, half.max(1024))
}

/// L2 or L3: lines that miss the level before (inner, nearer to the core) and hit this one (outer).
fn outer_cache(bench: &Benchmark, scope: &Scope, on_one_cpu: &Placement, level: u32) -> Candidate {
    let source = if level == 2 { L2 } else { L3 };
    let cpu = on_one_cpu.cpus().first().unwrap_or(0);
    let outer = cache(scope.machine, cpu, level).and_then(|cache| Some((cache, cache.size_bytes?)));
    let inner = cache(scope.machine, cpu, level - 1);
    let (Some(inner), Some((outer, outer_bytes))) = (inner, outer) else {
        let why = format!("the kernel reports no L{level} for CPU {cpu}");
        return Candidate::unmet(bench.id, "one-cpu", why).param(ids::param::SOURCE, source);
    };
    let Some(block) = between(inner.size_bytes.unwrap_or(0), outer_bytes) else {
        let why = format!("the kernel reports an L{level} no larger than the level before");
        return Candidate::unmet(bench.id, "one-cpu", why).param(ids::param::SOURCE, source);
    };
    let conflict = Conflict::in_cache(inner, outer);
    let bytes = conflict.map_or(block, |conflict| conflict.bytes().max(block));
    let seconds = scope.seconds(POINTS, STRETCH_ALONE, SETUP_S + bytes as f64 / SETUP_BYTES_PER_S);
    let mut candidate = candidate(bench, on_one_cpu.clone(), source, seconds);
    if let Some(Conflict { stride, lines }) = conflict {
        candidate = candidate.input(&ids::param::STRIDE, stride).input("lines", lines);
    }
    candidate.memory(bytes.next_multiple_of(HUGE_PAGE)).input(&ids::param::BYTES, block)
}

/// A candidate for each wanted distance; one that this host lacks has a reason.
fn pairs(
    bench: &Benchmark,
    scope: &Scope,
    source: &'static str,
    wanted: impl Fn(Distance) -> bool,
) -> Vec<Candidate> {
    let of_pair = |distance: Distance, pair: Result<Placement, String>| {
        let placement = pair?;
        if source != L3_REMOTE {
            let seconds = scope.seconds(POINTS, STRETCH_WITH_PARTNER, PARTNER_SETUP_S);
            return Ok(candidate(bench, placement, source, seconds).memory(1 << 20));
        }
        let owner = placement.seats[1].cpus.first().unwrap_or(0);
        let size = |level| memory::cache_bytes(scope.machine, owner, level);
        let (Some(l2), Some(l3)) = (size(2), size(3)) else {
            return Err(format!("the kernel reports no L3 for CPU {owner} ({})", distance.name()));
        };
        let eviction_bytes = (2 * l2).min(l3 / 2).next_multiple_of(HUGE_PAGE);
        let setup_s = PARTNER_SETUP_S + eviction_bytes as f64 / SETUP_BYTES_PER_S;
        let seconds = scope.seconds(POINTS, STRETCH_WITH_EVICTION, setup_s);
        let candidate = candidate(bench, placement, source, seconds);
        Ok(candidate.memory(eviction_bytes + (2 << 20)).input("sweep", eviction_bytes))
    };
    // `other-cpu` replaces the others if the kernel reports no distances; its absence is not
    // reported.
    let wanted_pairs =
        scope.placements.pairs(ROLES).into_iter().filter(|(distance, pair)| {
            wanted(*distance) && (*distance != Distance::OtherCpu || pair.is_ok())
        });
    let unmet = |name, why| Candidate::unmet(bench.id, name, why).param(ids::param::SOURCE, source);
    wanted_pairs
        .map(|(distance, pair)| of_pair(distance, pair).unwrap_or_else(|why| unmet(distance.name(), why)))
        .collect()
}

/// A single point; DRAM cases have one more for each locality range.
fn points(case: &Case) -> Vec<Params> {
    single_point(case).into_iter().chain(dram::spread_points(case)).collect()
}

fn candidate(bench: &Benchmark, placement: Placement, source: &'static str, seconds: f64) -> Candidate {
    Candidate::new(bench.id, placement, PRIORITY, seconds).param(ids::param::SOURCE, source)
}

impl Candidate {
    /// An input passes to [`run`] what was planned for this host, such as a size. Unlike a
    /// parameter it is no part of the case's key.
    fn input(mut self, name: &str, value: u64) -> Candidate {
        self.case.inputs.insert(name.to_string(), value.to_string());
        self
    }
}

fn cache(machine: &Machine, cpu: u32, level: u32) -> Option<&Cache> {
    let data = |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
    machine.caches.iter().filter(data).find(|cache| cache.cpus.contains(cpu))
}

/// A block, bytes, too large for the inner cache and small enough for the outer one, with a margin
/// on both sides if possible.
fn between(inner: u64, outer: u64) -> Option<u64> {
    if inner.saturating_mul(4) <= outer / 2 {
        Some(inner * 4).filter(|block| *block > 0)
    } else {
        (inner < outer).then(|| ((inner + outer) / 2).next_multiple_of(LINE_BYTES as u64))
    }
}

const HUGE_PAGE: u64 = 2 << 20;

/// Lines that conflict: they map to a few sets of a cache, more of them than it has ways.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Conflict {
    /// Distance of lines of one set: the cache's size divided by its ways.
    stride: u64,
    /// Lines of each of the [`SETS`] sets.
    lines: u64,
}

/// Sets with conflicts: more than one, to use more slices of the outer cache.
const SETS: u64 = 4;
/// Conflicting lines for each way: with random replacement one in e^8 would stay.
const LINES_PER_WAY: u64 = 8;
const MIN_LINES_PER_WAY: u64 = 3;
/// A smaller cache per way does not exist: the kernel's report is then wrong.
const MIN_STRIDE: u64 = 1024;
/// Bytes in huge pages that the nearest TLB of any server core holds.
const TLB_REACH: u64 = 32 * HUGE_PAGE;

impl Conflict {
    /// Lines that miss `inner` and hit `outer`; `None` if the kernel reports too little or
    /// contradicts itself.
    fn in_cache(inner: &Cache, outer: &Cache) -> Option<Conflict> {
        let (sets, ways, line) = (inner.sets?, u64::from(inner.ways?), inner.line_bytes?);
        let stride = u64::from(sets) * u64::from(line);
        let possible =
            stride.is_power_of_two() && stride >= MIN_STRIDE && stride.checked_mul(ways) == inner.size_bytes;
        // Half of the outer cache, because other work uses it too.
        let max_lines = (outer.size_bytes? / 2).min(TLB_REACH) / stride;
        let lines = (ways * LINES_PER_WAY).min(max_lines);
        (possible && lines >= ways * MIN_LINES_PER_WAY).then_some(Conflict { stride, lines })
    }

    fn of(case: &Case) -> Option<Conflict> {
        Some(Conflict { stride: input(case, &ids::param::STRIDE)?, lines: input(case, "lines")? })
    }

    /// Bytes that the lines span; the sets lie within each stride.
    fn bytes(&self) -> u64 {
        self.stride * self.lines
    }

    /// Numbers of all lines: those of one set a stride apart, the sets evenly within a stride.
    fn line_numbers(&self) -> Vec<u32> {
        let line =
            |index: u64| (index / SETS * self.stride + index % SETS * self.stride / SETS) / LINE_BYTES as u64;
        (0..self.lines * SETS).map(|index| line(index) as u32).collect()
    }
}

fn input(case: &Case, name: &str) -> Option<u64> {
    case.inputs.get(name)?.parse().ok()
}

/// Initial content of every line.
const FIRST_MARK: u64 = 1;

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let source = case
        .params
        .get(ids::param::SOURCE)
        .and_then(|source| source.text())
        .context("the case has no source")?;
    match source {
        CORE_SHARED | CORE_MODIFIED | L3_REMOTE => with_partner(case, source, sampler),
        DRAM | DRAM_REMOTE => dram::run(case, sampler),
        _ => alone(case, source, sampler),
    }
}

/// Walks through lines that this CPU has in a cache.
fn alone(case: &Case, source: &str, sampler: &mut Sampler) -> anyhow::Result<()> {
    let block = input(case, &ids::param::BYTES).context("the case has no size")?;
    let conflict = Conflict::of(case);
    // Whole huge pages, or none would be given.
    let bytes = conflict.map_or(block, |conflict| conflict.bytes().max(block)).next_multiple_of(HUGE_PAGE);
    let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
    let zeros = |_| 0;
    let memory = resident(bytes, case.placement.pages, &nodes, zeros)?;
    note_memory(sampler, &memory, &nodes);
    let all_huge = huge_share(&memory).is_some_and(|share| share > 0.99);
    let lines = match (conflict, source) {
        // The set of a line is known only within one physical page, so strides need huge pages.
        (Some(conflict), _) if all_huge => conflict.line_numbers(),
        // Here either the pages are small, or the sets are unknown.
        (None, L2 | L3) | (Some(_), _) => {
            let why =
                if all_huge { "the kernel does not report sets and ways" } else { "there are no huge pages" };
            let note = format!(
                "{why}: {} was measured in a block of {} KiB, between both cache sizes",
                source,
                block >> 10
            );
            sampler.facts().notes.push(note);
            all_lines(block)
        }
        (None, _) => all_lines(block),
    };
    let mut ring = Ring::new(memory, lines, sampler.seed(), FIRST_MARK);
    // Fills caches, TLBs and their replacement state.
    ring.walk(ring.lines() * 4);
    sampler.time(latency_point(Ring::UNROLL), |turns| ring.walk(turns * Ring::UNROLL))?;
    check_answer(ring.ended_correctly(), || {
        format!("the chain through {} lines ended at a wrong line", ring.lines())
    })
}

/// `work`: loads of an iteration.
fn latency_point(work: u64) -> Point {
    Point::new(ids::metric::LATENCY, work as f64).also(&[ids::metric::CYCLES])
}

fn all_lines(bytes: u64) -> Vec<u32> {
    (0..(bytes / LINE_BYTES as u64) as u32).collect()
}

/// Lines of a base page that the pairs use: far enough apart that no prefetcher takes one for the
/// next of another.
const LINES_PER_PAGE: u32 = 4;
const BASE_PAGE: u32 = 4096;

/// Line numbers in `pages` base pages, spread evenly over the sets of a cache.
fn spread_lines(pages: u32) -> Vec<u32> {
    let lines = BASE_PAGE / LINE_BYTES as u32;
    let gap = lines / LINES_PER_PAGE;
    // After this many pages the lines shift by one, so that in time all places in a page are used.
    const PAGES_PER_SHIFT: u32 = 4;
    let line = |index: u32| {
        let (page, step) = (index / LINES_PER_PAGE, index % LINES_PER_PAGE);
        page * lines + step * gap + page / PAGES_PER_SHIFT % gap
    };
    (0..pages * LINES_PER_PAGE).map(line).collect()
}

/// 256 lines: 16 KiB stay in half of any L1, and 64 pages in nearly any L1 TLB.
const CORE_PAGES: u32 = 64;
/// 1024 lines: a walk long enough to justify reading twice an L2.
const L3_PAGES: u32 = 256;

/// A note is made if reading the clock takes a larger share of a walk.
const MAX_CLOCK_SHARE: f64 = 0.1;

/// Times walks, each once through lines that a partner on another CPU has just brought into its
/// caches. The partner is a forked process; the ring lies in memory shared with it.
fn with_partner(case: &Case, source: &str, sampler: &mut Sampler) -> anyhow::Result<()> {
    let [_, partner_seat] = case.placement.seats.as_slice() else {
        bail!("a pair needs two CPUs, not {}", case.placement.seats.len());
    };
    let pages = if source == L3_REMOTE { L3_PAGES } else { CORE_PAGES };
    let memory = Mapping::shared((pages * BASE_PAGE) as usize)?;
    // Linked before the fork, so that all its pages are first touched here.
    let mut ring = Ring::new(memory, spread_lines(pages), sampler.seed(), FIRST_MARK);
    note_memory(sampler, ring.memory(), &CpuSet::default());
    let seed = sampler.seed();
    let mut partner = Partner::start(&partner_seat.cpus, Wait::Spin, || {
        partner_commands(case, partner_seat, source, seed, &mut ring)
    })?;

    let (clock, lines) = (sampler.clock(), ring.lines());
    let clock_ns = clock_cost_ns(clock);
    let (mut mark, mut shortest_ns) = (FIRST_MARK, f64::INFINITY);
    sampler.time_by(latency_point(lines), |walks| {
        let mut ns = 0.0;
        for _ in 0..walks {
            mark += 1;
            // `read` adds up all lines, which all hold the same number.
            let expected = lines.wrapping_mul(if source == CORE_MODIFIED { mark } else { FIRST_MARK });
            let seen = partner.ask(mark)?;
            ring.rewind();
            let begin = clock.now();
            ring.walk(lines);
            let walk_ns = clock.now() - begin - clock_ns;
            ns += walk_ns;
            shortest_ns = walk_ns.min(shortest_ns);
            if seen != expected || !ring.ended_correctly() || ring.read() != expected {
                let read = ring.read();
                check_answer(false, || {
                    format!(
                        "the sum of {lines} lines should be {expected}; the partner read {seen}, this CPU {read}"
                    )
                })?;
            }
        }
        Ok(ns)
    })?;
    if clock_ns > shortest_ns * MAX_CLOCK_SHARE {
        let note =
            format!("reading the clock takes {clock_ns:.0} ns, subtracted from walks of {shortest_ns:.0} ns");
        sampler.facts().notes.push(note);
    }
    Ok(())
}

/// The partner's answer if it read something wrong: no sum of lines.
const WRONG_SUM: u64 = u64::MAX;

/// What the partner does for each command, which is a number to write to all lines: it brings the
/// lines into its caches and answers their sum.
fn partner_commands<'a>(
    case: &Case,
    seat: &Seat,
    source: &str,
    seed: u64,
    ring: &'a mut Ring,
) -> anyhow::Result<Box<dyn FnMut(u64) -> anyhow::Result<u64> + 'a>> {
    Ok(match source {
        CORE_MODIFIED => Box::new(move |mark| {
            ring.link(seed ^ mark, mark);
            Ok(ring.read())
        }),
        L3_REMOTE => {
            let bytes = input(case, "sweep").context("the case has no sweep size")?;
            let zeros = |_| 0;
            let mut eviction_block = resident(bytes, Pages::Huge, &seat.mem_nodes, zeros)?;
            let read = streams(Op::Read)[0];
            Box::new(move |_| {
                ring.flush();
                // Reads twice: some caches drop lines used only once instead of passing them to the
                // next level.
                let (sum, again) = (ring.read(), ring.read());
                // One pass over a block larger than the L2 leaves the lines in the L3. The word to
                // write is ignored, and the sum of zeros is 0.
                let zero = read.run(eviction_block.words_mut(), 1, 0);
                Ok(if again == sum && zero == 0 { sum } else { WRONG_SUM })
            })
        }
        _ => Box::new(move |_| {
            ring.flush();
            Ok(ring.read())
        }),
    })
}

/// Shortest time between two clock readings, ns: a part of every timed walk.
fn clock_cost_ns(clock: Clock) -> f64 {
    let apart = || {
        let begin = clock.now();
        clock.now() - begin
    };
    (0..1000).map(|_| apart()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
