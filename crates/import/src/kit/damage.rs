//! Lines of figures one of whose numbers was damaged, or behind which somebody wrote a word:
//! mended, they would be lines of their program.

use super::Number;

/// No row of figures is longer.
const LONGEST: usize = 400;
/// What stands between numbers of one word.
const BETWEEN: [char; 4] = ['-', ':', '/', '\u{b1}'];

/// A word of a line.
#[derive(Clone, Copy)]
enum Word<'t> {
    /// It has no number, or its number is one.
    Whole { is_number: bool },
    /// `nan` and its like.
    NoNumber,
    /// What begins and ends with digits, and is no number: `12x4.5`, `1,5`, `0.0-2.0x01`.
    Inside(&'t str),
    /// A number with letters beside it, which may be its unit: `5x`, `o5`.
    Around(&'t str),
}

impl<'t> Word<'t> {
    fn of(word: &'t str) -> Word<'t> {
        let is_digit = |one: char| one.is_ascii_digit();
        let bare = word.trim_matches(|one: char| !one.is_alphanumeric());
        match (word.find(is_digit), word.rfind(is_digit)) {
            _ if ["nan", "inf", "?"].contains(&word.trim_start_matches('-')) => Word::NoNumber,
            // A range, a date or an hour is one.
            (Some(from), Some(to)) if !bare.split(BETWEEN).all(|part| Number::read(part).is_some()) => {
                let number = &word[from..=to];
                if Number::read(number).is_some() { Word::Around(number) } else { Word::Inside(number) }
            }
            _ => Word::Whole { is_number: Number::read(bare).is_some() },
        }
    }

    /// The word in one of the ways in which it may have been before.
    fn mended(self, word: &str, way: Way) -> String {
        let (Word::Inside(number) | Word::Around(number)) = self else {
            let is_none = matches!(self, Word::NoNumber);
            return if is_none { "1.5".to_string() } else { word.to_string() };
        };
        match way {
            Way::Number(instead) => word.replace(number, instead),
            Way::Word(instead) => instead.to_string(),
            Way::Letters => word.replace(number, &number.replace(is_strange, "")),
        }
    }
}

/// Another number, in a word or as a word; or the number without what is none of it.
#[derive(Clone, Copy)]
enum Way {
    Number(&'static str),
    Word(&'static str),
    Letters,
}

const WAYS: [Way; 5] = [Way::Letters, Way::Number("1.5"), Way::Number("1"), Way::Word("1.5"), Way::Word("1")];

fn is_strange(one: char) -> bool {
    one.is_alphabetic() || one == ','
}

/// Whether a line is one of a program but for its numbers.
pub fn is_damaged(line: &str, is_known: impl Fn(&str) -> bool) -> bool {
    if line.len() > LONGEST || !line.contains(|one: char| one.is_ascii_digit()) {
        return false;
    }
    let words: Vec<Word> = line.split_whitespace().map(Word::of).collect();
    let is_broken = |word: &Word| !matches!(word, Word::Whole { .. });
    let is_bare = is_row(&words);
    let is_line = |way: &Way| {
        let mended = |part: &str| {
            let word = part.trim_end();
            Word::of(word).mended(word, *way) + &part[word.len()..]
        };
        let mended: String = line.split_inclusive(char::is_whitespace).map(mended).collect();
        (is_bare || mended.contains(char::is_alphabetic)) && is_known(&mended)
    };
    words.iter().any(is_broken) && WAYS.iter().any(is_line) || has_words_behind(line, &is_known)
}

/// Words that somebody writes behind a row, at most, and words that it has itself, at least.
const BEHIND: usize = 3;
const LEAST: usize = 3;

/// Whether a line is a row of numbers with a name, and words behind it: `aes-128-cbc 3.5k 4.5k -->
/// slow`.
fn has_words_behind(line: &str, is_known: &impl Fn(&str) -> bool) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |word: &&str| !word.contains(|one: char| one.is_ascii_digit());
    let behind = words.iter().rev().take_while(|word| is_name(word)).count();
    (1..=behind.min(BEHIND)).filter(|more| words.len() >= LEAST + more).any(|more| {
        let end = words[words.len() - more].as_ptr() as usize - line.as_ptr() as usize;
        let row = line[..end].trim_end();
        row.contains(char::is_alphabetic) && row.contains('.') && is_known(row)
    })
}

/// Whether words are numbers of a row without any text, of which at least half are whole: what else
/// has no text may be a date, a version or a size above a result. Alone a number was one before if
/// a letter stands in it.
fn is_row(words: &[Word]) -> bool {
    let count = |is_one: fn(&Word) -> bool| words.iter().filter(|word| is_one(word)).count();
    let whole = count(|word| matches!(word, Word::Whole { is_number: true }));
    let inside = count(|word| matches!(word, Word::Inside(_)));
    let is_alone = match words {
        [Word::Inside(number)] => {
            number.contains('.') && number.chars().filter(|one| one.is_alphabetic()).count() == 1
        }
        _ => false,
    };
    count(|word| matches!(word, Word::Around(_))) == 0 && (is_alone || whole > 0 && whole >= inside)
}

#[cfg(test)]
mod tests {
    use crate::kit::Table;
    use crate::kit::lines::adds;

    #[test]
    fn rows_are_told_from_headings_with_numbers() {
        let table = Table::new(
            const {
                &[
                    adds("copy", r"Copy: +[\d.]+ +[\d.]+"),
                    adds("range", r"\d+\.\d+-\d+\.\d+ sec +[\d.]+ MBytes"),
                    adds("row", r"\d+(?:\s+\d+\.\d+)+"),
                    adds("pair", r"\d+:\s+(?:[\d.]+|inf)"),
                    adds("alone", r"\d+\.\d+"),
                ]
            },
        );
        for damaged in [
            "Copy: 12x4.5 0.1",
            "Copy:  124.5  o.1 ",
            "Copy: 12,4.5 0.1",
            "Copy: nan 0.1",
            "Copy: 124.5x 0.1",
            "0.00-2.0x1 sec  5.5 MBytes",
            "0.00-2.01 sec  5.5.5z MBytes",
            "5 1.5 2..5",
            "5 1.5 2,5",
            "5x1 1.5",
            "0:   65q.1",
            "122q.1",
            "Copy: 124.5 0.1 --> slow",
            "0.00-2.01 sec  5.5 MBytes (the best)",
        ] {
            assert!(table.hit(damaged).is_some() != table.is_damaged(damaged), "{damaged}");
        }
        for heading in [
            "6.1.0",
            "6.1-rc3",
            "2026-11-02 10:11",
            "4k",
            "8 16k",
            "2x8",
            "10.0.0.1",
            "Copy",
            "Copy of 5 files",
            "5 MBytes",
            "kernel 6.1",
            "of 10.5 sec",
            "6.1 patched",
            "1.5 and so on",
            "Copy: 124.5 0.1 before we had changed it",
            "",
        ] {
            assert!(!table.is_damaged(heading), "{heading}");
        }
    }
}
