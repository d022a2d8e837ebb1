//! Plans for hosts that were made up, and maps of a few MiB.

use super::*;
use crate::placement::Placements;
use crate::{Windows, rehearsal};
use machine::{Core, Machine};
use model::CpuSet;
use model::vocabulary::memory_map as ids;

const GIB: u64 = 1 << 30;

/// Two nodes with two cores each and this many bytes free, and a third without CPUs.
fn machine(free: u64) -> Machine {
    let mut machine = Machine::default();
    machine.cpus.online = (0..4).collect();
    let core = |cpu| Core { cpus: CpuSet::one(cpu), ..Core::default() };
    machine.cpus.cores = Some((0..4).map(core).collect());
    let node = |id: u32, cpus: CpuSet| Node {
        id,
        cpus,
        total_bytes: Some(free),
        available_bytes: Some(free),
        ..Node::default()
    };
    let cpus = |first: u32| (first..first + 2).collect::<CpuSet>();
    machine.nodes = vec![node(0, cpus(0)), node(1, cpus(2)), node(2, CpuSet::default())];
    machine.memory.available_bytes = Some(3 * free);
    machine
}

fn in_scope<T>(machine: &Machine, of: impl Fn(&Scope) -> T) -> T {
    let placements = Placements::of(machine);
    let windows = Windows { window_ns: 1e6, count: 3, warm_up: 1, limit_s: 1.0 };
    let memory_bytes = 1 << 40;
    of(&Scope { machine, placements: &placements, depth: Depth::Full, memory_bytes, windows, all: false })
}

fn planned(machine: &Machine, options: &Options) -> Vec<Candidate> {
    in_scope(machine, |scope| cases(&BENCHMARKS[0], scope, options))
}

fn regions_planned(machine: &Machine) -> Candidate {
    in_scope(machine, |scope| (BENCHMARKS[1].cases)(&BENCHMARKS[1], scope)).remove(0)
}

fn input(candidate: &Candidate, name: &str) -> u64 {
    number(&candidate.case, name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_map_a_node_within_what_may_be_taken() {
    let all = planned(&machine(100 * GIB), &Options::default());
    assert_eq!(all.len(), 3);
    for one in &all {
        assert_eq!(one.unmet, None);
        assert!(one.memory_bytes <= 80 * GIB && one.memory_bytes > 79 * GIB, "{}", one.memory_bytes);
        assert_eq!(input(one, CHUNK_BYTES), 256 * MIB);
        assert_eq!(input(one, RESERVE), GIB);
        assert_eq!(points(&one.case).len() as u64, 1 + input(one, CHUNKS));
    }
    // Memory without CPUs is read from elsewhere.
    assert_eq!(all[2].case.placement.cpus().to_string(), "0-1");
    assert!(all[2].case.placement.seats.iter().all(|seat| seat.mem_nodes == CpuSet::one(2)));
    let bounded = Options { max: Some(8 * GIB), node: Some(1), ..Options::default() };
    let one = &planned(&machine(100 * GIB), &bounded)[0];
    assert!(
        one.memory_bytes <= 8 * GIB + 64 * MIB && one.case.key().ends_with("node=1"),
        "{}",
        one.case.key()
    );
    let none = planned(&machine(100 * GIB), &Options { node: Some(7), ..Options::default() });
    assert!(none[0].unmet.as_ref().is_some_and(|why| why.contains("node 7 has no memory")));
}

#[test]
fn control_groups_and_what_must_stay_free() {
    let mut held = machine(100 * GIB);
    held.limits.memory_bytes = Some(10 * GIB);
    held.limits.memory_used_bytes = Some(2 * GIB);
    let most = (8 * GIB) as f64 * SHARE;
    assert!(planned(&held, &Options::default()).iter().all(|one| one.memory_bytes as f64 <= most));
    let one = &planned(&held, &Options::default())[0];
    assert!(input(one, RESERVE) <= (8 * GIB - one.memory_bytes) / 2, "all that is planned can be taken");
    // Little memory: a quarter stays free, chunks are small.
    let mut little = machine(3 * GIB);
    little.nodes.truncate(1);
    little.memory.available_bytes = Some(3 * GIB);
    let one = &planned(&little, &Options::default())[0];
    assert!(one.memory_bytes <= 3 * GIB / 4 * 3 && input(one, CHUNK_BYTES) >= CHUNK_LEAST);
    little.memory.available_bytes = None;
    assert!(planned(&little, &Options::default())[0].unmet.as_ref().is_some_and(|why| why.contains("free")));
}

/// Available memory is free or can be dropped: a task that takes less than it drives nothing into
/// swap.
#[test]
fn regions_are_fewer_and_smaller_where_memory_is_short() {
    for (free, limit, most) in [
        (100 * GIB, None, 9 * 64 * MIB),
        (GIB, None, GIB / 4 * 3),
        (100 * MIB, None, 300 * MIB / 4 * 3),
        (100 * GIB, Some(300 * MIB), 240 * MIB),
        (100 * GIB, Some(40 * MIB), 32 * MIB),
    ] {
        let mut short = machine(free);
        (short.memory.available_bytes, short.limits.memory_bytes) = (Some(3 * free), limit);
        let one = regions_planned(&short);
        assert_eq!(one.unmet, None, "{free} {limit:?}");
        assert!(
            one.memory_bytes <= most && one.memory_bytes > most / 3,
            "{free} {limit:?}: {}",
            one.memory_bytes
        );
        assert!(input(&one, RESERVE) <= limit.unwrap_or(3 * free) - one.memory_bytes, "{free} {limit:?}");
        assert_eq!(input(&one, CHUNKS) * input(&one, CHUNK_BYTES) + input(&one, FILLER), one.memory_bytes);
    }
    let mut full = machine(GIB);
    full.memory.available_bytes = Some(64 << 10);
    assert!(regions_planned(&full).unmet.is_some_and(|why| why.contains("needs memory for two regions")));
}

#[test]
fn chunks_by_memory_and_caches() {
    assert_eq!(chunk_bytes(100 * GIB, 32 * MIB), 256 * MIB);
    assert_eq!(chunk_bytes(400 * GIB, 2 * GIB), GIB);
    assert_eq!(chunk_bytes(4 * GIB, 32 * MIB), 128 * MIB);
    assert_eq!(chunk_bytes(GIB, 32 * MIB), CHUNK_LEAST);
    assert_eq!(chunk_bytes(1024 * GIB, 32 * MIB), 2 * GIB);
    assert_eq!(whole_parts(256 * MIB, 12), 12 * 20 * MIB);
    assert_eq!(whole_parts(MIB, 3), 3 * 320 * 1024);
}

#[test]
fn orders_are_new_and_keep_their_distance() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut before: Vec<u64> = Vec::new();
    for _ in 0..50 {
        let next = order(40, &before, &mut rng);
        let mut sorted = next.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..40) && next != before);
        let late = before.len().saturating_sub(5);
        assert!(next[..5].iter().all(|chunk| !before[late..].contains(chunk)));
        before = next;
    }
    assert_eq!(order(1, &[0], &mut rng), [0]);
}

#[test]
fn slow_regions_are_planted_by_words() {
    let plant = Plant::parse("slow:25%@1.33").expect("a plant");
    assert_eq!(plant, Plant { share: 0.25, ratio: 1.33, pages: None });
    assert_eq!(plant.chunks(40), 10..20);
    assert_eq!(Plant { share: 1.0, ratio: 2.0, pages: None }.chunks(8), 0..8);
    for words in ["slow:25%@1.33", "base:25%", "huge:25%", "hugetlb:25%"] {
        assert_eq!(Plant::parse(words).expect("a plant").words(), words);
    }
    let pool = Plant::parse("hugetlb:25%").expect("a plant");
    let pages = [9, 10, 20].map(|chunk| pool.pages_of(chunk, 40, Pages::Huge));
    assert_eq!(pages, [ChunkPages::Of(Pages::Base), ChunkPages::Pool, ChunkPages::Of(Pages::Base)]);
    for wrong in ["", "slow:25@2", "slow:120%@2", "slow:20%@0.5", "fast:20%@2"] {
        assert!(Plant::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_pool_that_is_too_small_is_named() {
    let mut own = machine(100 * GIB);
    let options =
        Options { max: Some(40 * 64 * MIB), node: Some(0), chunk: Some(64 * MIB), ..Options::default() };
    let plant = Plant::parse("hugetlb:25%").ok();
    let mut unmet = |free: u64| {
        own.memory.huge_pages = vec![machine::HugePages { page_bytes: HUGE_PAGE, total: 400, free }];
        planned(&own, &Options { plant, ..options.clone() }).remove(0).unmet
    };
    assert_eq!(unmet(320), None);
    assert!(unmet(319).is_some_and(|why| why.contains("319 free pages of 320 needed")));
}

/// Forty chunks of 1 MiB: what they hold is read right, whatever their bandwidth.
#[test]
fn a_small_map_has_a_series_a_chunk() {
    let mut own = rehearsal::this_machine();
    own.memory.available_bytes = Some(GIB);
    let options = Options { max: Some(40 * MIB), chunk: Some(MIB), rounds: 3, ..Options::default() };
    let placements = Placements::of(&own);
    let scope = Scope::new(&own, &placements, Depth::Full, GIB);
    let mut case = cases(&BENCHMARKS[0], &scope, &options).remove(0).case;
    let (samples, reason) = rehearsal::visit(&case);
    assert_eq!(reason, None);
    let of = |metric: &str| samples.iter().filter(|one| one.metrics == [metric]).collect::<Vec<_>>();
    let chunks = of(&ids::metric::BANDWIDTH);
    assert!(chunks.len() >= 32 && chunks.iter().filter(|one| !one.point.is_empty()).count() == chunks.len());
    assert!(chunks.iter().all(|one| one.len() == 4 && one.warm_up == 1));
    assert!(of(&ids::metric::TYPICAL).len() == 1 && of(&ids::metric::TYPICAL)[0].len() == 4);
    // Root sees where it lies, others do not.
    let places = of(&ids::metric::PHYSICAL);
    assert!(places.is_empty() || places[0].len() == chunks.len());
    // More must stay free than there is: not a chunk is taken.
    case.inputs.insert(RESERVE.to_string(), (1u64 << 60).to_string());
    let (none, reason) = rehearsal::visit(&case);
    assert!(none.is_empty() && reason.is_some_and(|reason| reason.text().contains("memory ran short")));
}

/// A change of all pages of a probe at once is not attributed to a page.
#[test]
fn pages_have_levels_of_their_own_whoever_disturbs() {
    let mut rng = fastrand::Rng::with_seed(4);
    let own = |page: usize| if page.is_multiple_of(8) { 174.0 } else { 120.0 };
    // A third of the probes next to other work, one of them much longer than all others.
    let times = |look: usize| [1.0, 1.0, 1.5][look % 3] * if look == 7 { 40.0 } else { 1.0 };
    let mut page = |look: usize, page: usize| {
        let is_seen = rng.f64() > 0.3 && page != 31;
        is_seen.then(|| own(page) * times(look) * (0.98 + 0.04 * rng.f64()))
    };
    let looks: Vec<Vec<Option<f64>>> =
        (0..18).map(|look| (0..32).map(|at| page(look, at)).collect()).collect();
    let levels = regions::page_levels(&looks);
    assert_eq!((levels.len(), levels[31]), (32, 0.0), "nobody saw the last one");
    for (page, level) in levels.iter().enumerate().take(31) {
        assert!((level / own(page) - 1.0).abs() < 0.03, "{page}: {level}");
    }
    assert_eq!(regions::page_levels(&looks[..2]), [0.0; 32], "too few looks");
    assert!(regions::page_levels(&[]).is_empty());
}
