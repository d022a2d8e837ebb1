//! Cache descriptors of leaf 2: all that Intel processors before leaf 4 report.
//!
//! Source: Intel SDM volume 2, CPUID leaf 2. Only the descriptors of processors without leaf 4 are
//! here; later ones answer "see leaf 4".

use super::super::topology::CacheKind::{self, Data, Instruction, Unified};
use super::Shared;
use super::leaves::Leaves;

/// Descriptor, level, kind, KiB, ways, bytes in a line.
type Row = (u8, u32, CacheKind, u64, u32, u32);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (0x06, 1, Instruction, 8, 4, 32),
    (0x08, 1, Instruction, 16, 4, 32),
    (0x09, 1, Instruction, 32, 4, 64),
    (0x0a, 1, Data, 8, 2, 32),
    (0x0c, 1, Data, 16, 4, 32),
    (0x0d, 1, Data, 16, 4, 64),
    (0x0e, 1, Data, 24, 6, 64),
    (0x2c, 1, Data, 32, 8, 64),
    (0x30, 1, Instruction, 32, 8, 64),
    (0x60, 1, Data, 16, 8, 64),
    (0x66, 1, Data, 8, 4, 64),
    (0x67, 1, Data, 16, 4, 64),
    (0x68, 1, Data, 32, 4, 64),
    (0x21, 2, Unified, 256, 8, 64),
    (0x39, 2, Unified, 128, 4, 64),
    (0x3a, 2, Unified, 192, 6, 64),
    (0x3b, 2, Unified, 128, 2, 64),
    (0x3c, 2, Unified, 256, 4, 64),
    (0x3d, 2, Unified, 384, 6, 64),
    (0x3e, 2, Unified, 512, 4, 64),
    (0x41, 2, Unified, 128, 4, 32),
    (0x42, 2, Unified, 256, 4, 32),
    (0x43, 2, Unified, 512, 4, 32),
    (0x44, 2, Unified, 1024, 4, 32),
    (0x45, 2, Unified, 2048, 4, 32),
    (0x48, 2, Unified, 3072, 12, 64),
    (0x4e, 2, Unified, 6144, 24, 64),
    (0x78, 2, Unified, 1024, 4, 64),
    (0x79, 2, Unified, 128, 8, 64),
    (0x7a, 2, Unified, 256, 8, 64),
    (0x7b, 2, Unified, 512, 8, 64),
    (0x7c, 2, Unified, 1024, 8, 64),
    (0x7d, 2, Unified, 2048, 8, 64),
    (0x7f, 2, Unified, 512, 2, 64),
    (0x80, 2, Unified, 512, 8, 64),
    (0x82, 2, Unified, 256, 8, 32),
    (0x83, 2, Unified, 512, 8, 32),
    (0x84, 2, Unified, 1024, 8, 32),
    (0x85, 2, Unified, 2048, 8, 32),
    (0x86, 2, Unified, 512, 4, 64),
    (0x87, 2, Unified, 1024, 8, 64),
    (0x22, 3, Unified, 512, 4, 64),
    (0x23, 3, Unified, 1024, 8, 64),
    (0x25, 3, Unified, 2048, 8, 64),
    (0x29, 3, Unified, 4096, 8, 64),
    (0x46, 3, Unified, 4096, 4, 64),
    (0x47, 3, Unified, 8192, 8, 64),
    (0x49, 3, Unified, 4096, 16, 64),
    (0x4a, 3, Unified, 6144, 12, 64),
    (0x4b, 3, Unified, 8192, 16, 64),
    (0x4c, 3, Unified, 12288, 12, 64),
    (0x4d, 3, Unified, 16384, 16, 64),
];

/// The caches that leaf 2 lists, shared by the whole package.
pub(super) fn caches(leaves: &Leaves) -> Vec<Shared> {
    let Some([eax, ebx, ecx, edx]) = leaves.get(2, 0).filter(|_| leaves.has(2)) else { return Vec::new() };
    // The lowest byte of eax counts how often to ask; the top bit of a register marks it as empty.
    let registers = [eax & !0xff, ebx, ecx, edx].into_iter().filter(|register| register >> 31 == 0);
    let bytes = registers.flat_map(u32::to_le_bytes);
    let row = |byte: u8| ROWS.iter().find(|row| row.0 == byte);
    let mut caches: Vec<Shared> = bytes
        .filter_map(row)
        .map(|(_, level, kind, kib, ways, line)| Shared {
            level: *level,
            kind: *kind,
            id: 0,
            size_bytes: kib << 10,
            line_bytes: *line,
            ways: Some(*ways),
            sets: u32::try_from((kib << 10) / u64::from(ways * line)).ok(),
        })
        .collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind));
    caches
}
