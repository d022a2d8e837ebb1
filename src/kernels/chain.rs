//! A pointer chain through a buffer: each line holds the address of the next, every line once, then back to the start.

use std::marker::PhantomData;

use super::machine_code;

/// A closed chain of dependent loads over `lines` lines of a buffer that it borrows.
pub struct Chain<'a> {
    at: *const u64,
    start: *const u64,
    lines: usize,
    memory: PhantomData<&'a mut [u64]>,
}

impl<'a> Chain<'a> {
    /// Links the lines of `memory`, `line_bytes` apart, in a random single cycle (Sattolo's shuffle), so that no
    /// prefetcher can guess the next one and no line is left out.
    ///
    /// `line_bytes`: a multiple of 8, at least 8. The last incomplete line of `memory` is left alone.
    pub fn random(memory: &'a mut [u64], line_bytes: usize, seed: u64) -> Chain<'a> {
        assert!(
            line_bytes >= 8 && line_bytes.is_multiple_of(8),
            "a line of {line_bytes} bytes holds no pointer"
        );
        let words = line_bytes / 8;
        let lines = memory.len() / words;
        assert!(lines >= 2, "a chain needs two lines");
        let mut random = fastrand::Rng::with_seed(seed);
        // Sattolo: swapping with a strictly smaller index always leaves one cycle.
        let mut order: Vec<u32> = (0..lines as u32).collect();
        for index in (1..lines).rev() {
            order.swap(index, random.usize(..index));
        }
        let base = memory.as_mut_ptr();
        for (line, next) in order.iter().enumerate() {
            // Both are < lines, so both addresses lie inside `memory`.
            let next = base.wrapping_add(*next as usize * words);
            memory[line * words] = next as u64;
        }
        Chain { at: base, start: base, lines, memory: PhantomData }
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Follows the chain for `steps` dependent loads (rounded up to [`Chain::UNROLL`]) from where the last walk ended.
    #[inline]
    pub fn walk(&mut self, steps: u64) {
        // SAFETY: `at` points to a line of the borrowed buffer, and every line holds the address of another one.
        self.at = unsafe { machine_code::chase(self.at, steps.div_ceil(Self::UNROLL)) };
    }

    /// Whether the last walk ended where the chain starts.
    pub fn at_start(&self) -> bool {
        self.at == self.start
    }

    /// Loads in one turn of the timed loop.
    pub const UNROLL: u64 = machine_code::CHASE_UNROLL;

    /// Walks all lines once by plain Rust and checks that the cycle closes after exactly all of them.
    pub fn visits_every_line(&self) -> bool {
        let mut at = self.start;
        for step in 1..=self.lines {
            // SAFETY: as in `walk`.
            at = unsafe { std::ptr::read_volatile(at) } as *const u64;
            if at == self.start {
                return step == self.lines;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_chain_is_one_cycle_of_all_lines() {
        for lines in [2usize, 3, 64, 1000] {
            let mut memory = vec![0u64; lines * 8 + 3];
            let mut chain = Chain::random(&mut memory, 64, 42);
            assert_eq!(chain.lines(), lines);
            assert!(chain.visits_every_line());
            chain.walk(lines as u64 * Chain::UNROLL);
            assert!(chain.at_start(), "whole rounds end where they began");
        }
    }

    #[test]
    fn a_shorter_cycle_is_noticed() {
        let mut memory = vec![0u64; 8 * 4];
        let base = memory.as_mut_ptr() as u64;
        for (line, next) in [1u64, 0, 3, 2].iter().enumerate() {
            memory[line * 8] = base + next * 64;
        }
        let start = memory.as_ptr();
        let chain = Chain { at: start, start, lines: 4, memory: PhantomData };
        assert!(!chain.visits_every_line());
    }
}
