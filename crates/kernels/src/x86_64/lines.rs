//! Flushing single cache lines from all caches on x86-64.

use std::arch::asm;

/// The way in which this CPU writes a line back to memory and removes it from all caches.
#[derive(Clone, Copy, Debug)]
pub struct Flusher {
    /// Use `clflushopt`, which flushes lines in parallel; plain `clflush` takes ten times as long.
    unordered: bool,
}

impl Flusher {
    pub fn of_this_cpu() -> Flusher {
        // Leaf 7, EBX bit 23; the standard library does not detect it. A CPU without leaf 7 returns
        // another leaf.
        let highest = raw_cpuid::native_cpuid::cpuid_count(0, 0).eax;
        let bits = if highest >= 7 { raw_cpuid::native_cpuid::cpuid_count(7, 0).ebx } else { 0 };
        Flusher { unordered: bits & (1 << 23) != 0 }
    }

    /// Starts the flush of one line; [`Flusher::finish`] waits for all.
    ///
    /// # Safety
    /// `line` must be readable.
    #[inline]
    pub unsafe fn flush(self, line: *const u64) {
        // SAFETY: by this function's contract; a flush changes no content. No `nomem`: stores
        // before it must be done.
        unsafe {
            match self.unordered {
                true => asm!("clflushopt [{line}]", line = in(reg) line, options(nostack, preserves_flags)),
                false => asm!("clflush [{line}]", line = in(reg) line, options(nostack, preserves_flags)),
            }
        }
    }

    /// Waits until all flushes have reached memory; no later load starts before.
    #[inline]
    pub fn finish(self) {
        // SAFETY: fences only.
        unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) }
    }
}
