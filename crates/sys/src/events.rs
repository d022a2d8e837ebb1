//! What wakes a process that watches others: a child that ended, or a wish that it should end
//! itself. And what signals do where nobody waits for them.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGTERM};

/// Catches SIGCHLD and SIGTERM from its making on; both can be waited for as a file that has
/// something to read.
pub struct Events {
    reader: UnixStream,
    asked: Arc<AtomicBool>,
}

impl Events {
    pub fn catch() -> io::Result<Events> {
        let asked = Arc::new(AtomicBool::new(false));
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        // The flag first: whoever is woken by the byte finds it set.
        signal_hook::flag::register(SIGTERM, Arc::clone(&asked))?;
        signal_hook::low_level::pipe::register(SIGTERM, writer.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
        Ok(Events { reader, asked })
    }

    /// Whether this process was asked to end.
    pub fn asked_to_end(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Takes note of all events so far: the next wait is for further ones.
    pub fn clear(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.reader.read(&mut bytes), Ok(read) if read > 0) {}
    }
}

/// This signal ends the process at once, after these words on standard error.
pub fn end_on(signal: i32, words: &'static str, code: i32) -> io::Result<()> {
    let last_words = move || {
        let _ = rustix::io::write(rustix::stdio::stderr(), words.as_bytes());
        signal_hook::low_level::exit(code);
    };
    // SAFETY: the handler makes two system calls: no memory, no lock.
    unsafe { signal_hook::low_level::register(signal, last_words)? };
    Ok(())
}

/// The first of these signals sets `asked`; one that comes more than `apart` later ends the process
/// at once with this code. For those who have no thread that waits for them: nothing can be put
/// back before that end.
pub fn end_on_second(
    signals: impl Iterator<Item = i32>,
    apart: Duration,
    code: i32,
    asked: &Arc<AtomicBool>,
) -> io::Result<()> {
    let (begin, first) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let apart = apart.as_nanos() as u64;
    for signal in signals {
        let (asked, first) = (Arc::clone(asked), Arc::clone(&first));
        let note = move || {
            let now = begin.elapsed().as_nanos() as u64 + 1;
            match first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
                Err(first) if now - first.min(now) > apart => signal_hook::low_level::exit(code),
                _ => asked.store(true, Ordering::Relaxed),
            }
        };
        // SAFETY: the handler reads a clock and touches atomics: no memory, no lock.
        unsafe { signal_hook::low_level::register(signal, note)? };
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

    const APART: Duration = Duration::from_millis(30);

    #[test]
    fn a_later_signal_ends_what_an_earlier_one_did_not() {
        // In a process of its own: what a signal does holds for all threads.
        let mut child = process::fork(|| {
            let asked = Arc::new(AtomicBool::new(false));
            let signals = [Signal::INT, Signal::TERM].map(Signal::as_raw);
            if end_on_second(signals.into_iter(), APART, 42, &asked).is_err() {
                return 1;
            }
            let begin = Instant::now();
            let sent =
                kill_process(getpid(), Signal::INT).is_ok() && kill_process(getpid(), Signal::TERM).is_ok();
            // Where the second came late, on a busy machine, the process has ended as it should.
            if !sent || !asked.load(Ordering::Relaxed) {
                return 2;
            }
            std::thread::sleep((APART * 2).saturating_sub(begin.elapsed()));
            let _ = kill_process(getpid(), Signal::TERM);
            3
        })
        .expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("it ends").code(), Some(42));
    }

    #[test]
    fn last_words_are_the_last() {
        let mut child = process::fork(|| {
            let _ = end_on(Signal::XCPU.as_raw(), "", 3);
            let _ = kill_process(getpid(), Signal::XCPU);
            4
        })
        .expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("it ends").code(), Some(3));
    }
}
