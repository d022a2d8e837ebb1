//! The tasks below one process, looked at again and again: where they are, what they ran and what
//! they waited.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::clock;
use super::{CounterFile, field_of, numbers};

/// All tasks of a process's descendants, not its own.
pub struct Tasks {
    folder: PathBuf,
    root: u32,
    /// The process number that was given last, where the kernel tells: while it stands still nobody
    /// was born.
    last_born: CounterFile,
    seen_born: Option<u64>,
    /// When all processes were gone through last, and the CPU time that it took.
    scanned: Option<(Instant, Duration)>,
    /// Descendants that live.
    processes: HashSet<u32>,
    /// Processes that are somebody else's.
    others: HashSet<u32>,
    watched: BTreeMap<u32, Watched>,
    /// All tasks that were ever watched.
    pub seen: usize,
    /// Of tasks that are gone, by what was last seen of them.
    gone: Used,
    buffer: Vec<u8>,
}

/// What a task used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    pub ran_ns: f64,
    /// Time that it was runnable and had no CPU, ns; `None` where the kernel does not tell.
    pub wait_ns: Option<f64>,
    pub migrations: Option<f64>,
}

impl Used {
    fn add(&mut self, other: Used) {
        let sum = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
        };
        self.ran_ns += other.ran_ns;
        self.wait_ns = sum(self.wait_ns, other.wait_ns);
        self.migrations = sum(self.migrations, other.migrations);
    }
}

/// A task as a look found it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub tid: u32,
    /// The CPU that it is on, or was last on.
    pub cpu: u32,
    /// CPU time since it was last looked at, ns; of a new one since its start.
    pub ran_ns: f64,
    /// Seen for the first time.
    pub new: bool,
}

/// Files of one task, kept open.
struct Watched {
    stat: CounterFile,
    schedstat: CounterFile,
    sched: CounterFile,
    used: Used,
    new: bool,
}

/// No more tasks than this are watched at a time: each keeps three files open.
const WATCHED_MAX: usize = 256;
/// Who was born is looked for at least so often, however still the kernel's number stands.
const SCAN_AGAIN: Duration = Duration::from_millis(250);
/// Going through all processes takes no more than one part in so many of the time.
const SCAN_SHARE: u32 = 50;

impl Tasks {
    /// The tasks of what process `root` has started, as `/proc` below this folder shows them.
    pub fn of(folder: &Path, root: u32) -> Tasks {
        let folder = folder.join("proc");
        Tasks {
            last_born: CounterFile::open(&folder.join("loadavg")),
            folder,
            root,
            seen_born: None,
            scanned: None,
            processes: HashSet::new(),
            others: HashSet::new(),
            watched: BTreeMap::new(),
            seen: 0,
            gone: Used::default(),
            buffer: Vec::new(),
        }
    }

    /// Where all tasks are now. `counting`: their migrations are read too, which is several times
    /// as dear.
    pub fn look(&mut self, counting: bool) -> Vec<Look> {
        self.find_new();
        let mut looks = Vec::with_capacity(self.watched.len());
        let mut ended = Vec::new();
        for (tid, task) in &mut self.watched {
            match task.look(*tid, counting, &mut self.buffer) {
                Some(look) => looks.push(look),
                None => ended.push(*tid),
            }
        }
        for tid in ended {
            if let Some(task) = self.watched.remove(&tid) {
                self.gone.add(task.used);
            }
        }
        looks
    }

    /// What all tasks used as far as it was seen, the gone ones included.
    pub fn used(&self) -> Used {
        let mut all = self.gone;
        self.watched.values().for_each(|task| all.add(task.used));
        all
    }

    /// Looks for processes and threads that were born.
    fn find_new(&mut self) {
        // Load over 1, 5, 15 minutes, runnable/all, and the number that was given last.
        let text = self.last_born.read(&mut self.buffer);
        let born = text.and_then(|text| text.split_ascii_whitespace().nth(4)?.parse().ok());
        if let Some((at, took)) = self.scanned {
            let still = born.is_some() && born == self.seen_born && at.elapsed() < SCAN_AGAIN;
            if still || at.elapsed() < took * SCAN_SHARE {
                return;
            }
        }
        let begin = clock::thread_time();
        self.seen_born = born;
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
        self.scanned = Some((Instant::now(), clock::thread_time().saturating_sub(begin)));
    }

    fn scan_processes(&mut self) {
        let all: Vec<u32> = numbers(&self.folder).collect();
        let living: HashSet<u32> = all.iter().copied().collect();
        // A number that was somebody else's may be given anew.
        self.others.retain(|pid| living.contains(pid));
        self.processes.retain(|pid| living.contains(pid));
        let mut parents: HashMap<u32, u32> = HashMap::new();
        for pid in all {
            if pid == self.root || self.others.contains(&pid) || self.processes.contains(&pid) {
                continue;
            }
            let stat = CounterFile::open(&self.folder.join(pid.to_string()).join("stat"));
            if let Some(parent) = stat.read(&mut self.buffer).and_then(|text| field_of(text, PARENT)) {
                parents.insert(pid, parent);
            }
        }
        // A child may stand before its parent in the list.
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
        if self.watched.contains_key(&tid) {
            return;
        }
        if self.watched.len() >= WATCHED_MAX {
            return;
        }
        let folder = self.folder.join(pid.to_string()).join("task").join(tid.to_string());
        let open = |name: &str| CounterFile::open(&folder.join(name));
        let (stat, schedstat, sched) = (open("stat"), open("schedstat"), open("sched"));
        if stat.0.is_some() {
            self.seen += 1;
            self.watched.insert(tid, Watched { stat, schedstat, sched, used: Used::default(), new: true });
        }
    }
}

/// Fields of proc(5)'s `stat` by their numbers.
const PARENT: usize = 4;
const USER_TICKS: usize = 14;
const SYSTEM_TICKS: usize = 15;
const PROCESSOR: usize = 39;

impl Watched {
    /// `None`: it has ended.
    fn look(&mut self, tid: u32, counting: bool, buffer: &mut Vec<u8>) -> Option<Look> {
        let text = self.stat.read(buffer)?;
        let cpu = field_of(text, PROCESSOR)?;
        let ticks = field_of::<f64>(text, USER_TICKS)? + field_of::<f64>(text, SYSTEM_TICKS)?;
        let before = self.used.ran_ns;
        // Nanoseconds where the kernel was built to tell them, else its ticks.
        let mut exact = self
            .schedstat
            .read(buffer)
            .into_iter()
            .flat_map(|text| text.split_ascii_whitespace().map(|number| number.parse::<f64>().ok()));
        match (exact.next().flatten(), exact.next().flatten()) {
            (Some(ran_ns), wait_ns) => (self.used.ran_ns, self.used.wait_ns) = (ran_ns, wait_ns),
            _ => self.used.ran_ns = ticks * 1e9 / rustix::param::clock_ticks_per_second() as f64,
        }
        if counting {
            let migrations = self.sched.read(buffer).and_then(super::migrations);
            self.used.migrations = migrations.map(|count| count as f64).or(self.used.migrations);
        }
        let new = std::mem::take(&mut self.new);
        Some(Look { tid, cpu, ran_ns: (self.used.ran_ns - before).max(0.0), new })
    }
}

/// All descendants of a process that are there now, zombies too.
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
    fn children_and_their_children_are_seen_with_what_they_ran() {
        alone(|| {
            let own = std::process::id();
            let mut tasks = Tasks::of(Path::new("/"), own);
            assert!(tasks.look(true).is_empty() && descendants(own).is_empty());
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
                let looks = tasks.look(true);
                let busy = looks.iter().find(|look| look.ran_ns > 1e6).copied();
                if let Some(busy) = busy.filter(|_| looks.len() == 2) {
                    break busy;
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "{looks:?}");
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
    fn a_replayed_tree_is_read_and_remembered() {
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
        let looks = tasks.look(true);
        let found: Vec<(u32, u32, f64, bool)> =
            looks.iter().map(|look| (look.tid, look.cpu, look.ran_ns, look.new)).collect();
        assert_eq!(found, [(20, 6, 5000.0, true), (30, 2, 5000.0, true)]);
        let used = Used { ran_ns: 10_000.0, wait_ns: Some(140.0), migrations: Some(8.0) };
        assert_eq!(tasks.used(), used);
        write("20/task/20/schedstat", "9000 70 1\n");
        assert_eq!(tasks.look(false)[0].ran_ns, 4000.0);
    }
}
