//! Two runs, one after the other: they differ by more than the spread of their processes tells, because a run has a level
//! of its own. What its host did in that minute (clock, neighbours, placement of its memory) is shared by all of its
//! processes and does not average out over them.
//!
//! A run shows that level only once, so its spread must be inferred. What moves a machine has no time scale of its own: it
//! moves over minutes as much as from one process to the next (flicker noise: its Allan deviation is flat, and averaging
//! over longer times does not help). So the level of a run is taken to move as much as one process of it does. Where the
//! measured core clock of one and the same machine differs between the runs, the whole difference counts once more.
//! METHODOLOGY.md has the false alarms with and without this, simulated and measured.

use super::compare::Ratio;
use super::order::{Interval, finite, median};
use super::tails::{normal_quantile, t_two_sided};

/// What stands between two arms beside chance inside them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// Runs in each arm: their levels do average out.
    pub runs: [usize; 2],
    /// ln of the ratio of the core clocks, where that is a circumstance (one machine, no setting that explains it); 0 else.
    pub clock: f64,
}

impl Between {
    /// One run against another, and nothing known of clocks.
    pub const ONE_RUN_EACH: Between = Between { runs: [1, 1], clock: 0.0 };
}

/// A ratio with the levels of its runs in its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shifted {
    pub ratio: Ratio,
    /// Standard error of the ln of the ratio that levels add.
    pub level: f64,
    /// Two-sided p of a ratio of 1; 1 where there is no interval.
    pub p: f64,
}

/// Variance that the median of normal values has over that of their mean.
const OF_A_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// Widens the interval of a ratio of two arms by what the levels of their runs add. Without an interval or a spread
/// nothing is known, and nothing changed.
pub fn shifted(ratio: Ratio, spreads: [Option<Spread>; 2], between: Between, confidence: f64) -> Shifted {
    let ([Some(a), Some(b)], Some(interval), Some(z)) =
        (spreads, ratio.interval, normal_quantile(0.5 + confidence / 2.0))
    else {
        return Shifted { ratio, level: 0.0, p: 1.0 };
    };
    let runs = between.runs.map(|runs| runs.max(1) as f64);
    let level = (a.variance / runs[0] + b.variance / runs[1] + between.clock.powi(2)).sqrt();
    let centre = ratio.ratio.ln();
    let wider = |half: f64| half.max(0.0).hypot(z * level);
    let interval = Interval {
        low: (centre - wider(centre - interval.low.ln())).exp(),
        high: (centre + wider(interval.high.ln() - centre)).exp(),
    };
    let parts = [(a, runs[0]), (b, runs[1])]
        .map(|(spread, runs)| (spread.variance * (1.0 / runs + OF_A_MEDIAN / spread.n), spread.n - 1.0));
    let of_spread: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let total = of_spread + between.clock.powi(2);
    // Welch and Satterthwaite's degrees of freedom.
    let freedom =
        total.powi(2) / parts.iter().map(|(variance, freedom)| variance.powi(2) / freedom).sum::<f64>();
    let p = match total > 0.0 {
        true if freedom.is_finite() => t_two_sided(centre / total.sqrt(), freedom),
        true => super::tails::normal_two_sided(centre / total.sqrt()),
        false if centre == 0.0 => 1.0,
        false => 0.0,
    };
    Shifted { ratio: Ratio { interval: Some(interval), ..ratio }, level, p }
}

/// How far the processes of an arm are apart, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Processes.
    n: f64,
    variance: f64,
}

impl Spread {
    /// Of single values, by their mean distance from the median: a single slow process counts as one, not as its square.
    /// Those that are not finite and positive are left out. `None` below two.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let logs = finite(values).into_iter().filter(|value| *value > 0.0).map(f64::ln);
        let logs: Vec<f64> = logs.collect();
        let (n, centre) = (logs.len() as f64, median(&logs)?);
        let distance = logs.iter().map(|log| (log - centre).abs()).sum::<f64>() / (n - 1.0);
        // Of normal values the mean distance is sqrt(2 / pi) standard deviations.
        (n > 1.0).then(|| Spread { n, variance: distance.powi(2) * std::f64::consts::FRAC_PI_2 })
    }

    /// As wide as the interval of the median of `n` normal values is. `None` where there is no such interval.
    pub fn of_interval(interval: Interval, n: usize, confidence: f64) -> Option<Spread> {
        let half = (interval.high / interval.low).ln() / 2.0 / normal_quantile(0.5 + confidence / 2.0)?;
        let n = n as f64;
        let variance = half.powi(2) * n / OF_A_MEDIAN;
        (n > 1.0 && variance.is_finite()).then_some(Spread { n, variance })
    }
}

/// How many more runs an arm would bring an interval of this half-width (in logarithms) within `edge` (the same).
/// `None` where that is beyond counting.
pub fn more_runs(half: f64, edge: f64, runs: usize) -> Option<usize> {
    let needed = (runs.max(1) as f64 * (half / edge).powi(2)).ceil();
    (needed.is_finite() && needed < 1e6).then(|| (needed as usize).saturating_sub(runs).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::Resampling;
    use super::super::compare::{LEAST_MARGIN, Outcome, conclude, unpaired_ratio};
    use super::*;

    fn arms(spread: f64, by: f64) -> (Vec<f64>, Vec<f64>) {
        let of = |level: f64| (0..8).map(|i| level * (1.0 + spread * (f64::from(i) - 3.5))).collect();
        (of(1.0), of(by))
    }

    fn found(spread: f64, by: f64, between: Between) -> Shifted {
        let (a, b) = arms(spread, by);
        let plan = Resampling { resamples: 99, ..Resampling::new(0.95, 1) };
        shifted(
            unpaired_ratio(&a, &b, plan).expect("values"),
            [Spread::of(&a), Spread::of(&b)],
            between,
            0.95,
        )
    }

    #[test]
    fn a_level_is_as_wide_as_one_process() {
        // Eight values 1 % apart: distances of 16 % together, over seven, times sqrt(pi / 2), from two arms.
        let one = found(0.01, 1.0, Between::ONE_RUN_EACH);
        assert!((one.level - 0.16 / 7.0 * 1.2533 * std::f64::consts::SQRT_2).abs() < 5e-4, "{one:?}");
        let half = one.ratio.interval.expect("eight each").high.ln();
        assert!(half > 1.96 * one.level && half < 2.0 * 1.96 * one.level, "{one:?}");
        assert!((one.p - 1.0).abs() < 1e-9);
        // Runs average out, clocks do not.
        let four = found(0.01, 1.0, Between { runs: [4, 4], clock: 0.0 });
        assert!((four.level - one.level / 2.0).abs() < 1e-12);
        let clock = found(0.0, 1.0, Between { runs: [1, 1], clock: -0.1 });
        assert!((clock.level - 0.1).abs() < 1e-12 && clock.p == 1.0);
    }

    #[test]
    fn quiet_machines_still_conclude() {
        let outcome = |spread, by| conclude(&found(spread, by, Between::ONE_RUN_EACH).ratio, LEAST_MARGIN);
        assert_eq!(outcome(0.001, 1.0), Outcome::Equivalent);
        assert_eq!(outcome(0.001, 1.05), Outcome::Different);
        assert!(matches!(outcome(0.02, 1.05), Outcome::Inconclusive { .. }));
        // Ranks of eight and eight cannot say it this surely.
        assert!(found(0.001, 1.5, Between::ONE_RUN_EACH).p < 1e-8);
        assert_eq!(found(0.0, 1.0, Between::ONE_RUN_EACH).p, 1.0);
        assert_eq!(found(0.0, 1.1, Between::ONE_RUN_EACH).p, 0.0);
    }

    #[test]
    fn too_little_is_known() {
        let ratio = unpaired_ratio(&[1.0, 1.1], &[1.0, 1.1], Resampling::new(0.95, 1)).expect("values");
        let shifted = shifted(ratio, [Spread::of(&[1.0, 1.1]); 2], Between::ONE_RUN_EACH, 0.95);
        assert_eq!((shifted.ratio, shifted.p), (ratio, 1.0));
        assert_eq!(
            (more_runs(0.2, 0.1, 1), more_runs(0.01, 0.1, 1), more_runs(0.2, 0.1, 2)),
            (Some(3), Some(1), Some(6))
        );
        assert_eq!((more_runs(f64::INFINITY, 0.1, 1), more_runs(0.2, 0.0, 1)), (None, None));
    }
}
