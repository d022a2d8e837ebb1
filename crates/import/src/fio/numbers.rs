//! fio's numbers: with suffixes of two kinds, and units that each line names.

use model::units::{binary, split};

use crate::kit::scale;

/// A number that a suffix may multiply: `3472.2k`, `46.8k`, `1.2M`; of 1000s, as fio's text has
/// them for counts and times.
pub fn decimal(text: &str) -> Option<f64> {
    let (number, suffix) = split(text)?;
    let is_suffix = suffix.is_empty() || suffix.len() == 1 && "kKmMgGtT".contains(suffix);
    is_suffix.then(|| number * scale(suffix, 1e3))
}

/// A number of digits and at most one point.
pub fn plain(text: &str) -> Option<f64> {
    let text = text.trim();
    let own = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !text.is_empty();
    text.parse().ok().filter(|_| own && text.len() <= 30)
}

/// An amount: `4k`, `1MiB`, `3777.6MB`, `65536B`, `64.0KiB`. A letter alone and `KiB` are 1024s;
/// `KB` is 1024 in version 2 and 1000 in the brackets of version 3, which `kilo` says. `Gibit` and
/// `Gbit` are eighths (`--unit_base=1`).
pub fn amount(text: &str, kilo: f64) -> Option<f64> {
    let (number, unit) = split(text)?;
    let unit = unit.to_ascii_lowercase();
    if let Some(prefix) = unit.strip_suffix("bit") {
        return Some(amount(&format!("{number}{prefix}b"), kilo)? / 8.0);
    }
    let bytes = match unit.as_bytes() {
        [b'k' | b'm' | b'g' | b't', b'b'] => scale(&unit, kilo),
        _ => binary(&unit)?,
    };
    Some(number * bytes)
}

/// A size as an option has it: `4k`, `64KiB`, `1mb`. fio takes `k` for 1024 and, of all things,
/// `KiB` for 1000, unless it was set to count in thousands (`kb_base=1000`).
pub fn parse_size(text: &str, thousands: bool) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    let (is_binary, plain) = (lower.ends_with("ib"), lower.replace('i', ""));
    let unit = plain.trim_end_matches('b');
    let unit =
        if unit.ends_with(|one: char| one.is_ascii_digit()) { unit.to_string() } else { format!("{unit}b") };
    amount(&unit, if is_binary == thousands { 1024.0 } else { 1000.0 })
}

/// fio before 3.26 lost a carry: 11.97 was printed as 11.0. What may be missing of such a number,
/// as it is read.
pub fn carry(text: &str, read: &dyn Fn(&str) -> Option<f64>) -> f64 {
    let digits = text.find(|one: char| !(one.is_ascii_digit() || one == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.split('/').next().unwrap_or_default();
    let behind = number.split_once('.').map_or("", |(_, behind)| behind);
    let is_whole = !behind.is_empty() && behind.bytes().all(|digit| digit == b'0');
    is_whole.then(|| read(&format!("1{unit}"))).flatten().unwrap_or(0.0)
}

/// Whether a rate lacks what the same in other units has: at most this much.
pub fn is_carried(most: f64, printed: f64, again: f64) -> bool {
    again > printed * 1.01 && again < (printed + most) * 1.01
}

/// `name=value` of a list with commas, spaces around allowed.
pub fn named<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let one = |part: &'a str| part.split_once('=').filter(|(known, _)| known.trim() == name);
    list.split(',').find_map(one).map(|(_, value)| value.trim())
}

/// The same where something follows: the last of a line may have been cut.
pub fn whole<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    named(list.rsplit_once(',')?.0, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_of_counts_are_thousands_and_of_sizes_1024s() {
        assert_eq!(
            (decimal("3472.2k"), decimal("46.8k"), decimal("914")),
            (Some(3_472_200.0), Some(46_800.0), Some(914.0))
        );
        assert_eq!((decimal("nan"), decimal("-3"), decimal("1e9"), decimal("")), (None, None, None, None));
        assert_eq!((amount("4K", 1024.0), amount("64.0KiB", 1000.0)), (Some(4096.0), Some(65536.0)));
        assert_eq!((amount("64466KB", 1024.0), amount("192MB", 1000.0)), (Some(66_013_184.0), Some(192e6)));
        assert_eq!((amount("4X", 1024.0), amount("k", 1024.0)), (None, None));
        assert_eq!((amount("8Gibit", 1000.0), amount("8Gbit", 1000.0)), (Some(1024f64.powi(3)), Some(1e9)));
        assert_eq!((amount("16kbit", 1000.0), amount("8bit", 1000.0)), (Some(2000.0), Some(1.0)));
        let sizes = ["4k", "4kb", "4KiB", "1m", "512", "512B"];
        let of = |thousands: bool| sizes.map(|size| parse_size(size, thousands).unwrap_or(0.0));
        assert_eq!(of(false), [4096.0, 4096.0, 4000.0, 1_048_576.0, 512.0, 512.0]);
        assert_eq!(of(true), [4000.0, 4000.0, 4096.0, 1e6, 512.0, 512.0]);
        let lost = |text: &str| carry(text, &|text| amount(text, 1000.0));
        assert_eq!((lost("11.0MiB"), lost("11.5MiB"), lost("11MiB")), (1_048_576.0, 0.0, 0.0));
        assert_eq!((carry("11.0k", &decimal), lost("10.000GB/s")), (1000.0, 1e9));
        assert_eq!(named("min=  12, max=914, avg=51.87", "avg"), Some("51.87"));
    }
}
