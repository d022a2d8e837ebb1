//! Level shifts in the history of a figure: runs before a shift lie at one level, runs after it at
//! another. E-divisive ([`super::change`]) proposes where; what remains is tested as a shift that
//! was looked for at every place.
//!
//! One value a run is little: a permutation test of eight runs has no p below 1/35, which is no
//! answer where hundreds of figures are looked at. So the p is that of a t test on logarithms with
//! the spread that both sides share, times the number of places where the shift could have been.

use super::change::{Sensitivity, changes};
use super::order::{finite, mean, median, variance};
use super::tails::t_two_sided;

/// Fewer values show no shift: with two or three on a side the spread between runs is a guess.
pub const MIN_VALUES: usize = 8;

/// A level is seen in this many values.
pub const SHORTEST: usize = 3;

/// A place is proposed where permuting gives as good a one this rarely. A level that came and went
/// is no good split as a whole, so that much is proposed; the test decides.
const PROPOSED: f64 = 0.25;

/// A proposed shift is kept if its p is at most this; callers that test many figures ask for less.
const STAYS: f64 = 0.01;

/// A shift between two levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Position of the first value after it.
    pub at: usize,
    /// Medians of the stretches before and after.
    pub before: f64,
    pub after: f64,
    /// That a steady history has such a shift at any place.
    pub p: f64,
}

impl Shift {
    /// `after / before - 1`.
    pub fn relative(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// The shifts of positive values in their order, each of at least this share; none in fewer than
/// [`MIN_VALUES`], or among values that are not all positive.
pub fn shifts(values: &[f64], least: f64, seed: u64) -> Vec<Shift> {
    if values.len() < MIN_VALUES || values.iter().any(|value| !(value.is_finite() && *value > 0.0)) {
        return Vec::new();
    }
    let sensitivity = Sensitivity { split_p: PROPOSED, merge_p: 1.0, least, shortest: SHORTEST };
    let cuts = changes(values, sensitivity, seed).iter().map(|change| change.at).collect();
    standing(values, cuts, |shift| shift.p <= STAYS && shift.relative().abs() >= least)
}

/// The shifts at these places, after the weakest that fails was taken away as often as one does.
pub fn standing(values: &[f64], mut cuts: Vec<usize>, stands: impl Fn(&Shift) -> bool) -> Vec<Shift> {
    loop {
        let mut ends = vec![0];
        ends.extend(&cuts);
        ends.push(values.len());
        let parts =
            ends.windows(3).map(|ends| (&values[ends[0]..ends[1]], &values[ends[1]..ends[2]], ends[1]));
        let all: Vec<Option<Shift>> = parts.map(|(before, after, at)| shift(before, after, at)).collect();
        let p = |one: &Option<Shift>| one.map_or(1.0, |shift| shift.p);
        let failing = (0..all.len()).filter(|place| !all[*place].as_ref().is_some_and(&stands));
        match failing.max_by(|a, b| p(&all[*a]).total_cmp(&p(&all[*b]))) {
            Some(weakest) => _ = cuts.remove(weakest),
            None => return all.into_iter().flatten().collect(),
        }
    }
}

/// The shift between two stretches; `None` where fewer than [`SHORTEST`] values of one lie on its
/// side: one far value makes no level.
fn shift(before: &[f64], after: &[f64], at: usize) -> Option<Shift> {
    let [low, high] = [median(before)?, median(after)?];
    let middle = (low.ln() + high.ln()) / 2.0;
    let on_side = |values: &[f64], own: f64| {
        values.iter().filter(|value| (value.ln() > middle) == (own.ln() > middle)).count()
    };
    if low == high || on_side(before, low) < SHORTEST || on_side(after, high) < SHORTEST {
        return None;
    }
    let [one, other] =
        [before, after].map(|values| values.iter().map(|value| value.ln()).collect::<Vec<_>>());
    let places = (before.len() + after.len() + 1).saturating_sub(2 * SHORTEST) as f64;
    let p = (places * pooled_p(&one, &other)?).min(1.0);
    Some(Shift { at, before: low, after: high, p })
}

/// Two-sided p of Student's t test, the spread being that of both sides.
fn pooled_p(one: &[f64], other: &[f64]) -> Option<f64> {
    let squares = |values: &[f64]| Some(variance(values)? * (values.len() - 1) as f64);
    let (n, m) = (one.len() as f64, other.len() as f64);
    let freedom = n + m - 2.0;
    let spread = ((squares(one)? + squares(other)?) / freedom * (1.0 / n + 1.0 / m)).sqrt();
    let distance = mean(one)? - mean(other)?;
    if spread == 0.0 {
        return Some(if distance == 0.0 { 1.0 } else { 0.0 });
    }
    Some(t_two_sided(distance / spread, freedom))
}

/// The newest values, too few for a level, beside the stretch that they end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// How many there are: 1 or 2.
    pub newest: usize,
    /// Medians of the stretch and of them.
    pub before: f64,
    pub after: f64,
    /// That as many further values of the stretch lie at least this far away.
    pub p: f64,
}

impl Departure {
    /// `after / before - 1`.
    pub fn relative(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// Whether the last value, or the last two, lie off the stretch before them; `None` where that has
/// too few to say what is usual.
pub fn departure(stretch: &[f64]) -> Option<Departure> {
    const MIN_USUAL: usize = 5;
    if finite(stretch).len() != stretch.len() || stretch.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let of = |newest: usize| {
        let (usual, new) = stretch.split_at_checked(stretch.len().checked_sub(newest)?)?;
        let ln = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let (own, late) = (ln(usual), ln(new));
        let (n, k) = (own.len() as f64, newest as f64);
        let spread = (variance(&own)? * (1.0 / n + 1.0 / k)).sqrt();
        let distance = mean(&late)? - mean(&own)?;
        let p =
            if spread > 0.0 { t_two_sided(distance / spread, n - 1.0) } else { f64::from(distance == 0.0) };
        // Both numbers of newest values were looked at.
        let p = (p * (SHORTEST - 1) as f64).min(1.0);
        (own.len() >= MIN_USUAL).then_some(Departure {
            newest,
            before: median(usual)?,
            after: median(new)?,
            p,
        })
    };
    (1..SHORTEST).filter_map(of).min_by(|a, b| a.p.total_cmp(&b.p))
}

#[cfg(test)]
mod tests {
    use super::super::noise::{autoregressive, normal};
    use super::*;
    use fastrand::Rng;

    /// Runs at levels, each with normal noise of this share.
    fn history(rng: &mut Rng, parts: &[(usize, f64)], noise: f64) -> Vec<f64> {
        let mut draw = |&(n, level): &(usize, f64)| -> Vec<f64> {
            (0..n).map(|_| level * (noise * normal(rng)).exp()).collect()
        };
        parts.iter().flat_map(&mut draw).collect()
    }

    #[test]
    fn a_shift_is_found_where_it_is_with_its_levels() {
        let mut rng = Rng::with_seed(3);
        let values = history(&mut rng, &[(9, 100.0), (5, 112.0), (6, 90.0)], 0.01);
        let found = shifts(&values, 0.02, 1);
        assert_eq!(found.iter().map(|shift| shift.at).collect::<Vec<_>>(), [9, 14]);
        assert!((found[0].relative() - 0.12).abs() < 0.02 && found[1].relative() < -0.15, "{found:?}");
        // Of the last three runs.
        let values = history(&mut rng, &[(20, 100.0), (3, 110.0)], 0.01);
        assert_eq!(shifts(&values, 0.02, 1).iter().map(|shift| shift.at).collect::<Vec<_>>(), [20]);
        assert!(shifts(&values, 0.20, 1).is_empty(), "less than was asked for");
        // The smallest history that can have one.
        let values = history(&mut rng, &[(4, 100.0), (4, 120.0)], 0.005);
        assert_eq!(shifts(&values, 0.02, 1).len(), 1);
        assert!(shifts(&values[1..], 0.02, 1).is_empty());
    }

    #[test]
    fn one_or_two_far_values_are_no_level_and_those_at_the_end_are_a_departure() {
        let mut rng = Rng::with_seed(4);
        for late in 1..=2 {
            for seed in 0..40 {
                let values = history(&mut rng, &[(12, 100.0), (late, 130.0)], 0.01);
                assert!(shifts(&values, 0.02, seed).is_empty(), "{values:?}");
                let found = departure(&values).expect("enough before it");
                assert!(found.newest == late && found.p < 1e-6 && found.relative() > 0.2, "{found:?}");
            }
        }
        let values = history(&mut rng, &[(6, 100.0), (2, 150.0), (8, 100.0)], 0.01);
        assert!(shifts(&values, 0.02, 1).is_empty(), "{values:?}");
        assert_eq!(departure(&[1.0, 1.0, 1.0, 1.0, 9.0]), None);
        assert_eq!(departure(&[]), None);
    }

    #[test]
    fn values_that_are_none_and_equal_ones_have_no_shift() {
        assert!(shifts(&[5.0; 30], 0.02, 1).is_empty());
        assert!(shifts(&[1.0, 1.0, 1.0, 1.0, 0.0, 2.0, 2.0, 2.0, 2.0], 0.02, 1).is_empty());
        let steady = [[5.0; 6], [7.0; 6]].concat();
        assert!(shifts(&steady, 0.02, 1).iter().all(|shift| shift.at == 6 && shift.p == 0.0));
    }

    /// Of histories that hold one level the share with a shift at a p that many figures ask for.
    #[test]
    fn steady_histories_seldom_have_one() {
        const HISTORIES: usize = 400;
        let of = |draw: &dyn Fn(&mut Rng) -> Vec<f64>| {
            let mut rng = Rng::with_seed(7);
            let steps = |seed: usize, rng: &mut Rng| shifts(&draw(rng), 0.02, seed as u64);
            (0..HISTORIES).filter(|seed| !steps(*seed, &mut rng).is_empty()).count() as f64 / HISTORIES as f64
        };
        let lognormal = of(&|rng| history(rng, &[(20, 100.0)], 0.05));
        // One run in ten lies far off.
        let spiky = of(&|rng| {
            let spike = |rng: &mut Rng| if rng.u8(0..10) == 0 { 1.3 } else { 1.0 };
            (0..20).map(|_| 100.0 * spike(rng) * (0.02 * normal(rng)).exp()).collect()
        });
        assert!(lognormal <= 0.02 && spiky <= 0.02, "{lognormal} {spiky}");
        // Levels that wander are no steady history: what this test calls a shift then is one.
        let wandering =
            of(&|rng| autoregressive(20, 0.9, rng).iter().map(|z| 100.0 * (0.05 * z).exp()).collect());
        assert!(wandering > lognormal, "{wandering}");
    }
}
