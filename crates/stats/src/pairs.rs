//! What was measured of every two things of a set (CPUs), one value a visit, and how much these
//! values scatter.

use std::collections::{BTreeMap, BTreeSet};

use super::order::{median, quantile};

/// Two CPUs, the lower number first.
pub type Pair = (u32, u32);

/// With fewer visits the noise between them is unknown.
pub const MIN_VISITS: usize = 4;

/// Logarithms of positive values by pair, each with its visit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs(BTreeMap<Pair, Vec<(u32, f64)>>);

impl Pairs {
    /// Takes in one visit's value of a pair, in whichever order it is named. What is no positive
    /// number is left out; several values of one pair in one visit (both directions) become their
    /// geometric mean.
    pub fn push(&mut self, (one, other): Pair, visit: u32, value: f64) {
        if one == other || !value.is_finite() || value <= 0.0 {
            return;
        }
        self.0.entry((one.min(other), one.max(other))).or_default().push((visit, value.ln()));
    }

    /// One value a visit and pair.
    pub fn settled(mut self) -> Pairs {
        for values in self.0.values_mut() {
            let mut visits: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
            for (visit, value) in values.iter() {
                let (sum, count) = visits.entry(*visit).or_default();
                *sum += value;
                *count += 1.0;
            }
            *values = visits.into_iter().map(|(visit, (sum, count))| (visit, sum / count)).collect();
        }
        self
    }

    pub fn cpus(&self) -> Vec<u32> {
        self.0.keys().flat_map(|(one, other)| [*one, *other]).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Visits that measured anything, in order.
    pub fn visits(&self) -> Vec<u32> {
        let all = self.0.values().flatten().map(|(visit, _)| *visit);
        all.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// The least number of visits that a pair has.
    pub fn least_visits(&self) -> usize {
        self.0.values().map(Vec::len).min().unwrap_or(0)
    }

    /// Values of each pair, as logarithms.
    pub fn iter(&self) -> impl Iterator<Item = (Pair, Vec<f64>)> + '_ {
        self.0.iter().map(|(pair, values)| (*pair, values.iter().map(|(_, value)| *value).collect()))
    }

    /// The median of each pair, as logarithms.
    pub fn medians(&self) -> BTreeMap<Pair, f64> {
        self.iter().filter_map(|(pair, values)| Some((pair, median(&values)?))).collect()
    }

    /// What one visit measured, as logarithms.
    pub fn of_visit(&self, visit: u32) -> BTreeMap<Pair, f64> {
        let own = |values: &Vec<(u32, f64)>| values.iter().find(|(own, _)| *own == visit).map(|(_, v)| *v);
        self.0.iter().filter_map(|(pair, values)| Some((*pair, own(values)?))).collect()
    }

    /// The pair's median as measured; `None` for a pair that was not.
    pub fn value(&self, (one, other): Pair) -> Option<f64> {
        let values = self.0.get(&(one.min(other), one.max(other)))?;
        median(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>()).map(f64::exp)
    }

    /// Relative scatter of one visit's value around its pair's median: two thirds of all values are
    /// nearer, so that a minority of stolen visits does not hide how quiet the others were. `None`
    /// below [`MIN_VISITS`].
    pub fn noise(&self) -> Option<f64> {
        if self.least_visits() < MIN_VISITS {
            return None;
        }
        let residuals = self.iter().flat_map(|(_, values)| {
            let middle = median(&values).unwrap_or(0.0);
            // The median takes about one value's freedom.
            let free = (values.len() as f64 / (values.len() as f64 - 1.0)).sqrt();
            values.into_iter().map(move |value| free * (value - middle).abs()).collect::<Vec<_>>()
        });
        quantile(&residuals.collect::<Vec<_>>(), WITHIN_ONE_SIGMA)
    }

    /// The standard error of a pair's median, of the same pooled scatter.
    pub fn standard_error(&self) -> Option<f64> {
        Some(MEDIAN_TO_MEAN * self.noise()? / (self.least_visits() as f64).sqrt())
    }
}

/// Share of normal values within one standard deviation.
pub const WITHIN_ONE_SIGMA: f64 = 0.6827;
/// A median of normal values scatters by this much more than their mean.
const MEDIAN_TO_MEAN: f64 = 1.2533;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_one_pair_and_nonsense_is_left_out() {
        let mut pairs = Pairs::default();
        for visit in 0..4 {
            pairs.push((1, 0), visit, 20.0);
            pairs.push((0, 1), visit, 80.0);
            pairs.push((0, 2), visit, 40.0);
            pairs.push((0, 0), visit, 1.0);
            pairs.push((0, 3), visit, f64::NAN);
            pairs.push((0, 3), visit, -1.0);
        }
        let pairs = pairs.settled();
        assert_eq!((pairs.len(), pairs.cpus()), (2, vec![0, 1, 2]));
        assert!((pairs.value((1, 0)).unwrap_or(0.0) - 40.0).abs() < 1e-9);
        assert_eq!((pairs.least_visits(), pairs.noise()), (4, Some(0.0)));
        assert_eq!(pairs.value((1, 2)), None);
    }

    #[test]
    fn the_scatter_is_that_of_the_visits_not_of_the_pairs() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut pairs = Pairs::default();
        for (pair, value) in [((0, 1), 20.0), ((0, 2), 90.0), ((1, 2), 91.0), ((2, 3), 30.0)] {
            for visit in 0..40 {
                let stolen = if rng.f64() < 0.05 { 5.0 } else { 1.0 };
                pairs.push(
                    pair,
                    visit,
                    value * stolen * (0.05 * super::super::noise::normal(&mut rng)).exp(),
                );
            }
        }
        let noise = pairs.settled().noise().unwrap_or(0.0);
        assert!((0.04..0.065).contains(&noise), "{noise}");
    }
}
