//! Kernel counters read during a run: files of /proc and /sys that stay open and are read again by
//! `pread`.
//!
//! All paths start at a root directory, so tests can replay the counters of any host from files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use model::{Conditions, CpuSet};

mod available_memory;
mod block_device;
mod cpu_times;
mod free_blocks;
mod identity;
mod moved;
mod neighbours;
mod network;
mod pagemap;

mod symbols;
mod task;
mod tasks;
#[cfg(test)]
mod tests;

pub use available_memory::AvailableMemory;
pub use block_device::{BlockCounts, BlockDevice, has_polled_queues, why_uncounted};
pub use cpu_times::{CpuTime, CpuTimes, ticks_per_second};
pub use free_blocks::{FreeBlocks, free_blocks};
pub use identity::{boot_id, mount_of, start_ticks};
pub use moved::{MovedMemory, MovedMemoryReading};
pub use neighbours::Neighbours;
pub use network::{NetworkCounters, NetworkTotals};
pub use pagemap::{frames, frames_at, frames_hidden};

pub use symbols::{Symbols, perf_paranoid, symbols_hidden};
pub use task::{TaskCounters, TaskTotals};
pub use tasks::{TaskSample, TaskUsage, Tasks, descendants};

/// A file that is read repeatedly. `None` if it is absent: its counters are unknown.
struct CounterFile(Option<File>);

impl CounterFile {
    fn open(path: &Path) -> CounterFile {
        CounterFile(File::open(path).ok())
    }

    /// The current content; `None` if the file is absent or unreadable.
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

/// The counters that show what the host did while a visit ran.
pub struct Counters {
    stat: CounterFile,
    vmstat: CounterFile,
    pressure: [CounterFile; 3],
    /// `cpu.stat` of this process's control group and of each ancestor: a quota of any of them
    /// throttles this process.
    throttles: Vec<CounterFile>,
    /// Files that count hits of a memory limit, of this control group and each ancestor.
    limits: Vec<CounterFile>,
    group_pressure: CounterFile,
    thermal: Vec<CounterFile>,
    stat_advance: AdvanceCheck,
    buffer: Vec<u8>,
    ms_per_tick: f64,
}

/// Checks that a file's counters are real: a total that grows on every kernel has grown since it
/// was first read. Sandboxes serve files whose numbers never change; their other counters are
/// unknown, not zero.
#[derive(Default)]
struct AdvanceCheck {
    first: Option<f64>,
}

impl AdvanceCheck {
    /// Whether the total is larger than at the first call.
    fn has_advanced(&mut self, total: Option<f64>) -> bool {
        let Some(total) = total else { return false };
        total > *self.first.get_or_insert(total)
    }
}

/// One reading of all counters: the kernel's running totals.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    at: Option<std::time::Instant>,
    /// The counters of `/proc/stat` have advanced since the first reading.
    stat_advances: bool,
    /// Page faults of all tasks; they advance whenever a process starts.
    faults: Option<f64>,
    /// Time of all CPUs together, busy or idle, ms.
    all_ms: Option<f64>,
    cpus: Vec<CpuSpent>,
    /// `None` if 0: a hypervisor that hides steal looks the same.
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

/// Time of one CPU, ms.
#[derive(Clone, Copy, Debug)]
struct CpuSpent {
    cpu: u32,
    busy_ms: f64,
    all_ms: f64,
}

/// Folders of this process's control group and its ancestors, its own first, in the hierarchies of
/// the two controllers that can limit it.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    pub cpu: Vec<String>,
    pub memory: Vec<String>,
}

impl Counters {
    /// Opens the files that exist below `root`.
    pub fn open(root: &Path, groups: &Groups, cpus: &CpuSet) -> Counters {
        let under = |path: &str| root.join(path.trim_start_matches('/'));
        let pressure =
            ["cpu", "memory", "io"].map(|kind| CounterFile::open(&under(&format!("/proc/pressure/{kind}"))));
        // For each group the first of these files that exists.
        let in_groups = |folders: &[String], names: &[&str]| -> Vec<CounterFile> {
            let first = |folder: &String| {
                names
                    .iter()
                    .map(|name| CounterFile::open(&under(&format!("{folder}/{name}"))))
                    .find(|file| file.0.is_some())
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
            // Version 2 (the local file excludes descendants), then version 1.
            limits: in_groups(&groups.memory, &["memory.events.local", "memory.events", "memory.failcnt"]),
            group_pressure: match groups.memory.first() {
                Some(own) => CounterFile::open(&under(&format!("{own}/memory.pressure"))),
                None => CounterFile(None),
            },
            thermal: cpus
                .iter()
                .flat_map(|cpu| [thermal(cpu, "core"), thermal(cpu, "package")])
                .map(|path| CounterFile::open(&path))
                .filter(|file| file.0.is_some())
                .collect(),
            stat_advance: AdvanceCheck::default(),
            buffer: Vec::new(),
            ms_per_tick: 1000.0 / rustix::param::clock_ticks_per_second() as f64,
        }
    }

    pub fn read(&mut self) -> Reading {
        let mut reading = Reading { at: Some(std::time::Instant::now()), ..Reading::default() };
        if let Some(text) = self.stat.read(&mut self.buffer) {
            read_stat(text, self.ms_per_tick, &mut reading);
            reading.stat_advances = self.stat_advance.has_advanced(reading.all_ms);
        }
        if let Some(text) = self.vmstat.read(&mut self.buffer) {
            let value = |name| field(text, name);
            reading.faults = value("pgfault");
            reading.swapped = value("pswpin").and_then(|pages_in| Some(pages_in + value("pswpout")?));
            reading.numa_migrated = value("numa_pages_migrated");
            // One total for each zone; before Linux 4.8 a single one.
            reading.reclaim_stalls = sum_of(text, "allocstall");
            reading.refaulted = sum_of(text, "workingset_refault");
            reading.oom_kills = value("oom_kill");
        }
        for (file, total) in self.pressure.iter().zip(&mut reading.psi_ms) {
            *total = file.read(&mut self.buffer).and_then(pressure_total_ms);
        }
        // Every kernel that counts pressure has seen some since its boot.
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
    /// The differences to an `earlier` reading. `own_ms`: CPU time of Assay's own processes in
    /// between; `seats`: the CPUs that they were placed on.
    pub fn since(&self, earlier: &Reading, own_ms: f64, seats: &CpuSet) -> Conditions {
        let wall_ms = match (self.at, earlier.at) {
            (Some(now), Some(then)) => (now - then).as_secs_f64() * 1e3,
            _ => 0.0,
        };
        let stat_advances = self.stat_advances && self.keeps_time(earlier, wall_ms);
        let known = stat_advances && !self.cpus.is_empty() && !earlier.cpus.is_empty();
        let busy_on = |wanted: &dyn Fn(u32) -> bool| -> f64 {
            self.spent_since(earlier).filter(|spent| wanted(spent.cpu)).map(|spent| spent.busy_ms).sum()
        };
        let minus = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        let of_stat = |now: Option<f64>, then| minus(now.filter(|_| stat_advances), then);
        let faulted = minus(self.faults, earlier.faults).is_some_and(|faults| faults > 0.0);
        let of_vmstat = |now: Option<f64>, then| minus(now.filter(|_| faulted), then);
        // A pressure of 0 counts only if other counters advance.
        let pressure = |kind: usize| {
            minus(self.psi_ms[kind], earlier.psi_ms[kind]).filter(|ms| stat_advances || *ms > 0.0)
        };
        Conditions {
            wall_ms,
            cpus: self.cpus.len() as u32,
            busy_ms: known.then(|| busy_on(&|_| true)),
            own_ms: Some(own_ms),
            // May be negative: ticks of 10 ms err to both sides, and errors clipped at 0 would add
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

    /// Time that each CPU spent since `earlier`. A CPU that came online in between has no earlier
    /// total and is left out; one that was re-plugged may start again at 0.
    fn spent_since<'r>(&'r self, earlier: &'r Reading) -> impl Iterator<Item = CpuSpent> + 'r {
        self.cpus.iter().filter_map(|now| {
            let then = earlier.cpus.iter().find(|then| then.cpu == now.cpu)?;
            let (busy_ms, all_ms) = (now.busy_ms - then.busy_ms, now.all_ms - then.all_ms);
            Some(CpuSpent { cpu: now.cpu, busy_ms: busy_ms.max(0.0), all_ms: all_ms.max(0.0) })
        })
    }

    /// Whether the CPUs' busy and idle time grew with the wall time: counters that advanced once
    /// may have stopped. Always true for short times, because the kernel counts in ticks.
    fn keeps_time(&self, earlier: &Reading, wall_ms: f64) -> bool {
        let (cpus, all_ms) =
            self.spent_since(earlier).fold((0.0f64, 0.0), |(n, sum), spent| (n + 1.0, sum + spent.all_ms));
        wall_ms < MIN_JUDGED_MS || all_ms >= MIN_COUNTED_SHARE * wall_ms * cpus.max(1.0)
    }
}

/// Shortest wall time for [`Reading::keeps_time`]: ten ticks of 10 ms.
const MIN_JUDGED_MS: f64 = 100.0;
/// A guest that rarely runs loses ticks, but counts more than this share of the wall time.
const MIN_COUNTED_SHARE: f64 = 0.1;

/// `/proc/stat`: user nice system idle iowait irq softirq steal guest guest_nice, in ticks. User
/// time includes guest time; steal is not busy time.
fn read_stat(text: &str, ms_per_tick: f64, reading: &mut Reading) {
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let mut fields = rest.split_ascii_whitespace();
        // The line of all CPUs together has no number.
        let is_total = rest.starts_with(' ');
        let cpu: Option<u32> =
            if is_total { None } else { fields.next().and_then(|number| number.parse().ok()) };
        let numbers: Vec<f64> = fields.filter_map(|number| number.parse().ok()).collect();
        let ms = |index: usize| numbers.get(index).map(|ticks| ticks * ms_per_tick);
        let all_ms = (0..8).filter_map(ms).sum();
        if let Some(cpu) = cpu {
            let busy_ms = [0, 1, 2, 5, 6].into_iter().filter_map(ms).sum();
            reading.cpus.push(CpuSpent { cpu, busy_ms, all_ms });
        } else if is_total {
            reading.all_ms = Some(all_ms);
            reading.steal_ms = ms(7).filter(|ms| *ms > 0.0);
            reading.irq_ms = ms(5).and_then(|irq| Some(irq + ms(6)?));
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

/// `memory.events` (v2): hits of `memory.max` and of `memory.high`; `memory.failcnt` (v1): a bare
/// number.
fn limit_hits(text: &str) -> Option<f64> {
    match (field(text, "high"), field(text, "max")) {
        (None, None) => text.trim().parse().ok(),
        (high, max) => Some(high.unwrap_or(0.0) + max.unwrap_or(0.0)),
    }
}

/// The sum over all files that can be read; `None` if none can.
fn sum(files: &[CounterFile], buffer: &mut Vec<u8>, value: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    files.iter().filter_map(|file| file.read(buffer).and_then(&value)).reduce(|sum, value| sum + value)
}

/// The sum of the numbers of all lines that start with `prefix`; `None` if there is none.
fn sum_of(text: &str, prefix: &str) -> Option<f64> {
    let lines = text.lines().filter(|line| line.starts_with(prefix));
    let numbers = lines.filter_map(|line| line.split_once(' ')?.1.trim().parse::<f64>().ok());
    numbers.reduce(|sum, number| sum + number)
}

/// The number after `name ` at the start of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The wait time in a `schedstat` file: time that the task was runnable and had no CPU, ns.
fn wait_ns_of(schedstat: &str) -> Option<f64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Counters of the calling task, read around each sample; a reading takes about 1 µs.
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
        self.schedstat.read(&mut self.buffer).and_then(wait_ns_of)
    }

    /// Steal of one CPU so far, ms.
    pub fn steal_ms(&mut self, cpu: u32) -> Option<f64> {
        let text = self.stat.read(&mut self.buffer)?;
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(name.as_str()))?;
        Some(line.split_ascii_whitespace().nth(7)?.parse::<f64>().ok()? * self.ms_per_tick)
    }
}

/// CPU migrations of the calling process so far; `None` if the kernel does not report them
/// (CONFIG_SCHED_DEBUG).
pub fn own_migrations() -> Option<u64> {
    sched_count(&std::fs::read_to_string("/proc/self/sched").ok()?, MIGRATIONS)
}

/// Migrations in a `sched` file.
const MIGRATIONS: &str = "se.nr_migrations";

/// A counter in a `sched` file.
fn sched_count(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split(':').nth(1)?.trim().parse().ok()
}

/// Costs of a task so far that only /proc reports.
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
    // A process's files are those of its first task; reading them leaves the kernel fewer directory
    // entries to free when the process is reaped.
    let folder =
        if process == task { format!("/proc/{task}") } else { format!("/proc/{process}/task/{task}") };
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).ok();
    let sched = read("sched").unwrap_or_default();
    let counted = |name: &str| sched_count(&sched, name).map(|count| count as f64);
    TaskCost {
        wait_ns: read("schedstat").and_then(|text| wait_ns_of(&text)),
        migrations: counted(MIGRATIONS),
        voluntary: counted("nr_voluntary_switches"),
        involuntary: counted("nr_involuntary_switches"),
    }
}

/// Context switches of the whole host since its boot.
pub fn machine_switches() -> Option<f64> {
    field(&std::fs::read_to_string("/proc/stat").ok()?, "ctxt")
}

/// A field of a `stat` file of a process or thread by its number in proc(5), from the state (3) on;
/// the name before it may contain brackets and blanks.
fn field_of<T: std::str::FromStr>(text: &str, number: usize) -> Option<T> {
    let (_, tail) = text.rsplit_once(')')?;
    tail.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// The numeric names in a folder.
fn numbers(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Bytes of the range `start..start + len` of this process that are on huge pages
/// (`/proc/self/smaps`).
pub fn huge_bytes(start: usize, len: usize) -> Option<u64> {
    huge_bytes_of(&[(start, len)])
}

/// The same for several ranges (address, bytes) together, which may lie in one mapping of the
/// kernel.
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

/// Drops all clean pages of the host's page cache (`vm.drop_caches`, root only). This slows other
/// programs, so users must request it.
pub fn drop_all_caches() -> io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "1")
}

/// Gives the calling process the OOM score adjustment of its parent.
pub fn die_as_the_parent_does() {
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid());
    let score = parent.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok());
    if let Some(score) = score {
        let _ = std::fs::write("/proc/self/oom_score_adj", score.trim());
    }
}

/// Makes the calling process the OOM killer's first choice: a visit may be killed, the run must
/// not.
pub fn be_first_to_die() {
    // Raising one's own score needs no privilege; if /proc is not writable, the score stays.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
