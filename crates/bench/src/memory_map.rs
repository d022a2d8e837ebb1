//! The bandwidth of every region of a node's free memory: chunks that all cores read, round after
//! round in a new order.

use super::memory::last_level_bytes;
use super::rate::planted::{PLANT_PLACES, chunk_places, planted};
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, View, point};
use crate::row::{gb_per_s, note};
use machine::Node;
use model::vocabulary::MetricId;
use model::vocabulary::memory_map as ids;
use model::{Case, Metric, Pages, Params, Placement};

mod moves;
mod probes;
mod readers;
mod regions;

use moves::Watch;
use probes::Probe;
pub(super) use probes::Prober;
use readers::Readers;
pub(super) use readers::word;
pub(super) use regions::list;

const CHUNKS: &str = "chunks";
const CHUNK_BYTES: &str = "chunk_bytes";
const ROUNDS: &str = "rounds";
const LIMIT: &str = "limit";
const RESERVE: &str = "reserve";
/// Further bytes that probes read to evict other lines.
const FILLER: &str = "filler";
const LOOKS: &str = "looks";
const PLANT: &str = "plant";

const fn value(name: MetricId, title: &'static str) -> Metric {
    note(name, title, "GiB")
}

const PHYSICAL: Metric = value(ids::metric::PHYSICAL, "physical address of a chunk");
const SPREAD: Metric = value(ids::metric::SPREAD, "range of physical addresses of a chunk");

pub const BENCHMARKS: &[Benchmark] = &[MAP, regions::REGIONS];

const MAP: Benchmark = Benchmark {
    id: ids::MAP,
    title: "Memory map",
    about: "Bandwidth of every chunk of a NUMA node's free memory, read by all cores of the node. It shows whether \
            some memory is slower.",
    reading: "Equal chunks mean that all memory uses equally many channels. Two speeds that repeat in every round \
              come from uneven DIMMs, or from a host that uses two page sizes or nodes. A process then runs at the \
              speed of the chunk it got. The report names the smallest second speed that would have been \
              seen.",
    method: "Assay takes as much free memory as it may, in contiguous chunks bound to the node, on huge pages if \
             possible. The cores that read it also write it first; nothing is pushed into swap. All cores read the \
             same chunk, each from another part, in rounds of random order; the first round does not count. \
             `typical` is the median chunk of each round. Before each round the first task probes its parts alone, \
             as in memory.regions, if they have 1024 pages. As root, the middle and the range of physical addresses \
             are noted (`physical`, `spread`). Every sum is checked. At the end some chunks are freed and written \
             again (`second_touch`, at first `first_touch`). Pages that changed place are counted (`moved`).",
    source: file!(),
    metrics: &[
        gb_per_s(ids::metric::BANDWIDTH, "bandwidth of a chunk").aside(),
        gb_per_s(ids::metric::TYPICAL, "bandwidth of the median chunk"),
        PHYSICAL,
        SPREAD,
        regions::HOPPING,
        regions::SCATTERED,
        regions::NEAR,
        regions::STREAM,
        regions::STREAM_NEAR,
        regions::STREAM_HOPPING,
        regions::HUGE_PAGE,
        regions::HUGE_PAGE_NEAR,
        regions::KEPT,
        regions::CHUNK_IN_TIME,
        regions::MOMENT,
        moves::MOVED,
        moves::FIRST_TOUCH,
        moves::SECOND_TOUCH,
    ],
    params: regions::PARAMS,
    view: &View::Table,
    from: Depth::Full,
    hidden: true,
    budget_s: Some(570.0),
    cases: |bench, scope| cases(bench, scope, &Options::default()),
    points,
    run,
};

/// What a user may options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most memory of each node, bytes.
    pub max: Option<u64>,
    /// One node only.
    pub node: Option<u32>,
    /// Counted rounds.
    pub rounds: u64,
    /// A second speed this many percent apart must be detected.
    pub limit: f64,
    /// Bytes of a chunk, for tests.
    pub chunk: Option<u64>,
    /// Whether one CPU also probes each chunk alone.
    pub looks: bool,
    pub plant: Option<Plant>,
    /// Whether chunks say that they lie where the plant has its slow blocks.
    pub plant_places: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max: None,
            node: None,
            rounds: 9,
            limit: 10.0,
            chunk: None,
            looks: true,
            plant: None,
            plant_places: false,
        }
    }
}

/// A region that is made: a share of the chunks, one behind the other, for which more is read than
/// is counted, or which have pages of another size than all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    /// 0..1.
    pub share: f64,
    /// 1 and more.
    pub ratio: f64,
    /// Of the planted chunks; all others have the other size.
    pub pages: Option<ChunkPages>,
}

/// The pages of a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChunkPages {
    Of(Pages),
    /// Huge pages of the pool that the system holds ready (hugetlbfs).
    Pool,
}

impl Plant {
    /// `slow:25%@1.33`, `base:25%`, `huge:25%` or `hugetlb:25%`.
    pub fn parse(text: &str) -> Result<Plant, String> {
        let parsed = text.split_once(':').and_then(|(kind, rest)| {
            let (share, ratio) = rest.split_once('%')?;
            let share = share.parse::<f64>().ok()? / 100.0;
            let paged = |pages| Some(Plant { share, ratio: 1.0, pages: Some(pages) });
            match (kind, ratio) {
                ("slow", ratio) => {
                    Some(Plant { share, ratio: ratio.strip_prefix('@')?.parse().ok()?, pages: None })
                }
                ("base", "") => paged(ChunkPages::Of(Pages::Base)),
                ("huge", "") => paged(ChunkPages::Of(Pages::Huge)),
                ("hugetlb", "") => paged(ChunkPages::Pool),
                _ => None,
            }
        });
        let possible =
            |plant: &Plant| (0.0..=1.0).contains(&plant.share) && (1.0..=8.0).contains(&plant.ratio);
        parsed.filter(possible).ok_or_else(|| {
            "name a planted region as slow:25%@1.33, base:25%, huge:25% or hugetlb:25%".to_string()
        })
    }

    /// As it is parsed.
    pub fn words(&self) -> String {
        let percent = self.share * 100.0;
        match self.pages {
            Some(ChunkPages::Of(Pages::Base)) => format!("base:{percent}%"),
            Some(ChunkPages::Of(_)) => format!("huge:{percent}%"),
            Some(ChunkPages::Pool) => format!("hugetlb:{percent}%"),
            None => format!("slow:{percent}%@{}", self.ratio),
        }
    }

    /// The pages of one chunk out of `of`, where others are usual.
    fn pages_of(&self, chunk: u64, of: u64, usual: Pages) -> ChunkPages {
        match (self.pages, self.chunks(of).contains(&chunk)) {
            (None, _) => ChunkPages::Of(usual),
            (Some(pages), true) => pages,
            (Some(ChunkPages::Of(Pages::Base)), false) => ChunkPages::Of(Pages::Huge),
            (Some(_), false) => ChunkPages::Of(Pages::Base),
        }
    }

    /// Why the pool of huge pages is too small for these chunks, in words: nothing here makes it
    /// larger.
    fn missing(&self, scope: &Scope, chunks: u64, bytes: u64) -> Option<String> {
        let planted = self.chunks(chunks);
        let wanted = (planted.end - planted.start) * bytes.div_ceil(HUGE_PAGE);
        let pools = &scope.machine.memory.huge_pages;
        let free = pools.iter().find(|pool| pool.page_bytes == HUGE_PAGE).map_or(0, |pool| pool.free);
        (self.pages == Some(ChunkPages::Pool) && free < wanted).then(|| {
            format!("the hugetlb pool has {free} free pages of {wanted} needed: raise sysctl vm.nr_hugepages")
        })
    }

    /// The chunks that are slow: from the end of the first quarter on.
    fn chunks(&self, of: u64) -> std::ops::Range<u64> {
        let slow = (self.share * of as f64).round() as u64;
        let from = (of / 4).min(of - slow);
        from..from + slow
    }
}

const MIB: u64 = 1 << 20;
/// Share of a node's memory, and of what a control group leaves, that is taken at most.
const SHARE: f64 = 0.8;
/// Left free on the whole host, or a quarter of what is available where that is less.
const LEFT: u64 = 2 << 30;
/// Usual chunk: at least this, and half of the last-level caches; smaller only if more chunks are
/// needed.
const CHUNK_USUAL: u64 = 256 * MIB;
const CHUNK_LEAST: u64 = 64 * MIB;
const CHUNKS_LEAST: u64 = 32;
const CHUNKS_MOST: u64 = 512;
/// Tasks' parts of a chunk are whole huge pages, or where they are smaller whole 64 KiB.
const HUGE_PAGE: u64 = 2 * MIB;
const SMALL_PART: u64 = 64 << 10;

/// What it takes until all tasks begin, s, where CPUs are busy with others now and then.
const MEETING_S: f64 = 0.5e-3;

/// A case a node.
pub fn cases(bench: &Benchmark, scope: &Scope, options: &Options) -> Vec<Candidate> {
    let machine = scope.machine;
    let groups = scope.placements.per_node("reader");
    let allowed = machine.limits.mems.as_ref();
    let memories = machine
        .nodes
        .iter()
        .filter(|node| node.total_bytes != Some(0) && allowed.is_none_or(|mems| mems.contains(node.id)));
    let mut all: Vec<Candidate> = match groups.first() {
        None => vec![candidate(bench, scope, options, scope.placements.one_per_core("reader"), None)],
        Some((_, first)) => memories
            .filter(|node| options.node.is_none_or(|wanted| wanted == node.id))
            .map(|node| {
                // Memory without CPUs is read from the first node that has some.
                let own = groups.iter().find(|(id, _)| *id == node.id).map_or(first, |(_, own)| own);
                candidate(bench, scope, options, own.clone().memory_on(node.id), Some(node))
            })
            .collect(),
    };
    if all.is_empty() {
        let why = match options.node {
            Some(node) => format!("node {node} has no memory that may be used"),
            None => "no NUMA node has memory that may be used".to_string(),
        };
        all.push(Candidate::unmet(bench.id, "per-node", why));
    }
    all
}

fn candidate(
    bench: &Benchmark,
    scope: &Scope,
    options: &Options,
    placement: Placement,
    node: Option<&Node>,
) -> Candidate {
    let name = if node.is_some() { "per-node" } else { "one-per-core" };
    let with_node = |candidate: Candidate| match node {
        Some(node) => candidate.param(ids::param::NODE, u64::from(node.id)),
        None => candidate,
    };
    let tasks = placement.seats.len() as u64;
    let unmet = |why: String| with_node(Candidate::unmet(bench.id, name, why));
    if tasks == 0 {
        return unmet("no usable CPU found".to_string());
    }
    let Some((total, tightest)) = may_take(scope, node) else {
        return unmet("the kernel does not report free memory".to_string());
    };
    let llc = last_level_bytes(scope.machine, &placement);
    let within = |beside: u64| (total - beside).min(options.max.unwrap_or(u64::MAX));
    let chunk = |total: u64| whole_parts(options.chunk.unwrap_or_else(|| chunk_bytes(total, llc)), tasks);
    // Memory for probes is added to what was asked for.
    let filler = probes::filler_bytes(total)
        .filter(|filler| options.looks && probes::can_look(chunk(within(*filler)) / tasks))
        .unwrap_or(0);
    let total = within(filler);
    let bytes = chunk(total);
    let chunks = (total / bytes).min(CHUNKS_MOST);
    if chunks == 0 {
        return unmet(format!("only {} MiB may be used; a chunk needs {} MiB", total / MIB, bytes / MIB));
    }
    if let Some(why) = options.plant.and_then(|plant| plant.missing(scope, chunks, bytes)) {
        return unmet(why);
    }
    // First touch at 1 GB/s a task, reading at 8 GB/s in all; and everybody must be there for every
    // chunk.
    let (touched, read) = (chunks * bytes, chunks * bytes * (options.rounds + 1));
    let looks = if filler > 0 { regions::looks(chunks, options.rounds) } else { 0 };
    let looking = (looks * options.rounds) as f64 * regions::LOOK_S;
    let meetings = chunks as f64 * ((options.rounds + 3) as f64 * MEETING_S + looking);
    let seconds = 0.1 + meetings + touched as f64 / (1e9 * tasks.min(8) as f64) + read as f64 / 8e9;
    let mut candidate = with_node(Candidate::new(bench.id, placement.pages(Pages::Huge), 80, seconds))
        .memory(touched + filler);
    // Half of what the plan leaves where least is left: others may take the other half meanwhile.
    let reserve = (tightest.saturating_sub(touched + filler) / 2).min(LEFT / 2);
    let inputs = &mut candidate.case.inputs;
    for (name, text) in [
        (CHUNKS, chunks.to_string()),
        (CHUNK_BYTES, bytes.to_string()),
        (ROUNDS, options.rounds.to_string()),
        (LIMIT, options.limit.to_string()),
        (RESERVE, reserve.to_string()),
        (LOOKS, looks.to_string()),
        (FILLER, filler.to_string()),
    ] {
        inputs.insert(name.to_string(), text);
    }
    if let Some(plant) = options.plant {
        let name = if options.plant_places { PLANT_PLACES } else { PLANT };
        inputs.insert(name.to_string(), plant.words());
    }
    candidate
}

/// Left free of what is available, bytes.
fn left_free(available: u64) -> u64 {
    LEFT.min(available / 4)
}

/// What may be taken of a node's memory, and what is free now by the tightest limit, bytes; `None`
/// if the kernel does not report it.
fn may_take(scope: &Scope, node: Option<&Node>) -> Option<(u64, u64)> {
    let (memory, limits) = (&scope.machine.memory, &scope.machine.limits);
    let share = |bytes: u64| (bytes as f64 * SHARE) as u64;
    let in_group =
        limits.memory_bytes.map(|limit| limit.saturating_sub(limits.memory_used_bytes.unwrap_or(0)));
    let of_node = node.and_then(|node| node.available_bytes);
    let available = memory.available_bytes?;
    let all = [of_node.map(share), Some(available - left_free(available)), in_group.map(share)];
    let most = all.into_iter().flatten().chain([scope.memory_bytes]).min()?;
    let tightest = [of_node, Some(available), in_group].into_iter().flatten().min()?;
    Some((most, tightest))
}

/// Bytes of a chunk, from the bytes that may be taken and those of the last-level caches.
fn chunk_bytes(total: u64, llc: u64) -> u64 {
    let usual = CHUNK_USUAL.max(llc / 2);
    usual.min((total / CHUNKS_LEAST).max(CHUNK_LEAST)).max(total / CHUNKS_MOST)
}

/// A chunk of whole parts for every task.
fn whole_parts(bytes: u64, tasks: u64) -> u64 {
    let unit = if bytes / tasks >= HUGE_PAGE { HUGE_PAGE } else { SMALL_PART };
    (bytes / tasks / unit).max(1) * unit * tasks
}

fn number(case: &Case, name: &str) -> Option<u64> {
    case.inputs.get(name)?.parse().ok()
}

fn points(case: &Case) -> Vec<Params> {
    let chunks = number(case, CHUNKS).unwrap_or(0).min(CHUNKS_MOST);
    (0..chunks).map(|chunk| point(ids::param::CHUNK, chunk)).chain([Params::new()]).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let wanted =
        |name: &str| number(case, name).ok_or_else(|| anyhow::anyhow!("the case has no input {name}"));
    let (chunks, bytes, rounds) = (wanted(CHUNKS)?, wanted(CHUNK_BYTES)?, wanted(ROUNDS)?);
    let plant =
        case.inputs.get(PLANT).map(|text| Plant::parse(text)).transpose().map_err(anyhow::Error::msg)?;
    let plant = plant.or(planted(case)?);
    let pages = move |chunk: u64, usual: Pages| {
        plant.map_or(ChunkPages::Of(usual), |plant| plant.pages_of(chunk, chunks, usual))
    };
    let mut readers = Readers::start(case, bytes, number(case, RESERVE).unwrap_or(0), pages, sampler)?;
    let mut watch = Watch::begin();
    let taken = readers.take(chunks)?;
    watch.taken();
    if taken == 0 {
        anyhow::bail!("memory ran short before the first chunk of {} MiB", bytes / MIB);
    }
    let slow = plant.map(|plant| (plant.chunks(taken), plant.ratio));
    let extra = |chunk: u64| match &slow {
        Some((chunks, ratio)) if chunks.contains(&chunk) => *ratio - 1.0,
        _ => 0.0,
    };
    let mut ns: Vec<Vec<f64>> = vec![Vec::new(); taken as usize];
    let mut seen: Vec<(u64, Probe)> = Vec::new();
    let mut rng = fastrand::Rng::with_seed(sampler.seed());
    let mut before: Vec<u64> = Vec::new();
    for round in 0..=rounds {
        // All probes of a round come before its readings, so that reading a chunk cannot change its
        // probes.
        let looks = if round > 0 { number(case, LOOKS).unwrap_or(0) } else { 0 };
        if looks > 0 {
            let looked = order(taken, &before, &mut rng);
            for chunk in looked.iter().flat_map(|chunk| (0..looks).map(move |_| *chunk)) {
                seen.extend(readers.look(chunk)?.map(|probe| (chunk, probe)));
            }
            before = looked;
        }
        let order = order(taken, &before, &mut rng);
        for chunk in &order {
            ns[*chunk as usize].push(readers.read(*chunk, extra(*chunk))?);
        }
        before = order;
        // Others want memory: what was read so far is kept.
        if round < rounds && readers.is_short() {
            readers.remark(format!("memory ran short after {} of {rounds} rounds", round));
            break;
        }
    }
    let physical = readers.physical()?;
    let places = match (planted(case)?, &slow) {
        (Some(plant), Some((chunks, _))) => chunk_places(&plant, chunks, taken),
        _ => readers.places()?,
    };
    let moved = watch.end(&mut readers, bytes, sampler)?;
    readers.end(sampler)?;
    sampler.facts().places = places;
    emit(sampler, bytes, ns, physical)?;
    moved.emit(sampler, bytes)?;
    regions::emit(sampler, taken, &seen)
}

/// A new random order in which no chunk comes soon that came late in the order before: parts of it
/// may still be in a cache.
fn order(chunks: u64, before: &[u64], rng: &mut fastrand::Rng) -> Vec<u64> {
    const TRIES: usize = 100;
    let mut order: Vec<u64> = (0..chunks).collect();
    let near = order.len() / 8;
    let late = &before[before.len().saturating_sub(near)..];
    for _ in 0..TRIES {
        rng.shuffle(&mut order);
        if !order[..near].iter().any(|chunk| late.contains(chunk)) {
            break;
        }
    }
    order
}

fn emit(
    sampler: &mut Sampler,
    bytes: u64,
    ns: Vec<Vec<f64>>,
    physical: Option<Vec<[f64; 2]>>,
) -> anyhow::Result<()> {
    let rounds = ns.iter().map(Vec::len).min().unwrap_or(0);
    let typical = |round: usize| super::median(ns.iter().map(|own| own[round]).collect());
    let typical: Vec<f64> = (0..rounds).map(typical).collect();
    let work = |windows: usize| vec![bytes as f64; windows];
    sampler.windows_timed(Params::new(), ids::metric::TYPICAL, (work(rounds), typical), 1)?;
    for (chunk, own) in ns.into_iter().enumerate() {
        sampler.windows_timed(
            point(ids::param::CHUNK, chunk as u64),
            ids::metric::BANDWIDTH,
            (work(own.len()), own),
            1,
        )?;
    }
    if let Some(places) = physical {
        for (at, metric) in [ids::metric::PHYSICAL, ids::metric::SPREAD].into_iter().enumerate() {
            let gib = places.iter().map(|place| place[at]).collect();
            regions::list(sampler, Params::new(), metric, gib)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
