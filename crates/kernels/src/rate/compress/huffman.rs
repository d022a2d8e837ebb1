//! Canonical Huffman codes of at most 12 bits, and reading and writing bits.

/// Longest code, bits.
pub const LONGEST: u32 = 12;
/// Enough for either alphabet.
pub const SYMBOLS: usize = 288;

/// A code: lengths, and codes reversed so that they are written from their lowest bit.
pub struct Code {
    pub lengths: [u8; SYMBOLS],
    pub codes: [u16; SYMBOLS],
    /// Indexed by the next 12 bits: the symbol and, in the lowest 4 bits, the length of its code.
    pub table: [u16; 1 << LONGEST],
    leaves: [(u32, u16); SYMBOLS],
    weights: [u32; 2 * SYMBOLS],
    parents: [u16; 2 * SYMBOLS],
}

impl Code {
    pub fn new() -> Code {
        Code {
            lengths: [0; SYMBOLS],
            codes: [0; SYMBOLS],
            table: [0; 1 << LONGEST],
            leaves: [(0, 0); SYMBOLS],
            weights: [0; 2 * SYMBOLS],
            parents: [0; 2 * SYMBOLS],
        }
    }

    /// Computes optimal lengths for `counts`, which it halves until no code is longer than 12 bits.
    pub fn measure(&mut self, counts: &mut [u32; SYMBOLS]) {
        while !self.measured(counts) {
            for count in counts.iter_mut().filter(|count| **count > 0) {
                *count = *count / 2 + 1;
            }
        }
    }

    fn measured(&mut self, counts: &[u32; SYMBOLS]) -> bool {
        self.lengths = [0; SYMBOLS];
        let mut used = 0;
        for (symbol, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.leaves[used] = (count, symbol as u16);
            used += 1;
        }
        if used < 2 {
            self.lengths[usize::from(self.leaves[0].1)] = used as u8;
            return true;
        }
        let leaves = &mut self.leaves[..used];
        leaves.sort_unstable();
        for (weight, leaf) in self.weights.iter_mut().zip(leaves.iter()) {
            *weight = leaf.0;
        }
        // Two sorted queues: leaves and joined trees. The tree `node` joins the two lightest.
        let (mut leaf, mut joined) = (0, used);
        for node in used..2 * used - 1 {
            let mut total = 0;
            for _ in 0..2 {
                let lighter = joined >= node || leaf < used && self.weights[leaf] <= self.weights[joined];
                let next = if lighter { &mut leaf } else { &mut joined };
                total += self.weights[*next];
                self.parents[*next] = node as u16;
                *next += 1;
            }
            self.weights[node] = total;
        }
        // Depths from the root down replace the weights.
        self.weights[2 * used - 2] = 0;
        for node in (0..2 * used - 2).rev() {
            self.weights[node] = self.weights[usize::from(self.parents[node])] + 1;
        }
        for (leaf, depth) in leaves.iter().zip(&self.weights) {
            self.lengths[usize::from(leaf.1)] = (*depth).min(255) as u8;
        }
        self.weights[..used].iter().all(|depth| *depth <= LONGEST)
    }

    /// Computes codes and decoding table from the lengths; false if no such codes exist.
    pub fn assign(&mut self) -> bool {
        let mut next = [0u32; LONGEST as usize + 2];
        for &length in &self.lengths {
            if u32::from(length) > LONGEST {
                return false;
            }
            next[usize::from(length) + 1] += u32::from(length > 0);
        }
        let mut code = 0;
        for (at, next) in next.iter_mut().enumerate().take(LONGEST as usize + 1).skip(1) {
            code = (code + *next) << 1;
            *next = code;
            if code > 1 << at {
                return false;
            }
        }
        self.table.fill(0);
        for (symbol, &length) in self.lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let length = usize::from(length);
            let code = next[length];
            next[length] += 1;
            if code >= 1 << length {
                return false;
            }
            let reversed = (code << (32 - length)).reverse_bits() as usize;
            self.codes[symbol] = reversed as u16;
            for entry in self.table[reversed..].iter_mut().step_by(1 << length) {
                *entry = (symbol << 4 | length) as u16;
            }
        }
        true
    }
}

/// Writes bits from the lowest up.
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    pub at: usize,
    held: u64,
    count: u32,
}

impl Writer<'_> {
    pub fn new(bytes: &mut [u8]) -> Writer<'_> {
        Writer { bytes, at: 0, held: 0, count: 0 }
    }
    /// Appends up to 32 bits.
    #[inline(always)]
    pub fn put(&mut self, bits: u32, count: u32) {
        self.held |= u64::from(bits) << self.count;
        self.count += count;
        if self.count >= 32 {
            if let Some(to) = self.bytes.get_mut(self.at..self.at + 4) {
                to.copy_from_slice(&(self.held as u32).to_le_bytes());
            }
            self.at += 4;
            self.held >>= 32;
            self.count -= 32;
        }
    }
    /// Pads with zeros and returns the number of bytes.
    pub fn finish(mut self) -> usize {
        self.put(0, 32);
        self.put(0, 32);
        self.at
    }
}

/// Reads bits from the lowest up; zeros after the end.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl Reader<'_> {
    pub fn new(bytes: &[u8]) -> Reader<'_> {
        Reader { bytes, at: 0, held: 0, count: 0 }
    }
    /// Makes at least 32 bits ready.
    #[inline(always)]
    pub fn fill(&mut self) {
        if self.count < 32 {
            let word = self.bytes.get(self.at..).and_then(|left| left.first_chunk::<4>());
            self.held |= u64::from(u32::from_le_bytes(*word.unwrap_or(&[0; 4]))) << self.count;
            self.at += 4;
            self.count += 32;
        }
    }
    #[inline(always)]
    pub fn peek(&self) -> usize {
        self.held as usize & ((1 << LONGEST) - 1)
    }
    #[inline(always)]
    pub fn skip(&mut self, count: u32) {
        self.held >>= count & 63;
        self.count = self.count.wrapping_sub(count);
    }
    #[inline(always)]
    pub fn take(&mut self, count: u32) -> u32 {
        let bits = self.held as u32 & ((1 << count) - 1);
        self.skip(count);
        bits
    }
    pub fn ended(&self) -> bool {
        self.at > self.bytes.len() + 8
    }
}
