//! How I/O is asked for: io_uring, or pread and pwrite where there is none.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use model::{CpuSet, Pages};
use sys::mapping::Mapping;
use sys::uring::{self, Done, Ring, Setup};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Uring,
    /// io_uring that polls the device.
    Polled,
    Psync,
}

/// The engine of a case by its parameter; where io_uring is the choice and is refused, pread and
/// pwrite, and why.
pub fn choose(wanted: Option<&str>) -> (Kind, Option<String>) {
    match wanted {
        Some("psync") => (Kind::Psync, None),
        wanted => match uring::why_unavailable() {
            Some(why) => (
                Kind::Psync,
                Some(format!("io_uring is refused here ({why}): pread and pwrite were used, at depth 1")),
            ),
            None if wanted == Some("polled") => (Kind::Polled, None),
            None => (Kind::Uring, None),
        },
    }
}

/// Buffers are pinned in memory, and for that an unprivileged user has an allowance.
pub const UNREGISTERED: &str =
    "io_uring ran without registered buffers, which costs CPU time: raise ulimit -l";

pub enum Engine {
    Uring(Box<Ring>),
    Psync(Box<Blocking>),
}

/// One I/O at a time, done when it is waited for.
pub struct Blocking {
    file: OwnedFd,
    buffer: Mapping,
    pushed: Option<(bool, u64, u32)>,
    done: Option<Done>,
}

impl Blocking {
    fn work(&mut self) {
        let Some((write, offset, bytes)) = self.pushed.take() else { return };
        let buffer = &mut self.buffer.bytes_mut()[..bytes as usize];
        let moved = loop {
            let moved = match write {
                true => rustix::io::pwrite(&self.file, buffer, offset),
                false => rustix::io::pread(&self.file, &mut *buffer, offset),
            };
            if moved != Err(rustix::io::Errno::INTR) {
                break moved;
            }
        };
        self.done = Some((0, moved.map(|bytes| bytes as u32).map_err(|error| error.raw_os_error())));
    }
}

impl Engine {
    /// For a file, with this many buffers of `block` bytes; `prompt` as [`Setup`] has it.
    pub fn new(kind: Kind, file: OwnedFd, block: u64, depth: u32, prompt: bool) -> io::Result<Engine> {
        let slot_bytes = block as usize;
        Ok(match kind {
            Kind::Psync => {
                let mut buffer = Mapping::private(slot_bytes, Pages::Huge, &CpuSet::default())?;
                buffer.bytes_mut().fill(0);
                Engine::Psync(Box::new(Blocking { file, buffer, pushed: None, done: None }))
            }
            _ => {
                let setup = Setup { depth, slot_bytes, polled: kind == Kind::Polled, prompt };
                Engine::Uring(Box::new(Ring::new(file, setup)?))
            }
        })
    }

    /// I/Os that it can have in flight of `depth` that are wished for.
    pub fn depth(&self, depth: u32) -> u32 {
        match self {
            Engine::Uring(_) => depth,
            Engine::Psync(_) => 1,
        }
    }

    /// What to report about buffers that could not be registered with the kernel, which costs CPU
    /// time for each I/O.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            Engine::Uring(ring) if !ring.has_fixed_buffers() => Some(UNREGISTERED),
            _ => None,
        }
    }

    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        match self {
            Engine::Uring(ring) => ring.buffer(slot),
            Engine::Psync(blocking) => blocking.buffer.bytes_mut(),
        }
    }

    pub fn push(&mut self, slot: u32, write: bool, offset: u64, bytes: u32) {
        match self {
            Engine::Uring(ring) => ring.push(slot, write, offset, bytes),
            Engine::Psync(blocking) => blocking.pushed = Some((write, offset, bytes)),
        }
    }

    /// Submits, and waits for this number of completions or this time. Blocking calls run only
    /// while something is waited for.
    pub fn enter(&mut self, at_least: u32, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Engine::Uring(ring) => ring.enter(at_least, patience),
            Engine::Psync(blocking) => {
                if at_least > 0 {
                    blocking.work();
                }
                Ok(())
            }
        }
    }

    pub fn reap(&mut self, done: &mut Vec<Done>) {
        match self {
            Engine::Uring(ring) => ring.reap(done),
            Engine::Psync(blocking) => done.extend(blocking.done.take()),
        }
    }
}

/// The error of an I/O that did not move all its bytes; `None` if it did.
pub fn complaint(write: bool, offset: u64, bytes: u32, result: Result<u32, i32>) -> Option<String> {
    let what = if write { "write" } else { "read" };
    match result {
        Ok(moved) if moved == bytes => None,
        Ok(moved) => Some(format!("{what} of {bytes} bytes at offset {offset} came back with {moved} bytes")),
        Err(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            Some(format!("{what} of {bytes} bytes at offset {offset} failed: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_move_the_same_bytes() {
        for kind in [Kind::Uring, Kind::Psync] {
            if kind == Kind::Uring && uring::why_unavailable().is_some() {
                println!("skipped io_uring: it is refused here");
                continue;
            }
            let file = tempfile::tempfile().expect("a file");
            let mut engine = Engine::new(kind, file.try_clone().expect("a copy").into(), 512, 2, false)
                .expect("an engine");
            engine.buffer(0).fill(9);
            let mut done = Vec::new();
            for (write, offset) in [(true, 1024), (false, 1024), (false, 1536)] {
                engine.push(0, write, offset, 512);
                engine.enter(1, None).expect("entered");
                engine.reap(&mut done);
            }
            assert_eq!(done, [(0, Ok(512)), (0, Ok(512)), (0, Ok(0))], "{kind:?}");
            assert_eq!(engine.buffer(0)[511], 9);
            assert_eq!(engine.depth(2), if kind == Kind::Psync { 1 } else { 2 });
        }
        assert_eq!(choose(Some("psync")), (Kind::Psync, None));
    }

    #[test]
    fn failures_name_operation_place_and_reason() {
        assert_eq!(complaint(false, 0, 4096, Ok(4096)), None);
        assert_eq!(
            complaint(false, 1 << 20, 4096, Err(5)).expect("failed"),
            "read of 4096 bytes at offset 1048576 failed: Input/output error (os error 5)"
        );
        assert_eq!(
            complaint(true, 0, 4096, Ok(512)).expect("short"),
            "write of 4096 bytes at offset 0 came back with 512 bytes"
        );
    }
}
