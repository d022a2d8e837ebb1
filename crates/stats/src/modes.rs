//! Several values instead of one: when a series is called bimodal, and what the modes are.
//!
//! A split of unimodal data into two looks separated too (Ashman's D is 2.65-2.8 on normal noise),
//! and a floor with an exponential tail, as timings have it, satisfies most published rules in up
//! to 40 % of cases. So six conditions must hold together, on the logarithms: separation, mixture
//! against one Gaussian, mixture against one skewed distribution, ratio, size of each side, and a
//! valley between them.

use super::mixture::{Split, best_split, bic_of_exponential, bic_of_mixture, bic_of_one, moments, valley};
use super::order::{finite, median, median_of_sorted};
use model::Better;

/// Below this number nothing is said about modes.
pub const MIN_FOR_MODES: usize = 14;
/// Below this number modes are suspected only, unless a cause goes with them.
pub const SURE_OF_MODES: usize = 40;
/// Where a schedule goes on to when modes are suspected: there a mode of 5 % apart is found in 3 of
/// 4 cases.
pub const CONFIRMING_MODES: usize = 56;
/// Ashman's D between neighbouring modes: `sqrt 2 |m1 - m2| / sqrt(s1² + s2²)` (Ashman, Bird & Zepf
/// 1994).
pub const MIN_SEPARATION: f64 = 3.0;
/// Ratio of the medians of neighbouring modes.
pub const MIN_RATIO: f64 = 1.03;
/// Share of the values in each mode, and at least three of them.
pub const MIN_SHARE: f64 = 0.1;
/// Density in the valley as a share of the lower peak beside it.
pub const DEEPEST_VALLEY: f64 = 0.3;

/// By how much BIC must favour the mixture: 10 is "very strong" (Kass & Raftery 1995), 6 "strong"
/// is all that few values can give.
fn least_bic_gain(n: usize) -> f64 {
    if n < 28 { 6.0 } else { 10.0 }
}

/// How severe the rule is where that depends on what the values are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeCriteria {
    /// Below this number nothing is said, and below this one modes are suspected only.
    pub min_values: usize,
    pub certain_from: usize,
    /// Ratio of the medians of neighbouring modes.
    pub ratio: f64,
    /// Share of the values in each mode, and at least this many of them.
    pub share: f64,
    pub min_per_mode: usize,
    /// Whether three modes are looked for, which takes long.
    pub allow_three: bool,
}

/// Series of processes or windows.
pub const SERIES: ModeCriteria = ModeCriteria {
    min_values: MIN_FOR_MODES,
    certain_from: SURE_OF_MODES,
    ratio: MIN_RATIO,
    share: MIN_SHARE,
    min_per_mode: 3,
    allow_three: true,
};

/// One of the values that a series has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    pub median: f64,
    /// Of the values, 0..1.
    pub share: f64,
}

/// The modes of a series, lowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    pub modes: Vec<Mode>,
    /// Highest median over lowest.
    pub ratio: f64,
    /// The mode of each finite value, in the order in which the values came.
    pub membership: Vec<usize>,
}

/// What the rule says about a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Modality {
    /// Too few values, or values that have no logarithm.
    Unknown,
    One,
    /// The rule holds, but fewer than [`SURE_OF_MODES`] values satisfy it too often by chance.
    Suspected(Modes),
    Several(Modes),
}

impl Modality {
    pub fn modes(&self) -> Option<&Modes> {
        match self {
            Modality::Suspected(modes) | Modality::Several(modes) => Some(modes),
            Modality::Unknown | Modality::One => None,
        }
    }
}

/// Longer series are judged by this many of their quantiles, because the split in three is
/// quadratic.
const MAX_VALUES: usize = 1000;

/// The rule. Three modes are reported only where they beat two by as much as two must beat one.
pub fn modality(values: &[f64]) -> Modality {
    modality_by(values, &SERIES)
}

/// The same rule, as severe as this.
pub fn modality_by(values: &[f64], criteria: &ModeCriteria) -> Modality {
    let values = finite(values);
    if values.len() < criteria.min_values || values.iter().any(|&value| value <= 0.0) {
        return Modality::Unknown;
    }
    let mut sorted: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.len() > MAX_VALUES {
        sorted = (0..MAX_VALUES).map(|i| sorted[(2 * i + 1) * sorted.len() / (2 * MAX_VALUES)]).collect();
    }
    let one = bic_of_one(&sorted).min(bic_of_exponential(&sorted) + least_bic_gain(sorted.len()));
    let two = best_split(&sorted, 2).and_then(|split| stands(&sorted, split, one, criteria));
    let against_three = two.as_ref().map_or(one, |(_, bic)| *bic);
    let split_in_three = criteria.allow_three.then(|| best_split(&sorted, 3)).flatten();
    let three = split_in_three.and_then(|split| stands(&sorted, split, against_three, criteria));
    let Some((split, _)) = three.or(two) else { return Modality::One };
    let Some(modes) = describe(&values, &sorted, &split) else { return Modality::One };
    if values.len() < criteria.certain_from { Modality::Suspected(modes) } else { Modality::Several(modes) }
}

/// The split and its BIC, where every condition holds for it; `rival` is the BIC of the best
/// simpler story.
fn stands(sorted: &[f64], split: Split, rival: f64, criteria: &ModeCriteria) -> Option<(Split, f64)> {
    let n = sorted.len();
    let groups = split.groups(sorted);
    let least = ((criteria.share * n as f64).ceil() as usize).max(criteria.min_per_mode);
    if groups.iter().any(|group| group.len() < least) {
        return None;
    }
    let apart = groups.windows(2).all(|pair| {
        let ((low, low_var), (high, high_var)) = (moments(pair[0]), moments(pair[1]));
        let separation = std::f64::consts::SQRT_2 * (high - low) / (low_var + high_var).sqrt();
        let ratio = median_of_sorted(pair[1]).unwrap_or(0.0) - median_of_sorted(pair[0]).unwrap_or(0.0);
        separation > MIN_SEPARATION
            && ratio > criteria.ratio.ln()
            && valley(pair[0], pair[1]) < DEEPEST_VALLEY
    });
    // The fit is the dearest condition, so it comes last.
    if !apart {
        return None;
    }
    let bic = bic_of_mixture(sorted, &split);
    (rival - bic > least_bic_gain(n)).then_some((split, bic))
}

fn describe(values: &[f64], sorted: &[f64], split: &Split) -> Option<Modes> {
    let groups = split.groups(sorted);
    // A value belongs to the mode whose border, half-way between neighbouring groups, it has
    // passed.
    let borders: Vec<f64> =
        groups.windows(2).filter_map(|pair| Some((pair[0].last()? + pair[1].first()?) / 2.0)).collect();
    let mode_of = |value: &f64| borders.partition_point(|border| *border <= value.ln());
    let membership: Vec<usize> = values.iter().map(mode_of).collect();
    let mode = |mode: usize| {
        let own: Vec<f64> = values.iter().copied().filter(|value| mode_of(value) == mode).collect();
        Some(Mode { median: median(&own)?, share: own.len() as f64 / values.len() as f64 })
    };
    let modes = (0..groups.len()).map(mode).collect::<Option<Vec<Mode>>>()?;
    let ratio = modes.last()?.median / modes.first()?.median;
    Some(Modes { modes, ratio, membership })
}

/// Modes that appear again and again *inside* processes: the rule on each process's own windows,
/// and the process with the most windows speaks for all where at least half of them (and three)
/// have modes. Windows of different processes are never pooled: a value that each process has for
/// itself is not a mode.
pub fn inside_processes(processes: &[Vec<f64>]) -> Option<Modes> {
    let judged: Vec<Modality> =
        processes.iter().map(|windows| modality(windows)).filter(|m| *m != Modality::Unknown).collect();
    let found: Vec<Modes> = judged.iter().filter_map(|modality| modality.modes().cloned()).collect();
    if found.len() < 3 || 2 * found.len() < judged.len() {
        return None;
    }
    found.into_iter().max_by_key(|modes| modes.membership.len())
}

/// Windows of tasks that the scheduler placed are of two kinds where both tasks were now on one CPU
/// and now on two: figures far apart, with next to nothing between them.
const LEFT_FREE: ModeCriteria = ModeCriteria {
    min_values: MIN_FOR_MODES,
    certain_from: MIN_FOR_MODES,
    ratio: 1.5,
    share: 0.1,
    min_per_mode: 3,
    allow_three: false,
};
/// Ashman's D that such windows must have: a few processes, each with a level of its own, look
/// separated by chance up to about half of that.
const LEFT_FREE_SEPARATION: f64 = 20.0;

/// What disturbs a series makes some of it slow and none of it fast: the slow kind must have this
/// share of the windows and be in two processes at least, and so must the fast kind unless it is so
/// many times as fast.
const LEFT_FREE_SLOW: f64 = 0.25;
const LEFT_FREE_ONCE: f64 = 10.0;

/// Two values among the windows of tasks left to the scheduler, all processes together: unlike
/// [`inside_processes`] it finds a placement that a process kept, and needs no process with many
/// windows. Severe enough that one kind of window with any spread, and a level for each process,
/// is called two in less than 1 of 100 series.
pub fn left_free(processes: &[Vec<f64>], better: Better) -> Option<Modes> {
    let windows: Vec<f64> = processes.iter().flatten().copied().collect();
    // A single window each is a series of processes, for which the rule above is meant.
    if windows.len() < 2 * processes.len() || windows.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let Modality::Several(found) = modality_by(&windows, &LEFT_FREE) else { return None };
    let of = |mode: usize| -> Vec<f64> {
        let own = windows.iter().zip(&found.membership).filter(|(_, own)| **own == mode);
        own.map(|(value, _)| value.ln()).collect()
    };
    let ((low, low_var), (high, high_var)) = (moments(&of(0)), moments(&of(1)));
    let separation = std::f64::consts::SQRT_2 * (high - low) / (low_var + high_var).sqrt();
    let mut rest = found.membership.as_slice();
    let mut in_processes = [0; 2];
    for windows in processes {
        let (own, others) = rest.split_at(windows.len().min(rest.len()));
        rest = others;
        for (mode, count) in in_processes.iter_mut().enumerate() {
            *count += usize::from(own.contains(&mode));
        }
    }
    let fast = match better {
        Better::Higher => 1,
        Better::Lower => 0,
        Better::Neither => return None,
    };
    let slow = 1 - fast;
    let again = in_processes[slow] > 1 && (in_processes[fast] > 1 || found.ratio > LEFT_FREE_ONCE);
    let enough = found.modes[slow].share >= LEFT_FREE_SLOW;
    (separation > LEFT_FREE_SEPARATION && again && enough).then_some(found)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::{Inside, Noise, nested};
    use super::*;

    fn draw(noise: Noise, n: usize, seed: u64) -> Vec<f64> {
        noise.series(n, &mut Rng::with_seed(seed))
    }

    #[test]
    fn two_modes_are_described() {
        let values = draw(Noise::TwoModes { cv: 0.01, ratio: 1.21, minority: 0.3 }, 60, 11);
        let Modality::Several(found) = modality(&values) else { panic!("{:?}", modality(&values)) };
        assert_eq!(found.modes.len(), 2);
        assert!((found.ratio - 1.21).abs() < 0.01 && (found.modes[1].share - 0.3).abs() < 0.15, "{found:?}");
        let upper: Vec<usize> = values.iter().map(|value| usize::from(*value > 1.1)).collect();
        assert_eq!(found.membership, upper);
        assert!(matches!(modality(&values[..20]), Modality::Suspected(_)));
        assert_eq!(modality(&values[..13]), Modality::Unknown);
    }

    #[test]
    fn three_modes_are_described() {
        let values = draw(Noise::ThreeModes { cv: 0.01, ratio: 1.1 }, 48, 12);
        let found = modality(&values);
        let medians: Vec<f64> = found.modes().expect("modes").modes.iter().map(|mode| mode.median).collect();
        assert_eq!(medians.len(), 3);
        assert!(
            medians.iter().zip([1.0, 1.1, 1.21]).all(|(got, want)| (got - want).abs() < 0.01),
            "{medians:?}"
        );
    }

    #[test]
    fn exact_repeats_and_odd_values() {
        let low_high: Vec<f64> = (0..40).map(|i| if i % 4 < 2 { 100.0 } else { 130.0 }).collect();
        let Modality::Several(found) = modality(&low_high) else { panic!("two exact values") };
        assert_eq!((found.ratio, found.modes[0].share), (1.3, 0.5));
        assert_eq!(modality(&[3.0; 50]), Modality::One);
        assert_eq!(modality(&[0.0; 50]), Modality::Unknown);
        assert_eq!(modality(&[-1.0; 50]), Modality::Unknown);
        assert_eq!(modality(&[f64::NAN; 50]), Modality::Unknown);
        assert_eq!(modality(&[]), Modality::Unknown);
        let extreme: Vec<f64> = (0..50).map(|i| if i % 2 == 0 { 1e-300 } else { 1e300 }).collect();
        assert!(modality(&extreme).modes().is_some());
    }

    #[test]
    fn long_series_are_thinned() {
        let values = draw(Noise::TwoModes { cv: 0.01, ratio: 1.1, minority: 0.4 }, 20_000, 13);
        let Modality::Several(found) = modality(&values) else { panic!("two modes") };
        assert_eq!(found.membership.len(), 20_000);
        assert!((found.ratio - 1.1).abs() < 1e-3 && (found.modes[1].share - 0.4).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn windows_of_two_placements_are_two_values() {
        // As measured: 25 windows near 16.1k/s and 5 of one process, or of several, at 490k/s.
        let rng = &mut Rng::with_seed(7);
        let mut window = |median: f64| median * Noise::Lognormal { cv: 0.05 }.draw(rng);
        let kept: Vec<Vec<f64>> = (0..6)
            .map(|process| (0..5).map(|_| window(if process == 2 { 490e3 } else { 16.1e3 })).collect())
            .collect();
        let mixed: Vec<Vec<f64>> =
            (0..6).map(|_| (0..5).map(|at| window(if at == 3 { 490e3 } else { 16.1e3 })).collect()).collect();
        for (windows, share) in [(kept, 1.0 / 6.0), (mixed, 0.2)] {
            assert_eq!(
                modality(&windows.iter().filter_map(|own| median(own)).collect::<Vec<_>>()),
                Modality::Unknown
            );
            assert_eq!(inside_processes(&windows), None);
            let found = left_free(&windows, Better::Higher).expect("two values");
            assert!((28.0..33.0).contains(&found.ratio), "{found:?}");
            assert!((found.modes[1].share - share).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(left_free(&[vec![1.0; 5], vec![1.0; 5]], Better::Higher), None, "too few");
        assert_eq!(
            left_free(&std::array::from_fn::<_, 40, _>(|_| vec![1.0]), Better::Higher),
            None,
            "processes, no windows"
        );
    }

    #[test]
    fn one_kind_of_window_is_hardly_ever_called_two_values() {
        const SERIES: u64 = 300;
        // How much of the spread a process has for itself, and how many there are.
        const SHAPES: [(f64, usize); 7] =
            [(0.0, 5), (0.0, 12), (0.5, 7), (0.9, 5), (0.9, 7), (0.98, 5), (0.98, 12)];
        use Better::{Higher, Lower};
        let noises = [
            (Noise::Lognormal { cv: 0.02 }, Lower),
            (Noise::Lognormal { cv: 0.2 }, Lower),
            (Noise::Lognormal { cv: 0.6 }, Lower),
            (Noise::FloorExponential { share: 0.1 }, Lower),
            (Noise::FloorExponential { share: 1.0 }, Lower),
            (Noise::CeilingExponential { share: 2.0 }, Higher),
            (Noise::Student3 { scale: 0.1 }, Lower),
            (Noise::SlowTail { cv: 0.05, slow: 2.0 }, Lower),
            (Noise::SlowTail { cv: 0.05, slow: 20.0 }, Lower),
        ];
        for (noise, better) in noises {
            let mut called = 0;
            for (icc, processes) in SHAPES {
                for seed in 0..SERIES {
                    let rng = &mut Rng::with_seed(seed);
                    let windows = nested(noise, Inside::Shared { icc }, processes, 5, rng);
                    called += usize::from(left_free(&windows, better).is_some());
                }
            }
            let all = SERIES as usize * SHAPES.len();
            assert!(100 * called <= all, "{noise:?}: {called} of {all}");
        }
    }

    #[test]
    fn modes_inside_processes() {
        let switching: Vec<Vec<f64>> = (0..6)
            .map(|seed| draw(Noise::TwoModes { cv: 0.01, ratio: 1.2, minority: 0.5 }, 30, seed))
            .collect();
        let found = inside_processes(&switching).expect("modes in all");
        assert!((found.ratio - 1.2).abs() < 0.02);
        let fixed: Vec<Vec<f64>> = (0..6)
            .map(|seed| {
                let level = if seed % 2 == 0 { 1.0 } else { 1.3 };
                draw(Noise::Lognormal { cv: 0.01 }, 30, seed).iter().map(|value| value * level).collect()
            })
            .collect();
        assert_eq!(inside_processes(&fixed), None);
        assert_eq!(inside_processes(&[]), None);
    }
}
