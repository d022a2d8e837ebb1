//! The part of PNG and base64 that is needed to check that a screenshot is not blank.

use std::io::Read;

pub fn from_base64(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("not base64: {letter}"),
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, letter| bits << 6 | u32::from(digit(*letter)))
            << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Width, height, and mean and spread of the brightness (0 to 255).
pub fn look(png: &[u8]) -> (usize, usize, f64, f64) {
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n", "a PNG file");
    let number = |at: usize| u32::from_be_bytes([png[at], png[at + 1], png[at + 2], png[at + 3]]) as usize;
    let (width, height) = (number(16), number(20));
    assert_eq!(png[24], 8, "8 bits per channel");
    let channels = match png[25] {
        2 => 3,
        6 => 4,
        other => panic!("colour type {other}"),
    };
    let (mut packed, mut at) = (Vec::new(), 8);
    while at < png.len() {
        let length = number(at);
        if png[at + 4..at + 8] == *b"IDAT" {
            packed.extend_from_slice(&png[at + 8..at + 8 + length]);
        }
        at += length + 12;
    }
    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_end(&mut rows).expect("inflates");
    let stride = width * channels;
    let mut above = vec![0_u8; stride];
    let (mut sum, mut squares) = (0.0, 0.0);
    for row in rows.chunks_exact_mut(stride + 1) {
        let (filter, row) = row.split_first_mut().expect("a filter");
        unfilter(*filter, row, &above, channels);
        for pixel in row.chunks_exact(channels) {
            let grey = pixel[..3].iter().map(|channel| f64::from(*channel)).sum::<f64>() / 3.0;
            sum += grey;
            squares += grey * grey;
        }
        above.copy_from_slice(row);
    }
    let count = (width * height) as f64;
    let mean = sum / count;
    (width, height, mean, (squares / count - mean * mean).max(0.0).sqrt())
}

fn unfilter(filter: u8, row: &mut [u8], above: &[u8], channels: usize) {
    for at in 0..row.len() {
        let left = if at >= channels { row[at - channels] } else { 0 };
        let corner = if at >= channels { above[at - channels] } else { 0 };
        let guess = match filter {
            0 => 0,
            1 => left,
            2 => above[at],
            3 => ((u16::from(left) + u16::from(above[at])) / 2) as u8,
            4 => nearest(left, above[at], corner),
            other => panic!("filter {other}"),
        };
        row[at] = row[at].wrapping_add(guess);
    }
}

/// The neighbour (left, above, corner) nearest to left + above − corner.
fn nearest(left: u8, above: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(above) - i16::from(corner);
    let distance = |neighbour: u8| (guess - i16::from(neighbour)).abs();
    match (distance(left), distance(above), distance(corner)) {
        (a, b, c) if a <= b && a <= c => left,
        (_, b, c) if b <= c => above,
        _ => corner,
    }
}
