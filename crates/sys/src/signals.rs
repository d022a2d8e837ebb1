//! What a process does on a signal: handlers that count, signals ignored, and what was there before
//! put back.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};

/// A handler that gets the interrupted program's registers.
pub type WithContext = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What a signal does in this process from now on; dropping it restores what it did before.
pub struct Action {
    signal: c_int,
    now: libc::sigaction,
    before: libc::sigaction,
}

impl Action {
    /// Calls `handler`.
    ///
    /// # Safety
    /// The handler must be safe to run between any two instructions of this process.
    pub unsafe fn with_context(signal: c_int, handler: WithContext) -> io::Result<Action> {
        Action::set(signal, handler as *const () as usize, libc::SA_SIGINFO)
    }

    fn set(signal: c_int, handler: libc::sighandler_t, flags: c_int) -> io::Result<Action> {
        // SAFETY: all zeroes are a valid sigaction (the default action, no signal blocked).
        let (mut now, before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        now.sa_sigaction = handler;
        now.sa_flags = flags;
        let mut action = Action { signal, now, before };
        action.before = action.install()?;
        Ok(action)
    }

    /// Makes the call once more; what the signal did before.
    #[inline]
    fn install(&self) -> io::Result<libc::sigaction> {
        let mut before = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: both pointers are valid; the handlers of this file touch atomics only, and those
        // given to `with_context` are safe to run at any time by its contract.
        match unsafe { libc::sigaction(self.signal, &self.now, before.as_mut_ptr()) } {
            // SAFETY: the call succeeded and filled it.
            0 => Ok(unsafe { before.assume_init() }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Action {
    fn drop(&mut self) {
        // SAFETY: exactly what sigaction gave us; without a second pointer nothing is written.
        unsafe { libc::sigaction(self.signal, &self.before, std::ptr::null_mut()) };
    }
}

/// The signal that a process here sends to itself.
pub const OURS: Signal = Signal::USR1;

/// How often the handler of [`Counted`] ran: a handler has no place of its own to count in.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: c_int) {
    // The handler cannot interrupt itself, so that nothing is lost between reading and writing.
    CAUGHT.store(CAUGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// [`OURS`] is caught and counted. For processes with a single thread, which visits are.
pub struct Counted(Action);

impl Counted {
    pub fn install() -> io::Result<Counted> {
        Ok(Counted(Action::set(OURS.as_raw(), count as *const () as usize, 0)?))
    }

    /// Installs the same handler once more; whether it was the one before.
    #[inline]
    pub fn install_again(&self) -> io::Result<bool> {
        Ok(self.0.install()?.sa_sigaction == self.0.now.sa_sigaction)
    }

    /// Signals caught so far by this process.
    pub fn caught(&self) -> u64 {
        CAUGHT.load(Ordering::Relaxed)
    }
}

/// [`OURS`] is thrown away.
pub struct Ignored {
    _until_dropped: Action,
}

impl Ignored {
    pub fn set() -> io::Result<Ignored> {
        Ok(Ignored { _until_dropped: Action::set(OURS.as_raw(), libc::SIG_IGN, 0)? })
    }
}

/// Sends [`OURS`] to this process, whose number is `own`. In a process with one thread that does
/// not block it, its handler has run when the call is back.
#[inline]
pub fn send(own: Pid) -> rustix::io::Result<()> {
    rustix::process::kill_process(own, OURS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process;

    #[test]
    fn signals_are_counted_ignored_and_put_back() {
        // In a process of its own: what a signal does holds for all threads.
        let mut child = process::fork(|| {
            let own = rustix::process::getpid();
            let Ok(handler) = Counted::install() else { return 1 };
            let before = handler.caught();
            let sent = (0..100).all(|_| send(own).is_ok());
            if !sent || handler.caught() != before + 100 || handler.install_again().ok() != Some(true) {
                return 2;
            }
            {
                let Ok(_ignored) = Ignored::set() else { return 3 };
                if send(own).is_err() || handler.caught() != before + 100 {
                    return 4;
                }
            }
            if send(own).is_err() || handler.caught() != before + 101 {
                return 5;
            }
            0
        })
        .expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("it ends").code(), Some(0));
    }
}
