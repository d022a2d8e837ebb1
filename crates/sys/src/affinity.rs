//! Which CPUs a task may use and which one it is on.

use std::io;

use model::CpuSet;

/// A mask of this many CPUs is tried first; the kernel refuses a shorter one than its own with
/// EINVAL.
const FIRST_TRY_CPUS: usize = 8192;

/// Restricts the calling thread to `cpus`. glibc's `cpu_set_t` ends at 1024 CPUs, hence the mask of
/// our own length.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    pin_task(0, cpus)
}

/// Does something on these CPUs and lets the calling thread run where it did before; an error says
/// that nothing was done. Were the way back refused, only this process would stay: each child
/// chooses its own CPUs.
pub fn on<T>(cpus: &CpuSet, work: impl FnOnce() -> T) -> io::Result<T> {
    let before = allowed()?;
    pin(cpus)?;
    let done = work();
    let _ = pin(&before);
    Ok(done)
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
            return Ok(bits.map(|bit| bit as u32).collect());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || mask.len() > 1 << 12 {
            return Err(error);
        }
        mask.resize(mask.len() * 2, 0);
    }
}

/// The CPU that the caller is on, by the vDSO: about 20 ns; `None` where the kernel does not tell.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: sched_getcpu has no arguments and no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The NUMA node of the CPU that the caller is on; `None` where the kernel does not tell.
pub fn current_node() -> Option<u32> {
    let mut node = 0u32;
    // SAFETY: the kernel writes one 32-bit number; the CPU's number and the third argument may be
    // null.
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
        assert!(pin(&CpuSet::one(8000)).is_err(), "a CPU that no machine of ours has");
        assert_eq!(on(&CpuSet::one(one), current_cpu).expect("allowed"), Some(one));
        assert_eq!(allowed().expect("readable"), before, "restored");
        let done = on(&CpuSet::one(8000), || panic!("done elsewhere"));
        assert!(done.is_err());
    }
}
