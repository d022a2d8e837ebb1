//! Runs of one thing, one after the other: not only how far they lie apart, but in which order they
//! came.
//!
//! Where a host has memory of two speeds, what a run gets is settled when its memory is
//! allotted: after a boot the first runs get one kind, later ones the other, then mixtures. The
//! order of the runs shows that where their spread does not.

use model::percent;

use super::drift::trend;
use super::noise::normal;
use super::order::{Interval, finite, median};
use super::tails::chi_square_above;

/// Two runs of a component further apart than this have met something (SPEC CPU2017 is trusted
/// because it repeats).
pub const APART: f64 = 0.05;
/// Runs that differ by less are alike, whatever their order.
pub const ALIKE: f64 = 0.02;
/// A run is low or high where it lies within this share of the range from the lowest or the
/// highest.
const NEAR: f64 = 0.25;
/// p below which a trend is one.
const TREND_P: f64 = 0.05;
/// A component whose runs lie no further apart than this holds still.
pub const STILL: f64 = 0.025;
/// An order that noise gives more often than this is no evidence about memory.
pub const CHANCE: f64 = 0.02;
/// Runs of each side that an order needs to be named: of one run a side, skewed noise gives more
/// than normal noise.
const CLEAR: usize = 2;
/// Series of noise that [`noise_places`] draws.
const DRAWS: usize = 20_000;
/// Runs of a series that it draws at most: of more runs noise makes that order less often still.
const MAX_DRAWN: usize = 12;
/// Confidence of a coefficient of variation's interval.
const CONFIDENCE: f64 = 0.95;
/// This many runs stand one by one in words; of more, only stretches do.
const IN_WORDS: usize = 8;
/// More stretches than these are no order that words help with.
const STRETCHES: usize = 5;

/// Where a run lies between the lowest and the highest of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Low,
    Mid,
    High,
}

impl Level {
    pub const fn word(self) -> &'static str {
        match self {
            Level::Low => "low",
            Level::Mid => "mid",
            Level::High => "high",
        }
    }
}

/// What a sequence of runs looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All alike, within 2 % or within what they scatter inside.
    Flat,
    /// One way from the first to the last.
    Drift,
    /// One level, then another for good.
    Step,
    /// Both extremes in one stretch each, and what lies between only after both: each run keeps
    /// what it was allotted, and what is allotted changes with how memory fills up after a boot.
    Placed,
    /// Apart, in no order that means something.
    Scattered,
}

impl Shape {
    pub const fn words(self) -> &'static str {
        match self {
            Shape::Flat => "alike",
            Shape::Drift => "drifting",
            Shape::Step => "a step",
            Shape::Placed => "both extremes, then what lies between",
            Shape::Scattered => "scattered",
        }
    }
}

/// Runs in the order in which they came.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    pub values: Vec<f64>,
    /// Highest over lowest, less 1.
    pub apart: f64,
    /// Population standard deviation over mean.
    pub cv: f64,
    /// Empty where the runs are alike.
    pub levels: Vec<Level>,
    pub shape: Shape,
}

/// Reads positive values in their order; `scatter` is how far one run's own pieces lie apart
/// (relative, 0 where that is not known). `None` with fewer than two.
pub fn sequence(values: &[f64], scatter: f64) -> Option<Sequence> {
    let values: Vec<f64> = finite(values).into_iter().filter(|value| *value > 0.0).collect();
    if values.len() < 2 {
        return None;
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let apart = high / low - 1.0;
    let cv = super::order::coefficient_of_variation(&values)?;
    let alike = apart < ALIKE.max(3.0 * scatter);
    let levels: Vec<Level> = if alike {
        Vec::new()
    } else {
        values.iter().map(|value| level((value - low) / (high - low))).collect()
    };
    let shape = if alike { Shape::Flat } else { shape(&values, &levels) };
    Some(Sequence { values, apart, cv, levels, shape })
}

fn level(share: f64) -> Level {
    match share {
        share if share <= NEAR => Level::Low,
        share if share >= 1.0 - NEAR => Level::High,
        _ => Level::Mid,
    }
}

/// Whether a level stands in one stretch.
fn in_one_stretch(levels: &[Level], wanted: Level) -> bool {
    levels.chunk_by(|one, next| one == next).filter(|own| own[0] == wanted).count() == 1
}

fn is_placed(levels: &[Level]) -> bool {
    let extremes_end = levels.iter().rposition(|level| *level != Level::Mid).unwrap_or(0);
    let first_mid = levels.iter().position(|level| *level == Level::Mid);
    [Level::Low, Level::High].iter().all(|side| in_one_stretch(levels, *side))
        && first_mid.is_some_and(|mid| mid > extremes_end)
}

fn shape(values: &[f64], levels: &[Level]) -> Shape {
    if is_placed(levels) {
        return Shape::Placed;
    }
    let whole = [Level::Low, Level::High].iter().all(|side| in_one_stretch(levels, *side));
    if whole && !levels.contains(&Level::Mid) && clear(levels) >= 2 {
        return Shape::Step;
    }
    match trend(values) {
        Some(trend) if trend.p < TREND_P => Shape::Drift,
        _ => Shape::Scattered,
    }
}

impl Sequence {
    /// `low low high high mid`; empty where the runs are alike.
    pub fn levels_in_words(&self) -> String {
        self.levels.iter().map(|level| level.word()).collect::<Vec<_>>().join(" ")
    }

    /// The order for a sentence: `falls` or `rises` of runs that do so from each to the next, the
    /// levels of up to 8 runs, stretches of more (`4 low, 4 high, 2 mid`); empty where the runs are
    /// alike, or many and in no order.
    pub fn order_in_words(&self) -> String {
        let each = |holds: fn(f64, f64) -> bool| self.values.windows(2).all(|two| holds(two[0], two[1]));
        let one_way = self.values.len() > 2 && !matches!(self.shape, Shape::Flat | Shape::Step);
        match () {
            () if one_way && each(|one, next| next < one) => "falls".to_string(),
            () if one_way && each(|one, next| next > one) => "rises".to_string(),
            () if self.levels.len() <= IN_WORDS => self.levels_in_words(),
            () => {
                let stretches: Vec<String> = self
                    .levels
                    .chunk_by(|one, next| one == next)
                    .map(|own| format!("{} {}", own.len(), own[0].word()))
                    .collect();
                if stretches.len() <= STRETCHES { stretches.join(", ") } else { String::new() }
            }
        }
    }

    /// `CV 7.8 % (5.2–25)`.
    pub fn cv_in_words(&self) -> String {
        format!("CV {}", cv_words(self.cv, self.values.len()))
    }

    /// How often noise gives runs that are as clearly [`Shape::Placed`], a share; `None` of other
    /// shapes. The larger the smaller of the two stretches of extremes, the clearer.
    pub fn chance(&self) -> Option<f64> {
        (self.shape == Shape::Placed).then(|| noise_places(self.values.len(), clear(&self.levels)))
    }

    /// [`Sequence::chance`] in words, `1.0 %`, where it is small enough to name what hands out
    /// memory so.
    pub fn handed_out(&self) -> Option<String> {
        let chance = self.chance().filter(|chance| *chance <= CHANCE && clear(&self.levels) >= CLEAR)?;
        let least = 1.0 / DRAWS as f64;
        Some(if chance < least { format!("less than {}", percent(least)) } else { percent(chance) })
    }

    /// The share of slow memory that each run would have had, 0..1, were the slowest run wholly in
    /// slow memory and the fastest wholly in fast, passed through one after the other: `f = (1/B -
    /// 1/B_f) / (1/B_s - 1/B_f)`. An inversion, no proof: the ends are taken from the runs
    /// themselves.
    pub fn slow_shares(&self) -> Vec<f64> {
        slow_shares(&self.values)
    }

    /// The runs as percent of their mean, in order.
    pub fn percent_of_mean(&self) -> Vec<f64> {
        let mean = self.values.iter().sum::<f64>() / self.values.len() as f64;
        self.values.iter().map(|value| 100.0 * value / mean).collect()
    }
}

/// Runs of the smaller of the two stretches of extremes.
fn clear(levels: &[Level]) -> usize {
    let count = |wanted: Level| levels.iter().filter(|level| **level == wanted).count();
    count(Level::Low).min(count(Level::High))
}

/// The share of series of `runs` independent normal values that are [`Shape::Placed`] with at
/// least `clear` runs in each of the stretches of extremes: simulated, from a seed of its own.
fn noise_places(runs: usize, clear: usize) -> f64 {
    let rng = &mut fastrand::Rng::with_seed(31);
    let hit = |_: &usize| {
        let values: Vec<f64> = (0..runs.min(MAX_DRAWN)).map(|_| normal(rng)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let levels: Vec<Level> = values.iter().map(|value| level((value - low) / (high - low))).collect();
        is_placed(&levels) && self::clear(&levels) >= clear
    };
    (0..DRAWS).filter(hit).count() as f64 / DRAWS as f64
}

/// A coefficient of variation with its interval: `7.8 % (5.2–25)`.
pub fn cv_words(cv: f64, runs: usize) -> String {
    let bare = |share: f64| percent(share).trim_end_matches(" %").to_string();
    let ends = cv_interval(cv, runs);
    let ends = ends.map_or(String::new(), |ends| format!(" ({}–{})", bare(ends.low), bare(ends.high)));
    format!("{}{ends}", percent(cv))
}

/// The interval, at 95 %, of what a coefficient of variation with divisor n of this many runs comes
/// to in the long run: `cv sqrt(n / chi²)` of normal runs with n - 1 degrees of freedom; the mean
/// of runs that are 30 % apart or less adds little. `None` below two runs.
pub fn cv_interval(cv: f64, runs: usize) -> Option<Interval> {
    let freedom = runs.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let end = |above: f64| cv * (runs as f64 / chi_square_at(above, freedom)).sqrt();
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval { low: end(tail), high: end(1.0 - tail) }).filter(|ends| ends.high.is_finite())
}

/// The value that chi-square exceeds with this probability.
fn chi_square_at(above: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 10.0 * freedom + 20.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if chi_square_above(middle, freedom) > above { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The same of positive values.
pub fn slow_shares(values: &[f64]) -> Vec<f64> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    if high <= low {
        return vec![0.0; values.len()];
    }
    let share = |value: &f64| (1.0 / value - 1.0 / high) / (1.0 / low - 1.0 / high);
    values.iter().map(share).collect()
}

/// How far the pieces of a group lie apart, typically: the median over groups of (highest over
/// lowest, less 1); 0 where no group has two.
pub fn scatter_inside(groups: &[Vec<f64>]) -> f64 {
    let inside = |group: &Vec<f64>| {
        let group = finite(group);
        let low = group.iter().copied().fold(f64::INFINITY, f64::min);
        let high = group.iter().copied().fold(0.0, f64::max);
        (group.len() > 1 && low > 0.0).then(|| high / low - 1.0)
    };
    median(&groups.iter().filter_map(inside).collect::<Vec<_>>()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG: [f64; 5] = [92.0, 92.0, 111.0, 107.0, 98.0];

    #[test]
    fn the_published_sequence_is_recognised() {
        let found = sequence(&WRONG, 0.0).expect("five runs");
        assert_eq!(found.levels_in_words(), "low low high high mid");
        assert_eq!(found.shape, Shape::Placed);
        assert!((100.0 * found.cv - 7.77).abs() < 0.005 && found.apart > 0.2);
        let shares = found.slow_shares();
        let expected = [1.0, 1.0, 0.0, 0.18, 0.64];
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 0.006, "{shares:?}");
        }
        // With the larger footprint: low, high, mid, mid.
        assert_eq!(
            sequence(&[92.0, 111.0, 101.0, 102.0], 0.01).map(|found| found.shape),
            Some(Shape::Placed)
        );
    }

    #[test]
    fn after_the_move_all_are_alike() {
        let found = sequence(&[99.88, 99.88, 100.46, 99.88, 99.88], 0.0).expect("five runs");
        assert_eq!((found.shape, found.levels.len()), (Shape::Flat, 0));
        assert!((100.0 * found.cv - 0.23).abs() < 0.005);
        // Runs no further apart than their own pieces say nothing either.
        assert_eq!(sequence(&WRONG, 0.08).map(|found| found.shape), Some(Shape::Flat));
    }

    #[test]
    fn steps_drifts_and_scatter() {
        let shape = |values: &[f64]| sequence(values, 0.0).expect("values").shape;
        assert_eq!(shape(&[100.0, 101.0, 100.0, 90.0, 91.0, 90.0]), Shape::Step);
        assert_eq!(shape(&[100.0, 98.0, 96.5, 95.0, 93.0, 91.0, 90.0, 88.0]), Shape::Drift);
        assert_eq!(shape(&[100.0, 90.0, 99.0, 91.0, 95.0, 100.0, 90.0, 94.0]), Shape::Scattered);
        assert_eq!(sequence(&[100.0], 0.0), None);
        assert_eq!(sequence(&[f64::NAN, 0.0, -1.0, 5.0], 0.0), None);
    }

    /// The published order is named; noise of any kind and number of runs is hardly ever.
    #[test]
    fn noise_is_not_called_memory() {
        use crate::noise::Noise;
        let of = |values: &[f64]| sequence(values, 0.0).and_then(|found| found.handed_out());
        assert_eq!(of(&WRONG).as_deref(), Some("1.0 %"), "{:?}", of(&WRONG));
        // Three or four runs come in any order by chance.
        assert_eq!((of(&[92.0, 111.0, 98.0]), of(&[92.0, 111.0, 101.0, 102.0])), (None, None));
        let ten = [92.0, 91.3, 92.2, 92.0, 110.8, 111.0, 108.2, 106.5, 98.1, 97.8];
        assert_eq!(of(&ten).as_deref(), Some("less than 0.01 %"));
        let kinds = [
            Noise::Lognormal { cv: 0.05 },
            Noise::Student3 { scale: 0.03 },
            Noise::FloorExponential { share: 0.05 },
            Noise::CeilingExponential { share: 0.05 },
            Noise::TwoModes { cv: 0.01, ratio: 1.2, minority: 0.5 },
            Noise::ThreeModes { cv: 0.01, ratio: 1.1 },
        ];
        let rng = &mut fastrand::Rng::with_seed(5);
        for (kind, runs) in kinds.iter().flat_map(|kind| [3, 4, 5, 7, 10, 15].map(|runs| (kind, runs))) {
            const SERIES: usize = 2000;
            let named = (0..SERIES)
                .filter(|_| of(&(0..runs).map(|_| 100.0 * kind.draw(rng)).collect::<Vec<_>>()).is_some());
            let share = named.count() as f64 / SERIES as f64;
            assert!(share <= CHANCE, "{kind:?}, {runs} runs: {share}");
        }
    }

    #[test]
    fn an_order_in_words() {
        let words = |values: &[f64]| sequence(values, 0.0).expect("values").order_in_words();
        assert_eq!(words(&[100.0, 97.0, 94.0, 91.0, 88.0]), "falls");
        assert_eq!(words(&[88.0, 91.0, 94.0, 97.0, 100.0]), "rises");
        assert_eq!(words(&[92.0, 98.0, 111.0]), "rises");
        assert_eq!(words(&[98.0, 107.0, 111.0, 92.0, 92.0]), "mid high high low low");
        assert_eq!(words(&[100.0, 99.9, 80.1, 80.0]), "high high low low", "a step");
        assert_eq!(words(&[100.0, 100.5, 100.9]), "", "alike");
        let ten = [92.0, 91.3, 92.2, 92.0, 110.8, 111.0, 108.2, 106.5, 98.1, 97.8];
        assert_eq!(words(&ten), "4 low, 4 high, 2 mid");
        assert_eq!(words(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]), "");
    }

    /// `cv_interval` against chi-square quantiles of scipy 1.17.1, and against what it promises.
    #[test]
    fn a_coefficient_of_variation_has_an_interval() {
        let five = cv_interval(0.0777, 5).expect("five runs");
        assert!((five.low - 0.0777 * (5.0_f64 / 11.143_286_782).sqrt()).abs() < 1e-8, "{five:?}");
        assert!((five.high - 0.0777 * (5.0_f64 / 0.484_418_557).sqrt()).abs() < 1e-7, "{five:?}");
        assert_eq!(cv_interval(0.1, 1), None);
        let words = sequence(&WRONG, 0.0).expect("five runs").cv_in_words();
        assert_eq!(words, "CV 7.8 % (5.2–25)");
        let rng = &mut fastrand::Rng::with_seed(8);
        for runs in [3, 5, 10] {
            let holds = |_: &i32| {
                let values: Vec<f64> = (0..runs).map(|_| 100.0 * (1.0 + 0.05 * normal(rng))).collect();
                let cv = crate::order::coefficient_of_variation(&values).expect("values");
                cv_interval(cv, runs).expect("runs").contains(0.05)
            };
            let held = (0..1000).filter(holds).count();
            assert!((930..=970).contains(&held), "{held} of 1000 with {runs} runs");
        }
    }

    #[test]
    fn pieces_scatter_inside() {
        assert_eq!(scatter_inside(&[vec![1.0], vec![]]), 0.0);
        let groups = [vec![100.0, 101.0], vec![50.0, 51.0, 50.5], vec![10.0, 10.5]];
        assert!((scatter_inside(&groups) - 0.02).abs() < 1e-9);
    }
}
