//! CPU affinity: which CPUs a task may use, and which one it runs on.

use std::io;

use model::CpuSet;

/// Length of the first mask that is tried; the kernel refuses one shorter than its own with EINVAL.
const FIRST_TRY_CPUS: usize = 8192;

/// Restricts the calling thread to `cpus`. Reads the result back, because some sandboxes accept the
/// call and do nothing. The mask may exceed the 1024 CPUs of glibc's `cpu_set_t`.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    pin_task(0, cpus)?;
    match misplaced(cpus, allowed().ok().as_ref(), current_cpu()) {
        None => Ok(()),
        Some(contradiction) => Err(io::Error::other(contradiction)),
    }
}

/// What contradicts that a thread was moved to `cpus`: the mask that the kernel returns, or the CPU
/// that the thread runs on; either may be unknown. The mask may lack CPUs that are offline or
/// outside of the cpuset.
fn misplaced(cpus: &CpuSet, mask: Option<&CpuSet>, current: Option<u32>) -> Option<String> {
    let claim = "the kernel or a sandbox reports success but did not move the task";
    match (mask, current) {
        (Some(mask), _) if !mask.is_subset(cpus) => Some(format!("{claim}: it may run on CPUs {mask}")),
        (_, Some(cpu)) if !cpus.contains(cpu) => Some(format!("{claim}: it runs on CPU {cpu}")),
        _ => None,
    }
}

/// Runs `work` on these CPUs, then restores the calling thread's affinity. After an error `work`
/// has not run. If restoring fails only this process keeps the CPUs: children set their own.
pub fn on<T>(cpus: &CpuSet, work: impl FnOnce() -> T) -> io::Result<T> {
    let before = allowed()?;
    let result = pin(cpus).map(|()| work());
    let _ = pin(&before);
    result
}

/// Restricts another task to `cpus`; 0 is the calling one.
pub fn pin_task(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    let words = cpus.last().map_or(1, |last| last as usize / 64 + 1);
    let mut mask = vec![0u64; words];
    for cpu in cpus.iter() {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the pointer and the length in bytes describe `mask`, which the kernel only reads.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len() * 8, mask.as_ptr().cast::<u8>())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs that the calling thread may use.
pub fn allowed() -> io::Result<CpuSet> {
    let mut mask = vec![0u64; FIRST_TRY_CPUS / 64];
    loop {
        // SAFETY: the pointer and the length in bytes describe `mask`, which the kernel fills.
        let bytes = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, mask.len() * 8, mask.as_mut_ptr().cast::<u8>())
        };
        if bytes >= 0 {
            let words = bytes as usize / 8;
            let bits = (0..words * 64).filter(|bit| mask[bit / 64] & (1 << (bit % 64)) != 0);
            let cpus: CpuSet = bits.map(|bit| bit as u32).collect();
            // A sandbox may report success and write nothing.
            return if cpus.is_empty() {
                Err(io::Error::other("the kernel reports no CPU that this task may use"))
            } else {
                Ok(cpus)
            };
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || mask.len() > 1 << 12 {
            return Err(error);
        }
        mask.resize(mask.len() * 2, 0);
    }
}

/// The CPU that the caller runs on, by the vDSO (about 20 ns); `None` if the call fails.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: sched_getcpu has no arguments and no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The NUMA node of the CPU that the caller runs on; `None` if the call fails.
pub fn current_node() -> Option<u32> {
    let mut node = 0u32;
    // SAFETY: the kernel writes one 32-bit number; the pointers to the CPU's number and to the
    // cache may be null.
    let result = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            std::ptr::null_mut::<u32>(),
            &raw mut node,
            std::ptr::null_mut::<u8>(),
        )
    };
    (result == 0).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_to_one_cpu_and_back() {
        let before = allowed().expect("affinity is readable");
        let one = before.last().expect("at least one CPU");
        pin(&CpuSet::one(one)).expect("an allowed CPU may be chosen");
        assert_eq!(allowed().expect("readable"), CpuSet::one(one));
        assert_eq!(current_cpu(), Some(one));
        pin(&before).expect("and all of them again");
        assert!(pin(&CpuSet::one(8000)).is_err(), "a CPU that no host has");
        assert_eq!(on(&CpuSet::one(one), current_cpu).expect("allowed"), Some(one));
        assert_eq!(allowed().expect("readable"), before, "restored");
        assert!(on(&CpuSet::one(8000), || panic!("runs elsewhere")).is_err());
    }

    #[test]
    fn mask_or_cpu_shows_that_a_task_was_not_moved() {
        let set = |list: &str| CpuSet::parse_list(list).expect("a list");
        let seen = |cpus: &str, mask: &str, on: Option<u32>| {
            misplaced(&set(cpus), CpuSet::parse_list(mask).as_ref(), on).unwrap_or_default()
        };
        assert_eq!(seen("1", "1", Some(1)), "");
        assert_eq!(seen("0-7", "0-7", Some(3)), "");
        // CPU 7 is offline, or outside of the cpuset.
        assert_eq!(seen("6-7", "6", Some(6)), "");
        assert_eq!(seen("1", "unknown", None), "", "unknown is no contradiction");
        assert!(seen("1", "0-1", Some(1)).contains("may run on CPUs 0-1"), "by chance on its CPU");
        assert!(seen("1", "0-1", None).contains("0-1"));
        assert!(seen("1", "1", Some(0)).contains("runs on CPU 0"), "the mask is wrong as well");
        assert!(seen("1", "unknown", Some(0)).contains("runs on CPU 0"));
    }
}
