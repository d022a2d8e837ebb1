//! No text, however wrong, may make the reader of hosts fail.

use std::collections::BTreeMap;

use machine::Machine;
use model::{Entry, Snapshot};
use proptest::prelude::*;
use report::text_machine::{Style, draw};

/// Paths that the parsers look at, with `#` for small numbers.
const PATHS: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
    "/proc/cmdline",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/schedstat",
    "/proc/pressure/cpu",
    "/proc/self/cgroup",
    "/proc/self/cpuset",
    "/proc/self/mountinfo",
    "/proc/mounts",
    "/proc/self/status",
    "/proc/self/sched",
    "/proc/sysinfo",
    "/proc/bus/pci/devices",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpu#/online",
    "/sys/devices/system/cpu/cpu#/topology/core_cpus",
    "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpu#/topology/package_cpus",
    "/sys/devices/system/cpu/cpu#/topology/die_cpus",
    "/sys/devices/system/cpu/cpu#/topology/cluster_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu#/topology/core_id",
    "/sys/devices/system/cpu/cpu#/cache/index#/level",
    "/sys/devices/system/cpu/cpu#/cache/index#/type",
    "/sys/devices/system/cpu/cpu#/cache/index#/size",
    "/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_map",
    "/sys/devices/system/cpu/cpu#/cache/index#",
    "/sys/devices/system/cpu/cpu#/cpuidle/state#/name",
    "/sys/devices/system/cpu/cpu#/cpuidle",
    "/sys/devices/system/cpu/cpufreq/policy#/affected_cpus",
    "/sys/devices/system/cpu/cpufreq/policy#/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/policy#/scaling_max_freq",
    "/sys/devices/system/cpu/vulnerabilities/x",
    "/sys/devices/system/node/node#/cpumap",
    "/sys/devices/system/node/node#/cpulist",
    "/sys/devices/system/node/node#/meminfo",
    "/sys/devices/system/node/node#/distance",
    "/sys/devices/system/node/node#/memory_side_cache/index#/size",
    "/sys/devices/system/node/node#/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/firmware/dmi/tables/DMI",
    "/sys/firmware/dmi/tables/smbios_entry_point",
    "/sys/class/dmi/id/product_name",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/debug/sched/domains/cpu#/domain#/name",
    "/cg/cpu.max",
    "/cg/memory.max",
    "/cg/cpuset.cpus.effective",
    "probe:cpuid/#",
    "probe:affinity",
    "probe:folders/cpu",
];

fn text() -> impl Strategy<Value = String> {
    let cpuid =
        || "[0-5] [0148bf]{1,2} 0 [0-3] 0 => [0-9a-f]{1,8} [0-9a-f]{1,8} [0-9a-f]{1,8} [0-9a-f]{1,8}\n";
    prop_oneof![
        Just(String::new()),
        any::<String>(),
        "-?[0-9]{1,20}",
        "[0-9a-f]{1,8}(,[0-9a-f]{8}){0,3}",
        "[0-9]{1,3}(-[0-9]{1,3})?(,[0-9]{1,4}){0,4}",
        "[0-9]{1,6}[KMG]",
        Just("Data".to_string()),
        Just("Unified".to_string()),
        "(processor|physical id|core id|cpu cores|flags|model name|clock)\t: [0-9]{1,10}\n{1,2}",
        "(Node [0-9] )?(MemTotal|MemFree|SwapTotal):  [0-9]{1,21} kB\n",
        "(cpu[0-9]|domain[0-9]) ([A-Z]{2} )?[0-9a-f]{1,8}\n",
        "[0-9]:(cpu|memory|cpuset|):/[a-z.]{0,3}(/\\.\\.)?\n",
        Just("31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n".to_string()),
        proptest::collection::vec(cpuid(), 1..30).prop_map(|lines| lines.concat()),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let smbios = |(kind, length, rest): (u8, u8, Vec<u8>)| {
        let mut bytes = b"_SM3_\0\x18\x03\x02\0\x01\0".to_vec();
        bytes.extend([kind, length]);
        bytes.extend(rest);
        Entry::Bytes(bytes)
    };
    prop_oneof![
        8 => text().prop_map(Entry::Text),
        1 => proptest::collection::vec(any::<u8>(), 0..80).prop_map(Entry::Bytes),
        1 => (any::<u8>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..120)).prop_map(smbios),
        1 => any::<i32>().prop_map(Entry::Failed),
        1 => Just(Entry::Link("/sys/devices/system/cpu/cpu0/cache/index0".to_string())),
        1 => any::<String>().prop_map(Entry::Link),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let numbers = proptest::collection::vec(0u32..6, 3);
    (proptest::sample::select(PATHS), numbers).prop_map(|(pattern, numbers)| {
        let mut numbers = numbers.into_iter();
        let filled = pattern.chars().map(|c| match c {
            '#' => numbers.next().unwrap_or(0).to_string(),
            c => c.to_string(),
        });
        filled.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_snapshot_gives_a_machine(entries in proptest::collection::btree_map(path(), entry(), 0..60)) {
        let entries: BTreeMap<String, Entry> = entries;
        let snapshot = Snapshot { entries };
        let machine = Machine::from(&snapshot);
        let json = serde_json::to_string(&machine).expect("every machine can be written");
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        prop_assert!(machine.cpus.allowed.is_subset(&machine.cpus.online));
        for cache in &machine.caches {
            prop_assert!(!cache.cpus.is_empty() && cache.cpus.is_subset(&machine.cpus.online));
        }
        for core in machine.cpus.cores.iter().flatten() {
            prop_assert!(!core.cpus.is_empty() && core.cpus.is_subset(&machine.cpus.online));
        }
        let text = draw(&machine, Style { color: false, unicode: true, width: 80 });
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        let mut blanked = snapshot;
        blanked.blank();
        let again = serde_json::to_string(&blanked).expect("every snapshot can be written");
        let again: Snapshot = serde_json::from_str(&again).expect("and read back");
        prop_assert_eq!(again, blanked);
    }

    #[test]
    fn any_cpuid_text_gives_a_machine(texts in proptest::collection::vec(text(), 1..5)) {
        let entry = |(cpu, text): (usize, String)| (format!("probe:cpuid/{cpu}"), Entry::Text(text));
        let snapshot = Snapshot { entries: texts.into_iter().enumerate().map(entry).collect() };
        let machine = Machine::from(&snapshot);
        let summary = machine.summary();
        prop_assert!(summary.cores.unwrap_or(0) <= summary.cpus.unwrap_or(0));
    }
}
