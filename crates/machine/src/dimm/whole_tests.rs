//! Printouts that are cut, and those of several systems: what cannot be known is not judged.

use super::*;
use model::Snapshot;

const SYSTEM: &str = "Handle 0x0001, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: Dell Inc.\n\
     \tProduct Name: PowerEdge R740\n\tSerial Number: AAA\n\tUUID: 0000-AAA\n\n";
const HEADER: &str = "# dmidecode 3.3\nSMBIOS 3.2.0 present.\n";
const END: &str = "Handle 0x00FF, DMI type 127, 4 bytes\nEnd Of Table\n";

fn processor(number: u32, status: &str) -> String {
    format!(
        "Handle 0x004{number}, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU{number}\n\
         \tType: Central Processor\n\tVersion: Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz\n\tStatus: {status}\n\n"
    )
}

fn slot(handle: u32, name: &str, size: &str) -> String {
    format!(
        "Handle 0x{handle:04X}, DMI type 17, 84 bytes\nMemory Device\n\tArray Handle: 0x1000\n\tSize: {size}\n\
         \tLocator: {name}\n\tBank Locator: Not Specified\n\tType: DDR4\n\tSpeed: 2666 MT/s\n\tRank: 2\n\
         \tConfigured Memory Speed: 2666 MT/s\n\n"
    )
}

/// Slots A1 to A6 of one processor.
fn slots(filled: usize) -> String {
    let size = |number| if number <= filled { "16 GB" } else { "No Module Installed" };
    (1..=6).map(|number| slot(0x1100 + number as u32, &format!("A{number}"), size(number))).collect()
}

/// As `--dmi` reads a text: blanked, with what it says about itself.
fn judged(raw: &str) -> Population {
    let entries = printout_of(raw).map(|(name, entry)| (name.to_string(), entry));
    let mut snapshot = Snapshot { entries: entries.into_iter().collect() };
    snapshot.blank();
    judge(tables(&snapshot), None, &Hypervisor::Unknown).1
}

#[test]
fn a_cut_text_is_not_judged() {
    let full = format!("{SYSTEM}{}{}", processor(1, "Populated, Enabled"), slots(6));
    for right in [
        format!("{HEADER}{full}"),
        format!("{HEADER}9 structures occupying 900 bytes.\n{full}{END}"),
        full.clone(),
        format!(
            "{full}{}",
            slot(0x1200, "BIOS", "16 MB")
                .replace("DDR4", "Flash")
                .replace("\tRank: 2\n\tConfigured Memory Speed: 2666 MT/s\n", "")
        ),
    ] {
        assert_eq!(judged(&right).dimm_verdict, Some(Balance::Balanced), "{right}");
    }
    let other = "Handle 0x0026, DMI type 38, 18 bytes\nIPMI Device Information\n\tInterface Type: KCS\n\n";
    let array = "Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n\tNumber Of Devices: 8\n\n";
    let flash = "Handle 0x1001, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: Flash Memory\n\tNumber Of Devices: 1\n\n";
    let rom = slot(0x1200, "BIOS", "16 MB").replace("0x1000", "0x1001").replace("DDR4", "Flash");
    for (how, text) in [
        ("no end though all was asked for", format!("Table at 0x6EBC2000.\n{full}")),
        ("announced", format!("12 structures occupying 900 bytes.\n{full}")),
        ("announced, with an end", format!("12 structures occupying 900 bytes.\n{full}{END}")),
        ("kinds that nobody asks for", format!("{HEADER}{other}{full}")),
        ("a handle at the end", format!("{full}Handle 0x1108, DMI type 17, 84 bytes\n")),
        ("a title at the end", format!("{full}Handle 0x1108, DMI type 17, 84 bytes\nMemory Device\n")),
        (
            "in the middle",
            format!("{full}Handle 0x1108, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n"),
        ),
        ("an array with more", format!("{array}{full}")),
        ("a ROM in place of a slot", format!("{}{flash}{full}{rom}", array.replace(": 8", ": 7"))),
        ("quoted", format!("{full}Handle 0x1108, DMI type 17, 84 bytes\n").replace('\n', "\n> ")),
    ] {
        let found = judged(&text);
        assert_eq!((found.dimm_verdict, &found.dimm_move), (None, &None), "{how}");
        assert!(
            found.dimm_remarks.iter().any(|remark| remark.contains("it is cut")),
            "{how}: {:?}",
            found.dimm_remarks
        );
    }
    let contradicting = judged(&format!("{array}{full}{END}"));
    assert_eq!(contradicting.dimm_verdict, None);
    assert!(contradicting.dimm_remarks[0].contains("a contradiction"), "{:?}", contradicting.dimm_remarks);
    // The second processor's slots are not in a text without an end.
    let second = format!("{}{full}", processor(2, "Populated, Enabled"));
    assert_eq!(judged(&second).dimm_verdict, None);
    assert_eq!(judged(&format!("{second}{END}")).dimm_verdict, Some(Balance::Unbalanced));
}

#[test]
fn a_cut_table_is_not_judged() {
    let structure = |kind: u8, handle: u8, body: &[u8], strings: &[u8]| {
        let mut bytes = vec![kind, body.len() as u8 + 4, handle, 0];
        bytes.extend(body);
        bytes.extend(strings);
        bytes.extend(if strings.is_empty() { &[0, 0][..] } else { &[0][..] });
        bytes
    };
    let array = |slots: u8| structure(16, 9, &[3, 3, 6, 0, 0, 0, 0, 0xfe, 0xff, slots, 0], b"");
    let slot = |handle: u8, name: &[u8]| {
        let mut body = [0u8; 0x24];
        (body[0], body[0x0a - 4], body[0x0d - 4], body[0x0c], body[0x0e]) = (9, 64, 0x20, 1, 0x1a);
        structure(17, handle, &body, &[name, &[0]].concat())
    };
    let end = structure(127, 0x7f, &[], b"");
    let two = [slot(1, b"A1"), slot(2, b"A2")].concat();
    for (table, unlisted, is_cut) in [
        ([array(2), two.clone(), end.clone()].concat(), 0, false),
        ([array(3), two.clone(), end.clone()].concat(), 1, false),
        ([array(3), two.clone()].concat(), 1, true),
        // By the array nothing is missing; another one may have stood behind the cut.
        ([array(2), two.clone()].concat(), 0, true),
        ([array(2), two.clone(), end[..3].to_vec()].concat(), 0, true),
        ([array(2), two.clone(), array(2)[..9].to_vec()].concat(), 0, true),
        (two.clone(), 0, true),
        ([two, end].concat(), 0, false),
    ] {
        let tables = smbios::parse(&table);
        assert_eq!((tables.dimms.len(), tables.missing.slots, tables.cut.is_some()), (2, unlisted, is_cut));
    }
}

#[test]
fn several_systems_and_one_before_and_after() {
    let one = |filled: &str| format!("{HEADER}{SYSTEM}{}{filled}{END}", processor(1, "Populated, Enabled"));
    let balanced = one(&slots(6));
    let other = |serial: &str| balanced.replace("AAA", serial);
    assert_eq!(judged(&balanced.repeat(2)), judged(&balanced));
    for (text, words) in [
        (format!("{balanced}{}", other("BBB")), "2 systems"),
        (format!("{balanced}{}{}", other("BBB"), other("CCC")), "3 systems"),
        (format!("{balanced}{}", other("BBB").replace("UUID: 0000-BBB", "UUID: 0000-AAA")), "2 systems"),
        (format!("{balanced}{}", one(&slots(3))), "2 different printouts of one host"),
        (
            format!("{balanced}{}", one(&slots(3).replace("0x11", "0x12"))),
            "2 different printouts of one host",
        ),
    ] {
        let found = judged(&text);
        assert_eq!(
            (found.dimm_verdict, found.dimm_sockets[0].dimms),
            (Some(Balance::Balanced), 6),
            "{words}"
        );
        assert!(found.dimm_remarks.iter().any(|remark| remark.contains(words)), "{:?}", found.dimm_remarks);
    }
    // No serial number of a system that is left out comes through.
    let (_, text) = &printout_of(&format!("{balanced}{}", other("BBB")))[1];
    assert!(!format!("{text:?}").contains("BBB"));
}

#[test]
fn processors_that_are_not_there_or_switched_off() {
    let intel = |socket: u32| -> String {
        (0..6)
            .map(|at| slot(0x1100 + at, &format!("CPU{socket}_DIMM_{}1", (b'A' + at as u8) as char), "16 GB"))
            .collect()
    };
    let system = SYSTEM.replace("Dell Inc.", "Intel Corporation");
    for (status, socket, expected) in [
        ("Unpopulated", 1, Some(Balance::Balanced)),
        ("Populated, Disabled By User", 1, Some(Balance::Balanced)),
        ("Populated, Disabled By BIOS", 1, Some(Balance::Balanced)),
        ("Populated, Enabled", 1, Some(Balance::Unbalanced)),
        ("Unpopulated", 0, Some(Balance::Balanced)),
    ] {
        let text = format!(
            "{system}{}{}{}{END}",
            processor(1, "Populated, Enabled"),
            processor(2, status),
            intel(socket)
        );
        let found = judged(&text);
        assert_eq!(found.dimm_verdict, expected, "{status}: {found:#?}");
        assert_eq!((found.dimm_sockets[0].socket, found.dimm_sockets[0].dimms), (0, 6), "{status}");
    }
}

#[test]
fn channels_that_nothing_tells_are_not_judged() {
    let bank = |channel: u32, size: &str| {
        slot(0x1100 + channel, "DIMM", size)
            .replace("Not Specified", &format!("P0_Node0_Channel{channel}_Dimm0"))
            .replace("Locator: DIMM", &format!("Locator: P1-DIMM{channel}"))
    };
    let two = format!("{SYSTEM}{}{}", bank(0, "16 GB"), bank(1, "16 GB"));
    let array = "Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n\tNumber Of Devices: 2\n\n";
    for (text, is_judged) in [
        (two.clone(), false),
        (format!("{two}{END}"), false),
        (format!("{two}{}", bank(2, "16 GB")), false),
        (format!("{array}{two}"), true),
        (format!("{two}{}", bank(2, "No Module Installed")), true),
        (format!("{two}{}{END}", processor(1, "Populated, Enabled")), true),
    ] {
        let found = judged(&text);
        assert_eq!(found.dimm_verdict.is_some(), is_judged, "{text} {found:#?}");
        let says =
            found.dimm_remarks.iter().any(|remark| remark.contains("the number of channels is unknown"));
        assert_eq!(says, !is_judged, "{:?}", found.dimm_remarks);
    }
}

#[test]
fn the_device_that_fits_no_rule_and_the_slots_that_no_list_has() {
    let cpu = processor(1, "Populated, Enabled");
    let with = |name: &str, kind: &str, form: &str| {
        let device = slot(0x1200, name, "32 MB").replace("Type: DDR4", &format!("Type: {kind}"));
        let device = device.replace("\tLocator", &format!("\tForm Factor: {form}\n\tLocator"));
        judged(&format!("{SYSTEM}{cpu}{}{device}{END}", slots(6)))
    };
    for (name, kind, form) in
        [("SPI", "Other", "Chip"), ("BMC", "VRAM", "DIMM"), ("VGA", "SGRAM", "Chip"), ("L4", "EDRAM", "Die")]
    {
        let found = with(name, kind, form);
        assert_eq!(found.dimm_verdict, Some(Balance::Balanced), "{name} {found:#?}");
        assert!(found.dimm_remarks[0].contains("left out"), "{name} {:?}", found.dimm_remarks);
    }
    let stray = with("TPM", "Other", "DIMM");
    assert_eq!(stray.dimm_verdict, None);
    assert!(stray.dimm_remarks[0].contains("the device \"TPM\""), "{:?}", stray.dimm_remarks);
    let of = |count: u32| {
        (1..=count).map(|number| slot(0x1100 + number, &format!("A{number}"), "16 GB")).collect::<String>()
    };
    for count in [4, 5, 8] {
        let found = judged(&format!("{SYSTEM}{cpu}{}{END}", of(count)));
        let words = format!("6 or 10 or 12 slots per processor, but the text lists {count} slots");
        assert!(found.dimm_remarks[0].contains(&words), "{:?}", found.dimm_remarks);
    }
}

#[test]
fn a_rom_in_the_modules_array_fills_no_slot() {
    let array = |slots: u32| {
        format!(
            "Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n\tNumber Of Devices: {slots}\n\n"
        )
    };
    let rom = |kind: &str, form: &str, array: &str| {
        let rom = slot(0x1200, "SYSTEM ROM", "16 MB").replace("Type: DDR4", &format!("Type: {kind}"));
        rom.replace("\tLocator", &format!("\tForm Factor: {form}\n\tLocator")).replace("0x1000", array)
    };
    let with = |rom: String, announced: u32, end: &str| {
        let full = format!("{SYSTEM}{}{rom}", processor(1, "Populated, Enabled"));
        judged(&format!("{full}{}{}{end}", array(announced), slots(6)))
    };
    for (kind, form) in [("Other", "Chip"), ("Unknown", "Chip"), ("Flash", "DIMM"), ("ROM", "Chip")] {
        let doubtful = with(rom(kind, form, "0x1000"), 7, "");
        assert_eq!(doubtful.dimm_verdict, None, "{kind}");
        assert!(
            doubtful.dimm_remarks.iter().any(|remark| remark.contains("the text may be cut")),
            "{:?}",
            doubtful.dimm_remarks
        );
        // The end says that the array counts it, or that no slot is missing.
        assert_eq!(with(rom(kind, form, "0x1000"), 7, END).dimm_verdict, Some(Balance::Balanced), "{kind}");
        assert_eq!(with(rom(kind, form, "0x1000"), 6, "").dimm_verdict, Some(Balance::Balanced), "{kind}");
        let elsewhere = with(rom(kind, form, "0x1001"), 7, "");
        assert!(elsewhere.dimm_remarks.iter().any(|remark| remark.contains("1 more slots")), "{kind}");
    }
}

#[test]
fn printouts_that_nothing_tells_apart_are_not_merged() {
    let host = |serial: &str, slots: &str| {
        let system = SYSTEM.replace("AAA", serial);
        format!("{HEADER}{system}{}{slots}{END}", processor(1, "Populated, Enabled"))
    };
    let some = |numbers: std::ops::RangeInclusive<u32>| -> String {
        numbers.map(|number| slot(0x1100 + number, &format!("A{number}"), "16 GB")).collect()
    };
    let says = |text: &str, words: &str| {
        let found = judged(text);
        assert!(found.dimm_remarks.iter().any(|remark| remark.contains(words)), "{words}: {found:#?}");
        found
    };
    let unknown = "without serial number or UUID";
    for serial in ["Not Specified", "0123456789", "--", "To be filled by O.E.M.", "0000", "[REDACTED]"] {
        let (one, other) = (host(serial, &some(1..=3)), host(serial, &some(4..=6)));
        let text = format!("{one}{other}").replace(&format!("0000-{serial}"), serial);
        let found = says(&text, unknown);
        assert_eq!(found.dimm_verdict, None, "two halves are no whole: {serial}");
        let both = host(serial, &slots(6)).replace(&format!("0000-{serial}"), serial);
        assert_eq!(judged(&both.repeat(2)).dimm_remarks, [""; 0], "{serial}: one printout twice");
    }
    // Of modules alone, without a word on the system: the second printout begins anew.
    let serials = |begin: u32| -> String {
        let own = |number: u32| slot(0x1100 + number, &format!("A{number}"), "16 GB");
        let own = |number: u32| {
            own(number).replace("\tRank", &format!("\tSerial Number: {:X}\n\tRank", begin + number))
        };
        (1..=6).map(own).collect()
    };
    let found = says(&format!("{}{}", serials(0xA000), serials(0xB000)), unknown);
    assert_eq!(found.dimm_arrays.len(), 0);
    assert_eq!(judged(&serials(0xA000).repeat(2)).dimm_speed, judged(&serials(0xA000)).dimm_speed);
    // The machine's own serial number decides.
    says(
        &format!("{}{}", host("7QX", &slots(6)), host("7QX", &slots(3))),
        "2 different printouts of one host",
    );
    says(
        &format!("{}{}", host("7QX", &some(1..=3)), host("7QX", &some(4..=6))),
        "2 different printouts of one host",
    );
    says(&format!("{}{}", host("7QX", &slots(6)), host("7QY", &slots(6))), "2 systems");
}

#[test]
fn moves_name_slots_that_firmware_names_by_bank() {
    let cpu = "AMD EPYC 7452 32-Core Processor";
    let board = |filled: &[(char, u32)]| {
        let system = SYSTEM.replace("Dell Inc.", "AMD Corporation");
        let cpu = processor(1, "Populated, Enabled").replace("Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz", cpu);
        let slots = ('A'..='H').flat_map(|channel| [0, 1].map(|number| (channel, number)));
        let slots: String = slots
            .enumerate()
            .map(|(at, one)| {
                let size = if filled.contains(&one) { "16 GB" } else { "No Module Installed" };
                slot(0x1100 + at as u32, &format!("DIMM {}", one.1), size)
                    .replace("Not Specified", &format!("P0 CHANNEL {}", one.0))
            })
            .collect();
        judged(&format!("{system}{cpu}{slots}{END}"))
    };
    let channels = |all: &str, slots: &[u32]| -> Vec<(char, u32)> {
        all.chars().flat_map(|channel| slots.iter().map(move |slot| (channel, *slot))).collect()
    };
    for (filled, begin) in [
        (channels("ABCD", &[0, 1]), "move P0 CHANNEL A DIMM 1 to P0 CHANNEL E DIMM 0,"),
        (channels("ABCD", &[1, 0]), "move P0 CHANNEL A DIMM 1 to P0 CHANNEL E DIMM 0,"),
        (channels("EFGH", &[0, 1]), "move P0 CHANNEL E DIMM 1 to P0 CHANNEL A DIMM 0,"),
    ] {
        let told = board(&filled).dimm_move.unwrap_or_default();
        assert!(
            told.starts_with(begin) && told.ends_with("names the slot of a channel to fill first"),
            "{told}"
        );
    }
    // The second slots may be those that are filled first: nothing moves within a channel.
    for slots in [[0], [1]] {
        let found = board(&channels("ABCDEFGH", &slots));
        assert_eq!((found.dimm_verdict, found.dimm_move), (Some(Balance::Balanced), None));
        let less = board(&channels("ABCDEFG", &slots)).dimm_move.unwrap_or_default();
        assert!(less.starts_with("add 1 × 16 GiB in P0 CHANNEL H DIMM 0:"), "{less}");
    }
}
