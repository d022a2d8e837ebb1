//! What says by its look what it is: UUIDs, hardware addresses, addresses of the network, mails.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::names::Kind;

/// The shapes in a text, in their order; none overlaps another.
pub fn find(text: &str) -> Vec<(Range<usize>, Kind)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let begins = at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'.');
        let own = match bytes[at] {
            b'@' => email(text, at, found.last().map_or(0, |(range, _): &(Range<usize>, Kind)| range.end)),
            byte if byte.is_ascii_hexdigit() || byte == b':' => uuid(bytes, at)
                .or_else(|| begins.then(|| mac(bytes, at).or_else(|| address(text, at))).flatten()),
            _ => None,
        };
        match own {
            Some((range, kind)) => {
                at = range.end;
                found.push((range, kind));
            }
            None => at += 1,
        }
    }
    found
}

fn ends(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

fn uuid(bytes: &[u8], from: usize) -> Option<(Range<usize>, Kind)> {
    let mut at = from;
    for (group, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            matches!(bytes.get(at)?, b'-' | b'_').then_some(())?;
            at += 1;
        }
        bytes.get(at..at + digits)?.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        at += digits;
    }
    let own = &bytes[from..at];
    // A number that was taken out names nothing.
    let is_nil = own.iter().all(|byte| b"0-_".contains(byte));
    (ends(bytes, at) && !is_nil).then_some((from..at, Kind::Uuid))
}

/// Six pairs of digits and more with `:` or `-` between them, as Ethernet and InfiniBand have.
fn mac(bytes: &[u8], from: usize) -> Option<(Range<usize>, Kind)> {
    let mark = *bytes.get(from + 2).filter(|mark| b":-".contains(mark))?;
    let is_pair =
        |at: usize| bytes.get(at..at + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
    is_pair(from).then_some(())?;
    let (mut end, mut pairs) = (from + 2, 1);
    while bytes.get(end) == Some(&mark) && is_pair(end + 1) {
        pairs += 1;
        end += 3;
    }
    let is_nil = bytes[from..end].iter().all(|byte| *byte == b'0' || *byte == mark);
    (pairs >= 6 && ends(bytes, end) && !is_nil).then_some((from..end, Kind::Mac))
}

fn address(text: &str, from: usize) -> Option<(Range<usize>, Kind)> {
    let rest = &text[from..];
    let length = rest.bytes().take_while(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)).count();
    if !ends(text.as_bytes(), from + length) {
        return None;
    }
    // A port, or the end of a sentence, may follow.
    let word = rest[..length].trim_end_matches(['.', ':']);
    let dotted = word.split(':').next().unwrap_or(word);
    for one in [word, dotted] {
        let parsed = match one.contains(':') {
            true => one.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            false => one.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        };
        if let Some(address) = parsed {
            let is_nobodys = address.is_loopback() || address.is_unspecified();
            return (!is_nobodys).then_some((from..from + one.len(), Kind::Ip));
        }
    }
    None
}

/// The mail address around an `@`; it begins behind what was found before.
fn email(text: &str, at: usize, least: usize) -> Option<(Range<usize>, Kind)> {
    let own = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte);
    let bytes = text.as_bytes();
    let before = bytes[least.min(at)..at].iter().rev().take_while(|byte| own(byte)).count();
    let behind =
        bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte));
    let domain = text[at + 1..at + 1 + behind.count()].trim_end_matches(['.', '-']);
    let last = domain.rsplit_once('.').map(|(_, last)| last)?;
    let is_domain = last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    (before > 0 && is_domain).then_some((at - before..at + 1 + domain.len(), Kind::Email))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, Kind)> {
        find(text).into_iter().map(|(range, kind)| (&text[range], kind)).collect()
    }

    #[test]
    fn shapes_are_found_where_they_stand() {
        let all = found(
            "root=UUID=0B9C4f0e-6d54-4a43-9d6a-1c1f1c9a2a77 at 52:54:00:12:34:56, 10.1.2.3:5201, \
             [fe80::5054:ff:fe12:3456]:22 by ops.x@mail.acme.io. 02-00-5e-10-00-aa",
        );
        let kinds: Vec<Kind> = all.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, [Kind::Uuid, Kind::Mac, Kind::Ip, Kind::Ip, Kind::Email, Kind::Mac], "{all:?}");
        assert_eq!((all[2].0, all[4].0), ("10.1.2.3", "ops.x@mail.acme.io"));
    }

    #[test]
    fn any_text_is_looked_at() {
        let letters = ["a", "0", ":", "-", ".", "@", "ä", "_"];
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            texts = texts.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))).collect();
            texts.iter().for_each(|text| drop(find(text)));
        }
    }

    #[test]
    fn what_only_looks_alike_is_none() {
        for text in [
            "127.0.0.1 ::1 0.0.0.0 :: 08:25:13 0000:00:04.0 1.2.3 0.0.4.6.0.0=0;1.1.5.6.0.0=1",
            "00000000-0000-0000-0000-000000000000 00:00:00:00:00:00 a::before memory.latency@one-cpu?op=x",
            "PCI-MSIX-0000:00:04.0 Mem: 1:2",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
