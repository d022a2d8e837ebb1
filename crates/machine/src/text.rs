//! Reading values out of a snapshot's text: what every subject's parser shares.

use std::collections::BTreeMap;

use model::{CpuSet, Entry, Snapshot, units};

/// Where the kernel keeps the folders of CPUs.
pub const CPUS: &str = "/sys/devices/system/cpu";

/// The folder that `path` stands for: itself, or the one that the snapshot's reader found to say
/// exactly the same (it stores identical folders once, the others as links).
pub(super) fn folder<'a>(snapshot: &'a Snapshot, path: &'a str) -> &'a str {
    match snapshot.get(path) {
        Some(Entry::Link(target)) if target.starts_with('/') => target,
        _ => path,
    }
}

/// What a mask file and a list file say about the same set, the mask first: where both are there
/// they were kept because they differ (an edited tree), and people edit the masks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SetText<'a> {
    Mask(&'a str),
    List(&'a str),
}

impl<'a> SetText<'a> {
    pub fn find(snapshot: &'a Snapshot, mask: &str, list: &str) -> Option<SetText<'a>> {
        let mask = snapshot.text(mask).filter(|text| !text.is_empty()).map(SetText::Mask);
        match (mask, snapshot.text(list).map(SetText::List)) {
            // A mask that cannot be read leaves the list.
            (Some(mask), Some(list)) if mask.parse().is_none() && list.parse().is_some() => Some(list),
            (mask, list) => mask.or(list),
        }
    }

    pub fn parse(self) -> Option<CpuSet> {
        match self {
            SetText::Mask(text) => CpuSet::parse_mask(text),
            SetText::List(text) => CpuSet::parse_list(text),
        }
    }
}

/// CPUs grouped by what their own files say: the set as reported (cut down to `among`) to the CPUs
/// that report it.
///
/// Thousands of CPUs share a few sets, so every distinct text is parsed once.
pub(super) fn groups<'a>(
    among: &CpuSet,
    said: impl Fn(u32) -> Option<SetText<'a>>,
) -> BTreeMap<CpuSet, CpuSet> {
    let mut by_text: BTreeMap<SetText, Vec<u32>> = BTreeMap::new();
    for cpu in among.iter() {
        if let Some(text) = said(cpu) {
            by_text.entry(text).or_default().push(cpu);
        }
    }
    let mut groups: BTreeMap<CpuSet, CpuSet> = BTreeMap::new();
    for (text, members) in by_text {
        let Some(set) = text.parse() else { continue };
        let set = set.intersection(among);
        if set.is_empty() {
            continue;
        }
        let known = groups.entry(set).or_default();
        members.into_iter().for_each(|cpu| known.insert(cpu));
    }
    groups
}

/// The two ways to write a set, under the first of `names` that is there: (mask, list) file names
/// in a folder.
pub(super) fn named_set<'a>(
    snapshot: &'a Snapshot,
    folder: &str,
    names: &[(&str, &str)],
) -> Option<SetText<'a>> {
    names.iter().find_map(|(mask, list)| {
        SetText::find(snapshot, &format!("{folder}/{mask}"), &format!("{folder}/{list}"))
    })
}

/// Whether the mask and the list of one set, under the first of `names` that is there, say
/// different things: then their names.
pub(super) fn contradict<'a>(
    snapshot: &Snapshot,
    folder: &str,
    names: &[(&'a str, &'a str)],
) -> Option<(&'a str, &'a str)> {
    let text = |file: &str| snapshot.text(&format!("{folder}/{file}")).filter(|text| !text.is_empty());
    let told = |(mask, list): &&(&str, &str)| text(mask).is_some() || text(list).is_some();
    let (mask, list) = names.iter().find(told)?;
    let sets = CpuSet::parse_mask(text(mask)?).zip(CpuSet::parse_list(text(list)?));
    sets.is_some_and(|(by_mask, by_list)| by_mask != by_list).then_some((*mask, *list))
}

/// Bytes from a size with a binary suffix as the kernel writes it: `32K`, `11264K`, `8M`,
/// `103079215104`. `None` for zero, which sysfs writes where it does not know.
pub(super) fn size_bytes(text: &str) -> Option<u64> {
    units::bytes(text).filter(|bytes| *bytes > 0)
}

/// The choice in brackets: `always [madvise] never` gives `madvise`; a text without brackets and
/// with one word is itself the choice.
pub fn chosen(text: &str) -> Option<String> {
    if let (Some(start), Some(end)) = (text.find('['), text.find(']')) {
        return (start < end).then(|| text[start + 1..end].to_string());
    }
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(word), None) => Some(word.to_string()),
        _ => None,
    }
}

/// `Key: value` lines, as /proc/meminfo and /proc/self/status have them: the value behind the first
/// `key`.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// A `key: N kB` value in bytes.
pub(super) fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let value = field(text, key)?;
    let number = value.split_whitespace().next()?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// A non-empty text that only people read, invalid UTF-8 replaced.
pub(super) fn words(snapshot: &Snapshot, path: &str) -> Option<String> {
    let text = snapshot.lossy(path)?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_string())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A snapshot of text files, for the tests of every subject.
    pub fn tree(files: &[(&str, &str)]) -> Snapshot {
        let text = |(path, text): &(&str, &str)| (path.to_string(), Entry::Text(text.to_string()));
        Snapshot { entries: files.iter().map(text).collect() }
    }

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("32K"), Some(32 << 10));
        assert_eq!(size_bytes("8M"), Some(8 << 20));
        assert_eq!(size_bytes("103079215104"), Some(96 << 30));
        assert_eq!(size_bytes(" 64 kB"), Some(64 << 10));
        for unknown in ["", "0", "0K", "K", "-1K", "12X", "99999999999999999999G"] {
            assert_eq!(size_bytes(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn choices() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("none").as_deref(), Some("none"));
        assert_eq!(chosen("a b"), None);
        assert_eq!(chosen("]x["), None);
    }

    #[test]
    fn masks_win_over_lists_and_links_stand_for_folders() {
        let mut snapshot = tree(&[("/a/map", "ff,00000003"), ("/a/list", "0-7"), ("/b/list", "4")]);
        snapshot.entries.insert("/c".into(), Entry::Link("/a".into()));
        let set = |folder: &str| named_set(&snapshot, folder, &[("map", "list")]).and_then(SetText::parse);
        assert_eq!(set("/a").map(|s| s.to_string()).as_deref(), Some("0-1,32-39"));
        assert_eq!(set("/b").map(|s| s.to_string()).as_deref(), Some("4"));
        assert_eq!(set("/c"), None);
        assert_eq!(folder(&snapshot, "/c"), "/a");
        assert_eq!(folder(&snapshot, "/a"), "/a");
    }

    #[test]
    fn groups_are_a_partition_even_where_the_files_contradict_each_other() {
        let files = tree(&[("/0/m", "3"), ("/1/m", "2"), ("/2/l", "2-3"), ("/3/m", "c"), ("/4/m", "zz")]);
        let among: CpuSet = (0..5).collect();
        let groups = groups(&among, |cpu| named_set(&files, &format!("/{cpu}"), &[("m", "l")]));
        let members: Vec<String> = groups.values().map(|set| set.to_string()).collect();
        assert_eq!(members, ["0", "1", "2-3"]);
    }
}
