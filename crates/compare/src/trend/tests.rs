//! Histories of invented runs: steps that were planted, and none where none was.

use super::*;
use crate::peers::Series;
use fastrand::Rng;
use stats::noise::normal;

/// A run of the day, its figures at these levels with 1 % of noise between runs.
fn run(day: usize, levels: &[f64], rng: &mut Rng) -> HostResult {
    let series = |(at, level): (usize, &f64)| {
        let median = level * (0.01 * normal(rng)).exp();
        Series {
            key: format!("test.{at}@one-cpu#latency"),
            unit: "ns".into(),
            better: Some(Better::Lower),
            headline: true,
            median,
            ci95: Some([median * 0.99, median * 1.01]),
        }
    };
    HostResult {
        host: "db1".into(),
        file: format!("{day}.assay.jsonl"),
        started: format!("2026-{:02}-{:02}T00:00:00Z", 1 + day / 28, 1 + day % 28),
        boot_id: Some("one".into()),
        assay: "0.1.0".into(),
        profile: "quick".into(),
        make_up: [("cpus", "2"), ("kernel", "6.1"), ("core_clock", "3000 MHz")]
            .map(|(label, value)| (label.to_string(), value.to_string()))
            .to_vec(),
        series: levels.iter().enumerate().map(series).collect(),
        ..HostResult::default()
    }
}

fn of(runs: Vec<HostResult>) -> Trend {
    trend(runs, None, None).expect("one host")
}

#[test]
fn a_step_has_its_date_and_what_changed_there() {
    let mut rng = Rng::with_seed(1);
    let level = |day: usize| if day < 9 { 100.0 } else { 112.0 };
    let mut runs: Vec<HostResult> =
        (0..14).map(|day| run(day, &[50.0, level(day), 80.0], &mut rng)).collect();
    for late in &mut runs[9..] {
        late.boot_id = Some("two".into());
        late.make_up[1].1 = "6.2".into();
        late.make_up[2].1 = "3500 MHz".into();
        late.labels.insert("rack".into(), "r7".into());
    }
    runs.reverse();
    let found = of(runs);
    let steps: Vec<(&str, &Step)> =
        found.figures.iter().flat_map(|one| one.steps.iter().map(|step| (one.key.as_str(), step))).collect();
    assert_eq!(steps.len(), 1, "{steps:?}");
    let (key, step) = steps[0];
    assert_eq!((key, step.between), ("test.1@one-cpu#latency", [8, 9]));
    assert!(step.counts() && (step.relative() - 0.12).abs() < 0.02, "{step:?}");
    assert_eq!(found.verdict(), Verdict::Worse);
    let labels: Vec<String> = found.changed(step.between).into_iter().map(|changed| changed.label).collect();
    assert_eq!(labels, ["kernel", "boot", "label rack"], "what was measured is no cause");
    assert!(found.changed([9, 10]).is_empty());
}

#[test]
fn what_came_back_does_not_count_and_what_got_better_is_said() {
    let mut rng = Rng::with_seed(2);
    let mut runs = |levels: &[(usize, f64)]| -> Vec<HostResult> {
        let all: Vec<f64> = levels.iter().flat_map(|(count, level)| vec![*level; *count]).collect();
        all.iter().enumerate().map(|(day, level)| run(day, &[*level], &mut rng)).collect()
    };
    let found = of(runs(&[(6, 100.0), (6, 120.0), (6, 100.0)]));
    assert_eq!(found.figures[0].steps.iter().map(|step| step.undone).collect::<Vec<_>>(), [true, true]);
    assert_eq!(found.verdict(), Verdict::Steady);
    assert_eq!(of(runs(&[(6, 120.0), (6, 100.0)])).verdict(), Verdict::Better);
    assert_eq!(of(runs(&[(6, 100.0), (6, 130.0), (6, 115.0)])).verdict(), Verdict::Worse);
    // Two runs are no level, seven no history.
    let found = of(runs(&[(10, 100.0), (2, 130.0)]));
    assert_eq!((found.verdict(), found.figures[0].last.map(|last| last.runs)), (Verdict::Confirm, Some(2)));
    assert_eq!(of(runs(&[(4, 100.0), (3, 130.0)])).verdict(), Verdict::CannotTell);
}

#[test]
fn another_profile_or_other_cpus_are_another_series() {
    let mut rng = Rng::with_seed(3);
    let mut runs: Vec<HostResult> = (0..12).map(|day| run(day, &[100.0], &mut rng)).collect();
    runs[3].profile = "full".into();
    runs[4].make_up[0].1 = "4".into();
    runs[5].pretended = true;
    runs[6].make_up.push(("allowed_cpus".into(), "0".into()));
    runs[11].make_up.push(("allowed_cpus".into(), "0-1".into()));
    let found = of(runs.clone());
    assert_eq!(found.runs.len(), 8);
    let apart: Vec<&str> = found.apart.keys().map(String::as_str).collect();
    assert_eq!(apart, ["4 CPUs", "CPUs 0", "invented samples", "profile full"]);
    let full = trend(runs.clone(), Some("db1"), Some("full")).expect("the host");
    assert_eq!((full.runs.len(), full.apart.len()), (1, 2), "quick and invented ones");
    assert!(trend(runs.clone(), None, Some("long")).expect("the host").runs.is_empty());
    // The same run twice is one; of several hosts one must be named.
    runs.push(runs[0].clone());
    assert_eq!(of(runs.clone()).twice, 1);
    runs[0].host = "db2".into();
    let hosts = Err(Hosts(vec!["db1".into(), "db2".into()]));
    assert_eq!(trend(runs.clone(), None, None).map(|_| ()), hosts);
    assert_eq!(trend(runs.clone(), Some("db3"), None).map(|_| ()), hosts);
    assert_eq!(trend(runs, Some("db2"), None).expect("it").runs.len(), 1);
}

#[test]
fn a_figure_that_is_no_number_above_zero_is_not_part_of_a_history() {
    let mut rng = Rng::with_seed(4);
    let mut runs: Vec<HostResult> = (0..12).map(|day| run(day, &[100.0], &mut rng)).collect();
    for (run, median) in runs.iter_mut().zip([f64::INFINITY, f64::NAN, 0.0, -1.0]) {
        run.series[0].median = median;
    }
    assert_eq!(of(runs).figures[0].points.len(), 8);
}
