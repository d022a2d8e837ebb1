//! No input may panic, hang or make a probability that is none: run files come from anywhere.

use proptest::prelude::*;

use super::analysis::{CONFIDENCE, judge_run};
use super::behaviour::{DRIFT_P, behaviour, settling};
use super::change::{Sensitivity, changes, welch_p};
use super::compare::{conclude, paired_p, paired_ratio, ratio_of_means};
use super::contingency::{Table, association};
use super::contrast::{Clocks, Family, Side, contrast, level};
use super::dependence::{autocorrelation, dependent_median_interval, effective_size, neighbours_p, period};
use super::drift::{inside, trend};
use super::estimate::estimate;
use super::factorial::{self, share_out};
use super::index::{Component, geometric_mean, index};
use super::knee::knee;
use super::modes::{inside_processes, modality};
use super::multiple::{benjamini_hochberg, holm};
use super::nested::{Nest, components, intraclass, mean_and_half_width, shares};
use super::order::*;
use super::outliers::{Covariate, attribute, correlations, outliers};
use super::ranks::{kruskal_wallis, mann_whitney, spearman};
use super::steps::steps;
use super::stop::{Target, decide, runs_needed};
use super::sweep::{Knob, Observation, ParetoPoint, Question, Shape, pareto, surface};
use model::Better;
use testkit::{run, samples, visit};

/// Ordinary values, ties, and everything that breaks arithmetic.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.5..2.0_f64,
        3 => (0_i32..4).prop_map(f64::from),
        1 => any::<f64>(),
        1 => prop_oneof![
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(f64::MAX),
            Just(f64::MIN),
            Just(f64::MIN_POSITIVE),
            Just(-0.0),
            Just(5e-324),
        ],
    ]
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![prop::collection::vec(value(), 0..40), prop::collection::vec(0.9..1.1_f64, 0..60)]
}

fn groups() -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec(value(), 0..8), 0..16)
}

fn probability(p: Option<f64>) {
    assert!(p.is_none_or(|p| (0.0..=1.0).contains(&p)), "{p:?} is not a probability");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_one_series(values in values(), q in any::<f64>(), seed in any::<u64>()) {
        let n = finite(&values).len();
        prop_assert_eq!(median(&values).is_some(), n > 0);
        prop_assert_eq!(median(&values), quantile(&values, 0.5).map(|_| median(&values).unwrap_or_default()));
        let _ = (quantile(&values, q), mad(&values), mean(&values), variance(&values));
        let _ = (coefficient_of_variation(&values), robust_coefficient_of_variation(&values));
        if let Some(interval) = median_interval(&values, q) {
            prop_assert!(interval.contains(median(&values).unwrap_or(f64::NAN)));
        }
        let _ = (median_ranks(n, q), widened_median_ranks(n, q, CONFIDENCE));
        let _ = (autocorrelation(&values, 50), dependent_median_interval(&values, q), period(&values));
        let size = effective_size(&values);
        prop_assert!((0.0..=n as f64).contains(&size), "{} of {}", size, n);
        probability(neighbours_p(&values));
        probability(trend(&values).map(|trend| trend.p));
        for change in changes(&values, Sensitivity::default(), seed) {
            probability(Some(change.p));
            prop_assert!(change.at < values.len());
        }
        let _ = (settling(&values, true, seed), modality(&values), geometric_mean(&values));
        prop_assert_eq!(outliers(&values).len(), values.len());
        for p in holm(&values).into_iter().chain(benjamini_hochberg(&values)) {
            probability(Some(p));
        }
        let _ = runs_needed(q, q, q);
    }

    #[test]
    fn of_curves(x in values(), y in values()) {
        let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        let _ = knee(&points);
        if let Some(found) = steps(&points) {
            for step in &found.steps {
                prop_assert!(step.low <= step.at && step.at <= step.high && step.after > step.before, "{:?}", step);
                prop_assert!(step.agrees(step.at) && step.after.is_finite());
            }
            prop_assert!(found.steps.windows(2).all(|pair| pair[0].at < pair[1].at));
        }
    }

    #[test]
    fn of_two_series(a in values(), b in values(), groups in groups(), confidence in any::<f64>(), seed in any::<u64>()) {
        probability(spearman(&a, &b).map(|found| found.p));
        probability(mann_whitney(&a, &b).map(|found| found.p));
        probability(welch_p(&a, &b));
        probability(Some(paired_p(&a, &b)));
        probability(kruskal_wallis(&[a.clone(), b.clone()], seed));
        let _ = paired_ratio(&a, &b, confidence).map(|ratio| conclude(&ratio, 0.02));
        if let Some((first, second)) = Side::of(&a, 1).zip(Side::of(&b, 2)) {
            let level = level(Family::Other, [&first, &second], &groups);
            let found = contrast(&first, &second, level, Clocks::default());
            probability(Some(found.p));
            prop_assert!(found.interval.contains(found.difference), "{:?}", found);
            let _ = (found.same_within(&[0.02, 0.1]), found.at_most(), found.would_show());
        }
        let flags = outliers(&a);
        let strata: Vec<usize> = (0..a.len()).map(|index| index / 3).collect();
        let covariates = [Covariate { name: "b".into(), values: b.clone() }];
        probability(attribute(&flags, &strata, &covariates).explanations.first().map(|found| found.p));
        probability(correlations(&a, &covariates).first().map(|(_, found)| found.p));
        let labels = |values: &[f64]| -> Vec<i32> { values.iter().map(|value| *value as i32).collect() };
        probability(association(&labels(&a), &labels(&b), seed));
        let table = Table { both: a.len(), first_only: b.len(), second_only: 2, neither: 0 };
        probability(Some(table.fisher()));
        probability(Some(table.fisher_together()));
    }

    #[test]
    fn of_processes(groups in groups(), confidence in any::<f64>(), seed in any::<u64>()) {
        let windows = groups.concat();
        if let Some(found) = estimate(&groups, confidence) {
            probability(found.icc.map(|icc| icc.upper));
            let _ = behaviour(&groups, &found, DRIFT_P, seed);
        }
        prop_assert_eq!(estimate(&groups, CONFIDENCE).is_some(), !finite(&windows).is_empty());
        let _ = (intraclass(&groups), mean_and_half_width(&windows, confidence));
        if let Some(levels) = components(&Nest::of_groups(&groups)) {
            let _ = shares(&levels);
        }
        let _ = (inside_processes(&groups), ratio_of_means(&groups, &groups, confidence));
        probability(inside(&groups).map(|inside| inside.p));
        probability(kruskal_wallis(&groups, seed));
        let _ = decide(&groups, Target { precision: confidence, most: 20 }, seed);
        let component = |ratio: &f64| Component { name: String::new(), ratio: *ratio, interval: None, weight: *ratio };
        let _ = index(&windows.iter().map(component).collect::<Vec<Component>>(), confidence);
        let visit_of = |(order, values): (usize, &Vec<f64>)| {
            visit(order as u32, order as u32 % 3, 0, vec![samples("rate", order as u64 % 2, values)])
        };
        let run = run(3, groups.iter().enumerate().map(visit_of).collect());
        for judged in judge_run(&run, &machine::Machine::default()).series {
            let silent = judged.analysis.verdict.reason.is_empty();
            prop_assert_eq!(silent, judged.analysis.verdict.kind == model::VerdictKind::Trusted);
        }
    }

    #[test]
    fn of_sweeps(values in values(), times in values(), columns in 0_usize..6, rows in 0_usize..4, seed in any::<u64>()) {
        let time = |index: usize| times.get(index).copied().unwrap_or(index as f64);
        let order = || values.iter().enumerate();
        let look = |(index, value): (usize, &f64)| {
            Observation { cell: index % (columns * rows + 2), pass: index as u32 / 7, at: time(index), value: *value }
        };
        let looks: Vec<Observation> = order().map(look).collect();
        for (control, better) in [(0, Better::Lower), (columns * rows, Better::Higher), (usize::MAX, Better::Neither)] {
            let shape = Shape { columns, rows };
            let knobs = [&times, &values].map(|places| Knob { before: columns, places: Some(places.as_slice()) });
            if let Some(shown) = surface(&Question { shape, knobs, control, observations: &looks, better, seed }) {
                probability(Some(shown.matters.p));
                shown.test_results.iter().for_each(|answer| probability(Some(answer.p)));
                let known = shown.levels[..shape.cells()].iter().flatten().count();
                prop_assert_eq!(shown.regions.iter().map(|region| region.cells.len()).sum::<usize>(), known);
                prop_assert!(shown.best.len() <= known);
            }
            let spot = |(cell, value): (usize, &f64)| {
                let point = Interval { low: *value, high: time(cell) };
                ParetoPoint { cell, values: [*value, time(cell)], intervals: [point; 2] }
            };
            let _ = pareto(&order().map(spot).collect::<Vec<ParetoPoint>>(), [better, Better::Lower]);
        }
        let look = |(index, value): (usize, &f64)| {
            factorial::Observation { mask: index as u64 % 9, pass: index as u32 / 9, at: time(index), value: *value }
        };
        if let Some(shares) = share_out(3, &order().map(look).collect::<Vec<factorial::Observation>>()) {
            shares.mains.iter().for_each(|main| probability(Some(main.effect.p)));
            prop_assert!(shares.strong().len() <= 3);
        }
    }
}
