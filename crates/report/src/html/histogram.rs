//! Raw values as a histogram of the size of a word.

use std::fmt;

use crate::svg::chart::ticks::figure;

const HEIGHT: usize = 14;
const BINS: usize = 16;

/// An SVG picture; the style sheet has its colour.
pub struct Histogram<'a>(pub &'a [f64]);

impl fmt::Display for Histogram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<f64> = self.0.iter().copied().filter(|value| value.is_finite()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let said = match values.len() {
            0 => "no values".to_owned(),
            1 => format!("one value: {}", figure(low)),
            count => format!("{count} values, {}–{}", figure(low), figure(high)),
        };
        write!(f, "<svg class=\"spark\"><title>{said}</title><path d=\"")?;
        let counts = counts(&values, low, high);
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            // One value among many is still seen.
            let height = (*count as f64 / most * (HEIGHT - 1) as f64).max(2.0);
            write!(f, "M{} {HEIGHT}v-{height:.0}", bin * 4 + 2)?;
        }
        f.write_str("\"/></svg>")
    }
}

fn counts(values: &[f64], low: f64, high: f64) -> [usize; BINS] {
    let mut counts = [0; BINS];
    for value in values {
        let place = if high > low { (value - low) / (high - low) } else { 0.5 };
        counts[((place * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_for_each_filled_bin() {
        let drawn = Histogram(&[1.0, 1.0, 2.0, f64::NAN]).to_string();
        assert_eq!(drawn.matches("v-").count(), 2);
        assert!(drawn.contains("<title>3 values, 1–2</title>"), "{drawn}");
        assert_eq!(Histogram(&[5.0, 5.0]).to_string().matches("v-").count(), 1);
        assert!(Histogram(&[]).to_string().contains("no values"));
    }
}
