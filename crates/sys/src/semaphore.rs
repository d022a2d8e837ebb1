//! Semaphores between processes: those of System V, a set in the kernel, and those of POSIX, words
//! of shared memory.

use std::io;

use super::mapping::Mapping;

/// A set of System V semaphores, all 0 at first; removed on drop by the process that made it.
pub struct SemaphoreSet {
    id: i32,
    maker: u32,
}

/// Under which key a set may be made where everybody's are, or why it may not.
pub type Key = Result<i32, String>;

impl SemaphoreSet {
    /// Such a set outlives a process that is killed. Where the kernel lets us, it is made in an IPC
    /// namespace of our own, which ends with the last process in it; so the caller leaves the
    /// System V objects of everybody else. Elsewhere it is made under a key that somebody knows who
    /// outlives the caller.
    pub fn new(count: i32, key: &Key) -> io::Result<SemaphoreSet> {
        // SAFETY: these calls have no memory arguments; a refusal leaves everything as it was.
        let own = unsafe {
            libc::unshare(libc::CLONE_NEWIPC) == 0
                || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWIPC) == 0
        };
        let refused = io::Error::last_os_error();
        let (made, room) = match (own, key) {
            (true, _) => (SemaphoreSet::here(libc::IPC_PRIVATE, count), "an IPC namespace of our own"),
            (false, Ok(key)) => (SemaphoreSet::here(*key, count), "the common IPC namespace"),
            (false, Err(why)) => {
                return Err(io::Error::other(format!(
                    "not available here: an IPC namespace of our own is refused ({refused}), and in the common one a set of \
                     System V semaphores could outlive us: {why}"
                )));
            }
        };
        made.map_err(|error| {
            io::Error::new(error.kind(), format!("no System V semaphores in {room}: {error}"))
        })
    }

    /// In whatever namespace the caller is; a key that is in use is an error.
    pub fn here(key: i32, count: i32) -> io::Result<SemaphoreSet> {
        // SAFETY: no memory arguments.
        match unsafe { libc::semget(key, count, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) } {
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

/// A set that is there, whoever made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    id: i32,
    /// The user who made it.
    pub maker: u32,
    pub count: u64,
    /// When it was made or last set, and when it was last used (0: never), in seconds of the wall
    /// clock.
    pub changed_s: i64,
    pub used_s: i64,
}

impl Found {
    /// The set under this key in the caller's IPC namespace.
    pub fn under(key: i32) -> io::Result<Option<Found>> {
        // SAFETY: no memory arguments.
        let id = unsafe { libc::semget(key, 0, 0) };
        if id == -1 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(error) };
        }
        let mut told = std::mem::MaybeUninit::<libc::semid_ds>::zeroed();
        // SAFETY: IPC_STAT writes one semid_ds to the pointer that it is given.
        if unsafe { libc::semctl(id, 0, libc::IPC_STAT, told.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded and filled it (and it was zeroed before).
        let told = unsafe { told.assume_init() };
        Ok(Some(Found {
            id,
            maker: told.sem_perm.cuid,
            count: told.sem_nsems,
            changed_s: told.sem_ctime,
            used_s: told.sem_otime,
        }))
    }

    pub fn remove(self) -> io::Result<()> {
        // SAFETY: no memory arguments.
        match unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
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
        let set = SemaphoreSet::here(libc::IPC_PRIVATE, 1).expect("a set");
        let id = set.id;
        set.post(0).and_then(|()| set.wait(0)).expect("up and down");
        drop(SemaphoreSet { id, maker: 0 });
        set.post(0).expect("another process does not remove it");
        drop(set);
        let gone = SemaphoreSet { id, maker: 0 }.post(0).expect_err("its maker does");
        assert!(matches!(gone.raw_os_error(), Some(libc::EINVAL | libc::EIDRM)), "{gone}");
    }

    #[test]
    fn a_set_is_found_by_its_key() {
        let key = 0x5a5a_0000 | (std::process::id() & 0xffff) as i32;
        let set = SemaphoreSet::here(key, 3).expect("a set");
        assert!(SemaphoreSet::here(key, 3).is_err(), "the key is in use");
        let found = Found::under(key).expect("found").expect("there");
        assert_eq!((found.count, found.used_s, found.id), (3, 0, set.id));
        assert_eq!(found.maker, rustix::process::geteuid().as_raw());
        set.post(1).expect("up");
        assert!(Found::under(key).expect("found").is_some_and(|found| found.used_s >= found.changed_s));
        found.remove().expect("removed");
        assert_eq!(Found::under(key).expect("looked"), None);
    }

    #[test]
    fn posix_semaphores_count() {
        let semaphores = Semaphores::new(2).expect("two");
        semaphores.post(1).and_then(|()| semaphores.wait(1)).expect("up and down");
    }
}
