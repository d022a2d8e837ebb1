//! Lists and masks of CPUs.

use model::CpuSet;

/// Two texts, apart by a NUL, each read as a list and as a mask.
pub fn cpuset(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (one, other) = text.split_once('\0').unwrap_or((&text, ""));
    let sets: Vec<CpuSet> = [CpuSet::parse_list(one), CpuSet::parse_mask(one), CpuSet::parse_list(other)]
        .into_iter()
        .flatten()
        .collect();
    for set in &sets {
        round_trips(set);
    }
    for pair in sets.windows(2) {
        algebra(&pair[0], &pair[1]);
    }
}

/// What is written is read back, in either form and as JSON.
pub fn round_trips(set: &CpuSet) {
    assert_eq!(CpuSet::parse_list(&set.to_string()).as_ref(), Some(set), "as a list");
    assert_eq!(CpuSet::parse_mask(&mask(set)).as_ref(), Some(set), "as a mask");
    let json = serde_json::to_string(set).expect("every set can be written");
    assert_eq!(serde_json::from_str::<CpuSet>(&json).expect("and read"), *set);
}

fn algebra(a: &CpuSet, b: &CpuSet) {
    let (both, either) = (a.intersection(b), a.union(b));
    assert_eq!(both.len() + either.len(), a.len() + b.len());
    assert_eq!(a.difference(b).len(), a.len() - both.len());
    assert_eq!(both.is_empty(), a.is_disjoint(b));
    assert!(both.is_subset(a) && a.is_subset(&either));
    assert!(either.iter().all(|cpu| a.contains(cpu) || b.contains(cpu)));
    assert_eq!((either.first(), either.last()), (either.iter().next(), either.iter().next_back()));
}

/// As the kernel writes masks: words of 32 bits, the highest first.
fn mask(set: &CpuSet) -> String {
    let mut words = vec![0u32; set.last().unwrap_or(0) as usize / 32 + 1];
    for cpu in set.iter() {
        words[cpu as usize / 32] |= 1 << (cpu % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}
