//! Printouts of real boards against what their builders' manuals say about them, where the fixtures
//! are; and boards made up for the purpose, everywhere.

use std::path::PathBuf;

use model::Severity;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The dumps with a known truth; none in a clone without them.
fn fixtures() -> Vec<PathBuf> {
    let folder = testkit::root().join("../shared/fixtures/dmi");
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let truths = files.flatten().map(|file| file.path());
    let mut truths: Vec<PathBuf> =
        truths.filter(|path| path.to_string_lossy().ends_with(".truth.json")).collect();
    truths.sort();
    truths
}

fn judged(text: &str) -> (Vec<Dimm>, Population) {
    judge(printout::parse(text), None, &Hypervisor::Unknown)
}

fn sorted(mut values: Vec<String>) -> Vec<String> {
    values.sort();
    values
}

#[test]
fn real_boards_are_what_their_truth_says() {
    for path in fixtures() {
        let truth: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        let name = truth["name"].as_str().expect("a name");
        let dump = path.with_file_name(truth["file"].as_str().expect("a file"));
        let text = String::from_utf8_lossy(&std::fs::read(dump).expect("readable")).to_string();
        let (dimms, population) = judged(&text);
        assert_eq!(json!(dimms.len()), truth["slots_total"], "{name}");
        let tables = printout::parse(&text);
        let populated = tables.processors.iter().filter(|one| one.populated == Some(true)).count();
        assert_eq!(json!(populated), truth["sockets_populated"], "{name}");
        assert_eq!(
            json!(tables.arrays.len()),
            json!(truth["memory_arrays"].as_array().map(Vec::len)),
            "{name}"
        );

        let filled: Vec<&Dimm> = dimms.iter().filter(|dimm| dimm.size_bytes != Some(0)).collect();
        let expected = truth["populated"].as_array().expect("a list");
        assert_eq!(filled.len(), expected.len(), "{name}");
        for (dimm, expected) in filled.iter().zip(expected) {
            let slot = &dimm.locator;
            assert_eq!(json!(slot), expected["locator"], "{name}");
            assert_eq!(json!(dimm.bank), expected["bank_locator"], "{name} {slot}");
            assert_eq!(
                json!(dimm.size_bytes.map(|bytes| bytes >> 20)),
                expected["size_mib"],
                "{name} {slot}"
            );
            assert_eq!(json!(dimm.speed_mts), expected["speed"], "{name} {slot}");
            assert_eq!(json!(dimm.configured_mts), expected["configured"], "{name} {slot}");
            assert_eq!(json!(dimm.ranks), expected["rank"], "{name} {slot}");
            assert_eq!(json!(dimm.persistent), expected["persistent"], "{name} {slot}");
            for (is, should) in [
                (dimm.socket, "socket"),
                (dimm.controller, "controller"),
                (dimm.channel, "channel"),
                (dimm.slot_in_channel, "slot_in_channel"),
            ] {
                assert_eq!(json!(is), expected[should], "{name} {slot}: {should}");
            }
        }

        let expected = truth["per_socket"].as_array().expect("a list");
        assert_eq!(population.dimm_sockets.len(), expected.len(), "{name}");
        for (socket, expected) in population.dimm_sockets.iter().zip(expected) {
            let socket = serde_json::to_value(socket).expect("JSON");
            for field in [
                "socket",
                "dimms",
                "slots",
                "channels_populated",
                "channels_total",
                "dimms_per_channel",
                "dimms_per_controller",
                "controllers_total",
            ] {
                assert_eq!(
                    socket[field], expected[field],
                    "{name}: {field} of socket {}",
                    expected["socket"]
                );
            }
            assert_eq!(
                json!(socket["bytes"].as_u64().map(|bytes| bytes as f64 / (1u64 << 30) as f64)),
                expected["gib"]
            );
        }

        assert_eq!(json!(population.dimm_verdict), truth["judgement"]["verdict"], "{name}");
        assert_eq!(json!(population.dimm_confidence), truth["judgement"]["confidence"], "{name}");
        let kinds = population.dimm_findings.iter().map(|finding| finding.kind.to_string()).collect();
        let expected: Vec<String> =
            serde_json::from_value(truth["findings_mechanical"].clone()).expect("a list");
        assert_eq!(sorted(kinds), sorted(expected), "{name}");
        let speed = population.dimm_speed.as_ref().expect("modules have speeds");
        assert_eq!(json!(speed.rated), truth["speed"]["rated"], "{name}");
        assert_eq!(json!(speed.configured), truth["speed"]["configured"], "{name}");
        assert_eq!(json!(speed.cpu_limit), truth["speed"]["cpu_limit_from_memory"], "{name}");
        assert_eq!(json!(speed.below_rated), truth["speed"]["below_rated"], "{name}");
        assert_eq!(json!(speed.likely_cause), truth["speed"]["likely_cause"], "{name}");
        println!("{name}: {:?} {:?}", population.dimm_verdict, population.dimm_move);
    }
}

/// A printout of a board: its maker, processors (none: an empty socket) and slots with locator,
/// bank and GiB.
fn board(vendor: &str, cpus: &[Option<&str>], slots: &[(String, String, u64)]) -> String {
    let mut text = format!("System Information\n\tManufacturer: {vendor}\n\tProduct Name: Made Up\n\n");
    for cpu in cpus {
        let status = if cpu.is_some() { "Populated, Enabled" } else { "Unpopulated" };
        let version = cpu.unwrap_or("Not Specified");
        text.push_str(&format!(
            "Processor Information\n\tType: Central Processor\n\tVersion: {version}\n\tStatus: {status}\n\n"
        ));
    }
    for (locator, bank, gib) in slots {
        let size = if *gib > 0 { format!("{gib} GB") } else { "No Module Installed".to_string() };
        text.push_str(&format!(
            "Memory Device\n\tSize: {size}\n\tLocator: {locator}\n\tBank Locator: {bank}\n\tType: DDR4\n\
             \tSpeed: 2666 MT/s\n\tPart Number: P\n\tRank: 2\n\tConfigured Memory Speed: 2666 MT/s\n\n"
        ));
    }
    text
}

/// Slots of this name with numbers from 1, of which some are filled with 16 GiB.
fn numbered(name: &str, bank: &str, count: u64, filled: &[u64]) -> Vec<(String, String, u64)> {
    let slot = |number| {
        let size = if filled.contains(&number) { 16 } else { 0 };
        (name.replace('#', &number.to_string()), bank.to_string(), size)
    };
    (1..=count).map(slot).collect()
}

const GOLD: &str = "Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz";

fn verdict_of(text: &str) -> Option<Balance> {
    judged(text).1.dimm_verdict
}

/// Controller, channel and slot of each filled slot of a socket.
fn places(dimms: &[Dimm], socket: u32) -> Vec<(Option<u32>, u32, u32)> {
    let filled = dimms.iter().filter(|dimm| dimm.socket == Some(socket) && dimm.is_memory());
    filled
        .map(|dimm| (dimm.controller, dimm.channel.unwrap_or(99), dimm.slot_in_channel.unwrap_or(99)))
        .collect()
}

#[test]
fn slots_by_families_of_boards() {
    // Ten slots for the first processor and six for the second one.
    let mut slots = numbered("A#", "", 10, &[7, 8, 9, 10]);
    slots.extend(numbered("B#", "", 6, &[4]));
    let (dimms, _) = judged(&board("Dell Inc.", &[Some(GOLD); 2], &slots));
    assert_eq!(places(&dimms, 0), [(Some(0), 0, 1), (Some(0), 1, 1), (Some(1), 3, 1), (Some(1), 4, 1)]);
    assert_eq!(places(&dimms, 1), [(Some(1), 3, 0)]);

    // Eight slots per processor in rows of two.
    let slots = numbered("PROC 1 DIMM #", "", 8, &[1, 3, 6, 8]);
    let (dimms, judgement) =
        judged(&board("HP", &[Some("Intel(R) Xeon(R) CPU E5-2640 v3 @ 2.60GHz")], &slots));
    assert_eq!(places(&dimms, 0), [(None, 0, 0), (None, 1, 0), (None, 2, 0), (None, 3, 0)]);
    assert_eq!(judgement.dimm_verdict, Some(Balance::Balanced));

    // Slots of all processors counted on, the second socket of two empty.
    let slots: Vec<(String, String, u64)> = (1..=24)
        .map(|number| {
            let bank = format!("CPU {}", (number - 1) / 12 + 1);
            (format!("DIMM {number}"), bank, if [3, 5, 8, 10].contains(&number) { 32 } else { 0 })
        })
        .collect();
    let (dimms, judgement) = judged(&board("Lenovo", &[Some(GOLD), None], &slots));
    assert_eq!(places(&dimms, 0), [(Some(0), 1, 0), (Some(0), 0, 0), (Some(1), 3, 0), (Some(1), 4, 0)]);
    assert_eq!(judgement.dimm_verdict, Some(Balance::NearBalanced));
    assert_eq!(judgement.dimm_sockets.len(), 1);

    // Two EPYC of eight channels.
    let mut slots = numbered("A#", "", 16, &[1, 2, 3, 4, 5, 6, 7, 8]);
    slots.extend(numbered("B#", "", 16, &[1, 2, 3, 4, 5, 6, 7, 16]));
    let (dimms, judgement) =
        judged(&board("Dell Inc.", &[Some("AMD EPYC 7302 16-Core Processor"); 2], &slots));
    assert_eq!(places(&dimms, 1)[7], (None, 7, 1));
    assert_eq!(judgement.dimm_verdict, Some(Balance::Balanced));

    // Letters that go on over the processors, and a bank that says nothing.
    let names = ["DIMM_A1", "DIMM_B1", "DIMM_E1", "DIMM_F1"];
    let slots: Vec<_> = names.iter().map(|name| (name.to_string(), "NODE 0".to_string(), 8)).collect();
    let cpus = [Some("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz"); 2];
    let (dimms, _) = judged(&board("Intel Corporation", &cpus, &slots));
    assert_eq!(
        (places(&dimms, 0), places(&dimms, 1)),
        (vec![(None, 0, 0), (None, 1, 0)], vec![(None, 0, 0), (None, 1, 0)])
    );
}

/// Bank strings of AMI's firmware, of which all of `filled` have a module: node and channel.
fn ami(vendor: &str, nodes: u32, channels: u32, filled: &[(u32, u32)]) -> String {
    let slots: Vec<_> = (0..nodes)
        .flat_map(|node| (0..channels).map(move |channel| (node, channel)))
        .map(|(node, channel)| {
            let name = format!("P1-DIMM{}1", (b'A' + (node * channels + channel) as u8) as char);
            let bank = format!("P0_Node{node}_Channel{channel}_Dimm0");
            (name, bank, if filled.contains(&(node, channel)) { 32 } else { 0 })
        })
        .collect();
    board(vendor, &[Some(GOLD)], &slots)
}

#[test]
fn a_node_is_a_controller_or_the_socket() {
    let (dimms, judgement) = judged(&ami("Supermicro", 2, 3, &[(0, 0), (0, 1), (0, 2), (1, 0)]));
    assert_eq!(places(&dimms, 0)[3], (Some(1), 3, 0));
    assert_eq!(judgement.dimm_verdict, Some(Balance::Unbalanced));
    let (dimms, judgement) = judged(&ami("GIGABYTE", 1, 6, &[(0, 0), (0, 1), (0, 3), (0, 4)]));
    assert_eq!(places(&dimms, 0)[3], (Some(1), 4, 0));
    assert_eq!(judgement.dimm_verdict, Some(Balance::NearBalanced));
}

fn dell(filled: &[u64]) -> String {
    board("Dell Inc.", &[Some(GOLD)], &numbered("A#", "", 12, filled))
}

#[test]
fn verdicts_of_one_socket_with_two_controllers() {
    use Balance::{Balanced, NearBalanced, Unbalanced};
    for (filled, verdict, remedy) in [
        (&[1, 2, 3, 4, 5, 6][..], Balanced, None),
        (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], Balanced, None),
        (&[1], NearBalanced, Some("add 5 × 16 GiB")),
        (&[1, 2, 3], NearBalanced, Some("add 3 × 16 GiB")),
        (&[1, 2, 4, 5], NearBalanced, Some("add 2 × 16 GiB in A3, A6")),
        (&[1, 2, 4, 5, 7, 8, 10, 11], NearBalanced, Some("add 4 × 16 GiB in A3, A9, A6, A12")),
        (&[1, 2, 3, 4], Unbalanced, Some("move A3 to A5")),
        (&[1, 4, 5, 6], Unbalanced, Some("move A6 to A2")),
        (&[1, 7, 4, 10], Unbalanced, Some("move A7 to A2, A10 to A5")),
        (&[1, 2, 3, 7], Unbalanced, Some("move")),
        (&[1, 2, 3, 4, 5], Unbalanced, Some("add 1 × 16 GiB in A6")),
        (&[1, 2, 3, 4, 5, 7], Unbalanced, Some("move A7 to A6")),
    ] {
        let (_, judgement) = judged(&dell(filled));
        assert_eq!(judgement.dimm_verdict, Some(verdict), "{filled:?}: {judgement:#?}");
        match (remedy, &judgement.dimm_move) {
            (None, None) => {}
            (Some(begin), Some(text)) => assert!(text.starts_with(begin), "{filled:?}: {text}"),
            (_, told) => panic!("{filled:?}: {told:?}"),
        }
    }
    // Two against three are a remark.
    let (_, lean) = judged(&dell(&[1, 2, 3, 4, 5]));
    let finding = lean.dimm_findings.iter().find(|finding| finding.kind == "controller_imbalance");
    assert_eq!(finding.map(|finding| finding.confidence), Some(Confidence::Low));
    assert_eq!(lean.dimm_confidence, Some(Confidence::Low));
    // What the channels move: 4 of 6 at 2666 MT/s.
    let socket = &judged(&dell(&[1, 2, 4, 5])).1.dimm_sockets[0];
    let rounded = (socket.gb_per_s.map(f64::round), socket.gb_per_s_all_channels.map(f64::round));
    assert_eq!(rounded, (Some(85.0), Some(128.0)));
}

/// Slots of eight channels by AMI's bank strings, of which these have a module.
fn eight(cpu: &str, filled: &[u32]) -> String {
    let slot = |channel| {
        let bank = format!("P0_Node0_Channel{channel}_Dimm0");
        (format!("P1-DIMM{channel}"), bank, if filled.contains(&channel) { 16 } else { 0 })
    };
    board("Supermicro", &[Some(cpu)], &(0..8).map(slot).collect::<Vec<_>>())
}

#[test]
fn controllers_are_blamed_where_a_source_covers_the_generation() {
    for cpu in ["Intel(R) Xeon(R) 6767P", "Intel(R) Xeon(R) Gold 6448Y", "INTEL(R) XEON(R) GOLD 6530"] {
        // Two, one, two and one on four controllers are six channels of one set.
        let (_, six) = judged(&eight(cpu, &[0, 1, 2, 4, 5, 6]));
        assert_eq!(six.dimm_verdict, Some(Balance::NearBalanced), "{cpu} {six:#?}");
        assert!(!format!("{:?}", six.dimm_findings).contains("interleave over"), "{cpu}");
        let (_, three) = judged(&eight(cpu, &[0, 1, 2]));
        assert!(!format!("{three:?}").contains("cannot interleave"), "{cpu} {three:#?}");
        assert_eq!(three.dimm_confidence, Some(Confidence::Low), "{cpu}");
        assert!(three.dimm_findings.iter().all(|finding| finding.severity < Severity::Problem), "{cpu}");
    }
    let (_, known) = judged(&eight("Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", &[0, 1, 2]));
    assert!(format!("{known:?}").contains("cannot interleave"), "{known:#?}");
}

#[test]
fn what_no_rule_knows_is_judged_as_far_as_it_goes() {
    let slots = vec![
        ("XMM1".to_string(), "odd".to_string(), 8),
        ("XMM2".to_string(), "odd".to_string(), 16),
        ("XMM3".to_string(), "odd".to_string(), 0),
    ];
    let (dimms, judgement) = judged(&board("Nobody", &[Some(GOLD)], &slots));
    assert!(dimms.iter().all(|dimm| dimm.channel.is_none()));
    assert_eq!((judgement.dimm_verdict, &judgement.dimm_move), (None, &None));
    let kinds: Vec<&str> = judgement.dimm_findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["mixed_sizes"]);
    assert!(judgement.dimm_remarks[0].contains("slots named like \"XMM1\""));
    // One slot twice, more slots than the board has: a rule that contradicts itself does not hold.
    assert_eq!(verdict_of(&board("Dell Inc.", &[Some(GOLD)], &vec![("A1".into(), "".into(), 8); 6])), None);
    assert_eq!(verdict_of(&board("Dell Inc.", &[Some(GOLD)], &numbered("A#", "", 16, &[1]))), None);
    assert_eq!(verdict_of(&board("Dell Inc.", &[Some(GOLD)], &numbered("B#", "", 12, &[1]))), None);
}

#[test]
fn persistent_modules_and_unknown_sizes() {
    let text = dell(&[1, 2, 3, 4, 5, 6]);
    let optane = text.replacen(
        "Memory Device\n\tSize: No Module Installed",
        "Memory Device\n\tMemory Technology: Intel Optane DC persistent memory\n\tSize: 128 GB",
        1,
    );
    let (dimms, judgement) = judged(&optane);
    assert_eq!(dimms.iter().filter(|dimm| dimm.persistent).count(), 1);
    assert_eq!(judgement.dimm_verdict, Some(Balance::Balanced));
    assert!(judgement.dimm_remarks.iter().any(|remark| remark.contains("persistent")));
    let unknown = text.replacen("Size: 16 GB", "Size: Unknown", 1);
    assert_eq!(verdict_of(&unknown), None);
}

#[test]
fn guests_are_told_whose_modules_they_see() {
    let tables = printout::parse(&dell(&[1, 2, 3, 4]));
    let (_, judgement) = judge(tables, None, &Hypervisor::Guest("kvm".into()));
    assert_eq!(judgement.dimm_verdict, Some(Balance::Unbalanced));
    assert!(judgement.dimm_remarks[0].contains("hypervisor"));
}

#[test]
fn processors_in_any_order() {
    let text = "System Information\n\tManufacturer: Dell Inc.\nProcessor Information\n\tSocket Designation: CPU2\n\
        \tStatus: Unpopulated\nProcessor Information\n\tSocket Designation: CPU1\n\tVersion: X\n\tStatus: Populated\n";
    let entries = [(PRINTOUT.to_string(), Entry::Text(text.to_string()))];
    let tables = tables(&Snapshot { entries: entries.into_iter().collect() });
    let populated: Vec<Option<bool>> = tables.processors.iter().map(|one| one.populated).collect();
    assert_eq!(populated, [Some(true), Some(false)]);
    assert_eq!(
        [number_of("Proc 10"), number_of("SOCKET 0"), number_of("Node"), number_of("")],
        [10, 0, 0, 0]
    );
}

#[test]
fn makers_by_jedecs_code() {
    let with = |makers: [&str; 2]| {
        let mut text = dell(&[1, 2]);
        for maker in makers {
            text = text.replacen("16 GB\n", &format!("16 GiB\n\tManufacturer: {maker}\n"), 1);
        }
        judged(&text).1.dimm_findings.iter().any(|finding| finding.kind == "mixed_manufacturers")
    };
    assert!(!with(["00AD00B300AD", "00AD063200AD"]) && with(["00AD00B300AD", "00CE00B300CE"]));
    assert!(!with(["Samsung", "samsung"]) && with(["Samsung", "Micron"]));
}

/// The tables of a snapshot that holds this entry, before it is blanked and after.
fn before_and_after(path: &str, entry: Entry) -> [Tables; 2] {
    let whole = Snapshot { entries: [(path.to_string(), entry)].into_iter().collect() };
    let mut blanked = whole.clone();
    blanked.blank();
    [tables(&whole), tables(&blanked)]
}

#[test]
fn real_boards_are_read_the_same_without_their_serial_numbers() {
    for path in fixtures() {
        let truth: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        let dump = path.with_file_name(truth["file"].as_str().expect("a file"));
        let text = String::from_utf8_lossy(&std::fs::read(dump).expect("readable")).to_string();
        let [before, after] = before_and_after(PRINTOUT, Entry::Text(text));
        assert_eq!(before, after, "{}", path.display());
        assert!(!after.dimms.is_empty());
    }
}

/// A structure with these bytes set, and its strings; a serial number and a tag go where the kind
/// has them.
fn structure(kind: u8, length: u8, fields: &[(usize, u16)], strings: &[String]) -> Vec<u8> {
    let mut bytes = vec![0u8; usize::from(length)];
    (bytes[0], bytes[1]) = (kind, length);
    for (at, value) in fields.iter().filter(|(at, _)| at + 2 <= usize::from(length)) {
        let value = value.to_le_bytes();
        bytes[*at] = value[0];
        bytes[*at + 1] |= value[1];
    }
    strings.iter().for_each(|text| bytes.extend([text.as_bytes(), &[0]].concat()));
    bytes.push(0);
    bytes
}

proptest! {
    #[test]
    fn tables_are_read_the_same_without_their_serial_numbers(
        makers in 0..3usize,
        serials in prop::collection::vec("[QXZ][0-9]{7,11}", 28),
        slots in prop::collection::vec((0..4u16, 0..4u16, 0..5usize), 1..25),
        order in any::<bool>(),
        shared in any::<bool>(),
    ) {
        let maker = ["Dell Inc.", "HPE", "Supermicro"][makers];
        let strings = |all: &[&str]| all.iter().map(|text| text.to_string()).collect::<Vec<String>>();
        let mut parts = vec![structure(
            1, 0x1b, &[(4, 1), (5, 2), (7, 3), (0x0a, 0xbeef), (0x19, 4)],
            &strings(&[maker, "PowerEdge R740", &serials[0], "SKU=1"]),
        )];
        for (number, serial) in serials[1..3].iter().enumerate() {
            parts.push(structure(
                4, 0x30, &[(4, 1), (5, 3), (7, 2), (0x10, 3), (0x16, 2500), (0x18, 0x41), (0x20, 4), (0x22, 5)],
                &strings(&[&format!("CPU{}", number + 1), "Intel", "Intel(R) Xeon(R) Gold 6248 CPU", serial, "None"]),
            ));
        }
        parts.push(structure(11, 5, &[(4, 1)], &strings(&["OEM"])));
        parts.push(structure(16, 0x17, &[(4, 3), (5, 3), (0x0a, 0x80), (0x0d, slots.len() as u16)], &strings(&["?"])));
        for (number, (size, speed, length)) in slots.iter().enumerate() {
            let serial = if shared { &serials[3] } else { &serials[3 + number] };
            let fields = [
                (8, 72), (0x0a, 64), (0x0c, 8192 * size), (0x0e, 9), (0x10, 1), (0x11, 2), (0x12, 0x1a), (0x13, 0x2080),
                (0x15, 2133 + 267 * speed), (0x17, 3), (0x18, 4), (0x19, 5), (0x1a, 6), (0x1b, 2), (0x20, 2133),
            ];
            let length = [0x1b, 0x1c, 0x22, 0x28, 0x5c][*length];
            let letter = char::from(b'A' + (number / 12) as u8);
            parts.push(structure(17, length, &fields, &strings(&[
                &format!("{letter}{}", number % 12 + 1), "Not Specified", "00AD063200AD", serial, "Not Specified", "HMA82GR7CJR8N-WM",
            ])));
        }
        if order {
            parts.reverse();
        }
        let mut table = parts.concat();
        table.extend([127, 4, 0xff, 0xfe, 0, 0]);
        let [before, after] = before_and_after(TABLES, Entry::Bytes(table));
        prop_assert_eq!(&before, &after);
        prop_assert_eq!(after.dimms.len(), slots.len());
        let [before, after] = [before, after].map(|tables| judge(tables, None, &Hypervisor::None));
        prop_assert_eq!(before, after);
    }
}

#[test]
fn fixtures_are_inventories_that_were_seen() {
    let folder = testkit::root().join("../shared/fixtures");
    if !folder.exists() {
        return eprintln!("SKIPPED fixtures_are_inventories_that_were_seen: {} is missing", folder.display());
    }
    let files =
        ["dmi", "faults/dmi-xeon6"].map(|part| std::fs::read_dir(folder.join(part)).expect("a folder"));
    let paths = files.into_iter().flatten().map(|file| file.expect("a file").path());
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "txt")) {
        let text = std::fs::read_to_string(&path).expect("a printout");
        let (_, judged) = judge(printout::parse(&text), None, &Hypervisor::Unknown);
        let is_named = |name: &str| super::platforms::UNSEEN.contains(&name);
        assert!(!judged.dimm_platform.as_deref().is_some_and(is_named), "{}", path.display());
        assert!(!judged.dimm_remarks.concat().contains("comes from a document only"), "{}", path.display());
    }
}
