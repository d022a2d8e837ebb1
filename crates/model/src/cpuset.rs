//! A set of CPU (or NUMA node) numbers, as the kernel writes it: `0-3,8,10-11`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// CPU or NUMA node numbers in rising order, without a limit at 1024.
///
/// Written and read as the kernel's list format (`0-3,8`), the empty set as the empty string.
/// Numbers that no host has are not taken in by any way, so that every set that is written can
/// be read.
///
/// Held as the list is written, first and last number of each stretch, in rising order, no two of
/// them touching: a plan for a host of thousands of CPUs holds thousands of sets of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(Vec<Stretch>);

/// First and last number.
type Stretch = (u32, u32);

/// Numbers above this are refused: a damaged file must not make us allocate gigabytes. Linux itself
/// allows 8192 CPUs (`CONFIG_NR_CPUS`) today.
const HIGHEST_CPU: u32 = 1 << 16;

impl CpuSet {
    pub fn one(cpu: u32) -> CpuSet {
        CpuSet::from_iter([cpu])
    }

    /// The set of stretches in any order, touching or not.
    fn of(mut stretches: Vec<Stretch>) -> CpuSet {
        stretches.sort_unstable();
        let mut set: Vec<Stretch> = Vec::with_capacity(stretches.len());
        for (low, high) in stretches {
            match set.last_mut() {
                Some((_, last)) if low <= *last + 1 => *last = high.max(*last),
                _ => set.push((low, high)),
            }
        }
        CpuSet(set)
    }

    /// Parses the kernel's list format; `None` where the text is anything else.
    pub fn parse_list(text: &str) -> Option<CpuSet> {
        let mut stretches = Vec::new();
        let mut listed = 0;
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
        if text.is_empty() {
            return Some(CpuSet::default());
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
            stretches.push((low, high));
        }
        Some(CpuSet::of(stretches))
    }

    /// Parses the kernel's mask format (`ffffffff,0000ff01`: 32-bit words, the highest first).
    pub fn parse_mask(text: &str) -> Option<CpuSet> {
        let mut cpus = Vec::new();
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
        for (word_index, word) in text.rsplit(',').enumerate() {
            let word = word.trim();
            // Without commas a mask may be longer than one word (a few old kernels and hand-edited
            // trees).
            for (digit_index, digit) in word.chars().rev().enumerate() {
                let bits = digit.to_digit(16)?;
                if bits == 0 {
                    continue;
                }
                let base = u32::try_from(word_index * 32 + digit_index * 4).ok()?;
                if base + bits.ilog2() > HIGHEST_CPU {
                    return None;
                }
                cpus.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| base + bit));
            }
        }
        Some(CpuSet::of(cpus.into_iter().map(|cpu| (cpu, cpu)).collect()))
    }

    /// Takes a number in, but for one that no host has.
    pub fn insert(&mut self, cpu: u32) {
        if cpu > HIGHEST_CPU {
            return;
        }
        // The first stretch that holds it, or touches it, or lies above.
        let at = self.0.partition_point(|(_, high)| *high + 1 < cpu);
        match self.0.get_mut(at) {
            Some((low, high)) if *low <= cpu + 1 => {
                *low = cpu.min(*low);
                *high = cpu.max(*high);
                let joined = *high + 1;
                if let Some((_, last)) = self.0.get(at + 1).copied().filter(|(next, _)| *next == joined) {
                    self.0[at].1 = last;
                    self.0.remove(at + 1);
                }
            }
            _ => self.0.insert(at, (cpu, cpu)),
        }
    }

    pub fn contains(&self, cpu: u32) -> bool {
        let at = self.0.partition_point(|(_, high)| *high < cpu);
        self.0.get(at).is_some_and(|(low, _)| *low <= cpu)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|(low, high)| (high - low) as usize + 1).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|(low, _)| *low)
    }

    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|(_, high)| *high)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(low, high)| *low..*high + 1)
    }

    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(one), Some(two)) = (ours.peek(), theirs.peek()) {
            let (low, high) = (one.0.max(two.0), one.1.min(two.1));
            if low <= high {
                both.push((low, high));
            }
            // Whichever ends first meets no more of the other.
            if one.1 < two.1 {
                ours.next()
            } else {
                theirs.next()
            };
        }
        CpuSet(both)
    }

    pub fn union(&self, other: &CpuSet) -> CpuSet {
        CpuSet::union_of([self, other])
    }

    pub fn union_of<'a>(sets: impl IntoIterator<Item = &'a CpuSet>) -> CpuSet {
        CpuSet::of(sets.into_iter().flat_map(|set| set.0.iter().copied()).collect())
    }

    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        self.intersection(&other.complement())
    }

    /// Every number that a host can have and this set has not.
    fn complement(&self) -> CpuSet {
        let begins = std::iter::once(0).chain(self.0.iter().map(|(_, high)| high + 1));
        let ends = self.0.iter().map(|(low, _)| *low).chain([HIGHEST_CPU + 1]);
        let gaps = begins.zip(ends).filter(|(begin, end)| begin < end);
        CpuSet(gaps.map(|(begin, end)| (begin, end - 1)).collect())
    }

    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.difference(other).is_empty()
    }

    pub fn is_disjoint(&self, other: &CpuSet) -> bool {
        self.intersection(other).is_empty()
    }
}

/// By the first number that differs, as lists of numbers compare.
impl Ord for CpuSet {
    fn cmp(&self, other: &CpuSet) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for CpuSet {
    fn partial_cmp(&self, other: &CpuSet) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut stretches: Vec<Stretch> = Vec::new();
        for cpu in cpus.into_iter().filter(|cpu| *cpu <= HIGHEST_CPU) {
            match stretches.last_mut() {
                Some((_, high)) if *high + 1 == cpu => *high = cpu,
                _ => stretches.push((cpu, cpu)),
            }
        }
        CpuSet::of(stretches)
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuSet, String> {
        CpuSet::parse_list(text).ok_or_else(|| format!("expected a list of CPUs like 0-3,8, got {text:?}"))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (low, high) in &self.0 {
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
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Numbers that meet often, and the two at the ends.
    fn numbers() -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(prop_oneof![40 => 0u32..40, 1 => HIGHEST_CPU - 1..HIGHEST_CPU + 2], 0..40)
    }

    proptest! {
        /// Whatever is done with sets gives what is done with sets of numbers.
        #[test]
        fn stretches_are_sets_of_numbers(one in numbers(), two in numbers(), asked in 0u32..42) {
            let known = |numbers: &[u32]| -> BTreeSet<u32> {
                numbers.iter().copied().filter(|cpu| *cpu <= HIGHEST_CPU).collect()
            };
            let same = |set: &CpuSet, numbers: &BTreeSet<u32>| {
                prop_assert!(set.iter().eq(numbers.iter().copied()), "{set} is not {numbers:?}");
                prop_assert!(set.iter().rev().eq(numbers.iter().rev().copied()), "{set} backwards");
                prop_assert_eq!(set.len(), numbers.len());
                prop_assert_eq!((set.first(), set.last()), (numbers.first().copied(), numbers.last().copied()));
                // One set is held in one way only.
                prop_assert!(set.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", set.0);
                prop_assert!(set.0.iter().all(|(low, high)| low <= high), "{:?}", set.0);
                Ok(())
            };
            let (a, b): (CpuSet, CpuSet) = (one.iter().copied().collect(), two.iter().copied().collect());
            let mut inserted = CpuSet::default();
            one.iter().for_each(|cpu| inserted.insert(*cpu));
            prop_assert_eq!(&inserted, &a);
            let (x, y) = (known(&one), known(&two));
            same(&a, &x)?;
            same(&a.intersection(&b), &x.intersection(&y).copied().collect())?;
            same(&a.union(&b), &x.union(&y).copied().collect())?;
            same(&a.difference(&b), &x.difference(&y).copied().collect())?;
            prop_assert_eq!(a.is_subset(&b), x.is_subset(&y));
            prop_assert_eq!(a.is_disjoint(&b), x.is_disjoint(&y));
            prop_assert_eq!(a.contains(asked), x.contains(&asked));
            prop_assert_eq!(a.is_empty(), x.is_empty());
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
            prop_assert_eq!(CpuSet::parse_list(&a.to_string()), Some(a));
        }
    }

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
