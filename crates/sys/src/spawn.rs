//! Starts children and threads with as little overhead as possible, for timing.
//!
//! Unlike those of [`super::process::fork`] these children are not tied to their parent: they end
//! at once.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mapping::Mapping;
use super::program::Program;
use model::{CpuSet, Pages};

/// How a child ended: the status from `waitpid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(c_int);

impl Ended {
    /// Its exit code; `None` if a signal ended it.
    pub fn code(self) -> Option<i32> {
        ExitStatus::from_raw(self.0).code()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", ExitStatus::from_raw(self.0))
    }
}

/// How a program is started in a child.
#[derive(Clone, Copy)]
pub enum StartMethod<'a> {
    /// `fork`, then `execve` in the copy.
    Fork,
    /// `clone(CLONE_VM | CLONE_VFORK)`, as in `vfork`: the child uses the parent's memory, and the
    /// parent waits until it has called `execve`. The child runs on this stack.
    Vfork(&'a Stack),
    /// `posix_spawn` of the C library.
    Spawn,
}

/// Exit code of a child whose `execve` failed.
const NO_EXEC: c_int = 127;

/// Forks a child that only exits with `code` (0 to 255), and reaps it.
pub fn fork_and_exit(code: i32) -> io::Result<Ended> {
    // SAFETY: fork has no arguments. The child only calls _exit, so locks of other threads do not
    // matter.
    match unsafe { libc::fork() } {
        // SAFETY: _exit ends this process at once.
        0 => unsafe { libc::_exit(code) },
        pid => reap(pid),
    }
}

/// Starts a program with an empty environment and waits for its end.
pub fn start(method: StartMethod, program: &Program) -> io::Result<Ended> {
    let argv = program.argv();
    let environment = [std::ptr::null::<c_char>()];
    let arguments = ExecArguments {
        path: program.path().as_ptr(),
        argv: argv.as_ptr(),
        environment: environment.as_ptr(),
    };
    let pid = match method {
        // SAFETY: as in `fork_and_exit`; the child only calls execve and _exit.
        StartMethod::Fork => match unsafe { libc::fork() } {
            0 => exec((&raw const arguments).cast_mut().cast()),
            pid => pid,
        },
        StartMethod::Vfork(stack) => {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let argument = (&raw const arguments).cast_mut().cast();
            // SAFETY: the child runs `exec` on a stack of its own; the parent waits until the child
            // has left this memory, and `arguments` with all that it points to lives as long. No
            // signal handler could run in the child, which writes only to its stack and errno.
            unsafe { libc::clone(exec_child, stack.top(), flags, argument) }
        }
        StartMethod::Spawn => {
            let mut pid = 0;
            // SAFETY: path, argv and environment are null-terminated and live until the call
            // returns; there are no actions and no attributes.
            let error = unsafe {
                libc::posix_spawn(
                    &raw mut pid,
                    arguments.path,
                    std::ptr::null(),
                    std::ptr::null(),
                    arguments.argv.cast::<*mut c_char>(),
                    arguments.environment.cast::<*mut c_char>(),
                )
            };
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            pid
        }
    };
    reap(pid)
}

/// The arguments of `execve` for a child.
struct ExecArguments {
    path: *const c_char,
    argv: *const *const c_char,
    environment: *const *const c_char,
}

extern "C" fn exec_child(arguments: *mut c_void) -> c_int {
    exec(arguments)
}

/// In the child: executes the program, or exits with [`NO_EXEC`].
fn exec(arguments: *mut c_void) -> ! {
    // SAFETY: `start` passes arguments that outlive the child's use of this memory, with
    // null-terminated lists.
    unsafe {
        let arguments = &*arguments.cast::<ExecArguments>();
        libc::execve(arguments.path, arguments.argv, arguments.environment);
        libc::_exit(NO_EXEC)
    }
}

/// Waits for a child; `pid` is the result of the call that made it, negative if it failed.
fn reap(pid: libc::pid_t) -> io::Result<Ended> {
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one number to `status`.
        match unsafe { libc::waitpid(pid, &raw mut status, 0) } {
            reaped if reaped == pid => return Ok(Ended(status)),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Whether the calling thread has no children, neither living nor zombies.
pub fn has_no_child() -> bool {
    let mut status = 0;
    // SAFETY: as in `reap`; the call does not wait.
    let result =
        unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WNOTHREAD | libc::__WALL) };
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD)
}

/// The stack for children that use their parent's memory, one at a time.
pub struct Stack {
    memory: Mapping,
}

const STACK_BYTES: usize = 64 << 10;

impl Stack {
    pub fn new() -> io::Result<Stack> {
        let mut memory = Mapping::private(STACK_BYTES, Pages::AsGiven, &CpuSet::default())?;
        memory.words_mut().fill(0);
        Ok(Stack { memory })
    }

    /// Its highest address, because stacks grow downwards; aligned to 16 bytes, as both
    /// architectures require.
    fn top(&self) -> *mut c_void {
        self.memory.as_ptr().wrapping_add(self.memory.len()).cast_mut().cast()
    }
}

/// Stack size of the threads, bytes. The C library reuses a stack for the next thread, so its size
/// hardly matters.
pub const THREAD_STACK_BYTES: usize = 1 << 20;

/// Starts and joins `number` threads, one after the other; each adds 1 to a count. Returns the
/// count.
pub fn threads(number: u64) -> io::Result<u64> {
    let count = AtomicU64::new(0);
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are initialised here before their use and destroyed below; the size is
    // valid.
    let error = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), THREAD_STACK_BYTES)
    };
    let mut outcome = result_of(error);
    for _ in 0..number {
        if outcome.is_err() {
            break;
        }
        outcome = one_thread(&attributes, &count);
    }
    // SAFETY: initialised above.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    outcome.map(|()| count.load(Ordering::Relaxed))
}

fn one_thread(attributes: &std::mem::MaybeUninit<libc::pthread_attr_t>, count: &AtomicU64) -> io::Result<()> {
    let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
    let argument = (&raw const *count).cast_mut().cast();
    // SAFETY: the caller has initialised the attributes. The count outlives the thread, which is
    // joined before this function returns; the handle is read only after pthread_create succeeded.
    unsafe {
        result_of(libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), add_one, argument))?;
        result_of(libc::pthread_join(thread.assume_init(), std::ptr::null_mut()))
    }
}

/// The work of each thread.
extern "C" fn add_one(count: *mut c_void) -> *mut c_void {
    // SAFETY: `one_thread` passes a count that outlives this thread.
    unsafe { &*count.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
    std::ptr::null_mut()
}

/// Converts the return value of a `pthread_*` function: 0 or an error number.
fn result_of(error: c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

#[cfg(test)]
mod tests {
    use super::super::program::{SHELL, TRUE};
    use super::*;
    use testkit::alone;

    #[test]
    fn every_method_starts_and_reaps_the_program() {
        alone(|| {
            let minimal = Program::minimal().expect("the smallest program");
            let stack = Stack::new().expect("a stack");
            let absent = Program::at(c"/nowhere/at/all", &[c"absent"], 0);
            for method in [StartMethod::Fork, StartMethod::Vfork(&stack), StartMethod::Spawn] {
                for _ in 0..20 {
                    assert_eq!(start(method, &minimal).expect("started").code(), Some(42));
                }
                // A system may lack both programs.
                for program in [Program::at(TRUE, &[c"true"], 0), minimal.by_shell()] {
                    if super::super::program::is_executable(program.path()) {
                        assert!(
                            program.is_right(start(method, &program).expect("started").code()),
                            "{:?}",
                            program.path()
                        );
                    }
                }
                match (method, start(method, &absent)) {
                    (StartMethod::Spawn, outcome) => assert!(outcome.is_err()),
                    (_, outcome) => assert_eq!(outcome.expect("a child").code(), Some(NO_EXEC)),
                }
            }
            let killed = Program::at(SHELL, &[c"sh", c"-c", c"kill -9 $$"], 0);
            assert!(
                !killed.is_right(start(StartMethod::Fork, &killed).expect("started").code()),
                "a signal gives no exit code"
            );
            assert!(has_no_child());
        });
    }

    #[test]
    fn forked_children_exit_with_their_code() {
        for code in [0, 7, 255] {
            assert_eq!(fork_and_exit(code).expect("a child").code(), Some(code));
        }
        assert!(has_no_child());
        let _left = super::super::process::fork(|| 0).expect("a child");
        assert!(!has_no_child(), "a child that was not reaped counts");
    }

    #[test]
    fn threads_are_counted() {
        assert_eq!(threads(25).expect("threads"), 25);
    }
}
