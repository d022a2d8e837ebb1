//! Namespaces of processes, by the inodes of their links.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// The IPC namespace of this process.
pub(super) fn own_namespace() -> Option<u64> {
    namespace("self", "ipc")
}

/// The inode of a process's namespace of this kind.
pub(super) fn namespace(process: &str, kind: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/{kind}")).ok().map(|found| found.ino())
}

/// A process that is in another namespace of this kind, if one is seen.
pub(super) fn process_in(kind: &str, other: u64) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| namespace(&pid.to_string(), kind) == Some(other))
}

/// Whether this process is in the first PID namespace, whose inode the kernel has fixed
/// (PROC_PID_INIT_INO).
pub(super) fn sees_all() -> bool {
    namespace("self", "pid") == Some(0xefff_fffc)
}
