//! Numbers of results, each found by its place in a line and without a reader's pattern.

use crate::{Imported, read};

/// All values of a key, of all results of a text.
pub fn values(all: &[Imported], key: &str) -> Vec<f64> {
    let figures = all.iter().flat_map(|one| &one.figures).filter(|one| one.judged.series.key == key);
    figures.flat_map(|one| one.judged.series.values().concat()).collect()
}

/// Whether one of these is this number, but for the arithmetic.
pub fn has(values: &[f64], number: f64) -> bool {
    values.iter().any(|value| (value / number - 1.0).abs() < 1e-9)
}

/// The number that is this word of a line. Words end at blanks, and at commas where the line has
/// blanks, too; signs and units around a number are none of it.
#[track_caller]
pub fn number(line: &str, word: usize) -> f64 {
    let is_end = |one: char| one.is_whitespace() || one == ',' && line.contains(' ');
    let mut words = line.split(is_end).filter(|word| !word.is_empty());
    let word = words.nth(word).and_then(|word| word.split(',').next()).expect(line);
    word.trim_matches(|one: char| !one.is_ascii_digit()).parse().expect(line)
}

/// Checks that a word of a line is a value of this key, times `factor`; returns how many values the
/// key has.
#[track_caller]
pub fn stands(text: &str, line: &str, word: usize, factor: f64, key: &str) -> usize {
    let printed = number(line, word) * factor;
    let all = read(text.as_bytes()).expect("a result");
    let found = values(&all, key);
    assert!(has(&found, printed), "{key} is {found:?}, {line:?} says {printed}");
    found.len()
}

#[test]
fn a_number_is_a_word_without_its_unit() {
    for (line, word, expected) in [
        ("a 5.25 MB/s", 1, 5.25),
        (" 99.000%   2.80ms", 1, 2.8),
        ("3  , 67108864, 512", 1, 67_108_864.0),
        ("70.25,69.6,", 0, 70.25),
        ("took 5 clocks ( 2.1 ns)", 4, 2.1),
    ] {
        assert_eq!(number(line, word), expected, "{line}");
    }
    assert!(has(&[1.0, 0.3], 0.1 + 0.2) && !has(&[1.0, 0.3], 0.31) && !has(&[], 1.0));
}
