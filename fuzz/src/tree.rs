//! Trees of /proc and /sys in a form that mutates well: real paths by number, contents as they are.

use ::machine::Machine;
use model::{Entry, Snapshot};
use snapshot::compact;

use super::machine;

/// Files that the parsers look at; `#` stands for a number.
pub const PATHS: [&str; 118] = [
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
    "/proc/cmdline",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/schedstat",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/proc/self/cgroup",
    "/proc/self/cpuset",
    "/proc/self/mountinfo",
    "/proc/self/mounts",
    "/proc/mounts",
    "/proc/self/status",
    "/proc/self/sched",
    "/proc/sysinfo",
    "/proc/bus/pci/devices",
    "/proc/device-tree/model",
    "/proc/device-tree/hypervisor/compatible",
    "/proc/device-tree/ibm,partition-name",
    "/proc/sys/kernel/arch",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/sched_autogroup_enabled",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/sched_domain/cpu#/domain#/name",
    "/proc/sys/kernel/sched_domain/cpu#/domain#/flags",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/swappiness",
    "/etc/hostname",
    "/sys/hypervisor/type",
    "/sys/firmware/dmi/tables/DMI",
    "/sys/firmware/dmi/tables/smbios_entry_point",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/product_version",
    "/sys/class/dmi/id/board_vendor",
    "/sys/class/dmi/id/board_name",
    "/sys/class/dmi/id/bios_vendor",
    "/sys/class/dmi/id/bios_version",
    "/sys/class/dmi/id/bios_date",
    "/sys/class/dmi/id/chassis_type",
    "/sys/devices/virtual/dmi/id/product_name",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-#kB/nr_hugepages",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/debug/sched/features",
    "/sys/kernel/debug/sched/domains/cpu#/domain#/name",
    "/sys/kernel/debug/sched/domains/cpu#/domain#/flags",
    "/sys/bus/pci/devices/0000:00:0#.0/vendor",
    "/sys/devices/cpu_core/cpus",
    "/sys/devices/cpu_atom/cpus",
    "/sys/devices/cpu_lowpower/cpus",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpufreq/policy#/affected_cpus",
    "/sys/devices/system/cpu/cpufreq/policy#/scaling_driver",
    "/sys/devices/system/cpu/cpufreq/policy#/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/policy#/scaling_min_freq",
    "/sys/devices/system/cpu/cpufreq/policy#/scaling_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy#/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy#/base_frequency",
    "/sys/devices/system/cpu/cpufreq/policy#/energy_performance_preference",
    "/sys/devices/system/cpu/vulnerabilities/meltdown",
    "/sys/devices/system/cpu/cpu#/online",
    "/sys/devices/system/cpu/cpu#/cpu_capacity",
    "/sys/devices/system/cpu/cpu#/node#",
    "/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu#/topology/core_cpus",
    "/sys/devices/system/cpu/cpu#/topology/core_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/thread_siblings",
    "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpu#/topology/package_cpus",
    "/sys/devices/system/cpu/cpu#/topology/core_siblings_list",
    "/sys/devices/system/cpu/cpu#/topology/die_cpus",
    "/sys/devices/system/cpu/cpu#/topology/cluster_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu#/topology/die_id",
    "/sys/devices/system/cpu/cpu#/topology/core_id",
    "/sys/devices/system/cpu/cpu#/cache/index#",
    "/sys/devices/system/cpu/cpu#/cache/index#/level",
    "/sys/devices/system/cpu/cpu#/cache/index#/type",
    "/sys/devices/system/cpu/cpu#/cache/index#/size",
    "/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_map",
    "/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_list",
    "/sys/devices/system/cpu/cpu#/cache/index#/ways_of_associativity",
    "/sys/devices/system/cpu/cpu#/cache/index#/coherency_line_size",
    "/sys/devices/system/cpu/cpu#/cpuidle",
    "/sys/devices/system/cpu/cpu#/cpuidle/state#/name",
    "/sys/devices/system/cpu/cpu#/cpuidle/state#/latency",
    "/sys/devices/system/node/node#/cpumap",
    "/sys/devices/system/node/node#/cpulist",
    "/sys/devices/system/node/node#/cpu#",
    "/sys/devices/system/node/node#/meminfo",
    "/sys/devices/system/node/node#/distance",
    "/sys/devices/system/node/node#/memory_side_cache/index#/size",
    "/sys/devices/system/node/node#/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/devices/system/node/node#/access0/initiators/node#",
    "/sys/devices/system/node/node#/access0/initiators/read_latency",
    "probe:cpuid/#",
    "probe:affinity",
    "probe:folders/cpu",
    "probe:folders/node",
    "probe:page_bytes",
];

/// Entries apart by the ASCII record separator, each a path, a NUL and a content. A path is itself,
/// or `@N.a.b`: the N-th of [`PATHS`] with the numbers a and b in it. A content is text, but for
/// three marks: `\x02` and bytes, `\x03` and a link's target (a path as above), `\x04` and as many
/// bytes as the errno says.
pub fn machine_tree(data: &[u8]) {
    let entries = data.split(|byte| *byte == SEPARATOR).take(600).filter_map(entry);
    let snapshot = Snapshot { entries: entries.collect() };
    machine::check_all(&snapshot);
    shortened(&snapshot);
}

const SEPARATOR: u8 = 0x1e;

fn entry(record: &[u8]) -> Option<(String, Entry)> {
    let at = record.iter().position(|byte| *byte == 0)?;
    let content = &record[at + 1..];
    let entry = match content {
        [2, bytes @ ..] => Entry::Bytes(bytes.to_vec()),
        [3, target @ ..] => Entry::Link(path(target)),
        [4, rest @ ..] => Entry::Failed(i32::try_from(rest.len()).unwrap_or(i32::MAX)),
        // As the reader does it.
        other => match String::from_utf8(other.to_vec()) {
            Ok(text) => Entry::Text(text),
            Err(error) => Entry::Bytes(error.into_bytes()),
        },
    };
    Some((path(&record[..at]), entry))
}

fn path(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let Some(numbers) = text.strip_prefix('@') else { return text.into_owned() };
    let mut numbers = numbers.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let pattern = PATHS[numbers.next().unwrap_or(0) as usize % PATHS.len()];
    let filled = pattern.chars().map(|c| match c {
        '#' => numbers.next().unwrap_or(0).to_string(),
        c => c.to_string(),
    });
    filled.collect()
}

/// A snapshot in this form, for seeds.
pub fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, entry) in &snapshot.entries {
        if !text.is_empty() {
            text.push(SEPARATOR);
        }
        text.extend(short(path).into_bytes());
        text.push(0);
        match entry {
            Entry::Text(content) => text.extend(content.as_bytes()),
            Entry::Bytes(bytes) => text.extend([&[2], bytes.as_slice()].concat()),
            Entry::Link(target) => text.extend([&[3], short(target).as_bytes()].concat()),
            Entry::Failed(errno) => text.resize(text.len() + 1 + usize::try_from(*errno).unwrap_or(0), 4),
        }
    }
    text
}

/// A path by its number, where it has one.
fn short(path: &str) -> String {
    let numbers = |pattern: &str| -> Option<Vec<String>> {
        let mut parts = pattern.split('#');
        let mut rest = path.strip_prefix(parts.next()?)?;
        let mut numbers = Vec::new();
        for part in parts {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            numbers.push(rest[..end].to_string());
            rest = rest[end..].strip_prefix(part)?;
        }
        let plain = |number: &String| number.parse::<u32>().is_ok_and(|n| n.to_string() == *number);
        (rest.is_empty() && numbers.iter().all(plain)).then_some(numbers)
    };
    let found = PATHS.iter().enumerate().find_map(|(at, pattern)| Some((at, numbers(pattern)?)));
    found.map_or(path.to_string(), |(at, numbers)| [vec![format!("@{at}")], numbers].concat().join("."))
}

/// What the reader leaves out of long files changes nothing of what they say.
fn shortened(snapshot: &Snapshot) {
    let replaced = |path: &str, shorten: &dyn Fn(&str) -> String| {
        let mut other = snapshot.clone();
        match other.entries.get_mut(path) {
            Some(Entry::Text(text)) => *text = shorten(text),
            _ => return None,
        }
        Some(Machine::from(&other))
    };
    let whole = Machine::from(snapshot);
    if let Some(machine) = replaced("/proc/schedstat", &compact::schedstat) {
        assert_eq!(machine.kernel.domains, whole.kernel.domains, "domains of a shortened schedstat");
    }
    for path in ["/proc/self/mountinfo", "/proc/self/mounts", "/proc/mounts"] {
        if let Some(machine) = replaced(path, &compact::mounts) {
            assert_eq!(machine.limits, whole.limits, "limits by shortened mounts");
        }
    }
    if snapshot.text("/proc/cpuinfo").is_some_and(regular)
        && let Some(machine) = replaced("/proc/cpuinfo", &compact::cpuinfo)
    {
        assert!(machine == whole, "the machine of a shortened cpuinfo");
    }
}

/// Whether a text is as kernels write it: a block a CPU that begins with its number, every key once
/// in a block.
fn regular(text: &str) -> bool {
    let mut numbers = std::collections::BTreeSet::new();
    text.trim().split("\n\n").all(|block| {
        let lines: Option<Vec<(&str, &str)>> = block.lines().map(|line| line.split_once(':')).collect();
        let Some(lines) = lines else { return false };
        let keys: Vec<&str> = lines.iter().map(|(key, _)| key.trim()).collect();
        let once = keys.iter().collect::<std::collections::BTreeSet<_>>().len() == keys.len();
        let number = lines.first().and_then(|(_, number)| number.trim().parse::<u32>().ok());
        once && keys.first() == Some(&"processor")
            && keys.iter().all(|key| !key.is_empty() && !key.contains('\0'))
            && number.is_some_and(|number| number < 5000 && numbers.insert(number))
    })
}
