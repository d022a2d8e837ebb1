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
    about: "Dependent loads in random order, each of which is answered by one place. l1: a chain in half the L1 data \
            cache. l2, l3: lines that all fall into a few sets of the cache before, eight times as many as it has \
            ways, so that none stays there (sets and ways as the kernel tells them; where it does not, or without huge \
            pages, a block between the two sizes: the notes say so). core-modified: a partner on another CPU has \
            just written all 256 lines of the chain; core-shared: it has flushed them to memory and read them back, so \
            that they are clean in its cache; then this CPU walks the chain once, and only the walks are timed. \
            l3-remote: after reading the lines the partner reads twice its L2, so that they are left in its L3. dram: \
            lines that were flushed from all caches, 256 bytes apart, in random order over a block larger than the last \
            level: memory and address translation; dram within 256 KiB: other lines of the same pages, in turn with \
            those, in random order inside one group of so many bytes before the next group: memory with translations \
            that the nearest TLB holds; within 4 MiB: with those that the second level holds. translation: by how much \
            the order over the whole block took longer, window by window. dram-remote: the same with the memory bound to \
            another node. The pairs' lines lie in memory of the measuring CPU's node, first touched there. Every walk \
            must come where its order leads, and the lines must hold what the partner wrote.",
    reading: "Each row should cost more than the one above it. Typical: L1 4 to 5 cycles, L2 12 to 20, L3 40 to 80 \
              (75 to 130 on meshes of many cores), a line in another core of the same L3 60 to 150, another L3 or \
              package 200 to 600, DRAM 70 to 140 ns, remote DRAM half as much again. On SMT siblings both share the L1: \
              their rows show an L1 hit. A modified line cheaper than a clean one is no error: some CPUs fetch clean \
              lines from memory rather than from a neighbour. dram within 256 KiB is memory alone, dram what a random \
              access to a large block costs, translation the difference: a few ns on huge pages, 10 to 60 ns on small \
              ones, and where a guest's huge pages are small ones of its host. L3 near DRAM in a guest: little of the \
              host's L3 is its own. Cycles are core cycles, whatever clock the cache itself has.",
    source: file!(),
    metrics: &[
        latency_ns(ids::metric::LATENCY, "latency of a load"),
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
            "where the line comes from",
            &[L1, L2, L3, CORE_SHARED, CORE_MODIFIED, L3_REMOTE, DRAM, DRAM_REMOTE],
        ),
        Param::int(
            ids::param::WITHIN,
            "bytes within which the order is random before the next such group",
            4096..=1 << 46,
        ),
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

const PRIORITY: u32 = 86;

/// An L1 of which nothing is told is at least this large.
const SMALLEST_L1: u64 = 32 << 10;

const ROLES: [&str; 2] = ["reader", "owner"];

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let one = match scope.floor.one_cpu("task") {
        Ok(placement) => placement.pages(Pages::Huge),
        Err(why) => return vec![Candidate::unmet(bench.id, "one-cpu", why)],
    };
    let mut rows = vec![l1(bench, scope, &one), level(bench, scope, &one, 2), level(bench, scope, &one, 3)];
    for source in [CORE_SHARED, CORE_MODIFIED] {
        rows.extend(pairs(bench, scope, source, |distance| distance != Distance::SameCpu));
    }
    let apart = [Distance::OtherLlc, Distance::OtherNode, Distance::OtherPackage];
    rows.extend(pairs(bench, scope, L3_REMOTE, |distance| apart.contains(&distance)));
    rows.push(dram(bench, scope, one.clone(), DRAM));
    rows.extend(remote_dram(bench, scope, &one));
    rows
}

fn l1(bench: &Benchmark, scope: &Scope, one: &Placement) -> Candidate {
    let cpu = one.cpus().first().unwrap_or(0);
    let half = memory::cache_bytes(scope.machine, cpu, 1).unwrap_or(SMALLEST_L1) / 2;
    row(bench, one.clone(), L1, scope.seconds(1, 1.0, 0.01))
        .memory(HUGE_PAGE)
        .input(&ids::param::BYTES, half.max(1024))
}

/// A cache behind the one before it.
fn level(bench: &Benchmark, scope: &Scope, one: &Placement, level: u32) -> Candidate {
    let source = if level == 2 { L2 } else { L3 };
    let cpu = one.cpus().first().unwrap_or(0);
    let cache = |level| cache(scope.machine, cpu, level);
    let sizes = (cache(level - 1), cache(level).and_then(|cache| Some((cache, cache.size_bytes?))));
    let (Some(inner), Some((outer, outer_bytes))) = sizes else {
        let why = format!("the kernel tells of no L{level} of CPU {cpu}");
        return Candidate::unmet(bench.id, "one-cpu", why).param(ids::param::SOURCE, source);
    };
    let Some(block) = between(inner.size_bytes.unwrap_or(0), outer_bytes) else {
        let why = format!("the L{level} is told to be no larger than what lies before it");
        return Candidate::unmet(bench.id, "one-cpu", why).param(ids::param::SOURCE, source);
    };
    let conflict = Conflict::in_cache(inner, outer);
    let bytes = conflict.map_or(block, |conflict| conflict.bytes().max(block));
    let mut row = row(bench, one.clone(), source, scope.seconds(1, 1.0, 0.01 + bytes as f64 / 1e9));
    if let Some(Conflict { stride, lines }) = conflict {
        row = row.input(&ids::param::STRIDE, stride).input("lines", lines);
    }
    row.memory(bytes.next_multiple_of(HUGE_PAGE)).input(&ids::param::BYTES, block)
}

/// Partners at each distance that may be asked for, with a reason for each that is not here.
fn pairs(
    bench: &Benchmark,
    scope: &Scope,
    source: &'static str,
    wanted: impl Fn(Distance) -> bool,
) -> Vec<Candidate> {
    let candidate = |distance: Distance, pair: Result<Placement, String>| {
        let placement = pair?;
        if source != L3_REMOTE {
            // The partner's turn takes about as long as the walk.
            return Ok(row(bench, placement, source, scope.seconds(1, 3.0, 0.02)).memory(1 << 20));
        }
        let owner = placement.seats[1].cpus.first().unwrap_or(0);
        let size = |level| memory::cache_bytes(scope.machine, owner, level);
        let (Some(l2), Some(l3)) = (size(2), size(3)) else {
            return Err(format!("the kernel tells of no L3 of CPU {owner} ({})", distance.name()));
        };
        let sweep = (2 * l2).min(l3 / 2).next_multiple_of(HUGE_PAGE);
        // A sweep takes several times as long as the walk that it is for.
        let row = row(bench, placement, source, scope.seconds(1, 6.0, 0.02 + sweep as f64 / 1e9));
        Ok(row.memory(sweep + (2 << 20)).input("sweep", sweep))
    };
    let pairs = scope.floor.pairs(ROLES).into_iter();
    // `other-cpu` stands in where the kernel tells nothing; missing it is no lack.
    let pairs = pairs
        .filter(|(distance, pair)| wanted(*distance) && (*distance != Distance::OtherCpu || pair.is_ok()));
    let unmet = |name, why| Candidate::unmet(bench.id, name, why).param(ids::param::SOURCE, source);
    pairs
        .map(|(distance, pair)| candidate(distance, pair).unwrap_or_else(|why| unmet(distance.name(), why)))
        .collect()
}

/// One, and of memory one more for each spread.
fn points(case: &Case) -> Vec<Params> {
    single_point(case).into_iter().chain(dram::spread_points(case)).collect()
}

fn row(bench: &Benchmark, placement: Placement, source: &'static str, seconds: f64) -> Candidate {
    Candidate::new(bench.id, placement, PRIORITY, seconds).param(ids::param::SOURCE, source)
}

impl Candidate {
    fn input(mut self, name: &str, value: u64) -> Candidate {
        self.case.inputs.insert(name.to_string(), value.to_string());
        self
    }
}

fn cache(machine: &Machine, cpu: u32, level: u32) -> Option<&Cache> {
    let data = |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
    machine.caches.iter().filter(data).find(|cache| cache.cpus.contains(cpu))
}

/// A block that the inner cache cannot hold and the outer one can, with room on both sides where
/// there is any.
fn between(inner: u64, outer: u64) -> Option<u64> {
    match inner.saturating_mul(4) <= outer / 2 {
        true => Some(inner * 4).filter(|block| *block > 0),
        false => (inner < outer).then(|| ((inner + outer) / 2).next_multiple_of(LINE_BYTES as u64)),
    }
}

const HUGE_PAGE: u64 = 2 << 20;

/// Lines that fight for a few sets of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Conflict {
    /// Distance of lines of one set: the cache's size divided by its ways.
    stride: u64,
    /// Lines of each of the [`SETS`] sets.
    lines: u64,
}

/// Sets that are fought for: more than one, to meet more slices of a cache behind.
const SETS: u64 = 4;
/// Lines for each way: with a random choice of the line that has to go, one in e^8 would stay.
const FIGHTERS: u64 = 8;
const FEWEST_FIGHTERS: u64 = 3;
/// Huge pages that the nearest TLB of any server core holds.
const TLB_REACH: u64 = 32 * HUGE_PAGE;

impl Conflict {
    /// Lines that miss `inner` and hit `outer`; `None` where the kernel does not tell enough, or
    /// contradicts itself.
    fn in_cache(inner: &Cache, outer: &Cache) -> Option<Conflict> {
        let (sets, ways, line) = (inner.sets?, u64::from(inner.ways?), inner.line_bytes?);
        let stride = u64::from(sets) * u64::from(line);
        let possible =
            stride.is_power_of_two() && stride >= 1024 && stride.checked_mul(ways) == inner.size_bytes;
        // Half of the outer one: others use it too, and an unhashed one has that many ways for
        // these lines.
        let room = (outer.size_bytes? / 2).min(TLB_REACH) / stride;
        let lines = (ways * FIGHTERS).min(room);
        (possible && lines >= ways * FEWEST_FIGHTERS).then_some(Conflict { stride, lines })
    }

    fn of(case: &Case) -> Option<Conflict> {
        Some(Conflict { stride: input(case, &ids::param::STRIDE)?, lines: input(case, "lines")? })
    }

    fn bytes(&self) -> u64 {
        self.stride * self.lines
    }

    fn all(&self) -> Vec<u32> {
        let line =
            |index: u64| (index / SETS * self.stride + index % SETS * self.stride / SETS) / LINE_BYTES as u64;
        (0..self.lines * SETS).map(|index| line(index) as u32).collect()
    }
}

fn input(case: &Case, name: &str) -> Option<u64> {
    case.inputs.get(name)?.parse().ok()
}

/// What the lines hold before anybody else writes them.
const FIRST_MARK: u64 = 1;

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let source = case
        .params
        .get(ids::param::SOURCE)
        .and_then(|source| source.text())
        .context("a case without a source")?;
    match source {
        CORE_SHARED | CORE_MODIFIED | L3_REMOTE => with_partner(case, source, sampler),
        DRAM | DRAM_REMOTE => dram::run(case, sampler),
        _ => alone(case, source, sampler),
    }
}

/// Walks through lines that this CPU has in a cache.
fn alone(case: &Case, source: &str, sampler: &mut Sampler) -> anyhow::Result<()> {
    let block = input(case, &ids::param::BYTES).context("a case without its size")?;
    let conflict = Conflict::of(case);
    // Whole huge pages, or none would be given.
    let bytes = conflict.map_or(block, |conflict| conflict.bytes().max(block)).next_multiple_of(HUGE_PAGE);
    let nodes = case.placement.seats.first().map_or_else(CpuSet::default, |seat| seat.mem_nodes.clone());
    let memory = resident(bytes, case.placement.pages, &nodes, |_| 0)?;
    note_memory(sampler, &memory, &nodes);
    let all_huge = huge_share(&memory).is_some_and(|share| share > 0.99);
    let lines = match (conflict, source) {
        // Within a base page the place in the cache is known anyway; beyond one only huge pages
        // keep it.
        (Some(conflict), _) if all_huge => conflict.all(),
        (None, L2 | L3) | (Some(_), _) => {
            let why =
                if all_huge { "the kernel does not tell sets and ways" } else { "there are no huge pages" };
            let note =
                format!("{why}: {} in a block of {} KiB, between the caches' sizes", source, block >> 10);
            sampler.facts().notes.push(note);
            whole(block)
        }
        (None, _) => whole(block),
    };
    let mut ring = Ring::new(memory, lines, sampler.seed(), FIRST_MARK);
    // What fills caches, TLBs and the replacement's memory of them.
    ring.walk(ring.lines() * 4);
    sampler.time(latency(Ring::UNROLL), |turns| ring.walk(turns * Ring::UNROLL))?;
    check_answer(ring.ended_correctly(), || format!("the chain through {} lines went astray", ring.lines()))
}

fn latency(work: u64) -> Point {
    Point::new(ids::metric::LATENCY, work as f64).also(&[ids::metric::CYCLES])
}

fn whole(bytes: u64) -> Vec<u32> {
    (0..(bytes / LINE_BYTES as u64) as u32).collect()
}

/// Lines of a base page that the pairs use: far enough apart that no prefetcher takes one for the
/// next of another.
const LINES_A_PAGE: u32 = 4;
const BASE_PAGE: u32 = 4096;

/// Lines over so many pages, evenly over the sets of a cache, whether it is indexed within a page
/// or beyond it.
fn spread(pages: u32) -> Vec<u32> {
    let lines = BASE_PAGE / LINE_BYTES as u32;
    let line = |index: u32| {
        let (page, step) = (index / LINES_A_PAGE, index % LINES_A_PAGE);
        page * lines + step * (lines / LINES_A_PAGE) + page / 4 % (lines / LINES_A_PAGE)
    };
    (0..pages * LINES_A_PAGE).map(line).collect()
}

/// 256 lines: 16 KiB stay in half of any L1, and 64 pages in nearly any L1 TLB.
const CORE_PAGES: u32 = 64;
/// 1024 lines: a walk is worth a sweep through an L2.
const L3_PAGES: u32 = 256;

/// Walks once through lines that a partner on another CPU has brought into its caches, again and
/// again.
fn with_partner(case: &Case, source: &str, sampler: &mut Sampler) -> anyhow::Result<()> {
    let [_, owner] = case.placement.seats.as_slice() else {
        bail!("a pair needs two seats, not {}", case.placement.seats.len());
    };
    let pages = if source == L3_REMOTE { L3_PAGES } else { CORE_PAGES };
    let memory = Mapping::shared((pages * BASE_PAGE) as usize)?;
    // Linked before the partner is there: all its pages are first touched here.
    let mut ring = Ring::new(memory, spread(pages), sampler.seed(), FIRST_MARK);
    note_memory(sampler, ring.memory(), &CpuSet::default());
    let seed = sampler.seed();
    let mut partner =
        Partner::start(&owner.cpus, Wait::Spin, || owner_of(case, owner, source, seed, &mut ring))?;

    let (clock, lines) = (sampler.clock(), ring.lines());
    let cost = clock_cost(clock);
    let (mut mark, mut shortest) = (FIRST_MARK, f64::INFINITY);
    sampler.time_by(latency(lines), |walks| {
        let mut ns = 0.0;
        for _ in 0..walks {
            mark += 1;
            let held = lines.wrapping_mul(if source == CORE_MODIFIED { mark } else { FIRST_MARK });
            let seen = partner.ask(mark)?;
            ring.rewind();
            let begin = clock.now();
            ring.walk(lines);
            let walk = clock.now() - begin - cost;
            (ns, shortest) = (ns + walk, walk.min(shortest));
            if seen != held || !ring.ended_correctly() || ring.read() != held {
                let read = ring.read();
                check_answer(false, || {
                    format!(
                        "{lines} lines should hold {held} in all; the partner read {seen}, this CPU {read}"
                    )
                })?;
            }
        }
        Ok(ns)
    })?;
    if cost > shortest * 0.1 {
        let note = format!("reading the clock takes {cost:.0} ns, subtracted from walks of {shortest:.0} ns");
        sampler.facts().notes.push(note);
    }
    Ok(())
}

/// The partner's work for each order, which is a number to write: brings the lines into its caches
/// and says what it read of them.
fn owner_of<'a>(
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
            let bytes = input(case, "sweep").context("a case without its sweep")?;
            let mut sweep = resident(bytes, Pages::Huge, &seat.mem_nodes, |_| 0)?;
            let read = streams(Op::Read)[0];
            Box::new(move |_| {
                ring.flush();
                // Twice: some caches drop what was used only once instead of passing it on to the
                // next level.
                let seen = ring.read();
                let twice = ring.read() == seen && read.run(sweep.words_mut(), 1, 0) == 0;
                Ok(if twice { seen } else { u64::MAX })
            })
        }
        _ => Box::new(move |_| {
            ring.flush();
            Ok(ring.read())
        }),
    })
}

/// What two readings of the clock are apart at least, ns: a part of every timed walk.
fn clock_cost(clock: Clock) -> f64 {
    let apart = || {
        let begin = clock.now();
        clock.now() - begin
    };
    (0..1000).map(|_| apart()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
