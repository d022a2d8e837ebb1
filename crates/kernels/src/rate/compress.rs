//! A compressor and decompressor: LZ77 with hash chains and lazy matching, canonical Huffman codes.
//!
//! Literature: J. Ziv and A. Lempel, "A Universal Algorithm for Sequential Data Compression"
//! (1977); D. A. Huffman, "A Method for the Construction of Minimum-Redundancy Codes" (1952); E. S.
//! Schwartz and B. Kallick, "Generating a Canonical Prefix Encoding" (1964); J. A. Storer and T. G.
//! Szymanski, "Data Compression via Textual Substitution" (1982). The format is Assay's. In
//! character like SPEC's xz.

use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;

mod huffman;
mod lz;
#[cfg(test)]
mod tests;
use lz::Packer;

pub(super) const COMPONENT: Component = Component {
    id: ids::COMPRESS,
    title: "LZ77 and Huffman",
    about: "Compresses 3 MiB of text-like and 3 MiB of record-like data by LZ77 with Huffman codes, and decompresses \
            them.",
    reading: "Bytes compressed and decompressed a second; more is better. Most time goes into following hash chains \
              and comparing strings. Clock, branch predictor and L2 decide.",
    method: "Hash chains cover a window of 64 KiB, with lazy matching and canonical codes for each block. The output \
             must equal the input, and the packed stream must keep the checksum taken when it was written. The data \
             stays in the caches at any footprint.",
    source: file!(),
    character: Character::Branchy,
    units: "bytes",
    reference: 17.1,
    expected_checksum: 0xaffd_1998_f1e4_59e4,
    make: |_| Ok(Box::new(Compress::new(sample(BYTES)))),
};

const BYTES: usize = 6 << 20;

struct Compress {
    data: Vec<u8>,
    packed: Vec<u8>,
    back: Vec<u8>,
    packer: Packer,
    /// Bytes of `packed` in use, and their checksum when they were written.
    length: usize,
    seal: u64,
    restored: bool,
}

/// Text of words by Zipf's law, then records with counters, small differences and noise.
fn sample(bytes: usize) -> Vec<u8> {
    let mut rng = Rng(0x636f_6d70_7265_7373);
    let mut data = Vec::with_capacity(bytes + 64);
    let letters = b"etaoinshrdlucmfwypvbgkjqxz";
    let mut words: Vec<Vec<u8>> = Vec::new();
    for _ in 0..6000 {
        let length = 2 + rng.below(4) + rng.below(5);
        words.push((0..length).map(|_| letters[rng.below(26).min(rng.below(26)) as usize]).collect());
    }
    let mut column = 0;
    while data.len() < bytes / 2 {
        // Rank of about 1/x: a uniform number of bits, then uniform below that power.
        let bound = 1 << (1 + rng.below(13));
        let word = &words[(rng.below(bound) as usize).min(words.len() - 1)];
        data.extend_from_slice(word);
        column += word.len() + 1;
        data.push(match rng.below(16) {
            0 => b'.',
            1 => b',',
            _ if column > 72 => b'\n',
            _ => b' ',
        });
        if column > 72 {
            column = 0;
        }
    }
    data.truncate(bytes / 2);
    let (mut time, mut value) = (1_600_000_000u32, 5000u32);
    while data.len() < bytes {
        time += rng.below(20) as u32;
        value = value.wrapping_add(rng.below(65) as u32).wrapping_sub(32);
        data.extend_from_slice(&time.to_le_bytes());
        data.extend_from_slice(&(rng.below(12) as u16 * 257).to_le_bytes());
        data.extend_from_slice(&value.to_le_bytes());
        data.extend_from_slice(&[0, 0, rng.next() as u8 & 15, rng.next() as u8]);
    }
    data.truncate(bytes);
    data
}

impl Compress {
    fn new(data: Vec<u8>) -> Compress {
        // Even incompressible data grows by less.
        let packed = vec![0; data.len() + data.len() / 4 + 4096];
        let back = vec![0; data.len()];
        Compress { data, packed, back, packer: Packer::new(), length: 0, seal: 0, restored: false }
    }
}

fn seal(packed: &[u8]) -> u64 {
    let mut sum = Checksum::new();
    let (words, rest) = packed.as_chunks::<8>();
    words.iter().for_each(|word| sum.word(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| sum.word(u64::from(*byte)));
    sum.word(packed.len() as u64);
    sum.value()
}

impl Work for Compress {
    fn iterate(&mut self) {
        let Compress { data, packed, back, packer, .. } = self;
        self.length = with_widest_vectors(
            #[inline(always)]
            || packer.pack(data, packed),
        )
        .min(packed.len());
        self.seal = seal(&packed[..self.length]);
        back.fill(0);
        self.restored = with_widest_vectors(
            #[inline(always)]
            || packer.unpack(&packed[..self.length], back),
        );
    }
    fn units(&self) -> u64 {
        self.data.len() as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        if !self.restored {
            return Err("the packed stream does not decompress".into());
        }
        if let Some(at) = self.data.iter().zip(&self.back).position(|(one, other)| one != other) {
            return Err(format!("byte {at} differs after decompression"));
        }
        let seal = seal(&self.packed[..self.length]);
        if seal != self.seal {
            return Err("the packed stream has changed since it was written".into());
        }
        Ok(seal)
    }
    fn bytes(&self) -> u64 {
        (self.data.len() + self.packed.len() + self.back.len()) as u64 + self.packer.bytes()
    }
}
