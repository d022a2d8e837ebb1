//! What is planned on hosts of all sizes, and that a lost count is noticed.

use std::collections::BTreeSet;

use super::*;
use crate::WrongAnswer;
use crate::placement::Placements;
use machine::{Core, Machine};
use sys::affinity;

/// As many CPUs, two threads a core, four packages.
fn machine(cpus: u32) -> Machine {
    let mut machine = Machine::default();
    machine.cpus.online = (0..cpus).collect();
    machine.cpus.allowed = (0..cpus).collect();
    let cores = (0..cpus / 2).map(|core| [core, core + cpus / 2].into_iter().collect());
    machine.cpus.cores = Some(cores.map(|cpus| Core { cpus, ..Core::default() }).collect());
    machine
}

fn planned(machine: &Machine, depth: Depth, all: bool) -> Candidate {
    let placements = Placements::of(machine);
    let scope = Scope { all, ..Scope::new(machine, &placements, depth, 8 << 30) };
    cases(&BENCHMARKS[0], &scope).remove(0)
}

fn cell(params: &Params) -> (i64, i64) {
    let cpu = |name| params.get(name).and_then(|cpu| cpu.int()).expect("a CPU");
    (cpu(ids::param::FROM), cpu(ids::param::TO))
}

#[test]
fn every_ordered_pair_is_a_point_once() {
    for cpus in [2u32, 3, 8, 64] {
        let case = planned(&machine(cpus), Depth::Standard, false).case;
        let cells: BTreeSet<(i64, i64)> = points(&case).iter().map(cell).collect();
        let all = i64::from(cpus);
        let expected =
            (0..all).flat_map(|from| (0..all).filter(move |to| *to != from).map(move |to| (from, to)));
        assert!(cells.iter().copied().eq(expected), "{cpus} CPUs");
        assert_eq!(points(&case).len(), cells.len());
    }
}

#[test]
fn a_large_machine_is_sampled_in_bounded_time_and_all_is_honest() {
    let machine = machine(512);
    for (depth, limit_s) in Depth::ALL.into_iter().zip([1.0, 2.0, 3.0]) {
        let sampled = planned(&machine, depth, false);
        let (_, each) = extent(depth);
        let count = points(&sampled.case).len();
        // Siblings, and cores of which nothing else is known.
        assert_eq!(count, 2 * 2 * each, "{depth:?}");
        assert!(sampled.seconds < limit_s, "{depth:?}: {} s", sampled.seconds);
        let cells: BTreeSet<(i64, i64)> = points(&sampled.case).iter().map(cell).collect();
        assert!(cells.iter().all(|(from, to)| cells.contains(&(*to, *from))), "both orders of each pair");
    }
    let whole = planned(&machine, Depth::Standard, true);
    let windows = (Depth::Standard.windows().count + Depth::Standard.windows().warm_up) as f64;
    assert_eq!(points(&whole.case).len(), 512 * 511);
    assert!(whole.seconds > 512.0 * 511.0 * windows * WINDOW_NS / 1e9, "{} s", whole.seconds);
}

#[test]
fn one_cpu_has_nobody_to_play_with() {
    let mut one = Machine::default();
    one.cpus.online = CpuSet::one(3);
    let reason = planned(&one, Depth::Quick, false).unmet.expect("unmet");
    assert!(reason.contains("only 3 found"), "{reason}");
}

#[test]
fn lines_are_apart_and_no_page_has_two_owners() {
    let rounds = rounds_of(&planned(&machine(64), Depth::Standard, false).case);
    let (tables, words) = lay_out(&rounds);
    assert_eq!(tables.len(), 64 * 63);
    let mut owners: BTreeMap<usize, u32> = BTreeMap::new();
    let mut lines: Vec<usize> = Vec::new();
    for ((from, _), table) in &tables {
        assert_eq!(*owners.entry(table.word / PAGE_WORDS).or_insert(*from), *from);
        lines.push(table.word);
    }
    lines.sort_unstable();
    assert!(lines.windows(2).all(|two| two[1] - two[0] >= APART_WORDS));
    assert!(lines.last().is_some_and(|last| *last < words));
    let numbers: BTreeSet<u64> = tables.values().map(|table| table.number).collect();
    assert_eq!(numbers.len(), tables.len());
}

#[test]
fn company_decides() {
    let told = |others, changed| Interference { others, changed }.to_string();
    assert!(told(31, 0.021).contains("at once: 31 others changed a pair by at most 2.1 %"));
    assert!(told(31, 0.3).contains("pairs ran one at a time: 31 others changed a pair by 30.0 %"));
    assert!(told(0, 0.0).contains("no two pairs are disjoint"));
    assert!(!Interference { others: 3, changed: f64::NAN }.bearable());
}

#[test]
fn two_cpus_count_together_and_a_lost_count_is_a_wrong_answer() {
    let cpus: Vec<u32> = affinity::allowed().expect("affinity").iter().take(2).collect();
    let [low, high] = cpus[..] else { return };
    let rounds = vec![vec![(low, high)], vec![(high, low)]];
    let mut hall = Players::open(&rounds, Clock::Raw).expect("two players");
    for trips in [1, 10, 100] {
        for round in &rounds {
            let took = hall.play(round, trips).expect("the count is right");
            assert!(took.len() == 1 && took[0] > 0.0);
        }
    }
    hall.tables.get_mut(&(low, high)).expect("a table").count += 2;
    hall.play(&rounds[1], 1).expect("the other order is untouched");
    let error = hall.play(&rounds[0], 1).expect_err("two too many are expected");
    assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error}");
}
