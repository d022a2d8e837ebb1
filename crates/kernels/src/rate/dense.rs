//! `dense`: systems of linear equations by LU factorisation with partial pivoting.
//!
//! What LINPACK and HPL do (J. Dongarra, P. Luszczek & A. Petitet, "The LINPACK benchmark: past,
//! present and future", 2003), by the recursive algorithm of S. Toledo, "Locality of reference in
//! LU decomposition with partial pivoting", 1997: halve the columns, factor the left half, update
//! the right, factor it. Nearly all the work is then a matrix product, packed and register-blocked
//! as K. Goto & R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008,
//! describe. No component of SPEC CPU2017 rate is it by itself; the linear algebra under
//! 607.cactuBSSN, 627.cam4 and most of scientific computing is. Each system is checked by HPL's
//! scaled residual.
use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, ensure};
use sys::block::{Arena, Block};

pub(super) const COMPONENT: Component = Component {
    id: ids::DENSE,
    title: "Dense linear equations by LU factorisation",
    about: "Solves 144 systems of 512 linear equations by recursive LU factorisation with partial pivoting. Most \
            time is a register-blocked matrix product.",
    reading: "Million multiply-and-add pairs a second; more is better. The width of the vector units and their clock \
              under full load decide. The data stays in L2 and L3.",
    method: "Every solution is checked by HPL's scaled residual, and all its bits are in the checksum. It uses 6 MB \
             at any footprint.",
    source: file!(),
    character: Character::FloatingPoint,
    units: "multiply-adds",
    reference: 16200.0,
    expected_checksum: 0x55ef1790bcebbb9a,
    make: |arena| Ok(Box::new(Dense::new(arena)?)),
};

const ORDER: usize = 512;
/// Distance between columns, elements: not a power of two, which would use few sets of the caches.
const STRIDE: usize = ORDER + 8;
const SYSTEMS: usize = 144;
/// A tile of the product is TALL by ACROSS; PANEL columns are factored one by one.
const TALL: usize = 8;
const ACROSS: usize = 8;
const PANEL: usize = 8;
const SEED: u64 = 0xde45_e000_0000_0004;
/// HPL's limit.
const LIMIT: f64 = 16.0;

type Tile = [[f64; TALL]; ACROSS];

/// Packed parts of the factors of a product.
struct Packs {
    left: Vec<f64>,
    right: Vec<f64>,
}

/// A tile of the product, summed in the order of the depth.
#[inline(always)]
fn tile(left: &[f64], right: &[f64]) -> Tile {
    let mut sum = [[0.0; TALL]; ACROSS];
    for (left, right) in left.as_chunks::<TALL>().0.iter().zip(right.as_chunks::<ACROSS>().0) {
        for (sum, right) in sum.iter_mut().zip(right) {
            for (sum, left) in sum.iter_mut().zip(left) {
                *sum += left * right;
            }
        }
    }
    sum
}

/// Subtracts a product from the block of `a` (by columns) at `rows` and `columns`: the block to its
/// left in columns `deep` times the block above it in rows `deep`.
#[inline(always)]
fn update(a: &mut [f64], packs: &mut Packs, rows: [usize; 2], deep: [usize; 2], columns: [usize; 2]) {
    let (depth, tall) = (deep[1] - deep[0], rows[1] - rows[0]);
    let left = &mut packs.left[..tall * depth];
    for (k, column) in a[deep[0] * STRIDE..deep[1] * STRIDE].chunks_exact(STRIDE).enumerate() {
        let strips = column[rows[0]..rows[1]].as_chunks::<TALL>().0;
        for (strip, values) in left.chunks_exact_mut(depth * TALL).zip(strips) {
            strip[k * TALL..][..TALL].copy_from_slice(values);
        }
    }
    for four in a[columns[0] * STRIDE..columns[1] * STRIDE].chunks_exact_mut(ACROSS * STRIDE) {
        let right = &mut packs.right[..depth * ACROSS];
        for (j, column) in four.chunks_exact(STRIDE).enumerate() {
            for (value, right) in column[deep[0]..deep[1]].iter().zip(right.chunks_exact_mut(ACROSS)) {
                right[j] = *value;
            }
        }
        for (strip, left) in left.chunks_exact(depth * TALL).enumerate() {
            let sum = tile(left, right);
            for (column, sum) in four.chunks_exact_mut(STRIDE).zip(&sum) {
                let to = &mut column[rows[0] + strip * TALL..][..TALL];
                for (to, sum) in to.iter_mut().zip(sum) {
                    *to -= sum;
                }
            }
        }
    }
}

/// The index of the first value of the largest magnitude.
#[inline(always)]
fn pivot(values: &[f64]) -> usize {
    let (eights, rest) = values.as_chunks::<TALL>();
    let mut most = [0.0f64; TALL];
    for eight in eights {
        for (most, value) in most.iter_mut().zip(eight) {
            *most = if value.abs() > *most { value.abs() } else { *most };
        }
    }
    let most = most.iter().chain(rest).fold(0.0, |most: f64, value| most.max(value.abs()));
    values.iter().position(|value| value.abs() == most).unwrap_or(0)
}

/// to -= factor * from.
#[inline(always)]
fn subtract(to: &mut [f64], from: &[f64], factor: f64) {
    for (to, from) in to.iter_mut().zip(from) {
        *to -= factor * from;
    }
}

/// Factors PANEL columns from `first` on and exchanges the rows of all other columns accordingly.
#[inline(always)]
fn panel(a: &mut [f64], pivots: &mut [usize], first: usize) {
    let (before, rest) = a.split_at_mut(first * STRIDE);
    let (own, after) = rest.split_at_mut(PANEL * STRIDE);
    for j in 0..PANEL {
        let row = first + j;
        let found = row + pivot(&own[j * STRIDE..][row..ORDER]);
        pivots[row] = found;
        own.chunks_exact_mut(STRIDE).for_each(|column| column.swap(row, found));
        let (done, later) = own.split_at_mut((j + 1) * STRIDE);
        let column = &mut done[j * STRIDE..][row..ORDER];
        let inverse = 1.0 / column[0];
        column[1..].iter_mut().for_each(|value| *value *= inverse);
        for next in later.chunks_exact_mut(STRIDE) {
            let next = &mut next[row..ORDER];
            let factor = next[0];
            subtract(&mut next[1..], &column[1..], factor);
        }
    }
    for column in before.chunks_exact_mut(STRIDE).chain(after.chunks_exact_mut(STRIDE)) {
        for (j, found) in pivots[first..first + PANEL].iter().enumerate() {
            column.swap(first + j, *found);
        }
    }
}

/// Replaces `rows` of the columns by those of the upper factor: solves with the unit lower factor
/// to their left.
#[inline(always)]
fn upper(a: &mut [f64], packs: &mut Packs, rows: [usize; 2], columns: [usize; 2]) {
    let count = (rows[1] - rows[0]) / PANEL;
    for done in 1..=count {
        let mid = rows[0] + done * PANEL;
        let top = mid - PANEL;
        let (left, right) = a.split_at_mut(columns[0] * STRIDE);
        let mut factors = [[0.0; PANEL]; PANEL];
        for (factors, column) in factors.iter_mut().zip(left[top * STRIDE..].chunks_exact(STRIDE)) {
            factors.copy_from_slice(&column[top..mid]);
        }
        for column in right[..(columns[1] - columns[0]) * STRIDE].chunks_exact_mut(STRIDE) {
            let values = &mut column[top..mid];
            for (j, factors) in factors.iter().enumerate() {
                let factor = values[j];
                subtract(&mut values[j + 1..], &factors[j + 1..], factor);
            }
        }
        if done < count {
            let size = PANEL << done.trailing_zeros();
            update(a, packs, [mid, mid + size], [mid - size, mid], columns);
        }
    }
}

/// Factors the matrix by Toledo's algorithm without recursion: after `done` panels, as many columns
/// as the lowest set bit of `done` counts update as many to their right.
#[inline(always)]
fn factor(a: &mut [f64], packs: &mut Packs, pivots: &mut [usize]) {
    for done in 1..=ORDER / PANEL {
        let mid = done * PANEL;
        panel(a, pivots, mid - PANEL);
        if mid < ORDER {
            let size = PANEL << done.trailing_zeros();
            let columns = [mid, mid + size];
            upper(a, packs, [mid - size, mid], columns);
            update(a, packs, [mid, ORDER], [mid - size, mid], columns);
        }
    }
}

/// Solves with the factors, in place.
#[inline(always)]
fn solve(a: &[f64], pivots: &[usize], x: &mut [f64]) {
    for (row, found) in pivots.iter().enumerate() {
        x.swap(row, *found);
    }
    for (j, column) in a.chunks_exact(STRIDE).enumerate() {
        let factor = x[j];
        subtract(&mut x[j + 1..], &column[j + 1..ORDER], factor);
    }
    for (j, column) in a.chunks_exact(STRIDE).enumerate().rev() {
        x[j] /= column[j];
        let factor = x[j];
        subtract(&mut x[..j], &column[..j], factor);
    }
}

struct Dense {
    /// Random numbers; every system takes its ORDER columns and its right-hand side from them.
    pool: Block<f64>,
    a: Block<f64>,
    packs: Packs,
    pivots: Vec<usize>,
    /// Solutions.
    x: Vec<f64>,
}

/// Columns of a system and then its right-hand side.
#[inline(always)]
fn system(pool: &[f64], index: usize) -> &[f64] {
    &pool[index * TALL..][..(ORDER + 1) * ORDER]
}

impl Dense {
    fn new(arena: &mut Arena) -> Result<Dense> {
        let mut made = Dense {
            pool: arena.f64s((ORDER + 1) * ORDER + SYSTEMS * TALL)?,
            a: arena.f64s(ORDER * STRIDE)?,
            packs: Packs { left: vec![0.0; ORDER * ORDER / 2], right: vec![0.0; ORDER / 2 * ACROSS] },
            pivots: vec![0; ORDER],
            x: vec![0.0; SYSTEMS * ORDER],
        };
        ensure!(
            made.bytes() <= arena.bytes,
            "dense needs {} bytes; the arena has {}",
            made.bytes(),
            arena.bytes
        );
        let mut rng = Rng(SEED);
        made.pool.fill_with(|| rng.unit() - 0.5);
        Ok(made)
    }

    #[inline(always)]
    fn work(&mut self) {
        let Dense { pool, a, packs, pivots, x } = self;
        for (index, x) in x.chunks_exact_mut(ORDER).enumerate() {
            let (matrix, right) = system(pool, index).split_at(ORDER * ORDER);
            for (to, from) in a.chunks_exact_mut(STRIDE).zip(matrix.chunks_exact(ORDER)) {
                to[..ORDER].copy_from_slice(from);
            }
            x.copy_from_slice(right);
            factor(a, packs, pivots);
            solve(a, pivots, x);
        }
    }
}

/// HPL's scaled residual of a system's solution.
fn residual(matrix: &[f64], right: &[f64], x: &[f64]) -> f64 {
    let (mut left, mut rows) = (right.to_vec(), vec![0.0; right.len()]);
    for (column, x) in matrix.chunks_exact(right.len()).zip(x) {
        subtract(&mut left, column, *x);
        rows.iter_mut().zip(column).for_each(|(row, value)| *row += value.abs());
    }
    // A NaN counts as infinite.
    let most = |values: &[f64]| {
        values.iter().fold(0.0, |most: f64, v| if v.is_nan() { f64::INFINITY } else { most.max(v.abs()) })
    };
    let scale = f64::EPSILON * (most(&rows) * most(x) + most(right)) * right.len() as f64;
    if scale.is_finite() { most(&left) / scale } else { f64::INFINITY }
}

impl Work for Dense {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.work(),
        );
    }
    fn units(&self) -> u64 {
        let order = ORDER as u64;
        SYSTEMS as u64 * (order * order * order / 3 + order * order)
    }
    fn verify(&mut self) -> Result<u64, String> {
        for (index, x) in self.x.chunks_exact(ORDER).enumerate() {
            let (matrix, right) = system(&self.pool, index).split_at(ORDER * ORDER);
            let residual = residual(matrix, right, x);
            if residual >= LIMIT {
                return Err(format!("system {index} has a scaled residual of {residual}, not below {LIMIT}"));
            }
        }
        let mut sum = Checksum::new();
        sum.f64s(&self.x);
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let Dense { pool, a, packs, pivots, x } = self;
        (pool.len() + a.len() + packs.left.len() + packs.right.len() + pivots.len() + x.len()) as u64 * 8
    }
}

#[cfg(test)]
mod tests;
