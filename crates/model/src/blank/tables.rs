//! SMBIOS tables: of each structure that someone looks at, the numbers that it has by its
//! specification and the strings that say what a thing is. Other structures are left out, other
//! strings become `x` in their length. From the first structure on that may not be what it says,
//! nothing is kept: its strings would be counted wrongly.

use super::super::smbios::{Structure, structures};
use super::words::{Secrets, generic};

/// What is kept of a kind.
struct Kept {
    kind: u8,
    /// Lengths that its specifications gave it; longer ones come with later specifications. Empty:
    /// it has lists in it.
    lengths: &'static [usize],
    /// Numbers up to here stay.
    numbers: usize,
    /// Fields whose strings stay, those that are secret, and all others with strings.
    strings: &'static [usize],
    secret: &'static [usize],
    other: &'static [usize],
}

const KEPT: [Kept; 10] = [
    kept(0, &[0x12, 0x13, 0x14, 0x18, 0x1a], 0x0a, [&[4, 5, 8], &[], &[]]),
    kept(1, &[0x08, 0x19, 0x1b], 0x1b, [&[4, 5, 6], &[7], &[0x19, 0x1a]]),
    kept(2, &[], 0x0f, [&[4, 5, 6], &[7, 8], &[0x0a]]),
    kept(3, &[], 0x15, [&[4, 6], &[7, 8], &[]]),
    kept(4, &[0x1a, 0x20, 0x23, 0x28, 0x2a, 0x30, 0x32], 0x32, [&[4, 7, 0x10], &[0x20, 0x21], &[0x22]]),
    kept(7, &[0x0f, 0x13, 0x1b], 0x1b, [&[4], &[], &[]]),
    kept(16, &[0x0f, 0x17], 0x17, [&[], &[], &[]]),
    kept(
        17,
        &[0x15, 0x1b, 0x1c, 0x22, 0x28, 0x54, 0x5c, 0x64],
        0x64,
        [&[0x10, 0x11, 0x17, 0x1a], &[0x18, 0x19], &[0x2b]],
    ),
    kept(19, &[0x0f, 0x1f], 0x1f, [&[], &[], &[]]),
    kept(20, &[0x13, 0x23], 0x23, [&[], &[], &[]]),
];

const fn kept(
    kind: u8,
    lengths: &'static [usize],
    numbers: usize,
    [strings, secret, other]: [&'static [usize]; 3],
) -> Kept {
    Kept { kind, lengths, numbers, strings, secret, other }
}

/// Makers forget some strings that their fields name; more than that many are not forgotten.
const MISSING: usize = 4;

/// The end of a table.
const END: u8 = 127;

/// Secret fields of kinds that are left out: a battery's serial number, a power supply's and its
/// tag.
const ELSEWHERE: [(u8, &[usize]); 2] = [(22, &[0x07]), (39, &[0x08, 0x09])];

const UUID: std::ops::Range<usize> = 0x08..0x18;

/// Of the firmware's characteristics, the bit that says that it is a guest's.
const VIRTUAL: (usize, u8) = (0x13, 0x10);

/// A processor's identifying registers.
const PROCESSOR_ID: std::ops::Range<usize> = 0x08..0x10;

fn of(kind: u8) -> Option<&'static Kept> {
    KEPT.iter().find(|kept| kept.kind == kind)
}

/// Adds what a table holds that must stand nowhere.
pub(super) fn secrets(table: &[u8], secrets: &mut Secrets) {
    for one in structures(table).take_while(|one| !in_doubt(one)) {
        let elsewhere = ELSEWHERE.iter().find(|(kind, _)| *kind == one.kind).map(|(_, fields)| *fields);
        let fields = of(one.kind).map(|kept| kept.secret).or(elsewhere).unwrap_or_default();
        for index in indices(&one, fields) {
            secrets.add(one.strings().nth(index - 1).unwrap_or_default());
        }
        if let (1, Some(bytes)) = (one.kind, one.bytes.get(UUID)) {
            secrets.add_uuid(&std::array::from_fn(|at| bytes[at]));
        }
    }
}

/// The table without its secrets.
pub(super) fn blanked(table: &[u8], secrets: &Secrets) -> Vec<u8> {
    let mut whole = Vec::with_capacity(table.len());
    for one in structures(table).take_while(|one| !in_doubt(one)) {
        match of(one.kind) {
            Some(kept) => structure(&one, kept, secrets, &mut whole),
            None if one.kind == END => {
                whole.extend([END, 4]);
                whole.extend(one.handle.to_le_bytes());
                whole.extend([0, 0]);
            }
            None => {}
        }
    }
    whole
}

fn structure(one: &Structure, kept: &Kept, secrets: &Secrets, whole: &mut Vec<u8>) {
    let mut bytes = one.bytes.to_vec();
    let end = bytes.len();
    bytes[kept.numbers.min(end)..].fill(0);
    let own = match one.kind {
        1 => UUID,
        3 => 0x0d..0x11,
        4 => PROCESSOR_ID,
        _ => 0..0,
    };
    bytes[own.start.min(end)..own.end.min(end)].fill(0);
    for text in texts(&bytes, 4) {
        bytes[text].fill(0);
    }
    let (at, bit) = VIRTUAL;
    if let (0, Some(byte)) = (one.kind, bytes.get_mut(at)) {
        *byte = one.bytes[at] & bit;
    }
    whole.extend(bytes);
    let (stay, secret) = (indices(one, kept.strings), indices(one, kept.secret));
    // Where strings are missing, any string may have moved up by this many.
    let missing = highest(one, kept).saturating_sub(one.strings().count());
    let moved = [secret.clone(), indices(one, kept.other)].concat();
    let is_secret = |number: usize| {
        secret.contains(&number) || moved.iter().any(|own| (number + 1..=number + missing).contains(own))
    };
    for (at, string) in one.strings().enumerate() {
        let plain = !string.iter().any(u8::is_ascii_control);
        let stays = plain && stay.contains(&(at + 1)) && !is_secret(at + 1) || generic(string);
        if stays {
            whole.extend(secrets.covered_bytes(string))
        } else {
            whole.extend(std::iter::repeat_n(b'x', string.len()))
        }
        whole.push(0);
    }
    if one.strings().next().is_none() {
        whole.push(0);
    }
    whole.push(0);
}

/// The numbers of strings that these fields hold.
fn indices(one: &Structure, fields: &[usize]) -> Vec<usize> {
    let index = |at: &usize| one.byte(*at).map(|index| index as usize).filter(|index| *index > 0);
    fields.iter().filter_map(index).collect()
}

/// The highest number of a string that any field holds.
fn highest(one: &Structure, kept: &Kept) -> usize {
    // A chassis has a last one behind its list of parts.
    let behind = if one.kind == 3 { 0x15 + field(one, 0x13) * field(one, 0x14) } else { 0 };
    let all = [kept.strings, kept.secret, kept.other, if behind > 0 { &[behind] } else { &[] }];
    all.iter().flat_map(|fields| indices(one, fields)).max().unwrap_or(0)
}

fn field(one: &Structure, at: usize) -> usize {
    one.byte(at).unwrap_or(0) as usize
}

/// Where at least this many bytes of the formatted part in a row could be read.
fn texts(bytes: &[u8], least: usize) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 4;
    for at in 4..=bytes.len() {
        if bytes.get(at).is_none_or(|byte| !(0x20..0x7f).contains(byte)) {
            if at - from >= least {
                found.push(from..at);
            }
            from = at + 1;
        }
    }
    found
}

/// Whether a structure may be longer or shorter than it says, so that fields name other strings
/// than they mean.
fn in_doubt(one: &Structure) -> bool {
    let Some(kept) = of(one.kind) else { return false };
    // Numbers where anything may stand: a UUID, registers.
    let anything = match one.kind {
        1 => UUID,
        4 => PROCESSOR_ID,
        _ => 0..0,
    };
    if texts(one.bytes, 5).iter().any(|text| text.start < anything.start || text.end > anything.end) {
        return true;
    }
    let known = match (one.kind, one.bytes.len()) {
        (2, length) => length <= 0x0f || length == 0x0f + 2 * field(one, 0x0e),
        (3, length) if length < 0x15 => true,
        (3, length) => length - 0x15 <= field(one, 0x13) * field(one, 0x14) + 1,
        (_, length) => kept.lengths.contains(&length),
    };
    let shortest = kept.lengths.first().copied().unwrap_or(8);
    let (highest, count) = (highest(one, kept), one.strings().count());
    // But for the firmware's own version no structure ends in a number as large as a letter.
    let ends_in_text = one.kind != 0 && one.bytes.last().is_some_and(|byte| (0x21..0x7f).contains(byte));
    let odd = one.strings().any(|string| string.iter().any(u8::is_ascii_control));
    one.bytes.len() < shortest
        || ends_in_text
        || highest > count && (!known || highest > count + MISSING)
        || count > highest && (!known || odd)
}
