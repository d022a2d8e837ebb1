//! Signal actions of this process: counting handlers and ignored signals; dropping an action
//! restores the previous one.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};

/// A handler that receives the registers of the interrupted program.
pub type WithContext = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// An installed signal action; dropping it restores the previous one.
pub struct Action {
    signal: c_int,
    now: libc::sigaction,
    before: libc::sigaction,
}

impl Action {
    /// Installs a handler that is called with the registers.
    ///
    /// # Safety
    /// The handler must be safe to run between any two instructions of this process.
    pub unsafe fn with_context(signal: c_int, handler: WithContext) -> io::Result<Action> {
        Action::set(signal, handler as *const () as usize, libc::SA_SIGINFO)
    }

    fn set(signal: c_int, handler: libc::sighandler_t, flags: c_int) -> io::Result<Action> {
        // SAFETY: all zeroes is a valid sigaction (default action, no signal blocked).
        let (mut now, before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        now.sa_sigaction = handler;
        now.sa_flags = flags;
        let mut action = Action { signal, now, before };
        action.before = action.install()?;
        Ok(action)
    }

    /// Calls sigaction (again); returns the previous action.
    #[inline]
    fn install(&self) -> io::Result<libc::sigaction> {
        let mut before = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: both pointers are valid; handlers of this file only access atomics, and those of
        // `with_context` are safe to run at any time by its contract.
        match unsafe { libc::sigaction(self.signal, &self.now, before.as_mut_ptr()) } {
            // SAFETY: the call succeeded and filled it.
            0 => Ok(unsafe { before.assume_init() }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Action {
    fn drop(&mut self) {
        // SAFETY: the action that sigaction returned; with a null pointer nothing is written.
        unsafe { libc::sigaction(self.signal, &self.before, std::ptr::null_mut()) };
    }
}

/// The signal that a benchmark sends to its own process.
pub const TEST_SIGNAL: Signal = Signal::USR1;

/// How often the handler of [`Counted`] ran; a handler can only access statics.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: c_int) {
    // The signal is blocked in its own handler, so no count is lost between load and store.
    CAUGHT.store(CAUGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Catches and counts [`TEST_SIGNAL`]; for processes with a single thread, such as visits.
pub struct Counted(Action);

impl Counted {
    pub fn install() -> io::Result<Counted> {
        Ok(Counted(Action::set(TEST_SIGNAL.as_raw(), count as *const () as usize, 0)?))
    }

    /// Installs the same handler again; returns whether it was the previous one.
    #[inline]
    pub fn install_again(&self) -> io::Result<bool> {
        Ok(self.0.install()?.sa_sigaction == self.0.now.sa_sigaction)
    }

    /// Signals caught so far by this process.
    pub fn caught(&self) -> u64 {
        CAUGHT.load(Ordering::Relaxed)
    }
}

/// Ignores [`TEST_SIGNAL`] until dropped.
pub struct Ignored {
    _action: Action,
}

impl Ignored {
    pub fn set() -> io::Result<Ignored> {
        Ok(Ignored { _action: Action::set(TEST_SIGNAL.as_raw(), libc::SIG_IGN, 0)? })
    }
}

/// Sends [`TEST_SIGNAL`] to this process, whose id is `own`. If the process has one thread that
/// does not block it, the handler has run when the call returns.
#[inline]
pub fn send(own: Pid) -> rustix::io::Result<()> {
    rustix::process::kill_process(own, TEST_SIGNAL)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process;

    #[test]
    fn signals_are_counted_ignored_and_restored() {
        // In a child: signal actions apply to all threads of a process.
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
