//! Text on its way into the page: each place has its own way to be escaped, and hosts name
//! themselves as they like.

use crate::plain::plain;
use crate::svg::escaped;

/// Filters of the templates.
pub mod filters {
    use askama::{Result, Values};

    /// Text from a host; the template escapes the answer for HTML.
    #[askama::filter_fn]
    pub fn plain(text: &str, _: &dyn Values, max: usize) -> Result<String> {
        Ok(crate::plain::plain(text, max))
    }

    /// The same where line breaks mean something.
    #[askama::filter_fn]
    pub fn lines(text: &str, _: &dyn Values, max: usize) -> Result<String> {
        Ok(super::plain_lines(text, max))
    }

    /// The same, with ranges (`0.77–0.81`) that no line's end breaks.
    #[askama::filter_fn]
    pub fn unbroken(text: &str, _: &dyn Values, max: usize) -> Result<String> {
        Ok(crate::plain::plain(text, max).replace('–', "–\u{2060}"))
    }

    /// Sentences as HTML, with commands as code.
    #[askama::filter_fn]
    pub fn prose(text: &str, _: &dyn Values, max: usize) -> Result<String> {
        Ok(super::prose(text, max))
    }

    /// An id that can stand in a link and in a selector.
    #[askama::filter_fn]
    pub fn anchor(id: &str, _: &dyn Values) -> Result<String> {
        Ok(super::anchor(id))
    }
}

/// Escaped text in which what stands between backticks is code; one without its pair stays.
fn prose(text: &str, max: usize) -> String {
    let text = escaped(&plain(text, max));
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return text;
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => part.to_string(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// `plain` line by line: `max` characters in all.
pub fn plain_lines(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut left = max;
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if left == 0 {
            out.push('…');
            break;
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        out.push_str(&plain(line, left));
        left = left.saturating_sub(line.chars().count().max(1));
    }
    out
}

/// Letters, digits, `-`, `_` and `.`; everything else becomes `-`.
pub fn anchor(id: &str) -> String {
    let kept =
        id.chars().take(80).map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_hold_no_markup() {
        assert_eq!(anchor("memory.latency#x y\"<"), "memory.latency-x-y--");
    }

    #[test]
    fn commands_are_code_and_nothing_else_is_markup() {
        assert_eq!(prose("run `assay <b>` now", 99), "run <code>assay &lt;b&gt;</code> now");
        assert_eq!(prose("`a` and `b`", 99), "<code>a</code> and <code>b</code>");
        assert_eq!(prose("one ` alone", 99), "one ` alone");
    }

    #[test]
    fn lines_are_kept_and_cut() {
        assert_eq!(plain_lines("a\n\x1bb\r\n\nc", 99), "a\n\\x1bb\n\nc");
        assert_eq!(plain_lines("abc\ndef", 4), "abc\n…");
        assert_eq!(plain_lines("abc\ndef\nghi", 3), "abc\n…");
    }
}
