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
    /// This many are no chance.
    pub fn is_named(&self) -> bool {
        const LEAST: usize = 4;
        const MIN_SHARE: f64 = 1e-3;
        self.blocks.surely >= LEAST && self.blocks.share().low >= MIN_SHARE
    }

    /// Whether there are this many that a program will notice.
    pub fn matters(&self) -> bool {
        const MIN_SLOWDOWN: f64 = 0.05;
        self.is_named() && self.blocks.share().low >= MIN_SLOWDOWN
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

/// Against most pages of their region, or against the near ones where two kinds are set apart.
/// Regions with the level of each huge page by every other look, and by the others, ns; 0 where a
/// page was not seen. What was slow by chance is so in one of both. Whole regions that lie farther
/// are another question.
pub fn far(regions: &[[Vec<f64>; 2]]) -> Option<Far> {
    let judged: Vec<(f64, [bool; 2])> = regions.iter().flat_map(far_of_region).collect();
    let blocks = Blocks::of(judged.iter().map(|(_, is)| *is))?;
    let surely = judged.iter().filter(|(_, [surely, _])| *surely).map(|(far, _)| *far);
    let times = median(&surely.collect::<Vec<f64>>()).map_or(1.0, f64::exp);
    Some(Far { blocks, times })
}

/// Of each page that both halves saw how far it is, the logarithm, and whether it surely is beyond
/// the limit, and whether it may be.
fn far_of_region(halves: &[Vec<f64>; 2]) -> Vec<(f64, [bool; 2])> {
    let limit = NEARLY_FAR.ln();
    let judged = halves.each_ref().map(|pages| {
        let seen: Vec<f64> = pages.iter().filter(|ns| **ns > 0.0).map(|ns| ns.ln()).collect();
        let own = near_ones(sorted(&seen));
        let (level, sigma) = (median(&own).unwrap_or(0.0), scatter(&own));
        let judge = |ns: &f64| {
            let far = ns.ln() - level;
            let surely = far > (limit + CERTAIN * sigma).max(NO_CHANCE * sigma);
            (*ns > 0.0).then_some((far, surely, far > limit - CERTAIN * sigma))
        };
        pages.iter().map(judge).collect::<Vec<_>>()
    });
    let both = judged[0].iter().zip(&judged[1]).filter_map(|(one, other)| {
        let ((one, surely, maybe), (other, again, too)) = ((*one)?, (*other)?);
        Some(((one + other) / 2.0, [surely && again, maybe && too]))
    });
    both.collect()
}

/// The lower ones of two kinds that are set apart, each far from the other against what it scatters
/// itself; else all. Halves of one normal kind lie 2.6 of their own standard deviations apart, and
/// a few fast ones are no kind.
fn near_ones(mut ordered: Vec<f64>) -> Vec<f64> {
    const APART: f64 = 5.0;
    const LEAST: usize = 4;
    const MIN_PART: usize = 8;
    let Some(many) = slow_count(&ordered) else { return ordered };
    let (near, far) = ordered.split_at(ordered.len() - many);
    let between = mean(far).zip(mean(near)).map_or(0.0, |(far, near)| far - near);
    let within = [near, far].map(|own| variance(own).unwrap_or(0.0).sqrt());
    let is_kind = near.len() >= LEAST.max(ordered.len() / MIN_PART);
    if is_kind && between > APART * within[0].max(within[1]) {
        ordered.truncate(near.len());
    }
    ordered
}

/// As much as a region must lie farther to be named: nearly [`super::Cause::limit`].
const NEARLY_FAR: f64 = 1.17;

/// A region's huge pages, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Walked {
    /// Hopping loads of each, and near ones, 0 where there were none; empty where no one noted
    /// them.
    pub hopping: Vec<f64>,
    pub near: Vec<f64>,
    /// Level of loads that need no walk.
    pub scattered: f64,
}

/// Whose hopping loads take more than `most_ns` longer than loads that need no walk. Where pages of
/// a region lie at several distances, each has a level of its own.
pub fn small(regions: &[Walked], most_ns: f64) -> Option<Blocks> {
    let over = regions.iter().flat_map(|own| {
        let seen: Vec<f64> = own.near.iter().copied().filter(|ns| *ns > 0.0).collect();
        let mixed = mean(&seen).filter(|_| {
            let level = median(&near_ones(sorted(&seen))).unwrap_or(f64::MAX);
            seen.iter().any(|ns| ns / level > NEARLY_FAR)
        });
        let times = |page: usize| match (mixed, own.near.get(page)) {
            (Some(mean), Some(ns)) if *ns > 0.0 => ns / mean,
            _ => 1.0,
        };
        let hopping = own.hopping.iter().enumerate();
        let over: Vec<f64> = hopping.map(|(page, ns)| ns - times(page) * own.scattered - most_ns).collect();
        let sigma = scatter(&near_ones(sorted(&over)));
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

    /// Regions of a guest, of levels of their own, with this share of their pages farther by so
    /// many times and one that no one looked at; and how many pages lie farther.
    fn regions(share: f64, times: f64, noise: f64, rng: &mut Rng) -> (Vec<[Vec<f64>; 2]>, usize) {
        let mut many = 0;
        let region = |rng: &mut Rng, many: &mut usize| {
            let level = 120.0 * (0.2 * normal(rng)).exp();
            let far: Vec<bool> = (0..PAGES).map(|_| rng.f64() < share).collect();
            *many += far.iter().filter(|far| **far).count();
            [(); 2].map(|()| {
                let page = |far: &bool| level * if *far { times } else { 1.0 } * (noise * normal(rng)).exp();
                far.iter().map(page).chain([0.0]).collect()
            })
        };
        let all = (0..12).map(|_| region(rng, &mut many)).collect();
        (all, many)
    }

    #[test]
    fn pages_that_lie_farther_are_counted_and_nothing_else_is() {
        let mut rng = Rng::with_seed(5);
        for (share, times, noise) in
            [(0.03, 1.45, 0.02), (0.1, 1.3, 0.02), (0.4, 1.45, 0.01), (0.6, 1.45, 0.02), (0.05, 2.0, 0.05)]
        {
            let (mut right, mut trials) = (0, 0);
            for _ in 0..100 {
                let (regions, many) = regions(share, times, noise, &mut rng);
                let found = far(&regions).expect("pages");
                trials += usize::from(many >= 6);
                let (low, high) = (found.blocks.surely, found.blocks.maybe);
                // One in twenty is off by two standard deviations.
                let is_near = (many as f64) <= 1.1 * high as f64 + 1.0 && low <= many;
                let size = (found.times / times - 1.0).abs() < 0.1;
                right += usize::from(many >= 6 && found.is_named() && is_near && size);
            }
            assert!(right * 100 >= 95 * trials, "{share} {times} {noise}: {right} of {trials}");
        }
    }

    #[test]
    fn neighbours_noise_and_little_are_not_farther() {
        let mut rng = Rng::with_seed(6);
        for (share, times, noise) in
            [(0.0, 1.0, 0.005), (0.0, 1.0, 0.03), (0.0, 1.0, 0.1), (0.0, 1.0, 0.3), (0.1, 1.1, 0.02)]
        {
            let named = (0..500).filter(|_| {
                let (regions, _) = regions(share, times, noise, &mut rng);
                far(&regions).expect("pages").is_named()
            });
            assert_eq!(named.count(), 0, "{share} {times} {noise}");
        }
        assert_eq!(far(&[]), None);
        let twice = |pages: &[f64]| [pages.to_vec(), pages.to_vec()];
        assert_eq!(far(&[twice(&[0.0; 4])]), None, "nobody looked");
        // Two fast pages are not what all others are far from; a region that was slow is no page;
        // what was slow in one half only was so by chance.
        let mut fast: Vec<f64> = (0..256).map(|page| 120.0 + f64::from(page % 3)).collect();
        (fast[0], fast[1]) = (96.0, 96.0);
        let slow: Vec<f64> = fast.iter().map(|ns| 1.4 * ns).collect();
        assert!(!far(&[twice(&fast), twice(&slow)]).expect("pages").is_named());
        let by_chance: Vec<f64> =
            (0..256).map(|page| if page % 9 == 0 { 200.0 } else { fast[page] }).collect();
        assert_eq!(far(&[[fast.clone(), by_chance.clone()]]).expect("pages").blocks.surely, 0);
        assert!(far(&[twice(&by_chance)]).expect("pages").is_named());
    }

    #[test]
    fn a_page_that_lies_farther_is_no_small_one() {
        let mut rng = Rng::with_seed(7);
        let mut of = |far: usize, small: usize, both: usize| {
            let kind = |page: usize| (page < far + both, page >= far && page < far + both + small);
            let noise = |rng: &mut Rng| (0.004 * normal(rng)).exp();
            let page = |page: usize, rng: &mut Rng| {
                let (far, small) = kind(page);
                let (times, walk) = (if far { 1.45 } else { 1.0 }, if small { 35.0 } else { 2.0 });
                (120.0 * times * noise(rng), times * 128.0 * noise(rng) + walk)
            };
            let (near, hopping): (Vec<f64>, Vec<f64>) = (0..PAGES).map(|at| page(at, &mut rng)).unzip();
            // Loads that come back are of all pages.
            let scattered = 128.0 * (1.0 + 0.45 * (far + both) as f64 / PAGES as f64);
            Walked { hopping, near, scattered }
        };
        for (far, small, both) in
            [(4, 2, 2), (14, 0, 0), (14, 18, 14), (0, 16, 0), (0, 32, 0), (4, 0, 0), (4, 28, 4)]
        {
            let far = far - both.min(far);
            let small = small.min(PAGES - far - both);
            let found = super::small(&[of(far, small, both)], 7.0).expect("pages");
            assert_eq!((found.of, found.surely), (PAGES, small + both), "{far} {small} {both}");
            assert!(found.maybe <= small + both + 2, "{found:?}");
        }
        // Runs of before noted no near loads: pages that lie farther count then, too.
        let own = of(4, 2, 2);
        let found = super::small(&[Walked { near: Vec::new(), ..own }], 7.0).expect("pages");
        assert!(found.surely >= 8, "{found:?}");
    }
}
