//! Tokens in shared memory, and how the partner notices one: a futex, semaphores, record locks, or
//! polling.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::MemfdFlags;
use rustix::thread::futex;

use super::End;
use sys::record_lock;
use sys::semaphore::{SemaphoreSet, Semaphores, SharedKey};
use sys::shared::{SharedWords, WORDS_PER_LINE};

/// A line of shared memory for each direction: the token, and how many there have been.
struct Lines {
    words: Rc<SharedWords>,
    /// The direction that this side sends in, 0 or 1.
    out: usize,
    sent: u32,
    received: u32,
}

/// Two lines a direction: the prefetcher of some cores brings lines in pairs.
const APART: usize = 2 * WORDS_PER_LINE;

impl Lines {
    fn pair() -> anyhow::Result<[Lines; 2]> {
        let words = Rc::new(SharedWords::new(2 * APART).context("cannot share memory")?);
        let side = |out| Lines { words: words.clone(), out, sent: 0, received: 0 };
        Ok([side(0), side(1)])
    }

    /// Stores a token, which the partner reads only after its wake-up.
    fn lay(&self, token: u64) {
        self.words.word(self.out * APART).store(token, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        self.words.word((1 - self.out) * APART).load(Ordering::Relaxed)
    }

    /// The number of tokens that went in a direction.
    fn number(&self, direction: usize) -> &AtomicU32 {
        self.words.half_word(direction * APART + 1)
    }

    fn publish(&mut self, token: u64) {
        self.lay(token);
        self.sent = self.sent.wrapping_add(1);
        self.number(self.out).store(self.sent, Ordering::Release);
    }

    /// Whether the next token is there.
    fn has_come(&self) -> bool {
        self.number(1 - self.out).load(Ordering::Acquire) != self.received
    }

    fn accept(&mut self) -> u64 {
        self.received = self.received.wrapping_add(1);
        self.take()
    }
}

/// Wakes by `FUTEX_WAKE`, sleeps by `FUTEX_WAIT` after one check.
pub struct Futexes(Lines);

pub fn futexes() -> anyhow::Result<[Futexes; 2]> {
    Ok(Lines::pair()?.map(Futexes))
}

impl End for Futexes {
    fn send(&mut self, token: u64) -> io::Result<()> {
        self.0.publish(token);
        // Never interrupted, so that a token is never published twice.
        futex::wake(self.0.number(self.0.out), futex::Flags::empty(), 1)?;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<u64> {
        let lines = &mut self.0;
        while !lines.has_come() {
            match futex::wait(lines.number(1 - lines.out), futex::Flags::empty(), lines.received, None) {
                // AGAIN: it came between the check and the call.
                Ok(()) | Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(lines.accept())
    }
}

/// Never sleeps: polls until the token is there.
pub struct Spinners(Lines);

pub fn spinners() -> anyhow::Result<[Spinners; 2]> {
    Ok(Lines::pair()?.map(Spinners))
}

/// A spinner checks its partner this often: it gets no signal that would interrupt it.
const LOOK_UP: Duration = Duration::from_millis(250);

impl End for Spinners {
    fn send(&mut self, token: u64) -> io::Result<()> {
        self.0.publish(token);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<u64> {
        let lines = &mut self.0;
        let mut since = None;
        loop {
            // No pause: it takes up to 140 cycles, as long as what is measured.
            for _ in 0..1 << 16 {
                if lines.has_come() {
                    return Ok(lines.accept());
                }
            }
            if since.get_or_insert_with(Instant::now).elapsed() > LOOK_UP {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
    }
}

/// A System V semaphore for each direction.
pub struct SystemV {
    lines: Lines,
    set: Rc<SemaphoreSet>,
}

/// Semaphores of a set.
pub const IN_A_SET: u32 = 2;

/// `key`: where the set may be made if it cannot have a namespace of its own.
pub fn system_v(key: &SharedKey) -> anyhow::Result<[SystemV; 2]> {
    let set = Rc::new(SemaphoreSet::unshare_and_create(IN_A_SET as i32, key)?);
    Ok(Lines::pair()?.map(|lines| SystemV { lines, set: set.clone() }))
}

impl End for SystemV {
    fn send(&mut self, token: u64) -> io::Result<()> {
        self.lines.lay(token);
        self.set.post(self.lines.out as u16)
    }

    fn receive(&mut self) -> io::Result<u64> {
        self.set.wait(1 - self.lines.out as u16)?;
        Ok(self.lines.take())
    }
}

/// A POSIX semaphore in shared memory for each direction.
pub struct Posix {
    lines: Lines,
    semaphores: Rc<Semaphores>,
}

pub fn posix() -> anyhow::Result<[Posix; 2]> {
    let semaphores = Rc::new(Semaphores::new(2).context("cannot make POSIX semaphores")?);
    Ok(Lines::pair()?.map(|lines| Posix { lines, semaphores: semaphores.clone() }))
}

impl End for Posix {
    fn send(&mut self, token: u64) -> io::Result<()> {
        self.lines.lay(token);
        self.semaphores.post(self.lines.out)
    }

    fn receive(&mut self) -> io::Result<u64> {
        self.semaphores.wait(1 - self.lines.out)?;
        Ok(self.lines.take())
    }
}

/// Record locks on three bytes of a file. Who has the turn holds two of them, the other waits for
/// one of these and holds the third; the turn passes by giving that one back. With two bytes a
/// process could take its own lock again before the other has woken up.
pub struct Records {
    lines: Lines,
    file: Rc<OwnedFd>,
    /// Turns that have passed, either way.
    turns: i64,
}

const LOCKS: i64 = 3;

impl Records {
    /// The byte that passes the next turn: 0, 2, 1, 0, …
    fn byte(&self) -> i64 {
        (LOCKS - self.turns % LOCKS) % LOCKS
    }
}

pub fn records() -> anyhow::Result<[Records; 2]> {
    let file = rustix::fs::memfd_create("assay-locks", MemfdFlags::CLOEXEC).context("cannot make a file")?;
    // Ping has the first turn. Locks belong to the process: the partner takes its own when it
    // enters.
    for byte in [0, 1] {
        record_lock::lock(file.as_fd(), byte).context("cannot lock a byte of a file")?;
    }
    let file = Rc::new(file);
    Ok(Lines::pair()?.map(|lines| Records { lines, file: file.clone(), turns: 0 }))
}

impl End for Records {
    fn enter(&mut self) -> io::Result<()> {
        record_lock::lock(self.file.as_fd(), 2)
    }

    fn send(&mut self, token: u64) -> io::Result<()> {
        self.lines.lay(token);
        record_lock::unlock(self.file.as_fd(), self.byte())?;
        self.turns += 1;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<u64> {
        record_lock::lock(self.file.as_fd(), self.byte())?;
        self.turns += 1;
        Ok(self.lines.take())
    }
}
