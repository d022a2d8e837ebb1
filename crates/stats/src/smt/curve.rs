//! Performance over CPU%: attainment, the gap to what CPU% promises, and capacity.

use super::super::bootstrap::{Resampling, bca};
use super::super::order::{Interval, median, median_interval};
use super::super::tails::{normal_two_sided, t_quantile};
use super::Sentence;
use super::yields::of_pairs;

/// One pass at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// CPU% of the CPUs that the work may use, 0..1.
    pub share: f64,
    /// Work per second.
    pub performance: f64,
}

/// One level.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Medians of the passes.
    pub share: f64,
    pub performance: f64,
    /// 95 % interval of the performance; from six passes, or as given.
    pub interval: Option<Interval>,
    /// In the order of passes; empty where only the median is known.
    pub passes: Vec<Pass>,
}

impl Point {
    /// `None` where a figure is not a number, or there is none.
    pub fn of(passes: Vec<Pass>) -> Option<Point> {
        let shares: Vec<f64> = passes.iter().map(|pass| pass.share).collect();
        let performances: Vec<f64> = passes.iter().map(|pass| pass.performance).collect();
        let sound = |values: &[f64]| values.iter().all(|value| value.is_finite() && *value >= 0.0);
        let interval = median_interval(&performances, 0.95);
        let (share, performance) = (median(&shares)?, median(&performances)?);
        let sound = sound(&shares) && sound(&performances);
        sound.then_some(Point { share, performance, interval, passes })
    }

    pub fn known(share: f64, performance: f64, interval: Option<Interval>) -> Option<Point> {
        let point = Point::of(vec![Pass { share, performance }])?;
        Some(Point { interval, passes: Vec::new(), ..point })
    }
}

/// Levels of one kind of work on one host and placement, by rising CPU%, joined by straight
/// lines from nothing at 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub(super) points: Vec<Point>,
}

/// Where performance lies furthest above what CPU% promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Largest `A(u) - u`; 0 of a straight line, negative only where even that is not reached.
    pub gap: f64,
    /// The CPU% where it lies, 0..1.
    pub at: f64,
    /// 95 %, by the bootstrap over passes; `None` below three passes.
    pub interval: Option<Interval>,
}

/// What the host can do, in work per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// The most that was measured (`W_max`), its interval, and at which CPU%.
    pub most: f64,
    pub interval: Option<Interval>,
    pub at: f64,
    /// Whether the levels reached full load ([`FULL`]); else `most` is only the most that was
    /// tried.
    pub full: bool,
    /// `margin` times that, and the CPU% at which it is reached first, with its interval (from two
    /// passes on).
    pub kept: f64,
    pub kept_at: Option<f64>,
    pub kept_at_interval: Option<Interval>,
}

/// CPU% from which a level counts as full load.
pub const FULL: f64 = 0.95;
/// Less than this of the best is less, not the same.
const FALLS: f64 = 0.98;
/// Fewer passes give no interval of the gap.
const PASSES_FOR_GAP: usize = 3;

impl Curve {
    /// `None` where no level has both CPU% and performance above 0.
    pub fn of(mut points: Vec<Point>) -> Option<Curve> {
        points.retain(|point| point.share > 0.0 && point.performance > 0.0);
        points.sort_by(|one, other| one.share.total_cmp(&other.share));
        (!points.is_empty()).then_some(Curve { points })
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Every performance times this: to a common clock.
    pub fn scaled(&self, factor: f64) -> Curve {
        let pass = |pass: &Pass| Pass { performance: factor * pass.performance, ..*pass };
        let interval =
            |interval: Interval| Interval { low: factor * interval.low, high: factor * interval.high };
        let point = |point: &Point| Point {
            performance: factor * point.performance,
            interval: point.interval.map(interval),
            passes: point.passes.iter().map(pass).collect(),
            ..*point
        };
        Curve { points: self.points.iter().map(point).collect() }
    }

    fn vertices(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (point.share, point.performance)).collect()
    }

    /// Work per second at a CPU%; `None` beyond the last level: curves are never extended.
    pub fn performance(&self, share: f64) -> Option<f64> {
        at(&self.vertices(), share)
    }

    /// The 95 % interval of that, by straight lines between those of the levels; `None` where one
    /// of them has none.
    pub fn bounds(&self, share: f64) -> Option<Interval> {
        let end = |of: fn(Interval) -> f64| {
            let vertex = |point: &Point| Some((point.share, of(point.interval?)));
            at(&self.points.iter().map(vertex).collect::<Option<Vec<_>>>()?, share)
        };
        Some(Interval { low: end(|interval| interval.low)?, high: end(|interval| interval.high)? })
    }

    /// The best level.
    fn best(&self) -> &Point {
        let best = |best: usize, i: usize| {
            if self.points[i].performance > self.points[best].performance { i } else { best }
        };
        &self.points[(0..self.points.len()).fold(0, best)]
    }

    /// `A(u)` at each level: performance over the best, with CPU%.
    pub fn attainment(&self) -> Vec<(f64, f64)> {
        attainment(&self.vertices())
    }

    /// Performance for each per cent of CPU, at each level, with CPU%: constant on a host that
    /// CPU% describes.
    pub fn per_percent(&self) -> Vec<(f64, f64)> {
        self.vertices()
            .into_iter()
            .map(|(share, performance)| (share, performance / (100.0 * share)))
            .collect()
    }

    /// The lowest CPU% at which a share of the best performance is reached (0.8, 0.9).
    pub fn reaches(&self, attained: f64) -> Option<f64> {
        reaches(&self.vertices(), attained * self.best().performance)
    }

    /// What is used of the capacity when CPU% says `share`: the most that was done up to there over
    /// the best, so that more CPU% never uses less, and all is used where more CPU% takes work
    /// away. Its 95 % interval is that of the ratios of passes, each by its own line between
    /// levels; `None` beyond the last level.
    pub fn sentence(&self, share: f64) -> Option<Sentence> {
        let best = self.best();
        let before = self.points.iter().filter(|point| point.share <= share).map(|point| point.performance);
        let used = before.fold(self.performance(share)?, f64::max) / best.performance;
        let found = self.by_passes(|vertices, best| Some((best, end_of(vertices, share)?)));
        let interval = found.map(|found| {
            if share > best.share && found.high < 1.0 {
                Interval { low: used, high: used }
            } else {
                holding(found, used)
            }
        });
        Sentence::of(share, used, interval)
    }

    /// The last level, where it surely does less than the best one: by 2 %, and by both intervals
    /// where they are known.
    pub fn falls_to(&self) -> Option<&Point> {
        let (best, last) = (self.best(), self.points.last()?);
        let apart = match (best.interval, last.interval) {
            (Some(best), Some(last)) => last.high < best.low,
            _ => true,
        };
        (last.performance < FALLS * best.performance && apart).then_some(last)
    }

    /// The 95 % interval of a ratio that every pass has: of its levels and its performance at the
    /// best one. `None` below two passes; where levels have different numbers of passes, the first
    /// ones that all have count.
    fn by_passes(&self, ratio: impl Fn(&[(f64, f64)], f64) -> Option<(f64, f64)>) -> Option<Interval> {
        let passes = self.points.iter().map(|point| point.passes.len()).min().unwrap_or(0);
        let best = self.best();
        let of = |pass: usize| {
            let vertex = |point: &Point| (point.passes[pass].share, point.passes[pass].performance);
            let mut vertices: Vec<(f64, f64)> = self.points.iter().map(vertex).collect();
            vertices.sort_by(|one, other| one.0.total_cmp(&other.0));
            ratio(&vertices, best.passes[pass].performance)
        };
        let (first, second): (Vec<f64>, Vec<f64>) = (0..passes).filter_map(of).unzip();
        let found = of_pairs(&first, &second).filter(|found| found.passes > 1)?;
        Some(Interval { low: found.value.lo, high: found.value.hi })
    }

    /// The largest distance between attainment and CPU%.
    pub fn gap(&self, plan: Resampling) -> Option<Gap> {
        let (gap, at) = furthest(&self.vertices())?;
        let passes = self.points.iter().map(|point| point.passes.len()).min().unwrap_or(0);
        let alike = self.points.iter().all(|point| point.passes.len() == passes);
        // Levels of one pass were measured side by side and are drawn together; where passes are
        // missing, each by itself.
        let sizes: Vec<usize> =
            if alike { vec![passes] } else { self.points.iter().map(|point| point.passes.len()).collect() };
        let statistic = |drawn: &[Vec<usize>]| {
            let vertex = |(i, point): (usize, &Point)| {
                let of = |figure: fn(&Pass) -> f64| {
                    let drawn =
                        drawn[if alike { 0 } else { i }].iter().map(|pass| figure(&point.passes[*pass]));
                    median(&drawn.collect::<Vec<f64>>()).unwrap_or(f64::NAN)
                };
                (of(|pass| pass.share), of(|pass| pass.performance))
            };
            let vertices: Vec<(f64, f64)> = self.points.iter().enumerate().map(vertex).collect();
            furthest(&vertices).map_or(f64::NAN, |(gap, _)| gap)
        };
        let plan = Resampling { confidence: expanded(plan.confidence, passes), ..plan };
        let interval = (passes >= PASSES_FOR_GAP).then(|| bca(&sizes, plan, statistic)).flatten();
        Some(Gap { gap, at, interval })
    }

    /// The most work per second, and `margin` (0..1, as 0.8) of it.
    pub fn capacity(&self, margin: f64) -> Capacity {
        let best = self.best();
        let last = self.points.last().map_or(0.0, |point| point.share);
        let kept_at = self.reaches(margin);
        let at = self.by_passes(|vertices, best| Some((1.0, reaches(vertices, margin * best)?)));
        Capacity {
            most: best.performance,
            interval: best.interval,
            at: best.share,
            full: last >= FULL,
            kept: margin * best.performance,
            kept_at,
            kept_at_interval: kept_at.zip(at).map(|(mid, at)| holding(at, mid)),
        }
    }
}

/// The interval of a share, widened to hold it, and else not above 1. A share of its own may be a
/// little above 1: so may the CPU% of a full host be read.
fn holding(found: Interval, share: f64) -> Interval {
    Interval { low: found.low.min(share), high: found.high.min(1.0).max(share) }
}

/// The confidence at which a bootstrap of so few values covers what is asked: it takes the values
/// for the population, whose spread is larger by `sqrt(n / (n - 1))`, and knows no Student's t
/// (Hesterberg 2015, expanded percentiles).
pub(super) fn expanded(confidence: f64, n: usize) -> f64 {
    let n = n as f64;
    let z = t_quantile(confidence, n - 1.0).map(|t| t * (n / (n - 1.0)).sqrt());
    z.map_or(confidence, |z| 1.0 - normal_two_sided(z))
}

fn attainment(vertices: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let best = vertices.iter().map(|(_, performance)| *performance).fold(0.0, f64::max);
    vertices.iter().map(|(share, performance)| (*share, performance / best)).collect()
}

/// The largest distance and its place: at a level, since lines between levels are straight.
fn furthest(vertices: &[(f64, f64)]) -> Option<(f64, f64)> {
    let gaps = attainment(vertices).into_iter().map(|(share, attained)| (attained - share, share));
    gaps.max_by(|one, other| one.0.total_cmp(&other.0))
}

/// The lowest `x` at which lines from the origin through rising points reach a height.
fn reaches(vertices: &[(f64, f64)], height: f64) -> Option<f64> {
    let mut last = (0.0, 0.0);
    for (share, now) in vertices.iter().copied() {
        if now >= height {
            let part = if now > last.1 { (height - last.1) / (now - last.1) } else { 0.0 };
            return Some(last.0 + part.max(0.0) * (share - last.0));
        }
        last = (share, now);
    }
    None
}

/// [`at`], and beyond the last point the last height: a pass whose last level came to a little less
/// CPU% than the others'.
fn end_of(vertices: &[(f64, f64)], x: f64) -> Option<f64> {
    at(vertices, x).or_else(|| vertices.last().map(|(_, performance)| *performance))
}

/// The height at `x` of straight lines from the origin through rising points; `None` beyond the
/// last.
pub(super) fn at(vertices: &[(f64, f64)], x: f64) -> Option<f64> {
    let next = vertices.iter().position(|(share, _)| *share >= x).filter(|_| x >= 0.0)?;
    let (left, right) = (next.checked_sub(1).map_or((0.0, 0.0), |before| vertices[before]), vertices[next]);
    if right.0 > left.0 {
        Some(left.1 + (x - left.0) / (right.0 - left.0) * (right.1 - left.1))
    } else {
        Some(right.1)
    }
}

/// Attainment at CPU% `u` of a host whose scheduler takes idle cores first: one sibling of every
/// core up to `u = 1/threads`, then the others. `turbo` is the clock while one sibling a core is
/// busy over the clock with all; it goes in a straight line to 1 between. 1 and two threads: `2u /
/// s`, then `1/s + (2u - 1)(1 - 1/s)`.
pub fn spread_first(u: f64, s: f64, threads: usize, turbo: f64) -> f64 {
    let n = threads.max(1) as f64;
    let u = u.clamp(0.0, 1.0);
    match n * u <= 1.0 {
        _ if threads <= 1 => u * (turbo - (turbo - 1.0) * u),
        true => turbo * n * u / s,
        false => {
            let part = (n * u - 1.0) / (n - 1.0);
            (turbo - (turbo - 1.0) * part) * (1.0 / s + part * (1.0 - 1.0 / s))
        }
    }
}

/// The same where all siblings of a core are taken before the next core: `A = u` times the clock,
/// `turbo` with one core busy and 1 with all.
pub fn pack_first(u: f64, turbo: f64) -> f64 {
    let u = u.clamp(0.0, 1.0);
    u * (turbo - (turbo - 1.0) * u)
}
