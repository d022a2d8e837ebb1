//! A pointer chain through chosen lines of shared memory, which several processes can link, read,
//! flush and walk alternately.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::machine_code::{self, Flusher};
use sys::mapping::Mapping;

/// Size of a line: the cache line of every x86 and nearly every ARM server.
pub const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / 8;

/// Lines of a mapping; each contains the address of the next one and a mark.
///
/// Forked processes have a ring each over the same memory: one links it, another walks it. A walk
/// starts at the ring's first line, which is the same in every order. Rings of one process may
/// share memory if no line is in two of them.
pub struct Ring {
    memory: Rc<Mapping>,
    /// Line numbers from the start of the memory, in the order in which this process last linked
    /// them.
    path: Vec<u32>,
    at: *const u64,
    walked: u64,
    flusher: Flusher,
}

impl Ring {
    /// Loads in one turn of the timed loop.
    pub const UNROLL: u64 = machine_code::CHASE_UNROLL;

    /// A ring through `lines` (different ones, at least two, counted in [`LINE_BYTES`]), linked at
    /// random.
    pub fn new(memory: impl Into<Rc<Mapping>>, lines: Vec<u32>, seed: u64, mark: u64) -> Ring {
        let mut ring = Ring::unlinked(memory.into(), lines);
        ring.link(seed, mark);
        ring
    }

    /// The same, linked in the order in which the lines are given.
    pub fn in_order(memory: impl Into<Rc<Mapping>>, lines: Vec<u32>, mark: u64) -> Ring {
        let mut ring = Ring::unlinked(memory.into(), lines);
        ring.write(mark);
        ring
    }

    fn unlinked(memory: Rc<Mapping>, path: Vec<u32>) -> Ring {
        assert!(path.len() >= 2, "a ring needs two lines");
        let within = memory.len() / LINE_BYTES;
        assert!(path.iter().all(|line| (*line as usize) < within), "a line outside of the memory");
        let at = memory.as_ptr().cast();
        Ring { memory, path, at, walked: 0, flusher: Flusher::of_this_cpu() }
    }

    pub fn lines(&self) -> u64 {
        self.path.len() as u64
    }

    pub fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// Links all lines again in random order, unpredictable for prefetchers, and writes `mark` into
    /// each: they are then modified lines in the caches of this CPU. Returns to the first line.
    pub fn link(&mut self, seed: u64, mark: u64) {
        // A shuffled path that closes is one cycle through all lines; all cycles are equally
        // likely.
        fastrand::Rng::with_seed(seed).shuffle(&mut self.path[1..]);
        self.write(mark);
    }

    /// Writes each line's next address and its mark, and returns to the first line.
    fn write(&mut self, mark: u64) {
        let nexts = self.path[1..].iter().chain(self.path.first());
        for (line, next) in self.path.iter().zip(nexts) {
            self.word(*line, 0).store(self.address(*next) as u64, Ordering::Relaxed);
            self.word(*line, 1).store(mark, Ordering::Relaxed);
        }
        self.rewind();
    }

    /// Returns to the first line.
    pub fn rewind(&mut self) {
        (self.at, self.walked) = (self.address(self.path[0]), 0);
    }

    /// Follows the ring for `steps` dependent loads (rounded up to [`Ring::UNROLL`]) from where the
    /// last walk ended.
    #[inline]
    pub fn walk(&mut self, steps: u64) {
        let turns = steps.div_ceil(Self::UNROLL);
        // SAFETY: `at` is a line of the mapping. All processes write it only through `link`, so
        // each line contains the address of another one, which is the same in all of these forks.
        self.at = unsafe { machine_code::chase(self.at, turns) };
        self.walked += turns * Self::UNROLL;
    }

    /// Follows the ring for one load, for callers that time each one. Returns the line that was
    /// read.
    #[inline]
    pub fn step(&mut self) -> u32 {
        // SAFETY: as in `walk`.
        let next = unsafe { self.at.read_volatile() } as *const u64;
        // A branch on the loaded value: the caller's next clock reading waits for it, also on CPUs
        // that order only instructions.
        assert!(!next.is_null(), "a line of the ring was overwritten");
        let line = self.path[(self.walked % self.lines()) as usize];
        (self.at, self.walked) = (next, self.walked + 1);
        line
    }

    /// Whether the walk ended at the line that its number of loads leads to in the order that this
    /// process linked (after whole rounds: in any order).
    pub fn ended_correctly(&self) -> bool {
        self.at == self.address(self.path[(self.walked % self.lines()) as usize])
    }

    /// Reads all lines and returns the sum of their marks.
    pub fn read(&self) -> u64 {
        let marks = self.path.iter().map(|line| self.word(*line, 1).load(Ordering::Relaxed));
        marks.fold(0, u64::wrapping_add)
    }

    /// Writes lines of a mapping back to memory and removes them from all caches.
    pub fn flush_lines(memory: &Mapping, lines: impl Iterator<Item = u32>) {
        flush(Flusher::of_this_cpu(), memory, lines);
    }

    /// Writes all lines back to memory and removes them from all caches.
    pub fn flush(&self) {
        flush(self.flusher, &self.memory, self.path.iter().copied());
    }

    fn address(&self, line: u32) -> *const u64 {
        // Inside the mapping, by `new`.
        self.memory.as_ptr().cast::<u64>().wrapping_add(line as usize * LINE_WORDS)
    }

    fn word(&self, line: u32, index: usize) -> &AtomicU64 {
        debug_assert!(index < LINE_WORDS);
        // SAFETY: inside the mapping, 8-byte aligned, and all processes write it only through
        // atomics.
        unsafe { AtomicU64::from_ptr(self.address(line).cast_mut().wrapping_add(index)) }
    }
}

fn flush(flusher: Flusher, memory: &Mapping, lines: impl Iterator<Item = u32>) {
    for line in lines.filter(|line| (*line as usize) < memory.len() / LINE_BYTES) {
        // SAFETY: a line of the mapping.
        unsafe { flusher.flush(memory.as_ptr().wrapping_add(line as usize * LINE_BYTES).cast()) };
    }
    flusher.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuSet, Pages};

    fn ring(lines: &[u32]) -> Ring {
        let memory = Mapping::private(1 << 20, Pages::AsGiven, &CpuSet::default()).expect("1 MiB");
        Ring::new(memory, lines.to_vec(), 7, 3)
    }

    /// The lines that a round from the first one visits, by plain loads.
    fn visited(ring: &Ring) -> Vec<u32> {
        let (mut line, mut seen) = (ring.path[0], Vec::new());
        while seen.len() <= ring.path.len() {
            seen.push(line);
            let next = ring.word(line, 0).load(Ordering::Relaxed) - ring.memory.as_ptr() as u64;
            line = (next / LINE_BYTES as u64) as u32;
            if line == ring.path[0] {
                break;
            }
        }
        seen
    }

    #[test]
    fn every_line_is_visited_once_in_each_order() {
        let lines = [5u32, 0, 16383, 77, 64, 1000, 1001, 8];
        let mut ring = ring(&lines);
        let mut orders = Vec::new();
        for seed in 0..20 {
            ring.link(seed, 1);
            let mut seen = visited(&ring);
            orders.push(seen.clone());
            assert_eq!(seen[0], 5, "the first line stays the first");
            seen.sort_unstable();
            let mut all = lines.to_vec();
            all.sort_unstable();
            assert_eq!(seen, all);
        }
        orders.dedup();
        assert!(orders.len() > 15, "orders differ");
    }

    #[test]
    fn walks_come_where_they_must_and_marks_add_up() {
        let mut ring = ring(&(0..100).map(|line| line * 3).collect::<Vec<u32>>());
        assert_eq!(ring.read(), 300);
        for steps in [16, 160, 1600, 3] {
            ring.walk(steps);
            assert!(ring.ended_correctly());
        }
        ring.rewind();
        ring.walk(1600);
        assert!(ring.ended_correctly() && ring.at == ring.address(ring.path[0]));
        // A line that points elsewhere leads the walk astray.
        let (second, fifth) = (ring.path[1], ring.path[5]);
        ring.word(second, 0).store(ring.address(fifth) as u64, Ordering::Relaxed);
        ring.walk(16);
        assert!(!ring.ended_correctly());
        ring.link(9, 4);
        assert_eq!(ring.read(), 400);
    }

    #[test]
    fn steps_tell_their_lines_in_order() {
        let lines: Vec<u32> = (0..50).map(|line| (line * 37) % 1000).collect();
        let memory = Mapping::private(1 << 20, Pages::AsGiven, &CpuSet::default()).expect("1 MiB");
        let mut ring = Ring::in_order(memory, lines.clone(), 1);
        let steps: Vec<u32> = (0..60).map(|_| ring.step()).collect();
        let again: Vec<u32> = lines.iter().chain(&lines[..10]).copied().collect();
        assert!(steps == again && ring.ended_correctly());
        ring.walk(40);
        assert_eq!(ring.step(), lines[8], "48 lines on, by whole turns");
    }

    #[test]
    fn rings_in_given_orders_share_memory() {
        let memory = Rc::new(Mapping::private(1 << 20, Pages::AsGiven, &CpuSet::default()).expect("1 MiB"));
        let even: Vec<u32> = (0..64).map(|line| (line * 26) % 128).collect();
        let odd: Vec<u32> = even.iter().rev().map(|line| line + 1).collect();
        let orders = [&even, &odd];
        let mut rings = orders.map(|lines| Ring::in_order(Rc::clone(&memory), lines.clone(), 2));
        for (ring, lines) in rings.iter_mut().zip(orders) {
            assert_eq!(visited(ring), *lines);
            ring.flush();
            ring.walk(32);
            assert!(ring.ended_correctly() && ring.read() == 128);
        }
    }

    #[test]
    fn flushed_lines_keep_their_content() {
        let mut ring = ring(&(0..64).collect::<Vec<u32>>());
        for mark in 0..100 {
            ring.link(mark, mark);
            ring.flush();
            assert_eq!(ring.read(), 64 * mark);
            ring.walk(64);
            assert!(ring.ended_correctly());
        }
    }

    #[test]
    #[should_panic(expected = "outside of the memory")]
    fn a_line_outside_is_refused() {
        ring(&[0, 16384]);
    }
}
