//! What leaves of a snapshot: a path without a class does not, and what a file holds is
//! treated by its class.

use model::vocabulary as ids;
use model::{BLANKED, Entry, PRINTOUT, Snapshot, TABLES};

use super::names::Kind;
use super::text::{Filter, Treatment, is_of_kernel};

/// What stands in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Class {
    /// Numbers, masks and words of the kernel's.
    Kernel,
    /// Words of the kernel's among those of an owner's.
    Words,
    /// What makers call processor, board, firmware, disk and kernel: it stays.
    Hardware,
    /// /proc/cpuinfo: the same by lines, and features of which the known ones stay.
    Processor,
    /// Lines `NAME VALUE` with a maker's words in some, and private folders in others.
    Lines,
    /// The host's own name.
    Host,
    /// Names of control groups.
    Groups,
    /// Firmware's tables.
    Tables,
    /// It does not leave.
    Dropped,
}

/// Files by path: `*` stands for any name, `#` behind a name for a number. The first that fits
/// counts.
const CLASSES: &[(&str, Class)] = &[
    ("/etc/hostname", Class::Host),
    ("/proc/sys/kernel/hostname", Class::Host),
    ("/proc/device-tree/ibm,partition-name", Class::Host),
    ("/proc/cpuinfo", Class::Processor),
    ("/proc/sys/kernel/osrelease", Class::Hardware),
    ("/proc/device-tree/model", Class::Hardware),
    ("/proc/device-tree/hypervisor/compatible", Class::Hardware),
    ("/sys/class/dmi/id/*", Class::Hardware),
    ("/sys/block/*/device/model", Class::Hardware),
    ("/sys/devices/system/edac/mc/mc#/*", Class::Hardware),
    ("/sys/devices/system/edac/mc/mc#/*/*", Class::Hardware),
    (TABLES, Class::Tables),
    ("/sys/firmware/acpi/tables/FACP", Class::Tables),
    ("/sys/firmware/dmi/tables/smbios_entry_point", Class::Dropped),
    (PRINTOUT, Class::Hardware),
    // Output of an archive's tools, with the names of its files.
    (ids::host::probe::ARCHIVE, Class::Lines),
    (ids::host::probe::DMIDECODE_SIGNS, Class::Kernel),
    (ids::host::probe::DIRECTORY, Class::Lines),
    (ids::disk::probe::DISK, Class::Lines),
    (ids::network::probe::NETWORK, Class::Lines),
    (ids::network::probe::NETWORK_REMOTE, Class::Lines),
    (ids::host::probe::AFFINITY, Class::Kernel),
    (ids::host::probe::ARCHITECTURE, Class::Kernel),
    (ids::host::probe::PAGE_BYTES, Class::Kernel),
    (ids::host::probe::FOLDERS_CPU, Class::Kernel),
    (ids::host::probe::FOLDERS_NODE, Class::Kernel),
    (BLANKED, Class::Dropped),
    ("probe:cpuid/#", Class::Kernel),
    ("/.dockerenv", Class::Words),
    ("/dev/kvm", Class::Kernel),
    ("/run/.containerenv", Class::Words),
    ("/run/systemd/container", Class::Words),
    ("/run/host/container-manager", Class::Words),
    ("/proc/self/cgroup", Class::Groups),
    ("/proc/self/cpuset", Class::Groups),
    ("/proc/self/mountinfo", Class::Groups),
    ("/proc/self/mounts", Class::Groups),
    ("/proc/mounts", Class::Groups),
    ("/proc/self/ns/*", Class::Kernel),
    ("/proc/self/status", Class::Kernel),
    ("/proc/self/sched", Class::Kernel),
    ("/proc/cmdline", Class::Words),
    ("/proc/version", Class::Words),
    ("/proc/meminfo", Class::Kernel),
    ("/proc/uptime", Class::Kernel),
    ("/proc/loadavg", Class::Kernel),
    ("/proc/swaps", Class::Words),
    ("/proc/buddyinfo", Class::Kernel),
    ("/proc/sysinfo", Class::Words),
    ("/proc/schedstat", Class::Kernel),
    ("/proc/stat", Class::Kernel),
    ("/proc/vmstat", Class::Kernel),
    ("/proc/bus/pci/devices", Class::Kernel),
    ("/proc/xen/capabilities", Class::Kernel),
    ("/proc/pressure/*", Class::Kernel),
    ("/proc/sys/kernel/random/boot_id", Class::Kernel),
    ("/proc/sys/kernel/*", Class::Words),
    ("/proc/sys/kernel/yama/ptrace_scope", Class::Kernel),
    ("/proc/sys/kernel/sched_domain/cpu#/domain#/*", Class::Kernel),
    ("/proc/sys/vm/*", Class::Kernel),
    ("/proc/sys/net/core/*", Class::Kernel),
    ("/proc/sys/net/ipv#/*", Class::Kernel),
    ("/sys/bus/pci/devices/*/vendor", Class::Kernel),
    ("/sys/kernel/debug/sched/*", Class::Kernel),
    ("/sys/kernel/debug/sched/domains/cpu#/domain#/*", Class::Kernel),
    ("/sys/kernel/mm/transparent_hugepage/*", Class::Kernel),
    ("/sys/kernel/mm/hugepages/*/*", Class::Kernel),
    ("/sys/kernel/mm/ksm/*", Class::Kernel),
    ("/sys/kernel/mm/numa/*", Class::Kernel),
    ("/sys/kernel/mm/lru_gen/*", Class::Kernel),
    ("/sys/hypervisor/type", Class::Kernel),
    ("/sys/hypervisor/properties/features", Class::Kernel),
    ("/sys/hypervisor/version/*", Class::Kernel),
    ("/sys/devices/cpu_core/cpus", Class::Kernel),
    ("/sys/devices/cpu_atom/cpus", Class::Kernel),
    ("/sys/devices/cpu_lowpower/cpus", Class::Kernel),
    ("/sys/devices/system/clocksource/clocksource#/*", Class::Kernel),
    ("/sys/devices/system/cpu/*", Class::Kernel),
    ("/sys/devices/system/cpu/*/*", Class::Kernel),
    ("/sys/devices/system/cpu/cpufreq/policy#/*", Class::Kernel),
    ("/sys/devices/system/cpu/cpu#/topology/*", Class::Kernel),
    ("/sys/devices/system/cpu/cpu#/cache/index#", Class::Kernel),
    ("/sys/devices/system/cpu/cpu#/cache/index#/*", Class::Kernel),
    ("/sys/devices/system/cpu/cpu#/cpuidle/state#/*", Class::Kernel),
    ("/sys/devices/system/cpu/cpu#/cpufreq/*", Class::Kernel),
    ("/sys/devices/system/node/*", Class::Kernel),
    ("/sys/devices/system/node/node#/*", Class::Kernel),
    ("/sys/devices/system/node/node#/hugepages/*/*", Class::Kernel),
    ("/sys/devices/system/node/node#/memory_side_cache/index#/*", Class::Kernel),
    ("/sys/devices/system/node/node#/access#/initiators/*", Class::Kernel),
    ("/sys/block/*/size", Class::Kernel),
    ("/sys/block/*/ro", Class::Kernel),
    ("/sys/block/*/removable", Class::Kernel),
    ("/sys/block/*/queue/*", Class::Kernel),
    ("/sys/class/net/*/speed", Class::Kernel),
    ("/sys/class/net/*/duplex", Class::Kernel),
    ("/sys/class/net/*/mtu", Class::Kernel),
    ("/sys/class/net/*/operstate", Class::Kernel),
    ("/sys/class/net/*/carrier", Class::Kernel),
    ("/sys/class/net/*/device/numa_node", Class::Kernel),
];

/// Where the kernel writes masks of CPUs and registers, and other programs nothing.
const MASKS: [&str; 5] =
    ["/sys/devices/system/", "/sys/bus/pci/", "/proc/bus/pci/", "/proc/self/status", "probe:cpuid/"];

/// Files of control groups, wherever these are mounted and whatever they are called.
const GROUP_FILES: [&str; 8] = ["cpu.", "cpuset.", "memory.", "io.", "pids.", "blkio.", "cpus", "mems"];

/// What is known of a path; `None`: it has no class.
pub fn class_of(path: &str) -> Option<Class> {
    let listed = CLASSES.iter().find(|(pattern, _)| fits(pattern, path)).map(|(_, class)| *class);
    let of_group = || {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is = |own: &str| if own.ends_with('.') { name.starts_with(own) } else { name == own };
        (path.starts_with('/') && GROUP_FILES.iter().any(|own| is(own))).then_some(Class::Kernel)
    };
    listed.or_else(of_group)
}

fn fits(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let all = pattern.split('/').all(|wanted| {
        parts.next().is_some_and(|part| match wanted.strip_suffix('#') {
            Some(lead) => part.strip_prefix(lead).is_some_and(|number| number.parse::<u32>().is_ok()),
            None => wanted == "*" || wanted == part,
        })
    });
    all && parts.next().is_none()
}

/// Fields of /proc/cpuinfo whose words are a maker's, and those that list features.
const MAKERS: [&str; 9] =
    ["model name", "vendor_id", "hardware", "processor", "cpu", "machine", "platform", "model", "uarch"];
const FEATURES: [&str; 5] = ["flags", "features", "bugs", "vmx flags", "power management"];

/// Fields of probes whose words are a maker's, and those that name a folder or a file.
const MODELS: [&str; 3] = ["model", "cpu_model", "firmware_rev"];
const FOLDERS: [&str; 7] = ["path", "mount", "directory", "upper", "root", "backing_file", "trim_timer"];

/// Folders that hosts have anyway.
const ORDINARY: [&str; 9] = ["/", "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/mnt", "/var", "none"];

/// A user's folder or file, replaced as a whole.
pub fn folder(filter: &mut Filter, path: &str) -> String {
    if ORDINARY.contains(&path) || path.starts_with("/dev/") {
        filter.text(path, Treatment::Words(Kind::Path))
    } else {
        filter.whole(Kind::Path, path)
    }
}

/// Sees what must be known of all snapshots before the first name is given.
pub fn meet(filter: &mut Filter, snapshot: &Snapshot) {
    for (path, entry) in &snapshot.entries {
        filter.names.avoid(path);
        if let Entry::Text(text) | Entry::Link(text) = entry {
            filter.names.avoid(text);
        }
        if path.starts_with("/sys/") {
            filter.meet(path.split('/').filter(|name| is_of_kernel(name)));
        }
    }
}

/// Learns what makers say, and who the host is, before anything is replaced.
pub fn learn(filter: &mut Filter, snapshot: &Snapshot) {
    for (path, entry) in &snapshot.entries {
        let Entry::Text(text) = entry else { continue };
        match class_of(path) {
            Some(Class::Host) => drop(filter.whole(Kind::Host, text)),
            Some(Class::Hardware) => filter.keep(text),
            Some(Class::Processor) => text.lines().filter_map(maker).for_each(|words| filter.keep(words)),
            Some(Class::Lines) => {
                for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
                    match last(name) {
                        name if MODELS.contains(&name) => filter.keep(value),
                        name if FOLDERS.contains(&name) => drop(folder(filter, value)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn field(line: &str) -> Option<(String, &str)> {
    line.split_once(':').map(|(name, value)| (name.trim().to_lowercase(), value))
}

fn maker(line: &str) -> Option<&str> {
    field(line).filter(|(name, _)| MAKERS.contains(&name.as_str())).map(|(_, value)| value)
}

/// The snapshot as it leaves, and how many entries do not.
pub fn redacted(filter: &mut Filter, snapshot: &Snapshot) -> (Snapshot, usize) {
    let (mut left, mut dropped) = (Snapshot::default(), 0);
    for (path, entry) in &snapshot.entries {
        let class = class_of(path).unwrap_or(Class::Dropped);
        let kind = match () {
            () if class == Class::Groups || !CLASSES.iter().any(|(pattern, _)| fits(pattern, path)) => {
                Kind::Group
            }
            () if path.starts_with("/sys/block/") || path.starts_with("/sys/class/net/") => Kind::Device,
            () => Kind::Redacted,
        };
        if class == Class::Dropped {
            dropped += 1;
            continue;
        }
        let entry = match entry {
            Entry::Text(text) => Entry::Text(content(filter, class, way(path, kind), text)),
            Entry::Bytes(bytes) if class == Class::Tables => Entry::Bytes(covered(filter, bytes)),
            Entry::Bytes(bytes) => {
                Entry::Text(content(filter, class, way(path, kind), &String::from_utf8_lossy(bytes)))
            }
            Entry::Link(target) => Entry::Link(filter.text(target, called(path, kind))),
            Entry::Failed(error) => Entry::Failed(*error),
        };
        left.entries.insert(filter.text(path, called(path, kind)), entry);
    }
    (left, dropped)
}

/// How the kernel writes into this file.
fn way(path: &str, kind: Kind) -> Treatment {
    let has_masks = MASKS.iter().any(|masks| path.starts_with(masks));
    if has_masks { Treatment::Hex(kind) } else { Treatment::Counts(kind) }
}

/// How the name of this file is redacted; names of control groups can be free text.
fn called(path: &str, kind: Kind) -> Treatment {
    if kind == Kind::Group { Treatment::Words(kind) } else { way(path, kind) }
}

fn content(filter: &mut Filter, class: Class, way: Treatment, text: &str) -> String {
    match class {
        Class::Host => filter.whole(Kind::Host, text),
        Class::Hardware | Class::Tables => filter.text(text, Treatment::Hardware),
        Class::Processor => text.split_inclusive('\n').map(|line| processor(filter, line)).collect(),
        Class::Lines => text.split_inclusive('\n').map(|line| of_probe(filter, line)).collect(),
        Class::Kernel => filter.text(text, way),
        Class::Words => filter.text(text, Treatment::Words(Kind::Redacted)),
        Class::Groups | Class::Dropped => filter.text(text, Treatment::Words(Kind::Group)),
    }
}

fn processor(filter: &mut Filter, line: &str) -> String {
    let Some((name, value)) = field(line) else { return filter.text(line, Treatment::Words(Kind::Redacted)) };
    let lead = &line[..line.len() - value.len()];
    let lead = filter.text(lead, Treatment::Words(Kind::Redacted));
    let value = match name.as_str() {
        name if MAKERS.contains(&name) => filter.text(value, Treatment::Hardware),
        name if FEATURES.contains(&name) => {
            let known: Vec<&str> = value.split_whitespace().filter(|word| filter.is_known(word)).collect();
            format!(" {}{}", known.join(" "), if value.ends_with('\n') { "\n" } else { "" })
        }
        _ => filter.text(value, Treatment::Words(Kind::Redacted)),
    };
    lead + &value
}

fn of_probe(filter: &mut Filter, line: &str) -> String {
    let end = line.trim_end().len();
    let Some((name, value)) = line[..end].split_once(' ') else {
        return filter.text(line, Treatment::Words(Kind::Redacted));
    };
    let value = match last(name) {
        own if MODELS.contains(&own) => filter.text(value, Treatment::Hardware),
        own if FOLDERS.contains(&own) => folder(filter, value),
        _ => filter.text(value, Treatment::Words(Kind::Device)),
    };
    format!("{} {value}{}", filter.text(name, Treatment::Words(Kind::Device)), &line[end..])
}

/// Tables with `x` for the letters of what is private.
fn covered(filter: &mut Filter, bytes: &[u8]) -> Vec<u8> {
    let mut covered = bytes.to_vec();
    let mut from = 0;
    for at in 0..=bytes.len() {
        if bytes.get(at).is_some_and(|byte| (0x20..0x7f).contains(byte)) {
            continue;
        }
        if let Ok(text) = std::str::from_utf8(&bytes[from.min(at)..at])
            && text.len() >= 4
            && filter.text(text, Treatment::Hardware) != text
        {
            covered[from..at].fill(b'x');
        }
        from = at + 1;
    }
    covered
}
