//! The shared memory of a crew: numbers on cache lines, slots of records, a notice of an error.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use anyhow::Context;
use rustix::thread::futex;

use crate::shared::{SharedWords, WORDS_PER_LINE};

fn shared(words: usize) -> anyhow::Result<SharedWords> {
    SharedWords::new(words).context("cannot map memory to share")
}

/// Numbers on one cache line each, initially zero.
pub struct Lines(SharedWords);

/// The word of a line that counts the processes which sleep until its number changes.
const SLEEPERS: usize = 1;
/// A sleeper wakes after this time to check whether the others still live.
const MAX_SLEEP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Lines {
    pub fn new(lines: usize) -> anyhow::Result<Lines> {
        Ok(Lines(shared(lines * WORDS_PER_LINE)?))
    }

    /// Another word of a line, for further numbers that the same process writes.
    #[inline]
    pub fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        self.0.word(line * WORDS_PER_LINE + word)
    }

    /// The line's number as 32 bits, the width of a futex.
    #[inline]
    pub fn half(&self, line: usize) -> &AtomicU32 {
        self.0.half_word(line * WORDS_PER_LINE)
    }

    /// Stores a 32-bit number and wakes the processes that wait for a change.
    pub fn store_and_wake(&self, line: usize, value: u32) {
        self.half(line).store(value, Ordering::Release);
        // Either this load sees the sleeper, or the sleeper sees the new number before it sleeps.
        fence(Ordering::SeqCst);
        if self.word(line, SLEEPERS).load(Ordering::Relaxed) != 0 {
            // No error if all have woken already. The kernel takes the count as signed.
            let _ = futex::wake(self.half(line), futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Waits until a 32-bit number differs from `last`: polls `spins` times, then sleeps up to 100
    /// ms. Returns whether it changed.
    pub fn await_change(&self, line: usize, last: u32, spins: u32) -> bool {
        let number = self.half(line);
        let has_changed = || number.load(Ordering::Acquire) != last;
        for _ in 0..spins {
            if has_changed() {
                return true;
            }
            std::hint::spin_loop();
        }
        if has_changed() {
            return true;
        }
        self.word(line, SLEEPERS).fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Woken, timed out or raced: the check below decides.
        let _ = futex::wait(number, futex::Flags::empty(), last, Some(&MAX_SLEEP));
        self.word(line, SLEEPERS).fetch_sub(1, Ordering::Relaxed);
        has_changed()
    }
}

impl Index<usize> for Lines {
    type Output = AtomicU64;

    #[inline]
    fn index(&self, line: usize) -> &AtomicU64 {
        self.word(line, 0)
    }
}

/// A value that fits into one word of shared memory.
pub trait Word: Copy {
    fn to_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Word for u64 {
    #[inline]
    fn to_word(self) -> u64 {
        self
    }

    #[inline]
    fn from_word(word: u64) -> u64 {
        word
    }
}

impl Word for f64 {
    #[inline]
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    #[inline]
    fn from_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// A struct of words, declared by [`crate::record!`].
pub trait Record {
    const WORDS: usize;

    fn words(&self) -> impl Iterator<Item = u64>;
    fn from_words(next: impl FnMut() -> u64) -> Self;
}

/// Declares a struct whose fields are all [`Word`]s, and implements [`Record`] for it.
#[macro_export]
macro_rules! record {
    (
        $(#[$about:meta])*
        $visible:vis struct $name:ident { $($(#[$of:meta])* $shown:vis $field:ident: $kind:ty),+ $(,)? }
    ) => {
        $(#[$about])*
        $visible struct $name { $($(#[$of])* $shown $field: $kind),+ }

        impl $crate::crew::Record for $name {
            const WORDS: usize = [$(stringify!($field)),+].len();

            #[inline]
            fn words(&self) -> impl Iterator<Item = u64> {
                [$($crate::crew::Word::to_word(self.$field)),+].into_iter()
            }

            fn from_words(mut next: impl FnMut() -> u64) -> $name {
                $name { $($field: $crate::crew::Word::from_word(next())),+ }
            }
        }
    };
}

/// Records in shared memory, one row for each process that writes.
pub struct Slots<T> {
    words: SharedWords,
    records_per_row: usize,
    words_per_row: usize,
    record: PhantomData<T>,
}

/// Long rows start on page boundaries, so that each process can place its row on its own node.
const WORDS_PER_PAGE: usize = 512;

impl<T: Record> Slots<T> {
    pub fn new(rows: usize, records_per_row: usize) -> anyhow::Result<Slots<T>> {
        let words_per_row = Self::row_words(records_per_row);
        let words = shared(rows * words_per_row)?;
        Ok(Slots { words, records_per_row, words_per_row, record: PhantomData })
    }

    fn row_words(records: usize) -> usize {
        let words = records * T::WORDS;
        words.next_multiple_of(if words < WORDS_PER_PAGE { WORDS_PER_LINE } else { WORDS_PER_PAGE })
    }

    /// Memory of this many rows, bytes.
    pub fn bytes(rows: usize, records_per_row: usize) -> u64 {
        (rows * Self::row_words(records_per_row) * 8) as u64
    }

    pub fn records_per_row(&self) -> usize {
        self.records_per_row
    }

    /// Writes every word of a row, so that its pages exist.
    pub fn touch(&self, row: usize) {
        (0..self.words_per_row).for_each(|word| self.word(row, word).store(0, Ordering::Relaxed));
    }

    /// A word of a row's first record, for numbers that several processes change.
    pub fn word(&self, row: usize, word: usize) -> &AtomicU64 {
        self.words.word(row * self.words_per_row + word)
    }

    #[inline]
    pub fn put(&self, row: usize, index: usize, record: &T) {
        let first = row * self.words_per_row + index * T::WORDS;
        for (offset, word) in record.words().enumerate() {
            self.words.word(first + offset).store(word, Ordering::Release);
        }
    }

    pub fn get(&self, row: usize, index: usize) -> T {
        let mut next = row * self.words_per_row + index * T::WORDS;
        T::from_words(|| {
            next += 1;
            self.words.word(next - 1).load(Ordering::Acquire)
        })
    }
}

/// A benchmark's check of its own results failed.
#[derive(Debug)]
pub struct WrongAnswer(pub String);

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongAnswer {}

/// The error of the first process of a crew that failed.
pub struct Notice(SharedWords);

// Words of a notice: its kind, the length of its text in bytes, its text.
const KIND: usize = 0;
const LENGTH: usize = 1;
const TEXT: usize = 2;
const TEXT_WORDS: usize = 128;
// Kinds; a process that dies while writing leaves WRITING.
const WRITING: u64 = 1;
const FAILED: u64 = 2;
const WRONG: u64 = 3;

impl Notice {
    pub fn new() -> anyhow::Result<Notice> {
        Ok(Notice(shared(TEXT + TEXT_WORDS)?))
    }

    /// Stores an error for the process that started the crew, unless one is stored already.
    pub fn leave(&self, error: &anyhow::Error) {
        let kind = self.0.word(KIND);
        if kind.compare_exchange(0, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let mut text = format!("{error:#}").into_bytes();
        text.truncate(TEXT_WORDS * 8);
        for (index, piece) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.0.word(TEXT + index).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.0.word(LENGTH).store(text.len() as u64, Ordering::Relaxed);
        let is_wrong = error.downcast_ref::<WrongAnswer>().is_some();
        kind.store(if is_wrong { WRONG } else { FAILED }, Ordering::Release);
    }

    /// Returns the stored error, if any, with its kind ([`WrongAnswer`] or another).
    pub fn check(&self) -> anyhow::Result<()> {
        let kind = self.0.word(KIND).load(Ordering::Acquire);
        if kind < FAILED {
            return Ok(());
        }
        let words = (TEXT..TEXT + TEXT_WORDS).map(|index| self.0.word(index).load(Ordering::Relaxed));
        let mut text: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        text.truncate(self.0.word(LENGTH).load(Ordering::Relaxed) as usize);
        let text = String::from_utf8_lossy(&text).into_owned();
        Err(if kind == WRONG { WrongAnswer(text).into() } else { anyhow::Error::msg(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    record! {
        /// Two kinds of words.
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Pair {
            count: u64,
            ns: f64,
        }
    }

    #[test]
    fn records_come_back_from_their_own_slots() {
        for each in [1, 3, 300] {
            let slots = Slots::<Pair>::new(3, each).expect("slots");
            let pair = |row: usize, index: usize| Pair { count: (row * 1000 + index) as u64, ns: -0.5 };
            let all = || (0..3).flat_map(|row| (0..each).map(move |index| (row, index)));
            all().for_each(|(row, index)| slots.put(row, index, &pair(row, index)));
            assert!(all().all(|(row, index)| slots.get(row, index) == pair(row, index)), "{each}");
            slots.touch(1);
            assert_eq!(slots.get(1, each - 1), Pair { count: 0, ns: 0.0 });
            assert_eq!((slots.get(0, each - 1), slots.get(2, 0)), (pair(0, each - 1), pair(2, 0)));
        }
    }

    #[test]
    fn the_first_error_is_kept_with_its_kind() {
        let notice = Notice::new().expect("a notice");
        notice.check().expect("nothing happened yet");
        notice.leave(&anyhow::anyhow!("inner").context("outer"));
        notice.leave(&WrongAnswer("later".to_string()).into());
        let error = notice.check().expect_err("an error was left");
        assert_eq!(error.to_string(), "outer: inner");
        assert!(error.downcast_ref::<WrongAnswer>().is_none());
        let notice = Notice::new().expect("a notice");
        notice.leave(&WrongAnswer("é".repeat(1000)).into());
        let error = notice.check().expect_err("an error was left");
        assert_eq!(error.downcast_ref::<WrongAnswer>().map(|wrong| wrong.0.len()), Some(1024));
    }
}
