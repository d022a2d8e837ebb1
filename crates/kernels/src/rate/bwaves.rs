//! `bwaves`: a step of an implicit scheme for a blast wave in a compressible viscous gas, solved by
//! Bi-CGstab.
//!
//! The conservative variables (density, three momenta, energy) on a periodic 3-D grid are
//! linearised about a blast (a ball of hot dense gas with a shell that moves outwards): backward
//! Euler in time, upwind in space by the split A+- = (A +- lambda I) / 2 of the flux Jacobians (V.
//! V. Rusanov, "The calculation of the interaction of non-stationary shock waves and obstacles",
//! 1962; A. Jameson & S. Yoon, "Lower-upper implicit schemes with multiple grids for the Euler
//! equations", 1987), thin-layer viscous terms. That is a 7-point stencil of 5x5 blocks, all
//! stored, as SPEC CPU2017's 603.bwaves stores them: the host reads 1400 bytes a cell for every
//! product. The solver is H. A. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant
//! of Bi-CG for the solution of nonsymmetric linear systems", 1992, for a fixed number of
//! iterations; the right-hand side belongs to a known field.
use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, ensure};
use flow::{Flow, Square};
use sys::block::{Arena, Block};
use sys::steps::Steps;

mod flow;

pub(super) const COMPONENT: Component = Component {
    id: ids::BWAVES,
    title: "Blast wave, implicit, 5x5 blocks by Bi-CGstab",
    about: "Solves one implicit step of a viscous blast wave on a periodic 3-D grid. Each cell has five unknowns and \
            a 7-point stencil of 5×5 blocks.",
    reading: "Million cells a second through one Bi-CGstab iteration; more is better. Each cell streams 2.8 kB of \
              matrix. It is built to need memory bandwidth. The column \"bound by\" of a run names the actual limit.",
    method: "The equations are linearised and compressible, with twelve iterations of Bi-CGstab. The right-hand side \
             belongs to a known field. The recomputed residual and the distance from that field are checked. The \
             checksum covers every bit of the solution.",
    source: file!(),
    character: Character::Bandwidth,
    units: "cell iterations",
    reference: 4.9,
    expected_checksum: 0x7f23_d02b_4f10_2504,
    make: |arena| Ok(Box::new(Bwaves::new(arena)?)),
};

const LANES: usize = 8;
const VARS: usize = 5;
const ITERATIONS: u64 = 12;
/// Inverse of the time step: the fastest wave crosses about five cells in a step.
const RATE: f64 = 4.0;
/// Limit of the residual relative to the right-hand side, and of the error relative to the
/// solution.
const TOLERANCE: f64 = 1e-3;
/// Matrix and six vectors.
const CELL_BYTES: u64 = (7 * 25 + 6 * 5) * 8;
const MIN_CELLS: u64 = 512;
const SEED: u64 = 0xb1a5_7000_0000_0001;

/// The LANES values of one unknown in neighbouring cells.
type Lanes = [f64; LANES];
/// A column of a 5x5 block.
type Column = [Lanes; VARS];
/// Blocks of LANES cells for the cell itself, west, east, south, north, down, up; five columns
/// each.
type Blocks = [Column; 7 * VARS];

#[derive(Clone, Copy)]
struct Grid {
    nx: usize,
    ny: usize,
    nz: usize,
}

impl Grid {
    fn within(bytes: u64) -> Result<Grid> {
        let cells = bytes / CELL_BYTES;
        let least = MIN_CELLS * CELL_BYTES;
        ensure!(cells >= MIN_CELLS, "bwaves needs at least {least} bytes; the arena has {bytes}");
        let mut side = 8;
        while (side + 1) * (side + 1) * (side + 1) <= cells {
            side += 1;
        }
        let nx = side / 8 * 8;
        let ny = (cells / nx).isqrt();
        Ok(Grid { nx: nx as usize, ny: ny as usize, nz: (cells / nx / ny) as usize })
    }
    fn cells(self) -> usize {
        self.nx * self.ny * self.nz
    }
    /// Values of a line of cells along x: each unknown's nx values, one unknown after the other.
    fn line(self) -> usize {
        VARS * self.nx
    }
}

fn blocks(matrix: &[f64]) -> &[Blocks] {
    matrix.as_chunks::<LANES>().0.as_chunks::<VARS>().0.as_chunks().0
}

fn blocks_mut(matrix: &mut [f64]) -> &mut [Blocks] {
    matrix.as_chunks_mut::<LANES>().0.as_chunks_mut::<VARS>().0.as_chunks_mut().0
}

/// Assembles the matrix: each cell's Jacobians go to the rows of its neighbours.
fn assemble(grid: Grid, matrix: &mut [f64]) {
    let Grid { nx, ny, nz } = grid;
    let matrix = blocks_mut(matrix);
    let mut put = |[i, j, k]: [usize; 3], block: usize, values: &Square| {
        let cell = (k * ny + j) * nx + i;
        for (row, entries) in values.iter().enumerate() {
            for (column, entry) in entries.iter().enumerate() {
                matrix[cell / LANES][block * VARS + column][row][cell % LANES] = *entry;
            }
        }
    };
    for k in 0..nz {
        for j in 0..ny {
            for i in 0..nx {
                let cell = [i, j, k];
                let flow = Flow::at(grid, cell);
                let diffusion = flow.diffusion();
                let mut own = diffusion.map(|row| row.map(|entry| 6.0 * entry));
                for axis in 0..3 {
                    let (jacobian, fastest) = (flow.jacobian(axis), flow.fastest(axis));
                    let count = [nx, ny, nz][axis];
                    for (row, entries) in own.iter_mut().enumerate() {
                        entries[row] += fastest;
                    }
                    for (block, sign, shift) in [(1, 1.0, 1), (2, -1.0, count - 1)] {
                        let mut to = cell;
                        to[axis] = (cell[axis] + shift) % count;
                        let mut values = jacobian.map(|row| row.map(|entry| -sign * 0.5 * entry));
                        for row in 0..VARS {
                            values[row][row] -= 0.5 * fastest;
                            (0..VARS).for_each(|column| values[row][column] -= diffusion[row][column]);
                        }
                        put(to, 2 * axis + block, &values);
                    }
                }
                (0..VARS).for_each(|row| own[row][row] += RATE);
                put(cell, 0, &own);
            }
        }
    }
}

/// The known solution: smooth waves (parabolas) and noise, line by line.
fn known(grid: Grid, mut each: impl FnMut(usize, &[f64])) {
    let mut rng = Rng(SEED);
    let mut line = vec![0.0; grid.line()];
    let hump = |index: usize, count: usize| {
        let place = index as f64 / count as f64;
        8.0 * place * (1.0 - place) - 4.0 / 3.0
    };
    for row in 0..grid.ny * grid.nz {
        let across = hump(row % grid.ny, grid.ny) - 0.5 * hump(row / grid.ny, grid.nz);
        for (at, value) in line.iter_mut().enumerate() {
            let along = hump(at % grid.nx, grid.nx) * [1.0, 0.5, -0.5, 0.25, 2.0][at / grid.nx];
            *value = along + across + 0.5 * (rng.unit() - 0.5);
        }
        each(row, &line);
    }
}

#[inline(always)]
fn lanes(values: &[f64], at: usize) -> Lanes {
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&values[at..at + LANES]);
    lanes
}

#[inline(always)]
fn total(lanes: Lanes) -> f64 {
    lanes.iter().sum()
}

#[inline(always)]
fn add_product(sum: &mut Lanes, a: &Lanes, b: &Lanes) {
    for lane in 0..LANES {
        sum[lane] += a[lane] * b[lane];
    }
}

/// y = A x; returns the dot products of y with `with` and with itself.
#[inline(always)]
fn product(
    grid: Grid,
    matrix: &[f64],
    edged: &mut [f64],
    x: &[f64],
    y: &mut [f64],
    with: &[f64],
) -> [f64; 2] {
    let Grid { nx, ny, nz } = grid;
    let (line, edge) = (grid.line(), nx + 2);
    let mut sums = [[0.0; LANES]; 2];
    let lines = blocks(matrix).chunks_exact(nx / LANES).zip(y.chunks_exact_mut(line));
    for (row, (blocks, y)) in lines.enumerate() {
        let (j, k) = (row % ny, row / ny);
        let at = |j: usize, k: usize| &x[(k * ny + j) * line..][..line];
        let own = at(j, k);
        let around = [
            at(if j == 0 { ny - 1 } else { j - 1 }, k),
            at(if j + 1 == ny { 0 } else { j + 1 }, k),
            at(j, if k == 0 { nz - 1 } else { k - 1 }),
            at(j, if k + 1 == nz { 0 } else { k + 1 }),
        ];
        for (edged, own) in edged.chunks_exact_mut(edge).zip(own.chunks_exact(nx)) {
            edged[0] = own[nx - 1];
            edged[1..=nx].copy_from_slice(own);
            edged[nx + 1] = own[0];
        }
        let with = &with[row * line..][..line];
        for (chunk, blocks) in blocks.iter().enumerate() {
            let i = chunk * LANES;
            let mut rows = [[0.0; LANES]; VARS];
            let mut add = |column: usize, x: Lanes| {
                for (row, entries) in rows.iter_mut().zip(&blocks[column]) {
                    add_product(row, entries, &x);
                }
            };
            for var in 0..VARS {
                add(var, lanes(own, var * nx + i));
            }
            for var in 0..VARS {
                add(VARS + var, lanes(edged, var * edge + i));
            }
            for var in 0..VARS {
                add(2 * VARS + var, lanes(edged, var * edge + i + 2));
            }
            for (side, x) in around.iter().enumerate() {
                for var in 0..VARS {
                    add((3 + side) * VARS + var, lanes(x, var * nx + i));
                }
            }
            for (var, row) in rows.iter().enumerate() {
                let at = var * nx + i;
                add_product(&mut sums[0], row, &lanes(with, at));
                add_product(&mut sums[1], row, row);
                y[at..at + LANES].copy_from_slice(row);
            }
        }
    }
    sums.map(total)
}

/// The dot product of a and b.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = [0.0; LANES];
    for (a, b) in a.as_chunks().0.iter().zip(b.as_chunks().0) {
        add_product(&mut sum, a, b);
    }
    total(sum)
}

struct Bwaves {
    grid: Grid,
    matrix: Block<f64>,
    right: Block<f64>,
    x: Block<f64>,
    r: Block<f64>,
    p: Block<f64>,
    v: Block<f64>,
    t: Block<f64>,
    edged: Vec<f64>,
    steps: Steps,
}

impl Bwaves {
    fn new(arena: &mut Arena) -> Result<Bwaves> {
        let grid = Grid::within(arena.bytes)?;
        let count = grid.cells() * VARS;
        let mut made = Bwaves {
            grid,
            matrix: arena.f64s(grid.cells() * 7 * VARS * VARS)?,
            right: arena.f64s(count)?,
            x: arena.f64s(count)?,
            r: arena.f64s(count)?,
            p: arena.f64s(count)?,
            v: arena.f64s(count)?,
            t: arena.f64s(count)?,
            edged: vec![0.0; VARS * (grid.nx + 2)],
            steps: arena.steps.clone(),
        };
        assemble(grid, &mut made.matrix);
        known(grid, |row, line| made.x[row * line.len()..][..line.len()].copy_from_slice(line));
        let Bwaves { matrix, right, x, v, edged, .. } = &mut made;
        product(grid, matrix, edged, x, right, v);
        Ok(made)
    }

    #[inline(always)]
    fn solve(&mut self) {
        let Bwaves { grid, matrix, right, x, r, p, v, t, edged, steps } = self;
        x.fill(0.0);
        r.copy_from_slice(right);
        p.copy_from_slice(right);
        let mut rho = dot(right, right);
        for _ in 0..ITERATIONS {
            let [shadow, _] = product(*grid, matrix, edged, p, v, right);
            let alpha = rho / shadow;
            for (r, v) in r.iter_mut().zip(v.iter()) {
                *r -= alpha * v;
            }
            let [along, square] = product(*grid, matrix, edged, r, t, r);
            let omega = along / square;
            let mut sum = [0.0; LANES];
            let solution = x.as_chunks_mut::<LANES>().0.iter_mut().zip(p.as_chunks::<LANES>().0);
            let residual = r.as_chunks_mut::<LANES>().0.iter_mut().zip(t.as_chunks::<LANES>().0);
            let right = right.as_chunks::<LANES>().0;
            for (((x, p), (r, t)), right) in solution.zip(residual).zip(right) {
                for lane in 0..LANES {
                    x[lane] += alpha * p[lane] + omega * r[lane];
                    r[lane] -= omega * t[lane];
                }
                add_product(&mut sum, r, right);
            }
            let last = rho;
            rho = total(sum);
            let beta = rho / last * (alpha / omega);
            for ((p, r), v) in p.iter_mut().zip(r.iter()).zip(v.iter()) {
                *p = r + beta * (*p - omega * v);
            }
            steps.end_one();
        }
    }
}

impl Work for Bwaves {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.solve(),
        );
    }
    fn units(&self) -> u64 {
        self.grid.cells() as u64 * ITERATIONS
    }
    fn verify(&mut self) -> Result<u64, String> {
        let Bwaves { grid, matrix, right, x, r, t, edged, .. } = self;
        product(*grid, matrix, edged, x, t, right);
        let (mut left, mut apart) = (0.0, 0.0);
        for ((t, b), r) in t.iter().zip(right.iter()).zip(r.iter()) {
            left += (b - t) * (b - t);
            apart += (b - t - r) * (b - t - r);
        }
        let all = right.iter().map(|b| b * b).sum::<f64>();
        let (residual, apart) = ((left / all).sqrt(), (apart / all).sqrt());
        let (mut wrong, mut size) = (0.0, 0.0);
        known(*grid, |row, line| {
            for (known, x) in line.iter().zip(&x[row * line.len()..]) {
                wrong += (x - known) * (x - known);
                size += known * known;
            }
        });
        let error = (wrong / size).sqrt();
        if !(residual < TOLERANCE && error < TOLERANCE && apart < 1e-12) {
            return Err(format!(
                "residual {residual:e} and error {error:e} must be below {TOLERANCE:e}, the distance from the solver's \
                 residual {apart:e} below 1e-12"
            ));
        }
        let mut sum = Checksum::new();
        sum.f64s(x);
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        self.grid.cells() as u64 * CELL_BYTES
    }
}

#[cfg(test)]
mod tests;
