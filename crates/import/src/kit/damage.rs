//! Lines of figures one of whose numbers was damaged, or followed by a word:
//! mended, they would be lines of their program.

use super::Number;

/// No row of figures is longer.
const MAX_LINE_BYTES: usize = 400;
/// What stands between numbers of one word.
const BETWEEN: [char; 4] = ['-', ':', '/', '\u{b1}'];

/// A word of a line.
#[derive(Clone, Copy)]
enum Token<'t> {
    /// It has no number, or its number is one.
    Whole { is_number: bool },
    /// `nan` and its like.
    NoNumber,
    /// What begins and ends with digits, and is no number: `12x4.5`, `1,5`, `0.0-2.0x01`.
    Inside(&'t str),
    /// A number next to letters, which may be its unit: `5x`, `o5`.
    Preamble(&'t str),
}

impl<'t> Token<'t> {
    fn of(word: &'t str) -> Token<'t> {
        let is_digit = |one: char| one.is_ascii_digit();
        let bare = word.trim_matches(|one: char| !one.is_alphanumeric());
        match (word.find(is_digit), word.rfind(is_digit)) {
            _ if ["nan", "inf", "?"].contains(&word.trim_start_matches('-')) => Token::NoNumber,
            // A range, a date or an hour is one.
            (Some(from), Some(to)) if !bare.split(BETWEEN).all(|part| Number::read(part).is_some()) => {
                let number = &word[from..=to];
                if Number::read(number).is_some() { Token::Preamble(number) } else { Token::Inside(number) }
            }
            _ => Token::Whole { is_number: Number::read(bare).is_some() },
        }
    }

    /// The word in one of the ways in which it may have been before.
    fn mended(self, word: &str, way: Repair) -> String {
        let (Token::Inside(number) | Token::Preamble(number)) = self else {
            let is_none = matches!(self, Token::NoNumber);
            return if is_none { "1.5".to_string() } else { word.to_string() };
        };
        match way {
            Repair::Number(instead) => word.replace(number, instead),
            Repair::Token(instead) => instead.to_string(),
            Repair::Letters => word.replace(number, &number.replace(is_strange, "")),
        }
    }
}

/// Another number, in a word or as a word; or the number without what is none of it.
#[derive(Clone, Copy)]
enum Repair {
    Number(&'static str),
    Token(&'static str),
    Letters,
}

const REPAIRS: [Repair; 5] =
    [Repair::Letters, Repair::Number("1.5"), Repair::Number("1"), Repair::Token("1.5"), Repair::Token("1")];

fn is_strange(one: char) -> bool {
    one.is_alphabetic() || one == ','
}

/// Whether a line is one of a program but for its numbers.
pub fn is_damaged(line: &str, is_known: impl Fn(&str) -> bool) -> bool {
    if line.len() > MAX_LINE_BYTES || !line.contains(|one: char| one.is_ascii_digit()) {
        return false;
    }
    let words: Vec<Token> = line.split_whitespace().map(Token::of).collect();
    let is_broken = |word: &Token| !matches!(word, Token::Whole { .. });
    let is_bare = is_row(&words);
    let is_line = |way: &Repair| {
        let mended = |part: &str| {
            let word = part.trim_end();
            Token::of(word).mended(word, *way) + &part[word.len()..]
        };
        let mended: String = line.split_inclusive(char::is_whitespace).map(mended).collect();
        (is_bare || mended.contains(char::is_alphabetic)) && is_known(&mended)
    };
    words.iter().any(is_broken) && REPAIRS.iter().any(is_line) || has_words_behind(line, &is_known)
}

/// Words behind a row, at most, and words that it has itself, at least.
const MAX_WORDS_BEHIND: usize = 3;
const MIN_ROW_WORDS: usize = 3;

/// Whether a line is a row of numbers with a name, and words behind it: `aes-128-cbc 3.5k 4.5k -->
/// slow`.
fn has_words_behind(line: &str, is_known: &impl Fn(&str) -> bool) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |word: &&str| !word.contains(|one: char| one.is_ascii_digit());
    let behind = words.iter().rev().take_while(|word| is_name(word)).count();
    (1..=behind.min(MAX_WORDS_BEHIND)).filter(|more| words.len() >= MIN_ROW_WORDS + more).any(|more| {
        let end = words[words.len() - more].as_ptr() as usize - line.as_ptr() as usize;
        let row = line[..end].trim_end();
        row.contains(char::is_alphabetic) && row.contains('.') && is_known(row)
    })
}

/// Whether words are numbers of a row without any text, of which at least half are whole: what else
/// has no text may be a date, a version or a size above a result. Alone a number was one before if
/// a letter stands in it.
fn is_row(words: &[Token]) -> bool {
    let count = |is_one: fn(&Token) -> bool| words.iter().filter(|word| is_one(word)).count();
    let whole = count(|word| matches!(word, Token::Whole { is_number: true }));
    let inside = count(|word| matches!(word, Token::Inside(_)));
    let is_alone = match words {
        [Token::Inside(number)] => {
            number.contains('.') && number.chars().filter(|one| one.is_alphabetic()).count() == 1
        }
        _ => false,
    };
    count(|word| matches!(word, Token::Preamble(_))) == 0 && (is_alone || whole > 0 && whole >= inside)
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
