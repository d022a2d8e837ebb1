//! Reads what a host says about itself: the live one, any captured tree (a container's root, a
//! hand-made fixture) under its own root, or what tools of support collected of it (`archive`).
//!
//! Only what is parsed, or what a finding will cite, is read: no attribute that is slow (the
//! current frequency wakes every CPU) or has side effects. Some files hold what identifies the
//! owner beside that (SMBIOS tables serial numbers and tags, the kernel's command line whatever was
//! given to it, paths of control groups the ids of containers): that is blanked here, before
//! anyone sees the snapshot, as `model::blank` says. What is long and repeats is shortened as
//! `compact` says; a mask and a list that say the same are stored once, in the shorter form.
//!
//! Invariant: reads and never writes, and what identifies the owner never leaves it.

#![forbid(unsafe_code)]

pub mod archive;
pub mod compact;
pub mod disk;
pub mod in_use;
pub mod network;
mod tree;

use model::vocabulary::host as ids;
use std::path::{Path, PathBuf};

use model::{CpuSet, Entry, Snapshot};

use machine::cgroup;
use machine::{BOOK, CLUSTER, CORE, CPUS, DIE, DRAWER, PACKAGE};
use tree::Tree;

/// Plain files, as patterns: `*` stands for any name, `#` for a number, `{a,b}` at the end for
/// several names.
const FILES: &[&str] = &[
    "/etc/hostname",
    "/proc/{meminfo,cmdline,version,uptime,loadavg,swaps,buddyinfo,sysinfo}",
    "/proc/pressure/{cpu,memory,io,irq}",
    "/proc/self/{cgroup,cpuset}",
    "/proc/xen/capabilities",
    "/run/systemd/container",
    "/run/host/container-manager",
    "/proc/device-tree/{model,hypervisor/compatible}",
    "/proc/device-tree/ibm,partition-name",
    "/proc/sys/kernel/{arch,hostname,osrelease,perf_event_paranoid,perf_event_mlock_kb,pid_max,threads-max}",
    "/proc/sys/kernel/{randomize_va_space,nmi_watchdog,watchdog,soft_watchdog,timer_migration,io_uring_disabled}",
    "/proc/sys/kernel/{numa_balancing,split_lock_mitigate,tainted,bpf_stats_enabled,yama/ptrace_scope}",
    "/proc/sys/kernel/{sched_autogroup_enabled,sched_rt_runtime_us,sched_rt_period_us,sched_rr_timeslice_ms}",
    "/proc/sys/kernel/{sched_latency_ns,sched_min_granularity_ns,sched_wakeup_granularity_ns,sched_nr_migrate}",
    "/proc/sys/kernel/{sched_migration_cost_ns,sched_cfs_bandwidth_slice_us,sched_tunable_scaling}",
    "/proc/sys/kernel/{sched_child_runs_first,sched_energy_aware,sched_schedstats,sched_itmt_enabled}",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/vm/{swappiness,overcommit_memory,overcommit_ratio,nr_hugepages,nr_overcommit_hugepages}",
    "/proc/sys/vm/{dirty_ratio,dirty_bytes,dirty_background_ratio,dirty_background_bytes,zone_reclaim_mode}",
    "/proc/sys/vm/{dirty_expire_centisecs,dirty_writeback_centisecs,min_free_kbytes,vfs_cache_pressure}",
    "/proc/sys/vm/{compaction_proactiveness,max_map_count,stat_interval,watermark_scale_factor}",
    "/proc/sys/net/core/{somaxconn,rmem_max,wmem_max,netdev_max_backlog,default_qdisc,busy_poll,busy_read}",
    "/proc/sys/net/ipv4/{tcp_congestion_control,tcp_rmem,tcp_wmem,tcp_slow_start_after_idle}",
    "/proc/sys/kernel/sched_domain/cpu#/domain#/{name,flags}",
    "/sys/kernel/debug/sched/domains/cpu#/domain#/{name,flags}",
    "/sys/kernel/debug/sched/{features,preempt,base_slice_ns,latency_ns,min_granularity_ns,tunable_scaling}",
    "/sys/kernel/debug/sched/{wakeup_granularity_ns,idle_min_granularity_ns,migration_cost_ns,nr_migrate,verbose}",
    "/sys/kernel/mm/transparent_hugepage/{enabled,defrag,shmem_enabled,hpage_pmd_size,use_zero_page}",
    "/sys/kernel/mm/hugepages/*/{nr_hugepages,free_hugepages,nr_overcommit_hugepages}",
    "/sys/kernel/mm/{ksm/run,numa/demotion_enabled}",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/hypervisor/{type,properties/features,version/major,version/minor}",
    "/sys/class/dmi/id/{sys_vendor,product_name,product_version,board_vendor,board_name,board_version}",
    "/sys/class/dmi/id/{bios_vendor,bios_version,bios_date,chassis_type,chassis_vendor}",
    "/sys/firmware/dmi/tables/DMI",
    "/sys/devices/cpu_core/cpus",
    "/sys/devices/cpu_atom/cpus",
    "/sys/devices/cpu_lowpower/cpus",
    "/sys/devices/system/clocksource/clocksource0/{current_clocksource,available_clocksource}",
    "/sys/devices/system/cpu/{online,offline,possible,present,isolated,nohz_full,kernel_max}",
    "/sys/devices/system/cpu/smt/{control,active}",
    "/sys/devices/system/cpu/intel_pstate/{status,no_turbo,max_perf_pct,min_perf_pct,hwp_dynamic_boost}",
    "/sys/devices/system/cpu/amd_pstate/{status,prefcore}",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpuidle/{current_driver,current_governor,current_governor_ro}",
    "/sys/devices/system/cpu/vulnerabilities/*",
    "/sys/devices/system/cpu/cpufreq/policy#/{affected_cpus,scaling_driver,scaling_governor,scaling_min_freq}",
    "/sys/devices/system/cpu/cpufreq/policy#/{scaling_max_freq,cpuinfo_min_freq,cpuinfo_max_freq,base_frequency}",
    "/sys/devices/system/cpu/cpufreq/policy#/{bios_limit,energy_performance_preference,cpb,boost}",
    "/sys/devices/system/node/{online,possible,has_cpu,has_memory,has_normal_memory,has_generic_initiator}",
    "/sys/devices/system/node/node#/distance",
    "/sys/devices/system/node/node#/hugepages/*/{nr_hugepages,free_hugepages}",
    "/sys/devices/system/node/node#/memory_side_cache/index#/{size,line_size,indexing,write_policy}",
    "/sys/devices/system/node/node#/access0/initiators/{read_latency,write_latency,read_bandwidth,write_bandwidth}",
    "/sys/devices/system/edac/mc/mc#/{mc_name,size_mb,ce_count,ue_count}",
    "/sys/devices/system/edac/mc/mc#/*/{dimm_label,dimm_location,dimm_mem_type,size,dimm_ce_count,dimm_ue_count}",
    "/sys/block/*/{size,ro,removable,device/model}",
    "/sys/block/*/queue/{rotational,scheduler,nr_requests,read_ahead_kb,logical_block_size,physical_block_size}",
    "/sys/block/*/queue/{write_cache,wbt_lat_usec,io_poll,nomerges,max_sectors_kb}",
    "/sys/class/net/*/{speed,duplex,mtu,operstate,carrier,device/numa_node}",
];

/// Reads a host. `/` is the live one; anything else is the root of a captured tree, or a folder
/// that holds one. A root that cannot be opened gives an empty snapshot.
///
/// What is no file (cpuid, affinity) is not read here; a live caller adds it as `probe:` entries:
/// `probe:affinity` a list of CPUs, `probe:architecture` as `uname -m` says it, `probe:page_bytes`
/// a number, `probe:cpuid/N` the leaves of CPU N (see `machine::cpuid` for the form).
pub fn read(root: &Path) -> Snapshot {
    match Tree::open(&captured_root(root)) {
        Ok(mut tree) => read_tree(&mut tree),
        Err(_) => Snapshot::default(),
    }
}

fn read_tree(tree: &mut Tree) -> Snapshot {
    for pattern in FILES {
        for path in expand(tree, pattern) {
            tree.take(&path);
        }
    }
    shortened(tree);
    enclosures(tree);
    control_groups(tree);
    cpus(tree);
    nodes(tree);
    let mut snapshot = tree.finish();
    snapshot.blank();
    snapshot
}

/// Folders of our control groups (those of CPU time, those of memory), from our own group up to the
/// mount points, by their true names: for who reads them now, and never to be written down.
pub fn group_folders(root: &Path) -> [Vec<String>; 2] {
    let Ok(mut tree) = Tree::open(&captured_root(root)) else { return Default::default() };
    tree.take("/proc/self/cgroup");
    mounts(&mut tree);
    let snapshot = tree.finish();
    let places = cgroup::places(&snapshot);
    ["cpu", "memory"].map(|controller| {
        let places = places.iter().filter(|place| place.controls(controller));
        places.flat_map(|place| place.folders.clone()).collect()
    })
}

/// Most captured trees keep /proc and /sys under a folder of their own.
fn captured_root(root: &Path) -> PathBuf {
    match Tree::open(root) {
        Ok(tree) => root.join(archive::root_of(&tree).trim_start_matches('/')),
        Err(_) => root.to_path_buf(),
    }
}

/// A folder with one file `puN` per CPU, as hwloc's gather tool writes it, as `probe:cpuid/N`
/// entries.
pub fn read_cpuid(folder: &Path) -> Snapshot {
    let Ok(mut tree) = Tree::open(folder) else { return Snapshot::default() };
    for cpu in tree.numbered("/", "pu") {
        if let Some(entry) = tree.read(&format!("/pu{cpu}")) {
            tree.store(&format!("probe:cpuid/{cpu}"), entry);
        }
    }
    tree.finish()
}

/// Disks, interfaces and devices: the largest hosts have some thousand.
const MAX_NAMES: usize = 1 << 14;

/// Nodes that Linux is built for.
const MAX_NODES: usize = 1024;

/// The paths that a pattern of [`FILES`] stands for.
fn expand(tree: &Tree, pattern: &str) -> Vec<String> {
    let (folder, names) = match pattern.split_once('{') {
        Some((folder, names)) => (folder, names.trim_end_matches('}').split(',').collect()),
        None => (pattern, vec![""]),
    };
    let mut folders = vec![String::new()];
    let folder = folder.trim_end_matches('/');
    for part in folder.split('/').skip(1) {
        let wild = part.find(['*', '#']);
        let grown = |start: &String| match wild {
            None => vec![format!("{start}/{part}")],
            Some(at) if part.ends_with('#') => {
                let numbers = tree.numbered(start, &part[..at]).into_iter();
                numbers.map(|number| format!("{start}/{}{number}", &part[..at])).collect()
            }
            Some(_) => {
                let names = tree.names(start).into_iter().take(MAX_NAMES);
                names.map(|name| format!("{start}/{name}")).collect()
            }
        };
        folders = folders.iter().flat_map(grown).collect();
    }
    let path = |folder: &String, name: &&str| {
        if name.is_empty() { folder.clone() } else { format!("{folder}/{name}") }
    };
    folders.iter().flat_map(|folder| names.iter().map(move |name| path(folder, name))).collect()
}

/// /proc/cpuinfo of 2048 CPUs with 200 flags each.
const CPUINFO_LIMIT: usize = 32 << 20;

/// /proc/schedstat of as many.
const SCHEDSTAT_LIMIT: usize = 16 << 20;

/// Below this /proc/cpuinfo is kept whole.
const CPUINFO_WHOLE: usize = 8 << 10;

fn shortened(tree: &mut Tree) {
    let status = ["CapEff", "Seccomp", "Cpus_allowed", "Cpus_allowed_list", "Mems_allowed_list"];
    let counters = ["cpu", "btime", "ctxt", "processes", "procs_running", "procs_blocked"];
    let cpuinfo = |text: &str| match text.len() {
        length if length > CPUINFO_WHOLE => compact::cpuinfo(text),
        _ => text.to_string(),
    };
    take_shortened(tree, "/proc/cpuinfo", CPUINFO_LIMIT, cpuinfo);
    take_shortened(tree, "/proc/schedstat", SCHEDSTAT_LIMIT, compact::schedstat);
    take_shortened(tree, "/proc/stat", CPUINFO_LIMIT, |text| compact::lines(text, &counters));
    take_shortened(tree, "/proc/self/status", 1 << 20, |text| compact::lines(text, &status));
    take_shortened(tree, "/proc/self/sched", 1 << 20, |text| {
        compact::lines(text, &["policy", "prio", "se.slice"])
    });
    if !take_shortened(tree, "/proc/bus/pci/devices", 4 << 20, compact::pci_devices) {
        for path in expand(tree, "/sys/bus/pci/devices/*/vendor") {
            tree.take(&path);
        }
    }
    mounts(tree);
}

/// Control groups and signs of containers in the first mount table that is there.
fn mounts(tree: &mut Tree) {
    let tables = ["/proc/self/mountinfo", "/proc/self/mounts", "/proc/mounts"];
    let _ = tables.iter().any(|path| take_shortened(tree, path, 8 << 20, compact::mounts));
}

/// The OEM's ids end here in the header that all ACPI tables share.
const ACPI_OEM: usize = 24;

/// Evidence of containers and sandboxes that is not a plain file to be kept whole: Docker once
/// wrote a container's environment into its marker, Podman writes names and ids beside the
/// engine's.
fn enclosures(tree: &mut Tree) {
    if tree.read("/.dockerenv").is_some() {
        tree.take_name("/.dockerenv");
    }
    take_shortened(tree, "/run/.containerenv", 1 << 16, |text| {
        compact::kept(text, |line| line.starts_with("engine="))
    });
    if tree.names("/dev").iter().any(|name| name == "kvm") {
        tree.take_name("/dev/kvm");
    }
    for kind in ["cgroup", "pid", "user"] {
        let path = format!("/proc/self/ns/{kind}");
        if let Some(link) = tree.link(&path).filter(|link| link.starts_with(&format!("{kind}:["))) {
            tree.store(&path, Entry::Text(link));
        }
    }
    let table = "/sys/firmware/acpi/tables/FACP";
    let mut header = match tree.read(table) {
        Some(Entry::Text(text)) => text.into_bytes(),
        Some(Entry::Bytes(bytes)) => bytes,
        _ => return,
    };
    header.truncate(ACPI_OEM);
    tree.store(table, Entry::Bytes(header));
}

fn take_shortened(tree: &mut Tree, path: &str, limit: usize, shorten: impl Fn(&str) -> String) -> bool {
    let entry = match tree.read_up_to(path, limit) {
        None => return false,
        Some(Entry::Text(text)) => Entry::Text(shorten(&text)),
        // One odd byte (in a model name, a mount point) must not cost all other lines.
        Some(Entry::Bytes(bytes)) => Entry::Text(shorten(&String::from_utf8_lossy(&bytes))),
        Some(other) => other,
    };
    tree.store(path, entry);
    true
}

/// Files with the limits of a group, by controller and version.
const GROUP_FILES: &[(&str, u32, &[&str])] = &[
    ("cpu", 1, &["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares", "cpu.stat"]),
    ("cpu", 2, &["cpu.max", "cpu.weight", "cpu.stat", "cpu.pressure"]),
    ("cpuset", 1, &["cpuset.cpus", "cpuset.effective_cpus", "cpuset.mems", "cpuset.effective_mems"]),
    ("cpuset", 2, &["cpuset.cpus", "cpuset.cpus.effective", "cpuset.mems", "cpuset.mems.effective"]),
    ("memory", 1, &["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.memsw.limit_in_bytes"]),
    ("blkio", 1, &["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"]),
    ("blkio", 1, &["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"]),
    ("io", 2, &["io.max", "io.pressure"]),
    ("memory", 2, &["memory.max", "memory.high", "memory.current", "memory.swap.max", "memory.pressure"]),
    ("pids", 1, &["pids.max", "pids.current"]),
    ("pids", 2, &["pids.max", "pids.current"]),
];

fn control_groups(tree: &mut Tree) {
    let paths = tree.so_far(|snapshot| {
        let mut paths = Vec::new();
        for place in cgroup::places(snapshot) {
            for (controller, version, files) in GROUP_FILES {
                if place.version != *version || !place.controls(controller) {
                    continue;
                }
                for folder in &place.folders {
                    for file in *files {
                        let file = if place.noprefix { file.trim_start_matches("cpuset.") } else { file };
                        paths.push(format!("{folder}/{file}"));
                    }
                }
            }
            if place.version == 1 && place.controls("memory") {
                paths.push(format!("{}/memory.stat", place.folders[0]));
            }
        }
        paths
    });
    for path in paths {
        if path.ends_with("/memory.stat") {
            let wanted = ["hierarchical_memory_limit", "hierarchical_memsw_limit"];
            take_shortened(tree, &path, 1 << 20, |text| compact::lines(text, &wanted));
        } else {
            tree.take(&path);
        }
    }
}

/// Topology files with numbers.
const IDS: &[&str] = &["physical_package_id", "die_id", "cluster_id", "core_id", "book_id", "drawer_id"];

const CACHE_FILES: &[&str] =
    &["level", "type", "size", "coherency_line_size", "ways_of_associativity", "number_of_sets"];

const IDLE_FILES: &[&str] = &["name", "latency", "residency", "disable"];

const OLD_FREQUENCY_FILES: &[&str] = &[
    "affected_cpus",
    "scaling_driver",
    "scaling_governor",
    "scaling_min_freq",
    "scaling_max_freq",
    "cpuinfo_max_freq",
    "base_frequency",
    "cpb",
    "energy_performance_preference",
];

fn cpus(tree: &mut Tree) {
    let cpus = tree.numbered(CPUS, "cpu");
    let policies = !tree.numbered(&format!("{CPUS}/cpufreq"), "policy").is_empty();
    for cpu in &cpus {
        let place = format!("{CPUS}/cpu{cpu}");
        for file in ["online", "cpu_capacity"] {
            tree.take(&format!("{place}/{file}"));
        }
        topology(tree, &format!("{place}/topology"));
        for index in tree.numbered(&format!("{place}/cache"), "index") {
            let folder = format!("{place}/cache/index{index}");
            let mut content = files(tree, &folder, CACHE_FILES);
            content.extend(set(tree, &folder, &[("shared_cpu_map", "shared_cpu_list")]));
            tree.take_folder(&folder, content);
        }
        let idle = format!("{place}/cpuidle");
        let mut content = Vec::new();
        for state in tree.numbered(&idle, "state") {
            let read = files(tree, &format!("{idle}/state{state}"), IDLE_FILES);
            content.extend(read.into_iter().map(|(name, entry)| (format!("state{state}/{name}"), entry)));
        }
        tree.take_folder(&idle, content);
        if !policies {
            for (name, entry) in files(tree, &format!("{place}/cpufreq"), OLD_FREQUENCY_FILES) {
                tree.store(&format!("{place}/cpufreq/{name}"), entry);
            }
        }
    }
    if !cpus.is_empty() {
        // A folder without any file that is kept would be lost otherwise.
        tree.store(ids::probe::FOLDERS_CPU, list(&cpus));
    }
}

fn list(numbers: &[u32]) -> Entry {
    Entry::Text(numbers.iter().copied().collect::<CpuSet>().to_string())
}

fn topology(tree: &mut Tree, folder: &str) {
    let mut content = files(tree, folder, IDS);
    for names in [CORE, PACKAGE, DIE, CLUSTER, BOOK, DRAWER] {
        content.extend(set(tree, folder, names));
    }
    for (name, entry) in content {
        tree.store(&format!("{folder}/{name}"), entry);
    }
}

fn files(tree: &Tree, folder: &str, names: &[&str]) -> Vec<(String, Entry)> {
    let read = |name: &&str| Some((name.to_string(), tree.read(&format!("{folder}/{name}"))?));
    names.iter().filter_map(read).collect()
}

/// The set under the first of its names that is there, and under an older one where that says
/// something else.
fn set(tree: &Tree, folder: &str, names: &[(&str, &str)]) -> Vec<(String, Entry)> {
    let mut told = names.iter().map(|pair| pair_of(tree, folder, pair)).filter(|found| !found.is_empty());
    let mut kept = told.next().unwrap_or_default();
    let parsed = |found: &[(String, Entry)]| match found {
        [(name, Entry::Text(text))] if name.ends_with("_list") => CpuSet::parse_list(text),
        [(_, Entry::Text(text))] => CpuSet::parse_mask(text),
        _ => None,
    };
    let first = parsed(&kept);
    let differs =
        |found: &Vec<(String, Entry)>| first.is_some() && parsed(found).is_some_and(|set| Some(set) != first);
    kept.extend(told.filter(differs).flatten().collect::<Vec<_>>());
    kept
}

/// Both files of a pair only where they contradict each other or cannot be read, else the shorter.
fn pair_of(tree: &Tree, folder: &str, (mask, list): &(&str, &str)) -> Vec<(String, Entry)> {
    let mut found = files(tree, folder, &[mask, list]);
    if let [(_, Entry::Text(as_mask)), (_, Entry::Text(as_list))] = found.as_slice() {
        let same = CpuSet::parse_mask(as_mask).is_some_and(|set| CpuSet::parse_list(as_list) == Some(set));
        if same {
            found.swap_remove(usize::from(as_mask.len() <= as_list.len()));
        }
    }
    found
}

fn nodes(tree: &mut Tree) {
    let folder = "/sys/devices/system/node";
    let wanted = ["MemTotal", "MemFree", "FilePages", "AnonPages", "AnonHugePages", "HugePages_Total"];
    let mut nodes = tree.numbered(folder, "node");
    nodes.truncate(MAX_NODES);
    for node in &nodes {
        let place = format!("{folder}/node{node}");
        let content = set(tree, &place, &[("cpumap", "cpulist")]);
        if content.is_empty() {
            // Then the links between nodes and CPUs are the only source.
            for cpu in tree.numbered(&place, "cpu") {
                tree.take_name(&format!("{place}/cpu{cpu}"));
            }
        }
        for (name, entry) in content {
            tree.store(&format!("{place}/{name}"), entry);
        }
        let third_word =
            |line: &str| line.split_whitespace().nth(2).unwrap_or("").trim_end_matches(':').to_string();
        take_shortened(tree, &format!("{place}/meminfo"), 1 << 20, |text| {
            compact::kept(text, |line| wanted.contains(&third_word(line).as_str()))
        });
        let initiators = format!("{place}/access0/initiators");
        for initiator in tree.numbered(&initiators, "node") {
            tree.take_name(&format!("{initiators}/node{initiator}"));
        }
    }
    if !nodes.is_empty() {
        tree.store(ids::probe::FOLDERS_NODE, list(&nodes));
    }
}

#[cfg(test)]
mod tests;
