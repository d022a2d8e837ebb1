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

/// What a check or a finding says of CPU% is what the table says beside it, whatever the second CPU
/// gives.
#[test]
fn the_check_and_the_table_never_contradict_each_other() {
    let mut outcomes = [0; 3];
    for step in 0..=16 {
        let s = 1.6 + 0.04 * f64::from(step);
        let diagnosis = crate::diagnose(made(s, false));
        let levels = Levels::of(&diagnosis.series);
        let study = study(&diagnosis.run, &levels).expect("a study");
        let table: Vec<(f64, Sentence)> =
            SAID.into_iter().filter_map(|says| Some((says, study.sentence(says)?))).collect();
        assert_eq!(table.len(), SAID.len());
        let off = |says: f64, used: f64| (used - says).abs() > POINTS + 1e-9;
        let rule = ids::rule::SMT_CAPACITY;
        let found = diagnosis.findings.iter().find(|finding| finding.rule == rule.as_str());
        match (diagnosis.clean.iter().any(|clean| clean.id == rule), found) {
            (true, found) => {
                assert!(found.is_none());
                let near = |(says, said): &(f64, Sentence)| {
                    !off(*says, said.used().lo) && !off(*says, said.used().hi)
                };
                assert!(table.iter().all(near), "{s}: {table:?}");
                outcomes[0] += 1;
            }
            (false, Some(found)) if found.headline.contains("CPU% is off") => {
                let (_, half) = table[3];
                assert!(found.headline.contains(&half.words()), "{s}: {} beside {half:?}", found.headline);
                let far =
                    |(says, said): &(f64, Sentence)| off(*says, said.used().lo) && off(*says, said.used().hi);
                assert!(table.iter().any(far), "{s}: {table:?}");
                outcomes[1] += 1;
            }
            (false, found) => {
                assert!(found.is_none_or(|found| found.headline.contains("are said to be two cores")));
                outcomes[2] += 1;
            }
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

/// The CPU% at which the margin begins is read off the curve of the table: there the table says
/// that all but it is used.
#[test]
fn the_bottom_line_is_of_the_same_curve_as_the_table() {
    for (s, margin) in [(1.05, 10), (1.25, 20), (1.6, 30), (1.9, 50)] {
        let mut run = made(s, true);
        for planned in &mut run.header.plan {
            planned.case.inputs.insert("margin".to_string(), margin.to_string());
        }
        let series = judged(&run);
        let levels = Levels::of(&series);
        let study = study(&run, &levels).expect("a study");
        assert!((100.0 * study.free - f64::from(margin)).abs() < 1e-9);
        let capacity = study.core().expect("a core").capacity(1.0 - study.free);
        let at = capacity.kept_at.expect("reached");
        let used = study.sentence(at).expect("a sentence").used();
        assert!((used.mid - (1.0 - study.free)).abs() <= 0.005 + 1e-9, "{s}: {used:?} at {at}");
        let line = study.bottom_line().expect("a bottom line");
        assert!(line.contains(&format!("with {margin} % kept free, ")), "{line}");
        assert!(line.contains(&format!(", which CPU% shows as {:.0} (", 100.0 * at)), "{line}");
        let between = capacity.kept_at_interval.expect("fifteen passes");
        assert!(between.low <= at && at <= between.high);
        // More CPU% is never less work, on a core whose idle threads are taken first.
        let used: Vec<f64> =
            SAID.into_iter().filter_map(|says| Some(study.sentence(says)?.used().mid)).collect();
        assert!(used.is_sorted() && used.len() == SAID.len(), "{used:?}");
    }
}

#[test]
fn nothing_is_concluded_from_a_machine_whose_whole_was_rejected() {
    let mut run = made(1.25, true);
    let mut whole = run.header.plan[1].clone();
    whole.case.placement.name = "all".into();
    run.header.plan.push(whole);
    let extra: Vec<_> = run.visits.iter().filter(|visit| visit.case == 1).cloned().collect();
    run.visits.extend(extra.into_iter().map(|visit| model::Visit { case: 2, ..visit }));
    let mut series = judged(&run);
    let named = |series: &[Judged]| {
        let levels = Levels::of(series);
        let study = study(&run, &levels).expect("a study");
        study.whole().expect("an arm").name().to_string()
    };
    assert_eq!(named(&series), "all");
    for judged in series.iter_mut().filter(|judged| judged.series.planned == 2) {
        judged.analysis.verdict = model::Verdict::new(VerdictKind::Rejected, "somebody else".to_string());
    }
    assert_eq!(named(&series), "smt-sibling");
}
