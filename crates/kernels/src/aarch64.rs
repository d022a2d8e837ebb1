//! The timed loops for 64-bit ARM.

use std::arch::asm;

use super::CHAIN_UNROLL;

#[path = "aarch64/arithmetic.rs"]
pub mod arithmetic;
#[path = "aarch64/work.rs"]
pub mod work;

#[path = "aarch64/streams.rs"]
mod streams;

pub use streams::loops;

#[path = "aarch64/faults.rs"]
mod faults;
#[path = "aarch64/lines.rs"]
mod lines;

pub use faults::{instruction_pointer, writes};
pub use lines::Flusher;

/// Clock sources of the kernel that are this architecture's own counter.
pub const CLOCK_SOURCES: &[&str] = &["arch_sys_counter"];

/// Upper bound for loads in one cycle of any ARM core: three of 16 bytes (Neoverse V1 and later),
/// 64 bytes with wide SVE.
pub const WIDEST_LOAD_BYTES_PER_CYCLE: f64 = 128.0;

/// Loads in one turn of [`chase`].
pub const CHASE_UNROLL: u64 = 16;

/// Follows a pointer chain for `turns` × [`CHASE_UNROLL`] dependent loads.
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

/// Multiplications in one turn of a pause.
pub const PAUSE_UNROLL: u64 = 16;

/// Follows a pointer chain with idle time before each load; see the x86 loop.
///
/// # Safety
/// As [`chase`].
pub unsafe fn chase_spaced(at: *const u64, loads: u64, pause: u64) -> *const u64 {
    // SAFETY: by this function's contract.
    unsafe { spaced::<true>(at, loads, pause) }
}

/// The pauses of [`chase_spaced`] without the loads.
pub fn pauses(loads: u64, pause: u64) {
    // SAFETY: without loads the pointer is only a number.
    unsafe { spaced::<false>(std::ptr::dangling(), loads, pause) };
}

/// # Safety
/// With `LOADS` as [`chase`], else none.
unsafe fn spaced<const LOADS: bool>(at: *const u64, loads: u64, pause: u64) -> *const u64 {
    if loads == 0 {
        return at;
    }
    let mut at = at;
    macro_rules! spaced {
        ($load:literal) => {
            asm!(
                "2:",
                "mov {left}, {pause}",
                "cbz {left}, 4f",
                "3:",
                ".rept {unroll}",
                "mul {at}, {at}, {one}",
                ".endr",
                "subs {left}, {left}, #1",
                "b.ne 3b",
                "4:",
                $load,
                "subs {loads}, {loads}, #1",
                "b.ne 2b",
                unroll = const PAUSE_UNROLL,
                at = inout(reg) at,
                loads = inout(reg) loads => _,
                pause = in(reg) pause,
                one = in(reg) 1u64,
                left = out(reg) _,
                options(nostack, readonly),
            )
        };
    }
    // SAFETY: by this function's contract; nothing is written.
    unsafe {
        match LOADS {
            true => spaced!("ldr {at}, [{at}]"),
            false => spaced!(""),
        }
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

/// The same loop of `rounds` taken branches as on x86; its duration was not measured on any core.
pub fn taken_branches(rounds: u64) {
    if rounds == 0 {
        return;
    }
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            "add {sum}, {sum}, {rounds}",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            sum = inout(reg) 0_u64 => _,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem),
        );
    }
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit multiplications: a whole number of cycles each (2
/// to 4).
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

/// Aligns the following code to a cache line, so that a loop of system calls has the same alignment
/// in every build; docs/method/measuring.md#the-clock says what misalignment costs.
#[inline(always)]
pub fn begin_line() {
    // SAFETY: only instructions without effect.
    unsafe { asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
}

/// Requests the process id `calls` times by the system call instruction (a library could cache it)
/// and returns the sum of the answers.
pub fn process_ids(calls: u64) -> u64 {
    if calls == 0 {
        return 0;
    }
    let mut sum = 0u64;
    // SAFETY: getpid has no arguments and no effect; svc returns in x0 and keeps the other
    // registers.
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
