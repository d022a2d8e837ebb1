//! A pointer chain through a buffer: each line contains the address of the next; after visiting
//! every line once it returns to the start.

use std::marker::PhantomData;

use super::machine_code;

/// A closed chain of dependent loads over the lines of a borrowed buffer.
#[derive(Clone)]
pub struct Chain<'a> {
    at: *const u64,
    start: *const u64,
    lines: usize,
    memory: PhantomData<&'a mut [u64]>,
}

/// The order in which a chain visits its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visits {
    /// One random cycle through all lines: no prefetcher can predict the next.
    Random,
    /// Ascending addresses, then from the start again: ideal for prefetchers.
    Ascending,
    /// One page of this many bytes after the other, in random order, and random lines in each: few
    /// TLB misses, and hardly predictable for prefetchers.
    RandomInPages(usize),
}

impl Visits {
    /// The order in which a chain visits `steps` places, `step_bytes` apart.
    pub fn order(self, steps: usize, step_bytes: usize, seed: u64) -> Vec<u32> {
        assert!(steps <= u32::MAX as usize, "a chain of {steps} loads is longer than its numbers");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut order: Vec<u32> = (0..steps as u32).collect();
        match self {
            Visits::Ascending => {}
            Visits::Random => random.shuffle(&mut order),
            Visits::RandomInPages(page_bytes) => {
                let page = (page_bytes / step_bytes).max(1);
                let mut pages: Vec<&[u32]> = order.chunks(page).collect();
                random.shuffle(&mut pages);
                let mut shuffled = Vec::with_capacity(steps);
                for page in pages {
                    let begin = shuffled.len();
                    shuffled.extend_from_slice(page);
                    random.shuffle(&mut shuffled[begin..]);
                }
                order = shuffled;
            }
        }
        order
    }
}

impl<'a> Chain<'a> {
    /// Links all of `memory` in steps of `step_bytes` (a multiple of 8, at least 8). The last
    /// incomplete step of `memory` is left alone.
    pub fn linked(memory: &'a mut [u64], step_bytes: usize, visits: Visits, seed: u64) -> Chain<'a> {
        assert!(
            step_bytes >= 8 && step_bytes.is_multiple_of(8),
            "a step of {step_bytes} bytes is too small for a pointer"
        );
        let words = step_bytes / 8;
        let order = visits.order(memory.len() / words, step_bytes, seed);
        Chain::through(memory, words, &order)
    }

    /// Links the lines of `memory`, `line_bytes` apart, in one random cycle.
    pub fn random(memory: &'a mut [u64], line_bytes: usize, seed: u64) -> Chain<'a> {
        Chain::linked(memory, line_bytes, Visits::Random, seed)
    }

    /// `parts` chains that start at equal distances along one random cycle through all lines.
    /// However many of them are walked together, a line recurs only after (nearly) all others.
    pub fn random_parts(memory: &'a mut [u64], line_bytes: usize, parts: usize, seed: u64) -> Vec<Chain<'a>> {
        let words = line_bytes / 8;
        let lines = memory.len() / words;
        let mut order: Vec<u32> = (0..lines as u32).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let base = memory.as_ptr();
        let whole = Chain::through(memory, words, &order);
        let starts = (0..parts).map(|part| base.wrapping_add(order[lines * part / parts] as usize * words));
        starts.map(|start| Chain { at: start, start, ..whole.clone() }).collect()
    }

    /// Links the words at `order[0] × unit_words`, `order[1] × unit_words`, ... and back to the
    /// first. At least two, each only once.
    pub fn through(memory: &'a mut [u64], unit_words: usize, order: &[u32]) -> Chain<'a> {
        assert!(order.len() >= 2, "a chain needs two lines");
        let base = memory.as_mut_ptr();
        for (index, from) in order.iter().enumerate() {
            let to = order[(index + 1) % order.len()] as usize * unit_words;
            assert!(to < memory.len(), "a chain stays inside its memory");
            memory[*from as usize * unit_words] = base.wrapping_add(to) as u64;
        }
        let start = base.wrapping_add(order[0] as usize * unit_words);
        Chain { at: start, start, lines: order.len(), memory: PhantomData }
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Follows the chain for `steps` dependent loads (rounded up to [`Chain::UNROLL`]) from where
    /// the last walk ended.
    #[inline]
    pub fn walk(&mut self, steps: u64) {
        // SAFETY: `at` points to a line of the borrowed buffer, and every line contains the address
        // of another one.
        self.at = unsafe { machine_code::chase(self.at, steps.div_ceil(Self::UNROLL)) };
    }

    /// The same with idle time before each load: its address depends on `pause` ×
    /// [`Chain::PAUSE_UNROLL`] dependent multiplications by one.
    pub fn walk_spaced(&mut self, steps: u64, pause: u64) {
        // SAFETY: as in `walk`; the pauses do not change the pointer.
        self.at = unsafe { machine_code::chase_spaced(self.at, steps, pause) };
    }

    /// The pauses of [`Chain::walk_spaced`] without the loads.
    pub fn pauses(steps: u64, pause: u64) {
        machine_code::pauses(steps, pause);
    }

    /// Multiplications in one turn of a pause.
    pub const PAUSE_UNROLL: u64 = machine_code::PAUSE_UNROLL;

    /// Whether the last walk ended where the chain starts.
    pub fn at_start(&self) -> bool {
        self.at == self.start
    }

    /// Loads in one turn of the timed loop.
    pub const UNROLL: u64 = machine_code::CHASE_UNROLL;

    /// Walks the chain in plain Rust and checks that it closes after visiting exactly all lines.
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

/// The numbers of chains that [`walk_together`] supports.
pub const TOGETHER: [usize; 9] = [1, 2, 4, 6, 8, 12, 16, 24, 32];

/// Walks several chains at the same time (one of the numbers in [`TOGETHER`]), `turns` loads of
/// each, round-robin. The core decides how many loads are in flight together.
pub fn walk_together(chains: &mut [Chain], turns: u64) {
    /// The compiler keeps as many pointers in registers as it can; a spilled one costs few cycles
    /// compared with a miss.
    fn walk<const N: usize>(chains: &mut [Chain], turns: u64) {
        let mut at: [*const u64; N] = std::array::from_fn(|index| chains[index].at);
        for _ in 0..turns {
            for pointer in &mut at {
                // SAFETY: as in `Chain::walk`: each points to a line that contains the address of
                // another one.
                *pointer = unsafe { std::ptr::read_volatile(*pointer) } as *const u64;
            }
        }
        chains.iter_mut().zip(at).for_each(|(chain, at)| chain.at = at);
    }
    match chains.len() {
        1 => walk::<1>(chains, turns),
        2 => walk::<2>(chains, turns),
        4 => walk::<4>(chains, turns),
        6 => walk::<6>(chains, turns),
        8 => walk::<8>(chains, turns),
        12 => walk::<12>(chains, turns),
        16 => walk::<16>(chains, turns),
        24 => walk::<24>(chains, turns),
        32 => walk::<32>(chains, turns),
        other => panic!("{other} chains cannot be walked together: {TOGETHER:?} can"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_visits_every_line_once() {
        for visits in [Visits::Random, Visits::Ascending, Visits::RandomInPages(512)] {
            for steps in [2usize, 3, 17, 1000] {
                let mut memory = vec![0u64; steps * 8 + 3];
                let mut chain = Chain::linked(&mut memory, 64, visits, 5);
                assert!(chain.visits_every_line(), "{visits:?} {steps}");
                chain.walk_spaced(steps as u64 * 2, 3);
                assert!(chain.at_start(), "{visits:?} {steps}");
                chain.walk_spaced(1, 1);
                assert!(!chain.at_start());
            }
        }
        Chain::pauses(10, 2);
    }

    #[test]
    fn pages_are_left_only_when_they_are_done() {
        let mut memory = vec![0u64; 64 * 8 * 4];
        let base = memory.as_ptr() as u64;
        let chain = Chain::linked(&mut memory, 64, Visits::RandomInPages(1024), 9);
        let mut pages = Vec::new();
        let mut at = chain.start;
        for _ in 0..chain.lines() {
            pages.push((at as u64 - base) / 1024);
            // SAFETY: the chain stays inside `memory`, which it borrows.
            at = unsafe { std::ptr::read(at) } as *const u64;
        }
        pages.dedup();
        assert_eq!(pages.len(), 16);
    }

    #[test]
    fn chains_that_are_walked_together_all_come_round() {
        for count in TOGETHER {
            let mut memory = vec![0u64; 96 * 8];
            let mut chains = Chain::random_parts(&mut memory, 64, count, count as u64);
            assert!(chains.iter().all(Chain::visits_every_line));
            walk_together(&mut chains, 95);
            assert!(chains.iter().all(|chain| !chain.at_start()), "{count}");
            walk_together(&mut chains, 1);
            assert!(chains.iter().all(Chain::at_start), "{count}");
        }
    }

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
