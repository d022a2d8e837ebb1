//! Conjugate gradients on a sparse matrix: streams of entries, each with a load from where its
//! column says.
//!
//! The method of Hestenes & Stiefel ("Methods of Conjugate Gradients for Solving Linear
//! Systems", 1952) on compressed sparse rows, in the manner of HPCG (Dongarra, Heroux &
//! Luszczek, "High-performance conjugate-gradient benchmark", 2016): every point of a box is
//! coupled to the 26 around it, and, as in NPB's CG (Bailey et al., "The NAS Parallel
//! Benchmarks", 1991), to a far one at random, which no prefetcher finds. It resembles what
//! 503.bwaves, 554.roms and 510.parest spend their time in.
//!
//! The matrix is the identity plus the Laplacian of a graph with random weights: symmetric, each
//! row and column adds up to 1, and no eigenvalue is below 1. So the error is never greater than
//! the residual.
use super::{Character, Checksum, Component, Rng, Work, ids, near};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, bail};
use sys::block::{Arena, Block};
use sys::steps::Steps;

pub(super) const COMPONENT: Component = Component {
    id: ids::SPARSE,
    title: "Sparse conjugate gradients",
    about: "Runs 15 iterations of conjugate gradients on a sparse symmetric matrix with 27 neighbours and one far \
            entry in each row.",
    reading: "Million matrix entries multiplied and added a second; more is better. Each is 12 bytes of a stream and \
              an indexed load. It is built to need memory bandwidth first, then low latency for the far entries. The column \
              \"bound by\" of a run names the actual limit.",
    method: "The solution is known. Rows must add up to 1, and the residual must be as small as theory promises and \
             equal the recurrence's. The error must not exceed it, and sums must be conserved. The checksum covers \
             solution and residual.",
    source: file!(),
    character: Character::Bandwidth,
    units: "matrix entries",
    reference: 612.0,
    expected_checksum: 0x0d07_edc4_f3de_9878,
    make: |arena| Ok(Box::new(System::new(arena, sides(arena.bytes)?)?)),
};

const ITERATIONS: usize = 15;
const LANES: usize = 8;
/// 28 entries of 12 bytes, its start, and five vectors.
const ROW_BYTES: u64 = 28 * 12 + 8 + 5 * 8;

/// A permutation of `0..count`: multiplications and shifts of numbers with enough bits, repeated
/// until the result is below `count`.
struct Shuffle {
    count: u64,
    mask: u64,
    half: u32,
}

const FACTORS: [u64; 3] = [0xd129_0d3f_9a3a_5c4d, 0x9e6c_63d0_876a_68d5, 0xa076_1d64_78bd_642f];

impl Shuffle {
    fn new(count: u64) -> Shuffle {
        let mask = count.next_power_of_two() - 1;
        Shuffle { count, mask, half: mask.count_ones().div_ceil(2) }
    }
    fn forth(&self, mut at: u64) -> u64 {
        loop {
            for factor in FACTORS {
                at = (at ^ (at >> self.half)).wrapping_mul(factor) & self.mask;
            }
            if at < self.count {
                return at;
            }
        }
    }
    fn back(&self, mut at: u64) -> u64 {
        loop {
            for factor in FACTORS.iter().rev() {
                // Newton's iteration doubles the bits that are right: 3, 6, 12, 24, 48, 96.
                let inverse = (0..5).fold(*factor, |inverse, _| {
                    inverse.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(inverse)))
                });
                at = at.wrapping_mul(inverse) & self.mask;
                at ^= at >> self.half;
            }
            if at < self.count {
                return at;
            }
        }
    }
    /// The point that is coupled to `at`; all points are paired.
    fn partner(&self, at: u64) -> u64 {
        self.back(self.forth(at) ^ 1)
    }
}

/// The weight between two points in either order, 0.5 to 1.5.
fn weight(one: u64, other: u64) -> f64 {
    Rng((one.min(other) << 32) ^ one.max(other)).unit() + 0.5
}

/// The solution at a point, in -0.5 to 0.5.
fn solution(row: usize) -> f64 {
    Rng(!(row as u64)).unit() - 0.5
}

/// `y = A x`.
#[inline(always)]
fn multiply(starts: &[u64], columns: &[u32], values: &[f64], x: &[f64], y: &mut [f64]) {
    let mut begin = 0;
    for (y, &end) in y.iter_mut().zip(starts) {
        let row = begin..end as usize;
        begin = end as usize;
        let mut sum = 0.0;
        for (&column, &value) in columns[row.clone()].iter().zip(&values[row]) {
            sum += value * x[column as usize];
        }
        *y = sum;
    }
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[lane] += a * b;
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

/// `y = y + factor x`.
#[inline(always)]
fn add(y: &mut [f64], factor: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}

struct System {
    /// Where each row ends.
    ends: Block<u64>,
    columns: Block<u32>,
    values: Block<f64>,
    right: Block<f64>,
    x: Block<f64>,
    residual: Block<f64>,
    direction: Block<f64>,
    product: Block<f64>,
    /// An upper bound of the eigenvalues by Gershgorin's circles; the smallest eigenvalue is 1.
    greatest: f64,
    steps: Steps,
}

/// The sides of the largest box that fits into `bytes`.
fn sides(bytes: u64) -> Result<[u64; 3]> {
    let rows = bytes / ROW_BYTES;
    if rows < 1000 {
        bail!("a sparse matrix needs at least 1 MiB; the arena has {bytes} bytes");
    }
    let x = (1..).take_while(|side| side * side * side <= rows).count() as u64 / 2 * 2;
    let y = (rows / x).isqrt();
    Ok([x, y, rows / x / y])
}

impl System {
    fn new(arena: &mut Arena, [nx, ny, nz]: [u64; 3]) -> Result<System> {
        let count = nx * ny * nz;
        if u32::try_from(count).is_err() {
            bail!("a sparse matrix has at most 2^32 rows");
        }
        let entries = usize::try_from((3 * nx - 2) * (3 * ny - 2) * (3 * nz - 2) + count)?;
        let rows = usize::try_from(count)?;
        let mut system = System {
            ends: arena.u64s(rows)?,
            columns: arena.u32s(entries)?,
            values: arena.f64s(entries)?,
            right: arena.f64s(rows)?,
            x: arena.f64s(rows)?,
            residual: arena.f64s(rows)?,
            direction: arena.f64s(rows)?,
            product: arena.f64s(rows)?,
            greatest: 0.0,
            steps: arena.steps.clone(),
        };
        let shuffle = Shuffle::new(count);
        let mut filled = 0;
        for (row, end) in system.ends.iter_mut().enumerate() {
            let at = row as u64;
            let (x, y, z) = (at % nx, at / nx % ny, at / nx / ny);
            let (first, mut diagonal) = (filled, 1.0);
            let mut own = first;
            let mut put = |column: u64| {
                let value = if column == at { 0.0 } else { weight(at, column) };
                own = if column == at { filled } else { own };
                (system.columns[filled], system.values[filled]) = (column as u32, -value);
                diagonal += value;
                filled += 1;
            };
            for z in z.saturating_sub(1)..nz.min(z + 2) {
                for y in y.saturating_sub(1)..ny.min(y + 2) {
                    (x.saturating_sub(1)..nx.min(x + 2)).for_each(|x| put((z * ny + y) * nx + x));
                }
            }
            put(shuffle.partner(at));
            system.values[own] = diagonal;
            system.greatest = system.greatest.max(2.0 * diagonal - 1.0);
            *end = filled as u64;
        }
        for (row, value) in system.direction.iter_mut().enumerate() {
            *value = solution(row);
        }
        multiply(&system.ends, &system.columns, &system.values, &system.direction, &mut system.right);
        Ok(system)
    }
    #[inline(always)]
    fn solve(&mut self) {
        let System { ends, columns, values, right, x, residual, direction, product, steps, .. } = self;
        x.fill(0.0);
        residual.copy_from_slice(right);
        direction.copy_from_slice(right);
        let mut square = dot(residual, residual);
        for _ in 0..ITERATIONS {
            multiply(ends, columns, values, direction, product);
            let step = square / dot(direction, product);
            add(x, step, direction);
            add(residual, -step, product);
            let was = std::mem::replace(&mut square, dot(residual, residual));
            let share = square / was;
            for (direction, residual) in direction.iter_mut().zip(residual.iter()) {
                *direction = residual + share * *direction;
            }
            steps.end_one();
        }
    }
}

impl Work for System {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.solve(),
        );
    }
    fn units(&self) -> u64 {
        (self.values.len() * ITERATIONS) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let mut begin = 0;
        let (mut drift, mut left, mut error, mut size) = (0.0, 0.0, 0.0, 0.0);
        let (mut sum_right, mut sum_solution, mut sum_x, mut sum_residual) = (0.0, 0.0, 0.0, 0.0);
        for (row, &end) in self.ends.iter().enumerate() {
            let (mut total, mut rest) = (0.0, self.right[row]);
            for entry in begin..end as usize {
                total += self.values[entry];
                rest -= self.values[entry] * self.x[self.columns[entry] as usize];
            }
            begin = end as usize;
            if !near(total, 1.0, 1e-12) {
                return Err(format!("row {row} of the matrix adds up to {total}, not 1"));
            }
            let solution = solution(row);
            drift += (rest - self.residual[row]) * (rest - self.residual[row]);
            left += rest * rest;
            error += (self.x[row] - solution) * (self.x[row] - solution);
            size += self.right[row] * self.right[row];
            sum_right += self.right[row];
            sum_solution += solution;
            sum_x += self.x[row];
            sum_residual += self.residual[row];
        }
        // The error falls by at least the Chebyshev polynomials' share in each iteration, in the
        // energy norm.
        let root = self.greatest.sqrt();
        let promised = 2.0 * root * ((root - 1.0) / (root + 1.0)).powi(ITERATIONS as i32);
        let (drift, left, size) = (f64::sqrt(drift), f64::sqrt(left), f64::sqrt(size));
        if !near(drift, 0.0, 1e-12 * size) {
            return Err(format!("the residual differs from its recurrence by {drift} (size {size})"));
        }
        if !(near(left, 0.0, promised * size) && near(f64::sqrt(error), 0.0, left * (1.0 + 1e-6))) {
            return Err(format!("residual {left} and error {} exceed {}", f64::sqrt(error), promised * size));
        }
        let slack = 1e-11 * size * (self.x.len() as f64).sqrt();
        if !(near(sum_right, sum_solution, slack) && near(sum_x + sum_residual, sum_right, slack)) {
            return Err(format!(
                "the sums {sum_right}, {sum_solution} and {sum_x} with {sum_residual} differ"
            ));
        }
        let mut sum = Checksum::new();
        sum.f64s(&self.x);
        sum.f64s(&self.residual);
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        self.values.len() as u64 * 12 + self.x.len() as u64 * 48
    }
}

#[cfg(test)]
mod tests;
