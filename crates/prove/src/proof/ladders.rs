//! Are the levels of a latency ladder read off rightly? On hosts that never were, whose truth is
//! known.

use fastrand::Rng;

use super::{Rate, over};
use stats::noise::normal;
use stats::steps::{Step, Steps, steps};

/// How the latency changes from one level of the cache to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transition {
    /// The oldest line goes: beyond its size everything misses.
    Oldest,
    /// Lines are replaced at random: a line stays until its next use by chance.
    Random,
    /// A part of the block stays.
    Share,
    /// Sets of a cache by hashed addresses, or others' use of it, blur its size by this much.
    Blurred(f64),
}

impl Transition {
    /// Share of hits in a walk over `x` times the cache's size.
    fn hits(self, x: f64) -> f64 {
        match self {
            _ if x <= 1.0 && !matches!(self, Transition::Blurred(_)) => 1.0,
            Transition::Oldest => 0.0,
            Transition::Random => {
                // Each miss in the meantime evicts it with a chance of one in the cache's lines.
                (0..200).fold(0.5, |hits: f64, _| (-(1.0 - hits) * x).exp())
            }
            Transition::Share => 1.0 / x,
            Transition::Blurred(width) => 1.0 / (1.0 + (x.ln() / (width / 2.0)).exp()),
        }
    }
}

/// A machine: sizes of its caches and the latency of each and of memory, and how its ladder is
/// measured.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    pub sizes: Vec<f64>,
    pub latencies: Vec<f64>,
    pub transitions: Vec<Transition>,
    /// Relative noise of a point.
    pub noise: f64,
    pub per_octave: u32,
    /// The largest block.
    pub end: f64,
    /// Rise of the last cache's level and of memory's with each doubling: far slices, address
    /// translation.
    pub slope: f64,
}

impl Hierarchy {
    /// A server, or a guest on one, as they come: two to four levels, the last one between a
    /// guest's share and the cache of a whole package, a ladder that ends at twice that or later.
    pub fn draw(rng: &mut Rng, per_octave: u32, noise: f64) -> Hierarchy {
        let pick = |rng: &mut Rng, from: &[f64]| from[rng.usize(..from.len())];
        let kib = 1024.0;
        let l1 = pick(rng, &[32.0, 48.0, 64.0, 128.0]) * kib;
        let l2 = pick(rng, &[256.0, 512.0, 1024.0, 1280.0, 2048.0, 4096.0]).max(4.0 * l1 / kib) * kib;
        let levels = rng.usize(2..=4);
        // A victim cache adds the level before it.
        let l3 = l2 * (2.5 + 45.0 * rng.f64().powi(2)) + if rng.bool() { l2 } else { 0.0 };
        let sizes: Vec<f64> = [l1, l2, l3, l3 * (4.0 + 8.0 * rng.f64())].into_iter().take(levels).collect();
        let mut latencies = vec![1.0 + 0.8 * rng.f64()];
        for _ in 1..levels {
            let last = latencies[latencies.len() - 1];
            latencies.push(last * (2.3 + 2.0 * rng.f64()));
        }
        let last = latencies[latencies.len() - 1];
        latencies.push(last * (1.7 + 3.0 * rng.f64()));
        let transition = |_| match rng.usize(..4) {
            0 => Transition::Oldest,
            1 => Transition::Random,
            2 => Transition::Share,
            _ => Transition::Blurred(0.02 + 0.18 * rng.f64()),
        };
        let transitions = (0..levels).map(transition).collect();
        let end = sizes[levels - 1] * (2.0 + 6.0 * rng.f64());
        let slope = 0.03 * rng.f64();
        Hierarchy { sizes, latencies, transitions, noise, per_octave, end, slope }
    }

    /// Memory's latency, as the end of the ladder has it.
    pub fn memory(&self) -> f64 {
        self.latencies[self.sizes.len()] * self.far(self.end)
    }

    fn far(&self, size: f64) -> f64 {
        let last_but_one = self.sizes[self.sizes.len().saturating_sub(2)];
        1.0 + self.slope * (size / last_but_one).log2().max(0.0)
    }

    /// Its ladder as it would be measured.
    pub fn ladder(&self, rng: &mut Rng) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        let mut octave = 4096.0;
        while octave < self.end {
            let steps = (0..self.per_octave)
                .map(|step| octave * (1.0 + f64::from(step) / f64::from(self.per_octave)));
            points.extend(steps.filter(|size| *size <= self.end));
            octave *= 2.0;
        }
        let value = |size: f64| {
            let mut latency = self.latencies[0];
            for (level, at) in self.sizes.iter().enumerate() {
                let misses = 1.0 - self.transitions[level].hits(size / at);
                latency += misses * (self.latencies[level + 1] - self.latencies[level]);
            }
            latency * self.far(size)
        };
        points.into_iter().map(|size| (size, value(size) * (self.noise * normal(rng)).exp())).collect()
    }
}

/// Wrong claims of a last cache's size, as factors of the true one.
pub const CLAIMS: [f64; 4] = [0.25, 0.5, 2.0, 4.0];

/// What reading many ladders gave.
#[derive(Clone, Debug, Default)]
pub struct Ladders {
    /// As many levels as there are.
    pub counted: Rate,
    /// Of all caches: a step within a factor of 2; of these: the size agrees with its bounds, and
    /// the estimate is off by less than 20 %.
    pub found: Rate,
    pub bounded: Rate,
    pub near: Rate,
    /// The end of the ladder shows memory; of these: its latency is within 10 % of the truth there.
    pub settled: Rate,
    pub memory: Rate,
    /// The last cache's true size does not agree: a false alarm.
    pub last_wrong: Rate,
    /// A claim of a quarter, half, twice and four times the last cache's size is found to be wrong.
    pub claims: [Rate; 4],
}

/// Reads the ladders of this many hosts.
pub fn ladders(per_octave: u32, noise: f64, trials: usize, seed: u64) -> Ladders {
    over(trials, seed, |_, rng, seen: &mut Ladders| {
        let machine = Hierarchy::draw(rng, per_octave, noise);
        let points = machine.ladder(rng);
        let Some(read) = steps(&points) else { return };
        score(&machine, &read, seen);
    })
}

fn score(machine: &Hierarchy, read: &Steps, seen: &mut Ladders) {
    seen.counted.count(read.steps.len() == machine.sizes.len());
    for size in &machine.sizes {
        let nearest = read.steps.iter().min_by(|one, other| {
            let distance = |step: &Step| (step.at / size).ln().abs();
            distance(one).total_cmp(&distance(other))
        });
        let nearest = nearest.filter(|step| (step.at / size).ln().abs() < 2f64.ln());
        seen.found.count(nearest.is_some());
        if let Some(step) = nearest {
            seen.bounded.count(step.agrees(*size));
            seen.near.count((step.at / size).ln().abs() < 1.2f64.ln());
        }
    }
    let (Some(size), Some(last)) = (machine.sizes.last(), read.steps.last()) else { return };
    seen.last_wrong.count(!last.agrees(*size));
    for (rate, factor) in seen.claims.iter_mut().zip(CLAIMS) {
        rate.count(!last.agrees(factor * size));
    }
    seen.settled.count(read.settled);
    if let Some(memory) = read.last() {
        seen.memory.count((memory / machine.memory()).ln().abs() < 1.1f64.ln());
    }
}
