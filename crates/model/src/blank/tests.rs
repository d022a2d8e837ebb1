//! Planted serial numbers, ids and names: none of them comes through, whatever is damaged, and what
//! is looked at stays.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::super::smbios::structures;
use super::*;

fn snapshot(entries: &[(&str, Entry)]) -> Snapshot {
    let mut snapshot =
        Snapshot { entries: entries.iter().map(|(path, entry)| (path.to_string(), entry.clone())).collect() };
    snapshot.blank();
    snapshot
}

fn text(path: &str, text: &str) -> String {
    let snapshot = snapshot(&[(path, Entry::Text(text.to_string()))]);
    match &snapshot.entries[path] {
        Entry::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// Every field of a structure that names a string, by its kind and length.
const FIELDS: [(u8, u8, &[u8]); 13] = [
    (0, 0x18, &[4, 5, 8]),
    (1, 0x1b, &[4, 5, 6, 7, 0x19, 0x1a]),
    (2, 0x0f, &[4, 5, 6, 7, 8, 0x0a]),
    (3, 0x16, &[4, 6, 7, 8, 0x15]),
    (4, 0x30, &[4, 7, 0x10, 0x20, 0x21, 0x22]),
    (7, 0x13, &[4]),
    (8, 0x09, &[4, 6]),
    (11, 0x05, &[4]),
    (16, 0x17, &[]),
    (17, 0x5c, &[0x10, 0x11, 0x17, 0x18, 0x19, 0x1a, 0x2b]),
    (22, 0x1a, &[4, 5, 6, 7, 8]),
    (39, 0x16, &[5, 6, 7, 8, 9, 0x0a]),
    (221, 0x20, &[4, 5]),
];

/// Fields whose strings say what a thing is.
fn says_what(kind: u8, field: u8) -> bool {
    matches!(
        (kind, field),
        (0, _) | (1 | 2, 4..=6) | (3, 4 | 6) | (4, 4 | 7 | 0x10) | (7, 4) | (17, 0x10 | 0x11 | 0x17 | 0x1a)
    )
}

/// A table of one structure of each kind: innocent strings where they say what a thing is, planted
/// ones everywhere else; and the planted ones.
fn planted() -> (Vec<u8>, Vec<String>) {
    let (mut table, mut secrets) = (Vec::new(), Vec::new());
    for (kind, length, fields) in FIELDS {
        let mut bytes = vec![0u8; usize::from(length)];
        (bytes[0], bytes[1], bytes[3]) = (kind, length, 0x11);
        bytes[2] = kind;
        let mut strings = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            bytes[usize::from(*field)] = number as u8 + 1;
            let secret = format!("Zq{kind:02}K{field:02}wPLANT");
            strings.push(if says_what(kind, *field) {
                format!("Name {kind} of {field}")
            } else {
                secret.clone()
            });
            if !says_what(kind, *field) {
                secrets.push(secret);
            }
        }
        if kind == 1 {
            bytes[8..24].copy_from_slice(b"UUIDPLANTEDHERE!");
            secrets.push("UUIDPLANTEDHERE!".to_string());
        }
        if kind == 17 {
            bytes[0x08..0x16].copy_from_slice(&[72, 0, 64, 0, 0, 0x40, 9, 0, 1, 2, 0x1a, 0x80, 0x20, 0x75]);
            bytes[0x16] = 0x0b;
        }
        table.extend(bytes);
        strings.iter().for_each(|string| table.extend([string.as_bytes(), &[0]].concat()));
        table.extend(if strings.is_empty() { [0, 0].as_slice() } else { [0].as_slice() });
    }
    table.extend([127, 4, 0xfe, 0xff, 0, 0]);
    (table, secrets)
}

/// Whether any of the texts stands in the bytes, in whatever letters.
fn holds(bytes: &[u8], texts: &[String]) -> Option<String> {
    let small = String::from_utf8_lossy(&bytes.to_ascii_lowercase()).into_owned();
    texts.iter().find(|text| small.contains(&text.to_ascii_lowercase())).cloned()
}

fn blanked(table: &[u8]) -> Vec<u8> {
    let mut secrets = Secrets::default();
    tables::secrets(table, &mut secrets);
    tables::blanked(table, &secrets)
}

#[test]
fn no_secret_field_of_any_structure_stays() {
    let (table, secrets) = planted();
    assert_eq!(secrets.len(), 32);
    let clean = blanked(&table);
    assert_eq!(holds(&clean, &secrets), None);
    let kinds: Vec<u8> = structures(&clean).map(|one| one.kind).collect();
    assert_eq!(kinds, [0, 1, 2, 3, 4, 7, 16, 17, 127]);
    for name in ["Name 0 of 4", "Name 1 of 5", "Name 4 of 16", "Name 17 of 26"] {
        assert!(holds(&clean, &[name.to_string()]).is_some(), "{name}");
    }
    assert_eq!(blanked(&clean), clean);
}

/// Of the firmware's characteristics only one bit stays, whatever stands around it.
#[test]
fn the_firmwares_word_that_it_is_a_guests_stays() {
    for (length, byte, kept) in [
        (0x14, 0x10, Some(0x10)),
        (0x18, 0xff, Some(0x10)),
        (0x1a, 0x3d, Some(0x10)),
        (0x18, 0xef, Some(0)),
        (0x18, b'Z', Some(0x10)),
        (0x13, 0x10, None),
        (0x12, 0x10, None),
    ] {
        let mut table = vec![0u8, length, 0, 0, 1, 2, 0, 0xf0, 0, 0xff];
        table.resize(usize::from(length), 0x81);
        if let Some(own) = table.get_mut(0x13) {
            *own = byte;
        }
        table.extend(b"Vendor\0Version\0\0");
        let clean = blanked(&table);
        let one = structures(&clean).next().expect("a structure");
        assert_eq!(one.byte(0x13), kept, "{length:x} {byte:x}");
        let rest: u64 = (0x0a..one.bytes.len()).filter(|at| *at != 0x13).filter_map(|at| one.byte(at)).sum();
        assert_eq!((rest, one.text(4)), (0, "Vendor".to_string()), "{length:x} {byte:x}");
        assert_eq!(blanked(&clean), clean);
    }
}

static PLANTED: LazyLock<(Vec<u8>, Vec<String>)> = LazyLock::new(planted);

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Cut, longer and shorter by what structures say, without ends of strings, with structures
    /// inside of others: nothing of it comes through.
    #[test]
    fn damaged_tables_keep_their_secrets(
        kind in 0..5u8,
        at in 0..PLANTED.0.len(),
        by in 1..60usize,
        byte in any::<u8>(),
    ) {
        let (table, secrets) = &*PLANTED;
        let mut table = table.clone();
        let starts: Vec<usize> = {
            let mut at = 0;
            structures(&table).map(|one| {
                let start = at;
                let strings: usize = one.strings().map(|string| string.len() + 1).sum();
                at += one.bytes.len() + strings.max(1) + 1;
                start
            }).collect()
        };
        let start = starts[at % starts.len()];
        match kind {
            0 => table.truncate(at),
            1 => table[start + 1] = byte,
            2 => table[start + 1] = table[start + 1].wrapping_add((by % 9) as u8).wrapping_sub(4),
            // A string that runs over into the next one.
            3 => {
                let end = table[at..].iter().position(|byte| *byte == 0).map_or(at, |end| at + end);
                table[end] = b'e';
            }
            // A structure within another one's strings.
            _ => drop(table.splice(start..start, [byte % 24, by as u8, 0, 0])),
        }
        let clean = blanked(&table);
        prop_assert_eq!(holds(&clean, secrets), None);
        let mut whole = Snapshot::default();
        whole.entries.insert(TABLES.into(), Entry::Bytes(table));
        whole.blank();
        let once = whole.clone();
        whole.blank();
        prop_assert_eq!(whole, once);
    }
}

#[test]
fn a_serial_number_is_covered_wherever_it_stands_again() {
    // One string for two fields, and the same letters inside of another one.
    let mut table = vec![1, 0x1b, 1, 0];
    table.resize(0x1b, 0);
    (table[4], table[5], table[6], table[7]) = (1, 2, 3, 3);
    table.extend(b"Maker\0Model of cz12345678\0CZ12345678\0\0");
    let names = [
        (TABLES, Entry::Bytes(table)),
        ("/sys/class/dmi/id/product_name", Entry::Text("Model of CZ12345678\n".into())),
        ("/sys/class/dmi/id/product_serial", Entry::Text("CZ12345678\n".into())),
        ("/proc/cmdline", Entry::Text("mem=cz12345678 quiet\n".into())),
    ];
    let clean = snapshot(&names);
    let json = serde_json::to_string(&clean).expect("JSON");
    let hex: String = "cz12345678".bytes().map(|byte| format!("{byte:02x}")).collect();
    let large: String = "CZ12345678".bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(holds(json.as_bytes(), &["cz12345678".into(), hex, large]), None, "{json}");
    assert_eq!(clean.text("/sys/class/dmi/id/product_name"), Some("Model of xxxxxxxxxx"));
    let Some(Entry::Bytes(table)) = clean.get(TABLES) else { panic!("a table") };
    assert!(table.ends_with(b"Maker\0Model of xxxxxxxxxx\0xxxxxxxxxx\0\0"));
    // Placeholders stay, as they identify no one.
    let mut common = vec![17, 0x1b, 1, 0];
    common.resize(0x1b, 0);
    (common[0x10], common[0x17], common[0x18], common[0x1a]) = (1, 2, 2, 2);
    common.extend(b"DIMM_A1\0Not Specified\0\0");
    assert_eq!(blanked(&common), common);
}

#[test]
fn printouts_keep_what_is_looked_at() {
    let printed = "\u{feff}root@db7:~# dmidecode\n[sudo] password for joe: \n# dmidecode 3.3\n\
        Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: Dell Inc.\n\
        \tProduct Name: R740 7QK3XW2\n\tSerial Number: 7QK3XW2\n\tUUID: 4c4c4544-0051-4b10-8033-b7c04f585732\n\
        \tSKU Number: SKU=ABCD\n\nHandle 0x0B00, DMI type 11, 5 bytes\nOEM Strings\n\tString 1: 7QK3XW2\n\n\
        Handle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\
        \tManufacturer: 00AD063200AD\n\tSerial Number: 3A5B7C9D\n\tAsset Tag: TAG-77\n\tPart Number: HMA82GR7\n";
    let clean = text(PRINTOUT, printed);
    assert_eq!(
        clean,
        "Handle 0x0100, DMI type 1\nSystem Information\n\tManufacturer: Dell Inc.\n\tProduct Name: R740 xxxxxxx\n\n\
         Handle 0x1100, DMI type 17\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\tManufacturer: 00AD063200AD\n\
         \tPart Number: HMA82GR7\n\n"
    );
    assert_eq!(text(PRINTOUT, &clean), clean);
}

#[test]
fn the_command_line_keeps_what_is_measured() {
    let line = "BOOT_IMAGE=/boot/vmlinuz root=UUID=0b9c4f0e-6d54-4a43-9d6a-1c1f1c9a2a77 ro quiet mitigations=off \
                isolcpus=2-7 hugepages=64 ip=10.1.2.3::10.1.2.1 token=s3cret ds=\"nocloud s=http://x y\" \
                0b9c4f0e6d544a439d6a preempt=full http://joe@x -- password hunter2\n";
    assert_eq!(
        text("/proc/cmdline", line),
        "BOOT_IMAGE=*** root=*** ro quiet mitigations=off isolcpus=2-7 hugepages=64 ip=*** token=*** ds=*** *** \
         preempt=full *** -- *** ***\n"
    );
}

#[test]
fn what_is_not_known_of_the_command_line_is_blanked() {
    for (line, left) in [
        ("quiet ZQ-4C4C4544-0042 nosmt", "quiet *** nosmt"),
        ("hunter2 joe", "*** ***"),
        ("mitigations=\"off ZQ\" psi=1", "mitigations=*** psi=1"),
        ("mitigations=ZQ isolcpus=joe,2-7", "mitigations=*** isolcpus=***"),
        ("hugepages=12345678901234", "hugepages=***"),
        // What is known stays, and what was blanked is as it was.
        (
            "console=ttyS0,115200n8 mitigations=auto,nosmt isolcpus=managed_irq,domain,2-7,9 hugepagesz=1G",
            "console=ttyS0,115200n8 mitigations=auto,nosmt isolcpus=managed_irq,domain,2-7,9 hugepagesz=1G",
        ),
        ("panic=-1 reboot=k spectre_v2=eibrs,retpoline", "panic=-1 reboot=k spectre_v2=eibrs,retpoline"),
        ("BOOT_IMAGE=*** *** mitigations=*** -- ***", "BOOT_IMAGE=*** *** mitigations=*** -- ***"),
    ] {
        assert_eq!(text("/proc/cmdline", &format!("{line}\n")), format!("{left}\n"), "{line}");
    }
}

#[test]
fn ids_of_containers_become_names_that_still_belong_together() {
    let id = "c5cbea2ff78eea580bdaf3cd6f381dafc5cbea2ff78eea580bdaf3cd6f381daf";
    let pod = "pod0b9c4f0e_6d54_4a43_9d6a_1c1f1c9a2a77";
    let group = format!("/kubepods.slice/kubepods-{pod}.slice/cri-containerd-{id}.scope");
    let clean = snapshot(&[
        ("/proc/self/cgroup", Entry::Text(format!("0::{group}\n"))),
        ("/proc/self/mountinfo", Entry::Text(format!("1 1 0:1 {group} /cg rw - cgroup2 cgroup rw\n"))),
        (&format!("/cg{group}/cpu.max"), Entry::Text("1 2\n".into())),
    ]);
    let named = "/kubepods.slice/kubepods-pod*1*.slice/cri-containerd-*2*.scope";
    assert_eq!(clean.text("/proc/self/cgroup"), Some(format!("0::{named}").as_str()));
    assert_eq!(clean.text(&format!("/cg{named}/cpu.max")), Some("1 2"));
    assert!(clean.text("/proc/self/mountinfo").is_some_and(|text| text.contains(&format!(" {named} /cg"))));
    let mut again = clean.clone();
    again.entries.insert(format!("/cg/{id}/x"), Entry::Text("3".into()));
    again.blank();
    assert_eq!(again.text("/cg/*3*/x"), Some("3"));
}

#[test]
fn disks_keep_their_kind_and_lose_owners() {
    let disk = "path /srv/data\ntotal_bytes 270553174016\nmount /home/joe/data\nfilesystem nfs4\n\
                source filer7:/export/joe\noptions rw,vers=4.2,clientaddr=10.1.2.3,noatime\nblock loop0\n\
                size 2199023255552\nloop/backing_file /home/joe/disk.img\n\
                upper /var/lib/docker/overlay2/c5cbea2ff78eea580bdaf3cd6f381daf/diff\n";
    assert_eq!(
        text("probe:disk", disk),
        "path /srv/data\ntotal_bytes 270553174016\nmount /home/***/data\nfilesystem nfs4\nsource ***\n\
         options rw,vers=4.2,clientaddr=***,noatime\nblock loop0\nsize 2199023255552\n\
         loop/backing_file /home/***/disk.img\nupper /var/lib/docker/overlay2/*1*/diff\n"
    );
    let plain =
        "mount /\nfilesystem ext4\nsource /dev/mapper/vg-root\noptions rw,discard,errors=remount-ro\n";
    assert_eq!(text("probe:disk", plain), plain);
    assert_eq!(text("/proc/swaps", "/home/joe/swap file 1\n"), "/home/***/swap file 1\n");
}

#[test]
fn processors_and_interfaces() {
    let arm = "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nSerial\t\t: 10000000abcdef12\n";
    assert_eq!(
        text("/proc/cpuinfo", arm),
        "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nSerial\t\t: ***\n"
    );
    let user_mode = "processor\t: 0\nvendor_id\t: User Mode Linux\nhost\t\t: Linux db7 6.1.0 x86_64\n";
    assert_eq!(
        text("/proc/cpuinfo", user_mode),
        "processor\t: 0\nvendor_id\t: User Mode Linux\nhost\t\t: ***\n"
    );
    let s390 = "processor 0: version = FF,  identification = 0133F8,  machine = 2964\n";
    let told = "processor 0: version = FF,  identification = ***,  machine = 2964\n";
    assert_eq!(text("/proc/cpuinfo", s390), told);
    assert_eq!(
        text("/proc/sysinfo", "Type: 2964\nSequence Code: 00C3D7\n"),
        "Type: 2964\nSequence Code: ***\n"
    );
    let cpuid = "# mask\n1 2 0 0 0 => 1 2 3 4\n1 3 0 0 0 => 0 0 af31 77\n";
    assert_eq!(text("probe:cpuid/0", cpuid), "# mask\n1 2 0 0 0 => 1 2 3 4\n1 3 0 0 0 => 0 0 0 0\n");
    let way = "interface enx001b2a3c4d5e\nhw 00:1b:2a:3c:4d:5e\nbus 0000:00:03.0\nxps tx-0 ffffffff,ffffffff\n\
               boot 0b9c4f0e-6d54-4a43-9d6a-1c1f1c9a2a77\n";
    assert_eq!(
        text("probe:network", way),
        "interface enx*1*\nhw ***\nbus 0000:00:03.0\nxps tx-0 ffffffff,ffffffff\n\
         boot 0b9c4f0e-6d54-4a43-9d6a-1c1f1c9a2a77\n"
    );
    let boot = "0b9c4f0e-6d54-4a43-9d6a-1c1f1c9a2a77\n";
    assert_eq!(text("/proc/sys/kernel/random/boot_id", boot), boot);
}

#[test]
fn what_is_read_from_an_old_file_is_blanked_and_says_so() {
    let old = r#"{"": {"proc": {"cmdline": "token=abc\n"}, "sys": {"class": {"net": {"eth0": {"address": "x"}}}}}}"#;
    let read: Snapshot = serde_json::from_str(old).expect("reads");
    assert_eq!(
        (read.text("/proc/cmdline"), read.get("/sys/class/net/eth0/address")),
        (Some("token=***"), None)
    );
    assert!(read.get(BLANKED).is_some());
    let saved = serde_json::to_string(&read).expect("JSON").replace(",\"probe:blanked\":\"\"", "");
    let again: Snapshot = serde_json::from_str(&saved).expect("reads");
    assert!(again.get(BLANKED).is_none(), "{saved}");
}

#[test]
fn secrets_are_covered_however_they_overlap_and_however_long_they_are() {
    let long = format!("LONG-{}-END", "0123456789abcdef".repeat(12));
    let mut secrets = Secrets::default();
    for secret in ["abcdef", "defghi", "cdef", "bcde", &long] {
        secrets.add(secret.as_bytes());
    }
    for (text, covered) in [
        ("-ABCdefGHI-", "-xxxxxxxxx-"),
        ("bcde", "xxxx"),
        ("cde defgh", "cde defgh"),
        ("zcdefz abcdef", "zxxxxz xxxxxx"),
        (&format!("a {} b", long.to_lowercase()), &format!("a {} b", "x".repeat(long.len()))),
    ] {
        assert_eq!(secrets.covered(text), covered);
    }
}

/// No host has them; looking for each of them in all of it would take hours.
#[test]
fn where_there_are_more_secrets_than_any_machine_has_nothing_is_kept() {
    let serials: Vec<String> = (0..60_000).map(|n| format!("Serial Number: s{n:07}")).collect();
    let printout = format!("Memory Device\n\t{}\n\tLocator: A1\n", serials.join("\n\t"));
    let cmdline = "root=/dev/vda s0000007 s0059999";
    let snapshot =
        snapshot(&[(PRINTOUT, Entry::Text(printout)), ("/proc/cmdline", Entry::Text(cmdline.to_string()))]);
    for (path, entry) in &snapshot.entries {
        let Entry::Text(text) = entry else { panic!("{entry:?}") };
        assert!(!text.contains("s0000007") && !text.contains("s0059999"), "{path}");
    }
}
