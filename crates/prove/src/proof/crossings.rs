//! Does the interval of the CPU% at which two hosts' curves cross contain the truth? On pairs of
//! hosts that were made to cross at a known place.

use fastrand::Rng;

use super::{Rate, sums};
use stats::noise::normal;
use stats::smt::{Curve, Pass, Point, crossing};

/// How often each host is measured, and what its noise belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    pub passes: usize,
    /// Share of the variance that all levels of a pass have in common, 0..1.
    pub common: f64,
}

/// What many pairs of hosts gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Crossed {
    /// Pairs whose crossing is found with an interval.
    pub given: Rate,
    /// Of all intervals that are given, also of crossings that are none, those that contain the
    /// truth.
    pub held: Rate,
    /// Half-widths of these, 0..1, summed up.
    pub widths: f64,
}

sums!(Crossed: given, held, widths);

const LEVELS: u32 = 7;

/// Two threads of a core, or two cores.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Work per second of both over that of one: 1 to 2.
    s: f64,
    /// Work per second of one alone.
    one: f64,
}

impl Machine {
    /// At this share of both CPUs, busy independently of each other.
    fn work(self, share: f64) -> f64 {
        self.one * (2.0 * share - (2.0 - self.s) * share * share)
    }

    fn curve(self, of: Passes, noise: f64, rng: &mut Rng) -> Option<Curve> {
        let (own, common) = (noise * (1.0 - of.common).sqrt(), noise * of.common.sqrt());
        let passes: Vec<f64> = (0..of.passes).map(|_| common * normal(rng)).collect();
        let mut level = |of: u32| {
            let duty = f64::from(of) / f64::from(LEVELS);
            let mut pass = |common: &f64| {
                // The time at work differs from pass to pass by 1 %.
                let share = (duty * (0.01 * normal(rng)).exp()).min(1.0);
                Pass { share, performance: self.work(share) * (common + own * normal(rng)).exp() }
            };
            Point::of(passes.iter().map(&mut pass).collect())
        };
        Curve::of((1..=LEVELS).filter_map(&mut level).collect())
    }
}

/// Pairs of a host with SMT and one that bends less, or not at all: ahead at light load, the
/// first is overtaken between 30 and 90 % CPU.
pub fn crossed(of: Passes, trials: usize, seed: u64) -> Crossed {
    let mut rng = Rng::with_seed(seed);
    let mut found = Crossed::default();
    for _ in 0..trials {
        let truth = 0.3 + 0.6 * rng.f64();
        let s = 1.0 + 0.6 * rng.f64();
        let first = Machine { s, one: 1.0 };
        let second = Machine { s: s + (2.0 - s) * (0.5 + 0.5 * rng.f64()), one: 1.0 };
        let second = Machine { one: first.work(truth) / second.work(truth), ..second };
        let noise = 0.005 + 0.045 * rng.f64();
        let curves = [first, second].map(|machine| machine.curve(of, noise, &mut rng));
        let [Some(a), Some(b)] = &curves else { continue };
        let all = crossing(a, b).map_or(Vec::new(), |crossing| crossing.at);
        found.given.count(all.iter().any(|cross| cross.interval.is_some()));
        for cross in all {
            let Some(interval) = cross.interval else { continue };
            found.held.count(cross.second_ahead && interval.contains(truth));
            found.widths += interval.half_width();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::CROSSING_COVERAGE_LEAST;
    use super::*;

    #[test]
    fn intervals_hold_where_two_machines_cross() {
        let each = [5, 9].map(|passes| {
            let each = [0.0, 0.5].map(|common| crossed(Passes { passes, common }, 25, passes as u64));
            each[0].and(each[1])
        });
        let all = each[0].and(each[1]);
        assert!(all.given.share() > 0.85, "{all:?}");
        assert!(all.held.share() >= CROSSING_COVERAGE_LEAST, "{all:?}");
        // More passes, a narrower interval.
        let width = |of: Crossed| of.widths / of.held.of as f64;
        assert!(width(each[1]) < width(each[0]), "{each:?}");
    }

    #[test]
    fn the_made_machines_cross_where_they_are_said_to() {
        let (first, second) = (Machine { s: 1.2, one: 1.0 }, Machine { s: 2.0, one: 0.8 });
        // 2 u - 0.8 u² = 1.6 u at u = 1/2.
        assert!((first.work(0.5) - second.work(0.5)).abs() < 1e-12);
        assert!(first.work(0.4) > second.work(0.4) && first.work(0.6) < second.work(0.6));
    }
}
