//! Lattice Boltzmann: a decaying three-dimensional vortex flow (519.lbm in character: it streams
//! through memory).
//!
//! Nineteen velocities and a single relaxation time (Qian, d'Humières & Lallemand, "Lattice BGK
//! Models for Navier-Stokes Equation", 1992) in a periodic box, in one grid by the AA pattern
//! (Bailey, Myre, Walsh, Lilja & Saar, "Accelerating Lattice Boltzmann Fluid Flow Simulations Using
//! Graphics Processors", 2009): even steps collide each cell in place and store every population in
//! the slot of its opposite; odd steps read and write the slots of the neighbours, so that both
//! streamings happen there. One array for each direction. The flow is that of Arnold (1965),
//! Beltrami and Childress (1970): three shear waves across each other, which decay as linear theory
//! of the discrete scheme says they do.
use super::{Character, Checksum, Component, Work, ids, near};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, bail};
use collide::{collide, settle};
use sys::block::{Arena, Block};
use sys::steps::Steps;

mod collide;

pub(super) const COMPONENT: Component = Component {
    id: ids::LBM,
    title: "Lattice Boltzmann flow",
    about: "Simulates a viscous flow, three crossed shear waves in a periodic box, by the lattice Boltzmann method \
            with 19 velocities.",
    reading: "Million cell updates a second; more is better. Each moves 152 bytes in 19 streams with about 230 \
              floating-point operations. It is built to need memory bandwidth, vector units, and prefetchers for many streams. \
              The column \"bound by\" of a run names the actual limit.",
    method: "Mass and momentum must be conserved, and each wave must decay as the scheme's linear theory predicts. \
             Every population must be near its weight. The checksum covers all populations.",
    source: file!(),
    character: Character::Bandwidth,
    units: "cell updates",
    reference: 118.0,
    expected_checksum: 0x0f03_c907_7da7_5203,
    make,
};

const LANES: usize = 8;
/// Directions. 0 is rest; 1 + 2 p and 2 + 2 p are `PAIRS[p]` and its opposite.
const Q: usize = 19;
const PAIRS: [(usize, isize, isize); 9] =
    [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)];
const REST: f64 = 1.0 / 3.0;
const AXIS: f64 = 1.0 / 18.0;
const DIAGONAL: f64 = 1.0 / 36.0;
/// Relaxation rate: a viscosity of (1 / OMEGA - 1 / 2) / 3 = 0.1.
const OMEGA: f64 = 1.25;
const SPEED: f64 = 0.001;
/// Even: after an odd number of steps populations are in the slots of their opposites.
const STEPS: usize = 20;

/// Layout of the cells in each direction's array: x fastest, `LANES` of padding before every row.
/// While neighbours are read, the padding contains copies of the other end of the row.
#[derive(Clone, Copy)]
struct Shape {
    sides: [usize; 3],
    /// From array to array: no two start in the same cache set.
    stride: usize,
}

impl Shape {
    fn new(sides: [usize; 3]) -> Shape {
        let stride = (sides[0] + LANES) * sides[1] * sides[2] + LANES;
        Shape { sides, stride: stride.next_multiple_of(512) + 24 }
    }
    fn within(bytes: u64) -> Result<Shape> {
        let cells = usize::try_from(bytes / (8 * Q as u64))?.saturating_sub(512 + 64);
        if cells < 40_000 {
            bail!("a lattice Boltzmann flow needs at least 6 MiB; the arena has {bytes} bytes");
        }
        let x = ((1..).take_while(|side| side * side * side <= cells).count() / LANES).max(1) * LANES;
        let rows = cells / (x + LANES);
        let y = rows.isqrt();
        Ok(Shape::new([x, y, rows / y]))
    }
    fn cells(&self) -> usize {
        self.sides.iter().product()
    }
    #[inline(always)]
    fn row(&self, y: usize, z: usize) -> usize {
        (z * self.sides[1] + y) * (self.sides[0] + LANES) + LANES
    }
}

/// One periodic step up or down.
#[inline(always)]
fn moved(at: usize, by: isize, side: usize) -> usize {
    match by {
        1.. if at + 1 == side => 0,
        1.. => at + 1,
        0 => at,
        _ if at == 0 => side - 1,
        _ => at - 1,
    }
}

#[inline(always)]
fn split(grid: &mut [f64], stride: usize) -> [&mut [f64]; Q] {
    let mut arrays = grid.chunks_exact_mut(stride);
    std::array::from_fn(|_| arrays.next().unwrap_or_default())
}

#[inline(always)]
fn even_step(grid: &mut [f64], shape: Shape) {
    let mut arrays = split(grid, shape.stride);
    let [nx, ny, nz] = shape.sides;
    for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
        let begin = shape.row(y, z);
        let mut rows: [&mut [f64]; Q] = Default::default();
        for (row, array) in rows.iter_mut().zip(&mut arrays) {
            *row = &mut array[begin..begin + nx];
        }
        collide(rows, nx);
    }
}

#[inline(always)]
fn odd_step(grid: &mut [f64], shape: Shape) {
    let mut arrays = split(grid, shape.stride);
    let [nx, ny, nz] = shape.sides;
    for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
        // Slot k of the neighbour in direction k holds what arrives here of its opposite. A row
        // that begins a cell further up or down goes on at its other end: in the padding meanwhile.
        let mut starts = [shape.row(y, z); Q];
        for (pair, by) in PAIRS.iter().enumerate() {
            let up = shape.row(moved(y, by.1, ny), moved(z, by.2, nz));
            let down = shape.row(moved(y, -by.1, ny), moved(z, -by.2, nz));
            if by.0 == 1 {
                arrays[1 + 2 * pair][up + nx] = arrays[1 + 2 * pair][up];
                arrays[2 + 2 * pair][down - 1] = arrays[2 + 2 * pair][down + nx - 1];
            }
            (starts[1 + 2 * pair], starts[2 + 2 * pair]) = (up + by.0, down - by.0);
        }
        let mut rows: [&mut [f64]; Q] = Default::default();
        for (k, array) in arrays.iter_mut().enumerate() {
            let opposite = if k == 0 { 0 } else { ((k - 1) ^ 1) + 1 };
            rows[opposite] = &mut array[starts[k]..starts[k] + nx];
        }
        collide(rows, nx);
        for (pair, _) in PAIRS.iter().enumerate().filter(|(_, by)| by.0 == 1) {
            let (up, down) = (starts[1 + 2 * pair] - 1, starts[2 + 2 * pair] + 1);
            arrays[1 + 2 * pair][up] = arrays[1 + 2 * pair][up + nx];
            arrays[2 + 2 * pair][down + nx - 1] = arrays[2 + 2 * pair][down - 1];
        }
    }
}

/// The sine of `angle` in -4 to 4 by its series: the same bits everywhere.
fn sine(angle: f64) -> f64 {
    let square = angle * angle;
    (1..18).rev().fold(1.0, |sum, k| 1.0 - square / f64::from(2 * k * (2 * k + 1)) * sum) * angle
}

const PI: f64 = std::f64::consts::PI;

/// Cosines and sines of one wave along a side.
fn wave(side: usize) -> [Vec<f64>; 2] {
    let sine_of = |quarters: usize| {
        let at = (quarters % (4 * side)) as f64 / (4 * side) as f64;
        sine(2.0 * PI * if at > 0.5 { at - 1.0 } else { at })
    };
    [(0..side).map(|at| sine_of(4 * at + side)).collect(), (0..side).map(|at| sine_of(4 * at)).collect()]
}

/// Share of a shear wave's amplitude that is left after `steps` steps by linear theory of the
/// scheme. Three momenta (carried down the wave, along it and up it) relax to their shares of the
/// sum; each step rotates their phases.
fn decay(side: usize, steps: usize) -> f64 {
    let (cosine, turn) = (sine(PI / 2.0 - 2.0 * PI / side as f64), sine(2.0 * PI / side as f64));
    let (mut across, mut along) = (2.0 / 3.0, [1.0 / 6.0, 0.0]);
    for _ in 0..steps {
        let whole = across + 2.0 * along[0];
        across = (1.0 - OMEGA) * across + OMEGA * 2.0 / 3.0 * whole;
        let [real, imaginary] = [(1.0 - OMEGA) * along[0] + OMEGA / 6.0 * whole, (1.0 - OMEGA) * along[1]];
        along = [real * cosine + imaginary * turn, imaginary * cosine - real * turn];
    }
    across + 2.0 * along[0]
}

struct Flow {
    shape: Shape,
    grid: Block<f64>,
    skip: usize,
    /// Cosines and sines along each side, and those along x times the speed.
    waves: [[Vec<f64>; 2]; 3],
    scaled: [Vec<f64>; 2],
    steps: Steps,
}

fn make(arena: &mut Arena) -> Result<Box<dyn Work>> {
    let mut flow = Flow::new(arena, Shape::within(arena.bytes)?)?;
    flow.reset();
    Ok(Box::new(flow))
}

impl Flow {
    fn new(arena: &mut Arena, shape: Shape) -> Result<Flow> {
        let waves = shape.sides.map(wave);
        let scaled = waves[0].each_ref().map(|wave| wave.iter().map(|value| SPEED * value).collect());
        let grid = arena.f64s(Q * shape.stride + LANES)?;
        // Rows begin with a cache line.
        let skip = grid.as_ptr().align_offset(64).min(LANES);
        Ok(Flow { shape, grid, skip, waves, scaled, steps: arena.steps.clone() })
    }
    #[inline(always)]
    fn reset(&mut self) {
        let mut arrays = split(&mut self.grid[self.skip..], self.shape.stride);
        let [nx, ny, nz] = self.shape.sides;
        let [_, [cos_y, sin_y], [cos_z, sin_z]] = &self.waves;
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            let begin = self.shape.row(y, z);
            let rows = arrays.each_mut().map(|array| &mut array[begin..begin + nx]);
            let x = SPEED * (sin_z[z] + cos_y[y]);
            settle(rows, x, (SPEED * cos_z[z], &self.scaled[1]), (SPEED * sin_y[y], &self.scaled[0]));
        }
    }
    #[inline(always)]
    fn work(&mut self) {
        self.reset();
        for _ in 0..STEPS / 2 {
            even_step(&mut self.grid[self.skip..], self.shape);
            odd_step(&mut self.grid[self.skip..], self.shape);
            self.steps.end_one();
        }
    }
    /// Mass, momentum and the amplitudes of the waves along x, y and z.
    fn totals(&self) -> Result<(f64, [f64; 3], [f64; 3]), String> {
        let [nx, ny, nz] = self.shape.sides;
        let [[cos_x, sin_x], [cos_y, sin_y], [cos_z, sin_z]] = &self.waves;
        let (mut mass, mut momentum, mut wave) = (0.0, [0.0; 3], [0.0; 3]);
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            let begin = self.shape.row(y, z);
            let (mut row_mass, mut row) = (0.0, [0.0; 3]);
            for x in 0..nx {
                let mut flow = [0.0; 3];
                for (k, array) in self.grid[self.skip..].chunks_exact(self.shape.stride).enumerate() {
                    let value = array[begin + x];
                    let weight = [REST, AXIS, DIAGONAL][usize::from(k > 0) + usize::from(k > 6)];
                    if !near(value, weight, 0.05 * weight) {
                        return Err(format!(
                            "population {k} of cell {x}, {y}, {z} is {value}, not near {weight}"
                        ));
                    }
                    row_mass += value;
                    if let Some(pair) = k.checked_sub(1) {
                        let signed = if pair % 2 == 0 { value } else { -value };
                        let by = PAIRS[pair / 2];
                        flow[0] += by.0 as f64 * signed;
                        flow[1] += by.1 as f64 * signed;
                        flow[2] += by.2 as f64 * signed;
                    }
                }
                (0..3).for_each(|axis| row[axis] += flow[axis]);
                wave[0] += flow[1] * sin_x[x] + flow[2] * cos_x[x];
            }
            mass += row_mass;
            (0..3).for_each(|axis| momentum[axis] += row[axis]);
            wave[1] += row[2] * sin_y[y] + row[0] * cos_y[y];
            wave[2] += row[0] * sin_z[z] + row[1] * cos_z[z];
        }
        Ok((mass, momentum, wave))
    }
}

impl Work for Flow {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.work(),
        );
    }
    fn units(&self) -> u64 {
        (self.shape.cells() * STEPS) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let cells = self.shape.cells() as f64;
        let (mass, momentum, waves) = self.totals()?;
        if !near(mass, cells, 1e-12 * cells) || momentum.iter().any(|sum| !near(*sum, 0.0, 1e-14 * cells)) {
            return Err(format!("mass {} and momentum {momentum:?} are not conserved", mass / cells));
        }
        for (wave, side) in waves.iter().zip(self.shape.sides) {
            let (left, theory) = (wave / (cells * SPEED), decay(side, STEPS));
            // The waves influence each other by the square of the flow's displacement in
            // wavelengths.
            let moved = 2.0 * PI / side as f64 * SPEED * STEPS as f64;
            if !near(left, theory, moved * moved + 1e-9) {
                return Err(format!("a wave along {side} cells has decayed to {left}, not to {theory}"));
            }
        }
        let mut sum = Checksum::new();
        let [nx, ny, nz] = self.shape.sides;
        for array in self.grid[self.skip..].chunks_exact(self.shape.stride) {
            for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
                let begin = self.shape.row(y, z);
                sum.f64s(&array[begin..begin + nx]);
            }
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        (self.grid.len() + self.waves.iter().chain([&self.scaled]).flatten().map(Vec::len).sum::<usize>())
            as u64
            * 8
    }
}

#[cfg(test)]
mod tests;
