//! What a text tells of a run beside its figures: on which host and in which folder it was started,
//! by what, on which day, and under which headings.

use std::collections::BTreeSet;

use super::runs::is_noise;
use crate::above::{Called, called, is_marked, level, said};
use crate::own::short;

/// Lines above a run that are kept.
const MOST: usize = 60;

/// Lines that are quoted together.
const MOST_QUOTED: usize = 3;

/// How words begin that name work, or nothing: a heading of no others says nothing of the system.
const WORK: [&str; 48] = [
    "rand", "seq", "read", "write", "mix", "trim", "rw", "iops", "bw", "through", "band", "latenc", "lat",
    "qd", "queue", "depth", "iodepth", "bs", "block", "size", "test", "job", "run", "result", "output",
    "fio", "thread", "numjobs", "process", "sync", "direct", "buffer", "workload", "bench", "then", "next",
    "first", "second", "third", "again", "small", "large", "single", "multi", "parallel", "pure", "perform",
    "speed",
];

/// The same, as whole words.
const LINKS: [&str; 21] = [
    "io", "i", "o", "a", "an", "the", "of", "with", "for", "on", "at", "in", "to", "by", "vs", "and", "here",
    "is", "are", "now", "also",
];

/// A line above a run that is no call of fio.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    level: usize,
    marked: bool,
    words: String,
}

/// What the text says of one run.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub called: Called,
    /// The lines that head it, its own behind those that hold since earlier runs.
    path: Vec<Line>,
    /// Its own.
    own: Vec<Line>,
}

impl Told {
    /// By the lines between a run and the one before, and what was told of that.
    pub fn of<'a>(above: impl Iterator<Item = &'a str>, earlier: &Told) -> Told {
        let mut told = Told::default();
        for line in above {
            if let Some(called) = called(line, "fio") {
                told.called = called;
            } else if let Some(words) = said(line).filter(|_| !is_noise(line)) {
                told.own.push(Line { level: level(line), marked: is_marked(line), words });
            }
        }
        told.own.drain(..told.own.len().saturating_sub(MOST));
        told.path = match told.own.first() {
            // It is headed as before, or by the last of that.
            _ if earlier.path.ends_with(&told.own) => earlier.path.clone(),
            Some(first) => {
                let holds = earlier.path.iter().filter(|line| line.level < first.level);
                holds.chain(&told.own).cloned().collect()
            }
            None => Vec::new(),
        };
        told.path.drain(..told.path.len().saturating_sub(MOST));
        told
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.path.iter().map(|line| line.words.as_str())
    }

    /// Whether two runs of the same work are two results by what the text says of them.
    pub fn differs(&self, other: &Told) -> bool {
        let (own, others) = (&self.called, &other.called);
        let called = !own.command.is_empty() && !others.command.is_empty();
        !self.words().eq(other.words())
            || called && (own.command != others.command || own.before != others.before)
            || differ(&own.folder, &others.folder)
    }

    /// Whether they are of two systems, whatever they did.
    pub fn is_elsewhere(&self, other: &Told) -> bool {
        let host = |told: &Told| told.called.host.clone().unwrap_or_default();
        let known: BTreeSet<String> = other.words().flat_map(words).collect();
        let news = self.own.iter().filter(|line| line.marked).flat_map(|line| words(&line.words));
        let is_headed = !other.path.is_empty();
        differ(&host(self), &host(other))
            || is_headed && news.filter(|word| !known.contains(word)).any(|word| !is_work(&word))
    }
}

fn differ(a: &str, b: &str) -> bool {
    !a.is_empty() && !b.is_empty() && a != b
}

fn words(line: &str) -> impl Iterator<Item = String> {
    let is_part = |one: char| one.is_alphanumeric() || one == '.';
    let words = line.split(move |one: char| !is_part(one)).map(|word| word.trim_matches('.'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a word is of the work: `randread`, `4k`, `32`.
fn is_work(word: &str) -> bool {
    let unit = word.trim_start_matches(|one: char| one.is_ascii_digit());
    let is_count = unit.len() < word.len()
        && ["", "b", "k", "kb", "kib", "m", "mb", "mib", "g", "gb", "gib", "s", "t", "th", "st", "nd"]
            .contains(&unit);
    is_count || LINKS.contains(&word) || WORK.iter().any(|begin| word.starts_with(begin))
}

/// What heads each of several results, and tells it from the others where anything does.
pub fn headings(all: &[&Told]) -> Vec<String> {
    let is_common = |words: &str| all.iter().all(|told| told.words().any(|other| other == words));
    let own = |told: &Told| -> Vec<String> {
        let own: Vec<String> = told.words().filter(|words| !is_common(words)).map(short).collect();
        match own.is_empty() {
            true => told.words().last().map(short).into_iter().collect(),
            false => own,
        }
    };
    let own: Vec<Vec<String>> = all.iter().map(|told| own(told)).collect();
    let last: Vec<&str> = own.iter().map(|own| own.last().map_or("", String::as_str)).collect();
    let is_once = |words: &str| last.iter().filter(|last| **last == words).count() < 2;
    let heading = |own: &Vec<String>| match own.last() {
        Some(last) if !is_once(last) => own[own.len().saturating_sub(MOST_QUOTED)..].join(" / "),
        last => last.cloned().unwrap_or_default(),
    };
    own.iter().map(heading).collect()
}

/// The day of `Tue Oct  7 21:40:10 2025`.
pub fn day(ran: &str) -> Option<[&str; 3]> {
    let words: Vec<&str> = ran.split_whitespace().collect();
    match words[..] {
        [_, month, day, time, year] if time.contains(':') => Some([month, day, year]),
        _ => None,
    }
}
