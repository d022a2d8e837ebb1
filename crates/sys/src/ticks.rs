//! A periodic signal that interrupts waits of the calling thread: no wait for a partner can hang,
//! and none needs a time limit of its own.

use std::io;
use std::time::Duration;

/// While it exists, every system call in which this thread sleeps returns `EINTR` within one
/// period. Children do not inherit it.
pub struct Ticks {
    timer: libc::timer_t,
}

impl Ticks {
    /// Sends SIGALRM to this thread in each period, with an empty handler that does not restart the
    /// interrupted call.
    pub fn start(period: Duration) -> io::Result<Ticks> {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all zeroes is a valid sigaction: default action, no flags, empty mask.
        let action = unsafe { action.assume_init_mut() };
        action.sa_sigaction = ignore as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler does nothing, so it may run at any time; the old action is not
        // requested.
        if unsafe { libc::sigaction(libc::SIGALRM, action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut event = std::mem::MaybeUninit::<libc::sigevent>::zeroed();
        // SAFETY: all zeroes is a valid sigevent.
        let event = unsafe { event.assume_init_mut() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both pointers are valid; the kernel writes the timer's id.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, &mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let ticks = Ticks { timer };
        let period = libc::timespec {
            tv_sec: period.as_secs() as libc::time_t,
            tv_nsec: period.subsec_nanos() as libc::c_long,
        };
        let periods = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer exists, the new setting is valid, the old one is not requested.
        match unsafe { libc::timer_settime(timer, 0, &periods, std::ptr::null_mut()) } {
            0 => Ok(ticks),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: `start` made the timer, and it is deleted once. The handler stays for a late
        // tick.
        unsafe { libc::timer_delete(self.timer) };
    }
}

extern "C" fn ignore(_: libc::c_int) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_ends_a_wait() {
        let (reads, _writes) = rustix::pipe::pipe().expect("a pipe");
        let _ticks = Ticks::start(Duration::from_millis(10)).expect("a timer");
        for _ in 0..3 {
            let waited = rustix::io::read(&reads, &mut [0u8; 8]);
            assert_eq!(waited, Err(rustix::io::Errno::INTR), "the pipe has no data");
        }
    }
}
