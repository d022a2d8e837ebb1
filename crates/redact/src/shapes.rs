//! What says by its look what it is: UUIDs, hardware addresses, addresses of the network, mails.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::names::Kind;

/// The shapes in a text, in their order; none overlaps another.
pub fn find(text: &str) -> Vec<(Range<usize>, Kind)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let begins = before.is_none_or(|byte| !(byte.is_ascii_alphanumeric() || byte == b'.'));
        // `v10.1.2.3`
        let is_first = before.is_none_or(|byte| !(byte.is_ascii_digit() || byte == b'.'));
        let own = match bytes[at] {
            b'@' => email(text, at, found.last().map_or(0, |(range, _): &(Range<usize>, Kind)| range.end)),
            byte if byte.is_ascii_hexdigit() || byte == b':' => uuid(bytes, at)
                .or_else(|| begins.then(|| mac(bytes, at).or_else(|| ipv6_at(text, at))).flatten())
                .or_else(|| is_first.then(|| ipv4_at(text, at)).flatten()),
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

/// Six pairs of digits and more with `:`, `-` or `_` between them, as Ethernet and InfiniBand have;
/// between `:` also single digits, where a letter distinguishes them from numbers.
fn mac(bytes: &[u8], from: usize) -> Option<(Range<usize>, Kind)> {
    let digits = |at: usize| bytes[at..].iter().take(3).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (mut groups, mut shortest) = (1, digits(from));
    let mut end = from + shortest;
    let mark = *bytes.get(end).filter(|mark| (1..=2).contains(&shortest) && b":-_".contains(mark))?;
    while bytes.get(end) == Some(&mark) && (1..=2).contains(&digits(end + 1)) {
        let own = digits(end + 1);
        (groups, shortest, end) = (groups + 1, shortest.min(own), end + 1 + own);
    }
    let own = &bytes[from..end];
    let is_nil = own.iter().all(|byte| *byte == b'0' || *byte == mark);
    let is_short = mark == b':' && groups == 6 && own.iter().any(u8::is_ascii_alphabetic);
    let fits = groups >= 6 && (shortest == 2 || is_short);
    (fits && ends(bytes, end) && !is_nil).then_some((from..end, Kind::Mac))
}

/// Characters of the longest IPv6 address.
const MAX_IPV6_CHARS: usize = 45;

fn ipv6_at(text: &str, from: usize) -> Option<(Range<usize>, Kind)> {
    let own = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
    let (length, address) = longest_ipv6(text, from, &text[from..][..run(text, from, own)])?;
    named(from, length, IpAddr::V6(address))
}

/// A port, a letter or the end of a sentence may follow; `10.1.2.3.example` is a name.
fn ipv4_at(text: &str, from: usize) -> Option<(Range<usize>, Kind)> {
    let length = run(text, from, |byte| byte.is_ascii_digit() || *byte == b'.');
    let dotted = text[from..from + length].trim_end_matches('.');
    let goes_on = dotted.len() < length && !ends(text.as_bytes(), from + length);
    let address = dotted.parse::<Ipv4Addr>().ok().filter(|_| !goes_on)?;
    named(from, dotted.len(), IpAddr::V4(address))
}

fn run(text: &str, from: usize, own: impl Fn(&u8) -> bool) -> usize {
    text.as_bytes()[from..].iter().take(4 * MAX_IPV6_CHARS).take_while(|byte| own(byte)).count()
}

fn named(from: usize, length: usize, address: IpAddr) -> Option<(Range<usize>, Kind)> {
    let is_local = address.is_loopback() || address.is_unspecified();
    (!is_local).then_some((from..from + length, Kind::Ip))
}

/// The longest address with `:` that a word begins with; other fields may follow behind a `:`.
fn longest_ipv6(text: &str, from: usize, word: &str) -> Option<(usize, Ipv6Addr)> {
    let of = |one: &str| {
        let parsed = one.parse::<Ipv6Addr>().ok().filter(|_| ends(text.as_bytes(), from + one.len()));
        parsed.map(|address| (one.len(), address))
    };
    let mut one = word.trim_end_matches('.');
    if let Some(found) = of(one).or_else(|| of(one.trim_end_matches(':'))) {
        return Some(found);
    }
    // Without `::` it is a list of numbers.
    while one.len() <= 2 * MAX_IPV6_CHARS && one.contains("::") {
        one = one.rsplit_once(':').map_or("", |(lead, _)| lead);
        if let Some(found) = of(one) {
            return Some(found);
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
    fn every_spelling_of_an_address_is_found() {
        for (text, only) in [
            ("10.1.2.3:vol1/x", "10.1.2.3"),
            ("a10.1.2.3", "10.1.2.3"),
            ("10.1.2.3a", "10.1.2.3"),
            ("fd12:3456:789a::/48", "fd12:3456:789a::"),
            ("2a02:120b::5:eth0", "2a02:120b::5"),
            ("2A02:120B:0:0:0:0:0:5: up", "2A02:120B:0:0:0:0:0:5"),
            ("fe80::1%eth0", "fe80::1"),
            ("[::ffff:10.1.2.3]:22", "::ffff:10.1.2.3"),
            ("::ffff:10.1.2.3:22", "::ffff:10.1.2.3"),
            ("00_50_56_9f_3a_17", "00_50_56_9f_3a_17"),
            ("0:50:56:9f:3a:18", "0:50:56:9f:3a:18"),
            ("52:54:00:12:34:56: up", "52:54:00:12:34:56"),
        ] {
            let all: Vec<&str> = found(text).into_iter().map(|(text, _)| text).collect();
            assert_eq!(all, [only], "{text}");
        }
        let kernel = found("ip=10.1.2.3::10.1.2.1:255.255.255.0:db:eth0:off");
        assert_eq!(kernel.len(), 3, "{kernel:?}");
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
            "PCI-MSIX-0000:00:04.0 Mem: 1:2 1:2:3:4:5:6 10.1.2.3.example",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
