//! Foreign text made harmless: host names, DMI strings and command lines may hold anything.

use std::fmt::Write;

/// `text` as visible characters on one line, at most `max` of them.
///
/// Control characters (an ANSI escape would recolour or rewrite the terminal), bidirectional
/// overrides and zero-width characters are spelled out (`\x1b`, `\u{202e}`); what is cut off is
/// marked by `…`. Markup is left as it is: the code that writes HTML escapes it.
pub fn plain(text: &str, max: usize) -> String {
    let mut shown = String::new();
    let mut count = 0;
    // Where to cut so that the mark still fits.
    let mut cut = 0;
    for c in text.chars() {
        let before = shown.len();
        match c {
            c if (c as u32) < 0x100 && c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\x{:02x}", c as u32);
                count += 4;
            }
            c if hidden(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", c as u32);
                count += shown[before..].chars().count();
            }
            c => {
                shown.push(c);
                count += 1;
            }
        }
        if count < max {
            cut = shown.len();
        }
        if count > max {
            shown.truncate(cut);
            if max > 0 {
                shown.push('…');
            }
            return shown;
        }
    }
    shown
}

/// The words of a text on lines of at most `width` characters, as far as words are short enough. A
/// command between backticks counts as one word, so that it can be copied whole. So does a number
/// with its unit, where a line has room for both.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = words(text).into_iter().peekable();
    while let Some(mut word) = rest.next() {
        while let Some(unit) = rest.next_if(|next| {
            is_number(&word) && is_unit(next) && word.chars().count() + 1 + next.chars().count() <= width
        }) {
            word = format!("{word} {unit}");
        }
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Whether a word is a number that a unit may follow: `0.73`, `(95`, `+8`, `1,310`, `176k`.
pub fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let ends = digits.strip_suffix(['k', 'M', 'G']).unwrap_or(digits);
    let is_digit = |c: char| c.is_ascii_digit();
    let inside = |c: char| is_digit(c) || matches!(c, '.' | ',' | '–' | '-');
    digits.starts_with(is_digit) && ends.ends_with(is_digit) && ends.chars().all(inside)
}

/// Whether a word is a unit, but for the punctuation around it.
pub fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 36] = [
        "%", "×", "x", "ns", "µs", "us", "ms", "s", "min", "h", "days", "Hz", "kHz", "MHz", "GHz", "B",
        "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "B/s", "kB/s", "MB/s", "GB/s", "MiB/s", "GiB/s",
        "bit/s", "Mbit/s", "Gbit/s", "1/s", "k/s", "M/s",
    ];
    let unit = word.trim_end_matches(['.', ',', ';', ':', ')', '?']);
    UNITS.contains(&unit) || (unit.ends_with("/s") && unit.len() > 2 && !unit.contains(['@', '#', '?', '=']))
}

/// A key on lines of at most `width` characters, broken behind its parts where that suffices.
pub fn key_lines(key: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in key.split_inclusive(['@', '/', '?', '#', '&', ',']) {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + part.chars().count() <= width => {
                line.push_str(part);
            }
            _ => lines.push(part.to_string()),
        }
    }
    let cut = |line: String| {
        let letters: Vec<char> = line.chars().collect();
        letters.chunks(width.max(1)).map(String::from_iter).collect::<Vec<_>>()
    };
    lines.into_iter().flat_map(cut).collect()
}

/// What stands between blanks, and what stands between backticks with what is written up to them.
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        match words.last_mut().filter(|_| open) {
            Some(command) => {
                command.push(' ');
                command.push_str(word);
            }
            None => words.push(word.to_string()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    // A backtick that nothing closes holds no command.
    if open { text.split_whitespace().map(str::to_string).collect() } else { words }
}

/// `text` for a terminal that does not speak UTF-8: our own marks by their nearest ASCII sign, all
/// else by `?`. One character for one, so that columns stay aligned.
pub fn ascii(text: &str) -> String {
    let sign = |c: char| match c {
        c if c.is_ascii() => c,
        '┌' | '┐' | '└' | '┘' => '+',
        '─' | '–' | '—' | '−' => '-',
        '÷' => '/',
        '│' => '|',
        '×' => 'x',
        '·' => '-',
        '…' | '±' => '~',
        'µ' => 'u',
        '▲' => '^',
        '▼' => 'v',
        '●' => '=',
        '✓' => '+',
        '✗' => 'x',
        '┆' => ':',
        '■' | '█' => '#',
        '▁' => '.',
        '▂' => ':',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => '*',
        '▇' => '%',
        '▓' => '=',
        '░' => '.',
        '▸' => '>',
        _ => '?',
    };
    text.chars().map(sign).collect()
}

/// The same where signs may take more than one character: before columns are laid out.
pub fn spelled_out(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '±' => out.push_str("+/-"),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            '…' => out.push_str("..."),
            c => out.push_str(&ascii(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// Characters without a width of their own, or that change how their neighbours are shown.
pub fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x2028..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff0..=0xfffb
            | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        assert_eq!(plain("a\x1b[31mb\r\n\t", 99), "a\\x1b[31mb\\x0d\\x0a\\x09");
        assert_eq!(plain("\u{202e}evil\u{200b}\u{feff}", 99), "\\u{202e}evil\\u{200b}\\u{feff}");
        assert_eq!(plain("\u{9b}31m\u{7f}", 99), "\\x9b31m\\x7f");
        assert_eq!(plain("<script>é漢", 99), "<script>é漢");
    }

    #[test]
    fn ascii_keeps_the_width() {
        let text = "24.3 GHz ±2 % │ 4 × 16 GiB… é漢";
        assert_eq!(ascii(text), "24.3 GHz ~2 % | 4 x 16 GiB~ ??");
        assert_eq!(ascii(text).chars().count(), text.chars().count());
        assert_eq!(ascii("▁▂▃▄▅▆▇█"), ".:-=+*%#", "a line of blocks rises");
    }

    #[test]
    fn commands_are_not_broken() {
        let text = "not tested (`assay rate --new`), see `x`";
        assert_eq!(lines(text, 12), ["not tested", "(`assay rate --new`),", "see `x`"]);
        assert_eq!(lines("it's `a b", 4), ["it's", "`a b"]);
        assert_eq!(lines("", 4), [""; 0]);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(
            lines("the largest CV 0.73 % (0.5 to 1.4)", 19),
            ["the largest CV", "0.73 % (0.5 to 1.4)"]
        );
        assert_eq!(
            lines("lasts (95 ns), or 176k events/s.", 10),
            ["lasts", "(95 ns),", "or 176k", "events/s."]
        );
        assert_eq!(lines("lasts (95 ns), or 176k events/s.", 14), ["lasts (95 ns),", "or", "176k events/s."]);
        // A unit alone, and a word behind a number that is none, stand where they fit.
        assert_eq!(lines("of % and 4 CPUs", 11), ["of % and 4", "CPUs"]);
        for (word, is) in [("0.73", true), ("(+8", true), ("1,310", true), ("CPU0", false), ("00:00", false)]
        {
            assert_eq!(is_number(word), is, "{word}");
        }
        for (word, is) in [("%.", true), ("GB/s)", true), ("events/s", true), ("CPUs", false), ("/s", false)]
        {
            assert_eq!(is_unit(word), is, "{word}");
        }
    }

    #[test]
    fn long_text_is_cut_by_characters() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        assert_eq!(plain("ééééééé", 3), "éé…");
        assert_eq!(plain("abc\x1bdef", 5), "abc…");
        assert_eq!(plain("\x1b", 2), "…");
        assert_eq!(plain("ab", 0), "");
        let huge = "x".repeat(1 << 20);
        assert_eq!(plain(&huge, 80).chars().count(), 80);
    }
}
