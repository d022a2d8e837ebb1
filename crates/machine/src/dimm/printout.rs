//! What dmidecode prints, read.

use std::collections::BTreeMap;

use super::arrays::{Arrays, Missing};
use super::devices::is_module;
use super::systems::of_one_system;
use super::{DeviceUse, Dimm, MappedRange, MemoryArray, Processor, Tables, says_empty, stated};
use model::dmidecode_text::{Structure, structures};
use model::units;

pub(super) fn parse(text: &str) -> Tables {
    let mut tables = Tables::default();
    let structures = of_one_system(structures(text), &mut tables.remarks);
    let mut slots: Vec<(Option<&str>, String)> = Vec::new();
    let arrays = structures.iter().filter(|one| one.kind == Some(16));
    let arrays: BTreeMap<&str, DeviceUse> =
        arrays.filter_map(|one| Some((one.handle?, holds(one)))).collect();
    for one in structures.iter().filter(|one| !one.fields.is_empty()) {
        let dmi = &mut tables.dmi;
        match one.kind {
            Some(0) => {
                keep(&mut dmi.bios_vendor, one.get(&["Vendor"]).and_then(stated));
                keep(&mut dmi.bios_version, one.get(&["Version"]).and_then(stated));
                keep(&mut dmi.bios_date, one.get(&["Release Date"]).and_then(stated));
                dmi.is_virtual |= one.get(&["System is a virtual machine"]).is_some();
            }
            Some(1) => {
                keep(&mut dmi.vendor, one.get(&["Manufacturer"]).and_then(stated));
                keep(&mut dmi.product, one.get(&["Product Name"]).and_then(stated));
                keep(&mut dmi.product_version, one.get(&["Version"]).and_then(stated));
            }
            Some(2) => {
                keep(&mut dmi.board_vendor, one.get(&["Manufacturer"]).and_then(stated));
                keep(&mut dmi.board, one.get(&["Product Name"]).and_then(stated));
            }
            Some(4) => tables.processors.extend(processor(one)),
            Some(16) => tables.arrays.extend(array(one)),
            Some(17) => {
                let array = one.get(&["Array Handle"]).and_then(|handle| arrays.get(handle));
                let dimm = dimm(one, array.copied().unwrap_or_default());
                slots.push((one.handle, dimm.name().to_string()));
                tables.dimms.push(dimm);
            }
            _ => {}
        }
    }
    for one in structures.iter().filter(|one| matches!(one.kind, Some(19 | 20))) {
        tables.ranges.extend(range(one, &slots));
    }
    tables.missing = missing(&structures, &arrays);
    tables
}

/// Counts what arrays of modules announce and what is listed for them.
fn missing(structures: &[Structure], holders: &BTreeMap<&str, DeviceUse>) -> Missing {
    let mut arrays = Arrays::default();
    for one in structures.iter().filter(|one| one.kind == Some(16) && holds(one) == DeviceUse::Modules) {
        let slots = array(one).and_then(|array| array.slots).unwrap_or(0);
        arrays.announce(one.handle.map(str::to_string), slots);
    }
    for one in structures.iter().filter(|one| one.kind == Some(17) && !one.fields.is_empty()) {
        let handle = one.get(&["Array Handle"]);
        let holder = handle.and_then(|handle| holders.get(handle)).copied().unwrap_or_default();
        if holder == DeviceUse::Modules {
            arrays.list(handle, is_module(&dimm(one, holder)));
        }
    }
    arrays.missing()
}

fn holds(array: &Structure) -> DeviceUse {
    let says = |field: &str| array.get(&[field]).unwrap_or("").to_ascii_lowercase();
    let purpose = says("Use");
    match says("Location").starts_with("cxl") {
        true => DeviceUse::Cxl,
        _ if ["video memory", "flash memory", "non-volatile ram", "cache memory"]
            .contains(&purpose.as_str()) =>
        {
            DeviceUse::Others
        }
        _ => DeviceUse::Modules,
    }
}

/// The first of several boards or systems is the one that counts.
fn keep(field: &mut Option<String>, value: Option<String>) {
    if field.is_none() {
        *field = value;
    }
}

fn processor(one: &Structure) -> Option<Processor> {
    let kind = one.get(&["Type"]).unwrap_or("Central Processor");
    let status = one.get(&["Status"]).unwrap_or("").to_ascii_lowercase();
    let is_disabled = status.contains("disabled");
    let populated = match status.split([',', ' ']).next() {
        Some("populated") => Some(true),
        Some("unpopulated") => Some(false),
        _ => None,
    };
    (kind == "Central Processor" || kind == "Unknown").then(|| Processor {
        designation: one.get(&["Socket Designation"]).unwrap_or("").to_string(),
        version: one.get(&["Version"]).and_then(stated),
        populated,
        is_disabled,
    })
}

fn array(one: &Structure) -> Option<MemoryArray> {
    let purpose = one.get(&["Use"]).unwrap_or("System Memory");
    (purpose == "System Memory").then(|| MemoryArray {
        slots: one.get(&["Number Of Devices"]).and_then(|count| count.parse().ok()),
        max_bytes: one.get(&["Maximum Capacity"]).and_then(size),
    })
}

fn dimm(one: &Structure, array: DeviceUse) -> Dimm {
    let width = |name: &str| {
        let words = one.get(&[name])?.split_whitespace().next()?;
        words.parse().ok().filter(|bits: &u16| *bits > 0)
    };
    let size_text = one.get(&["Size"]).unwrap_or("");
    let size_bytes = size(size_text);
    // `Not Installed` is of dmidecode before 2.0 and of firmware's own printouts.
    let named = ["Locator", "Bank Locator", "Part Number", "Manufacturer"];
    let is_empty = size_text == "None"
        || says_empty(size_text)
        || size_bytes.is_none() && named.iter().any(|field| one.get(&[field]).is_some_and(says_empty));
    let detail = one.get(&["Type Detail"]).unwrap_or("");
    let technology = one.get(&["Memory Technology"]).unwrap_or("").to_ascii_lowercase();
    let name = |names: &[&str]| one.get(names).unwrap_or("").to_string();
    Dimm {
        locator: name(&["Locator"]),
        bank: name(&["Bank Locator"]),
        size_bytes: if is_empty { Some(0) } else { size_bytes },
        speed_mts: one.get(&["Speed"]).and_then(speed),
        configured_mts: one.get(&["Configured Memory Speed", "Configured Clock Speed"]).and_then(speed),
        data_width_bits: width("Data Width"),
        total_width_bits: width("Total Width"),
        kind: one.get(&["Type"]).and_then(stated),
        ranks: one.get(&["Rank"]).and_then(|ranks| ranks.parse().ok()).filter(|ranks| *ranks > 0),
        part: one.get(&["Part Number"]).and_then(stated),
        manufacturer: one.get(&["Manufacturer"]).and_then(stated),
        load_reduced: buffer(detail.contains("LRDIMM"), detail.contains("Registered (Buffered)")),
        holds: match name(&["Form Factor"]).to_ascii_uppercase().as_str() {
            form if form.starts_with("CXL") => DeviceUse::Cxl,
            "DIE" if array == DeviceUse::Modules => DeviceUse::Dies,
            // A chip that is of no kind of memory.
            "CHIP" if matches!(one.get(&["Type"]), Some("Other" | "Unknown")) => DeviceUse::Others,
            _ => array,
        },
        is_untold: size_text.is_empty() && !is_empty,
        persistent: one.get(&["Type"]) == Some("Logical non-volatile device")
            || technology.contains("non-volatile")
            || technology.contains("optane")
            || technology.contains("persistent")
            || technology.contains("nvdimm")
            || detail.contains("Non-Volatile"),
        ..Dimm::default()
    }
}

/// Load-reduced, registered, or unknown.
pub(super) fn buffer(load_reduced: bool, registered: bool) -> Option<bool> {
    (load_reduced || registered).then_some(load_reduced)
}

fn range(one: &Structure, slots: &[(Option<&str>, String)]) -> Option<MappedRange> {
    let address = |name: &str| {
        let digits = one.get(&[name])?.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    };
    let handle = one.get(&["Physical Device Handle"]);
    let slot = slots.iter().find(|(known, _)| known.is_some() && *known == handle);
    Some(MappedRange {
        locator: slot.map(|(_, name)| name.clone()),
        start: address("Starting Address")?,
        end: address("Ending Address")?,
        interleave_position: one.get(&["Interleave Position"]).and_then(|text| text.parse().ok()),
    })
}

/// `16384 MB`, `16 GB`, `16 GiB`, `1536 GB`, `3 TB`: all of them count in powers of two. `None`:
/// unknown.
fn size(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    units::bytes(&words.join(" ")).filter(|bytes| words.len() == 2 && *bytes < 1 << 52)
}

/// `2666 MT/s`, `2666 MHz` (older versions say so of the same number).
fn speed(text: &str) -> Option<u32> {
    let mut words = text.split_whitespace();
    let number: u32 = words.next()?.parse().ok()?;
    let unit = words.next()?;
    (matches!(unit, "MT/s" | "MHz") && number > 0 && number < 1 << 24).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "Handle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tArray Handle: 0x1000\n\tTotal Width: 72 bits\n\
        \tData Width: 64 bits\n\tSize: 16384 MB\n\tLocator: A1\n\tBank Locator: Not Specified\n\tType: DDR4\n\
        \tType Detail: Synchronous Registered (Buffered) LRDIMM\n\tSpeed: 2933 MT/s\n\tManufacturer: 00AD063200AD\n\
        \tPart Number: X  \n\tRank: 2\n\tConfigured Clock Speed: 2400 MHz\n\n";

    #[test]
    fn a_module_however_it_is_passed_on() {
        let plain = parse(MODULE);
        let dimm = &plain.dimms[0];
        assert_eq!((dimm.locator.as_str(), dimm.bank.as_str()), ("A1", "Not Specified"));
        assert_eq!(
            (dimm.size_bytes, dimm.speed_mts, dimm.configured_mts),
            (Some(16 << 30), Some(2933), Some(2400))
        );
        assert_eq!((dimm.ranks, dimm.load_reduced, dimm.persistent), (Some(2), Some(true), false));
        assert_eq!((dimm.part.as_deref(), dimm.kind.as_deref()), (Some("X"), Some("DDR4")));
        assert_eq!((dimm.data_width_bits, dimm.total_width_bits), (Some(64), Some(72)));
        let windows = MODULE.replace('\n', "\r\n");
        let quiet: String = MODULE.lines().skip(1).map(|line| format!("{line}\n")).collect();
        let blanks = MODULE.replace('\t', "    ");
        let prompt =
            format!("\u{feff}root@db7:~# dmidecode\n[sudo] password for joe: \n# dmidecode 3.3\n{MODULE}");
        for other in [windows, quiet, blanks, prompt, format!("{MODULE}root@db7:~# exit\n\tlogged: out\n")] {
            assert_eq!(parse(&other), plain, "{other}");
        }
    }

    #[test]
    fn sizes_and_speeds_of_all_versions() {
        let sizes = [
            "16384 MB",
            "16 GB",
            "16 GiB",
            "512 kB",
            "No Module Installed",
            "Unknown",
            "-3 GB",
            "99999999 TB",
        ];
        let read: Vec<Option<u64>> = sizes.iter().map(|text| size(text)).collect();
        let gib16 = Some(16u64 << 30);
        assert_eq!(read, [gib16, gib16, gib16, Some(512 << 10), None, None, None, None]);
        assert_eq!(
            (speed("2666 MT/s"), speed("2400 MHz"), speed("Unknown"), speed("0 MT/s")),
            (Some(2666), Some(2400), None, None)
        );
        let table = "Memory Device\n\tSize: No Module Installed\n\tLocator: A2\n\tSpeed: Unknown\n\tType: <OUT OF SPEC>\n\
            Memory Device\n\tSize: Unknown\n\tLocator: A3\n";
        let dimms = parse(table).dimms;
        assert_eq!((dimms[0].size_bytes, dimms[1].size_bytes), (Some(0), None));
        assert_eq!((&dimms[0].kind, dimms[0].speed_mts), (&None, None));
    }

    #[test]
    fn processors_arrays_and_ranges() {
        let text = "Processor Information\n\tSocket Designation: CPU2\n\tType: Central Processor\n\tVersion: Not Specified\n\
            \tStatus: Unpopulated\n\nProcessor Information\n\tType: DSP Processor\n\nPhysical Memory Array\n\
            \tUse: System Memory\n\tMaximum Capacity: 3 TB\n\tNumber Of Devices: 24\n\n\
            Handle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tLocator: A1\n\nMemory Device Mapped Address\n\
            \tStarting Address: 0x00000000000\n\tEnding Address: 0x000FFFFFFFF\n\tPhysical Device Handle: 0x1100\n\
            \tInterleave Position: 1\n\nOn Board Device\n\tVersion: 7\n";
        let tables = parse(text);
        assert_eq!(tables.processors.len(), 1);
        assert_eq!((tables.processors[0].populated, &tables.processors[0].version), (Some(false), &None));
        assert_eq!(tables.arrays, [MemoryArray { slots: Some(24), max_bytes: Some(3 << 40) }]);
        assert_eq!((tables.ranges[0].locator.as_deref(), tables.ranges[0].end), (Some("A1"), 0xffff_ffff));
        assert_eq!(tables.ranges[0].interleave_position, Some(1));
    }

    #[test]
    fn what_a_text_has_twice_and_of_several_systems() {
        let system = |product: &str| {
            format!(
                "Handle 0x1, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: Dell Inc.\n\tProduct Name: {product}\n\n"
            )
        };
        let other = MODULE.replace("0x1100", "0x1101").replace("Locator: A1", "Locator: A2");
        let one = parse(&format!("{}{MODULE}{other}", system("R740")));
        assert_eq!((one.dimms.len(), one.remarks.len()), (2, 0));
        let twice = format!("{}{MODULE}{other}{}{MODULE}{other}", system("R740"), system("R740"));
        assert_eq!(parse(&twice), one);
        assert_eq!(parse(&format!("{}{MODULE}{MODULE}{other}{MODULE}", system("R740"))), one);
        let quiet = twice.lines().filter(|line| !line.starts_with("Handle")).collect::<Vec<_>>().join("\n");
        assert_eq!(parse(&quiet).dimms.len(), 2);
        // System and modules asked for one after the other.
        assert_eq!(parse(&format!("{}{}{MODULE}{other}", system("R740"), system("R740"))), one);
        let two = parse(&format!("{}{MODULE}{}{other}{}", system("R740"), system("R640"), system("R740")));
        assert_eq!((two.dimms.len(), two.dmi.product.as_deref()), (1, Some("R740")));
        assert!(two.remarks[0].contains("2 systems: only the first, Dell Inc. R740,"), "{:?}", two.remarks);
    }

    #[test]
    fn slots_of_other_arrays_and_empty_ones() {
        let array = |at: &str, purpose: &str| {
            format!(
                "Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: {at}\n\tUse: {purpose}\n\tNumber Of Devices: 1\n"
            )
        };
        for (at, purpose, holds) in [
            ("System Board Or Motherboard", "System Memory", DeviceUse::Modules),
            ("CXL Add-on Card", "System Memory", DeviceUse::Cxl),
            ("System Board Or Motherboard", "Flash Memory", DeviceUse::Others),
            ("PCI Add-on Card", "Video Memory", DeviceUse::Others),
        ] {
            assert_eq!(
                parse(&format!("{}{MODULE}", array(at, purpose))).dimms[0].holds,
                holds,
                "{at} {purpose}"
            );
        }
        for (from, to) in [
            ("Size: 16384 MB", "Size: NO DIMM"),
            ("Size: 16384 MB\n\tLocator: A1", "Size: Unknown\n\tLocator: NO DIMM"),
            (
                "\tSize: 16384 MB\n\tLocator: A1\n\tBank Locator: Not Specified",
                "\tLocator: A1\n\tBank Locator: No Dimm",
            ),
            ("Size: 16384 MB\n\tLocator: A1", "Size: Unknown\n\tLocator: A1\n\tPart Number: [Empty]"),
        ] {
            assert!(MODULE.contains(from));
            let dimm = &parse(&MODULE.replace(from, to)).dimms[0];
            assert_eq!((dimm.size_bytes, dimm.is_untold), (Some(0), false), "{to}");
        }
        let untold = &parse(&MODULE.replace("Size: 16384 MB", "Size:")).dimms[0];
        assert_eq!((untold.size_bytes, untold.is_untold), (None, true));
    }

    #[test]
    fn a_cut_text_lists_fewer_slots_than_its_arrays_have() {
        let array = "Physical Memory Array\n\tUse: System Memory\n\tNumber Of Devices: 2\n";
        let other = MODULE.replace("0x1100", "0x1101").replace("Locator: A1", "Locator: A2");
        for (text, unlisted) in [
            (format!("{array}{MODULE}"), 1),
            (format!("{array}{MODULE}{other}"), 0),
            (format!("{array}{array}{MODULE}{other}"), 2),
            (MODULE.to_string(), 0),
        ] {
            assert_eq!(parse(&text).missing.slots, unlisted, "{text}");
        }
    }

    #[test]
    fn cut_anywhere_it_is_read_as_far_as_it_goes() {
        for cut in (0..MODULE.len()).filter(|cut| MODULE.is_char_boundary(*cut)) {
            assert!(parse(&MODULE[..cut]).dimms.len() <= 1);
        }
        for other in ["", "\u{feff}", "Memory Device", "\t:\n:\n", "Handle 0x\n"] {
            assert_eq!(parse(other).dimms.len(), 0, "{other:?}");
        }
    }
}
