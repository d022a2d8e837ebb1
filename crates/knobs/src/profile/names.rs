//! One name for a knob, however a profile writes it.

use super::Setting;

/// Knobs of the scheduler: `kernel.sched_NAME` as a sysctl, `sched_NAME` for tuned's scheduler,
/// NAME in debugfs.
const SCHEDULER: [&str; 6] = [
    "min_granularity_ns",
    "wakeup_granularity_ns",
    "latency_ns",
    "migration_cost_ns",
    "nr_migrate",
    "base_slice_ns",
];
const DEBUGFS: &str = "/sys/kernel/debug/sched/";

/// Files below /sys and the names of their knobs.
const FILES: [(&str, &str); 5] = [
    ("/sys/kernel/mm/transparent_hugepage/enabled", "thp"),
    ("/sys/kernel/mm/redhat_transparent_hugepage/enabled", "thp"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "thp_defrag"),
    ("/sys/devices/system/cpu/smt/control", "smt"),
    ("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "governor"),
];

/// The knob that a setting turns: a short name where Assay has one, the dotted name of any other
/// sysctl; `None` for what is no knob of the running kernel ([`why_no_knob`] says why).
pub fn knob_name(setting: &Setting) -> Option<String> {
    named(setting).ok()
}

/// Why a setting has no knob, as a sentence; `None` where it has one.
pub fn why_no_knob(setting: &Setting) -> Option<String> {
    named(setting).err()
}

fn named(setting: &Setting) -> Result<String, String> {
    let name = setting.name.as_str();
    let said = |why: &str| Err(format!("{name} of [{}] {why}", setting.section));
    match (setting.plugin.as_str(), name) {
        ("sysctl", _) => Ok(sysctl(name)),
        ("vm", "transparent_hugepages" | "transparent_hugepage") => Ok("thp".to_string()),
        ("vm", "transparent_hugepage.defrag") => Ok("thp_defrag".to_string()),
        ("vm", _) if name.starts_with("dirty_") => Ok(format!("vm.{name}")),
        ("cpu", "governor") => Ok(name.to_string()),
        ("scheduler", _) if scheduler(name, "sched_").is_some() => {
            Ok(scheduler(name, "sched_").unwrap_or_default())
        }
        ("scheduler", _) if name.starts_with("numa_balancing_") => Ok(format!("kernel.{name}")),
        ("scheduler", _) => said("sorts tasks, it sets no scheduler setting"),
        ("sysfs", _) => file(name).map_or_else(|| said("is a file that Assay has no name for"), Ok),
        ("bootloader", _) => said("needs a reboot"),
        ("disk" | "net" | "scsi_host" | "usb" | "audio" | "video" | "irq", _) => said("belongs to devices"),
        ("irqbalance" | "systemd" | "service" | "modules" | "selinux" | "mounts", _) => {
            said("configures another program or service")
        }
        ("cpu", _) => said("is a request to the CPU that Assay has no name for"),
        _ => said("belongs to a plugin that Assay does not know"),
    }
}

/// The dotted name of a sysctl, or the short one.
fn sysctl(name: &str) -> String {
    // With a slash first, slashes part and dots belong to names.
    let slashes = name.find(['/', '.']).is_some_and(|at| name[at..].starts_with('/'));
    let dotted: String = if slashes {
        name.chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect()
    } else {
        name.to_string()
    };
    match dotted.as_str() {
        "kernel.numa_balancing" => "numa_balancing".to_string(),
        "kernel.sched_autogroup_enabled" => "autogroup".to_string(),
        _ => scheduler(&dotted, "kernel.sched_").unwrap_or(dotted),
    }
}

fn scheduler(name: &str, before: &str) -> Option<String> {
    let short = name.strip_prefix(before)?;
    SCHEDULER.contains(&short).then(|| short.to_string())
}

fn file(path: &str) -> Option<String> {
    if let Some(inner) = path.strip_prefix("/proc/sys/").filter(|inner| !inner.contains('*')) {
        return Some(sysctl(inner));
    }
    let known = FILES.iter().find(|(known, _)| *known == path).map(|(_, name)| name.to_string());
    known.or_else(|| scheduler(path, DEBUGFS))
}
