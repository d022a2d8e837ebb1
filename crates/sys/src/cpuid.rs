//! What the CPU says of itself, as text in the snapshot: for the hypervisor's name and what the
//! kernel does not pass on.

use model::{CpuSet, Snapshot};

/// Adds the leaves of the CPU that we happen to be on as `probe:cpuid/N`, a line each:
/// `mask eax ebx ecx edx => eax ebx ecx edx`, all hexadecimal; mask bit 0: eax is significant, bit
/// 2: ecx is.
///
/// One CPU is enough for what the kernel's own files do not tell, and cpuid is slow in guests,
/// where it traps.
#[cfg(target_arch = "x86_64")]
pub fn probe(snapshot: &mut Snapshot) {
    let text = x86::dump();
    let cpu = super::affinity::current_cpu().unwrap_or(0);
    snapshot.entries.insert(format!("probe:cpuid/{cpu}"), model::Entry::Text(text));
}

/// The same of each of these CPUs, on itself: for who shares a cache, where no file tells. A CPU
/// that the calling thread cannot be moved to is left out.
#[cfg(target_arch = "x86_64")]
pub fn probe_each(snapshot: &mut Snapshot, cpus: &CpuSet) {
    for cpu in cpus.iter() {
        if let Ok(text) = super::affinity::on(&CpuSet::one(cpu), x86::dump) {
            snapshot.entries.insert(format!("probe:cpuid/{cpu}"), model::Entry::Text(text));
        }
    }
}

/// Whether [`trap`] does anything on this architecture.
pub const TRAPS: bool = cfg!(target_arch = "x86_64");

/// Asks the CPU for its highest leaf. Under a hypervisor that is an exit and hardly more: the host
/// answers in the CPU's place.
#[inline]
pub fn trap() -> u32 {
    #[cfg(target_arch = "x86_64")]
    return raw_cpuid::native_cpuid::cpuid_count(0, 0).eax;
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Other architectures tell their identity in /proc/cpuinfo and /sys alone.
#[cfg(not(target_arch = "x86_64"))]
pub fn probe(_: &mut Snapshot) {}

#[cfg(not(target_arch = "x86_64"))]
pub fn probe_each(_: &mut Snapshot, _: &CpuSet) {}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::fmt::Write;

    use raw_cpuid::native_cpuid::cpuid_count;

    /// Leaves with subleaves, and how many of them are worth asking for.
    const SUBLEAVES: [(u32, u32); 6] =
        [(0x4, 8), (0x7, 3), (0xb, 6), (0x1f, 8), (0x8000_001d, 8), (0x8000_0026, 6)];
    /// A CPU or hypervisor that claims more leaves than this in a range is not believed.
    const LEAVES_MAX: u32 = 0x40;

    pub fn dump() -> String {
        let mut text = String::from("# mask e[abcd]x => e[abcd]x\n");
        for first in [0, 0x4000_0000, 0x8000_0000] {
            let highest = cpuid_count(first, 0).eax;
            // The hypervisor's range exists only under one; elsewhere the answer is that of another
            // leaf.
            let hypervisor_bit = cpuid_count(1, 0).ecx & (1 << 31) != 0;
            if highest < first || highest - first > LEAVES_MAX || (first == 0x4000_0000 && !hypervisor_bit) {
                continue;
            }
            for leaf in first..=highest {
                let subleaves = SUBLEAVES.iter().find(|(other, _)| *other == leaf).map(|(_, count)| *count);
                for subleaf in 0..subleaves.unwrap_or(1) {
                    let mask = if subleaves.is_some() { 5 } else { 1 };
                    let r = cpuid_count(leaf, subleaf);
                    let _ = writeln!(
                        text,
                        "{mask} {leaf:x} 0 {subleaf:x} 0 => {:x} {:x} {:x} {:x}",
                        r.eax, r.ebx, r.ecx, r.edx
                    );
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_is_one_well_formed_text() {
        let mut snapshot = Snapshot::default();
        probe(&mut snapshot);
        let cpus = crate::affinity::allowed().expect("affinity");
        let known = snapshot.entries.len();
        probe_each(&mut snapshot, &cpus);
        // All of this architecture's CPUs answer, or on others none.
        let answered = snapshot.below("probe:cpuid").count();
        assert_eq!(answered, if TRAPS { cpus.len() } else { known });
        assert_eq!(crate::affinity::allowed().expect("affinity"), cpus, "restored");
        for (path, _) in snapshot.below("probe:cpuid") {
            let text = snapshot.text(path).expect("text");
            assert!(text.lines().skip(1).all(|line| line.contains(" => ")), "{text}");
        }
    }
}
