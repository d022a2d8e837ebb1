//! Where the curves of two hosts cross.

use super::super::bootstrap::Resampling;
use super::super::order::{Interval, median, quantile_of_sorted};
use super::curve::{at, expanded};
use super::{Curve, Point};

/// Fewer passes of either host give no interval of a crossing: that of three held the truth in
/// 88 % (docs/method/smt.md).
const PASSES_FOR_INTERVAL: usize = 5;
/// Least share of resampled pairs of curves that cross there; else they may not cross at all.
const MIN_CROSSES: f64 = 0.95;

/// Where one curve overtakes another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cross {
    /// CPU%, 0..1, and the performance of both there.
    pub share: f64,
    pub performance: f64,
    /// 95 % interval of `share`, by the bootstrap over passes of both; `None` below five passes of
    /// either, or where one in twenty resampled pairs of curves does not cross.
    pub interval: Option<Interval>,
    /// Whether the second is ahead from here on.
    pub second_ahead: bool,
    /// Whether the intervals of both lie apart somewhere before it and somewhere behind.
    pub sure: bool,
}

/// Two curves over the CPU% that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// By rising CPU%; empty where they never cross.
    pub at: Vec<Cross>,
    /// Whether the second is ahead at the lowest and at the highest CPU% that both have; `None`
    /// where they are equal.
    pub second_ahead_first: Option<bool>,
    pub second_ahead_last: Option<bool>,
    /// From the higher of both lowest levels to the lower of both highest.
    pub from: f64,
    pub to: f64,
}

/// Both curves at one CPU%.
struct AtShare {
    share: f64,
    /// How far the second is ahead.
    ahead: f64,
    /// Performance of the first.
    height: f64,
    /// Whether the second is ahead by its whole interval, or the first.
    surely: Option<bool>,
}

/// Compares two hosts' curves, in the same unit of work (and scaled to one clock by
/// [`Curve::scaled`] where wanted). `None` where they have no CPU% in common.
pub fn crossing(first: &Curve, second: &Curve) -> Option<Crossing> {
    let ends = |curve: &Curve| Some((curve.points.first()?.share, curve.points.last()?.share));
    let ((a_from, a_to), (b_from, b_to)) = (ends(first)?, ends(second)?);
    let (from, to) = (a_from.max(b_from), a_to.min(b_to));
    if from > to {
        return None;
    }
    let own = first.points.iter().chain(&second.points).map(|point| point.share);
    let mut shares: Vec<f64> = own.filter(|share| (from..=to).contains(share)).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let look = |share: f64| {
        let (own, other) = (first.performance(share)?, second.performance(share)?);
        Some(AtShare { share, ahead: other - own, height: own, surely: surely(first, second, share) })
    };
    let looks: Vec<AtShare> = shares.into_iter().filter_map(look).collect();
    // Levels at which both are equal are passed over: what counts is who is ahead on either side.
    let unequal: Vec<&AtShare> = looks.iter().filter(|look| look.ahead != 0.0).collect();
    let mut found: Vec<Cross> = Vec::new();
    for pair in unequal.windows(2).filter(|pair| (pair[0].ahead > 0.0) != (pair[1].ahead > 0.0)) {
        let (left, right) = (pair[0], pair[1]);
        let part = left.ahead / (left.ahead - right.ahead);
        let between =
            |look: &&AtShare| look.ahead == 0.0 && left.share < look.share && look.share < right.share;
        let (share, performance) = match looks.iter().find(between) {
            Some(equal) => (equal.share, equal.height),
            None => (
                left.share + part * (right.share - left.share),
                left.height + part * (right.height - left.height),
            ),
        };
        found.push(Cross {
            share,
            performance,
            interval: None,
            second_ahead: right.ahead > 0.0,
            sure: false,
        });
    }
    let bounds: Vec<f64> = found.iter().map(|cross| cross.share).collect();
    for (i, cross) in found.iter_mut().enumerate() {
        let before = i.checked_sub(1).map_or(f64::NEG_INFINITY, |last| bounds[last]);
        let behind = bounds.get(i + 1).copied().unwrap_or(f64::INFINITY);
        let seen = |from: f64, to: f64, second: bool| {
            looks.iter().any(|look| (from..=to).contains(&look.share) && look.surely == Some(second))
        };
        cross.sure =
            seen(before, cross.share, !cross.second_ahead) && seen(cross.share, behind, cross.second_ahead);
    }
    intervals(first, second, &mut found);
    let side = |look: Option<&&AtShare>| look.map(|look| look.ahead > 0.0);
    Some(Crossing {
        at: found,
        second_ahead_first: side(unequal.first()),
        second_ahead_last: side(unequal.last()),
        from,
        to,
    })
}

/// Which curve is ahead by its whole interval; `None` where the intervals meet or one is not known.
fn surely(first: &Curve, second: &Curve, share: f64) -> Option<bool> {
    let (own, theirs) = (first.bounds(share)?, second.bounds(share)?);
    if theirs.low > own.high {
        return Some(true);
    }
    (own.low > theirs.high).then_some(false)
}

/// Levels of a curve by CPU%, and its work at each.
type Vertices = Vec<(f64, f64)>;

/// The interval of each crossing: the passes of either host are drawn anew, a pass with all its
/// levels.
fn intervals(first: &Curve, second: &Curve, found: &mut [Cross]) {
    let passes = |curve: &Curve| curve.points.iter().map(|point| point.passes.len()).min().unwrap_or(0);
    let (own, theirs) = (passes(first), passes(second));
    let fewest = own.min(theirs);
    if found.is_empty() || fewest < PASSES_FOR_INTERVAL {
        return;
    }
    let plan = Resampling { resamples: 999, confidence: expanded(0.95, fewest), seed: 1 };
    let mut rng = fastrand::Rng::with_seed(plan.seed);
    let mut drawn = |curve: &Curve, passes: usize| -> Vertices {
        let taken: Vec<usize> = (0..passes).map(|_| rng.usize(..passes)).collect();
        let vertex = |point: &Point| {
            let of = |figure: fn(&super::Pass) -> f64| {
                median(&taken.iter().map(|pass| figure(&point.passes[*pass])).collect::<Vec<f64>>())
            };
            Some((of(|pass| pass.share)?, of(|pass| pass.performance)?))
        };
        curve.points.iter().filter_map(vertex).collect()
    };
    let mut places: Vec<Vec<f64>> = vec![Vec::new(); found.len()];
    for _ in 0..plan.resamples {
        let crosses = crosses(&drawn(first, own), &drawn(second, theirs));
        for (cross, places) in found.iter().zip(&mut places) {
            let alike = crosses.iter().filter(|(_, second_ahead)| *second_ahead == cross.second_ahead);
            let nearest = alike
                .map(|(share, _)| *share)
                .min_by(|one, other| (one - cross.share).abs().total_cmp(&(other - cross.share).abs()));
            places.extend(nearest);
        }
    }
    let tail = (1.0 - plan.confidence) / 2.0;
    for (cross, mut places) in found.iter_mut().zip(places) {
        places.sort_unstable_by(f64::total_cmp);
        let often = places.len() as f64 >= MIN_CROSSES * plan.resamples as f64;
        let ends = [tail, 1.0 - tail].map(|q| quantile_of_sorted(&places, q));
        if let [Some(low), Some(high)] = ends
            && often
        {
            cross.interval = Some(Interval { low: low.min(cross.share), high: high.max(cross.share) });
        }
    }
}

/// CPU% at which one curve overtakes the other, and whether the second is ahead behind it.
fn crosses(first: &[(f64, f64)], second: &[(f64, f64)]) -> Vec<(f64, bool)> {
    let mut shares: Vec<f64> = first.iter().chain(second).map(|(share, _)| *share).collect();
    let from = first[0].0.max(second[0].0);
    shares.retain(|share| *share >= from);
    shares.sort_unstable_by(f64::total_cmp);
    let ahead = |share: f64| Some((share, at(second, share)? - at(first, share)?));
    let looks: Vec<(f64, f64)> =
        shares.into_iter().filter_map(ahead).filter(|(_, ahead)| *ahead != 0.0).collect();
    let pairs = looks.windows(2).filter(|pair| (pair[0].1 > 0.0) != (pair[1].1 > 0.0));
    pairs
        .map(|pair| {
            let part = pair[0].1 / (pair[0].1 - pair[1].1);
            (pair[0].0 + part * (pair[1].0 - pair[0].0), pair[1].1 > 0.0)
        })
        .collect()
}
