//! What every CPU has spent since it booted, read often.

use std::path::Path;

use super::Gauge;

/// The `cpu` lines of /proc/stat, kept open. A reading walks all CPUs in the kernel: from a few microseconds up to
/// milliseconds on machines with hundreds.
pub struct CpuTimes {
    stat: Gauge,
    buffer: Vec<u8>,
}

impl CpuTimes {
    /// Of the tree below `root`.
    pub fn open(root: &Path) -> CpuTimes {
        CpuTimes { stat: Gauge::open(&root.join("proc/stat")), buffer: Vec::new() }
    }

    /// The lines now: `cpu ` and one for each CPU online. `None` where the file is absent or holds none.
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
}
