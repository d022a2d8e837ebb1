//! What each copy of the rate suite computes, in the manner of SPEC CPU's rate.
//!
//! A component is a file in `rate/` with a [`Component`] and a line in [`components!`].
//! `bench::rate` makes its copies, starts them together and times them.

#![forbid(unsafe_code)]

use model::vocabulary::BenchId;
use model::vocabulary::rate as ids;
use sys::block::Arena;

/// What a component is built to need; what bounds it on a machine, only an experiment shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Character {
    /// Streams through memory.
    Bandwidth,
    /// Follows addresses through memory.
    Latency,
    /// Floating point in caches.
    FloatingPoint,
    /// Integers in caches, branches that can be predicted.
    Integer,
    /// Integers in caches, branches that cannot.
    Branchy,
}

impl Character {
    /// As it stands in run files, for the pure side.
    pub const fn name(self) -> &'static str {
        match self {
            Character::Bandwidth => "memory bandwidth",
            Character::Latency => "memory latency",
            Character::FloatingPoint => "floating point",
            Character::Integer => "integer",
            Character::Branchy => "branchy",
        }
    }

    /// Whether its data fill the footprint that was asked for.
    pub const fn fills_memory(self) -> bool {
        matches!(self, Character::Bandwidth | Character::Latency)
    }
}

/// A component of the suite.
pub struct Component {
    pub id: BenchId,
    pub title: &'static str,
    /// What it computes.
    pub about: &'static str,
    /// What its unit is, which side is better and what moves it.
    pub reading: &'static str,
    /// How it computes and how its answer is checked.
    pub method: &'static str,
    pub source: &'static str,
    pub character: Character,
    /// What a unit of work is, plural: "cell updates".
    pub units: &'static str,
    /// Million units per second of one copy on the reference machine: ratio 1.
    pub reference: f64,
    /// The answer for a arena of [`STANDARD_BYTES`], by any CPU.
    pub answer: u64,
    /// Makes the data for a copy in at most `arena.bytes`; what does not grow with it takes what it
    /// needs.
    pub make: fn(&mut Arena) -> anyhow::Result<Box<dyn Work>>,
}

impl Component {
    /// As users name it: the id without its group.
    pub fn name(&self) -> &'static str {
        let id: &'static str = self.id.into();
        id.strip_prefix("rate.").unwrap_or(id)
    }
}

/// The arena whose answers are stored.
pub const STANDARD_BYTES: u64 = 64 << 20;

/// One copy's data, ready to be worked on again and again.
pub trait Work {
    /// The fixed work once, from the same start every time; this is what is timed. Where it has
    /// equal steps of a millisecond and more, it notes the end of each in its arena's record
    /// (`sys::steps`).
    fn iterate(&mut self);
    /// Units of work in one iteration.
    fn units(&self) -> u64;
    /// Whether the last iteration's result is right, by the problem's own mathematics, and its
    /// checksum: the same bits on every CPU and in every iteration.
    fn answer(&mut self) -> Result<u64, String>;
    /// Bytes that it really uses.
    fn bytes(&self) -> u64;
}

/// SplitMix64 (Steele, Lea & Flood, *Fast Splittable Pseudorandom Number Generators*, 2014): the
/// data of every component.
pub(crate) struct Mix(pub u64);

impl Mix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to below `below`.
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    /// 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A checksum that no single changed bit, no swap and no shift leaves as it was.
#[derive(Clone, Copy)]
pub(crate) struct Sum(u64);

impl Sum {
    pub fn new() -> Sum {
        Sum(0x243f_6a88_85a3_08d3)
    }

    pub fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn f64s(&mut self, values: &[f64]) {
        values.iter().for_each(|value| self.word(value.to_bits()));
    }

    pub fn value(self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

macro_rules! components {
    ($($module:ident)*) => {
        $(mod $module;)*
        /// All components, in display order.
        pub const COMPONENTS: &[Component] = &[$($module::COMPONENT),*];
    };
}

components! {
    bwaves
    lbm
    multigrid
    waves
    triad
    fourier
    sparse
    graph
    join
    molecules
    dense
    rays
    chess
    parse
    machine
    compress
    digest
    align
}
