//! Two tables joined on their keys, by hashing and by sorting, filling the room.
//!
//! Literature: H. H. Seward, "Information Sorting in the Application of Electronic Digital
//! Computers to Business Operations" (1954: counting and radix sort); D. E. Knuth, "The Art of
//! Computer Programming", volume 3 (1973: linear probing); G. Graefe, "Query Evaluation Techniques
//! for Large Databases" (1993: hash and merge join). A database in character, as SPEC has none.

use super::{Character, Component, Mix, Sum, Work, ids};
use crate::widest::widest;
use anyhow::ensure;
use sys::block::{Block, Room};

pub(super) const COMPONENT: Component = Component {
    id: ids::JOIN,
    title: "join: hash join, radix sort and merge join",
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
    answer: 0x02bf_b7f5_21d6_be19,
    make,
};

const EMPTY: u64 = u64::MAX;
/// Words per row of the smaller table: itself, 2 of hash table, 2 of the larger table and twice 2
/// to sort it.
const WORDS: u64 = 9;

struct Join {
    /// Rows of the smaller table (key in the upper half, keys unique) and of the larger one.
    small: Block<u64>,
    large: Block<u64>,
    /// The hash table, then the smaller table sorted.
    table: Block<u64>,
    sorted: Block<u64>,
    spare: Block<u64>,
    /// Matches and the sum of their products, by construction, by hashing and by merging.
    known: [u64; 2],
    hashed: [u64; 2],
    merged: [u64; 2],
}

/// One to one: no two rows of the smaller table share a key.
fn key(row: u64) -> u64 {
    let mut key = (row as u32).wrapping_mul(0x9e37_79b1);
    key ^= key >> 15;
    key = key.wrapping_mul(0x85eb_ca77);
    u64::from(key ^ key >> 13)
}

fn make(room: &mut Room) -> anyhow::Result<Box<dyn Work>> {
    Ok(Box::new(Join::new(room)?))
}

impl Join {
    fn new(room: &mut Room) -> anyhow::Result<Join> {
        let rows = (room.bytes / (8 * WORDS)).min(1 << 30);
        ensure!(rows >= 1000, "the join needs 72,000 bytes or more; the room has {}", room.bytes);
        let count = usize::try_from(rows)?;
        let mut join = Join {
            small: room.u64s(count)?,
            large: room.u64s(2 * count)?,
            table: room.u64s(2 * count)?,
            sorted: room.u64s(2 * count)?,
            spare: room.u64s(2 * count)?,
            known: [0; 2],
            hashed: [0; 2],
            merged: [0; 2],
        };
        let mut mix = Mix(0x006a_6f69_6e21);
        for (at, row) in join.small.iter_mut().enumerate() {
            *row = key(at as u64) << 32 | mix.next() >> 32;
        }
        for row in join.large.iter_mut() {
            // A quarter finds no match.
            let (at, payload) = (mix.below(rows + rows / 3), mix.next() >> 32);
            *row = key(at) << 32 | payload;
            if let Some(found) = join.small.get(at as usize) {
                join.known[0] += 1;
                join.known[1] = join.known[1].wrapping_add((found & 0xffff_ffff).wrapping_mul(payload));
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

/// Where the rows with each digit begin.
#[inline(always)]
fn begins(rows: &[u64], begins: &mut [[u32; 2048]; 3]) {
    *begins = [[0; 2048]; 3];
    for &row in rows {
        begins[0][digit(row, 0)] += 1;
        begins[1][digit(row, 1)] += 1;
        begins[2][digit(row, 2)] += 1;
    }
    for counts in begins {
        let mut begin = 0;
        for count in counts {
            (*count, begin) = (begin, begin + *count);
        }
    }
}

#[inline(always)]
fn spread(from: &[u64], to: &mut [u64], begins: &mut [u32; 2048], pass: usize) {
    for &row in from {
        let next = &mut begins[digit(row, pass)];
        to[*next as usize] = row;
        *next += 1;
    }
}

fn sort(from: &[u64], through: &mut [u64], to: &mut [u64], last: &mut [u64]) {
    let mut at = [[0; 2048]; 3];
    widest(
        #[inline(always)]
        || begins(from, &mut at),
    );
    widest(
        #[inline(always)]
        || spread(from, through, &mut at[0], 0),
    );
    widest(
        #[inline(always)]
        || spread(through, to, &mut at[1], 1),
    );
    widest(
        #[inline(always)]
        || spread(to, last, &mut at[2], 2),
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

/// The same for the same rows in any order.
fn rows(all: &[u64]) -> u64 {
    all.iter().fold(0, |sum: u64, row| sum.wrapping_add(Mix(*row).next()))
}

impl Work for Join {
    fn iterate(&mut self) {
        let Join { small, large, table, sorted, spare, .. } = self;
        widest(
            #[inline(always)]
            || build(small, table),
        );
        self.hashed = widest(
            #[inline(always)]
            || probe(large, table),
        );
        let count = small.len();
        // The last pass of the larger table goes back to where its first came from.
        sort(small, &mut spare[..count], &mut sorted[..count], &mut table[..count]);
        let mut at = [[0; 2048]; 3];
        widest(
            #[inline(always)]
            || begins(large, &mut at),
        );
        widest(
            #[inline(always)]
            || spread(large, sorted, &mut at[0], 0),
        );
        widest(
            #[inline(always)]
            || spread(sorted, spare, &mut at[1], 1),
        );
        widest(
            #[inline(always)]
            || spread(spare, sorted, &mut at[2], 2),
        );
        self.merged = widest(
            #[inline(always)]
            || merge(&table[..count], sorted),
        );
    }
    fn units(&self) -> u64 {
        2 * (self.small.len() + self.large.len()) as u64
    }
    fn answer(&mut self) -> Result<u64, String> {
        for (name, found) in [("hash", self.hashed), ("merge", self.merged)] {
            if found != self.known {
                return Err(format!("the {name} join finds {found:?}; the tables have {:?}", self.known));
            }
        }
        let mut sum = Sum::new();
        self.known.iter().for_each(|word| sum.word(*word));
        for (from, to) in [(&self.small, &self.table[..self.small.len()]), (&self.large, &self.sorted[..])] {
            if let Some(at) = to.windows(2).position(|pair| pair[0] >> 32 > pair[1] >> 32) {
                return Err(format!("rows {at} and {} are out of order", at + 1));
            }
            if rows(from) != rows(to) {
                return Err("a sorted table has other rows than before".into());
            }
            to.iter().for_each(|row| sum.word(*row));
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        8 * WORDS * self.small.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::STANDARD_BYTES;
    use super::*;
    use std::collections::BTreeMap;

    fn joined(bytes: u64) -> anyhow::Result<Join> {
        let mut join = Join::new(&mut Room::new(bytes))?;
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
        let good = join.answer();
        assert!(good.is_ok());
        let mut mix = Mix(9);
        for _ in 0..300 {
            let (at, bit) = (mix.below(join.large.len() as u64) as usize, mix.below(64));
            join.sorted[at] ^= 1 << bit;
            assert!(join.answer().is_err());
            join.sorted[at] ^= 1 << bit;
            join.table[at / 2] ^= 1 << bit;
            assert!(join.answer().is_err());
            join.table[at / 2] ^= 1 << bit;
            join.hashed[at & 1] ^= 1 << bit;
            assert!(join.answer().is_err());
            join.hashed[at & 1] ^= 1 << bit;
        }
        assert_eq!(join.answer(), good);
        Ok(())
    }

    #[test]
    fn it_fills_any_room_or_says_what_it_needs() -> anyhow::Result<()> {
        for bytes in [16 << 20, (17 << 20) + 12_345, (24 << 20) - 1] {
            let mut join = joined(bytes)?;
            assert!(join.answer().is_ok());
            assert!(join.bytes() <= bytes && join.bytes() * 10 >= bytes * 9);
        }
        assert!(joined(60_000).is_err());
        Ok(())
    }

    #[test]
    fn the_answer_is_as_stored_and_the_same_without_wide_vectors() -> anyhow::Result<()> {
        let mut join = joined(STANDARD_BYTES)?;
        assert_eq!(join.answer(), Ok(COMPONENT.answer));
        build(&join.small, &mut join.table);
        assert_eq!(probe(&join.large, &join.table), join.hashed);
        Ok(())
    }
}
