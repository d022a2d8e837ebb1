//! Perft and alpha-beta with explicit stacks (so that the whole becomes one function, compiled for
//! the CPU).

use super::board::{Board, Move, Undo, exchange};

const DEEPEST: usize = 12;
const SLOTS: usize = 1 << 15;
const MATE: i32 = 20_000;
const LIMIT: i32 = 30_000;

/// What a search found out about a position.
#[derive(Clone, Copy, Default)]
pub struct Slot {
    key: u64,
    step: Move,
    score: i16,
    depth: u8,
    /// 1 exact, 2 at least, 3 at most.
    bound: u8,
}

/// A position on the path of a search.
#[derive(Clone, Copy)]
struct Ply {
    steps: [Move; 256],
    count: usize,
    next: usize,
    undo: Undo,
    step: Move,
    alpha: i32,
    beta: i32,
    first: i32,
    best: i32,
    best_step: Move,
    legal: bool,
    killer: Move,
}

pub struct Search {
    plies: Vec<Ply>,
    pub slots: Vec<Slot>,
    /// Positions reached by the last count or search.
    pub reached: u64,
}

/// Puts the best-looking of the steps from `next` on at `next`.
#[inline(always)]
fn choose(ply: &mut Ply, hinted: Move) {
    let next = ply.next;
    let Some(left) = ply.steps.get_mut(next..ply.count) else { return };
    let mut most = 0;
    let mut at = 0;
    for (index, step) in left.iter().enumerate() {
        let (taken, piece) = exchange(*step);
        let mut rank = if taken == 6 { u32::from(*step == ply.killer) } else { 16 * taken + 22 - piece };
        if *step == hinted {
            rank = 1000;
        }
        if rank > most {
            (most, at) = (rank, index);
        }
    }
    if at != 0 {
        left.swap(0, at);
    }
}

impl Search {
    pub fn new() -> Search {
        let ply = Ply {
            steps: [0; 256],
            count: 0,
            next: 0,
            undo: Undo::default(),
            step: 0,
            alpha: 0,
            beta: 0,
            first: 0,
            best: 0,
            best_step: 0,
            legal: false,
            killer: 0,
        };
        Search { plies: vec![ply; DEEPEST], slots: vec![Slot::default(); SLOTS], reached: 0 }
    }

    /// How many sequences of `depth` legal moves there are.
    #[inline(always)]
    pub fn count(&mut self, mut board: Board, depth: usize) -> u64 {
        let depth = depth.clamp(1, DEEPEST);
        let (mut ends, mut reached, mut at) = (0, 0, 0);
        self.plies[0].count = board.moves(&mut self.plies[0].steps);
        self.plies[0].next = 0;
        loop {
            let ply = &mut self.plies[at];
            if ply.next == ply.count {
                if at == 0 {
                    break;
                }
                at -= 1;
                board.unmake(self.plies[at].step, self.plies[at].undo);
                continue;
            }
            let step = ply.steps[ply.next & 255];
            ply.next += 1;
            let side = board.side;
            let undo = board.make(step);
            if board.checked(side) {
                board.unmake(step, undo);
                continue;
            }
            reached += 1;
            if at + 1 == depth {
                ends += 1;
                board.unmake(step, undo);
                continue;
            }
            (ply.step, ply.undo) = (step, undo);
            at += 1;
            self.plies[at].count = board.moves(&mut self.plies[at].steps);
            self.plies[at].next = 0;
        }
        self.reached = reached;
        ends
    }

    /// The minimax score of `board` at `depth` for its side to move.
    #[inline(always)]
    #[expect(clippy::too_many_lines, reason = "timed: in parts it is 3 % slower")]
    pub fn best(&mut self, mut board: Board, depth: usize) -> i32 {
        let depth = depth.clamp(1, DEEPEST);
        self.slots.fill(Slot::default());
        for ply in &mut self.plies {
            ply.killer = 0;
        }
        let (mut reached, mut at, mut enter) = (0, 0, true);
        (self.plies[0].alpha, self.plies[0].beta) = (-LIMIT, LIMIT);
        let score = loop {
            let left = depth - at;
            let mut done = None;
            let slot = (board.key >> 40) as usize & (SLOTS - 1);
            let ply = &mut self.plies[at];
            if enter {
                enter = false;
                let known = self.slots[slot];
                let same = known.key == board.key && known.bound != 0;
                let score = i32::from(known.score);
                if same
                    && usize::from(known.depth) == left
                    && (known.bound == 1
                        || known.bound == 2 && score >= ply.beta
                        || known.bound == 3 && score <= ply.alpha)
                {
                    done = Some(score);
                } else {
                    ply.count = board.moves(&mut ply.steps);
                    ply.next = 0;
                    (ply.first, ply.best, ply.best_step, ply.legal) = (ply.alpha, -LIMIT, 0, false);
                    choose(ply, if same { known.step } else { 0 });
                }
            } else if ply.next < ply.count && ply.best < ply.beta {
                choose(ply, 0);
            }
            if done.is_none() && (ply.next == ply.count || ply.best >= ply.beta) {
                if !ply.legal {
                    // Mate, the worse the sooner, or stalemate.
                    ply.best = if board.checked(board.side) { -MATE - left as i32 } else { 0 };
                }
                if ply.best >= ply.beta && exchange(ply.best_step).0 == 6 {
                    ply.killer = ply.best_step;
                }
                let bound = if ply.best >= ply.beta {
                    2
                } else if ply.best <= ply.first {
                    3
                } else {
                    1
                };
                let (step, score) = (ply.best_step, ply.best as i16);
                self.slots[slot] = Slot { key: board.key, step, score, depth: left as u8, bound };
                done = Some(ply.best);
            }
            if let Some(score) = done {
                if at == 0 {
                    break score;
                }
                at -= 1;
                board.unmake(self.plies[at].step, self.plies[at].undo);
                self.plies[at].offer(-score);
                continue;
            }
            let step = ply.steps[ply.next & 255];
            ply.next += 1;
            let side = board.side;
            let undo = board.make(step);
            if board.checked(side) {
                board.unmake(step, undo);
                continue;
            }
            reached += 1;
            (ply.step, ply.undo, ply.legal) = (step, undo, true);
            if at + 1 == depth {
                let score = -board.value();
                board.unmake(step, undo);
                ply.offer(score);
                continue;
            }
            let (alpha, beta) = (-ply.beta, -ply.alpha);
            at += 1;
            (self.plies[at].alpha, self.plies[at].beta) = (alpha, beta);
            enter = true;
        };
        self.reached = reached;
        score
    }
}

impl Ply {
    #[inline(always)]
    fn offer(&mut self, score: i32) {
        if score > self.best {
            (self.best, self.best_step) = (score, self.step);
            self.alpha = self.alpha.max(score);
        }
    }
}
