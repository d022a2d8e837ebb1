//! Intel's leaves (and Zhaoxin's, who follow them): 0x1F, 0xB, 4, and leaf 2 of the processors
//! before.

use super::super::topology::CacheKind;
use super::leaves::{Leaves, order, without};
use super::{Ids, Place, Shared, descriptors};

/// Types of level in leaves 0xB and 0x1F.
const SMT: u32 = 1;
const DIE: u32 = 5;

pub(super) fn place(leaves: &Leaves, ids: Ids) -> Option<Place> {
    let mut place = Place::default();
    let levels = leaves.topology(0x1f).or_else(|| leaves.topology(0xb));
    let id = match levels.filter(|_| ids == Ids::Extended) {
        Some((id, levels)) => {
            // A level's shift takes away everything below the next level.
            let mut inner = 0;
            place.core = id;
            for (kind, shift) in levels {
                match kind {
                    SMT => place.core = without(id, shift),
                    DIE => place.die = Some(without(id, inner)),
                    _ => {}
                }
                inner = shift;
            }
            place.package = without(id, inner);
            id
        }
        None => legacy(leaves, &mut place)?,
    };
    place.apic = id;
    place.caches = caches(leaves, id);
    if place.caches.is_empty() {
        // Before leaf 4 a package was one core, whose threads shared everything.
        place.caches = descriptors::caches(leaves);
    }
    place.kind = kind(leaves);
    Some(place)
}

/// Packages and cores before x2APIC: leaf 1 reports the ids of a package, leaf 4 those of its
/// cores.
fn legacy(leaves: &Leaves, place: &mut Place) -> Option<u32> {
    let (id, logical) = leaves.legacy_ids()?;
    let package = order(logical);
    let cores = leaves.has(4).then(|| leaves.get(4, 0)).flatten().filter(|[eax, ..]| eax & 0x1f != 0);
    let cores = cores.map_or(1, |[eax, ..]| (eax >> 26) + 1);
    place.package = without(id, package);
    place.core = without(id, package.saturating_sub(order(cores)));
    Some(id)
}

/// The deterministic cache parameters of leaf 4.
fn caches(leaves: &Leaves, id: u32) -> Vec<Shared> {
    if !leaves.has(4) {
        return Vec::new();
    }
    // Knights Landing and Mill show an L3 that they don't have.
    let without_l3 = leaves.signature().is_some_and(|s| s.family == 6 && matches!(s.model, 0x57 | 0x85));
    let caches = deterministic(leaves, 4, |_, sharing| without(id, order(sharing)));
    caches.into_iter().filter(|cache| !(without_l3 && cache.level == 3)).collect()
}

/// The caches of leaf 4 or of AMD's equal 0x8000001D; `id` makes the sharing id of (level, CPUs
/// that may share).
pub(super) fn deterministic(leaves: &Leaves, leaf: u32, id: impl Fn(u32, u32) -> u32) -> Vec<Shared> {
    let mut caches = Vec::new();
    for subleaf in 0..16 {
        let Some([eax, ebx, ecx, _]) = leaves.get(leaf, subleaf) else { break };
        let kind = match eax & 0x1f {
            0 => break,
            1 => CacheKind::Data,
            2 => CacheKind::Instruction,
            3 => CacheKind::Unified,
            _ => continue,
        };
        let level = eax >> 5 & 7;
        let [line, partitions, ways] = [(ebx & 0xfff) + 1, (ebx >> 12 & 0x3ff) + 1, (ebx >> 22) + 1];
        let sets = u64::from(ecx) + 1;
        let size = [line, partitions, ways].iter().try_fold(sets, |size, n| size.checked_mul(u64::from(*n)));
        let Some(size_bytes) = size else { continue };
        caches.push(Shared {
            level,
            kind,
            id: id(level, (eax >> 14 & 0xfff) + 1),
            size_bytes,
            line_bytes: line,
            ways: (eax & 1 << 9 == 0).then_some(ways),
            sets: u32::try_from(sets).ok(),
        });
    }
    caches
}

/// The kind of core on hybrid processors (leaf 7 says whether, leaf 0x1A which).
fn kind(leaves: &Leaves) -> Option<&'static str> {
    let hybrid = leaves.has(7) && leaves.get(7, 0).is_some_and(|[_, _, _, edx]| edx & 1 << 15 != 0);
    if !hybrid || !leaves.has(0x1a) {
        return None;
    }
    match leaves.get(0x1a, 0)?[0] >> 24 {
        0x20 => Some("E-core"),
        0x40 => Some("P-core"),
        _ => None,
    }
}
