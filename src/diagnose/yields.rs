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
