//! Collision and initial state of rows of cells, eight cells at a time.
use super::{AXIS, DIAGONAL, LANES, OMEGA, Q, REST};
use std::ops::{Add, Mul, Sub};

#[derive(Clone, Copy)]
struct V([f64; LANES]);

impl V {
    #[inline(always)]
    fn all(value: f64) -> V {
        V([value; LANES])
    }
    #[inline(always)]
    fn inverse(mut self) -> V {
        for lane in 0..LANES {
            self.0[lane] = 1.0 / self.0[lane];
        }
        self
    }
}
impl Add for V {
    type Output = V;
    #[inline(always)]
    fn add(mut self, other: V) -> V {
        for lane in 0..LANES {
            self.0[lane] += other.0[lane];
        }
        self
    }
}
impl Sub for V {
    type Output = V;
    #[inline(always)]
    fn sub(mut self, other: V) -> V {
        for lane in 0..LANES {
            self.0[lane] -= other.0[lane];
        }
        self
    }
}
impl Mul for V {
    type Output = V;
    #[inline(always)]
    fn mul(mut self, other: V) -> V {
        for lane in 0..LANES {
            self.0[lane] *= other.0[lane];
        }
        self
    }
}

/// Factors of a pair's share of the equilibrium: its weight times the common part, times 4.5, and
/// times 3.
type Weights = [V; 3];

#[inline(always)]
fn weights(weight: V, base: V) -> Weights {
    [weight * base, weight * V::all(4.5), weight * V::all(3.0)]
}

/// A pair's share of the equilibrium: the part of both directions, and the part that is added to
/// the first and subtracted from the second.
#[inline(always)]
fn share([base, square, simple]: Weights, along: V) -> (V, V) {
    (base + square * along * along, simple * along)
}

/// Relaxes a pair and stores each direction in the slot of its opposite.
#[inline(always)]
fn relax(there: &mut [f64; LANES], back: &mut [f64; LANES], (even, odd): (V, V)) {
    let keep = V::all(1.0 - OMEGA);
    let swapped = keep * V(*there) + (even + odd);
    *there = (keep * V(*back) + (even - odd)).0;
    *back = swapped.0;
}

#[inline(always)]
fn set(there: &mut [f64; LANES], back: &mut [f64; LANES], (even, odd): (V, V)) {
    (*there, *back) = ((even + odd).0, (even - odd).0);
}

/// Rows of cells as lanes.
macro_rules! lanes {
    ($rows:ident, $cells:expr, $($row:ident)*) => {
        let [$($row),*] = $rows;
        $(let $row = &mut $row[..$cells].as_chunks_mut::<LANES>().0[..$cells / LANES];)*
    };
}

/// Written out without loops, because the compiler would vectorise loops across the pairs.
#[inline(always)]
pub(super) fn collide(rows: [&mut [f64]; Q], cells: usize) {
    lanes!(rows, cells, rest a0 a1 b0 b1 c0 c1 d0 d1 e0 e1 g0 g1 h0 h1 i0 i1 j0 j1);
    for at in 0..cells / LANES {
        macro_rules! sums {
            ($($plus:ident $minus:ident $there:ident $back:ident),*) => {
                $(let ($plus, $minus) = (V($there[at]) + V($back[at]), V($there[at]) - V($back[at]));)*
            };
        }
        sums!(a p a0 a1, b q b0 b1, c r c0 c1, d s d0 d1, e t e0 e1, g u g0 g1, h v h0 h1, i w i0 i1, j o j0 j1);
        let density = ((V(rest[at]) + a) + (b + c)) + ((d + e) + (g + h)) + (i + j);
        let inverse = density.inverse();
        let x = (((p + s) + (t + u)) + v) * inverse;
        let y = (((q + s) - (t - w)) + o) * inverse;
        let z = (((r + u) - (v - w)) - o) * inverse;
        let base = V::all(1.0) - V::all(1.5) * (x * x + y * y + z * z);
        let axis = weights(density * V::all(OMEGA * AXIS), base);
        let diagonal = weights(density * V::all(OMEGA * DIAGONAL), base);
        rest[at] = (V::all(1.0 - OMEGA) * V(rest[at]) + density * V::all(OMEGA * REST) * base).0;
        relax(&mut a0[at], &mut a1[at], share(axis, x));
        relax(&mut b0[at], &mut b1[at], share(axis, y));
        relax(&mut c0[at], &mut c1[at], share(axis, z));
        relax(&mut d0[at], &mut d1[at], share(diagonal, x + y));
        relax(&mut e0[at], &mut e1[at], share(diagonal, x - y));
        relax(&mut g0[at], &mut g1[at], share(diagonal, x + z));
        relax(&mut h0[at], &mut h1[at], share(diagonal, x - z));
        relax(&mut i0[at], &mut i1[at], share(diagonal, y + z));
        relax(&mut j0[at], &mut j1[at], share(diagonal, y - z));
    }
}

/// Sets a row of cells to equilibrium at density 1. The velocity has the x part `x`; its y and z
/// parts are sums of a part for the row and one for each cell.
#[inline(always)]
pub(super) fn settle(rows: [&mut [f64]; Q], x: f64, y: (f64, &[f64]), z: (f64, &[f64])) {
    let cells = y.1.len();
    lanes!(rows, cells, rest a0 a1 b0 b1 c0 c1 d0 d1 e0 e1 g0 g1 h0 h1 i0 i1 j0 j1);
    let (ys, zs) =
        (&y.1.as_chunks::<LANES>().0[..cells / LANES], &z.1.as_chunks::<LANES>().0[..cells / LANES]);
    for at in 0..cells / LANES {
        let (x, y, z) = (V::all(x), V::all(y.0) + V(ys[at]), V::all(z.0) + V(zs[at]));
        let base = V::all(1.0) - V::all(1.5) * (x * x + y * y + z * z);
        let (axis, diagonal) = (weights(V::all(AXIS), base), weights(V::all(DIAGONAL), base));
        rest[at] = (V::all(REST) * base).0;
        set(&mut a0[at], &mut a1[at], share(axis, x));
        set(&mut b0[at], &mut b1[at], share(axis, y));
        set(&mut c0[at], &mut c1[at], share(axis, z));
        set(&mut d0[at], &mut d1[at], share(diagonal, x + y));
        set(&mut e0[at], &mut e1[at], share(diagonal, x - y));
        set(&mut g0[at], &mut g1[at], share(diagonal, x + z));
        set(&mut h0[at], &mut h1[at], share(diagonal, x - z));
        set(&mut i0[at], &mut i1[at], share(diagonal, y + z));
        set(&mut j0[at], &mut j1[at], share(diagonal, y - z));
    }
}
