//! Telling a block device that it need not keep what is somewhere: a discard, which `TRIM`, `UNMAP`
//! and `Deallocate` are.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: u32 = 0x1277;

/// Discards so many bytes of a block device from `offset` on, both whole blocks of the device's; it
/// must be open for writing. Returns when the device has answered; EOPNOTSUPP where it has no
/// discard, ENOTTY where it is no block device.
///
/// fallocate is no way to this: a hole that is punched into a device is zeros written to it.
pub fn discard(device: impl AsFd, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the kernel reads two 64-bit numbers, which live until the call has returned, and
    // writes to no memory of ours.
    let result = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
