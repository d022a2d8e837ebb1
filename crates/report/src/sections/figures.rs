//! What a series comes to, in words.

use diagnose::words::{figure, percent};
use stats::analysis::Judged;
use stats::order::median;

/// The interval's half-width as a share of the median; both ends where "±" would say that they lie alike and it is wide.
pub fn width_words(judged: &Judged) -> String {
    const WIDE: f64 = 0.25;
    let Some(estimate) = &judged.analysis.estimate else { return String::new() };
    match (estimate.relative_half_width(), estimate.interval) {
        (Some(half), Some(interval)) if half > WIDE => {
            format!("{}–{}", figure(interval.low, ""), figure(interval.high, ""))
        }
        (Some(half), _) => format!("±{}", percent(half)),
        (None, _) => String::new(),
    }
}

/// The process medians: what the interval rests on.
pub fn medians(judged: &Judged) -> Vec<f64> {
    judged.series.processes.iter().filter_map(|process| median(&process.values)).collect()
}

/// A value with its interval, in words: `1.46 µs (1.44 to 1.49)`.
pub fn value_words(judged: &Judged) -> String {
    let Some(estimate) = &judged.analysis.estimate else { return "no value".to_string() };
    let unit = &judged.series.metric.unit;
    let value = figure(estimate.median, unit);
    match estimate.interval {
        Some(interval) => {
            format!("{value} ({} to {})", figure(interval.low, ""), figure(interval.high, ""))
        }
        None => value,
    }
}
