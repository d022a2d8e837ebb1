//! The compressor: matches, blocks of tokens, the packed stream.

use super::huffman::{Code, Reader, SYMBOLS, Writer};

const WINDOW: usize = 1 << 16;
const HASHES: usize = 1 << 15;
const SHORTEST: usize = 4;
const LONGEST: usize = SHORTEST + 255;
/// Largest number of places of a chain that are compared.
const CHAIN: usize = 96;
const TOKENS: usize = 1 << 15;
const END: usize = 256;
const MATCH: u32 = 1 << 31;
/// Literals, end and 16 classes of lengths; 32 classes of distances.
const LITERALS: usize = 257 + 16;
const DISTANCES: usize = 32;

/// The class of a number, the bits that select a member of the class, and how many bits these are.
#[inline(always)]
fn class(number: u32) -> (usize, u32, u32) {
    if number < 4 {
        return (number as usize, 0, 0);
    }
    let log = number.ilog2();
    let extra = log - 1;
    ((2 * log + (number >> extra & 1)) as usize, number & ((1 << extra) - 1), extra)
}
/// The smallest number of a class, and how many bits follow.
#[inline(always)]
fn least(class: usize) -> (u32, u32) {
    if class < 4 {
        return (class as u32, 0);
    }
    let extra = class as u32 / 2 - 1;
    ((2 + (class as u32 & 1)) << extra, extra)
}

pub struct Packer {
    /// The last position with each hash, plus one.
    heads: Vec<u32>,
    /// The previous position with the same hash, plus one, by position in the window.
    before: Vec<u32>,
    tokens: Vec<u32>,
    literals: Code,
    distances: Code,
}

#[inline(always)]
fn word(data: &[u8], at: usize) -> u64 {
    data.get(at..).and_then(|left| left.first_chunk::<8>()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The number of equal bytes at `one` and at the later position `other`.
#[inline(always)]
fn common(data: &[u8], one: usize, other: usize) -> usize {
    let most = (data.len() - other).min(LONGEST);
    let mut length = 0;
    while length + 8 <= most {
        let unlike = word(data, one + length) ^ word(data, other + length);
        if unlike != 0 {
            return length + unlike.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    while length < most && data[one + length] == data[other + length] {
        length += 1;
    }
    length
}

impl Packer {
    pub fn new() -> Packer {
        Packer {
            heads: vec![0; HASHES],
            before: vec![0; WINDOW],
            tokens: vec![0; TOKENS],
            literals: Code::new(),
            distances: Code::new(),
        }
    }
    pub fn bytes(&self) -> u64 {
        (4 * (self.heads.len() + self.before.len() + self.tokens.len()) + size_of::<Packer>()) as u64
    }

    #[inline(always)]
    fn enter(&mut self, data: &[u8], at: usize) -> u32 {
        let hash = (word(data, at) as u32).wrapping_mul(0x9e37_79b1) as usize >> 17;
        let head = &mut self.heads[hash & (HASHES - 1)];
        let last = *head;
        self.before[at & (WINDOW - 1)] = last;
        *head = at as u32 + 1;
        last
    }

    /// The longest match (longer than `than`) for position `at`: its length and distance.
    #[inline(always)]
    fn longest(&self, data: &[u8], at: usize, mut candidate: u32, than: usize) -> (usize, usize) {
        let mut best = (than, 0);
        for _ in 0..CHAIN {
            let Some(from) = (candidate as usize).checked_sub(1) else { break };
            if at - from >= WINDOW {
                break;
            }
            // A longer match must agree at the end of the best one so far.
            let end = at + best.0;
            if end < data.len() && data[from + best.0] == data[end] {
                let length = common(data, from, at);
                if length > best.0 {
                    best = (length, at - from);
                    if length == LONGEST {
                        break;
                    }
                }
            }
            candidate = self.before[from & (WINDOW - 1)];
        }
        best
    }

    /// Enters position `at` into its chain and finds its longest match (longer than `than`).
    #[inline(always)]
    fn find(&mut self, data: &[u8], at: usize, than: usize) -> (usize, usize) {
        if at + 8 > data.len() {
            return (0, 0);
        }
        let candidate = self.enter(data, at);
        self.longest(data, at, candidate, than)
    }

    /// Compresses `data`; returns the number of bytes in `packed`.
    #[inline(always)]
    pub fn pack(&mut self, data: &[u8], packed: &mut [u8]) -> usize {
        self.heads.fill(0);
        let mut writer = Writer::new(packed);
        let (mut at, mut count) = (0, 0);
        let mut pending = None;
        while at < data.len() {
            let here = pending.take().unwrap_or_else(|| self.find(data, at, SHORTEST - 1));
            self.tokens[count & (TOKENS - 1)] = u32::from(data[at]);
            if here.1 == 0 {
                at += 1;
            } else {
                let next = self.find(data, at + 1, here.0);
                if next.1 > 0 {
                    pending = Some(next);
                    at += 1;
                } else {
                    let (length, back) = ((here.0 - SHORTEST) as u32, (here.1 - 1) as u32);
                    self.tokens[count & (TOKENS - 1)] = MATCH | length << 16 | back;
                    let end = at + here.0;
                    for inside in at + 2..end.min(data.len().saturating_sub(7)) {
                        self.enter(data, inside);
                    }
                    at = end;
                }
            }
            count += 1;
            if count == TOKENS {
                self.write(&mut writer, count);
                count = 0;
            }
        }
        self.write(&mut writer, count);
        writer.finish()
    }

    /// Writes a block: lengths of the codes, tokens, end symbol.
    #[inline(always)]
    fn write(&mut self, writer: &mut Writer, count: usize) {
        let Packer { tokens, literals, distances, .. } = self;
        let tokens = &tokens[..count];
        let mut counts = [[0; SYMBOLS]; 2];
        counts[0][END] = 1;
        for &token in tokens {
            if token & MATCH == 0 {
                counts[0][token as usize & 255] += 1;
            } else {
                counts[0][END + 1 + class(token >> 16 & 255).0] += 1;
                counts[1][class(token & 0xffff).0] += 1;
            }
        }
        literals.measure(&mut counts[0]);
        distances.measure(&mut counts[1]);
        literals.assign();
        distances.assign();
        for length in literals.lengths[..LITERALS].iter().chain(&distances.lengths[..DISTANCES]) {
            writer.put(u32::from(*length), 4);
        }
        let symbol = |writer: &mut Writer, code: &Code, symbol: usize| {
            writer.put(u32::from(code.codes[symbol]), u32::from(code.lengths[symbol]));
        };
        for &token in tokens {
            if token & MATCH == 0 {
                symbol(writer, literals, token as usize & 255);
                continue;
            }
            let (length, rest, extra) = class(token >> 16 & 255);
            symbol(writer, literals, END + 1 + length);
            writer.put(rest, extra);
            let (distance, rest, extra) = class(token & 0xffff);
            symbol(writer, distances, distance);
            writer.put(rest, extra);
        }
        symbol(writer, literals, END);
    }

    /// Fills `data` from `packed`; false if that is impossible.
    #[inline(always)]
    pub fn unpack(&mut self, packed: &[u8], data: &mut [u8]) -> bool {
        let Packer { literals, distances, .. } = self;
        let mut reader = Reader::new(packed);
        let mut at = 0;
        loop {
            for (code, symbols) in [(&mut *literals, LITERALS), (&mut *distances, DISTANCES)] {
                code.lengths.fill(0);
                for length in &mut code.lengths[..symbols] {
                    reader.fill();
                    *length = reader.take(4) as u8;
                }
                if !code.assign() {
                    return false;
                }
            }
            loop {
                reader.fill();
                let entry = literals.table[reader.peek()];
                reader.skip(u32::from(entry & 15));
                let symbol = usize::from(entry >> 4);
                if entry == 0 {
                    return false;
                }
                if symbol < END {
                    let Some(byte) = data.get_mut(at) else { return false };
                    *byte = symbol as u8;
                    at += 1;
                    continue;
                }
                if symbol == END {
                    break;
                }
                let (base, extra) = least(symbol - END - 1);
                let length = SHORTEST + (base + reader.take(extra)) as usize;
                reader.fill();
                let entry = distances.table[reader.peek()];
                reader.skip(u32::from(entry & 15));
                let (base, extra) = least(usize::from(entry >> 4));
                let back = 1 + (base + reader.take(extra)) as usize;
                if entry == 0 || back > at || length > data.len() - at {
                    return false;
                }
                if back >= length {
                    data.copy_within(at - back..at - back + length, at);
                } else {
                    for to in at..at + length {
                        data[to] = data[to - back];
                    }
                }
                at += length;
            }
            if at == data.len() || reader.ended() {
                return at == data.len();
            }
        }
    }
}
