//! What does visiting a figure until its limit is decided cost, and what does it give?

use fastrand::Rng;

use super::{Rate, Shape};
use stats::analysis::CONFIDENCE;
use stats::estimate::{Estimate, estimate};
use stats::guarded::GUARDED;
use stats::spend::firm;

/// What became of figures that have an upper limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decided {
    pub met: Rate,
    pub missed: Rate,
    pub undecided: Rate,
    /// Mean number of processes at the end.
    pub mean_n: f64,
}

/// When measuring a figure stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After the fewest passes that give an interval.
    AtOnce,
    /// Once its interval is on one side: the rule that is *not* used, for contrast.
    Decided,
    /// Once an interval twice as wide is on one side.
    Firm,
}

/// Figures beyond their limit by a share of it, checked after every pass, from the fewest that have
/// an interval to `most`. What counts is the usual interval at the last check.
pub fn at_limit(shape: Shape, beyond: f64, most: usize, stop: Stop, trials: usize, seed: u64) -> Decided {
    let (mut rng, mut found) = (Rng::with_seed(seed), Decided::default());
    let limit = shape.true_median() / (1.0 + beyond);
    for _ in 0..trials {
        // What is counted is the median of each process.
        let values = shape.process_medians(most, &mut rng);
        let processes: Vec<Vec<f64>> = values.iter().map(|value| vec![*value]).collect();
        let looks = (*GUARDED.start()..=most).filter_map(|n| estimate(&processes[..n], CONFIDENCE));
        let mut last = None;
        for look in looks {
            let is_over = is_over(&look, limit, stop);
            last = Some(look);
            if is_over {
                break;
            }
        }
        if let Some((look, ends)) = last.and_then(|look| Some((look.n, ends(&look)?))) {
            let (met, missed) = sides(ends, limit);
            found.met.count(met);
            found.missed.count(missed);
            found.undecided.count(!met && !missed);
            found.mean_n += look as f64 / trials as f64;
        }
    }
    found
}

fn ends(look: &Estimate) -> Option<[f64; 2]> {
    look.interval.map(|interval| [interval.low, interval.high])
}

/// Whether an interval meets the limit, and whether it misses it.
fn sides([low, high]: [f64; 2], limit: f64) -> (bool, bool) {
    (high <= limit, low > limit)
}

fn is_over(look: &Estimate, limit: f64, stop: Stop) -> bool {
    let Some(ends) = ends(look) else { return false };
    let (met, missed) = match stop {
        Stop::AtOnce => return true,
        Stop::Decided => sides(ends, limit),
        Stop::Firm => sides(firm(look.median, ends), limit),
    };
    met || missed
}

#[cfg(test)]
mod tests {
    use super::super::LIMIT_WRONG_MOST;
    use super::*;
    use stats::noise::{Inside, Noise};

    #[test]
    fn visits_until_a_limit_is_decided_firmly_hardly_ever_decide_it_wrongly() {
        let noises = [
            Noise::Lognormal { cv: 0.03 },
            Noise::FloorExponential { share: 0.03 },
            Noise::Student3 { scale: 0.02 },
        ];
        let inside = Inside::Shared { icc: 0.9 };
        let shapes = noises.map(|noise| Shape { noise, inside, processes: 1, windows: 5 });
        for shape in shapes {
            let of = |beyond, stop| at_limit(shape, beyond, 30, stop, 1500, 25);
            let at = of(0.0, Stop::Firm);
            // Five standard errors of the simulation are added: bounds are held by `prove`.
            let bound = LIMIT_WRONG_MOST + 5.0 * (LIMIT_WRONG_MOST / 1500.0).sqrt();
            assert!(at.met.share() < bound && at.missed.share() < bound, "{shape:?}: {at:?}");
            let contrast = of(0.0, Stop::Decided);
            assert!(contrast.missed.share() > bound, "the bound tells nothing: {shape:?}: {contrast:?}");
            let (few, more) = (of(0.03, Stop::AtOnce), of(0.03, Stop::Firm));
            assert!(more.missed.share() > few.missed.share(), "{shape:?}: {few:?} {more:?}");
            assert!(more.mean_n < 30.0, "it never stops: {shape:?} {more:?}");
        }
    }
}
