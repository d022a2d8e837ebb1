//! Regular expressions that are made when they are first needed.

use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;

/// A regular expression of the program's own.
pub struct Expression {
    text: &'static str,
    made: OnceLock<Regex>,
}

impl Expression {
    pub const fn new(text: &'static str) -> Expression {
        Expression { text, made: OnceLock::new() }
    }
}

impl Deref for Expression {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.made.get_or_init(|| Regex::new(self.text).expect("a pattern that a test tries"))
    }
}
