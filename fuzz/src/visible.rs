//! What people may be shown.

use ::report::plain::plain;

/// Every character is visible and in its place: no escape that recolours a terminal, no override
/// that turns a line around, nothing of no width.
pub fn check(what: &str, text: &str) {
    for line in text.split('\n') {
        let harmless = plain(line, usize::MAX);
        assert!(harmless == line, "{what} holds what cannot be seen: {harmless}");
    }
}

/// The same, and no line is wider than the terminal.
pub fn check_width(what: &str, text: &str, width: usize) {
    check(what, text);
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{what} is wider than {width}: {line}");
    }
}
