//! Regular expressions: Thompson's construction, the subset construction, the search.

use anyhow::{Context, ensure};
use std::collections::BTreeMap;

/// The patterns; the generator of the lines knows which lines match them.
pub const PATTERNS: [&str; 6] = [
    "Failed password for [a-z]+ from [0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+ port",
    "\"(GET|POST) /[a-z/]*\\.html HTTP/1\\.[01]\" 5[0-9][0-9] ",
    "(error|fatal|panic): cpu[0-9]+ ",
    "<[a-z]+\\.?[0-9]*@([a-z]+[0-9]*\\.)+(org|net)>.*@mail",
    "0x[0-9a-f]+",
    "(images|icons)/[a-z]+\\.(html|png)",
];

/// A state of the nondeterministic automaton: the letters of its transition (`None`: no letter
/// needed), and up to two next states.
struct Place {
    letters: Option<[bool; 256]>,
    next: Vec<usize>,
}

#[derive(Default)]
struct Net {
    places: Vec<Place>,
}

/// A part of the automaton: its first state, and its last one, which has no next state yet.
type Part = (usize, usize);

impl Net {
    fn place(&mut self, letters: Option<[bool; 256]>, next: Vec<usize>) -> usize {
        self.places.push(Place { letters, next });
        self.places.len() - 1
    }
    fn either(&mut self, text: &mut &[u8]) -> anyhow::Result<Part> {
        let mut part = self.sequence(text)?;
        while let Some(rest) = text.strip_prefix(b"|") {
            *text = rest;
            let other = self.sequence(text)?;
            let end = self.place(None, Vec::new());
            self.places[part.1].next.push(end);
            self.places[other.1].next.push(end);
            part = (self.place(None, vec![part.0, other.0]), end);
        }
        Ok(part)
    }
    fn sequence(&mut self, text: &mut &[u8]) -> anyhow::Result<Part> {
        let start = self.place(None, Vec::new());
        let mut part = (start, start);
        while text.first().is_some_and(|letter| !b"|)".contains(letter)) {
            let next = self.repeated(text)?;
            self.places[part.1].next.push(next.0);
            part.1 = next.1;
        }
        Ok(part)
    }
    fn repeated(&mut self, text: &mut &[u8]) -> anyhow::Result<Part> {
        let inner = self.single(text)?;
        let Some((sign, rest)) = text.split_first() else { return Ok(inner) };
        if !b"*+?".contains(sign) {
            return Ok(inner);
        }
        *text = rest;
        let end = self.place(None, Vec::new());
        let start = self.place(None, vec![inner.0]);
        self.places[inner.1].next.push(end);
        if *sign != b'?' {
            self.places[inner.1].next.push(inner.0);
        }
        if *sign != b'+' {
            self.places[start].next.push(end);
        }
        Ok((start, end))
    }
    fn single(&mut self, text: &mut &[u8]) -> anyhow::Result<Part> {
        let (first, rest) = text.split_first().context("the pattern ends early")?;
        *text = rest;
        let mut letters = [false; 256];
        match first {
            b'(' => {
                let part = self.either(text)?;
                *text = text.strip_prefix(b")").context("no closing parenthesis")?;
                return Ok(part);
            }
            b'.' => {
                letters = [true; 256];
                letters[usize::from(b'\n')] = false;
            }
            b'[' => {
                let end = text.iter().position(|letter| *letter == b']').context("no closing bracket")?;
                let (mut class, rest) = (&text[..end], &text[end + 1..]);
                while let [from, more @ ..] = class {
                    let (to, left) = if let [b'-', to, left @ ..] = more { (to, left) } else { (from, more) };
                    letters[usize::from(*from)..=usize::from(*to)].fill(true);
                    class = left;
                }
                *text = rest;
            }
            b'\\' => {
                let (letter, rest) = text.split_first().context("nothing after a backslash")?;
                letters[usize::from(*letter)] = true;
                *text = rest;
            }
            letter => letters[usize::from(*letter)] = true,
        }
        let end = self.place(None, Vec::new());
        Ok((self.place(Some(letters), vec![end]), end))
    }
    /// `from` and all states that can be reached without a letter.
    fn reach(&self, from: usize, into: &mut Vec<usize>) {
        if !into.contains(&from) {
            into.push(from);
            if self.places[from].letters.is_none() {
                self.places[from].next.iter().for_each(|next| self.reach(*next, into));
            }
        }
    }
}

pub struct Automaton {
    /// The class of each letter; letters that no pattern distinguishes share a class.
    classes: [u8; 256],
    /// Indexed by state and class: the row of the next state and, in the lowest 8 bits, the
    /// patterns that end there.
    table: Vec<u32>,
}

impl Automaton {
    pub fn new(patterns: &[&str]) -> anyhow::Result<Automaton> {
        let mut net = Net::default();
        let mut ends = Vec::new();
        let mut starts = Vec::new();
        for pattern in patterns {
            let mut text = pattern.as_bytes();
            let part = net.either(&mut text)?;
            ensure!(text.is_empty(), "{pattern} has a parenthesis too many");
            net.reach(part.0, &mut starts);
            ends.push(part.1);
        }
        ensure!(patterns.len() <= 8, "too many patterns");
        let mut kinds: BTreeMap<Vec<bool>, u8> = BTreeMap::new();
        let mut classes = [0; 256];
        let mut members = Vec::new();
        for (letter, class) in classes.iter_mut().enumerate() {
            let mut kind: Vec<bool> =
                net.places.iter().filter_map(|place| place.letters.map(|letters| letters[letter])).collect();
            kind.push(letter == usize::from(b'\n'));
            let next = kinds.len() as u8;
            *class = *kinds.entry(kind).or_insert_with(|| {
                members.push(letter);
                next
            });
        }
        let width = members.len();
        starts.sort_unstable();
        let mut states = vec![starts.clone()];
        let mut numbers = BTreeMap::from([(starts.clone(), 0)]);
        let mut table = Vec::new();
        let mut at = 0;
        while at < states.len() {
            ensure!(states.len() < 20_000, "the patterns need too many states");
            for letter in &members {
                // A match may begin anywhere but across lines.
                let mut next = starts.clone();
                for place in states[at].iter().map(|place| &net.places[*place]) {
                    if place.letters.is_some_and(|letters| letters[*letter]) {
                        place.next.iter().for_each(|place| net.reach(*place, &mut next));
                    }
                }
                next.sort_unstable();
                let patterns = (0..ends.len()).filter(|pattern| next.contains(&ends[*pattern]));
                let mask: u32 = patterns.map(|pattern| 1 << pattern).sum();
                let number = *numbers.entry(next.clone()).or_insert_with(|| {
                    states.push(next);
                    states.len() - 1
                });
                table.push(((number * width) as u32) << 8 | mask);
            }
            at += 1;
        }
        Ok(Automaton { classes, table })
    }
    pub fn bytes(&self) -> u64 {
        (self.table.len() * 4 + size_of::<Automaton>()) as u64
    }
    #[cfg(test)]
    pub fn states(&self) -> usize {
        self.table.len() / (1 + usize::from(self.classes.iter().copied().max().unwrap_or(0)))
    }

    /// Adds the number of matching lines of each pattern to `found`.
    #[inline(always)]
    pub fn search(&self, text: &[u8], found: &mut [u64]) {
        let (mut row, mut seen) = (0, 0);
        for &letter in text {
            let entry = self.table[row + usize::from(self.classes[usize::from(letter)])];
            row = (entry >> 8) as usize;
            seen |= entry & 255;
            if letter == b'\n' {
                for (pattern, count) in found.iter_mut().enumerate() {
                    *count += u64::from(seen >> pattern & 1);
                }
                seen = 0;
            }
        }
    }
}
