//! POSIX record locks (`fcntl`): a process locks single bytes of a file against other processes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::zero_or_error;

/// Locks a byte for this process alone; waits until it is free. Any signal interrupts the wait
/// (EINTR).
pub fn lock(file: BorrowedFd, byte: i64) -> io::Result<()> {
    set(file, byte, libc::F_WRLCK, libc::F_SETLKW)
}

/// Unlocks a byte.
pub fn unlock(file: BorrowedFd, byte: i64) -> io::Result<()> {
    set(file, byte, libc::F_UNLCK, libc::F_SETLK)
}

fn set(file: BorrowedFd, byte: i64, kind: libc::c_int, command: libc::c_int) -> io::Result<()> {
    let mut lock = std::mem::MaybeUninit::<libc::flock>::zeroed();
    // SAFETY: all zeroes is a valid flock.
    let lock = unsafe { lock.assume_init_mut() };
    lock.l_type = kind as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = byte as _;
    lock.l_len = 1;
    // SAFETY: the descriptor is open, and the kernel only reads the structure.
    zero_or_error(unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const *lock) })
}
