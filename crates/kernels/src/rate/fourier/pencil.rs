//! Transforms of eight interleaved sequences in cache.
use super::LANES;

pub(super) type Lanes = [f64; LANES];

/// Eight complex numbers.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub re: Lanes,
    pub im: Lanes,
}

impl Numbers {
    #[inline(always)]
    fn plus(mut self, other: Numbers) -> Numbers {
        for lane in 0..LANES {
            self.re[lane] += other.re[lane];
            self.im[lane] += other.im[lane];
        }
        self
    }
    #[inline(always)]
    fn minus(mut self, other: Numbers) -> Numbers {
        for lane in 0..LANES {
            self.re[lane] -= other.re[lane];
            self.im[lane] -= other.im[lane];
        }
        self
    }
    /// Plus i times the other.
    #[inline(always)]
    fn plus_turned(mut self, other: Numbers) -> Numbers {
        for lane in 0..LANES {
            self.re[lane] -= other.im[lane];
            self.im[lane] += other.re[lane];
        }
        self
    }
    /// Minus i times the other.
    #[inline(always)]
    fn minus_turned(mut self, other: Numbers) -> Numbers {
        for lane in 0..LANES {
            self.re[lane] += other.im[lane];
            self.im[lane] -= other.re[lane];
        }
        self
    }
    #[inline(always)]
    fn scaled(mut self, by: f64) -> Numbers {
        for lane in 0..LANES {
            self.re[lane] *= by;
            self.im[lane] *= by;
        }
        self
    }
    #[inline(always)]
    pub(super) fn times(mut self, (re, im): (f64, f64)) -> Numbers {
        for lane in 0..LANES {
            let (a, b) = (self.re[lane], self.im[lane]);
            self.re[lane] = a * re - b * im;
            self.im[lane] = a * im + b * re;
        }
        self
    }
}

/// Cosine and sine of `-turns / side` of a full turn, by a series for at most an eighth: the same
/// bits on every CPU.
pub(super) fn turn(turns: usize, side: usize) -> (f64, f64) {
    let quarters = (8 * turns + side) / (2 * side);
    let rest = (4 * turns) as f64 - (quarters * side) as f64;
    let angle = std::f64::consts::FRAC_PI_2 * rest / side as f64;
    let square = angle * angle;
    let series = |first: u32| {
        let terms = (0..12).map(|k| 2 * k + first).rev();
        terms.fold(1.0, |sum, k| 1.0 - square / f64::from((k + 1) * (k + 2)) * sum)
    };
    let (cos, sin) = (series(0), angle * series(1));
    match quarters % 4 {
        0 => (cos, -sin),
        1 => (-sin, -cos),
        2 => (-cos, sin),
        _ => (sin, cos),
    }
}

/// The plan of a transform: number of points, radices of its stages, and roots of unity.
pub(super) struct Plan {
    pub points: usize,
    radices: Vec<usize>,
    pub turns: Vec<(f64, f64)>,
}

impl Plan {
    /// A plan for 2^a 3^b points.
    pub(super) fn new(points: usize) -> Plan {
        let (mut left, mut radices) = (points, Vec::new());
        for radix in [4, 3, 2] {
            while left % radix == 0 {
                radices.push(radix);
                left /= radix;
            }
        }
        Plan { points, radices, turns: (0..points).map(|at| turn(at, points)).collect() }
    }
}

/// A sequence of `Numbers` in two arrays.
pub(super) struct Pencil {
    pub re: Vec<Lanes>,
    pub im: Vec<Lanes>,
}

impl Pencil {
    pub(super) fn new(points: usize) -> Pencil {
        Pencil { re: vec![[0.0; LANES]; points], im: vec![[0.0; LANES]; points] }
    }
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.re, &mut self.im);
    }
}

type Part<'a> = (&'a [Lanes], &'a [Lanes]);
type PartMut<'a> = (&'a mut [Lanes], &'a mut [Lanes]);

#[inline(always)]
fn get(part: Part, at: usize) -> Numbers {
    Numbers { re: part.0[at], im: part.1[at] }
}
#[inline(always)]
fn put(part: &mut PartMut, at: usize, value: Numbers) {
    (part.0[at], part.1[at]) = (value.re, value.im);
}

/// A stage of Stockham's algorithm: from `count` interleaved sequences of `points` points to `R`
/// times as many of `points / R`. For each place of the sequences `$work` gets the `R` parts to
/// read and to write, and the roots of unity.
macro_rules! stage {
    ($name:ident, $radix:literal, $([$at:literal $from:ident $to:ident])*, $turns:ident, $q:ident, $work:block) => {
        #[inline(always)]
        fn $name(from: &Pencil, to: &mut Pencil, points: usize, count: usize, table: &[(f64, f64)]) {
            let part = points / $radix;
            // The compiler does not know this end of the loop over `$q`; else it would vectorise
            // across places instead of lanes.
            let end = std::hint::black_box(count);
            for p in 0..part {
                let $turns = [$(table[$at * p * count]),*];
                $(
                    let begin = count * (p + $at * part);
                    let $from = (&from.re[begin..][..count], &from.im[begin..][..count]);
                )*
                let (_re, _im) = (&mut to.re[$radix * count * p..], &mut to.im[$radix * count * p..]);
                $(
                    let ((now_re, _re), (now_im, _im)) = (_re.split_at_mut(count), _im.split_at_mut(count));
                    let mut $to = (now_re, now_im);
                )*
                for $q in 0..count {
                    if $q == end {
                        break;
                    }
                    $work
                }
            }
        }
    };
}

stage!(stage_2, 2, [0 a s] [1 b t], turns, q, {
    let (a, b) = (get(a, q), get(b, q));
    put(&mut s, q, a.plus(b));
    put(&mut t, q, a.minus(b).times(turns[1]));
});

stage!(stage_3, 3, [0 a s] [1 b t] [2 c u], turns, q, {
    let (a, b, c) = (get(a, q), get(b, q), get(c, q));
    let (both, apart) = (b.plus(c), b.minus(c).scaled(0.866_025_403_784_438_6));
    let rest = a.minus(both.scaled(0.5));
    put(&mut s, q, a.plus(both));
    put(&mut t, q, rest.minus_turned(apart).times(turns[1]));
    put(&mut u, q, rest.plus_turned(apart).times(turns[2]));
});

stage!(stage_4, 4, [0 a s] [1 b t] [2 c u] [3 d v], turns, q, {
    let (a, b, c, d) = (get(a, q), get(b, q), get(c, q), get(d, q));
    let (even, odd) = (a.plus(c), b.plus(d));
    let (even_less, odd_less) = (a.minus(c), b.minus(d));
    put(&mut s, q, even.plus(odd));
    put(&mut t, q, even_less.minus_turned(odd_less).times(turns[1]));
    put(&mut u, q, even.minus(odd).times(turns[2]));
    put(&mut v, q, even_less.plus_turned(odd_less).times(turns[3]));
});

/// Transforms `pencil` in place; `spare` has the same length.
#[inline(always)]
pub(super) fn transform(plan: &Plan, pencil: &mut Pencil, spare: &mut Pencil) {
    let (mut points, mut count) = (plan.points, 1);
    for &radix in &plan.radices {
        match radix {
            4 => stage_4(pencil, spare, points, count, &plan.turns),
            3 => stage_3(pencil, spare, points, count, &plan.turns),
            _ => stage_2(pencil, spare, points, count, &plan.turns),
        }
        (points, count) = (points / radix, count * radix);
        std::mem::swap(pencil, spare);
    }
}
