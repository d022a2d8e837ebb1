//! The scheduling policy and the timer slack of the calling task.

use std::io;
use std::num::NonZeroU64;

/// How the scheduler treats a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The fair class, as tasks are without asking.
    Other,
    /// The fair class without preempting others when it wakes.
    Batch,
    /// Only what nobody else wants.
    Idle,
    /// Before all of these, until it sleeps. 80: between the kernel's interrupt threads (50) and
    /// its watchdogs (99), where wake-up tests usually run.
    Fifo,
}

const FIFO_PRIORITY: i32 = 80;

impl Policy {
    pub const NAMES: &[&str] = &["other", "batch", "idle", "fifo"];

    pub fn named(name: &str) -> Option<Policy> {
        let policies = [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo];
        Policy::NAMES.iter().zip(policies).find(|(own, _)| **own == name).map(|(_, policy)| policy)
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
        _ => Ok("another one"),
    }
}

/// The kernel's `sched_attr` in its first version: 48 bytes.
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

const ATTRIBUTES: u32 = size_of::<Attributes>() as u32;

fn attributes() -> io::Result<Attributes> {
    let mut attributes = Attributes::default();
    // SAFETY: the kernel writes at most the size given, which is that of the structure, at the
    // pointer.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, ATTRIBUTES, 0) };
    if result == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

/// The slice that the calling thread asks for, ns; 0 where the kernel knows none of its own (before
/// 6.12).
pub fn slice() -> io::Result<u64> {
    attributes().map(|attributes| attributes.runtime)
}

/// Asks for a slice for the calling thread and all that it starts, ns (kernels from 6.12 on; they
/// hold it to 0.1 to 100 ms, older ones say nothing and do nothing). Its policy stays.
pub fn set_slice(ns: u64) -> io::Result<()> {
    let now = attributes()?;
    let wanted = Attributes { size: ATTRIBUTES, runtime: ns, ..now };
    // SAFETY: the kernel reads the structure, whose size stands in it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set(policy: i32, priority: i32) -> io::Result<()> {
    // The kernel's `sched_param` is this one number. Some C libraries refuse the call that the
    // kernel has. SAFETY: the kernel reads one 32-bit number at the pointer.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Why the caller may not be scheduled so, if it may not: tried for a moment, and taken back.
pub fn refused(policy: Policy) -> Option<String> {
    let mut priority = 0i32;
    // SAFETY: no arguments but the calling thread; the kernel writes one 32-bit number at the
    // pointer.
    let before = unsafe {
        libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority);
        libc::syscall(libc::SYS_sched_getscheduler, 0)
    };
    let error = set_policy(policy).err();
    // Back to what it was; without privilege, too, since that is never more than it had.
    let restored = i32::try_from(before).map_err(io::Error::other).and_then(|before| set(before, priority));
    match (error, restored) {
        (Some(error), _) if error.kind() == io::ErrorKind::PermissionDenied => Some(
            "needs CAP_SYS_NICE or RLIMIT_RTPRIO, and a control group that has real-time time to give"
                .to_string(),
        ),
        (Some(error), _) => Some(format!("the kernel refuses this policy ({error})")),
        (None, Err(error)) => Some(format!("the policy could not be taken back ({error})")),
        (None, Ok(())) => None,
    }
}

/// How much later than asked the kernel may wake the calling thread, ns, so that several timers
/// share an interrupt. Real-time tasks have none.
pub fn set_timer_slack(ns: NonZeroU64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(ns))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_set_and_taken_back() {
        assert_eq!(refused(Policy::Other), None);
        assert_eq!(refused(Policy::Batch), None);
        // SAFETY: no arguments but the calling thread.
        let now = || unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let before = now();
        let fifo = refused(Policy::Fifo);
        assert_eq!(now(), before, "tried and taken back");
        assert_eq!(fifo.is_none(), set_policy(Policy::Fifo).is_ok());
        set_policy(Policy::Batch).expect("nobody is refused this");
        assert_eq!(now(), i64::from(libc::SCHED_BATCH));
    }

    #[test]
    fn names_stand_for_policies() {
        let named: Vec<_> = Policy::NAMES.iter().filter_map(|name| Policy::named(name)).collect();
        assert_eq!(named, [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo]);
        assert_eq!(Policy::named("best"), None);
    }
}
