//! Which lines are walked, and which rows a host has.

use std::collections::BTreeSet;

use super::dram::{far_node, lines};
use super::*;
use crate::Depth;
use crate::placement::Placements;
use kernels::Visits;
use machine::{Core, Node, Package};
use model::vocabulary::memory as ids;

fn set(text: &str) -> CpuSet {
    CpuSet::parse_list(text).expect("a list")
}

fn told(level: u32, cpus: &str, bytes: u64, ways: u32) -> Cache {
    let sets = (bytes / 64 / u64::from(ways)) as u32;
    Cache {
        level,
        kind: CacheKind::Unified,
        cpus: set(cpus),
        size_bytes: Some(bytes),
        line_bytes: Some(64),
        ways: Some(ways),
        sets: Some(sets),
    }
}

#[test]
fn conflicting_lines_fill_few_sets_of_the_inner_cache_and_fit_the_outer_one() {
    let l3 = told(3, "0", 105 << 20, 15);
    let (small, large) = (told(2, "0", 512 << 10, 8), told(2, "0", 2 << 20, 16));
    for (inner, outer) in
        [(told(1, "0", 48 << 10, 12), &large), (told(1, "0", 64 << 10, 4), &small), (large.clone(), &l3)]
    {
        let conflict = Conflict::in_cache(&inner, outer).expect("enough is told");
        assert!(conflict.bytes() <= TLB_REACH && conflict.bytes() <= outer.size_bytes.expect("told") / 2);
        let lines = conflict.line_numbers();
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len(), "no line twice");
        assert!(lines.iter().all(|line| u64::from(*line) * 64 < conflict.bytes()));
        let sets = inner.sets.expect("told");
        let hit: BTreeSet<u32> = lines.iter().map(|line| line % sets).collect();
        assert_eq!(hit.len() as u64, SETS);
        for set in hit {
            let fighters = lines.iter().filter(|line| *line % sets == set).count();
            assert!(
                fighters >= 3 * inner.ways.expect("told") as usize,
                "{fighters} lines in a set of {:?}",
                inner.ways
            );
        }
    }
}

#[test]
fn a_geometry_that_cannot_be_is_not_used() {
    let (l1, l2) = (told(1, "0", 48 << 10, 12), told(2, "0", 2 << 20, 16));
    assert!(Conflict::in_cache(&l1, &l2).is_some());
    for wrong in [
        Cache { ways: None, ..l1.clone() },
        Cache { sets: None, ..l1.clone() },
        Cache { ways: Some(8), ..l1.clone() },
        Cache { size_bytes: Some(47 << 10), ..l1.clone() },
    ] {
        assert_eq!(Conflict::in_cache(&wrong, &l2), None, "{wrong:?}");
    }
    // An outer cache that could not hold three times the ways.
    assert_eq!(Conflict::in_cache(&told(1, "0", 128 << 10, 8), &told(2, "0", 256 << 10, 8)), None);
}

#[test]
fn blocks_between_two_levels() {
    assert_eq!(between(32 << 10, 1 << 20), Some(128 << 10));
    assert_eq!(between(1 << 20, 2 << 20), Some(3 << 19));
    assert_eq!(between(2 << 20, 2 << 20), None);
    assert_eq!(between(0, 2 << 20), None);
}

#[test]
fn the_pairs_lines_are_far_apart_and_even_over_sets() {
    for pages in [CORE_PAGES, L3_PAGES] {
        let lines = spread_lines(pages);
        assert_eq!(lines.len() as u32, pages * LINES_PER_PAGE);
        assert!((lines.len() as u64).is_multiple_of(Ring::UNROLL), "a walk is a whole number of turns");
        // Prefetchers end at the end of a page.
        let apart = |two: &[u32]| two[1] >= two[0] + 16 || (two[1] > two[0] && two[1] / 64 != two[0] / 64);
        assert!(lines.windows(2).all(apart) && lines.iter().all(|line| line / 64 < pages));
        for sets in [64, 128, 256] {
            let load = |set: u32| lines.iter().filter(|line| *line % sets == set).count() as u32;
            let most = (0..sets).map(load).max().expect("sets");
            assert!(most <= (lines.len() as u32 / sets).max(1), "{most} lines in one of {sets} sets");
        }
    }
}

/// 2 packages × 2 nodes × 4 CPUs, and memory without CPUs (node 4).
fn server() -> Machine {
    let mut machine = Machine::default();
    machine.cpus.online = set("0-15");
    machine.cpus.allowed = set("0-15");
    machine.cpus.cores =
        Some((0..16).map(|cpu| Core { cpus: CpuSet::one(cpu), ..Core::default() }).collect());
    let package = |id: i64, cpus: &str| Package { id, cpus: set(cpus) };
    machine.cpus.packages = Some(vec![package(0, "0-7"), package(1, "8-15")]);
    let distances = [[10, 12, 32, 35, 24], [12, 10, 35, 32, 24], [32, 35, 10, 12, 44], [35, 32, 12, 10, 44]];
    machine.nodes = ["0-3", "4-7", "8-11", "12-15", ""]
        .iter()
        .enumerate()
        .map(|(id, cpus)| Node {
            id: id as u32,
            cpus: set(cpus),
            distances: distances.get(id).map_or_else(Vec::new, |row| row.to_vec()),
            ..Node::default()
        })
        .collect();
    for cpu in 0..16 {
        machine.caches.push(told(1, &cpu.to_string(), 32 << 10, 8));
        machine.caches.push(told(2, &cpu.to_string(), 1 << 20, 16));
    }
    for cpus in ["0-3", "4-7", "8-11", "12-15"] {
        machine.caches.push(told(3, cpus, 32 << 20, 16));
    }
    machine
}

fn rows(machine: &Machine) -> Vec<Candidate> {
    let placements = Placements::of(machine);
    cases(&BENCHMARKS[0], &Scope::new(machine, &placements, Depth::Quick, 256 << 20))
}

#[test]
fn a_server_has_every_row_that_its_topology_allows() {
    let rows = rows(&server());
    let keys: BTreeSet<String> = rows.iter().map(|row| row.case.key()).collect();
    assert_eq!(keys.len(), rows.len());
    let met: Vec<String> = rows
        .iter()
        .filter(|row| row.unmet.is_none())
        .map(|row| format!("{} {}", row.case.params[ids::param::SOURCE], row.case.placement.name))
        .collect();
    assert_eq!(
        met,
        [
            "l1 one-cpu",
            "l2 one-cpu",
            "l3 one-cpu",
            "core-shared same-llc",
            "core-shared other-node",
            "core-shared other-package",
            "core-modified same-llc",
            "core-modified other-node",
            "core-modified other-package",
            "l3-remote other-node",
            "l3-remote other-package",
            "dram one-cpu",
            "dram-remote other-node",
            "dram-remote other-package",
        ]
    );
    assert!(rows.iter().all(|row| row.memory_bytes <= 256 << 20 && row.seconds < 0.5));
}

#[test]
fn memory_is_walked_in_several_orders_whose_lines_are_no_neighbours() {
    let rows = rows(&server());
    let spreads = |row: &Candidate| -> Vec<String> {
        (BENCHMARKS[0].points)(&row.case)
            .iter()
            .map(|point| {
                point.get(ids::param::WITHIN).map_or("block".to_string(), |spread| spread.to_string())
            })
            .collect()
    };
    let of = |source: &str| {
        let own = |row: &&Candidate| row.case.params[ids::param::SOURCE].text() == Some(source);
        rows.iter().find(own).map(spreads).expect("a row")
    };
    assert_eq!(of(DRAM), ["block", "262144", "4194304"]);
    assert_eq!(of(DRAM_REMOTE), of(DRAM));
    assert_eq!(of(L1), ["block"]);
    let pairs = |which: usize, visits: Visits| -> BTreeSet<u32> {
        lines(1 << 20, which, visits, 7).iter().map(|line| line / 2).collect()
    };
    let (whole, within) = (pairs(0, Visits::Random), pairs(1, Visits::RandomInPages(64 << 10)));
    assert!(whole.is_disjoint(&within), "prefetchers take lines in pairs");
    assert_eq!((whole.len(), within.len()), (4096, 4096), "a line in each 256 bytes");
    // Little memory has no room for several groups.
    let placements = Placements::of(&server());
    let machine = server();
    let scope = Scope::new(&machine, &placements, Depth::Quick, 16 << 20);
    let little = cases(&BENCHMARKS[0], &scope);
    let own = |row: &&Candidate| row.case.params[ids::param::SOURCE].text() == Some(DRAM);
    assert_eq!(little.iter().find(own).map(spreads).expect("a row"), ["block", "262144"]);
}

#[test]
fn remote_memory_is_the_nearest_in_the_package_and_the_farthest_beyond() {
    let mut machine = server();
    assert_eq!(far_node(&machine, 1, Distance::OtherNode), Ok(1));
    assert_eq!(far_node(&machine, 1, Distance::OtherPackage), Ok(3));
    // Nothing but memory without CPUs is left in the package.
    machine.nodes[1].total_bytes = Some(0);
    assert_eq!(far_node(&machine, 1, Distance::OtherNode), Ok(4));
    machine.limits.mems = Some(set("0-1"));
    assert!(far_node(&machine, 1, Distance::OtherPackage).is_err());
    assert_eq!(
        far_node(&Machine::default(), 0, Distance::OtherNode),
        Err("needs a second NUMA node".to_string())
    );
}

#[test]
fn caches_that_nobody_tells_of_are_reasons() {
    let mut machine = Machine::default();
    machine.cpus.online = set("0-1");
    let unmet: Vec<(String, String)> = rows(&machine)
        .into_iter()
        .filter_map(|row| Some((row.case.params[ids::param::SOURCE].to_string(), row.unmet?)))
        .collect();
    let why = |source: &str| unmet.iter().find(|(of, _)| of == source).map(|(_, why)| why.as_str());
    assert!(why("l3").is_some_and(|why| why.contains("no L3")), "{unmet:?}");
    assert!(why("l1").is_none() && why("dram").is_none(), "{unmet:?}");
    assert!(why("dram-remote").is_some_and(|why| why.contains("needs a second NUMA node")), "{unmet:?}");
}
