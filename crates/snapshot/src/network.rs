//! What files report about a network interface and of the kernel's settings for TCP, as lines of a
//! name and a value (see `machine::network`).

use std::fs;
use std::path::{Path, PathBuf};

/// Queues and interrupts beyond these are not listed: they are counted.
const LISTED: usize = 64;

const SETTINGS: [(&str, &str); 13] = [
    ("congestion", "net/ipv4/tcp_congestion_control"),
    ("congestion_available", "net/ipv4/tcp_available_congestion_control"),
    ("tcp_rmem", "net/ipv4/tcp_rmem"),
    ("tcp_wmem", "net/ipv4/tcp_wmem"),
    ("tcp_window_scaling", "net/ipv4/tcp_window_scaling"),
    ("tcp_sack", "net/ipv4/tcp_sack"),
    ("tcp_mtu_probing", "net/ipv4/tcp_mtu_probing"),
    ("rmem_max", "net/core/rmem_max"),
    ("wmem_max", "net/core/wmem_max"),
    ("netdev_max_backlog", "net/core/netdev_max_backlog"),
    ("default_qdisc", "net/core/default_qdisc"),
    ("kernel", "kernel/osrelease"),
    ("boot", "kernel/random/boot_id"),
];

/// Settings of this kernel (or network namespace), its CPUs, and what kind they are.
pub fn of_kernel() -> String {
    let mut text = String::new();
    for (name, file) in SETTINGS {
        line(&mut text, name, read(&Path::new("/proc/sys").join(file)));
    }
    line(&mut text, "cpus", read(Path::new("/sys/devices/system/cpu/online")));
    let info = read(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    line(&mut text, "cpu_model", model.map(|(_, model)| model.to_string()));
    text
}

/// What /sys and /proc report about this interface; nothing of a name that is none.
pub fn of_interface(name: &str) -> String {
    let mut text = String::new();
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    let place = PathBuf::from("/sys/class/net").join(name);
    if !plain || !place.is_dir() {
        return text;
    }
    // Asking an interface that is down for its speed is an error, and so is asking one that has
    // none.
    let speed = read(&place.join("speed")).filter(|speed| speed.parse::<i64>().is_ok_and(|speed| speed > 0));
    line(&mut text, "mtu", read(&place.join("mtu")));
    line(&mut text, "speed_mbps", speed);
    line(&mut text, "duplex", read(&place.join("duplex")).filter(|duplex| duplex != "unknown"));
    line(&mut text, "operstate", read(&place.join("operstate")));
    line(&mut text, "type", read(&place.join("type")));
    line(&mut text, "tx_queue_len", read(&place.join("tx_queue_len")));
    let found = fs::canonicalize(&place).unwrap_or_default();
    line(
        &mut text,
        "virtual",
        Some(if found.starts_with("/sys/devices/virtual") { "yes" } else { "no" }.into()),
    );
    let device = fs::canonicalize(place.join("device")).ok();
    if let Some(device) = &device {
        let driver = fs::read_link(device.join("driver")).ok();
        let driver =
            driver.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        line(&mut text, "device_driver", driver);
        let node = device.ancestors().find_map(|folder| read(&folder.join("numa_node")));
        line(&mut text, "numa_node", node.filter(|node| !node.starts_with('-')));
        interrupts(&mut text, device);
    }
    queues(&mut text, &place.join("queues"));
    text
}

/// Interrupts of the device, or of the one that it hangs on (virtio's stand at the PCI device):
/// number, name, the CPUs that take it, and how often each did since the host started.
fn interrupts(text: &mut String, device: &Path) {
    let folders = device.ancestors().map(|folder| folder.join("msi_irqs")).take(4);
    let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else { return };
    let mut own = numbers(&folder);
    own.sort_unstable();
    let counts = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    line(text, "irqs", Some(own.len().to_string()));
    for number in own.into_iter().take(LISTED) {
        let place = PathBuf::from(format!("/proc/irq/{number}"));
        let cpus = read(&place.join("effective_affinity_list")).filter(|cpus| !cpus.is_empty());
        let cpus = cpus.or_else(|| read(&place.join("smp_affinity_list"))).unwrap_or_default();
        let (name, counted) = counted(&counts, number).unwrap_or_default();
        line(text, "irq", Some(format!("{number} {name} cpus={cpus} counts={counted}")));
    }
}

/// Name and counts (`CPU:count,…`, those above 0) of an interrupt in /proc/interrupts.
fn counted(interrupts: &str, number: u32) -> Option<(String, String)> {
    let mut lines = interrupts.lines();
    let cpus: Vec<&str> =
        lines.next()?.split_whitespace().filter_map(|word| word.strip_prefix("CPU")).collect();
    let wanted = format!("{number}:");
    let mut words = lines
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next() == Some(wanted.as_str())).then_some(words))?;
    let counts: Vec<u64> = words.by_ref().take(cpus.len()).map_while(|word| word.parse().ok()).collect();
    let name = words.last().unwrap_or("unnamed").to_string();
    let above = cpus.iter().zip(&counts).filter(|(_, count)| **count > 0);
    let above: Vec<String> = above.map(|(cpu, count)| format!("{cpu}:{count}")).collect();
    Some((name, above.join(",")))
}

/// How many queues there are each way, and which CPUs their packets are handed on to.
fn queues(text: &mut String, folder: &Path) {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_by_key(|name| (name.chars().take(2).collect::<String>(), name.len(), name.clone()));
    for (what, lead) in [("rx_queues", "rx-"), ("tx_queues", "tx-")] {
        let count = names.iter().filter(|name| name.starts_with(lead)).count();
        line(text, what, Some(count.to_string()));
    }
    for (what, lead, file) in [("rps", "rx-", "rps_cpus"), ("xps", "tx-", "xps_cpus")] {
        for name in names.iter().filter(|name| name.starts_with(lead)).take(LISTED) {
            let mask = read(&folder.join(name).join(file));
            line(text, what, mask.map(|mask| format!("{name} {mask}")));
        }
    }
}

fn numbers(folder: &Path) -> Vec<u32> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

fn read(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

fn line(text: &mut String, name: &str, value: Option<String>) {
    let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        text.push_str(&format!("{name} {value}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_no_other_path_is_read() {
        let text = of_interface("lo");
        assert!(
            text.contains("mtu ") && text.contains("virtual yes\n") && text.contains("type 772\n"),
            "{text}"
        );
        for name in ["", "..", ".", "../../kernel", "no-such-interface"] {
            assert_eq!(of_interface(name), "", "{name:?}");
        }
        assert!(of_kernel().contains("kernel "));
    }

    #[test]
    fn interrupts_as_the_kernel_lists_them() {
        let listed = "           CPU0       CPU2       \n 41:      16228          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx\n\
                      NMI:          0          0   Non-maskable interrupts\n 42:  7\n";
        assert_eq!(counted(listed, 41), Some(("virtio3-rx".into(), "0:16228".into())));
        assert_eq!(counted(listed, 42), Some(("unnamed".into(), "0:7".into())));
        assert_eq!(counted(listed, 4), None);
        assert_eq!(counted("", 41), None);
    }
}
