//! Words of memory that forked processes share, accessed only as atomics.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::mapping::Mapping;

/// Shared 64-bit words, initially zero; children forked later see the same memory.
pub struct SharedWords {
    memory: Mapping,
}

// SAFETY: the mapping stays at its address until it is dropped, and all processes access it only
// through atomics.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

/// 64-bit words per cache line; writes to different lines do not slow each other.
pub const WORDS_PER_LINE: usize = 8;

impl SharedWords {
    pub fn new(words: usize) -> io::Result<SharedWords> {
        Ok(SharedWords { memory: Mapping::shared(words * 8)? })
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len() / 8
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len(), "shared word {index} of {}", self.len());
        // SAFETY: inside the mapping, 8-byte aligned, and all processes access it only through
        // atomics.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().cast::<u64>().cast_mut().add(index)) }
    }

    /// The first half of a word, for futexes, which have 32 bits. A word must be used either in
    /// this way or as 64 bits.
    #[inline]
    pub fn half_word(&self, index: usize) -> &AtomicU32 {
        assert!(index < self.len(), "shared word {index} of {}", self.len());
        // SAFETY: as in `word`; 4-byte aligned since every word is 8-byte aligned.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().cast::<u32>().cast_mut().add(index * 2)) }
    }
}
