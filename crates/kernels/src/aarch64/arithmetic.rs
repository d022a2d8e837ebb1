//! Arithmetic for 64-bit ARM: the instructions that compilers use (scalar floating point).

use std::arch::asm;

use crate::arithmetic::{DIVIDENDS_32, DIVIDENDS_64, DIVISOR, STEP, STREAMS, TOP_32, TOP_64};

// `$part` makes a register's name that of the part which the numbers fill.
macro_rules! int_divide {
    ($chain:ident, $streams:ident, $top:expr, $dividends:expr, $part:literal) => {
        pub fn $chain(rounds: u64, start: u64) -> u64 {
            let mut state = start;
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 64",
                    concat!("udiv {state", $part, "}, {state", $part, "}, {divisor", $part, "}"),
                    concat!("orr {state", $part, "}, {state", $part, "}, {top", $part, "}"),
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    divisor = in(reg) DIVISOR,
                    top = in(reg) $top,
                    state = inout(reg) state,
                    rounds = inout(reg) rounds => _,
                    options(nostack, nomem, pure),
                );
            }
            state
        }

        pub fn $streams(rounds: u64, start: u64) -> u64 {
            let mut sum = start;
            // SAFETY: registers only; writing the lower half of a register clears the upper one.
            unsafe {
                asm!(
                    "2:",
                    ".rept 8",
                    concat!(".irp dividend,{one", $part, "},{other", $part, "}"),
                    concat!("udiv {quotient", $part, "}, \\dividend, {divisor", $part, "}"),
                    "add {sum}, {sum}, {quotient}",
                    ".endr",
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    divisor = in(reg) DIVISOR,
                    one = in(reg) $dividends[0],
                    other = in(reg) $dividends[1],
                    quotient = out(reg) _,
                    sum = inout(reg) sum,
                    rounds = inout(reg) rounds => _,
                    options(nostack, nomem, pure),
                );
            }
            sum
        }
    };
}

int_divide!(divide_64, divide_64s, TOP_64, DIVIDENDS_64, "");
int_divide!(divide_32, divide_32s, TOP_32, DIVIDENDS_32, ":w");

macro_rules! int_streams {
    ($name:ident, $instruction:literal) => {
        pub fn $name(rounds: u64, start: u64) -> [u64; STREAMS] {
            let mut x = [start; 8];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 8",
                    ".irp x,{x0},{x1},{x2},{x3},{x4},{x5},{x6},{x7}",
                    concat!($instruction, " \\x, \\x, {step}"),
                    ".endr",
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    step = in(reg) STEP,
                    rounds = inout(reg) rounds => _,
                    x0 = inout(reg) x[0],
                    x1 = inout(reg) x[1],
                    x2 = inout(reg) x[2],
                    x3 = inout(reg) x[3],
                    x4 = inout(reg) x[4],
                    x5 = inout(reg) x[5],
                    x6 = inout(reg) x[6],
                    x7 = inout(reg) x[7],
                    options(nostack, nomem, pure),
                );
            }
            std::array::from_fn(|stream| x[stream % x.len()])
        }
    };
}

int_streams!(add_64s, "add");
int_streams!(multiply_64s, "mul");

macro_rules! float_chain {
    ($name:ident, $float:ty, $instruction:literal, $width:literal) => {
        pub fn $name(rounds: u64, start: $float, up: $float, back: $float) -> $float {
            let mut x = start;
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 32",
                    concat!($instruction, " {x:", $width, "}, {x:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x:", $width, "}, {x:", $width, "}, {back:", $width, "}"),
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    x = inout(vreg) x,
                    up = in(vreg) up,
                    back = in(vreg) back,
                    rounds = inout(reg) rounds => _,
                    options(nostack, nomem, pure),
                );
            }
            x
        }
    };
}

float_chain!(add_f64, f64, "fadd", "d");
float_chain!(add_f32, f32, "fadd", "s");
float_chain!(multiply_f64, f64, "fmul", "d");
float_chain!(multiply_f32, f32, "fmul", "s");

// The registers of all streams, as doubles or as floats.
macro_rules! streams {
    (d) => {
        "{x0:d},{x1:d},{x2:d},{x3:d},{x4:d},{x5:d},{x6:d},{x7:d},{x8:d},{x9:d},{xa:d},{xb:d}"
    };
    (s) => {
        "{x0:s},{x1:s},{x2:s},{x3:s},{x4:s},{x5:s},{x6:s},{x7:s},{x8:s},{x9:s},{xa:s},{xb:s}"
    };
}

macro_rules! float_streams {
    ($name:ident, $float:ty, $instruction:literal, $width:ident) => {
        pub fn $name(rounds: u64, start: $float, up: $float, back: $float) -> [u64; STREAMS] {
            let mut x = [start; STREAMS];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 2",
                    concat!(".irp x,", streams!($width)),
                    concat!($instruction, " \\x, \\x, {up:", stringify!($width), "}"),
                    ".endr",
                    concat!(".irp x,", streams!($width)),
                    concat!($instruction, " \\x, \\x, {back:", stringify!($width), "}"),
                    ".endr",
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    up = in(vreg) up,
                    back = in(vreg) back,
                    rounds = inout(reg) rounds => _,
                    x0 = inout(vreg) x[0],
                    x1 = inout(vreg) x[1],
                    x2 = inout(vreg) x[2],
                    x3 = inout(vreg) x[3],
                    x4 = inout(vreg) x[4],
                    x5 = inout(vreg) x[5],
                    x6 = inout(vreg) x[6],
                    x7 = inout(vreg) x[7],
                    x8 = inout(vreg) x[8],
                    x9 = inout(vreg) x[9],
                    xa = inout(vreg) x[10],
                    xb = inout(vreg) x[11],
                    options(nostack, nomem, pure),
                );
            }
            x.map(|x| u64::from(x.to_bits()))
        }
    };
}

float_streams!(add_f64s, f64, "fadd", d);
float_streams!(add_f32s, f32, "fadd", s);
float_streams!(multiply_f64s, f64, "fmul", d);
float_streams!(multiply_f32s, f32, "fmul", s);

macro_rules! divide {
    ($chain:ident, $streams:ident, $float:ty, $width:literal) => {
        pub fn $chain(rounds: u64, start: $float, numerator: $float) -> $float {
            let mut x = start;
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 32",
                    concat!("fdiv {t:", $width, "}, {n:", $width, "}, {x:", $width, "}"),
                    concat!("fdiv {x:", $width, "}, {n:", $width, "}, {t:", $width, "}"),
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    x = inout(vreg) x,
                    t = out(vreg) _,
                    n = in(vreg) numerator,
                    rounds = inout(reg) rounds => _,
                    options(nostack, nomem, pure),
                );
            }
            x
        }

        pub fn $streams(rounds: u64, start: $float, numerator: $float) -> [u64; STREAMS] {
            let mut x = [start; 6];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 4",
                    concat!("fdiv {t0:", $width, "}, {n:", $width, "}, {x0:", $width, "}"),
                    concat!("fdiv {t1:", $width, "}, {n:", $width, "}, {x1:", $width, "}"),
                    concat!("fdiv {t2:", $width, "}, {n:", $width, "}, {x2:", $width, "}"),
                    concat!("fdiv {t3:", $width, "}, {n:", $width, "}, {x3:", $width, "}"),
                    concat!("fdiv {t4:", $width, "}, {n:", $width, "}, {x4:", $width, "}"),
                    concat!("fdiv {t5:", $width, "}, {n:", $width, "}, {x5:", $width, "}"),
                    concat!("fdiv {x0:", $width, "}, {n:", $width, "}, {t0:", $width, "}"),
                    concat!("fdiv {x1:", $width, "}, {n:", $width, "}, {t1:", $width, "}"),
                    concat!("fdiv {x2:", $width, "}, {n:", $width, "}, {t2:", $width, "}"),
                    concat!("fdiv {x3:", $width, "}, {n:", $width, "}, {t3:", $width, "}"),
                    concat!("fdiv {x4:", $width, "}, {n:", $width, "}, {t4:", $width, "}"),
                    concat!("fdiv {x5:", $width, "}, {n:", $width, "}, {t5:", $width, "}"),
                    ".endr",
                    "subs {rounds}, {rounds}, #1",
                    "b.ne 2b",
                    n = in(vreg) numerator,
                    rounds = inout(reg) rounds => _,
                    x0 = inout(vreg) x[0],
                    x1 = inout(vreg) x[1],
                    x2 = inout(vreg) x[2],
                    x3 = inout(vreg) x[3],
                    x4 = inout(vreg) x[4],
                    x5 = inout(vreg) x[5],
                    t0 = out(vreg) _,
                    t1 = out(vreg) _,
                    t2 = out(vreg) _,
                    t3 = out(vreg) _,
                    t4 = out(vreg) _,
                    t5 = out(vreg) _,
                    options(nostack, nomem, pure),
                );
            }
            std::array::from_fn(|stream| u64::from(x[stream % x.len()].to_bits()))
        }
    };
}

divide!(divide_f64, divide_f64s, f64, "d");
divide!(divide_f32, divide_f32s, f32, "s");
