//! Runs of one thing, one after the other: not only how far they lie apart, but in which order they
//! came.
//!
//! Where a machine has memory of two speeds, what a run gets is settled when its memory is
//! allotted: after a boot the first runs get one kind, later ones the other, then mixtures. The
//! order of the runs shows that where their spread does not.

use super::drift::trend;
use super::order::{finite, median};

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
            Shape::Placed => {
                "both extremes, then what lies between: as memory of two speeds is allotted after a boot"
            }
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
    let levels: Vec<Level> = match alike {
        true => Vec::new(),
        false => values.iter().map(|value| level((value - low) / (high - low))).collect(),
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

fn shape(values: &[f64], levels: &[Level]) -> Shape {
    let blocks = |wanted: Level| {
        let begins =
            (0..levels.len()).filter(|&at| levels[at] == wanted && (at == 0 || levels[at - 1] != wanted));
        begins.count()
    };
    let extremes_end = levels.iter().rposition(|level| *level != Level::Mid).unwrap_or(0);
    let first_mid = levels.iter().position(|level| *level == Level::Mid);
    let in_one_stretch = blocks(Level::Low) == 1 && blocks(Level::High) == 1;
    let sides = [Level::Low, Level::High].map(|side| levels.iter().filter(|level| **level == side).count());
    if in_one_stretch && first_mid.is_some_and(|mid| mid > extremes_end) {
        return Shape::Placed;
    }
    if in_one_stretch && first_mid.is_none() && sides.iter().all(|count| *count >= 2) {
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

    #[test]
    fn pieces_scatter_inside() {
        assert_eq!(scatter_inside(&[vec![1.0], vec![]]), 0.0);
        let groups = [vec![100.0, 101.0], vec![50.0, 51.0, 50.5], vec![10.0, 10.5]];
        assert!((scatter_inside(&groups) - 0.02).abs() < 1e-9);
    }
}
