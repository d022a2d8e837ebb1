//! Raw CPUID leaves as text in the snapshot: the hypervisor's name, and facts about CPUs and caches
//! that the kernel does not report.

use model::{CpuSet, Snapshot};

/// Inserts the CPUID leaves of the current CPU as `probe:cpuid/N`, one line for each subleaf:
/// `mask eax ebx ecx edx => eax ebx ecx edx`, all hexadecimal; mask bit 0: eax is significant, bit
/// 2: ecx is.
///
/// One CPU suffices for what the kernel's files lack, and CPUID is slow in guests, where every
/// execution exits to the hypervisor.
#[cfg(target_arch = "x86_64")]
pub fn probe(snapshot: &mut Snapshot) {
    let text = x86::dump();
    let cpu = super::affinity::current_cpu().unwrap_or(0);
    snapshot.entries.insert(format!("probe:cpuid/{cpu}"), model::Entry::Text(text));
}

/// Inserts the leaves of each of these CPUs, read on that CPU: they show which CPUs share a cache
/// if no file of the kernel does. CPUs that the calling thread cannot move to are left out.
#[cfg(target_arch = "x86_64")]
pub fn probe_each(snapshot: &mut Snapshot, cpus: &CpuSet) {
    for cpu in cpus.iter() {
        if let Ok(text) = super::affinity::on(&CpuSet::one(cpu), x86::dump) {
            snapshot.entries.insert(format!("probe:cpuid/{cpu}"), model::Entry::Text(text));
        }
    }
}

/// Whether [`cause_vm_exit`] does anything on this architecture.
pub const CAUSES_VM_EXIT: bool = cfg!(target_arch = "x86_64");

/// Executes CPUID for the highest leaf. In a guest the instruction always exits to the hypervisor,
/// which answers it with little further work.
#[inline]
pub fn cause_vm_exit() -> u32 {
    #[cfg(target_arch = "x86_64")]
    return raw_cpuid::native_cpuid::cpuid_count(0, 0).eax;
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Other architectures report their identity in /proc/cpuinfo and /sys only.
#[cfg(not(target_arch = "x86_64"))]
pub fn probe(_: &mut Snapshot) {}

#[cfg(not(target_arch = "x86_64"))]
pub fn probe_each(_: &mut Snapshot, _: &CpuSet) {}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::fmt::Write;

    use raw_cpuid::native_cpuid::cpuid_count;

    /// Leaves with subleaves, and the number of subleaves that are read.
    const SUBLEAVES: [(u32, u32); 6] =
        [(0x4, 8), (0x7, 3), (0xb, 6), (0x1f, 8), (0x8000_001d, 8), (0x8000_0026, 6)];
    /// A range in which a CPU or hypervisor reports more leaves than this is ignored.
    const MAX_LEAVES: u32 = 0x40;
    // Masks of a line: which input registers are significant.
    const EAX: u32 = 1;
    const EAX_AND_ECX: u32 = 5;

    pub fn dump() -> String {
        let mut text = String::from("# mask e[abcd]x => e[abcd]x\n");
        for first in [0, 0x4000_0000, 0x8000_0000] {
            let highest = cpuid_count(first, 0).eax;
            // Without a hypervisor its range does not exist: the CPU answers with another leaf.
            let hypervisor_bit = cpuid_count(1, 0).ecx & (1 << 31) != 0;
            if highest < first || highest - first > MAX_LEAVES || (first == 0x4000_0000 && !hypervisor_bit) {
                continue;
            }
            for leaf in first..=highest {
                let subleaves = SUBLEAVES.iter().find(|(other, _)| *other == leaf).map(|(_, count)| *count);
                for subleaf in 0..subleaves.unwrap_or(1) {
                    let mask = if subleaves.is_some() { EAX_AND_ECX } else { EAX };
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
        // On x86-64 all CPUs answer, elsewhere none.
        let answered = snapshot.below("probe:cpuid").count();
        assert_eq!(answered, if cfg!(target_arch = "x86_64") { cpus.len() } else { known });
        assert_eq!(crate::affinity::allowed().expect("affinity"), cpus, "restored");
        for (path, _) in snapshot.below("probe:cpuid") {
            let text = snapshot.text(path).expect("text");
            assert!(text.lines().skip(1).all(|line| line.contains(" => ")), "{text}");
        }
    }
}
