//! What wakes a process that watches others: a child that ended, or a wish that it should end itself.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGTERM};

/// Catches SIGCHLD and SIGTERM from its making on; both can be waited for as a file that has something to read.
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

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
