//! Whether the percentiles of a figure contradict each other: a higher one is never less than a
//! lower one, whatever the format.

use std::collections::BTreeMap;

use crate::faults::disagree_too;
use crate::percentiles::percentile_of;
use crate::{Figure, Imported};
use model::Fact;

/// More contradictions of one file are not shown.
const MAX_CONTRADICTIONS: usize = 10;
/// Tools count in buckets: what one prints of the last may be above the largest by this factor.
const BUCKET: f64 = 1.1;

/// A percentile of a distribution; the largest value is that of 100.
struct Percentile<'r> {
    percent: f64,
    figure: &'r Figure,
}

/// Reports where a result's percentiles contradict each other.
pub fn check(result: &mut Imported) {
    let mut all: BTreeMap<(&str, &str), Vec<Percentile>> = BTreeMap::new();
    for figure in &result.figures {
        let Some((place, metric)) = figure.judged.series.key.rsplit_once('#') else { continue };
        let largest = || metric.strip_suffix("_max").map(|stem| (stem, 100.0));
        if let Some((stem, percent)) = percentile_of(metric).or_else(largest) {
            all.entry((place, stem)).or_default().push(Percentile { percent, figure });
        }
    }
    let mut facts = Vec::new();
    for percentiles in all.values_mut() {
        percentiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
        percentiles.retain(|one| one.figure.judged.analysis.estimate.is_some());
        let found = percentiles.windows(2).filter_map(|pair| contradiction(&pair[0], &pair[1]));
        facts.extend(found.take(MAX_CONTRADICTIONS));
    }
    facts.truncate(MAX_CONTRADICTIONS);
    if !facts.is_empty() {
        disagree_too(result, facts);
    }
}

/// The values of a percentile that are above those of a higher one. Equally many values are
/// compared run by run, else only the least of one with the largest of the other.
fn contradiction(low: &Percentile, high: &Percentile) -> Option<Fact> {
    let values = |one: &Percentile| one.figure.judged.series.values().concat();
    let (lows, highs) = (values(low), values(high));
    let factor = if high.percent < 100.0 { 1.0 } else { BUCKET };
    let is_wrong = |(low, high): &(f64, f64)| *low > high * factor * (1.0 + 1e-9);
    let (less, more) = if lows.len() == highs.len() {
        lows.into_iter().zip(highs).find(is_wrong)
    } else {
        let least = lows.into_iter().reduce(f64::min).zip(highs.into_iter().reduce(f64::max));
        least.filter(is_wrong)
    }?;
    let series = &low.figure.judged.series;
    let words = |one: &Percentile, value: f64| {
        let name = match one.percent {
            percent if percent < 100.0 => format!("the {percent}th percentile is"),
            _ => "the largest is".to_string(),
        };
        format!("{name} {}", model::figure(value, series.metric.unit.as_ref()))
    };
    let words = format!("{}, but {}", words(low, less), words(high, more));
    Some(Fact::new(low.figure.wording.clone(), words, series.key.clone()))
}
