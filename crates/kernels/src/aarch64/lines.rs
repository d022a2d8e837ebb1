//! Flushing single cache lines from all caches on 64-bit ARM.

use std::arch::asm;

/// Writes a line back and removes it from all caches up to the point of coherency, which Linux
/// permits to every process. A cache of the memory controller beyond that point may keep it.
#[derive(Clone, Copy, Debug)]
pub struct Flusher;

impl Flusher {
    pub fn of_this_cpu() -> Flusher {
        Flusher
    }

    /// Starts the flush of one line; [`Flusher::finish`] waits for all.
    ///
    /// # Safety
    /// `line` must be readable.
    #[inline]
    pub unsafe fn flush(self, line: *const u64) {
        // SAFETY: by this function's contract; a flush changes no content. No `nomem`: stores
        // before it must be done.
        unsafe { asm!("dc civac, {line}", line = in(reg) line, options(nostack, preserves_flags)) }
    }

    /// Waits until all flushes are done; no later load starts before.
    #[inline]
    pub fn finish(self) {
        // SAFETY: barriers only.
        unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) }
    }
}
