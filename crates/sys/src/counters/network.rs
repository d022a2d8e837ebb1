//! Costs of a network transfer on this end: CPU time and waits of its tasks, softirq time of its
//! CPUs, dropped packets, throttling.

use std::path::Path;

use super::{CounterFile, throttled_ms, ticks_per_second};
use model::CpuSet;

/// Counters of one end of a transfer, kept open.
pub struct NetworkCounters {
    tasks: Vec<CounterFile>,
    stat: CounterFile,
    softnet: CounterFile,
    snmp: CounterFile,
    snmp6: CounterFile,
    /// The interface's counters of dropped packets, received and sent.
    interface: Vec<CounterFile>,
    cpu_stat: Option<CounterFile>,
    cpus: CpuSet,
    buffer: Vec<u8>,
}

/// Running totals; `None` if the kernel does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetworkTotals {
    /// Time that the tasks ran, ns.
    pub run_ns: Option<f64>,
    /// Time that the tasks were runnable and had no CPU, ns.
    pub wait_ns: Option<f64>,
    /// Softirq time of the CPUs, s (10 ms steps).
    pub softirq_s: Option<f64>,
    /// Packets dropped by the CPUs' backlog queues and by the interface.
    pub drops: Option<f64>,
    /// Buffers dropped because a UDP socket of any process was full; one may contain many messages
    /// (`sys::datagrams::coalesce`).
    pub full_sockets: Option<f64>,
    /// Time that a CPU quota throttled the control group, s.
    pub throttled_s: Option<f64>,
}

impl NetworkCounters {
    /// Opens the counters of these processes on these CPUs, and of an interface if known.
    pub fn open(tasks: &[u32], cpus: &CpuSet, interface: Option<&str>) -> NetworkCounters {
        let task = |pid: &u32| CounterFile::open(Path::new(&format!("/proc/{pid}/schedstat")));
        let interface = interface.filter(|interface| !interface.contains('/') && !interface.starts_with('.'));
        let drops = |name: &str| {
            let path = |interface| format!("/sys/class/net/{interface}/statistics/{name}");
            interface.map(|interface| CounterFile::open(Path::new(&path(interface))))
        };
        NetworkCounters {
            tasks: tasks.iter().map(task).collect(),
            stat: CounterFile::open(Path::new("/proc/stat")),
            softnet: CounterFile::open(Path::new("/proc/net/softnet_stat")),
            snmp: CounterFile::open(Path::new("/proc/net/snmp")),
            snmp6: CounterFile::open(Path::new("/proc/net/snmp6")),
            interface: ["rx_dropped", "tx_dropped", "rx_missed_errors"]
                .into_iter()
                .filter_map(drops)
                .collect(),
            cpu_stat: cpu_stat_of_this_group(),
            cpus: cpus.clone(),
            buffer: Vec::new(),
        }
    }

    pub fn read(&mut self) -> NetworkTotals {
        let NetworkCounters { tasks, stat, softnet, snmp, snmp6, interface, cpu_stat, cpus, buffer } = self;
        let (mut run_ns, mut wait_ns) = (Some(0.0), Some(0.0));
        for task in tasks {
            let words = task.read(buffer).map(|text| {
                let mut words = text.split_ascii_whitespace().map(|word| word.parse::<f64>().ok());
                (words.next().flatten(), words.next().flatten())
            });
            let (run, wait) = words.unwrap_or_default();
            run_ns = run_ns.and_then(|sum| Some(sum + run?));
            wait_ns = wait_ns.and_then(|sum| Some(sum + wait?));
        }
        let softirq_s = stat.read(buffer).and_then(|text| softirq(text, cpus));
        let mut drops = softnet.read(buffer).and_then(backlog_drops);
        // Kernels without IPv6 have no such file.
        let over_v6 = snmp6.read(buffer).and_then(socket_drops_v6).unwrap_or(0.0);
        let full_sockets = snmp.read(buffer).and_then(socket_drops).map(|drops| drops + over_v6);
        for file in interface {
            let dropped = file.read(buffer).and_then(|text| text.trim().parse::<f64>().ok());
            drops = drops.map(|sum| sum + dropped.unwrap_or(0.0));
        }
        let cpu_stat = cpu_stat.as_ref().and_then(|file| file.read(buffer));
        let throttled_s = cpu_stat.and_then(throttled_ms).map(|ms| ms / 1e3);
        NetworkTotals { run_ns, wait_ns, softirq_s, drops, full_sockets, throttled_s }
    }

    /// Softirq time of each of these CPUs so far, s, in their order; NaN if unknown.
    pub fn softirqs(&mut self, cpus: &CpuSet) -> Vec<f64> {
        let text = self.stat.read(&mut self.buffer);
        cpus.iter()
            .map(|cpu| text.and_then(|text| softirq(text, &CpuSet::one(cpu))).unwrap_or(f64::NAN))
            .collect()
    }
}

impl NetworkTotals {
    pub fn since(self, earlier: NetworkTotals) -> NetworkTotals {
        let less = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        NetworkTotals {
            run_ns: less(self.run_ns, earlier.run_ns),
            wait_ns: less(self.wait_ns, earlier.wait_ns),
            softirq_s: less(self.softirq_s, earlier.softirq_s),
            drops: less(self.drops, earlier.drops),
            full_sockets: less(self.full_sockets, earlier.full_sockets),
            throttled_s: less(self.throttled_s, earlier.throttled_s),
        }
    }
}

/// Softirq time of these CPUs, s: the seventh number of their lines in /proc/stat.
fn softirq(text: &str, cpus: &CpuSet) -> Option<f64> {
    let mut ticks = None;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { break };
        let mut words = rest.split_ascii_whitespace();
        let Some(cpu) = words.next().filter(|_| !rest.starts_with(' ')).and_then(|word| word.parse().ok())
        else {
            continue;
        };
        if cpus.contains(cpu) {
            let softirq: f64 = words.nth(6)?.parse().ok()?;
            ticks = Some(ticks.unwrap_or(0.0) + softirq);
        }
    }
    ticks.map(|ticks| ticks / ticks_per_second())
}

/// Packets dropped because the backlog of a CPU was full: the second word of each line,
/// hexadecimal.
fn backlog_drops(text: &str) -> Option<f64> {
    let drops = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    let of_cpus: Option<Vec<u64>> = text.lines().map(drops).collect();
    of_cpus.filter(|drops| !drops.is_empty()).map(|drops| drops.iter().sum::<u64>() as f64)
}

/// Buffers of UDP over IPv6 dropped at a full socket; lines of name and number, unlike for IPv4.
fn socket_drops_v6(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("Udp6RcvbufErrors")?.trim().parse().ok())
}

/// Buffers of UDP over IPv4 dropped at a full socket (`RcvbufErrors`).
fn socket_drops(text: &str) -> Option<f64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let column = names.split_ascii_whitespace().position(|name| name == "RcvbufErrors")?;
    values.split_ascii_whitespace().nth(column)?.parse().ok()
}

/// The `cpu.stat` file of this process's control group, if it counts throttling.
fn cpu_stat_of_this_group() -> Option<CounterFile> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let mounts = match controllers {
            "" => ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            names if names.split(',').any(|name| name == "cpu") => {
                ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"]
            }
            _ => continue,
        };
        for mount in mounts {
            // In a container the mount itself is the group, and the group's path does not exist.
            for folder in [format!("{mount}{path}"), mount.to_string()] {
                let file = Path::new(&folder).join("cpu.stat");
                let text = std::fs::read_to_string(&file);
                if text.is_ok_and(|text| text.contains("throttled_")) {
                    return Some(CounterFile::open(&file));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel_are_parsed() {
        let stat =
            "cpu  9 9 9 9 9 9 900 0 0 0\ncpu0 1 2 3 4 5 6 700 0 0 0\ncpu1 1 2 3 4 5 6 200 0 0 0\nintr 5\n";
        let cpus = |list: &str| CpuSet::parse_list(list).expect("a list");
        let seconds = |list: &str| softirq(stat, &cpus(list)).map(|s| s * ticks_per_second());
        assert_eq!(seconds("1"), Some(200.0));
        assert_eq!(seconds("0-1"), Some(900.0));
        assert_eq!(seconds("7"), None);
        assert_eq!(backlog_drops("00000010 0000000a 0 0\n00000001 00000001 0 0\n"), Some(11.0));
        assert_eq!(backlog_drops(""), None);
        let snmp = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 5 0 7 9 7 0\n";
        assert_eq!(socket_drops(snmp), Some(7.0));
        assert_eq!(socket_drops("Udp: x\n"), None);
        let snmp6 =
            "Udp6InErrors                    \t9\nUdp6RcvbufErrors                \t45\nUdp6SndbufErrors 3\n";
        assert_eq!(socket_drops_v6(snmp6), Some(45.0));
        assert_eq!(socket_drops_v6("Ip6InReceives 1\n"), None);
    }

    #[test]
    fn run_time_of_this_task_grows() {
        // The test's own thread: the process's first one only waits.
        let task = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut counters = NetworkCounters::open(&[task], &CpuSet::one(0), Some("lo"));
        let before = counters.read();
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 30 {
            std::hint::spin_loop();
        }
        let used = counters.read().since(before);
        // A kernel without CONFIG_SCHEDSTATS has no such file.
        assert!(used.run_ns.is_none_or(|ns| ns > 0.0), "{used:?}");
        let each = counters.softirqs(&[0, 4000].into_iter().collect());
        assert!(each.len() == 2 && each[1].is_nan(), "{each:?}");
        assert!(NetworkCounters::open(&[u32::MAX], &CpuSet::one(0), Some("../x")).read().run_ns.is_none());
    }
}
