//! Fourier transforms of a box larger than the caches: forward, a shift, and inverse.
//!
//! The fast transform of Cooley & Tukey ("An Algorithm for the Machine Calculation of Complex
//! Fourier Series", 1965) as Stockham orders it (Cochran et al., "What is the Fast Fourier
//! Transform?", 1967), with radices 4, 3 and 2, along x, then y, then z, as in NPB's FT (Bailey et
//! al., "The NAS Parallel Benchmarks", 1991). Eight fields are interleaved, so that every pencil of
//! the box has eight sequences for the vector units. Between the transforms each wave is rotated by
//! the phase of a shift, so the fields return shifted. 654.roms and 549.fotonik3d have its strides;
//! pseudo-spectral codes do the same.
use super::{Character, Checksum, Component, Rng, Work, ids, near};
use crate::vectors::with_widest_vectors;
use anyhow::{Context, Result};
use pencil::{Numbers, Pencil, Plan, transform};
use sys::block::{Arena, Block};
use sys::steps::Steps;

mod pencil;

pub(super) const COMPONENT: Component = Component {
    id: ids::FOURIER,
    title: "Fourier transforms",
    about: "Transforms eight complex fields in a box by fast Fourier transforms, twice forth and back, in double \
            precision.",
    reading: "Million points a second, each transformed once forth and back; more is better. It makes five passes \
              with long strides and about 100 operations for each point. It is built to need memory bandwidth, TLB and vector \
              units. The column \"bound by\" of a run names the actual limit.",
    method: "Between transforms every wave is turned by the phase of a shift. Every point must come back shifted, \
             and the energy of waves and fields must agree (Parseval). The checksum covers fields and energies.",
    source: file!(),
    character: Character::Bandwidth,
    units: "points",
    reference: 105.0,
    expected_checksum: 0x7b81_5e38_6386_d50d,
    make: |arena| Ok(Box::new(Fourier::new(arena, Shape::within(arena.bytes)?)?)),
};

const LANES: usize = 8;
/// Number of forward and inverse transforms, each of the result of the one before.
const ROUNDS: usize = 2;
/// Shift of the fields in each round, points.
const SHIFT: [usize; 3] = [3, 5, 7];

/// Layout of the box in lines of eight numbers; rows and planes have an odd number of lines, so
/// that strides use all sets of caches.
#[derive(Clone, Copy, Debug)]
struct Shape {
    sides: [usize; 3],
    row: usize,
    plane: usize,
    lines: usize,
}

impl Shape {
    fn new(sides: [usize; 3]) -> Shape {
        let row = sides[0] | 1;
        let plane = (row * sides[1]) | 1;
        Shape { sides, row, plane, lines: plane * sides[2] }
    }
    /// The largest box with sides 2^a, 3 * 2^a or 9 * 2^a that is at most four times as long as
    /// high.
    fn within(bytes: u64) -> Result<Shape> {
        let lines = usize::try_from(bytes.saturating_sub(1 << 18) / (4 * 8 * LANES as u64))?;
        let sides: Vec<usize> =
            (4..12).flat_map(|k| [1 << k, 3 << (k - 1), 9 << (k - 3)]).filter(|side| *side >= 16).collect();
        let fits = |x: &usize, y: &usize, z: &usize| {
            let (low, high) = (*x.min(y).min(z), *x.max(y).max(z));
            high <= 4 * low && Shape::new([*x, *y, *z]).lines <= lines
        };
        let all = sides.iter().flat_map(|x| sides.iter().map(move |y| (x, y)));
        let all = all.flat_map(|(x, y)| sides.iter().map(move |z| (x, y, z)));
        let best = all.filter(|(x, y, z)| fits(x, y, z)).max_by_key(|(x, y, z)| (*x * *y * *z, *x, *y));
        let (x, y, z) = best.context("Fourier transforms need at least 2 MiB")?;
        Ok(Shape::new([*x, *y, *z]))
    }
    fn points(&self) -> usize {
        self.sides.iter().product()
    }
}

/// Complex numbers for all points of the box.
struct Field {
    re: Block<f64>,
    im: Block<f64>,
    /// Elements before the first whole cache line.
    skip: [usize; 2],
}

impl Field {
    fn new(arena: &mut Arena, shape: &Shape) -> Result<Field> {
        let count = (shape.lines + 1) * LANES;
        let (re, im) = (arena.f64s(count)?, arena.f64s(count)?);
        let skip = [&re, &im].map(|block| block.as_ptr().align_offset(64).min(LANES));
        Ok(Field { re, im, skip })
    }
    #[inline(always)]
    fn parts(&self) -> (&[[f64; LANES]], &[[f64; LANES]]) {
        (self.re[self.skip[0]..].as_chunks().0, self.im[self.skip[1]..].as_chunks().0)
    }
    #[inline(always)]
    fn parts_mut(&mut self) -> (&mut [[f64; LANES]], &mut [[f64; LANES]]) {
        (self.re[self.skip[0]..].as_chunks_mut().0, self.im[self.skip[1]..].as_chunks_mut().0)
    }
    /// Reads every `stride`th line.
    #[inline(always)]
    fn load(&self, begin: usize, stride: usize, count: usize, pencil: &mut Pencil) {
        let (re, im) = self.parts();
        let Pencil { re: to_re, im: to_im } = pencil;
        for (at, (to_re, to_im)) in to_re[..count].iter_mut().zip(&mut to_im[..count]).enumerate() {
            (*to_re, *to_im) = (re[begin + at * stride], im[begin + at * stride]);
        }
    }
    #[inline(always)]
    fn store(&mut self, begin: usize, stride: usize, count: usize, pencil: &Pencil) {
        let (re, im) = self.parts_mut();
        for (at, (from_re, from_im)) in pencil.re[..count].iter().zip(&pencil.im[..count]).enumerate() {
            (re[begin + at * stride], im[begin + at * stride]) = (*from_re, *from_im);
        }
    }
}

struct Fourier {
    shape: Shape,
    start: Field,
    field: Field,
    plans: [Plan; 3],
    pencil: Pencil,
    spare: Pencil,
    /// Energy of the waves of each of the eight fields.
    energy: [f64; LANES],
    steps: Steps,
}

impl Fourier {
    fn new(arena: &mut Arena, shape: Shape) -> Result<Fourier> {
        let mut start = Field::new(arena, &shape)?;
        let mut field = Field::new(arena, &shape)?;
        let mut rng = Rng(0xf0);
        let (re, im) = start.parts_mut();
        for lines in [re, im] {
            let values = lines[..shape.lines].as_flattened_mut();
            values.iter_mut().for_each(|value| *value = rng.unit() - 0.5);
        }
        field.re.fill(0.0);
        field.im.fill(0.0);
        let longest = shape.sides.iter().copied().fold(0, usize::max);
        let [pencil, spare] = [Pencil::new(longest), Pencil::new(longest)];
        Ok(Fourier {
            shape,
            start,
            field,
            plans: shape.sides.map(Plan::new),
            pencil,
            spare,
            energy: [0.0; LANES],
            steps: arena.steps.clone(),
        })
    }
    /// Transforms along x or y; inversely by exchanging real and imaginary parts.
    #[inline(always)]
    fn pass(&mut self, along: usize, back: bool, first: bool) {
        let Shape { sides: [nx, ny, nz], row, plane, .. } = self.shape;
        let ([across, step], stride) = if along == 0 { ([ny, row], 1) } else { ([nx, 1], row) };
        let plan = &self.plans[along];
        for (z, at) in (0..nz).flat_map(|z| (0..across).map(move |at| (z, at))) {
            let begin = z * plane + at * step;
            let from = if first { &self.start } else { &self.field };
            from.load(begin, stride, plan.points, &mut self.pencil);
            if back {
                self.pencil.swap();
            }
            transform(plan, &mut self.pencil, &mut self.spare);
            if back {
                self.pencil.swap();
            }
            self.field.store(begin, stride, plan.points, &self.pencil);
        }
    }
    /// Transforms along z, rotates the waves, and transforms back.
    #[inline(always)]
    fn middle(&mut self) {
        let Shape { sides: [nx, ny, nz], row, plane, .. } = self.shape;
        let [plan_x, plan_y, plan] = &self.plans;
        let scale = 1.0 / self.shape.points() as f64;
        self.energy = [0.0; LANES];
        for (y, x) in (0..ny).flat_map(|y| (0..nx).map(move |x| (y, x))) {
            self.field.load(y * row + x, plane, nz, &mut self.pencil);
            transform(plan, &mut self.pencil, &mut self.spare);
            let (turn_x, turn_y) = (plan_x.turns[x * SHIFT[0] % nx], plan_y.turns[y * SHIFT[1] % ny]);
            let turn = times(turn_x, turn_y);
            let turn = (turn.0 * scale, turn.1 * scale);
            let Pencil { re, im } = &mut self.pencil;
            for (z, (re, im)) in re[..nz].iter_mut().zip(&mut im[..nz]).enumerate() {
                for lane in 0..LANES {
                    self.energy[lane] += re[lane] * re[lane] + im[lane] * im[lane];
                }
                let turned = Numbers { re: *re, im: *im }.times(times(turn, plan.turns[z * SHIFT[2] % nz]));
                (*re, *im) = (turned.re, turned.im);
            }
            self.pencil.swap();
            transform(plan, &mut self.pencil, &mut self.spare);
            self.pencil.swap();
            self.field.store(y * row + x, plane, nz, &self.pencil);
        }
    }
    #[inline(always)]
    fn work(&mut self) {
        for round in 0..ROUNDS {
            self.pass(0, false, round == 0);
            self.pass(1, false, false);
            self.middle();
            self.pass(1, true, false);
            self.pass(0, true, false);
            self.steps.end_one();
        }
    }
}

#[inline(always)]
fn times(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The former place on a side of the point that is now at `at`.
fn before(at: usize, side: usize, shift: usize) -> usize {
    (at + side - ROUNDS * shift % side) % side
}

impl Work for Fourier {
    fn iterate(&mut self) {
        with_widest_vectors(
            #[inline(always)]
            || self.work(),
        );
    }
    fn units(&self) -> u64 {
        (2 * ROUNDS * self.shape.points() * LANES) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let Shape { sides: [nx, ny, nz], row, plane, .. } = self.shape;
        let (mut energy, mut sum) = ([0.0; LANES], Checksum::new());
        let (start_re, start_im) = self.start.parts();
        let (re, im) = self.field.parts();
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            let from = before(z, nz, SHIFT[2]) * plane + before(y, ny, SHIFT[1]) * row;
            for x in 0..nx {
                let (at, from) = (z * plane + y * row + x, from + before(x, nx, SHIFT[0]));
                for lane in 0..LANES {
                    let right = (start_re[from][lane], start_im[from][lane]);
                    if !(near(re[at][lane], right.0, 1e-13) && near(im[at][lane], right.1, 1e-13)) {
                        let back = (re[at][lane], im[at][lane]);
                        return Err(format!(
                            "field {lane} at {x}, {y}, {z} is {back:?} after the transforms, not {right:?}"
                        ));
                    }
                    energy[lane] += right.0 * right.0 + right.1 * right.1;
                }
                sum.f64s(&re[at]);
                sum.f64s(&im[at]);
            }
        }
        for (waves, points) in self.energy.iter().zip(energy) {
            let right = points * self.shape.points() as f64;
            if !near(*waves, right, 1e-11 * right) {
                return Err(format!("the waves have the energy {waves}, the points {right}"));
            }
        }
        sum.f64s(&self.energy);
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let turns: usize = self.plans.iter().map(|plan| plan.turns.len()).sum();
        (4 * self.start.re.len() * 8 + turns * 16 + 4 * self.pencil.re.len() * 64) as u64
    }
}

#[cfg(test)]
mod tests;
