//! The timed loops for x86-64.

use std::arch::asm;

use super::CHAIN_UNROLL;

#[path = "x86_64/arithmetic.rs"]
pub mod arithmetic;
#[path = "x86_64/work.rs"]
pub mod work;

#[path = "x86_64/streams.rs"]
mod streams;

pub use streams::loops;

#[path = "x86_64/faults.rs"]
mod faults;
#[path = "x86_64/lines.rs"]
mod lines;

pub use faults::{instruction_pointer, writes};
pub use lines::Flusher;

/// Clock sources of the kernel that are this architecture's own counter.
pub const CLOCK_SOURCES: &[&str] = &["tsc"];

/// Upper bound for loads in one cycle of any x86 core: two of 64 bytes (Intel since Skylake-SP, AMD
/// since Zen 5).
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
    // SAFETY: by this function's contract; nothing is written. The loop counter executes in
    // parallel with the loads and costs no time.
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

/// Multiplications in one turn of a pause.
pub const PAUSE_UNROLL: u64 = 16;

/// Follows a pointer chain with idle time before each load: the address is multiplied by one
/// `pause` × [`PAUSE_UNROLL`] times (three cycles each; no core eliminates that).
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
                ".p2align 5",
                "2:",
                "mov {left}, {pause}",
                "test {left}, {left}",
                "jz 4f",
                "3:",
                ".rept {unroll}",
                "imul {at}, {one}",
                ".endr",
                "dec {left}",
                "jnz 3b",
                "4:",
                $load,
                "dec {loads}",
                "jnz 2b",
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
            true => spaced!("mov {at}, [{at}]"),
            false => spaced!(""),
        }
    }
    at
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit additions: one cycle each on every x86 core.
/// Register operands, because recent cores eliminate additions of an immediate at rename, which
/// would show an impossible clock.
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

/// A loop of `rounds` taken branches without other work: one cycle each if the core fetches for one
/// thread, two if it alternates between two threads (measured on an Intel Xeon).
pub fn taken_branches(rounds: u64) {
    if rounds == 0 {
        return;
    }
    // SAFETY: registers only.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            "add {sum}, {rounds}",
            "sub {rounds}, 1",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            rounds = inout(reg) rounds => _,
            options(nostack, nomem),
        );
    }
}

/// `rounds` × [`CHAIN_UNROLL`] dependent 64-bit multiplications: a whole number of cycles each (3
/// on most cores).
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
    // SAFETY: getpid has no arguments and no effect; syscall overwrites rcx and r11, named below.
    unsafe {
        asm!(
            // In one cache line: if the branch ends together with its line, a call takes 29 ns more
            // (measured on an EPYC).
            ".p2align 6",
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
