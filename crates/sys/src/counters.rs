//! Kernel counters read while a run goes on: files of /proc and /sys kept open and read again by
//! `pread`.
//!
//! They stand under a root directory as the snapshot does, so that a test replays any machine's
//! counters by files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use model::{Conditions, CpuSet};

mod block_device;
mod cpu_times;
mod free_blocks;
mod identity;
mod moved;
mod neighbours;
mod network;
mod pagemap;
mod room;
mod symbols;
mod task;
mod tasks;
#[cfg(test)]
mod tests;

pub use block_device::{BlockCounts, BlockDevice, polls, uncounted};
pub use cpu_times::{CpuTime, CpuTimes, units_per_second};
pub use free_blocks::{FreeBlocks, free_blocks};
pub use identity::{boot_id, mount_of, start_ticks};
pub use moved::{MovedMemory, MovedMemoryReading};
pub use neighbours::Neighbours;
pub use network::{NetworkCounters, NetworkTotals};
pub use pagemap::{frames, frames_at, frames_hidden};
pub use room::Room;
pub use symbols::{Symbols, perf_paranoid, symbols_hidden};
pub use task::{TaskCounters, TaskTotals};
pub use tasks::{Look, Tasks, Used, descendants};

/// A file that is read again and again; absent files are simply unknown.
struct CounterFile(Option<File>);

impl CounterFile {
    fn open(path: &Path) -> CounterFile {
        CounterFile(File::open(path).ok())
    }

    /// The whole text now, `None` where the file is absent or unreadable.
    fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> Option<&'b str> {
        let file = self.0.as_ref()?;
        let mut length = 0;
        if buffer.is_empty() {
            buffer.resize(16 << 10, 0);
        }
        loop {
            match file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(bytes) => length += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            }
            if length == buffer.len() {
                buffer.resize(buffer.len() * 2, 0);
            }
        }
        std::str::from_utf8(&buffer[..length]).ok()
    }
}

/// The counters that say what the machine did while a visit ran.
pub struct Counters {
    stat: CounterFile,
    vmstat: CounterFile,
    pressure: [CounterFile; 3],
    /// `cpu.stat` of our cgroup and of each ancestor: a quota anywhere on the path throttles us.
    throttles: Vec<CounterFile>,
    /// Where hits of a memory limit are counted, of our cgroup and of each ancestor.
    limits: Vec<CounterFile>,
    group_pressure: CounterFile,
    thermal: Vec<CounterFile>,
    stat_pulse: AdvanceCheck,
    buffer: Vec<u8>,
    ms_per_tick: f64,
}

/// Shows that a file's counters are alive: a total in it that grows on every real kernel has grown
/// since it was first read. Sandboxes serve files whose numbers never move; what stands beside such
/// a total is unknown, not zero.
#[derive(Default)]
struct AdvanceCheck {
    first: Option<f64>,
}

impl AdvanceCheck {
    /// Notes the total; whether it has grown.
    fn has_advanced(&mut self, total: Option<f64>) -> bool {
        let Some(total) = total else { return false };
        total > *self.first.get_or_insert(total)
    }
}

/// One reading of all counters, in the kernel's own running totals.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    at: Option<std::time::Instant>,
    /// Whether `/proc/stat` has been seen to move.
    stat_alive: bool,
    /// Page faults of all tasks: the start of a process makes some.
    faults: Option<f64>,
    /// Time of all CPUs together, busy or not, ms.
    all_ms: Option<f64>,
    /// By CPU number: busy time, and all time, ms.
    spent: Vec<(u32, f64, f64)>,
    /// Absent where none was ever counted: a host that hides stolen time looks the same.
    steal_ms: Option<f64>,
    irq_ms: Option<f64>,
    psi_ms: [Option<f64>; 3],
    throttled_ms: Option<f64>,
    swapped: Option<f64>,
    numa_migrated: Option<f64>,
    thermal: Option<f64>,
    reclaim_stalls: Option<f64>,
    refaulted: Option<f64>,
    oom_kills: Option<f64>,
    limit_hits: Option<f64>,
    group_psi_ms: Option<f64>,
}

/// Folders of our cgroup and its ancestors, ours first, in the hierarchies of the two controllers
/// that can hold us back.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    pub cpu: Vec<String>,
    pub memory: Vec<String>,
}

impl Counters {
    /// Opens what is there, all of it under `root`.
    pub fn open(root: &Path, groups: &Groups, cpus: &CpuSet) -> Counters {
        let under = |path: &str| root.join(path.trim_start_matches('/'));
        let pressure =
            ["cpu", "memory", "io"].map(|kind| CounterFile::open(&under(&format!("/proc/pressure/{kind}"))));
        // Of each group the first of these files that is there.
        let in_groups = |folders: &[String], names: &[&str]| -> Vec<CounterFile> {
            let first = |folder: &String| {
                names
                    .iter()
                    .map(|name| CounterFile::open(&under(&format!("{folder}/{name}"))))
                    .find(|gauge| gauge.0.is_some())
            };
            folders.iter().filter_map(first).collect()
        };
        let thermal = |cpu: u32, what: &str| -> PathBuf {
            under(&format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{what}_throttle_count"))
        };
        Counters {
            stat: CounterFile::open(&under("/proc/stat")),
            vmstat: CounterFile::open(&under("/proc/vmstat")),
            pressure,
            throttles: in_groups(&groups.cpu, &["cpu.stat"]),
            // Version 2, where the local file leaves out what happened further down; version 1.
            limits: in_groups(&groups.memory, &["memory.events.local", "memory.events", "memory.failcnt"]),
            group_pressure: match groups.memory.first() {
                Some(own) => CounterFile::open(&under(&format!("{own}/memory.pressure"))),
                None => CounterFile(None),
            },
            thermal: cpus
                .iter()
                .flat_map(|cpu| [thermal(cpu, "core"), thermal(cpu, "package")])
                .map(|path| CounterFile::open(&path))
                .filter(|gauge| gauge.0.is_some())
                .collect(),
            stat_pulse: AdvanceCheck::default(),
            buffer: Vec::new(),
            ms_per_tick: 1000.0 / rustix::param::clock_ticks_per_second() as f64,
        }
    }

    pub fn read(&mut self) -> Reading {
        let mut reading = Reading { at: Some(std::time::Instant::now()), ..Reading::default() };
        if let Some(text) = self.stat.read(&mut self.buffer) {
            read_stat(text, self.ms_per_tick, &mut reading);
            reading.stat_alive = self.stat_pulse.has_advanced(reading.all_ms);
        }
        if let Some(text) = self.vmstat.read(&mut self.buffer) {
            let value = |name| field(text, name);
            reading.faults = value("pgfault");
            reading.swapped = value("pswpin").and_then(|pages_in| Some(pages_in + value("pswpout")?));
            reading.numa_migrated = value("numa_pages_migrated");
            // One a zone, and one in all before Linux 4.8.
            reading.reclaim_stalls = sum_of(text, "allocstall");
            reading.refaulted = sum_of(text, "workingset_refault");
            reading.oom_kills = value("oom_kill");
        }
        for (gauge, total) in self.pressure.iter().zip(&mut reading.psi_ms) {
            *total = gauge.read(&mut self.buffer).and_then(pressure_total_ms);
        }
        // No kernel that counts pressure has seen none at all since it was started.
        if reading.psi_ms.iter().flatten().all(|total| *total == 0.0) {
            reading.psi_ms = [None; 3];
        }
        let buffer = &mut self.buffer;
        reading.group_psi_ms = self.group_pressure.read(buffer).and_then(pressure_total_ms);
        reading.throttled_ms = sum(&self.throttles, buffer, throttled_ms);
        reading.limit_hits = sum(&self.limits, buffer, limit_hits);
        reading.thermal = sum(&self.thermal, buffer, |text| text.trim().parse().ok());
        reading
    }
}

impl Reading {
    /// What happened from `earlier` to this reading. `own_ms` is the CPU time of our own processes
    /// in between; `seats` the CPUs that they were placed on.
    pub fn since(&self, earlier: &Reading, own_ms: f64, seats: &CpuSet) -> Conditions {
        let wall_ms = match (self.at, earlier.at) {
            (Some(now), Some(then)) => (now - then).as_secs_f64() * 1e3,
            _ => 0.0,
        };
        let alive = self.stat_alive && self.keeps_time(earlier, wall_ms);
        let known = alive && !self.spent.is_empty() && !earlier.spent.is_empty();
        let busy_on = |wanted: &dyn Fn(u32) -> bool| -> f64 {
            self.grown(earlier).filter(|(cpu, ..)| wanted(*cpu)).map(|(_, busy, _)| busy).sum()
        };
        let minus = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        let of_stat = |now: Option<f64>, then| minus(now.filter(|_| alive), then);
        let faulted = minus(self.faults, earlier.faults).is_some_and(|faults| faults > 0.0);
        let of_vmstat = |now: Option<f64>, then| minus(now.filter(|_| faulted), then);
        // No pressure at all is believed beside counters that move.
        let pressure =
            |kind: usize| minus(self.psi_ms[kind], earlier.psi_ms[kind]).filter(|ms| alive || *ms > 0.0);
        Conditions {
            wall_ms,
            cpus: self.spent.len() as u32,
            busy_ms: known.then(|| busy_on(&|_| true)),
            own_ms: Some(own_ms),
            // Not clipped at zero: ticks of 10 ms err to both sides, and clipped errors would add
            // up over visits.
            others_on_seats_ms: (known && !seats.is_empty())
                .then(|| busy_on(&|cpu| seats.contains(cpu)) - own_ms),
            steal_ms: of_stat(self.steal_ms, earlier.steal_ms),
            irq_ms: of_stat(self.irq_ms, earlier.irq_ms),
            psi_cpu_ms: pressure(0),
            psi_memory_ms: pressure(1),
            psi_io_ms: pressure(2),
            throttled_ms: minus(self.throttled_ms, earlier.throttled_ms),
            swapped_pages: of_vmstat(self.swapped, earlier.swapped),
            numa_migrated_pages: of_vmstat(self.numa_migrated, earlier.numa_migrated),
            thermal_throttles: minus(self.thermal, earlier.thermal),
            reclaim_stalls: of_vmstat(self.reclaim_stalls, earlier.reclaim_stalls),
            refaulted_pages: of_vmstat(self.refaulted, earlier.refaulted),
            oom_kills: of_vmstat(self.oom_kills, earlier.oom_kills),
            limit_hits: minus(self.limit_hits, earlier.limit_hits),
            group_psi_memory_ms: minus(self.group_psi_ms, earlier.group_psi_ms),
            neighbours: None,
        }
    }

    /// By CPU what it was busy for since `earlier`, and all of its time, ms. A CPU that came online
    /// in between has no earlier total, one that was re-plugged may start again at 0.
    fn grown<'r>(&'r self, earlier: &'r Reading) -> impl Iterator<Item = (u32, f64, f64)> + 'r {
        self.spent.iter().filter_map(|(cpu, busy, all)| {
            let (_, busy_then, all_then) = earlier.spent.iter().find(|(other, ..)| other == cpu)?;
            Some((*cpu, (busy - busy_then).max(0.0), (all - all_then).max(0.0)))
        })
    }

    /// Whether the CPUs' busy and idle time grew with the time that passed: counters that moved
    /// once may stand still now. Too short a time says nothing, as the kernel counts in ticks.
    fn keeps_time(&self, earlier: &Reading, wall_ms: f64) -> bool {
        let (cpus, all) = self.grown(earlier).fold((0.0f64, 0.0), |(n, sum), (.., all)| (n + 1.0, sum + all));
        wall_ms < JUDGED_MS || all >= LEAST_COUNTED * wall_ms * cpus.max(1.0)
    }
}

/// A tick of 10 ms is little of so long a time.
const JUDGED_MS: f64 = 100.0;
/// Lost ticks of a guest whose host gives it little time leave more than this share of it.
const LEAST_COUNTED: f64 = 0.1;

/// `/proc/stat`: user nice system idle iowait irq softirq steal guest guest_nice, in ticks. Guest
/// time is part of user time already; steal is nobody's work.
fn read_stat(text: &str, ms_per_tick: f64, reading: &mut Reading) {
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let mut fields = rest.split_ascii_whitespace();
        let (cpu, numbers): (Option<u32>, Vec<f64>) = match rest.starts_with(' ') {
            true => (None, fields.filter_map(|number| number.parse().ok()).collect()),
            false => {
                let cpu = fields.next().and_then(|number| number.parse().ok());
                (cpu, fields.filter_map(|number| number.parse().ok()).collect())
            }
        };
        let ms = |index: usize| numbers.get(index).map(|ticks| ticks * ms_per_tick);
        match (cpu, rest.starts_with(' ')) {
            (Some(cpu), false) => {
                let busy = [0, 1, 2, 5, 6].into_iter().filter_map(ms).sum();
                reading.spent.push((cpu, busy, (0..8).filter_map(ms).sum()));
            }
            (None, true) => {
                reading.all_ms = Some((0..8).filter_map(ms).sum());
                reading.steal_ms = ms(7).filter(|ms| *ms > 0.0);
                reading.irq_ms = ms(5).and_then(|irq| Some(irq + ms(6)?));
            }
            _ => {}
        }
    }
}

/// `total=` of the `some` line, from microseconds to ms.
fn pressure_total_ms(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some"))?;
    let total = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(total.parse::<f64>().ok()? / 1e3)
}

/// `throttled_usec` (v2) or `throttled_time` in ns (v1), to ms.
fn throttled_ms(text: &str) -> Option<f64> {
    field(text, "throttled_usec").map(|us| us / 1e3).or_else(|| Some(field(text, "throttled_time")? / 1e6))
}

/// `memory.events` (v2): the limit itself and the one above which tasks are slowed;
/// `memory.failcnt` (v1): a bare number.
fn limit_hits(text: &str) -> Option<f64> {
    match (field(text, "high"), field(text, "max")) {
        (None, None) => text.trim().parse().ok(),
        (high, max) => Some(high.unwrap_or(0.0) + max.unwrap_or(0.0)),
    }
}

/// What the gauges that can be read say, added up.
fn sum(gauges: &[CounterFile], buffer: &mut Vec<u8>, value: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let values = gauges.iter().filter_map(|gauge| gauge.read(buffer).and_then(&value));
    values.fold(None, |all: Option<f64>, this| Some(all.unwrap_or(0.0) + this))
}

/// The numbers of all lines whose names begin so, added up.
fn sum_of(text: &str, beginning: &str) -> Option<f64> {
    let lines = text.lines().filter(|line| line.starts_with(beginning));
    let numbers = lines.filter_map(|line| line.split_once(' ')?.1.trim().parse::<f64>().ok());
    numbers.fold(None, |all: Option<f64>, this| Some(all.unwrap_or(0.0) + this))
}

/// The number after `name ` at the start of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Counters of the calling task itself, read around each window: about a microsecond a reading.
pub struct OwnCounters {
    schedstat: CounterFile,
    stat: CounterFile,
    buffer: Vec<u8>,
    ms_per_tick: f64,
}

impl OwnCounters {
    pub fn open() -> OwnCounters {
        OwnCounters {
            schedstat: CounterFile::open(Path::new("/proc/self/schedstat")),
            stat: CounterFile::open(Path::new("/proc/stat")),
            buffer: Vec::new(),
            ms_per_tick: 1000.0 / rustix::param::clock_ticks_per_second() as f64,
        }
    }

    /// Time that this task was runnable and had no CPU, ns since its start.
    pub fn wait_ns(&mut self) -> Option<f64> {
        let text = self.schedstat.read(&mut self.buffer)?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// Stolen time of one CPU so far, ms.
    pub fn steal_ms(&mut self, cpu: u32) -> Option<f64> {
        let text = self.stat.read(&mut self.buffer)?;
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(name.as_str()))?;
        Some(line.split_ascii_whitespace().nth(7)?.parse::<f64>().ok()? * self.ms_per_tick)
    }
}

/// CPU migrations of the calling process so far, where the kernel was built to tell.
pub fn own_migrations() -> Option<u64> {
    migrations(&std::fs::read_to_string("/proc/self/sched").ok()?)
}

/// What a `sched` file says of migrations.
fn migrations(text: &str) -> Option<u64> {
    sched_count(text, "se.nr_migrations")
}

/// A count of a `sched` file.
fn sched_count(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split(':').nth(1)?.trim().parse().ok()
}

/// What a task has cost so far that only /proc tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskCost {
    /// Time that it was runnable and had no CPU, ns.
    pub wait_ns: Option<f64>,
    pub migrations: Option<f64>,
    pub voluntary: Option<f64>,
    pub involuntary: Option<f64>,
}

/// The cost of one task of a process, which may have ended but not be reaped.
pub fn task_cost(process: u32, task: u32) -> TaskCost {
    // A process's own files are its first task's: of these the kernel has fewer entries to forget
    // when it is reaped.
    let folder =
        if process == task { format!("/proc/{task}") } else { format!("/proc/{process}/task/{task}") };
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).ok();
    let sched = read("sched").unwrap_or_default();
    let counted = |name: &str| sched_count(&sched, name).map(|count| count as f64);
    TaskCost {
        wait_ns: read("schedstat").and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok()),
        migrations: counted("se.nr_migrations"),
        voluntary: counted("nr_voluntary_switches"),
        involuntary: counted("nr_involuntary_switches"),
    }
}

/// Context switches of the whole machine since it booted.
pub fn machine_switches() -> Option<f64> {
    field(&std::fs::read_to_string("/proc/stat").ok()?, "ctxt")
}

/// A field of a `stat` file of a process or a thread by its number in proc(5), from the state (3)
/// on: the name before it may itself hold brackets and blanks.
fn field_of<T: std::str::FromStr>(text: &str, number: usize) -> Option<T> {
    let (_, tail) = text.rsplit_once(')')?;
    tail.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// Names of a folder that are numbers.
fn numbers(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Bytes of the range `start..start + len` of this process that huge pages back, from
/// `/proc/self/smaps`.
pub fn huge_bytes(start: usize, len: usize) -> Option<u64> {
    huge_bytes_of(&[(start, len)])
}

/// The same of several ranges (address, bytes) together; neighbours may lie in one area of the
/// kernel's.
pub fn huge_bytes_of(ranges: &[(usize, usize)]) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut total, mut inside) = (0, false);
    for line in text.lines() {
        if let Some((low, high)) = line.split(' ').next().and_then(|range| range.split_once('-')) {
            let bounds = usize::from_str_radix(low, 16).ok().zip(usize::from_str_radix(high, 16).ok());
            if let Some((low, high)) = bounds {
                inside = ranges.iter().any(|(start, len)| low < start + len && high > *start);
                continue;
            }
        }
        if let Some(size) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            total += size.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024;
        }
    }
    let all: u64 = ranges.iter().map(|(_, len)| *len as u64).sum();
    Some(total.min(all))
}

/// Drops every clean page of the page cache of the whole machine (`vm.drop_caches`, root only): a
/// disturbance for all, which users ask for by name.
pub fn drop_all_caches() -> io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "1")
}

/// Makes the calling process as likely to be killed for want of memory as its parent is.
pub fn die_as_the_parent_does() {
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid());
    let score = parent.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok());
    if let Some(score) = score {
        let _ = std::fs::write("/proc/self/oom_score_adj", score.trim());
    }
}

/// Makes the calling process the first to go when memory ends: a visit may die of it, the run must
/// not.
pub fn be_first_to_die() {
    // Raising one's own score needs no privilege; where /proc is not writable the visit is as safe
    // as before.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
