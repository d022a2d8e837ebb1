//! Whether something of an owner's is left in the bytes of a bundle: as text, in hexadecimal digits
//! and in base64, in any letter case.

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::names::{Kind, Names};
use super::shapes;
use super::text::{is_of_kernel, short_host};
use super::vocabulary::Vocabulary;

/// Shorter words stand in other words by chance.
const DISTINCT: usize = 3;
/// An original of at least this length is also looked for inside of words.
const ANYWHERE: usize = 8;
/// This many digits in a row may hold a text.
const HEX: usize = 16;
/// Letters and digits that encode nothing give shorter texts by chance, in a page of megabytes.
const NO_CHANCE: usize = 24;
const AROUND: usize = 30;

/// One thing that is left.
#[derive(Debug, PartialEq)]
pub struct Left {
    /// The file of the bundle.
    pub file: String,
    /// Where it begins, in bytes of the unpacked file.
    pub at: usize,
    pub what: String,
    /// What stands around it.
    pub around: String,
}

/// What was looked for, in numbers.
#[derive(Debug, Default, PartialEq)]
pub struct Searched {
    pub originals: usize,
    /// Originals that are words of Assay's own, or too short: a file that has them may still be
    /// clean.
    pub ordinary: Vec<String>,
    pub bytes: usize,
    pub files: usize,
}

struct Pattern {
    what: String,
    /// Where it is text: whether letters and digits may stand around it.
    anywhere: bool,
}

/// Looks for all originals at once.
pub struct Search<'v> {
    vocabulary: &'v Vocabulary,
    text: AhoCorasick,
    patterns: Vec<Pattern>,
    encoded: AhoCorasick,
    encodes: Vec<String>,
    pub searched: Searched,
}

impl<'v> Search<'v> {
    /// Of what a mapping names, and of names of this host's own.
    pub fn new(names: &Names, own: &[String], vocabulary: &'v Vocabulary) -> anyhow::Result<Search<'v>> {
        let (mut texts, mut patterns) = (Vec::new(), Vec::new());
        let (mut codes, mut encodes) = (Vec::new(), Vec::new());
        let mut searched = Searched::default();
        let own = own.iter().map(|name| (name.as_str(), Kind::Host));
        let all: Vec<(&str, Kind)> = names.originals().chain(own).collect();
        let short = all.iter().filter_map(|(long, kind)| Some((short_host(long, *kind)?, *kind)));
        for (original, kind) in all.iter().copied().chain(short) {
            // Numbers of processes and of parts stand everywhere.
            let is_word = original.chars().count() >= DISTINCT && original.chars().any(char::is_alphabetic);
            let is_ordinary = vocabulary.speaks(original) || is_of_kernel(&original.to_lowercase());
            if !is_word || is_ordinary || names.is_given(original) {
                searched.ordinary.push(original.to_string());
                continue;
            }
            searched.originals += 1;
            let what = format!("{} {original:?}", kind.word());
            for form in forms(original) {
                let small = Some(form.to_lowercase()).filter(|small| !form.is_ascii() && *small != form);
                for form in std::iter::once(form).chain(small) {
                    texts.push(form);
                    patterns.push(Pattern { what: what.clone(), anywhere: original.len() >= ANYWHERE });
                }
            }
            for form in [original.to_string(), original.to_lowercase(), original.to_uppercase()] {
                texts.push(form.bytes().map(|byte| format!("{byte:02x}")).collect());
                // Few digits stand in long numbers by chance.
                let anywhere = form.len() >= ANYWHERE;
                patterns.push(Pattern { what: format!("{what} in hexadecimal digits"), anywhere });
                for code in in_base64(&form) {
                    codes.push(code);
                    encodes.push(format!("{what} in base64"));
                }
            }
        }
        searched.ordinary.sort();
        searched.ordinary.dedup();
        let text = AhoCorasick::builder().ascii_case_insensitive(true).build(&texts)?;
        Ok(Search { vocabulary, text, patterns, encoded: AhoCorasick::new(&codes)?, encodes, searched })
    }

    /// What is left in a file.
    pub fn of(&mut self, file: &str, bytes: &[u8]) -> Vec<Left> {
        self.searched.files += 1;
        self.searched.bytes += bytes.len();
        let mut found = Vec::new();
        self.look(file, file.as_bytes(), " (its name)", &mut found);
        self.look(file, bytes, "", &mut found);
        for (at, inside) in hex_inside(bytes) {
            let texts = strings(&inside);
            texts
                .iter()
                .filter(|text| is_meant(text, &inside))
                .for_each(|text| look_for_shapes(file, text, at, " in hexadecimal digits", &mut found));
            for (from, text) in runs_of_text(&inside) {
                for (start, pattern) in self.hits(text) {
                    let what = format!("{} in hexadecimal digits", pattern.what);
                    found.push(left(file, &inside, from + start, at, &what));
                }
            }
        }
        for (at, inside) in base64_inside(bytes) {
            for text in strings(&inside) {
                if is_meant(&text, &inside) {
                    look_for_shapes(file, &text, at, " in base64", &mut found);
                }
                let any = self.text.find_overlapping_iter(text.as_bytes());
                found.extend(any.filter_map(|one| {
                    let pattern = &self.patterns[one.pattern().as_usize()];
                    pattern.anywhere.then(|| {
                        left(file, text.as_bytes(), one.start(), at, &format!("{} in base64", pattern.what))
                    })
                }));
            }
        }
        found
    }

    /// Where originals stand, and not a longer word that Assay has itself.
    fn hits<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = (usize, &'b Pattern)> + 'b {
        self.text.find_overlapping_iter(bytes).filter_map(|one| {
            let pattern = &self.patterns[one.pattern().as_usize()];
            let is_inside =
                || pattern.anywhere && !self.vocabulary.speaks(&around(bytes, one.start(), one.end()));
            (is_alone(bytes, one.start(), one.end()) || is_inside()).then_some((one.start(), pattern))
        })
    }

    fn look(&self, file: &str, bytes: &[u8], place: &str, found: &mut Vec<Left>) {
        for (start, pattern) in self.hits(bytes) {
            found.push(left(file, bytes, start, 0, &format!("{}{place}", pattern.what)));
        }
        for one in self.encoded.find_overlapping_iter(bytes) {
            found.push(left(
                file,
                bytes,
                one.start(),
                0,
                &format!("{}{place}", self.encodes[one.pattern().as_usize()]),
            ));
        }
        look_for_shapes(file, &String::from_utf8_lossy(bytes), 0, place, found);
    }
}

fn left(file: &str, bytes: &[u8], at: usize, base: usize, what: &str) -> Left {
    let around = &bytes[at.saturating_sub(AROUND)..(at + AROUND).min(bytes.len())];
    let around =
        String::from_utf8_lossy(around).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Left { file: file.to_string(), at: at + base, what: what.to_string(), around }
}

fn look_for_shapes(file: &str, text: &str, base: usize, place: &str, found: &mut Vec<Left>) {
    for (range, kind) in shapes::find(text) {
        let what = format!("{} {:?}{place}", kind.word(), &text[range.clone()]);
        found.push(left(file, text.as_bytes(), range.start, base, &what));
    }
}

/// The whole word in which something stands.
fn around(bytes: &[u8], start: usize, end: usize) -> String {
    let own = |byte: &&u8| byte.is_ascii_alphanumeric();
    let before = bytes[..start].iter().rev().take_while(own).count();
    let behind = bytes[end..].iter().take_while(own).count();
    String::from_utf8_lossy(&bytes[start - before..end + behind]).into_owned()
}

/// No letter or digit stands around it; `\n` of JSON is none.
fn is_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    let escaped = start >= 2 && bytes[start - 2] == b'\\' && b"ntr".contains(&bytes[start - 1]);
    (escaped || !before.is_some_and(is_word)) && !bytes.get(end).is_some_and(is_word)
}

/// An original as JSON, pages and keys write it.
fn forms(original: &str) -> Vec<String> {
    let json = serde_json::to_string(original).unwrap_or_default();
    let html = original.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = html.replace('"', "&quot;").replace('\'', "&#39;");
    let marks = ['?', '&', '!', '/', '#', '@', '=', '%', '+', ' '];
    let key = original
        .chars()
        .map(|c| if marks.contains(&c) { format!("%{:02x}", c as u32) } else { c.to_string() });
    let mut all = vec![original.to_string(), json.trim_matches('"').to_string(), html, quoted, key.collect()];
    all.sort();
    all.dedup();
    all
}

/// What base64 makes of a text at each of three places, without the letters that its neighbours
/// share.
fn in_base64(text: &str) -> Vec<String> {
    let of = |shift: usize| {
        let padded = [&b"\0\0"[..shift], text.as_bytes()].concat();
        let code = STANDARD.encode(&padded);
        let whole = padded.len() * 8 / 6;
        let from = (shift * 8).div_ceil(6);
        code.get(from..whole).unwrap_or_default().to_string()
    };
    (0..3).map(of).filter(|code| code.len() >= 5).collect()
}

/// Runs of hexadecimal digits as bytes, at both places where a pair may begin.
fn hex_inside(bytes: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = |run: &[u8]| {
        run.chunks_exact(2).filter_map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
    };
    let runs = runs(bytes, HEX, |byte| byte.is_ascii_hexdigit());
    runs.into_iter().flat_map(|(at, run)| [(at, pairs(run)), (at + 1, pairs(&run[1..]))]).collect()
}

fn base64_inside(bytes: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let runs = runs(bytes, HEX, |byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
    let decoded = |(at, run): (usize, &[u8])| {
        let of = |shift: usize| {
            let part = &run[shift..];
            let whole = &part[..part.len() - part.len() % 4];
            Some((at + shift, STANDARD.decode(whole).ok()?))
        };
        (0..4).filter_map(of).collect::<Vec<_>>()
    };
    runs.into_iter().flat_map(decoded).collect()
}

fn runs(bytes: &[u8], least: usize, own: impl Fn(u8) -> bool) -> Vec<(usize, &[u8])> {
    let mut found = Vec::new();
    let mut from = 0;
    for at in 0..=bytes.len() {
        if bytes.get(at).is_none_or(|byte| !own(*byte)) {
            if at - from >= least {
                found.push((from, &bytes[from..at]));
            }
            from = at + 1;
        }
    }
    found
}

/// Whether a text was encoded: it is long, or all that is there but for its ends.
fn is_meant(text: &str, decoded: &[u8]) -> bool {
    text.len() >= NO_CHANCE || text.len() + 3 >= decoded.len()
}

/// Texts of eight letters and more in bytes.
fn strings(bytes: &[u8]) -> Vec<String> {
    let runs = runs(bytes, ANYWHERE, |byte| (0x20..0x7f).contains(&byte));
    runs.into_iter().map(|(_, run)| String::from_utf8_lossy(run).into_owned()).collect()
}

/// The same, with their places, and with letters that are no ASCII.
fn runs_of_text(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    runs(bytes, ANYWHERE, |byte| byte >= 0x20 && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found_in_any_form() {
        let vocabulary = Vocabulary::new("disk", "storage");
        let mut names = Names::default();
        for original in ["Zanzibar7", "xyzzy", "storage", "ab", "1234"] {
            names.of(Kind::Host, original);
        }
        let mut search = Search::new(&names, &[], &vocabulary).expect("searches");
        assert_eq!((search.searched.originals, search.searched.ordinary.len()), (2, 3));
        let hex: String = b"__ZANZIBAR7__".iter().map(|byte| format!("{byte:02x}")).collect();
        let base64 = STANDARD.encode("the host is zanzibar7, really");
        let mail = STANDARD.encode("mail to somebody@acme.io now");
        for (text, count) in [
            ("all is well with storage ab 1234 xyzzyx", 0),
            ("my ZanZibar7 is", 1),
            ("a\\nxyzzy.", 1),
            (&hex, 1),
            (&hex.to_uppercase(), 1),
            (&format!("x{hex}"), 1),
            (&base64, 1),
            (&mail, 1),
            ("52:54:00:aa:bb:cc", 1),
        ] {
            let found = search.of("a file", text.as_bytes());
            assert_eq!(found.is_empty(), count == 0, "{text}: {found:?}");
        }
        assert!(!search.of("zanzibar7.gz", b"").is_empty());
        // By chance: in a longer word of our own, in a longer number, as a name of the kernel's.
        let vocabulary = Vocabulary::new("databases", "");
        let mut names = Names::default();
        for original in ["database", "sda", "xyz", "db9.acme.example"] {
            names.of(Kind::Host, original);
        }
        let mut search = Search::new(&names, &[], &vocabulary).expect("searches");
        assert!(search.of("a file", b"databases on /dev/sda, 0078797a00112233445566").is_empty());
        assert!(!search.of("a file", b"mydatabase7").is_empty());
        assert!(!search.of("a file", b"at db9:/x").is_empty());
        // Random bytes with something like a mail address in them, as long names of a page give; a
        // whole short text is none.
        let random = [&[0x91; 12][..], b"x+eQE@m.zT", &[0x9c; 14]].concat();
        assert!(search.of("a file", STANDARD.encode(random).as_bytes()).is_empty());
        assert!(!search.of("a file", STANDARD.encode("ann@acme.example").as_bytes()).is_empty());
    }
}
