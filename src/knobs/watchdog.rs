//! A process beside a session that has knobs turned: it waits for the session's end, and puts back what that left.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Knobs, STATE_VARIABLE};

/// The option of `assay restore` that makes it a watchdog.
pub const WATCH: &str = "--watch";

/// How long a watchdog may take to leave when its session has ended well.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a session that was killed may take to be gone.
const GOING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// The session's side: while this is there the watchdog waits. The kernel closes the pipe between them when the session
/// dies, however it does.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts one; `None` where that fails: `assay restore` and the next start do the same later.
    pub fn start(program: &Path, root: &Path, state: &Path) -> Option<Watchdog> {
        let child = Command::new(program)
            .args(["restore", WATCH, "--root"])
            .arg(root)
            .env(STATE_VARIABLE, state)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C and a kill of the session's group are not for it.
            .process_group(0)
            .spawn()
            .ok()?;
        Some(Watchdog { child })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // The knobs are back where they were: it finds nothing to do, and is not waited for longer than that takes.
        let end = Instant::now() + LEAVE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        // Whoever stopped it must not stop us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The watchdog's side: waits until the session is gone, then puts back what it left.
pub fn wait_and_put_back(knobs: &Knobs) -> anyhow::Result<Vec<String>> {
    let mut nothing = [0; 16];
    let mut stdin = std::io::stdin().lock();
    while stdin.read(&mut nothing).is_ok_and(|read| read > 0) {}
    // A process that is killed closes its files while it still counts as one that runs.
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
    Some(crate::sys::process::running(&own).to_path_buf())
}
