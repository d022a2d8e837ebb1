//! The start of the process: `main` for the C library, and checks before anything else runs.
//!
//! The standard library's own start-up code would abort without a message if `poll` is refused, or
//! if a standard stream is closed and there is no /dev/null. This file does all of it that the
//! program needs.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::fd::IntoRawFd;
use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Makes a function without arguments the program's `main`; it returns the exit code.
#[macro_export]
macro_rules! main {
    ($start:path) => {
        // SAFETY: the C library calls `main` once with the C calling convention, and the program
        // has no other symbol of this name.
        #[unsafe(no_mangle)]
        extern "C" fn main() -> std::ffi::c_int {
            $start()
        }
    };
}

/// Stack size that a process of Assay may need, bytes. The deepest known call uses a third of it
/// (`crates/cli/tests/it/faults/refused.rs` runs every command with exactly this size).
pub const STACK: usize = 1 << 20;

/// Makes writing to a pipe without a reader an error instead of ending the process (SIGPIPE). The
/// standard library restores the signal for programs that it starts.
pub fn ignore_broken_pipes() {
    // SAFETY: installs no handler, and there is no other thread yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Opens a substitute for each closed standard stream; otherwise the next opened file would become
/// that stream. An error if nothing can be opened.
pub fn open_streams() -> io::Result<()> {
    for stream in 0..=2 {
        // SAFETY: the call only queries a descriptor number.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1 {
            // The kernel assigns the lowest free number, which is this one. It is never closed.
            let _ = open_substitute()?.into_raw_fd();
        }
    }
    Ok(())
}

/// /dev/null, or without it the read end of a pipe.
fn open_substitute() -> io::Result<rustix::fd::OwnedFd> {
    match rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
        Ok(null) => Ok(null),
        // The pipe has no writer, so it reads as empty. Writing to it fails, which the standard
        // library treats as a closed stream.
        Err(_) => Ok(rustix::pipe::pipe()?.0),
    }
}

/// The soft and hard limit of a resource of this process; `None`: no limit, or unknown.
pub fn limit(resource: libc::__rlimit_resource_t) -> (Option<u64>, Option<u64>) {
    let mut limits = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is valid; if the call fails it writes nothing.
    unsafe { libc::getrlimit(resource, &raw mut limits) };
    let finite = |limit| (limit != libc::RLIM_INFINITY).then_some(limit);
    (finite(limits.rlim_cur), finite(limits.rlim_max))
}

/// If the limit of CPU time would kill this process without a warning (`ulimit -t` sets soft and
/// hard limit), a timer sends SIGXCPU 0.1 s before. Children are not affected. Without a timer the
/// kernel kills as usual.
pub fn warn_of_cpu_limit() {
    let (soft, hard) = limit(libc::RLIMIT_CPU);
    let Some(hard) = hard.filter(|hard| soft.is_none_or(|soft| soft >= *hard)) else { return };
    let before = Duration::from_secs(hard).saturating_sub(WARNING_TIME);
    // SAFETY: all zeroes is a valid sigevent and a valid itimerspec.
    let (mut event, mut time): (libc::sigevent, libc::itimerspec) = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = libc::SIGXCPU;
    time.it_value.tv_sec = before.as_secs() as _;
    time.it_value.tv_nsec = before.subsec_nanos() as _;
    let mut timer = MaybeUninit::uninit();
    // SAFETY: all pointers are valid during the calls, and the timer is used only if it was made.
    unsafe {
        if libc::timer_create(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut event, timer.as_mut_ptr()) == 0 {
            libc::timer_settime(timer.assume_init(), 0, &raw const time, std::ptr::null_mut());
        }
    }
}

/// Several ticks: the kernel checks limits and timers at each tick.
const WARNING_TIME: Duration = Duration::from_millis(100);

/// Checks that the stack can grow to [`STACK`]; the error says which limit prevents it. Otherwise a
/// small stack or address space would cause a SIGSEGV at some later call.
pub fn check_stack() -> Result<(), String> {
    let needed = STACK >> 10;
    if let Some(limit) = limit(libc::RLIMIT_STACK).0.filter(|limit| *limit < STACK as u64) {
        return Err(format!(
            "the stack is limited to {} KiB, and Assay needs up to {needed} KiB: run `ulimit -s 8192`, or raise the limit \
             in /etc/security/limits.conf",
            limit >> 10
        ));
    }
    let Some(limit) = limit(libc::RLIMIT_AS).0 else { return Ok(()) };
    // SAFETY: a new inaccessible mapping at an address that the kernel chooses, unmapped at once.
    let mapped = unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), STACK + SPARE, ProtFlags::empty(), flags)
            .and_then(|address| rustix::mm::munmap(address, STACK + SPARE))
    };
    if mapped.is_err() {
        return Err(format!(
            "the address space is limited to {} KiB, and the stack alone may need {needed} KiB more: run \
             `ulimit -v unlimited`",
            limit >> 10
        ));
    }
    grow_stack();
    Ok(())
}

/// The gap that the kernel leaves below a stack, and memory for the check itself, bytes.
const SPARE: usize = 256 << 10;

/// Grows the stack now, while there is address space: if it cannot grow later, the process gets a
/// signal instead of an error.
#[inline(never)]
fn grow_stack() {
    let on_stack = [MaybeUninit::<u8>::uninit(); STACK - (64 << 10)];
    std::hint::black_box(&on_stack);
}
