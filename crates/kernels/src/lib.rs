//! The timed loops; in assembly wherever the compiler would otherwise decide what is measured.
//!
//! `x86_64.rs` and `aarch64.rs` export the same names; no other crate knows the architecture. Every
//! kernel has a portable counterpart that computes the same answer, so a wrong answer shows a wrong
//! kernel or a faulty core.
//!
//! Invariant: reads no clock; callers time the loops from outside.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod machine_code;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod machine_code;

mod arithmetic;
pub mod atomics;
mod chain;
mod faults;
pub mod rate;
mod ring;
mod streams;
pub mod vectors;
pub mod work;

pub use arithmetic::Arithmetic;
pub use chain::{Chain, TOGETHER, Visits, walk_together};
pub use faults::Faults;
pub use machine_code::{
    CLOCK_SOURCES, WIDEST_LOAD_BYTES_PER_CYCLE, add_chain, begin_line, multiply_chain, process_ids,
    taken_branches,
};
pub use ring::{LINE_BYTES, Ring};
pub use streams::{BLOCK_BYTES, LAST_WORDS, Op, Stream, array_bytes, streams};

/// Additions or multiplications in one unrolled round of a chain.
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

    #[test]
    fn chains_compute_their_expected_answers() {
        for rounds in [1, 2, 17, 1000] {
            assert_eq!(add_chain(rounds, 5, 3), add_chain_answer(rounds, 5, 3));
            assert_eq!(multiply_chain(rounds, 5, 3), multiply_chain_answer(rounds, 5, 3));
        }
        assert_eq!(add_chain_answer(2, 1, 1), 129);
        assert_eq!(multiply_chain_answer(1, 1, 2), 0, "2^64 wraps to 0");
    }

    #[test]
    fn the_raw_system_call_returns_this_process_id() {
        assert_eq!(process_ids(10), u64::from(std::process::id()) * 10);
    }
}
