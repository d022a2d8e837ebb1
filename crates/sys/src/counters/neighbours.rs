//! Who else uses the CPUs: the other processes by their CPU time, looked at between visits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::clock;
use super::numbers;
use model::{Conditions, Neighbour, without_ids};

/// The other processes of this machine, looked at again and again, and never often.
pub struct Neighbours {
    folder: PathBuf,
    /// CPU time of every process so far, ms, by number and start.
    seen: HashMap<(u32, u64), f64>,
    /// The same of the threads of those that were busy.
    seen_threads: HashMap<(u32, u64), f64>,
    looked: Instant,
    /// CPU time that the last look took: on a loaded machine, where looking matters most, it takes
    /// longer by the clock.
    took: Duration,
    /// Since that look, over visits: their time, that of the CPUs they sat on, and what others used
    /// of either, ms.
    wall_ms: f64,
    seats_ms: f64,
    others_ms: f64,
    on_seats_ms: f64,
    ms_per_tick: f64,
}

/// Others used a notable part from here on: of one CPU, or of the CPUs that visits sat on.
const NOTABLE: f64 = 0.05;
/// Less than this may be the ticks of 10 ms in which the kernel counts, ms.
const NOTABLE_MS: f64 = 30.0;
/// Looks are no closer than this, and take no more than one part in a hundred of the time.
const APART: Duration = Duration::from_millis(250);
const SHARE_OF_TIME: u32 = 100;
/// After so long in quiet what was seen is old: new figures would be thinned by the time before the
/// noise.
const OLD: Duration = Duration::from_secs(5);
/// More processes than this are not looked at.
const PROCESSES_MAX: usize = 16_384;
const THREADS_MAX: usize = 256;
/// Told are the busiest, and of those that go first some more, if they use this much of a CPU.
const BUSIEST: usize = 3;
const LOOKED_INTO: usize = 32;
const TOLD_MAX: usize = 6;
const LEAST_CPUS: f64 = 0.01;

impl Neighbours {
    /// Those that `/proc` below this root shows.
    pub fn below(root: &Path) -> Neighbours {
        Neighbours {
            folder: root.join("proc"),
            seen: HashMap::new(),
            seen_threads: HashMap::new(),
            looked: Instant::now(),
            took: Duration::ZERO,
            wall_ms: 0.0,
            seats_ms: 0.0,
            others_ms: 0.0,
            on_seats_ms: 0.0,
            ms_per_tick: 1000.0 / rustix::param::clock_ticks_per_second() as f64,
        }
    }

    /// Takes down what every process used so far: what is told later is the difference.
    pub fn remember(&mut self) {
        self.look();
    }

    /// After a visit on so many CPUs: who used the CPUs, where others used a notable part of them
    /// since the last look, the busiest first; empty where nobody is seen. `None` where it is
    /// quiet, or too early to look again.
    pub fn after(&mut self, conditions: &Conditions, seats: usize) -> Option<Vec<Neighbour>> {
        self.wall_ms += conditions.wall_ms;
        self.seats_ms += conditions.wall_ms * seats as f64;
        self.others_ms += conditions.busy_ms.zip(conditions.own_ms).map_or(0.0, |(busy, own)| busy - own);
        self.on_seats_ms += conditions.others_on_seats_ms.unwrap_or(0.0);
        let much = |ms: f64, of_ms: f64| ms > NOTABLE_MS && ms > NOTABLE * of_ms;
        let loud = much(self.others_ms, self.wall_ms) || much(self.on_seats_ms, self.seats_ms);
        let due = self.looked.elapsed() > if loud { APART } else { OLD }.max(self.took * SHARE_OF_TIME);
        match (due, loud) {
            (true, true) => Some(self.look()),
            (true, false) => {
                self.look();
                None
            }
            (false, _) => None,
        }
    }

    fn look(&mut self) -> Vec<Neighbour> {
        let (begin, begin_cpu) = (Instant::now(), clock::thread_time());
        let past_ms = begin.duration_since(self.looked).as_secs_f64() * 1e3;
        let own = std::process::id();
        let mut seen = HashMap::with_capacity(self.seen.len());
        let mut found = Vec::new();
        for pid in numbers(&self.folder).take(PROCESSES_MAX).filter(|pid| *pid != own) {
            // One that ended meanwhile, or that is not shown to us.
            let Some(task) = read_task(&self.folder.join(pid.to_string())) else { continue };
            let cpu_ms = task.ticks * self.ms_per_tick;
            let key = (pid, task.started);
            // A process that began since then used all of its time since then.
            let before = self.seen.get(&key).copied().unwrap_or(0.0);
            seen.insert(key, cpu_ms);
            let cpus = (cpu_ms - before) / past_ms.max(1.0);
            if cpus >= LEAST_CPUS {
                found.push((pid, cpus, task));
            }
        }
        let first = self.seen.is_empty();
        self.seen = seen;
        (self.wall_ms, self.seats_ms, self.others_ms, self.on_seats_ms) = (0.0, 0.0, 0.0, 0.0);
        // Without an earlier look, all that was ever used would seem to have been used just now.
        let told = if first { Vec::new() } else { self.told(found, past_ms) };
        self.looked = Instant::now();
        self.took = clock::thread_time().saturating_sub(begin_cpu);
        told
    }

    fn told(&mut self, mut found: Vec<(u32, f64, Task)>, past_ms: f64) -> Vec<Neighbour> {
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        let mut told = Vec::new();
        let mut threads = HashMap::new();
        for (index, (pid, cpus, task)) in found.into_iter().take(LOOKED_INTO).enumerate() {
            let several = task.threads > 1;
            let first =
                if several { self.threads_that_go_first(pid, past_ms, &mut threads) } else { Vec::new() };
            let rest = cpus - first.iter().map(|neighbour| neighbour.cpus).sum::<f64>();
            let whole = neighbour(pid, rest, task);
            // A main thread that goes first is among these threads.
            let is_told = whole.goes_first() || index < BUSIEST;
            if rest >= LEAST_CPUS && is_told && first.iter().all(|thread| thread.pid != pid) {
                told.push(whole);
            }
            told.extend(first);
        }
        self.seen_threads = threads;
        told.truncate(TOLD_MAX);
        told
    }

    /// Of a process with several threads those that go first and use a notable part of a CPU.
    fn threads_that_go_first(
        &self,
        pid: u32,
        past_ms: f64,
        seen: &mut HashMap<(u32, u64), f64>,
    ) -> Vec<Neighbour> {
        let folder = self.folder.join(pid.to_string()).join("task");
        let up_ms = uptime_ms();
        let mut found = Vec::new();
        for number in numbers(&folder).take(THREADS_MAX) {
            let Some(task) = read_task(&folder.join(number.to_string())) else { continue };
            let (cpu_ms, key) = (task.ticks * self.ms_per_tick, (number, task.started));
            seen.insert(key, cpu_ms);
            let cpus = match self.seen_threads.get(&key) {
                Some(before) => (cpu_ms - before) / past_ms.max(1.0),
                // Seen for the first time: what it used on average since it began.
                None => cpu_ms / (up_ms - task.started as f64 * self.ms_per_tick).max(past_ms).max(1.0),
            };
            let neighbour = neighbour(number, cpus, task);
            if neighbour.goes_first() && cpus >= LEAST_CPUS {
                found.push(neighbour);
            }
        }
        found
    }
}

fn neighbour(pid: u32, cpus: f64, task: Task) -> Neighbour {
    Neighbour {
        // The program's name and no more: its command line is never read, and a name may be made of
        // a container's id.
        name: without_ids(&task.name),
        pid,
        cpus,
        cpu: task.cpu,
        policy: policy(task.policy).into(),
        priority: task.priority,
        nice: task.nice,
    }
}

/// Since the machine's start, times in which it slept included: what starts of processes count
/// from.
fn uptime_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// What a `stat` file of a process or a thread says.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    name: String,
    /// User and system time, in ticks.
    ticks: f64,
    nice: i32,
    threads: u32,
    started: u64,
    cpu: Option<u32>,
    priority: u32,
    policy: u32,
}

fn read_task(folder: &Path) -> Option<Task> {
    // A name may hold any bytes.
    task(&String::from_utf8_lossy(&std::fs::read(folder.join("stat")).ok()?))
}

/// `pid (name) state ...`: the fields of proc(5) behind the name, which may itself hold brackets
/// and blanks.
fn task(text: &str) -> Option<Task> {
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // The state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let count = |number: usize| field(number)?.parse::<f64>().ok();
    Some(Task {
        name: head.split_once('(')?.1.to_string(),
        ticks: count(14)? + count(15)?,
        nice: field(19)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        started: field(22)?.parse().ok()?,
        cpu: field(39).and_then(|cpu| cpu.parse().ok()),
        priority: field(40).and_then(|priority| priority.parse().ok()).unwrap_or(0),
        policy: field(41).and_then(|policy| policy.parse().ok()).unwrap_or(0),
    })
}

/// Policies as `sched.h` numbers and calls them.
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
    fn the_fields_stand_behind_any_name() {
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
    fn who_used_the_cpus_between_two_looks() {
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
        std::thread::sleep(APART);
        let busy = Conditions {
            wall_ms: 250.0,
            busy_ms: Some(500.0),
            own_ms: Some(200.0),
            others_on_seats_ms: Some(50.0),
            ..Conditions::default()
        };
        let found = neighbours.after(&busy, 1).expect("looked");
        let names: Vec<(&str, u32)> =
            found.iter().map(|neighbour| (neighbour.name.as_str(), neighbour.pid)).collect();
        assert_eq!(names, [("hog", 7), ("audio", 9)]);
        assert_eq!((found[0].policy.as_ref(), found[0].goes_first()), ("SCHED_OTHER", false));
        assert!(found[0].cpus > found[1].cpus && found[0].cpus <= 1.3);
        // At once again: nothing is looked at.
        assert_eq!(neighbours.after(&busy, 1), None);
        // Now its threads are known: one of them goes first, the other did half of the work.
        write(root.path(), "9", &stat("audio", 160, 2, 0, 0, 0));
        audio(60, 100);
        std::thread::sleep(APART);
        let found = neighbours.after(&busy, 1).expect("looked");
        let names: Vec<(&str, u32)> =
            found.iter().map(|neighbour| (neighbour.name.as_str(), neighbour.pid)).collect();
        assert_eq!(names, [("audio", 9), ("player", 10)]);
        assert_eq!((found[1].policy.as_ref(), found[1].priority), ("SCHED_RR", 70));
        assert!(found[1].goes_first() && !found[0].goes_first());
        assert!((found[0].cpus / found[1].cpus - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn quiet_and_hidden_machines_tell_nobody() {
        let root = tempfile::tempdir().expect("a folder");
        let mut hidden = Neighbours::below(&root.path().join("nowhere"));
        hidden.remember();
        let busy =
            Conditions { wall_ms: 1e3, busy_ms: Some(2e3), own_ms: Some(1e3), ..Conditions::default() };
        std::thread::sleep(APART);
        assert_eq!(hidden.after(&busy, 1), Some(Vec::new()));
    }
}
