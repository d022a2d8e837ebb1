//! Published vectors, and faults.

use super::*;

#[test]
fn published_digests_hold_at_every_length() {
    assert_eq!(K[0], 0x428a_2f98);
    assert_eq!(K[63], 0xc671_78f2);
    let abc = [
        0xba78_16bf,
        0x8f01_cfea,
        0x4141_40de,
        0x5dae_2223,
        0xb003_61a3,
        0x9617_7a9c,
        0xb410_ff61,
        0xf200_15ad,
    ];
    assert_eq!(sha(b"abc", 1), abc);
    let two = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_eq!(sha(two, 1)[0], 0x248d_6a61);
    assert_eq!(sha(two, 1)[7], 0x19db_06c1);
    assert_eq!(sha(b"", 1)[0], 0xe3b0_c442);
    assert_eq!(crc(b""), 0);
}

#[test]
fn tables_and_lanes_give_what_single_bits_and_words_do() {
    let data: Vec<u8> = (0..997).map(|at: u32| ((at * at) >> 3) as u8).collect();
    for length in [1, 7, 8, 64, 997] {
        let mut left = !0u32;
        for bit in data[..length].iter().flat_map(|byte| (0..8).map(move |bit| u32::from(byte >> bit & 1))) {
            left = left >> 1 ^ if (left ^ bit) & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
        assert_eq!(crc(&data[..length]), !left);
    }
    let begin = start(&[3, 1, 4, 1, 5, 9, 2, 6], u32::MAX - 3, [7, 8, 9]);
    let mut plain = [[0; LANES]; 16];
    chacha(&begin, &mut plain);
    let (mut narrow, mut wide) = (plain, plain);
    rounds(&mut narrow, &QUARTERS);
    with_widest_vectors(
        #[inline(always)]
        || rounds(&mut wide, &QUARTERS),
    );
    assert_eq!(narrow, wide);
    for lane in 0..LANES {
        let mut first = begin;
        first[12] = first[12].wrapping_add(lane as u32);
        let mut x = first;
        for _ in 0..10 {
            for [a, b, c, d] in QUARTERS {
                for (one, two, three, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                    x[one] = x[one].wrapping_add(x[two]);
                    x[three] = (x[three] ^ x[one]).rotate_left(by);
                }
            }
        }
        for (word, lanes) in plain.iter().enumerate() {
            assert_eq!(lanes[lane], x[word].wrapping_add(first[word]));
        }
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    let mut digest = Digest::new(3);
    digest.iterate();
    let good = digest.verify();
    assert!(good.is_ok());
    for bit in 0..32 {
        digest.there[bit % 3][bit % 9] ^= 1 << bit;
        assert!(digest.verify().is_err());
        digest.there[bit % 3][bit % 9] ^= 1 << bit;
        digest.data[bit * 4001] ^= 1 << (bit % 8);
        assert!(digest.verify().is_err());
        digest.data[bit * 4001] ^= 1 << (bit % 8);
        digest.million[bit % 8] ^= 1 << bit;
        assert!(digest.verify().is_err());
        digest.million[bit % 8] ^= 1 << bit;
    }
    assert_eq!(digest.verify(), good);
}
