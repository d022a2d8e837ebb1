//! Identifies the medium of a block device: another disk, or another file behind a loop device, may
//! get the same name and number.

use std::io;
use std::os::fd::AsFd;

use super::loop_device::{Backing, backing, query_words};

/// linux/fs.h, since Linux 5.15: one 64-bit number.
const BLKGETDISKSEQ: u32 = libc::_IOR::<u64>(0x12, 128) as u32;

/// A text that identifies the medium of this open block device until the next boot: the kernel's
/// sequence number of the disk and the file behind a loop device. Empty if both are unknown.
pub fn of(device: impl AsFd) -> String {
    let number = sequence_number(&device).map(|number| format!("medium {number}"));
    let file = backing(&device).map(|Backing { device, inode, offset, .. }| {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        format!("inode {inode} of {major}:{minor} from byte {offset} on")
    });
    [number, file].into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// The number of the disk, also for a partition. ENOTTY: an older kernel, or no block device.
fn sequence_number(device: impl AsFd) -> io::Result<u64> {
    query_words(device, BLKGETDISKSEQ).map(|[number]| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_have_no_medium() {
        let null = std::fs::File::open("/dev/null").expect("a device");
        assert_eq!(sequence_number(&null).expect_err("no block device").raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(of(&null), "");
    }
}
