//! Semaphores between processes: those of System V, a set in the kernel, and those of POSIX, words of shared memory.

use std::io;

use super::mapping::Mapping;

/// A set of System V semaphores, all 0 at first; removed on drop by the process that made it.
pub struct SemaphoreSet {
    id: i32,
    maker: u32,
}

impl SemaphoreSet {
    /// Such a set outlives a process that is killed. Where the kernel lets us, it is made in an IPC namespace of our own,
    /// which ends with the last process in it; so the caller leaves the System V objects of everybody else.
    pub fn new(count: i32) -> io::Result<SemaphoreSet> {
        // SAFETY: these calls have no memory arguments; a refusal leaves everything as it was.
        let own = unsafe {
            libc::unshare(libc::CLONE_NEWIPC) == 0
                || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWIPC) == 0
        };
        SemaphoreSet::here(count).map_err(|error| {
            let room = if own { "an IPC namespace of our own" } else { "the common IPC namespace" };
            io::Error::new(error.kind(), format!("no System V semaphores in {room}: {error}"))
        })
    }

    /// In whatever namespace the caller is.
    fn here(count: i32) -> io::Result<SemaphoreSet> {
        // SAFETY: no memory arguments.
        match unsafe { libc::semget(libc::IPC_PRIVATE, count, 0o600) } {
            -1 => Err(io::Error::last_os_error()),
            id => Ok(SemaphoreSet { id, maker: std::process::id() }),
        }
    }

    /// Adds one.
    pub fn post(&self, index: u16) -> io::Result<()> {
        self.add(index, 1)
    }

    /// Waits until it is above 0, and takes one; interrupted by any signal.
    pub fn wait(&self, index: u16) -> io::Result<()> {
        self.add(index, -1)
    }

    fn add(&self, index: u16, what: i16) -> io::Result<()> {
        let mut operation = libc::sembuf { sem_num: index, sem_op: what, sem_flg: 0 };
        // SAFETY: one operation is passed, and its count says so.
        match unsafe { libc::semop(self.id, &mut operation, 1) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for SemaphoreSet {
    fn drop(&mut self) {
        if self.maker == std::process::id() {
            // SAFETY: no memory arguments; the set is ours.
            unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
        }
    }
}

/// POSIX semaphores (`sem_t`, shared between processes), a cache line each, all 0 at first.
pub struct Semaphores {
    memory: Mapping,
    count: usize,
}

/// Larger than a `sem_t`, and no two share a cache line.
const APART: usize = 128;

impl Semaphores {
    pub fn new(count: usize) -> io::Result<Semaphores> {
        let semaphores = Semaphores { memory: Mapping::shared(count * APART)?, count };
        for index in 0..count {
            // SAFETY: inside the mapping and aligned; nobody uses it yet.
            if unsafe { libc::sem_init(semaphores.at(index), 1, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(semaphores)
    }

    /// Adds one.
    pub fn post(&self, index: usize) -> io::Result<()> {
        // SAFETY: initialised by `new`; made for use by several processes at once.
        match unsafe { libc::sem_post(self.at(index)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until it is above 0, and takes one; interrupted by a signal that does not restart.
    pub fn wait(&self, index: usize) -> io::Result<()> {
        // SAFETY: as in `post`.
        match unsafe { libc::sem_wait(self.at(index)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn at(&self, index: usize) -> *mut libc::sem_t {
        const { assert!(size_of::<libc::sem_t>() <= APART) };
        assert!(index < self.count, "semaphore {index} of {}", self.count);
        self.memory.as_ptr().cast_mut().wrapping_add(index * APART).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_goes_with_its_maker_only() {
        let set = SemaphoreSet::here(1).expect("a set");
        let id = set.id;
        set.post(0).and_then(|()| set.wait(0)).expect("up and down");
        drop(SemaphoreSet { id, maker: 0 });
        set.post(0).expect("another process does not remove it");
        drop(set);
        let gone = SemaphoreSet { id, maker: 0 }.post(0).expect_err("its maker does");
        assert!(matches!(gone.raw_os_error(), Some(libc::EINVAL | libc::EIDRM)), "{gone}");
    }

    #[test]
    fn posix_semaphores_count() {
        let semaphores = Semaphores::new(2).expect("two");
        semaphores.post(1).and_then(|()| semaphores.wait(1)).expect("up and down");
    }
}
