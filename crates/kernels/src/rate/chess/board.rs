//! A chess board of bitboards: attacks, moves, make and unmake.

pub use super::tables::{BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK};
use super::tables::{BLACK_KEY, TABLES};
use anyhow::{Context, ensure};

const EMPTY: u8 = 6;
const NO_FILE: u8 = 8;

/// A move: from, to (6 bits each), the piece that moves, the piece it becomes, the piece taken (3
/// bits each), kind.
pub type Move = u32;
const PLAIN: u32 = 0;
const DOUBLE: u32 = 1;
const PASSING: u32 = 2;
const CASTLE: u32 = 3;

pub fn pack(from: u32, to: u32, piece: usize, becomes: usize, taken: u8, kind: u32) -> Move {
    from | to << 6 | (piece as u32) << 12 | (becomes as u32) << 15 | u32::from(taken) << 18 | kind << 21
}
/// The piece taken (6: none) and the piece that moves.
pub fn exchange(step: Move) -> (u32, u32) {
    (step >> 18 & 7, step >> 12 & 7)
}

#[inline(always)]
fn along(occupied: u64, from: u64, line: u64) -> u64 {
    let forward = occupied & line;
    let back = forward.swap_bytes().wrapping_sub(from.swap_bytes());
    (forward.wrapping_sub(from) ^ back.swap_bytes()) & line
}
#[inline(always)]
pub fn bishop(at: usize, occupied: u64) -> u64 {
    let lines = &TABLES.lines[at & 63];
    along(occupied, 1 << at, lines[1]) | along(occupied, 1 << at, lines[2])
}
#[inline(always)]
pub fn rook(at: usize, occupied: u64) -> u64 {
    let shift = at & 56;
    let inner = (occupied >> (shift + 1) & 63) as usize;
    along(occupied, 1 << at, TABLES.lines[at & 63][0]) | u64::from(TABLES.rank[at & 7][inner]) << shift
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Board {
    pub pieces: [u64; 6],
    pub colours: [u64; 2],
    squares: [u8; 64],
    /// 0 white, 1 black.
    pub side: usize,
    /// Castling: white short 1, long 2, black short 4, long 8.
    rights: u8,
    /// File of a pawn that may be taken in passing, or 8.
    passing: u8,
    pub key: u64,
    /// Worth of white's pieces and squares less black's.
    pub worth: i32,
}

/// What a move destroys.
#[derive(Clone, Copy, Default)]
pub struct Undo {
    rights: u8,
    passing: u8,
    key: u64,
    worth: i32,
}

impl Board {
    /// Reads Forsyth-Edwards notation: pieces, side, castling rights.
    pub fn read(text: &str) -> anyhow::Result<Board> {
        let mut board = Board {
            pieces: [0; 6],
            colours: [0; 2],
            squares: [EMPTY; 64],
            side: 0,
            rights: 0,
            passing: NO_FILE,
            key: 0,
            worth: 0,
        };
        let mut fields = text.split(' ');
        let rows = fields.next().context("no pieces")?;
        for (row, pieces) in rows.split('/').enumerate() {
            let mut file = 0;
            for letter in pieces.chars() {
                if let Some(gap) = letter.to_digit(10) {
                    file += gap as usize;
                    continue;
                }
                let piece = "pnbrqk".find(letter.to_ascii_lowercase()).context("no such piece")?;
                ensure!(row < 8 && file < 8, "off the board");
                board.toggle(usize::from(letter.is_lowercase()), piece, (7 - row) * 8 + file);
                board.squares[(7 - row) * 8 + file] = piece as u8;
                file += 1;
            }
        }
        board.side = usize::from(fields.next().context("no side")? == "b");
        for letter in fields.next().context("no castling rights")?.chars() {
            board.rights |= "KQkq".find(letter).map_or(0, |at| 1 << at);
        }
        board.key ^=
            TABLES.rights_keys[usize::from(board.rights)] ^ if board.side == 1 { BLACK_KEY } else { 0 };
        Ok(board)
    }

    /// The same position with the colours changed, seen from the other side.
    pub fn mirrored(&self) -> Board {
        let mut other = Board {
            pieces: [0; 6],
            colours: [0; 2],
            squares: [EMPTY; 64],
            side: 1 - self.side,
            rights: self.rights >> 2 | (self.rights & 3) << 2,
            passing: self.passing,
            key: 0,
            worth: 0,
        };
        for at in 0..64 {
            if self.squares[at] != EMPTY {
                let colour = usize::from(self.colours[1] >> at & 1 == 1);
                other.toggle(1 - colour, usize::from(self.squares[at]), at ^ 56);
                other.squares[at ^ 56] = self.squares[at];
            }
        }
        other.key ^=
            TABLES.rights_keys[usize::from(other.rights)] ^ if other.side == 1 { BLACK_KEY } else { 0 };
        other.key ^= TABLES.file_keys[usize::from(other.passing)];
        other
    }

    /// Puts or takes a piece, with its key and worth.
    #[inline(always)]
    fn toggle(&mut self, colour: usize, piece: usize, at: usize) {
        let bit = 1 << at;
        let (piece, at) = (piece.min(5), at & 63);
        self.pieces[piece] ^= bit;
        self.colours[colour & 1] ^= bit;
        self.key ^= TABLES.keys[colour & 1][piece][at];
        let flip = if colour == 0 { 0 } else { 56 };
        let worth = i32::from(TABLES.worth[piece][at ^ flip]);
        let signed = if colour == 0 { worth } else { -worth };
        self.worth += if self.colours[colour & 1] & bit != 0 { signed } else { -signed };
    }
    /// The same without key and worth, which [`Undo`] brings back.
    #[inline(always)]
    fn flip(&mut self, colour: usize, piece: usize, at: usize) {
        self.pieces[piece.min(5)] ^= 1 << at;
        self.colours[colour & 1] ^= 1 << at;
    }

    /// Whether `side` attacks `at`.
    #[inline(always)]
    pub fn attacked(&self, at: usize, side: usize) -> bool {
        let (theirs, occupied) = (self.colours[side & 1], self.colours[0] | self.colours[1]);
        let at = at & 63;
        let leapers = TABLES.knight[at] & self.pieces[KNIGHT]
            | TABLES.king[at] & self.pieces[KING]
            | TABLES.pawn[1 - (side & 1)][at] & self.pieces[PAWN];
        if leapers & theirs != 0 {
            return true;
        }
        let straight = (self.pieces[ROOK] | self.pieces[QUEEN]) & theirs;
        let slanting = (self.pieces[BISHOP] | self.pieces[QUEEN]) & theirs;
        rook(at, occupied) & straight | bishop(at, occupied) & slanting != 0
    }
    #[inline(always)]
    pub fn checked(&self, side: usize) -> bool {
        let king = self.pieces[KING] & self.colours[side & 1];
        self.attacked(king.trailing_zeros() as usize, 1 - side)
    }

    /// All moves but for whether they leave the king attacked; returns how many.
    #[inline(always)]
    #[expect(clippy::too_many_lines, reason = "one kind of piece after the other")]
    pub fn moves(&self, into: &mut [Move; 256]) -> usize {
        let mut count = 0;
        let mut push = |step: Move| {
            into[count & 255] = step;
            count += 1;
        };
        let side = self.side & 1;
        let (own, other) = (self.colours[side], self.colours[1 - side]);
        let occupied = own | other;
        for piece in KNIGHT..=KING {
            let mut left = self.pieces[piece] & own;
            while left != 0 {
                let from = left.trailing_zeros() as usize;
                left &= left - 1;
                let reach = match piece {
                    KNIGHT => TABLES.knight[from],
                    BISHOP => bishop(from, occupied),
                    ROOK => rook(from, occupied),
                    QUEEN => bishop(from, occupied) | rook(from, occupied),
                    _ => TABLES.king[from],
                };
                let mut goals = reach & !own;
                while goals != 0 {
                    let to = goals.trailing_zeros();
                    goals &= goals - 1;
                    push(pack(from as u32, to, piece, piece, self.squares[to as usize & 63], PLAIN));
                }
            }
        }
        let pawns = self.pieces[PAWN] & own;
        let (ahead, doubles, last) = if side == 0 {
            let one = pawns << 8 & !occupied;
            (one, (one & 0xff_0000) << 8 & !occupied, 0xff << 56)
        } else {
            let one = pawns >> 8 & !occupied;
            (one, (one & 0xff << 40) >> 8 & !occupied, 0xff)
        };
        let back = if side == 0 { 64 - 8 } else { 8 };
        let mut goals = ahead;
        while goals != 0 {
            let to = goals.trailing_zeros();
            goals &= goals - 1;
            let from = (to + back) & 63;
            if 1u64 << to & last != 0 {
                for becomes in KNIGHT..=QUEEN {
                    push(pack(from, to, PAWN, becomes, EMPTY, PLAIN));
                }
            } else {
                push(pack(from, to, PAWN, PAWN, EMPTY, PLAIN));
            }
        }
        goals = doubles;
        while goals != 0 {
            let to = goals.trailing_zeros();
            goals &= goals - 1;
            push(pack((to + 2 * back) & 63, to, PAWN, PAWN, EMPTY, DOUBLE));
        }
        let mut left = pawns;
        while left != 0 {
            let from = left.trailing_zeros();
            left &= left - 1;
            let mut goals = TABLES.pawn[side][from as usize] & other;
            while goals != 0 {
                let to = goals.trailing_zeros();
                goals &= goals - 1;
                let taken = self.squares[to as usize];
                if 1u64 << to & last != 0 {
                    for becomes in KNIGHT..=QUEEN {
                        push(pack(from, to, PAWN, becomes, taken, PLAIN));
                    }
                } else {
                    push(pack(from, to, PAWN, PAWN, taken, PLAIN));
                }
            }
        }
        if self.passing != NO_FILE {
            let to = u32::from(self.passing & 7) + if side == 0 { 40 } else { 16 };
            let mut from = TABLES.pawn[1 - side][to as usize & 63] & pawns;
            while from != 0 {
                push(pack(from.trailing_zeros(), to, PAWN, PAWN, PAWN as u8, PASSING));
                from &= from - 1;
            }
        }
        let rights = self.rights >> (2 * side) & 3;
        if rights != 0 {
            let home = if side == 0 { 4 } else { 60 };
            let row = occupied >> (home & 56) & 0xff;
            let free = |at: usize| !self.attacked(at, 1 - side);
            if rights & 1 != 0 && row & 0x60 == 0 && free(home) && free(home + 1) {
                push(pack(home as u32, home as u32 + 2, KING, KING, EMPTY, CASTLE));
            }
            if rights & 2 != 0 && row & 0x0e == 0 && free(home) && free(home - 1) {
                push(pack(home as u32, home as u32 - 2, KING, KING, EMPTY, CASTLE));
            }
        }
        count
    }

    /// Plays `step` and changes sides.
    #[inline(always)]
    pub fn make(&mut self, step: Move) -> Undo {
        let undo = Undo { rights: self.rights, passing: self.passing, key: self.key, worth: self.worth };
        let (from, to) = (step as usize & 63, step as usize >> 6 & 63);
        let (piece, becomes) = (step as usize >> 12 & 7, step as usize >> 15 & 7);
        let taken = (step >> 18 & 7) as u8;
        let kind = step >> 21;
        let side = self.side & 1;
        self.key ^= TABLES.rights_keys[usize::from(self.rights & 15)]
            ^ TABLES.file_keys[usize::from(self.passing & 15)];
        if taken != EMPTY {
            let at = if kind == PASSING { to ^ 8 } else { to };
            self.toggle(1 - side, usize::from(taken), at);
            self.squares[at] = EMPTY;
        }
        self.toggle(side, piece, from);
        self.toggle(side, becomes, to);
        self.squares[from] = EMPTY;
        self.squares[to] = becomes as u8;
        if kind == CASTLE {
            let (rook, goal) = if to > from { (to + 1, to - 1) } else { (to - 2, to + 1) };
            self.toggle(side, ROOK, rook);
            self.toggle(side, ROOK, goal);
            self.squares[rook & 63] = EMPTY;
            self.squares[goal & 63] = ROOK as u8;
        }
        self.passing = if kind == DOUBLE { to as u8 & 7 } else { NO_FILE };
        self.rights &= TABLES.rights[from] & TABLES.rights[to];
        self.key ^= TABLES.rights_keys[usize::from(self.rights & 15)]
            ^ TABLES.file_keys[usize::from(self.passing & 15)];
        self.key ^= BLACK_KEY;
        self.side = 1 - side;
        undo
    }

    /// Takes `step` back.
    #[inline(always)]
    pub fn unmake(&mut self, step: Move, undo: Undo) {
        let (from, to) = (step as usize & 63, step as usize >> 6 & 63);
        let (piece, becomes) = (step as usize >> 12 & 7, step as usize >> 15 & 7);
        let taken = (step >> 18 & 7) as u8;
        let kind = step >> 21;
        let side = 1 - (self.side & 1);
        self.flip(side, becomes, to);
        self.flip(side, piece, from);
        self.squares[to] = EMPTY;
        self.squares[from] = piece as u8;
        if taken != EMPTY {
            let at = if kind == PASSING { to ^ 8 } else { to };
            self.flip(1 - side, usize::from(taken), at);
            self.squares[at] = taken;
        }
        if kind == CASTLE {
            let (rook, goal) = if to > from { (to + 1, to - 1) } else { (to - 2, to + 1) };
            self.flip(side, ROOK, rook);
            self.flip(side, ROOK, goal);
            self.squares[rook & 63] = ROOK as u8;
            self.squares[goal & 63] = EMPTY;
        }
        self.side = side;
        (self.rights, self.passing, self.key, self.worth) = (undo.rights, undo.passing, undo.key, undo.worth);
    }

    /// What the position is worth to the side to move: pieces, squares and how far the sliders
    /// reach.
    #[inline(always)]
    pub fn value(&self) -> i32 {
        let occupied = self.colours[0] | self.colours[1];
        let mut value = self.worth;
        for colour in 0..2 {
            let mut reach = 0;
            let mut left = (self.pieces[BISHOP] | self.pieces[QUEEN]) & self.colours[colour];
            while left != 0 {
                reach += bishop(left.trailing_zeros() as usize, occupied).count_ones() as i32;
                left &= left - 1;
            }
            left = (self.pieces[ROOK] | self.pieces[QUEEN]) & self.colours[colour];
            while left != 0 {
                reach += rook(left.trailing_zeros() as usize, occupied).count_ones() as i32;
                left &= left - 1;
            }
            value += if colour == 0 { 2 * reach } else { -2 * reach };
        }
        if self.side == 0 { value } else { -value }
    }
}
