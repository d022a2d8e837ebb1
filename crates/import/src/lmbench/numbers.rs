//! Numbers as lmbench's summary writes them, read and written.

/// A cell: `0.28`, `341.`, `111.5K`, `16.K`, `1.0e-04`; `None` where it is something else. A
/// trailing point, and digits that a narrow column cut off, are the format's own.
pub fn read(cell: &str) -> Option<f64> {
    let (digits, scale) = match cell.as_bytes().last()? {
        b'K' => (&cell[..cell.len() - 1], 1e3),
        b'M' => (&cell[..cell.len() - 1], 1e6),
        _ => (cell, 1.0),
    };
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+');
    let number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.chars().all(plain);
    let value: f64 = digits.parse().ok().filter(|_| number)?;
    Some(value * scale).filter(|value| value.is_finite() && *value >= 0.0)
}

/// A value in a column of `width` characters that lmbench formats for `digits` of them: as many
/// decimals as there is room for below ten, one decimal above, thousands and millions from ten of
/// them on.
pub fn write(value: f64, digits: usize, width: usize) -> String {
    let (scaled, unit) = match value {
        value if value >= 1e7 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "K"),
        _ => (value, ""),
    };
    let text = match value {
        value if !value.is_finite() || value <= 0.0 => String::new(),
        value if value >= 10.0 => format!("{scaled:.1}"),
        value if value < 0.001 => format!("{value:.*e}", digits.saturating_sub(6)),
        value => format!("{value:.*}", digits.saturating_sub(2)),
    };
    let room = width.min(digits).saturating_sub(unit.len());
    // What is cut must be decimals: lmbench itself would print 1234 seconds as 123K here.
    let whole = text.find('.').unwrap_or(text.len());
    let cut: String = match text.contains('e') || whole > room || text.is_empty() {
        true if text.len() <= room => text,
        true => String::new(),
        false => text.chars().take(room).chain(unit.chars()).collect(),
    };
    // Better in another form than as nothing.
    let cut = if value > 0.0 && !cut.is_empty() && !cut.contains(|c| ('1'..='9').contains(&c)) {
        Some(format!("{value:.0e}")).filter(|text| text.len() <= width).unwrap_or_default()
    } else {
        cut
    };
    format!("{cut:>width$}")
}

/// Words as a part of a key.
pub fn slug(text: &str) -> String {
    let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let text: String = letters.take(60).collect();
    let parts: Vec<&str> = text.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "unnamed".to_string() } else { parts.join("-") }
}

/// The size in bytes that a decimal number of `unit` bytes stands for, as it was before printing
/// rounded it: sizes are round in binary, so of all that would be printed so the roundest.
pub fn rounded(text: &str, unit: f64) -> u64 {
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(12)) as i32;
    let (value, half) = (text.parse::<f64>().unwrap_or(0.0) * unit, 0.5 * unit * 10f64.powi(-decimals));
    if value == 0.0 {
        return 0;
    }
    let (low, high) = ((value - half).max(0.0).ceil(), (value + half).floor());
    if !(low..=high).contains(&high) || high > 1e15 {
        return value.clamp(0.0, 1e15).round() as u64;
    }
    let (low, high) = (low as u64, high as u64);
    let step = (0..50).rev().map(|bit| 1u64 << bit).find(|step| high / step * step >= low.max(1));
    step.map_or(high, |step| high / step * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read() {
        let cells = [
            ("0.28", 0.28),
            ("341.", 341.0),
            ("7359.", 7359.0),
            ("111.5K", 111_500.0),
            ("16.K", 16_000.0),
            ("3549.8K", 3_549_800.0),
            ("10.5M", 10_500_000.0),
            ("9146", 9146.0),
            ("9.256000", 9.256),
            ("1.0e-04", 1e-4),
        ];
        for (cell, value) in cells {
            let read = read(cell).expect("a number");
            assert!((read - value).abs() <= 1e-9 * value, "{cell}: {read}");
        }
        for wrong in ["", "K", "-", "n/a", "-1", "1.2.3", "inf", "nan", "1e999", "x86_64-Linux", "1.5G"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cells_are_written_as_lmbench_does() {
        let cells = [
            (0.28, 4, "0.28"),
            (341.4, 4, "341."),
            (2059.3, 4, "2059"),
            (16_300.0, 4, "16.K"),
            (111_540.0, 7, " 111.5K"),
            (0.189, 5, "0.189"),
            (1.6182, 7, "1.61820"),
            (12.7, 6, "  12.7"),
            (9.8942, 6, "9.8942"),
            (3_549_800.0, 7, "3549.8K"),
            (0.0, 4, "    "),
            (f64::NAN, 4, "    "),
        ];
        for (value, digits, text) in cells {
            assert_eq!(write(value, digits, digits), text);
        }
        let narrow = [
            write(71.04, 5, 4),
            write(0.25, 6, 5),
            write(1_234_000.0, 4, 4),
            write(1e-4, 4, 4),
            write(0.0048, 4, 4),
        ];
        assert_eq!(narrow, ["71.0", "0.250", "    ", "1e-4", "5e-3"]);
    }

    #[test]
    fn sizes_are_what_they_were_before_printing() {
        let ladder = [
            ("0.00049", 512),
            ("0.00293", 3072),
            ("0.01562", 16384),
            ("0.75000", 786_432),
            ("4096.00000", 1 << 32),
        ];
        for (text, bytes) in ladder {
            assert_eq!(rounded(text, f64::from(1 << 20)), bytes, "{text}");
        }
        let sizes = [
            ("0.000001", 1),
            ("0.000064", 64),
            ("0.000512", 512),
            ("1.05", 1 << 20),
            ("67.11", 64 << 20),
            ("0.262144", 1 << 18),
        ];
        for (text, bytes) in sizes {
            assert_eq!(rounded(text, 1e6), bytes, "{text}");
        }
        assert_eq!(
            (rounded("", 1e6), rounded("0", 1e6), rounded("1e99", 1e6)),
            (0, 0, 1_000_000_000_000_000)
        );
    }

    #[test]
    fn names_are_made_of_letters() {
        assert_eq!(slug("STREAM2 copy  bandwidth"), "stream2-copy-bandwidth");
        assert_eq!(slug("\u{1b}[31m@#"), "31m");
        assert_eq!(slug("§"), "unnamed");
    }
}
