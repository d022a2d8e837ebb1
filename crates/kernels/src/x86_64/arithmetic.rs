//! Arithmetic for x86-64: the instructions that compilers use (scalar SSE for floating point).

use std::arch::asm;

use crate::arithmetic::{DIVIDENDS_32, DIVIDENDS_64, DIVISOR, STEP, STREAMS, TOP_32, TOP_64};

// `$part` makes a register's name that of the part which the numbers fill.
macro_rules! int_divide {
    ($chain:ident, $streams:ident, $top:expr, $dividends:expr, $ax:literal, $part:literal) => {
        pub fn $chain(rounds: u64, start: u64) -> u64 {
            let mut state = start;
            // SAFETY: registers only; a divisor above the upper half of the dividend (0) cannot
            // overflow.
            unsafe {
                asm!(
                    ".p2align 5",
                    "2:",
                    ".rept 64",
                    "xor edx, edx",
                    concat!("div {divisor", $part, "}"),
                    concat!("or ", $ax, ", {top", $part, "}"),
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
                    divisor = in(reg) DIVISOR,
                    top = in(reg) $top,
                    rounds = inout(reg) rounds => _,
                    inout("rax") state,
                    out("rdx") _,
                    options(nostack, nomem, pure),
                );
            }
            state
        }

        pub fn $streams(rounds: u64, start: u64) -> u64 {
            let mut sum = start;
            // SAFETY: as above; writing eax clears the upper half of rax.
            unsafe {
                asm!(
                    ".p2align 5",
                    "2:",
                    ".rept 8",
                    concat!(".irp dividend,{one", $part, "},{other", $part, "}"),
                    concat!("mov ", $ax, ", \\dividend"),
                    "xor edx, edx",
                    concat!("div {divisor", $part, "}"),
                    "add {sum}, rax",
                    ".endr",
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
                    divisor = in(reg) DIVISOR,
                    one = in(reg) $dividends[0],
                    other = in(reg) $dividends[1],
                    sum = inout(reg) sum,
                    rounds = inout(reg) rounds => _,
                    out("rax") _,
                    out("rdx") _,
                    options(nostack, nomem, pure),
                );
            }
            sum
        }
    };
}

int_divide!(divide_64, divide_64s, TOP_64, DIVIDENDS_64, "rax", "");
int_divide!(divide_32, divide_32s, TOP_32, DIVIDENDS_32, "eax", ":e");

macro_rules! int_streams {
    ($name:ident, $instruction:literal) => {
        pub fn $name(rounds: u64, start: u64) -> [u64; STREAMS] {
            let mut x = [start; 8];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    ".p2align 5",
                    "2:",
                    ".rept 8",
                    ".irp x,{x0},{x1},{x2},{x3},{x4},{x5},{x6},{x7}",
                    concat!($instruction, " \\x, {step}"),
                    ".endr",
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
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
int_streams!(multiply_64s, "imul");

macro_rules! float_chain {
    ($name:ident, $float:ty, $instruction:literal) => {
        pub fn $name(rounds: u64, start: $float, up: $float, back: $float) -> $float {
            let mut x = start;
            // SAFETY: registers only.
            unsafe {
                asm!(
                    ".p2align 5",
                    "2:",
                    ".rept 32",
                    concat!($instruction, " {x}, {up}"),
                    concat!($instruction, " {x}, {back}"),
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
                    x = inout(xmm_reg) x,
                    up = in(xmm_reg) up,
                    back = in(xmm_reg) back,
                    rounds = inout(reg) rounds => _,
                    options(nostack, nomem, pure),
                );
            }
            x
        }
    };
}

float_chain!(add_f64, f64, "addsd");
float_chain!(add_f32, f32, "addss");
float_chain!(multiply_f64, f64, "mulsd");
float_chain!(multiply_f32, f32, "mulss");

macro_rules! float_streams {
    ($name:ident, $float:ty, $instruction:literal) => {
        pub fn $name(rounds: u64, start: $float, up: $float, back: $float) -> [u64; STREAMS] {
            let mut x = [start; STREAMS];
            // SAFETY: registers only.
            unsafe {
                asm!(
                    ".p2align 5",
                    "2:",
                    ".rept 2",
                    ".irp x,{x0},{x1},{x2},{x3},{x4},{x5},{x6},{x7},{x8},{x9},{xa},{xb}",
                    concat!($instruction, " \\x, {up}"),
                    ".endr",
                    ".irp x,{x0},{x1},{x2},{x3},{x4},{x5},{x6},{x7},{x8},{x9},{xa},{xb}",
                    concat!($instruction, " \\x, {back}"),
                    ".endr",
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
                    up = in(xmm_reg) up,
                    back = in(xmm_reg) back,
                    rounds = inout(reg) rounds => _,
                    x0 = inout(xmm_reg) x[0],
                    x1 = inout(xmm_reg) x[1],
                    x2 = inout(xmm_reg) x[2],
                    x3 = inout(xmm_reg) x[3],
                    x4 = inout(xmm_reg) x[4],
                    x5 = inout(xmm_reg) x[5],
                    x6 = inout(xmm_reg) x[6],
                    x7 = inout(xmm_reg) x[7],
                    x8 = inout(xmm_reg) x[8],
                    x9 = inout(xmm_reg) x[9],
                    xa = inout(xmm_reg) x[10],
                    xb = inout(xmm_reg) x[11],
                    options(nostack, nomem, pure),
                );
            }
            x.map(|x| u64::from(x.to_bits()))
        }
    };
}

float_streams!(add_f64s, f64, "addsd");
float_streams!(add_f32s, f32, "addss");
float_streams!(multiply_f64s, f64, "mulsd");
float_streams!(multiply_f32s, f32, "mulss");

macro_rules! divide {
    ($chain:ident, $streams:ident, $float:ty, $instruction:literal) => {
        pub fn $chain(rounds: u64, start: $float, numerator: $float) -> $float {
            let mut x = start;
            // SAFETY: registers only. The copies of the numerator wait for nothing.
            unsafe {
                asm!(
                    ".p2align 5",
                    "2:",
                    ".rept 32",
                    "movaps {t}, {n}",
                    concat!($instruction, " {t}, {x}"),
                    "movaps {x}, {n}",
                    concat!($instruction, " {x}, {t}"),
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
                    x = inout(xmm_reg) x,
                    t = out(xmm_reg) _,
                    n = in(xmm_reg) numerator,
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
                    ".p2align 5",
                    "2:",
                    ".rept 4",
                    "movaps {t0}, {n}",
                    concat!($instruction, " {t0}, {x0}"),
                    "movaps {t1}, {n}",
                    concat!($instruction, " {t1}, {x1}"),
                    "movaps {t2}, {n}",
                    concat!($instruction, " {t2}, {x2}"),
                    "movaps {t3}, {n}",
                    concat!($instruction, " {t3}, {x3}"),
                    "movaps {t4}, {n}",
                    concat!($instruction, " {t4}, {x4}"),
                    "movaps {t5}, {n}",
                    concat!($instruction, " {t5}, {x5}"),
                    "movaps {x0}, {n}",
                    concat!($instruction, " {x0}, {t0}"),
                    "movaps {x1}, {n}",
                    concat!($instruction, " {x1}, {t1}"),
                    "movaps {x2}, {n}",
                    concat!($instruction, " {x2}, {t2}"),
                    "movaps {x3}, {n}",
                    concat!($instruction, " {x3}, {t3}"),
                    "movaps {x4}, {n}",
                    concat!($instruction, " {x4}, {t4}"),
                    "movaps {x5}, {n}",
                    concat!($instruction, " {x5}, {t5}"),
                    ".endr",
                    "dec {rounds}",
                    "jnz 2b",
                    n = in(xmm_reg) numerator,
                    rounds = inout(reg) rounds => _,
                    x0 = inout(xmm_reg) x[0],
                    x1 = inout(xmm_reg) x[1],
                    x2 = inout(xmm_reg) x[2],
                    x3 = inout(xmm_reg) x[3],
                    x4 = inout(xmm_reg) x[4],
                    x5 = inout(xmm_reg) x[5],
                    t0 = out(xmm_reg) _,
                    t1 = out(xmm_reg) _,
                    t2 = out(xmm_reg) _,
                    t3 = out(xmm_reg) _,
                    t4 = out(xmm_reg) _,
                    t5 = out(xmm_reg) _,
                    options(nostack, nomem, pure),
                );
            }
            std::array::from_fn(|stream| u64::from(x[stream % x.len()].to_bits()))
        }
    };
}

divide!(divide_f64, divide_f64s, f64, "divsd");
divide!(divide_f32, divide_f32s, f32, "divss");
