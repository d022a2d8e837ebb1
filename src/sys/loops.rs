//! What a loop device lies on, as the kernel itself has it: a path may lead elsewhere by now.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::machine::snapshot::in_use::Backing;

/// Of linux/loop.h.
const LOOP_GET_STATUS64: u32 = 0x4C05;

/// `struct loop_info64` of linux/loop.h, as 64-bit words: device, inode, device number of a special file, offset, size limit.
const WORDS: usize = 232 / 8;

/// What the loop device at this path lies on; ENXIO where it is set up on nothing.
pub fn backing(device: &Path) -> io::Result<Backing> {
    let file: File = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(device)?;
    let mut info = [0u64; WORDS];
    // SAFETY: the kernel writes one loop_info64, which is as long as the words are, and they live until the call returns.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    match result {
        0 => Ok(Backing { file: [info[0], info[1]], special: info[2], offset: info[3], limit: info[4] }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_loop_device_lies_on_nothing() {
        let error = backing(Path::new("/dev/null")).expect_err("no loop device");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(std::mem::size_of::<[u64; WORDS]>(), 232);
    }
}
