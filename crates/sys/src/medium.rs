//! What is in a block device: another disk, or a loop device's other file, comes under the same
//! name and number.

use std::io;
use std::os::fd::AsFd;

use super::loops::{self, told};

/// Of linux/fs.h, since Linux 5.15: one 64-bit number.
const BLKGETDISKSEQ: u32 = libc::_IOR::<u64>(0x12, 128) as u32;

/// What this open block device holds, in words that stay the same until it holds something else in
/// this boot: the number that the kernel gives each medium once, and the file below a loop device.
/// Empty where the kernel tells neither.
pub fn of(device: impl AsFd) -> String {
    let number = sequence_number(&device).map(|number| format!("medium {number}"));
    let file = loops::backing(&device).map(|[device, inode, _, offset, _]| {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        format!("inode {inode} of {major}:{minor} from byte {offset} on")
    });
    [number, file].into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// The disk's, also of a partition. ENOTTY where the kernel is older, or this is no block device.
fn sequence_number(device: impl AsFd) -> io::Result<u64> {
    told(device, BLKGETDISKSEQ).map(|[number]| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_block_device_holds_nothing() {
        let null = std::fs::File::open("/dev/null").expect("a device");
        assert_eq!(sequence_number(&null).expect_err("no block device").raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(of(&null), "");
    }
}
