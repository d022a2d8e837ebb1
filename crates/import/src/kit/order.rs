//! Whether the percentiles that a file tells of one distribution can be those of one: a higher one
//! is never less than a lower one, whatever the format.

use std::collections::BTreeMap;

use crate::own::{disagree_too, percentile_of};
use crate::{Figure, Imported};
use model::Fact;

/// More contradictions of one file are not told.
const MOST: usize = 10;
/// Tools count in buckets: what one prints of the last may be above the largest by so much.
const BUCKET: f64 = 1.1;

/// A percentile of a figure; the largest value is that of 100.
type Mark<'r> = (f64, &'r Figure);

/// Tells where a result's percentiles contradict each other.
pub fn check(result: &mut Imported) {
    let mut all: BTreeMap<(&str, &str), Vec<Mark>> = BTreeMap::new();
    for figure in &result.figures {
        let Some((place, metric)) = figure.judged.series.key.rsplit_once('#') else { continue };
        let largest = || metric.strip_suffix("_max").map(|stem| (stem, 100.0));
        if let Some((stem, percent)) = percentile_of(metric).or_else(largest) {
            all.entry((place, stem)).or_default().push((percent, figure));
        }
    }
    let mut facts = Vec::new();
    for marks in all.values_mut() {
        marks.sort_by(|one, other| one.0.total_cmp(&other.0));
        marks.retain(|(_, figure)| figure.judged.analysis.estimate.is_some());
        facts.extend(marks.windows(2).filter_map(|pair| against(&pair[0], &pair[1])).take(MOST));
    }
    facts.truncate(MOST);
    if !facts.is_empty() {
        disagree_too(result, facts);
    }
}

/// What the values of a percentile and of a higher one say against each other. Where both have as
/// many, they are compared run by run, else only the least of one with the largest of the other.
fn against(low: &Mark, high: &Mark) -> Option<Fact> {
    let values = |mark: &Mark| mark.1.judged.series.values().concat();
    let (lows, highs) = (values(low), values(high));
    let factor = if high.0 < 100.0 { 1.0 } else { BUCKET };
    let is_wrong = |(low, high): &(f64, f64)| *low > high * factor * (1.0 + 1e-9);
    let found = if lows.len() == highs.len() { lows.into_iter().zip(highs).find(is_wrong) } else {
            let least = lows.into_iter().reduce(f64::min).zip(highs.into_iter().reduce(f64::max));
            least.filter(is_wrong)
        };
    let unit = low.1.judged.series.metric.unit.as_ref();
    let name = |mark: &Mark| {
        if mark.0 < 100.0 { format!("the {}th percentile", mark.0) } else { "the largest".into() }
    };
    found.map(|(less, more)| {
        let words = format!(
            "{} is {}, {} only {}",
            name(low),
            model::figure(less, unit),
            name(high),
            model::figure(more, unit)
        );
        Fact::new(low.1.wording.clone(), words, low.1.judged.series.key.clone())
    })
}
