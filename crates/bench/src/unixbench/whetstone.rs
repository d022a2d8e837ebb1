//! Whetstone (Curnow and Wichmann, The Computer Journal 19:1, 1976) in double precision: its eight
//! active modules with the published weights, in the form in which C programs have measured it
//! since the 1990s (constants near one half, so that no value runs away, and the results that are
//! published for it).

use std::hint::black_box;

use super::super::check_answer;
use super::copies::Loops;

/// How often the weights are gone through in a loop, and so the loop's work: a tenth of this in
/// millions of Whetstone instructions.
const TIMES: u32 = 100;
pub const MILLIONS: f64 = TIMES as f64 / 10.0;

const T: f64 = 0.499_999_75;
const T1: f64 = 0.500_000_25;
const T2: f64 = 2.0;

/// What the modules have come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Results(pub [f64; 8]);

/// Array elements, an array as a parameter, conditional jumps, integer arithmetic, trigonometric
/// functions, procedure calls, array references, standard functions.
pub const PUBLISHED: Results = Results([
    -1.123_982_556_673_919,
    -1.121_870_798_892_844,
    1.0,
    12.0,
    0.499_029_372_815_151_4,
    0.999_999_878_908_028_2,
    3.0,
    0.751_001_630_184_578_7,
]);

/// The first module has a tenth of its published turns in a loop: the C programs give it ten times
/// its weight, for the sake of clocks that were coarse once, and count a tenth of its time. What
/// the first two modules come to then follows from the same definition.
const IN_A_LOOP: Results = {
    let mut results = PUBLISHED;
    results.0[0] = -1.132_394_993_031_359_7;
    results.0[1] = -1.130_271_024_784_749_8;
    results
};
const OVERWEIGHT: u32 = 10;

/// Libraries and compilers differ in the last digits, and 12000 turns add them up.
const TOLERANCE: f64 = 1e-9;

/// The loops of a copy, once the published results have come out.
pub fn loops() -> anyhow::Result<Loops> {
    checked(&run(OVERWEIGHT), &PUBLISHED)?;
    Ok(Box::new(|loops: u64| {
        for _ in 0..loops {
            checked(&run(1), &IN_A_LOOP)?;
        }
        Ok(())
    }))
}

fn checked(results: &Results, meant: &Results) -> anyhow::Result<()> {
    let near = |(own, meant): (&f64, &f64)| (own - meant).abs() <= TOLERANCE;
    check_answer(results.0.iter().zip(&meant.0).all(near), || {
        format!("the Whetstone modules gave {:?} instead of {:?}", results.0, meant.0)
    })
}

/// Runs all modules, each as often as its weight, the first one by a further factor.
fn run(overweight: u32) -> Results {
    // How often is unknown to the compiler: what does not change from turn to turn must still be
    // done by turns.
    let times = black_box(TIMES);
    let mut e = black_box([1.0, -1.0, -1.0, -1.0]);
    let one = elements(&mut e, 12 * overweight * times);
    let two = parameters(&mut e, 14 * times);
    let three = jumps(345 * times);
    let four = integers(&mut e, 210 * times);
    let five = trigonometry(32 * times);
    let six = calls(899 * times);
    let seven = references(&mut e, 616 * times);
    let eight = functions(93 * times);
    Results([one, two, three, four, five, six, seven, eight])
}

/// One turn of the first two modules, whose last line divides in the second one.
#[inline(always)]
fn turn(e: &mut [f64; 4], last: impl Fn(f64) -> f64) {
    e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
    e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
    e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
    e[3] = last(-e[0] + e[1] + e[2] + e[3]);
}

/// Array elements: weight 12.
fn elements(e: &mut [f64; 4], turns: u32) -> f64 {
    for _ in 0..turns {
        turn(e, |sum| sum * T);
    }
    e[3]
}

/// An array as a parameter: weight 14.
fn parameters(e: &mut [f64; 4], turns: u32) -> f64 {
    for _ in 0..turns {
        six_turns(e);
    }
    e[3]
}

#[inline(never)]
fn six_turns(e: &mut [f64; 4]) {
    for _ in 0..6 {
        turn(e, |sum| sum / T2);
    }
}

/// Conditional jumps: weight 345.
fn jumps(turns: u32) -> f64 {
    let mut j = black_box(1);
    for _ in 0..turns {
        j = if j == 1 { 2 } else { 3 };
        j = if j > 2 { 0 } else { 1 };
        j = if j < 1 { 1 } else { 0 };
    }
    f64::from(j)
}

/// Integer arithmetic: weight 210. Every turn comes to the same numbers, which compilers find out:
/// with them, as with the suite's, this module takes no time.
fn integers(e: &mut [f64; 4], turns: u32) -> f64 {
    let (mut j, mut k, mut l) = (1usize, 2usize, 3usize);
    for _ in 0..turns {
        j = j * (k - j) * (l - k);
        k = l * k - (l - j) * k;
        l = (l - k) * (k + j);
        e[l - 2] = (j + k + l) as f64;
        e[k - 2] = (j * k * l) as f64;
    }
    e[0] + e[1]
}

/// Trigonometric functions: weight 32. Published is the value before the last half turn.
fn trigonometry(turns: u32) -> f64 {
    let (mut x, mut y, mut before) = (black_box(0.5f64), black_box(0.5f64), 0.0);
    for _ in 0..turns {
        before = y;
        x = T * (T2 * x.sin() * x.cos() / ((x + y).cos() + (x - y).cos() - 1.0)).atan();
        y = T * (T2 * y.sin() * y.cos() / ((x + y).cos() + (x - y).cos() - 1.0)).atan();
    }
    black_box(y);
    before
}

/// Procedure calls: weight 899.
fn calls(turns: u32) -> f64 {
    let (mut x, mut y, mut z) = (black_box(1.0), black_box(1.0), black_box(1.0));
    for _ in 0..turns {
        procedure(&mut x, &mut y, &mut z);
    }
    z
}

fn procedure(x: &mut f64, y: &mut f64, z: &mut f64) {
    *x = *y;
    *y = *z;
    *x = T * (*x + *y);
    *y = T1 * (*x + *y);
    *z = (*x + *y) / T2;
}

/// Array references: weight 616.
fn references(e: &mut [f64; 4], turns: u32) -> f64 {
    e[..3].copy_from_slice(&[1.0, 2.0, 3.0]);
    let (j, k, l) = black_box((0usize, 1usize, 2usize));
    for _ in 0..turns {
        assign(e, j, k, l);
    }
    e[2]
}

#[inline(never)]
fn assign(e: &mut [f64; 4], j: usize, k: usize, l: usize) {
    e[j] = e[k];
    e[k] = e[l];
    e[l] = e[j];
}

/// Standard functions: weight 93.
fn functions(turns: u32) -> f64 {
    let mut x = black_box(0.75f64);
    for _ in 0..turns {
        x = (x.ln() / T1).exp().sqrt();
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;

    #[test]
    fn the_published_results_come_out() {
        for (overweight, meant) in [(OVERWEIGHT, PUBLISHED), (1, IN_A_LOOP)] {
            let results = run(overweight);
            assert!(checked(&results, &meant).is_ok(), "{results:?}");
        }
    }

    #[test]
    fn each_module_that_comes_to_something_else_is_a_wrong_answer() {
        for module in 0..8 {
            let mut results = PUBLISHED;
            results.0[module] *= 1.0 + 1e-6;
            let error = checked(&results, &PUBLISHED).expect_err("planted");
            assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{module}: {error}");
        }
        let mut results = PUBLISHED;
        results.0[4] = f64::NAN;
        assert!(checked(&results, &PUBLISHED).is_err());
    }
}
