//! One figure for many: the geometric mean of ratios, with an interval and a warning where one test
//! decides it.

use super::order::Interval;
use super::tails::normal_quantile;

/// Geometric mean, exp of the mean logarithm; `None` without values or with one that is not finite
/// and positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    weighted(values, &vec![1.0; values.len()])
}

fn weighted(values: &[f64], weights: &[f64]) -> Option<f64> {
    let total: f64 = weights.iter().sum();
    let logs = values.iter().map(|value| (value.is_finite() && *value > 0.0).then(|| value.ln()));
    let sum = logs.zip(weights).map(|(log, weight)| Some(log? * weight)).sum::<Option<f64>>()?;
    let index = (sum / total).exp();
    (total > 0.0 && index.is_finite()).then_some(index)
}

/// One test's part in an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    pub name: String,
    /// Value over its reference (or over the other arm), positive.
    pub ratio: f64,
    /// Of the ratio, where known.
    pub interval: Option<Interval>,
    /// Relative weight, positive; 1 for all is the plain geometric mean.
    pub weight: f64,
}

/// A geometric-mean index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub value: f64,
    /// `None` where a component has none.
    pub interval: Option<Interval>,
    /// The lowest and the highest value that leaving one component out gives; `None` for a single
    /// component.
    pub leave_one_out: Option<Interval>,
    /// Components without which the index changes sides of 1: the conclusion hangs on each of them
    /// alone.
    pub decided_by: Vec<String>,
}

/// The index with an interval by the delta method: `Var ln G = sum w² s²`, `s = ln(high / low) /
/// 2z`, components taken as independent. `confidence` is that of the components' intervals
/// and of the result. Never drops the worst third. `None` without components or where a ratio or
/// weight is not positive.
pub fn index(components: &[Component], confidence: f64) -> Option<Index> {
    let ratios: Vec<f64> = components.iter().map(|component| component.ratio).collect();
    let weights: Vec<f64> = components.iter().map(|component| component.weight).collect();
    if weights.iter().any(|&weight| weight <= 0.0 || !weight.is_finite()) {
        return None;
    }
    let value = weighted(&ratios, &weights)?;
    let total: f64 = weights.iter().sum();
    let z = normal_quantile(0.5 + confidence / 2.0)?;
    let variance = components.iter().map(|component| {
        let spread = component.interval.filter(|interval| interval.low > 0.0)?;
        Some((component.weight / total * (spread.high / spread.low).ln() / (2.0 * z)).powi(2))
    });
    let half = variance.sum::<Option<f64>>().map(|variance| z * variance.sqrt());
    let interval = half.map(|half| Interval { low: value * (-half).exp(), high: value * half.exp() });
    let without: Vec<f64> = (0..components.len())
        .filter_map(|left_out| {
            let rest = |values: &[f64]| [&values[..left_out], &values[left_out + 1..]].concat();
            weighted(&rest(&ratios), &rest(&weights))
        })
        .collect();
    let leave_one_out = (!without.is_empty()).then(|| Interval {
        low: without.iter().copied().fold(f64::INFINITY, f64::min),
        high: without.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    });
    let flips = |other: &f64| (value - 1.0) * (other - 1.0) < 0.0;
    let decided_by = components.iter().zip(&without).filter(|(_, other)| flips(other));
    let decided_by = decided_by.map(|(component, _)| component.name.clone()).collect();
    Some(Index { value, interval, leave_one_out, decided_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, ratio: f64) -> Component {
        let interval = Some(Interval { low: ratio / 1.02, high: ratio * 1.02 });
        Component { name: name.to_string(), ratio, interval, weight: 1.0 }
    }

    #[test]
    fn indices() {
        assert_eq!(geometric_mean(&[1.0, 4.0]), Some(2.0));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
        let parts = [component("cpu", 2.0), component("disk", 0.9), component("net", 0.8)];
        let found = index(&parts, 0.95).expect("positive ratios");
        assert!((found.value - 1.44_f64.powf(1.0 / 3.0)).abs() < 1e-12);
        assert_eq!(found.decided_by, ["cpu"]);
        let range = found.leave_one_out.expect("three components");
        assert!((range.low - 0.72_f64.sqrt()).abs() < 1e-12 && (range.high - 1.8_f64.sqrt()).abs() < 1e-12);
        // Three equal log half-widths ln 1.02: the mean's is that over sqrt 3.
        let half = found.interval.expect("intervals").high / found.value;
        assert!((half.ln() - 1.02_f64.ln() / 3.0_f64.sqrt()).abs() < 1e-12);
        let mut unsure = parts.to_vec();
        unsure[1].interval = None;
        assert_eq!(index(&unsure, 0.95).expect("positive ratios").interval, None);
        unsure[1].weight = 0.0;
        assert_eq!(index(&unsure, 0.95), None);
        assert_eq!(index(&[], 0.95), None);
        assert_eq!(index(&parts[..1], 0.95).expect("one").leave_one_out, None);
    }
}
