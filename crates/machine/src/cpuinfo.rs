//! /proc/cpuinfo, in the shapes of all architectures.

use std::collections::BTreeMap;

use model::{CpuSet, Snapshot};

/// /proc/cpuinfo by CPU. A key that a later CPU does not repeat has the first CPU's value: the
/// snapshot's reader leaves out what repeats (see `snapshot::compact`).
#[derive(Default)]
pub(super) struct CpuInfo<'a> {
    first: BTreeMap<&'a str, &'a str>,
    /// What each CPU says that differs from the first.
    others: BTreeMap<u32, BTreeMap<&'a str, &'a str>>,
    /// Lines of blocks without a processor number: `platform`, `machine`, `Hardware`.
    machine: BTreeMap<&'a str, &'a str>,
    first_cpu: Option<u32>,
}

impl<'a> CpuInfo<'a> {
    pub fn read(snapshot: &'a Snapshot) -> CpuInfo<'a> {
        let mut info = CpuInfo::default();
        for block in blocks(snapshot.text("/proc/cpuinfo").unwrap_or("")) {
            info.add(block);
        }
        info
    }

    fn add(&mut self, mut block: BTreeMap<&'a str, &'a str>) {
        let number = block.get("processor").and_then(|number| number.parse::<u32>().ok());
        match number {
            Some(cpu) if self.first_cpu.is_none() => {
                block.remove("processor");
                self.first_cpu = Some(cpu);
                self.first = block;
                self.others.insert(cpu, BTreeMap::new());
            }
            Some(cpu) => {
                block.remove("processor");
                self.others.insert(cpu, block);
            }
            None => {
                // s390 lists "processor 0: version = ..." lines in one block.
                for (key, _) in block.iter().filter(|(key, _)| key.starts_with("processor ")) {
                    let cpu = key.trim_start_matches("processor ").trim().parse::<u32>();
                    cpu.into_iter().for_each(|cpu| {
                        self.others.entry(cpu).or_default();
                    });
                }
                self.machine.extend(block);
            }
        }
    }

    pub fn cpus(&self) -> CpuSet {
        self.others.keys().copied().collect()
    }

    /// What a CPU's block says about `key`.
    pub fn of(&self, cpu: u32, key: &str) -> Option<&'a str> {
        let own = self.others.get(&cpu)?.get(key);
        own.or_else(|| self.first.get(key)).copied().filter(|value| !value.is_empty())
    }

    /// What the first block, or a block about the whole machine, says about the first of `keys`
    /// that is there.
    pub fn any(&self, keys: &[&str]) -> Option<&'a str> {
        let find = |key: &&str| self.first.get(*key).or_else(|| self.machine.get(*key)).copied();
        keys.iter().filter_map(find).find(|value| !value.is_empty())
    }

    /// The x86 feature flags; `None` where there is no x86 text to report them.
    pub fn x86_flags(&self) -> Option<Vec<&'a str>> {
        Some(self.first.get("flags")?.split_whitespace().collect())
    }
}

/// Blocks of `key : value` lines between blank lines. A second `processor` line starts a new block
/// too: a compacted or hand-edited text may have lost its blank lines.
fn blocks(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut blocks = vec![BTreeMap::new()];
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                blocks.push(BTreeMap::new());
            }
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        let last = blocks.last();
        if key == "processor" && last.is_some_and(|block| block.contains_key("processor")) {
            blocks.push(BTreeMap::new());
        }
        if let Some(block) = blocks.last_mut() {
            // The first of two equal keys counts: old ARM kernels repeat "Processor" in another
            // sense.
            block.entry(key).or_insert(value);
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn later_cpus_inherit_from_the_first() {
        let text =
            "processor\t: 0\nmodel name\t: X\nphysical id\t: 0\n\nprocessor\t: 2\nphysical id\t: 1\n\n";
        let snapshot = tree(&[("/proc/cpuinfo", text)]);
        let info = CpuInfo::read(&snapshot);
        assert_eq!(info.cpus().to_string(), "0,2");
        assert_eq!(info.of(2, "model name"), Some("X"));
        assert_eq!(info.of(2, "physical id"), Some("1"));
        assert_eq!(info.of(1, "physical id"), None);
        assert_eq!(info.x86_flags(), None);
    }

    #[test]
    fn power_s390_and_hostile_shapes() {
        let power =
            "processor : 0\ncpu : POWER9, altivec supported\n\nplatform : PowerNV\nmachine : PowerNV X\n";
        let snapshot = tree(&[("/proc/cpuinfo", power)]);
        let info = CpuInfo::read(&snapshot);
        assert_eq!(info.any(&["model name", "cpu"]), Some("POWER9, altivec supported"));
        assert_eq!(info.any(&["platform"]), Some("PowerNV"));

        let s390 =
            "vendor_id : IBM/S390\n# processors : 2\nprocessor 0: version = FF\nprocessor 1: version = FF\n";
        let snapshot = tree(&[("/proc/cpuinfo", s390)]);
        let info = CpuInfo::read(&snapshot);
        assert_eq!(info.cpus().to_string(), "0-1");
        assert_eq!(info.any(&["vendor_id"]), Some("IBM/S390"));

        for text in ["", ":", "processor", "processor : x", "\n\n:\n", "processor : 99999999999"] {
            let snapshot = tree(&[("/proc/cpuinfo", text)]);
            assert!(CpuInfo::read(&snapshot).cpus().is_empty(), "{text:?}");
        }
    }
}
