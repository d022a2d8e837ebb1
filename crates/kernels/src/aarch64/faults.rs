//! Writes that may fault, on 64-bit ARM.

use std::arch::asm;

/// Writes `byte` to `at` `times` times; see the x86 loop.
///
/// # Safety
/// As for x86-64: `at` must be writable, or a handler must continue at the second address whenever
/// the instruction at the first one faults. `place` must be valid for two words, `times` above 0.
pub unsafe fn writes(at: *mut u8, byte: u8, times: u64, place: *mut usize) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!(
            "adr {address}, 2f",
            "str {address}, [{place}]",
            "adr {address}, 3f",
            "str {address}, [{place}, #8]",
            "2:",
            "strb {byte:w}, [{at}]",
            "3:",
            "subs {times}, {times}, #1",
            "b.ne 2b",
            at = in(reg) at,
            byte = in(reg) u32::from(byte),
            times = inout(reg) times => _,
            place = in(reg) place,
            address = out(reg) _,
            options(nostack),
        );
    }
}

/// The instruction pointer of the interrupted program in a signal handler's registers.
///
/// # Safety
/// `context` must be the third argument of a handler with `SA_SIGINFO`.
pub unsafe fn instruction_pointer(context: *mut libc::ucontext_t) -> *mut usize {
    // SAFETY: by this function's contract; the register is 64 bits wide like an address.
    unsafe { (&raw mut (*context).uc_mcontext.pc).cast() }
}
