//! Other processes that use the CPUs, by their CPU time between visits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::clock;
use super::{field_of, numbers};
use model::{Conditions, Neighbour, without_ids};

/// A process or thread: its id and its start time in ticks (ids are reused).
type TaskKey = (u32, u64);

/// The other processes of this host, scanned repeatedly but rarely.
pub struct Neighbours {
    folder: PathBuf,
    /// CPU time of every process at the last scan, ms.
    processes: HashMap<TaskKey, f64>,
    /// The same for the threads of busy processes.
    threads: HashMap<TaskKey, f64>,
    last_scan: Instant,
    /// CPU time of the last scan. (Its wall time would be longer on a loaded host, which needs
    /// scans most.)
    scan_cost: Duration,
    /// Wall time of the visits since the last scan, ms.
    wall_ms: f64,
    /// The same times the number of their CPUs, ms.
    seats_ms: f64,
    /// CPU time of other processes during these visits, on all CPUs and on the visits' CPUs, ms.
    others_ms: f64,
    on_seats_ms: f64,
    ms_per_tick: f64,
}

/// Others are notable if they used this share of one CPU, or of the CPUs of the visits.
const NOTABLE: f64 = 0.05;
/// Less than this may be rounding: the kernel counts in ticks of 10 ms.
const NOTABLE_MS: f64 = 30.0;
/// Shortest time between scans.
const MIN_INTERVAL: Duration = Duration::from_millis(250);
/// A scan may take one part in this many of the time.
const SHARE_OF_TIME: u32 = 100;
/// On a quiet host a scan follows after this time: CPU time since an older scan would dilute that
/// of new activity.
const QUIET_INTERVAL: Duration = Duration::from_secs(5);
/// Further processes and threads are ignored.
const MAX_PROCESSES: usize = 16_384;
const MAX_THREADS: usize = 256;
/// This many of the busiest processes are reported.
const BUSIEST: usize = 3;
/// This many of the busiest processes are searched for threads with priority over Assay's.
const MAX_SEARCHED: usize = 32;
/// No more neighbours are reported.
const MAX_REPORTED: usize = 6;
/// Smaller shares of a CPU are not reported.
const MIN_CPUS: f64 = 0.01;

impl Neighbours {
    /// The processes in `/proc` below `root`.
    pub fn below(root: &Path) -> Neighbours {
        Neighbours {
            folder: root.join("proc"),
            processes: HashMap::new(),
            threads: HashMap::new(),
            last_scan: Instant::now(),
            scan_cost: Duration::ZERO,
            wall_ms: 0.0,
            seats_ms: 0.0,
            others_ms: 0.0,
            on_seats_ms: 0.0,
            ms_per_tick: 1000.0 / rustix::param::clock_ticks_per_second() as f64,
        }
    }

    /// Records the CPU time of every process; later scans report differences to it.
    pub fn remember(&mut self) {
        self.scan();
    }

    /// To be called after a visit on `seats` CPUs. If other processes used a notable share since
    /// the last scan, returns the busiest, first the most active (empty if none is visible). `None`
    /// if the host is quiet or it is too early for a scan.
    pub fn after(&mut self, conditions: &Conditions, seats: usize) -> Option<Vec<Neighbour>> {
        self.wall_ms += conditions.wall_ms;
        self.seats_ms += conditions.wall_ms * seats as f64;
        self.others_ms += conditions.busy_ms.zip(conditions.own_ms).map_or(0.0, |(busy, own)| busy - own);
        self.on_seats_ms += conditions.others_on_seats_ms.unwrap_or(0.0);
        let notable = |ms: f64, of_ms: f64| ms > NOTABLE_MS && ms > NOTABLE * of_ms;
        let is_notable = notable(self.others_ms, self.wall_ms) || notable(self.on_seats_ms, self.seats_ms);
        let interval = if is_notable { MIN_INTERVAL } else { QUIET_INTERVAL };
        if self.last_scan.elapsed() <= interval.max(self.scan_cost * SHARE_OF_TIME) {
            return None;
        }
        let neighbours = self.scan();
        is_notable.then_some(neighbours)
    }

    fn scan(&mut self) -> Vec<Neighbour> {
        let (start, cpu_start) = (Instant::now(), clock::thread_time());
        let past_ms = start.duration_since(self.last_scan).as_secs_f64() * 1e3;
        let own_pid = std::process::id();
        let mut processes = HashMap::with_capacity(self.processes.len());
        let mut active = Vec::new();
        for pid in numbers(&self.folder).take(MAX_PROCESSES).filter(|pid| *pid != own_pid) {
            // Skips processes that have ended or are hidden from this user.
            let Some(task) = read_task(&self.folder.join(pid.to_string())) else { continue };
            let cpu_ms = task.ticks * self.ms_per_tick;
            let key = (pid, task.started);
            // A process unknown to the last scan has used all of its CPU time since then.
            let before = self.processes.get(&key).copied().unwrap_or(0.0);
            processes.insert(key, cpu_ms);
            let cpus = (cpu_ms - before) / past_ms.max(1.0);
            if cpus >= MIN_CPUS {
                active.push((pid, cpus, task));
            }
        }
        let is_first = self.processes.is_empty();
        self.processes = processes;
        (self.wall_ms, self.seats_ms, self.others_ms, self.on_seats_ms) = (0.0, 0.0, 0.0, 0.0);
        // In the first scan all CPU time since the start of each process would count as recent.
        let neighbours = if is_first { Vec::new() } else { self.busiest(active, past_ms) };
        self.last_scan = Instant::now();
        self.scan_cost = clock::thread_time().saturating_sub(cpu_start);
        neighbours
    }

    fn busiest(&mut self, mut active: Vec<(u32, f64, Task)>, past_ms: f64) -> Vec<Neighbour> {
        active.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
        let mut busiest = Vec::new();
        let mut known_threads = HashMap::new();
        for (index, (pid, cpus, task)) in active.into_iter().take(MAX_SEARCHED).enumerate() {
            let has_threads = task.threads > 1;
            let threads = if has_threads {
                self.priority_threads(pid, past_ms, &mut known_threads)
            } else {
                Vec::new()
            };
            let rest = cpus - threads.iter().map(|neighbour| neighbour.cpus).sum::<f64>();
            let process = neighbour(pid, rest, task);
            let is_reported = process.goes_first() || index < BUSIEST;
            // If its main thread has priority, `threads` contains it already.
            if rest >= MIN_CPUS && is_reported && threads.iter().all(|thread| thread.pid != pid) {
                busiest.push(process);
            }
            busiest.extend(threads);
        }
        self.threads = known_threads;
        busiest.truncate(MAX_REPORTED);
        busiest
    }

    /// The threads of a process that have priority over Assay's tasks and use a notable share of a
    /// CPU. Inserts the CPU time of all its threads, ms, into `known`.
    fn priority_threads(&self, pid: u32, past_ms: f64, known: &mut HashMap<TaskKey, f64>) -> Vec<Neighbour> {
        let folder = self.folder.join(pid.to_string()).join("task");
        let up_ms = uptime_ms();
        let mut found = Vec::new();
        for tid in numbers(&folder).take(MAX_THREADS) {
            let Some(task) = read_task(&folder.join(tid.to_string())) else { continue };
            let (cpu_ms, key) = (task.ticks * self.ms_per_tick, (tid, task.started));
            known.insert(key, cpu_ms);
            let cpus = match self.threads.get(&key) {
                Some(before) => (cpu_ms - before) / past_ms.max(1.0),
                // Unknown to the last scan: its mean since it was started.
                None => cpu_ms / (up_ms - task.started as f64 * self.ms_per_tick).max(past_ms).max(1.0),
            };
            let neighbour = neighbour(tid, cpus, task);
            if neighbour.goes_first() && cpus >= MIN_CPUS {
                found.push(neighbour);
            }
        }
        found
    }
}

fn neighbour(pid: u32, cpus: f64, task: Task) -> Neighbour {
    Neighbour {
        // Only the program's name, never its command line; a container's id in it is replaced.
        name: without_ids(&task.name),
        pid,
        cpus,
        cpu: task.cpu,
        policy: policy(task.policy).into(),
        priority: task.priority,
        nice: task.nice,
    }
}

/// Time since the boot including suspend, ms: the time base of process starts.
fn uptime_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// The `stat` file of a process or thread.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    name: String,
    /// User and system time, in ticks.
    ticks: f64,
    nice: i32,
    threads: u32,
    /// Start time, ticks since the boot.
    started: u64,
    /// The CPU that it last ran on.
    cpu: Option<u32>,
    priority: u32,
    policy: u32,
}

fn read_task(folder: &Path) -> Option<Task> {
    // A name may contain any bytes.
    task(&String::from_utf8_lossy(&std::fs::read(folder.join("stat")).ok()?))
}

/// Parses `pid (name) state ...`; numbers of fields as in proc(5).
fn task(text: &str) -> Option<Task> {
    let (head, _) = text.rsplit_once(')')?;
    Some(Task {
        name: head.split_once('(')?.1.to_string(),
        ticks: field_of::<f64>(text, 14)? + field_of::<f64>(text, 15)?,
        nice: field_of(text, 19)?,
        threads: field_of(text, 20)?,
        started: field_of(text, 22)?,
        cpu: field_of(text, 39),
        priority: field_of(text, 40).unwrap_or(0),
        policy: field_of(text, 41).unwrap_or(0),
    })
}

/// Names of policies by their numbers in `sched.h`.
fn policy(number: u32) -> &'static str {
    match number {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        7 => "SCHED_EXT",
        _ => "an unknown policy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, ticks: u64, threads: u32, nice: i32, priority: u32, policy: u32) -> String {
        let zeros = |count: usize| "0 ".repeat(count);
        format!(
            "7 ({name}) R {}{ticks} 0 0 0 20 {nice} {threads} 0 1234 {}1 {priority} {policy} 0",
            zeros(10),
            zeros(16)
        )
    }

    #[test]
    fn fields_are_found_behind_any_name() {
        let read = task(&stat("a) (b c", 42, 3, -5, 50, 1)).expect("a task");
        assert_eq!((read.name.as_str(), read.ticks, read.nice, read.threads), ("a) (b c", 42.0, -5, 3));
        assert_eq!((read.started, read.cpu, read.priority, read.policy), (1234, Some(1), 50, 1));
        let own = read_task(Path::new("/proc/self")).expect("this process");
        assert!(own.threads >= 1 && own.priority == 0 && own.cpu.is_some(), "{own:?}");
        for damaged in ["", ")", "1 (x)", "1 (x) R 1 2 3", "1 x R", "(\u{0})"] {
            assert_eq!(task(damaged), None);
        }
    }

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join("proc").join(path).join("stat");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        std::fs::write(file, text).expect("written");
    }

    #[test]
    fn neighbours_are_those_that_used_cpus_between_two_scans() {
        let root = tempfile::tempdir().expect("a folder");
        write(root.path(), "7", &stat("hog", 5000, 1, 0, 0, 0));
        assert_eq!(
            neighbour(7, 1.0, task(&stat("c5cbea2ff78e", 1, 1, 0, 0, 0)).expect("a task")).name,
            "*1*"
        );
        write(root.path(), "8", &stat("sleeper", 9000, 1, 0, 0, 0));
        write(root.path(), "9", &stat("audio", 100, 2, 0, 0, 0));
        let mut neighbours = Neighbours::below(root.path());
        neighbours.remember();
        assert_eq!(neighbours.after(&Conditions::default(), 1), None);
        write(root.path(), "7", &stat("hog", 5030, 1, 0, 0, 0));
        write(root.path(), "9", &stat("audio", 120, 2, 0, 0, 0));
        let audio = |player: u64, mixer: u64| {
            write(root.path(), "9/task/9", &stat("audio", mixer, 2, 0, 0, 0));
            write(root.path(), "9/task/10", &stat("player", player, 2, 0, 70, 2));
        };
        audio(40, 80);
        std::thread::sleep(MIN_INTERVAL);
        let busy = Conditions {
            wall_ms: 250.0,
            busy_ms: Some(500.0),
            own_ms: Some(200.0),
            others_on_seats_ms: Some(50.0),
            ..Conditions::default()
        };
        let names = |found: &[Neighbour]| -> Vec<(String, u32)> {
            found.iter().map(|neighbour| (neighbour.name.clone(), neighbour.pid)).collect()
        };
        let found = neighbours.after(&busy, 1).expect("a scan");
        assert_eq!(names(&found), [("hog".into(), 7), ("audio".into(), 9)]);
        assert_eq!((found[0].policy.as_ref(), found[0].goes_first()), ("SCHED_OTHER", false));
        assert!(found[0].cpus > found[1].cpus && found[0].cpus <= 1.3);
        assert_eq!(neighbours.after(&busy, 1), None, "too early for another scan");
        // Now the threads are known: one has priority, the other did half of the work.
        write(root.path(), "9", &stat("audio", 160, 2, 0, 0, 0));
        audio(60, 100);
        std::thread::sleep(MIN_INTERVAL);
        let found = neighbours.after(&busy, 1).expect("a scan");
        assert_eq!(names(&found), [("audio".into(), 9), ("player".into(), 10)]);
        assert_eq!((found[1].policy.as_ref(), found[1].priority), ("SCHED_RR", 70));
        assert!(found[1].goes_first() && !found[0].goes_first());
        assert!((found[0].cpus / found[1].cpus - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_host_that_hides_its_processes_shows_no_neighbours() {
        let root = tempfile::tempdir().expect("a folder");
        let mut hidden = Neighbours::below(&root.path().join("nowhere"));
        hidden.remember();
        let busy =
            Conditions { wall_ms: 1e3, busy_ms: Some(2e3), own_ms: Some(1e3), ..Conditions::default() };
        std::thread::sleep(MIN_INTERVAL);
        assert_eq!(hidden.after(&busy, 1), Some(Vec::new()));
    }
}
