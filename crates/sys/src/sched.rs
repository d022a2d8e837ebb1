//! Scheduling policy, slice and timer slack of the calling task.

use std::io;
use std::num::NonZeroU64;

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: the default fair class.
    Other,
    /// SCHED_BATCH: the fair class without preempting others on wake-up.
    Batch,
    /// SCHED_IDLE: only CPU time that no other task wants.
    Idle,
    /// SCHED_FIFO: before all of these, until the task sleeps.
    Fifo,
}

/// Between the kernel's interrupt threads (50) and its watchdogs (99); usual for wake-up tests.
const FIFO_PRIORITY: i32 = 80;

impl Policy {
    pub const NAMES: &[&str] = &["other", "batch", "idle", "fifo"];

    pub fn named(name: &str) -> Option<Policy> {
        let policies = [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo];
        Policy::NAMES.iter().zip(policies).find(|(other, _)| **other == name).map(|(_, policy)| policy)
    }
}

/// Sets the policy of the calling thread.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    let (number, priority) = match policy {
        Policy::Other => (libc::SCHED_OTHER, 0),
        Policy::Batch => (libc::SCHED_BATCH, 0),
        Policy::Idle => (libc::SCHED_IDLE, 0),
        Policy::Fifo => (libc::SCHED_FIFO, FIFO_PRIORITY),
    };
    set(number, priority)
}

/// The name of the calling thread's policy.
pub fn policy() -> io::Result<&'static str> {
    // SAFETY: no arguments but the calling thread.
    let number = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    match i32::try_from(number).unwrap_or(-1) {
        libc::SCHED_OTHER => Ok("other"),
        libc::SCHED_BATCH => Ok("batch"),
        libc::SCHED_IDLE => Ok("idle"),
        libc::SCHED_FIFO => Ok("fifo"),
        libc::SCHED_RR => Ok("rr"),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok("another policy"),
    }
}

/// The kernel's `sched_attr` in its first version (48 bytes).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTRIBUTES_BYTES: u32 = size_of::<Attributes>() as u32;

fn attributes() -> io::Result<Attributes> {
    let mut attributes = Attributes::default();
    // SAFETY: the kernel writes at most the given size, which is that of the structure.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, ATTRIBUTES_BYTES, 0) };
    if result == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

/// The slice that the calling thread has requested, ns; 0 on kernels before 6.12.
pub fn slice() -> io::Result<u64> {
    attributes().map(|attributes| attributes.runtime)
}

/// Requests a slice for the calling thread and its future children, ns. Since Linux 6.12, which
/// clamps it to 0.1–100 ms; older kernels ignore it silently. Keeps the policy.
pub fn set_slice(ns: u64) -> io::Result<()> {
    let now = attributes()?;
    let wanted = Attributes { size: ATTRIBUTES_BYTES, runtime: ns, ..now };
    // SAFETY: the kernel reads the structure, which contains its size.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set(policy: i32, priority: i32) -> io::Result<()> {
    // A direct system call, because some C libraries refuse theirs. SAFETY: the kernel reads
    // `sched_param`, one 32-bit number, at the pointer.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Why the caller may not use this policy; `None` if it may. Sets the policy and restores the
/// former one.
pub fn why_refused(policy: Policy) -> Option<String> {
    let mut priority = 0i32;
    // SAFETY: no arguments but the calling thread; the kernel writes one 32-bit number at the
    // pointer.
    let before = unsafe {
        libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority);
        libc::syscall(libc::SYS_sched_getscheduler, 0)
    };
    let error = set_policy(policy).err();
    // Restoring needs no privilege, because the task had that policy before.
    let restored = i32::try_from(before).map_err(io::Error::other).and_then(|before| set(before, priority));
    match (error, restored) {
        (Some(error), _) if error.kind() == io::ErrorKind::PermissionDenied => Some(
            "needs CAP_SYS_NICE or RLIMIT_RTPRIO, and a control group with real-time runtime (cpu.rt_runtime_us)"
                .to_string(),
        ),
        (Some(error), _) => Some(format!("the kernel refuses this policy ({error})")),
        (None, Err(error)) => Some(format!("the kernel does not restore the former policy ({error})")),
        (None, Ok(())) => None,
    }
}

/// Sets the timer slack of the calling thread, ns: the kernel may delay its wake-ups by that time,
/// to serve several timers by one interrupt. Without effect on real-time tasks.
pub fn set_timer_slack(ns: NonZeroU64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(ns))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_set_and_restored() {
        assert_eq!(why_refused(Policy::Other), None);
        assert_eq!(why_refused(Policy::Batch), None);
        // SAFETY: no arguments but the calling thread.
        let now = || unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let before = now();
        let fifo = why_refused(Policy::Fifo);
        assert_eq!(now(), before, "tried and restored");
        assert_eq!(fifo.is_none(), set_policy(Policy::Fifo).is_ok());
        set_policy(Policy::Batch).expect("permitted to every user");
        assert_eq!(now(), i64::from(libc::SCHED_BATCH));
    }

    #[test]
    fn policies_are_found_by_name() {
        let named: Vec<_> = Policy::NAMES.iter().filter_map(|name| Policy::named(name)).collect();
        assert_eq!(named, [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo]);
        assert_eq!(Policy::named("best"), None);
    }
}
