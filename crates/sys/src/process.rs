//! Processes of our own: forked members of a visit that die with it.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGTERM};
use signal_hook::iterator::Signals;

/// A forked child; killed and reaped on drop.
pub struct Child {
    pid: Pid,
    status: Option<ExitStatus>,
}

/// Forks. The child runs `work` and exits with its answer; it dies when the parent does.
///
/// The caller must have a single thread: the child may then go on using the allocator and the
/// standard library.
pub fn fork(work: impl FnOnce() -> i32) -> io::Result<Child> {
    let mut work = Some(work);
    // Only the child calls it, and once.
    forked(&mut || work.take().map_or(PANICKED, |work| work()))
}

fn forked(work: &mut dyn FnMut() -> i32) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    // SAFETY: fork has no arguments. The visit's process is single-threaded (nothing in `bench`
    // makes threads before forking), so no lock can be held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = match die_with(parent) {
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

/// Asks the kernel to kill the calling process when its parent dies; an error if that has happened
/// already.
pub fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    match rustix::process::getppid() == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::other("the parent process is gone")),
    }
}

/// What this command starts is killed when the calling process ends, however that ends.
pub fn dies_with_us(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec the child makes two system calls, and an error of a plain
    // number: no memory, no lock.
    unsafe {
        command.pre_exec(move || {
            die_with(parent).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
            Ok(())
        });
    }
}

/// What this command starts gets no signals of ours, be it by our terminal or our group, and none
/// of our files but the three that it is given.
pub fn alone_in_a_session(command: &mut Command) {
    // SAFETY: between fork and exec the child makes two system calls: no memory, no lock.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            // Older kernels cannot: then it keeps what we were given open, and that only.
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Ok(())
        });
    }
}

/// From now on the children of a child of ours that dies become ours, to be waited for.
pub fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Does `work` in a child and waits for it: how that ended. The calling process becomes its keeper.
/// Whatever the child has started is below the keeper, also when its parents are gone, and is
/// killed when the child has ended, however that ended. The child is in a process group of its own;
/// SIGTERM and the end of the keeper's parent ask it to end. The caller must have a single thread
/// and no other child, and the child should let itself be asked to end when its parent ends
/// ([`be_asked_when_the_parent_ends`]): then what it started ends, too, when the keeper is killed.
pub fn kept(work: impl FnOnce() -> i32) -> io::Result<ExitStatus> {
    adopt_orphans()?;
    be_asked_when_the_parent_ends()?;
    let mut child = fork(|| {
        // In the keeper's group it would only be killed together with it.
        let _ = rustix::process::setpgid(None, None);
        work()
    })?;
    // Whoever listens to the child hears its end; without a /dev/null, that of the keeper.
    let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let _ = null.map(rustix::stdio::dup2_stdout);
    // After the fork: the child's signals are its own.
    let mut signals = Signals::new([SIGTERM, SIGCHLD])?;
    let status = loop {
        if let Some(status) = child.ended()? {
            break status;
        }
        if signals.wait().any(|signal| signal == SIGTERM) {
            // Already gone is as good as asked.
            let _ = rustix::process::kill_process(child.pid, Signal::TERM);
        }
    };
    end_descendants(LEAVE)?;
    Ok(status)
}

/// How long what a kept child has left may take to leave.
const LEAVE: Duration = Duration::from_secs(5);

/// Ends the calling process as another one has ended.
pub fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // Where the kernel refuses that, the exit code says that something went wrong.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The calling process's children, and theirs, are killed and waited for until there is none left,
/// for so long at most; whether there was one. The caller has started all of them and adopts
/// orphans: none gets away.
pub fn end_descendants(limit: Duration) -> io::Result<bool> {
    let (begin, mut any, mut empty) = (Instant::now(), false, 0);
    loop {
        let left = super::counters::descendants(std::process::id()).into_iter();
        let left: Vec<Pid> = left.filter_map(|pid| Pid::from_raw(pid as i32)).collect();
        empty = if left.is_empty() { empty + 1 } else { 0 };
        // Who is born during one look is seen by the next.
        if empty == 2 {
            return Ok(any);
        }
        any |= !left.is_empty();
        for pid in &left {
            // Already gone is as good as killed; whoever is not our own child comes to us.
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG);
        }
        if begin.elapsed() > limit && empty == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "killed processes have not left"));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// From now on the end of the parent asks the calling process to end (SIGTERM) instead of killing
/// it.
pub fn be_asked_when_the_parent_ends() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// What to start to get the running program once more: the kernel's own handle on it, because an
/// upgrade or a build may put another file in `program`'s place at any moment; `program` where
/// there is no /proc. All visits of a run are measured by the same code.
pub fn running(program: &Path) -> &Path {
    let handle = Path::new("/proc/self/exe");
    match rustix::fs::stat(handle) {
        Ok(_) => handle,
        Err(_) => program,
    }
}

/// What tools like `top` call this process. Started by the kernel's handle it would be `exe`.
pub fn name_as(name: &std::ffi::CStr) {
    // A nicer name is all that is lost.
    let _ = rustix::thread::set_name(name);
}

/// Whether the calling process was started with this signal ignored, as `nohup` does.
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
    /// Its number as a process.
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

    /// Waits until it ends by itself; kills it after `limit`.
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
                    format!("a member process did not end within {limit:?}"),
                ));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits until it has ended, and leaves it to be reaped: what the kernel counted for it can
    /// still be read.
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

    /// Waits until it ends by itself, however long that takes.
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

    /// Whether it has ended and was waited for: what it used then counts as its parent's
    /// children's.
    pub fn was_waited_for(&self) -> bool {
        self.status.is_some()
    }

    pub fn kill(&mut self) {
        if self.status.is_none() {
            // Already gone is as good as killed.
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

    // The test harness has several threads, so these children do nothing that could need a lock.

    #[test]
    fn a_child_returns_its_code() {
        let mut child = fork(|| 7).expect("fork");
        assert_eq!(child.wait(Duration::from_secs(10)).expect("ends").code(), Some(7));
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
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
