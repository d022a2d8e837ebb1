//! Chains of dependent arithmetic instructions (latency), and independent streams of them
//! (throughput).
//!
//! All operands are registers, because recent cores eliminate additions of a constant at rename.
//! Floating-point sums and products go up and down by exact steps, so they never overflow or round.
//! Divisions keep their quotients as wide as possible, because many dividers finish early for short
//! ones. An integer chain divides by 3 and sets the dividend's top bit again by an OR (one cycle,
//! included in its figure); a floating-point chain divides a constant by the last quotient.

use super::machine_code::arithmetic as loops;
use super::{CHAIN_UNROLL, add_chain, add_chain_answer, multiply_chain, multiply_chain_answer};

/// An operation; states and results are passed as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Int64Add,
    Int64Multiply,
    Int64Divide,
    Int32Divide,
    Float64Add,
    Float64Multiply,
    Float64Divide,
    Float32Add,
    Float32Multiply,
    Float32Divide,
}

use Arithmetic::*;

/// The operand of integer additions and multiplications; odd, so that products keep all bits.
pub const STEP: u64 = 3;
pub const DIVISOR: u64 = 3;
pub const TOP_64: u64 = 1 << 63;
pub const TOP_32: u32 = 1 << 31;
/// Dividends of the independent divisions, alternating.
pub const DIVIDENDS_64: [u64; 2] = [u64::MAX - 14, 0xc000_0000_0000_0005];
pub const DIVIDENDS_32: [u32; 2] = [u32::MAX - 14, 0xc000_0005];
/// Operands that alternate, up and down; both are exact.
const TERMS: [f64; 2] = [0.75, -0.75];
const FACTORS: [f64; 2] = [2.0, 0.5];
/// The constant that is divided by each quotient.
const NUMERATOR_64: f64 = std::f64::consts::E;
const NUMERATOR_32: f32 = std::f32::consts::E;

/// As many results as the widest kernel has streams.
pub const STREAMS: usize = 12;

impl Arithmetic {
    pub const ALL: [Arithmetic; 10] = [
        Int64Add,
        Int64Multiply,
        Int64Divide,
        Int32Divide,
        Float64Add,
        Float64Multiply,
        Float64Divide,
        Float32Add,
        Float32Multiply,
        Float32Divide,
    ];

    /// Initial state of a chain or stream.
    pub fn start(self) -> u64 {
        match self {
            Int64Add => 0,
            Int64Multiply => 1,
            Int64Divide => u64::MAX,
            Int32Divide => u64::from(u32::MAX),
            Float64Add | Float64Multiply => 1.5f64.to_bits(),
            Float32Add | Float32Multiply => u64::from(1.5f32.to_bits()),
            // Quotients have as many digits as this number.
            Float64Divide => std::f64::consts::SQRT_2.to_bits(),
            Float32Divide => u64::from(std::f32::consts::SQRT_2.to_bits()),
        }
    }

    /// Operations in one round of [`Self::chain`].
    pub fn chain_operations(self) -> u64 {
        CHAIN_UNROLL
    }

    /// Operations in one round of [`Self::streams`].
    pub fn stream_operations(self) -> u64 {
        let (streams, steps) = self.shape();
        streams * steps
    }

    /// Streams, and steps of each in a round.
    fn shape(self) -> (u64, u64) {
        match self {
            Int64Add | Int64Multiply => (8, 8),
            Int64Divide | Int32Divide => (1, 16),
            Float64Divide | Float32Divide => (6, 8),
            _ => (12, 4),
        }
    }

    /// `rounds` × [`Self::chain_operations`] operations, each of which needs the one before.
    pub fn chain(self, rounds: u64, start: u64) -> u64 {
        let (wide, narrow) = (f64::from_bits(start), f32::from_bits(start as u32));
        let bits = |narrow: f32| u64::from(narrow.to_bits());
        let [up, back] = self.there_and_back();
        match self {
            _ if rounds == 0 => start,
            Int64Add => add_chain(rounds, start, STEP),
            Int64Multiply => multiply_chain(rounds, start, STEP),
            Int64Divide => loops::divide_64(rounds, start),
            Int32Divide => loops::divide_32(rounds, start),
            Float64Add => loops::add_f64(rounds, wide, up, back).to_bits(),
            Float64Multiply => loops::multiply_f64(rounds, wide, up, back).to_bits(),
            Float64Divide => loops::divide_f64(rounds, wide, NUMERATOR_64).to_bits(),
            Float32Add => bits(loops::add_f32(rounds, narrow, up as f32, back as f32)),
            Float32Multiply => bits(loops::multiply_f32(rounds, narrow, up as f32, back as f32)),
            Float32Divide => bits(loops::divide_f32(rounds, narrow, NUMERATOR_32)),
        }
    }

    /// `rounds` × [`Self::stream_operations`] operations in independent streams; returns the final
    /// state of each. Integer divisions are independent too: `start` plus the sum of all quotients.
    pub fn streams(self, rounds: u64, start: u64) -> [u64; STREAMS] {
        let (wide, narrow) = (f64::from_bits(start), f32::from_bits(start as u32));
        let [up, back] = self.there_and_back();
        match self {
            _ if rounds == 0 => [start; STREAMS],
            Int64Add => loops::add_64s(rounds, start),
            Int64Multiply => loops::multiply_64s(rounds, start),
            Int64Divide => [loops::divide_64s(rounds, start); STREAMS],
            Int32Divide => [loops::divide_32s(rounds, start); STREAMS],
            Float64Add => loops::add_f64s(rounds, wide, up, back),
            Float64Multiply => loops::multiply_f64s(rounds, wide, up, back),
            Float64Divide => loops::divide_f64s(rounds, wide, NUMERATOR_64),
            Float32Add => loops::add_f32s(rounds, narrow, up as f32, back as f32),
            Float32Multiply => loops::multiply_f32s(rounds, narrow, up as f32, back as f32),
            Float32Divide => loops::divide_f32s(rounds, narrow, NUMERATOR_32),
        }
    }

    /// The two operands that alternate.
    fn there_and_back(self) -> [f64; 2] {
        if matches!(self, Float64Add | Float32Add) { TERMS } else { FACTORS }
    }

    /// What [`Self::chain`] must return after this number of rounds in total.
    pub fn chain_answer(self, rounds: u64) -> u64 {
        match self {
            Int64Add => add_chain_answer(rounds, self.start(), STEP),
            Int64Multiply => multiply_chain_answer(rounds, self.start(), STEP),
            _ => self.after(rounds.wrapping_mul(CHAIN_UNROLL), self.start()),
        }
    }

    /// What each of [`Self::streams`] must return after this number of rounds in total.
    pub fn stream_answer(self, rounds: u64) -> u64 {
        let steps = rounds.wrapping_mul(self.shape().1);
        let quotients = |sum: u64| self.start().wrapping_add((steps / 2).wrapping_mul(sum));
        match self {
            Int64Add => self.start().wrapping_add(STEP.wrapping_mul(steps)),
            Int64Multiply => multiply_chain_answer(steps / CHAIN_UNROLL, self.start(), STEP)
                .wrapping_mul(STEP.wrapping_pow((steps % CHAIN_UNROLL) as u32)),
            Int64Divide => quotients(DIVIDENDS_64.iter().fold(0, |sum, of| (of / DIVISOR).wrapping_add(sum))),
            Int32Divide => quotients(DIVIDENDS_32.iter().map(|of| u64::from(of / DIVISOR as u32)).sum()),
            _ => self.after(steps, self.start()),
        }
    }

    /// The state after `steps` steps, by the compiler's arithmetic. States of floating point have a
    /// period of two steps, most from the start.
    fn after(self, steps: u64, start: u64) -> u64 {
        let (mut before, mut now) = (None, start);
        for done in 0..steps {
            let next = self.step(done, now);
            // Terms and factors alternate, so the same one follows only after an even number of
            // steps.
            if before == Some(next) && done % 2 == 1 {
                return if (steps - done) % 2 == 1 { next } else { now };
            }
            (before, now) = (Some(now), next);
        }
        now
    }

    /// One operation.
    fn step(self, number: u64, state: u64) -> u64 {
        let turn = (number % 2) as usize;
        let wide = f64::from_bits(state);
        let narrow = f32::from_bits(state as u32);
        let bits = |narrow: f32| u64::from(narrow.to_bits());
        match self {
            Int64Add => state.wrapping_add(STEP),
            Int64Multiply => state.wrapping_mul(STEP),
            Int64Divide => (state / DIVISOR) | TOP_64,
            Int32Divide => u64::from((state as u32 / DIVISOR as u32) | TOP_32),
            Float64Add => (wide + TERMS[turn]).to_bits(),
            Float64Multiply => (wide * FACTORS[turn]).to_bits(),
            Float64Divide => (NUMERATOR_64 / wide).to_bits(),
            Float32Add => bits(narrow + TERMS[turn] as f32),
            Float32Multiply => bits(narrow * FACTORS[turn] as f32),
            Float32Divide => bits(NUMERATOR_32 / narrow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Step by step, without any short cut.
    fn plainly(operation: Arithmetic, steps: u64) -> u64 {
        (0..steps).fold(operation.start(), |state, number| operation.step(number, state))
    }

    #[test]
    fn chains_and_streams_compute_what_they_should() {
        for operation in Arithmetic::ALL {
            for rounds in [1, 2, 3, 17, 200] {
                let right = plainly(operation, rounds * CHAIN_UNROLL);
                assert_eq!(operation.chain_answer(rounds), right, "{operation:?} {rounds}");
                assert_eq!(operation.chain(rounds, operation.start()), right, "{operation:?} {rounds}");
                let streams = operation.streams(rounds, operation.start());
                assert_eq!(streams, [operation.stream_answer(rounds); STREAMS], "{operation:?} {rounds}");
            }
            assert_eq!(operation.chain(0, 7), 7);
            assert_eq!(operation.streams(0, 7), [7; STREAMS]);
        }
    }

    #[test]
    fn streams_take_the_same_steps_as_chains() {
        for operation in Arithmetic::ALL {
            let (streams, steps) = operation.shape();
            if streams > 1 {
                let right = plainly(operation, 5 * steps);
                assert_eq!(operation.stream_answer(5), right, "{operation:?}");
            }
        }
        assert_eq!(Int32Divide.stream_answer(1), u64::from(u32::MAX) + 8 * (1_431_655_760 + 1_073_741_825));
    }

    #[test]
    fn calls_go_on_where_the_last_ended() {
        for operation in Arithmetic::ALL {
            let half = operation.chain(3, operation.start());
            assert_eq!(operation.chain(4, half), operation.chain_answer(7), "{operation:?}");
            let half = operation.streams(3, operation.start())[0];
            assert_eq!(operation.streams(4, half)[0], operation.stream_answer(7), "{operation:?}");
        }
    }

    #[test]
    fn quotients_stay_wide() {
        assert_eq!((Int64Divide.chain_answer(9) / DIVISOR).leading_zeros(), 1);
        assert_eq!((Int32Divide.chain_answer(9) as u32 / DIVISOR as u32).leading_zeros(), 1);
        for rounds in [1, 9] {
            let quotient = Float64Divide.chain_answer(rounds);
            assert!(quotient.trailing_zeros() < 8, "{quotient:x}");
        }
    }
}
