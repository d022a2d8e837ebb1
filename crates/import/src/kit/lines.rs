//! Tables of lines: each pattern says what a line is called, what it does to the run that it stands
//! in, and by named groups what can be read in it.

use std::cell::Cell;
use std::sync::OnceLock;

use regex::{Captures, Regex, RegexSet};

use super::{Number, damage};

/// What a line does to the runs of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It begins a run.
    Begins,
    /// It is part of the run that begins next, or has just begun.
    Ahead,
    /// It is part of the open run; without one, of the run that begins next.
    Within,
    /// A run has it once: the second one is another run's.
    Once,
    /// A run may have it many times.
    Adds,
    /// It is the last line of its run.
    Ends,
    /// It stands between runs: it ends the open one and is part of none.
    Separates,
    /// It has no meaning.
    Ignored,
}

/// A kind of line.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub name: &'static str,
    pub role: Role,
    /// A regular expression for all of a line.
    pub regex: &'static str,
}

/// Constructors of the rows of a table, one for each role; lines without a meaning have no name.
macro_rules! roles {
    ($($name:ident $role:ident)+) => {
        $(pub const fn $name(name: &'static str, regex: &'static str) -> Pattern {
            Pattern { name, role: Role::$role, regex }
        })+
    };
}
roles! { begins Begins ahead Ahead within Within once Once adds Adds ends Ends separates Separates }

pub const fn ignored(regex: &'static str) -> Pattern {
    Pattern { name: "ignored", role: Role::Ignored, regex }
}

/// The lines of a format; the first pattern that fits is a line's. Its expressions are compiled at
/// the first search.
#[derive(Debug)]
pub struct Table {
    patterns: &'static [Pattern],
    made: OnceLock<(RegexSet, Vec<Regex>)>,
}

impl Table {
    pub const fn new(patterns: &'static [Pattern]) -> Table {
        Table { patterns, made: OnceLock::new() }
    }

    fn made(&self) -> &(RegexSet, Vec<Regex>) {
        self.made.get_or_init(|| {
            let whole = |pattern: &Pattern| format!(r"^\s*(?:{})\s*$", pattern.regex);
            let texts: Vec<String> = self.patterns.iter().map(whole).collect();
            let regex = |text: &String| Regex::new(text).expect("a pattern that a test tries");
            let all = RegexSet::new(&texts).expect("patterns that a test tries");
            (all, texts.iter().map(regex).collect())
        })
    }

    fn first(&self, line: &str) -> Option<usize> {
        self.made().0.matches(line).iter().next()
    }

    /// The place of the pattern that a line has.
    #[cfg(test)]
    pub fn place(&self, line: &str) -> Option<usize> {
        self.first(line)
    }

    /// What a line is; `None` where no pattern knows it.
    pub fn hit<'t>(&self, line: &'t str) -> Option<Hit<'t>> {
        let at = self.first(line)?;
        let (pattern, found) = (self.patterns[at], self.made().1[at].captures(line)?);
        Some(Hit { name: pattern.name, role: pattern.role, found, refused: Cell::new(false) })
    }

    /// Whether a line would be one of these if its numbers were some: `Copy: 12x4.5 0.1` was
    /// damaged, and is no heading.
    pub fn is_damaged(&self, line: &str) -> bool {
        damage::is_damaged(line, |mended| self.made().0.is_match(mended))
    }
}

/// A line that a pattern knows.
#[derive(Debug)]
pub struct Hit<'t> {
    pub name: &'static str,
    pub role: Role,
    found: Captures<'t>,
    refused: Cell<bool>,
}

impl<'t> Hit<'t> {
    /// All of the line.
    pub fn line(&self) -> &'t str {
        self.found.get(0).map_or("", |found| found.as_str())
    }

    pub fn text(&self, field: &str) -> Option<&'t str> {
        self.found.name(field).map(|found| found.as_str().trim())
    }

    /// The number in a field; a line in whose field stands no number is refused.
    pub fn number(&self, field: &str) -> Option<Number> {
        let number = Number::read(self.text(field)?);
        if number.is_none() {
            self.refuse();
        }
        number
    }

    /// The line has figures that cannot be read: it counts among the lines that are not read.
    pub fn refuse(&self) {
        self.refused.set(true);
    }

    pub fn is_refused(&self) -> bool {
        self.refused.get()
    }

    /// A number whose unit stands in the field `<field>_unit`, by `step`.
    pub fn scaled(&self, field: &str, step: f64) -> Option<Number> {
        let unit = self.text(&format!("{field}_unit")).unwrap_or_default();
        Some(self.number(field)?.times(super::scale(unit, step)))
    }
}
