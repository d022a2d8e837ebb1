//! What the two ends of a network test say to each other.

use bench::network_messages::{Reply, Request};
use bench::network_wire::{FrameDirection, HELLO_BYTES, Hello, Keys, LONGEST_FRAME, Unframer};

/// The bytes as a hello, as a cookie, as frames in pieces of the first byte's length, and as a
/// request and a reply.
pub fn network(data: &[u8]) {
    for length in 0..=data.len().min(HELLO_BYTES) {
        if let Ok(Some(hello)) = Hello::parse(&data[..length]) {
            assert_eq!(length, HELLO_BYTES);
            assert_eq!(Hello::parse(&hello.bytes()), Ok(Some(hello)), "what is read can be written");
        }
    }
    let keys = Keys::of("token", &[1; 32], &[2; 32]);
    assert_eq!(keys.stream_of(data, 3), None, "nobody guesses a cookie");
    let mut unframer = Unframer::new(&keys, FrameDirection::ToServer);
    for piece in data.chunks(data.first().map_or(1, |length| usize::from(*length) + 1)) {
        let piece = &piece[..piece.len().min(unframer.wants())];
        match unframer.take(piece) {
            Ok(None) => assert!((1..=LONGEST_FRAME).contains(&unframer.wants())),
            Ok(Some(_)) => panic!("nobody guesses a tag"),
            Err(_) => break,
        }
    }
    if let Ok(Request::Transfer(spec)) = serde_json::from_slice(data)
        && spec.check().is_ok()
    {
        assert!(spec.streams <= 128 && spec.bytes <= 1 << 20 && spec.schedule.seconds() <= 61.0, "{spec:?}");
    }
    let _ = serde_json::from_slice::<Reply>(data);
}
