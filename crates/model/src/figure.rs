//! Numbers as people read them: three significant digits, and a unit.

/// Three significant digits and the unit; plain counts and rates from ten thousand on in k and M.
pub fn figure(value: f64, unit: &str) -> String {
    let size = value.abs();
    let space = if unit.is_empty() { "" } else { " " };
    // The rest only a damaged file has; no one reads three hundred digits.
    if size > 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{value:.2e}{space}{unit}");
    }
    let (value, prefix) = match (size, unit) {
        (size, "1/s" | "") if size >= 1e6 => (value / 1e6, "M"),
        (size, "1/s" | "") if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size > 0.0 && size.is_finite() => (2 - size.log10().floor() as i32).clamp(0, 6) as usize,
        _ => 0,
    };
    match unit_words(unit) {
        "1/s" => format!("{value:.digits$}{prefix}/s"),
        unit => format!("{value:.digits$}{prefix}{space}{unit}"),
    }
}

/// The same of what is known to two digits: 167 is 170.
pub fn rough_figure(value: f64, unit: &str) -> String {
    let step = match value.abs() {
        size if size > 0.0 && size.is_finite() => 10_f64.powf(size.log10().floor() - 1.0),
        _ => 1.0,
    };
    let text = figure((value / step).round() * step, unit);
    // Three digits are written: the last of them is a zero behind the point.
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.strip_suffix('0').filter(|_| number.contains('.')).unwrap_or(number);
    format!("{}{unit}", number.strip_suffix('.').unwrap_or(number))
}

/// A unit as people read it: data say `us`.
pub fn unit_words(unit: &str) -> &str {
    if unit == "us" { "µs" } else { unit }
}

/// One unit for times that stand in one column, given in ns: none has four digits before the point
/// where a larger unit shows the shortest with one behind it.
pub fn time_unit(times_ns: impl IntoIterator<Item = f64>) -> &'static str {
    let times = times_ns.into_iter().map(f64::abs).filter(|time| time.is_finite() && *time > 0.0);
    let [least, most] =
        times.fold([f64::INFINITY, 0.0], |[least, most], time| [time.min(least), time.max(most)]);
    // Disks and programs are read in µs until 10 ms.
    match () {
        () if most < 1e3 => "ns",
        () if most >= 1e10 && least >= 1e7 => "s",
        () if most >= 1e7 && least >= 1e4 => "ms",
        () => "µs",
    }
}

/// A share as per cent with two significant digits.
pub fn percent(share: f64) -> String {
    // Damaged files hold what is finite only before it is made a percentage.
    let value = (share * 100.0).clamp(f64::MIN, f64::MAX);
    match value.abs() {
        size if size >= 1e15 => format!("{value:.1e} %"),
        size if size >= 9.95 => format!("{value:.0} %"),
        size if size >= 0.995 => format!("{value:.1} %"),
        _ => format!("{value:.2} %"),
    }
}

/// `1 figure`, `12 figures`, `2 passes`.
pub fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count if one.ends_with('s') => format!("{count} {one}es"),
        count => format!("{count} {one}s"),
    }
}

/// Numbers from 0 on as letters: A to Z, AA, AB, and so on.
pub fn letters(number: usize) -> String {
    let mut letters = Vec::new();
    let mut left = number;
    loop {
        letters.insert(0, char::from(b'A' + (left % 26) as u8));
        match left / 26 {
            0 => return letters.into_iter().collect(),
            more => left = more - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_column_have_one_unit() {
        assert_eq!(time_unit([2488.0, 802.0, 1415.0]), "µs");
        assert_eq!(time_unit([1.4, 165.0]), "ns");
        assert_eq!(time_unit([33e3, 3.84e6]), "µs");
        assert_eq!(time_unit([60e3, 2e7]), "ms");
        assert_eq!(time_unit([3e3, 2e7]), "µs");
        assert_eq!(time_unit([2e8, 3e10]), "s");
        assert_eq!(time_unit([]), "ns");
    }

    #[test]
    fn figures_keep_three_digits() {
        let cases = [
            (0.0, "", "0"),
            (0.012345, "ns", "0.0123 ns"),
            (1.0, "", "1.00"),
            (6.2, "ns", "6.20 ns"),
            (99.94, "GB/s", "99.9 GB/s"),
            (12345.6, "ns", "12346 ns"),
            (12345.6, "", "12.3k"),
            (470_123.0, "1/s", "470k/s"),
            (14_040.0, "1/s", "14.0k/s"),
            (9_500.0, "1/s", "9500/s"),
            (-2.5e-300, "GB/s", "-2.50e-300 GB/s"),
            (2.5e6, "1/s", "2.50M/s"),
            (-2.5, "", "-2.50"),
            (1e-12, "s", "1.00e-12 s"),
            (1e18, "1/s", "1.00e18 1/s"),
            (f64::INFINITY, "", "inf"),
        ];
        for (value, unit, text) in cases {
            assert_eq!(figure(value, unit), text);
        }
        let rough =
            [(167.3, "ns"), (1.461, "us"), (20.04, "GB/s"), (0.0, ""), (14_040.0, "1/s"), (-0.0456, "")];
        let rough = rough.map(|(value, unit)| rough_figure(value, unit));
        assert_eq!(rough, ["170 ns", "1.5 µs", "20 GB/s", "0", "14k/s", "-0.046"]);
        let percents = [0.0001, 0.00995, 0.0123, 0.5, 12.0].map(percent);
        assert_eq!(percents, ["0.01 %", "1.0 %", "1.2 %", "50 %", "1200 %"]);
    }
}
