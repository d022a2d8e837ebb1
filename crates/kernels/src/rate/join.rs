//! Joins two tables that fill the arena on their keys, by hashing and by sorting.
//!
//! Literature: H. H. Seward, "Information Sorting in the Application of Electronic Digital
//! Computers to Business Operations" (1954: counting and radix sort); D. E. Knuth, "The Art of
//! Computer Programming", volume 3 (1973: linear probing); G. Graefe, "Query Evaluation Techniques
//! for Large Databases" (1993: hash and merge join). A database in character, as SPEC has none.

use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::ensure;
use sys::block::{Arena, Block};

pub(super) const COMPONENT: Component = Component {
    id: ids::JOIN,
    title: "Hash join, radix sort and merge join",
    about: "Joins two tables of 64-bit rows on 32-bit keys, once by a hash table and once by sorting and merging \
            both.",
    reading: "Rows a second, counted once for either join; more is better. Hashing reads all over memory, and \
              sorting writes to 2048 places at once. It is built to need low memory latency, many misses in flight, TLB reach \
              and write bandwidth. The column \"bound by\" of a run names the actual limit.",
    method: "The tables fill the footprint. The hash table probes linearly; the radix sort takes three passes. Both \
             joins must find the matches and the sum that the tables were made with. The sorted tables must be in \
             order with the same rows.",
    source: file!(),
    character: Character::Latency,
    units: "rows",
    reference: 43.8,
    expected_checksum: 0x02bf_b7f5_21d6_be19,
    make: |arena| Ok(Box::new(Join::new(arena)?)),
};

const EMPTY: u64 = u64::MAX;
/// Words for each row of the smaller table: the row, 2 of the hash table, 2 of the larger table and
/// 2 × 2 for sorting that.
const WORDS_PER_ROW: u64 = 9;

struct Join {
    /// Rows of the smaller table (key in the upper half, keys unique) and of the larger one.
    small: Block<u64>,
    large: Block<u64>,
    /// First the hash table, then the sorted smaller table.
    table: Block<u64>,
    sorted: Block<u64>,
    spare: Block<u64>,
    /// Number of matches and the sum of their products: by construction, by hashing and by merging.
    expected: [u64; 2],
    hashed: [u64; 2],
    merged: [u64; 2],
}

/// The key of a row number, one to one: keys of the smaller table are unique.
fn key(row: u64) -> u64 {
    let mut key = (row as u32).wrapping_mul(0x9e37_79b1);
    key ^= key >> 15;
    key = key.wrapping_mul(0x85eb_ca77);
    u64::from(key ^ key >> 13)
}

impl Join {
    fn new(arena: &mut Arena) -> anyhow::Result<Join> {
        let rows = (arena.bytes / (8 * WORDS_PER_ROW)).min(1 << 30);
        ensure!(rows >= 1000, "the join needs at least 72,000 bytes; the arena has {}", arena.bytes);
        let count = usize::try_from(rows)?;
        let mut join = Join {
            small: arena.u64s(count)?,
            large: arena.u64s(2 * count)?,
            table: arena.u64s(2 * count)?,
            sorted: arena.u64s(2 * count)?,
            spare: arena.u64s(2 * count)?,
            expected: [0; 2],
            hashed: [0; 2],
            merged: [0; 2],
        };
        let mut rng = Rng(0x006a_6f69_6e21);
        for (at, row) in join.small.iter_mut().enumerate() {
            *row = key(at as u64) << 32 | rng.next() >> 32;
        }
        for row in join.large.iter_mut() {
            // A quarter of the rows has no match.
            let (at, payload) = (rng.below(rows + rows / 3), rng.next() >> 32);
            *row = key(at) << 32 | payload;
            if let Some(found) = join.small.get(at as usize) {
                join.expected[0] += 1;
                join.expected[1] = join.expected[1].wrapping_add((found & 0xffff_ffff).wrapping_mul(payload));
            }
        }
        Ok(join)
    }
}

#[inline(always)]
fn place(row: u64, slots: u64) -> usize {
    (((row >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).wrapping_mul(slots) >> 32) as usize
}

#[inline(always)]
fn build(rows: &[u64], table: &mut [u64]) {
    table.fill(EMPTY);
    let slots = table.len();
    for &row in rows {
        let mut at = place(row, slots as u64);
        while table[at] != EMPTY {
            at += 1;
            if at == slots {
                at = 0;
            }
        }
        table[at] = row;
    }
}

#[inline(always)]
fn probe(rows: &[u64], table: &[u64]) -> [u64; 2] {
    let slots = table.len();
    let (mut count, mut sum) = (0, 0u64);
    for &row in rows {
        let mut at = place(row, slots as u64);
        loop {
            let found = table[at];
            if (found ^ row) >> 32 == 0 {
                count += 1;
                sum = sum.wrapping_add((found & 0xffff_ffff).wrapping_mul(row & 0xffff_ffff));
                break;
            }
            if found == EMPTY {
                break;
            }
            at += 1;
            if at == slots {
                at = 0;
            }
        }
    }
    [count, sum]
}

#[inline(always)]
fn digit(row: u64, pass: usize) -> usize {
    (row >> (32 + 11 * pass)) as usize & 2047
}

/// Start of the rows with each digit, for all three passes of the radix sort.
#[inline(always)]
fn starts(rows: &[u64], starts: &mut [[u32; 2048]; 3]) {
    *starts = [[0; 2048]; 3];
    for &row in rows {
        starts[0][digit(row, 0)] += 1;
        starts[1][digit(row, 1)] += 1;
        starts[2][digit(row, 2)] += 1;
    }
    for counts in starts {
        let mut begin = 0;
        for count in counts {
            (*count, begin) = (begin, begin + *count);
        }
    }
}

#[inline(always)]
fn scatter(from: &[u64], to: &mut [u64], starts: &mut [u32; 2048], pass: usize) {
    for &row in from {
        let next = &mut starts[digit(row, pass)];
        to[*next as usize] = row;
        *next += 1;
    }
}

fn sort(from: &[u64], through: &mut [u64], to: &mut [u64], last: &mut [u64]) {
    let mut at = [[0; 2048]; 3];
    with_widest_vectors(
        #[inline(always)]
        || starts(from, &mut at),
    );
    with_widest_vectors(
        #[inline(always)]
        || scatter(from, through, &mut at[0], 0),
    );
    with_widest_vectors(
        #[inline(always)]
        || scatter(through, to, &mut at[1], 1),
    );
    with_widest_vectors(
        #[inline(always)]
        || scatter(to, last, &mut at[2], 2),
    );
}

#[inline(always)]
fn merge(small: &[u64], large: &[u64]) -> [u64; 2] {
    let (mut count, mut sum) = (0, 0u64);
    let mut left = small.iter();
    let mut now = left.next();
    for &row in large {
        while let Some(&one) = now
            && one >> 32 < row >> 32
        {
            now = left.next();
        }
        let Some(&one) = now else { break };
        if (one ^ row) >> 32 == 0 {
            count += 1;
            sum = sum.wrapping_add((one & 0xffff_ffff).wrapping_mul(row & 0xffff_ffff));
        }
    }
    [count, sum]
}

/// A checksum of rows that is independent of their order.
fn rows(rows: &[u64]) -> u64 {
    rows.iter().fold(0, |sum: u64, row| sum.wrapping_add(Rng(*row).next()))
}

impl Work for Join {
    fn iterate(&mut self) {
        let Join { small, large, table, sorted, spare, .. } = self;
        with_widest_vectors(
            #[inline(always)]
            || build(small, table),
        );
        self.hashed = with_widest_vectors(
            #[inline(always)]
            || probe(large, table),
        );
        let count = small.len();
        // The larger table uses `sorted` for its first and its last pass.
        sort(small, &mut spare[..count], &mut sorted[..count], &mut table[..count]);
        let mut at = [[0; 2048]; 3];
        with_widest_vectors(
            #[inline(always)]
            || starts(large, &mut at),
        );
        with_widest_vectors(
            #[inline(always)]
            || scatter(large, sorted, &mut at[0], 0),
        );
        with_widest_vectors(
            #[inline(always)]
            || scatter(sorted, spare, &mut at[1], 1),
        );
        with_widest_vectors(
            #[inline(always)]
            || scatter(spare, sorted, &mut at[2], 2),
        );
        self.merged = with_widest_vectors(
            #[inline(always)]
            || merge(&table[..count], sorted),
        );
    }
    fn units(&self) -> u64 {
        2 * (self.small.len() + self.large.len()) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        for (name, found) in [("hash", self.hashed), ("merge", self.merged)] {
            if found != self.expected {
                return Err(format!(
                    "the {name} join finds {found:?}, but the tables have {:?}",
                    self.expected
                ));
            }
        }
        let mut sum = Checksum::new();
        self.expected.iter().for_each(|word| sum.word(*word));
        for (from, to) in [(&self.small, &self.table[..self.small.len()]), (&self.large, &self.sorted[..])] {
            if let Some(at) = to.windows(2).position(|pair| pair[0] >> 32 > pair[1] >> 32) {
                return Err(format!("sorted rows {at} and {} are out of order", at + 1));
            }
            if rows(from) != rows(to) {
                return Err("sorting changed the rows of a table".into());
            }
            to.iter().for_each(|row| sum.word(*row));
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        8 * WORDS_PER_ROW * self.small.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::STANDARD_BYTES;
    use super::*;
    use std::collections::BTreeMap;

    fn joined(bytes: u64) -> anyhow::Result<Join> {
        let mut join = Join::new(&mut Arena::new(bytes))?;
        join.iterate();
        Ok(join)
    }

    #[test]
    fn joins_are_those_of_a_tree_and_a_standard_sort() -> anyhow::Result<()> {
        let join = joined(800_000)?;
        let tree: BTreeMap<u64, u64> = join.small.iter().map(|row| (row >> 32, row & 0xffff_ffff)).collect();
        assert_eq!(tree.len(), join.small.len());
        let (mut count, mut sum) = (0, 0u64);
        for row in join.large.iter() {
            if let Some(payload) = tree.get(&(row >> 32)) {
                count += 1;
                sum = sum.wrapping_add(payload.wrapping_mul(row & 0xffff_ffff));
            }
        }
        assert_eq!([join.hashed, join.merged], [[count, sum]; 2]);
        assert!(count * 10 > join.large.len() as u64 * 7 && count * 10 < join.large.len() as u64 * 8);
        let mut sorted = join.large.to_vec();
        sorted.sort_by_key(|row| row >> 32);
        assert!(sorted[..] == join.sorted[..]);
        Ok(())
    }

    #[test]
    fn any_flipped_bit_is_noticed() -> anyhow::Result<()> {
        let mut join = joined(100_000)?;
        let good = join.verify();
        assert!(good.is_ok());
        let mut rng = Rng(9);
        for _ in 0..300 {
            let (at, bit) = (rng.below(join.large.len() as u64) as usize, rng.below(64));
            join.sorted[at] ^= 1 << bit;
            assert!(join.verify().is_err());
            join.sorted[at] ^= 1 << bit;
            join.table[at / 2] ^= 1 << bit;
            assert!(join.verify().is_err());
            join.table[at / 2] ^= 1 << bit;
            join.hashed[at & 1] ^= 1 << bit;
            assert!(join.verify().is_err());
            join.hashed[at & 1] ^= 1 << bit;
        }
        assert_eq!(join.verify(), good);
        Ok(())
    }

    #[test]
    fn it_fills_any_arena_or_reports_its_needs() -> anyhow::Result<()> {
        for bytes in [16 << 20, (17 << 20) + 12_345, (24 << 20) - 1] {
            let mut join = joined(bytes)?;
            assert!(join.verify().is_ok());
            assert!(join.bytes() <= bytes && join.bytes() * 10 >= bytes * 9);
        }
        assert!(joined(60_000).is_err());
        Ok(())
    }

    #[test]
    fn the_checksum_is_as_expected_with_and_without_wide_vectors() -> anyhow::Result<()> {
        let mut join = joined(STANDARD_BYTES)?;
        assert_eq!(join.verify(), Ok(COMPONENT.expected_checksum));
        build(&join.small, &mut join.table);
        assert_eq!(probe(&join.large, &join.table), join.hashed);
        Ok(())
    }
}
