//! Text on its way into the page: each place has its own way to be escaped, and machines name
//! themselves as they like.

use std::fmt;
use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

use crate::plain::plain;

/// Filters of the templates.
pub mod filters {
    use askama::{Result, Values};

    /// Text from a machine; the template escapes the answer for HTML.
    #[askama::filter_fn]
    pub fn plain(text: &str, _: &dyn Values, max: usize) -> Result<String> {
        Ok(crate::plain::plain(text, max))
    }

    /// The same where line breaks mean something.
    #[askama::filter_fn]
    pub fn lines(text: &str, _: &dyn Values, max: usize) -> Result<String> {
        Ok(super::plain_lines(text, max))
    }

    /// An id that can stand in a link and in a selector.
    #[askama::filter_fn]
    pub fn anchor(id: &str, _: &dyn Values) -> Result<String> {
        Ok(super::anchor(id))
    }
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

/// Text for a label that plotly draws: plotly reads a small HTML of its own in every one of them.
pub fn label(text: &str, max: usize) -> String {
    plain(text, max).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A label inside a plotly template, where `%{…}` would be a reference.
pub fn template_label(text: &str, max: usize) -> String {
    label(text, max).replace('%', "&#37;").replace('{', "&#123;")
}

/// A value as JSON that can stand inside a `<script>`: it holds no `<`, `>` or `&`.
pub struct Script<T>(pub T);

impl<T: Serialize> fmt::Display for Script<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut serializer = serde_json::Serializer::with_formatter(Pipe(f), ScriptSafe);
        self.0.serialize(&mut serializer).map_err(|_| fmt::Error)
    }
}

/// JSON text made so that it can stand inside a `<script>`: outside strings JSON has none of these
/// characters, inside them an escape means the same.
pub struct ScriptText<'a>(pub &'a str);

impl fmt::Display for ScriptText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_script_safe(self.0, |part| f.write_str(part))
    }
}

/// Passes `text` on in parts, with what could end a script replaced by JSON escapes.
fn write_script_safe<E>(text: &str, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let mut rest = text;
    while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        write(&rest[..at])?;
        let mut tail = rest[at..].chars();
        write(match tail.next() {
            Some('<') => "\\u003c",
            Some('>') => "\\u003e",
            Some('&') => "\\u0026",
            Some('\u{2028}') => "\\u2028",
            _ => "\\u2029",
        })?;
        rest = tail.as_str();
    }
    write(rest)
}

struct ScriptSafe;

impl Formatter for ScriptSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_script_safe(fragment, |part| writer.write_all(part.as_bytes()))
    }

    /// The few characters that JSON itself escapes; `/` is not among them.
    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(writer, escape)
    }
}

/// A formatter as something to write bytes to; JSON is written in whole characters.
struct Pipe<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl io::Write for Pipe<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "</script><!-- & \u{2028} \" \\ \u{1b}";

    #[test]
    fn json_in_a_script_cannot_end_it() {
        let shown = Script(serde_json::json!({ "name": EVIL })).to_string();
        assert!(!shown.contains(['<', '>', '&', '\u{2028}', '\u{1b}']), "{shown}");
        let back: serde_json::Value = serde_json::from_str(&shown).expect("is JSON");
        assert_eq!(back["name"], EVIL);
        let text = ScriptText(&serde_json::to_string(EVIL).expect("serialises")).to_string();
        assert!(!text.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&text).expect("is JSON"), EVIL);
    }

    #[test]
    fn labels_hold_no_markup() {
        assert_eq!(label("<b>x</b> & <a href=\"y\">", 99), "&lt;b&gt;x&lt;/b&gt; &amp; &lt;a href=\"y\"&gt;");
        assert_eq!(template_label("%{z}", 99), "&#37;&#123;z}");
        assert_eq!(anchor("memory.latency#x y\"<"), "memory.latency-x-y--");
    }

    #[test]
    fn lines_are_kept_and_cut() {
        assert_eq!(plain_lines("a\n\x1bb\r\n\nc", 99), "a\n\\x1bb\n\nc");
        assert_eq!(plain_lines("abc\ndef", 4), "abc\n…");
        assert_eq!(plain_lines("abc\ndef\nghi", 3), "abc\n…");
    }
}
