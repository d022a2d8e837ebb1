//! Numbers with unit words, as people, kernels and other tools write them: `4k`, `32 MiB`, `90s`,
//! `2.5ms`. How numbers are printed is in `figure`.

use std::time::Duration;

/// Words of units, and how many of a table's own unit each is.
pub type Words = [(&'static str, f64)];

/// Words for times, in ns.
const TIMES: &Words = &[
    ("ns", 1.0),
    ("nsec", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("usec", 1e3),
    ("ms", 1e6),
    ("msec", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("m", 6e10),
    ("min", 6e10),
    ("h", 3.6e12),
];

/// Whole numbers up to here are exact.
const MAX_BYTES: f64 = 9_007_199_254_740_992.0;

/// The number that a text begins with, and the word behind it; `None` where it begins with none.
pub fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, word) = text.split_at(end);
    Some((number.parse().ok()?, word.trim_start()))
}

/// A number with one of these words, in the unit of the table.
pub fn amount(text: &str, words: &Words) -> Option<f64> {
    let (number, word) = split(text)?;
    Some(number * of(words, word)?)
}

fn of(words: &Words, word: &str) -> Option<f64> {
    words.iter().find(|(known, _)| *known == word).map(|(_, factor)| *factor)
}

/// How many ns one of a unit of time is.
pub fn nanoseconds(word: &str) -> Option<f64> {
    of(TIMES, word)
}

/// A time in ns; a number without a word is in the unit `alone`.
pub fn time(text: &str, alone: &str) -> Option<f64> {
    let (number, word) = split(text)?;
    Some(number * nanoseconds(if word.is_empty() { alone } else { word })?)
}

/// A time on a command line: `90`, `90s`, `10m`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = time(text, "s").map(|ns| ns / 1e9).filter(|seconds| *seconds > 0.0 && *seconds < 1e10);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected a time above 0 with s, m or h, such as 90s or 10m".to_string())
}

/// How many bytes one of a word is, where all prefixes are powers of two: `k`, `KiB`, `kB`.
pub fn binary(word: &str) -> Option<f64> {
    let word = word.to_ascii_lowercase();
    let prefix = word.strip_suffix('b').unwrap_or(&word);
    match prefix.strip_suffix('i').unwrap_or(prefix) {
        "" | "bytes" => Some(1.0),
        "k" => Some(1024.0),
        "m" => Some(1_048_576.0),
        "g" => Some(1_073_741_824.0),
        "t" => Some(1_099_511_627_776.0),
        _ => None,
    }
}

/// A whole number of bytes, its prefix a power of two: `4096`, `4k`, `32 MiB`, `16384 MB`.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, word) = split(text)?;
    let bytes = number * binary(word)?;
    (!text.contains('.') && bytes < MAX_BYTES).then_some(bytes as u64)
}

/// What turns a number of one unit into one of another; `None` where they measure different things.
pub fn unit_factor(from: &str, to: &str) -> Option<f64> {
    const UNITS: [&Words; 4] = [
        &[("MHz", 1e6), ("GHz", 1e9)],
        &[("1/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)],
        &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("TiB", 1099511627776.0)],
        &[
            ("kB/s", 1e3),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
            ("MiB/s", 1048576.0),
            ("GiB/s", 1073741824.0),
            ("Mbit/s", 1.25e5),
            ("Gbit/s", 1.25e8),
        ],
    ];
    // In seconds: times in ns would round elsewhere than numbers that were published.
    let seconds = |unit: &str| nanoseconds(unit).map(|ns| ns / 1e9);
    match (seconds(from), seconds(to)) {
        _ if from == to => Some(1.0),
        (Some(from), Some(to)) => Some(from / to),
        _ => UNITS.iter().find_map(|units| Some(of(units, from)? / of(units, to)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_one_kind_are_converted() {
        assert_eq!(unit_factor("ns", "µs").map(|by| (by * 1e6).round()), Some(1000.0));
        assert_eq!(unit_factor("1/s", "k/s"), Some(1e-3));
        assert_eq!(unit_factor("cycles", "cycles"), Some(1.0));
        assert_eq!(unit_factor("ns", "GB/s"), None);
    }

    #[test]
    fn sizes_are_whole_powers_of_two() {
        let sizes = ["4096", "4k", "32 MiB", " 64 kB", "16384 MB", "512bytes", "8G", "3 TB", "1b"];
        let bytes = [4096, 4096, 32 << 20, 64 << 10, 16 << 30, 512, 8 << 30, 3 << 40, 1].map(Some);
        assert_eq!(sizes.map(super::bytes), bytes);
        for wrong in ["", "k", "-1k", "1.5G", "8X", "4kk", "nan", "1e3", "99999999999T", "1.2.3k"] {
            assert_eq!(super::bytes(wrong), None, "{wrong}");
        }
        assert_eq!(
            split("1.5 MiB").and_then(|(number, word)| Some(number * binary(word)?)),
            Some(1_572_864.0)
        );
    }

    #[test]
    fn times_have_their_unit_or_the_usual_one() {
        let times = ["250", "2.5ms", "100us", "1 s", "10m", "2h"].map(|text| time(text, "ns"));
        assert_eq!(times, [250.0, 2.5e6, 1e5, 1e9, 6e11, 7.2e12].map(Some));
        assert_eq!((time("90", "s"), time("-1ms", "s"), time("5d", "s")), (Some(9e10), None, None));
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(
            (duration("0.5s"), duration("2h").map(|two| two.as_secs())),
            (Ok(Duration::from_millis(500)), Ok(7200))
        );
        for wrong in ["", "0", "s", "-5s", "inf", "nan", "5d", "9e9h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(amount("2 doz", &[("doz", 12.0)]), Some(24.0));
    }
}
