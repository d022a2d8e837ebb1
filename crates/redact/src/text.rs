//! A text, word by word: what is known stays, everything else is replaced.

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::names::{Kind, Names};
use super::shapes;
use super::vocabulary::Vocabulary;

/// Longer numbers are serial numbers.
const DIGITS: usize = 15;
/// Hexadecimal words of masks and registers are no longer.
const HEX: usize = 8;

/// How a text is treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// Known words stay; others become this.
    Words(Kind),
    /// The same, where the kernel writes masks and registers in hexadecimal digits.
    Hex(Kind),
    /// Firmware's and makers' own words: only what is known to be somebody's is replaced.
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
    secrets: Option<Secrets>,
}

impl<'v> Filter<'v> {
    pub fn new(vocabulary: &'v Vocabulary) -> Filter<'v> {
        Filter { vocabulary, names: Names::default(), safe: HashSet::new(), secrets: None }
    }

    /// Words that stay in these runs.
    pub fn keep(&mut self, text: &str) {
        let text = self.text(text, Way::Hardware);
        self.safe.extend(words(&text).map(str::to_lowercase));
    }

    /// A whole text that is somebody's, wherever it stands.
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

    /// Whether an original says so much by itself that it is looked for between other words.
    fn is_distinct(&self, original: &str) -> bool {
        original.len() >= 3 && original.chars().any(char::is_alphabetic) && !self.vocabulary.has(original)
    }

    fn secrets(&mut self) -> Option<&Secrets> {
        if self.secrets.is_none() {
            let originals: Vec<(String, Kind)> = self
                .names
                .originals()
                .filter(|(original, kind)| *kind != Kind::Redacted && self.is_distinct(original))
                .map(|(original, kind)| (original.to_string(), kind))
                .collect();
            let replacements = originals.iter().map(|(original, kind)| {
                let slash = if *kind == Kind::Path && original.starts_with('/') { "/" } else { "" };
                format!("{slash}{}", self.names.known(original).unwrap_or_default())
            });
            let replacements = replacements.collect();
            let finder = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(originals.iter().map(|(original, _)| original))
                .ok()?;
            self.secrets = Some(Secrets { finder, replacements });
        }
        self.secrets.as_ref()
    }

    /// The text with everything replaced that may name somebody.
    pub fn text(&mut self, text: &str, way: Way) -> String {
        let bytes = text.as_bytes();
        let alone = |range: &Range<usize>| {
            let is_word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
            !is_word(range.start.checked_sub(1).and_then(|at| bytes.get(at)))
                && !is_word(bytes.get(range.end))
        };
        let secrets: Vec<(Range<usize>, String)> = self.secrets().map_or_else(Vec::new, |secrets| {
            let found = secrets.finder.find_iter(text);
            let found =
                found.map(|one| (one.range(), secrets.replacements[one.pattern().as_usize()].clone()));
            found.filter(|(range, _)| alone(range)).collect()
        });
        let mut whole = String::with_capacity(text.len());
        let mut from = 0;
        for (range, replacement) in secrets {
            self.shapes(&text[from..range.start], way, &mut whole);
            whole.push_str(&replacement);
            from = range.end;
        }
        self.shapes(&text[from..], way, &mut whole);
        whole
    }

    fn shapes(&mut self, text: &str, way: Way, whole: &mut String) {
        let mut from = 0;
        for (range, kind) in shapes::find(text) {
            self.words(&text[from..range.start], way, whole);
            let name = self.names.of(kind, &text[range.clone()]);
            whole.push_str(&name);
            from = range.end;
        }
        self.words(&text[from..], way, whole);
    }

    fn words(&mut self, text: &str, way: Way, whole: &mut String) {
        let (kind, hex) = match way {
            Way::Hardware => return whole.push_str(text),
            Way::Words(kind) | Way::Strict(kind) => (kind, false),
            Way::Hex(kind) => (kind, true),
        };
        let is_strict = matches!(way, Way::Strict(_));
        let mut from = 0;
        for range in ranges(text) {
            let word = &text[range.clone()];
            whole.push_str(&text[from..range.start]);
            from = range.end;
            let stays = match is_strict {
                true => self.names.is_given(word) || says_little(word),
                false => self.is_known(word) || hex && (is_hex(word) || is_count(word)),
            };
            match stays {
                true => whole.push_str(word),
                false => {
                    let of_path = kind == Kind::Redacted && text[..range.start].ends_with('/');
                    let name = self.names.of(if of_path { Kind::Path } else { kind }, word);
                    whole.push_str(&name);
                }
            }
        }
        whole.push_str(&text[from..]);
    }

    /// Whether a word names nobody.
    pub fn is_known(&self, word: &str) -> bool {
        let has = |part: &str| self.vocabulary.has(part) || self.safe.contains(&part.to_lowercase());
        if has(word) || self.names.is_given(word) || is_number(word) || is_time(word) || is_device(word) {
            return true;
        }
        // `61.5k`, `6.2GHz`.
        let number = word.trim_end_matches(char::is_alphabetic);
        let unit = &word[number.len()..];
        if !number.is_empty() && is_number(number) && (unit.len() == 1 || has(unit)) {
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
        // `cpu12`, `4096x32`, `16-way`.
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let piece = |part: &str| {
            let letters: Vec<&str> =
                part.split(|c: char| c.is_ascii_digit()).filter(|letters| !letters.is_empty()).collect();
            has(part)
                || letters.len() <= 2 && letters.iter().all(|letters| letters.len() == 1 || has(letters))
        };
        let parts: Vec<&str> = word.split(['-', '_']).collect();
        digits <= DIGITS && !word.contains('.') && parts.iter().all(|part| part.is_empty() || piece(part))
    }
}

/// `64`, `6.18.44`, `0-127`; nothing long enough to be a serial number.
fn is_number(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let of_numbers = word.bytes().all(|byte| byte.is_ascii_digit() || b".-_".contains(&byte));
    let is_exponent = word.parse::<f64>().is_ok() && word.starts_with(|c: char| c.is_ascii_digit());
    let is_address = |part: &str| part.split('.').filter(|one| !one.is_empty()).count() == 4;
    let many = word.split(['-', '_']).count() > 1;
    let addresses = many && word.split(['-', '_']).any(is_address);
    (of_numbers || is_exponent)
        && !addresses
        && (digits <= DIGITS || is_exponent && word.contains('.') && digits <= 24)
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
    word.parse::<u64>().is_ok()
}

fn is_hex(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    digits.len() <= HEX && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The kernel's own names of disks and interfaces: a letter of the alphabet or a number tells them
/// apart, and the place in the machine.
fn is_device(word: &str) -> bool {
    let rest = |lead: &str| word.strip_prefix(lead).filter(|rest| rest.len() <= 6);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let lettered = ["sd", "vd", "xvd", "hd"].iter().filter_map(|lead| rest(lead)).any(|rest| {
        let rest = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        (1..=3).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_lowercase())
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
        let free = Way::Words(Kind::Redacted);
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
    fn what_is_somebodys_goes_from_wherever_it_stands() {
        let vocabulary = Vocabulary::new("at\nvm\nof", "");
        let mut filter = filter(&vocabulary);
        assert_eq!(filter.whole(Kind::Host, "Db 7 (prod)\n"), "host-1\n");
        assert_eq!(filter.whole(Kind::Host, "vm"), "host-2");
        assert_eq!(filter.text("ACME db 7 (PROD) of vm", Way::Hardware), "ACME host-1 of vm");
        assert_eq!(
            filter.text("[\"bin/acme\",\"7\",\"4711\"]", Way::Strict(Kind::Program)),
            "[\"program-1/program-2\",\"7\",\"program-3\"]"
        );
    }
}
