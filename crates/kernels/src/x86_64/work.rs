//! Portions of ordinary work for x86-64.

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
            "mov {left:e}, {turns}",
            "xor {a:e}, {a:e}",
            "xor {b:e}, {b:e}",
            "xor {c:e}, {c:e}",
            "xor {d:e}, {d:e}",
            ".p2align 5",
            "3:",
            "add {a}, [{at}]",
            "xor {b}, [{at} + 8]",
            "sub {c}, [{at} + 16]",
            "add {d}, [{at} + 24]",
            "add {a}, {b}",
            "xor {c}, {d}",
            "add {at}, 32",
            "dec {left}",
            "jnz 3b",
            "add {sum}, {a}",
            "add {sum}, {b}",
            "add {sum}, {c}",
            "add {sum}, {d}",
            "dec {rounds}",
            "jnz 2b",
            turns = const LOAD_TURNS,
            block = in(reg) block.as_ptr(),
            rounds = inout(reg) rounds => _,
            sum = inout(reg) sum,
            at = out(reg) _,
            left = out(reg) _,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
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
            ".p2align 5",
            "2:",
            "mov {t}, {x}",
            "shl {t}, 13",
            "xor {x}, {t}",
            "mov {t}, {x}",
            "shr {t}, 7",
            "xor {x}, {t}",
            "mov {t}, {x}",
            "shl {t}, 17",
            "xor {x}, {t}",
            "test {x:l}, 1",
            "jz 3f",
            "add {sum}, {first}",
            "3:",
            "test {x:l}, 2",
            "jz 4f",
            "add {sum}, {second}",
            "4:",
            "test {x:l}, 4",
            "jz 5f",
            "add {sum}, {third}",
            "5:",
            "test {x:l}, 8",
            "jz 6f",
            "add {sum}, {fourth}",
            "6:",
            "dec {steps}",
            "jnz 2b",
            first = const BRANCH_TERMS[0],
            second = const BRANCH_TERMS[1],
            third = const BRANCH_TERMS[2],
            fourth = const BRANCH_TERMS[3],
            x = inout(reg) seed => _,
            t = out(reg) _,
            sum = inout(reg) sum,
            steps = inout(reg) steps => _,
            // Not `pure`: every round is done, though all come to the same.
            options(nostack, nomem),
        );
    }
    sum
}

pub fn has_four() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// `turns` at least 1; lanes of a stream lie [`LANES`] apart.
pub fn vectors(width: Width, turns: u64, lanes: &mut [f64; VECTOR_STREAMS * LANES]) {
    match width {
        Width::Four if has_four() => vectors_avx(turns, lanes),
        _ => vectors_sse2(turns, lanes),
    }
}

// A turn multiplies, adds, and undoes both; each vector waits for itself alone.

/// The CPU must have AVX.
fn vectors_avx(turns: u64, lanes: &mut [f64; VECTOR_STREAMS * LANES]) {
    let terms = VECTOR_TERMS.map(|term| [term; LANES]);
    // SAFETY: reads and writes eight vectors of 32 bytes in `lanes`, 64 bytes apart, and reads four
    // in `terms`; the caller has seen that the CPU has AVX.
    unsafe {
        asm!(
            ".irp i,0,1,2,3,4,5,6,7",
            "vmovupd ymm\\i, [{lanes} + 64*\\i]",
            ".endr",
            "vmovupd ymm8, [{terms}]",
            "vmovupd ymm9, [{terms} + 64]",
            "vmovupd ymm10, [{terms} + 128]",
            "vmovupd ymm11, [{terms} + 192]",
            ".p2align 5",
            "2:",
            ".irp i,0,1,2,3,4,5,6,7",
            "vmulpd ymm\\i, ymm\\i, ymm8; vaddpd ymm\\i, ymm\\i, ymm9",
            ".endr",
            ".irp i,0,1,2,3,4,5,6,7",
            "vaddpd ymm\\i, ymm\\i, ymm10; vmulpd ymm\\i, ymm\\i, ymm11",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            ".irp i,0,1,2,3,4,5,6,7",
            "vmovupd [{lanes} + 64*\\i], ymm\\i",
            ".endr",
            "vzeroupper",
            lanes = in(reg) lanes.as_mut_ptr(),
            terms = in(reg) terms.as_ptr(),
            turns = inout(reg) turns => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            options(nostack),
        );
    }
}

fn vectors_sse2(turns: u64, lanes: &mut [f64; VECTOR_STREAMS * LANES]) {
    let terms = VECTOR_TERMS.map(|term| [term; LANES]);
    // SAFETY: reads and writes eight vectors of 16 bytes in `lanes`, 64 bytes apart, and reads four
    // in `terms`.
    unsafe {
        asm!(
            ".irp i,0,1,2,3,4,5,6,7",
            "movupd xmm\\i, [{lanes} + 64*\\i]",
            ".endr",
            "movupd xmm8, [{terms}]",
            "movupd xmm9, [{terms} + 64]",
            "movupd xmm10, [{terms} + 128]",
            "movupd xmm11, [{terms} + 192]",
            ".p2align 5",
            "2:",
            ".irp i,0,1,2,3,4,5,6,7",
            "mulpd xmm\\i, xmm8; addpd xmm\\i, xmm9",
            ".endr",
            ".irp i,0,1,2,3,4,5,6,7",
            "addpd xmm\\i, xmm10; mulpd xmm\\i, xmm11",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            ".irp i,0,1,2,3,4,5,6,7",
            "movupd [{lanes} + 64*\\i], xmm\\i",
            ".endr",
            lanes = in(reg) lanes.as_mut_ptr(),
            terms = in(reg) terms.as_ptr(),
            turns = inout(reg) turns => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            options(nostack),
        );
    }
}
