//! Archives that were damaged, or made to harm.

use super::*;

const SMALL: tar::Limits = tar::Limits { unpacked: 1 << 20, file: 4096, kept: 64 << 10, entries: 100 };

fn refused(bytes: &[u8]) -> String {
    bounded(bytes, SMALL).expect_err("it is refused")
}

#[test]
fn what_is_nothing_of_ours_is_told_what_can_be_read() {
    let readable = [
        "sosreport",
        "insights",
        "supportconfig",
        "lstopo --of xml",
        "lshw -json",
        "hwinfo",
        "lscpu",
        "numactl --hardware",
        "dmidecode",
    ];
    let others: [&[u8]; 9] = [
        b"",
        b"hello",
        b"{}",
        b"[1]",
        b"<html></html>",
        &[0; 4096],
        b"\x1f\x8b\x08",
        b"BZh9",
        b"\xfd7zXZ\0\0\0",
    ];
    for bytes in others {
        let why = refused(bytes);
        for word in readable {
            assert!(why.contains(word), "{bytes:?}: {why}");
        }
    }
    let mut other = Made::default();
    let why = refused(&other.file("photos/cat.txt", "meow").done());
    assert!(why.contains("has no data of a host"), "{why}");
}

#[test]
fn bombs_end_at_their_limit() {
    // A file of zeros that is not wanted is read, and not kept.
    let mut made = Made::default();
    made.entry("x/var/log/zeros", b'0', "", &vec![0; 2 << 20]);
    for (packer, packed) in packed(&made.done()) {
        assert!(packed.len() < 10_000, "{packer}");
        assert!(refused(&packed).contains("unpacked it is larger"), "{packer}: {}", refused(&packed));
    }
    // Behind the archive's end, where nothing is kept.
    let behind = [Made::default().file("x/proc/version", "").done(), vec![0; 2 << 20]].concat();
    assert!(refused(&packed(&behind)[0].1).contains("unpacked it is larger"));
    // Many small ones.
    let mut many = Made::default();
    for at in 0..101 {
        many.file(&format!("x/etc/{at}"), "");
    }
    assert!(refused(&many.done()).contains("more entries"));
    let mut large = Made::default();
    for at in 0..30 {
        large.file(&format!("x/proc/{at}"), &"y".repeat(4000));
    }
    assert!(refused(&large.done()).contains("larger than any host"));
    // A text that is none, without end.
    assert!(refused(&[b'x'; 5000]).contains("not an archive"));
}

#[test]
fn a_damaged_archive_is_an_error() {
    let whole = sosreport(&modules(2, 16)).done();
    for length in [600, 5000, whole.len() / 2, whole.len() - 1100] {
        let cut = read_bytes(&whole[..length]).expect_err("it is cut");
        assert!(cut.contains("cut short"), "{length}: {cut}");
    }
    let mut broken = whole;
    broken[512 + 3] ^= 0x40;
    assert!(read_bytes(&broken).expect_err("damaged").contains("a header in it is damaged"));
    // A size that would end nowhere.
    let mut endless = Made::default();
    endless.sized("x/proc/meminfo", b'0', "", (1 << 33) - 1, b"");
    assert!(refused(&endless.done()).contains("cut short"));
}

/// Half of an archive looks like a smaller host; its last bytes are the packer's own.
#[test]
fn an_archive_that_ends_early_is_no_machine() {
    for (packer, whole) in packed(&sosreport(&modules(2, 16)).done()) {
        let last = [whole.len() - 1, whole.len() - 4, whole.len() - 8];
        for length in [30, whole.len() / 4, whole.len() / 2].into_iter().chain(last) {
            let said = read_bytes(&whole[..length]).expect_err("it is cut");
            assert!(said.starts_with("it ends early"), "{packer}, {length}: {said}");
        }
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        let said = read_bytes(&changed).expect_err("it is damaged");
        assert!(said.contains("damaged") || said.starts_with("it ends early"), "{packer}: {said}");
    }
}

#[test]
fn two_machines_are_two_and_archives_in_an_archive_are_named() {
    let both = |folders: [&str; 2]| {
        let mut made = tree(folders[0], &made());
        made.0.extend(tree(folders[1], &super::made()).0);
        made.file(&format!("{}/sos_commands/host/hostname", folders[0]), "db7\n");
        made.done()
    };
    let said = read_bytes(&both(["sosreport-a", "sosreport-b"])).expect_err("two machines");
    for words in ["of 2 hosts (sosreport-a, sosreport-b)", "tar -xf FILE sosreport-a"] {
        assert!(said.contains(words), "{said}");
    }
    // One that has the other inside is one.
    assert!(read_bytes(&both(["sosreport-a", "sosreport-a/data"])).is_ok());
    // Folders are distinguished as well.
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["one", "other"] {
        write(folder.path(), &format!("{name}/proc/version"), "Linux version 6.1");
    }
    let said = read(folder.path()).expect_err("two machines");
    assert!(said.contains("of 2 hosts (one, other)") && said.contains("give one of them"), "{said}");
    let mut made = Made::default();
    made.file("case/sosreport-a.tar.xz", "packed").file("case/sosreport-b.tar.xz", "packed");
    let said = read_bytes(&made.done()).expect_err("archives");
    let words = "it contains archives (case/sosreport-a.tar.xz, case/sosreport-b.tar.xz)";
    assert!(said.starts_with(words), "{said}");
    // Beside a host they are of no interest.
    let mut with = sosreport(&modules(2, 16));
    with.file("sosreport-db7-2026-11-29-abcdefg/logs.tar.gz", "packed");
    assert!(read_bytes(&with.done()).is_ok());
}

/// What makes work for each other is bounded: printouts, CPUs, nodes, devices.
#[test]
fn more_than_any_machine_has_is_left_out() {
    let mut many = Made::default();
    many.file("x/proc/version", "Linux version 6.1.0 (x) #1");
    for at in 0..100 {
        many.file(&format!("x/sos_commands/kernel/uname_{at}"), UNAME);
        many.file(&format!("x/hostname_{at}"), "db7\n");
    }
    let told = machine_of(&many.done()).archive.expect("an archive");
    assert_eq!(told.sources.len(), 2 * MAX_PRINTED);
    let mut wide = Made::default();
    for at in 0..9000 {
        wide.file(&format!("x/sys/devices/system/cpu/cpu{at}/online"), "1");
        wide.file(&format!("x/sys/devices/system/node/node{at}/cpulist"), "0-3");
        wide.entry(&format!("x/sys/block/sd{at}"), b'5', "", b"");
    }
    let machine = machine_of(&wide.done());
    assert_eq!((machine.cpus.online.len(), machine.nodes.len()), (8192, 1));
}

/// Neither half of a topology nor half of a list is a smaller host.
#[test]
fn printouts_whose_end_is_missing_are_told_so() {
    let topology =
        "<?xml version=\"1.0\"?><topology><object type=\"Machine\" cpuset=\"0x3\"></object></topology>\n";
    let list =
        r#"{"lscpu": [{"field": "CPU(s):", "data": "2"}, {"field": "Architecture:", "data": "x86_64"}]}"#;
    for (whole, from) in [(topology, 40), (list, 20)] {
        assert!(read_bytes(whole.as_bytes()).is_ok(), "{whole}");
        for length in from..whole.trim_end().len() {
            let said = read_bytes(&whole.as_bytes()[..length]).expect_err("it is cut");
            assert!(said.starts_with("it ends early"), "{length}: {said}");
        }
    }
    // In an archive, the others are heard.
    let mut archive = sosreport(&modules(2, 16));
    archive.file("sosreport-db7-2026-11-29-abcdefg/sos_commands/processor/lscpu_-J", &list[..30]);
    let told = machine_of(&archive.done()).archive.expect("an archive");
    assert_eq!((told.sources.len(), told.contradictions.len()), (5, 0), "{told:?}");
}

/// A pipe that no one writes to, devices and an empty folder.
#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::RWXU, 0).expect("makes a pipe");
    let socket = folder.path().join("socket");
    let _open = std::os::unix::net::UnixListener::bind(&socket).expect("makes a socket");
    for (path, words) in [
        (pipe.as_path(), "is a named pipe"),
        (socket.as_path(), "is a socket"),
        (Path::new("/dev/zero"), "is a device"),
    ] {
        let said = read(path).expect_err("it is refused");
        assert!(said.contains(words), "{said}");
    }
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("creates");
    assert!(read(&empty).expect("a folder").entries.is_empty());
}

#[test]
fn names_lead_nowhere_else() {
    let memory = "MemTotal: 1024 kB\n";
    let mut made = Made::default();
    made.file("x/proc/version", "Linux version 6.1 (x) #1");
    made.file("../../proc/meminfo", memory).file("x/../../proc/meminfo", memory);
    // A link first, and a file through it.
    made.entry("x/sys", b'2', "/etc", b"").file("x/sys/devices/system/cpu/online", "0-3");
    made.entry("x/proc/loadavg", b'2', "../../../../../../proc/loadavg", b"");
    made.entry("x/proc/uptime", b'2', "/etc/hostname", b"");
    made.entry("x/etc/hostname", b'1', "/etc/hostname", b"");
    made.entry("x/proc/stat", b'2', "stat", b"");
    made.entry("x/proc/cmdline", b'3', "", b"").entry("x/proc/swaps", b'6', "", b"");
    let snapshot = read_bytes(&made.done()).expect("an archive");
    let names: Vec<&str> = snapshot.entries.keys().map(String::as_str).collect();
    assert_eq!(names, ["/proc/version"]);
}

/// A record of a pax header, which begins with its own length.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let length = (rest.len()..).find(|length| length.to_string().len() + rest.len() == *length);
    format!("{}{rest}", length.expect("a length"))
}

#[test]
fn long_names_hard_links_and_old_headers() {
    let deep = format!("{}/proc/meminfo", "long".repeat(40));
    let memory = "MemTotal: 1024 kB\n";
    let mut gnu = Made::default();
    gnu.entry("././@LongLink", b'L', "", format!("{deep}\0").as_bytes()).file("cut", memory);
    let mut pax = Made::default();
    pax.entry("pax", b'x', "", record("path", &deep).as_bytes()).file("cut", memory);
    let mut hard = Made::default();
    hard.file("x/proc/version", memory).entry("x/proc/meminfo", b'1', "x/proc/version", b"");
    let mut early = Made::default();
    early.entry("x/proc/meminfo", 0, "", memory.as_bytes());
    for archive in [gnu, pax, hard, early] {
        let snapshot = read_bytes(&archive.done()).expect("an archive");
        assert_eq!(snapshot.text("/proc/meminfo"), Some("MemTotal: 1024 kB"));
    }
    // Names longer than any, and a pax header that says nonsense of its length.
    let mut long = Made::default();
    long.sized("././@LongLink", b'L', "", 2 << 20, b"");
    assert!(read_bytes(&long.done()).expect_err("refused").contains("too long"));
    for records in ["999 path=x\n", "0 path=x\n", "x y\n", "3 \n", " "] {
        let mut odd = Made::default();
        odd.entry("pax", b'x', "", records.as_bytes()).file("x/proc/meminfo", memory);
        let snapshot = read_bytes(&odd.done()).expect("an archive");
        assert_eq!(snapshot.text("/proc/meminfo"), Some("MemTotal: 1024 kB"), "{records:?}");
    }
}

/// Files in pieces and too large ones are there, and not read.
#[test]
fn files_with_holes_and_large_ones_are_left_out() {
    let mut made = Made::default();
    made.entry("pax", b'x', "", record("GNU.sparse.major", "1").as_bytes());
    made.file("x/proc/meminfo", "MemTotal: 1024 kB\n");
    made.entry("x/proc/version", b'S', "", b"Linux").file("x/proc/loadavg", &"0".repeat(5000));
    made.file("x/proc/uptime", "1 1");
    let snapshot = bounded(made.done().as_slice(), SMALL).expect("an archive");
    for path in ["/proc/meminfo", "/proc/version", "/proc/loadavg"] {
        assert_eq!(snapshot.get(path), Some(&Entry::Failed(27)), "{path}");
    }
    assert_eq!(snapshot.text("/proc/uptime"), Some("1 1"));
}

#[test]
fn a_short_printout_never_becomes_gigabytes() {
    // All even CPUs form one core: the list of that core stands with each of them.
    let mut table = "CPU NODE SOCKET CORE ONLINE\n".to_string();
    (0..30_000).for_each(|cpu| table.push_str(&format!("{} 0 0 0 yes\n", 2 * cpu)));
    let mut told = reported::Reported::default();
    (lscpu::TABLE.read)(table.as_bytes(), &mut told);
    assert!(told.is_too_much());
    let told_bytes = |entry: &model::Entry| match entry {
        model::Entry::Text(text) => text.len(),
        _ => 0,
    };
    assert!(told.files.values().map(told_bytes).sum::<usize>() < 300 << 20);
    // What is left out is no host.
    assert!(machine_of(table.as_bytes()).cpus.online.is_empty());
    // Numbers of CPUs that no kernel has are none.
    let table = "CPU NODE SOCKET CORE ONLINE\n0 0 0 0 yes\n4000000000 0 0 1 yes\n";
    assert_eq!(machine_of(table.as_bytes()).cpus.online.len(), 1);
    // More CPUs than Linux is built for are none, either.
    let text = "Architecture: x86_64\nCPU(s): 65536\nOn-line CPU(s) list: 0-65535\n";
    assert!(machine_of(text.as_bytes()).cpus.online.is_empty());
    // Caches of their own for 8,000 CPUs are as many.
    let text = "Architecture: x86_64\nCPU(s): 8000\nOn-line CPU(s) list: 0-7999\nSocket(s): 1\n\
                Thread(s) per core: 1\nCore(s) per socket: 8000\nL1d cache: 250 MiB (8000 instances)\n\
                L2 cache: 8000 MiB (8000 instances)\n";
    assert_eq!(machine_of(text.as_bytes()).caches.len(), 16_000);
}
