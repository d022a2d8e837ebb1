//! What each packer packed, whole and cut, changed, nested, and made to fill memory.

use std::io::Write;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).expect("packs");
    packed.finish().expect("packs")
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    packed.write_all(bytes).expect("packs");
    packed.finish().expect("packs")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut packed = lzma_rust2::XzWriter::new(Vec::new(), options).expect("packs");
    packed.write_all(bytes).expect("packs");
    packed.finish().expect("packs")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

type Pack = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Pack); 4] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)];

const MOST: u64 = 1 << 20;

fn read(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    let plain = unpacked(packed, MOST).and_then(|mut plain| plain.read_to_end(&mut all));
    plain.map(|_| all).map_err(|error| error.to_string())
}

/// A text that no packer makes small.
fn text() -> Vec<u8> {
    let mut state = 7u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 24) as u8 % 26
    };
    (0..20_000).map(|_| letter()).collect()
}

#[test]
fn what_was_packed_in_any_way_and_in_each_other_is_had() {
    let text = text();
    assert_eq!(read(&text), Ok(text.clone()));
    assert_eq!(read(b""), Ok(Vec::new()));
    for (one, first) in PACKERS {
        assert_eq!(read(&first(&text)), Ok(text.clone()), "{one}");
        assert_eq!(read(&first(b"")), Ok(Vec::new()), "{one}");
        for (other, second) in PACKERS {
            assert_eq!(read(&second(&first(&text))), Ok(text.clone()), "{one} in {other}");
        }
        // Parts, packed each on its own and put together.
        let parts = [first(&text[..9000]), first(&text[9000..])].concat();
        assert_eq!(read(&parts), Ok(text.clone()), "{one}");
        let four = first(&first(&first(&first(&text))));
        assert_eq!(read(&four), Ok(text.clone()), "{one}");
        assert!(read(&first(&four)).expect_err("too deep").contains("more than 4 times"), "{one}");
    }
}

#[test]
fn a_file_that_is_not_whole_ends_early_wherever_it_was_cut() {
    let text = text();
    for (packer, pack) in PACKERS {
        let whole = pack(&text);
        let around = [12, 100, whole.len() / 2, whole.len() - 100];
        for length in around.into_iter().chain(whole.len() - 13..whole.len()) {
            let said = read(&whole[..length]).expect_err("it is cut");
            let words = format!("it ends early: the data of {packer} is incomplete");
            assert!(said.starts_with(&words), "{length} of {}: {said}", whole.len());
        }
        // In another, the inner one is named.
        let inside = gzip(&whole[..whole.len() - 3]);
        let said = read(&inside).expect_err("it is cut");
        assert!(said.contains(&format!("the data of {packer} is incomplete")), "{said}");
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let text = text();
    for (packer, pack) in PACKERS {
        let whole = pack(&text);
        for at in [whole.len() / 3, whole.len() / 2, whole.len() - 30] {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            let said = read(&changed).expect_err("it is changed");
            assert!(said.contains(&format!("the data of {packer} is")), "{at}: {said}");
        }
    }
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 3 * MOST as usize];
    for (packer, pack) in PACKERS {
        let bomb = pack(&zeros);
        for bomb in [gzip(&bomb), bomb] {
            let said = read(&bomb).expect_err("it is a bomb");
            assert!(said.starts_with("unpacked it is larger than 1 MiB"), "{packer}: {said}");
        }
    }
    assert!(read(&zeros).expect_err("too large").starts_with("it is larger than 1 MiB"));
}

/// A frame may ask to keep terabytes, which would be all that it unpacks to.
#[test]
fn a_window_of_terabytes_is_refused() {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8];
    // Blocks of one byte, 128 KiB of each.
    (0..1000).for_each(|_| frame.extend([0x02, 0x00, 0x10, b'x']));
    let said = read(&frame).expect_err("refused");
    assert!(said.contains("the data of zstd is damaged") && said.contains("window"), "{said}");
}

/// Errors of the file itself stay as they are.
#[test]
fn what_the_file_says_is_passed_on() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    for (packer, pack) in PACKERS {
        let whole = pack(&text());
        let plain = unpacked(whole[..500].chain(Broken), MOST);
        let read = plain.and_then(|mut plain| plain.read_to_end(&mut Vec::new()));
        let error = read.expect_err("broken");
        assert_eq!(error.raw_os_error(), Some(5), "{packer}: {error}");
    }
}
