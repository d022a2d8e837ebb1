//! Are causes of slow memory named right, and only where there are some? On hosts that never
//! were.

use fastrand::Rng;

use super::{Rate, over, sums};
use stats::noise::{exponential, normal};
use stats::regions::{Cause, MIN_BLOCKS, Moment, Region, far, neighbour, regions};

/// What scatters readings of regions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    pub regions: usize,
    pub rounds: usize,
    /// Relative noise of a latency; of a bandwidth; noise of a translation, ns.
    pub latency: f64,
    pub bandwidth: f64,
    pub translation_ns: f64,
    /// Share of readings that a burst of other work makes slower, by 10–60 %.
    pub bursts: f64,
    /// What regions differ by for good without a cause: relative, and ns of a translation.
    pub own: f64,
    pub own_ns: f64,
}

impl Host {
    /// As was met on a loud guest.
    pub const USUAL: Host = Host {
        regions: 16,
        rounds: 18,
        latency: 0.06,
        bandwidth: 0.08,
        translation_ns: 9.0,
        bursts: 0.05,
        own: 0.0,
        own_ns: 0.0,
    };

    /// One of any kind, without a cause.
    pub fn any(rng: &mut Rng) -> Host {
        let pick = |rng: &mut Rng, from: &[f64]| from[rng.usize(..from.len())];
        Host {
            regions: [8, 16, 32, 64][rng.usize(..4)],
            rounds: [9, 18][rng.usize(..2)],
            latency: pick(rng, &[0.01, 0.03, 0.06]),
            bandwidth: pick(rng, &[0.02, 0.08, 0.2]),
            translation_ns: pick(rng, &[2.0, 5.0, 9.0]),
            bursts: pick(rng, &[0.0, 0.05, 0.15]),
            own: pick(rng, &[0.0, 0.005, 0.02]),
            own_ns: pick(rng, &[0.0, 0.5, 1.5]),
        }
    }

    /// Its readings: the slow regions have `size` of a cause, and what goes with it.
    pub fn readings(&self, cause: Option<Cause>, size: f64, slow_share: f64, rng: &mut Rng) -> Vec<Region> {
        let of = |wanted: Cause| if cause == Some(wanted) { size } else { wanted.nothing() };
        let many = ((slow_share * self.regions as f64).round() as usize).max(1);
        let levels: Vec<(bool, f64, f64)> = (0..self.regions)
            .map(|region| (region < many, (self.own * normal(rng)).exp(), self.own_ns * normal(rng)))
            .collect();
        let rounds: Vec<f64> = (0..self.rounds).map(|_| (0.05 * normal(rng)).exp()).collect();
        let base_ns = 3.0 + 25.0 * rng.f64();
        levels
            .iter()
            .map(|(slow, own, own_ns)| {
                let mut region = Region::default();
                for round in &rounds {
                    let burst = if rng.f64() < self.bursts { 1.1 + 0.5 * rng.f64() } else { 1.0 };
                    let mut scatter = |relative: f64| (relative * normal(rng)).exp();
                    let distance = if *slow { of(Cause::Distance) } else { 1.0 };
                    let translation = base_ns + own_ns + if *slow { of(Cause::Translation) } else { 0.0 };
                    let near = 120.0 * own * distance * round * burst * scatter(self.latency);
                    let back = near * 1.07 * scatter(0.02);
                    // Walks slow streams as well, and so does distance.
                    let taken = if *slow { of(Cause::Transfer) } else { 1.0 };
                    let taken = taken * (1.0 + 0.004 * (translation - base_ns).max(0.0)) * distance.sqrt();
                    region.bandwidth.push(20.0 / (own * taken * round * burst) * scatter(self.bandwidth));
                    let translation = translation + self.translation_ns * normal(rng);
                    region.near.push(near);
                    region.scattered.push(back);
                    region.hopping.push(back + translation * burst);
                }
                region
            })
            .collect()
    }
}

/// How often causes are named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    /// The planted one and no other.
    pub right: Rate,
    /// Another one, whatever else.
    pub wrong: Rate,
    /// None at all.
    pub none: Rate,
}

sums!(Named: right, wrong, none);

impl Named {
    fn count(&mut self, planted: Option<Cause>, readings: &[Region]) {
        let found = regions(readings);
        let named: Vec<Cause> =
            found.iter().flat_map(|found| found.named()).map(|found| found.cause).collect();
        self.right.count(planted.is_some() && named == planted.into_iter().collect::<Vec<_>>());
        self.wrong.count(named.iter().any(|cause| Some(*cause) != planted));
        self.none.count(named.is_empty());
    }
}

/// Hosts of this kind with a cause of this size in a quarter of the regions.
pub fn planted(host: Host, cause: Cause, size: f64, hosts: usize, seed: u64) -> Named {
    over(hosts, seed, |_, rng, named: &mut Named| {
        named.count(Some(cause), &host.readings(Some(cause), size, 0.25, rng));
    })
}

/// Hosts of any kind without a cause.
pub fn alike(hosts: usize, seed: u64) -> Named {
    over(hosts, seed, |_, rng, named: &mut Named| {
        let host = Host::any(rng);
        named.count(None, &host.readings(None, 0.0, 0.25, rng));
    })
}

/// How often distant huge pages are reported, and their true share lies in the reported interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Farther {
    pub named: Rate,
    pub covered: Rate,
}

/// 64 regions of 32 huge pages whose levels differ by 10 %; of the pages a share takes this many
/// times as long, and each half of the probes scatters all: normally, one page in fifty five times
/// as much.
pub fn farther(share: f64, times: f64, noise: f64, guests: usize, seed: u64) -> Farther {
    over(guests, seed, |_, rng, told: &mut Farther| {
        let mut many = 0usize;
        let mut region = || -> [Vec<f64>; 2] {
            let level = 120.0 * (0.1 * normal(rng)).exp();
            let far: Vec<bool> = (0..32).map(|_| rng.f64() < share).collect();
            many += far.iter().filter(|far| **far).count();
            [(); 2].map(|()| {
                let page = |is_far: &bool| {
                    let own = noise * if rng.f64() < 0.02 { 5.0 } else { 1.0 };
                    level * if *is_far { times } else { 1.0 } * (own * normal(rng)).exp()
                };
                far.iter().map(page).collect()
            })
        };
        let regions: Vec<[Vec<f64>; 2]> = std::iter::repeat_with(&mut region).take(64).collect();
        let Some(found) = far(&regions) else { return };
        told.named.count(found.is_named());
        // One page in twenty is off by two standard deviations, in each half.
        let (low, high) = (0.9 * found.blocks.surely as f64, 1.1 * found.blocks.maybe as f64);
        told.covered.count((low..=high).contains(&(many as f64)));
    })
}

/// How often a neighbour is named, or said not to be there.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeighbourCounts {
    pub named: Rate,
    pub quiet: Rate,
}

/// Half a minute of probes every 30 ms, 6 % of noise, of which a half lasts for about a second.
/// Other work runs for a share of the time, for about `lasts_s` each time, and loads then take
/// `slower` times longer.
pub fn heard(share: f64, slower: f64, lasts_s: f64, guests: usize, seed: u64) -> NeighbourCounts {
    let mut rng = Rng::with_seed(seed);
    let mut heard = NeighbourCounts::default();
    const EVERY_S: f64 = 0.03;
    for _ in 0..guests {
        let (mut there, mut until, mut wander) = (false, 0.0, 0.0);
        let moment = |at: usize| {
            let at_s = at as f64 * EVERY_S;
            if at_s >= until {
                there = share > 0.0 && (at > 0) && !there;
                let mean = if there { lasts_s } else { lasts_s * (1.0 - share) / share.max(1e-9) };
                until = at_s + mean.min(1e6) * (0.5 + 0.5 * exponential(&mut rng));
            }
            let keep = (-EVERY_S / 1.0f64).exp();
            wander = keep * wander + (1.0 - keep * keep).sqrt() * 0.01 * normal(&mut rng);
            let level = if there { slower } else { 1.0 };
            Moment {
                at_s,
                region: at / 2 % 16,
                load_ns: 120.0 * level * (wander + 0.06 * normal(&mut rng)).exp(),
            }
        };
        let moments: Vec<Moment> = (0..1000).map(moment).collect();
        let found = neighbour(&[moments]).filter(|found| found.blocks.len() >= MIN_BLOCKS);
        heard.named.count(found.as_ref().is_some_and(|found| found.is_named()));
        heard.quiet.count(found.as_ref().is_some_and(|found| found.is_quiet()));
    }
    heard
}

#[cfg(test)]
mod tests {
    use super::super::{REGION_FALSE_MOST, REGION_NAMED_LEAST};
    use super::*;

    #[test]
    fn causes_right_above_their_limits_are_named() {
        for (cause, size) in [(Cause::Translation, 14.0), (Cause::Distance, 1.25), (Cause::Transfer, 1.25)] {
            let named = planted(Host::USUAL, cause, size, 200, 1);
            assert!(
                named.right.share() >= REGION_NAMED_LEAST,
                "{cause:?}: {} right, {} wrong",
                named.right,
                named.wrong
            );
            let below = planted(Host::USUAL, cause, cause.nothing() + 0.4 * (size - cause.nothing()), 200, 2);
            assert!(
                below.right.share() < 0.3 && below.wrong.share() <= REGION_FALSE_MOST,
                "{cause:?}: {}",
                below.right
            );
        }
    }

    #[test]
    fn regions_that_are_alike_have_no_cause() {
        let named = alike(400, 3);
        assert!(named.wrong.share() <= REGION_FALSE_MOST, "{}", named.wrong);
    }

    #[test]
    fn neighbours_are_named_where_there_are_some() {
        let there = heard(0.35, 1.3, 1.0, 100, 4);
        assert!(there.named.share() >= REGION_NAMED_LEAST, "{}", there.named);
        let nobody = heard(0.0, 1.0, 1.0, 200, 5);
        assert!(nobody.named.hits == 0 && nobody.quiet.share() >= 0.9, "{} {}", nobody.named, nobody.quiet);
    }
}
