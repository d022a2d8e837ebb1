//! Machines that were made up, and what their studies come to.

use super::*;
use model::vocabulary::smt as ids;
use testkit::capacity::{made, made_of};

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
    let capacity =
        study.whole().and_then(PlacementLevels::curve).expect("a curve").capacity(1.0 - study.free);
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
    assert!(
        of(1.25, true).is_some_and(|(found, kinds)| (found.mid - 1.25).abs() < 0.02 && kinds == ["loop"])
    );
    let several = crate::diagnose(made_of(&[("loop", 1.25), ("chase", 1.9), ("stream", 0.9)], true));
    let (found, kinds) = yield_of_study(&several).expect("three kinds");
    assert!((found.lo - 0.9).abs() < 0.02 && (found.hi - 1.9).abs() < 0.03, "{found:?}");
    assert_eq!(kinds, ["loop", "chase", "stream"]);
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

/// A check or a finding states the same of CPU% as the table, whatever the second CPU adds.
#[test]
fn the_check_and_the_table_never_contradict_each_other() {
    let mut outcomes = [0; 3];
    for step in 0..=16 {
        let s = 1.6 + 0.04 * f64::from(step);
        let diagnosis = crate::diagnose(made(s, false));
        let levels = Levels::of(&diagnosis.series);
        let study = study(&diagnosis.run, &levels).expect("a study");
        let table: Vec<(f64, Sentence)> =
            READ_CPU_SHARES.into_iter().filter_map(|says| Some((says, study.sentence(says)?))).collect();
        assert_eq!(table.len(), READ_CPU_SHARES.len());
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
            (false, Some(found)) if found.headline.starts_with("Two cores do ") => {
                let (_, half) = table[3];
                assert!(
                    found.headline.contains(&format!("the cores are {} full", half.used_alone())),
                    "{s}: {} beside {half:?}",
                    found.headline
                );
                let far =
                    |(says, said): &(f64, Sentence)| off(*says, said.used().lo) && off(*says, said.used().hi);
                assert!(table.iter().any(far), "{s}: {table:?}");
                outcomes[1] += 1;
            }
            (false, found) => {
                assert!(found.is_none_or(|found| found.headline.contains("reports them as two cores")));
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
        let capacity = study.first().expect("a core").capacity(1.0 - study.free);
        let at = capacity.kept_at.expect("reached");
        let used = study.sentence(at).expect("a sentence").used();
        assert!((used.mid - (1.0 - study.free)).abs() <= 0.005 + 1e-9, "{s}: {used:?} at {at}");
        let line = study.bottom_line().expect("a bottom line");
        assert!(line.contains(&format!(". With {margin} % kept free: ")), "{line}");
        assert!(line.contains(&format!(", at CPU% {:.0} (", 100.0 * at)), "{line}");
        let between = capacity.kept_at_interval.expect("fifteen passes");
        assert!(between.low <= at && at <= between.high);
        // More CPU% is never less work, on a core whose idle threads are taken first.
        let used: Vec<f64> =
            READ_CPU_SHARES.into_iter().filter_map(|says| Some(study.sentence(says)?.used().mid)).collect();
        assert!(used.is_sorted() && used.len() == READ_CPU_SHARES.len(), "{used:?}");
    }
}

/// Half of CPU% is more work with one thread of each core busy than with all alike: the sentence
/// says which, and the line of the margin gives both.
#[test]
fn what_half_of_cpu_percent_means_is_said_with_its_premise() {
    let diagnosis = crate::diagnose(made(1.3, true));
    let levels = Levels::of(&diagnosis.series);
    let study = study(&diagnosis.run, &levels).expect("a study");
    let used = |curve: Option<Curve>| curve.and_then(|curve| curve.sentence(0.5)).expect("half").used();
    let (first, alike) = (used(study.first()), used(study.alike()));
    assert!((first.mid - 0.77).abs() < 0.011 && (alike.mid - 0.63).abs() < 0.021, "{first:?} {alike:?}");
    let headline = &diagnosis.findings.iter().find(|one| one.rule == "smt-capacity").expect("found").headline;
    assert!(
        headline.starts_with("The second thread of a core adds 30 %. At 50 % CPU the cores are 77 % full."),
        "{headline}"
    );
    let line = study.bottom_line().expect("a line");
    for said in [") with idle cores taken first, ", ") with all CPUs alike."] {
        assert!(line.contains(said), "{said:?} is missing in {line}");
    }
    // Two cores have one line only.
    let cores = crate::diagnose(made(2.0, false));
    let levels = Levels::of(&cores.series);
    let line = super::study(&cores.run, &levels).and_then(|study| study.bottom_line()).expect("a line");
    assert!(!line.contains("alike") && line.contains(", at CPU% 80 ("), "{line}");
}

#[test]
fn a_second_thread_that_takes_away_or_does_as_much_as_a_core_is_said() {
    let found = |s: f64| {
        let diagnosis = crate::diagnose(made(s, true));
        let one = diagnosis.findings.iter().find(|one| one.rule == "smt-capacity").expect("found").clone();
        let levels = Levels::of(&diagnosis.series);
        let study = study(&diagnosis.run, &levels).expect("a study");
        let used: Vec<Bounds> =
            READ_CPU_SHARES.into_iter().filter_map(|says| Some(study.sentence(says)?.used())).collect();
        assert!(
            used.len() == READ_CPU_SHARES.len() && used.iter().all(|used| used.hi <= 1.0 + 1e-9),
            "{s}: {used:?}"
        );
        assert!(used.windows(2).all(|two| two[0].mid <= two[1].mid), "{s}: {used:?}");
        (one.headline, one.cause, study.bottom_line().expect("a line"))
    };
    let (headline, cause, line) = found(0.8);
    assert!(headline.starts_with("The second thread of a core costs 20 % of the work. "), "{headline}");
    assert!(cause.contains("The core does most with one of them busy"), "{cause}");
    assert!(line.starts_with("Capacity, at CPU% ") && line.contains("(beyond it falls, to 80"), "{line}");
    let (headline, _, _) = found(1.0);
    assert!(headline.starts_with("The second thread of a core adds nothing ("), "{headline}");
    let (headline, cause, _) = found(2.0);
    assert!(headline.starts_with("The second thread of a core adds 100 %"), "{headline}");
    assert!(!cause.contains("half empty") && cause.contains("what two cores do"), "{cause}");
}

/// One core's threads do less than those of all cores for each core.
#[test]
fn figures_that_contradict_each_other_are_flagged() {
    let mut run = made(1.3, true);
    let mut whole = run.header.plan[1].clone();
    whole.case.placement.name = "all".into();
    run.header.plan.push(whole);
    let extra: Vec<_> = run.visits.iter().filter(|visit| visit.case == 1).cloned().collect();
    run.visits.extend(extra.into_iter().map(|visit| model::Visit { case: 2, ..visit }));
    let sound = crate::diagnose(run.clone());
    assert!(yield_of_study(&sound).is_some());
    for visit in run.visits.iter_mut().filter(|visit| visit.case == 1) {
        for samples in
            visit.samples.iter_mut().filter(|one| one.metrics == [ids::metric::PERFORMANCE.as_str()])
        {
            samples.work = model::Packed::Each(vec![samples.work.get(0).expect("a value") / 2.0]);
        }
    }
    let diagnosis = crate::diagnose(run);
    let found = diagnosis.findings.iter().find(|one| one.rule == "smt-capacity").expect("found");
    assert!(
        found
            .headline
            .starts_with("Two threads of one core do 0.65 times the work of one, on all cores 1.30")
    );
    assert_eq!(found.severity, model::Severity::Warning);
    let levels = Levels::of(&diagnosis.series);
    assert!(study(&diagnosis.run, &levels).expect("a study").doubt().is_some());
    assert_eq!(yield_of_study(&diagnosis), None);
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
