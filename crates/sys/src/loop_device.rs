//! The file or device behind a loop device, as the kernel holds it open: its path may since lead
//! elsewhere.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// linux/loop.h.
const LOOP_GET_STATUS64: u32 = 0x4C05;

/// `struct loop_info64` of linux/loop.h in 64-bit words.
const WORDS: usize = 232 / 8;

/// What a loop device is backed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Device and inode of the file.
    pub device: u64,
    pub inode: u64,
    /// Its device number if the file is a special file, else 0.
    pub special_device: u64,
    /// Start of the loop device in the file, bytes.
    pub offset: u64,
    /// Maximum size, bytes; 0: up to the end of the file.
    pub size_limit: u64,
}

/// The backing of this open loop device; ENXIO if it has none.
pub fn backing(device: impl AsFd) -> io::Result<Backing> {
    let [device, inode, special_device, offset, size_limit, ..] =
        query_words::<WORDS>(device, LOOP_GET_STATUS64)?;
    Ok(Backing { device, inode, special_device, offset, size_limit })
}

/// The answer of a block device's driver to an ioctl `request` that writes exactly `N` 64-bit
/// words.
pub(super) fn query_words<const N: usize>(device: impl AsFd, request: u32) -> io::Result<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: there are as many words as the kernel writes, and they live until the call returns.
    match unsafe { libc::ioctl(device.as_fd().as_raw_fd(), request as _, words.as_mut_ptr()) } {
        0 => Ok(words),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_devices_have_no_backing() {
        let null = std::fs::File::open("/dev/null").expect("a device");
        assert_eq!(backing(&null).expect_err("no loop device").raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(std::mem::size_of::<[u64; WORDS]>(), 232);
    }
}
