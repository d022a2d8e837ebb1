//! The UnixBench system index: its twelve tests, what the host did on them that stands for 10.0,
//! and the arithmetic of its report. The facts are those of UnixBench 5 and 6 (`Run` and
//! `pgms/index.base`, kdlucas/byte-unixbench).

mod rows;
mod scores;

pub use rows::{ALONE, Beyond, Handover, OddRow, RowRatio, more_than_copies, odd_rows};
pub use scores::{CONTEXT, Form, Score, Scores, as_unixbench, scores, usable};

use super::index::geometric_mean;
use super::order::sorted;

/// One test of the index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Of our benchmark, below `unixbench.`.
    pub name: &'static str,
    /// What `./Run` calls it.
    pub run: &'static str,
    /// What reports call it.
    pub title: &'static str,
    /// Of its score: loops a second or minute, millions of Whetstone instructions a second,
    /// kilobytes (1024 B) a second.
    pub unit: &'static str,
    /// What a SPARCstation 20-61 with 128 MB under Solaris 2.3 did, which is index 10.0.
    pub baseline: f64,
    /// Whether it holds several tasks that wake each other, on CPUs that the scheduler chooses.
    pub placed: bool,
}

impl Test {
    /// The id of our benchmark.
    pub fn bench(&self) -> String {
        format!("{GROUP}.{}", self.name)
    }

    /// The index of a score: ten times what it is of the baseline.
    pub fn index(&self, score: f64) -> f64 {
        score / self.baseline * SCALE
    }
}

/// The group of our benchmarks.
pub const GROUP: &str = "unixbench";

/// The index of the baseline itself.
pub const SCALE: f64 = 10.0;

const fn test(
    name: &'static str,
    run: &'static str,
    title: &'static str,
    unit: &'static str,
    baseline: f64,
) -> Test {
    Test { name, run, title, unit, baseline, placed: false }
}

const fn placed(test: Test) -> Test {
    Test { placed: true, ..test }
}

/// In the order of a report, which is that of the titles.
pub const TESTS: [Test; 12] = [
    test("dhry2reg", "dhry2reg", "Dhrystone 2 using register variables", "lps", 116_700.0),
    test("whetstone", "whetstone-double", "Double-Precision Whetstone", "MWIPS", 55.0),
    test("execl", "execl", "Execl Throughput", "lps", 43.0),
    test("fstime", "fstime", "File Copy 1024 bufsize 2000 maxblocks", "KBps", 3960.0),
    test("fsbuffer", "fsbuffer", "File Copy 256 bufsize 500 maxblocks", "KBps", 1655.0),
    test("fsdisk", "fsdisk", "File Copy 4096 bufsize 8000 maxblocks", "KBps", 5800.0),
    test("pipe", "pipe", "Pipe Throughput", "lps", 12_440.0),
    placed(test("context1", "context1", "Pipe-based Context Switching", "lps", 4000.0)),
    placed(test("spawn", "spawn", "Process Creation", "lps", 126.0)),
    placed(test("shell1", "shell1", "Shell Scripts (1 concurrent)", "lpm", 42.4)),
    placed(test("shell8", "shell8", "Shell Scripts (8 concurrent)", "lpm", 6.0)),
    test("syscall", "syscall", "System Call Overhead", "lps", 15_000.0),
];

/// What a report calls the index, and what it calls the geometric mean.
pub const INDEX: &str = "System Benchmarks";

/// The test that a report calls so.
pub fn titled(title: &str) -> Option<&'static Test> {
    TESTS.iter().find(|test| test.title == title)
}

/// The test that one of our benchmarks measures.
pub fn of_bench(id: &str) -> Option<&'static Test> {
    let name = id.strip_prefix(GROUP)?.strip_prefix('.')?;
    TESTS.iter().find(|test| test.name == name)
}

/// What UnixBench itself would make of the passes of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Classic {
    pub score: f64,
    /// Passes that count, and worst ones that do not.
    pub kept: usize,
    pub dropped: usize,
}

/// Drops the worst third of the passes (rounded down) and takes the geometric mean of the rest;
/// more is better. `None` without passes, or where one that counts is not positive.
pub fn classic(passes: &[f64]) -> Option<Classic> {
    let rising = sorted(passes);
    let dropped = rising.len() / 3;
    let kept = &rising[dropped..];
    Some(Classic { score: geometric_mean(kept)?, kept: kept.len(), dropped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_has_index_ten() {
        let indices: Vec<f64> = TESTS.iter().map(|test| test.index(test.baseline)).collect();
        assert!(indices.iter().all(|index| (index - 10.0).abs() < 1e-12));
        assert!((geometric_mean(&indices).expect("positive") - 10.0).abs() < 1e-12);
        for test in TESTS {
            assert_eq!(of_bench(&test.bench()), titled(test.title));
            assert_eq!(of_bench(test.name), None);
        }
        assert!(TESTS.windows(2).all(|pair| pair[0].title < pair[1].title), "reports sort by title");
    }

    #[test]
    fn the_worst_third_is_dropped() {
        assert_eq!(classic(&[]), None);
        let one = classic(&[5.0]).expect("positive");
        assert!((one.score - 5.0).abs() < 1e-12 && (one.kept, one.dropped) == (1, 0));
        // As many as its reports say: 7 samples of 10 passes, 2 of 3.
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(classic(&ten).map(|found| (found.kept, found.dropped)), Some((7, 3)));
        let found = classic(&[8.0, 1.0, 2.0]).expect("positive");
        assert!((found.score - 4.0).abs() < 1e-12 && (found.kept, found.dropped) == (2, 1));
        assert_eq!(classic(&[0.0, 1.0]), None);
        // A zero among the worst third is what no one is reported of.
        assert!(classic(&[0.0, 1.0, 1.0]).is_some());
    }
}
