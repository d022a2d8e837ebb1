//! Arithmetic for 64-bit ARM: the instructions that compilers use (scalar floating point).

use std::arch::asm;

use crate::arithmetic::{DIVIDENDS_32, DIVIDENDS_64, DIVISOR, STEP, STREAMS, TOP_32, TOP_64};

pub fn divide_64(rounds: u64, start: u64) -> u64 {
    let mut state = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "udiv {state}, {state}, {divisor}",
            "orr {state}, {state}, {top}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            divisor = in(reg) DIVISOR,
            top = in(reg) TOP_64,
            state = inout(reg) state,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    state
}

pub fn divide_32(rounds: u64, start: u64) -> u64 {
    let mut state = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "udiv {state:w}, {state:w}, {divisor:w}",
            "orr {state:w}, {state:w}, {top:w}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            divisor = in(reg) DIVISOR,
            top = in(reg) TOP_32,
            state = inout(reg) state,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    state
}

pub fn divide_64s(rounds: u64, start: u64) -> u64 {
    let mut sum = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept 8",
            "udiv {quotient}, {one}, {divisor}",
            "add {sum}, {sum}, {quotient}",
            "udiv {quotient}, {other}, {divisor}",
            "add {sum}, {sum}, {quotient}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            divisor = in(reg) DIVISOR,
            one = in(reg) DIVIDENDS_64[0],
            other = in(reg) DIVIDENDS_64[1],
            quotient = out(reg) _,
            sum = inout(reg) sum,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    sum
}

pub fn divide_32s(rounds: u64, start: u64) -> u64 {
    let mut sum = start;
    // SAFETY: registers only; writing the lower half of a register clears the upper one.
    unsafe {
        asm!(
            "2:",
            ".rept 8",
            "udiv {quotient:w}, {one:w}, {divisor:w}",
            "add {sum}, {sum}, {quotient}",
            "udiv {quotient:w}, {other:w}, {divisor:w}",
            "add {sum}, {sum}, {quotient}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            divisor = in(reg) DIVISOR,
            one = in(reg) DIVIDENDS_32[0],
            other = in(reg) DIVIDENDS_32[1],
            quotient = out(reg) _,
            sum = inout(reg) sum,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    sum
}

macro_rules! int_streams {
    ($name:ident, $instruction:literal) => {
        pub fn $name(rounds: u64, start: u64) -> [u64; STREAMS] {
            let mut x = [start; 8];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 8",
                    concat!($instruction, " {x0}, {x0}, {step}"),
                    concat!($instruction, " {x1}, {x1}, {step}"),
                    concat!($instruction, " {x2}, {x2}, {step}"),
                    concat!($instruction, " {x3}, {x3}, {step}"),
                    concat!($instruction, " {x4}, {x4}, {step}"),
                    concat!($instruction, " {x5}, {x5}, {step}"),
                    concat!($instruction, " {x6}, {x6}, {step}"),
                    concat!($instruction, " {x7}, {x7}, {step}"),
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

macro_rules! float_streams {
    ($name:ident, $float:ty, $instruction:literal, $width:literal) => {
        pub fn $name(rounds: u64, start: $float, up: $float, back: $float) -> [u64; STREAMS] {
            let mut x = [start; STREAMS];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "2:",
                    ".rept 2",
                    concat!($instruction, " {x0:", $width, "}, {x0:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x1:", $width, "}, {x1:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x2:", $width, "}, {x2:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x3:", $width, "}, {x3:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x4:", $width, "}, {x4:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x5:", $width, "}, {x5:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x6:", $width, "}, {x6:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x7:", $width, "}, {x7:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x8:", $width, "}, {x8:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x9:", $width, "}, {x9:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {xa:", $width, "}, {xa:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {xb:", $width, "}, {xb:", $width, "}, {up:", $width, "}"),
                    concat!($instruction, " {x0:", $width, "}, {x0:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x1:", $width, "}, {x1:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x2:", $width, "}, {x2:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x3:", $width, "}, {x3:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x4:", $width, "}, {x4:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x5:", $width, "}, {x5:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x6:", $width, "}, {x6:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x7:", $width, "}, {x7:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x8:", $width, "}, {x8:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {x9:", $width, "}, {x9:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {xa:", $width, "}, {xa:", $width, "}, {back:", $width, "}"),
                    concat!($instruction, " {xb:", $width, "}, {xb:", $width, "}, {back:", $width, "}"),
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

float_streams!(add_f64s, f64, "fadd", "d");
float_streams!(add_f32s, f32, "fadd", "s");
float_streams!(multiply_f64s, f64, "fmul", "d");
float_streams!(multiply_f32s, f32, "fmul", "s");

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
