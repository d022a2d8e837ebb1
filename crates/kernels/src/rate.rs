//! The components of the rate suite, which resembles the rate metrics of SPEC CPU.
//!
//! A component is a file in `rate/` with a [`Component`] and a line in [`components!`].
//! `bench::rate` makes copies of it, starts them at the same time and times them.

#![forbid(unsafe_code)]

use model::vocabulary::BenchId;
use model::vocabulary::rate as ids;
use sys::block::Arena;

/// The resource that a component is built to need. Which one bounds it on a host, only an
/// experiment shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Character {
    /// Streams through memory.
    Bandwidth,
    /// Follows addresses through memory.
    Latency,
    /// Floating point in caches.
    FloatingPoint,
    /// Integers in caches, predictable branches.
    Integer,
    /// Integers in caches, unpredictable branches.
    Branchy,
}

impl Character {
    /// Its name in run files.
    pub const fn name(self) -> &'static str {
        match self {
            Character::Bandwidth => "memory bandwidth",
            Character::Latency => "memory latency",
            Character::FloatingPoint => "floating point",
            Character::Integer => "integer",
            Character::Branchy => "branchy",
        }
    }

    /// Whether its data fill the requested footprint.
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
    /// Name of its units of work, plural: "cell updates".
    pub units: &'static str,
    /// Million units per second of one copy on the reference machine: ratio 1.
    pub reference: f64,
    /// The checksum for an arena of [`STANDARD_BYTES`], on every CPU.
    pub expected_checksum: u64,
    /// Makes the data of a copy: at most `arena.bytes` if they fill the footprint, else a fixed
    /// size.
    pub make: fn(&mut Arena) -> anyhow::Result<Box<dyn Work>>,
}

impl Component {
    /// Its name for users: the id without its group.
    pub fn name(&self) -> &'static str {
        let id: &'static str = self.id.into();
        id.strip_prefix("rate.").unwrap_or(id)
    }
}

/// Size of the arena for [`Component::expected_checksum`], bytes.
pub const STANDARD_BYTES: u64 = 64 << 20;

/// The data of one copy.
pub trait Work {
    /// Does the fixed work once, always from the same initial state; this is timed. If it has equal
    /// steps of 1 ms or more, it records the end of each (`sys::steps`).
    fn iterate(&mut self);
    /// Units of work in one iteration.
    fn units(&self) -> u64;
    /// Checks the last iteration's result by the mathematics of its problem and returns its
    /// checksum: the same bits on every CPU and in every iteration.
    fn verify(&mut self) -> Result<u64, String>;
    /// Bytes that it uses.
    fn bytes(&self) -> u64;
}

/// The random numbers of all components: SplitMix64 (Steele, Lea & Flood, *Fast Splittable
/// Pseudorandom Number Generators*, 2014).
pub(crate) struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..below`.
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A checksum that changes with every flipped bit, swap and shift of its words.
#[derive(Clone, Copy)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub fn new() -> Checksum {
        Checksum(0x243f_6a88_85a3_08d3)
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

/// Whether two numbers differ by less than `within`; false if either is NaN.
fn near(value: f64, right: f64, within: f64) -> bool {
    (value - right).abs() < within
}

/// A row's name, and `(own)` where the component's own tests check its checksum with the same data.
macro_rules! components {
    ($($module:ident $(($own:ident))?)*) => {
        $(mod $module;)*
        /// All components, in display order.
        pub const COMPONENTS: &[Component] = &[$($module::COMPONENT),*];

        #[cfg(test)]
        mod expected_checksums {
            use super::*;

            $(expected_checksum! { $module $($own)? })*
        }
    };
}

/// A test that an iteration on the standard data has the expected checksum.
#[cfg(test)]
macro_rules! expected_checksum {
    ($module:ident own) => {};
    ($module:ident) => {
        #[test]
        fn $module() -> anyhow::Result<()> {
            let mut work = ($module::COMPONENT.make)(&mut Arena::new(STANDARD_BYTES))?;
            work.iterate();
            assert_eq!(work.verify(), Ok($module::COMPONENT.expected_checksum));
            Ok(())
        }
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
    graph(own)
    join(own)
    molecules(own)
    dense(own)
    rays(own)
    chess(own)
    parse
    machine
    compress
    digest
    align(own)
}
