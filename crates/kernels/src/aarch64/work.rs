//! Portions of ordinary work for ARM.

use std::arch::asm;

use crate::work::{BLOCK_WORDS, BRANCH_TERMS, LANES, LOAD_TURNS, VECTOR_STREAMS, VECTOR_TERMS, Width};

/// `rounds` at least 1.
pub fn loads_and_arithmetic(block: &[u64; BLOCK_WORDS], rounds: u64) -> u64 {
    let mut sum = 0u64;
    // SAFETY: reads the words of the borrowed block, four a turn, and writes registers only.
    unsafe {
        asm!(
            "2:",
            "mov {at}, {block}",
            "mov {left}, {turns}",
            "mov {a}, xzr",
            "mov {b}, xzr",
            "mov {c}, xzr",
            "mov {d}, xzr",
            "3:",
            "ldp {w}, {x}, [{at}]",
            "ldp {y}, {z}, [{at}, #16]",
            "add {a}, {a}, {w}",
            "eor {b}, {b}, {x}",
            "sub {c}, {c}, {y}",
            "add {d}, {d}, {z}",
            "add {a}, {a}, {b}",
            "eor {c}, {c}, {d}",
            "add {at}, {at}, #32",
            "subs {left}, {left}, #1",
            "b.ne 3b",
            "add {sum}, {sum}, {a}",
            "add {sum}, {sum}, {b}",
            "add {sum}, {sum}, {c}",
            "add {sum}, {sum}, {d}",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            turns = in(reg) LOAD_TURNS,
            block = in(reg) block.as_ptr(),
            rounds = inout(reg) rounds => _,
            sum = inout(reg) sum,
            at = out(reg) _,
            left = out(reg) _,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            w = out(reg) _,
            x = out(reg) _,
            y = out(reg) _,
            z = out(reg) _,
            options(nostack, readonly),
        );
    }
    sum
}

/// `steps` at least 1.
pub fn branches(steps: u64, seed: u64) -> u64 {
    let mut sum = 0u64;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            "eor {x}, {x}, {x}, lsl #13",
            "eor {x}, {x}, {x}, lsr #7",
            "eor {x}, {x}, {x}, lsl #17",
            "tbz {x}, #0, 3f",
            "add {sum}, {sum}, #{first}",
            "3:",
            "tbz {x}, #1, 4f",
            "add {sum}, {sum}, #{second}",
            "4:",
            "tbz {x}, #2, 5f",
            "add {sum}, {sum}, #{third}",
            "5:",
            "tbz {x}, #3, 6f",
            "add {sum}, {sum}, #{fourth}",
            "6:",
            "subs {steps}, {steps}, #1",
            "b.ne 2b",
            first = const BRANCH_TERMS[0],
            second = const BRANCH_TERMS[1],
            third = const BRANCH_TERMS[2],
            fourth = const BRANCH_TERMS[3],
            x = inout(reg) seed => _,
            sum = inout(reg) sum,
            steps = inout(reg) steps => _,
            // Not `pure`: every round is done, though all come to the same.
            options(nostack, nomem),
        );
    }
    sum
}

pub fn has_four() -> bool {
    false
}

/// `turns` at least 1; lanes of a stream lie [`LANES`] apart.
pub fn vectors(_: Width, turns: u64, lanes: &mut [f64; VECTOR_STREAMS * LANES]) {
    let terms = VECTOR_TERMS.map(|term| [term; LANES]);
    // SAFETY: reads and writes eight vectors of 16 bytes in `lanes`, 64 bytes apart, and reads
    // `terms`.
    unsafe {
        asm!(
            "ldr q16, [{terms}]",
            "ldr q17, [{terms}, #64]",
            "ldr q18, [{terms}, #128]",
            "ldr q19, [{terms}, #192]",
            ".irp i,0,1,2,3,4,5,6,7",
            "ldr q\\i, [{lanes}, #(64*\\i)]",
            ".endr",
            "2:",
            ".irp i,0,1,2,3,4,5,6,7",
            "fmul v\\i\\().2d, v\\i\\().2d, v16.2d",
            "fadd v\\i\\().2d, v\\i\\().2d, v17.2d",
            ".endr",
            ".irp i,0,1,2,3,4,5,6,7",
            "fadd v\\i\\().2d, v\\i\\().2d, v18.2d",
            "fmul v\\i\\().2d, v\\i\\().2d, v19.2d",
            ".endr",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            ".irp i,0,1,2,3,4,5,6,7",
            "str q\\i, [{lanes}, #(64*\\i)]",
            ".endr",
            lanes = in(reg) lanes.as_mut_ptr(),
            terms = in(reg) terms.as_ptr(),
            turns = inout(reg) turns => _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _,
            options(nostack),
        );
    }
}
