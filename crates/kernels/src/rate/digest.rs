//! Digests and ciphers: SHA-256, ChaCha20 and CRC-32 in plain integer arithmetic (no CPU's
//! instructions for them).
//!
//! Literature: FIPS 180-4, "Secure Hash Standard" (2015); Y. Nir and A. Langley, RFC 8439,
//! "ChaCha20 and Poly1305 for IETF Protocols" (2018); W. W. Peterson and D. T. Brown, "Cyclic Codes
//! for Error Detection" (1961), by eight tables after M. E. Kounavis and F. L. Berry, "A Systematic
//! Approach to Building High Performance Software-Based CRC Generators" (2005). What servers do all
//! day; SPEC has none like it.

use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;

#[cfg(test)]
mod tests;

pub(super) const COMPONENT: Component = Component {
    id: ids::DIGEST,
    title: "SHA-256, ChaCha20 and CRC-32",
    about: "Enciphers and deciphers 128 KiB by ChaCha20 again and again, with the CRC-32 of all and the SHA-256 of a \
            quarter.",
    reading: "Bytes a second, counted once for each algorithm; more is better. SHA-256 takes most time: one chain of \
              32-bit additions and rotations. ChaCha20 is vector integer work, CRC-32 table look-ups. Clock and \
              integer units decide; memory does not.",
    method: "ChaCha20 works on 64 blocks at a time. Deciphering goes backwards with the same digests at every step. \
             The plain text must return with equal digests both ways. The published vectors must hold (FIPS 180-4, \
             RFC 8439, CRC check value). The data stays in the caches at any footprint.",
    source: file!(),
    character: Character::Integer,
    units: "bytes",
    reference: 1170.0,
    expected_checksum: 0x4d4d_0066_68ca_7469,
    make: |_| Ok(Box::new(Digest::new(ROUNDS))),
};

/// Blocks enciphered at a time.
const LANES: usize = 64;
const BYTES: usize = 128 << 10;
const ROUNDS: usize = 640;
const MILLION: [u32; 8] =
    [0xcdc7_6e5c, 0x9914_fb92, 0x81a1_c7e2, 0x84d7_3e67, 0xf180_9a48, 0xa497_200e, 0x046d_39cc, 0xc711_2cd0];

const K: [u32; 64] = roots();
const CRC: [[u32; 256]; 8] = remainders();

/// The first 32 bits of the cube roots' fractions of the first 64 primes, by search.
const fn roots() -> [u32; 64] {
    let mut all = [0; 64];
    let (mut number, mut count) = (2u128, 0);
    while count < 64 {
        let mut factor = 2;
        while number % factor != 0 {
            factor += 1;
        }
        if factor == number {
            let (mut bit, mut root) = (1u128 << 36, 0);
            while bit > 0 {
                let more = root + bit;
                if more * more * more <= number << 96 {
                    root = more;
                }
                bit >>= 1;
            }
            all[count] = root as u32;
            count += 1;
        }
        number += 1;
    }
    all
}

const fn remainders() -> [[u32; 256]; 8] {
    let mut all = [[0; 256]; 8];
    let mut at = 0;
    while at < 256 {
        let (mut left, mut bit) = (at as u32, 0);
        while bit < 8 {
            left = if left & 1 == 1 { left >> 1 ^ 0xedb8_8320 } else { left >> 1 };
            bit += 1;
        }
        all[0][at] = left;
        at += 1;
    }
    let mut table = 1;
    while table < 8 {
        at = 0;
        while at < 256 {
            let left = all[table - 1][at];
            all[table][at] = left >> 8 ^ all[0][(left & 255) as usize];
            at += 1;
        }
        table += 1;
    }
    all
}

static TABLES: [[u32; 256]; 8] = CRC;

#[inline(always)]
fn crc(data: &[u8]) -> u32 {
    let mut left = !0u32;
    let (words, rest) = data.as_chunks::<8>();
    for &word in words {
        let word = u64::from_le_bytes(word) ^ u64::from(left);
        let at = |byte: usize| (word >> (8 * byte) & 255) as usize;
        left = TABLES[7][at(0)] ^ TABLES[6][at(1)] ^ TABLES[5][at(2)] ^ TABLES[4][at(3)];
        left ^= TABLES[3][at(4)] ^ TABLES[2][at(5)] ^ TABLES[1][at(6)] ^ TABLES[0][at(7)];
    }
    for &byte in rest {
        left = left >> 8 ^ TABLES[0][((left ^ u32::from(byte)) & 255) as usize];
    }
    !left
}

/// The SHA-256 of whole blocks, from `state`.
#[inline(always)]
fn sha_blocks(state: &mut [u32; 8], data: &[u8]) {
    let (blocks, _) = data.as_chunks::<64>();
    for block in blocks {
        let mut w = [0u32; 64];
        let (words, _) = block.as_chunks::<4>();
        for (word, bytes) in w.iter_mut().zip(words) {
            *word = u32::from_be_bytes(*bytes);
        }
        for t in 16..64 {
            let (one, two) = (w[t - 15], w[t - 2]);
            let low = one.rotate_right(7) ^ one.rotate_right(18) ^ one >> 3;
            let high = two.rotate_right(17) ^ two.rotate_right(19) ^ two >> 10;
            w[t] = w[t - 16].wrapping_add(low).wrapping_add(w[t - 7]).wrapping_add(high);
        }
        let mut s = *state;
        for t in (0..64).step_by(8) {
            for i in 0..8 {
                // Names move by one each round instead of the words.
                let [a, b, c, e, f, g] = [0, 1, 2, 4, 5, 6].map(|at| s[(at + 8 - i) & 7]);
                let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
                let choice = g ^ e & (f ^ g);
                let one = s[(15 - i) & 7].wrapping_add(sum).wrapping_add(choice);
                let one = one.wrapping_add(K[t + i].wrapping_add(w[t + i]));
                let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
                let two = sum.wrapping_add(a & b | c & (a | b));
                s[(11 - i) & 7] = s[(11 - i) & 7].wrapping_add(one);
                s[(15 - i) & 7] = one.wrapping_add(two);
            }
        }
        for (word, more) in state.iter_mut().zip(s) {
            *word = word.wrapping_add(more);
        }
    }
}

/// The SHA-256 of `data`, `times` over.
fn sha(data: &[u8], times: usize) -> [u32; 8] {
    let mut state = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let whole = data.len() & !63;
    for _ in 1..times {
        with_widest_vectors(
            #[inline(always)]
            || sha_blocks(&mut state, &data[..whole]),
        );
    }
    with_widest_vectors(
        #[inline(always)]
        || sha_blocks(&mut state, &data[..whole]),
    );
    let mut last = [0; 128];
    let rest = &data[whole..];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 128;
    let end = if rest.len() < 56 { 64 } else { 128 };
    last[end - 8..end].copy_from_slice(&(8 * (data.len() * times) as u64).to_be_bytes());
    with_widest_vectors(
        #[inline(always)]
        || sha_blocks(&mut state, &last[..end]),
    );
    state
}

type Lanes = [u32; LANES];
/// The words of the quarter rounds of a double round.
const QUARTERS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

#[inline(always)]
fn quarter(a: &mut Lanes, b: &mut Lanes, c: &mut Lanes, d: &mut Lanes) {
    for (((at, bt), ct), dt) in a.iter_mut().zip(b).zip(c).zip(d) {
        let (mut a, mut b, mut c, mut d) = (*at, *bt, *ct, *dt);
        a = a.wrapping_add(b);
        d = (d ^ a).rotate_left(16);
        c = c.wrapping_add(d);
        b = (b ^ c).rotate_left(12);
        a = a.wrapping_add(b);
        d = (d ^ a).rotate_left(8);
        c = c.wrapping_add(d);
        b = (b ^ c).rotate_left(7);
        (*at, *bt, *ct, *dt) = (a, b, c, d);
    }
}

/// A double round of 64 blocks, block by lane.
#[inline(always)]
fn rounds(x: &mut [Lanes; 16], quarters: &[[usize; 4]]) {
    for &words in quarters {
        if let Ok([a, b, c, d]) = x.get_disjoint_mut(words) {
            quarter(a, b, c, d);
        }
    }
}

/// The key stream of 64 blocks: `start` with the lane added to its counter.
fn chacha(start: &[u32; 16], x: &mut [Lanes; 16]) {
    for (lanes, word) in x.iter_mut().zip(start) {
        *lanes = [*word; LANES];
    }
    for (lane, counter) in x[12].iter_mut().enumerate() {
        *counter = counter.wrapping_add(lane as u32);
    }
    for _ in 0..10 {
        with_widest_vectors(
            #[inline(always)]
            || rounds(x, &QUARTERS),
        );
    }
    for (at, (lanes, word)) in x.iter_mut().zip(start).enumerate() {
        for (lane, value) in lanes.iter_mut().enumerate() {
            *value = value.wrapping_add(*word).wrapping_add(if at == 12 { lane as u32 } else { 0 });
        }
    }
}

fn start(key: &[u32; 8], counter: u32, nonce: [u32; 3]) -> [u32; 16] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    start[4..12].copy_from_slice(key);
    start[12] = counter;
    start[13..].copy_from_slice(&nonce);
    start
}

/// Enciphers or deciphers whole groups of 64 blocks.
fn encipher(key: &[u32; 8], nonce: [u32; 3], data: &mut [u8]) {
    let mut stream = [[0; LANES]; 16];
    for (at, group) in data.chunks_exact_mut(64 * LANES).enumerate() {
        let start = start(key, 1 + (at * LANES) as u32, nonce);
        chacha(&start, &mut stream);
        let (words, _) = group.as_chunks_mut::<4>();
        for (lane, block) in words.chunks_exact_mut(16).enumerate() {
            for (word, lanes) in block.iter_mut().zip(&stream) {
                *word = (u32::from_le_bytes(*word) ^ lanes[lane & (LANES - 1)]).to_le_bytes();
            }
        }
    }
}

type Digests = [u32; 9];

struct Digest {
    key: [u32; 8],
    plain: Vec<u8>,
    data: Vec<u8>,
    /// CRC-32 and SHA-256 after each round, enciphering and deciphering.
    there: Vec<Digests>,
    back: Vec<Digests>,
    million: [u32; 8],
    rounds: usize,
}

fn digests(data: &[u8]) -> Digests {
    let mut all = [0; 9];
    all[0] = with_widest_vectors(
        #[inline(always)]
        || crc(data),
    );
    all[1..].copy_from_slice(&sha(&data[..data.len() / 4], 1));
    all
}

impl Digest {
    fn new(rounds: usize) -> Digest {
        let mut rng = Rng(0x6469_6765_7374);
        let key = [0; 8].map(|_: u32| rng.next() as u32);
        let plain: Vec<u8> = (0..BYTES).map(|_| rng.next() as u8).collect();
        let data = plain.clone();
        let none = vec![[0; 9]; rounds];
        Digest { key, plain, data, there: none.clone(), back: none, million: [0; 8], rounds }
    }
}

impl Work for Digest {
    fn iterate(&mut self) {
        self.million = sha(&[b'a'; 64], 15_625);
        self.data.copy_from_slice(&self.plain);
        for (round, digest) in self.there.iter_mut().enumerate() {
            encipher(&self.key, [0, round as u32, 7], &mut self.data);
            *digest = digests(&self.data);
        }
        for (round, digest) in self.back.iter_mut().enumerate().rev() {
            *digest = digests(&self.data);
            encipher(&self.key, [0, round as u32, 7], &mut self.data);
        }
    }
    fn units(&self) -> u64 {
        (2 * self.rounds * (2 * BYTES + BYTES / 4) + 1_000_000) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        if self.million != MILLION {
            return Err(format!("the SHA-256 of a million letters is {:x?}", self.million));
        }
        let mut sum = Checksum::new();
        self.million.iter().for_each(|word| sum.word(u64::from(*word)));
        for (round, (there, back)) in self.there.iter().zip(&self.back).enumerate() {
            if there != back {
                return Err(format!("round {round} has other digests when deciphering"));
            }
            there.iter().for_each(|word| sum.word(u64::from(*word)));
        }
        if self.data != self.plain {
            return Err("deciphering does not restore the plain text".into());
        }
        if crc(b"123456789") != 0xcbf4_3926 {
            return Err("the CRC-32 check value is not the published one".into());
        }
        let key = [0, 1, 2, 3, 4, 5, 6, 7].map(|at: u32| 0x0302_0100 + at * 0x0404_0404);
        let mut stream = [[0; LANES]; 16];
        chacha(&start(&key, 1, [0x0900_0000, 0x4a00_0000, 0]), &mut stream);
        if stream.map(|lanes| lanes[0]) != BLOCK {
            return Err("the ChaCha20 block is not that of RFC 8439".into());
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        (2 * BYTES + 2 * size_of::<Digests>() * self.rounds + size_of_val(&TABLES)) as u64
    }
}

/// The block of RFC 8439, 2.3.2.
const BLOCK: [u32; 16] = [
    0xe4e7_f110,
    0x1559_3bd1,
    0x1fdd_0f50,
    0xc471_20a3,
    0xc7f4_d1c7,
    0x0368_c033,
    0x9aaa_2204,
    0x4e6c_d4c3,
    0x4664_82d2,
    0x09aa_9f07,
    0x05d7_c214,
    0xa202_8bd9,
    0xd19c_12b5,
    0xb94e_16de,
    0xe883_d0cb,
    0x4e3c_50a2,
];
