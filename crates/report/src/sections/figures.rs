//! What a series comes to, in words. A number is shown as well as it is known: a rough one with two
//! digits, of a wide one only its range.

use diagnose::words::{figure, percent, rough_figure};
use model::{Grade, time_unit, unit_factor};
use stats::analysis::Judged;
use stats::estimate::{Estimate, Unit};
use stats::order::{Interval, median};
use stats::repeat::cv_words;

/// `7.87–127k/s`: both ends with the prefix of the higher one.
fn range(Interval { low, high }: Interval, unit: &str) -> String {
    let prefix = match high {
        high if !matches!(unit, "1/s" | "") || high < 1e4 => 1.0,
        high if high < 1e6 => 1e3,
        _ => 1e6,
    };
    format!("{}–{}", figure(low / prefix, ""), figure(high, unit))
}

/// One unit for all times of a table or a part of it; nothing where it has none.
pub fn common_time_unit<'j>(all: impl Iterator<Item = &'j Judged>) -> &'static str {
    time_unit(all.filter_map(|judged| {
        let factor = unit_factor(&judged.series.metric.unit, "ns")?;
        Some(judged.analysis.figure()?.median * factor)
    }))
}

/// How wide its interval is, beside that number; of a wide one the number says it.
pub fn width_words(judged: &Judged) -> String {
    if judged.analysis.verdict.grade == Grade::C { String::new() } else { spread_words(judged) }
}

/// The number with its unit.
pub fn median_words(judged: &Judged) -> String {
    in_unit(judged, &judged.series.metric.unit)
}

/// The same in a unit that stands elsewhere, or nowhere.
pub fn in_unit(judged: &Judged, unit: &str) -> String {
    let Some(estimate) = judged.analysis.figure() else { return "–".to_string() };
    match (judged.analysis.verdict.grade, estimate.interval) {
        (Grade::C, Some(interval)) => range(interval, unit),
        (Grade::B, _) => rough_figure(estimate.median, unit),
        _ => figure(estimate.median, unit),
    }
}

/// The interval's half-width as a share of the median; both ends where "±" would say that they lie
/// alike and it is wide.
pub fn spread_words(judged: &Judged) -> String {
    const WIDE: f64 = 0.25;
    let Some(estimate) = judged.analysis.figure() else { return String::new() };
    match (estimate.relative_half_width(), estimate.interval) {
        (Some(half), Some(interval)) if half > WIDE => range(interval, ""),
        (Some(half), _) => format!("±{}", percent(half)),
        (None, _) => String::new(),
    }
}

/// How far its runs scatter, with the interval of that where each stands for itself; nothing of
/// one.
pub fn cv_in_words(judged: &Judged) -> Option<String> {
    let estimate = judged.analysis.figure()?;
    let cv = estimate.cv?;
    Some(match estimate.unit {
        Unit::Processes => cv_words(cv, estimate.n),
        Unit::Windows => percent(cv),
    })
}

/// The process medians: what the interval rests on.
pub fn medians(judged: &Judged) -> Vec<f64> {
    match &judged.analysis.at_clock {
        Some(at_clock) => at_clock.medians.clone(),
        None => judged.series.processes.iter().filter_map(|process| median(&process.values)).collect(),
    }
}

/// A value with its interval, in words: `1.46 µs (1.44 to 1.49)`.
pub fn value_words(judged: &Judged) -> String {
    value_in_unit(judged, &judged.series.metric.unit)
}

/// The same in a unit that stands elsewhere, or nowhere.
pub fn value_in_unit(judged: &Judged, unit: &str) -> String {
    let Some(estimate) = judged.analysis.figure() else { return "no value".to_string() };
    let value = in_unit(judged, unit);
    match estimate.interval {
        Some(interval) if judged.analysis.verdict.grade != Grade::C => {
            format!("{value} ({}–{})", figure(interval.low, ""), figure(interval.high, ""))
        }
        _ => value,
    }
}

/// The number as it ran, where another one is shown: `49.9–57.2 ns`, from its lowest process to its
/// highest.
pub fn as_it_ran(judged: &Judged) -> String {
    let ran = |estimate: &Estimate| {
        let Estimate { least, most, .. } = *estimate;
        range(Interval { low: least, high: most }, &judged.series.metric.unit)
    };
    let shown = judged.analysis.at_clock.is_some();
    judged.analysis.estimate.as_ref().filter(|_| shown).map_or(String::new(), ran)
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of};
    use super::*;
    use model::View;

    #[test]
    fn times_of_a_table_have_one_unit() {
        let place = |name: &'static str| case(name, &[]);
        let made = Made::new(View::Table, vec![latency()])
            .case(place("one-cpu"), &[(of(&[]), &[("latency", 2488.0)])])
            .case(place("same-llc"), &[(of(&[]), &[("latency", 802.0)])]);
        let diagnosis = made.diagnosed(machine(2));
        let unit = common_time_unit(diagnosis.series.iter());
        assert_eq!(unit, "µs");
    }
}
