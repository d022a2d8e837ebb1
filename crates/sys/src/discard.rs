//! Discard (TRIM, UNMAP, Deallocate): a block device may forget the content of a range.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::zero_or_error;

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: u32 = 0x1277;

/// Discards `bytes` bytes of a block device from `offset` on, both multiples of its block size. The
/// device must be open for writing. Returns when it has answered; EOPNOTSUPP: it has no discard,
/// ENOTTY: no block device.
///
/// fallocate is no alternative: for a hole in a device the kernel may write zeros.
pub fn discard(device: impl AsFd, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the kernel reads two 64-bit numbers, which live until the call has returned, and
    // writes no memory of this process.
    zero_or_error(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKDISCARD as _, range.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_no_devices() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(8192).expect("sparse");
        let error = discard(&file, 0, 4096).expect_err("a file");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
