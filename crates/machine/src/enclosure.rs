//! What encloses this machine's processes: containers, sandboxes, small virtual machines. Several
//! can hold at once: a Kubernetes pod in a Firecracker guest.
//!
//! A kind is one line of [`KINDS`] (what it hides from a measurement) and one of [`SIGNS`] (what
//! reports it). No name is given by a sign that an image or a host can carry by itself: Docker's
//! marker file also stands in virtual machines whose disk was made from an image.

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

use super::cgroup;
use super::cpuid;
use super::cpuinfo::CpuInfo;
use super::dmi::Dmi;
use super::virt::Hypervisor;

/// A container, sandbox or virtual machine around this process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Enclosure {
    pub kind: EnclosureKind,
    /// What people call it.
    pub name: &'static str,
    /// The evidence: a path, and what it says.
    pub sign: String,
    /// Whether figures are its own, not those of a Linux kernel on this hardware.
    pub changes_figures: bool,
    /// Where this runs, and what it means for figures.
    pub reading: String,
    /// What cannot be measured or seen from inside, in words that need no sentence around them.
    pub hides: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnclosureKind {
    Kubernetes,
    Docker,
    Podman,
    Lxc,
    SystemdNspawn,
    Container,
    Lxcfs,
    Gvisor,
    Wsl1,
    UserModeLinux,
    Wsl2,
    Firecracker,
    NestedGuest,
    GuestWithVirtualization,
}

/// A row of the table: what a kind means for measurements in it.
struct Kind {
    kind: EnclosureKind,
    name: &'static str,
    /// As `This runs` goes on.
    place: &'static str,
    changes_figures: bool,
    reading: &'static str,
    hides: &'static [&'static str],
}

const OTHER_PROCESSES: &str = "processes outside: their work shows only in /proc/stat and in the load";
const GROUPS_ABOVE: &str = "limits of control groups above the container's own";
const CONTAINER: &[&str] = &[OTHER_PROCESSES, GROUPS_ABOVE];

const fn container_kind(kind: EnclosureKind, name: &'static str, place: &'static str) -> Kind {
    let reading = "Other work on its host shows only in /proc/stat.";
    Kind { kind, name, place, changes_figures: false, reading, hides: CONTAINER }
}

/// The kinds, the innermost first.
const KINDS: &[Kind] = &[
    Kind {
        kind: EnclosureKind::Kubernetes,
        name: "Kubernetes pod",
        place: "in a `Kubernetes` pod",
        changes_figures: false,
        reading: "Other pods compete for CPUs, caches and disks unseen.",
        hides: &[OTHER_PROCESSES, "limits of the pod and of its class (kubepods), above the container's own"],
    },
    container_kind(EnclosureKind::Docker, "Docker container", "in a `Docker` container"),
    container_kind(EnclosureKind::Podman, "Podman container", "in a `Podman` container"),
    Kind {
        reading: "It shares kernel, caches and disks with its host.",
        ..container_kind(EnclosureKind::Lxc, "LXC container", "in an `LXC` container")
    },
    container_kind(
        EnclosureKind::SystemdNspawn,
        "systemd-nspawn container",
        "in a `systemd-nspawn` container",
    ),
    container_kind(EnclosureKind::Container, "container", "in a `container`"),
    // lxcfs(1): it shows each container files of its own, made from that container's control group.
    Kind {
        kind: EnclosureKind::Lxcfs,
        name: "lxcfs",
        place: "under `lxcfs`",
        changes_figures: true,
        reading: "The /proc files of lxcfs hide other work on the host.",
        hides: &[
            "the host's CPUs, memory, load, uptime and busy time: lxcfs shows the container's",
            "other work on the host, also in /proc/stat where lxcfs provides it",
        ],
    },
    // gvisor.dev: the Sentry answers system calls, the Gofer opens files; sched_setaffinity and
    // mlock are stubs, perf_event_open is missing (Compatibility, Linux/amd64).
    Kind {
        kind: EnclosureKind::Gvisor,
        name: "gVisor sandbox",
        place: "in a `gVisor` sandbox",
        changes_figures: true,
        reading: "Figures of kernel, scheduler and disk are gVisor's own.",
        hides: &[
            "the host's kernel: calls, switches, faults and files measure gVisor",
            "performance counters, and the topology of CPUs and caches in /sys",
            "where a task runs: gVisor accepts an affinity but does not apply it",
            "other work, pressure, steal",
        ],
    },
    // learn.microsoft.com/windows/wsl: WSL 1 translates system calls to the Windows kernel.
    Kind {
        kind: EnclosureKind::Wsl1,
        name: "WSL 1",
        place: "under `WSL 1`",
        changes_figures: true,
        reading: "Windows does the kernel's work: calls and files have Windows' costs.",
        hides: &[
            "Linux's scheduler, page faults, file systems and network: Windows provides them",
            "control groups, pressure, performance counters, and the topology in /sys",
            "work of Windows programs",
        ],
    },
    // docs.kernel.org/virt/uml: a kernel that runs as processes of its host.
    Kind {
        kind: EnclosureKind::UserModeLinux,
        name: "User-Mode Linux",
        place: "under `User-Mode Linux`",
        changes_figures: true,
        reading: "Each call and page fault costs context switches on the host.",
        hides: &[
            "the host's kernel: a tracing process handles calls, faults and switches",
            "performance counters, caches, nodes, and all but one CPU",
            "other work on the host and the time it takes (steal)",
        ],
    },
    // learn.microsoft.com/windows/wsl: a distribution is a container in a managed Hyper-V guest,
    // whose memory grows and shrinks (vmmem), and which sees Windows' disks through 9P.
    Kind {
        kind: EnclosureKind::Wsl2,
        name: "WSL 2",
        place: "under `WSL 2`",
        changes_figures: false,
        reading: "Windows takes memory back, and the clock jumps after a sleep.",
        hides: &[
            "work of Windows programs, and of other distributions in the same guest",
            "memory that Windows has not yet provided (vmmem): first touches are slower",
            "Windows' disks below /mnt: their figures measure the 9P protocol",
            "time while the computer sleeps",
        ],
    },
    // github.com/firecracker-microvm/firecracker, docs/design.md: virtio devices only, a rate
    // limiter in each block and network device; no DMI tables and no virtual PMU.
    Kind {
        kind: EnclosureKind::Firecracker,
        name: "Firecracker microVM",
        place: "in a `Firecracker` microVM",
        changes_figures: false,
        reading: "Rate limits of disk and network are not seen from here.",
        hides: &[
            "board, firmware and memory modules: there are no DMI tables",
            "performance counters, unless its host passes them through",
            "rate limiters of its block and network devices: they show only as a ceiling of a figure",
        ],
    },
    Kind {
        kind: EnclosureKind::NestedGuest,
        name: "nested guest",
        place: "in a `nested guest`",
        changes_figures: true,
        reading: "Timers, interrupts and I/O pass through two hypervisors.",
        hides: &[
            "time that the outer host takes from the inner one: steal counts only the inner host's",
            "the outer host's page tables, which lengthen page walks",
            "the cost of an exit on hardware: a nested exit costs several times as much",
        ],
    },
    Kind {
        kind: EnclosureKind::GuestWithVirtualization,
        name: "guest that can run guests",
        place: "in a guest that can run `nested guests`",
        changes_figures: false,
        reading: "A nested exit costs several times as much.",
        hides: &["whether its own host is a guest: no file of an x86 or Arm guest reports it"],
    },
];

impl EnclosureKind {
    fn found(self, sign: String) -> Option<Enclosure> {
        let line = KINDS.iter().find(|line| line.kind == self)?;
        Some(Enclosure {
            kind: self,
            name: line.name,
            sign,
            changes_figures: line.changes_figures,
            reading: format!("This runs {}. {}", line.place, line.reading),
            hides: line.hides,
        })
    }
}

/// What the signs are looked for in.
struct Signs<'a> {
    snapshot: &'a Snapshot,
    info: &'a CpuInfo<'a>,
    dmi: &'a Dmi,
    hypervisor: &'a Hypervisor,
    /// Parts of the paths of this process's control groups, each with the part below it.
    group_parts: Vec<(String, Option<String>)>,
}

/// The files that engines mount into each container, so that its names and addresses are its own.
const ETC: &[&str] = &["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

type Sign = fn(&Signs) -> Option<String>;

/// Evidence of a kind by itself; containers of unknown make are found by elimination.
const SIGNS: &[(EnclosureKind, Sign)] = &[
    (EnclosureKind::Kubernetes, kubernetes),
    (EnclosureKind::Docker, docker),
    (EnclosureKind::Podman, podman),
    (EnclosureKind::Lxc, lxc),
    (EnclosureKind::SystemdNspawn, nspawn),
    (EnclosureKind::Lxcfs, lxcfs),
    (EnclosureKind::Gvisor, gvisor),
    (EnclosureKind::Wsl1, wsl_1),
    (EnclosureKind::UserModeLinux, user_mode_linux),
    (EnclosureKind::Wsl2, wsl_2),
    (EnclosureKind::Firecracker, firecracker),
    (EnclosureKind::NestedGuest, nested),
    (EnclosureKind::GuestWithVirtualization, with_virtualization),
];

pub(super) fn parse(
    snapshot: &Snapshot,
    info: &CpuInfo,
    dmi: &Dmi,
    hypervisor: &Hypervisor,
) -> Vec<Enclosure> {
    let mut group_parts = Vec::new();
    for (_, path) in cgroup::memberships(snapshot) {
        let mut parts = path.split('/').filter(|part| !part.is_empty()).map(str::to_string).peekable();
        while let Some(part) = parts.next() {
            group_parts.push((part, parts.peek().cloned()));
        }
    }
    let signs = Signs { snapshot, info, dmi, hypervisor, group_parts };
    let mut found: Vec<Enclosure> =
        SIGNS.iter().filter_map(|(kind, sign)| kind.found(sign(&signs)?)).collect();
    // These have namespaces of their own, too: they say all that a container of unknown make would.
    let is_named = found.iter().any(|enclosure| {
        enclosure.kind < EnclosureKind::Container
            || matches!(enclosure.kind, EnclosureKind::Gvisor | EnclosureKind::Wsl1 | EnclosureKind::Wsl2)
    });
    if !is_named {
        found.extend(container(&signs).and_then(|sign| EnclosureKind::Container.found(sign)));
    }
    found.sort_by_key(|enclosure| enclosure.kind);
    found
}

impl Signs<'_> {
    /// The first part of a control group's path that `is` one, with the part below it.
    fn group(&self, is: impl Fn(&str, Option<&str>) -> bool) -> Option<String> {
        let found = self.group_parts.iter().any(|(part, below)| is(part, below.as_deref()));
        found.then(|| "/proc/self/cgroup".to_string())
    }

    /// Lines of /proc/self/mountinfo: (root, mount point, type).
    fn mounts(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let table = self.snapshot.text("/proc/self/mountinfo").unwrap_or("");
        table.lines().filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut left = left.split(' ').skip(3);
            Some((left.next()?, left.next()?, right.split(' ').next()?))
        })
    }

    fn is_mounted(&self, point: &str) -> bool {
        self.mounts().any(|(_, at, _)| at == point)
    }

    /// The mount point of which something below this folder of an engine was mounted.
    fn mounted_from(&self, folder: &str) -> Option<String> {
        let (_, point, _) =
            self.mounts().find(|(root, point, _)| root.contains(folder) && ETC.contains(point))?;
        Some(format!("/proc/self/mountinfo: {point} comes from {}", folder.trim_matches('/')))
    }

    /// What systemd inside of a container, or the manager outside of it, says about that
    /// (systemd.io/CONTAINER_INTERFACE).
    fn manager(&self) -> Option<(&'static str, &str)> {
        let files = ["/run/host/container-manager", "/run/systemd/container"];
        files.into_iter().find_map(|path| {
            let word = self.snapshot.text(path)?.lines().next().filter(|word| !word.is_empty())?;
            Some((path, word))
        })
    }

    fn manager_is(&self, name: &str) -> Option<String> {
        let (path, word) = self.manager()?;
        (word == name).then(|| format!("{path}: {name}"))
    }

    fn release(&self) -> &str {
        self.snapshot.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| {
            let version = self.snapshot.text("/proc/version").unwrap_or("");
            version.strip_prefix("Linux version ").and_then(|rest| rest.split(' ').next()).unwrap_or("")
        })
    }
}

/// kubernetes.io, "Access the Kubernetes API from a Pod": the token's folder; the kubelet mounts
/// /etc/hosts, and puts pods below `kubepods`.
fn kubernetes(signs: &Signs) -> Option<String> {
    let token = ["/run/secrets", "/var/run/secrets"].into_iter().find_map(|folder| {
        let point = format!("{folder}/kubernetes.io/serviceaccount");
        signs.is_mounted(&point).then(|| format!("/proc/self/mountinfo: {point}"))
    });
    signs
        .group(|part, below| part.starts_with("kubepods") && below.is_some())
        .map(|path| format!("{path}: kubepods"))
        .or(token)
        .or_else(|| signs.mounted_from("/kubelet/pods/"))
}

/// Docker mounts three files of /etc from a folder of the container's. Its marker alone also
/// stands in virtual machines that were made from an image; two of the mounts beside it do not.
fn docker(signs: &Signs) -> Option<String> {
    let is_scope = |part: &str| part.starts_with("docker-") && part.ends_with(".scope");
    let group = signs.group(|part, below| part == "docker" && below.is_some() || is_scope(part));
    let marker = signs.snapshot.get("/.dockerenv").is_some()
        && signs.is_mounted("/etc/hosts")
        && signs.is_mounted("/etc/hostname");
    group
        .map(|path| format!("{path}: docker"))
        .or_else(|| signs.mounted_from("/docker/containers/"))
        .or_else(|| marker.then(|| "/.dockerenv, and /etc/hosts is a mount".to_string()))
        .or_else(|| signs.manager_is("docker"))
}

/// podman-run(1): /run/.containerenv names the engine. CRI-O mounts one, too, without a name.
fn podman(signs: &Signs) -> Option<String> {
    let marker = signs.snapshot.text("/run/.containerenv").unwrap_or("");
    let named = marker.lines().any(|line| line.starts_with("engine=\"podman"));
    signs
        .group(|part, _| part.starts_with("libpod-") && !part.starts_with("libpod-conmon-"))
        .map(|path| format!("{path}: libpod"))
        .or_else(|| named.then(|| "/run/.containerenv: engine podman".to_string()))
        .or_else(|| signs.manager_is("podman"))
}

/// lxc.container.conf(5), `lxc.cgroup.dir.container`: the payload's group; its monitor on the host
/// has another.
fn lxc(signs: &Signs) -> Option<String> {
    let point = ["/dev/.lxd-mounts", "/dev/.incus-mounts"].into_iter().find(|point| signs.is_mounted(point));
    signs
        .group(|part, below| {
            part == "lxc" && below.is_some() || part.starts_with("lxc.payload") || part == ".lxc"
        })
        .map(|path| format!("{path}: lxc"))
        .or_else(|| point.map(|point| format!("/proc/self/mountinfo: {point}")))
        .or_else(|| signs.manager_is("lxc").or_else(|| signs.manager_is("lxc-libvirt")))
}

fn nspawn(signs: &Signs) -> Option<String> {
    signs.manager_is("systemd-nspawn")
}

/// The kernel gives the first PID namespace this number on every machine (`PROC_PID_INIT_INO` in
/// linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

fn container(signs: &Signs) -> Option<String> {
    let namespace = signs.snapshot.text("/proc/self/ns/pid").filter(|link| *link != FIRST_PID_NAMESPACE);
    let manager = signs.manager().filter(|(_, word)| *word != "wsl");
    manager
        .map(|(path, _)| path.to_string())
        .or_else(|| namespace.map(|_| "/proc/self/ns/pid: a PID namespace of its own".to_string()))
}

/// Mounts of single files; on a host lxcfs is mounted as a whole, and elsewhere.
fn lxcfs(signs: &Signs) -> Option<String> {
    let inside = |point: &str| point.starts_with("/proc/") || point.starts_with("/sys/");
    let points = signs.mounts().filter(|(_, point, kind)| *kind == "fuse.lxcfs" && inside(point));
    let mut points: Vec<&str> = points.map(|(_, point, _)| point).collect();
    points.sort_unstable();
    points.dedup();
    (!points.is_empty()).then(|| format!("/proc/self/mountinfo: fuse.lxcfs at {}", points.join(", ")))
}

/// google/gvisor, pkg/sentry/fsimpl/proc/version.go and pkg/sentry/kernel/version: a fixed text
/// without a builder or compiler; releases since 2026 say `-gvisor`.
fn gvisor(signs: &Signs) -> Option<String> {
    const BUILT: &str = "#1 SMP Sun Jan 10 15:06:54 PST 2016";
    let version = signs.snapshot.text("/proc/version").unwrap_or("");
    let fixed = version.ends_with(BUILT) && !version.contains('(');
    (fixed || signs.release().ends_with("-gvisor")).then(|| "/proc/version: gVisor's fixed text".to_string())
}

/// microsoft/WSL issue 423: `Microsoft` in the release; WSL 2's kernel is called
/// `microsoft-standard`, in small letters.
fn wsl_1(signs: &Signs) -> Option<String> {
    signs.release().ends_with("-Microsoft").then(|| "/proc/sys/kernel/osrelease: -Microsoft".to_string())
}

fn wsl_2(signs: &Signs) -> Option<String> {
    let words = ["microsoft-standard", "WSL2"];
    let word = words.into_iter().find(|word| signs.release().contains(word))?;
    Some(format!("/proc/sys/kernel/osrelease: {word}"))
}

fn user_mode_linux(signs: &Signs) -> Option<String> {
    super::virt::is_user_mode_linux(signs.info)
        .then(|| "/proc/cpuinfo: vendor_id User Mode Linux".to_string())
}

/// firecracker, src/acpi-tables: the OEM of its ACPI tables, which root can read. The name of the
/// host proves nothing.
fn firecracker(signs: &Signs) -> Option<String> {
    let table = "/sys/firmware/acpi/tables/FACP";
    // An ACPI table's header has its OEM's six letters behind signature, length and two bytes.
    let header = signs.snapshot.lossy(table);
    let by_table = header.is_some_and(|header| header.starts_with("FACP") && header.contains("FIRECK"));
    let by_name = || signs.dmi.product.as_deref().is_some_and(|product| product.contains("Firecracker"));
    if by_table {
        Some(format!("{table}: OEM FIRECK"))
    } else {
        by_name().then(|| "/sys/class/dmi/id/product_name: Firecracker".to_string())
    }
}

/// s390 lists all levels (STSI 3.2.2, shown in /proc/sysinfo). A Xen PV guest leaves cpuid to the
/// hypervisor below Xen, which thereby shows (systemd, src/basic/virt.c).
fn nested(signs: &Signs) -> Option<String> {
    let sysinfo = signs.snapshot.text("/proc/sysinfo").unwrap_or("");
    let levels = sysinfo.lines().filter(|line| line.starts_with("VM") && line.contains("Control Program:"));
    if levels.count() > 1 {
        return Some("/proc/sysinfo: several control programs".to_string());
    }
    let is_xen = signs.snapshot.text("/sys/hypervisor/type") == Some("xen");
    let below = cpuid::hypervisor_name(signs.snapshot).filter(|name| is_xen && *name != "xen")?;
    Some(format!("/sys/hypervisor/type: xen, and cpuid: {below}"))
}

fn with_virtualization(signs: &Signs) -> Option<String> {
    if !matches!(signs.hypervisor, Hypervisor::Guest(_)) {
        return None;
    }
    let flags = signs.info.x86_flags().unwrap_or_default();
    let flag = ["vmx", "svm"].into_iter().find(|flag| flags.contains(flag));
    flag.map(|flag| format!("/proc/cpuinfo: flag {flag}"))
        .or_else(|| signs.snapshot.get("/dev/kvm").map(|_| "/dev/kvm".to_string()))
}

#[cfg(test)]
mod tests;
