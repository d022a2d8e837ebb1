//! A set of CPU (or NUMA node) numbers, as the kernel writes it: `0-3,8,10-11`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// CPU or NUMA node numbers in rising order, without a limit at 1024.
///
/// Written and read as the kernel's list format (`0-3,8`), the empty set as the empty string. Numbers that no machine
/// has are not taken in by any way, so that every set that is written can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet(BTreeSet<u32>);

/// Numbers above this are refused: a damaged file must not make us allocate gigabytes. Linux itself allows 8192 CPUs
/// (`CONFIG_NR_CPUS`) today.
const HIGHEST_CPU: u32 = 1 << 16;

impl CpuSet {
    pub fn one(cpu: u32) -> CpuSet {
        CpuSet::from_iter([cpu])
    }

    /// Parses the kernel's list format; `None` where the text is anything else.
    pub fn parse_list(text: &str) -> Option<CpuSet> {
        let mut set = BTreeSet::new();
        let mut listed = 0;
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
        if text.is_empty() {
            return Some(CpuSet(set));
        }
        for part in text.split(',') {
            let part = part.trim();
            let (low, high) = match part.split_once('-') {
                Some((low, high)) => (low.parse::<u32>().ok()?, high.parse::<u32>().ok()?),
                None => {
                    let one = part.parse::<u32>().ok()?;
                    (one, one)
                }
            };
            if low > high || high > HIGHEST_CPU {
                return None;
            }
            // A hostile list that repeats one wide range must not keep us busy for minutes.
            listed += high - low + 1;
            if listed > 2 * HIGHEST_CPU {
                return None;
            }
            set.extend(low..=high);
        }
        Some(CpuSet(set))
    }

    /// Parses the kernel's mask format (`ffffffff,0000ff01`: 32-bit words, the highest first).
    pub fn parse_mask(text: &str) -> Option<CpuSet> {
        let mut set = BTreeSet::new();
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
        for (word_index, word) in text.rsplit(',').enumerate() {
            let word = word.trim();
            // Without commas a mask may be longer than one word (a few old kernels and hand-edited trees).
            for (digit_index, digit) in word.chars().rev().enumerate() {
                let bits = digit.to_digit(16)?;
                if bits == 0 {
                    continue;
                }
                let base = u32::try_from(word_index * 32 + digit_index * 4).ok()?;
                if base + bits.ilog2() > HIGHEST_CPU {
                    return None;
                }
                set.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| base + bit));
            }
        }
        Some(CpuSet(set))
    }

    /// Takes a number in, but for one that no machine has.
    pub fn insert(&mut self, cpu: u32) {
        if cpu <= HIGHEST_CPU {
            self.0.insert(cpu);
        }
    }

    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }

    pub fn union(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.union(&other.0).copied().collect())
    }

    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.difference(&other.0).copied().collect())
    }

    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.0.is_subset(&other.0)
    }

    pub fn is_disjoint(&self, other: &CpuSet) -> bool {
        self.0.is_disjoint(&other.0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        CpuSet(cpus.into_iter().filter(|cpu| *cpu <= HIGHEST_CPU).collect())
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuSet, String> {
        CpuSet::parse_list(text).ok_or_else(|| format!("not a list of CPUs like 0-3,8: {text:?}"))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(low) = cpus.next() {
            let mut high = low;
            while cpus.peek() == Some(&(high + 1)) {
                high += 1;
                cpus.next();
            }
            match high - low {
                0 => write!(f, "{separator}{low}")?,
                _ => write!(f, "{separator}{low}-{high}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CpuSet, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for CpuSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CpuSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "CPU or NUMA node numbers in the kernel's list format",
            "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip() {
        for text in ["", "0", "0-3", "0-3,8", "1,3,5", "0-15,88-103,2047", "0,2-3"] {
            assert_eq!(CpuSet::parse_list(text).map(|s| s.to_string()).as_deref(), Some(text));
        }
        assert_eq!(CpuSet::parse_list("0-1\n").map(|s| s.len()), Some(2));
        assert_eq!(CpuSet::parse_list("0-65535,".repeat(3).trim_end_matches(',')), None);
        for text in ["x", "3-1", "0-", "-1", "1,,2", "0-99999999", "1 2"] {
            assert_eq!(CpuSet::parse_list(text), None, "{text:?}");
        }
    }

    #[test]
    fn masks_are_read_from_the_right() {
        let set = |text| CpuSet::parse_mask(text).map(|s| s.to_string());
        assert_eq!(set("3").as_deref(), Some("0-1"));
        assert_eq!(set("00000001,00000000\n").as_deref(), Some("32"));
        assert_eq!(set("ff,00000000,000000f0").as_deref(), Some("4-7,64-71"));
        assert_eq!(set("0").as_deref(), Some(""));
        assert_eq!(set("xyz"), None);
    }

    #[test]
    fn whatever_is_in_a_set_can_be_written_and_read() {
        let set: CpuSet = [0, HIGHEST_CPU, HIGHEST_CPU + 1, u32::MAX].into_iter().collect();
        assert_eq!(set.to_string(), "0,65536");
        assert_eq!(CpuSet::parse_list(&set.to_string()), Some(set));
        assert!(CpuSet::one(u32::MAX).is_empty());
        // Words of zeros above the highest number are no CPUs.
        let mask = format!("00000000,00000001{}", ",00000000".repeat(2048));
        assert_eq!(CpuSet::parse_mask(&mask), Some(CpuSet::one(HIGHEST_CPU)));
        assert_eq!(CpuSet::parse_mask(&mask.replace("00000001", "00000002")), None);
    }
}
