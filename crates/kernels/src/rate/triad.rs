//! Three arrays; each becomes the sum of one and a multiple of the other, round-robin.
//!
//! The triad of STREAM (McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
//! Computers", 1995), with the arrays' parts exchanged: `a = b + s c`, `b = c + s a`, `c = a + s
//! b`. So every element follows the recurrence x[n] = x[n - 2] + s x[n - 1], which has a closed
//! form. 503.bwaves and 519.lbm are bound by the same.
use super::{Character, Checksum, Component, Rng, Work, ids, near};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, bail};
use sys::block::{Arena, Block};
use sys::steps::Steps;

pub(super) const COMPONENT: Component = Component {
    id: ids::TRIAD,
    title: "Memory triad",
    about: "STREAM's triad, a = b + s c, through three arrays that fill the footprint. Each array is the destination \
            in one of three passes.",
    reading: "Bytes a second as STREAM counts them; more is better. An element counts 24 bytes, though caches that \
              allocate on stores move 32. It is built to need memory bandwidth and nothing else. The column \"bound by\" of a \
              run names the actual limit.",
    method: "Every element must have the bits of its recurrence, which must agree with its closed form. The checksum \
             covers all three arrays.",
    source: file!(),
    character: Character::Bandwidth,
    units: "bytes",
    reference: 24500.0,
    expected_checksum: 0x4f09_9199_07ac_83d2,
    make,
};

/// Of three triads each.
const ROUNDS: usize = 10;
const FACTOR: f64 = 0.25;
/// Number of different initial elements, which repeat.
const PATTERN: usize = 1024;

#[inline(always)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for (a, (b, c)) in a.iter_mut().zip(b.iter().zip(c)) {
        *a = b + FACTOR * c;
    }
}

struct Triad {
    arrays: [Block<f64>; 3],
    patterns: [Vec<f64>; 3],
    steps: Steps,
}

fn make(arena: &mut Arena) -> Result<Box<dyn Work>> {
    let count = usize::try_from(arena.bytes.saturating_sub(3 * 8 * PATTERN as u64) / 24)?;
    if count < PATTERN {
        bail!("a triad needs at least 64 KiB; the arena has {} bytes", arena.bytes);
    }
    let mut rng = Rng(0x7);
    let patterns = [0, 1, 2].map(|_| (0..PATTERN).map(|_| rng.unit()).collect());
    let arrays = [arena.f64s(count)?, arena.f64s(count)?, arena.f64s(count)?];
    let mut triad = Triad { arrays, patterns, steps: arena.steps.clone() };
    triad.reset();
    Ok(Box::new(triad))
}

impl Triad {
    #[inline(always)]
    fn reset(&mut self) {
        for (array, pattern) in self.arrays.iter_mut().zip(&self.patterns) {
            for part in array.chunks_mut(PATTERN) {
                part.copy_from_slice(&pattern[..part.len()]);
            }
        }
    }
    #[inline(always)]
    fn work(&mut self) {
        self.reset();
        let [a, b, c] = &mut self.arrays;
        for _ in 0..ROUNDS {
            triad(a, b, c);
            triad(b, c, a);
            triad(c, a, b);
            self.steps.end_one();
        }
    }
}

/// x[n] from x[0] and x[1] by the roots of r² = 1 + s r.
fn closed(first: f64, second: f64, n: i32) -> f64 {
    let root = (FACTOR * FACTOR / 4.0 + 1.0).sqrt();
    let (up, down) = (FACTOR / 2.0 + root, FACTOR / 2.0 - root);
    ((second - first * down) * up.powi(n) + (first * up - second) * down.powi(n)) / (up - down)
}

impl Work for Triad {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.work(),
        );
    }
    fn units(&self) -> u64 {
        (self.arrays[0].len() * ROUNDS * 3 * 24) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let [mut a, mut b, mut c] = self.patterns.clone();
        for at in 0..PATTERN {
            let (first, second) = (b[at], c[at]);
            for _ in 0..ROUNDS {
                a[at] = b[at] + FACTOR * c[at];
                b[at] = c[at] + FACTOR * a[at];
                c[at] = a[at] + FACTOR * b[at];
            }
            for (value, n) in [(a[at], 2), (b[at], 1), (c[at], 0)] {
                let right = closed(first, second, 3 * ROUNDS as i32 + 1 - n);
                if !near(value, right, 1e-12 * right) {
                    return Err(format!("pattern element {at} is {value}, not {right}"));
                }
            }
        }
        let mut sum = Checksum::new();
        for (array, right) in self.arrays.iter().zip([a, b, c]) {
            for (number, part) in array.chunks(PATTERN).enumerate() {
                if let Some(at) = part.iter().zip(&right).position(|(value, right)| value != right) {
                    let element = number * PATTERN + at;
                    return Err(format!("element {element} is {}, not {}", part[at], right[at]));
                }
            }
            sum.f64s(array);
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        (3 * self.arrays[0].len() + 3 * PATTERN) as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_form() {
        let (mut x, mut y) = (0.3, 0.7);
        for n in 0..40 {
            assert!(near(closed(0.3, 0.7, n), x, 1e-12 * x));
            (x, y) = (y, x + FACTOR * y);
        }
    }

    #[test]
    fn notices_faults() -> Result<(), String> {
        let patterns = [1.0, 2.0, 3.0].map(|first| (0..PATTERN).map(|at| first + at as f64).collect());
        let mut arena = Arena::new(0);
        let arrays = [0; 3].map(|_| arena.f64s(5000).expect("arena"));
        let mut triad = Triad { arrays, patterns, steps: Steps::default() };
        triad.iterate();
        let right = triad.verify()?;
        for (array, at, bit) in [(0, 0, 0), (1, 4999, 1), (2, 1024, 40), (0, 3000, 63)] {
            let value = &mut triad.arrays[array][at];
            *value = f64::from_bits(value.to_bits() ^ (1 << bit));
            assert!(triad.verify().is_err());
            triad.iterate();
            assert_eq!(triad.verify(), Ok(right));
        }
        triad.work();
        assert_eq!(triad.verify(), Ok(right), "without wide vectors");
        Ok(())
    }

    #[test]
    fn fills_the_arena() -> Result<()> {
        for bytes in [1 << 20, 16 << 20, (17 << 20) + 12345] {
            let used = make(&mut Arena::new(bytes))?.bytes();
            assert!(used <= bytes && used * 10 > bytes * 9);
        }
        assert!(make(&mut Arena::new(1 << 14)).is_err());
        Ok(())
    }
}
