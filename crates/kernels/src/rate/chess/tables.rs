//! Attacks, keys and worths by square, made by the compiler.

/// Kinds of pieces, which number the tables.
pub const PAWN: usize = 0;
pub const KNIGHT: usize = 1;
pub const BISHOP: usize = 2;
pub const ROOK: usize = 3;
pub const QUEEN: usize = 4;
pub const KING: usize = 5;

pub struct Tables {
    pub knight: [u64; 64],
    pub king: [u64; 64],
    /// Squares that a pawn of each colour attacks.
    pub pawn: [[u64; 64]; 2],
    /// The file, diagonal and antidiagonal through a square, without it.
    pub lines: [[u64; 3]; 64],
    /// Squares attacked along the first rank from each file, by the six inner squares' occupation.
    pub rank: [[u8; 64]; 8],
    /// Castling rights that survive a move from or to a square.
    pub rights: [u8; 64],
    pub keys: [[[u64; 64]; 6]; 2],
    pub rights_keys: [u64; 16],
    pub file_keys: [u64; 16],
    /// Worth of each piece on each square, for white.
    pub worth: [[i16; 64]; 6],
}

const fn mixed(at: u64) -> u64 {
    let mut z = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x0123_4567_89ab_cdef);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const fn bit(file: i32, rank: i32) -> u64 {
    if file < 0 || file > 7 || rank < 0 || rank > 7 { 0 } else { 1 << (rank * 8 + file) }
}

const fn ray(mut file: i32, mut rank: i32, right: i32, up: i32) -> u64 {
    let mut all = 0;
    loop {
        file += right;
        rank += up;
        let next = bit(file, rank);
        if next == 0 {
            return all;
        }
        all |= next;
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
const fn tables() -> Tables {
    let mut t = Tables {
        knight: [0; 64],
        king: [0; 64],
        pawn: [[0; 64]; 2],
        lines: [[0; 3]; 64],
        rank: [[0; 64]; 8],
        rights: [15; 64],
        keys: [[[0; 64]; 6]; 2],
        rights_keys: [0; 16],
        file_keys: [0; 16],
        worth: [[0; 64]; 6],
    };
    let material = [100, 320, 330, 500, 900, 0];
    let centre = [4, 8, 6, 2, 3, -6];
    let mut at = 0;
    while at < 64 {
        let (file, rank) = (at as i32 % 8, at as i32 / 8);
        let mut one = -2;
        while one <= 2 {
            let mut two = -2;
            while two <= 2 {
                let product = if one * two < 0 { -one * two } else { one * two };
                if product == 2 {
                    t.knight[at] |= bit(file + one, rank + two);
                } else if one * one <= 1 && two * two <= 1 && !(one == 0 && two == 0) {
                    t.king[at] |= bit(file + one, rank + two);
                }
                two += 1;
            }
            one += 1;
        }
        t.pawn[0][at] = bit(file - 1, rank + 1) | bit(file + 1, rank + 1);
        t.pawn[1][at] = bit(file - 1, rank - 1) | bit(file + 1, rank - 1);
        t.lines[at][0] = ray(file, rank, 0, 1) | ray(file, rank, 0, -1);
        t.lines[at][1] = ray(file, rank, 1, 1) | ray(file, rank, -1, -1);
        t.lines[at][2] = ray(file, rank, 1, -1) | ray(file, rank, -1, 1);
        let off = (if file < 4 { 3 - file } else { file - 4 }) + (if rank < 4 { 3 - rank } else { rank - 4 });
        let mut piece = 0;
        while piece < 6 {
            t.worth[piece][at] = (material[piece] + centre[piece] * (3 - off)) as i16;
            t.keys[0][piece][at] = mixed((piece * 64 + at) as u64);
            t.keys[1][piece][at] = mixed((piece * 64 + at + 384) as u64);
            piece += 1;
        }
        t.worth[PAWN][at] += (rank * 3) as i16;
        at += 1;
    }
    let mut file = 0;
    while file < 8 {
        let mut inner = 0;
        while inner < 64 {
            let taken = (inner as u32) << 1;
            let mut all = 0u32;
            let mut step = file as i32 + 1;
            while step < 8 {
                all |= 1 << step;
                if taken >> step & 1 != 0 {
                    break;
                }
                step += 1;
            }
            step = file as i32 - 1;
            while step >= 0 {
                all |= 1 << step;
                if taken >> step & 1 != 0 {
                    break;
                }
                step -= 1;
            }
            t.rank[file][inner] = all as u8;
            inner += 1;
        }
        file += 1;
    }
    let mut at = 0;
    while at < 16 {
        t.rights_keys[at] = mixed(1000 + at as u64);
        t.file_keys[at] = if at < 8 { mixed(2000 + at as u64) } else { 0 };
        at += 1;
    }
    t.rights[0] = !2 & 15;
    t.rights[7] = !1 & 15;
    t.rights[4] = !3 & 15;
    t.rights[56] = !8 & 15;
    t.rights[63] = !4 & 15;
    t.rights[60] = !12 & 15;
    t
}

pub static TABLES: Tables = tables();
pub const BLACK_KEY: u64 = mixed(3000);
