//! Chess: legal-move counts (perft) of the published test positions and an alpha-beta search of
//! fixed depth with a transposition table, on bitboards: make, unmake, sliding attacks by
//! subtraction ("hyperbola quintessence").
//!
//! Literature: C. E. Shannon, "Programming a Computer for Playing Chess" (1950); D. E. Knuth and R.
//! W. Moore, "An Analysis of Alpha-Beta Pruning" (1975); A. L. Zobrist, "A New Hashing Method with
//! Application for Game Playing" (1970). The counts are those of the Chess Programming Wiki's
//! "Perft Results". In character like SPEC's deepsjeng.

use super::{Character, Checksum, Component, Work, ids};
use crate::vectors::with_widest_vectors;

mod board;
mod search;
mod tables;
#[cfg(test)]
mod tests;
use board::Board;
use search::{Search, Slot};

pub(super) const COMPONENT: Component = Component {
    id: ids::CHESS,
    title: "Chess: moves and alpha-beta search",
    about: "Counts legal chess positions on bitboards (perft), and searches positions to a fixed depth by \
            alpha-beta.",
    reading: "Positions a second; more is better. Branches are hard to predict, with bit operations on 64-bit words \
              and short dependent chains. Clock, branch predictor and L2 latency decide; memory does not.",
    method: "Moves are made and unmade, with sliding attacks by subtraction and a transposition table of 512 KiB. \
             Every count must be the published one. Every search must find the known score, and the same for the \
             mirror image. The data stays in the caches at any footprint.",
    source: file!(),
    character: Character::Branchy,
    units: "positions",
    reference: 23.9,
    expected_checksum: 0x524b_2eaf_5cb7_44e3,
    make: |_| Ok(Box::new(with(COUNTS, SEARCHES)?)),
};

/// Perft positions, depths and published counts.
const COUNTS: &[(&str, usize, u64)] = &[
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq", 4, 197_281),
    ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq", 4, 4_085_603),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w -", 5, 674_624),
    ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq", 4, 422_333),
    ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ", 3, 62_379),
    ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w -", 3, 89_890),
];
/// Searched positions, depths and their scores for the side to move.
const SEARCHES: &[(&str, usize, i32)] = &[
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq", 7, 108),
    ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq", 6, -131),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w -", 8, -10),
    ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w -", 5, 135),
];

struct Chess {
    counted: Vec<(Board, usize)>,
    searched: Vec<(Board, usize)>,
    search: Search,
    /// Published counts and known scores.
    known: (Vec<u64>, Vec<i32>),
    /// Games and positions of each count.
    counts: Vec<(u64, u64)>,
    /// Score and positions of each search.
    scores: Vec<(i32, u64)>,
    reached: u64,
}

fn with(counts: &[(&str, usize, u64)], searches: &[(&str, usize, i32)]) -> anyhow::Result<Chess> {
    let mut chess = Chess {
        counted: Vec::new(),
        searched: Vec::new(),
        search: Search::new(),
        known: (counts.iter().map(|known| known.2).collect(), Vec::new()),
        counts: vec![(0, 0); counts.len()],
        scores: vec![(0, 0); 2 * searches.len()],
        reached: 0,
    };
    for &(text, depth, _) in counts {
        chess.counted.push((Board::read(text)?, depth));
    }
    for &(text, depth, score) in searches {
        let board = Board::read(text)?;
        chess.searched.extend([(board, depth), (board.mirrored(), depth)]);
        chess.known.1.extend([score, score]);
    }
    chess.iterate();
    Ok(chess)
}

impl Work for Chess {
    fn iterate(&mut self) {
        let search = &mut self.search;
        self.reached = 0;
        for ((board, depth), count) in self.counted.iter().zip(&mut self.counts) {
            let games = with_widest_vectors(
                #[inline(always)]
                || search.count(*board, *depth),
            );
            *count = (games, search.reached);
            self.reached += search.reached;
        }
        for ((board, depth), score) in self.searched.iter().zip(&mut self.scores) {
            let value = with_widest_vectors(
                #[inline(always)]
                || search.best(*board, *depth),
            );
            *score = (value, search.reached);
            self.reached += search.reached;
        }
    }
    fn units(&self) -> u64 {
        self.reached
    }
    fn verify(&mut self) -> Result<u64, String> {
        let mut sum = Checksum::new();
        let mut total = 0;
        for (at, ((games, reached), known)) in self.counts.iter().zip(&self.known.0).enumerate() {
            if games != known {
                return Err(format!("position {at} has {games} games, not the published {known}"));
            }
            total = reached.wrapping_add(total);
            sum.word(*games);
            sum.word(*reached);
        }
        for (at, ((score, reached), known)) in self.scores.iter().zip(&self.known.1).enumerate() {
            if score != known {
                return Err(format!("search {at} scores {score}, not {known}"));
            }
            total = reached.wrapping_add(total);
            sum.word(*score as u64);
            sum.word(*reached);
        }
        if total != self.reached {
            return Err("the numbers of positions reached do not add up".into());
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        (self.search.slots.len() * size_of::<Slot>() + size_of::<Search>()) as u64
    }
}
