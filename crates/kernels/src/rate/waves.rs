//! Maxwell's equations in a box of metal: standing waves that stay standing waves.
//!
//! Finite differences in time on staggered grids (Yee, "Numerical Solution of Initial Boundary
//! Value Problems Involving Maxwell's Equations in Isotropic Media", 1966): electric fields on the
//! edges of cells, magnetic on their faces, advanced alternately by the other's curl.
//! 549.fotonik3d is this. Sines and cosines that fit the box solve the difference equations
//! exactly, and swing with a frequency of which only the cosine is needed.
use super::{Character, Checksum, Component, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::{Result, bail};
use sys::block::{Arena, Block};
use sys::steps::Steps;

pub(super) const COMPONENT: Component = Component {
    id: ids::WAVES,
    title: "Electromagnetic waves",
    about: "Simulates two standing electromagnetic waves in a metal box by Yee's finite differences in time, with \
            six fields.",
    reading: "Million cell updates a second; more is better. Each has 36 operations on 144 bytes in about fifteen \
              streams. It is built to need memory bandwidth. The column \"bound by\" of a run names the actual limit.",
    method: "Every field must equal the exact solution of the difference equations everywhere. The checksum covers \
             all fields.",
    source: file!(),
    character: Character::Bandwidth,
    units: "cell updates",
    reference: 228.0,
    expected_checksum: 0x9687_d965_c8d0_a2e6,
    make,
};

const STEPS: usize = 12;
const LANES: usize = 8;
/// Of light, in cells per step.
const SPEED: f64 = 0.5;
/// Half waves along x, y and z, and what the field is at right angles to.
const MODES: [([usize; 3], [f64; 3]); 2] = [([1, 2, 3], [0.75, 0.5, -0.25]), ([4, 1, 2], [0.25, -1.0, 0.5])];

/// Layout of the cells in each field's array: x fastest, `LANES` of padding (always 0) before every
/// row.
#[derive(Clone, Copy)]
struct Shape {
    sides: [usize; 3],
    row: usize,
    plane: usize,
    /// From field to field: no two start in the same cache set.
    stride: usize,
}

impl Shape {
    fn new(sides: [usize; 3]) -> Shape {
        let row = sides[0] + LANES;
        let plane = row * (sides[1] + 1);
        let stride = (plane * (sides[2] + 1) + LANES).next_multiple_of(512) + 72;
        Shape { sides, row, plane, stride }
    }
    fn within(bytes: u64) -> Result<Shape> {
        let cells = usize::try_from(bytes / 48)?.saturating_sub(512 + 512);
        if cells < 20_000 {
            bail!("waves need at least 1 MiB; the arena has {bytes} bytes");
        }
        let x = (1..).take_while(|side| side * side * side <= cells).count() / LANES * LANES;
        let rows = cells / (x + LANES);
        let y = rows.isqrt();
        Ok(Shape::new([x, y - 1, rows / y - 1]))
    }
    fn rows(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.sides[2]).flat_map(move |z| (0..self.sides[1]).map(move |y| (y, z)))
    }
    #[inline(always)]
    fn at(&self, y: usize, z: usize) -> usize {
        z * self.plane + y * self.row + LANES
    }
}

/// The fields' arrays: electric along x, y, z, magnetic along x, y, z.
#[inline(always)]
fn split(grid: &mut [f64], stride: usize) -> [&mut [f64]; 6] {
    let mut arrays = grid.chunks_exact_mut(stride);
    std::array::from_fn(|_| arrays.next().unwrap_or_default())
}

/// `field += factor ((a[up_a] - a[at_a]) - (b[up_b] - b[at_b]))`, each from there on.
#[inline(always)]
fn curl(field: &mut [f64], factor: f64, (a, at_a, up_a): Run, (b, at_b, up_b): Run) {
    let n = field.len();
    let (a, less_a, b, less_b) = (&a[up_a..][..n], &a[at_a..][..n], &b[up_b..][..n], &b[at_b..][..n]);
    for i in 0..n {
        field[i] += factor * ((a[i] - less_a[i]) - (b[i] - less_b[i]));
    }
}

type Run<'a> = (&'a [f64], usize, usize);

#[inline(always)]
fn magnetic(grid: &mut [f64], shape: Shape, speed: f64) {
    let [ex, ey, ez, hx, hy, hz] = split(grid, shape.stride);
    let (row, plane, n) = (shape.row, shape.plane, shape.sides[0]);
    for z in 0..shape.sides[2] {
        for y in 0..shape.sides[1] {
            let at = shape.at(y, z);
            curl(&mut hx[at..at + n], -speed, (ez, at, at + row), (ey, at, at + plane));
            curl(&mut hy[at..at + n], -speed, (ex, at, at + plane), (ez, at, at + 1));
            curl(&mut hz[at..at + n], -speed, (ey, at, at + 1), (ex, at, at + row));
        }
    }
}

/// Leaves out the walls, where the field stays 0.
#[inline(always)]
fn electric(grid: &mut [f64], shape: Shape, speed: f64) {
    let [ex, ey, ez, hx, hy, hz] = split(grid, shape.stride);
    let (row, plane, n) = (shape.row, shape.plane, shape.sides[0]);
    for z in 0..shape.sides[2] {
        for y in 0..shape.sides[1] {
            let at = shape.at(y, z);
            if y > 0 && z > 0 {
                curl(&mut ex[at..at + n], speed, (hz, at - row, at), (hy, at - plane, at));
            }
            if z > 0 {
                curl(&mut ey[at..at + n], speed, (hx, at - plane, at), (hz, at - 1, at));
                ey[at] = 0.0;
            }
            if y > 0 {
                curl(&mut ez[at..at + n], speed, (hy, at - 1, at), (hx, at - row, at));
                ez[at] = 0.0;
            }
        }
    }
}

/// The sine of `halves` / `side` of half a turn, by its series: the same bits everywhere.
fn sine(halves: f64, side: f64) -> f64 {
    let part = halves / side % 2.0;
    let angle = std::f64::consts::PI * if part > 1.0 { part - 2.0 } else { part };
    let square = angle * angle;
    (1..18).rev().fold(1.0, |sum, k| 1.0 - square / f64::from(2 * k * (2 * k + 1)) * sum) * angle
}

/// One standing wave.
struct Mode {
    /// Along each side: sines at whole places, cosines half a cell further.
    waves: [[Vec<f64>; 2]; 3],
    /// Of the electric fields, and of their curl.
    factors: [[f64; 3]; 2],
    /// Cosine of the angle by which it moves on in a step.
    cosine: f64,
}

impl Mode {
    fn new(sides: [usize; 3], (halves, normal): ([usize; 3], [f64; 3])) -> Mode {
        let (sides, halves) = (sides.map(|side| side as f64), halves.map(|halves| halves as f64));
        let waves = [0, 1, 2].map(|axis: usize| {
            let places = || (0..sides[axis] as usize).map(|at| at as f64 * halves[axis]);
            let sines = places().map(|at| sine(at, sides[axis])).collect();
            [sines, places().map(|at| sine(at + (halves[axis] + sides[axis]) / 2.0, sides[axis])).collect()]
        });
        let steep = [0, 1, 2].map(|axis: usize| 2.0 * sine(halves[axis] / 2.0, sides[axis]));
        let cross = |a: [f64; 3], b: [f64; 3]| {
            [0, 1, 2].map(|i: usize| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3])
        };
        let size = steep.iter().map(|steep| steep * steep).sum::<f64>();
        let field = cross(normal, steep).map(|value| value / size.sqrt());
        Mode { waves, factors: [field, cross(steep, field)], cosine: 1.0 - SPEED * SPEED * size / 2.0 }
    }
    /// Factors after `steps` steps: of the electric fields relative to their start, and of the
    /// magnetic fields, half a step later, relative to the curl of the electric fields at the
    /// start.
    fn after(&self, steps: usize) -> [f64; 2] {
        let (mut was, mut now, mut magnetic) = (self.cosine, 1.0, -SPEED / 2.0);
        for _ in 0..steps {
            (was, now) = (now, 2.0 * self.cosine * now - was);
            magnetic -= SPEED * now;
        }
        [now, magnetic]
    }
    /// Field 0 to 5 in a row: a factor, and the wave along x.
    fn row(&self, field: usize, y: usize, z: usize) -> (f64, &[f64]) {
        let (axis, is_magnetic) = (field % 3, field / 3);
        // Cosines along its own axis if electric, else along the others.
        let which = |other: usize| usize::from((axis == other) != (is_magnetic == 1));
        let across = self.waves[1][which(1)][y] * self.waves[2][which(2)][z];
        (self.factors[is_magnetic][axis] * across, &self.waves[0][which(0)])
    }
}

struct Waves {
    shape: Shape,
    modes: [Mode; 2],
    grid: Block<f64>,
    /// Up to the first whole cache line.
    skip: usize,
    steps: Steps,
}

fn make(arena: &mut Arena) -> Result<Box<dyn Work>> {
    let shape = Shape::within(arena.bytes)?;
    let mut waves = Waves::new(arena, shape)?;
    waves.reset();
    Ok(Box::new(waves))
}

impl Waves {
    fn new(arena: &mut Arena, shape: Shape) -> Result<Waves> {
        let grid = arena.f64s(6 * shape.stride + LANES)?;
        let skip = grid.as_ptr().align_offset(64).min(LANES);
        let modes = MODES.map(|mode| Mode::new(shape.sides, mode));
        Ok(Waves { shape, modes, grid, skip, steps: arena.steps.clone() })
    }
    #[inline(always)]
    fn reset(&mut self) {
        self.grid.fill(0.0);
        let arrays = split(&mut self.grid[self.skip..], self.shape.stride);
        for (field, array) in arrays.into_iter().take(3).enumerate() {
            for (y, z) in self.shape.rows() {
                let row = &mut array[self.shape.at(y, z)..][..self.shape.sides[0]];
                let [(one, wave), (other, other_wave)] =
                    self.modes.each_ref().map(|mode| mode.row(field, y, z));
                for (value, (wave, other_wave)) in row.iter_mut().zip(wave.iter().zip(other_wave)) {
                    *value = one * wave + other * other_wave;
                }
            }
        }
    }
    #[inline(always)]
    fn work(&mut self) {
        self.reset();
        let grid = &mut self.grid[self.skip..];
        magnetic(grid, self.shape, SPEED / 2.0);
        for _ in 0..STEPS {
            electric(grid, self.shape, SPEED);
            magnetic(grid, self.shape, SPEED);
            self.steps.end_one();
        }
    }
}

impl Work for Waves {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.work(),
        );
    }
    fn units(&self) -> u64 {
        (self.shape.sides.iter().product::<usize>() * STEPS) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let mut sum = Checksum::new();
        let after = self.modes.each_ref().map(|mode| mode.after(STEPS));
        for (field, array) in self.grid[self.skip..].chunks_exact(self.shape.stride).enumerate() {
            for (y, z) in self.shape.rows() {
                let row = &array[self.shape.at(y, z)..][..self.shape.sides[0]];
                let [one, other] = self.modes.each_ref().map(|mode| mode.row(field, y, z));
                let [factor, other_factor] = [after[0][field / 3] * one.0, after[1][field / 3] * other.0];
                for (x, value) in row.iter().enumerate() {
                    let right = factor * one.1[x] + other_factor * other.1[x];
                    // False for NaN.
                    let close = (value - right).abs() < 1e-13;
                    if !close {
                        return Err(format!("field {field} at {x}, {y}, {z} is {value}, not {right}"));
                    }
                }
                sum.f64s(row);
            }
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let waves: usize = self.modes.iter().flat_map(|mode| mode.waves.iter().flatten()).map(Vec::len).sum();
        (self.grid.len() + waves) as u64 * 8
    }
}

#[cfg(test)]
mod tests;
