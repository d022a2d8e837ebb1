//! JSON: a generator of documents with known content, a parser and its tree.

use super::Rng;

/// A node: kind (upper 4 bits) and length of a string; start of the string, or a number; first
/// child; next sibling.
pub type Node = [u32; 4];
const NONE: u32 = u32::MAX;
const OBJECT: u32 = 1;
const ARRAY: u32 = 2;
const STRING: u32 = 3;
const NUMBER: u32 = 4;
const TRUE: u32 = 5;
const FALSE: u32 = 6;
const NULL: u32 = 7;

/// Number of values of each kind, sum of the numbers, and sum of the strings' lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    kinds: [u64; 8],
    sum: i64,
    letters: u64,
}

impl Tally {
    pub fn nodes(&self) -> usize {
        self.kinds.iter().sum::<u64>() as usize
    }
    pub fn words(&self) -> [u64; 9] {
        let [_, a, b, c, d, e, f, g] = self.kinds;
        [a, b, c, d, e, f, g, self.sum as u64, self.letters]
    }
    /// Adds the tree below `at`.
    pub fn walk(&mut self, nodes: &[Node], at: u32) {
        let mut at = at;
        while let Some(&[kind, value, child, next]) = nodes.get(at as usize) {
            self.kinds[(kind >> 28 & 7) as usize] += 1;
            match kind >> 28 {
                OBJECT | ARRAY => self.walk(nodes, child),
                NUMBER => self.sum += i64::from(value as i32),
                _ => self.letters += u64::from(kind & 0x0fff_ffff),
            }
            at = next;
        }
    }
}

struct Maker {
    rng: Rng,
    text: Vec<u8>,
    tally: Tally,
}

impl Maker {
    fn string(&mut self, content: &[u8]) {
        self.tally.kinds[STRING as usize] += 1;
        self.tally.letters += content.len() as u64;
        quote(content, &mut self.text);
    }
    fn key(&mut self, name: &str, first: bool) {
        self.text.extend_from_slice(if first { b"{" } else { b"," });
        self.string(name.as_bytes());
        self.text.push(b':');
    }
    fn number(&mut self) {
        let bits = 1 + self.rng.below(30);
        let number =
            self.rng.below(1 << bits) as i32 - if self.rng.below(4) == 0 { 1 << bits.min(29) } else { 0 };
        self.tally.kinds[NUMBER as usize] += 1;
        self.tally.sum += i64::from(number);
        self.text.extend_from_slice(number.to_string().as_bytes());
    }
    fn word(&mut self) {
        let length = self.rng.below(18);
        let letters = b"abcdefghijklmnopqrstuvwxyz ABCDEF0123456789\"\\\n\t/";
        let content: Vec<u8> =
            (0..length).map(|_| letters[self.rng.below(letters.len() as u64) as usize]).collect();
        self.string(&content);
    }
    fn constant(&mut self) {
        let (kind, name) = [(TRUE, "true"), (FALSE, "false"), (NULL, "null")][self.rng.below(3) as usize];
        self.tally.kinds[kind as usize] += 1;
        self.text.extend_from_slice(name.as_bytes());
    }
    fn record(&mut self, depth: u64) {
        self.tally.kinds[OBJECT as usize] += 1;
        self.key("id", true);
        self.number();
        self.key("name", false);
        self.word();
        self.key("enabled", false);
        self.constant();
        self.key("values", false);
        self.tally.kinds[ARRAY as usize] += 1;
        self.text.push(b'[');
        for at in 0..self.rng.below(7) {
            if at > 0 {
                self.text.push(b',');
            }
            match self.rng.below(8) {
                0 => self.constant(),
                1 | 2 => self.word(),
                3 | 4 if depth < 6 => self.record(depth + 1),
                _ => self.number(),
            }
        }
        self.text.extend_from_slice(b"]}");
    }
}

/// A document of at least `bytes` bytes, without spaces, and its content.
pub fn document(bytes: usize) -> (Vec<u8>, Tally) {
    let mut maker = Maker { rng: Rng(0x6a73_6f6e), text: b"[".to_vec(), tally: Tally::default() };
    maker.tally.kinds[ARRAY as usize] = 1;
    while maker.text.len() < bytes {
        if maker.text.len() > 1 {
            maker.text.push(b',');
        }
        maker.record(0);
    }
    maker.text.push(b']');
    (maker.text, maker.tally)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    nodes: &'a mut [Node],
    used: usize,
    strings: &'a mut [u8],
    kept: usize,
}

/// Parses JSON (with whole numbers) into `nodes` (root first) and `strings`; returns the number of
/// each that is used, or `None` if it is invalid or they do not suffice.
pub fn parse(text: &[u8], nodes: &mut [Node], strings: &mut [u8]) -> Option<(usize, usize)> {
    let mut parser = Parser { text, at: 0, nodes, used: 0, strings, kept: 0 };
    parser.value(0)?;
    parser.space();
    (parser.at == text.len()).then_some((parser.used, parser.kept))
}

impl Parser<'_> {
    #[inline]
    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }
    #[inline]
    fn node(&mut self, node: Node) -> Option<u32> {
        let at = self.used;
        *self.nodes.get_mut(at)? = node;
        self.used += 1;
        Some(at as u32)
    }
    #[inline]
    fn letter(&mut self) -> Option<u8> {
        self.space();
        self.at += 1;
        self.text.get(self.at - 1).copied()
    }

    fn value(&mut self, depth: u32) -> Option<u32> {
        match self.letter()? {
            b'{' => self.list(OBJECT, b'}', depth),
            b'[' => self.list(ARRAY, b']', depth),
            b'"' => self.string(),
            b't' => self.constant(b"rue", TRUE),
            b'f' => self.constant(b"alse", FALSE),
            b'n' => self.constant(b"ull", NULL),
            b'-' => self.number(true),
            b'0'..=b'9' => {
                self.at -= 1;
                self.number(false)
            }
            _ => None,
        }
    }

    /// Parses an array's values, or an object's alternating names and values, as linked siblings.
    fn list(&mut self, kind: u32, end: u8, depth: u32) -> Option<u32> {
        let list = self.node([kind << 28, 0, NONE, NONE])?;
        self.space();
        if self.text.get(self.at) == Some(&end) {
            self.at += 1;
            return Some(list);
        }
        let mut last = None;
        loop {
            if depth > 200 {
                return None;
            }
            if kind == OBJECT {
                if self.letter()? != b'"' {
                    return None;
                }
                let name = self.string()?;
                self.link(list, last, name);
                last = Some(name);
                if self.letter()? != b':' {
                    return None;
                }
            }
            let value = self.value(depth + 1)?;
            self.link(list, last, value);
            last = Some(value);
            match self.letter()? {
                b',' => {}
                letter => return (letter == end).then_some(list),
            }
        }
    }
    #[inline]
    fn link(&mut self, list: u32, last: Option<u32>, next: u32) {
        match last {
            Some(last) => self.nodes[last as usize][3] = next,
            None => self.nodes[list as usize][2] = next,
        }
    }

    fn string(&mut self) -> Option<u32> {
        let begin = self.kept;
        loop {
            let mut letter = *self.text.get(self.at)?;
            self.at += 1;
            if letter == b'"' {
                let length = (self.kept - begin) as u32;
                return self.node([STRING << 28 | length, begin as u32, NONE, NONE]);
            }
            if letter == b'\\' {
                letter = match *self.text.get(self.at)? {
                    b'n' => b'\n',
                    b't' => b'\t',
                    same @ (b'"' | b'\\' | b'/') => same,
                    _ => return None,
                };
                self.at += 1;
            } else if letter < b' ' {
                return None;
            }
            *self.strings.get_mut(self.kept)? = letter;
            self.kept += 1;
        }
    }

    fn number(&mut self, negative: bool) -> Option<u32> {
        let begin = self.at;
        let mut number = 0i64;
        while let Some(digit @ b'0'..=b'9') = self.text.get(self.at) {
            number = number * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        if self.at == begin || self.at > begin + 10 {
            return None;
        }
        let number = i32::try_from(if negative { -number } else { number }).ok()?;
        self.node([NUMBER << 28, number as u32, NONE, NONE])
    }

    fn constant(&mut self, rest: &[u8], kind: u32) -> Option<u32> {
        if !self.text.get(self.at..)?.starts_with(rest) {
            return None;
        }
        self.at += rest.len();
        self.node([kind << 28, 0, NONE, NONE])
    }
}

fn quote(content: &[u8], into: &mut Vec<u8>) {
    into.push(b'"');
    for &letter in content {
        match letter {
            b'"' | b'\\' => into.extend([b'\\', letter]),
            b'\n' => into.extend(b"\\n"),
            b'\t' => into.extend(b"\\t"),
            _ => into.push(letter),
        }
    }
    into.push(b'"');
}

/// Writes the value at `at`.
pub fn write(nodes: &[Node], strings: &[u8], at: u32, into: &mut Vec<u8>) {
    let Some(&[kind, value, child, _]) = nodes.get(at as usize) else { return };
    let begin = value as usize;
    match kind >> 28 {
        STRING => quote(strings.get(begin..begin + (kind & 0x0fff_ffff) as usize).unwrap_or(&[]), into),
        NUMBER => into.extend_from_slice((value as i32).to_string().as_bytes()),
        TRUE => into.extend(b"true"),
        FALSE => into.extend(b"false"),
        NULL => into.extend(b"null"),
        list => {
            into.push(if list == OBJECT { b'{' } else { b'[' });
            let (mut next, mut count) = (child, 0);
            while let Some(node) = nodes.get(next as usize) {
                if count > 0 {
                    into.push(if list == OBJECT && count % 2 == 1 { b':' } else { b',' });
                }
                write(nodes, strings, next, into);
                (next, count) = (node[3], count + 1);
            }
            into.push(if list == OBJECT { b'}' } else { b']' });
        }
    }
}
