//! Bytes of all kinds, right and wrong.

use proptest::prelude::*;

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keys() -> Keys {
    Keys::of("token", &[1; 32], &[2; 32])
}

#[test]
fn proofs_are_those_of_the_published_cases() {
    // RFC 4231, cases 1, 2 and 6.
    let one = proof(&[0x0b; 20], &[b"Hi ", b"There"]);
    assert_eq!(hex(&one), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    let two = proof(b"Jefe", &[b"what do ya want for nothing?"]);
    assert_eq!(hex(&two), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    let six = proof(&[0xaa; 131], &[b"Test Using Larger Than Block-Size Key - Hash Key First"]);
    assert_eq!(hex(&six), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/// What version 2 has always said: another release on the other host must understand it.
#[test]
fn the_bytes_on_the_wire_stay_as_they_are() {
    let keys = keys();
    assert_eq!(hex(&keys.client), "e421e6797d524d39eb37b4aac34667307a75b2366a050ef2370d208b99cec53e");
    assert_eq!(
        hex(&Verdict::Welcome.bytes(&keys)),
        "00bd5e5691830c55a41c6a1eb6d39f587d222b9c8437ad90b34e2116e5297e3b75"
    );
    assert_eq!(hex(&keys.cookie(4, 9)), "61737361796461740000000400000009ba22b80f064a3e2e203d297467bf095a");
    assert_eq!(
        hex(&Framer::new(&keys, FrameDirection::ToServer).frame(b"\"go\"")),
        "00000004a44230c11762773b96e25919262683b122676f22"
    );
}

#[test]
fn hellos_are_read_from_every_beginning() {
    let hello = Hello { version: VERSION, nonce: [7; 32] };
    let bytes = hello.bytes();
    for length in 0..HELLO_BYTES {
        assert_eq!(Hello::parse(&bytes[..length]), Ok(None), "{length} bytes");
    }
    assert_eq!(Hello::parse(&bytes), Ok(Some(hello)));
    assert!(Hello::parse(b"G").is_err() && Hello::parse(b"GET / HTTP/1.1\r\n").is_err());
    assert!(Hello::parse(b"assayNET").is_err());
}

#[test]
fn another_version_is_told_in_words() {
    let error = Hello { version: 77, nonce: [0; 32] }.agrees().expect_err("another version");
    assert!(error.contains("version 77") && error.contains("same Assay on both hosts"), "{error}");
    assert_eq!(Hello { version: VERSION, nonce: [0; 32] }.agrees(), Ok(()));
}

#[test]
fn proofs_depend_on_the_token_and_on_both_numbers() {
    let right = keys();
    for other in [
        Keys::of("token ", &[1; 32], &[2; 32]),
        Keys::of("token", &[3; 32], &[2; 32]),
        Keys::of("token", &[1; 32], &[3; 32]),
    ] {
        assert_ne!(right.client, other.client);
        assert_ne!(right.server, other.server);
        assert_ne!(right.cookie(1, 0), other.cookie(1, 0));
        assert_eq!(other.stream_of(&right.cookie(1, 0), 1), None);
    }
    assert_ne!(right.client, right.server);
    assert_ne!(right.client, right.session);
}

#[test]
fn verdicts_are_believed_with_a_proof_only() {
    let keys = keys();
    for verdict in [Verdict::Welcome, Verdict::WrongToken, Verdict::Busy] {
        assert_eq!(Verdict::parse(&verdict.bytes(&keys), &keys), Ok(verdict));
    }
    let mut forged = Verdict::Welcome.bytes(&keys);
    forged[5] ^= 1;
    assert!(Verdict::parse(&forged, &keys).expect_err("forged").contains("does not have this token"));
    assert!(Verdict::parse(&[9; VERDICT_BYTES], &keys).is_err());
    assert_eq!(Verdict::WrongToken.bytes(&keys)[1..], [0; PROOF_BYTES], "a stranger learns nothing");
}

#[test]
fn cookies_name_their_stream_and_test() {
    let keys = keys();
    let cookie = keys.cookie(4, 9);
    assert_eq!(keys.stream_of(&cookie, 4), Some(9));
    assert_eq!(keys.stream_of(&cookie, 5), None);
    for at in 0..COOKIE_BYTES {
        let mut changed = cookie;
        changed[at] ^= 1;
        assert_eq!(keys.stream_of(&changed, 4), None, "byte {at}");
        assert_eq!(keys.stream_of(&cookie[..at], 4), None, "{at} bytes");
    }
}

#[test]
fn a_frame_again_or_the_other_way_is_no_frame() {
    let keys = keys();
    let mut framer = Framer::new(&keys, FrameDirection::ToServer);
    let (first, second) = (framer.frame(b"one"), framer.frame(b"two"));
    let read = |way: FrameDirection, frames: &[&[u8]]| -> Result<Vec<Vec<u8>>, String> {
        let mut unframer = Unframer::new(&keys, way);
        let mut texts = Vec::new();
        for byte in frames.iter().flat_map(|frame| frame.iter()) {
            texts.extend(unframer.take(&[*byte])?);
        }
        Ok(texts)
    };
    assert_eq!(
        read(FrameDirection::ToServer, &[&first, &second]).expect("both"),
        [b"one".to_vec(), b"two".to_vec()]
    );
    assert!(read(FrameDirection::ToClient, &[&first]).is_err());
    assert!(read(FrameDirection::ToServer, &[&first, &first]).is_err());
    assert!(read(FrameDirection::ToServer, &[&second]).is_err());
}

#[test]
fn a_frame_that_is_announced_too_long_is_refused_at_once() {
    let mut unframer = Unframer::new(&keys(), FrameDirection::ToServer);
    let mut head = u32::MAX.to_be_bytes().to_vec();
    head.extend([0; TAG_BYTES]);
    assert!(unframer.take(&head).expect_err("too long").contains("4294967295"));
    let mut unframer = Unframer::new(&keys(), FrameDirection::ToServer);
    assert!(unframer.take(&[0; HEAD_BYTES + 1]).is_err());
}

proptest! {
    #[test]
    fn anything_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..600), cut in 1usize..40) {
        let _ = Hello::parse(&bytes).map(|hello| hello.map(|hello| hello.agrees()));
        prop_assert_eq!(keys().stream_of(&bytes, 1), None);
        let mut unframer = Unframer::new(&keys(), FrameDirection::ToServer);
        for piece in bytes.chunks(cut) {
            let piece = &piece[..piece.len().min(unframer.wants())];
            match unframer.take(piece) {
                Ok(None) => prop_assert!(unframer.wants() > 0 && unframer.wants() <= LONGEST_FRAME),
                Ok(Some(_)) => prop_assert!(false, "random bytes made a frame"),
                Err(_) => break,
            }
        }
    }

    #[test]
    fn frames_come_back_in_any_pieces(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
        cut in 1usize..50,
    ) {
        let keys = keys();
        let mut framer = Framer::new(&keys, FrameDirection::ToClient);
        let bytes: Vec<u8> = texts.iter().flat_map(|text| framer.frame(text)).collect();
        let mut unframer = Unframer::new(&keys, FrameDirection::ToClient);
        let (mut at, mut read) = (0, Vec::new());
        while at < bytes.len() {
            let end = bytes.len().min(at + cut.min(unframer.wants()));
            read.extend(unframer.take(&bytes[at..end]).expect("a right frame"));
            at = end;
        }
        prop_assert_eq!(read, texts);
    }

    #[test]
    fn every_changed_bit_is_seen(text in prop::collection::vec(any::<u8>(), 1..60), at in 0usize..80, bit in 0u8..8) {
        let keys = keys();
        let mut bytes = Framer::new(&keys, FrameDirection::ToServer).frame(&text);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let mut unframer = Unframer::new(&keys, FrameDirection::ToServer);
        let mut rest = bytes.as_slice();
        let mut told = Ok(None);
        while !rest.is_empty() && matches!(told, Ok(None)) {
            let take = rest.len().min(unframer.wants());
            told = unframer.take(&rest[..take]);
            rest = &rest[take..];
        }
        prop_assert!(!matches!(told, Ok(Some(_))));
    }
}
