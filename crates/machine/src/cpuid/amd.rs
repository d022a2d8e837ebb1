//! AMD's leaves, and Hygon's: 0x8000001D/1E and 0x80000026 since topology extensions,
//! 0x80000005/6/8 before.

use super::super::topology::{CacheKind, Numbers};
use super::intel::deterministic;
use super::leaves::{Leaves, order, without};
use super::{Ids, Place, Shared};

/// Types of level in leaf 0x80000026.
const DIE: u32 = 3;
/// In leaf 0xB.
const SMT: u32 = 1;

/// From this family on a core has threads; before, two cores of a compute unit shared their front
/// end and L2.
const ZEN: u32 = 0x17;
const MAGNY_COURS: (u32, u32) = (0x10, 9);

pub(super) fn place(leaves: &Leaves, ids: Ids) -> Option<Place> {
    let signature = leaves.signature()?;
    let extensions = leaves.has(0x8000_001e)
        && leaves.get(0x8000_0001, 0).is_some_and(|[_, _, ecx, _]| ecx & 1 << 22 != 0);
    let extended = leaves.get(0x8000_001e, 0).filter(|_| extensions);
    let wide = ids == Ids::Extended;
    let levels = leaves.topology(0x8000_0026).or_else(|| leaves.topology(0xb)).filter(|_| wide);
    let (legacy_id, _) = leaves.legacy_ids()?;
    let extended_id = levels.as_ref().map(|(id, _)| *id).or(extended.map(|[eax, ..]| eax));
    let id = extended_id.filter(|_| wide).unwrap_or(legacy_id);

    let mut place = Place { apic: id, ..Place::default() };
    let package_bits = levels.as_ref().and_then(|(_, levels)| levels.last()).map(|(_, shift)| *shift);
    let package_bits = package_bits.unwrap_or_else(|| legacy_package_bits(leaves, &signature));
    place.package = without(id, package_bits);
    let threads = match extended {
        Some([_, ebx, ..]) if signature.family >= ZEN => order((ebx >> 8 & 0xff) + 1),
        _ => 0,
    };
    let smt = levels.as_ref().and_then(|(_, levels)| levels.iter().find(|(kind, _)| *kind == SMT));
    place.core = without(id, smt.map_or(threads, |(_, shift)| *shift));
    if let Some((_, levels)) = leaves.topology(0x8000_0026).filter(|_| wide) {
        place.die = levels.iter().find(|(kind, _)| *kind == DIE).map(|(_, shift)| without(id, *shift));
    }
    if let Some([_, _, ecx, _]) = extended {
        // Before Zen the L3 belongs to the node, of which a package may have two.
        let node = ecx & 0xff;
        place.caches = deterministic(leaves, 0x8000_001d, |level, sharing| match level {
            3 if signature.family < ZEN => node,
            _ => without(id, order(sharing)),
        });
    }
    if place.caches.is_empty() {
        place.caches = legacy_caches(leaves, &signature, id, package_bits);
    }
    Some(place)
}

/// How many low bits of the APIC id number the CPUs of one package.
fn legacy_package_bits(leaves: &Leaves, signature: &Numbers) -> u32 {
    if signature.family == 0x18 && signature.model <= 3 && leaves.hypervisor_bit() == Some(false) {
        // The first Hygon processors have the package in bit 6 and up, whatever the leaf says (as
        // Linux knows).
        return 6;
    }
    let told = leaves.get(0x8000_0008, 0).filter(|_| leaves.has(0x8000_0008));
    match told {
        Some([_, _, ecx, _]) if ecx >> 12 & 0xf != 0 => ecx >> 12 & 0xf,
        Some([_, _, ecx, _]) if ecx & 0xff != 0 => order((ecx & 0xff) + 1),
        _ => leaves.legacy_ids().map_or(0, |(_, logical)| order(logical)),
    }
}

/// L1 and L2 were private, the L3 the package's, but for Magny-Cours: two dies in a package, each
/// with its half.
fn legacy_caches(leaves: &Leaves, signature: &Numbers, id: u32, package_bits: u32) -> Vec<Shared> {
    let mut caches = Vec::new();
    let leaf = |leaf: u32| leaves.get(leaf, 0).filter(|_| leaves.has(leaf));
    if let Some([_, _, ecx, edx]) = leaf(0x8000_0005) {
        for (kind, register) in [(CacheKind::Data, ecx), (CacheKind::Instruction, edx)] {
            let ways = Some(register >> 16 & 0xff).filter(|ways| *ways != 0xff);
            caches.push(cache(1, kind, id, u64::from(register >> 24) << 10, register & 0xff, ways));
        }
    }
    if let Some([_, _, ecx, edx]) = leaf(0x8000_0006) {
        if ecx >> 12 & 0xf != 0 {
            caches.push(cache(2, CacheKind::Unified, id, u64::from(ecx >> 16) << 10, ecx & 0xff, ways(ecx)));
        }
        if edx >> 12 & 0xf != 0 {
            let size = u64::from(edx >> 18) << 19;
            let cores = leaf(0x8000_0008).map_or(1, |[_, _, ecx, _]| (ecx & 0xff) + 1);
            let half = (cores / 2).max(1);
            let l3 = if (signature.family, signature.model) == MAGNY_COURS && cores > 1 {
                let within = id & ((1u32 << package_bits.min(31)) - 1);
                let ways = ways(edx).map(|ways| ways / 2);
                cache(3, CacheKind::Unified, within / half, size / 2, edx & 0xff, ways)
            } else {
                cache(3, CacheKind::Unified, 0, size, edx & 0xff, ways(edx))
            };
            caches.push(l3);
        }
    }
    caches.retain(|cache| cache.size_bytes > 0);
    caches
}

fn cache(
    level: u32,
    kind: CacheKind,
    id: u32,
    size_bytes: u64,
    line_bytes: u32,
    ways: Option<u32>,
) -> Shared {
    let way = ways.map_or(0, |ways| u64::from(ways) * u64::from(line_bytes));
    let sets = size_bytes.checked_div(way).and_then(|sets| u32::try_from(sets).ok());
    Shared { level, kind, id, size_bytes, line_bytes, ways: ways.filter(|ways| *ways > 0), sets }
}

/// The associativity code of leaf 0x80000006; `None` for fully associative and reserved codes.
fn ways(register: u32) -> Option<u32> {
    match register >> 12 & 0xf {
        code @ (1 | 2 | 4) => Some(code),
        6 => Some(8),
        8 => Some(16),
        0xa => Some(32),
        0xb => Some(48),
        0xc => Some(64),
        0xd => Some(96),
        0xe => Some(128),
        _ => None,
    }
}
