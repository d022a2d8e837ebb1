//! The timed loops for 64-bit ARM.

use std::arch::asm;

use super::{CHAIN_UNROLL, ReadKernel};

#[path = "aarch64/lines.rs"]
mod lines;

pub use lines::Flusher;

/// Clock sources of the kernel that are this architecture's own counter.
pub const CLOCK_SOURCES: &[&str] = &["arch_sys_counter"];

/// No ARM core loads more in one cycle: three 16-byte loads (Neoverse V1 and later), 64 bytes with wide SVE.
pub const WIDEST_LOAD_BYTES_PER_CYCLE: f64 = 128.0;

/// Loads in one turn of [`chase`].
pub const CHASE_UNROLL: u64 = 16;

/// Read kernels of this CPU: NEON is part of the architecture.
pub fn read_kernels() -> Vec<ReadKernel> {
    vec![ReadKernel { name: "neon", run: read_neon }]
}

/// Eight accumulators and pair loads; see the x86 loops for the reasons.
///
/// # Safety
/// `blocks` (≥ 1) blocks at `memory`, aligned to 64 bytes, must be readable; `passes` ≥ 1.
unsafe fn read_neon(memory: *const u8, blocks: usize, passes: u64) -> u64 {
    let mut lanes = [0u64; 16];
    // SAFETY: reads exactly `blocks` blocks of 512 bytes and writes eight 16-byte registers to `lanes`.
    unsafe {
        asm!(
            ".irp acc,0,1,2,3,4,5,6,7", "movi v\\acc\\().2d, #0", ".endr",
            "2:",
            "mov {at}, {memory}",
            "mov {left}, {blocks}",
            "3:",
            ".rept 4",
            "ldp q16, q17, [{at}]",
            "ldp q18, q19, [{at}, #32]",
            "ldp q20, q21, [{at}, #64]",
            "ldp q22, q23, [{at}, #96]",
            "add {at}, {at}, #128",
            "add v0.2d, v0.2d, v16.2d",
            "add v1.2d, v1.2d, v17.2d",
            "add v2.2d, v2.2d, v18.2d",
            "add v3.2d, v3.2d, v19.2d",
            "add v4.2d, v4.2d, v20.2d",
            "add v5.2d, v5.2d, v21.2d",
            "add v6.2d, v6.2d, v22.2d",
            "add v7.2d, v7.2d, v23.2d",
            ".endr",
            "subs {left}, {left}, #1",
            "b.ne 3b",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            ".irp acc,0,1,2,3,4,5,6,7", "str q\\acc, [{lanes}, #16*\\acc]", ".endr",
            memory = in(reg) memory,
            blocks = in(reg) blocks,
            passes = inout(reg) passes => _,
            lanes = in(reg) lanes.as_mut_ptr(),
            at = out(reg) _,
            left = out(reg) _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _,
            out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            options(nostack),
        );
    }
    lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(*lane))
}

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
    // SAFETY: by this function's contract; nothing is written.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "ldr {at}, [{at}]",
            ".endr",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            at = inout(reg) at,
            turns = inout(reg) turns => _,
            options(nostack, readonly),
        );
    }
    at
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit additions: one cycle each.
pub fn add_chain(rounds: u64, start: u64, step: u64) -> u64 {
    if rounds == 0 {
        return start;
    }
    let mut sum = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept {unroll}",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            unroll = const CHAIN_UNROLL,
            sum = inout(reg) sum,
            step = in(reg) step,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem, pure),
        );
    }
    sum
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit multiplications: a whole number of cycles each (2 to 4).
pub fn multiply_chain(rounds: u64, start: u64, factor: u64) -> u64 {
    if rounds == 0 {
        return start;
    }
    let mut product = start;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept {unroll}",
            "mul {product}, {product}, {factor}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
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
    // SAFETY: getpid has no arguments and no effect; svc returns in x0 and keeps the other registers.
    unsafe {
        asm!(
            "2:",
            "mov x8, {getpid}",
            "svc #0",
            "add {sum}, {sum}, x0",
            "subs {calls}, {calls}, #1",
            "b.ne 2b",
            getpid = const libc::SYS_getpid,
            sum = inout(reg) sum,
            calls = inout(reg) calls => _,
            out("x0") _,
            out("x8") _,
            options(nostack),
        );
    }
    sum
}
