//! A text, word by word: what is known stays, everything else is replaced.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::names::{Kind, Names};
use super::shapes;
use super::vocabulary::Vocabulary;

/// Longer numbers are serial numbers.
const MAX_DIGITS: usize = 15;
/// Hexadecimal words of masks and registers are no longer.
const MAX_HEX_DIGITS: usize = 8;
/// Sizes and counts with a unit of one letter have no more digits.
const MAX_COUNT_DIGITS: usize = 9;
/// The number behind a word (`cpu1023`) has no more.
const MAX_SUFFIX_DIGITS: usize = 4;
/// Units of one letter.
const UNITS: &str = "kKmMgGtTpPbBsh";

/// How a text is treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Treatment {
    /// Known words stay; others become this.
    Words(Kind),
    /// The same in the kernel's own files: its counts of nanoseconds are long, and its buses have
    /// two hexadecimal digits.
    Counts(Kind),
    /// The same, where the kernel writes masks and registers in hexadecimal digits.
    Hex(Kind),
    /// Firmware's and makers' own words: only what is known to be private is replaced.
    Hardware,
    /// An owner's own words, whatever they are: only single letters and short numbers stay.
    Strict(Kind),
}

/// The words of a text: letters and digits with `.`, `_` and `-` between them.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    ranges(text).map(|range| &text[range])
}

fn ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let own = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let from = at + text[at..].find(own)?;
            let end = text[from..].find(|c| !own(c)).map_or(text.len(), |length| from + length);
            at = end;
            let word = text[from..end].trim_matches(['.', '_', '-']);
            if !word.is_empty() {
                let begin = from + text[from..end].find(word)?;
                return Some(begin..begin + word.len());
            }
        }
    })
}

/// What stands between words and is looked for as it is.
struct Secrets {
    finder: AhoCorasick,
    replacements: Vec<String>,
}

/// Replaces words of all texts of a bundle.
pub struct Filter<'v> {
    vocabulary: &'v Vocabulary,
    pub names: Names,
    /// Words of processors, boards and kernels of these runs.
    safe: HashSet<String>,
    /// Names that the kernels of these runs gave to CPUs, nodes and devices.
    kernels: HashSet<String>,
    secrets: Option<Secrets>,
}

impl<'v> Filter<'v> {
    pub fn new(vocabulary: &'v Vocabulary) -> Filter<'v> {
        let (safe, kernels) = (HashSet::new(), HashSet::new());
        Filter { vocabulary, names: Names::default(), safe, kernels, secrets: None }
    }

    /// Names that stay, whatever else is called so: a run without its `node0` is judged otherwise.
    pub fn meet<'n>(&mut self, given: impl Iterator<Item = &'n str>) {
        self.kernels.extend(given.map(str::to_string));
    }

    /// Words that stay in these runs.
    pub fn keep(&mut self, text: &str) {
        let text = self.text(text, Treatment::Hardware);
        self.safe.extend(words(&text).map(str::to_lowercase));
    }

    /// A whole text that is private, wherever it stands.
    pub fn whole(&mut self, kind: Kind, text: &str) -> String {
        let trimmed = text.trim();
        if trimmed.is_empty() || self.names.is_given(trimmed) {
            return text.to_string();
        }
        if self.names.known(trimmed).is_none() {
            self.secrets = None;
        }
        let slash = if kind == Kind::Path { "/" } else { "" };
        let name = self.names.of(kind, trimmed);
        text.replace(trimmed, &format!("{slash}{name}"))
    }

    /// Whether an original is distinctive enough that it is looked for between other words.
    fn is_distinct(&self, original: &str) -> bool {
        let is_ordinary = self.vocabulary.has(original) || self.kernels.contains(&original.to_lowercase());
        original.len() >= 3 && original.chars().any(char::is_alphabetic) && !is_ordinary
    }

    fn secrets(&mut self) -> Option<&Secrets> {
        if self.secrets.is_none() {
            let named = self.names.originals().filter(|(_, kind)| *kind != Kind::Redacted);
            let mut named: Vec<(&str, Kind)> = named.collect();
            named.sort();
            let mut found: BTreeMap<String, String> = BTreeMap::new();
            // The first part of a long name first: it may be another host's whole name.
            for &(long, kind) in &named {
                if let Some(short) = short_host(long, kind).filter(|short| self.is_distinct(short)) {
                    found.insert(short.to_lowercase(), self.names.known(long).unwrap_or_default().into());
                }
            }
            for (original, kind) in named.into_iter().filter(|(original, _)| self.is_distinct(original)) {
                let slash = if kind == Kind::Path && original.starts_with('/') { "/" } else { "" };
                let replacement = self.names.known(original).unwrap_or_default();
                found.insert(original.to_lowercase(), format!("{slash}{replacement}"));
                // Only ASCII is looked for in either case.
                found.insert(original.to_string(), format!("{slash}{replacement}"));
            }
            let (originals, replacements): (Vec<String>, Vec<String>) = found.into_iter().unzip();
            let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(&originals).ok()?;
            self.secrets = Some(Secrets { finder, replacements });
        }
        self.secrets.as_ref()
    }

    /// The text with everything replaced that may identify someone.
    pub fn text(&mut self, text: &str, treatment: Treatment) -> String {
        let bytes = text.as_bytes();
        let alone = |range: &Range<usize>| {
            let is_word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
            !is_word(range.start.checked_sub(1).and_then(|at| bytes.get(at)))
                && !is_word(bytes.get(range.end))
        };
        let mut secrets: Vec<(Range<usize>, String)> = self.secrets().map_or_else(Vec::new, |secrets| {
            let found = secrets.finder.find_overlapping_iter(text).filter(|one| alone(&one.range()));
            found.map(|one| (one.range(), secrets.replacements[one.pattern().as_usize()].clone())).collect()
        });
        // The longest one of those that begin at a place.
        secrets.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut whole = String::with_capacity(text.len());
        let mut from = 0;
        for (range, replacement) in secrets {
            if range.start < from {
                continue;
            }
            self.shapes(&text[from..range.start], treatment, &mut whole);
            whole.push_str(&replacement);
            from = range.end;
        }
        self.shapes(&text[from..], treatment, &mut whole);
        whole
    }

    fn shapes(&mut self, text: &str, treatment: Treatment, whole: &mut String) {
        let mut from = 0;
        for (range, kind) in shapes::find(text) {
            self.words(&text[from..range.start], treatment, whole);
            let name = self.names.of(kind, &text[range.clone()]);
            whole.push_str(&name);
            from = range.end;
        }
        self.words(&text[from..], treatment, whole);
    }

    fn words(&mut self, text: &str, treatment: Treatment, whole: &mut String) {
        // Longest hexadecimal word that stays.
        let (kind, hex) = match treatment {
            Treatment::Hardware => return whole.push_str(text),
            Treatment::Words(kind) | Treatment::Strict(kind) => (kind, 0),
            Treatment::Counts(kind) => (kind, 2),
            Treatment::Hex(kind) => (kind, MAX_HEX_DIGITS),
        };
        let is_strict = matches!(treatment, Treatment::Strict(_));
        let mut from = 0;
        for range in ranges(text) {
            let word = &text[range.clone()];
            whole.push_str(&text[from..range.start]);
            from = range.end;
            let stays = if is_strict {
                self.names.is_given(word) || says_little(word)
            } else {
                self.is_known(word) || hex > 0 && (is_hex(word, hex) || is_count(word))
            };
            if stays {
                whole.push_str(word)
            } else {
                let of_path = kind == Kind::Redacted && text[..range.start].ends_with('/');
                let name = self.names.of(if of_path { Kind::Path } else { kind }, word);
                whole.push_str(&name);
            }
        }
        whole.push_str(&text[from..]);
    }

    /// Whether a word names no one.
    pub fn is_known(&self, word: &str) -> bool {
        let has = |part: &str| self.vocabulary.has(part) || self.safe.contains(&part.to_lowercase());
        if has(word) || self.names.is_given(word) {
            return true;
        }
        if is_dashed_address(word) {
            return false;
        }
        if is_number(word) || is_time(word) || is_device(word) || is_register(word) {
            return true;
        }
        // `61.5k`, `6.2GHz`.
        let number = word.trim_end_matches(char::is_alphabetic);
        let unit = &word[number.len()..];
        let is_unit = match unit.len() {
            1 => number.len() <= MAX_COUNT_DIGITS && UNITS.contains(unit),
            _ => has(unit),
        };
        if !number.is_empty() && is_number(number) && is_unit {
            return true;
        }
        // `mitigation_l1tf`, `virtio2-input.0`.
        let halves = word.split_once(['_', '-']).is_some_and(|(one, other)| has(one) && has(other));
        let numbered = word
            .rsplit_once('.')
            .is_some_and(|(lead, number)| number.len() <= 3 && is_number(number) && self.is_known(lead));
        if halves || numbered {
            return true;
        }
        let parts: Vec<&str> = word.split(['-', '_']).collect();
        // One letter here and one there, between digits, is how serial numbers look.
        let single =
            parts.iter().map(|part| Pieces::of(part)).map(|pieces| pieces.single).sum::<usize>() <= 2;
        single
            && !word.contains('.')
            && parts.iter().all(|part| part.is_empty() || has(part) || Pieces::of(part).are_known(has))
    }
}

/// The letters and the numbers that a part of a word is made of: `cpu12`, `4096x32`, `16`.
struct Pieces<'p> {
    letters: Vec<&'p str>,
    numbers: Vec<&'p str>,
    begins_with_number: bool,
    /// Letters that stand alone beside digits.
    single: usize,
}

impl Pieces<'_> {
    fn of(part: &str) -> Pieces<'_> {
        let is_digit = |c: char| c.is_ascii_digit();
        let letters: Vec<&str> = part.split(is_digit).filter(|letters| !letters.is_empty()).collect();
        let numbers: Vec<&str> = part.split(|c| !is_digit(c)).filter(|number| !number.is_empty()).collect();
        let alone = letters.iter().filter(|letters| letters.chars().count() == 1).count();
        let single = if numbers.is_empty() { 0 } else { alone };
        Pieces { letters, numbers, begins_with_number: part.starts_with(is_digit), single }
    }

    fn are_known(&self, has: impl Fn(&str) -> bool) -> bool {
        let digits: usize = self.numbers.iter().map(|number| number.len()).sum();
        if self.letters == ["x"] && self.numbers.len() == 2 {
            return self.numbers.iter().all(|number| number.len() <= MAX_COUNT_DIGITS);
        }
        // What a name counts has few digits; a size may have many before its unit.
        let counted = self.numbers.iter().skip(usize::from(self.begins_with_number));
        let are_few = match self.single {
            0 => digits <= MAX_DIGITS && counted.clone().all(|number| number.len() <= MAX_SUFFIX_DIGITS),
            1 => digits <= 3,
            _ => digits <= 2,
        };
        are_few
            && self.letters.len() <= 2
            && self.letters.iter().all(|letters| letters.len() == 1 || has(letters))
    }
}

/// `64`, `6.18.44`, `0-127`; nothing long enough to be a serial number.
fn is_number(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let of_numbers = word.bytes().all(|byte| byte.is_ascii_digit() || b".-_".contains(&byte));
    of_numbers && digits <= MAX_DIGITS || is_exponent(word)
}

/// `1.5e-7`: one digit before the point, if there is a point, and few behind the letter.
fn is_exponent(word: &str) -> bool {
    let Some((mantissa, exponent)) = word.split_once(['e', 'E']) else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.strip_prefix('-').unwrap_or(exponent);
    let is_mantissa = match mantissa.split_once('.') {
        Some((one, rest)) => one.len() == 1 && digits(one) && digits(rest) && rest.len() <= 20,
        None => mantissa.len() == 1 && digits(mantissa),
    };
    is_mantissa && digits(exponent) && exponent.len() <= 3
}

/// `10-0-0-6`, as clouds call their hosts by an address; `10.0.0.1-10.0.0.9`.
fn is_dashed_address(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '_']).collect();
    let is_byte = |part: &&str| part.len() <= 3 && part.parse::<u8>().is_ok();
    let dotted = |part: &&str| part.split('.').filter(|one| !one.is_empty()).count() == 4;
    parts.windows(4).any(|four| four.iter().all(is_byte)) || parts.len() > 1 && parts.iter().any(dotted)
}

/// An option's letter, a count.
fn says_little(word: &str) -> bool {
    word.len() == 1 || word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The parts of `2026-11-25T08:25:13Z`.
fn is_time(word: &str) -> bool {
    let form: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    ["0000-00-00T00", "00Z", "00.000Z"].contains(&form.as_str())
}

/// What fits into the kernel's longest numbers, which say that there is no limit.
fn is_count(word: &str) -> bool {
    !word.starts_with('0') && word.parse::<u64>().is_ok()
}

fn is_hex(digits: &str, max_len: usize) -> bool {
    !digits.is_empty() && digits.len() <= max_len && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `0xb000040`
fn is_register(word: &str) -> bool {
    word.strip_prefix("0x").is_some_and(|digits| is_hex(digits, MAX_HEX_DIGITS))
}

/// `db7` of `db7.acme.example`: the same host, by the name that its neighbours use.
pub fn short_host(long: &str, kind: Kind) -> Option<&str> {
    long.split_once('.').map(|(short, _)| short).filter(|_| kind == Kind::Host)
}

/// `cpu12`, `node0`, `sda`: what a host may be called, too.
pub fn is_of_kernel(word: &str) -> bool {
    let number = ["cpu", "node"].iter().find_map(|lead| word.strip_prefix(lead));
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.is_some_and(is_number) || is_device(word)
}

/// The kernel's own names of disks and interfaces: a letter or a number distinguishes them
/// apart, and the place in the host.
fn is_device(word: &str) -> bool {
    let rest = |lead: &str| word.strip_prefix(lead).filter(|rest| rest.len() <= 6);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let lettered = ["sd", "vd", "xvd", "hd"].iter().filter_map(|lead| rest(lead)).any(|rest| {
        let rest = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        (1..=2).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_lowercase())
    });
    let placed = ["enp", "ens", "eno", "wlp", "ibp", "ibs"]
        .iter()
        .filter_map(|lead| word.strip_prefix(lead))
        .any(|rest| {
            let marks = rest.bytes().filter(|byte| b"sfdn".contains(byte)).count();
            let plain = rest.bytes().all(|byte| byte.is_ascii_digit() || b"sfdn".contains(&byte));
            !rest.is_empty() && rest.len() <= 10 && marks <= 3 && plain
        });
    let numbered =
        ["eth", "lo", "ifb", "bond", "loop", "ram", "zram", "md", "dm-", "sr", "ib", "nvme", "mmcblk"];
    let numbered = numbered.iter().filter_map(|lead| rest(lead)).any(|rest| {
        rest.bytes().all(|byte| byte.is_ascii_digit() || b"npc".contains(&byte))
            && (rest.is_empty() || digits(&rest[..1]))
    });
    lettered || placed || numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(vocabulary: &Vocabulary) -> Filter<'_> {
        Filter::new(vocabulary)
    }

    #[test]
    fn known_words_stay_and_all_others_go() {
        let vocabulary = Vocabulary::new("read\nmemory.latency\none-cpu\ncpu\nerror\nms", "");
        let mut filter = filter(&vocabulary);
        let free = Treatment::Words(Kind::Redacted);
        for text in
            ["read memory.latency@one-cpu: 12.5 ms on cpu3, 0-127", "nvme0n1 eth0 enp0s31f6 sda1 dm-0"]
        {
            assert_eq!(filter.text(text, free), text);
        }
        let told = filter.text("read Quuxly at /srv/quuxly/xyzzy", free);
        assert_eq!(told, "read redacted-1 redacted-2 /path-1/redacted-1/path-2");
        assert_eq!(filter.text("error QUUXLY 12345678901234567890", free), "error redacted-1 redacted-3");
        assert_eq!(
            filter.text("memory.quux.io read-zzyx cpu12 S4EVNX0M1 10.0.0.1-10.0.0.2", free).split(' ').nth(2),
            Some("cpu12")
        );
    }

    #[test]
    fn what_looks_like_a_number_of_an_owners_goes() {
        let vocabulary = Vocabulary::new("cpu\nkb\nns\nip\nfd\nnvme\nvm\npages", "");
        let mut filter = filter(&vocabulary);
        for secret in [
            "50026B7784123456",
            "5000c500a1234567",
            "0050569f3a12",
            "005056-9f3a16",
            "1A2B-3C4D",
            "21370A123456",
            "nvme-21370A123456",
            "J1234567",
            "u0123456",
            "12345678901234B",
            "12345E67",
            "00000000000A1B23",
            "ip-10-47-112-9",
            "ns3012345",
        ] {
            for way in [Treatment::Words(Kind::Redacted), Treatment::Counts(Kind::Redacted)] {
                let told = filter.text(secret, way);
                assert!(told.starts_with("redacted-"), "{secret}: {told}");
            }
        }
        let stays = "cpu1023 4096x32 61.5k 1048576kB 16G p999 1.5e-7 2026-11-25 pages-1048576kB 0x0b000040";
        assert_eq!(filter.text(stays, Treatment::Words(Kind::Redacted)), stays);
        // Only masks and registers may look like a name.
        let names = "/home/ada deadbeef 8f2aa1b9 1000000012345678";
        let told = filter.text(names, Treatment::Words(Kind::Group));
        assert!(["ada", "deadbeef", "8f2aa1b9", "1000000012345678"].iter().all(|name| !told.contains(name)));
        assert_eq!(filter.text("ff,0000aaaa", Treatment::Hex(Kind::Redacted)), "ff,0000aaaa");
        assert_eq!(
            filter.text("af:00.0 9223372036854771712", Treatment::Counts(Kind::Redacted)),
            "af:00.0 9223372036854771712"
        );
    }

    #[test]
    fn a_host_goes_by_its_short_name_and_never_by_the_kernels() {
        let vocabulary = Vocabulary::new("node\nat", "");
        let mut filter = filter(&vocabulary);
        filter.meet(["node0"].into_iter());
        filter.names.avoid("at host-1");
        filter.whole(Kind::Host, "node7.acme.example");
        filter.whole(Kind::Host, "host-1");
        filter.whole(Kind::Label, "node7-3");
        filter.whole(Kind::Host, "node0");
        let free = Treatment::Words(Kind::Redacted);
        assert_eq!(filter.text("at NODE7, node7.acme.example:/x", free), "at host-2, host-2:/x");
        assert_eq!(filter.text("at host-1", free), "at host-3");
        assert_eq!(filter.text("node7-34", free), "host-2-34");
        assert_eq!(filter.text("node0", free), "node0");
    }

    #[test]
    fn what_is_somebodys_goes_from_wherever_it_stands() {
        let vocabulary = Vocabulary::new("at\nvm\nof", "");
        let mut filter = filter(&vocabulary);
        assert_eq!(filter.whole(Kind::Host, "Db 7 (prod)\n"), "host-1\n");
        assert_eq!(filter.whole(Kind::Host, "vm"), "host-2");
        assert_eq!(filter.text("ACME db 7 (PROD) of vm", Treatment::Hardware), "ACME host-1 of vm");
        assert_eq!(
            filter.text("[\"bin/acme\",\"7\",\"4711\"]", Treatment::Strict(Kind::Program)),
            "[\"program-1/program-2\",\"7\",\"program-3\"]"
        );
    }
}
