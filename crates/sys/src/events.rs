//! Signals: SIGCHLD and SIGTERM as events that wake a supervising process, and handlers that end
//! this process.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGTERM};

/// Catches SIGCHLD and SIGTERM; after either, its file descriptor is readable.
pub struct Events {
    reader: UnixStream,
    asked_to_end: Arc<AtomicBool>,
}

impl Events {
    pub fn catch() -> io::Result<Events> {
        let asked_to_end = Arc::new(AtomicBool::new(false));
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        // The flag first: a reader that the byte wakes finds it set.
        signal_hook::flag::register(SIGTERM, Arc::clone(&asked_to_end))?;
        signal_hook::low_level::pipe::register(SIGTERM, writer.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
        Ok(Events { reader, asked_to_end })
    }

    /// Whether this process has received SIGTERM.
    pub fn asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Relaxed)
    }

    /// Clears all events so far: the file descriptor becomes readable by further ones.
    pub fn clear(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.reader.read(&mut bytes), Ok(read) if read > 0) {}
    }
}

/// On this signal the process writes `text` to standard error and exits with `code`.
pub fn exit_on(signal: i32, text: &'static str, code: i32) -> io::Result<()> {
    let handler = move || {
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        signal_hook::low_level::exit(code);
    };
    // SAFETY: the handler makes two system calls; it allocates nothing and takes no lock.
    unsafe { signal_hook::low_level::register(signal, handler)? };
    Ok(())
}

/// The first of these signals sets `asked`; one that comes more than `min_gap` later makes the
/// process exit with `code` at once, without restoring anything. For processes that have no thread
/// which waits for signals.
pub fn exit_on_second(
    signals: impl Iterator<Item = i32>,
    min_gap: Duration,
    code: i32,
    asked: &Arc<AtomicBool>,
) -> io::Result<()> {
    let (start, first) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let min_gap_ns = min_gap.as_nanos() as u64;
    for signal in signals {
        let (asked, first) = (Arc::clone(asked), Arc::clone(&first));
        let handler = move || {
            let now = start.elapsed().as_nanos() as u64 + 1;
            match first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
                Err(first) if now - first.min(now) > min_gap_ns => signal_hook::low_level::exit(code),
                _ => asked.store(true, Ordering::Relaxed),
            }
        };
        // SAFETY: the handler reads a clock and touches atomics; it allocates nothing and takes no
        // lock.
        unsafe { signal_hook::low_level::register(signal, handler)? };
    }
    Ok(())
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;
    use rustix::process::{Signal, getpid, kill_process};

    const MIN_GAP: Duration = Duration::from_millis(30);

    #[test]
    fn a_later_second_signal_ends_the_process() {
        // In a child: signal handlers are shared by all threads of a process.
        let mut child = process::fork(|| {
            let asked = Arc::new(AtomicBool::new(false));
            let signals = [Signal::INT, Signal::TERM].map(Signal::as_raw);
            if exit_on_second(signals.into_iter(), MIN_GAP, 42, &asked).is_err() {
                return 1;
            }
            let begin = Instant::now();
            let sent =
                kill_process(getpid(), Signal::INT).is_ok() && kill_process(getpid(), Signal::TERM).is_ok();
            // If the second signal came late (a busy host), the process has exited already.
            if !sent || !asked.load(Ordering::Relaxed) {
                return 2;
            }
            std::thread::sleep((MIN_GAP * 2).saturating_sub(begin.elapsed()));
            let _ = kill_process(getpid(), Signal::TERM);
            3
        })
        .expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("it ends").code(), Some(42));
    }

    #[test]
    fn exit_on_a_signal_exits_at_once() {
        let mut child = process::fork(|| {
            let _ = exit_on(Signal::XCPU.as_raw(), "", 3);
            let _ = kill_process(getpid(), Signal::XCPU);
            4
        })
        .expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("it ends").code(), Some(3));
    }
}
