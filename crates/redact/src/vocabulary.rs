//! The words that stay: those of the program's own texts and tables, of the run file's schema, of
//! the operating system's errors, and of kernels.

use std::collections::HashSet;

use model::Line;
use schemars::schema_for;
use serde_json::Value;

use super::text::words;

/// What kernels write into files that this program shows and no rule asks for.
const KERNEL: &str = include_str!("kernel_words.txt");

/// Errors of Linux have numbers below this.
const ERRORS: i32 = 134;

/// Words in small letters.
pub struct Vocabulary {
    /// They name no one, and stay.
    known: HashSet<String>,
    /// Beside them those that reports have of their own: where one of them is an original too, a
    /// page that has it may still be clean.
    spoken: HashSet<String>,
}

impl Vocabulary {
    /// Of the words (one a line) that the crates below have, which measure and judge, and of those
    /// that the others have, which show.
    pub fn new(judging: &str, showing: &str) -> Vocabulary {
        // Names such as `lateness_p50` make their parts known: texts of earlier versions have them.
        let parts = judging.lines().flat_map(|line| line.split('_'));
        let mut known: HashSet<String> = judging.lines().chain(parts).map(str::to_string).collect();
        let mut add = |text: &str| known.extend(words(text).map(str::to_lowercase));
        add(KERNEL);
        for error in 1..ERRORS {
            add(&std::io::Error::from_raw_os_error(error).to_string());
        }
        of_schema(schema_for!(Line).as_value(), &mut add);
        let spoken = showing.lines().map(str::to_string).collect();
        Vocabulary { known, spoken }
    }

    pub fn has(&self, word: &str) -> bool {
        self.known.contains(&word.to_lowercase())
    }

    /// Whether reports may say this of themselves; paths they do not.
    pub fn speaks(&self, text: &str) -> bool {
        let small = text.to_lowercase();
        let says = |word: &str| self.known.contains(word) || self.spoken.contains(word);
        let is_said = |word: &str| says(word) || word.chars().all(|c| !c.is_alphabetic());
        says(&small) || !small.contains('/') && words(&small).all(is_said)
    }
}

/// Names of fields and of what has a list of values.
fn of_schema(schema: &Value, add: &mut impl FnMut(&str)) {
    match schema {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match (name.as_str(), inner) {
                    ("properties", Value::Object(own)) => own.keys().for_each(|name| add(name)),
                    ("const", Value::String(text)) => add(text),
                    ("enum", Value::Array(all)) => all.iter().filter_map(Value::as_str).for_each(&mut *add),
                    _ => {}
                }
                of_schema(inner, add);
            }
        }
        Value::Array(all) => all.iter().for_each(|inner| of_schema(inner, add)),
        _ => {}
    }
}
