//! Writes that may fault, on x86-64.

use std::arch::asm;

/// Writes `byte` to `at` `times` times. First stores the addresses of its writing instruction and
/// of the next one in `place`.
///
/// # Safety
/// `at` must be writable, or a handler must continue at the second address whenever the instruction
/// at the first one faults. `place` must be valid for two words, `times` above 0.
pub unsafe fn writes(at: *mut u8, byte: u8, times: u64, place: *mut usize) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!(
            "lea {address}, [rip + 2f]",
            "mov [{place}], {address}",
            "lea {address}, [rip + 3f]",
            "mov [{place} + 8], {address}",
            "2:",
            "mov [{at}], {byte}",
            "3:",
            "dec {times}",
            "jnz 2b",
            at = in(reg) at,
            byte = in(reg_byte) byte,
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
    unsafe { (&raw mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize]).cast() }
}
