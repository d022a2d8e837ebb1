//! Words that forked processes share: nothing but atomics, so that no process can surprise another.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::mapping::Mapping;

/// Shared, zeroed 64-bit words; children forked later see the same ones.
pub struct SharedWords {
    memory: Mapping,
}

// SAFETY: the mapping stays where it is until it is dropped, and all of it is reached through
// atomics only, whoever does.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

/// Words in a cache line: processes that write words of different lines do not disturb each other.
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
        // SAFETY: inside the mapping, 8-byte aligned, and all processes reach it through atomics
        // only.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().cast::<u64>().cast_mut().add(index)) }
    }

    /// The first half of a word, for futexes, which are 32 bits wide. A word is used either as this
    /// or as 64 bits.
    #[inline]
    pub fn half_word(&self, index: usize) -> &AtomicU32 {
        assert!(index < self.len(), "shared word {index} of {}", self.len());
        // SAFETY: as in `word`; 4-byte aligned since every word is 8-byte aligned.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().cast::<u32>().cast_mut().add(index * 2)) }
    }
}
