//! Thin safe wrappers around the operating system: with `kernels` the only crate that may use
//! `unsafe`.
//!
//! Invariant: nothing here measures or judges.

pub mod affinity;
pub mod atomic_file;
pub mod block;
pub mod c_calls;
pub mod c_text;
pub mod clock;
pub mod core_counters;
pub mod counters;
pub mod cpuid;
pub mod crew;
pub mod datagrams;
pub mod discard;
mod elf;
pub mod ethtool;
pub mod events;
pub mod exec_chain;
pub mod file_map;

pub mod lock_share;
pub mod loop_device;
pub mod mapping;
pub mod medium;
pub mod membarrier;
pub mod memory;
pub mod mutex;
pub mod netlink;
pub mod observer;
pub mod process;
pub mod program;
pub mod random;
pub mod ready;
pub mod record_lock;
pub mod sched;
pub mod scratch;
pub mod semaphore;
pub mod shared;
pub mod signals;
pub mod spawn;
pub mod start;
pub mod steps;
pub mod tcp;
pub mod thread;
pub mod ticks;
pub mod token;
pub mod uring;

/// Converts the result of a C function or system call that returns 0 if it succeeds.
#[inline]
fn zero_or_error(result: impl Into<i64>) -> std::io::Result<()> {
    if result.into() == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
