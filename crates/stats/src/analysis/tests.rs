//! What analyses say about made-up visits.

use fastrand::Rng;

use super::super::noise::Noise;
use super::*;
use model::{Packed, Visit};
use testkit::{run, samples, visit};

fn noise(n: usize, seed: u64) -> Vec<f64> {
    Noise::Lognormal { cv: 0.002 }.series(n, &mut Rng::with_seed(seed))
}

/// A run with one case: a visit for each list of windows.
fn visits(processes: &[Vec<f64>]) -> Vec<Visit> {
    let visit_of =
        |(order, windows): (usize, &Vec<f64>)| visit(order as u32, 0, 0, vec![samples("rate", 0, windows)]);
    processes.iter().enumerate().map(visit_of).collect()
}

fn analysis(visits: Vec<Visit>) -> Analysis {
    judged(&run(1, visits)).remove(0).analysis
}

fn judged(run: &Run) -> Vec<Judged> {
    judge_run(run, &Machine::default()).series
}

fn words(visits: Vec<Visit>) -> String {
    let verdict = analysis(visits).verdict;
    format!("{}: {}", verdict.kind, verdict.reason)
}

#[test]
fn a_clean_series_is_trusted() {
    let processes: Vec<Vec<f64>> = (0..10).map(|seed| noise(5, seed)).collect();
    let found = analysis(visits(&processes));
    assert_eq!((found.verdict, found.more_needed), (Verdict::trusted(), None));
    assert_eq!(found.estimate.expect("values").n, 10);
}

#[test]
fn what_was_not_measured_says_why() {
    let mut plan = run(1, vec![]);
    assert_eq!(judged(&plan)[0].analysis.verdict.reason, "the run ended before its first pass");
    plan.header.plan[0].unmet = Some("needs two NUMA nodes".into());
    let verdict = judged(&plan)[0].analysis.verdict.clone();
    assert_eq!((verdict.kind, verdict.reason.as_str()), (VerdictKind::Skipped, "needs two NUMA nodes"));
    let with = |reason: Reason| Visit { reason: Some(reason), ..visit(0, 0, 0, vec![]) };
    assert_eq!(words(vec![with(Reason::Skipped("budget".into()))]), "skipped: budget");
    assert_eq!(
        words(vec![with(Reason::Failed("exit code 1".into()))]),
        "rejected: 1 of 1 passes failed: exit code 1"
    );
}

#[test]
fn failures_among_good_visits() {
    let good: Vec<Vec<f64>> = (0..8).map(|seed| noise(3, seed)).collect();
    let with = |reason: Reason, times: usize| {
        let mut all = visits(&good);
        all.iter_mut().take(times).for_each(|visit| visit.reason = Some(reason.clone()));
        words(all)
    };
    assert_eq!(with(Reason::TimedOut("10 s".into()), 2), "trusted: ");
    assert_eq!(with(Reason::TimedOut("10 s".into()), 5), "rejected: 5 of 8 passes failed: 10 s");
    assert_eq!(with(Reason::Skipped("budget".into()), 2), "trusted: ");
    assert_eq!(
        with(Reason::WrongAnswer("checksum".into()), 1),
        "rejected: 1 of 8 passes computed a wrong answer: checksum"
    );
    let zero = visits(&[vec![1.0, f64::NAN]]);
    assert_eq!(words(zero), "rejected: 1 of 2 windows gave no finite value");
}

#[test]
fn modes_that_go_with_a_cpu_have_a_cause() {
    let processes: Vec<Vec<f64>> = (0..20)
        .map(|i| noise(3, i).iter().map(|v| if i % 3 == 0 { v * 1.2 } else { *v }).collect())
        .collect();
    let mut all = visits(&processes);
    assert!(words(all.clone()).starts_with("imprecise: perhaps 2 values"));
    for (i, visit) in all.iter_mut().enumerate() {
        visit.samples[0].beside.cpu_start = Some(Packed::Same(if i % 3 == 0 { 1.0 } else { 0.0 }));
    }
    let found = analysis(all);
    assert_eq!(found.verdict.kind, VerdictKind::Multimodal);
    assert!(found.verdict.reason.ends_with("; related to the CPU"), "{}", found.verdict.reason);
    assert!(found.mode_cause.is_some_and(|cause| cause.name == "CPU" && cause.p < 0.001));
}

#[test]
fn explained_windows_are_named_and_left_out_of_a_second_estimate() {
    let mut processes: Vec<Vec<f64>> = (0..10).map(|seed| noise(20, seed)).collect();
    let mut stolen = vec![vec![0.0; 20]; 10];
    for process in 0..10 {
        processes[process][process] *= 1.4;
        stolen[process][process] = 10.0;
    }
    let mut all = visits(&processes);
    for (visit, stolen) in all.iter_mut().zip(stolen) {
        visit.samples[0].beside.steal_ms = Some(Packed::Each(stolen));
    }
    let found = analysis(all);
    assert_eq!((found.window_outliers.outliers(), found.window_outliers.explanations.len()), (10, 1));
    assert_eq!(found.window_outliers.explanations[0].covariate, "steal_ms");
    assert_eq!(found.without_explained.expect("all explained").windows, 190);
    assert_eq!(found.verdict.kind, VerdictKind::Trusted);
}

#[test]
fn slow_processes_are_explained_by_their_conditions() {
    let processes: Vec<Vec<f64>> = (0..30)
        .map(|i| noise(1, i).iter().map(|v| if i % 11 == 3 { v * 1.5 } else { *v }).collect())
        .collect();
    let mut all = visits(&processes);
    for (i, visit) in all.iter_mut().enumerate() {
        visit.conditions.wall_ms = 100.0;
        visit.conditions.cpus = 2;
        visit.conditions.steal_ms = Some(if i % 11 == 3 { 50.0 } else { 0.0 });
    }
    let found = analysis(all);
    let explanation = &found.process_outliers.explanations[0];
    assert_eq!((explanation.covariate.as_ref(), explanation.explained, explanation.of), ("steal", 3, 3));
    assert_eq!(found.without_explained.expect("three of thirty").n, 27);
}

#[test]
fn imports_are_unverified() {
    let plan = run(1, visits(&(0..10).map(|seed| noise(1, seed)).collect::<Vec<Vec<f64>>>()));
    let mut imported = series(&plan).remove(0);
    imported.imported = true;
    let verdict = analyse(&imported, 0.01, 1, None).verdict;
    assert_eq!(verdict.kind, VerdictKind::Unverified);
    assert_eq!(verdict.reason, "imported: Assay did not measure it");
    imported.processes.truncate(3);
    let verdict = analyse(&imported, 0.01, 1, None).verdict;
    assert!(verdict.reason.contains("; its values are imprecise: 3 passes give no interval"));
}

#[test]
fn the_same_run_gives_the_same_judgement() {
    let processes: Vec<Vec<f64>> = (0..20)
        .map(|seed| Noise::SlowTail { cv: 0.01, slow: 0.2 }.series(4, &mut Rng::with_seed(seed)))
        .collect();
    let plan = run(1, visits(&processes));
    assert_eq!(judged(&plan), judged(&plan));
}
