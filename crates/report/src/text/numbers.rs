//! Numbers as screens write them: three digits, intervals in per cent or by their ends.

/// A number of three digits, with its decimals behind the point.
pub fn three(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        size if size > 0.0 && size.is_finite() => (2 - size.log10().floor() as i32).clamp(0, 3) as usize,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    match text.len() {
        4.. if digits == 0 && size < 1e15 => thousands(&text),
        _ => text,
    }
}

fn thousands(digits: &str) -> String {
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && c != '-' && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// The same where no point must stand under another: 24.0 is 24.
pub fn bare(value: f64) -> String {
    let text = three(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Half the 95 % interval in per cent; both ends where it is wide, or lopsided and not narrow.
pub fn spread(value: f64, low_high: Option<[f64; 2]>) -> String {
    const WIDE: f64 = 0.20;
    const NARROW: f64 = 0.10;
    const LOPSIDED: f64 = 1.5;
    let Some([low, high]) = low_high else { return String::new() };
    if !high.is_finite() {
        return format!("≥ {}", bare(low));
    }
    let half = (high - low) / 2.0 / value.abs();
    let (down, up) = (value - low, high - value);
    let lopsided = half > NARROW && (down > LOPSIDED * up || up > LOPSIDED * down);
    match half {
        half if half > WIDE || lopsided => format!("{}–{}", two(low), two(high)),
        half if half >= 0.0995 => format!("{:.0} %", 100.0 * half),
        half => format!("{:.1} %", 100.0 * half),
    }
}

/// The same with two digits, three from 100 on: what is wide has no more.
fn two(value: f64) -> String {
    let digits = match value.abs() {
        size if size > 0.0 && size.is_finite() => (1 - size.log10().floor() as i32).clamp(0, 3) as usize,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
