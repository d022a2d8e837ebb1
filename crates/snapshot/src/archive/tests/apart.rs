//! Sources that contradict each other.

use super::*;

/// What is said about a sosreport with other words in one of its files.
fn said(file: &str, text: &str) -> Vec<String> {
    let mut archive = sosreport(&modules(2, 16));
    archive.file(&format!("sosreport-db7-2026-11-29-abcdefg/{file}"), text);
    machine_of(&archive.done()).archive.expect("an archive").contradictions
}

#[test]
fn each_is_named_with_its_sources() {
    let (lscpu, numactl) = ("sos_commands/processor/lscpu", "sos_commands/numa/numactl_--hardware");
    for (file, text, words) in [
        (
            lscpu,
            LSCPU.replace("Socket(s):             2", "Socket(s):             1"),
            "sockets: 2 by sys/devices/system/cpu and dmidecode (sos_commands/hardware/dmidecode), 1 by lscpu \
             (sos_commands/processor/lscpu)",
        ),
        (
            "sos_commands/hardware/dmidecode",
            modules(1, 16),
            ", 1 by dmidecode (sos_commands/hardware/dmidecode)",
        ),
        (
            "sos_commands/kernel/uname_-a",
            UNAME.replace("6.1.0-13", "5.14.0-1"),
            "kernel: 6.1.0-13-amd64 by proc/version, 5.14.0-1-amd64 by uname",
        ),
        (
            "sos_commands/host/hostname",
            "db8\n".to_string(),
            "host name: db7 by proc/sys/kernel/hostname and uname",
        ),
        (
            numactl,
            "available: 1 nodes (0)\n".to_string(),
            "NUMA nodes: 2 by sys/devices/system/node and lscpu",
        ),
        (
            "proc/meminfo",
            "MemTotal: 98500000 kB\n".to_string(),
            "the kernel's memory does not fit the modules: 93.9 GiB by proc/meminfo, 192.0 GiB installed by dmidecode",
        ),
        (lscpu, LSCPU.replace("6230", "6130"), "processor: Intel(R) Xeon(R) Gold 6230"),
        (lscpu, LSCPU.replace("0-7", "0-3"), "CPUs: 8 by sys/devices/system/cpu and numactl"),
    ] {
        let said = said(file, &text);
        assert!(said.iter().any(|one| one.contains(words)), "{file}: {said:?}");
    }
}

/// What is said about one printout, and what is then in doubt.
fn alone(text: &str) -> (Vec<String>, Vec<String>) {
    let told = machine_of(text.as_bytes()).archive.expect("an archive");
    (told.contradictions, told.in_doubt)
}

#[test]
fn a_printout_that_contradicts_itself_is_in_doubt() {
    let of = |words: &str, what: &str| (vec![words.to_string()], vec![what.to_string()]);
    assert_eq!(
        alone(&LSCPU.replace("CPU(s):                8", "CPU(s):                512")),
        of("the sources differ in CPUs: 512 by CPU(s) of lscpu, 8 by lscpu", "CPUs")
    );
    // Those that are off are counted and not in the list.
    let off =
        LSCPU.replace("CPU(s):                8", "CPU(s):                10\nOff-line CPU(s) list:  8,9");
    assert_eq!(alone(&off), Default::default());
    assert_eq!(
        alone(&NUMACTL.replace("available: 2", "available: 4000000000")),
        of(
            "the sources differ in NUMA nodes: 4000000000 by available of numactl, 2 by numactl",
            "NUMA nodes"
        )
    );
    assert_eq!((alone(LSCPU), alone(NUMACTL)), Default::default());
}

/// Whether what is reported differently puts the host in doubt.
#[test]
fn what_one_machine_cannot_tell_differently_is_in_doubt() {
    let product = |name: &str| {
        format!("\nHandle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tProduct Name: {name}\n")
    };
    let tables = |name: &str| modules(2, 16).replace("\nHandle 0x0401", &(product(name) + "\nHandle 0x0401"));
    let of = |files: &[(&str, &str)]| {
        let mut archive = sosreport(&tables("PowerEdge R640"));
        let top = |file: &str| format!("sosreport-db7-2026-11-29-abcdefg/{file}");
        archive.file(&top("sys/class/dmi/id/product_name"), "PowerEdge  R640");
        for (file, text) in files {
            archive.file(&top(file), text);
        }
        machine_of(&archive.done()).archive.expect("an archive").in_doubt
    };
    assert_eq!(of(&[]), Vec::<String>::new());
    let lscpu = LSCPU
        .replace("6230", "6130")
        .replace("0-7", "0-3")
        .replace("CPU(s):                8", "CPU(s):                4");
    assert_eq!(
        of(&[
            ("sos_commands/kernel/uname_-a", "Linux db8 5.14.0-1 #1 SMP x86_64 GNU/Linux\n"),
            ("sos_commands/processor/lscpu", &lscpu),
            (
                "sos_commands/numa/numactl_--hardware",
                "available: 1 nodes (0)\nnode 0 cpus: 0 1 4 5\nnode 0 size: 9 MB\n"
            ),
            ("sos_commands/hardware/dmidecode", &tables("ProLiant DL380")),
        ]),
        ["host name", "kernel", "processor", "CPUs", "NUMA nodes", "product", "memory"]
    );
    // What firmware and kernel may have other ideas of.
    assert_eq!(of(&[("sos_commands/hardware/dmidecode", &modules(1, 32))]), Vec::<String>::new());
}

/// Whose word it is is the file's that it was read from.
#[test]
fn sources_are_the_files_that_were_read() {
    let files = made();
    let without_sys: Vec<_> = files.into_iter().filter(|(path, _)| !path.starts_with("/sys")).collect();
    let mut archive = tree("sosreport-db7", &without_sys);
    let half = LSCPU.replace("0-7", "0-3").replace("Socket(s):             2", "Socket(s):             1");
    archive.file("sosreport-db7/sos_commands/processor/lscpu", &half);
    let told = machine_of(&archive.done()).archive.expect("an archive").contradictions;
    for words in ["CPUs: 8 by proc/cpuinfo and CPU(s) of lscpu", "sockets: 2 by proc/cpuinfo, 1 by lscpu"] {
        assert!(told.iter().any(|one| one.contains(words)), "{words}: {told:?}");
    }
    let text = &without_sys.iter().find(|(path, _)| path == "/proc/cpuinfo").expect("a file").1;
    let section = |title: &str, text: &str| format!("#==[ {title} ]===#\n{text}\n");
    let file = section("Configuration File", &format!("# /proc/cpuinfo\n{}", text.replace("\n\n", "\n")));
    let command = section("Command", &format!("# /usr/bin/lscpu\n{half}"));
    let mut support = Made::default();
    support.file("scc_db7/basic-environment.txt", "").file("scc_db7/hardware.txt", &(file + &command));
    let told = machine_of(&support.done()).archive.expect("an archive").contradictions;
    let words = "CPUs: 8 by proc/cpuinfo (hardware.txt) and CPU(s) of lscpu (hardware.txt), 4 by lscpu";
    assert!(told.iter().any(|one| one.contains(words)), "{told:?}");
}

#[test]
fn what_agrees_is_not_named() {
    assert_eq!(said("sos_commands/host/hostname", "DB7.example.org\n"), Vec::<String>::new());
    assert_eq!(said("sos_commands/host/hostname", "hostname: command not found\n"), Vec::<String>::new());
}
