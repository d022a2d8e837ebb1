//! Faults on purpose: writes to memory that may not be written to, each reported by a signal,
//! counted and passed over.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::machine_code::{instruction_pointer, writes};
use sys::mapping::Mapping;
use sys::signals::Action;

// A handler has no arguments of its own: what it needs stands here. One `Faults` at a time may
// exist in a process.

/// Faults that were passed over.
static PASSED: AtomicU64 = AtomicU64::new(0);
/// The address of the instruction that may fault, and of the one behind it.
static PLACE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// The memory in which it may.
static AT: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Reason of a fault: the page is there, but not for this access.
const SEGV_ACCERR: c_int = 2;

/// Passes over the one instruction that is meant to fault, in the one place where it is meant to.
unsafe extern "C" fn pass_over(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO all three; si_addr is valid for SIGSEGV.
    unsafe {
        let next = instruction_pointer(context.cast());
        let meant = *next == PLACE[0].load(Ordering::Relaxed)
            && (*info).si_addr().cast() == AT.load(Ordering::Relaxed)
            && (*info).si_code == SEGV_ACCERR;
        if meant {
            // One thread faults, so that nothing is lost between reading and writing.
            PASSED.store(PASSED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            *next = PLACE[1].load(Ordering::Relaxed);
        } else {
            // Any other fault is a real one: the instruction faults again and ends the process.
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Memory to which writes are tried. Only for processes with a single thread, as passes are.
pub struct Faults<'m> {
    memory: &'m mut Mapping,
    _handler: Action,
}

impl<'m> Faults<'m> {
    /// Installs the handler until the value is dropped.
    pub fn on(memory: &'m mut Mapping) -> io::Result<Faults<'m>> {
        AT.store(memory.as_ptr().cast_mut(), Ordering::Relaxed);
        // SAFETY: the handler touches atomics and its own arguments only.
        let handler = unsafe { Action::with_context(libc::SIGSEGV, pass_over)? };
        Ok(Faults { memory, _handler: handler })
    }

    /// Tries `times` times to write the first byte of the memory; returns the number of faults.
    pub fn write(&mut self, byte: u8, times: u64) -> u64 {
        let before = PASSED.load(Ordering::Relaxed);
        if times > 0 {
            // SAFETY: the mapping is borrowed exclusively. If it is read-only, the handler,
            // installed as long as self exists, continues behind the instruction. PLACE has two
            // adjacent words.
            unsafe { writes(self.memory.as_ptr().cast_mut(), byte, times, PLACE.as_ptr().cast_mut().cast()) };
        }
        PASSED.load(Ordering::Relaxed) - before
    }

    pub fn memory(&mut self) -> &mut Mapping {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use sys::process;

    #[test]
    fn only_writes_to_protected_memory_fault_and_all_of_them_do() {
        let mut memory = Mapping::guarded(2 * rustix::param::page_size()).expect("two pages");
        memory.words_mut().fill(u64::MAX);
        // In a process of its own: a handler belongs to all threads.
        let mut child = process::fork(|| {
            let Ok(mut faults) = Faults::on(&mut memory) else { return 1 };
            let free = faults.write(7, 1000);
            if free != 0 || faults.memory().words()[0].to_ne_bytes()[0] != 7 {
                return 2;
            }
            let protected = faults.memory().set_writable(false).is_ok();
            if !protected
                || faults.write(8, 1000) != 1000
                || faults.write(8, 1) != 1
                || faults.write(8, 0) != 0
            {
                return 3;
            }
            if faults.memory().words()[0].to_ne_bytes()[0] != 7 {
                return 4;
            }
            let again = faults.memory().set_writable(true).is_ok();
            if again && faults.write(9, 10) == 0 { 0 } else { 5 }
        })
        .expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("it ends").code(), Some(0));
    }

    #[test]
    fn a_fault_that_is_not_ours_ends_the_process() {
        use std::os::unix::process::ExitStatusExt;
        let mut memory = Mapping::guarded(rustix::param::page_size()).expect("a page");
        let mut other = Mapping::guarded(rustix::param::page_size()).expect("a page");
        let mut child = process::fork(|| {
            let Ok(_faults) = Faults::on(&mut memory) else { return 1 };
            if other.set_writable(false).is_err() {
                return 2;
            }
            other.write_each(8, 1, 1);
            3
        })
        .expect("fork");
        let status = child.wait(Duration::from_secs(10)).expect("it ends");
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
    }
}
