//! Machines that were made up, and what their studies come to.

use super::*;
use model::vocabulary::smt as ids;
use testkit::capacity::made;

fn judged(run: &Run) -> Vec<Judged> {
    stats::analysis::judge_run(run, &machine::Machine::default()).series
}

#[test]
fn the_yield_and_the_gap_of_a_core() {
    let run = made(1.25, true);
    let series = judged(&run);
    let levels = Levels::of(&series);
    let study = study(&run, &levels).expect("a study");
    let second = study.main().expect("loop");
    assert!((second.found.throughput.value.mid - 1.25).abs() < 0.02, "{:?}", second.found);
    assert!((study.range().expect("a yield").mid - 1.25).abs() < 0.02);
    // One thread at full load: CPU% says half, and 1 / 1.25 is used.
    let gap = study.gap().expect("a gap");
    assert!((gap.gap - 0.3).abs() < 0.02 && (gap.at - 0.5).abs() < 0.02, "{gap:?}");
    assert!(second.p99.as_ref().is_some_and(|ratio| (ratio.ratio - 1.6).abs() < 0.02));
    let capacity = study.whole().and_then(Arm::curve).expect("a curve").capacity(1.0 - study.free);
    assert!((capacity.most - 125.0).abs() < 2.0 && (capacity.kept - 100.0).abs() < 2.0, "{capacity:?}");
    // The used share by time with one and with both at work is what was done of what can be.
    for level in &study.pair().expect("siblings").levels {
        let used = level.used(second.found.throughput.value, true).expect("known").mid;
        let done = level.median(ids::metric::PERFORMANCE).expect("measured") / capacity.most;
        assert!((used - done).abs() < 0.01, "level {}: {used} used, {done} done", level.level);
    }
}

#[test]
fn a_study_without_siblings_tells_no_yield() {
    let of = |s: f64, smt: bool| yield_of_study(&crate::diagnose(made(s, smt)));
    assert!(of(1.25, true).is_some_and(|found| (found.mid - 1.25).abs() < 0.02));
    assert_eq!(of(2.0, false), None);
}

#[test]
fn two_cores_are_a_straight_line() {
    let run = made(2.0, false);
    let series = judged(&run);
    let levels = Levels::of(&series);
    let study = study(&run, &levels).expect("a study");
    assert!(!study.smt);
    assert!((study.main().expect("loop").found.throughput.value.mid - 2.0).abs() < 0.02);
    assert!(study.gap().expect("a gap").gap.abs() < 0.02);
    let level = &study.pair().expect("two cores").levels[3];
    let used = level.used(Yield::exactly(2.0), false).expect("known").mid;
    assert!((used - level.median(ids::metric::CPU).expect("measured") / 200.0).abs() < 1e-9);
}
