//! Every kind by each of its signs, and hosts that only look like one.

use super::super::Machine;
use super::super::text::tests::tree;
use super::*;

/// (kinds, signs) of a tree.
fn found(files: &[(&str, &str)]) -> Vec<EnclosureKind> {
    let enclosures = Machine::from(&tree(files)).enclosures;
    for enclosure in &enclosures {
        assert!(enclosure.sign.starts_with('/'), "{enclosure:?}");
    }
    enclosures.iter().map(|enclosure| enclosure.kind).collect()
}

const MOUNTS: &str = "/proc/self/mountinfo";
const GROUPS: &str = "/proc/self/cgroup";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const CPUINFO: &str = "/proc/cpuinfo";

/// Lines of a mount table: root, mount point and type of each.
fn mounts(lines: &[(&str, &str, &str)]) -> String {
    let line = |(root, point, kind): &(&str, &str, &str)| {
        format!("40 30 0:9 {root} {point} rw,relatime - {kind} none rw\n")
    };
    lines.iter().map(line).collect()
}

#[test]
fn kubernetes_by_group_token_and_hosts() {
    let pod = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-pod*1*.slice/cri-containerd-*2*.scope\n";
    assert_eq!(found(&[(GROUPS, pod)]), [EnclosureKind::Kubernetes]);
    assert_eq!(found(&[(GROUPS, "4:memory:/kubepods/besteffort/pod*1*/*2*\n")]), [EnclosureKind::Kubernetes]);
    let token = mounts(&[("/", "/run/secrets/kubernetes.io/serviceaccount", "tmpfs")]);
    assert_eq!(found(&[(MOUNTS, &token)]), [EnclosureKind::Kubernetes]);
    let hosts = mounts(&[("/var/lib/kubelet/pods/*1*/etc-hosts", "/etc/hosts", "ext4")]);
    assert_eq!(found(&[(MOUNTS, &hosts)]), [EnclosureKind::Kubernetes]);
}

#[test]
fn docker_by_group_mounts_and_marker() {
    for group in ["0::/system.slice/docker-*1*.scope\n", "4:cpu:/docker/*1*\n"] {
        assert_eq!(found(&[(GROUPS, group)]), [EnclosureKind::Docker], "{group}");
    }
    let hosts = mounts(&[("/docker/containers/", "/etc/hosts", "ext4")]);
    assert_eq!(found(&[(MOUNTS, &hosts)]), [EnclosureKind::Docker]);
    // Another data folder: the files of /etc are mounts, beside the marker.
    let elsewhere = mounts(&[("/", "/etc/hosts", "xfs"), ("/", "/etc/hostname", "xfs")]);
    assert_eq!(found(&[(MOUNTS, &elsewhere), ("/.dockerenv", "")]), [EnclosureKind::Docker]);
    assert_eq!(found(&[("/run/systemd/container", "docker\n")]), [EnclosureKind::Docker]);
}

#[test]
fn podman_lxc_and_nspawn() {
    for (path, text) in [
        (GROUPS, "0::/machine.slice/libpod-*1*.scope/container\n"),
        ("/run/.containerenv", "engine=\"podman-4.9.3\"\n"),
        ("/run/host/container-manager", "podman"),
    ] {
        assert_eq!(found(&[(path, text)]), [EnclosureKind::Podman], "{path}");
    }
    let lxd = mounts(&[("/", "/dev/.lxd-mounts", "tmpfs")]);
    for (path, text) in [
        (GROUPS, "0::/lxc.payload.web/init.scope\n"),
        (GROUPS, "5:cpu:/lxc/web\n"),
        (GROUPS, "0::/.lxc\n"),
        (MOUNTS, lxd.as_str()),
        ("/run/systemd/container", "lxc"),
    ] {
        assert_eq!(found(&[(path, text)]), [EnclosureKind::Lxc], "{path}");
    }
    assert_eq!(found(&[("/run/systemd/container", "systemd-nspawn")]), [EnclosureKind::SystemdNspawn]);
}

#[test]
fn a_container_of_unknown_make() {
    assert_eq!(found(&[("/proc/self/ns/pid", "pid:[4026532188]")]), [EnclosureKind::Container]);
    assert_eq!(found(&[("/run/systemd/container", "oci")]), [EnclosureKind::Container]);
    // Who is named already is not named twice, and the first namespace is the host's.
    let both = [("/proc/self/ns/pid", "pid:[4026532188]"), (GROUPS, "0::/docker/*1*\n")];
    assert_eq!(found(&both), [EnclosureKind::Docker]);
    assert!(found(&[("/proc/self/ns/pid", "pid:[4026531836]")]).is_empty());
}

#[test]
fn lxcfs_says_which_files_it_writes() {
    let table = mounts(&[("/", "/proc/stat", "fuse.lxcfs"), ("/", "/proc/cpuinfo", "fuse.lxcfs")]);
    let machine = Machine::from(&tree(&[(MOUNTS, &table), ("/run/systemd/container", "lxc")]));
    let kinds: Vec<EnclosureKind> = machine.enclosures.iter().map(|enclosure| enclosure.kind).collect();
    assert_eq!(kinds, [EnclosureKind::Lxc, EnclosureKind::Lxcfs]);
    assert_eq!(machine.enclosures[1].sign, "/proc/self/mountinfo: fuse.lxcfs at /proc/cpuinfo, /proc/stat");
}

#[test]
fn gvisor_old_and_new() {
    let old = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n";
    let new = "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n";
    for version in [old, new] {
        let files = [("/proc/version", version), ("/proc/self/ns/pid", "pid:[7]")];
        assert_eq!(found(&files), [EnclosureKind::Gvisor], "{version}");
    }
    let in_docker = [("/proc/version", old), (GROUPS, "0::/docker/*1*\n")];
    assert_eq!(found(&in_docker), [EnclosureKind::Docker, EnclosureKind::Gvisor]);
}

#[test]
fn both_kinds_of_wsl() {
    assert_eq!(found(&[(RELEASE, "4.4.0-19041-Microsoft\n")]), [EnclosureKind::Wsl1]);
    let version = "Linux version 4.4.0-18362-Microsoft (Microsoft@Microsoft.com) (gcc) #1 Mon 2019 PST\n";
    assert_eq!(found(&[("/proc/version", version)]), [EnclosureKind::Wsl1]);
    for release in ["5.15.167.4-microsoft-standard-WSL2", "4.19.104-microsoft-standard", "6.6.1-mine-WSL2"] {
        let files = [(RELEASE, release), ("/proc/self/ns/pid", "pid:[4026532200]")];
        assert_eq!(found(&files), [EnclosureKind::Wsl2], "{release}");
    }
}

#[test]
fn user_mode_linux_is_a_guest() {
    let cpuinfo = "processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\nmode\t\t: skas\n";
    let machine = Machine::from(&tree(&[(CPUINFO, cpuinfo)]));
    assert_eq!(machine.enclosures[0].kind, EnclosureKind::UserModeLinux);
    assert_eq!(machine.hypervisor, Hypervisor::Guest("user-mode linux".to_string()));
}

#[test]
fn firecracker_by_its_acpi_tables() {
    let table = ("/sys/firmware/acpi/tables/FACP", "FACP\u{14}\u{1}\0\0\u{6}fFIRECKFCVMFADT");
    assert_eq!(found(&[table]), [EnclosureKind::Firecracker]);
    let other = ("/sys/firmware/acpi/tables/FACP", "FACP\u{f4}\0\0\0\u{3}_BOCHS BXPCFACP");
    assert!(found(&[other]).is_empty());
    let product = ("/sys/class/dmi/id/product_name", "Firecracker");
    assert_eq!(found(&[product]), [EnclosureKind::Firecracker]);
}

#[test]
fn nested_guests_and_guests_that_may_have_some() {
    let levels = "LPAR Number: 3\nVM00 Control Program: KVM/Linux\nVM01 Control Program: z/VM 7.2\n";
    assert_eq!(found(&[("/proc/sysinfo", levels)]), [EnclosureKind::NestedGuest]);
    assert!(found(&[("/proc/sysinfo", "LPAR Number: 3\nVM00 Control Program: z/VM 7.2\n")]).is_empty());
    let leaf = |name: &[u8; 12]| {
        let word = |at: usize| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]);
        format!("1 40000000 0 0 0 => 40000001 {:x} {:x} {:x}\n", word(0), word(4), word(8))
    };
    let xen = ("/sys/hypervisor/type", "xen");
    let (kvm, own) = (leaf(b"KVMKVMKVM\0\0\0"), leaf(b"XenVMMXenVMM"));
    assert_eq!(found(&[xen, ("probe:cpuid/0", &kvm)]), [EnclosureKind::NestedGuest]);
    assert!(found(&[xen, ("probe:cpuid/0", &own)]).is_empty());
    let guest = |flags: &'static str| (CPUINFO, flags);
    let may = guest("processor: 0\nflags: fpu hypervisor svm\n");
    assert_eq!(found(&[may]), [EnclosureKind::GuestWithVirtualization]);
    let plain = guest("processor: 0\nflags: fpu hypervisor\n");
    assert_eq!(found(&[plain, ("/dev/kvm", "")]), [EnclosureKind::GuestWithVirtualization]);
    assert!(found(&[plain]).is_empty());
    // On metal that is a host, no guest.
    assert!(found(&[guest("processor: 0\nflags: fpu vmx\n"), ("/dev/kvm", "")]).is_empty());
}

#[test]
fn several_at_once_the_innermost_first() {
    let files = [
        (GROUPS, "0::/kubepods/pod*1*/*2*\n"),
        ("/sys/firmware/acpi/tables/FACP", "FACP\u{14}\u{1}\0\0\u{6}fFIRECKFCVMFADT"),
        (CPUINFO, "processor: 0\nflags: fpu hypervisor vmx\n"),
    ];
    assert_eq!(
        found(&files),
        [EnclosureKind::Kubernetes, EnclosureKind::Firecracker, EnclosureKind::GuestWithVirtualization]
    );
}

#[test]
fn hosts_are_not_what_runs_on_them() {
    let debian: &[(&str, &str)] = &[
        (RELEASE, "6.12.9-amd64"),
        ("/proc/version", "Linux version 6.12.9-amd64 (debian-kernel@lists.debian.org) (gcc) #1 SMP Debian"),
        (GROUPS, "0::/user.slice/user-1000.slice/session-3.scope\n"),
        ("/proc/self/ns/pid", FIRST_PID_NAMESPACE),
        (CPUINFO, "processor: 0\nvendor_id: GenuineIntel\nflags: fpu vmx\n"),
    ];
    assert!(found(debian).is_empty());
    let with = |files: &[(&'static str, &str)]| {
        // Later files replace earlier ones.
        found(&[debian, files].concat())
    };
    // Docker's own service, its containers' mounts as the host sees them, a name.
    let docker = mounts(&[("/", "/var/lib/docker/overlay2/*1*/merged", "overlay")]);
    assert!(with(&[(GROUPS, "0::/system.slice/docker.service\n"), (MOUNTS, &docker)]).is_empty());
    assert!(with(&[(GROUPS, "0::/docker\n")]).is_empty());
    // A virtual machine whose disk was made from an image.
    assert!(with(&[("/.dockerenv", ""), ("/run/.containerenv", "")]).is_empty());
    let lxd = mounts(&[("/", "/var/lib/lxcfs", "fuse.lxcfs"), ("/", "/var/snap/lxd/common/ns", "tmpfs")]);
    assert!(with(&[(GROUPS, "0::/system.slice/snap.lxd.daemon.service\n"), (MOUNTS, &lxd)]).is_empty());
    assert!(with(&[(GROUPS, "0::/lxc.monitor.web\n")]).is_empty());
    assert!(with(&[(GROUPS, "0::/user.slice/libpod-conmon-*1*.scope\n")]).is_empty());
    let node = mounts(&[("/", "/var/lib/kubelet/pods/*1*/volumes/x", "tmpfs")]);
    assert!(with(&[(GROUPS, "0::/system.slice/kubelet.service\n"), (MOUNTS, &node)]).is_empty());
    assert!(with(&[("/proc/sys/kernel/hostname", "firecracker")]).is_empty());
    assert!(with(&[("/proc/sys/kernel/hostname", "gvisor-docker-wsl2")]).is_empty());
    // A true Linux 4.4.0, and Microsoft's clouds.
    let old = "Linux version 4.4.0 (root@build) (gcc 5.4) #1 SMP Sun Jan 10 15:06:54 PST 2016";
    assert!(with(&[("/proc/version", old), (RELEASE, "4.4.0")]).is_empty());
    assert!(with(&[(RELEASE, "6.8.0-1020-azure")]).is_empty());
}

#[test]
fn every_kind_has_its_line_and_a_sign() {
    assert_eq!(KINDS.len(), SIGNS.len() + 1);
    assert!(KINDS.windows(2).all(|pair| pair[0].kind < pair[1].kind));
    for line in KINDS {
        let enclosure = line.kind.found("/".to_string()).expect("a line");
        let length = enclosure.reading.chars().count();
        assert!(length <= 100 && enclosure.reading.ends_with('.'), "{length}: {}", enclosure.reading);
        assert!(
            !line.hides.is_empty() && line.hides.iter().all(|text| !text.ends_with('.')),
            "{}",
            line.name
        );
        let is_told = SIGNS.iter().any(|(kind, _)| *kind == line.kind);
        assert!(is_told || line.kind == EnclosureKind::Container, "{}", line.name);
    }
}
