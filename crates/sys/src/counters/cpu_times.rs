//! Time that every CPU has spent since the boot, by kind, for frequent reading.

use std::path::Path;

use super::CounterFile;

/// The `cpu` lines of /proc/stat, kept open. The kernel visits all CPUs for a reading: some
/// microseconds, or milliseconds with hundreds of CPUs.
pub struct CpuTimes {
    stat: CounterFile,
    buffer: Vec<u8>,
}

impl CpuTimes {
    /// Opens the file below `root`.
    pub fn open(root: &Path) -> CpuTimes {
        CpuTimes { stat: CounterFile::open(&root.join("proc/stat")), buffer: Vec::new() }
    }

    /// The current lines: `cpu ` and one for each online CPU. `None` if the file is absent or has
    /// no such lines.
    pub fn read(&mut self) -> Option<&str> {
        let text = self.stat.read(&mut self.buffer)?;
        let lines = text.split_inclusive('\n').take_while(|line| line.starts_with("cpu"));
        let end: usize = lines.map(str::len).sum();
        (end > 0).then(|| &text[..end])
    }

    /// The times of each online CPU; empty if the file cannot be read.
    pub fn of_each_cpu(&mut self) -> Vec<CpuTime> {
        self.read().map_or(Vec::new(), |text| text.lines().filter_map(cpu_time).collect())
    }
}

/// Time of a CPU since the boot, in ticks (usually 10 ms; see [`ticks_per_second`]). User time
/// includes that of guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub cpu: u32,
    /// User, nice, system and interrupts.
    pub busy: u64,
    /// The part of `busy` in hard and soft interrupts.
    pub interrupts: u64,
    /// Idle, and idle while waiting for a disk.
    pub idle: u64,
    /// Withheld by the hypervisor.
    pub steal: u64,
}

impl CpuTime {
    pub fn all(self) -> u64 {
        self.busy + self.idle + self.steal
    }
}

/// Parses `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`.
fn cpu_time(line: &str) -> Option<CpuTime> {
    let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
    // The line of all CPUs together has no number.
    let cpu = if line.starts_with("cpu ") { return None } else { words.next()?.parse().ok()? };
    let mut ticks = [0u64; 8];
    for (tick, word) in ticks.iter_mut().zip(words) {
        *tick = word.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    let interrupts = irq + softirq;
    Some(CpuTime { cpu, busy: user + nice + system + interrupts, interrupts, idle: idle + iowait, steal })
}

/// Ticks per second: 100 on nearly every host.
pub fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_current_lines_of_cpus_are_read() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("proc")).expect("a folder");
        let write = |text: &str| std::fs::write(root.path().join("proc/stat"), text).expect("a file");
        write("cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 9\ncpu after other lines\n");
        let mut times = CpuTimes::open(root.path());
        assert_eq!(times.read(), Some("cpu  1 2 3 4\ncpu0 1 2 3 4\n"));
        write("cpu  5 6 7 8\n");
        assert_eq!(times.read(), Some("cpu  5 6 7 8\n"));
        write("intr 9\n");
        assert_eq!(times.read(), None);
        assert_eq!(CpuTimes::open(&root.path().join("nowhere")).read(), None);
        assert!(CpuTimes::open(Path::new("/")).read().is_some_and(|text| text.lines().count() >= 2));
        assert!(ticks_per_second() >= 100.0);
    }

    #[test]
    fn time_of_guests_is_not_counted_twice() {
        let right = CpuTime { cpu: 12, busy: 1 + 2 + 3 + 6 + 7, interrupts: 6 + 7, idle: 4 + 5, steal: 8 };
        assert_eq!(cpu_time("cpu12 1 2 3 4 5 6 7 8 900 1000"), Some(right));
        // Before Linux 2.6 there were four.
        assert_eq!(
            cpu_time("cpu0 1 2 3 4"),
            Some(CpuTime { cpu: 0, busy: 6, idle: 4, ..CpuTime::default() })
        );
        for line in ["cpu  1 2 3 4", "cpu0 1 x 3", "intr 5", "cpux 1 2 3", ""] {
            assert_eq!(cpu_time(line), None, "{line:?}");
        }
    }
}
