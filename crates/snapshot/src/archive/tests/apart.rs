//! Sources that contradict each other.

use super::*;

/// What is said of a sosreport with other words in one of its files.
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

#[test]
fn what_agrees_is_not_named() {
    assert_eq!(said("sos_commands/host/hostname", "DB7.example.org\n"), Vec::<String>::new());
    assert_eq!(said("sos_commands/host/hostname", "hostname: command not found\n"), Vec::<String>::new());
}
