//! Kinds of work as in services, in fixed portions with known answers: how much of a core two
//! threads share depends on the kind.

use super::machine_code::work as loops;

/// Words of the block for [`loads_and_arithmetic`]: 4 KiB, which fit every L1 data cache.
pub const BLOCK_WORDS: usize = 512;
/// Turns of [`loads_and_arithmetic`] in a round, each of four loads and six arithmetic operations.
pub const LOAD_TURNS: u64 = BLOCK_WORDS as u64 / 4;
/// Steps of a [`branches`] round, four branches each: more than any predictor can store.
pub const BRANCH_STEPS: u64 = 1024;
/// Operations on whole vectors in a round of [`vectors`].
pub const VECTOR_OPERATIONS: u64 = VECTOR_STREAMS as u64 * 4 * VECTOR_TURNS;

/// Seed of a branch round, and the number that each of its branches adds.
pub(super) const BRANCH_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
pub(super) const BRANCH_TERMS: [u64; 4] = [1, 3, 7, 19];
/// Independent vectors.
pub(super) const VECTOR_STREAMS: usize = 8;
/// Turns of four operations in a round.
pub(super) const VECTOR_TURNS: u64 = 16;
/// The widest vector, in doubles.
pub(super) const LANES: usize = 8;
/// Multiplication, addition and their inverses, all exact.
pub(super) const VECTOR_TERMS: [f64; 4] = [2.0, 0.75, -0.75, 0.5];
const VECTOR_START: f64 = 1.5;

/// The block: all words different.
pub fn block() -> Box<[u64; BLOCK_WORDS]> {
    let mut words = Box::new([0; BLOCK_WORDS]);
    words.iter_mut().zip(1u64..).for_each(|(word, n)| *word = n.wrapping_mul(BRANCH_SEED));
    words
}

/// `rounds` rounds over the block: many loads and simple scalar arithmetic with a high IPC. Returns
/// the sum over all rounds.
pub fn loads_and_arithmetic(block: &[u64; BLOCK_WORDS], rounds: u64) -> u64 {
    if rounds == 0 { 0 } else { loops::loads_and_arithmetic(block, rounds) }
}

/// What [`loads_and_arithmetic`] must return.
pub fn loads_and_arithmetic_answer(block: &[u64; BLOCK_WORDS], rounds: u64) -> u64 {
    let mut s = [0u64; 4];
    for words in block.chunks_exact(4) {
        s[0] = s[0].wrapping_add(words[0]);
        s[1] ^= words[1];
        s[2] = s[2].wrapping_sub(words[2]);
        s[3] = s[3].wrapping_add(words[3]);
        s[0] = s[0].wrapping_add(s[1]);
        s[2] ^= s[3];
    }
    s.iter().fold(0u64, |sum, s| sum.wrapping_add(*s)).wrapping_mul(rounds)
}

/// `rounds` × [`BRANCH_STEPS`] steps of a random sequence; each of the lowest four bits decides a
/// branch, half of which are mispredicted. Returns the sum of the numbers that branches added.
pub fn branches(rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum: u64, _| sum.wrapping_add(loops::branches(BRANCH_STEPS, BRANCH_SEED)))
}

/// What [`branches`] must return.
pub fn branches_answer(rounds: u64) -> u64 {
    let (mut x, mut sum) = (BRANCH_SEED, 0u64);
    for _ in 0..BRANCH_STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        for (bit, term) in BRANCH_TERMS.iter().enumerate() {
            sum = sum.wrapping_add(if x >> bit & 1 == 1 { *term } else { 0 });
        }
    }
    sum.wrapping_mul(rounds)
}

/// `rounds` × [`VECTOR_OPERATIONS`] multiplications and additions of vectors of doubles with this
/// width; returns whether all lanes have their initial values again.
pub fn vectors(width: Width, rounds: u64) -> bool {
    let mut lanes = [VECTOR_START; VECTOR_STREAMS * LANES];
    if rounds > 0 {
        loops::vectors(width, rounds * VECTOR_TURNS, &mut lanes);
    }
    lanes.iter().all(|lane| *lane == VECTOR_START)
}

/// Width of vectors in doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// SSE2, Neon.
    Two,
    /// AVX.
    Four,
}

impl Width {
    /// The widest that does not lower the core clock (AVX-512 does on some CPUs).
    pub fn widest() -> Width {
        if loops::has_four() { Width::Four } else { Width::Two }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_comes_to_what_it_should() {
        let block = block();
        for rounds in [0, 1, 2, 7] {
            let right = loads_and_arithmetic_answer(&block, rounds);
            assert_eq!(loads_and_arithmetic(&block, rounds), right, "{rounds} rounds");
            assert_eq!(branches(rounds), branches_answer(rounds), "{rounds} rounds");
        }
        assert_ne!(loads_and_arithmetic_answer(&block, 1), 0);
        let widths = [Width::Two, Width::widest()];
        assert!(widths.iter().all(|width| vectors(*width, 3)), "{widths:?}");
    }

    #[test]
    fn a_word_that_is_wrong_shows() {
        let mut block = block();
        let right = loads_and_arithmetic_answer(&block, 1);
        for word in [0, 1, 2, 3, BLOCK_WORDS - 1] {
            block[word] ^= 1 << 40;
            assert_ne!(loads_and_arithmetic(&block, 1), right, "word {word}");
            block[word] ^= 1 << 40;
        }
    }

    #[test]
    fn about_half_of_the_branches_are_taken() {
        let all: u64 = BRANCH_TERMS.iter().sum::<u64>() * BRANCH_STEPS;
        let share = branches_answer(1) as f64 / all as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
    }
}
