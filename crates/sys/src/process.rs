//! Child processes: forked members of a visit that die with it, and how processes are tied to their
//! parent.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGTERM};
use signal_hook::iterator::Signals;

/// A forked child, killed and reaped on drop.
pub struct Child {
    pid: Pid,
    status: Option<ExitStatus>,
}

/// Forks a child that runs `work`, exits with its result, and dies with its parent.
///
/// The caller must have a single thread: only then may the child use the allocator and the standard
/// library.
pub fn fork(work: impl FnOnce() -> i32) -> io::Result<Child> {
    let mut work = Some(work);
    // The child calls it once.
    fork_child(&mut || work.take().map_or(PANICKED, |work| work()))
}

fn fork_child(work: &mut dyn FnMut() -> i32) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    // SAFETY: fork has no arguments. The visit's process is single-threaded (`bench` starts no
    // thread before forking), so no thread that the child lacks can own a lock.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = match die_with_parent(parent) {
                Ok(()) => std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(PANICKED),
                Err(_) => PARENT_GONE,
            };
            // SAFETY: _exit ends this process at once, without running the parent's exit handlers a
            // second time.
            unsafe { libc::_exit(code) }
        }
        pid => {
            let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no process id"))?;
            Ok(Child { pid, status: None })
        }
    }
}

const PANICKED: i32 = 101;
const PARENT_GONE: i32 = 102;

/// Asks the kernel to kill the calling process when its parent dies; an error if the parent has
/// died already.
pub fn die_with_parent(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the parent process has ended"))
    }
}

/// Makes the kernel kill the process of this command when the calling process ends.
pub fn kill_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec the child makes two system calls and an error from a number; it
    // allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            die_with_parent(parent).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
            Ok(())
        });
    }
}

/// Starts this command in a new session: it gets no signals of this terminal or process group, and
/// inherits no open files other than the three standard streams.
pub fn in_new_session(command: &mut Command) {
    // SAFETY: between fork and exec the child makes two system calls; it allocates nothing and
    // takes no lock.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            // On kernels before 5.11 the call fails; then the child keeps files that this process
            // inherited.
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Ok(())
        });
    }
}

/// From now on, when a child of this process ends, its own children become children of this
/// process.
pub fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Runs `work` in a child and returns its exit status; the calling process becomes its supervisor:
/// - It adopts all that the child has started, and kills it after the child has ended.
/// - It forwards SIGTERM to the child, also when its own parent ends. The child has its own process
///   group.
///
/// The caller must have a single thread and no other child. The child should call
/// [`terminate_with_parent`], so that its descendants also end if the supervisor is killed.
pub fn run_supervised(work: impl FnOnce() -> i32) -> io::Result<ExitStatus> {
    adopt_orphans()?;
    terminate_with_parent()?;
    let mut child = fork(|| {
        // In the supervisor's group it could be killed only together with it.
        let _ = rustix::process::setpgid(None, None);
        work()
    })?;
    // Releases standard output, so that its reader sees the end of the child. Without /dev/null the
    // reader sees that of the supervisor.
    let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let _ = null.map(rustix::stdio::dup2_stdout);
    // After the fork, so that the child does not inherit the handlers.
    let mut signals = Signals::new([SIGTERM, SIGCHLD])?;
    let status = loop {
        if let Some(status) = child.ended()? {
            break status;
        }
        if signals.wait().any(|signal| signal == SIGTERM) {
            // Fails only if the child has ended already.
            let _ = rustix::process::kill_process(child.pid, Signal::TERM);
        }
    };
    end_descendants(KILL_LIMIT)?;
    Ok(status)
}

/// Time limit for killing the descendants of a supervised child.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Ends the calling process in the same way as another one has ended.
pub fn exit_like(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // If the kernel refuses, the exit code 1 reports the failure.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Kills and reaps all descendants of the calling process; returns whether there were any, or an
/// error after `limit`. The caller must have started all of them and adopt orphans, so that none
/// can escape.
pub fn end_descendants(limit: Duration) -> io::Result<bool> {
    let (start, mut found_any, mut empty_scans) = (Instant::now(), false, 0);
    loop {
        let left = super::counters::descendants(std::process::id()).into_iter();
        let left: Vec<Pid> = left.filter_map(|pid| Pid::from_raw(pid as i32)).collect();
        empty_scans = if left.is_empty() { empty_scans + 1 } else { 0 };
        // The second scan sees processes that were started during the first.
        if empty_scans == 2 {
            return Ok(found_any);
        }
        found_any |= !left.is_empty();
        for pid in &left {
            // Fails only if it has ended already. Orphans become children of this process, so a
            // later scan reaps them.
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG);
        }
        if start.elapsed() > limit && empty_scans == 0 {
            let text = format!("{} killed processes did not end within {limit:?}", left.len());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// From now on the kernel sends SIGTERM to the calling process when its parent ends, instead of
/// SIGKILL.
pub fn terminate_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// The path for starting the running executable again: /proc/self/exe, because an upgrade or build
/// may replace the file `program` at any time, and the same code must measure all visits. `program`
/// if there is no /proc.
pub fn running_executable(program: &Path) -> &Path {
    let handle = Path::new("/proc/self/exe");
    if rustix::fs::stat(handle).is_ok() { handle } else { program }
}

/// Sets the name that tools such as `top` show; a process started by /proc/self/exe is named `exe`.
pub fn set_process_name(name: &std::ffi::CStr) {
    // Without effect on measurements if it fails.
    let _ = rustix::thread::set_name(name);
}

/// Whether the calling process was started with this signal ignored (as by `nohup`).
pub fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given, and the pointer is valid for a write of the old one.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: sigaction succeeded and filled it (and it was zeroed before).
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

impl Child {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let waited = rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG)?;
            self.status = waited.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }

    /// Waits until it ends; after `limit` kills it and returns an error.
    pub fn wait(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                self.kill();
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("a child process did not end within {limit:?}"),
                ));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits until it has ended without reaping it, so that its counters can still be read.
    pub fn wait_until_ended(&self) -> io::Result<()> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while self.status.is_none() {
            match rustix::process::waitid(WaitId::Pid(self.pid), options) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other.map(|_| ()).map_err(Into::into),
            }
        }
        Ok(())
    }

    /// Waits without limit until it ends, and reaps it.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            let waited = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
            match waited {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(found) => {
                    self.status = found.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
                }
            }
        }
    }

    pub fn kill(&mut self) {
        if self.status.is_none() {
            // Fails only if it has ended already.
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
            let waited = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
            self.status = waited.ok().flatten().map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The test harness has several threads, so these children must not need a lock.

    #[test]
    fn a_child_exits_with_its_code() {
        let mut child = fork(|| 7).expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("ends").code(), Some(7));
    }

    #[test]
    fn a_hanging_child_is_killed() {
        let mut child = fork(|| {
            loop {
                std::hint::spin_loop();
            }
        })
        .expect("fork");
        let error = child.wait(Duration::from_millis(50)).expect_err("it hangs");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(child.ended().expect("reaped").and_then(|status| status.signal()), Some(9));
    }
}
