//! What the processes of a crew share: lines of numbers, slots of records, a notice.

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

/// Numbers that stand on a cache line each, zero at first.
pub struct Lines(SharedWords);

/// Beside a line's number: how many processes sleep until it changes.
const ASLEEP: usize = 1;
/// A sleeper looks around this often.
const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Lines {
    pub fn new(lines: usize) -> anyhow::Result<Lines> {
        Ok(Lines(shared(lines * WORDS_PER_LINE)?))
    }

    /// A further word of a line: for numbers that the same process writes.
    #[inline]
    pub fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        self.0.word(line * WORDS_PER_LINE + word)
    }

    /// The line's number where it has 32 bits, as futexes do.
    #[inline]
    pub fn half(&self, line: usize) -> &AtomicU32 {
        self.0.half_word(line * WORDS_PER_LINE)
    }

    /// Changes a number of 32 bits and wakes the processes that sleep until it changes.
    pub fn pass(&self, line: usize, value: u32) {
        self.half(line).store(value, Ordering::Release);
        // Either the sleeper is seen here, or it sees the new number before it sleeps.
        fence(Ordering::SeqCst);
        if self.word(line, ASLEEP).load(Ordering::Relaxed) != 0 {
            // It is fine if no process sleeps any more. The kernel takes the count as signed.
            let _ = futex::wake(self.half(line), futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Waits for a number of 32 bits to differ from `last`: spins so often at first, then sleeps;
    /// false when it did not change for a while.
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
        self.word(line, ASLEEP).fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Woken, timed out or raced: the look afterwards decides.
        let _ = futex::wait(number, futex::Flags::empty(), last, Some(&NAP));
        self.word(line, ASLEEP).fetch_sub(1, Ordering::Relaxed);
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

/// What fills a word of shared memory.
pub trait Word: Copy {
    fn to_word(self) -> u64;
    fn of_word(word: u64) -> Self;
}

impl Word for u64 {
    #[inline]
    fn to_word(self) -> u64 {
        self
    }

    #[inline]
    fn of_word(word: u64) -> u64 {
        word
    }
}

impl Word for f64 {
    #[inline]
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    #[inline]
    fn of_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// A struct of words, as [`crate::record!`] declares it.
pub trait Record {
    const WORDS: usize;

    fn words(&self) -> impl Iterator<Item = u64>;
    fn of_words(next: impl FnMut() -> u64) -> Self;
}

/// Declares a struct, all of whose fields are [`Word`]s, as a [`Record`].
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

            fn of_words(mut next: impl FnMut() -> u64) -> $name {
                $name { $($field: $crate::crew::Word::of_word(next())),+ }
            }
        }
    };
}

/// Records in shared memory, a row of them for each process that writes some.
pub struct Slots<T> {
    words: SharedWords,
    each: usize,
    row: usize,
    of: PhantomData<T>,
}

/// Long rows begin on a page each, so that each process can have its own on its own node.
const WORDS_PER_PAGE: usize = 512;

impl<T: Record> Slots<T> {
    pub fn new(rows: usize, each: usize) -> anyhow::Result<Slots<T>> {
        let row = Self::row_words(each);
        Ok(Slots { words: shared(rows * row)?, each, row, of: PhantomData })
    }

    fn row_words(each: usize) -> usize {
        let words = each * T::WORDS;
        words.next_multiple_of(if words < WORDS_PER_PAGE { WORDS_PER_LINE } else { WORDS_PER_PAGE })
    }

    /// Memory that so many rows take, bytes.
    pub fn bytes(rows: usize, each: usize) -> u64 {
        (rows * Self::row_words(each) * 8) as u64
    }

    /// Records of a row.
    pub fn each(&self) -> usize {
        self.each
    }

    /// Writes all of a row, so that its pages are there.
    pub fn touch(&self, row: usize) {
        (0..self.row).for_each(|word| self.word(row, word).store(0, Ordering::Relaxed));
    }

    /// A word of a row's first record, for numbers that several processes change.
    pub fn word(&self, row: usize, word: usize) -> &AtomicU64 {
        self.words.word(row * self.row + word)
    }

    #[inline]
    pub fn put(&self, row: usize, index: usize, record: &T) {
        let first = row * self.row + index * T::WORDS;
        for (at, word) in record.words().enumerate() {
            self.words.word(first + at).store(word, Ordering::Release);
        }
    }

    pub fn get(&self, row: usize, index: usize) -> T {
        let mut at = row * self.row + index * T::WORDS;
        T::of_words(|| {
            at += 1;
            self.words.word(at - 1).load(Ordering::Acquire)
        })
    }
}

/// A benchmark's own check failed: what it computed cannot be right.
#[derive(Debug)]
pub struct WrongAnswer(pub String);

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongAnswer {}

/// The error of the first process of a crew that could not go on.
pub struct Notice(SharedWords);

// Words of a notice: what it is, its length in bytes, its text.
const KIND: usize = 0;
const LENGTH: usize = 1;
const TEXT: usize = 2;
const TEXT_WORDS: usize = 128;
// Kinds; a process that dies while it writes leaves the first.
const WRITING: u64 = 1;
const FAILED: u64 = 2;
const WRONG: u64 = 3;

impl Notice {
    pub fn new() -> anyhow::Result<Notice> {
        Ok(Notice(shared(TEXT + TEXT_WORDS)?))
    }

    /// Leaves an error for the process that started the crew, unless another one was there before.
    pub fn leave(&self, error: &anyhow::Error) {
        let kind = self.0.word(KIND);
        if kind.compare_exchange(0, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let mut text = format!("{error:#}").into_bytes();
        text.truncate(TEXT_WORDS * 8);
        for (at, piece) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.0.word(TEXT + at).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.0.word(LENGTH).store(text.len() as u64, Ordering::Relaxed);
        let is_wrong = error.downcast_ref::<WrongAnswer>().is_some();
        kind.store(if is_wrong { WRONG } else { FAILED }, Ordering::Release);
    }

    /// The error that a process has left, as that process had it.
    pub fn check(&self) -> anyhow::Result<()> {
        let kind = self.0.word(KIND).load(Ordering::Acquire);
        if kind < FAILED {
            return Ok(());
        }
        let words = (TEXT..TEXT + TEXT_WORDS).map(|at| self.0.word(at).load(Ordering::Relaxed));
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
