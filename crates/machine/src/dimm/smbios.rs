//! SMBIOS tables as bytes. Source: DMTF DSP0134, version 3.7. Firmware makes mistakes in them: a
//! damaged structure loses only its damaged part, and one of an older specification is read as far
//! as it goes.

use std::collections::BTreeMap;

use super::arrays::{Arrays, Missing};
use super::devices::is_module;
use super::printout::buffer;
use super::{DeviceUse, Dimm, MappedRange, MemoryArray, Processor, Tables, says_empty, stated};
use model::smbios::{Structure, structures};

/// Whether bytes begin with whole structures of which one is of memory or of the system.
pub(super) fn is_table(bytes: &[u8]) -> bool {
    structures(bytes).any(|one| matches!(one.kind, 0 | 1 | 4 | 16 | 17))
}

/// Structures before this length lack what every version of their kind has (SMBIOS 2.1, of modules
/// 2.3).
const MIN_DEVICE: usize = 0x15;

pub(super) fn parse(table: &[u8]) -> Tables {
    let mut tables = Tables::default();
    let mut slots: Vec<(u16, String)> = Vec::new();
    let arrays = structures(table).filter(|one| one.kind == 16);
    let arrays: BTreeMap<u64, DeviceUse> = arrays.map(|one| (u64::from(one.handle), holds(&one))).collect();
    for one in structures(table) {
        let dmi = &mut tables.dmi;
        let keep = |field: &mut Option<String>, at: usize| {
            if field.is_none() {
                *field = stated(&one.text(at));
            }
        };
        match one.kind {
            0 => {
                keep(&mut dmi.bios_vendor, 0x04);
                keep(&mut dmi.bios_version, 0x05);
                keep(&mut dmi.bios_date, 0x08);
                // The second extension byte of the characteristics, bit 4.
                dmi.is_virtual |= one.byte(0x13).is_some_and(|flags| flags & 0x10 != 0);
            }
            1 => {
                keep(&mut dmi.vendor, 0x04);
                keep(&mut dmi.product, 0x05);
                keep(&mut dmi.product_version, 0x06);
            }
            2 => {
                keep(&mut dmi.board_vendor, 0x04);
                keep(&mut dmi.board, 0x05);
            }
            4 if one.byte(0x05) == Some(3) => tables.processors.push(Processor {
                designation: one.text(0x04),
                version: stated(&one.text(0x10)),
                populated: one.byte(0x18).map(|status| status & 0x40 != 0),
                // 2 and 3: switched off by the user, by the firmware.
                is_disabled: one.byte(0x18).is_some_and(|status| matches!(status & 7, 2 | 3)),
            }),
            // Use 3: system memory.
            16 if one.byte(0x05) == Some(3) => tables.arrays.push(array(&one)),
            17 if one.bytes.len() >= MIN_DEVICE => {
                let array = one.word(0x04).and_then(|handle| arrays.get(&handle));
                let dimm = dimm(&one, array.copied().unwrap_or_default());
                slots.push((one.handle, dimm.name().to_string()));
                tables.dimms.push(dimm);
            }
            _ => {}
        }
    }
    for one in structures(table).filter(|one| matches!(one.kind, 19 | 20)) {
        tables.ranges.extend(range(&one, &slots));
    }
    tables.is_ended = structures(table).any(|one| one.kind == END);
    tables.missing = missing(table, &arrays);
    tables.cut = (!tables.is_ended && !tables.dimms.is_empty())
        .then(|| "the table lacks its end structure (type 127)".to_string());
    tables
}

/// The kind of the structure that ends a table.
const END: u8 = 127;

/// Counts what arrays of modules announce and what is listed for them.
fn missing(table: &[u8], holders: &BTreeMap<u64, DeviceUse>) -> Missing {
    let mut arrays = Arrays::default();
    for one in structures(table).filter(|one| one.kind == 16 && one.byte(0x05) == Some(3)) {
        if holds(&one) == DeviceUse::Modules {
            arrays.announce(Some(one.handle.to_string()), array(&one).slots.unwrap_or(0));
        }
    }
    for one in structures(table).filter(|one| one.kind == 17 && one.bytes.len() >= MIN_DEVICE) {
        let handle = one.word(0x04);
        let holder = handle.and_then(|handle| holders.get(&handle)).copied().unwrap_or_default();
        if holder == DeviceUse::Modules {
            arrays.list(handle.map(|handle| handle.to_string()).as_deref(), is_module(&dimm(&one, holder)));
        }
    }
    arrays.missing()
}

fn array(one: &Structure) -> MemoryArray {
    let max_bytes = match one.number(0x07, 4) {
        Some(0x8000_0000) => one.number(0x0f, 8),
        Some(kibibytes) => Some(kibibytes << 10),
        None => None,
    };
    MemoryArray { slots: one.word(0x0d).map(|count| count as u32), max_bytes }
}

/// By location (0xa4: a card behind CXL) and use (4 to 7: video, flash, non-volatile RAM, cache).
fn holds(array: &Structure) -> DeviceUse {
    match (array.byte(0x04), array.byte(0x05)) {
        (Some(0xa4), _) => DeviceUse::Cxl,
        (_, Some(4..=7)) => DeviceUse::Others,
        _ => DeviceUse::Modules,
    }
}

fn dimm(one: &Structure, array: DeviceUse) -> Dimm {
    let detail = one.word(0x13).unwrap_or(0);
    // 3: DRAM, 4 and 5: NVDIMM-N and -F, 6: NVDIMM-P, 7: Optane.
    let persistent =
        matches!(one.byte(0x28), Some(4..=7)) || detail & (1 << 12) != 0 || one.byte(0x12) == Some(0x1f);
    let is_named_empty = || [0x10, 0x11, 0x17, 0x1a].iter().any(|at| says_empty(&one.text(*at)));
    let width = |at: usize| one.word(at).filter(|bits| !matches!(bits, 0 | 0xffff)).map(|bits| bits as u16);
    Dimm {
        locator: one.text(0x10),
        bank: one.text(0x11),
        size_bytes: match one.word(0x0c) {
            None | Some(0xffff) => is_named_empty().then_some(0),
            Some(0x7fff) => one.number(0x1c, 4).map(|mebibytes| (mebibytes & 0x7fff_ffff) << 20),
            Some(size) if size & 0x8000 != 0 => Some((size & 0x7fff) << 10),
            Some(size) => Some(size << 20),
        },
        speed_mts: speed(one, 0x15, 0x54),
        configured_mts: speed(one, 0x20, 0x58),
        data_width_bits: width(0x0a),
        total_width_bits: width(0x08),
        kind: one.byte(0x12).and_then(kind).map(str::to_string),
        ranks: one.byte(0x1b).map(|ranks| (ranks & 0x0f) as u32).filter(|ranks| *ranks > 0),
        part: stated(&one.text(0x1a)),
        manufacturer: stated(&one.text(0x17)),
        load_reduced: buffer(detail & (1 << 15) != 0, detail & (1 << 13) != 0),
        persistent,
        holds: match (one.byte(0x0e), one.byte(0x12)) {
            // A chip that is of no kind of memory.
            (Some(0x05), Some(0x01 | 0x02)) => DeviceUse::Others,
            (Some(0x10), _) if array == DeviceUse::Modules => DeviceUse::Dies,
            _ => array,
        },
        ..Dimm::default()
    }
}

/// MT/s: 0 is unknown, 0xffff refers to the wider field.
fn speed(one: &Structure, at: usize, wide: usize) -> Option<u32> {
    let speed = match one.word(at)? {
        0xffff => one.number(wide, 4)? & 0x7fff_ffff,
        speed => speed,
    };
    Some(speed as u32).filter(|speed| *speed > 0)
}

/// Types of memory that servers have had since DDR.
fn kind(number: u64) -> Option<&'static str> {
    Some(match number {
        0x04 => "EDRAM",
        0x05 => "VRAM",
        0x06 => "SRAM",
        0x07 => "RAM",
        0x08 => "ROM",
        0x09 => "Flash",
        0x0a => "EEPROM",
        0x0b => "FEPROM",
        0x0c => "EPROM",
        0x0d => "CDRAM",
        0x0e => "3DRAM",
        0x10 => "SGRAM",
        0x12 => "DDR",
        0x13 => "DDR2",
        0x14 => "DDR2 FB-DIMM",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1c => "LPDDR2",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x1f => "Logical non-volatile device",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => return None,
    })
}

/// Addresses in KiB, or in bytes in the wider fields where the narrow ones are full.
fn range(one: &Structure, slots: &[(u16, String)]) -> Option<MappedRange> {
    let device = one.kind == 20;
    let wide = if device { (0x13, 0x1b) } else { (0x0f, 0x17) };
    let (start, end) = match (one.number(0x04, 4)?, one.number(0x08, 4)?) {
        (0xffff_ffff, _) => (one.number(wide.0, 8)?, one.number(wide.1, 8)?),
        (start, end) => (start << 10, (end << 10) + 0x3ff),
    };
    let handle = one.word(0x0c).filter(|_| device);
    let slot = slots.iter().find(|(known, _)| Some(u64::from(*known)) == handle);
    let position = one.byte(0x11).filter(|position| device && *position != 0xff);
    Some(MappedRange {
        locator: slot.map(|(_, name)| name.clone()),
        start,
        end,
        interleave_position: position.map(|position| position as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory device of `length` bytes with size in MiB and both speeds.
    fn device(length: usize, size: u16, speed: u16, strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; 0x28];
        bytes[0] = 17;
        bytes[1] = length as u8;
        bytes[8..10].copy_from_slice(&72u16.to_le_bytes());
        bytes[10..12].copy_from_slice(&64u16.to_le_bytes());
        bytes[12..14].copy_from_slice(&size.to_le_bytes());
        bytes[0x10] = 1;
        bytes[0x11] = 2;
        bytes[0x12] = 0x1a;
        bytes[0x15..0x17].copy_from_slice(&speed.to_le_bytes());
        bytes[0x1b] = 2;
        bytes[0x1c..0x20].copy_from_slice(&(64u32 << 10).to_le_bytes());
        bytes[0x20..0x22].copy_from_slice(&(speed - 1).to_le_bytes());
        bytes.truncate(length);
        bytes.extend(strings);
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn full_empty_extended_and_old() {
        let mut table = vec![127, 4, 0, 0, 0, 0];
        table.extend(device(0x28, 16384, 2933, b"A1\0BANK 0"));
        table.extend(device(0x28, 0, 1, b"A2\0BANK 0"));
        table.extend(device(0x28, 0x7fff, 4800, b"A3\0B\xff"));
        table.extend(device(0x1b, 2048, 667, b"DIMM 1\0X"));
        let dimms = parse(&table).dimms;
        let seen: Vec<(&str, Option<u64>)> =
            dimms.iter().map(|d| (d.locator.as_str(), d.size_bytes)).collect();
        assert_eq!(
            seen,
            [("A1", Some(16 << 30)), ("A2", Some(0)), ("A3", Some(64 << 30)), ("DIMM 1", Some(2 << 30))]
        );
        assert_eq!((dimms[0].speed_mts, dimms[0].configured_mts), (Some(2933), Some(2932)));
        assert_eq!((dimms[3].speed_mts, dimms[3].configured_mts), (Some(667), None));
        assert_eq!(dimms[2].bank, "B?");
        assert_eq!((dimms[0].data_width_bits, dimms[0].total_width_bits), (Some(64), Some(72)));
        assert_eq!((dimms[0].kind.as_deref(), dimms[0].ranks, dimms[3].ranks), (Some("DDR4"), Some(2), None));
    }

    #[test]
    fn a_slot_without_its_strings_is_still_a_slot() {
        let names = |strings: &[u8], length: usize| {
            let dimms = parse(&device(length, 1024, 667, strings)).dimms;
            dimms.into_iter().map(|dimm| (dimm.locator, dimm.bank)).collect::<Vec<_>>()
        };
        assert_eq!(names(b"A1", 0x28), [("A1".to_string(), String::new())]);
        assert_eq!(names(b"", 0x28), [(String::new(), String::new())]);
        // As long as no specification knows yet.
        let mut long = device(0x28, 1024, 667, b"A1\0B");
        long[1] = 0x80;
        long.splice(0x28..0x28, [0xff; 0x58]);
        assert_eq!(parse(&long).dimms.len(), 1);
    }

    #[test]
    fn slots_of_other_arrays_and_empty_ones() {
        for (at, purpose, found) in [
            (3, 3, DeviceUse::Modules),
            (0xa4, 3, DeviceUse::Cxl),
            (3, 5, DeviceUse::Others),
            (3, 2, DeviceUse::Modules),
        ] {
            let mut table = vec![16, 0x0f, 0x77, 0, at, purpose, 6, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
            let mut module = device(0x28, 1024, 667, b"A1\0B");
            module[4] = 0x77;
            table.extend(module);
            assert_eq!(parse(&table).dimms[0].holds, found, "{at:x} {purpose}");
        }
        for (form, found) in [(9, DeviceUse::Modules), (0x10, DeviceUse::Dies), (0x0d, DeviceUse::Modules)] {
            let mut module = device(0x28, 1024, 667, b"A1\0B");
            module[0x0e] = form;
            assert_eq!(parse(&module).dimms[0].holds, found, "form {form:#x}");
        }
        let sizes = |size, name: &[u8]| parse(&device(0x28, size, 667, name)).dimms[0].size_bytes;
        assert_eq!([sizes(0xffff, b"NO DIMM\0B"), sizes(0xffff, b"A1\0no dimm")], [Some(0), Some(0)]);
        assert_eq!([sizes(0xffff, b"A1\0B"), sizes(1024, b"NO DIMM\0B")], [None, Some(1 << 30)]);
    }

    #[test]
    fn damaged_tables_lose_only_what_is_damaged() {
        let whole = device(0x28, 16384, 2933, b"A1\0B");
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).dimms.is_empty());
        }
        let mut short = whole.clone();
        short.extend([17, 2, 0, 0, 0, 0]);
        assert_eq!(parse(&short).dimms.len(), 1);
        assert!(
            is_table(&short)
                && !is_table(b"")
                && !is_table(b"#!/bin/sh\n")
                && !is_table(&[127, 4, 0, 0, 0, 0])
        );
    }

    #[test]
    fn the_firmwares_word_that_it_is_a_guests() {
        let is_virtual = |length: u8, byte: u8| {
            let mut table = vec![0u8, length, 0, 0, 1, 2, 0, 0xf0, 0, 0xff];
            table.resize(usize::from(length), 0);
            if let Some(own) = table.get_mut(0x13) {
                *own = byte;
            }
            table.extend(b"American Megatrends\0F1\0\0");
            parse(&table).dmi.is_virtual
        };
        assert!(is_virtual(0x18, 0x10) && is_virtual(0x1a, 0x1c) && is_virtual(0x14, 0xff));
        assert!(!is_virtual(0x18, 0xef) && !is_virtual(0x18, 0) && !is_virtual(0x13, 0x10));
    }

    #[test]
    fn processors_arrays_and_ranges() {
        let mut table = vec![4, 0x1a, 4, 0, 1, 3];
        table.resize(0x1a, 0);
        (table[0x10], table[0x18]) = (2, 0x41);
        table.extend(b"CPU1\0Xeon Gold 6132\0\0");
        let mut array = vec![16, 0x0f, 16, 0, 3, 3, 6];
        array.extend((1u32 << 20).to_le_bytes());
        array.extend([0, 0, 24, 0, 0, 0]);
        table.extend(array);
        let mut module = device(0x28, 1024, 667, b"A1\0B");
        module[2] = 17;
        table.extend(module);
        let mut range = vec![20, 0x13, 20, 0, 0, 0, 0, 0, 0xff, 0xff, 0x0f, 0, 17, 0, 19, 0, 0xff, 2, 0];
        range.extend([0, 0]);
        table.extend(range);
        let tables = parse(&table);
        let one = &tables.processors[0];
        assert_eq!((one.designation.as_str(), one.version.as_deref()), ("CPU1", Some("Xeon Gold 6132")));
        assert_eq!(one.populated, Some(true));
        assert_eq!(tables.arrays, [MemoryArray { slots: Some(24), max_bytes: Some(1 << 30) }]);
        let mapped = &tables.ranges[0];
        assert_eq!((mapped.start, mapped.end, mapped.locator.as_deref()), (0, (1 << 30) - 1, Some("A1")));
        assert_eq!(mapped.interleave_position, Some(2));
    }
}
