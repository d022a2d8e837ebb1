//! A watchdog process for a session that changes settings or has kernel objects that would outlive
//! it: it waits for the session's end and cleans up.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Knobs, STATE_VARIABLE};
use sys::process;

/// The option of `assay restore` that makes it a watchdog.
pub const WATCH: &str = "--watch";

/// How long to wait for a watchdog to end after its session ended normally.
const MAX_LEAVE_WAIT: Duration = Duration::from_secs(2);
/// How long a killed session may take to end.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// The session's side: the watchdog waits while this exists. The kernel closes the pipe between
/// them when the session dies.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts a watchdog; `None` if that fails: `assay restore` and the next run do the same later.
    pub fn start(program: &Path, root: &Path, state: &Path) -> Option<Watchdog> {
        let mut command = Command::new(program);
        command
            .args(["restore", WATCH, "--root"])
            .arg(std::path::absolute(root).ok()?)
            .env(STATE_VARIABLE, std::path::absolute(state).ok()?)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // It gets no signals of the terminal or of the session's group, and inherits no open files.
        process::in_new_session(&mut command);
        let mut child = command.spawn().ok()?;
        // A stopped watchdog must not block the session.
        let non_blocking = child.stdin.as_ref().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        match non_blocking {
            Some(Ok(())) => Some(Watchdog { child }),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                None
            }
        }
    }

    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a line, which the watchdog reads when the session ends.
    pub fn send(&mut self, line: &str) {
        if let Some(pipe) = &mut self.child.stdin {
            // It has ended or does not read: the next watchdog gets the line.
            let _ = pipe.write_all(format!("{line}\n").as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Everything is restored, so it finds nothing to do and ends soon.
        let end = Instant::now() + MAX_LEAVE_WAIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(POLL);
        }
        // It may be stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The watchdog's side: waits until the session closes the pipe, and returns the last lines sent.
pub fn wait() -> anyhow::Result<String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    // A signal to the whole group ends the session, too, which closes the pipe.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let (mut received, mut bytes) = (Vec::new(), [0; 4096]);
    let mut stdin = std::io::stdin().lock();
    loop {
        match stdin.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => {
                received.extend_from_slice(&bytes[..read]);
                // Only the last line counts, or the one before if the last is cut off.
                let mut ends = received.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
                if let Some((at, _)) = ends.nth(2) {
                    received.drain(..=at);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Ok(String::from_utf8_lossy(&received).into_owned())
}

/// Waits until the session has ended: a killed process closes its files a little earlier.
pub fn wait_for_the_end_of(session: Option<u32>) {
    let end = Instant::now() + MAX_EXIT_WAIT;
    let lives = || parent() == session && session.is_some();
    while lives() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
}

/// The parent process while it lives.
pub fn parent() -> Option<u32> {
    rustix::process::getppid().map(|parent| parent.as_raw_pid().unsigned_abs())
}

/// Restores what a killed session left changed.
pub fn restore(knobs: &Knobs) -> anyhow::Result<Vec<String>> {
    let end = Instant::now() + MAX_EXIT_WAIT;
    loop {
        match knobs.restore_what_was_left() {
            Err(_) if Instant::now() < end => std::thread::sleep(POLL),
            result => return result,
        }
    }
}

/// The program of the watchdog: this one, by the kernel's handle.
pub fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(process::running_executable(&own).to_path_buf())
}
