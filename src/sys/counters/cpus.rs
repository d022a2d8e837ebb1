//! The kernel's account of every CPU's time: what `top` makes CPU% of.

use std::path::Path;

use super::Gauge;

/// /proc/stat, kept open.
pub struct CpuTimes {
    stat: Gauge,
    buffer: Vec<u8>,
}

/// A CPU's time so far, in the kernel's ticks (usually 10 ms). Time of guests is part of user time and not counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub cpu: u32,
    /// User, nice, system and interrupts.
    pub busy: u64,
    /// Idle, and idle while waiting for a disk.
    pub idle: u64,
    /// Given to somebody else by the hypervisor.
    pub steal: u64,
}

impl CpuTime {
    pub fn all(self) -> u64 {
        self.busy + self.idle + self.steal
    }
}

impl CpuTimes {
    pub fn open(root: &Path) -> CpuTimes {
        CpuTimes { stat: Gauge::open(&root.join("proc/stat")), buffer: Vec::new() }
    }

    /// Every CPU that is online now; nothing where the kernel does not tell.
    pub fn read(&mut self) -> Vec<CpuTime> {
        self.stat
            .read(&mut self.buffer)
            .map_or(Vec::new(), |text| text.lines().filter_map(cpu_time).collect())
    }
}

/// A line of a CPU: `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`.
fn cpu_time(line: &str) -> Option<CpuTime> {
    let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
    // The line of all CPUs has no number.
    let cpu = if line.starts_with("cpu ") { return None } else { words.next()?.parse().ok()? };
    let mut ticks = [0u64; 8];
    for (tick, word) in ticks.iter_mut().zip(words) {
        *tick = word.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    Some(CpuTime { cpu, busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_guests_are_not_counted_twice() {
        let right = CpuTime { cpu: 12, busy: 1 + 2 + 3 + 6 + 7, idle: 4 + 5, steal: 8 };
        assert_eq!(cpu_time("cpu12 1 2 3 4 5 6 7 8 900 1000"), Some(right));
        // Before Linux 2.6 there were four.
        assert_eq!(cpu_time("cpu0 1 2 3 4"), Some(CpuTime { cpu: 0, busy: 6, idle: 4, steal: 0 }));
        for line in ["cpu  1 2 3 4", "cpu0 1 x 3", "intr 5", "cpux 1 2 3", ""] {
            assert_eq!(cpu_time(line), None, "{line:?}");
        }
    }

    #[test]
    fn this_machine_tells() {
        let mut times = CpuTimes::open(Path::new("/"));
        let all = times.read();
        assert!(!all.is_empty() && all.iter().all(|time| time.all() > 0), "{all:?}");
    }
}
