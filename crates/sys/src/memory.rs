//! The system's allocator, with a sentence where it has nothing left to give.
//!
//! The standard library aborts there. Ending with an exit code instead needs no memory and costs
//! nothing as long as there is some. Nothing is undone on the way out, as any of that would take
//! memory: what a run has measured is in its file, knobs are put back by the watchdog, which is a
//! process of its own and there before the first one is turned, and visits die with their parent. A
//! visit that ends so costs its parent that visit, with this sentence as the reason.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write};

use super::start::limit;

/// The allocator of the program.
pub struct Memory;

// SAFETY: all is the system allocator's own work and under its own contract; a null pointer, which
// it gives where there is no memory, is never handed on.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is the same, and all memory of ours is the system
        // allocator's.
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for `realloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end(bytes);
    }
    memory
}

#[cold]
#[inline(never)]
fn end(bytes: usize) -> ! {
    let mut words = Words { text: [0; 400], length: 0 };
    // More than fits is cut off.
    let _ = tell(&mut words, bytes);
    let _ = rustix::io::write(rustix::stdio::stderr(), &words.text[..words.length]);
    // An error, as everywhere.
    signal_hook::low_level::exit(3)
}

fn tell(words: &mut Words, bytes: usize) -> fmt::Result {
    write!(words, "assay: out of memory: {bytes} bytes more are refused.")?;
    for (what, option, resource) in
        [("address space", "v", libc::RLIMIT_AS), ("data", "d", libc::RLIMIT_DATA)]
    {
        if let (Some(limit), _) = limit(resource) {
            write!(words, " The {what} may not grow beyond {} KiB here (ulimit -{option}).", limit >> 10)?;
        }
    }
    words.write_str(" Give it more memory or less to do; what a run has measured is in its file\n")
}

/// A text of a fixed length.
struct Words {
    text: [u8; 400],
    length: usize,
}

impl Write for Words {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.text.get_mut(self.length..self.length + more.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_fits_its_text() {
        let mut words = Words { text: [0; 400], length: 0 };
        tell(&mut words, usize::MAX).expect("it fits");
        let text = String::from_utf8_lossy(&words.text[..words.length]);
        assert!(
            text.contains("18446744073709551615 bytes more are refused") && text.ends_with('\n'),
            "{text}"
        );
        assert!(words.length + 2 * 80 < words.text.len(), "no room for limits in {} bytes", words.length);
    }
}
