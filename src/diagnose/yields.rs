//! The yields of second threads that a study (`assay smt`) measured.

use std::collections::BTreeMap;

use super::Diagnosis;
use crate::model::{Value, VerdictKind};
use crate::stats::Judged;
use crate::stats::order::median;
use crate::stats::smt::{Yield, YieldPass, Yields, estimate_yield};

/// What the study's rows are called.
const BENCH: &str = "smt.load";
const METRIC: &str = "performance";
const ONE: &str = "one-cpu";
const BOTH: &str = "smt-sibling";
/// The level without pauses.
const FULL_LEVEL: f64 = 7.0;

/// The range over all kinds of work that the study measured with one sibling and with both; `None` where it measured none.
pub fn yield_of_study(diagnosis: &Diagnosis) -> Option<Yield> {
    let found: Vec<Yield> =
        yields_by_kind(&diagnosis.series).into_values().map(|found| found.throughput.value).collect();
    Yield::over_kinds(&found)
}

/// The yield of each kind of work.
pub fn yields_by_kind(series: &[Judged]) -> BTreeMap<String, Yields> {
    let mut kinds: BTreeMap<String, [Option<&Judged>; 2]> = BTreeMap::new();
    for judged in series.iter().filter(|judged| is_full_load(judged)) {
        let kind = judged.series.case.params.get("kind").map_or(String::new(), Value::to_string);
        let place = match judged.series.case.placement.name.as_ref() {
            ONE => 0,
            BOTH => 1,
            _ => continue,
        };
        kinds.entry(kind).or_default()[place] = Some(judged);
    }
    let of = |(kind, measured): (String, [Option<&Judged>; 2])| {
        let [one, both] = measured;
        Some((kind, estimate_yield(&passes(one?, both?))?))
    };
    kinds.into_iter().filter_map(of).collect()
}

fn is_full_load(judged: &Judged) -> bool {
    let series = &judged.series;
    series.case.bench == BENCH
        && series.metric.name == METRIC
        && series.params().get("level").and_then(Value::number) == Some(FULL_LEVEL)
        && judged.analysis.verdict.kind != VerdictKind::Rejected
}

/// What each pass measured with both, by medians of their windows.
fn passes(one: &Judged, both: &Judged) -> Vec<YieldPass> {
    let by_pass = |judged: &Judged| -> BTreeMap<u32, f64> {
        let of = |process: &crate::stats::Process| Some((process.pass, median(&process.values)?));
        judged.series.processes.iter().filter_map(of).collect()
    };
    let both = by_pass(both);
    let pair =
        |(pass, one): (u32, f64)| Some(YieldPass { one, both: *both.get(&pass)?, ..YieldPass::default() });
    by_pass(one).into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Beside, Better, Case, Form, Metric, Pages, Params, Placement};
    use crate::stats::{Series, analyse};

    fn judged(kind: &str, place: &'static str, level: i64, values: &[f64]) -> Judged {
        let placement = Placement {
            name: place.into(),
            seats: vec![],
            pages: Pages::AsGiven,
            beside: Beside::Idle,
            neighbours: vec![],
        };
        let case = Case {
            bench: BENCH.into(),
            placement,
            params: Params::from([("kind".to_string(), Value::Text(kind.to_string()))]),
            knobs: Default::default(),
            inputs: Default::default(),
        };
        let point = Params::from([("level".to_string(), Value::Int(level))]);
        let metric = Metric::new(METRIC, "Performance", "1/s", Better::Higher, Form::Value);
        let series = Series::imported(&case, point, metric, values, None);
        Judged { analysis: analyse(&series, 0.01, 1), series }
    }

    #[test]
    fn the_range_is_that_of_the_kinds_at_full_load() {
        let one = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0];
        let times = |s: f64| one.map(|value| s * value);
        let mut series = vec![
            judged("integer", ONE, 7, &one),
            judged("integer", BOTH, 7, &times(1.2)),
            judged("chase", ONE, 7, &one),
            judged("chase", BOTH, 7, &times(1.9)),
            // Another level, and a kind that was measured on one sibling only.
            judged("integer", BOTH, 3, &times(1.99)),
            judged("vector", ONE, 7, &one),
        ];
        let kinds = yields_by_kind(&series);
        assert_eq!(kinds.keys().collect::<Vec<_>>(), ["chase", "integer"]);
        assert!((kinds["integer"].throughput.value.mid - 1.2).abs() < 1e-9);
        let run = crate::stats::run_of::run(0, vec![]);
        let mut diagnosis = super::super::diagnose(run);
        diagnosis.series = series.clone();
        let s = yield_of_study(&diagnosis).expect("two kinds");
        assert!(
            (s.lo - 1.2).abs() < 1e-9 && (s.hi - 1.9).abs() < 1e-9 && (s.mid - 1.55).abs() < 1e-9,
            "{s:?}"
        );
        series.retain(|judged| judged.series.case.placement.name != BOTH);
        diagnosis.series = series;
        assert_eq!(yield_of_study(&diagnosis), None);
    }
}
