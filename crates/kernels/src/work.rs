//! Work as services do it, in fixed portions whose answers are known: what two threads of one core
//! share of it differs from kind to kind.

use super::machine_code::work as loops;

/// Words of the block that [`loads_and_arithmetic`] goes through: 4 KiB, in every L1 data cache.
pub const BLOCK_WORDS: usize = 512;
/// Turns of [`loads_and_arithmetic`] over the block: four loads and six operations of arithmetic
/// each.
pub const LOAD_TURNS: u64 = BLOCK_WORDS as u64 / 4;
/// Steps of a [`branches`] round, four branches each: more than any predictor remembers.
pub const BRANCH_STEPS: u64 = 1024;
/// Operations on whole vectors in a round of [`vectors`].
pub const VECTOR_OPERATIONS: u64 = VECTOR_STREAMS as u64 * 4 * VECTOR_TURNS;

/// What a branch round starts from, and what each of its branches adds.
pub(super) const BRANCH_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
pub(super) const BRANCH_TERMS: [u64; 4] = [1, 3, 7, 19];
/// Vectors that do not wait for each other.
pub(super) const VECTOR_STREAMS: usize = 8;
/// Turns of four operations in a round.
pub(super) const VECTOR_TURNS: u64 = 16;
/// The widest vector, in doubles.
pub(super) const LANES: usize = 8;
/// Times, plus, minus and back again, all exact.
pub(super) const VECTOR_TERMS: [f64; 4] = [2.0, 0.75, -0.75, 0.5];
const VECTOR_START: f64 = 1.5;

/// The block: all words different.
pub fn block() -> Box<[u64; BLOCK_WORDS]> {
    let mut words = Box::new([0; BLOCK_WORDS]);
    words.iter_mut().zip(1u64..).for_each(|(word, n)| *word = n.wrapping_mul(BRANCH_SEED));
    words
}

/// `rounds` times over the block: many loads and simple arithmetic, scalar, with a high IPC. The
/// sum of what all rounds answer.
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

/// `rounds` × [`BRANCH_STEPS`] steps of a random sequence, each of whose lowest four bits decides a
/// branch: half of them are predicted wrongly. The sum of what the branches added.
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

/// `rounds` × [`VECTOR_OPERATIONS`] multiplications and additions of vectors of doubles, as wide as
/// `width` says; whether all lanes came back to where they began.
pub fn vectors(width: Width, rounds: u64) -> bool {
    let mut lanes = [VECTOR_START; VECTOR_STREAMS * LANES];
    if rounds > 0 {
        loops::vectors(width, rounds * VECTOR_TURNS, &mut lanes);
    }
    lanes.iter().all(|lane| *lane == VECTOR_START)
}

/// How wide vectors are, in doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// SSE2, Neon.
    Two,
    /// AVX.
    Four,
}

impl Width {
    /// The widest that lowers no core's clock by itself (AVX-512 does on some).
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
