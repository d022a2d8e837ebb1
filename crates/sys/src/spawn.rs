//! Children and threads with as little around them as can be: what is timed when starting them is.
//!
//! Other than [`super::process::fork`] nothing ties these children to their parent: they end at
//! once by themselves.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mapping::Mapping;
use super::program::Program;
use model::{CpuSet, Pages};

/// How a child ended, as `waitpid` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(c_int);

impl Ended {
    /// Its exit code; `None` when a signal ended it.
    pub fn code(self) -> Option<i32> {
        ExitStatus::from_raw(self.0).code()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", ExitStatus::from_raw(self.0))
    }
}

/// How a child comes to run another program.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    /// `fork`, then `execve` in the copy.
    Fork,
    /// `clone(CLONE_VM | CLONE_VFORK)`, which is what `vfork` asks of the kernel: the child borrows
    /// the parent's memory and the parent waits until it has called `execve`. It runs on a stack of
    /// its own, given here.
    Vfork(&'a Stack),
    /// `posix_spawn` of the C library.
    Spawn,
}

/// A child that could not become the program ends with this.
const NO_EXEC: c_int = 127;

/// Forks a child that does nothing but end with `code` (0 to 255), and reaps it.
pub fn fork_and_exit(code: i32) -> io::Result<Ended> {
    // SAFETY: fork has no arguments. The child calls _exit and nothing else, so no lock that
    // another thread may have held can matter.
    match unsafe { libc::fork() } {
        // SAFETY: _exit ends this process at once.
        0 => unsafe { libc::_exit(code) },
        pid => reap(pid),
    }
}

/// Starts a program, with an empty environment, and waits for its end.
pub fn start(way: Way, program: &Program) -> io::Result<Ended> {
    let argv = program.argv();
    let environment = [std::ptr::null::<c_char>()];
    let order =
        Order { path: program.path().as_ptr(), argv: argv.as_ptr(), environment: environment.as_ptr() };
    let pid = match way {
        // SAFETY: as in `fork_and_exit`; the child calls nothing but execve and _exit.
        Way::Fork => match unsafe { libc::fork() } {
            0 => exec((&raw const order).cast_mut().cast()),
            pid => pid,
        },
        Way::Vfork(stack) => {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            // SAFETY: the child runs `exec` on a stack that nobody else uses, the parent stands
            // still until the child has left this memory, and `order` and what it points to live as
            // long. No signal handlers are set that could run in the child, whose only writes are
            // to its stack and to errno.
            unsafe { libc::clone(exec_child, stack.top(), flags, (&raw const order).cast_mut().cast()) }
        }
        Way::Spawn => {
            let mut pid = 0;
            // SAFETY: path, argv and environment are null-terminated and live here; no actions, no
            // attributes.
            let error = unsafe {
                libc::posix_spawn(
                    &raw mut pid,
                    order.path,
                    std::ptr::null(),
                    std::ptr::null(),
                    order.argv.cast::<*mut c_char>(),
                    order.environment.cast::<*mut c_char>(),
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

/// What a child needs to call `execve`.
struct Order {
    path: *const c_char,
    argv: *const *const c_char,
    environment: *const *const c_char,
}

extern "C" fn exec_child(order: *mut c_void) -> c_int {
    exec(order)
}

/// In the child: becomes the program, or ends.
fn exec(order: *mut c_void) -> ! {
    // SAFETY: `start` passes an order that outlives the child's use of this memory, with
    // null-terminated lists.
    unsafe {
        let order = &*order.cast::<Order>();
        libc::execve(order.path, order.argv, order.environment);
        libc::_exit(NO_EXEC)
    }
}

/// Waits for the end of a child that a call has just returned, or says why there is none.
fn reap(pid: libc::pid_t) -> io::Result<Ended> {
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    loop {
        // SAFETY: the status is written to a number of ours.
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

/// Whether the calling thread has no child left, living or dead.
pub fn has_no_child() -> bool {
    let mut status = 0;
    // SAFETY: as in `reap`; nothing is waited for.
    let answer =
        unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WNOTHREAD | libc::__WALL) };
    answer == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD)
}

/// The stack of children that borrow their parent's memory, one at a time.
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

    /// Where it begins: it grows downwards. 16-byte aligned, as both architectures want it.
    fn top(&self) -> *mut c_void {
        self.memory.as_ptr().wrapping_add(self.memory.len()).cast_mut().cast()
    }
}

/// The stack that threads are given, bytes. The C library keeps it for the next thread, so its size
/// hardly matters.
pub const THREAD_STACK_BYTES: usize = 1 << 20;

/// Starts one thread after the other that each add 1 to a count and end, and joins each; returns
/// the count.
pub fn threads(number: u64) -> io::Result<u64> {
    let count = AtomicU64::new(0);
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are initialised here before their use and destroyed below; the size is
    // a valid one.
    let error = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), THREAD_STACK_BYTES)
    };
    let mut outcome = answer(error);
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
    // joined before this function returns; the handle is read only after its creation has
    // succeeded.
    unsafe {
        answer(libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), add_one, argument))?;
        answer(libc::pthread_join(thread.assume_init(), std::ptr::null_mut()))
    }
}

/// The threads' whole work.
extern "C" fn add_one(count: *mut c_void) -> *mut c_void {
    // SAFETY: `one_thread` passes a count that outlives this thread.
    unsafe { &*count.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
    std::ptr::null_mut()
}

/// What `pthread_*` functions return: 0 or an error number.
fn answer(error: c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

#[cfg(test)]
mod tests {
    use super::super::program::{SHELL, TRUE};
    use super::*;
    use testkit::alone;

    #[test]
    fn every_way_starts_the_program_and_reaps_it() {
        alone(|| {
            let minimal = Program::minimal().expect("the smallest program");
            let stack = Stack::new().expect("a stack");
            let absent = Program::at(c"/nowhere/at/all", &[c"absent"], 0);
            for way in [Way::Fork, Way::Vfork(&stack), Way::Spawn] {
                for _ in 0..20 {
                    assert_eq!(start(way, &minimal).expect("started").code(), Some(42));
                }
                // A system may have neither; then nothing is to be shown with them.
                for program in [Program::at(TRUE, &[c"true"], 0), minimal.by_shell()] {
                    if super::super::program::is_executable(program.path()) {
                        assert!(
                            program.is_right(start(way, &program).expect("started").code()),
                            "{:?}",
                            program.path()
                        );
                    }
                }
                match (way, start(way, &absent)) {
                    (Way::Spawn, outcome) => assert!(outcome.is_err()),
                    (_, outcome) => assert_eq!(outcome.expect("a child").code(), Some(NO_EXEC)),
                }
            }
            let killed = Program::at(SHELL, &[c"sh", c"-c", c"kill -9 $$"], 0);
            assert!(
                !killed.is_right(start(Way::Fork, &killed).expect("started").code()),
                "a signal is no code"
            );
            assert!(has_no_child());
        });
    }

    #[test]
    fn forked_children_end_with_their_code() {
        for code in [0, 7, 255] {
            assert_eq!(fork_and_exit(code).expect("a child").code(), Some(code));
        }
        assert!(has_no_child());
        let _left = super::super::process::fork(|| 0).expect("a child");
        assert!(!has_no_child(), "a child that nobody has reaped is seen");
    }

    #[test]
    fn threads_are_counted() {
        assert_eq!(threads(25).expect("threads"), 25);
    }
}
