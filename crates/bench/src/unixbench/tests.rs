//! Every row runs a real pass, and leaves nothing behind.

use super::*;
use crate::rehearsal::{self, visit, visit_all};
use crate::{Depth, find};
use model::vocabulary::{BenchId, unixbench as ids};
use model::{Samples, Value};
use sys::spawn;

const IDS: [BenchId; 12] = [
    ids::DHRY2REG,
    ids::WHETSTONE,
    ids::EXECL,
    ids::FSTIME,
    ids::FSBUFFER,
    ids::FSDISK,
    ids::PIPE,
    ids::CONTEXT1,
    ids::SPAWN,
    ids::SHELL1,
    ids::SHELL8,
    ids::SYSCALL,
];

fn copies_in(case: &Case) -> Option<i64> {
    case.params.get(COPIES.name).and_then(Value::int)
}

#[test]
fn the_rows_are_the_suites_index_and_hidden() {
    assert_eq!(BENCHMARKS.iter().map(|bench| bench.id).collect::<Vec<_>>(), IDS);
    for bench in BENCHMARKS {
        let headlines: Vec<_> = bench.metrics.iter().filter(|metric| metric.headline).collect();
        assert!(bench.hidden && headlines.len() == 1 && headlines[0].name == "score", "{}", bench.id);
    }
}

/// With the samples of each case: one copy alone, and three of them, which is more than there may
/// be CPUs.
fn visited(id: BenchId) -> Vec<(Case, Vec<Samples>)> {
    let mut cases = rehearsal::cases(id, Depth::Quick);
    cases.retain(|case| copies_in(case) == Some(1));
    let three = cases.iter().find(|case| case.placement.name == "free").map(|case| with_copies(case, 3));
    cases.extend(three);
    let parent = tempfile::tempdir().expect("a folder");
    let dir = parent.path().to_string_lossy().into_owned();
    let samples = cases.into_iter().map(|mut case| {
        case.inputs.insert("dir".into(), dir.clone());
        let samples = visit_all(&case);
        assert!(spawn::has_no_child(), "{}", case.key());
        (case, samples)
    });
    let samples = samples.collect();
    let left: Vec<_> = std::fs::read_dir(parent.path()).expect("a folder").collect();
    assert!(left.is_empty(), "{id} leaves {left:?}");
    samples
}

/// All scores of an index have a score of one copy.
fn scores(id: BenchId) -> f64 {
    let row = find(&id).expect("a row");
    let visited = visited(id);
    assert!(visited.iter().any(|(case, _)| copies_in(case) == Some(3)), "{id}");
    let (_, samples) = &visited[0];
    let score = samples.iter().find(|one| one.metrics == [ids::metric::SCORE]).expect("a score");
    score.values(row.metrics[0].form).into_iter().fold(0.0, f64::max)
}

/// Above what any host of this century reaches, by less than an error of a thousand in a unit
/// (of 60 for scripts, which count by the minute). Below there is no bound, since others may leave
/// us next to nothing of the CPU.
fn assert_below(most: f64, ids: &[BenchId]) {
    for id in ids {
        let score = scores(*id);
        assert!(0.0 < score && score < most, "{id} {score}");
    }
}

#[test]
fn calculations_are_visited() {
    assert_below(1e10, &[ids::DHRY2REG]);
    assert_below(1e6, &[ids::WHETSTONE]);
}

#[test]
fn calls_are_visited() {
    assert_below(1e9, &[ids::PIPE, ids::SYSCALL]);
    assert_below(1e6, &[ids::EXECL, ids::SPAWN]);
}

#[test]
fn file_copies_are_visited() {
    assert_below(1e9, &[ids::FSTIME, ids::FSBUFFER, ids::FSDISK]);
}

#[test]
fn pairs_are_visited() {
    assert_below(1e7, &[ids::CONTEXT1]);
}

#[test]
fn scripts_are_visited() {
    if shell::path().is_ok() {
        assert_below(1e5, &[ids::SHELL1, ids::SHELL8]);
    }
}

#[test]
fn one_copy_and_as_many_as_there_are_cpus() {
    let cpus = rehearsal::this_machine().cpus.online.len();
    for id in IDS {
        let free = rehearsal::cases(id, Depth::Quick).into_iter();
        let free: Vec<Case> = free.filter(|case| case.placement.name == "free").collect();
        let counts: Vec<_> = free.iter().filter_map(copies_in).collect();
        let meant = if cpus > 1 { vec![1, cpus as i64] } else { vec![1] };
        assert_eq!(counts, meant, "{id}");
        let tasks = if id == ids::CONTEXT1 { 2 } else { 1 };
        for case in &free {
            assert_eq!(case.placement.seats.len() as i64, tasks * copies_in(case).unwrap_or(0), "{id}");
        }
    }
    let names: Vec<_> = rehearsal::cases(ids::CONTEXT1, Depth::Quick)
        .into_iter()
        .filter(|case| copies_in(case) == Some(1))
        .map(|case| case.placement.name)
        .collect();
    assert!(names.len() <= 3 && names[1] == "same-cpu", "{names:?}");
}

#[test]
fn more_copies_than_there_may_be_are_refused_and_seats_are_shared() {
    let mut case = rehearsal::cases(ids::SYSCALL, Depth::Quick).remove(0);
    // Without further seats, as a case by hand may have it.
    case.params.insert(COPIES.name, 2u64);
    assert_eq!(visit(&case).1, None);
    case.params.insert(COPIES.name, copies::MAX_COPIES as u64 + 1);
    assert!(visit(&case).1.is_some());
}
