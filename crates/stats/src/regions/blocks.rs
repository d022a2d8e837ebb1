//! What is behind each huge page: which of them are translated like small ones, and which lie
//! farther than most.

use super::slow_count;
use crate::order::{Interval, mad, mean, median, sorted, variance};

/// How many of them are so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    /// Huge pages that were looked at.
    pub of: usize,
    pub surely: usize,
    pub maybe: usize,
}

impl Blocks {
    /// Share of them, 0..1: from those that surely are to those that may be.
    pub fn share(&self) -> Interval {
        let share = |many: usize| many as f64 / self.of as f64;
        Interval { low: share(self.surely), high: share(self.maybe) }
    }

    /// Of which surely are and which may be; `None` of none.
    fn of(all: impl Iterator<Item = [bool; 2]>) -> Option<Blocks> {
        let mut blocks = Blocks { of: 0, surely: 0, maybe: 0 };
        for [surely, maybe] in all {
            blocks.of += 1;
            blocks.surely += usize::from(surely);
            blocks.maybe += usize::from(maybe);
        }
        (blocks.of > 0).then_some(blocks)
    }
}

/// Huge pages whose loads take longer than most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Far {
    pub blocks: Blocks,
    /// How many times as long loads of those that surely are take, their median; 1 where there are
    /// none.
    pub times: f64,
}

impl Far {
    /// So many are no chance.
    pub fn is_named(&self) -> bool {
        const LEAST: usize = 4;
        self.blocks.surely >= LEAST
    }
}

/// Standard deviations by which a page must lie beyond a limit, and beyond most: of ten thousand
/// normal ones none is farther.
const CERTAIN: f64 = 2.0;
const NO_CHANCE: f64 = 5.0;

/// How far values are off by chance, whatever a minority does.
fn scatter(values: &[f64]) -> f64 {
    mad(values).map_or(0.0, |mad| 1.4826 * mad)
}

/// Against most pages of a visit, or against the near ones where two kinds are set apart: visits of
/// near loads by region and huge page, ns; 0 where a page was not seen.
pub fn far(visits: &[Vec<Vec<f64>>]) -> Option<Far> {
    let limit = NEARLY_FAR.ln();
    let judged = visits.iter().flat_map(|regions| {
        let seen: Vec<f64> = regions.iter().flatten().filter(|ns| **ns > 0.0).map(|ns| ns.ln()).collect();
        let own = near_ones(sorted(&seen));
        let level = median(&own).unwrap_or(0.0);
        let sigma = scatter(&own);
        let judge = move |ns: f64| {
            let far = ns - level;
            let surely = far > (limit + CERTAIN * sigma).max(NO_CHANCE * sigma);
            (far, [surely, far > limit - CERTAIN * sigma])
        };
        seen.into_iter().map(judge)
    });
    let judged: Vec<(f64, [bool; 2])> = judged.collect();
    let blocks = Blocks::of(judged.iter().map(|(_, is)| *is))?;
    let surely = judged.iter().filter(|(_, [surely, _])| *surely).map(|(far, _)| *far);
    let times = median(&surely.collect::<Vec<f64>>()).map_or(1.0, f64::exp);
    Some(Far { blocks, times })
}

/// The lower ones of two kinds that are set apart, each far from the other against what it scatters
/// itself; else all. Halves of one normal kind lie 2.6 of their own standard deviations apart.
fn near_ones(mut ordered: Vec<f64>) -> Vec<f64> {
    const APART: f64 = 5.0;
    let Some(many) = slow_count(&ordered) else { return ordered };
    let (near, far) = ordered.split_at(ordered.len() - many);
    let between = mean(far).zip(mean(near)).map_or(0.0, |(far, near)| far - near);
    let within = [near, far].map(|own| variance(own).unwrap_or(0.0).sqrt());
    if between > APART * within[0].max(within[1]) {
        ordered.truncate(near.len());
    }
    ordered
}

/// As much as a region must lie farther to be named: nearly [`super::Cause::limit`].
const NEARLY_FAR: f64 = 1.17;

/// A region's huge pages, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Walked {
    /// Hopping loads of each, and near ones, 0 where there were none; empty where nobody noted
    /// them.
    pub hopping: Vec<f64>,
    pub near: Vec<f64>,
    /// Level of loads that need no walk.
    pub scattered: f64,
}

/// Whose hopping loads take more than `most_ns` longer than loads that need no walk. A page that
/// lies farther has a level of its own.
pub fn small(regions: &[Walked], most_ns: f64) -> Option<Blocks> {
    let over = regions.iter().flat_map(|own| {
        let near = median(&own.near.iter().copied().filter(|ns| *ns > 0.0).collect::<Vec<f64>>());
        let times = |page: usize| match (near, own.near.get(page)) {
            (Some(level), Some(ns)) if ns / level > NEARLY_FAR => ns / level,
            _ => 1.0,
        };
        let hopping = own.hopping.iter().enumerate();
        let over: Vec<f64> = hopping.map(|(page, ns)| ns - times(page) * own.scattered - most_ns).collect();
        let sigma = scatter(&over);
        over.into_iter().map(move |over| [over > CERTAIN * sigma, over > -CERTAIN * sigma])
    });
    Blocks::of(over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::normal;
    use fastrand::Rng;

    const PAGES: usize = 32;

    /// A visit of a guest with this share of its pages farther by so many times, and a few that
    /// nobody looked at.
    fn visit(share: f64, times: f64, noise: f64, rng: &mut Rng) -> (Vec<Vec<f64>>, usize) {
        let mut many = 0;
        let regions = (0..12)
            .map(|_| {
                let mut page = || match (rng.f64(), rng.f64() < share) {
                    (unseen, _) if unseen < 0.02 => 0.0,
                    (_, is_far) => {
                        many += usize::from(is_far);
                        120.0 * if is_far { times } else { 1.0 } * (noise * normal(rng)).exp()
                    }
                };
                (0..PAGES).map(|_| page()).collect()
            })
            .collect();
        (regions, many)
    }

    #[test]
    fn pages_that_lie_farther_are_counted_and_nothing_else_is() {
        let mut rng = Rng::with_seed(5);
        for (share, times, noise) in
            [(0.03, 1.45, 0.02), (0.1, 1.3, 0.02), (0.4, 1.45, 0.01), (0.7, 1.45, 0.03), (0.05, 2.0, 0.05)]
        {
            let (mut right, mut trials) = (0, 0);
            for _ in 0..200 {
                let (regions, many) = visit(share, times, noise, &mut rng);
                let found = far(&[regions]).expect("pages");
                trials += usize::from(many >= 6);
                let (low, high) = (found.blocks.surely, found.blocks.maybe);
                // One in twenty is off by two standard deviations.
                let is_near = (many as f64) <= 1.1 * high as f64 + 1.0 && low <= many;
                right += usize::from(
                    many >= 6 && found.is_named() && is_near && (found.times / times - 1.0).abs() < 0.1,
                );
            }
            assert!(right * 100 >= 95 * trials, "{share} {times} {noise}: {right} of {trials}");
        }
        for noise in [0.005, 0.03, 0.1, 0.3] {
            let named = (0..1000).filter(|_| {
                let (regions, _) = visit(0.0, 1.0, noise, &mut rng);
                far(&[regions]).expect("pages").is_named()
            });
            assert_eq!(named.count(), 0, "{noise}");
        }
    }

    #[test]
    fn below_the_limit_nothing_is_farther() {
        let mut rng = Rng::with_seed(6);
        let named = (0..300).filter(|_| {
            let (regions, _) = visit(0.1, 1.1, 0.02, &mut rng);
            far(&[regions]).expect("pages").is_named()
        });
        assert_eq!(named.count(), 0);
        assert_eq!(far(&[]), None);
        assert_eq!(far(&[vec![vec![0.0; 4]]]), None, "nobody looked");
    }

    #[test]
    fn a_page_that_lies_farther_is_no_small_one() {
        let mut rng = Rng::with_seed(7);
        let mut of = |far: bool, small: bool| {
            let (times, walk) = (if far { 1.45 } else { 1.0 }, if small { 35.0 } else { 2.0 });
            let noise = |rng: &mut Rng| (0.004 * normal(rng)).exp();
            (120.0 * times * noise(&mut rng), times * 128.0 * noise(&mut rng) + walk)
        };
        let pages = [(false, false); 24]
            .into_iter()
            .chain([(true, false); 4])
            .chain([(false, true); 2])
            .chain([(true, true); 2]);
        let (near, hopping) = pages.map(|(far, small)| of(far, small)).unzip();
        let own = Walked { hopping, near, scattered: 128.0 };
        let found = small(std::slice::from_ref(&own), 7.0).expect("pages");
        assert!(found.of == 32 && found.surely == 4 && found.maybe <= 6, "{found:?}");
        // Runs of before noted no near loads.
        let found = small(&[Walked { near: Vec::new(), ..own }], 7.0).expect("pages");
        assert_eq!(found.surely, 8, "farther ones count, too");
    }
}
