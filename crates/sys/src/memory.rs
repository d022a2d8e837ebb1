//! The system's allocator, with an error text and an exit code if memory runs out (the standard
//! library would abort).
//!
//! Nothing is cleaned up on exit, because that could need memory. The run's file contains all
//! finished visits, the watchdog process restores kernel settings, and visits die with their
//! parent. If a visit runs out of memory, its parent records this text as the reason.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write};

use super::start::limit;

/// The program's global allocator.
pub struct Memory;

// SAFETY: every call goes to the system allocator under the same contract; a null pointer (no
// memory) is never returned.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        or_exit(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        or_exit(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is the same, and all memory comes from the system
        // allocator.
        or_exit(unsafe { System.realloc(memory, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for `realloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn or_exit(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        exit_without_memory(bytes);
    }
    memory
}

#[cold]
#[inline(never)]
fn exit_without_memory(bytes: usize) -> ! {
    let mut message = FixedText { text: [0; 400], length: 0 };
    // A text that does not fit is truncated.
    let _ = write_message(&mut message, bytes);
    let _ = rustix::io::write(rustix::stdio::stderr(), &message.text[..message.length]);
    // The exit code of all errors.
    signal_hook::low_level::exit(3)
}

fn write_message(text: &mut FixedText, bytes: usize) -> fmt::Result {
    write!(text, "assay: out of memory: cannot allocate {bytes} bytes.")?;
    for (what, option, resource) in
        [("address space", "v", libc::RLIMIT_AS), ("data segment", "d", libc::RLIMIT_DATA)]
    {
        if let (Some(limit), _) = limit(resource) {
            write!(text, " The {what} is limited to {} KiB (ulimit -{option}).", limit >> 10)?;
        }
    }
    text.write_str(" Provide more memory or measure less; the run file contains all finished measurements\n")
}

/// A text in a buffer of fixed length.
struct FixedText {
    text: [u8; 400],
    length: usize,
}

impl Write for FixedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let free = self.text.get_mut(self.length..self.length + more.len()).ok_or(fmt::Error)?;
        free.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_fits_its_buffer() {
        let mut message = FixedText { text: [0; 400], length: 0 };
        write_message(&mut message, usize::MAX).expect("it fits");
        let text = String::from_utf8_lossy(&message.text[..message.length]);
        assert!(
            text.contains("cannot allocate 18446744073709551615 bytes") && text.ends_with('\n'),
            "{text}"
        );
        assert!(
            message.length + 2 * 80 < message.text.len(),
            "{} bytes leave none for limits",
            message.length
        );
    }
}
