//! Sequence alignment: the best local alignments of pairs of sequences with affine gaps, by
//! anti-diagonals.
//!
//! Literature: T. F. Smith and M. S. Waterman, "Identification of Common Molecular Subsequences"
//! (1981); O. Gotoh, "An Improved Algorithm for Matching Biological Sequences" (1982); A. Wozniak,
//! "Using Video-Oriented Instructions to Speed Up Sequence Comparison" (1997: anti-diagonals).
//! Bioinformatics, as SPEC's hmmer had it in 2006.

use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;

pub(super) const COMPONENT: Component = Component {
    id: ids::ALIGN,
    title: "Smith-Waterman alignment",
    about: "Aligns sequences of 2000 letters with mutated copies by the full dynamic-programming matrix with affine \
            gaps, in 16-bit integers.",
    reading: "Matrix cells a second; more is better. The work is additions and maxima on 16-bit vectors with loads \
              from L1. Vector width, clock and L1 bandwidth decide; memory does not.",
    method: "Copies have substitutions, insertions and deletions amid foreign letters. The matrix is filled by \
             anti-diagonals, each pair both ways round. Each score must be that of the planted mutations. The data \
             stays in the caches at any footprint.",
    source: file!(),
    character: Character::Integer,
    units: "cells",
    reference: 6200.0,
    expected_checksum: 0xcf08_db0c_b5bf_fadc,
    make: |_| Ok(Box::new(Align::new(PAIRS, LENGTH))),
};

const LENGTH: usize = 2000;
const PAIRS: usize = 240;
const MATCH: i16 = 5;
const MISMATCH: i16 = -4;
/// Costs of a gap's first letter and of each further one.
const OPEN: i16 = 12;
const EXTEND: i16 = 2;
/// Letters that no sequence contains: around a copy, and for mutations inside it.
const AROUND: i16 = 90;
const MUTATED: i16 = 91;
/// Below every score.
const MIN_SCORE: i16 = -20_000;

struct Pair {
    one: Vec<i16>,
    /// Reversed.
    other: Vec<i16>,
    /// Score of the planted mutations.
    score: i16,
}

struct Align {
    pairs: Vec<Pair>,
    rows: Rows,
    /// Two for each pair: in both directions.
    scores: Vec<i16>,
}

/// Scores on anti-diagonals, by letter of the first sequence, with an extra element in front.
struct Rows {
    now: Vec<i16>,
    last: Vec<i16>,
    before: Vec<i16>,
    /// Best scores with a gap in the second sequence: now and last.
    down: [Vec<i16>; 2],
    /// Best score with a gap in the first sequence.
    across: Vec<i16>,
}

/// Computes the cells of an anti-diagonal from the scores on the two before it; returns the best.
#[inline(always)]
fn diagonal(
    letters: [&[i16]; 2],
    before: &[i16],
    last: [&[i16]; 2],
    gaps: [&mut [i16]; 3],
    now: &mut [i16],
) -> i16 {
    let [one, other] = letters;
    let [up, left] = last;
    let [over, down, across] = gaps;
    let mut best = 0;
    // Iterators instead of indices: code that can panic would not be inlined into its caller.
    let read = one.iter().zip(other).zip(before).zip(up).zip(left).zip(over.iter());
    for (((((((one, other), before), up), left), over), down), (across, now)) in
        read.zip(down).zip(across.iter_mut().zip(now))
    {
        let pair = if one == other { MATCH } else { MISMATCH };
        let gap = (*over - EXTEND).max(*up - OPEN);
        let other_gap = (*across - EXTEND).max(*left - OPEN);
        let score = (*before + pair).max(gap).max(other_gap).max(0);
        *down = gap;
        *across = other_gap;
        *now = score;
        best = best.max(score);
    }
    best
}

impl Rows {
    fn new(length: usize) -> Rows {
        let row = || vec![0; length + 1];
        Rows { now: row(), last: row(), before: row(), down: [row(), row()], across: row() }
    }

    /// The score of the best local alignment of `one` with the reverse of `other`.
    fn score(&mut self, one: &[i16], other: &[i16]) -> i16 {
        let Rows { now, last, before, down: [over, down], across } = self;
        for row in [&mut *now, &mut *last, &mut *before] {
            row.fill(0);
        }
        for row in [&mut *over, &mut *down, &mut *across] {
            row.fill(MIN_SCORE);
        }
        let mut best = 0;
        for step in 0..one.len() + other.len() - 1 {
            // Pairs letter `i` of `one`, in `begin..end`, with letter `step - i` of `other`.
            let begin = (step + 1).saturating_sub(other.len());
            let end = one.len().min(step + 1);
            let first = other.len() + begin - step - 1;
            let letters = [&one[begin..end], &other[first..]];
            let scores = [&last[begin..], &last[begin + 1..]];
            let gaps = [&mut over[begin..], &mut down[begin + 1..], &mut across[begin + 1..]];
            let (from, to) = (&before[begin..], &mut now[begin + 1..]);
            let found = with_widest_vectors(
                #[inline(always)]
                || diagonal(letters, from, scores, gaps, to),
            );
            best = best.max(found);
            std::mem::swap(before, last);
            std::mem::swap(last, now);
            std::mem::swap(over, down);
        }
        best
    }
}

/// A sequence, a mutated copy of a part of it among foreign letters, and the score of that copy.
fn pair(rng: &mut Rng, length: usize) -> Pair {
    let one: Vec<i16> = (0..length).map(|_| rng.below(20) as i16).collect();
    let quarter = length as u64 / 4;
    let begin = rng.below(quarter) as usize;
    let end = length - rng.below(quarter) as usize;
    let mut other = vec![AROUND; rng.below(quarter) as usize];
    let mut score = 0;
    let mut since = 0;
    let mut at = begin;
    while at < end {
        // Mutations are 20 kept letters apart, so the best alignment continues across each.
        let change = if since >= 20 && at + 30 < end { rng.below(60) } else { 9 };
        since = if change < 3 { 0 } else { since + 1 };
        let gap = 1 + rng.below(6);
        match change {
            0 => {
                other.push(MUTATED);
                score += MISMATCH;
                at += 1;
            }
            1 => {
                other.extend((0..gap).map(|_| MUTATED));
                score -= OPEN + (gap as i16 - 1) * EXTEND;
            }
            2 => {
                at += gap as usize;
                score -= OPEN + (gap as i16 - 1) * EXTEND;
            }
            _ => {
                other.push(one[at]);
                score += MATCH;
                at += 1;
            }
        }
    }
    other.resize(length + length / 4, AROUND);
    other.reverse();
    Pair { one, other, score }
}

impl Align {
    fn new(pairs: usize, length: usize) -> Align {
        let mut rng = Rng(0x616c_6967_6e21);
        let pairs: Vec<Pair> = (0..pairs).map(|_| pair(&mut rng, length)).collect();
        Align { scores: vec![0; 2 * pairs.len()], rows: Rows::new(length + length / 4), pairs }
    }
}

impl Work for Align {
    fn iterate(&mut self) {
        for (pair, scores) in self.pairs.iter().zip(self.scores.chunks_exact_mut(2)) {
            // Reversing both sequences keeps the score, so `other` can be the first sequence.
            scores[0] = self.rows.score(&pair.one, &pair.other);
            scores[1] = self.rows.score(&pair.other, &pair.one);
        }
    }
    fn units(&self) -> u64 {
        self.pairs.iter().map(|pair| 2 * (pair.one.len() * pair.other.len()) as u64).sum()
    }
    fn verify(&mut self) -> Result<u64, String> {
        let mut sum = Checksum::new();
        for (at, (pair, scores)) in self.pairs.iter().zip(self.scores.chunks_exact(2)).enumerate() {
            if scores != [pair.score; 2] {
                return Err(format!(
                    "pair {at} scores {scores:?}, but its planted mutations give {}",
                    pair.score
                ));
            }
            scores.iter().for_each(|score| sum.word(*score as u64));
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let letters: usize = self.pairs.iter().map(|pair| pair.one.len() + pair.other.len()).sum();
        (2 * (letters + 6 * self.rows.now.len() + self.scores.len())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recurrences as Smith and Waterman wrote them: any gap, of any length, at every cell.
    fn plain(one: &[i16], other: &[i16]) -> i16 {
        let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
        let mut best = 0;
        for i in 1..=one.len() {
            for j in 1..=other.len() {
                let mut score =
                    table[i - 1][j - 1] + if one[i - 1] == other[j - 1] { MATCH } else { MISMATCH };
                for gap in 1..=i.max(j) {
                    let cost = OPEN + (gap as i16 - 1) * EXTEND;
                    if gap <= i {
                        score = score.max(table[i - gap][j] - cost);
                    }
                    if gap <= j {
                        score = score.max(table[i][j - gap] - cost);
                    }
                }
                table[i][j] = score.max(0);
                best = best.max(score);
            }
        }
        best
    }

    #[test]
    fn scores_are_those_of_the_plain_recurrences() {
        let mut rng = Rng(11);
        let mut rows = Rows::new(80);
        for (long, short, letters) in
            [(1, 1, 2), (40, 30, 2), (30, 40, 3), (64, 64, 4), (80, 7, 2), (5, 80, 2)]
        {
            for _ in 0..10 {
                let one: Vec<i16> = (0..long).map(|_| rng.below(letters) as i16).collect();
                let mut other: Vec<i16> = (0..short).map(|_| rng.below(letters) as i16).collect();
                let known = plain(&one, &other);
                other.reverse();
                assert_eq!([rows.score(&one, &other), rows.score(&other, &one)], [known; 2]);
            }
        }
    }

    #[test]
    fn an_anti_diagonal_is_the_same_without_wide_vectors() {
        let mut rng = Rng(12);
        let mut row = || (0..100).map(|_| rng.below(9) as i16).collect::<Vec<i16>>();
        let rows = [row(), row(), row(), row(), row()];
        let run = |wide: bool| {
            let mut out = [rows[0].clone(), rows[1].clone(), rows[2].clone(), rows[3].clone()];
            let [over, down, across, now] = &mut out;
            let gaps = [&mut over[..], &mut down[..], &mut across[..]];
            let letters = [&rows[3][..], &rows[4][..]];
            let last = [&rows[0][..], &rows[1][..]];
            let best = if wide {
                with_widest_vectors(
                    #[inline(always)]
                    || diagonal(letters, &rows[2], last, gaps, now),
                )
            } else {
                diagonal(letters, &rows[2], last, gaps, now)
            };
            (best, out)
        };
        assert_eq!(run(true), run(false));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let mut align = Align::new(4, 200);
        align.iterate();
        let good = align.verify();
        assert!(good.is_ok(), "{good:?}");
        for bit in 0..16 {
            for at in 0..align.scores.len() {
                align.scores[at] ^= 1 << bit;
                assert!(align.verify().is_err());
                align.scores[at] ^= 1 << bit;
            }
        }
        assert_eq!(align.verify(), good);
    }

    #[test]
    fn the_checksum_is_as_expected() {
        let mut align = Align::new(PAIRS, LENGTH);
        // All of it would take long without optimisation: a few pairs, and the planted scores for
        // the others.
        for (pair, scores) in align.pairs.iter().zip(align.scores.chunks_exact_mut(2)) {
            scores.fill(pair.score);
        }
        assert_eq!(align.verify(), Ok(COMPONENT.expected_checksum));
        for at in [0, PAIRS / 2, PAIRS - 1] {
            let Pair { one, other, score } = &align.pairs[at];
            assert_eq!([align.rows.score(one, other), align.rows.score(other, one)], [*score; 2]);
        }
    }
}
