//! The first moments of the process: `main` as the C library calls it, and what must hold before
//! anything else runs.
//!
//! The standard library's own way to a Rust `main` aborts without a word where `poll` is refused,
//! and where a standard stream is closed and there is no /dev/null. It does nothing that this
//! program needs but what stands here.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::fd::IntoRawFd;
use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Makes a function without arguments the program's `main`; what it returns is the exit code.
#[macro_export]
macro_rules! main {
    ($start:path) => {
        // SAFETY: the C library calls `main` once and with the C convention, and the program has no
        // other of this name.
        #[unsafe(no_mangle)]
        extern "C" fn main() -> std::ffi::c_int {
            $start()
        }
    };
}

/// Stack that a process of ours may come to need. The deepest that was seen takes a third of it
/// (`crates/cli/tests/it/faults/refused.rs` runs every verb with exactly this much).
pub const STACK: usize = 1 << 20;

/// Writing into a pipe that nobody reads is an error from now on, and not the process's end.
/// Programs that the standard library starts for us get the signal back as it was.
pub fn ignore_broken_pipes() {
    // SAFETY: no handler of ours is named, and no other thread is there yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Puts something in the place of each standard stream that is closed: the next file that is opened
/// would become it. An error where nothing can be opened.
pub fn open_streams() -> io::Result<()> {
    for stream in 0..=2 {
        // SAFETY: asks about a number.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1 {
            // The lowest free number, which is this one, is what it gets; it is never closed.
            let _ = stand_in()?.into_raw_fd();
        }
    }
    Ok(())
}

/// What is always empty and, where there is /dev/null, swallows everything.
fn stand_in() -> io::Result<rustix::fd::OwnedFd> {
    match rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
        Ok(null) => Ok(null),
        // The end of a pipe that nobody writes to. Writing into it is refused, which the standard
        // library takes for a stream that is closed.
        Err(_) => Ok(rustix::pipe::pipe()?.0),
    }
}

/// A limit of this process: what holds now, and what it may be raised to. `None` is no limit, or
/// none that the kernel tells.
pub fn limit(resource: libc::__rlimit_resource_t) -> (Option<u64>, Option<u64>) {
    let mut told = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is valid; a call that is refused leaves what it points to as it is.
    unsafe { libc::getrlimit(resource, &raw mut told) };
    let finite = |limit| (limit != libc::RLIM_INFINITY).then_some(limit);
    (finite(told.rlim_cur), finite(told.rlim_max))
}

/// Where a limit of CPU time would kill this process outright (`ulimit -t` sets both of its parts),
/// SIGXCPU comes a little before. Children are not touched by it. Without a timer the kernel does
/// what it would have done.
pub fn warn_of_cpu_limit() {
    let (warns, kills) = limit(libc::RLIMIT_CPU);
    let Some(kills) = kills.filter(|kills| warns.is_none_or(|warns| warns >= *kills)) else { return };
    let before = Duration::from_secs(kills).saturating_sub(A_LITTLE);
    // SAFETY: all zeroes are a valid sigevent and a valid time of a timer.
    let (mut event, mut time): (libc::sigevent, libc::itimerspec) = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = libc::SIGXCPU;
    time.it_value.tv_sec = before.as_secs() as _;
    time.it_value.tv_nsec = before.subsec_nanos() as _;
    let mut timer = MaybeUninit::uninit();
    // SAFETY: all pointers are valid during the calls, and the timer is used only where it was
    // made.
    unsafe {
        if libc::timer_create(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut event, timer.as_mut_ptr()) == 0 {
            libc::timer_settime(timer.assume_init(), 0, &raw const time, std::ptr::null_mut());
        }
    }
}

/// The kernel looks at limits and timers with each of its ticks.
const A_LITTLE: Duration = Duration::from_millis(100);

/// Whether the stack may grow as far as it may have to; otherwise a sentence. Without this a stack
/// that is too small, or an address space that ends before it, would be a SIGSEGV at some later
/// call.
pub fn check_stack() -> Result<(), String> {
    let needed = STACK >> 10;
    if let Some(limit) = limit(libc::RLIMIT_STACK).0.filter(|limit| *limit < STACK as u64) {
        return Err(format!(
            "the stack may not grow beyond {} KiB (ulimit -s), and up to {needed} KiB are needed: `ulimit -s 8192` in this \
             shell, or as root or in /etc/security/limits.conf where it refuses",
            limit >> 10
        ));
    }
    let Some(limit) = limit(libc::RLIMIT_AS).0 else { return Ok(()) };
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody may touch, and which
    // goes at once.
    let room = unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), STACK + SPARE, ProtFlags::empty(), flags)
            .and_then(|room| rustix::mm::munmap(room, STACK + SPARE))
    };
    if room.is_err() {
        return Err(format!(
            "the address space may not grow beyond {} KiB (ulimit -v), and the stack alone may need {needed} KiB more: \
             `ulimit -v unlimited`, or a higher limit",
            limit >> 10
        ));
    }
    grow_stack();
    Ok(())
}

/// What the kernel leaves free below a stack, and what finding out takes.
const SPARE: usize = 256 << 10;

/// The stack takes its part of the address space while there is some: where it cannot grow later
/// there is no error to be had, but a signal.
#[inline(never)]
fn grow_stack() {
    let room = [MaybeUninit::<u8>::uninit(); STACK - (64 << 10)];
    std::hint::black_box(&room);
}
