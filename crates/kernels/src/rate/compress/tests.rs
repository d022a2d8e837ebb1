//! Codes, round trips, and faults.

use super::huffman::{Code, Reader, SYMBOLS, Writer};
use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn there_and_back(data: Vec<u8>) -> usize {
    let mut work = Compress::new(data);
    work.iterate();
    assert!(work.verify().is_ok());
    work.length
}

#[test]
fn anything_comes_back() {
    let mut rng = Rng(3);
    for length in [0, 1, 3, 7, 8, 9, 100, 5000] {
        there_and_back(vec![7; length]);
        there_and_back((0..length).map(|_| rng.next() as u8).collect());
        there_and_back((0..length).map(|at| (at % 5) as u8).collect());
    }
    assert!(there_and_back(vec![b'x'; 300_000]) < 3000);
    let data = sample(300_000);
    let length = there_and_back(data.clone());
    assert!(length * 10 < data.len() * 6 && length * 10 > data.len() * 2, "{length}");
}

#[test]
fn codes_are_as_short_as_those_of_a_heap() {
    let mut rng = Rng(4);
    let mut code = Code::new();
    for used in [2, 3, 17, 100, SYMBOLS] {
        let mut counts = [0; SYMBOLS];
        counts.iter_mut().take(used).for_each(|count| *count = 100 + rng.below(900) as u32);
        let mut heap: BinaryHeap<Reverse<u32>> = counts[..used].iter().map(|count| Reverse(*count)).collect();
        let mut cost = 0;
        while let (Some(Reverse(one)), Some(Reverse(two))) = (heap.pop(), heap.pop()) {
            cost += one + two;
            heap.push(Reverse(one + two));
            if heap.len() == 1 {
                break;
            }
        }
        code.measure(&mut counts);
        assert_eq!(
            counts.iter().zip(&code.lengths).map(|(count, length)| count * u32::from(*length)).sum::<u32>(),
            cost
        );
        assert!(code.assign());
    }
    let mut steep = [0; SYMBOLS];
    steep.iter_mut().take(28).enumerate().for_each(|(at, count)| *count = 1 << at);
    code.measure(&mut steep);
    assert!(code.assign() && code.lengths.iter().all(|length| *length <= 12));
}

#[test]
fn bits_come_back_in_order() {
    let mut bytes = [0; 1000];
    let mut writer = Writer::new(&mut bytes);
    for at in 0..400 {
        writer.put(at & ((1 << (at % 13)) - 1), at % 13);
    }
    let length = writer.finish();
    let mut reader = Reader::new(&bytes[..length]);
    for at in 0..400 {
        reader.fill();
        assert_eq!(reader.take(at % 13), at & ((1 << (at % 13)) - 1));
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    let mut work = Compress::new(sample(20_000));
    work.iterate();
    let good = work.verify();
    assert!(good.is_ok());
    let mut rng = Rng(8);
    for _ in 0..500 {
        let (at, bit) = (rng.below(work.length as u64) as usize, rng.below(8));
        work.packed[at] ^= 1 << bit;
        assert!(work.verify().is_err());
        // Decompressing it ends, whatever comes of it.
        let mut back = vec![0; work.data.len()];
        work.packer.unpack(&work.packed[..work.length], &mut back);
        work.packed[at] ^= 1 << bit;
        let at = rng.below(work.back.len() as u64) as usize;
        work.back[at] ^= 1 << bit;
        assert!(work.verify().is_err());
        work.back[at] ^= 1 << bit;
    }
    assert_eq!(work.verify(), good);
}

#[test]
fn packs_the_same_without_wide_vectors() {
    let data = sample(100_000);
    let mut work = Compress::new(data.clone());
    work.iterate();
    let mut packed = vec![0; work.packed.len()];
    assert_eq!(work.packer.pack(&data, &mut packed), work.length);
    assert!(packed[..work.length] == work.packed[..work.length]);
}
