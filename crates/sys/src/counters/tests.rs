//! Counters replayed from files.

use super::*;

const STAT: &str = "cpu  100 0 50 1000 5 1 2 30 0 0\ncpu0 60 0 20 500 5 1 1 30 0 0\n\
                    cpu1 40 0 30 500 0 0 1 0 0 0\nintr 5 0\nctxt 7\n";

fn tree(stat: &str, throttled: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for folder in ["proc/pressure", "sys/fs/cgroup"] {
        std::fs::create_dir_all(root.path().join(folder)).expect("folders");
    }
    let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).expect("file");
    write("proc/stat", stat);
    write(
        "proc/vmstat",
        "pgfault 5\npswpin 3\npswpout 4\nnuma_pages_migrated 9\nallocstall_dma 1\nallocstall_normal 2\n",
    );
    write("sys/fs/cgroup/memory.events", "low 0\nhigh 3\nmax 4\noom 0\n");
    write("sys/fs/cgroup/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n");
    write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500\nfull total=9\n");
    write("sys/fs/cgroup/cpu.stat", throttled);
    root
}

#[test]
fn differences_of_replayed_counters() {
    let root = tree(STAT, "nr_throttled 0\nthrottled_usec 1000\n");
    let folder = || vec!["/sys/fs/cgroup".to_string()];
    let groups = Groups { cpu: folder(), memory: folder() };
    let mut counters = Counters::open(root.path(), &groups, &CpuSet::default());
    let first = counters.read();
    let later = STAT.replace("cpu  100 0 50 1000 5 1 2 30", "cpu  140 0 50 1000 5 1 2 45");
    let later = later.replace("cpu1 40", "cpu1 80");
    // Written in place: the counters keep the file open.
    for (path, text) in [
        ("proc/stat", later.as_str()),
        ("proc/vmstat", "pgfault 6\npswpin 3\npswpout 4\nallocstall_dma 5\nallocstall_normal 2\n"),
        ("sys/fs/cgroup/cpu.stat", "throttled_usec 4000\n"),
        ("sys/fs/cgroup/memory.events", "low 9\nhigh 4\nmax 6\noom 0\n"),
        ("sys/fs/cgroup/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=6000\n"),
    ] {
        std::fs::write(root.path().join(path), text).expect("rewritten");
    }
    let conditions = counters.read().since(&first, 100.0, &CpuSet::one(1));
    assert_eq!(conditions.cpus, 2);
    assert_eq!(conditions.busy_ms, Some(400.0));
    assert_eq!(conditions.others_on_seats_ms, Some(300.0));
    assert_eq!(conditions.steal_ms, Some(150.0));
    assert_eq!(conditions.throttled_ms, Some(3.0));
    assert_eq!(conditions.psi_cpu_ms, Some(0.0));
    assert_eq!(conditions.psi_io_ms, None);
    assert_eq!(conditions.swapped_pages, Some(0.0));
    assert_eq!(conditions.reclaim_stalls, Some(4.0));
    assert_eq!((conditions.limit_hits, conditions.group_psi_memory_ms), (Some(3.0), Some(5.0)));
    assert_eq!((conditions.oom_kills, conditions.refaulted_pages), (None, None));
}

#[test]
fn missing_files_are_unknown_not_zero() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut counters = Counters::open(root.path(), &Groups::default(), &CpuSet::default());
    let conditions = counters.read().since(&counters.read(), 1.0, &CpuSet::one(0));
    assert_eq!(conditions.busy_ms, None);
    assert_eq!(conditions.steal_ms, None);
    assert_eq!(conditions.background(), None);
}

#[test]
fn counters_that_never_advance_are_unknown_not_zero() {
    let still = STAT.replace("30 0 0", "0 0 0");
    let root = tree(&still, "throttled_usec 0\n");
    let cpu = root.path().join("proc/pressure/cpu");
    std::fs::write(cpu, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n").expect("rewritten");
    let mut counters = Counters::open(root.path(), &Groups::default(), &CpuSet::default());
    let before = counters.read();
    let conditions = counters.read().since(&before, 100.0, &CpuSet::one(1));
    assert_eq!((conditions.busy_ms, conditions.others_on_seats_ms), (None, None));
    assert_eq!((conditions.swapped_pages, conditions.reclaim_stalls), (None, None));
    assert_eq!((conditions.steal_ms, conditions.psi_cpu_ms), (None, None));
    // An idle tick is enough.
    let moved = still.replace("cpu  100 0 50 1000", "cpu  100 0 50 1001");
    std::fs::write(root.path().join("proc/stat"), moved).expect("rewritten");
    let conditions = counters.read().since(&before, 100.0, &CpuSet::one(1));
    assert_eq!((conditions.busy_ms, conditions.steal_ms), (Some(0.0), None), "there was never any steal");
}

/// A reading at a time, ms, with busy and idle time of each CPU, ms.
fn at(ms: u64, times: &[(f64, f64)]) -> Reading {
    let spent = |(cpu, (busy_ms, idle_ms)): (u32, &(f64, f64))| CpuSpent {
        cpu,
        busy_ms: *busy_ms,
        all_ms: busy_ms + idle_ms,
    };
    Reading {
        at: Some(std::time::Instant::now() + std::time::Duration::from_millis(ms)),
        stat_advances: true,
        cpus: (0..).zip(times).map(spent).collect(),
        steal_ms: Some(5.0),
        ..Reading::default()
    }
}

#[test]
fn counters_must_advance_with_the_wall_time() {
    let first = at(0, &[(100.0, 900.0), (0.0, 1000.0)]);
    let known = |later: &Reading| {
        let conditions = later.since(&first, 0.0, &CpuSet::one(0));
        assert_eq!(conditions.busy_ms.is_some(), conditions.steal_ms.is_some());
        assert_eq!(conditions.busy_ms.is_some(), conditions.others_on_seats_ms.is_some());
        conditions.busy_ms.map(f64::round)
    };
    assert_eq!(known(&at(1000, &[(600.0, 1400.0), (0.0, 2000.0)])), Some(500.0));
    assert_eq!(known(&at(1000, &[(100.0, 900.0), (0.0, 1000.0)])), None, "neither advances");
    assert_eq!(known(&at(1000, &[(110.0, 900.0), (10.0, 1000.0)])), None, "busy ticks without idle time");
    assert_eq!(known(&at(1000, &[(0.0, 0.0), (0.0, 0.0)])), None, "zeros");
    // A guest that runs a quarter of the time counts a quarter of the ticks.
    assert_eq!(known(&at(1000, &[(350.0, 900.0), (0.0, 1250.0)])), Some(250.0));
    // Within 50 ms no tick may fall.
    assert_eq!(known(&at(50, &[(100.0, 900.0), (0.0, 1000.0)])), Some(0.0));
}

#[test]
fn damaged_counters_never_panic() {
    for text in ["cpu", "cpu0", "cpu  x y", "cpu99999999999 1", "cpu0 1\ncpu \n", "\u{0}"] {
        let mut reading = Reading::default();
        read_stat(text, 10.0, &mut reading);
    }
    assert_eq!(pressure_total_ms("some total=x"), None);
    assert_eq!((limit_hits("17\n"), limit_hits("x\n"), limit_hits("max -\n")), (Some(17.0), None, None));
}
