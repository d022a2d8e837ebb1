//! The tasks of one process's descendants, sampled repeatedly: their CPUs, run times and waits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::clock;
use super::{CounterFile, MIGRATIONS, field_of, numbers, sched_count};

/// All tasks of a process's descendants, without its own.
pub struct Tasks {
    folder: PathBuf,
    root: u32,
    /// Reports the newest process id: while it does not change, no process was started.
    loadavg: CounterFile,
    newest_pid: Option<u64>,
    /// Time of the last scan of all processes, and its CPU time.
    last_scan: Option<(Instant, Duration)>,
    /// Living descendants.
    processes: HashSet<u32>,
    /// Living processes that are no descendants.
    others: HashSet<u32>,
    watched: BTreeMap<u32, WatchedTask>,
    /// Number of tasks that were ever watched.
    pub seen: usize,
    /// Sum over tasks that have ended, from their last samples.
    ended: TaskUsage,
    buffer: Vec<u8>,
}

/// The usage of a task, or of several together, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskUsage {
    /// CPU time, ns.
    pub ran_ns: f64,
    /// Time that it was runnable and had no CPU, ns; `None` if the kernel does not report it.
    pub wait_ns: Option<f64>,
    pub migrations: Option<f64>,
}

impl TaskUsage {
    fn add(&mut self, other: TaskUsage) {
        let sum = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
        };
        self.ran_ns += other.ran_ns;
        self.wait_ns = sum(self.wait_ns, other.wait_ns);
        self.migrations = sum(self.migrations, other.migrations);
    }
}

/// A task at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskSample {
    pub tid: u32,
    /// The CPU that it runs on, or last ran on.
    pub cpu: u32,
    /// CPU time since its previous sample, ns; of a new task since its start.
    pub ran_ns: f64,
    /// Its first sample.
    pub new: bool,
}

/// Files of one task, kept open.
struct WatchedTask {
    stat: CounterFile,
    schedstat: CounterFile,
    sched: CounterFile,
    used: TaskUsage,
    new: bool,
}

/// More tasks are not watched at a time: each keeps three files open.
const MAX_WATCHED: usize = 256;
/// Longest time between scans, even if the newest process id does not change.
const MAX_SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// A scan may take one part in this many of the time.
const SCAN_SHARE: u32 = 50;

impl Tasks {
    /// The descendants of process `root`, from `/proc` below `folder`.
    pub fn of(folder: &Path, root: u32) -> Tasks {
        let folder = folder.join("proc");
        Tasks {
            loadavg: CounterFile::open(&folder.join("loadavg")),
            folder,
            root,
            newest_pid: None,
            last_scan: None,
            processes: HashSet::new(),
            others: HashSet::new(),
            watched: BTreeMap::new(),
            seen: 0,
            ended: TaskUsage::default(),
            buffer: Vec::new(),
        }
    }

    /// Samples all tasks. `with_migrations`: also reads their migrations, which takes several times
    /// as long.
    pub fn sample(&mut self, with_migrations: bool) -> Vec<TaskSample> {
        self.find_new();
        let mut samples = Vec::with_capacity(self.watched.len());
        let mut ended = Vec::new();
        for (tid, task) in &mut self.watched {
            match task.sample(*tid, with_migrations, &mut self.buffer) {
                Some(sample) => samples.push(sample),
                None => ended.push(*tid),
            }
        }
        for tid in ended {
            if let Some(task) = self.watched.remove(&tid) {
                self.ended.add(task.used);
            }
        }
        samples
    }

    /// The usage of all tasks, those that have ended included, as of their last samples.
    pub fn used(&self) -> TaskUsage {
        let mut sum = self.ended;
        self.watched.values().for_each(|task| sum.add(task.used));
        sum
    }

    /// Finds new processes and threads.
    fn find_new(&mut self) {
        // Load over 1, 5, 15 minutes, runnable/all, and the newest process id.
        let text = self.loadavg.read(&mut self.buffer);
        let newest = text.and_then(|text| text.split_ascii_whitespace().nth(4)?.parse().ok());
        if let Some((at, cost)) = self.last_scan {
            let unchanged = newest.is_some() && newest == self.newest_pid && at.elapsed() < MAX_SCAN_INTERVAL;
            if unchanged || at.elapsed() < cost * SCAN_SHARE {
                return;
            }
        }
        let start = clock::thread_time();
        self.newest_pid = newest;
        self.scan_processes();
        for pid in self.processes.clone() {
            let mut alive = false;
            for tid in numbers(&self.folder.join(pid.to_string()).join("task")) {
                alive = true;
                self.watch(pid, tid);
            }
            if !alive {
                self.processes.remove(&pid);
            }
        }
        self.last_scan = Some((Instant::now(), clock::thread_time().saturating_sub(start)));
    }

    fn scan_processes(&mut self) {
        let living: HashSet<u32> = numbers(&self.folder).collect();
        // The kernel may reuse the id of a process that has ended.
        self.others.retain(|pid| living.contains(pid));
        self.processes.retain(|pid| living.contains(pid));
        let mut parents: HashMap<u32, u32> = HashMap::new();
        for pid in living {
            if pid == self.root || self.others.contains(&pid) || self.processes.contains(&pid) {
                continue;
            }
            let stat = CounterFile::open(&self.folder.join(pid.to_string()).join("stat"));
            if let Some(parent) = stat.read(&mut self.buffer).and_then(|text| field_of(text, PARENT)) {
                parents.insert(pid, parent);
            }
        }
        // One generation in each round.
        loop {
            let ours = |parent: &u32| *parent == self.root || self.processes.contains(parent);
            let found: Vec<u32> =
                parents.iter().filter(|(_, parent)| ours(parent)).map(|(pid, _)| *pid).collect();
            if found.is_empty() {
                break;
            }
            for pid in found {
                parents.remove(&pid);
                self.processes.insert(pid);
            }
        }
        self.others.extend(parents.into_keys());
    }

    fn watch(&mut self, pid: u32, tid: u32) {
        if self.watched.contains_key(&tid) || self.watched.len() >= MAX_WATCHED {
            return;
        }
        let folder = self.folder.join(pid.to_string()).join("task").join(tid.to_string());
        let open = |name: &str| CounterFile::open(&folder.join(name));
        let (stat, schedstat, sched) = (open("stat"), open("schedstat"), open("sched"));
        if stat.0.is_some() {
            self.seen += 1;
            let used = TaskUsage::default();
            self.watched.insert(tid, WatchedTask { stat, schedstat, sched, used, new: true });
        }
    }
}

// Numbers of fields of `stat` in proc(5).
const PARENT: usize = 4;
const USER_TICKS: usize = 14;
const SYSTEM_TICKS: usize = 15;
const PROCESSOR: usize = 39;

impl WatchedTask {
    /// `None` if the task has ended.
    fn sample(&mut self, tid: u32, with_migrations: bool, buffer: &mut Vec<u8>) -> Option<TaskSample> {
        let text = self.stat.read(buffer)?;
        let cpu = field_of(text, PROCESSOR)?;
        let ticks = field_of::<f64>(text, USER_TICKS)? + field_of::<f64>(text, SYSTEM_TICKS)?;
        let before = self.used.ran_ns;
        // From `schedstat` in ns if the kernel has it, else from ticks.
        let mut exact = self
            .schedstat
            .read(buffer)
            .into_iter()
            .flat_map(|text| text.split_ascii_whitespace().map(|number| number.parse::<f64>().ok()));
        match (exact.next().flatten(), exact.next().flatten()) {
            (Some(ran_ns), wait_ns) => (self.used.ran_ns, self.used.wait_ns) = (ran_ns, wait_ns),
            _ => self.used.ran_ns = ticks * 1e9 / rustix::param::clock_ticks_per_second() as f64,
        }
        if with_migrations {
            let migrations = self.sched.read(buffer).and_then(|text| sched_count(text, MIGRATIONS));
            self.used.migrations = migrations.map(|count| count as f64).or(self.used.migrations);
        }
        let new = std::mem::take(&mut self.new);
        Some(TaskSample { tid, cpu, ran_ns: (self.used.ran_ns - before).max(0.0), new })
    }
}

/// All current descendants of a process, zombies included.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut tasks = Tasks::of(Path::new("/"), root);
    tasks.scan_processes();
    tasks.processes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fork;
    use testkit::alone;

    #[test]
    fn children_and_grandchildren_are_sampled() {
        alone(|| {
            let own = std::process::id();
            let mut tasks = Tasks::of(Path::new("/"), own);
            assert!(tasks.sample(true).is_empty() && descendants(own).is_empty());
            let _child = fork(|| {
                let _grandchild = fork(|| {
                    loop {
                        std::hint::spin_loop();
                    }
                });
                std::thread::sleep(Duration::from_secs(60));
                0
            });
            let begin = Instant::now();
            let busy = loop {
                let samples = tasks.sample(true);
                let busy = samples.iter().find(|sample| sample.ran_ns > 1e6).copied();
                if let Some(busy) = busy.filter(|_| samples.len() == 2) {
                    break busy;
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "{samples:?}");
                std::thread::sleep(Duration::from_millis(5));
            };
            assert_eq!(tasks.seen, 2);
            let below = descendants(own);
            assert!(below.contains(&busy.tid) && tasks.used().ran_ns >= busy.ran_ns);
            let mut depths: Vec<usize> = below.iter().map(|pid| descendants(*pid).len()).collect();
            depths.sort_unstable();
            assert_eq!(depths, [0, 1]);
        });
    }

    #[test]
    fn a_replayed_tree_is_sampled() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let file = root.path().join("proc").join(path);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            std::fs::write(file, text).expect("written");
        };
        let stat = |pid: u32, parent: u32, cpu: u32| {
            format!("{pid} (a) b) R {parent} {}{cpu} 0 0 0", "0 ".repeat(34))
        };
        write("loadavg", "0.00 0.00 0.00 1/9 31\n");
        for (pid, parent) in [(10, 1), (20, 30), (30, 10), (31, 1)] {
            write(&format!("{pid}/stat"), &stat(pid, parent, 3));
            write(&format!("{pid}/task/{pid}/stat"), &stat(pid, parent, pid % 7));
            write(&format!("{pid}/task/{pid}/schedstat"), "5000 70 1\n");
            write(&format!("{pid}/task/{pid}/sched"), "a\nse.nr_migrations : 4\n");
        }
        let mut tasks = Tasks::of(root.path(), 10);
        let samples = tasks.sample(true);
        let found: Vec<(u32, u32, f64, bool)> =
            samples.iter().map(|sample| (sample.tid, sample.cpu, sample.ran_ns, sample.new)).collect();
        assert_eq!(found, [(20, 6, 5000.0, true), (30, 2, 5000.0, true)]);
        let used = TaskUsage { ran_ns: 10_000.0, wait_ns: Some(140.0), migrations: Some(8.0) };
        assert_eq!(tasks.used(), used);
        write("20/task/20/schedstat", "9000 70 1\n");
        assert_eq!(tasks.sample(false)[0].ran_ns, 4000.0);
    }
}
