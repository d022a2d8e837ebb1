//! What identifies the calling process on this host: boot and start time; and the mount of a file.

use std::fs::read_to_string;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The identifier of this boot.
pub fn boot_id() -> Option<String> {
    let text = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// When the calling process was started, ticks since the boot.
pub fn start_ticks() -> Option<u64> {
    let text = read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may contain any characters.
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The id of the mount through which a file was opened. It distinguishes bind mounts, which have
/// the same device number.
pub fn mount_of(file: BorrowedFd) -> Option<u64> {
    let text = read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn this_process_knows_itself() {
        assert!(boot_id().is_some_and(|id| id.len() == 36));
        assert!(start_ticks().is_some_and(|ticks| ticks > 0));
        let open = |path: &str| std::fs::File::open(path).expect("a folder");
        let (root, proc) = (open("/"), open("/proc"));
        assert!(mount_of(root.as_fd()).is_some());
        assert_ne!(mount_of(root.as_fd()), mount_of(proc.as_fd()));
    }
}
