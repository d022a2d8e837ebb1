//! What every CPU has spent since it booted, read often.

use std::path::Path;

use super::CounterFile;

/// The `cpu` lines of /proc/stat, kept open. A reading walks all CPUs in the kernel: from a few
/// microseconds up to milliseconds on machines with hundreds.
pub struct CpuTimes {
    stat: CounterFile,
    buffer: Vec<u8>,
}

impl CpuTimes {
    /// Of the tree below `root`.
    pub fn open(root: &Path) -> CpuTimes {
        CpuTimes { stat: CounterFile::open(&root.join("proc/stat")), buffer: Vec::new() }
    }

    /// The lines now: `cpu ` and one for each CPU online. `None` where the file is absent or holds
    /// none.
    pub fn read(&mut self) -> Option<&str> {
        let text = self.stat.read(&mut self.buffer)?;
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            match line.starts_with("cpu") {
                true => end += line.len(),
                false => break,
            }
        }
        (end > 0).then(|| &text[..end])
    }

    /// The same in numbers, for each CPU online; nothing where the kernel does not tell.
    pub fn each(&mut self) -> Vec<CpuTime> {
        self.read().map_or(Vec::new(), |text| text.lines().filter_map(cpu_time).collect())
    }
}

/// A CPU's time so far, in the kernel's ticks (usually 10 ms). Time of guests is part of user time
/// and not counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub cpu: u32,
    /// User, nice, system and interrupts.
    pub busy: u64,
    /// Of these, hard and soft interrupts.
    pub interrupts: u64,
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
    let interrupts = irq + softirq;
    Some(CpuTime { cpu, busy: user + nice + system + interrupts, interrupts, idle: idle + iowait, steal })
}

/// How many units of these counters pass in a second (100 on nearly every machine).
pub fn units_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_of_cpus_and_always_the_newest() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("proc")).expect("a folder");
        let write = |text: &str| std::fs::write(root.path().join("proc/stat"), text).expect("a file");
        write("cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 9\ncpu is no line of a CPU\n");
        let mut times = CpuTimes::open(root.path());
        assert_eq!(times.read(), Some("cpu  1 2 3 4\ncpu0 1 2 3 4\n"));
        write("cpu  5 6 7 8\n");
        assert_eq!(times.read(), Some("cpu  5 6 7 8\n"));
        write("intr 9\n");
        assert_eq!(times.read(), None);
        assert_eq!(CpuTimes::open(&root.path().join("nowhere")).read(), None);
        assert!(CpuTimes::open(Path::new("/")).read().is_some_and(|text| text.lines().count() >= 2));
        assert!(units_per_second() >= 100.0);
    }

    #[test]
    fn a_line_is_read_and_guests_are_not_counted_twice() {
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
