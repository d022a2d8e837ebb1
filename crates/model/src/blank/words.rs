//! Words that say who someone is: serial numbers by their value, ids and UUIDs by their look.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::AhoCorasick;

/// Shorter texts are part of too many others.
const SHORTEST: usize = 4;

/// What firmware writes where there is no serial number and no tag, without blanks and in small
/// letters.
const GENERIC: [&str; 45] = [
    "notspecified",
    "notprovided",
    "notavailable",
    "notpresent",
    "notapplicable",
    "notinstalled",
    "notset",
    "notasset",
    "nomoduleinstalled",
    "nodimm",
    "noassettag",
    "noassetinformation",
    "noserialnumber",
    "unknown",
    "undefined",
    "unassigned",
    "invalid",
    "none",
    "null",
    "<badindex>",
    "<outofspec>",
    "[empty]",
    "empty",
    "other",
    "tobefilledbyo.e.m.",
    "tobefilledbyoem",
    "defaultstring",
    "default",
    "filledbyo.e.m.",
    "o.e.m.",
    "serialnumber",
    "serial",
    "assettag",
    "assettagnumber",
    "systemserialnumber",
    "systemproductname",
    "systemmanufacturer",
    "systemversion",
    "chassisserialnumber",
    "chassisassettag",
    "baseboardserialnumber",
    "boardserialnumber",
    "0123456789",
    "123456789",
    "1234567890",
];

/// Whether a text is a placeholder that many hosts share, and so identifies none of them.
pub(super) fn generic(text: &[u8]) -> bool {
    let plain: Vec<u8> =
        text.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect();
    let same = plain.iter().all(|byte| Some(byte) == plain.first());
    same || GENERIC.iter().any(|word| word.as_bytes() == plain)
}

/// Texts that must not stand anywhere, in small letters.
#[derive(Default)]
pub(super) struct Secrets {
    all: BTreeSet<Vec<u8>>,
    /// Finds them all in one look, once they are known.
    finder: OnceCell<Option<AhoCorasick>>,
}

/// Longer ones are looked for in parts.
const MAX_WORD_BYTES: usize = 64;
/// No host has more. Where a file has them, nothing that could hold one is kept.
const MAX_SECRETS: usize = 20_000;

impl Secrets {
    pub fn add(&mut self, text: &[u8]) {
        let text = text.trim_ascii();
        if text.len() < SHORTEST || generic(text) || self.all.len() > MAX_SECRETS {
            return;
        }
        self.finder = OnceCell::new();
        let small = text.to_ascii_lowercase();
        let last = &small[small.len() - small.len().min(MAX_WORD_BYTES)..];
        self.all.extend(small.chunks_exact(MAX_WORD_BYTES).chain([last]).map(<[u8]>::to_vec));
    }

    /// A UUID, in the ways that it is written.
    pub fn add_uuid(&mut self, bytes: &[u8; 16]) {
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return;
        }
        let mut swapped = *bytes;
        swapped[..4].reverse();
        swapped[4..6].reverse();
        swapped[6..8].reverse();
        for form in [*bytes, swapped] {
            let hex: String = form.iter().map(|byte| format!("{byte:02x}")).collect();
            let dashed = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
            self.add(dashed.as_bytes());
            self.add(hex.as_bytes());
        }
    }

    /// The bytes with an `x` for each byte of a secret.
    pub fn covered_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut covered = bytes.to_vec();
        let small = bytes.to_ascii_lowercase();
        let build = || AhoCorasick::new(&self.all).ok().filter(|_| self.all.len() <= MAX_SECRETS);
        let Some(finder) = self.finder.get_or_init(build) else {
            covered.fill(b'x');
            return covered;
        };
        // Of all that end at one place the longest one counts.
        let mut lengths = vec![0u8; bytes.len()];
        for found in finder.find_overlapping_iter(&small) {
            let length = &mut lengths[found.end() - 1];
            *length = (*length).max(u8::try_from(found.len()).unwrap_or(u8::MAX));
        }
        let mut left = 0;
        for (byte, length) in covered.iter_mut().zip(lengths).rev() {
            left = length.max(left);
            if left > 0 {
                *byte = b'x';
                left -= 1;
            }
        }
        covered
    }

    pub fn covered(&self, text: &str) -> String {
        // A secret that is no UTF-8 by itself may end inside a letter.
        String::from_utf8_lossy(&self.covered_bytes(text.as_bytes())).into_owned()
    }
}

/// Hexadecimal digits in a row from which on they are an id: container engines show twelve.
const ID: usize = 12;

/// The length of the UUID that a text begins with: groups of 8, 4, 4, 4 and 12 digits with `-` or
/// `_` between them.
fn uuid(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for (group, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            matches!(text.get(at)?, b'-' | b'_').then_some(())?;
            at += 1;
        }
        text.get(at..at + digits)?.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        at += digits;
    }
    Some(at)
}

/// Pieces of a text alternately, and whether each is a UUID or, where those are asked for, another
/// id.
fn pieces(text: &str, ids_too: bool) -> Vec<(&str, bool)> {
    let bytes = text.as_bytes();
    let (mut found, mut from, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        // `pod` ends in a digit of its own: a UUID may begin inside of a row of digits.
        let skipped = run.saturating_sub(8);
        // Numbers of sectors and bytes are long, too.
        let numeric = bytes[at..at + run].iter().all(u8::is_ascii_digit);
        let id = match uuid(&bytes[at + skipped..]).filter(|_| run > 0) {
            Some(length) => Some((at + skipped, length)),
            None if ids_too && run >= if numeric { 2 * ID } else { ID } => Some((at, run)),
            None => None,
        };
        match id {
            Some((start, length)) => {
                found.push((&text[from..start], false));
                found.push((&text[start..start + length], true));
                at = start + length;
                from = at;
            }
            None => at += run.max(1),
        }
    }
    found.push((&text[from..], false));
    found
}

/// Names for ids, the same for the same one: `*1*`, `*2*`.
#[derive(Default)]
pub(super) struct Ids {
    known: BTreeMap<String, String>,
    taken: usize,
}

impl Ids {
    /// Numbers that a text has given already are not given again.
    pub fn keep_apart(&mut self, text: &str) {
        let between = text.split('*').skip(1).filter_map(|part| part.parse::<u32>().ok());
        self.taken = between.fold(self.taken, |taken, number| taken.max(number as usize));
    }

    pub fn blanked(&mut self, text: &str) -> String {
        let mut blanked = String::with_capacity(text.len());
        for (piece, is_id) in pieces(text, true) {
            if !is_id {
                blanked.push_str(piece);
                continue;
            }
            if !self.known.contains_key(piece) {
                self.taken += 1;
                self.known.insert(piece.to_string(), format!("*{}*", self.taken));
            }
            blanked.push_str(&self.known[piece]);
        }
        blanked
    }
}

/// A text with names for the ids of containers, pods and volumes in it.
pub fn without_ids(text: &str) -> String {
    let mut ids = Ids::default();
    ids.keep_apart(text);
    ids.blanked(text)
}

/// A text with `x` for the digits of each UUID.
pub(super) fn without_uuids(text: &str) -> String {
    let cover = |(piece, is_id): (&str, bool)| {
        if is_id {
            piece.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect()
        } else {
            piece.to_string()
        }
    };
    pieces(text, false).into_iter().map(cover).collect()
}
