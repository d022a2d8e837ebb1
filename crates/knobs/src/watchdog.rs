//! A process beside a session that has knobs turned, or kernel objects that would outlive it: it
//! waits for the session's end, and clears up what that left.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Knobs, STATE_VARIABLE};
use sys::process;

/// The option of `assay restore` that makes it a watchdog.
pub const WATCH: &str = "--watch";

/// How long a watchdog may take to leave when its session has ended well.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a session that was killed may take to be gone.
const GOING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// The session's side: while this is there the watchdog waits. The kernel closes the pipe between
/// them when the session dies, however it does.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts one; `None` where that fails: `assay restore` and the next start do the same later.
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
        // Ctrl-C, the terminal's end and a kill of the session's group are not for it; nothing of
        // ours stays open by it.
        process::in_new_session(&mut command);
        let mut child = command.spawn().ok()?;
        // One that is stopped must not stop us.
        let told = child.stdin.as_ref().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        match told {
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

    /// Tells it something in one line, which it has when the session ends.
    pub fn tell(&mut self, line: &str) {
        if let Some(pipe) = &mut self.child.stdin {
            // It has ended, or does not read: the next one is told anew.
            let _ = pipe.write_all(format!("{line}\n").as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // All is back where it was: it finds nothing to do, and is not waited for longer than that
        // takes.
        let end = Instant::now() + LEAVE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        // Whoever stopped it must not stop us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The watchdog's side: waits until the session has closed the pipe between them. What it was told.
pub fn wait() -> anyhow::Result<String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    // Who asks all of us to end asks the session, too, and that is its end.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let (mut told, mut bytes) = (Vec::new(), [0; 4096]);
    let mut stdin = std::io::stdin().lock();
    loop {
        match stdin.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => {
                told.extend_from_slice(&bytes[..read]);
                // Only the last line counts, and the one before where that was cut off.
                let mut ends = told.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
                if let Some((at, _)) = ends.nth(2) {
                    told.drain(..=at);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// Waits until the session is gone: a process that is killed closes its files while it still counts
/// as one that runs.
pub fn wait_for_the_end_of(session: Option<u32>) {
    let end = Instant::now() + GOING;
    let lives = || parent() == session && session.is_some();
    while lives() && Instant::now() < end {
        std::thread::sleep(LOOK);
    }
}

/// The process that started this one, as long as it lives.
pub fn parent() -> Option<u32> {
    rustix::process::getppid().map(|parent| parent.as_raw_pid().unsigned_abs())
}

/// Then puts back what it left.
pub fn put_back(knobs: &Knobs) -> anyhow::Result<Vec<String>> {
    let end = Instant::now() + GOING;
    loop {
        match knobs.put_back_what_was_left() {
            Err(_) if Instant::now() < end => std::thread::sleep(LOOK),
            result => return result,
        }
    }
}

/// What starts a watchdog: this very program, by the kernel's own handle on it.
pub fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(process::running_executable(&own).to_path_buf())
}
