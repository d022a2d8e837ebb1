//! Numbers as people read them on an axis: powers of two as KiB and MiB, decades as 1, 2, 5.

/// Where an axis has its ticks and what stands there.
#[derive(Debug, Default, PartialEq)]
pub struct Ticks {
    pub values: Vec<f64>,
    pub text: Vec<String>,
}

impl Ticks {
    fn new(values: Vec<f64>, text: impl Fn(f64) -> String) -> Ticks {
        let text = values.iter().map(|value| text(*value)).collect();
        Ticks { values, text }
    }
}

/// Whether a logarithmic axis can reach from one to the other: zero and infinity are endlessly many
/// decades away.
fn reachable(low: f64, high: f64) -> bool {
    low > 0.0 && low <= high && high.is_finite()
}

/// Ticks at powers of two from `low` to `high`, at most `most`, as sizes.
pub fn bytes(low: f64, high: f64, most: usize) -> Ticks {
    powers(low, high, most, size)
}

/// Ticks at powers of two from `low` to `high`, at most `most`.
pub fn powers(low: f64, high: f64, most: usize, text: impl Fn(f64) -> String) -> Ticks {
    if !reachable(low, high) {
        return Ticks::default();
    }
    let (first, last) = (low.log2().ceil() as i64, high.log2().floor() as i64);
    let count = (last - first + 1).max(0);
    let stride = (1_i64..).find(|stride| count.div_euclid(*stride) < most as i64).unwrap_or(1);
    // On multiples of the stride, so that neighbouring charts have the same ticks.
    let first = first + (stride - first.rem_euclid(stride)) % stride;
    let powers = (first..=last).step_by(stride as usize);
    Ticks::new(powers.map(|power| 2_f64.powi(power as i32)).collect(), text)
}

/// Ticks of a logarithmic axis: 1, 2, 5, 10 …, fewer where that is too many and evenly spaced ones
/// where the range is too small for them.
pub fn log(low: f64, high: f64, most: usize) -> Ticks {
    if !reachable(low, high) {
        return Ticks::default();
    }
    if high / low < 4.0 {
        return Ticks::new(even(low, high, most), figure);
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |value: &f64| (low..=high).contains(value);
    for mantissas in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]] {
        let decades = (first..=last).flat_map(|power| mantissas.iter().map(move |m| m * 10_f64.powi(power)));
        let values: Vec<f64> = decades.filter(inside).collect();
        if values.len() <= most {
            return Ticks::new(values, figure);
        }
    }
    let decades = (last - first + 1).max(1) as usize;
    let powers = (first..=last).step_by(decades.div_ceil(most.max(1)));
    Ticks::new(powers.map(|power| 10_f64.powi(power)).filter(inside).collect(), figure)
}

/// Ticks at round numbers with even steps, at most `most` and one.
pub fn linear(low: f64, high: f64, most: usize) -> Ticks {
    Ticks::new(even(low, high, most), figure)
}

/// Round numbers with even steps.
fn even(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low];
    }
    let decade = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    if !(last - first).is_finite() || first.abs() > 1e15 {
        return vec![low];
    }
    (0..=(last - first) as usize).take(most + 2).map(|index| (first + index as f64) * step).collect()
}

/// A number of bytes with its binary unit: `48 KiB`.
pub fn size(bytes: f64) -> String {
    diagnose::words::bytes(bytes).replace(' ', "\u{a0}")
}

/// A number with about four digits that count: `1.234`, `12 340`, `0.000 05` as `5e-5`.
pub fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let power = value.abs().log10().floor();
    if !(-4.0..15.0).contains(&power) {
        return trimmed(&format!("{value:.3e}"));
    }
    let decimals = (3.0 - power).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    grouped(&text)
}

/// `1.500e-5` without the zeros that say nothing.
fn trimmed(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, power)) if digits.contains('.') => {
            format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

/// Thousands apart, from five digits on.
fn grouped(text: &str) -> String {
    let whole = text.split('.').next().unwrap_or(text);
    let digits = whole.trim_start_matches('-').len();
    if digits < 5 {
        return text.to_owned();
    }
    let sign = whole.len() - digits;
    let mut out = String::with_capacity(text.len() + 8);
    for (index, character) in text.chars().enumerate() {
        if index > sign && index < whole.len() && (whole.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_from_zero_or_to_infinity_end() {
        for (low, high) in
            [(0.0, 1.0), (1.0, f64::INFINITY), (0.0, f64::INFINITY), (f64::NAN, 1.0), (2.0, 1.0)]
        {
            assert_eq!((bytes(low, high, 9), log(low, high, 9)), (Ticks::default(), Ticks::default()));
        }
        assert!((1..=9).contains(&log(5e-324, f64::MAX, 9).values.len()));
        assert!((1..=9).contains(&bytes(5e-324, f64::MAX, 9).values.len()));
    }

    #[test]
    fn byte_ticks() {
        let ticks = bytes(4096.0, 1024.0 * 1024.0 * 1024.0, 10);
        assert_eq!(ticks.text[0], "4\u{a0}KiB");
        assert_eq!(ticks.text.last().map(String::as_str), Some("1\u{a0}GiB"));
        assert!(ticks.values.len() <= 10, "{:?}", ticks.text);
        assert_eq!(bytes(4096.0, 16384.0, 10).text, ["4\u{a0}KiB", "8\u{a0}KiB", "16\u{a0}KiB"]);
        assert_eq!(bytes(5000.0, 6000.0, 10).values, Vec::<f64>::new());
        assert_eq!(size(48.0 * 1024.0), "48\u{a0}KiB");
        assert_eq!(size(512.0), "512\u{a0}B");
    }

    #[test]
    fn log_ticks() {
        assert_eq!(log(0.9, 210.0, 10).text, ["1", "2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(
            log(0.9, 12_000.0, 10).text,
            ["1", "3", "10", "30", "100", "300", "1000", "3000", "10\u{202f}000"]
        );
        assert_eq!(
            log(1.0, 1e9, 6).text,
            ["1", "100", "10\u{202f}000", "1\u{202f}000\u{202f}000", "100\u{202f}000\u{202f}000"]
        );
        assert_eq!(log(0.97, 1.04, 8).text, ["0.97", "0.98", "0.99", "1", "1.01", "1.02", "1.03", "1.04"]);
        assert_eq!(log(1.0, 1.0, 8).text, ["1"]);
    }

    #[test]
    fn figures() {
        let shown =
            [0.0, 1.46, 12.3456, 4321.4, -54321.0, 1e6, 0.00123, 1.5e-5, 2e18, 99.999, 100.0].map(figure);
        let wanted = [
            "0",
            "1.46",
            "12.35",
            "4321",
            "-54\u{202f}321",
            "1\u{202f}000\u{202f}000",
            "0.00123",
            "1.5e-5",
            "2e18",
            "100",
            "100",
        ];
        assert_eq!(shown, wanted);
        assert_eq!(figure(f64::NAN), "–");
    }
}
