//! Where the variance sits: windows inside processes (inside allocations, inside boots).
//!
//! Windows of one process share its pages, its address layout and often its CPU, so they say less
//! than their number. [`intraclass`] is the two-level case with a bound; [`components`] is the
//! general one (Kalibera & Jones,
//! *Rigorous Benchmarking in Reasonable Time*, ISMM 2013, and arXiv 2007.10899).

use super::order::{finite, mean, variance};
use super::tails::{f_quantile, t_quantile};

/// How alike the members of one group are: the share of all variance that lies between groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Icc {
    /// ANOVA estimate, 0..1 (a negative one is given as 0).
    pub value: f64,
    /// One-sided 95 % upper confidence bound, 0..1, for normal noise; approximate where groups
    /// differ in size.
    pub upper: f64,
    /// Members of a typical group (Snedecor's n0; their number where all are equal).
    pub group_size: f64,
}

impl Icc {
    /// How many times more windows are needed than independent ones would be, at the upper bound:
    /// `1 + (group_size - 1) upper` (Kish's design effect).
    pub fn design_effect_upper(&self) -> f64 {
        1.0 + (self.group_size - 1.0).max(0.0) * self.upper
    }
}

/// Confidence of [`Icc::upper`].
pub const ICC_UPPER_CONFIDENCE: f64 = 0.95;

/// Intraclass correlation by one-way random-effects analysis of variance, groups of any sizes
/// (Donner 1986; bound by Searle's F, exact for equal groups). `None` with fewer than two groups,
/// no group of two, or no variance at all.
pub fn intraclass(groups: &[Vec<f64>]) -> Option<Icc> {
    let groups: Vec<Vec<f64>> = groups.iter().map(|g| finite(g)).filter(|g| !g.is_empty()).collect();
    let k = groups.len() as f64;
    let n: f64 = groups.iter().map(|g| g.len() as f64).sum();
    if k < 2.0 || n <= k {
        return None;
    }
    let grand = mean(&groups.concat())?;
    let (mut between, mut within) = (0.0, 0.0);
    for group in &groups {
        let centre = mean(group)?;
        between += group.len() as f64 * (centre - grand).powi(2);
        within += group.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
    }
    let squares: f64 = groups.iter().map(|g| (g.len() as f64).powi(2)).sum();
    let group_size = (n - squares / n) / (k - 1.0);
    let (between, within) = (between / (k - 1.0), within / (n - k));
    if !(between + within).is_finite() || between + within == 0.0 {
        return None;
    }
    let share = |ratio: f64| {
        if ratio.is_finite() { ((ratio - 1.0) / (ratio + group_size - 1.0)).clamp(0.0, 1.0) } else { 1.0 }
    };
    let ratio = between / within;
    let least = f_quantile(1.0 - ICC_UPPER_CONFIDENCE, k - 1.0, n - k)?;
    Some(Icc { value: share(ratio), upper: share(ratio / least), group_size })
}

/// Values in nested groups: a leaf is a measured value, a node the units of the level below.
#[derive(Clone, Debug, PartialEq)]
pub enum Nest {
    Value(f64),
    Group(Vec<Nest>),
}

impl Nest {
    /// Two levels: windows in processes.
    pub fn of_groups(groups: &[Vec<f64>]) -> Nest {
        let group = |values: &Vec<f64>| Nest::Group(values.iter().map(|&value| Nest::Value(value)).collect());
        Nest::Group(groups.iter().map(group).collect())
    }
}

/// One level of a nested design, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Biased variance S_i²: of the means of this level's units inside their parents.
    pub observed: f64,
    /// What this level itself adds, T_i² = S_i² - S_(i-1)² / r_(i-1), never below 0.
    pub own: f64,
    /// Units of this level in a parent: r_i, the harmonic mean where they differ.
    pub count: f64,
}

/// Variance by level, lowest first, from means of means. All leaves must lie equally deep, and at
/// least one parent a level must have two units; `None` otherwise. Values that are not finite count
/// as absent.
pub fn components(nest: &Nest) -> Option<Vec<Component>> {
    let mut found: Vec<Vec<(f64, f64)>> = Vec::new();
    reduce(nest, &mut found)?;
    let mut levels: Vec<Component> = Vec::new();
    for parents in found {
        let spread: Vec<f64> = parents.iter().map(|(variance, _)| *variance).collect();
        let observed = mean(&spread)?;
        let count = parents.len() as f64 / parents.iter().map(|(_, count)| 1.0 / count).sum::<f64>();
        let below = levels.last().map_or(0.0, |below| below.observed / below.count);
        levels.push(Component { observed, own: (observed - below).max(0.0), count });
    }
    (!levels.is_empty()).then_some(levels)
}

/// The mean of a nest and its depth; notes (variance of unit means, units) of every parent by
/// level.
fn reduce(nest: &Nest, found: &mut Vec<Vec<(f64, f64)>>) -> Option<(f64, usize)> {
    let units = match nest {
        Nest::Value(value) => return value.is_finite().then_some((*value, 0)),
        Nest::Group(units) => units,
    };
    let reduced: Vec<(f64, usize)> = units.iter().filter_map(|unit| reduce(unit, found)).collect();
    let depth = reduced.first()?.1;
    if reduced.iter().any(|(_, other)| *other != depth) {
        return None;
    }
    let means: Vec<f64> = reduced.iter().map(|(mean, _)| *mean).collect();
    while found.len() <= depth {
        found.push(Vec::new());
    }
    let spread = variance(&means).unwrap_or(f64::NAN);
    found[depth].push((spread, means.len() as f64));
    Some((mean(&means)?, depth + 1))
}

/// Share of the variance that lies at each level, lowest first; adds up to 1. `None` without
/// variance.
pub fn shares(levels: &[Component]) -> Option<Vec<f64>> {
    let total: f64 = levels.iter().map(|level| level.own).sum();
    (total > 0.0 && total.is_finite()).then(|| levels.iter().map(|level| level.own / total).collect())
}

/// Mean and half-width of its t interval from independent values; `None` with fewer than two.
pub fn mean_and_half_width(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let values = finite(values);
    let n = values.len() as f64;
    let half = t_quantile(confidence, n - 1.0)? * (variance(&values)? / n).sqrt();
    Some((mean(&values)?, half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
    }

    #[test]
    fn equal_groups() {
        // By hand: means 2, 6, 4; MSB = 3 * 8 / 2 = 12, MSW = 1; F = 12, ICC = 11 / (12 + 3 - 1) =
        // 11/14.
        let groups = [vec![1.0, 2.0, 3.0], vec![5.0, 6.0, 7.0], vec![3.0, 4.0, 5.0]];
        let icc = intraclass(&groups).expect("three groups");
        near(icc.value, 11.0 / 14.0);
        near(icc.group_size, 3.0);
        // scipy 1.17.1: U = 12 / f.ppf(.05, 2, 6), (U - 1) / (U + 2).
        near(icc.upper, 0.987_176_988_784_634_7);
    }

    #[test]
    fn unequal_groups() {
        // numpy 2.4.6 and scipy by the formulas of Donner 1986.
        let groups = [vec![1.0, 2.0, 3.0], vec![5.0, 6.0], vec![3.0, 4.0, 5.0, 9.0]];
        let icc = intraclass(&groups).expect("three groups");
        near(icc.group_size, 2.888_888_888_888_889);
        near(icc.value, 0.393_984_962_406_015_05);
        near(icc.upper, 0.949_777_600_178_551_6);
    }

    #[test]
    fn degenerate_groups() {
        assert_eq!(intraclass(&[]), None);
        assert_eq!(intraclass(&[vec![1.0, 2.0]]), None);
        assert_eq!(intraclass(&[vec![1.0], vec![2.0], vec![3.0]]), None);
        assert_eq!(intraclass(&[vec![1.0, 1.0], vec![1.0, 1.0]]), None);
        // All variance between: certain to be 1. All within: certain to be 0.
        let icc = intraclass(&[vec![1.0, 1.0], vec![2.0, 2.0]]).expect("two groups");
        assert_eq!((icc.value, icc.upper), (1.0, 1.0));
        let icc = intraclass(&[vec![1.0, 2.0], vec![2.0, 1.0]]).expect("two groups");
        assert_eq!((icc.value, icc.upper), (0.0, 0.0));
        assert!(intraclass(&[vec![f64::NAN, 1.0, 2.0], vec![f64::INFINITY]]).is_none());
    }

    fn three_levels() -> Nest {
        let leaf = |values: [f64; 2]| Nest::Group(values.into_iter().map(Nest::Value).collect());
        Nest::Group(vec![
            Nest::Group(vec![leaf([1.0, 3.0]), leaf([5.0, 7.0])]),
            Nest::Group(vec![leaf([11.0, 13.0]), leaf([15.0, 17.0])]),
        ])
    }

    #[test]
    fn three_levels_by_hand() {
        // Windows: variance 2 in each of 4. Allocations: means 2, 6 and 12, 16: variance 8 in both.
        // Processes: means 4, 14: variance 50. T² = 2, 8 - 2/2 = 7, 50 - 8/2 = 46.
        let levels = components(&three_levels()).expect("even depth");
        let own: Vec<f64> = levels.iter().map(|level| level.own).collect();
        assert_eq!(own, vec![2.0, 7.0, 46.0]);
        near(shares(&levels).expect("variance")[2], 46.0 / 55.0);
        // Processes with means 4 and 14: mean 9, t(0.95, 1) = 12.7062, sqrt(50 / 2) = 5.
        let (centre, half) = mean_and_half_width(&[4.0, 14.0], 0.95).expect("two processes");
        near(centre, 9.0);
        near(half, 5.0 * 12.706_204_736_174_694);
    }

    #[test]
    fn degenerate_nests() {
        assert_eq!(components(&Nest::Value(1.0)), None);
        assert_eq!(components(&Nest::Group(vec![])), None);
        let uneven = Nest::Group(vec![Nest::Value(1.0), Nest::of_groups(&[vec![1.0, 2.0]])]);
        assert_eq!(components(&uneven), None);
    }
}
