//! Where the next I/O goes, and what blocks hold that name themselves.

/// In which order a region is gone through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Walk {
    Sequential,
    Random,
}

/// What is done there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    Read,
    Write,
    /// Seven reads to three writes.
    Mixed,
}

impl Op {
    pub fn by_name(name: &str) -> Option<Op> {
        match name {
            "read" => Some(Op::Read),
            "write" => Some(Op::Write),
            "mixed" => Some(Op::Mixed),
            _ => None,
        }
    }

    pub fn writes(self) -> bool {
        self != Op::Read
    }
}

const READS_OF_TEN: u32 = 7;

/// A job's way through its region.
pub struct Pattern {
    walk: Walk,
    op: Op,
    block: u64,
    base: u64,
    blocks: u64,
    next: u64,
    random: fastrand::Rng,
}

/// An I/O to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next {
    pub write: bool,
    pub offset: u64,
    /// The first of a sequential pass through the region.
    pub first: bool,
}

impl Pattern {
    /// Through `bytes` from `base` on, in whole blocks; a region smaller than one block has one.
    pub fn new(walk: Walk, op: Op, block: u64, (base, bytes): (u64, u64), seed: u64) -> Pattern {
        let blocks = (bytes / block).max(1);
        Pattern { walk, op, block, base, blocks, next: 0, random: fastrand::Rng::with_seed(seed) }
    }

    pub fn next(&mut self) -> Next {
        let index = match self.walk {
            Walk::Sequential => self.next % self.blocks,
            Walk::Random => self.random.u64(0..self.blocks),
        };
        self.next += 1;
        let write = match self.op {
            Op::Read => false,
            Op::Write => true,
            Op::Mixed => self.random.u32(0..10) >= READS_OF_TEN,
        };
        let first = self.walk == Walk::Sequential && index == 0;
        Next { write, offset: self.base + index * self.block, first }
    }
}

/// The unit that names itself, bytes.
pub const UNIT: usize = 4096;

/// Word number `index` of the unit that lies at `place` (a number of units) in a generation: the
/// first two name it.
fn word(place: u64, generation: u64, index: u64) -> u64 {
    match index {
        0 => place,
        1 => generation,
        // Different in every word, place and generation: multiplied and folded (as splitmix64
        // does).
        _ => {
            let mixed =
                (place ^ generation.rotate_left(40)).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        }
    }
}

/// Fills whole units that go to `offset`.
pub fn fill(buffer: &mut [u8], offset: u64, generation: u64) {
    for (unit, place) in buffer.chunks_exact_mut(UNIT).zip(offset / UNIT as u64..) {
        for (bytes, index) in unit.chunks_exact_mut(8).zip(0..) {
            bytes.copy_from_slice(&word(place, generation, index).to_le_bytes());
        }
    }
}

/// What is wrong with units that were read from `offset`: the first wrong word and its value.
pub fn wrong(buffer: &[u8], offset: u64, generation: u64) -> Option<String> {
    for (unit, place) in buffer.chunks_exact(UNIT).zip(offset / UNIT as u64..) {
        let at = |index: usize| {
            let bytes: [u8; 8] = unit[index * 8..][..8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let bad = (0..UNIT / 8).find(|index| at(*index) != word(place, generation, *index as u64));
        let Some(bad) = bad else { continue };
        let looks = match (at(0), at(1)) {
            (named, then) if named == place && then < generation => {
                format!("the block has the older generation {then}: a lost write")
            }
            (named, then) if named != place && at(2) == word(named, then, 2) => {
                format!(
                    "the block belongs to file offset {}: a misdirected write or read",
                    named.wrapping_mul(UNIT as u64)
                )
            }
            _ if unit.iter().all(|byte| *byte == 0) => "the block is all zeros".to_string(),
            _ => {
                format!("found {:#018x}, written was {:#018x}", at(bad), word(place, generation, bad as u64))
            }
        };
        let offset = place * UNIT as u64 + bad as u64 * 8;
        return Some(format!("wrong data at file offset {offset}, generation {generation}: {looks}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_passes_cover_the_region_and_say_where_they_begin() {
        let mut pattern = Pattern::new(Walk::Sequential, Op::Write, 10, (100, 39), 1);
        let offsets: Vec<(u64, bool)> =
            (0..5).map(|_| pattern.next()).map(|next| (next.offset, next.first)).collect();
        assert_eq!(offsets, [(100, true), (110, false), (120, false), (100, true), (110, false)]);
        assert!(pattern.next().write);
        let mut tiny = Pattern::new(Walk::Random, Op::Read, 4096, (0, 10), 1);
        assert_eq!(tiny.next(), Next { write: false, offset: 0, first: false });
    }

    #[test]
    fn random_ones_are_spread_evenly_inside_and_a_mix_has_its_shares() {
        let mut pattern = Pattern::new(Walk::Random, Op::Mixed, 4096, (1 << 20, 100 * 4096), 7);
        let (mut seen, mut writes) = ([0u32; 100], 0);
        for _ in 0..20_000 {
            let next = pattern.next();
            let index = (next.offset - (1 << 20)) / 4096;
            assert_eq!((next.offset - (1 << 20)) % 4096, 0);
            seen[index as usize] += 1;
            writes += u32::from(next.write);
        }
        assert!(seen.iter().all(|count| (120..300).contains(count)), "{seen:?}");
        assert!((5600..6400).contains(&writes), "{writes}");
        let again = |seed| Pattern::new(Walk::Random, Op::Read, 1, (0, 1 << 40), seed).next();
        assert!(again(1) == again(1) && again(1) != again(2));
        assert!(Op::by_name("mixed").is_some_and(Op::writes) && Op::by_name("append").is_none());
    }

    #[test]
    fn every_kind_of_damage_is_named_by_its_place() {
        let mut buffer = vec![0; 4 * UNIT];
        let offset = 1 << 20;
        fill(&mut buffer, offset, 3);
        assert_eq!(wrong(&buffer, offset, 3), None);
        let damaged = |damage: &dyn Fn(&mut [u8])| {
            let mut copy = buffer.clone();
            damage(&mut copy);
            wrong(&copy, offset, 3).expect("damaged")
        };
        let flipped = damaged(&|copy| copy[2 * UNIT + 801] ^= 4);
        assert!(
            flipped.contains(&format!("file offset {}, generation 3", offset + 2 * UNIT as u64 + 800)),
            "{flipped}"
        );
        let lost = damaged(&|copy| fill(&mut copy[UNIT..2 * UNIT], offset + UNIT as u64, 2));
        assert!(lost.contains("the older generation 2: a lost write"), "{lost}");
        let misplaced = damaged(&|copy| fill(&mut copy[..UNIT], 40960, 3));
        assert!(misplaced.contains("belongs to file offset 40960"), "{misplaced}");
        assert!(damaged(&|copy| copy[..UNIT].fill(0)).contains("all zeros"));
        // Units differ from each other in every word behind the names, too.
        let words = |place: u64| (2..512).map(move |index| word(place, 3, index));
        assert!(words(1).zip(words(2)).all(|(one, other)| one != other));
    }
}
