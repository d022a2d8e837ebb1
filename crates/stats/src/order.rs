//! Order statistics: quantiles, the median with its exact interval, robust spread.
//!
//! Values that are not finite are left out by every function of [`crate`]; `None` means that too
//! few values were left to say anything. (A series with such values is rejected before it gets
//! here.)

/// A closed interval, in the unit of the values that it was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Half the distance between the ends, in the unit of the values.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half-width as a share of `|centre|`; `None` where the centre is zero and the interval is not
    /// a point.
    pub fn relative_half_width(&self, centre: f64) -> Option<f64> {
        let half = self.half_width();
        if half == 0.0 {
            return Some(0.0);
        }
        (centre != 0.0 && half.is_finite()).then(|| half / centre.abs())
    }

    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The finite values, in their order.
pub fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

/// The finite values, rising.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = finite(values);
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Quantile `q` (0..1) by linear interpolation between the order statistics around `(n - 1) q`:
/// type 7 of Hyndman & Fan (1996), what R and NumPy give unless asked otherwise.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), q)
}

/// As [`quantile`], of values that are finite and rising already.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    Some(between(sorted[below], sorted[above], position - below as f64))
}

/// `low + share * (high - low)` without overflow where the two are huge and of opposite sign.
fn between(low: f64, high: f64, share: f64) -> f64 {
    match share {
        0.0 => low,
        share => low * (1.0 - share) + high * share,
    }
}

/// The middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = finite(values);
    let last = values.len().checked_sub(1)?;
    let middle = last / 2;
    let (_, low, above) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let low = *low;
    if last % 2 == 0 {
        return Some(low);
    }
    let high = above.iter().copied().fold(f64::INFINITY, f64::min);
    Some(low * 0.5 + high * 0.5)
}

/// Median of values that are finite and rising already.
pub fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    quantile_of_sorted(sorted, 0.5)
}

/// Median absolute deviation from the median, in the unit of the values (not scaled to a standard
/// deviation).
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let deviations: Vec<f64> = finite(values).iter().map(|value| (value - centre).abs()).collect();
    median(&deviations)
}

/// Scales a MAD to the standard deviation of normally distributed values: `1 / qnorm(3/4)`.
pub const MAD_TO_SIGMA: f64 = 1.4826;

/// Arithmetic mean, summed as distances from the first value: exact for equal values, close for
/// large ones.
pub fn mean(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let first = *values.first()?;
    Some(first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64)
}

/// Sample variance (divisor n - 1); `None` below two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let centre = mean(&values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Coefficient of variation: *population* standard deviation (divisor n) over the mean's size, as a
/// share (0.05 = 5 %). This is the formula behind the published swings of SPEC CPU's bwaves (7.94 %
/// and 0.23 %). `None` without values or where the mean is zero.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let centre = mean(&values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let cv = (squares / values.len() as f64).sqrt() / centre.abs();
    cv.is_finite().then_some(cv)
}

/// The same from order statistics, `1.4826 MAD / |median|`: equal for normal noise, deaf to a tail.
/// `None` without values or where the median is zero.
pub fn robust_coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let cv = MAD_TO_SIGMA * mad(values)? / median(values)?.abs();
    cv.is_finite().then_some(cv)
}

/// Ranks (from 1) of the order statistics that bound the median with at least `confidence` (0..1),
/// whatever the distribution: `k` is the largest rank with `P(Binomial(n, 1/2) <= k - 1) <= (1 -
/// confidence) / 2`, and the interval is `[x_(k), x_(n+1-k)]` (Le Boudec, *Performance Evaluation
/// of Computer and Communication Systems*, 2010, theorem 2.1). `None` where even `[min, max]`
/// covers less: below n = 6 for 95 %, below n = 8 for 99 %.
pub fn median_ranks(n: usize, confidence: f64) -> Option<(usize, usize)> {
    if n == 0 || !(0.0..1.0).contains(&confidence) {
        return None;
    }
    // Rounding must not decide where a tail equals the bound exactly, as 2^-5 for 93.75 % does.
    let bound = (1.0 - confidence) / 2.0 * (1.0 + 1e-12);
    let mut ln_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut k = 0;
    while 2 * k < n {
        tail += ln_term.exp();
        if tail > bound {
            break;
        }
        ln_term += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
    (k > 0).then_some((k, n + 1 - k))
}

/// [`median_ranks`] for `n` values that are worth only `ess` independent ones (0 < ess <= n): the
/// ranks' distance from the middle grows by `sqrt(n / ess)`. `None` where that passes the ends.
pub fn widened_median_ranks(n: usize, ess: f64, confidence: f64) -> Option<(usize, usize)> {
    let (k, _) = median_ranks(n, confidence)?;
    if ess.is_nan() || ess <= 0.0 {
        return None;
    }
    let ess = ess.min(n as f64);
    let middle = (n + 1) as f64 / 2.0;
    let distance = (middle - k as f64) * (n as f64 / ess).sqrt();
    let k = (middle - distance + 1e-9).floor();
    (k >= 1.0).then(|| (k as usize, n + 1 - k as usize))
}

/// The median's interval with at least `confidence` (0..1) for independent values of any
/// distribution, by [`median_ranks`]; `None` where there are too few of them.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let values = sorted(values);
    interval_at(&values, median_ranks(values.len(), confidence)?)
}

/// The interval between two ranks (from 1) of rising values.
pub fn interval_at(sorted: &[f64], (low, high): (usize, usize)) -> Option<Interval> {
    let at = |rank: usize| sorted.get(rank.checked_sub(1)?).copied();
    Some(Interval { low: at(low)?, high: at(high)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_median_interval() {
        let lower = |n| median_ranks(n, 0.95).map(|(k, _)| k);
        assert_eq!(lower(5), None);
        let table = [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10), (50, 18)];
        for (n, k) in table.into_iter().chain([(100, 40)]) {
            assert_eq!(median_ranks(n, 0.95), Some((k, n + 1 - k)), "n = {n}");
        }
        assert_eq!(median_ranks(7, 0.99), None);
        assert_eq!(median_ranks(8, 0.99), Some((1, 8)));
        // scipy 1.17.1: binom.ppf(0.025, n, .5) for n where the exact rank is the quantile itself.
        assert_eq!(lower(1000), Some(469));
        assert_eq!(lower(100_000), Some(49_690));
        // Equality with the bound counts: 2 * 2^-5 = 1 - 0.9375.
        assert_eq!(median_ranks(5, 0.9375), Some((1, 5)));
        for (n, confidence) in [(0, 0.95), (10, 1.0), (10, f64::NAN), (10, -0.1)] {
            assert_eq!(median_ranks(n, confidence), None);
        }
        assert_eq!(median_ranks(1, 0.0), Some((1, 1)));
        assert_eq!(median_ranks(2, 0.5), Some((1, 2)));
    }

    #[test]
    fn widened_ranks() {
        assert_eq!(widened_median_ranks(100, 100.0, 0.95), Some((40, 61)));
        // Distance 10.5 doubles to 21: ranks 29.5 rounded outwards.
        assert_eq!(widened_median_ranks(100, 25.0, 0.95), Some((29, 72)));
        assert_eq!(widened_median_ranks(100, 4.0, 0.95), None);
        assert_eq!(widened_median_ranks(100, 500.0, 0.95), Some((40, 61)));
        assert_eq!(widened_median_ranks(100, f64::NAN, 0.95), None);
        assert_eq!(widened_median_ranks(100, 0.0, 0.95), None);
    }

    #[test]
    fn quantiles_are_of_type_7() {
        // numpy 2.4.6: np.quantile([1,2,4,8,16], [0,.1,.25,.5,.9,1]).
        let values = [16.0, 1.0, 8.0, 2.0, 4.0];
        for (q, expected) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8), (1.0, 16.0)] {
            let got = quantile(&values, q).expect("values");
            assert!((got - expected).abs() < 1e-12, "{q}: {got}");
        }
        assert_eq!(quantile(&values, 1.5), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median(&[f64::NAN, 7.0, f64::INFINITY]), Some(7.0));
        assert_eq!(median(&[f64::NAN]), None);
    }

    #[test]
    fn spreads() {
        let values = [1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0];
        assert_eq!(mad(&values), Some(1.0));
        // numpy 2.4.6: np.std(v) / np.mean(v).
        let cv = coefficient_of_variation(&values).expect("mean is not zero");
        assert!((cv - 0.775_628_777).abs() < 1e-9, "{cv}");
        let cv = robust_coefficient_of_variation(&values).expect("median is not zero");
        assert!((cv - 0.7413).abs() < 1e-12, "{cv}");
        assert_eq!(coefficient_of_variation(&[-1.0, 1.0]), None);
        assert_eq!(coefficient_of_variation(&[5.0]), Some(0.0));
        assert_eq!(variance(&[1.0, 3.0]), Some(2.0));
        assert_eq!(variance(&[1.0]), None);
    }

    #[test]
    fn intervals() {
        let values: Vec<f64> = (1..=12).map(f64::from).collect();
        let interval = median_interval(&values, 0.95).expect("n = 12");
        assert_eq!(interval, Interval { low: 3.0, high: 10.0 });
        assert_eq!(interval.relative_half_width(7.0), Some(0.5));
        assert_eq!(interval.relative_half_width(0.0), None);
        assert_eq!(Interval { low: 0.0, high: 0.0 }.relative_half_width(0.0), Some(0.0));
        assert_eq!(median_interval(&values[..5], 0.95), None);
        assert_eq!(median_interval(&[2.0; 6], 0.95), Some(Interval { low: 2.0, high: 2.0 }));
    }
}
