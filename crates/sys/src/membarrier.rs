//! A memory barrier on all threads of the calling process: the kernel interrupts only the CPUs that
//! run them.

use std::io;

use crate::zero_or_error;

const PRIVATE_EXPEDITED: libc::c_long = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_long = 1 << 4;

/// Registers the process for [`expedited`]; an error if the kernel lacks the call or refuses it.
pub fn register() -> io::Result<()> {
    call(REGISTER_PRIVATE_EXPEDITED)
}

/// Returns when every thread of this process has executed a barrier.
#[inline]
pub fn expedited() -> io::Result<()> {
    call(PRIVATE_EXPEDITED)
}

#[inline]
fn call(command: libc::c_long) -> io::Result<()> {
    // SAFETY: the call takes a number and flags, and touches no memory of this process.
    zero_or_error(unsafe { libc::syscall(libc::SYS_membarrier, command, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_comes_back_or_is_refused() {
        match register() {
            Ok(()) => expedited().expect("it was asked for"),
            // Kernels before 4.14, and sandboxes.
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
