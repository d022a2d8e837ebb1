//! Drift: does the value still move while it is measured?
//!
//! Across processes by Mann-Kendall and Theil-Sen in visiting order; inside processes by what all
//! of them have in common, because windows of one process follow each other too closely for a test
//! of one process to mean much.

use super::order::{finite, mean, median, median_of_sorted, variance};
use super::tails::{normal_two_sided, t_two_sided};

/// A monotone trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Kendall's tau-a against position, -1..1.
    pub tau: f64,
    /// Two-sided p of Mann and Kendall's test; exact up to n = 10 without ties.
    pub p: f64,
    /// Theil-Sen slope: median change a position, in the unit of the values.
    pub slope: f64,
    /// `slope` times positions, as a share of the median's size; 0 where the median is zero.
    pub relative_change: f64,
    pub n: usize,
}

/// Longer series are first halved (neighbours averaged) until they are no longer than this: the
/// test is quadratic.
const MAX_VALUES: usize = 1024;

/// Mann-Kendall with tie correction and continuity (Kendall 1975), slope by Theil & Sen (1968).
/// `None` below four values.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let mut values = finite(values);
    let all = values.len();
    while values.len() > MAX_VALUES {
        values = values.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect();
    }
    let n = values.len();
    if n < 4 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut s = 0_i64;
    for (i, &early) in values.iter().enumerate() {
        for (distance, &late) in values[i + 1..].iter().enumerate() {
            s += i64::from(late > early) - i64::from(late < early);
            slopes.push((late - early) / (distance + 1) as f64);
        }
    }
    let slope = median(&slopes)? * n as f64 / all as f64;
    let size = median(&values)?.abs();
    let relative_change = if size > 0.0 { slope * all as f64 / size } else { 0.0 };
    let tau = s as f64 / slopes.len() as f64;
    Some(Trend { tau, p: mann_kendall_p(s, &values), slope, relative_change, n: all })
}

fn mann_kendall_p(s: i64, values: &[f64]) -> f64 {
    let ties = super::ranks::mid_ranks(values).ties;
    let n = values.len();
    if n <= 10 && ties.len() == n {
        return exact_kendall_p(s, n);
    }
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let variance = (term(n as f64) - ties.iter().map(|&t| term(t as f64)).sum::<f64>()) / 18.0;
    let distance = (s.abs() - 1).max(0) as f64;
    if variance > 0.0 { normal_two_sided(distance / variance.sqrt()) } else { 1.0 }
}

/// Share of all orders of n distinct values whose |S| is at least this one, by counting inversions.
fn exact_kendall_p(s: i64, n: usize) -> f64 {
    // counts[i]: orders with i inversions; S = pairs - 2 i.
    let mut counts = vec![1.0];
    for size in 2..=n {
        let mut next = vec![0.0; counts.len() + size - 1];
        for (inversions, count) in counts.iter().enumerate() {
            next[inversions..inversions + size].iter_mut().for_each(|slot| *slot += count);
        }
        counts = next;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    let all: f64 = counts.iter().sum();
    let far = counts.iter().enumerate().filter(|(i, _)| (pairs - 2 * *i as i64).abs() >= s.abs());
    far.map(|(_, count)| count).sum::<f64>() / all
}

/// A trend that the processes have in common from their first window to their last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// Mean over processes of Kendall's tau of value against window.
    pub tau: f64,
    /// Two-sided p of a t test over processes that the mean tau is zero.
    pub p: f64,
    /// Median over processes of the change from first to last window, as a share of the process's
    /// median.
    pub relative_change: f64,
    /// Processes with enough windows to take part.
    pub processes: usize,
}

/// The trend inside processes. Each process counts once with its tau, so windows that resemble
/// their neighbours do not fake one; the variance of tau is taken as no smaller than independent
/// windows give, so that two processes which agree by luck do not either. `None` with fewer than 4
/// processes of 4 windows or more.
pub fn inside(processes: &[Vec<f64>]) -> Option<Inside> {
    let trends: Vec<Trend> = processes.iter().filter_map(|windows| trend(windows)).collect();
    let k = trends.len() as f64;
    if k < 4.0 {
        return None;
    }
    let taus: Vec<f64> = trends.iter().map(|trend| trend.tau).collect();
    let m = mean(&trends.iter().map(|trend| trend.n.min(MAX_VALUES) as f64).collect::<Vec<f64>>())?;
    let floor = 2.0 * (2.0 * m + 5.0) / (9.0 * m * (m - 1.0));
    let tau = mean(&taus)?;
    let t = tau / (variance(&taus)?.max(floor) / k).sqrt();
    let mut changes: Vec<f64> = trends.iter().map(|trend| trend.relative_change).collect();
    changes.sort_unstable_by(f64::total_cmp);
    let relative_change = median_of_sorted(&changes)?;
    Some(Inside { tau, p: t_two_sided(t, k - 1.0), relative_change, processes: trends.len() })
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::normal;
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
    }

    /// References: scipy 1.17.1 `kendalltau(range(n), x, method="exact")`, `theilslopes`.
    #[test]
    fn trends() {
        let found = trend(&[1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0, 8.0]).expect("8 values");
        near(found.tau, 0.785_714_285_714_285_7);
        near(found.p, 0.005_505_952_380_952_381);
        near(found.slope, 1.0);
        near(found.relative_change, 8.0 / 4.5);
        // With ties, by Kendall's formula: S = 44, Var = 208 (Python).
        let tied = [1.0, 2.0, 2.0, 3.0, 1.5, 4.0, 5.0, 5.0, 5.0, 6.0, 2.5, 7.0];
        let found = trend(&tied).expect("12 values");
        near(found.tau, 44.0 / 66.0);
        near(found.p, 0.002_868_273_490_066_122_4);
        assert_eq!(trend(&[1.0, 2.0, 3.0]), None);
        let flat = trend(&[5.0; 20]).expect("20 values");
        assert_eq!((flat.p, flat.slope), (1.0, 0.0));
    }

    #[test]
    fn long_series_are_thinned() {
        let mut rng = Rng::with_seed(6);
        let values: Vec<f64> = (0..5000).map(|i| 100.0 + f64::from(i) * 0.001 + normal(&mut rng)).collect();
        let found = trend(&values).expect("5000 values");
        assert!((found.slope - 0.001).abs() < 1e-4 && found.p < 1e-9, "{found:?}");
        assert_eq!(found.n, 5000);
    }

    #[test]
    fn trends_inside_processes() {
        let mut rng = Rng::with_seed(7);
        let mut processes = |slope: f64| -> Vec<Vec<f64>> {
            let mut window = |i: i32| 100.0 + f64::from(i) * slope + normal(&mut rng);
            (0..8).map(|_| (0..10).map(&mut window).collect()).collect()
        };
        let found = inside(&processes(0.5)).expect("8 processes");
        assert!(found.p < 0.001 && (found.relative_change - 0.05).abs() < 0.01, "{found:?}");
        assert!(inside(&processes(0.0)).expect("8 processes").p > 0.01);
        assert_eq!(inside(&processes(0.0)[..3]), None);
        // All agree, but four windows each cannot carry a p of zero.
        let rising = vec![vec![1.0, 2.0, 3.0, 4.0]; 4];
        assert!(inside(&rising).expect("4 processes").p > 0.01);
    }
}
