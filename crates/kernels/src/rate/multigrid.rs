//! `multigrid`: Poisson's equation in a box by multigrid V-cycles.
//!
//! The 7-point Laplacian with zero boundaries on grids that halve from level to level: red-black
//! Gauss-Seidel before and after the correction, full weighting down, trilinear interpolation up.
//! From A. Brandt, "Multi-level adaptive solutions to boundary-value problems", 1977, and K.
//! Stueben & U. Trottenberg, "Multigrid methods: fundamental algorithms, model problem analysis and
//! applications", 1982 (whose model problem this is: the residual falls about tenfold in a cycle,
//! whatever the size). In character the MG of D. Bailey and others, "The NAS parallel benchmarks",
//! 1991, and the solvers inside SPEC CPU2017's 649.fotonik3d and 654.roms: streams of several
//! arrays, little arithmetic.
use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::{Context, Result};
use sys::block::{Arena, Block};
use sys::steps::Steps;

pub(super) const COMPONENT: Component = Component {
    id: ids::MULTIGRID,
    title: "Poisson's equation by multigrid",
    about: "Solves a 3-D Poisson equation with four V-cycles of geometric multigrid, on grids from fine to coarse \
            and back.",
    reading: "Million cells of the finest grid a second through one V-cycle; more is better. A cycle takes about ten \
              passes over memory with few additions. It is built to need memory bandwidth, then caches for three planes of a \
              grid. The column \"bound by\" of a run names the actual limit.",
    method: "Smoothing is red-black Gauss-Seidel, with full weighting and trilinear interpolation. The right-hand \
             side belongs to a known field. Every cycle must shrink the residual as theory predicts, and the result \
             must be near that field. The checksum covers every bit of the solution.",
    source: file!(),
    character: Character::Bandwidth,
    units: "cell cycles",
    reference: 145.0,
    expected_checksum: 0xbf78_4e3a_90ab_5075,
    make: |arena| Ok(Box::new(Multigrid::new(arena)?)),
};

const LANES: usize = 8;
const CYCLES: usize = 4;
const COARSEST_SWEEPS: usize = 24;
const SEED: u64 = 0x3a17_1641_d000_0002;
/// Limits: share of the residual that a cycle leaves; residual and error after all cycles.
const SHRINKS: f64 = 0.2;
const RESIDUAL: f64 = 3e-4;
const ERROR: f64 = 1e-2;

/// Intervals of a level along each axis. Points 0 are the boundary with value 0. Points nx are too:
/// they are stored as the next line's point 0. Lines and planes behind the last are read as line or
/// plane 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    nx: usize,
    ny: usize,
    nz: usize,
}

impl Shape {
    fn plane(self) -> usize {
        self.nx * self.ny
    }
    /// Points of a level in an array, including a zero behind the last line.
    fn points(self) -> usize {
        self.plane() * self.nz + LANES
    }
    fn half(self) -> Shape {
        Shape { nx: self.nx / 2, ny: self.ny / 2, nz: self.nz / 2 }
    }
    /// Start of line j of plane k; the boundary behind the last line is the one before the first.
    #[inline(always)]
    fn at(self, j: usize, k: usize) -> usize {
        let (j, k) = (if j == self.ny { 0 } else { j }, if k == self.nz { 0 } else { k });
        (k * self.ny + j) * self.nx
    }
}

/// Shapes from the finest to the coarsest (3 to 9 intervals along each axis) that fill `bytes`
/// best.
fn shapes(bytes: u64) -> Option<Vec<Shape>> {
    let mut best = (0, Vec::new());
    for levels in 2..12 {
        for (x, y, z) in (3..10).flat_map(|z| (3..=z).flat_map(move |y| (3..=y).map(move |x| (x, y, z)))) {
            let fine = |n: usize| n << (levels - 1);
            if z > 2 * x || fine(x) % LANES != 0 {
                continue;
            }
            let mut all = vec![Shape { nx: fine(x), ny: fine(y), nz: fine(z) }];
            (1..levels).for_each(|level| all.push(all[level - 1].half()));
            let size = size(&all);
            if size <= bytes && size > best.0 {
                best = (size, all);
            }
        }
    }
    (best.0 > 0).then_some(best.1)
}

/// Bytes of two arrays per level and of three planes and two lines of the finest level.
fn size(shapes: &[Shape]) -> u64 {
    let grids: usize = shapes.iter().map(|shape| 2 * shape.points()).sum();
    shapes.first().map_or(0, |fine| (grids + 3 * fine.plane() + 2 * (fine.nx + LANES)) as u64 * 8)
}

/// Gauss-Seidel step for every second point of line j of plane k, those with an even i + j + k +
/// `colour`.
#[inline(always)]
fn smooth_line(shape: Shape, u: &mut [f64], f: &[f64], [j, k, colour]: [usize; 3]) {
    let nx = shape.nx;
    let at = shape.at(j, k);
    let (before, rest) = u.split_at_mut(at);
    let (own, after) = rest.split_at_mut(nx + 1);
    let line = |j: usize, k: usize| -> &[f64] {
        let from = shape.at(j, k);
        // The next line lacks its point 0, which ends this line and is not read.
        if from < at { &before[from + 1..][..nx - 1] } else { &after[from - at - nx..][..nx - 1] }
    };
    let (south, north, down, up) = (line(j - 1, k), line(j + 1, k), line(j, k - 1), line(j, k + 1));
    let f = &f[at + 1..][..nx - 1];
    let mut i = (j + k + colour + 1) % 2;
    while i < nx - 1 {
        let new = (own[i] + own[i + 2]) + (south[i] + north[i]) + ((down[i] + up[i]) + f[i]);
        own[i + 1] = new * (1.0 / 6.0);
        i += 2;
    }
}

/// One red-black sweep: black points of a plane follow line by line when the red points above them
/// are done.
#[inline(always)]
fn smooth(shape: Shape, u: &mut [f64], f: &[f64]) {
    for k in 1..=shape.nz {
        for j in 1..shape.ny {
            if k < shape.nz {
                smooth_line(shape, u, f, [j, k, 0]);
            }
            if k > 1 {
                smooth_line(shape, u, f, [j, k - 1, 1]);
            }
        }
    }
}

/// f - A u along line j of plane k.
#[inline(always)]
fn residual_line(shape: Shape, u: &[f64], f: &[f64], r: &mut [f64], [j, k]: [usize; 2]) {
    let nx = shape.nx;
    let line = |j: usize, k: usize| &u[shape.at(j, k) + 1..][..nx - 1];
    let at = shape.at(j, k);
    let (own, west, east) = (&u[at + 1..at + nx], &u[at..at + nx - 1], &u[at + 2..at + nx + 1]);
    let f = &f[at + 1..at + nx];
    let around = line(j - 1, k).iter().zip(line(j + 1, k)).zip(line(j, k - 1).iter().zip(line(j, k + 1)));
    let inner = r[1..nx].iter_mut().zip(own.iter().zip(west.iter().zip(east))).zip(around).zip(f);
    for (((r, (own, (west, east))), ((south, north), (down, up))), f) in inner {
        *r = f - 6.0 * own + ((west + east) + (south + north)) + (down + up);
    }
}

/// Computes the residual plane by plane, restricts it to the next grid's right-hand side by full
/// weighting, and returns its sum of squares.
#[inline(always)]
fn restrict(
    fine: Shape,
    u: &[f64],
    f: &[f64],
    planes: &mut [f64],
    sum: &mut [f64],
    coarse: &mut [f64],
) -> f64 {
    let (next, nx) = (fine.half(), fine.nx);
    let mut squares = [0.0; LANES];
    let plane = fine.plane();
    for k in 1..fine.nz {
        let buffer = &mut planes[(k % 3) * plane..][..plane];
        for (j, r) in buffer.chunks_exact_mut(nx).enumerate().skip(1) {
            r[0] = 0.0;
            residual_line(fine, u, f, r, [j, k]);
            for eight in r.as_chunks::<LANES>().0 {
                for (square, r) in squares.iter_mut().zip(eight) {
                    *square += r * r;
                }
            }
        }
        if k % 2 == 0 || k == 1 {
            continue;
        }
        let place = k / 2;
        for row in 1..next.ny {
            let line = |j: usize, k: usize| &planes[(k % 3) * plane + j * nx..][..nx];
            let (j, k) = (2 * row, 2 * place);
            let own = line(j, k).iter();
            let sides =
                line(j - 1, k).iter().zip(line(j + 1, k)).zip(line(j, k - 1).iter().zip(line(j, k + 1)));
            let corners = line(j - 1, k - 1).iter().zip(line(j + 1, k - 1));
            let corners = corners.zip(line(j - 1, k + 1).iter().zip(line(j + 1, k + 1)));
            for (((sum, own), ((a, b), (c, d))), ((e, f), (g, h))) in
                sum[..nx].iter_mut().zip(own).zip(sides).zip(corners)
            {
                *sum = 0.25 * own + (0.125 * ((a + b) + (c + d)) + 0.0625 * ((e + f) + (g + h)));
            }
            let to = &mut coarse[next.at(row, place) + 1..][..next.nx - 1];
            let pairs = sum[..nx].as_chunks::<2>().0;
            for ((to, before), own) in to.iter_mut().zip(pairs).zip(&pairs[1..]) {
                *to = before[1] + 2.0 * own[0] + own[1];
            }
        }
    }
    squares.iter().sum()
}

/// Adds the coarse grid's correction.
#[inline(always)]
fn interpolate(fine: Shape, u: &mut [f64], coarse: &[f64], sum: &mut [f64]) {
    let next = fine.half();
    for k in 1..fine.nz {
        for j in 1..fine.ny {
            let line = |dj: usize, dk: usize| &coarse[next.at(j / 2 + dj % 2, k / 2 + dk % 2)..][..next.nx];
            let lines = line(0, 0).iter().zip(line(j, 0)).zip(line(0, k).iter().zip(line(j, k)));
            for (sum, ((a, b), (c, d))) in sum[..next.nx].iter_mut().zip(lines) {
                *sum = 0.25 * ((a + b) + (c + d));
            }
            sum[next.nx] = 0.0;
            let pairs = u[fine.at(j, k)..][..fine.nx].as_chunks_mut::<2>().0;
            for ((pair, here), after) in pairs.iter_mut().zip(&sum[..next.nx]).zip(&sum[1..=next.nx]) {
                pair[0] += here;
                pair[1] += 0.5 * (here + after);
            }
        }
    }
}

/// Generates the known solution line by line: a bump and noise, 0 on the boundary.
fn known(shape: Shape, mut each: impl FnMut(usize, &[f64])) {
    let mut rng = Rng(SEED);
    let mut line = vec![0.0; shape.nx];
    let bump = |index: usize, count: usize| {
        let place = index as f64 / count as f64;
        4.0 * place * (1.0 - place)
    };
    for k in 1..shape.nz {
        for j in 1..shape.ny {
            let across = bump(j, shape.ny) * bump(k, shape.nz);
            for (i, value) in line.iter_mut().enumerate().skip(1) {
                *value = across * bump(i, shape.nx) + 0.25 * (rng.unit() - 0.5);
            }
            each(shape.at(j, k), &line);
        }
    }
}

struct Multigrid {
    shapes: Vec<Shape>,
    /// Solutions and right-hand sides of all levels.
    u: Block<f64>,
    f: Block<f64>,
    planes: Block<f64>,
    lines: Vec<f64>,
    /// Sum of squares of the residual in each cycle, before the correction.
    squares: [f64; CYCLES],
    steps: Steps,
}

impl Multigrid {
    fn new(arena: &mut Arena) -> Result<Multigrid> {
        let shapes = shapes(arena.bytes).with_context(|| {
            format!("multigrid needs at least 300,000 bytes; the arena has {}", arena.bytes)
        })?;
        let fine = shapes[0];
        let points = shapes.iter().map(|shape| shape.points()).sum();
        let mut made = Multigrid {
            u: arena.f64s(points)?,
            f: arena.f64s(points)?,
            planes: arena.f64s(3 * fine.plane())?,
            lines: vec![0.0; 2 * (fine.nx + LANES)],
            squares: [0.0; CYCLES],
            steps: arena.steps.clone(),
            shapes,
        };
        known(fine, |at, line| made.u[at..at + fine.nx].copy_from_slice(line));
        let mut line = vec![0.0; fine.nx];
        for k in 1..fine.nz {
            for j in 1..fine.ny {
                residual_line(fine, &made.u, &made.f, &mut line, [j, k]);
                let to = &mut made.f[fine.at(j, k)..][..fine.nx];
                to.iter_mut().zip(&line).for_each(|(f, r)| *f = -r);
            }
        }
        Ok(made)
    }

    #[inline(always)]
    fn solve(&mut self) {
        let Multigrid { shapes, u, f, planes, lines, squares, steps } = self;
        let coarsest = shapes.len() - 1;
        u[..shapes[0].points()].fill(0.0);
        for square in squares {
            let mut at = 0;
            for (level, &shape) in shapes.iter().enumerate() {
                let (own, coarser) = u[at..].split_at_mut(shape.points());
                let (f, coarser_f) = f[at..].split_at_mut(shape.points());
                if level == coarsest {
                    (0..COARSEST_SWEEPS).for_each(|_| smooth(shape, own, f));
                    continue;
                }
                smooth(shape, own, f);
                let sum = restrict(shape, own, f, planes, lines, coarser_f);
                coarser[..shapes[level + 1].points()].fill(0.0);
                if level == 0 {
                    *square = sum;
                }
                at += shape.points();
            }
            for &shape in shapes[..coarsest].iter().rev() {
                at -= shape.points();
                let (own, coarser) = u[at..].split_at_mut(shape.points());
                interpolate(shape, own, coarser, lines);
                smooth(shape, own, &f[at..]);
            }
            steps.end_one();
        }
    }
}

impl Work for Multigrid {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.solve(),
        );
    }
    fn units(&self) -> u64 {
        let Shape { nx, ny, nz } = self.shapes[0];
        (nx * ny * nz * CYCLES) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let (fine, u) = (self.shapes[0], &self.u[..self.shapes[0].points()]);
        let (mut left, mut all) = (0.0, 0.0);
        for k in 1..fine.nz {
            for j in 1..fine.ny {
                residual_line(fine, u, &self.f, &mut self.lines, [j, k]);
                left += self.lines[1..fine.nx].iter().map(|r| r * r).sum::<f64>();
                all += self.f[fine.at(j, k)..][..fine.nx].iter().map(|f| f * f).sum::<f64>();
            }
        }
        let worst = self.squares.windows(2).map(|pair| (pair[1] / pair[0]).sqrt()).fold(0.0, f64::max);
        let residual = (left / all).sqrt();
        let (mut wrong, mut size) = (0.0, 0.0);
        known(fine, |at, line| {
            for (known, u) in line.iter().zip(&u[at..]).skip(1) {
                wrong += (u - known) * (u - known);
                size += known * known;
            }
        });
        let error = (wrong / size).sqrt();
        if !(worst < SHRINKS && residual < RESIDUAL && error < ERROR) {
            return Err(format!(
                "a cycle leaves {worst:e} of the residual (below {SHRINKS}), all leave {residual:e} (below \
                 {RESIDUAL:e}) and an error of {error:e} (below {ERROR:e})"
            ));
        }
        let mut sum = Checksum::new();
        sum.f64s(u);
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        size(&self.shapes)
    }
}

#[cfg(test)]
mod tests;
