//! Text that came from a machine, made safe to look at: what cannot be seen is written out, what has no end is cut.

use std::fmt::Write;

/// `text` on one line of at most `max` of its characters. Control characters, bidirectional overrides and characters
/// of no width stand as `\x1b` or `\u{202e}`, so that no text can move a cursor, hide another or pose as another.
pub fn plain(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max) + 8);
    let mut rest = text.chars();
    for _ in 0..max.saturating_sub(1) {
        match rest.next() {
            Some(character) => push(&mut out, character),
            None => return out,
        }
    }
    match (rest.next(), rest.next()) {
        (Some(last), None) if max > 0 => push(&mut out, last),
        (Some(_), _) => out.push('…'),
        (None, _) => {}
    }
    out
}

fn push(out: &mut String, character: char) {
    if !unseen(character) {
        out.push(character);
        return;
    }
    let code = u32::from(character);
    // Writing to a string cannot fail.
    let _ = if code < 0x80 { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
}

/// Characters that draw nothing, or that change how their neighbours are drawn.
fn unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_untouched() {
        assert_eq!(plain("AMD EPYC 9654 – 96 × µs Größe 日本", 200), "AMD EPYC 9654 – 96 × µs Größe 日本");
        assert_eq!(plain("", 10), "");
    }

    #[test]
    fn unseen_characters_are_written_out() {
        assert_eq!(plain("\x1b[31mred\x07", 99), "\\x1b[31mred\\x07");
        assert_eq!(plain("a\nb\tc\u{7f}", 99), "a\\x0ab\\x09c\\x7f");
        assert_eq!(
            plain("\u{202e}gpj.exe\u{200b}\u{feff}\u{9b}", 99),
            "\\u{202e}gpj.exe\\u{200b}\\u{feff}\\u{9b}"
        );
    }

    #[test]
    fn long_text_is_cut_by_characters() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        assert_eq!(plain("日本語日本語", 3), "日本…");
        assert_eq!(plain(&"x".repeat(1 << 20), 100).chars().count(), 100);
        assert_eq!(plain("abc", 0), "…");
        assert_eq!(plain("a", 1), "a");
    }
}
