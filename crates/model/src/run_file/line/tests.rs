//! Lines as they are written, and every way in which one can be changed.

use super::*;
use crate::Event;

fn event(text: &str) -> Record {
    Record::Event(Event { at_ms: 1.5, kind: "gate".into(), text: text.into() })
}

fn opened(line: &[u8]) -> Result<Vec<u8>, String> {
    Seal::default().content(&mut line.to_vec()).map(<[u8]>::to_vec)
}

#[test]
fn a_line_says_what_was_sealed_however_it_ends() {
    let record = event("a \"quoted\" text, and },\"crc32\":\"00000000\"}");
    let line = sealed(&record).expect("a line");
    let plain = serde_json::to_vec(&record).expect("JSON");
    assert!(line.starts_with(&plain[..plain.len() - 1]) && line.ends_with(b"\"}\n"));
    let bare = line.strip_suffix(b"\n").expect("an end");
    for line in [&line[..], bare, &[bare, b"\r\n"].concat(), &[b" \t", bare, b"  \n"].concat()] {
        assert_eq!(opened(line).as_deref(), Ok(&plain[..]));
    }
}

#[test]
fn the_checksum_is_that_of_gzip() {
    // As Python's zlib.crc32 has it of the bytes before the comma.
    let line = b"{\"weather\":{\"sun\":true},\"crc32\":\"4bdf04d7\"}";
    assert_eq!(opened(line).as_deref(), Ok(&b"{\"weather\":{\"sun\":true}}"[..]));
}

#[test]
fn every_flipped_bit_is_damage() {
    let line = sealed(&event("gate")).expect("a line");
    for (at, bit) in (0..line.len() - 1).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut changed = line.clone();
        changed[at] ^= 1 << bit;
        // Of lines after a sealed one.
        let told = Seal { seen: true }.content(&mut changed.clone()).map(<[u8]>::to_vec);
        assert!(told.is_err(), "byte {at}, bit {bit} went unnoticed: {told:?}");
    }
}

#[test]
fn lines_without_checksums_are_read_until_one_has_one() {
    let (plain, line) = (b"{\"event\":{}}\n".to_vec(), sealed(&event("gate")).expect("a line"));
    let mut seal = Seal::default();
    assert_eq!(seal.content(&mut plain.clone()), Ok(&b"{\"event\":{}}"[..]));
    assert!(!seal.seen);
    assert!(seal.content(&mut line.clone()).is_ok() && seal.seen);
    let why = seal.content(&mut plain.clone()).expect_err("damage");
    assert!(why.contains("no checksum"), "{why}");
}
