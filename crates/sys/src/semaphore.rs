//! Semaphores between processes: System V (a set in the kernel) and POSIX (words of shared memory).

use std::io;

use super::mapping::Mapping;
use crate::zero_or_error;

/// A set of System V semaphores, initially 0; the process that made it removes it on drop.
pub struct SemaphoreSet {
    id: i32,
    maker_pid: u32,
}

/// The key for a set in the common IPC namespace (that of processes which have not left it), or
/// why no set may be made there.
pub type SharedKey = Result<i32, String>;

impl SemaphoreSet {
    /// Moves the caller into a private IPC namespace (with a private user namespace if needed) and
    /// makes the set there: the kernel removes it with the last process in it, even after a kill.
    /// If refused, uses `key` in the common namespace; the parent process cleans up by that key.
    pub fn unshare_and_create(count: i32, key: &SharedKey) -> io::Result<SemaphoreSet> {
        // SAFETY: these calls have no memory arguments; a refusal leaves everything as it was.
        let is_private = unsafe {
            libc::unshare(libc::CLONE_NEWIPC) == 0
                || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWIPC) == 0
        };
        // Read at once, and used only if the kernel refused.
        let refusal = io::Error::last_os_error();
        let (key, namespace) = match (is_private, key) {
            (true, _) => (libc::IPC_PRIVATE, "a private"),
            (false, Ok(key)) => (*key, "the common"),
            (false, Err(why)) => {
                return Err(io::Error::other(format!(
                    "the kernel refuses a private IPC namespace ({refusal}); in the common one System V semaphores \
                     could stay behind: {why}"
                )));
            }
        };
        SemaphoreSet::create(key, count).map_err(|error| {
            let text = format!("cannot make System V semaphores in {namespace} IPC namespace: {error}");
            io::Error::new(error.kind(), text)
        })
    }

    /// Makes a set in the IPC namespace in which the caller is now. A key in use is an error
    /// (EEXIST).
    fn create(key: i32, count: i32) -> io::Result<SemaphoreSet> {
        // SAFETY: no memory arguments.
        match unsafe { libc::semget(key, count, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) } {
            -1 => Err(io::Error::last_os_error()),
            id => Ok(SemaphoreSet { id, maker_pid: std::process::id() }),
        }
    }

    /// Adds one.
    pub fn post(&self, index: u16) -> io::Result<()> {
        self.add(index, 1)
    }

    /// Waits until the semaphore is above 0 and takes one; any signal interrupts the wait (EINTR).
    pub fn wait(&self, index: u16) -> io::Result<()> {
        self.add(index, -1)
    }

    fn add(&self, index: u16, change: i16) -> io::Result<()> {
        let mut operation = libc::sembuf { sem_num: index, sem_op: change, sem_flg: 0 };
        // SAFETY: one operation is passed, and its count says so.
        zero_or_error(unsafe { libc::semop(self.id, &mut operation, 1) })
    }
}

impl Drop for SemaphoreSet {
    fn drop(&mut self) {
        if self.maker_pid == std::process::id() {
            // SAFETY: no memory arguments; the set is ours.
            unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
        }
    }
}

/// A set that exists, whichever process made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExistingSet {
    id: i32,
    pub maker_uid: u32,
    /// Semaphores in the set.
    pub count: u64,
    /// Time of creation or of the last change by `semctl`, seconds since the epoch.
    pub changed_s: i64,
    /// Time of the last operation, seconds since the epoch; 0: never.
    pub used_s: i64,
}

impl ExistingSet {
    /// The set with this key in the IPC namespace in which the caller is now, if it exists.
    pub fn with_key(key: i32) -> io::Result<Option<ExistingSet>> {
        // SAFETY: no memory arguments.
        let id = unsafe { libc::semget(key, 0, 0) };
        if id == -1 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(error) };
        }
        let mut stat = std::mem::MaybeUninit::<libc::semid_ds>::zeroed();
        // SAFETY: IPC_STAT writes one semid_ds to the pointer that it is given.
        if unsafe { libc::semctl(id, 0, libc::IPC_STAT, stat.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded and filled it (and it was zeroed before).
        let stat = unsafe { stat.assume_init() };
        Ok(Some(ExistingSet {
            id,
            maker_uid: stat.sem_perm.cuid,
            count: stat.sem_nsems,
            changed_s: stat.sem_ctime,
            used_s: stat.sem_otime,
        }))
    }

    pub fn remove(self) -> io::Result<()> {
        // SAFETY: no memory arguments.
        zero_or_error(unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) })
    }
}

/// POSIX semaphores (`sem_t`, shared between processes), initially 0, each on its own cache lines.
pub struct Semaphores {
    memory: Mapping,
    count: usize,
}

/// Distance between two semaphores: larger than a `sem_t`, and two cache lines on x86 (adjacent
/// lines may be fetched in pairs).
const STRIDE_BYTES: usize = 128;

impl Semaphores {
    pub fn new(count: usize) -> io::Result<Semaphores> {
        let semaphores = Semaphores { memory: Mapping::shared(count * STRIDE_BYTES)?, count };
        for index in 0..count {
            // SAFETY: inside the mapping and aligned; no other process uses it yet.
            if unsafe { libc::sem_init(semaphores.at(index), 1, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(semaphores)
    }

    /// Adds one.
    pub fn post(&self, index: usize) -> io::Result<()> {
        // SAFETY: initialised by `new`; made for use by several processes at once.
        zero_or_error(unsafe { libc::sem_post(self.at(index)) })
    }

    /// Waits until the semaphore is above 0 and takes one; a signal whose handler was installed
    /// without SA_RESTART interrupts the wait (EINTR).
    pub fn wait(&self, index: usize) -> io::Result<()> {
        // SAFETY: as in `post`.
        zero_or_error(unsafe { libc::sem_wait(self.at(index)) })
    }

    fn at(&self, index: usize) -> *mut libc::sem_t {
        const { assert!(size_of::<libc::sem_t>() <= STRIDE_BYTES) };
        assert!(index < self.count, "semaphore {index} of {}", self.count);
        self.memory.as_ptr().cast_mut().wrapping_add(index * STRIDE_BYTES).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_maker_removes_a_set() {
        let set = SemaphoreSet::create(libc::IPC_PRIVATE, 1).expect("a set");
        let id = set.id;
        set.post(0).and_then(|()| set.wait(0)).expect("up and down");
        drop(SemaphoreSet { id, maker_pid: 0 });
        set.post(0).expect("another process does not remove it");
        drop(set);
        let gone = SemaphoreSet { id, maker_pid: 0 }.post(0).expect_err("its maker does");
        assert!(matches!(gone.raw_os_error(), Some(libc::EINVAL | libc::EIDRM)), "{gone}");
    }

    #[test]
    fn a_set_is_found_by_its_key() {
        let key = 0x5a5a_0000 | (std::process::id() & 0xffff) as i32;
        let set = SemaphoreSet::create(key, 3).expect("a set");
        assert!(SemaphoreSet::create(key, 3).is_err(), "the key is in use");
        let found = ExistingSet::with_key(key).expect("found").expect("there");
        assert_eq!((found.count, found.used_s, found.id), (3, 0, set.id));
        assert_eq!(found.maker_uid, rustix::process::geteuid().as_raw());
        set.post(1).expect("up");
        assert!(
            ExistingSet::with_key(key).expect("found").is_some_and(|found| found.used_s >= found.changed_s)
        );
        found.remove().expect("removed");
        assert_eq!(ExistingSet::with_key(key).expect("looked"), None);
    }

    #[test]
    fn posix_semaphores_count() {
        let semaphores = Semaphores::new(2).expect("two");
        semaphores.post(1).and_then(|()| semaphores.wait(1)).expect("up and down");
    }
}
