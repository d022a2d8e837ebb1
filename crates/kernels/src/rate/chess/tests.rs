//! Positions whose counts are published, plain minimax, and faults.

use super::board::Board;
use super::search::Search;
use super::*;

fn plain(board: &mut Board, depth: usize) -> u64 {
    let mut steps = [0; 256];
    let count = board.moves(&mut steps);
    let mut ends = 0;
    for step in &steps[..count] {
        let before = *board;
        let undo = board.make(*step);
        if !board.checked(before.side) {
            ends += if depth == 1 { 1 } else { plain(board, depth - 1) };
        }
        board.unmake(*step, undo);
        assert_eq!(*board, before);
    }
    ends
}

fn minimax(board: &Board, depth: usize) -> i32 {
    if depth == 0 {
        return board.value();
    }
    let mut steps = [0; 256];
    let count = board.moves(&mut steps);
    let mut best = None;
    for step in &steps[..count] {
        let mut next = *board;
        next.make(*step);
        if !next.checked(board.side) {
            best = best.max(Some(-minimax(&next, depth - 1)));
        }
    }
    best.unwrap_or(if board.checked(board.side) { -20_000 - depth as i32 } else { 0 })
}

#[test]
fn counts_are_the_published_ones_by_recursion_too() -> anyhow::Result<()> {
    for (at, published) in
        [[20, 400, 8902], [48, 2039, 97_862], [14, 191, 2812], [6, 264, 9467]].iter().enumerate()
    {
        let board = Board::read(COUNTS[at].0)?;
        for (depth, count) in published.iter().enumerate() {
            assert_eq!(plain(&mut board.clone(), depth + 1), *count);
            assert_eq!(Search::new().count(board, depth + 1), *count);
            assert_eq!(Search::new().count(board.mirrored(), depth + 1), *count);
        }
    }
    Ok(())
}

#[test]
fn alpha_beta_finds_the_minimax_score() -> anyhow::Result<()> {
    let mut search = Search::new();
    for (text, _, _) in SEARCHES {
        let board = Board::read(text)?;
        for depth in 1..4 {
            let score = minimax(&board, depth);
            assert_eq!(search.best(board, depth), score, "{text} {depth}");
            assert_eq!(
                with_widest_vectors(
                    #[inline(always)]
                    || search.best(board.mirrored(), depth)
                ),
                score
            );
        }
    }
    // Back-rank mate in one and, with a rook more, in two.
    let mate = Board::read("6k1/5ppp/8/8/8/8/8/R6K w -")?;
    assert_eq!(search.best(mate, 2), 20_001);
    assert_eq!(search.best(mate, 4), 20_003);
    Ok(())
}

#[test]
fn a_flipped_bit_is_noticed_and_the_checksum_is_as_expected() -> anyhow::Result<()> {
    let mut chess = with(COUNTS, SEARCHES)?;
    assert_eq!(chess.verify(), Ok(COMPONENT.expected_checksum));
    for bit in [0, 17, 63] {
        chess.counts[1].0 ^= 1 << bit;
        assert!(chess.verify().is_err());
        chess.counts[1].0 ^= 1 << bit;
        chess.scores[2].1 ^= 1 << bit;
        assert!(chess.verify().is_err());
        chess.scores[2].1 ^= 1 << bit;
        chess.scores[0].0 ^= 1 << (bit & 31);
        assert!(chess.verify().is_err());
        chess.scores[0].0 ^= 1 << (bit & 31);
    }
    assert_eq!(chess.verify(), Ok(COMPONENT.expected_checksum));
    Ok(())
}
