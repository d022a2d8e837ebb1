//! Are groups of CPUs and siblings found, and only those that there are? On hosts that never
//! were, whose truth is known.

use fastrand::Rng;

use super::{Rate, over, sums};
use stats::clusters::{Answer, clusters};
use stats::noise::normal;
use stats::pairs::Pairs;
use stats::siblings::siblings;

/// Which CPUs of a host share caches and cores, whatever its kernel reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One cache, no threads.
    Flat,
    /// Two groups of cores: caches, or packages.
    TwoGroups,
    /// Cores of two threads in one cache, numbered as firmware does: first threads first.
    Smt,
    /// The same in two packages.
    SmtTwoPackages,
    /// Two packages of two caches each.
    TwoPackagesOfTwo,
    /// A guest of a host with two groups, whose CPUs change places between passes.
    Floating,
    /// A guest in which any two CPUs get the time of one: a quota, or an overcommitted host.
    Quota,
}

impl Kind {
    /// Kinds that are hard to distinguish by transfers of lines.
    pub const BY_DISTANCE: [Kind; 6] = [
        Kind::Flat,
        Kind::TwoGroups,
        Kind::Smt,
        Kind::SmtTwoPackages,
        Kind::TwoPackagesOfTwo,
        Kind::Floating,
    ];
    /// Kinds that are hard to distinguish by slowdown.
    pub const BY_SLOWDOWN: [Kind; 3] = [Kind::Flat, Kind::Smt, Kind::Quota];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Flat => "one group",
            Kind::TwoGroups => "two groups",
            Kind::Smt => "SMT, one cache",
            Kind::SmtTwoPackages => "SMT, two packages",
            Kind::TwoPackagesOfTwo => "two packages of two caches",
            Kind::Floating => "floating",
            Kind::Quota => "a quota",
        }
    }

    /// Partitions of `cpus` CPUs, finest first, each as the group of every CPU.
    fn partitions(self, cpus: usize) -> Vec<Vec<usize>> {
        let cut = |groups: usize| (0..cpus).map(|cpu| cpu * groups / cpus).collect::<Vec<usize>>();
        let cores = || (0..cpus).map(|cpu| cpu % cpus.div_ceil(2)).collect::<Vec<usize>>();
        // Of siblings `c` and `c + n/2` both are on the package of `c`.
        let packages = || cores().iter().map(|core| core * 2 / cpus.div_ceil(2)).collect();
        match self {
            Kind::Flat | Kind::Quota => Vec::new(),
            Kind::TwoGroups | Kind::Floating => vec![cut(2)],
            Kind::Smt => vec![cores()],
            Kind::SmtTwoPackages => vec![cores(), packages()],
            Kind::TwoPackagesOfTwo => vec![cut(4), cut(2)],
        }
    }
}

/// A host and how it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guest {
    pub kind: Kind,
    pub cpus: usize,
    /// Relative scatter of a pass's value.
    pub noise: f64,
    /// Share of values during which other work took a CPU: 1.3–5 times as long.
    pub stolen: f64,
    pub visits: u32,
}

/// Places on a mesh differ by this (relative, one standard deviation), cores by that.
const MESH: f64 = 0.05;
const CORES: f64 = 0.02;

/// What was said of many hosts of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcomes {
    pub right: Rate,
    /// Nothing wrong, and not all that there is.
    pub part: Rate,
    pub cannot_tell: Rate,
    pub wrong: Rate,
}

sums!(Outcomes: right, part, cannot_tell, wrong);

impl Outcomes {
    fn count(&mut self, right: bool, part: bool, wrong: bool) {
        self.right.count(right);
        self.part.count(part);
        self.wrong.count(wrong);
        self.cannot_tell.count(!right && !part && !wrong);
    }
}

/// Groups the CPUs of this many such hosts by transfers of lines.
pub fn grouped(guest: Guest, trials: usize, seed: u64) -> Outcomes {
    over(trials, seed, |_, rng, told: &mut Outcomes| {
        let partitions = guest.kind.partitions(guest.cpus);
        let answer = clusters(&guest.transfers(rng)).answer;
        let (mut right, mut part, mut wrong) = (false, false, false);
        match answer {
            Answer::CannotTell(_) => {}
            // Two CPUs have nothing to be compared with.
            _ if guest.cpus == 2 => wrong = true,
            Answer::Floating(_) => {
                (right, wrong) = (guest.kind == Kind::Floating, guest.kind != Kind::Floating)
            }
            _ if guest.kind == Kind::Floating => wrong = true,
            Answer::One => (right, wrong) = (partitions.is_empty(), !partitions.is_empty()),
            Answer::Levels(levels) => {
                let truths: Vec<Vec<Vec<u32>>> = partitions.iter().map(|of| as_groups(of)).collect();
                wrong = levels.iter().any(|level| !truths.contains(&level.groups));
                right = !wrong && levels.len() == truths.len();
                part = !wrong && !right;
            }
        }
        told.count(right, part, wrong);
    })
}

fn as_groups(of: &[usize]) -> Vec<Vec<u32>> {
    let mut groups: Vec<(usize, Vec<u32>)> = Vec::new();
    for (group, cpu) in of.iter().zip(0..) {
        match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, cpus)) => cpus.push(cpu),
            None => groups.push((*group, vec![cpu])),
        }
    }
    groups.into_iter().map(|(_, cpus)| cpus).collect()
}

/// Searches the siblings of this many such hosts by slowdown.
pub fn paired(guest: Guest, trials: usize, seed: u64) -> Outcomes {
    over(trials, seed, |_, rng, told: &mut Outcomes| {
        let cores = guest.kind.partitions(guest.cpus);
        let share =
            |(one, other): (u32, u32)| cores.first().is_some_and(|of| of[one as usize] == of[other as usize]);
        let found = siblings(&guest.slowdowns(rng));
        let quota = guest.kind == Kind::Quota && (!found.siblings.is_empty() || !found.apart.is_empty());
        let wrong = quota
            || found.siblings.keys().any(|pair| !share(*pair))
            || found.apart.keys().any(|pair| share(*pair));
        let said = !found.siblings.is_empty() || !found.apart.is_empty();
        let right = !wrong && said && found.open.is_empty();
        told.count(right, !wrong && !right && said, wrong);
    })
}

/// More CPUs than this are measured in a sample of pairs.
const ALL_PAIRS: usize = 16;

impl Guest {
    fn scatter(&self, rng: &mut Rng) -> f64 {
        let stolen = if rng.f64() < self.stolen { 1.3 + 3.7 * rng.f64().powi(2) } else { 1.0 };
        stolen * (self.noise * normal(rng)).exp()
    }

    /// Transfers of lines between all pairs.
    fn transfers(&self, rng: &mut Rng) -> Pairs {
        let partitions = self.kind.partitions(self.cpus);
        // From the nearest level out; neighbouring levels are 1.6 to 4 times apart.
        let mut values = vec![match self.kind {
            Kind::Smt | Kind::SmtTwoPackages => 6.0 + 6.0 * rng.f64(),
            _ => 25.0 + 35.0 * rng.f64(),
        }];
        for _ in 0..partitions.len() {
            let last = values[values.len() - 1];
            values.push(last * (1.6 + 2.4 * rng.f64()));
        }
        let core: Vec<f64> = (0..self.cpus).map(|_| CORES * normal(rng)).collect();
        let mesh: Vec<f64> = (0..self.cpus * self.cpus).map(|_| MESH * normal(rng)).collect();
        let all_places = self.places(&partitions, rng);
        let mut pairs = Pairs::default();
        for (visit, places) in (0..self.visits).zip(&all_places) {
            let whole = (0.02 * normal(rng)).exp();
            for one in 0..self.cpus {
                for other in one + 1..self.cpus {
                    let (a, b) = (places[one], places[other]);
                    let level = partitions.iter().position(|of| of[a] == of[b]).unwrap_or(partitions.len());
                    let fixed = core[a] + core[b] + mesh[a.min(b) * self.cpus + a.max(b)];
                    let value = values[level] * fixed.exp() * whole * self.scatter(rng);
                    pairs.push((one as u32, other as u32), visit, value);
                }
            }
        }
        pairs
    }

    /// Where each CPU is in each pass. A floating CPU has moved to other groups in two passes or
    /// more: else nothing floated.
    fn places(&self, partitions: &[Vec<usize>], rng: &mut Rng) -> Vec<Vec<usize>> {
        let still: Vec<usize> = (0..self.cpus).collect();
        if self.kind != Kind::Floating || self.cpus < 4 {
            return vec![still; self.visits as usize];
        }
        loop {
            let mut places = still.clone();
            let all: Vec<Vec<usize>> = (0..self.visits)
                .map(|_| {
                    if rng.bool() {
                        rng.shuffle(&mut places);
                    }
                    places.clone()
                })
                .collect();
            let groups: Vec<Vec<Vec<u32>>> = all
                .iter()
                .map(|places| {
                    as_groups(&places.iter().map(|place| partitions[0][*place]).collect::<Vec<_>>())
                })
                .collect();
            let moved = |one: &Vec<Vec<u32>>| groups.iter().filter(|other| *other != one).count() >= 2;
            if groups.iter().all(moved) {
                return all;
            }
        }
    }

    /// Time together over time alone of each pair; of many CPUs a sample: siblings and others.
    fn slowdowns(&self, rng: &mut Rng) -> Pairs {
        let cores = self.kind.partitions(self.cpus);
        let shared = 1.4 + 0.6 * rng.f64();
        let usual = 1.0 + 0.05 * rng.f64();
        let mut chosen: Vec<(usize, usize)> =
            (0..self.cpus).flat_map(|one| (one + 1..self.cpus).map(move |other| (one, other))).collect();
        if self.cpus > ALL_PAIRS {
            rng.shuffle(&mut chosen);
            let share =
                |(one, other): &(usize, usize)| cores.first().is_some_and(|of| of[*one] == of[*other]);
            let (near, far): (Vec<_>, Vec<_>) = chosen.into_iter().partition(share);
            chosen = near.into_iter().take(24).chain(far.into_iter().take(48)).collect();
        }
        let mut pairs = Pairs::default();
        for visit in 0..self.visits {
            for (one, other) in &chosen {
                let truth = match () {
                    () if self.kind == Kind::Quota => 1.7 + 0.3 * rng.f64(),
                    () if cores.first().is_some_and(|of| of[*one] == of[*other]) => shared,
                    () => usual,
                };
                // Other work affects the time alone as well as the time together.
                let alone = if rng.f64() < self.stolen { 1.3 + 3.7 * rng.f64().powi(2) } else { 1.0 };
                pairs.push((*one as u32, *other as u32), visit, truth * self.scatter(rng) / alone);
            }
        }
        pairs
    }
}
