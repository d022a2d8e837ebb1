//! Streams: loops that read, write, change, copy or combine whole arrays, for every vector width.

use super::machine_code;

/// Arrays consist of whole blocks of this size, bytes.
pub const BLOCK_BYTES: usize = 512;

/// The operation of a stream on its arrays of 64-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sums all words.
    Read,
    /// Stores one word everywhere.
    Write,
    /// The same with non-temporal stores, which bypass the caches.
    WriteNt,
    /// Adds a word to every word, in place.
    ReadWrite,
    /// Copies the second array onto the first.
    Copy,
    /// The same with non-temporal stores; on x86 four pages in parallel if the array has as many.
    CopyNt,
    /// The same by the CPU's own instruction (`rep movsb`), if it has one.
    CopyRep,
    /// Clears by the CPU's own instruction (`rep stosb`, `dc zva`).
    Fill,
    /// `a = b + s × c` in double precision.
    Triad,
    /// Loads all words without summing them, because additions would slow the loads. Its answer are
    /// the last words loaded.
    Load,
}

impl Op {
    pub const ALL: [Op; 10] = [
        Op::Read,
        Op::Write,
        Op::WriteNt,
        Op::ReadWrite,
        Op::Copy,
        Op::CopyNt,
        Op::CopyRep,
        Op::Fill,
        Op::Triad,
        Op::Load,
    ];

    /// Number of its arrays, which have equal lengths and lie one behind the other.
    pub const fn arrays(self) -> usize {
        match self {
            Op::Read | Op::Write | Op::WriteNt | Op::ReadWrite | Op::Fill | Op::Load => 1,
            Op::Copy | Op::CopyNt | Op::CopyRep => 2,
            Op::Triad => 3,
        }
    }
}

/// A stream: one operation with one vector width.
#[derive(Clone, Copy)]
pub struct Stream {
    /// `avx512`, `avx2`, `sse2`, `neon`, `rep-movsb`, `rep-stosb`, `dc-zva`, `portable`.
    pub name: &'static str,
    pub op: Op,
    pub(super) run: Loop,
}

/// Arguments: the arrays a, b and c (those that the operation has; aligned to 64 bytes), blocks in
/// each (≥ 1), passes (≥ 1), a word. Returns the wrapping sum of all words of all passes for
/// [`Op::Read`], of the last [`LAST_WORDS`] words for [`Op::Load`], else 0.
pub(super) type Loop = unsafe fn(*mut u8, *const u8, *const u8, usize, u64, u64) -> u64;

/// Words that every width has in registers at the end of an [`Op::Load`].
pub const LAST_WORDS: usize = 16;

impl Stream {
    /// Does `passes` passes over `block`, which consists of the operation's arrays (sizes by
    /// [`array_bytes`]). `word`: the word written or added, or the bits of the factor; else
    /// ignored.
    pub fn run(&self, block: &mut [u64], passes: u64, word: u64) -> u64 {
        let array = array_bytes(self.op, size_of_val(block) as u64) as usize;
        let a = block.as_mut_ptr().cast::<u8>();
        assert!(a.align_offset(64) == 0, "streams need memory aligned to 64 bytes");
        if array == 0 || passes == 0 {
            return 0;
        }
        let behind = |arrays: usize| a.wrapping_add(array * arrays.min(self.op.arrays() - 1)).cast_const();
        // SAFETY: the borrowed slice has `arrays` × `array` bytes behind `a`, aligned because
        // arrays are whole blocks; `streams` lists only loops with instructions that this CPU has.
        unsafe { (self.run)(a, behind(1), behind(2), array / BLOCK_BYTES, passes, word) }
    }
}

/// Bytes of each array of an operation in a block of `bytes`: whole blocks.
pub fn array_bytes(op: Op, bytes: u64) -> u64 {
    bytes / op.arrays() as u64 / BLOCK_BYTES as u64 * BLOCK_BYTES as u64
}

/// The streams of an operation that this CPU can run, the widest first, the portable one last.
pub fn streams(op: Op) -> Vec<Stream> {
    let mut streams: Vec<Stream> =
        machine_code::loops(op).into_iter().map(|(name, run)| Stream { name, op, run }).collect();
    streams.push(Stream { name: "portable", op, run: portable(op) });
    streams
}

/// Plain Rust, one word after the other.
fn portable(op: Op) -> Loop {
    match op {
        Op::Read => read_portable,
        Op::Write | Op::WriteNt => write_portable,
        Op::ReadWrite => read_write_portable,
        Op::Copy | Op::CopyNt | Op::CopyRep => copy_portable,
        Op::Fill => fill_portable,
        Op::Triad => triad_portable,
        Op::Load => load_portable,
    }
}

/// # Safety
/// As [`Loop`] says.
unsafe fn load_portable(a: *mut u8, _: *const u8, _: *const u8, blocks: usize, passes: u64, _: u64) -> u64 {
    let words = blocks * BLOCK_BYTES / 8;
    let mut sum = 0u64;
    for _ in 0..passes {
        sum = 0;
        for index in 0..words {
            // SAFETY: index is inside the array by this function's contract. Volatile, so that the
            // compiler keeps all loads.
            let word = unsafe { a.cast::<u64>().add(index).read_volatile() };
            if index >= words - LAST_WORDS {
                sum = sum.wrapping_add(word);
            }
        }
    }
    sum
}

/// A portable loop: the body on slices of words, repeated for all passes. `black_box` in each pass
/// keeps the compiler from doing only one.
macro_rules! portable_loop {
    ($name:ident, |$a:ident, $b:ident, $c:ident, $word:ident| $body:expr) => {
        /// # Safety
        /// As [`Loop`] says; the arrays are the same one or do not overlap.
        unsafe fn $name(
            a: *mut u8,
            b: *const u8,
            c: *const u8,
            blocks: usize,
            passes: u64,
            word: u64,
        ) -> u64 {
            let words = blocks * BLOCK_BYTES / 8;
            let mut sum = 0u64;
            for _ in 0..passes {
                let ($a, $b, $c) = std::hint::black_box((a.cast::<u64>(), b.cast::<u64>(), c.cast::<u64>()));
                let $word = word;
                for index in 0..words {
                    // SAFETY: index is inside each array, by this function's contract; raw
                    // pointers, since b and c may be the same array as a where an operation does
                    // not use them.
                    unsafe {
                        let ($a, $b, $c) = ($a.add(index), $b.add(index), $c.add(index));
                        sum = sum.wrapping_add($body);
                    }
                }
            }
            sum
        }
    };
}

portable_loop!(read_portable, |a, _b, _c, _word| a.read());
portable_loop!(write_portable, |a, _b, _c, word| {
    a.write(word);
    0
});
portable_loop!(read_write_portable, |a, _b, _c, word| {
    a.write(a.read().wrapping_add(word));
    0
});
portable_loop!(copy_portable, |a, b, _c, _word| {
    a.write(b.read());
    0
});
portable_loop!(fill_portable, |a, _b, _c, _word| {
    a.write(0);
    0
});
portable_loop!(triad_portable, |a, b, c, word| {
    a.cast::<f64>().write(b.cast::<f64>().read() + f64::from_bits(word) * c.cast::<f64>().read());
    0
});

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuSet, Pages};
    use sys::mapping::Mapping;

    /// A word that differs everywhere, small enough to be exact in double precision.
    fn pattern(index: usize) -> u64 {
        ((index % 1021) as f64 + 1.0).to_bits()
    }

    fn block(bytes: usize) -> Mapping {
        let mut memory = Mapping::private(bytes, Pages::AsGiven, &CpuSet::default()).expect("memory");
        for (index, word) in memory.words_mut().iter_mut().enumerate() {
            *word = pattern(index);
        }
        memory
    }

    #[test]
    fn every_width_does_what_the_portable_loop_does() {
        for op in Op::ALL {
            let own = op != Op::CopyRep || cfg!(target_arch = "x86_64");
            assert_eq!(streams(op).len() >= 2, own, "{op:?} has a loop of this machine's own");
            // Below, at and beyond what a loop takes at once (a non-temporal copy 32 blocks).
            for blocks in [1, 2, 3, 7, 31, 32, 64, 97] {
                for passes in [1, 2, 5] {
                    let word = if op == Op::Triad { 3.0f64.to_bits() } else { 0x0123_4567_89ab_cdef };
                    let bytes = op.arrays() * blocks * BLOCK_BYTES;
                    // A margin on the far side shows a loop that goes too far.
                    let done = |stream: &Stream| {
                        let mut memory = block(bytes + BLOCK_BYTES);
                        let sum = stream.run(&mut memory.words_mut()[..bytes / 8], passes, word);
                        (sum, memory.words().to_vec())
                    };
                    let own = streams(op);
                    let expected = done(own.last().expect("portable"));
                    assert!((bytes / 8..bytes / 8 + 64).all(|index| expected.1[index] == pattern(index)));
                    for stream in &own {
                        assert!(done(stream) == expected, "{op:?} {} {blocks} {passes}", stream.name);
                    }
                }
            }
        }
    }

    #[test]
    fn the_portable_loops_do_what_their_names_say() {
        let words = 3 * BLOCK_BYTES / 8;
        let array = words / 3;
        let run = |op: Op, word: u64| {
            let mut memory = block(words * 8);
            let stream = streams(op).pop().expect("portable");
            (stream.run(memory.words_mut(), 2, word), memory.words().to_vec())
        };
        let sum = (0..words).fold(0u64, |sum, index| sum.wrapping_add(pattern(index)));
        assert_eq!(run(Op::Read, 0).0, sum.wrapping_mul(2));
        assert!(run(Op::Write, 7).1.iter().all(|word| *word == 7));
        assert!(run(Op::Fill, 7).1.iter().all(|word| *word == 0));
        let changed = run(Op::ReadWrite, 5).1;
        assert!(changed.iter().enumerate().all(|(index, word)| *word == pattern(index).wrapping_add(10)));
        let triad = run(Op::Triad, 3.0f64.to_bits()).1;
        for (index, word) in triad.iter().take(array).enumerate() {
            let value = |index: usize| f64::from_bits(pattern(index));
            let expected = value(array + index) + 3.0 * value(2 * array + index);
            assert_eq!(f64::from_bits(*word), expected);
        }
        // Three blocks are not two whole arrays: the copy leaves the odd one alone.
        let copied = run(Op::Copy, 0).1;
        assert!((0..array).all(|index| copied[index] == pattern(array + index)));
        assert!((array..words).all(|index| copied[index] == pattern(index)));
    }

    #[test]
    fn each_single_word_counts_in_a_sum() {
        for stream in streams(Op::Read) {
            let mut memory = block(64 << 10);
            let before = stream.run(memory.words_mut(), 1, 0);
            for index in [0, 1, 8, 63, 64, 4095, 8191] {
                memory.words_mut()[index] ^= 1;
                assert_ne!(stream.run(memory.words_mut(), 1, 0), before, "{} word {index}", stream.name);
                memory.words_mut()[index] ^= 1;
            }
            assert_eq!(stream.run(&mut memory.words_mut()[..0], 3, 0), 0);
        }
    }
}
