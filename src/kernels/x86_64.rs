//! The timed loops for x86-64.

use std::arch::asm;

use super::{CHAIN_UNROLL, ReadKernel};

#[path = "x86_64/lines.rs"]
mod lines;

pub use lines::Flusher;

/// Clock sources of the kernel that are this architecture's own counter.
pub const CLOCK_SOURCES: &[&str] = &["tsc"];

/// No x86 core loads more in one cycle: two 64-byte loads (Intel since Skylake-SP, AMD since Zen 5).
pub const WIDEST_LOAD_BYTES_PER_CYCLE: f64 = 128.0;

/// Loads in one turn of [`chase`].
pub const CHASE_UNROLL: u64 = 16;

/// Read kernels of this CPU, the widest first.
pub fn read_kernels() -> Vec<ReadKernel> {
    let mut kernels = Vec::new();
    if std::arch::is_x86_feature_detected!("avx512f") {
        kernels.push(ReadKernel { name: "avx512", run: read_avx512 });
    }
    if std::arch::is_x86_feature_detected!("avx2") {
        kernels.push(ReadKernel { name: "avx2", run: read_avx2 });
    }
    kernels.push(ReadKernel { name: "sse2", run: read_sse2 });
    kernels
}

// The three read loops: eight accumulators, because an add takes a cycle and two or three loads start per cycle, so
// that no accumulator is ever waited for. The add takes its operand from memory: it costs the load and nothing more,
// and makes every word count. The loop over passes is inside, so that a 4 KiB buffer is not timed with its call.
macro_rules! read_loop {
    ($name:ident, $zero:literal, [$($add:literal),+], $store:literal, $end:literal) => {
        /// # Safety
        /// `blocks` (≥ 1) blocks at `memory`, aligned to 64 bytes, must be readable; `passes` ≥ 1; the CPU must have
        /// the instructions.
        unsafe fn $name(memory: *const u8, blocks: usize, passes: u64) -> u64 {
            let mut lanes = [0u64; 64];
            // SAFETY: reads exactly `blocks` blocks of 512 bytes and writes eight registers of up to 64 bytes to `lanes`.
            unsafe {
                asm!(
                    ".irp acc,0,1,2,3,4,5,6,7", $zero, ".endr",
                    "2:",
                    "mov {at}, {memory}",
                    "mov {left}, {blocks}",
                    ".p2align 5",
                    "3:",
                    $(".irp acc,0,1,2,3,4,5,6,7", $add, ".endr",)+
                    "add {at}, 512",
                    "dec {left}",
                    "jnz 3b",
                    "dec {passes}",
                    "jnz 2b",
                    ".irp acc,0,1,2,3,4,5,6,7", $store, ".endr",
                    $end,
                    memory = in(reg) memory,
                    blocks = in(reg) blocks,
                    passes = inout(reg) passes => _,
                    lanes = in(reg) lanes.as_mut_ptr(),
                    at = out(reg) _,
                    left = out(reg) _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    options(nostack),
                );
            }
            lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(*lane))
        }
    };
}

read_loop!(
    read_avx512,
    "vpxorq zmm\\acc, zmm\\acc, zmm\\acc",
    ["vpaddq zmm\\acc, zmm\\acc, [{at} + 64*\\acc]"],
    "vmovdqu64 [{lanes} + 64*\\acc], zmm\\acc",
    "vzeroupper"
);

read_loop!(
    read_avx2,
    "vpxor ymm\\acc, ymm\\acc, ymm\\acc",
    ["vpaddq ymm\\acc, ymm\\acc, [{at} + 32*\\acc]", "vpaddq ymm\\acc, ymm\\acc, [{at} + 256 + 32*\\acc]"],
    "vmovdqu [{lanes} + 32*\\acc], ymm\\acc",
    "vzeroupper"
);

read_loop!(
    read_sse2,
    "pxor xmm\\acc, xmm\\acc",
    [
        "paddq xmm\\acc, [{at} + 16*\\acc]",
        "paddq xmm\\acc, [{at} + 128 + 16*\\acc]",
        "paddq xmm\\acc, [{at} + 256 + 16*\\acc]",
        "paddq xmm\\acc, [{at} + 384 + 16*\\acc]"
    ],
    "movdqu [{lanes} + 16*\\acc], xmm\\acc",
    ""
);

/// Follows a pointer chain for `turns` × [`CHASE_UNROLL`] loads, each of which needs the one before.
///
/// # Safety
/// `at` and every pointer reached from it must point to a readable pointer.
#[inline]
pub unsafe fn chase(at: *const u64, turns: u64) -> *const u64 {
    if turns == 0 {
        return at;
    }
    let mut at = at;
    // SAFETY: by this function's contract; nothing is written. The counter runs beside the loads and costs nothing.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            ".rept 16",
            "mov {at}, [{at}]",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            at = inout(reg) at,
            turns = inout(reg) turns => _,
            options(nostack, readonly),
        );
    }
    at
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit additions: one cycle each on every x86 core. Register operands, since
/// additions of an immediate are eliminated at rename by recent cores and would show a clock that no core has.
pub fn add_chain(rounds: u64, start: u64, step: u64) -> u64 {
    if rounds == 0 {
        return start;
    }
    let mut sum = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            ".rept {unroll}",
            "add {sum}, {step}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            unroll = const CHAIN_UNROLL,
            sum = inout(reg) sum,
            step = in(reg) step,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    sum
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit multiplications: a whole number of cycles each (3 on most cores).
pub fn multiply_chain(rounds: u64, start: u64, factor: u64) -> u64 {
    if rounds == 0 {
        return start;
    }
    let mut product = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            ".rept {unroll}",
            "imul {product}, {factor}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            unroll = const CHAIN_UNROLL,
            product = inout(reg) product,
            factor = in(reg) factor,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    product
}

/// Asks the kernel for the process id `calls` times by the bare instruction (a library may remember the answer) and
/// returns the sum of the answers.
pub fn process_ids(calls: u64) -> u64 {
    if calls == 0 {
        return 0;
    }
    let mut sum = 0u64;
    // SAFETY: getpid has no arguments and no effect; syscall overwrites rcx and r11, named below.
    unsafe {
        asm!(
            "2:",
            "mov eax, {getpid}",
            "syscall",
            "add {sum}, rax",
            "dec {calls}",
            "jnz 2b",
            getpid = const libc::SYS_getpid,
            sum = inout(reg) sum,
            calls = inout(reg) calls => _,
            out("rax") _,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    sum
}
