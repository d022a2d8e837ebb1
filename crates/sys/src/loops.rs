//! What a loop device lies on, as the kernel itself has it: a path may lead elsewhere by now.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Of linux/loop.h.
const LOOP_GET_STATUS64: u32 = 0x4C05;

/// `struct loop_info64` of linux/loop.h, as 64-bit words: device, inode, device number of a special
/// file, offset, size limit.
const WORDS: usize = 232 / 8;

/// What this open loop device lies on: device and inode of the file, its own number where it is a
/// special file (else 0), where the device begins in it and how long it is at most (0: to the end),
/// bytes. ENXIO where it is set up on nothing.
pub fn backing(device: impl AsFd) -> io::Result<[u64; 5]> {
    let info: [u64; WORDS] = told(device, LOOP_GET_STATUS64)?;
    Ok([info[0], info[1], info[2], info[3], info[4]])
}

/// What a block device's driver tells in so many words, which must be as many as this request
/// writes.
pub(super) fn told<const N: usize>(device: impl AsFd, request: u32) -> io::Result<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: the words are as many as the kernel writes, and they live until the call returns.
    match unsafe { libc::ioctl(device.as_fd().as_raw_fd(), request as _, words.as_mut_ptr()) } {
        0 => Ok(words),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_loop_device_lies_on_nothing() {
        let null = std::fs::File::open("/dev/null").expect("a device");
        assert_eq!(backing(&null).expect_err("no loop device").raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(std::mem::size_of::<[u64; WORDS]>(), 232);
    }
}
