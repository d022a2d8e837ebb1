//! The kinds of work: each a closure that does a number of rounds and returns whether their answers
//! are right.

use crate::check_answer;
use crate::memory::resident;
use kernels::work::{self, Width};
use kernels::{Arithmetic, Chain, LINE_BYTES, Op, streams};
use model::{CpuSet, Pages};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Loop,
    Integer,
    Branchy,
    Float,
    Vector,
    Chase,
    Stream,
    Mixed,
}

use Kind::*;

/// Does this many rounds; returns whether all their answers were right.
pub type Rounds = Box<dyn FnMut(u64) -> bool>;

/// Beyond every private cache and most shared ones.
const MEMORY: u64 = 32 << 20;
/// Loads in a round of [`Chase`].
const LOADS: u64 = 64;
/// Words of each of the three arrays in a portion of [`Stream`].
const ARRAY_WORDS: usize = 1024;
const FACTOR: f64 = 3.0;

impl Kind {
    pub const ALL: [Kind; 8] = [Loop, Integer, Branchy, Float, Vector, Chase, Stream, Mixed];
    pub const NAMES: &[&str] = &["loop", "integer", "branchy", "float", "vector", "chase", "stream", "mixed"];

    pub fn name(self) -> &'static str {
        Kind::NAMES[self as usize]
    }

    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Memory of one task, bytes.
    pub fn bytes(self) -> u64 {
        if matches!(self, Chase | Stream | Mixed) { MEMORY } else { 0 }
    }

    /// Seconds that filling and linking the memory takes.
    pub fn setup_s(self) -> f64 {
        if self.bytes() > 0 { 0.1 } else { 0.0 }
    }

    /// What a round counts as: turns of four loads and six operations of arithmetic, additions,
    /// branches, floating-point operations (on doubles, on vectors), loads, cache lines moved; of a
    /// mixture, the round.
    pub fn operations(self) -> u64 {
        match self {
            Loop => work::LOAD_TURNS,
            Integer => Arithmetic::Int64Add.stream_operations(),
            Branchy => 4 * work::BRANCH_STEPS,
            Float => Arithmetic::Float64Add.stream_operations(),
            Vector => work::VECTOR_OPERATIONS,
            Chase => LOADS,
            Stream => (3 * ARRAY_WORDS * 8 / LINE_BYTES) as u64,
            Mixed => 1,
        }
    }

    /// Makes its memory where the caller runs.
    pub fn start(self, seed: u64) -> anyhow::Result<Rounds> {
        Ok(match self {
            Loop => {
                let block = work::block();
                let each = work::loads_and_arithmetic_answer(&block, 1);
                Box::new(move |rounds| {
                    work::loads_and_arithmetic(&block, rounds) == each.wrapping_mul(rounds)
                })
            }
            Integer => arithmetic(Arithmetic::Int64Add),
            Float => arithmetic(Arithmetic::Float64Add),
            Branchy => {
                let each = work::branches_answer(1);
                Box::new(move |rounds| work::branches(rounds) == each.wrapping_mul(rounds))
            }
            Vector => {
                let width = Width::widest();
                Box::new(move |rounds| work::vectors(width, rounds))
            }
            Chase => chase(seed)?,
            Stream => stream()?,
            Mixed => mixed(seed)?,
        })
    }
}

fn arithmetic(what: Arithmetic) -> Rounds {
    Box::new(move |rounds| {
        let right = what.stream_answer(rounds);
        what.streams(rounds, what.start()).iter().all(|sum| *sum == right)
    })
}

fn chase(seed: u64) -> anyhow::Result<Rounds> {
    let memory = resident(MEMORY, Pages::Huge, &CpuSet::default(), |_| 0)?;
    // The task works in it until it ends.
    let memory = Box::leak(Box::new(memory));
    let mut chain = Chain::random(memory.words_mut(), LINE_BYTES, seed);
    check_answer(chain.visits_every_line(), || "the chain of loads misses lines".to_string())?;
    Ok(Box::new(move |rounds| {
        chain.walk(rounds * LOADS);
        true
    }))
}

/// A triad, portion after portion through all of the memory; a word of each is checked.
fn stream() -> anyhow::Result<Rounds> {
    let words = 3 * ARRAY_WORDS;
    let portions = MEMORY as usize / 8 / words;
    let value = |index: usize| match index % words / ARRAY_WORDS {
        0 => 0,
        array => ((index % (509 + 512 * array)) as f64).to_bits(),
    };
    let mut memory = resident((portions * words * 8) as u64, Pages::Huge, &CpuSet::default(), value)?;
    let (triad, mut next) = (streams(Op::Triad)[0], 0);
    Ok(Box::new(move |rounds| {
        let mut right = true;
        for _ in 0..rounds {
            let portion = &mut memory.words_mut()[next * words..][..words];
            triad.run(portion, 1, FACTOR.to_bits());
            let at = next % ARRAY_WORDS;
            let of = |array: usize| f64::from_bits(portion[array * ARRAY_WORDS + at]);
            right &= of(0) == of(1) + FACTOR * of(2);
            next = (next + 1) % portions;
        }
        right
    }))
}

/// Some microseconds of each, so that two tasks rarely do the same at once.
fn mixed(seed: u64) -> anyhow::Result<Rounds> {
    let mut parts = Vec::new();
    for (kind, rounds) in [(Loop, 32), (Integer, 200), (Float, 100), (Vector, 20), (Branchy, 1), (Chase, 1)] {
        parts.push((kind.start(seed)?, rounds));
    }
    Ok(Box::new(move |rounds| {
        let mut right = true;
        for _ in 0..rounds {
            for (part, rounds) in &mut parts {
                right &= part(*rounds);
            }
        }
        right
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_right_round_after_round() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
            let mut rounds = kind.start(5).expect("memory");
            assert!((1..4).all(&mut rounds), "{kind:?}");
            assert!(kind.operations() > 0);
        }
        assert_eq!(Kind::named("loops"), None);
    }
}
