//! Memory modules by `--dmi`: printouts of real boards where the fixtures are, and tables made by
//! the tests.

use std::fs;

use serde_json::{Value, json};

use super::{json as machine, run, text};
use crate::host::skipped;
use crate::smbios::Board;

const THREE_ONE: [&str; 8] = ["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"];

/// Names that the contract promises.
fn check_contract(name: &str, machine: &Value) {
    for dimm in machine["dimms"].as_array().expect("a list") {
        for field in [
            "locator",
            "bank",
            "size_bytes",
            "speed_mts",
            "configured_mts",
            "socket",
            "controller",
            "channel",
        ] {
            assert!(dimm.get(field).is_some(), "{name}: no {field} in {dimm}");
        }
    }
    assert!(machine.get("dimm_verdict").is_some(), "{name}");
    for finding in machine["dimm_findings"].as_array().expect("a list") {
        for field in ["kind", "severity", "confidence", "text", "move"] {
            assert!(finding.get(field).is_some(), "{name}: no {field} in {finding}");
        }
    }
}

fn sorted(values: &Value, field: Option<&str>) -> Vec<String> {
    let values = values.as_array().expect("a list").iter();
    let mut words: Vec<String> = values
        .map(|value| field.map_or(value, |field| &value[field]).as_str().expect("a word").to_string())
        .collect();
    words.sort();
    words
}

#[test]
fn printouts_of_real_boards() {
    let folder = testkit::root().join("../shared/fixtures/dmi");
    if !folder.is_dir() {
        return skipped("printouts_of_real_boards", format!("{} is missing", folder.display()));
    }
    let mut count = 0;
    let validator = crate::validator("machine");
    for file in fs::read_dir(&folder).expect("a folder").flatten() {
        let path = file.path();
        if !path.to_string_lossy().ends_with(".truth.json") {
            continue;
        }
        let truth: Value = serde_json::from_slice(&fs::read(&path).expect("readable")).expect("JSON");
        let name = truth["name"].as_str().expect("a name");
        let dump = folder.join(truth["file"].as_str().expect("a file"));
        let machine = machine("--dmi", &dump);
        check_contract(name, &machine);
        let errors: Vec<String> = validator.iter_errors(&machine).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(machine["dimm_verdict"], truth["judgement"]["verdict"], "{name}");
        assert_eq!(
            sorted(&machine["dimm_findings"], Some("kind")),
            sorted(&truth["findings_mechanical"], None),
            "{name}"
        );
        let shown = text("--dmi", &dump);
        assert!(
            shown.contains("memory modules: ") && shown.lines().all(|line| line.chars().count() <= 120),
            "{shown}"
        );
        count += 1;
    }
    assert!(count >= 19, "{count} printouts");
}

#[test]
fn tables_of_a_board_and_the_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Board::dell(2, &THREE_ONE).table();
    // As dmidecode --dump-bin writes it: the entry point in 32 bytes, the table behind it.
    let mut dump = b"_SM3_\0\x18\x03\x02\0\x01\0".to_vec();
    dump.extend((table.len() as u32).to_le_bytes());
    dump.extend(0x20u64.to_le_bytes());
    dump.resize(0x20, 0);
    dump.extend(&table);
    let tree = crate::synthetic::Tree::new();
    Board::dell(2, &THREE_ONE).write(&tree);
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let found = [
        machine("--dmi", &file("table", &table)),
        machine("--dmi", &file("dump", &dump)),
        machine("--root", tree.root()),
    ];
    for found in &found {
        check_contract("made", found);
        assert_eq!(
            (&found["dimm_verdict"], &found["dmi"]["product"]),
            (&json!("unbalanced"), &json!("PowerEdge R740"))
        );
        let sockets = found["dimm_sockets"].as_array().expect("a list");
        for socket in sockets {
            assert_eq!(socket["dimms_per_controller"], json!({"0": 3, "1": 1}));
        }
        assert_eq!(sockets.len(), 2);
        assert!(
            found["dimm_move"].as_str().is_some_and(|text| text.contains("A3 to A5, B3 to B5")),
            "{found:#}"
        );
        let slot = &found["dimms"].as_array().expect("a list")[3];
        let place = json!([slot["locator"], slot["socket"], slot["controller"], slot["channel"]]);
        assert_eq!(place, json!(["A4", 0, 1, 3]));
    }
    let even = machine("--dmi", &file("even", &Board::even(4).table()));
    assert_eq!((&even["dimm_verdict"], &even["dimm_move"]), (&json!("balanced"), &Value::Null));
    assert_eq!(even["dimm_sockets"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_printout_beside_a_tree_is_that_machines() {
    let tree = crate::synthetic::Tree::new();
    tree.file("/sys/devices/system/cpu/online", "0-3");
    tree.bytes("/table", &Board::even(1).table());
    let output = run(&[
        "--root",
        tree.root().to_str().expect("a path"),
        "--dmi",
        tree.root().join("table").to_str().expect("a path"),
        "--json",
    ]);
    let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&machine["summary"]["cpus"], &machine["dimm_verdict"]), (&json!(4), &json!("balanced")));
}

#[test]
fn files_that_are_none_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        let output = run(&["--dmi", path.to_str().expect("a path")]);
        assert!(output.stdout.is_empty() && !output.status.success(), "{name}");
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(said.contains(name) && said.contains("sudo dmidecode"), "{said}");
        said
    };
    assert!(said("nothing", b"").contains("empty"));
    assert!(said("notes.txt", b"Memory: 4 modules\n").contains("is not from dmidecode"));
    assert!(said("random", &[0x9c; 300]).contains("is not from dmidecode"));
    assert!(said("denied", b"# dmidecode 3.3\n/dev/mem: Permission denied\n").contains("as root"));
    let missing = run(&["--dmi", "/nonexistent/dmi.txt"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot open"));
    // A printout without a memory slot (dmidecode -t system).
    let path = folder.path().join("system");
    fs::write(&path, "System Information\n\tManufacturer: Dell Inc.\n").expect("written");
    let output = run(&["--dmi", path.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no memory slot"));
}

#[test]
fn memory_alone_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t17");
    let module = "Handle 0x1, DMI type 17, 40 bytes\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\tSpeed: 2666 MT/s\n";
    fs::write(&path, module).expect("written");
    let machine = machine("--dmi", &path);
    assert_eq!(machine["dimm_verdict"], Value::Null);
    let remarks = machine["dimm_remarks"].to_string();
    assert!(remarks.contains("without -t"), "{remarks}");
}

/// Printouts on which the judgement was wrong once, a kind each, with variants.
#[test]
fn printouts_that_were_judged_wrong() {
    let test = "printouts_that_were_judged_wrong";
    let folder = testkit::root().join("../shared/fixtures/faults");
    if !folder.is_dir() {
        return skipped(test, format!("{} is missing", folder.display()));
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a printout");
    let judged = |text: &str| {
        let path = scratch.path().join("printout");
        fs::write(&path, text).expect("written");
        machine("--dmi", &path)
    };
    let remarks = |machine: &Value| machine["dimm_remarks"].to_string();
    let verdict = |machine: &Value| machine["dimm_verdict"].clone();

    // Firmware's own memory in a slot of its own.
    let with = read("dmi-flash-counted/e3-with-system-rom.txt");
    let without = judged(&read("dmi-flash-counted/same-without-rom.txt"));
    for kind in ["Type: Flash", "Type: ROM", "Type: EEPROM", "Type: FLASH"] {
        let found = judged(&with.replace("Type: Flash", kind));
        assert_eq!(verdict(&found), verdict(&without), "{kind}");
        assert_eq!(found["dimms"].as_array().map(Vec::len), without["dimms"].as_array().map(Vec::len));
        assert!(remarks(&found).contains("ROM or flash"), "{}", remarks(&found));
    }
    assert_eq!(verdict(&without), json!("balanced"));

    // Memory behind CXL.
    let with = read("dmi-cxl/genoa-12-plus-cxl.txt");
    let without = judged(&read("dmi-cxl/genoa-no-cxl.txt"));
    for form in ["CXL FLEXBUS 1.0", "CXL", "CXL Add-on Card", "Other"] {
        let found = judged(&with.replace("CXL FLEXBUS 1.0", form));
        assert_eq!(verdict(&found), verdict(&without), "{form}");
        assert!(remarks(&found).contains("CXL"), "{}", remarks(&found));
        assert!(!found["dimm_findings"].to_string().contains("different size"), "{form}");
    }

    // Speeds that no module has.
    let text = read("dmi-impossible-speed/e5-config-32768.txt");
    for speed in ["32768 MT/s", "65535 MT/s", "24000 MHz"] {
        let found = judged(&text.replace("32768 MT/s", speed));
        let number = speed.split(' ').next().expect("a number");
        assert!(remarks(&found).contains(number), "{}", remarks(&found));
        assert!(!found["dimms"].to_string().contains(number), "{speed}");
        assert!(!found["dimm_sockets"].to_string().contains("1048"), "{speed}");
    }

    // Slots that do not report whether they are filled.
    let text = read("dmi-missing-size/filtered.txt");
    let path = scratch.path().join("filtered");
    fs::write(&path, &text).expect("written");
    let shown = super::text("--dmi", &path);
    assert!(shown.contains("4 of 8 slots filled, 4 unreported"), "{shown}");
    assert_eq!(verdict(&judged(&text)), Value::Null);

    // A new processor, and an unknown one.
    let text = read("dmi-xeon6/6746e-8.txt");
    for version in ["Intel(R) Xeon(R) 6746E", "Intel(R) Xeon(R) 6520P", "INTEL(R) XEON(R) 6767P"] {
        assert_eq!(
            verdict(&judged(&text.replace("Intel(R) Xeon(R) 6746E", version))),
            json!("balanced"),
            "{version}"
        );
    }
    let unknown = judged(&text.replace("Xeon(R) 6746E", "Xeon(R) 9999Z").replace("P0_Node", "Bank"));
    assert!(
        !verdict(&unknown).is_string() || remarks(&unknown).contains("family is unknown"),
        "{} {}",
        verdict(&unknown),
        remarks(&unknown)
    );

    // Guests say so themselves, or are sold as such.
    for name in ["ec2", "alibaba", "kubevirt"] {
        let text = read(&format!("dmi-guest-known/{name}.txt"));
        let silent = text.replace("System is a virtual machine", "UEFI is supported");
        let metal = silent.replace("m5.large", "m5.metal");
        let other = silent.replace("Vendor: SeaBIOS", "Vendor: Somebody");
        for text in [text.clone(), silent, metal, other] {
            let found = judged(&text);
            let is_sold = name == "ec2" && !text.contains("metal");
            let by_firmware =
                text.contains("System is a virtual machine") || text.contains("Vendor: SeaBIOS");
            let is_told = by_firmware || name == "kubevirt" || is_sold;
            assert_eq!(found["hypervisor"].is_string(), is_told, "{name}: {}", found["hypervisor"]);
        }
    }
}

/// A board of Dell's as dmidecode prints it: an EPYC 7452 and 16 slots, of which these are filled.
fn printed(filled: &[u32]) -> String {
    let mut text = "# dmidecode 3.3\nHandle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: Dell Inc.\n\
                    \tProduct Name: PowerEdge R6515\n\nHandle 0x0400, DMI type 4, 48 bytes\nProcessor Information\n\
                    \tType: Central Processor\n\tVersion: AMD EPYC 7452 32-Core Processor\n\tStatus: Populated, Enabled\n\n\
                    Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n\
                    \tNumber Of Devices: 16\n\n"
        .to_string();
    for slot in 1..=16 {
        let size = if filled.contains(&slot) { "16 GB" } else { "No Module Installed" };
        text.push_str(&format!(
            "Handle 0x11{slot:02X}, DMI type 17, 84 bytes\nMemory Device\n\tArray Handle: 0x1000\n\tSize: {size}\n\
             \tForm Factor: DIMM\n\tLocator: A{slot}\n\tType: DDR4\n\tSpeed: 3200 MT/s\n\tPart Number: P\n\
             \tConfigured Memory Speed: 3200 MT/s\n\n"
        ));
    }
    text + "Handle 0xFEFF, DMI type 127, 4 bytes\nEnd Of Table\n"
}

#[test]
fn printouts_however_they_were_passed_on() {
    let scratch = tempfile::tempdir().expect("a folder");
    let judged = |text: &str| {
        let path = scratch.path().join("printout");
        fs::write(&path, text).expect("written");
        machine("--dmi", &path)
    };
    let each = |text: &str, changed: &dyn Fn(&str) -> String| -> String {
        text.lines().map(|line| changed(line) + "\n").collect()
    };
    let plain = printed(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let right = judged(&plain);
    assert_eq!(right["dimm_verdict"], "balanced");
    for (how, text) in [
        ("quoted", each(&plain, &|line| format!("> {line}"))),
        ("without indentation", each(&plain, &|line| line.trim().to_string())),
        ("quoted without it", each(&plain, &|line| format!(">> {}", line.trim()))),
        ("moved in", each(&plain, &|line| format!("    {line}"))),
        ("twice", plain.repeat(2)),
        ("with Windows line ends", plain.replace('\n', "\r\n")),
    ] {
        let mut found = judged(&text);
        found["host"] = right["host"].clone();
        assert_eq!(found, right, "{how}");
    }
    // Cut: what is missing is no empty socket and no empty channel.
    for rest in ["Handle 0x1105", "Handle 0x1109", "Handle 0x1110"] {
        let found = judged(&plain[..plain.find(rest).expect("a slot")]);
        assert_eq!(found["dimm_verdict"], Value::Null, "{rest}");
        assert!(found["dimm_remarks"].to_string().contains("it is cut"), "{}", found["dimm_remarks"]);
        assert_eq!(found["dimm_findings"], json!([]), "{rest}");
    }
    // No serial number comes through, quoted or not.
    let secret =
        plain.replace("\tPart Number: P\n", "\tSerial Number: 7QK3XW29\n\tPart Number: P 7QK3XW29\n");
    let found = judged(&each(&secret, &|line| format!("> {line}")));
    assert!(!found.to_string().contains("7QK3XW29"));
}

#[test]
fn a_sosreport_has_its_printout() {
    let tree = crate::synthetic::Tree::new();
    let folder = tree.root().join("sosreport-db7");
    let text = printed(&[1, 2, 3, 4, 5, 6, 7, 8]);
    tree.file("/sosreport-db7/sos_commands/hardware/dmidecode", &text);
    tree.file("/sosreport-db7/proc/version", "Linux version 5.14.0-1 (x@y) #1 SMP PREEMPT_DYNAMIC");
    std::os::unix::fs::symlink("sos_commands/hardware/dmidecode", folder.join("dmidecode")).expect("links");
    let file = folder.join("dmidecode");
    for (source, path) in [
        ("--dmi", tree.root()),
        ("--dmi", &folder),
        ("--dmi", &file),
        ("--root", tree.root()),
        ("--root", &folder),
    ] {
        let found = machine(source, path);
        assert_eq!(found["dimm_verdict"], "balanced", "{source} {}", path.display());
        assert_eq!(found["kernel"]["release"].is_string(), source == "--root");
    }
    // The printout alone beside other files.
    let beside = crate::synthetic::Tree::new();
    beside.file("/dmidecode", &text);
    assert_eq!(machine("--dmi", beside.root())["dimm_verdict"], "balanced");
    // A link that leads out of the folder would show another host.
    let stray = crate::synthetic::Tree::new();
    std::os::unix::fs::symlink(&file, stray.root().join("dmidecode")).expect("links");
    let output = run(&["--dmi", stray.root().to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(!output.status.success() && said.contains("sos_commands/hardware/dmidecode"), "{said}");
}

/// Why placements are not judged: what is really missing.
#[test]
fn the_reason_for_not_judging_is_the_true_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let plain = printed(&[1, 2, 3, 4]);
    let without = |title: &str| -> String {
        let structures = plain.split("\n\n").filter(|one| !one.contains(&format!("\n{title}\n")));
        structures.collect::<Vec<_>>().join("\n\n")
    };
    let other = |from: &str, to: &str| plain.replace(from, to);
    for (text, words) in [
        (without("System Information"), "do not name the system,"),
        (without("Processor Information"), "do not name the processors,"),
        (other("AMD EPYC 7452 32-Core Processor", "AMD EPYC 1234X"), "the processor \\\"AMD EPYC 1234X"),
        (other("AMD EPYC 7452 32-Core Processor", "Not Specified"), "do not name the processor model"),
        (other("AMD EPYC 7452 32-Core Processor", "Ampere(R) Altra(R) Q80-30"), "only with other processors"),
        (other("Locator: A", "Locator: XMM"), "Assay has no rule for this platform's slots"),
        (other("Locator: A2\n", "Locator: A1\n"), "\\\"A1\\\" is listed twice"),
        (other("Locator: A2\n", "Locator: B2\n"), "contradicts the rule"),
    ] {
        let path = scratch.path().join("printout");
        fs::write(&path, &text).expect("written");
        let found = machine("--dmi", &path);
        assert_eq!(found["dimm_verdict"], Value::Null, "{words}");
        let remarks = found["dimm_remarks"].to_string();
        assert!(remarks.contains(words), "{words}: {remarks}");
    }
}

#[test]
fn regions_of_different_speed_are_those_of_a_source() {
    let scratch = tempfile::tempdir().expect("a folder");
    let judged = |processor: &str, filled: &[u32]| {
        let path = scratch.path().join("printout");
        fs::write(&path, printed(filled).replace("AMD EPYC 7452 32-Core Processor", processor))
            .expect("written");
        machine("--dmi", &path)
    };
    let five = [1, 2, 3, 4, 5];
    for (processor, filled, is_claimed, verdict) in [
        ("AMD EPYC 7452 32-Core Processor", &five[..], true, "unbalanced"),
        ("AMD EPYC 7543 32-Core Processor", &five, true, "unbalanced"),
        // EPYC 7003 interleaves over six.
        ("AMD EPYC 7543 32-Core Processor", &[1, 2, 3, 4, 5, 6], false, "near_balanced"),
        ("AMD EPYC 7551 32-Core Processor", &five, false, "unbalanced"),
    ] {
        let found = judged(processor, filled);
        let findings = found["dimm_findings"].to_string();
        assert_eq!(found["dimm_verdict"], verdict, "{processor} {findings}");
        assert_eq!(findings.contains("regions of different speed"), is_claimed, "{processor}: {findings}");
        if !is_claimed && verdict == "unbalanced" {
            assert_eq!(found["dimm_confidence"], "low", "{processor}");
        }
    }
}
