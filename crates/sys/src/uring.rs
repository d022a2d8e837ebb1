//! Reads and writes of one file by io_uring, several in flight, each with its own slot and buffer.
//!
//! File and buffers are registered, so the kernel looks up neither for each I/O. The next call that
//! enters the kernel submits what was pushed. While an I/O is in flight its buffer is inaccessible.
//! Dropping a ring waits for I/Os in flight; if they do not complete, it leaks the buffers.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

use super::mapping::Mapping;
use model::{CpuSet, Pages};

/// How a ring is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Number of slots, the maximum of I/Os in flight; 1 to 4096.
    pub depth: u32,
    /// Size of a slot's buffer, bytes.
    pub slot_bytes: usize,
    /// The kernel polls the device (IOPOLL) instead of waiting for interrupts; needs O_DIRECT and a
    /// device with polled queues.
    pub polled: bool,
    /// [`Ring::reap`] sees completions without entering the kernel. Costs more for each I/O; for
    /// callers that spin between two I/Os.
    pub prompt: bool,
}

/// A slot and the result of its I/O: bytes, or the kernel's error number.
pub type Done = (u32, Result<u32, i32>);

/// A ring, its file and its buffers.
pub struct Ring {
    ring: IoUring,
    /// Registered with the ring, so it stays open as long as the ring.
    _file: OwnedFd,
    memory: ManuallyDrop<Mapping>,
    setup: Setup,
    busy: Vec<bool>,
    in_flight: u32,
    /// The buffers are registered. (An unprivileged user may be unable to lock enough memory.)
    fixed: bool,
}

/// How long dropping a ring waits for I/Os in flight.
const DROP_LIMIT: Duration = Duration::from_secs(5);

/// Why this kernel, container or user cannot use io_uring; `None` if it can.
pub fn why_unavailable() -> Option<String> {
    IoUring::new(2).err().map(|error| explain(&error))
}

/// An error from setting up a ring, with its meaning.
fn explain(error: &io::Error) -> String {
    let meaning = match error.raw_os_error() {
        Some(libc::ENOSYS) => ": the kernel lacks io_uring, or a sandbox (seccomp) hides it",
        Some(libc::EPERM | libc::EACCES) => {
            ": kernel.io_uring_disabled or a sandbox (seccomp) forbids io_uring"
        }
        Some(libc::ENOMEM) => ": the limit of locked memory is too small (ulimit -l)",
        _ => "",
    };
    format!("{error}{meaning}")
}

/// Makes the cheapest kind of ring that this kernel supports: leaves out flags that it does not
/// know.
fn build(setup: Setup) -> io::Result<IoUring> {
    let entries = setup.depth.next_power_of_two();
    let build_with = |cooperative: bool, deferred: bool| {
        let mut builder = IoUring::builder();
        builder.dontfork();
        if setup.polled {
            builder.setup_iopoll();
        }
        if cooperative {
            builder.setup_coop_taskrun();
        }
        if deferred {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        builder.build(entries)
    };
    if setup.prompt {
        return build_with(false, false);
    }
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    match build_with(false, true) {
        Err(error) if unknown(&error) => match build_with(true, false) {
            Err(error) if unknown(&error) => build_with(false, false),
            other => other,
        },
        other => other,
    }
}

impl Ring {
    /// Sets up a ring for a file; only the calling process may use it.
    pub fn new(file: OwnedFd, setup: Setup) -> io::Result<Ring> {
        if !(1..=4096).contains(&setup.depth) || setup.slot_bytes == 0 || setup.slot_bytes > 1 << 30 {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let ring = build(setup).map_err(|error| io::Error::new(error.kind(), explain(&error)))?;
        let bytes = setup.slot_bytes * setup.depth as usize;
        // On huge pages a large block is contiguous in physical memory.
        let mut memory = Mapping::private(bytes, Pages::Huge, &CpuSet::default())?;
        // Touched, so that the kernel pins these pages and not its zero page.
        memory.bytes_mut().fill(0);
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let slot = |index: usize| libc::iovec {
            iov_base: memory.as_ptr().wrapping_add(index * setup.slot_bytes).cast_mut().cast(),
            iov_len: setup.slot_bytes,
        };
        let slots: Vec<libc::iovec> = (0..setup.depth as usize).map(slot).collect();
        // SAFETY: every slot lies inside the mapping, which outlives the ring: see `drop`.
        let fixed = unsafe { ring.submitter().register_buffers(&slots) }.is_ok();
        let busy = vec![false; setup.depth as usize];
        Ok(Ring { ring, _file: file, memory: ManuallyDrop::new(memory), setup, busy, in_flight: 0, fixed })
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether the buffers are registered, which costs the kernel less for each I/O.
    pub fn has_fixed_buffers(&self) -> bool {
        self.fixed
    }

    /// A slot's buffer.
    ///
    /// # Panics
    /// If an I/O of this slot is in flight.
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let slot = slot as usize;
        assert!(!self.busy[slot], "the kernel has the buffer of slot {slot}");
        &mut self.memory.bytes_mut()[slot * self.setup.slot_bytes..][..self.setup.slot_bytes]
    }

    /// Prepares a read or write of `bytes` bytes of the file from `offset` on; the next
    /// [`Self::enter`] submits it.
    ///
    /// # Panics
    /// If an I/O of this slot is in flight, or for more bytes than its buffer has.
    pub fn push(&mut self, slot: u32, write: bool, offset: u64, bytes: u32) {
        assert!(!self.busy[slot as usize] && bytes as usize <= self.setup.slot_bytes);
        // SAFETY: the slot's buffer lies inside the mapping: indexing `busy` checked the slot.
        let buffer = unsafe { self.memory.as_ptr().add(slot as usize * self.setup.slot_bytes) }.cast_mut();
        let file = Fixed(0);
        let entry = match (write, self.fixed) {
            (false, true) => opcode::ReadFixed::new(file, buffer, bytes, slot as u16).offset(offset).build(),
            (false, false) => opcode::Read::new(file, buffer, bytes).offset(offset).build(),
            (true, true) => opcode::WriteFixed::new(file, buffer, bytes, slot as u16).offset(offset).build(),
            (true, false) => opcode::Write::new(file, buffer, bytes).offset(offset).build(),
        };
        // SAFETY: the buffer stays mapped until the ring is dropped or longer (`drop`), and until
        // this I/O is reaped no reference to it exists (`busy`).
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(slot))) };
        // The queue has an entry for every slot, and each slot is in it at most once.
        assert!(pushed.is_ok(), "the submission queue is full");
        self.busy[slot as usize] = true;
        self.in_flight += 1;
    }

    /// Submits what was pushed and waits until at least `min_complete` I/Os have completed, or
    /// until `timeout` is over.
    pub fn enter(&mut self, min_complete: u32, timeout: Option<Duration>) -> io::Result<()> {
        let min_complete = min_complete.min(self.in_flight) as usize;
        let limit = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let entered = match limit {
                None => self.ring.submit_and_wait(min_complete),
                Some(limit) => {
                    let left = limit.saturating_duration_since(Instant::now());
                    let left = Timespec::new().sec(left.as_secs()).nsec(left.subsec_nanos());
                    self.ring.submitter().submit_with_args(min_complete, &SubmitArgs::new().timespec(&left))
                }
            };
            match entered {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ETIME) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends completed I/Os to `done` and frees their slots.
    pub fn reap(&mut self, done: &mut Vec<Done>) {
        for entry in self.ring.completion() {
            let slot = entry.user_data() as u32;
            let result = entry.result();
            // A negative result is an error number.
            done.push((slot, u32::try_from(result).map_err(|_| -result)));
            if let Some(busy) = self.busy.get_mut(slot as usize).filter(|busy| **busy) {
                *busy = false;
                self.in_flight -= 1;
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let begin = Instant::now();
        let mut done = Vec::new();
        while self.in_flight > 0 && begin.elapsed() < DROP_LIMIT {
            let _ = self.enter(1, Some(Duration::from_millis(100)));
            self.reap(&mut done);
        }
        if self.in_flight == 0 {
            // SAFETY: dropped once, here; no I/O is in flight, so the kernel writes to it no more.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    const SLOT: usize = 4096;

    fn setup(depth: u32) -> Setup {
        Setup { depth, slot_bytes: SLOT, polled: false, prompt: false }
    }

    /// A file with each block filled with its number; `None` if io_uring is unavailable.
    fn file(blocks: u8) -> Option<std::fs::File> {
        if let Some(why) = why_unavailable() {
            println!("skipped: io_uring is unavailable ({why})");
            return None;
        }
        let mut file = tempfile::tempfile().expect("a file");
        for block in 0..blocks {
            file.write_all(&[block; SLOT]).expect("written");
        }
        Some(file)
    }

    fn all(ring: &mut Ring) -> Vec<Done> {
        let mut done = Vec::new();
        while ring.in_flight() > 0 {
            ring.enter(1, None).expect("entered");
            ring.reap(&mut done);
        }
        done
    }

    #[test]
    fn blocks_are_read_and_written_at_their_offsets() {
        let Some(mut file) = file(16) else { return };
        for prompt in [false, true] {
            let setup = Setup { prompt, ..setup(8) };
            let mut ring = Ring::new(file.try_clone().expect("a copy").into(), setup).expect("a ring");
            for slot in 0..8 {
                ring.push(slot, false, u64::from(slot + 3) * SLOT as u64, SLOT as u32);
            }
            assert_eq!(ring.in_flight(), 8);
            let mut done = all(&mut ring);
            done.sort();
            assert_eq!(done, (0..8).map(|slot| (slot, Ok(SLOT as u32))).collect::<Vec<_>>());
            for slot in 0..8 {
                assert!(ring.buffer(slot).iter().all(|byte| *byte == slot as u8 + 3));
            }
            ring.buffer(5).fill(200);
            ring.push(5, true, 0, SLOT as u32);
            assert_eq!(all(&mut ring), [(5, Ok(SLOT as u32))]);
            let mut first = [0; SLOT];
            file.rewind().and_then(|()| file.read_exact(&mut first)).expect("read");
            assert_eq!(first, [200; SLOT]);
        }
    }

    #[test]
    fn the_end_of_the_file_and_errors_are_reported() {
        let Some(file) = file(1) else { return };
        let mut ring = Ring::new(file.into(), setup(2)).expect("a ring");
        ring.push(0, false, 1 << 30, SLOT as u32);
        ring.push(1, false, u64::MAX - 1, SLOT as u32);
        let mut done = all(&mut ring);
        done.sort();
        assert_eq!(done[0], (0, Ok(0)));
        assert!(done[1].1.is_err(), "{done:?}");
        let nothing = Setup { depth: 0, ..setup(1) };
        assert!(Ring::new(tempfile::tempfile().expect("a file").into(), nothing).is_err());
    }

    #[test]
    fn waiting_ends_with_the_timeout_and_a_ring_can_be_dropped() {
        if let Some(why) = why_unavailable() {
            return println!("skipped: io_uring is unavailable ({why})");
        }
        // A read from a pipe without data does not complete.
        let (from, to) = std::io::pipe().expect("a pipe");
        let mut ring = Ring::new(from.into(), setup(1)).expect("a ring");
        ring.push(0, false, 0, 16);
        ring.enter(1, Some(Duration::from_millis(20))).expect("entered");
        let mut done = Vec::new();
        ring.reap(&mut done);
        assert!(done.is_empty() && ring.in_flight() == 1);
        drop(to);
        assert_eq!(all(&mut ring), [(0, Ok(0))]);
        drop(ring);
    }

    #[test]
    #[should_panic(expected = "the kernel has the buffer")]
    fn a_buffer_in_flight_is_inaccessible() {
        let Some(file) = file(1) else { panic!("the kernel has the buffer") };
        let mut ring = Ring::new(file.into(), setup(1)).expect("a ring");
        ring.push(0, false, 0, SLOT as u32);
        ring.buffer(0);
    }
}
