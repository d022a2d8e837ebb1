//! The timed loops, in assembly where the compiler would decide what is measured. No clock is read in here.
//!
//! `x86_64.rs` and `aarch64.rs` export the same names; nothing above this folder knows the architecture. Every kernel
//! has a portable equal that computes the same answer, so that a wrong answer shows a wrong kernel or a faulty core.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod machine_code;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod machine_code;

mod chain;
mod ring;

pub use chain::Chain;
pub use machine_code::{CLOCK_SOURCES, WIDEST_LOAD_BYTES_PER_CYCLE, add_chain, multiply_chain, process_ids};
pub use ring::{LINE_BYTES, Ring};

/// A kernel's block: buffers are read in whole blocks.
pub const BLOCK_BYTES: usize = 512;

/// A loop that reads all of a buffer and adds its 64-bit words up.
#[derive(Clone, Copy)]
pub struct ReadKernel {
    /// `avx512`, `avx2`, `sse2`, `neon`, `portable`.
    pub name: &'static str,
    /// Reads `blocks` blocks at an address aligned to 64 bytes, `passes` (≥ 1) times over; returns the wrapping sum.
    run: unsafe fn(*const u8, usize, u64) -> u64,
}

impl ReadKernel {
    /// Reads `memory` `passes` times and returns the wrapping sum of every word of every pass.
    pub fn run(&self, memory: &[u64], passes: u64) -> u64 {
        let bytes = size_of_val(memory);
        assert!(bytes.is_multiple_of(BLOCK_BYTES), "{bytes} bytes are not whole blocks");
        assert!(
            memory.as_ptr().cast::<u8>().align_offset(64) == 0,
            "kernels need memory aligned to 64 bytes"
        );
        if bytes == 0 || passes == 0 {
            return 0;
        }
        // SAFETY: the slice holds `blocks` whole blocks at an aligned address, and `read_kernels` lists only kernels
        // whose instructions this CPU has.
        unsafe { (self.run)(memory.as_ptr().cast(), bytes / BLOCK_BYTES, passes) }
    }
}

/// The read kernels that this CPU can run, the widest first, the portable one last.
pub fn read_kernels() -> Vec<ReadKernel> {
    let mut kernels = machine_code::read_kernels();
    kernels.push(ReadKernel { name: "portable", run: read_portable });
    kernels
}

/// The same sum by plain Rust.
///
/// # Safety
/// `blocks * BLOCK_BYTES` bytes at `memory` must be readable and aligned to 8 bytes.
unsafe fn read_portable(memory: *const u8, blocks: usize, passes: u64) -> u64 {
    // SAFETY: by this function's contract.
    let words = unsafe { std::slice::from_raw_parts(memory.cast::<u64>(), blocks * BLOCK_BYTES / 8) };
    let mut sum = 0u64;
    for _ in 0..passes {
        // black_box: without it the compiler would read once and multiply.
        sum = std::hint::black_box(words).iter().fold(sum, |sum, word| sum.wrapping_add(*word));
    }
    sum
}

/// Additions and multiplications that one call of a chain unrolls.
pub const CHAIN_UNROLL: u64 = 64;

/// What [`add_chain`] must return.
pub fn add_chain_answer(rounds: u64, start: u64, step: u64) -> u64 {
    start.wrapping_add(step.wrapping_mul(rounds.wrapping_mul(CHAIN_UNROLL)))
}

/// What [`multiply_chain`] must return.
pub fn multiply_chain_answer(rounds: u64, start: u64, factor: u64) -> u64 {
    let (mut power, mut base, mut exponent) = (1u64, factor, rounds.wrapping_mul(CHAIN_UNROLL));
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    start.wrapping_mul(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CpuSet, Pages};
    use crate::sys::mapping::Mapping;

    #[test]
    fn every_read_kernel_reads_every_word_of_every_pass() {
        let mut memory = Mapping::private(64 << 10, Pages::AsGiven, &CpuSet::default()).expect("64 KiB");
        for (index, word) in memory.words_mut().iter_mut().enumerate() {
            *word = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        assert!(read_kernels().last().is_some_and(|kernel| kernel.name == "portable"));
        for kernel in read_kernels() {
            for blocks in [1, 2, 3, 7, 128] {
                let words = &memory.words()[..blocks * BLOCK_BYTES / 8];
                let once: u64 = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
                for passes in [1, 2, 5] {
                    let expected = once.wrapping_mul(passes);
                    assert_eq!(kernel.run(words, passes), expected, "{} {blocks} {passes}", kernel.name);
                }
            }
            assert_eq!(kernel.run(&memory.words()[..0], 3), 0);
            // Each single word counts: flip one and the sum must move.
            let before = kernel.run(memory.words(), 1);
            for index in [0, 1, 8, 63, 64, 4095, 8191] {
                memory.words_mut()[index] ^= 1;
                assert_ne!(kernel.run(memory.words(), 1), before, "{} word {index}", kernel.name);
                memory.words_mut()[index] ^= 1;
            }
        }
    }

    #[test]
    fn chains_compute_what_they_should() {
        for rounds in [1, 2, 17, 1000] {
            assert_eq!(add_chain(rounds, 5, 3), add_chain_answer(rounds, 5, 3));
            assert_eq!(multiply_chain(rounds, 5, 3), multiply_chain_answer(rounds, 5, 3));
        }
        assert_eq!(add_chain_answer(2, 1, 1), 129);
        assert_eq!(multiply_chain_answer(1, 1, 2), 0, "2^64 wraps to nothing");
    }

    #[test]
    fn the_raw_system_call_answers_with_our_process() {
        assert_eq!(process_ids(10), u64::from(std::process::id()) * 10);
    }
}
